//! The circular queue of a queue task: a record in device memory that host, kernels and machine share.
//!
//! | offset | bytes | what |
//! | --- | --- | --- |
//! | 0 | 4 | [`MAGIC`] |
//! | 4 | 4 | bytes of an entry |
//! | 8 | 8 | entries that there is room for |
//! | 16 | 8 | address of the first entry's place |
//! | 24 | 8 | entries that were appended since the beginning |
//! | 32 | 8 | entries that are done, with all before them |
//!
//! CTA number n of the task works on entry n, which is at place n modulo the number of places.

use crate::memory::{Memory, MemoryError};

/// What a queue's record begins with.
pub const MAGIC: u32 = 0x3151_4c57;
/// Bytes of the record.
pub const RECORD: u64 = 64;

/// There is no room for another entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// A queue, as its record says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queue {
    pub address: u64,
    pub entry_bytes: u32,
    pub capacity: u64,
    pub entries: u64,
    pub put: u64,
    pub done: u64,
}

impl Queue {
    /// Makes a queue in memory that was allocated for it: its record, and behind it the places.
    pub fn create(
        memory: &Memory,
        address: u64,
        entry_bytes: u32,
        capacity: u64,
    ) -> Result<Queue, MemoryError> {
        let queue = Queue { address, entry_bytes, capacity, entries: address + RECORD, put: 0, done: 0 };
        let mut record = Vec::new();
        record.extend(MAGIC.to_le_bytes());
        record.extend(entry_bytes.to_le_bytes());
        for word in [capacity, queue.entries, 0, 0] {
            record.extend(word.to_le_bytes());
        }
        memory.write(address, &record)?;
        Ok(queue)
    }

    /// Bytes that a queue takes.
    pub fn bytes(entry_bytes: u32, capacity: u64) -> u64 {
        RECORD + u64::from(entry_bytes).saturating_mul(capacity)
    }

    /// The queue at an address, if one is there.
    pub fn read(memory: &Memory, address: u64) -> Option<Queue> {
        let mut record = [0; 40];
        memory.read(address, &mut record).ok()?;
        let word = |n: usize| u32::from_le_bytes([record[n], record[n + 1], record[n + 2], record[n + 3]]);
        let long = |n: usize| u64::from(word(n)) | u64::from(word(n + 4)) << 32;
        let queue = Queue {
            address,
            entry_bytes: word(4),
            capacity: long(8),
            entries: long(16),
            put: long(24),
            done: long(32),
        };
        (word(0) == MAGIC && queue.capacity > 0 && queue.done <= queue.put).then_some(queue)
    }

    /// Appends an entry.
    pub fn push(&mut self, memory: &Memory, entry: &[u8]) -> Result<(), Full> {
        if self.put - self.done >= self.capacity || entry.len() != self.entry_bytes as usize {
            return Err(Full);
        }
        let place = self.entries + self.put % self.capacity * u64::from(self.entry_bytes);
        self.put += 1;
        let put = self.put.to_le_bytes();
        memory.write(place, entry).and_then(|()| memory.write(self.address + 24, &put)).map_err(|_| Full)
    }

    /// Entries before this one are done: their places are free.
    pub fn set_done(&mut self, memory: &Memory, done: u64) -> Result<(), MemoryError> {
        self.done = done;
        memory.write(self.address + 32, &done.to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_never_too_soon() {
        let memory = Memory::new(1 << 20).expect("memory");
        let address = memory.alloc(Queue::bytes(4, 3)).expect("room");
        assert_eq!(Queue::read(&memory, address), None);
        Queue::create(&memory, address, 4, 3).expect("made");
        let mut queue = Queue::read(&memory, address).expect("a queue");
        for n in 0..3u32 {
            assert_eq!(queue.push(&memory, &n.to_le_bytes()), Ok(()));
        }
        assert_eq!(queue.push(&memory, &[0; 4]), Err(Full));
        queue.set_done(&memory, 2).expect("written");
        let mut queue = Queue::read(&memory, address).expect("still one");
        assert_eq!((queue.put, queue.done), (3, 2));
        assert_eq!(queue.push(&memory, &7u32.to_le_bytes()), Ok(()));
        let mut places = [0; 12];
        memory.read(queue.entries, &mut places).expect("read");
        assert_eq!(places, [7, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(queue.push(&memory, &[0; 8]), Err(Full));
    }
}
