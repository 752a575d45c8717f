//! Several launches at once: a batch on a processor, from its first command to the end of all.

use super::checkpoint::{self, Begun};
use super::{CONSTANT_BASE, INSTRUCTION_BYTES, Part, Ppu, Run, RunOptions, Stopped};
use crate::counters::Counters;
use crate::observe::{self, Traffic};
use crate::optimizing::Services;
use crate::sm::code::Class;
use crate::sm::policy::Program;
use crate::sm::watch::Watcher;
use crate::sm::{Begin, Context, Work};
use crate::stall::{STALLS, Stall, StallCycles};
use crate::tasks::{Allocate, Batch, BatchTimed, Separate, Tasks};
use crate::workers::Workers;
use simt::Memory;
use std::sync::Arc;

/// Bytes of code that may be made while launches run.
fn code_room(options: &RunOptions<'_>, config: &crate::Config) -> u32 {
    options.optimize.map_or(0, |_| config.optimizer.code_bytes)
}

impl Ppu {
    /// Runs all that a host wants done by several push buffers, to its end. `buffer` has room for CTAs that are suspended.
    pub fn run(
        &mut self,
        batch: &Batch,
        buffer: &mut dyn Allocate,
        memory: &Memory,
        options: &RunOptions<'_>,
    ) -> Result<BatchTimed, Stopped> {
        let config = self.config.clone();
        options.can_optimize()?;
        let mut resumed = options.resume.map(|bytes| self.resume(bytes)).transpose()?;
        let start = resumed.as_ref().map_or(self.now.later(self.next_submit), |begun| begun.reached.start);
        let grids = self.launches;
        let mut services = None;
        let mut tasks = match &mut resumed {
            Some(begun) => {
                let saved = begun.services.take();
                let kept = begun.tasks.take().ok_or_else(|| checkpoint::damaged("a single launch"))?;
                let known = self.programs.len();
                let room = code_room(options, &config);
                let with_versions = |contexts: &mut [Context<'_>]| {
                    if let (Some(optimize), Some(saved)) = (options.optimize, saved) {
                        services = Services::restore(optimize, saved, contexts, &config);
                    }
                    services.is_some() == options.optimize.is_some()
                };
                let place = |image: &_| self.place(image);
                let tasks = Tasks::resume(batch, buffer, kept, &config, memory, room, with_versions, place);
                if self.programs.len() != known {
                    return Err(checkpoint::damaged("another program"));
                }
                tasks.ok_or_else(|| checkpoint::damaged("other tasks"))?
            }
            None => {
                let room = code_room(options, &config);
                services = options.optimize.map(|o| Services::new(o, std::mem::take(&mut self.versions)));
                Tasks::new(batch, buffer, start, grids, &config, memory, room, |image| self.place(image))
            }
        };
        let mut begin = Begin {
            launches: tasks.groups(),
            ..Begin::new(tasks.contexts.iter().map(|c| &c.code), CONSTANT_BASE, 0)
        };
        if services.is_some() {
            // What versions will have is not known yet.
            (begin.classes, begin.instructions) = (u32::MAX, tasks.longest());
        }
        // Of several programs none is known to the schedulers.
        let mut images = tasks.images();
        let program = match (images.next(), images.next()) {
            (Some((image, _)), None) => Program::new(image, config.sm.scheduler.grants.accesses),
            _ => Program::default(),
        };
        drop(images);
        let program = Arc::new(program);
        let mut ready = Ok(());
        let (parts, begun) = match resumed {
            Some(mut begun) => {
                self.sms.iter_mut().for_each(|sm| sm.set_program(&program));
                (begun.parts(self.sms.drain(..), &tasks.contexts, services.as_ref())?, begun)
            }
            None => {
                self.memory.reset_counters();
                for (image, place) in tasks.images() {
                    self.memory.host_write(place, image.code.len() as u64 * INSTRUCTION_BYTES);
                }
                let mut parts: Vec<Part<'_>> = Vec::with_capacity(self.sms.len());
                let are_long = observe::are_long(&tasks.contexts, self.sms.len());
                for mut sm in self.sms.drain(..) {
                    sm.record_choices(false);
                    sm.watch_progress(None, start);
                    sm.set_program(&program);
                    sm.begin_launch(&begin);
                    let recorder = observe::recorder(&sm, start, are_long, options);
                    sm.watch(recorder.map(|r| Box::new(Watcher { cell: None, recorder: Some(r) })));
                    let work = Work::new(tasks.contexts.clone());
                    parts.push(Part { sm, work, requests: Vec::new(), answers: Vec::new() });
                }
                ready = tasks.begin(&mut self.front, &config, memory);
                let traffic = options.detail.then(|| Traffic::new(start));
                let begun = Begun::new(start, config.quantum, parts.len(), traffic);
                (parts, begun)
            }
        };
        let kept = self.kept();
        let reached = begun.reached;
        let (system, front) = (&mut self.memory, &mut self.front);
        let checkpointed = &mut self.checkpointed;
        let mut run =
            Run::new(&config, system, front, memory, options, parts, begun, kept, checkpointed, Some(tasks));
        run.services = services;
        let threads = options.threads.max(1);
        let outcome = ready.and_then(|()| Workers::with(threads, |workers| run.finish(workers, reached)));
        if let Some(print) = options.print {
            run.printed.values().for_each(|text| print(text));
        }
        let mut counters = run.memory.counters();
        run.front.close_channels();
        run.front.set_preemption(None);
        let mut rows = vec![[0; STALLS]; begin.instructions * begin.launches.max(1)];
        let mut separate = vec![Counters::default(); begin.launches];
        let traffic = run.traffic.take();
        let mut services = run.services.take();
        let mut watchers = Vec::new();
        for mut part in run.parts {
            part.sm.add_to(&mut counters, &mut rows);
            part.sm.add_launches(&mut separate);
            watchers.extend(part.sm.take_watcher());
            self.sms.push(part.sm);
        }
        let Some(mut tasks) = run.tasks else { return Err(Stopped::Refused("no tasks".into())) };
        tasks.finish();
        self.launches = tasks.grids();
        let end = outcome.map_err(|stopped| tasks.named(stopped))?;
        self.now = end;
        self.next_submit = self.next_submit.later(start);
        let launches = tasks.timed();
        let own: Vec<(&Context<'_>, &[StallCycles])> = tasks.contexts[..tasks.separate()]
            .iter()
            .map(|c| {
                // What child tasks ran is counted with it, wherever its code lies.
                let length = if services.is_some() { begin.instructions } else { c.code.len() };
                (c, &rows[c.rows as usize..][..length])
            })
            .collect();
        let mut details = Vec::new();
        if let Some(traffic) = traffic {
            details = observe::details(watchers, &own);
            for (detail, (context, _)) in details.iter_mut().zip(&own) {
                if let Some(services) = &services {
                    let length = context.launch.program().image().code.len() + 1;
                    observe::fold(detail, length, |pc| services.origin(context, pc));
                }
                detail.code_base = context.code.first_line * crate::units::LINE;
                traffic.clone().finish(end - start, counters, &mut detail.timeline);
            }
        }
        let mut details = details.into_iter();
        let separate = own.iter().enumerate().map(|(n, (context, stalls))| {
            let known = separate.get(n).copied();
            let mut own = Separate {
                counters: known.unwrap_or(counters),
                stalls: stalls.to_vec(),
                detail: details.next().map(Box::new),
                optimized: None,
            };
            if let Some(services) = &mut services {
                let length = context.launch.program().image().code.len() + 1;
                observe::fold_stalls(&mut own.stalls, length, |pc| services.origin(context, pc));
                own.optimized = services.report(n);
            }
            if known.is_some() {
                own.count(context, tasks.totals(n));
            }
            own
        });
        let separate = separate.collect();
        if let Some(services) = services {
            self.versions = services.into_kept();
        }
        Ok(BatchTimed {
            cycles: end - start,
            counters,
            separate,
            launches,
            read: std::mem::take(&mut tasks.read),
            moves: std::mem::take(&mut tasks.moves),
            stopped: std::mem::take(&mut tasks.stopped),
        })
    }
}

impl Separate {
    /// What follows from which instructions issued, and from what its CTAs did: CTAs, warp and thread instructions.
    fn count(&mut self, context: &Context<'_>, [ctas, warps, threads]: [u64; 3]) {
        let c = &mut self.counters;
        (c.ctas, c.warp_instructions, c.thread_instructions) = (ctas, warps, threads);
        c.warp_cycles = self.stalls.iter().flatten().sum();
        for (pc, row) in self.stalls.iter().enumerate() {
            let issued = row[Stall::Selected as usize];
            c.issue_cycles += issued;
            let pipe = match context.code.timing_of(pc as u32).class {
                Class::Alu => &mut c.pipe_alu,
                Class::Fma | Class::Imad => &mut c.pipe_fma,
                Class::Half => &mut c.pipe_half,
                Class::Fp64 => &mut c.pipe_fp64,
                Class::Xu => &mut c.pipe_xu,
                Class::Global | Class::Shared => &mut c.pipe_lsu,
                Class::Uniform => &mut c.pipe_uniform,
                Class::Branch => &mut c.pipe_branch,
                Class::Tensor => &mut c.pipe_tensor,
                Class::Tex => &mut c.pipe_tex,
                Class::Misc | Class::Constant => continue,
            };
            *pipe += issued;
        }
    }
}
