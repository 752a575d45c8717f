//! The fast paths against the exact soft core on random operands.

use arith::cvt::{self, FloatType};
use arith::half::HalfMode;
use arith::int::w32;
use arith::soft::{self, Format, Number, Overflow};
use arith::{Mode, Round, bf16, f16, fp32, fp64};
use proptest::prelude::*;

fn round() -> impl Strategy<Value = Round> {
    prop_oneof![Just(Round::Rn), Just(Round::Rz), Just(Round::Rm), Just(Round::Rp)]
}

/// Any bits, and often numbers of similar size, denormals, and few significant bits, where rounding is delicate.
fn single() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        (any::<u32>(), 120u32..134).prop_map(|(b, e)| b & 0x807f_ffff | e << 23),
        any::<u32>().prop_map(|b| b & 0x807f_ffff),
        (any::<u32>(), 0u32..24).prop_map(|(b, n)| b & (u32::MAX << n)),
        Just(0x7f7f_ffff),
        Just(0x7f80_0000),
    ]
}

fn double() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (any::<u64>(), 1016u64..1030).prop_map(|(b, e)| b & 0x800f_ffff_ffff_ffff | e << 52),
        any::<u64>().prop_map(|b| b & 0x800f_ffff_ffff_ffff),
        (any::<u64>(), 0u32..52).prop_map(|(b, n)| b & (u64::MAX << n)),
    ]
}

fn half_bits() -> impl Strategy<Value = u16> {
    prop_oneof![any::<u16>(), (any::<u16>(), 0u32..10).prop_map(|(b, n)| b & (u16::MAX << n))]
}

fn pack(format: Format, number: Number, round: Round, nan: u64) -> u64 {
    soft::pack(format, number, round, Overflow::Round, nan)
}

fn f32_of(number: Number, round: Round) -> u32 {
    pack(soft::F32, number, round, fp32::NAN as u64) as u32
}

fn n32(a: u32) -> Number {
    soft::unpack(soft::F32, a as u64)
}

/// A denormal operand as `ftz` reads it.
fn flushed(format: Format, a: u64) -> Number {
    let exponent = format.infinity();
    soft::unpack(format, if a & exponent == 0 { a & format.sign_bit() } else { a })
}

/// A result under `ftz`: zero if it is below the normal numbers when rounded to their precision, by a format with more
/// exponent bits.
fn flush_result(format: Format, number: Number, round: Round, nan: u64) -> u64 {
    let wide = Format { exponent_bits: format.exponent_bits + 3, ..format };
    let rounded = pack(wide, number, round, 0) & (wide.sign_bit() - 1);
    let smallest = ((wide.bias() + format.min_exponent()) as u64) << format.fraction_bits;
    let r = pack(format, number, round, nan);
    if rounded < smallest && r != nan { r & format.sign_bit() } else { r }
}

/// The exact fused result of a 16-bit format.
fn fma16(format: Format, a: u16, b: u16, c: u16) -> u16 {
    let [a, b, c] = [a, b, c].map(|x| soft::unpack(format, x as u64));
    pack(format, soft::add(soft::mul(a, b), c, Round::Rn), Round::Rn, 0x7fff) as u16
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60_000))]

    #[test]
    fn f32_arithmetic(a in single(), b in single(), c in single(), r in round()) {
        let mode = Mode::round(r);
        let (x, y, z) = (n32(a), n32(b), n32(c));
        prop_assert_eq!(fp32::add(a, b, mode), f32_of(soft::add(x, y, r), r));
        prop_assert_eq!(fp32::mul(a, b, mode), f32_of(soft::mul(x, y), r));
        prop_assert_eq!(fp32::fma(a, b, c, mode), f32_of(soft::add(soft::mul(x, y), z, r), r));
        prop_assert_eq!(fp32::div(a, b, mode), f32_of(soft::div(x, y), r));
        prop_assert_eq!(fp32::rcp(a, mode), f32_of(soft::div(n32(fp32::ONE), x), r));
        prop_assert_eq!(fp32::sqrt(a, mode), f32_of(soft::sqrt(x), r));
    }

    #[test]
    fn f32_flushed(a in single(), b in single(), c in single(), e in 0u32..60, r in round()) {
        let mode = Mode::round(r).ftz();
        // An exponent that brings the product near the smallest normal number.
        let near = (b & 0x807f_ffff) | (100 + e).saturating_sub(a >> 23 & 0xff).min(254) << 23;
        let of = |n| flush_result(soft::F32, n, r, fp32::NAN as u64) as u32;
        for b in [b, near] {
            let [x, y, z] = [a, b, c].map(|v| flushed(soft::F32, v as u64));
            prop_assert_eq!(fp32::mul(a, b, mode), of(soft::mul(x, y)));
            prop_assert_eq!(fp32::mul_scaled(a, b, -1, mode), of(soft::scale(soft::mul(x, y), -1)));
            prop_assert_eq!(fp32::fma(a, b, c, mode), of(soft::add(soft::mul(x, y), z, r)));
            prop_assert_eq!(fp32::div(a, b, mode), of(soft::div(x, y)));
            prop_assert_eq!(fp32::add(a, b, mode), of(soft::add(x, y, r)));
        }
    }

    #[test]
    fn f16_flushed(a in half_bits(), b in half_bits(), c in half_bits()) {
        let mode = HalfMode { ftz: true, ..HalfMode::default() };
        let [x, y, z] = [a, b, c].map(|v| flushed(soft::F16, v as u64));
        let of = |n| flush_result(soft::F16, n, Round::Rn, 0x7fff) as u16;
        prop_assert_eq!(f16::mul(a, b, mode), of(soft::mul(x, y)));
        prop_assert_eq!(f16::fma(a, b, c, mode), of(soft::add(soft::mul(x, y), z, Round::Rn)));
        prop_assert_eq!(f16::add(a, b, mode), of(soft::add(x, y, Round::Rn)));
    }

    #[test]
    fn f32_scaled_product(a in single(), b in single(), power in -3i32..=3, r in round()) {
        let exact = soft::scale(soft::mul(n32(a), n32(b)), power);
        prop_assert_eq!(fp32::mul_scaled(a, b, power, Mode::round(r)), f32_of(exact, r));
    }

    #[test]
    fn f64_to_nearest(a in double(), b in double(), c in double()) {
        prop_assume!(![a, b, c].into_iter().any(fp64::is_nan));
        let [x, y, z] = [a, b, c].map(|v| soft::unpack(soft::F64, v));
        let f64_of = |n| pack(soft::F64, n, Round::Rn, fp64::NAN);
        prop_assert_eq!(fp64::add(a, b, Round::Rn), f64_of(soft::add(x, y, Round::Rn)));
        prop_assert_eq!(fp64::mul(a, b, Round::Rn), f64_of(soft::mul(x, y)));
        prop_assert_eq!(fp64::fma(a, b, c, Round::Rn), f64_of(soft::add(soft::mul(x, y), z, Round::Rn)));
        prop_assert_eq!(fp64::div(a, b, Round::Rn), f64_of(soft::div(x, y)));
        prop_assert_eq!(fp64::sqrt(a, Round::Rn), f64_of(soft::sqrt(x)));
    }

    #[test]
    fn half_arithmetic(a in half_bits(), b in half_bits(), c in half_bits()) {
        let mode = HalfMode::default();
        prop_assert_eq!(f16::fma(a, b, c, mode), fma16(soft::F16, a, b, c));
        prop_assert_eq!(f16::add(a, b, mode), fma16(soft::F16, a, f16::ONE, b));
        prop_assert_eq!(f16::mul(a, b, mode), fma16(soft::F16, a, b, (a ^ b) & 0x8000));
        prop_assert_eq!(bf16::fma(a, b, c, mode), fma16(soft::BF16, a, b, c));
        prop_assert_eq!(bf16::add(a, b, mode), fma16(soft::BF16, a, bf16::ONE, b));
        prop_assert_eq!(bf16::mul(a, b, mode), fma16(soft::BF16, a, b, (a ^ b) & 0x8000));
    }

    #[test]
    fn narrowing(a in single(), d in double(), r in round()) {
        let half = |format| pack(format, n32(a), r, 0x7fff) as u16;
        prop_assert_eq!(f16::from_f32(a, r), half(soft::F16));
        prop_assert_eq!(bf16::from_f32(a, r), half(soft::BF16));
        if !fp64::is_nan(d) {
            let exact = soft::unpack(soft::F64, d);
            prop_assert_eq!(cvt::f64_to_f32(d, r, false, false), f32_of(exact, r));
            prop_assert_eq!(
                cvt::float_to_float(d, FloatType::F16, FloatType::F64, r, false),
                pack(soft::F16, exact, r, 0)
            );
        }
    }

    #[test]
    fn division(a in any::<u32>(), b in any::<u32>(), n in 0u32..32, q in any::<u32>()) {
        // Small divisors, and dividends next to a multiple of the divisor.
        let b = (b >> n).max(1);
        for a in [a, q.wrapping_mul(b), q.wrapping_mul(b).wrapping_sub(1)] {
            prop_assert_eq!(w32::div_u(a, b), a / b);
            prop_assert_eq!(w32::rem_u(a, b), a % b);
            prop_assert_eq!(w32::div_s(a, b) as i32, (a as i32).wrapping_div(b as i32));
            prop_assert_eq!(w32::rem_s(a, b) as i32, (a as i32).wrapping_rem(b as i32));
        }
    }

    #[test]
    fn to_integers(a in single(), d in double(), r in round()) {
        let clamp = |n, min, max| soft::to_int(n, r, min, max).unwrap_or(0);
        let x = n32(a);
        prop_assert_eq!(cvt::f32_to_s32(a, r, false) as i32 as i128, clamp(x, i32::MIN as i128, i32::MAX as i128));
        prop_assert_eq!(cvt::f32_to_u32(a, r, false) as i128, clamp(x, 0, u32::MAX as i128));
        prop_assert_eq!(cvt::round_f32(a, r, false), f32_of(soft::to_integral(x, r), r));
        if !fp64::is_nan(d) {
            let x = soft::unpack(soft::F64, d);
            prop_assert_eq!(cvt::f64_to_s32(d, r) as i32 as i128, clamp(x, i32::MIN as i128, i32::MAX as i128));
            prop_assert_eq!(cvt::round_f64(d, r), pack(soft::F64, soft::to_integral(x, r), r, 0));
        }
    }
}

#[test]
fn f16_widens_exactly() {
    for a in 0..=u16::MAX {
        let exact = f32_of(soft::unpack(soft::F16, a as u64), Round::Rn);
        assert_eq!(cvt::f16_to_f32(a), exact, "{a:#x}");
    }
}
