//! Keeps what a profile shows of an SM's warps: timelines, causes, what instructions did, single warps' states.

use super::seen::Seen;
use super::timeline::{Buckets, SUB_CORES};
use super::{Accessed, Checks, Counts, Waited, reasons};
use crate::sm::code::{CLASSES, Class, Producer};
use crate::sm::look_ahead::extent;
use crate::sm::warp::{NO_LINE, Ready, WarpSlot};
use crate::stall::{STALLS, Stall, StallCycles};
use serde::{Deserialize, Serialize};
use trace::profile::{Link, Span};

/// No instruction.
const NONE: u32 = u32::MAX;

/// Most warp slots of an SM.
const SLOTS: usize = 64;

/// What is known of a warp slot.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Slot {
    /// Number of its CTA.
    linear: u64,
    /// The last instruction that decided where it goes on, and the last store.
    last: u32,
    store: u32,
    /// Where it waited longest since its last barrier.
    longest: (u64, u32),
}

impl Slot {
    fn new(linear: u64) -> Slot {
        Slot { linear, last: NONE, store: NONE, longest: (0, NONE) }
    }
}

/// Places for the classes of a sub-core.
const CLASS_PLACES: usize = CLASSES.next_power_of_two();

/// What is kept of a sub-core: what every issue touches.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[repr(C, align(64))]
struct Sub {
    /// When something has to be done before its next issue: its step of the timeline ends, or states of single warps are
    /// kept.
    due: u64,
    /// Warp-cycles of short states that the step of the timeline does not have yet.
    counts: StallCycles,
    /// The last instruction of each class that it issued.
    last_of_class: [u32; CLASS_PLACES],
}

const _: () = assert!(size_of::<Sub>() == 256);

impl Sub {
    const NEW: Sub = Sub { due: 0, counts: [0; STALLS], last_of_class: [NONE; CLASS_PLACES] };

    #[inline(always)]
    fn last(&mut self, class: Class) -> &mut u32 {
        &mut self.last_of_class[class as usize % CLASS_PLACES]
    }
}

/// Waits of more cycles than this are never short.
const SHORT: u64 = 64;

/// Everything that a profile shows of an SM.
#[derive(Serialize, Deserialize)]
pub struct Recorder {
    sm: u16,
    start: u64,
    #[serde(with = "simt::arrays")]
    slots: [Slot; SLOTS],
    subs: [Sub; SUB_CORES],
    /// What the last warp at a barrier was held up by.
    barrier: u32,
    /// States of no more cycles than this are short: they count where they are told of.
    short: u64,
    pub seen: Seen,
    pub buckets: Buckets,
    /// States of single warps, if this SM is one that is watched closely, and how many are kept.
    pub spans: Vec<Span>,
    most_spans: usize,
}

impl Recorder {
    /// For a launch, which will take many cycles or not.
    pub fn new(sm: u16, start: u64, is_long: bool, most_spans: usize) -> Recorder {
        let mut recorder = Recorder {
            sm,
            start,
            slots: [Slot::new(0); SLOTS],
            subs: [Sub::NEW; SUB_CORES],
            barrier: NONE,
            short: 0,
            seen: Seen::default(),
            buckets: Buckets::new(start, is_long),
            spans: Vec::new(),
            most_spans,
        };
        recorder.set_short();
        recorder
    }

    /// Where in the host's memory that lies which is looked at most, for an SM of so many sub-cores.
    pub fn extents(&self, sub_cores: usize) -> [(usize, usize); 2] {
        [extent(&self.slots), extent(&self.subs[..sub_cores.min(SUB_CORES)])]
    }

    pub fn start(&mut self, slot: u16, linear: u64) {
        self.slots[usize::from(slot) % SLOTS] = Slot::new(linear);
    }

    // What the loop of turns calls is marked as rare even where it is not: the loop keeps the host's registers to itself.

    // --- timelines ----------------------------------------------------------------------------------------------

    /// A sub-core issues an instruction of a warp at the end of its step of the timeline, or states of warps are kept.
    #[cold]
    #[inline(never)]
    fn step(&mut self, slot: u16, pc: u32, sub: u32, now: u64) {
        let n = sub as usize % SUB_CORES;
        if now >= self.buckets.end(n) {
            self.buckets.count(&mut self.seen.states, n, &mut self.subs[n].counts);
            self.buckets.go_on(n, now);
        }
        self.span(slot, pc, Stall::Selected, now, now + 1);
        self.set_short();
        self.subs[n].due = if self.has_spans() { 0 } else { self.buckets.end(n) };
    }

    /// The launch is over: what it has seen goes to others, and what it did in each step is handed over.
    pub fn finish(&mut self, seen: &mut Seen) -> Buckets {
        for (n, sub) in self.subs.iter_mut().enumerate() {
            self.buckets.count(&mut seen.states, n, &mut sub.counts);
        }
        seen.take_in(&mut self.seen);
        self.buckets.take()
    }

    fn set_short(&mut self) {
        // Where warps are watched closely no state is too short.
        self.short = if self.has_spans() { 0 } else { self.buckets.cycles().min(SHORT) };
    }

    /// Whether states of single warps are still kept.
    fn has_spans(&self) -> bool {
        self.spans.len() < self.most_spans
    }

    #[inline(always)]
    fn sub(&mut self, sub: u32) -> &mut Sub {
        &mut self.subs[sub as usize % SUB_CORES]
    }

    /// A warp of a sub-core was in a state for a few cycles, in the step that the sub-core is in.
    #[inline(always)]
    fn count(&mut self, sub: u32, reason: Stall, cycles: u64) {
        self.sub(sub).counts[reason as usize] += cycles;
    }

    /// A warp was in a state.
    #[inline(always)]
    fn state(&mut self, slot: u16, warp: &WarpSlot, sub: u32, reason: Stall, from: u64, until: u64) {
        match until - from <= self.short {
            true => self.count(sub, reason, until - from),
            false => self.long_state(slot, warp.row(), reason, from, until),
        }
    }

    #[cold]
    #[inline(never)]
    fn long_state(&mut self, slot: u16, pc: u32, reason: Stall, from: u64, until: u64) {
        self.buckets.add(&mut self.seen.states, reason, from, until);
        if reason != Stall::Barrier {
            self.holds_up(slot, pc, until - from);
        }
        self.span(slot, pc, reason, from, until);
    }

    /// A wait that others may have to wait for at a barrier.
    #[inline(always)]
    fn holds_up(&mut self, slot: u16, pc: u32, cycles: u64) {
        let longest = &mut self.slots[usize::from(slot) % SLOTS].longest;
        if cycles > longest.0 {
            *longest = (cycles, pc);
        }
    }

    /// Keeps a state of a warp of an SM that is watched closely.
    fn span(&mut self, slot: u16, pc: u32, reason: Stall, from: u64, until: u64) {
        if self.has_spans() {
            self.spans.push(Span {
                sm: self.sm,
                warp: slot,
                from: from.saturating_sub(self.start),
                until: until.saturating_sub(self.start),
                pc,
                reason,
                cta: self.slots[usize::from(slot) % SLOTS].linear,
            });
        }
    }

    // --- what warps do ------------------------------------------------------------------------------------------

    #[inline(always)]
    pub fn waits(
        &mut self,
        slot: u16,
        warp: &WarpSlot,
        sub: u32,
        checks: impl Checks,
        reason: Stall,
        from: u64,
        until: u64,
    ) {
        self.state(slot, warp, sub, reason, from, until);
        let cycles = until - from;
        match reason {
            Stall::LongScoreboard | Stall::ShortScoreboard => {
                self.needs(slot, warp, checks.list(), reason, cycles);
            }
            Stall::BranchResolving => self.comes_from(slot, warp.row(), reason, cycles),
            // Code that was jumped to.
            Stall::NoInstruction if warp.line == NO_LINE => {
                self.comes_from(slot, warp.row(), reason, cycles);
            }
            Stall::Barrier | Stall::Drain | Stall::Membar => {
                self.waits_for_others(slot, warp.row(), reason, cycles);
            }
            _ => {}
        }
    }

    #[inline(always)]
    fn because(&mut self, pc: u32, reason: Stall, link: Link, cause: u32, cycles: u64) {
        if cause != NONE {
            self.seen.because(pc, reason, link, cause, cycles);
        }
    }

    /// A warp waited at a barrier, or for its stores.
    #[cold]
    #[inline(never)]
    fn waits_for_others(&mut self, slot: u16, pc: u32, reason: Stall, cycles: u64) {
        match reason {
            Stall::Barrier => self.because(pc, reason, Link::Barrier, self.barrier, cycles),
            _ => self.because(pc, reason, Link::Store, self.slots[usize::from(slot) % SLOTS].store, cycles),
        }
    }

    /// A warp waited for a branch.
    #[cold]
    #[inline(never)]
    fn comes_from(&mut self, slot: u16, pc: u32, reason: Stall, cycles: u64) {
        self.because(pc, reason, Link::Branch, self.slots[usize::from(slot) % SLOTS].last, cycles);
    }

    /// A warp waited for a result.
    #[cold]
    #[inline(never)]
    fn needs(&mut self, slot: u16, warp: &WarpSlot, checks: &[u16], reason: Stall, cycles: u64) {
        self.holds_up(slot, warp.row(), cycles);
        let maker = maker(warp, checks, reason);
        self.because(warp.row(), reason, Link::Register, maker, cycles);
    }

    #[inline(always)]
    pub fn chosen(&mut self, slot: u16, warp: &WarpSlot, sub: u32, class: Class, waited: Waited, now: u64) {
        let ([throttle, held, others], by_policy) = waited;
        if now - warp.since > self.short || by_policy != [0; 2] {
            return self.chosen_late(slot, warp.row(), sub, class, waited, now);
        }
        self.count(sub, Stall::NotSelected, others);
        if throttle > 0 {
            self.queues(slot, warp.row(), sub, class, class.throttle(), throttle);
        }
        if held > 0 {
            self.queues(slot, warp.row(), sub, class, Stall::DispatchStall, held);
        }
    }

    /// The same after a long time.
    #[cold]
    #[inline(never)]
    fn chosen_late(&mut self, slot: u16, pc: u32, sub: u32, class: Class, waited: Waited, now: u64) {
        let (all, mut from) = reasons(class, waited, now);
        let cause = *self.sub(sub).last(class);
        for (reason, cycles) in all.into_iter().filter(|(_, n)| *n > 0) {
            self.long_state(slot, pc, reason, from, from + cycles);
            if reason == class.throttle() || reason == Stall::DispatchStall {
                self.because(pc, reason, Link::Queue, cause, cycles);
            }
            from += cycles;
        }
    }

    /// A warp waited for a few cycles, for a pipe or for the dispatcher.
    #[cold]
    #[inline(never)]
    fn queues(&mut self, slot: u16, pc: u32, sub: u32, class: Class, reason: Stall, cycles: u64) {
        self.count(sub, reason, cycles);
        self.holds_up(slot, pc, cycles);
        let cause = *self.sub(sub).last(class);
        self.because(pc, reason, Link::Queue, cause, cycles);
    }

    #[inline(always)]
    pub fn issues(&mut self, slot: u16, pc: u32, sub: u32, class: Class, now: u64) {
        if now >= self.sub(sub).due {
            self.step(slot, pc, sub, now);
        }
        *self.sub(sub).last(class) = pc;
        self.count(sub, Stall::Selected, 1);
    }

    #[inline(always)]
    pub fn branches(&mut self, slot: u16, pc: u32) {
        self.slots[usize::from(slot) % SLOTS].last = pc;
    }

    /// A warp's memory operation went to the load-store unit: what was counted.
    #[inline(always)]
    pub fn access(&mut self, told: &Accessed, counts: Counts) {
        let &Accessed { slot, pc, bytes, is_store, .. } = told;
        self.seen.access(pc, bytes, counts);
        if is_store {
            self.slots[usize::from(slot) % SLOTS].store = pc;
        }
    }

    /// A warp came to a barrier; it may be the last.
    pub fn arrive(&mut self, slot: u16) {
        let longest = &mut self.slots[usize::from(slot) % SLOTS].longest;
        self.barrier = longest.1;
        *longest = (0, NONE);
    }
}

/// The instruction that makes the result that a warp waits for longest.
fn maker(warp: &WarpSlot, checks: &[u16], reason: Stall) -> u32 {
    let producer = if reason == Stall::LongScoreboard { Producer::Long } else { Producer::Short };
    let mut last = Ready::default();
    for &p in checks {
        let ready = warp.places[usize::from(p)];
        if ready.producer() == producer as usize && ready.cycle() > last.cycle() {
            last = ready;
        }
    }
    let pc = last.maker().pc().filter(|_| last.cycle() > 0);
    pc.map_or(NONE, |pc| warp.rows + pc)
}
