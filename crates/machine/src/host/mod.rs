//! Host interface: reads push buffers and hands commands to the front end.

mod spec;

pub use spec::Spec;
