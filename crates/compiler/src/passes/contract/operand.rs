//! Operands as the machine sees them: a value with sign modifiers.

use ir::{Float, Function, InstData, Op, Scalar, Value};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operand {
    pub negated: bool,
    pub absolute: bool,
    pub value: Value,
}

/// Looks through `neg` and `abs` that an operation with the modifiers `m` can do on its operand. `negate`: the operation
/// turns the sign once more, as a subtraction does.
pub fn view(f: &Function, v: Value, m: Float, negate: bool) -> Operand {
    let mut seen = peel(f, v, m);
    seen.negated ^= negate;
    let is_square = |d: &InstData| match d.op {
        Op::FMul(p) if matches!(p.ty, Scalar::F32 | Scalar::F64) => {
            same(f, peel(f, d.args[0], p), peel(f, d.args[1], p))
        }
        _ => false,
    };
    // The magnitude of a square is the square.
    if seen.absolute && !seen.negated && f.def_op(seen.value).is_some_and(is_square) {
        seen.absolute = false;
    }
    seen
}

/// Both operands of an addition, with the sign that a subtraction gives the second.
pub fn views(f: &Function, inst: &InstData, m: Float) -> [Operand; 2] {
    let is_sub = matches!(inst.op, Op::FSub(_));
    [view(f, inst.args[0], m, false), view(f, inst.args[1], m, is_sub)]
}

fn peel(f: &Function, v: Value, m: Float) -> Operand {
    let mut seen = Operand { negated: false, absolute: false, value: v };
    while let Some(d) = f.def_op(seen.value) {
        match d.op {
            Op::FNeg { ty, ftz } if ty == m.ty && (!ftz || m.ftz) && can_negate(ty) => {
                seen.negated ^= !seen.absolute;
            }
            Op::FAbs { ty, ftz } if ty == m.ty && (!ftz || m.ftz) && can_take_magnitude(ty) => {
                seen.absolute = true
            }
            _ => break,
        }
        seen.value = d.args[0];
    }
    seen
}

/// The same bits for sure.
fn same(f: &Function, a: Operand, b: Operand) -> bool {
    let equal = a.value == b.value
        || f.ty(a.value) == f.ty(b.value)
            && f.const_of(a.value).is_some_and(|k| f.const_of(b.value) == Some(k));
    equal && (a.negated, a.absolute) == (b.negated, b.absolute)
}

/// Both products multiply the same operands, in either order.
pub fn same_factors(f: &Function, p: &[Value], q: &[Value], m: Float) -> bool {
    let [p0, p1, q0, q1] = [p[0], p[1], q[0], q[1]].map(|v| peel(f, v, m));
    same(f, p0, q0) && same(f, p1, q1) || same(f, p0, q1) && same(f, p1, q0)
}

fn can_negate(ty: Scalar) -> bool {
    ty != Scalar::Bf16x2
}

fn can_take_magnitude(ty: Scalar) -> bool {
    !matches!(ty, Scalar::Bf16 | Scalar::Bf16x2)
}
