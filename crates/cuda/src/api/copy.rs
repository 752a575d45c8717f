//! Copies and fills, waiting for them or in the order of a stream.
//!
//! A copy from or to memory of the host that the driver does not know is done when the call returns, as a driver that stages
//! such memory does it; the others wait for their turn in the stream.

use crate::context::{self, Context};
use crate::error::{Answer, Code};
use crate::handle::Handle;
use crate::memory::{Copy, Fill, Kind, Place};
use crate::operation::Operation;
use crate::state::{Driver, driver};
use crate::stream::Stream;
use crate::types::{Address, In, Memcpy2d, Memcpy3d, Side2d, Side3d};
use std::sync::Arc;

/// Copies, in the order of the default stream, and waits.
fn now(copy: Copy) -> Answer {
    let driver = driver()?;
    let context = context::current()?;
    super::memory::refuse_in_capture(driver)?;
    copy.check(driver)?;
    let stream = default_stream(driver, &context)?;
    finish(driver, &stream, &copy)
}

fn default_stream(driver: &Driver, context: &Arc<Context>) -> Answer<Arc<Stream>> {
    if context::is_per_thread() { context.thread_stream(driver) } else { Ok(Stream::null(context)) }
}

/// Waits for the stream, then copies on this thread.
fn finish(driver: &Driver, stream: &Stream, copy: &Copy) -> Answer {
    stream.synchronize()?;
    copy.run(driver, &stream.context.gpu)
}

/// Both sides stay where they are: the driver knows them.
fn is_pinned(driver: &Driver, place: &Place) -> bool {
    place.is_device || driver.allocations.find(place.address).is_some()
}

fn later(copy: Copy, stream: Handle) -> Answer {
    let driver = driver()?;
    let stream = Stream::find(driver, stream)?;
    copy.check(driver)?;
    if stream.capture().is_none() && !(is_pinned(driver, &copy.to) && is_pinned(driver, &copy.from)) {
        return finish(driver, &stream, &copy);
    }
    stream.enqueue(Operation::Copy(copy)).map(|_| ())
}

pub fn to_device(to: u64, from: Address, bytes: usize) -> Answer {
    now(Copy::plain(Place::device(to), Place::host(from as u64), bytes as u64))
}

pub fn to_host(to: Address, from: u64, bytes: usize) -> Answer {
    now(Copy::plain(Place::host(to as u64), Place::device(from), bytes as u64))
}

pub fn on_device(to: u64, from: u64, bytes: usize) -> Answer {
    let driver = driver()?;
    let context = context::current()?;
    super::memory::refuse_in_capture(driver)?;
    let copy = Copy::plain(Place::device(to), Place::device(from), bytes as u64);
    copy.check(driver)?;
    // Copies within a device do not make the host wait.
    let stream = default_stream(driver, &context)?;
    stream.enqueue(Operation::Copy(copy))?;
    if is_seen_by_host(driver, to) || is_seen_by_host(driver, from) { stream.synchronize() } else { Ok(()) }
}

pub fn any(to: u64, from: u64, bytes: usize) -> Answer {
    let driver = driver()?;
    now(Copy::plain(Place::any(driver, to), Place::any(driver, from), bytes as u64))
}

pub fn to_device_async(to: u64, from: Address, bytes: usize, stream: Handle) -> Answer {
    later(Copy::plain(Place::device(to), Place::host(from as u64), bytes as u64), stream)
}

pub fn to_host_async(to: Address, from: u64, bytes: usize, stream: Handle) -> Answer {
    later(Copy::plain(Place::host(to as u64), Place::device(from), bytes as u64), stream)
}

pub fn on_device_async(to: u64, from: u64, bytes: usize, stream: Handle) -> Answer {
    later(Copy::plain(Place::device(to), Place::device(from), bytes as u64), stream)
}

pub fn any_async(to: u64, from: u64, bytes: usize, stream: Handle) -> Answer {
    let driver = driver()?;
    later(Copy::plain(Place::any(driver, to), Place::any(driver, from), bytes as u64), stream)
}

pub fn peer(to: u64, _to_context: Handle, from: u64, _from_context: Handle, bytes: usize) -> Answer {
    on_device(to, from, bytes)
}

pub fn peer_async(
    to: u64,
    _to_context: Handle,
    from: u64,
    _from_context: Handle,
    bytes: usize,
    stream: Handle,
) -> Answer {
    on_device_async(to, from, bytes, stream)
}

/// Kinds of memory in the structures of copies.
const HOST: u32 = 1;
const DEVICE: u32 = 2;
const UNIFIED: u32 = 4;

fn place(driver: &Driver, kind: u32, host: usize, device: u64) -> Answer<Place> {
    Ok(match kind {
        HOST => Place::host(host as u64),
        DEVICE => Place::device(device),
        UNIFIED => Place::any(driver, device),
        // Arrays do not exist here.
        _ => return Err(Code::INVALID_VALUE),
    })
}

fn side(driver: &Driver, s: &Side3d, copy: &Memcpy3d) -> Answer<(Place, u64, u64)> {
    let pitch = if s.pitch == 0 { s.x + copy.width } else { s.pitch } as u64;
    let height = if s.height == 0 { s.y + copy.height } else { s.height } as u64;
    if copy.height > 1 && pitch < (s.x + copy.width) as u64 {
        return Err(Code::INVALID_VALUE);
    }
    let slice = pitch.checked_mul(height).ok_or(Code::INVALID_VALUE)?;
    let base = place(driver, s.kind, s.host, s.device)?;
    let offset = (s.z as u64).wrapping_mul(slice).wrapping_add(s.y as u64 * pitch).wrapping_add(s.x as u64);
    Ok((Place { address: base.address.wrapping_add(offset), ..base }, pitch, slice))
}

/// What a structure describes.
pub fn described(driver: &Driver, d: &Memcpy3d) -> Answer<Copy> {
    let (to, to_pitch, to_slice) = side(driver, &d.to, d)?;
    let (from, from_pitch, from_slice) = side(driver, &d.from, d)?;
    let [width, height, depth] = [d.width, d.height, d.depth].map(|n| n as u64);
    let copy = Copy { to, from, width, height, depth, to_pitch, to_slice, from_pitch, from_slice };
    copy.check(driver)?;
    Ok(copy)
}

fn flat(s: &Side2d) -> Side3d {
    Side3d {
        x: s.x,
        y: s.y,
        z: 0,
        lod: 0,
        kind: s.kind,
        host: s.host,
        device: s.device,
        array: s.array,
        context: 0,
        pitch: s.pitch,
        height: 0,
    }
}

fn described_2d(driver: &Driver, d: In<Memcpy2d>) -> Answer<Copy> {
    let d = d.get()?;
    let deep = Memcpy3d { from: flat(&d.from), to: flat(&d.to), width: d.width, height: d.height, depth: 1 };
    described(driver, &deep)
}

pub fn rows(d: In<Memcpy2d>) -> Answer {
    now(described_2d(driver()?, d)?)
}

pub fn rows_async(d: In<Memcpy2d>, stream: Handle) -> Answer {
    later(described_2d(driver()?, d)?, stream)
}

pub fn slices(d: In<Memcpy3d>) -> Answer {
    now(described(driver()?, &d.get()?)?)
}

pub fn slices_async(d: In<Memcpy3d>, stream: Handle) -> Answer {
    later(described(driver()?, &d.get()?)?, stream)
}

/// Memory that the host reads without asking the driver.
fn is_seen_by_host(driver: &Driver, address: u64) -> bool {
    let found = driver.allocations.find(address);
    found.is_some_and(|a| a.kind.is_host() || a.kind == Kind::Managed)
}

/// Fills in the order of a stream; of the default stream where there is none, and then the host waits where it sees the memory.
fn fill(fill: Fill, stream: Option<Handle>) -> Answer {
    let driver = driver()?;
    if let Some(handle) = stream {
        let stream = Stream::find(driver, handle)?;
        fill.check(driver)?;
        return stream.enqueue(Operation::Fill(fill)).map(|_| ());
    }
    super::memory::refuse_in_capture(driver)?;
    let stream = default_stream(driver, &context::current()?)?;
    fill.check(driver)?;
    stream.enqueue(Operation::Fill(fill))?;
    if is_seen_by_host(driver, fill.to) { stream.synchronize() } else { Ok(()) }
}

fn line(to: u64, value: u32, size: u64, count: usize) -> Fill {
    Fill { to, pitch: 0, value, size, width: count as u64, height: 1 }
}

pub fn fill8(to: u64, value: u8, count: usize) -> Answer {
    fill(line(to, value.into(), 1, count), None)
}

pub fn fill16(to: u64, value: u16, count: usize) -> Answer {
    fill(line(to, value.into(), 2, count), None)
}

pub fn fill32(to: u64, value: u32, count: usize) -> Answer {
    fill(line(to, value, 4, count), None)
}

pub fn fill8_async(to: u64, value: u8, count: usize, stream: Handle) -> Answer {
    fill(line(to, value.into(), 1, count), Some(stream))
}

pub fn fill16_async(to: u64, value: u16, count: usize, stream: Handle) -> Answer {
    fill(line(to, value.into(), 2, count), Some(stream))
}

pub fn fill32_async(to: u64, value: u32, count: usize, stream: Handle) -> Answer {
    fill(line(to, value, 4, count), Some(stream))
}

fn area(to: u64, pitch: usize, value: u32, size: u64, width: usize, height: usize) -> Fill {
    Fill { to, pitch: pitch as u64, value, size, width: width as u64, height: height as u64 }
}

pub fn fill2d8(to: u64, pitch: usize, value: u8, width: usize, height: usize) -> Answer {
    fill(area(to, pitch, value.into(), 1, width, height), None)
}

pub fn fill2d16(to: u64, pitch: usize, value: u16, width: usize, height: usize) -> Answer {
    fill(area(to, pitch, value.into(), 2, width, height), None)
}

pub fn fill2d32(to: u64, pitch: usize, value: u32, width: usize, height: usize) -> Answer {
    fill(area(to, pitch, value, 4, width, height), None)
}

pub fn fill2d8_async(to: u64, pitch: usize, value: u8, width: usize, height: usize, s: Handle) -> Answer {
    fill(area(to, pitch, value.into(), 1, width, height), Some(s))
}

pub fn fill2d16_async(to: u64, pitch: usize, value: u16, width: usize, height: usize, s: Handle) -> Answer {
    fill(area(to, pitch, value.into(), 2, width, height), Some(s))
}

pub fn fill2d32_async(to: u64, pitch: usize, value: u32, width: usize, height: usize, s: Handle) -> Answer {
    fill(area(to, pitch, value, 4, width, height), Some(s))
}
