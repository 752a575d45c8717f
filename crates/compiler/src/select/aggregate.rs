//! Reductions of a whole warp into one place: one lane adds for all that are there.

use super::{Literal, Result, Selector};
use crate::mir::{Class, MInst, MSrc, PSrc, Sub, VReg};
use ir::{Atom, AtomOp, InstData, Scalar, Space, Value};
use isa::field::{Bool, Cmp, Field, Sign};
use isa::{Op as M, Special};

/// Who runs a block: registers of what is found out on the way, how many they are, and whether a lane speaks for them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Members {
    lane: VReg,
    mask: VReg,
    highest: VReg,
    speaks: VReg,
}

impl Selector<'_> {
    /// Lanes that run `inst` together all add the same constant to the same place.
    pub(super) fn is_common_sum(&self, inst: &InstData, atom: &Atom) -> bool {
        let word = matches!(atom.elem, Scalar::U32 | Scalar::S32) && !atom.wide;
        self.uniform
            && word
            && atom.op == AtomOp::Add
            && atom.space == Space::Global
            && inst.guard.is_none()
            && self.constant(inst.own_args()[1]).is_some_and(|c| c != 0)
            && self.is_common_address(inst.args[0])
    }

    /// `m`, a reduction that adds `value`, done by one lane for all. What lanes know of each other is theirs: those that
    /// part or meet between here and there change nothing in the sum.
    pub(super) fn sum_for_all(&mut self, mut m: MInst, value: Value) -> Result<MInst> {
        let known = self.literals.iter().find_map(|(l, &count)| match l {
            Literal::Members(members) => Some((*members, count)),
            _ => None,
        });
        let (members, count) = match known {
            Some(known) => known,
            None => {
                let [lane, mask, highest, count] = [(); 4].map(|()| self.out.new_reg(Class::Word));
                let members = Members { lane, mask, highest, speaks: self.pred_temp() };
                // For this block only: elsewhere other lanes run.
                self.literals.insert(Literal::Members(members), count);
                (members, count)
            }
        };
        let count = MSrc::reg(Sub { reg: count, at: 0 });
        m.src[2] = count;
        match self.constant(value) {
            Some(1) | None => {}
            Some(c) => {
                let t = self.word();
                self.push(MInst::new(M::Imad).dst(t).a(count).b(MSrc::imm(c as u32)));
                m.src[2] = MSrc::reg(t);
            }
        }
        Ok(m.guard(PSrc::reg(members.speaks)))
    }
}

impl Members {
    /// The instructions that find them out; how many they are goes to `count`.
    pub(super) fn found_by(self, count: VReg) -> [MInst; 5] {
        let to = |reg: VReg| Sub { reg, at: 0 };
        let from = |reg: VReg| MSrc::reg(Sub { reg, at: 0 });
        [
            MInst::new(M::S2r).dst(to(self.lane)).num(Field::Sr, Special::LaneId as u32),
            MInst::new(M::Actmask).dst(to(self.mask)),
            MInst::new(M::Flo).dst(to(self.highest)).a(from(self.mask)).with(Sign::U32),
            MInst::new(M::Popc).dst(to(count)).a(from(self.mask)),
            MInst::new(M::Isetp)
                .pd(0, self.speaks)
                .a(from(self.lane))
                .b(from(self.highest))
                .with(Cmp::Eq)
                .with(Sign::U32)
                .with(Bool::And),
        ]
    }
}
