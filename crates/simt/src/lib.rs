//! What instructions compute: warps, lanes, divergence, memory spaces. Nothing here knows of cycles.
//!
//! | module | holds |
//! | --- | --- |
//! | [`program`], [`decode`] | an image placed in memory; its code as micro-operations |
//! | [`uop`], [`lanes`], [`level`] | micro-operations, the rows they work on, the vector levels they are compiled for |
//! | [`ops`] | what each operation computes |
//! | [`warp`], [`cta`] | divergence and the inner loop; barriers and shared memory |
//! | [`memory`], [`local`] | device memory; local memory |
//! | [`launch`], [`runner`] | a launch, and how it runs functionally |
//! | [`resident`], [`log`] | a CTA in an SM of a timed machine, an instruction at a time; what an SM did to global memory |
//! | [`files`] | register files that stay from launch to launch |
//! | [`sprint`], [`tape`] | warps that are executed from begin to end at once; what they did that has not issued |
//! | [`watched`] | what happens at instructions that somebody watches |
//! | [`special`], [`printf`], [`fault`] | special registers, device output, what can go wrong |
//!
//! # Semantics
//! A register of a warp is a *row* of 32 lanes. Immediates, constants and uniform registers are rows too, so that an
//! operation only ever sees rows. An instruction executes for the lanes of the running split whose guard is true, all
//! at once for arithmetic, in ascending order for memory. Registers, shared and local memory start as zeros.

mod access;
mod aligned;
pub mod arrays;
pub mod cta;
pub mod decode;
pub mod fault;
pub mod files;
pub mod lanes;
pub mod launch;
pub mod level;
pub mod local;
pub mod log;
pub mod memory;
mod near;
pub mod ops;
pub mod prefetch;
pub mod printf;
pub mod program;
pub mod queue;
pub mod resident;
pub mod runner;
pub mod special;
pub mod sprint;
mod tape;
mod uninitialised;
pub mod uop;
pub mod warp;
pub mod watched;

pub use fault::{Access, Fault, FaultKind, Space};
pub use launch::{Launch, Shape};
pub use level::Isa;
pub use log::Log;
pub use memory::{Memory, MemoryError};
pub use program::{Kernel, LoadError, Program};
pub use resident::{Resident, Stepped, Where};
pub use runner::{LaunchError, Options, Stats, Whereabouts, run, run_launch};
pub use warp::{Env, Stop, Warp};
