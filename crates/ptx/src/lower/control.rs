//! Branches, barriers, ends and what the thread tells the system.

use super::Result;
use super::function::{Binding, FnLower};
use super::operand::{Dest, width};
use crate::ast::{Instruction, Operand, OperandKind, ScalarType, Statement};
use ir::{BarMode, BlockCall, Guard, Op, Terminator, Type};

pub(super) fn lower<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    match inst.mnemonic.text {
        "bra" => branch(cx, inst),
        "brx" => switch(cx, inst),
        "ret" | "exit" => {
            let after = cx.branch_around();
            if inst.mnemonic.text == "exit" {
                cx.b.terminate(Terminator::Exit);
            } else {
                cx.end();
            }
            if after.is_some() {
                cx.rejoin(after);
            }
            Ok(())
        }
        "bar" | "barrier" => barrier(cx, inst),
        "trap" => {
            let after = cx.branch_around();
            cx.b.effect(Op::Trap, &[], None);
            cx.b.terminate(Terminator::Unreachable);
            cx.rejoin(after);
            Ok(())
        }
        "brkpt" => cx.effect(Op::Brkpt, &[], &[]),
        "pmevent" => {
            let number = cx.constant_operand(cx.operand(inst, 0)?)?;
            cx.effect(Op::PmEvent(number as u32), &[], &[])
        }
        "nanosleep" => {
            let time = cx.src(cx.operand(inst, 0)?, ScalarType::U32)?;
            cx.effect(Op::Nanosleep, &[time], &[])
        }
        // Nothing runs before or after this grid that it could wait for or release.
        "griddepcontrol" => Ok(()),
        "stacksave" => {
            let ty = cx.type_at(inst, 0)?;
            cx.effect(Op::StackSave, &[], &[Dest::new(cx.operand(inst, 0)?, width(ty))])
        }
        "stackrestore" => {
            let ty = cx.type_at(inst, 0)?;
            let saved = cx.src(cx.operand(inst, 0)?, ty)?;
            cx.effect(Op::StackRestore, &[saved], &[])
        }
        "alloca" => {
            let ty = cx.type_at(inst, 0)?;
            let align = match inst.operands.get(2) {
                Some(operand) => cx.constant_operand(operand)?,
                None => 8,
            };
            if !align.is_power_of_two() || align > 1 << 20 {
                return cx.fail(inst.span, "an alignment is a power of two");
            }
            let bytes = cx.src(cx.operand(inst, 1)?, ty)?;
            let dest = Dest::new(cx.operand(inst, 0)?, width(ty));
            cx.effect(Op::Alloca { align: (align as u32).max(8) }, &[bytes], &[dest])
        }
        _ => cx.not_built(inst),
    }
}

fn branch<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    let operand = cx.operand(inst, 0)?;
    let Some(name) = operand.as_name() else { return cx.wrong(operand, "a label") };
    let target = cx.label(name)?;
    match cx.guard.take() {
        None => cx.b.jump(target),
        Some(Guard { value, negated }) => {
            let next = cx.b.create_block();
            let (then, otherwise) = if negated { (next, target) } else { (target, next) };
            cx.b.branch(value, then, otherwise, inst.has_modifier("uni"));
            cx.b.switch_to(next);
        }
    }
    Ok(())
}

fn switch<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    let after = cx.branch_around();
    let index = cx.src(cx.operand(inst, 0)?, ScalarType::U32)?;
    let operand = cx.operand(inst, 1)?;
    let Some(name) = operand.as_name() else { return cx.wrong(operand, "a `.branchtargets` label") };
    let Some(Binding::Targets(Statement::BranchTargets { targets, .. })) = cx.lookup(name.text) else {
        return cx.fail(name.span, format!("`{}` is no `.branchtargets` label", name.text));
    };
    let mut calls = Vec::new();
    for target in targets {
        if target.count.is_some() {
            return cx.fail(target.name.span, "numbered label ranges are not supported: list the labels");
        }
        calls.push(BlockCall::new(cx.label(target.name)?));
    }
    cx.b.terminate(Terminator::Switch { index, targets: calls, uniform: inst.has_modifier("uni") });
    cx.rejoin(after);
    Ok(())
}

/// `bar{.cta}`, `barrier{.cta}{.aligned}`, `bar.warp.sync`.
fn barrier<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    if inst.has_modifier("cluster") {
        return cx.not_built(inst);
    }
    if inst.has_modifier("warp") {
        let mask = cx.src(cx.operand(inst, 0)?, ScalarType::B32)?;
        return cx.effect(Op::WarpSync, &[mask], &[]);
    }
    let aligned = inst.mnemonic.text == "bar" || inst.has_modifier("aligned");
    let mode = if inst.has_modifier("arrive") {
        BarMode::Arrive
    } else if inst.has_modifier("popc") {
        BarMode::RedPopc
    } else if inst.has_modifier("and") {
        BarMode::RedAnd
    } else if inst.has_modifier("or") {
        BarMode::RedOr
    } else if inst.has_modifier("sync") {
        BarMode::Sync
    } else {
        return cx.not_built(inst);
    };
    let is_red = matches!(mode, BarMode::RedPopc | BarMode::RedAnd | BarMode::RedOr);
    let operands: &[Operand<'a>] = &inst.operands;
    let (dest, rest) =
        if is_red { (operands.first(), operands.get(1..).unwrap_or(&[])) } else { (None, operands) };
    let (predicate, rest) = match (is_red, rest.split_last()) {
        (true, Some((last, rest))) => (Some(last), rest),
        (true, None) => return cx.fail(inst.span, "a barrier reduction needs a predicate"),
        (false, _) => (None, rest),
    };
    let Some(number) = rest.first() else { return cx.fail(inst.span, "a barrier has a number") };
    if let OperandKind::Constant(expr) = &number.kind
        && cx.constant(expr, ScalarType::U64)? > 15
    {
        return cx.wrong(number, "a barrier from 0 to 15");
    }
    let mut args = vec![cx.src(number, ScalarType::U32)?];
    let has_count = match rest.get(1) {
        Some(count) => {
            args.push(cx.src(count, ScalarType::U32)?);
            true
        }
        None if mode == BarMode::Arrive => return cx.fail(inst.span, "`bar.arrive` needs a thread count"),
        None => false,
    };
    if let Some(predicate) = predicate {
        args.push(cx.pred(predicate)?);
    }
    let op = Op::Bar { mode, has_count, aligned };
    match (dest, mode) {
        (Some(dest), BarMode::RedPopc) => cx.effect(op, &args, &[Dest::new(dest, Type::B32)]),
        (Some(dest), _) => cx.effect(op, &args, &[Dest::new(dest, Type::P)]),
        (None, _) => cx.effect(op, &args, &[]),
    }
}
