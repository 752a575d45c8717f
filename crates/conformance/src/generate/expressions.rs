//! Expressions: a tree of operations in temporaries, whose leaves are variables, loop counters, numbers and loads.

use super::{DOUBLE_VARS, FLOAT_VARS, Generator, LONG_VARS, RESULTS, UNIFORM_VARS, WORD_VARS, WORDS};

const NUMBERS: [u32; 16] =
    [0, 1, 2, 3, 4, 7, 8, 16, 31, 32, 100, 255, 0xffff, 0x8000_0000, 0xffff_ffff, 0x1234_5678];
const COMPARISONS: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];

impl Generator<'_> {
    pub(super) fn number(&mut self) -> u32 {
        match self.rng.below(3) {
            0 => self.rng.next() as u32,
            1 => self.rng.below(64),
            _ => self.rng.pick(&NUMBERS),
        }
    }

    fn word_leaf(&mut self) -> String {
        let common = |g: &mut Self| match g.rng.below(4) {
            0 => "%n".into(),
            1 => "%m".into(),
            _ => format!("%u{}", g.rng.below(UNIFORM_VARS)),
        };
        let only_uniform = self.only_uniform;
        let counters: Vec<String> =
            self.counters.iter().filter(|c| c.1 || !only_uniform).map(|c| c.0.clone()).collect();
        match self.rng.below(10) {
            0 | 1 if !counters.is_empty() => {
                let n = self.rng.below(counters.len() as u32);
                counters[n as usize].clone()
            }
            2 => (self.number() as i32).to_string(),
            3 => common(self),
            _ if self.only_uniform => common(self),
            4 => self.rng.pick(&["%tid", "%gid"]).into(),
            _ => format!("%a{}", self.rng.below(WORD_VARS)),
        }
    }

    /// The register or number that holds a word.
    pub(super) fn word(&mut self, depth: u32) -> String {
        if depth == 0 || self.rng.below(3) == 0 {
            return self.word_leaf();
        }
        if !self.only_uniform && self.rng.below(6) == 0 {
            return self.load_word();
        }
        let d = depth - 1;
        let t = self.temp('t');
        let text = match self.rng.below(22) {
            0..=6 => {
                let op = self.rng.pick(&[
                    "add.u32",
                    "sub.u32",
                    "mul.lo.u32",
                    "and.b32",
                    "or.b32",
                    "xor.b32",
                    "min.u32",
                    "max.s32",
                    "min.s32",
                    "mul.hi.u32",
                    "mul.hi.s32",
                    "max.u32",
                    "add.sat.s32",
                ]);
                let (a, b) = (self.word(d), self.word(d));
                format!("{op} {t}, {a}, {b}")
            }
            7 | 8 => {
                let op = self.rng.pick(&["shl.b32", "shr.u32", "shr.s32"]);
                let a = self.word(d);
                let b = if self.rng.below(4) > 0 { self.rng.below(33).to_string() } else { self.word(0) };
                format!("{op} {t}, {a}, {b}")
            }
            9 | 10 => {
                let op =
                    self.rng.pick(&["mad.lo.u32", "mad.lo.s32", "mad.hi.u32", "sad.s32", "dp4a.u32.u32"]);
                let (a, b, c) = (self.word(d), self.word(d), self.word(0));
                format!("{op} {t}, {a}, {b}, {c}")
            }
            11 => {
                let op = self.rng.pick(&[
                    "not.b32",
                    "neg.s32",
                    "abs.s32",
                    "popc.b32",
                    "clz.b32",
                    "brev.b32",
                    "bfind.u32",
                ]);
                let a = self.word(d);
                format!("{op} {t}, {a}")
            }
            12 => {
                let (p, a, b) = (self.predicate(d), self.word(d), self.word(0));
                format!("selp.b32 {t}, {a}, {b}, {p}")
            }
            13 => {
                let a = self.word(d);
                let (from, length) = (self.rng.below(32), self.rng.below(33));
                format!("bfe.{} {t}, {a}, {from}, {length}", self.rng.pick(&["u32", "s32"]))
            }
            14 => {
                let (a, b) = (self.word(d), self.word(0));
                format!("bfi.b32 {t}, {a}, {b}, {}, {}", self.rng.below(32), self.rng.below(33))
            }
            15 => {
                let (a, b, c) = (self.word(d), self.word(0), self.word(0));
                format!("lop3.b32 {t}, {a}, {b}, {c}, {}", self.rng.below(256))
            }
            16 => {
                let (a, b) = (self.word(d), self.word(0));
                format!("prmt.b32 {t}, {a}, {b}, {}", self.rng.below(0x8000))
            }
            17 => {
                let (a, b, c) = (self.word(d), self.word(0), self.rng.below(40));
                format!(
                    "shf.{}.b32 {t}, {a}, {b}, {c}",
                    self.rng.pick(&["l.wrap", "r.wrap", "l.clamp", "r.clamp"])
                )
            }
            18 if self.flavour.divisions => {
                let (a, b) = (self.word(d), self.word(0));
                let divisor = self.temp('t');
                emit!(self, "or.b32 {divisor}, {b}, 1");
                format!(
                    "{} {t}, {a}, {divisor}",
                    self.rng.pick(&["div.u32", "rem.u32", "div.s32", "rem.s32"])
                )
            }
            19 if self.flavour.floats && !self.only_uniform => {
                let a = self.float(d);
                format!("cvt.rzi.s32.f32 {t}, {a}")
            }
            20 if !self.only_uniform => {
                let a = self.long(d);
                let op = self.rng.pick(&[
                    "cvt.u32.u64 {t}, {a}",
                    "mov.b64 {{t}, _}, {a}",
                    "mov.b64 {_, {t}}, {a}",
                ]);
                if op.starts_with("cvt") {
                    format!("cvt.u32.u64 {t}, {a}")
                } else {
                    let other = self.temp('t');
                    let pair = if op.contains("_, {t}") { [other, t.clone()] } else { [t.clone(), other] };
                    format!("mov.b64 {{{}, {}}}, {a}", pair[0], pair[1])
                }
            }
            21 => {
                let a = self.word(d);
                let number = self.rng.below(50_000);
                let (n, k) = (self.rng.below(3), self.rng.below(3));
                emit!(self, "cvt.u16.u32 %s{n}, {a}");
                let op = self.rng.pick(&["add.u16", "mul.lo.u16", "xor.b16", "min.s16", "max.u16"]);
                emit!(self, "{op} %s{k}, %s{n}, {number}");
                format!("cvt.{} {t}, %s{k}", self.rng.pick(&["u32.u16", "s32.s16"]))
            }
            _ => {
                let (a, b) = (self.word(d), self.word(d));
                format!("add.u32 {t}, {a}, {b}")
            }
        };
        self.line(&text);
        t
    }

    /// A word at most `most`, a power of two less one, in a register.
    pub(super) fn index(&mut self, most: u32) -> String {
        let a = self.word(1);
        let t = self.temp('t');
        emit!(self, "and.b32 {t}, {a}, {most}");
        t
    }

    /// The address of an element of one of the arrays, in the many ways that programs write it: space, address.
    pub(super) fn word_place(&mut self, align: u32) -> (&'static str, String) {
        let global = |g: &mut Self, base: &str, elements: u32| {
            let i = g.index(elements / align - 1);
            let (w, scale) = (g.temp('w'), 4 * align);
            match g.rng.below(3) {
                0 => {
                    emit!(g, "mul.wide.u32 {w}, {i}, {scale}");
                    emit!(g, "add.u64 {w}, {w}, {base}");
                }
                1 => emit!(g, "mad.wide.s32 {w}, {i}, {scale}, {base}"),
                _ => {
                    emit!(g, "cvt.u64.u32 {w}, {i}");
                    emit!(g, "shl.b64 {w}, {w}, {}", scale.trailing_zeros());
                    emit!(g, "add.u64 {w}, {base}, {w}");
                }
            }
            w
        };
        let small = |g: &mut Self, base: &str, elements: u32| {
            if g.rng.below(3) == 0 {
                return format!("{base}+{}", g.rng.below(elements / align) * 4 * align);
            }
            let (i, t) = (g.index(elements / align - 1), g.temp('t'));
            emit!(g, "shl.b32 {t}, {i}, {}", (4 * align).trailing_zeros());
            let sum = g.temp('t');
            if base == "stack" {
                let address = g.temp('t');
                emit!(g, "mov.u32 {address}, stack");
                emit!(g, "add.u32 {sum}, {address}, {t}");
            } else {
                emit!(g, "add.u32 {sum}, {base}, {t}");
            }
            sum
        };
        match self.rng.below(4) {
            0 => {
                if self.rng.below(3) == 0 {
                    return ("global", format!("%own+{}", self.rng.below(16 / align) * 4 * align));
                }
                ("global", global(self, "%own", 16))
            }
            1 => ("shared", small(self, "%mine", 8)),
            2 => ("local", small(self, "stack", 16)),
            _ => {
                let w = global(self, "%in", WORDS / 2);
                let offset = self.rng.below(64) * 4 * align;
                ("input", format!("{w}+{offset}"))
            }
        }
    }

    fn load_word(&mut self) -> String {
        if self.in_function {
            return self.word_leaf();
        }
        let align = self.rng.pick(&[1, 1, 1, 1, 2, 4]);
        let (space, address) = self.word_place(align);
        let ld = match space {
            "input" if self.rng.below(2) == 0 => "ld.global.nc",
            "input" | "global" => "ld.global",
            "shared" => "ld.shared",
            _ => "ld.local",
        };
        let t = self.temp('t');
        match align {
            2 => {
                let u = self.temp('t');
                emit!(self, "{ld}.v2.u32 {{{t}, {u}}}, [{address}]");
                emit!(self, "add.u32 {t}, {t}, {u}");
            }
            4 => {
                let [u, v, w] = [0; 3].map(|_| self.temp('t'));
                emit!(self, "{ld}.v4.u32 {{{t}, {u}, {v}, {w}}}, [{address}]");
                emit!(self, "xor.b32 {t}, {t}, {w}");
                emit!(self, "lop3.b32 {t}, {t}, {u}, {v}, 150");
            }
            _ => {
                let kind = self.rng.pick(&["u32", "u32", "u32", "u32", "u16", "s16", "u8", "s8"]);
                emit!(self, "{ld}.{kind} {t}, [{address}]");
            }
        }
        t
    }

    /// A register with a truth value.
    pub(super) fn predicate(&mut self, depth: u32) -> String {
        let p = self.temp('p');
        let cmp = self.rng.pick(&COMPARISONS);
        let d = depth.min(2);
        match self.rng.below(8) {
            0 if !self.only_uniform => {
                let (a, b) = (self.long(d), self.long(0));
                let kind = self.rng.pick(&["u64", "s64"]);
                emit!(self, "setp.{cmp}.{kind} {p}, {a}, {b}");
            }
            1 if self.flavour.floats && !self.only_uniform => {
                let (a, b) = (self.float(d), self.float(0));
                let cmp = self.rng.pick(&["eq", "lt", "ge", "gt", "ltu", "neu"]);
                emit!(self, "setp.{cmp}.f32 {p}, {a}, {b}");
            }
            2 if depth > 0 => {
                let q = self.predicate(depth - 1);
                let (a, b) = (self.word(d), self.word(0));
                let with = self.rng.pick(&["and", "or", "xor"]);
                emit!(self, "setp.{cmp}.{with}.u32 {p}, {a}, {b}, {q}");
            }
            3 if depth > 0 => {
                let (q, r) = (self.predicate(depth - 1), self.predicate(depth - 1));
                let op = self.rng.pick(&["and", "or", "xor"]);
                emit!(self, "{op}.pred {p}, {q}, {r}");
            }
            4 if depth > 0 => {
                let q = self.predicate(depth - 1);
                emit!(self, "not.pred {p}, {q}");
            }
            5 => {
                // True for some lanes, or some iterations.
                let (a, t) = (self.word(d), self.temp('t'));
                let (mask, number) = (self.rng.pick(&[1u32, 2, 3, 7]), self.rng.below(2));
                emit!(self, "and.b32 {t}, {a}, {mask}");
                emit!(self, "setp.{cmp}.u32 {p}, {t}, {number}");
            }
            _ => {
                let (a, b) = (self.word(d), self.word(0));
                let kind = self.rng.pick(&["u32", "s32"]);
                emit!(self, "setp.{cmp}.{kind} {p}, {a}, {b}");
            }
        }
        p
    }

    /// A register with a long.
    pub(super) fn long(&mut self, depth: u32) -> String {
        if depth == 0 || self.rng.below(3) == 0 {
            return format!("%l{}", self.rng.below(LONG_VARS));
        }
        let d = depth - 1;
        let w = self.temp('w');
        let text = match self.rng.below(12) {
            0..=2 => {
                let op = self.rng.pick(&[
                    "add.u64",
                    "sub.u64",
                    "and.b64",
                    "or.b64",
                    "xor.b64",
                    "mul.lo.u64",
                    "min.u64",
                    "max.s64",
                    "mul.hi.u64",
                ]);
                let (a, b) = (self.long(d), self.long(d));
                format!("{op} {w}, {a}, {b}")
            }
            3 => {
                let op =
                    self.rng.pick(&["add.s64", "and.b64", "xor.b64", "mul.lo.s64", "min.s64", "sub.s64"]);
                let a = self.long(d);
                let number = match self.rng.below(3) {
                    0 => self.rng.next() as i64,
                    1 => i64::from(self.rng.below(4096)),
                    _ => -i64::from(self.rng.below(16)) - 1,
                };
                format!("{op} {w}, {a}, {number}")
            }
            4 | 5 => {
                let op = self.rng.pick(&["shl.b64", "shr.u64", "shr.s64"]);
                let (a, by) = (self.long(d), self.rng.below(66));
                format!("{op} {w}, {a}, {by}")
            }
            6 => {
                let a = self.word(d);
                format!("cvt.{} {w}, {}", self.rng.pick(&["u64.u32", "s64.s32"]), self.in_register(a))
            }
            7 => {
                let (a, b) = (self.word(d), self.word(0));
                format!("mul.wide.{} {w}, {a}, {b}", self.rng.pick(&["u32", "s32"]))
            }
            8 => {
                let (a, b, c) = (self.word(d), self.word(0), self.long(0));
                format!("mad.wide.{} {w}, {a}, {b}, {c}", self.rng.pick(&["u32", "s32"]))
            }
            9 => {
                let (p, a, b) = (self.predicate(d), self.long(d), self.long(0));
                format!("selp.b64 {w}, {a}, {b}, {p}")
            }
            10 => {
                let (a, b) = (self.word(d), self.word(0));
                let (a, b) = (self.in_register(a), self.in_register(b));
                format!("mov.b64 {w}, {{{a}, {b}}}")
            }
            _ => {
                let op = self.rng.pick(&["not.b64", "neg.s64", "abs.s64", "brev.b64"]);
                let a = self.long(d);
                format!("{op} {w}, {a}")
            }
        };
        self.line(&text);
        w
    }

    /// The operand as a register.
    pub(super) fn in_register(&mut self, operand: String) -> String {
        if operand.starts_with('%') {
            return operand;
        }
        let t = self.temp('t');
        emit!(self, "mov.u32 {t}, {operand}");
        t
    }

    fn float_number(&mut self) -> String {
        let x = match self.rng.below(3) {
            0 => self.rng.pick(&[0.0f32, -0.0, 1.0, 2.0, 0.5, -1.0]),
            _ => self.rng.below(2000) as f32 / 256.0 - 4.0,
        };
        format!("0f{:08X}", x.to_bits())
    }

    /// A register or number with a float.
    pub(super) fn float(&mut self, depth: u32) -> String {
        if depth == 0 || self.rng.below(4) == 0 {
            return match self.rng.below(5) {
                0 => self.float_number(),
                _ => format!("%f{}", self.rng.below(FLOAT_VARS)),
            };
        }
        let d = depth - 1;
        let x = self.temp('x');
        let text = match self.rng.below(16) {
            // Without a rounding, products and sums may fuse.
            0..=5 => {
                let op =
                    self.rng.pick(&["add.f32", "mul.f32", "sub.f32", "mul.f32", "add.rn.f32", "mul.rn.f32"]);
                let (a, b) = (self.float(d), self.float(d));
                format!("{op} {x}, {a}, {b}")
            }
            6 | 7 => {
                let (a, b, c) = (self.float(d), self.float(d), self.float(0));
                format!(
                    "{} {x}, {a}, {b}, {c}",
                    self.rng.pick(&["fma.rn.f32", "fma.rz.f32", "fma.rn.sat.f32"])
                )
            }
            8 => {
                let op = self.rng.pick(&["min.f32", "max.f32", "add.rz.f32", "mul.rp.f32", "add.sat.f32"]);
                let (a, b) = (self.float(d), self.float(0));
                format!("{op} {x}, {a}, {b}")
            }
            9 => {
                let a = self.float(d);
                format!("{} {x}, {a}", self.rng.pick(&["neg.f32", "abs.f32", "cvt.rmi.f32.f32"]))
            }
            10 => {
                let (p, a, b) = (self.predicate(d), self.float(d), self.float(0));
                format!("selp.f32 {x}, {a}, {b}, {p}")
            }
            11 => {
                let a = self.word(d);
                let a = self.in_register(a);
                format!("cvt.rn.f32.{} {x}, {a}", self.rng.pick(&["s32", "u32"]))
            }
            12 | 13 if !self.in_function => {
                self.load_float(&x);
                return x;
            }
            14 if self.flavour.divisions => {
                let (a, b) = (self.float(d), self.float(0));
                let op = self.rng.pick(&["div.rn.f32", "div.approx.f32", "div.full.f32"]);
                format!("{op} {x}, {a}, {b}")
            }
            15 if !self.in_function => {
                // Approximations of constants are folded to the nearest float from level 1 on, as NVIDIA's assembler does: what is
                // read from memory is no constant.
                let (a, read, sum) = (self.float(d), self.temp('x'), self.temp('x'));
                self.load_input(&read);
                emit!(self, "add.rn.f32 {sum}, {a}, {read}");
                let op = self.rng.pick(&[
                    "ex2.approx.f32",
                    "sqrt.approx.f32",
                    "rcp.approx.f32",
                    "sqrt.rn.f32",
                    "ex2.approx.ftz.f32",
                    "sin.approx.f32",
                    "lg2.approx.f32",
                    "rsqrt.approx.f32",
                ]);
                format!("{op} {x}, {sum}")
            }
            _ if self.flavour.doubles => {
                let a = self.double(d);
                format!("cvt.rn.f32.f64 {x}, {a}")
            }
            _ => {
                let (a, b) = (self.float(d), self.float(0));
                format!("add.f32 {x}, {a}, {b}")
            }
        };
        self.line(&text);
        x
    }

    fn load_float(&mut self, x: &str) {
        let (space, address) = match self.rng.below(3) {
            0 => ("local", format!("stack+{}", 64 + 4 * self.rng.below(16))),
            1 => {
                let (i, t) = (self.index(7), self.temp('t'));
                emit!(self, "mad.lo.u32 {t}, {i}, 4, %mine");
                ("shared", format!("{t}+32"))
            }
            _ => return self.load_input(x),
        };
        emit!(self, "ld.{space}.f32 {x}, [{address}]");
    }

    fn load_input(&mut self, x: &str) {
        let (i, w) = (self.index(WORDS / 2 - 1), self.temp('w'));
        emit!(self, "mad.wide.u32 {w}, {i}, 4, %in");
        emit!(self, "ld.global.f32 {x}, [{w}+{}]", 4 * WORDS + 4 * self.rng.below(128));
    }

    /// A register with a double.
    pub(super) fn double(&mut self, depth: u32) -> String {
        if depth == 0 || self.rng.below(3) == 0 {
            return format!("%d{}", self.rng.below(DOUBLE_VARS));
        }
        let d = depth - 1;
        let y = self.temp('y');
        let text = match self.rng.below(8) {
            0..=2 => {
                let op =
                    self.rng.pick(&["add.f64", "mul.f64", "sub.f64", "add.rn.f64", "min.f64", "max.f64"]);
                let (a, b) = (self.double(d), self.double(d));
                format!("{op} {y}, {a}, {b}")
            }
            3 => {
                let (a, b, c) = (self.double(d), self.double(0), self.double(0));
                format!("fma.rn.f64 {y}, {a}, {b}, {c}")
            }
            4 => {
                let a = self.float(d);
                let x = self.temp('x');
                emit!(self, "mov.f32 {x}, {a}");
                format!("cvt.f64.f32 {y}, {x}")
            }
            5 => {
                let a = self.double(d);
                let number = f64::from(self.rng.below(100)) / 8.0 - 3.0;
                format!("{} {y}, {a}, 0d{:016X}", self.rng.pick(&["mul.f64", "add.f64"]), number.to_bits())
            }
            6 if !self.in_function => {
                let (i, w) = (self.index(WORDS / 2 - 1), self.temp('w'));
                emit!(self, "mad.wide.u32 {w}, {i}, 8, %in");
                format!("ld.global.f64 {y}, [{w}+{}]", 8 * WORDS)
            }
            _ => {
                let a = self.long(d);
                format!("cvt.rn.f64.s64 {y}, {a}")
            }
        };
        self.line(&text);
        y
    }

    /// The bits of a float, of any NaN the same ones.
    pub(super) fn float_bits(&mut self, float: &str) -> String {
        let (t, p) = (self.temp('t'), self.temp('p'));
        emit!(self, "setp.nan.f32 {p}, {float}, {float}");
        emit!(self, "mov.b32 {t}, {float}");
        emit!(self, "selp.b32 {t}, 0x7fffffff, {t}, {p}");
        t
    }

    pub(super) fn double_bits(&mut self, double: &str) -> String {
        let (w, p) = (self.temp('w'), self.temp('p'));
        emit!(self, "setp.nan.f64 {p}, {double}, {double}");
        emit!(self, "mov.b64 {w}, {double}");
        emit!(self, "selp.b64 {w}, -1, {w}, {p}");
        w
    }

    /// Where own floats lie in own memory.
    pub(super) fn own_float(&mut self) -> u32 {
        RESULTS / 2 + 4 * self.rng.below(16)
    }
}
