//! The instruction window of a scheduler: fetched instructions wait here, and only those in it may issue.
//!
//! A warp's next instruction takes an entry, or waits in line for one. It leaves when it issues, or by a time-out when
//! others wait; then it goes to the end of the line. In synchronisation mode all entries have one program counter: the
//! instruction that entered an empty window sets it, and who differs stays outside. One that has stood at the head of the
//! line for as long as the time-out empties the window for itself, so that nobody stays outside for ever.

use super::ThreadType;
use super::bits::{Bits, remap, remap_set};
use super::spec;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Where an instruction is in its program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct At {
    pub pc: u32,
    /// Calls that it is in.
    pub depth: u32,
    /// Regions of divergent control flow that it is in.
    pub nesting: u32,
}

/// The window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Window {
    spec: spec::Window,
    inside: u64,
    /// Warps in line, in the order in which they came.
    line: VecDeque<u8>,
    #[serde(with = "simt::arrays")]
    at: [At; 64],
    /// When an instruction entered the window, or came to the end of the line.
    #[serde(with = "simt::arrays")]
    since: [u64; 64],
    /// Number of its entry.
    #[serde(with = "simt::arrays")]
    order: [u64; 64],
    entered: u64,
    #[serde(with = "simt::arrays")]
    thread: [ThreadType; 64],
}

impl Window {
    pub fn new(spec: &spec::Window) -> Window {
        Window {
            spec: spec.clone(),
            inside: 0,
            line: VecDeque::new(),
            at: [At::default(); 64],
            since: [0; 64],
            order: [0; 64],
            entered: 0,
            thread: [ThreadType::Compute; 64],
        }
    }

    pub fn add(&mut self, bit: u32, thread: ThreadType) {
        self.thread[bit as usize % 64] = thread;
    }

    /// Warps whose instructions are in the window.
    #[inline(always)]
    pub fn inside(&self) -> u64 {
        self.inside
    }

    /// Instructions of different warps that may issue in a cycle.
    pub fn issue(&self) -> u32 {
        self.spec.issue
    }

    fn is_known(&self, bit: u32) -> bool {
        self.inside >> bit & 1 != 0 || self.line.iter().any(|&b| u32::from(b) == bit)
    }

    /// A warp's next instruction was fetched.
    pub fn fetch(&mut self, bit: u32, at: At, now: u64) {
        self.pass(now);
        let n = bit as usize % 64;
        if self.is_known(bit) {
            // The warp was looked at again, or another part of it goes on elsewhere.
            self.at[n] = at;
            if self.spec.synchronise {
                self.part(now);
            }
            return;
        }
        (self.at[n], self.since[n]) = (at, now);
        self.line.push_back(bit as u8);
        self.fill(now);
    }

    /// The instruction issued, or its warp ended.
    pub fn leave(&mut self, bit: u32, now: u64) {
        self.pass(now);
        self.inside &= !(1 << bit);
        self.line.retain(|&b| u32::from(b) != bit);
        self.fill(now);
    }

    /// What must be alike in synchronisation mode.
    fn key(&self, bit: u32) -> At {
        let at = self.at[bit as usize % 64];
        At {
            pc: at.pc,
            depth: if self.spec.depth { at.depth } else { 0 },
            nesting: if self.spec.nesting { at.nesting } else { 0 },
        }
    }

    fn priority(&self, bit: u32) -> u32 {
        self.spec.priority.get(self.thread[bit as usize % 64] as usize).copied().unwrap_or(0)
    }

    fn enter(&mut self, bit: u32, now: u64) {
        let n = bit as usize % 64;
        self.inside |= 1 << bit;
        self.entered += 1;
        (self.since[n], self.order[n]) = (now, self.entered);
    }

    /// Gives free entries to the line: the highest type of thread first, then who came first.
    fn fill(&mut self, now: u64) {
        while self.inside.count_ones() < self.spec.entries {
            let reference = self.spec.synchronise.then(|| self.reference()).flatten();
            let fits = |b: u32| reference.is_none_or(|r| self.key(r) == self.key(b));
            let first = (0..self.line.len())
                .filter(|&n| fits(self.line[n].into()))
                .min_by_key(|&n| (Reverse(self.priority(self.line[n].into())), n));
            let Some(bit) = first.and_then(|n| self.line.remove(n)) else { return };
            self.enter(bit.into(), now);
        }
    }

    /// In synchronisation mode: the instruction that the others are compared with, the first that entered.
    fn reference(&self) -> Option<u32> {
        Bits(self.inside).min_by_key(|&b| self.order[b as usize])
    }

    /// Puts those out that are not alike.
    fn part(&mut self, now: u64) {
        let Some(reference) = self.reference() else { return };
        let mut others: Vec<u32> =
            Bits(self.inside).filter(|&b| self.key(b) != self.key(reference)).collect();
        others.sort_by_key(|&b| self.order[b as usize]);
        others.into_iter().for_each(|b| self.put_out(b, now));
        self.fill(now);
    }

    fn put_out(&mut self, bit: u32, now: u64) {
        self.inside &= !(1 << bit);
        self.since[bit as usize % 64] = now;
        self.line.push_back(bit as u8);
    }

    /// Time passes: who has been in the window for too long goes out when others wait, and who has been at the head of the
    /// line for too long comes in.
    pub fn pass(&mut self, now: u64) {
        while self.next() <= now {
            self.time_out(self.next());
        }
    }

    /// A cycle in which a time-out is due.
    fn time_out(&mut self, now: u64) {
        let timeout = u64::from(self.spec.timeout);
        let late = |w: &Window, b: u32| w.since[b as usize % 64] + timeout <= now;
        let head = self.line.front().map(|&b| u32::from(b)).filter(|&b| late(self, b));
        let mut out: Vec<u32> = match head {
            Some(_) if self.spec.synchronise => Bits(self.inside).collect(),
            _ => Bits(self.inside).filter(|&b| late(self, b)).collect(),
        };
        out.sort_by_key(|&b| self.order[b as usize]);
        for b in out {
            self.put_out(b, now);
        }
        if let Some(bit) = head
            && self.inside.count_ones() < self.spec.entries
        {
            // Whatever its type: it has waited for long.
            self.line.pop_front();
            self.enter(bit, now);
        }
        self.fill(now);
    }

    /// The next cycle in which a time-out is due.
    pub fn next(&self) -> u64 {
        let Some(&head) = self.line.front() else { return u64::MAX };
        let inside = Bits(self.inside).map(|b| self.since[b as usize]).min().unwrap_or(u64::MAX);
        let first = if self.spec.synchronise { inside.min(self.since[head as usize % 64]) } else { inside };
        first.saturating_add(self.spec.timeout.into())
    }

    /// The oldest of a set: the highest type of thread, the deepest, then by program counter or residence.
    pub fn choose(&self, set: u64) -> u32 {
        let age = |b: u32| {
            let n = b as usize % 64;
            let deep = |on: bool, v: u32| Reverse(if on { v } else { 0 });
            let first = match self.spec.age {
                spec::Age::Pc => u64::from(self.at[n].pc),
                spec::Age::Residence => self.order[n],
            };
            let at = self.at[n];
            let depth = (deep(self.spec.depth, at.depth), deep(self.spec.nesting, at.nesting));
            (Reverse(self.priority(b)), depth, first, self.order[n])
        };
        Bits(set).min_by_key(|&b| age(b)).unwrap_or(0)
    }

    pub fn remap(&mut self, old: &[u8]) {
        remap_set(&mut self.inside, old);
        for b in &mut self.line {
            *b = old.iter().position(|from| from == b).unwrap_or(0) as u8;
        }
        remap(&mut self.at, old);
        remap(&mut self.since, old);
        remap(&mut self.order, old);
        remap(&mut self.thread, old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn window(change: impl Fn(&mut spec::Window)) -> Window {
        let mut spec = Config::preset("tiny").expect("the preset").sm.scheduler.window;
        (spec.entries, spec.timeout, spec.age) = (2, 10, spec::Age::Pc);
        (spec.depth, spec.nesting, spec.synchronise) = (false, false, false);
        spec.priority = vec![1, 2, 3, 0];
        change(&mut spec);
        Window::new(&spec)
    }

    fn at(pc: u32) -> At {
        At { pc, depth: 0, nesting: 0 }
    }

    #[test]
    fn entries_are_given_in_the_order_of_the_line() {
        let mut w = window(|_| ());
        for b in 0..4 {
            w.fetch(b, at(9 - b), 0);
        }
        assert_eq!(w.inside(), 0b0011);
        // The lowest program counter is the oldest.
        assert_eq!(w.choose(0b0011), 1);
        w.leave(1, 1);
        assert_eq!(w.inside(), 0b0101);
        w.fetch(1, at(8), 1);
        w.leave(0, 2);
        assert_eq!(w.inside(), 0b1100);
        w.leave(2, 2);
        w.leave(3, 2);
        assert_eq!(w.inside(), 0b0010);
    }

    #[test]
    fn residence_is_another_age() {
        let mut w = window(|s| s.age = spec::Age::Residence);
        w.fetch(5, at(9), 0);
        w.fetch(3, at(1), 1);
        assert_eq!(w.choose(1 << 3 | 1 << 5), 5);
    }

    #[test]
    fn types_of_threads_have_priorities() {
        let mut w = window(|_| ());
        w.add(0, ThreadType::Compute);
        w.add(1, ThreadType::Vertex);
        w.add(2, ThreadType::Pixel);
        w.add(3, ThreadType::Vertex);
        for b in 0..4 {
            w.fetch(b, at(b), 0);
        }
        assert_eq!(w.inside(), 0b0011);
        assert_eq!(w.choose(0b0011), 1, "vertex before compute, although it is further on");
        // Pixels have the highest priority, so 2 enters before 3.
        w.leave(1, 1);
        assert_eq!(w.inside(), 0b0101);
    }

    #[test]
    fn depth_and_nesting_make_older() {
        let deep = |depth: bool, nesting: bool| {
            let mut w = window(|s| (s.depth, s.nesting, s.entries) = (depth, nesting, 3));
            w.fetch(0, at(1), 0);
            w.fetch(1, At { pc: 2, depth: 0, nesting: 2 }, 0);
            w.fetch(2, At { pc: 3, depth: 1, nesting: 0 }, 0);
            w.choose(0b111)
        };
        assert_eq!(
            (deep(false, false), deep(false, true), deep(true, false), deep(true, true)),
            (0, 1, 2, 2)
        );
    }

    #[test]
    fn a_time_out_makes_room_for_who_waits() {
        let mut w = window(|_| ());
        for b in 0..3 {
            w.fetch(b, at(b), u64::from(b));
        }
        assert_eq!((w.inside(), w.next()), (0b011, 10));
        w.pass(9);
        assert_eq!(w.inside(), 0b011);
        // 0 came in cycle 0 and leaves in cycle 10, 1 a cycle later: both are at the end of the line then.
        w.pass(10);
        assert_eq!((w.inside(), w.next()), (0b110, 11));
        w.pass(11);
        assert_eq!((w.inside(), w.next()), (0b101, 20));
        // Nobody is evicted for an empty line.
        w.leave(0, 12);
        w.leave(2, 12);
        assert_eq!((w.inside(), w.next()), (0b010, u64::MAX));
        w.pass(1000);
        assert_eq!(w.inside(), 0b010);
    }

    #[test]
    fn synchronised_warps_alone_are_inside() {
        let mut w = window(|s| (s.synchronise, s.entries) = (true, 4));
        w.fetch(0, at(5), 0);
        w.fetch(1, at(7), 0);
        w.fetch(2, at(5), 0);
        assert_eq!(w.inside(), 0b101);
        // 0 went on to 6: it differs from 2, which sets the place now.
        w.leave(0, 1);
        w.fetch(0, at(6), 1);
        assert_eq!(w.inside(), 0b100);
        w.leave(2, 2);
        assert_eq!(w.inside(), 0b010, "the head of the line sets the next place");
        // 0 is at the head of the line and has waited since cycle 1.
        w.fetch(2, at(7), 3);
        assert_eq!((w.inside(), w.next()), (0b110, 11));
        w.pass(11);
        assert_eq!(w.inside(), 0b001);
    }
}
