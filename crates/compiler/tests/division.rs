//! The expansions of division, reciprocal and square root against `arith`'s exact functions and the H200's own results.

#[path = "../../arith/tests/common/mod.rs"]
mod common;
#[path = "division/interpret.rs"]
mod interpret;

use arith::int::{w32, w64};
use arith::{Mode, fp32, fp64};
use compiler::passes::expand_division;
use interpret::{Run, interpret};
use ir::{
    FuncId, Function, FunctionBuilder, FunctionKind, Module, Op, Round, Scalar, Terminator, Type, ValueDef,
};

/// A module whose first function returns the operation of its parameters, expanded; a constant second operand if given.
fn expanded(op: Op, ty: Type, operands: u32, constant: Option<u64>) -> Module {
    let mut f = Function::new("f", FunctionKind::Device);
    f.results = vec![ty];
    for n in 0..operands {
        let v = f.new_value(ty, ValueDef::FuncParam(n));
        f.param_values.push(v);
    }
    let mut args = f.param_values.clone();
    let mut b = FunctionBuilder::new(f);
    if let Some(bits) = constant {
        args[1] = b.iconst(ty, bits);
    }
    let result = b.ins(op, &args, ty);
    b.terminate(Terminator::Return([result].into_iter().collect()));
    let mut m =
        Module { functions: vec![b.finish()], locations: vec![Default::default()], ..Module::default() };
    expand_division::run(&mut m);
    ir::validate(&m).expect("valid");
    for f in &m.functions {
        for &block in &f.layout {
            for &i in &f.block(block).insts {
                let op = f.inst(i).op;
                let left = matches!(
                    op,
                    Op::Div { .. } | Op::Rem { .. } | Op::FDiv { .. } | Op::FRcp { .. } | Op::FSqrt { .. }
                );
                assert!(!left, "{op:?} is left in {}", f.name);
            }
        }
    }
    m
}

fn run(m: &Module, args: &[u64]) -> Run {
    interpret(m, FuncId::new(0), args)
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Integers of all sizes, near powers of two and near the ends.
fn integer(state: &mut u64, bits: u32) -> u64 {
    let r = splitmix(state);
    let wide = splitmix(state) >> (r % u64::from(bits)) as u32;
    let value = match r >> 32 & 7 {
        0 => (1u64 << (r >> 8 & 63)).wrapping_add(r >> 16 & 3).wrapping_sub(1),
        1 => (r >> 8 & 7).wrapping_sub(3),
        2 => (1u64 << (bits - 1)).wrapping_add(r >> 8 & 3).wrapping_sub(1),
        _ => wide,
    };
    value & (u64::MAX >> (64 - bits))
}

/// Floats: any bits, ends of the range, numbers near one, few significant bits.
fn float(state: &mut u64, f64s: bool) -> u64 {
    let (bits, fraction) = if f64s { (64, 52) } else { (32, 23) };
    let exponents = (1u64 << (bits - 1 - fraction)) - 1;
    let r = splitmix(state);
    let any = splitmix(state) >> (64 - bits);
    let with_exponent = |e: u64| any & !(exponents << fraction) | e << fraction;
    match r & 15 {
        0 => with_exponent(0),
        1 => with_exponent(exponents),
        2 => with_exponent((r >> 8) % 4),
        3 => with_exponent(exponents - (r >> 8) % 5),
        4 => with_exponent((r >> 8) % 60),
        5 => with_exponent(exponents / 2 + (r >> 8) % 3),
        6 => any >> fraction << fraction,
        7 => any >> (fraction - 4) << (fraction - 4),
        8 => (any >> fraction << fraction).wrapping_add(1),
        9 => (any >> fraction << fraction).wrapping_sub(1) & (u64::MAX >> (64 - bits)),
        10 => any & (1 << (bits - 1)),
        11 => any & (1 << (bits - 1)) | exponents << fraction,
        12 => any & (1 << (bits - 1) | 0xf),
        _ => any,
    }
}

#[test]
fn integers_divide_exactly() {
    let mut state = 1;
    for signed in [false, true] {
        for remainder in [false, true] {
            let op = if remainder { Op::Rem { signed } } else { Op::Div { signed } };
            for (ty, bits) in [(Type::B16, 16), (Type::B32, 32), (Type::B64, 64)] {
                let m = expanded(op, ty, 2, None);
                for n in 0..12_000 {
                    let mut a = integer(&mut state, bits);
                    let b = integer(&mut state, bits);
                    if n % 3 == 0 {
                        // Next to a multiple of the divisor.
                        a = b.wrapping_mul(a % 1000).wrapping_add(a >> 8 & 1).wrapping_sub(1) & ty.mask();
                    }
                    let want = integer_result(op, bits, a, b);
                    let got = run(&m, &[a, b]).returned[0];
                    assert_eq!(got, want, "{op:?} {bits} bits: {a:#x}, {b:#x}");
                }
            }
        }
    }
}

fn integer_result(op: Op, bits: u32, a: u64, b: u64) -> u64 {
    if bits == 64 {
        return match op {
            Op::Div { signed: false } => w64::div_u(a, b),
            Op::Div { signed: true } => w64::div_s(a, b),
            Op::Rem { signed: false } => w64::rem_u(a, b),
            _ => w64::rem_s(a, b),
        };
    }
    let extend = |x: u64| {
        if bits == 16 && matches!(op, Op::Div { signed: true } | Op::Rem { signed: true }) {
            x as u16 as i16 as u32
        } else {
            x as u32
        }
    };
    let (x, y) = (extend(a), extend(b));
    let r = match op {
        Op::Div { signed: false } => w32::div_u(x, y),
        Op::Div { signed: true } => w32::div_s(x, y),
        Op::Rem { signed: false } => w32::rem_u(x, y),
        _ => w32::rem_s(x, y),
    };
    u64::from(r) & (u64::MAX >> (64 - bits))
}

#[test]
fn constant_divisors_divide_exactly() {
    let mut state = 2;
    let divisors = [
        0u32,
        1,
        2,
        3,
        5,
        7,
        10,
        16,
        100,
        641,
        1000,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_fff0,
        0xffff_fffe,
        u32::MAX,
    ];
    for signed in [false, true] {
        for op in [Op::Div { signed }, Op::Rem { signed }] {
            for d in divisors {
                let m = expanded(op, Type::B32, 2, Some(d.into()));
                for _ in 0..500 {
                    let a = integer(&mut state, 32);
                    let got = run(&m, &[a, 0]).returned[0];
                    assert_eq!(got, integer_result(op, 32, a, d.into()), "{op:?} {a:#x} by {d:#x}");
                }
            }
        }
    }
}

const ROUNDS: [(Round, arith::Round); 4] = [
    (Round::Rn, arith::Round::Rn),
    (Round::Rz, arith::Round::Rz),
    (Round::Rm, arith::Round::Rm),
    (Round::Rp, arith::Round::Rp),
];

#[test]
fn f32_is_exact() {
    let mut state = 3;
    let ty = Scalar::F32;
    for (round, exact) in ROUNDS {
        for ftz in [false, true] {
            let mode = Mode { round: exact, ftz, sat: false };
            let divide = expanded(Op::FDiv { ty, round, ftz }, Type::B32, 2, None);
            let reciprocal = expanded(Op::FRcp { ty, round, ftz }, Type::B32, 1, None);
            let root = expanded(Op::FSqrt { ty, round, ftz }, Type::B32, 1, None);
            for n in 0..20_000 {
                let a = float(&mut state, false);
                let mut b = float(&mut state, false);
                if n % 4 == 0 {
                    // A quotient at the edge of the denormals or of the range.
                    let edge = [0x0080_0000u32, 0x0000_0003, 0x7f7f_ffff, 0x0000_0001][n / 4 % 4];
                    b = fp32::div(a as u32, edge, Mode::RN).into();
                }
                let (x, y) = (a as u32, b as u32);
                let got = run(&divide, &[a, b]).returned[0] as u32;
                assert_eq!(got, fp32::div(x, y, mode), "div {round:?} ftz {ftz}: {x:#x}, {y:#x}");
                let got = run(&reciprocal, &[a]).returned[0] as u32;
                assert_eq!(got, fp32::rcp(x, mode), "rcp {round:?} ftz {ftz}: {x:#x}");
                let got = run(&root, &[a & !(1 << 31)]).returned[0] as u32;
                assert_eq!(got, fp32::sqrt(x & !(1 << 31), mode), "sqrt {round:?} ftz {ftz}: {x:#x}");
                let got = run(&root, &[a]).returned[0] as u32;
                assert_eq!(got, fp32::sqrt(x, mode), "sqrt {round:?} ftz {ftz}: {x:#x}");
            }
        }
    }
}

#[test]
fn f64_is_exact() {
    let mut state = 4;
    let ty = Scalar::F64;
    for (round, exact) in ROUNDS {
        let ftz = false;
        let divide = expanded(Op::FDiv { ty, round, ftz }, Type::B64, 2, None);
        let reciprocal = expanded(Op::FRcp { ty, round, ftz }, Type::B64, 1, None);
        let root = expanded(Op::FSqrt { ty, round, ftz }, Type::B64, 1, None);
        for n in 0..20_000 {
            let a = float(&mut state, true);
            let mut b = float(&mut state, true);
            if n % 4 == 0 {
                let edge = [1u64 << 52, 3, 0x7fef_ffff_ffff_ffff, 1][n / 4 % 4];
                b = fp64::div(a, edge, arith::Round::Rn);
            }
            let got = run(&divide, &[a, b]).returned[0];
            assert_eq!(got, fp64::div(a, b, exact), "div {round:?}: {a:#x}, {b:#x}");
            let got = run(&reciprocal, &[a]).returned[0];
            assert_eq!(got, fp64::rcp(a, exact), "rcp {round:?}: {a:#x}");
            for x in [a, a & !(1 << 63)] {
                let got = run(&root, &[x]).returned[0];
                assert_eq!(got, fp64::sqrt(x, exact), "sqrt {round:?}: {x:#x}");
            }
        }
    }
}

/// Squares and their neighbours, where a root is exact or as near to a tie as can be.
#[test]
fn roots_of_squares_are_exact() {
    let mut state = 5;
    for (round, exact) in ROUNDS {
        let single = expanded(Op::FSqrt { ty: Scalar::F32, round, ftz: false }, Type::B32, 1, None);
        let double = expanded(Op::FSqrt { ty: Scalar::F64, round, ftz: false }, Type::B64, 1, None);
        for _ in 0..5_000 {
            let r = splitmix(&mut state);
            let x = ((r & 0xfff) as f32 * (r & 0xfff) as f32).to_bits();
            let y = ((r & 0x3ff_ffff) as f64 * (r & 0x3ff_ffff) as f64).to_bits();
            for n in [0u32, 1, u32::MAX] {
                let x = x.wrapping_add(n) & 0x7fff_ffff;
                let got = run(&single, &[x.into()]).returned[0] as u32;
                assert_eq!(got, fp32::sqrt(x, Mode::round(exact)), "{round:?} {x:#x}");
                let y = y.wrapping_add(n as i32 as u64) & !(1 << 63);
                assert_eq!(run(&double, &[y]).returned[0], fp64::sqrt(y, exact), "{round:?} {y:#x}");
            }
        }
    }
}

/// Ordinary operands do not leave the fast path.
#[test]
fn ordinary_operands_call_nothing() {
    let calls = |op, ty, args: &[u64]| run(&expanded(op, ty, args.len() as u32, None), args).calls;
    let (single, double) = (|x: f32| u64::from(x.to_bits()), |x: f64| x.to_bits());
    let (round, ftz) = (Round::Rn, false);
    let f32s = Scalar::F32;
    let f64s = Scalar::F64;
    assert_eq!(calls(Op::FDiv { ty: f32s, round, ftz }, Type::B32, &[single(1.0), single(-3.0)]), 0);
    assert_eq!(calls(Op::FRcp { ty: f32s, round, ftz }, Type::B32, &[single(7e30)]), 0);
    assert_eq!(calls(Op::FSqrt { ty: f32s, round, ftz }, Type::B32, &[single(2e-30)]), 0);
    assert_eq!(calls(Op::FDiv { ty: f64s, round, ftz }, Type::B64, &[double(1.0), double(-3e100)]), 0);
    assert_eq!(calls(Op::FRcp { ty: f64s, round, ftz }, Type::B64, &[double(7e-200)]), 0);
    assert_eq!(calls(Op::FSqrt { ty: f64s, round, ftz }, Type::B64, &[double(7e-200)]), 0);
    assert_eq!(calls(Op::Div { signed: true }, Type::B32, &[100, 7]), 0);
    // And others do.
    assert_eq!(calls(Op::FDiv { ty: f32s, round, ftz }, Type::B32, &[single(1.0), single(0.0)]), 1);
    assert_eq!(calls(Op::FDiv { ty: f64s, round, ftz }, Type::B64, &[double(1.0), 1]), 1);
    assert_eq!(calls(Op::Rem { signed: false }, Type::B64, &[100, 7]), 1);
}

/// Values that live across a split block, and several expansions in one block, one a divisor of the next.
#[test]
fn a_block_may_hold_several_divisions() {
    let mut f = Function::new("f", FunctionKind::Device);
    f.results = vec![Type::B32];
    for n in 0..2 {
        let v = f.new_value(Type::B32, ValueDef::FuncParam(n));
        f.param_values.push(v);
    }
    let (a, b) = (f.param_values[0], f.param_values[1]);
    let op = Op::FDiv { ty: Scalar::F32, round: Round::Rn, ftz: false };
    let mut builder = FunctionBuilder::new(f);
    let first = builder.ins(op, &[a, b], Type::B32);
    let second = builder.ins(op, &[first, first], Type::B32);
    let third = builder.ins(op, &[second, first], Type::B32);
    builder.terminate(Terminator::Return([third].into_iter().collect()));
    let mut m = Module {
        functions: vec![builder.finish()],
        locations: vec![Default::default()],
        ..Module::default()
    };
    expand_division::run(&mut m);
    ir::validate(&m).expect("valid");
    assert_eq!(m.functions.len(), 2, "one routine for all three");
    for (x, y) in [(6.0f32, 3.0f32), (1.0, 0.0), (f32::MIN_POSITIVE, 3.0), (1e30, 1e-30)] {
        let q = x / y;
        let want = if (1.0f32 * (q / q) / q).is_nan() { fp32::NAN } else { ((q / q) / q).to_bits() };
        let got = run(&m, &[x.to_bits().into(), y.to_bits().into()]).returned[0] as u32;
        assert_eq!(got, want, "{x} / {y}");
    }
}

/// The operation of a measured form's text, where it is one of these.
fn measured(text: &str) -> Option<(Op, Type, u32)> {
    let mnemonic = text.split_whitespace().next()?;
    let parts: Vec<&str> = mnemonic.split('.').collect();
    let (&name, &last) = (parts.first()?, parts.last()?);
    let round = [("rn", Round::Rn), ("rz", Round::Rz), ("rm", Round::Rm), ("rp", Round::Rp)]
        .into_iter()
        .find(|(n, _)| parts.contains(n))
        .map(|(_, r)| r);
    let ftz = parts.contains(&"ftz");
    let signed = last.starts_with('s');
    let ty = match last {
        "u16" | "s16" => Type::B16,
        "u32" | "s32" | "f32" => Type::B32,
        _ => Type::B64,
    };
    let scalar = if last == "f32" { Scalar::F32 } else { Scalar::F64 };
    Some(match (name, round, last.starts_with('f')) {
        ("div", None, false) => (Op::Div { signed }, ty, 2),
        ("rem", None, false) => (Op::Rem { signed }, ty, 2),
        ("div", Some(round), true) => (Op::FDiv { ty: scalar, round, ftz }, ty, 2),
        ("rcp", Some(round), true) => (Op::FRcp { ty: scalar, round, ftz }, ty, 1),
        ("sqrt", Some(round), true) => (Op::FSqrt { ty: scalar, round, ftz }, ty, 1),
        _ => return None,
    })
}

#[test]
fn measured_forms_stay_exact() {
    let mut checked = 0;
    for (json, data) in [
        (
            &include_bytes!("../../arith/tests/data/forms.json.zst")[..],
            &include_bytes!("../../arith/tests/data/forms.bin.zst")[..],
        ),
        (
            &include_bytes!("../../arith/tests/data/more.json.zst")[..],
            &include_bytes!("../../arith/tests/data/more.bin.zst")[..],
        ),
    ] {
        let (json, data) = (common::unpack(json), common::unpack(data));
        for form in common::forms(&json) {
            let Some((op, ty, operands)) = measured(&form.text) else { continue };
            checked += 1;
            let m = expanded(op, ty, operands, None);
            for i in 0..common::COUNT {
                let args: Vec<u64> = (form.operands.iter().enumerate())
                    .map(|(k, kind)| common::operand(kind, form.seed + k as u64, i))
                    .collect();
                let want = common::result(&data, &form, i) & ty.mask();
                assert_eq!(run(&m, &args).returned[0], want, "{} of {args:x?}", form.text);
            }
        }
    }
    assert!(checked >= 48, "{checked} forms");
}

/// What lives across a slow path stays in registers that the routine leaves alone.
#[test]
fn a_division_spills_nothing() {
    let body: String = (0..12).map(|n| format!("ld.global.f32 %f{n}, [%rd1+{}];\n", 4 * n)).collect();
    let sums: String = (0..12).map(|n| format!("add.f32 %f20, %f20, %f{n};\n")).collect();
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n\
         .reg .f32 %f<32>; .reg .b64 %rd<4>;\n\
         ld.param.u64 %rd1, [p];\n{body}\
         div.rn.f32 %f20, %f0, %f1;\n\
         sqrt.rn.f32 %f21, %f2;\n\
         add.f32 %f20, %f20, %f21;\n{sums}\
         st.global.f32 [%rd1+64], %f20;\n\
         ret;\n}}\n"
    );
    let module = ptx::to_ir("spills", text.as_bytes()).unwrap_or_else(|e| panic!("{e:?}"));
    let image = compiler::compile(module, &compiler::Options::default()).expect("compiles");
    let kernel = image.functions.iter().find(|f| f.is_entry).expect("a kernel");
    assert_eq!(kernel.local_bytes, 0);
    assert!(kernel.registers <= 40, "{} registers", kernel.registers);
}
