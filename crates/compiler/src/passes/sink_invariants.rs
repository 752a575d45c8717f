//! Moves what only a side way of a loop reads from in front of the loop to where it is read, when the loop is short of
//! registers: there it costs an instruction each time that way is taken, in front it costs a register all the time.
//!
//! The front end of CUDA hoists addresses of remainders and of rare cases out of loops freely, and NVIDIA's assembler computes
//! them again where they are used. Runs last, so that nothing hoists them again.

use super::Context;
use crate::analysis::{DomTree, Loop, LoopId, Loops};
use ir::{Block, Function, InstId, Op, Type, Value, ValueDef};

/// Registers that a loop may keep from outside before anything moves: with the few that its own work takes, an SM is still
/// full of warps at 32 a thread.
const ROOM: u32 = 24;

pub fn run(f: &mut Function, context: &mut Context) {
    let dom = DomTree::new(f);
    let loops = Loops::new(f, &dom);
    let is_short: Vec<bool> = shortage(f, &loops);
    if !is_short.contains(&true) {
        return;
    }
    // By value, the last block that dominates all that read it. Who reads a value stands behind it, so it is known where that
    // went when its turn comes, and a chain moves as a whole.
    let mut read_in: Vec<Option<Block>> = vec![None; f.values.len()];
    let read = |found: &mut [Option<Block>], v: Value, b: Block| {
        found[v.index()] = Some(meet(&dom, found[v.index()], b));
    };
    for b in f.reverse_postorder().into_iter().rev() {
        f.block(b).term.values().into_iter().for_each(|v| read(&mut read_in, v, b));
        for n in (0..f.block(b).insts.len()).rev() {
            let i = f.block(b).insts[n];
            let to = place(f, &dom, &loops, &is_short, b, i, &read_in);
            if let Some(to) = to {
                context.remark(f, f.inst(i).loc, || {
                    format!("moved {:?} to the way that reads it", f.inst(i).op)
                });
                f.block_mut(b).insts.remove(n);
                f.block_mut(to).insts.insert(0, i);
            }
            f.inst_values(i).into_iter().for_each(|v| read(&mut read_in, v, to.unwrap_or(b)));
        }
    }
}

/// Registers of a value.
fn words(f: &Function, v: Value) -> u32 {
    match f.ty(v) {
        Type::P => 0,
        Type::B64 => 2,
        _ => 1,
    }
}

/// By loop: more is kept from outside than leaves room.
fn shortage(f: &Function, loops: &Loops) -> Vec<bool> {
    let mut home: Vec<Option<Block>> = vec![None; f.insts.len()];
    for &b in &f.layout {
        f.block(b).insts.iter().for_each(|i| home[i.index()] = Some(b));
    }
    let mut counted = vec![usize::MAX; f.values.len()];
    let kept = |n: usize, l: &Loop, counted: &mut [usize]| {
        let mut sum: u32 = f.block(l.header).params.iter().map(|&v| words(f, v)).sum();
        let mut read = |v: Value| {
            let is_outside = match f.def(v) {
                ValueDef::Inst(i, _) => {
                    costs_a_register(&f.inst(i).op)
                        && home[i.index()].is_some_and(|b| !loops.contains(LoopId(n), b))
                }
                ValueDef::BlockParam(b, _) => !loops.contains(LoopId(n), b),
                ValueDef::FuncParam(_) => true,
                ValueDef::None => false,
            };
            if is_outside && std::mem::replace(&mut counted[v.index()], n) != n {
                sum += words(f, v);
            }
        };
        for &b in &l.blocks {
            f.block(b).insts.iter().for_each(|&i| f.inst_values(i).into_iter().for_each(&mut read));
            f.block(b).term.values().into_iter().for_each(&mut read);
        }
        sum
    };
    loops.loops.iter().enumerate().map(|(n, l)| kept(n, l, &mut counted) > ROOM).collect()
}

/// Constants and addresses of variables are operands of whatever reads them.
fn costs_a_register(op: &Op) -> bool {
    !matches!(op, Op::Const(_) | Op::Undef | Op::Addr(..))
}

/// The block that dominates both.
fn meet(dom: &DomTree, a: Option<Block>, b: Block) -> Block {
    let Some(mut a) = a else { return b };
    let mut b = b;
    while a != b {
        let deeper = if dom.depth(a) >= dom.depth(b) { &mut a } else { &mut b };
        match dom.idom(*deeper) {
            Some(above) => *deeper = above,
            None => return *deeper,
        }
    }
    a
}

/// Where an instruction of block `from` costs less.
fn place(
    f: &Function,
    dom: &DomTree,
    loops: &Loops,
    is_short: &[bool],
    from: Block,
    i: InstId,
    read_in: &[Option<Block>],
) -> Option<Block> {
    let inst = f.inst(i);
    if inst.guard.is_some() || inst.results.len() != 1 || !is_cheap(&inst.op) {
        return None;
    }
    let mut to = read_in[inst.results[0].index()]?;
    // The outermost loop that it would enter.
    let mut into = loops.innermost(to)?;
    if loops.contains(into, from) {
        return None;
    }
    while let Some(around) = loops.get(into).parent.filter(|&p| !loops.contains(p, from)) {
        into = around;
    }
    // Not into the loops inside that one.
    while loops.innermost(to) != Some(into) {
        to = dom.idom(to)?;
    }
    let is_side_way = !loops.get(into).latches.iter().any(|&l| dom.dominates(to, l));
    (is_short[into.0] && is_side_way && from != to && dom.dominates(from, to)).then_some(to)
}

/// One short instruction.
fn is_cheap(op: &Op) -> bool {
    matches!(
        op,
        Op::Add
            | Op::Sub
            | Op::Mul
            | Op::MulWide { .. }
            | Op::Shl
            | Op::ShrU
            | Op::ShrS
            | Op::And
            | Op::Or
            | Op::Xor
            | Op::Not
            | Op::Neg
            | Op::Min { .. }
            | Op::Max { .. }
            | Op::ZeroExt
            | Op::SignExt
            | Op::TruncLo
            | Op::TruncHi
            | Op::Concat
            | Op::Const(_)
            | Op::Addr(..)
            | Op::ToGeneric(_)
            | Op::FromGeneric(_)
    )
}
