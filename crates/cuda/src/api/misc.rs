//! Errors' names, look-ups of entry points, the profiler's switch, and what else touches the process.

use crate::error::{Answer, Code};
use crate::state::{self, VERSION};
use crate::table;
use crate::types::{Out, Text};
use std::ffi::c_char;

pub fn init(flags: u32) -> Answer {
    if flags != 0 { Err(Code::INVALID_VALUE) } else { state::init() }
}

pub fn driver_version(out: Out<i32>) -> Answer {
    out.put(VERSION)
}

pub fn error_name(code: u32, out: Out<*const c_char>) -> Answer {
    let name = Code(code).name();
    out.put(name.map_or(std::ptr::null(), |n| n.as_ptr().cast()))?;
    if name.is_some() { Ok(()) } else { Err(Code::INVALID_VALUE) }
}

pub fn error_text(code: u32, out: Out<*const c_char>) -> Answer {
    let text = Code(code).text();
    out.put(text.map_or(std::ptr::null(), |n| n.as_ptr().cast()))?;
    if text.is_some() { Ok(()) } else { Err(Code::INVALID_VALUE) }
}

/// What a look-up found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    Yes,
    No,
    NotInThisVersion,
}

/// The newest entry point of a name that a program of this version knows.
fn look_up(name: &str, version: i32, flags: u64) -> (usize, Found) {
    const PER_THREAD: u64 = 2;
    let all = || table::ENTRIES.iter().filter(|e| e.base == name || e.symbol == name);
    let best = all().filter(|e| e.version <= version).max_by_key(|e| e.version);
    match best {
        Some(e) => {
            let address = e.per_thread.filter(|_| flags & PER_THREAD != 0).unwrap_or(e.address);
            (address as usize, Found::Yes)
        }
        None if all().next().is_some() => (0, Found::NotInThisVersion),
        None => (0, Found::No),
    }
}

pub fn proc_address(name: Text, out: Out<usize>, version: i32, flags: u64) -> Answer {
    let (address, found) = look_up(&name.get()?, version, flags);
    out.put(address)?;
    if found == Found::Yes { Ok(()) } else { Err(Code::NOT_FOUND) }
}

pub fn proc_address_v2(name: Text, out: Out<usize>, version: i32, flags: u64, status: Out<u32>) -> Answer {
    let (address, found) = look_up(&name.get()?, version, flags);
    out.put(address)?;
    status.offer(match found {
        Found::Yes => 0,
        Found::No => 1,
        Found::NotInThisVersion => 2,
    });
    // Without a place for the status, the code is the only answer.
    if found == Found::Yes || !status.is_null() { Ok(()) } else { Err(Code::NOT_FOUND) }
}

/// There is nothing to start or stop: profiles are made by the `warploom` command.
pub fn profiler() -> Answer {
    crate::context::current().map(|_| ())
}

pub fn export_table(_out: Out<usize>, _id: usize) -> Answer {
    Err(Code::NOT_SUPPORTED)
}

pub fn flush_writes(_target: u32, _scope: u32) -> Answer {
    crate::context::current().map(|_| ())
}

/// Shows what kernels printed, through the C library's buffer, so that it is in order with what the program prints.
pub fn show(text: &[u8]) {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
    }
    // SAFETY: the C library's stream lives as long as the process; the bytes are ours.
    unsafe {
        libc::fwrite(text.as_ptr().cast(), 1, text.len(), stdout);
        libc::fflush(stdout);
    }
}

/// Has a function called in the child of every fork.
pub fn at_fork(child: extern "C" fn()) {
    // SAFETY: the function only sets a flag.
    unsafe { libc::pthread_atfork(None, None, Some(child)) };
}
