//! Brings a loop into the shape that copying needs: one edge in, one edge back, one edge out, values that leave it
//! passed along the edge out.

use crate::analysis::{LoopId, Loops};
use ir::{Block, BlockCall, Function, LocId, Terminator, Value, ValueDef};

/// A loop that tests at its end. `before` jumps to the header; `after` is entered by the exit edge only.
pub struct Shape {
    pub blocks: Vec<Block>,
    pub header: Block,
    pub latch: Block,
    pub before: Block,
    pub after: Block,
    /// What the header's parameters are at first.
    pub start: Vec<Value>,
    /// What they are next, by the latch.
    pub next: Vec<Value>,
    /// What `after` gets.
    pub leaving: Vec<Value>,
    /// The condition at the latch, and whether the loop goes on where it holds.
    pub cond: Value,
    pub continues_if: bool,
    /// The program promises that lanes leave together.
    pub uniform: bool,
    /// Where the branch back comes from.
    pub loc: LocId,
}

/// The latch ends in a branch back or out, and nothing else leaves the loop.
pub fn fits(f: &Function, loops: &Loops, id: LoopId) -> bool {
    let l = loops.get(id);
    let (&[latch], &[(from, _)]) = (&l.latches[..], &l.exits[..]) else { return false };
    l.header != f.entry() && from == latch && matches!(f.block(latch).term, Terminator::Branch { .. })
}

/// Reshapes a loop that [`fits`].
pub fn reshape(f: &mut Function, loops: &Loops, id: LoopId) -> Option<Shape> {
    let l = loops.get(id);
    let latch = *l.latches.first()?;
    let (header, exit) = (l.header, l.exits.first()?.1);
    let mut inside = vec![false; f.blocks.len()];
    l.blocks.iter().for_each(|b| inside[b.index()] = true);

    let before = f.new_block();
    let mut entries = Vec::new();
    for b in f.layout.clone() {
        if !inside[b.index()] {
            for call in f.block_mut(b).term.calls_mut().into_iter().filter(|c| c.block == header) {
                call.block = before;
                entries.push(call.args.to_vec());
            }
        }
    }
    // With one way in, the values before the loop are known as such.
    let start: Vec<Value> = match &entries[..] {
        [only] => {
            for b in f.layout.clone() {
                f.block_mut(b)
                    .term
                    .calls_mut()
                    .into_iter()
                    .filter(|c| c.block == before)
                    .for_each(|c| c.args.clear());
            }
            only.clone()
        }
        _ => f.block(header).params.clone().iter().map(|&p| f.add_block_param(before, f.ty(p))).collect(),
    };
    f.block_mut(before).term =
        Terminator::Jump(BlockCall { block: header, args: start.iter().copied().collect() });
    let term_loc = f.block(header).term_loc;
    f.block_mut(before).term_loc = term_loc;

    let after = f.new_block();
    f.block_mut(after).term_loc = f.block(latch).term_loc;
    let mut out = None;
    for call in f.block_mut(latch).term.calls_mut().into_iter().filter(|c| c.block == exit) {
        out = Some(std::mem::replace(call, BlockCall::new(after)));
    }
    f.block_mut(after).term = Terminator::Jump(out?);
    place(f, header, before, exit, after);
    let leaving = pass_out(f, &inside, latch, after);

    let Terminator::Branch { cond, then, otherwise, uniform } = &f.block(latch).term else { return None };
    let continues_if = then.block == header;
    let next = if continues_if { then } else { otherwise }.args.to_vec();
    let (cond, uniform) = (*cond, *uniform);
    let loc = f.block(latch).term_loc;
    Some(Shape {
        blocks: l.blocks.clone(),
        header,
        latch,
        before,
        after,
        start,
        next,
        leaving,
        cond,
        continues_if,
        uniform,
        loc,
    })
}

/// Puts the two new blocks before the header and before the exit.
fn place(f: &mut Function, header: Block, before: Block, exit: Block, after: Block) {
    let mut layout = Vec::with_capacity(f.layout.len() + 2);
    for &b in &f.layout {
        if b == header {
            layout.push(before);
        }
        if b == exit {
            layout.push(after);
        }
        layout.push(b);
    }
    f.layout = layout;
}

/// Values of the loop that are read outside become parameters of `after`. Returns what the latch passes for them.
fn pass_out(f: &mut Function, inside: &[bool], latch: Block, after: Block) -> Vec<Value> {
    let mut defined = vec![false; f.values.len()];
    for (n, _) in inside.iter().enumerate().filter(|(_, is)| **is) {
        let data = &f.blocks[n];
        data.params.iter().for_each(|p| defined[p.index()] = true);
        for &i in &data.insts {
            f.inst(i).results.iter().for_each(|r| defined[r.index()] = true);
        }
    }
    let is_inside = |b: Block| inside.get(b.index()).copied().unwrap_or(false);
    let mut map: Vec<Option<Value>> = vec![None; f.values.len()];
    let mut leaving = Vec::new();
    for b in f.layout.clone().into_iter().filter(|&b| !is_inside(b)) {
        let mut read: Vec<Value> = f.block(b).insts.iter().flat_map(|&i| f.inst_values(i)).collect();
        read.extend(f.block(b).term.values());
        for v in read {
            if defined.get(v.index()) == Some(&true) && map[v.index()].is_none() {
                map[v.index()] = Some(f.add_block_param(after, f.ty(v)));
                leaving.push(v);
            }
        }
    }
    let renamed = |v: &mut Value| {
        if let Some(Some(new)) = map.get(v.index()) {
            *v = *new;
        }
    };
    for b in f.layout.clone().into_iter().filter(|&b| !is_inside(b)) {
        for i in f.block(b).insts.clone() {
            let data = f.inst_mut(i);
            data.args.iter_mut().for_each(renamed);
            if let Some(g) = &mut data.guard {
                renamed(&mut g.value);
            }
        }
        f.block_mut(b).term.for_each_value(renamed);
    }
    for call in f.block_mut(latch).term.calls_mut().into_iter().filter(|c| c.block == after) {
        call.args = leaving.iter().copied().collect();
    }
    debug_assert!(leaving.iter().all(|&v| f.def(v) != ValueDef::None));
    leaving
}
