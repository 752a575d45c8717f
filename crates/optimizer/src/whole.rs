//! Where all live lanes of a warp are together again, whatever went before.
//!
//! Lanes part at branches that are not marked uniform, and meet at the BSYNC of the innermost convergence register that was
//! set before. A place at which no parting is open is *whole*: code may be entered there that only a whole warp may run.

use crate::blocks::{Block, Blocks};
use isa::field::Field;
use isa::{Inst, Op, PredUse};

/// What is open at a place: convergence registers in the order in which they were set, and those under which lanes have parted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Open {
    set: Vec<u32>,
    parted: u32,
    /// Lanes have parted that meet nowhere, or nobody knows where.
    lost: bool,
}

impl Open {
    fn join(&mut self, other: &Open) -> bool {
        let old = self.clone();
        if self.set != other.set {
            self.lost = true;
        }
        self.parted |= other.parted;
        self.lost |= other.lost;
        *self != old
    }

    fn pass(&mut self, inst: &Inst) {
        let register = inst.field(Field::Bar4);
        match inst.op {
            // Lanes may be let go before the others come.
            Op::Bssy if inst.flag(Field::Soft) || inst.guard != PredUse::TRUE => self.lost = true,
            Op::Bssy => {
                self.set.retain(|&r| r != register);
                self.set.push(register);
                self.parted &= !(1 << register);
            }
            Op::Bsync => match self.set.iter().position(|&r| r == register) {
                Some(n) => {
                    // Whoever parted further inside is here too.
                    self.set[n..].iter().for_each(|r| self.parted &= !(1 << r));
                    self.set.truncate(n);
                }
                None => self.lost |= self.parted != 0,
            },
            Op::Bra if inst.guard != PredUse::TRUE && !inst.flag(Field::Uniform) => match self.set.last() {
                Some(r) => self.parted |= 1 << r,
                None => self.lost = true,
            },
            Op::BmovB | Op::BmovR | Op::Yield => self.lost = true,
            _ => {}
        }
    }
}

/// For each place of a block, whether a warp that entered it whole is whole there.
pub fn places(blocks: &Blocks, block: &Block) -> Vec<bool> {
    let at = |place: u32| block.places.binary_search(&place).ok();
    let mut open: Vec<Option<Open>> = vec![None; block.places.len()];
    let mut work = vec![block.entry];
    if let Some(n) = at(block.entry) {
        open[n] = Some(Open { lost: !block.is_whole, ..Open::default() });
    }
    while let Some(place) = work.pop() {
        let (Some(n), Some(inst)) = (at(place), blocks.inst(place)) else { continue };
        let Some(mut state) = open[n].clone() else { continue };
        state.pass(inst);
        for to in blocks.successors(place, inst) {
            let Some(m) = at(to) else { continue };
            let changed = match &mut open[m] {
                Some(old) => old.join(&state),
                empty => {
                    *empty = Some(state.clone());
                    true
                }
            };
            if changed {
                work.push(to);
            }
        }
    }
    open.iter().map(|o| o.as_ref().is_some_and(|o| !o.lost && o.parted == 0)).collect()
}
