//! The 128-bit word.
//!
//! | bits | what |
//! | --- | --- |
//! | 0-7 | operation |
//! | 8-11 | guard: predicate, negated |
//! | 12-19 | destination |
//! | 20-25 | predicate destinations |
//! | 26-33 | first register source that is not the wide one |
//! | 34-65 | wide source: immediate, constant (bank << 16 + offset), uniform register; or a plain register |
//! | 66-67 | kind of the wide source: register, immediate, constant, uniform |
//! | 68-69 | which source is wide: A, B, C |
//! | 70-77 | second register source that is not the wide one |
//! | 78-85 | E |
//! | 86-94 | negate, absolute, reuse of A, B, C |
//! | 95-106 | predicate sources, four bits each |
//! | 107-127 | modifier fields in the row's order |

use crate::inst::{Inst, Operand, Src};
use crate::reg::{Pred, PredUse, Reg, UReg};
use crate::table::{Op, Role, Unit};

const MODS_AT: u32 = 107;
/// Bits for modifier fields.
pub const MODS_BITS: u32 = 21;

/// Why an instruction cannot be a word, or a word no instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EncodingError {
    /// Two sources want the 32-bit slot.
    TwoWideSources,
    UnknownOperation(u8),
    /// A field has a value without a name.
    BadField(&'static str),
    /// A pair or quad starts at a register that is not a multiple of its size, or runs past R254.
    Misaligned(Reg),
    /// A branch without an immediate target.
    NoTarget,
    /// A source that the operation's row does not have, or of a kind that it cannot be.
    BadSource,
}

impl std::fmt::Display for EncodingError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            EncodingError::TwoWideSources => {
                write!(f, "two sources are constants, immediates or uniform registers")
            }
            EncodingError::UnknownOperation(n) => write!(f, "operation {n} does not exist"),
            EncodingError::BadField(name) => write!(f, "field {name} has no such value"),
            EncodingError::Misaligned(r) => write!(f, "{r} cannot start a register group of this size"),
            EncodingError::NoTarget => write!(f, "a branch needs an immediate target"),
            EncodingError::BadSource => write!(f, "a source is not of a kind that the operation takes"),
        }
    }
}

impl std::error::Error for EncodingError {}

/// Which of A, B, C the row has.
fn used(op: Op) -> [bool; 3] {
    let mut used = [false; 3];
    for &role in op.row().roles {
        use Role::*;
        match role {
            A | A2 | AFrom => used[0] = true,
            Addr | CAddr => (used[0], used[1]) = (true, true),
            B | B2 | Target => used[1] = true,
            C | C2 | CW | CT => used[2] = true,
            _ => {}
        }
    }
    used
}

/// Register sources of this operation name uniform registers.
fn is_uniform(op: Op) -> bool {
    op.row().unit == Unit::Uniform && !matches!(op, Op::R2ur)
}

fn register_bits(op: Op, operand: Operand) -> Option<u32> {
    match operand {
        Operand::Reg(r) if !is_uniform(op) => Some(u32::from(r.0)),
        Operand::UReg(r) if is_uniform(op) => Some(u32::from(r.0)),
        Operand::None => Some(if is_uniform(op) { u32::from(UReg::URZ.0) } else { u32::from(Reg::RZ.0) }),
        _ => None,
    }
}

impl Inst {
    /// The instruction with absent sources where the row has none and RZ where one was left out: what decoding gives.
    pub fn canonical(mut self) -> Self {
        let used = used(self.op);
        for (src, used) in self.src.iter_mut().zip(used) {
            if !used {
                *src = Src::NONE;
            } else if src.operand == Operand::None {
                src.operand =
                    if is_uniform(self.op) { Operand::UReg(UReg::URZ) } else { Operand::Reg(Reg::RZ) };
            }
        }
        self
    }

    /// Checks what an encoder or an engine relies on.
    pub fn check(&self) -> Result<(), EncodingError> {
        let row = self.op.row();
        let mut total = 0;
        for &field in row.fields {
            let info = field.info();
            if !info.names.is_empty() && self.field(field) as usize >= info.names.len() {
                return Err(EncodingError::BadField(info.name));
            }
            total += info.bits;
        }
        if total < 32 && self.mods >> total != 0 {
            return Err(EncodingError::BadField("past the last"));
        }
        if self.field(crate::field::Field::Ur) > UReg::COUNT as u32 {
            return Err(EncodingError::BadField("Ur"));
        }
        if row.fields.contains(&crate::field::Field::Sr)
            && crate::reg::Special::from_bits(self.field(crate::field::Field::Sr)).is_none()
        {
            return Err(EncodingError::BadField("Sr"));
        }
        for (r, n) in self.reads().chain(self.writes()) {
            let align = if n == 3 { 4 } else { n.max(1) };
            if u32::from(r.0) % align != 0 || u32::from(r.0) + n > Reg::COUNT as u32 {
                return Err(EncodingError::Misaligned(r));
            }
        }
        for &role in row.roles {
            let src = self.source(role).unwrap_or_default();
            match role {
                Role::Target if self.target().is_none() => return Err(EncodingError::NoTarget),
                // Memory addresses come from registers, their offsets are immediates.
                Role::Addr | Role::CAddr => {
                    let base = matches!(src.operand, Operand::Reg(_) | Operand::UReg(_) | Operand::None);
                    let offset = matches!(
                        self.src[1].operand,
                        Operand::Imm(_) | Operand::None | Operand::Reg(Reg::RZ) | Operand::UReg(UReg::URZ)
                    );
                    if !base || !offset || (matches!(src.operand, Operand::UReg(_)) && !is_uniform(self.op)) {
                        return Err(EncodingError::BadSource);
                    }
                }
                Role::CW | Role::CT if !matches!(src.operand, Operand::Reg(_) | Operand::None) => {
                    return Err(EncodingError::BadSource);
                }
                // A pair may be a register pair, a constant or, for doubles, an immediate high word.
                Role::A2 | Role::B2 | Role::C2
                    if matches!(src.operand, Operand::Imm(_)) && row.unit != Unit::Fp64 =>
                {
                    return Err(EncodingError::BadSource);
                }
                Role::A2 | Role::B2 | Role::C2 | Role::AFrom
                    if self.width(role) == 2
                        && matches!(src.operand, Operand::UReg(r) if r.0 % 2 != 0 && r != UReg::URZ) =>
                {
                    return Err(EncodingError::BadSource);
                }
                _ => {}
            }
            if let Operand::UReg(r) = src.operand
                && r.0 > UReg::URZ.0
            {
                return Err(EncodingError::BadSource);
            }
        }
        if matches!(row.roles.first(), Some(Role::U | Role::U2)) {
            let pair = row.roles[0] == Role::U2;
            if self.dst.0 > UReg::URZ.0
                || (pair && !self.dst.0.is_multiple_of(2) && self.dst.0 != UReg::URZ.0)
            {
                return Err(EncodingError::Misaligned(self.dst));
            }
        }
        let too_high = |p: Pred| p.0 > 7;
        if self.pd.iter().copied().any(too_high)
            || self.ps.iter().any(|p| too_high(p.pred))
            || too_high(self.guard.pred)
        {
            return Err(EncodingError::BadSource);
        }
        Ok(())
    }

    pub fn encode(&self) -> Result<u128, EncodingError> {
        self.check()?;
        let inst = self.canonical();
        let used = used(inst.op);
        let wants_wide = |k: usize| used[k] && register_bits(inst.op, inst.src[k].operand).is_none();
        let wide = (0..3).filter(|&k| wants_wide(k)).collect::<Vec<_>>();
        if wide.len() > 1 {
            return Err(EncodingError::TwoWideSources);
        }
        let slot = wide.first().copied().unwrap_or(1);
        let (kind, bits) = match inst.src[slot].operand {
            Operand::Imm(bits) => (1, bits),
            Operand::Const { bank, offset } => (2, u32::from(bank) << 16 | u32::from(offset)),
            Operand::UReg(r) if !is_uniform(inst.op) => (3, u32::from(r.0)),
            other => (0, register_bits(inst.op, other).unwrap_or(255)),
        };
        let mut rest =
            (0..3).filter(|&k| k != slot).map(|k| register_bits(inst.op, inst.src[k].operand).unwrap_or(255));
        let mut word = Word(0);
        word.put(0, 8, inst.op as u32);
        word.put(8, 4, pred_use(inst.guard));
        word.put(12, 8, u32::from(inst.dst.0));
        word.put(20, 3, u32::from(inst.pd[0].0));
        word.put(23, 3, u32::from(inst.pd[1].0));
        word.put(26, 8, rest.next().unwrap_or(255));
        word.put(34, 32, bits);
        word.put(66, 2, kind);
        word.put(68, 2, slot as u32);
        word.put(70, 8, rest.next().unwrap_or(255));
        word.put(78, 8, u32::from(inst.e.0));
        for (k, s) in inst.src.iter().enumerate() {
            let flags = u32::from(s.neg) | u32::from(s.abs) << 1 | u32::from(s.reuse) << 2;
            word.put(86 + 3 * k as u32, 3, flags);
        }
        for (k, &p) in inst.ps.iter().enumerate() {
            word.put(95 + 4 * k as u32, 4, pred_use(p));
        }
        word.put(MODS_AT, MODS_BITS, inst.mods);
        Ok(word.0)
    }

    pub fn decode(bits: u128) -> Result<Inst, EncodingError> {
        let word = Word(bits);
        let number = word.get(0, 8);
        let op = Op::from_bits(number).ok_or(EncodingError::UnknownOperation(number as u8))?;
        let register = |bits: u32| {
            if is_uniform(op) { Operand::UReg(UReg(bits as u8)) } else { Operand::Reg(Reg(bits as u8)) }
        };
        let wide = word.get(34, 32);
        let operand = match word.get(66, 2) {
            0 => register(wide & 255),
            1 => Operand::Imm(wide),
            2 => Operand::Const { bank: (wide >> 16 & 31) as u8, offset: wide as u16 },
            _ => Operand::UReg(UReg(wide as u8 & 63)),
        };
        let slot = word.get(68, 2) as usize;
        if slot > 2 {
            return Err(EncodingError::BadSource);
        }
        let mut inst = Inst::new(op);
        let mut rest = [word.get(26, 8), word.get(70, 8)].into_iter();
        for k in 0..3 {
            let flags = word.get(86 + 3 * k as u32, 3);
            inst.src[k] = Src {
                operand: if k == slot { operand } else { register(rest.next().unwrap_or(255)) },
                neg: flags & 1 != 0,
                abs: flags & 2 != 0,
                reuse: flags & 4 != 0,
            };
            inst.ps[k] = unpred_use(word.get(95 + 4 * k as u32, 4));
        }
        inst.guard = unpred_use(word.get(8, 4));
        inst.dst = Reg(word.get(12, 8) as u8);
        inst.pd = [Pred(word.get(20, 3) as u8), Pred(word.get(23, 3) as u8)];
        inst.e = Reg(word.get(78, 8) as u8);
        inst.mods = word.get(MODS_AT, MODS_BITS);
        let inst = inst.canonical();
        inst.check()?;
        Ok(inst)
    }
}

fn pred_use(p: PredUse) -> u32 {
    u32::from(p.pred.0) | u32::from(p.neg) << 3
}

fn unpred_use(bits: u32) -> PredUse {
    PredUse { pred: Pred(bits as u8 & 7), neg: bits & 8 != 0 }
}

struct Word(u128);

impl Word {
    fn put(&mut self, at: u32, bits: u32, value: u32) {
        debug_assert!(bits == 32 || value >> bits == 0);
        self.0 |= u128::from(value) << at;
    }

    fn get(&self, at: u32, bits: u32) -> u32 {
        (self.0 >> at) as u32 & (u32::MAX >> (32 - bits))
    }
}
