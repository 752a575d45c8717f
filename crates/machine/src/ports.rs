//! What travels between blocks: memory requests and answers, CTAs and their ends.

use crate::units::{Cycle, SmId, Token};

/// What a request wants of the memory behind the SM.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RequestKind {
    Load,
    /// Answered when it is visible to all SMs.
    Store,
    /// Read-modify-write with a result.
    Atomic,
    /// Read-modify-write without: answered as a store is.
    Reduction,
    /// A line of code, for an instruction cache.
    Instruction,
    /// A line of a constant bank, for a constant cache.
    Constant,
}

/// A request for sectors of one line. An SM's requests are in the order of their cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// When it leaves the SM.
    pub at: Cycle,
    pub sm: SmId,
    pub token: Token,
    /// Address of the line's first byte.
    pub line: u64,
    /// Which sectors, a bit each.
    pub sectors: u8,
    pub kind: RequestKind,
    /// Stores: every byte of the sectors is written. Others read them first where they must.
    pub whole: bool,
    /// Atomics and reductions: operations that follow each other on one address, at most, and in all.
    pub depth: u8,
    pub operations: u8,
}

/// The answer to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Response {
    /// When it reaches the SM.
    pub at: Cycle,
    pub token: Token,
    pub line: u64,
    pub sectors: u8,
    pub kind: RequestKind,
}

/// A CTA sent to an SM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CtaStart {
    /// When its first warp may run.
    pub at: Cycle,
    pub sm: SmId,
    /// Which of the launches that run now.
    pub launch: u32,
    /// Its number in the grid.
    pub linear: u64,
}

/// A CTA ended and its resources are free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CtaEnd {
    pub at: Cycle,
    pub sm: SmId,
    pub launch: u32,
    pub linear: u64,
}
