//! f32 arithmetic on bit patterns.
//!
//! Rounding to nearest uses the host's operations. The directed roundings compute in f64, exactly or rounded to odd
//! (a value with 53 bits rounded to odd still rounds correctly to 24 bits in any direction), and round once from there.
//! Everything is select-style code that vectorises.

use crate::{FCmp, FloatClass, MinMax, Mode, Round};

/// The NaN that every f32 operation returns.
pub const NAN: u32 = 0x7fff_ffff;
pub const INFINITY: u32 = 0x7f80_0000;
pub const SIGN: u32 = 0x8000_0000;
pub const ONE: u32 = 0x3f80_0000;

#[inline(always)]
pub const fn is_nan(a: u32) -> bool {
    a & !SIGN > INFINITY
}

/// A denormal becomes a zero of its sign when `ftz` is set.
#[inline(always)]
pub fn flush(a: u32, ftz: bool) -> u32 {
    if ftz & (a & INFINITY == 0) { a & SIGN } else { a }
}

/// Clamps to [0, 1]; NaN and -0 give +0.
#[inline(always)]
pub fn saturate(a: u32) -> u32 {
    let x = f32::from_bits(a);
    let low = if x > 0.0 { a } else { 0 };
    if x > 1.0 { ONE } else { low }
}

/// Whether to flush a result, told from the same operation on operands scaled so that the result is 2^24 times as
/// large: there it has its full precision. (Operands that overflow by the scaling have no denormal results.)
#[inline(always)]
pub(crate) fn is_tiny(scaled: u32) -> bool {
    scaled & !SIGN < (127 - 126 + 24) << 23
}

const SCALE: f32 = (1 << 24) as f32;

/// Canonical NaN, flush and saturation of a result.
#[inline(always)]
fn finish(r: u32, tiny: bool, mode: Mode) -> u32 {
    let r = if is_nan(r) { NAN } else { r };
    let r = if mode.ftz & tiny { r & SIGN } else { r };
    if mode.sat { saturate(r) } else { r }
}

/// The neighbour of `r` toward zero (`up` false) or away from zero, by its magnitude bits.
#[inline(always)]
fn step(r: u32, away: bool) -> u32 {
    if away { r.wrapping_add(1) } else { r.wrapping_sub(1) }
}

/// Rounds an f64 to f32 in any direction. A NaN gives some NaN.
#[inline(always)]
pub(crate) fn narrow(x: f64, round: Round) -> u32 {
    let nearest = x as f32;
    let bits = nearest.to_bits();
    let back = nearest as f64;
    let negative = x.is_sign_negative();
    // Which neighbour would be on the right side, were the nearest on the wrong one.
    let (wrong, away) = match round {
        Round::Rn => (false, false),
        Round::Rz => (back.abs() > x.abs(), false),
        Round::Rm => (back > x, negative),
        Round::Rp => (back < x, !negative),
    };
    if wrong { step(bits, away) } else { bits }
}

/// Rounds an f64 and its scaled copy.
#[inline(always)]
pub(crate) fn narrow_twice(x: f64, round: Round) -> (u32, u32) {
    (narrow(x, round), narrow(x * SCALE as f64, round))
}

/// The sum rounded to odd: exact sums unchanged, others with their last bit set.
#[inline(always)]
pub(crate) fn sum_to_odd(a: f64, b: f64) -> f64 {
    let s = a + b;
    let from_b = s - a;
    let error = (a - (s - from_b)) + (b - from_b);
    to_odd(s, error)
}

/// Turns a rounded value and the sign of what its rounding lost into the value rounded to odd.
#[inline(always)]
fn to_odd(rounded: f64, error: f64) -> f64 {
    let bits = rounded.to_bits();
    let inexact = (error > 0.0) | (error < 0.0);
    let grow = error.is_sign_negative() == rounded.is_sign_negative();
    let odd = if grow { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    let fix = inexact & (bits & 1 == 0) & (rounded.abs() < f64::INFINITY);
    f64::from_bits(if fix { odd } else { bits })
}

/// An exact zero sum of numbers that are not both zeros of one sign is -0 when rounding down.
#[inline(always)]
fn zero_sum(r: f64, a: f64, b: f64, round: Round) -> f64 {
    let down = matches!(round, Round::Rm) & (r == 0.0) & (a.is_sign_negative() | b.is_sign_negative());
    if down { -0.0 } else { r }
}

#[inline(always)]
fn widen(a: u32) -> f64 {
    f32::from_bits(a) as f64
}

#[inline(always)]
pub fn add(a: u32, b: u32, mode: Mode) -> u32 {
    let (a, b) = (flush(a, mode.ftz), flush(b, mode.ftz));
    let r = match mode.round {
        Round::Rn => (f32::from_bits(a) + f32::from_bits(b)).to_bits(),
        round => {
            let (x, y) = (widen(a), widen(b));
            narrow(zero_sum(sum_to_odd(x, y), x, y, round), round)
        }
    };
    // Sums this small are exact.
    finish(r, r & INFINITY == 0, mode)
}

#[inline(always)]
pub fn sub(a: u32, b: u32, mode: Mode) -> u32 {
    add(a, b ^ SIGN, mode)
}

#[inline(always)]
pub fn mul(a: u32, b: u32, mode: Mode) -> u32 {
    let (a, b) = (flush(a, mode.ftz), flush(b, mode.ftz));
    let (r, scaled) = match mode.round {
        Round::Rn => {
            let (x, y) = (f32::from_bits(a), f32::from_bits(b));
            ((x * y).to_bits(), (x * SCALE * y).to_bits())
        }
        round => narrow_twice(widen(a) * widen(b), round),
    };
    finish(r, is_tiny(scaled), mode)
}

/// `a * b * 2^power` with one rounding; the machine has powers -3 to 3.
#[inline(always)]
pub fn mul_scaled(a: u32, b: u32, power: i32, mode: Mode) -> u32 {
    let (a, b) = (flush(a, mode.ftz), flush(b, mode.ftz));
    let factor = f64::from_bits(((1023 + power) as u64) << 52);
    let (r, scaled) = narrow_twice(widen(a) * widen(b) * factor, mode.round);
    finish(r, is_tiny(scaled), mode)
}

#[inline(always)]
pub fn fma(a: u32, b: u32, c: u32, mode: Mode) -> u32 {
    let (a, b, c) = (flush(a, mode.ftz), flush(b, mode.ftz), flush(c, mode.ftz));
    let (r, scaled) = match mode.round {
        Round::Rn => {
            let (x, y, z) = (f32::from_bits(a), f32::from_bits(b), f32::from_bits(c));
            (x.mul_add(y, z).to_bits(), (x * SCALE).mul_add(y, z * SCALE).to_bits())
        }
        round => {
            let (product, c) = (widen(a) * widen(b), widen(c));
            narrow_twice(zero_sum(sum_to_odd(product, c), product, c, round), round)
        }
    };
    finish(r, is_tiny(scaled), mode)
}

#[inline(always)]
pub fn div(a: u32, b: u32, mode: Mode) -> u32 {
    let (a, b) = (flush(a, mode.ftz), flush(b, mode.ftz));
    let (r, scaled) = match mode.round {
        Round::Rn => {
            let (x, y) = (f32::from_bits(a), f32::from_bits(b));
            ((x / y).to_bits(), (x * SCALE / y).to_bits())
        }
        round => {
            let (x, y) = (widen(a), widen(b));
            let q = x / y;
            // What is left has the sign of the error times that of the divisor.
            let left = (-q).mul_add(y, x);
            let error = if y.is_sign_negative() { -left } else { left };
            narrow_twice(to_odd(q, error), round)
        }
    };
    finish(r, is_tiny(scaled), mode)
}

/// What the machine checks before it divides by Newton steps (measured on all pairs of exponents): the slow path is wanted
/// where an operand is no normal number or near an end of the range, or the quotient might be.
#[inline(always)]
pub fn div_check(a: u32, b: u32) -> bool {
    let (a, b) = ((a >> 23 & 0xff) as i32, (b >> 23 & 0xff) as i32);
    let fast = (25..=254).contains(&a) & (2..=251).contains(&b) & (-124..=126).contains(&(a - b));
    !fast
}

#[inline(always)]
pub fn rcp(a: u32, mode: Mode) -> u32 {
    div(ONE, a, mode)
}

#[inline(always)]
pub fn sqrt(a: u32, mode: Mode) -> u32 {
    let a = flush(a, mode.ftz);
    let r = match mode.round {
        Round::Rn => f32::from_bits(a).sqrt().to_bits(),
        round => {
            let x = widen(a);
            let root = x.sqrt();
            narrow(to_odd(root, (-root).mul_add(root, x)), round)
        }
    };
    finish(r, false, mode)
}

/// Integers in the order of the numbers, -0 below +0.
#[inline(always)]
fn order(a: u32) -> i32 {
    let a = a as i32;
    a ^ (((a >> 31) as u32) >> 1) as i32
}

#[inline(always)]
fn min_or_max(a: u32, b: u32, max: bool, options: MinMax) -> u32 {
    let (a, b) = (flush(a, options.ftz), flush(b, options.ftz));
    let sign = (a ^ b) & SIGN;
    let (x, y) = if options.xorsign_abs { (a & !SIGN, b & !SIGN) } else { (a, b) };
    let first = if max { order(x) >= order(y) } else { order(x) <= order(y) };
    let r = if first { x } else { y };
    let r = if is_nan(x) { y } else { r };
    let r = if is_nan(y) & !is_nan(x) { x } else { r };
    let nan = if options.nan { is_nan(x) | is_nan(y) } else { is_nan(x) & is_nan(y) };
    let r = if options.xorsign_abs { r | sign } else { r };
    if nan { NAN } else { r }
}

#[inline(always)]
pub fn min(a: u32, b: u32, options: MinMax) -> u32 {
    min_or_max(a, b, false, options)
}

#[inline(always)]
pub fn max(a: u32, b: u32, options: MinMax) -> u32 {
    min_or_max(a, b, true, options)
}

#[inline(always)]
pub fn cmp(a: u32, b: u32, cmp: FCmp, ftz: bool) -> bool {
    let (x, y) = (f32::from_bits(flush(a, ftz)), f32::from_bits(flush(b, ftz)));
    cmp.answer(x < y, x == y, is_nan(a) | is_nan(b))
}

/// PTX `abs`: a NaN becomes canonical. (The operand modifier clears the sign bit and nothing else.)
#[inline(always)]
pub fn abs(a: u32, ftz: bool) -> u32 {
    if is_nan(a) { NAN } else { flush(a, ftz) & !SIGN }
}

/// PTX `neg`: a NaN becomes canonical. (The operand modifier flips the sign bit and nothing else.)
#[inline(always)]
pub fn neg(a: u32, ftz: bool) -> u32 {
    if is_nan(a) { NAN } else { flush(a, ftz) ^ SIGN }
}

/// The magnitude of `b` with the sign of `a`.
#[inline(always)]
pub fn copysign(a: u32, b: u32) -> u32 {
    (a & SIGN) | (b & !SIGN)
}

#[inline(always)]
pub fn testp(a: u32, class: FloatClass) -> bool {
    let magnitude = a & !SIGN;
    match class {
        FloatClass::Finite => magnitude < INFINITY,
        FloatClass::Infinite => magnitude == INFINITY,
        FloatClass::Number => magnitude <= INFINITY,
        FloatClass::NotANumber => magnitude > INFINITY,
        // Zeros count as normal.
        FloatClass::Normal => (magnitude < INFINITY) & ((magnitude >= 0x0080_0000) | (magnitude == 0)),
        FloatClass::Subnormal => (magnitude < 0x0080_0000) & (magnitude != 0),
    }
}
