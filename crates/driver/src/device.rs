//! A device: its memory, and the machine that times its launches.

use crate::timing::Machine;
use simt::{Memory, MemoryError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What an H200 has.
pub const MEMORY_BYTES: u64 = 141 << 30;

/// A simulated GPU. Addresses are device addresses, the same on every run.
pub struct Device {
    memory: Arc<Memory>,
    machine: Mutex<Machine>,
}

impl Device {
    /// A device with as much memory as an H200; only what is used takes memory of the host.
    pub fn new() -> Result<Device, MemoryError> {
        Device::with_memory(MEMORY_BYTES)
    }

    pub fn with_memory(bytes: u64) -> Result<Device, MemoryError> {
        Ok(Device { memory: Arc::new(Memory::new(bytes)?), machine: Mutex::default() })
    }

    /// Another machine in the same address space: each reaches what the other has.
    pub fn beside(&self) -> Device {
        Device { memory: self.memory.clone(), machine: Mutex::default() }
    }

    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Allocates zeroed bytes.
    pub fn alloc(&self, bytes: u64) -> Result<u64, MemoryError> {
        self.memory.alloc(bytes)
    }

    pub fn free(&self, address: u64) -> Result<(), MemoryError> {
        self.memory.free(address)
    }

    /// Copies to the device.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.memory.write(address, bytes)?;
        self.machine().written(address, bytes.len() as u64);
        Ok(())
    }

    /// Copies from the device.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), MemoryError> {
        self.memory.read(address, bytes)
    }

    /// Sets bytes.
    pub fn fill(&self, address: u64, count: u64, byte: u8) -> Result<(), MemoryError> {
        self.memory.fill(address, count, byte)?;
        self.machine().written(address, count);
        Ok(())
    }

    /// Copies within the device; the ranges may overlap.
    pub fn copy(&self, to: u64, from: u64, count: u64) -> Result<(), MemoryError> {
        self.memory.copy(to, from, count)?;
        self.machine().written(to, count);
        Ok(())
    }

    /// What times this device's launches. A launch that panicked leaves nothing that the next one relies on.
    pub(crate) fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
