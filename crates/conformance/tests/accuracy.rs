//! Cycles and counters of the programs stay as near to the H200's as they are: a change that moves them away is noticed.

use conformance::kernels::load;
use conformance::{counters, docs, timing};
use machine::Config;
use std::path::Path;

/// What holds at present, with a little room: mean absolute error of cycles, in per cent, and in per cent of the mean
/// measured launch.
const MAPE: f64 = 15.0;
const OF_MEAN: f64 = 20.0;
/// Kernels, of 14, that each counter agrees on, in the order of [`counters::COUNTERS`].
const AGREE: [usize; counters::COUNTERS.len()] = [13, 13, 10, 8, 3, 13, 5, 10];

#[test]
fn programs() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/main");
    let (list, results) = load(&dir).expect("test data");
    let config = Config::preset("h200").expect("the preset");
    let set = docs::measure("programs", &list, &results, &config, 0);
    assert!(set.wrong.is_empty(), "{:?}", set.wrong);
    let summary = timing::Summary::new(&set.rows).expect("kernels");
    assert!(
        summary.kernels == 14 && summary.mape.0 <= MAPE && summary.of_mean.0 <= OF_MEAN,
        "{}",
        summary.text()
    );
    let wrong: Vec<String> = counters::COUNTERS
        .iter()
        .zip(counters::agreement(&set.counters))
        .zip(AGREE)
        .filter(|((_, (yes, _)), least)| yes < least)
        .map(|((c, (yes, all)), least)| format!("{}: {yes} of {all}, {least} before", c.name))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
