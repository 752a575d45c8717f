//! Memory of one process in another: the pages of an allocation become those of a file that the other process opens.

use crate::context;
use crate::error::{Answer, Code};
use crate::handle;
use crate::memory::{Allocation, Kind};
use crate::pages::{self, PAGE};
use crate::state::{Driver, driver};
use crate::types::{IpcHandle, Out};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Pages that are those of a file.
struct Shared {
    /// First page and the one behind the last, as addresses.
    start: u64,
    end: u64,
    file: File,
}

/// What this process shares. Neighbours may have a page in common, so ranges are kept, not allocations.
#[derive(Default)]
pub struct Exports {
    ranges: Mutex<Vec<Shared>>,
}

impl Exports {
    fn ranges(&self) -> MutexGuard<'_, Vec<Shared>> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An allocation is about to be freed: its own pages are ordinary ones again.
    pub fn withdraw(&self, a: &Allocation) -> Answer {
        let (start, end) = (a.start.next_multiple_of(PAGE), a.end() / PAGE * PAGE);
        let mut ranges = self.ranges();
        if start < end && ranges.iter().any(|r| r.start < end && start < r.end) {
            // SAFETY: whole pages of an allocation that nothing uses any more.
            unsafe { pages::clear(start, end - start) }?;
        }
        ranges.retain(|r| !(start <= r.start && r.end <= end));
        Ok(())
    }
}

/// A piece of a handle: descriptor, first page in the file, pages.
type Piece = (u32, u32, u32);

const MAGIC: [u8; 4] = *b"WLIP";
/// Pieces that fit into a handle.
const PIECES: usize = 3;

fn encode(offset: u32, bytes: u64, pieces: &[Piece]) -> IpcHandle {
    let mut out = [0; 64];
    out[..4].copy_from_slice(&MAGIC);
    out[4..8].copy_from_slice(&std::process::id().to_le_bytes());
    out[8..12].copy_from_slice(&offset.to_le_bytes());
    out[12..20].copy_from_slice(&bytes.to_le_bytes());
    out[20] = pieces.len() as u8;
    for (n, piece) in pieces.iter().enumerate() {
        for (k, word) in [piece.0, piece.1, piece.2].into_iter().enumerate() {
            out[24 + 12 * n + 4 * k..][..4].copy_from_slice(&word.to_le_bytes());
        }
    }
    IpcHandle(out)
}

/// Process, offset in the first page, bytes, pieces.
fn decode(handle: &IpcHandle) -> Option<(u32, u64, u64, Vec<Piece>)> {
    let bytes = &handle.0;
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let count = usize::from(bytes[20]);
    if bytes[..4] != MAGIC || count == 0 || count > PIECES {
        return None;
    }
    let piece = |n: usize| (word(24 + 12 * n), word(28 + 12 * n), word(32 + 12 * n));
    let size = u64::from(word(12)) | u64::from(word(16)) << 32;
    Some((word(4), word(8).into(), size, (0..count).map(piece).collect()))
}

pub fn get(out: Out<IpcHandle>, address: u64) -> Answer {
    let driver = driver()?;
    let context = context::current()?;
    let a = driver.allocations.find(address).filter(|a| a.kind == Kind::Device);
    let a = a.ok_or(Code::INVALID_VALUE)?;
    if !driver.space().memory().is_unified() {
        return Err(Code::NOT_SUPPORTED);
    }
    context.check()?;
    // The pages may have memory of other contexts too.
    for context in driver.contexts.all().iter().filter(|c| !c.is_dead()) {
        context.gpu.queue.wait(&context.ends());
    }
    let (first, last) = (a.start / PAGE * PAGE, a.end().next_multiple_of(PAGE));
    let mut ranges = driver.exports.ranges();
    let mut pieces = Vec::new();
    let mut at = first;
    while at < last {
        if let Some(r) = ranges.iter().find(|r| r.start <= at && at < r.end) {
            let end = r.end.min(last);
            let page = |bytes: u64| (bytes / PAGE) as u32;
            pieces.push((r.file.as_raw_fd() as u32, page(at - r.start), page(end - at)));
            at = end;
            continue;
        }
        let end = ranges.iter().map(|r| r.start).filter(|&s| s > at).min().unwrap_or(last).min(last);
        let file = pages::file(end - at)?;
        // SAFETY: pages of device memory, which are mapped as long as the process lives.
        let old = unsafe { std::slice::from_raw_parts(at as usize as *const u8, (end - at) as usize) };
        file.write_all_at(old, 0).map_err(|_| Code::OUT_OF_MEMORY)?;
        // SAFETY: they hold the same bytes before and after, and no work is under way.
        unsafe { pages::put(at, end - at, &file, 0) }?;
        ranges.push(Shared { start: at, end, file });
    }
    if pieces.len() > PIECES {
        return Err(Code::NOT_SUPPORTED);
    }
    out.put(encode((a.start - first) as u32, a.bytes, &pieces))
}

pub fn open(out: Out<u64>, handle: IpcHandle, flags: u32) -> Answer {
    let driver = driver()?;
    let context = context::current()?;
    let (process, offset, bytes, pieces) = decode(&handle).ok_or(Code::INVALID_VALUE)?;
    // Only with access between peers, as there is.
    if flags != 1 || offset >= PAGE {
        return Err(Code::INVALID_VALUE);
    }
    if process == std::process::id() {
        return Err(Code::INVALID_CONTEXT);
    }
    if !driver.space().memory().is_unified() {
        return Err(Code::NOT_SUPPORTED);
    }
    let span: u64 = pieces.iter().map(|p| u64::from(p.2) * PAGE).sum();
    if offset + bytes > span {
        return Err(Code::INVALID_VALUE);
    }
    let files: Vec<File> = pieces
        .iter()
        .map(|p| {
            let path = format!("/proc/{process}/fd/{}", p.0);
            let file = File::options().read(true).write(true).open(path);
            file.map_err(|_| Code::INVALID_VALUE)
        })
        .collect::<Answer<_>>()?;
    // Addresses for whole pages.
    let base = driver.space().alloc(span + PAGE).map_err(crate::memory::code)?;
    let start = base.next_multiple_of(PAGE);
    let mut at = start;
    for (piece, file) in pieces.iter().zip(&files) {
        let len = u64::from(piece.2) * PAGE;
        // SAFETY: pages of an allocation that nobody else knows yet.
        unsafe { pages::put(at, len, file, u64::from(piece.1) * PAGE) }?;
        at += len;
    }
    driver.allocations.insert(Allocation {
        start: start + offset,
        bytes,
        base,
        kind: Kind::Imported,
        device: context.gpu.ordinal,
        context: context.id,
        id: handle::fresh(),
        flags: 0,
        is_synchronous: false,
    });
    out.put(start + offset)
}

/// Gives the addresses of another process's memory back.
pub fn release(driver: &Driver, a: &Allocation) -> Answer {
    let start = a.start / PAGE * PAGE;
    // SAFETY: whole pages that were put there when it was opened; nothing uses them any more.
    unsafe { pages::clear(start, a.end().next_multiple_of(PAGE) - start) }?;
    driver.space().free(a.base).map_err(crate::memory::code)
}

pub fn close(address: u64) -> Answer {
    let driver = driver()?;
    let context = context::current()?;
    let a = driver.allocations.at(address).filter(|a| a.kind == Kind::Imported);
    let a = a.ok_or(Code::INVALID_VALUE)?;
    context.synchronize()?;
    driver.allocations.free(driver, &a)
}
