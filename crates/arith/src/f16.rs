//! f16 arithmetic on bit patterns. The forms with `_x2` take packed pairs.
//!
//! Operations run in f32: products of two f16 are exact there, sums have enough bits for a second rounding to be
//! harmless, and `fma` rounds its sum to odd first.

use crate::half::{HalfMode, NAN, SIGN, high, low, pack, packed_forms, shared_operations, sum_to_odd};
use crate::{FCmp, MinMax, Round, mufu};

shared_operations!(0x7c00, 0x3c00);

/// The exact f32 value; a NaN stays some NaN.
#[inline(always)]
pub fn to_f32(a: u16) -> f32 {
    let magnitude = (a as u32 & 0x7fff) << 13;
    // A denormal is what lies above 2^-14 once a hidden bit is put in its place.
    let denormal = (f32::from_bits(magnitude + (113 << 23)) - f32::from_bits(113 << 23)).to_bits();
    let value = if magnitude < 0x0080_0000 { denormal } else { magnitude + (112 << 23) };
    let special = if magnitude >= 0x0f80_0000 { 0x7f80_0000 } else { 0 };
    f32::from_bits(value | special | (a as u32 & 0x8000) << 16)
}

/// Rounds f32 bits to f16 in any direction; NaN gives the canonical one.
#[inline(always)]
pub fn from_f32(a: u32, round: Round) -> u16 {
    let negative = a >> 31 != 0;
    let magnitude = a & 0x7fff_ffff;
    // How far above the smallest normal exponent. Far below it the hidden bit does not matter, but zero has none.
    let above = (magnitude >> 23) as i32 - 113;
    let significand = (magnitude & 0x007f_ffff) | if magnitude != 0 { 0x0080_0000 } else { 0 };
    let shift = 13 + (-above).clamp(0, 18) as u32;
    let base = (above.max(0) as u32) << 10;
    let kept = significand >> shift;
    let ones = (1u32 << shift) - 1;
    let bias = match round {
        Round::Rn => (ones >> 1) + (kept & 1),
        Round::Rz => 0,
        Round::Rm => {
            if negative {
                ones
            } else {
                0
            }
        }
        Round::Rp => {
            if negative {
                0
            } else {
                ones
            }
        }
    };
    let r = base + ((significand + bias) >> shift);
    let overflow = match round {
        Round::Rn => 0x7c00,
        Round::Rz => 0x7bff,
        Round::Rm => {
            if negative {
                0x7c00
            } else {
                0x7bff
            }
        }
        Round::Rp => {
            if negative {
                0x7bff
            } else {
                0x7c00
            }
        }
    };
    let r = if r >= 0x7c00 { overflow } else { r };
    let r = if magnitude == 0x7f80_0000 { 0x7c00 } else { r };
    let r = r | (a >> 16 & 0x8000);
    (if magnitude > 0x7f80_0000 { NAN as u32 } else { r }) as u16
}

#[inline(always)]
pub fn add(a: u16, b: u16, mode: HalfMode) -> u16 {
    let r = to_f32(flush(a, mode.ftz)) + to_f32(flush(b, mode.ftz));
    finish(from_f32(r.to_bits(), Round::Rn), mode)
}

/// Rounds and flushes a product or fused sum. It is denormal if it is so when rounded to 11 bits without a lower limit
/// of the exponent, which a scaled copy tells.
#[inline(always)]
fn narrow(x: f32, mode: HalfMode) -> u16 {
    let r = from_f32(x.to_bits(), Round::Rn);
    let scaled = from_f32((x * 2048.0).to_bits(), Round::Rn);
    if mode.ftz & (scaled & !SIGN < (1 + 11) << 10) { r & SIGN } else { r }
}

#[inline(always)]
pub fn mul(a: u16, b: u16, mode: HalfMode) -> u16 {
    let r = to_f32(flush(a, mode.ftz)) * to_f32(flush(b, mode.ftz));
    finish(narrow(r, mode), mode)
}

#[inline(always)]
pub fn fma(a: u16, b: u16, c: u16, mode: HalfMode) -> u16 {
    let product = to_f32(flush(a, mode.ftz)) * to_f32(flush(b, mode.ftz));
    let r = sum_to_odd(product, to_f32(flush(c, mode.ftz)));
    finish(narrow(r, mode), mode)
}

/// `ex2.approx`: the f32 unit's result cut to f16.
#[inline(always)]
pub fn ex2(a: u16) -> u16 {
    let r = mufu::ex2(to_f32(a).to_bits());
    let cut = from_f32(r, Round::Rz);
    // Results of 2^16 and more are infinite although the cut would stay finite.
    if (r & 0x7fff_ffff >= 0x4780_0000) & (cut != NAN) { INFINITY } else { cut }
}

/// `tanh.approx`: the f32 unit's result cut to f16.
#[inline(always)]
pub fn tanh(a: u16) -> u16 {
    from_f32(mufu::tanh(to_f32(a).to_bits()), Round::Rz)
}
