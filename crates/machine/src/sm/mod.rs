//! Streaming multiprocessor: warps, schedulers, pipes, and what they share.

pub mod constants;
pub mod fetch;
pub mod load_store;
mod spec;
mod tags;

pub use spec::{Latency, Pipe, Policy, Spec};
