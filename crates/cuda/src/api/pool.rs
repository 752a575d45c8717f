//! Memory in the order of streams, and the pools that it comes from.

use crate::context;
use crate::error::{Answer, Code};
use crate::handle::{self, Handle, Table};
use crate::memory::{Allocation, Kind};
use crate::operation::Operation;
use crate::state::{Driver, Gpu, driver};
use crate::stream::Stream;
use crate::types::{AccessDesc, In, Location, Out, PoolProps};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A pool. What is freed goes back to the device at once, so it never holds more than is in use.
pub struct Pool {
    id: u64,
    device: i32,
    /// Attributes that clients set, by number.
    attributes: Mutex<BTreeMap<u32, u64>>,
    most_used: AtomicU64,
}

impl Pool {
    fn attributes(&self) -> MutexGuard<'_, BTreeMap<u32, u64>> {
        self.attributes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
pub struct Pools {
    all: Table<Pool>,
    /// The pool that each device starts with, and the one that allocations come from now.
    defaults: OnceLock<Vec<Arc<Pool>>>,
    current: Mutex<BTreeMap<i32, u64>>,
    /// The pool of each allocation.
    owners: Mutex<BTreeMap<u64, u64>>,
}

impl Pools {
    fn defaults(&self, driver: &Driver) -> &[Arc<Pool>] {
        self.defaults.get_or_init(|| {
            let pools = driver.gpus.iter().map(|gpu| Pools::create(gpu.ordinal));
            let pools: Vec<Arc<Pool>> = pools.collect();
            for pool in &pools {
                self.all.insert(pool.id, pool.clone());
            }
            pools
        })
    }

    fn create(device: i32) -> Arc<Pool> {
        Arc::new(Pool {
            id: handle::fresh(),
            device,
            attributes: Mutex::default(),
            most_used: AtomicU64::new(0),
        })
    }

    fn current(&self, driver: &Driver, gpu: &Gpu) -> Answer<Arc<Pool>> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let chosen = current.get(&gpu.ordinal).and_then(|&id| self.all.find(handle::handle(id)));
        let default = || self.defaults(driver).get(gpu.ordinal as usize).cloned();
        chosen.or_else(default).ok_or(Code::INVALID_DEVICE)
    }

    fn owners(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the pool that an allocation came from, 0 for none.
    pub fn of(&self, a: &Allocation) -> u64 {
        self.owners().get(&a.start).copied().unwrap_or(0)
    }

    fn used(&self, driver: &Driver, pool: &Pool) -> u64 {
        let owners = self.owners();
        let starts = owners.iter().filter(|(_, id)| **id == pool.id).map(|(start, _)| *start);
        starts.filter_map(|start| driver.allocations.at(start)).map(|a| a.bytes).sum()
    }
}

fn allocate(out: Out<u64>, bytes: usize, pool: &Pool, stream: &Stream) -> Answer {
    let driver = driver()?;
    if out.is_null() || bytes == 0 {
        return Err(Code::INVALID_VALUE);
    }
    // The address is known at once; whoever uses it before its turn in the stream does what a client must not do.
    let gpu = driver.gpu(pool.device)?;
    let start = driver.allocations.alloc(driver, gpu, stream.context.id, Kind::Pooled, bytes as u64, 0)?;
    driver.pools.owners().insert(start, pool.id);
    pool.most_used.fetch_max(driver.pools.used(driver, pool), Ordering::Relaxed);
    if stream.capture().is_some() {
        stream.enqueue(Operation::Nothing)?;
    }
    out.put(start)
}

pub fn alloc(out: Out<u64>, bytes: usize, stream: Handle) -> Answer {
    let driver = driver()?;
    let stream = Stream::find(driver, stream)?;
    allocate(out, bytes, &*driver.pools.current(driver, &stream.context.gpu)?, &stream)
}

pub fn alloc_from(out: Out<u64>, bytes: usize, pool: Handle, stream: Handle) -> Answer {
    let driver = driver()?;
    let stream = Stream::find(driver, stream)?;
    allocate(out, bytes, &*driver.pools.all.get(pool)?, &stream)
}

pub fn free(address: u64, stream: Handle) -> Answer {
    let driver = driver()?;
    let stream = Stream::find(driver, stream)?;
    if address == 0 {
        return Ok(());
    }
    let a = driver.allocations.at(address).ok_or(Code::INVALID_VALUE)?;
    if !matches!(a.kind, Kind::Pooled | Kind::Device) {
        return Err(Code::INVALID_VALUE);
    }
    if stream.capture().is_some() {
        // The graph may run again: its memory stays as long as the context.
        return stream.enqueue(Operation::Nothing).map(|_| ());
    }
    driver.allocations.remove(address).ok_or(Code::INVALID_VALUE)?;
    driver.pools.owners().remove(&address);
    stream.enqueue(Operation::Free(a)).map(|_| ())
}

pub fn default(out: Out<Handle>, device: i32) -> Answer {
    let driver = driver()?;
    driver.gpu(device)?;
    out.put(handle::handle(driver.pools.defaults(driver)[device as usize].id))
}

pub fn current(out: Out<Handle>, device: i32) -> Answer {
    let driver = driver()?;
    let gpu = driver.gpu(device)?;
    out.put(handle::handle(driver.pools.current(driver, gpu)?.id))
}

pub fn set_current(device: i32, pool: Handle) -> Answer {
    let driver = driver()?;
    driver.gpu(device)?;
    let pool = driver.pools.all.get(pool)?;
    if pool.device != device {
        return Err(Code::INVALID_VALUE);
    }
    driver.pools.current.lock().unwrap_or_else(PoisonError::into_inner).insert(device, pool.id);
    Ok(())
}

pub fn create(out: Out<Handle>, props: In<PoolProps>) -> Answer {
    let driver = driver()?;
    let props = props.get()?;
    // Pinned memory of a device that no other process gets.
    if props.allocation != 1 || props.location.kind != 1 || out.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    if props.handles != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    driver.gpu(props.location.id)?;
    let pool = Pools::create(props.location.id);
    out.put(driver.pools.all.insert(pool.id, pool))
}

pub fn destroy(pool: Handle) -> Answer {
    let driver = driver()?;
    let found = driver.pools.all.get(pool)?;
    if driver.pools.defaults(driver).iter().any(|d| d.id == found.id) {
        return Err(Code::INVALID_VALUE);
    }
    driver.pools.all.remove(pool).map(|_| ())
}

pub fn trim(pool: Handle, _keep: usize) -> Answer {
    driver()?.pools.all.get(pool).map(|_| ())
}

/// Numbers of attributes: 1 to 3 how memory is used again, 4 what is kept, 5 to 8 what there is and was.
pub fn get_attribute(pool: Handle, attribute: u32, out: Out<u32>) -> Answer {
    let driver = driver()?;
    let pool = driver.pools.all.get(pool)?;
    let set = pool.attributes().get(&attribute).copied();
    let value = match attribute {
        1..=3 => return out.put(set.unwrap_or(1) as u32),
        4 => set.unwrap_or(0),
        5 | 7 => driver.pools.used(driver, &pool),
        6 | 8 => pool.most_used.load(Ordering::Relaxed),
        _ => return Err(Code::INVALID_VALUE),
    };
    out.put_at(0, value as u32)?;
    out.put_at(1, (value >> 32) as u32)
}

pub fn set_attribute(pool: Handle, attribute: u32, value: In<u32>) -> Answer {
    let driver = driver()?;
    let pool = driver.pools.all.get(pool)?;
    match attribute {
        1..=3 => pool.attributes().insert(attribute, value.get()?.into()),
        4 => {
            let words = (value.at(0)?, value.at(1)?);
            pool.attributes().insert(4, u64::from(words.0) | u64::from(words.1) << 32)
        }
        6 | 8 if value.get()? == 0 => {
            pool.most_used.store(driver.pools.used(driver, &pool), Ordering::Relaxed);
            None
        }
        _ => return Err(Code::INVALID_VALUE),
    };
    Ok(())
}

/// Devices of one address space reach each other's memory at any time.
pub fn set_access(pool: Handle, _list: In<AccessDesc>, _count: usize) -> Answer {
    context::current()?;
    driver()?.pools.all.get(pool).map(|_| ())
}

pub fn get_access(out: Out<u32>, pool: Handle, _place: In<Location>) -> Answer {
    driver()?.pools.all.get(pool)?;
    out.put(3)
}
