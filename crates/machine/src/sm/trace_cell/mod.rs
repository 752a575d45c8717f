//! Trace cell: looks at the schedulers' tables of warps every so often and sends records of them to memory.
//!
//! Warps' cycles are charged in intervals, often before or long after they pass. So the cell does not look at a moment: it
//! is told of every interval and picks the moments that lie in it. Records go through the FIFO in the order of time once
//! all that could come before them is known.

mod fifo;
pub mod registers;
mod spec;
#[cfg(test)]
mod tests;

pub use registers::{Drain, Event, RegisterError, Registers, Settings};
pub use spec::Spec;

use super::code::Kind;
use super::waits::FOR_READERS;
use super::warp::WarpSlot;
use crate::stall::Stall;
use fifo::Fifo;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use trace::record::{INSTRUCTION_BYTES, Record};

/// Bytes that the load-store units store at once.
const LINE: u64 = 128;

/// A warp at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Sample {
    cycle: u64,
    slot: u16,
    cta: u16,
    pc: u32,
    stalls: u32,
    counters: [u32; 4],
}

/// A warp in a state, for moments that are not known yet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Interval {
    from: u64,
    until: u64,
    sample: Sample,
    /// Until when results of memory, and of other units of variable latency, are missing.
    missing: [u64; 2],
}

/// A warp slot as the cell sees it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Slot {
    cta: u16,
    is_wanted: bool,
}

/// The trace cell of an SM.
#[derive(Serialize, Deserialize)]
pub struct TraceCell {
    sm: u16,
    settings: Settings,
    /// Instructions that call functions, ascending.
    calls: Vec<u32>,
    /// Cycles between samples of one slot.
    stride: u64,
    /// The cycle that sampling counts from, and the cycles between which it is on.
    base: u64,
    window: (u64, u64),
    /// The next moment of each slot; none where it is not wanted.
    next: Vec<u64>,
    slots: Vec<Slot>,
    /// Samples of each slot in the order of time, those that went on taken off, and their number.
    samples: Vec<VecDeque<Sample>>,
    waiting_samples: usize,
    /// By events: how many are missing until the next moment, moments, and what warps did.
    missing_events: u64,
    moments: Vec<u64>,
    moments_seen: u64,
    intervals: Vec<Interval>,
    /// Instructions, cache misses, branches and barriers so far.
    counters: [u32; 4],
    fifo: Fifo,
    /// Through the load-store units: the next moment, bytes that wait, the place of the next line, and how many records
    /// of a moment had room.
    drain_at: u64,
    waiting: u64,
    stored: u64,
    kept: BTreeMap<u64, u64>,
    present: u64,
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
        slots: usize,
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
        let turns = if settings.in_turn { slots as u64 } else { 1 };
        let by_cycles = settings.event.is_none();
        let base = start + settings.phase;
        Some(TraceCell {
            sm,
            calls: calls.to_vec(),
            stride: settings.period * turns,
            base,
            window: (zero.saturating_add(settings.window.0), zero.saturating_add(settings.window.1)),
            next: vec![u64::MAX; slots],
            slots: vec![Slot::default(); slots],
            samples: vec![VecDeque::new(); slots],
            waiting_samples: 0,
            missing_events: settings.period + settings.phase,
            moments: Vec::new(),
            moments_seen: 0,
            intervals: Vec::new(),
            counters: [0; 4],
            fifo: Fifo::new(spec.fifo, spec.records_per_cycle, settings.form.bytes(), rate),
            drain_at: if by_cycles && settings.drain == Drain::LoadStore { base } else { u64::MAX },
            waiting: 0,
            stored: 0,
            kept: BTreeMap::new(),
            present: 0,
            capacity: u64::from(spec.fifo) * settings.form.bytes() as u64,
            bytes: Vec::new(),
            records: 0,
            lost: 0,
            settings: settings.clone(),
        })
    }

    /// A warp takes a slot; its cycles are told of from `at` on.
    pub fn start(&mut self, slot: u16, cta: u16, linear: u64, task: u64, at: u64) {
        let s = &self.settings;
        let is_wanted = (s.ctas.0..=s.ctas.1).contains(&linear) && (s.task == 0 || s.task == task);
        self.slots[slot as usize] = Slot { cta, is_wanted };
        self.present += u64::from(is_wanted);
        self.next[slot as usize] = match (is_wanted, s.event) {
            (false, _) => u64::MAX,
            // All intervals are wanted: a moment may turn out to lie in any.
            (true, Some(_)) => 0,
            (true, None) => self.first_moment(slot, at.max(self.window.0)),
        };
    }

    /// The warp of a slot is gone.
    pub fn leave(&mut self, slot: u16) {
        self.present -= u64::from(std::mem::take(&mut self.slots[slot as usize].is_wanted));
        self.next[slot as usize] = u64::MAX;
    }

    /// The first moment of a slot that is not before a cycle.
    fn first_moment(&self, slot: u16, at: u64) -> u64 {
        let first =
            self.base + if self.settings.in_turn { u64::from(slot) * self.settings.period } else { 0 };
        first + at.saturating_sub(first).div_ceil(self.stride) * self.stride
    }

    /// Whether an interval of a warp up to a cycle matters.
    #[inline(always)]
    pub fn is_due(&self, slot: u16, until: u64) -> bool {
        until > self.next[slot as usize]
    }

    /// Takes the samples of an interval; `warp` tells what else the instruction waits for.
    #[cold]
    pub fn sample(
        &mut self,
        slot: u16,
        pc: u32,
        stalls: u32,
        from: u64,
        until: u64,
        warp: Option<(&WarpSlot, &[u16])>,
    ) {
        let missing = match warp {
            Some((warp, checks)) if !checks.is_empty() => missing(warp, checks),
            _ => [0; 2],
        };
        let sample = Sample {
            cycle: from,
            slot,
            cta: self.slots[slot as usize].cta,
            pc: pc * INSTRUCTION_BYTES,
            stalls,
            counters: self.counters,
        };
        if self.settings.event.is_some() {
            self.intervals.push(Interval { from, until, sample, missing });
            return;
        }
        let mut at = self.next[slot as usize];
        while at < until.min(self.window.1) {
            self.samples[slot as usize].push_back(Sample {
                cycle: at,
                stalls: stalls | holds(missing, at),
                ..sample
            });
            self.waiting_samples += 1;
            at += self.stride;
        }
        self.next[slot as usize] = if at >= self.window.1 { u64::MAX } else { at };
    }

    /// Counts events; every so many there is a moment.
    pub fn event(&mut self, event: Event, count: u32, now: u64) {
        let place = match event {
            Event::CacheMiss => 1,
            Event::Branch | Event::Call => 2,
            Event::Barrier => 3,
        };
        self.counters[place] = self.counters[place].wrapping_add(count);
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

    /// An instruction issued.
    #[inline(always)]
    pub fn issued(&mut self, pc: u32, kind: Kind, now: u64) {
        self.counters[0] = self.counters[0].wrapping_add(1);
        match kind {
            Kind::Branch if self.calls.binary_search(&pc).is_ok() => self.event(Event::Call, 1, now),
            Kind::Branch => self.event(Event::Branch, 1, now),
            Kind::Barrier => self.event(Event::Barrier, 1, now),
            _ => {}
        }
    }

    // --- through the load-store units -----------------------------------------------------------------------------

    /// The next cycle at which the cell wants to store something.
    #[inline(always)]
    pub fn drain_at(&self) -> u64 {
        self.drain_at
    }

    /// Records of a moment take their places in the FIFO, as far as there is room.
    fn take_in(&mut self, moment: u64) {
        let records = if self.settings.in_turn { self.present.min(1) } else { self.present };
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
        if self.settings.event.is_some() {
            self.match_moments(horizon);
        }
        // All slots that have a sample of the earliest moment, in the order of slots; then the next moment.
        let heads =
            |samples: &[VecDeque<Sample>]| samples.iter().filter_map(|q| Some(q.front()?.cycle)).min();
        let mut next = heads(&self.samples);
        while let Some(moment) = next.filter(|&m| m < horizon) {
            next = None;
            let mut taken = 0;
            for slot in 0..self.samples.len() {
                let queue = &mut self.samples[slot];
                let Some(&s) = queue.front() else { continue };
                if s.cycle != moment {
                    next = Some(next.map_or(s.cycle, |n| n.min(s.cycle)));
                    continue;
                }
                queue.pop_front();
                next = match queue.front() {
                    Some(after) => Some(next.map_or(after.cycle, |n| n.min(after.cycle))),
                    None => next,
                };
                self.waiting_samples -= 1;
                taken += 1;
                self.send(s, taken);
            }
        }
        self.kept.retain(|&cycle, _| cycle >= horizon);
    }

    /// A record on its way to memory: the so many-th of its moment.
    fn send(&mut self, s: Sample, number: u64) {
        let is_kept = match self.settings.drain {
            Drain::LoadStore => self.kept.get(&s.cycle).is_none_or(|&kept| number <= kept),
            Drain::Own | Drain::Stream => self.fifo.put(s.cycle),
        };
        let full = (self.bytes.len() + self.settings.form.bytes()) as u64 > self.settings.buffer_bytes;
        if !is_kept || full {
            self.lost += 1;
            return;
        }
        self.records += 1;
        let record = Record {
            pc: s.pc,
            stalls: s.stalls,
            sm: self.sm,
            warp: s.slot,
            cta: s.cta,
            cycle: s.cycle,
            counters: s.counters,
        };
        record.write(self.settings.form, &mut self.bytes);
    }

    /// Turns what warps did into samples at the moments before `horizon`.
    fn match_moments(&mut self, horizon: u64) {
        self.moments.sort_unstable();
        let now = self.moments.partition_point(|&m| m < horizon);
        let turns = self.slots.len() as u64;
        for i in &self.intervals {
            let first = self.moments[..now].partition_point(|&m| m < i.from);
            for (k, &m) in
                self.moments[..now].iter().enumerate().skip(first).take_while(|(_, m)| **m < i.until)
            {
                if self.settings.in_turn && (self.moments_seen + k as u64) % turns != u64::from(i.sample.slot)
                {
                    continue;
                }
                let stalls = i.sample.stalls | holds(i.missing, m);
                self.samples[i.sample.slot as usize].push_back(Sample { cycle: m, stalls, ..i.sample });
                self.waiting_samples += 1;
            }
        }
        self.moments_seen += now as u64;
        self.moments.drain(..now);
        self.intervals.retain(|i| i.until > horizon);
    }

    /// Whether so much has come together that [`TraceCell::flush`] is due.
    pub fn is_full(&self) -> bool {
        self.waiting_samples + self.intervals.len() > 1 << 14
    }
}

/// Until when results that a warp's instruction needs are missing: of memory, of other units of variable latency.
fn missing(warp: &WarpSlot, checks: &[u16]) -> [u64; 2] {
    let mut until = [0; 2];
    for &p in checks {
        let place = &warp.places[(p & !FOR_READERS) as usize];
        let ready = if p & FOR_READERS == 0 { place.ready } else { place.read };
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
