//! DRAM: channels, banks, row buffers, refresh.

mod spec;

pub use spec::Spec;
