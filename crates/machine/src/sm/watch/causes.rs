//! What instructions wait for: what is seen when it happens, and what the code alone tells.

use crate::sm::code::{Code, Kind, Timing};
use crate::stall::Stall;
use isa::image::Image;
use serde::{Deserialize, Serialize};
use trace::profile::{Cause, Link};

/// A cause of an instruction's waits, with its counts.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Entry {
    reason: Stall,
    link: Link,
    cause: u32,
    cycles: u64,
    count: u64,
}

impl Entry {
    /// No cause yet.
    const NONE: Entry =
        Entry { reason: Stall::Selected, link: Link::Register, cause: u32::MAX, cycles: 0, count: 0 };

    #[inline(always)]
    fn is(&self, reason: Stall, link: Link, cause: u32) -> bool {
        self.cause == cause && self.reason == reason && self.link == link
    }
}

/// The first causes of one instruction's waits: in one line of the host's cache, because there are hardly ever more.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[repr(align(64))]
struct Row([Entry; 2]);

/// Causes by the instruction that waited.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Causes {
    rows: Vec<Row>,
    /// Those that do not fit.
    more: Vec<Vec<Entry>>,
}

impl Causes {
    pub fn new(instructions: usize) -> Causes {
        Causes { rows: vec![Row([Entry::NONE; 2]); instructions], more: vec![Vec::new(); instructions] }
    }

    /// All of an instruction.
    fn of(&self, pc: usize) -> impl Iterator<Item = &Entry> {
        self.rows[pc].0.iter().filter(|e| e.cause != u32::MAX).chain(&self.more[pc])
    }

    /// The entry of a cause that neither of the first two is; a frequent one comes to the front.
    #[cold]
    fn other(&mut self, pc: usize, reason: Stall, link: Link, cause: u32) -> &mut Entry {
        let new = Entry { reason, link, cause, cycles: 0, count: 0 };
        let (first, more) = (&mut self.rows[pc].0, &mut self.more[pc]);
        if let Some(free) = first.iter().position(|e| e.cause == u32::MAX) {
            first[free] = new;
            return &mut first[free];
        }
        let n = more.iter().position(|e| e.is(reason, link, cause)).unwrap_or_else(|| {
            more.push(new);
            more.len() - 1
        });
        if more[n].count > first[1].count {
            std::mem::swap(&mut more[n], &mut first[1]);
            return &mut first[1];
        }
        &mut more[n]
    }

    #[inline]
    pub fn add(&mut self, pc: u32, reason: Stall, link: Link, cause: u32, cycles: u64) {
        self.count(pc, reason, link, cause, cycles, 1);
    }

    #[inline]
    fn count(&mut self, pc: u32, reason: Stall, link: Link, cause: u32, cycles: u64, count: u64) {
        let pc = pc as usize;
        let Some(Row(first)) = self.rows.get_mut(pc) else { return };
        let entry = match first.iter().position(|e| e.is(reason, link, cause)) {
            Some(n) => &mut self.rows[pc].0[n],
            None => self.other(pc, reason, link, cause),
        };
        entry.cycles += cycles;
        entry.count += count;
    }

    /// Adds those of another SM.
    pub fn merge(&mut self, other: &Causes) {
        for pc in 0..other.rows.len() {
            for e in other.of(pc) {
                self.count(pc as u32, e.reason, e.link, e.cause, e.cycles, e.count);
            }
        }
    }

    /// All of them, by instruction, the longest first.
    pub fn list(&self) -> Vec<Cause> {
        let mut out = Vec::new();
        for pc in 0..self.rows.len() {
            let cause = |e: &Entry| Cause {
                pc: pc as u32,
                reason: e.reason,
                link: e.link,
                cause: e.cause,
                cycles: e.cycles,
                count: e.count,
            };
            let mut list: Vec<Cause> = self.of(pc).map(cause).collect();
            list.sort_by_key(|c| (std::cmp::Reverse(c.cycles), c.reason, c.link, c.cause));
            out.extend(list);
        }
        out
    }
}

/// Instructions that are looked at for the one that makes a result.
const BACK: usize = 48;

/// For every instruction the one whose result of fixed latency it waits for longest, as far as the code tells.
pub fn producers(code: &Code, image: &Image) -> Vec<Option<u32>> {
    // Where loops come back from.
    let mut back = vec![None; code.len()];
    for (pc, inst) in image.code.iter().enumerate() {
        if let Some(target) = inst.target().filter(|&t| t as usize <= pc) {
            back[target as usize] = Some(pc);
        }
    }
    (0..image.code.len()).map(|pc| producer(code, &back, pc)).collect()
}

fn producer(code: &Code, back: &[Option<usize>], pc: usize) -> Option<u32> {
    let (_, reads) = code.places(code.timing_of(pc as u32));
    let mut open: Vec<u16> = reads.to_vec();
    let mut best: Option<(i64, u32)> = None;
    let (mut at, mut distance, mut looped) = (pc, 0i64, false);
    for _ in 0..BACK {
        // At the head of a loop the last turn came before, as a rule.
        at = match back[at].filter(|_| !looped) {
            Some(end) => {
                looped = true;
                end
            }
            None if at == 0 => break,
            None => at - 1,
        };
        distance += 1;
        let t: &Timing = code.timing_of(at as u32);
        if at == pc || open.is_empty() || matches!(t.kind, Kind::Exit) {
            break;
        }
        let (writes, _) = code.places(t);
        for (k, place) in writes.iter().enumerate() {
            if let Some(n) = open.iter().position(|p| p == place) {
                open.swap_remove(n);
                let left = i64::from(t.latency_of(k)) - distance;
                if t.is_static && best.is_none_or(|(most, _)| left > most) {
                    best = Some((left, at as u32));
                }
            }
        }
    }
    best.filter(|(left, _)| *left > -2).map(|(_, pc)| pc)
}
