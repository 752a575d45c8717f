//! Comparison and selection: `setp`, `set`, `selp`, `slct`.

use super::Result;
use super::float::scalar;
use super::function::FnLower;
use super::operand::width;
use crate::ast::{Instruction, ScalarType};
use crate::types::TypeClass;
use ir::{FloatCmp, IntCmp, Op, Type, Value};

pub(super) fn lower<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    match inst.mnemonic.text {
        "setp" => set_predicate(cx, inst),
        "set" => set_value(cx, inst),
        "selp" => {
            let ty = cx.type_at(inst, 0)?;
            let args = cx.sources(inst, ty, 2)?;
            let condition = cx.pred(cx.operand(inst, 3)?)?;
            cx.apply(inst, Op::Select, &[condition, args[0], args[1]], width(ty))
        }
        "slct" => {
            let (ty, tested) = (cx.type_at(inst, 0)?, cx.type_at(inst, 1)?);
            let args = cx.sources(inst, ty, 2)?;
            let value = cx.src(cx.operand(inst, 3)?, tested)?;
            let zero = cx.iconst(width(tested), 0);
            let op = match tested {
                ScalarType::S32 => Op::ICmp { cmp: IntCmp::Ge, signed: true },
                ScalarType::F32 => {
                    Op::FCmp { cmp: FloatCmp::Ge, ty: ir::Scalar::F32, ftz: inst.has_modifier("ftz") }
                }
                _ => return cx.fail(inst.opcode_span(), "`slct` tests `.s32` or `.f32`"),
            };
            let condition = cx.b.ins(op, &[value, zero], Type::P);
            cx.apply(inst, Op::Select, &[condition, args[0], args[1]], width(ty))
        }
        _ => cx.not_built(inst),
    }
}

/// The comparison among the modifiers.
fn comparison<'a>(cx: &FnLower<'_, '_, 'a>, inst: &Instruction<'a>, ty: ScalarType) -> Result<Op> {
    let is_other =
        |word: &str| matches!(word, "and" | "or" | "xor" | "ftz") || ScalarType::from_word(word).is_some();
    let word = inst.modifiers.iter().map(|m| m.text).find(|word| !is_other(word)).unwrap_or_default();
    let wrong = || cx.fail(inst.opcode_span(), format!("`{word}` does not compare `.{}`", ty.word()));
    if ty.class() == TypeClass::Float {
        let cmp = match word {
            "eq" => FloatCmp::Eq,
            "ne" => FloatCmp::Ne,
            "lt" => FloatCmp::Lt,
            "le" => FloatCmp::Le,
            "gt" => FloatCmp::Gt,
            "ge" => FloatCmp::Ge,
            "equ" => FloatCmp::Equ,
            "neu" => FloatCmp::Neu,
            "ltu" => FloatCmp::Ltu,
            "leu" => FloatCmp::Leu,
            "gtu" => FloatCmp::Gtu,
            "geu" => FloatCmp::Geu,
            "num" => FloatCmp::Num,
            "nan" => FloatCmp::Nan,
            _ => return wrong(),
        };
        let (ty, ftz) = (scalar(ty), inst.has_modifier("ftz"));
        return Ok(if is_packed(ty) { Op::FCmp2 { cmp, ty, ftz } } else { Op::FCmp { cmp, ty, ftz } });
    }
    let signed = ty.class() == TypeClass::Signed;
    let ordered = ty.class() != TypeClass::Bits;
    let cmp = match word {
        "eq" => IntCmp::Eq,
        "ne" => IntCmp::Ne,
        "lt" if ordered => IntCmp::Lt,
        "le" if ordered => IntCmp::Le,
        "gt" if ordered => IntCmp::Gt,
        "ge" if ordered => IntCmp::Ge,
        "lo" if ordered && !signed => IntCmp::Lt,
        "ls" if ordered && !signed => IntCmp::Le,
        "hi" if ordered && !signed => IntCmp::Gt,
        "hs" if ordered && !signed => IntCmp::Ge,
        _ => return wrong(),
    };
    Ok(Op::ICmp { cmp, signed })
}

fn is_packed(ty: ir::Scalar) -> bool {
    matches!(ty, ir::Scalar::F16x2 | ir::Scalar::Bf16x2)
}

/// Compares operands 1 and 2: one predicate, or one for each half (the low one first).
fn compare<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>, ty: ScalarType) -> Result<Vec<Value>> {
    let op = comparison(cx, inst, ty)?;
    let args = cx.sources(inst, ty, 2)?;
    let results: &[Type] = if matches!(op, Op::FCmp2 { .. }) { &[Type::P, Type::P] } else { &[Type::P] };
    Ok(cx.b.ins_multi(op, &args, results, None))
}

/// The operation and predicate that a comparison's result is combined with.
fn combination<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result<Option<(Op, Value)>> {
    let op = inst.modifiers.iter().find_map(|m| match m.text {
        "and" => Some(Op::And),
        "or" => Some(Op::Or),
        "xor" => Some(Op::Xor),
        _ => None,
    });
    match (op, inst.operands.get(3)) {
        (None, None) => Ok(None),
        (Some(op), Some(operand)) => Ok(Some((op, cx.pred(operand)?))),
        (Some(_), None) => cx.fail(inst.span, "a predicate to combine the comparison with is missing"),
        (None, Some(operand)) => {
            cx.fail(operand.span, "a predicate is combined by `.and`, `.or` or `.xor`: none is given")
        }
    }
}

fn combine(cx: &mut FnLower<'_, '_, '_>, with: Option<(Op, Value)>, value: Value) -> Value {
    match with {
        None => value,
        Some((op, other)) => cx.b.ins(op, &[value, other], Type::P),
    }
}

fn set_predicate<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    let ty = cx.type_at(inst, 0)?;
    let results = compare(cx, inst, ty)?;
    let with = combination(cx, inst)?;
    let (first, second) = cx.pair(cx.operand(inst, 0)?);
    let value = combine(cx, with, results[0]);
    let other = match (second, results.get(1)) {
        // The halves of a packed comparison have a predicate each.
        (Some(_), Some(&high)) => Some(combine(cx, with, high)),
        (Some(_), None) => {
            let opposite = cx.b.ins(Op::Not, &[results[0]], Type::P);
            Some(combine(cx, with, opposite))
        }
        (None, _) => None,
    };
    cx.write(first, value)?;
    if let (Some(operand), Some(other)) = (second, other) {
        cx.write(operand, other)?;
    }
    Ok(())
}

/// What `set` writes for a true comparison.
fn truth(ty: ScalarType) -> u64 {
    match ty {
        ScalarType::F32 => 0x3f80_0000,
        ScalarType::F16 | ScalarType::F16x2 => 0x3c00,
        ScalarType::Bf16 | ScalarType::Bf16x2 => 0x3f80,
        _ => u64::MAX,
    }
}

fn set_value<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    let (to, from) = (cx.type_at(inst, 0)?, cx.type_at(inst, 1)?);
    if is_packed(scalar(to)) != is_packed(scalar(from)) {
        return cx.fail(
            inst.opcode_span(),
            format!("`set` cannot give `.{}` from a comparison of `.{}`", to.word(), from.word()),
        );
    }
    let results = compare(cx, inst, from)?;
    let with = combination(cx, inst)?;
    let element = if results.len() == 2 { Type::B16 } else { width(to) };
    let mut values = Vec::with_capacity(2);
    for result in results {
        let condition = combine(cx, with, result);
        let (yes, no) = (cx.iconst(element, truth(to)), cx.iconst(element, 0));
        values.push(cx.b.ins(Op::Select, &[condition, yes, no], element));
    }
    let value = match values[..] {
        [low, high] => cx.b.ins(Op::Concat, &[low, high], Type::B32),
        _ => values[0],
    };
    cx.write(cx.operand(inst, 0)?, value)
}
