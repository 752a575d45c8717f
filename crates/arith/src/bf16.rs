//! bf16 arithmetic on bit patterns. The forms with `_x2` take packed pairs.
//!
//! Sums run in f32, whose bits suffice for a second rounding to be harmless. Products can leave f32's range, so they
//! run in f64, exactly, and reach bf16 through an f32 rounded to odd.

use crate::fp32::sum_to_odd;
use crate::half::{HalfMode, NAN, SIGN, high, low, narrow_to_odd, pack, packed_forms, shared_operations};
use crate::{FCmp, MinMax, Round, mufu};

shared_operations!(0x7f80, 0x3f80);

/// The exact f32 value.
#[inline(always)]
pub fn to_f32(a: u16) -> f32 {
    f32::from_bits((a as u32) << 16)
}

/// Rounds f32 bits to bf16 in any direction; NaN gives the canonical one.
#[inline(always)]
pub fn from_f32(a: u32, round: Round) -> u16 {
    let negative = a >> 31 != 0;
    let bias = match round {
        Round::Rn => 0x7fff + (a >> 16 & 1),
        Round::Rz => 0,
        Round::Rm => {
            if negative {
                0xffff
            } else {
                0
            }
        }
        Round::Rp => {
            if negative {
                0
            } else {
                0xffff
            }
        }
    };
    let r = a.wrapping_add(bias) >> 16;
    (if a & 0x7fff_ffff > 0x7f80_0000 { NAN as u32 } else { r }) as u16
}

#[inline(always)]
pub fn add(a: u16, b: u16, mode: HalfMode) -> u16 {
    let r = to_f32(flush(a, mode.ftz)) + to_f32(flush(b, mode.ftz));
    finish(from_f32(r.to_bits(), Round::Rn), mode)
}

#[inline(always)]
fn product(a: u16, b: u16, mode: HalfMode) -> f64 {
    to_f32(flush(a, mode.ftz)) as f64 * to_f32(flush(b, mode.ftz)) as f64
}

#[inline(always)]
pub fn mul(a: u16, b: u16, mode: HalfMode) -> u16 {
    let r = narrow_to_odd(product(a, b, mode));
    finish(from_f32(r.to_bits(), Round::Rn), mode)
}

#[inline(always)]
pub fn fma(a: u16, b: u16, c: u16, mode: HalfMode) -> u16 {
    let c = to_f32(flush(c, mode.ftz)) as f64;
    let r = narrow_to_odd(sum_to_odd(product(a, b, mode), c));
    finish(from_f32(r.to_bits(), Round::Rn), mode)
}

/// `ex2.approx.ftz`: the f32 unit's result cut to bf16.
#[inline(always)]
pub fn ex2(a: u16) -> u16 {
    (mufu::ex2((a as u32) << 16) >> 16) as u16
}

/// `tanh.approx`: the f32 unit's result cut to bf16.
#[inline(always)]
pub fn tanh(a: u16) -> u16 {
    (mufu::tanh((a as u32) << 16) >> 16) as u16
}
