//! What the CUDA driver and the CUDA runtime take from their clients, and the runtime hands to the driver.
//!
//! | module | holds |
//! | --- | --- |
//! | [`pointer`] | pointers of clients, checked for null when they are used |
//! | [`copies`] | structures that say what is copied or set |

pub mod copies;
pub mod pointer;

pub use copies::{IpcHandle, Location, Memcpy2d, Memcpy3d, MemsetNode, Side2d, Side3d};
pub use pointer::{In, Null, Out, Text};
