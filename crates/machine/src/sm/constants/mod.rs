//! Constant caches of an SM: when a constant operand can be read, and when a constant load has its result.
//!
//! Operands `c[bank][offset]` have a cache in each sub-core, checked before an instruction issues. Loads by register have one in
//! the SM; lanes that read different places are served place by place, and a load waits for one missing line at a time.

mod spec;
#[cfg(test)]
mod tests;

pub use spec::Spec;

use super::fetch::Fetched;
use super::look_ahead::extent;
use super::tags::Tags;
use crate::counters::Counters;
use crate::ports::{Request, RequestKind, Response};
use crate::server::Line;
use crate::units::{Cycle, LINE, SECTOR, SmId, Token};
use serde::{Deserialize, Serialize};

/// Bytes of a constant bank, as a shift.
const BANK_SHIFT: u32 = 16;
/// Bytes between the banks of two launches that run at once, as a shift.
pub const LAUNCH_SHIFT: u32 = BANK_SHIFT + 8;

/// A place in a bank of the launch of that number, of those that run at once.
pub fn numbered(offset: u32, launch: u32) -> u32 {
    offset & ((1 << BANK_SHIFT) - 1) | launch << BANK_SHIFT
}

/// Places that the lanes of a load can read.
const PLACES: usize = 32;

/// A line on its way, and who waits for it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Flight {
    line: u64,
    /// Sub-cores with instructions that need it as an operand, a bit each.
    operands: u16,
    /// A load needs it.
    load: bool,
}

/// A load at its work: it reads the lines of its places in their order, and waits at each one that is not there.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Load {
    owner: u64,
    /// When all that it has read was there, and the cycles from then to the result.
    ready: Cycle,
    rest: u64,
    /// The line that it reads next, and those behind it, the next one last: mostly none.
    line: u64,
    behind: Vec<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Constants {
    sm: SmId,
    /// Address of bank 0.
    base: u64,
    /// Bytes of a line, as a shift.
    shift: u32,
    operands: Vec<Tags>,
    loads: Tags,
    shared: Tags,
    /// The load unit.
    unit: Line,
    flights: Vec<Flight>,
    waiting: Vec<Load>,
    load_latency: u64,
    replay_latency: u64,
    place_interval: u64,
    shared_latency: u64,
}

impl Constants {
    pub fn new(spec: &Spec, sm: SmId, sub_cores: u32) -> Constants {
        let operands = Tags::new(spec.operand_bytes / spec.line_bytes, spec.operand_ways);
        Constants {
            sm,
            base: 0,
            shift: spec.line_bytes.trailing_zeros(),
            operands: vec![operands; sub_cores as usize],
            loads: Tags::new(spec.load_bytes / spec.line_bytes, spec.load_ways),
            shared: Tags::new(spec.shared_bytes / spec.line_bytes, spec.shared_ways),
            unit: Line::default(),
            flights: Vec::new(),
            waiting: Vec::new(),
            load_latency: spec.load_latency.into(),
            replay_latency: spec.replay_latency.into(),
            place_interval: spec.place_interval.into(),
            shared_latency: spec.shared_latency.into(),
        }
    }

    /// Bank 0 is at `base` from now on, the others follow it. Lines of other banks stay until they are replaced.
    pub fn begin_launch(&mut self, base: u64) {
        self.base = base;
    }

    /// Forgets all lines: other values may be at their addresses now.
    pub fn invalidate(&mut self) {
        self.operands.iter_mut().for_each(Tags::clear);
        self.loads.clear();
        self.shared.clear();
    }

    /// Where what the sub-cores have lies in the host's memory.
    pub fn extent(&self) -> (usize, usize) {
        extent(&self.operands)
    }

    /// Constants will be looked up soon, most likely the same as before.
    pub fn expect(&self) {
        self.operands.iter().for_each(Tags::expect);
        self.loads.expect();
    }

    /// Lines are on their way.
    #[inline(always)]
    pub fn is_waiting(&self) -> bool {
        !self.flights.is_empty()
    }

    /// Number of the line with a place of a bank.
    #[inline(always)]
    fn line(&self, bank: u8, offset: u32) -> u64 {
        let (launch, offset) = (u64::from(offset >> BANK_SHIFT), u64::from(offset) & ((1 << BANK_SHIFT) - 1));
        (self.base + (launch << LAUNCH_SHIFT) + (u64::from(bank) << BANK_SHIFT) + offset) >> self.shift
    }

    /// When a constant operand is there, if the sub-core's own cache has it.
    #[inline]
    pub fn own(&mut self, sub_core: u32, bank: u8, offset: u32, counters: &mut Counters) -> Option<Cycle> {
        let line = self.line(bank, offset);
        let ready = self.operands[sub_core as usize].find(line)?;
        counters.constant_requests += 1;
        Some(ready)
    }

    /// When an instruction with a constant operand that the sub-core's own cache does not have can issue. After
    /// `Pending` the core asks again when an answer came.
    #[inline(never)]
    pub fn miss(
        &mut self,
        now: Cycle,
        sub_core: u32,
        bank: u8,
        offset: u32,
        out: &mut Vec<Request>,
        counters: &mut Counters,
    ) -> Fetched {
        let line = self.line(bank, offset);
        if self.shared.find(line).is_some() {
            counters.constant_requests += 1;
            counters.constant_misses += 1;
            let at = now + self.shared_latency;
            self.operands[sub_core as usize].insert(line, at);
            return Fetched::At(at);
        }
        // Asked again by another warp, or by this one after an answer for someone else: it missed once.
        let bit = 1 << sub_core;
        if self.flights.iter().all(|f| f.line != line || f.operands & bit == 0) {
            counters.constant_misses += 1;
        }
        self.ask(now, line, bit, false, out);
        Fetched::Pending
    }

    /// When a load by register has its result. `offsets` are the places that its lanes read, each once. After
    /// `Pending`, `respond` names the owner.
    #[inline(always)]
    pub fn load(
        &mut self,
        now: Cycle,
        bank: u8,
        offsets: &[u32],
        owner: u64,
        out: &mut Vec<Request>,
        counters: &mut Counters,
    ) -> Fetched {
        let places = offsets.len().clamp(1, PLACES) as u64;
        counters.constant_requests += places;
        let start = self.unit.serve(now, places * self.place_interval);
        let rest = self.load_latency + (places - 1) * self.replay_latency;
        // Mostly all lanes read one place, which is there.
        if let &[offset] = offsets
            && let Some(at) = self.loads.find(self.line(bank, offset))
        {
            return Fetched::At(start.later(at) + rest);
        }
        self.load_any(now, (start, rest), bank, offsets, owner, out, counters)
    }

    /// The same where places differ, or a line is missing.
    #[inline(never)]
    fn load_any(
        &mut self,
        now: Cycle,
        (start, rest): (Cycle, u64),
        bank: u8,
        offsets: &[u32],
        owner: u64,
        out: &mut Vec<Request>,
        counters: &mut Counters,
    ) -> Fetched {
        let mut lines = offsets.iter().take(PLACES).map(|&offset| self.line(bank, offset));
        let Some(line) = lines.next() else { return Fetched::At(start + rest) };
        let (mut behind, mut last) = (Vec::new(), line);
        for next in lines {
            if next != last {
                behind.push(next);
                last = next;
            }
        }
        behind.reverse();
        let mut load = Load { owner, ready: start, rest, line, behind };
        if self.read(&mut load, now, out, counters) {
            return Fetched::At(load.ready + load.rest);
        }
        self.waiting.push(load);
        Fetched::Pending
    }

    /// Reads lines as far as they are there; whether that is all. Else the next one is asked for.
    fn read(&mut self, load: &mut Load, now: Cycle, out: &mut Vec<Request>, counters: &mut Counters) -> bool {
        loop {
            let line = load.line;
            if let Some(at) = self.loads.find(line) {
                load.ready = load.ready.later(at);
            } else {
                counters.constant_misses += 1;
                if self.shared.find(line).is_none() {
                    self.ask(now, line, 0, true, out);
                    return false;
                }
                load.rest += self.shared_latency;
                self.loads.insert(line, now);
            }
            match load.behind.pop() {
                Some(next) => load.line = next,
                None => return true,
            }
        }
    }

    /// Asks the GPC's cache for a line unless it is on its way.
    fn ask(&mut self, now: Cycle, line: u64, operands: u16, load: bool, out: &mut Vec<Request>) {
        if let Some(flight) = self.flights.iter_mut().find(|f| f.line == line) {
            flight.operands |= operands;
            flight.load |= load;
            return;
        }
        self.flights.push(Flight { line, operands, load });
        let address = line << self.shift;
        let sectors = ((1u64 << self.shift) / SECTOR).clamp(1, LINE / SECTOR);
        out.push(Request {
            at: now,
            sm: self.sm,
            token: Token(line as u32),
            line: address & !(LINE - 1),
            sectors: (((1u32 << sectors) - 1) << (address % LINE / SECTOR)) as u8,
            kind: RequestKind::Constant,
            whole: false,
            depth: 0,
            operations: 0,
        });
    }

    /// A line came: instructions that wait for operands may ask again, loads that are complete are in `done` with the
    /// cycle of their result, others ask for their next line.
    pub fn respond(
        &mut self,
        r: &Response,
        out: &mut Vec<Request>,
        done: &mut Vec<(u64, Cycle)>,
        counters: &mut Counters,
    ) {
        let first = r.line + SECTOR * u64::from(r.sectors.trailing_zeros().min(3));
        let line = first >> self.shift;
        let Some(n) = self.flights.iter().position(|f| f.line == line) else { return };
        let flight = self.flights.swap_remove(n);
        self.shared.insert(line, r.at);
        for (n, cache) in self.operands.iter_mut().enumerate() {
            if flight.operands >> n & 1 != 0 {
                cache.insert(line, r.at);
            }
        }
        if !flight.load {
            return;
        }
        self.loads.insert(line, r.at);
        // Those that go on waiting keep their order.
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain_mut(|load| {
            if load.line != line {
                return true;
            }
            load.ready = load.ready.later(r.at);
            let next = load.behind.pop();
            load.line = next.unwrap_or(line);
            let complete = next.is_none() || self.read(load, r.at, out, counters);
            if complete {
                done.push((load.owner, load.ready + load.rest));
            }
            !complete
        });
        self.waiting = waiting;
    }
}
