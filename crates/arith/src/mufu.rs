//! The special-function unit, bit for bit: rcp, rsq, sqrt, lg2, ex2, sin, cos, tanh, and the f64 high-word forms.
//!
//! These are the bare machine operations: a denormal input counts as a zero of its sign and results are never denormal
//! (tanh passes denormals through). NaN in, canonical NaN out.
//!
//! Every function is one quadratic interpolation in exact integer arithmetic,
//!
//! ```text
//! sum = (C0 << k0) + bias + C1*x + ((C2*S(x)) << k2)
//! ```
//!
//! where only the squarer S drops partial products. The sum needs up to 42 bits; it is split so that 32-bit lanes
//! suffice: with C1*x = 8*C1*(x>>3) + C1*(x&7), everything below bit k0 stays in one 32-bit word and the carry out of
//! it joins C0. The results are the same integers.

use crate::fp32::{INFINITY, NAN, ONE, SIGN};
use crate::mufu_tables::{EX2, LG2, RCP, RSQ, SIN, SQRT, TANH, TANH_BINADES, Table};

const FRACTION: u32 = 0x007f_ffff;
const HIDDEN: u32 = 0x0080_0000;

/// The unit's truncated square of a 17-bit number: partial products below 2^19 do not exist. The upper eight bits are
/// squared exactly; each of the next seven adds its row of the array, cut at that column.
#[inline(always)]
fn square(x: u32) -> u32 {
    let high = x >> 9;
    let mut sum = (high * high) >> 1;
    let mut bit = 2;
    while bit <= 8 {
        let row = high >> (9 - bit);
        sum += if x >> bit & 1 != 0 { row } else { 0 };
        bit += 1;
    }
    sum
}

/// What an interpolation starts from: `x` feeds the linear term and `squared` (17 bits) the squarer.
struct Input {
    segment: u32,
    x: u32,
    squared: u32,
}

/// An interpolated sum as its part above bit k0 and the k0 bits below.
struct Sum {
    high: i32,
    low: u32,
}

/// The constants of a function's interpolation.
trait Interpolator<const N: usize> {
    const TABLE: &'static Table<N>;
    const K0: u32;
    const K2: u32;
    const BIAS: i32;

    fn input(a: u32) -> Input;
    fn output(a: u32, sum: Sum) -> u32;

    #[inline(always)]
    fn sum(Input { segment, x, squared }: Input) -> Sum {
        let segment = segment as usize & (N - 1);
        let slope = Self::TABLE.slope[segment];
        let linear = slope as i32 >> 15;
        let quadratic = (slope << 17) as i32 >> 17;
        let small = Self::BIAS + linear * (x & 7) as i32 + ((quadratic * square(squared) as i32) << Self::K2);
        let middle = linear * (x >> 3) as i32 + (small >> 3);
        let high = Self::TABLE.constant[segment] as i32 + (middle >> (Self::K0 - 3));
        let low = (middle as u32) << 3 | small as u32 & 7;
        Sum { high, low: low & ((1 << Self::K0) - 1) }
    }

    #[inline(always)]
    fn one(a: u32) -> u32 {
        Self::output(a, Self::sum(Self::input(a)))
    }

    #[inline(always)]
    fn lanes(d: &mut [u32; 32], a: &[u32; 32]) {
        for i in 0..32 {
            d[i] = Self::one(a[i]);
        }
    }
}

/// Declares the scalar and the whole-warp form of functions, and their interpolations. The whole-warp forms are inlined
/// into the caller, so that its target features apply.
macro_rules! functions {
    ($(
        $(#[$doc:meta])*
        $name:ident, $lanes:ident: $type:ident($table:ident, $size:literal, $k0:literal, $k2:literal, $bias:literal),
        $input:path, $output:path;
    )*) => {$(
        struct $type;

        impl Interpolator<$size> for $type {
            const TABLE: &'static Table<$size> = &$table;
            const K0: u32 = $k0;
            const K2: u32 = $k2;
            const BIAS: i32 = $bias;

            #[inline(always)]
            fn input(a: u32) -> Input {
                $input(a)
            }

            #[inline(always)]
            fn output(a: u32, sum: Sum) -> u32 {
                $output(a, sum)
            }
        }

        $(#[$doc])*
        #[inline(always)]
        pub fn $name(a: u32) -> u32 {
            $type::one(a)
        }

        #[doc = concat!("[`", stringify!($name), "`] of 32 lanes.")]
        #[inline(always)]
        pub fn $lanes(d: &mut [u32; 32], a: &[u32; 32]) {
            $type::lanes(d, a);
        }
    )*};
}

functions! {
    /// 1/x.
    rcp, rcp_lanes: Rcp(RCP, 128, 13, 0, 2023), rcp_input, rcp_output;
    /// 1/sqrt(x).
    rsq, rsq_lanes: Rsq(RSQ, 128, 14, 2, -1), rsq_input, rsq_output;
    /// sqrt(x).
    sqrt, sqrt_lanes: Sqrt(SQRT, 128, 15, 1, -1), sqrt_input, sqrt_output;
    /// 2^x.
    ex2, ex2_lanes: Ex2(EX2, 64, 13, 0, 6114), ex2_input, ex2_output;
    /// log2(x).
    lg2, lg2_lanes: Lg2(LG2, 64, 12, 1, 837), lg2_input, lg2_output;
    /// sin(2 pi x).
    sin, sin_lanes: Sin(SIN, 64, 12, 0, 0), sin_input, sin_output;
    /// cos(2 pi x).
    cos, cos_lanes: Cos(SIN, 64, 12, 0, 0), cos_input, cos_output;
    /// tanh(x).
    tanh, tanh_lanes: Tanh(TANH, 64, 15, 1, 0), tanh_input, tanh_output;
    /// High word of 1/x for the high word of an f64; the low word is ignored and zero in the result.
    rcp64h, rcp64h_lanes: Rcp64h(RCP, 128, 13, 0, 2023), rcp64h_input, rcp64h_output;
    /// High word of 1/sqrt(x) for the high word of an f64; the low word is ignored and zero in the result.
    rsq64h, rsq64h_lanes: Rsq64h(RSQ, 128, 14, 2, -1), rsq64h_input, rsq64h_output;
}

/// An integer of at most 2^30 as an f32 cut to 24 bits, times two to the minus `fraction_bits`; zero gives zero.
#[inline(always)]
#[allow(unsafe_code)]
fn cut(w: u32, fraction_bits: u32) -> u32 {
    let w = w.min(1 << 30);
    let nearest = w as i32 as f32;
    // SAFETY: the conversion gave a number from 0 to 2^30.
    let back = unsafe { nearest.to_int_unchecked::<i32>() };
    let bits = nearest.to_bits() - (back > w as i32) as u32;
    if w == 0 { 0 } else { bits.wrapping_sub(fraction_bits << 23) }
}

/// A sum of at most 37 bits, `low_bits` of them in its low part, with `fraction_bits` fraction bits, cut to an f32.
#[inline(always)]
fn normalise(sum: Sum, low_bits: u32, fraction_bits: u32) -> u32 {
    let high = sum.high as u32;
    // All of it where that fits in 30 bits; otherwise seven bits less, which leaves 24 or more.
    let large = high >> (30 - low_bits) != 0;
    let small = high << low_bits | sum.low;
    let w = if large { high << (low_bits - 7) | sum.low >> 7 } else { small };
    cut(w, if large { fraction_bits - 7 } else { fraction_bits })
}

#[inline(always)]
fn exponent(a: u32) -> i32 {
    (a >> 23 & 0xff) as i32
}

#[inline(always)]
fn is_zero_or_denormal(a: u32) -> bool {
    a & INFINITY == 0
}

#[inline(always)]
fn is_nan_or_negative(a: u32) -> bool {
    (a & !SIGN > INFINITY) | ((a & SIGN != 0) & !is_zero_or_denormal(a))
}

/// For functions of the fraction alone with 64 segments.
#[inline(always)]
fn by_fraction(m: u32) -> Input {
    let x = m & 0x1_ffff;
    Input { segment: (m & FRACTION) >> 17, x, squared: x }
}

/// 1/1.m has 128 segments, so its `x` has 16 bits.
#[inline(always)]
fn rcp_input(a: u32) -> Input {
    let x = a & 0xffff;
    Input { segment: (a & FRACTION) >> 16, x, squared: x << 1 }
}

#[inline(always)]
fn rcp_output(a: u32, sum: Sum) -> u32 {
    let magnitude = a & !SIGN;
    // 2^(-1-e) times the sum, which is 2^24 at most: its hidden bit adds one to the exponent.
    let r = ((252 - exponent(a)) << 23) + (sum.high >> 2);
    let r = if r < HIDDEN as i32 { 0 } else { r as u32 };
    let r = if is_zero_or_denormal(a) { INFINITY } else { r };
    let r = if magnitude >= INFINITY { 0 } else { r };
    let r = r | (a & SIGN);
    if magnitude > INFINITY { NAN } else { r }
}

/// 1/sqrt(1.m) and 1/sqrt(2 * 1.m) have 64 segments each.
#[inline(always)]
fn rsq_input(a: u32) -> Input {
    let input = by_fraction(a);
    Input { segment: is_odd(a) << 6 | input.segment, ..input }
}

/// One for odd exponents.
#[inline(always)]
fn is_odd(a: u32) -> u32 {
    !a >> 23 & 1
}

#[inline(always)]
fn rsq_output(a: u32, sum: Sum) -> u32 {
    // Of one the result is exact; the interpolation alone would fall one short.
    let v = if (a ^ HIDDEN) & (HIDDEN | FRACTION) == 0 { 1 << 24 } else { sum.high >> 2 };
    let r = (((125 - ((exponent(a) - 127) >> 1)) << 23) + v) as u32;
    let r = if a == INFINITY { 0 } else { r };
    let r = if is_zero_or_denormal(a) { INFINITY | (a & SIGN) } else { r };
    if is_nan_or_negative(a) { NAN } else { r }
}

/// The linear term of sqrt counts twice for odd exponents.
#[inline(always)]
fn sqrt_input(a: u32) -> Input {
    let input = rsq_input(a);
    Input { x: input.x << is_odd(a), ..input }
}

#[inline(always)]
fn sqrt_output(a: u32, sum: Sum) -> u32 {
    let r = (((126 + ((exponent(a) - 127) >> 1)) << 23) + (sum.high >> 2)) as u32;
    let r = if a == INFINITY { INFINITY } else { r };
    let r = if is_zero_or_denormal(a) { a & SIGN } else { r };
    if is_nan_or_negative(a) { NAN } else { r }
}

/// |x| in fixed point with 23 fraction bits, those below dropped; from 256 up anything large does.
#[inline(always)]
fn ex2_argument(a: u32) -> u32 {
    let significand = (a & FRACTION) | HIDDEN;
    let e = exponent(a) - 127;
    let left = significand << e.clamp(0, 8);
    let right = significand >> (-e).clamp(0, 31);
    if e >= 0 { left } else { right }
}

/// The floor of a negative number is by ones' complement, so its fraction is one step low.
#[inline(always)]
fn ex2_input(a: u32) -> Input {
    let fraction = ex2_argument(a) & FRACTION;
    let complement = (a & SIGN != 0) & (fraction != 0);
    by_fraction(if complement { fraction ^ FRACTION } else { fraction })
}

#[inline(always)]
fn ex2_output(a: u32, sum: Sum) -> u32 {
    let fixed = ex2_argument(a);
    let n = (fixed >> 23) as i32;
    let floor = -n - (fixed & FRACTION != 0) as i32;
    let n = if a & SIGN != 0 { floor } else { n };
    let r = (((n + 126) << 23).wrapping_add(sum.high >> 2)) as u32;
    let r = if n > 127 { INFINITY } else { r };
    let r = if n < -126 { 0 } else { r };
    if a & !SIGN > INFINITY { NAN } else { r }
}

#[inline(always)]
fn lg2_input(a: u32) -> Input {
    by_fraction(a)
}

#[inline(always)]
fn lg2_output(a: u32, sum: Sum) -> u32 {
    // The exponent and, in units of 2^-36, the fraction without the sum's two lowest bits. It can reach one.
    let e = exponent(a) - 127 + (sum.high >> 26);
    let negative = e < 0;
    // The magnitude of a negative number by ones' complement again.
    let flip = if negative { u32::MAX } else { 0 };
    let whole = e as u32 ^ flip;
    let high = (sum.high as u32 ^ flip) & 0x03ff_ffff;
    let low = (sum.low >> 2 ^ flip) & 0x3ff;
    let fraction = normalise(Sum { high: high as i32, low }, 10, 36);
    // From one up the bits below 2^-23 are beyond the result's 24.
    let mixed = cut(whole << 23 | high >> 3, 23);
    let r = if whole != 0 { mixed } else { fraction } | flip & SIGN;
    let r = if a == ONE { 0 } else { r };
    let r = if a == INFINITY { INFINITY } else { r };
    let r = if is_zero_or_denormal(a) { INFINITY | SIGN } else { r };
    if is_nan_or_negative(a) { NAN } else { r }
}

/// |t| in fixed point with 25 fraction bits; what is above them counts whole revolutions.
#[inline(always)]
fn angle(a: u32) -> u32 {
    let significand = (a & FRACTION) | HIDDEN;
    let e = exponent(a) - 125;
    let left = significand << e.clamp(0, 25);
    let right = significand >> (-e).clamp(0, 31);
    if e >= 0 { left } else { right }
}

/// Odd quadrants run backward, by ones' complement.
#[inline(always)]
fn quadrant_input(fixed: u32, quadrant: u32) -> Input {
    by_fraction(if quadrant & 1 != 0 { fixed ^ FRACTION } else { fixed })
}

#[inline(always)]
fn quadrant_output(a: u32, quadrant: u32, sign: u32, sum: Sum) -> u32 {
    let r = normalise(sum, 12, 37);
    let r = r | (sign ^ (quadrant << 30 & SIGN));
    if a & INFINITY == INFINITY { NAN } else { r }
}

#[inline(always)]
fn sin_input(a: u32) -> Input {
    quadrant_input(angle(a), angle(a) >> 23)
}

#[inline(always)]
fn sin_output(a: u32, sum: Sum) -> u32 {
    quadrant_output(a, angle(a) >> 23, a & SIGN, sum)
}

#[inline(always)]
fn cos_input(a: u32) -> Input {
    quadrant_input(angle(a), (angle(a) >> 23) + 1)
}

#[inline(always)]
fn cos_output(a: u32, sum: Sum) -> u32 {
    quadrant_output(a, (angle(a) >> 23) + 1, 0, sum)
}

#[inline(always)]
fn binade(a: u32) -> usize {
    (exponent(a) - 127 + 8).clamp(0, 10) as usize & 15
}

/// Each binade has its own segments; the fraction's lowest bits are not used.
#[inline(always)]
fn tanh_input(a: u32) -> Input {
    let segment_bits = TANH_BINADES[1][binade(a)];
    let m = a & FRACTION;
    let x = (m & (FRACTION >> segment_bits)) >> (6 - segment_bits);
    Input { segment: TANH_BINADES[0][binade(a)] + (m >> (23 - segment_bits)), x, squared: x }
}

#[inline(always)]
fn tanh_output(a: u32, sum: Sum) -> u32 {
    let magnitude = a & !SIGN;
    // Sums of up to 39 bits lose two first; those that have them are near the top, so nothing of the 24 is lost.
    let fraction_bits = TANH_BINADES[2][binade(a)];
    let long = fraction_bits > 38;
    let high = if long { sum.high >> 2 } else { sum.high };
    let low = if long { (sum.high as u32 & 3) << 13 | sum.low >> 2 } else { sum.low };
    let r = normalise(Sum { high, low }, 15, fraction_bits - if long { 2 } else { 0 });
    let r = if magnitude < (127 - 8) << 23 { magnitude } else { r };
    let r = if magnitude >= (127 + 3) << 23 { ONE } else { r };
    let r = r | (a & SIGN);
    if magnitude > INFINITY { NAN } else { r }
}

const HIGH_INFINITY: u32 = 0x7ff0_0000;

/// The exponent's parity and the fraction where f32 has them.
#[inline(always)]
fn narrow_high(a: u32) -> u32 {
    a << 3 & (HIDDEN | FRACTION)
}

#[inline(always)]
fn rcp64h_input(a: u32) -> Input {
    rcp_input(narrow_high(a))
}

#[inline(always)]
fn rcp64h_output(a: u32, sum: Sum) -> u32 {
    let magnitude = a & !SIGN;
    let field = (magnitude >> 20) as i32;
    // The cut of 23 fraction bits to 20 happens on the joined exponent and fraction.
    let r = ((2044 - field) << 20) + (sum.high >> 5);
    let r = if r < 0x0010_0000 { 0 } else { r as u32 };
    let r = if field == 0 { HIGH_INFINITY } else { r };
    let r = if magnitude >= HIGH_INFINITY { 0 } else { r };
    let r = r | (a & SIGN);
    if magnitude > HIGH_INFINITY { NAN } else { r }
}

#[inline(always)]
fn rsq64h_input(a: u32) -> Input {
    rsq_input(narrow_high(a))
}

#[inline(always)]
fn rsq64h_output(a: u32, sum: Sum) -> u32 {
    let magnitude = a & !SIGN;
    let field = (magnitude >> 20) as i32;
    let v = if narrow_high(a) == HIDDEN { 1 << 21 } else { sum.high >> 5 };
    let r = (((1021 - ((field - 1023) >> 1)) << 20) + v) as u32;
    let r = if magnitude == HIGH_INFINITY { 0 } else { r };
    let r = if a & SIGN != 0 { NAN } else { r };
    let r = if field == 0 { HIGH_INFINITY | (a & SIGN) } else { r };
    if magnitude > HIGH_INFINITY { NAN } else { r }
}

#[cfg(test)]
mod tests {
    /// The squarer as an array of partial products.
    fn square_by_partial_products(x: u64) -> u32 {
        let bit = |i: u32| x >> i & 1;
        let mut sum = 0;
        for i in 0..17 {
            for j in i..17 {
                let weight = if i == j { 2 * i } else { i + j + 1 };
                if weight >= 19 {
                    sum += (bit(i) & bit(j)) << weight;
                }
            }
        }
        (sum >> 19) as u32
    }

    #[test]
    fn squarer_is_the_truncated_array() {
        for x in 0..1 << 17 {
            assert_eq!(super::square(x), square_by_partial_products(x as u64), "x = {x:#x}");
        }
    }
}
