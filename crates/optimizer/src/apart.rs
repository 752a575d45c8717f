//! Loads of what was loaded before, with stores between them that never hit it: the profile says so, and one check proves it for
//! all of them.

use crate::graph::{FRESH, FRESH_REGISTER, Graph, Kind, Node, Slot, V};
use crate::liveness::Set;
use crate::memory::{self, Address, Space, Touch};
use crate::profile::Profile;
use crate::simplify;
use crate::trace::Exit;
use crate::version::Kind as Assumed;
use isa::field::{Bool, Cmp, Field};
use isa::{Inst, Op, Operand, Pred, PredUse, Reg, Src};
use std::collections::BTreeSet;

/// Loads that must go for a check to be worth it.
const LEAST: usize = 3;

/// What stores with one base touch: from here to there.
struct Range {
    base: Vec<V>,
    low: i64,
    high: i64,
}

/// Puts a check where it pays; gives the pairs of store and load, by their places, that are known to be apart behind it.
pub fn assume(
    graph: &mut Graph,
    profile: &Profile,
    spoilt: &BTreeSet<Assumed>,
    live: &dyn Fn(u32) -> Set,
) -> BTreeSet<(u32, u32)> {
    let none = BTreeSet::new();
    let touches: Vec<Touch> = graph.nodes.iter().map(|n| memory::touch(graph, n)).collect();
    let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
    let (mut stores, mut loads) = (BTreeSet::new(), BTreeSet::new());
    let mut gained = 0;
    for n in (0..graph.nodes.len()).filter(|&n| !graph.nodes[n].is_dead) {
        match &touches[n] {
            Touch::Fence => open.clear(),
            Touch::Store(s) => {
                let node = &graph.nodes[n];
                open.retain_mut(|(l, between)| {
                    let Touch::Load(a) = &touches[*l] else { return false };
                    let load = graph.nodes[*l].place;
                    if !s.meets(a) {
                        return true;
                    }
                    let pair = (node.place, load);
                    let kind = Assumed::Apart { store: pair.0, load: pair.1 };
                    let fits = s.is_plain
                        && s.space == a.space
                        && matches!(s.space, Space::Global | Space::Shared)
                        && s.ureg == a.ureg
                        && s.base.len() == a.base.len()
                        && (1..=2).contains(&s.base.len())
                        && !profile.conflicts.contains_key(&pair)
                        && !spoilt.contains(&kind);
                    between.push(n);
                    fits
                });
            }
            Touch::Load(_) if graph.nodes[n].inst.guard == PredUse::TRUE => {
                let same = |m: usize| {
                    simplify::key(&graph.nodes[m]) == simplify::key(&graph.nodes[n])
                        && !graph.nodes[m].dst.is_empty()
                };
                match open.iter_mut().find(|(l, _)| same(*l)) {
                    Some((l, between)) => {
                        if !between.is_empty() {
                            gained += 1;
                            loads.insert(*l);
                            stores.extend(between.iter().copied());
                        }
                    }
                    None => open.push((n, Vec::new())),
                }
            }
            _ => {}
        }
    }
    if gained < LEAST {
        return none;
    }
    let address = |n: usize| match &touches[n] {
        Touch::Load(a) | Touch::Store(a) => Some(a.clone()),
        _ => None,
    };
    let stores: Vec<(u32, Address)> =
        stores.iter().filter_map(|&n| Some((graph.nodes[n].place, address(n)?))).collect();
    let mut reads: Vec<(u32, Address)> = Vec::new();
    for &n in &loads {
        reads.extend(address(n).map(|a| (graph.nodes[n].place, a)));
    }
    let mut ranges: Vec<Range> = Vec::new();
    for (_, s) in &stores {
        let (low, high) = (s.offset, s.offset + s.bytes);
        match ranges.iter_mut().find(|r| r.base == s.base) {
            Some(r) => (r.low, r.high) = (r.low.min(low), r.high.max(high)),
            None => ranges.push(Range { base: s.base.clone(), low, high }),
        }
    }
    // Behind the last of the addresses, before the first of the stores.
    let bases = ranges.iter().map(|r| &r.base).chain(reads.iter().map(|r| &r.1.base)).flatten();
    let at = bases.filter_map(|&v| graph.values[v].node).map(|n| n + 1).max().unwrap_or(0);
    let first_store =
        graph.nodes.iter().position(|n| !n.is_dead && stores.iter().any(|s| s.0 == n.place)).unwrap_or(0);
    if at > first_store || graph.nodes[at].within.is_some() || ranges.len() * reads.len() > 2 * gained {
        return none;
    }
    let place = graph.nodes[at].place;
    let mut nodes = Vec::new();
    let mut hit: Option<V> = None;
    for (_, load) in &reads {
        for range in ranges.iter().filter(|r| r.base.len() == load.base.len()) {
            hit = Some(overlap(graph, place, load, range, hit, &mut nodes));
        }
    }
    let Some(hit) = hit else { return none };
    let mut out = graph.way_out(at, Exit::of_check(place), hit, &live(place));
    let (vote, v) = graph.vote(place, (hit, false));
    out.reads[0].1[0] = v;
    let pairs: BTreeSet<(u32, u32)> = stores.iter().flat_map(|s| reads.iter().map(|r| (s.0, r.0))).collect();
    out.checks = pairs.iter().map(|&(store, load)| Assumed::Apart { store, load }).collect();
    nodes.extend([vote, out]);
    graph.insert(at, nodes);
    pairs
}

/// A sum of a value and another or a number, with a carry out or in.
fn add(
    graph: &mut Graph,
    place: u32,
    a: V,
    b: Result<V, u32>,
    carry: Option<V>,
    makes: bool,
) -> (Node, V, Option<V>) {
    let mut inst = Inst::new(Op::Iadd3).canonical();
    let mut reads = Vec::new();
    simplify::register(a, 0, false, &mut inst, &mut reads);
    match b {
        Ok(v) => simplify::register(v, 1, true, &mut inst, &mut reads),
        Err(x) => inst.src[1] = Src::imm(x),
    }
    inst.src[2].operand = Operand::Reg(Reg::RZ);
    inst.dst = Reg(0);
    if let Some(c) = carry {
        inst.set_field(Field::X, 1);
        inst.ps[0] = PredUse::new(Pred(0));
        reads.push((Slot::Pred(0), vec![c]));
    }
    let mut node = Node::new(inst, place, Kind::Plain);
    node.reads = reads;
    let v = graph.fresh(FRESH_REGISTER);
    node.dst = vec![v];
    let out = makes.then(|| graph.fresh(FRESH));
    if makes {
        node.inst.pd[0] = Pred(0);
        node.pd[0] = out;
    }
    (node, v, out)
}

/// A predicate that holds where a load meets a range of stores, or where `or` holds.
fn overlap(
    graph: &mut Graph,
    place: u32,
    load: &Address,
    range: &Range,
    or: Option<V>,
    out: &mut Vec<Node>,
) -> V {
    // They meet where the load's last byte lies less than this behind the first byte of the stores.
    let span = (range.high - range.low + load.bytes - 1) as u32;
    let shift = load.offset + load.bytes - 1 - range.low;
    let wide = load.base.len() == 2;
    let (node, low, carry) = add(graph, place, load.base[0], Ok(range.base[0]), None, wide);
    out.push(node);
    let mut high = None;
    if let Some(c) = carry {
        let (node, v, _) = add(graph, place, load.base[1], Ok(range.base[1]), Some(c), false);
        out.push(node);
        high = Some(v);
    }
    let (node, low, carry) = add(graph, place, low, Err(shift as u32), None, wide);
    out.push(node);
    if let (Some(v), Some(c)) = (high, carry) {
        let (node, v, _) = add(graph, place, v, Err((shift >> 32) as u32), Some(c), false);
        out.push(node);
        high = Some(v);
    }
    let (node, mut meets) = simplify::compare(graph, place, Cmp::Lt, low, span, None);
    out.push(node);
    if let Some(v) = high {
        let (node, p) = simplify::compare(graph, place, Cmp::Eq, v, 0, Some((Bool::And, meets)));
        out.push(node);
        meets = p;
    }
    let Some(or) = or else { return meets };
    let (node, v) = simplify::either(graph, place, (meets, false), &[(or, false)]);
    out.push(node);
    v
}
