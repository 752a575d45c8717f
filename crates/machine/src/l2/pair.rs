//! Two slices, one in each half, that hold the same addresses, and the DRAM channels behind them.
//!
//! An SM asks the slice of its own half. Lines whose home is the other half are asked for there, and a copy stays near.
//! What is written goes home, and copies of it end.

use super::map::{Map, Place};
use super::tags::{COPIED, DIRTY, Evicted, HOST, PARTIAL, REPLICA, Slot, Tags, VALID};
use crate::counters::Counters;
use crate::dram;
use crate::ports::RequestKind;
use crate::server::Calendar;
use crate::units::{Cycle, SECTOR, SECTORS, count};
use serde::{Deserialize, Serialize};
use simt::prefetch::prefetch_list;

/// A request at a slice. Half a line of the host's caches: an exchange has thousands.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// When it comes to the slice.
    pub at: Cycle,
    /// Number of the line: the 32 bits that tags keep.
    pub line: u32,
    /// Where the line lives.
    pub place: Place,
    pub sectors: u8,
    pub kind: RequestKind,
    pub whole: bool,
    pub depth: u8,
    pub operations: u8,
}

const _: () = assert!(size_of::<Ask>() == 32);

/// Bytes of a message between slices that carries no data.
const MESSAGE: u32 = 8;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Slice {
    tags: Tags,
    /// Bytes looked up.
    port: Calendar,
    /// Bytes to the other slice.
    link: Calendar,
}

/// Two slices of the same addresses (one, where the cache has no halves) and their DRAM channels.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pair {
    map: Map,
    latency: u64,
    far_latency: u64,
    request_bytes: u32,
    write_bytes: u32,
    atomic_bytes: u32,
    atomic_latency: u64,
    sectors_per_access: u32,
    access_bytes: u32,
    slices: Vec<Slice>,
    channels: Vec<dram::Channel>,
    pub counters: Counters,
}

#[inline(always)]
fn bytes(sectors: u8) -> u32 {
    count(sectors) * SECTOR as u32
}

impl Pair {
    pub fn new(map: Map, spec: &super::Spec, dram: &dram::Spec, number: u32) -> Pair {
        let slice = |_| Slice {
            tags: Tags::new(spec.sets, spec.ways, spec.copy_ways),
            port: Calendar::with_rate(spec.bytes_per_cycle),
            link: Calendar::with_rate(spec.far_bytes_per_cycle),
        };
        Pair {
            map,
            latency: u64::from(spec.latency),
            far_latency: u64::from(spec.far_latency),
            request_bytes: spec.request_bytes,
            write_bytes: spec.write_bytes,
            atomic_bytes: spec.atomic_bytes,
            atomic_latency: u64::from(spec.atomic_latency),
            sectors_per_access: (dram.access_bytes / SECTOR as u32).clamp(1, SECTORS),
            access_bytes: dram.access_bytes,
            slices: (0..map.halves()).map(slice).collect(),
            channels: (0..map.channels())
                .map(|n| dram::Channel::new(dram, number * map.channels() + n))
                .collect(),
            counters: Counters::default(),
        }
    }

    /// Requests will come soon.
    pub fn expect_all(&self) {
        prefetch_list(&self.slices);
        prefetch_list(&self.channels);
    }

    /// A request will be served soon.
    #[inline(always)]
    pub fn expect(&self, near: u32, ask: &Ask) {
        let (near, home) = (near as usize, ask.place.home as usize);
        self.slices[home].tags.expect(ask.place.set);
        if near != home {
            self.slices[near].tags.expect(ask.place.set);
        }
        self.channels[ask.place.channel as usize].expect(ask.place.position());
    }

    /// When the answer to a request leaves the slice of half `near`.
    pub fn serve(&mut self, near: u32, ask: &Ask) -> Cycle {
        let place = ask.place;
        match ask.kind {
            RequestKind::Load | RequestKind::Instruction | RequestKind::Constant => {
                self.counters.l2_load_sectors += u64::from(count(ask.sectors));
                self.load(near as usize, &place, ask)
            }
            RequestKind::Store => {
                self.counters.l2_store_sectors += u64::from(count(ask.sectors));
                let n = u64::from(count(ask.sectors));
                let cost = bytes(ask.sectors) + self.write_bytes;
                let (at, away) = self.bring_home(near as usize, &place, ask, n, cost);
                self.count(n, n);
                self.write(place.home as usize, &place, ask, at, 0);
                at + self.latency + away
            }
            RequestKind::Atomic | RequestKind::Reduction => self.atomic(near as usize, &place, ask),
        }
    }

    fn count(&mut self, sectors: u64, hits: u64) {
        self.counters.l2_sectors += sectors;
        self.counters.l2_hits += hits;
    }

    /// A load passes through the port of a slice.
    #[inline(always)]
    fn look_up(&mut self, half: usize, at: Cycle, sectors: u8) -> Cycle {
        self.slices[half].port.take(at, bytes(sectors).max(self.request_bytes))
    }

    /// Sectors and their neighbours: the unit in which DRAM and the other half give.
    #[inline(always)]
    fn with_neighbours(&self, sectors: u8) -> u8 {
        match self.sectors_per_access {
            1 => sectors,
            2 => {
                let first = (sectors | sectors >> 1) & 0b0101;
                first | first << 1
            }
            _ if sectors == 0 => 0,
            _ => 15,
        }
    }

    fn load(&mut self, near: usize, place: &Place, ask: &Ask) -> Cycle {
        let home = place.home as usize;
        if near == home {
            return self.load_home(near, place, ask.line, ask.sectors, ask.at, 0);
        }
        let start = self.look_up(near, ask.at, ask.sectors);
        let mut done = start + self.latency;
        let slice = &mut self.slices[near];
        let found = slice.tags.touch(place.set, ask.line);
        let mut present = 0;
        if let Some(at) = found {
            let way = slice.tags.way(at);
            present = way.valid() & ask.sectors;
            if present != 0 {
                done = done.later(way.ready());
            }
        }
        let missing = ask.sectors & !present;
        self.count(u64::from(count(ask.sectors)), u64::from(count(present)));
        if missing == 0 {
            return done;
        }
        let missing = self.with_neighbours(missing);
        self.counters.l2_far_sectors += u64::from(count(missing));
        let asked = self.slices[near].link.take(start + self.latency, MESSAGE) + self.far_latency;
        let there = self.load_home(home, place, ask.line, missing, asked, COPIED);
        let back = self.slices[home].link.take(there, MESSAGE + bytes(missing)) + self.far_latency;
        let tags = &mut self.slices[near].tags;
        // A copy is never dirty: what gives way to it may be, in its own home.
        let at = match found {
            Some(at) => at,
            None => {
                let (at, evicted) = tags.allocate(place.set, ask.line, REPLICA);
                self.write_back(near, back, evicted);
                at
            }
        };
        self.slices[near].tags.change(at, |way| {
            way.set(VALID, missing);
            way.wait_for(back);
        });
        done.later(back)
    }

    /// A load at the line's own slice: when its data leave.
    fn load_home(
        &mut self,
        home: usize,
        place: &Place,
        line: u32,
        sectors: u8,
        at: Cycle,
        flags: u16,
    ) -> Cycle {
        let start = self.look_up(home, at, sectors);
        let mut done = start + self.latency;
        let tags = &mut self.slices[home].tags;
        let found = tags.touch(place.set, line);
        let mut present = 0;
        if let Some(at) = found {
            tags.change(at, |way| {
                present = way.valid() & sectors;
                way.take(HOST);
                way.put(flags);
                if present != 0 {
                    done = done.later(way.ready());
                }
            });
        }
        self.count(u64::from(count(sectors)), u64::from(count(present)));
        let missing = sectors & !present;
        if missing != 0 {
            done = done.later(self.fill(home, place, line, missing, done, found, flags));
        }
        done
    }

    /// Reads sectors from DRAM; when they are there.
    fn fill(
        &mut self,
        home: usize,
        place: &Place,
        line: u32,
        sectors: u8,
        at: Cycle,
        found: Option<Slot>,
        flags: u16,
    ) -> Cycle {
        let all = self.with_neighbours(sectors);
        let accesses = count(all) / self.sectors_per_access;
        let position = place.position() + u64::from(all.trailing_zeros()) * SECTOR;
        let done = self.channels[place.channel as usize].access(at, position, accesses, &mut self.counters);
        self.counters.dram_read_bytes += u64::from(accesses * self.access_bytes);
        let slot = match found {
            Some(slot) => slot,
            None => self.make_room(home, place, line, flags, at),
        };
        self.slices[home].tags.change(slot, |way| {
            way.set(VALID, all);
            way.clear(PARTIAL, all);
            way.wait_for(done);
        });
        done
    }

    fn make_room(&mut self, half: usize, place: &Place, line: u32, flags: u16, at: Cycle) -> Slot {
        let (slot, evicted) = self.slices[half].tags.allocate(place.set, line, flags);
        self.write_back(half, at, evicted);
        slot
    }

    /// Writes what a line that gave way had for DRAM. Sectors that are known in part are read first.
    fn write_back(&mut self, half: usize, at: Cycle, evicted: Option<Evicted>) {
        let Some(Evicted { line, way }) = evicted else { return };
        let dirty = way.dirty() & 15;
        if dirty == 0 {
            return;
        }
        debug_assert!(!way.has(REPLICA), "copies are never written");
        let (_, place) = self.map.place(line.into());
        debug_assert_eq!(place.home as usize, half);
        let channel = &mut self.channels[place.channel as usize];
        let accesses = |sectors: u8| count(sectors).div_ceil(self.sectors_per_access);
        let mut at = at;
        if way.partial() != 0 {
            let n = accesses(way.partial());
            at = channel.access(at, place.position(), n, &mut self.counters);
            self.counters.dram_read_bytes += u64::from(n * self.access_bytes);
        }
        channel.access(at, place.position(), accesses(dirty), &mut self.counters);
        self.counters.dram_write_bytes += u64::from(bytes(dirty));
    }

    /// Brings what is written to its home: when it has passed the port there, and how long the answer takes back.
    /// A copy that is not on its way ends; one on its way is written as well.
    fn bring_home(&mut self, near: usize, place: &Place, ask: &Ask, lookups: u64, cost: u32) -> (Cycle, u64) {
        let home = place.home as usize;
        let start = self.slices[near].port.take(ask.at, cost);
        if near == home {
            let tags = &mut self.slices[home].tags;
            let copied = match tags.find(place.set, ask.line) {
                Some(at) => tags.way(at).has(COPIED),
                None => true,
            };
            if copied && self.slices.len() > 1 {
                self.end_copy(1 - home, place, ask.line, ask.sectors);
            }
            return (start, 0);
        }
        self.count(lookups, lookups);
        self.counters.l2_far_sectors += lookups;
        if ask.kind == RequestKind::Store && ask.whole {
            self.write(near, place, ask, start, REPLICA);
        } else {
            self.end_copy(near, place, ask.line, ask.sectors);
        }
        let size = MESSAGE + bytes(ask.sectors);
        let there = self.slices[near].link.take(start + self.latency, size) + self.far_latency;
        (self.slices[home].port.take(there, cost), self.far_latency)
    }

    fn end_copy(&mut self, half: usize, place: &Place, line: u32, sectors: u8) {
        let tags = &mut self.slices[half].tags;
        if let Some(at) = tags.find(place.set, line) {
            tags.change(at, |way| way.clear(VALID, sectors));
        }
    }

    /// Writes sectors in a slice: at their home, or a copy on the way there.
    fn write(&mut self, half: usize, place: &Place, ask: &Ask, at: Cycle, flags: u16) {
        let slot = match self.slices[half].tags.touch(place.set, ask.line) {
            Some(slot) => slot,
            None => self.make_room(half, place, ask.line, flags, at),
        };
        self.slices[half].tags.change(slot, |way| {
            way.take(HOST);
            if flags & REPLICA == 0 {
                way.set(DIRTY, ask.sectors);
                // The way here may have left one in the other half.
                way.put(COPIED);
            }
            if ask.whole {
                way.set(VALID, ask.sectors);
                way.clear(PARTIAL, ask.sectors);
            } else {
                way.set(PARTIAL, ask.sectors & !way.valid());
            }
        });
    }

    fn atomic(&mut self, near: usize, place: &Place, ask: &Ask) -> Cycle {
        let n = count(ask.sectors);
        // Operations on one address pass one by one, and each looks its sector up.
        let operations = u32::from(ask.operations).max(n);
        let passes = (n * u32::from(ask.depth)).clamp(n, operations);
        let lookups = u64::from(passes);
        self.counters.l2_atomic_sectors += lookups;
        let (start, away) = self.bring_home(near, place, ask, lookups, passes * self.atomic_bytes);
        let home = place.home as usize;
        let tags = &mut self.slices[home].tags;
        let found = tags.touch(place.set, ask.line);
        let mut done = start + self.latency;
        let mut missing = ask.sectors;
        if let Some(at) = found {
            let way = tags.way(at);
            missing = ask.sectors & !way.valid();
            if missing != ask.sectors {
                done = done.later(way.ready());
            }
        }
        self.count(lookups, lookups - u64::from(count(missing)));
        if missing != 0 {
            done = done.later(self.fill(home, place, ask.line, missing, done, found, 0));
        }
        self.write(home, place, &Ask { whole: true, ..*ask }, done, 0);
        done + self.atomic_latency + away
    }

    /// A copy from the host leaves a line here.
    pub fn host_write(&mut self, line: u64, sectors: u8) {
        let (_, place) = self.map.place(line);
        let line = line as u32;
        let home = place.home as usize;
        if self.slices.len() > 1 {
            self.end_copy(1 - home, &place, line, sectors);
        }
        let slot = match self.slices[home].tags.touch(place.set, line) {
            Some(slot) => slot,
            // Write-backs of earlier copies happen while the host copies: they cost launches nothing.
            None => self.slices[home].tags.allocate(place.set, line, HOST).0,
        };
        self.slices[home].tags.change(slot, |way| {
            way.set(VALID, sectors);
            way.set(DIRTY, sectors);
        });
    }

    /// Forgets all lines, as if they had been written back, and who uses what when.
    pub fn clear(&mut self) {
        for slice in &mut self.slices {
            slice.tags.clear();
            slice.port.clear();
            slice.link.clear();
        }
        self.channels.iter_mut().for_each(dram::Channel::clear);
    }
}
