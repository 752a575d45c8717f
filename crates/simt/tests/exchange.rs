//! A warp alone sees its own stores and atomics at once, however seldom it exchanges with others: random memory
//! instructions leave the same in registers and memory as in a functional run.

mod common;

use common::{Case, How, assemble};
use proptest::prelude::*;
use simt::Isa;
use std::fmt::Write;

/// How the lanes of an address register lie, and a stretch of offsets.
#[derive(Clone, Debug)]
enum Lie {
    Consecutive,
    Same(u32),
    Scattered(Vec<u32>),
}

/// Address register, place, operation, guard.
#[derive(Clone, Debug)]
struct Draw {
    from: usize,
    at: u32,
    op: usize,
    guard: usize,
}

const WIDTHS: [(&str, u32); 7] =
    [(".U8", 1), (".S8", 1), (".U16", 2), (".S16", 2), ("", 4), (".64", 8), (".128", 16)];
const ATOMICS: [(&str, u32); 6] =
    [("ADD", 4), ("XOR", 4), ("MAX.S32", 4), ("ADD.64", 8), ("ADD.F32", 4), ("EXCH", 4)];

fn lie() -> impl Strategy<Value = Lie> {
    prop_oneof![
        Just(Lie::Consecutive),
        (0..8u32).prop_map(Lie::Same),
        prop::collection::vec(0..24u32, 32).prop_map(Lie::Scattered),
    ]
}

fn draw() -> impl Strategy<Value = Draw> {
    (0..4usize, 0..8u32, 0..32usize, 0..3usize).prop_map(|(from, at, op, guard)| Draw { from, at, op, guard })
}

/// The program: address registers R8 to R15 (pairs, in units of sixteen bytes, or of the width where lanes are
/// consecutive), data in R16 to R19, results summed into R24.
fn text(lies: &[Lie], draws: &[Draw]) -> String {
    let mut t = String::from("option ordered\nbuffer out 2048\nbuffer places u32");
    for lie in lies {
        for lane in 0..32 {
            let place = match lie {
                Lie::Consecutive => 0,
                Lie::Same(at) => 16 * at,
                Lie::Scattered(at) => 16 * at[lane],
            };
            write!(t, " {place}").expect("write");
        }
    }
    t.push_str("\nbuffer sums 128\nparam out\nparam places\nparam sums\ncode\n");
    let mut line = |l: &str| writeln!(t, "    {l}").expect("write");
    line("S2R R0, SR_LANEID");
    for (n, c) in [(2, 0x210), (4, 0x218), (6, 0x220)] {
        line(&format!("MOV R{n}, c[0x0][{c:#x}]"));
        line(&format!("MOV R{}, c[0x0][{:#x}]", n + 1, c + 4));
    }
    line("IMAD.WIDE.U32 R4, R0, 0x4, R4");
    line("IMAD.WIDE.U32 R6, R0, 0x4, R6");
    for n in 0..lies.len() {
        line(&format!("LDG.E R1, [R4.64+{:#x}]", 128 * n));
        line(&format!("IMAD.WIDE.U32 R{}, R1, 0x1, R2", 8 + 2 * n));
    }
    for n in 0..4 {
        line(&format!("IMAD R{}, R0, {:#x}, R0", 16 + n, 0x0123_4567 + 0x1111 * n));
    }
    line("ISETP.LT.U32.AND P0, PT, R0, 0x13, PT, PT");
    line("LOP3 R1, R0, 0x5, RZ, 0xc0");
    line("ISETP.NE.U32.AND P1, PT, R1, RZ, PT, PT");
    for d in draws {
        let guard = ["", "@P0 ", "@P1 "][d.guard];
        let (size, is_atomic) = match d.op {
            0..14 => (WIDTHS[d.op % 7].1, false),
            n => (ATOMICS[n % 6].1, true),
        };
        let mut a = 8 + 2 * d.from;
        if matches!(lies[d.from], Lie::Consecutive) {
            line(&format!("IMAD.WIDE.U32 R30, R0, {size:#x}, R{a}"));
            a = 30;
        }
        // Lanes of different widths overlap in all ways.
        let at = format!("[R{a}.64+{:#x}]", d.at * 4 / size * size);
        let space = if d.guard == 1 { "" } else { "G" };
        match d.op {
            0..7 => {
                line(&format!("{guard}LD{space}{}.E R20, {at}", WIDTHS[d.op].0));
                line("IADD3 R24, PT, R24, R20, R21, PT");
                line("IADD3 R24, PT, R24, R22, R23, PT");
                line("IADD3 R16, PT, R16, R20, 0x1, PT");
            }
            7..14 => {
                let width = WIDTHS[d.op - 7].0.replace('S', "U");
                line(&format!("{guard}ST{space}{width}.E {at}, R16"));
            }
            n if is_atomic && n % 2 == 0 => {
                line(&format!("{guard}ATOM{space}.{}.E R20, {at}, R16, RZ", ATOMICS[n % 6].0));
                line("IADD3 R24, PT, R24, R20, R21, PT");
            }
            n => line(&format!("{guard}RED{space}.{}.E {at}, R16", ATOMICS[n % 6].0)),
        }
    }
    line("STG.E [R6.64], R24");
    line("EXIT");
    t.push_str("expect\n");
    t
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn exchanges_change_nothing_for_one_warp(
        lies in prop::collection::vec(lie(), 4),
        draws in prop::collection::vec(draw(), 1..40),
    ) {
        let text = text(&lies, &draws);
        let case = Case::parse(&text);
        let expected = case.run(How::Run { level: Isa::best(), threads: 1 });
        prop_assert!(!expected.contains("error"), "{expected}{text}");
        for every in [1, 7, 64] {
            let found = case.run(How::Step { level: Isa::best(), every });
            prop_assert_eq!(&found, &expected, "every {}:\n{}", every, text);
        }
    }
}

/// Racing SMs: a later cycle wins, whatever the numbers of the SMs, and in one cycle the higher number.
#[test]
fn stores_of_different_sms_are_ordered_by_cycle_and_number() {
    use simt::log::apply;
    use simt::special::{Place, Time};
    use simt::{Launch, Log, Memory, Program, Resident, Shape, Stepped};
    let code =
        ["MOV R2, c[0x0][0x210]", "MOV R3, c[0x0][0x214]", "S2R R0, SR_CTAID.X", "STG.E [R2.64], R0", "EXIT"];
    for (late, winner) in [(0, 0), (1, 1), (2, 1)] {
        let memory = Memory::new(1 << 20).expect("memory");
        let program = Program::load(assemble(&code).into(), &memory, &|_| None).expect("load");
        let out = memory.alloc(4).expect("alloc");
        let kernel = program.kernel("main", Isa::best()).expect("kernel");
        let shape = Shape::new([2, 1, 1], [32, 1, 1]);
        let launch = Launch::new(&program, kernel, &shape, &out.to_le_bytes(), &memory).expect("launch");
        let launch = std::sync::Arc::new(launch);
        let mut logs = [Log::new(), Log::new()];
        for sm in 0..2 {
            let mut r = Resident::new(&launch, &memory);
            r.start(sm as u64, Place::default());
            let mut n = 0;
            while r.pc(0).is_some() {
                let cycle = n + if sm == late { 1 } else { 0 };
                let stepped = r.step(0, Time::default(), cycle, &mut logs[sm]).expect("a step");
                assert_ne!(stepped, Stepped::Later);
                n += 1;
            }
            assert!(r.finished() && r.executed() == 5 && r.thread_executed() == 160);
        }
        let mut word = [9; 4];
        memory.read(out, &mut word).expect("read");
        assert_eq!(word, [0; 4], "nothing takes effect before the exchange");
        apply(&memory, &mut logs.iter_mut().collect::<Vec<_>>());
        memory.read(out, &mut word).expect("read");
        assert_eq!(word, [winner, 0, 0, 0], "SM {late} was late");
    }
}

/// Register files that are left from a launch serve the next one, with its arguments and without what was in registers.
#[test]
fn files_that_are_left_hold_nothing_of_the_launch_before() {
    use simt::files::Files;
    use simt::log::apply;
    use simt::special::{Place, Time};
    use simt::{Launch, Log, Memory, Program, Resident, Shape};
    let code = [
        "MOV R2, c[0x0][0x210]",
        "MOV R3, c[0x0][0x214]",
        "STG.E [R2.64], R5",
        "MOV R5, c[0x0][0x218]",
        "STG.E [R2.64+0x4], R5",
        "EXIT",
    ];
    let memory = Memory::new(1 << 20).expect("memory");
    let program = Program::load(assemble(&code).into(), &memory, &|_| None).expect("load");
    let kernel = program.kernel("main", Isa::best()).expect("kernel");
    let shape = Shape::new([1, 1, 1], [64, 1, 1]);
    let mut files = Files::default();
    for value in [7u32, 7, 8, 9] {
        let out = memory.alloc(8).expect("alloc");
        memory.write(out, &[0xff; 8]).expect("write");
        let params = [&out.to_le_bytes()[..], &value.to_le_bytes()[..]].concat();
        let launch = Launch::new(&program, kernel.clone(), &shape, &params, &memory).expect("launch");
        let launch = std::sync::Arc::new(launch);
        files.begin(&launch);
        let mut log = Log::new();
        let mut r = Resident::with_files(&launch, &memory, &mut files);
        r.start(0, Place::default());
        for w in 0..2 {
            let mut cycle = 0;
            while r.pc(w).is_some() {
                r.step(w, Time::default(), cycle, &mut log).expect("a step");
                cycle += 1;
            }
        }
        apply(&memory, &mut [&mut log]);
        r.give_back(&mut files);
        let mut words = [0; 8];
        memory.read(out, &mut words).expect("read");
        assert_eq!(words, [0, 0, 0, 0, value as u8, 0, 0, 0]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// A sprint leaves on the warp's tape what its accesses did, and the warp goes on where it stopped.
    #[test]
    fn sprints_do_what_steps_do(
        lies in prop::collection::vec(lie(), 4),
        draws in prop::collection::vec(draw(), 1..24),
        cut in 0..64u32,
    ) {
        let text = text(&lies, &draws);
        let case = Case::parse(&text);
        let expected = case.run(How::Run { level: Isa::best(), threads: 1 });
        for cut in [cut, u32::MAX] {
            let found = case.run(How::Sprint { level: Isa::best(), cut });
            prop_assert_eq!(&found, &expected, "cut {}:\n{}", cut, text);
        }
    }
}
