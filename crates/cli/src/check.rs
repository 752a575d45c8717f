//! `--check`: comparing results with a table of digests or a folder of `.npy` files.

use driver::launch_file::{Buffer, LaunchFile};
use driver::{Problem, Problems, Session, files, npy};
use serde_json::Value;
use std::path::Path;

/// Expected results.
pub enum Expected {
    /// Rows in the order of outputs.
    Digests(Vec<Value>),
    /// A folder with `NAME.npy` for each output.
    Arrays(std::path::PathBuf),
}

impl Expected {
    /// Reads what `--check` names.
    pub fn load(path: &Path, file: &LaunchFile) -> Result<Expected, Problems> {
        if path.is_dir() {
            return Ok(Expected::Arrays(path.to_owned()));
        }
        let text = files::standard_json(&files::read(path, files::MAX_TEXT)?);
        let fail = |why: String| {
            Problem::new(format!("{}: {why}", path.display()))
                .help("a table as `warploom run --json` prints it is needed; see docs/launch-files.md")
        };
        let table: Value = serde_json::from_slice(&text).map_err(|e| fail(format!("no JSON: {e}")))?;
        let rows = table[&file.name]["outputs"]
            .as_array()
            .ok_or_else(|| fail(format!("it has no outputs for `{}`", file.name)))?;
        let outputs = file.outputs().count();
        if rows.len() != outputs {
            let why = format!("`{}` has {} outputs, the launch file {outputs}", file.name, rows.len());
            return Err(fail(why).into());
        }
        if let Some(n) = rows.iter().position(|row| row["sha256"].as_str().is_none_or(|s| s.len() != 64)) {
            return Err(fail(format!("output {n} of `{}` has no sha256", file.name)).into());
        }
        Ok(Expected::Digests(rows.clone()))
    }

    /// How an output differs, `None` when it does not.
    pub fn difference(
        &self,
        position: usize,
        number: usize,
        buffer: &Buffer,
        sha256: &str,
        session: &Session<'_>,
    ) -> Result<Option<String>, Problems> {
        match self {
            Expected::Digests(rows) => {
                let expected = rows[position]["sha256"].as_str().unwrap_or_default();
                Ok((expected != sha256).then(|| format!("sha256 is {sha256}, expected {expected}")))
            }
            Expected::Arrays(folder) => {
                let path = folder.join(format!("{}.npy", buffer.name));
                let fail = |why: String| {
                    Problem::new(format!("cannot read {}: {why}", path.display()))
                        .help("`--check DIR` needs one file for each output, as `--out DIR` writes them")
                };
                let (element, bytes) = session.contents(number).map_err(|e| Problem::new(e.to_string()))?;
                let open = std::fs::File::open(&path).map_err(|e| fail(e.to_string()))?;
                // Room for a longer file, whose length is the difference to report.
                let limit = (bytes.len() as u64).saturating_mul(2).max(1 << 20);
                let array = npy::read(std::io::BufReader::new(open), limit).map_err(fail)?;
                let size = element.size();
                if array.bytes.len() != bytes.len() || array.element.size() != size {
                    let (has, type_name) = (array.bytes.len() / array.element.size(), array.element.name());
                    return Ok(Some(format!(
                        "{} {}, expected {has} {type_name}",
                        buffer.count,
                        element.name()
                    )));
                }
                let differing =
                    |i: &usize| bytes[i * size..(i + 1) * size] != array.bytes[i * size..(i + 1) * size];
                let count = (0..bytes.len() / size).filter(differing).count();
                let first = (0..bytes.len() / size).find(differing);
                Ok(first.map(|i| {
                    let show = |b: &[u8]| element.show(element.read(&b[i * size..]));
                    format!(
                        "{count} elements; element {i} is {}, expected {}",
                        show(&bytes),
                        show(&array.bytes)
                    )
                }))
            }
        }
    }
}
