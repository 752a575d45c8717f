//! Turns of sub-cores, one after the other, where no policy has to be asked: what one does by itself, and what goes to
//! the units that they share. All that else concerns others ends it.

use super::answers::{After, Answered, Answers, is_data};
use super::code::Kind;
use super::core::{Sm, Turn};
use super::outgoing::is_code;
use super::plan::{Planned, Supply};
use super::quick::{Ended, Issuing, Shared, is_quick};
use super::schedule::Chosen;
use super::sub_core::{Pick, SubCore};
use super::watch::{Watch, with_watch};
use super::work::Work;
use crate::ports::Response;
use crate::stall::Stall;

/// Bits of a key that name the sub-core; there are 16 at most.
const SUB_CORE: u32 = 4;

/// Why turns ended.
enum Halt {
    /// There are none before the cycle, or something has to be looked at first.
    Over,
    /// The sub-core's warp is to be planned with all that the SM has.
    Unplanned(usize),
    /// Something that others see.
    Act(usize, Chosen),
    /// The same: a warp mostly ends.
    Exit(usize, Chosen),
    /// Where a warp of the sub-core goes on has to be found out.
    Moved(usize, u16, u64),
    /// An answer of this cycle changes more than a warp: what, and as of which cycle.
    Answered(After, u64, u64),
}

/// When a sub-core has its next turn and which it is, in one word: the first in order has the next turn.
#[inline(always)]
pub(super) fn key(next: u64, sub_core: usize) -> u64 {
    next.min(NEVER) << SUB_CORE | sub_core as u64
}

/// A cycle that never comes, in a key.
const NEVER: u64 = u64::MAX >> SUB_CORE;

/// The two keys that come first.
#[inline(always)]
fn first_two(keys: &[u64]) -> (u64, u64) {
    match *keys {
        // As most SMs have them: few comparisons, no loop.
        [a, b, c, d] => {
            let (low, high) = (a.min(b), a.max(b));
            let (lower, higher) = (c.min(d), c.max(d));
            (low.min(lower), low.max(lower).min(high).min(higher))
        }
        _ => keys.iter().fold((u64::MAX, u64::MAX), |(one, two), &key| (one.min(key), two.min(one.max(key)))),
    }
}

/// The sub-core that is the furthest behind; of those in one cycle the first.
#[inline(always)]
pub(super) fn first(keys: &[u64]) -> Turn {
    let (one, two) = first_two(keys);
    // What is in no cycle stays so.
    let cycle = |key: u64| match key >> SUB_CORE {
        NEVER => u64::MAX,
        n => n,
    };
    let (number, next) = (one & ((1 << SUB_CORE) - 1), cycle(two));
    let is_before = number < two & ((1 << SUB_CORE) - 1);
    Turn {
        sub_core: number as usize,
        from: cycle(one),
        next,
        until: if is_before { next } else { next.saturating_sub(1) },
    }
}

/// Notes when each sub-core has its next turn.
#[inline(always)]
pub(super) fn note(keys: &mut [u64], subs: &[SubCore]) {
    for (n, (at, sub)) in keys.iter_mut().zip(subs).enumerate() {
        *at = key(sub.next, n);
    }
}

impl Sm {
    /// Sub-cores can have their turns here.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        self.policies.is_none() && !self.drains && self.spec.dispatch_units == 1
    }

    /// Whether turns take an answer when its cycle has come.
    #[inline(always)]
    pub(super) fn takes(&self, r: &Response) -> bool {
        is_data(r) && self.moving.is_empty()
    }

    /// Turns of the sub-cores before a cycle up to which nothing comes from outside but answers that accesses wait for; from
    /// the exchange point on as long as nothing concerns others.
    pub(super) fn turns(&mut self, work: &mut Work<'_>, before: u64) {
        let seen = self.out.len();
        while self.failure.is_none() {
            let halt = match self.watcher.take() {
                None => self.turns_for(work, before, &mut ()),
                Some(mut watcher) => {
                    let halt = with_watch!(watcher, watch => self.turns_for(work, before, watch));
                    self.watcher = Some(watcher);
                    halt
                }
            };
            match halt {
                Halt::Over => return,
                Halt::Unplanned(s) => {
                    let now = self.subs[s].next;
                    if let Some(n) = self.subs[s].unplanned.take() {
                        self.plan(work, n.into(), now);
                    }
                    self.subs[s].plan_next(now);
                }
                Halt::Act(s, chosen) => self.act(work, s, chosen),
                Halt::Exit(s, chosen) => self.exit(work, s, chosen),
                Halt::Moved(s, n, now) => {
                    self.go_on(work, n.into(), now + 1, Stall::BranchResolving, now);
                    self.subs[s].plan_next(now);
                }
                Halt::Answered(after, at, now) => {
                    self.follow(work, after, at, now);
                    self.take_done(work, now);
                }
            }
            self.note_turns();
            // Code and constants can be there soon; past the exchange point, what comes next is found anew.
            let is_past = self.first().from >= self.horizon;
            // A warp that optimizes may have begun to.
            let is_news = self.is_held || self.next_order() < before;
            if is_news || is_past || self.out[seen..].iter().any(is_code) {
                return;
            }
        }
    }

    #[inline(always)]
    fn turns_for<W: Watch>(&mut self, work: &mut Work<'_>, before: u64, watch: &mut W) -> Halt {
        #[cfg(target_arch = "x86_64")]
        if self.counts_bits {
            // SAFETY: the host has these instructions.
            return unsafe { self.turns_with_bit_counts(work, before, watch) };
        }
        self.turns_here(work, before, watch)
    }

    /// The same with the instructions that count bits, of which the sets of warps need many.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "popcnt,bmi1,bmi2,lzcnt")]
    fn turns_with_bit_counts<W: Watch>(&mut self, work: &mut Work<'_>, before: u64, watch: &mut W) -> Halt {
        self.turns_here(work, before, watch)
    }

    #[inline(always)]
    fn turns_here<W: Watch>(&mut self, work: &mut Work<'_>, before: u64, watch: &mut W) -> Halt {
        // In keys there is nothing behind the last cycle.
        let (end, lookahead) = (before.min(NEVER), self.lookahead.min(NEVER));
        // The next answer, or the end.
        let mut before = self.inbox.front().map_or(end, |r| end.min(r.at.0));
        let horizon = self.horizon;
        let (contexts, ctas) = (work.contexts.as_slice(), work.ctas.as_mut_slice());
        let warps = self.warps.as_mut_slice();
        let (fetch, constants) = (&mut self.fetch, &mut self.constants);
        let (stalls, counters, launches) = (&mut self.stalls, &mut self.counters, &mut self.launches[..]);
        let mut supply = Supply { fetch, constants, stalls, counters, launches, watch };
        let mut shared = Shared {
            load_store: &mut self.load_store,
            access: &mut self.access,
            layouts: &mut self.layouts,
            log: &mut self.log,
            out: &mut self.out,
            retry: &mut self.retry,
            failure: &mut self.failure,
            issued: &mut self.issued_by_class,
            clock_mhz: self.clock_mhz,
        };
        // Others may have changed who is chosen.
        self.subs.iter_mut().for_each(|sub| sub.stopped = None);
        // Mostly there is one launch: whose code it is need not be read from the warp.
        let only = contexts.first().filter(|_| contexts.len() == 1);
        let (mut issued, mut seen) = (0, 0);
        let halt = 'turns: loop {
            let (one, two) = first_two(&self.keys);
            let (s, from) = ((one & ((1 << SUB_CORE) - 1)) as usize, one >> SUB_CORE);
            if from >= before {
                if before >= end || before >= horizon && shared.concerns_others(&self.outgoing, &self.ends) {
                    break Halt::Over;
                }
                let mut answers = Answers { inbox: &mut self.inbox, done: &mut self.done };
                let answered =
                    answers.take(contexts, warps, &mut self.subs, &mut shared, &mut supply, before);
                note(&mut self.keys, &self.subs);
                match answered {
                    Answered::All => {}
                    Answered::Asked => break Halt::Over,
                    Answered::Rest(after, at) => break Halt::Answered(after, at, before),
                }
                before = match self.inbox.front() {
                    Some(r) if !is_data(r) => break Halt::Over,
                    front => front.map_or(end, |r| end.min(r.at.0)),
                };
                continue;
            }
            // The last cycle in which the sub-core comes before all others.
            let until = (two - 1 - s as u64) >> SUB_CORE;
            // What sub-cores do to each other takes a while: until then this one can run by itself.
            let mut alone = ((two >> SUB_CORE) + lookahead).min(before);
            if from < horizon {
                alone = alone.min(horizon);
            } else if shared.concerns_others(&self.outgoing, &self.ends) {
                break Halt::Over;
            }
            let (sub, number) = (&mut self.subs[s], s as u32);
            if sub.unplanned.is_some() {
                break Halt::Unplanned(s);
            }
            let mut stopped = sub.stopped.take();
            'turn: while sub.next < alone {
                let mut now = sub.next;
                let picked = match stopped.take() {
                    Some((bit, eligible)) => Some(Pick { bit, slot: sub.slot(bit), eligible, asks: true }),
                    None => sub.pick(warps, now),
                };
                // While no other can issue, the warp need not be among those that ask.
                let Some(Pick { bit, slot: n, mut eligible, mut asks }) = picked else {
                    sub.plan_next(now);
                    continue;
                };
                let warp = &mut warps[usize::from(n)];
                let context = match only {
                    Some(context) => context,
                    None => &contexts[usize::from(warp.context)],
                };
                let code = &context.code;
                loop {
                    let timing = code.timing_of(warp.pc);
                    let mut to = warp.pc + 1;
                    let mut at = None;
                    let mut is_done = false;
                    let is_turn = now <= until;
                    if warp.ahead == 0 {
                        let resident = &mut ctas[usize::from(warp.cta)].resident;
                        let layouts = Some(&*shared.layouts);
                        if let Some(next) = supply.execute(resident, warp, (code, timing), layouts) {
                            to = next;
                        }
                    }
                    if warp.ahead == 0 || timing.is_known {
                        if is_quick(timing) && is_turn && (now < horizon || !Sm::leaves(timing.class)) {
                            let i = Issuing { context, timing, n, now };
                            let cta = &mut ctas[usize::from(warp.cta)];
                            match shared.issue(&i, cta, &mut supply, sub, warp) {
                                Ended::Timed => at = Some(warp.since),
                                Ended::Planned => {}
                                ended => {
                                    issued += 1;
                                    seen += u64::from(eligible.count_ones());
                                    if ended == Ended::Moved {
                                        break 'turns Halt::Moved(s, n, now);
                                    }
                                    sub.plan_next(now);
                                    self.keys[s] = key(sub.next, s);
                                    break 'turns Halt::Over;
                                }
                            }
                            is_done = true;
                        } else {
                            if !asks {
                                sub.ask(warp);
                            }
                            if is_turn {
                                let chosen = Chosen { slot: n, eligible };
                                let is_exit = timing.kind == Kind::Exit;
                                break 'turns if is_exit {
                                    Halt::Exit(s, chosen)
                                } else {
                                    Halt::Act(s, chosen)
                                };
                            }
                            // Others come first.
                            sub.stopped = Some((bit, eligible));
                            break 'turn;
                        }
                    }
                    // It has executed, and goes through the load-store unit in its turn.
                    let is_loaded = !is_done && timing.loads_shared;
                    if is_loaded && !is_turn {
                        if !asks {
                            sub.ask(warp);
                        }
                        sub.stopped = Some((bit, eligible));
                        break 'turn;
                    }
                    issued += 1;
                    seen += u64::from(eligible.count_ones());
                    if !is_done {
                        let behind = code.timing_of(to);
                        if is_loaded {
                            shared.issue_loaded(&Issuing { context, timing, n, now }, &mut supply, sub, warp);
                        } else {
                            shared.issued[timing.class as usize] += 1;
                            let start = supply.issue_executed((sub, number), n, warp, timing, asks, now);
                            let (issue, latency) = ((now, start), &self.spec.latency);
                            supply.leave_executed(number, n, warp, (code, timing), to, issue, latency);
                        }
                        match supply.plan_as(number, n, warp, (code, behind), now) {
                            Planned::At(since) => at = Some(since),
                            Planned::Waiting => {}
                            Planned::NoCode | Planned::NoConstant => {
                                (sub.unplanned, sub.next) = (Some(n), now);
                                break 'turn;
                            }
                        }
                    }
                    if let Some(since) = at {
                        if let Some(at) = sub.alone(warp, since, alone) {
                            (now, sub.next, eligible, asks) = (at, at, 1 << bit.0, false);
                            continue;
                        }
                        sub.put(bit, since, now);
                    }
                    match is_done || is_loaded {
                        true => sub.plan_next(now),
                        false => sub.plan_after(timing.class, eligible, now),
                    }
                    break;
                }
            }
            self.keys[s] = key(sub.next, s);
        };
        supply.counters.eligible_cycles += issued;
        supply.counters.eligible_warps += seen;
        supply.counters.issue_cycles += issued;
        halt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_furthest_behind_comes_first() {
        let turn = |nexts: &[u64]| {
            let keys: Vec<u64> = nexts.iter().enumerate().map(|(n, &next)| key(next, n)).collect();
            let t = first(&keys);
            (t.sub_core, t.from, t.next, t.until)
        };
        assert_eq!(turn(&[5, 9, 3]), (2, 3, 5, 4));
        assert_eq!(turn(&[5, 5, 7]), (0, 5, 5, 5));
        assert_eq!(turn(&[9, 3, 9]), (1, 3, 9, 8));
        assert_eq!(turn(&[u64::MAX, 4, u64::MAX]), (1, 4, u64::MAX, u64::MAX - 1));
        assert_eq!(turn(&[4]), (0, 4, u64::MAX, u64::MAX));
        assert_eq!(turn(&[7, 5, 9, 5]), (1, 5, 5, 5));
        assert_eq!(turn(&[7, 6, 8, 5]), (3, 5, 6, 5));
        assert_eq!(turn(&[3, 4, 9, 8]), (0, 3, 4, 4));
        assert_eq!(turn(&[9, 8, 4, 3]), (3, 3, 4, 3));
        assert_eq!(turn(&[u64::MAX]).1, u64::MAX);
    }
}
