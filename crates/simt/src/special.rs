//! Special registers. Who the CTA is and where it runs is supplied by whoever drives the engine.

use crate::cta::CtaState;
use crate::lanes::Row;
use isa::Special;
use serde::{Deserialize, Serialize};

/// Where a CTA runs, and in which launch: what a program can ask the machine for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Place {
    pub sm: u32,
    pub sms: u32,
    /// Warp slots of an SM.
    pub warp_slots: u32,
    /// The slot of the CTA's first warp.
    pub first_slot: u32,
    pub grid_id: u64,
}

impl Default for Place {
    fn default() -> Self {
        Place { sm: 0, sms: 132, warp_slots: 64, first_slot: 0, grid_id: 1 }
    }
}

/// Time as a program sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Time {
    pub clock: u64,
    pub nanoseconds: u64,
}

/// A thread's place in its CTA.
pub fn thread(block: [u32; 3], linear: u32) -> [u32; 3] {
    let [x, y, _] = block.map(|n| n.max(1));
    [linear % x, linear / x % y, linear / x / y]
}

fn thread_row(cta: &CtaState, warp: u32, axis: usize) -> Row {
    let block = cta.block.map(|n| n.max(1));
    let line = block[1] == 1 && block[2] == 1;
    let first = if line { [32 * warp, 0, 0] } else { thread(block, 32 * warp) };
    let mut r = [0; 32];
    if line || block[0] % 32 == 0 {
        // A warp lies in one line of the CTA.
        for (i, x) in r.iter_mut().enumerate() {
            *x = first[axis] + if axis == 0 { i as u32 } else { 0 };
        }
        return r;
    }
    let mut t = first;
    for x in &mut r {
        *x = t[axis];
        t[0] += 1;
        if t[0] == block[0] {
            t = [0, t[1] + 1, t[2]];
        }
        if t[1] == block[1] {
            t = [t[0], 0, t[2] + 1];
        }
    }
    r
}

fn lanes(f: impl Fn(u32) -> u32) -> Row {
    std::array::from_fn(|i| f(i as u32))
}

/// A register that does not change while the warp runs.
pub fn row(cta: &CtaState, warp: u32, bits: u32) -> Row {
    let Some(special) = Special::from_bits(bits) else { return [0; 32] };
    use Special::*;
    match special {
        TidX => thread_row(cta, warp, 0),
        TidY => thread_row(cta, warp, 1),
        TidZ => thread_row(cta, warp, 2),
        LaneId => lanes(|i| i),
        LaneMaskEq => lanes(|i| 1 << i),
        LaneMaskLt => lanes(|i| (1 << i) - 1),
        LaneMaskLe => lanes(|i| (2u64 << i).wrapping_sub(1) as u32),
        LaneMaskGt => lanes(|i| !(2u64 << i).wrapping_sub(1) as u32),
        LaneMaskGe => lanes(|i| u32::MAX << i),
        other => [scalar(cta, warp, other); 32],
    }
}

/// Whether all lanes of a warp read the same value.
pub fn is_uniform(bits: u32) -> bool {
    use Special::*;
    !Special::from_bits(bits).is_some_and(|s| {
        matches!(
            s,
            TidX | TidY | TidZ | LaneId | LaneMaskEq | LaneMaskLt | LaneMaskLe | LaneMaskGt | LaneMaskGe
        )
    })
}

/// A register that all lanes of a warp see alike.
pub fn uniform(cta: &CtaState, warp: u32, bits: u32) -> u32 {
    Special::from_bits(bits).map_or(0, |s| scalar(cta, warp, s))
}

fn scalar(cta: &CtaState, warp: u32, special: Special) -> u32 {
    use Special::*;
    match special {
        CtaidX | ClusterIdX => cta.index[0],
        CtaidY | ClusterIdY => cta.index[1],
        CtaidZ | ClusterIdZ => cta.index[2],
        WarpId => cta.place.first_slot + warp,
        NWarpId => cta.place.warp_slots,
        SmId => cta.place.sm,
        NSmId => cta.place.sms,
        GridIdLo => cta.place.grid_id as u32,
        GridIdHi => (cta.place.grid_id >> 32) as u32,
        // Without clusters every CTA is one of its own.
        NClusterIdX => cta.grid[0],
        NClusterIdY => cta.grid[1],
        NClusterIdZ => cta.grid[2],
        ClusterNctaidX | ClusterNctaidY | ClusterNctaidZ | ClusterNctaRank => 1,
        TotalSmem | AggrSmem => cta.shared_bytes,
        DynamicSmem => cta.dynamic_shared,
        _ => 0,
    }
}

/// Whether a register changes while the warp runs.
pub fn is_volatile(bits: u32) -> bool {
    use Special::*;
    Special::from_bits(bits).is_some_and(|s| {
        matches!(
            s,
            ClockLo | ClockHi | GlobalTimerLo | GlobalTimerHi | Pm0 | Pm1 | Pm2 | Pm3 | Pm4 | Pm5 | Pm6 | Pm7
        )
    })
}

/// A register that time changes.
pub fn volatile(time: Time, bits: u32) -> u32 {
    match Special::from_bits(bits) {
        Some(Special::ClockLo) => time.clock as u32,
        Some(Special::ClockHi) => (time.clock >> 32) as u32,
        Some(Special::GlobalTimerLo) => time.nanoseconds as u32,
        Some(Special::GlobalTimerHi) => (time.nanoseconds >> 32) as u32,
        _ => 0,
    }
}
