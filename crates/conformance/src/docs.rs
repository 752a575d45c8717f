//! The pages on accuracy and speed: tables made from runs, in `docs/`.

use crate::kernels::Kernel;
use crate::{counters, kernels, micro, stalls, timed, timed_bench, timing, watch_bench};
use machine::Config;
use serde_json::Value;
use std::fmt::Write;

/// What was found for the kernels of one directory.
pub struct Set {
    /// What the directory holds, in words.
    pub title: &'static str,
    pub rows: Vec<timing::Row>,
    pub counters: Vec<counters::Row>,
    pub stalls: Vec<stalls::Row>,
    /// Kernels whose results are not the GPU's, or that did not run, and why.
    pub wrong: Vec<(String, String)>,
}

/// Runs the kernels of a directory, timed.
pub fn measure(
    title: &'static str,
    list: &[Kernel],
    results: &Value,
    config: &Config,
    threads: usize,
) -> Set {
    let mut set =
        Set { title, rows: Vec::new(), counters: Vec::new(), stalls: Vec::new(), wrong: Vec::new() };
    timed::run_all(list, results, config, threads, |kernel, outcome, measured| {
        if outcome != kernels::Outcome::Match {
            let (word, why) = outcome.words();
            set.wrong.push((kernel.name.clone(), format!("{word}: {why}")));
        }
        let Some(measured) = measured else { return };
        set.rows.extend(measured.row(kernel, results));
        set.counters.push(measured.counters(kernel, results));
        set.stalls.extend(measured.stalls(kernel, results));
    });
    set
}

const ACCURACY: &str = "# How near the timed machine is to an H200

Made by `conformance docs`; nothing here is written by hand. Cold caches, configuration `h200`. Errors are in per cent of
what the GPU measured, more is positive. The trivial model knows what a launch costs, how many instructions the machine can
issue in a cycle and how many bytes DRAM moves in one: launch overhead, plus instructions over issue rate, plus the bytes of
the launch's buffers over bandwidth. It is there to be beaten.
";

/// `docs/accuracy.md`.
pub fn accuracy(sets: &[Set], rows: &[micro::Outcome]) -> String {
    let mut out = String::from(ACCURACY);
    for set in sets {
        let _ = writeln!(out, "\n## Cycles: {}\n", set.title);
        out += "| kernel | ours | H200 | error % | trivial model | error % | instructions | H200 |\n\
                | --- | --- | --- | --- | --- | --- | --- | --- |\n";
        for r in &set.rows {
            let _ = writeln!(
                out,
                "| {} | {} | {:.0} | {:+.1} | {:.0} | {:+.1} | {} | {:.0} |",
                r.name,
                r.cycles.0,
                r.cycles.1,
                r.error(),
                r.trivial,
                r.trivial_error(),
                r.instructions.0,
                r.instructions.1
            );
        }
        if let Some(summary) = timing::Summary::new(&set.rows) {
            let _ = write!(out, "\n{}", summary.text().replace('\n', "\n\n").trim_end());
            out.push('\n');
        }
        match set.wrong.as_slice() {
            [] => out += "\nAll results are the GPU's, bit for bit.\n",
            wrong => {
                for (name, why) in wrong {
                    let _ = writeln!(out, "\n`{name}` {}", why.lines().next().unwrap_or_default());
                }
            }
        }
        counters_of(set, &mut out);
    }
    out += "\n## Microbenchmarks\n\n| row | ours | H200 | unit | error % | limit % | within |\n| --- | --- | --- | --- | --- | --- | --- |\n";
    for o in rows {
        let _ = writeln!(
            out,
            "| {} | {:.2} | {:.2} | {} | {:+.1} | {} | {} |",
            o.row.name,
            o.ours,
            o.row.measured,
            o.row.unit,
            o.error(),
            o.row.tolerance,
            if o.agrees() { "yes" } else { "no" }
        );
    }
    let _ = write!(out, "\n{}", micro::summary(rows));
    out
}

fn counters_of(set: &Set, out: &mut String) {
    let _ = writeln!(out, "\n## Counters: {}\n", set.title);
    let _ = writeln!(
        out,
        "Ours / the GPU's. A counter agrees when it is within {:.0} %, or when both are less than {:.0} % of what it is a part of; \
         those that do not are **bold**.\n",
        counters::TOLERANCE * 100.0,
        counters::SMALL * 100.0
    );
    let _ = writeln!(out, "| kernel |{}", counters::COUNTERS.map(|c| format!(" {} |", c.name)).concat());
    let _ = writeln!(out, "| --- |{}", " --- |".repeat(counters::COUNTERS.len()));
    for row in &set.counters {
        let cells = row.cells.map(|cell| match cell {
            None => " - |".to_owned(),
            Some(c) => {
                let text = format!("{} / {}", counters::show(c.ours), counters::show(c.theirs));
                if c.agrees { format!(" {text} |") } else { format!(" **{text}** |") }
            }
        });
        let _ = writeln!(out, "| {} |{}", row.name, cells.concat());
    }
    let agreement = counters::agreement(&set.counters).map(|(yes, all)| format!(" {yes} of {all} |"));
    let _ = writeln!(out, "| within |{}", agreement.concat());
}

const SPEED: &str = "# How fast the timed machine runs

Made by `conformance docs --speed`; nothing here is written by hand. Configuration `h200`, one host thread where not said otherwise. Rates count
millions of warp instructions a second as the H200 executes them: of several repetitions, a timed launch and functional ones for as long in
turn, the one with the median ratio. On one thread the time on a core counts, where the host tells it, so that other programs matter less. Hosts
differ: the ratios are what is promised.

";

const WATCHED: &str = "## What watching costs

Time of the host over that of a launch that nobody watches, of the same kernel in turn in one process: the median of the ratios. Single kernels
differ by two or three points from run to run. The limits are asked of each kernel; all together are shown beside them.

";

/// `docs/speed.md`.
pub fn speed(report: &timed_bench::Report, watched: &watch_bench::Report, host: &str) -> String {
    format!("{SPEED}{}\n{WATCHED}{}\nMeasured on {host}.\n", report.tables(), watched.table())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_what_is_off() {
        let row =
            timing::Row { name: "k".into(), cycles: (150, 100.0), instructions: (7, 7.0), trivial: 50.0 };
        let mut cells = [None; counters::COUNTERS.len()];
        cells[0] = Some(counters::Cell { ours: 2.0, theirs: 1.0, agrees: false });
        let set = Set {
            title: "programs",
            rows: vec![row],
            counters: vec![counters::Row { name: "k".into(), cells }],
            stalls: Vec::new(),
            wrong: vec![("k".into(), "differs: output y".into())],
        };
        let page = accuracy(&[set], &[]);
        assert!(page.contains("| k | 150 | 100 | +50.0 | 50 | -50.0 | 7 | 7 |"), "{page}");
        assert!(page.contains("`k` differs: output y"), "{page}");
        assert!(page.contains("| k | **2 / 1** | - |"), "{page}");
        assert!(page.contains("| within | 0 of 1 |"), "{page}");
    }
}
