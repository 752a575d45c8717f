//! Streaming multiprocessor: warps, schedulers, pipes, and what they share.

mod answers;
mod choice;
pub mod code;
pub mod constants;
pub mod core;
mod counted;
mod ctas;
pub mod fetch;
mod incoming;
mod issue;
mod kept;
mod layouts;
pub mod load_store;
mod look_ahead;
mod outgoing;
mod plan;
pub mod policy;
pub mod preemption;
mod quick;
pub mod replacing;
mod schedule;
mod spec;
pub mod sub_core;
mod tables;
mod tags;
pub mod trace_cell;
mod turns;
mod waits;
mod warp;
pub mod watch;
mod work;

pub use core::{Failure, Sm};
pub use spec::{Latency, Pipe, Policy, Spec};
pub use tables::Tables;
pub use warp::LAST_CYCLE;
pub use work::{Begin, Context, CtaSlot, NO_CONTEXT, Work};
