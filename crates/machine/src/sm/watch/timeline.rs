//! What an SM did when, in steps of equal length: the steps grow with the launch.

use crate::counters::Counters;
use crate::stall::{STALLS, Stall, StallCycles};
use serde::{Deserialize, Serialize};
use trace::profile::{Timeline, Track, Traffic};

/// Most steps; with more, two become one.
const MOST: usize = 256;
/// Cycles of the first steps, as a power of two, and of those of a launch that will have many: most of its waits are shorter, and
/// lie in one step or two.
const FIRST: u32 = 4;
const FIRST_OF_MANY: u32 = 6;

/// Most sub-cores of an SM.
pub const SUB_CORES: usize = 16;

/// Warp-cycles by reason and step, of all SMs that count here: for every length of steps that one of them had.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct States(Vec<Option<Steps>>);

/// Steps of one length.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Steps {
    #[serde(with = "simt::arrays::boxed")]
    cycles: Box<[StallCycles; MOST]>,
    /// Warps that are in a state for all of a step, less those for all of the one before: long states take as long as short ones.
    #[serde(with = "simt::arrays::boxed")]
    all: Box<[StallCycles; MOST]>,
}

impl States {
    /// The steps of a length.
    #[inline(always)]
    fn of(&mut self, shift: u32) -> &mut Steps {
        let n = (shift - FIRST) as usize;
        if n >= self.0.len() {
            self.0.resize(n + 1, None);
        }
        self.0[n].get_or_insert_with(Steps::new)
    }

    /// Takes in others, which are empty then.
    pub fn take_in(&mut self, other: &mut States) {
        for (shift, steps) in (FIRST..).zip(std::mem::take(other).0) {
            let Some(steps) = steps else { continue };
            let own = self.of(shift);
            own.cycles.iter_mut().zip(&*steps.cycles).for_each(|(sum, n)| add(sum, n, 0));
            own.all.iter_mut().zip(&*steps.all).for_each(|(sum, n)| add(sum, n, 0));
        }
    }
}

impl Steps {
    #[cold]
    fn new() -> Steps {
        Steps { cycles: Box::new([[0; STALLS]; MOST]), all: Box::new([[0; STALLS]; MOST]) }
    }

    /// Adds them, which are `1 << of` cycles long, to others of `1 << shift`.
    fn add_to(&self, of: u32, sums: &mut [StallCycles], shift: u32) {
        let mut all = [0; STALLS];
        for (n, (cycles, change)) in self.cycles.iter().zip(&*self.all).enumerate() {
            add(&mut all, change, 0);
            if let Some(sum) = sums.get_mut(n >> (shift - of)) {
                add(sum, cycles, 0);
                add(sum, &all, of);
            }
        }
    }
}

/// Adds counts, times a power of two. What is less than before wraps around, and around again.
fn add(sums: &mut StallCycles, counts: &StallCycles, shift: u32) {
    sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum = sum.wrapping_add(n << shift));
}

/// What an SM did in a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Did {
    warp_cycles: u64,
    issued: u64,
    /// As in [`Steps`].
    all: u64,
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
    /// For a launch, which will have many steps or not.
    pub fn new(start: u64, has_many: bool) -> Buckets {
        let shift = if has_many { FIRST_OF_MANY } else { FIRST };
        let ends = [start + (1 << shift); SUB_CORES];
        // Room for all steps that there can be: it does not grow.
        let mut did = Vec::with_capacity(MOST);
        did.push(Did::default());
        Buckets { start, shift, did, steps: [0; SUB_CORES], ends }
    }

    /// All that it has, which nobody adds to any more.
    pub fn take(&mut self) -> Buckets {
        Buckets { did: std::mem::take(&mut self.did), ..*self }
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
        if at >> self.shift >= self.did.len() as u64 {
            self.reach(at);
        }
        self.steps[sub % SUB_CORES] = (at >> self.shift) as u32;
        self.ends[sub % SUB_CORES] = self.start + (((at >> self.shift) + 1) << self.shift);
    }

    /// Counts warp-cycles by reason in the step that a sub-core is in; there are none then.
    pub fn count(&mut self, states: &mut States, sub: usize, counts: &mut StallCycles) {
        let step = self.steps[sub % SUB_CORES] as usize;
        let Some(did) = self.did.get_mut(step) else { return };
        did.issued += counts[Stall::Selected as usize];
        let mut all = 0;
        for (sum, n) in states.of(self.shift).cycles[step % MOST].iter_mut().zip(counts) {
            let n = std::mem::take(n);
            *sum += n;
            all += n;
        }
        did.warp_cycles += all;
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
        let (steps, did) = (states.of(self.shift), &mut self.did[..=last]);
        let mut count = |step: usize, n: u64| {
            did[step].warp_cycles += n;
            steps.cycles[step % MOST][reason as usize] += n;
        };
        if first == last {
            count(first, until - from);
        } else {
            count(first, ((first as u64 + 1) << self.shift) - from);
            count(last, until - ((last as u64) << self.shift));
        }
        if last > first + 1 {
            for (step, change) in [(first + 1, 1), (last, u64::MAX)] {
                let all = &mut steps.all[step % MOST][reason as usize];
                (*all, did[step].all) = (all.wrapping_add(change), did[step].all.wrapping_add(change));
            }
        }
        // To be selected takes one cycle.
        did[first].issued += u64::from(reason == Stall::Selected);
    }

    /// What is for all of a step counts there.
    fn settle(&mut self) {
        let mut all = 0u64;
        for did in &mut self.did {
            all = all.wrapping_add(std::mem::take(&mut did.all));
            did.warp_cycles += all << self.shift;
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
        self.settle();
        let pairs = self.did.chunks(2).map(|pair| Did {
            warp_cycles: pair.iter().map(|d| d.warp_cycles).sum(),
            issued: pair.iter().map(|d| d.issued).sum(),
            all: 0,
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
        b.settle();
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
    for (of, steps) in (FIRST..=shift).zip(&states.0) {
        if let Some(steps) = steps {
            steps.add_to(of, &mut timeline.states, shift);
        }
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
