//! Loads, stores, atomics, fences, and addresses between spaces.

use super::operand::Base;
use super::{Result, Selector};
use crate::mir::{Class, MInst, MSrc, PSrc, Sub};
use ir::{
    Access, AddrOf, Atom, AtomOp, CacheOp, Hint, InstData, InstId, Op, Order, Scalar, Scope, Space, Type,
    Value,
};
use isa::field::{self, AtomOrder, AtomType, Cache, Field, HintKind, SpaceKind, Width};
use isa::{Op as M, abi};

/// An address as a memory operand.
struct Place {
    space: Space,
    base: MSrc,
    offset: i32,
    /// The uniform register of the sum.
    ur: Option<Sub>,
}

impl Selector<'_> {
    pub(super) fn memory(&mut self, i: InstId) -> Result<()> {
        let f = self.f;
        let inst = f.inst(i);
        let args = inst.own_args();
        match inst.op {
            Op::Load(a) => {
                self.load(inst, a)?;
                self.acquire(inst, a.order, a.scope);
                Ok(())
            }
            Op::Store(a) => {
                self.release(inst, a.order, a.scope);
                self.store(inst, a)
            }
            Op::Atom(a) | Op::Red(a) => {
                self.release(inst, a.order, a.scope);
                self.atom(inst, a)?;
                self.acquire(inst, a.order, a.scope);
                Ok(())
            }
            Op::Fence { order, scope } => {
                self.barrier(inst, order, scope);
                if scope > Scope::Cta {
                    let guard = self.guard_of(inst);
                    self.push(MInst::new(M::CctlIvall).guard(guard));
                }
                Ok(())
            }
            Op::Hint(hint, space) => {
                let guard = self.guard_of(inst);
                let place = self.place(args[0], space, 0)?;
                let kind = match place.space {
                    Space::Local => SpaceKind::Local,
                    Space::Shared => SpaceKind::Shared,
                    Space::Const => SpaceKind::Const,
                    _ => SpaceKind::Global,
                };
                let m = MInst::new(M::Cctl).with(kind).with(match hint {
                    Hint::PrefetchL1 => HintKind::PrefetchL1,
                    Hint::PrefetchL2 => HintKind::PrefetchL2,
                    Hint::PrefetchUniform => HintKind::PrefetchUniform,
                    Hint::ApplyPriority => HintKind::ApplyPriority,
                    Hint::Discard => HintKind::Discard,
                });
                self.push(at(m, &place).guard(guard));
                Ok(())
            }
            Op::IsSpace(space) => {
                let kind = match space {
                    Space::Global => SpaceKind::Global,
                    Space::Shared => SpaceKind::Shared,
                    Space::Local => SpaceKind::Local,
                    Space::Const => SpaceKind::Const,
                    _ => return self.fail("no window of the generic address space"),
                };
                let a = MSrc::reg(self.pair_reg(args[0])?);
                let d = self.pred_def(inst.results[0]);
                self.push(MInst::new(M::Qspc).pd(0, d).a(a).with(kind));
                Ok(())
            }
            Op::ToGeneric(Space::Const) | Op::FromGeneric(Space::Const) => {
                let a = if f.ty(args[0]) == Type::B64 {
                    self.words(args[0])?
                } else {
                    [self.src(args[0])?, MSrc::ZERO]
                };
                let base = MSrc::constant(abi::BANK_LAUNCH, abi::launch::CONST_BASE);
                let d = self.def(inst.results[0]);
                let subtract = matches!(inst.op, Op::FromGeneric(_));
                self.sum_words(d, a, [base, base.word(1)], subtract);
                Ok(())
            }
            // Mostly seen through; here the address has a register of its own.
            Op::ToGeneric(Space::Global) | Op::FromGeneric(Space::Global) => {
                let d = self.def(inst.results[0]);
                self.copy_value(d, args[0])
            }
            Op::ToGeneric(space @ (Space::Shared | Space::Local))
            | Op::FromGeneric(space @ (Space::Shared | Space::Local)) => {
                let high = match (inst.op, space) {
                    (Op::FromGeneric(_), _) => 0,
                    (_, Space::Shared) => abi::SHARED_HIGH,
                    _ => abi::LOCAL_HIGH,
                };
                let low = self.low_word(args[0])?;
                let d = self.def(inst.results[0]);
                self.mov(d, low);
                self.mov(d.word(1), MSrc::imm(high));
                Ok(())
            }
            Op::ToGeneric(space) | Op::FromGeneric(space) => {
                self.fail(format!("addresses of the {space:?} space do not convert"))
            }
            _ => self.fail(format!("{:?} is not built", inst.op)),
        }
    }

    /// A memory barrier; beyond the CTA it also waits for errors.
    fn barrier(&mut self, inst: &InstData, order: Order, scope: Scope) {
        let guard = self.guard_of(inst);
        self.push(MInst::new(M::Membar).with(memory_order(order)).with(memory_scope(scope)).guard(guard));
        if scope > Scope::Cta {
            self.push(MInst::new(M::Errbar).guard(guard));
            self.push(MInst::new(M::Cgaerrbar).guard(guard));
        }
    }

    /// What stands before an access that publishes earlier ones.
    fn release(&mut self, inst: &InstData, order: Order, scope: Scope) {
        if matches!(order, Order::Release | Order::AcqRel) && scope > Scope::Cta {
            self.barrier(inst, Order::AcqRel, scope);
        }
    }

    /// What stands behind an access after which others' are seen.
    fn acquire(&mut self, inst: &InstData, order: Order, scope: Scope) {
        if matches!(order, Order::Acquire | Order::AcqRel) && scope > Scope::Cta {
            let guard = self.guard_of(inst);
            self.push(MInst::new(M::CctlIvall).guard(guard));
        }
    }

    /// The address of a variable, in its space, in a register.
    pub(super) fn address_of(&mut self, result: Value, what: AddrOf, offset: i64) -> Result<()> {
        let d = self.def(result);
        match what {
            AddrOf::Slot(s) => {
                let sp = self.stack_pointer();
                let at = i64::from(self.slots[s.index()]) + offset;
                self.push(MInst::new(M::Iadd3).dst(d).a(MSrc::reg(sp)).b(MSrc::imm(at as u32)));
                if self.f.ty(result) == Type::B64 {
                    self.mov(d.word(1), MSrc::ZERO);
                }
            }
            // A 32-bit address of what has a 64-bit one.
            AddrOf::Global(g) => {
                let at = self.places.variable_address(g, offset);
                let c = MSrc::constant(abi::BANK_LOADER, self.check(at)?);
                self.mov(d, c);
            }
            AddrOf::Function(callee) => {
                let at = self.places.function_address(self.m, callee);
                let c = MSrc::constant(abi::BANK_LOADER, self.check(at)?);
                self.mov(d, c);
            }
            AddrOf::Param(at) => self.mov(d, MSrc::imm((i64::from(at) + offset) as u32)),
        }
        Ok(())
    }

    pub(super) fn stack_pointer(&mut self) -> Sub {
        self.out.uses_stack = true;
        Sub { reg: self.out.sp, at: 0 }
    }

    /// An address and a constant as a memory operand.
    fn place(&mut self, v: Value, space: Space, offset: i64) -> Result<Place> {
        let mut v = v;
        // Shared and local addresses are 32 bits, however wide the sum.
        while matches!(space, Space::Shared | Space::Local)
            && let Some(inst) = self.f.def_op(self.resolve(v))
            && inst.op == Op::ZeroExt
            && self.f.ty(inst.args[0]) == Type::B32
        {
            v = inst.args[0];
        }
        let mut a = self.address(v);
        let mut space = space;
        // A generic address made from one of a window is best used there.
        while let (Space::Generic, Base::Value(v)) = (space, &a.base)
            && let Some(inst) = self.f.def_op(*v)
            && let Op::ToGeneric(window @ (Space::Shared | Space::Local)) = inst.op
        {
            let inner = self.address(inst.args[0]);
            let offset = inner.offset.wrapping_add(a.offset);
            a = super::operand::Address { offset, ..inner };
            space = window;
        }
        let total = a.offset.wrapping_add(offset);
        if matches!(space, Space::Global | Space::Generic) {
            let (words, offset) = match a.base {
                Base::None => ([MSrc::imm(total as u32), MSrc::imm((total >> 32) as u32)], 0),
                Base::Variable(g) => {
                    let small = i32::try_from(total);
                    let at = self.places.variable_address(g, if small.is_ok() { 0 } else { total });
                    let c = MSrc::constant(abi::BANK_LOADER, self.check(at)?);
                    ([c, c.word(1)], small.unwrap_or(0))
                }
                Base::Slot(_) => return self.fail("a frame variable is not in this space"),
                Base::Value(v) => {
                    let w =
                        if self.f.ty(v) == Type::B64 { self.words(v)? } else { [self.src(v)?, MSrc::ZERO] };
                    match i32::try_from(total) {
                        Ok(offset) => (w, offset),
                        Err(_) => {
                            let t = self.pair_temp();
                            self.sum_words(
                                t,
                                w,
                                [MSrc::imm(total as u32), MSrc::imm((total >> 32) as u32)],
                                false,
                            );
                            (super::wide::both(t), 0)
                        }
                    }
                }
            };
            let base = self.join(words)?;
            return Ok(Place { space, base: MSrc::reg(base), offset, ur: None });
        }
        let mut offset = total as i32;
        let base = match a.base {
            Base::None => MSrc::ZERO,
            Base::Slot(s) => {
                offset = offset.wrapping_add(self.slots[s.index()] as i32);
                MSrc::reg(self.stack_pointer())
            }
            Base::Value(v) => {
                let w = self.low_word(v)?;
                MSrc::reg(self.in_register(w))
            }
            Base::Variable(g) => {
                let at = self.places.variable_address(g, 0);
                let at = self.check(at)?;
                MSrc::reg(self.in_register(MSrc::constant(abi::BANK_LOADER, at)))
            }
        };
        if space == Space::Param {
            offset = offset.wrapping_add(i32::from(abi::launch::PARAMS));
        }
        let ur = if a.in_window { self.window_start() } else { None };
        Ok(Place { space, base, offset, ur })
    }

    fn load(&mut self, inst: &InstData, access: Access) -> Result<()> {
        let guard = self.guard_of(inst);
        let place = self.place(inst.args[0], access.space, access.offset)?;
        let (bits, count) = (access.elem.bits(), u32::from(access.count));
        if count == 1 {
            let fresh = self.is_fresh(inst);
            if !fresh {
                self.pass_through(inst)?;
            }
            let d = self.def_if_used(inst.results.first());
            let m = load_inst(&place, &access, width_of(access.elem));
            self.push(MInst { dst: d, guard, fresh, ..m });
            return Ok(());
        }
        if bits < 32 {
            return self.load_packed(inst, access, place, guard);
        }
        // Whole words: one quad or pair at a time, whose words are the results.
        let words = bits / 32;
        let total = words * count;
        let step = total.min(4);
        let own = inst.own_args().len();
        for first in (0..total).step_by(step as usize) {
            let t = self.temp(if step == 4 { Class::Quad } else { Class::Pair });
            let elements = first / words..(first + step) / words;
            let fresh = self.is_fresh(inst);
            if inst.guard.is_some() && !fresh {
                for k in elements.clone() {
                    self.copy_value(t.word((k * words - first) as u8), inst.args[own + k as usize])?;
                }
            }
            let part = Place { offset: place.offset.wrapping_add(4 * first as i32), ..place };
            let m = load_inst(&part, &access, if step == 4 { Width::B128 } else { Width::B64 });
            self.push(MInst { fresh, ..m.dst(t).guard(guard) });
            for k in elements {
                if let Some(d) = self.def_if_used(inst.results.get(k as usize)) {
                    for w in 0..words {
                        self.mov(d.word(w as u8), MSrc::reg(t.word((k * words - first + w) as u8)));
                    }
                }
            }
        }
        Ok(())
    }

    /// Several bytes or halves with one access, picked out of its words.
    fn load_packed(&mut self, inst: &InstData, access: Access, place: Place, guard: PSrc) -> Result<()> {
        self.pass_through(inst)?;
        let bytes = access.elem.bits() / 8;
        let total = bytes * u32::from(access.count);
        let (class, width) = match total {
            2 => (Class::Word, Width::U16),
            4 => (Class::Word, Width::B32),
            8 => (Class::Pair, Width::B64),
            16 => (Class::Quad, Width::B128),
            _ => return self.fail("no access of this size"),
        };
        let t = self.temp(class);
        if guard != PSrc::TRUE {
            for n in 0..class.units() {
                self.mov(t.word(n as u8), MSrc::ZERO);
            }
        }
        self.push(load_inst(&place, &access, width).dst(t).guard(guard));
        for (n, r) in inst.results.iter().enumerate() {
            let Some(d) = self.def_if_used(Some(r)) else { continue };
            let at = bytes * n as u32;
            let (word, byte) = (t.word((at / 4) as u8), at % 4);
            // The element's bytes, then zeros (byte 4 is of RZ) or copies of its sign.
            let fill = if access.elem.is_signed() { 8 | (byte + bytes - 1) } else { 4 };
            let pick = |k: u32| if k < bytes { byte + k } else { fill };
            let selector = pick(0) | pick(1) << 4 | pick(2) << 8 | pick(3) << 12;
            self.push(MInst::new(M::Prmt).dst(d).a(MSrc::reg(word)).b(MSrc::imm(selector)).guard(guard));
        }
        Ok(())
    }

    fn store(&mut self, inst: &InstData, access: Access) -> Result<()> {
        let guard = self.guard_of(inst);
        let place = self.place(inst.args[0], access.space, access.offset)?;
        let data = &inst.own_args()[1..];
        let (bits, count) = (access.elem.bits(), u32::from(access.count));
        if count == 1 {
            let c = if bits == 64 {
                MSrc::reg(self.pair_reg(data[0])?)
            } else {
                let s = self.low_word(data[0])?;
                if s.is_zero() { s } else { MSrc::reg(self.in_register(s)) }
            };
            return self.store_part(&place, &access, width_of(access.elem), c, guard);
        }
        if bits < 32 {
            return self.store_packed(data, access, place, guard);
        }
        let words = bits / 32;
        let total = words * count;
        let step = total.min(4);
        for first in (0..total).step_by(step as usize) {
            let t = self.temp(if step == 4 { Class::Quad } else { Class::Pair });
            for k in first / words..(first + step) / words {
                self.copy_value(t.word((k * words - first) as u8), data[k as usize])?;
            }
            let part = Place { offset: place.offset.wrapping_add(4 * first as i32), ..place };
            let width = if step == 4 { Width::B128 } else { Width::B64 };
            self.store_part(&part, &access, width, MSrc::reg(t), guard)?;
        }
        Ok(())
    }

    fn store_part(
        &mut self,
        place: &Place,
        access: &Access,
        width: Width,
        c: MSrc,
        guard: PSrc,
    ) -> Result<()> {
        let op = match place.space {
            Space::Global => M::Stg,
            Space::Shared => M::Sts,
            Space::Local => M::Stl,
            Space::Generic => M::St,
            Space::Const | Space::Param => return self.fail("a store to constant memory"),
        };
        let m = annotated(at(MInst::new(op), place), access).with(width);
        self.push(m.c(c).guard(guard));
        Ok(())
    }

    /// Several bytes or halves joined to words.
    fn store_packed(&mut self, data: &[Value], access: Access, place: Place, guard: PSrc) -> Result<()> {
        let bytes = access.elem.bits() / 8;
        let mut parts: Vec<MSrc> = Vec::new();
        for &v in data {
            let s = self.low_word(v)?;
            parts.push(s);
        }
        let mut size = bytes;
        while size < 4 && parts.len() > 1 {
            let selector = if size == 1 { 0x0040 } else { 0x5410 };
            let mut joined = Vec::new();
            for pair in parts.chunks(2) {
                let t = self.word();
                let high = pair.get(1).copied().unwrap_or(MSrc::ZERO);
                self.push(MInst::new(M::Prmt).dst(t).a(pair[0]).b(MSrc::imm(selector)).c(high));
                joined.push(MSrc::reg(t));
            }
            parts = joined;
            size *= 2;
        }
        let (width, class) = match (size, parts.len()) {
            (2, 1) => (Width::U16, Class::Word),
            (4, 1) => (Width::B32, Class::Word),
            (4, 2) => (Width::B64, Class::Pair),
            (4, 4) => (Width::B128, Class::Quad),
            _ => return self.fail("no access of this size"),
        };
        let c = if class == Class::Word {
            parts[0]
        } else {
            let t = self.temp(class);
            for (n, &p) in parts.iter().enumerate() {
                self.mov(t.word(n as u8), p);
            }
            MSrc::reg(t)
        };
        self.store_part(&place, &access, width, c, guard)
    }

    fn atom(&mut self, inst: &InstData, atom: Atom) -> Result<()> {
        let guard = self.guard_of(inst);
        let place = self.place(inst.args[0], atom.space, atom.offset)?;
        let returns = matches!(inst.op, Op::Atom(_));
        let used = inst.results.iter().any(|r| self.regs[r.index()].is_some());
        let op = match (place.space, returns && used) {
            (Space::Shared, _) => M::Atoms,
            (Space::Global, true) => M::Atomg,
            (Space::Generic, true) => M::Atom,
            // What nobody reads is a reduction, but for the operations a reduction cannot do.
            (Space::Global, false) if !matches!(atom.op, AtomOp::Exch | AtomOp::Cas) => M::Redg,
            (Space::Generic, false) if !matches!(atom.op, AtomOp::Exch | AtomOp::Cas) => M::Red,
            (Space::Global, false) => M::Atomg,
            (Space::Generic, false) => M::Atom,
            _ => return self.fail("atomics are for global and shared memory"),
        };
        let Some(ty) = atom_type(&atom) else {
            return self.fail(format!("no atomics on {}", atom.elem.name()));
        };
        let data = &inst.own_args()[1..];
        let mut m = at(MInst::new(op), &place).with(ty).with(atom_op(atom.op)).with(memory_scope(atom.scope));
        m = m.with(match atom.order {
            Order::Acquire => AtomOrder::Acquire,
            Order::Release => AtomOrder::Release,
            Order::AcqRel | Order::Sc => AtomOrder::AcqRel,
            _ => AtomOrder::Relaxed,
        });
        let per = if atom.wide { 2 } else { 1 };
        // The memory counts the lanes of an address that add one each.
        let counts = op == M::Atoms
            && atom.op == AtomOp::Add
            && matches!(atom.elem, Scalar::U32 | Scalar::S32)
            && !(returns && used)
            && self.f.const_of(data[0]) == Some(1);
        if counts {
            m = m.with(AtomType::U32).with(field::AtomOp::PopcInc);
        } else {
            m.src[2] = self.datum(&data[..per])?;
        }
        if data.len() > per {
            m.e = self.datum(&data[per..])?.reg;
        }
        m.guard = guard;
        if atom.wide {
            let t = self.temp(Class::Quad);
            let own = inst.own_args().len();
            if inst.guard.is_some() {
                for k in 0..inst.results.len() {
                    self.copy_value(t.word(2 * k as u8), inst.args[own + k])?;
                }
            }
            self.push(if used { m.dst(t) } else { m });
            for (k, r) in inst.results.iter().enumerate() {
                if let Some(d) = self.def_if_used(Some(r)) {
                    self.mov(d, MSrc::reg(t.word(2 * k as u8)));
                    self.mov(d.word(1), MSrc::reg(t.word(2 * k as u8 + 1)));
                }
            }
            return Ok(());
        }
        m.fresh = self.is_fresh(inst);
        if !m.fresh {
            self.pass_through(inst)?;
        }
        m.dst = self.def_if_used(inst.results.first());
        self.push(m);
        Ok(())
    }

    /// Data of an atomic in registers: a word (RZ for zero), a pair, or a quad of two pairs.
    fn datum(&mut self, values: &[Value]) -> Result<MSrc> {
        match values {
            [v] if self.f.ty(*v) == Type::B64 => Ok(MSrc::reg(self.pair_reg(*v)?)),
            [v] => {
                let s = self.src(*v)?;
                Ok(if s.is_zero() { s } else { MSrc::reg(self.in_register(s)) })
            }
            _ => {
                let t = self.temp(Class::Quad);
                for (n, &v) in values.iter().enumerate() {
                    self.copy_value(t.word(2 * n as u8), v)?;
                }
                Ok(MSrc::reg(t))
            }
        }
    }
}

/// The address operands of a memory instruction.
fn at(m: MInst, place: &Place) -> MInst {
    let wide = matches!(place.space, Space::Global | Space::Generic);
    let ur = place.ur.filter(|_| m.op().row().fields.contains(&Field::Ur));
    MInst { ur, ..m.a(place.base).b(MSrc::imm(place.offset as u32)).flag(Field::E64, wide) }
}

fn load_inst(place: &Place, access: &Access, width: Width) -> MInst {
    let op = match place.space {
        Space::Global => M::Ldg,
        Space::Shared => M::Lds,
        Space::Local => M::Ldl,
        Space::Generic => M::Ld,
        Space::Const | Space::Param => {
            let bank = if place.space == Space::Const { abi::BANK_CONST } else { abi::BANK_LAUNCH };
            let m = MInst::new(M::Ldc).a(place.base).b(MSrc::imm(place.offset as u32));
            return m.num(Field::Bank, u32::from(bank)).with(width);
        }
    };
    annotated(at(MInst::new(op), place), access).with(width)
}

/// Cache operator, order and scope.
fn annotated(m: MInst, access: &Access) -> MInst {
    let cache = match access.cache {
        CacheOp::Default => Cache::Default,
        CacheOp::Cg => Cache::Cg,
        CacheOp::Cs => Cache::Cs,
        CacheOp::Lu => Cache::Lu,
        CacheOp::Cv => Cache::Cv,
        CacheOp::Wt => Cache::Wt,
        CacheOp::Nc => Cache::Nc,
    };
    let scope = if access.order == Order::Weak { field::Scope::Cta } else { memory_scope(access.scope) };
    m.with(cache).with(memory_order(access.order)).with(scope)
}

fn width_of(elem: Scalar) -> Width {
    match elem {
        Scalar::U8 => Width::U8,
        Scalar::S8 => Width::S8,
        Scalar::S16 => Width::S16,
        _ => match elem.bits() {
            16 => Width::U16,
            64 => Width::B64,
            _ => Width::B32,
        },
    }
}

fn memory_order(o: Order) -> field::Order {
    match o {
        Order::Weak => field::Order::Weak,
        Order::Volatile => field::Order::Volatile,
        Order::Relaxed => field::Order::Relaxed,
        Order::Acquire => field::Order::Acquire,
        Order::Release => field::Order::Release,
        Order::AcqRel => field::Order::AcqRel,
        Order::Sc => field::Order::Sc,
    }
}

fn memory_scope(s: Scope) -> field::Scope {
    match s {
        Scope::Cta => field::Scope::Cta,
        Scope::Cluster => field::Scope::Cluster,
        Scope::Gpu => field::Scope::Gpu,
        Scope::Sys => field::Scope::Sys,
    }
}

fn atom_op(op: AtomOp) -> field::AtomOp {
    match op {
        AtomOp::Add => field::AtomOp::Add,
        AtomOp::Inc => field::AtomOp::Inc,
        AtomOp::Dec => field::AtomOp::Dec,
        AtomOp::Min => field::AtomOp::Min,
        AtomOp::Max => field::AtomOp::Max,
        AtomOp::And => field::AtomOp::And,
        AtomOp::Or => field::AtomOp::Or,
        AtomOp::Xor => field::AtomOp::Xor,
        AtomOp::Exch => field::AtomOp::Exch,
        AtomOp::Cas => field::AtomOp::Cas,
    }
}

fn atom_type(a: &Atom) -> Option<AtomType> {
    if a.wide {
        return Some(AtomType::B128);
    }
    Some(match a.elem {
        Scalar::U32 => AtomType::U32,
        Scalar::S32 => AtomType::S32,
        Scalar::U64 => AtomType::U64,
        Scalar::S64 => AtomType::S64,
        Scalar::F32 => AtomType::F32,
        Scalar::F64 => AtomType::F64,
        Scalar::F16 => AtomType::F16,
        Scalar::Bf16 => AtomType::Bf16,
        Scalar::F16x2 => AtomType::F16x2,
        Scalar::Bf16x2 => AtomType::Bf16x2,
        Scalar::U16 | Scalar::S16 => AtomType::U16,
        _ => return None,
    })
}
