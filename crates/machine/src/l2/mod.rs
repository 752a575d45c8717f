//! Second-level cache: slices in two halves.

mod map;
mod pair;
mod search;
mod spec;
mod tags;
mod words;

pub use map::{Map, Place};
pub use pair::{Ask, Pair};
pub use spec::Spec;
