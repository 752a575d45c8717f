//! Compute scheduler unit: keeps tasks by priority and gives them to work distribution.

mod spec;

pub use spec::Spec;
