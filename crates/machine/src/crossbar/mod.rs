//! Crossbar: virtual channels between GPCs and memory partitions.

mod spec;

pub use spec::Spec;
