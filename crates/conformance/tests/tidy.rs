//! The invariants of ARCHITECTURE.md that can be checked by reading the repository.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files past the limit that are tables: one row an instruction, a form or a constant.
const LONG_TABLES: [&str; 3] =
    ["crates/arith/src/mufu_tables.rs", "crates/cuda/src/table.rs", "crates/isa/src/table.rs"];
const MAX_LINES: usize = 800;

/// Which of our crates each may use. A crate that is not named may use all.
const MAY_USE: [(&str, &[&str]); 16] = [
    ("arith", &[]),
    ("isa", &[]),
    ("ir", &[]),
    ("ptx", &["ir"]),
    ("compiler", &["arith", "ir", "isa"]),
    ("simt", &["arith", "isa"]),
    ("optimizer", &["arith", "isa", "simt"]),
    ("trace", &["isa"]),
    ("machine", &["isa", "optimizer", "simt", "trace"]),
    ("driver", &["arith", "compiler", "ir", "isa", "machine", "optimizer", "ptx", "simt", "trace"]),
    ("cudaabi", &[]),
    ("cuda", &["cudaabi", "driver"]),
    ("cudart", &["cudaabi"]),
    ("cudart12", &["cudart"]),
    ("cudart13", &["cudart"]),
    ("nvjitlink", &["driver"]),
];
/// Crates that are commands: they print.
const COMMANDS: [&str; 2] = ["cli", "conformance"];
/// The files of libraries that print: a driver has no other way to say why a kernel failed.
const LOGS: [&str; 2] = ["crates/cuda/src/log.rs", "crates/cudart/src/log.rs"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn rust_files() -> Vec<(String, String)> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && path.file_name().is_none_or(|n| n != "target") {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join("crates"), &mut found);
    walk(&root().join("fuzz"), &mut found);
    found.sort();
    let relative = |p: &Path| p.strip_prefix(root()).expect("inside").to_string_lossy().replace('\\', "/");
    found.iter().map(|p| (relative(p), std::fs::read_to_string(p).expect("text"))).collect()
}

/// Fails with a list of everything that is wrong.
fn assert_none(rule: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{rule}:\n{}", wrong.join("\n"));
}

/// Lines with their numbers, without comments and strings as far as a line alone tells.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, String)> {
    text.lines().enumerate().map(|(n, line)| {
        let mut out = String::new();
        let (mut in_string, mut escaped) = (false, false);
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '/' if !in_string && chars.peek() == Some(&'/') => break,
                '"' if !escaped => in_string = !in_string,
                _ if !in_string => out.push(c),
                _ => {}
            }
            escaped = c == '\\' && !escaped;
        }
        (n + 1, out)
    })
}

#[test]
fn every_file_says_what_it_is() {
    let wrong: Vec<String> = rust_files()
        .into_iter()
        .filter(|(_, text)| !text.starts_with("//! "))
        .map(|(name, _)| name)
        .collect();
    assert_none("a file opens with `//!` and what it is", &wrong);
}

#[test]
fn files_are_short() {
    let wrong: Vec<String> = rust_files()
        .iter()
        .filter(|(name, _)| !LONG_TABLES.contains(&name.as_str()))
        .map(|(name, text)| (name, text.lines().count()))
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(name, lines)| format!("{name}: {lines} lines"))
        .collect();
    assert_none("a file past 800 lines wants a split", &wrong);
}

#[test]
fn nothing_is_left_to_do() {
    let words = ["todo!(", "unimplemented!(", "dbg!("];
    let mut wrong = Vec::new();
    for (name, text) in rust_files() {
        for (n, line) in code_lines(&text) {
            if words.iter().any(|w| line.contains(w)) {
                wrong.push(format!("{name}:{n}"));
            }
        }
    }
    assert_none("no placeholders", &wrong);
}

#[test]
fn libraries_print_nothing() {
    let words = ["println!(", "print!(", "eprintln!(", "eprint!(", "io::stderr(", "io::stdout("];
    let mut wrong = Vec::new();
    for (name, text) in rust_files() {
        let is_library = name.contains("/src/")
            && !LOGS.contains(&name.as_str())
            && !COMMANDS.iter().any(|c| name.starts_with(&format!("crates/{c}/")));
        for (n, line) in code_lines(&text) {
            if is_library && words.iter().any(|w| line.contains(w)) {
                wrong.push(format!("{name}:{n}"));
            }
        }
    }
    assert_none("libraries print nothing", &wrong);
}

#[test]
fn unsafe_code_says_why_it_is_sound() {
    let mut wrong = Vec::new();
    for (name, text) in rust_files() {
        let lines: Vec<&str> = text.lines().collect();
        for (n, line) in code_lines(&text) {
            let is_block = line.contains("unsafe {") || line.contains("unsafe impl");
            let argued =
                lines[n.saturating_sub(12)..n].iter().any(|l| l.contains("SAFETY") || l.contains("# Safety"));
            if is_block && !argued {
                wrong.push(format!("{name}:{n}"));
            }
        }
    }
    assert_none("an unsafe block has a SAFETY comment above it", &wrong);
}

#[test]
fn nothing_outside_the_repository_is_read() {
    let mut wrong = Vec::new();
    for (name, text) in rust_files() {
        for (n, line) in text.lines().enumerate() {
            // Split, so that this file does not hold what it looks for.
            if [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")]
                .iter()
                .any(|w| line.contains(w))
            {
                wrong.push(format!("{name}:{}", n + 1));
            }
        }
    }
    assert_none("no paths of one machine", &wrong);
}

/// Names of our crates in the `[dependencies]` of each crate.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(root().join("crates")).expect("crates") {
        let path = entry.expect("an entry").path();
        let Ok(text) = std::fs::read_to_string(path.join("Cargo.toml")) else { continue };
        let table: toml::Table = text.parse().expect("TOML");
        let uses = table.get("dependencies").and_then(|d| d.as_table()).cloned().unwrap_or_default();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        all.insert(name, uses.keys().cloned().collect::<Vec<_>>());
    }
    let ours: Vec<String> = all.keys().cloned().collect();
    for uses in all.values_mut() {
        uses.retain(|u| ours.contains(u));
    }
    all
}

#[test]
fn crates_use_only_what_they_may() {
    let mut wrong = Vec::new();
    let all = dependencies();
    for (name, allowed) in MAY_USE {
        for used in &all[name] {
            if !allowed.contains(&used.as_str()) {
                wrong.push(format!("{name} uses {used}"));
            }
        }
    }
    assert_none("layers", &wrong);
}

#[test]
fn only_the_shim_knows_cuda() {
    let mut wrong = Vec::new();
    for (name, text) in rust_files() {
        for (n, line) in code_lines(&text) {
            if !name.starts_with("crates/cuda/") && (line.contains("CUDA_ERROR") || line.contains("CUresult"))
            {
                wrong.push(format!("{name}:{n}"));
            }
        }
    }
    assert_none("result codes of CUDA stay in `cuda`", &wrong);
}

#[test]
fn the_readme_tells_what_ci_runs() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("README.md");
    let ci = std::fs::read_to_string(root().join(".ci/run")).expect(".ci/run");
    let commands: Vec<&str> =
        readme.lines().map(str::trim).filter(|l| l.starts_with("cargo ") && !l.contains("FILE")).collect();
    assert!(commands.len() >= 2, "the README has a command that runs an example and one that tests");
    let wrong: Vec<String> =
        commands.iter().filter(|c| !ci.contains(**c)).map(|c| format!("`{c}` is not in .ci/run")).collect();
    assert_none("CI runs the README's commands", &wrong);
}

#[test]
fn the_root_documents_exist() {
    for name in
        ["README.md", "ARCHITECTURE.md", "DEVIATIONS.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"]
    {
        assert!(root().join(name).is_file(), "{name} is missing");
    }
}
