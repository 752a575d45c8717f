//! The library's state: devices, settings of the environment, and the tables behind the handles.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `WARPLOOM_CONFIG` | configuration of the devices, by name or file; `h200` where it is not set |
//! | `WARPLOOM_TIMED` | `1`: launches run on the timed machine; any other text: those whose kernel's name holds it |
//! | `WARPLOOM_OPTIMIZE` | `off`, or a level and behind a comma who optimizes: code of timed launches is optimized while it runs |
//! | `WARPLOOM_PROFILE` | a folder: every timed launch leaves its profile there |
//! | `WARPLOOM_DEVICES` | devices that clients see, 1 to 16; 1 where it is not set |
//! | `WARPLOOM_THREADS` | host threads that a launch may use; all where it is not set |
//! | `WARPLOOM_LOG` | `off`, `error` (where it is not set), `warn`, `info` or `trace`: what is told on standard error |
//!
//! They are read once, by `cuInit`.

use crate::context::{Context, Primary};
use crate::error::{Answer, Code};
use crate::handle::Table;
use crate::log::{self, Level};
use crate::memory::Allocations;
use crate::program::{Function, Kernel, Library, Linker, Program};
use crate::queue::Queue;
use crate::stream::{Event, Stream};
use driver::machine::optimizing::Options;
use driver::{Config, Device};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The version of CUDA whose driver this is.
pub const VERSION: i32 = 13000;

/// Which launches are timed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Timed {
    None,
    All,
    /// Those whose kernel's name holds this.
    Named(String),
}

impl Timed {
    pub fn holds(&self, kernel: &str) -> bool {
        match self {
            Timed::None => false,
            Timed::All => true,
            Timed::Named(part) => kernel.contains(part.as_str()),
        }
    }
}

/// A device: a machine, and the queues of its work.
pub struct Gpu {
    pub ordinal: i32,
    pub device: Device,
    pub queue: Queue,
    pub(crate) primary: Mutex<Primary>,
    /// What kernels printed and nobody has seen yet.
    output: Mutex<Vec<u8>>,
    /// Simulated time, in nanoseconds since the driver started.
    clock: AtomicU64,
}

impl Gpu {
    pub(crate) fn primary(&self) -> MutexGuard<'_, Primary> {
        self.primary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }

    /// Lets simulated time pass.
    pub fn pass(&self, nanoseconds: u64) {
        self.clock.fetch_add(nanoseconds.max(1), Ordering::Relaxed);
    }

    pub fn print(&self, text: &[u8]) {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(text);
    }

    /// Shows what kernels printed, as a driver does when the host waits for the device.
    pub fn flush(&self) {
        let text = std::mem::take(&mut *self.output.lock().unwrap_or_else(PoisonError::into_inner));
        if !text.is_empty() {
            crate::api::misc::show(&text);
        }
    }
}

/// Everything there is.
pub struct Driver {
    pub config: Config,
    pub timed: Timed,
    /// How code of timed launches is optimized while it runs.
    pub optimize: Option<Options>,
    /// Where profiles of timed launches go.
    pub profiles: Option<std::path::PathBuf>,
    /// Host threads of a launch.
    pub threads: usize,
    pub gpus: Vec<Arc<Gpu>>,
    pub allocations: Allocations,
    pub contexts: Table<Context>,
    pub streams: Table<Stream>,
    pub events: Table<Event>,
    pub modules: Table<Program>,
    pub functions: Table<Function>,
    pub libraries: Table<Library>,
    pub kernels: Table<Kernel>,
    pub linkers: Table<Linker>,
    pub graphs: crate::api::graph::Tables,
    pub pools: crate::api::pool::Pools,
    pub exports: crate::api::ipc::Exports,
    pub mappings: crate::api::vmm::Mappings,
}

static DRIVER: OnceLock<Result<Driver, Code>> = OnceLock::new();
/// Set in the child of a fork: its parent's devices are not its own.
static FORKED: AtomicBool = AtomicBool::new(false);

extern "C" fn in_child() {
    FORKED.store(true, Ordering::Relaxed);
}

/// This process came from another that had started the driver.
pub fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

fn start() -> Result<Driver, Code> {
    let refuse = |why: String| {
        log::write(Level::Error, &|| why.clone());
        Code::NO_DEVICE
    };
    let name = variable("WARPLOOM_CONFIG").unwrap_or_else(|| "h200".into());
    let config = driver::config::load(&name).map_err(|e| refuse(format!("WARPLOOM_CONFIG: {e}")))?;
    let number = |name: &str, default: usize, most: usize| match variable(name) {
        None => Ok(default),
        Some(text) => text
            .parse()
            .ok()
            .filter(|n| (1..=most).contains(n))
            .ok_or_else(|| refuse(format!("{name} is `{text}`: a number from 1 to {most} is needed"))),
    };
    let devices = number("WARPLOOM_DEVICES", 1, 16)?;
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = number("WARPLOOM_THREADS", all, 1024)?;
    let timed = match variable("WARPLOOM_TIMED").as_deref() {
        None | Some("0") => Timed::None,
        Some("1") => Timed::All,
        Some(part) => Timed::Named(part.into()),
    };
    let optimize = variable("WARPLOOM_OPTIMIZE").map_or(Ok(None), |text| Options::read(&text));
    let optimize = optimize.map_err(|e| refuse(format!("WARPLOOM_OPTIMIZE: {e}")))?;
    let bytes = config.memory_bytes.saturating_mul(devices as u64);
    let first = Device::with_memory(bytes).map_err(|e| refuse(e.to_string()))?;
    let mut machines: Vec<Device> = (1..devices).map(|_| first.beside()).collect();
    machines.insert(0, first);
    let gpus = machines.into_iter().zip(0..).map(|(device, ordinal)| {
        Arc::new(Gpu {
            ordinal,
            device,
            queue: Queue::default(),
            primary: Mutex::default(),
            output: Mutex::default(),
            clock: AtomicU64::new(0),
        })
    });
    crate::api::misc::at_fork(in_child);
    Ok(Driver {
        config,
        timed,
        optimize,
        profiles: variable("WARPLOOM_PROFILE").map(Into::into),
        threads,
        gpus: gpus.collect(),
        allocations: Allocations::default(),
        contexts: Table::default(),
        streams: Table::default(),
        events: Table::default(),
        modules: Table::default(),
        functions: Table::default(),
        libraries: Table::default(),
        kernels: Table::default(),
        linkers: Table::default(),
        graphs: crate::api::graph::Tables::default(),
        pools: crate::api::pool::Pools::default(),
        exports: crate::api::ipc::Exports::default(),
        mappings: crate::api::vmm::Mappings::default(),
    })
}

/// Starts the driver, once.
pub fn init() -> Answer {
    match DRIVER.get_or_init(start) {
        Ok(_) => Ok(()),
        Err(code) => Err(*code),
    }
}

/// The driver, once it was started.
pub fn driver() -> Answer<&'static Driver> {
    match DRIVER.get() {
        Some(Ok(driver)) => Ok(driver),
        _ => Err(Code::NOT_INITIALIZED),
    }
}

impl Driver {
    pub fn gpu(&self, ordinal: i32) -> Answer<&Arc<Gpu>> {
        usize::try_from(ordinal).ok().and_then(|n| self.gpus.get(n)).ok_or(Code::INVALID_DEVICE)
    }

    /// The memory that all devices are in.
    pub fn space(&self) -> &Device {
        &self.gpus[0].device
    }

    /// Nanoseconds of so many cycles.
    pub fn nanoseconds(&self, cycles: u64) -> u64 {
        (u128::from(cycles) * 1000 / u128::from(self.config.clock_mhz.max(1))) as u64
    }
}
