//! Compute scheduler unit: keeps tasks by priority and gives them to work distribution.

mod spec;
pub mod tmd;

pub use spec::Spec;

use crate::command::Task;
use crate::server::Line;
use crate::units::Cycle;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// A task on its way to work distribution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Scheduled {
    pub task: Task,
    /// Shared-memory split that it prefers, 0 for none.
    pub split: u32,
    /// When work distribution can have it.
    pub at: Cycle,
}

/// Lists of tasks, one a priority. A task joins the tail of its list, or its head where it says so; the head of the highest
/// goes first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComputeScheduler {
    task_cycles: u64,
    reader: Line,
    lists: BTreeMap<u8, VecDeque<Scheduled>>,
}

impl ComputeScheduler {
    pub fn new(spec: &Spec) -> ComputeScheduler {
        ComputeScheduler {
            task_cycles: spec.task_cycles.into(),
            reader: Line::default(),
            lists: BTreeMap::new(),
        }
    }

    /// Takes a task from the front end.
    pub fn add(&mut self, at: Cycle, task: Task, split: u32) {
        let at = self.reader.serve(at, self.task_cycles) + self.task_cycles;
        let list = self.lists.entry(task.priority).or_default();
        let scheduled = Scheduled { task, split, at };
        if task.at_head { list.push_front(scheduled) } else { list.push_back(scheduled) }
    }

    pub fn is_empty(&self) -> bool {
        self.lists.values().all(VecDeque::is_empty)
    }

    /// When the first of all tasks can go to work distribution.
    pub fn next(&self) -> Option<Cycle> {
        self.lists.values().filter_map(|list| list.front()).map(|s| s.at).min()
    }

    /// The task that goes to work distribution at `now`: of those that are ready, the one of the highest priority.
    pub fn take(&mut self, now: Cycle) -> Option<Scheduled> {
        let list = self.lists.values_mut().rev().find(|list| list.front().is_some_and(|s| s.at <= now))?;
        list.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn higher_priorities_go_first_and_equal_ones_in_order() {
        let mut unit = ComputeScheduler::new(&Spec { task_cycles: 10 });
        let task = |launch, priority| Task {
            launch,
            priority,
            ctas: 1,
            threads: 32,
            registers: 16,
            shared_bytes: 0,
            barriers: 0,
            ..Task::default()
        };
        for (launch, priority) in [(0, 1), (1, 1), (2, 9)] {
            unit.add(Cycle(0), task(launch, priority), 0);
        }
        assert_eq!(unit.next(), Some(Cycle(10)));
        assert_eq!(unit.take(Cycle(9)), None);
        assert_eq!(unit.take(Cycle(15)).map(|s| s.task.launch), Some(0));
        assert_eq!(unit.take(Cycle(40)).map(|s| s.task.launch), Some(2));
        assert_eq!(unit.take(Cycle(40)).map(|s| s.task.launch), Some(1));
        assert!(unit.is_empty());
    }
}
