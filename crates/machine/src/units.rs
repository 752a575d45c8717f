//! Types for what would otherwise all be integers: time, places, tokens.

use serde::{Deserialize, Serialize};
use std::ops::{Add, AddAssign, Sub};

/// A point in simulated time: core clock cycles since the machine was switched on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Cycle(pub u64);

impl Cycle {
    /// Not known yet, or never.
    pub const NEVER: Cycle = Cycle(u64::MAX);

    #[inline(always)]
    pub fn later(self, other: Cycle) -> Cycle {
        Cycle(self.0.max(other.0))
    }

    /// So many cycles before this one, or the first of all.
    #[inline(always)]
    pub fn before(self, n: u32) -> Cycle {
        Cycle(self.0.saturating_sub(u64::from(n)))
    }

    /// Cycles from `earlier` to this one; none when it is not later.
    #[inline(always)]
    pub fn since(self, earlier: Cycle) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for Cycle {
    type Output = Cycle;

    #[inline(always)]
    fn add(self, n: u64) -> Cycle {
        Cycle(self.0 + n)
    }
}

impl AddAssign<u64> for Cycle {
    #[inline(always)]
    fn add_assign(&mut self, n: u64) {
        self.0 += n;
    }
}

impl Sub for Cycle {
    type Output = u64;

    #[inline(always)]
    fn sub(self, other: Cycle) -> u64 {
        self.0 - other.0
    }
}

/// An SM of a machine, counted over all GPCs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct SmId(pub u16);

/// What an SM calls one of its outstanding requests; the answer carries it back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Token(pub u32);

/// Bytes of a cache line.
pub const LINE: u64 = 128;
/// Bytes of a sector, the unit that caches miss by and that crosses the crossbar.
pub const SECTOR: u64 = 32;
/// How many sectors a mask of four has. Host processors may lack an instruction that counts bits.
#[inline(always)]
pub fn count(sectors: u8) -> u32 {
    const COUNTS: u64 = 0x4332_3221_3221_2110;
    (COUNTS >> (4 * (sectors & 15))) as u32 & 15
}

/// Sectors of a line.
pub const SECTORS: u32 = (LINE / SECTOR) as u32;
