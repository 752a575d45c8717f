//! Load-store unit of an SM: queues of the sub-cores, coalescing, first-level cache, shared memory, misses under way.
//!
//! [`LoadStore::issue`] takes a warp's access when it is issued and says when its operands are read and when its result
//! is there, or that answers from memory must come first; [`LoadStore::respond`] takes those.

mod arbiter;
mod coalesce;
mod flight;
mod global;
mod l1;
mod shared;
mod spec;
#[cfg(test)]
mod tests;

pub use spec::{L1, Shared, Spec};

use super::look_ahead::extent;
use crate::counters::Counters;
use crate::ports::{Request, Response};
use crate::server::{Line, Queue};
use crate::units::{Cycle, LINE, SmId};
use arbiter::Port as BankPort;
use coalesce::Pieces;
use flight::Flights;
use isa::field::Cache;
use l1::Tags;
use serde::{Deserialize, Serialize};
use simt::fault::Space;
use simt::resident::Access;

/// The queue that an access waits in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Path {
    /// Global, local and generic accesses.
    Global,
    /// Shared memory, shuffles.
    Shared,
}

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Kind {
    Load,
    Store,
    /// Read-modify-write with a result.
    Atomic,
    /// Read-modify-write without.
    Reduction,
    /// Registers of other lanes; no memory.
    Shuffle,
    /// A line wanted soon; nobody waits for it.
    Prefetch,
}

/// An access of a warp.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    pub kind: Kind,
    pub access: &'a Access,
    /// Cache operator. Volatile, relaxed and acquiring loads say [`Cache::Cv`]: they do not read the first level.
    pub cache: Cache,
    pub sub_core: u32,
    /// The SM's warp slot.
    pub warp: u32,
    /// Given back when the access is done.
    pub owner: u64,
    /// 32-bit registers a lane that are loaded or stored.
    pub registers: u32,
    /// Times that an atomic goes to the banks of shared memory for each lane.
    pub rounds: u32,
    /// Where the warp's local memory begins; a multiple of a line.
    pub local_base: u64,
    /// That is in global memory, and written through as such.
    pub is_remapped: bool,
}

impl Operation<'_> {
    /// The queue that it waits in.
    #[inline(always)]
    pub fn path(&self) -> Path {
        if self.kind == Kind::Shuffle || self.access.space == Space::Shared {
            Path::Shared
        } else {
            Path::Global
        }
    }
}

/// When an access has its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// An instruction that needs the result can issue then. Of a store, nothing is outstanding from then on.
    At(Cycle),
    /// [`LoadStore::respond`] will name the owner.
    Pending,
}

impl Outcome {
    /// When it is known, or else this.
    #[inline(always)]
    fn known(self, otherwise: Cycle) -> Cycle {
        match self {
            Outcome::At(at) => at,
            Outcome::Pending => otherwise,
        }
    }
}

/// What became of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Issued {
    /// Source registers may be overwritten by an instruction that issues then.
    pub operands_read: Cycle,
    /// It has left the sub-core's queue.
    pub left: Cycle,
    pub result: Outcome,
}

/// An access that waited and is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    pub owner: u64,
    /// Loads and atomics: when an instruction that needs the result can issue. Stores and reductions: when all SMs see
    /// them.
    pub at: Cycle,
    pub kind: Kind,
}

/// A sub-core's side of the unit.
#[derive(Serialize, Deserialize)]
struct Port {
    global: Queue,
    shared: Queue,
    address: Line,
}

/// The lines of an access, which nobody wants to know any more when it is done: SMs take turns with one list.
#[derive(Default)]
pub struct Scratch(Option<Box<Pieces>>);

/// The unit.
#[derive(Serialize, Deserialize)]
pub struct LoadStore {
    sm: SmId,
    spec: Spec,
    /// Bytes that cache and shared memory split.
    bytes: u32,
    ports: Box<[Port]>,
    /// Takes accesses from the sub-cores.
    accept: Line,
    tags: Line,
    banks: Line,
    /// Requests leave the SM.
    leave: Line,
    /// Loads that missed go through the banks.
    returns: Line,
    /// Who else reads the banks, and writes them.
    reads: BankPort,
    writes: BankPort,
    /// Special registers, and data from memory on its way into the banks.
    specials: Line,
    fills: Line,
    cache: Tags,
    /// Lines that can be on their way at a time.
    miss_lines: u32,
    flights: Flights,
    #[serde(skip)]
    scratch: Scratch,
    #[serde(skip)]
    shapes: shared::Shapes,
    split: u32,
}

/// Lines of a cache that can be on their way at a time.
fn miss_lines(cache: &Tags, spec: &Spec) -> u32 {
    (u64::from(cache.lines()) * u64::from(spec.l1.miss_lines_percent) / 100) as u32
}

impl LoadStore {
    /// The unit of SM `sm`, all of its memory cache.
    pub fn new(sm: SmId, spec: &super::Spec, sub_cores: u32, warps: u32) -> LoadStore {
        let unit = &spec.load_store;
        let port = || Port {
            global: Queue::new(unit.global_queue),
            shared: Queue::new(unit.shared_queue),
            address: Line::default(),
        };
        let cache = Tags::new(spec.l1_shared_bytes, unit.l1.sets);
        LoadStore {
            sm,
            miss_lines: miss_lines(&cache, unit),
            spec: unit.clone(),
            bytes: spec.l1_shared_bytes,
            ports: (0..sub_cores.max(1)).map(|_| port()).collect(),
            accept: Line::default(),
            tags: Line::default(),
            banks: Line::default(),
            leave: Line::default(),
            returns: Line::default(),
            reads: BankPort::new(),
            writes: BankPort::new(),
            specials: Line::default(),
            fills: Line::default(),
            cache,
            flights: Flights::new(warps as usize * 4),
            scratch: Scratch::default(),
            shapes: shared::Shapes::default(),
            split: 0,
        }
    }

    /// Gives `shared_bytes` to shared memory and the rest to the cache, which loses what it had if this is a change.
    pub fn set_split(&mut self, shared_bytes: u32) {
        let shared = shared_bytes.min(self.bytes);
        if shared != self.split {
            self.split = shared;
            self.cache = Tags::new(self.bytes - shared, self.spec.l1.sets);
            self.miss_lines = miss_lines(&self.cache, &self.spec);
        }
    }

    /// Its own list of lines for another's, and back.
    #[inline]
    pub fn swap(&mut self, scratch: &mut Scratch) {
        std::mem::swap(&mut self.scratch, scratch);
    }

    /// Forgets cached lines.
    pub fn invalidate(&mut self) {
        self.cache.invalidate();
    }

    /// Local memory from here on is of no use any more.
    pub fn discard(&mut self, from: u64, bytes: u64) {
        for line in (from..from + bytes).step_by(LINE as usize) {
            if let Some(at) = self.cache.find(Tags::number(line)) {
                self.cache.slot(at).forget(u8::MAX);
            }
        }
    }

    /// When the sub-core's queue has room for another access of this kind. [`Cycle::NEVER`]: not before an answer
    /// comes.
    #[inline]
    pub fn room(&self, sub_core: u32, path: Path) -> Cycle {
        let port = &self.ports[sub_core as usize];
        match path {
            Path::Global if self.flights.sectors >= self.spec.l1.miss_sectors => Cycle::NEVER,
            // A line on its way has its place in the cache: with most of it shared memory, few can be.
            Path::Global if self.flights.lines > 0 && self.flights.lines + 32 > self.miss_lines => {
                Cycle::NEVER
            }
            Path::Global => port.global.room(),
            Path::Shared => port.shared.room(),
        }
    }

    /// A store that left will be acknowledged at `last`: where that is later than the way there and back takes, memory does
    /// not take what is sent, and stores stay here.
    #[inline]
    pub fn hold_stores(&mut self, last: Cycle) {
        self.leave.hold(last.before(self.spec.l1.store_trip));
    }

    /// Nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.flights.is_empty()
    }

    /// Takes an access that issues at `now`; the sub-core's queue must have room. Requests to memory go to `out`, in the
    /// order of their cycles.
    pub fn issue(
        &mut self,
        now: Cycle,
        op: &Operation,
        out: &mut Vec<Request>,
        counters: &mut Counters,
    ) -> Issued {
        let (a, path) = (op.access, op.path());
        let sends = op.kind != Kind::Load && op.kind != Kind::Prefetch;
        let (at, operands_read) = self.enter(now, path, sends, op.sub_core, op.registers);
        let mut begin = at;
        let mut result = Outcome::At(at);
        if op.kind == Kind::Shuffle {
            begin = self.banks.serve(at, 1);
            result = Outcome::At(self.after(begin, self.spec.shared.shuffle_latency));
        } else if a.shared != 0 {
            let (start, ready) = self.shared(at, op, counters);
            (begin, result) = (start, Outcome::At(ready));
        } else if a.global | a.local == 0 {
            result = Outcome::At(self.after(at, self.spec.idle_latency));
        }
        if a.global | a.local != 0 {
            (begin, result) = self.memory(at, op, result, out, counters);
        }
        let left = self.go_on(begin, path, op.sub_core);
        Issued { operands_read, left, result }
    }

    /// Takes a load from shared memory, or a store to it, whose passes through the banks are known, as
    /// [`LoadStore::issue`] does. Its result is always known.
    #[inline(always)]
    pub fn issue_shared(
        &mut self,
        now: Cycle,
        kind: Kind,
        (sub_core, registers): (u32, u32),
        passes: (u32, u32),
        counters: &mut Counters,
    ) -> (Issued, Cycle) {
        let path = Path::Shared;
        let (at, operands_read) = self.enter(now, path, kind != Kind::Load, sub_core, registers);
        let (begin, ready) = self.pass(at, kind, registers, passes, 0, counters);
        let left = self.go_on(begin, path, sub_core);
        (Issued { operands_read, left, result: Outcome::At(ready) }, ready)
    }

    /// An access comes from its sub-core: when it is at the tags or banks, and when its operands are read.
    #[inline(always)]
    fn enter(
        &mut self,
        now: Cycle,
        path: Path,
        sends: bool,
        sub_core: u32,
        registers: u32,
    ) -> (Cycle, Cycle) {
        self.reads.advance(now);
        self.writes.advance(now);
        // A sub-core moves its registers to and from the unit one at a time.
        let (interval, read) = match (path, sends) {
            (Path::Global, false) => (registers * self.spec.load_interval, self.spec.load_read),
            (Path::Shared, false) => (registers * self.spec.load_interval, self.spec.shared_load_read),
            (Path::Global, true) => (0, self.spec.store_read),
            (Path::Shared, true) => (0, self.spec.shared_store_read),
        };
        let data = if sends { self.spec.store_interval * (registers.max(1) - 1) } else { 0 };
        let busy = interval.max(self.spec.address_interval + data);
        let computed = self.ports[sub_core as usize].address.serve(now, u64::from(busy));
        let taken = self.accept.serve(computed, u64::from(self.spec.accept_interval));
        (taken + u64::from(self.spec.address_latency), computed + u64::from(read + data))
    }

    /// It leaves its queue when it could go on to tags or banks.
    #[inline(always)]
    fn go_on(&mut self, begin: Cycle, path: Path, sub_core: u32) -> Cycle {
        let left = Cycle(begin.0 - u64::from(self.spec.address_latency));
        let port = &mut self.ports[sub_core as usize];
        match path {
            Path::Global => port.global.put(left),
            Path::Shared => port.shared.put(left),
        }
        left
    }

    /// When a result is there whose access reached the banks at `begin` and has this latency from its issue on.
    #[inline(always)]
    fn after(&self, begin: Cycle, latency: u32) -> Cycle {
        begin + u64::from(latency.saturating_sub(self.spec.address_latency))
    }

    /// Passes through the banks that begin at `at` or as soon after as they are free. A pass that finds its port taken
    /// comes a cycle later, which counts as a conflict.
    #[inline(always)]
    fn direct(&mut self, at: Cycle, passes: u32, path: Path, kind: Kind, counters: &mut Counters) -> Cycle {
        let begin = self.banks.serve(at, u64::from(passes));
        let port = if matches!(kind, Kind::Load | Kind::Prefetch) { &self.reads } else { &self.writes };
        let lost = port.lost(path, begin, passes);
        if lost != 0 {
            counters.bank_conflicts += u64::from(lost);
            self.banks.serve(begin, u64::from(lost));
        }
        begin + u64::from(lost)
    }

    /// A special register is read at `now`: it comes by the port that reads the banks. How long it waits for those before.
    #[inline]
    pub fn read_special(&mut self, now: Cycle) -> u64 {
        self.reads.advance(now);
        let at = now + u64::from(self.spec.address_latency);
        let begin = self.specials.serve(at, u64::from(self.spec.special_cycles));
        self.reads.take_from_all(begin, self.spec.special_cycles);
        begin - at
    }

    /// A constant load of so many places issues at `now`: it comes by the port that writes the banks.
    #[inline]
    pub fn load_constant(&mut self, now: Cycle, places: u32) {
        self.writes.advance(now);
        let cycles = self.spec.constant_cycles * places;
        self.writes.take_from_all(now + u64::from(self.spec.address_latency), cycles);
    }

    /// Passes through the banks of shared memory that an access by all lanes needs, and those that one without conflicts
    /// needs.
    #[inline]
    pub fn passes(&mut self, access: &Access) -> (u32, u32) {
        self.shapes.passes(access, access.shared)
    }

    /// Shared memory: when the access reaches the banks, and when its result is there.
    fn shared(&mut self, at: Cycle, op: &Operation, counters: &mut Counters) -> (Cycle, Cycle) {
        let passes = self.shapes.passes(op.access, op.access.shared);
        // Increments without a result are added up before they reach the bank, so they do not wait for each other.
        let further = match op.kind {
            Kind::Atomic => op.rounds * shared::depth(op.access, op.access.shared) - 1,
            _ => 0,
        };
        self.pass(at, op.kind, op.registers, passes, further, counters)
    }

    /// The same where passes are known, and how many lanes follow others on one address.
    #[inline(always)]
    fn pass(
        &mut self,
        at: Cycle,
        kind: Kind,
        registers: u32,
        (passes, ideal): (u32, u32),
        further: u32,
        counters: &mut Counters,
    ) -> (Cycle, Cycle) {
        let spec = &self.spec.shared;
        counters.shared_requests += 1;
        counters.bank_conflicts += u64::from(passes - ideal);
        let mut latency = spec.load_latency;
        if registers >= 4 {
            latency += self.spec.quad_latency;
        }
        if matches!(kind, Kind::Atomic | Kind::Reduction) {
            latency = spec.atomic_latency;
        }
        latency += further * spec.atomic_lane_latency;
        let busy = passes + further * spec.atomic_lane_busy;
        latency += (passes - ideal) * self.spec.replay_latency;
        let begin = self.direct(at, busy, Path::Shared, kind, counters);
        let ready = match kind {
            Kind::Store => begin,
            _ => self.after(begin, latency),
        };
        (begin, ready)
    }

    /// Tells of answers that will come soon, in the order of their cycles, so that the host fetches what they need.
    /// `owner` learns who waits for them, and whether they bring results.
    #[inline]
    pub fn expect<'a>(
        &self,
        answers: impl Iterator<Item = &'a Response> + Clone,
        owner: impl FnMut(u64, bool),
    ) {
        self.prepare(answers, owner);
    }

    /// Where what its every turn looks at lies in the host's memory.
    pub fn extents(&self) -> [(usize, usize); 2] {
        [self.cache.extent(), extent(&self.ports)]
    }

    /// Accesses will come soon, with that at hand.
    pub fn expect_accesses(&self) {
        for port in &self.ports {
            port.global.expect();
            port.shared.expect();
        }
    }

    /// Takes an answer from memory; what is complete with it goes to `done`.
    #[inline(always)]
    pub fn respond(&mut self, r: &Response, done: &mut Vec<Done>, counters: &mut Counters) {
        self.answer(r, done, counters);
    }
}
