//! The heap that device code allocates from: first fit, neighbours joined, so that equal programs get equal addresses.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const ALIGN: u64 = 16;

#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Heap {
    /// Free ranges: start to length.
    free: BTreeMap<u64, u64>,
    /// Allocations: start to length.
    used: BTreeMap<u64, u64>,
}

impl Heap {
    pub fn new(start: u64, bytes: u64) -> Heap {
        Heap { free: BTreeMap::from([(start, bytes)]), used: BTreeMap::new() }
    }

    pub fn exists(&self) -> bool {
        !self.free.is_empty() || !self.used.is_empty()
    }

    pub fn alloc(&mut self, bytes: u64) -> Option<u64> {
        let bytes = bytes.max(1).checked_next_multiple_of(ALIGN)?;
        let (&start, &len) = self.free.iter().find(|&(_, &len)| len >= bytes)?;
        self.free.remove(&start);
        if len > bytes {
            self.free.insert(start + bytes, len - bytes);
        }
        self.used.insert(start, bytes);
        Some(start)
    }

    pub fn free(&mut self, address: u64) {
        let Some(mut len) = self.used.remove(&address) else { return };
        let mut start = address;
        if let Some(next) = self.free.remove(&(start + len)) {
            len += next;
        }
        if let Some((&before, &n)) = self.free.range(..start).next_back()
            && before + n == start
        {
            start = before;
            len += n;
        }
        self.free.insert(start, len);
    }
}
