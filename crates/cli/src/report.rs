//! The report of a timed launch as text: sections in the order in which users of Nsight look, aligned.

use driver::machine::Report;
use std::fmt::Write;
use trace::metric::{seconds, thousands};

/// The summary of a launch.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    let all = report.sections.iter().flat_map(|s| &s.metrics);
    let names = all.clone().map(|m| m.label.len()).max().unwrap_or(0);
    let values = all.map(|m| m.shown().0.len()).max().unwrap_or(0);
    for section in &report.sections {
        let _ = writeln!(out, "  {}", section.title);
        for metric in &section.metrics {
            let (number, unit) = metric.shown();
            let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
            let _ = writeln!(out, "    {:names$}  {number:>values$}{unit}", metric.label);
            if metric.name == "theoretical_occupancy_pct" {
                let _ = writeln!(out, "    {:names$}  {:>values$}", "Limited by", limiter(report));
            }
        }
    }
    out
}

/// What keeps an SM from holding more CTAs.
fn limiter(report: &Report) -> &'static str {
    let o = &report.occupancy;
    if o.warps == o.max_warps { "nothing" } else { o.limiter.name() }
}

/// Cycles, time and machine, to be followed by more.
pub fn headline(report: &Report) -> String {
    let (number, unit) = seconds(report.metric("seconds").unwrap_or(0.0));
    format!("{} cycles ({number} {unit}) on {}, ", thousands(report.cycles), report.config)
}
