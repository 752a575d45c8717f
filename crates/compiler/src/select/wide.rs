//! 64-bit integer arithmetic from 32-bit words.

use super::int::sign;
use super::{Result, Selector};
use crate::mir::{MInst, MSrc, PSrc, Sub};
use ir::{InstId, IntCmp, Op, Type, Value};
use isa::Op as M;
use isa::field::{Bool, Field, MinMax};

impl Selector<'_> {
    pub(super) fn wide_int(&mut self, i: InstId) -> Result<()> {
        let f = self.f;
        let inst = f.inst(i);
        let args = &inst.args[..];
        let result = inst.results[0];
        match inst.op {
            Op::Add => self.add_wide(result, args),
            Op::Sub => {
                let (a, b) = (self.words(args[0])?, self.words(args[1])?);
                let d = self.def(result);
                self.sum_words(d, a, b, true);
                Ok(())
            }
            Op::AddCarry | Op::SubBorrow => {
                let subtract = inst.op == Op::SubBorrow;
                let (a, b) = (self.words(args[0])?, self.words(args[1])?);
                let carry_in = self.pred(args[2]);
                let d = self.def_if_used(inst.results.first());
                let carry = self.regs[inst.results[1].index()];
                let between = self.pred_temp();
                let low = self.sum_with_carry(d, a[0], b[0], subtract, carry_in, Some(between));
                self.push(low);
                let borrow = if subtract { PSrc::reg(between).negated() } else { PSrc::reg(between) };
                let high = self.sum_with_carry(d.map(|d| d.word(1)), a[1], b[1], subtract, borrow, carry);
                self.push(high);
                Ok(())
            }
            Op::Mul => {
                let (a, b) = (self.words(args[0])?, self.words(args[1])?);
                let d = self.def(result);
                self.product(d, a, b);
                Ok(())
            }
            Op::MulHi { signed } => self.product_high(result, signed, args),
            Op::Min { signed } | Op::Max { signed } => {
                let less = if matches!(inst.op, Op::Min { .. }) { IntCmp::Lt } else { IntCmp::Gt };
                let (a, b) = (self.words(args[0])?, self.words(args[1])?);
                let p = self.pred_temp();
                self.compare_words(p, less, signed, a, b, PSrc::TRUE, Bool::And);
                let d = self.def(result);
                self.select_words(d, PSrc::reg(p), a, b);
                Ok(())
            }
            Op::AbsDiff { signed } => {
                let (a, b) = (self.words(args[0])?, self.words(args[1])?);
                let (x, y) = (self.pair_temp(), self.pair_temp());
                self.sum_words(x, a, b, true);
                self.sum_words(y, b, a, true);
                let p = self.pred_temp();
                self.compare_words(p, IntCmp::Lt, signed, a, b, PSrc::TRUE, Bool::And);
                let d = self.def(result);
                self.select_words(d, PSrc::reg(p), both(y), both(x));
                Ok(())
            }
            Op::Abs => {
                let a = self.words(args[0])?;
                let x = self.pair_temp();
                self.sum_words(x, [MSrc::ZERO; 2], a, true);
                let p = self.pred_temp();
                self.push(
                    MInst::new(M::Isetp).pd(0, p).a(a[1]).with(super::int::cmp(IntCmp::Lt)).with(sign(true)),
                );
                let d = self.def(result);
                self.select_words(d, PSrc::reg(p), both(x), a);
                Ok(())
            }
            Op::Neg => {
                let a = self.words(args[0])?;
                let d = self.def(result);
                self.sum_words(d, [MSrc::ZERO; 2], a, true);
                Ok(())
            }
            Op::Popc => {
                let a = self.words(args[0])?;
                let (x, y) = (self.word(), self.word());
                self.push(MInst::new(M::Popc).dst(x).a(a[0]));
                self.push(MInst::new(M::Popc).dst(y).a(a[1]));
                let d = self.def(result);
                self.push(MInst::new(M::Iadd3).dst(d).a(MSrc::reg(x)).b(MSrc::reg(y)));
                Ok(())
            }
            Op::Clz => {
                let a = self.words(args[0])?;
                let d = self.def(result);
                self.leading_zeros(d, a);
                Ok(())
            }
            Op::Brev => {
                let a = self.words(args[0])?;
                let d = self.def(result);
                let t = self.word();
                self.push(MInst::new(M::Brev).dst(t).a(a[0]));
                self.push(MInst::new(M::Brev).dst(d).a(a[1]));
                self.mov(d.word(1), MSrc::reg(t));
                Ok(())
            }
            Op::Bfind { signed, shift_amount } => self.find_bit(result, signed, shift_amount, args[0]),
            Op::Bfe { signed } => {
                let a = MSrc::reg(self.pair_reg(args[0])?);
                let (b, c) = (self.src(args[1])?, self.src(args[2])?);
                let d = self.def(result);
                self.push(MInst::new(M::Bfe64).dst(d).a(a).b(b).c(c).with(sign(signed)));
                Ok(())
            }
            Op::Bfi => {
                let a = MSrc::reg(self.pair_reg(args[0])?);
                let b = MSrc::reg(self.pair_reg(args[1])?);
                let (c, e) = (self.src(args[2])?, self.reg(args[3])?);
                let d = self.def(result);
                self.push(MInst::new(M::Bfi64).dst(d).a(a).b(b).c(c).e(e));
                Ok(())
            }
            _ => self.fail(format!("{:?} on 64 bits is not built", inst.op)),
        }
    }

    /// 64-bit sum; a product of two words, or a word extended and shifted, becomes part of one multiply-add.
    fn add_wide(&mut self, result: Value, args: &[Value]) -> Result<()> {
        let d = self.def(result);
        for (x, y) in [(args[0], args[1]), (args[1], args[0])] {
            if let Some((a, b, signed)) = self.as_product(x)? {
                let c = self.pair(y)?;
                self.push(MInst::new(M::ImadWide).dst(d).a(a).b(b).c(c).with(sign(signed)));
                return Ok(());
            }
        }
        let (a, b) = (self.words(args[0])?, self.words(args[1])?);
        self.sum_words(d, a, b, false);
        Ok(())
    }

    /// `x` as a product of two words that nobody else reads: a widening multiplication, or an extended word shifted left.
    fn as_product(&mut self, x: Value) -> Result<Option<(MSrc, MSrc, bool)>> {
        // One multiply-add is less than a sum of pairs, so a product that only sums read is worth repeating.
        let only_sums = self.sums[x.index()] == self.uses[x.index()];
        let repeated = if only_sums { self.f.def_op(x) } else { None };
        let Some(inst) = self.single(x).or(repeated) else { return Ok(None) };
        match inst.op {
            Op::MulWide { signed } if self.f.ty(x) == Type::B64 => {
                Ok(Some((self.src(inst.args[0])?, self.src(inst.args[1])?, signed)))
            }
            Op::Shl => match self.constant(inst.args[1]) {
                Some(n @ 0..=30) => self.shifted_word(inst.args[0], n as u32),
                _ => Ok(None),
            },
            Op::SignExt if self.f.ty(inst.args[0]) == Type::B32 => self.shifted_word(x, 0),
            _ => Ok(None),
        }
    }

    /// An extended word times `1 << n`.
    pub(super) fn shifted_word(&mut self, v: Value, n: u32) -> Result<Option<(MSrc, MSrc, bool)>> {
        let Some(inst) = self.f.def_op(v) else { return Ok(None) };
        match inst.op {
            Op::ZeroExt | Op::SignExt
                if self.f.ty(inst.args[0]) == Type::B32 && self.f.ty(v) == Type::B64 =>
            {
                let a = self.src(inst.args[0])?;
                Ok(Some((a, MSrc::imm(1 << n), inst.op == Op::SignExt)))
            }
            _ => Ok(None),
        }
    }

    /// `d = a + b` or `a - b`.
    pub(super) fn sum_words(&mut self, d: Sub, a: [MSrc; 2], b: [MSrc; 2], subtract: bool) {
        // A low word that adds nothing carries nothing.
        if b[0].is_zero() {
            self.mov(d, a[0]);
            let high = if subtract { self.negated_int(b[1]) } else { b[1] };
            self.push(MInst::new(M::Iadd3).dst(d.word(1)).a(a[1]).b(high));
            return;
        }
        let carry = self.pred_temp();
        let low = self.sum_with_carry(Some(d), a[0], b[0], subtract, PSrc::FALSE, Some(carry));
        self.push(low);
        let carry = if subtract { PSrc::reg(carry).negated() } else { PSrc::reg(carry) };
        let high = self.sum_with_carry(Some(d.word(1)), a[1], b[1], subtract, carry, None);
        self.push(high);
    }

    fn select_words(&mut self, d: Sub, p: PSrc, a: [MSrc; 2], b: [MSrc; 2]) {
        for n in 0..2 {
            self.push(MInst::new(M::Sel).dst(d.word(n)).a(a[n as usize]).b(b[n as usize]).ps(0, p));
        }
    }

    /// Low 64 bits of a product.
    fn product(&mut self, d: Sub, a: [MSrc; 2], b: [MSrc; 2]) {
        let low = self.pair_temp();
        self.push(MInst::new(M::ImadWide).dst(low).a(a[0]).b(b[0]).with(sign(false)));
        let mut high = MSrc::reg(low.word(1));
        for (x, y) in [(a[0], b[1]), (a[1], b[0])] {
            if x.is_zero() || y.is_zero() {
                continue;
            }
            let t = self.word();
            self.push(MInst::new(M::Imad).dst(t).a(x).b(y).c(high));
            high = MSrc::reg(t);
        }
        self.mov(d, MSrc::reg(low));
        self.mov(d.word(1), high);
    }

    /// High 64 bits of a 128-bit product: four widening products, and for signed ones the other factor taken off where a
    /// factor is negative.
    fn product_high(&mut self, result: Value, signed: bool, args: &[Value]) -> Result<()> {
        let (a, b) = (self.words(args[0])?, self.words(args[1])?);
        let wide = |s: &mut Self, x: MSrc, y: MSrc, c: MSrc| {
            let d = s.pair_temp();
            s.push(MInst::new(M::ImadWide).dst(d).a(x).b(y).c(c).with(sign(false)));
            d
        };
        let zero_extended = |s: &mut Self, w: Sub| {
            let d = s.pair_temp();
            s.mov(d, MSrc::reg(w));
            s.mov(d.word(1), MSrc::ZERO);
            MSrc::reg(d)
        };
        let low = wide(self, a[0], b[0], MSrc::ZERO);
        let c = zero_extended(self, low.word(1));
        let mid = wide(self, a[1], b[0], c);
        let c = zero_extended(self, mid);
        let cross = wide(self, a[0], b[1], c);
        let c = zero_extended(self, mid.word(1));
        let top = wide(self, a[1], b[1], c);
        let d = self.def(result);
        let carry = [MSrc::reg(cross.word(1)), MSrc::ZERO];
        if !signed {
            self.sum_words(d, both(top), carry, false);
            return Ok(());
        }
        let mut sum = self.pair_temp();
        self.sum_words(sum, both(top), carry, false);
        for (x, y) in [(a, b), (b, a)] {
            let p = self.pred_temp();
            self.push(
                MInst::new(M::Isetp).pd(0, p).a(x[1]).with(super::int::cmp(IntCmp::Lt)).with(sign(true)),
            );
            let off = self.pair_temp();
            self.select_words(off, PSrc::reg(p), y, [MSrc::ZERO; 2]);
            let next = self.pair_temp();
            self.sum_words(next, both(sum), both(off), true);
            sum = next;
        }
        self.mov(d, MSrc::reg(sum));
        self.mov(d.word(1), MSrc::reg(sum.word(1)));
        Ok(())
    }

    /// Zeros above the highest bit of a pair.
    fn leading_zeros(&mut self, d: Sub, a: [MSrc; 2]) {
        let count = |s: &mut Self, w: MSrc| {
            let (t, n) = (s.word(), s.word());
            s.push(MInst::new(M::Flo).dst(t).a(w).flag(Field::Sh, true).with(sign(false)));
            s.push(
                MInst::new(M::Imnmx)
                    .dst(n)
                    .a(MSrc::reg(t))
                    .b(MSrc::imm(32))
                    .with(MinMax::Min)
                    .with(sign(false)),
            );
            n
        };
        let (low, high) = (count(self, a[0]), count(self, a[1]));
        let both = self.word();
        self.push(MInst::new(M::Iadd3).dst(both).a(MSrc::reg(low)).b(MSrc::imm(32)));
        let p = self.pred_temp();
        self.push(MInst::new(M::Isetp).pd(0, p).a(a[1]).with(super::int::cmp(IntCmp::Ne)).with(sign(false)));
        self.push(MInst::new(M::Sel).dst(d).a(MSrc::reg(high)).b(MSrc::reg(both)).ps(0, PSrc::reg(p)));
    }

    /// Position of the highest bit that differs from the sign, or the shift that brings it to the top; all ones for none.
    fn find_bit(&mut self, result: Value, signed: bool, shift_amount: bool, v: Value) -> Result<()> {
        let mut a = self.words(v)?;
        if signed {
            // Bits that differ from the sign become ones.
            let t = self.word();
            self.shift_right(t, a[1], MSrc::imm(31), true);
            for w in &mut a {
                let x = self.word();
                self.push(MInst::new(M::Lop3).dst(x).a(*w).b(MSrc::reg(t)).num(Field::Lut, 0x3c));
                *w = MSrc::reg(x);
            }
        }
        let (low, high) = (self.word(), self.word());
        for (t, w) in [(low, a[0]), (high, a[1])] {
            self.push(MInst::new(M::Flo).dst(t).a(w).flag(Field::Sh, shift_amount).with(sign(false)));
        }
        // 32 more for the word that is farther away, unless it has no bit.
        let (far, far_word) = if shift_amount { (low, a[0]) } else { (high, a[1]) };
        let (some, moved) = (self.pred_temp(), self.word());
        self.push(
            MInst::new(M::Isetp).pd(0, some).a(far_word).with(super::int::cmp(IntCmp::Ne)).with(sign(false)),
        );
        let up = self.word();
        self.push(MInst::new(M::Iadd3).dst(up).a(MSrc::reg(far)).b(MSrc::imm(32)));
        self.push(MInst::new(M::Sel).dst(moved).a(MSrc::reg(up)).b(MSrc::reg(far)).ps(0, PSrc::reg(some)));
        let (low, high) = if shift_amount { (moved, high) } else { (low, moved) };
        let p = self.pred_temp();
        self.push(MInst::new(M::Isetp).pd(0, p).a(a[1]).with(super::int::cmp(IntCmp::Ne)).with(sign(false)));
        let d = self.def(result);
        self.push(MInst::new(M::Sel).dst(d).a(MSrc::reg(high)).b(MSrc::reg(low)).ps(0, PSrc::reg(p)));
        Ok(())
    }
}

/// The two words of a register pair.
pub(super) fn both(s: Sub) -> [MSrc; 2] {
    [MSrc::reg(s), MSrc::reg(s.word(1))]
}
