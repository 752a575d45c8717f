//! What stays the same from one execution of a block by a warp to the next, as far as the code tells.
//!
//! A profile of one execution cannot tell a loop's counter from a number that never changes. Here every register at the start of a block
//! is followed through the code until the block begins again: it is *stable* if it then depends on nothing but stable registers. This is a
//! guess at what pays, not a proof: ways of branches are not looked at, and whatever is assumed is checked.

use crate::blocks::{Block, Blocks};
use crate::liveness::{self, Set};
use isa::{Effects, Inst, Op, PredUse};

/// What a unit was computed from: units at the block's start, or things that only running tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct From {
    pub units: Set,
    pub data: bool,
    /// Written since the start.
    pub is_new: bool,
}

const UNITS: usize = liveness::CONVERGENCE;

type State = Vec<From>;

fn is_data(inst: &Inst) -> bool {
    let row = inst.op.row();
    row.effects.has(Effects::READS.or(Effects::WRITES).or(Effects::LANES).or(Effects::VOLATILE))
        || matches!(inst.op, Op::Call | Op::Callx | Op::R2ur)
}

fn pass(inst: &Inst, state: &mut State) {
    let mut from = From { data: is_data(inst), is_new: true, ..From::default() };
    liveness::for_each_read(inst, |u| {
        if let Some(f) = state.get(u) {
            from.units.join(&f.units);
            from.data |= f.data;
        }
    });
    liveness::for_each_write(inst, |u| {
        if let Some(f) = state.get_mut(u) {
            if inst.guard == PredUse::TRUE {
                *f = from;
            } else {
                f.units.join(&from.units);
                f.data |= from.data;
                f.is_new = true;
            }
        }
    });
}

/// Where everything comes from, over all code that can follow a block.
pub struct Stable {
    /// Before each instruction of the function.
    states: Vec<Option<State>>,
    start: u32,
    pub units: Set,
}

impl Stable {
    pub fn new(blocks: &Blocks, block: &Block) -> Stable {
        let mut states: Vec<Option<State>> = vec![None; blocks.code.len()];
        let first: State = (0..UNITS)
            .map(|u| {
                let mut units = Set::default();
                units.insert(u);
                From { units, data: false, is_new: false }
            })
            .collect();
        let at = |place: u32| place.checked_sub(blocks.start).map(|n| n as usize);
        let mut again: Option<State> = None;
        let mut work = Vec::new();
        if let Some(n) = at(block.entry).filter(|&n| n < states.len()) {
            states[n] = Some(first.clone());
            work.push(block.entry);
        }
        while let Some(place) = work.pop() {
            let (Some(n), Some(inst)) = (at(place), blocks.inst(place)) else { continue };
            let Some(mut state) = states[n].clone() else { continue };
            pass(inst, &mut state);
            let always = inst.guard == PredUse::TRUE;
            let ends = always && matches!(inst.op, Op::Exit | Op::Bra | Op::Ret | Op::Brx);
            let jump = inst.target().filter(|_| inst.op == Op::Bra);
            for to in jump.into_iter().chain((!ends).then_some(place + 1)) {
                if to == block.entry {
                    join(&mut again, &state);
                } else if let Some(m) = at(to).filter(|&m| m < states.len())
                    && join(&mut states[m], &state)
                {
                    work.push(to);
                }
            }
        }
        let units = settle(&again.unwrap_or(first));
        Stable { states, start: blocks.start, units }
    }

    /// Whether what a branch goes by is the same each time, or comes from data, of which there is much to see.
    pub fn tells(&self, place: u32, inst: &Inst) -> bool {
        let n = place.checked_sub(self.start).map(|n| n as usize);
        let Some(state) = n.and_then(|n| self.states.get(n)).and_then(Option::as_ref) else { return false };
        let unit = liveness::PREDICATES + usize::from(inst.guard.pred.0);
        state.get(unit).is_some_and(|f| f.data || f.units.iter().all(|u| self.units.has(u)))
    }
}

fn join(old: &mut Option<State>, new: &State) -> bool {
    let Some(old) = old else {
        *old = Some(new.clone());
        return true;
    };
    let mut changed = false;
    for (a, b) in old.iter_mut().zip(new) {
        changed |= a.units.join(&b.units) | (b.data && !a.data) | (b.is_new && !a.is_new);
        a.data |= b.data;
        a.is_new |= b.is_new;
    }
    changed
}

/// Units that depend, one time around, on nothing but units that stay as they are.
fn settle(again: &State) -> Set {
    let mut stable = Set::default();
    for (u, f) in again.iter().enumerate() {
        if !f.is_new {
            stable.insert(u);
        }
    }
    // One that is made from itself and others is a counter.
    loop {
        let more: Vec<usize> = (0..UNITS)
            .filter(|&u| !stable.has(u) && !again[u].data && again[u].units.iter().all(|x| stable.has(x)))
            .collect();
        if more.is_empty() {
            return stable;
        }
        more.into_iter().for_each(|u| stable.insert(u));
    }
}
