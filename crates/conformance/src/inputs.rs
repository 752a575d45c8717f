//! The operands of instruction vectors, made from seeds.

use driver::element::Element;
use driver::init::{splitmix, unit};

/// Bytes of an operand or result type of `forms.json`.
pub fn size(kind: &str) -> Option<usize> {
    Some(match kind {
        "u8" | "s8" => 1,
        "u16" | "s16" | "b16" => 2,
        "u32" | "s32" | "b32" | "f32" | "p32" => 4,
        "u64" | "s64" | "b64" | "f64" => 8,
        _ => return None,
    })
}

const EDGES_8: &[u64] = &[0, 1, 2, 0x7F, 0x80, 0x81, 0xFE, 0xFF];
const EDGES_16: &[u64] = &[0, 1, 2, 0x7FFF, 0x8000, 0x8001, 0xFFFE, 0xFFFF];
const EDGES_32: &[u64] =
    &[0, 1, 2, 31, 32, 33, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0001, 0xFFFF_FFFE, 0xFFFF_FFFF];
const EDGES_64: &[u64] = &[
    0,
    1,
    2,
    63,
    64,
    65,
    0x7FFF_FFFF_FFFF_FFFF,
    0x8000_0000_0000_0000,
    0x8000_0000_0000_0001,
    0xFFFF_FFFF_FFFF_FFFE,
    0xFFFF_FFFF_FFFF_FFFF,
];
/// f16 and bf16: zeros, the ends of denormals, one, the largest, infinities, NaN.
const EDGES_B16: &[u64] = &[
    0, 0x8000, 1, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0x3F80, 0x7F80,
    0xFF80, 0x7FC0,
];
const EDGES_F32: &[u64] = &[
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x007F_FFFF,
    0x0080_0000,
    0x3F80_0000,
    0xBF80_0000,
    0x3F00_0000,
    0x4B80_0000,
    0x4F00_0000,
    0xCF00_0000,
    0x5F00_0000,
    0x7F7F_FFFF,
    0xFF7F_FFFF,
    0x7F80_0000,
    0xFF80_0000,
    0x7FC0_0000,
    0x7F80_0001,
    0xFFC0_0000,
];
const EDGES_F64: &[u64] = &[
    0,
    0x8000_0000_0000_0000,
    1,
    0x8000_0000_0000_0001,
    0x000F_FFFF_FFFF_FFFF,
    0x0010_0000_0000_0000,
    0x3FF0_0000_0000_0000,
    0xBFF0_0000_0000_0000,
    0x3FE0_0000_0000_0000,
    0x41E0_0000_0000_0000,
    0x43E0_0000_0000_0000,
    0x36A0_0000_0000_0000,
    0x47EF_FFFF_F000_0000,
    0x7FEF_FFFF_FFFF_FFFF,
    0x7FF0_0000_0000_0000,
    0xFFF0_0000_0000_0000,
    0x7FF8_0000_0000_0000,
    0x7FF0_0000_0000_0001,
];

/// Operand `i` of a type and seed: a quarter edge values, a quarter moderate ones, the rest raw bits.
pub fn operand(kind: &str, seed: u64, i: u64) -> u64 {
    let bytes = size(kind).unwrap_or(8);
    let edges = match (kind, bytes) {
        ("b16", _) => EDGES_B16,
        ("f32", _) => EDGES_F32,
        ("f64", _) => EDGES_F64,
        (_, 1) => EDGES_8,
        (_, 2) => EDGES_16,
        (_, 4) => EDGES_32,
        _ => EDGES_64,
    };
    let (z, raw) = (splitmix(seed, i), splitmix(seed.wrapping_add(4), i));
    let value = match z >> 60 {
        0..4 => edges[(z >> 32 & 0xFFFF) as usize % edges.len()],
        4..8 => match kind {
            "f32" => Element::F32.bits_of_f64(unit(raw) * 200.0 - 100.0),
            "f64" => Element::F64.bits_of_f64(unit(raw) * 200.0 - 100.0),
            "b16" => Element::F16.bits_of_f64(unit(raw) * 8.0 - 4.0),
            _ => (raw % 128).wrapping_sub(64),
        },
        _ => raw,
    };
    value & (u64::MAX >> (64 - 8 * bytes))
}
