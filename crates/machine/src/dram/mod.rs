//! DRAM: channels, banks, row buffers, refresh.

mod spec;

pub use spec::Spec;

use crate::counters::Counters;
use crate::server::Calendar;
use crate::units::Cycle;
use serde::{Deserialize, Serialize};
use simt::prefetch::prefetch;

/// No row is open.
const CLOSED: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Bank {
    row: u64,
    /// When its open row was opened.
    opened: Cycle,
    /// When the next access may begin.
    free: Cycle,
}

impl Bank {
    const NEW: Bank = Bank { row: CLOSED, opened: Cycle(0), free: Cycle(0) };
}

/// One channel: banks that work at the same time, and a bus that they share.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Channel {
    spec: Spec,
    banks: Vec<Bank>,
    /// Bytes on the bus, and cycles in which no other row opens.
    bus: Calendar,
    rows: Calendar,
    /// Where in the refresh interval this channel refreshes: channels do not all stop at once.
    phase: u64,
    /// When the refresh interval began that was looked at last.
    interval: u64,
    row_shift: u32,
    bank_shift: u32,
}

impl Channel {
    pub fn new(spec: &Spec, number: u32) -> Channel {
        let interval = u64::from(spec.refresh_interval);
        let banks = spec.banks.max(1).next_power_of_two();
        Channel {
            spec: spec.clone(),
            banks: vec![Bank::NEW; banks as usize],
            bus: Calendar::with_rate(spec.bytes_per_cycle),
            rows: Calendar::with_rate(1.0),
            phase: u64::from(number) * interval / u64::from(spec.channels.max(1)),
            interval: 0,
            row_shift: spec.row_bytes.max(1).ilog2(),
            bank_shift: banks.ilog2(),
        }
    }

    /// The bank of a row.
    #[inline(always)]
    fn bank(&self, row: u64) -> usize {
        // Rows that follow each other in one bank would make a stream wait for every row: fold the row's upper bits in.
        let mask = self.banks.len() - 1;
        (row ^ (row >> self.bank_shift)) as usize & mask
    }

    /// There may be an access at a byte soon.
    #[inline(always)]
    pub fn expect(&self, position: u64) {
        prefetch(&self.banks, self.bank(position >> self.row_shift));
    }

    /// Reads or writes `accesses` neighbouring accesses at byte `position` of this channel; when the last of the data
    /// has passed.
    pub fn access(&mut self, at: Cycle, position: u64, accesses: u32, counters: &mut Counters) -> Cycle {
        let spec = &self.spec;
        let row = position >> self.row_shift;
        let bank = self.bank(row);
        let bank = &mut self.banks[bank];
        let wanted = at.later(bank.free);
        let column = if bank.row == row {
            counters.dram_row_hits += 1;
            wanted
        } else {
            let closing = if bank.row == CLOSED { 0 } else { u64::from(spec.precharge) };
            let open = (wanted + closing)
                .later(bank.opened + u64::from(spec.row_cycle) * u64::from(bank.row != CLOSED));
            let open = after_refresh(open, self.phase, &mut self.interval, spec);
            let open = self.rows.take(open, spec.row_interval);
            bank.row = row;
            bank.opened = open;
            open + u64::from(spec.row_to_column)
        };
        counters.dram_accesses += 1;
        bank.free = column + u64::from(spec.column_interval) * u64::from(accesses);
        let bytes = accesses * spec.access_bytes;
        self.bus.take(column + u64::from(spec.column), bytes) + u64::from(spec.latency)
    }

    pub fn clear(&mut self) {
        self.banks.fill(Bank::NEW);
        self.bus.clear();
        self.rows.clear();
    }
}

/// When a row may be opened that is wanted at `at`.
#[inline]
fn after_refresh(at: Cycle, phase: u64, interval: &mut u64, spec: &Spec) -> Cycle {
    let length = u64::from(spec.refresh_interval);
    if length == 0 {
        return at;
    }
    let at_phase = at.0 + phase;
    if at_phase < *interval || at_phase - *interval >= length {
        *interval = at_phase - at_phase % length;
    }
    at + u64::from(spec.refresh).saturating_sub(at_phase - *interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> Spec {
        Spec {
            channels: 2,
            banks: 4,
            row_bytes: 1024,
            access_bytes: 64,
            bytes_per_cycle: 32.0,
            latency: 100,
            row_to_column: 20,
            precharge: 20,
            column: 20,
            row_cycle: 60,
            column_interval: 2,
            refresh_interval: 0,
            refresh: 0,
            row_interval: 0,
        }
    }

    #[test]
    fn an_open_row_is_nearer() {
        let mut counters = Counters::default();
        let mut channel = Channel::new(&spec(), 0);
        let first = channel.access(Cycle(1000), 0, 1, &mut counters);
        let hit = channel.access(Cycle(2000), 64, 1, &mut counters);
        // Four rows on is the same bank, but for the folding: row 5 of 4 banks.
        let miss = channel.access(Cycle(3000), 5 * 1024, 1, &mut counters);
        // The bus takes up to two cycles, by its place in a bucket.
        let near = |cycles: u64, least: u64| assert!((least..least + 3).contains(&cycles), "{cycles}");
        near(first - Cycle(1000), 100 + 20 + 20);
        near(hit - Cycle(2000), 100 + 20);
        near(miss - Cycle(3000), 100 + 20 + 20 + 20);
        assert_eq!((counters.dram_accesses, counters.dram_row_hits), (3, 1));
    }

    #[test]
    fn rows_open_after_a_refresh() {
        let mut counters = Counters::default();
        let mut channel = Channel::new(&Spec { refresh_interval: 1000, refresh: 300, ..spec() }, 0);
        let during = channel.access(Cycle(2100), 0, 1, &mut counters);
        let after = channel.access(Cycle(2400), 1024, 1, &mut counters);
        assert!((2440..2443).contains(&during.0) && (2540..2543).contains(&after.0), "{during:?} {after:?}");
    }

    #[test]
    fn the_bus_limits_streams() {
        let mut counters = Counters::default();
        let mut channel = Channel::new(&spec(), 0);
        let mut last = Cycle(0);
        for n in 0..1000u64 {
            last = last.later(channel.access(Cycle(n), n * 128, 2, &mut counters));
        }
        assert!((4000..4400).contains(&last.0), "{last:?}");
    }

    #[test]
    fn rows_of_a_channel_open_apart() {
        let mut counters = Counters::default();
        let banks = 64;
        let mut last = |row_interval: u32| {
            let mut channel = Channel::new(&Spec { row_interval, banks, bytes_per_cycle: 64.0, ..spec() }, 0);
            let rows = (0..64u64).map(|n| channel.access(Cycle(1024), n * 1024, 1, &mut counters));
            rows.max().unwrap_or(Cycle(0)) - Cycle(1024)
        };
        // The bus alone would pass one a cycle.
        assert!((200..210).contains(&last(1)), "{}", last(1));
        assert!((450..480).contains(&last(5)), "{}", last(5));
    }
}
