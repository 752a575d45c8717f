//! TPC: SMs that share a port to the crossbar.

mod spec;

pub use spec::Spec;
