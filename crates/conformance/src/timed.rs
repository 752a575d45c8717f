//! A kernel of a directory on the timed machine: its results, its cycles, its counters.

use machine::Counters;
use machine::stall::{STALLS, StallCycles};

/// What the machine measured for the launches of a kernel, together.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    pub cycles: u64,
    pub counters: Counters,
    pub stalls: StallCycles,
    /// Warps resident on active SMs, in per cent of the slots.
    pub occupancy_percent: f64,
}

impl Default for Run {
    fn default() -> Run {
        Run { cycles: 0, counters: Counters::default(), stalls: [0; STALLS], occupancy_percent: 0.0 }
    }
}
