//! What the process does with memory that it has freed.

/// Keeps freed memory for later allocations instead of giving it back to the system. Compiling and launching allocate
/// and free tables of the same sizes again and again, and each page that comes from the system anew costs about a
/// microsecond: a tenth of the time of a large module. A program calls this once, at its start; where the system's
/// allocator has no such setting, nothing happens.
///
/// The first of it lies in large pages: SMs of a timed machine take turns in tens of megabytes, of which the host's
/// address translation does not cover much by small ones. (A tenth of the time of kernels that wait for memory.)
pub fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: these calls change numbers of the allocator only; one that it refuses has no effect.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 30);
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
        libc::mallopt(libc::M_TOP_PAD, 16 << 20);
        let start: *mut u8 = libc::malloc(IN_LARGE_PAGES).cast();
        if !start.is_null() {
            // Whole pages inside of what is ours now. It is a hint about pages that nobody has touched, and stays when the
            // memory goes back to the allocator, which keeps it.
            let skipped = start.align_offset(LARGE_PAGE);
            if skipped < IN_LARGE_PAGES {
                let bytes = (IN_LARGE_PAGES - skipped) & !(LARGE_PAGE - 1);
                libc::madvise(start.wrapping_add(skipped).cast(), bytes, libc::MADV_HUGEPAGE);
            }
            libc::free(start.cast());
        }
    }
}

/// Bytes of a large page of most hosts, and those of the allocator's memory that lie in such.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_PAGE: usize = 2 << 20;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const IN_LARGE_PAGES: usize = 128 << 20;
