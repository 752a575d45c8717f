//! Runs truth directories against the compiler and the engines.

fn main() {}
