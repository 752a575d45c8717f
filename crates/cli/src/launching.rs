//! Running a launch of a file for a command: with a progress bar, and until somebody wants it to end.

use crate::{End, render, show};
use driver::checkpoint::Done;
use driver::launch_file::LaunchFile;
use driver::machine::optimizing;
use driver::machine::ppu::{Checkpoints, Moment};
use driver::run::{RunError, Session};
use driver::{
    Capture, Checkpoint, Config, Keeper, LaunchError, LaunchOptions, LaunchStats, Sampling, Timing,
};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Set by Ctrl-C.
static STOP: AtomicBool = AtomicBool::new(false);

/// Whether somebody wants launches to end.
pub fn stop() -> &'static AtomicBool {
    &STOP
}

/// Lets Ctrl-C end launches; a second one ends the command.
pub fn stop_on_ctrl_c() {
    // Without a handler, Ctrl-C ends the command at once, which is no worse.
    let _ = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
}

/// How launches of a file are run.
pub struct Launching<'a> {
    /// Host threads; 0 for all there are.
    pub threads: usize,
    pub max_instructions: Option<u64>,
    /// Empties the caches before the launch.
    pub cold: bool,
    /// The machine that times it, if any.
    pub config: Option<&'a Config>,
    /// Collects what a profile shows.
    pub detail: bool,
    /// SMs of which it has the states of single warps.
    pub closely: Option<&'a [u32]>,
    /// Optimizes the code while it runs.
    pub optimize: Option<optimizing::Options>,
    /// Lets trace cells collect samples.
    pub sampling: Option<&'a Sampling>,
    /// Keeps the calls, for a replay.
    pub capture: Option<&'a RefCell<Capture<'a>>>,
    /// What the kernel prints goes to `printed`, not to the terminal.
    pub json: bool,
    pub printed: &'a Mutex<Vec<u8>>,
    /// Writes checkpoints, if anybody does.
    pub keeper: Option<&'a Keeper<'a>>,
    /// The one that the run goes on from, if any.
    pub checkpoint: Option<&'a Checkpoint>,
}

impl<'a> Launching<'a> {
    /// Runs one launch, or what is left of it, with a progress bar; what it did and the seconds it took.
    pub fn run(
        &self,
        file: &LaunchFile,
        session: &'a Session<'_>,
        number: usize,
        done: &Done,
    ) -> Result<(LaunchStats, f64), End> {
        let spec = &file.launches[number];
        let progress = Progress {
            entry: &spec.entry,
            ctas: spec.grid.iter().map(|&n| u64::from(n)).product(),
            done: AtomicU64::new(0),
            cycles: self.config.map(|_| AtomicU64::new(0)),
        };
        let bar = Mutex::new(None::<ProgressBar>);
        let (json, printed) = (self.json, self.printed);
        let print = |bytes: &[u8]| {
            if json {
                if let Ok(mut printed) = printed.lock() {
                    printed.extend_from_slice(bytes);
                }
                return;
            }
            let write = || {
                // A closed pipe is no reason to fail the launch.
                let _ = std::io::stdout().write_all(bytes);
            };
            match bar.lock().ok().as_deref() {
                Some(Some(bar)) => bar.suspend(write),
                _ => write(),
            }
        };
        let resumed = self.checkpoint.filter(|c| c.done().finished.len() == number);
        let before = resumed.map_or(0.0, Checkpoint::seconds);
        let start = Instant::now();
        let keeper = self.keeper;
        let keep = |moment: &Moment<'_>| match keeper {
            Some(k) => k.save(session.device(), done, before + start.elapsed().as_secs_f64(), moment),
            None => Ok(()),
        };
        let options = LaunchOptions {
            threads: self.threads,
            max_instructions: self.max_instructions,
            cancel: Some(&STOP),
            done: Some(&progress.done),
            print: Some(&print),
            vectors: None,
            workspace: 0,
            timing: self.config.map(|config| Timing {
                cold: self.cold,
                detail: self.detail,
                closely: self.closely,
                sampling: self.sampling,
                optimize: self.optimize,
                cycles: progress.cycles.as_ref(),
                checkpoints: self.keeper.map(|k| Checkpoints { every: k.every(), keep: &keep }),
                resume: resumed.map(Checkpoint::machine),
                ..Timing::new(config)
            }),
        };
        let finished = (Mutex::new(false), std::sync::Condvar::new());
        let outcome = std::thread::scope(|scope| {
            if std::io::stderr().is_terminal() {
                scope.spawn(|| progress.show(&finished, &bar));
            }
            let outcome = match self.capture {
                Some(capture) => session.launch_captured(&mut capture.borrow_mut(), number, &options),
                None => session.launch(number, &options),
            };
            if let Ok(mut flag) = finished.0.lock() {
                *flag = true;
            }
            finished.1.notify_all();
            outcome
        });
        let seconds = before + start.elapsed().as_secs_f64();
        let _ = std::io::stdout().flush();
        match outcome {
            Ok(stats) => Ok((stats, seconds)),
            Err(error) => Err(self.failed(file, error)),
        }
    }

    /// Tells why launches did not come to their end.
    pub fn failed(&self, file: &LaunchFile, error: RunError) -> End {
        let (error, program) = match error {
            RunError::Input(problems) => return End::Input(problems),
            RunError::Launch { error, program } => (error, program),
        };
        eprint!("{}", render::launch_error(&error, &program, render::colour()));
        if let (LaunchError::Cancelled { .. }, Some(keeper)) = (&error, self.keeper)
            && keeper.path().exists()
        {
            let path = keeper.path().display();
            eprintln!("  help: `warploom resume {path}` goes on from the last checkpoint");
        }
        if self.json {
            println!("{:#}", json!({ &file.name: { "error": error.to_string() } }));
        }
        End::Bad
    }
}

/// Launches shorter than this show no progress.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// How far a launch is.
struct Progress<'a> {
    entry: &'a str,
    ctas: u64,
    done: AtomicU64,
    /// Simulated cycles, where it is timed.
    cycles: Option<AtomicU64>,
}

impl Progress<'_> {
    /// Shows a bar if the launch takes long, until it is finished.
    fn show(&self, finished: &(Mutex<bool>, std::sync::Condvar), bar: &Mutex<Option<ProgressBar>>) {
        let start = Instant::now();
        let mut wait = FIRST_WAIT;
        let Ok(mut flag) = finished.0.lock() else { return };
        loop {
            let Ok((next, _)) = finished.1.wait_timeout(flag, wait) else { return };
            flag = next;
            let Ok(mut bar) = bar.lock() else { return };
            if *flag {
                if let Some(bar) = bar.take() {
                    bar.finish_and_clear();
                }
                return;
            }
            wait = Duration::from_millis(200);
            let shown = bar.get_or_insert_with(|| {
                let style =
                    ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len} CTAs, {msg}{elapsed}")
                        .unwrap_or_else(|_| ProgressStyle::default_bar());
                let bar = ProgressBar::new(self.ctas).with_style(style).with_elapsed(FIRST_WAIT);
                bar.with_prefix(self.entry.to_owned())
            });
            shown.set_position(self.done.load(Ordering::Relaxed));
            if let Some(cycles) = &self.cycles {
                let cycles = cycles.load(Ordering::Relaxed);
                let speed = cycles as f64 / start.elapsed().as_secs_f64() / 1e3;
                shown.set_message(format!("{} cycles, {speed:.1} k/s, ", show::thousands(cycles)));
            }
        }
    }
}
