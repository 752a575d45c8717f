//! The page on the dynamic optimizer: cycles of kernels with barriers in loops, with and without it.

use crate::kernels::{self, Kernel, Outcome};
use driver::machine::optimizing::{Level, Optimized, Options, Profiling, Who};
use driver::{Config, LaunchOptions, Timing};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The repository's own kernels.
pub fn own_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/optimizer")
}

/// What is measured.
#[derive(Clone, Debug)]
pub struct Choice {
    pub options: Options,
    /// Only kernels whose name contains this.
    pub filter: Option<String>,
    /// Only the first table.
    pub short: bool,
}

/// A kernel with and without.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub kernel: String,
    pub off: u64,
    pub on: u64,
    pub versions: u64,
    pub given_up: u64,
    pub failures: u64,
    /// Cycles of the host, or issue slots of warps.
    pub cost: u64,
}

impl Row {
    pub fn ratio(&self) -> f64 {
        self.on as f64 / self.off.max(1) as f64
    }

    /// The row as text.
    pub fn line(&self) -> String {
        format!(
            "{:18} {:>9} -> {:>9}  {:.3}  {} versions, {} given up, {} checks failed, cost {}",
            self.kernel,
            self.off,
            self.on,
            self.ratio(),
            self.versions,
            self.given_up,
            self.failures,
            self.cost
        )
    }
}

/// What the page shows.
pub struct Measured {
    pub machine: String,
    pub options: Options,
    pub rows: Vec<Row>,
    /// Geometric means of other choices.
    pub others: Vec<(String, f64)>,
}

/// The geometric mean of the ratios.
fn mean(rows: &[Row]) -> f64 {
    let sum: f64 = rows.iter().map(|r| r.ratio().ln()).sum();
    (sum / rows.len().max(1) as f64).exp()
}

impl Measured {
    pub fn mean(&self) -> f64 {
        mean(&self.rows)
    }

    /// At least 8 % fewer cycles, and none slower by more than 2 %.
    pub fn is_good(&self) -> bool {
        self.mean() <= 0.92 && self.rows.iter().all(|r| r.ratio() <= 1.02)
    }
}

/// Cycles of a kernel's launches, with caches emptied before each, and what was optimized. Results must be the GPU's.
pub fn cycles(
    kernel: &Kernel,
    expected: &serde_json::Value,
    config: &Config,
    optimize: Option<Options>,
    threads: usize,
) -> Result<(u64, Vec<Optimized>), String> {
    let (mut cycles, mut optimized) = (0, Vec::new());
    let outcome = kernels::run_with(kernel, expected, |_, session, number| {
        let timing = Timing { cold: true, optimize, ..Timing::new(config) };
        let options = LaunchOptions { threads, timing: Some(timing), ..LaunchOptions::default() };
        let stats = session.launch(number, &options).map_err(|e| e.to_string())?;
        cycles += stats.report.as_ref().map_or(0, |r| r.cycles);
        optimized.extend(stats.optimized.map(|o| *o));
        Ok(())
    });
    match outcome {
        Outcome::Match => Ok((cycles, optimized)),
        other => {
            let (word, why) = other.words();
            Err(format!("{}: {word} {why}", kernel.name))
        }
    }
}

fn row(
    kernel: &Kernel,
    expected: &serde_json::Value,
    config: &Config,
    options: Options,
    threads: usize,
    off: Option<u64>,
) -> Result<Row, String> {
    let off = match off {
        Some(off) => off,
        None => cycles(kernel, expected, config, None, threads)?.0,
    };
    let (on, optimized) = cycles(kernel, expected, config, Some(options), threads)?;
    let sum = |of: &dyn Fn(&Optimized) -> u64| optimized.iter().map(of).sum();
    Ok(Row {
        kernel: kernel.name.clone(),
        off,
        on,
        versions: sum(&|o| o.versions.len() as u64),
        given_up: sum(&|o| o.versions.iter().map(|v| v.given_up).sum()),
        failures: sum(&|o| o.versions.iter().map(|v| v.failures).sum()),
        cost: sum(&|o| if o.options.who == Who::Host { o.host_cycles } else { o.slots }),
    })
}

/// Runs everything.
pub fn measure(
    directory: &Path,
    config: &Config,
    choice: &Choice,
    threads: usize,
    mut show: impl FnMut(&Row),
) -> Result<Measured, String> {
    let options = choice.options;
    let (list, expected) = kernels::load(directory)?;
    let wanted = |k: &&Kernel| choice.filter.as_ref().is_none_or(|f| k.name.contains(f.as_str()));
    let list: Vec<&Kernel> = list.iter().filter(wanted).collect();
    let mut rows = Vec::new();
    for kernel in &list {
        let row = row(kernel, &expected, config, options, threads, None)?;
        show(&row);
        rows.push(row);
    }
    let mut others = Vec::new();
    let mut other = |name: String, config: &Config, options: Options| -> Result<(), String> {
        let found: Result<Vec<Row>, String> = list
            .iter()
            .zip(&rows)
            .map(|(k, r)| row(k, &expected, config, options, threads, Some(r.off)))
            .collect();
        others.push((name, mean(&found?)));
        Ok(())
    };
    if !choice.short && choice.filter.is_none() {
        for level in Level::ALL.into_iter().filter(|&l| l != options.level) {
            let name = format!("level {}, by {}", level.name(), options.who.name());
            other(name, config, Options { level, ..options })?;
        }
        for who in Who::ALL.into_iter().filter(|&w| w != options.who) {
            let name = format!("level {}, by {}", options.level.name(), who.name());
            other(name, config, Options { who, ..options })?;
        }
        let mut inserted = config.clone();
        inserted.optimizer.profiling = Profiling::Instructions;
        let name = format!(
            "level {}, by {}, profiles by inserted instructions",
            options.level.name(),
            options.who.name()
        );
        other(name, &inserted, options)?;
    }
    Ok(Measured { machine: config.name.clone(), options, rows, others })
}

/// The page.
pub fn page(measured: &Measured) -> String {
    let thousands = driver::trace::metric::thousands;
    let mut out = include_str!("head.md").to_owned();
    let _ = writeln!(
        out,
        "On the {} machine, level {}, optimized by the {}; the caches are empty when a kernel begins. Cycles include what optimizing \
         costs; results are those of the GPU.\n",
        measured.machine,
        measured.options.level.name(),
        measured.options.who.name()
    );
    out += "| kernel | cycles off | on | ratio | versions | given up | checks failed | cost |\n";
    out += "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
    for r in &measured.rows {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {:.3} | {} | {} | {} | {} |",
            r.kernel,
            thousands(r.off),
            thousands(r.on),
            r.ratio(),
            thousands(r.versions),
            thousands(r.given_up),
            thousands(r.failures),
            thousands(r.cost),
        );
    }
    let _ = writeln!(out, "| geometric mean | | | {:.3} | | | | |\n", measured.mean());
    out += "Cost: cycles for which the host worked beside the machine, or issue slots that warps took.\n";
    if !measured.others.is_empty() {
        out += "\n## Other choices\nThe geometric mean over the same kernels.\n\n| choice | ratio |\n| --- | ---: |\n";
        for (name, ratio) in &measured.others {
            let _ = writeln!(out, "| {name} | {ratio:.3} |");
        }
    }
    out
}
