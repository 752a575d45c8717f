//! Which registers and predicates are read before they are written.

use crate::blocks::{Block, Blocks};
use isa::{Inst, Op, PredUse};

/// A set of general registers (0 to 254), predicates (256 to 262) and convergence registers (264 to 279).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Set([u64; 5]);

pub const PREDICATES: usize = 256;
pub const CONVERGENCE: usize = 264;
const MEMBERS: usize = 280;

impl Set {
    pub fn has(&self, n: usize) -> bool {
        self.0[n / 64] >> (n % 64) & 1 != 0
    }

    pub fn insert(&mut self, n: usize) {
        self.0[n / 64] |= 1 << (n % 64);
    }

    pub fn remove(&mut self, n: usize) {
        self.0[n / 64] &= !(1 << (n % 64));
    }

    /// Adds all of another; whether that changed anything.
    pub fn join(&mut self, other: &Set) -> bool {
        let old = *self;
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a |= b);
        *self != old
    }

    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..MEMBERS).filter(|&n| self.has(n))
    }
}

/// Everything: what must be kept where it is not known who reads it.
pub fn everything() -> Set {
    let mut all = Set::default();
    (0..MEMBERS).for_each(|n| all.insert(n));
    all
}

/// Calls for what an instruction reads.
pub fn for_each_read(i: &Inst, mut f: impl FnMut(usize)) {
    for (r, n) in i.reads() {
        (0..n).for_each(|k| f(usize::from(r.0) + k as usize));
    }
    i.pred_reads().for_each(|p| f(PREDICATES + usize::from(p.0)));
    if matches!(i.op, Op::Bsync | Op::BmovR) {
        f(CONVERGENCE + i.field(isa::field::Field::Bar4) as usize);
    }
}

/// Calls for what an instruction writes where its guard holds.
pub fn for_each_write(i: &Inst, mut f: impl FnMut(usize)) {
    if let Some((r, n)) = i.writes() {
        (0..n).for_each(|k| f(usize::from(r.0) + k as usize));
    }
    i.pred_writes().for_each(|p| f(PREDICATES + usize::from(p.0)));
    if matches!(i.op, Op::Bssy | Op::BmovB) {
        f(CONVERGENCE + i.field(isa::field::Field::Bar4) as usize);
    }
}

/// What is live before an instruction, from what is live behind it.
pub fn step(i: &Inst, live: &mut Set) {
    if i.guard == PredUse::TRUE {
        for_each_write(i, |n| live.remove(n));
    }
    for_each_read(i, |n| live.insert(n));
}

/// What is live before each instruction of code that begins at a place, from what is live where it calls, jumps to a place in a
/// register, or returns.
fn solve(code: &[Inst], start: u32, leaving: impl Fn(&Inst) -> Set) -> Vec<Set> {
    let mut before = vec![Set::default(); code.len() + 1];
    let mut changed = true;
    while changed {
        changed = false;
        for n in (0..code.len()).rev() {
            let i = &code[n];
            let mut live = match i.op {
                Op::Brx | Op::Call | Op::Callx | Op::Ret => leaving(i),
                _ => Set::default(),
            };
            let always = i.guard == PredUse::TRUE;
            if !(always && matches!(i.op, Op::Bra | Op::Exit | Op::Ret | Op::Brx)) {
                live.join(&before[n + 1].clone());
            }
            if i.op == Op::Bra
                && let Some(to) = i.target()
            {
                let to = to.checked_sub(start).and_then(|to| before.get(to as usize));
                live.join(&to.copied().unwrap_or_else(everything));
            }
            step(i, &mut live);
            if live != before[n] {
                before[n] = live;
                changed = true;
            }
        }
    }
    before
}

/// What a function reads before it writes it, returns not looked at.
pub fn at_start(code: &[Inst], start: u32) -> Set {
    solve(code, start, |_| Set::default()).first().copied().unwrap_or_default()
}

/// What is live before each instruction of a function, over all of its code: barriers are passed, jumps to places in registers
/// keep everything.
pub fn of_function(blocks: &Blocks) -> Vec<Set> {
    let mut all = everything();
    (blocks.registers as usize..PREDICATES).for_each(|n| all.remove(n));
    solve(&blocks.code, blocks.start, |i| {
        let known = i.target().filter(|_| i.op == Op::Call).and_then(|to| blocks.callees.get(&to));
        known.map_or(all, |callee| callee.reads)
    })
}

/// General registers that are live where a block begins.
pub fn entry_registers(blocks: &Blocks, block: &Block) -> [bool; 256] {
    let live = of_function(blocks);
    let at =
        block.entry.checked_sub(blocks.start).and_then(|n| live.get(n as usize)).copied().unwrap_or_default();
    std::array::from_fn(|r| r < 255 && at.has(r))
}
