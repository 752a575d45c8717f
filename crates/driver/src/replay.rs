//! Capture and replay: the calls of a program are kept, and run again from the state that they began in.
//!
//! A capture takes the place of the device: it does what it is asked to and remembers it. For more samples than one run
//! gives, [`Capture::replay`] puts memory and machine back and does the same again. That the state is the same is not
//! assumed: memory is hashed, before the first call and after every restoration.

use crate::device::Device;
use crate::launch::{Dim, LaunchError, LaunchOptions, LaunchStats};
use crate::module::Module;
use sha2::{Digest, Sha256};
use simt::MemoryError;
use simt::memory::Snapshot;
use std::fmt;

/// A call that was captured.
#[derive(Clone)]
enum Call<'a> {
    Alloc { bytes: u64, address: u64 },
    Free { address: u64 },
    Write { address: u64, bytes: Vec<u8> },
    Fill { address: u64, count: u64, byte: u8 },
    Copy { to: u64, from: u64, count: u64 },
    Launch { module: &'a Module, entry: String, dim: Dim, args: Vec<Vec<u8>> },
}

/// Why a replay did not work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReplayError {
    Memory(MemoryError),
    Launch(LaunchError),
    /// The state at the start could not be restored.
    NotRestored,
    /// An allocation got another address.
    Moved {
        before: u64,
        now: u64,
    },
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::Memory(e) => e.fmt(f),
            ReplayError::Launch(e) => e.fmt(f),
            ReplayError::NotRestored => {
                f.write_str("the memory at the start of the program could not be restored")
            }
            ReplayError::Moved { before, now } => {
                write!(f, "an allocation at {before:#x} is at {now:#x} in the replay")
            }
        }
    }
}

impl std::error::Error for ReplayError {}

impl From<MemoryError> for ReplayError {
    fn from(e: MemoryError) -> ReplayError {
        ReplayError::Memory(e)
    }
}

/// A stream of calls on a device, and the state that it began in.
pub struct Capture<'a> {
    device: &'a Device,
    calls: Vec<Call<'a>>,
    memory: Snapshot,
    hash: [u8; 32],
    /// What the host had written, for the caches of a new machine.
    written: Vec<(u64, u64)>,
}

/// A hash of all allocations: where they are, and what is in them.
fn hash(device: &Device) -> Result<[u8; 32], MemoryError> {
    let mut hasher = Sha256::new();
    let mut part = vec![0; 1 << 20];
    for b in device.memory().allocations() {
        hasher.update(b.start.to_le_bytes());
        hasher.update(b.end.to_le_bytes());
        let mut at = b.start;
        while at < b.end {
            let n = (b.end - at).min(part.len() as u64);
            device.memory().read(at, &mut part[..n as usize])?;
            hasher.update(&part[..n as usize]);
            at += n;
        }
    }
    Ok(hasher.finalize().into())
}

impl<'a> Capture<'a> {
    /// Begins a capture. Timed launches start on a new machine, so that replays can start on the same.
    pub fn begin(device: &'a Device) -> Result<Capture<'a>, MemoryError> {
        Ok(Capture {
            device,
            calls: Vec::new(),
            memory: device.memory().snapshot(),
            hash: hash(device)?,
            written: device.machine().restart(),
        })
    }

    pub fn alloc(&mut self, bytes: u64) -> Result<u64, MemoryError> {
        let address = self.device.alloc(bytes)?;
        self.calls.push(Call::Alloc { bytes, address });
        Ok(address)
    }

    pub fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        self.device.free(address)?;
        self.calls.push(Call::Free { address });
        Ok(())
    }

    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.device.write(address, bytes)?;
        self.calls.push(Call::Write { address, bytes: bytes.to_vec() });
        Ok(())
    }

    pub fn fill(&mut self, address: u64, count: u64, byte: u8) -> Result<(), MemoryError> {
        self.device.fill(address, count, byte)?;
        self.calls.push(Call::Fill { address, count, byte });
        Ok(())
    }

    pub fn copy(&mut self, to: u64, from: u64, count: u64) -> Result<(), MemoryError> {
        self.device.copy(to, from, count)?;
        self.calls.push(Call::Copy { to, from, count });
        Ok(())
    }

    pub fn launch(
        &mut self,
        module: &'a Module,
        entry: &str,
        dim: Dim,
        args: &[&[u8]],
        options: &LaunchOptions<'_>,
    ) -> Result<LaunchStats, LaunchError> {
        let stats = module.launch(self.device, entry, dim, args, options)?;
        self.note_launch(module, entry, dim, args);
        Ok(stats)
    }

    /// A launch that was done elsewhere, and that replays do too.
    pub fn note_launch(&mut self, module: &'a Module, entry: &str, dim: Dim, args: &[&[u8]]) {
        let args = args.iter().map(|a| a.to_vec()).collect();
        self.calls.push(Call::Launch { module, entry: entry.to_owned(), dim, args });
    }

    /// Does everything again from the start; what its launches did.
    pub fn replay(&self, options: &LaunchOptions<'_>) -> Result<Vec<LaunchStats>, ReplayError> {
        self.device.memory().restore(&self.memory)?;
        if hash(self.device)? != self.hash {
            return Err(ReplayError::NotRestored);
        }
        self.device.machine().go_back(&self.written);
        let mut launches = Vec::new();
        for call in &self.calls {
            match call {
                Call::Alloc { bytes, address } => {
                    let now = self.device.alloc(*bytes)?;
                    if now != *address {
                        return Err(ReplayError::Moved { before: *address, now });
                    }
                }
                Call::Free { address } => self.device.free(*address)?,
                Call::Write { address, bytes } => self.device.write(*address, bytes)?,
                Call::Fill { address, count, byte } => self.device.fill(*address, *count, *byte)?,
                Call::Copy { to, from, count } => self.device.copy(*to, *from, *count)?,
                Call::Launch { module, entry, dim, args } => {
                    let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
                    let stats = module.launch(self.device, entry, *dim, &args, options);
                    launches.push(stats.map_err(ReplayError::Launch)?);
                }
            }
        }
        Ok(launches)
    }
}
