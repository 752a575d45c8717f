//! What is on its way: requests that left the SM, and the instructions that wait for their answers.
//!
//! Entries are small and used again, the last one freed first: many SMs take turns in the host's caches.

use super::Kind;
use super::coalesce::Coming;
use crate::units::{Cycle, count};
use serde::{Deserialize, Serialize};
use simt::prefetch::prefetch;

/// End of a list.
const END: u32 = u32::MAX;

/// No slot of the cache.
pub const NO_SLOT: u32 = u32::MAX;

/// Entries of each kind that a turn of an SM is made ready for.
const NEXT: usize = 4;

/// Instructions that a request has room for.
const FEW: usize = 8;

/// A request under way. Its number is the request's token.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[repr(align(32))]
pub struct Flight {
    /// Next request of the same line.
    pub next: u32,
    /// The slot of the line when it was asked for, or [`NO_SLOT`].
    pub slot: u32,
    /// The first instructions that wait, in the order of coming.
    waiting: [u16; FEW],
    /// Those that wait besides: the last of a ring.
    others: u32,
    /// How many of the first there are.
    few: u8,
    /// Sectors asked for, for the cache's sake: none for stores and for what bypasses it.
    pub sectors: u8,
    /// Sectors that count against the limit.
    held: u8,
    /// The lowest bits of its place among the requests of its SM's turn.
    #[serde(skip)]
    place: u8,
}

impl Flight {
    /// Nothing is under way.
    const NOTHING: Flight = Flight {
        next: END,
        slot: END,
        waiting: [0; FEW],
        others: END,
        few: 0,
        sectors: 0,
        held: 0,
        place: 0,
    };

    /// Whether it may be one of the last so many requests of its SM's turn.
    #[inline(always)]
    pub fn may_be_among(&self, last: usize, requests: usize) -> bool {
        usize::from((requests as u8).wrapping_sub(self.place)) <= last
    }

    /// The first instructions that wait.
    #[inline(always)]
    fn first(&self) -> &[u16] {
        self.waiting.get(..usize::from(self.few)).unwrap_or_default()
    }
}

/// What a request is to be known by.
#[derive(Clone, Copy)]
pub struct New {
    /// Next request of the same line.
    pub next: u32,
    /// The line's slot, or [`NO_SLOT`].
    pub slot: u32,
    /// Sectors asked for, for the cache's sake, and those that count against the limit.
    pub sectors: u8,
    pub held: u8,
    /// Requests of the SM's turn before it.
    pub before: usize,
}

impl New {
    /// One without effects on the cache.
    pub const APART: New = New { next: END, slot: NO_SLOT, sectors: 0, held: 0, before: 0 };
}

/// An instruction that waits for answers.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[repr(align(32))]
pub struct Waiting {
    pub owner: u64,
    /// The latest of its parts so far.
    pub at: Cycle,
    /// Answers that are missing.
    pub left: u16,
    /// Passes through the banks when all is there.
    pub passes: u16,
    /// Cycles more that its width takes.
    pub wide: u16,
    pub kind: Kind,
}

impl Waiting {
    const NOBODY: Waiting =
        Waiting { owner: 0, at: Cycle(0), left: 0, passes: 0, wide: 0, kind: Kind::Prefetch };
}

/// An instruction whose requests are being made: where it will wait, once there are some, and for how many answers. Nothing is
/// written there before all is known: who reads what was just written to memory that is far away waits for it.
#[derive(Clone, Copy)]
pub struct Asking {
    place: u32,
    pub left: u16,
}

impl Asking {
    pub const NOTHING: Asking = Asking { place: END, left: 0 };

    /// One answer more is asked for; the instruction has a place from then on.
    #[inline(always)]
    fn reserve(&mut self, waiting: &mut Slab<Waiting>) {
        if self.place == END {
            self.place = waiting.reserve(Waiting::NOBODY);
        }
        self.left += 1;
    }
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Link {
    waiting: u32,
    next: u32,
}

/// A list of entries that are used again.
#[derive(Serialize, Deserialize)]
struct Slab<T> {
    all: Vec<T>,
    /// Entries that are free. A list of its own: a list through the entries would wait for each in turn.
    free: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    fn new(room: usize) -> Slab<T> {
        Slab { all: Vec::with_capacity(room), free: Vec::with_capacity(room) }
    }

    #[inline(always)]
    fn put(&mut self, t: T) -> u32 {
        let n = self.reserve(t);
        self.all[n as usize] = t;
        n
    }

    /// Entries will be used again: asks for the end of the list that names them.
    #[inline(always)]
    fn expect(&self) {
        prefetch(&self.free, self.free.len().wrapping_sub(1));
    }

    /// The same, with the list at hand: for the next entries.
    #[inline(always)]
    fn expect_next(&self, entries: usize) {
        self.free.iter().rev().take(entries).for_each(|&n| prefetch(&self.all, n as usize));
    }

    /// An entry that will be written later; a new one is `empty`.
    #[inline(always)]
    fn reserve(&mut self, empty: T) -> u32 {
        self.free.pop().unwrap_or_else(|| self.grow(empty))
    }

    #[cold]
    fn grow(&mut self, empty: T) -> u32 {
        self.all.push(empty);
        (self.all.len() - 1) as u32
    }

    #[inline(always)]
    fn take(&mut self, n: u32) -> T {
        self.free.push(n);
        self.all[n as usize]
    }
}

/// Requests under way and who waits for them.
#[derive(Serialize, Deserialize)]
pub struct Flights {
    flights: Slab<Flight>,
    links: Slab<Link>,
    waiting: Slab<Waiting>,
    /// Sectors of loads under way, and lines that they will fill.
    pub sectors: u32,
    pub lines: u32,
}

impl Flights {
    /// With room for so many before it must grow.
    pub fn new(room: usize) -> Flights {
        Flights {
            flights: Slab::new(room),
            links: Slab::new(0),
            waiting: Slab::new(room),
            sectors: 0,
            lines: 0,
        }
    }

    /// Nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.flights.all.len() == self.flights.free.len()
    }

    /// A request leaves for which nobody waits; its token.
    #[inline(always)]
    pub fn start(&mut self, new: New) -> u32 {
        self.start_with(new, 0, 0)
    }

    /// The same of one that an instruction waits for.
    #[inline(always)]
    pub fn start_for(&mut self, asking: &mut Asking, new: New) -> u32 {
        asking.reserve(&mut self.waiting);
        let (w, fits) = (asking.place as u16, asking.place <= u16::MAX.into());
        let token = self.start_with(new, w, u8::from(fits));
        if !fits {
            self.link(asking.place, token);
        }
        token
    }

    /// Entries are written where they are: a copy of what was just put together waits for all of it.
    #[inline(always)]
    fn start_with(&mut self, new: New, first: u16, few: u8) -> u32 {
        let token = self.flights.reserve(Flight::NOTHING);
        let flight = &mut self.flights.all[token as usize];
        (flight.next, flight.slot, flight.others) = (new.next, new.slot, END);
        flight.waiting = [0; FEW];
        flight.waiting[0] = first;
        (flight.few, flight.sectors, flight.held) = (few, new.sectors, new.held);
        flight.place = new.before as u8;
        token
    }

    /// Loads have asked for so many sectors more, in so many requests that fill lines.
    #[inline(always)]
    pub fn hold(&mut self, sectors: u32, requests: u32) {
        self.sectors += sectors;
        self.lines += requests;
    }

    /// An instruction will wait: it has a place.
    #[inline(always)]
    pub fn ask(&mut self) -> Asking {
        Asking { place: self.waiting.reserve(Waiting::NOBODY), left: 0 }
    }

    /// A request that has not left takes further sectors along.
    #[inline(always)]
    pub fn extend(&mut self, token: u32, sectors: u8) {
        let flight = &mut self.flights.all[token as usize];
        flight.sectors |= sectors;
        flight.held |= sectors;
    }

    #[inline(always)]
    pub fn get(&mut self, token: u32) -> &mut Flight {
        &mut self.flights.all[token as usize]
    }

    /// Requests will leave soon.
    #[inline(always)]
    pub fn expect_new(&self) {
        self.flights.expect();
        self.waiting.expect();
    }

    /// The same, with what that asked for at hand.
    #[inline(always)]
    pub fn expect_entries(&self) {
        self.flights.expect_next(NEXT);
        self.waiting.expect_next(NEXT);
    }

    /// The answer to `token` will come soon.
    #[inline(always)]
    pub fn expect(&self, token: u32) {
        prefetch(&self.flights.all, token as usize);
    }

    /// The same, with the request at hand: the slot of its line.
    #[inline(always)]
    pub fn expect_waiting(&self, token: u32) -> u32 {
        self.flights.all.get(token as usize).map_or(NO_SLOT, |flight| {
            flight.first().iter().for_each(|&w| prefetch(&self.waiting.all, w.into()));
            flight.slot
        })
    }

    /// The same, with those that wait at hand: who owns the first.
    #[inline(always)]
    pub fn expected_owner(&self, token: u32) -> Option<u64> {
        let flight = self.flights.all.get(token as usize)?;
        let &first = flight.first().first()?;
        self.waiting.all.get(usize::from(first)).map(|waiting| waiting.owner)
    }

    /// An instruction waits for the sectors of several lines that are on their way.
    #[inline(never)]
    pub fn join_all<'a>(&mut self, asking: &mut Asking, coming: impl Iterator<Item = &'a Coming>) {
        let mut waits = *asking;
        coming.for_each(|c| self.join(&mut waits, c.sectors, c.chain));
        *asking = waits;
    }

    /// An instruction waits for the requests of a line, from `token` on, that bring one of the sectors. No two of them bring the
    /// same.
    #[inline(always)]
    pub fn join(&mut self, asking: &mut Asking, mut coming: u8, mut token: u32) {
        // Behind the last one of a line there is none.
        while let Some(flight) = self.flights.all.get_mut(token as usize) {
            let (sectors, next) = (flight.sectors & coming, flight.next);
            coming ^= sectors;
            if sectors != 0 {
                asking.reserve(&mut self.waiting);
                let w = asking.place;
                match flight.waiting.get_mut(usize::from(flight.few)) {
                    // Those that come later wait behind others.
                    Some(place) if w <= u16::MAX.into() && flight.others == END => {
                        *place = w as u16;
                        flight.few += 1;
                    }
                    _ => self.link(w, token),
                }
            }
            if coming == 0 {
                break;
            }
            token = next;
        }
    }

    /// The same where there is no room for it.
    #[inline(never)]
    fn link(&mut self, w: u32, token: u32) {
        let link = self.links.put(Link { waiting: w, next: END });
        let flight = &mut self.flights.all[token as usize];
        let first = match flight.others {
            END => link,
            last => std::mem::replace(&mut self.links.all[last as usize].next, link),
        };
        self.links.all[link as usize].next = first;
        flight.others = link;
    }

    /// Nothing is missing after all.
    #[inline(always)]
    pub fn forget(&mut self, asking: Asking) {
        if asking.place != END {
            self.waiting.take(asking.place);
        }
    }

    /// All is asked for, and something is missing.
    #[inline(always)]
    pub fn close(&mut self, asking: Asking, waiting: Waiting) {
        self.waiting.all[asking.place as usize] = Waiting { left: asking.left, ..waiting };
    }

    /// The answer to `token` came; `done` learns of each instruction that misses nothing any more.
    #[inline(always)]
    pub fn finish(&mut self, token: u32, at: Cycle, mut done: impl FnMut(Waiting)) -> Option<Flight> {
        // An answer to what was never asked is nobody's.
        if token as usize >= self.flights.all.len() {
            return None;
        }
        let flight = self.flights.take(token);
        self.sectors -= count(flight.held);
        self.lines -= u32::from(flight.held != 0);
        let mut first = flight.first().iter();
        let mut link = if flight.others == END { END } else { self.links.all[flight.others as usize].next };
        loop {
            let w = match first.next() {
                Some(&w) => w.into(),
                None if link == END => break,
                None => self.take_linked(&mut link, flight.others),
            };
            let waiting = &mut self.waiting.all[w as usize];
            waiting.at = waiting.at.later(at);
            waiting.left -= 1;
            if waiting.left == 0 {
                done(self.waiting.take(w));
            }
        }
        Some(flight)
    }

    /// Takes an instruction out of a ring, of which `last` is the last; the next one's link, if there is one.
    #[inline(never)]
    fn take_linked(&mut self, link: &mut u32, last: u32) -> u32 {
        let Link { waiting, next } = self.links.take(*link);
        *link = if *link == last { END } else { next };
        waiting
    }
}
