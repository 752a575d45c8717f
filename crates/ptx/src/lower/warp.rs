//! What the lanes of a warp do together: shuffles, votes, matches, reductions and elections.

use super::Result;
use super::function::FnLower;
use super::operand::{Dest, width};
use crate::ast::{Instruction, Operand, OperandKind, ScalarType};
use ir::{Op, ReduxOp, ShflMode, Type, Value, VoteMode};

pub(super) fn lower<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    let sync = inst.has_modifier("sync");
    let dest = cx.operand(inst, 0)?;
    match inst.mnemonic.text {
        "shfl" => {
            let Some(mode) = find(inst, shuffle) else {
                return cx.fail(inst.opcode_span(), "`shfl` needs `.up`, `.down`, `.bfly` or `.idx`");
            };
            let mut args = cx.sources(inst, ScalarType::B32, 3)?;
            args.push(member_mask(cx, inst, 4, sync)?);
            with_predicate(cx, dest, Op::Shfl(mode), &args)
        }
        "vote" => {
            let Some(mode) = find(inst, vote) else {
                return cx.fail(inst.opcode_span(), "`vote` needs `.all`, `.any`, `.uni` or `.ballot`");
            };
            let predicate = cx.pred(cx.operand(inst, 1)?)?;
            let mask = member_mask(cx, inst, 2, sync)?;
            let ty = if mode == VoteMode::Ballot { Type::B32 } else { Type::P };
            cx.effect(Op::Vote(mode), &[predicate, mask], &[Dest::new(dest, ty)])
        }
        "match" => {
            let ty = cx.type_at(inst, 0)?;
            let value = cx.src(cx.operand(inst, 1)?, ty)?;
            let mask = member_mask(cx, inst, 2, sync)?;
            if inst.has_modifier("all") {
                with_predicate(cx, dest, Op::MatchAll, &[value, mask])
            } else {
                cx.effect(Op::MatchAny, &[value, mask], &[Dest::new(dest, Type::B32)])
            }
        }
        "redux" => {
            let ty = cx.type_at(inst, 0)?;
            let Some(op) = find(inst, |word| reduction(word, ty)) else { return cx.not_built(inst) };
            let value = cx.src(cx.operand(inst, 1)?, ty)?;
            let mask = member_mask(cx, inst, 2, sync)?;
            cx.effect(Op::Redux(op), &[value, mask], &[Dest::new(dest, width(ty))])
        }
        "elect" => {
            let mask = member_mask(cx, inst, 1, sync)?;
            with_predicate(cx, dest, Op::Elect, &[mask])
        }
        "activemask" => cx.effect(Op::ActiveMask, &[], &[Dest::new(dest, Type::B32)]),
        _ => cx.not_built(inst),
    }
}

fn find<T>(inst: &Instruction<'_>, by: impl Fn(&str) -> Option<T>) -> Option<T> {
    inst.modifiers.iter().find_map(|m| by(m.text))
}

fn shuffle(word: &str) -> Option<ShflMode> {
    Some(match word {
        "up" => ShflMode::Up,
        "down" => ShflMode::Down,
        "bfly" => ShflMode::Bfly,
        "idx" => ShflMode::Idx,
        _ => return None,
    })
}

fn vote(word: &str) -> Option<VoteMode> {
    Some(match word {
        "all" => VoteMode::All,
        "any" => VoteMode::Any,
        "uni" => VoteMode::Uni,
        "ballot" => VoteMode::Ballot,
        _ => return None,
    })
}

fn reduction(word: &str, ty: ScalarType) -> Option<ReduxOp> {
    Some(match (word, ty) {
        ("add", ScalarType::U32 | ScalarType::S32) => ReduxOp::Add,
        ("min", ScalarType::U32) => ReduxOp::MinU,
        ("min", ScalarType::S32) => ReduxOp::MinS,
        ("max", ScalarType::U32) => ReduxOp::MaxU,
        ("max", ScalarType::S32) => ReduxOp::MaxS,
        ("and", ScalarType::B32) => ReduxOp::And,
        ("or", ScalarType::B32) => ReduxOp::Or,
        ("xor", ScalarType::B32) => ReduxOp::Xor,
        _ => return None,
    })
}

/// The lanes that take part: operand `n`, or without `.sync` the lanes that run the instruction.
fn member_mask<'a>(
    cx: &mut FnLower<'_, '_, 'a>,
    inst: &Instruction<'a>,
    n: usize,
    sync: bool,
) -> Result<Value> {
    if sync {
        return cx.src(cx.operand(inst, n)?, ScalarType::B32);
    }
    // A guarded operation needs a value for the lanes it leaves out; they do not use it.
    let others: Vec<Value> = cx.guard.iter().map(|_| cx.b.iconst(Type::B32, 0)).collect();
    Ok(cx.b.ins_multi(Op::ActiveMask, &others, &[Type::B32], cx.guard)[0])
}

/// An operation that gives a word and a predicate; `d` alone drops the predicate.
fn with_predicate<'a>(cx: &mut FnLower<'_, '_, 'a>, dest: &Operand<'a>, op: Op, args: &[Value]) -> Result {
    let (word, predicate) = cx.pair(dest);
    let sink = Operand { span: dest.span, kind: OperandKind::Sink };
    let predicate = predicate.unwrap_or(&sink);
    cx.effect(op, args, &[Dest::new(word, Type::B32), Dest::new(predicate, Type::P)])
}
