//! `mov`: registers, constants and addresses; vectors packed into a wider register and taken apart again.

use super::Result;
use super::function::{Binding, FnLower};
use super::operand::width;
use crate::ast::{Instruction, Operand, OperandKind, ScalarType};
use ir::{Op, PrmtMode, Type, Value, Var};

/// Where elements of a vector come from or go to.
enum Elements<'o, 'a> {
    /// `{a, b}`
    Operands(&'o [Operand<'a>]),
    /// The parts of a register.
    Vars(Vec<Var>),
}

impl Elements<'_, '_> {
    fn len(&self) -> usize {
        match self {
            Elements::Operands(items) => items.len(),
            Elements::Vars(vars) => vars.len(),
        }
    }
}

pub(super) fn lower<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    let ty = cx.type_at(inst, 0)?;
    let (to, from) = (cx.operand(inst, 0)?, cx.operand(inst, 1)?);
    let source = elements(cx, from);
    let dest = elements(cx, to);
    let bits = ty.bits();
    // The value in pieces of at most 64 bits, low ones first.
    let (pieces, piece) = match &source {
        Some(elements) => {
            let bits = element_bits(cx, inst, bits, elements.len())?;
            (read(cx, elements, bits)?, bits)
        }
        None if ty == ScalarType::B128 => return cx.wrong(from, "a 128-bit register or a vector"),
        None => (vec![cx.src(from, ty)?], bits),
    };
    match &dest {
        Some(elements) => {
            let bits = element_bits(cx, inst, bits, elements.len())?;
            let values = repack(cx, pieces, piece, bits);
            write(cx, elements, &values)
        }
        None if ty == ScalarType::B128 => cx.wrong(to, "a 128-bit register or a vector"),
        None => {
            let value = repack(cx, pieces, piece, bits)[0];
            cx.write(to, value)
        }
    }
}

/// The elements of a vector operand, of a vector register or of a 128-bit register; `None` for everything else.
fn elements<'o, 'a>(cx: &mut FnLower<'_, '_, 'a>, operand: &'o Operand<'a>) -> Option<Elements<'o, 'a>> {
    match &operand.kind {
        OperandKind::Vector(items) => Some(Elements::Operands(items)),
        OperandKind::Name(name) => match cx.lookup(name)? {
            Binding::Vector(vars) => Some(Elements::Vars(vars)),
            Binding::Wide(low, high) => Some(Elements::Vars(vec![low, high])),
            _ => None,
        },
        _ => None,
    }
}

/// Bits of each of `count` elements that together make the instruction's type.
fn element_bits<'a>(
    cx: &FnLower<'_, '_, 'a>,
    inst: &Instruction<'a>,
    bits: u32,
    count: usize,
) -> Result<u32> {
    let each = bits / (count.max(1) as u32);
    if matches!(count, 2 | 4) && matches!(each, 8 | 16 | 32 | 64) {
        return Ok(each);
    }
    cx.fail(inst.span, format!("{count} elements do not make {bits} bits"))
}

fn bits_type(bits: u32) -> ScalarType {
    match bits {
        8 => ScalarType::B8,
        16 => ScalarType::B16,
        32 => ScalarType::B32,
        _ => ScalarType::B64,
    }
}

fn read<'a>(cx: &mut FnLower<'_, '_, 'a>, elements: &Elements<'_, 'a>, bits: u32) -> Result<Vec<Value>> {
    let ty = bits_type(bits);
    match elements {
        Elements::Operands(items) => items.iter().map(|item| cx.src(item, ty)).collect(),
        Elements::Vars(vars) => Ok(vars
            .iter()
            .map(|&var| {
                let value = cx.b.use_var(var);
                cx.resize(value, width(ty), false)
            })
            .collect()),
    }
}

fn write<'a>(cx: &mut FnLower<'_, '_, 'a>, elements: &Elements<'_, 'a>, values: &[Value]) -> Result {
    match elements {
        Elements::Operands(items) => {
            items.iter().zip(values).try_for_each(|(item, &value)| cx.write(item, value))
        }
        Elements::Vars(vars) => {
            for (&var, &value) in vars.iter().zip(values) {
                let value = cx.resize(value, cx.b.var_type(var), false);
                cx.write_var(var, value);
            }
            Ok(())
        }
    }
}

/// Joins or splits pieces until each has `to` bits (64 for wider ones).
fn repack(cx: &mut FnLower<'_, '_, '_>, mut pieces: Vec<Value>, mut from: u32, to: u32) -> Vec<Value> {
    while from < to.min(64) && pieces.len() > 1 {
        pieces = pieces.chunks(2).map(|pair| join(cx, pair[0], pair[pair.len() - 1], from)).collect();
        from *= 2;
    }
    while from > to {
        pieces = pieces.iter().flat_map(|&piece| split(cx, piece, from)).collect();
        from /= 2;
    }
    pieces
}

fn join(cx: &mut FnLower<'_, '_, '_>, low: Value, high: Value, bits: u32) -> Value {
    match bits {
        8 => {
            // The bytes above an 8-bit value's own are unspecified.
            let low = cx.resize(low, Type::B32, false);
            let high = cx.resize(high, Type::B32, false);
            let select = cx.iconst(Type::B32, 0x0040);
            let both = cx.b.ins(Op::Prmt(PrmtMode::Index), &[low, high, select], Type::B32);
            cx.b.ins(Op::TruncLo, &[both], Type::B16)
        }
        16 => cx.b.ins(Op::Concat, &[low, high], Type::B32),
        _ => cx.b.ins(Op::Concat, &[low, high], Type::B64),
    }
}

fn split(cx: &mut FnLower<'_, '_, '_>, value: Value, bits: u32) -> [Value; 2] {
    if bits == 16 {
        let (mask, eight) = (cx.iconst(Type::B16, 0xff), cx.iconst(Type::B32, 8));
        return [
            cx.b.ins(Op::And, &[value, mask], Type::B16),
            cx.b.ins(Op::ShrU, &[value, eight], Type::B16),
        ];
    }
    let half = if bits == 64 { Type::B32 } else { Type::B16 };
    [cx.b.ins(Op::TruncLo, &[value], half), cx.b.ins(Op::TruncHi, &[value], half)]
}
