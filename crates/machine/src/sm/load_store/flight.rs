//! What is on its way: requests that left the SM, and the instructions that wait for their answers.

use super::Kind;
use super::coalesce::count;
use crate::units::Cycle;

/// End of a list.
const END: u32 = u32::MAX;

/// A request under way. Its number is the request's token.
#[derive(Clone, Copy)]
pub struct Flight {
    /// The line, while the cache has a slot for it.
    pub line: u64,
    /// Sectors asked for, for the cache's sake: none for stores and for what bypasses it.
    pub sectors: u8,
    /// Sectors that count against the limit.
    pub held: u8,
    /// Next request of the same line.
    pub next: u32,
    /// Who waits, in the order of coming: first and last link.
    waiters: u32,
    last: u32,
}

/// An instruction that waits for answers.
#[derive(Clone, Copy)]
pub struct Waiting {
    pub owner: u64,
    pub kind: Kind,
    /// Answers that are missing.
    left: u32,
    /// Passes through the banks when all is there.
    pub passes: u32,
    /// Cycles more that its width takes.
    pub wide: u32,
    /// The latest of its parts so far.
    pub at: Cycle,
}

#[derive(Clone, Copy)]
struct Link {
    waiting: u32,
    next: u32,
}

/// A list of entries that are used again.
struct Slab<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    fn new(room: usize) -> Slab<T> {
        Slab { all: Vec::with_capacity(room), free: Vec::with_capacity(room) }
    }

    #[inline(always)]
    fn put(&mut self, t: T) -> u32 {
        match self.free.pop() {
            Some(n) => {
                self.all[n as usize] = t;
                n
            }
            None => {
                self.all.push(t);
                (self.all.len() - 1) as u32
            }
        }
    }

    #[inline(always)]
    fn take(&mut self, n: u32) -> T {
        self.free.push(n);
        self.all[n as usize]
    }
}

/// Requests under way and who waits for them.
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
            links: Slab::new(room),
            waiting: Slab::new(room),
            sectors: 0,
            lines: 0,
        }
    }

    /// Nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.flights.all.len() == self.flights.free.len()
    }

    /// A request leaves; its token.
    #[inline(always)]
    pub fn start(&mut self, line: u64, sectors: u8, held: u8, next: u32) -> u32 {
        self.sectors += count(held);
        self.lines += u32::from(held != 0);
        self.flights.put(Flight { line, sectors, held, next, waiters: END, last: END })
    }

    #[inline(always)]
    pub fn get(&mut self, token: u32) -> &mut Flight {
        &mut self.flights.all[token as usize]
    }

    /// An instruction that will wait.
    #[inline(always)]
    pub fn open(&mut self, owner: u64, kind: Kind, wide: u32, at: Cycle) -> u32 {
        self.waiting.put(Waiting { owner, kind, left: 0, passes: 0, wide, at })
    }

    /// Instruction `w` waits for `token` too.
    #[inline(always)]
    pub fn wait(&mut self, w: u32, token: u32) {
        self.waiting.all[w as usize].left += 1;
        let link = self.links.put(Link { waiting: w, next: END });
        let flight = &mut self.flights.all[token as usize];
        match flight.last {
            END => flight.waiters = link,
            last => self.links.all[last as usize].next = link,
        }
        flight.last = link;
    }

    /// All is asked for: whether anything is missing. `passes`: through the banks when all is there; `at`: when what was
    /// there is done.
    #[inline(always)]
    pub fn close(&mut self, w: u32, passes: u32, at: Cycle) -> bool {
        let waiting = &mut self.waiting.all[w as usize];
        waiting.passes = passes;
        waiting.at = waiting.at.later(at);
        if waiting.left == 0 {
            self.waiting.free.push(w);
            return false;
        }
        true
    }

    /// The answer to `token` came; `done` learns of each instruction that misses nothing any more.
    #[inline]
    pub fn finish(&mut self, token: u32, at: Cycle, mut done: impl FnMut(Waiting)) -> Option<Flight> {
        // An answer to what was never asked is nobody's.
        if token as usize >= self.flights.all.len() {
            return None;
        }
        let flight = self.flights.take(token);
        self.sectors -= count(flight.held);
        self.lines -= u32::from(flight.held != 0);
        let mut at_link = flight.waiters;
        while at_link != END {
            let link = self.links.take(at_link);
            let w = &mut self.waiting.all[link.waiting as usize];
            w.at = w.at.later(at);
            w.left -= 1;
            if w.left == 0 {
                done(*w);
                self.waiting.free.push(link.waiting);
            }
            at_link = link.next;
        }
        Some(flight)
    }
}
