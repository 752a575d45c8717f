//! Our cycles against a real GPU's, beside those of a model that knows no mechanism.

use crate::truth::Truth;
use machine::Config;
use serde_json::{Value, json};
use std::fmt::Write;

/// What a model without mechanisms knows of a machine: launching costs so much, every scheduler issues in every cycle,
/// and each byte of the launch's buffers crosses the memory bus once at its full rate.
///
/// It has no latency, no dependence, no conflict and no cache. A simulator that does not beat it by far tells nothing
/// that a pocket calculator would not.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Trivial {
    /// Cycles of an empty launch.
    pub launch: f64,
    /// Warp instructions that all schedulers together issue in a cycle.
    pub issue: f64,
    /// Bytes that DRAM moves in a core cycle.
    pub bytes: f64,
}

impl Trivial {
    /// The model of a machine.
    pub fn of(config: &Config) -> Trivial {
        let issue = config.sms() * config.sm.sub_cores * config.sm.dispatch_units;
        Trivial {
            launch: f64::from(config.distribution.launch_overhead),
            issue: f64::from(issue),
            bytes: f64::from(config.dram.channels) * config.dram.bytes_per_cycle,
        }
    }

    /// Cycles of a launch that executes `instructions` on buffers of `bytes`.
    pub fn cycles(&self, instructions: f64, bytes: f64) -> f64 {
        self.launch + instructions / self.issue + bytes / self.bytes
    }
}

/// One kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub name: String,
    /// Elapsed cycles: ours, and the mean of the GPU's.
    pub cycles: (u64, f64),
    /// Warp instructions: ours and the GPU's.
    pub instructions: (u64, f64),
    /// The cycles of the trivial model.
    pub trivial: f64,
}

impl Row {
    /// A row, where the GPU's cycles and instructions are known.
    pub fn new(name: &str, truth: Truth<'_>, cycles: u64, instructions: u64, trivial: f64) -> Option<Row> {
        Some(Row {
            name: name.to_owned(),
            cycles: (cycles, truth.cycles()?),
            instructions: (instructions, truth.instructions()?),
            trivial,
        })
    }

    /// How far we are off, in per cent; more cycles than the GPU took are positive.
    pub fn error(&self) -> f64 {
        percent(self.cycles.0 as f64, self.cycles.1)
    }

    pub fn trivial_error(&self) -> f64 {
        percent(self.trivial, self.cycles.1)
    }

    /// How far we are off as a factor, 1 or more.
    pub fn factor(&self) -> f64 {
        let ratio = self.cycles.0 as f64 / self.cycles.1;
        ratio.max(1.0 / ratio.max(f64::MIN_POSITIVE))
    }

    /// `kernel  ours  H200  error  trivial  instructions`, under [`HEAD`].
    pub fn line(&self) -> String {
        format!(
            "{:<20} {:>9} {:>9.0} {:>+8.1} % {:>9.0} {:>+8.1} % {:>10} {:>+7.1} %",
            self.name,
            self.cycles.0,
            self.cycles.1,
            self.error(),
            self.trivial,
            self.trivial_error(),
            self.instructions.0,
            percent(self.instructions.0 as f64, self.instructions.1),
        )
    }

    pub fn json(&self) -> Value {
        json!({
            "cycles": self.cycles.0, "h200_cycles": self.cycles.1, "error_percent": self.error(),
            "trivial_cycles": self.trivial, "trivial_error_percent": self.trivial_error(),
            "instructions": self.instructions.0, "h200_instructions": self.instructions.1,
        })
    }
}

/// How much `ours` is above `theirs`, in per cent.
pub fn percent(ours: f64, theirs: f64) -> f64 {
    if ours == theirs { 0.0 } else { (ours / theirs - 1.0) * 100.0 }
}

/// What is above the columns of [`Row::line`].
pub fn head() -> String {
    format!(
        "{:<20} {:>9} {:>9} {:>10} {:>9} {:>10} {:>10} {:>9}",
        "kernel", "cycles", "H200", "error", "trivial", "error", "instr.", "vs H200"
    )
}

/// A whole directory in a few numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct Summary {
    pub kernels: usize,
    /// Mean of the absolute errors in per cent: ours and the trivial model's.
    pub mape: (f64, f64),
    /// Mean absolute error in per cent of the mean of the measured cycles: ours and the trivial model's.
    pub of_mean: (f64, f64),
    /// Kernels off by more than a factor of two.
    pub off: Vec<String>,
    /// The worst kernel and its error.
    pub worst: (String, f64),
}

impl Summary {
    /// `None` where there are no rows.
    pub fn new(rows: &[Row]) -> Option<Summary> {
        let n = rows.len() as f64;
        let mean = |value: &dyn Fn(&Row) -> f64| rows.iter().map(value).sum::<f64>() / n;
        let measured = mean(&|r| r.cycles.1);
        let worst = rows.iter().max_by(|a, b| a.factor().total_cmp(&b.factor()))?;
        Some(Summary {
            kernels: rows.len(),
            mape: (mean(&|r| r.error().abs()), mean(&|r| r.trivial_error().abs())),
            of_mean: (
                100.0 * mean(&|r| (r.cycles.0 as f64 - r.cycles.1).abs()) / measured,
                100.0 * mean(&|r| (r.trivial - r.cycles.1).abs()) / measured,
            ),
            off: rows.iter().filter(|r| r.factor() > 2.0).map(|r| r.name.clone()).collect(),
            worst: (worst.name.clone(), worst.error()),
        })
    }

    /// Two lines; the last is the one that tools look for.
    pub fn text(&self) -> String {
        let mut out = format!(
            "cycles: mean absolute error {:.1} % of the mean measured launch (trivial model {:.1} %), {} off by more than 2x",
            self.of_mean.0,
            self.of_mean.1,
            self.off.len(),
        );
        if !self.off.is_empty() {
            let _ = write!(out, ": {}", self.off.join(", "));
        }
        let (name, error) = &self.worst;
        let _ = write!(
            out,
            "\ncycles: MAPE {:.1} % over {} kernels (trivial model {:.1} %), worst {name} {error:+.1} %\n",
            self.mape.0, self.kernels, self.mape.1
        );
        out
    }

    pub fn json(&self) -> Value {
        json!({
            "kernels": self.kernels, "mape_percent": self.mape.0, "trivial_mape_percent": self.mape.1,
            "error_percent_of_mean": self.of_mean.0, "trivial_error_percent_of_mean": self.of_mean.1,
            "off_by_more_than_2": self.off, "worst": self.worst.0, "worst_error_percent": self.worst.1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, ours: u64, theirs: f64, trivial: f64) -> Row {
        Row { name: name.into(), cycles: (ours, theirs), instructions: (1, 1.0), trivial }
    }

    #[test]
    fn errors_are_added_up_both_ways() {
        let rows = [row("a", 110, 100.0, 50.0), row("b", 300, 1000.0, 1000.0), row("c", 250, 100.0, 100.0)];
        let s = Summary::new(&rows).expect("rows");
        assert!((s.mape.0 - (10.0 + 70.0 + 150.0) / 3.0).abs() < 1e-9);
        assert!((s.mape.1 - 50.0 / 3.0).abs() < 1e-9);
        assert!((s.of_mean.0 - 100.0 * (10.0 + 700.0 + 150.0) / 1200.0).abs() < 1e-9);
        assert_eq!(s.off, ["b", "c"]);
        assert_eq!(s.worst.0, "b");
        let text = s.text();
        let last = text.lines().last().expect("a line");
        assert_eq!(last, "cycles: MAPE 76.7 % over 3 kernels (trivial model 16.7 %), worst b -70.0 %");
        assert!(Summary::new(&[]).is_none());
    }

    #[test]
    fn the_trivial_model_adds_three_terms() {
        let model = Trivial { launch: 3000.0, issue: 528.0, bytes: 2000.0 };
        assert!((model.cycles(5280.0, 20_000.0) - 3020.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_ran_in_no_time_is_no_crash() {
        assert!(row("z", 0, 100.0, 0.0).factor() > 2.0);
    }
}
