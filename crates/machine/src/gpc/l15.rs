//! The cache behind the instruction and constant caches of a GPC's SMs.

use super::NONE;
use super::coalescer::{Met, NOTHING};
use crate::server::Calendar;
use crate::units::{Cycle, LINE, SECTOR, SECTORS, count};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Entry {
    line: u64,
    ready: Cycle,
    stamp: u32,
    /// The packet of this exchange that brings it.
    packet: u32,
    sectors: u8,
}

const EMPTY: Entry = Entry { line: u64::MAX, ready: Cycle(0), stamp: 0, packet: NONE, sectors: 0 };

/// Lines of code and constants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct L15 {
    ways: usize,
    entries: Box<[Entry]>,
    clock: u32,
    latency: u64,
    port: Calendar,
}

impl L15 {
    pub fn new(spec: &super::Spec) -> L15 {
        let ways = spec.l15_ways.max(1) as usize;
        let sets = (u64::from(spec.l15_bytes) / LINE / ways as u64).max(1) as usize;
        L15 {
            ways,
            entries: vec![EMPTY; sets * ways].into_boxed_slice(),
            clock: 0,
            latency: u64::from(spec.l15_latency),
            port: Calendar::with_rate(spec.l15_bytes_per_cycle),
        }
    }

    fn set(&mut self, line: u64) -> &mut [Entry] {
        let sets = (self.entries.len() / self.ways) as u64;
        let first = (line % sets) as usize * self.ways;
        &mut self.entries[first..first + self.ways]
    }

    /// Looks up at `at`: which sectors are here or under way, and when they leave for the SM.
    pub fn look_up(&mut self, at: Cycle, line: u64, sectors: u8) -> Met {
        self.clock = self.clock.wrapping_add(1);
        let clock = self.clock;
        let Some(entry) = self.set(line).iter_mut().find(|e| e.line == line) else { return NOTHING };
        entry.stamp = clock;
        let met = entry.sectors & sectors;
        if met == 0 {
            return NOTHING;
        }
        let found = Met { sectors: met, packet: entry.packet, ready: entry.ready };
        let passed = self.port.take(at, count(met) * SECTOR as u32) + self.latency;
        Met { ready: passed.later(found.ready), ..found }
    }

    /// Whether a line is here or under way.
    pub fn holds(&mut self, line: u64) -> bool {
        self.set(line).iter().any(|e| e.line == line)
    }

    /// Sectors of a line are asked for by a packet of this exchange.
    pub fn sent(&mut self, line: u64, sectors: u8, packet: u32) {
        let clock = self.clock;
        let set = self.set(line);
        let known = set.iter().position(|e| e.line == line);
        let oldest = set.iter().enumerate().min_by_key(|(_, e)| e.stamp).map_or(0, |(n, _)| n);
        let entry = &mut set[known.unwrap_or(oldest)];
        let old = if known.is_some() { *entry } else { EMPTY };
        *entry = Entry { line, stamp: clock, packet, sectors: old.sectors | sectors, ..old };
    }

    /// The packet of this exchange that asked for a line brings it at `ready`.
    pub fn answered(&mut self, line: u64, packet: u32, ready: Cycle) {
        if let Some(entry) = self.set(line).iter_mut().find(|e| e.line == line && e.packet == packet) {
            entry.packet = NONE;
            entry.ready = entry.ready.later(ready);
        }
    }

    /// A whole line comes in before anything asks for it.
    pub fn preload(&mut self, line: u64) {
        // Newer than an empty place, which would be taken first.
        self.clock = self.clock.wrapping_add(1);
        self.sent(line, (1 << SECTORS) - 1, NONE);
    }

    pub fn clear(&mut self) {
        self.entries.fill(EMPTY);
        self.port.clear();
    }
}
