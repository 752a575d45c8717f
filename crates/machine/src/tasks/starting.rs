//! Tasks that start while a batch runs: those of kernels, and what each needs before its first CTA.

use super::MAX_CHILDREN;
use super::serve::{Tasks, preferred_split, task_of};
use crate::Config;
use crate::front::Front;
use crate::memory;
use crate::optimizing::Services;
use crate::ppu::{INSTRUCTION_BYTES, Part, Stopped};
use crate::sm::{Context, Failure};
use crate::units::{Cycle, LINE};
use simt::{Fault, FaultKind, Memory};
use std::sync::Arc;

impl<'l> Tasks<'l, '_> {
    /// Child tasks that kernels started.
    pub(super) fn spawn(
        &mut self,
        until: Cycle,
        front: &mut Front,
        parts: &mut [Part<'l>],
        system: &mut memory::System,
        device: &'l Memory,
        mut services: Option<&mut Services>,
        config: &Config,
    ) -> Result<(), Stopped> {
        let mut ready = Vec::new();
        for part in parts.iter_mut() {
            for spawned in std::mem::take(&mut part.sm.spawned) {
                let Some(parent) = self.job_of[spawned.launch as usize] else { continue };
                for child in spawned.children {
                    let (job, is_ready) =
                        self.jobs.start_child(parent, spawned.linear, child.launch, child.order);
                    if is_ready {
                        ready.push(job);
                    }
                    if self.jobs.children() > MAX_CHILDREN {
                        let fault = Fault {
                            kind: FaultKind::TooManyChildren(MAX_CHILDREN),
                            pc: isa::Pc(spawned.pc),
                            cta: spawned.cta,
                            thread: [0; 3],
                            access: None,
                        };
                        return Err(Stopped::Fault(Failure {
                            at: until,
                            launch: spawned.launch,
                            linear: spawned.linear,
                            fault: Box::new(fault),
                        }));
                    }
                }
            }
        }
        for job in ready {
            let services = services.as_deref_mut();
            self.start_child(job, until, front, parts, system, device, services, config);
        }
        Ok(())
    }

    /// A child task goes to the compute scheduler.
    pub(super) fn start_child(
        &mut self,
        job: usize,
        at: Cycle,
        front: &mut Front,
        parts: &mut [Part<'l>],
        system: &mut memory::System,
        device: &'l Memory,
        services: Option<&mut Services>,
        config: &Config,
    ) {
        let launch = self.jobs.list[job].launch.clone();
        let free = self.job_of.iter().position(Option::is_none);
        let number = free.unwrap_or(self.job_of.len());
        let context = self.context(job, number as u32, config, device);
        let mut contexts: Vec<Context<'l>> = self.contexts.to_vec();
        match free {
            Some(n) => {
                (contexts[n], self.job_of[n], self.made_for[n]) = (context, Some(job), job);
                // The number was another launch's: what belongs to that is forgotten.
                for part in parts.iter_mut() {
                    part.work.give_up(n);
                    part.sm.forget_constants();
                }
            }
            None => {
                contexts.push(context);
                self.job_of.push(Some(job));
                self.made_for.push(job);
            }
        }
        self.contexts = Arc::new(contexts);
        for part in parts.iter_mut() {
            part.work.contexts = self.contexts.clone();
        }
        let number = number as u32;
        let own = &mut self.jobs.list[job];
        own.number = Some(number);
        own.timed.known = at.since(self.start);
        let task = task_of(&launch, number, own.priority, 0);
        self.preload(system, number, launch.kernel().function().param_bytes);
        if let Some(services) = services {
            self.optimize(number, at, services, parts, system, config);
        }
        front.add_task(at, task, preferred_split(config, &task), None);
    }

    /// A launch that has a number is optimized while it runs.
    pub(super) fn optimize(
        &mut self,
        number: u32,
        at: Cycle,
        services: &mut Services,
        parts: &mut [Part<'l>],
        system: &mut memory::System,
        config: &Config,
    ) {
        let job = self.job_of(number);
        let context = &self.contexts[number as usize];
        let (base, own) = (context.code.first_line * LINE, context.image.code.len() as u64);
        let with_others = self.jobs.list.len() > 1 || context.launch.kernel().launches();
        let Some(context) = services.begin(context, (number, job), at, with_others, config) else { return };
        let mut contexts = self.contexts.to_vec();
        // What it took over from earlier launches.
        let more = context.image.code.len() as u64 - own;
        system.host_write(base + own * INSTRUCTION_BYTES, more * INSTRUCTION_BYTES);
        contexts[number as usize] = context;
        self.contexts = Arc::new(contexts);
        for part in parts.iter_mut() {
            part.work.contexts = self.contexts.clone();
        }
        services.join(number, parts);
    }
}
