//! Launches on the timed machine: one machine a device, whose caches stay as launches and copies leave them.

use crate::device::Device;
use crate::launch::{FaultReport, LaunchError, LaunchOptions, LaunchStats};
use crate::limits::{Part, Refusal};
use crate::module::Module;
use crate::streams::{Preempting, Streams};
use machine::optimizing;
use machine::ppu::{Checkpoints, Ppu, RunOptions, Stopped};
use machine::report::Shape;
use machine::sm::trace_cell::{RegisterError, Settings, registers};
use machine::{Config, Report};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trace::record::{Form, Record};

/// What trace cells collect of a launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sampling {
    /// What the registers of the cells are set to; the event buffer is the driver's.
    pub settings: Settings,
    /// Bytes of the event buffer.
    pub buffer_bytes: u64,
}

/// Bytes of an event buffer, unless said otherwise.
pub const EVENT_BUFFER: u64 = 256 << 20;

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling { settings: Settings::default(), buffer_bytes: EVENT_BUFFER }
    }
}

/// What trace cells collected: records as they lay in the event buffer.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Sampled {
    pub form: Form,
    pub bytes: Vec<u8>,
    pub records: u64,
    pub lost: u64,
    /// Where versions of code that was optimized while it ran begin, and the places of the program that their instructions come
    /// from; in the order of their places.
    pub versions: Vec<(u32, Vec<u32>)>,
}

impl Sampled {
    /// A record with the place of the program that its instruction comes from.
    pub fn of_program(&self, record: Record) -> Record {
        let place = record.instruction();
        let n = self.versions.partition_point(|v| v.0 <= place);
        let version = n.checked_sub(1).map(|n| &self.versions[n]);
        match version.and_then(|(first, origin)| origin.get((place - first) as usize)) {
            Some(&origin) => Record { pc: origin * INSTRUCTION_BYTES, ..record },
            None => record,
        }
    }
}

/// Bytes of an instruction.
const INSTRUCTION_BYTES: u32 = 16;

/// How to time a launch.
#[derive(Clone, Copy)]
pub struct Timing<'a> {
    /// The machine. A device keeps it from launch to launch while the configuration stays the same.
    pub config: &'a Config,
    /// Empties the caches first, as a profiler does.
    pub cold: bool,
    /// Collects what a profile shows; cycles and results stay the same.
    pub detail: bool,
    /// SMs of which a profile has the states of single warps; the first where `None`.
    pub closely: Option<&'a [u32]>,
    /// Lets trace cells collect samples.
    pub sampling: Option<&'a Sampling>,
    /// Told the simulated cycles so far.
    pub cycles: Option<&'a AtomicU64>,
    /// Cycles between samples of how evenly the warps of CTAs progress; none are made where `None`.
    pub progress: Option<u64>,
    /// Hands over the machine's state every so often; cycles and results stay the same.
    pub checkpoints: Option<Checkpoints<'a>>,
    /// Goes on with the launch from a state that was handed over; memory is as it was then, and so are the other options.
    pub resume: Option<&'a [u8]>,
    /// Optimizes the code while it runs; results stay the same.
    pub optimize: Option<optimizing::Options>,
}

impl<'a> Timing<'a> {
    /// Cycles on a machine with warm caches, and nothing beyond them.
    pub fn new(config: &'a Config) -> Timing<'a> {
        Timing {
            config,
            cold: false,
            detail: false,
            closely: None,
            sampling: None,
            cycles: None,
            progress: None,
            checkpoints: None,
            resume: None,
            optimize: None,
        }
    }

    /// What the machine is told of a launch, or of several at once; `done` counts CTAs.
    pub(crate) fn run_options<'o>(&self, options: &LaunchOptions<'o>, done: &'o AtomicU64) -> RunOptions<'o>
    where
        'a: 'o,
    {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        RunOptions {
            threads: if options.threads == 0 { all() } else { options.threads },
            max_instructions: options.max_instructions,
            cancel: options.cancel,
            cycles_done: self.cycles,
            ctas_done: Some(done),
            progress: self.progress,
            record_choices: false,
            print: options.print,
            detail: self.detail,
            closely: self.closely,
            checkpoints: self.checkpoints,
            resume: self.resume,
            optimize: self.optimize,
        }
    }
}

/// Copies that are remembered for a machine that does not exist yet. Those before them are long out of its caches.
const REMEMBERED: usize = 256;

/// What times the launches of a device.
#[derive(Default)]
pub struct Machine {
    ppu: Option<Ppu>,
    /// Address and bytes of what the host wrote while there was no machine, neighbours put together.
    written: VecDeque<(u64, u64)>,
}

impl Machine {
    /// The host wrote to device memory.
    pub(crate) fn written(&mut self, address: u64, bytes: u64) {
        if let Some(ppu) = &mut self.ppu {
            ppu.host_write(address, bytes);
            return;
        }
        if let Some((start, length)) = self.written.back_mut()
            && *start + *length == address
        {
            *length += bytes;
            return;
        }
        if self.written.len() == REMEMBERED {
            self.written.pop_front();
        }
        self.written.push_back((address, bytes));
    }

    /// Starts anew: gives up the machine; what the host wrote before there was one.
    pub(crate) fn restart(&mut self) -> Vec<(u64, u64)> {
        self.ppu = None;
        self.written.iter().copied().collect()
    }

    /// The machine is used again.
    pub(crate) fn keep(&mut self, ppu: Ppu) {
        self.ppu = Some(ppu);
    }

    /// Goes back to a state without a machine in which the host had written this.
    pub(crate) fn go_back(&mut self, written: &[(u64, u64)]) {
        self.ppu = None;
        self.written = written.iter().copied().collect();
    }

    /// The machine of a configuration: the one there is, or a new one.
    pub(crate) fn ppu(&mut self, config: &Config) -> Ppu {
        match self.ppu.take() {
            Some(ppu) if ppu.config() == config => ppu,
            _ => {
                let mut ppu = Ppu::new(config.clone());
                self.written.drain(..).for_each(|(address, bytes)| ppu.host_write(address, bytes));
                ppu
            }
        }
    }
}

/// Turns the trace cells off, and takes over what they left in the event buffer.
fn collect(
    ppu: &mut Ppu,
    device: &Device,
    sampling: &Sampling,
    bytes: Vec<u8>,
) -> Result<Sampled, simt::MemoryError> {
    let buffer = ppu.trace_registers().wide(registers::BUFFER);
    // The control register can always be cleared.
    let _ = ppu.write_trace_register(registers::CONTROL, 0);
    let (records, lost) =
        (ppu.trace_registers().wide(registers::RECORDS), ppu.trace_registers().wide(registers::LOST));
    device.memory().free_dirty(buffer)?;
    Ok(Sampled { form: sampling.settings.form, bytes, records, lost, versions: Vec::new() })
}

impl Module {
    /// Runs a checked launch on the timed machine.
    pub(crate) fn launch_timed(
        &self,
        device: &Device,
        entry: &str,
        shape: &simt::Shape,
        params: &[u8],
        options: &LaunchOptions<'_>,
        timing: &Timing<'_>,
    ) -> Result<LaunchStats, LaunchError> {
        let engine = |e: simt::LaunchError| LaunchError::Engine(format!("kernel {entry}: {e}"));
        let program = self.program();
        let kernel = program
            .kernel(entry, options.vectors.unwrap_or_else(simt::Isa::best))
            .ok_or_else(|| engine(simt::LaunchError::NoEntry(entry.to_owned())))?;
        let launch = simt::Launch::new(program, kernel, shape, params, device.memory()).map_err(engine)?;
        if launch.kernel().launches() {
            // Child tasks need all of the front of the machine.
            let mut streams = Streams::new(device);
            let stream = streams.stream(0);
            streams.launch_checked(stream, self, entry, shape, params);
            let done = streams.synchronize(options, &Preempting::default())?;
            return Ok(done.launches.into_iter().next().unwrap_or_default());
        }
        let launch = Arc::new(launch);
        let counter = AtomicU64::new(0);
        let done = options.done.unwrap_or(&counter);
        let run = timing.run_options(options, done);
        let mut machine = device.machine();
        let mut ppu = machine.ppu(timing.config);
        let no_room = |e: simt::MemoryError| LaunchError::Engine(format!("no event buffer: {e}"));
        if timing.cold && timing.resume.is_none() {
            ppu.flush();
        }
        // A launch that goes on has its buffer, and the registers of the cells name it.
        if let Some(sampling) = timing.sampling.filter(|_| timing.resume.is_none()) {
            // The cells write before anybody reads.
            let buffer = device.memory().alloc_top_dirty(sampling.buffer_bytes).map_err(no_room)?;
            let settings =
                Settings { buffer, buffer_bytes: sampling.buffer_bytes, ..sampling.settings.clone() };
            for (offset, value) in settings.words() {
                let refused = |e: RegisterError| LaunchError::Engine(e.to_string());
                ppu.write_trace_register(offset, value).map_err(refused)?;
            }
        }
        let mut outcome = ppu.launch(&launch, device.memory(), &run);
        let bytes = outcome.as_mut().map_or_else(|_| Vec::new(), |timed| std::mem::take(&mut timed.sampled));
        let sampled = timing.sampling.map(|sampling| collect(&mut ppu, device, sampling, bytes)).transpose();
        let mut sampled = sampled.map_err(no_room)?.map(Box::new);
        match outcome {
            Ok(timed) => {
                machine.ppu = Some(ppu);
                if let (Some(sampled), Some(optimized)) = (&mut sampled, &timed.optimized) {
                    let of = |v: &optimizing::VersionReport| (v.first, v.origin.clone());
                    sampled.versions = optimized.versions.iter().map(of).collect();
                    sampled.versions.sort_by_key(|v| v.0);
                }
                let shape = Shape {
                    ctas: launch.ctas(),
                    threads: launch.threads(),
                    registers: launch.kernel().function().registers,
                    shared_bytes: launch.shared_bytes,
                };
                let report = Report::new(
                    timing.config,
                    shape,
                    timed.cycles,
                    timed.counters,
                    timed.stalls,
                    timed.occupancy,
                );
                Ok(LaunchStats {
                    warp_instructions: report.counters.warp_instructions,
                    thread_instructions: report.counters.thread_instructions,
                    ctas: launch.ctas(),
                    report: Some(Box::new(report)),
                    detail: timed.detail,
                    sampled,
                    progress: timed.progress,
                    optimized: timed.optimized,
                })
            }
            // What a launch leaves behind when it is stopped is not used again.
            Err(stopped) => Err(self.stopped(entry, stopped, options, &launch, done)),
        }
    }

    pub(crate) fn stopped(
        &self,
        entry: &str,
        stopped: Stopped,
        options: &LaunchOptions<'_>,
        launch: &simt::Launch,
        done: &AtomicU64,
    ) -> LaunchError {
        let kernel = entry.to_owned();
        match stopped {
            Stopped::Fault(failure) => {
                LaunchError::Fault(Box::new(FaultReport::new(entry, self.image(), &failure.fault)))
            }
            Stopped::TooLong(at) => LaunchError::TooManyInstructions {
                kernel,
                limit: options.max_instructions.unwrap_or(u64::MAX),
                place: self.place(at),
            },
            Stopped::Cancelled(at) => LaunchError::Cancelled {
                kernel,
                ctas_done: done.load(Ordering::Relaxed),
                ctas: launch.ctas(),
                place: self.place(at),
            },
            Stopped::Refused(message) => LaunchError::Refused(Refusal {
                part: Part::Block,
                message: format!("the machine cannot run kernel {entry}: {message}"),
                help: "use smaller CTAs or another configuration".into(),
            }),
            Stopped::TooLate => LaunchError::Engine(format!(
                "kernel {entry}: the machine's clock ends at cycle {}: launch it earlier",
                machine::sm::LAST_CYCLE
            )),
            Stopped::Checkpoint(why) => LaunchError::Checkpoint { kernel, why },
            Stopped::Stuck(why) => {
                LaunchError::Engine(format!("kernel {entry}: nothing can go on any more: {why}"))
            }
        }
    }
}
