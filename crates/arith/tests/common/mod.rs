//! The instruction vectors: forms, their operands from seeds, and the results that an H200 gave (sm_90a, ptxas 13.0).
//!
//! `data/*.json.zst` holds a row a form: its PTX text (`%0` the result, `%1` to `%3` the operands), the types of result
//! and operands, the seed of operand k less k, and where its 1,024 little-endian results begin in `data/*.bin.zst`.
//! `forms` is the broad set, `more` the later one that asks about rarer modifiers and values.

use std::io::Read;

pub const COUNT: usize = 1024;

pub struct Form {
    pub text: String,
    pub result: String,
    pub operands: Vec<String>,
    pub seed: u64,
    pub offset: usize,
}

pub fn unpack(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(bytes)
        .expect("zstd frame")
        .read_to_end(&mut out)
        .expect("zstd data");
    out
}

pub fn forms(json: &[u8]) -> Vec<Form> {
    let rows: serde_json::Value = serde_json::from_slice(json).expect("forms");
    let text = |v: &serde_json::Value| v.as_str().expect("text").to_owned();
    rows.as_array()
        .expect("rows")
        .iter()
        .map(|row| Form {
            text: text(&row["text"]),
            result: text(&row["result"]),
            operands: row["operands"].as_array().expect("operands").iter().map(text).collect(),
            seed: row["seed"].as_u64().expect("seed"),
            offset: row["offset"].as_u64().expect("offset") as usize,
        })
        .collect()
}

pub fn width(kind: &str) -> usize {
    match kind {
        "u8" | "s8" => 8,
        "u16" | "s16" | "b16" | "t16" | "tb16" => 16,
        "u64" | "s64" | "b64" | "f64" | "n64" | "t64" => 64,
        _ => 32,
    }
}

fn splitmix(seed: u64, i: u64) -> u64 {
    let z =
        (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(seed.wrapping_mul(0xD1B5_4A32_D192_ED03));
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn edges(kind: &str) -> &'static [u64] {
    match (kind, width(kind)) {
        ("b16", _) => &[
            0, 0x8000, 1, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0x3F80,
            0x7F80, 0xFF80, 0x7FC0,
        ],
        ("f32", _) => &[
            0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000, 0xBF800000, 0x3F000000,
            0x4B800000, 0x4F000000, 0xCF000000, 0x5F000000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000,
            0x7FC00000, 0x7F800001, 0xFFC00000,
        ],
        ("f64", _) => &[
            0,
            1 << 63,
            1,
            (1 << 63) + 1,
            0x000FFFFFFFFFFFFF,
            0x0010000000000000,
            0x3FF0000000000000,
            0xBFF0000000000000,
            0x3FE0000000000000,
            0x41E0000000000000,
            0x43E0000000000000,
            0x36A0000000000000,
            0x47EFFFFFF0000000,
            0x7FEFFFFFFFFFFFFF,
            0x7FF0000000000000,
            0xFFF0000000000000,
            0x7FF8000000000000,
            0x7FF0000000000001,
        ],
        (_, 8) => &[0, 1, 2, 0x7F, 0x80, 0x81, 0xFE, 0xFF],
        (_, 16) => &[0, 1, 2, 0x7FFF, 0x8000, 0x8001, 0xFFFE, 0xFFFF],
        (_, 32) => &[0, 1, 2, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF],
        _ => &[
            0,
            1,
            2,
            63,
            64,
            65,
            0x7FFFFFFFFFFFFFFF,
            0x8000000000000000,
            0x8000000000000001,
            0xFFFFFFFFFFFFFFFE,
            0xFFFFFFFFFFFFFFFF,
        ],
    }
}

/// Kinds whose every value is from a list: NaNs of several payloads (`n64`), and numbers whose products and sums fall
/// at the edge of the denormals (`t32`, `t16` for f16, `tb16` for bf16, `t64` for conversions of f64).
fn list(kind: &str) -> Option<&'static [u64]> {
    Some(match kind {
        "n64" => &[
            0x7ff0000000000001,
            0x7ff8000000000002,
            0xfff8000000000003,
            0xfff0000000000004,
            0x7fff123456789abc,
            0xfff7fedcba987654,
            0x7ff0000000000000,
            0xfff0000000000000,
            0,
            0x8000000000000000,
            0x3ff0000000000000,
            0xc000000000000000,
        ],
        "t32" => &[
            0x3f7fffff, 0x3f7ffffe, 0x3f800001, 0x00800000, 0x00800001, 0x80800001, 0x007fffff, 0x00ffffff,
            0x3f000000, 0x3f000001, 0x3effffff, 0xbf7fffff, 0x80800000, 0x00400000, 0x00000001, 0x80000001,
            0x3f800000, 0xbf800000, 0x7e7fffff, 0x7e800000, 0x7e800001, 0x7effffff, 0x7f7fffff, 0x007ffffe,
            0x80ffffff, 0x01000000,
        ],
        "t16" => &[
            0x3bff, 0x3bfe, 0x3c01, 0x0400, 0x0401, 0x8401, 0x03ff, 0x07ff, 0x3800, 0x3801, 0x37ff, 0xbbff,
            0x8400, 0x0200, 0x0001, 0x8001, 0x3c00, 0xbc00, 0x7bff, 0x0800, 0x1000, 0x1401,
        ],
        "tb16" => &[
            0x3f7f, 0x3f7e, 0x3f81, 0x0080, 0x0081, 0x8081, 0x007f, 0x00ff, 0x3f00, 0x3f01, 0x3eff, 0xbf7f,
            0x8080, 0x0040, 0x0001, 0x8001, 0x3f80, 0xbf80, 0x7f7f, 0x0100, 0x1fff, 0x2001,
        ],
        "t64" => &[
            0x380fffffe0000000,
            0x380ffffff0000000,
            0x380ffffff0000001,
            0x380ffffff8000000,
            0x380fffffffffffff,
            0x3810000000000000,
            0xb80fffffe0000000,
            0xb80ffffff0000000,
            0xb80fffffffffffff,
            0x380ffffffffffffe,
            0x380fffffd0000000,
            0x36a0000000000000,
            0x3690000000000000,
            0x3690000000000001,
            0xb690000000000001,
            0x368fffffffffffff,
            0x3800000000000000,
            0x47efffffe0000000,
            0x47effffff0000000,
            0x47efffffefffffff,
            0xc7effffff0000000,
            0x3f0fffffffffffff,
            0x3e6fffffffffffff,
            0x40effdffffffffff,
            0x40effe0000000000,
            0x1,
            0x800fffffffffffff,
        ],
        _ => return None,
    })
}

/// Operand `i` of a type and seed.
pub fn operand(kind: &str, seed: u64, i: usize) -> u64 {
    let z = splitmix(seed, i as u64);
    if let Some(list) = list(kind) {
        return list[(z >> 32 & 0xFFFF) as usize % list.len()];
    }
    let raw = splitmix(seed + 4, i as u64);
    let unit = (raw >> 40) as f64 / f64::from(1 << 24);
    let value = match z >> 60 {
        0..=3 => {
            let edges = edges(kind);
            edges[(z >> 32 & 0xFFFF) as usize % edges.len()]
        }
        4..=7 => match kind {
            "f32" => u64::from(((unit * 200.0 - 100.0) as f32).to_bits()),
            "f64" => (unit * 200.0 - 100.0).to_bits(),
            // Multiples of 2^-21 below 4 have at most 23 bits: exact in f32, so this rounds once.
            "b16" => u64::from(arith::f16::from_f32(((unit * 8.0 - 4.0) as f32).to_bits(), arith::Round::Rn)),
            _ => (raw % 128).wrapping_sub(64),
        },
        _ => raw,
    };
    value & (u64::MAX >> (64 - width(kind)))
}

/// Result `i` of a form.
pub fn result(data: &[u8], form: &Form, i: usize) -> u64 {
    let bytes = width(&form.result) / 8;
    let at = form.offset + i * bytes;
    let mut word = [0; 8];
    word[..bytes].copy_from_slice(&data[at..at + bytes]);
    u64::from_le_bytes(word)
}
