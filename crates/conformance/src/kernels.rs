//! Whole launches of a directory with `kernels/`, `ptx/` and `h200.json`, compared by SHA-256.

use driver::launch_file::LaunchFile;
use driver::{CompileOptions, LaunchOptions, Session};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// How a kernel fared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    Match,
    /// Which output, and how.
    Differs(String),
    /// Something in it cannot be compiled yet, in words.
    NotBuilt(String),
    /// The launch file or the expected results are unusable.
    Unusable(String),
}

impl Outcome {
    /// In a word, and why.
    pub fn words(&self) -> (&'static str, &str) {
        match self {
            Outcome::Match => ("match", ""),
            Outcome::Differs(why) => ("differs", why),
            Outcome::NotBuilt(why) => ("not built", why),
            Outcome::Unusable(why) => ("unusable", why),
        }
    }
}

/// A launch of a directory.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub name: String,
    pub path: PathBuf,
}

/// The launches of a directory, by name, and its table of results.
pub fn load(dir: &Path) -> Result<(Vec<Kernel>, Value), String> {
    let fail = |path: &Path, e: &dyn std::fmt::Display| format!("cannot read {}: {e}", path.display());
    let folder = dir.join("kernels");
    let mut kernels = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(|e| fail(&folder, &e))? {
        let path = entry.map_err(|e| fail(&folder, &e))?.path();
        if path.extension().is_some_and(|e| e == "toml") {
            let name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
            kernels.push(Kernel { name, path });
        }
    }
    kernels.sort_by(|a, b| a.name.cmp(&b.name));
    let results = dir.join("h200.json");
    let text = std::fs::read(&results).map_err(|e| fail(&results, &e))?;
    let text = driver::files::standard_json(&text);
    Ok((kernels, serde_json::from_slice(&text).map_err(|e| fail(&results, &e))?))
}

/// Runs one launch file and compares its outputs with the rows of `expected`.
pub fn run(kernel: &Kernel, expected: &Value, threads: usize) -> Outcome {
    let options = LaunchOptions { threads, ..LaunchOptions::default() };
    run_with(kernel, expected, |_, session, number| {
        session.launch(number, &options).map(|_| ()).map_err(|e| e.to_string())
    })
}

/// The same, with something that runs each launch of the file by its number.
pub fn run_with(
    kernel: &Kernel,
    expected: &Value,
    mut launch: impl FnMut(&LaunchFile, &Session<'_>, usize) -> Result<(), String>,
) -> Outcome {
    let Some(rows) = expected[&kernel.name]["outputs"].as_array() else {
        return Outcome::Unusable(format!("there are no expected outputs for {}", kernel.name));
    };
    let file = match LaunchFile::load(&kernel.path) {
        Ok(file) => file,
        Err(problems) => return Outcome::Unusable(problems.to_string()),
    };
    let session = match Session::new(&file, &CompileOptions::default()) {
        Ok(session) => session,
        Err(problems) => {
            let first = problems.0.first().map(ToString::to_string).unwrap_or_default();
            return match problems.0.len() {
                0 | 1 => Outcome::NotBuilt(first),
                n => Outcome::NotBuilt(format!("{first} (and {} more)", n - 1)),
            };
        }
    };
    for number in 0..file.launches.len() {
        if let Err(why) = launch(&file, &session, number) {
            return Outcome::Differs(why);
        }
    }
    compare(&file, &session, rows)
}

fn compare(file: &LaunchFile, session: &Session<'_>, rows: &[Value]) -> Outcome {
    if file.outputs().count() != rows.len() {
        let (has, expected) = (file.outputs().count(), rows.len());
        return Outcome::Unusable(format!("the launch has {has} outputs, {expected} are expected"));
    }
    for ((number, buffer, _), row) in file.outputs().zip(rows) {
        let digest = match session.digest(number) {
            Ok(digest) => digest,
            Err(e) => return Outcome::Differs(e.to_string()),
        };
        if row["sha256"].as_str() == Some(&digest.sha256) {
            continue;
        }
        let mut text = format!("output {}", buffer.name);
        for (key, value) in [("sum", digest.sum), ("sum_abs", digest.sum_abs), ("weighted", digest.weighted)]
        {
            if let Some(expected) = row[key].as_f64()
                && expected != value
            {
                text += &format!(", {key} {value} (expected {expected})");
            }
        }
        let first = row["first"].as_array().map_or(&[][..], Vec::as_slice);
        for (i, (expected, &bits)) in first.iter().zip(&digest.first).enumerate() {
            let value = buffer.element.to_f64(bits);
            if expected.as_f64().is_some_and(|e| e != value) {
                text += &format!(", element {i} is {value} (expected {expected})");
                break;
            }
        }
        return Outcome::Differs(text);
    }
    Outcome::Match
}
