//! Layout: blocks in order with branches that fall through where they can, physical registers, the line table.

use crate::allocate::Allocation;
use crate::mir::{Class, FrameImm, MFunction, MInst, MTerm, PSrc, Sub, Target, VReg};
use ir::{FuncId, FunctionKind, LocId};
use isa::field::{BptMode, Field};
use isa::{Inst, Op, Operand, Pred, PredUse, Reg, Src, UReg, abi};

/// A function's code; targets are places from its start.
pub struct Code {
    pub insts: Vec<Inst>,
    pub locs: Vec<LocId>,
    /// Instructions whose target is the start of a function.
    pub calls: Vec<(u32, FuncId)>,
    /// Instructions whose target is a place in this function.
    pub jumps: Vec<u32>,
    /// Words of jump tables: offset in the loader's bank, place.
    pub table_words: Vec<(u32, u32)>,
}

struct Emitter<'a> {
    f: &'a MFunction,
    a: &'a Allocation,
    code: Code,
    /// Jumps to blocks whose place is not known yet.
    pending: Vec<(u32, usize)>,
}

pub fn emit(f: &MFunction, a: &Allocation, kind: FunctionKind, loc: LocId) -> Code {
    let code = Code {
        insts: Vec::new(),
        locs: Vec::new(),
        calls: Vec::new(),
        jumps: Vec::new(),
        table_words: Vec::new(),
    };
    let mut e = Emitter { f, a, code, pending: Vec::new() };
    if kind == FunctionKind::Entry && f.uses_stack {
        let mut i = Inst::new(Op::Ldc).with_num(Field::Bank, u32::from(abi::BANK_LAUNCH));
        i.dst = Reg(abi::STACK_POINTER);
        i.src[1] = Src::imm(u32::from(abi::launch::STACK));
        e.push(i, loc);
    }
    // Blocks that only go on are left out.
    let through = e.resolve();
    let live = reachable(f, &through);
    let order: Vec<usize> = (0..f.blocks.len()).filter(|&b| live[b]).collect();
    let mut places = vec![0u32; f.blocks.len()];
    for (n, &b) in order.iter().enumerate() {
        places[b] = e.code.insts.len() as u32;
        for i in &f.blocks[b].insts {
            e.inst(i, &through);
        }
        e.terminator(b, &through, order.get(n + 1).copied());
    }
    for (at, block) in std::mem::take(&mut e.pending) {
        e.code.insts[at as usize].set_target(places[block]);
        e.code.jumps.push(at);
    }
    for t in &f.tables {
        for (n, &b) in t.targets.iter().enumerate() {
            e.code.table_words.push((t.offset + 4 * n as u32, places[through[b]]));
        }
    }
    e.code
}

fn reachable(f: &MFunction, through: &[usize]) -> Vec<bool> {
    let mut live = vec![false; f.blocks.len()];
    let mut stack = vec![through[0]];
    while let Some(b) = stack.pop() {
        if !std::mem::replace(&mut live[b], true) {
            stack.extend(f.successors(b).into_iter().map(|s| through[s]));
        }
    }
    live
}

impl Emitter<'_> {
    fn push(&mut self, i: Inst, loc: LocId) {
        self.code.insts.push(i.canonical());
        self.code.locs.push(loc);
    }

    /// Where a jump to each block ends up.
    fn resolve(&self) -> Vec<usize> {
        let mut through: Vec<Option<usize>> = vec![None; self.f.blocks.len()];
        let mut way: Vec<usize> = Vec::new();
        for b in 0..through.len() {
            let mut at = b;
            let end = loop {
                if let Some(end) = through[at] {
                    break end;
                }
                // Until something else is known, a way that comes back here ends here: a ring of empty blocks.
                through[at] = Some(at);
                way.push(at);
                match self.f.blocks[at].term {
                    MTerm::Jump(t) if t != at && self.is_empty(at) => at = t,
                    _ => break at,
                }
            };
            way.drain(..).for_each(|b| through[b] = Some(end));
        }
        through.into_iter().enumerate().map(|(b, end)| end.unwrap_or(b)).collect()
    }

    fn is_empty(&self, b: usize) -> bool {
        self.f.blocks[b].insts.iter().all(|i| self.is_self_move(i))
    }

    /// A copy that allocation gave one register.
    fn is_self_move(&self, i: &MInst) -> bool {
        i.as_copy().is_some_and(|(to, from)| self.reg(to) == self.reg(from))
            || i.as_pred_copy().is_some_and(|(to, from)| self.pred(to) == self.pred(from))
    }

    fn reg(&self, s: Sub) -> Reg {
        Reg(self.a.registers[s.reg.index()] + s.at)
    }

    fn pred(&self, r: VReg) -> Pred {
        debug_assert_eq!(self.f.class(r), Class::Pred);
        Pred(self.a.registers[r.index()])
    }

    fn pred_use(&self, p: PSrc) -> PredUse {
        PredUse { pred: p.reg.map_or(Pred::PT, |r| self.pred(r)), neg: p.neg }
    }

    fn inst(&mut self, m: &MInst, through: &[usize]) {
        if self.is_self_move(m) {
            return;
        }
        let mut i = m.inst.inst();
        i.guard = self.pred_use(m.guard);
        // Registers that nobody reads were given none: the write is dropped.
        i.dst = m.dst.map_or(Reg::RZ, |d| match self.a.registers[d.reg.index()] {
            u8::MAX if self.f.class(d.reg).is_uniform() => Reg(UReg::URZ.0),
            u8::MAX => Reg::RZ,
            _ => self.reg(d),
        });
        for k in 0..2 {
            i.pd[k] = m.pd[k].map_or(Pred::PT, |p| {
                if self.a.registers[p.index()] == u8::MAX { Pred::PT } else { self.pred(p) }
            });
        }
        for k in 0..3 {
            i.src[k] = m.src[k].src;
            if let Some(s) = m.src[k].reg {
                i.src[k].operand = if self.f.class(s.reg).is_uniform() {
                    Operand::UReg(UReg(self.reg(s).0))
                } else {
                    Operand::Reg(self.reg(s))
                };
            }
            i.ps[k] = self.pred_use(m.ps[k]);
        }
        i.e = m.e.map_or(Reg::RZ, |s| self.reg(s));
        if let Some(s) = m.ur {
            i.set_field(Field::Ur, u32::from(self.reg(s).0) + 1);
        }
        if let Some(frame) = m.frame {
            let bits = m.src[1].imm_bits().unwrap_or(0);
            i.src[1] = Src::imm(match frame {
                FrameImm::Size => bits.wrapping_add(self.a.frame_bytes),
                FrameImm::NegSize => bits.wrapping_sub(self.a.frame_bytes),
            });
            // Without a frame the callee's starts where this one would.
            if i.op == Op::Iadd3 && i.src[1] == Src::imm(0) && i.src[0] == Src::reg(i.dst) {
                return;
            }
        }
        let at = self.code.insts.len() as u32;
        match m.target {
            Some(Target::Block(b)) => {
                i.set_target(0);
                self.pending.push((at, through[b]));
            }
            Some(Target::Function(f)) => {
                i.set_target(0);
                self.code.calls.push((at, f));
            }
            None => {}
        }
        self.push(i, m.loc);
    }

    /// Nothing is left of the block but the end of the thread.
    fn only_exits(&self, b: usize) -> bool {
        self.f.blocks[b].term == MTerm::Exit && self.is_empty(b)
    }

    fn jump(&mut self, to: usize, guard: PredUse, uniform: bool, loc: LocId) {
        if self.only_exits(to) {
            let mut i = Inst::new(Op::Exit);
            i.guard = guard;
            return self.push(i, loc);
        }
        let mut i = Inst::new(Op::Bra).with_flag(Field::Uniform, uniform);
        i.guard = guard;
        i.set_target(0);
        self.pending.push((self.code.insts.len() as u32, to));
        self.push(i, loc);
    }

    fn terminator(&mut self, b: usize, through: &[usize], next: Option<usize>) {
        let loc = self.f.blocks[b].term_loc;
        match &self.f.blocks[b].term {
            MTerm::Jump(t) => {
                let t = through[*t];
                if Some(t) != next {
                    self.jump(t, PredUse::TRUE, false, loc);
                }
            }
            MTerm::Branch { cond, then, otherwise, uniform } => {
                let (then, otherwise) = (through[*then], through[*otherwise]);
                let guard = self.pred_use(*cond);
                if then == otherwise {
                    if Some(then) != next {
                        self.jump(then, PredUse::TRUE, false, loc);
                    }
                } else if Some(then) == next {
                    self.jump(otherwise, guard.negated(), *uniform, loc);
                } else {
                    self.jump(then, guard, *uniform, loc);
                    if Some(otherwise) != next {
                        self.jump(otherwise, PredUse::TRUE, false, loc);
                    }
                }
            }
            MTerm::Table { place, uniform, .. } => {
                let mut i = Inst::new(Op::Brx).with_flag(Field::Uniform, *uniform);
                i.src[0] = Src::reg(self.reg(*place));
                self.push(i, loc);
            }
            MTerm::Return { to, .. } => {
                let mut i = Inst::new(Op::Ret);
                i.src[0] = Src::reg(self.reg(*to));
                self.push(i, loc);
            }
            MTerm::Exit => self.push(Inst::new(Op::Exit), loc),
            MTerm::Trap => self.push(Inst::new(Op::Bpt).with(BptMode::Trap), loc),
        }
    }
}
