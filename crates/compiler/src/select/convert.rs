//! Conversions between integers and floats of all widths.

use super::{Result, Selector};
use crate::mir::{MInst, MSrc};
use ir::{Cvt, CvtRound, InstId, Op, Scalar, Type};
use isa::Op as M;
use isa::field::{CvtRnd, Field, From, To};

fn round(r: CvtRound) -> CvtRnd {
    match r {
        CvtRound::None => CvtRnd::None,
        CvtRound::Rn => CvtRnd::Rn,
        CvtRound::Rz => CvtRnd::Rz,
        CvtRound::Rm => CvtRnd::Rm,
        CvtRound::Rp => CvtRnd::Rp,
        CvtRound::Rna => CvtRnd::Rna,
        CvtRound::Rni => CvtRnd::Rni,
        CvtRound::Rzi => CvtRnd::Rzi,
        CvtRound::Rmi => CvtRnd::Rmi,
        CvtRound::Rpi => CvtRnd::Rpi,
    }
}

macro_rules! scalars {
    ($ty:ident, $s:expr) => {
        match $s {
            Scalar::U8 => $ty::U8,
            Scalar::S8 => $ty::S8,
            Scalar::U16 => $ty::U16,
            Scalar::S16 => $ty::S16,
            Scalar::U32 => $ty::U32,
            Scalar::S32 => $ty::S32,
            Scalar::U64 => $ty::U64,
            Scalar::S64 => $ty::S64,
            Scalar::F16 => $ty::F16,
            Scalar::F16x2 => $ty::F16x2,
            Scalar::Bf16 => $ty::Bf16,
            Scalar::Bf16x2 => $ty::Bf16x2,
            Scalar::Tf32 => $ty::Tf32,
            Scalar::E4m3x2 => $ty::E4m3x2,
            Scalar::E5m2x2 => $ty::E5m2x2,
            Scalar::F32 => $ty::F32,
            Scalar::F64 => $ty::F64,
        }
    };
}

impl Selector<'_> {
    pub(super) fn convert(&mut self, i: InstId) -> Result<()> {
        let f = self.f;
        let inst = f.inst(i);
        let args = &inst.args[..];
        let result = inst.results[0];
        match inst.op {
            Op::Cvt(c) if c.to.is_int() && c.from.is_int() && !c.sat => self.resize(i, c),
            Op::Cvt(c) => {
                let op = match (c.from.is_int(), c.to.is_int()) {
                    (true, true) => M::I2i,
                    (true, false) => M::I2f,
                    (false, true) => M::F2i,
                    (false, false) => M::F2f,
                };
                let a = if c.from.bits() == 64 {
                    match f.ty(args[0]) {
                        Type::B64 => MSrc::reg(self.pair_reg(args[0])?),
                        _ => return self.fail("a 64-bit conversion of a narrower value"),
                    }
                } else {
                    self.low_word(args[0])?
                };
                let d = self.def(result);
                let mut m = MInst::new(op).with(scalars!(To, c.to)).with(scalars!(From, c.from));
                m = m.flag(Field::Sat, c.sat);
                if op != M::I2i {
                    m = m.with(round(c.round)).flag(Field::Ftz, c.ftz);
                }
                if op == M::F2f {
                    m = m.flag(Field::Relu, c.relu).flag(Field::SatFinite, c.satfinite);
                }
                self.push(m.dst(d).a(a));
                // A signed byte is held as 16 bits.
                if c.to == Scalar::S8 {
                    self.extend_into(d, MSrc::reg(d), 8, true);
                }
                Ok(())
            }
            Op::CvtPack(c) => {
                let (a, b) = (self.src(args[0])?, self.src(args[1])?);
                let d = self.def(result);
                let m = MInst::new(M::F2fp).dst(d).a(a).b(b).with(scalars!(To, c.to)).with(round(c.round));
                let m =
                    m.flag(Field::Ftz, c.ftz).flag(Field::Relu, c.relu).flag(Field::SatFinite, c.satfinite);
                self.push(m);
                Ok(())
            }
            Op::CvtPackInt { to, with_c } => {
                let (a, b) = (self.src(args[0])?, self.src(args[1])?);
                let c = if with_c { self.src(args[2])? } else { MSrc::ZERO };
                let d = self.def(result);
                let m = MInst::new(M::I2ip).dst(d).a(a).b(b).c(c).with(scalars!(To, to));
                self.push(m.flag(Field::WithC, with_c));
                Ok(())
            }
            _ => self.fail(format!("{:?} is not built", inst.op)),
        }
    }

    /// Integer to integer by width: the lower of the two widths is cut out and extended as its type says.
    fn resize(&mut self, i: InstId, c: Cvt) -> Result<()> {
        let f = self.f;
        let inst = f.inst(i);
        let (v, result) = (inst.args[0], inst.results[0]);
        // Cut to the narrower type, then fill the register as the narrower type extends; a result of 8 bits fills 16.
        let (bits, signed) = if c.to.bits() < c.from.bits() {
            (c.to.bits(), c.to.is_signed())
        } else {
            (c.from.bits(), c.from.is_signed())
        };
        let target = f.ty(result);
        let d = self.def(result);
        let low = self.low_word(v)?;
        if target != Type::B64 {
            // A 16-bit result needs no more than its low half.
            let bits = if target == Type::B16 && bits >= 16 { 32 } else { bits };
            self.extend_into(d, low, bits.min(32), signed);
            return Ok(());
        }
        if bits == 64 {
            let w = self.words(v)?;
            self.mov(d, w[0]);
            self.mov(d.word(1), w[1]);
            return Ok(());
        }
        let low = if bits == 32 { low } else { self.extended(v, bits, signed)? };
        self.mov(d, low);
        if signed {
            self.shift_right(d.word(1), low, MSrc::imm(31), true);
        } else {
            self.mov(d.word(1), MSrc::ZERO);
        }
        Ok(())
    }
}
