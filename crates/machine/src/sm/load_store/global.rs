//! Global and local memory through the first-level cache: lookups, misses, stores, atomics, and the answers.

use super::coalesce::{Lines, Modify, Passes, Piece, Pieces, modify, only_line};
use super::flight::{Asking, NO_SLOT, Waiting};
use super::l1::{NONE, Tags};
use super::{Done, Kind, LoadStore, Operation, Outcome, Path};
use crate::counters::Counters;
use crate::ports::{Request, RequestKind, Response};
use crate::units::{Cycle, LINE, SECTOR, Token, count};
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
        let mut pieces = std::mem::take(&mut self.pieces);
        let is_made = pieces.take_kept();
        if !is_made {
            pieces.clear();
            if a.global != 0 {
                pieces.global(a, a.global);
            }
        }
        let locals = if op.is_remapped { usize::MAX } else { pieces.list().len() };
        if !is_made {
            if a.local != 0 {
                pieces.local(a, a.local, op.local_base);
            }
            pieces.look_up(self.spec.l1.tags_per_cycle, |line| self.cache.expect(line));
        }
        // Each goes over all of them and asks for what the next one reads.
        pieces.list_mut().iter_mut().for_each(|p| p.slot = self.cache.expect_slot(p.mark));
        pieces.list().iter().for_each(|p| self.flights.expect(self.cache.flight_of(p.slot.into())));
        let tags = pieces.rounds();
        let begin = self.tags.serve(at, u64::from(tags));
        counters.l1_requests += 1;
        let access = Access { begin, tags, other: shared.known(begin), locals };
        let result = match op.kind {
            Kind::Store => self.store(op, &mut pieces, access, out, counters),
            Kind::Atomic | Kind::Reduction => self.modify(op, &mut pieces, access, out, counters),
            _ => self.load(op, &mut pieces, access, out, counters),
        };
        self.pieces = pieces;
        (begin, result)
    }

    /// A load from one line of global memory, or a store to it: what most accesses are.
    fn one_line(
        &mut self,
        at: Cycle,
        op: &Operation,
        mut piece: Piece,
        shared: Outcome,
        out: &mut Vec<Request>,
        counters: &mut Counters,
    ) -> (Cycle, Outcome) {
        let begin = self.tags.serve(at, 1);
        piece.mark = Tags::mark(piece.line);
        counters.l1_requests += 1;
        let access = Access { begin, tags: 1, other: shared.known(begin), locals: 1 };
        let result = match op.kind {
            Kind::Store => self.store(op, &mut piece, access, out, counters),
            _ => self.load(op, &mut piece, access, out, counters),
        };
        (begin, result)
    }

    fn load(
        &mut self,
        op: &Operation,
        pieces: &mut impl Lines,
        access: Access,
        out: &mut Vec<Request>,
        counters: &mut Counters,
    ) -> Outcome {
        let wide = if op.registers >= 4 { self.spec.quad_latency } else { 0 };
        let waits = op.kind == Kind::Load;
        let mut asking = Asking::NOTHING;
        let mut ready = Cycle(0);
        let mut all_found = true;
        // Sectors looked up, those of local memory among them, and those that were there or on their way.
        let (mut looked_up, mut found) = (0, 0);
        let locals = pieces.list().get(access.locals..).unwrap_or_default();
        let of_local: u32 = locals.iter().map(|p| count(p.sectors())).sum();
        // Other SMs may have written what these read.
        let bypasses_global = matches!(op.cache, Cache::Cg | Cache::Cv);
        for (n, p) in pieces.list().iter().enumerate() {
            let is_local = n >= access.locals;
            let sectors = p.sectors();
            looked_up += count(sectors);
            let bypasses = !is_local && bypasses_global;
            let looked = access.looked(n, self.spec.l1.tags_per_cycle);
            let mut missing = sectors;
            let mut slot = None;
            if !bypasses {
                slot = self.line(p);
            }
            let mut chain = NONE;
            if let Some(at) = slot {
                chain = self.cache.flight_of(at);
                let s = self.cache.slot(at);
                let there = sectors & s.valid();
                ready = ready.later(s.ready(there));
                let coming = sectors & s.pending() & !s.valid();
                missing = sectors & !there & !coming;
                found += count(there | coming);
                s.ask(missing);
                all_found &= coming == 0;
                if coming != 0 && waits {
                    self.join(&mut asking, coming, chain);
                }
            }
            if missing == 0 {
                continue;
            }
            all_found = false;
            if chain != NONE && self.takes_along(chain, missing, looked, out) {
                if waits {
                    self.join(&mut asking, missing, chain);
                }
                continue;
            }
            let fills = if slot.is_some() { missing } else { 0 };
            let place = slot.unwrap_or(NO_SLOT);
            let token = match waits {
                true => self.flights.start_for(&mut asking, place, fills, missing, chain),
                false => self.flights.start(place, fills, missing, chain),
            };
            if let Some(at) = slot {
                self.cache.set_flight(at, token);
            }
            self.send(looked, Sent { kind: RequestKind::Load, ..Sent::new(token, p.line, missing) }, out);
        }
        counters.l1_sectors += u64::from(looked_up);
        counters.l1_load_sectors += u64::from(looked_up - of_local);
        counters.l1_hits += u64::from(found);
        let passes = count_conflicts(op, pieces.passes(all_found), counters);
        if asking.left != 0 {
            self.flights.close(asking, op.waiting(ready.later(access.other), passes, wide));
            return Outcome::Pending;
        }
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
    #[inline]
    fn takes_along(&mut self, token: u32, sectors: u8, looked: Cycle, out: &mut [Request]) -> bool {
        let waits = out.iter_mut().rev().take(LEAVING).find(|r| r.token == Token(token));
        let Some(request) = waits.filter(|r| r.kind == RequestKind::Load && r.at > looked) else {
            return false;
        };
        request.sectors |= sectors;
        self.flights.extend(token, sectors);
        true
    }

    /// Waits for the requests of `chain` that bring one of the sectors.
    fn join(&mut self, asking: &mut Asking, coming: u8, chain: u32) {
        let mut token = chain;
        while token != NONE {
            let flight = self.flights.get(token);
            let (sectors, next) = (flight.sectors, flight.next);
            if sectors & coming != 0 {
                self.flights.wait(asking, token);
            }
            token = next;
        }
    }

    fn store(
        &mut self,
        op: &Operation,
        pieces: &mut impl Lines,
        access: Access,
        out: &mut Vec<Request>,
        counters: &mut Counters,
    ) -> Outcome {
        let mut asking = Asking::NOTHING;
        for (n, p) in pieces.list().iter().enumerate() {
            let is_local = n >= access.locals;
            let (sectors, whole) = (p.sectors(), p.whole());
            counters.l1_sectors += u64::from(count(sectors));
            counters.l1_store_sectors += u64::from(count(sectors)) * u64::from(!is_local);
            let looked = access.looked(n, self.spec.l1.tags_per_cycle);
            let slot = if is_local || self.spec.l1.store_allocates {
                self.line(p)
            } else {
                self.cache.find_marked(p.line, p.mark)
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
                let place = slot.unwrap_or(NO_SLOT);
                let token = self.flights.start_for(&mut asking, place, fills & part, 0, NONE);
                let kind = RequestKind::Store;
                let sent = Sent { kind, is_whole, is_local, ..Sent::new(token, p.line, part) };
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
        for (n, p) in pieces.list().iter().enumerate().take(32) {
            let sectors = p.sectors();
            if let Some(at) = self.cache.find_marked(p.line, p.mark) {
                self.cache.slot(at).forget(sectors);
            }
            let token = self.flights.start_for(&mut asking, NO_SLOT, 0, 0, NONE);
            let Modify { operations, depth } = lines[n];
            let looked = access.looked(n, self.spec.l1.tags_per_cycle);
            self.send(looked, Sent { kind, operations, depth, ..Sent::new(token, p.line, sectors) }, out);
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
            Where::Consecutive(address) | Where::Same(address) => {
                self.cache.expect(address & !(LINE - 1));
            }
            _ if access.local == 0 => {
                self.pieces.clear();
                self.pieces.global(access, access.global);
                self.pieces.look_up(self.spec.l1.tags_per_cycle, |line| self.cache.expect(line));
                self.pieces.keep();
            }
            _ => {}
        }
    }

    /// The same for a load from a place in global memory.
    #[inline(always)]
    pub fn expect_line(&self, address: u64) {
        self.cache.expect(address & !(LINE - 1));
    }

    /// The access that was prepared does not issue now.
    #[cold]
    pub fn forget_access(&mut self) {
        self.pieces.clear();
    }

    /// The slot of a line, new if need be; what is thrown out and newer than memory behind goes there.
    #[inline(always)]
    fn line(&mut self, piece: &Piece) -> Option<u32> {
        if let Some(at) = self.cache.find_from(piece.slot.into(), piece.line, || piece.mark) {
            self.cache.touch(at);
            return Some(at);
        }
        self.cache.insert(piece.line)
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
        let Some(at) = self.cache.find_from(flight.slot, r.line, || Tags::mark(r.line)) else { return };
        if r.kind == RequestKind::Store {
            self.cache.slot(at).stored();
            return;
        }
        // What comes is written before it can be read, as far from its arrival as a store is from its issue.
        let cycles = (count(flight.sectors) * SECTOR as u32).div_ceil(self.spec.l1.fill_bytes);
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
            NONE => self.cache.set_flight(at, flight.next),
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
}

impl Access {
    /// When piece `n` is looked up. Banks of tags are a power of two.
    #[inline(always)]
    fn looked(&self, n: usize, tags_per_cycle: u32) -> Cycle {
        self.begin + (n >> tags_per_cycle.trailing_zeros()) as u64
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

/// Counts passes that an access takes because lines need the same bank: how many it takes in all. One of several
/// registers a lane takes a pass for each anyhow.
#[inline(always)]
fn count_conflicts(op: &Operation, p: Passes, counters: &mut Counters) -> u32 {
    counters.bank_conflicts += u64::from(p.passes.saturating_sub(p.groups.max(op.registers)));
    p.passes
}
