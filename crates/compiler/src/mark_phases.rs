//! Cuts a program into phases: mathematics, then a cluster of cache accesses that do not need each other's results.
//!
//! An access has one of two modifiers, which steps a counter of its warp once it has issued: the last access of a phase
//! steps PHASE, all others step TEX. An access that needs the result of one in its phase starts the next; so does what
//! stands behind a meeting point of lanes or warps, a call, or the end of a block. Schedulers with grants let the warps of
//! a CTA make the same access one after the other (`docs/scheduling.md`).

use crate::mir::{MFunction, MInst, VReg};
use isa::field::{Cache, Field, Order};
use isa::{Effects, Op};
use std::collections::HashSet;

/// Which operations are the accesses that phases are made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Phases {
    /// Texture operations.
    #[default]
    Textures,
    /// Global loads through the first-level cache too.
    Loads,
}

impl Phases {
    pub fn has(self, i: &MInst) -> bool {
        match i.op() {
            Op::Tex | Op::Tld4 => true,
            Op::Ldg if self == Phases::Loads => {
                i.inst.get::<Order>() == Order::Weak && !matches!(i.inst.get(), Cache::Cv | Cache::Cg)
            }
            _ => false,
        }
    }
}

/// Sets the modifiers of all accesses.
pub fn run(f: &mut MFunction, phases: Phases) {
    for block in &mut f.blocks {
        let mut phase = Phase::default();
        for n in 0..block.insts.len() {
            let i = &block.insts[n];
            let is_access = phases.has(i);
            if ends_phase(i) || is_access && phase.feeds(i) {
                phase.end(&mut block.insts);
            }
            let i = &mut block.insts[n];
            phase.pass(i, is_access);
            if is_access {
                i.inst.set_field(Field::TexStep, 1);
                phase.last = Some(n);
            }
        }
        phase.end(&mut block.insts);
    }
}

/// Lanes or warps wait for each other here, or others run.
fn ends_phase(i: &MInst) -> bool {
    i.call.is_some() || i.op().row().effects.has(Effects::LANES.or(Effects::BARRIER).or(Effects::JUMPS))
}

/// A phase as it grows.
#[derive(Default)]
struct Phase {
    /// Its last access so far.
    last: Option<usize>,
    /// Registers with values that come from its accesses.
    results: HashSet<VReg>,
}

impl Phase {
    fn end(&mut self, insts: &mut [MInst]) {
        if let Some(n) = self.last.take() {
            insts[n].inst.set_field(Field::TexStep, 0);
            insts[n].inst.set_field(Field::PhaseStep, 1);
        }
        self.results.clear();
    }

    /// The instruction needs a result of the phase.
    fn feeds(&self, i: &MInst) -> bool {
        let mut found = false;
        i.for_each_read(|s, _| found |= self.results.contains(&s.reg));
        i.for_each_pred_read(|p| found |= self.results.contains(&p));
        found
    }

    /// What the instruction writes comes from the phase, or does not any more.
    fn pass(&mut self, i: &MInst, is_access: bool) {
        let comes = is_access || self.feeds(i);
        let written = i.written().map(|(s, _)| s.reg);
        for r in written.into_iter().chain(i.pd.iter().flatten().copied()) {
            if comes {
                self.results.insert(r);
            } else if !i.is_guarded() && i.written().is_none_or(|(s, _)| s.at == 0) {
                self.results.remove(&r);
            }
        }
    }
}
