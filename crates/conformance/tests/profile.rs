//! Profiles against the samples of a real GPU: how far they may be apart.

use conformance::kernels::load;
use conformance::profile::{Row, Summary};
use conformance::timed;
use conformance::truth::Truth;
use machine::Config;
use std::path::Path;

/// Kernels of at most so many instructions; `conformance kernels --profile` holds all of them to the same limits.
fn lines_and_reasons_are_near_the_gpus_samples(set: &str, most: f64) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(set);
    let (mut kernels, results) = load(&dir).expect("test data");
    kernels.retain(|k| Truth::of(&results, &k.name).instructions().is_some_and(|n| n <= most));
    let config = Config::preset("h200").expect("the preset");
    let mut rows: Vec<Row> = Vec::new();
    timed::sample_all(&kernels, &results, &config, 0, |kernel, _, run| {
        rows.extend(run.and_then(|run| run.profile(kernel, &results)));
    });
    let summary = Summary::new(&rows);
    assert!(rows.len() >= 8, "{}", rows.len());
    let (ours, trivial) = (summary.ours, summary.trivial);
    assert!(ours.line <= 0.15 && ours.reason <= 0.25 && ours.both <= 0.35, "{}", summary.text());
    assert!(ours.line <= trivial.line / 2.0 && ours.both <= trivial.both / 2.0, "{}", summary.text());
    assert!(summary.top + 2 >= summary.kernels, "{}", summary.text());
}

#[test]
fn programs() {
    lines_and_reasons_are_near_the_gpus_samples("main", 1e6);
}

/// Nothing was tuned for these.
#[test]
fn unseen_programs() {
    lines_and_reasons_are_near_the_gpus_samples("unseen", f64::INFINITY);
}
