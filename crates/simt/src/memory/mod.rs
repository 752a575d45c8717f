//! Device memory: one reserved address range, a table of live allocations, and the heap of device code.
//!
//! # Concurrency
//! Device accesses of several host threads go through raw pointers into the region, as device threads do: a program
//! that races gets some interleaving of whole aligned accesses on every host that we support. No Rust reference to
//! device memory exists while a launch runs, so the compiler assumes nothing about it. Atomics are host atomics.
//! Allocations must not be freed while a launch that uses them runs; that is the driver's business, and a mistake
//! reads zeros at worst, since freed pages stay mapped.

mod freed;
mod heap;
mod outline;
mod region;
mod snapshot;
mod stream;

pub use freed::keep_freed_memory;
pub use heap::Heap;
pub use outline::Outline;
pub use snapshot::Snapshot;

use isa::abi::{GLOBAL_BASE, GLOBAL_END};
use region::Region;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Allocations start at multiples of this.
const ALIGN: u64 = 256;
/// At least this many bytes between two allocations belong to neither, so that small overruns fault.
const GAP: u64 = 256;
/// Large allocations start at multiples of a huge page.
const LARGE: u64 = 2 << 20;
/// Bytes of the heap that device code allocates from, as CUDA has it by default.
pub const HEAP_BYTES: u64 = 8 << 20;

/// The addresses of an allocation: start and end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Bounds {
    pub start: u64,
    pub end: u64,
}

impl Bounds {
    #[inline(always)]
    pub fn holds(&self, address: u64, len: u64) -> bool {
        address >= self.start && address < self.end && len <= self.end - address
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemoryError {
    /// Bytes that were asked for.
    OutOfMemory(u64),
    /// No allocation starts here.
    NotAllocated(u64),
    /// Address and length of an access that is not inside one allocation.
    OutOfBounds(u64, u64),
    /// The host refuses to reserve addresses.
    Reserve(String),
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            MemoryError::OutOfMemory(n) => write!(f, "out of device memory: {n} bytes asked for"),
            MemoryError::NotAllocated(a) => write!(f, "no allocation starts at {a:#x}"),
            MemoryError::OutOfBounds(a, n) => write!(f, "{n} bytes at {a:#x} are not inside one allocation"),
            MemoryError::Reserve(why) => write!(f, "cannot reserve device addresses: {why}"),
        }
    }
}

impl std::error::Error for MemoryError {}

/// The memory of a device.
pub struct Memory {
    region: Region,
    /// Sorted by address.
    table: RwLock<Vec<Bounds>>,
    heap: Mutex<Heap>,
    /// Freed bytes that have not been cleared: who allocates them next does that, or has no need to.
    dirty: Mutex<Option<Bounds>>,
    /// Bytes that the heap will have.
    heap_bytes: AtomicU64,
    /// Bytes that may be allocated.
    limit: u64,
}

impl Memory {
    /// Memory of at most `limit` bytes.
    pub fn new(limit: u64) -> Result<Memory, MemoryError> {
        let reserve = (GLOBAL_END - GLOBAL_BASE).min(limit.saturating_mul(2).saturating_add(1 << 30));
        let region = Region::reserve(reserve as usize, GLOBAL_BASE as usize)
            .map_err(|e| MemoryError::Reserve(e.to_string()))?;
        Ok(Memory {
            region,
            table: RwLock::new(Vec::new()),
            heap: Mutex::new(Heap::default()),
            dirty: Mutex::new(None),
            heap_bytes: AtomicU64::new(HEAP_BYTES),
            limit,
        })
    }

    fn read_table(&self) -> RwLockReadGuard<'_, Vec<Bounds>> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_table(&self) -> RwLockWriteGuard<'_, Vec<Bounds>> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Host address of device address zero, for handlers.
    pub(crate) fn origin(&self) -> *mut u8 {
        self.region.start().wrapping_sub(GLOBAL_BASE as usize)
    }

    fn host(&self, address: u64) -> *mut u8 {
        self.region.start().wrapping_add((address - GLOBAL_BASE) as usize)
    }

    /// Allocates zeroed bytes: the lowest place that fits, so that equal programs get equal addresses.
    pub fn alloc(&self, bytes: u64) -> Result<u64, MemoryError> {
        let out = || MemoryError::OutOfMemory(bytes);
        let bytes = bytes.max(1);
        let align = if bytes >= LARGE { LARGE } else { ALIGN };
        let mut table = self.write_table();
        let end_of_region = GLOBAL_BASE + self.region.bytes() as u64;
        let own = table.iter().filter(|b| b.start < end_of_region);
        if own.map(|b| b.end - b.start).sum::<u64>().saturating_add(bytes) > self.limit {
            return Err(out());
        }
        let mut free = GLOBAL_BASE;
        let mut place = table.partition_point(|b| b.start < end_of_region);
        for (n, b) in table[..place].iter().enumerate() {
            if free.next_multiple_of(align).saturating_add(bytes).saturating_add(GAP) <= b.start {
                place = n;
                break;
            }
            free = b.end + GAP;
        }
        let start = free.next_multiple_of(align);
        let end = start.checked_add(bytes).filter(|&e| e <= end_of_region).ok_or_else(out)?;
        self.region.commit((start - GLOBAL_BASE) as usize, bytes as usize).map_err(|_| out())?;
        self.clean(Bounds { start, end });
        table.insert(place, Bounds { start, end });
        Ok(start)
    }

    /// Allocates zeroed bytes at the highest place, so that what others allocate later gets the addresses that it would
    /// have got without them.
    pub fn alloc_top(&self, bytes: u64) -> Result<u64, MemoryError> {
        let b = self.place_top(bytes)?;
        self.clean(b);
        Ok(b.start)
    }

    /// The same where it does not matter what the bytes hold, for buffers that come and go: pages that [`Memory::free_dirty`] left
    /// need not come from the system anew.
    pub fn alloc_top_dirty(&self, bytes: u64) -> Result<u64, MemoryError> {
        let b = self.place_top(bytes)?;
        // What one of the same size left is taken as it is; of others' nothing stays.
        if self.dirty().take_if(|dirty| *dirty == b).is_none() {
            self.clean(b);
        }
        Ok(b.start)
    }

    fn place_top(&self, bytes: u64) -> Result<Bounds, MemoryError> {
        let out = || MemoryError::OutOfMemory(bytes);
        let mut table = self.write_table();
        let end_of_region = GLOBAL_BASE + self.region.bytes() as u64;
        let place = table.partition_point(|b| b.start < end_of_region);
        let last = table[..place].last().map_or(GLOBAL_BASE, |b| b.end + GAP);
        let start = end_of_region.checked_sub(bytes.max(1)).ok_or_else(out)? / LARGE * LARGE;
        if start < last || start < GLOBAL_BASE {
            return Err(out());
        }
        self.region.commit((start - GLOBAL_BASE) as usize, bytes.max(1) as usize).map_err(|_| out())?;
        let b = Bounds { start, end: start + bytes.max(1) };
        table.insert(place, b);
        Ok(b)
    }

    /// Frees the allocation that starts here. See the module's word on concurrency.
    pub fn free(&self, address: u64) -> Result<(), MemoryError> {
        let b = self.take_out(address)?;
        self.clear(b);
        Ok(())
    }

    /// The same, without clearing the bytes before somebody needs that.
    pub fn free_dirty(&self, address: u64) -> Result<(), MemoryError> {
        let b = self.take_out(address)?;
        // One such place is enough.
        if let Some(before) = self.dirty().replace(b) {
            self.clear(before);
        }
        Ok(())
    }

    fn dirty(&self) -> MutexGuard<'_, Option<Bounds>> {
        self.dirty.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that become those of an allocation are zeros.
    fn clean(&self, b: Bounds) {
        let is_among = |dirty: &mut Bounds| dirty.start < b.end && b.start < dirty.end;
        let dirty = self.dirty().take_if(is_among);
        if let Some(dirty) = dirty {
            self.clear(dirty);
        }
    }

    fn clear(&self, b: Bounds) {
        self.region.clear((b.start - GLOBAL_BASE) as usize, (b.end - b.start) as usize);
    }

    /// Takes an allocation out of the table.
    fn take_out(&self, address: u64) -> Result<Bounds, MemoryError> {
        let mut table = self.write_table();
        let n = table
            .binary_search_by_key(&address, |b| b.start)
            .map_err(|_| MemoryError::NotAllocated(address))?;
        if address >= GLOBAL_BASE + self.region.bytes() as u64 {
            return Err(MemoryError::NotAllocated(address));
        }
        Ok(table.remove(n))
    }

    /// Device addresses are host addresses, so that host and device can share memory. So it is for the first memory of a
    /// process, unless something else has the addresses.
    pub fn is_unified(&self) -> bool {
        self.region.start() as u64 == GLOBAL_BASE
    }

    /// Lets the device use memory of the host at its own address.
    ///
    /// # Safety
    /// The bytes must be readable and writable until [`Memory::forget`] takes them back.
    pub unsafe fn share(&self, b: Bounds) -> Result<(), MemoryError> {
        let len = b.end.wrapping_sub(b.start);
        let end_of_region = GLOBAL_BASE + self.region.bytes() as u64;
        let is_outside = b.start < b.end && (b.start >= end_of_region || b.end <= GLOBAL_BASE);
        let mut table = self.write_table();
        let n = table.partition_point(|other| other.start < b.start);
        let is_free =
            (n == 0 || table[n - 1].end <= b.start) && table.get(n).is_none_or(|next| next.start >= b.end);
        // Below are the windows of other memory spaces.
        if !self.is_unified() || !is_outside || !is_free || b.start < GLOBAL_BASE {
            return Err(MemoryError::OutOfBounds(b.start, len));
        }
        table.insert(n, b);
        Ok(())
    }

    /// Takes memory of the host back that starts here.
    pub fn forget(&self, start: u64) -> Result<(), MemoryError> {
        let mut table = self.write_table();
        let n = table.binary_search_by_key(&start, |b| b.start);
        let n = n.map_err(|_| MemoryError::NotAllocated(start))?;
        if start < GLOBAL_BASE + self.region.bytes() as u64 {
            return Err(MemoryError::NotAllocated(start));
        }
        table.remove(n);
        Ok(())
    }

    /// The allocation that an address lies in.
    pub fn find(&self, address: u64) -> Option<Bounds> {
        let table = self.read_table();
        let n = table.partition_point(|b| b.start <= address);
        table[..n].last().copied().filter(|b| address < b.end)
    }

    /// All allocations, by address.
    pub fn allocations(&self) -> Vec<Bounds> {
        self.read_table().clone()
    }

    fn check(&self, address: u64, len: u64) -> Result<(), MemoryError> {
        let inside = len == 0 || self.find(address).is_some_and(|b| b.holds(address, len));
        if inside { Ok(()) } else { Err(MemoryError::OutOfBounds(address, len)) }
    }

    /// Host address of bytes that lie in one allocation, for who keeps them to itself.
    pub(crate) fn host_bytes(&self, address: u64, len: u64) -> Result<*mut u8, MemoryError> {
        self.check(address, len)?;
        Ok(self.host(address))
    }

    /// Copies to the host.
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), MemoryError> {
        self.check(address, to.len() as u64)?;
        if !to.is_empty() {
            // SAFETY: the bytes lie in one live allocation, which is committed.
            unsafe { std::ptr::copy_nonoverlapping(self.host(address), to.as_mut_ptr(), to.len()) };
        }
        Ok(())
    }

    /// Copies to the device.
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        self.check(address, from.len() as u64)?;
        if !from.is_empty() {
            // SAFETY: the bytes lie in one live allocation, which is committed.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), self.host(address), from.len()) };
        }
        Ok(())
    }

    /// The same for much that the host will not read soon: its caches keep what they have.
    pub fn write_past_caches(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        self.check(address, from.len() as u64)?;
        // SAFETY: the bytes lie in one live allocation, which is committed.
        unsafe { stream::copy(from, self.host(address)) };
        Ok(())
    }

    pub fn fill(&self, address: u64, len: u64, byte: u8) -> Result<(), MemoryError> {
        self.check(address, len)?;
        if len != 0 {
            // SAFETY: the bytes lie in one live allocation, which is committed.
            unsafe { std::ptr::write_bytes(self.host(address), byte, len as usize) };
        }
        Ok(())
    }

    /// Copies within the device; the ranges may overlap.
    pub fn copy(&self, to: u64, from: u64, len: u64) -> Result<(), MemoryError> {
        self.check(to, len)?;
        self.check(from, len)?;
        if len != 0 {
            // SAFETY: both ranges lie in live allocations, which are committed.
            unsafe { std::ptr::copy(self.host(from), self.host(to), len as usize) };
        }
        Ok(())
    }

    /// The bytes up to the first zero, at most `max`; `None` where they are not readable.
    pub(crate) fn string(&self, address: u64, max: usize) -> Option<Vec<u8>> {
        let b = self.find(address)?;
        let len = ((b.end - address) as usize).min(max);
        let mut bytes = vec![0; len];
        self.read(address, &mut bytes).ok()?;
        let end = bytes.iter().position(|&c| c == 0)?;
        bytes.truncate(end);
        Some(bytes)
    }

    fn heap(&self) -> MutexGuard<'_, Heap> {
        self.heap.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets how large the heap of device code will be; false once there is one.
    pub fn set_heap_bytes(&self, bytes: u64) -> bool {
        let is_open = !self.heap().exists();
        if is_open {
            self.heap_bytes.store(bytes, Ordering::Relaxed);
        }
        is_open
    }

    /// Device `malloc`; zero when the heap is used up.
    pub fn device_malloc(&self, bytes: u64) -> u64 {
        let mut heap = self.heap();
        if !heap.exists() {
            let bytes = self.heap_bytes.load(Ordering::Relaxed);
            match self.alloc(bytes) {
                Ok(start) => *heap = Heap::new(start, bytes),
                Err(_) => return 0,
            }
        }
        heap.alloc(bytes).unwrap_or(0)
    }

    /// Device `free`; null and what is no allocation are ignored.
    pub fn device_free(&self, address: u64) {
        self.heap().free(address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Memory {
        Memory::new(1 << 24).expect("reserve")
    }

    #[test]
    fn allocations_are_aligned_apart_and_reused() {
        let m = memory();
        let a = m.alloc(100).expect("a");
        let b = m.alloc(100).expect("b");
        let c = m.alloc(1).expect("c");
        assert!(a.is_multiple_of(ALIGN) && b.is_multiple_of(ALIGN) && b >= a + 100 + GAP && c > b);
        m.fill(b, 100, 7).expect("fill");
        m.free(b).expect("free");
        assert_eq!(m.free(b), Err(MemoryError::NotAllocated(b)));
        assert_eq!(m.find(b), None);
        let again = m.alloc(50).expect("again");
        assert_eq!(again, b);
        let mut bytes = [1; 50];
        m.read(again, &mut bytes).expect("read");
        assert_eq!(bytes, [0; 50]);
    }

    #[test]
    fn what_was_left_is_cleared_before_it_is_seen() {
        let m = memory();
        let byte = |address: u64| {
            let mut byte = [0];
            m.read(address, &mut byte).expect("is there");
            byte[0]
        };
        let leave = || {
            let top = m.alloc_top_dirty(1 << 13).expect("the top");
            m.fill(top + 1, 1 << 12, 7).expect("fill");
            m.free_dirty(top).expect("free");
            top
        };
        // It stays for those who do not care, and for nobody else.
        let top = leave();
        assert_eq!(m.read(top, &mut [0]), Err(MemoryError::OutOfBounds(top, 1)));
        assert_eq!((m.alloc_top_dirty(1 << 13).expect("again"), byte(top + 1)), (top, 7));
        m.free(top).expect("free");
        leave();
        assert_eq!((m.alloc_top(1 << 12).expect("again"), byte(top + 1)), (top, 0));
        m.free(top).expect("free");
        leave();
        m.place(Bounds { start: top - 256, end: top + 256 }).expect("there");
        assert_eq!(byte(top + 1), 0);
        m.free(top - 256).expect("free");
        assert_eq!((m.alloc_top_dirty(1 << 13).expect("again"), byte(top + 300)), (top, 0));
        // What is in use is not cleared with what lies beside it.
        m.free(top).expect("free");
        let large = m.alloc_top_dirty(1 << 22).expect("more");
        m.free_dirty(large).expect("free");
        let small = m.alloc_top_dirty(1 << 13).expect("less");
        assert!(small > large);
        m.fill(small, 9, 7).expect("fill");
        m.place(Bounds { start: large, end: large + 256 }).expect("there");
        assert_eq!(byte(small + 8), 7);
    }

    #[test]
    fn accesses_stay_inside_one_allocation() {
        let m = memory();
        let a = m.alloc(10).expect("a");
        assert!(m.write(a + 2, &[1, 2, 3]).is_ok());
        assert_eq!(m.write(a + 8, &[1, 2, 3]), Err(MemoryError::OutOfBounds(a + 8, 3)));
        assert!(m.read(a - 1, &mut [0]).is_err() && m.read(0, &mut [0]).is_err());
        m.copy(a + 3, a + 2, 3).expect("overlapping");
        let mut bytes = [0; 10];
        m.read(a, &mut bytes).expect("read");
        assert_eq!(bytes, [0, 0, 1, 1, 2, 3, 0, 0, 0, 0]);
        assert!(m.read(u64::MAX, &mut [0; 4]).is_err());
    }

    #[test]
    fn host_memory_is_shared_at_its_own_address() {
        let m = memory();
        let mut host = vec![1u8; 64];
        let b = Bounds { start: host.as_ptr() as u64, end: host.as_ptr() as u64 + 64 };
        // SAFETY: the vector outlives its being shared.
        let shared = unsafe { m.share(b) };
        if !m.is_unified() {
            assert!(shared.is_err());
            return;
        }
        assert_eq!(shared, Ok(()));
        // SAFETY: refused.
        assert!(unsafe { m.share(Bounds { start: b.start + 8, end: b.end + 8 }) }.is_err());
        m.fill(b.start + 4, 4, 9).expect("fill");
        let a = m.alloc(16).expect("a place of its own");
        assert!(a < b.start && m.free(b.start).is_err() && m.forget(a).is_err());
        assert_eq!((m.forget(b.start), m.find(b.start)), (Ok(()), None));
        assert_eq!(host.drain(3..9).collect::<Vec<_>>(), [1, 9, 9, 9, 9, 1]);
    }

    #[test]
    fn limit_holds() {
        let m = memory();
        assert_eq!(m.alloc(1 << 25), Err(MemoryError::OutOfMemory(1 << 25)));
        assert!(m.alloc(u64::MAX).is_err());
    }

    #[test]
    fn device_heap_runs_out_and_recovers() {
        let m = memory();
        let a = m.device_malloc(6 << 20);
        assert!(a != 0 && m.device_malloc(6 << 20) == 0);
        m.device_free(a);
        m.device_free(0);
        assert_eq!(m.device_malloc(6 << 20), a);
        assert!(!m.set_heap_bytes(1 << 20), "there is a heap already");
        let small = memory();
        assert!(small.set_heap_bytes(1 << 20));
        assert!(small.device_malloc(2 << 20) == 0 && small.device_malloc(1 << 19) != 0);
    }
}
