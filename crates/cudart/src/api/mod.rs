//! What the entry points do, a file a family. Parameters are those of the API; see [`crate::table`].

pub mod copy;
pub mod device;
pub mod event;
pub mod graph;
pub mod launch;
pub mod library;
pub mod memory;
pub mod misc;
pub mod properties;
pub mod register;
pub mod stream;
