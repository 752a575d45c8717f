//! `warploom resume`: goes on with a run from its last checkpoint, and what commands that keep checkpoints share.

use crate::{End, profile, run};
use driver::checkpoint::storage::Files;
use driver::{Checkpoint, Keeper, Problem, Problems, Session, Timing};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Options of commands that keep checkpoints.
#[derive(clap::Args, Clone, Serialize, Deserialize)]
#[command(next_help_heading = "Checkpoints")]
pub struct Keeping {
    /// Write the machine's state every so many cycles, so that `warploom resume` can go on from there.
    #[arg(long, value_name = "CYCLES", requires = "checkpoint", value_parser = clap::value_parser!(u64).range(1..))]
    checkpoint_every: Option<u64>,
    /// The file that the state is written to; it is replaced as a whole.
    #[arg(long, value_name = "FILE", requires = "checkpoint_every")]
    checkpoint: Option<PathBuf>,
}

impl Keeping {
    /// Whether checkpoints can be had.
    pub fn check(&self, functional: bool) -> Result<(), Problems> {
        if functional && self.checkpoint_every.is_some() {
            let message = "there are no checkpoints without timing: they come every so many cycles";
            return Err(Problem::new(message).help("leave out --functional, or --checkpoint-every").into());
        }
        Ok(())
    }

    /// Who writes them, if anybody does.
    pub fn keeper(
        &self,
        session: &Session<'_>,
        timing: &Timing<'_>,
        command: impl FnOnce() -> Command,
    ) -> Result<Option<Keeper<'static>>, Problems> {
        let (Some(every), Some(path)) = (self.checkpoint_every, &self.checkpoint) else { return Ok(None) };
        let cannot = |e: &dyn std::fmt::Display| Problem::new(format!("the command cannot be kept: {e}"));
        let begun = Begun { folder: std::env::current_dir().map_err(|e| cannot(&e))?, command: command() };
        let bytes = serde_json::to_vec(&begun).map_err(|e| cannot(&e))?;
        Keeper::new(&Files, path, every, session, timing, &bytes).map(Some)
    }
}

/// A command that keeps checkpoints.
#[derive(Serialize, Deserialize)]
pub enum Command {
    Run(Box<run::Arguments>),
    Profile(Box<profile::Arguments>),
}

/// A command, and where its relative paths begin.
#[derive(Serialize, Deserialize)]
struct Begun {
    folder: PathBuf,
    command: Command,
}

#[derive(clap::Args)]
pub struct Arguments {
    /// The file that --checkpoint named. It is replaced as the run goes on.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Host threads, instead of as many as the run began with; 0 for all there are. Results and cycles do not depend on it.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

pub fn resume(arguments: &Arguments) -> Result<(), End> {
    let checkpoint = Checkpoint::open(&arguments.file)?;
    let cannot = |why: String, help: &str| {
        Problem::new(format!("cannot go on from {}: {why}", arguments.file.display())).help(help)
    };
    let begun: Begun = serde_json::from_slice(checkpoint.command())
        .map_err(|e| cannot(format!("its command cannot be: {e}"), "run the launch file again"))?;
    // Later checkpoints replace this one, wherever the run goes on.
    let file = std::path::absolute(&arguments.file).map_err(|e| cannot(e.to_string(), "check the path"))?;
    std::env::set_current_dir(&begun.folder).map_err(|e| {
        let why = format!("the run began in {}, which cannot be entered: {e}", begun.folder.display());
        cannot(why, "make the folder again: paths of the command are relative to it")
    })?;
    match begun.command {
        Command::Run(mut command) => {
            command.set_resumed(file, arguments.threads);
            run::go_on(&command, &checkpoint)
        }
        Command::Profile(mut command) => {
            command.set_resumed(file, arguments.threads);
            profile::go_on(&command, &checkpoint)
        }
    }
}

impl Keeping {
    /// Later checkpoints go to this file.
    pub fn set_file(&mut self, file: PathBuf) {
        self.checkpoint = Some(file);
    }
}
