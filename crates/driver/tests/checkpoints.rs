//! Checkpoints of a run: whenever it is killed, going on from the last one ends as the run that nobody disturbed.

use driver::checkpoint::Done;
use driver::checkpoint::storage::{Storage, Target};
use driver::machine::optimizing::{Level, Options, Profiling, Who};
use driver::machine::ppu::{Checkpoints, Moment};
use driver::machine::sm::trace_cell::{Drain, Event, Settings};
use driver::streams::{Mode, Timeline};
use driver::{Checkpoint, Keeper, LaunchFile, LaunchOptions, LaunchStats, Sampling, Session, Source, Timing};
use driver::{CompileOptions, Config, Preempting};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const PROGRAM: &str = include_str!("data/checkpoint.ptx");

const LAUNCH: &str = r#"
ptx = "checkpoint.ptx"

[[launch]]
entry = "busy"
grid = [5, 1, 1]
block = [128, 1, 1]
arg = [
    { name = "data", buffer = "u32", count = 640, init = { randint = [0, 1000000], seed = 1 }, out = true },
    { name = "counts", buffer = "u32", count = 128, out = true },
    { name = "field", buffer = "u32", count = 66000, init = { randint = [0, 1000], seed = 2 }, out = true },
    { u32 = 3 },
]

[[launch]]
entry = "sum"
grid = [5, 1, 1]
block = [128, 1, 1]
arg = [{ use = "data" }, { name = "total", buffer = "u32", count = 1, out = true }]

[[launch]]
entry = "busy"
grid = [3, 1, 1]
block = [96, 1, 1]
arg = [{ use = "data" }, { use = "counts" }, { use = "field" }, { u32 = 2 }]
"#;

/// Launches that run at once: one fills the machine, one starts child tasks and waits for them, one of higher priority comes
/// when both run.
const TASKS: &str = r#"
ptx = "tasks.ptx"

[[launch]]
name = "long"
stream = "a"
entry = "local128"
grid = [14, 1, 1]
block = [64, 1, 1]
arg = [{ name = "local", buffer = "u32", count = 896, out = true }, { u32 = 40 }]

[[launch]]
stream = "b"
entry = "nest"
grid = [1, 1, 1]
block = [32, 1, 1]
arg = [{ name = "nested", buffer = "u32", count = 64, out = true }, { u32 = 5 }]

[[launch]]
stream = "c"
priority = 4
at = 9000
entry = "tree"
grid = [9, 1, 1]
block = [256, 1, 1]
arg = [
    { name = "sums", buffer = "u32", count = 2304, out = true },
    { name = "terms", buffer = "u32", count = 2304, init = { randint = [0, 1000], seed = 5 } },
    { u32 = 6 },
]

[[launch]]
stream = "a"
after = ["long"]
entry = "collatz"
grid = [5, 1, 1]
block = [96, 1, 1]
arg = [{ name = "steps", buffer = "u32", count = 480, out = true }, { u32 = 27 }]
"#;

const TASKS_PROGRAM: &str = include_str!("data/tasks.ptx");

/// A folder of a test's own.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("warploom-checkpoints-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Files that stop working at a call, in the middle of it where it is a write: for the files, that is the program's end.
/// Nothing waits for the disk, since the host goes on.
#[derive(Clone)]
struct Mortal {
    calls: Arc<AtomicU64>,
    last: u64,
}

struct MortalFile(Mortal, std::fs::File);

impl Mortal {
    fn new(last: u64) -> Mortal {
        Mortal { calls: Arc::default(), last }
    }

    fn call<T>(&self, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if self.calls.fetch_add(1, Ordering::Relaxed) < self.last {
            act()
        } else {
            Err(io::Error::other(KILLED))
        }
    }
}

/// Cycles between two moments at which a run can be killed.
const MOMENTS: u64 = 100;

const KILLED: &str = "killed";

impl Write for MortalFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let whole = self.0.call(|| self.1.write_all(bytes).map(|()| bytes.len()));
        if whole.is_err() && self.0.calls.load(Ordering::Relaxed) == self.0.last + 1 {
            self.1.write_all(&bytes[..bytes.len() / 2])?;
        }
        whole
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.call(|| self.1.flush())
    }
}

impl Target for MortalFile {
    fn sync(&mut self) -> io::Result<()> {
        self.0.call(|| Ok(()))
    }
}

impl Storage for Mortal {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Target>> {
        let file = self.call(|| std::fs::File::create(path))?;
        Ok(Box::new(MortalFile(self.clone(), file)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(|| std::fs::rename(from, to))
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        self.call(|| Ok(()))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call(|| std::fs::remove_file(path))
    }
}

/// How a run is made.
struct Way {
    config: Config,
    detail: bool,
    sampling: Option<Sampling>,
    progress: Option<u64>,
    threads: usize,
    every: u64,
    /// How launches make room for each other, where they run at once.
    at_once: Option<Preempting>,
    optimize: Option<Options>,
}

impl Way {
    fn new(config: &str) -> Way {
        let config = driver::config::load(config).expect("a configuration");
        Way {
            config,
            detail: false,
            sampling: None,
            progress: None,
            threads: 1,
            every: 2000,
            at_once: None,
            optimize: None,
        }
    }

    /// The launch file, and its program.
    fn files(&self) -> (&'static str, &'static str, &'static str) {
        match self.at_once {
            None => (LAUNCH, "checkpoint.ptx", PROGRAM),
            Some(_) => (TASKS, "tasks.ptx", TASKS_PROGRAM),
        }
    }

    fn timing(&self) -> Timing<'_> {
        Timing {
            detail: self.detail,
            sampling: self.sampling.as_ref(),
            progress: self.progress,
            optimize: self.optimize,
            ..Timing::new(&self.config)
        }
    }
}

/// What a run gave.
#[derive(PartialEq)]
struct Outcome {
    launches: Vec<LaunchStats>,
    timeline: Option<Timeline>,
    printed: String,
    outputs: Vec<Vec<u8>>,
}

impl Outcome {
    fn cycles(&self) -> u64 {
        let reports = self.launches.iter().filter_map(|l| Some(l.report.as_ref()?.cycles));
        self.timeline.as_ref().map_or_else(|| reports.sum(), |t| t.cycles)
    }
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cycles: Vec<_> = self.launches.iter().filter_map(|l| Some(l.report.as_ref()?.cycles)).collect();
        write!(f, "{cycles:?} {:?}", self.printed)
    }
}

/// When a run is killed: at a cycle of the machine, at a call of the file system, or not at all.
#[derive(Clone, Copy, Debug)]
enum Death {
    Cycle(u64),
    Call(u64),
    Never,
    /// Not at all, and there are no checkpoints.
    Unwatched,
}

/// Runs a launch file, from its start or from its last checkpoint; nothing when it was killed. And the calls of the file
/// system that it made.
fn run(folder: &Path, way: &Way, death: Death) -> (Option<Outcome>, u64) {
    let path = folder.join("state");
    let old = path.exists().then(|| Checkpoint::open(&path).expect("a checkpoint that can be read"));
    let source = Source::new("launch.toml", way.files().0.as_bytes());
    let read = || LaunchFile::parse(source, &folder.join("launch.toml")).expect("a launch file");
    let loaded = old.as_ref().map_or_else(read, |old| old.file().clone());
    let (session, mut done) = match &old {
        None => (Session::new(&loaded, &CompileOptions::default()).expect("a session"), Done::default()),
        Some(old) => {
            assert_eq!((old.command(), old.every()), (&b"command"[..], way.every));
            assert_eq!(old.config(), &way.config);
            let session = Session::reopen(old).expect("a session");
            session.adopt(old).expect("memory");
            (session, old.done().clone())
        }
    };
    let (cycle, calls) = match death {
        Death::Cycle(n) => (n, u64::MAX),
        Death::Call(n) => (u64::MAX, n),
        Death::Never | Death::Unwatched => (u64::MAX, u64::MAX),
    };
    let storage = Mortal::new(calls);
    let keeper = Keeper::new(&storage, &path, way.every, &session, &way.timing(), b"command");
    let Ok(keeper) = keeper else { return (None, storage.calls.load(Ordering::Relaxed)) };
    // The run can be killed between checkpoints too.
    let last = AtomicU64::new(old.as_ref().map_or(0, Checkpoint::cycle));
    let first = done.finished.len();
    let mut timeline = None;
    let turns = if way.at_once.is_some() { 1 } else { loaded.launches.len() };
    for number in first..turns {
        let printed = Mutex::new(Vec::new());
        let print = |text: &[u8]| printed.lock().expect("text").extend_from_slice(text);
        let keep = |moment: &Moment<'_>| {
            let now = moment.cycle();
            if now >= cycle {
                return Err(KILLED.to_owned());
            }
            let before = last.swap(now, Ordering::Relaxed);
            if now / way.every == before / way.every {
                return Ok(());
            }
            keeper.save(session.device(), &done, 0.0, moment)
        };
        let timing = Timing {
            checkpoints: match death {
                Death::Unwatched => None,
                _ => Some(Checkpoints { every: MOMENTS, keep: &keep }),
            },
            resume: old.as_ref().filter(|_| number == first).map(Checkpoint::machine),
            ..way.timing()
        };
        let options = LaunchOptions {
            threads: way.threads,
            print: Some(&print),
            timing: Some(timing),
            ..LaunchOptions::default()
        };
        let launched = match &way.at_once {
            None => session.launch(number, &options).map(|stats| vec![stats]),
            Some(preempting) => session.run_streams(&options, preempting).map(|all| {
                timeline = all.timeline;
                all.launches
            }),
        };
        match launched {
            Ok(all) => done.finished.extend(all.into_iter().map(|stats| (stats, 0.0))),
            Err(error) => {
                assert!(error.to_string().contains(KILLED), "{error}");
                if let Death::Cycle(_) = death {
                    // At most one interval is lost of what had been simulated.
                    let kept = path.exists().then(|| Checkpoint::open(&path).expect("a checkpoint").cycle());
                    let (kept, last) = (kept.unwrap_or(0), last.load(Ordering::Relaxed));
                    assert_eq!(kept / way.every, last / way.every, "{kept} {last}");
                }
                return (None, storage.calls.load(Ordering::Relaxed));
            }
        }
        done.printed.extend(printed.into_inner().expect("text"));
    }
    let outputs = loaded.outputs().map(|(n, ..)| session.contents(n).expect("an output").1).collect();
    let mut launches: Vec<LaunchStats> = done.finished.into_iter().map(|(stats, _)| stats).collect();
    // Of launches that have ended, checkpoints do not have what explains their versions.
    for o in launches.iter_mut().filter_map(|l| l.optimized.as_mut()) {
        (o.code, o.made) = (None, Vec::new());
    }
    let printed = String::from_utf8(done.printed).expect("text");
    (Some(Outcome { launches, timeline, printed, outputs }), storage.calls.load(Ordering::Relaxed))
}

/// A generator of numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n.max(1)
    }
}

/// Runs to the end, killed so many times on the way; what it gave.
fn survives(name: &str, way: &Way, seed: u64, kills: u32) -> Outcome {
    let folder = Folder::new(name);
    let (_, program, text) = way.files();
    let program = folder.0.join(program);
    std::fs::write(&program, text).expect("a program");
    let undisturbed = run(&folder.0, way, Death::Unwatched).0.expect("an outcome");
    let (watched, calls) = run(&folder.0, way, Death::Never);
    assert_eq!(watched.as_ref(), Some(&undisturbed), "{name}: writing checkpoints changes nothing");
    let cycles = undisturbed.cycles();
    assert!(folder.0.join("state").exists(), "{cycles} cycles are long enough for a checkpoint");
    // Going on from the last checkpoint, with nothing else left.
    std::fs::remove_file(&program).expect("removed");
    assert_eq!(
        run(&folder.0, way, Death::Never).0.as_ref(),
        Some(&undisturbed),
        "{name}: the last checkpoint"
    );
    std::fs::remove_file(folder.0.join("state")).expect("removed");
    std::fs::write(&program, text).expect("a program");
    let mut random = Random(seed);
    for n in 0..kills {
        let death = if n % 2 == 0 {
            Death::Cycle(random.below(cycles))
        } else {
            Death::Call(random.below(calls / 2))
        };
        let (outcome, _) = run(&folder.0, way, death);
        if let Some(outcome) = outcome {
            // It had come too far to be killed.
            assert_eq!(outcome, undisturbed, "{name}: {n} {death:?}");
        }
    }
    assert_eq!(run(&folder.0, way, Death::Never).0.as_ref(), Some(&undisturbed), "{name}");
    undisturbed
}

/// Ten ways to run, so that every part of the machine's state is needed by one of them.
fn ways() -> Vec<(&'static str, Way)> {
    let scheduled = |policy: &str| {
        let mut way = Way::new("tiny");
        driver::config::set_scheduler(&mut way.config, policy).expect("a policy");
        way
    };
    let sampled = |drain: Drain, event: Option<Event>, in_turn: bool| {
        let settings = Settings { period: 64, drain, event, in_turn, ..Settings::default() };
        Way { sampling: Some(Sampling { settings, buffer_bytes: 1 << 20 }), ..Way::new("tiny") }
    };
    vec![
        ("plain", Way::new("tiny")),
        ("profile", Way { detail: true, ..Way::new("tiny") }),
        ("many SMs", Way { threads: 2, detail: true, ..Way::new("classic") }),
        ("credit", scheduled("credit")),
        ("window", scheduled("window+grants")),
        ("two levels", scheduled("two-level")),
        ("oldest", Way { progress: Some(100), ..scheduled("oldest") }),
        ("samples", sampled(Drain::Own, None, true)),
        ("stored samples", sampled(Drain::LoadStore, None, false)),
        ("sampled events", sampled(Drain::Stream, Some(Event::Branch), false)),
    ]
}

const KILLS: u32 = 5;

#[test]
fn a_run_that_is_killed_fifty_times_ends_as_if_nothing_had_happened() {
    let ways = ways();
    assert_eq!(KILLS as usize * ways.len(), 50);
    for (n, (name, way)) in ways.iter().enumerate() {
        survives(name, way, n as u64 + 1, KILLS);
    }
}

#[test]
fn launches_that_run_at_once_are_killed_and_go_on() {
    let ways = [
        ("remapped", "tiny", Preempting::default()),
        ("copied", "tiny", Preempting { mode: Mode::Copy, ..Preempting::default() }),
        ("in slices", "tiny", Preempting { time_slice: Some(4000), ..Preempting::default() }),
        ("stopped", "classic", Preempting { stops: vec![3000, 12_000, 12_500], ..Preempting::default() }),
    ];
    let mut reasons = std::collections::BTreeSet::new();
    for (n, (name, config, preempting)) in ways.into_iter().enumerate() {
        let way = Way {
            at_once: Some(preempting),
            threads: 1 + usize::from(n == 0),
            every: 5000,
            ..Way::new(config)
        };
        let outcome = survives(name, &way, n as u64 + 11, 4);
        let timeline = outcome.timeline.expect("timed");
        assert!(timeline.launches.len() > 4, "{name}: child tasks");
        reasons.extend(timeline.moves.iter().map(|m| m.reason));
    }
    assert_eq!(reasons.len(), 4, "CTAs make room for every reason: {reasons:?}");
}

#[test]
fn runs_that_are_optimized_are_killed_and_go_on() {
    let ways = [
        ("by the host", Level::Sm, Who::Host, Profiling::Counters, None),
        ("by a helper", Level::Warp, Who::Helper, Profiling::Counters, None),
        ("by early warps", Level::Ppu, Who::EarlyWarp, Profiling::Counters, None),
        ("with instructions", Level::Ppu, Who::Host, Profiling::Instructions, None),
        ("at once", Level::Ppu, Who::Host, Profiling::Counters, Some(Preempting::default())),
        (
            "in optimized slices",
            Level::Cta,
            Who::Helper,
            Profiling::Counters,
            Some(Preempting { time_slice: Some(4000), ..Preempting::default() }),
        ),
    ];
    for (n, (name, level, who, profiling, at_once)) in ways.into_iter().enumerate() {
        let optimize = Some(Options { copies: true, ..Options::new(level, who) });
        let every = if at_once.is_some() { 5000 } else { 2000 };
        let mut way = Way {
            optimize,
            at_once,
            every,
            threads: 1 + usize::from(n == 4),
            detail: n == 1,
            ..Way::new("tiny")
        };
        let o = &mut way.config.optimizer;
        (o.host_latency, o.host_unit, o.warp_unit, o.warp_interval) = (100, 0, 1, 1);
        (o.translation_work, o.executions, o.profiling) = (0, 1, profiling);
        let outcome = survives(name, &way, n as u64 + 21, 4);
        let versions = outcome.launches.iter().filter_map(|l| l.optimized.as_ref()).flat_map(|o| &o.versions);
        let entered: u64 = versions.map(|v| v.executions).sum();
        assert!(entered > 0 || who == Who::EarlyWarp, "{name}: no version was executed");
    }
}
