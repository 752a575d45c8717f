//! Streams on the timed machine: each a push buffer.

use super::{Preempting, StateBuffer, Step, Streams, Synchronized, Timeline};
use crate::launch::{LaunchError, LaunchOptions, LaunchStats};
use crate::timing::Timing;
use machine::command::Task;
use machine::compute_scheduler::tmd;
use machine::distribution::Occupancy;
use machine::report::Shape;
use machine::tasks::{Batch, BatchLaunch, BatchTimed, LaunchTimed, Separate, Step as MachineStep, What};
use machine::{Config, Report};
use simt::{Launch, MemoryError};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The smallest buffer for suspended CTAs that makes sense.
const SMALLEST: u64 = 1 << 20;

impl Streams<'_> {
    pub(super) fn run_timed(
        &self,
        options: &LaunchOptions<'_>,
        timing: &Timing<'_>,
        preempting: &Preempting,
    ) -> Result<Synchronized, LaunchError> {
        let memory = self.device.memory();
        let records = (self.launches.len() as u64 * tmd::BYTES).next_multiple_of(1 << 12);
        // Task metadata, and behind it room for CTAs that are suspended.
        let mut room = preempting.buffer_bytes.max(SMALLEST);
        let start = match timing.resume {
            // What goes on has them, above everything else.
            Some(_) => {
                let last = memory.allocations().last().map(|b| (b.start, b.end - b.start));
                let (start, bytes) =
                    last.filter(|l| l.1 > records).ok_or_else(|| LaunchError::Checkpoint {
                        kernel: self.launches.first().map_or_else(String::new, |l| l.entry.clone()),
                        why: "the checkpoint has no room for tasks".to_owned(),
                    })?;
                room = bytes - records;
                start
            }
            None => loop {
                match memory.alloc_top(records + room) {
                    Ok(start) => break start,
                    Err(_) if room > SMALLEST => room /= 2,
                    Err(e) => return Err(LaunchError::Engine(format!("no room for tasks: {e}"))),
                }
            },
        };
        let outcome = self.run_batch(options, timing, preempting, start, records, room);
        let freed = memory.free(start);
        let done = outcome?;
        freed.map_err(|e: MemoryError| LaunchError::Engine(e.to_string()))?;
        Ok(done)
    }

    fn run_batch(
        &self,
        options: &LaunchOptions<'_>,
        timing: &Timing<'_>,
        preempting: &Preempting,
        start: u64,
        records: u64,
        room: u64,
    ) -> Result<Synchronized, LaunchError> {
        let level = options.vectors.unwrap_or_else(simt::Isa::best);
        let mut launches = Vec::new();
        for (n, asked) in self.launches.iter().enumerate() {
            let engine = |e: simt::LaunchError| LaunchError::Engine(format!("kernel {}: {e}", asked.entry));
            let program = asked.module.program();
            let kernel = program
                .kernel(&asked.entry, level)
                .ok_or_else(|| engine(simt::LaunchError::NoEntry(asked.entry.clone())))?;
            let mut launch = Launch::new(program, kernel, &asked.shape, &asked.params, self.device.memory())
                .map_err(engine)?;
            launch.queue = asked.queue.map(|q| q.address);
            launches.push(BatchLaunch {
                launch: Arc::new(launch),
                priority: asked.priority,
                at_head: asked.insertion.at_head,
                tmd: start + n as u64 * tmd::BYTES,
            });
        }
        let step = |&(stream, at, ref what): &(usize, u64, Step)| MachineStep {
            stream,
            at,
            what: match what {
                Step::Launch(n) => What::Launch(*n),
                Step::Transfer(n) => What::Transfer(*n),
                Step::Record(event) => What::Record(event.0),
                Step::Wait(event) => What::Wait(event.0),
            },
        };
        let batch = Batch {
            streams: self.priorities.clone(),
            launches,
            transfers: self.transfers.clone(),
            steps: self.steps.iter().map(step).collect(),
            mode: preempting.mode,
            time_slice: preempting.time_slice,
            stops: preempting.stops.clone(),
        };
        let counter = AtomicU64::new(0);
        let done = options.done.unwrap_or(&counter);
        let run = timing.run_options(options, done);
        let mut own_machine = self.device.machine();
        let mut ppu = own_machine.ppu(timing.config);
        if timing.cold && timing.resume.is_none() {
            ppu.flush();
        }
        let mut buffer = StateBuffer::new(start + records, room);
        match ppu.run(&batch, &mut buffer, self.device.memory(), &run) {
            Ok(timed) => {
                own_machine.keep(ppu);
                let of = |n: usize| {
                    let own = &timed.launches[n];
                    let separate = timed.separate.get(n);
                    let report = separate.map(|separate| {
                        Box::new(self.report(timing.config, &batch.launches[n], own, &timed, separate))
                    });
                    LaunchStats {
                        warp_instructions: own.warp_instructions,
                        thread_instructions: own.thread_instructions,
                        ctas: own.ctas,
                        report,
                        detail: separate.and_then(|s| s.detail.clone()),
                        optimized: separate.and_then(|s| s.optimized.clone()),
                        ..LaunchStats::default()
                    }
                };
                let bytes = |&r: &usize| timed.read.iter().find(|(n, _)| *n == r).map(|(_, b)| b.clone());
                Ok(Synchronized {
                    launches: (0..self.launches.len()).map(of).collect(),
                    read: self.reads.iter().map(|r| bytes(r).unwrap_or_default()).collect(),
                    timeline: Some(Timeline {
                        cycles: timed.cycles,
                        counters: timed.counters,
                        launches: timed.launches,
                        moves: timed.moves,
                        stopped: timed.stopped,
                    }),
                })
            }
            Err(stopped) => {
                let n = match &stopped {
                    machine::ppu::Stopped::Fault(failure) => failure.launch as usize,
                    _ => 0,
                };
                let refused = LaunchError::Engine("the machine stopped without work".into());
                let asked = self.launches.get(n).ok_or(refused)?;
                Err(asked.module.stopped(&asked.entry, stopped, options, &batch.launches[n].launch, done))
            }
        }
    }

    /// What is told of a launch: of one among others what the SMs counted of it, from when the machine knew of it to its end.
    fn report(
        &self,
        config: &Config,
        own: &BatchLaunch,
        when: &LaunchTimed,
        all: &BatchTimed,
        separate: &Separate,
    ) -> Report {
        let launch = &own.launch;
        let shape = Shape {
            ctas: if launch.queue.is_some() { when.ctas } else { launch.ctas() },
            threads: launch.threads(),
            registers: launch.kernel().function().registers,
            shared_bytes: launch.shared_bytes,
        };
        let task = Task {
            ctas: shape.ctas,
            threads: shape.threads,
            registers: shape.registers,
            shared_bytes: shape.shared_bytes,
            barriers: launch.kernel().function().barriers,
            ..Task::default()
        };
        let occupancy = Occupancy::new(&config.sm, &task, 0);
        let is_part = self.launches.len() > 1;
        let cycles = if is_part { when.ended.saturating_sub(when.known) } else { all.cycles };
        let (counters, stalls) = (separate.counters, separate.stalls.clone());
        let report = Report::new(config, shape, cycles, counters, stalls, occupancy);
        if is_part { report.of_part() } else { report }
    }
}
