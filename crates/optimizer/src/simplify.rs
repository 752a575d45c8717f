//! Removes what is computed twice, and what nobody needs.

use crate::graph::{FRESH, Graph, Kind, Node, Slot, V};
use crate::memory::{self, Touch};
use crate::order::uregs_written;
use isa::field::{Bool, Cmp, Field, Sign};
use isa::{Inst, Op, Operand, Pred, PredUse, Reg, Src};
use std::collections::{BTreeMap, HashMap};

/// Whether a node only makes values from values.
pub fn is_pure(graph: &Graph, node: &Node) -> bool {
    node.kind == Kind::Plain
        && memory::touch(graph, node) == Touch::Nothing
        && uregs_written(node).next().is_none()
}

/// What a node computes, registers left out.
pub fn key(node: &Node) -> (Inst, Vec<Vec<V>>) {
    let mut inst = node.inst;
    inst.dst = if node.dst.is_empty() { Reg::RZ } else { Reg(0) };
    for k in 0..2 {
        inst.pd[k] = if node.pd[k].is_some() { Pred(0) } else { Pred::PT };
    }
    for s in &mut inst.src {
        if let Operand::Reg(r) = s.operand
            && !r.is_zero()
        {
            s.operand = Operand::Reg(Reg(0));
        }
    }
    if !inst.e.is_zero() {
        inst.e = Reg(0);
    }
    let plain = |p: &mut PredUse| {
        if p.pred != Pred::PT {
            p.pred = Pred(0);
        }
    };
    inst.ps.iter_mut().for_each(plain);
    plain(&mut inst.guard);
    (inst, node.reads.iter().map(|r| r.1.clone()).collect())
}

/// Removes nodes that compute or load what is there already; how many. `apart` says which stores are known not to touch what a load
/// reads: places of store and load.
pub fn number(graph: &mut Graph, apart: &dyn Fn(u32, u32) -> bool) -> usize {
    let grouped = graph.grouped();
    let mut seen: HashMap<(Inst, Vec<Vec<V>>), usize> = HashMap::new();
    let mut by: BTreeMap<V, V> = BTreeMap::new();
    let mut loads: Vec<((Inst, Vec<Vec<V>>), usize)> = Vec::new();
    let mut removed = 0;
    for n in 0..graph.nodes.len() {
        let node = &mut graph.nodes[n];
        if node.is_dead {
            continue;
        }
        let last = |v: V| by.get(&v).copied().unwrap_or(v);
        node.reads.iter_mut().for_each(|(_, g)| g.iter_mut().for_each(|v| *v = last(*v)));
        let node = &graph.nodes[n];
        let touch = memory::touch(graph, node);
        // A store, or anything like one, makes loads stale.
        let touches: Vec<Touch> = loads.iter().map(|l| memory::touch(graph, &graph.nodes[l.1])).collect();
        let place = node.place;
        let mut k = 0;
        loads.retain(|l| {
            k += 1;
            let is_plain = matches!(&touch, Touch::Store(a) if a.is_plain);
            !memory::conflict(&touch, &touches[k - 1])
                || matches!(touch, Touch::Load(_))
                || (is_plain && apart(place, graph.nodes[l.1].place))
        });
        let free = node.tied.is_empty() && !node.writes().any(|v| grouped[v]);
        if !free || node.kind != Kind::Plain || node.writes().next().is_none() {
            continue;
        }
        let key = key(node);
        let old = match touch {
            Touch::Nothing if is_pure(graph, node) => *seen.entry(key).or_insert(n),
            Touch::Load(_) | Touch::ReadOnly => match loads.iter().find(|l| l.0 == key) {
                Some(l) => l.1,
                None => {
                    loads.push((key, n));
                    n
                }
            },
            _ => n,
        };
        if old != n {
            let pairs: Vec<(V, V)> = graph.nodes[n].writes().zip(graph.nodes[old].writes()).collect();
            by.extend(pairs);
            graph.nodes[n].is_dead = true;
            removed += 1;
        }
    }
    graph.replace(&by);
    removed
}

/// Offsets that are put together stay below this.
const FAR: i64 = 1 << 23;

/// The value and the number whose sum a value is.
fn sum(graph: &Graph, v: V) -> Option<(V, i64)> {
    let node = &graph.nodes[graph.values[v].node?];
    let inst = &node.inst;
    let is_sum = inst.op == Op::Iadd3
        && node.reads.len() == 1
        && node.reads[0].0 == Slot::Source(0)
        && node.pd[0].is_none()
        && node.tied.is_empty()
        && !inst.flag(Field::X)
        && inst.guard == PredUse::TRUE
        && !inst.src.iter().any(|s| s.neg || s.abs)
        && matches!(inst.src[2].operand, Operand::None | Operand::Reg(Reg::RZ));
    match inst.src[1].operand {
        Operand::Imm(x) if is_sum => Some((node.reads[0].1[0], i64::from(x as i32))),
        _ => None,
    }
}

/// Adds numbers up: of sums of sums, and of those that are addresses in shared or local memory, where addresses have 32 bits as sums
/// have.
pub fn add_up(graph: &mut Graph) {
    let grouped = graph.grouped();
    for n in 0..graph.nodes.len() {
        let node = &graph.nodes[n];
        let is_address = matches!(node.inst.op, Op::Lds | Op::Sts | Op::Atoms | Op::Ldl | Op::Stl)
            && !node.inst.flag(Field::E64);
        let own = node.dst.first().and_then(|&v| sum(graph, v)).filter(|_| node.inst.op == Op::Iadd3);
        if node.is_dead || node.is_check || !(is_address || own.is_some()) {
            continue;
        }
        let Some(k) = node.reads.iter().position(|r| r.0 == Slot::Source(0)) else { continue };
        let mut v = node.reads[k].1[0];
        let mut add = if is_address { i64::from(node.inst.offset()) } else { own.map_or(0, |o| o.1) };
        while let Some((base, more)) = sum(graph, v)
            && (add + more).abs() < FAR
            && !grouped[base]
        {
            (v, add) = (base, add + more);
        }
        let node = &mut graph.nodes[n];
        if v != node.reads[k].1[0] {
            node.reads[k].1[0] = v;
            node.inst.src[1] = Src::imm(add as i32 as u32);
        }
    }
}

/// Removes nodes that make nothing anyone needs.
pub fn sweep(graph: &mut Graph) {
    let mut uses = vec![0u32; graph.values.len()];
    let is_known = |graph: &Graph, v: V| graph.values[v].known.is_some();
    for n in graph.nodes.iter().filter(|n| !n.is_dead) {
        n.values().chain(n.tied.iter().map(|t| t.0)).for_each(|v| uses[v] += 1);
        n.state.iter().filter(|s| !is_known(graph, s.1)).for_each(|s| uses[s.1] += 1);
    }
    for n in (0..graph.nodes.len()).rev() {
        let node = &graph.nodes[n];
        if node.is_dead
            || node.writes().next().is_none()
            || !is_pure(graph, node)
            || node.writes().any(|v| uses[v] > 0)
        {
            continue;
        }
        let needs: Vec<V> = node.values().chain(node.tied.iter().map(|t| t.0)).collect();
        needs.into_iter().for_each(|v| uses[v] -= 1);
        graph.nodes[n].is_dead = true;
    }
}

/// A predicate that holds where any of up to three holds.
pub fn either(graph: &mut Graph, place: u32, first: (V, bool), more: &[(V, bool)]) -> (Node, V) {
    let mut inst = Inst::new(Op::Plop3).with_num(Field::Lut, 0xfe);
    inst.pd[0] = Pred(0);
    inst.ps = [PredUse::FALSE; 3];
    let mut reads = Vec::new();
    for (k, &(v, neg)) in std::iter::once(&first).chain(more).enumerate() {
        inst.ps[k] = PredUse { pred: Pred(0), neg };
        reads.push((Slot::Pred(k), vec![v]));
    }
    let mut node = Node::new(inst.canonical(), place, Kind::Plain);
    node.reads = reads;
    let v = graph.fresh(FRESH);
    node.pd[0] = Some(v);
    (node, v)
}

/// Makes a value the operand of a new instruction.
pub fn register(v: V, k: usize, neg: bool, inst: &mut Inst, reads: &mut Vec<(Slot, Vec<V>)>) {
    inst.src[k] = Src { neg, ..Src::reg(Reg(0)) };
    reads.push((Slot::Source(k), vec![v]));
}

/// A comparison of a value with a number, joined with a predicate.
pub fn compare(graph: &mut Graph, place: u32, cmp: Cmp, a: V, b: u32, with: Option<(Bool, V)>) -> (Node, V) {
    let mut inst = Inst::new(Op::Isetp).with(cmp).with(Sign::U32);
    let mut reads = Vec::new();
    register(a, 0, false, &mut inst, &mut reads);
    inst.src[1] = Src::imm(b);
    inst.pd[0] = Pred(0);
    if let Some((how, p)) = with {
        inst = inst.with(how);
        inst.ps[0] = PredUse::new(Pred(0));
        reads.push((Slot::Pred(0), vec![p]));
    }
    let mut node = Node::new(inst.canonical(), place, Kind::Plain);
    node.reads = reads;
    let v = graph.fresh(FRESH);
    node.pd[0] = Some(v);
    (node, v)
}
