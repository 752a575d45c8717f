//! Memory, modules, launches: the Rust API of the machine.
//!
//! ```no_run
//! use driver::{CompileOptions, Device, Dim, LaunchOptions, Module, Source};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::new()?;
//! let text = Source::new("scale.ptx", std::fs::read("scale.ptx")?);
//! let module = Module::load(&device, driver::compile(&text, &CompileOptions::default())?)?;
//! let data = device.alloc(4096)?;
//! let dim = Dim { grid: [4, 1, 1], block: [256, 1, 1], shared_bytes: 0 };
//! module.launch(&device, "scale", dim, &[&data.to_le_bytes(), &1024u32.to_le_bytes()], &LaunchOptions::default())?;
//! # Ok(())
//! # }
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | [`compile`] | a program's bytes to an image |
//! | [`config`] | configurations of the machine by name or from files |
//! | [`device`], [`module`], [`launch`] | memory, loaded programs, launches and how they end |
//! | [`timing`] | launches on the timed machine |
//! | [`streams`] | streams, events, queues: several launches at once |
//! | [`host`] | several GPUs side by side |
//! | [`limits`] | what can be launched |
//! | [`launch_file`], [`run`] | launch files and running them |
//! | [`chart`] | charts as SVG and PNG |
//! | [`schedulers`] | a launch file under several schedulers |
//! | [`element`], [`init`], [`npy`], [`picture`], [`digest`] | element types, buffer contents, and results as files and summaries |
//! | [`checkpoint`] | a run's state in a file, to go on from |
//! | [`replay`] | the calls of a program, run again from the state that they began in |
//! | [`profile`] | a timed launch joined with its program, PTX and source |
//! | [`problem`], [`files`], `pipe` | what is wrong with an input; reading files with limits; output that nobody reads |
//!
//! Errors are values that say what to do; nothing here prints.

pub mod chart;
pub mod checkpoint;
pub mod compile;
pub mod config;
pub mod device;
pub mod digest;
pub mod element;
pub mod files;
pub mod host;
pub mod init;
pub mod launch;
pub mod launch_file;
pub mod limits;
pub mod module;
pub mod npy;
pub mod nvrtc;
pub mod picture;
mod pipe;
pub mod problem;
pub mod profile;
pub mod replay;
pub mod run;
pub mod schedulers;
pub mod streams;
pub mod timing;

pub use checkpoint::{Checkpoint, Keeper};
pub use compile::{CompileOptions, compile};
pub use device::Device;
pub use host::Host;
pub use isa::{Image, Pc, image};
pub use launch::{Dim, FaultReport, LaunchError, LaunchOptions, LaunchStats};
pub use launch_file::LaunchFile;
pub use machine::{self, Config, Report};
pub use module::Module;
pub use pipe::end_with_reader;
pub use problem::{Problem, Problems, Source};
pub use replay::Capture;
pub use run::{RunError, Session};
pub use simt::memory::{self, keep_freed_memory};
pub use simt::{FaultKind, MemoryError};
pub use streams::{Preempting, Streams};
pub use timing::{Sampled, Sampling, Timing};
pub use trace;
