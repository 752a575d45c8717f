//! The SM's loop: from one cycle in which something happens to the next.
//!
//! Nothing ticks. A sub-core knows the next cycle at which one of its warps could issue; the SM goes to the earliest of
//! these and of the answers and CTAs that come from outside. Everything else that takes time is a cycle in the future.

use super::code::{CLASSES, Class, Kind};
use super::constants::Constants;
use super::counted::Counted;
use super::fetch::Fetch;
use super::incoming::Incoming;
use super::layouts::Layouts;
use super::load_store::{self, Done, LoadStore, Operation, Path};
use super::outgoing::{self, Outgoing, is_code};
use super::policy::{Choice, Policies, Program};
use super::preemption::{Moved, Moving, Order, PointerTable};
use super::replacing::Replacing;
use super::spec::Spec;
use super::sub_core::SubCore;
use super::trace_cell::TraceCell;
use super::turns;
use super::warp::{Owner, State, WarpSlot};
use super::watch::Watcher;
use super::work::{Begin, Spawned, Work};
use crate::Config;
use crate::counters::Counters;
use crate::ports::{CtaEnd, CtaStart, Request, RequestKind, Response};
use crate::progress::Progress;
use crate::server::Line;
use crate::stall::{Stall, StallCycles, StallTable};
use crate::units::{Cycle, SmId};
use isa::field::Cache;
use serde::{Deserialize, Serialize};
use simt::Fault;
use simt::Where;
use simt::log::Log;
use simt::resident::Access;
use simt::special::Time;
use simt::sprint::Track;
use std::collections::VecDeque;
use std::sync::Arc;

/// Instructions of a code line.
pub const LINE_INSTRUCTIONS: u32 = 8;

/// A sub-core's turn.
pub(super) struct Turn {
    pub sub_core: usize,
    pub from: u64,
    /// When the next of the others has its turn.
    pub next: u64,
    /// The last cycle in which this one comes before it.
    pub until: u64,
}

/// How an SM's work ended early.
#[derive(Clone, Debug)]
pub struct Failure {
    pub at: Cycle,
    pub launch: u32,
    pub linear: u64,
    pub fault: Box<Fault>,
}

/// A streaming multiprocessor.
#[derive(Serialize, Deserialize)]
pub struct Sm {
    pub id: SmId,
    pub(super) spec: Arc<Spec>,
    pub(super) clock_mhz: u64,
    pub(super) sms: u32,
    /// The number of the first warp slot among those of all SMs.
    pub(super) first_slot: u64,
    /// Cycles after which an answer of the GPC can be here at the earliest.
    nearest: u64,
    /// Cycles after which what one sub-core does can matter to another, in the program that runs.
    pub(super) lookahead: u64,
    /// Cycles from the end of a CTA to the start of the next one at least.
    gap: u64,
    pub(super) subs: Vec<SubCore>,
    /// When each of them has its next turn, while the SM runs.
    pub(super) keys: Vec<u64>,
    /// Where the sub-cores' own order of warps is not all there is.
    pub(super) policies: Option<Box<Policies>>,
    pub(super) warps: Vec<WarpSlot>,
    pub(super) load_store: LoadStore,
    pub(super) fetch: Fetch,
    pub(super) constants: Constants,
    pub(super) barrier: Line,
    /// Warps that are here, and when the first of them came.
    pub(super) resident_warps: u32,
    pub(super) active_since: u64,
    pub(super) active_until: u64,
    pub(super) issued_by_class: [u64; CLASSES],
    /// Warp-cycles by reason, for every instruction of the code.
    pub(super) stalls: StallTable,
    pub counters: Counters,
    /// What its own sub-cores and caches count of each of the host's launches, where several run at once.
    pub(super) launches: Vec<Counted>,
    /// Who watches, if anybody does.
    pub(super) watcher: Option<Box<Watcher>>,
    /// When the trace cell's table is looked at, and whether its records go through the load-store unit.
    flush_at: u64,
    pub(super) drains: bool,
    /// Requests since the last exchange, and those from before that leave later.
    pub out: Vec<Request>,
    pub(super) outgoing: Outgoing,
    pub ends: Vec<CtaEnd>,
    pub log: Log,
    #[serde(skip)]
    pub failure: Option<Failure>,
    /// What came in, by cycle.
    pub(super) inbox: Incoming,
    /// Who waits for the answers of this turn.
    pub(super) expected: Vec<Owner>,
    pub(super) starts: VecDeque<CtaStart>,
    /// Warps that ask again after the exchange; those that must be alone then.
    pub(super) retry: Vec<u16>,
    /// The next cycle at which anything happens here.
    next: u64,
    /// The newest grid of which CTAs came.
    pub(super) launched: u64,
    /// A sub-core did something that another one may have to look at before its next cycle.
    pub(super) touched: bool,
    /// The host has instructions for sets of warps.
    #[serde(skip, default = "super::schedule::counts_bits")]
    pub(super) counts_bits: bool,
    /// From here on nothing may happen that concerns others, and something would have.
    pub(super) horizon: u64,
    pub(super) is_held: bool,
    #[serde(skip)]
    pub(super) access: Access,
    /// Registers of warps that sprint: the host thread's, while the SM runs.
    #[serde(skip)]
    pub(super) track: Track,
    /// How lanes of instructions lay in shared memory.
    #[serde(skip)]
    pub(super) layouts: Layouts,
    #[serde(skip)]
    pub(super) done: Vec<Done>,
    #[serde(skip)]
    pub(super) constant_done: Vec<(u64, Cycle)>,
    #[serde(skip)]
    pub(super) lines: Vec<(u64, Cycle)>,
    /// How evenly warps progress, where someone wants to know; when to look, and the cycle that samples are counted from.
    pub progress: Option<Progress>,
    sample_at: u64,
    sample_from: u64,
    /// printf text of CTAs that ended: launch, CTA.
    pub output: Vec<(u32, u64, Vec<u8>)>,
    /// Where the local memory of each slot's warp is.
    pub(super) table: PointerTable,
    /// CTAs that are to leave, and those that leave or come back; when the next thing happens to one of them.
    pub(super) orders: VecDeque<Order>,
    pub(super) moving: Vec<Moving>,
    pub(super) movings: u16,
    pub(super) state_at: u64,
    /// What became of them, since somebody looked.
    pub moves: Vec<Moved>,
    /// Child tasks that were started.
    #[serde(skip)]
    pub spawned: Vec<Spawned>,
    /// CTAs whose warps all wait, some of them for child tasks: launch, CTA.
    pub waiting_parents: Vec<(u32, u64)>,
    /// Versions of code, by launch, where it is optimized while it runs, and when an optimizing warp issues next. They are saved by
    /// themselves.
    #[serde(skip)]
    pub replacing: Vec<Option<Box<Replacing>>>,
    pub(super) work_at: u64,
}

impl Sm {
    pub fn new(id: SmId, config: &Config) -> Sm {
        let spec = Arc::new(config.sm.clone());
        let sub_cores = spec.sub_cores.max(1);
        Sm {
            id,
            clock_mhz: u64::from(config.clock_mhz.max(1)),
            sms: config.sms(),
            first_slot: u64::from(id.0) * u64::from(spec.warps),
            nearest: config.nearest_answer().into(),
            lookahead: 1,
            gap: u64::from((config.distribution.start_latency + config.distribution.end_latency).max(1)),
            keys: vec![u64::MAX; sub_cores as usize],
            subs: (0..sub_cores).map(|n| SubCore::new(&spec, n)).collect(),
            policies: Policies::new(&spec, false),
            warps: (0..spec.warps).map(|_| WarpSlot::new()).collect(),
            load_store: LoadStore::new(id, &spec, sub_cores, spec.warps),
            fetch: Fetch::new(&spec.fetch, id, sub_cores),
            constants: Constants::new(&spec.constants, id, sub_cores),
            spec,
            barrier: Line::default(),
            resident_warps: 0,
            active_since: 0,
            active_until: 0,
            issued_by_class: [0; CLASSES],
            stalls: StallTable::default(),
            counters: Counters::default(),
            launches: Vec::new(),
            watcher: None,
            flush_at: u64::MAX,
            drains: false,
            out: Vec::new(),
            outgoing: Outgoing::default(),
            ends: Vec::new(),
            log: Log::default(),
            failure: None,
            inbox: Incoming::default(),
            expected: Vec::new(),
            starts: VecDeque::new(),
            retry: Vec::new(),
            next: u64::MAX,
            launched: 0,
            touched: false,
            counts_bits: super::schedule::counts_bits(),
            horizon: 0,
            is_held: false,
            access: Access::default(),
            track: Track::default(),
            layouts: Layouts::default(),
            done: Vec::new(),
            constant_done: Vec::new(),
            lines: Vec::new(),
            progress: None,
            sample_at: u64::MAX,
            sample_from: 0,
            output: Vec::new(),
            table: PointerTable::new(config.sm.warps),
            orders: VecDeque::new(),
            moving: Vec::new(),
            movings: 0,
            state_at: u64::MAX,
            moves: Vec::new(),
            spawned: Vec::new(),
            waiting_parents: Vec::new(),
            replacing: Vec::new(),
            work_at: u64::MAX,
        }
    }

    /// Warp slots and sub-cores.
    pub fn size(&self) -> (usize, usize) {
        (self.warps.len(), self.subs.len())
    }

    pub fn trace_spec(&self) -> &super::trace_cell::Spec {
        &self.spec.trace_cell
    }

    /// Prepares for launches: counters at zero, first-level caches as the driver leaves them.
    pub fn begin_launch(&mut self, begin: &Begin) {
        // Warps of different sub-cores meet at barriers; else they only share what happens in the order of cycles, and the
        // CTA that comes when theirs has ended.
        self.lookahead =
            if begin.meets { u64::from(self.spec.latency.barrier.max(1)).min(self.gap) } else { self.gap };
        self.counters = Counters::default();
        self.launches = vec![Counted::default(); begin.launches];
        self.issued_by_class = [0; CLASSES];
        self.stalls.reset(begin.instructions * begin.launches.max(1));
        self.subs.iter_mut().for_each(|sub| sub.begin_launch(begin.classes));
        self.load_store.set_split(begin.shared_split);
        self.load_store.invalidate();
        self.launched = 0;
        self.fetch.begin_launch();
        // Every launch has constants of its own at the same addresses.
        self.constants.invalidate();
        self.constants.begin_launch(begin.constant_base);
    }

    /// Tells the policies, where there are any, what runs.
    pub fn set_program(&mut self, program: &Arc<Program>) {
        if let Some(policies) = &mut self.policies {
            policies.begin_launch(program.clone());
        }
    }

    /// Whether every choice of a scheduler is recorded; no warp is here.
    pub fn record_choices(&mut self, wanted: bool) {
        if wanted != self.policies.as_ref().is_some_and(|p| p.record.is_some()) {
            self.policies = Policies::new(&self.spec, wanted);
        }
    }

    /// What was recorded.
    pub fn take_choices(&mut self) -> Vec<Choice> {
        self.policies.as_mut().and_then(|p| p.record.as_mut()).map(std::mem::take).unwrap_or_default()
    }

    // --- what comes in ------------------------------------------------------------------------------------------

    /// An answer; answers come in the order of their cycles within one exchange.
    pub fn deliver(&mut self, responses: &mut Vec<Response>) {
        if !responses.is_empty() {
            // In the order of cycles: the last one of a store says how far behind memory is.
            if let Some(last) = responses.iter().rev().find(|r| r.kind == RequestKind::Store) {
                self.load_store.hold_stores(last.at);
            }
            self.inbox.put(responses);
            self.next = self.next.min(self.next_arrival());
        }
    }

    /// Answers will be delivered, the first of them for this cycle.
    pub fn announce(&mut self, first: Cycle) {
        self.next = self.next.min(first.0);
    }

    /// A CTA to start.
    pub fn start(&mut self, start: CtaStart) {
        let n = self.starts.partition_point(|s| s.at <= start.at);
        self.starts.insert(n, start);
        self.next = self.next.min(self.starts[0].at.0);
    }

    /// What the warps wait for, in words.
    pub fn waiting(&self) -> String {
        let mut text = format!("SM {}:", self.id.0);
        for (n, w) in self.warps.iter().enumerate().filter(|(_, w)| w.state != State::Empty) {
            text += &format!(" warp {n} at {:#x} {:?} since {}, {} loads;", w.pc, w.state, w.since, w.loads);
        }
        text
    }

    /// Moves the requests that leave before `until` to an empty outbox, in the order of their cycles.
    pub fn send(&mut self, until: Cycle, outbox: &mut Vec<Request>) -> bool {
        if self.out.is_empty() && self.outgoing.is_empty() {
            return false;
        }
        self.outgoing.send(&mut self.out, until, outbox)
    }

    /// When the next request leaves.
    pub fn next_request(&self) -> Option<Cycle> {
        self.out.iter().map(|r| r.at).chain(self.outgoing.next()).min()
    }

    /// Whether CTAs of a launch are here, or on their way.
    pub fn has_ctas_of(&self, work: &Work<'_>, context: usize) -> bool {
        work.ctas.iter().any(|c| c.is_used && c.context == context)
            || self.starts.iter().any(|s| s.launch as usize == context)
    }

    /// Instructions issued in this launch.
    pub fn issued(&self) -> u64 {
        self.issued_by_class.iter().sum()
    }

    /// Forgets what the first-level caches hold.
    pub fn flush(&mut self) {
        self.load_store.invalidate();
        self.fetch.invalidate();
        self.constants.invalidate();
    }

    /// Adds what this SM counted.
    pub fn add_to(&self, counters: &mut Counters, stalls: &mut [StallCycles]) {
        let mut own = self.counters;
        self.launches.iter().for_each(|l| own.add(&l.counters));
        let class = |c: Class| self.issued_by_class[c as usize];
        own.pipe_alu = class(Class::Alu);
        own.pipe_fma = class(Class::Fma) + class(Class::Imad);
        own.pipe_half = class(Class::Half);
        own.pipe_fp64 = class(Class::Fp64);
        own.pipe_xu = class(Class::Xu);
        own.pipe_lsu = class(Class::Global) + class(Class::Shared);
        own.pipe_uniform = class(Class::Uniform);
        own.pipe_branch = class(Class::Branch);
        own.pipe_tensor = class(Class::Tensor);
        own.pipe_tex = class(Class::Tex);
        own.warp_cycles = self.stalls.add_to(stalls);
        counters.add(&own);
    }

    /// The next cycle at which something happens here; `None` when it waits for others.
    pub fn next_event(&self) -> Option<Cycle> {
        (self.next != u64::MAX).then_some(Cycle(self.next))
    }

    /// No CTA is here, nor on its way.
    pub fn is_empty(&self) -> bool {
        self.resident_warps == 0 && self.starts.is_empty() && self.moving.is_empty()
    }

    /// Forgets what the constant caches hold.
    pub fn forget_constants(&mut self) {
        self.constants.invalidate();
    }

    pub fn is_idle(&self) -> bool {
        self.resident_warps == 0
            && self.inbox.is_empty()
            && self.starts.is_empty()
            && self.state_at == u64::MAX
    }

    // --- the loop -----------------------------------------------------------------------------------------------

    /// Runs all cycles before `until`, and on to `ahead` as long as nothing happens that concerns others: no access to
    /// global memory, no request, no end of a CTA. All answers to earlier requests are known, so nothing from outside
    /// can come in between, unless a CTA is about to start here: the caller knows.
    pub fn run(&mut self, work: &mut Work<'_>, until: Cycle, ahead: Cycle) {
        self.horizon = until.0;
        self.is_held = false;
        self.note_turns();
        self.look_ahead(work, until);
        // Code and constants can come from nearby, sooner than the next exchange point.
        let nearest = self.nearest;
        let before = |limit: u64, r: &Request| limit.min(r.at.0 + nearest);
        let mut limit = self.outgoing.code().fold(ahead.0, before);
        let mut seen = 0;
        while self.failure.is_none() {
            if self.fetch.is_waiting() || self.constants.is_waiting() {
                limit = self.out[seen..].iter().filter(|r| is_code(r)).fold(limit, before);
            }
            seen = self.out.len();
            let turn = self.first();
            let arrival = self.next_arrival();
            let now = turn.from.min(arrival);
            self.next = now;
            if now >= limit || (now >= until.0 && self.concerns_others()) {
                return;
            }
            if now >= self.flush_at {
                self.flush_trace(now);
            }
            // Answers that accesses wait for are mostly taken between turns.
            let is_plain = now < self.sample_at && self.is_plain();
            let event = if is_plain { self.next_stop() } else { arrival };
            if event <= now {
                self.answers(work, now);
                if self.drain_at() <= now {
                    self.drain(now);
                }
                if self.state_at <= now {
                    self.move_state(work, now);
                }
                if self.next_slot() <= now {
                    self.take_slots(work, now);
                }
                while self.starts.front().is_some_and(|s| s.at.0 <= now) {
                    if let Some(start) = self.starts.pop_front() {
                        self.start_cta(work, &start, now);
                    }
                }
                self.note_turns();
                continue;
            }
            if is_plain {
                self.turns(work, event.min(limit).min(self.sample_at).min(self.flush_at));
                if self.is_held {
                    self.next = self.first().from;
                    return;
                }
                continue;
            }
            // What sub-cores do to each other takes a while: until then this one can run by itself.
            let alone = turn.next.saturating_add(self.lookahead).min(event).min(limit);
            let alone = if now < until.0 { alone.min(until.0) } else { alone };
            if now >= self.sample_at {
                self.sample(work, now);
            }
            match &self.policies {
                Some(p) if !p.is_local() => self.schedule_by_policy(work, turn.sub_core, now),
                _ => self.turn(work, &turn, alone.min(self.sample_at).min(self.flush_at)),
            }
            if self.touched || self.policies.is_some() {
                self.note_turns();
            } else {
                self.keys[turn.sub_core] = turns::key(self.subs[turn.sub_core].next, turn.sub_core);
            }
            if self.is_held {
                self.next = self.first().from;
                return;
            }
        }
    }

    /// The sub-core that is the furthest behind; of those in one cycle the first.
    #[inline(always)]
    pub(super) fn first(&self) -> Turn {
        turns::first(&self.keys)
    }

    /// Notes when each sub-core has its next turn.
    pub(super) fn note_turns(&mut self) {
        turns::note(&mut self.keys, &self.subs);
    }

    /// The next cycle at which something comes from outside.
    #[inline(always)]
    fn next_arrival(&self) -> u64 {
        let answer = self.inbox.front().map_or(u64::MAX, |r| r.at.0);
        answer.min(self.next_order())
    }

    /// The same without answers that turns take.
    #[inline(always)]
    fn next_stop(&self) -> u64 {
        let answer = self.inbox.front().filter(|r| !self.takes(r)).map_or(u64::MAX, |r| r.at.0);
        answer.min(self.next_order())
    }

    /// The same without answers.
    #[inline(always)]
    pub(super) fn next_order(&self) -> u64 {
        let start = self.starts.front().map_or(u64::MAX, |s| s.at.0);
        self.drain_at().min(start).min(self.state_at).min(self.next_slot())
    }

    /// When a warp that optimizes takes its next issue slot.
    #[inline(always)]
    fn next_slot(&self) -> u64 {
        if cfg!(without_optimizer) { u64::MAX } else { self.work_at }
    }

    /// Whether code of a launch is optimized while it runs.
    #[inline(always)]
    pub(super) fn is_optimizing(&self) -> bool {
        !cfg!(without_optimizer) && !self.replacing.is_empty()
    }

    /// Something happens here then.
    pub(super) fn wake_at(&mut self, at: u64) {
        self.next = self.next.min(at);
    }

    /// The next cycle at which the trace cell stores records through the load-store unit.
    #[inline(always)]
    fn drain_at(&self) -> u64 {
        if !self.drains {
            return u64::MAX;
        }
        let cell = self.watcher.as_ref().and_then(|w| w.cell.as_ref());
        // Without a warp nothing is sampled.
        cell.filter(|_| self.resident_warps > 0).map_or(u64::MAX, TraceCell::drain_at)
    }

    /// The trace cell's turn: a line of records goes the way of all stores.
    fn drain(&mut self, now: u64) {
        let s = (now % self.subs.len() as u64) as u32;
        let has_room = self.load_store.room(s, Path::Global).0 <= now;
        let cell = self.watcher.as_mut().and_then(|w| w.cell.as_mut());
        let Some(address) = cell.and_then(|cell| cell.drain(now, has_room)) else { return };
        let access = Access {
            mask: u32::MAX,
            global: u32::MAX,
            size: 4,
            place: Where::Consecutive(address),
            ..Access::default()
        };
        let operation = Operation {
            kind: load_store::Kind::Store,
            access: &access,
            cache: Cache::Default,
            sub_core: s,
            warp: 0,
            owner: Owner::NOBODY.pack(),
            registers: 1,
            rounds: 1,
            local_base: 0,
            is_remapped: false,
        };
        self.load_store.issue(Cycle(now), &operation, &mut self.out, &mut self.counters);
        let room = self.load_store.room(s, Path::Global).0;
        self.subs[s as usize].hold(Class::Global, now, room);
    }

    /// Somebody watches from now on, or nobody.
    pub fn watch(&mut self, watcher: Option<Box<Watcher>>) {
        let cell = watcher.as_ref().and_then(|w| w.cell.as_ref());
        self.drains = cell.is_some_and(TraceCell::drains);
        self.flush_at = cell.map_or(u64::MAX, TraceCell::flush_at);
        self.watcher = watcher;
    }

    /// Nobody watches any more: who did, with all that there was to see.
    pub fn take_watcher(&mut self) -> Option<Box<Watcher>> {
        (self.flush_at, self.drains) = (u64::MAX, false);
        self.watcher.take()
    }

    /// All that happened before a cycle is known: records of the trace cell that are complete go on.
    #[cold]
    fn flush_trace(&mut self, now: u64) {
        let Some(cell) = self.watcher.as_mut().and_then(|w| w.cell.as_mut()) else { return };
        self.flush_at = cell.next_flush(now);
        let used = self.warps.iter().filter(|w| w.state != State::Empty);
        // Warps that start have nothing before the cycle at which they come; what planned ones wait for may still be told.
        let since = |w: &WarpSlot| if w.state == State::Timed { w.since.min(w.issued + 1) } else { w.since };
        cell.flush(cell.known_until(now, used.map(since)));
    }

    /// Looks, every so many cycles from `start` on, how far the warps of each CTA are.
    pub fn watch_progress(&mut self, interval: Option<u64>, start: Cycle) {
        self.progress = interval.map(Progress::new);
        self.sample_at = if interval.is_some() { start.0 } else { u64::MAX };
        self.sample_from = start.0;
    }

    #[cold]
    fn sample(&mut self, work: &Work<'_>, now: u64) {
        let Some(progress) = &mut self.progress else { return };
        for cta in work.ctas.iter().filter(|cta| cta.is_used) {
            let warps = cta.warps.iter().map(|&n| &self.warps[n as usize]);
            let alive = warps.filter(|w| !matches!(w.state, State::Empty | State::Draining));
            let issued = alive.map(|w| cta.resident.warp(w.index as usize).executed - u64::from(w.ahead));
            let (low, high) = issued.fold((u64::MAX, 0), |(low, high), n| (low.min(n), high.max(n)));
            if low <= high {
                progress.add(now - self.sample_from, high - low);
            }
        }
        self.sample_at = now + progress.interval;
    }

    /// Something has to change hands before this SM can go on.
    #[inline(always)]
    pub(super) fn concerns_others(&self) -> bool {
        outgoing::concerns_others(&self.out, &self.outgoing, &self.ends, &self.retry, &self.log)
    }

    /// At the exchange, when no other SM acts: warps that change what the whole machine shares.
    pub fn act_alone(&mut self, work: &mut Work<'_>, now: Cycle) {
        for k in 0..self.retry.len() {
            let n = self.retry[k] as usize;
            let warp = &mut self.warps[n];
            let cta = &mut work.ctas[warp.cta as usize];
            let timing = work.contexts[cta.context].code.timing_of(warp.pc);
            if warp.state != State::Retry || timing.kind != Kind::System {
                continue;
            }
            let time = Time { clock: now.0, nanoseconds: now.0 * 1000 / self.clock_mhz };
            self.log.token = warp.cta.into();
            match cta.resident.step_alone(warp.index as usize, time, now.0, &mut self.log) {
                Ok(_) => {
                    let children = cta.resident.take_requests();
                    if !children.is_empty() {
                        self.spawned.push(Spawned {
                            launch: cta.context as u32,
                            linear: cta.linear,
                            cta: cta.resident.cta().index,
                            pc: warp.pc,
                            children,
                        });
                    }
                    let from = now.0 + u64::from(self.spec.latency.system);
                    self.charge_until(n, Stall::Misc, now.0);
                    self.go_on(work, n, from, Stall::Misc, now.0);
                    self.next = self.next.min(now.0);
                }
                Err(fault) => {
                    let (launch, linear) = (cta.context as u32, cta.linear);
                    self.failure = Some(Failure { at: now, launch, linear, fault });
                }
            }
        }
    }

    /// After the exchange: results of atomics go to their registers, warps that had to wait for it try again.
    pub fn after_exchange(&mut self, work: &mut Work<'_>, now: Cycle) {
        let ctas = &mut work.ctas;
        self.log.answers(|answer| {
            if let Some(cta) = ctas.get_mut(answer.token() as usize) {
                cta.resident.deliver(&answer);
            }
        });
        let mut retry = std::mem::take(&mut self.retry);
        for n in retry.drain(..) {
            let n = n as usize;
            if self.warps[n].state == State::Retry {
                self.charge_until(n, Stall::LgThrottle, now.0);
                self.plan(work, n, now.0);
                self.next = self.next.min(now.0);
                self.look_again(now.0);
            }
        }
        self.retry = retry;
    }

    // --- accounting ---------------------------------------------------------------------------------------------

    /// Charges a warp's next instruction with a reason, from where it was charged last to a cycle.
    #[inline(always)]
    pub(super) fn charge_until(&mut self, n: usize, reason: Stall, until: u64) {
        let warp = &mut self.warps[n];
        if until > warp.since {
            self.stalls.charge(warp.row() as usize, reason, until - warp.since);
            if let Some(watcher) = &mut self.watcher {
                watcher.wait(n as u16, warp, reason, until);
            }
            warp.since = until;
        }
    }
}
