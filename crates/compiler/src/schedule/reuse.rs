//! Marks operands that the register-file cache should keep.
//!
//! The cache has one entry for each of the two register banks and each of the three operand slots of a sub-core. An
//! instruction whose operand is marked leaves its value in the entry; the next read of that bank through that slot takes the
//! entry away, and gets the value without a read of the bank where it names the same register. So an operand is marked if
//! the next fixed-latency instruction that reads its bank through its slot names the same register, if nothing between them
//! writes that register (the entry would be stale), jumps, or waits for a memory or special-function unit (another
//! warp would run and take the entry).

use isa::{Effects, Inst, Latency, Operand, Reg, Role};

/// Banks of the register file; registers alternate.
const BANKS: u8 = 2;
/// Instructions ahead that are looked at: the entry is lost when the warp does not run for long.
const WINDOW: usize = 4;

/// Marks the operands of code that is laid out.
pub fn mark(code: &mut [Inst]) {
    for n in 0..code.len() {
        if !is_fixed(&code[n]) {
            continue;
        }
        for slot in 0..3 {
            if let Some((reg, width)) = operand(&code[n], slot)
                && is_read_next(&code[n], &code[n + 1..], slot, reg, width)
            {
                code[n].src[slot].reuse = true;
            }
        }
    }
}

fn is_fixed(i: &Inst) -> bool {
    i.op.row().latency == Latency::Fixed && !i.op.row().effects.has(Effects::LANES)
}

/// The registers read through a slot.
fn operand(i: &Inst, slot: usize) -> Option<(Reg, u32)> {
    use Role::*;
    let role = i.op.row().roles.iter().copied().find(|r| match slot {
        0 => matches!(r, A | A2 | AFrom | Addr | CAddr),
        1 => matches!(r, B | B2),
        _ => matches!(r, C | C2 | CW | CT),
    })?;
    match i.src[slot].operand {
        Operand::Reg(r) if !r.is_zero() => Some((r, i.width(role))),
        _ => None,
    }
}

fn is_read_next(first: &Inst, rest: &[Inst], slot: usize, reg: Reg, width: u32) -> bool {
    let overwrites = |i: &Inst| {
        i.writes().is_some_and(|(d, w)| {
            u32::from(d.0) < u32::from(reg.0) + width && u32::from(reg.0) < u32::from(d.0) + w
        })
    };
    if overwrites(first) {
        return false;
    }
    for i in rest.iter().take(WINDOW) {
        let effects = i.op.row().effects;
        if effects.has(Effects::JUMPS.or(Effects::ENDS).or(Effects::LANES).or(Effects::BARRIER)) {
            return false;
        }
        if let Some((r, w)) = operand(i, slot) {
            // A pair is in both banks.
            let same_bank = w > 1 || width > 1 || r.0 % BANKS == reg.0 % BANKS;
            if same_bank {
                return is_fixed(i) && r == reg && w == width;
            }
        }
        if !is_fixed(i) || overwrites(i) {
            return false;
        }
    }
    false
}
