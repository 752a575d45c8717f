//! Register allocation.
//!
//! Each word of a virtual register has its own live ranges, so halves of pairs die on their own. Copies whose two sides
//! never live at once are merged; then registers are given out in the order in which ranges start, lowest number first,
//! since the number of registers decides how many warps fit an SM. When none is free the cheapest candidate is spilled and
//! the work starts over. Calls keep nothing but the stack pointer, so what lives across one is spilled too.
//! Uniform registers are given out once each (see [`crate::uniform`]), and no call touches them.

mod assign;
mod coalesce;
mod liveness;
mod occupied;
mod spill;
mod untangle;
mod verify;

use crate::mir::{Class, MFunction, VReg};

pub use liveness::{Live, Starts, ranges, starts};
pub use verify::verify;

/// Physical registers by virtual register, and what the frame grew to.
pub struct Allocation {
    pub registers: Vec<u8>,
    pub frame_bytes: u32,
    /// General registers used: the highest and one.
    pub count: u32,
}

impl Allocation {
    fn new(f: &MFunction, registers: Vec<u8>) -> Allocation {
        let count = count_registers(f, &registers);
        Allocation { registers, frame_bytes: f.frame_bytes.next_multiple_of(16), count }
    }
}

/// Merges the sides of copies where they can be one register. What lives where blocks start afterwards.
pub fn merge_copies(f: &mut MFunction) -> Starts {
    untangle::untangle(f);
    let mut starts = liveness::starts(f);
    let live = liveness::ranges(f, &starts);
    coalesce::coalesce(f, &live, &mut starts);
    starts
}

/// Which of the free registers is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    Lowest,
    /// Of so many registers the lowest that does not have to wait for a memory instruction that reads it.
    Rested(u32),
    /// Of so many registers one whose neighbours are taken, so that aligned fours stay free for vectors.
    Snug(u32),
    /// The lowest, where vectors choose before words: those need aligned places, which words would break up.
    VectorsFirst,
}

/// The same as [`assign`] where that needs no spill and at most `within` general registers; `live` is what [`ranges`] found.
pub fn assign_within(
    f: &MFunction,
    live: &Live,
    limit: u32,
    within: u32,
    choice: Choice,
) -> Option<Allocation> {
    let registers = assign::assign_within(f, live, limit, within, choice)?;
    Some(Allocation::new(f, registers)).filter(|a| a.count <= within)
}

/// Gives every virtual register of `f`, whose copies are merged, a physical one; `limit` general registers may be used.
pub fn assign(f: &mut MFunction, limit: u32, choice: Choice) -> Result<Allocation, String> {
    // Registers made by spilling live for one instruction, so every round removes long ranges; a few are enough.
    let mut short = vec![false; f.classes.len()];
    for _ in 0..64 {
        let live = liveness::analyse(f);
        match assign::assign(f, &live, limit, choice, &short) {
            Ok(registers) => return Ok(Allocation::new(f, registers)),
            Err(spills) => {
                if spills.is_empty() {
                    break;
                }
                spill::spill(f, &spills, &live);
                short.resize(f.classes.len(), true);
            }
        }
    }
    Err(format!("{limit} registers are not enough"))
}

fn count_registers(f: &MFunction, registers: &[u8]) -> u32 {
    let mut count = if f.uses_stack { u32::from(isa::abi::STACK_POINTER) + 1 } else { 0 };
    let mut note = |r: VReg| {
        let class = f.class(r);
        if class != Class::Pred && !class.is_uniform() && (r != f.sp || f.uses_stack) {
            count = count.max(u32::from(registers[r.index()]) + class.units());
        }
    };
    for b in &f.blocks {
        for i in &b.insts {
            i.for_each_read(|s, _| note(s.reg));
            if let Some(d) = i.dst {
                note(d.reg);
            }
        }
        if let crate::mir::MTerm::Table { place, .. } | crate::mir::MTerm::Return { to: place, .. } = &b.term
        {
            note(place.reg);
        }
    }
    count
}
