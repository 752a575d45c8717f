//! Terminators, calls, the frame, special registers, system functions.

use super::{Result, Selector, class_of};
use crate::mir::{CallRegs, Class, FrameImm, JumpTable, MInst, MSrc, MTerm, PSrc, Sub, Target};
use ir::{FuncId, FunctionKind, InstId, Op, SReg, Syscall, Terminator, Type, Value};
use isa::abi::{self, ArgPlace};
use isa::field::{BptMode, Field, SysFn, Width};
use isa::{Op as M, Special};

fn words_of(ty: Type) -> u32 {
    if ty == Type::B64 { 2 } else { 1 }
}

impl Selector<'_> {
    /// Places of variables in the frame; stack arguments and results come first.
    pub(super) fn lay_out_frame(&mut self) -> Result<()> {
        let f = self.f;
        let arguments = abi::place_args(f.param_values.iter().map(|&v| words_of(f.ty(v)))).1;
        let results = abi::place_args(f.results.iter().map(|&t| words_of(t))).1;
        let mut at = u64::from(arguments.max(results));
        for s in &f.slots {
            at = at.next_multiple_of(u64::from(s.align.max(1)));
            self.slots.push(at as u32);
            at += u64::from(s.size);
        }
        if at > 1 << 24 {
            return self.fail("local variables take more than a thread can have");
        }
        self.out.frame_bytes = (at as u32).next_multiple_of(16);
        // A device function leaves its caller's stack pointer alone, and a caller hands one on.
        let calls = f.layout.iter().flat_map(|&b| &f.block(b).insts);
        let calls = calls.into_iter().any(|&i| matches!(f.inst(i).op, Op::Call(_) | Op::CallIndirect));
        self.out.uses_stack = at > 0 || f.kind == FunctionKind::Device || calls;
        let dynamic = f
            .layout
            .iter()
            .flat_map(|&b| &f.block(b).insts)
            .any(|&i| matches!(f.inst(i).op, Op::Alloca { .. } | Op::StackSave | Op::StackRestore));
        if dynamic {
            self.top = Some(self.out.new_reg(Class::Word));
        }
        Ok(())
    }

    pub(super) fn prologue(&mut self) -> Result<()> {
        let f = self.f;
        if f.kind == FunctionKind::Device {
            let from = self.out.new_fixed(Class::Word, abi::RETURN_ADDRESS);
            self.out.arguments.push(from);
            if let Some(reg) = self.return_to {
                self.mov(Sub { reg, at: 0 }, MSrc::reg(Sub { reg: from, at: 0 }));
            }
            let (places, _) = abi::place_args(f.param_values.iter().map(|&v| words_of(f.ty(v))));
            for (&v, place) in f.param_values.iter().zip(&places) {
                let (Some(reg), ArgPlace::Reg(r)) = (self.regs[v.index()], *place) else { continue };
                let fixed = self.out.new_fixed(class_of(f.ty(v)), r);
                self.out.arguments.push(fixed);
                for n in 0..words_of(f.ty(v)) as u8 {
                    self.mov(Sub { reg, at: n }, MSrc::reg(Sub { reg: fixed, at: n }));
                }
            }
            for (&v, place) in f.param_values.iter().zip(&places) {
                let (Some(reg), ArgPlace::Stack(at)) = (self.regs[v.index()], *place) else { continue };
                let sp = self.stack_pointer();
                let width = if f.ty(v) == Type::B64 { Width::B64 } else { Width::B32 };
                self.push(
                    MInst::new(M::Ldl).dst(Sub { reg, at: 0 }).a(MSrc::reg(sp)).b(MSrc::imm(at)).with(width),
                );
            }
            for (b, reg) in self.saved.clone() {
                self.push(MInst::new(M::BmovR).dst(Sub { reg, at: 0 }).num(Field::Bar4, u32::from(b)));
            }
        }
        if let Some(reg) = self.top {
            let sp = self.stack_pointer();
            let mut i = MInst::new(M::Iadd3).dst(Sub { reg, at: 0 }).a(MSrc::reg(sp));
            i.frame = Some(FrameImm::Size);
            self.push(i);
        }
        Ok(())
    }

    pub(super) fn terminator(&mut self, term: &Terminator) -> Result<MTerm> {
        match term {
            Terminator::Jump(call) => {
                self.pass_arguments(call)?;
                Ok(MTerm::Jump(self.number[call.block.index()]))
            }
            Terminator::Branch { cond, then, otherwise, uniform } => {
                let uniform = *uniform || self.convergence.stays_together(self.block);
                let (then, otherwise) =
                    (self.number[then.block.index()], self.number[otherwise.block.index()]);
                let cond = self.pred(*cond);
                Ok(match cond {
                    PSrc { reg: None, neg } => MTerm::Jump(if neg { otherwise } else { then }),
                    cond => MTerm::Branch { cond, then, otherwise, uniform },
                })
            }
            Terminator::Switch { index, targets, uniform } => {
                let offset = self.places.loader.table(targets.len());
                let offset = self.check(offset)?;
                let targets = targets.iter().map(|t| self.number[t.block.index()]).collect();
                self.out.tables.push(JumpTable { offset, targets });
                let (scaled, place) = (self.word(), self.word());
                let index = self.src(*index)?;
                self.shift_left(scaled, index, MSrc::imm(2));
                self.push(
                    MInst::new(M::Ldc)
                        .dst(place)
                        .a(MSrc::reg(scaled))
                        .b(MSrc::imm(offset))
                        .num(Field::Bank, u32::from(abi::BANK_LOADER)),
                );
                Ok(MTerm::Table { place, table: self.out.tables.len() - 1, uniform: *uniform })
            }
            Terminator::Return(values) => self.return_values(values),
            Terminator::Exit => Ok(MTerm::Exit),
            Terminator::Unreachable => Ok(MTerm::Trap),
        }
    }

    fn return_values(&mut self, values: &[Value]) -> Result<MTerm> {
        let f = self.f;
        let (places, _) = abi::place_args(f.results.iter().map(|&t| words_of(t)));
        let mut copies = Vec::new();
        let mut results = Vec::new();
        for (&v, place) in values.iter().zip(&places) {
            match *place {
                ArgPlace::Reg(r) => {
                    let to = self.out.new_fixed(class_of(f.ty(v)), r);
                    results.push(to);
                    self.argument_copies(to, v, &mut copies)?;
                }
                ArgPlace::Stack(at) => {
                    let sp = self.stack_pointer();
                    self.store_argument(sp, at, v, None)?;
                }
            }
        }
        for (b, reg) in self.saved.clone() {
            self.push(MInst::new(M::BmovB).a(MSrc::reg(Sub { reg, at: 0 })).num(Field::Bar4, u32::from(b)));
        }
        self.copy_words(copies);
        match self.return_to {
            Some(reg) => Ok(MTerm::Return { to: Sub { reg, at: 0 }, results }),
            None => self.fail("an entry cannot return"),
        }
    }

    fn argument_copies(
        &mut self,
        to: crate::mir::VReg,
        v: Value,
        copies: &mut Vec<(Sub, MSrc)>,
    ) -> Result<()> {
        let to = Sub { reg: to, at: 0 };
        match self.f.ty(v) {
            Type::P => return self.fail("a predicate cannot be passed"),
            Type::B64 => {
                let w = self.words(v)?;
                copies.push((to, w[0]));
                copies.push((to.word(1), w[1]));
            }
            _ => copies.push((to, self.src(v)?)),
        }
        Ok(())
    }

    /// Stores a stack argument at `base + at` (plus the frame, as `frame` says).
    fn store_argument(&mut self, base: Sub, at: u32, v: Value, frame: Option<FrameImm>) -> Result<()> {
        let (data, width) = if self.f.ty(v) == Type::B64 {
            (self.pair_reg(v)?, Width::B64)
        } else {
            (self.reg(v)?, Width::B32)
        };
        let mut i = MInst::new(M::Stl).a(MSrc::reg(base)).b(MSrc::imm(at)).c(MSrc::reg(data)).with(width);
        i.frame = frame;
        self.push(i);
        Ok(())
    }

    /// A call: arguments to their places, the stack pointer past this frame, and back.
    pub(super) fn call(&mut self, callee: Option<FuncId>, args: &[Value], results: &[Value]) -> Result<()> {
        let f = self.f;
        let sp = self.stack_pointer();
        let (place, args) = match callee {
            Some(_) => (None, args),
            None => {
                let low = self.low_word(args[0])?;
                (Some(MSrc::reg(self.in_register(low))), &args[1..])
            }
        };
        if let Some(c) = callee
            && self.m.function(c).is_declaration
        {
            return self.fail(format!("call of `{}`, which has no body", self.m.function(c).name));
        }
        let (places, _) = abi::place_args(args.iter().map(|&v| words_of(f.ty(v))));
        let mut regs = CallRegs::default();
        let mut copies = Vec::new();
        // In a function with `alloca`, 16 bytes at the top keep the stack pointer and the callee's frame follows.
        let (base, up, frame) = match self.top {
            Some(reg) => (Sub { reg, at: 0 }, 16, None),
            None => (sp, 0, Some(FrameImm::Size)),
        };
        for (&v, place) in args.iter().zip(&places) {
            match *place {
                ArgPlace::Stack(at) => self.store_argument(base, up + at, v, frame)?,
                ArgPlace::Reg(r) => {
                    let to = self.out.new_fixed(class_of(f.ty(v)), r);
                    regs.uses.push(to);
                    self.argument_copies(to, v, &mut copies)?;
                }
            }
        }
        self.copy_words(copies);
        if self.top.is_some() {
            self.push(MInst::new(M::Stl).a(MSrc::reg(base)).c(MSrc::reg(sp)));
            self.push(MInst::new(M::Iadd3).dst(sp).a(MSrc::reg(base)).b(MSrc::imm(16)));
        } else {
            let mut i = MInst::new(M::Iadd3).dst(sp).a(MSrc::reg(sp));
            i.frame = Some(FrameImm::Size);
            self.push(i);
        }
        let (result_places, _) = abi::place_args(results.iter().map(|&v| words_of(f.ty(v))));
        let mut after: Vec<(Sub, Sub, u32)> = Vec::new();
        for (&v, place) in results.iter().zip(&result_places) {
            if let (Some(reg), ArgPlace::Reg(r)) = (self.regs[v.index()], *place) {
                let fixed = self.out.new_fixed(class_of(f.ty(v)), r);
                regs.defs.push(fixed);
                after.push((Sub { reg, at: 0 }, Sub { reg: fixed, at: 0 }, words_of(f.ty(v))));
            }
        }
        let link = self.out.new_fixed(Class::Word, abi::RETURN_ADDRESS);
        let mut i = match place {
            Some(place) => MInst::new(M::Callx).a(place),
            None => MInst::new(M::Call),
        };
        i.dst = Some(Sub { reg: link, at: 0 });
        i.target = callee.map(Target::Function);
        i.call = Some(Box::new(regs));
        self.push(i);
        if self.top.is_some() {
            self.push(MInst::new(M::Ldl).dst(sp).a(MSrc::reg(sp)).b(MSrc::imm(16u32.wrapping_neg())));
        } else {
            let mut i = MInst::new(M::Iadd3).dst(sp).a(MSrc::reg(sp));
            i.frame = Some(FrameImm::NegSize);
            self.push(i);
        }
        for (to, from, words) in after {
            for n in 0..words as u8 {
                self.mov(to.word(n), MSrc::reg(from.word(n)));
            }
        }
        for (&v, place) in results.iter().zip(&result_places) {
            if let (Some(reg), ArgPlace::Stack(at)) = (self.regs[v.index()], *place) {
                let width = if f.ty(v) == Type::B64 { Width::B64 } else { Width::B32 };
                let mut i = MInst::new(M::Ldl)
                    .dst(Sub { reg, at: 0 })
                    .a(MSrc::reg(base))
                    .b(MSrc::imm(up + at))
                    .with(width);
                i.frame = frame;
                self.push(i);
            }
        }
        Ok(())
    }

    pub(super) fn special(&mut self, result: Value, r: SReg) -> Result<()> {
        let axis = |x: Special, n: u8| Special::from_bits(x as u32 + u32::from(n)).unwrap_or(Special::Zero);
        let special = match r {
            SReg::Tid(n) => axis(Special::TidX, n),
            SReg::Ctaid(n) => axis(Special::CtaidX, n),
            SReg::ClusterId(n) => axis(Special::ClusterIdX, n),
            SReg::NClusterId(n) => axis(Special::NClusterIdX, n),
            SReg::ClusterCtaid(n) => axis(Special::ClusterCtaidX, n),
            SReg::ClusterNctaid(n) => axis(Special::ClusterNctaidX, n),
            SReg::Pm(n) | SReg::Pm64(n) => axis(Special::Pm0, n),
            SReg::LaneId => Special::LaneId,
            SReg::WarpId => Special::WarpId,
            SReg::NWarpId => Special::NWarpId,
            SReg::SmId => Special::SmId,
            SReg::NSmId => Special::NSmId,
            SReg::GridId => Special::GridIdLo,
            SReg::ClusterCtaRank => Special::ClusterCtaRank,
            SReg::ClusterNctaRank => Special::ClusterNctaRank,
            SReg::IsExplicitCluster => Special::IsExplicitCluster,
            SReg::LaneMaskEq => Special::LaneMaskEq,
            SReg::LaneMaskLe => Special::LaneMaskLe,
            SReg::LaneMaskLt => Special::LaneMaskLt,
            SReg::LaneMaskGe => Special::LaneMaskGe,
            SReg::LaneMaskGt => Special::LaneMaskGt,
            SReg::Clock | SReg::Clock64 => Special::ClockLo,
            SReg::ClockHi => Special::ClockHi,
            SReg::GlobalTimer | SReg::GlobalTimerLo => Special::GlobalTimerLo,
            SReg::GlobalTimerHi => Special::GlobalTimerHi,
            SReg::TotalSmemSize => Special::TotalSmem,
            SReg::DynamicSmemSize => Special::DynamicSmem,
            SReg::AggrSmemSize => Special::AggrSmem,
            SReg::ReservedSmemOffset => Special::Zero,
            SReg::Ntid(_) | SReg::Nctaid(_) | SReg::EnvReg(_) => {
                return self.fail("this register is a constant");
            }
        };
        let d = self.def(result);
        let wide = matches!(r, SReg::GridId | SReg::Clock64 | SReg::GlobalTimer);
        let i = MInst::new(if wide { M::Cs2r } else { M::S2r }).dst(d).num(Field::Sr, special as u32);
        self.push(i);
        if let SReg::Pm64(_) = r {
            self.mov(d.word(1), MSrc::ZERO);
        }
        // A 32-bit register read as 64 bits.
        if self.f.ty(result) == Type::B64 && !r.is_wide() {
            self.mov(d.word(1), MSrc::ZERO);
        }
        Ok(())
    }

    pub(super) fn system(&mut self, i: InstId) -> Result<()> {
        let f = self.f;
        let inst = f.inst(i);
        let args = inst.own_args();
        let guard = self.guard_of(inst);
        match inst.op {
            Op::Nanosleep => {
                let b = self.src(args[0])?;
                self.push(MInst::new(M::Nanosleep).b(b).guard(guard));
            }
            Op::Trap => self.push(MInst::new(M::Bpt).with(BptMode::Trap).guard(guard)),
            Op::Brkpt => self.push(MInst::new(M::Bpt).with(BptMode::Brk).guard(guard)),
            Op::PmEvent(mask) => self.push(MInst::new(M::Pmtrig).b(MSrc::imm(mask)).guard(guard)),
            Op::Syscall(function) => {
                let mut pairs = [None; 4];
                // The size of a character, the last argument of a failed assertion, is one.
                for (n, &v) in args.iter().take(4).enumerate() {
                    let words =
                        if f.ty(v) == Type::B64 { self.words(v)? } else { [self.src(v)?, MSrc::ZERO] };
                    pairs[n] = Some(self.join(words)?);
                }
                let source = |n: usize| pairs[n].map_or(MSrc::ZERO, MSrc::reg);
                let mut m = MInst::new(M::Syscall).a(source(0)).b(source(1)).c(source(2)).guard(guard);
                m.e = pairs[3];
                m = m.with(match function {
                    Syscall::Vprintf => SysFn::Vprintf,
                    Syscall::Malloc => SysFn::Malloc,
                    Syscall::Free => SysFn::Free,
                    Syscall::AssertFail => SysFn::AssertFail,
                    Syscall::ParameterBuffer => SysFn::ParameterBuffer,
                    Syscall::LaunchDevice => SysFn::LaunchDevice,
                    Syscall::WaitChildren => SysFn::WaitChildren,
                    Syscall::QueuePush => SysFn::QueuePush,
                });
                let result = self.def_if_used(inst.results.first());
                let t = self.temp(Class::Pair);
                self.push(m.dst(t));
                if let (Some(d), Some(&r)) = (result, inst.results.first()) {
                    for n in 0..words_of(f.ty(r)) as u8 {
                        self.mov(d.word(n), MSrc::reg(t.word(n)));
                    }
                }
            }
            Op::Alloca { align } => {
                let align = align.max(16).next_power_of_two();
                let (Some(top), Some(&result)) = (self.top, inst.results.first()) else { return Ok(()) };
                let top = Sub { reg: top, at: 0 };
                let bytes = self.low_word(args[0])?;
                let (start, end, up) = (self.word(), self.word(), self.word());
                if align > 16 {
                    self.push(MInst::new(M::Iadd3).dst(up).a(MSrc::reg(top)).b(MSrc::imm(align - 1)));
                    let mask = MSrc::imm(align.wrapping_neg());
                    self.push(MInst::new(M::Lop3).dst(start).a(MSrc::reg(up)).b(mask).num(Field::Lut, 0xc0));
                } else {
                    self.mov(start, MSrc::reg(top));
                }
                // The top stays a multiple of 16.
                self.push(MInst::new(M::Iadd3).dst(end).a(MSrc::reg(start)).b(bytes).c(MSrc::imm(15)));
                let mask = MSrc::imm(16u32.wrapping_neg());
                self.push(MInst::new(M::Lop3).dst(top).a(MSrc::reg(end)).b(mask).num(Field::Lut, 0xc0));
                if let Some(d) = self.def_if_used(Some(&result)) {
                    self.mov(d, MSrc::reg(start));
                    if f.ty(result) == Type::B64 {
                        self.mov(d.word(1), MSrc::ZERO);
                    }
                }
            }
            Op::StackSave => {
                if let (Some(top), Some(d)) = (self.top, self.def_if_used(inst.results.first())) {
                    self.mov(d, MSrc::reg(Sub { reg: top, at: 0 }));
                    if f.ty(inst.results[0]) == Type::B64 {
                        self.mov(d.word(1), MSrc::ZERO);
                    }
                }
            }
            Op::StackRestore => {
                let saved = self.low_word(args[0])?;
                if let Some(top) = self.top {
                    self.mov(Sub { reg: top, at: 0 }, saved);
                }
            }
            _ => return self.fail(format!("{:?} is not built", inst.op)),
        }
        Ok(())
    }
}
