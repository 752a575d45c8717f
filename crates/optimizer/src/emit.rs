//! From ordered traces with registers to a version: traces, the ways out of them, and copies of what lies beside them.

use crate::assign::Assignment;
use crate::blocks::{Block, Blocks, is_barrier};
use crate::graph::{Graph, Kind, Node, Slot};
use crate::liveness::{PREDICATES, Set};
use crate::reuse;
use crate::sites::{Site, Watch};
use crate::trace::{End, Exit, Trace};
use crate::version::{Assumption, Done, Link, Version};
use isa::field::Field;
use isa::{Inst, Op, Operand, Pred, PredUse, Reg, Src};
use std::collections::{BTreeMap, BTreeSet};

/// A trace, ready to be written.
pub struct Ready<'a> {
    pub trace: &'a Trace,
    pub graph: Graph,
    pub order: Vec<usize>,
    pub assignment: Assignment,
    pub done: Vec<Done>,
}

/// Where a jump goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Goal {
    /// A place of the original: its trace if one begins there, else a copy of it.
    Place(u32),
    /// A copy of it, even if a trace begins there.
    Beside(u32),
    Original(u32),
    Inside(u32),
}

struct Writer<'a> {
    blocks: &'a Blocks,
    block: &'a Block,
    code: Vec<Inst>,
    origin: Vec<u32>,
    goals: Vec<(u32, Goal)>,
    assumptions: Vec<Assumption>,
    done: BTreeSet<Done>,
    sites: Vec<(u32, Site)>,
    watches: BTreeMap<u32, Vec<Site>>,
    heads: BTreeMap<u32, (u32, bool)>,
    beside: BTreeMap<u32, u32>,
    stubs: Vec<(u32, u32, Vec<Inst>, Vec<Inst>, Goal)>,
}

/// Writes a version of a block; none where lanes could part between the original and it.
pub fn emit(
    blocks: &Blocks,
    block: &Block,
    whole: &[bool],
    live: &[Set],
    ready: &[Ready],
) -> Option<Version> {
    let mut watches: BTreeMap<u32, Vec<Site>> = BTreeMap::new();
    for site in crate::sites::sites(blocks, block.id) {
        watches.entry(site.place).or_default().push(site);
    }
    let mut w = Writer {
        blocks,
        block,
        code: Vec::new(),
        origin: Vec::new(),
        goals: Vec::new(),
        assumptions: Vec::new(),
        done: BTreeSet::new(),
        sites: Vec::new(),
        watches,
        heads: BTreeMap::new(),
        beside: BTreeMap::new(),
        stubs: Vec::new(),
    };
    if let Some(entry) = w.watches.get_mut(&block.entry)
        && let Some(n) = entry.iter().position(|s| matches!(s.watch, Watch::Entry(_)))
    {
        let site = entry.remove(n);
        w.sites.push((0, site));
    }
    for (n, r) in ready.iter().enumerate() {
        w.heads.insert(r.trace.head, (w.code.len() as u32, r.trace.is_open));
        w.trace(r, ready.get(n + 1).map(|r| r.trace.head));
    }
    reuse::mark(&mut w.code);
    for (branch, place, converge, copies, goal) in std::mem::take(&mut w.stubs) {
        let at = w.code.len() as u32;
        w.goals.push((branch, Goal::Inside(at)));
        for i in converge {
            w.put_linked(i, place);
        }
        copies.into_iter().for_each(|i| w.put(i, place));
        w.jump(goal, place);
    }
    w.copies(whole, live)?;
    let registers = w
        .code
        .iter()
        .flat_map(|i| i.reads().chain(i.writes()).map(|(r, n)| u32::from(r.0) + n).collect::<Vec<_>>())
        .max()
        .unwrap_or(0);
    let links = w.links()?;
    Some(Version {
        block: block.id,
        code: w.code,
        origin: w.origin,
        links,
        sites: w.sites,
        entry: 0,
        registers,
        assumptions: w.assumptions,
        done: w.done.into_iter().collect(),
        gain: 0,
        work: 0,
        level: 1,
    })
}

impl Writer<'_> {
    fn put(&mut self, inst: Inst, place: u32) {
        self.code.push(inst);
        self.origin.push(place);
    }

    /// An instruction that names a place of the original.
    fn put_linked(&mut self, inst: Inst, place: u32) {
        if let Some(to) = inst.target() {
            let goal = if inst.op == Op::Call { Goal::Original(to) } else { Goal::Beside(to) };
            self.goals.push((self.code.len() as u32, goal));
        }
        self.put(inst, place);
    }

    fn jump(&mut self, goal: Goal, place: u32) {
        let mut bra = Inst::new(Op::Bra).with_flag(Field::Uniform, true);
        bra.set_target(0);
        self.goals.push((self.code.len() as u32, goal));
        self.put(bra, place);
    }

    /// Notes what is to be recorded at the next instruction.
    fn watch(&mut self, place: u32, no_guard: bool) {
        let at = self.code.len() as u32;
        let found = self.watches.get(&place).cloned().unwrap_or_default();
        // Guards of lanes that have parted are those of some of them only, and others are gone.
        let found = found.into_iter().filter(|s| !(no_guard && s.watch == Watch::Branch));
        self.sites.extend(found.map(|s| (at, s)));
    }

    fn trace(&mut self, r: &Ready, next: Option<u32>) {
        let end = r.graph.nodes.len() - 1;
        let mut told = BTreeSet::new();
        self.done.extend(r.trace.done.iter().chain(&r.done));
        for &n in r.order.iter().filter(|&&n| n != end) {
            let node = &r.graph.nodes[n];
            let inst = rewrite(&r.graph, node, &r.assignment);
            match &node.kind {
                Kind::Exit(exit) => {
                    let at = self.code.len() as u32;
                    for &(place, taken) in &node.passed {
                        self.sites.push((at, Site { place, watch: Watch::Assumed { taken } }));
                    }
                    for &kind in &node.checks {
                        let assumption = Assumption { kind, check: at };
                        if !self.assumptions.contains(&assumption) {
                            self.assumptions.push(assumption);
                        }
                    }
                    let copies = r.assignment.copies.get(&n).cloned().unwrap_or_default();
                    let goal = goal_of(exit);
                    if copies.is_empty() && node.converge.is_empty() {
                        self.goals.push((at, goal));
                    } else {
                        self.stubs.push((at, node.place, node.converge.clone(), copies, goal));
                    }
                    self.put(inst, node.place);
                }
                _ => {
                    // What only optimized code has tells nothing of the original's instruction.
                    let is_it = self.blocks.inst(node.place).is_some_and(|i| i.op == node.inst.op);
                    if is_it && !node.is_check {
                        self.watch(node.place, node.within.is_some() || node.inst.guard == PredUse::TRUE);
                    }
                    // Atomics are done by others, who tell nothing of guards.
                    if let (Some(place), Some((number, taken))) = (node.within, node.parted)
                        && !node.inst.op.row().fields.contains(&Field::AtomType)
                        && told.insert(number)
                    {
                        let site = Site { place, watch: Watch::Converted { taken } };
                        self.sites.push((self.code.len() as u32, site));
                    }
                    self.put(inst, node.place);
                }
            }
        }
        let node = &r.graph.nodes[end];
        for i in &node.converge {
            self.put_linked(*i, node.place);
        }
        for i in r.assignment.copies.get(&end).into_iter().flatten() {
            self.put(*i, node.place);
        }
        let inst = rewrite(&r.graph, node, &r.assignment);
        match r.graph.end {
            End::Last(place) => {
                self.put(inst, place);
                if is_barrier(&inst) {
                    self.jump(Goal::Original(place + 1), place);
                }
            }
            // What no trace goes on from is at its very head: the copy of it goes on, the trace would come back for ever.
            End::Jump(to) if to == r.trace.head && r.trace.steps.is_empty() => {
                self.jump(Goal::Beside(to), node.place);
            }
            End::Jump(to) if next == Some(to) => {}
            End::Jump(to) => self.jump(Goal::Place(to), node.place),
            End::Loop { head, exit } => {
                let at = self.code.len() as u32;
                self.sites
                    .push((at, Site { place: exit.place, watch: Watch::Assumed { taken: exit.taken } }));
                self.goals.push((at, Goal::Place(head)));
                self.put(inst, exit.place);
                let goal = goal_of(&exit);
                if next.map(Goal::Place) != Some(goal) {
                    self.jump(goal, exit.place);
                }
            }
        }
    }

    /// Copies what jumps reach and no trace has.
    fn copies(&mut self, whole: &[bool], live: &[Set]) -> Option<()> {
        let mut wanted = BTreeSet::new();
        let mut work: Vec<u32> = self
            .goals
            .iter()
            .filter_map(|&(_, g)| match g {
                Goal::Place(p) if !self.heads.contains_key(&p) => Some(p),
                Goal::Beside(p) => Some(p),
                _ => None,
            })
            .collect();
        while let Some(place) = work.pop() {
            let Some(inst) = self.blocks.inst(place).filter(|_| self.block.holds(place)) else { continue };
            if !wanted.insert(place) {
                continue;
            }
            let more = self.blocks.successors(place, inst).filter(|p| !self.is_open(*p));
            work.extend(more);
            if inst.op == Op::Bssy {
                work.extend(inst.target().filter(|p| !self.is_open(*p)));
            }
        }
        for &place in &wanted {
            let inst = *self.blocks.inst(place)?;
            let is_whole = self.block.places.binary_search(&place).is_ok_and(|n| whole[n]);
            self.beside.insert(place, self.code.len() as u32);
            if inst.op == Op::Call && !self.blocks.leaves(&inst) {
                // The function returns here: who would look at the place must not be there.
                let after = live.get((place + 1 - self.blocks.start) as usize)?;
                if after.has(usize::from(inst.dst.0)) {
                    return None;
                }
            } else if self.blocks.leaves(&inst) && !is_barrier(&inst) {
                if !is_whole {
                    return None;
                }
                self.jump(Goal::Original(place), place);
                continue;
            }
            self.watch(place, false);
            let mut clean = inst;
            clean.src.iter_mut().for_each(|s| s.reuse = false);
            match inst.op {
                Op::Bra => {
                    let to = inst.target()?;
                    let goal = if self.is_open(to) { Goal::Place(to) } else { Goal::Beside(to) };
                    self.goals.push((self.code.len() as u32, goal));
                    self.put(clean, place);
                }
                _ => self.put_linked(clean, place),
            }
            if is_barrier(&inst) {
                self.jump(Goal::Original(place + 1), place);
                continue;
            }
            let ends = inst.guard == PredUse::TRUE && matches!(inst.op, Op::Bra | Op::Exit);
            let falls = !ends && self.blocks.successors(place, &inst).any(|p| p == place + 1);
            if falls && self.is_open(place + 1) {
                self.jump(Goal::Place(place + 1), place);
            } else if falls && !wanted.contains(&(place + 1)) {
                return None;
            }
        }
        Some(())
    }

    fn is_open(&self, place: u32) -> bool {
        self.heads.get(&place).is_some_and(|h| h.1)
    }

    fn links(&self) -> Option<Vec<(u32, Link)>> {
        let find = |goal: Goal| {
            Some(match goal {
                Goal::Inside(n) => Link::Inside(n),
                Goal::Original(p) => Link::Original(p),
                Goal::Place(p) => match self.heads.get(&p) {
                    Some(&(n, _)) => Link::Inside(n),
                    None => self.beside.get(&p).map_or(Link::Original(p), |&n| Link::Inside(n)),
                },
                Goal::Beside(p) => self.beside.get(&p).map_or(Link::Original(p), |&n| Link::Inside(n)),
            })
        };
        let mut links = self.goals.iter().map(|&(n, g)| Some((n, find(g)?))).collect::<Option<Vec<_>>>()?;
        links.sort_by_key(|l| l.0);
        Some(links)
    }
}

/// Where an exit goes on. A branch is left to its copy: a trace that begins with it would take the same exit again, for ever.
fn goal_of(exit: &Exit) -> Goal {
    if exit.beside || exit.to == exit.place { Goal::Beside(exit.to) } else { Goal::Place(exit.to) }
}

/// An instruction with the registers of its values.
pub fn rewrite(graph: &Graph, node: &Node, a: &Assignment) -> Inst {
    let mut inst = node.inst;
    let reg = |v: usize| Reg(a.unit[v].min(255) as u8);
    let pred = |v: usize| Pred((a.unit[v] - PREDICATES) as u8);
    for (slot, group) in &node.reads {
        match *slot {
            Slot::Source(k) => inst.src[k] = Src { operand: Operand::Reg(reg(group[0])), ..inst.src[k] },
            Slot::E => inst.e = reg(group[0]),
            Slot::Pred(k) => inst.ps[k].pred = pred(group[0]),
            Slot::Guard => inst.guard.pred = pred(group[0]),
        }
    }
    if let Some(&v) = node.dst.first() {
        inst.dst = reg(v);
    }
    for k in 0..2 {
        if let Some(v) = node.pd[k] {
            inst.pd[k] = pred(v);
        }
    }
    debug_assert!(!graph.nodes.is_empty());
    inst
}
