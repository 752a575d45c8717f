//! `warploom schedulers`: a launch file under every policy of the schedulers, side by side.

use crate::show::thousands;
use crate::{End, render};
use driver::chart::Canvas;
use driver::launch_file::LaunchFile;
use driver::machine::stall::Stall;
use driver::run::RunError;
use driver::schedulers::{self, Comparison, Outcome, POINTS, plot, reasons};
use driver::{CompileOptions, Problem, files};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Arguments {
    /// The launch file (docs/launch-files.md describes it).
    #[arg(value_name = "LAUNCH.toml")]
    file: PathBuf,
    /// The machine whose schedulers are replaced: a configuration's name or a file.
    #[arg(long, value_name = "NAME or FILE", default_value = "h200")]
    config: String,
    /// Schedulers to compare, with commas between; all policies, and gto and credit with grants, where left out.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    schedulers: Vec<String>,
    /// Draw a plot, as FILE.svg or FILE.png by its ending.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print everything as JSON.
    #[arg(long)]
    json: bool,
    /// Schedulers that run at the same time; 0 for as many as the host has threads.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    #[command(flatten)]
    compile: crate::compile::Options,
}

pub fn run(arguments: &Arguments) -> Result<(), End> {
    if let Some(path) = &arguments.plot
        && !["svg", "png"].iter().any(|e| path.extension().is_some_and(|own| own == *e))
    {
        return Err(Problem::new(format!("{} is neither .svg nor .png", path.display()))
            .help("the ending says what is drawn")
            .into());
    }
    let file = LaunchFile::load(&arguments.file)?;
    let config = driver::config::load(&arguments.config)?;
    let names =
        if arguments.schedulers.is_empty() { schedulers::all() } else { arguments.schedulers.clone() };
    // All run the same code; with phases, since those with grants need them.
    let mut compile = CompileOptions::from(arguments.compile);
    compile.phases = driver::compile::Phases::Loads;
    let comparison = Comparison {
        file: &file,
        compile: &compile,
        config: &config,
        threads: arguments.threads,
        cancel: None,
    };
    let outcomes = schedulers::compare(&comparison, &names).map_err(|e| match e {
        RunError::Input(problems) => End::Input(problems),
        RunError::Launch { error, program } => {
            eprint!("{}", render::launch_error(&error, &program, render::colour()));
            End::Bad
        }
    })?;
    if let Some(path) = &arguments.plot {
        write_plot(path, &plot(&file.name, &config.name, &outcomes))?;
    }
    if arguments.json {
        println!(
            "{:#}",
            json!({ "launch": file.name, "config": config.name, "schedulers": rows(&outcomes) })
        );
    } else {
        print!("{}", table(&outcomes));
    }
    let differs = outcomes.iter().any(|o| o.results != outcomes[0].results);
    if differs {
        eprintln!("the results differ from scheduler to scheduler: the program has a race");
        return Err(End::Bad);
    }
    Ok(())
}

fn table(outcomes: &[Outcome]) -> String {
    let reasons = reasons(outcomes);
    let mut rows = vec![vec![
        "scheduler".to_owned(),
        "cycles".into(),
        "IPC".into(),
        "L1 hit %".into(),
        "texture hit %".into(),
        "spread".into(),
    ]];
    rows[0].extend(reasons.iter().map(|r| r.name().to_owned()));
    for o in outcomes {
        let mut row = vec![
            o.scheduler.clone(),
            thousands(o.cycles),
            format!("{:.2}", o.ipc()),
            format!("{:.1}", o.l1_hit_pct()),
            "-".into(),
            format!("{:.1}", o.spread()),
        ];
        row.extend(reasons.iter().map(|&r| format!("{:.2}", o.stall(r))));
        rows.push(row);
    }
    let widths: Vec<usize> =
        (0..rows[0].len()).map(|c| rows.iter().map(|r| r[c].len()).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for row in rows {
        for (n, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match n {
                0 => write!(out, "{cell:width$}"),
                _ => write!(out, "  {cell:>width$}"),
            };
        }
        out.push('\n');
    }
    out + "spread: instructions between the first and the last warp of a CTA, on average; stalls: warp-cycles an instruction\n"
}

fn rows(outcomes: &[Outcome]) -> Vec<Value> {
    let row = |o: &Outcome| {
        let stalls: Map<String, Value> =
            Stall::ALL.into_iter().map(|s| (s.name().to_owned(), o.stalls[s as usize].into())).collect();
        let counters: Map<String, Value> =
            o.counters.list().into_iter().map(|(name, n, _)| (name.to_owned(), n.into())).collect();
        let spread: Vec<Value> = o
            .progress
            .iter()
            .map(|p| p.points(POINTS).into_iter().map(|(at, v)| json!([at, v])).collect())
            .collect();
        json!({
            "scheduler": o.scheduler, "cycles": o.cycles, "ipc": o.ipc(), "l1_hit_pct": o.l1_hit_pct(),
            "texture_hit_pct": Value::Null, "spread": o.spread(), "spread_over_time": spread,
            "stalls": stalls, "counters": counters, "results": o.results,
        })
    };
    outcomes.iter().map(row).collect()
}

fn write_plot(path: &Path, canvas: &Canvas) -> Result<(), End> {
    if path.extension().is_some_and(|e| e == "svg") {
        Ok(files::write(path, |to| to.write_all(canvas.svg().as_bytes()))?)
    } else {
        Ok(files::write(path, |to| canvas.png(to))?)
    }
}
