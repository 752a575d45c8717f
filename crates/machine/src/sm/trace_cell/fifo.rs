//! The cell's FIFO in virtual time: records enter as they are read from the tables, and leave for memory.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Parts of a cycle that are told apart.
const PARTS: u64 = 256;

/// A FIFO with a rate in and a rate out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fifo {
    room: usize,
    /// Parts of a cycle for a record to enter, and to leave.
    enter: u64,
    leave: u64,
    /// When the last one entered, and when those that are in it will have left.
    entered: u64,
    leaving: VecDeque<u64>,
}

impl Fifo {
    pub fn new(room: u32, records_per_cycle: u32, record_bytes: usize, bytes_per_cycle: u32) -> Fifo {
        Fifo {
            room: room.max(1) as usize,
            enter: PARTS / u64::from(records_per_cycle.max(1)),
            leave: (PARTS * record_bytes as u64).div_ceil(bytes_per_cycle.max(1).into()),
            entered: 0,
            leaving: VecDeque::new(),
        }
    }

    /// Each record has left before the next one comes.
    #[inline(always)]
    pub fn is_fast(&self) -> bool {
        self.leave <= self.enter
    }

    /// A record of a cycle; false where it is lost. Cycles come in order.
    #[inline(always)]
    pub fn put(&mut self, cycle: u64) -> bool {
        self.is_fast() || self.wait(cycle)
    }

    fn wait(&mut self, cycle: u64) -> bool {
        let at = (cycle * PARTS).max(self.entered + self.enter);
        self.entered = at;
        while self.leaving.front().is_some_and(|&gone| gone <= at) {
            self.leaving.pop_front();
        }
        if self.leaving.len() >= self.room {
            return false;
        }
        let from = self.leaving.back().copied().unwrap_or(at).max(at);
        self.leaving.push_back(from + self.leave);
        true
    }
}
