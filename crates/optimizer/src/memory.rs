//! What instructions do to memory, and which of them may change places.

use crate::blocks::{Blocks, is_barrier};
use crate::graph::{Graph, Node, Slot, V};
use crate::liveness;
use crate::sites::access_bytes;
use isa::field::{AtomOrder, Cache, Field, Order};
use isa::{Effects, Op, Operand, PredUse, Special};

/// What a node does that has an order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Touch {
    Nothing,
    /// Nothing that touches memory passes it, and nothing that waits for lanes.
    Fence,
    Load(Address),
    /// Loads that nobody writes to while the kernel runs.
    ReadOnly,
    Store(Address),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Space {
    Global,
    Shared,
    Local,
    Generic,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    pub space: Space,
    pub base: Vec<V>,
    pub ureg: u32,
    pub offset: i64,
    pub bytes: i64,
    /// Only the bytes that its address names, and no more than reading or writing them.
    pub is_plain: bool,
}

impl Address {
    /// May both touch a byte of one thread's. What other threads do without synchronising is a race in the program, and the compiler
    /// orders plain accesses by the same rule.
    pub fn meets(&self, other: &Address) -> bool {
        let generic = self.space == Space::Generic || other.space == Space::Generic;
        if self.space != other.space && !generic {
            return false;
        }
        let same_base = self.space == other.space && self.base == other.base && self.ureg == other.ureg;
        !(same_base && self.is_plain && other.is_plain && self.apart(other))
    }

    fn apart(&self, other: &Address) -> bool {
        self.offset + self.bytes <= other.offset || other.offset + other.bytes <= self.offset
    }
}

fn is_timed(node: &Node) -> bool {
    use Special::*;
    let timed = [ClockLo, ClockHi, GlobalTimerLo, GlobalTimerHi, Pm0, Pm1, Pm2, Pm3, Pm4, Pm5, Pm6, Pm7];
    matches!(node.inst.op, Op::S2r | Op::Cs2r | Op::S2ur)
        && Special::from_bits(node.inst.field(Field::Sr)).is_none_or(|s| timed.contains(&s))
}

/// Our own vote over a whole warp, which waits for nobody.
pub fn is_own_vote(graph: &Graph, node: &Node) -> bool {
    node.inst.op == Op::Vote && node.pd[0].is_some_and(|v| graph.values[v].home == crate::graph::FRESH)
}

pub fn touch(graph: &Graph, node: &Node) -> Touch {
    let inst = &node.inst;
    let row = inst.op.row();
    if is_own_vote(graph, node) {
        return Touch::Nothing;
    }
    let fence = Effects::LANES.or(Effects::BARRIER).or(Effects::FENCE).or(Effects::ENDS);
    if row.effects.has(fence)
        || is_timed(node)
        || matches!(inst.op, Op::Actmask | Op::Cctl | Op::Syscall | Op::Nanosleep | Op::Pmtrig | Op::Yield)
    {
        return Touch::Fence;
    }
    if inst.op == Op::Ldc && node.reads.iter().any(|r| r.0 == Slot::Source(0)) {
        // An index past the bank would be a fault.
        return Touch::ReadOnly;
    }
    if !row.effects.has(Effects::READS.or(Effects::WRITES)) {
        return Touch::Nothing;
    }
    let space = match inst.op {
        Op::Ldg | Op::Stg | Op::Atomg | Op::Redg => Space::Global,
        Op::Lds | Op::Sts | Op::Atoms => Space::Shared,
        Op::Ldl | Op::Stl => Space::Local,
        Op::Ld | Op::St | Op::Atom | Op::Red => Space::Generic,
        _ => return Touch::Fence,
    };
    let is_access = row.fields.contains(&Field::Width);
    if (is_access && inst.get::<Order>() != Order::Weak)
        || (row.fields.contains(&Field::AtomOrder) && inst.get::<AtomOrder>() != AtomOrder::Relaxed)
    {
        return Touch::Fence;
    }
    if inst.op == Op::Ldg && inst.get::<Cache>() == Cache::Nc {
        return Touch::ReadOnly;
    }
    let base = node.reads.iter().find(|r| r.0 == Slot::Source(0)).map(|r| r.1.clone()).unwrap_or_default();
    let address = Address {
        space,
        base,
        ureg: inst.field(Field::Ur),
        offset: i64::from(inst.offset()),
        bytes: i64::from(access_bytes(inst).unwrap_or(16)),
        is_plain: is_access,
    };
    if row.effects.has(Effects::WRITES) { Touch::Store(address) } else { Touch::Load(address) }
}

/// Whether two must keep their order.
pub fn conflict(a: &Touch, b: &Touch) -> bool {
    match (a, b) {
        (Touch::Nothing, _) | (_, Touch::Nothing) => false,
        (Touch::Fence, _) | (_, Touch::Fence) => true,
        (Touch::ReadOnly, _) | (_, Touch::ReadOnly) | (Touch::Load(_), Touch::Load(_)) => false,
        (Touch::Store(x), Touch::Store(y) | Touch::Load(y)) | (Touch::Load(x), Touch::Store(y)) => x.meets(y),
    }
}

/// Places looked at on the way to a load.
const FAR: usize = 1024;

/// Whether everyone who goes on at `from` in the original comes to the load at `load`, before anything that changes memory or ends
/// threads, and with the registers of its address as they are now.
pub fn is_certain(blocks: &Blocks, from: u32, load: u32) -> bool {
    let Some(inst) = blocks.inst(load) else { return false };
    let mut address = Vec::new();
    liveness::for_each_read(inst, |u| address.push(u));
    let mut seen = std::collections::BTreeSet::new();
    let mut work = vec![from];
    while let Some(place) = work.pop() {
        if place == load || !seen.insert(place) {
            continue;
        }
        let Some(i) = blocks.inst(place) else { return false };
        let row = i.op.row();
        // Loads may be passed: nobody tells which of several comes first.
        let stops =
            Effects::WRITES.or(Effects::FENCE).or(Effects::ENDS).or(Effects::BARRIER).or(Effects::LANES);
        let touches = row.effects.has(stops) && i.op != Op::Bsync;
        if touches
            || is_barrier(i)
            || seen.len() > FAR
            || (i.op == Op::Bra && i.target().is_none_or(|t| t <= place))
        {
            return false;
        }
        let mut writes = false;
        liveness::for_each_write(i, |u| writes |= address.contains(&u));
        if i.op == Op::Call {
            match i.target().and_then(|to| blocks.callees.get(&to)) {
                Some(c) if c.is_quiet && i.guard == PredUse::TRUE => {
                    writes |= address.iter().any(|&u| c.writes.has(u));
                }
                _ => return false,
            }
        } else if blocks.leaves(i) {
            return false;
        }
        if writes || matches!(inst.src[0].operand, Operand::UReg(_)) {
            return false;
        }
        work.extend(blocks.successors(place, i));
    }
    true
}
