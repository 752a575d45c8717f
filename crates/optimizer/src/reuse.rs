//! Marks operands that the register-file cache should keep for the next instructions.
//!
//! An entry of that cache belongs to an operand slot and a register bank. It pays to fill it where the next read of that bank through that
//! slot wants the same register, and nothing in between writes the register, leaves the trace, or makes the warp wait.

use crate::graph::slot_of;
use isa::{Effects, Inst, Latency, Operand};

/// Register banks: even and odd registers.
const BANKS: u8 = 2;
/// Instructions ahead that are looked at.
const AHEAD: usize = 4;

/// The registers that an instruction reads through a slot: first and how many.
fn through(inst: &Inst, slot: usize) -> Option<(u8, u32)> {
    let role = inst.op.row().roles.iter().copied().find(|&r| slot_of(r) == Some(slot))?;
    match inst.src[slot].operand {
        Operand::Reg(r) if !r.is_zero() => Some((r.0, inst.width(role))),
        _ => None,
    }
}

fn is_prompt(inst: &Inst) -> bool {
    let row = inst.op.row();
    let stops = Effects::JUMPS.or(Effects::ENDS).or(Effects::LANES).or(Effects::BARRIER);
    row.latency == Latency::Fixed && !row.effects.has(stops)
}

fn writes(inst: &Inst, (first, count): (u8, u32)) -> bool {
    let (from, to) = (u32::from(first), u32::from(first) + count);
    inst.writes().is_some_and(|(d, n)| u32::from(d.0) < to && from < u32::from(d.0) + n)
}

/// Marks straight code.
pub fn mark(code: &mut [Inst]) {
    for n in 0..code.len() {
        for slot in 0..3 {
            let Some(own) = through(&code[n], slot).filter(|_| is_prompt(&code[n])) else { continue };
            if writes(&code[n], own) {
                continue;
            }
            let next = code[n + 1..].iter().take(AHEAD);
            let mut kept = false;
            for i in next.take_while(|i| is_prompt(i)) {
                if let Some(other) = through(i, slot)
                    && (own.1 > 1 || other.1 > 1 || other.0 % BANKS == own.0 % BANKS)
                {
                    kept = other == own;
                    break;
                }
                if writes(i, own) {
                    break;
                }
            }
            code[n].src[slot].reuse = kept;
        }
    }
}
