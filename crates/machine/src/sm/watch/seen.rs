//! What a profile shows of each instruction (its work, its threads, what it waited for) and of each step of the timeline. SMs
//! that a host thread runs take turns with one.

use super::Counts;
use super::causes::Causes;
use super::timeline::States;
use crate::stall::Stall;
use serde::{Deserialize, Serialize};
use trace::profile::{Link, Work};

/// What was seen. Room for instructions is made when one is seen, where there was none: most SMs have no use for their own.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Seen {
    /// Threads of the instructions that execute in runs, less those of the ones before them, where runs begin and end.
    threads: Vec<u64>,
    work: Vec<Work>,
    pub causes: Causes,
    pub states: States,
}

impl Seen {
    /// With room for so many instructions.
    pub fn with_room(instructions: usize) -> Seen {
        let mut seen = Seen::default();
        seen.grow(instructions);
        seen
    }

    #[cold]
    fn grow(&mut self, instructions: usize) {
        if instructions > self.work.len() {
            self.threads.resize(instructions + 1, 0);
            self.work.resize(instructions, Work::default());
            self.causes.grow(instructions);
        }
    }

    /// So many instructions, one behind the other, execute with so many threads.
    #[inline(always)]
    pub fn execute(&mut self, pc: u32, count: u32, threads: u32) {
        let (first, end) = (pc as usize, (pc + count) as usize);
        if end >= self.threads.len() {
            self.grow(end);
        }
        self.threads[first] = self.threads[first].wrapping_add(threads.into());
        self.threads[end] = self.threads[end].wrapping_sub(threads.into());
    }

    /// The same of one by itself.
    #[inline(always)]
    pub fn execute_one(&mut self, pc: u32, threads: u32) {
        self.work_of(pc).threads += u64::from(threads);
    }

    #[inline(always)]
    fn work_of(&mut self, pc: u32) -> &mut Work {
        if pc as usize >= self.work.len() {
            self.grow(pc as usize + 1);
        }
        &mut self.work[pc as usize]
    }

    /// A memory operation that wants so many bytes of global and local memory: what was counted.
    #[inline(always)]
    pub fn access(&mut self, pc: u32, bytes: u64, counts: Counts) {
        let work = self.work_of(pc);
        work.requests += counts.shared_requests + counts.l1_requests;
        work.sectors += counts.sectors;
        work.hits += counts.hits;
        work.ideal_sectors += bytes.div_ceil(crate::units::SECTOR);
        // Banks of the cache are another matter: their conflicts follow from the sectors.
        work.conflicts += if counts.shared_requests > 0 { counts.bank_conflicts } else { 0 };
    }

    /// An instruction waited for so many cycles, because of another one.
    #[inline(always)]
    pub fn because(&mut self, pc: u32, reason: Stall, link: Link, cause: u32, cycles: u64) {
        if pc as usize >= self.work.len() {
            return self.because_first(pc, reason, link, cause, cycles);
        }
        self.causes.add(pc, reason, link, cause, cycles);
    }

    /// The same where there is no room for the instruction yet.
    #[cold]
    #[inline(never)]
    fn because_first(&mut self, pc: u32, reason: Stall, link: Link, cause: u32, cycles: u64) {
        self.grow(pc as usize + 1);
        self.causes.add(pc, reason, link, cause, cycles);
    }

    /// Takes in what was seen elsewhere, which is empty then.
    pub fn take_in(&mut self, other: &mut Seen) {
        self.grow(other.work.len());
        for (own, threads) in self.threads.iter_mut().zip(&mut other.threads) {
            *own = own.wrapping_add(std::mem::take(threads));
        }
        for (own, work) in self.work.iter_mut().zip(&mut other.work) {
            own.add(&std::mem::take(work));
        }
        self.causes.merge(&other.causes);
        other.causes = Causes::new(other.work.len());
        self.states.take_in(&mut other.states);
    }

    /// The work of all instructions, with their threads.
    pub fn work(&self) -> impl Iterator<Item = Work> {
        let mut in_runs = 0u64;
        self.work.iter().zip(&self.threads).map(move |(work, change)| {
            in_runs = in_runs.wrapping_add(*change);
            Work { threads: work.threads.wrapping_add(in_runs), ..*work }
        })
    }
}
