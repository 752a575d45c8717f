//! `warploom run`: a launch file's kernels, their results, and how long they took on the machine.

use crate::check::Expected;
use crate::launching::{self, Launching};
use crate::resume::{Command, Keeping};
use crate::streams::Summary;
use crate::{End, report, show};
use driver::launch_file::LaunchFile;
use driver::run::Session;
use driver::{Checkpoint, CompileOptions, Config, LaunchStats, Problem, Problems, Timing, files, npy};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

#[derive(clap::Args, Clone, Serialize, Deserialize)]
pub struct Arguments {
    /// The launch file (docs/launch-files.md describes it).
    #[arg(value_name = "LAUNCH.toml")]
    file: PathBuf,
    /// Write every result to NAME.npy in this folder, and files that the launch file names too.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Compare the results with a JSON table of digests or a folder of .npy files.
    #[arg(long, value_name = "FILE or DIR")]
    check: Option<PathBuf>,
    /// Print results as JSON, which --check can read.
    #[arg(long)]
    json: bool,
    /// The machine that times the launches: a configuration's name (see `warploom config list`) or a file.
    #[arg(long, value_name = "NAME or FILE", default_value = "h200", conflicts_with = "functional")]
    config: String,
    /// How the machine's schedulers order warps, instead of what the configuration says: lrr, gto, youngest, two-level,
    /// oldest, credit or window; with +grants at the end, cache accesses wait for grants (compile with --phases loads).
    #[arg(long, value_name = "POLICY", conflicts_with = "functional")]
    scheduler: Option<String>,
    /// Skip timing: only the results, many times faster.
    #[arg(long, conflicts_with_all = ["preemption", "time_slice", "stop_at", "timeline"])]
    functional: bool,
    /// Empty the caches before each launch, as profilers do. Otherwise they hold what copies and launches left.
    #[arg(long, conflicts_with = "functional")]
    cold: bool,
    /// Host threads; 0 for all there are. Results and cycles do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// End a launch that has executed this many warp instructions.
    #[arg(long, value_name = "N")]
    max_instructions: Option<u64>,
    #[command(flatten)]
    optimizing: crate::optimizing::Arguments,
    #[command(flatten)]
    streams: crate::streams::Options,
    #[command(flatten)]
    keeping: Keeping,
    #[command(flatten)]
    compile: crate::compile::Options,
}

impl Arguments {
    /// The run goes on: from this file, and maybe with other host threads.
    pub fn set_resumed(&mut self, file: PathBuf, threads: Option<usize>) {
        self.keeping.set_file(file);
        self.threads = threads.unwrap_or(self.threads);
    }
}

pub fn run(arguments: &Arguments) -> Result<(), End> {
    let file = LaunchFile::load(&arguments.file)?;
    let mut config = if arguments.functional { None } else { Some(driver::config::load(&arguments.config)?) };
    if let (Some(config), Some(name)) = (&mut config, &arguments.scheduler) {
        driver::config::set_scheduler(config, name)?;
    }
    arguments.keeping.check(arguments.functional)?;
    arguments.optimizing.check(arguments.functional)?;
    let session = Session::new(&file, &CompileOptions::from(arguments.compile))?;
    execute(arguments, &file, &session, config.as_ref(), None)
}

/// Goes on from a checkpoint.
pub fn go_on(arguments: &Arguments, checkpoint: &Checkpoint) -> Result<(), End> {
    let session = Session::reopen(checkpoint)?;
    session.adopt(checkpoint)?;
    execute(arguments, checkpoint.file(), &session, Some(checkpoint.config()), Some(checkpoint))
}

fn execute(
    arguments: &Arguments,
    file: &LaunchFile,
    session: &Session<'_>,
    config: Option<&Config>,
    checkpoint: Option<&Checkpoint>,
) -> Result<(), End> {
    let expected = arguments.check.as_ref().map(|path| Expected::load(path, file)).transpose()?;
    if let Some(folder) = &arguments.out {
        std::fs::create_dir_all(folder).map_err(|e| {
            Problem::new(format!("cannot make the folder {}: {e}", folder.display()))
                .help("choose a place you can write to")
        })?;
    }
    let command = || Command::Run(Box::new(arguments.clone()));
    let keeper = config
        .map(|config| Timing { cold: arguments.cold, ..Timing::new(config) })
        .and_then(|timing| arguments.keeping.keeper(session, &timing, command).transpose())
        .transpose()?;
    launching::stop_on_ctrl_c();
    let mut done = checkpoint.map(|c| c.done().clone()).unwrap_or_default();
    let printed = Mutex::new(done.printed.clone());
    let launched = Launching {
        threads: arguments.threads,
        max_instructions: arguments.max_instructions,
        cold: arguments.cold,
        config,
        detail: false,
        closely: None,
        optimize: arguments.optimizing.options(),
        sampling: None,
        capture: None,
        json: arguments.json,
        printed: &printed,
        keeper: keeper.as_ref(),
        checkpoint,
    };
    if arguments.streams.wants_streams(file) {
        let (launches, summary) = arguments.streams.run(&launched, file, session)?;
        return finish(arguments, file, session, expected.as_ref(), (&launches, Some(&summary)), &printed);
    }
    for number in done.finished.len()..file.launches.len() {
        done.finished.push(launched.run(file, session, number, &done)?);
        if let Ok(printed) = printed.lock() {
            done.printed.clone_from(&printed);
        }
    }
    finish(arguments, file, session, expected.as_ref(), (&done.finished, None), &printed)
}

fn finish(
    arguments: &Arguments,
    file: &LaunchFile,
    session: &Session<'_>,
    expected: Option<&Expected>,
    (launches, summary): (&[(LaunchStats, f64)], Option<&Summary>),
    printed: &Mutex<Vec<u8>>,
) -> Result<(), End> {
    let mut rows: Vec<Value> = Vec::new();
    let mut text = String::new();
    let mut differs = false;
    for (position, (number, buffer, output)) in file.outputs().enumerate() {
        let digest = session.digest(number).map_err(|e| Problem::new(e.to_string()))?;
        text += &show::summary(&buffer.name, buffer.element, &digest);
        let mut row = show::json(&buffer.name, buffer.element, &digest);
        if let Some(expected) = expected {
            let difference = expected.difference(position, number, buffer, &digest.sha256, session)?;
            text += &match &difference {
                Some(how) => format!("  differs: {how}\n"),
                None => "  as expected\n".to_owned(),
            };
            row["matches"] = difference.is_none().into();
            differs |= difference.is_some();
        }
        for path in write_output(arguments.out.as_deref(), session, number, &buffer.name, output)? {
            text += &format!("  written to {}\n", path.display());
        }
        rows.push(row);
    }
    let mut launch_rows: Vec<Value> = Vec::new();
    for (spec, (stats, seconds)) in file.launches.iter().zip(launches) {
        text += &format!(
            "{}: {}{} CTAs, {} warp instructions, simulated in {:.3} s\n",
            spec.entry,
            stats.report.as_ref().map(|r| report::headline(r)).unwrap_or_default(),
            show::thousands(stats.ctas),
            show::thousands(stats.warp_instructions),
            seconds
        );
        let mut row = json!({
            "entry": spec.entry, "ctas": stats.ctas, "warp_instructions": stats.warp_instructions,
            "thread_instructions": stats.thread_instructions, "seconds": seconds,
        });
        if let Some(report) = &stats.report {
            text += &report::text(report);
            row["timing"] = serde_json::to_value(report).unwrap_or_default();
        }
        if let Some(optimized) = &stats.optimized {
            text += &crate::optimizing::text(optimized);
            row["optimized"] = serde_json::to_value(optimized).unwrap_or_default();
        }
        launch_rows.push(row);
    }
    text += &summary.map(Summary::text).unwrap_or_default();
    if arguments.json {
        let mut row = json!({ "outputs": rows, "launches": launch_rows });
        if let Some(all) = summary.and_then(Summary::json) {
            row["timeline"] = all;
        }
        if let Ok(printed) = printed.lock()
            && !printed.is_empty()
        {
            row["printed"] = String::from_utf8_lossy(&printed).into();
        }
        println!("{:#}", json!({ &file.name: row }));
    } else {
        print!("{text}");
    }
    if differs { Err(End::Bad) } else { Ok(()) }
}

/// Writes what `--out` and the launch file ask for; the files written.
fn write_output(
    folder: Option<&Path>,
    session: &Session<'_>,
    number: usize,
    name: &str,
    output: &driver::launch_file::Output,
) -> Result<Vec<PathBuf>, Problems> {
    let mut written = Vec::new();
    let memory = |e: &dyn std::fmt::Display| Problem::new(e.to_string());
    let mut arrays = Vec::new();
    arrays.extend(folder.map(|f| f.join(format!("{name}.npy"))));
    arrays.extend(output.npy.as_ref().map(|file| folder.unwrap_or(Path::new("")).join(file)));
    arrays.dedup();
    if arrays.is_empty() && output.png.is_none() {
        return Ok(written);
    }
    let (element, bytes) = session.contents(number).map_err(|e| memory(&e))?;
    for path in arrays {
        files::write(&path, |to| npy::write(to, element, &bytes))?;
        written.push(path);
    }
    if let Some((file, picture)) = &output.png {
        let path = folder.unwrap_or(Path::new("")).join(file);
        files::write(&path, |to| picture.write(element, &bytes, to))?;
        written.push(path);
    }
    Ok(written)
}
