//! Zeroed memory on cache-line boundaries, for register files and shared memory.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

const ALIGN: usize = 64;

/// A fixed number of bytes.
pub struct Aligned {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns its bytes, like a `Box<[u8]>`.
unsafe impl Send for Aligned {}
// SAFETY: shared references give no access but through raw pointers.
unsafe impl Sync for Aligned {}

impl Aligned {
    pub fn zeroed(bytes: usize) -> Aligned {
        let bytes = bytes.max(ALIGN);
        let layout = Aligned::layout(bytes);
        // SAFETY: the size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        match NonNull::new(start) {
            Some(start) => Aligned { start, bytes },
            None => handle_alloc_error(layout),
        }
    }

    fn layout(bytes: usize) -> Layout {
        // SAFETY: the alignment is a power of two; sizes are bounded by what images may ask for.
        unsafe { Layout::from_size_align_unchecked(bytes, ALIGN) }
    }

    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the bytes are ours, initialised, and borrowed for as long as the slice lives.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.start.as_ptr(), Aligned::layout(self.bytes)) }
    }
}
