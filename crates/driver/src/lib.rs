//! Memory, modules, launches: the Rust API of the machine.
pub mod digest;
pub mod element;
pub mod files;
pub mod init;
pub mod launch_file;
pub mod npy;
pub mod picture;
pub mod problem;
