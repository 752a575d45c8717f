//! Turns loops that test at their top into loops that test at their end, behind one test before them: the shape that
//! unrolling knows.

use super::Context;
use crate::analysis::{DomTree, Loop, LoopId, Loops};
use ir::{Block, BlockCall, Function, InstId, Terminator, Value, ValueDef};
use std::collections::{HashMap, HashSet};

/// The header is written twice, so it must be short.
const MAX_HEADER: usize = 16;

pub fn run(f: &mut Function, context: &mut Context) {
    let mut done: HashSet<Block> = HashSet::new();
    loop {
        let loops = Loops::new(f, &DomTree::new(f));
        let next = (0..loops.loops.len()).map(LoopId).find_map(|id| {
            let l = loops.get(id);
            (!done.contains(&l.header)).then(|| fits(f, &loops, id).map(|parts| (l.clone(), parts)))?
        });
        let Some((l, parts)) = next else { return };
        done.insert(l.header);
        context.remark(f, f.block(l.header).term_loc, || "moved the loop's test to its end".into());
        rotate(f, &l, parts);
    }
}

/// The latch, and which way out of the header goes on.
struct Parts {
    latch: Block,
    body_if: bool,
}

fn fits(f: &Function, loops: &Loops, id: LoopId) -> Option<Parts> {
    let l = loops.get(id);
    // A second way out would see the header's values too, and neither new block would dominate it.
    let (&[latch], [_]) = (&l.latches[..], &l.exits[..]) else { return None };
    let header = f.block(l.header);
    let Terminator::Branch { then, otherwise, .. } = &header.term else { return None };
    let stays = |c: &BlockCall| loops.contains(id, c.block) && c.block != l.header;
    let leaves = |c: &BlockCall| !loops.contains(id, c.block);
    let body_if = match (stays(then), stays(otherwise)) {
        (true, false) if leaves(otherwise) => true,
        (false, true) if leaves(then) => false,
        _ => return None,
    };
    let is_short = header.insts.len() <= MAX_HEADER
        && header.insts.iter().all(|&i| f.inst(i).op.is_pure() && f.inst(i).guard.is_none());
    let goes_back = latch != l.header && matches!(f.block(latch).term, Terminator::Jump(_));
    (is_short && goes_back && l.header != f.entry()).then_some(Parts { latch, body_if })
}

fn rotate(f: &mut Function, l: &Loop, parts: Parts) {
    let header = l.header;
    let mut inside = vec![false; f.blocks.len()];
    l.blocks.iter().for_each(|b| inside[b.index()] = true);
    let in_body = |b: Block| b != header && inside.get(b.index()).copied().unwrap_or(false);

    // What the header defines and others read: through parameters of the new header and of a new exit block.
    let mut defined: Vec<Value> = f.block(header).params.to_vec();
    defined.extend(f.block(header).insts.iter().flat_map(|&i| f.inst(i).results.clone()));
    let (body, exit) = (f.new_block(), f.new_block());
    let mut for_body: HashMap<Value, Value> = HashMap::new();
    let mut for_exit: HashMap<Value, Value> = HashMap::new();
    let (mut to_body, mut to_exit) = (Vec::new(), Vec::new());
    for &v in &defined {
        for_body.insert(v, f.add_block_param(body, f.ty(v)));
        for_exit.insert(v, f.add_block_param(exit, f.ty(v)));
        to_body.push(v);
        to_exit.push(v);
    }
    for b in f.layout.clone() {
        if b != header {
            let map = if in_body(b) { &for_body } else { &for_exit };
            rename(f, b, map);
        }
    }

    // The new blocks go on where the header went.
    let (mut then, mut otherwise) = match f.block(header).term.clone() {
        Terminator::Branch { then, otherwise, .. } => (then, otherwise),
        _ => return,
    };
    let (on, out) = if parts.body_if { (&mut then, &mut otherwise) } else { (&mut otherwise, &mut then) };
    on.args.iter_mut().for_each(|v| *v = for_body.get(v).copied().unwrap_or(*v));
    out.args.iter_mut().for_each(|v| *v = for_exit.get(v).copied().unwrap_or(*v));
    let term_loc = f.block(header).term_loc;
    for (b, call) in [(body, on.clone()), (exit, out.clone())] {
        f.block_mut(b).term = Terminator::Jump(call);
        f.block_mut(b).term_loc = term_loc;
    }
    let no_unroll = std::mem::take(&mut f.block_mut(header).no_unroll);
    f.block_mut(body).no_unroll = no_unroll;
    let at = f.layout.iter().position(|&b| b == header).map_or(f.layout.len(), |n| n + 1);
    f.layout.splice(at..at, [body, exit]);

    // The test again at the end of the latch.
    let mut copy: HashMap<Value, Value> = HashMap::new();
    if let Terminator::Jump(back) = f.block(parts.latch).term.clone() {
        let params = f.block(header).params.clone();
        copy.extend(params.into_iter().zip(back.args));
    }
    for i in f.block(header).insts.clone() {
        let new = copy_inst(f, i, &mut copy);
        f.block_mut(parts.latch).insts.push(new);
    }
    let test = |copy: &HashMap<Value, Value>, term: &Terminator| {
        let now = |v: &Value| copy.get(v).copied().unwrap_or(*v);
        let calls = [
            BlockCall { block: body, args: to_body.iter().map(now).collect() },
            BlockCall { block: exit, args: to_exit.iter().map(now).collect() },
        ];
        let [on, out] = calls;
        match *term {
            Terminator::Branch { ref cond, uniform, .. } => {
                let (then, otherwise) = if parts.body_if { (on, out) } else { (out, on) };
                Terminator::Branch { cond: now(cond), then, otherwise, uniform }
            }
            ref other => other.clone(),
        }
    };
    let term = f.block(header).term.clone();
    f.block_mut(parts.latch).term = test(&copy, &term);
    f.block_mut(header).term = test(&HashMap::new(), &term);
}

fn rename(f: &mut Function, b: Block, map: &HashMap<Value, Value>) {
    let now = |v: &mut Value| *v = map.get(v).copied().unwrap_or(*v);
    for i in f.block(b).insts.clone() {
        let data = f.inst_mut(i);
        data.args.iter_mut().for_each(now);
        if let Some(g) = &mut data.guard {
            now(&mut g.value);
        }
    }
    f.block_mut(b).term.for_each_value(now);
}

fn copy_inst(f: &mut Function, i: InstId, map: &mut HashMap<Value, Value>) -> InstId {
    let mut data = f.inst(i).clone();
    let id = InstId::new(f.insts.len());
    data.args.iter_mut().for_each(|v| *v = map.get(v).copied().unwrap_or(*v));
    for (n, r) in data.results.iter_mut().enumerate() {
        let new = f.new_value(f.ty(*r), ValueDef::Inst(id, n as u32));
        map.insert(*r, new);
        *r = new;
    }
    f.insts.push(data);
    id
}
