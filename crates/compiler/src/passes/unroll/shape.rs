//! Brings a loop into the shape that copying needs: one edge in, one edge back, one edge out, values that leave it
//! passed along the edge out.

use crate::analysis::{LoopId, Loops};
use ir::{Block, BlockCall, Function, LocId, Op, Terminator, Value};
use smallvec::{SmallVec, smallvec};

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
    let Terminator::Branch { cond, .. } = f.block(latch).term else { return false };
    let counts = f.def_op(cond).is_some_and(|d| matches!(d.op, Op::ICmp { .. }));
    l.header != f.entry() && from == latch && counts
}

/// Reshapes loops that [`fits`], none inside another.
pub fn reshape(f: &mut Function, loops: &Loops, ids: &[LoopId]) -> Vec<Shape> {
    let mut preds = f.predecessors();
    let edges: Vec<(Block, Block)> = ids.iter().map(|&id| add_edges(f, loops, id, &mut preds)).collect();
    pass_out(f, loops, ids, &edges);
    ids.iter().zip(edges).filter_map(|(&id, (before, after))| describe(f, loops, id, before, after)).collect()
}

/// Gives the loop one block before it and one after it.
fn add_edges(
    f: &mut Function,
    loops: &Loops,
    id: LoopId,
    preds: &mut Vec<SmallVec<[Block; 2]>>,
) -> (Block, Block) {
    let l = loops.get(id);
    let (header, latch) = (l.header, l.latches[0]);
    let (before, after) = (f.new_block(), f.new_block());
    f.layout.extend([before, after]);
    preds.resize(f.blocks.len(), SmallVec::new());

    let outside: SmallVec<[Block; 2]> =
        preds[header.index()].iter().copied().filter(|&p| p != latch).collect();
    let mut entries: Vec<SmallVec<[Value; 4]>> = Vec::new();
    for &p in &outside {
        for call in f.block_mut(p).term.calls_mut().into_iter().filter(|c| c.block == header) {
            call.block = before;
            entries.push(call.args.clone());
        }
    }
    // With one way in, the values before the loop are known as such.
    let start = match &entries[..] {
        [only] => {
            for &p in &outside {
                f.block_mut(p)
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
    f.block_mut(before).term = Terminator::Jump(BlockCall { block: header, args: start });
    f.block_mut(before).term_loc = f.block(header).term_loc;
    preds[before.index()] = outside;
    preds[header.index()] = smallvec![before, latch];

    f.block_mut(after).term_loc = f.block(latch).term_loc;
    let mut out = None;
    for call in f.block_mut(latch).term.calls_mut().into_iter().filter(|c| c.block != header) {
        out = Some(std::mem::replace(call, BlockCall::new(after)));
    }
    if let Some(out) = out {
        preds[out.block.index()].iter_mut().filter(|p| **p == latch).for_each(|p| *p = after);
        f.block_mut(after).term = Terminator::Jump(out);
    }
    preds[after.index()] = smallvec![latch];
    (before, after)
}

/// Values of the loops that are read outside become parameters of the blocks after them.
fn pass_out(f: &mut Function, loops: &Loops, ids: &[LoopId], edges: &[(Block, Block)]) {
    // Which of the loops a block is in, and a value is from.
    let mut home: Vec<Option<usize>> = vec![None; f.blocks.len()];
    let mut origin: Vec<Option<usize>> = vec![None; f.values.len()];
    for (n, &id) in ids.iter().enumerate() {
        for &b in &loops.get(id).blocks {
            home[b.index()] = Some(n);
            f.block(b).params.iter().for_each(|p| origin[p.index()] = Some(n));
            for &i in &f.block(b).insts {
                f.inst(i).results.iter().for_each(|r| origin[r.index()] = Some(n));
            }
        }
    }
    let mut map: Vec<Option<Value>> = vec![None; f.values.len()];
    let mut leaving: Vec<Vec<Value>> = vec![Vec::new(); ids.len()];
    for b in f.layout.clone() {
        let mut read: Vec<Value> = f.block(b).insts.iter().flat_map(|&i| f.inst_values(i)).collect();
        read.extend(f.block(b).term.values());
        for v in read {
            if let Some(n) = origin.get(v.index()).copied().flatten()
                && home[b.index()] != Some(n)
                && map[v.index()].is_none()
            {
                map[v.index()] = Some(f.add_block_param(edges[n].1, f.ty(v)));
                leaving[n].push(v);
            }
        }
    }
    for b in f.layout.clone() {
        let here = home[b.index()];
        let rename = |v: &mut Value| {
            if let Some(&Some(new)) = map.get(v.index())
                && origin[v.index()] != here
            {
                *v = new;
            }
        };
        for i in f.block(b).insts.clone() {
            let data = f.inst_mut(i);
            data.args.iter_mut().for_each(rename);
            if let Some(g) = &mut data.guard {
                rename(&mut g.value);
            }
        }
        f.block_mut(b).term.for_each_value(rename);
    }
    for ((&id, &(_, after)), leaving) in ids.iter().zip(edges).zip(leaving) {
        let latch = loops.get(id).latches[0];
        for call in f.block_mut(latch).term.calls_mut().into_iter().filter(|c| c.block == after) {
            call.args = leaving.iter().copied().collect();
        }
    }
}

fn describe(f: &Function, loops: &Loops, id: LoopId, before: Block, after: Block) -> Option<Shape> {
    let l = loops.get(id);
    let (header, latch) = (l.header, l.latches[0]);
    let Terminator::Jump(enter) = &f.block(before).term else { return None };
    let Terminator::Branch { cond, then, otherwise, uniform } = &f.block(latch).term else { return None };
    let continues_if = then.block == header;
    let (back, out) = if continues_if { (then, otherwise) } else { (otherwise, then) };
    Some(Shape {
        blocks: l.blocks.clone(),
        header,
        latch,
        before,
        after,
        start: enter.args.to_vec(),
        next: back.args.to_vec(),
        leaving: out.args.to_vec(),
        cond: *cond,
        continues_if,
        uniform: *uniform,
        loc: f.block(latch).term_loc,
    })
}
