//! Credits of the warps of one pod, and their fund.
//!
//! With a fund, every credit that moves goes through it, so credits and fund sum to zero whatever happens: a warp at the
//! end of its range gains or pays less, and the fund keeps the rest.

use super::super::bits::{Bits, remap, remap_bit, remap_set};
use super::super::spec::{self, Variant};
use serde::{Deserialize, Serialize};

/// Credits and fund.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ledger {
    variant: Variant,
    guard: bool,
    step: i64,
    low: i64,
    high: i64,
    #[serde(with = "simt::arrays")]
    credits: [i32; 64],
    live: u64,
    fund: i64,
    /// Where the search for the next victim begins.
    next: u32,
}

impl Ledger {
    pub fn new(spec: &spec::Credit) -> Ledger {
        let end = 1i64 << (spec.bits.clamp(2, 32) - 1);
        Ledger {
            variant: spec.variant,
            guard: spec.guard,
            step: spec.step.into(),
            low: -end,
            high: end - 1,
            credits: [0; 64],
            live: 0,
            fund: 0,
            next: 0,
        }
    }

    #[inline(always)]
    pub fn credit(&self, bit: u32) -> i32 {
        self.credits[bit as usize % 64]
    }

    pub fn fund(&self) -> i64 {
        self.fund
    }

    /// A new warp has no credit.
    pub fn add(&mut self, bit: u32) {
        self.live |= 1 << bit;
        self.credits[bit as usize % 64] = 0;
    }

    /// What a warp has when it ends goes to the fund.
    pub fn remove(&mut self, bit: u32) {
        if self.live >> bit & 1 != 0 {
            self.live &= !(1 << bit);
            let left = std::mem::take(&mut self.credits[bit as usize % 64]);
            if self.variant != Variant::Halving {
                self.fund += i64::from(left);
            }
        }
        self.check();
    }

    /// A warp issued while the victims could have; replaying warps are among them.
    #[inline(always)]
    pub fn issued(&mut self, bit: u32, victims: u64) {
        let victims = victims & !(1 << bit);
        match self.variant {
            Variant::All => {
                if !self.guard || self.fund > 0 {
                    let (mut gained, high) = (0, self.high as i32);
                    for v in Bits(victims) {
                        let credit = &mut self.credits[v as usize % 64];
                        let fits = i32::from(*credit < high);
                        *credit += fits;
                        gained += i64::from(fits);
                    }
                    self.fund -= gained;
                    self.pay(bit, gained);
                }
            }
            Variant::Next => {
                self.next_victim(victims, 1);
                self.pay(bit, 1);
            }
            Variant::Half => {
                self.next_victim(victims, i64::from(victims.count_ones() / 2));
                self.pay(bit, 1);
            }
            Variant::Halving => {
                let step = if self.step == 0 { i64::from(victims.count_ones()) } else { self.step };
                for v in Bits(victims) {
                    let credit = &mut self.credits[v as usize % 64];
                    *credit = (i64::from(*credit) + step).min(self.high) as i32;
                }
                self.credits[bit as usize % 64] /= 2;
            }
        }
        self.check();
    }

    /// The next victim takes from a fund that is positive.
    fn next_victim(&mut self, victims: u64, amount: i64) {
        if self.fund > 0 && victims != 0 {
            let v = (victims.rotate_right(self.next).trailing_zeros() + self.next) % 64;
            self.give(v, amount);
            self.next = (v + 1) % 64;
        }
    }

    /// A warp takes from the fund what fits its range.
    fn give(&mut self, bit: u32, amount: i64) {
        let credit = &mut self.credits[bit as usize % 64];
        let fits = amount.min(self.high - i64::from(*credit));
        *credit += fits as i32;
        self.fund -= fits;
    }

    /// A warp pays into the fund what it can.
    #[inline(always)]
    fn pay(&mut self, bit: u32, amount: i64) {
        let credit = &mut self.credits[bit as usize % 64];
        let fits = amount.min(i64::from(*credit) - self.low);
        *credit -= fits as i32;
        self.fund += fits;
    }

    /// Credits and fund together: zero, always, where there is a fund.
    pub fn sum(&self) -> i64 {
        Bits(self.live).map(|b| i64::from(self.credits[b as usize])).sum::<i64>() + self.fund
    }

    #[inline(always)]
    fn check(&self) {
        debug_assert!(self.variant == Variant::Halving || self.sum() == 0, "credits do not sum to zero");
    }

    pub fn remap(&mut self, old: &[u8]) {
        remap(&mut self.credits, old);
        remap_set(&mut self.live, old);
        self.next = remap_bit(self.next, old).unwrap_or(0);
    }
}
