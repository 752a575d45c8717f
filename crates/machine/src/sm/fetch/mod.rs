//! Instruction supply of an SM: when the instruction at a place can issue.
//!
//! The core asks when a warp enters another line of code. A line that a sub-core's own cache has costs nothing; one that
//! the SM's cache has costs a few cycles after a jump and nothing in sequence; all others are asked of the GPC's cache,
//! with those that follow. A warp that waits for its line holds up nobody else.

mod spec;
#[cfg(test)]
mod tests;

pub use spec::Spec;

use super::look_ahead::extent;
use super::tags::{Near, Tags};
use crate::counters::Counters;
use crate::ports::{Request, RequestKind, Response};
use crate::server::Line;
use crate::units::{Cycle, LINE, SmId, Token};
use serde::{Deserialize, Serialize};

/// All sectors of a line.
const WHOLE: u8 = 0xf;

/// When something asked for is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fetched {
    At(Cycle),
    /// It is on its way: `respond` will tell.
    Pending,
}

/// What a sub-core has of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Front {
    l0: Near,
    /// The line that the stream from the SM's cache has next, and when.
    next: u64,
    ready: Cycle,
    /// Lines before this one were asked for by the prefetcher.
    asked: u64,
}

/// A line on its way.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Flight {
    line: u64,
    /// Sub-cores with warps that wait for it, a bit each.
    waiting: u16,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fetch {
    sm: SmId,
    fronts: Vec<Front>,
    l1: Tags,
    /// From the SM's cache to the sub-cores.
    port: Line,
    /// From outside into the SM's cache.
    fill: Line,
    flights: Vec<Flight>,
    l1_latency: u64,
    l1_interval: u64,
    fill_interval: u64,
    stream_lines: u64,
}

impl Fetch {
    pub fn new(spec: &Spec, sm: SmId, sub_cores: u32) -> Fetch {
        let front = Front {
            l0: Near::new(spec.l0_bytes / LINE as u32, spec.l0_ways),
            next: u64::MAX,
            ready: Cycle(0),
            asked: 0,
        };
        Fetch {
            sm,
            fronts: vec![front; sub_cores as usize],
            l1: Tags::new(spec.l1_bytes / LINE as u32, spec.l1_ways),
            port: Line::default(),
            fill: Line::default(),
            flights: Vec::new(),
            l1_latency: spec.l1_latency.into(),
            l1_interval: spec.l1_interval.into(),
            fill_interval: spec.fill_interval.into(),
            stream_lines: spec.stream_lines.into(),
        }
    }

    /// Other code runs from now on. Lines of what ran before stay until they are replaced.
    pub fn begin_launch(&mut self) {
        for front in &mut self.fronts {
            front.next = u64::MAX;
            front.asked = 0;
        }
    }

    /// Forgets all lines: other code may be at their addresses now.
    pub fn invalidate(&mut self) {
        self.l1.clear();
        self.fronts.iter_mut().for_each(|f| f.l0.clear());
    }

    /// Forgets a line, everywhere or only where one sub-core has it.
    pub fn forget(&mut self, line: u64, sub_core: Option<usize>) {
        for (n, front) in self.fronts.iter_mut().enumerate() {
            if sub_core.is_none_or(|own| own == n) {
                front.l0.remove(line);
            }
        }
        if sub_core.is_none() {
            self.l1.remove(line);
        }
    }

    /// Forgets all lines that a sub-core has of its own.
    pub fn invalidate_front(&mut self, sub_core: usize) {
        if let Some(front) = self.fronts.get_mut(sub_core) {
            front.l0.clear();
        }
    }

    /// Where what the sub-cores have lies in the host's memory.
    pub fn extent(&self) -> (usize, usize) {
        extent(&self.fronts)
    }

    /// Lines are on their way.
    #[inline(always)]
    pub fn is_waiting(&self) -> bool {
        !self.flights.is_empty()
    }

    /// When a line of code, by its number in memory, is there, if the sub-core's own cache has it. Asked for when a warp
    /// enters it.
    #[inline]
    pub fn own(&mut self, sub_core: u32, line: u64, counters: &mut Counters) -> Option<Cycle> {
        let ready = self.fronts[sub_core as usize].l0.find(line)?;
        counters.icache_requests += 1;
        Some(ready)
    }

    /// When an instruction whose line the sub-core's own cache does not have can issue. `sequential` when the warp comes
    /// from the end of the line before.
    #[inline(never)]
    pub fn miss(
        &mut self,
        now: Cycle,
        sub_core: u32,
        line: u64,
        sequential: bool,
        out: &mut Vec<Request>,
        counters: &mut Counters,
    ) -> Fetched {
        counters.icache_misses += 1;
        let fetched = match self.l1.find(line) {
            Some(ready) => {
                counters.icache_requests += 1;
                Fetched::At(self.deliver(now.later(ready), sub_core, line, sequential))
            }
            None => {
                self.ask(now, line, 1 << sub_core, out);
                Fetched::Pending
            }
        };
        self.prefetch(now, sub_core, line, out);
        fetched
    }

    /// Gives a sub-core a line that the SM's cache has.
    fn deliver(&mut self, at: Cycle, sub_core: u32, line: u64, sequential: bool) -> Cycle {
        let start = self.port.serve(at, self.l1_interval);
        let front = &mut self.fronts[sub_core as usize];
        // The stream runs ahead of the warp: its next line left the SM's cache long ago.
        let there =
            if sequential && front.next == line { start.later(front.ready) } else { start + self.l1_latency };
        front.next = line + 1;
        front.ready = there + self.l1_interval;
        front.l0.insert(line, there);
        there
    }

    /// Asks for the lines that follow.
    fn prefetch(&mut self, now: Cycle, sub_core: u32, line: u64, out: &mut Vec<Request>) {
        let until = line + self.stream_lines;
        let front = &mut self.fronts[sub_core as usize];
        // A stream that goes on has asked for all but its last lines before.
        let goes_on = (line..=until).contains(&front.asked);
        let from = if goes_on { front.asked.max(line + 1) } else { line + 1 };
        front.asked = until;
        for next in from..until {
            if self.l1.find(next).is_none() {
                self.ask(now, next, 0, out);
            }
        }
    }

    /// A line will be needed: the SM's cache asks for it if it has not got it.
    pub fn expect(&mut self, now: Cycle, line: u64, out: &mut Vec<Request>) {
        if self.l1.find(line).is_none() {
            self.ask(now, line, 0, out);
        }
    }

    /// Asks the GPC's cache for a line unless it is on its way.
    fn ask(&mut self, now: Cycle, line: u64, waiting: u16, out: &mut Vec<Request>) {
        if let Some(flight) = self.flights.iter_mut().find(|f| f.line == line) {
            flight.waiting |= waiting;
            return;
        }
        self.flights.push(Flight { line, waiting });
        out.push(Request {
            at: now,
            sm: self.sm,
            token: Token(line as u32),
            line: line * LINE,
            sectors: WHOLE,
            kind: RequestKind::Instruction,
            whole: false,
            depth: 0,
            operations: 0,
        });
    }

    /// A line came. Warps that wait for it may ask again: `ready` names it and when it is there.
    pub fn respond(&mut self, r: &Response, ready: &mut Vec<(u64, Cycle)>) {
        let line = r.line / LINE;
        let Some(n) = self.flights.iter().position(|f| f.line == line) else { return };
        let flight = self.flights.swap_remove(n);
        let at = self.fill.serve(r.at, self.fill_interval);
        self.l1.insert(line, at);
        if flight.waiting == 0 {
            return;
        }
        for (n, front) in self.fronts.iter_mut().enumerate() {
            if flight.waiting >> n & 1 != 0 {
                front.l0.insert(line, at);
                front.next = line + 1;
                front.ready = at + self.l1_interval;
            }
        }
        ready.push((line, at));
    }
}
