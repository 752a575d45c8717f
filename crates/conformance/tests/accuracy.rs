//! Cycles and counters of the programs stay as near to the H200's as they are: a change that moves them away is noticed.

use conformance::kernels::load;
use conformance::{counters, docs, timing};
use machine::Config;
use std::path::Path;

/// What holds at present, with a little room.
struct Limits {
    kernels: usize,
    /// Mean absolute error of cycles, in per cent, and in per cent of the mean measured launch.
    mape: f64,
    of_mean: f64,
    /// Kernels that each counter agrees on, in the order of [`counters::COUNTERS`].
    agree: [usize; counters::COUNTERS.len()],
}

fn hold(set: &'static str, limits: &Limits) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(set);
    let (list, results) = load(&dir).expect("test data");
    let config = Config::preset("h200").expect("the preset");
    let set = docs::measure(set, &list, &results, &config, 0);
    assert!(set.wrong.is_empty(), "{:?}", set.wrong);
    let summary = timing::Summary::new(&set.rows).expect("kernels");
    assert_eq!(summary.kernels, limits.kernels);
    assert!(summary.mape.0 <= limits.mape && summary.of_mean.0 <= limits.of_mean, "{}", summary.text());
    let wrong: Vec<String> = counters::COUNTERS
        .iter()
        .zip(counters::agreement(&set.counters))
        .zip(limits.agree)
        .filter(|((_, (yes, _)), least)| yes < least)
        .map(|((c, (yes, all)), least)| format!("{}: {yes} of {all}, {least} before", c.name))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn programs() {
    let agree = [14, 14, 12, 12, 11, 14, 11, 12];
    hold("main", &Limits { kernels: 14, mape: 10.0, of_mean: 10.0, agree });
}

/// Nothing was tuned for these.
#[test]
fn unseen_programs() {
    let agree = [30, 30, 28, 22, 18, 27, 18, 24];
    hold("unseen", &Limits { kernels: 30, mape: 10.0, of_mean: 10.0, agree });
}
