//! A sub-core's turn: who issues, cycle after cycle.
//!
//! Most instructions concern nobody but their warp. As long as only such issue, a sub-core runs by itself, in a loop that
//! touches nothing but its own state; in front of any other it waits until all sub-cores have come to that cycle.

use super::code::{Class, Kind};
use super::core::{Sm, Turn};
use super::outgoing::is_code;
use super::plan::{Planned, Supply};
use super::quick::{self, Ended, Shared};
use super::waits::FOR_READERS;
use super::warp::{State, WarpSlot};
use super::watch::{Watch, with_watch};
use super::work::Work;
use crate::stall::Stall;

/// A warp that issues next, and the warps that could.
#[derive(Clone, Copy)]
struct Chosen {
    slot: u16,
    eligible: u64,
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
    /// Nobody has to be told of every cycle and every choice.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        self.policies.is_none() && self.watcher.is_none()
    }

    /// Turns of the sub-cores before a cycle up to which nothing comes from outside, and up to which all that they do is
    /// allowed.
    pub(super) fn turns(&mut self, work: &mut Work<'_>, before: u64) {
        let mut seen = self.out.len();
        while self.failure.is_none() {
            let turn = self.first();
            if turn.from >= before {
                return;
            }
            // What sub-cores do to each other takes a while: until then this one can run by itself.
            let alone = turn.next.saturating_add(self.lookahead).min(before);
            self.turn(work, &turn, alone);
            if self.touched {
                self.note_turns();
            } else {
                self.nexts[turn.sub_core] = self.subs[turn.sub_core].next;
            }
            // Code and constants can be there soon.
            if self.out[seen..].iter().any(is_code) {
                return;
            }
            seen = self.out.len();
        }
    }

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
    /// see in the order of time: the warp that does it. What is quick is done as long as it is this sub-core's turn.
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
        let mut moved = None;
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
            // All that concerns only the warp is executed at once.
            let mut to = pc + 1;
            if warp.ahead == 0 {
                let resident = &mut work.ctas[usize::from(warp.cta)].resident;
                let index = usize::from(warp.index);
                let threads = if W::THREADS { resident.active(index).count_ones() } else { 0 };
                if timing.run > 0 {
                    warp.ahead = resident.run(index, timing.run.into());
                } else if timing.kind == Kind::Branch
                    && let Some(pc) = resident.branch(index)
                {
                    (warp.ahead, to) = (1, pc);
                }
                if warp.ahead == 0 {
                    // Watchers and policies want to be told of everything.
                    if !BY_POLICY
                        && W::IS_NOBODY
                        && now <= turn.until
                        && quick::is_quick(timing)
                        && (now < self.horizon || !Sm::leaves(timing.class))
                        && resident.is_whole(index)
                    {
                        issued += 1;
                        seen += u64::from(eligible.count_ones());
                        let mut shared = Shared {
                            load_store: &mut self.load_store,
                            access: &mut self.access,
                            log: &mut self.log,
                            out: &mut self.out,
                            retry: &mut self.retry,
                            failure: &mut self.failure,
                            issued: &mut self.issued_by_class[timing.class as usize],
                            clock_mhz: self.clock_mhz,
                        };
                        let ended = shared.issue(work, &mut supply, sub, warp, n, now);
                        if ended == Ended::Moved {
                            moved = Some((usize::from(n), now));
                            break;
                        }
                        sub.plan_next(now);
                        if ended == Ended::Planned {
                            continue;
                        }
                        break;
                    }
                    sub.next = now;
                    stopped = Some(Chosen { slot: n, eligible });
                    break;
                }
                supply.watch.execute(warp.rows + pc, warp.ahead, threads);
            }
            warp.ahead -= 1;
            issued += 1;
            seen += u64::from(eligible.count_ones());
            let class = timing.class;
            let mut row = supply.stalls.row(warp.row() as usize);
            let mut why = [0; 3];
            if now > warp.since {
                why = sub.why(warp, class, now);
                row.charge_waiting(why, class.throttle());
            }
            row.charge(Stall::Selected, 1);
            supply.watch.waited_and_issue(n, warp, sub.number, timing, (why, [0; 2]), now);
            self.issued_by_class[class as usize] += 1;
            sub.take(bit, class);
            let start = sub.enter(class, now);
            sub.read_banks(now, timing.bank_reads);
            if BY_POLICY && let Some(local) = &mut local {
                local.issued(sub, bit, eligible, (class, start), now);
            }
            (warp.issued, warp.since, warp.pc) = (now, now + 1, to);
            if timing.kind == Kind::Branch {
                let l = &self.spec.latency;
                let lasts = if to == pc + 1 { l.branch_not_taken } else { l.branch };
                let at = now + u64::from(lasts.max(1));
                supply.watch.branch(n, warp.rows + pc);
                warp.resolve(to, pc, at, supply.stalls);
                if at > now + 1 {
                    supply.watch.wait(n, warp, &[], Stall::BranchResolving, now + 1, at);
                }
            } else if !timing.is_static {
                let (writes, _) = code.places(timing);
                warp.write_after(writes, timing, start);
                supply.watch.produces(n, writes, warp.rows + pc);
            }
            if supply.plan(sub, n, warp, code, now) != Planned::Done {
                (sub.unplanned, sub.next) = (Some(n), now);
                break;
            }
            if BY_POLICY && let Some(local) = &mut local {
                local.planned(warp, now);
            }
            sub.plan_after(class, eligible, now);
        }
        supply.watch.issued(issued);
        self.counters.eligible_cycles += issued;
        self.counters.eligible_warps += seen;
        self.counters.issue_cycles += issued;
        if let Some((n, now)) = moved {
            self.go_on(work, n, now + 1, Stall::BranchResolving, now);
            self.subs[s].plan_next(now);
        }
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
    fn act(&mut self, work: &mut Work<'_>, s: usize, chosen: Chosen) {
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
