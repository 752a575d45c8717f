//! Passes over ir, instruction selection, register allocation, emission to isa.

pub mod analysis;
pub mod passes;
