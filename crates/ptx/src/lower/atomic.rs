//! `atom` and `red`.

use super::Result;
use super::function::{Binding, FnLower};
use super::memory::{ordering, space_of};
use super::operand::{Dest, width};
use crate::ast::{Instruction, OperandKind, ScalarType};
use crate::types::TypeClass;
use ir::{Atom, AtomOp, Op, Order, Scalar, Scope, Space, Type, Value};

pub(super) fn lower<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    if inst.has_modifier("async") {
        return cx.not_built(inst);
    }
    let space = space_of(cx, inst)?;
    if !matches!(space, Space::Generic | Space::Global | Space::Shared) {
        return cx.fail(inst.opcode_span(), "atomics work on global and shared memory");
    }
    let Some(op) = operation(inst) else {
        return cx.fail(inst.opcode_span(), "which operation? One like `.add` is missing");
    };
    let ty = cx.type_at(inst, 0)?;
    let wide = ty == ScalarType::B128;
    let Some(elem) = element(op, ty) else {
        return cx.fail(inst.opcode_span(), format!("`.{}` does not work on this type", ty.word()));
    };
    let (order, scope) = ordering(inst);
    let order = if order == Order::Weak { Order::Relaxed } else { order };
    let is_atom = inst.mnemonic.text == "atom";
    let at = usize::from(is_atom);
    let place = cx.place(cx.operand(inst, at)?, space)?;
    let atom =
        Atom { op, space, elem, wide, order, scope: scope.unwrap_or(Scope::Gpu), offset: place.offset };
    let vector = inst.modifiers.iter().any(|m| matches!(m.text, "v2" | "v4" | "v8"));
    if vector {
        return vector_elements(cx, inst, atom, place.address, ty, is_atom);
    }
    let data = if op == AtomOp::Cas { 2 } else { 1 };
    let mut args = vec![place.address];
    for n in 0..data {
        let operand = cx.operand(inst, at + 1 + n)?;
        if wide {
            let Some(Binding::Wide(lo, hi)) = operand.as_name().and_then(|name| cx.lookup(name.text)) else {
                return cx.wrong(operand, "a 128-bit register");
            };
            args.extend([cx.b.use_var(lo), cx.b.use_var(hi)]);
        } else {
            args.push(cx.src(operand, ty)?);
        }
    }
    let dest = cx.operand(inst, 0)?;
    let drop_result = !is_atom || matches!(dest.kind, OperandKind::Sink | OperandKind::Name("_"));
    if drop_result && !matches!(op, AtomOp::Exch | AtomOp::Cas) {
        return cx.effect(Op::Red(atom), &args, &[]);
    }
    if wide {
        let Some(Binding::Wide(lo, hi)) = dest.as_name().and_then(|name| cx.lookup(name.text)) else {
            return cx.wrong(dest, "a 128-bit register");
        };
        if cx.guard.is_some() {
            let old: [Value; 2] = [cx.b.use_var(lo), cx.b.use_var(hi)];
            args.extend(old);
        }
        let values = cx.b.ins_multi(Op::Atom(atom), &args, &[Type::B64, Type::B64], cx.guard);
        cx.b.def_var(lo, values[0]);
        cx.b.def_var(hi, values[1]);
        return Ok(());
    }
    cx.effect(Op::Atom(atom), &args, &[Dest::new(dest, width(ty))])
}

/// A vector of independent element-wise operations: its elements are atomic each, not together.
fn vector_elements<'a>(
    cx: &mut FnLower<'_, '_, 'a>,
    inst: &Instruction<'a>,
    atom: Atom,
    address: Value,
    ty: ScalarType,
    is_atom: bool,
) -> Result {
    let data = cx.operand(inst, 1 + usize::from(is_atom))?;
    for (n, element) in cx.elements(data).iter().enumerate() {
        let value = cx.src(element, ty)?;
        let one = Atom { offset: atom.offset + n as i64 * i64::from(ty.bytes()), ..atom };
        if is_atom {
            let dests = cx.elements(cx.operand(inst, 0)?);
            let Some(dest) = dests.get(n) else { return cx.wrong(data, "as many values as results") };
            cx.effect(Op::Atom(one), &[address, value], &[Dest::new(dest, width(ty))])?;
        } else {
            cx.effect(Op::Red(one), &[address, value], &[])?;
        }
    }
    Ok(())
}

fn operation(inst: &Instruction<'_>) -> Option<AtomOp> {
    inst.modifiers.iter().find_map(|m| {
        Some(match m.text {
            "add" => AtomOp::Add,
            "inc" => AtomOp::Inc,
            "dec" => AtomOp::Dec,
            "min" => AtomOp::Min,
            "max" => AtomOp::Max,
            "and" => AtomOp::And,
            "or" => AtomOp::Or,
            "xor" => AtomOp::Xor,
            "exch" => AtomOp::Exch,
            "cas" => AtomOp::Cas,
            _ => return None,
        })
    })
}

/// The element as memory holds it; `None` where the operation does not know the type.
fn element(op: AtomOp, ty: ScalarType) -> Option<Scalar> {
    use AtomOp::*;
    let elem = match ty {
        ScalarType::B16 if op == Cas => Scalar::U16,
        ScalarType::B32 | ScalarType::U32 => Scalar::U32,
        ScalarType::S32 => Scalar::S32,
        ScalarType::B64 | ScalarType::U64 | ScalarType::B128 => Scalar::U64,
        ScalarType::S64 => Scalar::S64,
        ScalarType::F32 => Scalar::F32,
        ScalarType::F64 => Scalar::F64,
        ScalarType::F16 => Scalar::F16,
        ScalarType::F16x2 => Scalar::F16x2,
        ScalarType::Bf16 => Scalar::Bf16,
        ScalarType::Bf16x2 => Scalar::Bf16x2,
        _ => return None,
    };
    let fits = match op {
        Add => ty.class() != TypeClass::Bits,
        Inc | Dec => ty == ScalarType::U32,
        Min | Max => {
            matches!(ty.class(), TypeClass::Signed | TypeClass::Unsigned | TypeClass::Float)
                && !matches!(elem, Scalar::F32 | Scalar::F64)
        }
        And | Or | Xor => matches!(ty.bits(), 32 | 64) && ty.class() != TypeClass::Float,
        Exch | Cas => ty.class() != TypeClass::Float || op == Exch,
    };
    fits.then_some(elem)
}
