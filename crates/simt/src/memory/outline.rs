//! What of a memory has to be saved: where it has allocations, and which of their pages are not all zeros.

use super::{Bounds, GAP, Heap, Memory, MemoryError};
use isa::abi::GLOBAL_BASE;
use serde::{Deserialize, Serialize};

/// Bytes that are looked at together.
const PAGE: u64 = 4096;
/// Bytes that are copied at a time to be looked at.
const CHUNK: usize = 1 << 20;

/// A memory without its contents.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Outline {
    pub allocations: Vec<Bounds>,
    heap: Heap,
    /// What is not all zeros, by address.
    pub filled: Vec<Bounds>,
}

fn is_zero(bytes: &[u8]) -> bool {
    // In pieces without an early end, which the host does many bytes at a time.
    bytes.chunks(256).all(|piece| piece.iter().fold(0, |all, &x| all | x) == 0)
}

impl Outline {
    /// Bytes that are not known to be zeros.
    pub fn filled_bytes(&self) -> u64 {
        self.filled.iter().map(|b| b.end.saturating_sub(b.start)).fold(0, u64::saturating_add)
    }

    /// Whether what was read from a file can be an outline of a memory with addresses up to `end`.
    fn is_sound(&self, end: u64) -> bool {
        let mut free = GLOBAL_BASE;
        for b in &self.allocations {
            if b.start < free || b.end <= b.start || b.end > end {
                return false;
            }
            free = b.end.saturating_add(GAP);
        }
        // Both are in order, so one pass finds the allocation of each.
        let mut all = self.allocations.iter().peekable();
        let mut last = 0;
        self.filled.iter().all(|f| {
            while all.next_if(|b| b.end <= f.start).is_some() {}
            let is_next = f.start >= last && f.end > f.start;
            last = f.end;
            is_next && all.peek().is_some_and(|b| b.holds(f.start, f.end - f.start))
        })
    }
}

impl Memory {
    /// Where it has something. No launch may change it meanwhile.
    pub fn outline(&self) -> Outline {
        self.outline_but(None)
    }

    /// The same, where a part of an allocation is known to be all zeros.
    pub fn outline_but(&self, zeros: Option<Bounds>) -> Outline {
        let allocations = self.allocations();
        let mut filled: Vec<Bounds> = Vec::new();
        let mut bytes = vec![0; CHUNK];
        for b in &allocations {
            let mut at = b.start;
            while at < b.end {
                // Pages are counted from the allocation's start.
                if let Some(zeros) = zeros.filter(|z| z.holds(at, 1)) {
                    at = zeros.end.min(b.end);
                    continue;
                }
                let end = zeros.map_or(b.end, |z| if z.start > at { z.start.min(b.end) } else { b.end });
                let n = (end - at).min(CHUNK as u64) as usize;
                // An allocation that is in the table can be read.
                let _ = self.read(at, &mut bytes[..n]);
                for (k, page) in bytes[..n].chunks(PAGE as usize).enumerate() {
                    if is_zero(page) {
                        continue;
                    }
                    let start = at + k as u64 * PAGE;
                    let end = start + page.len() as u64;
                    match filled.last_mut().filter(|last| last.end == start) {
                        Some(last) => last.end = end,
                        None => filled.push(Bounds { start, end }),
                    }
                }
                at += n as u64;
            }
        }
        Outline { allocations, heap: self.heap().clone(), filled }
    }

    /// Makes its allocations those of an outline, all zeros. No launch may run meanwhile.
    pub fn adopt(&self, outline: &Outline) -> Result<(), MemoryError> {
        let total = outline.allocations.iter().map(|b| b.end.saturating_sub(b.start));
        let total = total.fold(0, u64::saturating_add);
        if total > self.limit || !outline.is_sound(GLOBAL_BASE + self.region.bytes() as u64) {
            return Err(MemoryError::OutOfMemory(total));
        }
        for b in self.allocations() {
            self.free(b.start)?;
        }
        for b in &outline.allocations {
            self.place(*b)?;
        }
        *self.heap() = outline.heap.clone();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_zero_is_named() {
        let m = Memory::new(1 << 24).expect("reserve");
        let (a, b) = (m.alloc(5 << 20).expect("a"), m.alloc(100).expect("b"));
        let p = m.device_malloc(32);
        m.write(a + 3 * PAGE + 7, &[1]).expect("written");
        m.write(a + (1 << 20) - 1, &[1, 2]).expect("written");
        m.write(b + 99, &[3]).expect("written");
        let outline = m.outline();
        let near = (1 << 20) - PAGE;
        let pages = [(a + 3 * PAGE, PAGE), (a + near, 2 * PAGE), (b, 100)];
        assert_eq!(outline.filled, pages.map(|(start, n)| Bounds { start, end: start + n }));
        let zeros = Bounds { start: a + 5 * PAGE + 256, end: a + (1 << 20) - PAGE };
        assert_eq!(m.outline_but(Some(zeros)).filled, outline.filled, "known zeros change nothing");
        let rest = m.outline_but(Some(Bounds { start: a, end: a + (5 << 20) }));
        assert_eq!(rest.filled, outline.filled[2..], "what is said to be zeros is not looked at");
        let other = Memory::new(1 << 24).expect("reserve");
        let stray = other.alloc(77).expect("another");
        other.fill(stray, 77, 9).expect("filled");
        other.adopt(&outline).expect("adopted");
        assert_eq!(other.allocations(), m.allocations());
        assert_eq!(other.outline(), Outline { filled: Vec::new(), ..outline.clone() });
        assert_ne!(other.device_malloc(32), p, "the heap knows what was allocated");
        for b in &outline.filled {
            let mut bytes = vec![0; (b.end - b.start) as usize];
            m.read(b.start, &mut bytes).expect("read");
            other.write(b.start, &bytes).expect("written");
        }
        assert_eq!(other.outline().filled, outline.filled);
    }

    #[test]
    fn impossible_outlines_are_refused() {
        let m = Memory::new(1 << 24).expect("reserve");
        let a = GLOBAL_BASE;
        let refused = |allocations: &[(u64, u64)], filled: &[(u64, u64)]| {
            let bounds =
                |list: &[(u64, u64)]| list.iter().map(|&(start, end)| Bounds { start, end }).collect();
            let outline =
                Outline { allocations: bounds(allocations), filled: bounds(filled), ..Outline::default() };
            m.adopt(&outline).is_err()
        };
        assert!(refused(&[(a - 256, a)], &[]) && refused(&[(a, a)], &[]) && refused(&[(a, u64::MAX)], &[]));
        assert!(refused(&[(a + 4096, a + 4100), (a, a + 4)], &[]), "out of order");
        assert!(refused(&[(a, a + 4)], &[(a, a + 5)]) && refused(&[(a, a + 4)], &[(a + 4, a + 5)]));
        assert!(refused(&[(a, a + 4)], &[(a + 2, a + 4), (a, a + 1)]));
        assert!(!refused(&[(a, a + 4)], &[(a, a + 1), (a + 2, a + 4)]));
    }
}
