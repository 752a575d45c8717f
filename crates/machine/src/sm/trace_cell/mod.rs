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

use super::code::{CLASSES, Class, Kind, Timing};
use super::look_ahead::extent;
use super::sub_core::SubCore;
use super::warp::WarpSlot;
use super::watch::{Waited, reasons};
use crate::stall::Stall;
use fifo::Fifo;
use serde::{Deserialize, Serialize};
use states::{Cell, PlainRecord, ROWS, Row, SLOTS, States};
use std::collections::BTreeMap;
use trace::record::{Form, INSTRUCTION_BYTES, Record};

/// Bytes that the load-store units store at once.
const LINE: u64 = 128;
/// Cycles whose intervals and events are kept before they are worked on, where moments are made by events.
const EVENT_CYCLES: u64 = 1 << 10;

/// Bytes that there is room for at first, and how much more there is each time that it is not enough.
const FIRST_BYTES: usize = 1 << 14;
const GROWTH: usize = 4;

/// A warp in a state, for moments that are not known yet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Interval {
    from: u64,
    until: u64,
    slot: u16,
    cell: Cell,
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
    /// Its next moment, none where the warp is not wanted, and that one's number.
    next: u64,
    number: u64,
    /// As in [`Cell`].
    place: u16,
    is_wanted: bool,
}

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

fn no_records() -> Box<[PlainRecord; SLOTS]> {
    Box::new([[0; 8]; SLOTS])
}

/// The trace cell of an SM.
#[derive(Serialize, Deserialize)]
pub struct TraceCell {
    sm: u16,
    settings: Settings,
    /// Instructions that call functions, ascending.
    calls: Vec<u32>,
    /// Cycles between samples.
    period: u64,
    /// The cycle that sampling counts from, and the cycles between which it is on.
    base: u64,
    window: (u64, u64),
    /// Intervals of each slot up to later than this matter: up to its next moment, all where events do.
    #[serde(with = "simt::arrays")]
    due: [u64; SLOTS],
    #[serde(with = "simt::arrays")]
    slots: [Slot; SLOTS],
    /// By events: up to when each slot's intervals were told.
    #[serde(with = "simt::arrays")]
    told: [u64; SLOTS],
    states: States,
    /// Room for the records of a moment.
    #[serde(skip, default = "no_records")]
    sent: Box<[PlainRecord; SLOTS]>,
    /// One warp in turn: the slot of each scheduler that had the last one.
    turns: Vec<usize>,
    /// By events: how many are missing until the next moment, moments, the number of the first of them, and what warps
    /// did.
    missing_events: u64,
    moments: Vec<u64>,
    first_moment: u64,
    intervals: Vec<Interval>,
    /// Somebody wants to know of events.
    wants_events: bool,
    /// What records count and the last of them does not know of; instructions, cache misses, branches and barriers up to
    /// there.
    counted: Vec<Counted>,
    counters: [u32; 4],
    fifo: Fifo,
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
        Some(TraceCell {
            sm,
            calls: calls.to_vec(),
            period: settings.period,
            base,
            window: (zero.saturating_add(settings.window.0), zero.saturating_add(settings.window.1)),
            due: [if wants_events { 0 } else { u64::MAX }; SLOTS],
            slots: [Slot { next: u64::MAX, number: 0, place: 0, is_wanted: false }; SLOTS],
            told: [start; SLOTS],
            states: States::default(),
            sent: no_records(),
            turns: (0..schedulers.max(1)).collect(),
            missing_events: settings.period + settings.phase,
            moments: Vec::new(),
            first_moment: 0,
            intervals: Vec::new(),
            wants_events,
            counted: Vec::new(),
            counters: [0; 4],
            fifo: Fifo::new(spec.fifo, spec.records_per_cycle, settings.form.bytes(), rate),
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

    /// Where in the host's memory that lies which is looked at most.
    pub fn extents(&self) -> [(usize, usize); 3] {
        [extent(&self.due), extent(&self.slots), self.states.extent()]
    }

    /// A warp takes a slot; its cycles are told of from `at` on.
    pub fn start(&mut self, slot: u16, cta: u16, linear: u64, task: u64, at: u64) {
        let s = &self.settings;
        let is_wanted = (s.ctas.0..=s.ctas.1).contains(&linear) && (s.task == 0 || s.task == task);
        let scheduler = self.scheduler(slot.into());
        self.present[scheduler] += u64::from(is_wanted);
        let (next, number) = match (is_wanted, s.event) {
            (false, _) => (u64::MAX, self.slots[usize::from(slot) % SLOTS].number),
            // All intervals are wanted: a moment may turn out to lie in any.
            (true, Some(_)) => (0, self.slots[usize::from(slot) % SLOTS].number),
            (true, None) => {
                let (_, number) = self.moment_after(at.max(self.window.0));
                // The stores of the warp before may still be leaving: until then the slot is its.
                let number = number.max(self.slots[usize::from(slot) % SLOTS].number);
                (self.base + number * self.period, number)
            }
        };
        let place = if self.is_plain() { self.sm } else { cta };
        self.slots[usize::from(slot) % SLOTS] = Slot { next, number, place, is_wanted };
        self.told[usize::from(slot) % SLOTS] = at;
        self.states.start(slot);
        self.set_due(slot);
    }

    /// The next moment of a slot has changed.
    #[inline(always)]
    fn set_due(&mut self, slot: u16) {
        let next = self.slots[usize::from(slot) % SLOTS].next;
        self.due[usize::from(slot) % SLOTS] = if self.wants_events { 0 } else { next };
    }

    /// The warp of a slot is gone.
    pub fn leave(&mut self, slot: u16) {
        let scheduler = self.scheduler(slot.into());
        let s = &mut self.slots[usize::from(slot) % SLOTS];
        s.next = u64::MAX;
        self.present[scheduler] -= u64::from(std::mem::take(&mut s.is_wanted));
        self.set_due(slot);
    }

    /// The scheduler that has a slot.
    fn scheduler(&self, slot: usize) -> usize {
        slot % self.turns.len()
    }

    /// The first moment that is not before a cycle, and its number.
    fn moment_after(&self, at: u64) -> (u64, u64) {
        let number = at.saturating_sub(self.base).div_ceil(self.period);
        (self.base + number * self.period, number)
    }

    /// The cycle before which all of the samples are known, of those before `now`; `since` tells for each of the warps that are
    /// there from when on nothing was told.
    pub fn known_until(&self, now: u64, since: impl Iterator<Item = u64>) -> u64 {
        match self.wants_events {
            true => since.fold(now, u64::min),
            // Of every slot that is wanted all moments before its next one.
            false => self.due.iter().copied().fold(now, u64::min),
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
        self.due[usize::from(slot) % SLOTS]
    }

    /// Whether it has a moment that is wanted.
    #[inline(always)]
    fn has_moment(&self, slot: u16, until: u64) -> bool {
        until > self.slots[usize::from(slot) % SLOTS].next
    }

    /// Takes the samples of an interval that matters; `warp` tells what else the instruction waits for.
    pub fn sample(
        &mut self,
        slot: u16,
        pc: u32,
        stalls: u32,
        from: u64,
        until: u64,
        warp: Option<(&WarpSlot, &[u16])>,
    ) {
        if !self.has_moment(slot, until) {
            return;
        }
        let place = self.slots[usize::from(slot) % SLOTS].place;
        let cell = |stalls: u32| Cell { pc, stalls, place };
        let missing = warp.map_or([0; 2], |(warp, checks)| missing(warp, checks));
        if self.settings.event.is_some() {
            self.told[usize::from(slot) % SLOTS] = until;
            if from < until {
                self.intervals.push(Interval { from, until, slot, cell: cell(stalls), missing });
            }
            return;
        }
        // What is missing changes in between.
        let (first, second) = (missing[0].min(missing[1]), missing[0].max(missing[1]));
        if self.slots[usize::from(slot) % SLOTS].next < second {
            for end in [first.min(until), second.min(until)] {
                let at = self.slots[usize::from(slot) % SLOTS].next;
                if at < end {
                    self.take(slot, cell(stalls | holds(missing, at)), end);
                }
            }
        }
        if self.has_moment(slot, until) {
            self.take(slot, cell(stalls), until);
        }
    }

    /// The same for a state in which nothing else is missing.
    #[cold]
    #[inline(never)]
    pub fn sample_alone(&mut self, slot: u16, pc: u32, reason: Stall, from: u64, until: u64) {
        if !self.is_due(slot, until) {
            return;
        }
        let s = &self.slots[usize::from(slot) % SLOTS];
        let next = s.next.saturating_add(self.period);
        if !self.wants_events && until <= next && next < self.window.1 {
            // Mostly there is one.
            return self.take_one(slot, pc, reason, next);
        }
        self.sample_several(slot, pc, reason, from, until);
    }

    /// The same where it may be more than one.
    #[cold]
    #[inline(never)]
    fn sample_several(&mut self, slot: u16, pc: u32, reason: Stall, from: u64, until: u64) {
        let stalls = 1 << reason as u32;
        if self.wants_events {
            return self.sample(slot, pc, stalls, from, until, None);
        }
        let place = self.slots[usize::from(slot) % SLOTS].place;
        self.take(slot, Cell { pc, stalls, place }, until);
    }

    /// The next moment of a slot is in a state for this reason, and the one behind it comes at `next`.
    #[inline(always)]
    fn take_one(&mut self, slot: u16, pc: u32, reason: Stall, next: u64) {
        let s = &mut self.slots[usize::from(slot) % SLOTS];
        let (number, place) = (s.number, s.place);
        (s.number, s.next) = (number + 1, next);
        self.due[usize::from(slot) % SLOTS] = next;
        self.states.put_one(slot, number, pc, reason as u32, place);
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
        // Where all that was on its way is there, nothing else is missing.
        match checks.is_empty() || warp.open_until <= self.slots[usize::from(slot) % SLOTS].next {
            true => self.sample_alone(slot, warp.pc, reason, from, until),
            false => self.sample(slot, warp.pc, 1 << reason as u32, from, until, Some((warp, checks))),
        }
    }

    /// Takes those of a wait that was not told of: it was for a result of fixed latency.
    #[cold]
    #[inline(never)]
    pub fn sample_untold(&mut self, slot: u16, pc: u32, until: u64) {
        let from = self.told[usize::from(slot) % SLOTS].min(until);
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
        let s = &self.slots[usize::from(slot) % SLOTS];
        let (at, next) = (s.next, s.next.saturating_add(self.period));
        if !self.is_due(slot, now + 1) {
            warp.look_at = self.due(slot);
            return;
        }
        if self.wants_events || now >= next || next >= self.window.1 {
            return self.sample_all(slot, (warp, pc), sub, timing, now);
        }
        // Mostly there is one. Which reason it falls on is anybody's guess, so the host is not asked for one.
        let [throttle, held, _] = sub.why(warp, timing.class, now);
        let (free, chosen) = (warp.since + throttle, warp.since + throttle + held);
        let n =
            [warp.since, free, chosen, now].into_iter().map(|from| usize::from(at >= from)).sum::<usize>();
        warp.look_at = next;
        self.take_one(slot, pc, IN_ORDER[timing.class as usize][n], next);
    }

    /// The same where there are more, or somebody wants to know of events.
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
    fn take(&mut self, slot: u16, cell: Cell, until: u64) {
        let s = &mut self.slots[usize::from(slot) % SLOTS];
        let until = until.min(self.window.1);
        let count = match until <= s.next + self.period {
            true => 1,
            false => (until - s.next).div_ceil(self.period),
        };
        self.states.put(slot, s.number, count, cell);
        s.number += count;
        s.next += count * self.period;
        if s.next >= self.window.1 {
            s.next = u64::MAX;
        }
        self.set_due(slot);
    }

    /// Whether somebody wants to know of events.
    #[inline(always)]
    pub fn wants_events(&self) -> bool {
        self.wants_events
    }

    /// Counts events; every so many there is a moment.
    pub fn event(&mut self, event: Event, count: u32, now: u64) {
        if !self.wants_events {
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
        if self.wants_events {
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
        let is_plain = self.is_plain();
        let is_last = horizon == u64::MAX;
        if is_plain && !is_last && self.settings.event.is_none() && self.states.mark(end) {
            return;
        }
        self.counted.sort_unstable_by_key(|c| c.cycle);
        let mut counted = 0;
        let mut states = std::mem::take(&mut self.states);
        let mut chosen = Vec::new();
        states.take(end, |number, row| {
            if is_plain {
                return self.send_plain(&row);
            }
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
        });
        self.states = states;
        self.counted.drain(..counted);
        if self.settings.event.is_some() {
            self.moments.drain(..(end - self.first_moment) as usize);
            self.first_moment = end;
        }
        self.kept.retain(|&cycle, _| cycle >= horizon);
    }

    /// Whether records tell nothing but an instruction, its reasons and the SM, and none is lost on the way.
    fn is_plain(&self) -> bool {
        !self.settings.in_turn
            && self.settings.drain != Drain::LoadStore
            && self.settings.form == Form::default()
            && self.fifo.is_fast()
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

    /// Records of a moment that nothing but their reasons are told of, through a FIFO that never fills.
    fn send_plain(&mut self, row: &Row<'_>) {
        let used = self.bytes.len();
        let room = (self.settings.buffer_bytes.saturating_sub(used as u64) / 8) as usize;
        if self.bytes.capacity() - used < 8 * SLOTS {
            // What is there is seldom moved.
            self.bytes.reserve((GROWTH - 1) * used + FIRST_BYTES);
        }
        let records = row.records(&mut self.sent);
        let sent = records.len().min(room);
        self.bytes.extend_from_slice(records[..sent].as_flattened());
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
                s.number = number + 1;
                let cell = Cell { stalls: i.cell.stalls | holds(i.missing, m), ..i.cell };
                self.states.put(i.slot, number, 1, cell);
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
fn missing(warp: &WarpSlot, checks: &[u16]) -> [u64; 2] {
    let mut until = [0; 2];
    for &p in checks {
        let ready = warp.places[usize::from(p)];
        if let Some(until) = ready.producer().checked_sub(1).and_then(|k| until.get_mut(k)) {
            *until = (*until).max(ready.cycle());
        }
    }
    until
}

/// The bits of what is missing at a cycle.
fn holds(missing: [u64; 2], at: u64) -> u32 {
    let bit = |is: bool, s: Stall| u32::from(is) << s as u32;
    bit(missing[0] > at, Stall::LongScoreboard) | bit(missing[1] > at, Stall::ShortScoreboard)
}
