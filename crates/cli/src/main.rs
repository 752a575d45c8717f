//! The `warploom` command.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod check;
mod compile;
mod config;
mod disasm;
mod exec;
mod explain;
mod launching;
mod optimize;
mod optimizing;
mod profile;
mod ptxas;
mod render;
mod report;
mod resume;
mod run;
mod sampling;
mod schedulers;
mod show;
mod streams;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A GPU in software: runs PTX programs with the results of a real NVIDIA H200, bit for bit, timed cycle by cycle.
///
/// Exit status: 0 when all went well; 1 when the program faulted, was stopped, or a check differed; 2 when the input or
/// the command line is wrong.
#[derive(Parser)]
#[command(name = "warploom", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the kernels of a launch file and show their results and where their cycles went.
    Run(Box<run::Arguments>),
    /// Run the kernels of a launch file and show, line by line, what their warps waited for.
    Profile(Box<profile::Arguments>),
    /// Go on with a run that was killed, from the last checkpoint that it wrote.
    Resume(resume::Arguments),
    /// Compile PTX to a program image, or show a stage of the way there.
    Compile(compile::Arguments),
    /// Show the machine code of a program image.
    Disasm(disasm::Arguments),
    /// Run a launch file under every policy of the warp schedulers and compare them.
    Schedulers(schedulers::Arguments),
    /// Run a launch file as it is and with code optimized while it runs, and show what that changed.
    Optimize(Box<optimize::Arguments>),
    /// Run a program that uses CUDA, unchanged, on the machine: its libraries and tools are found first.
    Exec(exec::Arguments),
    /// List, show and compare configurations of the machine.
    Config(config::Arguments),
}

/// How a command ended.
pub enum End {
    Good,
    /// The program faulted, was stopped, or a check differed. It was already shown.
    Bad,
    /// The input is wrong.
    Input(driver::Problems),
}

impl From<driver::Problems> for End {
    fn from(problems: driver::Problems) -> End {
        End::Input(problems)
    }
}

impl From<driver::Problem> for End {
    fn from(problem: driver::Problem) -> End {
        End::Input(problem.into())
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
    // Compilers call it by the assembler's name.
    if ptxas::is_asked(words.first().map(String::as_str)) {
        return exit(ptxas::run(&words[1..]).map_err(End::from));
    }
    driver::end_with_reader();
    driver::keep_freed_memory();
    let arguments = Arguments::parse();
    let ended = match arguments.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Profile(arguments) => profile::run(&arguments),
        Command::Resume(arguments) => resume::resume(&arguments),
        Command::Compile(arguments) => compile::run(&arguments),
        Command::Disasm(arguments) => disasm::run(&arguments),
        Command::Schedulers(arguments) => schedulers::run(&arguments),
        Command::Optimize(arguments) => optimize::run(&arguments),
        Command::Config(arguments) => config::run(&arguments),
        Command::Exec(arguments) => exec::run(&arguments),
    };
    exit(ended)
}

/// Tells what is wrong, and the exit status.
fn exit(ended: Result<(), End>) -> ExitCode {
    match ended {
        Ok(()) | Err(End::Good) => ExitCode::SUCCESS,
        Err(End::Bad) => ExitCode::from(1),
        Err(End::Input(problems)) => {
            eprint!("{}", render::problems(&problems, render::colour()));
            ExitCode::from(2)
        }
    }
}
