//! Conversions.

use super::bodies;
use crate::lanes::{Lanes, Pair, map1, map2, map3, store32, store64};
use crate::level::{Levels, levels};
use crate::uop::{Flow, Uop};
use arith::cvt::{self, Clamp, FloatType, Fp8, IntType};
use arith::{Round, fp32, half};
use isa::field::{CvtRnd, Field, FieldValue, From, To};
use isa::{Inst, Op};

/// A conversion, as `aux` has it: To, From (5 bits each), rounding (4), ftz, sat, relu, satfinite.
#[derive(Clone, Copy)]
struct Conversion {
    to: To,
    from: From,
    rnd: CvtRnd,
    ftz: bool,
    sat: bool,
    clamp: Clamp,
}

impl Conversion {
    fn pack(i: &Inst) -> u32 {
        i.field(Field::To)
            | i.field(Field::From) << 5
            | i.field(Field::CvtRnd) << 10
            | i.field(Field::Ftz) << 14
            | i.field(Field::Sat) << 15
            | i.field(Field::Relu) << 16
            | i.field(Field::SatFinite) << 17
    }

    fn unpack(aux: u32) -> Conversion {
        let flag = |n: u32| aux >> n & 1 != 0;
        Conversion {
            to: To::from_bits(aux & 31),
            from: From::from_bits(aux >> 5 & 31),
            rnd: CvtRnd::from_bits(aux >> 10 & 15),
            ftz: flag(14),
            sat: flag(15),
            clamp: Clamp { relu: flag(16), satfinite: flag(17) },
        }
    }

    fn round(self) -> Round {
        match self.rnd {
            CvtRnd::Rz | CvtRnd::Rzi => Round::Rz,
            CvtRnd::Rm | CvtRnd::Rmi => Round::Rm,
            CvtRnd::Rp | CvtRnd::Rpi => Round::Rp,
            CvtRnd::None | CvtRnd::Rn | CvtRnd::Rna | CvtRnd::Rni => Round::Rn,
        }
    }

    /// To an integral value of the same type.
    fn is_integral(self) -> bool {
        matches!(self.rnd, CvtRnd::Rni | CvtRnd::Rzi | CvtRnd::Rmi | CvtRnd::Rpi)
    }
}

fn int_type(bits: u32) -> Option<IntType> {
    use IntType::*;
    [U8, S8, U16, S16, U32, S32, U64, S64].get(bits as usize).copied()
}

fn float_type(bits: u32) -> Option<FloatType> {
    match To::from_bits(bits) {
        To::F16 => Some(FloatType::F16),
        To::Bf16 => Some(FloatType::Bf16),
        To::F32 => Some(FloatType::F32),
        To::F64 => Some(FloatType::F64),
        _ => None,
    }
}

fn fp8(bits: u32) -> Option<Fp8> {
    match To::from_bits(bits) {
        To::E4m3x2 => Some(Fp8::E4m3),
        To::E5m2x2 => Some(Fp8::E5m2),
        _ => None,
    }
}

/// Clamps a result of any float type to [0, 1]; NaN gives 0.
fn saturate(x: u64, ty: FloatType) -> u64 {
    let format = ty.format();
    let (nan_from, one) = match ty {
        FloatType::F16 => (0x7c00, 0x3c00),
        FloatType::Bf16 => (0x7f80, 0x3f80),
        FloatType::F32 => return u64::from(fp32::saturate(x as u32)),
        FloatType::F64 => (0x7ff0_0000_0000_0000, 0x3ff0_0000_0000_0000),
    };
    if x & format.sign_bit() != 0 || x > nan_from { 0 } else { x.min(one) }
}

fn float_to_float(c: Conversion, x: u64) -> u64 {
    let round = c.round();
    let (to_bits, from_bits) = (c.to as u32, c.from as u32);
    match (c.to, c.from) {
        (To::Tf32, _) if c.rnd == CvtRnd::Rna => {
            return u64::from(cvt::f32_to_tf32_rna(x as u32, c.clamp.satfinite));
        }
        (To::Tf32, _) => return u64::from(cvt::f32_to_tf32(x as u32, round, c.clamp)),
        _ => {}
    }
    if let Some(f) = fp8(from_bits) {
        let part = |n: u32| cvt::fp8_to_f16((x >> (8 * n)) as u8, f, c.clamp.relu);
        return u64::from(half::pack(part(0), part(1)));
    }
    if let Some(f) = fp8(to_bits) {
        let part = |n: u32| u64::from(cvt::f16_to_fp8((x >> (16 * n)) as u16, f, c.clamp.relu));
        return part(0) | part(1) << 8;
    }
    let (Some(to), Some(from)) = (float_type(to_bits), float_type(from_bits)) else { return 0 };
    let r = match (to, from) {
        (FloatType::F16, FloatType::F32) => u64::from(cvt::f32_to_f16(x as u32, round, c.clamp)),
        (FloatType::Bf16, FloatType::F32) => u64::from(cvt::f32_to_bf16(x as u32, round, c.clamp)),
        (FloatType::F32, FloatType::F32) if c.is_integral() => {
            u64::from(cvt::round_f32(x as u32, round, c.ftz))
        }
        (FloatType::F64, FloatType::F64) if c.is_integral() => cvt::round_f64(x, round),
        (FloatType::F16, FloatType::F16) if c.is_integral() => u64::from(cvt::round_f16(x as u16, round)),
        (FloatType::Bf16, FloatType::Bf16) if c.is_integral() => u64::from(cvt::round_bf16(x as u16, round)),
        (FloatType::F16 | FloatType::Bf16 | FloatType::F64, _) if to == from => x,
        _ => cvt::float_to_float(x, to, from, round, c.ftz),
    };
    if c.sat { saturate(r, to) } else { r }
}

/// Any conversion of one lane.
fn convert(op: Op, c: Conversion, x: u64) -> u64 {
    let (to, from) = (c.to as u32, c.from as u32);
    match op {
        Op::I2f => match (float_type(to), int_type(from)) {
            (Some(to), Some(from)) => {
                let r = cvt::int_to_float(x, to, from, c.round());
                if c.sat { saturate(r, to) } else { r }
            }
            _ => 0,
        },
        Op::F2i => match (int_type(to), float_type(from)) {
            (Some(to), Some(from)) => cvt::float_to_int(x, to, from, c.round(), c.ftz),
            _ => 0,
        },
        Op::I2i => match (int_type(to), int_type(from)) {
            (Some(to), Some(from)) => cvt::int_to_int(x, to, from, c.sat),
            _ => 0,
        },
        _ => float_to_float(c, x),
    }
}

/// Two f32 to a packed pair, A above B.
fn pack_two(c: Conversion, a: u32, b: u32) -> u32 {
    let round = c.round();
    match c.to {
        To::Bf16x2 | To::Bf16 => {
            half::pack(cvt::f32_to_bf16(b, round, c.clamp), cvt::f32_to_bf16(a, round, c.clamp))
        }
        To::E4m3x2 | To::E5m2x2 => {
            let f = if c.to == To::E4m3x2 { Fp8::E4m3 } else { Fp8::E5m2 };
            let part = |x| u32::from(cvt::f32_to_fp8(x, f, c.clamp.relu));
            part(b) | part(a) << 8
        }
        _ => half::pack(cvt::f32_to_f16(b, round, c.clamp), cvt::f32_to_f16(a, round, c.clamp)),
    }
}

/// # Safety
/// As [`crate::uop::Handler`].
#[inline(always)]
unsafe fn any(l: &mut Lanes, u: &Uop) -> Flow {
    let c = Conversion::unpack(u.aux);
    let wide = |t: u32| matches!(To::from_bits(t), To::U64 | To::S64 | To::F64);
    // SAFETY: the decoder gave pairs to 64-bit types.
    unsafe {
        let (low, pair) = (&*l.row(u.a), if wide(c.from as u32) { Some(Pair::at(l, u.a)) } else { None });
        let value = |i: usize| convert(u.op, c, pair.map_or(u64::from(low[i]), |p| p.get(i)));
        if wide(c.to as u32) { store64(l, u, value) } else { store32(l, u, |i| value(i) as u32) }
    }
}

bodies! {
    Any |l, u| any(l, u);
    S32ToF32 |l, u| map1(l, u, |a| cvt::s32_to_f32(a, Round::Rn));
    U32ToF32 |l, u| map1(l, u, |a| cvt::u32_to_f32(a, Round::Rn));
    S32ToF64 |l, u| {
        let a = &*l.row(u.a);
        store64(l, u, |i| cvt::s32_to_f64(a[i]))
    };
    F32ToS32Rz |l, u| map1(l, u, |a| cvt::f32_to_s32(a, Round::Rz, false));
    F32ToU32Rz |l, u| map1(l, u, |a| cvt::f32_to_u32(a, Round::Rz, false));
    F32ToF64 |l, u| {
        let a = &*l.row(u.a);
        store64(l, u, |i| cvt::f32_to_f64(a[i], false))
    };
    F64ToF32 |l, u| {
        let a = Pair::at(l, u.a);
        store32(l, u, |i| cvt::f64_to_f32(a.get(i), Round::Rn, false, false))
    };
    F16ToF32 |l, u| map1(l, u, |a| cvt::f16_to_f32(a as u16));
    F32ToF16 |l, u| map1(l, u, |a| u32::from(cvt::f32_to_f16(a, Round::Rn, Clamp::default())));
    RoundF32<const R: u32> |l, u| map1(l, u, |a| {
        let round = match R {
            0 => Round::Rn,
            1 => Round::Rz,
            2 => Round::Rm,
            _ => Round::Rp,
        };
        cvt::round_f32(a, round, false)
    });
    PackTwo |l, u| {
        let c = Conversion::unpack(u.aux);
        map2(l, u, |a, b| pack_two(c, a, b))
    };
    PackF16 |l, u| map2(l, u, |a, b| {
        let f = |x| cvt::f32_to_f16(x, Round::Rn, Clamp::default());
        half::pack(f(b), f(a))
    });
    /// Bit 0 signed, bit 1 with C, from bit 8 on the width.
    PackInts |l, u| {
        let (signed, with_c, bits) = (u.aux & 1 != 0, u.aux & 2 != 0, u.aux >> 8);
        map3(l, u, |a, b, c| cvt::pack_sat(a, b, if with_c { c } else { 0 }, bits, signed))
    };
}

pub fn decode(i: &Inst, u: &mut Uop) -> Option<Levels> {
    u.aux = Conversion::pack(i);
    let c = Conversion::unpack(u.aux);
    let plain = !c.ftz && !c.sat && !c.clamp.relu && !c.clamp.satfinite;
    let nearest = plain && matches!(c.rnd, CvtRnd::None | CvtRnd::Rn);
    Some(match (i.op, c.to, c.from) {
        (Op::I2f, To::F32, From::S32) if nearest => levels::<S32ToF32>(),
        (Op::I2f, To::F32, From::U32) if nearest => levels::<U32ToF32>(),
        (Op::I2f, To::F64, From::S32) if plain => levels::<S32ToF64>(),
        (Op::F2i, To::S32, From::F32) if plain && c.round() == Round::Rz => levels::<F32ToS32Rz>(),
        (Op::F2i, To::U32, From::F32) if plain && c.round() == Round::Rz => levels::<F32ToU32Rz>(),
        (Op::F2f, To::F64, From::F32) if plain => levels::<F32ToF64>(),
        (Op::F2f, To::F32, From::F64) if nearest => levels::<F64ToF32>(),
        (Op::F2f, To::F32, From::F16) if plain => levels::<F16ToF32>(),
        (Op::F2f, To::F16, From::F32) if nearest => levels::<F32ToF16>(),
        (Op::F2f, To::F32, From::F32) if plain && c.is_integral() => {
            super::pick!(c.round() as u32, RoundF32, [0 1 2 3])
        }
        (Op::I2f | Op::F2i | Op::F2f | Op::I2i, ..) => levels::<Any>(),
        (Op::F2fp, To::F16x2, _) if nearest => levels::<PackF16>(),
        (Op::F2fp, ..) => levels::<PackTwo>(),
        (Op::I2ip, to, _) => {
            let ty = int_type(to as u32)?;
            u.aux = ty.is_signed() as u32 | i.field(Field::WithC) << 1 | ty.bits() << 8;
            levels::<PackInts>()
        }
        _ => return None,
    })
}
