//! The CUDA runtime API over the driver API: what `libcudart.so.12` and `libcudart.so.13` export.
//!
//! | module | holds |
//! | --- | --- |
//! | [`table`] | every entry point, as macros: the two shared libraries are made of them |
//! | [`api`] | what the entry points do, a file a family |
//! | [`driver`] | the functions of `libcuda.so.1` that are used, found when the first call comes |
//! | [`runtime`] | which device a thread works on, and its context |
//! | [`registry`] | what programs register when they start: fat binaries, kernels, variables |
//! | [`types`], [`error`] | structures of the API; result codes |
//! | `log` | the one place that writes to the terminal |
//!
//! The driver is the one that the program's process has, so that programs may use both APIs.

pub mod api;
pub mod driver;
pub mod error;
mod log;
pub mod registry;
pub mod runtime;
pub mod table;
pub mod types;

use error::{Answer, Code};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static PER_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Runs what an entry point does. Panics end here.
pub fn call(body: impl FnOnce() -> Answer) -> u32 {
    let answer = catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(Code::UNKNOWN));
    error::note(answer.map_or_else(|code| code.0, |()| 0))
}

/// As [`call`], with the thread's own stream in place of the default stream.
pub fn call_per_thread(body: impl FnOnce() -> Answer) -> u32 {
    let before = PER_THREAD.replace(true);
    let answer = call(body);
    PER_THREAD.set(before);
    answer
}

/// The default stream of a thread is its own, in the call that runs.
pub fn is_per_thread() -> bool {
    PER_THREAD.get()
}

/// Answers for an entry point that does not exist here.
pub fn unsupported(name: &'static str) -> u32 {
    log::missing(name);
    error::note(Code::NOT_SUPPORTED.0)
}
