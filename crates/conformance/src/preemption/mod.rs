//! The page on preemption: what suspending and restoring CTAs takes, and how soon an urgent kernel runs.

use driver::streams::{Insertion, Mode, Moved, Timeline};
use driver::{
    CompileOptions, Config, Device, Dim, LaunchOptions, Module, Preempting, Source, Streams, Timing, compile,
};
use std::fmt::Write;
use std::path::Path;

/// Kernels of the example, by kilobytes of local memory a warp.
const KERNELS: [(u32, &str); 4] = [(0, "local0"), (1, "local1"), (16, "local16"), (64, "local64")];

/// Threads of a CTA.
const THREADS: u32 = 256;

/// Rounds of a kernel that is stopped: enough that its CTAs run at every stop.
const ROUNDS: u32 = 40;

/// What the same kind of move took, on average over CTAs.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Cost {
    pub cycles: f64,
    pub drain: f64,
    pub state_bytes: f64,
    pub local_bytes: f64,
    pub ctas: u64,
}

impl Cost {
    fn of<'a>(moves: impl Iterator<Item = &'a Moved>) -> Cost {
        let mut sum = Cost::default();
        for m in moves {
            sum.ctas += 1;
            sum.cycles += m.cycles() as f64;
            sum.drain += m.drained.since(m.from) as f64;
            sum.state_bytes += m.state_bytes as f64;
            sum.local_bytes += m.local_bytes as f64;
        }
        let n = sum.ctas.max(1) as f64;
        let mean = |x: f64| x / n;
        Cost {
            cycles: mean(sum.cycles),
            drain: mean(sum.drain),
            state_bytes: mean(sum.state_bytes),
            local_bytes: mean(sum.local_bytes),
            ctas: sum.ctas,
        }
    }
}

/// A row of the first table.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Row {
    pub kilobytes: u32,
    pub mode: Mode,
    /// First and repeated suspension, first and repeated restoration.
    pub costs: [Cost; 4],
}

/// A row of the second table: cycles from the urgent kernel's arrival to its first CTA and to its end.
#[derive(Clone, Debug)]
pub struct Latency {
    pub kilobytes: u32,
    pub how: &'static str,
    pub first: u64,
    pub end: u64,
    /// All of both kernels.
    pub all: u64,
    pub suspended: u64,
}

/// What the page shows.
pub struct Measured {
    pub machine: String,
    pub rows: Vec<Row>,
    pub latencies: Vec<Latency>,
}

struct Bench {
    device: Device,
    module: Module,
    out: u64,
    words: usize,
}

impl Bench {
    fn new(examples: &Path) -> Result<Bench, String> {
        let path = examples.join("preemption").join("preemption.ptx");
        let text = std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let device = Device::new().map_err(|e| e.to_string())?;
        let source = Source::new(path.display().to_string(), text);
        let image = compile(&source, &CompileOptions::default()).map_err(|e| e.to_string())?;
        let module = Module::load(&device, image).map_err(|e| e.to_string())?;
        let words = 1 << 20;
        let out = device.alloc(4 * words as u64).map_err(|e| e.to_string())?;
        Ok(Bench { device, module, out, words })
    }

    fn result(&self) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; 4 * self.words];
        self.device.read(self.out, &mut bytes).map_err(|e| e.to_string())?;
        Ok(bytes)
    }
}

fn dim(ctas: u32, threads: u32) -> Dim {
    Dim { grid: [ctas, 1, 1], block: [threads, 1, 1], shared_bytes: 0 }
}

/// Runs a kernel with stops; its result must stay the same.
fn moves(
    examples: &Path,
    config: &Config,
    kernel: &str,
    preempting: &Preempting,
    threads: usize,
) -> Result<(Timeline, Vec<u8>), String> {
    let bench = Bench::new(examples)?;
    let rounds = ROUNDS.to_le_bytes();
    let mut streams = Streams::new(&bench.device);
    let stream = streams.stream(0);
    let args: [&[u8]; 2] = [&bench.out.to_le_bytes(), &rounds];
    streams
        .launch(stream, &bench.module, kernel, dim(config.sms(), THREADS), &args)
        .map_err(|e| e.to_string())?;
    let options = LaunchOptions { threads, timing: Some(Timing::new(config)), ..LaunchOptions::default() };
    let done = streams.synchronize(&options, preempting).map_err(|e| e.to_string())?;
    Ok((done.timeline.ok_or("not timed")?, bench.result()?))
}

/// First and repeated suspensions and restorations of one kernel.
pub fn row(
    examples: &Path,
    config: &Config,
    kilobytes: u32,
    mode: Mode,
    threads: usize,
) -> Result<Row, String> {
    let alone = moves(examples, config, kernel(kilobytes), &Preempting::default(), threads)?;
    row_after(examples, config, kilobytes, mode, threads, &alone)
}

/// The kernel with so much local memory.
fn kernel(kilobytes: u32) -> &'static str {
    KERNELS.iter().find(|(n, _)| *n == kilobytes).map_or("local0", |(_, name)| name)
}

/// The same, where what the kernel does undisturbed is known.
fn row_after(
    examples: &Path,
    config: &Config,
    kilobytes: u32,
    mode: Mode,
    threads: usize,
    (alone, expected): &(Timeline, Vec<u8>),
) -> Result<Row, String> {
    let kernel = kernel(kilobytes);
    let begun = alone.launches[0].begun;
    let stops = (1..=3).map(|n| begun + (alone.cycles - begun) * n / 8).collect();
    let preempting = Preempting { mode, stops, ..Preempting::default() };
    let (timeline, found) = moves(examples, config, kernel, &preempting, threads)?;
    if found != *expected {
        return Err(format!("{kernel}: the result differs when CTAs are suspended"));
    }
    let cost = |is_restored: bool, is_first: bool| {
        let own = |m: &&Moved| m.is_restored == is_restored && m.is_first == is_first;
        Cost::of(timeline.moves.iter().filter(own))
    };
    Ok(Row {
        kilobytes,
        mode,
        costs: [cost(false, true), cost(false, false), cost(true, true), cost(true, false)],
    })
}

/// An urgent kernel arrives in a full machine.
pub fn latency(
    examples: &Path,
    config: &Config,
    kilobytes: u32,
    priority: u8,
    mode: Mode,
    threads: usize,
) -> Result<Latency, String> {
    let kernel = kernel(kilobytes);
    let bench = Bench::new(examples)?;
    let mut streams = Streams::new(&bench.device);
    let (low, high) = (streams.stream(0), streams.stream(priority));
    // It runs when the other one comes, and for long after; with local memory, filling that takes most of the time.
    let rounds = if kilobytes == 0 { 300u32 } else { 10 }.to_le_bytes();
    let args: [&[u8]; 2] = [&bench.out.to_le_bytes(), &rounds];
    let other = (bench.out + (3 << 20)).to_le_bytes();
    let ctas = 8 * config.sms();
    streams.launch(low, &bench.module, kernel, dim(ctas, THREADS), &args).map_err(|e| e.to_string())?;
    let later = Insertion { at: 20_000, ..Insertion::default() };
    let urgent = dim(config.sms(), 128);
    streams.insert(high, &bench.module, "urgent", urgent, &[&other], later).map_err(|e| e.to_string())?;
    let options = LaunchOptions { threads, timing: Some(Timing::new(config)), ..LaunchOptions::default() };
    let preempting = Preempting { mode, ..Preempting::default() };
    let done = streams.synchronize(&options, &preempting).map_err(|e| e.to_string())?;
    let t = done.timeline.ok_or("not timed")?;
    let own = &t.launches[1];
    let how = match (priority, mode) {
        (0, _) => "same priority",
        (_, Mode::Remap) => "higher, remap",
        (_, Mode::Copy) => "higher, copy",
    };
    Ok(Latency {
        kilobytes,
        how,
        first: own.begun - own.known,
        end: own.ended - own.known,
        all: t.cycles,
        suspended: t.launches[0].suspended,
    })
}

/// Runs everything.
pub fn measure(examples: &Path, config: &Config, threads: usize) -> Result<Measured, String> {
    let mut measured = Measured { machine: config.name.clone(), rows: Vec::new(), latencies: Vec::new() };
    for (kilobytes, name) in KERNELS {
        let alone = moves(examples, config, name, &Preempting::default(), threads)?;
        for mode in Mode::ALL {
            measured.rows.push(row_after(examples, config, kilobytes, mode, threads, &alone)?);
        }
    }
    for kilobytes in [0, 16] {
        for (priority, mode) in [(0, Mode::Remap), (5, Mode::Remap), (5, Mode::Copy)] {
            measured.latencies.push(latency(examples, config, kilobytes, priority, mode, threads)?);
        }
    }
    Ok(measured)
}

/// Whether remapping does what it is for: local memory moves at the first suspension and never again.
pub fn moves_local_memory_once(measured: &Measured) -> bool {
    let remapped = measured.rows.iter().filter(|r| r.mode == Mode::Remap);
    { remapped }.all(|r| {
        let [first, repeated, back, back_again] = r.costs.map(|c| c.local_bytes > 0.0);
        first == (r.kilobytes > 0) && !repeated && !back && !back_again
    })
}

/// The page.
pub fn page(all: &[Measured]) -> String {
    let mut out = include_str!("head.md").to_owned();
    for measured in all {
        tables(&mut out, measured);
    }
    out + include_str!("end.md")
}

fn tables(out: &mut String, measured: &Measured) {
    *out += &include_str!("suspensions.md").replace("{machine}", &measured.machine);
    let thousands = |x: f64| driver::trace::metric::thousands(x.round() as u64);
    *out += "| local memory a warp | mode | what | cycles | of them draining | state bytes | local bytes |\n";
    *out += "| --- | --- | --- | ---: | ---: | ---: | ---: |\n";
    for row in &measured.rows {
        let names = ["first suspension", "repeated suspension", "first restoration", "repeated restoration"];
        for (name, c) in names.into_iter().zip(&row.costs) {
            let _ = writeln!(
                out,
                "| {} KB | {} | {name} | {} | {} | {} | {} |",
                row.kilobytes,
                row.mode.name(),
                thousands(c.cycles),
                thousands(c.drain),
                thousands(c.state_bytes),
                thousands(c.local_bytes),
            );
        }
    }
    *out += &include_str!("urgent.md").replace("{machine}", &measured.machine);
    *out +=
        "| local memory a warp | urgent kernel | first CTA | all of it | both kernels | CTAs suspended |\n";
    *out += "| --- | --- | ---: | ---: | ---: | ---: |\n";
    for l in &measured.latencies {
        let _ = writeln!(
            out,
            "| {} KB | {} | {} | {} | {} | {} |",
            l.kilobytes,
            l.how,
            thousands(l.first as f64),
            thousands(l.end as f64),
            thousands(l.all as f64),
            thousands(l.suspended as f64),
        );
    }
    *out += "\n";
}
