//! Checkpoints: a launch under way as bytes, at an exchange point, and back.
//!
//! All of the machine's state is saved as it is; nothing is executed again. What follows from the configuration and the
//! program (decoded code, tables of waits) is made anew. At an exchange point no host thread works on an SM, so the state
//! is one state, whatever the number of threads; saving it changes nothing.

use super::{Part, Ppu, Run, Stopped};
use crate::Config;
use crate::front::Front;
use crate::memory;
use crate::observe::Traffic;
use crate::optimizing::{SavedServices, Services};
use crate::ports::{CtaEnd, Request, Response};
use crate::sm::preemption;
use crate::sm::replacing;
use crate::sm::trace_cell::Registers;
use crate::sm::{Context, Sm, Work};
use crate::sm::{CtaSlot, NO_CONTEXT};
use crate::tasks;
use crate::units::Cycle;
use serde::{Deserialize, Serialize};
use simt::memory::Bounds;
use simt::resident::{self, Resident};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// When a launch's state is handed over, and to whom.
#[derive(Clone, Copy)]
pub struct Checkpoints<'a> {
    /// Cycles of the machine between two; the first exchange point after so many counts.
    pub every: u64,
    /// Takes the state. A launch whose state cannot be kept is ended with the reason.
    pub keep: &'a (dyn Fn(&Moment<'_>) -> Result<(), String> + Sync),
}

/// A launch at an exchange point.
pub struct Moment<'a> {
    cycle: Cycle,
    state: State<'a>,
    zeros: Option<Bounds>,
}

impl Moment<'_> {
    /// The machine's cycle.
    pub fn cycle(&self) -> u64 {
        self.cycle.0
    }

    /// Device memory that is known to be all zeros: room for suspended CTAs that none has had.
    pub fn zeros(&self) -> Option<Bounds> {
        self.zeros
    }

    /// The state, for [`super::RunOptions::resume`].
    pub fn bytes(&self) -> Result<Vec<u8>, String> {
        postcard::to_allocvec(&self.state).map_err(|e| format!("the machine's state cannot be written: {e}"))
    }
}

/// A fingerprint of how state is laid out: that of a small machine that has run nothing, as it would be saved. Where the
/// fields of a block change, so does this; states with another one cannot be read.
pub fn layout() -> u64 {
    let Ok(config) = Config::preset("tiny") else { return 0 };
    let ppu = Ppu::new(config);
    let state = postcard::to_allocvec(&(ppu.kept(), &ppu.memory, &ppu.front, &ppu.sms)).unwrap_or_default();
    state.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}

/// What a processor keeps from launch to launch besides its SMs, the memory behind them and its front.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    now: Cycle,
    next_submit: Cycle,
    launches: u64,
    programs: Vec<u64>,
    trace_registers: Registers,
}

/// How far a launch has come.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Reached {
    pub start: Cycle,
    /// The exchange point that it is at.
    pub until: Cycle,
    /// When the launch had ended, where answers are still on their way.
    pub finished: Option<Cycle>,
    ctas_done: u64,
}

/// What is written. [`Saved`] is what is read: the same fields in the same order.
#[derive(Serialize)]
struct State<'a> {
    kept: &'a Kept,
    memory: &'a memory::System,
    front: &'a Front,
    reached: Reached,
    parts: Vec<PartState<'a>>,
    is_active: &'a [bool],
    outboxes: &'a [Vec<Request>],
    inboxes: &'a [Vec<Response>],
    ends: &'a [CtaEnd],
    printed: &'a BTreeMap<(usize, u64), Vec<u8>>,
    traffic: &'a Option<Traffic>,
    tasks: Option<tasks::Kept>,
    services: Option<SavedServices>,
}

#[derive(Serialize)]
struct PartState<'a> {
    sm: &'a Sm,
    ctas: Vec<Cta>,
    arriving: &'a [preemption::Saved],
    requests: &'a [Request],
    answers: &'a [Response],
    replacing: Vec<Option<replacing::Saved>>,
}

impl<'a> PartState<'a> {
    fn new(part: &'a Part<'_>) -> PartState<'a> {
        let Part { sm, work, requests, answers } = part;
        let ctas = work.ctas.iter().map(Cta::new).collect();
        let replacing = sm.replacing.iter().map(|r| r.as_ref().map(|r| r.save(work))).collect();
        PartState { sm, ctas, arriving: &work.arriving, requests, answers, replacing }
    }
}

#[derive(Deserialize)]
struct Saved {
    kept: Kept,
    memory: memory::System,
    front: Front,
    reached: Reached,
    parts: Vec<SavedPart>,
    is_active: Vec<bool>,
    outboxes: Vec<Vec<Request>>,
    inboxes: Vec<Vec<Response>>,
    ends: Vec<CtaEnd>,
    printed: BTreeMap<(usize, u64), Vec<u8>>,
    traffic: Option<Traffic>,
    tasks: Option<tasks::Kept>,
    services: Option<SavedServices>,
}

#[derive(Deserialize)]
struct SavedPart {
    sm: Sm,
    ctas: Vec<Cta>,
    arriving: Vec<preemption::Saved>,
    requests: Vec<Request>,
    answers: Vec<Response>,
    replacing: Vec<Option<replacing::Saved>>,
}

/// A CTA slot.
#[derive(Serialize, Deserialize)]
struct Cta {
    /// None where no CTA is in the slot: what an earlier one left there is never looked at.
    resident: Option<resident::Saved>,
    /// None where the launch of those that were in the slot is gone.
    context: Option<u32>,
    linear: u64,
    alive: u32,
    blocked: u32,
    staying: u32,
    phases: u64,
    end: u64,
    warps: Vec<u16>,
    times: u32,
}

impl Cta {
    fn new(slot: &CtaSlot<'_>) -> Cta {
        Cta {
            resident: slot.is_used.then(|| slot.resident.save()),
            context: u32::try_from(slot.context).ok(),
            linear: slot.linear,
            alive: slot.alive,
            blocked: slot.blocked,
            staying: slot.staying,
            phases: slot.phases,
            end: slot.end,
            warps: slot.warps.clone(),
            times: slot.times,
        }
    }

    fn restore<'l>(self, contexts: &[Context<'l>], slots: usize) -> Option<CtaSlot<'l>> {
        let is_used = self.resident.is_some();
        let number = self.context.map(|n| n as usize);
        let c = contexts.get(number.unwrap_or(0)).filter(|_| number.is_some() || !is_used)?;
        let is_sound = self.warps.iter().all(|&n| usize::from(n) < slots);
        Some(CtaSlot {
            resident: match self.resident {
                Some(saved) => Resident::restore(&c.launch, c.memory, saved)?,
                None => Resident::new(&c.launch, c.memory),
            },
            context: number.unwrap_or(NO_CONTEXT),
            linear: self.linear,
            alive: self.alive,
            blocked: self.blocked,
            staying: self.staying,
            phases: self.phases,
            end: self.end,
            is_used,
            warps: self.warps,
            times: self.times,
        })
        .filter(|_| is_sound)
    }
}

/// A launch that begins, or goes on: what belongs to it, not to the processor.
pub(super) struct Begun {
    pub reached: Reached,
    parts: Vec<(Vec<Cta>, Vec<preemption::Saved>, Vec<Request>, Vec<Response>)>,
    /// Where more than one launch runs.
    pub tasks: Option<tasks::Kept>,
    /// Where code is optimized while it runs, and what SMs know of that.
    pub services: Option<SavedServices>,
    replacing: Vec<Vec<Option<replacing::Saved>>>,
    pub is_active: Vec<bool>,
    pub outboxes: Vec<Vec<Request>>,
    pub inboxes: Vec<Vec<Response>>,
    pub ends: Vec<CtaEnd>,
    pub printed: BTreeMap<(usize, u64), Vec<u8>>,
    pub traffic: Option<Traffic>,
}

pub(super) fn damaged(what: &str) -> Stopped {
    Stopped::Checkpoint(format!("the checkpoint does not fit the machine or the program: {what}"))
}

impl Ppu {
    pub(super) fn kept(&self) -> Kept {
        Kept {
            now: self.now,
            next_submit: self.next_submit,
            launches: self.launches,
            programs: self.programs.clone(),
            trace_registers: self.trace_registers.clone(),
        }
    }

    /// Makes this processor what it was in the middle of a launch; the launch.
    pub(super) fn resume(&mut self, bytes: &[u8]) -> Result<Begun, Stopped> {
        let saved: Saved = postcard::from_bytes(bytes).map_err(|e| damaged(&e.to_string()))?;
        let sms = self.sms.len();
        let lists = [saved.parts.len(), saved.is_active.len(), saved.outboxes.len(), saved.inboxes.len()];
        if lists.iter().any(|&n| n != sms) || saved.memory.sms() != sms {
            return Err(damaged("another number of SMs"));
        }
        if saved.reached.until < saved.reached.start {
            return Err(damaged("a launch that has not begun"));
        }
        let mut begun = Begun {
            reached: saved.reached,
            parts: Vec::with_capacity(sms),
            is_active: saved.is_active,
            outboxes: saved.outboxes,
            inboxes: saved.inboxes,
            ends: saved.ends,
            printed: saved.printed,
            traffic: saved.traffic,
            tasks: saved.tasks,
            services: saved.services,
            replacing: Vec::with_capacity(sms),
        };
        for (own, part) in self.sms.iter_mut().zip(saved.parts) {
            if !own.replace(part.sm) {
                return Err(damaged("another kind of SM"));
            }
            begun.parts.push((part.ctas, part.arriving, part.requests, part.answers));
            begun.replacing.push(part.replacing);
        }
        let kept = saved.kept;
        (self.now, self.next_submit, self.launches) = (kept.now, kept.next_submit, kept.launches);
        (self.programs, self.trace_registers) = (kept.programs, kept.trace_registers);
        (self.memory, self.front) = (saved.memory, saved.front);
        self.checkpointed = saved.reached.until;
        Ok(begun)
    }
}

impl Begun {
    /// A launch that begins on so many SMs.
    pub fn new(start: Cycle, quantum: u32, sms: usize, traffic: Option<Traffic>) -> Begun {
        let quantum = u64::from(quantum.max(1));
        let until = Cycle((start.0 / quantum + 1) * quantum);
        Begun {
            reached: Reached { start, until, finished: None, ctas_done: 0 },
            parts: Vec::new(),
            tasks: None,
            services: None,
            replacing: Vec::new(),
            is_active: vec![false; sms],
            outboxes: vec![Vec::new(); sms],
            inboxes: vec![Vec::new(); sms],
            ends: Vec::new(),
            printed: BTreeMap::new(),
            traffic,
        }
    }

    /// The SMs with the CTAs that were on them.
    pub fn parts<'l>(
        &mut self,
        sms: impl Iterator<Item = Sm>,
        contexts: &Arc<Vec<Context<'l>>>,
        services: Option<&Services>,
    ) -> Result<Vec<Part<'l>>, Stopped> {
        let with_ctas = |(sm, (ctas, arriving, requests, answers)): (Sm, (Vec<Cta>, _, _, _))| {
            let slots = sm.size().0;
            let ctas: Option<Vec<CtaSlot<'l>>> =
                ctas.into_iter().map(|cta| cta.restore(contexts, slots)).collect();
            let work = Work { ctas: ctas?, arriving, ..Work::new(contexts.clone()) };
            sm.is_sound(&work).then_some(Part { sm, work, requests, answers })
        };
        let parts: Option<Vec<Part<'l>>> = sms.zip(std::mem::take(&mut self.parts)).map(with_ctas).collect();
        let mut parts = parts.ok_or_else(|| damaged("a CTA that cannot be"))?;
        let replacing = std::mem::take(&mut self.replacing);
        if services.is_some_and(|s| !s.rejoin(&mut parts, replacing)) {
            return Err(damaged("other versions of code"));
        }
        Ok(parts)
    }
}

impl Run<'_, '_> {
    /// Whether a checkpoint is due at an exchange point.
    fn is_due(&self, every: u64, until: Cycle) -> bool {
        let every = every.max(1);
        until.0 / every > self.checkpointed.0 / every
    }

    /// Hands the state over when it is time to.
    pub(super) fn checkpoint(&mut self, reached: Reached) -> Result<(), Stopped> {
        let Some(checkpoints) = self.options.checkpoints else { return Ok(()) };
        if !self.is_due(checkpoints.every, reached.until) {
            return Ok(());
        }
        *self.checkpointed = reached.until;
        self.gather_tables();
        let ctas_done = self.options.ctas_done.map_or(0, |done| done.load(Ordering::Relaxed));
        let state = State {
            kept: &self.kept,
            memory: self.memory,
            front: self.front,
            reached: Reached { ctas_done, ..reached },
            parts: self.parts.iter().map(PartState::new).collect(),
            is_active: &self.is_active,
            outboxes: &self.outboxes,
            inboxes: &self.inboxes,
            ends: &self.ends,
            printed: &self.printed,
            traffic: &self.traffic,
            tasks: self.tasks.as_ref().map(|tasks| tasks.keep(self.device)),
            services: self.services.as_ref().map(Services::save),
        };
        let zeros = self.tasks.as_ref().map(|tasks| tasks.untouched());
        let moment = Moment { cycle: reached.until, state, zeros };
        (checkpoints.keep)(&moment).map_err(Stopped::Checkpoint)
    }

    /// Tells whoever counts how many CTAs were done before the launch went on.
    pub(super) fn count_again(&self, reached: &Reached) {
        if let Some(done) = self.options.ctas_done {
            done.store(reached.ctas_done, Ordering::Relaxed);
        }
    }
}
