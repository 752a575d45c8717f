//! Timing changes no result, and cycles are the same for any number of host threads, in every run.

use conformance::kernels::{Kernel, Outcome, load};
use conformance::timed::{self, Run};
use conformance::truth::Truth;
use machine::Config;
use serde_json::Value;
use std::path::Path;

/// Kernels of more instructions than this are left to `conformance kernels`: they would take most of the time.
const MOST: f64 = 4e5;

/// Programs that run on several numbers of threads: barriers, atomics, scattered accesses.
const SEVERAL: [&str; 3] = ["transpose_padded", "histogram_shared", "spmv_hash"];

fn data(set: &str) -> (Vec<Kernel>, Value) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(set);
    let (mut kernels, results) = load(&dir).expect("test data");
    kernels.retain(|k| Truth::of(&results, &k.name).instructions().is_none_or(|n| n <= MOST));
    (kernels, results)
}

fn h200() -> Config {
    Config::preset("h200").expect("the preset")
}

fn run(kernel: &Kernel, results: &Value, config: &Config, threads: usize) -> Run {
    let (outcome, run) = timed::run(kernel, results, config, threads);
    assert_eq!(outcome, Outcome::Match, "{} on {threads} threads", kernel.name);
    run.expect("a kernel that matches ran")
}

fn all_match(set: &str) {
    let (kernels, results) = data(set);
    assert!(kernels.len() >= 10);
    let mut failures = Vec::new();
    timed::run_all(&kernels, &results, &h200(), 0, |kernel, outcome, _| {
        if outcome != Outcome::Match {
            failures.push(format!("{}: {outcome:?}", kernel.name));
        }
    });
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), kernels.len(), failures.join("\n"));
}

#[test]
fn sweep() {
    all_match("sweep");
}

#[test]
fn features() {
    all_match("features");
}

/// Cycles, counters and stall reasons of the programs, on 1, 2 and 4 threads, and once more on 1.
#[test]
fn programs_take_the_same_cycles_on_any_number_of_threads() {
    let (kernels, results) = data("main");
    let config = h200();
    for kernel in kernels.iter().filter(|k| SEVERAL.contains(&k.name.as_str())) {
        let first = run(kernel, &results, &config, 1);
        assert!(first.cycles > 0 && first.counters.warp_instructions > 0, "{}", kernel.name);
        for threads in [2, 4, 1] {
            let again = run(kernel, &results, &config, threads);
            assert_eq!(again, first, "{} on {threads} threads", kernel.name);
        }
    }
}

/// Kernels whose CTAs meet in memory.
#[test]
fn atomics_take_the_same_cycles_on_any_number_of_threads() {
    let (kernels, results) = data("sweep");
    let config = h200();
    for kernel in kernels.iter().filter(|k| k.name.starts_with("atomic") || k.name.starts_with("membar")) {
        let first = run(kernel, &results, &config, 1);
        for threads in [2, 4] {
            assert_eq!(
                run(kernel, &results, &config, threads),
                first,
                "{} on {threads} threads",
                kernel.name
            );
        }
    }
}

/// The machine's size is a setting: results do not depend on it.
#[test]
fn results_are_the_same_on_every_machine() {
    let (kernels, results) = data("main");
    for preset in ["tiny", "classic"] {
        let config = Config::preset(preset).expect("the preset");
        let kernel = kernels.iter().find(|k| k.name == "transpose_naive").expect("a kernel");
        run(kernel, &results, &config, 2);
    }
}
