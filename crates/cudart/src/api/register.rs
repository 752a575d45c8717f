//! What compilers' code calls: registration of fat binaries, and launches as triple brackets make them.

use crate::error::{Answer, Code};
use crate::registry;
use crate::types::{Dim3, Handle, Out, Text};
use std::cell::RefCell;

/// A launch's shape, between the brackets and the call of the kernel's stub.
#[derive(Clone, Copy)]
struct Configuration {
    grid: Dim3,
    block: Dim3,
    shared_bytes: usize,
    stream: Handle,
}

thread_local! {
    static PUSHED: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

pub fn push(grid: Dim3, block: Dim3, shared_bytes: usize, stream: Handle) -> u32 {
    PUSHED.with_borrow_mut(|all| all.push(Configuration { grid, block, shared_bytes, stream }));
    0
}

pub fn pop(grid: Out<Dim3>, block: Out<Dim3>, shared_bytes: Out<usize>, stream: Out<Handle>) -> Answer {
    let c = PUSHED.with_borrow_mut(Vec::pop).ok_or(Code::MISSING_CONFIGURATION)?;
    grid.put(c.grid)?;
    block.put(c.block)?;
    shared_bytes.put(c.shared_bytes)?;
    stream.put(c.stream)
}

pub fn fat_binary(address: usize) -> Handle {
    registry::add_binary(address)
}

pub fn remove(handle: Handle) {
    registry::remove_binary(handle);
}

pub fn function(handle: Handle, host: usize, name: Text) {
    registry::add_function(handle, host, name);
}

pub fn variable(handle: Handle, host: usize, name: Text, size: usize) {
    registry::add_variable(handle, host, name, size);
}

pub fn managed(handle: Handle, pointer: usize, host: usize, name: Text, size: usize) {
    registry::add_managed(handle, pointer, host, name, size);
}

pub fn init_module(handle: Handle) -> u8 {
    u8::from(crate::call(|| registry::init_managed(handle)) == 0)
}

pub fn get_kernel(out: Out<Handle>, host: usize) -> Answer {
    out.put(registry::kernel(host)?)
}
