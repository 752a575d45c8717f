//! Memory: of the device, of the host, of both, from pools, shared between processes; what is known of an address.

use crate::error::{Answer, Code};
use crate::registry;
use crate::runtime::{self, enter, stream};
use crate::types::{Extent, Handle, IpcHandle, Location, Out, PitchedPtr, PointerAttributes};

pub fn malloc(out: Out<u64>, bytes: usize) -> Answer {
    let driver = enter()?;
    match bytes {
        // No memory is no address.
        0 => out.put(0),
        _ => driver.cuMemAlloc_v2(out, bytes),
    }
}

pub fn free(address: u64) -> Answer {
    let driver = enter()?;
    if address == 0 { Ok(()) } else { driver.cuMemFree_v2(address) }
}

pub fn malloc_managed(out: Out<u64>, bytes: usize, flags: u32) -> Answer {
    let driver = enter()?;
    if bytes == 0 { out.put(0) } else { driver.cuMemAllocManaged(out, bytes, flags) }
}

/// Elements of any size up to this one can be read from the rows.
const ELEMENT: u32 = 16;

pub fn malloc_pitch(out: Out<u64>, pitch: Out<usize>, width: usize, height: usize) -> Answer {
    let driver = enter()?;
    if width == 0 || height == 0 {
        pitch.put(0)?;
        return out.put(0);
    }
    driver.cuMemAllocPitch_v2(out, pitch, width, height, ELEMENT)
}

pub fn malloc_3d(out: Out<PitchedPtr>, extent: Extent) -> Answer {
    let (mut address, mut pitch) = (0, 0);
    let rows = extent.height.checked_mul(extent.depth).ok_or(Code::INVALID_VALUE)?;
    malloc_pitch(Out::to(&mut address), Out::to(&mut pitch), extent.width, rows)?;
    out.put(PitchedPtr { address, pitch, width: extent.width, height: extent.height })
}

pub fn host_malloc(out: Out<u64>, bytes: usize) -> Answer {
    host_alloc(out, bytes, 0)
}

pub fn host_alloc(out: Out<u64>, bytes: usize, flags: u32) -> Answer {
    let driver = enter()?;
    if bytes == 0 { out.put(0) } else { driver.cuMemHostAlloc(out, bytes, flags) }
}

pub fn host_free(address: u64) -> Answer {
    let driver = enter()?;
    if address == 0 { Ok(()) } else { driver.cuMemFreeHost(address) }
}

pub fn host_register(address: u64, bytes: usize, flags: u32) -> Answer {
    enter()?.cuMemHostRegister_v2(address, bytes, flags)
}

pub fn host_unregister(address: u64) -> Answer {
    enter()?.cuMemHostUnregister(address)
}

pub fn host_pointer(out: Out<u64>, address: u64, flags: u32) -> Answer {
    enter()?.cuMemHostGetDevicePointer_v2(out, address, flags)
}

pub fn host_flags(out: Out<u32>, address: u64) -> Answer {
    enter()?.cuMemHostGetFlags(out, address)
}

pub fn info(free: Out<usize>, total: Out<usize>) -> Answer {
    enter()?.cuMemGetInfo_v2(free, total)
}

pub fn symbol_address(out: Out<u64>, symbol: usize) -> Answer {
    out.put(registry::variable(symbol)?.0)
}

pub fn symbol_size(out: Out<usize>, symbol: usize) -> Answer {
    out.put(registry::variable(symbol)?.1)
}

/// A location as CUDA 12's first forms say it: a device, or -1 for the host.
fn place(device: i32) -> Location {
    const DEVICE: u32 = 1;
    const HOST: u32 = 2;
    if device < 0 { Location { kind: HOST, id: 0 } } else { Location { kind: DEVICE, id: device } }
}

pub fn advise(address: u64, bytes: usize, advice: u32, to: Location) -> Answer {
    enter()?.cuMemAdvise_v2(address, bytes, advice, to)
}

pub fn advise_device(address: u64, bytes: usize, advice: u32, device: i32) -> Answer {
    advise(address, bytes, advice, place(device))
}

pub fn prefetch(address: u64, bytes: usize, to: Location, flags: u32, on: Handle) -> Answer {
    enter()?.cuMemPrefetchAsync_v2(address, bytes, to, flags, stream(on))
}

pub fn prefetch_device(address: u64, bytes: usize, device: i32, on: Handle) -> Answer {
    prefetch(address, bytes, place(device), 0, on)
}

pub fn range_attribute(out: Out<i32>, bytes: usize, attribute: u32, address: u64, count: usize) -> Answer {
    enter()?.cuMemRangeGetAttribute(out, bytes, attribute, address, count)
}

pub fn pointer_attributes(out: Out<PointerAttributes>, address: u64) -> Answer {
    /// Kinds of memory: not known, of the host, of a device, of both.
    const UNREGISTERED: u32 = 0;
    const MANAGED: u32 = 3;
    /// The driver's numbers of attributes.
    const MEMORY_TYPE: u32 = 2;
    const DEVICE_POINTER: u32 = 3;
    const HOST_POINTER: u32 = 4;
    const IS_MANAGED: u32 = 8;
    const DEVICE_ORDINAL: u32 = 9;
    let driver = enter()?;
    if out.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let get = |attribute: u32| {
        let mut value = 0;
        driver.cuPointerGetAttribute(Out::to(&mut value), attribute, address).ok().map(|()| value)
    };
    let Some(kind) = get(MEMORY_TYPE) else {
        let none = PointerAttributes { kind: UNREGISTERED, device: -2, ..PointerAttributes::default() };
        return out.put(PointerAttributes { host_pointer: address, ..none });
    };
    let is_managed = get(IS_MANAGED).is_some_and(|v| v as u32 != 0);
    out.put(PointerAttributes {
        kind: if is_managed { MANAGED } else { kind as u32 },
        device: get(DEVICE_ORDINAL).map_or(runtime::device()?, |v| v as i32),
        device_pointer: get(DEVICE_POINTER).unwrap_or(0),
        host_pointer: get(HOST_POINTER).unwrap_or(0),
        reserved: [0; 8],
    })
}

pub fn malloc_async(out: Out<u64>, bytes: usize, on: Handle) -> Answer {
    enter()?.cuMemAllocAsync(out, bytes, stream(on))
}

pub fn malloc_from_pool(out: Out<u64>, bytes: usize, pool: Handle, on: Handle) -> Answer {
    enter()?.cuMemAllocFromPoolAsync(out, bytes, pool, stream(on))
}

pub fn free_async(address: u64, on: Handle) -> Answer {
    enter()?.cuMemFreeAsync(address, stream(on))
}

pub fn pool_create(out: Out<Handle>, props: Handle) -> Answer {
    enter()?.cuMemPoolCreate(out, props)
}

pub fn pool_destroy(pool: Handle) -> Answer {
    enter()?.cuMemPoolDestroy(pool)
}

pub fn pool_trim(pool: Handle, keep: usize) -> Answer {
    enter()?.cuMemPoolTrimTo(pool, keep)
}

pub fn pool_attribute(pool: Handle, attribute: u32, out: Handle) -> Answer {
    enter()?.cuMemPoolGetAttribute(pool, attribute, out)
}

pub fn set_pool_attribute(pool: Handle, attribute: u32, value: Handle) -> Answer {
    enter()?.cuMemPoolSetAttribute(pool, attribute, value)
}

pub fn set_pool_access(pool: Handle, list: Handle, count: usize) -> Answer {
    enter()?.cuMemPoolSetAccess(pool, list, count)
}

pub fn pool_access(out: Out<u32>, pool: Handle, place: Handle) -> Answer {
    enter()?.cuMemPoolGetAccess(out, pool, place)
}

pub fn ipc_get(out: Out<IpcHandle>, address: u64) -> Answer {
    enter()?.cuIpcGetMemHandle(out, address)
}

pub fn ipc_open(out: Out<u64>, handle: IpcHandle, flags: u32) -> Answer {
    enter()?.cuIpcOpenMemHandle_v2(out, handle, flags)
}

pub fn ipc_close(address: u64) -> Answer {
    enter()?.cuIpcCloseMemHandle(address)
}
