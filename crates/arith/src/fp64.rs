//! f64 arithmetic on bit patterns: the host's operations when rounding to nearest, the soft core otherwise.
//!
//! f64 keeps NaN payloads. Of two NaN operands the second is the result, and `fma` prefers its second, then its third
//! (`div` takes the first: it is a sequence of instructions on the real machine). The negation and absolute-value operand modifiers leave NaN
//! operands alone: use [`neg_operand`] and [`abs_operand`] before the operation.

use crate::soft::{self, F64, Overflow};
use crate::{FCmp, FloatClass, Round};

/// The NaN that an invalid operation makes.
pub const NAN: u64 = 0xfff8_0000_0000_0000;
pub const INFINITY: u64 = 0x7ff0_0000_0000_0000;
pub const SIGN: u64 = 1 << 63;
pub const ONE: u64 = 0x3ff0_0000_0000_0000;
const QUIET: u64 = 1 << 51;

#[inline(always)]
pub const fn is_nan(a: u64) -> bool {
    a & !SIGN > INFINITY
}

/// A result made canonical: the last NaN operand made quiet, else the machine's own NaN, else `r`.
#[inline(always)]
fn with_nans<const N: usize>(r: u64, operands: [u64; N]) -> u64 {
    let mut r = if is_nan(r) { NAN } else { r };
    for x in operands {
        r = if is_nan(x) { x | QUIET } else { r };
    }
    r
}

#[inline(always)]
pub fn neg_operand(a: u64) -> u64 {
    if is_nan(a) { a } else { a ^ SIGN }
}

#[inline(always)]
pub fn abs_operand(a: u64) -> u64 {
    if is_nan(a) { a } else { a & !SIGN }
}

/// Clamps to [0, 1]; NaN and -0 give +0.
#[inline(always)]
pub fn saturate(a: u64) -> u64 {
    let x = f64::from_bits(a);
    let low = if x > 0.0 { a } else { 0 };
    if x > 1.0 { ONE } else { low }
}

fn number(a: u64) -> soft::Number {
    soft::unpack(F64, a)
}

fn pack(n: soft::Number, round: Round) -> u64 {
    soft::pack(F64, n, round, Overflow::Round, NAN)
}

#[inline(always)]
pub fn add(a: u64, b: u64, round: Round) -> u64 {
    let r = match round {
        Round::Rn => (f64::from_bits(a) + f64::from_bits(b)).to_bits(),
        _ => pack(soft::add(number(a), number(b), round), round),
    };
    with_nans(r, [a, b])
}

#[inline(always)]
pub fn sub(a: u64, b: u64, round: Round) -> u64 {
    add(a, neg_operand(b), round)
}

#[inline(always)]
pub fn mul(a: u64, b: u64, round: Round) -> u64 {
    let r = match round {
        Round::Rn => (f64::from_bits(a) * f64::from_bits(b)).to_bits(),
        _ => pack(soft::mul(number(a), number(b)), round),
    };
    with_nans(r, [a, b])
}

#[inline(always)]
pub fn fma(a: u64, b: u64, c: u64, round: Round) -> u64 {
    let r = match round {
        Round::Rn => f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)).to_bits(),
        _ => pack(soft::add(soft::mul(number(a), number(b)), number(c), round), round),
    };
    with_nans(r, [a, c, b])
}

#[inline(always)]
pub fn div(a: u64, b: u64, round: Round) -> u64 {
    let r = match round {
        Round::Rn => (f64::from_bits(a) / f64::from_bits(b)).to_bits(),
        _ => pack(soft::div(number(a), number(b)), round),
    };
    with_nans(r, [b, a])
}

#[inline(always)]
pub fn rcp(a: u64, round: Round) -> u64 {
    div(ONE, a, round)
}

#[inline(always)]
pub fn sqrt(a: u64, round: Round) -> u64 {
    let r = match round {
        Round::Rn => f64::from_bits(a).sqrt().to_bits(),
        _ => pack(soft::sqrt(number(a)), round),
    };
    with_nans(r, [a])
}

/// Integers in the order of the numbers, -0 below +0.
#[inline(always)]
fn order(a: u64) -> i64 {
    let a = a as i64;
    a ^ (((a >> 63) as u64) >> 1) as i64
}

#[inline(always)]
fn min_or_max(a: u64, b: u64, max: bool) -> u64 {
    let first = if max { order(a) >= order(b) } else { order(a) <= order(b) };
    let r = if first { a } else { b };
    let r = if is_nan(b) { a } else { r };
    let r = if is_nan(a) { b } else { r };
    if is_nan(a) & is_nan(b) { r | QUIET } else { r }
}

#[inline(always)]
pub fn min(a: u64, b: u64) -> u64 {
    min_or_max(a, b, false)
}

#[inline(always)]
pub fn max(a: u64, b: u64) -> u64 {
    min_or_max(a, b, true)
}

#[inline(always)]
pub fn cmp(a: u64, b: u64, cmp: FCmp) -> bool {
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    cmp.answer(x < y, x == y, is_nan(a) | is_nan(b))
}

/// PTX `abs`: a NaN is made quiet and keeps its sign.
#[inline(always)]
pub fn abs(a: u64) -> u64 {
    if is_nan(a) { a | QUIET } else { a & !SIGN }
}

/// PTX `neg`: a NaN is made quiet and keeps its sign.
#[inline(always)]
pub fn neg(a: u64) -> u64 {
    if is_nan(a) { a | QUIET } else { a ^ SIGN }
}

/// The magnitude of `b` with the sign of `a`.
#[inline(always)]
pub fn copysign(a: u64, b: u64) -> u64 {
    (a & SIGN) | (b & !SIGN)
}

#[inline(always)]
pub fn testp(a: u64, class: FloatClass) -> bool {
    let magnitude = a & !SIGN;
    let smallest_normal = 1u64 << 52;
    match class {
        FloatClass::Finite => magnitude < INFINITY,
        FloatClass::Infinite => magnitude == INFINITY,
        FloatClass::Number => magnitude <= INFINITY,
        FloatClass::NotANumber => magnitude > INFINITY,
        // Zeros count as normal.
        FloatClass::Normal => (magnitude < INFINITY) & ((magnitude >= smallest_normal) | (magnitude == 0)),
        FloatClass::Subnormal => (magnitude < smallest_normal) & (magnitude != 0),
    }
}
