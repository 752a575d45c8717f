//! Values that were the same in all lanes whenever they were looked at are taken for known; one check proves it.

use crate::evaluate::Evaluator;
use crate::fold;
use crate::graph::{Graph, Node, V};
use crate::liveness::Set;
use crate::memory::{self, Touch};
use crate::profile::{Profile, Where};
use crate::simplify;
use crate::stable::Stable;
use crate::trace::Exit;
use crate::version::{Kind as Assumed, Limits};
use isa::PredUse;
use isa::field::Cmp;
use std::collections::BTreeSet;

/// Executions before a value is thought to be known.
const SEEN: u64 = 4;
/// Instructions that must go for each one that checks.
const LEAST: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Candidate {
    value: V,
    at: Where,
    is: u32,
}

/// Assumes what pays; gives the graph with its checks and everything that follows, or none.
pub fn specialise(
    graph: &Graph,
    is_entry: bool,
    stable: &Stable,
    profile: &Profile,
    spoilt: &BTreeSet<Assumed>,
    limits: &Limits,
    live: &dyn Fn(u32) -> Set,
    evaluator: &mut Evaluator,
) -> Option<Graph> {
    let mut chosen = candidates(graph, is_entry, stable, profile, spoilt, limits);
    let all = graph.nodes.len();
    let mut best = size(graph, &chosen, evaluator)?;
    for c in chosen.clone() {
        let without: Vec<Candidate> = chosen.iter().copied().filter(|x| *x != c).collect();
        if let Some(n) = size(graph, &without, evaluator)
            && n < best + LEAST
        {
            (chosen, best) = (without, n);
        }
    }
    // The vote and the branch cost too.
    if chosen.is_empty() || best + LEAST * (chosen.len() + 2) > all {
        return None;
    }
    let mut result = graph.clone();
    check(&mut result, &chosen, live);
    chosen.iter().for_each(|c| result.values[c.value].known = Some(c.is));
    fold::fold(&mut result, evaluator).then_some(result)
}

fn candidates(
    graph: &Graph,
    is_entry: bool,
    stable: &Stable,
    profile: &Profile,
    spoilt: &BTreeSet<Assumed>,
    limits: &Limits,
) -> Vec<Candidate> {
    let constant = |at: Where| {
        let v = profile.values.get(&at)?;
        let holds = v.executions >= SEEN && v.is_constant(limits.failures_one_in);
        (holds && !spoilt.contains(&Assumed::Equal(at, v.last))).then_some(v.last)
    };
    let mut found = Vec::new();
    for (v, value) in graph.values.iter().enumerate() {
        if is_entry && value.node.is_none() && value.home < 255 && stable.units.has(value.home) {
            let at = Where::Register(value.home as u8);
            found.extend(constant(at).map(|is| Candidate { value: v, at, is }));
        }
    }
    let lasting = lasting(graph, stable, is_entry);
    for node in &graph.nodes {
        let is_load = matches!(memory::touch(graph, node), Touch::Load(_) | Touch::ReadOnly);
        let lasts = node.values().all(|v| lasting[v]);
        if is_load && lasts && node.inst.guard == PredUse::TRUE && node.dst.len() == 1 {
            let at = Where::Loaded(node.place);
            found.extend(constant(at).map(|is| Candidate { value: node.dst[0], at, is }));
        }
    }
    found
}

/// For each value, whether it follows from what stays the same each time that the block is run.
fn lasting(graph: &Graph, stable: &Stable, is_entry: bool) -> Vec<bool> {
    let starts = |home: usize| is_entry && stable.units.has(home);
    let mut lasting: Vec<bool> = graph.values.iter().map(|v| v.node.is_none() && starts(v.home)).collect();
    for node in graph.nodes.iter().filter(|n| simplify::is_pure(graph, n)) {
        let from = node.values().chain(node.tied.iter().map(|t| t.0)).all(|v| lasting[v]);
        node.writes().for_each(|v| lasting[v] = from);
    }
    lasting
}

/// Instructions that are left with these values known.
fn size(graph: &Graph, known: &[Candidate], evaluator: &mut Evaluator) -> Option<usize> {
    let mut trial = graph.clone();
    known.iter().for_each(|c| trial.values[c.value].known = Some(c.is));
    if !fold::fold(&mut trial, evaluator) {
        return None;
    }
    simplify::sweep(&mut trial);
    Some(trial.nodes.iter().filter(|n| !n.is_dead).count())
}

/// Puts checks in: of registers at the start, of what is loaded before it is first used.
fn check(graph: &mut Graph, chosen: &[Candidate], live: &dyn Fn(u32) -> Set) {
    let (start, loads): (Vec<Candidate>, Vec<Candidate>) =
        chosen.iter().partition(|c| matches!(c.at, Where::Register(_)));
    let mut groups: Vec<(usize, Vec<Candidate>)> = Vec::new();
    for c in loads {
        let made = graph.values[c.value].node.unwrap_or(0);
        let used = graph.nodes.iter().position(|n| n.needs().any(|v| v == c.value));
        let mut used = used.unwrap_or(graph.nodes.len() - 1).max(made + 1);
        // Not where lanes have parted: before that.
        let within = graph.nodes[used].within;
        while within.is_some() && used > made + 1 && graph.nodes[used - 1].within == within {
            used -= 1;
        }
        match groups.last_mut().filter(|g| made < g.0) {
            Some(g) => {
                g.0 = g.0.min(used);
                g.1.push(c);
            }
            None => groups.push((used, vec![c])),
        }
    }
    // From the back, so that places stay.
    for (at, group) in groups.into_iter().rev().chain((!start.is_empty()).then_some((0, start))) {
        let node = &graph.nodes[at];
        let place = if at == 0 { graph.head } else { node.within.unwrap_or(node.place) };
        let mut nodes: Vec<Node> = Vec::new();
        let mut wrong: Option<V> = None;
        // Three at a time, so that the last one waits for few.
        for few in group.chunks(2) {
            let mut all = Vec::new();
            for c in few {
                let (node, p) = simplify::compare(graph, place, Cmp::Ne, c.value, c.is, None);
                nodes.push(node);
                all.push((p, false));
            }
            all.extend(wrong.map(|p| (p, false)));
            wrong = Some(if all.len() == 1 {
                all[0].0
            } else {
                let (node, p) = simplify::either(graph, place, all[0], &all[1..]);
                nodes.push(node);
                p
            });
        }
        let Some(wrong) = wrong else { continue };
        let (vote, v) = graph.vote(place, (wrong, false));
        nodes.push(vote);
        let mut out = graph.way_out(at, Exit::of_check(place), v, &live(place));
        out.checks = group.iter().map(|c| Assumed::Equal(c.at, c.is)).collect();
        nodes.push(out);
        nodes.iter_mut().for_each(|n| n.is_check = true);
        graph.insert(at, nodes);
    }
}
