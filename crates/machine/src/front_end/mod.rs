//! Front end: decodes commands and sends tasks and state to their units.

mod spec;

pub use spec::Spec;
