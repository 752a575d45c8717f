//! Unrolls counted loops, as far as NVIDIA's assembler does: a product carried from one iteration to the next fuses only
//! where both end up in one block, so how loops are unrolled decides bits.
//!
//! - A known number of iterations: all of them in a row when small, else the loop runs groups of them.
//! - An unknown number, a body of one block that is not too long: groups of four, then two, then one.
//! - Loops with another exit, marked `nounroll`, or without a counter stay.

mod copy;
mod groups;
mod guard;
mod shape;
mod trips;

use super::{Context, aggregate_atomics, remove_dead_code, simplify_cfg};
use crate::analysis::{Divergence, DomTree, LoopId, Loops, PostDominators};
use groups::{unroll_by_four, unroll_fully, unroll_in_groups};
use guard::Predecessors;
use ir::{ApproxFn, Block, Function, LocId, Op, Scalar, Space, Value};
use shape::Shape;
use std::collections::{BTreeSet, HashSet};

/// The largest body for an unknown number of iterations, its counter and branch included.
const MAX_RUNTIME_BODY: usize = 21;
/// The same where the body loads from the device's memory, and copies overlap the waiting: bodies of up to 68 were seen unrolled.
const MAX_RUNTIME_BODY_WITH_LOADS: usize = 72;
/// A load from shared memory takes so many others with it. A measured boundary: bodies with 1, 2, 3, 4, 12 loads are unrolled
/// up to 26, 30, 34, 38, 70 instructions.
const ALLOWED_BY_SHARED_LOAD: usize = 4;
/// Places that a store takes, and a function of the special-function unit with the scaling of denormals around it; division
/// and reciprocal scale up and down. Measured as the difference that one makes to the longest body that is unrolled.
const SIZE_OF_STORE: usize = 2;
const SIZE_OF_SCALED: usize = 6;
const SIZE_OF_DIVISION: usize = 7;
/// Places of an atomic for which lanes add up first: a loop of two and 128 iterations was seen to get 22 of them.
const SIZE_OF_SCAN: usize = 15;
/// Instructions of a body that disappear when the number of iterations is known: step, test, branch.
const LOOP_OVERHEAD: u64 = 3;
/// Full unrolling: iterations^2 * body^3 at most. A measured boundary: bodies of 3, 9, 21, 41 instructions unroll fully at
/// 256, 128, 32, 10 iterations and not at 1000, 256, 64, 16.
const MAX_FULL: u64 = 14_000_000;
/// Partial unrolling: instructions in a group of copies.
const MAX_GROUP: u64 = 340;
/// Counting iterations of a loop with known bounds stops here.
const MAX_COUNTED: u64 = 1 << 20;

pub fn run(f: &mut Function, context: &mut Context) {
    let original_insts = f.insts.len();
    let mut done: HashSet<Block> = HashSet::new();
    // All innermost loops in a round; a loop around those that went completely is innermost in the next.
    loop {
        let loops = Loops::new(f, &DomTree::new(f));
        let fit: Vec<LoopId> = (0..loops.loops.len())
            .map(LoopId)
            .filter(|&id| {
                let l = loops.get(id);
                !done.contains(&l.header)
                    && !f.block(l.header).no_unroll
                    && l.is_innermost
                    && shape::fits(f, &loops, id)
            })
            .collect();
        if fit.is_empty() {
            break;
        }
        done.extend(fit.iter().map(|&id| loops.get(id).header));
        let shapes = shape::reshape(f, &loops, &fit);
        let mut preds = Predecessors::new(f);
        let mut divergence = Known::default();
        for s in shapes {
            if let Some(done_as) = unroll(f, &s, original_insts, context, &preds, &mut divergence) {
                preds.update(f, s.before);
                context.remark(f, s.loc, || done_as);
            }
        }
        done.extend(context.unrolled.iter().copied());
        simplify_cfg::run(f, context);
    }
    // Copies went to the end; blocks that follow each other lie together again.
    f.layout = f.reverse_postorder();
    remove_dead_code::run(f, context);
}

/// Unrolls the loop if it should be, and says how.
fn unroll(
    f: &mut Function,
    s: &Shape,
    original_insts: usize,
    context: &mut Context,
    preds: &Predecessors,
    divergence: &mut Known,
) -> Option<String> {
    let counter = trips::find_counter(f, s)?;
    let size = body_size(f, s, original_insts);
    let known = match (f.const_of(counter.start), f.const_of(counter.limit)) {
        (Some(start), Some(limit)) => counter.known(start, limit, MAX_COUNTED),
        _ => None,
    };
    if let Some(count) = known {
        let body = (size as u64).saturating_sub(LOOP_OVERHEAD).max(1);
        let cost = count.saturating_mul(count).saturating_mul(body.saturating_mul(body).saturating_mul(body));
        if cost <= MAX_FULL {
            unroll_fully(f, s, count);
            return Some(format!("unrolled fully, {count} iterations"));
        }
        let group = group_size(count, MAX_GROUP / body)?;
        context.unrolled.push(unroll_in_groups(f, s, count, group));
        return Some(format!("unrolled by {group}"));
    }
    if s.blocks.len() > 1 || is_long(f, s, size) || lanes_must_stay_together(f, s, &counter, divergence) {
        return None;
    }
    context.unrolled.extend(unroll_by_four(f, s, &counter, preds)?);
    Some("unrolled by 4, 2 and 1".into())
}

/// A body of so many instructions is too long to be unrolled for an unknown number of iterations.
fn is_long(f: &Function, s: &Shape, size: usize) -> bool {
    let (mut shared, mut more) = (0, 0);
    for i in s.blocks.iter().flat_map(|&b| &f.block(b).insts) {
        match f.inst(*i).op {
            Op::Load(a) if matches!(a.space, Space::Param | Space::Const) => {}
            Op::Load(a) if a.space == Space::Shared => shared += 1,
            Op::Load(_) => return size > MAX_RUNTIME_BODY_WITH_LOADS,
            Op::Store(_) => more += SIZE_OF_STORE - 1,
            Op::Approx { f, ty: Scalar::F32, ftz: false } => more += size_of_approximation(f) - 1,
            _ => {}
        }
    }
    // Its address moves with the counter, and counts with it.
    let address = usize::from(shared > 0);
    size + more > MAX_RUNTIME_BODY + address + ALLOWED_BY_SHARED_LOAD * shared
}

fn size_of_approximation(f: ApproxFn) -> usize {
    match f {
        ApproxFn::Rsqrt | ApproxFn::Sqrt | ApproxFn::Lg2 | ApproxFn::Ex2 => SIZE_OF_SCALED,
        ApproxFn::Rcp | ApproxFn::Div | ApproxFn::DivFull => SIZE_OF_DIVISION,
        _ => 1,
    }
}

/// The largest group of copies, at most `most`, that leaves at most one iteration over.
fn group_size(count: u64, most: u64) -> Option<u64> {
    (2..=most.min(count)).rev().find(|k| count % k <= 1)
}

/// Instructions of the body as the source has them: operations that came from one line of it count once. In a body that
/// itself has copies, lines say nothing, and operations count.
fn body_size(f: &Function, s: &Shape, original_insts: usize) -> usize {
    let mut lines: BTreeSet<LocId> = BTreeSet::new();
    let mut others = 0;
    for &b in &s.blocks {
        for &i in f.block(b).insts.iter().filter(|i| !matches!(f.inst(**i).op, Op::Const(_))) {
            let loc = f.inst(i).loc;
            if aggregate_atomics::may_scan(f, i) {
                others += SIZE_OF_SCAN - 1;
            }
            if loc == LocId(0) || i.index() >= original_insts {
                others += 1;
            } else {
                lines.insert(loc);
            }
        }
        let loc = f.block(b).term_loc;
        if loc == LocId(0) {
            others += 1;
        } else {
            lines.insert(loc);
        }
    }
    lines.len() + others
}

/// Lanes meet inside the body, and may run it different numbers of times: copies would part them.
fn lanes_must_stay_together(f: &Function, s: &Shape, c: &trips::Counter, divergence: &mut Known) -> bool {
    let meets = s.blocks.iter().flat_map(|&b| &f.block(b).insts).any(|&i| {
        matches!(
            f.inst(i).op,
            Op::Shfl(_)
                | Op::Vote(_)
                | Op::MatchAny
                | Op::MatchAll
                | Op::Redux(_)
                | Op::Elect
                | Op::WarpSync
                | Op::ActiveMask
                | Op::Bar { .. }
                | Op::Call(_)
                | Op::CallIndirect
        )
    });
    if !meets {
        return false;
    }
    divergence.is_divergent(f, c.start) || divergence.is_divergent(f, c.limit)
}

/// Which values differ among lanes, found out when first asked. Unrolling leaves that as it is.
#[derive(Default)]
struct Known {
    divergence: Option<Divergence>,
    /// Values that there were.
    values: usize,
}

impl Known {
    fn is_divergent(&mut self, f: &Function, v: Value) -> bool {
        let known = self.divergence.take().filter(|_| v.index() < self.values);
        let divergence = known.unwrap_or_else(|| {
            self.values = f.values.len();
            Divergence::new(f, &DomTree::new(f), &PostDominators::new(f))
        });
        self.divergence.insert(divergence).is_divergent(v)
    }
}
