//! What a launch did, instruction by instruction: records of trace cells, profiles, and every form they are shown in.
//!
//! | module | holds |
//! | --- | --- |
//! | [`stall`] | why a warp does not issue: the 22 reasons |
//! | [`metric`] | numbers that users look at, with their units |
//! | [`record`] | the 8-byte records of a trace cell and their longer forms |
//! | [`profile`] | a profiled launch: code, lines, stalls, causes, timelines |
//! | [`correlate`] | from numbers by instruction to machine code, PTX and source lines |
//! | [`file`] | the trace file: recorder and reader |
//! | [`advice`] | rules that find what holds a kernel up, with the line and the gain |
//! | [`compare`] | two profiles beside each other |
//! | [`distance`] | how far two distributions are apart |
//! | [`export`] | terminal text, web page, Perfetto, pprof, flame graph, CSV, JSON |
//!
//! Nothing here knows the machine: whoever runs it hands numbers over. A reader trusts no byte of a file.

pub mod advice;
pub mod compare;
pub mod correlate;
pub mod distance;
pub mod export;
pub mod file;
pub mod metric;
pub mod profile;
pub mod record;
pub mod stall;

pub use profile::Profile;
pub use record::Record;
pub use stall::{STALLS, Stall, StallCycles};
