//! Why a launch ends early.

use isa::Pc;
use std::fmt;

/// A memory space as an access names it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Space {
    Global,
    Shared,
    Local,
    Generic,
    Const,
}

/// One lane's access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    pub space: Space,
    pub address: u64,
    pub size: u32,
    pub lane: u32,
    pub is_store: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The access is not inside one allocation, or beyond its window.
    OutOfBounds,
    /// The address is no multiple of the access's size.
    Misaligned,
    /// An operation that this machine does not have.
    IllegalInstruction,
    /// A jump to where there is no code; the place.
    IllegalJump(u32),
    /// A barrier number or thread count that does not exist.
    IllegalBarrier,
    /// `trap`.
    Trap,
    /// `__assertfail`.
    Assert { message: String, file: String, line: u32, function: String },
    /// Every thread of the CTA waits for another.
    Deadlock,
    /// Child tasks nest deeper than this.
    TooDeep(u32),
    /// More child tasks than this wait to run.
    TooManyChildren(u32),
    /// An entry too many for the queue at this address, which holds so many.
    QueueOverflow(u64, u64),
    /// No queue is at this address.
    NoQueue(u64),
}

/// A fault of the simulated program, and whose it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    pub kind: FaultKind,
    pub pc: Pc,
    pub cta: [u32; 3],
    pub thread: [u32; 3],
    pub access: Option<Access>,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Local => "local",
            Space::Generic => "generic",
            Space::Const => "constant",
        })
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            FaultKind::OutOfBounds => write!(f, "access outside any allocation"),
            FaultKind::Misaligned => write!(f, "misaligned access"),
            FaultKind::IllegalInstruction => write!(f, "illegal instruction"),
            FaultKind::IllegalJump(pc) => write!(f, "jump to {pc:#x}, where there is no code"),
            FaultKind::IllegalBarrier => write!(f, "no such barrier or thread count"),
            FaultKind::Trap => write!(f, "trap"),
            FaultKind::Assert { message, file, line, function } => {
                write!(f, "{file}:{line}: {function}: assertion `{message}` failed")
            }
            FaultKind::Deadlock => write!(f, "every thread of the CTA waits"),
            FaultKind::TooDeep(n) => write!(f, "child tasks nest deeper than {n} levels"),
            FaultKind::TooManyChildren(n) => write!(f, "more than {n} child tasks wait to run"),
            FaultKind::QueueOverflow(at, n) => {
                write!(f, "the queue at {at:#x} is full: its {n} entries are not done yet")
            }
            FaultKind::NoQueue(at) => write!(f, "there is no queue at {at:#x}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(a) = self.access {
            let what = if a.is_store { "store to" } else { "load from" };
            write!(f, ": {what} {} address {:#x}, {} bytes", a.space, a.address, a.size)?;
        }
        let ([cx, cy, cz], [tx, ty, tz]) = (self.cta, self.thread);
        write!(f, " at {:#x} in CTA ({cx}, {cy}, {cz}), thread ({tx}, {ty}, {tz})", self.pc.0)
    }
}

impl std::error::Error for Fault {}
