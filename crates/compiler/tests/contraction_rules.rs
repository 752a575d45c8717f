//! The measured rules around contraction that the probes do not show one by one: how far loops are unrolled, running sums
//! for float induction variables, additions that leave loops, and the code of the approximate functions.

use compiler::passes::{OptLevel, PassOptions, run};
use ir::{Float, Function, Op, Scalar};
use std::collections::BTreeMap;

/// A kernel with inputs a..i (f32), n (u32) and outputs at `%out`.
fn kernel(body: &str) -> String {
    let mut text = String::from(
        ".version 9.0\n.target sm_90\n.address_size 64\n\
         .visible .entry probe(.param .u64 in, .param .u64 out, .param .u32 count)\n{\n\
         .reg .f32 %f<99>, %a, %b, %c, %d, %e, %g, %h, %i;\n.reg .pred %p<9>;\n.reg .b32 %r<9>, %n;\n\
         .reg .b64 %in, %out, %q<9>;\n.reg .f64 %w<9>;\n.reg .b16 %s<9>;\n\
         ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\nld.param.u32 %n, [count];\n",
    );
    for (k, name) in "abcdeghi".chars().enumerate() {
        text += &format!("ld.global.f32 %{name}, [%in+{}];\n", 4 * k);
    }
    text + body + "\nret;\n}\n"
}

fn compile(body: &str, options: PassOptions) -> Function {
    let text = kernel(body);
    let mut module = ptx::to_ir("rule", text.as_bytes()).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    run(&mut module, &options);
    module.functions.remove(0)
}

fn ops(f: &Function) -> Vec<Op> {
    f.layout.iter().flat_map(|&b| f.block(b).insts.iter().map(|&i| f.inst(i).op)).collect()
}

/// Floating-point operations by name, in alphabetical order: `FADD:2 FFMA:1`.
fn floats(body: &str) -> String {
    let f = compile(body, PassOptions::default());
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let name = |m: &Float, kind: &str| {
        let base = if m.ty == Scalar::F64 { "D" } else { "F" };
        let round = if m.round == ir::Round::Rz { ".RZ" } else { "" };
        let sat = if m.sat { ".SAT" } else { "" };
        format!("{base}{kind}{}{round}{sat}", if m.ftz { ".FTZ" } else { "" })
    };
    for op in ops(&f) {
        let name = match op {
            Op::FAdd(m) | Op::FSub(m) => name(&m, "ADD"),
            Op::FMul(m) => name(&m, "MUL"),
            Op::FFma(m) => name(&m, "FMA"),
            Op::Mufu(f) => format!("MUFU.{f:?}"),
            Op::FMulScaled { .. } => "FMUL.M".into(),
            _ => continue,
        };
        *counts.entry(name).or_default() += 1;
    }
    counts.iter().map(|(k, n)| format!("{k}:{n}")).collect::<Vec<_>>().join(" ")
}

/// A loop of `size` instructions, counter and branch included, that runs while %r1 is below `limit`.
fn counted(size: usize, limit: &str) -> String {
    let mut text = "mov.u32 %r1, 0;\nmov.f32 %f1, %a;\nLOOP:\n".to_string();
    for _ in 3..size {
        text += "fma.rn.f32 %f1, %f1, %b, %c;\n";
    }
    text + &format!(
        "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, {limit};\n@%p1 bra LOOP;\nst.global.f32 [%out], %f1;"
    )
}

fn copies(size: usize, limit: &str) -> usize {
    let f = compile(&counted(size, limit), PassOptions::default());
    ops(&f).iter().filter(|op| matches!(op, Op::FFma(_))).count() / (size - 3)
}

#[test]
fn known_iterations_unroll_as_measured() {
    for (iterations, size) in [(256, 6), (128, 12), (32, 24), (10, 44)] {
        assert_eq!(copies(size, &iterations.to_string()), iterations, "{iterations} x {size}");
    }
    // In groups, and one over where it does not divide.
    for (iterations, size, group) in [(1000, 6, 111), (256, 12, 32), (64, 24, 16), (16, 44, 8)] {
        assert_eq!(
            copies(size, &iterations.to_string()),
            group + iterations % group,
            "{iterations} x {size}"
        );
    }
}

#[test]
fn unknown_iterations_unroll_by_four_two_one_up_to_a_size() {
    // One more for a first iteration that a count of zero runs.
    assert_eq!(copies(21, "%n"), 8);
    assert_eq!(copies(22, "%n"), 1);
    let f = compile(&counted(6, "%n"), PassOptions { opt_level: OptLevel::O1, ..PassOptions::default() });
    assert_eq!(ops(&f).iter().filter(|op| matches!(op, Op::FFma(_))).count(), 3);
    // With the test at the end or at the top, a mark says no.
    let at_end = counted(6, "%n");
    let at_top = "mov.u32 %r1, 0;\nmov.f32 %f1, %a;\nLOOP:\nsetp.ge.u32 %p1, %r1, %n;\n@%p1 bra DONE;\n\
                  fma.rn.f32 %f1, %f1, %b, %c;\nadd.u32 %r1, %r1, 1;\nbra LOOP;\nDONE:\nst.global.f32 [%out], %f1;";
    assert_eq!(floats(at_top), "FFMA:7");
    for (text, expected) in [(at_end.as_str(), "FFMA:3"), (at_top, "FFMA:1")] {
        let marked = text.replace("LOOP:\n", "LOOP:\n.pragma \"nounroll\";\n");
        assert_eq!(floats(&marked), expected, "{marked}");
    }
}

/// x = x + s; y = x*a + e; kept in a loop too long to unroll, or of four iterations.
fn induction(step: &str, product: &str, add: &str, addend: &str, long: bool) -> String {
    let filler = if long { "ex2.approx.ftz.f32 %f8, %f8;\n".repeat(25) } else { String::new() };
    let limit = if long { "%n" } else { "4" };
    format!(
        "mov.u32 %r1, 0;\nmov.f32 %f9, %c;\nmov.f32 %f8, %d;\nLOOP:\n\
         {product}\n{add} %f7, %f7, {addend};\nmax.f32 %f8, %f8, %f7;\nadd.f32 %f9, %f9, {step};\n{filler}\
         add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, {limit};\n@%p1 bra LOOP;\nst.global.f32 [%out], %f8;"
    )
}

#[test]
fn float_induction_variables_become_running_sums() {
    let product = "mul.f32 %f7, %f9, %a;";
    // x is dead once y runs by itself.
    let cases = [
        ("%b", product, "add.f32", "%e", "FADD:1 FFMA:1 FMUL:1 MUFU.Ex2:25"),
        ("0f40400000", product, "add.f32", "%e", "FFMA:2 MUFU.Ex2:25"),
        ("0f40400000", "mul.f32 %f7, %f9, 0f40A00000;", "add.f32", "%e", "FADD:1 FFMA:1 MUFU.Ex2:25"),
        ("%b", product, "add.rn.f32", "%e", "FADD:2 FMUL:1 MUFU.Ex2:25"),
        ("%b", "mul.rn.f32 %f7, %f9, %a;", "add.f32", "%e", "FADD:2 FMUL:1 MUFU.Ex2:25"),
    ];
    for (step, product, add, addend, expected) in cases {
        assert_eq!(floats(&induction(step, product, add, addend, true)), expected, "{step} {product} {add}");
    }
    // In a row of copies the step is fused.
    assert_eq!(floats(&induction("%b", product, "add.f32", "%e", false)), "FFMA:4");
}

#[test]
fn a_fixed_addition_leaves_a_loop_that_is_not_unrolled() {
    let body = |before: &str, add: &str, size: usize| {
        let filler = "fma.rn.f32 %f9, %f9, %a, %b;\n".repeat(size);
        format!(
            "mov.u32 %r1, 0;\nmov.f32 %f9, %c;\n{before}\nLOOP:\n{add}\nmul.rn.f32 %f9, %f9, %f2;\n{filler}\
             add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, %n;\n@%p1 bra LOOP;\nst.global.f32 [%out], %f9;"
        )
    };
    let one = "mul.f32 %f1, %a, %b;";
    assert_eq!(floats(&body(one, "add.f32 %f2, %f1, %e;", 20)), "FFMA:21 FMUL:1");
    // A second use keeps the product.
    let two_uses = "mul.f32 %f1, %a, %b;\nst.global.f32 [%out+8], %f1;";
    assert_eq!(floats(&body(two_uses, "add.f32 %f2, %f1, %e;", 20)), "FADD:1 FFMA:20 FMUL:2");
    // An unrolled loop keeps the addition, once a group of copies.
    assert_eq!(floats(&body(one, "add.f32 %f2, %f1, %e;", 1)), "FADD:4 FFMA:8 FMUL:9");
}

#[test]
fn of_two_products_outside_a_loop_the_first_fuses() {
    let text = "mov.u32 %r1, 0;\nmov.f32 %f9, %c;\nmul.f32 %f1, %a, %b;\nmul.f32 %f3, %d, %e;\nLOOP:\n\
                add.f32 %f2, %f3, %f1;\nmul.rn.f32 %f9, %f9, %f2;\n"
        .to_string()
        + &"fma.rn.f32 %f9, %f9, %a, %b;\n".repeat(20)
        + "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, %n;\n@%p1 bra LOOP;\nst.global.f32 [%out], %f9;";
    let f = compile(&text, PassOptions::default());
    let kept = f.layout.iter().flat_map(|&b| &f.block(b).insts).find_map(|&i| match f.inst(i).op {
        Op::FMul(_)
            if f.inst(i).args.iter().all(|&v| f.def_op(v).is_some_and(|d| matches!(d.op, Op::Load(_)))) =>
        {
            f.def_op(f.inst(i).args[0]).map(|d| d.op)
        }
        _ => None,
    });
    assert!(matches!(kept, Some(Op::Load(a)) if a.offset == 12), "d * e is the addend, not {kept:?}\n{f}");
}

#[test]
fn approximate_functions_are_the_measured_sequences() {
    let f32_cases = [
        ("div.approx.ftz.f32 %f1, %a, %b;", "FMUL.FTZ:1 MUFU.Rcp:1"),
        ("div.approx.f32 %f1, %a, %b;", "FMUL:3 MUFU.Rcp:1"),
        ("div.full.ftz.f32 %f1, %a, %b;", "FMUL.FTZ:3 MUFU.Rcp:1"),
        ("div.full.f32 %f1, %a, %b;", "FMUL:5 MUFU.Rcp:1"),
        ("rcp.approx.f32 %f1, %a;", "FMUL:2 MUFU.Rcp:1"),
        ("rcp.approx.ftz.f32 %f1, %a;", "MUFU.Rcp:1"),
        ("sqrt.approx.f32 %f1, %a;", "FMUL:2 MUFU.Sqrt:1"),
        ("rsqrt.approx.f32 %f1, %a;", "FMUL:2 MUFU.Rsq:1"),
        ("ex2.approx.f32 %f1, %a;", "FMUL:2 MUFU.Ex2:1"),
        ("lg2.approx.f32 %f1, %a;", "FADD:1 FMUL:1 MUFU.Lg2:1"),
        ("sin.approx.f32 %f1, %a;", "FMUL.RZ:1 MUFU.Sin:1"),
        ("tanh.approx.f32 %f1, %a;", "MUFU.Tanh:1"),
        ("div.approx.f32 %f1, %a, 0f40400000;", "FMUL:1"),
        ("div.full.f32 %f1, %a, 0f7F000000;", "FMUL:2"),
        ("div.approx.f32 %f1, %a, 0f00000100;", "FMUL:2"),
        ("sqrt.approx.f32 %f1, 0f40400000;", ""),
    ];
    for (text, expected) in f32_cases {
        assert_eq!(floats(&format!("{text}\nst.global.f32 [%out], %f1;")), expected, "{text}");
    }
    let f64_cases = [
        ("rcp.approx.ftz.f64 %w2, %w1;", "MUFU.Rcp64h:1"),
        ("rsqrt.approx.f64 %w2, %w1;", "DADD:1 DFMA:3 DMUL:4 MUFU.Rsq64h:1"),
    ];
    for (text, expected) in f64_cases {
        let body = format!("ld.global.f64 %w1, [%in];\n{text}\nst.global.f64 [%out], %w2;");
        assert_eq!(floats(&body), expected, "{text}");
    }
    let half = "cvt.rn.f16.f32 %s1, %a;\nmov.b32 %r1, {%s1, %s1};\nex2.approx.f16x2 %r2, %r1;\nst.global.b32 [%out], %r2;";
    assert_eq!(floats(half), "MUFU.Ex2F16:1", "equal halves are computed once");
}

#[test]
fn a_product_by_one_goes_only_if_it_is_plain() {
    let by_one = |op: &str| floats(&format!("{op} %f1, %a, 0f3F800000;\nst.global.f32 [%out], %f1;"));
    assert_eq!(by_one("mul.f32"), "");
    assert_eq!(by_one("mul.ftz.f32"), "FADD.FTZ:1");
    assert_eq!(by_one("mul.rn.f32"), "FMUL:1");
}

#[test]
fn signs_constants_and_copies_are_seen_through_as_measured() {
    let cases = [
        // The magnitude of a square is a square, unless a sign stands before it.
        ("mul.f32 %f1, %a, %a; abs.f32 %f2, %f1; add.f32 %f3, %f2, %c;", "FFMA:1"),
        ("mul.f32 %f1, %a, %a; abs.f32 %f2, %f1; sub.f32 %f3, %c, %f2;", "FADD:1 FMUL:1"),
        ("neg.f32 %f4, %a; mul.f32 %f1, %a, %f4; abs.f32 %f2, %f1; add.f32 %f3, %f2, %c;", "FADD:1 FMUL:1"),
        ("mul.f32 %f1, %a, %b; abs.f32 %f2, %f1; sub.f32 %f3, %c, %f2;", "FADD:1 FMUL:1"),
        ("mul.f32 %f1, %a, %b; neg.f32 %f2, %f1; sub.f32 %f3, %f2, %c;", "FFMA:1"),
        ("abs.f32 %f4, %a; mul.f32 %f1, %f4, %b; neg.f32 %f5, %c; add.f32 %f3, %f1, %f5;", "FFMA:1"),
        ("mul.f32 %f1, %a, %b; sub.f32 %f3, %f1, %f1;", "FADD:1 FMUL:1"),
        ("mul.f32 %f1, %a, %b; neg.f32 %f2, %f1; add.f32 %f3, %f1, %f2;", "FADD:1 FMUL:1"),
        // Two products of the same factors are one, twice.
        ("mul.f32 %f1, %a, %b; mul.f32 %f2, %b, %a; add.f32 %f3, %f1, %f2;", "FADD:1 FMUL:1"),
        (
            "mul.f32 %f1, %a, %b; mul.f32 %f2, %a, %b; neg.f32 %f4, %f2; sub.f32 %f3, %f1, %f4;",
            "FADD:1 FMUL:1",
        ),
        ("mul.f32 %f1, %a, %b; mul.f32 %f2, %a, %b; sub.f32 %f3, %f1, %f2;", "FFMA:1 FMUL:1"),
        // Factors that are constants.
        ("mul.f32 %f1, %a, 0f40000000; add.f32 %f3, %f1, %c;", "FFMA:1"),
        ("mul.f32 %f1, %a, 0f00000000; add.f32 %f3, %f1, %c;", "FFMA:1"),
        ("mul.f32 %f1, %a, 0fBF800000; add.f32 %f3, %f1, %c;", "FADD:1"),
        ("mul.f32 %f1, 0f40400000, 0f40400000; add.f32 %f3, %f1, %c;", "FADD:1"),
        ("add.f32 %f3, %a, 0f00000000;", "FADD:1"),
        ("sub.f32 %f3, %a, %a;", "FADD:1"),
        // Copies, and what is none.
        ("mul.f32 %f1, %a, %b; mov.b32 %r1, %f1; mov.b32 %f2, %r1; add.f32 %f3, %f2, %c;", "FFMA:1"),
        ("mul.f32 %f1, %a, %b; cvt.f32.f32 %f2, %f1; add.f32 %f3, %f2, %c;", "FFMA:1"),
        (
            "setp.gt.u32 %p1, %n, 5; mul.f32 %f1, %a, %b; selp.f32 %f2, %f1, %f1, %p1; add.f32 %f3, %f2, %c;",
            "FFMA:1",
        ),
        ("mul.f32 %f1, %a, %b; max.f32 %f2, %f1, %f1; add.f32 %f3, %f2, %c;", "FFMA:1"),
        ("mul.f32 %f1, %a, %b; copysign.f32 %f2, %c, %f1; add.f32 %f3, %f2, %c;", "FADD:1 FMUL:1"),
        // Saturation by comparison.
        (
            "mul.f32 %f1, %a, %b; add.f32 %f2, %f1, %c; max.f32 %f4, %f2, 0f00000000; min.f32 %f3, %f4, 0f3F800000;",
            "FFMA.SAT:1",
        ),
        // Chains keep their order.
        ("add.f32 %f1, %a, 0f3F800000; add.f32 %f3, %f1, 0f40000000;", "FADD:2"),
        ("mul.f32 %f1, %a, 0f40400000; mul.f32 %f3, %f1, 0f40400000;", "FMUL:2"),
    ];
    for (text, expected) in cases {
        let text = text.replace("; ", ";\n");
        assert_eq!(floats(&format!("{text}\nst.global.f32 [%out], %f3;")), expected, "{text}");
    }
}
