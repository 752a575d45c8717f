//! Moves constants in address arithmetic outward, where memory operands take them for nothing: `(p + 32) + i` becomes
//! `(p + i) + 32`. Sums that differ in their constants only are then one sum.

use super::Context;
use super::edit::{Change, rewrite};
use ir::{Function, Op, Type, Value};

pub fn run(f: &mut Function, context: &mut Context) {
    let is_address = addresses(f);
    let mut done = Vec::new();
    rewrite(f, |e, _, i| {
        let inst = e.func.inst(i);
        if inst.op != Op::Add || !is_address.get(inst.results[0].index()).is_some_and(|&a| a) {
            return Change::Keep;
        }
        let ty = e.func.ty(inst.results[0]);
        let (a, b) = (inst.args[0], inst.args[1]);
        let ((x, c), (y, d)) = (split(e.func, a), split(e.func, b));
        let sum = c.wrapping_add(d) & ty.mask();
        if (c, d) == (0, 0) || e.func.const_of(a).is_some() {
            return Change::Keep;
        }
        // A constant to a constant: the fold that makes chains short.
        if let Some(k) = e.func.const_of(b) {
            let total = e.iconst(ty, c.wrapping_add(k));
            return Change::Replace(e.ins(Op::Add, &[x, total], ty));
        }
        done.push(e.loc);
        let base = e.ins(Op::Add, &[x, y], ty);
        let offset = e.iconst(ty, sum);
        Change::Replace(e.ins(Op::Add, &[base, offset], ty))
    });
    for loc in done {
        context.remark(f, loc, || "moved a constant of an address into the memory offset".into());
    }
}

/// A sum with a constant as the rest and the constant.
fn split(f: &Function, v: Value) -> (Value, u64) {
    match f.def_op(v) {
        Some(inst) if inst.op == Op::Add => match f.const_of(inst.args[1]) {
            Some(c) if f.const_of(inst.args[0]).is_none() => (inst.args[0], c),
            _ => (v, 0),
        },
        _ => (v, 0),
    }
}

/// Values that memory operations take as addresses, and the sums these are made of.
fn addresses(f: &Function) -> Vec<bool> {
    let mut is_address = vec![false; f.values.len()];
    for b in f.reverse_postorder().into_iter().rev() {
        for &i in f.block(b).insts.iter().rev() {
            let inst = f.inst(i);
            match inst.op {
                Op::Load(_) | Op::Store(_) | Op::Atom(_) | Op::Red(_) => {
                    is_address[inst.args[0].index()] = true
                }
                Op::Add if is_address[inst.results[0].index()] && f.ty(inst.results[0]) != Type::B16 => {
                    inst.args.iter().for_each(|v| is_address[v.index()] = true);
                }
                _ => {}
            }
        }
    }
    is_address
}
