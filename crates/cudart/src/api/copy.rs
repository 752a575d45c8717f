//! Copies and fills: of ranges, rows and slices, and of variables.

use crate::driver::Driver;
use crate::error::{Answer, Code};
use crate::registry;
use crate::runtime::{enter, stream};
use crate::types::driver::{Memcpy2d, Memcpy3d, Side2d, Side3d};
use crate::types::{Extent, Handle, In, Memcpy3dParms, Memcpy3dPeerParms, PitchedPtr};

/// `cudaMemcpyKind`.
mod kind {
    pub const HOST_TO_HOST: u32 = 0;
    pub const HOST_TO_DEVICE: u32 = 1;
    pub const DEVICE_TO_HOST: u32 = 2;
    pub const DEVICE_TO_DEVICE: u32 = 3;
    /// As the addresses tell.
    pub const DEFAULT: u32 = 4;
}

/// Kinds of memory as the driver's structures say them.
mod memory {
    pub const HOST: u32 = 1;
    pub const DEVICE: u32 = 2;
    pub const UNIFIED: u32 = 4;
}

/// Where a copy that the host waits for is done: nowhere in particular, or the thread's own stream.
fn blocking() -> Option<Handle> {
    let own = stream(std::ptr::null_mut());
    (!own.is_null()).then_some(own)
}

/// Does something in the thread's own stream and waits, where that is the default stream; else does it as the driver does.
fn wait_for(
    driver: &Driver,
    at_once: impl FnOnce() -> Answer,
    in_stream: impl FnOnce(Handle) -> Answer,
) -> Answer {
    match blocking() {
        None => at_once(),
        Some(own) => {
            in_stream(own)?;
            driver.cuStreamSynchronize(own)
        }
    }
}

fn start(driver: &Driver, to: u64, from: u64, bytes: usize, kind: u32, on: Handle) -> Answer {
    match kind {
        kind::HOST_TO_DEVICE => driver.cuMemcpyHtoDAsync_v2(to, from, bytes, on),
        kind::DEVICE_TO_HOST => driver.cuMemcpyDtoHAsync_v2(to, from, bytes, on),
        kind::DEVICE_TO_DEVICE => driver.cuMemcpyDtoDAsync_v2(to, from, bytes, on),
        kind::HOST_TO_HOST | kind::DEFAULT => driver.cuMemcpyAsync(to, from, bytes, on),
        _ => Err(Code::INVALID_COPY_DIRECTION),
    }
}

pub fn any(to: u64, from: u64, bytes: usize, kind: u32) -> Answer {
    let driver = enter()?;
    if kind > kind::DEFAULT {
        return Err(Code::INVALID_COPY_DIRECTION);
    }
    if bytes == 0 {
        return Ok(());
    }
    let at_once = || match kind {
        kind::HOST_TO_DEVICE => driver.cuMemcpyHtoD_v2(to, from, bytes),
        kind::DEVICE_TO_HOST => driver.cuMemcpyDtoH_v2(to, from, bytes),
        kind::DEVICE_TO_DEVICE => driver.cuMemcpyDtoD_v2(to, from, bytes),
        _ => driver.cuMemcpy(to, from, bytes),
    };
    wait_for(driver, at_once, |own| start(driver, to, from, bytes, kind, own))
}

pub fn any_async(to: u64, from: u64, bytes: usize, kind: u32, on: Handle) -> Answer {
    let driver = enter()?;
    if bytes == 0 && kind <= kind::DEFAULT {
        return Ok(());
    }
    start(driver, to, from, bytes, kind, stream(on))
}

/// All devices share one address space.
pub fn peer(to: u64, _to_device: i32, from: u64, _from_device: i32, bytes: usize) -> Answer {
    any(to, from, bytes, kind::DEVICE_TO_DEVICE)
}

pub fn peer_async(
    to: u64,
    _to_device: i32,
    from: u64,
    _from_device: i32,
    bytes: usize,
    on: Handle,
) -> Answer {
    any_async(to, from, bytes, kind::DEVICE_TO_DEVICE, on)
}

/// The part of a variable that is meant.
fn part(symbol: usize, bytes: usize, offset: usize) -> Answer<u64> {
    let (address, size) = registry::variable(symbol)?;
    match offset.checked_add(bytes) {
        Some(end) if end <= size => Ok(address + offset as u64),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// Kinds of copies that end at a variable, or begin at one.
fn check_kind(kind: u32, host: u32) -> Answer {
    let good = [host, kind::DEVICE_TO_DEVICE, kind::DEFAULT].contains(&kind);
    if good { Ok(()) } else { Err(Code::INVALID_COPY_DIRECTION) }
}

pub fn to_symbol(symbol: usize, from: u64, bytes: usize, offset: usize, kind: u32) -> Answer {
    check_kind(kind, kind::HOST_TO_DEVICE)?;
    any(part(symbol, bytes, offset)?, from, bytes, kind)
}

pub fn from_symbol(to: u64, symbol: usize, bytes: usize, offset: usize, kind: u32) -> Answer {
    check_kind(kind, kind::DEVICE_TO_HOST)?;
    any(to, part(symbol, bytes, offset)?, bytes, kind)
}

pub fn to_symbol_async(
    symbol: usize,
    from: u64,
    bytes: usize,
    offset: usize,
    kind: u32,
    on: Handle,
) -> Answer {
    check_kind(kind, kind::HOST_TO_DEVICE)?;
    any_async(part(symbol, bytes, offset)?, from, bytes, kind, on)
}

pub fn from_symbol_async(
    to: u64,
    symbol: usize,
    bytes: usize,
    offset: usize,
    kind: u32,
    on: Handle,
) -> Answer {
    check_kind(kind, kind::DEVICE_TO_HOST)?;
    any_async(to, part(symbol, bytes, offset)?, bytes, kind, on)
}

/// What the driver calls the memory of each side.
fn sides(kind: u32) -> Answer<(u32, u32)> {
    Ok(match kind {
        kind::HOST_TO_HOST => (memory::HOST, memory::HOST),
        kind::HOST_TO_DEVICE => (memory::HOST, memory::DEVICE),
        kind::DEVICE_TO_HOST => (memory::DEVICE, memory::HOST),
        kind::DEVICE_TO_DEVICE => (memory::DEVICE, memory::DEVICE),
        kind::DEFAULT => (memory::UNIFIED, memory::UNIFIED),
        _ => return Err(Code::INVALID_COPY_DIRECTION),
    })
}

/// Rows of a side; the driver reads one of the addresses.
fn side(kind: u32, address: u64, pitch: usize) -> Side2d {
    Side2d { kind, host: address as usize, device: address, pitch, ..Side2d::default() }
}

fn rows_of(
    (to, to_pitch): (u64, usize),
    (from, from_pitch): (u64, usize),
    width: usize,
    height: usize,
    kind: u32,
) -> Answer<Memcpy2d> {
    let (a, b) = sides(kind)?;
    if to_pitch < width || from_pitch < width {
        return Err(Code::INVALID_VALUE);
    }
    Ok(Memcpy2d { from: side(a, from, from_pitch), to: side(b, to, to_pitch), width, height })
}

pub fn rows(
    to: u64,
    to_pitch: usize,
    from: u64,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: u32,
) -> Answer {
    let driver = enter()?;
    let copy = rows_of((to, to_pitch), (from, from_pitch), width, height, kind)?;
    wait_for(
        driver,
        || driver.cuMemcpy2DUnaligned_v2(In::of(&copy)),
        |own| driver.cuMemcpy2DAsync_v2(In::of(&copy), own),
    )
}

pub fn rows_async(
    to: u64,
    to_pitch: usize,
    from: u64,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: u32,
    on: Handle,
) -> Answer {
    let copy = rows_of((to, to_pitch), (from, from_pitch), width, height, kind)?;
    enter()?.cuMemcpy2DAsync_v2(In::of(&copy), stream(on))
}

/// A side of a copy of slices.
fn side3(kind: u32, at: &PitchedPtr, pos: [usize; 3]) -> Side3d {
    let [x, y, z] = pos;
    let (host, device) = (at.address, at.address);
    Side3d {
        x,
        y,
        z,
        kind,
        host: host as usize,
        device,
        pitch: at.pitch,
        height: at.height,
        ..Side3d::default()
    }
}

/// A copy of slices between linear memories, in the driver's words.
pub fn slices_of(p: &Memcpy3dParms) -> Answer<Memcpy3d> {
    if !p.from_array.is_null() || !p.to_array.is_null() {
        return Err(Code::NOT_SUPPORTED);
    }
    let (a, b) = sides(p.kind)?;
    Ok(Memcpy3d {
        from: side3(a, &p.from, [p.from_pos.x, p.from_pos.y, p.from_pos.z]),
        to: side3(b, &p.to, [p.to_pos.x, p.to_pos.y, p.to_pos.z]),
        width: p.extent.width,
        height: p.extent.height,
        depth: p.extent.depth,
    })
}

fn copy_slices(copy: &Memcpy3d) -> Answer {
    let driver = enter()?;
    wait_for(
        driver,
        || driver.cuMemcpy3D_v2(In::of(copy)),
        |own| driver.cuMemcpy3DAsync_v2(In::of(copy), own),
    )
}

pub fn slices(params: In<Memcpy3dParms>) -> Answer {
    copy_slices(&slices_of(&params.get()?)?)
}

pub fn slices_async(params: In<Memcpy3dParms>, on: Handle) -> Answer {
    enter()?.cuMemcpy3DAsync_v2(In::of(&slices_of(&params.get()?)?), stream(on))
}

fn peers(params: In<Memcpy3dPeerParms>) -> Answer<Memcpy3d> {
    let p = params.get()?;
    slices_of(&Memcpy3dParms {
        from_array: p.from_array,
        from_pos: p.from_pos,
        from: p.from,
        to_array: p.to_array,
        to_pos: p.to_pos,
        to: p.to,
        extent: p.extent,
        kind: kind::DEVICE_TO_DEVICE,
    })
}

pub fn slices_peer(params: In<Memcpy3dPeerParms>) -> Answer {
    copy_slices(&peers(params)?)
}

pub fn slices_peer_async(params: In<Memcpy3dPeerParms>, on: Handle) -> Answer {
    enter()?.cuMemcpy3DAsync_v2(In::of(&peers(params)?), stream(on))
}

pub fn fill(to: u64, value: i32, bytes: usize) -> Answer {
    let driver = enter()?;
    if bytes == 0 {
        return Ok(());
    }
    let value = value as u8;
    wait_for(
        driver,
        || driver.cuMemsetD8_v2(to, value, bytes),
        |own| driver.cuMemsetD8Async(to, value, bytes, own),
    )
}

pub fn fill_async(to: u64, value: i32, bytes: usize, on: Handle) -> Answer {
    let driver = enter()?;
    if bytes == 0 { Ok(()) } else { driver.cuMemsetD8Async(to, value as u8, bytes, stream(on)) }
}

pub fn fill_rows(to: u64, pitch: usize, value: i32, width: usize, height: usize) -> Answer {
    let (driver, value) = (enter()?, value as u8);
    wait_for(
        driver,
        || driver.cuMemsetD2D8_v2(to, pitch, value, width, height),
        |own| driver.cuMemsetD2D8Async(to, pitch, value, width, height, own),
    )
}

pub fn fill_rows_async(to: u64, pitch: usize, value: i32, width: usize, height: usize, on: Handle) -> Answer {
    enter()?.cuMemsetD2D8Async(to, pitch, value as u8, width, height, stream(on))
}

/// Fills slices, one by one.
pub fn fill_slices_async(to: PitchedPtr, value: i32, extent: Extent, on: Handle) -> Answer {
    let slice = to.pitch.checked_mul(to.height).ok_or(Code::INVALID_VALUE)?;
    (0..extent.depth).try_for_each(|z| {
        let start = z.checked_mul(slice).ok_or(Code::INVALID_VALUE)? as u64;
        fill_rows_async(to.address.wrapping_add(start), to.pitch, value, extent.width, extent.height, on)
    })
}

pub fn fill_slices(to: PitchedPtr, value: i32, extent: Extent) -> Answer {
    let on = stream(std::ptr::null_mut());
    fill_slices_async(to, value, extent, on)?;
    enter()?.cuStreamSynchronize(on)
}
