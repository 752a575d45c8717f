//! Loose round robin: the next warp after the one that issued last.

/// The bit of the set that comes first after `last`, around the end; `last` is 64 where nobody issued yet.
#[inline(always)]
pub fn choose(set: u64, last: u32) -> u32 {
    let first = (last + 1).min(64) % 64;
    (set.rotate_right(first).trailing_zeros() + first) % 64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_around() {
        let set = 1 << 3 | 1 << 10 | 1 << 63;
        assert_eq!([3, 4, 10, 63, 64].map(|last| choose(set, last)), [10, 10, 63, 3, 3]);
        assert_eq!(choose(1 << 5, 5), 5);
    }
}
