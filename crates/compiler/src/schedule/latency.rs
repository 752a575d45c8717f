//! Cycles from the issue of an instruction to the issue of one that reads its result.
//!
//! The numbers are those measured on an H200. Loads that may leave the SM count as if they missed the L1 cache, since that is
//! the wait worth hiding.

use isa::{Op, Unit};

/// A load that misses L1 and hits L2.
const GLOBAL: u32 = 300;
/// A load that hits L1.
const LOCAL: u32 = 32;
const SHARED: u32 = 23;

/// Cycles until a result of `op` can be read.
pub fn latency(op: Op) -> u32 {
    match op {
        Op::Ldg | Op::Ld | Op::Atomg | Op::Atom | Op::Tex | Op::Tld4 | Op::Txq => GLOBAL,
        Op::Ldl => LOCAL,
        Op::Atoms => 41,
        // An indexed load from a constant bank.
        Op::Ldc => 29,
        Op::S2r => 20,
        Op::Cs2r => 14,
        // Comparisons reach the predicate file later than sums reach the registers.
        Op::Isetp | Op::Fsetp | Op::Plop3 | Op::Hsetp2 => 6,
        _ => match op.row().unit {
            Unit::Alu | Unit::Fma | Unit::Imad => 4,
            Unit::Half => 5,
            Unit::Fp64 => 8,
            Unit::Xu => 17,
            Unit::Uniform => 6,
            Unit::Lsu => SHARED,
            Unit::Const => 29,
            Unit::Tex => GLOBAL,
            Unit::Branch | Unit::Misc => 14,
        },
    }
}
