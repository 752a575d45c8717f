//! The examples give what an H200 gave for them (`examples/expected.json`).

use driver::{CompileOptions, LaunchFile, LaunchOptions, Session};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// SHA-256 of each output.
fn digests(name: &str, threads: usize) -> Vec<String> {
    let file = LaunchFile::load(&folder().join(name).join(format!("{name}.toml"))).expect("a launch file");
    let session = Session::new(&file, &CompileOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let options = LaunchOptions { threads, ..LaunchOptions::default() };
    for number in 0..file.launches.len() {
        session.launch(number, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    file.outputs().map(|(n, _, _)| session.digest(n).expect("readable").sha256).collect()
}

#[test]
fn every_example_equals_the_h200() {
    let text = std::fs::read(folder().join("expected.json")).expect("expected.json");
    let expected: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "gather",
            "histogram",
            "mandelbrot",
            "matmul",
            "nbody",
            "preemption",
            "reduction",
            "sampling",
            "saxpy",
            "stencil"
        ]
    );
    for name in names {
        let rows = expected[&name]["outputs"].as_array().expect("rows");
        let rows: Vec<&str> = rows.iter().filter_map(|row| row["sha256"].as_str()).collect();
        for threads in [1, 3] {
            assert_eq!(digests(&name, threads), rows, "{name} on {threads} threads");
        }
    }
}
