//! The state of a memory, to go back to.

use super::{Bounds, Heap, Memory, MemoryError};
use isa::abi::GLOBAL_BASE;

/// Everything that a memory held at some time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    allocations: Vec<(Bounds, Vec<u8>)>,
    heap: Heap,
}

impl Memory {
    /// What it holds now. No launch may run meanwhile.
    pub fn snapshot(&self) -> Snapshot {
        let allocations = self.allocations().into_iter().map(|b| {
            let mut bytes = vec![0; (b.end - b.start) as usize];
            // An allocation that is in the table can be read.
            let _ = self.read(b.start, &mut bytes);
            (b, bytes)
        });
        Snapshot { allocations: allocations.collect(), heap: self.heap().clone() }
    }

    /// Makes it hold what it held then, at the same addresses. No launch may run meanwhile.
    pub fn restore(&self, snapshot: &Snapshot) -> Result<(), MemoryError> {
        let is_kept = |b: &Bounds| snapshot.allocations.iter().any(|(kept, _)| kept == b);
        for b in self.allocations().into_iter().filter(|b| !is_kept(b)) {
            self.free(b.start)?;
        }
        for (b, bytes) in &snapshot.allocations {
            self.place(*b)?;
            self.write(b.start, bytes)?;
        }
        *self.heap() = snapshot.heap.clone();
        Ok(())
    }

    /// An allocation at given addresses, unless it is there.
    pub(super) fn place(&self, b: Bounds) -> Result<(), MemoryError> {
        let mut table = self.write_table();
        let n = table.partition_point(|other| other.start < b.start);
        if table.get(n) == Some(&b) {
            return Ok(());
        }
        let bytes = (b.end - b.start) as usize;
        self.region
            .commit((b.start - GLOBAL_BASE) as usize, bytes)
            .map_err(|_| MemoryError::OutOfMemory(bytes as u64))?;
        self.clean(b);
        table.insert(n, b);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_goes_back() {
        let m = Memory::new(1 << 24).expect("reserve");
        let (a, b) = (m.alloc(100).expect("a"), m.alloc(50).expect("b"));
        m.fill(a, 100, 1).expect("fill");
        let p = m.device_malloc(32);
        let then = m.snapshot();
        m.fill(a, 100, 2).expect("fill");
        m.free(b).expect("free");
        let c = m.alloc(4 << 20).expect("c");
        m.device_free(p);
        m.restore(&then).expect("restored");
        let mut bytes = [0; 100];
        m.read(a, &mut bytes).expect("read");
        assert_eq!(bytes, [1; 100]);
        assert!(m.find(b).is_some() && m.find(c).is_none());
        assert_ne!(m.device_malloc(32), p, "the heap knows what was allocated");
        assert_eq!(m.alloc(4 << 20), Ok(c), "free places are the same again");
    }

    #[test]
    fn the_top_is_out_of_the_way() {
        let m = Memory::new(1 << 24).expect("reserve");
        let a = m.alloc(100).expect("a");
        let top = m.alloc_top(1 << 20).expect("top");
        let b = m.alloc(100).expect("b");
        m.free(top).expect("free");
        m.free(b).expect("free");
        assert_eq!((m.alloc(100), top > b, b > a), (Ok(b), true, true));
    }
}
