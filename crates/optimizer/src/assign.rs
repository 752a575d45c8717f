//! Registers for the values of a trace in its final order.
//!
//! Values that are there when the trace begins are in their homes, and what is live at its end has to be there again; a way out in
//! between gets what it needs by copies that only those who leave execute. Everything else may be anywhere.

use crate::graph::{FRESH, FRESH_REGISTER, Graph, V};
use crate::liveness::PREDICATES;
use crate::order::Bundles;
use crate::widen::HOMELESS;
use isa::{Inst, Op, Operand, Pred, PredUse, Reg, Src};
use std::collections::BTreeMap;

/// Where a copy comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum From {
    Unit(usize),
    Known(u32),
}

pub struct Assignment {
    /// The unit of each value.
    pub unit: Vec<usize>,
    /// Copies before the end, and those of each way out by its node.
    pub copies: BTreeMap<usize, Vec<Inst>>,
}

/// Times in which a unit is taken: first, last, by which value. Operands are read at even times, results written at odd ones.
type Taken = Vec<(u32, u32, V)>;

struct Times {
    made: Vec<u32>,
    last: Vec<u32>,
}

pub fn assign(graph: &Graph, bundles: &Bundles, order: &[usize], registers: u32) -> Option<Assignment> {
    let end_node = graph.nodes.len() - 1;
    let mut at = vec![0u32; graph.nodes.len()];
    for (n, &node) in order.iter().enumerate() {
        at[node] = n as u32 + 1;
    }
    // Copies stand before the end.
    at[end_node] += 1;
    let end = at[end_node];
    let count = graph.values.len();
    let mut times = Times { made: vec![0; count], last: vec![0; count] };
    let mut is_used = vec![false; count];
    for (v, value) in graph.values.iter().enumerate() {
        if let Some(n) = value.node {
            times.made[v] = 2 * at[n] + 1;
            is_used[v] = !graph.nodes[n].is_dead;
        }
        times.last[v] = times.made[v];
    }
    for (n, node) in graph.nodes.iter().enumerate().filter(|(_, n)| !n.is_dead) {
        let now = 2 * at[n];
        for v in node.values().chain(node.tied.iter().map(|t| t.0)) {
            times.last[v] = times.last[v].max(now);
            is_used[v] = true;
        }
        for &(_, v) in &node.state {
            times.last[v] = times.last[v].max(if n == end_node { now - 2 } else { now });
            is_used[v] = true;
        }
    }
    let mut taken: Vec<Taken> = vec![Vec::new(); PREDICATES + 8];
    let final_state = &graph.nodes[end_node].state;
    for &(unit, v) in final_state {
        taken[unit].push((2 * end - 1, 2 * end + 1, v));
    }
    for &(unit, _) in &graph.nodes[end_node].constants {
        taken[unit].push((2 * end - 1, 2 * end + 1, usize::MAX));
    }
    let mut members: BTreeMap<usize, Vec<V>> = BTreeMap::new();
    for v in (0..count).filter(|&v| is_used[v]) {
        members.entry(bundles.of[v]).or_default().push(v);
    }
    let mut lists: Vec<Vec<V>> = members.into_values().collect();
    let is_fixed = |list: &[V]| list.iter().any(|&v| graph.values[v].node.is_none());
    lists.sort_by_key(|l| (!is_fixed(l), l.iter().map(|&v| times.made[v]).min(), l[0]));
    let mut unit = vec![usize::MAX; count];
    for list in &lists {
        let free = |units: &dyn Fn(V) -> usize| {
            list.iter().all(|&v| {
                let (from, to) = (times.made[v], times.last[v].max(times.made[v]));
                taken[units(v)].iter().all(|&(a, b, who)| who == v || b < from || to < a)
            })
        };
        let place: Vec<usize> = if is_fixed(list) {
            let homes = |v: V| graph.values[v].home;
            if !free(&homes) {
                return None;
            }
            list.iter().map(|&v| homes(v)).collect()
        } else {
            find(graph, list, registers, final_state, &free)?
        };
        for (&v, &u) in list.iter().zip(&place) {
            unit[v] = u;
            taken[u].push((times.made[v], times.last[v].max(times.made[v]), v));
        }
    }
    let mut copies = BTreeMap::new();
    for (n, node) in graph
        .nodes
        .iter()
        .enumerate()
        .filter(|(_, n)| !(n.is_dead || n.state.is_empty() && n.constants.is_empty()))
    {
        let moves: Vec<(usize, From)> = node
            .state
            .iter()
            .map(|&(to, v)| (to, From::Unit(unit[v])))
            .filter(|&(to, from)| from != From::Unit(to))
            .chain(node.constants.iter().map(|&(to, x)| (to, From::Known(x))))
            .collect();
        // Units that nobody needs where the copies are made.
        let now = 2 * at[n];
        let busy = |u: usize| taken[u].iter().any(|&(a, b, _)| a <= now + 1 && now <= b + 2);
        let spare = (0..registers as usize).find(|&u| {
            !busy(u) && node.state.iter().all(|s| s.0 != u) && node.constants.iter().all(|s| s.0 != u)
        });
        let spare_pred = (PREDICATES..PREDICATES + 7).find(|&u| {
            !busy(u) && node.state.iter().all(|s| s.0 != u) && node.constants.iter().all(|s| s.0 != u)
        });
        copies.insert(n, parallel(moves, spare, spare_pred)?);
    }
    Some(Assignment { unit, copies })
}

/// A place for values that keep their distance.
fn find(
    graph: &Graph,
    list: &[V],
    registers: u32,
    final_state: &[(usize, V)],
    free: &dyn Fn(&dyn Fn(V) -> usize) -> bool,
) -> Option<Vec<usize>> {
    let values = |v: V| &graph.values[v];
    if let [v] = *list {
        let (low, high) =
            if values(v).is_pred() { (PREDICATES, PREDICATES + 7) } else { (0, registers as usize) };
        let wanted = final_state.iter().find(|s| s.1 == v).map(|s| s.0);
        let home = values(v).home;
        let own = (home != FRESH && home != FRESH_REGISTER && home < high).then_some(home);
        let found = wanted.into_iter().chain(own).chain(low..high).find(|&u| u < high && free(&|_| u))?;
        return Some(vec![found]);
    }
    let homes: Vec<usize> = list.iter().map(|&v| values(v).home).collect();
    if values(list[0]).is_pred() {
        // Predicates are only tied to themselves.
        let found = std::iter::once(homes[0]).chain(PREDICATES..PREDICATES + 7).find(|&u| free(&|_| u))?;
        return Some(vec![found; list.len()]);
    }
    // The distance moved keeps every alignment.
    let align = 4;
    let lowest = homes.iter().copied().min()? / align * align;
    let width = homes.iter().copied().max()? - lowest + 1;
    let one = homes.iter().all(|h| *h == homes[0]);
    if one {
        let found = std::iter::once(homes[0]).chain(0..registers as usize).find(|&u| free(&|_| u))?;
        return Some(vec![found; list.len()]);
    }
    let step = if width <= 2 || homes.iter().all(|h| h / 2 == homes[0] / 2) { 2 } else { align };
    let base = if step == 2 { homes.iter().copied().min()? / 2 * 2 } else { lowest };
    let width = homes.iter().copied().max()? - base + 1;
    let starts = std::iter::once(base).chain((0..registers as usize).step_by(step));
    let found = starts
        .filter(|s| s + width <= registers as usize || (*s == base && base < HOMELESS))
        .find(|s| free(&|v| values(v).home - base + s))?;
    Some(homes.iter().map(|h| h - base + found).collect())
}

/// Copies that happen at once, as instructions one after the other.
fn parallel(
    mut moves: Vec<(usize, From)>,
    spare: Option<usize>,
    spare_pred: Option<usize>,
) -> Option<Vec<Inst>> {
    let mut out = Vec::new();
    while !moves.is_empty() {
        let is_read = |u: usize, moves: &[(usize, From)]| moves.iter().any(|m| m.1 == From::Unit(u));
        if let Some(n) = moves.iter().position(|m| !is_read(m.0, &moves)) {
            let (to, from) = moves.remove(n);
            out.push(copy(to, from)?);
            continue;
        }
        // A ring: one of them waits in a spare unit.
        let (_, From::Unit(first)) = moves[0] else { return None };
        let via = if first >= PREDICATES { spare_pred? } else { spare? };
        out.push(copy(via, From::Unit(first))?);
        for m in moves.iter_mut().filter(|m| m.1 == From::Unit(first)) {
            m.1 = From::Unit(via);
        }
    }
    Some(out)
}

fn copy(to: usize, from: From) -> Option<Inst> {
    let mut inst = if to >= PREDICATES {
        let mut i = Inst::new(Op::Plop3);
        // True where the first source is.
        i.set_field(isa::field::Field::Lut, 0xf0);
        i.pd[0] = Pred((to - PREDICATES) as u8);
        i.ps[0] = match from {
            From::Unit(u) => PredUse::new(Pred((u - PREDICATES) as u8)),
            From::Known(0) => PredUse::FALSE,
            From::Known(_) => PredUse::TRUE,
        };
        i
    } else {
        let mut i = Inst::new(Op::Mov);
        i.dst = Reg(to as u8);
        i.src[1] = match from {
            From::Unit(u) => Src::reg(Reg(u as u8)),
            From::Known(0) => Src { operand: Operand::Reg(Reg::RZ), ..Src::NONE },
            From::Known(x) => Src::imm(x),
        };
        i
    };
    inst = inst.canonical();
    inst.check().is_ok().then_some(inst)
}
