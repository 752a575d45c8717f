//! Packets of a GPC to the memory partitions in an exchange, by pair of slices, and their answers.
//!
//! They are written once, where their pair reads them: thousands of them go through the host's caches in every exchange.

use super::NONE;
use crate::l2::Ask;
use crate::units::Cycle;
use simt::prefetch::prefetch_bytes;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bits of a packet's number that say which of its pair's it is; above them, the pair.
const INDEX: u32 = 20;

/// Packets to one pair of slices.
#[derive(Debug, Default)]
struct List {
    asks: Vec<Ask>,
    /// When their answers leave the slices and, later, are in the GPC. Pairs write them at the same time, each its own.
    answers: Vec<AtomicU64>,
    /// How many there were in the last exchange with some.
    before: usize,
}

/// Packets by pair, empty between exchanges.
#[derive(Debug, Default)]
pub struct Packets {
    lists: Vec<List>,
    /// Pairs that have some.
    pairs: Vec<u32>,
    /// When the first of all comes to its pair.
    first: Cycle,
}

impl Packets {
    /// An exchange with so many pairs begins.
    pub fn begin(&mut self, pairs: u32) {
        if self.lists.len() < pairs as usize {
            self.lists.resize_with(pairs as usize, List::default);
        }
        // Their lists are short and many, so the host's caches do not see them coming.
        for List { asks, answers, before } in &self.lists {
            prefetch_bytes(asks.as_ptr() as usize, before * size_of::<Ask>());
            prefetch_bytes(answers.as_ptr() as usize, before * size_of::<AtomicU64>());
        }
        self.first = Cycle::NEVER;
    }

    /// Another packet: its number.
    #[inline(always)]
    pub fn put(&mut self, pair: u32, ask: Ask) -> u32 {
        let list = &mut self.lists[pair as usize];
        let index = list.asks.len();
        if index == 0 {
            self.pairs.push(pair);
        }
        self.first = Cycle(self.first.0.min(ask.at.0));
        list.asks.push(ask);
        debug_assert!(index < 1 << INDEX && pair < 1 << (u32::BITS - INDEX));
        pair << INDEX | index as u32
    }

    /// All are there.
    pub fn end(&mut self) {
        for &pair in &self.pairs {
            let List { asks, answers, .. } = &mut self.lists[pair as usize];
            if answers.len() < asks.len() {
                answers.resize_with(asks.len().next_power_of_two(), AtomicU64::default);
            }
        }
    }

    /// When the first comes to its pair of slices, if there is one.
    pub fn first(&self) -> Option<Cycle> {
        (!self.pairs.is_empty()).then_some(self.first)
    }

    /// Pairs of slices that packets go to.
    pub fn pairs(&self) -> &[u32] {
        &self.pairs
    }

    /// Those for a pair.
    #[inline(always)]
    pub fn of(&self, pair: usize) -> &[Ask] {
        self.lists.get(pair).map_or(&[], |list| &list.asks)
    }

    /// The answer to one of a pair's leaves its memory partition at `at`.
    #[inline(always)]
    pub fn answer(&self, pair: usize, index: u32, at: Cycle) {
        // Threads meet before it is read.
        self.lists[pair].answers[index as usize].store(at.0, Ordering::Relaxed);
    }

    /// When the answer to a packet left its memory partition or, once it has arrived, when it is here.
    #[inline(always)]
    pub fn left(&self, packet: u32) -> Option<Cycle> {
        if packet == NONE {
            return None;
        }
        let (pair, index) = (packet >> INDEX, packet & ((1 << INDEX) - 1));
        let answers = &self.lists.get(pair as usize)?.answers;
        Some(Cycle(answers.get(index as usize)?.load(Ordering::Relaxed)))
    }

    /// The answer to a packet is here at `at`.
    #[inline(always)]
    pub fn arrived(&mut self, packet: u32, at: Cycle) {
        let (pair, index) = (packet >> INDEX, packet & ((1 << INDEX) - 1));
        *self.lists[pair as usize].answers[index as usize].get_mut() = at.0;
    }

    /// All answers were brought.
    pub fn clear(&mut self) {
        for pair in self.pairs.drain(..) {
            let list = &mut self.lists[pair as usize];
            list.before = list.asks.len();
            list.asks.clear();
        }
    }
}
