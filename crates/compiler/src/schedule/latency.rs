//! Cycles from the issue of an instruction to the issue of one that reads its result, and how long pipes are taken.
//!
//! The numbers are those measured on an H200. Loads that may leave the SM count as if they missed the L1 cache, since that is
//! the wait worth hiding.

use crate::mir::MInst;
use isa::field::Width;
use isa::{Op, Unit};

/// A load that misses L1 and hits L2.
const GLOBAL: u32 = 300;
/// A load that hits L1.
const LOCAL: u32 = 32;
/// Shared memory: a word or two, and four words, which take the data path longer.
const SHARED: u32 = 23;
const SHARED_WIDE: u32 = 32;
/// A predicate reaches the guards of instructions and branches later than it reaches operands.
pub const GUARD: u32 = 13;
/// A memory instruction reads its registers so long after it was issued; who writes one sooner waits.
const LATE_READ: u32 = 11;

/// What a result is needed as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    Register,
    /// A predicate as an operand: of selections, carries, logic.
    Predicate,
    /// A predicate that says whether an instruction runs.
    Guard,
}

/// The multiply-add pipes pass results to each other; to and from the others it takes a cycle more.
fn is_multiply_add(unit: Unit) -> bool {
    matches!(unit, Unit::Fma | Unit::Imad | Unit::Half)
}

/// Cycles until a result of `from` can be used by `to`.
pub fn latency(from: &MInst, to: &MInst, need: Need) -> u32 {
    let own = result(from);
    let crosses = || is_multiply_add(from.inst.unit()) != is_multiply_add(to.inst.unit());
    match need {
        Need::Guard => own.max(GUARD),
        Need::Register if own < LOCAL && crosses() => own + 1,
        _ => own,
    }
}

/// Cycles until a result of an instruction can be used in its own pipe.
pub fn result(i: &MInst) -> u32 {
    match i.op() {
        Op::Ldg | Op::Ld | Op::Atomg | Op::Atom | Op::Tex | Op::Tld4 | Op::Txq => GLOBAL,
        Op::Ldl => LOCAL,
        Op::Lds if i.inst.get::<Width>() == Width::B128 => SHARED_WIDE,
        Op::Atoms => 41,
        Op::Shfl => 24,
        Op::S2r | Op::S2ur => 22,
        Op::Cs2r => 14,
        Op::Vote | Op::Elect | Op::Actmask | Op::R2ur => 12,
        _ => match i.inst.unit() {
            Unit::Alu | Unit::Fma | Unit::Imad => 4,
            Unit::Half => 5,
            Unit::Fp64 => 8,
            Unit::Xu => 17,
            Unit::Uniform => 6,
            Unit::Lsu => SHARED,
            // An indexed load from a constant bank.
            Unit::Const => 29,
            Unit::Tex => GLOBAL,
            Unit::Branch | Unit::Misc => 14,
        },
    }
}

/// Cycles from an instruction that reads a register to one that overwrites it.
pub fn reading(op: Op) -> u32 {
    if op.row().unit == Unit::Lsu { LATE_READ } else { 1 }
}

/// Pipes that an instruction of one warp may find taken by another of the same warp.
pub const PIPES: usize = 7;

/// The pipe of an instruction and the cycles for which it takes it: a warp over the lanes that enter in a cycle.
pub fn pipe(i: &MInst) -> (usize, u32) {
    match i.inst.unit() {
        Unit::Alu => (0, 2),
        Unit::Fma => (1, 1),
        Unit::Imad | Unit::Half => (2, 2),
        Unit::Fp64 => (3, 2),
        Unit::Xu => (4, 8),
        Unit::Lsu | Unit::Const | Unit::Tex => (5, 4),
        Unit::Uniform | Unit::Branch | Unit::Misc => (6, 1),
    }
}
