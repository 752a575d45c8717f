//! Second-level cache: slices in two halves.

mod spec;

pub use spec::Spec;
