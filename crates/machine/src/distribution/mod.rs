//! Compute work distribution: places CTAs on SMs.

mod spec;

pub use spec::Spec;
