//! Machine code with a profile, and what becomes of it: `tests/filetests`. `BLESS=1` writes what is expected.
//!
//! ```text
//! # comment
//! registers 40                     what a version may use
//! code
//! loop:                            labels are places
//!     @P0 BRA loop
//! profile 1                        of this block
//! entries 64
//! branch 0x5 640 576 64 0          place: executions, taken, not taken, diverged
//! register 4 64 7                  number: executions in which it was this
//! loaded 0x3 64 7                  place of the load: the same
//! aligned 0x3 64 16                place of the load: executions, and of what all addresses are multiples
//! expect
//! ...
//! ```

mod common;

use common::{Job, assemble, blocks_of};
use optimizer::profile::{Access, Branch, Value, Where};
use optimizer::{Limits, Profile, Source, explain, optimize};
use simt::Shape;
use std::path::Path;

fn number(text: &str) -> u64 {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.unwrap_or_else(|_| panic!("`{text}` is no number"))
}

/// Optimizes what a file holds; everything before `expect`, and what should stand behind it.
fn run(text: &str) -> (String, String) {
    let given = text.split_once("\nexpect\n").map_or(text, |t| t.0);
    let (mut code, mut is_code) = (Vec::new(), false);
    let mut limits = Limits::default();
    let (mut block, mut profile) = (0, Profile::default());
    for line in given.lines().map(|l| l.split('#').next().unwrap_or("").trim()).filter(|l| !l.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["registers", n] => limits.registers = number(n) as u32,
            ["code"] => is_code = true,
            ["profile", n] => (is_code, block) = (false, number(n) as u32),
            _ if is_code => code.push(line.to_string()),
            ["entries", n] => profile.entries = number(n),
            ["branch", place, all, taken, not, parted] => {
                let [executions, taken, not_taken, diverged] = [all, taken, not, parted].map(number);
                let branch = Branch { executions, taken, not_taken, diverged, ..Branch::default() };
                profile.branches.insert(number(place) as u32, branch);
            }
            [kind @ ("register" | "loaded"), at, times, is] => {
                let at = number(at) as u32;
                let at = if kind == "register" { Where::Register(at as u8) } else { Where::Loaded(at) };
                let n = number(times);
                let value = Value { executions: n, uniform: n, last: number(is) as u32, same: n };
                profile.values.insert(at, value);
            }
            ["aligned", place, times, bytes] => {
                let access =
                    Access { executions: number(times), alignment: number(bytes), ..Access::default() };
                profile.accesses.insert(number(place) as u32, access);
            }
            _ => panic!("`{line}` is not understood"),
        }
    }
    let job = Job {
        image: assemble(&code),
        entry: 0,
        shape: Shape::new([1; 3], [common::THREADS, 1, 1]),
        params: Vec::new(),
    };
    let blocks = blocks_of(&job);
    let result = match optimize(&blocks, block, &profile, Source::Original, &limits) {
        Some(version) => explain(&blocks, &profile, &version),
        None => "nothing to gain\n".to_string(),
    };
    (given.to_string(), result)
}

#[test]
fn versions_are_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    files.sort();
    let mut wrong = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).expect("text");
        let (given, result) = run(&text);
        let now = format!("{given}\nexpect\n{result}");
        if now == text {
            continue;
        }
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(file, now).expect("write");
        } else {
            wrong.push(format!("{}:\n{result}", file.display()));
        }
    }
    assert!(!files.is_empty());
    assert!(wrong.is_empty(), "BLESS=1 rewrites these, if they are right:\n{}", wrong.join("\n"));
}
