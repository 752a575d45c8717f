//! Machine code with virtual registers: what selection makes and register allocation turns into [`isa::Inst`].
//!
//! A virtual register is a word, an aligned pair, an aligned quad, a predicate, or a word or pair of the uniform file. It may be written more than once and in
//! parts: an operand names a virtual register and the word in it where the operand starts; the instruction's table row says
//! how many words follow. A guarded instruction leaves its destination as it was where the guard does not hold, so it also
//! reads it.

use crate::clobbers::Clobbers;
use crate::mark_phases::Phases;
use ir::LocId;
use isa::field::{Field, FieldValue};
use isa::{Head, Op, Operand, Role, Src};
use std::num::NonZeroU32;

/// A virtual register: its number and one, so that having none takes no more room.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VReg(NonZeroU32);

impl VReg {
    pub fn new(index: usize) -> Self {
        VReg(NonZeroU32::MIN.saturating_add(index as u32))
    }

    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

impl std::fmt::Debug for VReg {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "v{}", self.index())
    }
}

/// What a virtual register holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    Word,
    Pair,
    Quad,
    Pred,
    /// One value a warp: a uniform register, or an aligned pair of them.
    Uniform,
    UniformPair,
}

impl Class {
    /// Words, or one predicate.
    pub fn units(self) -> u32 {
        match self {
            Class::Word | Class::Pred | Class::Uniform => 1,
            Class::Pair | Class::UniformPair => 2,
            Class::Quad => 4,
        }
    }

    pub fn is_uniform(self) -> bool {
        matches!(self, Class::Uniform | Class::UniformPair)
    }
}

/// Words of a virtual register from word `at` on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Sub {
    pub reg: VReg,
    pub at: u8,
}

impl Sub {
    pub fn word(self, n: u8) -> Sub {
        Sub { at: self.at + n, ..self }
    }
}

/// A source: a virtual register, or what `src` says; the modifiers are those of `src`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MSrc {
    pub src: Src,
    pub reg: Option<Sub>,
}

impl MSrc {
    /// Zero.
    pub const ZERO: MSrc = MSrc { src: Src::NONE, reg: None };

    pub fn reg(sub: Sub) -> Self {
        MSrc { src: Src::NONE, reg: Some(sub) }
    }

    /// A uniform register; the operand says that it takes the wide slot, the number comes with allocation.
    pub fn uniform(sub: Sub) -> Self {
        MSrc { src: Src { operand: Operand::UReg(isa::UReg::URZ), ..Src::NONE }, reg: Some(sub) }
    }

    /// An immediate; zero takes no slot.
    pub fn imm(bits: u32) -> Self {
        if bits == 0 { MSrc::ZERO } else { MSrc { src: Src::imm(bits), reg: None } }
    }

    pub fn constant(bank: u8, offset: u16) -> Self {
        MSrc { src: Src::constant(bank, offset), reg: None }
    }

    pub fn negated(mut self) -> Self {
        self.src.neg = !self.src.neg;
        self
    }

    pub fn absolute(mut self) -> Self {
        (self.src.neg, self.src.abs) = (false, true);
        self
    }

    /// Without modifiers.
    pub fn plain(mut self) -> Self {
        (self.src.neg, self.src.abs) = (false, false);
        self
    }

    pub fn is_wide(&self) -> bool {
        self.src.is_wide()
    }

    pub fn is_zero(&self) -> bool {
        self.reg.is_none() && self.src.operand == Operand::None
    }

    pub fn imm_bits(&self) -> Option<u32> {
        match (self.reg, self.src.operand) {
            (None, Operand::Imm(bits)) => Some(bits),
            (None, Operand::None) => Some(0),
            _ => None,
        }
    }

    /// The next word of a constant pair or register pair.
    pub fn word(mut self, n: u8) -> Self {
        self.reg = self.reg.map(|s| s.word(n));
        if let Operand::Const { offset, .. } = &mut self.src.operand {
            *offset += 4 * u16::from(n);
        }
        self
    }
}

/// A predicate source; without a register it is true.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PSrc {
    pub reg: Option<VReg>,
    pub neg: bool,
}

impl PSrc {
    pub const TRUE: PSrc = PSrc { reg: None, neg: false };
    pub const FALSE: PSrc = PSrc { reg: None, neg: true };

    pub fn reg(reg: VReg) -> Self {
        PSrc { reg: Some(reg), neg: false }
    }

    pub fn negated(self) -> Self {
        PSrc { neg: !self.neg, ..self }
    }
}

/// A place that is known when the code is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    Block(usize),
    Function(ir::FuncId),
}

/// An immediate that depends on the frame, known after allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameImm {
    /// Plus the size of the frame.
    Size,
    /// Minus the size of the frame.
    NegSize,
}

/// What a call reads and writes beyond its operands.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CallRegs {
    pub uses: Vec<VReg>,
    pub defs: Vec<VReg>,
    /// What the callee overwrites; `None`: every register but the stack pointer.
    pub clobbers: Option<Clobbers>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct MInst {
    /// Operation and modifiers.
    pub inst: Head,
    pub dst: Option<Sub>,
    pub pd: [Option<VReg>; 2],
    pub src: [MSrc; 3],
    pub e: Option<Sub>,
    /// The uniform register of a memory address: a pair for global and generic ones.
    pub ur: Option<Sub>,
    pub ps: [PSrc; 3],
    pub guard: PSrc,
    /// Where the guard does not hold the destination may be anything: what it was before is not read.
    pub fresh: bool,
    /// The same for the predicates it writes: a carry that only an instruction under the same guard reads.
    pub fresh_preds: bool,
    pub target: Option<Target>,
    pub frame: Option<FrameImm>,
    /// Set for calls.
    pub call: Option<Box<CallRegs>>,
    pub loc: LocId,
}

impl MInst {
    pub fn new(op: Op) -> Self {
        MInst {
            inst: Head::new(op),
            dst: None,
            pd: [None; 2],
            src: [MSrc::ZERO; 3],
            e: None,
            ur: None,
            ps: [PSrc::TRUE; 3],
            guard: PSrc::TRUE,
            fresh: false,
            fresh_preds: false,
            target: None,
            frame: None,
            call: None,
            loc: LocId(0),
        }
    }

    pub fn op(&self) -> Op {
        self.inst.op
    }

    #[must_use]
    pub fn dst(mut self, dst: Sub) -> Self {
        self.dst = Some(dst);
        self
    }

    #[must_use]
    pub fn pd(mut self, n: usize, p: VReg) -> Self {
        self.pd[n] = Some(p);
        self
    }

    #[must_use]
    pub fn a(mut self, s: MSrc) -> Self {
        self.src[0] = s;
        self
    }

    #[must_use]
    pub fn b(mut self, s: MSrc) -> Self {
        self.src[1] = s;
        self
    }

    #[must_use]
    pub fn c(mut self, s: MSrc) -> Self {
        self.src[2] = s;
        self
    }

    #[must_use]
    pub fn e(mut self, s: Sub) -> Self {
        self.e = Some(s);
        self
    }

    #[must_use]
    pub fn ps(mut self, n: usize, p: PSrc) -> Self {
        self.ps[n] = p;
        self
    }

    #[must_use]
    pub fn guard(mut self, p: PSrc) -> Self {
        self.guard = p;
        self
    }

    #[must_use]
    pub fn with<F: FieldValue>(mut self, value: F) -> Self {
        self.inst = self.inst.with(value);
        self
    }

    #[must_use]
    pub fn flag(mut self, field: Field, on: bool) -> Self {
        if on {
            self.inst = self.inst.with_flag(field, true);
        }
        self
    }

    #[must_use]
    pub fn num(mut self, field: Field, value: u32) -> Self {
        self.inst = self.inst.with_num(field, value);
        self
    }

    /// The block that it names: where lanes meet again.
    pub fn target_block(&self) -> Option<usize> {
        match self.target {
            Some(Target::Block(b)) => Some(b),
            _ => None,
        }
    }

    /// What its predicates were before is read where the guard does not hold.
    pub fn keeps_preds(&self) -> bool {
        self.is_guarded() && !self.fresh && !self.fresh_preds
    }

    pub fn is_guarded(&self) -> bool {
        self.guard != PSrc::TRUE
    }

    /// A copy of one word: (to, from).
    pub fn as_copy(&self) -> Option<(Sub, Sub)> {
        if self.op() != Op::Mov || self.is_guarded() || self.frame.is_some() || self.src[1].src != Src::NONE {
            return None;
        }
        Some((self.dst?, self.src[1].reg?))
    }

    /// A copy of a predicate: (to, from).
    pub fn as_pred_copy(&self) -> Option<(VReg, VReg)> {
        let simple = self.op() == Op::Plop3
            && !self.is_guarded()
            && self.inst.field(Field::Lut) == PRED_COPY
            && self.ps[1] == PSrc::TRUE
            && self.ps[2] == PSrc::TRUE
            && !self.ps[0].neg;
        if simple { Some((self.pd[0]?, self.ps[0].reg?)) } else { None }
    }

    /// Words written: first and how many.
    pub fn written(&self) -> Option<(Sub, u32)> {
        let dst = self.dst?;
        let width = self.inst.op.row().roles.iter().find_map(|&role| match role {
            Role::D | Role::D2 | Role::DW | Role::DT | Role::DTo | Role::DM | Role::U | Role::U2 => {
                Some(self.inst.width(role))
            }
            _ => None,
        })?;
        Some((dst, width))
    }

    /// Words that source `k` reads; none where the operation does not have it.
    pub fn source_width(&self, k: usize) -> u32 {
        let has = |role: &&Role| matches!(place_of(**role), Some(Place::Src(n)) if n == k);
        self.inst.op.row().roles.iter().find(has).map_or(0, |&role| self.inst.width(role))
    }

    /// Words of the uniform register of the address.
    fn ur_width(&self) -> u32 {
        1 + self.inst.field(Field::E64)
    }

    /// Words read: first and how many, guarded destinations not included.
    pub fn for_each_read(&self, mut f: impl FnMut(Sub, u32)) {
        for &role in self.inst.op.row().roles {
            let sub = match place_of(role) {
                Some(Place::Src(k)) => self.src[k].reg,
                Some(Place::E) => self.e,
                None => None,
            };
            if let Some(sub) = sub {
                f(sub, self.inst.width(role));
            }
        }
        if let Some(sub) = self.ur {
            f(sub, self.ur_width());
        }
    }

    /// Calls `f` on every register operand: the operand, its words, whether it is written.
    pub fn for_each_sub_mut(&mut self, mut f: impl FnMut(&mut Sub, u32, bool)) {
        let width = self.written().map(|w| w.1);
        if let (Some(dst), Some(width)) = (&mut self.dst, width) {
            f(dst, width, true);
        }
        for &role in self.inst.op.row().roles {
            let width = self.inst.width(role);
            let sub = match place_of(role) {
                Some(Place::Src(k)) => self.src[k].reg.as_mut(),
                Some(Place::E) => self.e.as_mut(),
                None => None,
            };
            if let Some(sub) = sub {
                f(sub, width, false);
            }
        }
        let width = self.ur_width();
        if let Some(sub) = &mut self.ur {
            f(sub, width, false);
        }
    }

    /// Predicates read: sources and guard.
    pub fn for_each_pred_read(&self, mut f: impl FnMut(VReg)) {
        for p in self.ps.iter().chain([&self.guard]) {
            if let Some(r) = p.reg {
                f(r);
            }
        }
    }

    /// Calls `f` on every predicate operand and whether it is written.
    pub fn for_each_pred_mut(&mut self, mut f: impl FnMut(&mut VReg, bool)) {
        for p in self.pd.iter_mut().flatten() {
            f(p, true);
        }
        for p in self.ps.iter_mut().chain([&mut self.guard]) {
            if let Some(r) = &mut p.reg {
                f(r, false);
            }
        }
    }
}

/// The truth table that passes the first predicate on.
pub const PRED_COPY: u32 = 0xf0;

enum Place {
    Src(usize),
    E,
}

fn place_of(role: Role) -> Option<Place> {
    use Role::*;
    match role {
        A | A2 | AFrom | Addr | CAddr => Some(Place::Src(0)),
        B | B2 => Some(Place::Src(1)),
        C | C2 | CW | CT => Some(Place::Src(2)),
        E | E2 | ET => Some(Place::E),
        _ => None,
    }
}

/// How a block ends.
#[derive(Clone, PartialEq, Debug)]
pub enum MTerm {
    Jump(usize),
    Branch {
        cond: PSrc,
        then: usize,
        otherwise: usize,
        uniform: bool,
    },
    /// To the place in a register, read from the jump table `table` of the function.
    Table {
        place: Sub,
        table: usize,
        uniform: bool,
    },
    /// To the place in a register, with results in fixed registers.
    Return {
        to: Sub,
        results: Vec<VReg>,
    },
    Exit,
    /// Control does not come here.
    Trap,
}

impl MTerm {
    pub fn for_each_target_mut(&mut self, mut f: impl FnMut(&mut usize)) {
        match self {
            MTerm::Jump(t) => f(t),
            MTerm::Branch { then, otherwise, .. } => {
                f(then);
                f(otherwise);
            }
            _ => {}
        }
    }
}

/// A jump table in the loader's bank: where its words start and the blocks they name.
#[derive(Clone, PartialEq, Debug)]
pub struct JumpTable {
    pub offset: u32,
    pub targets: Vec<usize>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct MBlock {
    pub insts: Vec<MInst>,
    pub term: MTerm,
    pub term_loc: LocId,
    /// Loops around it.
    pub depth: u32,
}

#[derive(Clone, PartialEq, Debug)]
pub struct MFunction {
    pub name: String,
    /// In layout order; the first is the entry.
    pub blocks: Vec<MBlock>,
    pub classes: Vec<Class>,
    /// Physical register that a virtual one must be.
    pub fixed: Vec<Option<u8>>,
    pub tables: Vec<JumpTable>,
    /// Bytes of the frame that are taken already: stack arguments and variables.
    pub frame_bytes: u32,
    /// The stack pointer is in use.
    pub uses_stack: bool,
    /// The stack pointer's virtual register, fixed to R1.
    pub sp: VReg,
    /// Addresses in the CTA's part of shared memory, from its start, and the uniform registers that shall have them.
    pub windows: Vec<(u32, VReg)>,
    /// Fixed registers that hold something where the function starts.
    pub arguments: Vec<VReg>,
    /// Instructions stay in the order of the source.
    pub keeps_order: bool,
    /// What phases are made of.
    pub phases: Phases,
}

impl MFunction {
    pub fn new(name: &str) -> Self {
        let mut f = MFunction {
            name: name.into(),
            blocks: Vec::new(),
            classes: Vec::new(),
            fixed: Vec::new(),
            tables: Vec::new(),
            frame_bytes: 0,
            uses_stack: false,
            sp: VReg::new(0),
            windows: Vec::new(),
            arguments: Vec::new(),
            keeps_order: false,
            phases: Phases::Textures,
        };
        f.sp = f.new_fixed(Class::Word, isa::abi::STACK_POINTER);
        f
    }

    pub fn new_reg(&mut self, class: Class) -> VReg {
        self.classes.push(class);
        self.fixed.push(None);
        VReg::new(self.classes.len() - 1)
    }

    pub fn new_fixed(&mut self, class: Class, at: u8) -> VReg {
        let r = self.new_reg(class);
        self.fixed[r.index()] = Some(at);
        r
    }

    pub fn class(&self, r: VReg) -> Class {
        self.classes[r.index()]
    }

    /// Removes blocks that nothing leads to, as behind a branch whose condition selection found to be known. What stands in
    /// one must not stand for what happens elsewhere: a value made there is made nowhere. A place where lanes would meet is
    /// named even if they do not get there: of it nothing but the name stays.
    pub fn remove_unreachable(&mut self) {
        let mut new = vec![usize::MAX; self.blocks.len()];
        let mut named = Vec::new();
        let mut stack = vec![0];
        while let Some(b) = stack.pop() {
            if std::mem::replace(&mut new[b], 0) == usize::MAX {
                stack.extend(self.successors(b));
                named.extend(self.blocks[b].insts.iter().filter_map(|i| i.target_block()));
            }
        }
        for b in named {
            if std::mem::replace(&mut new[b], 0) == usize::MAX {
                self.blocks[b].insts.clear();
                self.blocks[b].term = MTerm::Trap;
            }
        }
        if new.iter().all(|&n| n == 0) {
            return;
        }
        new.iter_mut().filter(|n| **n == 0).enumerate().for_each(|(k, n)| *n = k);
        let mut at = 0;
        self.blocks.retain(|_| {
            at += 1;
            new[at - 1] != usize::MAX
        });
        for b in &mut self.blocks {
            for i in &mut b.insts {
                if let Some(Target::Block(t)) = &mut i.target {
                    *t = new[*t];
                }
            }
            match &mut b.term {
                MTerm::Jump(t) => *t = new[*t],
                MTerm::Branch { then, otherwise, .. } => (*then, *otherwise) = (new[*then], new[*otherwise]),
                _ => {}
            }
        }
        // The table of a jump that is gone still has its place; nobody looks where it leads.
        for t in self.tables.iter_mut().flat_map(|t| &mut t.targets) {
            *t = if new[*t] == usize::MAX { 0 } else { new[*t] };
        }
    }

    /// Blocks that block `b` may go to.
    pub fn successors(&self, b: usize) -> smallvec::SmallVec<[usize; 2]> {
        match &self.blocks[b].term {
            MTerm::Jump(t) => smallvec::smallvec![*t],
            MTerm::Branch { then, otherwise, .. } => smallvec::smallvec![*then, *otherwise],
            MTerm::Table { table, .. } => self.tables[*table].targets.iter().copied().collect(),
            _ => smallvec::SmallVec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Class, MBlock, MFunction, MInst, MSrc, MTerm, Sub, Target};
    use ir::LocId;
    use isa::Op;

    #[test]
    fn of_a_meeting_point_that_nothing_leads_to_only_the_name_stays() {
        let mut f = MFunction::new("f");
        let r = Sub { reg: f.new_reg(Class::Word), at: 0 };
        let block = |insts: Vec<MInst>, term| MBlock { insts, term, term_loc: LocId(0), depth: 0 };
        let mut agree = MInst::new(Op::Bssy);
        agree.target = Some(Target::Block(3));
        let make = || MInst::new(Op::Mov).dst(r).b(MSrc::imm(7));
        f.blocks = vec![
            block(vec![agree], MTerm::Jump(2)),
            block(vec![make()], MTerm::Jump(3)),
            block(vec![make()], MTerm::Jump(2)),
            block(vec![make(), MInst::new(Op::Bsync)], MTerm::Jump(1)),
        ];
        f.remove_unreachable();
        assert_eq!(f.blocks.len(), 3, "block 1 is gone");
        assert_eq!(f.blocks[1], block(vec![make()], MTerm::Jump(1)), "what is reached stays");
        assert_eq!(f.blocks[2], block(Vec::new(), MTerm::Trap), "what is named alone is empty");
        assert_eq!(f.blocks[0].insts[0].target_block(), Some(2));
    }
}
