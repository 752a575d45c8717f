//! Random structured kernels with barriers in loops: with versions in the place of their blocks, they leave the same memory and the same
//! registers.

mod common;

use common::{Job, assemble, blocks_of, patch, profile, run, versions};
use isa::image::Image;
use isa::text;
use optimizer::{Done, Kind, Limits};
use simt::{Memory, Program, Shape};
use std::fmt::Write;
use std::sync::Arc;

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32 % sides
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.roll(n) == 0
    }
}

/// Writes code as text with labels.
struct Writer {
    dice: Dice,
    lines: Vec<String>,
    labels: u32,
    depth: u32,
}

/// Registers that programs compute with: R4 to R15; R0 is the thread, R1 the loop, R2 and R16:R17 addresses, R20 and up counters.
const FIRST: u32 = 4;
const COUNT: u32 = 12;
const THREADS: u32 = common::THREADS;
const TURNS: u32 = 6;
/// Bytes that all threads read.
const SHARED_BYTES: u64 = 2048;
/// Programs that are tried.
const SEEDS: u64 = 240;

impl Writer {
    fn put(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    fn reg(&mut self) -> String {
        format!("R{}", FIRST + self.dice.roll(COUNT))
    }

    fn source(&mut self) -> String {
        match self.dice.roll(8) {
            0 => format!("{:#x}", self.dice.roll(64)),
            3 | 4 => "R25".into(),
            1 => "R0".into(),
            2 => "R1".into(),
            _ => self.reg(),
        }
    }

    fn pair(&mut self) -> u32 {
        FIRST + 2 * self.dice.roll(COUNT / 2)
    }

    /// One instruction that computes, or accesses memory of the thread's own.
    fn simple(&mut self) {
        let (d, a, c) = (self.reg(), self.reg(), self.reg());
        let b = self.source();
        let guard = match self.dice.roll(8) {
            0 => "@P1 ",
            1 => "@!P2 ",
            _ => "",
        };
        let line = match self.dice.roll(16) {
            0 | 1 => format!("IADD3 {d}, PT, {a}, {b}, {c}, PT"),
            2 => format!("IMAD {d}, {a}, {b}, {c}"),
            3 => format!("LOP3 {d}, {a}, {b}, {c}, 0x96"),
            4 => format!("SHF.L.U32 {d}, {a}, {b}, RZ"),
            5 => format!("FADD {d}, {a}, {c}"),
            6 => format!("FFMA {d}, {a}, {b}, {c}"),
            7 => format!("ISETP.LT.S32.AND P{}, PT, {a}, {b}, PT, PT", 1 + self.dice.roll(3)),
            8 => format!("SEL {d}, {a}, {b}, P1"),
            9 => {
                let (d, c) = (self.pair(), self.pair());
                format!("IMAD.WIDE.U32 R{d}, {a}, {b}, R{c}")
            }
            10 => format!("STS [R2+{:#x}], {a}", 4 * self.dice.roll(4)),
            11 => format!("LDS {d}, [R2+{:#x}]", 4 * self.dice.roll(4)),
            12 => format!("LDS.64 R{}, [R2+{:#x}]", self.pair(), 8 * self.dice.roll(2)),
            13 => format!("STG.E [R16.64+{:#x}], {a}", 4 * self.dice.roll(4)),
            14 => format!("LDG.E {d}, [R16.64+{:#x}]", 4 * self.dice.roll(4)),
            _ => format!("MOV {d}, {b}"),
        };
        self.put(format!("{guard}{line}"));
    }

    fn body(&mut self, length: u32) {
        for _ in 0..length {
            match self.dice.roll(if self.depth < 3 { 14 } else { 9 }) {
                9 => self.branch(),
                10 => self.turns(),
                11 => self.repeated(),
                12 => self.seldom(),
                13 => self.words(),
                _ => self.simple(),
            }
        }
    }

    /// The same loads again and again, with stores elsewhere between them, or perhaps to the same place.
    fn repeated(&mut self) {
        let hits = self.dice.one_in(4);
        for k in 0..4 {
            let (d, a) = (self.reg(), self.reg());
            self.put(format!("LDG.E {d}, [R18.64]"));
            self.put(format!("IADD3 {a}, PT, {a}, {d}, RZ, PT"));
            let base = if hits && k == 2 { "R18" } else { "R16" };
            self.put(format!("STG.E [{base}.64+{:#x}], {a}", 4 * k));
        }
    }

    /// Loads of words in a row, in any order: of the thread's own, or of what no CTA but the first finds aligned.
    fn words(&mut self) {
        let from = self.dice.roll(3);
        let start = self.dice.roll(4);
        for k in 0..4 {
            let at = 4 * ((k + start) % 4);
            let d = self.reg();
            match from {
                0 => self.put(format!("LDS {d}, [R2+{at:#x}]")),
                1 => self.put(format!("LDG.E {d}, [R16.64+{at:#x}]")),
                _ => self.put(format!("LDG.E {d}, [R28.64+{at:#x}]")),
            }
            if self.dice.one_in(3) {
                self.simple();
            }
        }
    }

    /// Instructions under one guard that seldom holds, with others between them, one of which may change the guard.
    fn seldom(&mut self) {
        let p = self.dice.roll(4);
        match self.dice.roll(3) {
            0 => self.put(format!("ISETP.EQ.S32.AND P{p}, PT, R23, 0x{:x}, PT, PT", self.labels % 8)),
            _ => self.put(format!("ISETP.LT.S32.AND P{p}, PT, R0, 0x0, PT, PT")),
        }
        for _ in 0..6 {
            let (d, a, c) = (self.reg(), self.reg(), self.reg());
            let at = 4 * self.dice.roll(4);
            match self.dice.roll(8) {
                0 => self.simple(),
                1 => self.put(format!("@P{p} LDS {d}, [R2+{at:#x}]")),
                2 => self.put(format!("@P{p} STS [R2+{at:#x}], {a}")),
                3 => self.put(format!("@P{p} ISETP.LT.S32.AND P{p}, PT, {a}, {c}, PT, PT")),
                _ => self.put(format!("@P{p} IMAD {d}, {a}, {c}, {d}")),
            }
        }
    }

    /// Two ways, of which lanes take one or both, or nearly all of them the same.
    fn branch(&mut self) {
        let (other, meet) = (self.label(), self.label());
        let p = self.dice.roll(4);
        let b = self.depth;
        match self.dice.roll(4) {
            // Rare: one lane, in one turn.
            0 => self.put(format!("ISETP.EQ.S32.AND P{p}, PT, R23, 0x{:x}, PT, PT", self.labels % 8)),
            1 => self.put(format!("ISETP.GE.S32.AND P{p}, PT, R0, 0x0, PT, PT")),
            _ => {
                let (a, c) = (self.reg(), self.source());
                self.put(format!("ISETP.LT.U32.AND P{p}, PT, {a}, {c}, PT, PT"));
            }
        }
        self.depth += 1;
        self.put(format!("BSSY B{b}, {meet}"));
        self.put(format!("@P{p} BRA {other}"));
        let n = 1 + self.dice.roll(4);
        self.body(n);
        self.put(format!("BRA {meet}"));
        self.put(format!("{other}:"));
        let n = self.dice.roll(4);
        self.body(n);
        self.put(format!("{meet}:"));
        self.put(format!("BSYNC B{b}"));
        self.depth -= 1;
    }

    /// A loop, as often for all lanes or not.
    fn turns(&mut self) {
        let (head, meet) = (self.label(), self.label());
        let counter = 20 + self.depth;
        let b = self.depth;
        let uniform = self.dice.one_in(2);
        if uniform {
            let n = 1 + self.dice.roll(12);
            self.put(format!("MOV R{counter}, {n:#x}"));
        } else {
            self.put(format!("LOP3 R{counter}, R0, 0x3, RZ, 0xc0"));
        }
        self.depth += 1;
        if !uniform {
            self.put(format!("BSSY B{b}, {meet}"));
        }
        self.put(format!("{head}:"));
        let n = 1 + self.dice.roll(5);
        self.body(n);
        self.put(format!("IADD3 R{counter}, PT, R{counter}, 0xffffffff, RZ, PT"));
        self.put(format!("ISETP.GT.S32.AND P0, PT, R{counter}, RZ, PT, PT"));
        self.put(format!("@P0 BRA{} {head}", if uniform && self.is_whole() { ".U" } else { "" }));
        if !uniform {
            self.put(format!("{meet}:"));
            self.put(format!("BSYNC B{b}"));
        }
        self.depth -= 1;
    }

    /// A barrier, and behind it code so long; with some seeds a branch comes first, of the block or of a loop in it.
    fn first_branch(&mut self, seed: u64, length: u32) {
        let barrier = "BAR.SYNC.ALIGNED RZ, PT, RZ, RZ, PT";
        match seed % 4 {
            // As often one way as the other.
            0 => {
                let over = self.label();
                self.put("LOP3 R24, R1, 0x1, RZ, 0xc0");
                self.put("ISETP.EQ.S32.AND P0, PT, R24, RZ, PT, PT");
                self.put(barrier);
                self.put(format!("@P0 BRA.U {over}"));
                self.body(length);
                self.put(format!("{over}:"));
                self.body(length);
            }
            // Lanes leave a loop at its head, nearly all of them at once.
            1 => {
                let (head, meet) = (self.label(), self.label());
                self.put(barrier);
                self.put("ISETP.EQ.S32.AND P0, PT, R0, 0x9, PT, PT");
                self.put("MOV R24, 0xc");
                self.put("@P0 MOV R24, 0xb");
                self.put("ISETP.LE.S32.AND P0, PT, R24, RZ, PT, PT");
                self.put(format!("BSSY B0, {meet}"));
                self.put(format!("{head}:"));
                self.put(format!("@P0 BRA {meet}"));
                self.put("IADD3 R24, PT, R24, 0xffffffff, RZ, PT");
                (0..8).for_each(|_| self.repeated());
                self.put("ISETP.LE.S32.AND P0, PT, R24, RZ, PT, PT");
                self.put(format!("BRA {head}"));
                self.put(format!("{meet}:"));
                self.put("BSYNC B0");
                self.body(length);
            }
            _ => {
                self.put(barrier);
                self.body(length);
            }
        }
    }

    /// Whether lanes are together here for certain.
    fn is_whole(&self) -> bool {
        self.depth == 1
    }
}

/// A kernel: a loop with two barriers a turn, then everything is written down.
fn kernel(seed: u64) -> Image {
    let dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut w = Writer { dice, lines: Vec::new(), labels: 0, depth: 0 };
    for line in [
        "S2R R0, SR_TID.X",
        "S2R R3, SR_CTAID.X",
        "SHF.L.U32 R2, R0, 0x4, RZ",
        "LDC.64 R16, c[0x0][RZ+0x210]",
        "LDC.64 R18, c[0x0][RZ+0x218]",
        "IMAD R3, R3, 0x40, R0",
        "IMAD.WIDE.U32 R16, R3, 0x10, R16",
        "IMAD R23, R3, 0x7, RZ",
        "LOP3 R23, R23, 0x3f, RZ, 0xc0",
        // The same in all lanes; the profile is that of the first CTA, so the second one fails what is assumed of it.
        "S2R R25, SR_CTAID.X",
        "IADD3 R25, PT, R25, 0x3, RZ, PT",
        "S2R R29, SR_CTAID.X",
        "SHF.L.U32 R28, R0, 0x4, RZ",
        "IMAD R28, R29, 0x4, R28",
        "IADD3 R28, P0, R28, R18, RZ, PT",
        "IADD3.X R29, PT, R19, RZ, RZ, P0",
        "MOV R1, RZ",
        "ISETP.LT.S32.AND P1, PT, R0, 0x20, PT, PT",
        "ISETP.LT.S32.AND P2, PT, R0, 0x5, PT, PT",
        "ISETP.LT.S32.AND P3, PT, R0, 0x40, PT, PT",
    ] {
        w.put(line);
    }
    for r in FIRST..FIRST + COUNT {
        w.put(format!("IMAD R{r}, R0, {:#x}, R3", r * 37 + 1));
    }
    w.put("turn:");
    let n = 3 + w.dice.roll(8);
    w.body(n);
    w.put("BAR.SYNC.ALIGNED RZ, PT, RZ, RZ, PT");
    // What another thread left.
    w.put("LOP3 R24, R2, 0x3f0, RZ, 0x3c");
    w.put("LDS R5, [R24]");
    let n = 3 + w.dice.roll(10);
    // Nobody writes what others still read.
    w.first_branch(seed, n);
    w.put("IADD3 R1, PT, R1, 0x1, RZ, PT");
    w.put("IADD3 R23, PT, R23, 0xffffffff, RZ, PT");
    w.put(format!("ISETP.LT.S32.AND P0, PT, R1, {TURNS:#x}, PT, PT"));
    w.put("@P0 BRA.U turn");
    // All registers, and the predicates.
    w.put("LDC.64 R26, c[0x0][RZ+0x220]");
    w.put("IMAD.WIDE.U32 R26, R3, 0x80, R26");
    for r in 0..24 {
        w.put(format!("STG.E [R26.64+{:#x}], R{r}", 4 * r));
    }
    w.put("SEL R0, R1, R2, P1");
    w.put("STG.E [R26.64+0x60], R0");
    w.put("SEL R0, R1, R2, P2");
    w.put("STG.E [R26.64+0x64], R0");
    w.put("SEL R0, R1, R2, P3");
    w.put("STG.E [R26.64+0x68], R0");
    w.put("EXIT");
    assemble(&w.lines)
}

/// What versions were made of.
#[derive(Default)]
struct Tally {
    versions: usize,
    equal: usize,
    branches: usize,
    apart: usize,
    off: usize,
    aligned: usize,
    converted: usize,
    skipped: usize,
    widened: usize,
}

/// Runs a seed before and after.
fn check(seed: u64, tally: &mut Tally) {
    let image = kernel(seed);
    let memory = Memory::new(1 << 24).expect("memory");
    let ctas = 2;
    let bytes = u64::from(ctas * THREADS) * 128;
    let own: Vec<u64> =
        [bytes, SHARED_BYTES, bytes].iter().map(|&n| memory.alloc(n).expect("alloc")).collect();
    let params = own.iter().flat_map(|a| a.to_le_bytes()).collect();
    let job = Job { image, entry: 0, shape: Shape::new([ctas, 1, 1], [THREADS, 1, 1]), params };
    let reset = || {
        for (k, &a) in own.iter().enumerate() {
            let size = if k == 1 { SHARED_BYTES } else { bytes };
            let data: Vec<u8> = (0..size).map(|n| (n * 7 + k as u64) as u8 & 15).collect();
            memory.write(a, &data).expect("write");
        }
    };
    let results = || {
        let mut all = vec![0; bytes as usize];
        let mut out = Vec::new();
        for &a in &[own[0], own[2]] {
            memory.read(a, &mut all).expect("read");
            out.extend_from_slice(&all);
        }
        out
    };
    let blocks = blocks_of(&job);
    reset();
    let program = Program::load(Arc::new(job.image.clone()), &memory, &|_| None).expect("load");
    let profiles = profile(&job, &blocks, &memory, &program, 1);
    reset();
    let before = run(&job.image, &job, &memory);
    let expected = results();
    let limits = Limits { registers: 32 + 8 * (seed % 4) as u32, code_bytes: 1 << 20, ..Limits::default() };
    let versions = versions(&blocks, &profiles, &limits);
    for only in 0..=versions.len() {
        // Each alone tells which one is wrong; then all of them.
        let chosen = if only == versions.len() { &versions[..] } else { &versions[only..=only] };
        let patched = patch(&job.image, 0, &blocks, chosen);
        reset();
        let after = run(&patched, &job, &memory);
        if (&before, &expected) != (&after, &results()) {
            let mut listing = String::new();
            for v in chosen {
                writeln!(listing, "block {} of\n{}", v.block, text::listing(&job.image.code)).expect("write");
                writeln!(listing, "became\n{}", text::listing(&v.place(0))).expect("write");
            }
            panic!("seed {seed}: {before:?} became {after:?}, results differ\n{listing}");
        }
    }
    tally.versions += versions.len();
    for a in versions.iter().flat_map(|v| &v.assumptions) {
        match a.kind {
            Kind::Equal(..) => tally.equal += 1,
            Kind::Branch { .. } => tally.branches += 1,
            Kind::Apart { .. } => tally.apart += 1,
            Kind::Off { .. } => tally.off += 1,
            Kind::Aligned { .. } => tally.aligned += 1,
        }
    }
    for d in versions.iter().flat_map(|v| &v.done) {
        match d {
            Done::Converted { .. } => tally.converted += 1,
            Done::Skipped { .. } => tally.skipped += 1,
            Done::Widened { .. } => tally.widened += 1,
        }
    }
}

#[test]
fn versions_leave_the_same_memory_and_registers() {
    let mut tally = Tally::default();
    (1..=SEEDS).for_each(|seed| check(seed, &mut tally));
    assert!(tally.versions as u64 > SEEDS / 2, "only {} versions were made", tally.versions);
    let kinds = [tally.equal, tally.branches, tally.apart, tally.off, tally.aligned];
    assert!(kinds.iter().all(|&n| n > 3), "assumptions of each kind: {kinds:?}");
    let done = [tally.converted, tally.skipped, tally.widened];
    assert!(done.iter().all(|&n| n > 3), "what was done: {done:?}");
}
