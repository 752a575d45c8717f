//! Every microbenchmark of the H200 within its limit.

use conformance::micro;
use machine::Config;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/micro")
}

fn run(filter: Option<&str>) -> Vec<micro::Outcome> {
    let groups = micro::load(&folder()).expect("test data");
    let config = Config::preset("h200").expect("the preset");
    micro::bench::run_all(&groups, &config, filter).expect("rows run")
}

#[test]
fn rows_are_within_their_limits() {
    let outcomes = run(None);
    assert_eq!(outcomes.len(), 82);
    let wrong: Vec<String> = outcomes.iter().filter(|o| !o.agrees()).map(micro::Outcome::line).collect();
    let n = wrong.len();
    assert!(wrong.is_empty(), "{n} rows have left their limits:\n{}", wrong.join("\n"));
}

#[test]
fn rows_are_chosen_by_name() {
    let names: Vec<String> = run(Some("chase_ca_64KB")).into_iter().map(|o| o.row.name).collect();
    assert_eq!(names, ["chase_ca_64KB"]);
}
