//! What a warp does next: when its next instruction can issue, and why not sooner.

use super::code::{Code, NO_CONSTANT, Producer, Timing};
use super::constants::Constants;
use super::core::{LINE_INSTRUCTIONS, Sm};
use super::counted::{Counted, counters_of};
use super::fetch::{Fetch, Fetched};
use super::sub_core::SubCore;
use super::warp::{State, UNKNOWN, WarpSlot};
use super::watch::{Watch, with_watch};
use super::work::Work;
use crate::counters::Counters;
use crate::ports::Request;
use crate::stall::{Stall, StallTable};
use crate::units::Cycle;

/// How far planning came with what a sub-core has of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Planned {
    /// All the way: the warp waits for this cycle, and has to be put where it waits.
    At(u64),
    /// The same, for an answer.
    Waiting,
    /// The sub-core does not have the line of code.
    NoCode,
    /// It does not have the constant operand.
    NoConstant,
}

/// What planning needs of an SM besides the sub-core and the warp.
pub(super) struct Supply<'a, W> {
    pub fetch: &'a mut Fetch,
    pub constants: &'a mut Constants,
    pub stalls: &'a mut StallTable,
    pub counters: &'a mut Counters,
    pub launches: &'a mut [Counted],
    pub watch: &'a mut W,
}

impl<W: Watch> Supply<'_, W> {
    /// Plans a warp's next instruction as far as the sub-core can by itself.
    #[inline(always)]
    pub fn plan(&mut self, sub: u32, slot: u16, warp: &mut WarpSlot, code: &Code, now: u64) -> Planned {
        self.plan_as(sub, slot, warp, (code, code.timing_of(warp.pc)), now)
    }

    /// The same where the instruction has been looked up.
    #[inline(always)]
    pub fn plan_as(
        &mut self,
        sub: u32,
        slot: u16,
        warp: &mut WarpSlot,
        (code, timing): (&Code, &Timing),
        now: u64,
    ) -> Planned {
        warp.class = timing.class;
        warp.state = State::Timed;
        let pc = warp.row() as usize;
        let mut since = warp.since;
        let line = warp.pc / LINE_INSTRUCTIONS;
        if line != warp.line {
            let counters = counters_of(self.counters, self.launches, warp);
            let Some(ready) = self.fetch.own(sub, code.first_line + u64::from(line), counters) else {
                return Planned::NoCode;
            };
            let at = ready.0.max(now);
            if at > since {
                self.stalls.charge(pc, Stall::NoInstruction, at - since);
                self.watch.wait(slot, warp, sub, (), Stall::NoInstruction, since, at);
                since = at;
            }
            warp.line = line;
        }
        // What the code says, counted from the issue before.
        let at = warp.issued + u64::from(timing.wait);
        if at > since {
            self.stalls.charge(pc, Stall::Wait, at - since);
            if !(W::LOOKS_LATE && timing.is_simple) {
                self.watch.wait(slot, warp, sub, (code, timing), Stall::Wait, since, at);
            }
            since = at;
        }
        if timing.is_simple {
            warp.since = since;
            return Planned::At(since);
        }
        // Where all that was on its way is there, nothing has to be looked up.
        if warp.open_until > since {
            let checks = code.checks(timing).iter().map(|&p| warp.places[usize::from(p)]);
            // Often they are there.
            if checks.clone().fold(0, |latest, ready| ready.cycle().max(latest)) > since {
                // The latest of what has its own time, by producer: all of them in registers of the host.
                let (mut fixed, mut long, mut short) = (0, 0, 0);
                for ready in checks {
                    let (at, by) = (ready.cycle(), ready.producer());
                    let of = |is: bool| if is { at } else { 0 };
                    long = of(by == Producer::Long as usize).max(long);
                    short = of(by == Producer::Short as usize).max(short);
                    fixed = of(by != Producer::Long as usize && by != Producer::Short as usize).max(fixed);
                }
                let waits =
                    [(Stall::Wait, fixed), (Stall::LongScoreboard, long), (Stall::ShortScoreboard, short)];
                for (reason, at) in waits {
                    if at >= UNKNOWN {
                        warp.since = since;
                        warp.state = State::Pending(reason);
                        return Planned::Waiting;
                    }
                    if at > since {
                        self.stalls.charge(pc, reason, at - since);
                        self.watch.wait(slot, warp, sub, (code, timing), reason, since, at);
                        since = at;
                    }
                }
            }
        }
        warp.since = since;
        if timing.constant != NO_CONSTANT {
            let counters = counters_of(self.counters, self.launches, warp);
            let Some(ready) = self.constants.own(sub, timing.bank, timing.constant, counters) else {
                return Planned::NoConstant;
            };
            let at = ready.0.max(now);
            if at > since {
                self.stalls.charge(pc, Stall::ImcMiss, at - since);
                self.watch.wait(slot, warp, sub, (), Stall::ImcMiss, since, at);
                (since, warp.since) = (at, at);
            }
        }
        Planned::At(since)
    }

    /// Plans the next instruction of the warp in slot `n` with all that the SM has: sub-cores have come to this cycle. False
    /// if its code is not there.
    #[inline(always)]
    pub fn plan_all(
        &mut self,
        sub: &mut SubCore,
        warp: &mut WarpSlot,
        code: &Code,
        n: u16,
        out: &mut Vec<Request>,
        now: u64,
    ) -> bool {
        match self.plan(sub.number, n, warp, code, now) {
            Planned::At(since) => {
                sub.wait(warp.bit, since, now);
                true
            }
            Planned::Waiting => true,
            missing => self.plan_missing(missing, sub, warp, code, n, out, now),
        }
    }

    /// The same where something is missing.
    #[cold]
    pub fn plan_missing(
        &mut self,
        mut missing: Planned,
        sub: &mut SubCore,
        warp: &mut WarpSlot,
        code: &Code,
        n: u16,
        out: &mut Vec<Request>,
        now: u64,
    ) -> bool {
        loop {
            match missing {
                Planned::At(since) => {
                    sub.wait(warp.bit, since, now);
                    return true;
                }
                Planned::Waiting => return true,
                Planned::NoCode => {
                    let line = warp.pc / LINE_INSTRUCTIONS;
                    let sequential = line == warp.line.wrapping_add(1);
                    let place = code.line_of(warp.pc);
                    let counters = counters_of(self.counters, self.launches, warp);
                    match self.fetch.miss(Cycle(now), sub.number, place, sequential, out, counters) {
                        Fetched::At(at) => {
                            self.hold(sub.number, n, warp, Stall::NoInstruction, at.0);
                            warp.line = line;
                        }
                        Fetched::Pending => {
                            warp.state = State::Pending(Stall::NoInstruction);
                            return false;
                        }
                    }
                }
                Planned::NoConstant => {
                    let timing = code.timing_of(warp.pc);
                    let (bank, offset) = (timing.bank, timing.constant);
                    let counters = counters_of(self.counters, self.launches, warp);
                    match self.constants.miss(Cycle(now), sub.number, bank, offset, out, counters) {
                        Fetched::At(at) => {
                            self.hold(sub.number, n, warp, Stall::ImcMiss, at.0);
                            sub.wait(warp.bit, warp.since, now);
                        }
                        Fetched::Pending => warp.state = State::Pending(Stall::ImcMiss),
                    }
                    return true;
                }
            }
            missing = self.plan(sub.number, n, warp, code, now);
        }
    }

    /// A warp waits at its next instruction for what comes in a cycle.
    fn hold(&mut self, sub: u32, n: u16, warp: &mut WarpSlot, reason: Stall, until: u64) {
        if until > warp.since {
            self.stalls.charge(warp.row() as usize, reason, until - warp.since);
            self.watch.wait(n, warp, sub, (), reason, warp.since, until);
            warp.since = until;
        }
    }
}

impl Sm {
    /// Finds out when the warp's next instruction can issue, and why not sooner.
    pub(super) fn plan(&mut self, work: &mut Work<'_>, n: usize, now: u64) {
        match self.watcher.take() {
            None => self.plan_for(work, n, now, &mut ()),
            Some(mut watcher) => {
                with_watch!(watcher, watch => self.plan_for(work, n, now, watch));
                self.watcher = Some(watcher);
            }
        }
    }

    /// Something came that a warp waits for on the scoreboard: its next instruction is planned again, unless more of the same
    /// is missing, and nothing would change.
    #[inline(always)]
    pub(super) fn plan_again(&mut self, work: &mut Work<'_>, n: usize, now: u64) {
        let warp = &self.warps[n];
        let code = &work.contexts[usize::from(warp.context)].code;
        // Policies want to be told all the same.
        if self.policies.is_some() || !warp.still_waits(code.checks(code.timing_of(warp.pc))) {
            self.plan(work, n, now);
        }
    }

    fn plan_for<W: Watch>(&mut self, work: &mut Work<'_>, n: usize, now: u64, watch: &mut W) {
        let warp = &mut self.warps[n];
        let code = &work.contexts[warp.context as usize].code;
        let sub = &mut self.subs[warp.sub_core as usize];
        let (fetch, constants) = (&mut self.fetch, &mut self.constants);
        let (stalls, counters, launches) = (&mut self.stalls, &mut self.counters, &mut self.launches[..]);
        let mut supply = Supply { fetch, constants, stalls, counters, launches, watch };
        if supply.plan_all(sub, warp, code, n as u16, &mut self.out, now)
            && let Some(policies) = &mut self.policies
        {
            policies.planned(sub, warp, now);
        }
    }
}
