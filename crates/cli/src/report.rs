//! The report of a timed launch as text: sections in the order in which users of Nsight look, aligned.

use crate::show::thousands;
use driver::machine::Report;
use driver::machine::report::{Metric, Unit};
use std::fmt::Write;

/// The summary of a launch.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    let all = report.sections.iter().flat_map(|s| &s.metrics);
    let names = all.clone().map(|m| m.label.len()).max().unwrap_or(0);
    let values = all.map(|m| value(m).0.len()).max().unwrap_or(0);
    for section in &report.sections {
        let _ = writeln!(out, "  {}", section.title);
        for metric in &section.metrics {
            let (number, unit) = value(metric);
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

/// A metric as number and unit.
fn value(metric: &Metric) -> (String, &'static str) {
    let v = metric.value;
    match metric.unit {
        Unit::Count => (thousands(v as u64), ""),
        Unit::Cycles => (thousands(v as u64), "cycles"),
        Unit::Seconds => scaled(v * 1e9, 1e3, ["ns", "us", "ms", "s"]),
        Unit::Percent => (format!("{v:.1}"), "%"),
        Unit::Bytes => scaled(v, 1e3, ["B", "kB", "MB", "GB"]),
        Unit::BytesPerSecond => scaled(v, 1e3, ["B/s", "kB/s", "MB/s", "GB/s"]),
        Unit::Number => (format!("{v:.2}"), ""),
    }
}

/// A number in the largest unit that leaves something before the point.
fn scaled(mut v: f64, step: f64, units: [&'static str; 4]) -> (String, &'static str) {
    for unit in &units[..3] {
        if v < step {
            let digits = if v.fract() == 0.0 { 0 } else { 2 };
            return (format!("{v:.digits$}"), unit);
        }
        v /= step;
    }
    (format!("{v:.2}"), units[3])
}

/// Cycles, time and machine, to be followed by more.
pub fn headline(report: &Report) -> String {
    let (number, unit) = scaled(report.metric("seconds").unwrap_or(0.0) * 1e9, 1e3, ["ns", "us", "ms", "s"]);
    format!("{} cycles ({number} {unit}) on {}, ", thousands(report.cycles), report.config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        let show = |unit, value| {
            let (number, unit) =
                super::value(&Metric { name: String::new(), label: String::new(), unit, value });
            format!("{number} {unit}")
        };
        assert_eq!(show(Unit::Cycles, 1_234_567.0), "1,234,567 cycles");
        assert_eq!(show(Unit::Seconds, 4.1e-6), "4.10 us");
        assert_eq!(show(Unit::Percent, 12.34), "12.3 %");
        assert_eq!(show(Unit::Bytes, 16384.0), "16.38 kB");
        assert_eq!(show(Unit::Bytes, 128.0), "128 B");
        assert_eq!(show(Unit::BytesPerSecond, 4.5e12), "4500.00 GB/s");
    }
}
