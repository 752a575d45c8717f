//! From a block and its profile to a version of it.

use crate::assign;
use crate::blocks::Blocks;
use crate::emit::{self, Ready};
use crate::graph::{self, Graph};
use crate::liveness::{self, Set};
use crate::order::{self, Bundles, Dependences};
use crate::profile::Profile;
use crate::trace::{self, Trace};
use crate::version::{Kind, Limits, Source, Version};
use crate::whole;
use std::collections::BTreeSet;

/// Registers held back from the scheduler, from one try to the next: pairs and quads leave gaps.
const HELD_BACK: [i32; 6] = [1, 3, 6, 10, 14, 20];
/// Cycles in a hundred that a version must save to be worth having.
const WORTH: u64 = 3;

/// Makes a better version of a block; none where there is nothing to gain.
pub fn optimize(
    blocks: &Blocks,
    block: u32,
    profile: &Profile,
    source: Source,
    limits: &Limits,
) -> Option<Version> {
    let b = blocks.blocks.get(block as usize)?;
    if profile.entries == 0 || !b.is_whole {
        return None;
    }
    let spoilt = spoilt(profile, source, limits);
    let live = liveness::of_function(blocks);
    let whole = whole::places(blocks, b);
    let traces = trace::traces(blocks, b, profile, &spoilt);
    let (mut before, mut after, mut work) = (0u64, 0u64, 0u64);
    let mut ready = Vec::new();
    for t in &traces {
        let (r, cost) = prepare(blocks, t, &live, limits)?;
        before += t.weight * u64::from(cost.before);
        after += t.weight * u64::from(cost.after);
        work += r.graph.nodes.len() as u64;
        ready.push(r);
    }
    let mut version = emit::emit(blocks, b, &whole, &live, &ready)?;
    let gain = before.checked_sub(after)?;
    if gain * 100 < before * WORTH
        || version.code.len() * 16 > limits.code_bytes as usize
        || version.registers > limits.registers.max(blocks.registers)
    {
        return None;
    }
    version.gain = gain / 1000;
    version.work = work + version.code.len() as u64;
    version.level = match source {
        Source::Original => 1,
        Source::Last(v) => v.level + 1,
    };
    Some(version)
}

/// Ways of branches that were assumed and failed too often.
fn spoilt(profile: &Profile, source: Source, limits: &Limits) -> BTreeSet<(u32, bool)> {
    let Source::Last(last) = source else { return BTreeSet::new() };
    let failed = |kind: &Kind| profile.failures.get(&kind.to_string()).copied().unwrap_or(0);
    last.assumptions
        .iter()
        .filter_map(|a| match a.kind {
            Kind::Branch { place, taken } => {
                let checks = profile.branches.get(&place).map_or(0, |b| b.executions).max(1);
                (failed(&a.kind) * limits.failures_one_in > checks * 8).then_some((place, taken))
            }
            _ => None,
        })
        .collect()
}

struct Cost {
    before: u32,
    after: u32,
}

/// Orders a trace and gives it registers.
fn prepare<'a>(
    blocks: &Blocks,
    trace: &'a Trace,
    live: &[Set],
    limits: &Limits,
) -> Option<(Ready<'a>, Cost)> {
    let graph = graph::build(blocks, trace, live)?;
    let bundles = Bundles::new(&graph);
    let d = Dependences::new(&graph, &bundles, blocks, limits);
    let source: Vec<usize> = (0..graph.nodes.len()).filter(|&n| !graph.nodes[n].is_dead).collect();
    let before = order::cycles(&graph, &d, &source) + overhead(blocks, trace, limits);
    let mut best: Option<(u32, Vec<usize>, assign::Assignment)> = None;
    let mut consider = |order: Vec<usize>, graph: &Graph| {
        let Some(a) = assign::assign(graph, &bundles, &order, limits.registers) else { return false };
        let end = graph.nodes.len() - 1;
        let moves = a.copies.get(&end).map_or(0, Vec::len) as u32;
        let cost = order::cycles(graph, &d, &order) + moves;
        if best.as_ref().is_none_or(|b| cost < b.0) {
            best = Some((cost, order, a));
        }
        true
    };
    for held_back in HELD_BACK {
        let order = order::schedule(&graph, &d, limits.registers as i32 - held_back, 6);
        consider(order, &graph);
    }
    consider(source, &graph);
    let (after, order, assignment) = best?;
    Some((Ready { trace, graph, order, assignment }, Cost { before, after }))
}

/// Cycles that the original takes on the trace's way for what the trace does not have: jumps that are taken, and meeting points.
fn overhead(blocks: &Blocks, trace: &Trace, limits: &Limits) -> u32 {
    use crate::trace::Step;
    let mut cycles = 0;
    let mut last: Option<u32> = None;
    for step in &trace.steps {
        let place = match *step {
            Step::Run(place) => place,
            Step::Exit(e) => e.place,
        };
        if last.is_some_and(|l| l + 1 != place) {
            cycles += limits.branch;
        }
        if let Some(i) = blocks.inst(place)
            && i.op.row().fields.contains(&isa::field::Field::Bar4)
        {
            cycles += 2;
        }
        last = Some(place);
    }
    cycles
}
