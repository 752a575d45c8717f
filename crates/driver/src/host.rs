//! A host with several GPUs, alike or different, that work side by side.
//!
//! Each GPU has memory of its own and a machine of its own configuration. What is asked of one is asked of its [`Device`]; what
//! several do at once runs in threads of the host, each simulated machine counting its own cycles.

use crate::device::Device;
use crate::launch::{LaunchError, LaunchOptions};
use crate::streams::{Preempting, Streams, Synchronized};
use crate::timing::Timing;
use machine::Config;
use simt::MemoryError;

/// Bytes that are copied at a time from one GPU to another.
const CHUNK: u64 = 1 << 20;

/// A GPU of a host.
pub struct Gpu {
    pub device: Device,
    pub config: Config,
}

/// A host and its GPUs.
#[derive(Default)]
pub struct Host {
    gpus: Vec<Gpu>,
}

impl Host {
    pub fn new() -> Host {
        Host::default()
    }

    /// Puts a GPU in; its number.
    pub fn add(&mut self, config: Config) -> Result<usize, MemoryError> {
        self.gpus.push(Gpu { device: Device::new()?, config });
        Ok(self.gpus.len() - 1)
    }

    pub fn gpus(&self) -> &[Gpu] {
        &self.gpus
    }

    pub fn gpu(&self, number: usize) -> Option<&Gpu> {
        self.gpus.get(number)
    }

    /// Copies from the memory of one GPU to that of another.
    pub fn copy(&self, to: (usize, u64), from: (usize, u64), count: u64) -> Result<(), MemoryError> {
        let gpu = |n: usize, address: u64| self.gpu(n).ok_or(MemoryError::NotAllocated(address));
        let (target, source) = (gpu(to.0, to.1)?, gpu(from.0, from.1)?);
        let mut bytes = vec![0; CHUNK.min(count) as usize];
        let mut at = 0;
        while at < count {
            let n = CHUNK.min(count - at) as usize;
            source.device.read(from.1 + at, &mut bytes[..n])?;
            target.device.write(to.1 + at, &bytes[..n])?;
            at += n as u64;
        }
        Ok(())
    }

    /// Runs what was asked of streams of several GPUs, all at once, each timed by its own machine. `work` names the GPU of each.
    pub fn synchronize(
        &self,
        work: Vec<(usize, Streams<'_>)>,
        options: &LaunchOptions<'_>,
        preempting: &Preempting,
    ) -> Vec<Result<Synchronized, LaunchError>> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = work
                .into_iter()
                .map(|(n, mut streams)| {
                    scope.spawn(move || {
                        let no_gpu = || LaunchError::Engine(format!("the host has no GPU {n}"));
                        let gpu = self.gpu(n).ok_or_else(no_gpu)?;
                        let timing = options.timing.map(|t| Timing { config: &gpu.config, ..t });
                        streams.synchronize(&LaunchOptions { timing, ..*options }, preempting)
                    })
                })
                .collect();
            let joined = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|_| Err(LaunchError::Engine("a machine broke down".into())))
            };
            threads.into_iter().map(joined).collect()
        })
    }
}
