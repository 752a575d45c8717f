//! Logic, shifts and byte permutes.

use super::Result;
use super::function::FnLower;
use super::operand::width;
use crate::ast::{Instruction, ScalarType};
use crate::types::TypeClass;
use ir::{IntCmp, Op, PrmtMode, Type};

pub(super) fn lower<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    let ty = cx.type_at(inst, 0)?;
    let value = width(ty);
    match inst.mnemonic.text {
        "and" | "or" | "xor" => {
            let op = match inst.mnemonic.text {
                "and" => Op::And,
                "or" => Op::Or,
                _ => Op::Xor,
            };
            let args = cx.sources(inst, ty, 2)?;
            cx.apply(inst, op, &args, value)
        }
        "not" => {
            let args = cx.sources(inst, ty, 1)?;
            cx.apply(inst, Op::Not, &args, value)
        }
        "cnot" => {
            let args = cx.sources(inst, ty, 1)?;
            let (zero, one) = (cx.iconst(value, 0), cx.iconst(value, 1));
            let is_zero = cx.b.ins(Op::ICmp { cmp: IntCmp::Eq, signed: false }, &[args[0], zero], Type::P);
            cx.apply(inst, Op::Select, &[is_zero, one, zero], value)
        }
        "lop3" => logic_of_three(cx, inst),
        "shf" => {
            let left = inst.has_modifier("l");
            let args = cx.sources(inst, ScalarType::B32, 3)?;
            cx.apply(inst, Op::Funnel { left, wrap: inst.has_modifier("wrap") }, &args, Type::B32)
        }
        "shl" | "shr" => {
            let op = match (inst.mnemonic.text, ty.class()) {
                ("shl", _) => Op::Shl,
                (_, TypeClass::Signed) => Op::ShrS,
                _ => Op::ShrU,
            };
            let shifted = cx.src(cx.operand(inst, 1)?, ty)?;
            let count = cx.src(cx.operand(inst, 2)?, ScalarType::U32)?;
            cx.apply(inst, op, &[shifted, count], value)
        }
        "prmt" => {
            let mode = inst.modifiers.iter().find_map(|m| match m.text {
                "f4e" => Some(PrmtMode::F4e),
                "b4e" => Some(PrmtMode::B4e),
                "rc8" => Some(PrmtMode::Rc8),
                "ecl" => Some(PrmtMode::Ecl),
                "ecr" => Some(PrmtMode::Ecr),
                "rc16" => Some(PrmtMode::Rc16),
                _ => None,
            });
            let args = cx.sources(inst, ScalarType::B32, 3)?;
            cx.apply(inst, Op::Prmt(mode.unwrap_or(PrmtMode::Index)), &args, Type::B32)
        }
        _ => cx.not_built(inst),
    }
}

/// `lop3`, with a predicate that says whether the result, combined with another predicate, is not zero.
fn logic_of_three<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    let args = cx.sources(inst, ScalarType::B32, 3)?;
    let table = cx.operand(inst, 4)?;
    let Ok(lut) = u8::try_from(cx.constant_operand(table)?) else {
        return cx.fail(table.span, "the truth table of `lop3` has 8 bits");
    };
    let value = cx.b.ins(Op::Lop3(lut), &args, Type::B32);
    let (first, second) = cx.pair(cx.operand(inst, 0)?);
    let combine = match (inst.has_modifier("and"), inst.has_modifier("or")) {
        (true, _) => Op::And,
        (_, true) => Op::Or,
        _ if second.is_some() => {
            return cx.fail(inst.opcode_span(), "`lop3` with a predicate needs `.and` or `.or`");
        }
        _ => return cx.write(first, value),
    };
    let other = cx.pred(cx.operand(inst, 5)?)?;
    let zero = cx.iconst(Type::B32, 0);
    let nonzero = cx.b.ins(Op::ICmp { cmp: IntCmp::Ne, signed: false }, &[value, zero], Type::P);
    let answer = cx.b.ins(combine, &[nonzero, other], Type::P);
    cx.write(first, value)?;
    second.map_or(Ok(()), |operand| cx.write(operand, answer))
}
