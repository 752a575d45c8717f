//! Brings a function into the form that selection wants.
//!
//! - Calls and system calls have no guard: a guarded one stands in a block of its own.
//! - A device function returns at one place, so that lanes which took different paths return together.
//! - Only jumps carry arguments: an edge with arguments that is one of several gets a block of its own.
//! - Every loop has a preheader, where lanes can agree to meet behind the loop.

use crate::analysis::{DomTree, Loops};
use ir::{Block, BlockCall, Function, InstId, LocId, Op, Terminator, Type, Value};

pub fn prepare(f: &mut Function) {
    branch_around_guarded(f, |op| {
        matches!(
            op,
            Op::Call(_)
                | Op::CallIndirect
                | Op::Syscall(_)
                | Op::Alloca { .. }
                | Op::StackSave
                | Op::StackRestore
        )
    });
    return_once(f);
    make_preheaders(f);
}

fn jump(block: Block, args: &[Value]) -> Terminator {
    Terminator::Jump(BlockCall { block, args: args.into() })
}

/// Cuts a block around its instruction `at`: the instruction, which is in none then, an empty block for what stands in its
/// place, and one for what follows. `k` is where they go in the layout; the block's end is up to the caller.
pub fn split_around(f: &mut Function, k: usize, at: usize) -> (InstId, Block, Block) {
    let b = f.layout[k - 1];
    let rest = f.block_mut(b).insts.split_off(at);
    let (body, join) = (f.new_block(), f.new_block());
    f.layout.insert(k, body);
    f.layout.insert(k + 1, join);
    let term = std::mem::replace(&mut f.block_mut(b).term, Terminator::Unreachable);
    let loc = f.block(b).term_loc;
    (f.block_mut(join).term, f.block_mut(join).term_loc) = (term, loc);
    f.block_mut(join).insts = rest[1..].to_vec();
    (rest[0], body, join)
}

/// Gives guarded operations of some kind a branch around them instead.
pub fn branch_around_guarded(f: &mut Function, is_meant: impl Fn(&Op) -> bool) {
    let mut k = 0;
    while k < f.layout.len() {
        let b = f.layout[k];
        k += 1;
        let guarded =
            f.block(b).insts.iter().position(|&i| f.inst(i).guard.is_some() && is_meant(&f.inst(i).op));
        let Some(at) = guarded else { continue };
        let (i, body, join) = split_around(f, k, at);
        f.block_mut(body).insts = vec![i];
        let inst = f.inst(i).clone();
        let own = inst.own_args().len();
        // The results are parameters of the join: the call's own, or what it passes through.
        let fresh: Vec<Value> = inst
            .results
            .iter()
            .enumerate()
            .map(|(n, &r)| f.new_value(f.ty(r), ir::ValueDef::Inst(i, n as u32)))
            .collect();
        for (n, &r) in inst.results.iter().enumerate() {
            f.values[r.index()].1 = ir::ValueDef::BlockParam(join, n as u32);
            f.block_mut(join).params.push(r);
        }
        f.block_mut(body).term = jump(join, &fresh);
        f.block_mut(body).term_loc = inst.loc;
        let data = f.inst_mut(i);
        data.guard = None;
        data.args.truncate(own);
        data.results = fresh.into();
        if let Some(g) = inst.guard {
            let skip = BlockCall { block: join, args: inst.args[own..].into() };
            let call = BlockCall::new(body);
            let (then, otherwise) = if g.negated { (skip, call) } else { (call, skip) };
            f.block_mut(b).term = Terminator::Branch { cond: g.value, then, otherwise, uniform: false };
            f.block_mut(b).term_loc = inst.loc;
        }
    }
}

fn return_once(f: &mut Function) {
    let returns: Vec<Block> =
        f.layout.iter().copied().filter(|&b| matches!(f.block(b).term, Terminator::Return(_))).collect();
    if returns.len() < 2 {
        return;
    }
    let last = f.new_block();
    f.layout.push(last);
    let types: Vec<Type> = f.results.clone();
    let params: smallvec::SmallVec<[Value; 2]> = types.iter().map(|&t| f.add_block_param(last, t)).collect();
    for b in returns {
        if let Terminator::Return(values) = f.block(b).term.clone() {
            f.block_mut(b).term = jump(last, &values);
        }
    }
    f.block_mut(last).term = Terminator::Return(params);
}

/// Gives every loop the one block before it that hoisting and convergence want.
pub fn make_preheaders(f: &mut Function) {
    let dom = DomTree::new(f);
    let loops = Loops::new(f, &dom);
    let preds = f.predecessors();
    let mut added = Vec::new();
    let entry = f.entry();
    for l in loops.loops.iter().filter(|l| l.preheader.is_none() && l.header != entry) {
        let mut froms = preds[l.header.index()].clone();
        froms.retain(|b| !l.latches.contains(b));
        froms.dedup();
        added.push((l.header, block_before(f, l.header, &froms)));
    }
    place_before(f, &added);
}

/// Makes a block in front of `to` that the jumps from `froms` now go through. The caller puts it into the layout.
pub fn block_before(f: &mut Function, to: Block, froms: &[Block]) -> Block {
    let new = f.new_block();
    let types: Vec<Type> = f.block(to).params.iter().map(|&p| f.ty(p)).collect();
    let params: Vec<Value> = types.iter().map(|&t| f.add_block_param(new, t)).collect();
    f.block_mut(new).term = jump(to, &params);
    f.block_mut(new).term_loc = first_loc(f, to);
    for &b in froms {
        for call in f.block_mut(b).term.calls_mut() {
            if call.block == to {
                call.block = new;
            }
        }
    }
    new
}

/// Puts new blocks into the layout: of each pair the second right before the first, the last pair nearest to it.
pub fn place_before(f: &mut Function, added: &[(Block, Block)]) {
    if added.is_empty() {
        return;
    }
    let mut before: Vec<Vec<Block>> = vec![Vec::new(); f.blocks.len()];
    added.iter().for_each(|&(to, new)| before[to.index()].push(new));
    let old = std::mem::take(&mut f.layout);
    for b in old {
        f.layout.append(&mut before[b.index()]);
        f.layout.push(b);
    }
}

fn first_loc(f: &Function, b: Block) -> LocId {
    f.block(b).insts.first().map_or(f.block(b).term_loc, |&i| f.inst(i).loc)
}

/// Gives every edge that has arguments and is one of several from its block a block of its own, right behind it.
pub fn split_edges(f: &mut Function) {
    let mut layout = Vec::with_capacity(f.layout.len());
    for b in std::mem::take(&mut f.layout) {
        layout.push(b);
        let mut term = std::mem::replace(&mut f.block_mut(b).term, Terminator::Unreachable);
        let loc = f.block(b).term_loc;
        if !matches!(term, Terminator::Jump(_)) {
            for call in term.calls_mut() {
                if !call.args.is_empty() {
                    let new = f.new_block();
                    layout.push(new);
                    f.block_mut(new).term_loc = loc;
                    let edge = std::mem::replace(call, BlockCall::new(new));
                    f.block_mut(new).term = Terminator::Jump(edge);
                }
            }
        }
        f.block_mut(b).term = term;
    }
    f.layout = layout;
}
