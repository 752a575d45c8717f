//! Passes over ir, instruction selection, register allocation, emission to isa.
