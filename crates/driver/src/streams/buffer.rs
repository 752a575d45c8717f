//! The buffer that suspended CTAs are kept in: part of global memory that the driver hands out.

use machine::tasks::Allocate;
use simt::memory::Bounds;
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
    /// Where what nobody has had yet begins, and where the buffer ends.
    top: u64,
    end: u64,
}

impl StateBuffer {
    pub fn new(start: u64, bytes: u64) -> StateBuffer {
        let first = start.next_multiple_of(UNIT);
        let bytes = (start + bytes).saturating_sub(first) / UNIT * UNIT;
        let (free, used) = (BTreeMap::from([(first, bytes)]), BTreeMap::new());
        StateBuffer { free, used, most: 0, top: first, end: first + bytes }
    }

    fn take(&mut self, start: u64, bytes: u64) {
        self.used.insert(start, bytes);
        self.most = self.most.max(self.used.values().sum());
        self.top = self.top.max(start + bytes);
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
        self.take(start, bytes);
        Some(start)
    }

    fn claim(&mut self, address: u64, bytes: u64) -> bool {
        let Some(bytes) = bytes.max(1).checked_next_multiple_of(UNIT) else { return false };
        let Some((&start, &len)) = self.free.range(..=address).next_back() else { return false };
        let Some(end) = address.checked_add(bytes).filter(|&end| end <= start + len) else { return false };
        self.free.remove(&start);
        if address > start {
            self.free.insert(start, address - start);
        }
        if start + len > end {
            self.free.insert(end, start + len - end);
        }
        self.take(address, bytes);
        true
    }

    fn untouched(&self) -> Bounds {
        Bounds { start: self.top, end: self.end }
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

    #[test]
    fn room_that_was_given_before_is_taken_again() {
        let mut buffer = StateBuffer::new(0, 1280);
        assert!(buffer.claim(256, 300) && !buffer.claim(512, 1) && !buffer.claim(1152, 256));
        assert!(!buffer.claim(1280, 1) && buffer.claim(1152, 128) && !buffer.claim(u64::MAX - 5, 4));
        assert_eq!((buffer.allocate(256), buffer.allocate(512)), (Some(0), Some(640)));
        buffer.free(256);
        assert_eq!(buffer.allocate(384), Some(256));
        assert_eq!(buffer.untouched(), Bounds { start: 1280, end: 1280 });
    }
}
