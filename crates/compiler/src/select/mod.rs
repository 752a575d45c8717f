//! Instruction selection: from SSA values to machine instructions on virtual registers.
//!
//! Blocks are visited from the last to the first in reverse postorder, instructions from the last to the first, so every use
//! of a value is seen before its definition: a value nobody asked for is not computed, and an operation that its only user
//! took over as a modifier, an operand or half of a fused instruction is not computed on its own.

mod control;
mod convert;
mod edges;
mod float;
mod int;
mod logic;
mod memory;
mod operand;
mod warp;
mod wide;

use crate::CompileError;
use crate::converge::Convergence;
use crate::mir::{Class, MBlock, MFunction, MInst, MSrc, MTerm, PSrc, Sub, Target, VReg};
use crate::places::Places;
use ir::{Block, FuncId, Function, FunctionKind, InstId, LocId, Module, Op, Type, Value};
use isa::Op as M;
use isa::field::{Field, Width};
use std::collections::HashMap;

/// Why a function cannot be compiled, and where.
#[derive(Debug)]
pub struct Problem {
    pub message: String,
    pub loc: LocId,
}

pub(crate) type Result<T> = std::result::Result<T, Problem>;

/// What is put into a register once a block rather than at every use.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Literal {
    Word(u32),
    Pair(u64),
    Const {
        bank: u8,
        offset: u16,
        pair: bool,
    },
    /// What a uniform register holds.
    Uniform(VReg),
}

/// Words of literals that may live through loops.
const MAX_HOISTED: u32 = 12;

pub struct Selector<'a> {
    m: &'a Module,
    f: &'a Function,
    id: FuncId,
    places: &'a mut Places,
    /// The function may use uniform registers.
    uniform: bool,
    convergence: &'a Convergence,
    out: MFunction,
    /// Register of each value somebody asked for.
    regs: Vec<Option<VReg>>,
    /// How many times the program names each value.
    uses: Vec<u32>,
    /// How many of these are operands of sums of their width.
    sums: Vec<u32>,
    /// How many of those stand in the block that makes the value.
    sums_at_home: Vec<u32>,
    /// Block of each instruction.
    home: Vec<Option<Block>>,
    /// What the current instruction became.
    seq: Vec<MInst>,
    literals: HashMap<Literal, VReg>,
    /// How many times the program names each word.
    constant_uses: HashMap<u32, u32>,
    /// The block before the outermost loop around each block.
    before_loops: &'a [Option<Block>],
    /// Literals that loops use, made before them.
    hoisted: HashMap<Block, HashMap<Literal, VReg>>,
    /// Words of hoisted literals: they live long, so there is a limit.
    hoisted_words: u32,
    /// How deep the search for an operand is.
    depth: u32,
    block: Block,
    loc: LocId,
    /// Byte offset of each frame variable.
    slots: Vec<u32>,
    /// Top of the frame, in functions with `alloca`.
    top: Option<VReg>,
    /// Place to return to, in device functions.
    return_to: Option<VReg>,
    /// Saved convergence registers, in device functions.
    saved: Vec<(u8, VReg)>,
    /// Machine block of each block.
    number: Vec<usize>,
}

/// How blocks lie in loops.
pub struct Nesting {
    /// How many loops each block is in.
    pub depth: Vec<u32>,
    /// The block before the outermost loop around each block.
    pub before_loops: Vec<Option<Block>>,
}

/// Selects a function; with `uniform`, one that may use the uniform register file.
pub fn select(
    m: &Module,
    id: FuncId,
    f: &Function,
    places: &mut Places,
    convergence: &Convergence,
    nesting: &Nesting,
    uniform: bool,
) -> std::result::Result<MFunction, CompileError> {
    Selector { uniform, ..Selector::new(m, id, f, places, convergence, &nesting.before_loops) }
        .run(&nesting.depth)
        .map_err(|p| CompileError::at(m, f, p.loc, p.message))
}

impl<'a> Selector<'a> {
    fn new(
        m: &'a Module,
        id: FuncId,
        f: &'a Function,
        places: &'a mut Places,
        convergence: &'a Convergence,
        before_loops: &'a [Option<Block>],
    ) -> Self {
        let [mut uses, mut sums, mut sums_at_home] = [(); 3].map(|()| vec![0; f.values.len()]);
        let mut home = vec![None; f.insts.len()];
        let mut constant_uses: HashMap<u32, u32> = HashMap::new();
        for &b in &f.layout {
            for &i in &f.block(b).insts {
                home[i.index()] = Some(b);
                let sum = f.inst(i).op == Op::Add;
                for v in f.inst_values(i) {
                    if let Some(bits) = f.const_of(v) {
                        *constant_uses.entry(bits as u32).or_default() += 1;
                    }
                    uses[v.index()] += 1;
                    sums[v.index()] += u32::from(sum);
                    let is_home = sum && f.def_inst(v).is_some_and(|i| home[i.index()] == Some(b));
                    sums_at_home[v.index()] += u32::from(is_home);
                }
            }
            for v in f.block(b).term.values() {
                uses[v.index()] += 1;
            }
        }
        Selector {
            m,
            f,
            id,
            places,
            uniform: false,
            convergence,
            out: MFunction::new(&f.name),
            regs: vec![None; f.values.len()],
            uses,
            sums,
            sums_at_home,
            home,
            seq: Vec::new(),
            literals: HashMap::new(),
            constant_uses,
            before_loops,
            hoisted: HashMap::new(),
            hoisted_words: 0,
            depth: 0,
            block: f.entry(),
            loc: f.loc,
            slots: Vec::new(),
            top: None,
            return_to: None,
            saved: Vec::new(),
            number: vec![usize::MAX; f.blocks.len()],
        }
    }

    fn run(mut self, depth: &[u32]) -> Result<MFunction> {
        self.lay_out_frame()?;
        for (n, b) in self.f.layout.iter().enumerate() {
            self.number[b.index()] = n;
            self.out.blocks.push(MBlock {
                insts: Vec::new(),
                term: MTerm::Trap,
                term_loc: self.f.block(*b).term_loc,
                depth: depth[b.index()],
            });
        }
        if self.f.kind == FunctionKind::Device {
            self.return_to = Some(self.out.new_reg(Class::Word));
            for b in self.convergence.registers() {
                let reg = self.out.new_reg(Class::Word);
                self.saved.push((b, reg));
            }
        }
        for b in self.f.reverse_postorder().into_iter().rev() {
            self.block(b)?;
        }
        self.out.remove_unreachable();
        Ok(self.out)
    }

    fn block(&mut self, b: Block) -> Result<()> {
        self.block = b;
        self.literals = self.hoisted.remove(&b).unwrap_or_default();
        let at = self.number[b.index()];
        let mut reversed: Vec<MInst> = Vec::new();
        let data = self.f.block(b);
        self.loc = data.term_loc;
        let term = self.terminator(&data.term)?;
        self.out.blocks[at].term = term;
        self.take(&mut reversed);
        for &(register, landing, soft) in self.convergence.starts(b) {
            let mut i = MInst::new(M::Bssy).num(Field::Bar4, u32::from(register)).flag(Field::Soft, soft);
            i.target = Some(Target::Block(self.number[landing.index()]));
            self.push(i);
        }
        self.take(&mut reversed);
        for &i in data.insts.iter().rev() {
            let inst = self.f.inst(i);
            let wanted = inst.results.iter().any(|r| self.regs[r.index()].is_some());
            if wanted || (!inst.op.is_removable() && !inst.op.is_pure()) {
                self.loc = inst.loc;
                self.inst(i)?;
                self.take(&mut reversed);
            }
        }
        if let Some(register) = self.convergence.meets(b) {
            self.push(MInst::new(M::Bsync).num(Field::Bar4, u32::from(register)));
            self.take(&mut reversed);
        }
        if b == self.f.entry() {
            self.loc = self.f.loc;
            self.prologue()?;
            self.take(&mut reversed);
        }
        reversed.reverse();
        self.insert_literals(&mut reversed, at);
        self.out.blocks[at].insts = reversed;
        Ok(())
    }

    /// Moves the current sequence in front of what is there.
    fn take(&mut self, reversed: &mut Vec<MInst>) {
        reversed.extend(self.seq.drain(..).rev());
    }

    /// Literals are made just before the first instruction of the block that reads them.
    fn insert_literals(&mut self, insts: &mut Vec<MInst>, at: usize) {
        if self.literals.is_empty() {
            return;
        }
        let mut wanted: HashMap<VReg, Literal> = self.literals.drain().map(|(l, r)| (r, l)).collect();
        let mut out = Vec::with_capacity(insts.len() + 2 * wanted.len());
        let make = |reg: VReg, literal: Literal, loc: LocId, out: &mut Vec<MInst>| {
            if let Literal::Const { bank, offset, pair: true } = literal
                && offset % 8 == 0
            {
                let mut i = MInst::new(M::Ldc).dst(Sub { reg, at: 0 }).b(MSrc::imm(u32::from(offset)));
                i = i.num(Field::Bank, u32::from(bank)).with(Width::B64);
                i.loc = loc;
                out.push(i);
                return;
            }
            let words: [Option<MSrc>; 2] = match literal {
                Literal::Word(bits) => [Some(MSrc::imm(bits)), None],
                Literal::Pair(bits) => [Some(MSrc::imm(bits as u32)), Some(MSrc::imm((bits >> 32) as u32))],
                Literal::Const { bank, offset, pair } => {
                    let c = MSrc::constant(bank, offset);
                    [Some(c), pair.then(|| c.word(1))]
                }
                Literal::Uniform(reg) => [Some(MSrc::uniform(Sub { reg, at: 0 })), None],
            };
            for (n, src) in words.into_iter().enumerate() {
                if let Some(src) = src {
                    let mut i = MInst::new(M::Mov).dst(Sub { reg, at: n as u8 }).b(src);
                    i.loc = loc;
                    out.push(i);
                }
            }
        };
        for i in insts.drain(..) {
            i.for_each_read(|sub, _| {
                if let Some(literal) = wanted.remove(&sub.reg) {
                    make(sub.reg, literal, i.loc, &mut out);
                }
            });
            if let Some((sub, _)) = i.written()
                && i.is_guarded()
                && let Some(literal) = wanted.remove(&sub.reg)
            {
                make(sub.reg, literal, i.loc, &mut out);
            }
            out.push(i);
        }
        // Read by the terminator.
        let mut rest: Vec<_> = wanted.into_iter().collect();
        rest.sort_by_key(|(r, _)| *r);
        for (reg, literal) in rest {
            make(reg, literal, self.out.blocks[at].term_loc, &mut out);
        }
        *insts = out;
    }

    // --- building --------------------------------------------------------------------------------------------------

    /// Appends an instruction; sources that the word has no room for go through registers.
    fn push(&mut self, mut i: MInst) {
        let is_pair = |i: &MInst, k: usize| {
            i.inst.op.row().roles.iter().any(|&r| {
                use isa::Role::{A2, AFrom, B2, C2};
                matches!((r, k), (A2 | AFrom, 0) | (B2, 1) | (C2, 2)) && i.inst.width(r) == 2
            })
        };
        // A pair of a bank is loaded: arithmetic reads words of banks only.
        for k in 0..3 {
            if is_pair(&i, k) && matches!(i.src[k].src.operand, isa::Operand::Const { .. }) {
                let sub = self.literal_pair(i.src[k]);
                i.src[k].src.operand = isa::Operand::None;
                i.src[k].reg = Some(sub);
            }
        }
        let mut wide: smallvec::SmallVec<[usize; 3]> =
            [1, 2, 0].into_iter().filter(|&k| i.src[k].is_wide()).collect();
        // A pair of words keeps its place: a word is cheaper to make.
        wide.sort_by_key(|&k| !is_pair(&i, k));
        // Of two immediates the one that more operations name is worth a register.
        if let [first, second] = wide[..]
            && let (Some(a), Some(b)) = (i.src[first].imm_bits(), i.src[second].imm_bits())
            && !is_pair(&i, first)
            && self.popularity(a) > self.popularity(b)
        {
            wide.swap(0, 1);
        }
        while wide.len() > 1 {
            if let Some(k) = wide.pop() {
                let s = i.src[k];
                let sub = if is_pair(&i, k) { self.literal_pair(s) } else { self.in_register(s.plain()) };
                i.src[k] = MSrc { src: isa::Src { operand: isa::Operand::None, ..s.src }, reg: Some(sub) };
            }
        }
        i.loc = self.loc;
        self.seq.push(i);
    }

    fn popularity(&self, bits: u32) -> u32 {
        self.constant_uses.get(&bits).copied().unwrap_or(0)
    }

    fn literal_pair(&mut self, s: MSrc) -> Sub {
        let literal = match s.src.operand {
            isa::Operand::Const { bank, offset } => Literal::Const { bank, offset, pair: true },
            // An immediate of a double is its high word.
            isa::Operand::Imm(high) => Literal::Pair(u64::from(high) << 32),
            _ => Literal::Pair(0),
        };
        self.literal(literal, Class::Pair)
    }

    fn literal(&mut self, literal: Literal, class: Class) -> Sub {
        let before = self.before_loops[self.block.index()]
            .and_then(|b| self.hoisted.get(&b))
            .and_then(|h| h.get(&literal));
        if let Some(&reg) = self.literals.get(&literal).or(before) {
            return Sub { reg, at: 0 };
        }
        let reg = self.out.new_reg(class);
        match self.before_loops[self.block.index()] {
            Some(before) if self.hoisted_words + class.units() <= MAX_HOISTED => {
                self.hoisted_words += class.units();
                self.hoisted.entry(before).or_default().insert(literal, reg);
            }
            _ => {
                self.literals.insert(literal, reg);
            }
        }
        Sub { reg, at: 0 }
    }

    fn temp(&mut self, class: Class) -> Sub {
        Sub { reg: self.out.new_reg(class), at: 0 }
    }

    fn word(&mut self) -> Sub {
        self.temp(Class::Word)
    }

    fn pred_temp(&mut self) -> VReg {
        self.out.new_reg(Class::Pred)
    }

    fn mov(&mut self, to: Sub, from: MSrc) {
        if from.reg != Some(to) || from.src != isa::Src::NONE {
            self.push(MInst::new(M::Mov).dst(to).b(from));
        }
    }

    fn pred_mov(&mut self, to: VReg, from: PSrc) {
        let i = if from.neg && from.reg.is_some() {
            MInst::new(M::Plop3).num(Field::Lut, 0x0f).ps(0, from.negated())
        } else {
            MInst::new(M::Plop3).num(Field::Lut, crate::mir::PRED_COPY).ps(0, from)
        };
        self.push(i.pd(0, to));
    }

    /// Where the result `v` goes.
    fn def(&mut self, v: Value) -> Sub {
        Sub { reg: self.value_reg(v), at: 0 }
    }

    /// Where the result `v` goes, if anybody reads it.
    fn def_if_used(&mut self, v: Option<&Value>) -> Option<Sub> {
        let reg = self.regs[v?.index()]?;
        Some(Sub { reg, at: 0 })
    }

    fn pred_def(&mut self, v: Value) -> VReg {
        self.value_reg(v)
    }

    fn value_reg(&mut self, v: Value) -> VReg {
        if let Some(r) = self.regs[v.index()] {
            return r;
        }
        let r = self.out.new_reg(class_of(self.f.ty(v)));
        self.regs[v.index()] = Some(r);
        r
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(Problem { message: message.into(), loc: self.loc })
    }

    fn check<T>(&self, r: std::result::Result<T, String>) -> Result<T> {
        r.map_err(|message| Problem { message, loc: self.loc })
    }

    // --- dispatch --------------------------------------------------------------------------------------------------

    fn inst(&mut self, i: InstId) -> Result<()> {
        use Op::*;
        let f = self.f;
        let inst = f.inst(i);
        let args = inst.own_args();
        match inst.op {
            // Constants and parameters are operands; what asks for a register makes a literal.
            Const(_) | Undef => Ok(()),
            Select => self.select_op(i),
            SReg(r) => self.special(inst.results[0], r),
            Addr(what, offset) => self.address_of(inst.results[0], what, offset),
            Add
            | Sub
            | AddSat
            | SubSat
            | AddCarry
            | SubBorrow
            | Mul
            | MulHi { .. }
            | MulWide { .. }
            | Div { .. }
            | Rem { .. }
            | Min { .. }
            | Max { .. }
            | Abs
            | Neg
            | AbsDiff { .. }
            | Popc
            | Clz
            | Brev
            | Bfind { .. }
            | Bfe { .. }
            | Bfi
            | Fns
            | Szext { .. }
            | Bmsk { .. }
            | Dp4a { .. }
            | Dp2a { .. }
            | Add16x2
            | Min16x2 { .. }
            | Max16x2 { .. }
            | Video(_)
            | ICmp { .. } => self.int(i),
            And
            | Or
            | Xor
            | Not
            | Lop3(_)
            | Shl
            | ShrU
            | ShrS
            | Funnel { .. }
            | Prmt(_)
            | TruncLo
            | TruncHi
            | Concat
            | ZeroExt
            | SignExt => self.logic(i),
            FCmp { .. }
            | FCmp2 { .. }
            | FAdd(_)
            | FSub(_)
            | FMul(_)
            | FMulScaled { .. }
            | FFma(_)
            | FDiv { .. }
            | FRcp { .. }
            | FSqrt { .. }
            | FDivCheck
            | Approx { .. }
            | Mufu(_)
            | FNeg { .. }
            | FAbs { .. }
            | FMin { .. }
            | FMax { .. }
            | Copysign { .. }
            | Testp { .. } => self.float(i),
            Cvt(_) | CvtPack(_) | CvtPackInt { .. } => self.convert(i),
            Load(_)
            | Store(_)
            | Atom(_)
            | Red(_)
            | Fence { .. }
            | Hint(..)
            | ToGeneric(_)
            | FromGeneric(_)
            | IsSpace(_) => self.memory(i),
            Shfl(_)
            | Vote(_)
            | MatchAny
            | MatchAll
            | Redux(_)
            | Elect
            | WarpSync
            | ActiveMask
            | Bar { .. } => self.warp(i),
            Call(callee) => self.call(Some(callee), args, &inst.results),
            CallIndirect => self.call(None, args, &inst.results),
            Alloca { .. } | StackSave | StackRestore | Syscall(_) | Nanosleep | Trap | Brkpt | PmEvent(_) => {
                self.system(i)
            }
        }
    }

    /// Is `v` made by an operation in this block that nobody else reads?
    fn single(&self, v: Value) -> Option<&'a ir::InstData> {
        let f = self.f;
        let i = f.def_inst(v)?;
        let inst = f.inst(i);
        let alone = self.uses[v.index()] == 1 && self.home[i.index()] == Some(self.block);
        (alone && inst.results.len() == 1 && inst.op.is_pure() && inst.guard.is_none()).then_some(inst)
    }

    /// `condition ? a : b`: a predicated instruction where one side is an operation of its own, else SEL.
    fn select_op(&mut self, i: InstId) -> Result<()> {
        let f = self.f;
        let inst = f.inst(i);
        let (result, cond, yes, no) = (inst.results[0], inst.args[0], inst.args[1], inst.args[2]);
        let ty = f.ty(result);
        if ty != Type::P && self.const_pred(cond).is_none() {
            for (side, other, negated) in [(yes, no, false), (no, yes, true)] {
                if other != side && self.can_guard(side) {
                    let p = self.pred(cond);
                    let p = if negated { p.negated() } else { p };
                    return self.guarded(result, side, other, p);
                }
            }
        }
        match ty {
            Type::P => self.select_pred(result, cond, yes, no),
            Type::B64 => {
                let p = self.pred(cond);
                let (a, b) = (self.words(yes)?, self.words(no)?);
                let d = self.def(result);
                for n in 0..2 {
                    self.push(MInst::new(M::Sel).dst(d.word(n)).a(a[n as usize]).b(b[n as usize]).ps(0, p));
                }
                Ok(())
            }
            _ => {
                let p = self.pred(cond);
                let (a, b) = (self.src(yes)?, self.src(no)?);
                let d = self.def(result);
                // The immediate stands in B where it can.
                let i = MInst::new(M::Sel).dst(d);
                let i = if a.is_wide() && !b.is_wide() {
                    i.a(b).b(a).ps(0, p.negated())
                } else {
                    i.a(a).b(b).ps(0, p)
                };
                self.push(i);
                Ok(())
            }
        }
    }

    /// The value is one instruction of its own, which may be predicated.
    fn can_guard(&self, v: Value) -> bool {
        let Some(inst) = self.single(v) else { return false };
        use Op::*;
        match inst.op {
            FAdd(_) | FSub(_) | FMul(_) | FFma(_) | FMulScaled { .. } | Mufu(_) => true,
            Add | Sub | Mul => true,
            And | Or | Xor | Shl | ShrU | ShrS => self.f.ty(v) == Type::B32,
            _ => false,
        }
    }

    /// `result = p ? side : other`, with `side` computed in place under the guard.
    fn guarded(&mut self, result: Value, side: Value, other: Value, p: PSrc) -> Result<()> {
        let d = self.def(result);
        self.copy_value(d, other)?;
        let before = self.seq.len();
        // The operation writes the result's register.
        self.regs[side.index()] = Some(d.reg);
        let Some(i) = self.f.def_inst(side) else { return Ok(()) };
        self.inst(i)?;
        self.regs[side.index()] = None;
        // A word that the operation also reads is read where it now is, so that its own register may end here.
        let word = self.f.ty(result) != Type::B64;
        let old = if word { self.src(other)?.reg } else { None };
        for m in &mut self.seq[before..] {
            if m.dst.is_some_and(|s| s.reg == d.reg) {
                m.guard = p;
                m.fresh_preds = true;
            }
            if old.is_some() {
                m.for_each_sub_mut(|s, width, written| {
                    if !written && width == 1 && Some(*s) == old {
                        *s = d;
                    }
                });
            }
        }
        Ok(())
    }

    /// Copies a value of any width to where its words shall be.
    fn copy_value(&mut self, to: Sub, v: Value) -> Result<()> {
        match self.f.ty(v) {
            Type::P => {
                let p = self.pred(v);
                self.pred_mov(to.reg, p);
            }
            Type::B64 => {
                let words = self.words(v)?;
                self.mov(to, words[0]);
                self.mov(to.word(1), words[1]);
            }
            _ => {
                let s = self.src(v)?;
                self.mov(to, s);
            }
        }
        Ok(())
    }
}

fn class_of(ty: Type) -> Class {
    match ty {
        Type::P => Class::Pred,
        Type::B16 | Type::B32 => Class::Word,
        Type::B64 => Class::Pair,
    }
}
