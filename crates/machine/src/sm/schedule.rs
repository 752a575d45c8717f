//! A sub-core's turn: who issues, cycle after cycle.
//!
//! Most instructions concern nobody but their warp. As long as only such issue, a sub-core runs by itself, in a loop that
//! touches nothing but its own state; in front of any other it waits until all sub-cores have come to that cycle.

use super::code::{Class, Code, Timing};
use super::core::{Sm, Turn};
use super::layouts::Layouts;
use super::plan::{Planned, Supply};
use super::spec::Latency;
use super::sub_core::SubCore;
use super::warp::{Loaded, State, WarpSlot};
use super::watch::{Watch, with_watch};
use super::work::Work;
use crate::stall::Stall;
use simt::Resident;

/// A warp that issues next, and the warps that could.
#[derive(Clone, Copy)]
pub(super) struct Chosen {
    pub slot: u16,
    pub eligible: u64,
}

/// Whether the host has the instructions that [`Sm`]'s inner loop wants.
pub(super) fn counts_bits() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

impl Sm {
    /// A sub-core's turn: until another one is behind, something happened that others have to know, or all of `alone` is
    /// over, up to which it may run by itself.
    pub(super) fn turn(&mut self, work: &mut Work<'_>, turn: &Turn, alone: u64) {
        let s = turn.sub_core;
        let requests = self.out.len();
        self.touched = false;
        loop {
            if let Some(n) = self.subs[s].unplanned.take() {
                let now = self.subs[s].next;
                self.plan(work, n.into(), now);
                self.subs[s].plan_next(now);
            } else {
                let is_quick = self.spec.dispatch_units == 1;
                let chosen = if is_quick { self.stretch(work, turn, alone) } else { self.look(s) };
                if let Some(chosen) = chosen
                    && self.subs[s].next <= turn.until
                {
                    self.act(work, s, chosen);
                }
            }
            let next = self.subs[s].next;
            let is_over = next > turn.until || next >= alone;
            let is_news = self.touched || self.is_held || self.out.len() != requests;
            if is_over
                || is_news
                || self.failure.is_some()
                || (next >= self.horizon && self.concerns_others())
            {
                return;
            }
        }
    }

    /// Runs a sub-core by itself up to a cycle. It stops, its next cycle as it is, in front of anything that others must
    /// see in the order of time: the warp that does it.
    fn stretch(&mut self, work: &mut Work<'_>, turn: &Turn, limit: u64) -> Option<Chosen> {
        if self.watcher.is_none() {
            return self.stretch_for(work, turn, limit, &mut ());
        }
        let mut watcher = self.watcher.take()?;
        let chosen = with_watch!(watcher, watch => self.stretch_for(work, turn, limit, watch));
        self.watcher = Some(watcher);
        chosen
    }

    #[inline(always)]
    fn stretch_for<W: Watch>(
        &mut self,
        work: &mut Work<'_>,
        turn: &Turn,
        limit: u64,
        watch: &mut W,
    ) -> Option<Chosen> {
        let by_policy = self.policies.is_some();
        #[cfg(target_arch = "x86_64")]
        if self.counts_bits {
            // SAFETY: the host has these instructions.
            return unsafe {
                match by_policy {
                    false => self.stretch_with_bit_counts::<false, W>(work, turn, limit, watch),
                    true => self.stretch_with_bit_counts::<true, W>(work, turn, limit, watch),
                }
            };
        }
        match by_policy {
            false => self.stretch_here::<false, W>(work, turn, limit, watch),
            true => self.stretch_here::<true, W>(work, turn, limit, watch),
        }
    }

    /// The same with the instructions that count bits, of which the sets of warps need many.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "popcnt,bmi1,bmi2,lzcnt")]
    fn stretch_with_bit_counts<const BY_POLICY: bool, W: Watch>(
        &mut self,
        work: &mut Work<'_>,
        turn: &Turn,
        limit: u64,
        watch: &mut W,
    ) -> Option<Chosen> {
        self.stretch_here::<BY_POLICY, W>(work, turn, limit, watch)
    }

    #[inline(always)]
    fn stretch_here<const BY_POLICY: bool, W: Watch>(
        &mut self,
        work: &mut Work<'_>,
        turn: &Turn,
        limit: u64,
        watch: &mut W,
    ) -> Option<Chosen> {
        let s = turn.sub_core;
        let mut stopped = None;
        let mut local = if BY_POLICY { self.policies.as_mut().map(|p| p.local(s)) } else { None };
        let sub = &mut self.subs[s];
        let warps = self.warps.as_mut_slice();
        let (fetch, constants) = (&mut self.fetch, &mut self.constants);
        let (stalls, counters, launches) = (&mut self.stalls, &mut self.counters, &mut self.launches[..]);
        let mut supply = Supply { fetch, constants, stalls, counters, launches, watch };
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
            let mut to = pc + 1;
            if warp.ahead == 0 {
                let resident = &mut work.ctas[usize::from(warp.cta)].resident;
                let Some(next) = supply.execute(resident, warp, (code, timing), None) else {
                    sub.next = now;
                    stopped = Some(Chosen { slot: n, eligible });
                    break;
                };
                to = next;
            }
            if warp.ahead > 0 && (timing.is_memory() || timing.is_known) {
                // Executed, and still to go through a unit that others use.
                stopped = Some(Chosen { slot: n, eligible });
                break;
            }
            issued += 1;
            seen += u64::from(eligible.count_ones());
            self.issued_by_class[timing.class as usize] += 1;
            let number = sub.number;
            let start = supply.issue_executed((sub, number), n, warp, timing, true, now);
            if BY_POLICY && let Some(local) = &mut local {
                local.issued(sub, bit, eligible, (timing.class, start), now);
            }
            supply.leave_executed(number, n, warp, (code, timing), to, (now, start), &self.spec.latency);
            match supply.plan(number, n, warp, code, now) {
                Planned::At(since) => sub.wait(bit, since, now),
                Planned::Waiting => {}
                Planned::NoCode | Planned::NoConstant => {
                    (sub.unplanned, sub.next) = (Some(n), now);
                    break;
                }
            }
            if BY_POLICY && let Some(local) = &mut local {
                local.planned(warp, now);
            }
            sub.plan_after(timing.class, eligible, now);
        }
        self.counters.eligible_cycles += issued;
        self.counters.eligible_warps += seen;
        self.counters.issue_cycles += issued;
        stopped
    }

    /// The warp that a sub-core would issue in its next cycle.
    fn look(&mut self, s: usize) -> Option<Chosen> {
        let sub = &mut self.subs[s];
        let now = sub.next;
        sub.look(&mut self.warps, now);
        let eligible = sub.eligible(now);
        if eligible == 0 {
            sub.plan_next(now);
            return None;
        }
        let bit = match &mut self.policies {
            Some(policies) => policies.local(s).choose(sub, &self.warps, eligible, now),
            None => sub.choose(eligible),
        };
        Some(Chosen { slot: sub.slot(bit), eligible })
    }

    /// A warp issues something that others see, all sub-cores having come to the cycle.
    pub(super) fn act(&mut self, work: &mut Work<'_>, s: usize, chosen: Chosen) {
        let (n, now) = (usize::from(chosen.slot), self.subs[s].next);
        if now >= self.horizon && Sm::leaves(self.warps[n].class) {
            // It must not happen before the other SMs are here.
            self.is_held = true;
            return;
        }
        self.counters.eligible_cycles += 1;
        self.counters.eligible_warps += u64::from(chosen.eligible.count_ones());
        self.counters.issue_cycles += 1;
        if let Some(policies) = &mut self.policies {
            policies.begin_issue(s, chosen.eligible, now);
        }
        self.issue_warp(work, s, n, now);
        self.subs[s].plan_next(now);
    }

    /// The same for an exit: mostly all lanes take it, and then nothing has to be found out.
    pub(super) fn exit(&mut self, work: &mut Work<'_>, s: usize, chosen: Chosen) {
        let is_plain = self.policies.is_none() && !self.is_optimizing();
        let warp = &mut self.warps[usize::from(chosen.slot)];
        let cta = &mut work.ctas[usize::from(warp.cta)];
        let threads = cta.resident.active(warp.index.into());
        if !is_plain || !cta.resident.exit(warp.index.into()) {
            return self.act(work, s, chosen);
        }
        match self.watcher.take() {
            None => self.exit_for(work, s, chosen, threads, &mut ()),
            Some(mut watcher) => {
                with_watch!(watcher, watch => self.exit_for(work, s, chosen, threads, watch));
                self.watcher = Some(watcher);
            }
        }
        let now = self.subs[s].next;
        self.end_warp(work, chosen.slot.into(), now);
        self.subs[s].plan_next(now);
    }

    /// Issues an exit that has been executed.
    #[inline(always)]
    fn exit_for<W: Watch>(&mut self, work: &Work<'_>, s: usize, chosen: Chosen, threads: u32, watch: &mut W) {
        let (warp, sub) = (&mut self.warps[usize::from(chosen.slot)], &mut self.subs[s]);
        let timing = work.contexts[usize::from(warp.context)].code.timing_of(warp.pc);
        let now = sub.next;
        self.counters.eligible_cycles += 1;
        self.counters.eligible_warps += u64::from(chosen.eligible.count_ones());
        self.counters.issue_cycles += 1;
        self.issued_by_class[timing.class as usize] += 1;
        let (fetch, constants) = (&mut self.fetch, &mut self.constants);
        let (stalls, counters, launches) = (&mut self.stalls, &mut self.counters, &mut self.launches[..]);
        let mut supply = Supply { fetch, constants, stalls, counters, launches, watch };
        if W::THREADS {
            supply.watch.execute_one(warp.row(), threads.count_ones());
        }
        warp.ahead = 1;
        supply.issue_executed((sub, s as u32), chosen.slot, warp, timing, true, now);
        supply.watch.branch(chosen.slot, warp.row());
        (warp.issued, warp.since) = (now, now + 1);
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
            warp.marks = self.subs[s].marks(class, now);
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
        let is_there = |&p: &u16| warp.places[usize::from(p) % code.scoreboard].cycle() <= now;
        timing.is_paired && code.checks(timing).iter().all(is_there)
    }
}

impl<W: Watch> Supply<'_, W> {
    /// Executes a warp's next instruction, and at once all behind it that concerns only the warp: where the first of them
    /// leads. Nothing is executed that others see. Loads from shared memory are executed too, where layouts are given: the
    /// warp reads in its own order, and between barriers nobody can tell when.
    #[inline(always)]
    pub fn execute(
        &mut self,
        resident: &mut Resident<'_>,
        warp: &mut WarpSlot,
        (code, timing): (&Code, &Timing),
        layouts: Option<&Layouts>,
    ) -> Option<u32> {
        let index = usize::from(warp.index);
        let threads = if W::THREADS { resident.active(index).count_ones() } else { 0 };
        let mut to = warp.pc + 1;
        if timing.goes_on {
            run_ahead(resident, warp, code, layouts);
        } else if timing.run > 0 {
            // No more than asked for.
            warp.ahead = resident.run(index, timing.run.into()) as u8;
        } else if timing.may_leave()
            && let Some(pc) = resident.branch(index)
        {
            (warp.ahead, to) = (1, pc);
        }
        if warp.ahead == 0 {
            return None;
        }
        self.watch.execute(warp.row(), warp.ahead.into(), threads);
        Some(to)
    }

    /// Issues an instruction that has been executed, of a warp that was chosen, and may have asked: when its pipe begins
    /// with it.
    #[inline(always)]
    pub fn issue_executed(
        &mut self,
        (sub, number): (&mut SubCore, u32),
        n: u16,
        warp: &mut WarpSlot,
        timing: &Timing,
        asks: bool,
        now: u64,
    ) -> u64 {
        warp.ahead -= 1;
        let (class, pc) = (timing.class, warp.row());
        let mut row = self.stalls.row(pc as usize);
        if now > warp.since {
            let why = sub.why(warp, class, now);
            row.charge_waiting(why, class.throttle());
            if !W::LOOKS_LATE {
                self.watch.waited(n, warp, number, class, (why, [0; 2]), now);
            }
        }
        row.count(Stall::Selected);
        match W::LOOKS_LATE {
            true => self.watch.issue_late(n, warp, pc, sub, timing, now),
            false => self.watch.issue(n, pc, number, timing, now),
        }
        if asks {
            sub.take(warp.bit, class);
        } else {
            sub.take_unasked(warp.bit);
        }
        let start = sub.enter(class, now);
        sub.read_banks(now, timing.bank_reads);
        start
    }

    /// The warp goes on to its next instruction, and results get their cycles.
    #[inline(always)]
    pub fn leave_executed(
        &mut self,
        number: u32,
        n: u16,
        warp: &mut WarpSlot,
        (code, timing): (&Code, &Timing),
        to: u32,
        (now, start): (u64, u64),
        latency: &Latency,
    ) {
        let pc = warp.pc;
        (warp.issued, warp.since, warp.pc) = (now, now + 1, to);
        // As most are; none of them leads elsewhere.
        if timing.is_static {
            return;
        }
        if timing.may_leave() {
            let lasts = if to == pc + 1 { latency.branch_not_taken } else { latency.branch };
            let at = now + u64::from(lasts.max(1));
            self.watch.branch(n, warp.rows + pc);
            warp.resolve(to, pc, at, self.stalls);
            if at > now + 1 {
                self.watch.wait(n, warp, number, (), Stall::BranchResolving, now + 1, at);
            }
        } else {
            let writes = code.writes(timing);
            warp.write_after(writes, timing, start);
        }
    }
}

/// Most instructions that are executed at once.
const MOST: u32 = u8::MAX as u32;

/// Executes instructions of a warp, one behind the other, up to one that others see or that lies behind one that was not
/// executed.
#[inline(always)]
fn run_ahead(resident: &mut Resident<'_>, warp: &mut WarpSlot, code: &Code, layouts: Option<&Layouts>) {
    let index = usize::from(warp.index);
    let (mut ran, mut loads, mut loaded) = (0, 0, 0);
    while ran < MOST {
        let timing = code.timing_of(warp.pc + ran);
        if timing.is_late && ran > 0 {
            break;
        }
        if timing.run > 0 {
            let most = u32::from(timing.run).min(MOST - ran);
            // No more than asked for.
            let executed = resident.run(index, most);
            ran += executed;
            if executed < most {
                break;
            }
        } else if timing.loads_shared
            && loads < Loaded::MOST
            && let Some(layout) = layouts.and_then(|l| l.get(timing.layout))
            && let Some(bit) = Loaded::bit(layout.passes, timing.words)
            && resident.is_whole(index)
            && resident.step_shared(index, layout)
        {
            loaded |= bit << loads;
            (ran, loads) = (ran + 1, loads + 1);
        } else {
            break;
        }
    }
    (warp.ahead, warp.loaded) = (ran as u8, Loaded(loaded));
}
