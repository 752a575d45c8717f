//! What an SM counts of each of several launches that run at once.

use super::core::Sm;
use super::warp::WarpSlot;
use crate::counters::Counters;
use serde::{Deserialize, Serialize};

/// What an SM counts of a launch that others run beside: warps that are here and since when; cycles of those that were.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Counted {
    pub counters: Counters,
    warps: u32,
    since: u64,
    until: u64,
    active: u64,
}

/// The counters that a warp's accesses are counted in.
#[inline(always)]
pub(super) fn counters_of<'c>(
    all: &'c mut Counters,
    launches: &'c mut [Counted],
    warp: &WarpSlot,
) -> &'c mut Counters {
    match launches.get_mut(usize::from(warp.group)) {
        Some(own) => &mut own.counters,
        None => all,
    }
}

impl Sm {
    /// Adds what was counted of each of the launches that ran at once.
    pub fn add_launches(&self, launches: &mut [Counters]) {
        for (sum, own) in launches.iter_mut().zip(&self.launches) {
            sum.add(&own.counters);
            sum.sm_active_cycles += own.active;
        }
    }

    /// Warps of a launch are here from now on.
    pub(super) fn hold(&mut self, group: u16, warps: u32, now: u64) {
        let Some(own) = self.launches.get_mut(usize::from(group)) else { return };
        if own.warps == 0 {
            own.since = now.max(own.until);
        }
        own.warps += warps;
    }

    /// They are gone.
    pub(super) fn let_go(&mut self, group: u16, warps: u32, at: u64) {
        let Some(own) = self.launches.get_mut(usize::from(group)) else { return };
        own.until = own.until.max(at);
        own.warps = own.warps.saturating_sub(warps);
        if own.warps == 0 {
            own.active += own.until.saturating_sub(own.since);
        }
    }
}
