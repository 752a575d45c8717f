//! A trace as operations on values: every write makes a new value, registers are only where values come from and go to.
//!
//! A *unit* is a general register or a predicate, numbered as in [`crate::liveness`]. A value has a home, the unit that the
//! original has it in. Where a trace is left, every unit that is live there must get the value that the original would have in it.

use crate::blocks::Blocks;
use crate::liveness::{CONVERGENCE, PREDICATES, Set};
use crate::trace::{End, Exit, Step, Trace};
use crate::version::Kind as Assumed;
use isa::field::{Field, VoteMode};
use isa::{Inst, Op, Operand, Pred, PredUse, Reg, Role};
use std::collections::BTreeMap;

/// A value's number.
pub type V = usize;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Value {
    pub home: usize,
    /// The node that makes it; none where it is there when the trace begins.
    pub node: Option<usize>,
    /// The same in all lanes, and known.
    pub known: Option<u32>,
}

impl Value {
    pub fn is_pred(&self) -> bool {
        self.home >= PREDICATES
    }
}

/// Which operand of an instruction reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    Source(usize),
    E,
    Pred(usize),
    Guard,
}

/// What a node is besides its instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    Plain,
    /// A branch that leaves the trace when its guard holds.
    Exit(Exit),
    /// The last one: a barrier, the end of the threads, or nothing but the way on.
    End,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    pub inst: Inst,
    pub place: u32,
    pub kind: Kind,
    pub reads: Vec<(Slot, Vec<V>)>,
    /// Registers written, in a row.
    pub dst: Vec<V>,
    pub pd: [Option<V>; 2],
    /// A guard may keep the old value: (old, new), in one register.
    pub tied: Vec<(V, V)>,
    /// Where the trace is left here: unit, value.
    pub state: Vec<(usize, V)>,
    /// Convergence registers that are set where it is left.
    pub converge: Vec<Inst>,
    /// What a way out checks.
    pub checks: Vec<Assumed>,
    /// Branches of the original that whoever stays has passed here: their places, and whether they were taken.
    pub passed: Vec<(u32, bool)>,
    /// Where lanes part before it that meet behind it: the place of the branch. Nobody may leave the trace there.
    pub within: Option<u32>,
    /// Its guard is that branch's condition: which parting of the trace it is, and whether it holds for those who jump.
    pub parted: Option<(u32, bool)>,
    /// Units that get known words there.
    pub constants: Vec<(usize, u32)>,
    /// It stands for several loads of the original: who leaves before it may come to some of them only.
    pub is_wide: bool,
    /// Part of a check: what it proves is not to be taken for known in it.
    pub is_check: bool,
    /// Removed: makes nothing, needs nothing.
    pub is_dead: bool,
}

impl Node {
    pub fn new(inst: Inst, place: u32, kind: Kind) -> Node {
        Node {
            inst,
            place,
            kind,
            reads: Vec::new(),
            dst: Vec::new(),
            pd: [None; 2],
            tied: Vec::new(),
            state: Vec::new(),
            converge: Vec::new(),
            checks: Vec::new(),
            passed: Vec::new(),
            within: None,
            parted: None,
            constants: Vec::new(),
            is_wide: false,
            is_check: false,
            is_dead: false,
        }
    }

    pub fn values(&self) -> impl Iterator<Item = V> + '_ {
        self.reads.iter().flat_map(|r| r.1.iter().copied())
    }

    /// Everything that must be in a register when it is executed: operands, what a guard keeps, what a way out needs.
    pub fn needs(&self) -> impl Iterator<Item = V> + '_ {
        self.values().chain(self.tied.iter().map(|t| t.0)).chain(self.state.iter().map(|s| s.1))
    }

    pub fn writes(&self) -> impl Iterator<Item = V> + '_ {
        self.dst.iter().copied().chain(self.pd.iter().flatten().copied())
    }

    pub fn is_exit(&self) -> bool {
        matches!(self.kind, Kind::Exit(_))
    }
}

/// A trace in values, in its original order; the last node is the end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Graph {
    pub values: Vec<Value>,
    pub nodes: Vec<Node>,
    pub end: End,
    pub head: u32,
    /// Where convergence registers are set: before which node, by what.
    pub converge: Vec<(usize, Inst)>,
    /// Values in whose places others were put.
    pub replaced: BTreeMap<V, V>,
}

impl Graph {
    /// A value that only optimized code has.
    pub fn fresh(&mut self, home: usize) -> V {
        self.values.push(Value { home, node: None, known: None });
        self.values.len() - 1
    }

    /// Puts nodes in another order, new ones among them, and says which node makes which value.
    pub fn rearrange(&mut self, nodes: Vec<Node>) {
        self.nodes = nodes;
        for (n, node) in self.nodes.iter().enumerate() {
            for v in node.writes() {
                self.values[v].node = Some(n);
            }
        }
    }

    /// Puts nodes in before another.
    pub fn insert(&mut self, at: usize, nodes: Vec<Node>) {
        let added = nodes.len();
        let mut all = std::mem::take(&mut self.nodes);
        let rest = all.split_off(at);
        all.extend(nodes);
        all.extend(rest);
        self.converge.iter_mut().filter(|c| c.0 > at).for_each(|c| c.0 += added);
        self.rearrange(all);
    }

    /// The value that stands for another now.
    pub fn last(&self, mut v: V) -> V {
        while let Some(&next) = self.replaced.get(&v) {
            v = next;
        }
        v
    }

    /// Puts one value in the place of others, wherever they are read.
    pub fn replace(&mut self, by: &BTreeMap<V, V>) {
        self.replaced.extend(by);
        let mut nodes = std::mem::take(&mut self.nodes);
        for node in &mut nodes {
            node.reads.iter_mut().for_each(|(_, g)| g.iter_mut().for_each(|v| *v = self.last(*v)));
            node.tied.iter_mut().for_each(|t| t.0 = self.last(t.0));
            node.state.iter_mut().for_each(|s| s.1 = self.last(s.1));
        }
        self.nodes = nodes;
    }

    /// Values that keep their distance to others, or follow others in their register.
    pub fn grouped(&self) -> Vec<bool> {
        let mut grouped = vec![false; self.values.len()];
        for n in self.nodes.iter().filter(|n| !n.is_dead) {
            let groups = n.reads.iter().map(|r| &r.1).chain([&n.dst]).filter(|g| g.len() > 1);
            groups.flatten().for_each(|&v| grouped[v] = true);
            for &(old, new) in &n.tied {
                (grouped[old], grouped[new]) = (true, true);
            }
        }
        grouped
    }

    /// What each unit holds before a node, as far as the trace knows it, and which convergence registers were set.
    pub fn state_before(&self, at: usize) -> (BTreeMap<usize, V>, BTreeMap<u32, Inst>) {
        let mut now = BTreeMap::new();
        for (v, value) in self.values.iter().enumerate() {
            if value.node.is_none() && value.home != FRESH && value.home != FRESH_REGISTER {
                now.entry(value.home).or_insert(v);
            }
        }
        for node in &self.nodes[..at] {
            for v in node.writes() {
                now.insert(self.values[v].home, v);
            }
        }
        now.values_mut().for_each(|v| *v = self.last(*v));
        let converge = self.converge.iter().filter(|c| c.0 <= at);
        (now, converge.map(|(_, i)| (i.field(Field::Bar4), *i)).collect())
    }

    /// A way out before a node, for those whose predicate holds, to a place where the original goes on from there.
    pub fn way_out(&mut self, at: usize, exit: Exit, when: V, live: &Set) -> Node {
        let (now, converge) = self.state_before(at);
        let mut branch = Inst::new(Op::Bra).with_flag(Field::Uniform, true);
        branch.set_target(0);
        branch.guard = PredUse::new(Pred(0));
        let mut node = Node::new(branch, exit.place, Kind::Exit(exit));
        node.reads.push((Slot::Guard, vec![when]));
        for unit in live.iter().filter(|&u| u < CONVERGENCE) {
            let v = match now.get(&unit) {
                Some(&v) => v,
                None => self.fresh(unit),
            };
            node.state.push((unit, v));
        }
        node.converge = converge
            .into_iter()
            .filter(|(r, _)| live.has(CONVERGENCE + *r as usize))
            .map(|(_, i)| i)
            .collect();
        node
    }

    /// A vote of the whole warp whether any lane's predicate holds, and its answer.
    pub fn vote(&mut self, place: u32, when: (V, bool)) -> (Node, V) {
        let mut inst = Inst::new(Op::Vote).with(VoteMode::Any).with_flag(Field::All, true);
        inst.ps[0] = PredUse { pred: Pred(0), neg: when.1 };
        inst.pd[0] = Pred(0);
        let mut node = Node::new(inst.canonical(), place, Kind::Plain);
        node.reads.push((Slot::Pred(0), vec![when.0]));
        let v = self.fresh(FRESH);
        node.pd[0] = Some(v);
        (node, v)
    }
}

pub fn slot_of(role: Role) -> Option<usize> {
    use Role::*;
    match role {
        A | A2 | AFrom | Addr | CAddr => Some(0),
        B | B2 => Some(1),
        C | C2 | CW | CT => Some(2),
        _ => None,
    }
}

struct Builder<'a> {
    graph: Graph,
    /// The value that each unit has.
    now: BTreeMap<usize, V>,
    converge: BTreeMap<u32, Inst>,
    live: &'a [Set],
    start: u32,
    parting: Option<Parting>,
    partings: u32,
}

/// Lanes that have parted: what follows is guarded.
struct Parting {
    place: u32,
    number: u32,
    /// The predicate of those who are here, and those who jump.
    here: (V, bool),
    jump: (V, bool),
    is_jump: bool,
    /// What is live where they meet.
    live: Set,
    /// What units held that one side wrote for itself only.
    saved: BTreeMap<usize, V>,
}

/// Makes the graph of a trace.
pub fn build(blocks: &Blocks, trace: &Trace, live: &[Set]) -> Option<Graph> {
    let graph = Graph {
        values: Vec::new(),
        nodes: Vec::new(),
        end: trace.end,
        head: trace.head,
        converge: Vec::new(),
        replaced: BTreeMap::new(),
    };
    let mut b = Builder {
        graph,
        now: BTreeMap::new(),
        converge: BTreeMap::new(),
        live,
        start: blocks.start,
        parting: None,
        partings: 0,
    };
    for step in &trace.steps {
        match *step {
            Step::Run(place) => {
                let inst = blocks.inst(place)?;
                match inst.op {
                    Op::Bssy if inst.guard == PredUse::TRUE => {
                        b.converge.insert(inst.field(Field::Bar4), *inst);
                        let at = b.graph.nodes.len();
                        b.graph.converge.push((at, *inst));
                    }
                    // Everyone is here.
                    Op::Bsync | Op::Nop => {}
                    Op::Bssy => return None,
                    _ => b.run(*inst, place, Kind::Plain),
                }
            }
            Step::Exit(exit) => b.exit(exit, &[exit.to]),
            Step::Part { place, meet, copies } => b.part(blocks.inst(place)?.guard, place, meet, copies),
            Step::Turn => b.turn(),
            Step::Meet => {
                b.turn();
                b.parting = None;
            }
        }
    }
    match trace.end {
        End::Last(place) => {
            let inst = *blocks.inst(place)?;
            b.run(inst, place, Kind::End);
            let live = if inst.op == Op::Exit { Set::default() } else { b.live_at(place + 1) };
            b.leave(&live);
        }
        End::Jump(to) => {
            b.graph.nodes.push(Node::new(Inst::new(Op::Nop), to, Kind::End));
            let live = b.live_at(to);
            b.leave(&live);
        }
        End::Loop { head, exit } => {
            b.exit(exit, &[head, exit.to]);
            if let Some(n) = b.graph.nodes.last_mut() {
                n.kind = Kind::End;
                // Back where no lane leaves.
                n.inst.guard = n.inst.guard.negated();
            }
        }
    }
    Some(b.graph)
}

impl Builder<'_> {
    fn live_at(&self, place: u32) -> Set {
        let at = place.checked_sub(self.start).map(|n| n as usize);
        at.and_then(|n| self.live.get(n)).copied().unwrap_or_else(crate::liveness::everything)
    }

    fn value(&mut self, home: usize, node: Option<usize>) -> V {
        self.graph.values.push(Value { home, node, known: None });
        self.graph.values.len() - 1
    }

    fn current(&mut self, unit: usize) -> V {
        match self.now.get(&unit) {
            Some(&v) => v,
            None => {
                let v = self.value(unit, None);
                self.now.insert(unit, v);
                v
            }
        }
    }

    /// A predicate made from others: where the first holds, and the second if there is one.
    fn both(&mut self, place: u32, first: (V, bool), second: Option<(V, bool)>) -> V {
        let lut = if second.is_some() { 0xc0 } else { 0xf0 };
        let mut inst = Inst::new(Op::Plop3).with_num(Field::Lut, lut);
        inst.pd[0] = Pred(0);
        let mut reads = Vec::new();
        for (k, (v, neg)) in std::iter::once(first).chain(second).enumerate() {
            inst.ps[k] = PredUse { pred: Pred(0), neg };
            reads.push((Slot::Pred(k), vec![v]));
        }
        let mut node = Node::new(inst.canonical(), place, Kind::Plain);
        node.reads = reads;
        node.within = self.parting.as_ref().map(|p| p.place);
        let at = self.graph.nodes.len();
        let v = self.value(FRESH, Some(at));
        node.pd[0] = Some(v);
        self.graph.nodes.push(node);
        v
    }

    /// Lanes part at a branch with this guard.
    fn part(&mut self, guard: PredUse, place: u32, meet: u32, copies: bool) {
        let v = self.current(PREDICATES + usize::from(guard.pred.0));
        // A predicate that is written under itself is no guard any more.
        let jump = if copies { (self.both(place, (v, guard.neg), None), false) } else { (v, guard.neg) };
        let (number, live) = (self.partings, self.live_at(meet));
        self.partings += 1;
        let here = (jump.0, !jump.1);
        self.parting =
            Some(Parting { place, number, here, jump, is_jump: false, live, saved: BTreeMap::new() });
    }

    /// The other side's turn: it has what there was before.
    fn turn(&mut self) {
        if let Some(p) = &mut self.parting {
            self.now.append(&mut p.saved);
            (p.here, p.is_jump) = (p.jump, true);
        }
    }

    /// Whether an instruction may be executed for all lanes though only some are to: nobody else sees what it writes.
    fn is_own(&self, inst: &Inst) -> bool {
        let Some(p) = &self.parting else { return false };
        let mut own = true;
        crate::liveness::for_each_write(inst, |u| own &= !p.live.has(u));
        own && inst.guard == PredUse::TRUE
    }

    fn run(&mut self, mut inst: Inst, place: u32, kind: Kind) {
        inst.src.iter_mut().for_each(|s| s.reuse = false);
        let is_own = self.is_own(&inst);
        let mut guard = None;
        let mut parted = None;
        if let Some(p) = &self.parting {
            let (here, number, is_jump) = (p.here, p.number, p.is_jump);
            let effects = isa::Effects::READS.or(isa::Effects::WRITES);
            let touches = inst.op.row().effects.has(effects) || inst.op == Op::Ldc;
            if inst.guard != PredUse::TRUE {
                let own = self.current(PREDICATES + usize::from(inst.guard.pred.0));
                guard = Some((self.both(place, here, Some((own, inst.guard.neg))), false));
            } else if touches || !is_own {
                guard = Some(here);
                parted = Some((number, is_jump));
            }
        }
        let keeps = (inst.guard != PredUse::TRUE || guard.is_some()) && !is_own;
        let at = self.graph.nodes.len();
        if guard.is_some() {
            inst.guard = PredUse::TRUE;
        }
        let mut node = Node::new(inst, place, kind);
        self.read(&mut node);
        if let Some((v, neg)) = guard {
            node.inst.guard = PredUse { pred: Pred(0), neg };
            node.reads.push((Slot::Guard, vec![v]));
        }
        (node.within, node.parted) = (self.parting.as_ref().map(|p| p.place), parted);
        let write = |b: &mut Self, unit: usize, node: &mut Node| {
            if is_own {
                let old = b.current(unit);
                if let Some(p) = &mut b.parting {
                    p.saved.entry(unit).or_insert(old);
                }
            }
            if keeps {
                let old = b.current(unit);
                let new = b.value(unit, Some(at));
                node.tied.push((old, new));
                b.now.insert(unit, new);
                new
            } else {
                let new = b.value(unit, Some(at));
                b.now.insert(unit, new);
                new
            }
        };
        if let Some((r, n)) = inst.writes() {
            for k in 0..n as usize {
                let v = write(self, usize::from(r.0) + k, &mut node);
                node.dst.push(v);
            }
        }
        for (k, role) in [Role::Pd0, Role::Pd1].into_iter().enumerate() {
            if inst.op.row().roles.contains(&role) && inst.pd[k] != Pred::PT {
                let v = write(self, PREDICATES + usize::from(inst.pd[k].0), &mut node);
                node.pd[k] = Some(v);
            }
        }
        self.graph.nodes.push(node);
    }

    fn read(&mut self, node: &mut Node) {
        let inst = node.inst;
        for &role in inst.op.row().roles {
            if let Some(Operand::Reg(r)) = inst.source(role).map(|s| s.operand)
                && !r.is_zero()
            {
                let slot = slot_of(role).map_or(Slot::E, Slot::Source);
                let group = (0..inst.width(role) as usize).map(|k| self.current(usize::from(r.0) + k));
                let group = group.collect();
                node.reads.push((slot, group));
            }
            let pred = match role {
                Role::Ps0 => 0,
                Role::Ps1 => 1,
                Role::Ps2 => 2,
                _ => continue,
            };
            self.read_pred(node, inst.ps[pred].pred, Slot::Pred(pred));
        }
        self.read_pred(node, inst.guard.pred, Slot::Guard);
    }

    fn read_pred(&mut self, node: &mut Node, p: Pred, slot: Slot) {
        if p != Pred::PT {
            let v = self.current(PREDICATES + usize::from(p.0));
            node.reads.push((slot, vec![v]));
        }
    }

    fn exit(&mut self, exit: Exit, ways: &[u32]) {
        let mut live = Set::default();
        ways.iter().for_each(|&w| {
            live.join(&self.live_at(w));
        });
        let mut branch = Inst::new(Op::Bra).with_flag(Field::Uniform, true);
        branch.set_target(0);
        branch.guard = exit.when;
        if exit.vote && exit.when.pred != Pred::PT {
            let mut vote = Inst::new(Op::Vote).with(VoteMode::Any).with_flag(Field::All, true);
            vote.ps[0] = exit.when;
            // Which predicate is decided later; the home is one that nobody has.
            let mut node = Node::new(vote.canonical(), exit.place, Kind::Plain);
            self.read_pred(&mut node, exit.when.pred, Slot::Pred(0));
            let at = self.graph.nodes.len();
            let v = self.value(FRESH, Some(at));
            node.pd[0] = Some(v);
            node.inst.pd[0] = Pred(0);
            self.graph.nodes.push(node);
            branch.guard = PredUse::new(Pred(0));
            let mut node = Node::new(branch, exit.place, Kind::Exit(exit));
            node.reads.push((Slot::Guard, vec![v]));
            self.graph.nodes.push(node);
        } else {
            let mut node = Node::new(branch, exit.place, Kind::Exit(exit));
            self.read_pred(&mut node, exit.when.pred, Slot::Guard);
            self.graph.nodes.push(node);
        }
        if let Some(n) = self.graph.nodes.last_mut() {
            n.passed.push((exit.place, exit.taken));
            if exit.is_assumed {
                n.checks.push(match exit.is_off {
                    true => Assumed::Off { place: exit.place },
                    false => Assumed::Branch { place: exit.place, taken: exit.taken },
                });
            }
        }
        self.leave(&live);
    }

    /// What the last node must hand over.
    fn leave(&mut self, live: &Set) {
        let state: Vec<(usize, V)> =
            live.iter().filter(|&u| u < CONVERGENCE).map(|u| (u, self.current(u))).collect();
        let converge: Vec<Inst> = self
            .converge
            .iter()
            .filter(|(r, _)| live.has(CONVERGENCE + **r as usize))
            .map(|(_, i)| *i)
            .collect();
        if let Some(n) = self.graph.nodes.last_mut() {
            n.state = state;
            n.converge = converge;
        }
    }
}

/// The home of predicates that only optimized code has.
pub const FRESH: usize = PREDICATES + 7;
/// The home of registers that only optimized code has: no unit.
pub const FRESH_REGISTER: usize = Reg::RZ.0 as usize;
