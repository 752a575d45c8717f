//! Streams, events, suspended CTAs, child tasks and queues: with time and without, results are the same.

use driver::machine::optimizing::{Level, Options, Who};
use driver::machine::ppu::{Checkpoints, Moment};
use driver::streams::{Insertion, Mode, Synchronized};
use driver::{
    CompileOptions, Config, Device, Dim, LaunchError, LaunchOptions, LaunchStats, Module, Preempting, Source,
    Streams, Timing, compile,
};

use simt::memory::{Bounds, Outline};
use std::sync::Mutex;

const PTX: &[u8] = include_bytes!("data/tasks.ptx");

struct Bench {
    device: Device,
    module: Module,
    /// What memory becomes before anything runs.
    adopted: Option<(Outline, Vec<Vec<u8>>)>,
}

impl Bench {
    fn new() -> Bench {
        Bench::with(PTX.to_vec())
    }

    fn with(ptx: Vec<u8>) -> Bench {
        let device = Device::new().expect("a device");
        let image = compile(&Source::new("tasks.ptx", ptx), &CompileOptions::default());
        let module = Module::load(&device, image.unwrap_or_else(|e| panic!("{e}"))).expect("loads");
        Bench { device, module, adopted: None }
    }

    /// What was allocated stays; its contents are those of then.
    fn adopt(&self) {
        let Some((outline, bytes)) = &self.adopted else { return };
        self.device.memory().adopt(outline).expect("an outline");
        for (b, bytes) in outline.filled.iter().zip(bytes) {
            self.device.memory().write(b.start, bytes).expect("written");
        }
    }

    fn buffer(&self, words: u64) -> u64 {
        let address = self.device.alloc(words * 4).expect("room");
        self.device.fill(address, words * 4, 0).expect("set");
        address
    }

    fn words(&self, address: u64, n: usize) -> Vec<u32> {
        let mut bytes = vec![0; 4 * n];
        self.device.read(address, &mut bytes).expect("read");
        bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    }
}

fn config(name: &str) -> Config {
    Config::preset(name).expect("a preset")
}

fn timed(config: &Config) -> LaunchOptions<'_> {
    LaunchOptions { threads: 2, timing: Some(Timing::new(config)), ..LaunchOptions::default() }
}

fn dim(ctas: u32, threads: u32) -> Dim {
    Dim { grid: [ctas, 1, 1], block: [threads, 1, 1], shared_bytes: 0 }
}

/// Kernels that hold state of every kind, with the words of their result.
const KERNELS: [(&str, u32, u32, u32, usize); 7] = [
    ("spin", 7, 64, 400, 448),
    ("tree", 6, 256, 6, 1536),
    ("collatz", 5, 96, 27, 480),
    ("local8", 6, 64, 60, 384),
    ("local128", 5, 64, 60, 320),
    ("histogram", 6, 128, 40, 64),
    ("straight", 8, 64, 3, 2048),
];

/// Runs one of the kernels; its result.
fn run(kernel: usize, options: &LaunchOptions<'_>, preempting: &Preempting) -> (Vec<u32>, Synchronized) {
    let bench = Bench::new();
    let (name, ctas, threads, n, words) = KERNELS[kernel];
    let out = bench.buffer(2048);
    let input = bench.buffer(2048);
    for k in 0..2048u32 {
        bench.device.write(input + u64::from(4 * k), &(k * 77).to_le_bytes()).expect("written");
    }
    let (out_bytes, in_bytes, n_bytes) = (out.to_le_bytes(), input.to_le_bytes(), n.to_le_bytes());
    let args: Vec<&[u8]> = match name {
        "tree" | "straight" => vec![&out_bytes, &in_bytes, &n_bytes],
        _ => vec![&out_bytes, &n_bytes],
    };
    let mut streams = Streams::new(&bench.device);
    let stream = streams.stream(0);
    streams.launch(stream, &bench.module, name, dim(ctas, threads), &args).expect("can run");
    let done = streams.synchronize(options, preempting).unwrap_or_else(|e| panic!("{name}: {e}"));
    (bench.words(out, words), done)
}

#[test]
fn a_launch_in_a_stream_gives_what_it_gives_alone() {
    for kernel in 0..KERNELS.len() {
        let (expected, functional) = run(kernel, &LaunchOptions::default(), &Preempting::default());
        let (found, done) = run(kernel, &timed(&config("tiny")), &Preempting::default());
        assert_eq!(found, expected, "{}", KERNELS[kernel].0);
        let (a, b) = (&functional.launches[0], &done.launches[0]);
        assert_eq!(a.ctas, b.ctas, "{}", KERNELS[kernel].0);
        // Lanes that went different ways take turns at other places.
        assert!(a.warp_instructions.abs_diff(b.warp_instructions) < a.warp_instructions / 100);
        let timeline = done.timeline.expect("timed");
        assert!(timeline.moves.is_empty() && timeline.launches[0].ended > timeline.launches[0].begun);
    }
}

#[test]
fn a_stopped_program_gives_the_same_results() {
    // A generator without library: seeds of the cycles at which everything is suspended.
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let config = config("tiny");
    for kernel in 0..KERNELS.len() {
        let name = KERNELS[kernel].0;
        let (expected, alone) = run(kernel, &timed(&config), &Preempting::default());
        let cycles = alone.timeline.expect("timed").cycles;
        for round in 0..6 {
            let mode = if round % 3 == 2 { Mode::Copy } else { Mode::Remap };
            let mut stops: Vec<u64> = (0..1 + round).map(|_| random(cycles * 3 / 4)).collect();
            stops.sort_unstable();
            let preempting = Preempting { mode, stops: stops.clone(), ..Preempting::default() };
            let (found, done) = run(kernel, &timed(&config), &preempting);
            assert_eq!(found, expected, "{name} stopped at {stops:?}, {mode:?}");
            let timeline = done.timeline.expect("timed");
            assert_eq!(timeline.stopped.len(), stops.len(), "{name} {stops:?}");
            let back = timeline.moves.iter().filter(|m| m.is_restored).count();
            assert_eq!(2 * back, timeline.moves.len(), "{name}");
            for m in &timeline.moves {
                let moves_local =
                    name.starts_with("local") && (mode == Mode::Copy || (m.is_first && !m.is_restored));
                assert_eq!(m.local_bytes > 0, moves_local, "{name} {mode:?} {m:?}");
                assert!(m.state_bytes > 0 && m.until > m.from);
            }
        }
    }
}

#[test]
fn time_slices_let_every_cta_of_a_grid_meet_the_others() {
    // More CTAs than the machine has room for, each waiting for all.
    let config = config("tiny");
    let bench = Bench::new();
    let (out, count) = (bench.buffer(4096), bench.buffer(1));
    let args: [&[u8]; 2] = [&out.to_le_bytes(), &count.to_le_bytes()];
    let mut streams = Streams::new(&bench.device);
    let stream = streams.stream(0);
    let ctas = 3 * config.sms() * config.sm.ctas / 2;
    streams.launch(stream, &bench.module, "meet", dim(ctas, 32), &args).expect("can run");
    let preempting = Preempting { time_slice: Some(3000), ..Preempting::default() };
    let options = LaunchOptions { max_instructions: Some(20_000_000), ..timed(&config) };
    let done = streams.synchronize(&options, &preempting).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(bench.words(out, ctas as usize), vec![1; ctas as usize]);
    assert!(!done.timeline.expect("timed").moves.is_empty());
}

#[test]
fn slices_shorter_than_a_suspension_let_ctas_get_on() {
    let config = config("tiny");
    let run = |time_slice: Option<u64>| {
        let bench = Bench::new();
        let (out, ctas) = (bench.buffer(1 << 14), 2 * config.sm.warps);
        let args: [&[u8]; 2] = [&out.to_le_bytes(), &20u32.to_le_bytes()];
        let mut streams = Streams::new(&bench.device);
        let stream = streams.stream(0);
        streams.launch(stream, &bench.module, "local128", dim(ctas, 64), &args).expect("can run");
        let preempting = Preempting { time_slice, ..Preempting::default() };
        let done = streams.synchronize(&timed(&config), &preempting).unwrap_or_else(|e| panic!("{e}"));
        (bench.words(out, 64 * ctas as usize), done.timeline.expect("timed"))
    };
    let (expected, alone) = run(None);
    for slice in [100, 2000] {
        let (found, t) = run(Some(slice));
        assert_eq!(found, expected);
        assert!(!t.moves.is_empty(), "CTAs take turns");
        assert!(t.cycles < 8 * alone.cycles, "{} of {} cycles in slices of {slice}", t.cycles, alone.cycles);
    }
}

#[test]
fn a_higher_priority_takes_the_place_of_a_lower() {
    let config = config("tiny");
    let bench = Bench::new();
    let (slow, fast) = (bench.buffer(1 << 16), bench.buffer(1 << 16));
    let run = |priority: u8| {
        let mut streams = Streams::new(&bench.device);
        let (low, high) = (streams.stream(0), streams.stream(priority));
        let (a, b) = (slow.to_le_bytes(), fast.to_le_bytes());
        let (long, short) = (20_000u32.to_le_bytes(), 10u32.to_le_bytes());
        streams.launch(low, &bench.module, "spin", dim(64, 256), &[&a, &long]).expect("can run");
        let later = Insertion { at: 20_000, ..Insertion::default() };
        streams.insert(high, &bench.module, "spin", dim(4, 256), &[&b, &short], later).expect("can run");
        let done = streams.synchronize(&timed(&config), &Preempting::default());
        let timeline = done.unwrap_or_else(|e| panic!("{e}")).timeline.expect("timed");
        (timeline, bench.words(slow, 64 * 256), bench.words(fast, 4 * 256))
    };
    let (equal, ..) = run(0);
    let (urgent, slow_words, fast_words) = run(3);
    assert!(equal.moves.is_empty() && !urgent.moves.is_empty());
    let latency = |t: &driver::streams::Timeline| t.launches[1].ended - t.launches[1].known;
    assert!(latency(&urgent) * 4 < latency(&equal), "{} {}", latency(&urgent), latency(&equal));
    let spin = |i: u32, rounds: u32| {
        (0..rounds).fold(i, |x, _| x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223))
    };
    assert!(slow_words.iter().enumerate().all(|(i, &x)| x == spin(i as u32, 20_000)));
    assert!(fast_words.iter().enumerate().all(|(i, &x)| x == spin(i as u32, 10)));
}

#[test]
fn streams_run_at_once_and_events_order_them() {
    let config = config("h200");
    for options in [LaunchOptions::default(), timed(&config)] {
        let bench = Bench::new();
        let data = bench.buffer(4096);
        let pointer = data.to_le_bytes();
        let rounds = 30_000u32.to_le_bytes();
        let mut streams = Streams::new(&bench.device);
        let (a, b) = (streams.stream(0), streams.stream(0));
        let done = streams.event();
        let second = (data + 1024).to_le_bytes();
        streams.launch(a, &bench.module, "spin", dim(4, 64), &[&pointer, &rounds]).expect("can run");
        streams.launch(b, &bench.module, "spin", dim(4, 64), &[&second, &rounds]).expect("can run");
        streams.record(b, done);
        // The copy waits for the other stream's kernel, and overwrites its result.
        streams.wait(a, done);
        streams.copy(a, data + 1024, data, 1024);
        streams.fill(a, data, 64, 9);
        let ticket = streams.read(a, data, 2048);
        let done = streams.synchronize(&options, &Preempting::default()).unwrap_or_else(|e| panic!("{e}"));
        let bytes = &done.read[ticket.0];
        assert_eq!(bytes[64..1024], bytes[1088..2048]);
        assert_eq!((&bytes[..64], bytes.len()), (&[9u8; 64][..], 2048));
        if let Some(t) = done.timeline {
            assert!(t.launches[1].begun < t.launches[0].ended, "they run at once: {:?}", t.launches);
        }
    }
}

#[test]
fn streams_that_wait_for_ever_are_refused() {
    let bench = Bench::new();
    let mut streams = Streams::new(&bench.device);
    let (a, b) = (streams.stream(0), streams.stream(0));
    let (x, y) = (streams.event(), streams.event());
    streams.wait(a, x);
    streams.record(a, y);
    streams.wait(b, y);
    streams.record(b, x);
    let error = streams.synchronize(&LaunchOptions::default(), &Preempting::default()).expect_err("a circle");
    assert!(error.to_string().contains("waits for an event that never happens"), "{error}");
}

fn single(
    kernel: &str,
    threads: u32,
    args: &[&[u8]],
    bench: &Bench,
    options: &LaunchOptions<'_>,
) -> Result<Synchronized, LaunchError> {
    let mut streams = Streams::new(&bench.device);
    let stream = streams.stream(0);
    streams.launch(stream, &bench.module, kernel, dim(1, threads), args)?;
    streams.synchronize(options, &Preempting::default())
}

#[test]
fn kernels_start_child_tasks() {
    let config = config("tiny");
    for options in [LaunchOptions::default(), timed(&config)] {
        let bench = Bench::new();
        let out = bench.buffer(64);
        let pointer = out.to_le_bytes();
        single("parent", 64, &[&pointer], &bench, &options).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(bench.words(out, 33), [vec![10 + 11 + 12 + 100 + 1000; 32], vec![0]].concat());
    }
}

/// Memory and the machine's state at one moment.
type Kept = (Outline, Vec<Vec<u8>>, Vec<u8>);

/// Runs something whose launches are checkpointed, and goes on from every one of them on another device: what it gave must be
/// the same.
fn goes_on_the_same<T: PartialEq + std::fmt::Debug>(every: u64, run: impl Fn(&Bench, Timing<'_>) -> T) {
    goes_on_the_same_with(&config("tiny"), None, every, run);
}

/// The same, optimized while it runs; what the run gave that nobody disturbed.
fn goes_on_the_same_with<T: PartialEq + std::fmt::Debug>(
    config: &Config,
    optimize: Option<Options>,
    every: u64,
    run: impl Fn(&Bench, Timing<'_>) -> T,
) -> T {
    let plain = Timing { optimize, ..Timing::new(config) };
    let undisturbed = run(&Bench::with(in_rounds()), plain);
    let kept: Mutex<Vec<Kept>> = Mutex::default();
    let bench = Bench::with(in_rounds());
    let keep = |moment: &Moment<'_>| {
        let outline = bench.device.memory().outline_but(moment.zeros());
        let read = |b: &Bounds| {
            let mut bytes = vec![0; (b.end - b.start) as usize];
            bench.device.memory().read(b.start, &mut bytes).map(|()| bytes)
        };
        let bytes = outline.filled.iter().map(read).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
        kept.lock().expect("a list").push((outline, bytes, moment.bytes()?));
        Ok(())
    };
    let timing = Timing { checkpoints: Some(Checkpoints { every, keep: &keep }), ..plain };
    assert_eq!(run(&bench, timing), undisturbed, "checkpoints change nothing");
    let kept = kept.into_inner().expect("a list");
    assert!(kept.len() > 4, "only {} checkpoints", kept.len());
    for (outline, bytes, machine) in &kept {
        let bench = Bench { adopted: Some((outline.clone(), bytes.clone())), ..Bench::with(in_rounds()) };
        let timing = Timing { resume: Some(machine), ..plain };
        assert_eq!(run(&bench, timing), undisturbed);
    }
    undisturbed
}

/// The program with loops with barriers in the child task and in the task of a queue.
fn in_rounds() -> Vec<u8> {
    let rounds = |name: &str, seed: &str| {
        format!(
            "\t{{ .reg .u32 %a, %n, %x; .reg .pred %q; .shared .align 4 .b8 turn_{name}[4];\n\
             \tmov.u32 %a, 0;\n\tand.b32 %n, {seed}, 15;\n\tadd.u32 %n, %n, 24;\nagain_{name}:\n\
             \tst.shared.u32 [turn_{name}], %a;\n\tbar.sync 0;\n\tld.shared.u32 %x, [turn_{name}];\n\tbar.sync 0;\n\
             \tadd.u32 %a, %x, 1;\n\tsetp.lt.u32 %q, %a, %n;\n\t@%q bra again_{name}; }}\n"
        )
    };
    let text = String::from_utf8(PTX.to_vec()).expect("text");
    let (child, queue) =
        ("\tmov.u32 \t%r3, %ctaid.x;\n\tadd.s32 \t%r4, %r3, %r1;\n", "$L__BB15_6:\n\tret;\n");
    assert!(text.matches(child).count() == 1 && text.matches(queue).count() == 1);
    let text = text.replace(child, &format!("{}{child}", rounds("child", "%r1")));
    text.replace(queue, &queue.replace("\tret", &format!("{}\tret", rounds("halve", "%r1")))).into_bytes()
}

/// A small machine that optimizes soon.
fn optimizing() -> Config {
    let mut config = config("tiny");
    let o = &mut config.optimizer;
    (o.host_latency, o.host_unit, o.warp_unit, o.warp_interval) = (100, 0, 1, 1);
    (o.translation_work, o.executions, o.threshold) = (0, 1, 100);
    config
}

/// Blocks that nothing can be gained for are replaced too.
fn all_options() -> impl Iterator<Item = Options> {
    Level::ALL
        .into_iter()
        .flat_map(|level| Who::ALL.map(|who| Options { copies: true, ..Options::new(level, who) }))
}

/// Executions of versions by sets of threads.
fn entered(stats: &LaunchStats) -> u64 {
    stats.optimized.iter().flat_map(|o| &o.versions).map(|v| v.executions).sum()
}

#[test]
fn launches_that_run_at_once_are_optimized_and_compute_the_same() {
    let config = optimizing();
    let run = |optimize: Option<Options>, threads: usize, preempting: &Preempting| {
        let bench = Bench::new();
        let (out, input) = (bench.buffer(4096), bench.buffer(2048));
        for k in 0..2048u32 {
            bench.device.write(input + u64::from(4 * k), &(k * 77).to_le_bytes()).expect("written");
        }
        let mut streams = Streams::new(&bench.device);
        let (a, b) = (streams.stream(0), streams.stream(0));
        let n = 6u32.to_le_bytes();
        for (k, stream) in [(0, a), (1, b), (2, a)] {
            let args: [&[u8]; 3] = [&(out + k * 4096).to_le_bytes(), &input.to_le_bytes(), &n];
            streams.launch(stream, &bench.module, "tree", dim(4, 256), &args).expect("can run");
        }
        let timing = Timing { optimize, ..Timing::new(&config) };
        let options = LaunchOptions { threads, timing: Some(timing), ..LaunchOptions::default() };
        let done = streams.synchronize(&options, preempting).unwrap_or_else(|e| panic!("{e}"));
        (bench.words(out, 3072), done)
    };
    let (expected, plain) = run(None, 1, &Preempting::default());
    assert!(plain.launches.iter().all(|l| l.optimized.is_none()));
    for options in all_options() {
        let (found, done) = run(Some(options), 1, &Preempting::default());
        assert_eq!(found, expected, "{options:?}");
        let times: Vec<u64> = done.launches.iter().map(entered).collect();
        assert!(times.iter().all(|&n| n > 0) || options.who == Who::EarlyWarp, "{options:?}: {times:?}");
        // The end of a kernel is a barrier of the whole machine: only there the next launch of it takes over what was made.
        let third = done.launches[2].optimized.as_ref().expect("optimized");
        let taken_over = third.versions.iter().filter(|v| v.at == 0).count();
        assert_eq!(taken_over > 0, options.level == Level::Ppu && times[0] > 0, "{options:?}");
        // CTAs that leave in the middle of a version come back to it.
        let stops = Preempting { stops: vec![2500, 5000], ..Preempting::default() };
        let (stopped, done) = run(Some(options), 2, &stops);
        assert_eq!(stopped, expected, "{options:?}, stopped");
        let timeline = done.timeline.expect("timed");
        assert!(timeline.moves.iter().any(|m| m.is_restored), "{options:?}");
    }
}

#[test]
fn launches_that_run_at_once_have_versions_of_their_own() {
    let config = optimizing();
    let bench = Bench::new();
    let (out, input) = (bench.buffer(4096), bench.buffer(2048));
    let mut streams = Streams::new(&bench.device);
    let n = 6u32.to_le_bytes();
    for k in 0..2 {
        let stream = streams.stream(0);
        let args: [&[u8]; 3] = [&(out + k * 4096).to_le_bytes(), &input.to_le_bytes(), &n];
        streams.launch(stream, &bench.module, "tree", dim(2, 256), &args).expect("can run");
    }
    let optimize = Some(Options { copies: true, ..Options::new(Level::Ppu, Who::Host) });
    let timing = Timing { optimize, ..Timing::new(&config) };
    let options = LaunchOptions { threads: 1, timing: Some(timing), ..LaunchOptions::default() };
    let done = streams.synchronize(&options, &Preempting::default()).unwrap_or_else(|e| panic!("{e}"));
    let places = |n: usize| {
        let versions = &done.launches[n].optimized.as_ref().expect("optimized").versions;
        versions.iter().map(|v| v.first..v.first + v.instructions).collect::<Vec<_>>()
    };
    let (a, b) = (places(0), places(1));
    assert!(!a.is_empty() && !b.is_empty());
    // Both have their own, and no two are at one place of the program's room.
    for x in &a {
        assert!(b.iter().all(|y| x.end <= y.start || y.end <= x.start), "{a:?} {b:?}");
    }
}

#[test]
fn child_tasks_are_optimized_and_go_on_from_checkpoints() {
    let config = optimizing();
    for (level, who) in [(Level::Cta, Who::Host), (Level::Warp, Who::Helper), (Level::Ppu, Who::Host)] {
        let optimize = Some(Options { copies: true, ..Options::new(level, who) });
        let run = |bench: &Bench, timing: Timing<'_>| {
            let out = bench.buffer(64);
            bench.adopt();
            let options = LaunchOptions { threads: 2, timing: Some(timing), ..LaunchOptions::default() };
            let mut done = single("parent", 64, &[&out.to_le_bytes()], bench, &options)
                .unwrap_or_else(|e| panic!("{e}"));
            done.launches.iter_mut().for_each(without_code);
            (bench.words(out, 33), done.timeline, done.launches)
        };
        let (found, timeline, _) = goes_on_the_same_with(&config, optimize, 700, run);
        assert_eq!(found, [vec![10 + 11 + 12 + 100 + 1000; 32], vec![0]].concat());
        let children = timeline.expect("timed").launches;
        assert!(children.iter().any(|l| l.parent.is_some() && l.versions > 0), "{level} {who}");
    }
}

/// What a checkpoint does not have of launches that have ended.
fn without_code(stats: &mut LaunchStats) {
    if let Some(o) = &mut stats.optimized {
        (o.code, o.made) = (None, Vec::new());
    }
}

#[test]
fn kernels_with_child_tasks_go_on_from_checkpoints() {
    goes_on_the_same(1500, |bench, timing| {
        let out = bench.buffer(64);
        bench.adopt();
        let options = LaunchOptions { threads: 2, timing: Some(timing), ..LaunchOptions::default() };
        let args: [&[u8]; 2] = [&out.to_le_bytes(), &12u32.to_le_bytes()];
        let stats = bench.module.launch(&bench.device, "nest", dim(1, 32), &args, &options);
        (bench.words(out, 64), stats.unwrap_or_else(|e| panic!("{e}")))
    });
}

/// Warps of straight code are executed before they issue: what they did is part of the machine's state.
#[test]
fn straight_code_goes_on_from_checkpoints() {
    goes_on_the_same(100, |bench, timing| {
        let (out, input) = (bench.buffer(2048), bench.buffer(2048));
        let bytes: Vec<u8> = (0..2048u32).flat_map(|k| (k * 77).to_le_bytes()).collect();
        bench.device.write(input, &bytes).expect("written");
        bench.adopt();
        let options = LaunchOptions { threads: 2, timing: Some(timing), ..LaunchOptions::default() };
        let args: [&[u8]; 3] = [&out.to_le_bytes(), &input.to_le_bytes(), &3u32.to_le_bytes()];
        let stats = bench.module.launch(&bench.device, "straight", dim(8, 64), &args, &options);
        (bench.words(out, 2048), stats.unwrap_or_else(|e| panic!("{e}")))
    });
}

#[test]
fn queue_tasks_go_on_from_checkpoints() {
    let run = |bench: &Bench, timing: Timing<'_>| {
        let sum = bench.buffer(1);
        let mut streams = Streams::new(&bench.device);
        let (stream, other) = (streams.stream(0), streams.stream(2));
        let queue = streams.queue(4, 64).expect("room");
        bench.adopt();
        let args: [&[u8]; 2] = [&queue.address.to_le_bytes(), &sum.to_le_bytes()];
        let produce: [&[u8]; 2] = [&queue.address.to_le_bytes(), &40u32.to_le_bytes()];
        streams.push(queue, &100u32.to_le_bytes(), 0);
        streams.launch_queue(stream, &bench.module, "halve", [32, 1, 1], 0, &args, queue).expect("can run");
        let later = Insertion { at: 6000, ..Insertion::default() };
        streams.insert(other, &bench.module, "produce", dim(6, 32), &produce, later).expect("can run");
        streams.push(queue, &1000u32.to_le_bytes(), 15_000);
        let ticket = streams.read(other, sum, 4);
        let options = LaunchOptions { threads: 2, timing: Some(timing), ..LaunchOptions::default() };
        let preempting = Preempting { stops: vec![7000], ..Preempting::default() };
        let mut done = streams.synchronize(&options, &preempting).unwrap_or_else(|e| panic!("{e}"));
        done.launches.iter_mut().for_each(without_code);
        (bench.words(sum, 1), done.read[ticket.0].clone(), done.timeline, done.launches)
    };
    goes_on_the_same_with(&config("tiny"), None, 1500, run);
    let options = Options { copies: true, ..Options::new(Level::Sm, Who::Host) };
    let (_, _, _, launches) = goes_on_the_same_with(&optimizing(), Some(options), 1500, run);
    assert!(entered(&launches[0]) > 0, "the task of the queue was optimized");
}

#[test]
fn a_parent_waits_for_its_children_and_makes_room() {
    let config = config("tiny");
    for options in [LaunchOptions::default(), timed(&config)] {
        let bench = Bench::new();
        let (out, sums) = (bench.buffer(64), bench.buffer(64));
        let args: [&[u8]; 2] = [&out.to_le_bytes(), &sums.to_le_bytes()];
        let done = single("waiting", 64, &args, &bench, &options).unwrap_or_else(|e| panic!("{e}"));
        let expected: Vec<u32> = (0..64).map(|t| 5 + 6 + 7 + t).collect();
        assert_eq!(bench.words(sums, 64), expected);
        if let Some(t) = done.timeline {
            assert_eq!(t.moves.len(), 2, "{:?}", t.moves);
            assert_eq!(t.launches.len(), 3);
            assert!(t.launches[2].begun >= t.launches[1].ended, "one after the other");
        }
    }
}

#[test]
fn child_tasks_nest() {
    let config = config("tiny");
    for options in [LaunchOptions::default(), timed(&config)] {
        let bench = Bench::new();
        let out = bench.buffer(64);
        let depth = 30u32;
        let args: [&[u8]; 2] = [&out.to_le_bytes(), &depth.to_le_bytes()];
        let done = single("nest", 32, &args, &bench, &options).unwrap_or_else(|e| panic!("{e}"));
        assert!(done.timeline.is_none_or(|t| t.moves.len() >= 2 * 24), "parents make room");
        let mut sum = 0;
        let expected: Vec<u32> = (0..=depth)
            .map(|d| {
                sum += d * 3 + 1;
                sum
            })
            .collect();
        assert_eq!(bench.words(out, depth as usize + 1), expected);
    }
}

#[test]
fn child_tasks_without_end_are_an_error() {
    let config = config("tiny");
    for options in [LaunchOptions::default(), timed(&config)] {
        let bench = Bench::new();
        let out = bench.buffer(64);
        let pointer = out.to_le_bytes();
        let error = single("endless", 32, &[&pointer], &bench, &options).expect_err("no end");
        assert!(error.to_string().contains("child tasks nest deeper than 64 levels"), "{error}");
    }
    let bench = Bench::new();
    let args: [&[u8]; 2] = [&bench.buffer(64).to_le_bytes(), &100u32.to_le_bytes()];
    let error = single("many", 64, &args, &bench, &timed(&config)).expect_err("6400 wait");
    assert!(error.to_string().contains("more than 2048 child tasks wait to run"), "{error}");
}

#[test]
fn queue_tasks_take_entries_while_they_run() {
    let config = config("tiny");
    for options in [LaunchOptions::default(), timed(&config)] {
        let bench = Bench::new();
        let sum = bench.buffer(1);
        let mut streams = Streams::new(&bench.device);
        let stream = streams.stream(0);
        let queue = streams.queue(4, 16).expect("room");
        let args: [&[u8]; 2] = [&queue.address.to_le_bytes(), &sum.to_le_bytes()];
        streams.push(queue, &100u32.to_le_bytes(), 0);
        streams.launch_queue(stream, &bench.module, "halve", [32, 1, 1], 0, &args, queue).expect("can run");
        streams.push(queue, &1000u32.to_le_bytes(), 30_000);
        let done = streams.synchronize(&options, &Preempting::default()).unwrap_or_else(|e| panic!("{e}"));
        let halves = |n: u32| std::iter::successors(Some(n), |n| Some(n / 2).filter(|&n| n > 0));
        let expected: u32 = halves(100).chain(halves(1000)).sum();
        assert_eq!(bench.words(sum, 1), [expected]);
        assert_eq!(done.launches[0].ctas, halves(100).chain(halves(1000)).count() as u64);
    }
}

#[test]
fn kernels_feed_a_queue_task_that_runs_beside_them() {
    let config = config("h200");
    let bench = Bench::new();
    let sum = bench.buffer(1);
    let mut streams = Streams::new(&bench.device);
    let (stream, other) = (streams.stream(0), streams.stream(0));
    let queue = streams.queue(4, 64).expect("room");
    let args: [&[u8]; 2] = [&queue.address.to_le_bytes(), &sum.to_le_bytes()];
    let produce: [&[u8]; 2] = [&queue.address.to_le_bytes(), &40u32.to_le_bytes()];
    streams.launch(other, &bench.module, "produce", dim(20, 32), &produce).expect("can run");
    streams.launch_queue(stream, &bench.module, "halve", [32, 1, 1], 0, &args, queue).expect("can run");
    streams.synchronize(&timed(&config), &Preempting::default()).unwrap_or_else(|e| panic!("{e}"));
    let halves = |n: u32| std::iter::successors(Some(n), |n| Some(n / 2).filter(|&n| n > 0));
    assert_eq!(bench.words(sum, 1), [(40..60).flat_map(halves).sum::<u32>()]);
}

#[test]
fn a_queue_that_overflows_is_an_error() {
    let config = config("tiny");
    for options in [LaunchOptions::default(), timed(&config)] {
        let bench = Bench::new();
        let sum = bench.buffer(1);
        let mut streams = Streams::new(&bench.device);
        let stream = streams.stream(0);
        let queue = streams.queue(4, 8).expect("room");
        let args: [&[u8]; 2] = [&queue.address.to_le_bytes(), &sum.to_le_bytes()];
        streams.push(queue, &1u32.to_le_bytes(), 0);
        streams.launch_queue(stream, &bench.module, "flood", [32, 1, 1], 0, &args, queue).expect("can run");
        let error = streams.synchronize(&options, &Preempting::default()).expect_err("overflows");
        assert!(error.to_string().contains("is full: its 8 entries are not done yet"), "{error}");
    }
}

#[test]
fn results_and_cycles_do_not_depend_on_host_threads() {
    let config = config("classic");
    let run = |threads: usize| {
        let bench = Bench::new();
        let out = bench.buffer(1 << 16);
        let mut streams = Streams::new(&bench.device);
        let (a, b) = (streams.stream(0), streams.stream(5));
        let (x, y) = (out.to_le_bytes(), (out + (1 << 17)).to_le_bytes());
        let n = 400u32.to_le_bytes();
        streams.launch(a, &bench.module, "local128", dim(30, 64), &[&x, &n]).expect("can run");
        streams.launch(b, &bench.module, "spin", dim(20, 64), &[&y, &n]).expect("can run");
        let options = LaunchOptions { threads, ..timed(&config) };
        let preempting = Preempting { stops: vec![9_000], ..Preempting::default() };
        let done = streams.synchronize(&options, &preempting).unwrap_or_else(|e| panic!("{e}"));
        let t = done.timeline.expect("timed");
        (bench.words(out, 30 * 64), t.cycles, t.moves, t.launches)
    };
    assert_eq!(run(1), run(2));
}

#[test]
fn gpus_of_one_host_work_side_by_side() {
    let mut host = driver::Host::new();
    let (a, b) = (host.add(config("tiny")).expect("room"), host.add(config("h200")).expect("room"));
    let load = |n: usize| {
        let device = &host.gpu(n).expect("a GPU").device;
        let image = compile(&Source::new("tasks.ptx", PTX.to_vec()), &CompileOptions::default());
        let module = Module::load(device, image.unwrap_or_else(|e| panic!("{e}"))).expect("loads");
        (device, module, device.alloc(4096).expect("room"))
    };
    let gpus = [load(a), load(b)];
    let rounds = 50u32.to_le_bytes();
    let work = gpus.iter().enumerate().map(|(n, (device, module, out))| {
        let mut streams = Streams::new(device);
        let stream = streams.stream(0);
        let args: [&[u8]; 2] = [&out.to_le_bytes(), &rounds];
        streams.launch(stream, module, "spin", dim(16, 64), &args).expect("can run");
        (n, streams)
    });
    let work: Vec<_> = work.collect();
    let own = config("tiny");
    let options = LaunchOptions { timing: Some(Timing::new(&own)), ..LaunchOptions::default() };
    let done = host.synchronize(work, &options, &Preempting::default());
    let cycles: Vec<u64> = done
        .into_iter()
        .map(|d| d.unwrap_or_else(|e| panic!("{e}")).timeline.expect("timed").cycles)
        .collect();
    assert_ne!(cycles[0], cycles[1], "each has its own machine");
    // What one computed, the other gets.
    let (mut first, mut second) = (vec![0; 4096], vec![0; 4096]);
    host.gpus()[a].device.read(gpus[0].2, &mut first).expect("read");
    host.gpus()[b].device.fill(gpus[1].2, 4096, 0).expect("set");
    host.copy((b, gpus[1].2), (a, gpus[0].2), 4096).expect("copied");
    host.gpus()[b].device.read(gpus[1].2, &mut second).expect("read");
    assert!(first == second && first.iter().any(|&x| x != 0));
}
