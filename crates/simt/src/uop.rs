//! Micro-operations: instructions decoded once, with every operand resolved to rows of the warp's file.

use crate::lanes::Lanes;
use isa::Op;

/// Bytes of a row: 32 lanes of 32 bits.
pub const ROW: u32 = 128;

/// What the loop does after an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Flow {
    /// On to the next instruction.
    Next,
    /// To `Lanes::next`.
    Jump,
    /// The warp has to look at the instruction: lanes diverge, wait, end or need something from outside.
    Event,
    /// Nothing was executed: what a load would read is known only after SMs have exchanged (see [`crate::log`]).
    Later,
    /// The program did something that it must not; `Lanes::fault` says what.
    Fault,
}

/// Executes one instruction for the lanes that run.
///
/// # Safety
/// `Lanes` must be bound to a file with all the rows that the micro-operation names, and to the memories of a launch;
/// the host must have the instruction-set level that the handler was compiled for.
pub type Handler = unsafe fn(&mut Lanes, &Uop) -> Flow;

/// One instruction, ready to run. Rows are byte offsets into the warp's file.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Uop {
    pub handler: Handler,
    pub d: u32,
    pub a: u32,
    pub b: u32,
    pub c: u32,
    pub e: u32,
    /// The uniform register of an address (a row of zeros for none).
    pub u: u32,
    /// The immediate of an address or a branch target.
    pub imm: i32,
    /// Modifiers in the form that the handler wants.
    pub aux: u32,
    /// Predicates, as indices into `Lanes::preds`.
    pub guard: u8,
    pub ps: [u8; 3],
    pub pd: [u8; 2],
    pub op: Op,
    /// A convergence barrier that gives up soon.
    pub soft: bool,
    /// The cached bounds of this memory instruction.
    pub hint: u32,
}

const _: () = assert!(size_of::<Uop>() == 64);
