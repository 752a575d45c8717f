//! Integer arithmetic and comparison on 16 and 32 bits; `wide` has the 64-bit forms.

use super::{Result, Selector};
use crate::mir::{Class, MInst, MSrc, PSrc};
use ir::{InstId, IntCmp, Op, Type, Value};
use isa::Op as M;
use isa::field::{Cmp, Field, MinMax, Part, Sign};

pub(super) fn sign(signed: bool) -> Sign {
    if signed { Sign::S32 } else { Sign::U32 }
}

pub(super) fn cmp(c: IntCmp) -> Cmp {
    match c {
        IntCmp::Eq => Cmp::Eq,
        IntCmp::Ne => Cmp::Ne,
        IntCmp::Lt => Cmp::Lt,
        IntCmp::Le => Cmp::Le,
        IntCmp::Gt => Cmp::Gt,
        IntCmp::Ge => Cmp::Ge,
    }
}

/// The comparison with its sides exchanged.
pub(super) fn swapped(c: IntCmp) -> IntCmp {
    match c {
        IntCmp::Lt => IntCmp::Gt,
        IntCmp::Le => IntCmp::Ge,
        IntCmp::Gt => IntCmp::Lt,
        IntCmp::Ge => IntCmp::Le,
        same => same,
    }
}

impl<'a> Selector<'a> {
    pub(super) fn int(&mut self, i: InstId) -> Result<()> {
        let f = self.f;
        let inst = f.inst(i);
        let args = &inst.args[..];
        let width = args.first().map_or(Type::B32, |&a| f.ty(a));
        if let Op::ICmp { cmp, signed } = inst.op {
            return self.compare(inst.results[0], cmp, signed, args, PSrc::TRUE, isa::field::Bool::And);
        }
        if width == Type::B64 {
            return self.wide_int(i);
        }
        let half = width == Type::B16;
        let result = inst.results[0];
        match inst.op {
            Op::Add | Op::Sub => self.add(result, inst.op == Op::Sub, args),
            Op::AddCarry | Op::SubBorrow => self.add_carry(i),
            Op::Mul => {
                let (a, b) = (self.src(args[0])?, self.src(args[1])?);
                let d = self.def(result);
                self.push(MInst::new(M::Imad).dst(d).a(a).b(b));
                Ok(())
            }
            Op::MulWide { signed } if half => {
                let (a, b) = (self.extended(args[0], 16, signed)?, self.extended(args[1], 16, signed)?);
                let d = self.def(result);
                self.push(MInst::new(M::Imad).dst(d).a(a).b(b));
                Ok(())
            }
            Op::MulWide { signed } => {
                let (a, b) = (self.src(args[0])?, self.src(args[1])?);
                let d = self.def(result);
                self.push(MInst::new(M::ImadWide).dst(d).a(a).b(b).with(sign(signed)));
                Ok(())
            }
            Op::MulHi { signed } if half => {
                let (a, b) = (self.extended(args[0], 16, signed)?, self.extended(args[1], 16, signed)?);
                let t = self.word();
                self.push(MInst::new(M::Imad).dst(t).a(a).b(b));
                let d = self.def(result);
                self.shift_right(d, MSrc::reg(t), MSrc::imm(16), false);
                Ok(())
            }
            Op::MulHi { signed } => self.binary(M::ImadHi, result, args, None, |i| i.with(sign(signed))),
            Op::Min { signed } | Op::Max { signed } => {
                let which = if matches!(inst.op, Op::Min { .. }) { MinMax::Min } else { MinMax::Max };
                self.binary(M::Imnmx, result, args, Some(signed), |i| i.with(which).with(sign(signed)))
            }
            Op::AbsDiff { signed } => {
                self.binary(M::Iabsdiff, result, args, Some(signed), |i| i.with(sign(signed)))
            }
            Op::AddSat => self.binary(M::Iadds, result, args, None, |i| i),
            Op::SubSat => self.binary(M::Iadds, result, args, None, |i| i.flag(Field::SubFlag, true)),
            Op::Add16x2 => self.binary(M::Viadd2, result, args, None, |i| i),
            Op::Min16x2 { signed } => {
                self.binary(M::Vimnmx2, result, args, None, |i| i.with(MinMax::Min).with(sign(signed)))
            }
            Op::Max16x2 { signed } => {
                self.binary(M::Vimnmx2, result, args, None, |i| i.with(MinMax::Max).with(sign(signed)))
            }
            Op::Szext { signed, wrap } => {
                self.binary(M::Sgxt, result, args, None, |i| i.with(sign(signed)).flag(Field::Wrap, wrap))
            }
            Op::Bmsk { wrap } => self.binary(M::Bmsk, result, args, None, |i| i.flag(Field::Wrap, wrap)),
            Op::Abs => self.unary(M::Iabs, result, args[0], half.then_some(true), |i| i),
            Op::Popc => self.unary(M::Popc, result, args[0], half.then_some(false), |i| i),
            Op::Brev => self.unary(M::Brev, result, args[0], None, |i| i),
            Op::Bfind { signed, shift_amount } => self
                .unary(M::Flo, result, args[0], None, |i| i.with(sign(signed)).flag(Field::Sh, shift_amount)),
            Op::Clz => {
                // The shift that brings the highest bit to the top, all ones for none: 32 for that.
                let a = self.src(args[0])?;
                let t = self.word();
                self.push(MInst::new(M::Flo).dst(t).a(a).flag(Field::Sh, true).with(sign(false)));
                let d = self.def(result);
                self.push(
                    MInst::new(M::Imnmx)
                        .dst(d)
                        .a(MSrc::reg(t))
                        .b(MSrc::imm(32))
                        .with(MinMax::Min)
                        .with(sign(false)),
                );
                Ok(())
            }
            Op::Neg => {
                let a = self.src(args[0])?;
                let d = self.def(result);
                self.push(MInst::new(M::Iadd3).dst(d).b(self.negated_int(a)));
                Ok(())
            }
            Op::Bfe { signed } => self.ternary(M::Bfe, result, args, |i| i.with(sign(signed))),
            Op::Fns => self.ternary(M::Fns, result, args, |i| i),
            Op::Dp4a { a_signed, b_signed } => self.ternary(M::Idp, result, args, |i| {
                i.flag(Field::ASigned, a_signed).flag(Field::BSigned, b_signed)
            }),
            Op::Dp2a { a_signed, b_signed, hi } => self.ternary(M::Idp, result, args, |i| {
                let i = i.flag(Field::ASigned, a_signed).flag(Field::BSigned, b_signed);
                i.flag(Field::Two, true).flag(Field::TwoHi, hi)
            }),
            Op::Bfi => {
                let e = self.reg(args[3])?;
                let (a, b, c) = (self.src(args[0])?, self.src(args[1])?, self.src(args[2])?);
                let d = self.def(result);
                self.push(MInst::new(M::Bfi).dst(d).a(a).b(b).c(c).e(e));
                Ok(())
            }
            Op::Video(descriptor) => {
                let (a, b, c) = (self.src(args[0])?, self.reg(args[1])?, self.reg(args[2])?);
                let a = MSrc::reg(self.in_register(a));
                let d = self.def(result);
                self.push(
                    MInst::new(M::Video)
                        .dst(d)
                        .a(a)
                        .b(MSrc { src: isa::Src::imm(descriptor), reg: None })
                        .c(MSrc::reg(b))
                        .e(c),
                );
                Ok(())
            }
            _ => self.fail(format!("{:?} on these operands is not built", inst.op)),
        }
    }

    /// Minus an integer source; immediates are negated in place.
    pub(super) fn negated_int(&self, s: MSrc) -> MSrc {
        match s.imm_bits() {
            Some(bits) => MSrc::imm(bits.wrapping_neg()),
            None => s.negated(),
        }
    }

    /// One instruction on A, extended from 16 bits where `signed` says how.
    fn unary(
        &mut self,
        op: M,
        result: Value,
        a: Value,
        signed: Option<bool>,
        with: impl Fn(MInst) -> MInst,
    ) -> Result<()> {
        let a = match signed {
            Some(signed) if self.f.ty(a) == Type::B16 => self.extended(a, 16, signed)?,
            _ => self.src(a)?,
        };
        let d = self.def(result);
        self.push(with(MInst::new(op)).dst(d).a(a));
        Ok(())
    }

    /// One instruction on A and B, extended from 16 bits where `signed` says how.
    fn binary(
        &mut self,
        op: M,
        result: Value,
        args: &[Value],
        signed: Option<bool>,
        with: impl Fn(MInst) -> MInst,
    ) -> Result<()> {
        let get = |s: &mut Self, v: Value| match signed {
            Some(signed) if s.f.ty(v) == Type::B16 => s.extended(v, 16, signed),
            _ => s.src(v),
        };
        let (a, b) = (get(self, args[0])?, get(self, args[1])?);
        let d = self.def(result);
        self.push(with(MInst::new(op)).dst(d).a(a).b(b));
        Ok(())
    }

    fn ternary(&mut self, op: M, result: Value, args: &[Value], with: impl Fn(MInst) -> MInst) -> Result<()> {
        let (a, b, c) = (self.src(args[0])?, self.src(args[1])?, self.src(args[2])?);
        let d = self.def(result);
        self.push(with(MInst::new(op)).dst(d).a(a).b(b).c(c));
        Ok(())
    }

    /// 16- or 32-bit addition or subtraction, with a product, a shift or a second sum taken over where one fits.
    fn add(&mut self, result: Value, subtract: bool, args: &[Value]) -> Result<()> {
        let d = self.def(result);
        if !subtract {
            for (x, y) in [(args[0], args[1]), (args[1], args[0])] {
                let Some(inst) = self.single(x).or_else(|| self.repeated(x)) else { continue };
                match inst.op {
                    Op::Mul => {
                        let (a, b, c) = (self.src(inst.args[0])?, self.src(inst.args[1])?, self.src(y)?);
                        self.push(MInst::new(M::Imad).dst(d).a(a).b(b).c(c));
                        return Ok(());
                    }
                    Op::MulHi { signed } if self.f.ty(x) == Type::B32 => {
                        let (a, b, c) = (self.src(inst.args[0])?, self.src(inst.args[1])?, self.src(y)?);
                        self.push(MInst::new(M::ImadHi).dst(d).a(a).b(b).c(c).with(sign(signed)));
                        return Ok(());
                    }
                    Op::MulWide { signed } if self.f.ty(x) == Type::B32 => {
                        let a = self.extended(inst.args[0], 16, signed)?;
                        let (b, c) = (self.extended(inst.args[1], 16, signed)?, self.src(y)?);
                        self.push(MInst::new(M::Imad).dst(d).a(a).b(b).c(c));
                        return Ok(());
                    }
                    Op::Shl if self.f.ty(x) == Type::B32 => {
                        if let Some(n @ 0..=31) = self.constant(inst.args[1]) {
                            let (a, b) = (self.src(inst.args[0])?, self.src(y)?);
                            let a = MSrc::reg(self.in_register(a));
                            self.push(MInst::new(M::Lea).dst(d).a(a).b(b).num(Field::Shift, n as u32));
                            return Ok(());
                        }
                    }
                    _ => {}
                }
            }
        }
        // Up to three terms with their signs.
        let mut terms: smallvec::SmallVec<[(Value, bool); 3]> =
            smallvec::smallvec![(args[0], false), (args[1], subtract)];
        for k in 0..2 {
            let (v, negated) = terms[k];
            if let Some(inst) = self.single(v)
                && matches!(inst.op, Op::Add | Op::Sub)
                && !self.is_fused_sum(inst)
            {
                terms[k] = (inst.args[0], negated);
                terms.push((inst.args[1], negated != (inst.op == Op::Sub)));
                break;
            }
        }
        let mut sources: smallvec::SmallVec<[MSrc; 3]> = smallvec::SmallVec::new();
        let mut sum = 0u32;
        for (v, negated) in terms {
            let s = self.src(v)?;
            match s.imm_bits() {
                Some(bits) => sum = if negated { sum.wrapping_sub(bits) } else { sum.wrapping_add(bits) },
                None => sources.push(if negated { s.negated() } else { s }),
            }
        }
        if sum != 0 {
            sources.push(MSrc::imm(sum));
        }
        if let [only] = sources[..]
            && !only.src.neg
        {
            self.mov(d, only);
            return Ok(());
        }
        sources.resize(3, MSrc::ZERO);
        self.push(MInst::new(M::Iadd3).dst(d).a(sources[0]).b(sources[1]).c(sources[2]));
        Ok(())
    }

    /// A shift by a constant or a product that only sums read, this block's: a shift-add or a multiply-add is no more than a sum, so
    /// it is worth repeating. NVIDIA's assembler computes a product once where a sum of another block needs it too.
    fn repeated(&self, v: Value) -> Option<&'a ir::InstData> {
        let i = self.f.def_inst(v)?;
        let inst = self.f.inst(i);
        let uses = self.uses[v.index()];
        let fits = match inst.op {
            Op::Shl => self.sums[v.index()] == uses && self.constant(inst.args[1]).is_some(),
            Op::Mul => self.sums_at_home[v.index()] == uses,
            _ => false,
        };
        let here = self.home[i.index()] == Some(self.block);
        (fits && here && self.f.ty(v) == Type::B32 && inst.guard.is_none()).then_some(inst)
    }

    /// A sum that becomes a multiply-add or a shift-add of its own.
    fn is_fused_sum(&self, inst: &ir::InstData) -> bool {
        inst.op == Op::Add
            && inst.args.iter().any(|&a| {
                self.single(a).or_else(|| self.repeated(a)).is_some_and(|x| {
                    matches!(x.op, Op::Mul | Op::MulHi { .. } | Op::MulWide { .. })
                        || x.op == Op::Shl && self.constant(x.args[1]).is_some()
                })
            })
    }

    /// 32-bit addition with carry or subtraction with borrow.
    fn add_carry(&mut self, i: InstId) -> Result<()> {
        let f = self.f;
        let inst = f.inst(i);
        let subtract = inst.op == Op::SubBorrow;
        let (a, b) = (self.src(inst.args[0])?, self.src(inst.args[1])?);
        let carry_in = self.pred(inst.args[2]);
        let d = self.def_if_used(inst.results.first());
        let carry = self.regs[inst.results[1].index()];
        let first =
            if f.ty(inst.args[0]) == Type::B16 { return self.fail("16-bit carries do not exist") } else { a };
        let m = self.sum_with_carry(d, first, b, subtract, carry_in, carry);
        self.push(m);
        Ok(())
    }

    /// `A + B + carry` or `A - B - borrow` as one IADD3; `carry` is the register of the carry (no borrow).
    pub(super) fn sum_with_carry(
        &mut self,
        d: Option<crate::mir::Sub>,
        a: MSrc,
        b: MSrc,
        subtract: bool,
        carry_in: PSrc,
        carry: Option<crate::mir::VReg>,
    ) -> MInst {
        let mut m = MInst::new(M::Iadd3).a(a);
        m.dst = d;
        m.pd[0] = carry;
        m.src[1] = if subtract { b.negated() } else { b };
        if carry_in != PSrc::FALSE {
            m = m.flag(Field::X, true).ps(0, if subtract { carry_in.negated() } else { carry_in });
        }
        m
    }

    /// `result = (a cmp b) bool extra`.
    pub(super) fn compare(
        &mut self,
        result: Value,
        c: IntCmp,
        signed: bool,
        args: &[Value],
        extra: PSrc,
        how: isa::field::Bool,
    ) -> Result<()> {
        let width = self.f.ty(args[0]);
        if width == Type::P {
            // Only equality makes sense of one bit.
            let (a, b) = (self.pred(args[0]), self.pred(args[1]));
            let d = self.pred_def(result);
            let lut = if c == IntCmp::Eq { 0xc3 } else { 0x3c };
            self.push(MInst::new(M::Plop3).pd(0, d).ps(0, a).ps(1, b).num(Field::Lut, lut));
            return Ok(());
        }
        if width == Type::B64 {
            let (a, b) = (self.words(args[0])?, self.words(args[1])?);
            let d = self.pred_def(result);
            self.compare_words(d, c, signed, a, b, extra, how);
            return Ok(());
        }
        let (a, b) = if width == Type::B16 {
            (self.extended(args[0], 16, signed)?, self.extended(args[1], 16, signed)?)
        } else {
            (self.src(args[0])?, self.src(args[1])?)
        };
        let (a, b, c) = if a.is_wide() && !b.is_wide() { (b, a, swapped(c)) } else { (a, b, c) };
        let d = self.pred_def(result);
        let i = MInst::new(M::Isetp).pd(0, d).a(a).b(b).with(cmp(c)).with(sign(signed));
        self.push(i.ps(0, extra).with(how));
        Ok(())
    }

    /// A 64-bit comparison of words.
    pub(super) fn compare_words(
        &mut self,
        d: crate::mir::VReg,
        c: IntCmp,
        signed: bool,
        a: [MSrc; 2],
        b: [MSrc; 2],
        extra: PSrc,
        how: isa::field::Bool,
    ) {
        let (a, b, c) = if a[0].is_wide() || a[1].is_wide() { (b, a, swapped(c)) } else { (a, b, c) };
        let low = self.pred_temp();
        self.push(MInst::new(M::Isetp).pd(0, low).a(a[0]).b(b[0]).with(cmp(c)).with(Sign::U32));
        let i = MInst::new(M::Isetp).pd(0, d).a(a[1]).b(b[1]).with(cmp(c)).with(sign(signed));
        self.push(i.flag(Field::Ex, true).ps(0, extra).with(how).ps(1, PSrc::reg(low)));
    }

    /// Logical or arithmetic right shift of 32 bits, counts clamped.
    pub(super) fn shift_right(&mut self, d: crate::mir::Sub, a: MSrc, count: MSrc, signed: bool) {
        let kind = if signed { isa::field::ShiftType::S32 } else { isa::field::ShiftType::U32 };
        let i = MInst::new(M::Shf).dst(d).b(count).c(a).with(isa::field::Dir::R).with(kind).with(Part::Hi);
        self.push(i);
    }

    pub(super) fn shift_left(&mut self, d: crate::mir::Sub, a: MSrc, count: MSrc) {
        let i =
            MInst::new(M::Shf).dst(d).a(a).b(count).with(isa::field::Dir::L).with(isa::field::ShiftType::U32);
        self.push(i);
    }

    pub(super) fn pair_temp(&mut self) -> crate::mir::Sub {
        self.temp(Class::Pair)
    }
}
