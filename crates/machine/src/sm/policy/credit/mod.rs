//! Policy `credit`: warps that issue pay, warps that could have gain; the greatest weight issues.

mod ledger;
pub mod pipes;
#[cfg(test)]
mod tests;
pub mod tree;
pub mod weight;

pub use ledger::Ledger;

use super::ThreadType;
use super::bits::{Bits, remap};
use super::grant::Granted;
use super::spec;
use crate::sm::code::Class;
use crate::sm::spec::Pipe;
use pipes::Pipes;
use serde::{Deserialize, Serialize};
use tree::Entrant;
use weight::{Facts, weight};

/// Bits of a warp's rank by age.
const RANK_BITS: u32 = 6;

/// Credits and weights of one pod.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Credit {
    spec: spec::Credit,
    pub ledger: Ledger,
    pipes: Pipes,
    /// The highest age that a packed weight has, and the issues after which a warp is overdue.
    oldest: u32,
    patience: u64,
    /// Number of each warp's CTA in the order of starts.
    #[serde(with = "simt::arrays")]
    cta: [u32; 64],
    #[serde(with = "simt::arrays")]
    thread: [ThreadType; 64],
    /// A warp's accesses are replayed until then.
    #[serde(with = "simt::arrays")]
    replays_until: [u64; 64],
    /// The latest of them.
    replays: u64,
    /// Issues of the pod, and as many as there were when each warp issued last, or started.
    issues: u64,
    #[serde(with = "simt::arrays")]
    last: [u64; 64],
    live: u64,
}

/// What changes from cycle to cycle.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub now: u64,
    /// CTAs that started so far.
    pub ctas: u64,
    pub granted: Granted,
    /// The bit of the warp that started last.
    pub newest: u32,
}

impl Credit {
    pub fn new(spec: &spec::Credit, pipes: &[Pipe]) -> Credit {
        Credit {
            ledger: Ledger::new(spec),
            pipes: Pipes::new(pipes, spec),
            oldest: (1 << spec.age_bits) - 1,
            patience: if spec.patience == 0 { u64::MAX } else { spec.patience.into() },
            spec: spec.clone(),
            cta: [0; 64],
            thread: [ThreadType::Compute; 64],
            replays_until: [0; 64],
            replays: 0,
            issues: 0,
            last: [0; 64],
            live: 0,
        }
    }

    pub fn add(&mut self, bit: u32, cta: u64, thread: ThreadType) {
        let n = bit as usize % 64;
        self.ledger.add(bit);
        self.live |= 1 << bit;
        (self.cta[n], self.thread[n], self.replays_until[n]) = (cta as u32, thread, 0);
        self.last[n] = self.issues;
    }

    pub fn remove(&mut self, bit: u32) {
        self.ledger.remove(bit);
        self.live &= !(1 << bit);
    }

    /// The warp's access is replayed until a cycle.
    pub fn replay(&mut self, bit: u32, until: u64) {
        self.replays_until[bit as usize % 64] = until;
        self.replays = self.replays.max(until);
    }

    /// Warps whose accesses are replayed.
    #[inline]
    fn replaying(&self, now: u64) -> u64 {
        if self.replays <= now {
            return 0;
        }
        Bits(self.live).filter(|&b| self.replays_until[b as usize] > now).fold(0, |m, b| m | 1 << b)
    }

    #[inline(always)]
    fn facts(&self, bit: u32, m: &Moment, class: Class) -> Facts {
        let n = bit as usize % 64;
        Facts {
            credit: self.ledger.credit(bit),
            replays: self.replays_until[n] > m.now,
            granted: m.granted.value >> bit & 1 != 0,
            tile_granted: m.granted.tile_phase >> bit & 1 != 0,
            oversubscribed: self.pipes.is_oversubscribed(class, m.now),
            age: self.age(n, m).into(),
            thread: self.thread[n],
            need: self.pipes.need(class),
            overdue: self.is_overdue(n),
        }
    }

    /// Tiles or CTAs started since a warp's own.
    #[inline(always)]
    fn age(&self, n: usize, m: &Moment) -> u32 {
        (m.ctas as u32).wrapping_sub(self.cta[n] + 1)
    }

    #[inline(always)]
    fn is_overdue(&self, n: usize) -> bool {
        self.issues - self.last[n] >= self.patience
    }

    /// The warp of the greatest packed weight where nothing but ages and credits can differ.
    #[inline(always)]
    fn choose_plain(&self, set: u64, m: &Moment) -> u32 {
        let mut best = (i64::MIN, 0);
        for bit in Bits(set) {
            let n = bit as usize % 64;
            let age = (self.age(n, m) >> self.spec.age_shift).min(self.oldest);
            let weight = (i64::from(age) << self.spec.bits) + i64::from(self.ledger.credit(bit));
            let weight = weight + if self.is_overdue(n) { weight::OVERDUE >> RANK_BITS } else { 0 };
            let key = weight << RANK_BITS | i64::from(m.newest.wrapping_sub(bit) % 64);
            best = best.max((key, bit));
        }
        best.1
    }

    #[inline]
    fn balance(&self, now: u64) -> i64 {
        if self.spec.weight == spec::Form::Additive && self.spec.balance_bonus != 0 {
            self.pipes.balance(now)
        } else {
            0
        }
    }

    /// The weight of a warp that asks for an instruction of a class.
    pub fn weight(&self, bit: u32, m: &Moment, class: Class) -> i64 {
        weight(&self.spec, &self.facts(bit, m, class), self.balance(m.now))
    }

    /// The warp of the greatest weight; of several, the one that started first.
    #[inline]
    pub fn choose(&self, set: u64, m: &Moment, class: impl Fn(u32) -> Class) -> u32 {
        // One alone needs no weight.
        if set & (set.wrapping_sub(1)) == 0 {
            return set.trailing_zeros();
        }
        let even = self.replays <= m.now && m.granted.value == 0 && self.pipes.is_quiet();
        if even && self.spec.weight == spec::Form::Packed {
            return self.choose_plain(set, m);
        }
        let balance = self.balance(m.now);
        let entrant = |bit: u32| Entrant {
            weight: weight(&self.spec, &self.facts(bit, m, class(bit)), balance),
            rank: m.newest.wrapping_sub(bit) % 64,
            bit,
        };
        tree::winner(Bits(set).map(entrant)).map_or(0, |e| e.bit)
    }

    /// A warp issued; `able` are all that could have.
    #[inline(always)]
    pub fn issued(&mut self, bit: u32, able: u64, now: u64) {
        self.issues += 1;
        self.last[bit as usize % 64] = self.issues;
        self.ledger.issued(bit, (able | self.replaying(now)) & !(1 << bit));
    }

    /// The issued instruction starts in a pipe. Classes, a bit each, of which no more may be issued before a cycle.
    #[inline]
    pub fn enter(&mut self, class: Class, start: u64, now: u64) -> Option<(u32, u64)> {
        self.pipes.enter(class, start, now)
    }

    pub fn remap(&mut self, old: &[u8]) {
        self.ledger.remap(old);
        remap(&mut self.cta, old);
        remap(&mut self.thread, old);
        remap(&mut self.replays_until, old);
        remap(&mut self.last, old);
        super::bits::remap_set(&mut self.live, old);
    }
}
