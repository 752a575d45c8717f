//! Floating point: single, double and packed half precision. `neg` and `abs` become modifiers of the sources.

use super::{Result, Selector};
use crate::mir::{MInst, MSrc, PSrc};
use ir::{Float, FloatCmp, InstData, InstId, MufuFn, Op, Round, Scalar, TestProperty, Value};
use isa::Op as M;
use isa::field::{Bool, FCmp, Field, HalfFmt, MinMax, Mufu, OutScale, Rnd, TestProp};

pub(super) fn rnd(r: Round) -> Rnd {
    match r {
        Round::Rn => Rnd::Rn,
        Round::Rz => Rnd::Rz,
        Round::Rm => Rnd::Rm,
        Round::Rp => Rnd::Rp,
    }
}

fn fcmp(c: FloatCmp) -> FCmp {
    match c {
        FloatCmp::Eq => FCmp::Eq,
        FloatCmp::Ne => FCmp::Ne,
        FloatCmp::Lt => FCmp::Lt,
        FloatCmp::Le => FCmp::Le,
        FloatCmp::Gt => FCmp::Gt,
        FloatCmp::Ge => FCmp::Ge,
        FloatCmp::Equ => FCmp::Equ,
        FloatCmp::Neu => FCmp::Neu,
        FloatCmp::Ltu => FCmp::Ltu,
        FloatCmp::Leu => FCmp::Leu,
        FloatCmp::Gtu => FCmp::Gtu,
        FloatCmp::Geu => FCmp::Geu,
        FloatCmp::Num => FCmp::Num,
        FloatCmp::Nan => FCmp::Nan,
    }
}

/// The comparison with its sides exchanged.
fn swapped(c: FloatCmp) -> FloatCmp {
    match c {
        FloatCmp::Lt => FloatCmp::Gt,
        FloatCmp::Le => FloatCmp::Ge,
        FloatCmp::Gt => FloatCmp::Lt,
        FloatCmp::Ge => FloatCmp::Le,
        FloatCmp::Ltu => FloatCmp::Gtu,
        FloatCmp::Leu => FloatCmp::Geu,
        FloatCmp::Gtu => FloatCmp::Ltu,
        FloatCmp::Geu => FloatCmp::Leu,
        same => same,
    }
}

fn mufu(f: MufuFn) -> Mufu {
    match f {
        MufuFn::Rcp => Mufu::Rcp,
        MufuFn::Rsq => Mufu::Rsq,
        MufuFn::Sqrt => Mufu::Sqrt,
        MufuFn::Sin => Mufu::Sin,
        MufuFn::Cos => Mufu::Cos,
        MufuFn::Lg2 => Mufu::Lg2,
        MufuFn::Ex2 => Mufu::Ex2,
        MufuFn::Tanh => Mufu::Tanh,
        MufuFn::Rcp64h => Mufu::Rcp64h,
        MufuFn::Rsq64h => Mufu::Rsq64h,
        MufuFn::Ex2F16 => Mufu::Ex2F16,
        MufuFn::TanhF16 => Mufu::TanhF16,
        MufuFn::Ex2Bf16 => Mufu::Ex2Bf16,
        MufuFn::TanhBf16 => Mufu::TanhBf16,
    }
}

fn test(p: TestProperty) -> TestProp {
    match p {
        TestProperty::Finite => TestProp::Finite,
        TestProperty::Infinite => TestProp::Infinite,
        TestProperty::Number => TestProp::Number,
        TestProperty::NotANumber => TestProp::NotANumber,
        TestProperty::Normal => TestProp::Normal,
        TestProperty::Subnormal => TestProp::Subnormal,
    }
}

/// What the three machine forms of an operation are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Single,
    Double,
    Half(HalfFmt),
}

fn kind(ty: Scalar) -> Option<Kind> {
    match ty {
        Scalar::F32 => Some(Kind::Single),
        Scalar::F64 => Some(Kind::Double),
        Scalar::F16 | Scalar::F16x2 => Some(Kind::Half(HalfFmt::F16)),
        Scalar::Bf16 | Scalar::Bf16x2 => Some(Kind::Half(HalfFmt::Bf16)),
        _ => None,
    }
}

/// The bits that negate, as an immediate source has them.
fn sign_bits(kind: Kind) -> u32 {
    match kind {
        Kind::Single | Kind::Double => 0x8000_0000,
        Kind::Half(_) => 0x8000_8000,
    }
}

impl Selector<'_> {
    pub(super) fn float(&mut self, i: InstId) -> Result<()> {
        let f = self.f;
        let inst = f.inst(i);
        let args = &inst.args[..];
        let result = inst.results[0];
        match inst.op {
            Op::FAdd(m) => self.arithmetic([M::Fadd, M::Dadd, M::Hadd2], result, m, args, false),
            Op::FSub(m) => self.arithmetic([M::Fadd, M::Dadd, M::Hadd2], result, m, args, true),
            Op::FMul(m) => self.arithmetic([M::Fmul, M::Dmul, M::Hmul2], result, m, args, false),
            Op::FFma(m) => self.arithmetic([M::Ffma, M::Dfma, M::Hfma2], result, m, args, false),
            Op::FMulScaled { ftz, scale } => {
                let scale = match scale.0 {
                    0 => OutScale::None,
                    1 => OutScale::M2,
                    2 => OutScale::M4,
                    3 => OutScale::M8,
                    -1 => OutScale::D2,
                    -2 => OutScale::D4,
                    -3 => OutScale::D8,
                    n => return self.fail(format!("a product cannot be scaled by 2^{n}")),
                };
                let a = self.float_src(args[0], Scalar::F32, ftz)?;
                let b = self.float_src(args[1], Scalar::F32, ftz)?;
                let d = self.def(result);
                self.push(MInst::new(M::Fmul).dst(d).a(a).b(b).flag(Field::Ftz, ftz).with(scale));
                Ok(())
            }
            Op::FNeg { ty, ftz } | Op::FAbs { ty, ftz } => {
                let Some(kind) = kind(ty) else { return self.fail("this type has no sign to change") };
                let a = self.float_src(result, ty, ftz)?;
                let d = self.def(result);
                // The sum with -0 changes nothing but NaNs, which become canonical.
                let zero = MSrc::imm(sign_bits(kind));
                let i = MInst::new(by_kind([M::Fadd, M::Dadd, M::Hadd2], kind)).dst(d).a(a).b(zero);
                self.push(with_kind(i, kind, ftz));
                Ok(())
            }
            Op::FMin { ty, ftz, nan, xorsign_abs } | Op::FMax { ty, ftz, nan, xorsign_abs } => {
                let which = if matches!(inst.op, Op::FMin { .. }) { MinMax::Min } else { MinMax::Max };
                let Some(kind) = kind(ty) else { return self.fail("this type has no order") };
                let (a, b) = if kind == Kind::Double {
                    (self.double(args[0])?, self.double(args[1])?)
                } else {
                    (self.float_src(args[0], ty, ftz)?, self.float_src(args[1], ty, ftz)?)
                };
                let d = self.def(result);
                let i =
                    MInst::new(by_kind([M::Fmnmx, M::Dmnmx, M::Hmnmx2], kind)).dst(d).a(a).b(b).with(which);
                self.push(with_kind(i, kind, ftz).flag(Field::Nan, nan).flag(Field::XorSign, xorsign_abs));
                Ok(())
            }
            Op::Mufu(function) => {
                let a = self.src(args[0])?;
                let d = self.def(result);
                self.push(MInst::new(M::Mufu).dst(d).a(a).with(mufu(function)));
                Ok(())
            }
            Op::Copysign { ty } => {
                // Sign of a, the rest of b: (A & C) | (B & ~C).
                let take = |s: &mut Self, d, a, b| {
                    let i =
                        MInst::new(M::Lop3).dst(d).a(a).b(b).c(MSrc::imm(0x8000_0000)).num(Field::Lut, 0xe4);
                    s.push(i);
                };
                let d = self.def(result);
                if ty == Scalar::F64 {
                    let (a, b) = (self.words(args[0])?, self.words(args[1])?);
                    take(self, d.word(1), a[1], b[1]);
                    self.mov(d, b[0]);
                } else {
                    let (a, b) = (self.src(args[0])?, self.src(args[1])?);
                    take(self, d, a, b);
                }
                Ok(())
            }
            Op::FDivCheck => {
                let (a, b) = (self.src(args[0])?, self.src(args[1])?);
                let d = self.pred_def(result);
                self.push(MInst::new(M::Fchk).pd(0, d).a(a).b(b));
                Ok(())
            }
            Op::Testp { property, ty } => {
                let op = if ty == Scalar::F64 { M::Dtestp } else { M::Ftestp };
                let a = self.bare(args[0], ty)?;
                let d = self.pred_def(result);
                self.push(MInst::new(op).pd(0, d).a(a).with(test(property)));
                Ok(())
            }
            Op::FCmp { .. } if self.is_plain_float_compare(inst) => {
                self.float_compare(result, inst, PSrc::TRUE, Bool::And)
            }
            Op::FCmp { cmp, ty, ftz } | Op::FCmp2 { cmp, ty, ftz } => {
                let Some(kind @ Kind::Half(_)) = kind(ty) else { return self.fail("this type has no order") };
                let (a, b) = (self.float_src(args[0], ty, ftz)?, self.float_src(args[1], ty, ftz)?);
                let mut i = MInst::new(M::Hsetp2).a(a).b(b).with(fcmp(cmp));
                i.pd[0] = self.regs[result.index()];
                i.pd[1] = inst.results.get(1).and_then(|r| self.regs[r.index()]);
                self.push(with_kind(i, kind, ftz));
                Ok(())
            }
            _ => self.fail(format!("{:?} is not built", inst.op)),
        }
    }

    /// Compared by one instruction that can also combine predicates.
    pub(super) fn is_plain_float_compare(&self, inst: &InstData) -> bool {
        matches!(inst.op, Op::FCmp { ty: Scalar::F32 | Scalar::F64, .. })
    }

    pub(super) fn float_compare(
        &mut self,
        result: Value,
        inst: &InstData,
        extra: PSrc,
        how: Bool,
    ) -> Result<()> {
        let Op::FCmp { mut cmp, ty, ftz } = inst.op else { return Ok(()) };
        let (mut a, mut b) = (self.float_src(inst.args[0], ty, ftz)?, self.float_src(inst.args[1], ty, ftz)?);
        if a.is_wide() && !b.is_wide() {
            (a, b, cmp) = (b, a, swapped(cmp));
        }
        let d = self.pred_def(result);
        let op = if ty == Scalar::F64 { M::Dsetp } else { M::Fsetp };
        let i = MInst::new(op).pd(0, d).a(a).b(b).ps(0, extra).with(fcmp(cmp)).with(how);
        self.push(if ty == Scalar::F32 { i.flag(Field::Ftz, ftz) } else { i });
        Ok(())
    }

    /// One arithmetic instruction; `subtract` negates B.
    fn arithmetic(
        &mut self,
        ops: [M; 3],
        result: Value,
        m: Float,
        args: &[Value],
        subtract: bool,
    ) -> Result<()> {
        let Some(kind) = kind(m.ty) else { return self.fail(format!("no arithmetic on {}", m.ty.name())) };
        let mut s = [MSrc::ZERO; 3];
        for (n, &v) in args.iter().enumerate() {
            s[n] = self.float_src(v, m.ty, m.ftz)?;
        }
        if subtract {
            s[1] = flip(s[1], kind);
        }
        // Sums and products of two commute: what is no register stands in B.
        if s[0].is_wide() && !s[1].is_wide() {
            s.swap(0, 1);
        }
        let d = self.def(result);
        let mut i = with_kind(MInst::new(by_kind(ops, kind)).dst(d).a(s[0]).b(s[1]).c(s[2]), kind, m.ftz);
        if kind != Kind::Double {
            i = i.flag(Field::Sat, m.sat);
        }
        if m.relu {
            if i.op() != M::Hfma2 {
                return self.fail("relu is only for fma of half types");
            }
            i = i.flag(Field::Relu, true);
        }
        if !matches!(kind, Kind::Half(_)) {
            i = i.with(rnd(m.round));
        }
        self.push(i);
        Ok(())
    }

    /// A float without modifiers taken over.
    fn bare(&mut self, v: Value, ty: Scalar) -> Result<MSrc> {
        if ty == Scalar::F64 { self.double(v) } else { self.src(v) }
    }

    /// A double: an immediate where the low word is zero.
    fn double(&mut self, v: Value) -> Result<MSrc> {
        match self.constant(v) {
            Some(bits) if bits as u32 == 0 => Ok(MSrc::imm((bits >> 32) as u32)),
            _ => self.pair(v),
        }
    }

    /// A float with the `neg` and `abs` above it as modifiers. They flush denormals where they say so: a source that
    /// flushes anyway, or flushes no less, may take them over.
    fn float_src(&mut self, v: Value, ty: Scalar, ftz: bool) -> Result<MSrc> {
        let Some(kind) = kind(ty) else { return self.fail("no such float") };
        let (mut v, mut neg, mut abs) = (v, false, false);
        while let Some(inst) = self.f.def_op(self.resolve(v)) {
            match inst.op {
                Op::FNeg { ty: t, ftz: z } if t == ty && (ftz || !z) => neg ^= !abs,
                Op::FAbs { ty: t, ftz: z } if t == ty && (ftz || !z) => abs = true,
                _ => break,
            }
            v = inst.args[0];
        }
        let mut s = match kind {
            Kind::Double => self.double(v)?,
            Kind::Single => self.src(v)?,
            Kind::Half(_) => match self.constant(v) {
                // One half stands in both.
                Some(bits) if self.f.ty(v) == ir::Type::B16 => MSrc::imm(bits as u32 | (bits as u32) << 16),
                _ => self.src(v)?,
            },
        };
        if let Some(bits) = s.imm_bits() {
            let sign = sign_bits(kind);
            let bits = if abs { bits & !sign } else { bits };
            let bits = if neg { bits ^ sign } else { bits };
            return Ok(MSrc::imm(bits));
        }
        (s.src.neg, s.src.abs) = (neg, abs);
        Ok(s)
    }
}

fn by_kind(ops: [M; 3], kind: Kind) -> M {
    match kind {
        Kind::Single => ops[0],
        Kind::Double => ops[1],
        Kind::Half(_) => ops[2],
    }
}

fn with_kind(i: MInst, kind: Kind, ftz: bool) -> MInst {
    match kind {
        Kind::Single => i.flag(Field::Ftz, ftz),
        Kind::Double => i,
        Kind::Half(format) => i.with(format).flag(Field::Ftz, ftz),
    }
}

/// The source negated.
fn flip(s: MSrc, kind: Kind) -> MSrc {
    match s.imm_bits() {
        Some(bits) => MSrc::imm(bits ^ sign_bits(kind)),
        None => s.negated(),
    }
}
