//! What the entry points do, a file a family. Parameters are those of the API; see [`crate::table`].

pub mod context;
pub mod copy;
pub mod device;
pub mod event;
pub mod graph;
pub mod graph_nodes;
pub mod ipc;
pub mod launch;
pub mod legacy;
pub mod library;
pub mod link;
pub mod memory;
pub mod misc;
pub mod module;
pub mod occupancy;
pub mod pointer;
pub mod pool;
pub mod stream;
pub mod user_object;
pub mod vmm;
