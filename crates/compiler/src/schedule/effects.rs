//! What keeps two instructions in order beyond their registers: memory, lanes that wait for each other, time.

use crate::mir::{MFunction, MInst, VReg};
use isa::field::{AtomOrder, Cache, Field, Order, Width};
use isa::reg::Special;
use isa::{Effects, Op, Role};

/// A set of memory spaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spaces(u8);

impl Spaces {
    pub const NONE: Spaces = Spaces(0);
    pub const GLOBAL: Spaces = Spaces(1);
    pub const SHARED: Spaces = Spaces(2);
    pub const LOCAL: Spaces = Spaces(4);
    /// A generic address may be in any of them.
    pub const GENERIC: Spaces = Spaces(7);
    /// Global memory that does not change while the kernel runs.
    pub const READ_ONLY: Spaces = Spaces(8);
    pub const ALL: Spaces = Spaces(15);

    pub fn meets(self, other: Spaces) -> bool {
        self.0 & other.0 != 0
    }
}

/// What an instruction does to memory and to the lanes of its warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Touches {
    pub reads: Spaces,
    pub writes: Spaces,
    /// Words written by one such instruction are those that its address names, so accesses elsewhere may pass it.
    pub is_plain: bool,
    /// Takes part in the waiting of lanes for each other; such instructions stay in their order.
    pub lanes: bool,
}

impl Touches {
    const NOTHING: Touches =
        Touches { reads: Spaces::NONE, writes: Spaces::NONE, is_plain: false, lanes: false };
    /// No access to memory passes it.
    const ALL_MEMORY: Touches =
        Touches { reads: Spaces::ALL, writes: Spaces::ALL, is_plain: false, lanes: false };

    pub fn is_memory(self) -> bool {
        self.reads != Spaces::NONE || self.writes != Spaces::NONE
    }

    pub fn of(i: &MInst) -> Touches {
        let row = i.op().row();
        if row.effects.has(Effects::LANES.or(Effects::BARRIER)) {
            // Lanes that meet may have left data for each other.
            return Touches { lanes: true, ..Touches::ALL_MEMORY };
        }
        if matches!(i.op(), Op::Bssy | Op::BmovR | Op::BmovB | Op::Actmask) {
            return Touches { lanes: true, ..Touches::NOTHING };
        }
        let space = match i.op() {
            Op::Ldg | Op::Stg | Op::Atomg | Op::Redg => Spaces::GLOBAL,
            Op::Lds | Op::Sts | Op::Atoms => Spaces::SHARED,
            Op::Ldl | Op::Stl => Spaces::LOCAL,
            Op::Ld | Op::St | Op::Atom | Op::Red => Spaces::GENERIC,
            Op::Tex | Op::Tld4 | Op::Txq => Spaces::GLOBAL,
            Op::Membar | Op::Cctl => return Touches::ALL_MEMORY,
            _ if row.effects.has(Effects::READS.or(Effects::WRITES).or(Effects::FENCE)) => {
                return Touches::ALL_MEMORY;
            }
            _ => return Touches::NOTHING,
        };
        let is_access = row.fields.contains(&Field::Order) && row.fields.contains(&Field::Width);
        if is_access && i.inst.get::<Order>() != Order::Weak {
            return Touches::ALL_MEMORY;
        }
        if row.fields.contains(&Field::AtomOrder) && i.inst.get::<AtomOrder>() != AtomOrder::Relaxed {
            return Touches::ALL_MEMORY;
        }
        if i.op() == Op::Ldg && i.inst.get::<Cache>() == Cache::Nc {
            return Touches { reads: Spaces::READ_ONLY, is_plain: true, ..Touches::NOTHING };
        }
        let writes = row.effects.has(Effects::WRITES);
        Touches {
            reads: if writes { Spaces::NONE } else { space },
            writes: if writes { space } else { Spaces::NONE },
            is_plain: is_access,
            lanes: false,
        }
    }
}

/// Nothing moves across it: control may leave here, lanes meet here, or the instruction reads the time.
pub fn is_fence(i: &MInst) -> bool {
    if i.call.is_some() || i.op().row().effects.has(Effects::JUMPS.or(Effects::ENDS)) {
        return true;
    }
    match i.op() {
        // What stands behind a meeting point runs once for all lanes, what stands before it perhaps once for each.
        Op::Bsync | Op::Warpsync | Op::Yield => true,
        Op::Nanosleep | Op::Syscall | Op::Pmtrig | Op::Nop => true,
        Op::S2r | Op::Cs2r | Op::S2ur => {
            use Special::*;
            let timed =
                [ClockLo, ClockHi, GlobalTimerLo, GlobalTimerHi, Pm0, Pm1, Pm2, Pm3, Pm4, Pm5, Pm6, Pm7];
            Special::from_bits(i.inst.field(Field::Sr)).is_none_or(|s| timed.contains(&s))
        }
        _ => false,
    }
}

/// Hands over arguments or results in registers that the calling convention names.
pub fn is_tied(f: &MFunction, i: &MInst) -> bool {
    let is_tied = |r: VReg| r != f.sp && f.fixed[r.index()].is_some();
    let mut tied = i.dst.is_some_and(|d| is_tied(d.reg)) || i.pd.iter().flatten().any(|&p| is_tied(p));
    i.for_each_read(|s, _| tied |= is_tied(s.reg));
    i.for_each_pred_read(|p| tied |= is_tied(p));
    tied
}

/// Bytes that a load or store touches; `None` where it is neither.
pub fn access_bytes(i: &MInst) -> Option<u32> {
    let access = i.op().row().roles.iter().any(|r| matches!(r, Role::DW | Role::CW));
    access.then(|| match i.inst.get::<Width>() {
        Width::U8 | Width::S8 => 1,
        Width::U16 | Width::S16 => 2,
        Width::B32 => 4,
        Width::B64 => 8,
        Width::B128 => 16,
    })
}
