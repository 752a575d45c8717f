//! Trace cell: looks at the schedulers' tables of warps every so often and sends records of them to memory.
//!
//! Warps' cycles are charged in intervals, often before or long after they pass. So the cell does not look at a moment: it
//! is told of every interval and picks the moments that lie in it. Records go through the FIFO in the order of time once
//! all that could come before them is known.

mod fifo;
pub mod registers;
mod spec;
mod states;
#[cfg(test)]
mod tests;

pub use registers::{Drain, Event, RegisterError, Registers, Settings};
pub use spec::Spec;

use super::code::{CLASSES, Class, Kind, Producer, Timing};
use super::sub_core::SubCore;
use super::warp::WarpSlot;
use super::watch::{Waited, reasons};
use crate::stall::Stall;
use fifo::Fifo;
use serde::{Deserialize, Serialize};
use simt::prefetch::prefetch_bytes;
use states::{Cell, PlainRecord, ROWS, Row, SLOTS, States, Why};
use std::collections::BTreeMap;
use trace::record::{Form, INSTRUCTION_BYTES, Record};

/// Bytes that the load-store units store at once.
const LINE: u64 = 128;
/// Cycles whose intervals and events are kept before they are worked on, where moments are made by events.
const EVENT_CYCLES: u64 = 1 << 10;

/// Bytes of samples that an SM mostly takes in a turn, or fewer.
const SOON: usize = 192;
/// Bytes that there is room for at first, and how much more there is each time that it is not enough.
const FIRST_BYTES: usize = 1 << 14;
const GROWTH: usize = 4;

/// A warp in a state, for moments that are not known yet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Interval {
    from: u64,
    until: u64,
    slot: u16,
    pc: u32,
    reason: Stall,
    cta: u16,
    /// Until when results of memory, and of other units of variable latency, are missing.
    missing: [u64; 2],
}

/// Something that a counter of records counts.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Counted {
    cycle: u64,
    counter: u8,
    count: u32,
}

/// A warp slot as the cell sees it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Slot {
    /// The number of its next moment, where moments are made by events.
    number: u64,
    /// Its warp's CTA slot.
    cta: u16,
    is_wanted: bool,
}

/// No moment comes.
const GONE: u64 = 1 << 63;

/// What a warp does one after the other until its instruction issues, by the instruction's class.
const IN_ORDER: [[Stall; 5]; CLASSES] = {
    let mut all =
        [[Stall::Wait, Stall::Wait, Stall::DispatchStall, Stall::NotSelected, Stall::Selected]; CLASSES];
    let mut n = 0;
    while n < CLASSES {
        all[n][1] = Class::ALL[n].throttle();
        n += 1;
    }
    all
};

/// The trace cell of an SM. What every sample looks at comes first and is few lines of the host's cache.
#[derive(Serialize, Deserialize)]
#[repr(C, align(64))]
pub struct TraceCell {
    /// Each slot's next moment. Where no warp is wanted there is none: [`GONE`], by cycles with the one from which on another
    /// warp's could be.
    #[serde(with = "simt::arrays")]
    next: [u64; SLOTS],
    /// All bits; none where intervals matter whether or not moments lie in them, since events do.
    due_bits: u64,
    /// Cycles between samples.
    period: u64,
    /// Moments before this follow on each other and are wanted: up to the end of the window, none where events matter.
    plain_until: u64,
    /// The cycle that sampling counts from, and the cycles between which it is on.
    base: u64,
    window: (u64, u64),
    /// The period as a shift, if it is one.
    period_shift: Option<u32>,
    /// All warps are wanted, by cycles, and nothing is told of them but what they do.
    takes_all: bool,
    states: States,
    sm: u16,
    settings: Settings,
    /// Instructions that call functions, ascending.
    calls: Vec<u32>,
    #[serde(with = "simt::arrays")]
    slots: [Slot; SLOTS],
    /// By events: up to when each slot's intervals were told.
    #[serde(with = "simt::arrays")]
    told: [u64; SLOTS],
    /// One warp in turn: the slot of each scheduler that had the last one.
    turns: Vec<usize>,
    /// By events: how many are missing until the next moment, moments, the number of the first of them, and what warps
    /// did.
    missing_events: u64,
    moments: Vec<u64>,
    first_moment: u64,
    intervals: Vec<Interval>,
    /// What records count and the last of them does not know of; instructions, cache misses, branches and barriers up to
    /// there.
    counted: Vec<Counted>,
    counters: [u32; 4],
    fifo: Fifo,
    /// Records tell nothing but an instruction, its reasons and the SM, and none is lost on the way.
    is_plain: bool,
    /// Through the load-store units: the next moment, bytes that wait, the place of the next line, and how many records
    /// of a moment had room.
    drain_at: u64,
    waiting: u64,
    stored: u64,
    kept: BTreeMap<u64, u64>,
    present: Vec<u64>,
    capacity: u64,
    /// Records as they go to memory.
    pub bytes: Vec<u8>,
    pub records: u64,
    pub lost: u64,
}

impl TraceCell {
    /// The cell of an SM for a launch that starts at a cycle; `None` if it does not take part.
    pub fn new(
        sm: u16,
        spec: &Spec,
        settings: &Settings,
        schedulers: usize,
        start: u64,
        calls: &[u32],
    ) -> Option<TraceCell> {
        if !settings.has_sm(sm) {
            return None;
        }
        let rate = match settings.drain {
            Drain::Stream => spec.stream_bytes_per_cycle,
            Drain::Own | Drain::LoadStore => spec.own_bytes_per_cycle,
        };
        let zero = if settings.machine_clock { 0 } else { start };
        let by_cycles = settings.event.is_none();
        let base = start + settings.phase;
        let wants_events = !by_cycles || settings.form.counters > 0;
        let fifo = Fifo::new(spec.fifo, spec.records_per_cycle, settings.form.bytes(), rate);
        let is_plain = !settings.in_turn
            && settings.drain != Drain::LoadStore
            && settings.form == Form::default()
            && fifo.is_fast();
        let window = (zero.saturating_add(settings.window.0), zero.saturating_add(settings.window.1));
        Some(TraceCell {
            next: [GONE | base; SLOTS],
            due_bits: if wants_events { 0 } else { u64::MAX },
            period: settings.period,
            plain_until: if wants_events { 0 } else { window.1.min(GONE) },
            period_shift: settings.period.is_power_of_two().then(|| settings.period.trailing_zeros()),
            takes_all: is_plain && by_cycles && settings.ctas == (0, u64::MAX) && settings.task == 0,
            states: States::default(),
            sm,
            calls: calls.to_vec(),
            base,
            window,
            slots: [Slot { number: 0, cta: 0, is_wanted: false }; SLOTS],
            told: [start; SLOTS],
            turns: (0..schedulers.max(1)).collect(),
            missing_events: settings.period + settings.phase,
            moments: Vec::new(),
            first_moment: 0,
            intervals: Vec::new(),
            counted: Vec::new(),
            counters: [0; 4],
            fifo,
            is_plain,
            drain_at: if by_cycles && settings.drain == Drain::LoadStore { base } else { u64::MAX },
            waiting: 0,
            stored: 0,
            kept: BTreeMap::new(),
            present: vec![0; schedulers.max(1)],
            capacity: u64::from(spec.fifo) * settings.form.bytes() as u64,
            bytes: Vec::new(),
            records: 0,
            lost: 0,
            settings: settings.clone(),
        })
    }

    /// Bytes of what every sample looks at.
    const NEAR: usize = std::mem::offset_of!(TraceCell, states) + States::NEAR;

    /// Where in the host's memory that lies which every sample looks at.
    pub fn extent(&self) -> (usize, usize) {
        (std::ptr::from_ref(self) as usize, TraceCell::NEAR)
    }

    /// Samples will be taken soon.
    #[inline(always)]
    pub fn expect(&self) {
        prefetch_bytes(self.states.end() as usize, SOON);
    }

    /// A warp takes a slot; its cycles are told of from `at` on.
    pub fn start(&mut self, slot: u16, cta: u16, linear: u64, task: u64, at: u64) {
        if self.takes_all {
            // Mostly: then nothing is looked at that samples do not look at, too.
            return self.begin(slot, at, None);
        }
        let s = &self.settings;
        let is_wanted = (s.ctas.0..=s.ctas.1).contains(&linear) && (s.task == 0 || s.task == task);
        let (by_events, scheduler) = (s.event.is_some(), self.scheduler(slot.into()));
        self.present[scheduler] += u64::from(is_wanted);
        match is_wanted {
            // All intervals are wanted: a moment may turn out to lie in any.
            true if by_events => self.next[usize::from(slot) % SLOTS] = 0,
            // Plain records do not tell where it is.
            true => self.begin(slot, at, (!self.is_plain).then_some(cta)),
            false => self.next[usize::from(slot) % SLOTS] |= GONE,
        }
        let s = &mut self.slots[usize::from(slot) % SLOTS];
        (s.cta, s.is_wanted) = (cta, is_wanted);
        self.told[usize::from(slot) % SLOTS] = at;
    }

    /// By cycles: moments of a slot go on from a cycle.
    #[inline(always)]
    fn begin(&mut self, slot: u16, at: u64, cta: Option<u16>) {
        let next = &mut self.next[usize::from(slot) % SLOTS];
        let number = |cycles: u64| match self.period_shift {
            Some(shift) => cycles >> shift,
            None => cycles / self.period,
        };
        // The stores of the warp before may still be leaving: until then the slot is its.
        let before = number((*next & !GONE).saturating_sub(self.base));
        let first = at.max(self.window.0).saturating_sub(self.base);
        let first = number(first.saturating_add(self.period - 1)).max(before);
        *next = self.base + first * self.period;
        self.states.start(slot, first - before, cta);
    }

    /// The warp of a slot is gone.
    #[inline]
    pub fn leave(&mut self, slot: u16) {
        self.next[usize::from(slot) % SLOTS] |= GONE;
        if !self.takes_all {
            let scheduler = self.scheduler(slot.into());
            let s = &mut self.slots[usize::from(slot) % SLOTS];
            self.present[scheduler] -= u64::from(std::mem::take(&mut s.is_wanted));
        }
    }

    /// The scheduler that has a slot.
    fn scheduler(&self, slot: usize) -> usize {
        slot % self.turns.len()
    }

    /// The cycle before which all of the samples are known, of those before `now`; `since` tells for each of the warps that are
    /// there from when on nothing was told.
    pub fn known_until(&self, now: u64, since: impl Iterator<Item = u64>) -> u64 {
        match self.wants_events() {
            true => since.fold(now, u64::min),
            // Of every slot that is wanted all moments before its next one.
            false => self.next.iter().copied().fold(now, u64::min),
        }
    }

    /// Whether an interval of a slot's warp up to a cycle matters: a moment lies in it.
    #[inline(always)]
    pub fn is_due(&self, slot: u16, until: u64) -> bool {
        until > self.due(slot)
    }

    /// The cycle from which on they do.
    #[inline(always)]
    pub fn due(&self, slot: u16) -> u64 {
        self.next[usize::from(slot) % SLOTS] & self.due_bits
    }

    /// Whether it has a moment that is wanted.
    #[inline(always)]
    fn has_moment(&self, slot: u16, until: u64) -> bool {
        until > self.next[usize::from(slot) % SLOTS]
    }

    /// Takes the samples of an interval that matters; `warp` tells what else the instruction waits for.
    pub fn sample(
        &mut self,
        slot: u16,
        pc: u32,
        reason: Stall,
        from: u64,
        until: u64,
        warp: Option<(&WarpSlot, &[u16])>,
    ) {
        if !self.has_moment(slot, until) {
            return;
        }
        let missing = warp.map_or([0; 2], |(warp, checks)| missing(warp, checks));
        if self.settings.event.is_some() {
            self.told[usize::from(slot) % SLOTS] = until;
            if from < until {
                let cta = self.slots[usize::from(slot) % SLOTS].cta;
                self.intervals.push(Interval { from, until, slot, pc, reason, cta, missing });
            }
            return;
        }
        // What is missing changes in between.
        let (first, second) = (missing[0].min(missing[1]), missing[0].max(missing[1]));
        for end in [first.min(until), second.min(until), until] {
            let at = self.next[usize::from(slot) % SLOTS];
            if at < end {
                self.take(slot, pc, Why::new(reason, holds(missing, at)), end);
            }
        }
    }

    /// The same for a state in which nothing else is missing.
    #[cold]
    #[inline(never)]
    pub fn sample_alone(&mut self, slot: u16, pc: u32, reason: Stall, from: u64, until: u64) {
        if !self.is_due(slot, until) || self.take_one(slot, pc, reason.into(), until) {
            return;
        }
        match self.wants_events() {
            true => self.sample(slot, pc, reason, from, until, None),
            false => self.take(slot, pc, reason.into(), until),
        }
    }

    /// The next moment of a slot, which lies before a cycle, is in a state; false, and nothing is done, where another does,
    /// too, or that is not all.
    #[inline(always)]
    fn take_one(&mut self, slot: u16, pc: u32, why: Why, until: u64) -> bool {
        let next = &mut self.next[usize::from(slot) % SLOTS];
        let behind = next.wrapping_add(self.period);
        let is_one = until <= behind && behind < self.plain_until && self.states.put_one(slot, pc, why);
        if is_one {
            *next = behind;
        }
        is_one
    }

    /// Takes the samples of a wait that matters.
    #[cold]
    #[inline(never)]
    pub fn sample_wait(
        &mut self,
        slot: u16,
        warp: &WarpSlot,
        checks: &[u16],
        reason: Stall,
        from: u64,
        until: u64,
    ) {
        let at = self.next[usize::from(slot) % SLOTS];
        // Where all that was on its way is there, nothing else is missing.
        if checks.is_empty() || warp.open_until <= at {
            return self.sample_alone(slot, warp.pc, reason, from, until);
        }
        // Mostly the same is missing at all moments.
        let missing = missing(warp, checks);
        let [why, last] = [at, until - 1].map(|at| Why::new(reason, holds(missing, at)));
        if self.wants_events() || until <= at || why != last {
            return self.sample(slot, warp.pc, reason, from, until, Some((warp, checks)));
        }
        if !self.take_one(slot, warp.pc, why, until) {
            self.take(slot, warp.pc, why, until);
        }
    }

    /// Takes those of a wait that was not told of: it was for a result of fixed latency.
    #[cold]
    #[inline(never)]
    pub fn sample_untold(&mut self, slot: u16, pc: u32, until: u64) {
        // Where it began only matters where moments are not known yet.
        let from = if self.wants_events() { self.told[usize::from(slot) % SLOTS].min(until) } else { until };
        self.sample_alone(slot, pc, Stall::Wait, from, until);
    }

    /// Takes those of all that a warp did since the instruction before the one that issues now, if one is due.
    #[cold]
    #[inline(never)]
    pub fn sample_late(
        &mut self,
        slot: u16,
        (warp, pc): (&mut WarpSlot, u32),
        sub: &SubCore,
        timing: &Timing,
        now: u64,
    ) {
        let at = self.next[usize::from(slot) % SLOTS];
        if at > now {
            return self.sample_all(slot, (warp, pc), sub, timing, now);
        }
        // Mostly there is one. Which reason it falls on is anybody's guess, so the host is not asked for one.
        let [throttle, held, _] = sub.why(warp, timing.class, now);
        let (free, chosen) = (warp.since + throttle, warp.since + throttle + held);
        let n =
            [warp.since, free, chosen, now].into_iter().map(|from| usize::from(at >= from)).sum::<usize>();
        let reason = IN_ORDER[timing.class as usize][n];
        if !self.take_one(slot, pc, reason.into(), now + 1) {
            return self.sample_all(slot, (warp, pc), sub, timing, now);
        }
        warp.look_at = self.next[usize::from(slot) % SLOTS];
    }

    /// The same where there are more or none, or somebody wants to know of events.
    #[cold]
    #[inline(never)]
    fn sample_all(
        &mut self,
        slot: u16,
        (warp, pc): (&mut WarpSlot, u32),
        sub: &SubCore,
        timing: &Timing,
        now: u64,
    ) {
        if self.is_due(slot, warp.since) {
            self.sample_untold(slot, pc, warp.since);
        }
        if now > warp.since && self.is_due(slot, now) {
            let waited = (sub.why(warp, timing.class, now), [0; 2]);
            self.sample_waited(slot, pc, timing.class, waited, now);
        }
        if self.is_due(slot, now + 1) {
            self.sample_issue(slot, pc, timing, now);
        }
        warp.look_at = self.due(slot);
    }

    /// Takes the samples of a warp that could issue from some time on and does now, if one is due.
    #[cold]
    #[inline(never)]
    pub fn sample_waited(&mut self, slot: u16, pc: u32, class: Class, waited: Waited, now: u64) {
        let (all, mut from) = reasons(class, waited, now);
        // Mostly there is one, behind some of these.
        let at = self.next[usize::from(slot) % SLOTS];
        let (mut end, mut n) = (from, 0);
        for (_, cycles) in all {
            end += cycles;
            n += usize::from(at >= end);
        }
        if at >= from && at < now && self.take_one(slot, pc, all[n % all.len()].0.into(), now) {
            return;
        }
        for (reason, cycles) in all {
            if cycles > 0 {
                self.sample_alone(slot, pc, reason, from, from + cycles);
            }
            from += cycles;
        }
    }

    /// Takes the sample of the cycle in which a warp issues.
    #[cold]
    #[inline(never)]
    pub fn sample_issue(&mut self, slot: u16, pc: u32, timing: &Timing, now: u64) {
        self.happens(pc, timing.kind, now);
        self.sample_alone(slot, pc, Stall::Selected, now, now + 1);
    }

    /// All moments of a slot up to a cycle, of which there is one, are in one state.
    #[inline(always)]
    fn take(&mut self, slot: u16, pc: u32, why: Why, until: u64) {
        let next = self.next[usize::from(slot) % SLOTS];
        let count = match until <= next + self.period {
            true => 1,
            false => (until.min(self.window.1) - next).div_ceil(self.period),
        };
        self.states.put(slot, pc, why, count);
        let behind = next + count * self.period;
        let is_over = behind >= self.window.1;
        self.next[usize::from(slot) % SLOTS] = if is_over { GONE | behind } else { behind };
    }

    /// Whether somebody wants to know of events.
    #[inline(always)]
    pub fn wants_events(&self) -> bool {
        self.due_bits == 0
    }

    /// Counts events; every so many there is a moment.
    pub fn event(&mut self, event: Event, count: u32, now: u64) {
        if !self.wants_events() {
            return;
        }
        let place = match event {
            Event::CacheMiss => 1,
            Event::Branch | Event::Call => 2,
            Event::Barrier => 3,
        };
        self.count(place, count, now);
        if self.settings.event != Some(event) {
            return;
        }
        let mut left = u64::from(count);
        while left >= self.missing_events {
            left -= self.missing_events;
            self.missing_events = self.settings.period;
            if (self.window.0..self.window.1).contains(&now) {
                self.moments.push(now);
                if self.settings.drain == Drain::LoadStore {
                    self.drain_at = self.drain_at.min(now + 1);
                    self.take_in(now);
                }
            }
        }
        self.missing_events -= left;
    }

    fn count(&mut self, counter: u8, count: u32, cycle: u64) {
        if self.settings.form.counters > counter && count > 0 {
            self.counted.push(Counted { cycle, counter, count });
        }
    }

    /// An instruction issued.
    #[inline(always)]
    pub fn happens(&mut self, pc: u32, kind: Kind, now: u64) {
        if self.wants_events() {
            self.note(pc, kind, now);
        }
    }

    #[inline(never)]
    fn note(&mut self, pc: u32, kind: Kind, now: u64) {
        self.count(0, 1, now);
        match kind {
            Kind::Branch if self.calls.binary_search(&pc).is_ok() => self.event(Event::Call, 1, now),
            Kind::Branch => self.event(Event::Branch, 1, now),
            Kind::Barrier => self.event(Event::Barrier, 1, now),
            _ => {}
        }
    }

    // --- through the load-store units -----------------------------------------------------------------------------

    /// Whether it ever does.
    pub fn drains(&self) -> bool {
        self.settings.drain == Drain::LoadStore
    }

    /// The next cycle at which the cell wants to store something.
    #[inline(always)]
    pub fn drain_at(&self) -> u64 {
        self.drain_at
    }

    /// Records of a moment take their places in the FIFO, as far as there is room.
    fn take_in(&mut self, moment: u64) {
        let of_one = |n: u64| if self.settings.in_turn { n.min(1) } else { n };
        let records: u64 = self.present.iter().map(|&n| of_one(n)).sum();
        let bytes = self.settings.form.bytes() as u64;
        // A line leaves as soon as it is full.
        let room = (self.capacity.max(LINE) + LINE).saturating_sub(self.waiting) / bytes;
        let kept = records.min(room);
        self.waiting += kept * bytes;
        self.kept.insert(moment, kept);
    }

    /// At [`TraceCell::drain_at`]: the address of a line to store, if one is full and the unit has room.
    pub fn drain(&mut self, now: u64, has_room: bool) -> Option<u64> {
        let by_cycles = self.settings.event.is_none();
        let due = by_cycles && now >= self.base && (now - self.base).is_multiple_of(self.settings.period);
        if due && self.kept.last_key_value().is_none_or(|(&last, _)| last < now) {
            if (self.window.0..self.window.1).contains(&now) {
                self.take_in(now);
            } else {
                self.kept.insert(now, 0);
            }
        }
        let next_moment = match by_cycles {
            true => {
                self.base + (now.saturating_sub(self.base) / self.settings.period + 1) * self.settings.period
            }
            false => u64::MAX,
        };
        if self.waiting < LINE || !has_room {
            self.drain_at = if self.waiting >= LINE { now + 1 } else { next_moment };
            return None;
        }
        self.waiting -= LINE;
        self.drain_at = if self.waiting >= LINE { now + 1 } else { next_moment };
        let lines = (self.settings.buffer_bytes / LINE).max(1);
        let address = self.settings.buffer + self.stored % lines * LINE;
        self.stored += 1;
        Some(address)
    }

    // --- records ----------------------------------------------------------------------------------------------------

    /// Sends all records of cycles before `horizon` on their way: no interval before it comes any more.
    pub fn flush(&mut self, horizon: u64) {
        let end = match self.settings.event {
            Some(_) => self.match_moments(horizon),
            None => horizon.saturating_sub(self.base).div_ceil(self.period),
        };
        let is_plain = self.is_plain;
        let is_last = horizon == u64::MAX;
        if is_plain && !is_last && self.settings.event.is_none() && self.states.mark(end) {
            return;
        }
        self.counted.sort_unstable_by_key(|c| c.cycle);
        let mut counted = 0;
        let mut states = std::mem::take(&mut self.states);
        let mut chosen = Vec::new();
        let send_all = |number, row: Row<'_>| {
            let cycle = match self.settings.event {
                Some(_) => self.moments[(number - self.first_moment) as usize],
                None => self.base + number * self.period,
            };
            while let Some(c) = self.counted.get(counted).filter(|c| c.cycle < cycle) {
                let counter = &mut self.counters[usize::from(c.counter)];
                *counter = counter.wrapping_add(c.count);
                counted += 1;
            }
            if self.settings.in_turn {
                self.choose(row.iter(), &mut chosen);
                (1..).zip(&chosen).for_each(|(k, &(slot, cell))| self.send(slot, cell, cycle, k));
            } else {
                (1..).zip(row.iter()).for_each(|(k, (slot, cell))| self.send(slot, cell, cycle, k));
            }
        };
        match is_plain {
            true => states.take_records(end, self.sm, |records| self.send_plain(records)),
            false => states.take(end, send_all),
        }
        self.states = states;
        self.counted.drain(..counted);
        if self.settings.event.is_some() {
            self.moments.drain(..(end - self.first_moment) as usize);
            self.first_moment = end;
        }
        self.kept.retain(|&cycle, _| cycle >= horizon);
    }

    /// One warp of each scheduler: the next one behind that which had its turn last.
    fn choose(&mut self, row: impl Iterator<Item = (u16, Cell)>, chosen: &mut Vec<(u16, Cell)>) {
        // The first of each scheduler, and the first behind the last turn.
        let mut found = vec![[None; 2]; self.turns.len()];
        for (slot, cell) in row {
            let s = self.scheduler(slot.into());
            let is_behind = usize::from(slot) > self.turns[s];
            found[s][usize::from(is_behind)].get_or_insert((slot, cell));
        }
        chosen.clear();
        chosen.extend(found.into_iter().filter_map(|[before, behind]| behind.or(before)));
        chosen.sort_unstable_by_key(|(slot, _)| *slot);
        for (slot, _) in chosen {
            let s = usize::from(*slot) % self.turns.len();
            self.turns[s] = usize::from(*slot);
        }
    }

    /// Records that nothing but their reasons are told of, through a FIFO that never fills.
    fn send_plain(&mut self, records: &[PlainRecord]) {
        let used = self.bytes.len();
        let room = (self.settings.buffer_bytes.saturating_sub(used as u64) / 8) as usize;
        let bytes = records.as_flattened();
        if self.bytes.capacity() - used < bytes.len() {
            // What is there is seldom moved.
            self.bytes.reserve((GROWTH - 1) * used + FIRST_BYTES.max(bytes.len()));
        }
        let sent = records.len().min(room);
        self.bytes.extend_from_slice(&bytes[..8 * sent]);
        self.records += sent as u64;
        self.lost += (records.len() - sent) as u64;
    }

    /// A record on its way to memory: the so many-th of its moment.
    fn send(&mut self, slot: u16, cell: Cell, cycle: u64, number: u64) {
        let is_kept = match self.settings.drain {
            Drain::LoadStore => self.kept.get(&cycle).is_none_or(|&kept| number <= kept),
            Drain::Own | Drain::Stream => self.fifo.put(cycle),
        };
        let form = self.settings.form;
        let full = (self.bytes.len() + form.bytes()) as u64 > self.settings.buffer_bytes;
        if !is_kept || full {
            self.lost += 1;
            return;
        }
        self.records += 1;
        let (warp, cta, counters) = (slot, cell.place, self.counters);
        let pc = cell.pc * INSTRUCTION_BYTES;
        let record = Record { pc, stalls: cell.stalls, sm: self.sm, warp, cta, cycle, counters };
        match form == Form::default() {
            true => self.bytes.extend_from_slice(&record.eight_bytes(Form::default().encoding)),
            false => record.write(form, &mut self.bytes),
        }
    }

    /// Turns what warps did into states at the moments before `horizon`; the number of the first moment behind them.
    fn match_moments(&mut self, horizon: u64) -> u64 {
        self.moments.sort_unstable();
        let now = self.moments.partition_point(|&m| m < horizon);
        for i in &self.intervals {
            let first = self.moments[..now].partition_point(|&m| m < i.from);
            for (number, &m) in
                (self.first_moment..).zip(&self.moments[..now]).skip(first).take_while(|(_, m)| **m < i.until)
            {
                let s = &mut self.slots[usize::from(i.slot) % SLOTS];
                if number < s.number {
                    continue;
                }
                self.states.start(i.slot, number - s.number, (!self.is_plain).then_some(i.cta));
                s.number = number + 1;
                self.states.put(i.slot, i.pc, Why::new(i.reason, holds(i.missing, m)), 1);
            }
        }
        self.intervals.retain(|i| i.until > horizon);
        self.first_moment + now as u64
    }

    /// When the next [`TraceCell::flush`] is due after one at a cycle.
    pub fn next_flush(&self, now: u64) -> u64 {
        let cycles = match self.settings.event {
            None => ROWS as u64 * self.period,
            Some(_) => EVENT_CYCLES,
        };
        now.saturating_add(cycles)
    }

    /// When the first one is.
    pub fn flush_at(&self) -> u64 {
        self.next_flush(self.base)
    }

    /// Whether a cell that was read from a file is one of an SM with so many slots.
    pub fn is_sound(&self, slots: usize) -> bool {
        self.states.is_sound(slots)
    }
}

/// Until when results that a warp's instruction needs are missing: of memory, of other units of variable latency.
#[inline(always)]
fn missing(warp: &WarpSlot, checks: &[u16]) -> [u64; 2] {
    let (mut long, mut short) = (0, 0);
    for &p in checks {
        let ready = warp.places[usize::from(p)];
        let of = |producer: Producer| if ready.producer() == producer as usize { ready.cycle() } else { 0 };
        (long, short) = (of(Producer::Long).max(long), of(Producer::Short).max(short));
    }
    [long, short]
}

/// What is missing at a cycle, in bits as [`Why::new`] takes them.
#[inline(always)]
fn holds(missing: [u64; 2], at: u64) -> u32 {
    u32::from(missing[0] > at) | u32::from(missing[1] > at) << 1
}
