//! Makes blocks as long as they can be: branches on constants, jumps to jumps, and jumps to a block that nothing else
//! reaches. Branches stay branches: arms are not turned into selects.

use super::Context;
use super::remove_dead_code::remove_unreachable;
use ir::{Block, BlockCall, Function, Op, Terminator, Value, ValueDef};

pub fn run(f: &mut Function, _: &mut Context) {
    // Each round shortens the function; rounds end when nothing changes.
    loop {
        let mut changed = fold_branches(f);
        changed |= skip_empty_blocks(f);
        remove_unreachable(f);
        changed |= merge_chains(f);
        if !changed {
            return;
        }
    }
}

fn fold_branches(f: &mut Function) -> bool {
    let mut changed = false;
    for b in f.layout.clone() {
        let new = match &f.block(b).term {
            Terminator::Branch { cond, then, otherwise, uniform } => match f.const_of(*cond) {
                Some(c) => Some(Terminator::Jump(if c & 1 != 0 { then.clone() } else { otherwise.clone() })),
                None if then == otherwise => Some(Terminator::Jump(then.clone())),
                None => match f.def_op(*cond) {
                    Some(d) if d.op == Op::Not => Some(Terminator::Branch {
                        cond: d.args[0],
                        then: otherwise.clone(),
                        otherwise: then.clone(),
                        uniform: *uniform,
                    }),
                    _ => None,
                },
            },
            Terminator::Switch { index, targets, .. } => {
                f.const_of(*index).and_then(|n| targets.get(n as usize)).map(|t| Terminator::Jump(t.clone()))
            }
            _ => None,
        };
        if let Some(term) = new {
            f.block_mut(b).term = term;
            changed = true;
        }
    }
    changed
}

/// Sends jumps to a block that only jumps on to where it jumps.
fn skip_empty_blocks(f: &mut Function) -> bool {
    let mut uses = vec![0u32; f.values.len()];
    for &b in &f.layout {
        for &i in &f.block(b).insts {
            f.inst_values(i).iter().for_each(|v| uses[v.index()] += 1);
        }
        f.block(b).term.values().iter().for_each(|v| uses[v.index()] += 1);
    }
    let mut changed = false;
    // From the last to the first: a chain of empty blocks is short by the time its beginning is looked at.
    for &b in f.layout.clone().iter().rev() {
        let mut term = std::mem::replace(&mut f.block_mut(b).term, Terminator::Unreachable);
        for call in term.calls_mut() {
            // A ring of empty blocks has no end; as many steps as there are blocks is enough for any chain.
            for _ in 0..f.layout.len() {
                if call.block == b {
                    break;
                }
                let Some(next) = onward(f, call.block, &uses) else { break };
                let passed = std::mem::take(&mut call.args);
                passed.iter().for_each(|v| uses[v.index()] -= 1);
                let value = |v: &Value| match f.def(*v) {
                    ValueDef::BlockParam(p, n) if p == call.block => passed[n as usize],
                    _ => *v,
                };
                call.args = next.args.iter().map(value).collect();
                call.args.iter().for_each(|v| uses[v.index()] += 1);
                if f.block(call.block).no_unroll {
                    f.block_mut(next.block).no_unroll = true;
                }
                call.block = next.block;
                changed = true;
            }
        }
        f.block_mut(b).term = term;
    }
    changed
}

/// Where a jump to the block goes on to, if its parameters are read by its own jump only.
fn onward(f: &Function, b: Block, uses: &[u32]) -> Option<BlockCall> {
    let data = f.block(b);
    let Terminator::Jump(to) = &data.term else { return None };
    if !data.insts.is_empty() || to.block == b || b == f.entry() {
        return None;
    }
    // A parameter's reads by its own jump are all its reads exactly where the sums agree, for none reads more than all.
    let own = |v: &&Value| matches!(f.def(**v), ValueDef::BlockParam(p, _) if p == b);
    let by_jump = to.args.iter().filter(own).count() as u32;
    let all: u32 = data.params.iter().map(|p| uses[p.index()]).sum();
    (by_jump == all).then(|| to.clone())
}

/// Appends a block to the only block that goes there.
fn merge_chains(f: &mut Function) -> bool {
    let mut entries = vec![0u32; f.blocks.len()];
    for &b in &f.layout {
        f.successors(b).iter().for_each(|s| entries[s.index()] += 1);
    }
    entries[f.entry().index()] += 1;
    let mut map: Vec<Option<Value>> = vec![None; f.values.len()];
    let mut merged = vec![false; f.blocks.len()];
    for b in f.layout.clone() {
        if merged[b.index()] {
            continue;
        }
        while let Terminator::Jump(to) = &f.block(b).term {
            let t = to.block;
            if entries[t.index()] != 1 || t == b {
                break;
            }
            for (&p, &a) in f.block(t).params.iter().zip(&to.args) {
                map[p.index()] = Some(a);
            }
            let data = f.block_mut(t);
            data.params.clear();
            let insts = std::mem::take(&mut data.insts);
            let (term, term_loc) =
                (std::mem::replace(&mut data.term, Terminator::Unreachable), data.term_loc);
            let into = f.block_mut(b);
            into.insts.extend(insts);
            into.term = term;
            into.term_loc = term_loc;
            merged[t.index()] = true;
        }
    }
    if merged.iter().any(|&m| m) {
        f.layout.retain(|b| !merged[b.index()]);
        f.replace_values(&map);
        return true;
    }
    false
}
