//! Task metadata (TMD): a task as a record in device memory, which a command names by its address.
//!
//! | word | what |
//! | --- | --- |
//! | 0 | [`MAGIC`] |
//! | 1 to 8 | the task: launch, priority and flags, CTAs (two words), threads, registers, shared bytes, barriers |
//! | 9 to 11 | CTAs of the grid in x, y and z |
//! | 12, 13 | address of the queue of a queue task |
//! | 14, 15 | zero |

use crate::command::{TASK_WORDS, Task};
use simt::Memory;
use std::fmt;

/// What a record begins with.
pub const MAGIC: u32 = 0x3144_4d54;
/// Words of a record.
pub const WORDS: usize = 16;
/// Bytes of a record.
pub const BYTES: u64 = 4 * WORDS as u64;

/// A task as memory has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metadata {
    pub task: Task,
    pub grid: [u32; 3],
    /// Of a queue task.
    pub queue: Option<u64>,
}

/// Why there is no task at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TmdError {
    Unreadable { address: u64 },
    NoTask { address: u64 },
    Field { field: &'static str, value: u64 },
}

impl fmt::Display for TmdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TmdError::Unreadable { address } => write!(f, "task metadata at {address:#x} cannot be read"),
            TmdError::NoTask { address } => write!(f, "there is no task metadata at {address:#x}"),
            TmdError::Field { field, value } => write!(f, "task metadata cannot have {value} for {field}"),
        }
    }
}

impl std::error::Error for TmdError {}

impl Metadata {
    pub fn bytes(&self) -> [u8; BYTES as usize] {
        let mut words = [0; WORDS];
        words[0] = MAGIC;
        words[1..=TASK_WORDS].copy_from_slice(&self.task.words());
        words[9..12].copy_from_slice(&self.grid);
        let queue = self.queue.unwrap_or(0);
        (words[12], words[13]) = (queue as u32, (queue >> 32) as u32);
        let mut bytes = [0; BYTES as usize];
        for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Reads a record.
    pub fn read(memory: &Memory, address: u64) -> Result<Metadata, TmdError> {
        let mut bytes = [0; BYTES as usize];
        memory.read(address, &mut bytes).map_err(|_| TmdError::Unreadable { address })?;
        let word = |n: usize| {
            u32::from_le_bytes([bytes[4 * n], bytes[4 * n + 1], bytes[4 * n + 2], bytes[4 * n + 3]])
        };
        if word(0) != MAGIC {
            return Err(TmdError::NoTask { address });
        }
        let task = Task::from_words(&std::array::from_fn(|n| word(1 + n)))
            .map_err(|(field, value)| TmdError::Field { field, value })?;
        let queue = u64::from(word(12)) | u64::from(word(13)) << 32;
        Ok(Metadata {
            task,
            grid: [word(9), word(10), word(11)],
            queue: Some(queue).filter(|_| task.is_queue),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_the_way_through_memory() {
        let memory = Memory::new(1 << 20).expect("memory");
        let address = memory.alloc(BYTES).expect("room");
        assert_eq!(Metadata::read(&memory, address), Err(TmdError::NoTask { address }));
        assert_eq!(Metadata::read(&memory, 64), Err(TmdError::Unreadable { address: 64 }));
        let task =
            Task { launch: 3, priority: 200, at_head: true, is_queue: true, threads: 96, ..Task::default() };
        let record = Metadata { task, grid: [5, 6, 7], queue: Some(0x12_3456_7890) };
        memory.write(address, &record.bytes()).expect("written");
        assert_eq!(Metadata::read(&memory, address), Ok(record));
        memory.write(address + 20, &[0; 4]).expect("written");
        assert_eq!(Metadata::read(&memory, address), Err(TmdError::Field { field: "threads", value: 0 }));
    }
}
