//! `warploom profile`: where the time of every warp went, line by line, in the terminal and in files for other tools.

use crate::launching::{self, Launching};
use crate::resume::{Command, Keeping};
use crate::{End, render, sampling};
use driver::launch_file::LaunchFile;
use driver::machine::sm::trace_cell::Drain;
use driver::run::Session;
use driver::{
    Capture, Checkpoint, CompileOptions, Config, LaunchOptions, LaunchStats, Problem, Problems, Sampled,
    Timing, files,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use trace::export::text::Style;
use trace::export::{csv, flamegraph, html, json as json_form, perfetto, pprof, text};
use trace::{Profile, compare, file};

#[derive(clap::Args, Clone, Serialize, Deserialize)]
pub struct Arguments {
    /// The launch file (docs/launch-files.md describes it), or a trace that --trace wrote.
    #[arg(value_name = "LAUNCH.toml or TRACE")]
    file: PathBuf,
    /// Write a web page with everything: one file that needs no network.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write timelines of SMs, warps and memory, for ui.perfetto.dev; of launches that run at once also when each ran, and which
    /// CTAs made room for others.
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    /// SMs of which timelines have the states of single warps: numbers and ranges, such as 0-3,7; the first SM where it is
    /// left out.
    #[arg(long, value_name = "LIST")]
    warps: Option<String>,
    /// Write a profile for pprof.
    #[arg(long, value_name = "FILE")]
    pprof: Option<PathBuf>,
    /// Write a flame graph.
    #[arg(long, value_name = "FILE.svg")]
    flamegraph: Option<PathBuf>,
    /// Write a trace: what this command can show and compare later.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print a table with a row an instruction.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print everything as JSON.
    #[arg(long)]
    json: bool,
    /// Compare with an earlier trace: what got better, what got worse.
    #[arg(long, value_name = "TRACE")]
    compare: Option<PathBuf>,
    /// The launch, counted from 1, that is meant where a form holds only one; the longest where it is left out.
    #[arg(long, value_name = "N")]
    launch: Option<usize>,
    /// Lines to show in the terminal.
    #[arg(long, value_name = "N", default_value_t = 12)]
    lines: usize,
    /// A folder with source files, besides the program's own; can be given several times.
    #[arg(long, value_name = "DIR")]
    source: Vec<PathBuf>,
    /// The machine that times the launches: a configuration's name (see `warploom config list`) or a file.
    #[arg(long, value_name = "NAME or FILE", default_value = "h200")]
    config: String,
    /// Empty the caches before each launch, as profilers do. Otherwise they hold what copies and launches left.
    #[arg(long)]
    cold: bool,
    /// Host threads; 0 for all there are. Profiles do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// End a launch that has executed this many warp instructions.
    #[arg(long, value_name = "N")]
    max_instructions: Option<u64>,
    #[command(flatten)]
    streams: crate::streams::Options,
    #[command(flatten)]
    optimizing: crate::optimizing::Arguments,
    #[command(flatten)]
    sampling: sampling::Options,
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
    let bytes = files::read(&arguments.file, files::MAX_PROGRAM)?;
    arguments.keeping.check(false)?;
    if file::is_trace(&bytes) {
        let (profiles, before) = (read_trace(&arguments.file)?, earlier_profiles(arguments)?);
        write_files(arguments, &profiles, &before, &[], None)?;
        print(arguments, &profiles, &before);
        return Ok(());
    }
    let file = LaunchFile::load(&arguments.file)?;
    let config = driver::config::load(&arguments.config)?;
    let session = Session::new(&file, &CompileOptions::from(arguments.compile))?;
    measure(arguments, &file, &session, &config, None)
}

/// Goes on from a checkpoint.
pub fn go_on(arguments: &Arguments, checkpoint: &Checkpoint) -> Result<(), End> {
    let session = Session::reopen(checkpoint)?;
    measure(arguments, checkpoint.file(), &session, checkpoint.config(), Some(checkpoint))
}

/// What to compare with.
fn earlier_profiles(arguments: &Arguments) -> Result<Vec<Profile>, Problems> {
    Ok(arguments.compare.as_deref().map(read_trace).transpose()?.unwrap_or_default())
}

/// The profiles of a trace file.
fn read_trace(path: &Path) -> Result<Vec<Profile>, Problems> {
    let bytes = files::read(path, files::MAX_PROGRAM)?;
    let launches = file::read(&bytes).map_err(|e| {
        Problem::new(format!("{}: {e}", path.display()))
            .help("give a file that `warploom profile --trace` wrote")
    })?;
    Ok(launches.into_iter().map(|l| l.profile).collect())
}

/// Runs the launches of a file, or those that are left, and shows what they did.
fn measure(
    arguments: &Arguments,
    file: &LaunchFile,
    session: &Session<'_>,
    config: &Config,
    checkpoint: Option<&Checkpoint>,
) -> Result<(), End> {
    let before = earlier_profiles(arguments)?;
    launching::stop_on_ctrl_c();
    let sampling = arguments.sampling.sampling()?;
    let at_once = arguments.streams.wants_streams(file);
    if at_once && sampling.is_some() {
        return Err(Problem::new("samples are taken of launches that run one after the other")
            .help("leave out --sample, or streams and what makes CTAs take turns")
            .into());
    }
    let memory = |e: driver::MemoryError| Problem::new(e.to_string());
    let capture = match &sampling {
        Some(_) => {
            // Replays begin where the run began.
            if checkpoint.is_some() {
                session.fill().map_err(memory)?;
            }
            Some(RefCell::new(Capture::begin(session.device()).map_err(memory)?))
        }
        None => None,
    };
    // Samples that slow the program down are taken in a run of their own.
    let first = sampling.as_ref().filter(|s| s.settings.drain != Drain::LoadStore);
    let closely = arguments.warps.as_deref().map(|text| sampling::sms("--warps", text)).transpose()?;
    let timing = Timing {
        cold: arguments.cold,
        detail: true,
        closely: closely.as_deref(),
        sampling: first,
        ..Timing::new(config)
    };
    let mut done = checkpoint.map(|c| c.done().clone()).unwrap_or_default();
    if let Some(checkpoint) = checkpoint {
        session.adopt(checkpoint)?;
    }
    for (number, capture) in (0..done.finished.len()).zip(capture.iter().cycle()) {
        let noted = session.note_captured(&mut capture.borrow_mut(), number);
        noted.map_err(|e| Problem::new(e.to_string()))?;
    }
    let command = || Command::Profile(Box::new(arguments.clone()));
    let keeper = arguments.keeping.keeper(session, &timing, command)?;
    let printed = Mutex::new(done.printed.clone());
    let launching = Launching {
        threads: arguments.threads,
        max_instructions: arguments.max_instructions,
        cold: arguments.cold,
        config: Some(config),
        detail: true,
        closely: closely.as_deref(),
        optimize: arguments.optimizing.options(),
        sampling: first,
        capture: capture.as_ref(),
        json: arguments.json || arguments.csv,
        printed: &printed,
        keeper: keeper.as_ref(),
        checkpoint,
    };
    let mut tasks = None;
    if at_once {
        let (launches, summary) = arguments.streams.run(&launching, file, session)?;
        done.finished = launches;
        tasks = Some(summary);
    }
    for number in done.finished.len()..file.launches.len() {
        done.finished.push(launching.run(file, session, number, &done)?);
        if let Ok(printed) = printed.lock() {
            done.printed.clone_from(&printed);
        }
    }
    let launches: Vec<LaunchStats> = done.finished.into_iter().map(|(stats, _)| stats).collect();
    let mut records = Vec::new();
    let mut profiles: Vec<Profile> = launches
        .iter()
        .enumerate()
        .filter_map(|(n, stats)| session.profile(n, config, stats, &arguments.source))
        .collect();
    if let (Some(sampling), Some(capture)) = (&sampling, &capture) {
        let options = LaunchOptions {
            threads: arguments.threads,
            cancel: Some(launching::stop()),
            timing: Some(Timing { cold: arguments.cold, ..Timing::new(config) }),
            ..LaunchOptions::default()
        };
        let found = arguments.sampling.collect(sampling, &capture.borrow(), &launches, &options)?;
        for (p, (n, (runs, extra))) in profiles.iter_mut().zip(found.into_iter().enumerate()) {
            let instructions = session.module(n).map_or(0, |m| m.image().code.len());
            p.samples = Some(driver::profile::samples(sampling::words(sampling), instructions, &runs, extra));
            records.push(runs);
        }
    }
    write_files(
        arguments,
        &profiles,
        &before,
        &records,
        tasks.as_ref().map(|t| t.tasks(&config.name)).as_ref(),
    )?;
    print(arguments, &profiles, &before);
    if let Some(tasks) = tasks.filter(|_| !arguments.json && !arguments.csv) {
        print!("\n{}", tasks.text());
    }
    Ok(())
}

/// The earlier profile of the same kernel: the one at the same place, else the first of that name.
fn earlier<'p>(before: &'p [Profile], number: usize, profile: &Profile) -> Option<&'p Profile> {
    let same = |p: &&Profile| p.kernel == profile.kernel;
    before.get(number).filter(same).or_else(|| before.iter().find(same))
}

/// The launch that forms for one launch show.
fn chosen<'p>(arguments: &Arguments, profiles: &'p [Profile]) -> Result<&'p Profile, Problems> {
    let found = match arguments.launch {
        Some(n) => n.checked_sub(1).and_then(|n| profiles.get(n)),
        None => profiles.iter().rev().max_by_key(|p| p.cycles),
    };
    found.ok_or_else(|| {
        Problem::new(format!("there is no launch {}", arguments.launch.unwrap_or(1)))
            .help(format!("the launches are 1 to {}", profiles.len()))
            .into()
    })
}

fn write_files(
    arguments: &Arguments,
    profiles: &[Profile],
    before: &[Profile],
    records: &[Vec<Sampled>],
    tasks: Option<&perfetto::Tasks>,
) -> Result<(), Problems> {
    let quiet = arguments.json || arguments.csv;
    let put = |path: &Path, bytes: &[u8], what: &str| -> Result<(), Problems> {
        files::write(path, |to| to.write_all(bytes))?;
        if !quiet {
            println!("{what} written to {}", path.display());
        }
        Ok(())
    };
    let one = chosen(arguments, profiles)?;
    if let Some(path) = &arguments.html {
        let list: Vec<(&Profile, Option<&Profile>)> =
            profiles.iter().enumerate().map(|(n, p)| (p, earlier(before, n, p))).collect();
        let name = arguments.file.file_stem().unwrap_or_default().to_string_lossy();
        put(path, html::page(&format!("{name} - Warploom profile"), &list).as_bytes(), "page")?;
    }
    if let Some(path) = &arguments.perfetto {
        put(path, &perfetto::trace(one, tasks), "Perfetto timelines")?;
    }
    if let Some(path) = &arguments.pprof {
        put(path, &pprof::file(one), "pprof profile")?;
    }
    if let Some(path) = &arguments.flamegraph {
        put(path, flamegraph::svg(one).as_bytes(), "flame graph")?;
    }
    if let Some(path) = &arguments.trace {
        let mut recorder = file::Recorder::new();
        for (n, p) in profiles.iter().enumerate() {
            recorder.profile(p).map_err(|e| Problem::new(e.to_string()))?;
            records.get(n).into_iter().flatten().for_each(|r| recorder.records(r.form, &r.bytes));
        }
        put(path, &recorder.finish(), "trace")?;
    }
    Ok(())
}

fn print(arguments: &Arguments, profiles: &[Profile], before: &[Profile]) {
    if arguments.csv {
        let mut tables = profiles.iter().map(csv::table);
        print!("{}", tables.next().unwrap_or_default());
        // One heading for all.
        tables.for_each(|t| print!("{}", t.split_once('\n').map_or("", |(_, rows)| rows)));
        return;
    }
    if arguments.json {
        println!("{:#}", json!(profiles.iter().map(json_form::value).collect::<Vec<_>>()));
        return;
    }
    let style = Style { width: render::width(), colour: render::colour_output(), lines: arguments.lines };
    for (n, p) in profiles.iter().enumerate() {
        if n > 0 {
            println!();
        }
        print!("{}", text::view(p, style));
        if let Some(old) = earlier(before, n, p) {
            print!("\n{}", text::comparison(&compare::compare(old, p), style));
        }
    }
}
