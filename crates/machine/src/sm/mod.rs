//! Streaming multiprocessor: warps, schedulers, pipes, and what they share.

mod spec;

pub use spec::{Latency, Pipe, Policy, Spec};
