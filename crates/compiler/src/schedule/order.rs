//! List scheduling of a region, from its end to its start.
//!
//! An instruction is ready when all that need it are placed, and wanted once as many cycles lie between as its result takes. Of
//! those that are wanted the one with the longest path above it is placed. So sums stand near their uses, while loads rise,
//! past all that does not wait for them, until they stand together. Where more values would live than may, the instruction that
//! ends the most of them is placed instead: a load then stands nearer to its use.

use super::graph::{File, Graph, Units};
use crate::mir::MInst;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How many values live, and the most that did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pressure {
    pub registers: i32,
    pub preds: i32,
}

impl Pressure {
    pub fn max(self, other: Pressure) -> Pressure {
        Pressure { registers: self.registers.max(other.registers), preds: self.preds.max(other.preds) }
    }

    pub fn count(&mut self, file: File, by: i32) {
        match file {
            File::General => self.registers += by,
            File::Preds => self.preds += by,
            File::Other => {}
        }
    }

    pub fn fits(self, limit: Pressure) -> bool {
        self.registers <= limit.registers && self.preds <= limit.preds
    }

    pub fn plus(self, other: Pressure) -> Pressure {
        Pressure { registers: self.registers + other.registers, preds: self.preds + other.preds }
    }

    fn excess(self, limit: Pressure) -> i32 {
        (self.registers - limit.registers).max(0) + (self.preds - limit.preds).max(0)
    }
}

/// What lives at a point that moves up through a block.
pub struct Living {
    lives: Vec<bool>,
    members: Vec<u32>,
    pub now: Pressure,
}

impl Living {
    pub fn new(units: &Units) -> Living {
        Living { lives: vec![false; units.count], members: Vec::new(), now: Pressure::default() }
    }

    /// Starts at the end of a block.
    pub fn restart(&mut self, units: &Units, out: impl Iterator<Item = u32>) {
        for u in self.members.drain(..) {
            self.lives[u as usize] = false;
        }
        self.now = Pressure::default();
        out.for_each(|u| self.open(units, u));
    }

    pub fn open(&mut self, units: &Units, u: u32) {
        if !std::mem::replace(&mut self.lives[u as usize], true) {
            self.members.push(u);
            self.now.count(units.file[u as usize], 1);
        }
    }

    pub fn close(&mut self, units: &Units, u: u32) {
        if std::mem::replace(&mut self.lives[u as usize], false) {
            self.now.count(units.file[u as usize], -1);
        }
    }

    /// What lives now, to come back to.
    pub fn save(&mut self) -> Vec<u32> {
        let lives = &self.lives;
        self.members.sort_unstable();
        self.members.dedup();
        self.members.retain(|&u| lives[u as usize]);
        self.members.clone()
    }

    /// Moves above instructions; the most that lived on the way.
    pub fn pass(&mut self, units: &Units, insts: &[MInst]) -> Pressure {
        let mut most = self.now;
        for i in insts.iter().rev() {
            units.for_each_made(i, |u| self.close(units, u));
            units.for_each_read(i, |u| self.open(units, u));
            most = most.max(self.now);
        }
        most
    }

    /// Moves above the instructions of a graph, which come from the last to the first; the most that lived on the way.
    pub fn pass_nodes(
        &mut self,
        units: &Units,
        graph: &Graph,
        nodes: impl Iterator<Item = usize>,
    ) -> Pressure {
        let mut most = self.now;
        for n in nodes {
            self.pass_node(units, graph, n);
            most = most.max(self.now);
        }
        most
    }

    /// Moves above an instruction of a graph.
    fn pass_node(&mut self, units: &Units, graph: &Graph, n: usize) {
        let (made, read) = graph.made_and_read(n);
        made.iter().for_each(|&u| self.close(units, u));
        read.iter().for_each(|&u| self.open(units, u));
    }

    /// By how much moving above an instruction changes what lives.
    fn change(&self, units: &Units, graph: &Graph, n: usize) -> Pressure {
        let (made, read) = graph.made_and_read(n);
        let mut change = Pressure::default();
        for &u in made.iter().filter(|&&u| self.lives[u as usize]) {
            change.count(units.file[u as usize], -1);
        }
        for &u in read.iter().filter(|&&u| !self.lives[u as usize] || made.contains(&u)) {
            change.count(units.file[u as usize], 1);
        }
        change
    }
}

/// Candidates that are compared when too much lives.
const COMPARED: usize = 24;

/// Cycles that are as well spent waiting: other warps have work for them. Shared memory answers in as many.
const SOON: u32 = 32;

/// Places the instructions of a region under `soft` values where possible; the order is from the last to the first.
pub fn order(units: &Units, graph: &Graph, living: &mut Living, soft: Pressure) -> (Vec<usize>, Pressure) {
    let count = graph.len();
    let mut depth = vec![0u32; count];
    let mut waiting_for = vec![0u32; count];
    for n in 0..count {
        for e in graph.before(n) {
            depth[n] = depth[n].max(depth[e.from as usize] + e.cycles);
            waiting_for[e.from as usize] += 1;
        }
    }
    let length = depth.iter().copied().max().unwrap_or(0);
    // Ready but not wanted yet, by the cycle; and wanted, by the path above.
    let mut ready: BinaryHeap<(Reverse<u32>, u32)> = BinaryHeap::new();
    let mut wanted: BinaryHeap<(u32, u32)> = BinaryHeap::new();
    let mut earliest = vec![0u32; count];
    wanted.extend((0..count).filter(|&n| waiting_for[n] == 0).map(|n| (depth[n], n as u32)));
    let mut placed = Vec::with_capacity(count);
    let mut most = living.now;
    let mut cycle = 0;
    while placed.len() < count {
        while let Some(&(Reverse(at), n)) = ready.peek()
            && at <= cycle
        {
            ready.pop();
            wanted.push((depth[n as usize], n));
        }
        let fits = |n: u32| {
            let change = living.change(units, graph, n as usize);
            (change.registers <= 0 && change.preds <= 0) || living.now.plus(change).fits(soft)
        };
        // Where what comes soon matters more, nothing with time to spare is placed that makes more values live.
        let waits = |n: u32| {
            let spare = length.saturating_sub(depth[n as usize] + cycle);
            let next = ready
                .peek()
                .filter(|&&(Reverse(at), m)| at <= cycle + SOON && depth[m as usize] > depth[n as usize]);
            next.filter(|_| spare > SOON && living.change(units, graph, n as usize).registers > 0)
                .map(|r| r.0.0)
        };
        if let Some(at) = wanted.peek().and_then(|&(_, n)| waits(n)) {
            cycle = at;
            continue;
        }
        let next = match wanted.peek() {
            Some(&(_, n)) if fits(n) => {
                wanted.pop();
                n
            }
            Some(_) => relieve(units, graph, living, soft, &mut wanted, &mut ready),
            None => {
                let Some(&(Reverse(at), _)) = ready.peek() else { break };
                cycle = at;
                continue;
            }
        };
        living.pass_node(units, graph, next as usize);
        most = most.max(living.now);
        placed.push(next as usize);
        for e in graph.before(next as usize) {
            let from = e.from as usize;
            earliest[from] = earliest[from].max(cycle + e.cycles);
            waiting_for[from] -= 1;
            if waiting_for[from] == 0 {
                ready.push((Reverse(earliest[from]), e.from));
            }
        }
        cycle += 1;
    }
    (placed, most)
}

/// Takes the instruction that brings what lives nearest to the limit; of equals the last in the source.
fn relieve(
    units: &Units,
    graph: &Graph,
    living: &Living,
    soft: Pressure,
    wanted: &mut BinaryHeap<(u32, u32)>,
    ready: &mut BinaryHeap<(Reverse<u32>, u32)>,
) -> u32 {
    let from_wanted: Vec<(u32, u32)> = (0..COMPARED).map_while(|_| wanted.pop()).collect();
    let from_ready: Vec<(Reverse<u32>, u32)> = (0..COMPARED).map_while(|_| ready.pop()).collect();
    let candidates = from_wanted.iter().map(|c| c.1).chain(from_ready.iter().map(|c| c.1));
    let cost = |&n: &u32| {
        let change = living.change(units, graph, n as usize);
        (living.now.plus(change).excess(soft), change.registers + change.preds, Reverse(n))
    };
    let best = candidates.min_by_key(cost).unwrap_or(0);
    wanted.extend(from_wanted.into_iter().filter(|c| c.1 != best));
    ready.extend(from_ready.into_iter().filter(|c| c.1 != best));
    best
}
