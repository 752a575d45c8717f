//! Watching an SM's warps: who tells what happens to whom it may concern, without changing anything.
//!
//! The SM calls a [`Watch`] wherever it charges a warp's cycles. Without a watcher that is `()`, and the calls are compiled
//! away; with one it is a [`Watcher`]: the trace cell, which samples, and the [`Recorder`], which keeps everything that a
//! profile shows.

mod causes;
mod recorder;
mod seen;
#[cfg(test)]
mod tests;
mod timeline;

pub use causes::{Causes, producers};
pub use recorder::Recorder;
pub use seen::Seen;
pub use timeline::{Buckets, States, put_together, traffic};

use super::code::{Class, Code, Timing};
use super::sub_core::SubCore;
use super::trace_cell::{Event, TraceCell};
use super::warp::WarpSlot;
use crate::counters::Counters;
use crate::stall::Stall;
use serde::{Deserialize, Serialize};
use simt::resident::Access;

/// What waiting to be chosen turns into: cycles for want of a pipe, for the dispatcher, for other warps; and by the
/// scheduler's policy, for a grant and for the window.
pub type Waited = ([u64; 3], [u64; 2]);

/// Scoreboard places that an instruction looks at, found where somebody wants to know.
pub trait Checks: Copy {
    fn list(&self) -> &[u16];
}

/// None.
impl Checks for () {
    #[inline(always)]
    fn list(&self) -> &[u16] {
        &[]
    }
}

/// Those that its code tells.
impl Checks for (&Code, &Timing) {
    #[inline(always)]
    fn list(&self) -> &[u16] {
        self.0.checks(self.1)
    }
}

/// Somebody who is told what warps do. Cycles of a warp come without gaps, in the order of time.
pub trait Watch {
    /// The threads of an instruction matter.
    const THREADS: bool;

    /// Nobody is there.
    const IS_NOBODY: bool = false;

    /// Looks once an instruction, when it issues, at all that the warp did since the last one did: what it waited for is not told,
    /// as long as that follows from the code.
    const LOOKS_LATE: bool = false;

    /// So many instructions, one behind the other, execute with so many threads.
    fn execute(&mut self, pc: u32, count: u32, threads: u32);

    /// The same of one by itself.
    fn execute_one(&mut self, pc: u32, threads: u32);

    /// A warp of a sub-core waits at its next instruction; `checks` tells the scoreboard places that it looks at.
    fn wait(
        &mut self,
        slot: u16,
        warp: &mut WarpSlot,
        sub: u32,
        checks: impl Checks,
        reason: Stall,
        from: u64,
        until: u64,
    );

    /// A warp could issue from `warp.since` on and is chosen now.
    fn waited(&mut self, slot: u16, warp: &mut WarpSlot, sub: u32, class: Class, waited: Waited, now: u64);

    /// An instruction issues.
    fn issue(&mut self, slot: u16, pc: u32, sub: u32, timing: &Timing, now: u64);

    /// The same of an instruction whose warp was chosen, by who looks late.
    #[inline(always)]
    fn issue_late(&mut self, slot: u16, _: &mut WarpSlot, pc: u32, sub: &SubCore, timing: &Timing, now: u64) {
        self.issue(slot, pc, sub.number, timing, now);
    }

    /// A warp was chosen for an instruction that is told of as it happens: who looks late learns what it waited for before.
    #[inline(always)]
    fn catch_up(&mut self, _: u16, _: &mut WarpSlot) {}

    /// The instruction decides where its warp goes on.
    fn branch(&mut self, slot: u16, pc: u32);

    /// What the load-store unit has counted before a memory operation goes there, where that matters.
    #[inline(always)]
    fn before(&self, counters: &Counters) -> Counts {
        Counts::of(counters)
    }

    /// A memory operation went to the load-store unit, which had counted so much before it.
    fn accessed(&mut self, told: &Accessed, before: Counts, counters: &Counters);

    /// The same of one to shared memory alone, of which requests and conflicts of banks are counted.
    fn accessed_shared(&mut self, told: &Accessed, counted: (u64, u64));
}

/// A memory operation that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Accessed {
    pub slot: u16,
    pub pc: u32,
    /// Bytes of global and local memory that its lanes want.
    pub bytes: u64,
    pub is_store: bool,
    pub now: u64,
}

impl Accessed {
    /// Bytes of global and local memory that the lanes of an access want.
    pub fn bytes_of(access: &Access) -> u64 {
        let lanes = access.global | access.local;
        let lanes = if lanes == u32::MAX { 32 } else { lanes.count_ones() };
        u64::from(lanes * access.size)
    }
}

impl Watch for () {
    const THREADS: bool = false;
    const IS_NOBODY: bool = true;

    #[inline(always)]
    fn execute(&mut self, _: u32, _: u32, _: u32) {}

    #[inline(always)]
    fn execute_one(&mut self, _: u32, _: u32) {}

    #[inline(always)]
    fn wait(&mut self, _: u16, _: &mut WarpSlot, _: u32, _: impl Checks, _: Stall, _: u64, _: u64) {}

    #[inline(always)]
    fn waited(&mut self, _: u16, _: &mut WarpSlot, _: u32, _: Class, _: Waited, _: u64) {}

    #[inline(always)]
    fn issue(&mut self, _: u16, _: u32, _: u32, _: &Timing, _: u64) {}

    #[inline(always)]
    fn branch(&mut self, _: u16, _: u32) {}

    #[inline(always)]
    fn before(&self, _: &Counters) -> Counts {
        Counts::default()
    }

    #[inline(always)]
    fn accessed(&mut self, _: &Accessed, _: Counts, _: &Counters) {}

    #[inline(always)]
    fn accessed_shared(&mut self, _: &Accessed, _: (u64, u64)) {}
}

/// The reasons of a wait to be chosen, in the order in which they are told, and the cycle at which it began.
pub(super) fn reasons(class: Class, waited: Waited, now: u64) -> ([(Stall, u64); 5], u64) {
    let ([throttle, held, others], [grant, window]) = waited;
    let all = [
        (class.throttle(), throttle),
        (Stall::DispatchStall, held),
        (Stall::Grant, grant),
        (Stall::Window, window),
        (Stall::NotSelected, others),
    ];
    let from = now - all.iter().map(|(_, n)| n).sum::<u64>();
    (all, from)
}

impl Watch for TraceCell {
    const THREADS: bool = false;
    const LOOKS_LATE: bool = true;

    #[inline(always)]
    fn execute(&mut self, _: u32, _: u32, _: u32) {}

    #[inline(always)]
    fn execute_one(&mut self, _: u32, _: u32) {}

    #[inline(always)]
    fn wait(
        &mut self,
        slot: u16,
        warp: &mut WarpSlot,
        _: u32,
        checks: impl Checks,
        reason: Stall,
        from: u64,
        until: u64,
    ) {
        if until > warp.look_at {
            match reason {
                Stall::Wait | Stall::LongScoreboard => {
                    self.sample_wait(slot, warp, checks.list(), reason, from, until);
                }
                // The last that a scoreboard is waited for: nothing else is missing.
                _ => self.sample_alone(slot, warp.pc, reason, from, until),
            }
            warp.look_at = self.due(slot);
        }
    }

    #[inline(always)]
    fn waited(&mut self, slot: u16, warp: &mut WarpSlot, _: u32, class: Class, waited: Waited, now: u64) {
        if now > warp.look_at {
            self.sample_waited(slot, warp.pc, class, waited, now);
            warp.look_at = self.due(slot);
        }
    }

    #[inline(always)]
    fn issue(&mut self, slot: u16, pc: u32, _: u32, timing: &Timing, now: u64) {
        if self.is_due(slot, now + 1) {
            self.sample_issue(slot, pc, timing, now);
        }
    }

    #[inline(always)]
    fn issue_late(
        &mut self,
        slot: u16,
        warp: &mut WarpSlot,
        pc: u32,
        sub: &SubCore,
        timing: &Timing,
        now: u64,
    ) {
        if now >= warp.look_at {
            self.sample_late(slot, (warp, pc), sub, timing, now);
        }
    }

    #[inline(always)]
    fn catch_up(&mut self, slot: u16, warp: &mut WarpSlot) {
        if warp.since > warp.look_at {
            self.sample_untold(slot, warp.pc, warp.since);
            warp.look_at = self.due(slot);
        }
    }

    #[inline(always)]
    fn branch(&mut self, _: u16, _: u32) {}

    #[inline(always)]
    fn before(&self, counters: &Counters) -> Counts {
        if self.wants_events() { Counts::of(counters) } else { Counts::default() }
    }

    #[inline(always)]
    fn accessed(&mut self, told: &Accessed, before: Counts, counters: &Counters) {
        if self.wants_events() {
            let counts = Counts::of(counters).since(before);
            self.event(Event::CacheMiss, counts.sectors.saturating_sub(counts.hits) as u32, told.now);
        }
    }

    /// Shared memory has no misses.
    #[inline(always)]
    fn accessed_shared(&mut self, _: &Accessed, _: (u64, u64)) {}
}

impl Watch for Recorder {
    const THREADS: bool = true;

    #[inline(always)]
    fn execute(&mut self, pc: u32, count: u32, threads: u32) {
        self.seen.execute(pc, count, threads);
    }

    #[inline(always)]
    fn execute_one(&mut self, pc: u32, threads: u32) {
        self.seen.execute_one(pc, threads);
    }

    #[inline(always)]
    fn wait(
        &mut self,
        slot: u16,
        warp: &mut WarpSlot,
        sub: u32,
        checks: impl Checks,
        reason: Stall,
        from: u64,
        until: u64,
    ) {
        self.waits(slot, warp, sub, checks, reason, from, until);
    }

    #[inline(always)]
    fn waited(&mut self, slot: u16, warp: &mut WarpSlot, sub: u32, class: Class, waited: Waited, now: u64) {
        self.chosen(slot, warp, sub, class, waited, now);
    }

    #[inline(always)]
    fn issue(&mut self, slot: u16, pc: u32, sub: u32, timing: &Timing, now: u64) {
        self.issues(slot, pc, sub, timing.class, now);
    }

    #[inline(always)]
    fn branch(&mut self, slot: u16, pc: u32) {
        self.branches(slot, pc);
    }

    #[inline(always)]
    fn accessed(&mut self, told: &Accessed, before: Counts, counters: &Counters) {
        self.access(told, Counts::of(counters).since(before));
    }

    #[inline(always)]
    fn accessed_shared(&mut self, told: &Accessed, (shared_requests, bank_conflicts): (u64, u64)) {
        self.access(told, Counts { shared_requests, bank_conflicts, ..Counts::default() });
    }
}

/// Both watch.
impl<A: Watch, B: Watch> Watch for (&mut A, &mut B) {
    const THREADS: bool = A::THREADS || B::THREADS;

    #[inline(always)]
    fn execute(&mut self, pc: u32, count: u32, threads: u32) {
        self.0.execute(pc, count, threads);
        self.1.execute(pc, count, threads);
    }

    #[inline(always)]
    fn execute_one(&mut self, pc: u32, threads: u32) {
        self.0.execute_one(pc, threads);
        self.1.execute_one(pc, threads);
    }

    #[inline(always)]
    fn wait(
        &mut self,
        slot: u16,
        warp: &mut WarpSlot,
        sub: u32,
        checks: impl Checks,
        reason: Stall,
        from: u64,
        until: u64,
    ) {
        self.0.wait(slot, warp, sub, checks, reason, from, until);
        self.1.wait(slot, warp, sub, checks, reason, from, until);
    }

    #[inline(always)]
    fn waited(&mut self, slot: u16, warp: &mut WarpSlot, sub: u32, class: Class, waited: Waited, now: u64) {
        self.0.waited(slot, warp, sub, class, waited, now);
        self.1.waited(slot, warp, sub, class, waited, now);
    }

    #[inline(always)]
    fn issue(&mut self, slot: u16, pc: u32, sub: u32, timing: &Timing, now: u64) {
        self.0.issue(slot, pc, sub, timing, now);
        self.1.issue(slot, pc, sub, timing, now);
    }

    #[inline(always)]
    fn catch_up(&mut self, slot: u16, warp: &mut WarpSlot) {
        self.0.catch_up(slot, warp);
        self.1.catch_up(slot, warp);
    }

    #[inline(always)]
    fn branch(&mut self, slot: u16, pc: u32) {
        self.0.branch(slot, pc);
        self.1.branch(slot, pc);
    }

    #[inline(always)]
    fn accessed(&mut self, told: &Accessed, before: Counts, counters: &Counters) {
        self.0.accessed(told, before, counters);
        self.1.accessed(told, before, counters);
    }

    #[inline(always)]
    fn accessed_shared(&mut self, told: &Accessed, counted: (u64, u64)) {
        self.0.accessed_shared(told, counted);
        self.1.accessed_shared(told, counted);
    }
}

/// What the load-store unit counts that is told of each memory operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    l1_requests: u64,
    shared_requests: u64,
    sectors: u64,
    hits: u64,
    bank_conflicts: u64,
}

impl Counts {
    /// So far.
    pub fn of(c: &Counters) -> Counts {
        Counts {
            l1_requests: c.l1_requests,
            shared_requests: c.shared_requests,
            sectors: c.l1_sectors,
            hits: c.l1_hits,
            bank_conflicts: c.bank_conflicts,
        }
    }

    /// Since earlier ones.
    pub fn since(self, before: Counts) -> Counts {
        Counts {
            l1_requests: self.l1_requests - before.l1_requests,
            shared_requests: self.shared_requests - before.shared_requests,
            sectors: self.sectors - before.sectors,
            hits: self.hits - before.hits,
            bank_conflicts: self.bank_conflicts - before.bank_conflicts,
        }
    }
}

/// Who watches an SM.
#[derive(Default, Serialize, Deserialize)]
pub struct Watcher {
    pub cell: Option<TraceCell>,
    pub recorder: Option<Recorder>,
}

/// Calls something with whoever watches: code of its own for each of the three, so that none asks who else is there.
macro_rules! with_watch {
    ($watcher:expr, $watch:ident => $call:expr) => {
        match (&mut $watcher.cell, &mut $watcher.recorder) {
            (Some($watch), None) => $call,
            (None, Some($watch)) => $call,
            (Some(a), Some(b)) => {
                let $watch = &mut (a, b);
                $call
            }
            (None, None) => {
                let $watch = &mut ();
                $call
            }
        }
    };
}
pub(super) use with_watch;

impl Watcher {
    /// A new warp takes a slot.
    pub fn start(&mut self, (slot, warp): (u16, &mut WarpSlot), linear: u64, task: u64, at: u64) {
        if let Some(cell) = &mut self.cell {
            cell.start(slot, warp.cta, linear, task, at);
            warp.look_at = cell.due(slot);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.start(slot, linear);
        }
    }

    /// A warp could issue from `warp.since` on and is chosen now.
    #[inline(never)]
    pub fn waited(
        &mut self,
        slot: u16,
        warp: &mut WarpSlot,
        sub: u32,
        class: Class,
        waited: Waited,
        now: u64,
    ) {
        with_watch!(self, watch => watch.waited(slot, warp, sub, class, waited, now));
    }

    /// A warp waits at its next instruction for something that is not on the scoreboard.
    #[inline(never)]
    pub fn wait(&mut self, slot: u16, warp: &mut WarpSlot, reason: Stall, until: u64) {
        let (sub, since) = (warp.sub_core.into(), warp.since);
        with_watch!(self, watch => watch.wait(slot, warp, sub, (), reason, since, until));
    }

    /// An instruction executes and issues by itself.
    #[inline(never)]
    pub fn issue(&mut self, slot: u16, (pc, threads): (u32, u32), sub: u32, timing: &Timing, now: u64) {
        if let Some(recorder) = &mut self.recorder {
            // Mostly all of them.
            recorder.seen.execute_one(pc, if threads == u32::MAX { 32 } else { threads.count_ones() });
            recorder.issues(slot, pc, sub, timing.class, now);
            recorder.branches(slot, pc);
        }
        if let Some(cell) = &mut self.cell {
            cell.issue(slot, pc, sub, timing, now);
        }
    }

    /// A memory operation went to the load-store unit, which had counted so much before it.
    #[inline(never)]
    pub fn accessed(&mut self, told: &Accessed, before: Counts, counters: &Counters) {
        with_watch!(self, watch => watch.accessed(told, before, counters));
    }

    /// The warp of a slot is gone.
    pub fn leave(&mut self, slot: u16) {
        if let Some(cell) = &mut self.cell {
            cell.leave(slot);
        }
    }
}
