//! Global and local memory through the first-level cache: lookups, misses, stores, atomics, and the answers.

use super::coalesce::{Coming, Lines, Missing, Modify, Passes, Piece, Pieces, Single, modify, only_line};
use super::flight::{Asking, Flights, NO_SLOT, New, Waiting};
use super::l1::{NONE, Tags};
use super::{Done, Kind, LoadStore, Operation, Outcome, Path};
use crate::counters::Counters;
use crate::ports::{Request, RequestKind, Response};
use crate::units::{Cycle, SECTOR, Token, count};
use isa::field::Cache;
use simt::resident::Where;

/// Requests that can wait to leave the SM and still take sectors along.
const LEAVING: usize = 8;

impl Operation<'_> {
    /// What waits for its answers: when what was there is done, passes through the banks when all is there, cycles more that its
    /// width takes.
    #[inline(always)]
    fn waiting(&self, at: Cycle, passes: u32, wide: u32) -> Waiting {
        Waiting { owner: self.owner, at, left: 0, passes: passes as u16, wide: wide as u16, kind: self.kind }
    }
}

impl LoadStore {
    /// An access to global or local memory that comes to the tags at `at`: when it gets there, and its result. `shared`:
    /// the result of lanes that went to shared memory.
    #[inline]
    pub(super) fn memory(
        &mut self,
        at: Cycle,
        op: &Operation,
        shared: Outcome,
        out: &mut Vec<Request>,
        counters: &mut Counters,
    ) -> (Cycle, Outcome) {
        let a = op.access;
        let at = match op.kind {
            Kind::Load | Kind::Prefetch => at,
            _ => at.later(self.leave.free().before(self.spec.l1.store_backlog)),
        };
        let is_plain = matches!(op.kind, Kind::Load | Kind::Prefetch | Kind::Store) && a.local == 0;
        if is_plain && let Some(piece) = only_line(a, a.global) {
            return self.one_line(at, op, piece, shared, out, counters);
        }
        // Taken out so that lists and unit can be used together; it goes back below.
        let mut pieces = self.scratch.0.take().unwrap_or_default();
        let mut globals = usize::MAX;
        if !pieces.take_kept() {
            pieces.clear();
            if a.global != 0 {
                pieces.global(a, a.global);
            }
            globals = pieces.len();
            if a.local != 0 {
                pieces.local(a, a.local, op.local_base);
            }
            pieces.expect(&self.cache);
        }
        self.flights.expect_new();
        pieces.look_up(self.spec.l1.tags_per_cycle, &self.cache);
        let locals = if op.is_remapped || a.local == 0 { usize::MAX } else { globals };
        let tags = pieces.rounds();
        let begin = self.tags.serve(at, u64::from(tags));
        counters.l1_requests += 1;
        let access = Access { begin, tags, other: shared.known(begin), locals, shift: self.tag_shift() };
        let is_simple = a.local == 0 && !matches!(op.cache, Cache::Cg | Cache::Cv);
        let result = match op.kind {
            Kind::Load if is_simple => self.load_many(op, &mut pieces, access, out, counters),
            Kind::Store => self.store(op, &mut *pieces, access, out, counters),
            Kind::Atomic | Kind::Reduction => self.modify(op, &mut pieces, access, out, counters),
            _ => self.load(op, &mut *pieces, access, out, counters),
        };
        self.scratch.0 = Some(pieces);
        (begin, result)
    }

    /// A load from one line of global memory, or a store to it: what most accesses are.
    fn one_line(
        &mut self,
        at: Cycle,
        op: &Operation,
        mut piece: Single,
        shared: Outcome,
        out: &mut Vec<Request>,
        counters: &mut Counters,
    ) -> (Cycle, Outcome) {
        let begin = self.tags.serve(at, 1);
        counters.l1_requests += 1;
        let access = Access { begin, tags: 1, other: shared.known(begin), locals: 1, shift: 0 };
        let result = match op.kind {
            Kind::Store => self.store(op, &mut piece, access, out, counters),
            _ => self.load(op, &mut piece, access, out, counters),
        };
        (begin, result)
    }

    /// Any load or prefetch.
    #[inline(never)]
    fn load(
        &mut self,
        op: &Operation,
        pieces: &mut impl Lines,
        access: Access,
        out: &mut Vec<Request>,
        counters: &mut Counters,
    ) -> Outcome {
        let waits = op.kind == Kind::Load;
        // Other SMs may have written what these read.
        let bypasses_global = matches!(op.cache, Cache::Cg | Cache::Cv);
        let of_local = touched_from(pieces, access.locals);
        let mut asking = Asking::NOTHING;
        let mut ready = Cycle(0);
        // Sectors that were not there, one way or the other; those that are asked for, and in how many requests.
        let (mut away, mut asked, mut requests) = (0, 0, 0);
        let used = self.cache.uses(pieces.len());
        for n in 0..pieces.len() {
            let p = pieces.piece(n);
            let bypasses = bypasses_global && n < access.locals;
            let slot = if bypasses { None } else { self.line(&p, used + n as u16) };
            let (mut missing, mut chain) = (p.sectors, NONE);
            if let Some(at) = slot {
                let s = self.cache.slot(at);
                chain = s.flight();
                let found = s.ask(p.sectors);
                missing = found.missing;
                ready = ready.later(found.ready);
                away |= found.coming;
                if found.coming != 0 && waits {
                    self.flights.join(&mut asking, found.coming, chain);
                }
            }
            if missing == 0 {
                continue;
            }
            away |= missing;
            asked += count(missing);
            let wanted = Missing { chain, slot: slot.unwrap_or(NO_SLOT), n: n as u8, sectors: missing };
            requests += self.ask_for(&mut asking, waits, &wanted, pieces.line(n), access, out);
        }
        self.flights.hold(asked, requests);
        counters.l1_load_sectors += u64::from(pieces.touched() - of_local);
        let passes = pieces.passes(away == 0);
        self.close_load(op, access, asking, ready, passes, (pieces.touched(), asked), counters)
    }

    /// A load of several lines, which somebody waits for, of global memory that may be read from the cache. One step goes over
    /// all of the lines before the next one: what becomes of a line differs from one to the other, and a host's guess of it is
    /// mostly wrong.
    #[inline(never)]
    fn load_many(
        &mut self,
        op: &Operation,
        pieces: &mut Pieces,
        access: Access,
        out: &mut Vec<Request>,
        counters: &mut Counters,
    ) -> Outcome {
        let (ready, coming, missing) = look_up(&mut self.cache, &self.flights, pieces);
        let waits = coming + missing != 0;
        let mut asking = if waits { self.flights.ask() } else { Asking::NOTHING };
        if coming != 0 {
            self.flights.join_all(&mut asking, pieces.coming.iter().take(coming));
        }
        let asked = if missing != 0 { self.ask_all(&mut asking, pieces, missing, access, out) } else { 0 };
        counters.l1_load_sectors += u64::from(pieces.touched());
        let passes = pieces.passes(!waits);
        self.close_load(op, access, asking, ready, passes, (pieces.touched(), asked), counters)
    }

    /// Asks for what is missing of so many lines: how many sectors.
    #[inline(never)]
    fn ask_all(
        &mut self,
        asking: &mut Asking,
        pieces: &Pieces,
        missing: usize,
        access: Access,
        out: &mut Vec<Request>,
    ) -> u32 {
        let mut waits = *asking;
        let (mut asked, mut requests) = (0, 0);
        for wanted in pieces.missing.iter().take(missing) {
            asked += count(wanted.sectors);
            let line = pieces.line(wanted.n.into());
            requests += self.ask_for(&mut waits, true, wanted, line, access, out);
        }
        self.flights.hold(asked, requests);
        *asking = waits;
        asked
    }

    /// Asks for what is missing of a line, along with a request that has not left or in one of its own: how many more there are.
    #[inline(always)]
    fn ask_for(
        &mut self,
        asking: &mut Asking,
        waits: bool,
        &Missing { chain, slot, n, sectors }: &Missing,
        line: u64,
        access: Access,
        out: &mut Vec<Request>,
    ) -> u32 {
        let looked = access.looked(n.into());
        if chain != NONE && self.takes_along(chain, sectors, looked, out) {
            if waits {
                self.flights.join(asking, sectors, chain);
            }
            return 0;
        }
        let fills = if slot == NO_SLOT { 0 } else { sectors };
        let new = New { next: chain, slot, sectors: fills, held: sectors, before: out.len() };
        let token = if waits { self.flights.start_for(asking, new) } else { self.flights.start(new) };
        self.cache.set_flight(slot, token);
        self.send(looked, Sent::new(token, line, sectors), out);
        1
    }

    /// The end of a load: passes through the banks, and its result, if it is known. So many sectors were looked up, and had to
    /// be asked for.
    #[inline(always)]
    fn close_load(
        &mut self,
        op: &Operation,
        access: Access,
        asking: Asking,
        ready: Cycle,
        passes: Passes,
        (looked_up, asked): (u32, u32),
        counters: &mut Counters,
    ) -> Outcome {
        let wide = if op.registers >= 4 { self.spec.quad_latency } else { 0 };
        counters.l1_sectors += u64::from(looked_up);
        counters.l1_hits += u64::from(looked_up - asked);
        let passes = count_conflicts(op, passes, counters);
        if asking.left != 0 {
            self.flights.close(asking, op.waiting(ready.later(access.other), passes, wide));
            return Outcome::Pending;
        }
        self.flights.forget(asking);
        // Data are read while further tags are looked up.
        let begin = access.begin + u64::from(access.tags.saturating_sub(passes));
        let through = self.direct(begin, passes.max(op.registers), Path::Global, op.kind, counters);
        let replays = u64::from((passes - 1) * self.spec.replay_latency + wide);
        let hit = self.after(through, self.spec.l1.load_latency) + replays;
        let came = ready + u64::from(self.spec.l1.fill_latency);
        Outcome::At(hit.later(came).later(access.other))
    }

    /// Whether a request for the line has not left yet: it takes further sectors along. (Four warps of an H200 that load
    /// a sector of a line each, in a row, send about one request.)
    #[inline(always)]
    fn takes_along(&mut self, token: u32, sectors: u8, looked: Cycle, out: &mut [Request]) -> bool {
        let flight = self.flights.get(token);
        if !flight.may_be_among(LEAVING, out.len()) || !adds_to(out, token, sectors, looked) {
            return false;
        }
        self.flights.extend(token, sectors);
        true
    }

    /// Lines that are looked up in a cycle, as a power of two, which banks of tags are.
    #[inline(always)]
    fn tag_shift(&self) -> u32 {
        self.spec.l1.tags_per_cycle.trailing_zeros()
    }

    #[inline(never)]
    fn store(
        &mut self,
        op: &Operation,
        pieces: &mut impl Lines,
        access: Access,
        out: &mut Vec<Request>,
        counters: &mut Counters,
    ) -> Outcome {
        let mut asking = Asking::NOTHING;
        let used = self.cache.uses(pieces.len());
        for n in 0..pieces.len() {
            let p = pieces.piece(n);
            let is_local = n >= access.locals;
            let (sectors, whole) = (p.sectors, pieces.whole(n));
            counters.l1_sectors += u64::from(count(sectors));
            counters.l1_store_sectors += u64::from(count(sectors)) * u64::from(!is_local);
            let looked = access.looked(n);
            let slot = if is_local || self.spec.l1.store_allocates {
                self.line(&p, used + n as u16)
            } else {
                self.cache.find_marked(p.number, p.mark)
            };
            let mut fills = 0;
            if let Some(at) = slot {
                let s = self.cache.slot(at);
                // A line counts as a whole here, also one that only has stores under way.
                if s.is_known() {
                    counters.l1_hits += u64::from(count(sectors));
                }
                if is_local {
                    // What was never written can be anything, so a written sector is complete, and can be read at once.
                    s.fill(sectors & !s.valid() & !s.pending(), looked);
                }
                s.stores(u64::from(whole != 0) + u64::from(sectors != whole));
                fills = sectors;
            }
            // Whole sectors need not be read behind, so they do not travel with others.
            for (part, is_whole) in [(sectors & whole, true), (sectors & !whole, false)] {
                if part == 0 {
                    continue;
                }
                let slot = slot.unwrap_or(NO_SLOT);
                let token =
                    self.flights.start_for(&mut asking, New { slot, sectors: fills & part, ..New::APART });
                let kind = RequestKind::Store;
                let sent = Sent { kind, is_whole, is_local, ..Sent::new(token, pieces.line(n), part) };
                self.send(looked, sent, out);
            }
        }
        let passes = count_conflicts(op, pieces.passes(false), counters).max(op.registers);
        let through = self.direct(access.begin, passes, Path::Global, op.kind, counters);
        if asking.left != 0 {
            self.flights.close(asking, op.waiting(access.other, 0, 0));
            return Outcome::Pending;
        }
        Outcome::At(through.later(access.other))
    }

    #[inline(never)]
    fn modify(
        &mut self,
        op: &Operation,
        pieces: &mut Pieces,
        access: Access,
        out: &mut Vec<Request>,
        counters: &mut Counters,
    ) -> Outcome {
        let mut lines = [Modify::default(); 32];
        let mask = op.access.global | op.access.local;
        counters.l1_sectors += u64::from(modify(op.access, mask, pieces, &mut lines));
        let kind = if op.kind == Kind::Atomic { RequestKind::Atomic } else { RequestKind::Reduction };
        let passes = count_conflicts(op, pieces.passes(false), counters);
        let mut asking = Asking::NOTHING;
        self.direct(access.begin, passes, Path::Global, op.kind, counters);
        for n in 0..pieces.len().min(32) {
            let p = pieces.piece(n);
            if let Some(at) = self.cache.find_marked(p.number, p.mark) {
                self.cache.slot(at).forget(p.sectors);
            }
            let token = self.flights.start_for(&mut asking, New::APART);
            let Modify { operations, depth } = lines[n];
            let looked = access.looked(n);
            let sent = Sent { kind, operations, depth, ..Sent::new(token, pieces.line(n), p.sectors) };
            self.send(looked, sent, out);
        }
        if asking.left == 0 {
            return Outcome::At(access.begin);
        }
        self.flights.close(asking, op.waiting(access.other, passes, 0));
        Outcome::Pending
    }

    /// Answers that will come soon: what they need comes nearer. `owner` learns who waits for them, and whether they bring results.
    pub(super) fn prepare<'a>(
        &self,
        answers: impl Iterator<Item = &'a Response> + Clone,
        mut owner: impl FnMut(u64, bool),
    ) {
        self.flights.expect_new();
        answers.clone().for_each(|r| self.flights.expect(r.token.0));
        self.flights.expect_entries();
        for r in answers.clone() {
            let slot = self.flights.expect_waiting(r.token.0);
            self.cache.expect_at(slot);
        }
        for r in answers {
            if let Some(waits) = self.flights.expected_owner(r.token.0) {
                owner(waits, matches!(r.kind, RequestKind::Load | RequestKind::Atomic));
            }
        }
    }

    /// An access to global memory will issue soon: the host's caches are asked for what it looks up. Where it has many lines, or they
    /// are not simple to see, they are found for it.
    #[inline(always)]
    pub fn prepare_access(&mut self, access: &simt::resident::Access) {
        match access.place {
            _ if access.global == 0 => {}
            Where::Consecutive(address) | Where::Same(address) => self.expect_line(address),
            _ if access.local == 0 => self.prepare_lines(access),
            _ => {}
        }
    }

    #[inline(never)]
    fn prepare_lines(&mut self, access: &simt::resident::Access) {
        let (pieces, cache) = (self.scratch.0.get_or_insert_default(), &self.cache);
        pieces.clear();
        pieces.global(access, access.global);
        pieces.expect(cache);
        pieces.keep();
    }

    /// The same for a load from a place in global memory.
    #[inline(always)]
    pub fn expect_line(&self, address: u64) {
        self.cache.expect(Tags::number(address));
    }

    /// The access that was prepared does not issue now.
    #[cold]
    pub fn forget_access(&mut self) {
        self.scratch.0.get_or_insert_default().clear();
    }

    /// The slot of a line, new if need be; what is thrown out and newer than memory behind goes there.
    #[inline(always)]
    fn line(&mut self, piece: &Piece, used: u16) -> Option<u32> {
        if let Some(at) = self.cache.find_from(piece.slot, piece.number, || piece.mark) {
            self.cache.touch(at, used);
            return Some(at);
        }
        self.cache.insert(piece.number, used)
    }

    /// A request leaves the SM as soon as the way out is free.
    #[inline(always)]
    fn send(&mut self, looked: Cycle, s: Sent, out: &mut Vec<Request>) {
        let l1 = &self.spec.l1;
        let data = || (count(s.sectors) * SECTOR as u32).div_ceil(l1.store_bytes);
        let busy = match s.kind {
            // Bytes of a sector that is not whole travel with a mask.
            RequestKind::Store => data() + u32::from(!s.is_whole),
            // Operations on one address travel one by one; a lone one without an answer fits into its header.
            RequestKind::Atomic => data().max(s.depth.into()) + 1,
            RequestKind::Reduction => data().max(s.depth.into()) + u32::from(data() > 1),
            _ => 0,
        };
        let busy = busy.max(l1.request_interval);
        let at = self.leave.serve(looked + u64::from(l1.miss_latency), u64::from(busy));
        if s.kind != RequestKind::Load && !s.is_local {
            // Its data is read from the banks as it leaves: what stores and masks take, and the operands of the others.
            // Nobody meets that of local memory.
            let reads = if s.kind == RequestKind::Store { busy } else { data() };
            self.reads.take_from_global(at, reads);
        }
        out.push(Request {
            at,
            sm: self.sm,
            token: Token(s.token),
            line: s.line,
            sectors: s.sectors,
            kind: s.kind,
            whole: s.is_whole,
            depth: s.depth,
            operations: s.operations,
        });
    }

    /// An answer from memory.
    #[inline(always)]
    pub(super) fn answer(&mut self, r: &Response, done: &mut Vec<Done>, counters: &mut Counters) {
        let (returns, spec, reads) = (&mut self.returns, &self.spec, &self.reads);
        let taken = self.banks.free();
        let finished = self.flights.finish(r.token.0, r.at, |w| {
            let at = match w.kind {
                Kind::Load | Kind::Atomic => {
                    // Passes of accesses that came before go first.
                    let begin = returns.serve(w.at.later(taken), u64::from(w.passes));
                    let lost = reads.lost(Path::Global, begin, w.passes.into());
                    counters.bank_conflicts += u64::from(lost);
                    let through = begin + u64::from(lost);
                    let replays = u32::from(w.passes.max(1) - 1) * spec.replay_latency;
                    through + u64::from(replays + u32::from(w.wide) + spec.l1.fill_latency)
                }
                _ => w.at,
            };
            done.push(Done { owner: w.owner, at, kind: w.kind });
        });
        let Some(flight) = finished.filter(|f| f.sectors != 0) else { return };
        let number = Tags::number(r.line);
        let Some(at) = self.cache.find_from(flight.slot, number, || Tags::mark(number)) else { return };
        if r.kind == RequestKind::Store {
            self.cache.slot(at).stored();
            return;
        }
        // What comes is written before it can be read, as far from its arrival as a store is from its issue.
        let (bytes, at_once) = (count(flight.sectors) * SECTOR as u32, self.spec.l1.fill_bytes);
        // Mostly it is little, and nothing has to be divided.
        let cycles = if bytes <= at_once { 1 } else { bytes.div_ceil(at_once) };
        let begin = self.fills.serve(r.at + u64::from(self.spec.address_latency), u64::from(cycles));
        self.writes.take_from_global(begin, cycles);
        // The line may have been dropped and asked for again since: then this answer is not its.
        let token = r.token.0;
        let mut before = NONE;
        let mut now = self.cache.flight_of(at);
        while now != NONE && now != token {
            before = now;
            now = self.flights.get(now).next;
        }
        if now == NONE {
            return;
        }
        self.cache.slot(at).fill(flight.sectors, r.at);
        match before {
            NONE => self.cache.slot(at).set_flight(flight.next),
            b => self.flights.get(b).next = flight.next,
        }
    }
}

/// An access on its way through the stages.
#[derive(Clone, Copy)]
struct Access {
    /// When its first lines are at the tags.
    begin: Cycle,
    /// Cycles that it keeps the tags.
    tags: u32,
    /// When the part of it that goes to shared memory is done.
    other: Cycle,
    /// Pieces from this one on are of local memory.
    locals: usize,
    /// Lines that are looked up in a cycle, as a power of two.
    shift: u32,
}

impl Access {
    /// When piece `n` is looked up.
    #[inline(always)]
    fn looked(&self, n: usize) -> Cycle {
        self.begin + (n >> self.shift) as u64
    }
}

/// What is particular to a request.
#[derive(Clone, Copy)]
struct Sent {
    token: u32,
    line: u64,
    sectors: u8,
    kind: RequestKind,
    is_whole: bool,
    is_local: bool,
    operations: u8,
    depth: u8,
}

impl Sent {
    #[inline(always)]
    fn new(token: u32, line: u64, sectors: u8) -> Sent {
        Sent {
            token,
            line,
            sectors,
            kind: RequestKind::Load,
            is_whole: false,
            is_local: false,
            operations: 0,
            depth: 0,
        }
    }
}

/// Lists the lines of which something is on its way or missing; how many there are of each, and when the rest is ready.
#[inline(never)]
fn look_up(cache: &mut Tags, flights: &Flights, pieces: &mut Pieces) -> (Cycle, usize, usize) {
    let used = cache.uses(pieces.len());
    let (mut coming, mut missing) = (0, 0);
    let mut ready = Cycle(0);
    for n in 0..pieces.len() {
        let (found, slot, chain) = cache.load(&pieces.piece(n), used + n as u16);
        flights.expect(chain);
        ready = ready.later(found.ready);
        // The next one takes the place where there is nothing.
        pieces.coming[coming % 32] = Coming { chain, sectors: found.coming };
        coming += usize::from(found.coming != 0);
        pieces.missing[missing % 32] = Missing { chain, slot, n: n as u8, sectors: found.missing };
        missing += usize::from(found.missing != 0);
    }
    (ready, coming, missing)
}

/// Adds sectors to a load that has not left at `looked` and is one of the last requests, if it is.
#[inline(never)]
fn adds_to(out: &mut [Request], token: u32, sectors: u8, looked: Cycle) -> bool {
    let waits = out.iter_mut().rev().take(LEAVING).find(|r| r.token == Token(token));
    let Some(request) = waits.filter(|r| r.kind == RequestKind::Load && r.at > looked) else {
        return false;
    };
    request.sectors |= sectors;
    true
}

/// Sectors that are touched of the lines from `first` on.
#[inline(always)]
fn touched_from(pieces: &impl Lines, first: usize) -> u32 {
    (first..pieces.len()).map(|n| count(pieces.piece(n).sectors)).sum()
}

/// Counts passes that an access takes because lines need the same bank: how many it takes in all. One of several
/// registers a lane takes a pass for each anyhow.
#[inline(always)]
fn count_conflicts(op: &Operation, p: Passes, counters: &mut Counters) -> u32 {
    counters.bank_conflicts += u64::from(p.passes.saturating_sub(p.groups.max(op.registers)));
    p.passes
}
