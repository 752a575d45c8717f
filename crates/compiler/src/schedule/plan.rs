//! What the forward scheduler needs to know of a region beside its dependences: who waits for whom, how long the way to the end
//! is, which pipes are taken, and which values each instruction makes and ends.

use super::graph::{Edge, File, Graph, Units};
use super::latency::{GUARD, PIPES, pipe, result};
use super::order::Pressure;
use crate::mir::MInst;

/// A region, prepared.
pub struct Plan {
    /// What waits for each instruction; `from` is the one that waits.
    after: Vec<Edge>,
    after_end: Vec<u32>,
    /// How many instructions each waits for.
    pub needs: Vec<u32>,
    /// Cycles from the issue of each to the end of the region, at least.
    pub height: Vec<u32>,
    /// Cycles after its issue at which the region may end.
    tail: Vec<u32>,
    pub pipe: Vec<(usize, u32)>,
    /// What each instruction begins.
    pub made: Vec<Pressure>,
    /// Values that each instruction reads.
    reads: Vec<u32>,
    reads_end: Vec<u32>,
    /// Instructions that read each value; one more where it lives behind the region.
    pub readers: Vec<u32>,
    pub file: Vec<File>,
    /// Takes a while that is not known: a load, mostly.
    pub is_load: Vec<bool>,
}

/// Makes plans; keeps its table from region to region.
pub struct Planner {
    value: Vec<u32>,
    touched: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Planner {
    pub fn new(units: &Units) -> Planner {
        Planner { value: vec![NONE; units.count], touched: Vec::new() }
    }

    /// Prepares a region behind which the units `below` live; `branch` is the predicate that the block's branch tests.
    pub fn plan(
        &mut self,
        units: &Units,
        graph: &Graph,
        region: &[MInst],
        below: &[u32],
        branch: Option<u32>,
    ) -> Plan {
        let count = graph.len();
        let mut plan = Plan {
            after: Vec::new(),
            after_end: Vec::with_capacity(count),
            needs: (0..count).map(|n| graph.before(n).len() as u32).collect(),
            height: vec![0; count],
            tail: vec![1; count],
            pipe: region.iter().map(pipe).collect(),
            made: vec![Pressure::default(); count],
            reads: Vec::new(),
            reads_end: Vec::with_capacity(count),
            readers: Vec::new(),
            file: Vec::new(),
            is_load: region.iter().map(|i| i.op().row().latency != isa::Latency::Fixed).collect(),
        };
        plan.link(graph);
        self.follow_values(units, graph, below, &mut plan);
        let branch = branch.and_then(|u| region.iter().rposition(|i| writes(units, i, u)));
        let mut lives = below.to_vec();
        lives.sort_unstable();
        for (n, i) in region.iter().enumerate() {
            let mut outlives = false;
            units.for_each_write(i, |u| outlives |= lives.binary_search(&u).is_ok());
            if outlives {
                plan.tail[n] = result(i);
            }
            if branch == Some(n) {
                plan.tail[n] = GUARD;
            }
        }
        for n in (0..count).rev() {
            let way = plan.after(n).iter().map(|e| e.cycles + plan.height[e.from as usize]).max();
            plan.height[n] = way.unwrap_or(0).max(plan.tail[n]);
        }
        plan
    }

    /// Numbers the values of a region: one for each time that a unit is written whole, and one for what came from above.
    fn follow_values(&mut self, units: &Units, graph: &Graph, below: &[u32], plan: &mut Plan) {
        let mut makers: Vec<(u32, u32)> = Vec::new();
        for n in 0..graph.len() {
            let (made, read) = graph.made_and_read(n);
            for &u in read {
                let mut value = self.value[u as usize];
                if value == NONE {
                    value = plan.begin(units, u);
                    self.value[u as usize] = value;
                    self.touched.push(u);
                }
                plan.readers[value as usize] += 1;
                plan.reads.push(value);
            }
            plan.reads_end.push(plan.reads.len() as u32);
            for &u in made {
                let value = plan.begin(units, u);
                makers.push((n as u32, value));
                self.value[u as usize] = value;
                self.touched.push(u);
            }
        }
        for &u in below {
            let value = self.value[u as usize];
            if value != NONE {
                plan.readers[value as usize] += 1;
            }
        }
        for u in self.touched.drain(..) {
            self.value[u as usize] = NONE;
        }
        // A value that nobody reads takes no place.
        for (n, value) in makers {
            if plan.readers[value as usize] > 0 {
                plan.made[n as usize].count(plan.file[value as usize], 1);
            }
        }
    }
}

impl Plan {
    /// Turns the edges around: from what must come before to what waits.
    fn link(&mut self, graph: &Graph) {
        let count = graph.len();
        let mut waiting = vec![0u32; count];
        for e in (0..count).flat_map(|n| graph.before(n)) {
            waiting[e.from as usize] += 1;
        }
        let mut end = 0;
        for w in &mut waiting {
            end += *w;
            self.after_end.push(end);
            *w = end - *w;
        }
        self.after = vec![Edge { from: 0, cycles: 0 }; end as usize];
        for n in 0..count {
            for e in graph.before(n) {
                let at = &mut waiting[e.from as usize];
                self.after[*at as usize] = Edge { from: n as u32, cycles: e.cycles };
                *at += 1;
            }
        }
    }

    fn begin(&mut self, units: &Units, u: u32) -> u32 {
        self.readers.push(0);
        self.file.push(units.file[u as usize]);
        self.readers.len() as u32 - 1
    }

    pub fn len(&self) -> usize {
        self.height.len()
    }

    /// What waits for instruction `n`, and for how many cycles.
    pub fn after(&self, n: usize) -> &[Edge] {
        let start = if n == 0 { 0 } else { self.after_end[n - 1] };
        &self.after[start as usize..self.after_end[n] as usize]
    }

    pub fn reads(&self, n: usize) -> &[u32] {
        let start = if n == 0 { 0 } else { self.reads_end[n - 1] };
        &self.reads[start as usize..self.reads_end[n] as usize]
    }

    /// Cycles that one warp takes for the region in an order: it issues an instruction a cycle, each when what it needs is
    /// there and its pipe is free.
    pub fn cycles(&self, order: impl Iterator<Item = usize>) -> u32 {
        let mut earliest = vec![0u32; self.len()];
        let mut free = [0u32; PIPES];
        let (mut next, mut end) = (0, 0);
        for n in order {
            let (pipe, takes) = self.pipe[n];
            let at = earliest[n].max(next).max(free[pipe]);
            next = at + 1;
            free[pipe] = at + takes;
            end = end.max(at + self.tail[n]);
            for e in self.after(n) {
                let waits = &mut earliest[e.from as usize];
                *waits = (*waits).max(at + e.cycles);
            }
        }
        end
    }
}

fn writes(units: &Units, i: &MInst, unit: u32) -> bool {
    let mut found = false;
    units.for_each_write(i, |u| found |= u == unit);
    found
}
