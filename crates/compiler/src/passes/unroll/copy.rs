//! Copies of a loop's body.

use super::shape::Shape;
use ir::{Block, Function, InstId, Terminator, Value, ValueDef};
use std::collections::HashMap;

/// One copy of the body. Its latch has no terminator yet.
pub struct Copy {
    pub header: Block,
    pub latch: Block,
    /// What the copy passes on to the next iteration, and what it would pass out of the loop.
    pub next: Vec<Value>,
    pub leaving: Vec<Value>,
    /// The loop's condition in this copy.
    pub cond: Value,
}

/// Copies the body; the copy's blocks go to the end of the layout.
pub fn copy_body(f: &mut Function, s: &Shape) -> Copy {
    let mut blocks: Vec<(Block, Block)> = Vec::with_capacity(s.blocks.len());
    let mut values: HashMap<Value, Value> = HashMap::new();
    for &b in &s.blocks {
        let new = f.new_block();
        f.layout.push(new);
        blocks.push((b, new));
        for p in f.block(b).params.clone() {
            values.insert(p, f.add_block_param(new, f.ty(p)));
        }
    }
    for &(b, new) in &blocks {
        for i in f.block(b).insts.clone() {
            let copied = copy_inst(f, i, &mut values);
            f.block_mut(new).insts.push(copied);
        }
    }
    let value = |v: Value| values.get(&v).copied().unwrap_or(v);
    let block = |b: Block| blocks.iter().find(|(old, _)| *old == b).map_or(b, |(_, new)| *new);
    for &(b, new) in &blocks {
        let mut term = f.block(b).term.clone();
        if b == s.latch {
            term = Terminator::Unreachable;
        }
        term.for_each_value(|v| *v = value(*v));
        for call in term.calls_mut() {
            call.block = block(call.block);
        }
        let term_loc = f.block(b).term_loc;
        let data = f.block_mut(new);
        data.term = term;
        data.term_loc = term_loc;
    }
    // Values can be read before they are written in block order only across blocks: fix up now that all are known.
    for &(_, new) in &blocks {
        for i in f.block(new).insts.clone() {
            let data = f.inst_mut(i);
            data.args.iter_mut().for_each(|v| *v = value(*v));
            if let Some(g) = &mut data.guard {
                g.value = value(g.value);
            }
        }
    }
    Copy {
        header: block(s.header),
        latch: block(s.latch),
        next: s.next.iter().map(|&v| value(v)).collect(),
        leaving: s.leaving.iter().map(|&v| value(v)).collect(),
        cond: value(s.cond),
    }
}

fn copy_inst(f: &mut Function, i: InstId, values: &mut HashMap<Value, Value>) -> InstId {
    let mut data = f.inst(i).clone();
    let id = InstId::new(f.insts.len());
    for (n, r) in data.results.iter_mut().enumerate() {
        let new = f.new_value(f.ty(*r), ValueDef::Inst(id, n as u32));
        values.insert(*r, new);
        *r = new;
    }
    f.insts.push(data);
    id
}
