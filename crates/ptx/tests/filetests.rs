//! Files under `filetests`: input and expectation in one file. `BLESS=1` rewrites the expectations in place.
//!
//! - `errors/`: `// error: message` at the end of the line it is about, `// error@+1: message` one line above it.
//!   All errors must be expected, in full.
//! - `parse/`: no errors; the lines that begin with `//> ` are the printed module.
//! - `lower/`: no errors; the lines that begin with `//> ` are the ir.
//! - `lower_errors/`: like `errors/`, for what parses well and cannot be lowered.
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

/// Errors of checking a module.
fn check_errors(source: &[u8]) -> Vec<(u32, String)> {
    errors(source, &ptx::check(source).diagnostics)
}

/// Errors of lowering a module, which checks it first.
fn lower_errors(source: &[u8]) -> Vec<(u32, String)> {
    ptx::to_ir("test", source).err().map_or(Vec::new(), |diagnostics| errors(source, &diagnostics))
}

/// Errors as (line, message).
fn errors(source: &[u8], diagnostics: &[ptx::Diagnostic]) -> Vec<(u32, String)> {
    let lines = ptx::LineIndex::new(source);
    diagnostics
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
    assert_errors("errors", check_errors);
}

#[test]
fn what_cannot_be_lowered_is_reported_at_its_line() {
    assert_errors("lower_errors", lower_errors);
}

fn assert_errors(kind: &str, errors: fn(&[u8]) -> Vec<(u32, String)>) {
    for path in files(kind) {
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
        assert_expectation(&path, &text, &printed);
    }
}

#[test]
fn instructions_lower_to_ir() {
    for path in files("lower") {
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(lower_errors(text.as_bytes()), [], "{}", path.display());
        let module = ptx::to_ir("test", text.as_bytes()).unwrap();
        ir::validate(&module).unwrap();
        let printed: Vec<String> = module.functions.iter().map(|f| f.to_string()).collect();
        assert_expectation(&path, &text, &printed.join("\n"));
    }
}

/// The lines of `printed` stand behind `//> ` at the end of the file.
fn assert_expectation(path: &Path, text: &str, printed: &str) {
    let expectation: String =
        printed.lines().map(|line| format!("{}\n", format!("//> {line}").trim_end())).collect();
    let (input, expected) = text.split_at(text.find("//> ").unwrap_or(text.len()));
    if bless() {
        fs::write(path, format!("{}\n\n{expectation}", input.trim_end())).unwrap();
    } else {
        assert_eq!(expected, expectation, "{}", path.display());
    }
}
