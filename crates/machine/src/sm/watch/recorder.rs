//! Keeps what a profile shows of an SM's warps: timelines, causes, what instructions did, single warps' states.

use super::causes::Causes;
use super::timeline::{Buckets, SUB_CORES};
use super::{Accessed, Counts, Waited, reasons};
use crate::sm::code::{CLASSES, Class, Producer};
use crate::sm::waits::FOR_READERS;
use crate::sm::warp::{NO_LINE, WarpSlot};
use crate::stall::Stall;
use serde::{Deserialize, Serialize};
use trace::profile::{Link, Span, Work};

/// No instruction.
const NONE: u32 = u32::MAX;

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

/// Places for the classes of a sub-core, as a power of two.
const PLACES: u32 = CLASSES.next_power_of_two().trailing_zeros();
/// The place of a class of a sub-core.
#[inline(always)]
fn place(sub: u32, class: Class) -> usize {
    ((sub as usize % SUB_CORES) << PLACES) | (class as usize % (1 << PLACES))
}

/// Waits of more cycles than this are never short.
const SHORT: u64 = 64;

/// Everything that a profile shows of an SM.
#[derive(Serialize, Deserialize)]
pub struct Recorder {
    sm: u16,
    start: u64,
    places: usize,
    slots: Vec<Slot>,
    /// By slot and scoreboard place: the instruction that makes its value, and the one that reads it last.
    makers: Vec<[u32; 2]>,
    /// The last instruction of each class that a sub-core issued.
    #[serde(with = "simt::arrays")]
    last_of_class: [u32; SUB_CORES << PLACES],
    /// What the last warp at a barrier was held up by.
    barrier: u32,
    /// When something has to be done before a sub-core's next issue: its step of the timeline ends, or states of single
    /// warps are kept.
    due: [u64; SUB_CORES],
    /// States of no more cycles than this are short: they count where they are told of.
    short: u64,
    /// Threads of the instructions that execute, less those of the ones before them, where runs begin and end.
    threads: Vec<u64>,
    pub work: Vec<Work>,
    pub causes: Causes,
    pub buckets: Buckets,
    /// States of single warps, if this SM is one that is watched closely, and how many are kept.
    pub spans: Vec<Span>,
    most_spans: usize,
}

impl Recorder {
    pub fn new(
        sm: u16,
        start: u64,
        slots: usize,
        places: usize,
        instructions: usize,
        most_spans: usize,
    ) -> Recorder {
        let mut recorder = Recorder {
            sm,
            start,
            places,
            slots: vec![Slot::new(0); slots],
            makers: vec![[NONE; 2]; slots * places],
            last_of_class: [NONE; SUB_CORES << PLACES],
            barrier: NONE,
            due: [0; SUB_CORES],
            short: 0,
            threads: vec![0; instructions + 1],
            work: vec![Work::default(); instructions],
            causes: Causes::new(instructions),
            buckets: Buckets::new(start),
            spans: Vec::new(),
            most_spans,
        };
        recorder.set_short();
        recorder
    }

    pub fn start(&mut self, slot: u16, linear: u64) {
        self.slots[slot as usize] = Slot::new(linear);
        let n = slot as usize * self.places;
        self.makers[n..n + self.places].fill([NONE; 2]);
    }

    // --- timelines ----------------------------------------------------------------------------------------------

    /// A sub-core issues an instruction of a warp at the end of its step of the timeline, or states of warps are kept.
    #[inline(never)]
    fn step(&mut self, slot: u16, pc: u32, sub: u32, now: u64) {
        let n = sub as usize % SUB_CORES;
        if now >= self.buckets.end(n) {
            self.buckets.go_on(n, now);
        }
        self.span(slot, pc, Stall::Selected, now, now + 1);
        self.set_short();
        self.due[n] = if self.has_spans() { 0 } else { self.buckets.end(n) };
    }

    /// The launch is over.
    pub fn finish(&mut self) {
        let mut threads = 0u64;
        for (work, change) in self.work.iter_mut().zip(&self.threads) {
            threads = threads.wrapping_add(*change);
            work.threads = threads;
        }
    }

    fn set_short(&mut self) {
        // Where warps are watched closely no state is too short.
        self.short = if self.has_spans() { 0 } else { self.buckets.cycles().min(SHORT) };
    }

    /// Whether states of single warps are still kept.
    fn has_spans(&self) -> bool {
        self.spans.len() < self.most_spans
    }

    /// A warp was in a state.
    #[inline(always)]
    fn state(&mut self, slot: u16, sub: usize, pc: u32, reason: Stall, from: u64, until: u64) {
        match until - from <= self.short {
            true => self.buckets.count(sub, reason, until - from),
            false => self.long_state(slot, pc, reason, from, until),
        }
    }

    #[inline(never)]
    fn long_state(&mut self, slot: u16, pc: u32, reason: Stall, from: u64, until: u64) {
        self.buckets.add(reason, from, until);
        if reason != Stall::Barrier {
            self.holds_up(slot, pc, until - from);
        }
        self.span(slot, pc, reason, from, until);
    }

    /// A wait that others may have to wait for at a barrier.
    #[inline(always)]
    fn holds_up(&mut self, slot: u16, pc: u32, cycles: u64) {
        let longest = &mut self.slots[slot as usize].longest;
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
                cta: self.slots[slot as usize].linear,
            });
        }
    }

    // --- what warps do ------------------------------------------------------------------------------------------

    #[inline(always)]
    pub fn waits(
        &mut self,
        slot: u16,
        warp: &WarpSlot,
        checks: &[u16],
        reason: Stall,
        from: u64,
        until: u64,
    ) {
        self.state(slot, warp.sub_core.into(), warp.row(), reason, from, until);
        let cycles = until - from;
        match reason {
            Stall::LongScoreboard | Stall::ShortScoreboard => {
                self.needs(slot, warp, checks, reason, cycles);
            }
            Stall::BranchResolving => self.comes_from(slot, warp.row(), reason, cycles),
            // Code that was jumped to.
            Stall::NoInstruction if warp.line == NO_LINE => {
                self.comes_from(slot, warp.row(), reason, cycles);
            }
            Stall::Barrier => self.because(warp.row(), reason, Link::Barrier, self.barrier, cycles),
            Stall::Drain | Stall::Membar => {
                self.because(warp.row(), reason, Link::Store, self.slots[slot as usize].store, cycles);
            }
            _ => {}
        }
    }

    fn because(&mut self, pc: u32, reason: Stall, link: Link, cause: u32, cycles: u64) {
        if cause != NONE {
            self.causes.add(pc, reason, link, cause, cycles);
        }
    }

    /// A warp waited for a branch.
    #[inline(never)]
    fn comes_from(&mut self, slot: u16, pc: u32, reason: Stall, cycles: u64) {
        self.because(pc, reason, Link::Branch, self.slots[slot as usize].last, cycles);
    }

    /// A warp waited for a result.
    #[inline(never)]
    fn needs(&mut self, slot: u16, warp: &WarpSlot, checks: &[u16], reason: Stall, cycles: u64) {
        self.holds_up(slot, warp.row(), cycles);
        let maker = self.maker(slot, warp, checks, reason);
        self.because(warp.row(), reason, Link::Register, maker, cycles);
    }

    /// The instruction that makes the result that a warp waits for longest.
    fn maker(&self, slot: u16, warp: &WarpSlot, checks: &[u16], reason: Stall) -> u32 {
        let producer = if reason == Stall::LongScoreboard { Producer::Long } else { Producer::Short };
        let mut best = (0, NONE);
        for &p in checks {
            let (n, readers) = ((p & !FOR_READERS) as usize, p & FOR_READERS != 0);
            let place = &warp.places[n];
            let ready = if readers { place.read } else { place.ready };
            if ready.producer() == producer as usize && ready.cycle() > best.0 {
                best = (ready.cycle(), self.makers[slot as usize * self.places + n][usize::from(readers)]);
            }
        }
        best.1
    }

    #[inline(always)]
    pub fn chosen(&mut self, slot: u16, warp: &WarpSlot, sub: u32, class: Class, waited: Waited, now: u64) {
        let ([throttle, held, others], by_policy) = waited;
        if now - warp.since > self.short || by_policy != [0; 2] {
            return self.chosen_late(slot, warp.row(), sub, class, waited, now);
        }
        self.buckets.count(sub as usize, Stall::NotSelected, others);
        if throttle + held > 0 {
            self.queues(slot, warp.row(), sub, class, [throttle, held]);
        }
    }

    /// The same after a long time.
    #[inline(never)]
    fn chosen_late(&mut self, slot: u16, pc: u32, sub: u32, class: Class, waited: Waited, now: u64) {
        let (all, mut from) = reasons(class, waited, now);
        for (reason, cycles) in all.into_iter().filter(|(_, n)| *n > 0) {
            self.long_state(slot, pc, reason, from, from + cycles);
            from += cycles;
        }
        self.in_queue(pc, sub, class, [waited.0[0], waited.0[1]]);
    }

    /// A warp waited for a pipe and for the dispatcher.
    #[inline(never)]
    fn queues(&mut self, slot: u16, pc: u32, sub: u32, class: Class, [throttle, held]: [u64; 2]) {
        self.buckets.count(sub as usize, class.throttle(), throttle);
        self.buckets.count(sub as usize, Stall::DispatchStall, held);
        self.holds_up(slot, pc, throttle.max(held));
        self.in_queue(pc, sub, class, [throttle, held]);
    }

    fn in_queue(&mut self, pc: u32, sub: u32, class: Class, [throttle, held]: [u64; 2]) {
        let cause = self.last_of_class[place(sub, class)];
        for (reason, cycles) in [(class.throttle(), throttle), (Stall::DispatchStall, held)] {
            if cause != NONE && cycles > 0 {
                self.causes.add(pc, reason, Link::Queue, cause, cycles);
            }
        }
    }

    #[inline(always)]
    pub fn issues(&mut self, slot: u16, pc: u32, sub: u32, class: Class, now: u64) {
        if now >= self.due[sub as usize % SUB_CORES] {
            self.step(slot, pc, sub, now);
        }
        self.last_of_class[place(sub, class)] = pc;
        self.buckets.count(sub as usize, Stall::Selected, 1);
    }

    #[inline(always)]
    pub fn branches(&mut self, slot: u16, pc: u32) {
        self.slots[slot as usize].last = pc;
    }

    #[inline(always)]
    pub fn executes(&mut self, pc: u32, count: u32, threads: u32) {
        let (first, end) = (pc as usize, (pc + count) as usize);
        if end < self.threads.len() {
            self.threads[first] = self.threads[first].wrapping_add(threads.into());
            self.threads[end] = self.threads[end].wrapping_sub(threads.into());
        }
    }

    #[inline]
    pub fn makes(&mut self, slot: u16, places: &[u16], pc: u32) {
        for &p in places {
            self.makers[slot as usize * self.places + p as usize][0] = pc;
        }
    }

    /// A warp's memory operation went to the load-store unit: what it reads, and what was counted.
    #[inline(always)]
    pub fn access(&mut self, told: &Accessed, reads: &[u16], counts: Counts) {
        let &Accessed { slot, pc, bytes, is_store, .. } = told;
        for &p in reads {
            self.makers[slot as usize * self.places + p as usize][1] = pc;
        }
        if let Some(work) = self.work.get_mut(pc as usize) {
            work.requests += counts.shared_requests + counts.l1_requests;
            work.sectors += counts.sectors;
            work.hits += counts.hits;
            work.ideal_sectors += bytes.div_ceil(crate::units::SECTOR);
            // Banks of the cache are another matter: their conflicts follow from the sectors.
            work.conflicts += if counts.shared_requests > 0 { counts.bank_conflicts } else { 0 };
        }
        if is_store {
            self.slots[slot as usize].store = pc;
        }
    }

    /// A warp came to a barrier; it may be the last.
    pub fn arrive(&mut self, slot: u16) {
        let longest = &mut self.slots[slot as usize].longest;
        self.barrier = longest.1;
        *longest = (0, NONE);
    }
}
