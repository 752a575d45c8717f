//! Keeps what a profile shows of an SM's warps: timelines, causes, what instructions did, single warps' states.

use super::causes::Causes;
use super::timeline::Buckets;
use crate::counters::Counters;
use crate::sm::code::{CLASSES, Class, Producer};
use crate::sm::waits::FOR_READERS;
use crate::sm::warp::WarpSlot;
use crate::stall::Stall;
use serde::{Deserialize, Serialize};
use simt::resident::Access;
use trace::profile::{Link, Span, Work};

/// States of single warps that are kept.
const SPANS: usize = 40_000;
/// No instruction.
const NONE: u32 = u32::MAX;

/// What is known of a warp slot.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Slot {
    /// Number of its CTA.
    linear: u64,
    /// The last instruction that it issued, and the last store.
    last: u32,
    store: u32,
    /// Where it waited longest since its last barrier.
    longest: (u64, u32),
    /// Threads of what it issues.
    threads: u32,
}

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
    last_of_class: Vec<[u32; CLASSES]>,
    /// What the last warp at a barrier was held up by.
    barrier: u32,
    pub work: Vec<Work>,
    pub causes: Causes,
    pub buckets: Buckets,
    /// States of single warps, if this SM is one that is watched closely.
    pub spans: Option<Vec<Span>>,
}

impl Recorder {
    pub fn new(
        sm: u16,
        start: u64,
        slots: usize,
        sub_cores: usize,
        places: usize,
        instructions: usize,
        closely: bool,
    ) -> Recorder {
        let slot = Slot { linear: 0, last: NONE, store: NONE, longest: (0, NONE), threads: 0 };
        Recorder {
            sm,
            start,
            places,
            slots: vec![slot; slots],
            makers: vec![[NONE; 2]; slots * places],
            last_of_class: vec![[NONE; CLASSES]; sub_cores],
            barrier: NONE,
            work: vec![Work::default(); instructions],
            causes: Causes::new(instructions),
            buckets: Buckets::new(start),
            spans: closely.then(Vec::new),
        }
    }

    pub fn start(&mut self, slot: u16, linear: u64) {
        self.slots[slot as usize] = Slot { linear, last: NONE, store: NONE, longest: (0, NONE), threads: 0 };
        let n = slot as usize * self.places;
        self.makers[n..n + self.places].fill([NONE; 2]);
    }

    /// A warp was in a state.
    #[inline]
    fn state(&mut self, slot: u16, pc: u32, reason: Stall, from: u64, until: u64) {
        self.buckets.add(reason, from, until);
        let longest = &mut self.slots[slot as usize].longest;
        if until - from > longest.0 && reason != Stall::Barrier {
            *longest = (until - from, pc);
        }
        if self.spans.is_some() {
            self.span(slot, pc, reason, from, until);
        }
    }

    /// Keeps a state of a warp of an SM that is watched closely.
    #[cold]
    fn span(&mut self, slot: u16, pc: u32, reason: Stall, from: u64, until: u64) {
        if let Some(spans) = &mut self.spans
            && spans.len() < SPANS
        {
            spans.push(Span {
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

    #[inline]
    pub fn waits(
        &mut self,
        slot: u16,
        warp: &WarpSlot,
        checks: &[u16],
        reason: Stall,
        from: u64,
        until: u64,
    ) {
        self.state(slot, warp.pc, reason, from, until);
        let known = &self.slots[slot as usize];
        let (link, cause) = match reason {
            Stall::LongScoreboard | Stall::ShortScoreboard => {
                (Link::Register, self.maker(slot, warp, checks, reason))
            }
            Stall::Barrier => (Link::Barrier, self.barrier),
            Stall::Drain | Stall::Membar => (Link::Store, known.store),
            Stall::BranchResolving => (Link::Branch, known.last),
            // Code that was jumped to.
            Stall::NoInstruction if known.last != NONE && known.last + 1 != warp.pc => {
                (Link::Branch, known.last)
            }
            _ => return,
        };
        if cause != NONE {
            self.causes.add(warp.pc, reason, link, cause, until - from);
        }
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

    #[inline]
    pub fn chosen(
        &mut self,
        slot: u16,
        pc: u32,
        sub: u32,
        class: Class,
        reason: Stall,
        from: u64,
        until: u64,
    ) {
        self.state(slot, pc, reason, from, until);
        if matches!(reason, Stall::NotSelected | Stall::Grant | Stall::Window) {
            return;
        }
        let cause = self.last_of_class[sub as usize][class as usize];
        if cause != NONE {
            self.causes.add(pc, reason, Link::Queue, cause, until - from);
        }
    }

    #[inline]
    pub fn issues(&mut self, slot: u16, pc: u32, sub: u32, class: Class, now: u64) {
        self.buckets.add_one(Stall::Selected, now);
        if self.spans.is_some() {
            self.span(slot, pc, Stall::Selected, now, now + 1);
        }
        let known = &mut self.slots[slot as usize];
        known.last = pc;
        self.last_of_class[sub as usize][class as usize] = pc;
        if let Some(work) = self.work.get_mut(pc as usize) {
            work.threads += u64::from(known.threads);
        }
    }

    /// The instructions that a warp issues from now on have so many threads.
    #[inline]
    pub fn has_threads(&mut self, slot: u16, threads: u32) {
        self.slots[slot as usize].threads = threads;
    }

    #[inline]
    pub fn makes(&mut self, slot: u16, places: &[u16], pc: u32) {
        for &p in places {
            self.makers[slot as usize * self.places + p as usize][0] = pc;
        }
    }

    /// A warp's memory operation went to the load-store unit: what it reads, and how the counters changed.
    pub fn access(
        &mut self,
        slot: u16,
        reads: &[u16],
        pc: u32,
        access: &Access,
        before: &Counters,
        after: &Counters,
    ) {
        for &p in reads {
            self.makers[slot as usize * self.places + p as usize][1] = pc;
        }
        let bytes = u64::from((access.global | access.local).count_ones() * access.size);
        if let Some(work) = self.work.get_mut(pc as usize) {
            let shared = after.shared_requests - before.shared_requests;
            work.requests += shared + after.l1_requests - before.l1_requests;
            work.sectors += after.l1_sectors - before.l1_sectors;
            work.hits += after.l1_hits - before.l1_hits;
            work.ideal_sectors += bytes.div_ceil(crate::units::SECTOR);
            // Banks of the cache are another matter: their conflicts follow from the sectors.
            work.conflicts += if shared > 0 { after.bank_conflicts - before.bank_conflicts } else { 0 };
        }
    }

    /// A warp's store went to the load-store unit.
    pub fn stored(&mut self, slot: u16, pc: u32) {
        self.slots[slot as usize].store = pc;
    }

    /// A warp came to a barrier; it may be the last.
    pub fn arrive(&mut self, slot: u16) {
        let longest = &mut self.slots[slot as usize].longest;
        self.barrier = longest.1;
        *longest = (0, NONE);
    }
}
