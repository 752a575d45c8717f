//! Every microbenchmark of the H200 within its limit, or on the list of those that are not yet.

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

/// A row that leaves its limit is noticed. `BLESS=1` writes the list of those that are not within theirs anew.
#[test]
fn rows_are_within_their_limits() {
    let outcomes = run(None);
    assert_eq!(outcomes.len(), 82);
    let off: Vec<&str> = outcomes.iter().filter(|o| !o.agrees()).map(|o| o.row.name.as_str()).collect();
    let list = folder().join("not_yet.list");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&list, off.iter().map(|name| format!("{name}\n")).collect::<String>())
            .expect("written");
    }
    let text = std::fs::read_to_string(&list).expect("the list");
    let known: Vec<&str> = text.lines().collect();
    let wrong: Vec<String> = outcomes
        .iter()
        .filter(|o| !o.agrees() && !known.contains(&o.row.name.as_str()))
        .map(micro::Outcome::line)
        .collect();
    let n = wrong.len();
    assert!(wrong.is_empty(), "{n} rows have left their limits:\n{}", wrong.join("\n"));
}

#[test]
fn rows_are_chosen_by_name() {
    let names: Vec<String> = run(Some("chase_ca_64KB")).into_iter().map(|o| o.row.name).collect();
    assert_eq!(names, ["chase_ca_64KB"]);
}
