//! The `warploom` command.

fn main() {}
