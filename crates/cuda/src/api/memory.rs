//! Memory: of the device, of the host, managed, registered.

use crate::context;
use crate::error::{Answer, Code};
use crate::handle;
use crate::memory::{Allocation, Kind};
use crate::state::{Driver, driver};
use crate::stream::Stream;
use crate::types::{Address, Location, Out};
use driver::memory::Bounds;
use std::sync::Arc;

/// Some stream is captured: calls that do not belong to a stream and wait for the device are not possible then.
pub fn refuse_in_capture(driver: &Driver) -> Answer {
    if crate::api::graph::is_capturing(driver) { Err(Code::STREAM_CAPTURE_UNSUPPORTED) } else { Ok(()) }
}

pub fn info(free: Out<usize>, total: Out<usize>) -> Answer {
    let driver = driver()?;
    let context = context::current()?;
    let all = driver.config.memory_bytes;
    free.put(all.saturating_sub(driver.allocations.used(context.gpu.ordinal)) as usize)?;
    total.put(all as usize)
}

pub fn alloc(out: Out<u64>, bytes: usize) -> Answer {
    let driver = driver()?;
    let context = context::current()?;
    if out.is_null() || bytes == 0 {
        return Err(Code::INVALID_VALUE);
    }
    refuse_in_capture(driver)?;
    let kind = Kind::Device;
    let start = driver.allocations.alloc(driver, &context.gpu, context.id, kind, bytes as u64, 0)?;
    out.put(start)
}

/// Rows start at multiples of this, as an H200's driver has it.
const PITCH: usize = 512;

pub fn alloc_pitch(out: Out<u64>, pitch: Out<usize>, width: usize, height: usize, element: u32) -> Answer {
    if pitch.is_null() || width == 0 || height == 0 || !matches!(element, 4 | 8 | 16) {
        return Err(Code::INVALID_VALUE);
    }
    let row = width.checked_next_multiple_of(PITCH).ok_or(Code::INVALID_VALUE)?;
    alloc(out, row.checked_mul(height).ok_or(Code::OUT_OF_MEMORY)?)?;
    pitch.put(row)
}

/// Waits until nothing can use an allocation any more.
fn settle(driver: &Driver, a: &Allocation) -> Answer {
    match driver.gpu(a.device) {
        Ok(gpu) => {
            for context in driver.contexts.all().iter().filter(|c| Arc::ptr_eq(&c.gpu, gpu) && !c.is_dead()) {
                gpu.queue.wait(&context.ends());
            }
            gpu.flush();
            Ok(())
        }
        Err(code) => Err(code),
    }
}

pub fn free(address: u64) -> Answer {
    let driver = driver()?;
    let context = context::current()?;
    if address == 0 {
        return Ok(());
    }
    let a = driver.allocations.at(address).ok_or(Code::INVALID_VALUE)?;
    if a.kind.is_host() || matches!(a.kind, Kind::Imported | Kind::Mapped) {
        return Err(Code::INVALID_VALUE);
    }
    settle(driver, &a)?;
    driver.allocations.free(driver, &a)?;
    context.check()
}

pub fn address_range(start: Out<u64>, bytes: Out<usize>, address: u64) -> Answer {
    let driver = driver()?;
    context::current()?;
    let a = super::pointer::find(driver, address).ok_or(Code::NOT_FOUND)?;
    start.offer(a.start);
    bytes.offer(a.bytes as usize);
    Ok(())
}

/// Flags of host memory: portable, mapped, write-combined.
const HOST_FLAGS: u32 = 7;
const DEVICE_MAP: u32 = 2;

pub fn alloc_host(out: Out<Address>, bytes: usize) -> Answer {
    host_alloc(out, bytes, 0)
}

pub fn host_alloc(out: Out<Address>, bytes: usize, flags: u32) -> Answer {
    let driver = driver()?;
    let context = context::current()?;
    if out.is_null() || flags & !HOST_FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    if bytes == 0 {
        return out.put(0);
    }
    let start =
        driver.allocations.alloc(driver, &context.gpu, context.id, Kind::Host, bytes as u64, flags)?;
    out.put(start as usize)
}

pub fn free_host(address: Address) -> Answer {
    let driver = driver()?;
    let context = context::current()?;
    if address == 0 {
        return Ok(());
    }
    let a = driver.allocations.at(address as u64).filter(|a| a.kind == Kind::Host);
    let a = a.ok_or(Code::INVALID_VALUE)?;
    settle(driver, &a)?;
    driver.allocations.free(driver, &a)?;
    context.check()
}

/// The allocation of the host that an address lies in.
fn host_allocation(driver: &Driver, address: Address) -> Answer<Allocation> {
    let found = driver.allocations.find(address as u64).filter(|a| a.kind.is_host());
    found.ok_or(Code::INVALID_VALUE)
}

pub fn host_device_pointer(out: Out<u64>, address: Address, flags: u32) -> Answer {
    let driver = driver()?;
    context::current()?;
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    host_allocation(driver, address)?;
    out.put(address as u64)
}

pub fn host_flags(out: Out<u32>, address: Address) -> Answer {
    let driver = driver()?;
    context::current()?;
    out.put(host_allocation(driver, address)?.flags & !1 | DEVICE_MAP)
}

pub fn register(address: Address, bytes: usize, flags: u32) -> Answer {
    let driver = driver()?;
    let context = context::current()?;
    // Portable, mapped, memory of a device, read only.
    if address == 0 || bytes == 0 || flags & !0xf != 0 || address.checked_add(bytes).is_none() {
        return Err(Code::INVALID_VALUE);
    }
    let (start, end) = (address as u64, (address + bytes) as u64);
    for edge in [start, end - 1] {
        match driver.allocations.find(edge) {
            Some(a) if a.kind == Kind::Registered => return Err(Code::HOST_MEMORY_ALREADY_REGISTERED),
            Some(_) => return Err(Code::INVALID_VALUE),
            None => {}
        }
    }
    // SAFETY: the client says that the memory is there until it is unregistered.
    let shared = unsafe { driver.space().memory().share(Bounds { start, end }) };
    shared.map_err(|_| match driver.space().memory().is_unified() {
        true => Code::HOST_MEMORY_ALREADY_REGISTERED,
        false => Code::NOT_SUPPORTED,
    })?;
    driver.allocations.insert(Allocation {
        start,
        bytes: bytes as u64,
        base: start,
        kind: Kind::Registered,
        device: context.gpu.ordinal,
        context: context.id,
        id: handle::fresh(),
        flags,
        is_synchronous: false,
    });
    Ok(())
}

pub fn unregister(address: Address) -> Answer {
    let driver = driver()?;
    context::current()?;
    let a = driver.allocations.at(address as u64).ok_or(Code::HOST_MEMORY_NOT_REGISTERED)?;
    if a.kind != Kind::Registered {
        return Err(Code::INVALID_VALUE);
    }
    settle(driver, &a)?;
    driver.allocations.free(driver, &a)
}

/// Attached to all streams, or to the host.
const ATTACH: [u32; 2] = [1, 2];

pub fn alloc_managed(out: Out<u64>, bytes: usize, flags: u32) -> Answer {
    let driver = driver()?;
    let context = context::current()?;
    if out.is_null() || bytes == 0 || !ATTACH.contains(&flags) {
        return Err(Code::INVALID_VALUE);
    }
    let start =
        driver.allocations.alloc(driver, &context.gpu, context.id, Kind::Managed, bytes as u64, flags)?;
    out.put(start)
}

/// Memory is where everybody reaches it: advice is checked and changes nothing.
pub fn advise(address: u64, bytes: usize, _advice: u32, _device: i32) -> Answer {
    managed(address, bytes)
}

pub fn advise_v2(address: u64, bytes: usize, _advice: u32, _place: Location) -> Answer {
    managed(address, bytes)
}

fn managed(address: u64, bytes: usize) -> Answer {
    let driver = driver()?;
    context::current()?;
    let a = driver.allocations.find(address).ok_or(Code::INVALID_VALUE)?;
    let fits = bytes as u64 <= a.end() - address;
    if a.kind == Kind::Managed && fits { Ok(()) } else { Err(Code::INVALID_VALUE) }
}

pub fn prefetch(address: u64, bytes: usize, _device: i32, stream: handle::Handle) -> Answer {
    managed(address, bytes)?;
    Stream::find(driver()?, stream).map(|_| ())
}

pub fn prefetch_v2(
    address: u64,
    bytes: usize,
    _place: Location,
    _flags: u32,
    stream: handle::Handle,
) -> Answer {
    managed(address, bytes)?;
    Stream::find(driver()?, stream).map(|_| ())
}

/// Of the attributes of managed ranges, none was ever set.
pub fn range_attribute(out: Out<i32>, bytes: usize, attribute: u32, address: u64, count: usize) -> Answer {
    managed(address, count)?;
    if bytes < 4 {
        return Err(Code::INVALID_VALUE);
    }
    match attribute {
        1 => out.put(0),
        // Preferred and last place: none.
        2 | 4 => out.put(-2),
        3 => (0..bytes / 4).try_for_each(|n| out.put_at(n, -2)),
        _ => Err(Code::INVALID_VALUE),
    }
}
