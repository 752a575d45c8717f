//! Translation: a function's machine code cut into blocks that barriers bound.
//!
//! A block is what a warp can execute from one barrier to the next: it is entered at one place only, behind a barrier or where the
//! function begins, and holds all code that can be reached from there without passing another barrier. Blocks may share code, for
//! example the way out of a loop. Jumps to a place in a register and calls of functions that may wait at barriers leave the block, as
//! threads that end do.

use crate::liveness::{self, Set};
use isa::field::{BarMode, Field};
use isa::image::Image;
use isa::{Effects, Inst, Op};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What stands before a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Opening {
    /// The function's first instruction.
    Entry,
    /// A CTA barrier at this place.
    Barrier(u32),
}

/// Code between barriers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Block {
    /// Its number, an index of [`Blocks::blocks`].
    pub id: u32,
    pub opening: Opening,
    /// The place where it is entered.
    pub entry: u32,
    /// The places of its instructions in ascending order; barriers that end it and instructions that leave it are part of it.
    pub places: Vec<u32>,
    /// All live lanes of a warp enter together: behind an aligned barrier, and where a function begins.
    pub is_whole: bool,
}

impl Block {
    pub fn holds(&self, place: u32) -> bool {
        self.places.binary_search(&place).is_ok()
    }
}

/// What a caller has to know of a function that it calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Callee {
    /// What it may read before it writes it.
    pub reads: Set,
    pub writes: Set,
    /// It touches no memory, stops nowhere and has no loops: whoever calls it comes back.
    pub is_quiet: bool,
}

/// A function as blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocks {
    /// Index of the function in its image.
    pub function: u32,
    /// Place of the function's first instruction.
    pub start: u32,
    /// The function's instructions.
    pub code: Vec<Inst>,
    /// Registers of a thread.
    pub registers: u32,
    /// The functions that it calls, by the places of their first instructions.
    pub callees: BTreeMap<u32, Callee>,
    /// The block of the entry, then those behind barriers in the order of these.
    pub blocks: Vec<Block>,
}

/// Whether threads wait for those of other warps at an instruction.
pub fn is_barrier(inst: &Inst) -> bool {
    inst.op == Op::Bar && inst.get::<BarMode>() != BarMode::Arrive
}

/// Cuts a function of an image into blocks; none where there is no such function.
pub fn translate(image: &Image, function: u32) -> Option<Blocks> {
    let mut blocks = Blocks::empty(image, function)?;
    let openings = blocks.openings();
    blocks.blocks = (0u32..).zip(openings).map(|(id, opening)| blocks.block(id, opening)).collect();
    Some(blocks)
}

/// What is known of the function that begins at a place; none where it calls others itself.
fn callee(image: &Image, start: u32) -> Option<Callee> {
    let f = image.functions.iter().find(|f| f.start == start)?;
    let code = image.code.get(f.start as usize..f.end as usize)?;
    if code.iter().any(|i| matches!(i.op, Op::Call | Op::Callx | Op::Brx | Op::Bar)) {
        return None;
    }
    let mut writes = Set::default();
    code.iter().for_each(|i| liveness::for_each_write(i, |n| writes.insert(n)));
    let loud = Effects::READS.or(Effects::WRITES).or(Effects::FENCE).or(Effects::ENDS).or(Effects::LANES);
    let is_quiet = (start..).zip(code).all(|(at, i)| {
        // Lanes that meet again do not disturb those that wait for none.
        let quiet = !i.op.row().effects.has(loud) || i.op == Op::Bsync;
        quiet && !(i.op == Op::Bra && i.target().is_none_or(|to| to <= at))
    });
    let reads = liveness::at_start(code, start);
    Some(Callee { reads, writes, is_quiet })
}

impl Blocks {
    /// A function of which no block was translated yet.
    pub fn empty(image: &Image, function: u32) -> Option<Blocks> {
        let f = image.functions.get(function as usize)?;
        let code = image.code.get(f.start as usize..f.end as usize)?.to_vec();
        let calls = code.iter().filter(|i| i.op == Op::Call).filter_map(Inst::target);
        let callees = calls.filter_map(|to| Some((to, callee(image, to)?))).collect();
        Some(Blocks { function, start: f.start, code, registers: f.registers, callees, blocks: Vec::new() })
    }

    /// Where blocks begin.
    pub fn openings(&self) -> Vec<Opening> {
        let barriers = (self.start..).zip(&self.code).filter(|(_, i)| is_barrier(i));
        std::iter::once(Opening::Entry).chain(barriers.map(|(at, _)| Opening::Barrier(at))).collect()
    }

    /// Translates the one block that begins here.
    pub fn block(&self, id: u32, opening: Opening) -> Block {
        let entry = match opening {
            Opening::Entry => self.start,
            Opening::Barrier(at) => at + 1,
        };
        let is_whole = match opening {
            Opening::Entry => true,
            Opening::Barrier(at) => {
                self.inst(at).is_some_and(|i| i.flag(Field::Aligned) && i.guard == isa::PredUse::TRUE)
            }
        };
        let mut seen = vec![false; self.code.len()];
        let mut work = vec![entry];
        while let Some(at) = work.pop() {
            let Some(inst) = self.inst(at) else { continue };
            if std::mem::replace(&mut seen[(at - self.start) as usize], true) {
                continue;
            }
            work.extend(self.successors(at, inst));
        }
        let places = (self.start..).zip(seen).filter(|(_, s)| *s).map(|(at, _)| at).collect();
        Block { id, opening, entry, places, is_whole }
    }

    /// Whether control leaves the block at an instruction, whatever its guard says of single lanes. Functions that neither wait at
    /// barriers nor call others come back.
    pub fn leaves(&self, inst: &Inst) -> bool {
        match inst.op {
            Op::Brx | Op::Callx | Op::Ret => true,
            Op::Call => inst.target().is_none_or(|to| !self.callees.contains_key(&to)),
            _ => is_barrier(inst),
        }
    }

    /// The places inside the block that come after an instruction.
    pub fn successors(&self, at: u32, inst: &Inst) -> impl Iterator<Item = u32> + use<> {
        let always = inst.guard == isa::PredUse::TRUE;
        let jumps = inst.op == Op::Bra;
        let ends = matches!(inst.op, Op::Exit | Op::Bra) && always;
        let falls = !ends && !self.leaves(inst);
        inst.target().filter(|_| jumps).into_iter().chain(falls.then_some(at + 1))
    }

    /// The instruction at a place of the function.
    pub fn inst(&self, place: u32) -> Option<&Inst> {
        self.code.get(place.checked_sub(self.start)? as usize)
    }

    /// The block that a barrier opens.
    pub fn behind(&self, barrier: u32) -> Option<&Block> {
        self.blocks.iter().find(|b| b.opening == Opening::Barrier(barrier))
    }

    /// The block that begins at a place.
    pub fn at(&self, entry: u32) -> Option<&Block> {
        self.blocks.iter().find(|b| b.entry == entry)
    }
}
