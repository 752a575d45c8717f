//! Floating-point arithmetic and the approximate functions.

use super::Result;
use super::function::FnLower;
use super::operand::width;
use crate::ast::{Instruction, ScalarType};
use crate::types::TypeClass;
use ir::{ApproxFn, Float, Op, Round, Scalar, TestProperty, Type};

/// The ir type of a PTX type. Untyped bits are unsigned; types that no single value has count as the one they are
/// stored in.
pub(super) fn scalar(ty: ScalarType) -> Scalar {
    use ScalarType as T;
    match ty {
        T::F16 => Scalar::F16,
        T::F16x2 => Scalar::F16x2,
        T::Bf16 => Scalar::Bf16,
        T::Bf16x2 => Scalar::Bf16x2,
        T::Tf32 => Scalar::Tf32,
        T::F32 => Scalar::F32,
        T::F64 => Scalar::F64,
        T::E4m3 | T::E4m3x2 => Scalar::E4m3x2,
        T::E5m2 | T::E5m2x2 => Scalar::E5m2x2,
        T::S2 | T::S4 | T::S8 => Scalar::S8,
        T::S16 => Scalar::S16,
        T::S32 => Scalar::S32,
        T::S64 => Scalar::S64,
        T::Pred | T::B1 | T::U2 | T::U4 | T::U8 | T::B8 => Scalar::U8,
        T::U16 | T::B16 => Scalar::U16,
        T::U32 | T::B32 | T::U16x2 | T::S16x2 => Scalar::U32,
        T::U64 | T::B64 | T::B128 | T::Texref | T::Samplerref | T::Surfref => Scalar::U64,
    }
}

/// The rounding among the modifiers.
fn rounding(inst: &Instruction<'_>) -> Option<Round> {
    inst.modifiers.iter().find_map(|m| match m.text {
        "rn" => Some(Round::Rn),
        "rz" => Some(Round::Rz),
        "rm" => Some(Round::Rm),
        "rp" => Some(Round::Rp),
        _ => None,
    })
}

fn approximate(mnemonic: &str) -> Option<ApproxFn> {
    Some(match mnemonic {
        "rcp" => ApproxFn::Rcp,
        "rsqrt" => ApproxFn::Rsqrt,
        "sqrt" => ApproxFn::Sqrt,
        "sin" => ApproxFn::Sin,
        "cos" => ApproxFn::Cos,
        "lg2" => ApproxFn::Lg2,
        "ex2" => ApproxFn::Ex2,
        "tanh" => ApproxFn::Tanh,
        "div" => ApproxFn::Div,
        _ => return None,
    })
}

fn property(inst: &Instruction<'_>) -> Option<TestProperty> {
    inst.modifiers.iter().find_map(|m| match m.text {
        "finite" => Some(TestProperty::Finite),
        "infinite" => Some(TestProperty::Infinite),
        "number" => Some(TestProperty::Number),
        "notanumber" => Some(TestProperty::NotANumber),
        "normal" => Some(TestProperty::Normal),
        "subnormal" => Some(TestProperty::Subnormal),
        _ => None,
    })
}

pub(super) fn lower<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    let written = cx.type_at(inst, 0)?;
    if written.class() != TypeClass::Float {
        return cx
            .fail(inst.opcode_span(), format!("`{}` works on floating-point types", inst.mnemonic.text));
    }
    // Two types are a mixed-precision form, which later architectures have.
    if inst.types().count() > 1 || inst.has_modifier("oob") {
        return cx.not_built(inst);
    }
    let mnemonic = inst.mnemonic.text;
    let ty = scalar(written);
    let ftz = inst.has_modifier("ftz");
    let round = rounding(inst);
    let exact = round.unwrap_or(Round::Rn);
    let approx = inst.has_modifier("approx");
    let float = Float {
        ty,
        round: exact,
        ftz,
        sat: inst.has_modifier("sat"),
        relu: inst.has_modifier("relu"),
        contract: round.is_none(),
    };
    let (nan, xorsign_abs) = (inst.has_modifier("NaN"), inst.has_modifier("xorsign"));
    let (op, count) = match mnemonic {
        "add" => (Op::FAdd(float), 2),
        "sub" => (Op::FSub(float), 2),
        "mul" => (Op::FMul(float), 2),
        "fma" | "mad" => (Op::FFma(Float { contract: false, ..float }), 3),
        "div" if inst.has_modifier("full") => (Op::Approx { f: ApproxFn::DivFull, ty, ftz }, 2),
        "div" if !approx => (Op::FDiv { ty, round: exact, ftz }, 2),
        "rcp" if !approx => (Op::FRcp { ty, round: exact, ftz }, 1),
        "sqrt" if !approx => (Op::FSqrt { ty, round: exact, ftz }, 1),
        "abs" => (Op::FAbs { ty, ftz }, 1),
        "neg" => (Op::FNeg { ty, ftz }, 1),
        "min" => (Op::FMin { ty, ftz, nan, xorsign_abs }, 2),
        "max" => (Op::FMax { ty, ftz, nan, xorsign_abs }, 2),
        "copysign" => (Op::Copysign { ty }, 2),
        "testp" => {
            let Some(property) = property(inst) else {
                return cx.fail(inst.opcode_span(), "`testp` needs the property it tests");
            };
            let args = cx.sources(inst, written, 1)?;
            return cx.apply(inst, Op::Testp { property, ty }, &args, Type::P);
        }
        _ => match approximate(mnemonic) {
            Some(f) => (Op::Approx { f, ty, ftz }, if f == ApproxFn::Div { 2 } else { 1 }),
            None => return cx.not_built(inst),
        },
    };
    // Minimum and maximum of three belong to later architectures.
    if inst.operands.len() != count + 1 {
        return cx.not_built(inst);
    }
    let args = cx.sources(inst, written, count)?;
    cx.apply(inst, op, &args, width(written))
}
