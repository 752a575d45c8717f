//! The pools of a GPC: tasks that wait for it and tasks that run on it.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Which of the tasks that work distribution knows.
pub type Slot = usize;

/// Pending and active tasks of one GPC. Both lists are in the order of priority, then of age.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pools {
    pending: VecDeque<Slot>,
    active: Vec<Slot>,
    pending_slots: usize,
    active_slots: usize,
}

impl Pools {
    pub fn new(pending_slots: u32, active_slots: u32) -> Pools {
        Pools {
            pending: VecDeque::new(),
            active: Vec::new(),
            pending_slots: pending_slots.max(1) as usize,
            active_slots: active_slots.max(1) as usize,
        }
    }

    pub fn has_room(&self) -> bool {
        self.pending.len() < self.pending_slots
    }

    pub fn active(&self) -> &[Slot] {
        &self.active
    }

    /// A task joins those that wait; `rank` orders them, lower first.
    pub fn add(&mut self, slot: Slot, rank: impl Fn(Slot) -> (u8, u64)) {
        let place = self.pending.partition_point(|&other| rank(other) <= rank(slot));
        self.pending.insert(place, slot);
    }

    /// A task that left has CTAs again: it joins those that wait, unless it is here still.
    pub fn rejoin(&mut self, slot: Slot, rank: impl Fn(Slot) -> (u8, u64)) {
        if !self.active.contains(&slot) && !self.pending.contains(&slot) {
            self.add(slot, rank);
        }
    }

    /// Takes tasks that are done with this GPC out, and lets those that wait in. A task that is active and idle, neither
    /// running here nor able to, changes places with one that waits.
    pub fn update(
        &mut self,
        done: impl Fn(Slot) -> bool,
        idle: impl Fn(Slot) -> bool,
        rank: impl Fn(Slot) -> (u8, u64),
    ) {
        self.active.retain(|&slot| !done(slot));
        self.pending.retain(|&slot| !done(slot));
        if self.active.len() == self.active_slots
            && !self.pending.is_empty()
            && let Some(place) = self.active.iter().rposition(|&slot| idle(slot))
        {
            let slot = self.active.remove(place);
            self.promote(&rank);
            self.pending.push_back(slot);
        }
        while self.active.len() < self.active_slots && !self.pending.is_empty() {
            self.promote(&rank);
        }
    }

    fn promote(&mut self, rank: impl Fn(Slot) -> (u8, u64)) {
        if let Some(slot) = self.pending.pop_front() {
            let place = self.active.partition_point(|&other| rank(other) <= rank(slot));
            self.active.insert(place, slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(slot: Slot) -> (u8, u64) {
        (0, slot as u64)
    }

    #[test]
    fn an_idle_task_makes_way_for_one_that_waits() {
        let mut pools = Pools::new(4, 2);
        (0..4).for_each(|slot| pools.add(slot, rank));
        let no = |_: Slot| false;
        pools.update(no, no, rank);
        assert_eq!(pools.active(), [0, 1]);
        pools.update(no, |slot| slot == 0, rank);
        assert_eq!(pools.active(), [1, 2]);
        pools.update(|slot| slot == 1, no, rank);
        assert_eq!(pools.active(), [2, 3]);
        pools.update(|slot| slot == 2, no, rank);
        assert_eq!(pools.active(), [0, 3]);
    }

    #[test]
    fn the_pending_pool_is_bounded() {
        let mut pools = Pools::new(2, 1);
        pools.add(0, rank);
        assert!(pools.has_room());
        pools.add(1, rank);
        assert!(!pools.has_room());
        pools.update(|_| false, |_| false, rank);
        assert!(pools.has_room());
    }
}
