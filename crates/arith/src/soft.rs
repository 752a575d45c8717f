//! An exact soft-float core: numbers as integers times powers of two, and one rounding that every rare path shares.

use crate::Round;

/// A binary interchange format: field widths, and whether its largest exponent is set aside for infinities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    pub exponent_bits: u32,
    pub fraction_bits: u32,
    /// False for e4m3, where only the pattern of all ones is special (NaN) and there is no infinity.
    pub has_infinity: bool,
}

pub const F64: Format = Format { exponent_bits: 11, fraction_bits: 52, has_infinity: true };
pub const F32: Format = Format { exponent_bits: 8, fraction_bits: 23, has_infinity: true };
pub const F16: Format = Format { exponent_bits: 5, fraction_bits: 10, has_infinity: true };
pub const BF16: Format = Format { exponent_bits: 8, fraction_bits: 7, has_infinity: true };
pub const TF32: Format = Format { exponent_bits: 8, fraction_bits: 10, has_infinity: true };
pub const E4M3: Format = Format { exponent_bits: 4, fraction_bits: 3, has_infinity: false };
pub const E5M2: Format = Format { exponent_bits: 5, fraction_bits: 2, has_infinity: true };

impl Format {
    pub const fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    /// Exponent of the smallest normal number.
    pub const fn min_exponent(self) -> i32 {
        1 - self.bias()
    }

    pub const fn sign_bit(self) -> u64 {
        1 << (self.exponent_bits + self.fraction_bits)
    }

    /// The infinity's magnitude bits; for a format without one, the pattern just above the largest finite number.
    pub const fn infinity(self) -> u64 {
        if self.has_infinity {
            ((1 << self.exponent_bits) - 1) << self.fraction_bits
        } else {
            self.sign_bit() - 1
        }
    }

    pub const fn largest_finite(self) -> u64 {
        self.infinity() - 1
    }
}

/// A number taken apart. A finite value is `significand * 2^exponent`, exact unless its maker jammed lost bits into
/// the lowest one (which must lie well below the place of any later rounding).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    Nan,
    Infinite { negative: bool },
    Finite { negative: bool, exponent: i32, significand: u128 },
}

use Number::{Finite, Infinite, Nan};

pub fn unpack(format: Format, bits: u64) -> Number {
    let negative = bits & format.sign_bit() != 0;
    let magnitude = bits & (format.sign_bit() - 1);
    if magnitude > format.infinity() || (!format.has_infinity && magnitude == format.infinity()) {
        return Nan;
    }
    if magnitude == format.infinity() {
        return Infinite { negative };
    }
    let field = (magnitude >> format.fraction_bits) as i32;
    let fraction = (magnitude & ((1 << format.fraction_bits) - 1)) as u128;
    let hidden = if field == 0 { 0 } else { 1u128 << format.fraction_bits };
    let exponent = field.max(1) - format.bias() - format.fraction_bits as i32;
    Finite { negative, exponent, significand: hidden | fraction }
}

/// What a value that is too large becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Infinity or the largest finite number, as the rounding direction says.
    Round,
    /// The largest finite number, for infinities too.
    Saturate,
}

/// Whether a magnitude with the given last kept bit and remainder (compared with half a unit) rounds up.
fn rounds_up(round: Round, negative: bool, odd: bool, remainder: bool, half: core::cmp::Ordering) -> bool {
    use core::cmp::Ordering::{Equal, Greater};
    match round {
        Round::Rn => half == Greater || (half == Equal && odd),
        Round::Rz => false,
        Round::Rm => remainder && negative,
        Round::Rp => remainder && !negative,
    }
}

/// `value >> drop` rounded; `drop` may exceed the width.
fn shift_round(value: u128, drop: u32, round: Round, negative: bool) -> u128 {
    if drop == 0 {
        return value;
    }
    let (kept, lost, half) = match drop {
        1..=127 => (value >> drop, value & ((1 << drop) - 1), 1u128 << (drop - 1)),
        128 => (0, value, 1u128 << 127),
        _ => (0, u128::from(value != 0), 2),
    };
    kept + u128::from(rounds_up(round, negative, kept & 1 == 1, lost != 0, lost.cmp(&half)))
}

/// The bits of `number` in `format`, rounded once. A NaN gives `nan`.
pub fn pack(format: Format, number: Number, round: Round, overflow: Overflow, nan: u64) -> u64 {
    let (negative, magnitude) = match number {
        Nan => return nan,
        Infinite { negative } => (negative, format.infinity()),
        Finite { negative, significand: 0, .. } => (negative, 0),
        Finite { negative, exponent, significand } => {
            let zeros = significand.leading_zeros();
            let significand = significand << zeros;
            // The value is in [2^top, 2^(top+1)).
            let top = exponent - zeros as i32 + 127;
            let denormal_by = (format.min_exponent() - top).max(0) as u32;
            let drop = 127 - format.fraction_bits + denormal_by;
            let kept = shift_round(significand, drop, round, negative) as u64;
            let field = if denormal_by > 0 { 0 } else { (top - format.min_exponent()) as u64 };
            // The hidden bit adds one to the exponent field, and so does a carry out of rounding.
            let magnitude = (field << format.fraction_bits) + kept;
            (negative, magnitude.min(format.infinity()))
        }
    };
    let was_infinite = matches!(number, Infinite { .. });
    let stays_finite = match (overflow, round) {
        (Overflow::Saturate, _) => true,
        (_, Round::Rn) => false,
        (_, Round::Rz) => !was_infinite,
        (_, Round::Rm) => !was_infinite && !negative,
        (_, Round::Rp) => !was_infinite && negative,
    };
    let magnitude =
        if magnitude == format.infinity() && stays_finite { format.largest_finite() } else { magnitude };
    magnitude | if negative { format.sign_bit() } else { 0 }
}

/// `value >> count`, with a one in the lowest bit when any bit was lost.
fn shift_jam(value: u128, count: u32) -> u128 {
    match count {
        0 => value,
        1..=127 => (value >> count) | u128::from(value & ((1 << count) - 1) != 0),
        _ => u128::from(value != 0),
    }
}

/// Exact sum; `round` matters for the sign of an exact zero only.
pub fn add(a: Number, b: Number, round: Round) -> Number {
    match (a, b) {
        (Nan, _) | (_, Nan) => Nan,
        (Infinite { negative: x }, Infinite { negative: y }) if x != y => Nan,
        (Infinite { .. }, _) => a,
        (_, Infinite { .. }) => b,
        (
            Finite { negative: sa, exponent: ea, significand: ma },
            Finite { negative: sb, exponent: eb, significand: mb },
        ) => {
            if ma == 0 && mb == 0 {
                let negative = if sa == sb { sa } else { round == Round::Rm };
                return Finite { negative, exponent: 0, significand: 0 };
            }
            if ma == 0 {
                return b;
            }
            if mb == 0 {
                return a;
            }
            // Leading ones at bit 125 leave room for the carry and, below, for a jammed bit that no rounding reaches.
            let (za, zb) = (ma.leading_zeros() as i32 - 2, mb.leading_zeros() as i32 - 2);
            let (ma, ea) = (shift_left_or_jam(ma, za), ea - za);
            let (mb, eb) = (shift_left_or_jam(mb, zb), eb - zb);
            let exponent = ea.max(eb);
            let ma = shift_jam(ma, (exponent - ea) as u32) as i128;
            let mb = shift_jam(mb, (exponent - eb) as u32) as i128;
            let sum = if sa { -ma } else { ma } + if sb { -mb } else { mb };
            let negative = if sum == 0 { round == Round::Rm } else { sum < 0 };
            Finite { negative, exponent, significand: sum.unsigned_abs() }
        }
    }
}

fn shift_left_or_jam(value: u128, count: i32) -> u128 {
    if count >= 0 { value << count } else { shift_jam(value, count.unsigned_abs()) }
}

/// Exact product of two numbers of at most 64 significant bits each.
pub fn mul(a: Number, b: Number) -> Number {
    match (a, b) {
        (Nan, _) | (_, Nan) => Nan,
        (
            Finite { negative: sa, exponent: ea, significand: ma },
            Finite { negative: sb, exponent: eb, significand: mb },
        ) => Finite { negative: sa != sb, exponent: ea + eb, significand: ma * mb },
        (Infinite { .. }, Finite { significand: 0, .. })
        | (Finite { significand: 0, .. }, Infinite { .. }) => Nan,
        _ => Infinite { negative: is_negative(a) != is_negative(b) },
    }
}

/// Quotient of two numbers of at most 53 significant bits, with a jammed remainder.
pub fn div(a: Number, b: Number) -> Number {
    let negative = is_negative(a) != is_negative(b);
    match (a, b) {
        (Nan, _) | (_, Nan) | (Infinite { .. }, Infinite { .. }) => Nan,
        (Finite { significand: 0, .. }, Finite { significand: 0, .. }) => Nan,
        (Infinite { .. }, _) | (_, Finite { significand: 0, .. }) => Infinite { negative },
        (_, Infinite { .. }) => Finite { negative, exponent: 0, significand: 0 },
        (Finite { exponent: ea, significand: ma, .. }, Finite { exponent: eb, significand: mb, .. }) => {
            // Two zeros on top: the quotient by one must still fit after the shift.
            let up = ma.leading_zeros() - 2;
            let wide = ma << up;
            let significand = (wide / mb) << 1 | u128::from(!wide.is_multiple_of(mb));
            Finite { negative, exponent: ea - up as i32 - eb - 1, significand }
        }
    }
}

/// Square root with a jammed remainder.
pub fn sqrt(a: Number) -> Number {
    match a {
        Finite { significand: 0, .. } | Infinite { negative: false } => a,
        Finite { negative: false, exponent, significand } => {
            let mut up = significand.leading_zeros();
            // The scaled exponent has to be even.
            if (exponent - up as i32) & 1 != 0 {
                up -= 1;
            }
            let wide = significand << up;
            let root = wide.isqrt();
            let significand = root << 1 | u128::from(root * root != wide);
            Finite { negative: false, exponent: (exponent - up as i32) / 2 - 1, significand }
        }
        _ => Nan,
    }
}

/// `a * 2^power`.
pub fn scale(a: Number, power: i32) -> Number {
    match a {
        Finite { negative, exponent, significand } => {
            Finite { negative, exponent: exponent + power, significand }
        }
        _ => a,
    }
}

pub fn is_negative(a: Number) -> bool {
    match a {
        Nan => false,
        Infinite { negative } | Finite { negative, .. } => negative,
    }
}

/// An integer as a number.
pub fn from_int(value: i128) -> Number {
    Finite { negative: value < 0, exponent: 0, significand: value.unsigned_abs() }
}

/// The value rounded to an integer and clamped to `min..=max`; `None` for NaN.
pub fn to_int(a: Number, round: Round, min: i128, max: i128) -> Option<i128> {
    match a {
        Nan => None,
        Infinite { negative } => Some(if negative { min } else { max }),
        Finite { negative, exponent, significand } => {
            let magnitude = if significand == 0 {
                0
            } else if exponent >= 0 {
                // Beyond 100 bits every integer type has saturated.
                if significand.leading_zeros() as i32 - exponent < 28 {
                    1 << 100
                } else {
                    significand << exponent
                }
            } else {
                shift_round(significand, exponent.unsigned_abs(), round, negative)
            };
            let value = magnitude as i128;
            Some(if negative { -value } else { value }.clamp(min, max))
        }
    }
}

/// The value rounded to an integer, its sign kept.
pub fn to_integral(a: Number, round: Round) -> Number {
    match a {
        Finite { negative, exponent, significand } if exponent < 0 => {
            let significand = shift_round(significand, exponent.unsigned_abs(), round, negative);
            Finite { negative, exponent: 0, significand }
        }
        _ => a,
    }
}
