//! `warploom optimize`: a launch file as it is and optimized while it runs, side by side, and why.

use crate::launching::{self, Launching};
use crate::optimizing;
use crate::show::thousands;
use crate::{End, show};
use driver::checkpoint::Done;
use driver::launch_file::LaunchFile;
use driver::machine::optimizing::{Level, Optimized, Options, Who};
use driver::run::Session;
use driver::{CompileOptions, Config, LaunchOptions, LaunchStats, Preempting, Problem, Timing};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Mutex;

#[derive(clap::Args)]
pub struct Arguments {
    /// The launch file (docs/launch-files.md describes it).
    #[arg(value_name = "LAUNCH.toml")]
    file: PathBuf,
    /// Show the code of each version beside the code that it replaces, and the profile behind it.
    #[arg(long, conflicts_with = "json")]
    explain: bool,
    /// The largest sets of threads that share optimized code.
    #[arg(long, value_name = "LEVEL", value_parser = optimizing::level(), default_value = "sm")]
    optimize: Level,
    /// Who optimizes: the host on request, the first warp at a barrier, or a helper warp of each SM.
    #[arg(long, value_name = "WHO", value_parser = optimizing::who(), default_value = "host")]
    optimizer: Who,
    /// Events of the log to show.
    #[arg(long, value_name = "N", default_value_t = 20)]
    events: usize,
    /// The machine that times the launches: a configuration's name (see `warploom config list`) or a file.
    #[arg(long, value_name = "NAME or FILE", default_value = "h200")]
    config: String,
    /// Empty the caches before each launch, as profilers do.
    #[arg(long)]
    cold: bool,
    /// Print everything as JSON.
    #[arg(long)]
    json: bool,
    /// Host threads; 0 for all there are. Results and cycles do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    #[command(flatten)]
    compile: crate::compile::Options,
}

/// Runs all launches; what they did, and the digests of the results.
fn execute(
    arguments: &Arguments,
    file: &LaunchFile,
    config: &Config,
    optimize: Option<Options>,
) -> Result<(Vec<LaunchStats>, Vec<String>), End> {
    let session = Session::new(file, &CompileOptions::from(arguments.compile))?;
    let printed = Mutex::new(Vec::new());
    let launching = Launching {
        threads: arguments.threads,
        max_instructions: None,
        cold: arguments.cold,
        config: Some(config),
        detail: false,
        optimize,
        closely: None,
        sampling: None,
        capture: None,
        // What kernels print is not what this command is for.
        json: true,
        printed: &printed,
        keeper: None,
        checkpoint: None,
    };
    let mut launches = Vec::new();
    if file.has_streams() {
        let timing = Timing { cold: arguments.cold, optimize, ..Timing::new(config) };
        let options = LaunchOptions {
            threads: arguments.threads,
            cancel: Some(launching::stop()),
            timing: Some(timing),
            ..LaunchOptions::default()
        };
        let all = session.run_streams(&options, &Preempting::default());
        launches = all.map_err(|e| launching.failed(file, e))?.launches;
    }
    let done = Done::default();
    for number in launches.len()..file.launches.len() {
        launches.push(launching.run(file, &session, number, &done)?.0);
    }
    let mut digests = Vec::new();
    for (number, _, _) in file.outputs() {
        let digest = session.digest(number).map_err(|e| Problem::new(e.to_string()))?;
        digests.push(digest.sha256);
    }
    Ok((launches, digests))
}

pub fn run(arguments: &Arguments) -> Result<(), End> {
    let file = LaunchFile::load(&arguments.file)?;
    let config = driver::config::load(&arguments.config)?;
    launching::stop_on_ctrl_c();
    let options = Options::new(arguments.optimize, arguments.optimizer);
    let (before, expected) = execute(arguments, &file, &config, None)?;
    let (after, found) = execute(arguments, &file, &config, Some(options))?;
    let mut rows = Vec::new();
    for (spec, (old, new)) in file.launches.iter().zip(before.iter().zip(&after)) {
        let cycles = |s: &LaunchStats| s.report.as_ref().map_or(0, |r| r.cycles);
        let (old, own) = (cycles(old), cycles(new));
        let percent = 100.0 * (own as f64 / old.max(1) as f64 - 1.0);
        if !arguments.json {
            println!(
                "{}: {} cycles, optimized {} ({percent:+.1} %)",
                spec.entry,
                thousands(old),
                thousands(own)
            );
        }
        if let Some(optimized) = &new.optimized {
            rows.push(json!({ "entry": spec.entry, "cycles": old, "cycles_optimized": own, "optimized": optimized }));
            if !arguments.json {
                print!("{}{}", optimizing::text(optimized), optimizing::log(optimized, arguments.events));
            }
            if arguments.explain {
                print!("{}", explain(optimized));
            }
        }
    }
    if arguments.json {
        println!("{:#}", json!({ &file.name: rows }));
    }
    if expected != found {
        eprintln!("the results differ: the program has a race, or the optimizer is wrong");
        return Err(End::Bad);
    }
    Ok(())
}

/// The code before and after, with what was seen of it.
fn explain(optimized: &Optimized) -> String {
    let mut out = String::new();
    for v in &optimized.versions {
        let block = &optimized.blocks[v.block as usize];
        out += &format!(
            "\nversion {} of block {}: {} cycles instead of {}\n",
            v.version,
            v.block,
            show::thousands(v.cycles),
            show::thousands(block.cycles)
        );
        out += &optimized.explain(v.version);
    }
    out
}
