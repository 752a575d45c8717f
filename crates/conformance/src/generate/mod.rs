//! Random structured kernels as PTX text: loops, branches, switches, early exits, arrays in every memory, integers and
//! floats of both sizes, calls, collectives and atomics.
//!
//! A seed is a kernel. Each statement draws from numbers of its own, so leaving some out ([`kernel_without`]) does not
//! change the others: what is left of a kernel that shows a bug is still a kernel.
//!
//! Results depend on nothing but the seed: every register is set before it is read, threads write only what is theirs
//! between barriers, atomics do not care about order, collectives stand where the warp is whole, loops end, and
//! a NaN is stored as one fixed pattern, because which one it is may change with the order of operations.

/// One line of code, formatted: what it is made of may draw numbers from the generator.
macro_rules! emit {
    ($g:expr, $($text:tt)*) => {{
        let text = format!($($text)*);
        $g.line(&text)
    }};
}

mod expressions;
mod statements;

use std::collections::BTreeSet;
use std::fmt::Write;

/// Threads of a CTA, CTAs of the launch.
pub const THREADS: u32 = 64;
pub const CTAS: u32 = 2;
/// Bytes of memory that a thread owns, results at their end.
pub const OWN_BYTES: u32 = 256;
/// Where the results begin in it. Before them: words, then floats.
const RESULTS: u32 = 128;
/// Words that all threads count in.
pub const SUMS: u32 = 16;
/// Input: words, then as many floats, then half as many doubles.
pub const WORDS: u32 = 1024;

/// The most iterations of all loops around a statement together.
const MAX_TRIPS: u64 = 200;

/// A kernel named `kernel` with parameters input, own memory, sums (addresses), and two numbers.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub text: String,
    /// Whether it computes with floats.
    pub has_floats: bool,
    pub has_loops: bool,
    /// What can be left out.
    pub statements: Vec<u64>,
}

/// The kernel of a seed.
pub fn kernel(seed: u64) -> Kernel {
    kernel_without(seed, &BTreeSet::new())
}

/// The kernel of a seed, its statements in a loop of so many rounds with barriers in it.
pub fn kernel_in_rounds(seed: u64, rounds: u32) -> Kernel {
    make(seed, &BTreeSet::new(), Some(rounds))
}

/// The kernel of a seed without some of its statements.
pub fn kernel_without(seed: u64, skip: &BTreeSet<u64>) -> Kernel {
    make(seed, skip, None)
}

fn make(seed: u64, skip: &BTreeSet<u64>, rounds: Option<u32>) -> Kernel {
    let mut rng = Rng(driver::init::splitmix(0x9e4e, seed));
    let mut flavour = Flavour {
        floats: rng.below(3) > 0,
        doubles: rng.below(4) == 0,
        exits: rng.below(4) == 0,
        calls: rng.below(4) == 0,
        divisions: rng.below(3) == 0,
    };
    flavour.doubles &= flavour.floats;
    // Whoever has ended does not come to barriers.
    flavour.exits &= rounds.is_none();
    let statements = 4 + rng.below(22);
    let mut text = ".version 8.0\n.target sm_90\n.address_size 64\n\n".to_owned();
    let mut kernel =
        Kernel { text: String::new(), has_floats: flavour.floats, has_loops: false, statements: Vec::new() };
    if flavour.calls {
        let mut g =
            Generator::new(seed, skip, Flavour { calls: false, exits: false, ..flavour }, &mut kernel);
        g.in_function = true;
        g.function(&mut text);
    }
    let mut g = Generator::new(seed, skip, flavour, &mut kernel);
    g.entry(&mut text, statements, rounds);
    kernel.text = text;
    kernel
}

/// What a kernel is made of.
#[derive(Clone, Copy)]
struct Flavour {
    floats: bool,
    doubles: bool,
    /// Threads may end early; such kernels have no barriers and collectives.
    exits: bool,
    calls: bool,
    divisions: bool,
}

#[derive(Clone, Copy)]
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        driver::init::splitmix(self.0, 1)
    }

    /// A number below `n`.
    fn below(&mut self, n: u32) -> u32 {
        (self.next() >> 33) as u32 % n.max(1)
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u32) as usize]
    }
}

/// Registers of a kind that statements assign: `%a0`, `%a1`, ...
const WORD_VARS: u32 = 7;
const UNIFORM_VARS: u32 = 3;
const LONG_VARS: u32 = 4;
const FLOAT_VARS: u32 = 5;
const DOUBLE_VARS: u32 = 3;

struct Generator<'a> {
    seed: u64,
    skip: &'a BTreeSet<u64>,
    flavour: Flavour,
    kernel: &'a mut Kernel,
    rng: Rng,
    body: String,
    /// The statement being made.
    id: u64,
    temps: [u32; 5],
    labels: u32,
    tables: String,
    /// Counters of the loops around, and whether all lanes have the same.
    counters: Vec<(String, bool)>,
    counters_made: u32,
    /// Iterations of the loops around, at most.
    trips: u64,
    /// All lanes of the CTA run this together.
    uniform: bool,
    /// Expressions may read only what all lanes have in common.
    only_uniform: bool,
    in_function: bool,
    depth: u32,
}

impl<'a> Generator<'a> {
    fn new(seed: u64, skip: &'a BTreeSet<u64>, flavour: Flavour, kernel: &'a mut Kernel) -> Generator<'a> {
        Generator {
            seed,
            skip,
            flavour,
            kernel,
            rng: Rng(seed),
            body: String::new(),
            id: 0,
            temps: [0; 5],
            labels: 0,
            tables: String::new(),
            counters: Vec::new(),
            counters_made: 0,
            trips: 1,
            uniform: true,
            only_uniform: false,
            in_function: false,
            depth: 0,
        }
    }

    /// One line of code.
    fn line(&mut self, text: &str) {
        for _ in 0..=self.depth {
            self.body.push_str("  ");
        }
        let _ = writeln!(self.body, "{text};");
    }

    fn label(&mut self, name: &str) {
        let _ = writeln!(self.body, "{name}:");
    }

    fn new_label(&mut self) -> String {
        self.labels += 1;
        format!("{}_{}", if self.in_function { "F" } else { "L" }, self.labels)
    }

    /// A fresh register: `t` word, `w` long, `x` float, `y` double, `p` predicate.
    fn temp(&mut self, kind: char) -> String {
        let n = &mut self.temps["twxyp".find(kind).unwrap_or(0)];
        *n += 1;
        format!("%{kind}{}", *n)
    }

    fn registers(&self) -> String {
        let [t, w, x, y, p] = self.temps.map(|n| n + 1);
        let mut out = format!(
            "  .reg .pred %p<{p}>;\n  .reg .b32 %t<{t}>, %a<{WORD_VARS}>, %u<{UNIFORM_VARS}>, %c<{}>;\n",
            self.counters_made + 1
        );
        let _ = writeln!(out, "  .reg .b64 %w<{w}>, %l<{LONG_VARS}>, %in, %own, %sums;");
        out += "  .reg .b32 %tid, %gid, %n, %m, %mine;\n  .reg .b16 %s<4>;\n";
        let _ = writeln!(out, "  .reg .f32 %x<{x}>, %f<{FLOAT_VARS}>;");
        let _ = writeln!(out, "  .reg .f64 %y<{y}>, %d<{DOUBLE_VARS}>;");
        out
    }

    /// The device function `helper` of two words.
    fn function(&mut self, text: &mut String) {
        for l in [
            "ld.param.u32 %tid, [helper_a]",
            "ld.param.u32 %gid, [helper_b]",
            "mov.u32 %n, 5",
            "mov.u32 %m, 11",
        ] {
            self.line(l);
        }
        self.initialise();
        self.uniform = false;
        let count = 2 + self.rng.below(5);
        self.statements(u64::MAX / 3, count);
        self.line("xor.b32 %a0, %a0, %a1");
        if self.flavour.floats {
            let bits = self.float_bits("%f0");
            emit!(self, "xor.b32 %a0, %a0, {bits}");
        }
        self.line("st.param.b32 [helper_r], %a0");
        self.line("ret");
        let _ = write!(
            text,
            ".func (.param .b32 helper_r) helper(.param .b32 helper_a, .param .b32 helper_b)\n{{\n{}{}{}}}\n\n",
            self.registers(),
            self.tables,
            self.body
        );
    }

    fn entry(&mut self, text: &mut String, statements: u32, rounds: Option<u32>) {
        let lines = [
            "ld.param.u64 %in, [kernel_in]",
            "ld.param.u64 %own, [kernel_own]",
            "ld.param.u64 %sums, [kernel_sums]",
            "ld.param.u32 %n, [kernel_n]",
            "ld.param.u32 %m, [kernel_m]",
            "cvta.to.global.u64 %in, %in",
            "cvta.to.global.u64 %own, %own",
            "cvta.to.global.u64 %sums, %sums",
            "mov.u32 %tid, %tid.x",
            "mov.u32 %gid, %ctaid.x",
            &format!("mad.lo.u32 %gid, %gid, {THREADS}, %tid"),
            &format!("mul.wide.u32 %w0, %gid, {OWN_BYTES}"),
            "add.u64 %own, %own, %w0",
            "mov.u32 %mine, slots",
            "mad.lo.u32 %mine, %tid, 64, %mine",
        ];
        lines.iter().for_each(|l| self.line(l));
        self.initialise();
        self.initialise_arrays();
        self.rng = Rng(self.seed);
        match rounds {
            None => self.statements(1, statements),
            Some(rounds) => self.rounds(statements, rounds),
        }
        self.store_results();
        self.line("ret");
        let _ = write!(
            text,
            ".visible .entry kernel(.param .u64 kernel_in, .param .u64 kernel_own, .param .u64 kernel_sums, \
             .param .u32 kernel_n, .param .u32 kernel_m)\n{{\n  .local .align 16 .b8 stack[128];\n  \
             .shared .align 16 .b8 slots[{}];\n  .shared .align 16 .b8 exchange[{}];\n{}{}{}}}\n",
            THREADS * 64,
            THREADS * 8,
            self.registers(),
            self.tables,
            self.body
        );
    }

    /// Statements in a loop that all threads run together, barriers between them.
    fn rounds(&mut self, statements: u32, rounds: u32) {
        let (round, top, again) = (self.temp('t'), self.new_label(), self.temp('p'));
        self.kernel.has_loops = true;
        self.trips = u64::from(rounds);
        emit!(self, "mov.u32 {round}, 0");
        self.label(&top);
        self.statements(1, statements.div_ceil(2));
        self.line("bar.sync 0");
        self.statements(2, statements / 2);
        self.exchange();
        self.line("bar.sync 0");
        emit!(self, "add.u32 {round}, {round}, 1");
        emit!(self, "setp.lt.u32 {again}, {round}, {rounds}");
        emit!(self, "@{again} bra {top}");
        self.trips = 1;
    }

    /// Gives every variable a value.
    fn initialise(&mut self) {
        for k in 0..WORD_VARS {
            let l = match k % 4 {
                0 => format!("mad.lo.u32 %a{k}, %tid, {}, {}", 3 + k * 1001, k * 77),
                1 => format!("xor.b32 %a{k}, %gid, {}", 0x9e37 * k),
                2 => format!("mov.u32 %a{k}, {}", 0xfff0 + k),
                _ => format!("add.u32 %a{k}, %n, %tid"),
            };
            self.line(&l);
        }
        for k in 0..UNIFORM_VARS {
            let l = if k == 0 { "mov.u32 %u0, %m".into() } else { format!("add.u32 %u{k}, %n, {}", k * 13) };
            self.line(&l);
        }
        for k in 0..LONG_VARS {
            let l = match k % 2 {
                0 => format!("mul.wide.u32 %l{k}, %a{k}, {}", 0x8765_4321u32),
                _ => format!("cvt.s64.s32 %l{k}, %a{k}"),
            };
            self.line(&l);
        }
        if self.flavour.floats {
            for k in 0..FLOAT_VARS {
                emit!(self, "cvt.rn.f32.s32 %f{k}, %{}", if k % 2 == 0 { "tid" } else { "n" });
                emit!(self, "mul.rn.f32 %f{k}, %f{k}, 0f3D{}00000", k + 1);
            }
        }
        if self.flavour.doubles {
            for k in 0..DOUBLE_VARS {
                emit!(self, "cvt.f64.f32 %d{k}, %f{k}");
            }
        }
    }

    /// Words and floats of the thread's memories; own memory comes filled.
    fn initialise_arrays(&mut self) {
        let (pointer, i, p) = (self.temp('t'), self.temp('t'), self.temp('p'));
        for (base, start) in [("st.local", "stack".to_owned()), ("st.shared", "%mine".to_owned())] {
            let loop_ = self.new_label();
            emit!(self, "mov.u32 {pointer}, {start}");
            emit!(self, "mov.u32 {i}, 0");
            self.label(&loop_);
            emit!(self, "{base}.u32 [{pointer}], {i}");
            emit!(self, "add.u32 {pointer}, {pointer}, 4");
            emit!(self, "add.u32 {i}, {i}, 1");
            emit!(self, "setp.lt.u32 {p}, {i}, 16");
            emit!(self, "@{p} bra {loop_}");
        }
        // Floats: the second half of both.
        for k in 16..32 {
            emit!(self, "st.local.f32 [stack+{}], 0f3F{k}0000", k * 4);
        }
        for k in 8..16 {
            emit!(self, "st.shared.f32 [%mine+{}], 0f40{}0000", k * 4, k + 10);
        }
    }

    /// Writes all variables to the thread's results.
    fn store_results(&mut self) {
        let mut at = RESULTS;
        let mut put = |g: &mut Self, kind: &str, reg: &str, size: u32| {
            at = at.next_multiple_of(size);
            emit!(g, "st.global.{kind} [%own+{at}], {reg}");
            at += size;
        };
        for k in 0..LONG_VARS {
            put(self, "u64", &format!("%l{k}"), 8);
        }
        for k in 0..WORD_VARS {
            put(self, "u32", &format!("%a{k}"), 4);
        }
        for k in 0..UNIFORM_VARS {
            put(self, "u32", &format!("%u{k}"), 4);
        }
        if self.flavour.floats {
            for k in 0..FLOAT_VARS {
                let bits = self.float_bits(&format!("%f{k}"));
                put(self, "u32", &bits, 4);
            }
        }
        if self.flavour.doubles {
            for k in 0..DOUBLE_VARS {
                let bits = self.double_bits(&format!("%d{k}"));
                put(self, "u64", &bits, 8);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_kernel() {
        assert_eq!(kernel(7).text, kernel(7).text);
        assert_ne!(kernel(7).text, kernel(8).text);
    }

    #[test]
    fn leaving_a_statement_out_leaves_the_others() {
        let whole = kernel(12);
        let last = *whole.statements.last().expect("statements");
        let less = kernel_without(12, &BTreeSet::from([last]));
        assert!(less.text.len() < whole.text.len());
        assert_eq!(less.statements.len() + 1, whole.statements.len());
    }
}
