//! Virtual memory: addresses, memory, and what lies where are asked for one by one.

use crate::context;
use crate::error::{Answer, Code};
use crate::handle::{self, Table};
use crate::memory::{Allocation, Kind};
use crate::pages;
use crate::state::driver;
use crate::types::{AccessDesc, AllocationProp, In, Location, Out};
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sizes and addresses are multiples of this.
const GRANULE: u64 = 2 << 20;

/// Memory without an address.
pub struct Physical {
    id: u64,
    file: File,
    bytes: u64,
    device: i32,
    prop: AllocationProp,
    /// Handles and mappings.
    holders: AtomicI64,
}

#[derive(Default)]
pub struct Mappings {
    memory: Table<Physical>,
    /// Reserved addresses: start to bytes.
    reserved: Mutex<BTreeMap<u64, u64>>,
    /// What lies where: start to bytes and memory.
    mapped: Mutex<BTreeMap<u64, (u64, Arc<Physical>)>>,
}

impl Mappings {
    fn reserved(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mapped(&self) -> MutexGuard<'_, BTreeMap<u64, (u64, Arc<Physical>)>> {
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memory goes when neither a handle nor a mapping holds it.
    fn release(&self, physical: &Physical) {
        if physical.holders.fetch_sub(1, Ordering::Relaxed) == 1 {
            // The last holder takes it out; nobody else does.
            let _ = self.memory.remove(handle::handle(physical.id));
        }
    }
}

fn is_granular(n: u64) -> bool {
    n > 0 && n.is_multiple_of(GRANULE)
}

pub fn granularity(out: Out<usize>, prop: In<AllocationProp>, _option: u32) -> Answer {
    driver()?.gpu(prop.get()?.location.id)?;
    out.put(GRANULE as usize)
}

pub fn reserve(out: Out<u64>, bytes: usize, align: usize, _address: u64, flags: u64) -> Answer {
    let driver = driver()?;
    if out.is_null() || !is_granular(bytes as u64) || flags != 0 || align as u64 > GRANULE {
        return Err(Code::INVALID_VALUE);
    }
    if !driver.space().memory().is_unified() {
        return Err(Code::NOT_SUPPORTED);
    }
    let start = driver.space().alloc(bytes as u64).map_err(crate::memory::code)?;
    driver.mappings.reserved().insert(start, bytes as u64);
    out.put(start)
}

pub fn free_address(address: u64, bytes: usize) -> Answer {
    let driver = driver()?;
    let mut reserved = driver.mappings.reserved();
    let end = address.saturating_add(bytes as u64);
    if reserved.get(&address) != Some(&(bytes as u64))
        || driver.mappings.mapped().range(address..end).next().is_some()
    {
        return Err(Code::INVALID_VALUE);
    }
    reserved.remove(&address);
    driver.space().free(address).map_err(crate::memory::code)
}

pub fn create(out: Out<u64>, bytes: usize, prop: In<AllocationProp>, flags: u64) -> Answer {
    let driver = driver()?;
    let prop = prop.get()?;
    // Pinned memory of a device.
    if out.is_null() || !is_granular(bytes as u64) || flags != 0 || prop.kind != 1 || prop.location.kind != 1
    {
        return Err(Code::INVALID_VALUE);
    }
    driver.gpu(prop.location.id)?;
    insert(out, pages::file(bytes as u64)?, bytes as u64, prop)
}

fn insert(out: Out<u64>, file: File, bytes: u64, prop: AllocationProp) -> Answer {
    let driver = driver()?;
    let (id, device) = (handle::fresh(), prop.location.id);
    let physical = Physical { id, file, bytes, device, prop, holders: AtomicI64::new(1) };
    driver.mappings.memory.insert(id, Arc::new(physical));
    out.put(id)
}

fn find(memory: u64) -> Answer<Arc<Physical>> {
    driver()?.mappings.memory.find(handle::handle(memory)).ok_or(Code::INVALID_VALUE)
}

pub fn release(memory: u64) -> Answer {
    driver()?.mappings.release(&*find(memory)?);
    Ok(())
}

pub fn map(address: u64, bytes: usize, offset: usize, memory: u64, flags: u64) -> Answer {
    let driver = driver()?;
    let physical = find(memory)?;
    let (len, offset) = (bytes as u64, offset as u64);
    let end = address.saturating_add(len);
    let reserved = driver.mappings.reserved();
    let range = reserved.range(..=address).next_back().map(|(&s, &n)| (s, s + n));
    let mut mapped = driver.mappings.mapped();
    let is_free = mapped.range(..end).next_back().is_none_or(|(&s, (n, _))| s + n <= address);
    let fits = range.is_some_and(|(start, stop)| start <= address && end <= stop);
    if !is_granular(len) || !address.is_multiple_of(GRANULE) || flags != 0 || !fits || !is_free {
        return Err(Code::INVALID_VALUE);
    }
    if offset.saturating_add(len) > physical.bytes {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: reserved addresses of device memory with nothing there that work could use.
    unsafe { pages::put(address, len, &physical.file, offset) }?;
    physical.holders.fetch_add(1, Ordering::Relaxed);
    driver.allocations.insert(Allocation {
        start: address,
        bytes: len,
        base: address,
        kind: Kind::Mapped,
        device: physical.device,
        context: 0,
        id: handle::fresh(),
        flags: 0,
        is_synchronous: false,
    });
    mapped.insert(address, (len, physical));
    Ok(())
}

pub fn unmap(address: u64, bytes: usize) -> Answer {
    let driver = driver()?;
    for context in driver.contexts.all().iter().filter(|c| !c.is_dead()) {
        context.gpu.queue.wait(&context.ends());
    }
    let end = address.saturating_add(bytes as u64);
    let mut mapped = driver.mappings.mapped();
    let inside: Vec<u64> = mapped.range(address..end).map(|(&start, _)| start).collect();
    let total: u64 = inside.iter().filter_map(|s| mapped.get(s)).map(|(n, _)| *n).sum();
    // Whole mappings, without gaps.
    if inside.is_empty() || total != bytes as u64 {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: mapped device memory that no work uses: all of it was waited for.
    unsafe { pages::clear(address, bytes as u64) }?;
    for start in inside {
        if let Some((_, physical)) = mapped.remove(&start) {
            driver.mappings.release(&physical);
        }
        driver.allocations.remove(start);
    }
    Ok(())
}

/// Devices of one address space reach all that is mapped.
pub fn set_access(address: u64, bytes: usize, list: In<AccessDesc>, count: usize) -> Answer {
    let driver = driver()?;
    for access in list.list(count)? {
        driver.gpu(access.location.id)?;
    }
    let end = address.saturating_add(bytes as u64);
    let mapped = driver.mappings.mapped();
    let covers = mapped.range(..end).next_back().is_some_and(|(&s, (n, _))| s + n >= end);
    if covers && mapped.range(..=address).next_back().is_some() { Ok(()) } else { Err(Code::INVALID_VALUE) }
}

pub fn get_access(out: Out<u64>, _place: In<Location>, address: u64) -> Answer {
    let driver = driver()?;
    let is_mapped = driver.allocations.find(address).is_some_and(|a| a.kind == Kind::Mapped);
    if is_mapped { out.put(3) } else { Err(Code::INVALID_VALUE) }
}

pub fn properties(out: Out<AllocationProp>, memory: u64) -> Answer {
    out.put(find(memory)?.prop)
}

pub fn retain(out: Out<u64>, address: usize) -> Answer {
    let driver = driver()?;
    let mapped = driver.mappings.mapped();
    let found = mapped.range(..=address as u64).next_back();
    let (_, (_, physical)) =
        found.filter(|(s, (n, _))| (address as u64) < *s + n).ok_or(Code::INVALID_VALUE)?;
    physical.holders.fetch_add(1, Ordering::Relaxed);
    out.put(physical.id)
}

/// Descriptors of the system are the one kind of handle that leaves the process.
const DESCRIPTOR: u32 = 1;

pub fn export(out: Out<i32>, memory: u64, kind: u32, flags: u64) -> Answer {
    let physical = find(memory)?;
    if kind != DESCRIPTOR || flags != 0 || out.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    out.put(pages::duplicate(&physical.file)?)
}

/// The handle is a number in the place of a pointer.
pub fn import(out: Out<u64>, descriptor: usize, kind: u32) -> Answer {
    let context = context::current()?;
    if kind != DESCRIPTOR || out.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let file = pages::borrow(descriptor as i32)?;
    let bytes = file.metadata().map_err(|_| Code::INVALID_VALUE)?.len();
    if !is_granular(bytes) {
        return Err(Code::INVALID_VALUE);
    }
    let prop = AllocationProp {
        kind: 1,
        handles: DESCRIPTOR,
        location: Location { kind: 1, id: context.gpu.ordinal },
        win32: 0,
        flags: [0; 8],
    };
    insert(out, file, bytes, prop)
}
