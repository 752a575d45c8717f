//! Division and square root for all operands: NaN, infinities, zeros, denormals, results that overflow or are denormal,
//! in every rounding. They are the slow paths of the sequences in line, and the only path where the assembler has none.
//!
//! Quotients: both operands are brought to [1, 2) by their exponents and divided there by the same steps as in line, where
//! nothing is denormal and the last step rounds as asked. The exponents are put back by integer arithmetic. A
//! result below the normal numbers is rounded anew, from the quotient cut off and whether anything was lost.

use super::code::Code;
use super::float::{in_root_range_f64, reciprocal_f64, root_steps_f32, root_steps_f64};
use super::format::{Format, SIGN};
use ir::{FloatCmp, IntCmp, Round, Terminator, Type, Value};

/// The steps of a division in [1, 2): the quotient is `near + reciprocal * rest`, rounded once.
struct Quotient {
    near: Value,
    reciprocal: Value,
    rest: Value,
}

impl Quotient {
    fn rounded(&self, c: &mut Code, f: Format, round: Round) -> Value {
        f.fma(c, round, self.reciprocal, self.rest, self.near)
    }
}

fn quotient(c: &mut Code, f: Format, round: Round, a: Value, b: Value) -> Quotient {
    let one = f.constant(c, f.power_of_two(0));
    let minus_b = f.neg(c, b);
    let low = c.word(1);
    let seed = f.seed(c, false, b, low);
    let y = match (f, round) {
        (Format::F64, _) => reciprocal_f64(c, b, seed, one),
        (Format::F32, Round::Rn) => {
            let error = f.fma(c, Round::Rn, minus_b, seed, one);
            f.fma(c, Round::Rn, seed, error, seed)
        }
        // Directed roundings bear one unit more.
        (Format::F32, _) => seed,
    };
    let q = f.mul(c, a, y);
    let rest = f.fma(c, Round::Rn, minus_b, q, a);
    let near = f.fma(c, Round::Rn, y, rest, q);
    let rest = f.fma(c, Round::Rn, minus_b, near, a);
    Quotient { near, reciprocal: y, rest }
}

/// The body of a / b.
pub fn divide(c: &mut Code, f: Format, round: Round, ftz: bool, a: Value, b: Value) {
    let done = c.create_block(&[f.ty()]);
    let ready = c.create_block(&[f.ty(), f.ty(), Type::B32, Type::B32]);
    let unusual = c.create_block(&[]);

    let (a_exponent, b_exponent) = (f.exponent(c, a), f.exponent(c, b));
    let a_ordinary = f.is_ordinary(c, a_exponent);
    let b_ordinary = f.is_ordinary(c, b_exponent);
    let both = c.and(a_ordinary, b_ordinary);
    c.branch(both, (ready, &[a, b, a_exponent, b_exponent]), (unusual, &[]));

    c.enter(unusual);
    let (value, is_special) = special_quotient(c, f, ftz, a, b);
    if ftz {
        // Denormals are zeros, so nothing else comes here.
        c.jump(done, &[value]);
    } else {
        let denormal = c.create_block(&[]);
        c.branch(is_special, (done, &[value]), (denormal, &[]));
        c.enter(denormal);
        let (a, a_exponent) = lifted(c, f, a, a_exponent);
        let (b, b_exponent) = lifted(c, f, b, b_exponent);
        c.jump(ready, &[a, b, a_exponent, b_exponent]);
    }

    let params = c.enter(ready);
    let (a_one, b_one) = (f.normalised(c, params[0]), f.normalised(c, params[1]));
    let parts = quotient(c, f, round, a_one, b_one);
    let q = parts.rounded(c, f, round);
    let difference = c.sub(params[2], params[3]);
    let q_exponent = f.exponent(c, q);
    let exponent = c.add(q_exponent, difference);
    let is_normal = f.is_ordinary(c, exponent);
    let (normal, extreme) = (c.create_block(&[]), c.create_block(&[]));
    c.branch(is_normal, (normal, &[]), (extreme, &[]));

    c.enter(normal);
    let result = f.scaled(c, q, difference);
    c.jump(done, &[result]);

    c.enter(extreme);
    let high = f.high(c, q);
    let sign = c.and_number(high, SIGN.into());
    let is_large = c.compare_number(IntCmp::Gt, true, exponent, 0);
    let large = overflowed(c, f, round, sign);
    let small = if ftz {
        f.of_high(c, sign)
    } else {
        let cut = parts.rounded(c, f, Round::Rz);
        let minus_b = f.neg(c, b_one);
        let left = f.fma(c, Round::Rn, minus_b, cut, a_one);
        let zero = f.constant(c, 0);
        let is_inexact = c.fcompare(f.scalar(), FloatCmp::Neu, false, left, zero);
        denormal(c, f, round, cut, difference, is_inexact)
    };
    let result = c.select(is_large, large, small);
    c.jump(done, &[result]);

    let result = c.enter(done)[0];
    c.terminate(Terminator::Return([result].into_iter().collect()));
}

/// The quotient of operands one of which is zero, infinite or NaN, and whether one is.
fn special_quotient(c: &mut Code, f: Format, ftz: bool, a: Value, b: Value) -> (Value, Value) {
    let ty = f.scalar();
    let (zero, infinity) = (f.constant(c, 0), f.constant(c, f.infinity_bits()));
    let is_nan = c.fcompare(ty, FloatCmp::Nan, false, a, b);
    let a_zero = c.fcompare(ty, FloatCmp::Eq, ftz, a, zero);
    let b_zero = c.fcompare(ty, FloatCmp::Eq, ftz, b, zero);
    let (a_magnitude, b_magnitude) = (c.fabs(ty, a), c.fabs(ty, b));
    let a_infinite = c.fcompare(ty, FloatCmp::Eq, false, a_magnitude, infinity);
    let b_infinite = c.fcompare(ty, FloatCmp::Eq, false, b_magnitude, infinity);

    let (a_high, b_high) = (f.high(c, a), f.high(c, b));
    let signs = c.xor(a_high, b_high);
    let sign = c.and_number(signs, SIGN.into());
    let signed_infinity = c.or_number(sign, f.infinity().into());
    let gives_infinity = c.or(a_infinite, b_zero);
    let gives_zero = c.or(a_zero, b_infinite);
    let high = c.select(gives_infinity, signed_infinity, sign);
    let value = f.of_high(c, high);

    let is_invalid = c.and(gives_infinity, gives_zero);
    let invalid = f.constant(c, f.invalid());
    let value = c.select(is_invalid, invalid, value);
    let value = match f {
        Format::F32 => c.select(is_nan, invalid, value),
        Format::F64 => {
            // The first NaN, made quiet.
            let a_nan = c.fcompare(ty, FloatCmp::Nan, false, a, a);
            let nan = c.select(a_nan, a, b);
            let quiet = quieted(c, nan);
            c.select(is_nan, quiet, value)
        }
    };
    let is_extreme = c.or(gives_infinity, gives_zero);
    (value, c.or(is_extreme, is_nan))
}

fn quieted(c: &mut Code, nan: Value) -> Value {
    c.or_number(nan, 1 << 51)
}

/// A denormal times a power of two that makes it normal, and the exponent field it would have had; others as they are.
fn lifted(c: &mut Code, f: Format, x: Value, exponent: Value) -> (Value, Value) {
    let n = f.fraction_bits() as i32 + 1;
    let factor = f.constant(c, f.power_of_two(n));
    let product = f.mul(c, x, factor);
    let product_exponent = f.exponent(c, product);
    let product_exponent = c.add_number(product_exponent, -i64::from(n) as u64);
    let is_denormal = c.compare_number(IntCmp::Eq, false, exponent, 0);
    (c.select(is_denormal, product, x), c.select(is_denormal, product_exponent, exponent))
}

/// Infinity, or the largest number where the rounding stops there.
fn overflowed(c: &mut Code, f: Format, round: Round, sign: Value) -> Value {
    let (infinity, largest) = (f.constant(c, f.infinity_bits()), f.constant(c, f.largest()));
    let magnitude = match round {
        Round::Rn => infinity,
        Round::Rz => largest,
        Round::Rm | Round::Rp => {
            let is_positive = c.compare_number(IntCmp::Eq, false, sign, 0);
            let is_away = if round == Round::Rp { is_positive } else { c.not(is_positive) };
            c.select(is_away, infinity, largest)
        }
    };
    let high = f.high(c, magnitude);
    let high = c.or(high, sign);
    f.with_high(c, magnitude, high)
}

/// `cut` times two to the `difference`, as a denormal. `cut` is a quotient in [1/2, 2) without what rounding would
/// have changed, `is_inexact` whether that was anything.
fn denormal(
    c: &mut Code,
    f: Format,
    round: Round,
    cut: Value,
    difference: Value,
    is_inexact: Value,
) -> Value {
    let fraction = c.and_number(cut, (1 << f.fraction_bits()) - 1);
    let significand = c.or_number(fraction, 1 << f.fraction_bits());
    let cut_exponent = f.exponent(c, cut);
    let exponent = c.add(cut_exponent, difference);
    let one = c.word(1);
    let count = c.sub(one, exponent);
    let kept = c.shr(significand, count);

    let rest_of = |c: &mut Code, count: Value| {
        let kept = c.shr(significand, count);
        let back = c.shl(kept, count);
        let differs = c.compare(IntCmp::Ne, false, back, significand);
        (kept, c.or(differs, is_inexact))
    };
    let high = f.high(c, cut);
    let sign = c.and_number(high, SIGN.into());
    let is_up = match round {
        Round::Rn => {
            // The first bit that goes decides; a tie goes to the even neighbour.
            let less = c.sub(count, one);
            let (with_half, below_half) = rest_of(c, less);
            let half = c.and_number(with_half, 1);
            let is_half = c.compare_number(IntCmp::Ne, false, half, 0);
            let last = c.and_number(kept, 1);
            let is_odd = c.compare_number(IntCmp::Ne, false, last, 0);
            let breaks = c.or(below_half, is_odd);
            c.and(is_half, breaks)
        }
        Round::Rz => c.constant(Type::P, 0),
        Round::Rm | Round::Rp => {
            let (_, is_lost) = rest_of(c, count);
            let cmp = if round == Round::Rp { IntCmp::Eq } else { IntCmp::Ne };
            let is_away = c.compare_number(cmp, false, sign, 0);
            c.and(is_lost, is_away)
        }
    };
    let more = c.add_number(kept, 1);
    let magnitude = c.select(is_up, more, kept);
    let high = f.high(c, magnitude);
    let high = c.or(high, sign);
    f.with_high(c, magnitude, high)
}

/// The body of sqrt(x). The f32 sequences and the nearest f64 one have dealt with ordinary numbers; the others come
/// here for all.
pub fn root(c: &mut Code, f: Format, round: Round, ftz: bool, x: Value) {
    let done = c.create_block(&[f.ty()]);
    // The number, and what to add to the exponent of its root.
    let ready = c.create_block(&[f.ty(), Type::B32]);
    if f == Format::F64 && round != Round::Rn {
        let unusual = c.create_block(&[]);
        let (_, is_slow) = in_root_range_f64(c, x);
        let none = c.word(0);
        c.branch(is_slow, (unusual, &[]), (ready, &[x, none]));
        c.enter(unusual);
    }
    let (value, is_special) = special_root(c, f, ftz, x);
    let small = c.create_block(&[]);
    c.branch(is_special, (done, &[value]), (small, &[]));

    c.enter(small);
    let half: i32 = match f {
        Format::F32 => 32,
        Format::F64 => 53,
    };
    let factor = f.constant(c, f.power_of_two(2 * half));
    let lifted = f.mul(c, x, factor);
    let back = c.word(half.wrapping_neg() as u32);
    c.jump(ready, &[lifted, back]);

    let params = c.enter(ready);
    let root = match f {
        Format::F32 => root_steps_f32(c, round, params[0]),
        Format::F64 => {
            let low = c.word(0);
            root_steps_f64(c, round, params[0], low)
        }
    };
    let result = f.scaled(c, root, params[1]);
    c.jump(done, &[result]);

    let result = c.enter(done)[0];
    c.terminate(Terminator::Return([result].into_iter().collect()));
}

/// The root of a zero, an infinity, a NaN or a negative number, and whether x is one.
fn special_root(c: &mut Code, f: Format, ftz: bool, x: Value) -> (Value, Value) {
    let ty = f.scalar();
    let (zero, infinity) = (f.constant(c, 0), f.constant(c, f.infinity_bits()));
    let is_zero = c.fcompare(ty, FloatCmp::Eq, ftz, x, zero);
    let is_infinite = c.fcompare(ty, FloatCmp::Eq, false, x, infinity);
    let high = f.high(c, x);
    let sign = c.and_number(high, SIGN.into());
    let signed_zero = f.of_high(c, sign);
    let invalid = f.constant(c, f.invalid());
    let nan = match f {
        Format::F32 => invalid,
        Format::F64 => {
            let is_nan = c.fcompare(ty, FloatCmp::Nan, false, x, x);
            let quiet = quieted(c, x);
            c.select(is_nan, quiet, invalid)
        }
    };
    let value = c.select(is_infinite, infinity, nan);
    let value = c.select(is_zero, signed_zero, value);
    // Neither zero, negative nor NaN.
    let is_positive = c.fcompare(ty, FloatCmp::Gt, ftz, x, zero);
    let is_not_positive = c.not(is_positive);
    (value, c.or(is_not_positive, is_infinite))
}
