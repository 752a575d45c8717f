//! Memory, modules, launches: the Rust API of the machine.
