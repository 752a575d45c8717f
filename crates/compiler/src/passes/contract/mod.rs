//! Fuses `mul` and `add`/`sub` that carry no rounding modifier, as NVIDIA's assembler chooses.
//!
//! Which products fuse decides bits, so the choice is a contract, not a heuristic:
//!
//! - A product fuses only into additions of its own *stretch*: a block, cut at operations that the assembler turns into
//!   branches or calls (see [`stretch`]).
//! - First every product with a single use goes into its addition. Then, addition by addition in program order, a product
//!   goes in if all its remaining uses can take it; of two, the one with fewer uses, of equals the first operand. Packed
//!   half types have only the second part.
//! - Whoever becomes the addend of a fused operation is needed as a value and fuses nowhere else.
//!
//! Afterwards saturation moves into the operation before it, and a product scaled by a small power of two becomes one.

mod choose;
mod finish;
mod operand;
pub(super) mod stretch;

use super::Context;
use super::edit::{Change, Editor, rewrite};
use choose::{Choice, choose};
use ir::{Float, Function, InstId, Op, Round, Scalar, Value};

pub fn run(f: &mut Function, context: &mut Context) {
    if context.options.fmad {
        let choices = choose(f, &context.unrolled);
        explain(f, context, &choices);
        fuse(f, &choices);
    }
    finish::saturate(f);
    if context.options.fmad {
        finish::scale(f);
    }
    finish::clear_marks(f);
}

fn explain(f: &Function, context: &mut Context, choices: &[Option<Choice>]) {
    for (n, choice) in choices.iter().enumerate() {
        if let Some(Choice::Fuse { .. }) = choice {
            context.remark(f, f.insts[n].loc, || "fused a product into this addition".into());
        }
    }
}

fn fuse(f: &mut Function, choices: &[Option<Choice>]) {
    rewrite(f, |e, _, i| {
        match choices.get(i.index()).copied().flatten() {
            Some(Choice::Fuse { operand, product }) => fuse_one(e, i, operand, product),
            Some(Choice::Double { product }) => {
                let r = e.func.inst(product).results[0];
                let data = e.func.inst_mut(i);
                data.args = smallvec::smallvec![r, r];
                if let Op::FSub(m) = data.op {
                    data.op = Op::FAdd(m);
                }
            }
            None => {}
        }
        Change::Keep
    });
}

fn fuse_one(e: &mut Editor, i: InstId, operand: usize, product: InstId) {
    let data = e.func.inst(i);
    let (is_sub, m) = match data.op {
        Op::FAdd(m) => (false, m),
        Op::FSub(m) => (true, m),
        _ => return,
    };
    let other = data.args[1 - operand];
    let factors = e.func.inst(product).args.clone();
    let negate_product = operand::views(e.func, data, m)[operand].negated;
    let negate_other = is_sub && operand == 0;
    let a = if negate_product { negate(e, factors[0], m.ty) } else { factors[0] };
    let c = if negate_other { negate(e, other, m.ty) } else { other };
    let data = e.func.inst_mut(i);
    data.op = Op::FFma(Float { round: Round::Rn, contract: false, ..m });
    data.args = smallvec::smallvec![a, factors[1], c];
}

/// The value with its sign turned; the back end makes it an operand modifier.
fn negate(e: &mut Editor, v: Value, ty: Scalar) -> Value {
    let width = e.func.ty(v);
    let sign: u64 = match ty {
        Scalar::F64 => 1 << 63,
        Scalar::F32 => 1 << 31,
        Scalar::F16x2 | Scalar::Bf16x2 => 0x8000_8000,
        _ => 0x8000,
    };
    if let Some(bits) = e.func.const_of(v) {
        return e.iconst(width, bits ^ sign);
    }
    match e.func.def_op(v) {
        Some(d) if d.op == (Op::FNeg { ty, ftz: false }) => d.args[0],
        _ => e.ins(Op::FNeg { ty, ftz: false }, &[v], width),
    }
}
