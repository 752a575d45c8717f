//! Pages behind device memory: exchanged for pages of a file in memory, which other addresses and processes can have too.
//! Only where device addresses are host addresses.

use crate::error::{Answer, Code};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

/// Bytes of a page of the host.
pub const PAGE: u64 = 4096;

/// A file that is only in memory, of zeros.
pub fn file(bytes: u64) -> Answer<File> {
    // SAFETY: the name is a text with a zero; a new descriptor is ours alone.
    let file = unsafe {
        let fd = libc::memfd_create(c"warploom".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(Code::OPERATING_SYSTEM);
        }
        File::from_raw_fd(fd)
    };
    file.set_len(bytes).map_err(|_| Code::OUT_OF_MEMORY)?;
    Ok(file)
}

/// Another descriptor of a file.
pub fn duplicate(file: &File) -> Answer<RawFd> {
    // SAFETY: duplicating changes nothing that exists.
    let fd = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 0) };
    if fd < 0 { Err(Code::OPERATING_SYSTEM) } else { Ok(fd) }
}

/// The file of a descriptor that the client has.
pub fn borrow(fd: RawFd) -> Answer<File> {
    // SAFETY: a duplicate is ours alone; what is no descriptor is refused.
    unsafe {
        let own = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0);
        if own < 0 { Err(Code::INVALID_VALUE) } else { Ok(File::from_raw_fd(own)) }
    }
}

/// Puts pages of a file at addresses of device memory, in place of what is there.
///
/// # Safety
/// The pages belong to live allocations of device memory that no work uses now.
pub unsafe fn put(start: u64, bytes: u64, file: &File, offset: u64) -> Answer {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_FIXED;
    // SAFETY: the caller's promise: these addresses are device memory.
    let at = unsafe {
        let place = start as usize as *mut libc::c_void;
        libc::mmap(place, bytes as usize, access, flags, file.as_raw_fd(), offset as libc::off_t)
    };
    if at == libc::MAP_FAILED { Err(Code::MAP_FAILED) } else { Ok(()) }
}

/// Puts fresh pages of zeros there.
///
/// # Safety
/// As [`put`].
pub unsafe fn clear(start: u64, bytes: u64) -> Answer {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: the caller's promise: these addresses are device memory.
    let at = unsafe { libc::mmap(start as usize as *mut libc::c_void, bytes as usize, access, flags, -1, 0) };
    if at == libc::MAP_FAILED { Err(Code::UNMAP_FAILED) } else { Ok(()) }
}
