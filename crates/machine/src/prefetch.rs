//! Hints to the host's caches. SMs and slices take turns, so what one needs has often left the nearer caches since its
//! last turn: asking early for several things lets them come together.

/// Asks for an entry of a list that will be used soon. One that does not exist is not asked for.
#[inline(always)]
pub fn prefetch<T>(list: &[T], n: usize) {
    #[cfg(target_arch = "x86_64")]
    if n < list.len() {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the entry exists, and a hint reads and changes nothing that a program can see.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(list.as_ptr().add(n).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (list, n);
}
