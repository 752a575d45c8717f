//! Conversions: `cvt` and `cvt.pack`.

use super::Result;
use super::float::scalar;
use super::function::FnLower;
use super::operand::width;
use crate::ast::{Instruction, ScalarType};
use crate::types::TypeClass;
use ir::{Cvt, CvtRound, Op, PrmtMode, Scalar, Type, Value};

pub(super) fn lower<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    if inst.has_modifier("pack") {
        return pack(cx, inst);
    }
    let (to, from) = (cx.type_at(inst, 0)?, cx.type_at(inst, 1)?);
    let conversion = conversion(cx, inst, scalar(to), scalar(from))?;
    let dest = cx.operand(inst, 0)?;
    if inst.operands.len() == 3 {
        let args = cx.sources(inst, from, 2)?;
        return cx.apply(inst, Op::CvtPack(conversion), &args, width(to));
    }
    let to_signed = conversion.to.is_signed();
    let value = if is_plain_integer(&conversion) {
        resize_integer(cx, inst, to, from)?
    } else {
        let source = cx.src(cx.operand(inst, 1)?, from)?;
        cx.b.ins(Op::Cvt(conversion), &[source], width(to))
    };
    cx.write_extended(dest, value, to_signed)
}

/// Between integers, with nothing to clamp.
fn is_plain_integer(c: &Cvt) -> bool {
    let fits = match (c.from.is_signed(), c.to.is_signed()) {
        (true, false) => false,
        (false, true) => c.to.bits() > c.from.bits(),
        _ => c.to.bits() >= c.from.bits(),
    };
    c.to.is_int() && c.from.is_int() && (fits || !c.sat)
}

/// Integer to integer by width alone. The value may be wider than the destination's type, which then is extended
/// by its own sign.
fn resize_integer<'a>(
    cx: &mut FnLower<'_, '_, 'a>,
    inst: &Instruction<'a>,
    to: ScalarType,
    from: ScalarType,
) -> Result<Value> {
    let source = cx.operand(inst, 1)?;
    let signed = |ty: ScalarType| ty.class() == TypeClass::Signed;
    if to.bits() == 8 {
        let value = cx.src(source, ScalarType::U32)?;
        return Ok(extend_byte(cx, value, signed(to)));
    }
    let value = if from.bits() == 8 {
        let value = cx.src(source, ScalarType::U32)?;
        extend_byte(cx, value, signed(from))
    } else {
        cx.src(source, from)?
    };
    Ok(cx.resize(value, width(to), signed(from)))
}

/// The low byte of a 32-bit value, extended to 32 bits.
fn extend_byte(cx: &mut FnLower<'_, '_, '_>, value: Value, signed: bool) -> Value {
    let (op, other) = if signed {
        // Byte 0, then its sign three times.
        (Op::Prmt(PrmtMode::Index), 0x8880)
    } else {
        (Op::And, 0xff)
    };
    let other = cx.iconst(Type::B32, other);
    let mut args = vec![value, other];
    if signed {
        args.insert(1, value);
    }
    cx.b.ins(op, &args, Type::B32)
}

/// The conversion as its modifiers say, checked for what PTX demands.
fn conversion<'a>(cx: &FnLower<'_, '_, 'a>, inst: &Instruction<'a>, to: Scalar, from: Scalar) -> Result<Cvt> {
    let round = inst.modifiers.iter().find_map(|m| match m.text {
        "rn" => Some(CvtRound::Rn),
        "rz" => Some(CvtRound::Rz),
        "rm" => Some(CvtRound::Rm),
        "rp" => Some(CvtRound::Rp),
        "rna" => Some(CvtRound::Rna),
        "rni" => Some(CvtRound::Rni),
        "rzi" => Some(CvtRound::Rzi),
        "rmi" => Some(CvtRound::Rmi),
        "rpi" => Some(CvtRound::Rpi),
        _ => None,
    });
    let (sat, relu, satfinite) =
        (inst.has_modifier("sat"), inst.has_modifier("relu"), inst.has_modifier("satfinite"));
    let fail = |message: &str| {
        cx.fail(inst.opcode_span(), format!("`cvt` from `.{}` to `.{}` {message}", from.name(), to.name()))
    };
    let integral = matches!(round, Some(CvtRound::Rni | CvtRound::Rzi | CvtRound::Rmi | CvtRound::Rpi));
    match (to.is_int(), from.is_int()) {
        (true, true) if round.is_some() => return fail("does not round"),
        (true, false) if !integral => return fail("needs `.rni`, `.rzi`, `.rmi` or `.rpi`"),
        (false, true) if round.is_none() || integral => return fail("needs `.rn`, `.rz`, `.rm` or `.rp`"),
        (false, false) if integral && to != from => return fail("does not round to an integral value"),
        (false, false)
            if round.is_none() && (to.bits() < from.bits() || is_special(to) || is_special(from)) =>
        {
            return fail("needs a rounding");
        }
        _ => {}
    }
    if matches!(round, Some(CvtRound::Rna)) && to != Scalar::Tf32 {
        return fail("does not round ties away from zero");
    }
    if is_fp8(to) && !satfinite {
        return fail("needs `.satfinite`");
    }
    if (relu || satfinite) && (to.is_int() || matches!(to, Scalar::F32 | Scalar::F64)) {
        return fail("has neither `.relu` nor `.satfinite`");
    }
    if !is_known(to, from, inst.operands.len()) {
        return cx.not_built(inst);
    }
    let round = round.unwrap_or(CvtRound::None);
    Ok(Cvt { to, from, round, ftz: inst.has_modifier("ftz"), sat, relu, satfinite })
}

fn is_fp8(ty: Scalar) -> bool {
    matches!(ty, Scalar::E4m3x2 | Scalar::E5m2x2)
}

/// Packed formats and tf32.
fn is_special(ty: Scalar) -> bool {
    is_fp8(ty) || matches!(ty, Scalar::F16x2 | Scalar::Bf16x2 | Scalar::Tf32)
}

/// The pairs of formats that exist: the plain ones among each other, the special ones from or to a few.
fn is_known(to: Scalar, from: Scalar, operands: usize) -> bool {
    let packs = operands == 3;
    match (to, from) {
        (Scalar::F16x2 | Scalar::Bf16x2 | Scalar::E4m3x2 | Scalar::E5m2x2, Scalar::F32) => packs,
        (Scalar::E4m3x2 | Scalar::E5m2x2, Scalar::F16x2) => !packs,
        (Scalar::F16x2, Scalar::E4m3x2 | Scalar::E5m2x2) => !packs,
        (Scalar::Tf32, Scalar::F32) => !packs,
        _ => !packs && !is_special(to) && !is_special(from),
    }
}

/// Two integers, saturated, in the low bits of the result; below 16 bits the third operand fills the rest.
fn pack<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    let to = cx.type_at(inst, 0)?;
    let count = if to.bits() < 16 { 3 } else { 2 };
    let args = cx.sources(inst, ScalarType::S32, count)?;
    if to.bits() >= 8 {
        return cx.apply(inst, Op::CvtPackInt { to: scalar(to), with_c: count == 3 }, &args, Type::B32);
    }
    let bits = u64::from(to.bits());
    let mask = (1u64 << bits) - 1;
    let (min, max) =
        if to.class() == TypeClass::Signed { ((mask >> 1).wrapping_neg() - 1, mask >> 1) } else { (0, mask) };
    let (min, max) = (cx.iconst(Type::B32, min), cx.iconst(Type::B32, max));
    let (mask, size) = (cx.iconst(Type::B32, mask), cx.iconst(Type::B32, bits));
    let mut packed = args[2];
    for &field in &args[..2] {
        let low = cx.b.ins(Op::Max { signed: true }, &[field, min], Type::B32);
        let clamped = cx.b.ins(Op::Min { signed: true }, &[low, max], Type::B32);
        let cut = cx.b.ins(Op::And, &[clamped, mask], Type::B32);
        let above = cx.b.ins(Op::Shl, &[packed, size], Type::B32);
        packed = cx.b.ins(Op::Or, &[above, cut], Type::B32);
    }
    cx.write(cx.operand(inst, 0)?, packed)
}
