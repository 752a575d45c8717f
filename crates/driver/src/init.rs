//! What buffers hold before the first launch: constants, sequences, and numbers from seeds that are the same in every
//! language (`docs/launch-files.md` has the formula).

use crate::element::{Element, Number};
use serde::{Deserialize, Serialize};

/// How a buffer's elements are made. Elements depend on their index alone, so any part can be made on its own.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Init {
    /// The same bits in every element.
    Fill(u64),
    /// `low + unit * (high - low)` in double precision, rounded to the element type.
    Uniform { low: f64, high: f64, seed: u64 },
    /// Integers from `low` up to but not including `low + span`.
    RandInt { low: i64, span: u64, seed: u64 },
    /// `start + i * step`, rounded to the element type.
    Iota { start: Number, step: Number },
    /// The elements' bytes.
    Bytes(Vec<u8>),
}

/// The 64-bit number that element `i` of a seeded buffer comes from.
#[inline]
pub fn splitmix(seed: u64, i: u64) -> u64 {
    let z = i
        .wrapping_add(1)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add(seed.wrapping_mul(0xD1B5_4A32_D192_ED03));
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A number in [0, 1) with 24 bits.
#[inline]
pub fn unit(z: u64) -> f64 {
    (z >> 40) as f64 / (1u32 << 24) as f64
}

impl Init {
    /// Writes elements from number `first` on; `out` is a whole number of elements.
    pub fn make(&self, element: Element, first: u64, out: &mut [u8]) {
        match *self {
            Init::Fill(0) => out.fill(0),
            Init::Fill(bits) => each(element, first, out, |_| bits),
            Init::Uniform { low, high, seed } => each(element, first, out, |i| {
                element.bits_of_f64(low + unit(splitmix(seed, i)) * (high - low))
            }),
            Init::RandInt { low, span, seed } => {
                let value = |i| low.wrapping_add((splitmix(seed, i) % span) as i64);
                if element.is_float() {
                    each(element, first, out, |i| element.bits_of_f64(value(i) as f64));
                } else {
                    each(element, first, out, |i| value(i) as u64);
                }
            }
            Init::Iota { start: Number::Int(start), step: Number::Int(step) } if !element.is_float() => {
                each(element, first, out, |i| start.wrapping_add(step.wrapping_mul(i128::from(i))) as u64)
            }
            Init::Iota { start, step } => {
                each(element, first, out, |i| element.bits_of_f64(start.as_f64() + step.as_f64() * i as f64))
            }
            Init::Bytes(ref bytes) => {
                let start = (first as usize).saturating_mul(element.size()).min(bytes.len());
                let part = &bytes[start..];
                let n = part.len().min(out.len());
                out[..n].copy_from_slice(&part[..n]);
                out[n..].fill(0);
            }
        }
    }
}

/// Stores what `bits` gives for each element's number, cut to the element's size.
#[inline(always)]
fn each(element: Element, first: u64, out: &mut [u8], bits: impl Fn(u64) -> u64) {
    fn store<const N: usize>(first: u64, out: &mut [u8], bits: impl Fn(u64) -> u64) {
        for (i, place) in (first..).zip(out.as_chunks_mut::<N>().0) {
            place.copy_from_slice(&bits(i).to_le_bytes()[..N]);
        }
    }
    match element.size() {
        1 => store::<1>(first, out, bits),
        2 => store::<2>(first, out, bits),
        4 => store::<4>(first, out, bits),
        _ => store::<8>(first, out, bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(init: &Init, element: Element, count: usize) -> Vec<u8> {
        let mut out = vec![0xaa; count * element.size()];
        init.make(element, 0, &mut out);
        out
    }

    #[test]
    fn seeded_numbers_are_those_of_the_formula() {
        // From an independent implementation with NumPy: SHA-256 of 1,000 elements, first 8 bytes.
        let uniform = |low, high| Init::Uniform { low, high, seed: 11 };
        let ints = || Init::RandInt { low: -7, span: 1007, seed: 12 };
        for (element, init, expected) in [
            (Element::U8, uniform(0.0, 200.0), "ad96e539d89820d9"),
            (Element::U8, ints(), "3e19ad5ce2c64090"),
            (Element::I32, uniform(-3.5, 100.25), "7c7f326d3277c1b5"),
            (Element::I32, ints(), "09969002e44f2514"),
            (Element::U64, uniform(0.0, 200.0), "ee994d131bb438a8"),
            (Element::U64, ints(), "adc77c5ca14754d5"),
            (Element::F16, uniform(-3.5, 100.25), "d3abf07600ab935e"),
            (Element::F16, ints(), "0ea4331e2275425b"),
            (Element::F32, uniform(-3.5, 100.25), "d9bc0be4347c8e4b"),
            (Element::F32, ints(), "3b688a2c41c808a5"),
            (Element::F64, uniform(-3.5, 100.25), "f1d127985e1ed3d8"),
            (Element::F64, ints(), "6fbb83860f259209"),
        ] {
            let sha = crate::digest::sha256(&made(&init, element, 1000));
            assert_eq!(&sha[..16], expected, "{init:?} {element:?}");
        }
    }

    #[test]
    fn parts_equal_the_whole() {
        for init in [
            Init::Uniform { low: 0.0, high: 3.0, seed: 5 },
            Init::RandInt { low: -5, span: 11, seed: 6 },
            Init::Iota { start: Number::Int(3), step: Number::Int(-2) },
            Init::Fill(0x1234),
            Init::Bytes((0..=255).collect()),
        ] {
            for element in [Element::U8, Element::I16, Element::F32, Element::F64] {
                let whole = made(&init, element, 20);
                let mut part = vec![0; 5 * element.size()];
                init.make(element, 7, &mut part);
                assert_eq!(part, whole[7 * element.size()..12 * element.size()], "{init:?} {element:?}");
            }
        }
    }
}
