//! Copies that leave the host's caches alone: of much that nobody reads soon.

/// Bytes that are written at once, and in one step.
#[cfg(target_arch = "x86_64")]
const WIDE: usize = 16;
#[cfg(target_arch = "x86_64")]
const STEP: usize = 4 * WIDE;

/// Copies bytes.
///
/// # Safety
/// There must be as many bytes at `to` that can be written, and none of them may be among those of `from`.
pub unsafe fn copy(from: &[u8], to: *mut u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as the caller promised.
    unsafe {
        copy_past(from, to)
    };
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: as the caller promised.
    unsafe {
        std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len())
    };
}

/// The same with the host's instructions for it, which every x86-64 has.
///
/// # Safety
/// As for [`copy`].
#[cfg(target_arch = "x86_64")]
unsafe fn copy_past(from: &[u8], to: *mut u8) {
    use std::arch::x86_64::{_mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    // Up to where `to` is aligned, then in wide steps, then the rest.
    let (head, rest) = from.split_at(to.align_offset(WIDE).min(from.len()));
    let (steps, tail) = rest.as_chunks::<STEP>();
    // SAFETY: all lies within what the caller promised, and wide stores are aligned.
    unsafe {
        std::ptr::copy_nonoverlapping(head.as_ptr(), to, head.len());
        let aligned = to.add(head.len());
        for (n, step) in steps.iter().enumerate() {
            for k in (0..STEP).step_by(WIDE) {
                let to = aligned.add(n * STEP + k);
                _mm_stream_si128(to.cast(), _mm_loadu_si128(step.as_ptr().add(k).cast()));
            }
        }
        // What others read comes after these stores.
        _mm_sfence();
        std::ptr::copy_nonoverlapping(tail.as_ptr(), aligned.add(steps.len() * STEP), tail.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_come_wherever_they_lie() {
        let from: Vec<u8> = (0..200).map(|n| n as u8).collect();
        for start in 0..20 {
            for len in [0, 1, 15, 16, 17, 40, 150] {
                let mut to = vec![255; 200];
                // SAFETY: there are as many bytes behind the start.
                unsafe { copy(&from[7..7 + len], to.as_mut_ptr().add(start)) };
                let mut expected = vec![255; 200];
                expected[start..start + len].copy_from_slice(&from[7..7 + len]);
                assert_eq!(to, expected, "{start} {len}");
            }
        }
    }
}
