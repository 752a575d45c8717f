//! How fast the timed machine runs on this host: against the functional engine, on two threads, with idle SMs, and in
//! how much memory. Rates count the instructions that an H200 executes, so that better code is no slower simulator.
//!
//! Everything is a ratio within one run: hosts differ, and so do the loads on them.

use crate::bench::{peak, reset_peak, seconds_on_core};
use crate::kernels::Kernel;
use crate::timed::Machine;
use crate::truth::Truth;
use driver::launch_file::LaunchFile;
use driver::{CompileOptions, LaunchOptions, Session};
use machine::Config;
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Kernels with a target: the share of the functional rate that one thread reaches.
pub const TARGETS: [(&str, f64); 5] = [
    ("nbody", 1.0 / 12.0),
    ("matmul_tiled", 1.0 / 12.0),
    ("mandelbrot", 1.0 / 12.0),
    ("saxpy", 1.0 / 25.0),
    ("spmv_hash", 1.0 / 25.0),
];
/// Kernels that run on two threads, and the share of two processes' gain that they reach.
pub const PARALLEL: [&str; 2] = ["nbody", "saxpy"];
pub const PARALLEL_TARGET: f64 = 0.8;
/// The kernel whose first CTA runs alone, and how much longer that may take on a large machine.
pub const ALONE: &str = "nbody";
pub const ALONE_TARGET: f64 = 1.2;
/// Memory of the process beyond the launch's buffers.
pub const MEMORY_LIMIT: u64 = 300_000_000;

/// Timed against functional, one kernel on one thread.
#[derive(Clone, Debug)]
pub struct Rate {
    pub name: String,
    /// H200 instructions a second, the median repetition.
    pub timed: f64,
    pub functional: f64,
    pub target: Option<f64>,
    pub cycles: u64,
    pub buffer_bytes: u64,
    /// Peak memory of the process, where the system tells.
    pub peak_bytes: Option<u64>,
}

impl Rate {
    pub fn ratio(&self) -> f64 {
        self.timed / self.functional
    }

    pub fn is_met(&self) -> bool {
        self.target.is_none_or(|t| self.ratio() >= t)
            && self.peak_bytes.is_none_or(|p| p <= MEMORY_LIMIT + self.buffer_bytes)
    }
}

/// Gain of two threads against that of two processes.
#[derive(Clone, Debug)]
pub struct Parallel {
    pub name: String,
    /// Work done a second, over that of one thread.
    pub threads: f64,
    pub processes: f64,
}

impl Parallel {
    pub fn share(&self) -> f64 {
        self.threads / self.processes
    }

    pub fn is_met(&self) -> bool {
        self.share() >= PARALLEL_TARGET
    }
}

/// Host time of one CTA on a large machine over that on a small one.
#[derive(Clone, Debug)]
pub struct Alone {
    pub name: String,
    pub large: (String, f64),
    pub small: (String, f64),
}

impl Alone {
    pub fn ratio(&self) -> f64 {
        self.large.1 / self.small.1
    }

    pub fn is_met(&self) -> bool {
        self.ratio() <= ALONE_TARGET
    }
}

/// All that was measured.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub rates: Vec<Rate>,
    pub parallel: Vec<Parallel>,
    pub alone: Vec<Alone>,
}

/// A launch file with everything that is needed to run it again and again.
struct Stage {
    file: LaunchFile,
}

impl Stage {
    fn new(kernel: &Kernel) -> Result<Stage, String> {
        Ok(Stage { file: LaunchFile::load(&kernel.path).map_err(|e| e.to_string())? })
    }

    fn session(&self) -> Result<Session<'_>, String> {
        Session::new(&self.file, &CompileOptions::default()).map_err(|e| e.to_string())
    }

    /// Seconds of all launches on the timed machine, and their cycles.
    fn timed(&self, session: &Session<'_>, machine: &mut Machine) -> Result<(f64, u64), String> {
        session.fill().map_err(|e| e.to_string())?;
        let start = Instant::now();
        let cycles = self.cycles(session, machine)?;
        Ok((start.elapsed().as_secs_f64(), cycles))
    }

    /// Cycles of all launches on the timed machine.
    fn cycles(&self, session: &Session<'_>, machine: &mut Machine) -> Result<u64, String> {
        (0..self.file.launches.len())
            .map(|number| Ok(machine.launch_of(&self.file, session, number)?.cycles))
            .sum()
    }

    fn functional(&self, session: &Session<'_>) -> Result<(), String> {
        let options = LaunchOptions { threads: 1, ..LaunchOptions::default() };
        for number in 0..self.file.launches.len() {
            session.launch(number, &options).map_err(|e| e.to_string())?;
        }
        Ok(())
    }
}

/// Seconds that `work` had this thread on a core, so that other programs of the host count less; where the host does not
/// say, seconds that it took.
fn on_core<R>(work: impl FnOnce() -> Result<R, String>) -> Result<(f64, R), String> {
    let (core, start) = (seconds_on_core(), Instant::now());
    let outcome = work()?;
    let elapsed = start.elapsed().as_secs_f64();
    let seconds = core.and_then(|from| Some(seconds_on_core()? - from)).unwrap_or(elapsed);
    Ok((seconds, outcome))
}

/// Timed and functional in turn, `repetitions` times, functional launches for as long as the timed one took: a host that does other
/// things too has fast and slow moments, and the shorter of two launches would find the fast ones. The repetition with the median
/// ratio counts.
pub fn rate(kernel: &Kernel, results: &Value, config: &Config, repetitions: u32) -> Result<Rate, String> {
    let instructions = Truth::of(results, &kernel.name)
        .instructions()
        .ok_or_else(|| format!("there is no smsp__inst_executed.sum for {}", kernel.name))?;
    reset_peak();
    let stage = Stage::new(kernel)?;
    let session = stage.session()?;
    let mut machine = Machine::new(config, 1);
    let fill = || session.fill().map_err(|e| e.to_string());
    // The first of either makes what later ones find.
    fill()?;
    stage.functional(&session)?;
    fill()?;
    let cycles = stage.cycles(&session, &mut machine)?;
    // Seconds of each repetition: timed, functional.
    let mut seconds: Vec<(f64, f64)> = Vec::new();
    for _ in 0..repetitions.max(1) {
        fill()?;
        let timed = on_core(|| stage.cycles(&session, &mut machine))?.0;
        let (mut functional, mut launches) = (0.0, 0);
        while functional < timed {
            fill()?;
            functional += on_core(|| stage.functional(&session))?.0;
            launches += 1;
        }
        seconds.push((timed, functional / f64::from(launches)));
    }
    seconds.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    let (timed, functional) = seconds[seconds.len() / 2];
    Ok(Rate {
        name: kernel.name.clone(),
        timed: instructions / timed,
        functional: instructions / functional,
        target: TARGETS.iter().find(|(name, _)| *name == kernel.name).map(|(_, t)| *t),
        cycles,
        buffer_bytes: stage.file.buffer_bytes(),
        peak_bytes: peak(),
    })
}

/// What the best of some timed runs took: seconds, those that its first thread was on a core, and cycles.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Took {
    pub elapsed: f64,
    pub on_core: f64,
    pub cycles: u64,
}

impl std::fmt::Display for Took {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{} {} {}", self.elapsed, self.on_core, self.cycles)
    }
}

impl Took {
    /// From what it is shown as.
    pub fn read(text: &str) -> Option<Took> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [elapsed, on_core, cycles] = words[..] else { return None };
        Some(Took {
            elapsed: elapsed.parse().ok()?,
            on_core: on_core.parse().ok()?,
            cycles: cycles.parse().ok()?,
        })
    }
}

/// The best of so many timed runs on so many threads.
pub fn seconds(kernel: &Kernel, config: &Config, threads: usize, repetitions: u32) -> Result<Took, String> {
    let stage = Stage::new(kernel)?;
    let session = stage.session()?;
    let mut machine = Machine::new(config, threads);
    let mut best = Took { elapsed: f64::INFINITY, on_core: f64::INFINITY, cycles: 0 };
    for _ in 0..repetitions.max(1) {
        let (on_core, (elapsed, cycles)) = on_core(|| stage.timed(&session, &mut machine))?;
        best = Took { elapsed: best.elapsed.min(elapsed), on_core: best.on_core.min(on_core), cycles };
    }
    Ok(best)
}

/// One thread, two threads, and two processes of one thread each. `worker` is the command that prints [`seconds`] of
/// the kernel on one thread.
pub fn parallel(
    kernel: &Kernel,
    config: &Config,
    repetitions: u32,
    worker: &dyn Fn() -> Command,
) -> Result<Parallel, String> {
    let one = seconds(kernel, config, 1, repetitions)?.elapsed;
    let two = seconds(kernel, config, 2, repetitions)?.elapsed;
    let fail = |e: &dyn std::fmt::Display| format!("cannot run a second process: {e}");
    let children: Vec<_> = (0..2)
        .map(|_| worker().stdout(Stdio::piped()).spawn().map_err(|e| fail(&e)))
        .collect::<Result<_, _>>()?;
    let mut both = 0.0;
    for child in children {
        let output = child.wait_with_output().map_err(|e| fail(&e))?;
        let text = String::from_utf8_lossy(&output.stdout);
        both += Took::read(&text).ok_or_else(|| fail(&text))?.elapsed;
    }
    Ok(Parallel { name: kernel.name.clone(), threads: one / two, processes: 2.0 * one / (both / 2.0) })
}

/// The first CTA of a kernel on two machines, in turn.
pub fn alone(kernel: &Kernel, large: &Config, small: &Config, repetitions: u32) -> Result<Alone, String> {
    let mut stage = Stage::new(kernel)?;
    for launch in &mut stage.file.launches {
        launch.grid = [1, 1, 1];
    }
    let sessions = [stage.session()?, stage.session()?];
    let mut machines = [large, small].map(|config| Machine::new(config, 1));
    let mut best = [f64::INFINITY; 2];
    for _ in 0..repetitions.max(1) {
        for ((session, machine), best) in sessions.iter().zip(&mut machines).zip(&mut best) {
            *best = best.min(stage.timed(session, machine)?.0);
        }
    }
    Ok(Alone {
        name: kernel.name.clone(),
        large: (large.name.clone(), best[0]),
        small: (small.name.clone(), best[1]),
    })
}

impl Report {
    pub fn is_met(&self) -> bool {
        self.rates.iter().all(Rate::is_met)
            && self.parallel.iter().all(Parallel::is_met)
            && self.alone.iter().all(Alone::is_met)
    }

    /// Markdown tables, which read well as plain text too.
    pub fn tables(&self) -> String {
        let met = |yes: bool| if yes { "yes" } else { "no" };
        let mut out = String::from(
            "| kernel | timed, M/s | functional, M/s | ratio | target | peak memory, MB | buffers, MB | met |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        );
        for r in &self.rates {
            let _ = writeln!(
                out,
                "| {} | {:.2} | {:.1} | 1/{:.1} | {} | {} | {:.1} | {} |",
                r.name,
                r.timed / 1e6,
                r.functional / 1e6,
                1.0 / r.ratio(),
                r.target.map_or("-".into(), |t| format!("1/{:.0}", 1.0 / t)),
                r.peak_bytes.map_or("-".into(), |p| format!("{:.0}", p as f64 / 1e6)),
                r.buffer_bytes as f64 / 1e6,
                met(r.is_met()),
            );
        }
        if !self.parallel.is_empty() {
            out += "\n| kernel | gain of two threads | gain of two processes | share | target | met |\n\
                    | --- | --- | --- | --- | --- | --- |\n";
        }
        for p in &self.parallel {
            let _ = writeln!(
                out,
                "| {} | {:.2} | {:.2} | {:.2} | {PARALLEL_TARGET} | {} |",
                p.name,
                p.threads,
                p.processes,
                p.share(),
                met(p.is_met())
            );
        }
        if !self.alone.is_empty() {
            out += "\n| one CTA of | large machine, ms | small machine, ms | ratio | target | met |\n\
                    | --- | --- | --- | --- | --- | --- |\n";
        }
        for a in &self.alone {
            let _ = writeln!(
                out,
                "| {} | {} {:.1} | {} {:.1} | {:.2} | {ALONE_TARGET} | {} |",
                a.name,
                a.large.0,
                a.large.1 * 1e3,
                a.small.0,
                a.small.1 * 1e3,
                a.ratio(),
                met(a.is_met())
            );
        }
        out
    }

    pub fn json(&self) -> Value {
        let rates: Vec<Value> = self
            .rates
            .iter()
            .map(|r| {
                json!({
                    "kernel": r.name, "timed": r.timed, "functional": r.functional, "ratio": r.ratio(), "target": r.target,
                    "cycles": r.cycles, "buffer_bytes": r.buffer_bytes, "peak_bytes": r.peak_bytes, "met": r.is_met(),
                })
            })
            .collect();
        let parallel: Vec<Value> = self
            .parallel
            .iter()
            .map(|p| {
                json!({
                    "kernel": p.name, "two_threads": p.threads, "two_processes": p.processes, "share": p.share(),
                    "target": PARALLEL_TARGET, "met": p.is_met(),
                })
            })
            .collect();
        let alone: Vec<Value> = self
            .alone
            .iter()
            .map(|a| {
                json!({
                    "kernel": a.name, "large": a.large.0, "large_seconds": a.large.1, "small": a.small.0,
                    "small_seconds": a.small.1, "ratio": a.ratio(), "target": ALONE_TARGET, "met": a.is_met(),
                })
            })
            .collect();
        json!({ "rates": rates, "parallel": parallel, "alone": alone, "met": self.is_met() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_ratios() {
        let rate = Rate {
            name: "k".into(),
            timed: 10.0,
            functional: 100.0,
            target: Some(1.0 / 12.0),
            cycles: 1,
            buffer_bytes: 1_000_000,
            peak_bytes: Some(300_000_000),
        };
        assert!(rate.is_met());
        assert!(!Rate { timed: 8.0, ..rate.clone() }.is_met());
        assert!(!Rate { peak_bytes: Some(302_000_000), ..rate.clone() }.is_met());
        let parallel = Parallel { name: "k".into(), threads: 1.5, processes: 2.0 };
        assert!(!parallel.is_met());
        let alone = Alone { name: "k".into(), large: ("l".into(), 1.1), small: ("s".into(), 1.0) };
        assert!(alone.is_met());
        let report = Report { rates: vec![rate], parallel: vec![parallel], alone: vec![alone] };
        assert!(
            !report.is_met()
                && report.tables().contains("| k | 0.00 | 0.0 | 1/10.0 | 1/12 | 300 | 1.0 | yes |")
        );
    }
}
