//! The page on warp scheduling: three locality workloads under all schedulers and three sizes of the first-level cache.

use driver::chart::Canvas;
use driver::compile::Phases;
use driver::launch_file::LaunchFile;
use driver::schedulers::{self, Comparison, Outcome};
use driver::{CompileOptions, Config};
use std::fmt::Write;
use std::path::Path;

/// Workloads of the examples, and what their accesses have in common.
const WORKLOADS: [(&str, &str); 3] = [
    (
        "sampling",
        "Tiled sampling: four layers, each sample placed by the one before it, through a rotation. Warps of a CTA read the same \
         lines, CTAs read different ones.",
    ),
    (
        "gather",
        "Hash-grid gather: six levels, all loads independent of each other. Fine levels are scattered.",
    ),
    ("stencil", "Blocked stencil: 13 points, rows that warps of a CTA share, CTA by CTA down a strip."),
];

/// Kilobytes of the first-level cache.
const SIZES: [u32; 3] = [8, 16, 32];

/// The scheduler that the page is about, and those it is compared with.
const OURS: &str = "credit+grants";
const OTHERS: [&str; 2] = ["lrr", "gto"];

/// A workload's outcomes: for each size, one a scheduler.
pub struct Measured {
    pub name: &'static str,
    title: &'static str,
    by_size: Vec<Vec<Outcome>>,
}

/// The classic machine with a first-level cache of so many kilobytes.
fn machine(kilobytes: u32) -> Result<Config, String> {
    let mut config = Config::preset("classic").map_err(|e| e.to_string())?;
    config.name = format!("classic, {kilobytes} KB of L1");
    config.sm.l1_shared_bytes = kilobytes * 1024;
    (config.sm.shared_splits, config.sm.shared_reserved) = (vec![0], 0);
    Ok(config)
}

/// Runs everything.
pub fn measure(examples: &Path, threads: usize) -> Result<Vec<Measured>, String> {
    let names = schedulers::all();
    let by_size = |name| {
        SIZES.iter().map(|&size| outcomes(examples, name, size, &names, threads)).collect::<Result<_, _>>()
    };
    WORKLOADS.iter().map(|&(name, title)| Ok(Measured { name, title, by_size: by_size(name)? })).collect()
}

/// One workload with one size of the cache.
pub fn outcomes(
    examples: &Path,
    name: &str,
    kilobytes: u32,
    schedulers: &[String],
    threads: usize,
) -> Result<Vec<Outcome>, String> {
    let path = examples.join(name).join(format!("{name}.toml"));
    let file = LaunchFile::load(&path).map_err(|e| e.to_string())?;
    let compile = CompileOptions { phases: Phases::Loads, ..CompileOptions::default() };
    let config = machine(kilobytes)?;
    let comparison = Comparison { file: &file, compile: &compile, config: &config, threads, cancel: None };
    schedulers::compare(&comparison, schedulers).map_err(|e| e.to_string())
}

impl Measured {
    fn outcome(&self, size: usize, scheduler: &str) -> Option<&Outcome> {
        self.by_size.get(size)?.iter().find(|o| o.scheduler == scheduler)
    }

    /// The plot of the smallest cache.
    pub fn plot(&self) -> Canvas {
        let outcomes = self.by_size.first().map_or(&[][..], Vec::as_slice);
        schedulers::plot(self.name, &format!("classic, {} KB of L1", SIZES[0]), outcomes)
    }
}

/// The page.
pub fn page(measured: &[Measured]) -> String {
    let mut out = String::from(TEXT);
    for m in measured {
        let _ = writeln!(out, "\n### {}\n\n{}\n", m.name, m.title);
        out += "| scheduler |";
        for size in SIZES {
            let _ = write!(out, " hit %, {size} KB | cycles |");
        }
        out += " spread |\n| --- |";
        out += &" --- | --- |".repeat(SIZES.len());
        out += " --- |\n";
        for first in m.by_size.first().map_or(&[][..], Vec::as_slice) {
            let _ = write!(out, "| {} |", first.scheduler);
            for n in 0..SIZES.len() {
                if let Some(o) = m.outcome(n, &first.scheduler) {
                    let _ = write!(out, " {:.1} | {} |", o.l1_hit_pct(), o.cycles);
                }
            }
            let _ = writeln!(out, " {:.1} |", first.spread());
        }
    }
    out += "\n## Where credits with grants win, and where they do not\n\n";
    out += "| workload | L1 | hit rate against lrr, gto | cycles against lrr, gto | best hit rate | fewest cycles |\n\
            | --- | --- | --- | --- | --- | --- |\n";
    for m in measured {
        for (n, size) in SIZES.iter().enumerate() {
            let Some(ours) = m.outcome(n, OURS) else { continue };
            let against = OTHERS.map(|o| m.outcome(n, o));
            let points: Vec<String> = against
                .iter()
                .flatten()
                .map(|o| format!("{:+.1} points", ours.l1_hit_pct() - o.l1_hit_pct()))
                .collect();
            let cycles: Vec<String> = against
                .iter()
                .flatten()
                .map(|o| format!("{:+.1} %", 100.0 * (ours.cycles as f64 / o.cycles as f64 - 1.0)))
                .collect();
            let best = m.by_size[n].iter().max_by(|a, b| a.l1_hit_pct().total_cmp(&b.l1_hit_pct()));
            let fastest = m.by_size[n].iter().min_by_key(|o| o.cycles);
            let name = |o: Option<&Outcome>| o.map_or("", |o| o.scheduler.as_str()).to_owned();
            let _ = writeln!(
                out,
                "| {} | {size} KB | {} | {} | {} | {} |",
                m.name,
                points.join(", "),
                cycles.join(", "),
                name(best),
                name(fastest)
            );
        }
    }
    out + HONEST
}

/// Whether the scheduler of the page has a higher hit rate than the others on the tiled workload, whatever the cache.
pub fn wins_on_tiles(measured: &[Measured]) -> bool {
    measured.iter().filter(|m| m.name == WORKLOADS[0].0).all(|m| {
        (0..SIZES.len()).all(|n| {
            let hit = |s: &str| m.outcome(n, s).map_or(0.0, Outcome::l1_hit_pct);
            OTHERS.iter().all(|o| hit(OURS) > hit(o))
        })
    })
}

const TEXT: &str = include_str!("head.md");
const HONEST: &str = include_str!("end.md");
