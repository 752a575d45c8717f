//! What the passes that bring code near NVIDIA's do to small programs, seen in the operations that are left and in what the
//! passes say about it.

#[path = "passes/random.rs"]
mod random;

use compiler::passes::{PassOptions, Remark, run_explained};
use ir::{Function, InstData, Op, ShflMode, Terminator};

/// A kernel with a pointer `o`, a limit `n`, the thread `t`, its place `e` in the buffer, and registers.
fn shaped(body: &str) -> (Function, Vec<Remark>) {
    let text = format!(
        ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u32 limit)\n{{\n\
         .local .align 8 .b8 frame[32];\n.shared .align 4 .b8 cell[64];\n\
         .reg .u64 o, e, d, f, l;\n.reg .u32 t, n, a, b, c, i;\n.reg .f32 x, y;\n.reg .pred p, q;\n\
         ld.param.u64 o, [out];\nld.param.u32 n, [limit];\nmov.u32 t, %tid.x;\nmul.wide.u32 d, t, 4;\n\
         add.u64 e, o, d;\nld.global.u32 a, [e];\n{body}\nexit;\n}}\n"
    );
    let mut module = ptx::to_ir("k", text.as_bytes()).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let remarks = run_explained(&mut module, &PassOptions::default());
    (module.functions.remove(0), remarks)
}

fn insts(f: &Function) -> impl Iterator<Item = &InstData> {
    f.layout.iter().flat_map(|&b| f.block(b).insts.iter().map(|&i| f.inst(i)))
}

fn count(f: &Function, is: impl Fn(&InstData) -> bool) -> usize {
    insts(f).filter(|i| is(i)).count()
}

fn branches(f: &Function) -> usize {
    f.layout.iter().filter(|&&b| matches!(f.block(b).term, Terminator::Branch { .. })).count()
}

fn said(remarks: &[Remark], pass: &str) -> bool {
    remarks.iter().any(|r| r.pass == pass && !r.message.is_empty() && r.function == "k")
}

fn is_store(i: &InstData) -> bool {
    matches!(i.op, Op::Store(_))
}

/// `length` operations in an arm.
fn arm(length: usize) -> String {
    (0..length).map(|k| format!("mad.lo.u32 a, a, t, {};\n", k + 17)).collect()
}

#[test]
fn an_arm_of_eight_instructions_is_predicated_and_one_of_nine_is_not() {
    for (length, left) in [(1, 0), (8, 0), (9, 1)] {
        let body = format!(
            "setp.lt.u32 p, a, n;\n@p bra skip;\n{}skip:\nst.global.u32 [e], a;\nst.global.u32 [e+4], t;",
            arm(length)
        );
        let (f, remarks) = shaped(&body);
        assert_eq!(branches(&f), left, "{length}\n{f}");
        assert_eq!(said(&remarks, "predicate_branches"), left == 0);
    }
}

#[test]
fn a_branch_that_keeps_lanes_together_is_cheaper() {
    for (length, left) in [(6, 0), (7, 1)] {
        let body = format!("setp.lt.u32 p, n, 5;\n@p bra skip;\n{}skip:\nst.global.u32 [e], a;", arm(length));
        assert_eq!(branches(&shaped(&body).0), left, "{length}");
    }
}

#[test]
fn stores_of_an_arm_get_its_guard_and_loads_keep_the_other_value() {
    let (f, _) = shaped(
        "setp.lt.u32 p, a, n;\n@p bra skip;\nld.global.u32 a, [e+64];\nst.global.u32 [e+8], t;\nskip:\nst.global.u32 [e], a;",
    );
    assert_eq!(branches(&f), 0);
    assert_eq!(count(&f, |i| is_store(i) && i.guard.is_some()), 1, "{f}");
    assert_eq!(count(&f, |i| i.op == Op::Select), 0, "{f}");
}

#[test]
fn atomics_and_arms_before_the_end_keep_their_branch() {
    let (f, _) = shaped(
        "setp.lt.u32 p, a, n;\n@p bra skip;\nred.global.add.u32 [e], a;\nskip:\nst.global.u32 [e], a;",
    );
    assert_eq!(branches(&f), 1, "{f}");
    let (f, _) = shaped("setp.lt.u32 p, a, n;\n@p bra skip;\nst.global.u32 [e], t;\nskip:\n");
    assert_eq!((branches(&f), count(&f, |i| i.guard.is_some())), (1, 0), "{f}");
    // A guarded atomic is a branch too.
    let (f, _) = shaped("setp.lt.u32 p, a, n;\n@p red.global.add.u32 [e], a;\nst.global.u32 [e], a;");
    assert_eq!(branches(&f), 1, "{f}");
}

#[test]
fn lanes_that_add_to_one_place_send_one_of_them() {
    let is_red = |i: &InstData| matches!(i.op, Op::Red(_));
    let masks = |f: &Function| count(f, |i| i.op == Op::ActiveMask);
    let (f, remarks) = shaped("red.global.add.u32 [o+8], 1;\nred.global.add.u32 [o+16], 3;");
    assert_eq!((masks(&f), count(&f, |i| is_red(i) && i.guard.is_some())), (1, 2), "{f}");
    assert!(said(&remarks, "aggregate_atomics"));
    let (f, _) = shaped("red.global.max.s32 [o+8], a;");
    assert_eq!(count(&f, |i| matches!(i.op, Op::Redux(_))), 1, "{f}");
    let (f, _) = shaped("atom.global.add.u32 b, [o+8], 1;\nst.global.u32 [e], b;");
    assert_eq!(count(&f, |i| i.op == Op::Shfl(ShflMode::Idx)), 1, "{f}");
    // What a whole warp voted for is the same for its lanes, what some of them did is not: those add up step by step.
    for (members, steps) in [("-1", 0), ("255", 6)] {
        let (f, _) = shaped(&format!(
            "setp.lt.u32 p, a, n;\nvote.sync.ballot.b32 b, p, {members};\npopc.b32 b, b;\natom.global.add.u32 c, [o+8], b;\n\
             st.global.u32 [e], c;"
        ));
        assert_eq!(count(&f, |i| i.op == Op::Shfl(ShflMode::Up)), steps, "{f}");
        assert_eq!(count(&f, |i| i.op == Op::Shfl(ShflMode::Idx)), 1, "{f}");
    }
    // Not where places differ, nor floats, nor what is not a sum.
    for body in
        ["red.global.add.u32 [e], 1;", "red.global.add.f32 [o], 0f3f800000;", "red.global.inc.u32 [o], 7;"]
    {
        assert_eq!(masks(&shaped(body).0), 0, "{body}");
    }
}

#[test]
fn constants_inside_addresses_become_offsets() {
    let body = "add.u64 f, o, 64;\nadd.u64 f, f, d;\nst.global.u32 [f], t;\nadd.u64 f, o, 96;\nadd.u64 f, f, d;\n\
                st.global.u32 [f+4], t;";
    let (f, remarks) = shaped(body);
    // The address of the load above is the base of all.
    assert_eq!(count(&f, |i| i.op == Op::Add && i.args.iter().all(|&v| f.const_of(v).is_none())), 1, "{f}");
    assert!(said(&remarks, "fold_offsets"));
}

#[test]
fn what_a_loop_need_not_repeat_stands_before_it() {
    let body = "mov.u32 i, 0;\nagain:\nxor.b32 b, a, t;\npopc.b32 b, b;\nst.shared.u32 [cell], b;\nld.volatile.shared.u32 c, [cell];\n\
                add.u32 i, i, c;\nsetp.lt.u32 p, i, n;\n@p bra again;";
    let (f, remarks) = shaped(body);
    assert!(said(&remarks, "hoist_invariants"));
    let is_in_loop = |is: fn(&Op) -> bool| {
        f.layout
            .iter()
            .any(|&b| f.successors(b).contains(&b) && f.block(b).insts.iter().any(|&i| is(&f.inst(i).op)))
    };
    assert!(is_in_loop(is_store_op) && !is_in_loop(|op| *op == Op::Popc), "{f}");
}

fn is_store_op(op: &Op) -> bool {
    matches!(op, Op::Store(_))
}

#[test]
fn frame_words_at_constant_places_are_values_and_others_stay() {
    let body = "mov.u64 l, frame;\nst.local.u32 [l], a;\nst.local.u64 [l+8], d;\nst.local.u8 [l+16], t;\nst.local.u32 [l+16], t;\n\
                ld.local.u32 b, [l];\nld.local.u32 c, [l+12];\nst.global.v2.u32 [e], {b, c};";
    let (f, remarks) = shaped(body);
    assert_eq!(count(&f, is_store), 3, "two of the frame and one of the result\n{f}");
    assert!(said(&remarks, "promote_slots"));
    // An address that leaves the function keeps the variable.
    let (f, _) = shaped(
        "mov.u64 l, frame;\nst.local.u32 [l], a;\nst.global.u64 [e], l;\nld.local.u32 b, [l];\nst.global.u32 [e+8], b;",
    );
    assert_eq!(count(&f, is_store), 3, "{f}");
}

#[test]
fn known_bits_make_operations_simpler() {
    let (f, remarks) =
        shaped("and.b32 b, a, 15;\nshl.b32 b, b, 4;\nand.b32 b, b, 0xff;\nst.global.u32 [e], b;");
    assert_eq!(count(&f, |i| i.op == Op::And), 1, "{f}");
    assert!(said(&remarks, "simplify_bits"));
    let (f, _) = shaped("and.b32 b, a, 15;\ncvt.s64.s32 f, b;\nst.global.u64 [e], f;");
    assert_eq!(count(&f, |i| i.op == Op::SignExt), 0, "{f}");
    let (f, _) = shaped("and.b32 b, a, 15;\nsetp.gt.u32 p, b, 15;\n@p st.global.u32 [e], b;");
    assert_eq!(count(&f, |i| matches!(i.op, Op::ICmp { .. })), 0, "{f}");
    // A mask of 32 bits leaves nothing to do in the upper word.
    let (f, _) =
        shaped("ld.global.u64 f, [e];\nand.b64 f, f, 0x3fffc;\nadd.u64 f, f, o;\nst.global.u32 [f], a;");
    assert_eq!(count(&f, |i| i.op == Op::And && f.ty(i.results[0]) == ir::Type::B64), 0, "{f}");
    let (f, _) = shaped("mul.lo.u32 b, a, 10;\nsub.u32 b, t, b;\nst.global.u32 [e], b;");
    assert_eq!(count(&f, |i| i.op == Op::Sub), 0, "{f}");
}

/// A loop of `loads` loads from shared memory, `adds` float operations, and what else stands in it.
fn shared_loop(loads: usize, adds: usize, more: &str) -> (Function, Vec<Remark>) {
    let loads: String =
        (0..loads).map(|k| format!("ld.shared.f32 y, [b+{}];\nfma.rn.f32 x, y, y, x;\n", 4 * k)).collect();
    let adds = "fma.rn.f32 x, x, x, x;\n".repeat(adds);
    shaped(&format!(
        "mov.u32 b, cell;\nmov.u32 i, 0;\nmov.f32 x, 0f00000000;\nsetp.lt.s32 p, n, 1;\n@p bra $end;\n$loop:\n\
         {loads}{adds}{more}add.u32 b, b, 4;\nadd.u32 i, i, 1;\nsetp.lt.s32 p, i, n;\n@p bra $loop;\n$end:\n\
         st.global.f32 [e], x;"
    ))
}

#[test]
fn loads_from_shared_memory_allow_longer_bodies_to_unroll() {
    let unrolls = |loads, adds, more| said(&shared_loop(loads, adds, more).1, "unroll");
    for (loads, longest) in [(1, 26), (2, 30), (4, 38)] {
        let others = 2 * loads + 4;
        assert!(unrolls(loads, longest - others, ""), "{loads} loads");
        assert!(!unrolls(loads, longest - others + 1, ""), "{loads} loads");
    }
    // The scaling around a root counts, where there is any.
    let root = "rsqrt.approx.f32 x, x;\n";
    assert!(unrolls(1, 14, root) && !unrolls(1, 15, root));
    assert!(unrolls(1, 19, "rsqrt.approx.ftz.f32 x, x;\n"));
    let store = "st.shared.f32 [b+32], x;\n";
    assert!(unrolls(1, 18, store) && !unrolls(1, 19, store));
}

#[test]
fn stores_end_what_is_known_of_memory_but_not_of_what_is_read_only() {
    let loads = |kind: &str| {
        let (f, _) = shaped(&format!(
            "ld.global{kind}.u32 b, [e+4];\nst.global.u32 [o], b;\nld.global{kind}.u32 c, [e+4];\nst.global.u32 [o+4], c;"
        ));
        count(&f, |i| matches!(i.op, Op::Load(a) if a.offset == 4))
    };
    assert_eq!((loads(""), loads(".nc")), (2, 1));
}

/// A loop with `exits` ways out to three places, with values that are stored and loaded again: several registers of the
/// program are then one value.
fn exits(exits: usize) -> String {
    const REGISTERS: usize = 32;
    let mut random = random::Random::new(7);
    let mut body = String::new();
    for n in 0..exits {
        for _ in 0..2 {
            let (a, b, c) = (random.below(REGISTERS), random.below(REGISTERS), random.below(REGISTERS));
            let at = 4 * random.below(32);
            body += &match random.below(4) {
                0 => format!("st.global.u32 [o+{at}], r{a};\n"),
                1 => format!("ld.global.u32 r{a}, [o+{at}];\n"),
                _ => format!("mad.lo.u32 r{a}, r{b}, r{c}, {n};\n"),
            };
        }
        body += &format!("setp.eq.u32 p, t, {n};\n@p bra {};\n", random.pick(&["NEXT", "DONE", "AFTER"]));
    }
    let first: String = (0..REGISTERS).map(|k| format!("add.u32 r{k}, t, {k};\n")).collect();
    let last: String =
        (0..REGISTERS).map(|k| format!("st.global.u32 [o+{}], r{k};\n", 256 + 4 * k)).collect();
    format!(
        ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u32 limit)\n{{\n\
         .reg .u64 o;\n.reg .u32 t, n, i, r<{REGISTERS}>;\n.reg .pred p;\nld.param.u64 o, [out];\nld.param.u32 n, [limit];\n\
         mov.u32 t, %tid.x;\nmov.u32 i, 0;\n{first}LOOP:\n{body}NEXT:\nadd.u32 i, i, 1;\nsetp.lt.u32 p, i, n;\n\
         @p bra LOOP;\nDONE:\nadd.u32 r0, r0, 1;\nAFTER:\n{last}exit;\n}}\n"
    )
}

#[test]
fn copies_at_an_exit_do_not_become_more_with_the_number_of_exits() {
    let copies = |count: usize| {
        let module = ptx::to_ir("k", exits(count).as_bytes()).unwrap_or_else(|e| panic!("{e:?}"));
        let image =
            compiler::compile(module, &compiler::Options::default()).unwrap_or_else(|e| panic!("{e}"));
        image.code.iter().filter(|i| i.op == isa::Op::Mov).count() as f64 / count as f64
    };
    let (few, many) = (copies(500), copies(2000));
    assert!(many < 1.25 * few, "{few} copies at each of 500 exits, {many} at each of 2000");
}
