//! Every microbenchmark of the H200 within its limit.

use conformance::micro;
use machine::Config;
use std::path::Path;

/// Rows that are not within their limits yet. One that comes within is noticed here, and taken off the list.
const NOT_YET: &[&str] = &[];

#[test]
fn rows_are_within_their_limits() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/micro");
    let groups = micro::load(&dir).expect("test data");
    let config = Config::preset("h200").expect("the preset");
    let outcomes = micro::bench::run_all(&groups, &config, None).expect("rows run");
    assert_eq!(outcomes.len(), 82);
    let wrong: Vec<String> = outcomes
        .iter()
        .filter(|o| o.agrees() == NOT_YET.contains(&o.row.name.as_str()))
        .map(micro::Outcome::line)
        .collect();
    assert!(wrong.is_empty(), "{} rows are off, or within and still on the list:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn rows_are_chosen_by_name() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/micro");
    let groups = micro::load(&dir).expect("test data");
    let config = Config::preset("h200").expect("the preset");
    let outcomes = micro::bench::run_all(&groups, &config, Some("chase_ca_64KB")).expect("rows run");
    assert_eq!(outcomes.iter().map(|o| o.row.name.as_str()).collect::<Vec<_>>(), ["chase_ca_64KB"]);
}
