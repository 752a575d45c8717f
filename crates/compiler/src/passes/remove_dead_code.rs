//! Removes what nothing needs: unreachable blocks, unused instructions, and block parameters that feed only themselves. Where
//! most is gone, what is left gets new numbers.

use super::Context;
use ir::{Block, Function, InstId, Value, ValueDef};
use smallvec::SmallVec;

pub fn run(f: &mut Function, context: &mut Context) {
    remove_unreachable(f);
    ir::remove_trivial(f);
    let live = Live::find(f);
    for b in f.layout.clone() {
        let mut insts = std::mem::take(&mut f.block_mut(b).insts);
        insts.retain(|i| {
            let keep = live.insts[i.index()];
            if !keep {
                for r in f.insts[i.index()].results.clone() {
                    f.values[r.index()].1 = ValueDef::None;
                }
            }
            keep
        });
        f.block_mut(b).insts = insts;
    }
    remove_dead_params(f, &live);
    if f.is_sparse() {
        let blocks = f.compact();
        context.unrolled = context.unrolled.iter().filter_map(|b| blocks[b.index()]).collect();
    }
}

/// Takes blocks that the entry does not reach out of the layout.
pub fn remove_unreachable(f: &mut Function) {
    let mut reached = vec![false; f.blocks.len()];
    f.reverse_postorder().iter().for_each(|b| reached[b.index()] = true);
    let mut layout = std::mem::take(&mut f.layout);
    layout.retain(|b| reached[b.index()]);
    f.layout = layout;
}

struct Live {
    insts: Vec<bool>,
    values: Vec<bool>,
}

impl Live {
    /// From effects and terminators backwards, mostly in the order of the layout; an argument of a jump counts only where the
    /// parameter does.
    fn find(f: &Function) -> Live {
        let mut live = Live { insts: vec![false; f.insts.len()], values: vec![false; f.values.len()] };
        // Instructions that were looked at: what makes them needed later than that goes back to them.
        let mut passed = vec![false; f.insts.len()];
        let mut incoming: Vec<SmallVec<[(Block, usize); 2]>> = vec![SmallVec::new(); f.blocks.len()];
        for &b in &f.layout {
            for (n, call) in f.block(b).term.calls().iter().enumerate() {
                incoming[call.block.index()].push((b, n));
            }
        }
        let mut work: Vec<Value> = Vec::new();
        for &b in f.layout.iter().rev() {
            let data = f.block(b);
            match &data.term {
                ir::Terminator::Branch { cond, .. } => work.push(*cond),
                ir::Terminator::Switch { index, .. } => work.push(*index),
                ir::Terminator::Return(values) => work.extend(values.iter().copied()),
                _ => {}
            }
            live.follow(f, &incoming, &passed, &mut work);
            for &i in data.insts.iter().rev() {
                passed[i.index()] = true;
                let inst = f.inst(i);
                if !inst.op.is_removable() || inst.results.iter().any(|r| live.values[r.index()]) {
                    live.keep(f, i, &mut work);
                    live.follow(f, &incoming, &passed, &mut work);
                }
            }
        }
        live
    }

    /// Marks values, and all that they need but instructions that are looked at later.
    fn follow(
        &mut self,
        f: &Function,
        incoming: &[SmallVec<[(Block, usize); 2]>],
        passed: &[bool],
        work: &mut Vec<Value>,
    ) {
        while let Some(v) = work.pop() {
            if std::mem::replace(&mut self.values[v.index()], true) {
                continue;
            }
            match f.def(v) {
                ValueDef::Inst(i, _) if passed[i.index()] => self.keep(f, i, work),
                ValueDef::BlockParam(b, n) => {
                    for &(p, call) in &incoming[b.index()] {
                        work.push(f.block(p).term.calls()[call].args[n as usize]);
                    }
                }
                ValueDef::Inst(..) | ValueDef::FuncParam(_) | ValueDef::None => {}
            }
        }
    }

    fn keep(&mut self, f: &Function, i: InstId, work: &mut Vec<Value>) {
        if !std::mem::replace(&mut self.insts[i.index()], true) {
            work.extend(f.inst_values(i));
        }
    }
}

fn remove_dead_params(f: &mut Function, live: &Live) {
    let dead = |f: &Function, b: Block| -> SmallVec<[bool; 8]> {
        f.block(b).params.iter().map(|p| !live.values[p.index()]).collect()
    };
    for b in f.layout.clone() {
        let mut term = std::mem::replace(&mut f.block_mut(b).term, ir::Terminator::Unreachable);
        for call in term.calls_mut() {
            let dead = dead(f, call.block);
            retain_not(&mut call.args, &dead);
        }
        f.block_mut(b).term = term;
    }
    for b in f.layout.clone() {
        let dead = dead(f, b);
        let mut params = std::mem::take(&mut f.block_mut(b).params);
        for (p, _) in params.iter().zip(&dead).filter(|(_, d)| **d) {
            f.values[p.index()].1 = ValueDef::None;
        }
        retain_not(&mut params, &dead);
        f.block_mut(b).params = params;
    }
    f.renumber_params();
}

fn retain_not(list: &mut SmallVec<[Value; 4]>, dead: &[bool]) {
    let mut n = 0;
    list.retain(|_| {
        n += 1;
        !dead[n - 1]
    });
}
