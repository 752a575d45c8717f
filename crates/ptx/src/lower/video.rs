//! The video instructions: byte, half-word and word operations with a secondary operation.
//!
//! [`Op::Video`] carries a descriptor. Its two top bits are the family, the others mean:
//!
//! | bits | 0: one value | 1: `vmad` | 2: two half-words or four bytes |
//! | --- | --- | --- | --- |
//! | 0..3 | operation | a signed, b signed, saturate, plus one | operation |
//! | 4 | d signed | negate the product | bytes |
//! | 5 | a signed | negate c | d signed |
//! | 6 | b signed | shift right by 7 | a signed |
//! | 7 | saturate | shift right by 15 | b signed |
//! | 8 | part of a (8..10) | part of a (8..10) | saturate |
//! | 9 | | | accumulate into c |
//! | 10 | part of b (11..13) | part of b (11..13) | elements that take part (10..13) |
//! | 14..17 | secondary operation | | |
//!
//! Operations: add, sub, absdiff, min, max, average, shl (clamp, wrap), shr (clamp, wrap), then the comparisons eq, ne,
//! lt, le, gt, ge. Parts: word, b0 to b3, h0, h1. Secondary operations: none, add, min, max, then a merge of the result
//! into b0 to b3, h0, h1 of c.

use super::Result;
use super::function::FnLower;
use crate::ast::{Instruction, Name, Operand, OperandKind, ScalarType};
use crate::types::TypeClass;
use ir::{Op, PrmtMode, Type, Value};

const MAD: u32 = 1 << 30;
const SIMD: u32 = 2 << 30;

pub(super) fn lower<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    let mnemonic = inst.mnemonic.text;
    if mnemonic == "vmad" {
        return multiply_add(cx, inst);
    }
    let (name, elements) = match mnemonic.strip_suffix('2').map(|name| (name, 2)) {
        Some(pair) => pair,
        None => match mnemonic.strip_suffix('4') {
            Some(name) => (name, 4),
            None => (mnemonic, 1),
        },
    };
    let Some(op) = operation(inst, name) else { return cx.not_built(inst) };
    let signs = Signs::of(cx, inst, name)?;
    if elements == 1 { scalar(cx, inst, op, signs) } else { simd(cx, inst, op, signs, elements) }
}

/// The number of an operation in the descriptor.
fn operation(inst: &Instruction<'_>, name: &str) -> Option<u32> {
    let wrap = u32::from(inst.has_modifier("wrap"));
    Some(match name {
        "vadd" => 0,
        "vsub" => 1,
        "vabsdiff" => 2,
        "vmin" => 3,
        "vmax" => 4,
        "vavrg" => 5,
        "vshl" => 6 + wrap,
        "vshr" => 8 + wrap,
        "vset" => {
            let compares = ["eq", "ne", "lt", "le", "gt", "ge"];
            10 + compares.iter().position(|word| inst.has_modifier(word))? as u32
        }
        _ => return None,
    })
}

/// Which of result and operands are signed, as bits.
struct Signs {
    d: u32,
    a: u32,
    b: u32,
}

impl Signs {
    fn of<'a>(cx: &FnLower<'_, '_, 'a>, inst: &Instruction<'a>, name: &str) -> Result<Signs> {
        let signed = |n: usize| cx.type_at(inst, n).map(|ty| u32::from(ty.class() == TypeClass::Signed));
        // The result of a comparison is unsigned and has no type written.
        if name == "vset" {
            return Ok(Signs { d: 0, a: signed(0)?, b: signed(1)? });
        }
        Ok(Signs { d: signed(0)?, a: signed(1)?, b: signed(2)? })
    }
}

/// The register of an operand and the selector behind it.
fn selected<'o, 'a>(operand: &'o Operand<'a>) -> (Operand<'a>, Option<&'o Name<'a>>) {
    match &operand.kind {
        OperandKind::Member { base, member } if !matches!(member.text, "x" | "y" | "z" | "w") => {
            (Operand { span: base.span, kind: OperandKind::Name(base.text) }, Some(member))
        }
        _ => (operand.clone(), None),
    }
}

/// A register and the number of the part of it that the operand names.
fn part<'a>(cx: &mut FnLower<'_, '_, 'a>, operand: &Operand<'a>) -> Result<(Value, u32)> {
    let (register, member) = selected(operand);
    let part = part_number(cx, member)?;
    Ok((cx.src(&register, ScalarType::B32)?, part))
}

fn part_number<'a>(cx: &FnLower<'_, '_, 'a>, member: Option<&Name<'a>>) -> Result<u32> {
    let Some(member) = member else { return Ok(0) };
    match ["b0", "b1", "b2", "b3", "h0", "h1"].iter().position(|&word| word == member.text) {
        Some(n) => Ok(n as u32 + 1),
        None => cx.fail(member.span, format!("`.{}` is not a byte or half-word of a register", member.text)),
    }
}

fn scalar<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>, op: u32, signs: Signs) -> Result {
    let (dest, merge) = selected(cx.operand(inst, 0)?);
    let merge = part_number(cx, merge)?;
    let (a, a_part) = part(cx, cx.operand(inst, 1)?)?;
    let (b, b_part) = part(cx, cx.operand(inst, 2)?)?;
    let second = ["add", "min", "max"].iter().position(|word| inst.has_modifier(word));
    let secondary = match (merge, second) {
        (0, None) => 0,
        (0, Some(n)) => n as u32 + 1,
        (part, None) => part + 3,
        (_, Some(_)) => {
            return cx.fail(inst.span, "a result is merged into a part of `c` or combined with it, not both");
        }
    };
    let c = match (inst.operands.get(3), secondary) {
        (Some(c), 1..) => cx.src(c, ScalarType::B32)?,
        (None, 0) => cx.iconst(Type::B32, 0),
        (Some(c), 0) => return cx.fail(c.span, "nothing says what to do with a third operand"),
        (None, 1..) => return cx.fail(inst.span, "the third operand is missing"),
    };
    let descriptor = op
        | signs.d << 4
        | signs.a << 5
        | signs.b << 6
        | u32::from(inst.has_modifier("sat")) << 7
        | a_part << 8
        | b_part << 11
        | secondary << 14;
    let value = cx.b.ins(Op::Video(descriptor), &[a, b, c], Type::B32);
    cx.write(&dest, value)
}

fn multiply_add<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    let signs = Signs::of(cx, inst, "vmad")?;
    let (a, a_negated) = negated(cx.operand(inst, 1)?);
    let (b, b_negated) = negated(cx.operand(inst, 2)?);
    let (c, negate_c) = negated(cx.operand(inst, 3)?);
    let negate_product = a_negated != b_negated;
    let plus_one = inst.has_modifier("po");
    if negate_product && negate_c {
        return cx.fail(inst.span, "`vmad` negates the product or the addend, not both");
    }
    if plus_one && (a_negated || b_negated || negate_c) {
        return cx.fail(inst.span, "`vmad.po` negates nothing");
    }
    let (a, a_part) = part(cx, a)?;
    let (b, b_part) = part(cx, b)?;
    let c = cx.src(c, ScalarType::B32)?;
    let descriptor = MAD
        | signs.a
        | signs.b << 1
        | u32::from(inst.has_modifier("sat")) << 2
        | u32::from(plus_one) << 3
        | u32::from(negate_product) << 4
        | u32::from(negate_c) << 5
        | u32::from(inst.has_modifier("shr7")) << 6
        | u32::from(inst.has_modifier("shr15")) << 7
        | a_part << 8
        | b_part << 11;
    cx.apply(inst, Op::Video(descriptor), &[a, b, c], Type::B32)
}

/// `-a`: the operand without its sign, and whether it had one.
fn negated<'o, 'a>(operand: &'o Operand<'a>) -> (&'o Operand<'a>, bool) {
    match &operand.kind {
        OperandKind::Minus(inner) => (inner, true),
        _ => (operand, false),
    }
}

fn simd<'a>(
    cx: &mut FnLower<'_, '_, 'a>,
    inst: &Instruction<'a>,
    op: u32,
    signs: Signs,
    elements: u32,
) -> Result {
    let (dest, mask) = selected(cx.operand(inst, 0)?);
    let mask = match mask {
        None => (1 << elements) - 1,
        Some(member) => digits(cx, member, elements, elements)?.iter().fold(0, |mask, n| mask | 1 << n),
    };
    let (a, a_select) = selected(cx.operand(inst, 1)?);
    let (b, b_select) = selected(cx.operand(inst, 2)?);
    let (a, b) = (cx.src(&a, ScalarType::B32)?, cx.src(&b, ScalarType::B32)?);
    let first = select(cx, a_select, elements, [a, b], a)?;
    let second = select(cx, b_select, elements, [a, b], b)?;
    let c = cx.src(cx.operand(inst, 3)?, ScalarType::B32)?;
    let accumulate = inst.has_modifier("add");
    if accumulate && inst.has_modifier("sat") {
        return cx.fail(inst.opcode_span(), "`.sat` and `.add` exclude each other");
    }
    let descriptor = SIMD
        | op
        | u32::from(elements == 4) << 4
        | signs.d << 5
        | signs.a << 6
        | signs.b << 7
        | u32::from(inst.has_modifier("sat")) << 8
        | u32::from(accumulate) << 9
        | mask << 10;
    let value = cx.b.ins(Op::Video(descriptor), &[first, second, c], Type::B32);
    cx.write(&dest, value)
}

/// The numbers in a selector such as `.h10` or `.b7654`, lowest element first; each is below `limit`.
fn digits<'a>(cx: &FnLower<'_, '_, 'a>, member: &Name<'a>, elements: u32, limit: u32) -> Result<Vec<u32>> {
    let letter = if elements == 4 { 'b' } else { 'h' };
    let numbers: Option<Vec<u32>> = member
        .text
        .strip_prefix(letter)
        .and_then(|text| text.chars().rev().map(|c| c.to_digit(10).filter(|&n| n < limit)).collect());
    match numbers {
        Some(numbers) if !numbers.is_empty() && numbers.len() <= elements as usize => Ok(numbers),
        _ => cx.fail(member.span, format!("`.{}` does not select elements of this instruction", member.text)),
    }
}

/// The elements an operand selects from both registers, by a byte permute; `default` without a selector.
fn select<'a>(
    cx: &mut FnLower<'_, '_, 'a>,
    member: Option<&Name<'a>>,
    elements: u32,
    from: [Value; 2],
    default: Value,
) -> Result<Value> {
    let Some(member) = member else { return Ok(default) };
    let numbers = digits(cx, member, elements, 2 * elements)?;
    if numbers.len() != elements as usize {
        return cx.fail(
            member.span,
            format!("`.{}` selects {} of {elements} elements", member.text, numbers.len()),
        );
    }
    let selector = numbers.iter().enumerate().fold(0, |selector, (i, &n)| {
        let i = i as u32;
        // A half-word is two bytes.
        let bytes = if elements == 4 { n << (4 * i) } else { ((2 * n + 1) * 16 + 2 * n) << (8 * i) };
        selector | bytes
    });
    let selector = cx.iconst(Type::B32, u64::from(selector));
    Ok(cx.b.ins(Op::Prmt(PrmtMode::Index), &[from[0], from[1], selector], Type::B32))
}
