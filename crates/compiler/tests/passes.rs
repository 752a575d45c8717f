//! The passes keep what a function computes: on built functions, on random straight-line programs, and on counted loops of
//! all kinds of bounds.

#[path = "passes/interpret.rs"]
mod interpret;
#[path = "passes/random.rs"]
mod random;

use compiler::passes::{OptLevel, PassOptions, run, run_explained};
use interpret::{Outcome, interpret, interpret_in};
use ir::{
    Access, Float, FloatCmp, Function, FunctionBuilder, FunctionKind, Guard, IntCmp, Module, Op, Order,
    Scalar, Space, Terminator, Type, Value, ValueDef,
};
use random::Random;

/// A device function's builder with parameters of these widths.
fn builder(widths: &[Type]) -> (FunctionBuilder, Vec<Value>) {
    let mut f = Function::new("f", FunctionKind::Device);
    let params =
        widths.iter().enumerate().map(|(n, &ty)| f.new_value(ty, ValueDef::FuncParam(n as u32))).collect();
    f.param_values = params;
    let params = f.param_values.clone();
    (FunctionBuilder::new(f), params)
}

fn returning(mut b: FunctionBuilder, values: &[Value]) -> Function {
    b.func.results = values.iter().map(|&v| b.func.ty(v)).collect();
    b.terminate(Terminator::Return(values.into()));
    b.finish()
}

fn module(f: Function) -> Module {
    let m = Module { functions: vec![f], locations: vec![Default::default()], ..Module::default() };
    ir::validate(&m).expect("valid before the passes");
    m
}

fn optimised(f: &Function, fmad: bool) -> Function {
    let mut m = module(f.clone());
    run(&mut m, &PassOptions { opt_level: OptLevel::O3, fmad });
    m.functions.remove(0)
}

fn ops(f: &Function) -> Vec<Op> {
    f.layout.iter().flat_map(|&b| f.block(b).insts.iter().map(|&i| f.inst(i).op)).collect()
}

fn count(f: &Function, is: impl Fn(&Op) -> bool) -> usize {
    ops(f).iter().filter(|op| is(op)).count()
}

const PLAIN: Float =
    Float { ty: Scalar::F32, round: ir::Round::Rn, ftz: false, sat: false, relu: false, contract: true };

/// f32 bits: small integers, denormals, big and ordinary numbers, infinities; no NaN.
fn float(r: &mut Random) -> u64 {
    let bits = match r.below(6) {
        0 => (r.below(9) as f32 - 4.0).to_bits(),
        1 => r.next() as u32 & 0x807f_ffff,
        2 => f32::INFINITY.to_bits() | (r.next() as u32 & 0x8000_0000),
        3 => r.pick(&[0x3f80_0000, 0xbf80_0000, 0x8000_0000, 0, 0x4000_0000, 0x3e80_0000]),
        _ => r.next() as u32,
    };
    u64::from(if f32::from_bits(bits).is_nan() { 0x3f80_0000 } else { bits })
}

#[test]
fn random_straight_line_programs_keep_their_results() {
    for seed in 0..400 {
        let mut r = Random::new(seed);
        let (mut b, params) = builder(&[Type::B32; 6]);
        let mut floats: Vec<Value> = params.clone();
        let mut conditions = vec![b.iconst(Type::P, r.below(2) as u64)];
        for _ in 0..r.below(40) + 5 {
            let (x, y, z) = (r.pick(&floats), r.pick(&floats), r.pick(&floats));
            let mode =
                Float { ftz: r.below(4) == 0, sat: r.below(8) == 0, contract: r.below(4) > 0, ..PLAIN };
            let ftz = mode.ftz;
            let v = match r.below(14) {
                0..=2 => b.ins(Op::FAdd(mode), &[x, y], Type::B32),
                3 => b.ins(Op::FSub(mode), &[x, y], Type::B32),
                4..=6 => b.ins(Op::FMul(mode), &[x, y], Type::B32),
                7 => b.ins(Op::FFma(Float { contract: false, ..mode }), &[x, y, z], Type::B32),
                8 => b.ins(Op::FNeg { ty: Scalar::F32, ftz }, &[x], Type::B32),
                9 => b.ins(Op::FAbs { ty: Scalar::F32, ftz }, &[x], Type::B32),
                10 => b.ins(
                    Op::FMax { ty: Scalar::F32, ftz, nan: false, xorsign_abs: false },
                    &[x, y],
                    Type::B32,
                ),
                11 => {
                    let bits = float(&mut r);
                    b.iconst(Type::B32, bits)
                }
                12 => {
                    let p = r.pick(&conditions);
                    b.ins(Op::Select, &[p, x, y], Type::B32)
                }
                _ => {
                    let cmp = r.pick(&[FloatCmp::Lt, FloatCmp::Geu, FloatCmp::Eq, FloatCmp::Num]);
                    conditions.push(b.ins(Op::FCmp { cmp, ty: Scalar::F32, ftz }, &[x, y], Type::P));
                    continue;
                }
            };
            floats.push(v);
        }
        let kept: Vec<Value> = (0..3).map(|_| r.pick(&floats)).collect();
        let f = returning(b, &kept);
        let after = optimised(&f, false);
        for _ in 0..8 {
            let args: Vec<u64> = (0..6).map(|_| float(&mut r)).collect();
            assert_eq!(interpret(&f, &args, 10), interpret(&after, &args, 10), "seed {seed}\n{f}\n{after}");
        }
    }
}

#[test]
fn random_integer_programs_keep_their_results() {
    for seed in 0..400 {
        let mut r = Random::new(seed + 1000);
        let (mut b, params) = builder(&[Type::B32, Type::B32, Type::B64, Type::B64]);
        let mut values = params.clone();
        for _ in 0..r.below(40) + 5 {
            let wide = r.below(2) == 1;
            let ty = if wide { Type::B64 } else { Type::B32 };
            let of = |b: &FunctionBuilder, r: &mut Random, values: &[Value], ty: Type| {
                let fitting: Vec<Value> = values.iter().copied().filter(|&v| b.func.ty(v) == ty).collect();
                r.pick(&fitting)
            };
            let (x, y) = (of(&b, &mut r, &values, ty), of(&b, &mut r, &values, ty));
            let n = of(&b, &mut r, &values, Type::B32);
            let signed = r.below(2) == 0;
            let v = match r.below(18) {
                0 => b.ins(Op::Add, &[x, y], ty),
                1 => b.ins(Op::Sub, &[x, y], ty),
                2 => b.ins(Op::Mul, &[x, y], ty),
                3 => b.ins(Op::And, &[x, y], ty),
                4 => b.ins(Op::Or, &[x, y], ty),
                5 => b.ins(Op::Xor, &[x, y], ty),
                6 => b.ins(Op::Shl, &[x, n], ty),
                7 => b.ins(if signed { Op::ShrS } else { Op::ShrU }, &[x, n], ty),
                8 => b.ins(Op::Not, &[x], ty),
                9 => b.ins(Op::Neg, &[x], ty),
                10 if wide => b.ins(if signed { Op::TruncLo } else { Op::TruncHi }, &[x], Type::B32),
                10 => b.ins(if signed { Op::SignExt } else { Op::ZeroExt }, &[x], Type::B64),
                11 if !wide => b.ins(Op::Concat, &[x, y], Type::B64),
                12 => b.ins(if signed { Op::Min { signed } } else { Op::Max { signed } }, &[x, y], ty),
                13 => {
                    let cmp =
                        r.pick(&[IntCmp::Eq, IntCmp::Ne, IntCmp::Lt, IntCmp::Le, IntCmp::Gt, IntCmp::Ge]);
                    let p = b.ins(Op::ICmp { cmp, signed }, &[x, y], Type::P);
                    let p = if signed { b.ins(Op::Not, &[p], Type::P) } else { p };
                    b.ins(Op::Select, &[p, x, y], ty)
                }
                14 if !wide => {
                    let k = b.iconst(ty, r.pick(&[1, 2, 8, 3]));
                    b.ins(
                        if signed { Op::Div { signed: false } } else { Op::Rem { signed: false } },
                        &[x, k],
                        ty,
                    )
                }
                _ => {
                    let bits = r.pick(&[0, 1, 2, 31, 32, 33, 64, u64::MAX, 0x8000_0000, 7]);
                    b.iconst(ty, bits)
                }
            };
            values.push(v);
        }
        let kept: Vec<Value> = (0..4).map(|_| r.pick(&values)).collect();
        let f = returning(b, &kept);
        let after = optimised(&f, true);
        for _ in 0..8 {
            let args: Vec<u64> = (0..4).map(|_| r.next() >> r.below(64)).collect();
            assert_eq!(interpret(&f, &args, 10), interpret(&after, &args, 10), "seed {seed}\n{f}\n{after}");
        }
    }
}

/// How a test loop counts.
#[derive(Clone, Copy, Debug)]
struct Count {
    start: u64,
    start_is_constant: bool,
    step: i64,
    limit: u64,
    limit_is_constant: bool,
    cmp: IntCmp,
    signed: bool,
    tests_stepped: bool,
    continues_if: bool,
    width: Type,
    /// A test before the loop, and whether the loop runs where it holds: of the limit (or the start) with a constant, or
    /// of both.
    guard: Option<(IntCmp, bool, GuardOf, bool)>,
}

#[derive(Clone, Copy, Debug)]
enum GuardOf {
    Limit(u64),
    Start(u64),
    Both,
}

/// A loop that sums, keeps a product from one iteration to the next and stores; it returns what it carries and a value
/// that it does not.
fn counted_loop(c: Count) -> Function {
    let (mut b, p) = builder(&[c.width, c.width, Type::B32, Type::B32]);
    let (i, sum, product) = (b.declare_var(c.width), b.declare_var(Type::B32), b.declare_var(Type::B32));
    let start = if c.start_is_constant { b.iconst(c.width, c.start) } else { p[0] };
    let limit = if c.limit_is_constant { b.iconst(c.width, c.limit) } else { p[1] };
    b.def_var(i, start);
    b.def_var(sum, p[2]);
    b.def_var(product, p[3]);
    let (head, end) = (b.create_block(), b.create_block());
    if let Some((cmp, signed, of, runs_if)) = c.guard {
        let (x, y) = match of {
            GuardOf::Limit(k) => (limit, b.iconst(c.width, k)),
            GuardOf::Start(k) => (start, b.iconst(c.width, k)),
            GuardOf::Both => (start, limit),
        };
        let holds = b.ins(Op::ICmp { cmp, signed }, &[x, y], Type::P);
        let (enter, skip) = (b.create_block(), b.create_block());
        b.branch(holds, if runs_if { enter } else { skip }, if runs_if { skip } else { enter }, false);
        b.switch_to(skip);
        b.terminate(Terminator::Return([x, p[2], p[3], x].as_slice().into()));
        b.switch_to(enter);
    }
    b.jump(head);
    b.switch_to(head);
    let (old, s, m) = (b.use_var(i), b.use_var(sum), b.use_var(product));
    let s = b.ins(Op::FAdd(PLAIN), &[m, s], Type::B32);
    let m = b.ins(Op::FMul(PLAIN), &[s, p[3]], Type::B32);
    let last = b.ins(Op::FAdd(PLAIN), &[m, p[2]], Type::B32);
    let at = b.iconst(Type::B64, 64);
    // Volatile: each iteration's store counts.
    let store = Access { order: Order::Volatile, ..Access::plain(Space::Global, Scalar::F32) };
    b.effect(Op::Store(store), &[at, s], None);
    let step = b.iconst(c.width, c.step as u64);
    let next = b.ins(Op::Add, &[old, step], c.width);
    b.def_var(i, next);
    b.def_var(sum, s);
    b.def_var(product, m);
    let tested = if c.tests_stepped { next } else { old };
    let go_on = b.ins(Op::ICmp { cmp: c.cmp, signed: c.signed }, &[tested, limit], Type::P);
    if c.continues_if {
        b.branch(go_on, head, end, false);
    } else {
        b.branch(go_on, end, head, false);
    }
    b.switch_to(end);
    let (i, s) = (b.use_var(i), b.use_var(sum));
    returning(b, &[i, s, last, old])
}

#[test]
fn unrolled_loops_run_as_often_as_before() {
    let mut r = Random::new(7);
    let (mut ran, mut unrolled) = (0, 0);
    for case in 0..3000 {
        let width = r.pick(&[Type::B32, Type::B64]);
        let edge = r.pick(&[0, width.mask(), width.mask() >> 1, (width.mask() >> 1) + 1, 100]);
        let near = |r: &mut Random| edge.wrapping_add(r.below(40) as u64).wrapping_sub(20) & width.mask();
        let c = Count {
            start: near(&mut r),
            start_is_constant: r.below(2) == 0,
            step: r.pick(&[1, 1, 1, -1, -1, 2, 3, 4, -4, -5, 7]),
            limit: near(&mut r),
            limit_is_constant: r.below(3) == 0,
            cmp: r.pick(&[
                IntCmp::Lt,
                IntCmp::Lt,
                IntCmp::Le,
                IntCmp::Gt,
                IntCmp::Ge,
                IntCmp::Ne,
                IntCmp::Eq,
            ]),
            signed: r.below(2) == 0,
            tests_stepped: r.below(3) > 0,
            continues_if: r.below(4) > 0,
            width,
            guard: None,
        };
        let off = |r: &mut Random, v: u64| v.wrapping_add(r.below(5) as u64).wrapping_sub(2) & width.mask();
        let guard_of = match r.below(3) {
            // A constant near the other bound, so that the guard is about to say something.
            0 => GuardOf::Limit(off(&mut r, c.start)),
            1 => GuardOf::Start(off(&mut r, c.limit)),
            _ => GuardOf::Both,
        };
        let guard_cmp = r.pick(&[IntCmp::Lt, IntCmp::Le, IntCmp::Gt, IntCmp::Ge, IntCmp::Ne, IntCmp::Eq]);
        let guard = (r.below(2) == 0).then_some((guard_cmp, r.below(2) == 0, guard_of, r.below(2) == 0));
        let c = Count { guard, ..c };
        let f = counted_loop(c);
        let mut m = module(f.clone());
        let remarks = run_explained(&mut m, &PassOptions { opt_level: OptLevel::O3, fmad: false });
        unrolled += usize::from(remarks.iter().any(|r| r.pass == "unroll"));
        let args = [c.start, c.limit, 1.5f32.to_bits().into(), 0.75f32.to_bits().into()];
        // A loop that runs more often than this wraps around its range: too long to watch.
        let Some(before) = interpret(&f, &args, 200) else { continue };
        ran += 1;
        let after = interpret_in(&m.functions, &args, 2000);
        assert_eq!(Some(before), after, "case {case}: {c:?}\n{f}\n{}", m.functions[0]);
    }
    assert!(ran > 1000 && unrolled > 1000, "{ran} ran, {unrolled} unrolled");
}

fn simple_count(start: u64, limit: Option<u64>) -> Count {
    Count {
        start,
        start_is_constant: true,
        step: 1,
        limit: limit.unwrap_or(0),
        limit_is_constant: limit.is_some(),
        cmp: IntCmp::Lt,
        signed: false,
        tests_stepped: true,
        continues_if: true,
        width: Type::B32,
        guard: None,
    }
}

#[test]
fn a_known_number_of_iterations_unrolls_fully_and_a_large_one_in_groups() {
    let small = optimised(&counted_loop(simple_count(0, Some(10))), true);
    assert_eq!(small.layout.len(), 1, "{small}");
    let large = optimised(&counted_loop(simple_count(0, Some(100_000))), true);
    assert!(large.layout.len() > 1, "{large}");
    let stores = count(&large, |op| matches!(op, Op::Store(_)));
    assert!((40..=200).contains(&stores), "a group of copies, not {stores}");
}

#[test]
fn a_guarded_loop_needs_no_first_iteration_apart() {
    for (guard, copies) in [(None, 8), (Some((IntCmp::Lt, true, GuardOf::Limit(1), false)), 7)] {
        let f = optimised(&counted_loop(Count { guard, ..simple_count(0, None) }), true);
        assert_eq!(count(&f, |op| matches!(op, Op::Store(_))), copies, "{f}");
    }
}

#[test]
fn a_marked_loop_is_not_unrolled() {
    let mut f = counted_loop(simple_count(0, Some(4)));
    let header = f.layout[1];
    f.block_mut(header).no_unroll = true;
    let after = optimised(&f, true);
    assert_eq!(count(&after, |op| matches!(op, Op::Store(_))), 1, "{after}");
}

#[test]
fn nested_loops_unroll_from_the_inside() {
    let (mut b, p) = builder(&[Type::B32]);
    let (i, j, sum) = (b.declare_var(Type::B32), b.declare_var(Type::B32), b.declare_var(Type::B32));
    let zero = b.iconst(Type::B32, 0);
    let [outer, inner, tail, end] = [(); 4].map(|()| b.create_block());
    b.def_var(i, zero);
    b.def_var(sum, p[0]);
    b.jump(outer);
    b.switch_to(outer);
    b.def_var(j, zero);
    b.jump(inner);
    for (head, var, exit, limit) in [(inner, j, tail, 3), (tail, i, end, 2)] {
        b.switch_to(head);
        let (v, s) = (b.use_var(var), b.use_var(sum));
        let three = b.iconst(Type::B32, 3);
        let s = b.ins(Op::Mul, &[s, three], Type::B32);
        let s = b.ins(Op::Add, &[s, v], Type::B32);
        b.def_var(sum, s);
        let one = b.iconst(Type::B32, 1);
        let v = b.ins(Op::Add, &[v, one], Type::B32);
        b.def_var(var, v);
        let limit = b.iconst(Type::B32, limit);
        let p = b.ins(Op::ICmp { cmp: IntCmp::Lt, signed: true }, &[v, limit], Type::P);
        b.branch(p, if head == inner { inner } else { outer }, exit, false);
    }
    b.switch_to(end);
    let s = b.use_var(sum);
    let f = returning(b, &[s]);
    let after = optimised(&f, true);
    assert_eq!(after.layout.len(), 1, "{after}");
    assert_eq!(interpret(&f, &[5], 100), interpret(&after, &[5], 100));
}

/// Statements over four variables: assignments, arms, loops of all shapes, stores.
fn statements(b: &mut FunctionBuilder, r: &mut Random, vars: &[ir::Var], depth: usize) {
    for _ in 0..r.below(4) + 1 {
        let (x, y) = (b.use_var(r.pick(vars)), b.use_var(r.pick(vars)));
        match r.below(if depth == 0 { 3 } else { 6 }) {
            0 | 1 => {
                let op = r.pick(&[Op::Add, Op::Xor, Op::Mul, Op::Sub, Op::Min { signed: true }]);
                let y = if r.below(3) == 0 { b.iconst(Type::B32, r.below(5) as u64) } else { y };
                let v = b.ins(op, &[x, y], Type::B32);
                b.def_var(r.pick(vars), v);
            }
            2 => {
                let at = b.iconst(Type::B64, 4 * r.below(4) as u64);
                let p = b.ins(Op::ICmp { cmp: IntCmp::Lt, signed: true }, &[x, y], Type::P);
                let guard = (r.below(2) == 0).then_some(Guard { value: p, negated: r.below(2) == 0 });
                b.effect(Op::Store(Access::plain(Space::Global, Scalar::U32)), &[at, x], guard);
            }
            3 => {
                let p = b.ins(Op::ICmp { cmp: IntCmp::Le, signed: false }, &[x, y], Type::P);
                let [t, e, join] = [(); 3].map(|()| b.create_block());
                b.branch(p, t, if r.below(2) == 0 { e } else { join }, false);
                for arm in [t, e] {
                    b.switch_to(arm);
                    if r.below(4) > 0 {
                        statements(b, r, vars, depth - 1);
                    }
                    b.jump(join);
                }
                b.switch_to(join);
            }
            _ => loop_statement(b, r, vars, depth),
        }
    }
}

fn loop_statement(b: &mut FunctionBuilder, r: &mut Random, vars: &[ir::Var], depth: usize) {
    let i = b.declare_var(Type::B32);
    let zero = b.iconst(Type::B32, 0);
    b.def_var(i, zero);
    let seven = b.iconst(Type::B32, 7);
    let limit = if r.below(2) == 0 {
        b.iconst(Type::B32, r.below(6) as u64)
    } else {
        let v = b.use_var(r.pick(vars));
        b.ins(Op::And, &[v, seven], Type::B32)
    };
    let step = b.iconst(Type::B32, 1 + r.below(3) as u64);
    let [head, body, end] = [(); 3].map(|()| b.create_block());
    let test = Op::ICmp { cmp: IntCmp::Lt, signed: r.below(2) == 0 };
    let at_top = r.below(2) == 0;
    b.jump(head);
    b.switch_to(head);
    if at_top {
        let v = b.use_var(i);
        let go_on = b.ins(test, &[v, limit], Type::P);
        b.branch(go_on, body, end, false);
        b.switch_to(body);
    }
    statements(b, r, vars, depth - 1);
    if r.below(5) == 0 {
        // A second way out.
        let (x, y) = (b.use_var(r.pick(vars)), b.use_var(r.pick(vars)));
        let p = b.ins(Op::ICmp { cmp: IntCmp::Eq, signed: false }, &[x, y], Type::P);
        let on = b.create_block();
        b.branch(p, end, on, false);
        b.switch_to(on);
    }
    let v = b.use_var(i);
    let v = b.ins(Op::Add, &[v, step], Type::B32);
    b.def_var(i, v);
    b.def_var(r.pick(vars), v);
    if at_top {
        b.jump(head);
    } else {
        let go_on = b.ins(test, &[v, limit], Type::P);
        b.branch(go_on, head, end, false);
    }
    b.switch_to(end);
}

#[test]
fn random_programs_with_arms_and_loops_keep_what_they_do() {
    let mut unrolled = 0;
    for seed in 0..600 {
        let mut r = Random::new(seed + 5000);
        let (mut b, params) = builder(&[Type::B32; 4]);
        let vars: Vec<ir::Var> = params.iter().map(|_| b.declare_var(Type::B32)).collect();
        vars.iter().zip(&params).for_each(|(&v, &p)| b.def_var(v, p));
        statements(&mut b, &mut r, &vars, 3);
        let out: Vec<Value> = vars.iter().map(|&v| b.use_var(v)).collect();
        let f = returning(b, &out);
        let mut m = module(f.clone());
        let remarks = run_explained(&mut m, &PassOptions::default());
        unrolled += usize::from(remarks.iter().any(|r| r.pass == "unroll"));
        for _ in 0..6 {
            let args: Vec<u64> = (0..4).map(|_| r.next() >> 32 >> r.below(32)).collect();
            let Some(before) = interpret(&f, &args, 20_000) else { continue };
            // Stores that others cover may go: what counts is what is there in the end.
            let after = interpret_in(&m.functions, &args, 100_000).map(Outcome::at_the_end);
            assert_eq!(Some(before.at_the_end()), after, "seed {seed}\n{f}\n{}", m.functions[0]);
        }
    }
    assert!(unrolled > 100, "{unrolled}");
}

#[test]
fn a_loop_that_tests_at_its_top_unrolls_too() {
    let (mut b, p) = builder(&[Type::B32]);
    let (i, sum) = (b.declare_var(Type::B32), b.declare_var(Type::B32));
    let zero = b.iconst(Type::B32, 0);
    b.def_var(i, zero);
    b.def_var(sum, p[0]);
    let [head, body, end] = [(); 3].map(|()| b.create_block());
    b.jump(head);
    b.switch_to(head);
    let (v, five) = (b.use_var(i), b.iconst(Type::B32, 5));
    let c = b.ins(Op::ICmp { cmp: IntCmp::Lt, signed: true }, &[v, five], Type::P);
    b.branch(c, body, end, false);
    b.switch_to(body);
    let s = b.use_var(sum);
    let s = b.ins(Op::Mul, &[s, s], Type::B32);
    b.def_var(sum, s);
    let one = b.iconst(Type::B32, 1);
    let v = b.ins(Op::Add, &[v, one], Type::B32);
    b.def_var(i, v);
    b.jump(head);
    b.switch_to(end);
    let (i, s) = (b.use_var(i), b.use_var(sum));
    let f = returning(b, &[i, s]);
    let after = optimised(&f, true);
    assert_eq!(after.layout.len(), 1, "{after}");
    assert_eq!(interpret(&f, &[3], 100), interpret(&after, &[3], 100));
}

#[test]
fn an_empty_arm_disappears_and_dead_values_go() {
    let (mut b, p) = builder(&[Type::B32, Type::B32]);
    let c = b.ins(Op::ICmp { cmp: IntCmp::Lt, signed: true }, &[p[0], p[1]], Type::P);
    let m = b.ins(Op::FMul(PLAIN), &[p[0], p[1]], Type::B32);
    let (arm, join) = (b.create_block(), b.create_block());
    b.branch(c, arm, join, false);
    b.switch_to(arm);
    b.jump(join);
    b.switch_to(join);
    b.ins(Op::FMul(PLAIN), &[m, m], Type::B32);
    let s = b.ins(Op::FAdd(PLAIN), &[m, p[0]], Type::B32);
    let f = optimised(&returning(b, &[s]), true);
    assert_eq!(f.layout.len(), 1, "{f}");
    assert!(matches!(ops(&f)[..], [Op::FFma(_)]), "{f}");
}

/// The fused and plain operations of a block that `emit` fills, given four numbers.
fn contracted(emit: impl Fn(&mut FunctionBuilder, &[Value]) -> Vec<Value>) -> (usize, usize, usize) {
    let (mut b, p) = builder(&[Type::B32; 4]);
    let out = emit(&mut b, &p);
    let f = optimised(&returning(b, &out), true);
    let products = count(&f, |op| matches!(op, Op::FMul(_)));
    let sums = count(&f, |op| matches!(op, Op::FAdd(_) | Op::FSub(_)));
    (count(&f, |op| matches!(op, Op::FFma(_))), products, sums)
}

#[test]
fn operations_that_become_branches_end_a_stretch() {
    // Whether a product and a sum around the operation are fused.
    let between = |op: Op, args: usize, ty: Option<Type>, guarded: bool| {
        let (mut b, p) = builder(&[Type::B32; 4]);
        let out = {
            let b = &mut b;
            let m = b.ins(Op::FMul(PLAIN), &[p[0], p[1]], Type::B32);
            let cond = b.ins(Op::ICmp { cmp: IntCmp::Lt, signed: true }, &[p[0], p[1]], Type::P);
            let wide = b.ins(Op::ZeroExt, &[p[0]], Type::B64);
            let guard = guarded.then_some(Guard { value: cond, negated: false });
            let args: Vec<Value> = match op {
                Op::Store(_) => vec![wide, p[1]],
                _ if ty == Some(Type::B64) => vec![wide; args],
                _ => p[..args].to_vec(),
            };
            let extra = b.ins_multi(op, &args, ty.as_slice(), guard);
            let s = b.ins(Op::FAdd(PLAIN), &[m, p[2]], Type::B32);
            [&[s], &extra[..]].concat()
        };
        let f = optimised(&returning(b, &out), true);
        let sum = f.layout.iter().find_map(|&b| match &f.block(b).term {
            Terminator::Return(values) => values.first().copied(),
            _ => None,
        });
        let made_by = sum.and_then(|v| f.def_op(v)).map(|i| i.op);
        usize::from(matches!(made_by, Some(Op::FFma(_))))
    };
    let store = Op::Store(Access::plain(Space::Global, Scalar::F32));
    assert_eq!(between(store, 2, None, false), 1);
    assert_eq!(between(store, 2, None, true), 0);
    assert_eq!(between(Op::Fence { order: ir::Order::AcqRel, scope: ir::Scope::Gpu }, 0, None, false), 0);
    assert_eq!(
        between(Op::FDiv { ty: Scalar::F32, round: ir::Round::Rn, ftz: false }, 2, Some(Type::B32), false),
        0
    );
    assert_eq!(between(Op::Div { signed: true }, 2, Some(Type::B32), false), 0);
    assert_eq!(between(Op::Div { signed: false }, 2, Some(Type::B32), false), 1);
    assert_eq!(between(Op::Rem { signed: false }, 2, Some(Type::B64), false), 0);
    assert_eq!(between(Op::Nanosleep, 1, None, false), 1);
}

#[test]
fn uses_that_need_the_rounded_product_stop_fusing() {
    let mul = |b: &mut FunctionBuilder, x, y| b.ins(Op::FMul(PLAIN), &[x, y], Type::B32);
    let add = |b: &mut FunctionBuilder, x, y| b.ins(Op::FAdd(PLAIN), &[x, y], Type::B32);
    // Sixteen additions take the product; one more reader and none does.
    for (reader, expected) in [(false, (16, 0, 0)), (true, (0, 1, 16))] {
        let found = contracted(|b, p| {
            let m = mul(b, p[0], p[1]);
            let mut out = Vec::new();
            for n in 0..16u32 {
                let k = b.iconst(Type::B32, (n as f32 + 2.0).to_bits().into());
                out.push(add(b, m, k));
            }
            if reader {
                out.push(m);
            }
            out
        });
        assert_eq!(found, expected);
    }
    // A magnitude is an operation, but that of a square is none.
    for (square, expected) in [(false, (0, 1, 1)), (true, (1, 0, 0))] {
        let found = contracted(|b, p| {
            let m = mul(b, p[0], p[if square { 0 } else { 1 }]);
            let a = b.ins(Op::FAbs { ty: Scalar::F32, ftz: false }, &[m], Type::B32);
            vec![add(b, a, p[2])]
        });
        assert_eq!(found, expected);
    }
    // A product by one is none.
    assert_eq!(
        contracted(|b, p| {
            let one = b.iconst(Type::B32, 1f32.to_bits().into());
            let m = mul(b, p[0], one);
            vec![add(b, m, p[2])]
        }),
        (0, 0, 1)
    );
}

#[test]
fn a_scaled_product_is_one_operation() {
    for (factor, scaled) in [(2.0f32, true), (0.125, true), (16.0, false), (-2.0, false), (3.0, false)] {
        let (mut b, p) = builder(&[Type::B32; 2]);
        let m = b.ins(Op::FMul(PLAIN), &[p[0], p[1]], Type::B32);
        let k = b.iconst(Type::B32, factor.to_bits().into());
        let m = b.ins(Op::FMul(PLAIN), &[m, k], Type::B32);
        let f = optimised(&returning(b, &[m]), true);
        assert_eq!(count(&f, |op| matches!(op, Op::FMulScaled { .. })) == 1, scaled, "{f}");
    }
}

#[test]
fn approximate_division_by_a_constant_is_a_product() {
    let div = |b: &mut FunctionBuilder, x, y| {
        b.ins(Op::Approx { f: ir::ApproxFn::Div, ty: Scalar::F32, ftz: false }, &[x, y], Type::B32)
    };
    let found = contracted(|b, p| {
        let three = b.iconst(Type::B32, 3f32.to_bits().into());
        let q = div(b, p[0], three);
        vec![b.ins(Op::FAdd(PLAIN), &[q, p[1]], Type::B32)]
    });
    assert_eq!(found, (1, 0, 0));
    let (mut b, _) = builder(&[]);
    let half = b.iconst(Type::B32, 0.5f32.to_bits().into());
    let s = b.ins(Op::Approx { f: ir::ApproxFn::Sin, ty: Scalar::F32, ftz: false }, &[half], Type::B32);
    let f = optimised(&returning(b, &[s]), true);
    assert_eq!(interpret(&f, &[], 2).map(|o| o.returned), Some(vec![0.5f32.sin().to_bits().into()]));
}

#[test]
fn ten_thousand_instructions_compile_in_no_time_to_speak_of() {
    // Deep chains and many blocks: a pass that is quadratic in either would not end within the test's patience.
    let (mut b, p) = builder(&[Type::B32; 4]);
    let mut v = p[0];
    for n in 0..2000 {
        let m = b.ins(Op::FMul(PLAIN), &[v, p[1]], Type::B32);
        v = b.ins(Op::FAdd(PLAIN), &[m, p[2 + n % 2]], Type::B32);
        if n % 10 == 0 {
            let c = b.ins(Op::ICmp { cmp: IntCmp::Lt, signed: true }, &[v, p[3]], Type::P);
            let (next, other) = (b.create_block(), b.create_block());
            b.branch(c, next, other, false);
            b.switch_to(other);
            b.effect(Op::Nanosleep, &[v], None);
            b.jump(next);
            b.switch_to(next);
        }
    }
    let f = optimised(&returning(b, &[v]), true);
    assert_eq!(count(&f, |op| matches!(op, Op::FFma(_))), 2000);
}
