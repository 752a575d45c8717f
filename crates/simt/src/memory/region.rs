//! The reserved range of host addresses behind device memory. Only what is committed takes memory, once touched.

use std::io;

/// Host addresses reserved for the machine.
pub struct Region {
    start: *mut u8,
    bytes: usize,
    #[cfg(not(all(unix, not(miri))))]
    _owner: crate::aligned::Aligned,
}

// SAFETY: the region is plain memory; who may touch which bytes when is the business of `Memory`.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

#[cfg(all(unix, not(miri)))]
impl Region {
    /// Reserves `bytes`, or half as often as needed where the host has not as much to give; at address `wanted` where nothing
    /// else is there.
    pub fn reserve(bytes: usize, wanted: usize) -> io::Result<Region> {
        let map = |at: usize, bytes: usize, flags: libc::c_int| {
            // SAFETY: a new private mapping that replaces nothing touches nothing that exists.
            let start = unsafe {
                libc::mmap(
                    at as *mut libc::c_void,
                    bytes,
                    libc::PROT_NONE,
                    libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE | flags,
                    -1,
                    0,
                )
            };
            (start != libc::MAP_FAILED).then_some(start)
        };
        let mut bytes = bytes;
        loop {
            // Older systems take the address as a hint and choose another: what they give is as good as any.
            #[cfg(target_os = "linux")]
            let found = map(wanted, bytes, libc::MAP_FIXED_NOREPLACE).or_else(|| map(0, bytes, 0));
            #[cfg(not(target_os = "linux"))]
            let found = map(wanted, bytes, 0);
            if let Some(start) = found {
                return Ok(Region { start: start.cast(), bytes });
            }
            if bytes <= 1 << 30 {
                return Err(io::Error::last_os_error());
            }
            bytes /= 2;
        }
    }

    fn pages(&self, offset: usize, len: usize) -> (usize, usize) {
        let start = offset & !0xfff;
        (start, (offset + len).next_multiple_of(0x1000).min(self.bytes) - start)
    }

    /// Makes bytes usable.
    pub fn commit(&self, offset: usize, len: usize) -> io::Result<()> {
        let (start, len) = self.pages(offset, len);
        // SAFETY: the pages lie in our reservation.
        let rc =
            unsafe { libc::mprotect(self.start.add(start).cast(), len, libc::PROT_READ | libc::PROT_WRITE) };
        if rc != 0 {
            return Err(io::Error::last_os_error());
        }
        // Large pages where a launch will touch most of them. The largest buffers are often read here and there, and a large
        // page for each such place would take as much of the host as the whole buffer.
        #[cfg(target_os = "linux")]
        if (4 << 20..=512 << 20).contains(&len) {
            // SAFETY: as above; a hint, whose refusal changes nothing.
            unsafe { libc::madvise(self.start.add(start).cast(), len, libc::MADV_HUGEPAGE) };
        }
        Ok(())
    }

    /// Makes bytes zero, giving whole pages back to the host.
    pub fn clear(&self, offset: usize, len: usize) {
        let first = offset.next_multiple_of(0x1000);
        let last = (offset + len) & !0xfff;
        // SAFETY: committed bytes of our reservation that nobody uses any more. Private anonymous pages read zero
        // after MADV_DONTNEED on Linux; elsewhere they are written.
        unsafe {
            if cfg!(target_os = "linux") && first < last {
                std::ptr::write_bytes(self.start.add(offset), 0, first - offset);
                libc::madvise(self.start.add(first).cast(), last - first, libc::MADV_DONTNEED);
                std::ptr::write_bytes(self.start.add(last), 0, offset + len - last);
            } else {
                std::ptr::write_bytes(self.start.add(offset), 0, len);
            }
        }
    }
}

#[cfg(all(unix, not(miri)))]
impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: our own mapping, which nobody uses any more.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

#[cfg(not(all(unix, not(miri))))]
impl Region {
    /// Without reservations: one zeroed block that the system commits as it is touched.
    pub fn reserve(bytes: usize, _wanted: usize) -> io::Result<Region> {
        let bytes = bytes.min(if cfg!(miri) { 16 << 20 } else { 2 << 30 });
        let owner = crate::aligned::Aligned::zeroed(bytes);
        Ok(Region { start: owner.as_ptr(), bytes, _owner: owner })
    }

    pub fn commit(&self, _offset: usize, _len: usize) -> io::Result<()> {
        Ok(())
    }

    pub fn clear(&self, offset: usize, len: usize) {
        // SAFETY: bytes of our block that nobody uses any more.
        unsafe { std::ptr::write_bytes(self.start.add(offset), 0, len) };
    }
}

impl Region {
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
