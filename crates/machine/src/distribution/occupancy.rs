//! How many CTAs of a kernel fit an SM, and what limits them: CUDA's occupancy rules as a pure function.

use crate::command::Task;
use crate::sm;
use serde::{Deserialize, Serialize};

/// What an SM runs out of first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limiter {
    Warps,
    Registers,
    CtaSlots,
    Barriers,
    /// Last, as the split follows from the others: it is the limiter only where a larger one would help.
    SharedMemory,
}

impl Limiter {
    pub const ALL: [Limiter; 5] =
        [Limiter::Warps, Limiter::Registers, Limiter::CtaSlots, Limiter::Barriers, Limiter::SharedMemory];

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Limiter::Warps => "warps",
            Limiter::Registers => "registers",
            Limiter::SharedMemory => "shared memory",
            Limiter::CtaSlots => "CTA slots",
            Limiter::Barriers => "barriers",
        }
    }
}

/// What a CTA takes of an SM, in the units in which it is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Needs {
    pub warps: u32,
    /// Registers of one warp, in whole units.
    pub registers_per_warp: u32,
    /// Shared bytes, with what is reserved.
    pub shared: u32,
    pub barriers: u32,
}

impl Needs {
    pub fn new(sm: &sm::Spec, task: &Task) -> Needs {
        let unit = |n: u32, unit: u32| n.checked_next_multiple_of(unit.max(1)).unwrap_or(u32::MAX);
        Needs {
            warps: task.warps(),
            registers_per_warp: unit(task.registers.saturating_mul(32), sm.register_unit),
            shared: unit(task.shared_bytes.saturating_add(sm.shared_reserved), sm.shared_unit),
            barriers: task.barriers,
        }
    }
}

/// How a kernel fills an SM.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Occupancy {
    /// CTAs that an SM can hold; 0 where not even one fits.
    pub ctas_per_sm: u32,
    /// The first resource that is used up.
    pub limiter: Limiter,
    /// Warps that those CTAs have.
    pub warps: u32,
    /// Warp slots of an SM.
    pub max_warps: u32,
    /// CTAs that each resource would allow, in the order of [`Limiter::ALL`].
    pub limits: [u32; 5],
    /// Bytes of shared memory that the split gives.
    pub shared_split: u32,
}

impl Occupancy {
    /// Of a task on such an SM. `split` is the shared memory that it prefers, 0 for as much as its CTAs can use.
    pub fn new(sm: &sm::Spec, task: &Task, split: u32) -> Occupancy {
        let needs = Needs::new(sm, task);
        let per = |all: u32, one: u32| all.checked_div(one).unwrap_or(u32::MAX);
        // Registers belong to sub-cores, and a warp has all of its in one.
        let sub_cores = sm.sub_cores.max(1);
        let warps_by_registers =
            per(sm.registers / sub_cores, needs.registers_per_warp).min(sm.warps).saturating_mul(sub_cores);
        let others = [
            per(sm.warps, needs.warps),
            per(warps_by_registers, needs.warps),
            sm.ctas,
            per(sm.barriers, needs.barriers),
            u32::MAX,
        ];
        let most = others.into_iter().min().unwrap_or(0);
        let shared_split = choose_split(sm, needs.shared, most, split);
        let mut limits = others;
        limits[4] = per(shared_split, needs.shared);
        // Of equal limits the first is named.
        let (limiter, ctas_per_sm) = Limiter::ALL
            .into_iter()
            .zip(limits)
            .min_by_key(|&(limiter, n)| (n, limiter))
            .unwrap_or((Limiter::Warps, 0));
        Occupancy {
            ctas_per_sm,
            limiter,
            warps: ctas_per_sm * needs.warps,
            max_warps: sm.warps,
            limits,
            shared_split,
        }
    }

    /// Share of an SM's warp slots that can be filled, in percent.
    pub fn percent(&self) -> f64 {
        100.0 * f64::from(self.warps) / f64::from(self.max_warps.max(1))
    }
}

/// The smallest split that holds what is wanted: one CTA and the preferred bytes, or as many CTAs as the other resources
/// allow. The largest where none does.
fn choose_split(sm: &sm::Spec, one: u32, ctas: u32, preferred: u32) -> u32 {
    let wanted = if preferred > 0 { preferred.max(one) } else { one.saturating_mul(ctas) };
    let largest = sm.shared_splits.last().copied().unwrap_or(0);
    sm.shared_splits.iter().copied().find(|&split| split >= wanted).unwrap_or(largest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn h200(threads: u32, registers: u32, shared_bytes: u32, barriers: u32) -> Occupancy {
        let config = Config::preset("h200").expect("a preset");
        let task = Task {
            launch: 0,
            priority: 0,
            ctas: 1,
            threads,
            registers,
            shared_bytes,
            barriers,
            ..Task::default()
        };
        Occupancy::new(&config.sm, &task, 0)
    }

    #[test]
    fn occupancy_is_that_of_the_calculator() {
        // Threads, registers, shared bytes, barriers: CTAs an SM, limiter.
        let rows = [
            ((256, 16, 0, 1), (8, Limiter::Warps)),
            ((1024, 32, 0, 1), (2, Limiter::Warps)),
            ((32, 16, 0, 0), (32, Limiter::CtaSlots)),
            // 40 registers are 1,280 a warp, 12 warps a sub-core, 48 in all.
            ((256, 40, 0, 1), (6, Limiter::Registers)),
            // 33 are given as 40.
            ((256, 33, 0, 1), (6, Limiter::Registers)),
            ((256, 255, 0, 1), (1, Limiter::Registers)),
            // 7 warps a sub-core, 28 in all, five at a time.
            ((160, 72, 0, 1), (5, Limiter::Registers)),
            ((128, 32, 72 << 10, 1), (3, Limiter::SharedMemory)),
            ((128, 32, 110 << 10, 1), (2, Limiter::SharedMemory)),
            ((128, 32, 227 << 10, 1), (1, Limiter::SharedMemory)),
            ((128, 32, (227 << 10) + 1, 1), (0, Limiter::SharedMemory)),
            ((64, 16, 0, 16), (4, Limiter::Barriers)),
        ];
        for ((threads, registers, shared, barriers), (ctas, limiter)) in rows {
            let o = h200(threads, registers, shared, barriers);
            assert_eq!(
                (o.ctas_per_sm, o.limiter),
                (ctas, limiter),
                "{threads} {registers} {shared} {barriers}: {o:?}"
            );
        }
        assert_eq!(h200(256, 40, 0, 1).percent(), 75.0);
    }

    #[test]
    fn random_kernels_fit_as_often_as_the_calculator_says() {
        // Threads, registers, shared bytes, barriers; CTAs that CUDA 13's occupancy calculator gives for 9.0.
        #[rustfmt::skip]
        let rows = [
            (285, 202, 0, 13, 0),
            (57, 20, 159169, 5, 1),
            (1010, 111, 167348, 0, 0),
            (154, 21, 48635, 0, 4),
            (347, 200, 0, 6, 0),
            (111, 41, 96984, 9, 2),
            (133, 32, 0, 2, 12),
            (839, 67, 28000, 10, 1),
            (1002, 87, 0, 5, 0),
            (84, 35, 32000, 16, 4),
            (783, 172, 0, 10, 0),
            (109, 43, 1000, 13, 4),
            (55, 36, 0, 10, 6),
            (636, 55, 87644, 4, 1),
            (534, 50, 13000, 3, 2),
            (155, 26, 16000, 1, 12),
            (1015, 99, 68340, 7, 0),
            (104, 39, 82302, 13, 2),
            (53, 34, 88982, 15, 2),
            (213, 238, 0, 14, 1),
            (374, 193, 31244, 15, 0),
            (109, 18, 111829, 9, 2),
            (787, 222, 0, 10, 0),
            (142, 30, 107638, 16, 2),
            (325, 111, 5000, 3, 1),
            (171, 27, 63164, 16, 3),
            (79, 23, 124519, 4, 1),
            (139, 19, 0, 14, 4),
            (824, 136, 0, 14, 0),
            (612, 117, 228493, 14, 0),
            (336, 106, 24000, 16, 1),
            (428, 94, 29000, 12, 1),
            (1009, 41, 23000, 16, 1),
            (523, 24, 37000, 10, 3),
            (164, 39, 6000, 3, 8),
            (98, 43, 0, 1, 10),
            (575, 74, 0, 4, 1),
            (587, 138, 7351, 2, 0),
            (159, 33, 0, 3, 9),
            (273, 201, 7000, 4, 0),
            (15, 29, 0, 9, 7),
            (354, 151, 18000, 14, 1),
            (617, 185, 0, 5, 0),
            (414, 48, 102633, 13, 2),
            (478, 225, 197234, 9, 0),
            (829, 109, 12000, 11, 0),
            (222, 31, 24660, 5, 9),
            (147, 31, 0, 9, 7),
            (285, 95, 24000, 5, 2),
            (598, 103, 36000, 9, 0),
            (122, 219, 7043, 15, 2),
            (1016, 127, 55460, 3, 0),
            (112, 111, 0, 8, 4),
            (614, 139, 169809, 2, 0),
            (74, 28, 0, 2, 21),
            (545, 123, 17333, 10, 0),
            (904, 159, 0, 0, 0),
            (363, 141, 0, 10, 1),
            (243, 223, 158716, 8, 1),
            (380, 178, 18000, 13, 0),
        ];
        for (threads, registers, shared, barriers, ctas) in rows {
            let o = h200(threads, registers, shared, barriers);
            assert_eq!(o.ctas_per_sm, ctas, "{threads} {registers} {shared} {barriers}: {o:?}");
        }
    }

    #[test]
    fn the_split_holds_the_ctas_that_fit_otherwise() {
        // The reserved kilobyte of every CTA counts.
        assert_eq!(h200(256, 32, 0, 1).shared_split, 8 << 10);
        assert_eq!(h200(32, 16, 0, 1).shared_split, 32 << 10);
        assert_eq!(h200(256, 32, 4 << 10, 1).shared_split, 64 << 10);
        assert_eq!(h200(256, 32, 64 << 10, 1).shared_split, 228 << 10);
        let config = Config::preset("h200").expect("a preset");
        let task = Task {
            launch: 0,
            priority: 0,
            ctas: 1,
            threads: 32,
            registers: 16,
            shared_bytes: 9000,
            barriers: 1,
            ..Task::default()
        };
        assert_eq!(Occupancy::new(&config.sm, &task, 1).shared_split, 16 << 10);
        assert_eq!(Occupancy::new(&config.sm, &task, 99 << 10).shared_split, 100 << 10);
    }
}
