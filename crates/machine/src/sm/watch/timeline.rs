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

/// Warp-cycles by reason and step, of all SMs that count here: for every length of steps that one of them had.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct States(Vec<Vec<StallCycles>>);

impl States {
    /// The steps of a length.
    #[inline(always)]
    fn of(&mut self, shift: u32) -> &mut [StallCycles] {
        let n = (shift - FIRST) as usize;
        if self.0.get(n).is_none_or(Vec::is_empty) {
            self.make(n);
        }
        &mut self.0[n]
    }

    #[cold]
    fn make(&mut self, n: usize) {
        self.0.resize(self.0.len().max(n + 1), Vec::new());
        self.0[n] = vec![[0; STALLS]; MOST];
    }

    /// Takes in others, which are empty then.
    pub fn take_in(&mut self, other: &mut States) {
        for (shift, states) in (FIRST..).zip(std::mem::take(other).0).filter(|(_, s)| !s.is_empty()) {
            add(self.of(shift), &states, 0);
        }
    }
}

/// Adds steps to others that are `1 << shift` times as long.
fn add(sums: &mut [StallCycles], states: &[StallCycles], shift: u32) {
    for (n, state) in states.iter().enumerate() {
        if let Some(sum) = sums.get_mut(n >> shift) {
            sum.iter_mut().zip(state).for_each(|(sum, n)| *sum += n);
        }
    }
}

/// What an SM did in a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Did {
    warp_cycles: u64,
    issued: u64,
}

/// Warp-cycles and instructions of an SM by step. Those by reason are among [`States`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Buckets {
    start: u64,
    shift: u32,
    did: Vec<Did>,
    /// The step that each sub-core is in, and the cycle at which it ends.
    steps: [u32; SUB_CORES],
    ends: [u64; SUB_CORES],
}

impl Buckets {
    pub fn new(start: u64) -> Buckets {
        let ends = [start + (1 << FIRST); SUB_CORES];
        // Room for all steps that there can be: it does not grow.
        let mut did = Vec::with_capacity(MOST);
        did.push(Did::default());
        Buckets { start, shift: FIRST, did, steps: [0; SUB_CORES], ends }
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

    /// Counts warp-cycles in the step that a sub-core is in.
    pub fn count(&mut self, states: &mut States, sub: usize, counts: &[(Stall, u64)]) {
        let step = self.steps[sub % SUB_CORES] as usize;
        let (Some(did), Some(state)) = (self.did.get_mut(step), states.of(self.shift).get_mut(step)) else {
            return;
        };
        for &(reason, cycles) in counts {
            did.warp_cycles += cycles;
            did.issued += if reason == Stall::Selected { cycles } else { 0 };
            state[reason as usize] += cycles;
        }
    }

    /// Counts a state from one cycle to another.
    #[inline]
    pub fn add(&mut self, states: &mut States, reason: Stall, from: u64, until: u64) {
        let (from, until) = (from.saturating_sub(self.start), until.saturating_sub(self.start));
        if until <= from {
            return;
        }
        if (until - 1) >> self.shift >= self.did.len() as u64 {
            self.reach(until - 1);
        }
        let (first, last) = ((from >> self.shift) as usize, ((until - 1) >> self.shift) as usize);
        let issues = u64::from(reason == Stall::Selected);
        let mut at = from;
        let steps = self.did[first..=last].iter_mut().zip(&mut states.of(self.shift)[first..=last]);
        for (step, (did, state)) in (first as u64..).zip(steps) {
            let end = ((step + 1) << self.shift).min(until);
            did.warp_cycles += end - at;
            did.issued += issues * (end - at);
            state[reason as usize] += end - at;
            at = end;
        }
    }

    /// Makes all steps up to that of a cycle since the start.
    #[cold]
    fn reach(&mut self, at: u64) {
        while at >> self.shift >= MOST as u64 {
            self.halve();
        }
        let steps = (at >> self.shift) as usize + 1;
        if steps > self.did.len() {
            self.did.resize(steps, Did::default());
        }
    }

    fn halve(&mut self) {
        let pairs = self.did.chunks(2).map(|pair| Did {
            warp_cycles: pair.iter().map(|d| d.warp_cycles).sum(),
            issued: pair.iter().map(|d| d.issued).sum(),
        });
        // With the room that it had.
        let halves: Vec<Did> = pairs.collect();
        self.did.clear();
        self.did.extend(halves);
        self.shift += 1;
        self.steps.iter_mut().for_each(|step| *step /= 2);
    }
}

/// The timelines of all SMs, in the steps of the longest.
pub fn put_together(mut all: Vec<Buckets>, states: &States) -> Timeline {
    // Steps of an SM that did nothing are none.
    for b in &mut all {
        let used = b.did.iter().rposition(|d| *d != Did::default()).map_or(0, |last| last + 1);
        b.did.truncate(used);
    }
    let shift = all.iter().filter(|b| !b.did.is_empty()).map(|b| b.shift).max().unwrap_or(FIRST);
    for b in &mut all {
        while b.shift < shift {
            b.halve();
        }
    }
    let steps = all.iter().map(|b| b.did.len()).max().unwrap_or(0);
    if steps == 0 {
        return Timeline::default();
    }
    let mut timeline = Timeline {
        step: 1 << shift,
        sms: Vec::new(),
        states: vec![[0; STALLS]; steps],
        memory: vec![Traffic::default(); steps],
    };
    for (of, states) in (FIRST..=shift).zip(&states.0) {
        add(&mut timeline.states, states, shift - of);
    }
    for mut b in all {
        b.did.resize(steps, Did::default());
        timeline.sms.push(Track {
            warp_cycles: b.did.iter().map(|d| d.warp_cycles).collect(),
            issued: b.did.iter().map(|d| d.issued).collect(),
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
