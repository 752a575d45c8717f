//! Streaming multiprocessor: warps, schedulers, pipes, and what they share.

pub mod load_store;
mod spec;

pub use spec::{Latency, Pipe, Policy, Spec};
