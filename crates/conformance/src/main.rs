//! The `conformance` tool: compares Warploom with directories of ground truth and measures how fast it is.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod timed_commands;

use clap::{Parser, Subcommand};
use conformance::{bench, code, compile_bench, generate, kernels, levels, timed_bench, vectors};
use driver::CompileOptions;
use driver::machine::optimizing::{self, Options};
use rayon::prelude::*;
use serde_json::json;
use simt::Isa;
use std::path::PathBuf;
use std::process::ExitCode;
use timed_commands::{Machine, Selection};

/// Compare Warploom with what a real GPU did.
///
/// Exit status: 0 when everything agrees (bench: when every target is reached), 1 when something differs, 2 when the
/// directory cannot be used.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every instruction form of a directory with forms.json and forms.bin, and compare bit for bit.
    Vectors {
        directory: PathBuf,
        /// Only forms whose text contains this.
        #[arg(long)]
        filter: Option<String>,
        /// Print the outcome as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run every launch of a directory with kernels/, ptx/ and h200.json: results by SHA-256, cycles beside the GPU's.
    Kernels {
        #[command(flatten)]
        selection: Selection,
        #[command(flatten)]
        machine: Machine,
        /// Count cycles (this is the default).
        #[arg(long, overrides_with = "functional")]
        timed: bool,
        /// Compare results alone.
        #[arg(long)]
        functional: bool,
        /// Compare profiles too: the GPU's samples by line and reason beside ours and those that know nothing.
        #[arg(long, conflicts_with = "functional")]
        profile: bool,
    },
    /// Compare the counters of every launch, cold caches, with those of the GPU.
    Counters {
        #[command(flatten)]
        selection: Selection,
        #[command(flatten)]
        machine: Machine,
    },
    /// Compare what warps waited for with the GPU's samples.
    Stalls {
        #[command(flatten)]
        selection: Selection,
        #[command(flatten)]
        machine: Machine,
    },
    /// Run microbenchmarks whose values on the GPU are known.
    Micro {
        /// A directory with groups (*.txt) and their programs; the repository's own where left out.
        directory: Option<PathBuf>,
        /// Only rows whose name contains this.
        #[arg(long)]
        filter: Option<String>,
        #[command(flatten)]
        machine: Machine,
        /// Print the outcome as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write docs/accuracy.md, or with --speed docs/speed.md, from runs of the repository's own test data.
    Docs {
        /// Where to.
        #[arg(default_value = "docs")]
        folder: PathBuf,
        /// Measure speed, not accuracy.
        #[arg(long)]
        speed: bool,
        /// How often each speed is measured; the median ratio counts.
        #[arg(long, default_value_t = 5)]
        repetitions: u32,
        #[command(flatten)]
        machine: Machine,
    },
    /// Run the locality workloads of the examples under all schedulers and write docs/scheduling.md with its plot.
    Scheduling {
        /// Where to.
        #[arg(default_value = "docs")]
        folder: PathBuf,
        /// Schedulers that run at the same time; 0 for as many as the host has threads.
        #[arg(long, default_value_t = 0)]
        threads: usize,
    },
    /// Measure what suspending and restoring CTAs takes and write docs/preemption.md.
    Preemption {
        /// Where to.
        #[arg(default_value = "docs")]
        folder: PathBuf,
        #[command(flatten)]
        machine: Machine,
    },
    /// Run kernels with barriers in loops as they are and optimized while they run, and write docs/optimizer.md.
    Optimizer {
        /// A directory with kernels/, ptx/ and h200.json; the repository's own where left out.
        directory: Option<PathBuf>,
        /// Where to.
        #[arg(long, default_value = "docs")]
        folder: PathBuf,
        /// Only kernels whose name contains this; nothing is written then.
        #[arg(long)]
        filter: Option<String>,
        /// The largest sets of threads that share optimized code: warp, cta, sm, tpc, gpc or ppu.
        #[arg(long, default_value = "sm")]
        level: optimizing::Level,
        /// Who optimizes: host, early-warp or helper.
        #[arg(long, default_value = "host")]
        optimizer: optimizing::Who,
        /// Only the first table: leave out the comparison of levels, optimizers and ways to profile.
        #[arg(long)]
        short: bool,
        #[command(flatten)]
        machine: Machine,
    },
    /// Print the seconds that a timed run takes.
    #[command(hide = true)]
    Seconds {
        #[command(flatten)]
        selection: Selection,
        #[command(flatten)]
        machine: Machine,
        #[arg(long, default_value_t = 1)]
        repetitions: u32,
    },
    /// Compare our code with NVIDIA's: executed instructions, registers and mix of every kernel.
    Code {
        directory: PathBuf,
        /// Only kernels whose name contains this.
        #[arg(long)]
        filter: Option<String>,
        /// How much to optimise, 0 to 3.
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=3))]
        opt_level: u8,
        /// Print the outcome as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Measure how long modules of 1,000 to 40,000 lines take to compile.
    CompileBench {
        /// A directory with ptx/, whose programs are one more kind of module.
        directory: Option<PathBuf>,
        /// Only kinds of module whose name contains this.
        #[arg(long)]
        filter: Option<String>,
        /// Only modules of up to this many lines.
        #[arg(long, default_value_t = 40_000)]
        most: usize,
        /// How much to optimise, 0 to 3.
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=3))]
        opt_level: u8,
        /// Print the outcome as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run random kernels at every level of optimisation and compare their results.
    Random {
        /// How many.
        #[arg(long, default_value_t = 1000)]
        count: u64,
        /// The seed of the first.
        #[arg(long, default_value_t = 0)]
        first: u64,
        /// Only print the kernel of the first seed.
        #[arg(long)]
        print: bool,
        /// Print the outcome as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Measure functional rates beside a bare loop of the same shape, or with --timed those of the timed machine beside them.
    Bench {
        /// Has launch files in kernels/ and h200.json, as crates/conformance/tests/data/main has.
        directory: PathBuf,
        /// Measure the timed machine.
        #[arg(long)]
        timed: bool,
        /// Measure what profiles and samples cost the host, of every kernel.
        #[arg(long, conflicts_with = "timed")]
        watched: bool,
        /// Measure the timed machine beside another build of this program, such as one without the optimizer.
        #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["timed", "watched"])]
        beside: Option<PathBuf>,
        /// With --timed, --watched and --beside: the machine.
        #[arg(long, default_value = "h200")]
        config: String,
        /// Measure every kernel, not only those with a target.
        #[arg(long, conflicts_with = "watched")]
        all: bool,
        /// Only kernels whose name contains this.
        #[arg(long)]
        filter: Option<String>,
        /// Vectors to use, where this host has them; the widest it has where left out.
        #[arg(long, value_enum)]
        level: Option<Level>,
        /// How often each is measured; the best counts, with --timed and --watched the median ratio.
        #[arg(long, default_value_t = 5)]
        repetitions: u32,
        /// Print the outcome as JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Vector levels by name.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Level {
    Baseline,
    Avx2,
    Avx512,
}

impl Level {
    fn isa(self) -> Isa {
        match self {
            Level::Baseline => Isa::Baseline,
            Level::Avx2 => Isa::Avx2,
            Level::Avx512 => Isa::Avx512,
        }
    }
}

fn main() -> ExitCode {
    driver::end_with_reader();
    driver::keep_freed_memory();
    let outcome = match Arguments::parse().command {
        Command::Vectors { directory, filter, json } => run_vectors(directory, filter, json),
        Command::Kernels { selection, machine, profile: true, .. } => {
            timed_commands::profile(&selection, &machine)
        }
        Command::Kernels { selection, machine, functional, .. } => {
            let timed = (!functional).then_some(&machine);
            timed_commands::kernels(&selection, timed, machine.threads)
        }
        Command::Counters { selection, machine } => timed_commands::counters(&selection, &machine),
        Command::Stalls { selection, machine } => timed_commands::stalls(&selection, &machine),
        Command::Micro { directory, filter, machine, json } => {
            timed_commands::micro(directory, filter.as_deref(), &machine, json)
        }
        Command::Docs { folder, speed, repetitions, machine } => {
            timed_commands::write_docs(&folder, speed, repetitions, &machine)
        }
        Command::Scheduling { folder, threads } => timed_commands::write_scheduling(&folder, threads),
        Command::Optimizer { directory, folder, filter, level, optimizer, short, machine } => {
            let dir = directory.unwrap_or_else(conformance::optimizer::own_directory);
            let choice =
                conformance::optimizer::Choice { options: Options::new(level, optimizer), filter, short };
            timed_commands::write_optimizer(&dir, &folder, &choice, &machine)
        }
        Command::Preemption { folder, machine } => timed_commands::write_preemption(&folder, &machine),
        Command::Seconds { selection, machine, repetitions } => {
            timed_commands::seconds(&selection, &machine, repetitions)
        }
        Command::Code { directory, filter, opt_level, json } => run_code(directory, filter, opt_level, json),
        Command::CompileBench { directory, filter, most, opt_level, json } => {
            run_compile_bench(directory, filter, most, opt_level, json)
        }
        Command::Random { first, print: true, .. } => {
            print!("{}", generate::kernel(first).text);
            Ok(true)
        }
        Command::Random { count, first, json, .. } => run_random(first, count, json),
        Command::Bench { directory, timed: true, config, all, filter, repetitions, json, .. } => {
            run_timed_bench(directory, config, all, filter, repetitions, json)
        }
        Command::Bench { directory, watched: true, config, filter, repetitions, json, .. } => {
            timed_commands::watch_bench(&directory, config, filter.as_deref(), repetitions, json)
        }
        Command::Bench { directory, beside: Some(other), config, filter, repetitions, json, .. } => {
            let filter = filter.as_deref();
            timed_commands::beside_bench(&directory, &other, &config, filter, repetitions, json)
        }
        Command::Bench { directory, all, filter, level, repetitions, json, .. } => {
            run_bench(directory, all, filter, level, repetitions, json)
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

fn run_vectors(directory: PathBuf, filter: Option<String>, json: bool) -> Result<bool, String> {
    let (mut forms, expected) = vectors::load(&directory)?;
    forms.retain(|f| filter.as_ref().is_none_or(|part| f.text.contains(part)));
    let outcomes = vectors::run_all(&forms, &expected)?;
    let exact = outcomes.iter().filter(|o| **o == vectors::Outcome::Exact).count();
    let mut rows = Vec::new();
    for (form, outcome) in forms.iter().zip(&outcomes) {
        let text = match outcome {
            vectors::Outcome::Exact => continue,
            vectors::Outcome::Differs { count, example } => {
                format!("{count} of {} differ; {example}", vectors::COUNT)
            }
            vectors::Outcome::Fails(why) => format!("fails: {why}"),
        };
        if !json {
            println!("{}\n    {text}", form.text);
        }
        rows.push(json!({ "form": form.text, "why": text }));
    }
    match json {
        true => println!("{:#}", json!({ "exact": exact, "forms": forms.len(), "others": rows })),
        false => println!("forms: {exact} of {} exact", forms.len()),
    }
    Ok(exact == forms.len())
}

fn run_code(directory: PathBuf, filter: Option<String>, opt_level: u8, json: bool) -> Result<bool, String> {
    let (mut list, results) = kernels::load(&directory)?;
    list.retain(|k| filter.as_ref().is_none_or(|part| k.name.contains(part)));
    let options = CompileOptions { opt_level, ..CompileOptions::default() };
    let mut rows = Vec::new();
    for kernel in &list {
        match code::measure(&directory, kernel, &results, &options) {
            Ok(row) => rows.push(row),
            Err(why) => eprintln!("{}: {}", kernel.name, why.lines().next().unwrap_or_default()),
        }
    }
    if json {
        let kernels: Vec<_> = rows
            .iter()
            .map(|r| {
                json!({
                    "kernel": r.name, "executed": r.executed.0, "h200_executed": r.executed.1,
                    "registers": r.registers.0, "h200_registers": r.registers.1, "mix": r.mix.0, "sass_mix": r.mix.1,
                })
            })
            .collect();
        println!("{:#}", json!({ "kernels": kernels, "summary": code::summary(&rows).trim() }));
    } else {
        print!("{}", code::table(&rows));
    }
    Ok(true)
}

fn run_compile_bench(
    directory: Option<PathBuf>,
    filter: Option<String>,
    most: usize,
    opt_level: u8,
    json: bool,
) -> Result<bool, String> {
    let mut kinds = compile_bench::kinds(directory.as_deref())?;
    kinds.retain(|k| filter.as_ref().is_none_or(|part| k.name.contains(part)));
    let options = CompileOptions { opt_level, ..CompileOptions::default() };
    let mut rows = Vec::new();
    for kind in &kinds {
        let row = compile_bench::measure(kind, &options, most)?;
        if !json {
            print!("{}", row.line());
        }
        rows.push(row);
    }
    match json {
        true => println!("{:#}", compile_bench::json(&rows)),
        false => print!("{}", compile_bench::summary(&rows)),
    }
    Ok(rows.iter().all(compile_bench::Row::is_met))
}

fn run_random(first: u64, count: u64, json: bool) -> Result<bool, String> {
    let seeds = first..first.saturating_add(count);
    let found: Vec<(u64, Result<levels::Difference, String>)> = seeds
        .into_par_iter()
        .filter_map(|seed| match levels::check(&generate::kernel(seed)) {
            Ok(None) => None,
            Ok(Some(difference)) => Some((seed, Ok(difference))),
            Err(why) => Some((seed, Err(why))),
        })
        .collect();
    let mut rows = Vec::new();
    for (n, (seed, outcome)) in found.iter().enumerate() {
        let why = match outcome {
            Ok(difference) => difference.to_string(),
            Err(why) => why.clone(),
        };
        // One that differs in the shortest form is worth more than many.
        let least = (n < 3 && outcome.is_ok()).then(|| levels::minimise(*seed).0.text);
        match json {
            true => rows.push(json!({ "seed": seed, "why": why, "ptx": least })),
            false => println!("seed {seed}: {why}\n{}", least.unwrap_or_default()),
        }
    }
    let same = count - found.len() as u64;
    match json {
        true => println!("{:#}", json!({ "same": same, "kernels": count, "others": rows })),
        false => println!("random: {same} of {count} give the same at every level"),
    }
    Ok(found.is_empty())
}

fn run_bench(
    directory: PathBuf,
    all: bool,
    filter: Option<String>,
    level: Option<Level>,
    repetitions: u32,
    json: bool,
) -> Result<bool, String> {
    let (mut list, results) = kernels::load(&directory)?;
    list.retain(|k| all || bench::TARGETS.iter().any(|(name, _)| *name == k.name));
    list.retain(|k| filter.as_ref().is_none_or(|part| k.name.contains(part)));
    let mut rows = Vec::new();
    let mut failed = false;
    let level = level.map_or(Isa::best(), Level::isa);
    if !level.is_available() {
        return Err(format!("this host has no {level:?}; it has {:?}", Isa::best()));
    }
    for kernel in &list {
        match bench::measure(kernel, &results, repetitions, level) {
            Ok(row) => rows.push(row),
            Err(why) => {
                eprintln!("{}: {why}", kernel.name);
                failed = true;
            }
        }
    }
    if json {
        let rows: Vec<_> = rows
            .iter()
            .map(|r| {
                json!({
                    "kernel": r.name, "one_thread": r.one_thread, "all_threads": r.all_threads, "bare_loop": r.bare,
                    "ratio": r.ratio(), "target": r.target, "h200_instructions": r.h200_instructions,
                    "our_instructions": r.our_instructions, "buffer_bytes": r.buffer_bytes,
                    "peak_bytes": r.peak_bytes, "met": r.is_met(),
                })
            })
            .collect();
        println!("{:#}", json!({ "level": format!("{level:?}"), "kernels": rows }));
    } else {
        print!("{}", bench::table(&rows, level));
    }
    Ok(!failed && rows.iter().all(bench::Row::is_met))
}

fn run_timed_bench(
    directory: PathBuf,
    config: String,
    all: bool,
    filter: Option<String>,
    repetitions: u32,
    json: bool,
) -> Result<bool, String> {
    let config = Machine { config, threads: 1 }.load()?;
    let (mut list, results) = kernels::load(&directory)?;
    list.retain(|k| all || timed_bench::TARGETS.iter().any(|(name, _)| *name == k.name));
    list.retain(|k| filter.as_ref().is_none_or(|part| k.name.contains(part)));
    let report = timed_commands::measure_speed(&directory, &list, &results, &config, repetitions)?;
    match json {
        true => println!("{:#}", report.json()),
        false => print!("{}", report.tables()),
    }
    Ok(report.is_met())
}
