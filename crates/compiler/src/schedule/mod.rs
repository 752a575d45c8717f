//! Instruction scheduling: the order of the instructions of each block, and what goes with it.
//!
//! | module | holds |
//! | --- | --- |
//! | [`latency`] | cycles until a result can be read |
//! | [`effects`] | what keeps instructions in order beyond registers |
//! | [`graph`] | dependences |
//! | [`cluster`] | accesses of a phase stand together |
//! | [`order`] | list scheduling from the end: few registers |
//! | [`plan`], [`forward`] | list scheduling from the start, cycle by cycle: short waits |
//! | [`estimate`] | what an order costs, with the warps that its registers leave room for |
//! | [`verify`] | a check that an order computes the same |
//! | [`reuse`] | operands that the register-file cache keeps |
//!
//! Several orders are found for a region, from its end and from its start, within fewer and more registers; that with the
//! fewest cycles for one warp is taken, where a register counts as two.
//!
//! The scheduler runs on virtual registers after copies were merged, so that no order it finds brings a copy back. It may use
//! as many registers as leave the SM full of warps, which is what NVIDIA's assembler does; a function that needs more as it
//! stands keeps below the step of occupancy that it is on. What no order can keep in registers is
//! spilled first, and the loads and stores are scheduled with the rest. Where every order would pass that step or make the
//! allocator spill, orders of the next steps are compared with that of the source by what they cost.

mod cluster;
mod effects;
mod estimate;
mod forward;
mod graph;
mod latency;
mod order;
mod plan;
pub mod reuse;
mod verify;

use crate::allocate::{self, Allocation, Choice, Starts};
use crate::mark_phases::Phases;
use crate::mir::{MBlock, MFunction, MInst, MTerm, VReg};
use estimate::Estimate;
use forward::Budget;
use graph::{Builder, Units};
use isa::Op;
use order::{Living, Pressure};
use plan::Planner;

/// Registers a thread may have for an SM to hold all the warps it can: 65,536 for 2,048 threads.
const FULL_OCCUPANCY: u32 = 32;
/// Registers are given out in eights a thread.
const STEP: u32 = 8;
/// Steps further than the first that are tried where no order fits that.
const FURTHER_STEPS: u32 = 2;
/// One predicate stays for what allocation may need.
const PREDICATES: i32 = isa::Pred::COUNT as i32 - 1;
/// What is tried, in turn: registers held back from the scheduler, since pairs and quads leave gaps, and how registers are
/// chosen for its order.
const ATTEMPTS: [(u32, &[fn(u32) -> Choice]); 4] = [
    (1, &[Choice::Rested, |_| Choice::Lowest, Choice::Snug, |_| Choice::VectorsFirst]),
    (2, &[Choice::Snug, |_| Choice::VectorsFirst]),
    (4, &[|_| Choice::Lowest, Choice::Snug, |_| Choice::VectorsFirst]),
    (8, &[|_| Choice::Lowest, |_| Choice::VectorsFirst]),
];

/// Schedules and allocates a function whose copies are merged; `limit` general registers may be used, and `starts` is what lives
/// where its blocks start.
pub fn schedule_and_allocate(f: &mut MFunction, limit: u32, starts: Starts) -> Result<Allocation, String> {
    let mut outs = Outs::new(f, starts);
    let mut pressure = source_pressure(f, &outs);
    let mut as_it_stands = None;
    if !pressure.fits(Pressure { registers: limit as i32, preds: isa::Pred::COUNT as i32 }) {
        // More lives than there are registers, so some of it is spilled in any order: the scheduler sees the loads and stores.
        as_it_stands = Some(allocate::assign(f, limit, Choice::Lowest)?);
        let starts = allocate::starts(f);
        outs = Outs::new(f, starts);
        pressure = source_pressure(f, &outs);
    }
    let source = f.clone();
    let needed = pressure.registers.max(0) as u32;
    let mut step = needed.max(FULL_OCCUPANCY).next_multiple_of(STEP).min(limit);
    if let Some((order, allocation)) = attempt(&source, &outs, limit, step, &ATTEMPTS) {
        *f = order;
        return Ok(allocation);
    }
    let as_it_stands = match as_it_stands {
        Some(allocation) => allocation,
        None => allocate::assign(f, limit, Choice::Lowest)?,
    };
    // An order of a further step hides more latency, with fewer warps beside each.
    let cost = estimate(&source, &outs).cost(as_it_stands.count);
    for _ in 0..FURTHER_STEPS {
        if step == limit {
            break;
        }
        step = (step + STEP).min(limit);
        if let Some((order, allocation)) = attempt(&source, &outs, limit, step, &ATTEMPTS[..1])
            && estimate(&order, &outs).cost(allocation.count) < cost
        {
            *f = order;
            return Ok(allocation);
        }
    }
    Ok(as_it_stands)
}

/// A function in an order with which it has its place in `step` registers.
fn attempt(
    source: &MFunction,
    outs: &Outs,
    limit: u32,
    step: u32,
    attempts: &[(u32, &[fn(u32) -> Choice])],
) -> Option<(MFunction, Allocation)> {
    for (n, (held_back, choices)) in attempts.iter().enumerate() {
        // With more held back, orders come nearer to the source's: where that does not fit, they are not tried.
        if n == 1 && !fits_as_it_stands(source, outs, limit, step) {
            break;
        }
        let mut f = source.clone();
        let registers = step.saturating_sub(*held_back) as i32;
        schedule(&mut f, outs, Pressure { registers, preds: PREDICATES });
        let live = allocate::ranges(&f, &outs.starts);
        for choice in *choices {
            if let Some(allocation) = allocate::assign_within(&f, &live, limit, step, choice(step)) {
                return Some((f, allocation));
            }
        }
    }
    None
}

/// A function fits so many registers in the order that it has.
fn fits_as_it_stands(f: &MFunction, outs: &Outs, limit: u32, step: u32) -> bool {
    let live = allocate::ranges(f, &outs.starts);
    let fits = |choice: Choice| allocate::assign_within(f, &live, limit, step, choice).is_some();
    [Choice::Lowest, Choice::Snug(step)].into_iter().any(fits)
}

/// What lives at the end of each block.
struct Outs {
    starts: Starts,
    /// The units of this scheduler by the units of the allocator.
    names: Vec<u32>,
}

impl Outs {
    fn new(f: &MFunction, starts: Starts) -> Outs {
        let units = Units::new(f);
        let mut names = vec![0; starts.total()];
        for (n, &base) in starts.base().iter().enumerate() {
            let all = units.all_of(VReg::new(n));
            names[base as usize..][..all.len()].iter_mut().zip(all).for_each(|(name, u)| *name = u);
        }
        Outs { starts, names }
    }

    fn of<'a>(&'a self, f: &'a MFunction, b: usize) -> impl Iterator<Item = u32> + 'a {
        self.starts.after(f, b).map(|u| self.names[u as usize])
    }
}

/// Moves to the end of a block: what lives behind it and what its end reads.
fn start_at_end(units: &Units, living: &mut Living, block: &MBlock, out: impl Iterator<Item = u32>) {
    living.restart(units, out);
    let mut open = |range: std::ops::Range<u32>| range.for_each(|u| living.open(units, u));
    match &block.term {
        MTerm::Branch { cond, .. } => cond.reg.iter().for_each(|&p| open(units.all_of(p))),
        MTerm::Table { place, .. } => open(units.of(*place, 1)),
        MTerm::Return { to, results } => {
            open(units.of(*to, 1));
            results.iter().for_each(|&r| open(units.all_of(r)));
        }
        _ => {}
    }
}

/// The most that lives at once as the instructions stand.
fn source_pressure(f: &MFunction, outs: &Outs) -> Pressure {
    let units = Units::new(f);
    let mut living = Living::new(&units);
    let mut most = Pressure::default();
    for (b, block) in f.blocks.iter().enumerate() {
        start_at_end(&units, &mut living, block, outs.of(f, b));
        most = most.max(living.pass(&units, &block.insts));
    }
    most
}

/// What schedules the regions of a function.
struct Scheduler {
    units: Units,
    builder: Builder,
    planner: Planner,
    living: Living,
    limit: Pressure,
    phases: Phases,
}

impl Scheduler {
    fn new(f: &MFunction, limit: Pressure) -> Scheduler {
        let units = Units::new(f);
        Scheduler {
            builder: Builder::new(&units),
            planner: Planner::new(&units),
            living: Living::new(&units),
            units,
            limit,
            phases: f.phases,
        }
    }
}

/// What a function costs in the order that it has.
fn estimate(f: &MFunction, outs: &Outs) -> Estimate {
    let mut s = Scheduler::new(f, Pressure::default());
    let mut estimate = Estimate::default();
    for (b, block) in f.blocks.iter().enumerate() {
        let out: Vec<u32> = outs.of(f, b).collect();
        let graph = s.builder.build(&s.units, &block.insts);
        let plan = s.planner.plan(&s.units, &graph, &block.insts, &out, None);
        estimate.add(block.depth, block.insts.len(), plan.cycles(0..block.insts.len()));
    }
    estimate
}

/// Schedules every block.
fn schedule(f: &mut MFunction, outs: &Outs, limit: Pressure) {
    let mut s = Scheduler::new(f, limit);
    for b in 0..f.blocks.len() {
        // Values that are handed over are made near the registers they go to; another order could cost copies.
        if f.blocks[b].insts.iter().any(|i| effects::is_tied(f, i)) {
            continue;
        }
        start_at_end(&s.units, &mut s.living, &f.blocks[b], outs.of(f, b));
        let block = &mut f.blocks[b];
        let mut branch = match &block.term {
            MTerm::Branch { cond, .. } => cond.reg.map(|p| s.units.all_of(p).start),
            _ => None,
        };
        let mut end = block.insts.len();
        while end > 0 {
            let start = block.insts[..end].iter().rposition(effects::is_fence).map_or(0, |n| n + 1);
            let region = &mut block.insts[start..end];
            if let Some(order) = s.find_order(region, branch.take()) {
                if cfg!(debug_assertions) {
                    verify::verify(&s.units, region, &order);
                }
                rearrange(region, &order);
            }
            end = start.saturating_sub(1);
            // The fence above the region.
            s.living.pass(&s.units, &block.insts[end..start]);
        }
    }
}

/// Instructions of a region from which on only one budget is tried.
const LONG: usize = 2000;

/// Cycles of a region that a register is worth: it is one warp's time against the room for other warps.
const CYCLES_A_REGISTER: u32 = 2;

impl Scheduler {
    /// The best order of a region in which no more lives than may, or than does as it stands; `None` where it may stay. What
    /// lives moves above the region.
    fn find_order(&mut self, region: &[MInst], branch: Option<u32>) -> Option<Vec<usize>> {
        let Scheduler { units, living, limit, phases, .. } = self;
        let below = living.save();
        let source = living.pass(units, region);
        if region.len() < 2 {
            return None;
        }
        let above = living.now;
        let allowed = source.max(*limit);
        let graph = self.builder.build(units, region);
        let plan = self.planner.plan(units, &graph, region, &below, branch);
        let score = |cycles: u32, most: Pressure| cycles + CYCLES_A_REGISTER * most.registers.max(0) as u32;
        let mut best = None;
        for held_back in [0, 3, 6] {
            let soft = Pressure { registers: limit.registers - held_back, ..*limit };
            living.restart(units, below.iter().copied());
            let (mut order, most) = order::order(units, &graph, living, soft);
            if most.fits(allowed) {
                order.reverse();
                let cycles = plan.cycles(order.iter().copied());
                best = Some((score(cycles, most), cycles, order));
                break;
            }
        }
        // Nothing is shorter than the longest way through it, or than its instructions one after the other.
        let shortest = plan.height.iter().copied().max().unwrap_or(0).max(region.len() as u32);
        let tried = if region.len() > LONG { 1 } else { usize::MAX };
        for budget in budgets(source, *limit).take(tried) {
            if best.as_ref().is_some_and(|b| b.1 <= shortest + shortest / 32) {
                break;
            }
            let order = forward::order(&plan, above, budget);
            living.restart(units, below.iter().copied());
            let most = living.pass_nodes(units, &graph, order.iter().rev().copied());
            let cycles = plan.cycles(order.iter().copied());
            let score = score(cycles, most);
            if most.fits(allowed) && best.as_ref().is_none_or(|b| score < b.0) {
                best = Some((score, cycles, order));
            }
        }
        let mut best = best.map(|b| b.2);
        if (0..region.len()).filter(|&n| phases.has(&region[n])).count() > 1 {
            let found = best.take().unwrap_or_else(|| (0..region.len()).collect());
            let order = cluster::cluster(&graph, &found, |n| phases.has(&region[n]));
            living.restart(units, below.iter().copied());
            // Where there are too few registers for all of a phase, it stays in parts.
            let most = living.pass_nodes(units, &graph, order.iter().rev().copied());
            best = Some(if most.fits(allowed) { order } else { found });
        }
        // Whatever the order, the same lives above the region.
        best.filter(|order| order.iter().enumerate().any(|(n, &from)| n != from))
    }
}

/// What forward scheduling is tried with, from few registers to all, and with fewer and fewer of them kept from loads; then
/// with all registers and shorter and shorter ways ahead.
fn budgets(source: Pressure, limit: Pressure) -> impl Iterator<Item = Budget> {
    let (most, least) = (limit.registers, source.registers.min(limit.registers));
    let all = [
        (most - 2, 5, usize::MAX),
        (least, 2, usize::MAX),
        ((most + least) / 2, 3, usize::MAX),
        (most, 8, usize::MAX),
        (most, 5, usize::MAX),
        (most, 2, usize::MAX),
        (most, 2, 128),
        (most, 2, 64),
        (most, 2, 32),
        (most, 2, 16),
    ];
    all.into_iter().map(move |(registers, reserve, window)| Budget {
        most: Pressure { registers, ..limit },
        reserve,
        window,
    })
}

/// Puts instruction `order[n]` at place `n`.
fn rearrange(region: &mut [MInst], order: &[usize]) {
    let mut old: Vec<Option<MInst>> =
        region.iter_mut().map(|i| Some(std::mem::replace(i, MInst::new(Op::Nop)))).collect();
    for (place, &from) in region.iter_mut().zip(order) {
        if let Some(i) = old[from].take() {
            *place = i;
        }
    }
}
