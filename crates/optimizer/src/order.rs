//! The order of a trace's nodes: dependences, and list scheduling by what waits longest.

use crate::blocks::Blocks;
use crate::graph::{Graph, Kind, Node, Slot, V};
use crate::memory::{self, Touch};
use crate::version::Limits;
use isa::field::Width;
use isa::{Inst, Op, Operand, UReg, Unit};

/// Values that keep their registers' distance from each other: those that are read or written together, or one after the other in
/// place.
#[derive(Clone, Debug)]
pub struct Bundles {
    pub of: Vec<usize>,
}

impl Bundles {
    pub fn new(graph: &Graph) -> Bundles {
        let mut of: Vec<usize> = (0..graph.values.len()).collect();
        fn root(of: &mut [usize], mut v: usize) -> usize {
            while of[v] != v {
                of[v] = of[of[v]];
                v = of[v];
            }
            v
        }
        let mut join = |a: V, b: V| {
            let (a, b) = (root(&mut of, a), root(&mut of, b));
            let (low, high) = (a.min(b), a.max(b));
            of[high] = low;
        };
        for n in graph.nodes.iter().filter(|n| !n.is_dead) {
            n.reads.iter().for_each(|(_, g)| g.windows(2).for_each(|w| join(w[0], w[1])));
            n.dst.windows(2).for_each(|w| join(w[0], w[1]));
            n.tied.iter().for_each(|&(old, new)| join(old, new));
        }
        let of = (0..of.len()).map(|v| root(&mut of, v)).collect();
        Bundles { of }
    }
}

/// Cycles until a node's result can be used as an operand.
pub fn latency(node: &Node, limits: &Limits) -> u32 {
    match node.inst.op {
        Op::Ldg | Op::Ld | Op::Atomg | Op::Atom | Op::Tex | Op::Tld4 | Op::Txq => limits.global,
        Op::Lds if node.inst.get::<Width>() == Width::B128 => limits.shared + 9,
        Op::Ldl => 32,
        Op::Atoms => 41,
        Op::Shfl => 24,
        Op::S2r | Op::S2ur => 22,
        Op::Vote | Op::Elect | Op::Actmask | Op::R2ur => limits.vote,
        _ => match node.inst.unit() {
            Unit::Alu | Unit::Fma | Unit::Imad => 5,
            Unit::Half => 5,
            Unit::Fp64 => 8,
            Unit::Xu => 17,
            Unit::Uniform => 6,
            Unit::Lsu => limits.shared,
            Unit::Const => 29,
            Unit::Tex => limits.global,
            Unit::Branch | Unit::Misc => 14,
        },
    }
}

/// The pipe of an instruction, and the cycles for which it takes it.
pub fn pipe(i: &Inst) -> (usize, u32) {
    match i.unit() {
        Unit::Alu => (0, 2),
        Unit::Fma => (1, 1),
        Unit::Imad | Unit::Half => (2, 2),
        Unit::Fp64 => (3, 2),
        Unit::Xu => (4, 8),
        Unit::Lsu | Unit::Const | Unit::Tex => (5, 4),
        Unit::Uniform | Unit::Branch | Unit::Misc => (6, 1),
    }
}

/// Who must come before whom, and by how many cycles.
pub struct Dependences {
    pub before: Vec<Vec<(usize, u32)>>,
    pub after: Vec<Vec<(usize, u32)>>,
    /// Cycles from a node to the end.
    pub height: Vec<u32>,
}

pub fn uregs_read(node: &Node) -> impl Iterator<Item = u32> + '_ {
    let direct = node.inst.src.iter().filter_map(|s| match s.operand {
        Operand::UReg(r) if r != UReg::URZ => Some(u32::from(r.0)),
        _ => None,
    });
    let pair = |r: u32| [r, r + 1];
    let address = node.inst.address_ureg().map(|r| u32::from(r.0));
    direct.chain(address).flat_map(pair)
}

pub fn uregs_written(node: &Node) -> impl Iterator<Item = u32> + '_ {
    node.inst.writes_uniform().into_iter().flat_map(|(r, n)| (0..n).map(move |k| u32::from(r.0) + k))
}

/// May a node be executed though the trace is left before it: it only makes values, and cannot fail.
fn is_harmless(touch: &Touch) -> bool {
    *touch == Touch::Nothing
}

impl Dependences {
    pub fn new(graph: &Graph, bundles: &Bundles, blocks: &Blocks, limits: &Limits) -> Dependences {
        let count = graph.nodes.len();
        let mut d = Dependences {
            before: vec![Vec::new(); count],
            after: vec![Vec::new(); count],
            height: vec![0; count],
        };
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); graph.values.len()];
        let alive = || graph.nodes.iter().enumerate().filter(|(_, n)| !n.is_dead);
        for (n, node) in alive() {
            for (slot, group) in &node.reads {
                for &v in group {
                    if let Some(from) = graph.values[v].node {
                        let own = latency(&graph.nodes[from], limits);
                        d.add(from, n, if *slot == Slot::Guard { own.max(limits.guard) } else { own });
                    }
                }
            }
            for &(old, _) in &node.tied {
                if let Some(from) = graph.values[old].node {
                    d.add(from, n, latency(&graph.nodes[from], limits));
                }
            }
            for &(_, v) in &node.state {
                if let Some(from) = graph.values[v].node {
                    d.add(from, n, 1);
                }
            }
            node.needs().for_each(|v| readers[v].push(n));
        }
        d.in_place(graph, bundles, &readers);
        d.effects(graph, blocks);
        // Everything comes before the end.
        let end = count - 1;
        for (n, _) in alive().filter(|(n, _)| *n != end) {
            d.add(n, end, 1);
        }
        for n in (0..count).rev() {
            d.height[n] = d.after[n].iter().map(|&(m, c)| d.height[m] + c).max().unwrap_or(0);
        }
        d
    }

    fn add(&mut self, from: usize, to: usize, cycles: u32) {
        if from != to {
            debug_assert!(from < to, "{from} comes behind {to}");
            self.before[to].push((from, cycles));
            self.after[from].push((to, cycles));
        }
    }

    /// Values of a bundle that have the same home follow each other in one register.
    fn in_place(&mut self, graph: &Graph, bundles: &Bundles, readers: &[Vec<usize>]) {
        let mut last: std::collections::BTreeMap<(usize, usize), V> = std::collections::BTreeMap::new();
        let key = |v: V| (bundles.of[v], graph.values[v].home);
        for (v, value) in graph.values.iter().enumerate() {
            if value.node.is_none() {
                last.insert(key(v), v);
            }
        }
        for (n, node) in graph.nodes.iter().enumerate().filter(|(_, n)| !n.is_dead) {
            for v in node.writes() {
                if let Some(old) = last.insert(key(v), v) {
                    let made = graph.values[old].node;
                    made.into_iter()
                        .chain(readers[old].iter().copied())
                        .filter(|&m| m < n)
                        .for_each(|m| self.add(m, n, 1));
                }
            }
        }
    }

    /// Memory, lanes, uniform registers, and the ways out.
    fn effects(&mut self, graph: &Graph, blocks: &Blocks) {
        let touches: Vec<Touch> = graph.nodes.iter().map(|n| memory::touch(graph, n)).collect();
        for (n, node) in graph.nodes.iter().enumerate().filter(|(_, n)| !n.is_dead) {
            for m in 0..n {
                let earlier = &graph.nodes[m];
                if earlier.is_dead {
                    continue;
                }
                let is_exit = (earlier.is_exit(), node.is_exit());
                let ordered = match is_exit {
                    (true, true) => true,
                    (true, false) => match (&touches[n], &earlier.kind) {
                        (t, _) if is_harmless(t) => false,
                        (Touch::Load(_) | Touch::ReadOnly, Kind::Exit(exit)) => {
                            !self.may_rise(graph, blocks, exit.to, m, n)
                        }
                        _ => true,
                    },
                    (false, true) => !is_harmless(&touches[m]) || uregs_written(earlier).next().is_some(),
                    (false, false) => memory::conflict(&touches[m], &touches[n]),
                };
                if ordered || uniform_conflict(earlier, node) {
                    let cycles =
                        if uregs_written(earlier).any(|r| uregs_read(node).any(|x| x == r)) { 6 } else { 1 };
                    self.add(m, n, cycles);
                }
            }
        }
    }

    /// Whether a load may stand before an exit: whoever leaves there loads it too, from the same address.
    fn may_rise(&self, graph: &Graph, blocks: &Blocks, to: u32, exit: usize, load: usize) -> bool {
        let node = &graph.nodes[load];
        // The registers of the address are those of the exit.
        let same = node.reads.iter().all(|(_, group)| {
            group.iter().all(|&v| {
                let value = &graph.values[v];
                value.node.is_none_or(|at| at < exit) && {
                    let unit = value.home;
                    graph.nodes[exit].state.iter().any(|s| s.0 == unit && s.1 == v)
                }
            })
        });
        same && !node.is_wide && memory::is_certain(blocks, to, node.place)
    }
}

fn uniform_conflict(a: &Node, b: &Node) -> bool {
    uregs_written(a).any(|r| uregs_read(b).any(|x| x == r) || uregs_written(b).any(|x| x == r))
        || uregs_written(b).any(|r| uregs_read(a).any(|x| x == r))
}

/// Cycles that one warp takes for nodes in an order, alone in the machine.
pub fn cycles(graph: &Graph, d: &Dependences, order: &[usize]) -> u32 {
    let mut issued = vec![0u32; graph.nodes.len()];
    let mut free = [0u32; 7];
    let mut now = 0;
    for &n in order {
        let ready = d.before[n].iter().map(|&(m, c)| issued[m] + c).max().unwrap_or(0);
        let (unit, takes) = pipe(&graph.nodes[n].inst);
        let at = now.max(ready).max(free[unit]);
        issued[n] = at;
        free[unit] = at + takes;
        now = at + 1;
    }
    now
}

/// An order that tries to have no more than so many registers and predicates in use.
pub fn schedule(graph: &Graph, d: &Dependences, registers: i32, preds: i32) -> Vec<usize> {
    let count = graph.nodes.len();
    let mut waits: Vec<usize> = d.before.iter().map(Vec::len).collect();
    let mut ready_at = vec![0u32; count];
    let mut uses = vec![0i32; graph.values.len()];
    for n in graph.nodes.iter().filter(|n| !n.is_dead) {
        n.needs().for_each(|v| uses[v] += 1);
    }
    // What lives when the trace begins.
    let mut live = [0i32; 2];
    for (v, value) in graph.values.iter().enumerate() {
        if value.node.is_none() && uses[v] > 0 {
            live[usize::from(value.is_pred())] += 1;
        }
    }
    let mut ready: Vec<usize> = (0..count).filter(|&n| waits[n] == 0 && !graph.nodes[n].is_dead).collect();
    let mut order = Vec::with_capacity(count);
    let mut free = [0u32; 7];
    let mut now = 0u32;
    while !ready.is_empty() {
        let limit = [registers, preds];
        // What executing a node now does to the number of live values.
        let growth = |n: usize| {
            let node = &graph.nodes[n];
            let mut g = [0i32; 2];
            node.writes().for_each(|v| g[usize::from(graph.values[v].is_pred())] += i32::from(uses[v] > 0));
            let mut seen: Vec<V> = node.needs().collect();
            seen.sort_unstable();
            for group in seen.chunk_by(|a, b| a == b) {
                if uses[group[0]] == group.len() as i32 {
                    g[usize::from(graph.values[group[0]].is_pred())] -= 1;
                }
            }
            g
        };
        let start = |n: usize| ready_at[n].max(free[pipe(&graph.nodes[n].inst).0]).max(now);
        let fits = |n: usize| {
            let g = growth(n);
            (0..2).all(|k| g[k] <= 0 || live[k] + g[k] <= limit[k])
        };
        let pick = |list: &[usize]| {
            list.iter().copied().min_by_key(|&n| (start(n), std::cmp::Reverse(d.height[n]), n))
        };
        let fitting: Vec<usize> = ready.iter().copied().filter(|&n| fits(n)).collect();
        let chosen = pick(&fitting).or_else(|| {
            // Nothing fits: what adds least, in the order of the original.
            ready.iter().copied().min_by_key(|&n| {
                let g = growth(n);
                (g[0].max(0) + g[1].max(0), n)
            })
        });
        let Some(n) = chosen else { break };
        let g = growth(n);
        (0..2).for_each(|k| live[k] += g[k]);
        let at = start(n);
        let (unit, takes) = pipe(&graph.nodes[n].inst);
        free[unit] = at + takes;
        now = at + 1;
        graph.nodes[n].needs().for_each(|v| uses[v] -= 1);
        ready.retain(|&m| m != n);
        order.push(n);
        for &(m, c) in &d.after[n] {
            waits[m] -= 1;
            ready_at[m] = ready_at[m].max(at + c);
            if waits[m] == 0 {
                ready.push(m);
            }
        }
    }
    order
}
