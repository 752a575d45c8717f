//! GPC: pipeline manager, first level of address translation, cache behind the instruction and constant caches of its SMs, and the point where equal requests of its SMs meet.

mod spec;

pub use spec::Spec;
