//! Values as operands: constants, parameters in the constant bank, registers, halves of pairs, predicates.

use super::{Literal, Result, Selector};
use crate::mir::{Class, MInst, MSrc, PSrc, Sub};
use crate::places::Place;
use ir::{AddrOf, Op, Scalar, Space, Type, Value, ValueDef};
use isa::field::{Field, PrmtMode};
use isa::{Op as M, abi};

/// Operations that one operand is looked for through: beyond, a value is read from its own register.
const MAX_DEPTH: u32 = 32;
/// Addresses in shared memory that have uniform registers of their own; the rest are sums.
const MAX_WINDOWS: usize = 6;

/// What a constant offset is relative to.
pub(super) enum Base {
    None,
    Value(Value),
    /// A global variable, whose address the loader supplies.
    Variable(ir::GlobalId),
    Slot(ir::SlotId),
}

/// An address as base and constant offset.
pub(super) struct Address {
    pub base: Base,
    pub offset: i64,
    /// The start of the CTA's part of shared memory belongs to the sum.
    pub in_window: bool,
}

/// A known address that is part of a sum.
#[derive(Clone, Copy)]
struct Known {
    bits: u64,
    in_window: bool,
}

impl Selector<'_> {
    /// A value that is another one's bits.
    pub(super) fn resolve(&self, mut v: Value) -> Value {
        while let Some(inst) = self.f.def_op(v) {
            match inst.op {
                Op::ToGeneric(Space::Global) | Op::FromGeneric(Space::Global) => v = inst.args[0],
                Op::ToGeneric(Space::Generic) | Op::FromGeneric(Space::Generic) => v = inst.args[0],
                // The upper half of a 16-bit value's register may hold anything.
                Op::TruncLo if self.f.ty(v) == Type::B16 => v = inst.args[0],
                _ => break,
            }
        }
        v
    }

    /// The constant that `v` is; undefined ones are zero.
    pub(super) fn constant(&self, v: Value) -> Option<u64> {
        match self.f.def_op(self.resolve(v))?.op {
            Op::Const(bits) => Some(bits & self.f.ty(v).mask()),
            Op::Undef => Some(0),
            _ => None,
        }
    }

    pub(super) fn const_pred(&self, v: Value) -> Option<bool> {
        self.constant(v).map(|bits| bits & 1 != 0)
    }

    /// The constant-bank word where `v` lies, for unguarded loads of parameters and constants at known places.
    fn bank_place(&self, v: Value) -> Option<(u8, u16)> {
        let ValueDef::Inst(i, n) = self.f.def(v) else { return None };
        let inst = self.f.inst(i);
        let Op::Load(access) = inst.op else { return None };
        if inst.guard.is_some() || matches!(access.elem, Scalar::U8 | Scalar::S8) {
            return None;
        }
        let at = self.constant_address(inst.args[0])?.checked_add(access.offset)?;
        let at = u64::try_from(at).ok()? + u64::from(n * access.elem.bits() / 8);
        let (bank, at, end) = match access.space {
            Space::Param => (abi::BANK_LAUNCH, at + u64::from(abi::launch::PARAMS), abi::launch::SIZE as u64),
            Space::Const => (abi::BANK_CONST, at, 1 << 16),
            _ => return None,
        };
        (at % 4 == 0 && at + u64::from(access.elem.bits() / 8) <= end).then_some((bank, at as u16))
    }

    /// A known address in the parameters, in constant or in shared memory.
    pub(super) fn constant_address(&self, v: Value) -> Option<i64> {
        let a = self.address(v);
        (matches!(a.base, Base::None) && !a.in_window).then_some(a.offset)
    }

    /// A constant, or the address of a variable at a known place.
    fn known(&self, v: Value) -> Option<Known> {
        let place = || {
            let v = self.resolve(v);
            let known = |at: i64, in_window| Known { bits: at as u64, in_window };
            let at = self.constant_place(v).map(|at| known(at, false));
            at.or_else(|| self.window_place(v).map(|at| known(at, true)))
        };
        self.constant(v).map(|bits| Known { bits, in_window: false }).or_else(place)
    }

    /// Splits an address into a base and a constant.
    pub(super) fn address(&self, v: Value) -> Address {
        let mut v = self.resolve(v);
        let mut offset = 0i64;
        let mut in_window = false;
        loop {
            if let Some(c) = self.constant(v) {
                let c = if self.f.ty(v) == Type::B32 { i64::from(c as u32) } else { c as i64 };
                return Address { base: Base::None, offset: offset.wrapping_add(c), in_window };
            }
            let Some(inst) = self.f.def_op(v) else { break };
            match inst.op {
                Op::Add | Op::Sub => {
                    let (x, c) = match (self.known(inst.args[0]), self.known(inst.args[1])) {
                        (_, Some(c)) => (inst.args[0], c),
                        (Some(c), None) if inst.op == Op::Add => (inst.args[1], c),
                        _ => break,
                    };
                    if c.in_window && (in_window || inst.op == Op::Sub) {
                        break;
                    }
                    let Known { bits, in_window: found } = c;
                    let c =
                        if self.f.ty(v) == Type::B32 { i64::from(bits as u32 as i32) } else { bits as i64 };
                    let sum = if inst.op == Op::Add { offset.checked_add(c) } else { offset.checked_sub(c) };
                    match sum {
                        Some(sum) if i32::try_from(sum).is_ok() => offset = sum,
                        _ => break,
                    }
                    in_window |= found;
                    v = self.resolve(x);
                }
                Op::Addr(AddrOf::Param(at), o) => {
                    return Address { base: Base::None, offset: offset + i64::from(at) + o, in_window };
                }
                Op::Addr(AddrOf::Slot(s), o) => {
                    return Address { base: Base::Slot(s), offset: offset + o, in_window };
                }
                Op::Addr(AddrOf::Global(g), o) => {
                    let shared = self.uniform && self.is_shared(g);
                    if shared && in_window {
                        break;
                    }
                    in_window |= shared;
                    let place = match self.places.globals[g.index()] {
                        Place::Shared(at) => Some(at),
                        Place::DynamicShared => Some(self.places.shared_bytes[self.id.index()]),
                        Place::Const(at, _) => Some(at),
                        Place::Global(_) | Place::ExternConst(_) => None,
                    };
                    return match place {
                        Some(at) => {
                            Address { base: Base::None, offset: offset + i64::from(at) + o, in_window }
                        }
                        None => Address { base: Base::Variable(g), offset: offset + o, in_window },
                    };
                }
                _ => break,
            }
        }
        Address { base: Base::Value(v), offset, in_window }
    }

    fn is_shared(&self, g: ir::GlobalId) -> bool {
        matches!(self.places.globals[g.index()], Place::Shared(_) | Place::DynamicShared)
    }

    /// Where in the CTA's part of shared memory the variable lies that `v` is the address of.
    fn window_place(&self, v: Value) -> Option<i64> {
        match self.f.def_op(v)?.op {
            Op::Addr(AddrOf::Global(g), _) if self.uniform && self.is_shared(g) => {
                Some(self.address(v).offset)
            }
            _ => None,
        }
    }

    /// The address of a place in the CTA's part of shared memory.
    fn window(&mut self, at: i64) -> MSrc {
        let at = at as u32;
        if let Some(&(_, reg)) = self.out.windows.iter().find(|w| w.0 == at) {
            return MSrc::uniform(Sub { reg, at: 0 });
        }
        if at != 0 && self.out.windows.len() >= MAX_WINDOWS {
            let (t, start) = (self.word(), self.window(0));
            self.push(MInst::new(M::Iadd3).dst(t).a(start).b(MSrc::imm(at)));
            return MSrc::reg(t);
        }
        let reg = self.out.new_reg(Class::Uniform);
        self.out.windows.push((at, reg));
        MSrc::uniform(Sub { reg, at: 0 })
    }

    /// The register of the start of the CTA's part of shared memory.
    pub(super) fn window_start(&mut self) -> Option<Sub> {
        self.window(0).reg
    }

    /// A value of at most 32 bits as a source.
    pub(super) fn src(&mut self, v: Value) -> Result<MSrc> {
        if self.depth >= MAX_DEPTH && self.f.ty(v) != Type::B64 {
            return Ok(MSrc::reg(Sub { reg: self.value_reg(v), at: 0 }));
        }
        self.depth += 1;
        let s = self.see_word(v);
        self.depth -= 1;
        s
    }

    fn see_word(&mut self, v: Value) -> Result<MSrc> {
        let v = self.resolve(v);
        if let Some(bits) = self.constant(v) {
            return Ok(MSrc::imm(bits as u32));
        }
        if let Some((bank, offset)) = self.bank_place(v) {
            return Ok(MSrc::constant(bank, offset));
        }
        if let Some(inst) = self.f.def_op(v) {
            match inst.op {
                Op::TruncLo if self.f.ty(inst.args[0]) == Type::B64 => {
                    return self.half(inst.args[0], 0);
                }
                Op::TruncHi if self.f.ty(inst.args[0]) == Type::B64 => {
                    return self.half(inst.args[0], 1);
                }
                Op::SReg(ir::SReg::Ntid(n)) => {
                    return Ok(MSrc::constant(abi::BANK_LAUNCH, abi::launch::NTID + 4 * u16::from(n)));
                }
                Op::SReg(ir::SReg::Nctaid(n)) => {
                    return Ok(MSrc::constant(abi::BANK_LAUNCH, abi::launch::NCTAID + 4 * u16::from(n)));
                }
                Op::SReg(ir::SReg::EnvReg(n)) => {
                    return Ok(MSrc::constant(abi::BANK_LAUNCH, abi::launch::ENVREG + 4 * u16::from(n)));
                }
                _ => {}
            }
        }
        if self.f.ty(v) == Type::B64 {
            // The low part of a 64-bit value, by a resolved truncation to 16 bits.
            return Ok(self.words(v)?[0]);
        }
        if let Some(at) = self.constant_place(v) {
            return Ok(MSrc::imm(at as u32));
        }
        if let Some(at) = self.window_place(v) {
            return Ok(self.window(at));
        }
        Ok(MSrc::reg(Sub { reg: self.value_reg(v), at: 0 }))
    }

    /// One word of a 64-bit value, without a look at the other.
    fn half(&mut self, v: Value, n: usize) -> Result<MSrc> {
        match self.f.def_op(self.resolve(v)) {
            Some(inst) if inst.op == Op::Concat => self.src(inst.args[n]),
            _ => Ok(self.words(v)?[n]),
        }
    }

    /// The address that `v` is, when it names a variable at a known place.
    fn constant_place(&self, v: Value) -> Option<i64> {
        match self.f.def_op(v)?.op {
            Op::Addr(..) => self.constant_address(v),
            _ => None,
        }
    }

    /// The two words of a 64-bit value.
    pub(super) fn words(&mut self, v: Value) -> Result<[MSrc; 2]> {
        if self.depth >= MAX_DEPTH {
            let s = MSrc::reg(Sub { reg: self.value_reg(v), at: 0 });
            return Ok([s, s.word(1)]);
        }
        self.depth += 1;
        let w = self.see_words(v);
        self.depth -= 1;
        w
    }

    fn see_words(&mut self, v: Value) -> Result<[MSrc; 2]> {
        let v = self.resolve(v);
        if let Some(bits) = self.constant(v) {
            return Ok([MSrc::imm(bits as u32), MSrc::imm((bits >> 32) as u32)]);
        }
        if let Some((bank, offset)) = self.bank_place(v) {
            let c = MSrc::constant(bank, offset);
            return Ok([c, c.word(1)]);
        }
        if let Some(at) = self.constant_place(v) {
            return Ok([MSrc::imm(at as u32), MSrc::imm((at >> 32) as u32)]);
        }
        if let Some(at) = self.window_place(v) {
            return Ok([self.window(at), MSrc::ZERO]);
        }
        if let Some(inst) = self.f.def_op(v) {
            match inst.op {
                Op::Concat => return Ok([self.src(inst.args[0])?, self.src(inst.args[1])?]),
                // A mask that has no high word leaves none.
                Op::And if inst.args.iter().any(|&a| self.constant(a).is_some_and(|c| c >> 32 == 0)) => {
                    return Ok([MSrc::reg(Sub { reg: self.value_reg(v), at: 0 }), MSrc::ZERO]);
                }
                Op::ZeroExt if self.f.ty(inst.args[0]) == Type::B32 => {
                    return Ok([self.src(inst.args[0])?, MSrc::ZERO]);
                }
                Op::FromGeneric(Space::Shared | Space::Local) => {
                    return Ok([self.words(inst.args[0])?[0], MSrc::ZERO]);
                }
                Op::ToGeneric(Space::Shared) => {
                    return Ok([self.low_word(inst.args[0])?, MSrc::imm(abi::SHARED_HIGH)]);
                }
                Op::ToGeneric(Space::Local) => {
                    return Ok([self.low_word(inst.args[0])?, MSrc::imm(abi::LOCAL_HIGH)]);
                }
                Op::Addr(AddrOf::Global(g), o) => {
                    let at = self.places.variable_address(g, o);
                    let c = MSrc::constant(abi::BANK_LOADER, self.check(at)?);
                    return Ok([c, c.word(1)]);
                }
                Op::Addr(AddrOf::Function(f), _) => {
                    let at = self.places.function_address(self.m, f);
                    let c = MSrc::constant(abi::BANK_LOADER, self.check(at)?);
                    return Ok([c, c.word(1)]);
                }
                _ => {}
            }
        }
        let s = MSrc::reg(Sub { reg: self.value_reg(v), at: 0 });
        Ok([s, s.word(1)])
    }

    /// The low word of an address of either width.
    pub(super) fn low_word(&mut self, v: Value) -> Result<MSrc> {
        if self.f.ty(self.resolve(v)) == Type::B64 { Ok(self.words(v)?[0]) } else { self.src(v) }
    }

    /// A 64-bit value as the source of an operand that is a pair.
    pub(super) fn pair(&mut self, v: Value) -> Result<MSrc> {
        if self.constant(v) == Some(0) {
            return Ok(MSrc::ZERO);
        }
        let w = self.words(v)?;
        if let (isa::Operand::Const { bank, offset }, isa::Operand::Const { bank: high_bank, offset: high }) =
            (w[0].src.operand, w[1].src.operand)
            && (bank, offset + 4) == (high_bank, high)
        {
            return Ok(w[0]);
        }
        Ok(MSrc::reg(self.pair_reg(v)?))
    }

    /// A 64-bit value in a register pair.
    pub(super) fn pair_reg(&mut self, v: Value) -> Result<Sub> {
        let words = self.words(v)?;
        self.join(words)
    }

    /// A pair that holds two words: the one they lie in, or a new one.
    pub(super) fn join(&mut self, words: [MSrc; 2]) -> Result<Sub> {
        if let [Some(lo), Some(hi)] = words.map(|w| w.reg)
            && lo.reg == hi.reg
            && lo.at % 2 == 0
            && hi.at == lo.at + 1
        {
            return Ok(lo);
        }
        if let [Some(lo), Some(hi)] = words.map(|w| w.imm_bits()) {
            return Ok(self.literal(Literal::Pair(u64::from(lo) | u64::from(hi) << 32), Class::Pair));
        }
        if let isa::Operand::Const { bank, offset } = words[0].src.operand
            && words[1] == words[0].word(1)
            && words[0].reg.is_none()
        {
            return Ok(self.literal(Literal::Const { bank, offset, pair: true }, Class::Pair));
        }
        let t = self.temp(Class::Pair);
        self.mov(t, words[0]);
        self.mov(t.word(1), words[1]);
        Ok(t)
    }

    /// A source without modifiers, in a register.
    pub(super) fn in_register(&mut self, s: MSrc) -> Sub {
        if let Some(sub) = s.reg {
            if self.out.class(sub.reg).is_uniform() {
                return self.literal(Literal::Uniform(sub.reg), Class::Word);
            }
            return sub;
        }
        let literal = match s.src.operand {
            isa::Operand::Const { bank, offset } => Literal::Const { bank, offset, pair: false },
            _ => Literal::Word(s.imm_bits().unwrap_or(0)),
        };
        self.literal(literal, Class::Word)
    }

    pub(super) fn reg(&mut self, v: Value) -> Result<Sub> {
        let s = self.src(v)?;
        Ok(self.in_register(s))
    }

    /// What the upper half of a 16-bit value's register is known to hold.
    fn known_extension(&self, v: Value) -> Option<bool> {
        let ValueDef::Inst(i, _) = self.f.def(v) else { return None };
        let inst = self.f.inst(i);
        match inst.op {
            Op::Load(a)
                if inst.guard.is_none()
                    && a.count == 1
                    && !matches!(a.space, Space::Param | Space::Const) =>
            {
                match a.elem {
                    Scalar::U8 | Scalar::U16 => Some(false),
                    Scalar::S8 | Scalar::S16 => Some(true),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// A 16-bit (or 8-bit, by `bits`) value as a 32-bit one.
    pub(super) fn extended(&mut self, v: Value, bits: u32, signed: bool) -> Result<MSrc> {
        let v = self.resolve(v);
        if let Some(c) = self.constant(v) {
            let up = 32 - bits;
            let c = (c as u32) << up;
            return Ok(MSrc::imm(if signed { (c as i32 >> up) as u32 } else { c >> up }));
        }
        let s = self.src(v)?;
        if bits == 32 || bits == 16 && self.f.ty(v) == Type::B16 && self.known_extension(v) == Some(signed) {
            return Ok(s);
        }
        let t = self.word();
        self.extend_into(t, s, bits, signed);
        Ok(MSrc::reg(t))
    }

    /// `to` = the low 8 or 16 bits of a source, extended.
    pub(super) fn extend_into(&mut self, to: Sub, s: MSrc, bits: u32, signed: bool) {
        match (bits, signed) {
            (32, _) => self.mov(to, s),
            (_, false) => {
                let mask = MSrc::imm((1 << bits) - 1);
                self.push(MInst::new(M::Lop3).dst(to).a(s).b(mask).num(Field::Lut, 0xc0));
            }
            (_, true) => {
                let picks = if bits == 8 { 0x8880 } else { 0x9910 };
                self.push(MInst::new(M::Prmt).dst(to).a(s).b(MSrc::imm(picks)).with(PrmtMode::Index));
            }
        }
    }

    /// A predicate as a source; negations are taken over.
    pub(super) fn pred(&mut self, v: Value) -> PSrc {
        let (mut v, mut negated) = (v, false);
        while let Some(inst) = self.f.def_op(v)
            && inst.op == Op::Not
        {
            (v, negated) = (inst.args[0], !negated);
        }
        let p = self.pred_itself(v);
        if negated { p.negated() } else { p }
    }

    fn pred_itself(&mut self, v: Value) -> PSrc {
        if let Some(c) = self.const_pred(v) {
            return if c { PSrc::TRUE } else { PSrc::FALSE };
        }
        match self.f.def(v) {
            // The register has the carry, which is the borrow's opposite.
            ValueDef::Inst(i, 1) if self.f.inst(i).op == Op::SubBorrow => {
                PSrc::reg(self.value_reg(v)).negated()
            }
            _ => PSrc::reg(self.value_reg(v)),
        }
    }
}
