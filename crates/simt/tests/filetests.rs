//! Runs every `tests/filetests/*.wl` on every level, with one and several threads, and step by step.
//! `BLESS=1` rewrites what they expect.

mod common;

use common::{Case, ways};
use std::fs;
use std::path::Path;

#[test]
fn filetests() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("the folder")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "wl"))
        .collect();
    files.sort();
    assert!(files.len() >= 10, "where are the cases?");
    let mut failures = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).expect("a text");
        let (program, expected) = text.split_once("\nexpect\n").unwrap_or((&text, ""));
        let case = Case::parse(&text);
        let mut expected = expected.to_string();
        for (n, how) in ways().into_iter().enumerate() {
            let found = case.run(how);
            if n == 0 && std::env::var_os("BLESS").is_some() {
                fs::write(&path, format!("{}\nexpect\n{found}", program.trim_end())).expect("write");
                expected = found.clone();
            }
            if found != expected {
                failures.push(format!(
                    "{}, {how:?}:\n--- expected\n{expected}--- found\n{found}",
                    path.display()
                ));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
