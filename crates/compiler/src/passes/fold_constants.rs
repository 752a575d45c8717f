//! Folds operations on constants and the identities that do not change a bit (or change it as NVIDIA's assembler does:
//! a plain `x * 1` is `x`, NaN payload included).

use super::Context;
use super::edit::{Change, Editor, rewrite};
use super::evaluate::{compare, evaluate};
use ir::{Cvt, CvtRound, Float, Function, InstId, IntCmp, Op, Scalar, Space, Type, Value, ValueDef};
use smallvec::SmallVec;

/// Constants travel through loops one block parameter a round; more rounds than this find nothing in practice.
const MAX_ROUNDS: usize = 8;

pub fn run(f: &mut Function, _: &mut Context) {
    for _ in 0..MAX_ROUNDS {
        let mut changed = fold_params(f);
        let mut in_place = false;
        changed |= rewrite(f, |e, _, i| match simplify(e, i) {
            Simpler::No => Change::Keep,
            Simpler::Value(v) => Change::Replace(v),
            Simpler::Values(v) => Change::ReplaceAll(v),
            Simpler::Op(op, args) => {
                let data = e.func.inst_mut(i);
                data.op = op;
                data.args = args;
                in_place = true;
                Change::Keep
            }
        });
        if !changed && !in_place {
            return;
        }
    }
}

/// A block parameter that gets the same constant from everywhere is that constant.
fn fold_params(f: &mut Function) -> bool {
    let mut changed = ir::remove_trivial(f) > 0;
    // Per value: not seen, one constant, or several things.
    let mut seen: Vec<Option<Option<u64>>> = vec![None; f.values.len()];
    for &b in &f.layout {
        for call in f.block(b).term.calls() {
            for (&arg, &p) in call.args.iter().zip(&f.block(call.block).params) {
                let bits = f.const_of(arg);
                let slot = &mut seen[p.index()];
                match *slot {
                    _ if arg == p => {}
                    None => *slot = Some(bits),
                    Some(old) if old == bits => {}
                    Some(_) => *slot = Some(None),
                }
            }
        }
    }
    let mut used = vec![false; f.values.len()];
    for &b in &f.layout {
        f.block(b).insts.iter().flat_map(|&i| f.inst_values(i)).for_each(|v| used[v.index()] = true);
        f.block(b).term.values().iter().for_each(|v| used[v.index()] = true);
    }
    let mut map: Vec<Option<Value>> = vec![None; f.values.len()];
    for b in f.layout.clone() {
        for p in f.block(b).params.clone() {
            if !used[p.index()] {
                continue;
            }
            if let Some(Some(bits)) = seen[p.index()] {
                let i = f.make_inst(Op::Const(bits), &[], &[f.ty(p)], None, f.block(b).term_loc);
                f.block_mut(b).insts.insert(0, i);
                map[p.index()] = Some(f.inst(i).results[0]);
                changed = true;
            }
        }
    }
    if map.iter().any(Option::is_some) {
        f.replace_values(&map);
    }
    changed
}

enum Simpler {
    No,
    /// An existing value.
    Value(Value),
    Values(SmallVec<[Value; 2]>),
    /// The same instruction with another operation.
    Op(Op, SmallVec<[Value; 4]>),
}

fn op(op: Op, args: &[Value]) -> Simpler {
    Simpler::Op(op, args.into())
}

fn simplify(e: &mut Editor, i: InstId) -> Simpler {
    let data = e.func.inst(i);
    if !data.op.is_pure()
        || data.guard.is_some()
        || data.results.is_empty()
        || matches!(data.op, Op::Const(_))
    {
        return Simpler::No;
    }
    let (code, args) = (data.op, data.args.clone());
    let results = data.results.clone();
    let ty = e.func.ty(results[0]);
    let known: SmallVec<[Option<u64>; 4]> = args.iter().map(|&v| e.func.const_of(v)).collect();
    if let Some(values) = known.iter().copied().collect::<Option<SmallVec<[u64; 4]>>>() {
        let widths: SmallVec<[Type; 4]> = args.iter().map(|&v| e.func.ty(v)).collect();
        match evaluate(&code, &values, &widths, ty).as_deref() {
            Some(&[bits]) => return op(Op::Const(bits), &[]),
            Some(all) => {
                return Simpler::Values(
                    all.iter().zip(&results).map(|(&bits, &r)| e.iconst(e.func.ty(r), bits)).collect(),
                );
            }
            None => {}
        }
    }
    if results.len() > 1 {
        return Simpler::No;
    }
    match args.len() {
        1 => simplify_unary(e, code, args[0], ty),
        2 => simplify_binary(e, code, [args[0], args[1]], [known[0], known[1]], ty),
        3 => simplify_select(e, code, [args[0], args[1], args[2]], &known, ty),
        _ => Simpler::No,
    }
}

fn simplify_unary(e: &mut Editor, code: Op, a: Value, ty: Type) -> Simpler {
    let f: &Function = e.func;
    let inner = f.def_op(a).map(|d| (d.op, d.args.clone()));
    let from = f.ty(a);
    match (code, inner) {
        (Op::Not, Some((Op::Not, x))) | (Op::Neg, Some((Op::Neg, x))) => Simpler::Value(x[0]),
        (Op::TruncLo, Some((Op::Concat, x))) => Simpler::Value(x[0]),
        (Op::TruncHi, Some((Op::Concat, x))) => Simpler::Value(x[1]),
        (Op::TruncLo, Some((widen @ (Op::ZeroExt | Op::SignExt), x))) => {
            if f.ty(x[0]) == ty {
                Simpler::Value(x[0])
            } else {
                op(widen, &x)
            }
        }
        (Op::TruncHi, Some((Op::ZeroExt, x))) if f.ty(x[0]).bits() <= ty.bits() => op(Op::Const(0), &[]),
        (Op::ZeroExt, Some((Op::ZeroExt, x))) => op(Op::ZeroExt, &x),
        (Op::SignExt, Some((widen @ (Op::SignExt | Op::ZeroExt), x))) => op(widen, &x),
        (Op::FromGeneric(s), Some((Op::ToGeneric(t), x))) if s == t => Simpler::Value(x[0]),
        (Op::ToGeneric(Space::Global), Some((Op::FromGeneric(Space::Global), x))) => Simpler::Value(x[0]),
        (Op::Cvt(c), _) => simplify_cvt(c, a, from, ty),
        _ => Simpler::No,
    }
}

fn simplify_cvt(c: Cvt, a: Value, from: Type, ty: Type) -> Simpler {
    let is_plain = !c.sat && !c.relu && !c.satfinite && !c.ftz && c.round == CvtRound::None;
    if is_plain && c.to == c.from && c.to.is_float() {
        return Simpler::Value(a);
    }
    let both_ints = c.to.is_int() && c.from.is_int() && c.to.bits() >= 16 && c.from.bits() >= 16;
    if c.sat || !both_ints || c.from.bits() != from.bits() || c.to.bits() != ty.bits() {
        return Simpler::No;
    }
    match (c.from.bits(), c.to.bits()) {
        (x, y) if x == y => Simpler::Value(a),
        (x, y) if x < y => op(if c.from.is_signed() { Op::SignExt } else { Op::ZeroExt }, &[a]),
        (64, 32) | (32, 16) => op(Op::TruncLo, &[a]),
        _ => Simpler::No,
    }
}

fn simplify_binary(
    e: &mut Editor,
    code: Op,
    [a, b]: [Value; 2],
    [ka, kb]: [Option<u64>; 2],
    ty: Type,
) -> Simpler {
    let width = e.func.ty(a);
    let ones = width.mask();
    let zero = || op(Op::Const(0), &[]);
    // Constants stand on the right.
    if ka.is_some() && kb.is_none() {
        match code {
            Op::Add | Op::Mul | Op::And | Op::Or | Op::Xor | Op::Min { .. } | Op::Max { .. } => {
                return op(code, &[b, a]);
            }
            Op::ICmp { cmp, signed } => return op(Op::ICmp { cmp: swap(cmp), signed }, &[b, a]),
            _ => {}
        }
    }
    if a == b {
        match code {
            Op::Sub | Op::Xor | Op::AbsDiff { .. } => return zero(),
            Op::And | Op::Or | Op::Min { .. } | Op::Max { .. } => return Simpler::Value(a),
            Op::ICmp { cmp, .. } => {
                return op(Op::Const(u64::from(matches!(cmp, IntCmp::Eq | IntCmp::Le | IntCmp::Ge))), &[]);
            }
            Op::FMin { ftz: false, xorsign_abs: false, .. }
            | Op::FMax { ftz: false, xorsign_abs: false, .. } => {
                return Simpler::Value(a);
            }
            _ => {}
        }
    }
    if let Op::Concat = code {
        let part = |v: Value, half: Op| e.func.def_op(v).filter(|d| d.op == half).map(|d| d.args[0]);
        return match (part(a, Op::TruncLo), part(b, Op::TruncHi)) {
            (Some(x), Some(y)) if x == y && e.func.ty(x) == ty => Simpler::Value(x),
            _ => match (kb, e.func.def_op(a).map(|d| d.op)) {
                (Some(0), _) => op(Op::ZeroExt, &[a]),
                _ => Simpler::No,
            },
        };
    }
    if let Op::FMul(m) = code {
        return simplify_product(e, m, [a, b], [ka, kb]);
    }
    let Some(k) = kb else { return Simpler::No };
    match (code, k) {
        (Op::Add | Op::Sub | Op::Or | Op::Xor | Op::Shl | Op::ShrU | Op::ShrS, 0) => Simpler::Value(a),
        (Op::Mul | Op::And, 0) => zero(),
        (Op::Mul, 1) => Simpler::Value(a),
        (Op::Div { signed: false }, 1) => Simpler::Value(a),
        // Other divisions end a block for contraction even by a constant, so they stay until then.
        (Op::Div { signed: false }, k) if width == Type::B32 && k.is_power_of_two() => {
            let count = e.iconst(Type::B32, k.trailing_zeros().into());
            op(Op::ShrU, &[a, count])
        }
        (Op::Rem { signed: false }, k) if width == Type::B32 && k.is_power_of_two() => {
            let mask = e.iconst(width, k - 1);
            op(Op::And, &[a, mask])
        }
        (Op::Mul, k) if width == Type::B64 && k.is_power_of_two() => {
            let count = e.iconst(Type::B32, k.trailing_zeros().into());
            op(Op::Shl, &[a, count])
        }
        (Op::ICmp { cmp, signed }, k) => compare_with_constant(e, cmp, signed, a, k),
        (Op::And, k) if k == ones => Simpler::Value(a),
        (Op::Or, k) if k == ones => op(Op::Const(ones), &[]),
        (Op::Xor, k) if k == ones && width == Type::P => op(Op::Not, &[a]),
        (Op::Shl | Op::ShrU, k) if k >= width.bits().into() => zero(),
        (Op::Sub, k) => {
            let negative = e.iconst(width, k.wrapping_neg());
            op(Op::Add, &[a, negative])
        }
        (Op::Add, k) => match e.func.def_op(a).filter(|d| d.op == Op::Add).map(|d| (d.args[0], d.args[1])) {
            Some((x, y)) => match e.func.const_of(y) {
                Some(c) => {
                    let sum = e.iconst(width, c.wrapping_add(k));
                    op(Op::Add, &[x, sum])
                }
                None => Simpler::No,
            },
            None => Simpler::No,
        },
        _ => Simpler::No,
    }
}

/// A test of a select between constants is the select's condition, its opposite, or known.
fn compare_with_constant(e: &mut Editor, cmp: IntCmp, signed: bool, a: Value, k: u64) -> Simpler {
    let Some(select) = e.func.def_op(a).filter(|d| d.op == Op::Select) else { return Simpler::No };
    let (p, width) = (select.args[0], e.func.ty(a));
    let [Some(t), Some(f)] = [1, 2].map(|n| e.func.const_of(select.args[n])) else { return Simpler::No };
    match [t, f].map(|x| compare(cmp, signed, x, k, width)) {
        [true, false] => Simpler::Value(p),
        [false, true] => op(Op::Not, &[p]),
        [same, _] => op(Op::Const(same.into()), &[]),
    }
}

fn swap(cmp: IntCmp) -> IntCmp {
    match cmp {
        IntCmp::Eq | IntCmp::Ne => cmp,
        IntCmp::Lt => IntCmp::Gt,
        IntCmp::Le => IntCmp::Ge,
        IntCmp::Gt => IntCmp::Lt,
        IntCmp::Ge => IntCmp::Le,
    }
}

/// A plain product by one or minus one. With ftz the product still flushes, so an addition of -0 that does takes its place.
fn simplify_product(e: &mut Editor, m: Float, [a, b]: [Value; 2], known: [Option<u64>; 2]) -> Simpler {
    let (one, zero_sign) = match m.ty {
        Scalar::F32 => (0x3f80_0000u64, 1u64 << 31),
        Scalar::F64 => (0x3ff0_0000_0000_0000, 1 << 63),
        _ => return Simpler::No,
    };
    if !m.contract || m.sat {
        return Simpler::No;
    }
    let factor = |k: Option<u64>| k.filter(|&k| k & !zero_sign == one);
    let (x, k) = match (factor(known[0]), factor(known[1])) {
        (_, Some(k)) => (a, k),
        (Some(k), _) => (b, k),
        _ => return Simpler::No,
    };
    if k & zero_sign != 0 {
        op(Op::FNeg { ty: m.ty, ftz: m.ftz }, &[x])
    } else if m.ftz {
        let minus_zero = e.iconst(m.ty.ty(), zero_sign);
        op(Op::FAdd(Float { contract: false, ..m }), &[x, minus_zero])
    } else {
        Simpler::Value(x)
    }
}

fn simplify_select(
    e: &mut Editor,
    code: Op,
    [a, b, c]: [Value; 3],
    known: &[Option<u64>],
    ty: Type,
) -> Simpler {
    if code != Op::Select {
        return Simpler::No;
    }
    if let Some(p) = known[0] {
        return Simpler::Value(if p & 1 != 0 { b } else { c });
    }
    if b == c || known[1].is_some() && known[1] == known[2] {
        return Simpler::Value(b);
    }
    if ty == Type::P && known[1] == Some(1) && known[2] == Some(0) {
        return Simpler::Value(a);
    }
    match e.func.def(a) {
        ValueDef::Inst(i, 0) if e.func.inst(i).op == Op::Not => {
            let p = e.func.inst(i).args[0];
            op(Op::Select, &[p, c, b])
        }
        _ => Simpler::No,
    }
}
