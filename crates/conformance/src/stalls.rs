//! Why warps wait: shares of the stall reasons, ours beside the samples of a real GPU.

use crate::truth::Truth;
use machine::stall::{Stall, StallCycles};
use serde_json::{Value, json};
use std::fmt::Write;

/// One kernel: each reason's share of all warp cycles in per cent, ours and the GPU's, largest first.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub name: String,
    pub shares: Vec<(&'static str, f64, f64)>,
}

impl Row {
    /// `None` where the GPU's samples are not known.
    pub fn new(name: &str, ours: &StallCycles, truth: Truth<'_>) -> Option<Row> {
        let samples = truth.stalls()?;
        let total = (ours.iter().sum::<u64>() as f64, samples.iter().map(|(_, n)| n).sum::<f64>());
        let mut shares: Vec<(&'static str, f64, f64)> = Stall::ALL
            .iter()
            .map(|stall| {
                let theirs = samples.iter().find(|(name, _)| *name == stall.name()).map_or(0.0, |(_, n)| *n);
                let ours = ours[*stall as usize] as f64;
                (stall.name(), 100.0 * ours / total.0.max(1.0), 100.0 * theirs / total.1.max(1.0))
            })
            .filter(|(_, ours, theirs)| ours + theirs > 0.0)
            .collect();
        shares.sort_by(|a, b| b.1.max(b.2).total_cmp(&a.1.max(a.2)));
        Some(Row { name: name.to_owned(), shares })
    }

    /// Per cent of the warp cycles that are charged to another reason than on the GPU.
    pub fn moved(&self) -> f64 {
        self.shares.iter().map(|(_, ours, theirs)| (ours - theirs).abs()).sum::<f64>() / 2.0
    }

    pub fn json(&self) -> Value {
        let shares: Vec<Value> = self
            .shares
            .iter()
            .map(|(name, ours, theirs)| json!({ "reason": name, "percent": ours, "h200_percent": theirs }))
            .collect();
        json!({ "kernel": self.name, "moved_percent": self.moved(), "shares": shares })
    }
}

/// Each kernel's reasons with a share of a per cent or more, then the mean of what is charged elsewhere.
pub fn table(rows: &[Row]) -> String {
    let mut out = String::new();
    for row in rows {
        let _ = writeln!(out, "{} ({:.0} % charged elsewhere)", row.name, row.moved());
        for (name, ours, theirs) in row.shares.iter().filter(|(_, ours, theirs)| ours.max(*theirs) >= 1.0) {
            let _ = writeln!(out, "    {name:<20} {ours:>5.1} % {theirs:>5.1} % {:>+6.1}", ours - theirs);
        }
    }
    let mean = rows.iter().map(Row::moved).sum::<f64>() / rows.len().max(1) as f64;
    let _ = writeln!(
        out,
        "stalls: {mean:.0} % of warp cycles charged to another reason, mean of {} kernels",
        rows.len()
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::stall::STALLS;
    use serde_json::json;

    #[test]
    fn shares_are_of_all_samples() {
        let table_of_truth = json!({ "k": { "stalls": { "wait": 30, "barrier": 10 } } });
        let mut ours = [0; STALLS];
        ours[Stall::Wait as usize] = 500;
        ours[Stall::Drain as usize] = 500;
        let row = Row::new("k", &ours, Truth::of(&table_of_truth, "k")).expect("samples");
        assert_eq!(row.shares, [("wait", 50.0, 75.0), ("drain", 50.0, 0.0), ("barrier", 0.0, 25.0)]);
        assert!((row.moved() - 50.0).abs() < 1e-9);
        assert!(table(&[row]).ends_with("mean of 1 kernels\n"));
        assert!(Row::new("other", &ours, Truth::of(&table_of_truth, "other")).is_none());
    }
}
