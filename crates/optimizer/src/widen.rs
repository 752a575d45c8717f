//! Loads of neighbouring words become one wide load, where addresses were always seen to be aligned; a check proves that they are.

use crate::graph::{FRESH_REGISTER, Graph, Kind, Node, Slot, V};
use crate::liveness::Set;
use crate::memory::{self, Space, Touch};
use crate::order::{uregs_read, uregs_written};
use crate::profile::Profile;
use crate::simplify;
use crate::trace::Exit;
use crate::version::{Done, Kind as Assumed};
use isa::field::{Cmp, Field, Width};
use isa::{Inst, Op, Operand, PredUse, Reg, Src};
use std::collections::{BTreeMap, BTreeSet};

/// Loads that must go for a check to be worth it.
const LEAST: usize = 3;
/// Checks of a trace.
const MOST: usize = 32;
/// Homes of values from here on are of no unit: they only tell how values lie to each other.
pub const HOMELESS: usize = 240;

/// Loads from one base, by offset.
struct Row {
    like: (Inst, Vec<Vec<V>>),
    space: Space,
    members: BTreeMap<i64, usize>,
}

/// A wide load: its members by offset.
type Chunk = Vec<(i64, usize)>;

/// Puts wide loads in the place of others; what was done.
pub fn widen(
    graph: &mut Graph,
    registers: u32,
    profile: &Profile,
    spoilt: &BTreeSet<Assumed>,
    live: &dyn Fn(u32) -> Set,
) -> Vec<Done> {
    let mut done = Vec::new();
    if registers as usize > HOMELESS {
        return done;
    }
    let found = rows(graph).into_iter().filter_map(|row| chunks(graph, &row, profile, spoilt)).take(MOST);
    let mut found: Vec<Vec<Chunk>> = found.collect();
    // Ways out are made while every value still has its home.
    let first = |chunks: &[Chunk]| chunks.iter().flatten().map(|c| c.1).min().unwrap_or(0);
    let mut checks = Vec::new();
    found.retain(|chunks| {
        let check = check(graph, first(chunks), chunks, live);
        checks.extend(check.map(|nodes| (first(chunks), nodes)));
        checks.last().is_some_and(|c| c.0 == first(chunks))
    });
    let mut by = BTreeMap::new();
    for chunk in found.iter().flatten() {
        done.push(join(graph, chunk, &mut by));
    }
    // From the back, so that places stay.
    checks.sort_by_key(|c| std::cmp::Reverse(c.0));
    for (at, nodes) in checks {
        graph.insert(at, nodes);
    }
    graph.replace(&by);
    done
}

/// Loads that may stand where the first of them stands: nothing between them stores, leaves or waits.
fn rows(graph: &Graph) -> Vec<Row> {
    let grouped = graph.grouped();
    let (mut open, mut closed): (Vec<Row>, Vec<Row>) = (Vec::new(), Vec::new());
    for (n, node) in graph.nodes.iter().enumerate().filter(|(_, n)| !n.is_dead) {
        let touch = memory::touch(graph, node);
        if node.is_exit() || touch == Touch::Fence {
            closed.append(&mut open);
        }
        let ends = |row: &Row| {
            let first = row.members.values().next().map(|&m| &graph.nodes[m]);
            let changes = first.is_some_and(|m| uregs_read(m).any(|r| uregs_written(node).any(|w| w == r)));
            let stores =
                matches!(&touch, Touch::Store(s) if s.space == row.space || s.space == Space::Generic);
            changes || stores
        };
        let (ended, rest): (Vec<Row>, Vec<Row>) = open.drain(..).partition(ends);
        closed.extend(ended);
        open = rest;
        let Touch::Load(a) = &touch else { continue };
        let fits = matches!(node.inst.op, Op::Ldg | Op::Lds)
            && node.inst.get::<Width>() == Width::B32
            && node.inst.guard == PredUse::TRUE
            && node.within.is_none()
            && !a.base.is_empty()
            && matches!(node.dst[..], [v] if !grouped[v]);
        if !fits {
            continue;
        }
        let mut like = simplify::key(node);
        like.0.src[1] = Src::imm(0);
        match open.iter_mut().find(|r| r.like == like) {
            Some(row) => drop(row.members.entry(a.offset).or_insert(n)),
            None => open.push(Row { like, space: a.space, members: BTreeMap::from([(a.offset, n)]) }),
        }
    }
    closed.append(&mut open);
    closed
}

/// Wide loads of a row whose alignment one check can prove; none where too few loads would go.
fn chunks(graph: &Graph, row: &Row, profile: &Profile, spoilt: &BTreeSet<Assumed>) -> Option<Vec<Chunk>> {
    let is_aligned = |n: usize, bytes: u32| {
        let load = graph.nodes[n].place;
        let seen = profile.accesses.get(&load).filter(|a| a.executions > 0);
        let holds = seen.is_some_and(|a| a.alignment == 0 || a.alignment >= u64::from(bytes));
        holds && !spoilt.contains(&Assumed::Aligned { load, bytes })
    };
    let list: Chunk = row.members.iter().map(|(&o, &n)| (o, n)).collect();
    let of = |words: usize| {
        let bytes = 4 * words as i64;
        let mut found: Vec<Chunk> = Vec::new();
        let mut k = 0;
        while let Some(chunk) = list.get(k..k + words) {
            let is_row = chunk.windows(2).all(|w| w[1].0 == w[0].0 + 4);
            // All that one check proves lie alike.
            let alike = found.first().is_none_or(|f| (f[0].0 - chunk[0].0) % bytes == 0);
            if is_row && alike && is_aligned(chunk[0].1, bytes as u32) {
                found.push(chunk.to_vec());
                k += words;
            } else {
                k += 1;
            }
        }
        found
    };
    let gone = |list: &[Chunk]| list.iter().map(|c| c.len() - 1).sum::<usize>();
    let (quads, pairs) = (of(4), of(2));
    let best = if gone(&quads) >= gone(&pairs) { quads } else { pairs };
    (gone(&best) >= LEAST).then_some(best)
}

/// Makes a wide load of a chunk, where the first of its members stands.
fn join(graph: &mut Graph, chunk: &Chunk, by: &mut BTreeMap<V, V>) -> Done {
    let (offset, lowest) = chunk[0];
    let at = chunk.iter().map(|c| c.1).min().unwrap_or(lowest);
    let place = graph.nodes[lowest].place;
    let mut dst = Vec::new();
    for (k, &(_, n)) in chunk.iter().enumerate() {
        let old = graph.nodes[n].dst[0];
        let new = graph.fresh(HOMELESS + k);
        graph.values[new].known = graph.values[old].known;
        by.insert(old, new);
        dst.push(new);
        graph.nodes[n].is_dead = n != at;
    }
    let node = &mut graph.nodes[at];
    node.inst = node.inst.with(if chunk.len() == 4 { Width::B128 } else { Width::B64 });
    node.inst.src[1] = Src::imm(offset as i32 as u32);
    (node.place, node.dst, node.is_wide) = (place, dst, true);
    Done::Widened { place, loads: chunk.len() as u32 }
}

/// Nodes before another that leave where a lane's addresses are not aligned.
fn check(graph: &mut Graph, at: usize, chunks: &[Chunk], live: &dyn Fn(u32) -> Set) -> Option<Vec<Node>> {
    let bytes = 4 * chunks[0].len() as u32;
    let node = &graph.nodes[at];
    let (place, ureg) = (node.place, node.inst.address_ureg());
    let mut low = node.reads.iter().find(|r| r.0 == Slot::Source(0))?.1[0];
    let mut nodes = Vec::new();
    if let Some(u) = ureg {
        let mut add = Inst::new(Op::Iadd3).canonical();
        add.src[1].operand = Operand::UReg(u);
        add.src[2].operand = Operand::Reg(Reg::RZ);
        let (node, v) = made(graph, add, place, low)?;
        nodes.push(node);
        low = v;
    }
    let mut mask = Inst::new(Op::Lop3).with_num(Field::Lut, 0xc0);
    mask.src[1] = Src::imm(bytes - 1);
    mask.src[2].operand = Operand::Reg(Reg::RZ);
    let (node, rest) = made(graph, mask, place, low)?;
    nodes.push(node);
    let wanted = (-chunks[0][0].0).rem_euclid(i64::from(bytes)) as u32;
    let (node, wrong) = simplify::compare(graph, place, Cmp::Ne, rest, wanted, None);
    nodes.push(node);
    let (vote, any) = graph.vote(place, (wrong, false));
    let mut out = graph.way_out(at, Exit::of_check(place), any, &live(place));
    let load = |c: &Chunk| graph.nodes[c[0].1].place;
    out.checks = chunks.iter().map(|c| Assumed::Aligned { load: load(c), bytes }).collect();
    nodes.extend([vote, out]);
    nodes.iter_mut().for_each(|n| n.is_check = true);
    Some(nodes)
}

/// An instruction of one operand and what it makes; none where there is no such instruction.
fn made(graph: &mut Graph, mut inst: Inst, place: u32, from: V) -> Option<(Node, V)> {
    let mut reads = Vec::new();
    simplify::register(from, 0, false, &mut inst, &mut reads);
    inst.dst = Reg(0);
    let inst = inst.canonical();
    inst.encode().ok()?;
    let mut node = Node::new(inst, place, Kind::Plain);
    node.reads = reads;
    let v = graph.fresh(FRESH_REGISTER);
    node.dst = vec![v];
    Some((node, v))
}
