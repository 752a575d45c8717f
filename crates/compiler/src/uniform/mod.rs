//! The uniform register file, and constants the way an SM of this generation takes them.
//!
//! Arithmetic reads no constant bank: a word of a bank is loaded once, into a uniform register where the instructions that
//! read it have room for one, into a general register where they do not. Global accesses name the descriptor of global
//! memory in a uniform pair. All this happens on [`mir`](crate::mir) after selection, in entries only.
//!
//! Lanes of a warp that went different ways share the uniform file. So only values that stay the same for as long as the
//! warp lives are kept there, each in a register of its own: whoever writes one, and however often, writes what is there
//! already, and a lane that reads it has passed a write. Device functions leave the file alone, so calls keep it.

mod arithmetic;
mod constants;
mod descriptor;
mod dominators;
mod window;

use crate::mir::{Class, MFunction, MInst, Sub, VReg};
use dominators::Dominators;
use isa::Op;
use isa::field::Field;

/// Puts the constants, the descriptor of global memory and the stack pointer of an entry where its code reads them.
pub fn run(f: &mut MFunction) {
    // R1 is the stack pointer of every thread, whether it has a frame or not.
    f.uses_stack = true;
    let dominators = Dominators::new(f);
    let windows = match f.windows.len() as u32 {
        0 => 0,
        n => n + window::MORE_REGISTERS,
    };
    let mut file = File { left: isa::UReg::COUNT as u32 - 1 - 2 * windows };
    window::make(f, &dominators);
    descriptor::load(f, &dominators, &mut file);
    constants::share(f, &dominators);
    arithmetic::select(f, &mut file);
    constants::load(f, &dominators, &mut file);
}

/// Uniform registers not yet given out; each is given out once.
struct File {
    left: u32,
}

impl File {
    /// A uniform register, or a pair of them.
    fn take(&mut self, f: &mut MFunction, class: Class) -> Option<VReg> {
        // A word may cost a second one by the alignment of a later pair.
        self.left = self.left.checked_sub(2)?;
        Some(f.new_reg(class))
    }
}

/// A load from a constant bank into a uniform register.
fn uniform_load(to: VReg, class: Class, bank: u8, offset: u16) -> MInst {
    let op = if class == Class::UniformPair { Op::Uldc64 } else { Op::Uldc };
    MInst::new(op)
        .dst(Sub { reg: to, at: 0 })
        .b(crate::mir::MSrc::imm(u32::from(offset)))
        .num(Field::Bank, u32::from(bank))
}

/// The block where a value that `blocks` read is best made: above all of them and outside all loops.
fn home(
    f: &MFunction,
    dominators: &Dominators,
    blocks: impl Iterator<Item = usize> + Clone,
) -> Option<usize> {
    let mut at = dominators.common(blocks)?;
    while f.blocks[at].depth > 0 {
        match dominators.parent(at) {
            Some(up) => at = up,
            None => break,
        }
    }
    Some(at)
}

/// Puts `i` into block `at` in front of the first instruction that reads its result, or at the block's end.
fn insert(f: &mut MFunction, at: usize, mut i: MInst) {
    let Some(dst) = i.dst else { return };
    let block = &mut f.blocks[at];
    let insts = &mut block.insts;
    let first = insts.iter().position(|x| {
        let mut reads = false;
        x.for_each_read(|s, _| reads |= s.reg == dst.reg);
        reads
    });
    let n = first.unwrap_or(insts.len());
    i.loc = insts.get(n).map_or(block.term_loc, |x| x.loc);
    insts.insert(n, i);
}
