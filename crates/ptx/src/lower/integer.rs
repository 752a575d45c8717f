//! Integer arithmetic, extended precision and bit fields.

use super::Result;
use super::function::FnLower;
use super::operand::width;
use crate::ast::{Instruction, ScalarType};
use crate::types::TypeClass;
use ir::{Op, Type, Value};

impl<'a> FnLower<'_, '_, 'a> {
    /// Operands 1 to `count`, read as one type.
    pub(super) fn sources(
        &mut self,
        inst: &Instruction<'a>,
        ty: ScalarType,
        count: usize,
    ) -> Result<Vec<Value>> {
        (1..=count).map(|n| self.operand(inst, n).and_then(|operand| self.src(operand, ty))).collect()
    }

    /// Applies a pure operation and writes its result to operand 0.
    pub(super) fn apply(&mut self, inst: &Instruction<'a>, op: Op, args: &[Value], ty: Type) -> Result {
        let value = self.b.ins(op, args, ty);
        self.write(self.operand(inst, 0)?, value)
    }
}

pub(super) fn lower<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    let ty = cx.type_at(inst, 0)?;
    let signed = ty.class() == TypeClass::Signed;
    let packed = matches!(ty, ScalarType::U16x2 | ScalarType::S16x2);
    let (value, count) = (width(ty), inst.operands.len().saturating_sub(1));
    match inst.mnemonic.text {
        "add" | "sub" if inst.has_modifier("cc") => with_carry(cx, inst, ty),
        "addc" | "subc" => with_carry(cx, inst, ty),
        "add" | "sub" => {
            let op = match (inst.mnemonic.text, packed, inst.has_modifier("sat")) {
                ("add", true, false) => Op::Add16x2,
                ("add", false, false) => Op::Add,
                ("add", false, true) => Op::AddSat,
                ("sub", false, false) => Op::Sub,
                ("sub", false, true) => Op::SubSat,
                _ => return cx.not_built(inst),
            };
            let args = cx.sources(inst, ty, 2)?;
            cx.apply(inst, op, &args, value)
        }
        "mul" => {
            let args = cx.sources(inst, ty, 2)?;
            let product = product(cx, inst, ty, &args)?;
            cx.write(cx.operand(inst, 0)?, product)
        }
        "mad" | "madc" => multiply_add(cx, inst, ty),
        "mul24" | "mad24" => multiply_24(cx, inst, ty),
        "sad" => {
            let args = cx.sources(inst, ty, 3)?;
            let difference = cx.b.ins(Op::AbsDiff { signed }, &args[..2], value);
            cx.apply(inst, Op::Add, &[difference, args[2]], value)
        }
        "min" | "max" => min_max(cx, inst, ty),
        "div" | "rem" => {
            let op = if inst.mnemonic.text == "div" { Op::Div { signed } } else { Op::Rem { signed } };
            let args = cx.sources(inst, ty, 2)?;
            cx.apply(inst, op, &args, value)
        }
        "abs" | "neg" | "brev" => {
            let op = match inst.mnemonic.text {
                "abs" => Op::Abs,
                "neg" => Op::Neg,
                _ => Op::Brev,
            };
            let args = cx.sources(inst, ty, 1)?;
            cx.apply(inst, op, &args, value)
        }
        "popc" | "clz" | "bfind" => {
            let op = match inst.mnemonic.text {
                "popc" => Op::Popc,
                "clz" => Op::Clz,
                _ => Op::Bfind { signed, shift_amount: inst.has_modifier("shiftamt") },
            };
            let args = cx.sources(inst, ty, 1)?;
            cx.apply(inst, op, &args, Type::B32)
        }
        "bfe" | "bfi" => {
            // The fields come first, then position and length.
            let (op, fields) =
                if inst.mnemonic.text == "bfe" { (Op::Bfe { signed }, 1) } else { (Op::Bfi, 2) };
            let mut args = cx.sources(inst, ty, fields)?;
            for n in [fields + 1, fields + 2] {
                args.push(cx.src(cx.operand(inst, n)?, ScalarType::U32)?);
            }
            cx.apply(inst, op, &args, value)
        }
        "fns" | "szext" | "bmsk" => {
            let wrap = inst.has_modifier("wrap");
            let op = match inst.mnemonic.text {
                "fns" => Op::Fns,
                "szext" => Op::Szext { signed, wrap },
                _ => Op::Bmsk { wrap },
            };
            let args = cx.sources(inst, ty, count)?;
            cx.apply(inst, op, &args, Type::B32)
        }
        "dp4a" | "dp2a" => {
            let a_signed = signed;
            let b_signed = cx.type_at(inst, 1)?.class() == TypeClass::Signed;
            let op = if inst.mnemonic.text == "dp4a" {
                Op::Dp4a { a_signed, b_signed }
            } else {
                Op::Dp2a { a_signed, b_signed, hi: inst.has_modifier("hi") }
            };
            let args = cx.sources(inst, ScalarType::U32, 3)?;
            cx.apply(inst, op, &args, Type::B32)
        }
        _ => cx.not_built(inst),
    }
}

/// The `.lo`, `.hi` or `.wide` product of two values of a type.
fn product<'a>(
    cx: &mut FnLower<'_, '_, 'a>,
    inst: &Instruction<'a>,
    ty: ScalarType,
    args: &[Value],
) -> Result<Value> {
    let signed = ty.class() == TypeClass::Signed;
    let value = width(ty);
    let (op, result) = if inst.has_modifier("wide") {
        match value {
            Type::B16 => (Op::MulWide { signed }, Type::B32),
            Type::B32 => (Op::MulWide { signed }, Type::B64),
            _ => return cx.fail(inst.opcode_span(), "a `.wide` product has 16- or 32-bit factors"),
        }
    } else if inst.has_modifier("hi") {
        (Op::MulHi { signed }, value)
    } else {
        (Op::Mul, value)
    };
    Ok(cx.b.ins(op, &args[..2], result))
}

fn multiply_add<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>, ty: ScalarType) -> Result {
    let factors = cx.sources(inst, ty, 2)?;
    let product = product(cx, inst, ty, &factors)?;
    let result = cx.b.func.ty(product);
    let addend_type = if result == width(ty) { ty } else { wide(ty) };
    let addend = cx.src(cx.operand(inst, 3)?, addend_type)?;
    if inst.mnemonic.text == "madc" || inst.has_modifier("cc") {
        return add_carry(cx, inst, Op::AddCarry, [product, addend], inst.mnemonic.text == "madc");
    }
    let op = if inst.has_modifier("sat") { Op::AddSat } else { Op::Add };
    cx.apply(inst, op, &[product, addend], result)
}

/// The type twice as wide.
fn wide(ty: ScalarType) -> ScalarType {
    match ty {
        ScalarType::U16 => ScalarType::U32,
        ScalarType::S16 => ScalarType::S32,
        ScalarType::S32 => ScalarType::S64,
        _ => ScalarType::U64,
    }
}

/// `add.cc`, `addc`, `sub.cc`, `subc`.
fn with_carry<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>, ty: ScalarType) -> Result {
    let args = cx.sources(inst, ty, 2)?;
    let (op, takes) = match inst.mnemonic.text {
        "add" => (Op::AddCarry, false),
        "addc" => (Op::AddCarry, true),
        "sub" => (Op::SubBorrow, false),
        _ => (Op::SubBorrow, true),
    };
    add_carry(cx, inst, op, [args[0], args[1]], takes)
}

/// A sum or difference that takes the carry flag if `takes`, and gives it with `.cc`.
///
/// A difference is a sum with the complement: the flag it gives and takes is set where nothing was borrowed. It shows where
/// `addc` follows `sub.cc`, as in the 128-bit division that nvcc emits.
fn add_carry<'a>(
    cx: &mut FnLower<'_, '_, 'a>,
    inst: &Instruction<'a>,
    op: Op,
    args: [Value; 2],
    takes: bool,
) -> Result {
    let subtracts = op == Op::SubBorrow;
    let carry = match takes {
        true if subtracts => {
            let carry = cx.b.use_var(cx.cc);
            cx.b.ins(Op::Not, &[carry], Type::P)
        }
        true => cx.b.use_var(cx.cc),
        false => cx.iconst(Type::P, 0),
    };
    let ty = cx.b.func.ty(args[0]);
    let results = cx.b.ins_multi(op, &[args[0], args[1], carry], &[ty, Type::P], None);
    cx.write(cx.operand(inst, 0)?, results[0])?;
    if inst.has_modifier("cc") {
        let carry = if subtracts { cx.b.ins(Op::Not, &[results[1]], Type::P) } else { results[1] };
        cx.write_var(cx.cc, carry);
    }
    Ok(())
}

/// Products of the low 24 bits: `.lo` gives bits 0 to 31, `.hi` bits 16 to 47.
fn multiply_24<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>, ty: ScalarType) -> Result {
    let signed = ty.class() == TypeClass::Signed;
    let mut factors = cx.sources(inst, ty, 2)?;
    let eight = cx.iconst(Type::B32, 8);
    for factor in &mut factors {
        let up = cx.b.ins(Op::Shl, &[*factor, eight], Type::B32);
        *factor = cx.b.ins(if signed { Op::ShrS } else { Op::ShrU }, &[up, eight], Type::B32);
    }
    let product = if inst.has_modifier("hi") {
        let full = cx.b.ins(Op::MulWide { signed }, &factors, Type::B64);
        let sixteen = cx.iconst(Type::B32, 16);
        let middle = cx.b.ins(Op::ShrU, &[full, sixteen], Type::B64);
        cx.b.ins(Op::TruncLo, &[middle], Type::B32)
    } else {
        cx.b.ins(Op::Mul, &factors, Type::B32)
    };
    if inst.mnemonic.text == "mul24" {
        return cx.write(cx.operand(inst, 0)?, product);
    }
    let addend = cx.src(cx.operand(inst, 3)?, ty)?;
    let op = if inst.has_modifier("sat") { Op::AddSat } else { Op::Add };
    cx.apply(inst, op, &[product, addend], Type::B32)
}

fn min_max<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>, ty: ScalarType) -> Result {
    let signed = ty.class() == TypeClass::Signed;
    let packed = matches!(ty, ScalarType::U16x2 | ScalarType::S16x2);
    let max = if packed { Op::Max16x2 { signed } } else { Op::Max { signed } };
    let op = match (inst.mnemonic.text, packed) {
        ("max", _) => max,
        (_, true) => Op::Min16x2 { signed },
        (_, false) => Op::Min { signed },
    };
    let args = cx.sources(inst, ty, 2)?;
    let mut value = cx.b.ins(op, &args, width(ty));
    if inst.has_modifier("relu") {
        let zero = cx.iconst(width(ty), 0);
        value = cx.b.ins(max, &[value, zero], width(ty));
    }
    cx.write(cx.operand(inst, 0)?, value)
}
