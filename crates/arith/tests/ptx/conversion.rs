//! Conversions.

use super::Op;
use arith::cvt::{self, Clamp, FloatType, Fp8, IntType};
use arith::half::{high, low, pack};
use arith::{f16, fp32, fp64};

fn int(name: &str) -> Option<IntType> {
    Some(match name {
        "u8" => IntType::U8,
        "s8" => IntType::S8,
        "u16" => IntType::U16,
        "s16" => IntType::S16,
        "u32" => IntType::U32,
        "s32" => IntType::S32,
        "u64" => IntType::U64,
        "s64" => IntType::S64,
        _ => return None,
    })
}

fn float(name: &str) -> Option<FloatType> {
    Some(match name {
        "f16" => FloatType::F16,
        "bf16" => FloatType::Bf16,
        "f32" => FloatType::F32,
        "f64" => FloatType::F64,
        _ => return None,
    })
}

fn fp8(name: &str) -> Option<Fp8> {
    Some(match name {
        "e4m3x2" => Fp8::E4m3,
        "e5m2x2" => Fp8::E5m2,
        _ => return None,
    })
}

pub fn evaluate(op: &Op, x: [u64; 3]) -> Option<u64> {
    if op.name != "cvt" {
        return None;
    }
    let r = convert(op, x)?;
    if !op.has("sat") || op.has("pack") {
        return Some(r);
    }
    // Saturation is the last step of every conversion to a floating-point type.
    Some(match op.parts[op.parts.len() - 2] {
        "f16" => f16::saturate(r as u16) as u64,
        "f32" => fp32::saturate(r as u32) as u64,
        "f64" => fp64::saturate(r),
        _ => r,
    })
}

fn convert(op: &Op, x: [u64; 3]) -> Option<u64> {
    let [a, b, c] = x.map(|v| v as u32);
    if op.has("pack") {
        let to = op.parts[2];
        return Some(cvt::pack_sat(a, b, c, to[1..].parse().ok()?, to.starts_with('s')) as u64);
    }
    let (to, from) = (op.parts[op.parts.len() - 2], op.kind());
    let round = op.round();
    let (ftz, sat, relu) = (op.has("ftz"), op.has("sat"), op.has("relu"));
    let clamp = Clamp { relu, satfinite: op.has("satfinite") };
    // The functions for common pairs must agree with the general ones: both are asked.
    let both = |one: u64, other: u64| if one == other { Some(one) } else { None };
    if let (Some(to), Some(from)) = (int(to), int(from)) {
        return Some(cvt::int_to_int(x[0], to, from, sat));
    }
    if let (Some(to), Some(from)) = (float(to), int(from)) {
        let r = cvt::int_to_float(x[0], to, from, round);
        return match (to, from) {
            (FloatType::F32, IntType::S32) => both(r, cvt::s32_to_f32(a, round) as u64),
            (FloatType::F32, IntType::U32) => both(r, cvt::u32_to_f32(a, round) as u64),
            (FloatType::F64, IntType::S32) => both(r, cvt::s32_to_f64(a)),
            (FloatType::F64, IntType::U32) => both(r, cvt::u32_to_f64(a)),
            _ => Some(r),
        };
    }
    if let (Some(to), Some(from)) = (int(to), float(from)) {
        let r = cvt::float_to_int(x[0], to, from, round, ftz);
        return match (to, from) {
            (IntType::S32, FloatType::F32) => both(r, cvt::f32_to_s32(a, round, ftz) as u64),
            (IntType::U32, FloatType::F32) => both(r, cvt::f32_to_u32(a, round, ftz) as u64),
            (IntType::S32, FloatType::F64) => both(r, cvt::f64_to_s32(x[0], round) as u64),
            (IntType::U32, FloatType::F64) => both(r, cvt::f64_to_u32(x[0], round) as u64),
            _ => Some(r),
        };
    }
    let integral = op.parts[0].ends_with('i');
    Some(match (to, from) {
        ("f16", "f16") if integral => cvt::round_f16(a as u16, round) as u64,
        ("bf16", "bf16") if integral => cvt::round_bf16(a as u16, round) as u64,
        ("f32", "f32") if integral => cvt::round_f32(a, round, ftz) as u64,
        ("f64", "f64") if integral => cvt::round_f64(x[0], round),
        ("f32", "f64") => cvt::f64_to_f32(x[0], round, ftz, sat) as u64,
        ("f16", "f32") => cvt::f32_to_f16(a, round, clamp) as u64,
        ("bf16", "f32") => cvt::f32_to_bf16(a, round, clamp) as u64,
        ("f16x2", "f32") => pack(cvt::f32_to_f16(b, round, clamp), cvt::f32_to_f16(a, round, clamp)) as u64,
        ("bf16x2", "f32") => {
            pack(cvt::f32_to_bf16(b, round, clamp), cvt::f32_to_bf16(a, round, clamp)) as u64
        }
        ("tf32", "f32") if op.has("rna") => cvt::f32_to_tf32_rna(a, clamp.satfinite) as u64,
        ("tf32", "f32") => cvt::f32_to_tf32(a, round, clamp) as u64,
        (_, "f32") if fp8(to).is_some() => {
            let to = fp8(to)?;
            cvt::f32_to_fp8(b, to, relu) as u64 | (cvt::f32_to_fp8(a, to, relu) as u64) << 8
        }
        (_, "f16x2") => {
            let to = fp8(to)?;
            cvt::f16_to_fp8(low(a), to, relu) as u64 | (cvt::f16_to_fp8(high(a), to, relu) as u64) << 8
        }
        ("f16x2", _) => {
            let from = fp8(from)?;
            pack(cvt::fp8_to_f16(a as u8, from, relu), cvt::fp8_to_f16((a >> 8) as u8, from, relu)) as u64
        }
        _ => cvt::float_to_float(x[0], float(to)?, float(from)?, round, ftz),
    })
}
