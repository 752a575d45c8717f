//! The sequences that stand in line for f32 and f64 division, reciprocal and square root: an approximation from the
//! special-function unit, Newton steps, and a check for operands where that is not exact, which go to a routine.

use super::Routine;
use super::code::Code;
use super::format::Format;
use ir::{FloatCmp, IntCmp, Op, Round, Scalar, Type, Value};

/// Makes the fast result and says when it does not hold.
pub struct Fast {
    pub result: Value,
    /// Where this holds, the routine decides.
    pub is_slow: Value,
}

/// a / b to nearest. The quotient is corrected once by its own remainder, which is exact where FCHK lets it pass.
pub fn divide_f32(c: &mut Code, a: Value, b: Value) -> Fast {
    let f = Format::F32;
    let (one, zero) = (c.word(1f32.to_bits()), c.word(0));
    let y = f.seed(c, false, b, zero);
    let is_slow = c.ins(Op::FDivCheck, &[a, b], Type::P);
    let minus_b = f.neg(c, b);
    let error = f.fma(c, Round::Rn, minus_b, y, one);
    let y = f.fma(c, Round::Rn, y, error, y);
    let q = f.fma(c, Round::Rn, a, y, zero);
    let rest = f.fma(c, Round::Rn, minus_b, q, a);
    Fast { result: f.fma(c, Round::Rn, y, rest, q), is_slow }
}

/// a / b to nearest. The check is of high words as if they were f32: the dividend is not so small that remainders are
/// denormal, the quotient neither denormal nor infinite nor NaN, and the divisor not so large that its reciprocal is denormal.
pub fn divide_f64(c: &mut Code, a: Value, b: Value) -> Fast {
    let f = Format::F64;
    let one = f.constant(c, 1f64.to_bits());
    let low = c.word(1);
    let y = f.seed(c, false, b, low);
    let y = reciprocal_f64(c, b, y, one);
    let minus_b = f.neg(c, b);
    let q = f.mul(c, a, y);
    let rest = f.fma(c, Round::Rn, minus_b, q, a);
    let result = f.fma(c, Round::Rn, y, rest, q);

    let (a_high, b_high, q_high) = (c.high(a), c.high(b), c.high(result));
    let (zero, least_dividend, least_quotient) = (c.word(0), c.word(0x0360_0000), c.word(0x0010_0000));
    let a_magnitude = c.fabs(Scalar::F32, a_high);
    let a_small = c.fcompare(Scalar::F32, FloatCmp::Lt, false, a_magnitude, least_dividend);
    // NaN where the divisor's high word is beyond the largest f32.
    let q_or_nan = c.fma(Scalar::F32, Round::Rn, zero, b_high, q_high);
    let q_magnitude = c.fabs(Scalar::F32, q_or_nan);
    let q_odd = c.fcompare(Scalar::F32, FloatCmp::Leu, false, q_magnitude, least_quotient);
    Fast { result, is_slow: c.or(q_odd, a_small) }
}

/// 1/x from a seed of 20 bits: two steps, the first of third order.
pub fn reciprocal_f64(c: &mut Code, x: Value, y: Value, one: Value) -> Value {
    let f = Format::F64;
    let minus_x = f.neg(c, x);
    let error = f.fma(c, Round::Rn, minus_x, y, one);
    let error = f.fma(c, Round::Rn, error, error, error);
    let y = f.fma(c, Round::Rn, y, error, y);
    let error = f.fma(c, Round::Rn, minus_x, y, one);
    f.fma(c, Round::Rn, y, error, y)
}

/// 1 / x for numbers whose reciprocal is normal: the unit's value corrected once, in the asked rounding.
pub fn reciprocal_f32(c: &mut Code, round: Round, ftz: bool, x: Value) -> Fast {
    let f = Format::F32;
    // The exponents 0 and 253 to 255 are out, by one comparison.
    let moved = c.add_number(x, 0x0180_0000);
    let exponent = c.and_number(moved, 0x7f80_0000);
    let is_slow = c.compare_number(IntCmp::Le, false, exponent, 0x01ff_ffff);
    let zero = c.word(0);
    let y = f.seed(c, false, x, zero);
    let minus_one = c.word((-1f32).to_bits());
    let excess = f.fma(c, if ftz { Round::Rn } else { round }, x, y, minus_one);
    let error = c.fneg_apart(excess);
    Fast { result: f.fma(c, round, y, error, y), is_slow }
}

/// 1 / x to nearest. The word that the check makes is also the low word of the seed, where any bits will do.
pub fn reciprocal_f64_nearest(c: &mut Code, x: Value) -> Fast {
    let f = Format::F64;
    let one = f.constant(c, 1f64.to_bits());
    let high = c.high(x);
    let moved = c.add_number(high, 0x0030_0402);
    let y = f.seed(c, false, x, moved);
    let magnitude = c.fabs(Scalar::F32, moved);
    let least = c.word(0x0040_0402);
    let is_slow = c.fcompare(Scalar::F32, FloatCmp::Lt, false, magnitude, least);
    Fast { result: reciprocal_f64(c, x, y, one), is_slow }
}

/// sqrt(x) where neither the steps nor the remainder become denormal.
pub fn root_f32(c: &mut Code, round: Round, x: Value) -> Fast {
    let moved = c.add_number(x, u64::from(0x0d00_0000u32.wrapping_neg()));
    let is_slow = c.compare_number(IntCmp::Gt, false, moved, 0x727f_ffff);
    Fast { result: root_steps_f32(c, round, x), is_slow }
}

/// sqrt(x) from x/sqrt(x), corrected by its remainder. Rounding toward zero needs the root itself to be nearest first.
pub fn root_steps_f32(c: &mut Code, round: Round, x: Value) -> Value {
    let f = Format::F32;
    let half = c.word(0.5f32.to_bits());
    let zero = c.word(0);
    let y = f.seed(c, true, x, zero);
    let mut root = f.mul(c, x, y);
    let slope = f.mul(c, y, half);
    let mut minus_root = match round {
        Round::Rn => f.neg(c, root),
        _ => c.fneg_apart(root),
    };
    if matches!(round, Round::Rz | Round::Rm) {
        let error = f.fma(c, Round::Rn, slope, minus_root, half);
        root = f.fma(c, Round::Rn, root, error, root);
        minus_root = c.fneg_apart(root);
    }
    let rest = f.fma(c, Round::Rn, root, minus_root, x);
    f.fma(c, round, rest, slope, root)
}

/// sqrt(x) to nearest where the high word is in the range of [`in_root_range_f64`].
pub fn root_f64_nearest(c: &mut Code, x: Value) -> Fast {
    let (moved, is_slow) = in_root_range_f64(c, x);
    Fast { result: root_steps_f64(c, Round::Rn, x, moved), is_slow }
}

/// A word made of the high word, and whether x is too small, infinite, NaN or negative for the steps.
pub fn in_root_range_f64(c: &mut Code, x: Value) -> (Value, Value) {
    let high = c.high(x);
    let moved = c.add_number(high, 0xfcb0_0000);
    let is_slow = c.compare_number(IntCmp::Ge, false, moved, 0x7ca0_0000);
    (moved, is_slow)
}

/// A third-order step for 1/sqrt(x), then the root and its correction; once more in the asked rounding, unless to nearest.
pub fn root_steps_f64(c: &mut Code, round: Round, x: Value, seed_low: Value) -> Value {
    let f = Format::F64;
    let (one, half, eighths) =
        (f.constant(c, 1f64.to_bits()), f.constant(c, 0.5f64.to_bits()), f.constant(c, 0.375f64.to_bits()));
    let y = f.seed(c, true, x, seed_low);
    let square = f.mul(c, y, y);
    let minus_square = f.neg(c, square);
    let error = f.fma(c, Round::Rn, x, minus_square, one);
    let series = f.fma(c, Round::Rn, error, eighths, half);
    let step = f.mul(c, y, error);
    let y = f.fma(c, Round::Rn, series, step, y);
    let root = f.mul(c, x, y);
    let y_high = c.high(y);
    let slope_high = c.add_number(y_high, 0xfff0_0000);
    let slope = f.with_high(c, y, slope_high);
    let root = correct_root_f64(c, Round::Rn, x, root, slope);
    if round == Round::Rn { root } else { correct_root_f64(c, round, x, root, slope) }
}

fn correct_root_f64(c: &mut Code, round: Round, x: Value, root: Value, slope: Value) -> Value {
    let f = Format::F64;
    let minus_root = f.neg(c, root);
    let rest = f.fma(c, Round::Rn, root, minus_root, x);
    f.fma(c, round, rest, slope, root)
}

/// Expands a floating-point operation in line, or says which routine to call for all operands.
pub fn expand(c: &mut Code, op: Op, args: &[Value]) -> Option<(Option<Fast>, Routine)> {
    let x = *args.first()?;
    Some(match op {
        Op::FDiv { ty, round, ftz } => {
            let format = Format::of(ty)?;
            let fast = match (format, round) {
                (Format::F32, Round::Rn) => Some(divide_f32(c, x, *args.get(1)?)),
                (Format::F64, Round::Rn) => Some(divide_f64(c, x, *args.get(1)?)),
                _ => None,
            };
            (fast, Routine::Divide { format, round, ftz })
        }
        Op::FRcp { ty, round, ftz } => {
            let format = Format::of(ty)?;
            let fast = match (format, round) {
                (Format::F32, _) => Some(reciprocal_f32(c, round, ftz, x)),
                (Format::F64, Round::Rn) => Some(reciprocal_f64_nearest(c, x)),
                _ => None,
            };
            (fast, Routine::Divide { format, round, ftz })
        }
        Op::FSqrt { ty, round, ftz } => {
            let format = Format::of(ty)?;
            let fast = match (format, round) {
                (Format::F32, _) => Some(root_f32(c, round, x)),
                (Format::F64, Round::Rn) => Some(root_f64_nearest(c, x)),
                _ => None,
            };
            (fast, Routine::Root { format, round, ftz })
        }
        _ => return None,
    })
}
