//! Files under `filetests`: input and expectation in one file. `BLESS=1` rewrites the expectations in place.
//!
//! - `errors/`: `// error: message` at the end of the line it is about, `// error@+1: message` one line above it.
//!   All errors must be expected, in full.
//! - `parse/`: no errors; the lines that begin with `//> ` are the printed module.
//! - `kernels/`: compiler output; no errors. Printing and parsing again changes nothing, here and in `parse/`.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

fn files(kind: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests").join(kind);
    let mut list: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    list.sort();
    assert!(!list.is_empty());
    list
}

fn bless() -> bool {
    std::env::var_os("BLESS").is_some()
}

/// Errors as (line, message).
fn errors(source: &[u8]) -> Vec<(u32, String)> {
    let lines = ptx::LineIndex::new(source);
    let parse = ptx::check(source);
    parse
        .diagnostics
        .iter()
        .map(|d| {
            let mut message = d.message.clone();
            if let Some(help) = &d.help {
                let _ = write!(message, " ({help})");
            }
            (lines.locate(d.span.start).line, message)
        })
        .collect()
}

fn expected_errors(text: &str) -> Vec<(u32, String)> {
    let mut list = Vec::new();
    for (line, text) in (1u32..).zip(text.lines()) {
        for part in text.split("// error").skip(1) {
            let (shift, message) = part.split_once(": ").unwrap();
            let shift: i32 = shift.strip_prefix('@').map_or(0, |n| n.parse().unwrap());
            list.push((line.checked_add_signed(shift).unwrap(), message.trim().to_string()));
        }
    }
    list.sort();
    list
}

/// The text with the errors that occur in place of the expected ones.
fn with_errors(text: &str, errors: &[(u32, String)]) -> String {
    let mut out = String::new();
    for (line, text) in (1u32..).zip(text.lines()) {
        out.push_str(text.split("// error").next().unwrap().trim_end());
        for (at, message) in errors {
            // A remark inside an open string or comment would become part of it.
            let open = message.contains("no closing quote") || message.contains("no end");
            if *at == line && !open {
                let _ = write!(out, " // error: {message}");
            } else if *at == line + 1 && open {
                let _ = write!(out, " // error@+1: {message}");
            }
        }
        out.push('\n');
    }
    out
}

#[test]
fn errors_are_reported_at_their_lines() {
    for path in files("errors") {
        let mut text = fs::read_to_string(&path).unwrap();
        if bless() {
            text = with_errors(&text, &errors(text.as_bytes()));
            fs::write(&path, &text).unwrap();
        }
        let mut found = errors(text.as_bytes());
        found.sort();
        assert_eq!(found, expected_errors(&text), "{}", path.display());
        assert!(!found.is_empty(), "{} has no errors", path.display());
    }
}

fn assert_clean(path: &Path, source: &[u8]) -> String {
    let parse = ptx::check(source);
    let lines = ptx::LineIndex::new(source);
    let rendered: String =
        parse.diagnostics.iter().map(|d| d.render(&path.display().to_string(), &lines)).collect();
    assert!(parse.diagnostics.is_empty(), "{rendered}");
    ptx::print::print(&parse.module)
}

#[test]
fn modules_parse_and_print() {
    for path in files("parse").into_iter().chain(files("kernels")) {
        let text = fs::read_to_string(&path).unwrap();
        let printed = assert_clean(&path, text.as_bytes());
        assert_eq!(assert_clean(&path, printed.as_bytes()), printed, "{}", path.display());
        if path.parent().is_some_and(|folder| folder.ends_with("kernels")) {
            continue;
        }
        let expectation: String = printed.lines().map(|line| format!("//> {line}\n")).collect();
        let (input, expected) = text.split_at(text.find("//> ").unwrap_or(text.len()));
        if bless() {
            fs::write(&path, format!("{}\n\n{expectation}", input.trim_end())).unwrap();
        } else {
            assert_eq!(expected, expectation, "{}", path.display());
        }
    }
}
