//! `warploom schedulers`: a launch file under every policy of the schedulers, side by side.

use crate::show::thousands;
use crate::{End, render};
use driver::chart::{Bars, Canvas, Lines, Stacks};
use driver::launch_file::LaunchFile;
use driver::machine::stall::Stall;
use driver::run::RunError;
use driver::schedulers::{self, Comparison, Outcome};
use driver::{CompileOptions, Problem, files};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Points of a line over time.
const POINTS: usize = 80;
/// Reasons that a table or a plot shows; the others are one more.
const REASONS: usize = 6;

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

/// The reasons that take the most warp-cycles over all outcomes; issuing is none.
fn reasons(outcomes: &[Outcome]) -> Vec<Stall> {
    let total = |s: Stall| outcomes.iter().map(|o| o.stall(s)).sum::<f64>();
    let mut all: Vec<Stall> =
        Stall::ALL.into_iter().filter(|&s| s != Stall::Selected && total(s) > 0.0).collect();
    all.sort_by(|&a, &b| total(b).total_cmp(&total(a)).then(a.cmp(&b)));
    all.truncate(REASONS);
    all
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

/// Cycles, hit rates, progress over time and stalls.
pub fn plot(launch: &str, config: &str, outcomes: &[Outcome]) -> Canvas {
    let bars = |value: fn(&Outcome) -> f64| -> Vec<(String, f64)> {
        outcomes.iter().map(|o| (o.scheduler.clone(), value(o))).collect()
    };
    let (cycles, hits) = (bars(|o| o.cycles as f64), bars(Outcome::l1_hit_pct));
    let cycles = Bars { title: "Cycles", rows: &cycles, unit: "" };
    let hits = Bars { title: "L1 hit rate", rows: &hits, unit: "%" };
    let reasons = reasons(outcomes);
    let parts: Vec<String> = reasons.iter().map(|r| r.name().replace('_', " ")).collect();
    let stacks: Vec<(String, Vec<f64>)> = outcomes
        .iter()
        .map(|o| (o.scheduler.clone(), reasons.iter().map(|&r| o.stall(r)).collect()))
        .collect();
    let stacks = Stacks { title: "Stalls, warp-cycles an instruction", parts: &parts, rows: &stacks };
    // The launch that took longest stands for all.
    let longest = |o: &Outcome| {
        let p = o.progress.iter().max_by_key(|p| p.samples.len());
        p.map(|p| p.points(POINTS).into_iter().map(|(at, v)| (at as f64, v)).collect()).unwrap_or_default()
    };
    let lines: Vec<(String, Vec<(f64, f64)>)> =
        outcomes.iter().map(|o| (o.scheduler.clone(), longest(o))).collect();
    let lines = Lines {
        title: "Spread of progress between the warps of a CTA, instructions",
        x_axis: "cycles since the launch",
        rows: &lines,
    };
    let (width, margin, gap) = (1000.0, 16.0, 24.0);
    let half = (width - 2.0 * margin - gap) / 2.0;
    let first = 40.0;
    let second = first + cycles.height() + 10.0;
    let third = second + 260.0;
    let mut c = Canvas::new(width, third + stacks.height() + margin);
    let head = format!("{launch} on {config}");
    c.text((margin, 24.0), 16.0, driver::chart::Anchor::Left, driver::chart::BLACK, &head);
    cycles.draw(&mut c, margin, first, half);
    hits.draw(&mut c, margin + half + gap, first, half);
    lines.draw(&mut c, (margin, second), (width - 2.0 * margin, 250.0));
    stacks.draw(&mut c, margin, third, width - 2.0 * margin);
    c
}

fn write_plot(path: &Path, canvas: &Canvas) -> Result<(), End> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("svg") => Ok(files::write(path, |to| to.write_all(canvas.svg().as_bytes()))?),
        Some("png") => Ok(files::write(path, |to| canvas.png(to))?),
        _ => Err(Problem::new(format!("{} is neither .svg nor .png", path.display()))
            .help("the ending says what is drawn")
            .into()),
    }
}
