//! Short ways that lanes take apart become straight code under guards; and guarded code that no lane runs gets a way around it.
//!
//! Both are decided by what the profile says of the branch, or of the guard, and by what the instructions take to issue.

use crate::blocks::{Block, Blocks, is_barrier};
use crate::liveness::{self, PREDICATES};
use crate::order;
use crate::profile::{Branch, Profile};
use crate::version::Limits;
use isa::field::{AtomOrder, Field, Order};
use isa::{Effects, Inst, Op, Pred, PredUse};

/// Instructions of one way of a branch that becomes guarded code.
const MOST: usize = 24;
/// Instructions looked at for those with one guard, and cycles that they must take together for a way around them.
const AHEAD: u32 = 32;
const LEAST_CYCLES: u64 = 8;
/// Cycles of a vote and a branch that is not taken.
const CHECK: u64 = 2;
/// Cycles in which lanes part and meet again, besides the jumps.
const PARTING: u64 = 4;

/// A branch whose two ways meet again soon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hammock {
    /// Places of those who do not jump, and of those who do.
    pub stay: Vec<u32>,
    pub jump: Vec<u32>,
    /// Where both go on.
    pub meet: u32,
    /// One of them writes the predicate that the branch goes by.
    pub overwrites: bool,
}

/// Whether an instruction does the same for its lanes when a guard keeps others out, as when these are elsewhere.
fn can_be_guarded(inst: &Inst) -> bool {
    let row = inst.op.row();
    let stops = Effects::LANES
        .or(Effects::BARRIER)
        .or(Effects::FENCE)
        .or(Effects::ENDS)
        .or(Effects::JUMPS)
        .or(Effects::VOLATILE);
    let other = [Op::Bssy, Op::Bsync, Op::BmovB, Op::BmovR, Op::Yield, Op::Bpt, Op::Syscall, Op::Nanosleep];
    let odd = [Op::R2ur, Op::Cctl, Op::Pmtrig];
    let is_strong = (row.fields.contains(&Field::Width) && inst.get::<Order>() != Order::Weak)
        || (row.fields.contains(&Field::AtomOrder) && inst.get::<AtomOrder>() != AtomOrder::Relaxed);
    !row.effects.has(stops)
        && (inst.guard == PredUse::TRUE || inst.guard.pred != Pred::PT)
        && !other.contains(&inst.op)
        && !odd.contains(&inst.op)
        && !is_strong
        && inst.writes_uniform().is_none()
}

/// One way from a place until it comes to another, or jumps on: its places, and where it goes on.
fn way(blocks: &Blocks, block: &Block, from: u32, until: u32) -> Option<(Vec<u32>, u32)> {
    let mut places = Vec::new();
    let mut place = from;
    while place != until {
        let inst = blocks.inst(place).filter(|_| block.holds(place))?;
        if inst.op == Op::Bra && inst.guard == PredUse::TRUE {
            let to = inst.target().filter(|&to| to > place)?;
            return Some((places, to));
        }
        if places.len() == MOST || is_barrier(inst) || blocks.leaves(inst) || !can_be_guarded(inst) {
            return None;
        }
        places.push(place);
        place += 1;
    }
    Some((places, until))
}

/// The two ways of a branch, where they can become guarded code.
pub fn hammock(blocks: &Blocks, block: &Block, place: u32) -> Option<Hammock> {
    let inst = blocks.inst(place).filter(|i| i.op == Op::Bra && i.guard.pred != Pred::PT)?;
    let to = inst.target().filter(|&to| to > place)?;
    let (stay, meet) = way(blocks, block, place + 1, to)?;
    let (jump, end) = if meet == to { (Vec::new(), meet) } else { way(blocks, block, to, meet)? };
    // Lanes of two ways would change one place in another order.
    let changes = |list: &[u32]| {
        list.iter().any(|&p| blocks.inst(p).is_some_and(|i| i.op.row().fields.contains(&Field::AtomType)))
    };
    if end != meet || (changes(&stay) && changes(&jump)) {
        return None;
    }
    let condition = PREDICATES + usize::from(inst.guard.pred.0);
    let mut overwrites = false;
    for i in stay.iter().chain(&jump).filter_map(|&p| blocks.inst(p)) {
        liveness::for_each_write(i, |u| overwrites |= u == condition);
    }
    Some(Hammock { stay, jump, meet, overwrites })
}

/// Cycles in which instructions issue.
pub fn issue(blocks: &Blocks, places: &[u32]) -> u64 {
    let insts = places.iter().filter_map(|&p| blocks.inst(p));
    insts.map(|i| u64::from(order::pipe(i).1)).sum()
}

/// Cycles that all executions take with a branch and its jumps, and as guarded code.
pub fn costs(blocks: &Blocks, h: &Hammock, b: &Branch, limits: &Limits) -> (u64, u64) {
    let (stay, jump) = (issue(blocks, &h.stay), issue(blocks, &h.jump));
    let taken = u64::from(limits.branch);
    let over = if h.jump.is_empty() { 0 } else { taken };
    let parted = stay + jump + taken + over + PARTING;
    let before = b.diverged * parted + b.taken * (jump + taken) + b.not_taken * (stay + over);
    (before, b.executions * (stay + jump))
}

/// The ways of a branch, where the profile says that guarded code is the shorter one.
pub fn pays(
    blocks: &Blocks,
    block: &Block,
    profile: &Profile,
    limits: &Limits,
    place: u32,
) -> Option<Hammock> {
    let b = profile.branches.get(&place).filter(|b| b.executions > 0)?;
    let h = hammock(blocks, block, place)?;
    let (before, after) = costs(blocks, &h, b, limits);
    (after < before).then_some(h)
}

/// Instructions in a row, others between them, that run under one guard: their places, if there are enough of them to go around.
/// Where the guard holds in no lane, none of them changes it.
pub fn guarded(blocks: &Blocks, block: &Block, place: u32) -> Option<Vec<u32>> {
    let fits = |i: &Inst| can_be_guarded(i) && !is_barrier(i) && !blocks.leaves(i);
    let guard = blocks.inst(place).filter(|i| i.guard.pred != Pred::PT && fits(i))?.guard;
    let condition = PREDICATES + usize::from(guard.pred.0);
    let mut places = Vec::new();
    for at in place..place + AHEAD {
        let Some(inst) = blocks.inst(at).filter(|i| block.holds(at) && fits(i)) else { break };
        if inst.guard == guard {
            places.push(at);
            continue;
        }
        let mut overwrites = false;
        liveness::for_each_write(inst, |u| overwrites |= u == condition);
        if overwrites {
            break;
        }
    }
    (places.len() > 1 && issue(blocks, &places) >= LEAST_CYCLES).then_some(places)
}

/// Instructions that nearly always no lane runs, where a way around them pays.
pub fn off(
    blocks: &Blocks,
    block: &Block,
    profile: &Profile,
    limits: &Limits,
    place: u32,
) -> Option<Vec<u32>> {
    let b = profile.branches.get(&place).filter(|b| b.executions > 0)?;
    let places = guarded(blocks, block, place)?;
    let on = b.executions - b.not_taken;
    let saved = b.not_taken * issue(blocks, &places);
    let cost = b.executions * CHECK + on * 2 * u64::from(limits.branch);
    (on * crate::trace::BIAS <= b.executions && saved > cost).then_some(places)
}
