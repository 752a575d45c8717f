//! Puts known values into the instructions that read them, and computes what follows.

use crate::evaluate::Evaluator;
use crate::graph::{Graph, Kind, Node, Slot, V};
use crate::memory;
use crate::simplify;
use isa::field::Field;
use isa::{Inst, Op, Operand, PredUse, Reg, Role, Src};
use std::collections::BTreeMap;

/// Offsets up to here can be added to without leaving a space.
const SMALL: u32 = 1 << 24;

/// Folds what follows from the known values; false where a way out would always be taken.
pub fn fold(graph: &mut Graph, evaluator: &mut Evaluator) -> bool {
    for n in 0..graph.nodes.len() {
        if graph.nodes[n].is_dead || graph.nodes[n].is_check {
            continue;
        }
        if !fold_node(graph, n, evaluator) {
            return false;
        }
    }
    true
}

fn fold_node(graph: &mut Graph, n: usize, evaluator: &mut Evaluator) -> bool {
    let known = |graph: &Graph, v: V| graph.values[v].known;
    // Guards.
    let guard = graph.nodes[n].reads.iter().position(|r| r.0 == Slot::Guard);
    if let Some(k) = guard
        && let Some(x) = known(graph, graph.nodes[n].reads[k].1[0])
    {
        let holds = (x != 0) != graph.nodes[n].inst.guard.neg;
        match graph.nodes[n].kind {
            Kind::Exit(_) if holds => return false,
            Kind::Exit(_) => graph.nodes[n].is_dead = true,
            Kind::End => {
                let node = &mut graph.nodes[n];
                node.inst.guard = if holds { PredUse::TRUE } else { PredUse::FALSE };
                node.reads.remove(k);
            }
            Kind::Plain if holds => {
                let node = &mut graph.nodes[n];
                node.inst.guard = PredUse::TRUE;
                node.reads.remove(k);
                node.tied.clear();
            }
            // What nobody runs leaves what was there; where it was to leave nothing, nobody looks.
            Kind::Plain if graph.nodes[n].tied.len() != graph.nodes[n].writes().count() => {}
            Kind::Plain => {
                let by: BTreeMap<V, V> = graph.nodes[n].tied.iter().map(|&(old, new)| (new, old)).collect();
                graph.nodes[n].is_dead = true;
                graph.replace(&by);
            }
        }
        if graph.nodes[n].is_dead {
            return true;
        }
    }
    if let Some(results) = compute(graph, n, evaluator) {
        let writes: Vec<V> = graph.nodes[n].dst.clone();
        writes.iter().zip(&results.0).for_each(|(&v, &x)| graph.values[v].known = Some(x));
        for k in 0..2 {
            if let (Some(v), Some(x)) = (graph.nodes[n].pd[k], results.1[k]) {
                graph.values[v].known = Some(u32::from(x));
            }
        }
        // Whoever needs it in a register gets it at once.
        if let ([_], [x]) = (&writes[..], &results.0[..])
            && graph.nodes[n].pd == [None, None]
        {
            let node = &mut graph.nodes[n];
            let mut mov = Inst::new(Op::Mov);
            mov.dst = node.inst.dst;
            mov.src[1] = if *x == 0 { Src::reg(Reg::RZ) } else { Src::imm(*x) };
            node.inst = mov.canonical();
            node.reads.clear();
        }
        return true;
    }
    operands(graph, n);
    copies(graph, n);
    true
}

/// What a node computes, where everything that it reads is known.
fn compute(graph: &Graph, n: usize, evaluator: &mut Evaluator) -> Option<(Vec<u32>, [Option<bool>; 2])> {
    let node = &graph.nodes[n];
    let is_vote = memory::is_own_vote(graph, node);
    if !node.tied.is_empty() || !simplify::is_pure(graph, node) || node.writes().next().is_none() {
        return None;
    }
    let words = |group: &Vec<V>| group.iter().map(|&v| graph.values[v].known).collect::<Option<Vec<u32>>>();
    let all = node.reads.iter().map(|(_, g)| words(g)).collect::<Option<Vec<_>>>()?;
    if is_vote {
        let holds = (all[0][0] != 0) != node.inst.ps[0].neg;
        return Some((Vec::new(), [Some(holds), None]));
    }
    evaluator.run(node, &all)
}

/// Puts known words into the instruction itself, where it can have them.
fn operands(graph: &mut Graph, n: usize) {
    let mut k = 0;
    while k < graph.nodes[n].reads.len() {
        let (slot, group) = graph.nodes[n].reads[k].clone();
        k += 1;
        let Some(x) = graph.values[group[0]].known.filter(|_| group.len() == 1) else { continue };
        let node = &graph.nodes[n];
        let mut inst = node.inst;
        match slot {
            Slot::Pred(p) => {
                let holds = (x != 0) != inst.ps[p].neg;
                inst.ps[p] = if holds { PredUse::TRUE } else { PredUse::FALSE };
            }
            Slot::Source(s) if x == 0 => inst.src[s].operand = Operand::Reg(Reg::RZ),
            Slot::E if x == 0 => inst.e = Reg::RZ,
            Slot::Source(0) if inst.op.row().roles.contains(&Role::Addr) => {
                let offset = inst.offset();
                if inst.flag(Field::E64) || x >= SMALL || !(0..SMALL as i32).contains(&offset) {
                    continue;
                }
                inst.src[0].operand = Operand::Reg(Reg::RZ);
                inst.src[1] = Src::imm(offset as u32 + x);
            }
            Slot::Source(s) => inst.src[s].operand = Operand::Imm(x),
            _ => continue,
        }
        let stands = inst.op != Op::Vote && inst.encode().is_ok();
        if stands && inst.canonical() == inst {
            graph.nodes[n].inst = inst;
            k -= 1;
            graph.nodes[n].reads.remove(k);
        }
    }
}

/// A node that only hands a value on.
fn copies(graph: &mut Graph, n: usize) {
    let node = &graph.nodes[n];
    let inst = &node.inst;
    if node.kind != Kind::Plain || !node.tied.is_empty() || node.pd != [None, None] || node.dst.len() != 1 {
        return;
    }
    let is_zero =
        |s: &Src| !s.neg && matches!(s.operand, Operand::None | Operand::Reg(Reg::RZ) | Operand::Imm(0));
    let chosen = match inst.op {
        Op::Sel if inst.ps[0] == PredUse::TRUE => 0,
        Op::Sel if inst.ps[0] == PredUse::FALSE => 1,
        Op::Iadd3 if !inst.flag(Field::X) && is_zero(&inst.src[1]) && is_zero(&inst.src[2]) => 0,
        Op::Iadd3 if !inst.flag(Field::X) && is_zero(&inst.src[0]) && is_zero(&inst.src[2]) => 1,
        Op::Imad if inst.src[1].operand == Operand::Imm(1) && is_zero(&inst.src[2]) => 0,
        Op::Imad if is_zero(&inst.src[0]) || is_zero(&inst.src[1]) => 2,
        Op::Mov => 1,
        _ => return,
    };
    let src = inst.src[chosen];
    if src.neg || src.abs {
        return;
    }
    let from = node.reads.iter().find(|r| r.0 == Slot::Source(chosen)).map(|r| r.1[0]);
    let to = node.dst[0];
    let grouped = graph.grouped();
    if let Some(v) = from
        && !grouped[v]
        && !grouped[to]
    {
        graph.nodes[n].is_dead = true;
        graph.replace(&BTreeMap::from([(to, v)]));
        return;
    }
    let mut mov = Inst::new(Op::Mov);
    mov.dst = inst.dst;
    mov.src[1] = src;
    let node = &mut graph.nodes[n];
    node.inst = mov.canonical();
    node.reads = from.into_iter().map(|v| (Slot::Source(1), vec![v])).collect();
    if from.is_none()
        && let Operand::Imm(x) = src.operand
    {
        graph.values[to].known = Some(x);
    }
}

/// What ways out and the end hand over is taken from known values where nobody has them in a register any more.
pub fn settle(graph: &mut Graph) {
    let dead = |graph: &Graph, v: V| graph.values[v].node.is_some_and(|n| graph.nodes[n].is_dead);
    for n in 0..graph.nodes.len() {
        let state = std::mem::take(&mut graph.nodes[n].state);
        // What a check is to prove is in its register still: whoever fails it needs what is really there.
        let (kept, known): (Vec<(usize, V)>, Vec<(usize, V)>) =
            state.into_iter().partition(|&(_, v)| graph.values[v].known.is_none() || !dead(graph, v));
        let constants = known.iter().filter_map(|&(u, v)| Some((u, graph.values[v].known?))).collect();
        let node: &mut Node = &mut graph.nodes[n];
        (node.state, node.constants) = (kept, constants);
    }
}
