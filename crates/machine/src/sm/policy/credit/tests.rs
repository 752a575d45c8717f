//! Credits worked out by hand, and properties of random histories.

use super::weight::{Facts, Need, weight};
use super::{Credit, Ledger, Moment};
use crate::Config;
use crate::sm::code::Class;
use crate::sm::policy::ThreadType;
use crate::sm::policy::bits::Bits;
use crate::sm::policy::grant::Granted;
use crate::sm::policy::spec::{self, Form, Variant};
use proptest::prelude::*;

fn tiny() -> crate::sm::Spec {
    Config::preset("tiny").expect("the preset").sm
}

fn spec_of(change: impl Fn(&mut spec::Credit)) -> spec::Credit {
    let mut spec = tiny().scheduler.credit;
    spec.guard = false;
    change(&mut spec);
    spec
}

fn ledger(warps: u32, change: impl Fn(&mut spec::Credit)) -> Ledger {
    let mut l = Ledger::new(&spec_of(change));
    (0..warps).for_each(|b| l.add(b));
    l
}

/// The first warps' credits, and the fund.
fn state<const N: usize>(l: &Ledger) -> ([i32; N], i64) {
    (std::array::from_fn(|b| l.credit(b as u32)), l.fund())
}

#[test]
fn every_victim_gains_one_and_the_issuer_pays() {
    let mut l = ledger(4, |s| s.variant = Variant::All);
    // 0 issues, 1 and 2 could have, 3 could not.
    l.issued(0, 0b0111);
    assert_eq!(state(&l), ([-2, 1, 1, 0], 0));
    l.issued(1, 0b1111);
    assert_eq!(state(&l), ([-1, -2, 2, 1], 0));
    // Alone: nothing moves.
    l.issued(2, 0b0100);
    assert_eq!(state(&l), ([-1, -2, 2, 1], 0));
    // The warp in debt ends: the fund owes what it owed.
    l.remove(1);
    assert_eq!(state(&l), ([-1, 0, 2, 1], -2));
}

#[test]
fn a_guard_on_the_fund_lets_nothing_start() {
    let mut l = ledger(3, |s| (s.variant, s.guard) = (Variant::All, true));
    l.issued(0, 0b111);
    l.issued(1, 0b111);
    assert_eq!(state(&l), ([0, 0, 0], 0));
}

#[test]
fn the_next_victim_takes_one_from_the_fund() {
    let mut l = ledger(4, |s| s.variant = Variant::Next);
    // The fund is empty: the issuer pays into it.
    l.issued(0, 0b1111);
    assert_eq!(state(&l), ([-1, 0, 0, 0], 1));
    // 0 is the first victim from place 0 on; the search goes on behind it.
    l.issued(1, 0b1111);
    assert_eq!(state(&l), ([0, -1, 0, 0], 1));
    // From place 1 on: 2, since 1 could not issue.
    l.issued(3, 0b1101);
    assert_eq!(state(&l), ([0, -1, 1, -1], 1));
    // From place 3 on, around the end: 1.
    l.issued(0, 0b0011);
    assert_eq!(state(&l), ([-1, 0, 1, -1], 1));
    // No victim: the fund keeps what it has.
    l.issued(0, 0b0001);
    assert_eq!(state(&l), ([-2, 0, 1, -1], 2));
}

#[test]
fn half_the_victims_may_overdraw_the_fund() {
    let mut l = ledger(6, |s| s.variant = Variant::Half);
    l.issued(0, 0b111111);
    assert_eq!(state(&l), ([-1, 0, 0, 0, 0, 0], 1));
    // Five victims: 0 takes two, of which one is not there yet.
    l.issued(1, 0b111111);
    assert_eq!(state(&l), ([1, -1, 0, 0, 0, 0], 0));
    // The fund is not positive: only the payment.
    l.issued(2, 0b111111);
    assert_eq!(state(&l), ([1, -1, -1, 0, 0, 0], 1));
    // Four victims, from place 1 on: 1 takes two, the fund owes one until the issuer has paid.
    l.issued(3, 0b111110);
    assert_eq!(state(&l), ([1, 1, -1, -1, 0, 0], 0));
    // One victim: half of it is nothing.
    l.issued(4, 0b110000);
    l.issued(4, 0b110000);
    assert_eq!(state(&l), ([1, 1, -1, -1, -2, 0], 2));
}

#[test]
fn issuers_can_lose_half_of_what_they_have() {
    let mut l = ledger(3, |s| (s.variant, s.step) = (Variant::Halving, 3));
    l.issued(0, 0b111);
    assert_eq!(state(&l), ([0, 3, 3], 0));
    l.issued(1, 0b111);
    assert_eq!(state(&l), ([3, 1, 6], 0));
    // A step tied to the number of victims.
    let mut l = ledger(3, |s| (s.variant, s.step) = (Variant::Halving, 0));
    l.issued(0, 0b111);
    l.issued(1, 0b110);
    assert_eq!(state(&l), ([0, 1, 3], 0));
    l.remove(2);
    assert_eq!(state(&l), ([0, 1, 0], 0), "without a fund it is lost");
}

#[test]
fn credits_stay_in_their_range_and_the_sum_at_zero() {
    // Three bits: -4 to 3.
    let mut l = ledger(3, |s| (s.variant, s.bits) = (Variant::All, 3));
    for _ in 0..2 {
        l.issued(0, 0b111);
    }
    assert_eq!(state(&l), ([-4, 2, 2], 0));
    // The issuer cannot pay: the fund does.
    l.issued(0, 0b111);
    assert_eq!(state(&l), ([-4, 3, 3], -2));
    // The victims cannot gain: nobody pays.
    l.issued(0, 0b111);
    assert_eq!((state(&l), l.sum()), (([-4, 3, 3], -2), 0));
}

fn facts() -> Facts {
    Facts {
        credit: 0,
        replays: false,
        granted: false,
        tile_granted: false,
        oversubscribed: false,
        age: 0,
        thread: ThreadType::Compute,
        need: Need::Any,
        overdue: false,
    }
}

#[test]
fn packed_weights_have_their_fields_in_order() {
    let spec = spec_of(|s| {
        (s.weight, s.bits, s.age_bits, s.age_shift) = (Form::Packed, 8, 4, 1);
        (s.replay_bit, s.grant_bit, s.pipe_bit) = (true, true, true);
    });
    let w = |f: Facts| weight(&spec, &f, 0);
    // Bit 13: replayed or granted; 12: pipe; 11 to 8: age; 7 to 0: credit + 128.
    assert_eq!(w(facts()), 1 << 12 | 128);
    assert_eq!(w(Facts { credit: -128, oversubscribed: true, ..facts() }), 0);
    assert_eq!(w(Facts { credit: 127, age: 7, ..facts() }), 1 << 12 | 3 << 8 | 255);
    assert_eq!(w(Facts { age: 1000, ..facts() }), 1 << 12 | 15 << 8 | 128);
    assert_eq!(w(Facts { granted: true, ..facts() }), 1 << 13 | 1 << 12 | 128);
    assert_eq!(w(Facts { replays: true, oversubscribed: true, ..facts() }), 1 << 13 | 128);
    let none = spec_of(|s| {
        (s.weight, s.bits, s.age_bits) = (Form::Packed, 8, 0);
        (s.replay_bit, s.grant_bit, s.pipe_bit) = (false, false, false);
    });
    let all = Facts { replays: true, granted: true, age: 9, credit: 5, ..facts() };
    assert_eq!(weight(&none, &all, 0), 133);
}

#[test]
fn additive_weights_are_sums() {
    let spec = spec_of(|s| {
        (s.weight, s.texture_bonus, s.age_scale, s.balance_bonus) = (Form::Additive, 100, 10, 1000);
        (s.type_bonus, s.compute_tiles) = (vec![1, 2, 3, 4], false);
    });
    let w = |f: Facts, balance: i64| weight(&spec, &f, balance);
    let pixel = Facts { thread: ThreadType::Pixel, ..facts() };
    assert_eq!(w(Facts { credit: -7, tile_granted: true, age: 2, ..pixel }, 0), -7 + 100 + 20 + 3);
    assert_eq!(w(Facts { tile_granted: true, age: 2, ..facts() }, 0), 4, "compute has no tiles");
    let ours = spec_of(|s| {
        (s.weight, s.texture_bonus, s.age_scale, s.compute_tiles) = (Form::Additive, 100, 10, true);
        s.type_bonus = vec![0; 4];
    });
    assert_eq!(weight(&ours, &Facts { tile_granted: true, age: 2, ..facts() }, 0), 120);
    // More wait for the multiply-add pipes: special functions get the bonus.
    let (mad, sfu) = (Facts { need: Need::Mad, ..facts() }, Facts { need: Need::Sfu, ..facts() });
    assert_eq!((w(mad, 2), w(sfu, 2), w(facts(), 2)), (4, 1004, 4));
    assert_eq!((w(mad, -2), w(sfu, -2)), (1004, 4));
    assert_eq!((w(mad, 0), w(sfu, 0)), (4, 4));
}

fn moment(now: u64) -> Moment {
    Moment { now, ctas: 1, granted: Granted::default(), newest: 63 }
}

fn credit(warps: u32, change: impl Fn(&mut spec::Credit)) -> Credit {
    let mut c = Credit::new(&spec_of(change), &tiny().pipes);
    for b in 0..warps {
        c.add(b, 0, ThreadType::Compute);
    }
    c
}

#[test]
fn the_greatest_weight_issues_and_replaying_warps_gain() {
    let mut c = credit(3, |s| s.variant = Variant::All);
    // All equal: the oldest. It pays two.
    assert_eq!(c.choose(0b111, &moment(1), |_| Class::Alu), 0);
    c.issued(0, 0b111, 1);
    assert_eq!(c.choose(0b111, &moment(2), |_| Class::Alu), 1);
    // 2 is replayed until cycle 5: it gains although it could not issue.
    c.replay(2, 5);
    c.issued(1, 0b011, 2);
    assert_eq!([0, 1, 2].map(|b| c.ledger.credit(b)), [-1, -1, 2]);
    assert!(c.weight(2, &moment(4), Class::Alu) > c.weight(2, &moment(5), Class::Alu), "its first bit");
    c.issued(0, 0b011, 5);
    assert_eq!([0, 1, 2].map(|b| c.ledger.credit(b)), [-2, 0, 2], "the replay is over");
}

/// A history: who could issue in each cycle, in turns with starts and ends.
fn histories() -> impl Strategy<Value = Vec<(u64, u64, u8)>> {
    prop::collection::vec((any::<u64>(), any::<u64>(), any::<u8>()), 1..300)
}

fn variants() -> impl Strategy<Value = Variant> {
    prop::sample::select(vec![Variant::All, Variant::Next, Variant::Half])
}

proptest! {
    #[test]
    fn credits_and_fund_sum_to_zero(
        variant in variants(), guard in any::<bool>(), bits in 2u32..10, history in histories(),
    ) {
        let mut l = ledger(0, |s| (s.variant, s.guard, s.bits) = (variant, guard, bits));
        let mut live = 0u64;
        let (low, high) = (-(1i32 << (bits - 1)), (1i32 << (bits - 1)) - 1);
        for (a, b, what) in history {
            let bit = (a % 24) as u32;
            match what % 8 {
                0 | 1 if live >> bit & 1 == 0 => {
                    l.add(bit);
                    live |= 1 << bit;
                }
                2 if live >> bit & 1 != 0 => {
                    l.remove(bit);
                    live &= !(1 << bit);
                }
                _ if live != 0 => {
                    let able = live & (a | b);
                    let bit = (live & b).trailing_zeros().min(63);
                    if live >> bit & 1 != 0 {
                        l.issued(bit, able | 1 << bit);
                    }
                }
                _ => {}
            }
            prop_assert_eq!(l.sum(), 0);
            prop_assert!(Bits(live).all(|b| (low..=high).contains(&l.credit(b))));
        }
    }

    /// A warp that can issue all the time does so, whatever the others do.
    #[test]
    fn no_warp_starves(
        variant in prop::sample::select(vec![Variant::All, Variant::Next, Variant::Half, Variant::Halving]),
        form in prop::sample::select(vec![Form::Packed, Form::Additive]),
        bits in 4u32..16,
        waiting in 0u32..16,
        history in prop::collection::vec((any::<u64>(), 0u64..16, any::<bool>()), 4000),
    ) {
        let mut c = credit(16, |s| (s.variant, s.weight, s.bits, s.patience) = (variant, form, bits, 64));
        let mut waits = 0;
        let mut ctas = 1;
        for (now, (able, older, granted)) in history.into_iter().enumerate() {
            let able = able & 0xffff | 1 << waiting;
            // Others have the grant and are of older CTAs.
            ctas += older;
            let value = if granted { able & !(1 << waiting) } else { 0 };
            let m = Moment {
                now: now as u64,
                ctas,
                granted: Granted { value, tile_phase: value },
                newest: 15,
            };
            let bit = c.choose(able, &m, |_| Class::Alu);
            prop_assert!(able >> bit & 1 != 0);
            c.issued(bit, able, now as u64);
            waits = if bit == waiting { 0 } else { waits + 1 };
            // Several can be overdue at a time.
            prop_assert!(waits <= 64 + 16, "{waits}");
        }
    }
}
