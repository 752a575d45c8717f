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

/// An interpolated sum as its part above bit k0 and the k0 bits below.
struct Sum {
    high: i32,
    low: u32,
}

/// `x` feeds the linear term and `square_of` (17 bits) the squarer.
#[inline(always)]
fn interpolate<const N: usize, const K0: u32, const K2: u32, const BIAS: i32>(
    table: &Table<N>,
    segment: u32,
    x: u32,
    square_of: u32,
) -> Sum {
    let segment = segment as usize & (N - 1);
    let slope = table.slope[segment];
    let linear = slope as i32 >> 15;
    let quadratic = (slope << 17) as i32 >> 17;
    let small = BIAS + linear * (x & 7) as i32 + ((quadratic * square(square_of) as i32) << K2);
    let middle = linear * (x >> 3) as i32 + (small >> 3);
    let high = table.constant[segment] as i32 + (middle >> (K0 - 3));
    let low = (middle as u32) << 3 | small as u32 & 7;
    Sum { high, low: low & ((1 << K0) - 1) }
}

/// A non-negative value, an integer of at most 53 bits with `fraction_bits` fraction bits, cut to an f32.
#[inline(always)]
fn normalise(value: f64, fraction_bits: u32) -> u32 {
    let bits = (value.to_bits() >> 29) as u32;
    let rebased = bits.wrapping_sub((1023 - 127 + fraction_bits) << 23);
    if value == 0.0 { 0 } else { rebased }
}

#[inline(always)]
fn exponent(a: u32) -> i32 {
    (a >> 23 & 0xff) as i32
}

#[inline(always)]
fn is_zero_or_denormal(a: u32) -> bool {
    a & INFINITY == 0
}

/// 1/1.m in units of 2^-24, from 2^23 + 1 to 2^24.
#[inline(always)]
fn rcp_fraction(m: u32) -> i32 {
    let x = m & 0xffff;
    interpolate::<128, 13, 0, 2023>(&RCP, m >> 16, x, x << 1).high >> 2
}

/// 1/sqrt(1.m * 2^odd) in units of 2^-24, from 2^23 + 1 to 2^24.
#[inline(always)]
fn rsq_fraction(odd: u32, m: u32) -> i32 {
    let x = m & 0x1_ffff;
    let v = interpolate::<128, 14, 2, -1>(&RSQ, odd << 6 | m >> 17, x, x).high >> 2;
    // One is exact; the interpolation alone would fall one short.
    if odd | m == 0 { 1 << 24 } else { v }
}

/// 1/x.
#[inline(always)]
pub fn rcp(a: u32) -> u32 {
    let magnitude = a & !SIGN;
    let v = rcp_fraction(a & FRACTION);
    // 2^(-1-e) * v: the hidden bit of v adds one to the exponent.
    let r = ((252 - exponent(a)) << 23) + v;
    let r = if r < HIDDEN as i32 { 0 } else { r as u32 };
    let r = if is_zero_or_denormal(a) { INFINITY } else { r };
    let r = if magnitude >= INFINITY { 0 } else { r };
    let r = r | (a & SIGN);
    if magnitude > INFINITY { NAN } else { r }
}

/// 1/sqrt(x).
#[inline(always)]
pub fn rsq(a: u32) -> u32 {
    let e = exponent(a) - 127;
    let odd = e & 1;
    let v = rsq_fraction(odd as u32, a & FRACTION);
    let r = (((125 - (e >> 1)) << 23) + v) as u32;
    let r = if a == INFINITY { 0 } else { r };
    let r = if is_zero_or_denormal(a) { INFINITY | (a & SIGN) } else { r };
    let nan = (a & !SIGN > INFINITY) | ((a & SIGN != 0) & !is_zero_or_denormal(a));
    if nan { NAN } else { r }
}

/// sqrt(x).
#[inline(always)]
pub fn sqrt(a: u32) -> u32 {
    let e = exponent(a) - 127;
    let odd = (e & 1) as u32;
    let x = a & 0x1_ffff;
    let segment = odd << 6 | (a & FRACTION) >> 17;
    let v = interpolate::<128, 15, 1, -1>(&SQRT, segment, x << odd, x).high >> 2;
    let r = (((126 + (e >> 1)) << 23) + v) as u32;
    let r = if a == INFINITY { INFINITY } else { r };
    let r = if is_zero_or_denormal(a) { a & SIGN } else { r };
    let nan = (a & !SIGN > INFINITY) | ((a & SIGN != 0) & !is_zero_or_denormal(a));
    if nan { NAN } else { r }
}

/// 2^x.
#[inline(always)]
pub fn ex2(a: u32) -> u32 {
    let significand = (a & FRACTION) | HIDDEN;
    let e = exponent(a) - 127;
    // |x| * 2^23 without the bits below; from 256 up anything large does.
    let left = significand << e.clamp(0, 8);
    let right = significand >> (-e).clamp(0, 31);
    let fixed = if e >= 0 { left } else { right };
    let (n, fraction) = ((fixed >> 23) as i32, fixed & FRACTION);
    let negative = a & SIGN != 0;
    // The floor of a negative number by ones' complement, so its fraction is one step low.
    let complement = negative & (fraction != 0);
    let n = if negative { -n } else { n } - complement as i32;
    let fraction = if complement { fraction ^ FRACTION } else { fraction };
    let x = fraction & 0x1_ffff;
    let v = interpolate::<64, 13, 0, 6114>(&EX2, fraction >> 17, x, x).high >> 2;
    let r = (((n + 126) << 23).wrapping_add(v)) as u32;
    let r = if n > 127 { INFINITY } else { r };
    let r = if n < -126 { 0 } else { r };
    if a & !SIGN > INFINITY { NAN } else { r }
}

/// log2(x).
#[inline(always)]
pub fn lg2(a: u32) -> u32 {
    let x = a & 0x1_ffff;
    let sum = interpolate::<64, 12, 1, 837>(&LG2, (a & FRACTION) >> 17, x, x);
    // In units of 2^-36; the sum's two lowest bits are dropped.
    let value =
        (exponent(a) - 127) as f64 * (1u64 << 36) as f64 + sum.high as f64 * 1024.0 + (sum.low >> 2) as f64;
    let negative = value < 0.0;
    // Ones' complement again.
    let magnitude = if negative { -1.0 - value } else { value };
    let r = normalise(magnitude, 36) | if negative { SIGN } else { 0 };
    let r = if a == ONE { 0 } else { r };
    let r = if a == INFINITY { INFINITY } else { r };
    let r = if is_zero_or_denormal(a) { INFINITY | SIGN } else { r };
    let nan = (a & !SIGN > INFINITY) | ((a & SIGN != 0) & !is_zero_or_denormal(a));
    if nan { NAN } else { r }
}

/// sin and cos of an angle in revolutions.
#[inline(always)]
fn sin_or_cos(a: u32, cos: bool) -> u32 {
    let significand = (a & FRACTION) | HIDDEN;
    let e = exponent(a) - 125;
    // |t| * 2^25 without whole revolutions.
    let left = significand << e.clamp(0, 25);
    let right = significand >> (-e).clamp(0, 31);
    let fixed = if e >= 0 { left } else { right };
    let quadrant = (fixed >> 23) + cos as u32;
    let sign = if cos { 0 } else { a & SIGN };
    let fraction = fixed & FRACTION;
    let fraction = if quadrant & 1 != 0 { fraction ^ FRACTION } else { fraction };
    let x = fraction & 0x1_ffff;
    let sum = interpolate::<64, 12, 0, 0>(&SIN, fraction >> 17, x, x);
    let r = normalise(sum.high as f64 * 4096.0 + sum.low as f64, 37);
    let r = r | (sign ^ (quadrant << 30 & SIGN));
    if a & INFINITY == INFINITY { NAN } else { r }
}

/// sin(2 pi x).
#[inline(always)]
pub fn sin(a: u32) -> u32 {
    sin_or_cos(a, false)
}

/// cos(2 pi x).
#[inline(always)]
pub fn cos(a: u32) -> u32 {
    sin_or_cos(a, true)
}

/// tanh(x).
#[inline(always)]
pub fn tanh(a: u32) -> u32 {
    let magnitude = a & !SIGN;
    let e = exponent(a) - 127;
    let binade = (e + 8).clamp(0, 10) as usize & 15;
    let segment_bits = TANH_BINADES[1][binade];
    let m = a & FRACTION;
    let segment = TANH_BINADES[0][binade] + (m >> (23 - segment_bits));
    let x = (m & (FRACTION >> segment_bits)) >> (6 - segment_bits);
    let sum = interpolate::<64, 15, 1, 0>(&TANH, segment, x, x);
    let r = normalise(sum.high as f64 * 32768.0 + sum.low as f64, TANH_BINADES[2][binade]);
    let r = if e < -8 { magnitude } else { r };
    let r = if e >= 3 { ONE } else { r };
    let r = r | (a & SIGN);
    if magnitude > INFINITY { NAN } else { r }
}

const HIGH_INFINITY: u32 = 0x7ff0_0000;

/// High word of 1/x for the high word of an f64; the low word is ignored and zero in the result.
#[inline(always)]
pub fn rcp64h(a: u32) -> u32 {
    let magnitude = a & !SIGN;
    let field = (magnitude >> 20) as i32;
    let v = rcp_fraction((a & 0x000f_ffff) << 3);
    // The cut of 23 fraction bits to 20 happens on the joined exponent and fraction.
    let r = ((2044 - field) << 20) + (v >> 3);
    let r = if r < 0x0010_0000 { 0 } else { r as u32 };
    let r = if field == 0 { HIGH_INFINITY } else { r };
    let r = if magnitude >= HIGH_INFINITY { 0 } else { r };
    let r = r | (a & SIGN);
    if magnitude > HIGH_INFINITY { NAN } else { r }
}

/// High word of 1/sqrt(x) for the high word of an f64; the low word is ignored and zero in the result.
#[inline(always)]
pub fn rsq64h(a: u32) -> u32 {
    let magnitude = a & !SIGN;
    let field = (magnitude >> 20) as i32;
    let e = field - 1023;
    let v = rsq_fraction((e & 1) as u32, (a & 0x000f_ffff) << 3);
    let r = (((1021 - (e >> 1)) << 20) + (v >> 3)) as u32;
    let r = if magnitude == HIGH_INFINITY { 0 } else { r };
    let r = if a & SIGN != 0 { NAN } else { r };
    let r = if field == 0 { HIGH_INFINITY | (a & SIGN) } else { r };
    if magnitude > HIGH_INFINITY { NAN } else { r }
}

/// Whole-warp forms: inlined into the caller, so that its target features apply.
macro_rules! lanes {
    ($($name:ident: $scalar:ident),* $(,)?) => {$(
        #[doc = concat!("[`", stringify!($scalar), "`] of 32 lanes.")]
        #[inline(always)]
        pub fn $name(d: &mut [u32; 32], a: &[u32; 32]) {
            for i in 0..32 {
                d[i] = $scalar(a[i]);
            }
        }
    )*};
}

lanes! {
    rcp_lanes: rcp, rsq_lanes: rsq, sqrt_lanes: sqrt, ex2_lanes: ex2, lg2_lanes: lg2, sin_lanes: sin, cos_lanes: cos,
    tanh_lanes: tanh, rcp64h_lanes: rcp64h, rsq64h_lanes: rsq64h,
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
