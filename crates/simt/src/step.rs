//! One instruction at a time, with its effects: how a timed machine drives the engine.

use crate::fault::{Fault, Space};
use crate::ops::memory;
use crate::uop::Uop;
use crate::warp::{Env, Warp};
use isa::field::{AtomType, Width};
use isa::{Effects, Inst, Op, Pc};

/// What an instruction did, beyond registers.
#[derive(Clone, PartialEq, Debug)]
pub enum Effect {
    /// Registers and predicates only.
    Alu,
    /// Lanes of `mask` touched memory.
    Memory {
        space: Space,
        /// Bytes a lane.
        size: u32,
        is_store: bool,
        is_atomic: bool,
        mask: u32,
        addresses: Box<[u64; 32]>,
    },
    /// Lanes of `taken` jumped.
    Branch {
        taken: u32,
    },
    /// Lanes came to a place where they wait for others of the warp; none of them runs now if `waits`.
    Converge {
        waits: bool,
    },
    /// Lanes came to a CTA barrier.
    Barrier,
    /// These lanes ended.
    Exit {
        lanes: u32,
    },
    Fence,
    /// No split of the warp can run: it waits for other warps.
    Blocked,
    /// All lanes have ended.
    Done,
    Fault(Box<Fault>),
}

/// An executed instruction.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    pub pc: Pc,
    /// Lanes that executed it: active, and with a true guard.
    pub mask: u32,
    pub effect: Effect,
}

impl Warp {
    /// Executes the next instruction of the split that runs.
    pub fn step(&mut self, code: &[Inst], env: &mut Env) -> Step {
        self.bind(env);
        if self.lanes.active == 0 && !self.schedule(env) {
            let effect = if self.is_done() { Effect::Done } else { Effect::Blocked };
            return Step { pc: Pc(self.pc), mask: 0, effect };
        }
        let pc = self.pc;
        let u = env.launch.kernel.uops[pc as usize];
        let mask = self.lanes.mask(&u);
        let active = self.lanes.active;
        let step = |effect| Step { pc: Pc(pc), mask, effect };
        let Some(inst) = code.get(pc as usize) else {
            // Past the end of the code: the engine's own guard faults.
            return match self.execute(env) {
                Ok(()) => step(Effect::Alu),
                Err(fault) => step(Effect::Fault(fault)),
            };
        };
        // Before the instruction runs: it may overwrite its own address.
        let touched = self.touched(inst, &u, mask);
        if let Err(fault) = self.execute(env) {
            return step(Effect::Fault(fault));
        }
        let effects = inst.op.row().effects;
        step(match inst.op {
            Op::Exit => Effect::Exit { lanes: mask },
            Op::Bar => Effect::Barrier,
            _ if touched.is_some() => touched.unwrap_or(Effect::Alu),
            _ if effects.has(Effects::JUMPS) => Effect::Branch { taken: mask },
            _ if effects.has(Effects::LANES) => {
                Effect::Converge { waits: mask != 0 && self.lanes.active & active == 0 }
            }
            _ if effects.has(Effects::FENCE) => Effect::Fence,
            _ => Effect::Alu,
        })
    }

    fn touched(&self, inst: &Inst, u: &Uop, mask: u32) -> Option<Effect> {
        let (space, is_atomic) = match inst.op {
            Op::Ldg | Op::Stg => (memory::GLOBAL, false),
            Op::Lds | Op::Sts => (memory::SHARED, false),
            Op::Ldl | Op::Stl => (memory::LOCAL, false),
            Op::Ld | Op::St => (memory::GENERIC, false),
            Op::Atomg | Op::Redg => (memory::GLOBAL, true),
            Op::Atoms => (memory::SHARED, true),
            Op::Atom | Op::Red => (memory::GENERIC, true),
            _ => return None,
        };
        let size = if is_atomic {
            match inst.get::<AtomType>() {
                AtomType::U64 | AtomType::S64 | AtomType::F64 => 8,
                AtomType::B128 => 16,
                AtomType::F16 | AtomType::Bf16 | AtomType::U16 => 2,
                _ => 4,
            }
        } else {
            memory::bytes(inst.get::<Width>() as u32)
        };
        // SAFETY: the lanes are bound, and the rows are the instruction's own.
        let addresses =
            std::array::from_fn(|lane| unsafe { memory::address(&self.lanes, u, space, lane as u32) });
        Some(Effect::Memory {
            space: memory::space(space),
            size,
            is_store: inst.op.row().effects.has(Effects::WRITES),
            is_atomic,
            mask,
            addresses: Box::new(addresses),
        })
    }
}
