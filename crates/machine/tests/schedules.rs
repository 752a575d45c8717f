//! Choices of the schedulers, cycle by cycle: each file of `schedules/` has changes to `tiny`, a launch, a program and the
//! choices that are made, with comments that work them out by hand. `BLESS=1` rewrites the choices, not the comments.
//!
//! A line is a choice: its cycle (the first is 0), the pod where there are several, the warp and the place of its
//! instruction. Then, warp by warp: what state it was in (`*` issued, `a` could have issued, `g` waits for the grant, `o` is
//! outside the window, `.` none of these), credits and the fund before the issue, weights of those that could issue,
//! the grant before the issue, and TILE.PHASE.TEX of each warp.

use isa::image::{Function, Image};
use machine::Config;
use machine::ppu::{Ppu, RunOptions, Timed};
use machine::sm::Policy;
use machine::sm::policy::{Accesses, Choice};
use simt::{Isa, Launch, Memory, Program, Shape};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file's parts.
#[derive(Default)]
struct File {
    /// All lines up to the choices, as they are.
    head: String,
    config: String,
    ctas: u32,
    warps: u32,
    /// Choices that are shown.
    shown: usize,
    code: Vec<String>,
    choices: String,
}

fn read(text: &str) -> File {
    let mut file = File::default();
    let mut part = "";
    for line in text.lines() {
        let bare = line.split('#').next().unwrap_or("").trim();
        let words: Vec<&str> = bare.split_whitespace().collect();
        let number = |n: usize| words.get(n).and_then(|w| w.parse().ok()).unwrap_or(0);
        match words.first() {
            Some(&"config") => part = "config",
            Some(&"launch") => (file.ctas, file.warps) = (number(1), number(2)),
            Some(&"code") => part = "code",
            Some(&"choices") => (part, file.shown) = ("choices", number(1) as usize),
            Some(_) if part == "config" => file.config += &format!("{bare}\n"),
            // Many of one instruction.
            Some(&"repeat") if part == "code" => {
                file.code.extend((0..number(1)).map(|_| words[2..].join(" ")));
            }
            Some(_) if part == "code" => file.code.push(bare.into()),
            _ => {}
        }
        let is_choice = part == "choices" && words.first() != Some(&"choices") && !line.starts_with('#');
        if is_choice {
            file.choices += &format!("{line}\n");
        } else {
            file.head += &format!("{line}\n");
        }
    }
    file
}

fn image(code: &[String]) -> Image {
    let code: Vec<isa::Inst> =
        code.iter().map(|l| isa::text::parse(l).unwrap_or_else(|e| panic!("`{l}`: {e}"))).collect();
    let entry = Function {
        shared_bytes: 4096,
        shared_align: 16,
        barriers: 1,
        param_bytes: 8,
        ..Function::entry("main", 0..code.len() as u32, 32)
    };
    Image { name: "test".into(), code, functions: vec![entry], target: 90, ..Image::default() }
}

fn run(file: &File, record_choices: bool) -> (Config, Timed) {
    let config = Config::read(&format!("base = \"tiny\"\n{}", file.config)).unwrap_or_else(|e| panic!("{e}"));
    let memory = Memory::new(1 << 26).expect("memory");
    let image = image(&file.code);
    let program =
        Program::load(Arc::new(image.clone()), &memory, &|_| None).unwrap_or_else(|e| panic!("{e}"));
    let kernel = program.kernel("main", Isa::best()).expect("the entry");
    let data = memory.alloc(1 << 16).expect("room");
    let shape = Shape::new([file.ctas, 1, 1], [file.warps * 32, 1, 1]);
    let launch =
        Launch::new(&program, kernel, &shape, &data.to_le_bytes(), &memory).unwrap_or_else(|e| panic!("{e}"));
    let options = RunOptions { threads: 1, record_choices, ..RunOptions::default() };
    let timed = Ppu::new(config.clone())
        .launch(&std::sync::Arc::new(launch), &memory, &options)
        .unwrap_or_else(|e| panic!("{e:?}"));
    (config, timed)
}

fn show(config: &Config, choices: &[Choice], shown: usize) -> String {
    let first = choices.first().map_or(0, |c| c.cycle);
    let mut out = String::new();
    let list = |words: Vec<String>| words.join(" ");
    for c in choices.iter().take(shown) {
        let _ = write!(out, "{:>4}", c.cycle - first);
        if config.sm.sub_cores > 1 {
            let _ = write!(out, "  pod {}", c.pod);
        }
        let _ = write!(out, "  warp {} at {:<2} ", c.warp, c.pc);
        let state = |w: &machine::sm::policy::Shown| match () {
            () if w.warp == c.warp => '*',
            () if w.able => 'a',
            () if w.no_grant => 'g',
            () if w.outside => 'o',
            () => '.',
        };
        let _ = write!(out, " {}", c.warps.iter().map(state).collect::<String>());
        if config.sm.policy == Policy::Credit {
            let credits = c.warps.iter().map(|w| w.credit.to_string()).collect();
            let weights = c.warps.iter().map(|w| w.weight.map_or("-".into(), |w| w.to_string())).collect();
            let _ = write!(out, "  credits {}  fund {}  weights {}", list(credits), c.fund, list(weights));
        }
        if config.sm.scheduler.grants.accesses != Accesses::None {
            let grant = c.grant.map_or("none".into(), |g| g.to_string());
            let values = c.warps.iter().map(|w| w.value.to_string()).collect();
            let _ = write!(out, "  grant {grant}  values {}", list(values));
        }
        out.push('\n');
    }
    out
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schedules");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the folder").map(|e| e.expect("an entry").path()).collect();
    files.sort();
    assert!(files.len() >= 20);
    files
}

/// Who is looked at goes in step with the others; who is not runs by itself as far as it can.
#[test]
fn nothing_changes_by_looking_on() {
    for path in files() {
        let file = read(&std::fs::read_to_string(&path).expect("text"));
        let (config, watched) = run(&file, true);
        let (_, alone) = run(&file, false);
        let name = path.display();
        assert_eq!((watched.cycles, &watched.stalls), (alone.cycles, &alone.stalls), "{name}");
        assert_eq!(watched.counters, alone.counters, "{name}");
        assert!(alone.choices.iter().all(Vec::is_empty), "{:?}", config.sm.policy);
    }
}

#[test]
fn choices_are_those_in_the_files() {
    for path in files() {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let file = read(&std::fs::read_to_string(&path).expect("text"));
        let (config, timed) = run(&file, true);
        let found = show(&config, &timed.choices[0], file.shown);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, format!("{}{found}", file.head)).expect("blessed");
            continue;
        }
        assert_eq!(file.choices, found, "{name}");
    }
}
