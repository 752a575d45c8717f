//! `libcuda.so.1`: the CUDA driver API over the machine.
//!
//! | module | holds |
//! | --- | --- |
//! | [`table`] | every entry point: exported name, name and version for look-ups, parameters, what does it |
//! | [`api`] | what the entry points do, a file a family: pointers of clients become checked values here |
//! | [`types`], [`error`] | structures and numbers of the API; result codes |
//! | [`state`], [`handle`] | devices, settings of the environment; handles and what they stand for |
//! | [`context`], [`program`], [`memory`] | contexts and their threads; loaded programs; who has which memory |
//! | [`queue`], [`stream`], [`operation`] | work in the order of streams, and the threads that do it; streams and events; what they can do |
//! | [`fatbin`] | containers of compilers: which program of several is taken |
//! | [`pages`] | pages of device memory that several addresses or processes have |
//! | [`profile`] | profiles of timed launches, as files |
//! | [`beside`] | the linker that stands beside this library |
//! | [`log`] | the one place that writes to the terminal |
//!
//! # Rules
//! A handle is a number that is never used twice; what is freed or was never made is answered with CUDA's code. Work is
//! put into queues and done by a thread of each device; what goes wrong there makes its context fail for good. No
//! panic leaves an entry point.

pub mod api;
pub mod beside;
pub mod context;
pub mod error;
pub mod fatbin;
pub mod handle;
pub mod log;
pub mod memory;
pub mod operation;
pub mod pages;
pub mod profile;
pub mod program;
pub mod queue;
pub mod state;
pub mod stream;
pub mod table;
pub mod types;

pub use error::{Answer, Code};
