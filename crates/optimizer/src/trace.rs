//! Traces: the ways that warps take most often through a block, as straight lines.
//!
//! A trace begins at a head, follows the likely way of every branch and has an exit where the other way would be taken. Loops with many
//! turns become traces of their own, a few turns long, that jump back to their head; loops with few turns are part of the trace that
//! comes upon them. Everything that is not on a trace is copied as it is; it comes back to a trace where it reaches a head at which
//! warps are whole.

use crate::blocks::{Block, Blocks, is_barrier};
use crate::convert;
use crate::profile::{Edge, Profile};
use crate::stable::Stable;
use crate::version::{Done, Kind, Limits};
use crate::whole;
use isa::field::Field;
use isa::{Op, PredUse};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// A branch is followed where it goes the other way at most once in so many executions.
pub const BIAS: u64 = 8;
/// Times that a branch must have come behind another one for that to tell which way it goes.
const FOLLOWED: u64 = 16;
/// Instructions of a loop that is unrolled with all of its turns, together, and turns of such a loop.
const WHOLE_LOOP: usize = 256;
const FEW_TURNS: u64 = 8;
/// Instructions that a longer loop is unrolled to.
const LONG_LOOP: usize = 256;
/// Entries of a block from which on every branch of it is taken to have been seen often.
const MANY: u64 = 256;
/// Instructions of a trace.
const LONGEST: usize = 640;
/// Loops inside each other whose turns are unrolled.
const DEEPEST: u32 = 3;
/// Traces of a block.
const TRACES: usize = 24;

/// A part of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    Run(u32),
    Exit(Exit),
    /// Lanes part here: what follows is for those who do not jump at the branch. `copies`: its predicate is written before they meet.
    Part {
        place: u32,
        meet: u32,
        copies: bool,
    },
    /// What follows is for those who jump.
    Turn,
    /// What follows is for all again.
    Meet,
}

/// Where a trace can be left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exit {
    /// The branch, or the exit of single threads.
    pub place: u32,
    /// Taken when this holds, in any lane where `vote`.
    pub when: PredUse,
    pub vote: bool,
    /// The place of the original where things go on.
    pub to: u32,
    /// What the branch is thought to do.
    pub taken: bool,
    /// Goes on in a copy of the original even where a trace begins.
    pub beside: bool,
    /// It is taken so seldom that this counts as an assumption; else it is a way like others, loops end after all.
    pub is_assumed: bool,
    /// It is no branch of the original, but the guard of instructions that no lane runs.
    pub is_off: bool,
}

impl Exit {
    /// To the original at the place where an assumption is checked, for the whole warp where it fails in any lane.
    pub fn of_check(place: u32) -> Exit {
        Exit {
            place,
            when: PredUse::TRUE,
            vote: true,
            to: place,
            taken: false,
            beside: true,
            is_assumed: true,
            is_off: false,
        }
    }
}

/// How a trace ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// At an instruction that ends the block: a barrier or the end of the threads.
    Last(u32),
    /// With a jump.
    Jump(u32),
    /// With a jump back where the exit is not taken.
    Loop { head: u32, exit: Exit },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    pub head: u32,
    pub steps: Vec<Step>,
    pub end: End,
    /// Whether warps are whole here however they came.
    pub is_open: bool,
    /// Executions in a thousand entries of the block, and turns of a loop in one execution.
    pub weight: u64,
    pub turns: u64,
    pub done: Vec<Done>,
}

struct Tracer<'a> {
    blocks: &'a Blocks,
    block: &'a Block,
    profile: &'a Profile,
    whole: Vec<bool>,
    /// Branches that jump back, by where they jump to.
    latches: BTreeMap<u32, Vec<u32>>,
    stable: &'a Stable,
    limits: &'a Limits,
    /// Branches may become guarded code.
    converts: bool,
    /// Branches whose assumption failed too often.
    spoilt: &'a BTreeSet<Kind>,
    most_turns: usize,
    /// Loops that are being looked into.
    depth: Cell<u32>,
}

/// The traces of a block, that of its entry first. `spoilt` are ways of branches that are not to be assumed, and
/// loops are unrolled to `most_turns` at most; `converts` says that branches may become guarded code.
pub fn traces(
    blocks: &Blocks,
    block: &Block,
    profile: &Profile,
    stable: &Stable,
    spoilt: &BTreeSet<Kind>,
    limits: &Limits,
    converts: bool,
    most_turns: usize,
) -> Vec<Trace> {
    let mut latches: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &place in &block.places {
        if let Some(i) = blocks.inst(place)
            && i.op == Op::Bra
            && let Some(to) = i.target()
            && to <= place
            && block.holds(to)
        {
            latches.entry(to).or_default().push(place);
        }
    }
    let whole = whole::places(blocks, block);
    let tracer = Tracer {
        blocks,
        block,
        profile,
        whole,
        latches,
        stable,
        limits,
        converts,
        spoilt,
        most_turns,
        depth: Cell::new(0),
    };
    let mut found: Vec<Trace> = Vec::new();
    let mut work = vec![(block.entry, true)];
    while let Some((head, is_hot)) = work.pop() {
        let is_open = tracer.is_whole(head);
        if found.iter().any(|t| t.head == head) || !(is_hot || is_open) || found.len() == TRACES {
            continue;
        }
        let (trace, more) = tracer.follow(head, is_open);
        work.extend(more.into_iter().rev());
        found.push(trace);
    }
    found
}

impl Tracer<'_> {
    fn is_whole(&self, place: u32) -> bool {
        self.block.places.binary_search(&place).is_ok_and(|n| self.whole[n])
    }

    /// Executions of a branch, and those in which lanes jumped.
    fn jumps(&self, place: u32) -> (u64, u64) {
        let b = self.profile.branches.get(&place).copied().unwrap_or_default();
        (b.executions, b.taken + b.diverged)
    }

    /// Turns of a loop with one latch, and whether it is always as many.
    fn turns(&self, head: u32) -> Option<(u64, bool)> {
        let [latch] = self.latches.get(&head)?[..] else { return None };
        let i = self.blocks.inst(latch)?;
        if i.guard == PredUse::TRUE {
            return None;
        }
        let (all, back) = self.jumps(latch);
        let left = all.checked_sub(back).filter(|&n| n > 0)?;
        Some((all / left, all % left == 0))
    }

    /// Follows the likely way from a head. Also gives further heads, and whether warps come there whole.
    fn follow(&self, head: u32, is_open: bool) -> (Trace, Vec<(u32, bool)>) {
        let once = self.walk(head, 1, false);
        let mut result = once;
        if let End::Loop { .. } = result.0.end {
            let size = result.0.steps.len().max(1);
            let (turns, exact) = self.turns(head).unwrap_or((1 << 10, false));
            let all = exact && turns <= FEW_TURNS && turns as usize * size <= WHOLE_LOOP;
            let copies = if all {
                turns as usize
            } else {
                (LONG_LOOP / size).clamp(1, self.most_turns).min((turns / 2).max(1) as usize)
            };
            if copies > 1 {
                result = self.walk(head, copies, all);
            }
            result.0.turns = copies as u64;
            let executed = self.executions(head);
            result.0.weight = executed * 1000 / self.profile.entries.max(1) / copies as u64;
        } else {
            result.0.weight = self.executions(head) * 1000 / self.profile.entries.max(1);
        }
        result.0.is_open = is_open;
        result
    }

    /// How often a place was executed: as often as the first branch behind it.
    fn executions(&self, mut place: u32) -> u64 {
        if place == self.block.entry && !self.latches.contains_key(&place) {
            return self.profile.entries;
        }
        for _ in 0..LONGEST {
            let Some(i) = self.blocks.inst(place) else { break };
            match i.op {
                Op::Bra | Op::Exit if i.guard != PredUse::TRUE => return self.jumps(place).0,
                Op::Bra => place = i.target().unwrap_or(place + 1),
                _ if self.blocks.leaves(i) || i.op == Op::Exit => break,
                _ => place += 1,
            }
        }
        self.profile.entries
    }

    /// Follows the likely way through so many turns of a loop at the head; `out` says that it is left then.
    fn walk(&self, head: u32, copies: usize, out: bool) -> (Trace, Vec<(u32, bool)>) {
        let mut steps = Vec::new();
        let mut more = Vec::new();
        let mut place = head;
        let mut turn = 1;
        // Turns that are left of loops inside.
        let mut left: BTreeMap<u32, u64> = BTreeMap::new();
        let mut started = false;
        let mut done = Vec::new();
        let mut last: Option<Edge> = None;
        // Instructions that no lane runs.
        let mut skipped: BTreeSet<u32> = BTreeSet::new();
        let end = loop {
            let Some(inst) = self.blocks.inst(place).filter(|_| self.block.holds(place)) else {
                break End::Jump(place);
            };
            if started && place == head {
                if turn == copies {
                    break End::Jump(head);
                }
                turn += 1;
            } else if place != head && self.latches.contains_key(&place) && !left.contains_key(&place) {
                // A loop begins: all of its turns, or a trace of its own.
                match self.turns(place) {
                    Some((turns, true))
                        if turns <= FEW_TURNS
                            && self.size(place).saturating_mul(turns as usize) <= WHOLE_LOOP =>
                    {
                        left.insert(place, turns);
                    }
                    _ => {
                        more.push((place, true));
                        break End::Jump(place);
                    }
                }
            }
            started = true;
            if steps.len() >= LONGEST {
                more.push((place, true));
                break End::Jump(place);
            }
            if is_barrier(inst) || (inst.op == Op::Exit && inst.guard == PredUse::TRUE) {
                break End::Last(place);
            }
            let stays = [Op::BmovB, Op::BmovR, Op::Yield, Op::Bpt, Op::Syscall, Op::Call, Op::Nanosleep];
            if self.blocks.leaves(inst) || stays.contains(&inst.op) {
                break End::Jump(place);
            }
            if !matches!(inst.op, Op::Bra | Op::Exit) {
                if skipped.remove(&place) {
                    place += 1;
                    continue;
                }
                if let Some(row) = self.off(place) {
                    done.push(Done::Skipped { place, instructions: row.len() as u32 });
                    skipped.extend(row);
                    let is_assumed = self.is_rare(place, false);
                    let exit = Exit { when: inst.guard, is_off: true, is_assumed, ..Exit::of_check(place) };
                    steps.push(Step::Exit(exit));
                    last = Some(Edge { branch: place, taken: false });
                    skipped.remove(&place);
                    place += 1;
                    continue;
                }
                if self.profile.branches.contains_key(&place) {
                    last = self.likely(place, last).map(|taken| Edge { branch: place, taken });
                }
                steps.push(Step::Run(place));
                place += 1;
                continue;
            }
            let to = inst.target().unwrap_or(place);
            if inst.guard == PredUse::TRUE {
                place = to;
                continue;
            }
            let is_latch = inst.op == Op::Bra && to <= place && self.latches.contains_key(&to);
            let way = match () {
                () if is_latch && to == head => Some(!out || turn < copies),
                () if is_latch && left.contains_key(&to) => {
                    let n = left.get_mut(&to).map_or(0, |n| {
                        *n = n.saturating_sub(1);
                        *n
                    });
                    if n == 0 {
                        left.remove(&to);
                    }
                    Some(n > 0)
                }
                () => self.likely(place, last),
            };
            let uniform = inst.op == Op::Bra && inst.flag(Field::Uniform);
            let Some(taken) = way.filter(|&taken| !self.spoilt.contains(&Kind::Branch { place, taken }))
            else {
                if let Some(h) = self.convert(place) {
                    done.push(Done::Converted { place });
                    let part = Step::Part { place, meet: h.meet, copies: h.overwrites };
                    let run = |list: Vec<u32>| list.into_iter().map(Step::Run);
                    steps.extend([part].into_iter().chain(run(h.stay)).chain([Step::Turn]));
                    steps.extend(run(h.jump).chain([Step::Meet]));
                    (place, last) = (h.meet, None);
                    continue;
                }
                // Both ways are taken; warps come there whole if they part nowhere.
                more.extend([place + 1, to].map(|p| (p, uniform)));
                break End::Jump(place);
            };
            if inst.op == Op::Exit && taken {
                break End::Jump(place);
            }
            // Lanes that may part do so in the copy of the branch.
            let exit_to = match (uniform, taken) {
                (false, _) => place,
                (true, true) => place + 1,
                (true, false) => to,
            };
            let when = if taken { inst.guard.negated() } else { inst.guard };
            let is_assumed = !is_latch && self.is_rare(place, taken);
            let exit = Exit {
                place,
                when,
                vote: !uniform,
                to: exit_to,
                taken,
                beside: false,
                is_assumed,
                is_off: false,
            };
            last = Some(Edge { branch: place, taken });
            if is_latch && to == head && taken && turn == copies {
                more.push((place + 1, uniform));
                break End::Loop { head, exit };
            }
            if is_latch && !taken && uniform {
                more.push((to, true));
            }
            steps.push(Step::Exit(exit));
            place = if taken { to } else { place + 1 };
        };
        (Trace { head, steps, end, is_open: false, weight: 0, turns: 1, done }, more)
    }

    /// Instructions of the likely way through a loop, once.
    fn size(&self, head: u32) -> usize {
        let depth = self.depth.get();
        if depth == DEEPEST {
            return usize::MAX;
        }
        self.depth.set(depth + 1);
        let (trace, _) = self.walk(head, 1, false);
        self.depth.set(depth);
        if matches!(trace.end, End::Loop { .. }) { trace.steps.len() } else { usize::MAX }
    }

    /// Whether a branch nearly never goes the other way.
    fn is_rare(&self, place: u32, taken: bool) -> bool {
        let (all, other) = self.profile.against(place, taken);
        other * self.limits.failures_one_in <= all
    }

    /// Instructions from a place on that nearly never run.
    fn off(&self, place: u32) -> Option<Vec<u32>> {
        let may = !self.spoilt.contains(&Kind::Off { place });
        may.then(|| convert::off(self.blocks, self.block, self.profile, self.limits, place))?
    }

    /// Both ways of a branch, where they are to become guarded code.
    fn convert(&self, place: u32) -> Option<convert::Hammock> {
        self.converts.then(|| convert::pays(self.blocks, self.block, self.profile, self.limits, place))?
    }

    /// The way that a branch nearly always goes, for those who come from another.
    fn likely(&self, place: u32, last: Option<Edge>) -> Option<bool> {
        let b = self.profile.branches.get(&place).filter(|b| b.executions > 0)?;
        let inst = self.blocks.inst(place)?;
        // Seen a few times only, a way on from a loop's counter tells nothing; a way back is likely.
        let is_back = inst.target().is_some_and(|to| to <= place);
        let few = b.executions <= self.profile.entries && self.profile.entries < MANY;
        if few && !is_back && !self.stable.tells(place, inst) {
            return None;
        }
        let after = |taken: bool| {
            let pair = last.map(|l| (l, Edge { branch: place, taken }));
            pair.and_then(|p| self.profile.paths.get(&p)).copied().unwrap_or(0)
        };
        let (jumped, stayed) = (after(true), after(false));
        // What came before tells more than all executions together, where lanes seldom part.
        if jumped + stayed >= FOLLOWED && b.diverged * BIAS <= b.executions {
            if stayed * BIAS <= jumped + stayed {
                return Some(true);
            }
            if jumped * BIAS <= jumped + stayed {
                return Some(false);
            }
        }
        if (b.executions - b.taken) * BIAS <= b.executions {
            return Some(true);
        }
        ((b.executions - b.not_taken) * BIAS <= b.executions).then_some(false)
    }
}
