//! Whole kernels give the bytes that an H200 gave: 14 programs, 30 more, 55 small ones that lean on one mechanism each, 47 that lean on
//! one feature of the language each, and those that the dynamic optimizer is measured with.

use conformance::kernels::{Outcome, load, run};
use std::path::Path;

fn all_match(set: &str) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(set);
    let (kernels, expected) = load(&dir).expect("test data");
    assert!(kernels.len() >= 10);
    let failures: Vec<String> = kernels
        .iter()
        .filter_map(|kernel| match run(kernel, &expected, 0) {
            Outcome::Match => None,
            other => Some(format!("{}: {other:?}", kernel.name)),
        })
        .collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), kernels.len(), failures.join("\n"));
}

#[test]
fn programs() {
    all_match("main");
}

/// Programs of many kinds, written after the machine was: nothing was tuned for them.
#[test]
fn unseen() {
    all_match("unseen");
}

#[test]
fn sweep() {
    all_match("sweep");
}

/// One language feature each: calls, recursion, function pointers, local arrays, atomics, locks, library math, ...
#[test]
fn features() {
    all_match("features");
}

/// Barriers in loops: four of the programs and six more, with biased branches, values that turn out uniform, repeated loads.
#[test]
fn optimizer() {
    all_match("optimizer");
}

#[test]
fn a_wrong_digest_is_noticed() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/main");
    let (kernels, mut expected) = load(&dir).expect("test data");
    let kernel = kernels.iter().find(|k| k.name == "transpose_naive").expect("a kernel");
    expected["transpose_naive"]["outputs"][0]["sha256"] = "0".repeat(64).into();
    assert!(matches!(run(kernel, &expected, 1), Outcome::Differs(_)));
}
