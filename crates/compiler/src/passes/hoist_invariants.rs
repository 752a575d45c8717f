//! Moves what a loop computes anew with the same operands each time in front of the loop.
//!
//! Not what costs nothing where it is: constants, parameters, modifiers of operands, products that their sum takes in. Loads move only
//! from memory that nobody writes. Runs after contraction, which looks at blocks as the program has them.

use super::Context;
use super::predicate_branches::count_uses;
use crate::analysis::{DomTree, Loop, Loops};
use crate::prepare;
use ir::{Block, Function, InstId, Op, SReg, Space, Type, Value, ValueDef};

/// Values that one loop may gain in registers: more would make it spill.
const MAX_HOISTED: usize = 12;

pub fn run(f: &mut Function, context: &mut Context) {
    if Loops::new(f, &DomTree::new(f)).loops.is_empty() {
        return;
    }
    prepare::make_preheaders(f);
    let dom = DomTree::new(f);
    let loops = Loops::new(f, &dom);
    let uses = count_uses(f);
    let user_is_sum = sum_operands(f);
    let mut home: Vec<Option<Block>> = vec![None; f.insts.len()];
    for &b in &f.layout {
        f.block(b).insts.iter().for_each(|i| home[i.index()] = Some(b));
    }
    let mut inside = vec![false; f.blocks.len()];
    // Inner loops first: what leaves them may leave the loop around them too.
    for l in loops.loops.iter().rev() {
        let Some(before) = l.preheader else { continue };
        l.blocks.iter().for_each(|b| inside[b.index()] = true);
        let moved = choose(f, l, &inside, &mut home, before, &uses, &user_is_sum);
        for &i in &moved {
            if is_worth(f, i, &uses, &user_is_sum) {
                context.remark(f, f.inst(i).loc, || format!("moved {:?} in front of the loop", f.inst(i).op));
            }
        }
        f.block_mut(before).insts.extend(moved);
        l.blocks.iter().for_each(|b| inside[b.index()] = false);
    }
}

/// Takes what is invariant out of the blocks of a loop, operands first.
fn choose(
    f: &mut Function,
    l: &Loop,
    inside: &[bool],
    home: &mut [Option<Block>],
    before: Block,
    uses: &[u32],
    sums: &[bool],
) -> Vec<InstId> {
    let mut moved = Vec::new();
    let mut budget = MAX_HOISTED;
    for &b in &l.blocks {
        let mut insts = std::mem::take(&mut f.block_mut(b).insts);
        insts.retain(|&i| {
            let fits = can_move(f, i) && f.inst(i).args.iter().all(|&v| is_outside(f, v, inside, home));
            // What costs nothing goes along: an operation behind it may be worth it.
            let worth = fits && is_worth(f, i, uses, sums);
            if !fits || (worth && budget == 0) || (!worth && !is_free(&f.inst(i).op)) {
                return true;
            }
            budget -= usize::from(worth);
            home[i.index()] = Some(before);
            moved.push(i);
            false
        });
        f.block_mut(b).insts = insts;
    }
    moved
}

fn is_outside(f: &Function, v: Value, inside: &[bool], home: &[Option<Block>]) -> bool {
    match f.def(v) {
        ValueDef::Inst(i, _) => home[i.index()].is_some_and(|b| !inside[b.index()]),
        ValueDef::BlockParam(b, _) => !inside[b.index()],
        _ => true,
    }
}

fn can_move(f: &Function, i: InstId) -> bool {
    let inst = f.inst(i);
    inst.guard.is_none() && inst.op.is_pure() && inst.results.len() == 1
}

/// An operand of whatever reads it.
fn is_free(op: &Op) -> bool {
    match op {
        Op::Const(_) | Op::TruncLo | Op::TruncHi | Op::Concat | Op::ZeroExt => true,
        Op::Load(a) => a.space == Space::Param,
        Op::SReg(r) => matches!(r, SReg::Ntid(_) | SReg::Nctaid(_) | SReg::EnvReg(_)),
        Op::ToGeneric(_) | Op::FromGeneric(_) => true,
        _ => false,
    }
}

fn is_worth(f: &Function, i: InstId, uses: &[u32], sums: &[bool]) -> bool {
    let inst = f.inst(i);
    let result = inst.results[0];
    if is_free(&inst.op) || f.ty(result) == Type::P {
        return false;
    }
    match inst.op {
        Op::FNeg { .. } | Op::FAbs { .. } | Op::Not | Op::Neg | Op::Undef | Op::Addr(..) | Op::SReg(_) => {
            false
        }
        // The sum takes it in.
        Op::Mul | Op::MulWide { .. } | Op::Shl | Op::SignExt => !sums[result.index()],
        // An offset of a memory operand.
        Op::Add => inst.args.iter().all(|&v| f.const_of(v).is_none()) || uses[result.index()] > 1,
        _ => true,
    }
}

/// Values that some addition reads.
fn sum_operands(f: &Function) -> Vec<bool> {
    let mut found = vec![false; f.values.len()];
    for &b in &f.layout {
        for &i in &f.block(b).insts {
            if matches!(f.inst(i).op, Op::Add | Op::Sub | Op::MulWide { .. } | Op::Mul) {
                f.inst(i).args.iter().for_each(|v| found[v.index()] = true);
            }
        }
    }
    found
}
