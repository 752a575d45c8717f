//! Statements: assignments, stores, branches, loops, switches, exits, calls, collectives, atomics and exchanges between threads.

use super::{
    DOUBLE_VARS, FLOAT_VARS, Generator, LONG_VARS, MAX_TRIPS, RESULTS, Rng, SUMS, THREADS, UNIFORM_VARS,
    WORD_VARS, WORDS,
};

/// How deep branches and loops nest.
const MAX_DEPTH: u32 = 4;

impl Generator<'_> {
    /// Statements in a row, each with numbers of its own.
    pub(super) fn statements(&mut self, parent: u64, count: u32) {
        let (rng, id) = (self.rng, self.id);
        for n in 0..count {
            self.id = driver::init::splitmix(parent, u64::from(n) + 1);
            if self.skip.contains(&self.id) {
                continue;
            }
            self.kernel.statements.push(self.id);
            self.rng = Rng(driver::init::splitmix(self.seed, self.id));
            self.statement();
        }
        (self.rng, self.id) = (rng, id);
    }

    /// A body one level deeper.
    fn nested(&mut self, count: u32) {
        self.depth += 1;
        let which = self.rng.next();
        let (parent, rng) = (self.id ^ which, self.rng);
        self.statements(parent, count);
        self.rng = rng;
        self.depth -= 1;
    }

    fn statement(&mut self) {
        let deeper = self.depth < MAX_DEPTH;
        let together = self.uniform && !self.flavour.exits && !self.in_function;
        match self.rng.below(30) {
            0..=5 => self.assign_word(),
            6..=8 => self.assign_long(),
            9..=12 if self.flavour.floats => self.assign_float(),
            13 if self.flavour.doubles => self.assign_double(),
            14..=16 if !self.in_function => self.store(),
            17 | 18 if deeper => self.branch(),
            19..=21 if deeper => self.counted_loop(),
            22 if !self.in_function => self.walk(),
            23 if deeper => self.switch(),
            24 if together => self.collective(),
            25 if together && self.depth < 2 => self.exchange(),
            26 if !self.in_function => self.atomic(),
            27 if self.flavour.calls => self.call(),
            28 if self.flavour.exits => self.exit(),
            29 if self.uniform => self.assign_uniform(),
            _ => self.assign_word(),
        }
    }

    fn assign_word(&mut self) {
        let to = format!("%a{}", self.rng.below(WORD_VARS));
        if self.rng.below(4) == 0 {
            let (p, a, b) = (self.predicate(1), self.word(2), self.word(0));
            let (op, not) =
                (self.rng.pick(&["add.u32", "xor.b32", "sub.u32", "mul.lo.u32"]), self.rng.pick(&["", "!"]));
            return emit!(self, "@{not}{p} {op} {to}, {a}, {b}");
        }
        let depth = 1 + self.rng.below(3);
        let value = self.word(depth);
        if self.rng.below(2) == 0 {
            return emit!(self, "add.u32 {to}, {to}, {value}");
        }
        emit!(self, "mov.u32 {to}, {value}");
    }

    fn assign_uniform(&mut self) {
        self.only_uniform = true;
        let value = self.word(2);
        self.only_uniform = false;
        emit!(self, "mov.u32 %u{}, {value}", self.rng.below(UNIFORM_VARS));
    }

    fn assign_long(&mut self) {
        let to = format!("%l{}", self.rng.below(LONG_VARS));
        let value = self.long(3);
        match self.rng.below(4) {
            0 => emit!(self, "add.u64 {to}, {to}, {value}"),
            1 => {
                let p = self.predicate(1);
                emit!(self, "@{p} xor.b64 {to}, {to}, {value}");
            }
            _ => emit!(self, "mov.u64 {to}, {value}"),
        }
    }

    fn assign_float(&mut self) {
        let to = format!("%f{}", self.rng.below(FLOAT_VARS));
        let depth = 1 + self.rng.below(3);
        let value = self.float(depth);
        match self.rng.below(4) {
            0 => emit!(self, "add.f32 {to}, {to}, {value}"),
            1 => {
                let p = self.predicate(1);
                emit!(self, "@{p} sub.f32 {to}, {to}, {value}");
            }
            2 => {
                let other = self.float(1);
                emit!(self, "mul.f32 {to}, {value}, {other}");
            }
            _ => emit!(self, "mov.f32 {to}, {value}"),
        }
    }

    fn assign_double(&mut self) {
        let value = self.double(3);
        emit!(self, "mov.f64 %d{}, {value}", self.rng.below(DOUBLE_VARS));
    }

    /// Stores, alone or several neighbours, guarded or not; never to the input.
    fn store(&mut self) {
        if self.flavour.floats && self.rng.below(4) == 0 {
            return self.store_float();
        }
        let align = self.rng.pick(&[1, 1, 1, 2, 4]);
        let (space, address) = loop {
            let place = self.word_place(align);
            if place.0 != "input" {
                break place;
            }
        };
        let guard = if self.rng.below(5) == 0 { format!("@{} ", self.predicate(1)) } else { String::new() };
        if self.rng.below(3) == 0 {
            // Neighbours one by one: they may be merged, and read again behind.
            for k in 0..align {
                let value = self.word(1);
                let value = self.in_register(value);
                let offset = if address.contains('+') { String::new() } else { format!("+{}", 4 * k) };
                emit!(self, "{guard}st.{space}.u32 [{address}{offset}], {value}");
            }
            return;
        }
        let values: Vec<String> = (0..align)
            .map(|_| {
                let value = self.word(1);
                self.in_register(value)
            })
            .collect();
        match align {
            1 => {
                let kind = self.rng.pick(&["u32", "u32", "u32", "u16", "u8"]);
                emit!(self, "{guard}st.{space}.{kind} [{address}], {}", values[0]);
            }
            _ => emit!(self, "{guard}st.{space}.v{align}.u32 [{address}], {{{}}}", values.join(", ")),
        }
    }

    fn store_float(&mut self) {
        let value = self.float(2);
        let x = self.temp('x');
        emit!(self, "mov.f32 {x}, {value}");
        match self.rng.below(3) {
            0 => {
                let at = self.own_float();
                let bits = self.float_bits(&x);
                emit!(self, "st.global.u32 [%own+{at}], {bits}");
            }
            1 => emit!(self, "st.shared.f32 [%mine+{}], {x}", 32 + 4 * self.rng.below(8)),
            _ => emit!(self, "st.local.f32 [stack+{}], {x}", 64 + 4 * self.rng.below(16)),
        }
    }

    /// A condition, and whether all lanes agree on it.
    fn condition(&mut self) -> (String, bool) {
        let uniform = self.rng.below(3) == 0;
        self.only_uniform = uniform;
        let p = self.predicate(2);
        self.only_uniform = false;
        (p, uniform)
    }

    fn branch(&mut self) {
        let (p, uniform) = self.condition();
        let (end, otherwise) = (self.new_label(), self.new_label());
        let was = self.uniform;
        self.uniform &= uniform;
        let (long, short) = (1 + self.rng.below(4), 1 + self.rng.below(3));
        let has_else = self.rng.below(2) == 0;
        emit!(
            self,
            "@!{p} bra{} {}",
            if uniform && was && self.rng.below(2) == 0 { ".uni" } else { "" },
            if has_else { &otherwise } else { &end }
        );
        self.nested(long);
        if has_else {
            emit!(self, "bra {end}");
            self.label(&otherwise);
            self.nested(short);
        }
        self.label(&end);
        self.uniform = was;
    }

    /// A loop with a counter: up or down, tested at its top or end, known or not, with or without another way out.
    fn counted_loop(&mut self) {
        self.counters_made += 1;
        let counter = format!("%c{}", self.counters_made);
        let room = MAX_TRIPS / self.trips;
        if room < 2 {
            return self.assign_word();
        }
        self.kernel.has_loops = true;
        let most = room.min(u64::from(self.rng.pick(&[3u32, 4, 8, 16, 17, 40]))) as u32;
        let step = self.rng.pick(&[1u32, 1, 1, 2, 3]);
        let start = self.rng.pick(&[0u32, 0, 0, 1, 5]);
        // Where the counter goes, and whether all lanes agree.
        let (limit, uniform, at_least_one) = match self.rng.below(3) {
            0 => ((start + step * (1 + self.rng.below(most))).to_string(), true, true),
            kind => {
                let uniform = kind == 1;
                let mask = most.next_power_of_two() / 2;
                self.only_uniform = uniform;
                let t = self.index(mask.max(2) - 1);
                self.only_uniform = false;
                let sum = self.temp('t');
                emit!(self, "mad.lo.u32 {sum}, {t}, {step}, {start}");
                (sum, uniform, false)
            }
        };
        let leaves = self.rng.below(4) == 0;
        let (was, trips) = (self.uniform, self.trips);
        self.uniform &= uniform && !leaves;
        self.trips *= u64::from(most) + 1;
        let (top, next, end, p) = (self.new_label(), self.new_label(), self.new_label(), self.temp('p'));
        let down = self.rng.below(4) == 0;
        let kind = self.rng.pick(&["s32", "u32"]);
        let (first, last) =
            if down { (&limit, start.to_string()) } else { (&start.to_string(), limit.clone()) };
        emit!(self, "mov.u32 {counter}, {first}");
        let test_top = self.rng.below(2) == 0;
        let (go_on, stop) = match (down, step == 1 && self.rng.below(2) == 0) {
            (_, true) => ("ne", "eq"),
            (false, _) => ("lt", "ge"),
            (true, _) => ("gt", "le"),
        };
        if test_top {
            self.label(&top);
        }
        if test_top || !at_least_one {
            emit!(self, "setp.{stop}.{kind} {p}, {counter}, {last}");
            emit!(self, "@{p} bra {end}");
        }
        if !test_top {
            self.label(&top);
        }
        self.counters.push((counter.clone(), self.uniform));
        let count = 1 + self.rng.below(4);
        self.nested(count);
        if leaves {
            let q = self.predicate(1);
            let to = if self.rng.below(2) == 0 { &end } else { &next };
            emit!(self, "@{q} bra {to}");
            self.nested(1);
        }
        self.counters.pop();
        self.label(&next);
        emit!(self, "{}.{kind} {counter}, {counter}, {step}", if down { "sub" } else { "add" });
        if test_top {
            emit!(self, "bra {top}");
        } else {
            emit!(self, "setp.{go_on}.{kind} {p}, {counter}, {last}");
            emit!(self, "@{p} bra {top}");
        }
        self.label(&end);
        (self.uniform, self.trips) = (was, trips);
    }

    /// A pointer walks over the input, as compilers write loops over arrays.
    fn walk(&mut self) {
        if self.trips * 17 > MAX_TRIPS {
            return self.assign_word();
        }
        self.kernel.has_loops = true;
        self.counters_made += 1;
        let counter = format!("%c{}", self.counters_made);
        let floats = self.flavour.floats && self.rng.below(2) == 0;
        let (i, w, p, top) = (self.index(127), self.temp('w'), self.temp('p'), self.new_label());
        emit!(self, "mul.wide.u32 {w}, {i}, {}", self.rng.pick(&[4u32, 8, 16]));
        emit!(self, "add.u64 {w}, %in, {w}");
        let limit = match self.rng.below(2) {
            0 => (1 + self.rng.below(16)).to_string(),
            _ => {
                let (a, t) = (self.index(15), self.temp('t'));
                emit!(self, "add.u32 {t}, {a}, 1");
                t
            }
        };
        let width = 1 + self.rng.below(4);
        let (word, float) = (self.rng.below(WORD_VARS), self.rng.below(FLOAT_VARS));
        let other = self.rng.below(FLOAT_VARS);
        emit!(self, "mov.u32 {counter}, 0");
        self.label(&top);
        for k in 0..width {
            if floats {
                let (x, y) = (self.temp('x'), self.temp('x'));
                emit!(self, "ld.global.f32 {x}, [{w}+{}]", 4 * WORDS + 4 * k);
                if self.rng.below(2) == 0 {
                    emit!(self, "mul.f32 {y}, {x}, %f{other}");
                    emit!(self, "add.f32 %f{float}, %f{float}, {y}");
                } else {
                    emit!(self, "fma.rn.f32 %f{float}, {x}, 0f3F000000, %f{float}");
                }
            } else {
                let t = self.temp('t');
                emit!(self, "ld.global.u32 {t}, [{w}+{}]", 4 * k);
                let op = self.rng.pick(&["add.u32", "xor.b32", "max.u32"]);
                emit!(self, "{op} %a{word}, %a{word}, {t}");
            }
        }
        if self.rng.below(3) == 0 {
            let (u, t) = (self.temp('w'), self.temp('t'));
            emit!(self, "and.b32 {t}, {counter}, 15");
            emit!(self, "mul.wide.u32 {u}, {t}, 4");
            emit!(self, "add.u64 {u}, %own, {u}");
            emit!(self, "st.global.u32 [{u}], %a{word}");
        }
        emit!(self, "add.u64 {w}, {w}, {}", 4 * width);
        emit!(self, "add.u32 {counter}, {counter}, 1");
        emit!(self, "setp.lt.u32 {p}, {counter}, {limit}");
        emit!(self, "@{p} bra {top}");
    }

    fn switch(&mut self) {
        let count = 2 + self.rng.below(3);
        let uniform = self.rng.below(3) == 0;
        self.only_uniform = uniform;
        let i = self.index(3);
        self.only_uniform = false;
        let t = self.temp('t');
        emit!(self, "min.u32 {t}, {i}, {}", count - 1);
        let end = self.new_label();
        let cases: Vec<String> = (0..count).map(|_| self.new_label()).collect();
        let was = self.uniform;
        self.uniform &= uniform;
        if self.rng.below(2) == 0 {
            let table = self.new_label();
            self.label(&table);
            emit!(self, ".branchtargets {}", cases.join(", "));
            emit!(self, "brx.idx {t}, {table}");
        } else {
            for (n, case) in cases.iter().enumerate().skip(1) {
                let p = self.temp('p');
                emit!(self, "setp.eq.u32 {p}, {t}, {n}");
                emit!(self, "@{p} bra {case}");
            }
        }
        for case in &cases {
            self.label(case);
            let count = 1 + self.rng.below(2);
            self.nested(count);
            // Some cases fall into the next.
            if self.rng.below(4) > 0 {
                emit!(self, "bra {end}");
            }
        }
        self.label(&end);
        self.uniform = was;
    }

    fn collective(&mut self) {
        let value = self.word(2);
        let value = self.in_register(value);
        let to = self.rng.below(WORD_VARS);
        let text = match self.rng.below(7) {
            0 => format!("shfl.sync.bfly.b32 %a{to}, {value}, {}, 31, -1", 1 << self.rng.below(5)),
            1 => format!("shfl.sync.down.b32 %a{to}, {value}, {}, 31, -1", self.rng.below(32)),
            2 => format!("shfl.sync.up.b32 %a{to}, {value}, {}, 0, -1", self.rng.below(32)),
            3 => {
                let lane = self.word(1);
                format!("shfl.sync.idx.b32 %a{to}, {value}, {lane}, 31, -1")
            }
            4 => {
                let p = self.predicate(1);
                format!("vote.sync.ballot.b32 %a{to}, {p}, -1")
            }
            5 => {
                let (p, q) = (self.predicate(1), self.temp('p'));
                emit!(self, "vote.sync.{}.pred {q}, {p}, -1", self.rng.pick(&["any", "all"]));
                format!("selp.b32 %a{to}, {value}, %a{to}, {q}")
            }
            _ => format!(
                "redux.sync.{} %a{to}, {value}, -1",
                self.rng.pick(&["add.u32", "min.s32", "max.u32", "xor.b32"])
            ),
        };
        self.line(&text);
    }

    /// Threads of a CTA show each other a word.
    pub(super) fn exchange(&mut self) {
        let (value, t, i) = (self.word(2), self.temp('t'), self.index(THREADS - 1));
        let (value, other, got) = (self.in_register(value), self.temp('t'), self.temp('t'));
        emit!(self, "mov.u32 {t}, exchange");
        emit!(self, "mad.lo.u32 {other}, {i}, 4, {t}");
        emit!(self, "mad.lo.u32 {t}, %tid, 4, {t}");
        self.line("bar.sync 0");
        emit!(self, "st.shared.u32 [{t}], {value}");
        self.line("bar.sync 0");
        emit!(self, "ld.shared.u32 {got}, [{other}]");
        emit!(self, "add.u32 %a{}, %a{}, {got}", self.rng.below(WORD_VARS), self.rng.below(WORD_VARS));
    }

    /// Atomics whose order does not matter and whose results nobody reads. Each word sees one operation only.
    fn atomic(&mut self) {
        let ops = ["add.u32", "xor.b32", "or.b32", "and.b32", "max.u32", "min.s32", "max.s32", "add.u32"];
        let slot = self.rng.below(SUMS);
        let op = ops[slot as usize % ops.len()];
        let value = self.word(2);
        let guard = if self.rng.below(3) == 0 { format!("@{} ", self.predicate(1)) } else { String::new() };
        if self.rng.below(2) == 0 {
            emit!(self, "{guard}red.global.{op} [%sums+{}], {value}", 4 * slot);
        } else {
            let t = self.temp('t');
            emit!(self, "{guard}atom.global.{op} {t}, [%sums+{}], {value}", 4 * slot);
        }
    }

    fn call(&mut self) {
        let (a, b) = (self.word(2), self.word(1));
        let (a, b) = (self.in_register(a), self.in_register(b));
        let to = self.rng.below(WORD_VARS);
        self.line("{\n    .param .b32 first, second, result");
        emit!(self, "st.param.b32 [first], {a}");
        emit!(self, "st.param.b32 [second], {b}");
        self.line("call.uni (result), helper, (first, second)");
        emit!(self, "ld.param.b32 %a{to}, [result]");
        self.body.push_str("  }\n");
    }

    /// Some threads leave a word and end.
    fn exit(&mut self) {
        let (p, end) = (self.predicate(1), self.new_label());
        emit!(self, "@!{p} bra {end}");
        emit!(self, "st.global.u32 [%own+{RESULTS}], %a{}", self.rng.below(WORD_VARS));
        let leave = self.rng.pick(&["exit", "ret"]);
        self.line(leave);
        self.label(&end);
    }
}
