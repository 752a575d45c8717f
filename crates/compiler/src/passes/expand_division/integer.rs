//! Quotients and remainders of integers by Newton's iteration on an integer reciprocal.
//!
//! The reciprocal of the divisor, from the special-function unit and scaled to the width, is at most too small; one step
//! (32 bits) or two (64 bits) bring it so near that the quotient it gives is short by two at most, which two comparisons
//! repair. A divisor of zero gives all ones.

use super::code::Code;
use ir::{CvtRound, IntCmp, MufuFn, Op, Round, Scalar, Type, Value};

/// What is asked of two integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kind {
    pub signed: bool,
    pub remainder: bool,
}

/// Added to the bits of 1/d: a factor just under 2^32 (or 2^64), so that the scaled reciprocal is never too large.
const TIMES_2_32: u64 = 0x0fff_fffe;
const TIMES_2_64: u64 = 0x1fff_fffe;

/// The operands without their signs.
fn magnitudes(c: &mut Code, k: Kind, a: Value, b: Value) -> (Value, Value) {
    if k.signed { (c.abs(a), c.abs(b)) } else { (a, b) }
}

/// Adds one to the quotient and takes the divisor off the rest, where it still fits.
fn repair(c: &mut Code, q: Value, rest: Value, d: Value) -> (Value, Value) {
    let fits = c.compare(IntCmp::Ge, false, rest, d);
    let less = c.sub(rest, d);
    let more = c.add_number(q, 1);
    (c.select(fits, more, q), c.select(fits, less, rest))
}

/// Gives the result its sign, and all ones where the divisor is zero.
fn finish(c: &mut Code, k: Kind, a: Value, b: Value, magnitude: Value) -> Value {
    let mut result = magnitude;
    if k.signed {
        let decides = if k.remainder { a } else { c.xor(a, b) };
        let positive = c.compare_number(IntCmp::Ge, true, decides, 0);
        let minus = c.neg(result);
        result = c.select(positive, result, minus);
    }
    if c.func.const_of(b).is_some() {
        return result;
    }
    let divides = c.compare_number(IntCmp::Ne, false, b, 0);
    let ones = c.number(b, u64::MAX);
    c.select(divides, result, ones)
}

/// 32 bits, in line. A constant divisor saves its negation and the test for zero, as in the assembler's code.
pub fn divide_32(c: &mut Code, k: Kind, a: Value, b: Value) -> Value {
    let known = c.func.const_of(b);
    if known == Some(0) {
        return c.word(u32::MAX);
    }
    let (n, d) = magnitudes(c, k, a, b);
    let float = c.cvt(Scalar::F32, Scalar::U32, CvtRound::Rp, d);
    let unit = c.mufu(MufuFn::Rcp, float);
    let scaled = c.add_number(unit, TIMES_2_32);
    let x = c.cvt(Scalar::U32, Scalar::F32, CvtRound::Rzi, scaled);

    let minus_d = c.neg(d);
    let error = c.mul(minus_d, x);
    let step = c.mul_high(x, error);
    let x = c.add(step, x);
    let q = c.mul_high(x, n);
    let product = if known.is_some() {
        c.mul(q, minus_d)
    } else {
        let minus_q = c.neg(q);
        c.mul(d, minus_q)
    };
    let rest = c.add(product, n);
    let (q, rest) = repair(c, q, rest, d);
    let (q, rest) = repair(c, q, rest, d);
    finish(c, k, a, b, if k.remainder { rest } else { q })
}

/// 64 bits: the body of a routine.
pub fn divide_64(c: &mut Code, k: Kind, a: Value, b: Value) -> Value {
    let (n, d) = magnitudes(c, k, a, b);
    let float = c.cvt(Scalar::F32, Scalar::U64, CvtRound::Rp, d);
    let unit = c.mufu(MufuFn::Rcp, float);
    let scaled = c.add_number(unit, TIMES_2_64);
    let mut x = c.cvt(Scalar::U64, Scalar::F32, CvtRound::Rzi, scaled);
    for _ in 0..2 {
        let product = c.mul(x, d);
        let error = c.neg(product);
        let step = c.mul_high(x, error);
        x = c.add(x, step);
    }
    let q = c.mul_high(x, n);
    let product = c.mul(q, d);
    let rest = c.sub(n, product);
    let (q, rest) = repair(c, q, rest, d);
    let (q, rest) = repair(c, q, rest, d);
    finish(c, k, a, b, if k.remainder { rest } else { q })
}

/// 16 bits, extended to 32: the body of a routine. The quotient is one product of floats, since 24 bits are more than
/// enough: the reciprocal is made a little too large, by less than can reach the next integer.
pub fn divide_16(c: &mut Code, k: Kind, a: Value, b: Value) -> Value {
    let (n, d) = magnitudes(c, k, a, b);
    let float = c.cvt(Scalar::F32, Scalar::U32, CvtRound::Rn, d);
    let r = approximate_reciprocal(c, float);
    let r = c.add_number(r, 2);
    let dividend = c.cvt(Scalar::F32, Scalar::U32, CvtRound::Rz, n);
    let product = c.fmul(Scalar::F32, Round::Rz, dividend, r);
    let q = c.cvt(Scalar::U32, Scalar::F32, CvtRound::Rzi, product);
    let q = c.and_number(q, 0xffff);
    let magnitude = if k.remainder {
        let minus_q = c.neg(q);
        let product = c.mul(d, minus_q);
        c.add(product, n)
    } else {
        q
    };
    finish(c, k, a, b, magnitude)
}

/// `rcp.approx.f32` as it is everywhere: the unit between two scalings.
fn approximate_reciprocal(c: &mut Code, x: Value) -> Value {
    let magnitude = c.fabs(Scalar::F32, x);
    let (tiny, huge) = (c.word(f32::MIN_POSITIVE.to_bits()), c.word(0x7e80_0000));
    let is_tiny = c.fcompare(Scalar::F32, ir::FloatCmp::Ltu, false, magnitude, tiny);
    let is_huge = c.fcompare(Scalar::F32, ir::FloatCmp::Gt, false, magnitude, huge);
    let (up, one, down) = (c.word(0x4b80_0000), c.word(0x3f80_0000), c.word(0x3e80_0000));
    let scale = c.select(is_tiny, up, one);
    let scale = c.select(is_huge, down, scale);
    let scaled = c.fmul(Scalar::F32, Round::Rn, x, scale);
    let unit = c.mufu(MufuFn::Rcp, scaled);
    c.fmul(Scalar::F32, Round::Rn, scale, unit)
}

/// The operands of a 16-bit routine, and its result cut back.
pub fn extended(c: &mut Code, k: Kind, a: Value) -> Value {
    c.ins(if k.signed { Op::SignExt } else { Op::ZeroExt }, &[a], Type::B32)
}
