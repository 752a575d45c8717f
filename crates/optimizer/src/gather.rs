//! Ways out whose conditions are known from the start of a trace are taken there: all of them at once, before anything happened.
//!
//! Turns of a loop that were unrolled become one piece of straight code this way, with one check, so that loads of all turns can
//! be under way together.

use crate::graph::{Graph, Kind, Node, Slot, V};
use crate::liveness::Set;
use crate::memory::{self, Touch};
use crate::simplify;
use crate::trace::Exit;
use crate::version::Kind as Assumed;

/// Nodes that compute a value from what is there when the trace begins, if it can be had that way.
fn origin(graph: &Graph, v: V, grouped: &[bool], needed: &mut Vec<usize>) -> bool {
    let Some(n) = graph.values[v].node else { return true };
    if needed.contains(&n) {
        return true;
    }
    let node = &graph.nodes[n];
    let simple = simplify::is_pure(graph, node)
        && node.tied.is_empty()
        && !node.writes().any(|v| grouped[v])
        && !node.values().any(|v| grouped[v] && graph.values[v].node.is_some());
    if !simple || !node.values().all(|v| origin(graph, v, grouped, needed)) {
        return false;
    }
    needed.push(n);
    true
}

/// Moves ways out to the start where that helps; `live` is what the original needs at the trace's head.
pub fn gather(graph: &mut Graph, live: &Set) {
    let grouped = graph.grouped();
    let touches: Vec<bool> = graph.nodes.iter().map(|n| memory::touch(graph, n) != Touch::Nothing).collect();
    let Some(first) = graph.nodes.iter().zip(&touches).position(|(n, t)| *t && !n.is_dead) else { return };
    let mut needed = Vec::new();
    let mut found: Vec<(usize, Exit, V, bool)> = Vec::new();
    for n in first..graph.nodes.len() {
        let node = &graph.nodes[n];
        let Kind::Exit(exit) = node.kind else { continue };
        let Some((_, guard)) = node.reads.iter().find(|r| r.0 == Slot::Guard) else { continue };
        let is_branch = node.checks.iter().all(|c| matches!(c, Assumed::Branch { .. }));
        if node.is_dead || !is_branch || exit.beside {
            continue;
        }
        // The predicate itself, before any vote.
        let (mut v, mut neg) = (guard[0], node.inst.guard.neg);
        let vote = graph.values[v].node.filter(|&m| memory::is_own_vote(graph, &graph.nodes[m]));
        if let Some(m) = vote {
            (v, neg) = (graph.nodes[m].reads[0].1[0], graph.nodes[m].inst.ps[0].neg);
        }
        let mut with = needed.clone();
        if origin(graph, v, &grouped, &mut with) {
            needed = with;
            found.push((n, exit, v, neg));
        }
    }
    if found.is_empty() {
        return;
    }
    let place = graph.head;
    let mut conditions: Vec<(V, bool)> = Vec::new();
    for &(_, _, v, neg) in &found {
        if !conditions.contains(&(v, neg)) {
            conditions.push((v, neg));
        }
    }
    needed.sort_unstable();
    let mut top: Vec<Node> = needed.iter().map(|&n| graph.nodes[n].clone()).collect();
    let mut any = conditions[0];
    let mut rest = &conditions[1..];
    while !rest.is_empty() {
        let (now, later) = rest.split_at(rest.len().min(2));
        let (node, v) = simplify::either(graph, place, any, now);
        top.push(node);
        any = (v, false);
        rest = later;
    }
    let leaving = found[0].1;
    let exit = Exit { to: place, beside: true, ..leaving };
    let mut guard = any;
    if found.iter().any(|f| f.1.vote) {
        let (node, v) = graph.vote(place, any);
        top.push(node);
        guard = (v, false);
    }
    let mut out = graph.way_out(0, exit, guard.0, live);
    out.inst.guard.neg = guard.1;
    out.passed = found.iter().flat_map(|f| graph.nodes[f.0].passed.clone()).collect();
    out.checks = found.iter().flat_map(|f| graph.nodes[f.0].checks.clone()).collect();
    top.push(out);
    found.iter().for_each(|f| graph.nodes[f.0].is_dead = true);
    let shift = top.len();
    let old = std::mem::take(&mut graph.nodes);
    // Places before which convergence registers are set move along.
    let kept: Vec<bool> = (0..old.len()).map(|n| !needed.contains(&n)).collect();
    for c in &mut graph.converge {
        c.0 = shift + kept[..c.0].iter().filter(|k| **k).count();
    }
    let rest = old.into_iter().enumerate().filter(|(n, _)| kept[*n]).map(|(_, node)| node);
    graph.rearrange(top.into_iter().chain(rest).collect());
}
