//! A decoded instruction, and what it reads and writes.

use crate::field::{AtomType, Field, FieldValue, From as FromType, To, Width};
use crate::reg::{Pred, PredUse, Reg, UReg};
use crate::table::{Op, Role, Unit};

/// Where a source comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Operand {
    /// Not used: reads zero.
    #[default]
    None,
    Reg(Reg),
    UReg(UReg),
    /// For doubles the high word; the low one is zero.
    Imm(u32),
    /// Byte offset in a constant bank.
    Const {
        bank: u8,
        offset: u16,
    },
}

/// A source with its modifiers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Src {
    pub operand: Operand,
    pub neg: bool,
    pub abs: bool,
    /// The register-file cache keeps it for the next instruction of the warp.
    pub reuse: bool,
}

impl Src {
    pub const NONE: Src = Src { operand: Operand::None, neg: false, abs: false, reuse: false };

    pub fn reg(r: Reg) -> Self {
        Src { operand: Operand::Reg(r), ..Src::NONE }
    }

    pub fn imm(bits: u32) -> Self {
        Src { operand: Operand::Imm(bits), ..Src::NONE }
    }

    pub fn constant(bank: u8, offset: u16) -> Self {
        Src { operand: Operand::Const { bank, offset }, ..Src::NONE }
    }

    pub fn negated(self) -> Self {
        Src { neg: !self.neg, ..self }
    }

    /// Takes the word's 32-bit slot.
    pub fn is_wide(&self) -> bool {
        matches!(self.operand, Operand::Imm(_) | Operand::Const { .. } | Operand::UReg(_))
    }
}

/// An operation with its modifiers, without operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Head {
    pub op: Op,
    /// Modifier fields, in the row's order from bit 0.
    pub mods: u32,
}

impl Head {
    pub fn new(op: Op) -> Self {
        Head { op, mods: 0 }
    }

    /// The instruction without operands.
    pub fn inst(self) -> Inst {
        Inst { mods: self.mods, ..Inst::new(self.op) }
    }

    /// The unit that runs it.
    pub fn unit(&self) -> Unit {
        if self.flag(Field::Mad) { Unit::Imad } else { self.op.row().unit }
    }

    /// A field's bits; zero where the operation does not have it.
    pub fn field(&self, field: Field) -> u32 {
        Inst::place(self.op, field).map_or(0, |(at, bits)| self.mods >> at & ((1 << bits) - 1))
    }

    pub fn set_field(&mut self, field: Field, value: u32) {
        let place = Inst::place(self.op, field);
        debug_assert!(place.is_some(), "{:?} has no field {field:?}", self.op);
        if let Some((at, bits)) = place {
            let mask = ((1u32 << bits) - 1) << at;
            debug_assert!(value >> bits == 0, "{value} does not fit {field:?}");
            self.mods = self.mods & !mask | value << at & mask;
        }
    }

    pub fn get<F: FieldValue>(&self) -> F {
        F::from_bits(self.field(F::FIELD))
    }

    pub fn flag(&self, field: Field) -> bool {
        self.field(field) != 0
    }

    #[must_use]
    pub fn with<F: FieldValue>(mut self, value: F) -> Self {
        self.set_field(F::FIELD, value.to_bits());
        self
    }

    #[must_use]
    pub fn with_flag(mut self, field: Field, on: bool) -> Self {
        self.set_field(field, u32::from(on));
        self
    }

    #[must_use]
    pub fn with_num(mut self, field: Field, value: u32) -> Self {
        self.set_field(field, value);
        self
    }

    /// Registers of an operand in this role: how many in a row (0 for roles that are no register).
    pub fn width(&self, role: Role) -> u32 {
        use Role::*;
        match role {
            D | U | A | B | C | E => 1,
            D2 | U2 | A2 | B2 | C2 | E2 => 2,
            DW | CW => match self.get::<Width>() {
                Width::B64 => 2,
                Width::B128 => 4,
                _ => 1,
            },
            DT | CT | ET => match self.get::<AtomType>() {
                AtomType::U64 | AtomType::S64 | AtomType::F64 => 2,
                AtomType::B128 => 4,
                _ => 1,
            },
            DTo => {
                if matches!(self.get::<To>(), To::U64 | To::S64 | To::F64) {
                    2
                } else {
                    1
                }
            }
            AFrom => {
                if matches!(self.get::<FromType>(), FromType::U64 | FromType::S64 | FromType::F64) {
                    2
                } else {
                    1
                }
            }
            DM => self.field(Field::TexMask).count_ones(),
            Addr => 1 + self.field(Field::E64),
            CAddr => 1,
            Pd0 | Pd1 | Ps0 | Ps1 | Ps2 | Target | Num(_) => 0,
        }
    }
}

/// One instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Inst {
    pub op: Op,
    pub guard: PredUse,
    /// General or, by the row's role, uniform register; RZ for none.
    pub dst: Reg,
    /// PT for none.
    pub pd: [Pred; 2],
    /// A, B, C.
    pub src: [Src; 3],
    /// The fourth source, a register.
    pub e: Reg,
    pub ps: [PredUse; 3],
    /// Modifier fields, in the row's order from bit 0.
    pub mods: u32,
}

impl Inst {
    pub fn new(op: Op) -> Self {
        Inst {
            op,
            guard: PredUse::TRUE,
            dst: Reg::RZ,
            pd: [Pred::PT; 2],
            src: [Src::NONE; 3],
            e: Reg::RZ,
            ps: [PredUse::TRUE; 3],
            mods: 0,
        }
    }

    /// The operation with its modifiers.
    pub fn head(&self) -> Head {
        Head { op: self.op, mods: self.mods }
    }

    /// Bit position and width of a field of this operation.
    pub fn place(op: Op, field: Field) -> Option<(u32, u32)> {
        let mut at = 0;
        for &f in op.row().fields {
            let bits = f.info().bits;
            if f == field {
                return Some((at, bits));
            }
            at += bits;
        }
        None
    }

    /// The unit that runs it.
    pub fn unit(&self) -> Unit {
        self.head().unit()
    }

    /// A field's bits; zero where the operation does not have it.
    pub fn field(&self, field: Field) -> u32 {
        self.head().field(field)
    }

    pub fn set_field(&mut self, field: Field, value: u32) {
        let mut head = self.head();
        head.set_field(field, value);
        self.mods = head.mods;
    }

    pub fn get<F: FieldValue>(&self) -> F {
        self.head().get()
    }

    pub fn flag(&self, field: Field) -> bool {
        self.head().flag(field)
    }

    #[must_use]
    pub fn with<F: FieldValue>(mut self, value: F) -> Self {
        self.set_field(F::FIELD, value.to_bits());
        self
    }

    #[must_use]
    pub fn with_flag(mut self, field: Field, on: bool) -> Self {
        self.set_field(field, u32::from(on));
        self
    }

    #[must_use]
    pub fn with_num(mut self, field: Field, value: u32) -> Self {
        self.set_field(field, value);
        self
    }

    /// Registers of an operand in this role: how many in a row (0 for roles that are no register).
    pub fn width(&self, role: Role) -> u32 {
        self.head().width(role)
    }

    /// General registers written: first and how many.
    pub fn writes(&self) -> Option<(Reg, u32)> {
        self.op.row().roles.iter().find_map(|&role| match role {
            Role::D | Role::D2 | Role::DW | Role::DT | Role::DTo | Role::DM if !self.dst.is_zero() => {
                Some((self.dst, self.width(role)))
            }
            _ => None,
        })
    }

    /// Uniform registers written: first and how many.
    pub fn writes_uniform(&self) -> Option<(UReg, u32)> {
        self.op.row().roles.iter().find_map(|&role| match role {
            Role::U | Role::U2 if self.dst.0 != UReg::URZ.0 => Some((UReg(self.dst.0), self.width(role))),
            _ => None,
        })
    }

    /// The source of a role, for roles that are A, B, C or E in some width.
    pub fn source(&self, role: Role) -> Option<Src> {
        use Role::*;
        match role {
            A | A2 | AFrom | Addr | CAddr => Some(self.src[0]),
            B | B2 => Some(self.src[1]),
            C | C2 | CW | CT => Some(self.src[2]),
            E | E2 | ET => Some(Src::reg(self.e)),
            _ => None,
        }
    }

    /// General registers read: (first, how many), RZ left out.
    pub fn reads(&self) -> impl Iterator<Item = (Reg, u32)> + '_ {
        self.op.row().roles.iter().filter_map(|&role| match self.source(role)?.operand {
            Operand::Reg(r) if !r.is_zero() => Some((r, self.width(role))),
            _ => None,
        })
    }

    /// Predicates written, PT left out.
    pub fn pred_writes(&self) -> impl Iterator<Item = Pred> + '_ {
        self.op
            .row()
            .roles
            .iter()
            .filter_map(|&role| match role {
                Role::Pd0 => Some(self.pd[0]),
                Role::Pd1 => Some(self.pd[1]),
                _ => None,
            })
            .filter(|&p| p != Pred::PT)
    }

    /// Predicates read, the guard included, PT left out.
    pub fn pred_reads(&self) -> impl Iterator<Item = Pred> + '_ {
        let sources = self.op.row().roles.iter().filter_map(|&role| match role {
            Role::Ps0 => Some(self.ps[0].pred),
            Role::Ps1 => Some(self.ps[1].pred),
            Role::Ps2 => Some(self.ps[2].pred),
            _ => None,
        });
        std::iter::once(self.guard.pred).chain(sources).filter(|&p| p != Pred::PT)
    }

    /// The place a branch names.
    pub fn target(&self) -> Option<u32> {
        if !self.op.row().roles.contains(&Role::Target) {
            return None;
        }
        match self.src[1].operand {
            Operand::Imm(pc) => Some(pc),
            _ => None,
        }
    }

    pub fn set_target(&mut self, pc: u32) {
        self.src[1] = Src::imm(pc);
    }

    /// The immediate offset of a memory operand.
    pub fn offset(&self) -> i32 {
        match self.src[1].operand {
            Operand::Imm(bits) => bits as i32,
            _ => 0,
        }
    }

    /// The uniform register added to a memory address.
    pub fn address_ureg(&self) -> Option<UReg> {
        match self.field(Field::Ur) {
            0 => None,
            n => Some(UReg(n as u8 - 1)),
        }
    }
}
