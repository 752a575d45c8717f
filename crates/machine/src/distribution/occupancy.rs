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
    SharedMemory,
    CtaSlots,
    Barriers,
}

impl Limiter {
    pub const ALL: [Limiter; 5] =
        [Limiter::Warps, Limiter::Registers, Limiter::SharedMemory, Limiter::CtaSlots, Limiter::Barriers];

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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
            u32::MAX,
            sm.ctas,
            per(sm.barriers, needs.barriers),
        ];
        let most = others.into_iter().min().unwrap_or(0);
        let shared_split = choose_split(sm, needs.shared, most, split);
        let mut limits = others;
        limits[2] = per(shared_split, needs.shared);
        // Of equal limits the first is named, as profilers do.
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
