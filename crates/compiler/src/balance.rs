//! Which pipe runs what two can run: copies, shifts by a constant and sums of two registers go to the pipe for
//! multiplications and additions where a function has more work for the other one.
//!
//! NVIDIA's assembler does the same, as its code shows (`IMAD.MOV`, `IMAD.SHL`, `IMAD.IADD`, `IMAD.X`): it counts over a whole
//! function, and evens the two out. Sums with a constant or a uniform register stay where they are.

use crate::mir::{MFunction, MInst, MSrc};
use isa::field::{Dir, Field, Part, ShiftType};
use isa::{Op, Unit};

pub fn run(f: &mut MFunction) {
    let (mut excess, mut free) = (0, Vec::new());
    for (b, block) in f.blocks.iter().enumerate() {
        for (n, i) in block.insts.iter().enumerate() {
            match rank(f, i) {
                Some(rank) => free.push((rank, b, n)),
                None => excess += load(i),
            }
        }
    }
    // As many move as leave both with the same.
    let moved = (excess + free.len() as i64).max(0) as usize / 2;
    free.sort_unstable();
    for &(_, b, n) in free.iter().take(moved) {
        f.blocks[b].insts[n].inst.set_field(Field::Mad, 1);
    }
}

/// What an instruction adds to the integer pipe's work, less what it adds to the other's.
fn load(i: &MInst) -> i64 {
    match i.op().row().unit {
        Unit::Alu => 1,
        Unit::Fma | Unit::Imad | Unit::Half => -1,
        // Most of them are conversions that the integer pipe runs.
        _ if i.op() == Op::I2f => 1,
        _ => 0,
    }
}

/// How gladly an instruction moves to the pipe for multiplications and additions, the gladdest first, if it can.
fn rank(f: &MFunction, i: &MInst) -> Option<u32> {
    let is_register = |s: &MSrc| s.reg.is_some_and(|s| !f.class(s.reg).is_uniform());
    let is_plain = |s: &MSrc| is_register(s) && !s.src.neg;
    let [a, b, c] = &i.src;
    let is_word =
        i.dst.is_some_and(|d| !f.class(d.reg).is_uniform()) && i.pd == [None; 2] && i.frame.is_none();
    match i.op() {
        _ if !is_word => None,
        Op::Mov if is_register(b) || b.is_zero() => Some(0),
        Op::Mov if b.imm_bits().is_some() => Some(3),
        Op::Shf if is_register(a) && c.is_zero() && is_left_shift(i) && b.imm_bits().is_some() => Some(0),
        Op::Iadd3 if i.inst.flag(Field::X) && (a.is_zero() || b.is_zero() || c.is_zero()) => Some(1),
        Op::Iadd3 if i.inst.flag(Field::X) => None,
        Op::Iadd3 if c.is_zero() && is_plain(a) && is_plain(b) => Some(1),
        Op::Iadd3 if c.is_zero() && is_register(a) && is_register(b) => Some(2),
        _ => None,
    }
}

fn is_left_shift(i: &MInst) -> bool {
    let is_word = i.inst.get::<ShiftType>() == ShiftType::U32 && i.inst.get::<Part>() == Part::Lo;
    is_word && i.inst.get::<Dir>() == Dir::L
}
