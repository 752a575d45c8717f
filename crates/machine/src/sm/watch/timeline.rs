//! What an SM did when, in steps of equal length: the steps grow with the launch.

use crate::counters::Counters;
use crate::stall::{STALLS, Stall, StallCycles};
use serde::{Deserialize, Serialize};
use trace::profile::{Timeline, Track, Traffic};

/// Most steps; with more, two become one.
const MOST: usize = 256;
/// Cycles of the first steps, as a power of two.
const FIRST: u32 = 4;

/// Most sub-cores of an SM.
pub const SUB_CORES: usize = 16;

/// Warp-cycles by reason, and instructions, by step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Buckets {
    start: u64,
    shift: u32,
    states: Vec<StallCycles>,
    /// The step that each sub-core is in, and the cycle at which it ends.
    steps: [u32; SUB_CORES],
    ends: [u64; SUB_CORES],
}

impl Buckets {
    pub fn new(start: u64) -> Buckets {
        let ends = [start + (1 << FIRST); SUB_CORES];
        // Room for all steps that there can be: it does not grow.
        let mut states = Vec::with_capacity(MOST);
        states.push([0; STALLS]);
        Buckets { start, shift: FIRST, states, steps: [0; SUB_CORES], ends }
    }

    /// Cycles of a step.
    pub fn cycles(&self) -> u64 {
        1 << self.shift
    }

    /// The cycle at which the step that a sub-core is in ends.
    #[inline(always)]
    pub fn end(&self, sub: usize) -> u64 {
        self.ends[sub % SUB_CORES]
    }

    /// A sub-core has come to a cycle: it is in that one's step.
    pub fn go_on(&mut self, sub: usize, now: u64) {
        let at = now.saturating_sub(self.start);
        self.reach(at);
        self.steps[sub % SUB_CORES] = (at >> self.shift) as u32;
        self.ends[sub % SUB_CORES] = self.start + (((at >> self.shift) + 1) << self.shift);
    }

    /// The step that a sub-core is in.
    #[inline(always)]
    pub fn step(&mut self, sub: usize) -> Option<&mut StallCycles> {
        self.states.get_mut(self.steps[sub % SUB_CORES] as usize)
    }

    #[inline]
    pub fn add(&mut self, reason: Stall, from: u64, until: u64) {
        let (from, until) = (from.saturating_sub(self.start), until.saturating_sub(self.start));
        if until <= from {
            return;
        }
        let (mut step, last) = ((from >> self.shift) as usize, ((until - 1) >> self.shift) as usize);
        if last >= self.states.len() {
            return self.grow(reason, from, until);
        }
        if step == last {
            self.states[step][reason as usize] += until - from;
            return;
        }
        let mut at = from;
        while step <= last {
            let end = ((step as u64 + 1) << self.shift).min(until);
            self.states[step][reason as usize] += end - at;
            (at, step) = (end, step + 1);
        }
    }

    #[cold]
    fn grow(&mut self, reason: Stall, from: u64, until: u64) {
        self.reach(until - 1);
        self.add(reason, from + self.start, until + self.start);
    }

    /// Makes all steps up to that of a cycle since the start.
    fn reach(&mut self, at: u64) {
        while at >> self.shift >= MOST as u64 {
            self.halve();
        }
        let steps = (at >> self.shift) as usize + 1;
        if steps > self.states.len() {
            self.states.resize(steps, [0; STALLS]);
        }
    }

    fn halve(&mut self) {
        let half = self.states.len().div_ceil(2);
        for n in 0..half {
            let mut sum = self.states[2 * n];
            if let Some(second) = self.states.get(2 * n + 1) {
                sum.iter_mut().zip(second).for_each(|(s, n)| *s += n);
            }
            self.states[n] = sum;
        }
        self.states.truncate(half);
        self.shift += 1;
        self.steps.iter_mut().for_each(|step| *step /= 2);
    }
}

/// The timelines of all SMs, in the steps of the longest.
pub fn put_together(mut all: Vec<Buckets>) -> Timeline {
    // Steps of an SM that did nothing are none.
    for b in &mut all {
        let used = b.states.iter().rposition(|s| s.iter().any(|&n| n > 0)).map_or(0, |last| last + 1);
        b.states.truncate(used);
    }
    let shift = all.iter().filter(|b| !b.states.is_empty()).map(|b| b.shift).max().unwrap_or(FIRST);
    for b in &mut all {
        while b.shift < shift {
            b.halve();
        }
    }
    let steps = all.iter().map(|b| b.states.len()).max().unwrap_or(0);
    if steps == 0 {
        return Timeline::default();
    }
    let mut timeline = Timeline {
        step: 1 << shift,
        sms: Vec::new(),
        states: vec![[0; STALLS]; steps],
        memory: vec![Traffic::default(); steps],
    };
    for mut b in all {
        b.states.resize(steps, [0; STALLS]);
        for (sum, s) in timeline.states.iter_mut().zip(&b.states) {
            sum.iter_mut().zip(s).for_each(|(sum, n)| *sum += n);
        }
        timeline.sms.push(Track {
            warp_cycles: b.states.iter().map(|s| s.iter().sum()).collect(),
            issued: b.states.iter().map(|s| s[Stall::Selected as usize]).collect(),
        });
    }
    timeline
}

/// Fills in the traffic of memory from counts that were read at some cycles since the launch's start.
pub fn traffic(timeline: &mut Timeline, counts: &[(u64, Counters)]) {
    let at = |cycle: u64, of: fn(&Counters) -> u64| -> f64 {
        let n = counts.partition_point(|(c, _)| *c < cycle);
        let (before, after) = (n.checked_sub(1).map(|n| &counts[n]), counts.get(n));
        match (before, after) {
            (None, None) => 0.0,
            (Some((_, c)), None) => of(c) as f64,
            (None, Some((end, c))) => of(c) as f64 * cycle as f64 / (*end).max(1) as f64,
            (Some((from, a)), Some((to, b))) => {
                let part = (cycle - from) as f64 / (to - from).max(1) as f64;
                of(a) as f64 + (of(b) as f64 - of(a) as f64) * part
            }
        }
    };
    let step = timeline.step;
    for (n, m) in timeline.memory.iter_mut().enumerate() {
        let (from, to) = (n as u64 * step, (n as u64 + 1) * step);
        // Differences of rounded sums, so that no count is lost.
        let between = |of: fn(&Counters) -> u64| (at(to, of).round() - at(from, of).round()) as u64;
        *m = Traffic {
            l1_sectors: between(|c| c.l1_sectors),
            l2_sectors: between(|c| c.l2_sectors),
            l2_hits: between(|c| c.l2_hits),
            dram_read_bytes: between(|c| c.dram_read_bytes),
            dram_write_bytes: between(|c| c.dram_write_bytes),
        };
    }
}
