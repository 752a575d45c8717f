//! What the process does with memory that it has freed.

/// Keeps freed memory for later allocations instead of giving it back to the system. Compiling and launching allocate
/// and free tables of the same sizes again and again, and each page that comes from the system anew costs about a
/// microsecond: a tenth of the time of a large module. A program calls this once, at its start; where the system's
/// allocator has no such setting, nothing happens.
pub fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: these calls change numbers of the allocator only; one that it refuses has no effect.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 30);
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
        libc::mallopt(libc::M_TOP_PAD, 16 << 20);
    }
}
