//! Commands of the tool that need the timed machine: `kernels`, `counters`, `stalls`, `micro`, `bench --timed`, `docs`,
//! `scheduling`.

use conformance::kernels::{self, Kernel, Outcome};
use conformance::{beside_bench, watch_bench};
use conformance::{
    counters, docs, micro, optimizer, preemption, profile, scheduling, stalls, timed, timed_bench, timing,
};
use machine::Config;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The machine that timed commands run on.
#[derive(clap::Args, Clone)]
pub struct Machine {
    /// The machine: a preset, or a file that ends in .toml.
    #[arg(long, default_value = "h200")]
    pub config: String,
    /// Host threads for a launch; 0: launches side by side where they are timed, one thread each, else all for one launch.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
}

impl Machine {
    pub fn load(&self) -> Result<Config, String> {
        if !self.config.ends_with(".toml") {
            return Config::preset(&self.config).map_err(|e| e.to_string());
        }
        let text =
            std::fs::read_to_string(&self.config).map_err(|e| format!("cannot read {}: {e}", self.config))?;
        Config::read(&text).map_err(|e| format!("{}: {e}", self.config))
    }
}

/// Kernels of a directory.
#[derive(clap::Args, Clone)]
pub struct Selection {
    pub directory: PathBuf,
    /// Only kernels whose name contains this.
    #[arg(long)]
    pub filter: Option<String>,
    /// Only the kernel of this name.
    #[arg(long)]
    pub only: Option<String>,
    /// Print the outcome as JSON.
    #[arg(long)]
    pub json: bool,
}

impl Selection {
    pub fn load(&self) -> Result<(Vec<Kernel>, Value), String> {
        let (mut list, results) = kernels::load(&self.directory)?;
        list.retain(|k| self.filter.as_ref().is_none_or(|part| k.name.contains(part)));
        list.retain(|k| self.only.as_ref().is_none_or(|name| k.name == *name));
        if list.is_empty() {
            return Err(format!("no kernel of {} is meant", self.directory.display()));
        }
        Ok((list, results))
    }
}

/// Results and cycles of every kernel.
pub fn kernels(selection: &Selection, machine: Option<&Machine>, threads: usize) -> Result<bool, String> {
    let (list, expected) = selection.load()?;
    let config = machine.map(Machine::load).transpose()?;
    let (mut matching, mut not_built) = (0, 0);
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    if config.is_some() && !selection.json {
        println!("{:<10}{}", "results", timing::head());
    }
    let mut take = |kernel: &Kernel, outcome: Outcome, run: Option<timed::Run>| {
        matching += usize::from(outcome == Outcome::Match);
        not_built += usize::from(matches!(outcome, Outcome::NotBuilt(_)));
        let (word, why) = outcome.words();
        let row = run.and_then(|run| run.row(kernel, &expected));
        if selection.json {
            let mut line = json!({ "kernel": kernel.name, "outcome": word, "why": why });
            if let (Some(row), Some(table)) = (&row, line.as_object_mut()) {
                table.insert("timing".into(), row.json());
            }
            lines.push(line);
        } else {
            match &row {
                Some(row) => print!("{word:<10}{}", row.line()),
                None => print!("{:<24} {word}", kernel.name),
            }
            println!("{}{why}", if why.is_empty() { "" } else { ": " });
        }
        rows.extend(row);
    };
    match &config {
        Some(config) => timed::run_all(&list, &expected, config, threads, take),
        None => list.iter().for_each(|k| take(k, kernels::run(k, &expected, threads), None)),
    }
    let summary = timing::Summary::new(&rows);
    if selection.json {
        let timing = summary.as_ref().map(timing::Summary::json);
        println!(
            "{:#}",
            json!({ "match": matching, "not_built": not_built, "total": list.len(), "timing": timing, "kernels": lines })
        );
    } else {
        println!("kernels: {matching} of {} match, {not_built} not built", list.len());
        print!("{}", summary.map(|s| s.text()).unwrap_or_default());
    }
    Ok(matching == list.len())
}

/// Runs all that are meant and hands over what was measured; kernels that did not run are told of.
fn each(
    selection: &Selection,
    machine: &Machine,
    mut take: impl FnMut(&Kernel, &Value, timed::Run),
) -> Result<(), String> {
    let (list, expected) = selection.load()?;
    let config = machine.load()?;
    timed::run_all(&list, &expected, &config, machine.threads, |kernel, outcome, run| match run {
        Some(run) => take(kernel, &expected, run),
        None => {
            let (word, why) = outcome.words();
            eprintln!("{}: {word}: {}", kernel.name, why.lines().next().unwrap_or_default());
        }
    });
    Ok(())
}

pub fn counters(selection: &Selection, machine: &Machine) -> Result<bool, String> {
    let mut rows = Vec::new();
    each(selection, machine, |kernel, expected, run| rows.push(run.counters(kernel, expected)))?;
    match selection.json {
        true => println!("{:#}", json!(rows.iter().map(counters::Row::json).collect::<Vec<_>>())),
        false => print!("{}", counters::table(&rows)),
    }
    Ok(true)
}

/// Distances of our profiles to the GPU's samples.
pub fn profile(selection: &Selection, machine: &Machine) -> Result<bool, String> {
    let (list, expected) = selection.load()?;
    let config = machine.load()?;
    let mut rows = Vec::new();
    let mut matching = 0;
    if !selection.json {
        println!("{:<10}{}", "results", profile::head());
    }
    timed::sample_all(&list, &expected, &config, machine.threads, |kernel, outcome, run| {
        matching += usize::from(outcome == Outcome::Match);
        let row = run.and_then(|run| run.profile(kernel, &expected));
        let (word, why) = outcome.words();
        if !selection.json {
            match &row {
                Some(row) => print!("{word:<10}{}\n{}", row.line(), row.detail()),
                None => println!("{word:<10}{}{}{why}", kernel.name, if why.is_empty() { "" } else { ": " }),
            }
        }
        rows.extend(row);
    });
    let summary = profile::Summary::new(&rows);
    match selection.json {
        true => println!(
            "{:#}",
            json!({ "summary": summary.text(), "kernels": rows.iter().map(profile::Row::json).collect::<Vec<_>>() })
        ),
        false => println!("{}", summary.text()),
    }
    Ok(matching == list.len())
}

pub fn stalls(selection: &Selection, machine: &Machine) -> Result<bool, String> {
    let mut rows = Vec::new();
    each(selection, machine, |kernel, expected, run| rows.extend(run.stalls(kernel, expected)))?;
    match selection.json {
        true => println!("{:#}", json!(rows.iter().map(stalls::Row::json).collect::<Vec<_>>())),
        false => print!("{}", stalls::table(&rows)),
    }
    Ok(true)
}

/// Where a directory of the repository's test data is.
fn test_data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

pub fn micro(
    directory: Option<PathBuf>,
    filter: Option<&str>,
    machine: &Machine,
    json: bool,
) -> Result<bool, String> {
    let groups = micro::load(&directory.unwrap_or_else(|| test_data("micro")))?;
    let config = machine.load()?;
    let mut outcomes = Vec::new();
    if !json {
        println!("{}", micro::head());
    }
    for group in &groups {
        let rows = micro::bench::run(group, &config, filter)?;
        if !json {
            rows.iter().for_each(|o| println!("{}", o.line()));
        }
        outcomes.extend(rows);
    }
    match json {
        true => println!("{:#}", json!(outcomes.iter().map(micro::Outcome::json).collect::<Vec<_>>())),
        false => print!("{}", micro::summary(&outcomes)),
    }
    Ok(outcomes.iter().all(micro::Outcome::agrees))
}

/// Everything that is measured of the timed machine's speed.
pub fn measure_speed(
    directory: &Path,
    list: &[Kernel],
    results: &Value,
    config: &Config,
    repetitions: u32,
) -> Result<timed_bench::Report, String> {
    let mut report = timed_bench::Report::default();
    for kernel in list {
        report.rates.push(timed_bench::rate(kernel, results, config, repetitions)?);
    }
    let program = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    for kernel in list.iter().filter(|k| timed_bench::PARALLEL.contains(&k.name.as_str())) {
        let worker = || {
            let mut command = Command::new(&program);
            command.arg("seconds").arg(directory).args(["--only", &kernel.name, "--config", &config.name]);
            command.args(["--threads", "1", "--repetitions", &repetitions.to_string()]);
            command
        };
        report.parallel.push(timed_bench::parallel(kernel, config, repetitions, &worker)?);
    }
    if let Some(kernel) = list.iter().find(|k| k.name == timed_bench::ALONE) {
        let small = Config::preset("tiny").map_err(|e| e.to_string())?;
        report.alone.push(timed_bench::alone(kernel, config, &small, repetitions)?);
    }
    Ok(report)
}

/// What watching costs, of every kernel.
pub fn watch_bench(
    directory: &Path,
    config: String,
    filter: Option<&str>,
    repetitions: u32,
    json: bool,
) -> Result<bool, String> {
    let config = Machine { config, threads: 1 }.load()?;
    let (mut list, _) = kernels::load(directory)?;
    list.retain(|k| filter.is_none_or(|part| k.name.contains(part)));
    let mut report = watch_bench::Report::default();
    for kernel in &list {
        let line = report.add(kernel, &config, repetitions);
        if !json {
            println!("{line}");
        }
    }
    if report.rows.is_empty() {
        return Err(format!("no kernel of {} was measured", directory.display()));
    }
    match json {
        true => println!("{:#}", report.json()),
        false => println!("{}", report.together().line()),
    }
    Ok(report.is_met())
}

/// How fast this build is beside another, nothing being optimized while it runs.
pub fn beside_bench(
    directory: &Path,
    other: &Path,
    config: &str,
    filter: Option<&str>,
    repetitions: u32,
    json: bool,
) -> Result<bool, String> {
    let (mut list, _) = kernels::load(directory)?;
    list.retain(|k| timed_bench::TARGETS.iter().any(|(name, _)| *name == k.name));
    list.retain(|k| filter.is_none_or(|part| k.name.contains(part)));
    let program = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    let mut rows = Vec::new();
    for kernel in &list {
        let worker = |this: bool| {
            let mut command = Command::new(if this { &program } else { other });
            command.arg("seconds").arg(directory).args(["--only", &kernel.name, "--config", config]);
            command.args(["--threads", "1"]);
            command
        };
        let row = beside_bench::measure(&kernel.name, repetitions, &worker)?;
        if !json {
            println!("{}", row.line());
        }
        rows.push(row);
    }
    if json {
        println!("{:#}", json!(rows.iter().map(beside_bench::Row::json).collect::<Vec<_>>()));
    }
    Ok(!rows.is_empty() && rows.iter().all(beside_bench::Row::is_met))
}

/// Prints the seconds of a kernel's timed run: what a second process of the benchmark does.
pub fn seconds(selection: &Selection, machine: &Machine, repetitions: u32) -> Result<bool, String> {
    let (list, _) = selection.load()?;
    let config = machine.load()?;
    for kernel in &list {
        println!("{}", timed_bench::seconds(kernel, &config, machine.threads, repetitions)?);
    }
    Ok(true)
}

/// Writes `accuracy.md`, or `speed.md`, to the folder.
pub fn write_docs(folder: &Path, speed: bool, repetitions: u32, machine: &Machine) -> Result<bool, String> {
    // Before minutes of work, not behind them.
    if !folder.is_dir() {
        return Err(format!("there is no folder {}: make it, or name one that is there", folder.display()));
    }
    let config = machine.load()?;
    let (list, results) = kernels::load(&test_data("main"))?;
    let (name, text) = if speed {
        let (with_target, others): (Vec<Kernel>, Vec<Kernel>) =
            list.into_iter().partition(|k| timed_bench::TARGETS.iter().any(|(n, _)| *n == k.name));
        // First, because it tells the most memory that this program has taken so far.
        let report = measure_speed(&test_data("main"), &with_target, &results, &config, repetitions)?;
        let mut watched = watch_bench::Report::default();
        for kernel in with_target.iter().chain(&others) {
            println!("{}", watched.add(kernel, &config, repetitions));
        }
        ("speed.md", docs::speed(&report, &watched, &host()))
    } else {
        let measure = |title, name| {
            let (list, results) = kernels::load(&test_data(name))?;
            Ok::<_, String>(docs::measure(title, &list, &results, &config, machine.threads))
        };
        let sets = [
            measure("programs", "main")?,
            measure("programs that nothing was tuned for", "unseen")?,
            measure("one mechanism each", "sweep")?,
        ];
        let rows = micro::bench::run_all(&micro::load(&test_data("micro"))?, &config, None)?;
        ("accuracy.md", docs::accuracy(&sets, &rows))
    };
    let path = folder.join(name);
    std::fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    println!("{}", path.display());
    Ok(true)
}

/// Runs the optimizer's kernels and writes the page on it; whether it gains enough.
pub fn write_optimizer(
    directory: &Path,
    folder: &Path,
    choice: &optimizer::Choice,
    machine: &Machine,
) -> Result<bool, String> {
    let measured = optimizer::measure(directory, &machine.load()?, choice, machine.threads, |row| {
        println!("{}", row.line());
    })?;
    println!("{:.3} of the cycles, in the geometric mean", measured.mean());
    if choice.filter.is_none() {
        let path = folder.join("optimizer.md");
        std::fs::write(&path, optimizer::page(&measured))
            .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        println!("{} written", path.display());
    }
    Ok(measured.is_good())
}

/// Writes the page on scheduling; false when credits with grants do not win where they should.
pub fn write_scheduling(folder: &Path, threads: usize) -> Result<bool, String> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let measured = scheduling::measure(&examples, threads)?;
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        println!("{}", path.display());
        Ok::<(), String>(())
    };
    write("scheduling.md", scheduling::page(&measured))?;
    if let Some(first) = measured.first() {
        write("scheduling.svg", first.plot().svg())?;
    }
    Ok(scheduling::wins_on_tiles(&measured))
}

pub fn write_preemption(folder: &Path, machine: &Machine) -> Result<bool, String> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut configs = vec![Config::preset("tiny").map_err(|e| e.to_string())?, machine.load()?];
    configs.dedup();
    let measured = configs.iter().map(|config| preemption::measure(&examples, config, machine.threads));
    let measured: Vec<preemption::Measured> = measured.collect::<Result<_, _>>()?;
    let path = folder.join("preemption.md");
    std::fs::write(&path, preemption::page(&measured))
        .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    println!("{}", path.display());
    Ok(measured.iter().all(preemption::moves_local_memory_once))
}

/// The host in words: its processor, where the system tells.
fn host() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        text.lines().find_map(|l| l.strip_prefix("model name")?.split_once(": ")).map(|(_, name)| name);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}, {threads} threads", model.unwrap_or("an unknown processor"))
}
