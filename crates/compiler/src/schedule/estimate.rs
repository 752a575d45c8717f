//! What an order of a function's instructions costs an SM: the time of a warp over the warps that wait beside it.
//!
//! More registers let more loads wait at once, and leave room for fewer warps. Which is worth more depends on both: a part of
//! the code takes the cycles in which it is issued, and the share of a warp's waits that the warps beside it leave open. How
//! much of that overlaps depends on the launch (few CTAs leave most room empty), so both count in full.

/// Registers of a warp scheduler, and warps that it holds.
const REGISTERS: u32 = 16384;
const WARPS: u32 = 16;
/// Registers are given to warps in units of so many: eight for each of 32 lanes.
const UNIT: u32 = 256;
/// How often a loop runs where nobody knows, as the allocator takes it; loops inside loops count so many deep.
const TRIPS: u64 = 10;
const DEEPEST: u32 = 6;

/// Instructions of a part of a function, cycles that one warp takes for them, and loops around them.
struct Part {
    insts: u64,
    cycles: u64,
    depth: u32,
}

/// The parts of a function.
#[derive(Default)]
pub struct Estimate {
    parts: Vec<Part>,
}

impl Estimate {
    pub fn add(&mut self, depth: u32, insts: usize, cycles: u32) {
        self.parts.push(Part { insts: insts as u64, cycles: u64::from(cycles), depth: depth.min(DEEPEST) });
    }

    /// Cycles of a scheduler for a warp, times [`WARPS`], where a thread has so many registers.
    pub fn cost(&self, registers: u32) -> u64 {
        let of_warp = (registers * 32).next_multiple_of(UNIT).max(UNIT);
        let warps = u64::from((REGISTERS / of_warp).clamp(1, WARPS));
        let cost = |p: &Part| {
            let waits = p.cycles.saturating_sub(p.insts);
            (p.insts * u64::from(WARPS) + waits * u64::from(WARPS) / warps) * TRIPS.pow(p.depth)
        };
        self.parts.iter().map(cost).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::Estimate;

    #[test]
    fn waits_count_for_less_where_more_warps_fit() {
        let mut waiting = Estimate::default();
        waiting.add(1, 10, 3000);
        assert!(waiting.cost(32) < waiting.cost(40), "16 warps of a scheduler against 12");
        assert_eq!(waiting.cost(33), waiting.cost(40), "registers come in eights");
        assert_eq!(waiting.cost(16), waiting.cost(32), "there is no room for more than 16");
    }

    #[test]
    fn what_is_issued_all_the_time_does_not_wait() {
        let mut busy = Estimate::default();
        busy.add(0, 100, 100);
        assert_eq!(busy.cost(32), busy.cost(64));
        let mut inner = Estimate::default();
        inner.add(1, 100, 100);
        assert_eq!(inner.cost(32), 10 * busy.cost(32));
    }
}
