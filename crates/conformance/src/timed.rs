//! A kernel of a directory on the timed machine: its results, its cycles, its counters.

use crate::kernels::{self, Kernel, Outcome};
use crate::truth::Truth;
use crate::{counters, profile, stalls, timing};
use driver::launch_file::{Arg, LaunchFile};
use driver::{Device, Dim, Module, Session};
use machine::ppu::{Ppu, RunOptions};
use machine::sm::trace_cell::{Settings, registers};
use machine::stall::{STALLS, StallCycles};
use machine::{Config, Counters};
use rayon::prelude::*;
use serde_json::Value;
use trace::record::read_all;

/// What the machine measured for the launches of a kernel, together.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    pub cycles: u64,
    pub counters: Counters,
    pub stalls: StallCycles,
    /// The same by source line.
    pub lines: profile::Lines,
    /// Samples by source line, where some were taken.
    pub samples: profile::Lines,
    /// Warp slots of an SM.
    pub slots: u32,
    /// Cycles of a model that knows no mechanism.
    pub trivial: f64,
}

impl Run {
    /// Warps resident on active SMs, in per cent of the slots.
    pub fn occupancy_percent(&self) -> f64 {
        let slots = self.counters.sm_active_cycles.max(1) as f64 * f64::from(self.slots);
        100.0 * self.counters.warp_cycles as f64 / slots
    }

    /// Adds a launch that came after.
    fn add(&mut self, other: &Run) {
        self.cycles += other.cycles;
        self.counters.add(&other.counters);
        self.stalls.iter_mut().zip(&other.stalls).for_each(|(sum, n)| *sum += n);
        profile::add(&mut self.lines, &other.lines);
        profile::add(&mut self.samples, &other.samples);
        self.trivial += other.trivial;
    }

    pub fn row(&self, kernel: &Kernel, results: &Value) -> Option<timing::Row> {
        let truth = Truth::of(results, &kernel.name);
        timing::Row::new(&kernel.name, truth, self.cycles, self.counters.warp_instructions, self.trivial)
    }

    pub fn counters(&self, kernel: &Kernel, results: &Value) -> counters::Row {
        counters::Row::new(&kernel.name, self, Truth::of(results, &kernel.name))
    }

    pub fn stalls(&self, kernel: &Kernel, results: &Value) -> Option<stalls::Row> {
        stalls::Row::new(&kernel.name, &self.stalls, Truth::of(results, &kernel.name))
    }

    pub fn profile(&self, kernel: &Kernel, results: &Value) -> Option<profile::Row> {
        profile::Row::new(&kernel.name, &self.lines, &self.samples, Truth::of(results, &kernel.name))
    }
}

/// A device's machine, with caches as the last launch left them.
pub struct Machine {
    ppu: Ppu,
    threads: usize,
    /// Takes samples as the GPU's profiler does.
    samples: bool,
}

/// Cycles between two samples. The GPU's profiler takes 512 or 1,024; the same shares come with less noise from more.
const SAMPLE_PERIOD: u64 = 16;
/// Bytes of samples that a launch may have.
const SAMPLE_BYTES: u64 = 256 << 20;

impl Machine {
    /// The cycle at which the last launch had ended.
    pub fn now(&self) -> machine::Cycle {
        self.ppu.now()
    }

    pub fn new(config: &Config, threads: usize) -> Machine {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if threads == 0 { all } else { threads };
        Machine { ppu: Ppu::new(config.clone()), threads, samples: false }
    }

    /// Takes samples too.
    pub fn sampling(self) -> Machine {
        Machine { samples: true, ..self }
    }

    pub fn config(&self) -> &Config {
        self.ppu.config()
    }

    /// Empties the caches, as a profiler does before each launch.
    pub fn flush(&mut self) {
        self.ppu.flush();
    }

    /// Tells of a copy from the host.
    pub fn copied(&mut self, address: u64, bytes: u64) {
        self.ppu.host_write(address, bytes);
    }

    /// Runs a kernel to its end.
    pub fn launch(
        &mut self,
        device: &Device,
        module: &Module,
        entry: &str,
        dim: Dim,
        args: &[&[u8]],
    ) -> Result<Run, String> {
        let function = module.entry(entry).ok_or_else(|| format!("the program has no kernel {entry}"))?;
        let params = driver::limits::parameters(function, args).map_err(|e| e.to_string())?;
        let program = module.program();
        let kernel = program.kernel(entry, simt::Isa::best()).ok_or("the kernel cannot be run")?;
        let shape = simt::Shape { dynamic_shared: dim.shared_bytes, ..simt::Shape::new(dim.grid, dim.block) };
        let launch = simt::Launch::new(program, kernel, &shape, &params, device.memory())
            .map_err(|e| e.to_string())?;
        let launch = std::sync::Arc::new(launch);
        let options = RunOptions { threads: self.threads, ..RunOptions::default() };
        let buffer = match self.samples {
            true => Some(self.begin_samples(device)?),
            false => None,
        };
        let timed = self.ppu.launch(&launch, device.memory(), &options).map_err(|e| format!("{e:?}"))?;
        let mut samples = profile::Lines::new();
        if let Some(settings) = &buffer {
            let rows = self.end_samples(device, settings, timed.stalls.len())?;
            profile::add_lines(&mut samples, module.image(), &rows);
        }
        let mut stalls = [0; STALLS];
        for at in &timed.stalls {
            stalls.iter_mut().zip(at).for_each(|(sum, n)| *sum += n);
        }
        let mut lines = profile::Lines::new();
        profile::add_lines(&mut lines, module.image(), &timed.stalls);
        let trivial = timing::Trivial::of(self.config());
        Ok(Run {
            cycles: timed.cycles,
            counters: timed.counters,
            stalls,
            lines,
            samples,
            slots: self.config().sm.warps,
            trivial: trivial.cycles(timed.counters.warp_instructions as f64, 0.0),
        })
    }

    /// Sets the trace cells: every so often one warp of each scheduler in turn.
    fn begin_samples(&mut self, device: &Device) -> Result<Settings, String> {
        let buffer = device.memory().alloc_top(SAMPLE_BYTES).map_err(|e| e.to_string())?;
        let settings = Settings {
            in_turn: true,
            period: SAMPLE_PERIOD,
            buffer,
            buffer_bytes: SAMPLE_BYTES,
            ..Settings::default()
        };
        for (offset, value) in settings.words() {
            self.ppu.write_trace_register(offset, value).map_err(|e| e.to_string())?;
        }
        Ok(settings)
    }

    /// Turns them off: samples by instruction and reason.
    fn end_samples(
        &mut self,
        device: &Device,
        settings: &Settings,
        instructions: usize,
    ) -> Result<Vec<StallCycles>, String> {
        self.ppu.write_trace_register(registers::CONTROL, 0).map_err(|e| e.to_string())?;
        let trace = self.ppu.trace_registers();
        let (records, lost) = (trace.wide(registers::RECORDS), trace.wide(registers::LOST));
        if lost > 0 {
            return Err(format!("{lost} samples were lost"));
        }
        let mut bytes = vec![0; records as usize * settings.form.bytes()];
        device.memory().read(settings.buffer, &mut bytes).map_err(|e| e.to_string())?;
        device.memory().free(settings.buffer).map_err(|e| e.to_string())?;
        let mut rows = vec![[0; STALLS]; instructions];
        for r in read_all(settings.form, &bytes) {
            if let (Some(row), Some(reason)) = (rows.get_mut(r.instruction() as usize), r.reason()) {
                row[reason as usize] += 1;
            }
        }
        Ok(rows)
    }

    /// Runs one launch of a file, cold.
    pub fn launch_of(
        &mut self,
        file: &LaunchFile,
        session: &Session<'_>,
        number: usize,
    ) -> Result<Run, String> {
        let launch = &file.launches[number];
        let module = session.module(number).ok_or("there is no such launch")?;
        let pointers: Vec<[u8; 8]> =
            (0..file.buffers.len()).map(|n| session.address(n).to_le_bytes()).collect();
        let mut bytes = 0;
        let args: Vec<&[u8]> = launch
            .args
            .iter()
            .map(|(arg, _)| match arg {
                Arg::Buffer(n) => {
                    bytes += file.buffers[*n].count * file.buffers[*n].element.size() as u64;
                    &pointers[*n][..]
                }
                Arg::Value { bytes, .. } => bytes,
            })
            .collect();
        let dim = Dim { grid: launch.grid, block: launch.block, shared_bytes: launch.shared_bytes };
        self.flush();
        let mut run = self.launch(session.device(), module, &launch.entry, dim, &args)?;
        run.trivial += bytes as f64 / timing::Trivial::of(self.config()).bytes;
        Ok(run)
    }
}

/// Runs a kernel's launches on a new machine and compares the results.
pub fn run(kernel: &Kernel, expected: &Value, config: &Config, threads: usize) -> (Outcome, Option<Run>) {
    run_on(Machine::new(config, threads), kernel, expected)
}

/// The same on a machine.
fn run_on(mut machine: Machine, kernel: &Kernel, expected: &Value) -> (Outcome, Option<Run>) {
    let mut total: Option<Run> = None;
    let outcome = kernels::run_with(kernel, expected, |file, session, number| {
        let run = machine.launch_of(file, session, number)?;
        match &mut total {
            Some(total) => total.add(&run),
            None => total = Some(run),
        }
        Ok(())
    });
    (outcome, total)
}

/// Kernels that run side by side: each takes a machine's worth of memory.
const SIDE_BY_SIDE: usize = 8;

/// Runs kernels and hands over what came of each, in order. On 0 threads they run side by side, on one thread each, which
/// takes less time than several threads for one after the other.
pub fn run_all(
    list: &[Kernel],
    expected: &Value,
    config: &Config,
    threads: usize,
    take: impl FnMut(&Kernel, Outcome, Option<Run>),
) {
    run_each(list, threads, |kernel, n| run(kernel, expected, config, n), take);
}

/// The same with samples, which change nothing else.
pub fn sample_all(
    list: &[Kernel],
    expected: &Value,
    config: &Config,
    threads: usize,
    take: impl FnMut(&Kernel, Outcome, Option<Run>),
) {
    let run = |kernel: &Kernel, n: usize| run_on(Machine::new(config, n).sampling(), kernel, expected);
    run_each(list, threads, run, take);
}

fn run_each(
    list: &[Kernel],
    threads: usize,
    run: impl Fn(&Kernel, usize) -> (Outcome, Option<Run>) + Sync,
    mut take: impl FnMut(&Kernel, Outcome, Option<Run>),
) {
    if threads > 0 {
        for kernel in list {
            let (outcome, measured) = run(kernel, threads);
            take(kernel, outcome, measured);
        }
        return;
    }
    for part in list.chunks(SIDE_BY_SIDE) {
        let found: Vec<_> = part.par_iter().map(|kernel| run(kernel, 1)).collect();
        for (kernel, (outcome, measured)) in part.iter().zip(found) {
            take(kernel, outcome, measured);
        }
    }
}
