//! The rule of contraction once more, written from its text without regard to speed, for straight-line f32 programs.

use super::expression::{Expression, fused, negated, product, sum};

/// Values 0 to 7 are the inputs; value 8 + n is what instruction n makes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Inst {
    Mul(usize, usize),
    MulRn(usize, usize),
    Add(usize, usize),
    Sub(usize, usize),
    Fma(usize, usize, usize),
    Neg(usize),
    Abs(usize),
    /// To the next element of the output.
    Store(usize),
}

pub const INPUTS: usize = 8;
const NAMES: [&str; INPUTS] = ["a", "b", "c", "d", "e", "g", "h", "i"];

impl Inst {
    fn operands(self) -> Vec<usize> {
        match self {
            Inst::Mul(a, b) | Inst::MulRn(a, b) | Inst::Add(a, b) | Inst::Sub(a, b) => vec![a, b],
            Inst::Fma(a, b, c) => vec![a, b, c],
            Inst::Neg(a) | Inst::Abs(a) | Inst::Store(a) => vec![a],
        }
    }

    fn is_sign(self) -> bool {
        matches!(self, Inst::Neg(_) | Inst::Abs(_))
    }

    fn is_sum(self) -> bool {
        matches!(self, Inst::Add(..) | Inst::Sub(..))
    }
}

/// The program as PTX.
pub fn text(program: &[Inst]) -> String {
    let mut out = String::from(
        ".version 9.0\n.target sm_90\n.address_size 64\n\
         .visible .entry probe(.param .u64 in, .param .u64 out)\n{\n.reg .f32 %f<200>;\n.reg .b64 %in, %out;\n\
         ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n",
    );
    for n in 0..INPUTS {
        out += &format!("ld.global.f32 %f{n}, [%in+{}];\n", 4 * n);
    }
    let mut stores = 0;
    for (n, inst) in program.iter().enumerate() {
        let r = INPUTS + n;
        out += &match *inst {
            Inst::Mul(a, b) => format!("mul.f32 %f{r}, %f{a}, %f{b};\n"),
            Inst::MulRn(a, b) => format!("mul.rn.f32 %f{r}, %f{a}, %f{b};\n"),
            Inst::Add(a, b) => format!("add.f32 %f{r}, %f{a}, %f{b};\n"),
            Inst::Sub(a, b) => format!("sub.f32 %f{r}, %f{a}, %f{b};\n"),
            Inst::Fma(a, b, c) => format!("fma.rn.f32 %f{r}, %f{a}, %f{b}, %f{c};\n"),
            Inst::Neg(a) => format!("neg.f32 %f{r}, %f{a};\n"),
            Inst::Abs(a) => format!("abs.f32 %f{r}, %f{a};\n"),
            Inst::Store(a) => {
                stores += 1;
                format!("st.global.f32 [%out+{}], %f{a};\n", 4 * (stores - 1))
            }
        };
    }
    out + "ret;\n}\n"
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct View {
    negated: bool,
    absolute: bool,
    value: usize,
}

struct Oracle<'a> {
    program: &'a [Inst],
    live: Vec<bool>,
    /// Per instruction: the operand that fused into it.
    fused: Vec<Option<usize>>,
    /// Additions that became twice their second operand.
    doubled: Vec<bool>,
}

impl Oracle<'_> {
    fn made_by(&self, v: usize) -> Option<Inst> {
        v.checked_sub(INPUTS).map(|n| self.program[n])
    }

    fn signs(&self, v: usize) -> View {
        let mut view = View { negated: false, absolute: false, value: v };
        loop {
            match self.made_by(view.value) {
                Some(Inst::Neg(x)) => {
                    view = View { negated: view.negated ^ !view.absolute, value: x, ..view }
                }
                Some(Inst::Abs(x)) => view = View { absolute: true, value: x, ..view },
                _ => return view,
            }
        }
    }

    /// Operand `k` of addition `n` as the addition sees it.
    fn operand(&self, n: usize, k: usize) -> View {
        let mut view = self.signs(self.program[n].operands()[k]);
        view.negated ^= k == 1 && matches!(self.program[n], Inst::Sub(..));
        if let Some(Inst::Mul(a, b) | Inst::MulRn(a, b)) = self.made_by(view.value)
            && view.absolute
            && !view.negated
            && self.signs(a) == self.signs(b)
        {
            view.absolute = false;
        }
        view
    }

    fn is_product(&self, v: usize) -> bool {
        matches!(self.made_by(v), Some(Inst::Mul(..)))
    }

    /// Every read of value `m`, as (instruction, operand); signs are looked through.
    fn uses(&self, m: usize) -> Vec<(usize, usize)> {
        let mut uses = Vec::new();
        for (n, inst) in self.program.iter().enumerate().filter(|(n, i)| self.live[*n] && !i.is_sign()) {
            for (k, &v) in inst.operands().iter().enumerate() {
                if self.signs(v).value == m && self.fused[n] != Some(k) {
                    uses.push((n, k));
                }
            }
        }
        uses
    }

    fn absorbs(&self, (n, k): (usize, usize)) -> bool {
        self.program[n].is_sum()
            && self.fused[n].is_none()
            && !self.doubled[n]
            && !self.operand(n, k).absolute
            && self.operand(n, 0).value != self.operand(n, 1).value
    }

    fn decide(&mut self) {
        let before: Vec<usize> = (0..INPUTS + self.program.len()).map(|v| self.uses(v).len()).collect();
        let sums: Vec<usize> =
            (0..self.program.len()).filter(|&n| self.live[n] && self.program[n].is_sum()).collect();
        for &n in &sums {
            let single = |o: &Self, k: usize| {
                let v = o.operand(n, k).value;
                o.is_product(v) && before[v] == 1 && o.absorbs((n, k))
            };
            if let Some(k) = (0..2).find(|&k| single(self, k)) {
                if self.is_twice(n) {
                    self.doubled[n] = true;
                } else {
                    self.fused[n] = Some(k);
                }
            }
        }
        for &n in sums.iter() {
            if self.fused[n].is_some() || self.doubled[n] {
                continue;
            }
            let fits = |o: &Self, k: usize| {
                let v = o.operand(n, k).value;
                (o.is_product(v) && o.uses(v).iter().all(|&u| o.absorbs(u))).then_some((before[v], k))
            };
            self.fused[n] = [fits(self, 0), fits(self, 1)].into_iter().flatten().min().map(|(_, k)| k);
        }
    }

    /// The plain sum of two products of the same factors.
    fn is_twice(&self, n: usize) -> bool {
        let [x, y] = [self.operand(n, 0), self.operand(n, 1)];
        let plain = |v: View| !v.negated && !v.absolute;
        match (self.made_by(x.value), self.made_by(y.value)) {
            (Some(Inst::Mul(a, b)), Some(Inst::Mul(c, d))) if plain(x) && plain(y) => {
                let [a, b, c, d] = [a, b, c, d].map(|v| self.signs(v));
                (a == c && b == d) || (a == d && b == c)
            }
            _ => false,
        }
    }

    fn express(&self, v: usize) -> Expression {
        let Some(inst) = self.made_by(v) else { return Expression::Name(NAMES[v].into()) };
        let n = v - INPUTS;
        match inst {
            Inst::Mul(a, b) | Inst::MulRn(a, b) => product(self.express(a), self.express(b)),
            Inst::Fma(a, b, c) => fused(self.express(a), self.express(b), self.express(c)),
            Inst::Neg(a) => negated(self.express(a)),
            Inst::Abs(a) | Inst::Store(a) => Expression::Magnitude(Box::new(self.express(a))),
            Inst::Add(a, b) | Inst::Sub(a, b) => {
                let is_sub = matches!(inst, Inst::Sub(..));
                let y = if is_sub { negated(self.express(b)) } else { self.express(b) };
                let operands = [self.express(a), y];
                if self.doubled[n] {
                    let x = self.express(self.operand(n, 1).value);
                    return sum(x.clone(), x);
                }
                match self.fused[n] {
                    None => sum(operands[0].clone(), operands[1].clone()),
                    Some(k) => {
                        let view = self.operand(n, k);
                        let Some(Inst::Mul(p, q)) = self.made_by(view.value) else {
                            return operands[k].clone();
                        };
                        let p = self.express(p);
                        let p = if view.negated { negated(p) } else { p };
                        fused(p, self.express(q), operands[1 - k].clone())
                    }
                }
            }
        }
    }
}

/// What the program stores, by the rule.
pub fn outputs(program: &[Inst]) -> Vec<Expression> {
    let mut live = vec![false; program.len()];
    for n in (0..program.len()).rev() {
        live[n] |= matches!(program[n], Inst::Store(_));
        if live[n] {
            program[n].operands().iter().filter_map(|v| v.checked_sub(INPUTS)).for_each(|d| live[d] = true);
        }
    }
    let nothing = vec![None; program.len()];
    let mut oracle = Oracle { program, live, fused: nothing, doubled: vec![false; program.len()] };
    oracle.decide();
    let stored = program.iter().filter_map(|i| match i {
        Inst::Store(v) => Some(*v),
        _ => None,
    });
    stored.map(|v| oracle.express(v)).collect()
}
