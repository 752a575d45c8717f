//! No input makes the front end panic or hang: token soup, damaged modules, deep nesting, noise. The generator has a
//! fixed seed, so that a failure stays.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// Everything the front end does with a source.
fn exercise(source: &[u8]) -> usize {
    let parse = ptx::check(source);
    let lines = ptx::LineIndex::new(source);
    for diagnostic in &parse.diagnostics {
        assert!(diagnostic.span.start <= diagnostic.span.end);
        assert!(diagnostic.span.end as usize <= source.len());
        let _ = diagnostic.render("noise", &lines);
    }
    assert!(parse.diagnostics.len() <= ptx::diagnostic::MAX_ERRORS + 1);
    let printed = ptx::print::print(&parse.module);
    if !parse.has_errors() {
        let again = ptx::parse(printed.as_bytes());
        assert!(!again.has_errors(), "{printed}");
        assert_eq!(ptx::print::print(&again.module), printed);
    }
    parse.diagnostics.len()
}

fn valid_modules() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let mut paths: Vec<_> = ["parse", "kernels"]
        .iter()
        .flat_map(|kind| fs::read_dir(root.join(kind)).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

#[test]
fn token_soup() {
    const TOKENS: &[&str] = &[
        "add",
        ".s32",
        "%r1",
        ",",
        ";",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        "@",
        "!",
        "%p",
        "0x12",
        "1.5",
        "0f3F800000",
        ".reg",
        ".entry",
        ".func",
        ".param",
        "<",
        ">",
        "=",
        "+",
        "-",
        "*",
        "?",
        ":",
        "|",
        "_",
        "\"s\"",
        "\"",
        "\n",
        ".version",
        "8.0",
        ".target",
        "sm_90",
        ".global",
        ".b8",
        "x",
        "call",
        "bra",
        ".loc",
        "1",
        ".section",
        "~",
        ".align",
        "generic",
        "WARP_SZ",
        ".visible",
        "L:",
        ".callprototype",
        "/*",
        "*/",
        "//",
        ".v4",
        ".2d",
        "<<",
        "&&",
    ];
    let mut random = Random(1);
    for _ in 0..3000 {
        let mut text = String::new();
        if random.below(2) == 0 {
            text.push_str(".version 8.0\n.target sm_90\n.entry k()\n{\n");
        }
        for _ in 0..random.below(120) {
            text.push_str(TOKENS[random.below(TOKENS.len())]);
            if random.below(3) > 0 {
                text.push(' ');
            }
        }
        exercise(text.as_bytes());
    }
}

#[test]
fn damaged_modules() {
    let modules = valid_modules();
    let mut random = Random(2);
    for _ in 0..2000 {
        let mut text = modules[random.below(modules.len())].clone();
        for _ in 0..=random.below(6) {
            let at = random.below(text.len());
            match random.below(5) {
                0 => {
                    text.remove(at);
                }
                1 => text.insert(at, text[at]),
                2 => {
                    let other = random.below(text.len());
                    text.swap(at, other);
                }
                3 => text[at] = random.next() as u8,
                _ => {
                    let end = (at + random.below(40)).min(text.len());
                    text.drain(at..end);
                }
            }
            if text.is_empty() {
                text.push(b' ');
            }
        }
        exercise(&text);
    }
}

#[test]
fn every_prefix_of_a_module() {
    let module = valid_modules().swap_remove(0);
    for end in 0..module.len() {
        exercise(&module[..end]);
    }
}

#[test]
fn random_bytes_are_given_up_early() {
    let mut random = Random(3);
    let noise: Vec<u8> = (0..4 << 20).map(|_| 1 + (random.next() % 255) as u8).collect();
    assert_eq!(exercise(&noise), ptx::diagnostic::MAX_ERRORS + 1);
    assert_eq!(exercise(&[0; 1 << 20]), 1);
    assert_eq!(exercise(&[b'\n'; 1 << 20]), 1);
    assert!(exercise(&[b'a'; 1 << 20]) > 0);
}

#[test]
fn deep_nesting_is_an_error() {
    let head = ".version 8.0\n.target sm_90\n.entry k()\n{\n";
    for deep in [
        "{",
        "mov.u32 r, (",
        "mov.u32 r, -",
        "mov.u32 r, {",
        "call (",
        "mov.u32 r, 1+",
        "mov.u32 r, 1?",
        "[a, [",
    ] {
        let body: String = deep.to_string() + &deep[deep.len() - 1..].repeat(100_000);
        assert!(exercise(format!("{head}{body}").as_bytes()) > 0);
    }
    for deep in [".global .u32 x = {", ".global .u32 x = generic(", ".global .u32 x = 0xff("] {
        let last = deep.rsplit(' ').next().unwrap();
        let body: String = deep.to_string() + &last.repeat(100_000);
        assert!(exercise(format!(".version 8.0\n.target sm_90\n{body}").as_bytes()) > 0);
    }
    let sum = "1+".repeat(100_000);
    assert!(exercise(format!("{head} mov.u32 r, {sum}1;\n}}").as_bytes()) > 0);
}
