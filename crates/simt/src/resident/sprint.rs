//! Warps that sprint, and what they did that has not issued.

use super::{Access, Resident, Where};
use crate::access;
use crate::lanes::{Lanes, PT};
use crate::log::Log;
use crate::prefetch::{HOST_LINE, prefetch_at};
use crate::sprint::Track;
use crate::tape::Left;
use crate::uop::{Flow, ROW};
use crate::warp::Warp;
use isa::Op;

/// Consecutive lanes access memory: the next warp mostly goes on behind them, and soon.
#[inline(always)]
fn expect_neighbour(lanes: &Lanes, access: &Access) {
    if let Where::Consecutive(start) = access.place {
        let bytes = 32 * access.size as usize;
        let next = lanes.global.wrapping_add(start as usize + bytes);
        for at in (0..bytes).step_by(HOST_LINE) {
            prefetch_at(next.wrapping_add(at));
        }
    }
}

impl Resident<'_> {
    /// Executes a warp that has just started, in the registers of `track`, up to `end` or to the first instruction that does
    /// not simply go on with the next; how many instructions. All of them concern nobody but their warp, or access global
    /// memory; these say on the warp's tape what they did. `log` is the SM's. `expect` learns where loads go whose lanes are
    /// simple.
    #[inline(never)]
    pub fn sprint(
        &mut self,
        w: usize,
        end: u32,
        track: &mut Track,
        log: &mut Log,
        mut expect: impl FnMut(u64),
    ) -> u32 {
        let (code, locate, launch) = (self.code(), self.locate, &self.launch);
        let warp = &mut self.warps[w];
        let (start, active) = (warp.pc, warp.lanes.active);
        let is_new = warp.executed == 0 && start == launch.kernel.function.start && !warp.is_split();
        if !is_new || active == 0 || end as usize > code.len() || warp.lanes.is_observed() {
            return 0;
        }
        let (file, access, stored) = track.ready(launch);
        let rows = file.as_mut_slice();
        for &at in &launch.kernel.cleared {
            rows[at as usize..(at + ROW) as usize].fill(0);
        }
        let own = std::mem::replace(&mut warp.lanes.file, file.as_ptr());
        warp.lanes.log = log;
        stored.reset();
        // Only through this from here on: handlers have it, too.
        let stored: *mut Log = stored;
        let mut stores = false;
        let mut pc = start;
        while pc < end {
            // SAFETY: the place is one in the code. The lanes are bound, but for a file that is as large; the logs live while
            // this runs; the host has the kernel's level.
            let flow = unsafe {
                let u = code.get_unchecked(pc as usize);
                match access::kind(u) {
                    Some(_) if !matches!(u.op, Op::Ldg | Op::Stg) => break,
                    None => (u.handler)(&mut warp.lanes, u),
                    Some((space, size)) => {
                        // What is stored is not where loads look for it. A load cannot be executed twice.
                        let is_store = u.op == Op::Stg;
                        if !is_store && (stores || !warp.left.has_room()) {
                            break;
                        }
                        if is_store && !stores {
                            (stores, warp.lanes.log) = (true, stored);
                        }
                        (access.size, access.mask) = (size, warp.lanes.mask(u));
                        locate(&warp.lanes, u, space, access);
                        expect_neighbour(&warp.lanes, access);
                        if let (false, Where::Consecutive(at) | Where::Same(at)) = (is_store, access.place) {
                            expect(at);
                        }
                        let before = (*stored).so_far();
                        let flow = (u.handler)(&mut warp.lanes, u);
                        match flow {
                            // A store for which there is no room is executed when it issues.
                            Flow::Next
                                if !Warp::tape_of(own, launch, &mut warp.left)
                                    .put(access, &*stored, before) =>
                            {
                                break;
                            }
                            Flow::Next => {}
                            _ => (*stored).forget_since(before),
                        }
                        flow
                    }
                }
            };
            if flow != Flow::Next {
                break;
            }
            pc += 1;
        }
        (warp.lanes.file, warp.lanes.log) = (own, log);
        let ran = pc - start;
        // Whoever ends next needs no registers.
        let ends = code.get(pc as usize).is_some_and(|u| u.op == Op::Exit && u.guard == PT);
        if !ends {
            warp.take_registers(launch, file);
        }
        warp.pc = pc;
        warp.executed += u64::from(ran);
        warp.thread_executed += u64::from(ran) * u64::from(active.count_ones());
        ran
    }

    /// What the warp's next access to global memory touches, which was executed in a sprint. What it stores goes to the log, when
    /// `known` has learned of the access.
    #[inline]
    pub fn touched(
        &mut self,
        w: usize,
        cycle: u64,
        out: &mut Access,
        log: &mut Log,
        known: impl FnOnce(&Access),
    ) {
        log.now(cycle);
        let warp = &mut self.warps[w];
        // SAFETY: the lanes are bound to the warp's file.
        unsafe { Warp::tape_of(warp.lanes.file, &self.launch, &mut warp.left) }.take(out, log, known);
    }

    /// What a warp did that has not issued; the warp forgets it.
    pub fn take_tape(&mut self, w: usize) -> Vec<u64> {
        let words = self.warps[w].tape_words(&self.launch);
        self.warps[w].left = Left::NOTHING;
        words
    }

    /// The warp did this, which has not issued.
    pub fn set_tape(&mut self, w: usize, words: &[u64]) {
        if let Some(warp) = self.warps.get_mut(w) {
            warp.tape(&self.launch).set_words(words);
        }
    }
}
