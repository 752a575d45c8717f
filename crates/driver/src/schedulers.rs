//! A launch file under several schedulers, side by side: cycles, hit rates, fairness and stalls of each.

use crate::chart::{Anchor, BLACK, Bars, Canvas, Lines, Stacks};
use crate::compile::CompileOptions;
use crate::config::set_scheduler;
use crate::launch::LaunchOptions;
use crate::launch_file::LaunchFile;
use crate::problem::Problems;
use crate::run::{RunError, Session};
use crate::timing::Timing;
use machine::counters::Counters;
use machine::progress::Progress;
use machine::stall::{STALLS, Stall, StallCycles};
use machine::{Config, sm::Policy};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Cycles between two samples of the progress of warps.
const INTERVAL: u64 = 32;

/// Points of a line over time.
pub const POINTS: usize = 80;
/// Reasons that a table or a plot shows.
const REASONS: usize = 6;

/// What a launch file did under one scheduler, all its launches together.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// As `--scheduler` names it.
    pub scheduler: String,
    pub cycles: u64,
    pub counters: Counters,
    pub stalls: StallCycles,
    /// How evenly the warps of a CTA progressed, launch by launch.
    pub progress: Vec<Progress>,
    /// SHA-256 of every result: the same under every scheduler.
    pub results: Vec<String>,
}

impl Outcome {
    /// Warp instructions a cycle, of the whole machine.
    pub fn ipc(&self) -> f64 {
        per(self.counters.warp_instructions, self.cycles)
    }

    /// Share of sectors that were found in the first-level cache, in percent.
    pub fn l1_hit_pct(&self) -> f64 {
        100.0 * per(self.counters.l1_hits, self.counters.l1_sectors)
    }

    /// The spread of progress between the warps of an average CTA, in instructions.
    pub fn spread(&self) -> f64 {
        let (sum, n) = self.progress.iter().fold((0.0, 0), |(s, n), p| (s + p.mean(), n + 1));
        if n == 0 { 0.0 } else { sum / f64::from(n) }
    }

    /// Warp-cycles of a reason for each instruction.
    pub fn stall(&self, reason: Stall) -> f64 {
        per(self.stalls[reason as usize], self.counters.warp_instructions)
    }
}

fn per(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// All schedulers that are compared: every policy, and those with grants that differ most.
pub fn all() -> Vec<String> {
    let plain = Policy::ALL.iter().map(|p| p.name().to_owned());
    plain.chain([Policy::Gto, Policy::Credit].map(|p| format!("{}+grants", p.name()))).collect()
}

/// How to compare.
#[derive(Clone, Copy)]
pub struct Comparison<'a> {
    pub file: &'a LaunchFile,
    pub compile: &'a CompileOptions,
    /// The machine, whose schedulers are replaced.
    pub config: &'a Config,
    /// Schedulers that run at the same time on the host; 0 for as many as it has threads.
    pub threads: usize,
    /// Set from elsewhere to end it.
    pub cancel: Option<&'a AtomicBool>,
}

/// Runs the launch file under each scheduler, several at a time; outcomes in the order of the names.
pub fn compare(c: &Comparison<'_>, names: &[String]) -> Result<Vec<Outcome>, RunError> {
    let mut configs = Vec::new();
    for name in names {
        let mut config = c.config.clone();
        set_scheduler(&mut config, name).map_err(RunError::Input)?;
        configs.push(config);
    }
    let threads = match c.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    };
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<(usize, Result<Outcome, RunError>)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(names.len()) {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let Some(config) = configs.get(n) else { return };
                    let outcome = one(c, &names[n], config);
                    found.lock().unwrap_or_else(PoisonError::into_inner).push((n, outcome));
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(n, _)| *n);
    found.into_iter().map(|(_, outcome)| outcome).collect()
}

/// One scheduler, with memory of its own.
fn one(c: &Comparison<'_>, name: &str, config: &Config) -> Result<Outcome, RunError> {
    let session = Session::new(c.file, c.compile).map_err(RunError::Input)?;
    let mut outcome = Outcome {
        scheduler: name.to_owned(),
        cycles: 0,
        counters: Counters::default(),
        stalls: [0; STALLS],
        progress: Vec::new(),
        results: Vec::new(),
    };
    let options = LaunchOptions {
        threads: 1,
        cancel: c.cancel,
        timing: Some(Timing { cold: true, progress: Some(INTERVAL), ..Timing::new(config) }),
        ..LaunchOptions::default()
    };
    for number in 0..c.file.launches.len() {
        let stats = session.launch(number, &options)?;
        let Some(report) = stats.report else { continue };
        outcome.cycles += report.cycles;
        outcome.counters.add(&report.counters);
        for row in &report.stalls {
            outcome.stalls.iter_mut().zip(row).for_each(|(sum, n)| *sum += n);
        }
        outcome.progress.extend(stats.progress);
    }
    for (number, _, _) in c.file.outputs() {
        let digest = session
            .digest(number)
            .map_err(|e| RunError::Input(Problems::from(crate::Problem::new(e.to_string()))))?;
        outcome.results.push(digest.sha256);
    }
    Ok(outcome)
}

/// The reasons that take the most warp-cycles over all outcomes; issuing is none.
pub fn reasons(outcomes: &[Outcome]) -> Vec<Stall> {
    let total = |s: Stall| outcomes.iter().map(|o| o.stall(s)).sum::<f64>();
    let mut all: Vec<Stall> =
        Stall::ALL.into_iter().filter(|&s| s != Stall::Selected && total(s) > 0.0).collect();
    all.sort_by(|&a, &b| total(b).total_cmp(&total(a)).then(a.cmp(&b)));
    all.truncate(REASONS);
    all
}

/// Cycles, hit rates, progress over time and stalls.
pub fn plot(launch: &str, config: &str, outcomes: &[Outcome]) -> Canvas {
    let bars = |value: fn(&Outcome) -> f64| -> Vec<(String, f64)> {
        outcomes.iter().map(|o| (o.scheduler.clone(), value(o))).collect()
    };
    let (cycles, hits) = (bars(|o| o.cycles as f64), bars(Outcome::l1_hit_pct));
    let cycles = Bars { title: "Cycles", rows: &cycles, unit: "" };
    let hits = Bars { title: "L1 hit rate", rows: &hits, unit: "%" };
    let reasons = reasons(outcomes);
    let parts: Vec<String> = reasons.iter().map(|r| r.name().replace('_', " ")).collect();
    let stacks: Vec<(String, Vec<f64>)> = outcomes
        .iter()
        .map(|o| (o.scheduler.clone(), reasons.iter().map(|&r| o.stall(r)).collect()))
        .collect();
    let stacks = Stacks { title: "Stalls, warp-cycles an instruction", parts: &parts, rows: &stacks };
    // The launch that took longest stands for all.
    let longest = |o: &Outcome| {
        let p = o.progress.iter().max_by_key(|p| p.samples.len());
        p.map(|p| p.points(POINTS).into_iter().map(|(at, v)| (at as f64, v)).collect()).unwrap_or_default()
    };
    let lines: Vec<(String, Vec<(f64, f64)>)> =
        outcomes.iter().map(|o| (o.scheduler.clone(), longest(o))).collect();
    let lines = Lines {
        title: "Spread of progress between the warps of a CTA, instructions",
        x_axis: "cycles since the launch",
        rows: &lines,
    };
    let (width, margin, gap) = (1000.0, 16.0, 24.0);
    let half = (width - 2.0 * margin - gap) / 2.0;
    let first = 40.0;
    let second = first + cycles.height() + 10.0;
    let third = second + 260.0;
    let mut c = Canvas::new(width, third + stacks.height() + margin);
    let head = format!("{launch} on {config}");
    c.text((margin, 24.0), 16.0, Anchor::Left, BLACK, &head);
    cycles.draw(&mut c, margin, first, half);
    hits.draw(&mut c, margin + half + gap, first, half);
    lines.draw(&mut c, (margin, second), (width - 2.0 * margin, 250.0));
    stacks.draw(&mut c, margin, third, width - 2.0 * margin);
    c
}
