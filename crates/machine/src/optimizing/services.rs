//! All launches that run at once and are optimized: each has versions of its own, in room that those of one program share.

use super::report::Optimized;
use super::room::Arena;
use super::service::{self, Begin, Kept, Service};
use super::{INSTRUCTION_BYTES, Options};
use crate::Config;
use crate::memory;
use crate::ppu::Part;
use crate::sm::{Context, replacing};
use crate::units::{Cycle, LINE};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A launch that is optimized.
struct Own {
    /// Which of all launches it is.
    job: usize,
    service: Box<Service>,
}

/// Who makes versions.
pub(crate) struct Services {
    options: Options,
    /// By number on the machine.
    list: Vec<Option<Own>>,
    arenas: Vec<Arena>,
    /// What launches left for the next ones of their kernels.
    kept: Vec<Kept>,
    /// Of launches that have ended.
    reports: BTreeMap<usize, Box<Optimized>>,
}

/// What a checkpoint has of it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Saved {
    list: Vec<Option<(usize, service::Saved)>>,
    arenas: Vec<Arena>,
    kept: Vec<Kept>,
    reports: BTreeMap<usize, Box<Optimized>>,
}

/// Where the code of a context lies.
fn base_of(context: &Context<'_>) -> u64 {
    context.code.first_line * LINE
}

impl Services {
    /// Takes over what launches before left.
    pub fn new(options: Options, kept: Vec<Kept>) -> Services {
        Services { options, list: Vec::new(), arenas: Vec::new(), kept, reports: BTreeMap::new() }
    }

    /// What is left for launches that come.
    pub fn into_kept(self) -> Vec<Kept> {
        self.kept
    }

    /// Room behind the code of a context's program.
    fn arena(&mut self, context: &Context<'_>, config: &Config) -> usize {
        let base = base_of(context);
        self.arenas.iter().position(|a| a.base == base).unwrap_or_else(|| {
            let own = context.launch.program().image().code.len();
            let mut arena = Arena::new(base, own, config.optimizer.code_bytes);
            for (version, _, _, first) in self.kept.iter().filter(|k| k.key.0 == base).flat_map(|k| &k.made) {
                arena.take(*first, &version.origin);
            }
            self.arenas.push(arena);
            self.arenas.len() - 1
        })
    }

    /// A launch begins, none of whose CTAs has: its context from now on. None where it has nothing that could be optimized.
    pub fn begin<'l>(
        &mut self,
        context: &Context<'l>,
        (number, job): (u32, usize),
        start: Cycle,
        with_others: bool,
        config: &Config,
    ) -> Option<Context<'l>> {
        let (launch, base, options) = (&*context.launch, base_of(context), self.options);
        let arena = self.arena(context, config);
        let begin = Begin { config, options, launch, start, base, number, with_others };
        let key = (base, launch.kernel().function().start);
        let kept = self.kept.iter().find(|k| k.key == key);
        let service = Box::new(Service::new(&begin, &mut self.arenas[arena], kept)?);
        let context = service.context(context, config);
        let n = number as usize;
        self.list.resize_with(self.list.len().max(n + 1), || None);
        self.list[n] = Some(Own { job, service });
        Some(context)
    }

    /// SMs take part in what has begun.
    pub fn join(&self, number: u32, parts: &mut [Part<'_>]) {
        let Some(own) = self.list.get(number as usize).and_then(Option::as_ref) else { return };
        for (n, part) in parts.iter_mut().enumerate() {
            part.sm.set_replacing(number as usize, Some(own.service.replacing(n)));
        }
    }

    /// Answers requests, and merges tables; the contexts where these have changed.
    pub fn serve<'l>(
        &mut self,
        parts: &mut [Part<'l>],
        until: Cycle,
        config: &Config,
        memory: &mut memory::System,
    ) -> Option<Arc<Vec<Context<'l>>>> {
        let mut has_grown = false;
        for own in self.list.iter_mut().flatten() {
            let base = own.service.base;
            let Some(arena) = self.arenas.iter_mut().find(|a| a.base == base) else { continue };
            let done = own.service.serve(parts, until, config, arena);
            if let Some(grown) = done.grown {
                let bytes = u64::from(INSTRUCTION_BYTES);
                memory.host_write(base + u64::from(grown.start) * bytes, grown.len() as u64 * bytes);
                has_grown = true;
            }
            done.invalidated.into_iter().for_each(|gpc| memory.forget_code(gpc));
        }
        parts.first().filter(|_| has_grown).map(|p| p.work.contexts.clone())
    }

    /// A launch is over: its versions are kept for the next one of the kernel, at the level of the whole machine. How many there
    /// were.
    pub fn end(&mut self, number: u32, is_reported: bool, parts: &mut [Part<'_>]) -> u32 {
        let Some(own) = self.list.get_mut(number as usize).and_then(Option::take) else { return 0 };
        let versions = own.service.versions();
        let sms = parts.iter_mut().filter_map(|p| p.sm.set_replacing(number as usize, None));
        let replaced: Vec<_> = sms.collect();
        if let Some(kept) = own.service.keep(replaced.iter().map(|r| &r.table)) {
            self.kept.retain(|k| k.key != kept.key);
            self.kept.push(kept);
        }
        if is_reported {
            let report = own.service.report(replaced.into_iter().map(|r| (r.tally, r.events)));
            self.reports.insert(own.job, report);
        }
        versions
    }

    /// What was done for a launch that has ended.
    pub fn report(&mut self, job: usize) -> Option<Box<Optimized>> {
        self.reports.remove(&job)
    }

    /// The place of a program's own code that an instruction of a context comes from.
    pub fn origin(&self, context: &Context<'_>, pc: u32) -> u32 {
        let base = base_of(context);
        self.arenas.iter().find(|a| a.base == base).map_or(pc, |a| a.origin(pc))
    }

    /// For a checkpoint.
    pub fn save(&self) -> Saved {
        let save = |own: &Own| (own.job, own.service.save());
        Saved {
            list: self.list.iter().map(|own| own.as_ref().map(save)).collect(),
            arenas: self.arenas.clone(),
            kept: self.kept.clone(),
            reports: self.reports.clone(),
        }
    }

    /// What was saved, with contexts that its launches begin with; those with all versions take their places.
    pub fn restore(
        options: Options,
        saved: Saved,
        contexts: &mut [Context<'_>],
        config: &Config,
    ) -> Option<Services> {
        let mut services = Services::new(options, saved.kept);
        (services.arenas, services.reports) = (saved.arenas, saved.reports);
        for (n, own) in saved.list.into_iter().enumerate() {
            let Some((job, saved)) = own else {
                services.list.push(None);
                continue;
            };
            let context = contexts.get_mut(n)?;
            let (base, own) = (base_of(context), context.launch.program().image().code.len());
            let arena = services.arenas.iter_mut().find(|a| a.base == base)?;
            if !arena.is_sound(own, config.optimizer.code_bytes) {
                return None;
            }
            let who = (base, n as u32);
            let service = Service::restore(config, options, &context.launch, who, arena, saved)?;
            *context = service.context(context, config);
            services.list.push(Some(Own { job, service: Box::new(service) }));
        }
        Some(services)
    }

    /// SMs that were saved take part again; whether they can.
    pub fn rejoin(&self, parts: &mut [Part<'_>], saved: Vec<Vec<Option<replacing::Saved>>>) -> bool {
        parts.iter_mut().zip(saved).enumerate().all(|(sm, (part, saved))| {
            let mut saved = saved.into_iter();
            let is_so =
                self.list.iter().enumerate().all(|(number, own)| match (own, saved.next().flatten()) {
                    (None, None) => true,
                    (Some(own), Some(saved)) => {
                        let new = own.service.replacing(sm).restore(saved, &mut part.work);
                        new.is_some_and(|new| part.sm.set_replacing(number, Some(new)).is_none())
                    }
                    _ => false,
                });
            part.sm.note_work();
            is_so && saved.next().is_none()
        })
    }
}
