//! The two binary formats as the sequences see them. Sign, exponent and the top of the fraction lie in the *high word*:
//! an f32 itself, the upper half of an f64; so exponents are handled in 32 bits for both.

use super::code::Code;
use ir::{IntCmp, MufuFn, Round, Scalar, Type, Value};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    F32,
    F64,
}

pub const SIGN: u32 = 0x8000_0000;

impl Format {
    pub fn of(ty: Scalar) -> Option<Format> {
        match ty {
            Scalar::F32 => Some(Format::F32),
            Scalar::F64 => Some(Format::F64),
            _ => None,
        }
    }

    pub fn scalar(self) -> Scalar {
        match self {
            Format::F32 => Scalar::F32,
            Format::F64 => Scalar::F64,
        }
    }

    pub fn ty(self) -> Type {
        self.scalar().ty()
    }

    pub fn name(self) -> &'static str {
        self.scalar().name()
    }

    /// Bits of the fraction in all.
    pub fn fraction_bits(self) -> u32 {
        match self {
            Format::F32 => 23,
            Format::F64 => 52,
        }
    }

    /// Bits of the fraction in the high word: the place of the exponent.
    pub fn exponent_at(self) -> u32 {
        match self {
            Format::F32 => 23,
            Format::F64 => 20,
        }
    }

    /// The exponent field of infinities and NaNs.
    pub fn exponent_max(self) -> u32 {
        match self {
            Format::F32 => 0xff,
            Format::F64 => 0x7ff,
        }
    }

    /// High word of infinity: all bits of the exponent.
    pub fn infinity(self) -> u32 {
        self.exponent_max() << self.exponent_at()
    }

    pub fn infinity_bits(self) -> u64 {
        self.in_high(self.infinity())
    }

    /// High word of one.
    fn one(self) -> u32 {
        self.infinity() >> 1 & self.infinity()
    }

    /// The number whose high word is this and whose other bits are zero.
    pub fn in_high(self, high: u32) -> u64 {
        match self {
            Format::F32 => high.into(),
            Format::F64 => u64::from(high) << 32,
        }
    }

    /// The largest finite number.
    pub fn largest(self) -> u64 {
        self.infinity_bits() - 1
    }

    /// What an invalid operation gives.
    pub fn invalid(self) -> u64 {
        match self {
            Format::F32 => arith::fp32::NAN.into(),
            Format::F64 => arith::fp64::NAN,
        }
    }

    /// Two to the power `n`.
    pub fn power_of_two(self, n: i32) -> u64 {
        let bias = self.exponent_max() as i32 / 2;
        self.in_high(((bias + n) as u32) << self.exponent_at())
    }

    pub fn constant(self, c: &mut Code, bits: u64) -> Value {
        c.constant(self.ty(), bits)
    }

    pub fn high(self, c: &mut Code, x: Value) -> Value {
        match self {
            Format::F32 => x,
            Format::F64 => c.high(x),
        }
    }

    /// `x` with another high word.
    pub fn with_high(self, c: &mut Code, x: Value, high: Value) -> Value {
        match self {
            Format::F32 => high,
            Format::F64 => {
                let low = c.low(x);
                c.pair(low, high)
            }
        }
    }

    /// The number whose high word is this and whose other bits are zero.
    pub fn of_high(self, c: &mut Code, high: Value) -> Value {
        match self {
            Format::F32 => high,
            Format::F64 => {
                let zero = c.word(0);
                c.pair(zero, high)
            }
        }
    }

    /// The exponent field.
    pub fn exponent(self, c: &mut Code, x: Value) -> Value {
        let high = self.high(c, x);
        let at = c.word(self.exponent_at());
        let shifted = c.shr(high, at);
        c.and_number(shifted, self.exponent_max().into())
    }

    /// `x` with `n` (a word) added to its exponent.
    pub fn scaled(self, c: &mut Code, x: Value, n: Value) -> Value {
        let high = self.high(c, x);
        let at = c.word(self.exponent_at());
        let shifted = c.shl(n, at);
        let high = c.add(shifted, high);
        self.with_high(c, x, high)
    }

    /// `x` with the exponent of one.
    pub fn normalised(self, c: &mut Code, x: Value) -> Value {
        let high = self.high(c, x);
        let kept = c.and_number(high, (!self.infinity()).into());
        let high = c.or_number(kept, self.one().into());
        self.with_high(c, x, high)
    }

    /// The exponent field of a number that is neither zero, denormal, infinite nor NaN.
    pub fn is_ordinary(self, c: &mut Code, exponent: Value) -> Value {
        let below = c.add_number(exponent, u64::MAX);
        c.compare_number(IntCmp::Lt, false, below, (self.exponent_max() - 1).into())
    }

    /// The special-function unit's approximation of 1/x or 1/sqrt(x); the low word of an f64 is `low`.
    pub fn seed(self, c: &mut Code, root: bool, x: Value, low: Value) -> Value {
        match self {
            Format::F32 => c.mufu(if root { MufuFn::Rsq } else { MufuFn::Rcp }, x),
            Format::F64 => {
                let high = c.high(x);
                let unit = c.mufu(if root { MufuFn::Rsq64h } else { MufuFn::Rcp64h }, high);
                c.pair(low, unit)
            }
        }
    }

    pub fn fma(self, c: &mut Code, round: Round, x: Value, y: Value, z: Value) -> Value {
        c.fma(self.scalar(), round, x, y, z)
    }

    pub fn mul(self, c: &mut Code, x: Value, y: Value) -> Value {
        c.fmul(self.scalar(), Round::Rn, x, y)
    }

    pub fn neg(self, c: &mut Code, x: Value) -> Value {
        c.fneg(self.scalar(), x)
    }
}
