//! I/O unit: the link to the host; commands and data cross it.

mod spec;

pub use spec::Spec;
