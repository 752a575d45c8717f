//! The buffer that suspended CTAs are kept in: part of global memory that the driver hands out.

use machine::tasks::Allocate;
use std::collections::BTreeMap;

/// What allocations are multiples of: a line of the caches.
const UNIT: u64 = 128;

/// A range of global memory: first fit, neighbours joined, so that equal runs get equal addresses.
#[derive(Clone, Debug)]
pub struct StateBuffer {
    free: BTreeMap<u64, u64>,
    used: BTreeMap<u64, u64>,
    /// The most bytes that were in use at a time.
    pub most: u64,
}

impl StateBuffer {
    pub fn new(start: u64, bytes: u64) -> StateBuffer {
        let first = start.next_multiple_of(UNIT);
        let bytes = (start + bytes).saturating_sub(first) / UNIT * UNIT;
        StateBuffer { free: BTreeMap::from([(first, bytes)]), used: BTreeMap::new(), most: 0 }
    }
}

impl Allocate for StateBuffer {
    fn allocate(&mut self, bytes: u64) -> Option<u64> {
        let bytes = bytes.max(1).checked_next_multiple_of(UNIT)?;
        let (&start, &len) = self.free.iter().find(|&(_, &len)| len >= bytes)?;
        self.free.remove(&start);
        if len > bytes {
            self.free.insert(start + bytes, len - bytes);
        }
        self.used.insert(start, bytes);
        self.most = self.most.max(self.used.values().sum());
        Some(start)
    }

    fn free(&mut self, address: u64) {
        let Some(mut len) = self.used.remove(&address) else { return };
        let mut start = address;
        len += self.free.remove(&(start + len)).unwrap_or(0);
        if let Some((&before, &n)) = self.free.range(..start).next_back()
            && before + n == start
        {
            start = before;
            len += n;
        }
        self.free.insert(start, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_back_and_joined() {
        let mut buffer = StateBuffer::new(100, 1200);
        let a = buffer.allocate(100).expect("room");
        let b = buffer.allocate(300).expect("room");
        assert_eq!((a, b), (128, 256));
        assert_eq!(buffer.allocate(1024), None);
        buffer.free(a);
        buffer.free(b);
        buffer.free(b);
        assert_eq!(buffer.allocate(1024), Some(128));
        assert_eq!(buffer.most, 1024);
    }
}
