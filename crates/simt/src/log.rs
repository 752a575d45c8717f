//! What an SM did to global memory since the last exchange between SMs.
//!
//! In a timed run, stores and atomics that leave an SM take effect when SMs exchange, in the order of cycle, SM and
//! sequence: [`apply`]. Until then the SM keeps them here. Its own loads see its stores; a load from where one of its
//! atomics will act has to wait for the exchange, since what the atomic finds is not known before.
//!
//! Handlers find the log in [`crate::lanes::Lanes`]; in functional runs there is none. A filter over sectors tells most
//! loads at once that nothing here is of their concern.

use crate::memory::{Bounds, Memory};
use crate::ops::atomic;
use crate::prefetch::{HOST_LINE, prefetch, prefetch_at};
use isa::field::{AtomOp, AtomType};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A bit of the filter is a sector of 32 bytes, a word of it 64 neighbouring ones.
const SECTOR: u32 = 5;
const WORD: u32 = 6;
/// Words of the filter: sectors of as many different places of 2 KB are told apart.
const WORDS: u32 = 128;

/// An entry: bytes to store, or an atomic.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Entry {
    cycle: u64,
    start: u64,
    end: u64,
    /// Place in `bytes` or in `atomics`.
    at: u32,
    is_atomic: bool,
}

/// An atomic or reduction of a warp.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Atomic {
    #[serde(with = "crate::arrays::bits")]
    pub op: AtomOp,
    #[serde(with = "crate::arrays::bits")]
    pub ty: AtomType,
    /// Whether the warp wants what was in memory.
    pub returns: bool,
    /// The row that gets it.
    pub row: u32,
    pub warp: u32,
    pub cta: [u32; 3],
    token: u32,
    /// Its lanes in `operands`.
    first: u32,
    lanes: u32,
}

impl Atomic {
    pub fn new(op: AtomOp, ty: AtomType, row: Option<u32>, warp: u32, cta: [u32; 3]) -> Atomic {
        let (returns, row) = (row.is_some(), row.unwrap_or(0));
        Atomic { op, ty, returns, row, warp, cta, token: 0, first: 0, lanes: 0 }
    }
}

/// What one lane brings to an atomic. After the exchange `x` is what it found in memory.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Operand {
    pub address: u64,
    pub lane: u32,
    pub x: u128,
    pub new: u128,
}

/// The results of an atomic, to be given to [`crate::resident::Resident::deliver`].
pub struct Answer<'a> {
    pub(crate) atomic: &'a Atomic,
    pub(crate) lanes: &'a [Operand],
}

impl Answer<'_> {
    /// The log's token at the time of the step.
    pub fn token(&self) -> u32 {
        self.atomic.token
    }

    /// The warp's place in its CTA.
    pub fn warp(&self) -> u32 {
        self.atomic.warp
    }

    /// Lanes that get something.
    pub fn mask(&self) -> u32 {
        self.lanes.iter().fold(0, |m, o| m | 1 << o.lane)
    }
}

/// How far a log came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    entries: usize,
    bytes: usize,
}

/// The log of an SM.
#[derive(Serialize, Deserialize)]
pub struct Log {
    /// Handed back with the results of the atomics that are logged while it is set: whose they are.
    pub token: u32,
    cycle: u64,
    /// All that is logged lies between these; nothing is when `high` is zero.
    low: u64,
    high: u64,
    #[serde(with = "crate::arrays::boxed")]
    filter: Box<[u64; WORDS as usize]>,
    entries: Vec<Entry>,
    /// What is stored; every entry starts at a multiple of sixteen bytes.
    bytes: Vec<u128>,
    atomics: Vec<Atomic>,
    operands: Vec<Operand>,
    /// Entries that took effect already, while [`apply`] runs.
    done: usize,
}

impl Default for Log {
    fn default() -> Self {
        Log::new()
    }
}

/// The words of the filter for a range of addresses, and the bits in them.
#[inline(always)]
fn filter_words(start: u64, end: u64, mut f: impl FnMut(usize, u64)) {
    let (first, last) = (start >> SECTOR, (end - 1) >> SECTOR);
    let mut sector = first;
    while sector <= last {
        let word = sector >> WORD;
        let stop = last.min(word << WORD | 63);
        let bits = (u64::MAX >> (63 - (stop - sector))) << (sector & 63);
        f(slot(word), bits);
        sector = stop + 1;
    }
}

#[inline(always)]
fn slot(word: u64) -> usize {
    // Fibonacci hashing: the top bits of a product with 2^64 over the golden ratio.
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - WORDS.trailing_zeros())) as usize
}

impl Log {
    pub fn new() -> Log {
        Log {
            token: 0,
            cycle: 0,
            low: u64::MAX,
            high: 0,
            filter: Box::new([0; WORDS as usize]),
            entries: Vec::new(),
            bytes: Vec::new(),
            atomics: Vec::new(),
            operands: Vec::new(),
            done: 0,
        }
    }

    /// Whether nothing waits for the exchange.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.high == 0
    }

    /// Whether what was read from a file can be a log: atomics stand at multiples of their sizes, and every entry has what
    /// it names.
    pub fn is_sound(&self) -> bool {
        let lanes = |a: &Atomic| self.operands.get(a.first as usize..a.first.checked_add(a.lanes)? as usize);
        let is_aligned = |a: &Atomic| {
            let size = u64::from(atomic::size(a.ty));
            lanes(a).is_some_and(|all| all.iter().all(|o| o.address % size == 0))
        };
        let exists = |e: &Entry| match e.is_atomic {
            true => (e.at as usize) < self.atomics.len(),
            false => {
                let words = e.end.checked_sub(e.start).map(|n| n.div_ceil(16));
                words.is_some_and(|n| n.saturating_add(e.at.into()) <= self.bytes.len() as u64)
            }
        };
        self.done == 0 && self.atomics.iter().all(is_aligned) && self.entries.iter().all(exists)
    }

    /// What is logged from now on happens in this cycle. Cycles do not go back.
    #[inline(always)]
    pub(crate) fn now(&mut self, cycle: u64) {
        self.cycle = self.cycle.max(cycle);
    }

    /// Whether something that is logged may touch these bytes; a no is certain.
    #[inline(always)]
    pub(crate) fn may_touch(&self, address: u64, len: u64) -> bool {
        address < self.high && address + len > self.low && self.filtered(address, len)
    }

    #[inline(never)]
    fn filtered(&self, address: u64, len: u64) -> bool {
        let mut hit = 0;
        filter_words(address, address + len, |n, bits| hit |= self.filter[n] & bits);
        hit != 0
    }

    /// The same for aligned accesses of at most 16 bytes at distances from an address.
    pub(crate) fn may_touch_any(&self, start: u64, distances: &[u32; 32]) -> bool {
        let mut hit = 0;
        for &d in distances {
            let sector = (start + u64::from(d)) >> SECTOR;
            hit |= self.filter[slot(sector >> WORD)] >> (sector & 63);
        }
        hit & 1 != 0
    }

    #[inline(always)]
    fn mark(&mut self, start: u64, end: u64) {
        self.low = self.low.min(start);
        self.high = self.high.max(end);
        let filter = &mut self.filter;
        let sector = start >> SECTOR;
        if sector == (end - 1) >> SECTOR {
            filter[slot(sector >> WORD)] |= 1 << (sector & 63);
        } else {
            filter_words(start, end, |n, bits| filter[n] |= bits);
        }
    }

    /// Logs a store of `len` bytes: where to put them. The place has room for `len` bytes, is aligned to sixteen, and
    /// holds until something else is logged.
    pub(crate) fn store(&mut self, address: u64, len: u32) -> *mut u8 {
        let at = self.bytes.len();
        self.bytes.resize(at + len.div_ceil(16) as usize, 0);
        let end = address + u64::from(len);
        let entry = Entry { cycle: self.cycle, start: address, end, at: at as u32, is_atomic: false };
        self.entries.push(entry);
        self.mark(address, end);
        self.bytes[at..].as_mut_ptr().cast()
    }

    /// Logs a store whose bytes are there.
    #[inline(always)]
    pub(crate) fn put(&mut self, start: u64, bytes: &[u8]) {
        if !bytes.is_empty() && start.checked_add(bytes.len() as u64).is_some() {
            let to = self.store(start, bytes.len() as u32);
            // SAFETY: the place is new, and has room for as many bytes.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        }
    }

    /// How far it came, for [`Log::stored_since`] and [`Log::forget_since`].
    #[inline(always)]
    pub(crate) fn so_far(&self) -> Mark {
        Mark { entries: self.entries.len(), bytes: self.bytes.len() }
    }

    /// Stores since then: where, and what.
    #[inline(always)]
    pub(crate) fn stored_since(&self, mark: Mark) -> impl Iterator<Item = (u64, &[u8])> {
        let entries = self.entries.get(mark.entries..).unwrap_or_default();
        let stores = entries.iter().filter(|e| !e.is_atomic);
        stores.map(|e| (e.start, self.data(e.at, (e.end - e.start) as usize)))
    }

    /// Forgets stores since then.
    pub(crate) fn forget_since(&mut self, mark: Mark) {
        self.entries.truncate(mark.entries);
        self.bytes.truncate(mark.bytes);
    }

    /// Logs an atomic whose lanes follow.
    pub(crate) fn begin(&mut self, atomic: Atomic) {
        let (first, token) = (self.operands.len() as u32, self.token);
        let at = self.atomics.len() as u32;
        self.atomics.push(Atomic { first, token, lanes: 0, ..atomic });
        self.entries.push(Entry { cycle: self.cycle, start: u64::MAX, end: 0, at, is_atomic: true });
    }

    /// A lane of the atomic that was begun last.
    pub(crate) fn lane(&mut self, operand: Operand) {
        if let (Some(atomic), Some(entry)) = (self.atomics.last_mut(), self.entries.last_mut()) {
            let end = operand.address + u64::from(atomic::size(atomic.ty));
            atomic.lanes += 1;
            entry.start = entry.start.min(operand.address);
            entry.end = entry.end.max(end);
            self.operands.push(operand);
            self.mark(operand.address, end);
        }
    }

    fn operands(&self, a: &Atomic) -> &[Operand] {
        &self.operands[a.first as usize..(a.first + a.lanes) as usize]
    }

    fn data(&self, at: u32, len: usize) -> &[u8] {
        let from = &self.bytes[at as usize..at as usize + len.div_ceil(16)];
        // SAFETY: `len` bytes of these words; any bytes are valid.
        unsafe { std::slice::from_raw_parts(from.as_ptr().cast(), len) }
    }

    /// Puts what this SM stored over bytes of memory. False where an atomic decides what they are.
    pub(crate) fn overlay(&self, address: u64, bytes: &mut [u8]) -> bool {
        let end = address + bytes.len() as u64;
        for e in &self.entries {
            if e.start >= end || e.end <= address {
                continue;
            }
            if e.is_atomic {
                let a = &self.atomics[e.at as usize];
                let size = u64::from(atomic::size(a.ty));
                if self.operands(a).iter().any(|o| o.address < end && o.address + size > address) {
                    return false;
                }
                continue;
            }
            let (from, to) = (e.start.max(address), e.end.min(end));
            let data = self.data(e.at, (e.end - e.start) as usize);
            bytes[(from - address) as usize..(to - address) as usize]
                .copy_from_slice(&data[(from - e.start) as usize..(to - e.start) as usize]);
        }
        true
    }

    /// After the exchange: calls `f` with the results of each atomic that has some, in the order in which they were
    /// executed, and forgets them. Before it, there are none.
    pub fn answers(&mut self, mut f: impl FnMut(Answer)) {
        if !self.entries.is_empty() || self.atomics.is_empty() {
            return;
        }
        for atomic in self.atomics.iter().filter(|a| a.returns) {
            f(Answer { atomic, lanes: self.operands(atomic) });
        }
        self.atomics.clear();
        self.operands.clear();
    }

    /// Lets the entries before `until` (cycle and SM) take effect; this is the log of SM `sm`.
    fn apply_until(&mut self, to: &mut Target, sm: usize, until: Option<(u64, usize)>) {
        while let Some(&e) = self.entries.get(self.done) {
            if until.is_some_and(|u| (e.cycle, sm) >= u) {
                return;
            }
            self.done += 1;
            if e.is_atomic {
                let a = self.atomics[e.at as usize];
                let size = u64::from(atomic::size(a.ty));
                for o in &mut self.operands[a.first as usize..(a.first + a.lanes) as usize] {
                    if let Some(p) = to.reach(o.address, size) {
                        // SAFETY: in bounds; the handler that logged it checked that it is aligned.
                        o.x = unsafe { atomic::update(p, a.op, a.ty, o.x, o.new) };
                    }
                }
            } else if let Some(p) = to.reach(e.start, e.end - e.start) {
                let data = self.data(e.at, (e.end - e.start) as usize);
                // SAFETY: in bounds; the log is no device memory.
                unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), p, data.len()) };
            }
        }
    }

    /// An entry takes effect soon: asks the host's caches for what it stores, and for where that goes.
    #[inline(always)]
    fn expect(&self, e: &Entry, memory: &Memory) {
        if !e.is_atomic {
            let words = HOST_LINE / size_of::<u128>();
            prefetch(&self.bytes, e.at as usize);
            prefetch(&self.bytes, e.at as usize + words);
            let to = memory.origin().wrapping_add(e.start as usize);
            prefetch_at(to);
            prefetch_at(to.wrapping_add(HOST_LINE));
        }
    }

    /// Everything took effect, or nothing will.
    pub(crate) fn reset(&mut self) {
        if self.is_empty() {
            return;
        }
        (self.low, self.high, self.done) = (u64::MAX, 0, 0);
        self.filter.fill(0);
        self.entries.clear();
        self.bytes.clear();
    }
}

/// Memory that logs are applied to.
struct Target<'a> {
    memory: &'a Memory,
    /// The allocation that was hit last.
    bounds: Bounds,
}

impl Target<'_> {
    /// Host address of bytes that lie in one allocation.
    #[inline]
    fn reach(&mut self, address: u64, len: u64) -> Option<*mut u8> {
        if !self.bounds.holds(address, len) {
            self.bounds = self.memory.find(address)?;
        }
        let ok = self.bounds.holds(address, len);
        ok.then(|| self.memory.origin().wrapping_add(address as usize))
    }
}

/// The exchange: all that is logged takes effect, by cycle, then by place in `logs` (the number of the SM), then in the
/// order in which it was logged. No other thread runs warps on this memory meanwhile. Then [`Log::answers`] has the
/// results of atomics.
pub fn apply(memory: &Memory, logs: &mut [&mut Log]) {
    let mut to = Target { memory, bounds: Bounds::default() };
    let mut heads: BinaryHeap<Reverse<(u64, usize)>> = logs
        .iter()
        .enumerate()
        .filter_map(|(n, log)| {
            let first = log.entries.first()?;
            log.expect(first, memory);
            Some(Reverse((first.cycle, n)))
        })
        .collect();
    while let Some(Reverse((_, n))) = heads.pop() {
        let log = &mut logs[n];
        log.apply_until(&mut to, n, heads.peek().map(|head| head.0));
        match log.entries.get(log.done) {
            Some(e) => {
                heads.push(Reverse((e.cycle, n)));
                log.expect(e, memory);
            }
            None => log.reset(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BYTES: u64 = 192;
    const SMS: usize = 3;

    /// What an SM does, by places in a small piece of memory.
    #[derive(Clone, Debug)]
    enum Act {
        Store { at: u64, bytes: Vec<u8> },
        Add { size: u32, lanes: Vec<(u64, u64)> },
        Load { at: u64, len: u64 },
        Exchange,
    }

    fn act() -> impl Strategy<Value = (usize, u64, Act)> {
        let store = prop_oneof![(0u32..5).prop_map(|k| 1 << k), 1usize..160]
            .prop_flat_map(|n| (0..BYTES - n as u64, prop::collection::vec(any::<u8>(), n)))
            .prop_map(|(at, bytes)| Act::Store { at, bytes });
        let add = prop::sample::select(vec![4u32, 8, 16]).prop_flat_map(|size| {
            let place = (0..BYTES / u64::from(size)).prop_map(move |n| n * u64::from(size));
            prop::collection::vec((place, any::<u64>()), 1..5).prop_map(move |lanes| Act::Add { size, lanes })
        });
        let load = (0..BYTES - 16, 1u64..=16).prop_map(|(at, len)| Act::Load { at, len });
        let act = prop_oneof![4 => store, 2 => add, 4 => load, 1 => Just(Act::Exchange)];
        (0..SMS, 0..2u64, act)
    }

    fn overlap(a: u64, a_len: u64, b: u64, b_len: u64) -> bool {
        a < b + b_len && b < a + a_len
    }

    /// Adds to little-endian bytes; what was there.
    fn add(memory: &mut [u8], at: u64, size: u32, x: u64) -> u128 {
        let cell = &mut memory[at as usize..][..size as usize];
        let old = cell.iter().rev().fold(0u128, |v, &b| v << 8 | u128::from(b));
        cell.copy_from_slice(&old.wrapping_add(x.into()).to_le_bytes()[..size as usize]);
        old
    }

    fn ty(size: u32) -> AtomType {
        match size {
            4 => AtomType::U32,
            8 => AtomType::U64,
            _ => AtomType::B128,
        }
    }

    proptest! {
        #[test]
        fn logs_are_what_a_list_of_acts_says(acts in prop::collection::vec(act(), 1..60)) {
            let memory = Memory::new(1 << 20).expect("memory");
            let base = memory.alloc(BYTES).expect("alloc");
            let mut logs: Vec<Log> = (0..SMS).map(|_| Log::new()).collect();
            let mut model = vec![0u8; BYTES as usize];
            let mut pending: Vec<(u64, usize, Act)> = Vec::new();
            let mut cycles = [0; SMS];
            for (sm, pass, act) in acts.into_iter().chain([(0, 0, Act::Exchange)]) {
                cycles[sm] += pass;
                logs[sm].now(cycles[sm]);
                logs[sm].token = sm as u32;
                match &act {
                    Act::Store { at, bytes } => {
                        let to = logs[sm].store(base + at, bytes.len() as u32);
                        prop_assert!((to as usize).is_multiple_of(16));
                        // SAFETY: the log gave room for as many bytes.
                        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
                    }
                    Act::Add { size, lanes } => {
                        logs[sm].begin(Atomic::new(AtomOp::Add, ty(*size), Some(0), 0, [0; 3]));
                        for (lane, &(at, x)) in (0..).zip(lanes) {
                            // As a handler does it: as wide as the type.
                            let x = u128::from(x) & if *size == 4 { 0xffff_ffff } else { u128::MAX };
                            logs[sm].lane(Operand { address: base + at, lane, x, new: 0 });
                        }
                    }
                    &Act::Load { at, len } => {
                        let mut expected = Some(model[at as usize..(at + len) as usize].to_vec());
                        let mut is_touched = false;
                        for (_, _, act) in pending.iter().filter(|p| p.1 == sm) {
                            match act {
                                Act::Store { at: s, bytes } => {
                                    is_touched |= overlap(at, len, *s, bytes.len() as u64);
                                    for k in at.max(*s)..(at + len).min(s + bytes.len() as u64) {
                                        if let Some(e) = &mut expected {
                                            e[(k - at) as usize] = bytes[(k - s) as usize];
                                        }
                                    }
                                }
                                Act::Add { size, lanes }
                                    if lanes.iter().any(|l| overlap(at, len, l.0, (*size).into())) =>
                                {
                                    (expected, is_touched) = (None, true);
                                }
                                _ => {}
                            }
                        }
                        let mut found = vec![0; len as usize];
                        memory.read(base + at, &mut found).expect("read");
                        prop_assert!(!is_touched || logs[sm].may_touch(base + at, len));
                        prop_assert!(!is_touched || at / 32 != (at + len - 1) / 32
                            || logs[sm].may_touch_any(base + at, &[0; 32]));
                        let known = logs[sm].overlay(base + at, &mut found);
                        prop_assert_eq!(known.then_some(found), expected);
                    }
                    Act::Exchange => {
                        apply(&memory, &mut logs.iter_mut().collect::<Vec<_>>());
                        // Stable: what was logged first stays first.
                        pending.sort_by_key(|p| (p.0, p.1));
                        let mut old = vec![Vec::new(); SMS];
                        for (_, sm, act) in pending.drain(..) {
                            match act {
                                Act::Store { at, bytes } => {
                                    model[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
                                }
                                Act::Add { size, lanes } => {
                                    old[sm].extend(lanes.iter().map(|&(at, x)| add(&mut model, at, size, x)));
                                }
                                _ => {}
                            }
                        }
                        let mut found = vec![0; BYTES as usize];
                        memory.read(base, &mut found).expect("read");
                        prop_assert_eq!(&found, &model);
                        for (sm, log) in logs.iter_mut().enumerate() {
                            let mut answers = Vec::new();
                            log.answers(|a| {
                                assert_eq!(a.token(), sm as u32);
                                answers.extend(a.lanes.iter().map(|o| o.x));
                            });
                            prop_assert_eq!(&answers, &old[sm]);
                            prop_assert!(log.is_empty() && !log.may_touch(base, BYTES));
                        }
                    }
                }
                pending.push((cycles[sm], sm, act));
            }
        }
    }

    #[test]
    fn filters_tell_places_apart() {
        let mut log = Log::new();
        let base = 1 << 36;
        assert!(log.is_empty() && !log.may_touch(base, 512));
        log.store(base + 4096, 128);
        log.store(base, 4);
        assert!(log.may_touch(base + 4096 + 96, 64) && log.may_touch(base + 4000, 128));
        let free = (4..128).filter(|n| !log.may_touch(base + 32 * n, 32)).count();
        assert!(free >= 120, "{free} of 124 sectors");
    }
}
