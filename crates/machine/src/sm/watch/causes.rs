//! What instructions wait for: what is seen when it happens, and what the code alone tells.

use crate::sm::code::{Code, Kind, Timing};
use crate::stall::Stall;
use isa::image::Image;
use serde::{Deserialize, Serialize};
use trace::profile::{Cause, Link};

/// Counts of the causes of one instruction's waits. There are only ever a few.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Row(Vec<(Stall, Link, u32, u64, u64)>);

/// Causes by the instruction that waited.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Causes {
    rows: Vec<Row>,
}

impl Causes {
    pub fn new(instructions: usize) -> Causes {
        Causes { rows: vec![Row::default(); instructions] }
    }

    #[inline]
    pub fn add(&mut self, pc: u32, reason: Stall, link: Link, cause: u32, cycles: u64) {
        self.count(pc, reason, link, cause, cycles, 1);
    }

    fn count(&mut self, pc: u32, reason: Stall, link: Link, cause: u32, cycles: u64, count: u64) {
        let Some(row) = self.rows.get_mut(pc as usize) else { return };
        match row.0.iter().position(|r| r.2 == cause && r.0 == reason && r.1 == link) {
            Some(n) => {
                let r = &mut row.0[n];
                (r.3, r.4) = (r.3 + cycles, r.4 + count);
                // Frequent ones come to the front.
                if n > 0 {
                    row.0.swap(n, n - 1);
                }
            }
            None => row.0.push((reason, link, cause, cycles, count)),
        }
    }

    /// Adds those of another SM.
    pub fn merge(&mut self, other: &Causes) {
        for (pc, row) in other.rows.iter().enumerate() {
            for &(reason, link, cause, cycles, count) in &row.0 {
                self.count(pc as u32, reason, link, cause, cycles, count);
            }
        }
    }

    /// All of them, by instruction, the longest first.
    pub fn list(&self) -> Vec<Cause> {
        let mut out = Vec::new();
        for (pc, row) in self.rows.iter().enumerate() {
            let mut list: Vec<Cause> = row
                .0
                .iter()
                .map(|&(reason, link, cause, cycles, count)| Cause {
                    pc: pc as u32,
                    reason,
                    link,
                    cause,
                    cycles,
                    count,
                })
                .collect();
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
