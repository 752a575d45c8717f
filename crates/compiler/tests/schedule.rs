//! The order of instructions: random programs give the same words at every level, loads stand together, independent chains
//! run side by side, the source order stays at level 0.

#[path = "passes/random.rs"]
mod random;

use random::Random;
use std::fmt::Write;

const THREADS: u32 = 64;
/// Words of memory that belong to each thread, in each space.
const WORDS: u32 = 16;
/// 32-bit registers of a random program.
const REGISTERS: usize = 12;

/// Writes the body of a kernel whose threads touch their own words of global, shared and local memory, through several
/// address registers that may name the same bytes, and read each other's only between barriers.
struct Generator {
    random: Random,
    text: String,
    labels: u32,
}

impl Generator {
    fn line(&mut self, text: std::fmt::Arguments) {
        writeln!(self.text, "    {text}").expect("a string");
    }

    fn reg(&mut self) -> String {
        format!("%r{}", self.random.below(REGISTERS))
    }

    /// Now and then a guard.
    fn guard(&mut self) -> String {
        match self.random.below(4) {
            0 => format!("@{}%p{} ", self.random.pick(&["", "!"]), self.random.below(3)),
            _ => String::new(),
        }
    }

    /// A space and an address in it of `bytes` bytes, aligned. Each base stands 0, 8 or 16 bytes into the thread's words.
    fn address(&mut self, bytes: u32) -> (&'static str, String) {
        let (space, base) =
            self.random.pick(&[(".global", "g"), (".shared", "s"), (".local", "l"), ("", "ng"), ("", "ns")]);
        let shift = self.random.pick(&[0, 8, 16]);
        let at = self.random.below((4 * WORDS / bytes) as usize) as i64 * i64::from(bytes);
        (space, format!("[%{base}{shift}+{}]", at - shift))
    }

    fn load(&mut self) {
        let guard = self.guard();
        let order = self.random.pick(&["", "", "", "", ".volatile"]);
        let (a, b) = (self.reg(), self.reg());
        match self.random.below(6) {
            0 => {
                let (space, at) = self.address(1);
                self.line(format_args!("{guard}ld{order}{space}.u8 {a}, {at};"));
            }
            1 if a != b => {
                let (space, at) = self.address(8);
                self.line(format_args!("{guard}ld{order}{space}.v2.u32 {{{a}, {b}}}, {at};"));
            }
            _ => {
                let (space, at) = self.address(4);
                self.line(format_args!("{guard}ld{order}{space}.u32 {a}, {at};"));
            }
        }
    }

    fn store(&mut self) {
        let guard = self.guard();
        let order = self.random.pick(&["", "", "", "", ".volatile"]);
        let (a, b) = (self.reg(), self.reg());
        match self.random.below(6) {
            0 => {
                let (space, at) = self.address(2);
                self.line(format_args!("{guard}st{order}{space}.u16 {at}, {a};"));
            }
            1 => {
                let (space, at) = self.address(8);
                self.line(format_args!("{guard}st{order}{space}.v2.u32 {at}, {{{a}, {b}}};"));
            }
            _ => {
                let (space, at) = self.address(4);
                self.line(format_args!("{guard}st{order}{space}.u32 {at}, {a};"));
            }
        }
    }

    fn atomic(&mut self) {
        let (a, b) = (self.reg(), self.reg());
        let (mut space, mut at) = self.address(4);
        while space == ".local" {
            (space, at) = self.address(4);
        }
        let op = self.random.pick(&["add", "xor", "max", "exch"]);
        let ty = if op == "xor" || op == "exch" { "b32" } else { "u32" };
        let order = self.random.pick(&["", ".relaxed.gpu", ".acq_rel.gpu"]);
        self.line(format_args!("atom{order}{space}.{op}.{ty} {a}, {at}, {b};"));
    }

    fn compute(&mut self) {
        let (guard, d, a, b, c) = (self.guard(), self.reg(), self.reg(), self.reg(), self.reg());
        let p = self.random.below(3);
        match self.random.below(9) {
            0 => self.line(format_args!("{guard}add.u32 {d}, {a}, {b};")),
            1 => self.line(format_args!("{guard}mad.lo.u32 {d}, {a}, {b}, {c};")),
            2 => self.line(format_args!("{guard}xor.b32 {d}, {a}, {b};")),
            3 => self.line(format_args!("{guard}popc.b32 {d}, {a};")),
            4 => self.line(format_args!("{guard}mul.hi.u32 {d}, {a}, {b};")),
            5 => self.line(format_args!("setp.lt.u32 %p{p}, {a}, {b};")),
            6 => self.line(format_args!("selp.u32 {d}, {a}, {b}, %p{p};")),
            7 => self.line(format_args!("{guard}shf.l.wrap.b32 {d}, {a}, {b}, {c};")),
            _ => {
                self.line(format_args!("mad.wide.u32 %w0, {a}, {b}, %w1;"));
                self.line(format_args!("mov.b64 {{{d}, _}}, %w0;"));
                self.line(format_args!("add.u64 %w1, %w1, %w0;"));
            }
        }
    }

    /// What all lanes do together.
    fn collective(&mut self) {
        let (d, a, p) = (self.reg(), self.reg(), self.random.below(3));
        match self.random.below(6) {
            0 => self.line(format_args!("shfl.sync.bfly.b32 {d}, {a}, 3, 31, -1;")),
            1 => self.line(format_args!("vote.sync.ballot.b32 {d}, %p{p}, -1;")),
            2 => self.line(format_args!("activemask.b32 {d};")),
            3 => self.line(format_args!("membar.cta;")),
            4 => self.line(format_args!("bar.warp.sync -1;")),
            _ => {
                self.line(format_args!("bar.sync 0;"));
                for _ in 0..1 + self.random.below(4) {
                    let (d, at) = (self.reg(), 4 * self.random.below(WORDS as usize));
                    self.line(format_args!("ld.shared.u32 {d}, [%other+{at}];"));
                    let (d, at) = (self.reg(), 4 * self.random.below(WORDS as usize));
                    self.line(format_args!("ld.global.u32 {d}, [%og+{at}];"));
                    self.compute();
                }
                self.line(format_args!("bar.sync 0;"));
            }
        }
    }

    fn block(&mut self, count: usize, depth: u32, together: bool) {
        for _ in 0..count {
            match self.random.below(if depth < 2 { 24 } else { 22 }) {
                0..6 => self.load(),
                6..11 => self.store(),
                11 => self.atomic(),
                12..20 => self.compute(),
                20..22 if together => self.collective(),
                20..22 => self.compute(),
                22 => {
                    let (n, p) = (self.labels, self.random.below(3));
                    self.labels += 1;
                    self.line(format_args!("@%p{p} bra ELSE{n};"));
                    self.block(count / 3, depth + 1, false);
                    self.line(format_args!("bra DONE{n};"));
                    self.line(format_args!("ELSE{n}:"));
                    self.block(count / 3, depth + 1, false);
                    self.line(format_args!("DONE{n}:"));
                }
                _ => {
                    let n = self.labels;
                    self.labels += 1;
                    self.line(format_args!("mov.u32 %i{n}, 0;"));
                    self.line(format_args!("LOOP{n}:"));
                    self.block(count / 3, depth + 1, together);
                    self.line(format_args!("add.u32 %i{n}, %i{n}, 1;"));
                    self.line(format_args!("setp.lt.u32 %q{n}, %i{n}, 3;"));
                    self.line(format_args!("@%q{n} bra LOOP{n};"));
                }
            }
        }
    }
}

fn program(seed: u64, count: usize) -> String {
    let mut g = Generator { random: Random::new(seed), text: String::new(), labels: 0 };
    g.block(count, 0, true);
    let bytes = 4 * WORDS;
    let mut text = format!(
        ".version 8.5\n.target sm_90\n.address_size 64\n\
         .shared .align 16 .b8 memory[{}];\n\
         .visible .entry k(.param .u64 out)\n{{\n\
         .local .align 16 .b8 own[{bytes}];\n\
         .reg .b32 %r<{REGISTERS}>, %i<{n}>, %t, %tid, %s0, %s8, %s16, %l0, %l8, %l16, %other;\n\
         .reg .b64 %w<2>, %g0, %g8, %g16, %ng0, %ng8, %ng16, %ns0, %ns8, %ns16, %og, %d;\n\
         .reg .pred %p<3>, %q<{n}>;\n\
         ld.param.u64 %g0, [out];\nmov.u32 %tid, %tid.x;\nmul.lo.u32 %t, %tid, {bytes};\n\
         cvt.u64.u32 %d, %t;\nadd.u64 %g0, %g0, %d;\nxor.b32 %other, %tid, 1;\nmul.lo.u32 %other, %other, {bytes};\n\
         cvt.u64.u32 %w0, %other;\nsub.u64 %og, %g0, %d;\nadd.u64 %og, %og, %w0;\n\
         mov.u32 %s0, memory;\nadd.u32 %other, %other, %s0;\nadd.u32 %s0, %s0, %t;\nmov.u32 %l0, own;\n\
         cvt.u64.u32 %ns0, %s0;\ncvta.shared.u64 %ns0, %ns0;\nmov.u64 %ng0, %g0;\n",
        THREADS * bytes,
        n = g.labels + 1,
    );
    for base in ["g", "ng", "ns"] {
        write!(text, "add.u64 %{base}8, %{base}0, 8;\nadd.u64 %{base}16, %{base}0, 16;\n").expect("a string");
    }
    for base in ["s", "l"] {
        write!(text, "add.u32 %{base}8, %{base}0, 8;\nadd.u32 %{base}16, %{base}0, 16;\n").expect("a string");
    }
    for n in 0..REGISTERS {
        writeln!(text, "mad.lo.u32 %r{n}, %tid, {}, {};", 0x9e37_79b1u32.wrapping_mul(n as u32 + 1), n * 77)
            .expect("a string");
    }
    for n in 0..WORDS {
        let r = n as usize % REGISTERS;
        for base in ["global.u32 [%g0", "shared.u32 [%s0", "local.u32 [%l0"] {
            writeln!(text, "st.{base}+{}], %r{r};", 4 * n).expect("a string");
        }
    }
    text += "mov.u64 %w1, 5;\n";
    for p in 0..3 {
        writeln!(text, "setp.gt.u32 %p{p}, %r{p}, %r{};", p + 3).expect("a string");
    }
    text += &g.text;
    // All that was computed goes out: each word of memory, and each register.
    for n in 0..WORDS {
        let r = n as usize % REGISTERS;
        for space in ["shared.u32 %t, [%s0", "local.u32 %t, [%l0", "global.u32 %t, [%g0"] {
            writeln!(text, "ld.{space}+{}];\nmad.lo.u32 %r{r}, %r{r}, 31, %t;", 4 * n).expect("a string");
        }
        writeln!(text, "st.global.u32 [%g0+{}], %r{r};", 4 * n).expect("a string");
    }
    text + "exit;\n}\n"
}

fn compile(text: &str, opt_level: u8, max_registers: Option<u32>) -> isa::Image {
    let module = ptx::to_ir("random", text.as_bytes()).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let options = compiler::Options { opt_level, max_registers, ..compiler::Options::default() };
    compiler::compile(module, &options).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn run(image: isa::Image) -> Vec<u8> {
    let memory = simt::Memory::new(1 << 24).expect("memory");
    let bytes = u64::from(4 * WORDS * THREADS);
    let out = memory.alloc(bytes).expect("a buffer");
    memory.fill(out, bytes, 0).expect("a buffer");
    let program = simt::Program::load(std::sync::Arc::new(image), &memory, &|_| None).expect("loads");
    let shape = simt::Shape::new([1, 1, 1], [THREADS, 1, 1]);
    let engine = simt::Options { threads: 1, max_instructions: 10_000_000, ..simt::Options::default() };
    simt::run(&program, "k", &shape, &out.to_le_bytes(), &memory, &engine).expect("runs");
    let mut result = vec![0; bytes as usize];
    memory.read(out, &mut result).expect("a buffer");
    result
}

#[test]
fn random_programs_give_the_same_words_at_every_level() {
    for seed in 1..=60 {
        let text = program(seed, 20 + seed as usize);
        let expected = run(compile(&text, 0, None));
        for (level, registers) in [(3, None), (1, None), (2, None), (3, Some(24))] {
            let result = run(compile(&text, level, registers));
            assert!(result == expected, "seed {seed}, level {level}, registers {registers:?}\n{text}");
        }
    }
}

/// Loads of one thread's words, each used at once.
fn sum_of_loads(count: usize) -> String {
    let mut text = String::from(
        ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n\
         .reg .u64 o, d;\n.reg .u32 t;\n.reg .f32 x, s;\n\
         ld.param.u64 o, [out];\nmov.u32 t, %tid.x;\nmul.wide.u32 d, t, 64;\nadd.u64 o, o, d;\nmov.f32 s, 0f00000000;\n",
    );
    for n in 0..count {
        writeln!(text, "ld.global.f32 x, [o+{}];\nfma.rn.f32 s, s, 0f3F000000, x;", 4 * n).expect("a string");
    }
    text + "st.global.f32 [o], s;\nexit;\n}\n"
}

/// How many loads stand in front of the first multiply-add.
fn loads_in_front(image: &isa::Image) -> usize {
    let first = image.code.iter().position(|i| i.op == isa::Op::Ffma).expect("a multiply-add");
    image.code[..first].iter().filter(|i| i.op == isa::Op::Ldg).count()
}

#[test]
fn independent_loads_stand_together_in_front_of_their_uses() {
    assert_eq!(loads_in_front(&compile(&sum_of_loads(8), 3, None)), 8);
    // More than there are registers for stand together as far as these go.
    let image = compile(&sum_of_loads(100), 3, None);
    let registers = image.functions[0].registers;
    assert!((24..=32).contains(&registers), "{registers} registers");
    assert!(loads_in_front(&image) >= 16, "{} loads", loads_in_front(&image));
}

#[test]
fn level_0_keeps_the_order_of_the_source() {
    assert_eq!(loads_in_front(&compile(&sum_of_loads(8), 0, None)), 1);
}

#[test]
fn few_registers_bound_how_far_loads_rise_and_nothing_is_spilled() {
    let image = compile(&sum_of_loads(100), 3, Some(24));
    assert!(image.functions[0].registers <= 24);
    assert_eq!(image.functions[0].local_bytes, 0);
}

#[test]
fn what_stands_between_two_reads_of_the_clock_stays_there() {
    let text = ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n\
        .reg .u64 o;\n.reg .u32 a, b, c;\n\
        ld.param.u64 o, [out];\nmov.u32 c, %tid.x;\nmov.u32 a, %clock;\nmul.lo.u32 c, c, c;\nmul.lo.u32 c, c, c;\n\
        mov.u32 b, %clock;\nsub.u32 b, b, a;\nst.global.u32 [o], b;\nst.global.u32 [o+4], c;\nexit;\n}\n";
    let image = compile(text, 3, None);
    let is_clock = |i: &isa::Inst| {
        let special = isa::Special::from_bits(i.field(isa::field::Field::Sr));
        matches!(i.op, isa::Op::S2r | isa::Op::Cs2r) && special == Some(isa::Special::ClockLo)
    };
    let clocks: Vec<usize> = (0..image.code.len()).filter(|&n| is_clock(&image.code[n])).collect();
    assert_eq!(clocks.len(), 2);
    let between = &image.code[clocks[0] + 1..clocks[1]];
    assert_eq!(between.iter().filter(|i| i.op == isa::Op::Imad).count(), 2);
}

#[test]
fn an_operand_read_again_through_the_same_slot_is_marked() {
    let text = ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n\
        .reg .u64 o;\n.reg .f32 a, b, c, d;\n\
        ld.param.u64 o, [out];\nld.global.v4.f32 {a, b, c, d}, [o];\n\
        fma.rn.f32 b, a, b, b;\nfma.rn.f32 c, a, c, c;\nfma.rn.f32 d, a, d, d;\n\
        st.global.v4.f32 [o], {a, b, c, d};\nexit;\n}\n";
    let image = compile(text, 3, None);
    let code: Vec<_> = image.code.iter().filter(|i| i.op == isa::Op::Ffma).collect();
    let marks: Vec<bool> = code.iter().map(|i| i.src[0].reuse).collect();
    assert_eq!(marks, [true, true, false], "the last read leaves nothing behind");
    let unmarked = compile(text, 0, None);
    assert!(unmarked.code.iter().all(|i| i.src.iter().all(|s| !s.reuse)));
}

/// Cycles of one warp for straight code: it issues an instruction a cycle, each when its operands are there.
fn cycles(code: &[isa::Inst]) -> u32 {
    use isa::Unit;
    let mut ready = [0u32; 256];
    let mut guards = [0u32; 8];
    let mut now = 0;
    for i in code {
        let words = |(r, n): (isa::Reg, u32)| (u32::from(r.0)..u32::from(r.0) + n).map(|r| r as usize);
        let registers = i.reads().flat_map(words).filter(|&r| r < 255).map(|r| ready[r]);
        let predicates = i.pred_reads().map(|p| guards[usize::from(p.0)]);
        now = registers.chain(predicates).max().unwrap_or(0).max(now);
        let takes = match i.op.row().unit {
            Unit::Alu | Unit::Fma | Unit::Imad => 4,
            Unit::Xu => 17,
            Unit::Lsu => 32,
            _ => 12,
        };
        i.writes().into_iter().flat_map(words).filter(|&r| r < 255).for_each(|r| ready[r] = now + takes);
        i.pred_writes().for_each(|p| guards[usize::from(p.0)] = now + 13);
        now += 1;
    }
    now
}

/// Chains that end in the same three sums, each a load from shared memory, sums, a root.
fn chains(count: usize) -> String {
    let mut text = String::from(
        ".version 8.5\n.target sm_90\n.address_size 64\n.shared .align 16 .b8 memory[1024];\n\
         .visible .entry k(.param .u64 out)\n{\n\
         .reg .u64 o;\n.reg .u32 s;\n.reg .f32 a, b, c, x, y, z, w, u, v, r;\n\
         ld.param.u64 o, [out];\nmov.u32 s, memory;\nld.global.v2.f32 {u, v}, [o];\n\
         mov.f32 a, 0f00000000;\nmov.f32 b, a;\nmov.f32 c, a;\nbar.sync 0;\n",
    );
    for n in 0..count {
        write!(
            text,
            "ld.shared.v4.f32 {{x, y, z, w}}, [s+{}];\nsub.f32 x, x, u;\nsub.f32 y, y, v;\nmul.f32 r, x, x;\n\
             fma.rn.f32 r, y, y, r;\nfma.rn.f32 r, z, z, r;\nrsqrt.approx.f32 r, r;\nmul.f32 w, w, r;\n\
             mul.f32 w, w, r;\nfma.rn.f32 a, w, x, a;\nfma.rn.f32 b, w, y, b;\nfma.rn.f32 c, w, z, c;\n",
            16 * n
        )
        .expect("a string");
    }
    text + "st.global.f32 [o], a;\nst.global.f32 [o+4], b;\nst.global.f32 [o+8], c;\nexit;\n}\n"
}

#[test]
fn independent_chains_fill_each_others_waits() {
    let body = |level: u8| {
        let image = compile(&chains(8), level, None);
        assert!(image.functions[0].registers <= 32);
        let barrier = image.code.iter().position(|i| i.op == isa::Op::Bar).expect("a barrier");
        cycles(&image.code[barrier + 1..])
    };
    let (source, scheduled) = (body(0), body(3));
    assert!(scheduled * 2 < source, "{scheduled} cycles, {source} in the order of the source");
}

/// Rows of a stencil, one behind the other: loads that are all used by the row, and a store.
fn rows(count: usize) -> String {
    let mut text = String::from(
        ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n\
         .reg .u64 o, d;\n.reg .u32 t;\n.reg .f32 a, b, s;\n\
         ld.param.u64 o, [out];\nmov.u32 t, %tid.x;\nmul.wide.u32 d, t, 64;\nadd.u64 o, o, d;\n",
    );
    for n in 0..count {
        text += "mov.f32 s, 0f00000000;\n";
        for k in 0..4 {
            let at = 64 * n + 8 * k;
            write!(
                text,
                "ld.global.nc.f32 a, [o+{at}];\nld.global.nc.f32 b, [o+{}];\nadd.f32 a, a, b;\nfma.rn.f32 s, s, 0f3F000000, a;\n",
                at + 4
            )
            .expect("a string");
        }
        writeln!(text, "st.global.f32 [o+{}], s;", 64 * n).expect("a string");
    }
    text + "exit;\n}\n"
}

#[test]
fn rows_that_stand_behind_each_other_overlap_without_keeping_all_of_them_open() {
    let image = compile(&rows(24), 3, None);
    assert!(image.functions[0].registers <= 32);
    // Cycles are counted as if loads came from near, so only that they are few says that loads wait together.
    let (source, scheduled) = (cycles(&compile(&rows(24), 0, None).code), cycles(&image.code));
    assert!(scheduled * 4 < source, "{scheduled} cycles, {source} in the order of the source");
    // A row is stored before the last rows begin.
    let code = &image.code;
    let first_store = code.iter().position(|i| i.op == isa::Op::Stg).expect("a store");
    let loads_before = code[..first_store].iter().filter(|i| i.op == isa::Op::Ldg).count();
    assert!(loads_before < 24 * 8 / 2, "{loads_before} loads before the first row is done");
}

/// Products of columns in fours with a word each, as in a multiplication of matrices.
fn fours(count: usize) -> String {
    let mut text = String::from(
        ".version 8.5\n.target sm_90\n.address_size 64\n.shared .align 16 .b8 memory[8192];\n\
         .visible .entry k(.param .u64 out)\n{\n\
         .reg .u64 o, d;\n.reg .u32 s, t;\n.reg .f32 a, b, c, e, x, y, z, w, v;\n\
         ld.param.u64 o, [out];\nmov.u32 t, %tid.x;\nmul.wide.u32 d, t, 64;\nadd.u64 o, o, d;\nmov.u32 s, memory;\n\
         mov.f32 a, 0f00000000;\nmov.f32 b, a;\nmov.f32 c, a;\nmov.f32 e, a;\nbar.sync 0;\n",
    );
    for n in 0..count {
        for (row, sum) in ["a", "b", "c", "e"].into_iter().enumerate() {
            writeln!(text, "ld.shared.v4.f32 {{x, y, z, w}}, [s+{}];", 1024 * row + 16 * n)
                .expect("a string");
            for (k, part) in ["x", "y", "z", "w"].into_iter().enumerate() {
                let at = 4096 + 128 * (4 * n + k);
                writeln!(text, "ld.shared.f32 v, [s+{at}];\nfma.rn.f32 {sum}, v, {part}, {sum};")
                    .expect("a string");
            }
        }
    }
    text + "st.global.v4.f32 [o], {a, b, c, e};\nexit;\n}\n"
}

#[test]
fn vectors_find_aligned_places_in_an_order_that_overlaps_their_loads() {
    let body = |level: u8| {
        let image = compile(&fours(8), level, None);
        assert!(image.functions[0].registers <= 40, "{} registers", image.functions[0].registers);
        let barrier = image.code.iter().position(|i| i.op == isa::Op::Bar).expect("a barrier");
        cycles(&image.code[barrier + 1..])
    };
    let (source, scheduled) = (body(0), body(3));
    assert!(scheduled * 4 < source, "{scheduled} cycles, {source} in the order of the source");
}
