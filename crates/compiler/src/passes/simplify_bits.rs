//! Simplifies integer operations by what is known of the bits of their operands: masks that keep everything, extensions of
//! numbers that have no sign, shifts there and back, comparisons whose answer is known, products taken off a sum. Halves are
//! compared as words.

use super::Context;
use super::edit::{Change, Editor, rewrite};
use super::predicate_branches::count_uses;
use ir::{Access, Function, InstId, IntCmp, Op, Type, Value};

/// How far back operands are followed.
const DEPTH: u32 = 8;

pub fn run(f: &mut Function, context: &mut Context) {
    let uses = count_uses(f);
    let mut done = Vec::new();
    rewrite(f, |e, _, i| {
        let op = e.func.inst(i).op;
        let Some(v) = simpler(e, i, &uses) else { return Change::Keep };
        done.push((e.loc, op));
        Change::Replace(v)
    });
    for (loc, op) in done {
        context.remark(f, loc, || format!("{op:?} is simpler by what is known of its operands"));
    }
}

fn simpler(e: &mut Editor, i: InstId, uses: &[u32]) -> Option<Value> {
    let inst = e.func.inst(i);
    let (op, result) = (inst.op, *inst.results.first()?);
    let (&a, b) = (inst.args.first()?, inst.args.get(1).copied());
    let ty = e.func.ty(result);
    let constant = |e: &Editor, v: Option<Value>| v.and_then(|v| e.func.const_of(v));
    match op {
        Op::And if ty != Type::P => {
            let (mask, kept) = (constant(e, b)?, possible(e.func, a, DEPTH));
            if kept & !mask == 0 {
                return Some(a);
            }
            if kept & mask == 0 {
                return Some(e.iconst(ty, 0));
            }
            narrower(e, op, ty, [a, b?])
        }
        Op::Or | Op::Xor if ty != Type::P => narrower(e, op, ty, [a, b?]),
        Op::SignExt => {
            let from = e.func.ty(a);
            let sign = 1u64 << (from.bits() - 1);
            (possible(e.func, a, DEPTH) & sign == 0).then(|| e.ins(Op::ZeroExt, &[a], ty))
        }
        Op::ShrS => {
            let sign = 1u64 << (ty.bits() - 1);
            let b = b?;
            (possible(e.func, a, DEPTH) & sign == 0).then(|| e.ins(Op::ShrU, &[a, b], ty))
        }
        Op::ShrU | Op::Shl if ty != Type::B16 => {
            let n = constant(e, b)?;
            let inner = e.func.def_op(a)?;
            let back = if op == Op::ShrU { Op::Shl } else { Op::ShrU };
            if inner.op != back || e.func.const_of(inner.args[1]) != Some(n) || n >= u64::from(ty.bits()) {
                return None;
            }
            // The way back leaves the bits that were not pushed out.
            let x = inner.args[0];
            let mask = if op == Op::ShrU { ty.mask() >> n } else { ty.mask() << n & ty.mask() };
            let mask = e.iconst(ty, mask);
            Some(e.ins(Op::And, &[x, mask], ty))
        }
        Op::ICmp { cmp, signed } => {
            let from = e.func.ty(a);
            if from == Type::P {
                return None;
            }
            if let Some(known) = constant(e, b).and_then(|c| decided(e.func, cmp, signed, a, c)) {
                return Some(e.iconst(Type::P, u64::from(known)));
            }
            let bits = [a, b?].map(|v| possible(e.func, v, DEPTH));
            let is_number = bits.iter().all(|b| b >> (from.bits() - 1) == 0);
            if from == Type::B16 {
                let args = [a, b?].map(|v| word_of_half(e, v, signed && !is_number));
                return Some(e.ins(op, &args, Type::P));
            }
            let word = u64::from(u32::MAX);
            if from != Type::B64 || constant(e, b)? > word || bits[0] > word || (signed && !is_number) {
                return None;
            }
            let args = [low_word(e, a), low_word(e, b?)];
            Some(e.ins(Op::ICmp { cmp, signed: false }, &args, Type::P))
        }
        // A product with a constant taken off is one with its negative added: one multiply-add.
        Op::Sub if ty == Type::B32 => {
            let b = b?;
            let inner = e.func.def_op(b)?;
            if inner.op != Op::Mul || uses.get(b.index()) != Some(&1) {
                return None;
            }
            let (x, c) = (inner.args[0], e.func.const_of(inner.args[1])?);
            let negative = e.iconst(ty, c.wrapping_neg());
            let product = e.ins(Op::Mul, &[x, negative], ty);
            Some(e.ins(Op::Add, &[product, a], ty))
        }
        _ => None,
    }
}

/// The answer of a comparison with a constant that the possible bits of the other side decide.
fn decided(f: &Function, cmp: IntCmp, signed: bool, a: Value, c: u64) -> Option<bool> {
    let most = possible(f, a, DEPTH);
    let sign = 1u64 << (f.ty(a).bits() - 1);
    if signed && (most & sign != 0 || c & sign != 0) {
        return None;
    }
    match cmp {
        IntCmp::Lt if most < c => Some(true),
        IntCmp::Le if most <= c => Some(true),
        IntCmp::Ne if c & !most != 0 => Some(true),
        IntCmp::Gt if most <= c => Some(false),
        IntCmp::Ge if most < c => Some(false),
        IntCmp::Eq if c & !most != 0 => Some(false),
        _ => None,
    }
}

/// A 16-bit value as a word. The machine compares words: as an operation of its own the extension is done once for all
/// comparisons, and a mask makes it too.
fn word_of_half(e: &mut Editor, v: Value, signed: bool) -> Value {
    if let Some(c) = e.func.const_of(v) {
        return e.iconst(Type::B32, if signed { c as u16 as i16 as u64 } else { c });
    }
    let word = |f: &Function, v: Value| {
        let d = f.def_op(v).filter(|d| d.op == Op::TruncLo)?;
        (f.ty(d.args[0]) == Type::B32).then(|| d.args[0])
    };
    if signed {
        return e.ins(Op::SignExt, &[v], Type::B32);
    }
    if let Some(d) = e.func.def_op(v)
        && d.op == Op::And
        && let (Some(x), Some(mask)) = (word(e.func, d.args[0]), e.func.const_of(d.args[1]))
    {
        let mask = e.iconst(Type::B32, mask);
        return e.ins(Op::And, &[x, mask], Type::B32);
    }
    match word(e.func, v) {
        Some(x) if possible(e.func, x, DEPTH) <= u64::from(u16::MAX) => x,
        _ => e.ins(Op::ZeroExt, &[v], Type::B32),
    }
}

/// A 64-bit operation on words whose upper halves are zero, done on the lower ones.
fn narrower(e: &mut Editor, op: Op, ty: Type, args: [Value; 2]) -> Option<Value> {
    let bits = args.map(|v| possible(e.func, v, DEPTH));
    let result = if op == Op::And { bits[0] & bits[1] } else { bits[0] | bits[1] };
    if ty != Type::B64 || result > u64::from(u32::MAX) {
        return None;
    }
    let args = args.map(|v| low_word(e, v));
    let low = e.ins(op, &args, Type::B32);
    Some(e.ins(Op::ZeroExt, &[low], Type::B64))
}

fn low_word(e: &mut Editor, v: Value) -> Value {
    if let Some(c) = e.func.const_of(v) {
        return e.iconst(Type::B32, c);
    }
    match e.func.def_op(v) {
        Some(d)
            if matches!(d.op, Op::ZeroExt | Op::SignExt | Op::Concat)
                && e.func.ty(d.args[0]) == Type::B32 =>
        {
            d.args[0]
        }
        _ => e.ins(Op::TruncLo, &[v], Type::B32),
    }
}

/// Bits of a value that may be set.
fn possible(f: &Function, v: Value, depth: u32) -> u64 {
    let all = f.ty(v).mask();
    let Some(inst) = f.def_op(v).filter(|_| depth > 0) else { return all };
    let of = |n: usize| possible(f, inst.args[n], depth - 1);
    let count = |n: usize| f.const_of(inst.args[n]).filter(|&c| c < 64);
    let bits = match inst.op {
        Op::Const(bits) => bits,
        Op::And => of(0) & of(1),
        Op::Or | Op::Xor => of(0) | of(1),
        Op::Select => of(1) | of(2),
        Op::ZeroExt | Op::TruncLo => of(0),
        Op::Shl => count(1).map_or(u64::MAX, |n| of(0) << n),
        Op::ShrU => count(1).map_or(u64::MAX, |n| of(0) >> n),
        Op::Add => below(of(0)).checked_add(below(of(1))).map_or(u64::MAX, below),
        Op::Mul | Op::MulWide { signed: false } => {
            below(of(0)).checked_mul(below(of(1))).map_or(u64::MAX, below)
        }
        Op::Min { signed: false } => below(of(0).min(of(1))),
        Op::Popc | Op::Clz => 0x7f,
        Op::Load(Access { elem, count: 1, .. }) if elem.is_int() && !elem.is_signed() => {
            if inst.guard.is_some() || elem.bits() >= 64 { u64::MAX } else { (1 << elem.bits()) - 1 }
        }
        _ => u64::MAX,
    };
    bits & all
}

/// All bits up to the highest one.
fn below(bits: u64) -> u64 {
    if bits == 0 { 0 } else { u64::MAX >> bits.leading_zeros() }
}
