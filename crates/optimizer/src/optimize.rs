//! From a block and its profile to a version of it.

use crate::assign;
use crate::blocks::{Block, Blocks};
use crate::emit::{self, Ready};
use crate::evaluate::Evaluator;
use crate::graph::{self, Graph};
use crate::liveness::{self, Set};
use crate::order::{self, Bundles, Dependences};
use crate::profile::Profile;
use crate::stable::Stable;
use crate::trace::{self, Trace};
use crate::version::{Done, Kind, Limits, Source, Version};
use crate::whole;
use crate::{apart, convert, fold, gather, simplify, specialise, widen};
use std::collections::BTreeSet;

/// Registers held back from the scheduler, from one try to the next: pairs and quads leave gaps.
const HELD_BACK: [i32; 6] = [1, 3, 6, 10, 14, 20];
/// Predicates for the scheduler: one stays for what copies may need.
const PREDICATES: i32 = isa::Pred::COUNT as i32 - 1;
/// Turns that loops are unrolled to, fewer where the code gets too long.
const TURNS: [usize; 3] = [4, 2, 1];
/// Cycles in a hundred that a version must save to be worth having.
const WORTH: u64 = 3;
/// Cycles that an execution must be shorter, for what caches lose when code is replaced.
const LEAST: u64 = 24;

/// Branches may go the other way so many times as often as other assumptions may fail.
const BRANCHES: u64 = 8;

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
    let context = Context {
        blocks,
        block: b,
        profile,
        limits,
        live: liveness::of_function(blocks),
        whole: whole::places(blocks, b),
        stable: Stable::new(blocks, b),
        spoilt,
    };
    let mut evaluator = Evaluator::new()?;
    let fits = |v: &Version| v.code.len() * 16 <= limits.code_bytes as usize;
    let mut version = TURNS.iter().find_map(|&turns| context.better(turns, &mut evaluator).filter(fits))?;
    // Made again, a version has to promise more than the last one did, unless what that assumed failed.
    if let Source::Last(last) = source
        && context.spoilt.is_empty()
        && version.gain <= last.gain
    {
        return None;
    }
    version.level = match source {
        Source::Original => 1,
        Source::Last(v) => v.level + 1,
    };
    Some(version)
}

/// Everything that versions of a block are made from.
struct Context<'a> {
    blocks: &'a Blocks,
    block: &'a Block,
    profile: &'a Profile,
    limits: &'a Limits,
    live: Vec<Set>,
    whole: Vec<bool>,
    stable: Stable,
    spoilt: BTreeSet<Kind>,
}

impl Context<'_> {
    /// The better one of a version with branches that become guarded code, and one without.
    fn better(&self, turns: usize, evaluator: &mut Evaluator) -> Option<Version> {
        let is_converted = |v: &Version| v.done.iter().any(|d| matches!(d, Done::Converted { .. }));
        let with = self.attempt(turns, true, evaluator);
        if with.as_ref().is_some_and(|v| !is_converted(v)) {
            return with;
        }
        let without = self.attempt(turns, false, evaluator);
        let gain = |v: &Option<Version>| v.as_ref().map_or(0, |v| v.gain);
        if gain(&with) > gain(&without) { with } else { without }
    }

    /// A version with loops unrolled to so many turns at most.
    fn attempt(&self, turns: usize, converts: bool, evaluator: &mut Evaluator) -> Option<Version> {
        let Context { blocks, block, profile, stable, spoilt, limits, .. } = self;
        let traces = trace::traces(blocks, block, profile, stable, spoilt, limits, converts, turns);
        let (mut before, mut after, mut work) = (0u64, 0u64, 0u64);
        let mut ready = Vec::new();
        for t in &traces {
            let (r, cost) = self.prepare(t, evaluator)?;
            before += t.weight * u64::from(cost.before);
            after += t.weight * u64::from(cost.after);
            work += r.graph.nodes.len() as u64;
            ready.push(r);
        }
        let mut version = emit::emit(self.blocks, self.block, &self.whole, &self.live, &ready)?;
        let gain = before.checked_sub(after)?;
        let registers = self.limits.registers.max(self.blocks.registers);
        if gain * 100 < before * WORTH || gain < LEAST * 1000 || version.registers > registers {
            return None;
        }
        version.gain = gain / 1000;
        version.work = work + version.code.len() as u64;
        Some(version)
    }

    fn live_at(&self, place: u32) -> Set {
        let at = place.checked_sub(self.blocks.start).map(|n| n as usize);
        at.and_then(|n| self.live.get(n)).copied().unwrap_or_else(liveness::everything)
    }

    /// Orders a trace and gives it registers.
    fn prepare<'a>(&self, trace: &'a Trace, evaluator: &mut Evaluator) -> Option<(Ready<'a>, Cost)> {
        let Context { blocks, limits, profile, .. } = *self;
        let live_at = |place: u32| self.live_at(place);
        let mut graph = graph::build(blocks, trace, &self.live)?;
        let before = as_it_stands(blocks, self.block, profile, trace, &graph, limits);
        let is_entry = trace.head == self.block.entry;
        let known = specialise::specialise(
            &graph,
            is_entry,
            &self.stable,
            profile,
            &self.spoilt,
            limits,
            &live_at,
            evaluator,
        );
        graph = known.unwrap_or(graph);
        let pairs = apart::assume(&mut graph, profile, &self.spoilt, &live_at);
        simplify::number(&mut graph, &|store, load| pairs.contains(&(store, load)));
        simplify::add_up(&mut graph);
        // Wide loads wait for their check: only where that is the shorter way.
        let mut wide = graph.clone();
        let done = widen::widen(&mut wide, blocks.registers, profile, &self.spoilt, &live_at);
        let narrow = self.settle(trace, graph, Vec::new());
        let wide = (!done.is_empty()).then(|| self.settle(trace, wide, done)).flatten();
        let best = [narrow, wide].into_iter().flatten().min_by_key(|r| r.1);
        best.map(|(ready, after)| (ready, Cost { before, after }))
    }

    /// Removes what is not needed, finds an order and registers; with the cycles that this takes.
    fn settle<'a>(&self, trace: &'a Trace, mut graph: Graph, done: Vec<Done>) -> Option<(Ready<'a>, u32)> {
        let Context { blocks, limits, .. } = *self;
        gather::gather(&mut graph, &self.live_at(trace.head));
        simplify::sweep(&mut graph);
        fold::settle(&mut graph);
        let bundles = Bundles::new(&graph);
        let d = Dependences::new(&graph, &bundles, blocks, limits);
        let source: Vec<usize> = (0..graph.nodes.len()).filter(|&n| !graph.nodes[n].is_dead).collect();
        let count = source.len();
        let mut best: Option<(u32, Vec<usize>, assign::Assignment)> = None;
        let mut consider = |order: Vec<usize>, graph: &Graph| {
            debug_assert_eq!(order.len(), count, "something waits for what never comes");
            if order.len() != count {
                return;
            }
            let Some(a) = assign::assign(graph, &bundles, &order, limits.registers) else { return };
            let end = graph.nodes.len() - 1;
            let moves = a.copies.get(&end).map_or(0, Vec::len) as u32;
            let cost = order::cycles(graph, &d, &order) + moves;
            if best.as_ref().is_none_or(|b| cost < b.0) {
                best = Some((cost, order, a));
            }
        };
        for held_back in HELD_BACK {
            consider(order::schedule(&graph, &d, limits.registers as i32 - held_back, PREDICATES), &graph);
        }
        consider(source, &graph);
        let (after, order, assignment) = best?;
        Some((Ready { trace, graph, order, assignment, done }, after))
    }
}

/// Assumptions of the last version that failed too often.
fn spoilt(profile: &Profile, source: Source, limits: &Limits) -> BTreeSet<Kind> {
    let Source::Last(last) = source else { return BTreeSet::new() };
    let failed = |kind: &Kind| profile.failures.get(&kind.to_string()).copied().unwrap_or(0);
    let too_often = |kind: &Kind| match *kind {
        // Whoever leaves at a branch comes back soon.
        Kind::Branch { place, .. } => {
            let checks = profile.branches.get(&place).map_or(0, |b| b.executions).max(1);
            failed(kind) * limits.failures_one_in > checks * BRANCHES
        }
        _ => failed(kind) * limits.failures_one_in > profile.entries,
    };
    last.assumptions.iter().map(|a| a.kind).filter(too_often).collect()
}

struct Cost {
    before: u32,
    after: u32,
}

/// Cycles that the original takes on the trace's way.
fn as_it_stands(
    blocks: &Blocks,
    block: &Block,
    profile: &Profile,
    trace: &Trace,
    graph: &Graph,
    limits: &Limits,
) -> u32 {
    let bundles = Bundles::new(graph);
    let d = Dependences::new(graph, &bundles, blocks, limits);
    let source: Vec<usize> = (0..graph.nodes.len()).collect();
    let parted = parted(blocks, block, profile, trace, limits);
    (order::cycles(graph, &d, &source) + overhead(blocks, trace, limits)).saturating_add_signed(parted)
}

/// Cycles that the original takes more, or fewer, than the same as guarded code where lanes part, and for what no lane runs.
fn parted(blocks: &Blocks, block: &Block, profile: &Profile, trace: &Trace, limits: &Limits) -> i32 {
    let mut sum = 0i64;
    for step in &trace.steps {
        // Instructions that no lane runs are issued all the same.
        if let trace::Step::Exit(e) = *step
            && e.is_off
            && let Some(places) = convert::guarded(blocks, block, e.place)
        {
            sum += convert::issue(blocks, &places) as i64;
        }
        if let trace::Step::Part { place, .. } = *step
            && let Some(h) = convert::hammock(blocks, block, place)
            && let Some(b) = profile.branches.get(&place)
        {
            let (before, after) = convert::costs(blocks, &h, b, limits);
            sum += (before as i64 - after as i64) / b.executions.max(1) as i64;
        }
    }
    sum as i32
}

/// Cycles that the original takes on the trace's way for what the trace does not have: jumps that are taken, and meeting points.
fn overhead(blocks: &Blocks, trace: &Trace, limits: &Limits) -> u32 {
    use crate::trace::Step;
    let mut cycles = 0;
    let mut last: Option<u32> = None;
    let mut is_parted = false;
    for step in &trace.steps {
        let place = match *step {
            Step::Run(place) => place,
            Step::Exit(e) => e.place,
            // What parting takes is counted by itself.
            Step::Part { .. } | Step::Turn | Step::Meet => {
                is_parted = !matches!(step, Step::Meet);
                last = None;
                continue;
            }
        };
        if is_parted {
            continue;
        }
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
