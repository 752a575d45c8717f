//! Cycles and counters stay as near to the H200's as they are: a change that moves them away is noticed.

use conformance::kernels::load;
use conformance::{counters, docs, timing};
use machine::Config;
use std::path::Path;

/// Mean absolute error of cycles in per cent of the mean measured launch, what holds at present with a little room.
const PROGRAMS: f64 = 25.0;
/// Counters that agree, of the kernels that run, at least.
const AGREE: usize = 11;

#[test]
fn programs() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/main");
    let (list, results) = load(&dir).expect("test data");
    let config = Config::preset("h200").expect("the preset");
    let set = docs::measure("programs", &list, &results, &config, 0);
    assert!(set.wrong.is_empty(), "{:?}", set.wrong);
    let summary = timing::Summary::new(&set.rows).expect("kernels");
    assert!(summary.of_mean.0 <= PROGRAMS, "{}", summary.text());
    let wrong: Vec<String> = counters::COUNTERS
        .iter()
        .zip(counters::agreement(&set.counters))
        .filter(|(_, (yes, _))| *yes < AGREE)
        .map(|(c, (yes, all))| format!("{}: {yes} of {all}", c.name))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
