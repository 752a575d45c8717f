//! A sub-core's turn: who issues, cycle after cycle.
//!
//! Most instructions concern nobody but their warp. As long as only such issue, a sub-core runs by itself, in a loop that
//! touches nothing but its own state; in front of any other it waits until all sub-cores have come to that cycle.

use super::code::Class;
use super::core::{Sm, Work};
use super::plan::{Planned, Supply};
use super::waits::FOR_READERS;
use super::warp::{Ready, State, WarpSlot};
use crate::stall::Stall;

impl Sm {
    /// The turn of the sub-core that is the furthest behind, in cycle `now`; it may run by itself up to `alone`.
    pub(super) fn turn(&mut self, work: &mut Work<'_>, s: usize, now: u64, alone: u64) {
        if let Some(n) = self.subs[s].unplanned.take() {
            self.plan(work, n.into(), now);
            self.subs[s].plan_next(now);
            return;
        }
        let policies = self.policies.as_ref();
        if policies.is_none_or(|p| p.is_local()) && self.spec.dispatch_units == 1 {
            match policies {
                None => self.stretch::<false>(work, s, alone),
                Some(_) => self.stretch::<true>(work, s, alone),
            }
        }
        if self.subs[s].next == now && self.subs[s].unplanned.is_none() {
            match self.policies {
                None => self.schedule(work, s, now),
                Some(_) => self.schedule_by_policy(work, s, now),
            }
        }
    }

    /// Runs a sub-core by itself up to a cycle. It stops, its next cycle as it is, in front of anything that others must
    /// see in the order of time.
    fn stretch<const BY_POLICY: bool>(&mut self, work: &mut Work<'_>, s: usize, limit: u64) {
        let mut local = if BY_POLICY { self.policies.as_mut().map(|p| p.local(s)) } else { None };
        let sub = &mut self.subs[s];
        let warps = self.warps.as_mut_slice();
        let (fetch, constants) = (&mut self.fetch, &mut self.constants);
        let mut supply = Supply { fetch, constants, stalls: &mut self.stalls, counters: &mut self.counters };
        let (mut issued, mut seen) = (0, 0);
        while sub.next < limit {
            let now = sub.next;
            sub.look(warps, now);
            let eligible = sub.eligible(now);
            if eligible == 0 {
                sub.plan_next(now);
                continue;
            }
            let bit = match &local {
                Some(local) if BY_POLICY => local.choose(sub, warps, eligible, now),
                _ => sub.choose(eligible),
            };
            let n = sub.slot(bit);
            let warp = &mut warps[usize::from(n)];
            let pc = warp.pc;
            let code = &work.contexts[usize::from(warp.context)].code;
            let timing = code.timing_of(pc);
            // All that concerns only the warp is executed at once.
            if warp.ahead == 0 {
                if timing.run > 0 {
                    let cta = &mut work.ctas[usize::from(warp.cta)];
                    warp.ahead = cta.resident.run(warp.index.into(), timing.run.into());
                }
                if warp.ahead == 0 {
                    sub.next = now;
                    break;
                }
            }
            warp.ahead -= 1;
            issued += 1;
            seen += u64::from(eligible.count_ones());
            let class = timing.class;
            let mut row = supply.stalls.row(pc as usize);
            let waited = now - warp.since;
            if waited > 0 {
                row.charge_waiting(sub.why(warp, class, now), class.throttle());
            }
            row.charge(Stall::Selected, 1);
            self.issued_by_class[class as usize] += 1;
            sub.take(bit, class);
            let start = sub.enter(class, now);
            sub.read_banks(now, timing.bank_reads);
            if !timing.is_static {
                let (writes, _) = code.places(timing);
                for (k, &p) in writes.iter().enumerate() {
                    let at = start + u64::from(timing.latency_of(k));
                    warp.places[p as usize].ready = Ready::at(at, timing.producer);
                }
            }
            (warp.issued, warp.since, warp.pc) = (now, now + 1, pc + 1);
            if BY_POLICY && let Some(local) = &mut local {
                local.issued(sub, bit, eligible, (class, start), now);
            }
            if supply.plan(sub, warp, code, now) != Planned::Done {
                (sub.unplanned, sub.next) = (Some(n), now);
                break;
            }
            if BY_POLICY && let Some(local) = &mut local {
                local.planned(warp, now);
            }
            sub.plan_after(class, eligible, now);
        }
        self.counters.eligible_cycles += issued;
        self.counters.eligible_warps += seen;
        self.counters.issue_cycles += issued;
    }

    /// One cycle of a sub-core, all others having come to it.
    fn schedule(&mut self, work: &mut Work<'_>, s: usize, now: u64) {
        let sub = &mut self.subs[s];
        sub.look(&mut self.warps, now);
        let eligible = sub.eligible(now);
        if eligible != 0 {
            let n = usize::from(sub.slot(sub.choose(eligible)));
            if now >= self.horizon && Sm::leaves(self.warps[n].class) {
                // It must not happen before the other SMs are here.
                self.is_held = true;
                sub.next = now;
                return;
            }
            self.counters.eligible_cycles += 1;
            self.counters.eligible_warps += u64::from(eligible.count_ones());
            self.counters.issue_cycles += 1;
            self.issue_warp(work, s, n, now);
        }
        self.subs[s].plan_next(now);
    }

    /// Issues as many instructions of the chosen warp as there are dispatch units.
    pub(super) fn issue_warp(&mut self, work: &mut Work<'_>, s: usize, n: usize, now: u64) {
        self.issue(work, s, n, now);
        for _ in 1..self.spec.dispatch_units {
            let warp = &self.warps[n];
            let leaves = now >= self.horizon && Sm::leaves(warp.class);
            if warp.state != State::Timed || warp.since > now + 1 || leaves || !self.follows(work, n, now) {
                return;
            }
            let class = self.warps[n].class;
            if !self.subs[s].is_free(class, now) || !self.may_follow(s, n, now) {
                return;
            }
            // It was planned for the next cycle: it is not looked at there any more.
            let warp: &mut WarpSlot = &mut self.warps[n];
            self.subs[s].unwait(warp.bit, warp.since);
            warp.since = now;
            warp.marks = self.subs[s].busy(class, now);
            self.issue(work, s, n, now);
        }
    }

    /// Whether an instruction of this class concerns more than its SM.
    pub(super) fn leaves(class: Class) -> bool {
        matches!(class, Class::Global | Class::Tex)
    }

    /// Whether the planned instruction's operands are there in the cycle of the one before.
    fn follows(&self, work: &Work<'_>, n: usize, now: u64) -> bool {
        let warp = &self.warps[n];
        let code = &work.contexts[usize::from(warp.context)].code;
        let timing = code.timing_of(warp.pc);
        let is_there = |&p: &u16| warp.places[(p & !FOR_READERS) as usize].ready.cycle() <= now;
        timing.is_paired && code.checks(timing).iter().all(is_there)
    }
}
