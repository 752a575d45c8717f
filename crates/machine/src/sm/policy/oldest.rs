//! Oldest first: the warp that has been able to issue for the longest time. Nobody who comes later goes before it, so a
//! warp waits for as many issues as there are others, at most.

use super::bits::Bits;

/// `since` says when a warp had all that its instruction needs, except perhaps a free pipe; of several, the one that
/// started first.
#[inline]
pub fn choose(set: u64, newest: u32, since: impl Fn(u32) -> u64) -> u32 {
    Bits(set).min_by_key(|&b| (since(b), std::cmp::Reverse(newest.wrapping_sub(b) % 64))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_could_first_goes_first() {
        let mut since = [9; 64];
        (since[4], since[9], since[1]) = (3, 2, 3);
        let at = |b: u32| since[b as usize];
        assert_eq!(choose(1 << 1 | 1 << 4 | 1 << 9, 9, at), 9);
        // Started in the order 4, 9, 1.
        assert_eq!(choose(1 << 1 | 1 << 4, 1, at), 4);
        assert_eq!(choose(1 << 1 | 1 << 4, 9, at), 1);
    }
}
