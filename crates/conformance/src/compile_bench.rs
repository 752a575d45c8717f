//! How long modules take to compile, and how that grows with their length.
//!
//! What counts is the time that the compiler was on a core, the best of several rounds over all lengths: whatever else the host
//! does then weighs little, and not more on long modules than on short ones.

use crate::generate;
use driver::{CompileOptions, Source};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

/// Lengths that are measured, in lines about.
const SIZES: [usize; 6] = [1_000, 2_500, 5_000, 10_000, 20_000, 40_000];
/// The length with a target, and the seconds it may take.
const TARGET: (usize, f64) = (10_000, 2.0);
/// Growth is taken from here on: shorter modules measure fixed costs.
const GROWTH_FROM: usize = 5_000;
/// What measuring adds to an exponent at worst.
const NOISE: f64 = 0.1;
/// Rounds over all lengths.
const ROUNDS: usize = 4;

/// A kind of module that can be made in any length.
pub struct Kind {
    pub name: String,
    /// The text of a module of about so many lines.
    pub make: Box<dyn Fn(usize) -> String>,
}

/// One kind's times.
pub struct Row {
    pub name: String,
    /// Lines and seconds.
    pub times: Vec<(usize, f64)>,
}

impl Row {
    /// The exponent of growth: the slope of the line through the logarithms.
    pub fn exponent(&self) -> f64 {
        let points: Vec<(f64, f64)> = self
            .times
            .iter()
            .filter(|(lines, _)| *lines * 10 >= GROWTH_FROM * 9)
            .map(|&(lines, seconds)| ((lines as f64).ln(), seconds.max(1e-6).ln()))
            .collect();
        let n = points.len().max(1) as f64;
        let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
        let (above, below) = points
            .iter()
            .fold((0.0, 0.0), |(a, b), p| (a + (p.0 - x) * (p.1 - y), b + (p.0 - x) * (p.0 - x)));
        if below > 0.0 { above / below } else { 1.0 }
    }

    /// The exponent that n log n has over the same lengths.
    fn allowed(&self) -> f64 {
        let ideal = Row {
            name: String::new(),
            times: self.times.iter().map(|&(n, _)| (n, n as f64 * (n as f64).ln() * 1e-6)).collect(),
        };
        ideal.exponent() + NOISE
    }

    /// Seconds for the length with a target.
    pub fn at_target(&self) -> f64 {
        let near = self.times.iter().min_by_key(|(lines, _)| lines.abs_diff(TARGET.0));
        near.map_or(0.0, |&(lines, seconds)| seconds * TARGET.0 as f64 / lines.max(1) as f64)
    }

    pub fn is_met(&self) -> bool {
        self.at_target() < TARGET.1 && self.exponent() <= self.allowed()
    }

    /// The times, as a line for people.
    pub fn line(&self) -> String {
        let mut out = format!("{:<12}", self.name);
        for (lines, seconds) in &self.times {
            let _ = write!(out, "  {lines:>6} {seconds:>7.3} s");
        }
        let rate = self.times.last().map_or(0.0, |&(lines, seconds)| lines as f64 / seconds);
        let met = if self.is_met() { "" } else { "  MISSED" };
        let _ = writeln!(
            out,
            "  {rate:>9.0} lines/s, n^{:.2} (n log n: n^{:.2}){met}",
            self.exponent(),
            self.allowed() - NOISE
        );
        out
    }
}

/// The closing line.
pub fn summary(rows: &[Row]) -> String {
    let worst = |f: fn(&Row) -> f64| rows.iter().max_by(|a, b| f(a).total_cmp(&f(b)));
    let (Some(slowest), Some(steepest)) = (worst(Row::at_target), worst(Row::exponent)) else {
        return "compile: no kind of module has that name\n".into();
    };
    format!(
        "compile: {} lines in {:.2} s at most ({}; target {} s), growth n^{:.2} at most ({}; n log n is n^{:.2})\n",
        TARGET.0,
        slowest.at_target(),
        slowest.name,
        TARGET.1,
        steepest.exponent(),
        steepest.name,
        steepest.allowed() - NOISE
    )
}

pub fn json(rows: &[Row]) -> Value {
    let row = |r: &Row| {
        let times: Vec<Value> =
            r.times.iter().map(|(lines, seconds)| json!({ "lines": lines, "seconds": seconds })).collect();
        json!({
            "kind": r.name, "times": times, "seconds_for_10000": r.at_target(), "exponent": r.exponent(),
            "allowed_exponent": r.allowed(), "met": r.is_met(),
        })
    };
    json!({ "kinds": rows.iter().map(row).collect::<Vec<_>>(), "summary": summary(rows).trim() })
}

/// Seconds that this thread was on a core so far; `None` where the host does not say.
pub(crate) fn seconds_on_core() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds as f64 * 1e-9)
}

/// Seconds over which short work is repeated: hosts count the time on a core in steps of some milliseconds.
const LEAST: f64 = 0.1;

/// The seconds that `work` takes this thread.
fn timed(mut work: impl FnMut() -> Result<(), String>) -> Result<f64, String> {
    let (start, core) = (Instant::now(), seconds_on_core());
    for count in 1.. {
        work()?;
        let elapsed = start.elapsed().as_secs_f64();
        let on_core = core.and_then(|from| Some(seconds_on_core()? - from)).unwrap_or(elapsed);
        if on_core >= LEAST {
            return Ok(on_core / f64::from(count));
        }
    }
    Err("work that takes no time".into())
}

/// Compiles modules of every length several times, of which the best counts.
pub fn measure(kind: &Kind, options: &CompileOptions, most: usize) -> Result<Row, String> {
    let mut sources = Vec::new();
    for size in SIZES.into_iter().filter(|&n| n <= most) {
        let text = (kind.make)(size);
        let lines = text.lines().count();
        sources.push((lines, Source::new(format!("{}.ptx", kind.name), text.into_bytes())));
    }
    let mut times: Vec<(usize, f64)> = sources.iter().map(|&(lines, _)| (lines, f64::INFINITY)).collect();
    for _ in 0..ROUNDS {
        for ((lines, source), (_, best)) in sources.iter().zip(&mut times) {
            let fail = |p| format!("{} of {lines} lines: {p}", kind.name);
            let seconds = timed(|| driver::compile(source, options).map(drop).map_err(fail))?;
            *best = best.min(seconds);
        }
    }
    Ok(Row { name: kind.name.clone(), times })
}

const HEADER: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\n";
const PROLOGUE: &str = "  .reg .pred %p<4>;\n  .reg .b32 %r<64>;\n  .reg .b64 %q<8>;\n  .reg .f32 %f<64>;\n  ld.param.u64 %q0, [out];\n  \
     ld.param.u32 %r63, [n];\n  mov.u32 %r62, %tid.x;\n  mul.wide.u32 %q1, %r62, 256;\n  add.u64 %q0, %q0, %q1;\n";

/// A kernel with registers set: the body may use `%r0` to `%r31`, `%f0` to `%f31`, the address `%q0` and the number `%r63`.
fn kernel(name: &str, body: &str) -> String {
    let mut out = format!(".visible .entry {name}(.param .u64 out, .param .u32 n)\n{{\n{PROLOGUE}");
    for k in 0..32 {
        let _ = writeln!(out, "  add.u32 %r{k}, %r62, {k};\n  cvt.rn.f32.u32 %f{k}, %r{k};");
    }
    out += body;
    for k in 0..32 {
        let _ = writeln!(
            out,
            "  st.global.u32 [%q0+{}], %r{k};\n  st.global.f32 [%q0+{}], %f{k};",
            4 * k,
            128 + 4 * k
        );
    }
    out + "  ret;\n}\n\n"
}

/// An operation on registers that `n` chooses.
fn operation(n: usize) -> String {
    let draw = driver::init::splitmix(77, n as u64);
    let r = |k: u32| (draw >> (5 * k)) & 31;
    let (a, b, c, d) = (r(0), r(1), r(2), r(3));
    match (draw >> 40) % 8 {
        0 => format!("  add.u32 %r{a}, %r{b}, %r{c};\n"),
        1 => format!("  mad.lo.u32 %r{a}, %r{b}, %r{c}, %r{d};\n"),
        2 => format!("  xor.b32 %r{a}, %r{b}, {};\n", draw >> 44),
        3 => format!("  shl.b32 %r{a}, %r{b}, {};\n", r(4)),
        4 => format!("  mul.f32 %f{a}, %f{b}, %f{c};\n"),
        5 => format!("  add.f32 %f{a}, %f{b}, %f{c};\n"),
        6 => format!("  ld.global.f32 %f{a}, [%q0+{}];\n", 4 * r(4)),
        _ => format!("  st.global.u32 [%q0+{}], %r{b};\n", 4 * r(4)),
    }
}

fn repeat(lines: usize, mut part: impl FnMut(usize) -> String) -> String {
    let (mut out, mut count, mut n) = (String::new(), 0, 0);
    while count < lines {
        let text = part(n);
        count += text.lines().count();
        n += 1;
        out += &text;
    }
    out
}

fn straight(lines: usize) -> String {
    HEADER.to_owned() + &kernel("straight", &repeat(lines.saturating_sub(150), operation))
}

/// Each line needs the one before.
fn chain(lines: usize) -> String {
    let part = |n: usize| match n % 3 {
        0 => "  mad.lo.u32 %r0, %r0, %r1, %r2;\n".to_owned(),
        1 => format!("  xor.b32 %r0, %r0, {n};\n"),
        _ => "  add.u32 %r0, %r0, %r3;\n".to_owned(),
    };
    HEADER.to_owned() + &kernel("chain", &repeat(lines.saturating_sub(150), part))
}

/// Short branches, one after the other.
fn branches(lines: usize) -> String {
    let part = |n: usize| {
        format!(
            "  setp.lt.u32 %p1, %r{}, %r{};\n  @%p1 bra L{n};\n{}{}L{n}:\n{}",
            n % 32,
            (n + 7) % 32,
            operation(3 * n),
            operation(3 * n + 1),
            operation(3 * n + 2)
        )
    };
    HEADER.to_owned() + &kernel("branches", &repeat(lines.saturating_sub(150), part))
}

/// Branches in branches, as deep as the module is long.
fn nested(lines: usize) -> String {
    let depth = lines.saturating_sub(150) / 4;
    let mut body = String::new();
    for n in 0..depth {
        let _ = write!(
            body,
            "  setp.lt.u32 %p1, %r{}, %r{};\n  @%p1 bra L{n};\n{}",
            n % 32,
            (n + 5) % 32,
            operation(n)
        );
    }
    (0..depth).rev().for_each(|n| {
        let _ = writeln!(body, "L{n}:");
    });
    HEADER.to_owned() + &kernel("nested", &body)
}

/// Loops that unroll, with known and unknown numbers of iterations.
fn loops(lines: usize) -> String {
    let part = |n: usize| {
        let limit = if n.is_multiple_of(2) { "%r63".to_owned() } else { (3 + n % 9).to_string() };
        format!(
            "  mov.u32 %r40, 0;\nL{n}:\n{}{}{}  add.u32 %r40, %r40, 1;\n  setp.lt.u32 %p1, %r40, {limit};\n  @%p1 bra L{n};\n",
            operation(3 * n),
            operation(3 * n + 1),
            operation(3 * n + 2)
        )
    };
    HEADER.to_owned() + &kernel("loops", &repeat(lines.saturating_sub(150), part))
}

/// Loops that test at their top and exchange values among lanes.
fn whiles(lines: usize) -> String {
    let part = |n: usize| {
        format!(
            "  mov.u32 %r40, 0;\nW{n}:\n  setp.ge.u32 %p1, %r40, %r63;\n  @%p1 bra D{n};\n{}{}\
             \x20 shfl.sync.bfly.b32 %r41, %r{}, 1, 31, -1;\n  add.u32 %r{}, %r{}, %r41;\n  \
             add.u32 %r40, %r40, 1;\n  bra W{n};\nD{n}:\n",
            operation(2 * n),
            operation(2 * n + 1),
            n % 32,
            n % 32,
            n % 32,
        )
    };
    HEADER.to_owned() + &kernel("whiles", &repeat(lines.saturating_sub(150), part))
}

/// One loop with many ways to go on and to leave it.
fn exits(lines: usize) -> String {
    let part = |n: usize| {
        let to = ["NEXT", "DONE", "AFTER"][n % 3];
        format!(
            "{}  setp.eq.u32 %p1, %r62, {n};\n  @%p1 bra {to};\n{}",
            operation(2 * n),
            operation(2 * n + 1)
        )
    };
    let body = repeat(lines.saturating_sub(160), part);
    let body = format!(
        "  mov.u32 %r40, 0;\nLOOP:\n{body}NEXT:\n  add.u32 %r40, %r40, 1;\n  setp.lt.u32 %p1, %r40, %r63;\n  \
         @%p1 bra LOOP;\nDONE:\n  add.u32 %r0, %r0, 1;\nAFTER:\n"
    );
    HEADER.to_owned() + &kernel("exits", &body)
}

/// Small functions, each called once, and small kernels.
fn functions(lines: usize) -> String {
    let part = |n: usize| {
        format!(
            ".func (.param .b32 r) f{n}(.param .b32 a)\n{{\n  .reg .b32 %r<3>;\n  ld.param.u32 %r0, [a];\n  \
             mad.lo.u32 %r1, %r0, {n}, 5;\n  st.param.b32 [r], %r1;\n  ret;\n}}\n\
             .visible .entry k{n}(.param .u64 out)\n{{\n  .reg .b32 %r<3>;\n  .reg .b64 %q<2>;\n  \
             ld.param.u64 %q0, [out];\n  mov.u32 %r0, %tid.x;\n  {{\n  .param .b32 a, r;\n  st.param.b32 [a], %r0;\n  \
             call.uni (r), f{n}, (a);\n  ld.param.b32 %r1, [r];\n  }}\n  st.global.u32 [%q0], %r1;\n  ret;\n}}\n"
        )
    };
    HEADER.to_owned() + &repeat(lines, part)
}

/// Random kernels, one after the other.
fn random(lines: usize) -> String {
    let part = |n: usize| copy_of(&generate::kernel(n as u64).text, n);
    HEADER.to_owned() + &repeat(lines, part)
}

/// Whether a byte can stand in a name.
fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%')
}

/// A program without its header and line information, and with names of its own, so that several fit in a module.
fn copy_of(text: &str, number: usize) -> String {
    let mut names = BTreeSet::new();
    let mut depth = 0;
    let mut body = String::new();
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default();
        let first = line.trim_start();
        let directive = first.split_whitespace().next().unwrap_or_default();
        if [".version", ".target", ".address_size", ".file", ".loc", ".pragma"].contains(&directive) {
            continue;
        }
        if first.starts_with(".section") {
            break;
        }
        if depth == 0
            && (first.contains(".entry")
                || first.contains(".func")
                || first.contains('[')
                || first.contains(".global"))
        {
            let head = line.split('{').next().unwrap_or_default();
            names.extend(
                head.split(|c| !in_name(c))
                    .filter(|w| w.len() > 2 && !w.starts_with(|c: char| c.is_ascii_digit())),
            );
        }
        depth += line.matches('{').count() as i32 - line.matches('}').count() as i32;
        body += line;
        body.push('\n');
    }
    let mut out = String::new();
    let mut rest = body.as_str();
    while let Some(at) = rest.find(in_name) {
        let end = rest[at..].find(|c| !in_name(c)).map_or(rest.len(), |n| at + n);
        let is_directive = rest[..at].ends_with('.');
        out += &rest[..end];
        if !is_directive && names.contains(&rest[at..end]) {
            let _ = write!(out, "_{number}");
        }
        rest = &rest[end..];
    }
    out + rest
}

/// The kinds that can be made; programs of a directory, repeated, are one more.
pub fn kinds(directory: Option<&Path>) -> Result<Vec<Kind>, String> {
    let made: [(&str, fn(usize) -> String); 9] = [
        ("straight", straight),
        ("chain", chain),
        ("branches", branches),
        ("nested", nested),
        ("loops", loops),
        ("whiles", whiles),
        ("exits", exits),
        ("functions", functions),
        ("random", random),
    ];
    let mut kinds: Vec<Kind> =
        made.into_iter().map(|(name, make)| Kind { name: name.into(), make: Box::new(make) }).collect();
    if let Some(directory) = directory {
        let folder = directory.join("ptx");
        let fail = |e: std::io::Error| format!("{}: {e}", folder.display());
        let mut files: Vec<_> =
            std::fs::read_dir(&folder).map_err(fail)?.filter_map(|e| Some(e.ok()?.path())).collect();
        files.retain(|f| f.extension().is_some_and(|e| e == "ptx"));
        files.sort();
        let texts: Vec<String> =
            files.iter().map(std::fs::read_to_string).collect::<Result<_, _>>().map_err(fail)?;
        // A program with something that is not built yet says nothing about time.
        let compiles = |t: &String| {
            driver::compile(&Source::new("a.ptx", t.as_bytes()), &CompileOptions::default()).is_ok()
        };
        let texts: Vec<String> = texts.into_iter().filter(compiles).collect();
        if texts.is_empty() {
            return Err(format!("{} has no programs", folder.display()));
        }
        let header = ".version 9.0\n.target sm_90\n.address_size 64\n\n";
        let make = move |lines| header.to_owned() + &repeat(lines, |n| copy_of(&texts[n % texts.len()], n));
        kinds.push(Kind { name: "programs".into(), make: Box::new(make) });
    }
    Ok(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_every_kind_compile() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/main");
        for kind in kinds(Some(&data)).expect("test data") {
            let text = (kind.make)(1500);
            assert!((1200..4000).contains(&text.lines().count()), "{}", kind.name);
            let source = Source::new("a.ptx", text.as_bytes());
            let image =
                driver::compile(&source, &CompileOptions { opt_level: 1, ..CompileOptions::default() });
            assert!(image.is_ok(), "{}: {}", kind.name, image.err().map_or(String::new(), |p| p.to_string()));
        }
    }

    #[test]
    fn growth_is_the_exponent() {
        let times = |f: fn(f64) -> f64| SIZES.iter().map(|&n| (n, f(n as f64))).collect();
        let square = Row { name: "square".into(), times: times(|n| n * n * 1e-9) };
        assert!((square.exponent() - 2.0).abs() < 1e-9 && !square.is_met());
        let fine = Row { name: "fine".into(), times: times(|n| n * n.ln() * 1e-6) };
        assert!(fine.is_met());
    }
}
