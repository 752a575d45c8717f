//! Tasks beyond a single launch: several push buffers, child tasks, queues, and CTAs that make room for others.
//!
//! A [`Batch`] is what the host wants done, by any number of push buffers. While it runs, [`Tasks`] does at every exchange
//! point what the host's driver and the front of the machine have to do with each other: task metadata is read, data that was
//! copied is put into memory, child tasks are started, places for suspended CTAs are found.

mod groups;
mod jobs;
mod kept;
mod serve;
mod starting;

pub use jobs::{Job, LaunchTimed};
pub(crate) use kept::Kept;
pub(crate) use serve::{Tasks, preferred_split, task_of};

use crate::counters::Counters;
use crate::optimizing::Optimized;
use crate::sm::preemption::{Mode, Moved};
use crate::stall::StallCycles;
use simt::memory::Bounds;
use simt::{Launch, MemoryError};
use std::sync::Arc;
use trace::profile::Detail;

/// Child tasks that may wait to run, CUDA's default.
pub const MAX_CHILDREN: u32 = 2048;

/// Finds room in the driver's buffer in global memory.
pub trait Allocate {
    /// Room for so many bytes, a multiple of 128, at a multiple of 128; `None` when the buffer is full.
    fn allocate(&mut self, bytes: u64) -> Option<u64>;
    fn free(&mut self, address: u64);
    /// Takes room that was given before a checkpoint; false where it is not free.
    fn claim(&mut self, address: u64, bytes: u64) -> bool;
    /// The part of the buffer that nobody has had yet.
    fn untouched(&self) -> Bounds;
}

/// A launch of the host.
#[derive(Clone)]
pub struct BatchLaunch {
    pub launch: Arc<Launch>,
    /// Higher runs first, and takes the place of lower.
    pub priority: u8,
    /// Goes before the tasks of its priority that wait.
    pub at_head: bool,
    /// Where its metadata lies.
    pub tmd: u64,
}

/// Data that moves in the order of a stream.
#[derive(Clone, Debug)]
pub enum Transfer {
    Write {
        address: u64,
        bytes: Vec<u8>,
    },
    Fill {
        address: u64,
        count: u64,
        byte: u8,
    },
    Copy {
        to: u64,
        from: u64,
        count: u64,
    },
    /// To the host.
    Read {
        address: u64,
        count: u64,
    },
    /// An entry for a queue.
    Push {
        queue: u64,
        entry: Vec<u8>,
    },
}

impl Transfer {
    /// Bytes that cross the link to the host, or memory.
    pub fn bytes(&self) -> u64 {
        match self {
            Transfer::Write { bytes, .. } => bytes.len() as u64,
            Transfer::Fill { count, .. } | Transfer::Copy { count, .. } | Transfer::Read { count, .. } => {
                *count
            }
            Transfer::Push { entry, .. } => entry.len() as u64,
        }
    }
}

/// What the host asks of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    Launch(usize),
    Transfer(usize),
    /// An event happens when all before it in the stream has ended.
    Record(u32),
    /// What follows waits for an event.
    Wait(u32),
}

/// A step of the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    pub stream: usize,
    /// Not before this cycle, counted from the batch's start.
    pub at: u64,
    pub what: What,
}

/// What the host wants done.
#[derive(Clone, Default)]
pub struct Batch {
    /// Priorities of the streams, each a push buffer.
    pub streams: Vec<u8>,
    pub launches: Vec<BatchLaunch>,
    pub transfers: Vec<Transfer>,
    /// In the order in which the host submits them.
    pub steps: Vec<Step>,
    pub mode: Mode,
    /// Cycles after which a CTA makes room for others of its priority.
    pub time_slice: Option<u64>,
    /// Cycles, counted from the start and ascending, at which a debugger stops the machine: all CTAs are suspended, and go on.
    pub stops: Vec<u64>,
}

/// Launches of a batch that are counted by themselves; those behind them only with all others.
pub const SEPARATE: usize = 256;

/// What is counted of one of the host's launches and of its child tasks, in the SMs. What is behind them serves all launches,
/// and is counted for all together.
#[derive(Clone, Debug)]
pub struct Separate {
    pub counters: Counters,
    /// Warp-cycles by reason, for every instruction of its program.
    pub stalls: Vec<StallCycles>,
    /// Where it was asked for.
    pub detail: Option<Box<Detail>>,
    /// What was optimized, where that was asked for.
    pub optimized: Option<Box<Optimized>>,
}

/// What became of a batch.
#[derive(Clone, Debug)]
pub struct BatchTimed {
    /// From the first command to the end of all.
    pub cycles: u64,
    pub counters: Counters,
    /// Of the first [`SEPARATE`] launches of the host. Where there is only one, that is all.
    pub separate: Vec<Separate>,
    /// Of the host's launches in their order, then of child tasks in the order of their start.
    pub launches: Vec<LaunchTimed>,
    /// What transfers to the host brought, by number.
    pub read: Vec<(usize, Vec<u8>)>,
    /// CTAs that left SMs and came back; cycles are counted from the batch's start.
    pub moves: Vec<Moved>,
    /// Cycles at which all CTAs were out, of each stop.
    pub stopped: Vec<u64>,
}

/// Does to memory what a transfer does; what came to the host.
pub fn transfer(what: &Transfer, memory: &simt::Memory) -> Result<Option<Vec<u8>>, MemoryError> {
    match what {
        Transfer::Write { address, bytes } => memory.write(*address, bytes)?,
        Transfer::Fill { address, count, byte } => memory.fill(*address, *count, *byte)?,
        Transfer::Copy { to, from, count } => memory.copy(*to, *from, *count)?,
        Transfer::Read { address, count } => {
            let mut bytes = vec![0; usize::try_from(*count).unwrap_or(usize::MAX)];
            memory.read(*address, &mut bytes)?;
            return Ok(Some(bytes));
        }
        Transfer::Push { queue, entry } => {
            let full = || MemoryError::OutOfBounds(*queue, entry.len() as u64);
            let mut queue = simt::queue::Queue::read(memory, *queue).ok_or_else(full)?;
            queue.push(memory, entry).map_err(|_| full())?;
        }
    }
    Ok(None)
}
