//! Watching an SM's warps: who tells what happens to whom it may concern, without changing anything.
//!
//! The SM calls a [`Watch`] wherever it charges a warp's cycles. Without a watcher that is `()`, and the calls are compiled
//! away; with one it is a [`Watcher`]: the trace cell, which samples, and the [`Recorder`], which keeps everything that a
//! profile shows.

mod causes;
mod recorder;
#[cfg(test)]
mod tests;
mod timeline;

pub use causes::{Causes, producers};
pub use recorder::Recorder;
pub use timeline::{Buckets, put_together, traffic};

use super::code::{Class, Timing};
use super::trace_cell::{Event, TraceCell};
use super::warp::WarpSlot;
use crate::counters::Counters;
use crate::stall::Stall;
use serde::{Deserialize, Serialize};
use simt::resident::Access;

/// What waiting to be chosen turns into: cycles for want of a pipe, for the dispatcher, for other warps; and by the
/// scheduler's policy, for a grant and for the window.
pub type Waited = ([u64; 3], [u64; 2]);

/// Somebody who is told what warps do. Cycles of a warp come without gaps, in the order of time.
pub trait Watch {
    /// Somebody is there.
    const ON: bool;
    /// The threads of an instruction matter.
    const THREADS: bool;

    /// The instructions that a warp issues from now on have so many threads.
    fn threads(&mut self, slot: u16, threads: u32);

    /// A warp waits at its next instruction; `checks` are the scoreboard places that it looks at.
    fn wait(&mut self, slot: u16, warp: &WarpSlot, checks: &[u16], reason: Stall, from: u64, until: u64);

    /// A warp that could issue from `from` on does so at `now`.
    fn waited(&mut self, slot: u16, warp: &WarpSlot, sub: u32, class: Class, waited: Waited, now: u64);

    /// An instruction issues.
    fn issue(&mut self, slot: u16, pc: u32, sub: u32, timing: &Timing, now: u64);

    /// Its results will be at these places of the scoreboard in a while.
    fn produces(&mut self, slot: u16, places: &[u16], pc: u32);
}

impl Watch for () {
    const ON: bool = false;
    const THREADS: bool = false;

    #[inline(always)]
    fn threads(&mut self, _: u16, _: u32) {}

    #[inline(always)]
    fn wait(&mut self, _: u16, _: &WarpSlot, _: &[u16], _: Stall, _: u64, _: u64) {}

    #[inline(always)]
    fn waited(&mut self, _: u16, _: &WarpSlot, _: u32, _: Class, _: Waited, _: u64) {}

    #[inline(always)]
    fn issue(&mut self, _: u16, _: u32, _: u32, _: &Timing, _: u64) {}

    #[inline(always)]
    fn produces(&mut self, _: u16, _: &[u16], _: u32) {}
}

/// The reasons of a wait to be chosen, in the order in which they are told, and the cycle at which it began.
fn reasons(class: Class, waited: Waited, now: u64) -> ([(Stall, u64); 5], u64) {
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
    const ON: bool = true;
    const THREADS: bool = false;

    #[inline(always)]
    fn threads(&mut self, _: u16, _: u32) {}

    #[inline(always)]
    fn wait(&mut self, slot: u16, warp: &WarpSlot, checks: &[u16], reason: Stall, from: u64, until: u64) {
        if self.is_due(slot, until) {
            self.sample(slot, warp.pc, 1 << reason as u32, from, until, Some((warp, checks)));
        }
    }

    #[inline(always)]
    fn waited(&mut self, slot: u16, warp: &WarpSlot, _: u32, class: Class, waited: Waited, now: u64) {
        if !self.is_due(slot, now) {
            return;
        }
        let (all, mut from) = reasons(class, waited, now);
        for (reason, cycles) in all.into_iter().filter(|(_, n)| *n > 0) {
            if self.is_due(slot, from + cycles) {
                self.sample(slot, warp.pc, 1 << reason as u32, from, from + cycles, None);
            }
            from += cycles;
        }
    }

    #[inline(always)]
    fn issue(&mut self, slot: u16, pc: u32, _: u32, timing: &Timing, now: u64) {
        self.issued(pc, timing.kind, now);
        if self.is_due(slot, now + 1) {
            self.sample(slot, pc, 1 << Stall::Selected as u32, now, now + 1, None);
        }
    }

    #[inline(always)]
    fn produces(&mut self, _: u16, _: &[u16], _: u32) {}
}

impl Watch for Recorder {
    const ON: bool = true;
    const THREADS: bool = true;

    #[inline(always)]
    fn threads(&mut self, slot: u16, threads: u32) {
        self.has_threads(slot, threads);
    }

    #[inline(always)]
    fn wait(&mut self, slot: u16, warp: &WarpSlot, checks: &[u16], reason: Stall, from: u64, until: u64) {
        self.waits(slot, warp, checks, reason, from, until);
    }

    #[inline(always)]
    fn waited(&mut self, slot: u16, warp: &WarpSlot, sub: u32, class: Class, waited: Waited, now: u64) {
        let (all, mut from) = reasons(class, waited, now);
        for (reason, cycles) in all.into_iter().filter(|(_, n)| *n > 0) {
            self.chosen(slot, warp.pc, sub, class, reason, from, from + cycles);
            from += cycles;
        }
    }

    #[inline(always)]
    fn issue(&mut self, slot: u16, pc: u32, sub: u32, timing: &Timing, now: u64) {
        self.issues(slot, pc, sub, timing.class, now);
    }

    #[inline(always)]
    fn produces(&mut self, slot: u16, places: &[u16], pc: u32) {
        self.makes(slot, places, pc);
    }
}

/// Both watch.
impl<A: Watch, B: Watch> Watch for (&mut A, &mut B) {
    const ON: bool = true;
    const THREADS: bool = A::THREADS || B::THREADS;

    #[inline(always)]
    fn threads(&mut self, slot: u16, threads: u32) {
        self.0.threads(slot, threads);
        self.1.threads(slot, threads);
    }

    #[inline(always)]
    fn wait(&mut self, slot: u16, warp: &WarpSlot, checks: &[u16], reason: Stall, from: u64, until: u64) {
        self.0.wait(slot, warp, checks, reason, from, until);
        self.1.wait(slot, warp, checks, reason, from, until);
    }

    #[inline(always)]
    fn waited(&mut self, slot: u16, warp: &WarpSlot, sub: u32, class: Class, waited: Waited, now: u64) {
        self.0.waited(slot, warp, sub, class, waited, now);
        self.1.waited(slot, warp, sub, class, waited, now);
    }

    #[inline(always)]
    fn issue(&mut self, slot: u16, pc: u32, sub: u32, timing: &Timing, now: u64) {
        self.0.issue(slot, pc, sub, timing, now);
        self.1.issue(slot, pc, sub, timing, now);
    }

    #[inline(always)]
    fn produces(&mut self, slot: u16, places: &[u16], pc: u32) {
        self.0.produces(slot, places, pc);
        self.1.produces(slot, places, pc);
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
    pub fn start(&mut self, slot: u16, cta: u16, linear: u64, task: u64, at: u64) {
        if let Some(cell) = &mut self.cell {
            cell.start(slot, cta, linear, task, at);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.start(slot, linear);
        }
    }

    /// A memory operation went to the load-store unit: the counters before and after.
    pub fn accessed(
        &mut self,
        slot: u16,
        reads: &[u16],
        pc: u32,
        access: &Access,
        is_store: bool,
        [before, after]: [&Counters; 2],
        now: u64,
    ) {
        if let Some(cell) = &mut self.cell {
            let sectors = after.l1_sectors - before.l1_sectors;
            let hits = after.l1_hits - before.l1_hits;
            cell.event(Event::CacheMiss, sectors.saturating_sub(hits) as u32, now);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.access(slot, reads, pc, access, before, after);
            if is_store {
                recorder.stored(slot, pc);
            }
        }
    }

    /// The warp of a slot is gone.
    pub fn leave(&mut self, slot: u16) {
        if let Some(cell) = &mut self.cell {
            cell.leave(slot);
        }
    }
}
