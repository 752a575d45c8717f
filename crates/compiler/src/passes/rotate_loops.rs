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
    // In each round loops of which none lies in another, outer ones first.
    loop {
        let loops = Loops::new(f, &DomTree::new(f));
        let mut is_taken = vec![false; loops.loops.len()];
        let mut round: Vec<(&Loop, Parts)> = Vec::new();
        for (n, l) in loops.loops.iter().enumerate() {
            let in_taken = l.parent.is_some_and(|p| is_taken[p.0]);
            is_taken[n] = in_taken;
            if !in_taken
                && !done.contains(&l.header)
                && let Some(parts) = fits(f, &loops, LoopId(n))
            {
                is_taken[n] = true;
                done.insert(l.header);
                context.remark(f, f.block(l.header).term_loc, || "moved the loop's test to its end".into());
                round.push((l, parts));
            }
        }
        if round.is_empty() {
            return;
        }
        rotate_all(f, &round);
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

/// The blocks that take a header's place: the new header, and the way out.
struct Made {
    body: Block,
    exit: Block,
    /// What the header defines. Others read it through parameters of the two, in this order.
    defined: Vec<Value>,
    for_body: HashMap<Value, Value>,
    for_exit: HashMap<Value, Value>,
}

fn rotate_all(f: &mut Function, round: &[(&Loop, Parts)]) {
    // Which of the loops a block is in, and the header of which defines a value.
    let mut home: Vec<Option<usize>> = vec![None; f.blocks.len()];
    let mut origin: Vec<Option<usize>> = vec![None; f.values.len()];
    let mut made: Vec<Made> = Vec::new();
    for (n, (l, _)) in round.iter().enumerate() {
        l.blocks.iter().for_each(|b| home[b.index()] = Some(n));
        let mut defined: Vec<Value> = f.block(l.header).params.to_vec();
        defined.extend(f.block(l.header).insts.iter().flat_map(|&i| f.inst(i).results.clone()));
        defined.iter().for_each(|v| origin[v.index()] = Some(n));
        let (body, exit) = (f.new_block(), f.new_block());
        let (mut for_body, mut for_exit) = (HashMap::new(), HashMap::new());
        for &v in &defined {
            for_body.insert(v, f.add_block_param(body, f.ty(v)));
            for_exit.insert(v, f.add_block_param(exit, f.ty(v)));
        }
        made.push(Made { body, exit, defined, for_body, for_exit });
    }
    for b in f.layout.clone() {
        let here = home[b.index()];
        let is_header = here.is_some_and(|n| round[n].0.header == b);
        rename(f, b, |v| {
            let n = origin.get(v.index()).copied().flatten()?;
            match here {
                Some(h) if h == n && is_header => None,
                Some(h) if h == n => made[n].for_body.get(&v).copied(),
                _ => made[n].for_exit.get(&v).copied(),
            }
        });
    }
    let mut behind: HashMap<Block, [Block; 2]> = HashMap::new();
    for ((l, parts), made) in round.iter().zip(&made) {
        behind.insert(l.header, [made.body, made.exit]);
        rotate(f, l.header, parts, made);
    }
    let old = std::mem::take(&mut f.layout);
    for b in old {
        f.layout.push(b);
        f.layout.extend(behind.get(&b).into_iter().flatten());
    }
}

fn rotate(f: &mut Function, header: Block, parts: &Parts, made: &Made) {
    let Made { body, exit, defined, for_body, for_exit } = made;
    let (body, exit) = (*body, *exit);

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
            BlockCall { block: body, args: defined.iter().map(now).collect() },
            BlockCall { block: exit, args: defined.iter().map(now).collect() },
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

fn rename(f: &mut Function, b: Block, new: impl Fn(Value) -> Option<Value>) {
    let now = |v: &mut Value| *v = new(*v).unwrap_or(*v);
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
