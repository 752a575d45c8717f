//! Who has which memory, and copies between places of any kind.
//!
//! Device addresses are host addresses wherever the host lets them: then managed, pinned and registered memory is memory
//! that both sides use at the same address. Where it does not, only memory of the device works.

use crate::error::{Answer, Code};
use crate::handle;
use crate::state::{Driver, Gpu};
use driver::memory::{Bounds, MemoryError};
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What kind of memory an allocation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Device,
    /// Of a pool, in the order of a stream.
    Pooled,
    Managed,
    /// Of the host, allocated by the driver.
    Host,
    /// Of the host, allocated by the client.
    Registered,
    /// Of another process.
    Imported,
    /// Reserved addresses with memory behind them.
    Mapped,
}

impl Kind {
    pub fn is_host(self) -> bool {
        matches!(self, Kind::Host | Kind::Registered)
    }
}

/// A piece of memory.
#[derive(Clone, Copy, Debug)]
pub struct Allocation {
    pub start: u64,
    pub bytes: u64,
    /// Where the memory that it is part of starts, as the machine knows it.
    pub base: u64,
    pub kind: Kind,
    pub device: i32,
    /// The number of its context.
    pub context: u64,
    /// A number that no other allocation of the process has.
    pub id: u64,
    pub flags: u32,
    /// Copies wait for the device (attribute `SYNC_MEMOPS`).
    pub is_synchronous: bool,
}

impl Allocation {
    pub fn end(&self) -> u64 {
        self.start + self.bytes
    }
}

#[derive(Default)]
pub struct Allocations {
    by_start: RwLock<BTreeMap<u64, Allocation>>,
}

/// Device memory is given in units of this many bytes, as an H200's driver does.
const UNIT: u64 = 512;

/// The code for an error of the machine's memory.
pub fn code(e: MemoryError) -> Code {
    match e {
        MemoryError::OutOfMemory(_) => Code::OUT_OF_MEMORY,
        MemoryError::Reserve(_) => Code::OUT_OF_MEMORY,
        MemoryError::NotAllocated(_) | MemoryError::OutOfBounds(..) => Code::INVALID_VALUE,
    }
}

impl Allocations {
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<u64, Allocation>> {
        self.by_start.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<u64, Allocation>> {
        self.by_start.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The allocation that an address lies in.
    pub fn find(&self, address: u64) -> Option<Allocation> {
        let all = self.read();
        all.range(..=address).next_back().map(|(_, a)| *a).filter(|a| address < a.end())
    }

    /// The allocation that starts here.
    pub fn at(&self, start: u64) -> Option<Allocation> {
        self.read().get(&start).copied()
    }

    pub fn insert(&self, a: Allocation) {
        self.write().insert(a.start, a);
    }

    pub fn remove(&self, start: u64) -> Option<Allocation> {
        self.write().remove(&start)
    }

    pub fn set_synchronous(&self, start: u64, on: bool) {
        if let Some(a) = self.write().get_mut(&start) {
            a.is_synchronous = on;
        }
    }

    /// Bytes of a device that are in use.
    pub fn used(&self, device: i32) -> u64 {
        let all = self.read();
        all.values().filter(|a| a.device == device && !a.kind.is_host()).map(|a| a.bytes).sum()
    }

    /// Allocates memory that the machine has.
    pub fn alloc(
        &self,
        driver: &Driver,
        gpu: &Gpu,
        context: u64,
        kind: Kind,
        bytes: u64,
        flags: u32,
    ) -> Answer<u64> {
        let on_device = kind != Kind::Host;
        if on_device && self.used(gpu.ordinal).saturating_add(bytes) > driver.config.memory_bytes {
            return Err(Code::OUT_OF_MEMORY);
        }
        if matches!(kind, Kind::Host | Kind::Managed) && !driver.space().memory().is_unified() {
            return Err(Code::NOT_SUPPORTED);
        }
        // Clients read a little past what they asked for without harm on a GPU, and some do.
        let whole = bytes.checked_next_multiple_of(UNIT).ok_or(Code::OUT_OF_MEMORY)?;
        let start = driver.space().alloc(whole).map_err(code)?;
        self.insert(Allocation {
            start,
            bytes,
            base: start,
            kind,
            device: gpu.ordinal,
            context,
            id: handle::fresh(),
            flags,
            is_synchronous: false,
        });
        Ok(start)
    }

    /// Gives memory back to where it came from. Nothing may use it any more.
    pub fn free(&self, driver: &Driver, a: &Allocation) -> Answer {
        self.remove(a.start).ok_or(Code::INVALID_VALUE)?;
        match a.kind {
            Kind::Registered => driver.space().memory().forget(a.base).map_err(code),
            Kind::Imported => crate::api::ipc::release(driver, a),
            // Only unmapping takes it away.
            Kind::Mapped => Err(Code::INVALID_VALUE),
            _ => {
                driver.exports.withdraw(a)?;
                driver.space().free(a.base).map_err(code)
            }
        }
    }

    /// Frees what a context still has.
    pub fn free_all(&self, driver: &Driver, context: u64) {
        let all: Vec<Allocation> = self.read().values().filter(|a| a.context == context).copied().collect();
        for a in all {
            // What cannot be freed was freed by its owner.
            let _ = self.free(driver, &a);
        }
    }
}

/// One side of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    pub address: u64,
    /// Known to the machine; a plain address of the host otherwise.
    pub is_device: bool,
}

impl Place {
    pub fn device(address: u64) -> Place {
        Place { address, is_device: true }
    }

    pub fn host(address: u64) -> Place {
        Place { address, is_device: false }
    }

    /// What an address is that may be of either side.
    pub fn any(driver: &Driver, address: u64) -> Place {
        Place { address, is_device: driver.space().memory().find(address).is_some() }
    }

    fn plus(self, offset: u64) -> Place {
        Place { address: self.address.wrapping_add(offset), ..self }
    }

    /// Whether so many bytes are there, as far as one can know.
    fn check(self, driver: &Driver, bytes: u64) -> Answer {
        let found = |b: Bounds| b.holds(self.address, bytes);
        // What was asked for counts, where it is known; modules have memory too.
        let asked = driver.allocations.find(self.address).map(|a| Bounds { start: a.start, end: a.end() });
        match self.is_device {
            true if asked.or_else(|| driver.space().memory().find(self.address)).is_some_and(found) => Ok(()),
            false if self.address != 0 => Ok(()),
            _ => Err(Code::INVALID_VALUE),
        }
    }
}

/// A copy of up to three dimensions: `width` bytes in each of `height` rows of `depth` slices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copy {
    pub to: Place,
    pub from: Place,
    pub width: u64,
    pub height: u64,
    pub depth: u64,
    pub to_pitch: u64,
    pub to_slice: u64,
    pub from_pitch: u64,
    pub from_slice: u64,
}

impl Copy {
    pub fn plain(to: Place, from: Place, bytes: u64) -> Copy {
        Copy {
            to,
            from,
            width: bytes,
            height: 1,
            depth: 1,
            to_pitch: bytes,
            to_slice: bytes,
            from_pitch: bytes,
            from_slice: bytes,
        }
    }

    pub fn bytes(&self) -> u64 {
        self.width.saturating_mul(self.height).saturating_mul(self.depth)
    }

    /// Bytes from the first to the last that one side has.
    fn extent(&self, pitch: u64, slice: u64) -> Answer<u64> {
        let rows = self.height.saturating_sub(1).checked_mul(pitch);
        let slices = self.depth.saturating_sub(1).checked_mul(slice);
        let all = rows.zip(slices).and_then(|(r, s)| r.checked_add(s)?.checked_add(self.width));
        all.ok_or(Code::INVALID_VALUE)
    }

    /// Whether both sides have the bytes.
    pub fn check(&self, driver: &Driver) -> Answer {
        if self.bytes() == 0 {
            return Ok(());
        }
        self.to.check(driver, self.extent(self.to_pitch, self.to_slice)?)?;
        self.from.check(driver, self.extent(self.from_pitch, self.from_slice)?)
    }

    /// Copies. The addresses of the host must be those that the client gave for it.
    pub fn run(&self, driver: &Driver, gpu: &Gpu) -> Answer {
        if self.bytes() == 0 {
            return Ok(());
        }
        let crosses = self.to.is_device != self.from.is_device;
        let packed = self.to_pitch == self.width && self.from_pitch == self.width;
        let whole = self.height * self.width;
        if packed && (self.depth == 1 || (self.to_slice == whole && self.from_slice == whole)) {
            row(gpu, self.to, self.from, self.bytes())?;
        } else {
            for z in 0..self.depth {
                for y in 0..self.height {
                    let to = self.to.plus(z * self.to_slice + y * self.to_pitch);
                    row(gpu, to, self.from.plus(z * self.from_slice + y * self.from_pitch), self.width)?;
                }
            }
        }
        let rate = u64::from(driver.config.io.bytes_per_cycle).max(1);
        let cycles = if crosses { self.bytes() / rate } else { self.bytes() / (64 * rate) };
        gpu.pass(driver.nanoseconds(u64::from(driver.config.io.latency) + cycles));
        Ok(())
    }
}

/// Copies bytes that lie behind each other.
fn row(gpu: &Gpu, to: Place, from: Place, bytes: u64) -> Answer {
    let len = usize::try_from(bytes).map_err(|_| Code::INVALID_VALUE)?;
    let done = match (to.is_device, from.is_device) {
        (true, true) => gpu.device.copy(to.address, from.address, bytes),
        (true, false) => {
            // SAFETY: the client says that these bytes of the host can be read until the copy is done.
            let bytes = unsafe { std::slice::from_raw_parts(from.address as usize as *const u8, len) };
            gpu.device.write(to.address, bytes)
        }
        (false, true) => {
            // SAFETY: the client says that these bytes of the host can be written until the copy is done.
            let bytes = unsafe { std::slice::from_raw_parts_mut(to.address as usize as *mut u8, len) };
            gpu.device.read(from.address, bytes)
        }
        (false, false) => {
            // SAFETY: the client says so of both; they may overlap.
            unsafe {
                std::ptr::copy(from.address as usize as *const u8, to.address as usize as *mut u8, len);
            }
            Ok(())
        }
    };
    done.map_err(|_| Code::ILLEGAL_ADDRESS)
}

/// Elements of 1, 2 or 4 bytes set to a value, in rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fill {
    pub to: u64,
    pub pitch: u64,
    pub value: u32,
    /// Bytes of an element.
    pub size: u64,
    /// Elements of a row.
    pub width: u64,
    pub height: u64,
}

impl Fill {
    pub fn check(&self, driver: &Driver) -> Answer {
        let row = self.width.checked_mul(self.size).ok_or(Code::INVALID_VALUE)?;
        if row == 0 || self.height == 0 {
            return Ok(());
        }
        let rows = (self.height - 1).checked_mul(self.pitch).and_then(|n| n.checked_add(row));
        let bytes = rows.ok_or(Code::INVALID_VALUE)?;
        let aligned =
            self.to.is_multiple_of(self.size) && (self.height == 1 || self.pitch.is_multiple_of(self.size));
        if aligned { Place::device(self.to).check(driver, bytes) } else { Err(Code::INVALID_VALUE) }
    }

    pub fn run(&self, driver: &Driver, gpu: &Gpu) -> Answer {
        let value = self.value.to_le_bytes();
        let pattern = &value[..self.size as usize];
        let row = self.width * self.size;
        // A byte that repeats is filled as such; other patterns are written from a row of them.
        let uniform = pattern.iter().all(|&b| b == pattern[0]);
        let chunk: Vec<u8> =
            if uniform { Vec::new() } else { pattern.repeat(self.width.min(1 << 16) as usize) };
        for y in 0..self.height {
            let start = self.to + y * self.pitch;
            let filled = if uniform {
                gpu.device.fill(start, row, pattern[0])
            } else {
                (0..row).step_by(chunk.len().max(1)).try_for_each(|at| {
                    gpu.device.write(start + at, &chunk[..(row - at).min(chunk.len() as u64) as usize])
                })
            };
            filled.map_err(|_| Code::ILLEGAL_ADDRESS)?;
        }
        let rate = 64 * u64::from(driver.config.io.bytes_per_cycle).max(1);
        gpu.pass(driver.nanoseconds(u64::from(driver.config.io.latency) + row * self.height / rate));
        Ok(())
    }
}
