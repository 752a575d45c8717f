//! Integer arithmetic on bit patterns. Signed functions carry an `s` in their names, unsigned ones a `u`; what is the
//! same for both carries neither. Sixteen-bit operations are 32-bit ones on extended operands, cut afterwards.

use crate::ICmp;
use crate::half::{high, low, pack};

macro_rules! width {
    ($module:ident, $u:ty, $s:ty, $wide_u:ty, $wide_s:ty, $bits:literal, $doc:literal, { $($division:tt)* }) => {
        #[doc = $doc]
        pub mod $module {
            use super::ICmp;

            #[inline(always)]
            pub fn add(a: $u, b: $u) -> $u {
                a.wrapping_add(b)
            }

            #[inline(always)]
            pub fn sub(a: $u, b: $u) -> $u {
                a.wrapping_sub(b)
            }

            #[inline(always)]
            pub fn mul_lo(a: $u, b: $u) -> $u {
                a.wrapping_mul(b)
            }

            #[inline(always)]
            pub fn mul_wide_u(a: $u, b: $u) -> $wide_u {
                a as $wide_u * b as $wide_u
            }

            #[inline(always)]
            pub fn mul_wide_s(a: $u, b: $u) -> $wide_u {
                (a as $s as $wide_s * b as $s as $wide_s) as $wide_u
            }

            #[inline(always)]
            pub fn mul_hi_u(a: $u, b: $u) -> $u {
                (mul_wide_u(a, b) >> $bits) as $u
            }

            #[inline(always)]
            pub fn mul_hi_s(a: $u, b: $u) -> $u {
                (mul_wide_s(a, b) >> $bits) as $u
            }

            #[inline(always)]
            pub fn mad_lo(a: $u, b: $u, c: $u) -> $u {
                mul_lo(a, b).wrapping_add(c)
            }

            #[inline(always)]
            pub fn mad_hi_u(a: $u, b: $u, c: $u) -> $u {
                mul_hi_u(a, b).wrapping_add(c)
            }

            #[inline(always)]
            pub fn mad_hi_s(a: $u, b: $u, c: $u) -> $u {
                mul_hi_s(a, b).wrapping_add(c)
            }

            #[inline(always)]
            pub fn mad_wide_u(a: $u, b: $u, c: $wide_u) -> $wide_u {
                mul_wide_u(a, b).wrapping_add(c)
            }

            #[inline(always)]
            pub fn mad_wide_s(a: $u, b: $u, c: $wide_u) -> $wide_u {
                mul_wide_s(a, b).wrapping_add(c)
            }

            /// `a + b` plus a carry, with the carry out.
            #[inline(always)]
            pub fn add_carry(a: $u, b: $u, carry: bool) -> ($u, bool) {
                let (sum, first) = a.overflowing_add(b);
                let (sum, second) = sum.overflowing_add(carry as $u);
                (sum, first | second)
            }

            /// `a + !b` plus a carry: subtraction. The carry out is set when nothing was borrowed.
            #[inline(always)]
            pub fn sub_carry(a: $u, b: $u, carry: bool) -> ($u, bool) {
                add_carry(a, !b, carry)
            }

            $($division)*

            #[inline(always)]
            pub fn min_u(a: $u, b: $u) -> $u {
                a.min(b)
            }

            #[inline(always)]
            pub fn max_u(a: $u, b: $u) -> $u {
                a.max(b)
            }

            #[inline(always)]
            pub fn min_s(a: $u, b: $u) -> $u {
                (a as $s).min(b as $s) as $u
            }

            #[inline(always)]
            pub fn max_s(a: $u, b: $u) -> $u {
                (a as $s).max(b as $s) as $u
            }

            /// `|a - b| + c`
            #[inline(always)]
            pub fn sad_u(a: $u, b: $u, c: $u) -> $u {
                a.abs_diff(b).wrapping_add(c)
            }

            #[inline(always)]
            pub fn sad_s(a: $u, b: $u, c: $u) -> $u {
                (a as $s).abs_diff(b as $s).wrapping_add(c)
            }

            #[inline(always)]
            pub fn abs(a: $u) -> $u {
                (a as $s).wrapping_abs() as $u
            }

            #[inline(always)]
            pub fn neg(a: $u) -> $u {
                a.wrapping_neg()
            }

            #[inline(always)]
            pub fn cmp_u(a: $u, b: $u, cmp: ICmp) -> bool {
                match cmp {
                    ICmp::Eq => a == b,
                    ICmp::Ne => a != b,
                    ICmp::Lt => a < b,
                    ICmp::Le => a <= b,
                    ICmp::Gt => a > b,
                    ICmp::Ge => a >= b,
                }
            }

            #[inline(always)]
            pub fn cmp_s(a: $u, b: $u, cmp: ICmp) -> bool {
                // Flipping the sign bits turns the signed order into the unsigned one.
                let flip = 1 << ($bits - 1);
                cmp_u(a ^ flip, b ^ flip, cmp)
            }
        }
    };
}

/// The quotient through f64, which vectorises: two 32-bit integers are too few bits for its rounding to reach the next
/// integer. Nothing in particular for a divisor of zero.
#[inline(always)]
fn quotient(a: u32, b: u32) -> u32 {
    let q = (a as f64 / b as f64).trunc();
    // The integer is in the low bits of the sum.
    (q + (1u64 << 52) as f64).to_bits() as u32
}

width!(w32, u32, i32, u64, i64, 32, "32-bit operands.", {
    /// Division; by zero gives all ones.
    #[inline(always)]
    pub fn div_u(a: u32, b: u32) -> u32 {
        if b == 0 { u32::MAX } else { super::quotient(a, b) }
    }

    /// Division toward zero; by zero gives all ones, and MIN / -1 is MIN.
    #[inline(always)]
    pub fn div_s(a: u32, b: u32) -> u32 {
        let q = super::quotient((a as i32).unsigned_abs(), (b as i32).unsigned_abs());
        let q = if (a ^ b) >> 31 != 0 { q.wrapping_neg() } else { q };
        if b == 0 { u32::MAX } else { q }
    }

    /// Remainder; by zero gives all ones.
    #[inline(always)]
    pub fn rem_u(a: u32, b: u32) -> u32 {
        if b == 0 { u32::MAX } else { a.wrapping_sub(div_u(a, b).wrapping_mul(b)) }
    }

    /// Remainder with the sign of `a`; by zero gives all ones.
    #[inline(always)]
    pub fn rem_s(a: u32, b: u32) -> u32 {
        if b == 0 { u32::MAX } else { a.wrapping_sub(div_s(a, b).wrapping_mul(b)) }
    }
});
width!(w64, u64, i64, u128, i128, 64, "64-bit operands.", {
    /// Division; by zero gives all ones.
    #[inline(always)]
    pub fn div_u(a: u64, b: u64) -> u64 {
        a.checked_div(b).unwrap_or(u64::MAX)
    }

    /// Division toward zero; by zero gives all ones, and MIN / -1 is MIN.
    #[inline(always)]
    pub fn div_s(a: u64, b: u64) -> u64 {
        if b == 0 { u64::MAX } else { (a as i64).wrapping_div(b as i64) as u64 }
    }

    /// Remainder; by zero gives all ones.
    #[inline(always)]
    pub fn rem_u(a: u64, b: u64) -> u64 {
        a.checked_rem(b).unwrap_or(u64::MAX)
    }

    /// Remainder with the sign of `a`; by zero gives all ones.
    #[inline(always)]
    pub fn rem_s(a: u64, b: u64) -> u64 {
        if b == 0 { u64::MAX } else { (a as i64).wrapping_rem(b as i64) as u64 }
    }
});

#[inline(always)]
pub fn add_sat_s32(a: u32, b: u32) -> u32 {
    (a as i32).saturating_add(b as i32) as u32
}

#[inline(always)]
pub fn sub_sat_s32(a: u32, b: u32) -> u32 {
    (a as i32).saturating_sub(b as i32) as u32
}

#[inline(always)]
pub fn mad_hi_sat_s32(a: u32, b: u32, c: u32) -> u32 {
    add_sat_s32(w32::mul_hi_s(a, b), c)
}

/// The exact product of the low 24 bits of both operands.
#[inline(always)]
pub fn mul24_wide_u(a: u32, b: u32) -> u64 {
    (a & 0x00ff_ffff) as u64 * (b & 0x00ff_ffff) as u64
}

#[inline(always)]
pub fn mul24_wide_s(a: u32, b: u32) -> u64 {
    let extend = |x: u32| ((x << 8) as i32 >> 8) as i64;
    (extend(a) * extend(b)) as u64
}

/// Bits 0 to 31 of the 48-bit product.
#[inline(always)]
pub fn mul24_lo(a: u32, b: u32, signed: bool) -> u32 {
    (if signed { mul24_wide_s(a, b) } else { mul24_wide_u(a, b) }) as u32
}

/// Bits 16 to 47 of the 48-bit product.
#[inline(always)]
pub fn mul24_hi(a: u32, b: u32, signed: bool) -> u32 {
    ((if signed { mul24_wide_s(a, b) } else { mul24_wide_u(a, b) }) >> 16) as u32
}

#[inline(always)]
fn byte(a: u32, i: u32, signed: bool) -> i32 {
    let b = (a >> (8 * i)) as u8;
    if signed { b as i8 as i32 } else { b as i32 }
}

#[inline(always)]
fn half_word(a: u32, i: u32, signed: bool) -> i32 {
    let h = (a >> (16 * i)) as u16;
    if signed { h as i16 as i32 } else { h as i32 }
}

/// Sum of four products of bytes, plus `c`.
#[inline(always)]
pub fn dp4a(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool) -> u32 {
    (0..4).fold(c, |sum, i| sum.wrapping_add(byte(a, i, a_signed).wrapping_mul(byte(b, i, b_signed)) as u32))
}

/// Sum of two products of the half-words of `a` with the low or high two bytes of `b`, plus `c`.
#[inline(always)]
pub fn dp2a(a: u32, b: u32, c: u32, high: bool, a_signed: bool, b_signed: bool) -> u32 {
    let b = if high { b >> 16 } else { b };
    (0..2).fold(c, |sum, i| {
        sum.wrapping_add(half_word(a, i, a_signed).wrapping_mul(byte(b, i, b_signed)) as u32)
    })
}

/// The operation on both 16-bit halves.
macro_rules! halves {
    ($($name:ident: |$x:ident, $y:ident| $body:expr;)*) => {$(
        #[inline(always)]
        pub fn $name(a: u32, b: u32) -> u32 {
            #[inline(always)]
            fn one($x: u16, $y: u16) -> u16 {
                $body
            }
            pack(one(low(a), low(b)), one(high(a), high(b)))
        }
    )*};
}

halves! {
    add_16x2: |x, y| x.wrapping_add(y);
    sub_16x2: |x, y| x.wrapping_sub(y);
    min_u16x2: |x, y| x.min(y);
    max_u16x2: |x, y| x.max(y);
    min_s16x2: |x, y| (x as i16).min(y as i16) as u16;
    max_s16x2: |x, y| (x as i16).max(y as i16) as u16;
}
