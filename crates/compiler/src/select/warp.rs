//! Operations among the lanes of a warp and the threads of a CTA.

use super::{Result, Selector};
use crate::mir::{MInst, MSrc, Sub};
use ir::{BarMode, InstId, Op, ReduxOp, ShflMode, Type, Value, VoteMode};
use isa::Op as M;
use isa::field::{self, Field, MatchMode};

impl Selector<'_> {
    pub(super) fn warp(&mut self, i: InstId) -> Result<()> {
        let f = self.f;
        let inst = f.inst(i);
        let args = inst.own_args();
        let guard = self.guard_of(inst);
        let (first, second) = (inst.results.first(), inst.results.get(1));
        self.pass_through(inst)?;
        let word_result = |s: &mut Self, n: Option<&Value>| s.def_if_used(n);
        let mut m = match inst.op {
            Op::Shfl(mode) => {
                let (a, b, c) = (self.src(args[0])?, self.src(args[1])?, self.src(args[2])?);
                let mode = match mode {
                    ShflMode::Up => field::ShflMode::Up,
                    ShflMode::Down => field::ShflMode::Down,
                    ShflMode::Bfly => field::ShflMode::Bfly,
                    ShflMode::Idx => field::ShflMode::Idx,
                };
                let mut m = MInst::new(M::Shfl).a(a).b(b).c(c).with(mode);
                m.dst = word_result(self, first);
                m.pd[0] = second.and_then(|r| self.regs[r.index()]);
                self.members(m, args[3])?
            }
            Op::Vote(mode) => {
                let p = self.pred(args[0]);
                let mut m = MInst::new(M::Vote).ps(0, p).with(match mode {
                    VoteMode::All => field::VoteMode::All,
                    VoteMode::Any => field::VoteMode::Any,
                    VoteMode::Uni => field::VoteMode::Uni,
                    VoteMode::Ballot => field::VoteMode::Ballot,
                });
                if mode == VoteMode::Ballot {
                    m.dst = word_result(self, first);
                } else {
                    m.pd[0] = first.and_then(|r| self.regs[r.index()]);
                }
                self.members(m, args[1])?
            }
            Op::MatchAny | Op::MatchAll => {
                let wide = f.ty(args[0]) == Type::B64;
                let a = if wide { MSrc::reg(self.pair_reg(args[0])?) } else { self.src(args[0])? };
                let mode = if inst.op == Op::MatchAny { MatchMode::Any } else { MatchMode::All };
                let mut m = MInst::new(if wide { M::Match64 } else { M::Match }).a(a).with(mode);
                m.dst = word_result(self, first);
                m.pd[0] = second.and_then(|r| self.regs[r.index()]);
                self.members(m, args[1])?
            }
            Op::Redux(op) => {
                let a = self.src(args[0])?;
                let mut m = MInst::new(M::Redux).a(a).with(match op {
                    ReduxOp::Add => field::ReduxOp::Add,
                    ReduxOp::MinS => field::ReduxOp::MinS,
                    ReduxOp::MinU => field::ReduxOp::MinU,
                    ReduxOp::MaxS => field::ReduxOp::MaxS,
                    ReduxOp::MaxU => field::ReduxOp::MaxU,
                    ReduxOp::And => field::ReduxOp::And,
                    ReduxOp::Or => field::ReduxOp::Or,
                    ReduxOp::Xor => field::ReduxOp::Xor,
                });
                m.dst = word_result(self, first);
                self.members(m, args[1])?
            }
            Op::Elect => {
                let mut m = MInst::new(M::Elect);
                m.dst = word_result(self, first);
                m.pd[0] = second.and_then(|r| self.regs[r.index()]);
                self.members(m, args[0])?
            }
            Op::WarpSync => self.members(MInst::new(M::Warpsync), args[0])?,
            Op::ActiveMask => {
                let mut m = MInst::new(M::Actmask);
                m.dst = word_result(self, first);
                m
            }
            Op::Bar { mode, has_count, aligned } => {
                let a = self.src(args[0])?;
                let mut m =
                    MInst::new(M::Bar).a(a).flag(Field::WithCount, has_count).flag(Field::Aligned, aligned);
                if has_count {
                    m.src[2] = self.src(args[1])?;
                }
                m = m.with(match mode {
                    BarMode::Sync => field::BarMode::Sync,
                    BarMode::Arrive => field::BarMode::Arrive,
                    BarMode::RedPopc => field::BarMode::RedPopc,
                    BarMode::RedAnd => field::BarMode::RedAnd,
                    BarMode::RedOr => field::BarMode::RedOr,
                });
                if matches!(mode, BarMode::RedPopc | BarMode::RedAnd | BarMode::RedOr) {
                    m.ps[0] = self.pred(args[1 + usize::from(has_count)]);
                }
                if mode == BarMode::RedPopc {
                    m.dst = word_result(self, first);
                } else {
                    m.pd[0] = first.and_then(|r| self.regs[r.index()]);
                }
                m
            }
            _ => return self.fail(format!("{:?} is not built", inst.op)),
        };
        m.guard = guard;
        self.push(m);
        Ok(())
    }

    /// The guard as a predicate source.
    pub(super) fn guard_of(&mut self, inst: &ir::InstData) -> crate::mir::PSrc {
        match inst.guard {
            None => crate::mir::PSrc::TRUE,
            Some(g) => {
                let p = self.pred(g.value);
                if g.negated { p.negated() } else { p }
            }
        }
    }

    /// Results that a guarded operation leaves alone where its guard does not hold.
    pub(super) fn pass_through(&mut self, inst: &ir::InstData) -> Result<()> {
        if inst.guard.is_none() {
            return Ok(());
        }
        let own = inst.own_args().len();
        for (n, &r) in inst.results.iter().enumerate() {
            if let Some(reg) = self.regs[r.index()] {
                self.copy_value(Sub { reg, at: 0 }, inst.args[own + n])?;
            }
        }
        Ok(())
    }

    /// Nobody says what the results are where the guard does not hold.
    pub(super) fn is_fresh(&self, inst: &ir::InstData) -> bool {
        let own = inst.own_args().len();
        inst.guard.is_some()
            && inst.args[own..].iter().all(|&v| self.f.def_op(v).is_some_and(|d| d.op == ir::Op::Undef))
    }

    /// The member mask: a flag for the whole warp, else a register.
    fn members(&mut self, m: MInst, mask: Value) -> Result<MInst> {
        if self.constant(mask) == Some(0xffff_ffff) {
            return Ok(m.flag(Field::All, true));
        }
        let e = self.reg(mask)?;
        Ok(m.e(e))
    }
}
