//! All levels compute the same: random arithmetic on random rows, against the narrowest level.

mod common;

use isa::field::Field;
use isa::{Inst, Op, Operand, Pred, PredUse, Reg, Role, Src, Unit};
use proptest::prelude::*;
use simt::*;
use std::sync::Arc;

/// Operations on registers and predicates only.
fn operations() -> Vec<Op> {
    isa::table::TABLE
        .iter()
        .filter(|r| matches!(r.unit, Unit::Alu | Unit::Fma | Unit::Imad | Unit::Half | Unit::Fp64 | Unit::Xu))
        .filter(|r| r.roles.iter().any(|role| !matches!(role, Role::Target | Role::Addr)))
        .filter(|r| !matches!(r.op, Op::Qspc))
        .map(|r| r.op)
        .collect()
}

/// Words with the values that matter among them.
fn word() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        prop::sample::select(vec![
            0u32,
            1,
            0x8000_0000,
            0xffff_ffff,
            0x7fff_ffff,
            0x3f80_0000,
            0xbf80_0000,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            0x0000_0001,
            0x807f_ffff,
            0x0080_0000,
            0x7ff0_0000,
            0x3ff0_0000,
            0x3c00_7c00,
            0x7e00_0001,
            31,
            32,
            33,
            64,
        ]),
        (0u32..256).prop_map(|x| (x as f32 / 8.0 - 16.0).to_bits()),
    ]
}

#[derive(Clone, Debug)]
struct Draw {
    op: Op,
    mods: u32,
    flags: u32,
    wide: u32,
    slot: usize,
    guard: u8,
}

/// An instruction that the encoder accepts, from random bits; fields whose value has no name are reduced.
fn build(d: &Draw) -> Option<Inst> {
    let mut i = Inst::new(d.op);
    let mut bits = d.mods;
    for &f in d.op.row().fields {
        let info = f.info();
        let count = if info.names.is_empty() { 1 << info.bits } else { info.names.len() as u32 };
        i.set_field(f, bits % count);
        bits = bits.rotate_right(7) ^ 0x9e37_79b9;
    }
    if matches!(d.op, Op::Vote | Op::Match | Op::Match64 | Op::Redux | Op::Elect) {
        i.set_field(Field::All, 1);
    }
    if d.op == Op::I2ip {
        // Packs bytes and half-words only.
        i.set_field(Field::To, d.mods % 4);
    }
    // Destinations apart from sources, as pairs and quads want them.
    i.dst = Reg(40);
    for (n, s) in i.src.iter_mut().enumerate() {
        *s = Src::reg(Reg(4 + 4 * n as u8));
        s.neg = d.flags >> (2 * n) & 1 != 0;
        s.abs = d.flags >> (2 * n + 1) & 3 == 3;
    }
    i.e = Reg(20);
    if d.flags >> 8 & 3 == 0 {
        i.src[d.slot].operand = Operand::Imm(d.wide);
    }
    if d.op == Op::Video {
        i.src[1].operand = Operand::Imm(d.wide);
    }
    i.pd = [Pred(2), Pred(3)];
    i.ps = [PredUse { pred: Pred(0), neg: d.flags >> 10 & 1 != 0 }, PredUse::new(Pred(1)), PredUse::TRUE];
    i.guard = [PredUse::TRUE, PredUse::new(Pred(1)), PredUse { pred: Pred(0), neg: true }][d.guard as usize];
    let i = i.canonical();
    i.encode().ok().map(|_| i)
}

/// Loads registers 4 to 23 and predicates from memory, runs the instructions, and stores what they left.
fn program(list: &[Inst]) -> isa::Image {
    let mut lines: Vec<String> =
        ["S2R R0, SR_LANEID", "MOV R60, c[0x0][0x210]", "MOV R61, c[0x0][0x214]"].map(String::from).to_vec();
    lines.push("IMAD.WIDE.U32 R2, R0, 0x4, R60".into());
    for r in 4..24 {
        lines.push(format!("LDG.E R{r}, [R2.64+{:#x}]", 128 * (r - 4)));
    }
    lines.push("ISETP.LT.S32.AND P0, PT, R4, RZ, PT, PT".into());
    lines.push("ISETP.NE.U32.AND P1, PT, R8, R12, PT, PT".into());
    for (n, i) in list.iter().enumerate() {
        for r in 40..44 {
            lines.push(format!("MOV R{r}, 0xabcd"));
        }
        lines.push(i.to_string());
        lines.push("SEL R44, 0x1, RZ, P2".into());
        lines.push("@P3 IADD3 R44, PT, R44, 0x2, RZ, PT".into());
        let at = 128 * (20 + 5 * n);
        for (k, r) in (40..45).enumerate() {
            lines.push(format!("STG.E [R2.64+{:#x}], R{r}", at + 128 * k));
        }
    }
    lines.push("EXIT".into());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    common::assemble(&lines)
}

fn run_on(image: &Arc<isa::Image>, rows: &[u32], out: usize, level: Isa, threads: u32) -> Vec<u8> {
    let memory = Memory::new(1 << 24).expect("memory");
    let program = Program::load(image.clone(), &memory, &|_| None).expect("load");
    let bytes: Vec<u8> = rows.iter().flat_map(|w| w.to_le_bytes()).collect();
    let a = memory.alloc((bytes.len() + out) as u64).expect("alloc");
    memory.write(a, &bytes).expect("write");
    let options = Options { threads: 1, level, ..Options::default() };
    run(&program, "main", &Shape::new([1; 3], [threads, 1, 1]), &a.to_le_bytes(), &memory, &options)
        .expect("run");
    let mut result = vec![0; out];
    memory.read(a + bytes.len() as u64, &mut result).expect("read");
    result
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn levels_agree(
        rows in prop::collection::vec(word(), 20 * 32),
        draws in prop::collection::vec(
            (prop::sample::select(operations()), any::<u32>(), any::<u32>(), word(), 0..3usize, 0..3u8)
                .prop_map(|(op, mods, flags, wide, slot, guard)| Draw { op, mods, flags, wide, slot, guard }),
            64,
        ),
        threads in prop::sample::select(vec![32u32, 32, 21]),
    ) {
        let list: Vec<Inst> = draws.iter().filter_map(build).collect();
        let image = Arc::new(program(&list));
        let out = 128 * 5 * list.len();
        let expected = run_on(&image, &rows, out, Isa::Baseline, threads);
        for level in Isa::ALL.into_iter().filter(|l| l.is_available()) {
            let found = run_on(&image, &rows, out, level, threads);
            if let Some(at) = (0..out).find(|&k| expected[k] != found[k]) {
                let n = at / (128 * 5);
                let lane = at % 128 / 4;
                let word = |v: &[u8]| u32::from_le_bytes([v[at & !3], v[at & !3 | 1], v[at & !3 | 2], v[at & !3 | 3]]);
                prop_assert!(false, "`{}` on {level:?}, lane {lane}: {:08x} is not {:08x} (a {:08x} b {:08x} c {:08x})",
                    list[n], word(&found), word(&expected), rows[lane], rows[4 * 32 + lane], rows[8 * 32 + lane]);
            }
        }
    }
}

/// What the lane loops compute is what `arith` says, lane by lane.
#[test]
fn lanes_are_what_arith_says() {
    let list = [
        "FFMA.FTZ.SAT R40, R4, -R8, R12",
        "FADD.RM R40, |R4|, R8",
        "FMUL R40, R4, -R8",
        "MUFU.EX2 R40, R4",
        "IMAD R40, R4, R8, R12",
        "PRMT R40, R4, R8, R12",
        "SHF.R.S32.HI R40, R4, R8, R12",
        "F2I.U16.F32.RZI R40, R4",
    ]
    .map(|t| isa::text::parse(t).expect("an instruction"));
    let image = Arc::new(program(&list));
    let rows: Vec<u32> = (0..20 * 32u32).map(|n| n.wrapping_mul(0x9e37_79b9).rotate_left(n % 7)).collect();
    let out = 128 * 5 * list.len();
    let bytes = run_on(&image, &rows, out, Isa::best(), 32);
    let word = |n: usize, lane: usize| {
        let at = 128 * 5 * n + 4 * lane;
        u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    };
    let (nearest, down) = (arith::Mode::RN, arith::Mode::round(arith::Round::Rm));
    for lane in 0..32 {
        let (a, b, c) = (rows[lane], rows[4 * 32 + lane], rows[8 * 32 + lane]);
        let expected = [
            arith::fp32::fma(a, b ^ 0x8000_0000, c, nearest.ftz().sat()),
            arith::fp32::add(a & 0x7fff_ffff, b, down),
            arith::fp32::mul(a, b ^ 0x8000_0000, nearest),
            arith::mufu::ex2(a),
            a.wrapping_mul(b).wrapping_add(c),
            arith::bits::prmt(a, c, b, arith::bits::Prmt::Index),
            ((c as i32) >> b.min(31)) as u32,
            arith::cvt::float_to_int(
                a.into(),
                arith::cvt::IntType::U16,
                arith::cvt::FloatType::F32,
                arith::Round::Rz,
                false,
            ) as u32,
        ];
        for (n, e) in expected.into_iter().enumerate() {
            assert_eq!(word(n, lane), e, "`{}`, lane {lane}", list[n]);
        }
    }
}
