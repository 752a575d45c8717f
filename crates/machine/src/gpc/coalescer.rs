//! Where equal requests of SMs meet: a load for sectors that are already under way waits for them.

use super::NONE;
use crate::units::Cycle;
use serde::{Deserialize, Serialize};

/// A line under way.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Entry {
    line: u64,
    /// Until when others can join: when its answer leaves the slice; at least when it can leave at the earliest, as
    /// long as the packet is one of this exchange.
    open: Cycle,
    /// When its answer is in the GPC; not known as long as the packet is one of this exchange.
    ready: Cycle,
    packet: u32,
    sectors: u8,
    followers: u8,
}

const EMPTY: Entry =
    Entry { line: u64::MAX, open: Cycle(0), ready: Cycle(0), packet: NONE, sectors: 0, followers: 0 };

/// What a load met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Met {
    /// Sectors of it that are under way.
    pub sectors: u8,
    /// The packet of this exchange that brings them, or [`NONE`] and when they are there.
    pub packet: u32,
    pub ready: Cycle,
}

pub const NOTHING: Met = Met { sectors: 0, packet: NONE, ready: Cycle(0) };

/// Lines under way; a newer one takes the place of an older one.
///
/// It stands in front of the slices: two SMs of an H200 that ask for a line `d` cycles apart send one request up to a
/// `d` of 40 to 80 when the slice has it, 300 to 400 when near DRAM does, 500 to 600 when far DRAM does: each time what
/// the slice takes, without the way to it and back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Coalescer {
    entries: Box<[Entry]>,
    followers: u8,
}

impl Coalescer {
    pub fn new(entries: u32, followers: u32) -> Coalescer {
        let entries = if entries == 0 { 0 } else { entries.next_power_of_two() as usize };
        Coalescer { entries: vec![EMPTY; entries].into_boxed_slice(), followers: followers.min(255) as u8 }
    }

    #[inline(always)]
    fn slot(&self, line: u64) -> usize {
        // Lines of a stream follow each other; the fold keeps powers of two apart.
        (line ^ (line >> 11)) as usize & (self.entries.len() - 1)
    }

    /// Which sectors of a load that comes to the slices at `at` are under way. It will wait for them.
    #[inline]
    pub fn meet(&mut self, at: Cycle, line: u64, sectors: u8) -> Met {
        if self.entries.is_empty() {
            return NOTHING;
        }
        let slot = self.slot(line);
        let followers = self.followers;
        let entry = &mut self.entries[slot];
        let met = entry.sectors & sectors;
        if entry.line != line || entry.open <= at || met == 0 || entry.followers >= followers {
            return NOTHING;
        }
        entry.followers += 1;
        Met { sectors: met, packet: entry.packet, ready: entry.ready }
    }

    /// Sectors of a line are asked for by a packet of this exchange, whose answer leaves the slice at `open` at the
    /// earliest.
    #[inline]
    pub fn sent(&mut self, line: u64, sectors: u8, packet: u32, open: Cycle) {
        if self.entries.is_empty() {
            return;
        }
        let slot = self.slot(line);
        self.entries[slot] = Entry { line, open, ready: Cycle(0), packet, sectors, followers: 0 };
    }

    /// The answer to the packet of this exchange that asked for a line leaves the slice at `left` and is here at `ready`.
    #[inline]
    pub fn answered(&mut self, line: u64, packet: u32, left: Cycle, ready: Cycle) {
        if self.entries.is_empty() {
            return;
        }
        let slot = self.slot(line);
        let entry = &mut self.entries[slot];
        if entry.line == line && entry.packet == packet {
            entry.packet = NONE;
            entry.open = left;
            entry.ready = ready;
        }
    }

    pub fn clear(&mut self) {
        self.entries.fill(EMPTY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_wait_for_what_is_under_way() {
        let mut c = Coalescer::new(64, 2);
        assert_eq!(c.meet(Cycle(10), 7, 0b11), NOTHING);
        c.sent(7, 0b11, 0, Cycle(80));
        assert_eq!(c.meet(Cycle(11), 7, 0b110), Met { sectors: 0b10, packet: 0, ready: Cycle(0) });
        // It may be answered by then.
        assert_eq!(c.meet(Cycle(80), 7, 0b110), NOTHING);
        c.answered(7, 0, Cycle(240), Cycle(300));
        assert_eq!(c.meet(Cycle(239), 7, 0b1), Met { sectors: 1, packet: NONE, ready: Cycle(300) });
        // No third follower, no other sectors, nothing after it left.
        assert_eq!(c.meet(Cycle(239), 7, 0b1), NOTHING);
        c.sent(7, 0b1, 1, Cycle(310));
        assert_eq!(c.meet(Cycle(299), 7, 0b10), NOTHING);
        c.answered(7, 1, Cycle(340), Cycle(400));
        assert_eq!(c.meet(Cycle(340), 7, 0b1), NOTHING);
    }
}
