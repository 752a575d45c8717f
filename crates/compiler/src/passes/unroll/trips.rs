//! How often a loop's body runs: a number, or code that computes one.

use super::guard::{Predecessors, enters_short_of_limit};
use super::shape::Shape;
use crate::passes::evaluate::{compare, signed};
use ir::{Block, Function, IntCmp, LocId, Op, Type, Value, ValueDef};

/// A counted loop: after each run of the body it goes on while `tested cmp limit`, and `tested` moves by `step`.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// The variable before the loop.
    pub start: Value,
    /// Per iteration, as a signed number.
    pub step: i64,
    /// The test reads the variable after its step rather than before.
    pub tests_stepped: bool,
    pub cmp: IntCmp,
    pub signed: bool,
    pub limit: Value,
    pub width: Type,
}

/// What a test of `cmp` says with its operands exchanged.
pub fn swapped(cmp: IntCmp) -> IntCmp {
    match cmp {
        IntCmp::Eq | IntCmp::Ne => cmp,
        IntCmp::Lt => IntCmp::Gt,
        IntCmp::Le => IntCmp::Ge,
        IntCmp::Gt => IntCmp::Lt,
        IntCmp::Ge => IntCmp::Le,
    }
}

/// What a failed test of `cmp` says.
pub fn inverted(cmp: IntCmp) -> IntCmp {
    match cmp {
        IntCmp::Eq => IntCmp::Ne,
        IntCmp::Ne => IntCmp::Eq,
        IntCmp::Lt => IntCmp::Ge,
        IntCmp::Le => IntCmp::Gt,
        IntCmp::Gt => IntCmp::Le,
        IntCmp::Ge => IntCmp::Lt,
    }
}

/// Finds the counter that the latch tests.
pub fn find_counter(f: &Function, s: &Shape) -> Option<Counter> {
    let test = f.def_op(s.cond)?;
    let Op::ICmp { cmp, signed: is_signed } = test.op else { return None };
    let in_loop = |v: Value| match f.def(v) {
        ValueDef::Inst(i, _) => s.blocks.iter().any(|&b| f.block(b).insts.contains(&i)),
        ValueDef::BlockParam(b, _) => s.blocks.contains(&b),
        _ => false,
    };
    let fixed = |v: Value| f.const_of(v).is_some() || !in_loop(v);
    let (tested, limit, cmp) = match (test.args[0], test.args[1]) {
        (t, l) if fixed(l) => (t, l, cmp),
        (l, t) if fixed(l) => (t, l, swapped(cmp)),
        _ => return None,
    };
    let cmp = if s.continues_if { cmp } else { inverted(cmp) };
    let width = f.ty(tested);
    if !matches!(width, Type::B32 | Type::B64) {
        return None;
    }
    let params = &f.block(s.header).params;
    // The step of header parameter `n`.
    let step_of = |n: usize| {
        let d = f.def_op(s.next[n]).filter(|d| d.op == Op::Add && d.args[0] == params[n])?;
        f.const_of(d.args[1]).map(|k| signed(k, width)).filter(|&k| k != 0)
    };
    if let Some(n) = params.iter().position(|&p| p == tested) {
        return Some(Counter {
            start: s.start[n],
            step: step_of(n)?,
            tests_stepped: false,
            cmp,
            signed: is_signed,
            limit,
            width,
        });
    }
    let n = s.next.iter().position(|&v| v == tested)?;
    Some(Counter {
        start: s.start[n],
        step: step_of(n)?,
        tests_stepped: true,
        cmp,
        signed: is_signed,
        limit,
        width,
    })
}

impl Counter {
    /// How often the body runs, if start and limit are known and it is at most `most`.
    pub fn known(&self, start: u64, limit: u64, most: u64) -> Option<u64> {
        let add = |v: u64| v.wrapping_add(self.step as u64) & self.width.mask();
        let mut tested = if self.tests_stepped { add(start) } else { start };
        let mut runs = 1;
        while compare(self.cmp, self.signed, tested, limit, self.width) {
            runs += 1;
            if runs > most {
                return None;
            }
            tested = add(tested);
        }
        Some(runs)
    }
}

/// Code before the loop that says how often it runs.
pub struct Trips {
    /// The count is right; where it does not hold the loop itself must run.
    pub valid: Value,
    /// How often the body runs, at least once where valid.
    pub count: Value,
    /// Where not valid, the body runs exactly once.
    pub else_once: bool,
}

/// Appends the computation to `at`. `None`: no closed form for this test.
pub fn compute(f: &mut Function, c: &Counter, at: Block, loc: LocId, preds: &Predecessors) -> Option<Trips> {
    let is_short = c.tests_stepped && enters_short_of_limit(f, at, c, preds);
    let mut code = Code { f, at, loc, width: c.width };
    // A constant may be written inside the loop; here it is written again.
    let mut here = |v: Value| match code.f.const_of(v) {
        Some(bits) => code.number(bits),
        None => v,
    };
    let c = &Counter { start: here(c.start), limit: here(c.limit), ..*c };
    match c.cmp {
        IntCmp::Eq => None,
        IntCmp::Ne => compute_until_equal(&mut code, c, is_short),
        IntCmp::Lt | IntCmp::Le if c.step > 0 => Some(compute_ordered(&mut code, c, is_short)),
        IntCmp::Gt | IntCmp::Ge if c.step < 0 => Some(compute_ordered(&mut code, c, is_short)),
        _ => None,
    }
}

struct Code<'a> {
    f: &'a mut Function,
    at: Block,
    loc: LocId,
    width: Type,
}

impl Code<'_> {
    fn ins(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        let i = self.f.make_inst(op, args, &[ty], None, self.loc);
        self.f.block_mut(self.at).insts.push(i);
        self.f.inst(i).results[0]
    }

    fn number(&mut self, bits: u64) -> Value {
        self.ins(Op::Const(bits & self.width.mask()), &[], self.width)
    }

    fn yes(&mut self) -> Value {
        self.ins(Op::Const(1), &[], Type::P)
    }

    fn add(&mut self, a: Value, k: u64) -> Value {
        let k = self.number(k);
        self.ins(Op::Add, &[a, k], self.width)
    }

    fn sub(&mut self, a: Value, b: Value) -> Value {
        self.ins(Op::Sub, &[a, b], self.width)
    }

    fn test(&mut self, cmp: IntCmp, signed: bool, a: Value, b: Value) -> Value {
        self.ins(Op::ICmp { cmp, signed }, &[a, b], Type::P)
    }

    fn divide(&mut self, a: Value, by: u64) -> Value {
        if by == 1 {
            return a;
        }
        if by.is_power_of_two() {
            let count = self.ins(Op::Const(by.trailing_zeros().into()), &[], Type::B32);
            return self.ins(Op::ShrU, &[a, count], self.width);
        }
        let by = self.number(by);
        self.ins(Op::Div { signed: false }, &[a, by], self.width)
    }
}

/// Goes on while below (or above) the limit. With b the variable one step before the first test, the body runs
/// ceil(|limit - b| / |step|) times if b is on the near side of the limit and the variable cannot pass the end of its
/// range on the last step.
fn compute_ordered(code: &mut Code, c: &Counter, is_short: bool) -> Trips {
    let stride = c.step.unsigned_abs();
    let inclusive = matches!(c.cmp, IntCmp::Le | IntCmp::Ge);
    let upward = c.step > 0;
    // How far the limit must stay from the end of the range: the variable passes it by up to stride - 1 (stride when
    // inclusive). A test before the step runs the body once more, and that count must fit too.
    let slack = stride - 1 + u64::from(inclusive) + u64::from(!c.tests_stepped);
    let (low, high) = match (c.signed, c.width.bits()) {
        (true, n) => (1u64 << (n - 1), (1u64 << (n - 1)) - 1),
        (false, _) => (0, c.width.mask()),
    };
    let first = c.start;
    let near = if is_short { code.yes() } else { code.test(c.cmp, c.signed, first, c.limit) };
    let mut valid = near;
    if slack > 0 {
        let (cmp, bound) = if upward {
            (IntCmp::Le, high.wrapping_sub(slack))
        } else {
            (IntCmp::Ge, low.wrapping_add(slack))
        };
        let bound = code.number(bound);
        let in_range = code.test(cmp, c.signed, c.limit, bound);
        valid = code.ins(Op::And, &[valid, in_range], Type::P);
    }
    let distance = if upward { code.sub(c.limit, first) } else { code.sub(first, c.limit) };
    // ceil(d / stride) for d >= 1 without overflow; an inclusive limit is one farther.
    let less = if inclusive { distance } else { code.add(distance, u64::MAX) };
    let quotient = code.divide(less, stride);
    // The variable itself is tested before its step: one run more than there are values that pass.
    let more = if c.tests_stepped { 1 } else { 2 };
    let count = code.add(quotient, more);
    // One step from a start at or past the limit stays there if it does not wrap.
    let start = code
        .f
        .const_of(c.start)
        .map(|k| if c.signed { i128::from(signed(k, c.width)) } else { i128::from(k) });
    let (low, high) = if c.signed {
        (i128::from(signed(low, c.width)), i128::from(signed(high, c.width)))
    } else {
        (i128::from(low), i128::from(high))
    };
    let stays = start.is_some_and(|k| (low..=high).contains(&(k + i128::from(c.step))));
    let else_once = slack == 0 && stays;
    Trips { valid, count, else_once }
}

/// Goes on until equal: the distance must be a multiple of the step. Strides are powers of two here.
fn compute_until_equal(code: &mut Code, c: &Counter, is_short: bool) -> Option<Trips> {
    let stride = c.step.unsigned_abs();
    if !stride.is_power_of_two() {
        return None;
    }
    let base = if c.tests_stepped { c.start } else { code.add(c.start, (c.step as u64).wrapping_neg()) };
    let distance = if c.step > 0 { code.sub(c.limit, base) } else { code.sub(base, c.limit) };
    let zero = code.number(0);
    let mut valid = if is_short { code.yes() } else { code.test(IntCmp::Ne, false, distance, zero) };
    if stride > 1 {
        let mask = code.number(stride - 1);
        let rest = code.ins(Op::And, &[distance, mask], c.width);
        let fits = code.test(IntCmp::Eq, false, rest, zero);
        valid = code.ins(Op::And, &[valid, fits], Type::P);
    }
    let count = code.divide(distance, stride);
    Some(Trips { valid, count, else_once: false })
}
