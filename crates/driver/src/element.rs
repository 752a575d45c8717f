//! The element types of buffers and scalars: their names, sizes and bits.

use arith::Round;
use arith::cvt::{FloatType, float_to_float};
use serde::{Deserialize, Serialize};

/// Type of an element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Element {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F16,
    Bf16,
    F32,
    F64,
}

/// A number as a launch file writes it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Int(i) => i as f64,
            Number::Float(f) => f,
        }
    }
}

impl Element {
    pub const ALL: [Element; 12] = [
        Element::U8,
        Element::U16,
        Element::U32,
        Element::U64,
        Element::I8,
        Element::I16,
        Element::I32,
        Element::I64,
        Element::F16,
        Element::Bf16,
        Element::F32,
        Element::F64,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Element::U8 => "u8",
            Element::U16 => "u16",
            Element::U32 => "u32",
            Element::U64 => "u64",
            Element::I8 => "i8",
            Element::I16 => "i16",
            Element::I32 => "i32",
            Element::I64 => "i64",
            Element::F16 => "f16",
            Element::Bf16 => "bf16",
            Element::F32 => "f32",
            Element::F64 => "f64",
        }
    }

    pub fn from_name(name: &str) -> Option<Element> {
        Element::ALL.into_iter().find(|e| e.name() == name)
    }

    pub fn size(self) -> usize {
        match self {
            Element::U8 | Element::I8 => 1,
            Element::U16 | Element::I16 | Element::F16 | Element::Bf16 => 2,
            Element::U32 | Element::I32 | Element::F32 => 4,
            Element::U64 | Element::I64 | Element::F64 => 8,
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Element::F16 | Element::Bf16 | Element::F32 | Element::F64)
    }

    pub fn is_signed(self) -> bool {
        matches!(self, Element::I8 | Element::I16 | Element::I32 | Element::I64)
    }

    /// The smallest and the largest integer an integer type holds.
    pub fn int_range(self) -> Option<(i128, i128)> {
        let bits = 8 * self.size() as u32;
        match self {
            _ if self.is_float() => None,
            _ if self.is_signed() => Some((-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)),
            _ => Some((0, (1i128 << bits) - 1)),
        }
    }

    /// The bits of a number; floating point is rounded to nearest even once, integers must fit.
    pub fn bits_of(self, number: Number) -> Result<u64, String> {
        if self.is_float() {
            return Ok(self.bits_of_f64(number.as_f64()));
        }
        let value = match number {
            Number::Int(i) => i,
            Number::Float(f) if f.fract() == 0.0 && f.abs() < 1e18 => f as i128,
            Number::Float(f) => return Err(format!("{f} is no integer, and {} holds integers", self.name())),
        };
        let (low, high) = self.int_range().unwrap_or((0, 0));
        if value < low || value > high {
            return Err(format!("{value} does not fit {}, which holds {low} to {high}", self.name()));
        }
        Ok(value as u64 & self.mask())
    }

    /// The bits of a double after conversion: rounded to nearest even, or cut toward zero for integers.
    pub fn bits_of_f64(self, value: f64) -> u64 {
        match self {
            Element::F64 => value.to_bits(),
            Element::F32 => u64::from((value as f32).to_bits()),
            Element::F16 => float_to_float(value.to_bits(), FloatType::F16, FloatType::F64, Round::Rn, false),
            Element::Bf16 => {
                float_to_float(value.to_bits(), FloatType::Bf16, FloatType::F64, Round::Rn, false)
            }
            _ => value as i128 as u64 & self.mask(),
        }
    }

    fn mask(self) -> u64 {
        u64::MAX >> (64 - 8 * self.size())
    }

    /// The value of an element's bits as a double.
    pub fn to_f64(self, bits: u64) -> f64 {
        match self {
            Element::F64 => f64::from_bits(bits),
            Element::F32 => f64::from(f32::from_bits(bits as u32)),
            Element::F16 => f64::from(arith::f16::to_f32(bits as u16)),
            Element::Bf16 => f64::from(arith::bf16::to_f32(bits as u16)),
            Element::I8 => f64::from(bits as i8),
            Element::I16 => f64::from(bits as i16),
            Element::I32 => f64::from(bits as i32),
            Element::I64 => bits as i64 as f64,
            _ => bits as f64,
        }
    }

    /// The bits of the element at the start of `bytes`.
    pub fn read(self, bytes: &[u8]) -> u64 {
        let mut word = [0; 8];
        let n = self.size().min(bytes.len());
        word[..n].copy_from_slice(&bytes[..n]);
        u64::from_le_bytes(word)
    }

    /// The element's value as people write it.
    pub fn show(self, bits: u64) -> String {
        match self {
            Element::F32 => shortest(f64::from(f32::from_bits(bits as u32)), f32::from_bits(bits as u32)),
            Element::F16 | Element::Bf16 => shortest(self.to_f64(bits), self.to_f64(bits) as f32),
            Element::F64 => shortest(f64::from_bits(bits), f64::from_bits(bits)),
            Element::I8 | Element::I16 | Element::I32 | Element::I64 => {
                let shift = 64 - 8 * self.size();
                ((bits << shift) as i64 >> shift).to_string()
            }
            _ => bits.to_string(),
        }
    }
}

/// Plain digits for moderate values, an exponent for others.
fn shortest<T: std::fmt::Display + std::fmt::LowerExp>(value: f64, as_typed: T) -> String {
    let size = value.abs();
    if !value.is_finite() || size == 0.0 || (1e-4..1e9).contains(&size) {
        format!("{as_typed}")
    } else {
        format!("{as_typed:e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_follow_the_type() {
        assert_eq!(Element::I8.bits_of(Number::Int(-1)), Ok(0xff));
        assert!(Element::U8.bits_of(Number::Int(-1)).is_err());
        assert!(Element::U8.bits_of(Number::Int(256)).is_err());
        assert_eq!(Element::U64.bits_of(Number::Int(u64::MAX.into())), Ok(u64::MAX));
        assert!(Element::I32.bits_of(Number::Float(0.5)).is_err());
        assert_eq!(Element::I32.bits_of(Number::Float(3.0)), Ok(3));
        assert_eq!(Element::F32.bits_of(Number::Float(2.5)), Ok(0x4020_0000));
        assert_eq!(Element::F16.bits_of(Number::Int(1)), Ok(0x3c00));
        assert_eq!(Element::Bf16.bits_of(Number::Int(1)), Ok(0x3f80));
        // Halfway between two f16 when rounded to f32 first: one rounding goes up, two would go to even.
        let just_above_half = 1.0 + 0.5f64.powi(11) + 0.5f64.powi(40);
        assert_eq!(Element::F16.bits_of_f64(just_above_half), 0x3c01);
    }

    #[test]
    fn values_are_shown_shortly() {
        assert_eq!(Element::I16.show(0xfffe), "-2");
        assert_eq!(Element::U16.show(0xfffe), "65534");
        assert_eq!(Element::F32.show(u64::from(0.1f32.to_bits())), "0.1");
        assert_eq!(Element::F32.show(u64::from(1e-20f32.to_bits())), "1e-20");
        assert_eq!(Element::F16.show(0x3c00), "1");
    }
}
