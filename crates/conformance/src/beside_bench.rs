//! Speed of this program beside that of another build of it: of one that has no dynamic optimizer, say. Both run the same kernels in
//! turn, each in a process of its own, and the best of each counts.

use crate::timed_bench::Took;
use serde_json::{Value, json};
use std::process::{Command, Stdio};

/// How much longer this build may take than the other.
pub const LIMIT: f64 = 1.03;

/// One kernel in both builds.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub name: String,
    pub this: Took,
    pub other: Took,
}

impl Row {
    pub fn ratio(&self) -> f64 {
        self.this.on_core / self.other.on_core
    }

    /// It takes no longer, and the machine as many cycles.
    pub fn is_met(&self) -> bool {
        self.this.cycles == self.other.cycles && self.ratio() <= LIMIT
    }

    pub fn line(&self) -> String {
        let met = match (self.is_met(), self.this.cycles == self.other.cycles) {
            (true, _) => "met",
            (false, true) => "not met",
            (false, false) => "other cycles",
        };
        let ms = |t: &Took| 1e3 * t.on_core;
        let (this, other) = (ms(&self.this), ms(&self.other));
        format!("{:<16}{this:>9.1} ms, the other {other:>9.1} ms  {:.3}  {met}", self.name, self.ratio())
    }

    pub fn json(&self) -> Value {
        json!({
            "kernel": self.name, "seconds": self.this.on_core, "other": self.other.on_core, "ratio": self.ratio(),
            "cycles": self.this.cycles, "other_cycles": self.other.cycles, "met": self.is_met(),
        })
    }
}

/// What a process prints that measures a kernel.
fn ask(mut command: Command) -> Result<Took, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let fail = |e: &dyn std::fmt::Display| format!("cannot measure with {program}: {e}");
    let output = command.stderr(Stdio::inherit()).output().map_err(|e| fail(&e))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Took::read(&text).ok_or_else(|| fail(&format!("it prints `{}`", text.trim())))
}

/// Measures a kernel: `worker` is the command that prints [`Took`] of it, in this build or in the other.
pub fn measure(name: &str, repetitions: u32, worker: &dyn Fn(bool) -> Command) -> Result<Row, String> {
    let mut row = Row { name: name.to_owned(), this: ask(worker(true))?, other: ask(worker(false))? };
    for n in 1..repetitions {
        // Whoever is first has the cooler host.
        for this in [n % 2 == 0, n % 2 != 0] {
            let best = if this { &mut row.this } else { &mut row.other };
            best.on_core = best.on_core.min(ask(worker(this))?.on_core);
        }
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_cycles_are_never_right() {
        let took = |on_core, cycles| Took { elapsed: 2.0, on_core, cycles };
        let row = Row { name: "k".into(), this: took(1.01, 7), other: took(1.0, 7) };
        assert!(row.is_met() && row.line().ends_with("  1.010  met"), "{}", row.line());
        assert!(!Row { this: took(1.04, 7), ..row.clone() }.is_met());
        assert!(!Row { this: took(1.0, 8), ..row.clone() }.is_met());
        assert_eq!(Took::read(&row.this.to_string()), Some(row.this));
        assert_eq!(Took::read("error"), None);
    }
}
