//! Microbenchmarks: small loops whose time on a real GPU is known, run on the timed machine row by row.
//!
//! | module | holds |
//! | --- | --- |
//! | [`parse`] | the text files |
//! | [`chase`] | random walks through memory |
//! | [`bench`] | a machine that runs the rows of a group |

pub mod bench;
pub mod chase;
pub mod parse;

use crate::timing::percent;
use parse::Row;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A row and what we got.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    pub group: String,
    pub row: Row,
    pub ours: f64,
}

impl Outcome {
    /// How far we are off, in per cent.
    pub fn error(&self) -> f64 {
        percent(self.ours, self.row.measured)
    }

    pub fn agrees(&self) -> bool {
        self.error().abs() <= self.row.tolerance
    }

    pub fn line(&self) -> String {
        let r = &self.row;
        format!(
            "{:<28} {:>12.2} {:>12.2} {:<15} {:>+7.1} % {:>5} % {}",
            r.name,
            self.ours,
            r.measured,
            r.unit,
            self.error(),
            r.tolerance,
            if self.agrees() { "" } else { "off" }
        )
    }

    pub fn json(&self) -> Value {
        json!({
            "group": self.group, "row": self.row.name, "ours": self.ours, "h200": self.row.measured, "unit": self.row.unit,
            "error_percent": self.error(), "tolerance_percent": self.row.tolerance, "agrees": self.agrees(),
        })
    }
}

/// What is above the columns of [`Outcome::line`].
pub fn head() -> String {
    format!("{:<28} {:>12} {:>12} {:<15} {:>9} {:>7}", "row", "ours", "H200", "unit", "error", "limit")
}

/// `micro: n of N rows within their limits, worst NAME x %`
pub fn summary(outcomes: &[Outcome]) -> String {
    let within = outcomes.iter().filter(|o| o.agrees()).count();
    let worst = outcomes.iter().max_by(|a, b| a.error().abs().total_cmp(&b.error().abs()));
    let worst = worst.map_or(String::new(), |o| format!(", worst {} {:+.1} %", o.row.name, o.error()));
    format!("micro: {within} of {} rows within their limits{worst}\n", outcomes.len())
}

/// The groups of a directory, by name.
pub fn load(dir: &Path) -> Result<Vec<parse::Group>, String> {
    let fail = |e: std::io::Error| format!("cannot read {}: {e}", dir.display());
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.extension().is_some_and(|e| e == "txt") {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(format!("there are no groups (*.txt) in {}", dir.display()));
    }
    files.iter().map(|file| parse::load(file)).collect()
}
