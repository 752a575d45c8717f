//! The examples give what an H200 gave for them (`examples/expected.json`), and take no longer for being optimised.

use driver::{CompileOptions, Config, LaunchFile, LaunchOptions, Session, Timing};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn names() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
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
    let names = names();
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

/// Cycles of all launches of an example on an H200.
fn cycles(name: &str, opt_level: u8) -> u64 {
    let config = Config::preset("h200").expect("a preset");
    let file = LaunchFile::load(&folder().join(name).join(format!("{name}.toml"))).expect("a launch file");
    let options = CompileOptions { opt_level, ..CompileOptions::default() };
    let session = Session::new(&file, &options).unwrap_or_else(|e| panic!("{e}"));
    let options = LaunchOptions { timing: Some(Timing::new(&config)), ..LaunchOptions::default() };
    (0..file.launches.len())
        .map(|number| {
            let stats = session.launch(number, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
            stats.report.expect("a timed launch").cycles
        })
        .sum()
}

/// What level 3 adds to level 1 (unrolled loops and what follows from them) makes no program much slower. What it may cost is the
/// fetching of longer code: `stencil` runs its 250 instructions once, and more than half of the fetches miss.
#[test]
fn the_default_level_is_no_slower_than_the_first() {
    for name in names() {
        let (first, default) = (cycles(&name, 1), cycles(&name, 3));
        assert!(default * 100 <= first * 120, "{name}: {default} cycles at level 3, {first} at level 1");
    }
}
