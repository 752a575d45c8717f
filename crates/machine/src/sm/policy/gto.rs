//! Greedy, then the oldest: the warp that issued last goes on as long as it can.

/// `newest` is the bit of the warp that started last; bits below it, and around the end, are older.
#[inline(always)]
pub fn choose(set: u64, last: u32, newest: u32) -> u32 {
    if last < 64 && set >> last & 1 != 0 { last } else { oldest(set, newest) }
}

/// The warp of the set that started first.
#[inline(always)]
pub fn oldest(set: u64, newest: u32) -> u32 {
    // Bits rotated so that the newest warp is the highest.
    let turn = 63 - newest;
    (set.rotate_left(turn).trailing_zeros() + 64 - turn) % 64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greed_comes_before_age() {
        // Started in the order 60, 63, 2, 5.
        let set = 1 << 60 | 1 << 63 | 1 << 2 | 1 << 5;
        assert_eq!(choose(set, 2, 5), 2);
        assert_eq!(choose(set, 64, 5), 60);
        assert_eq!(choose(set & !(1 << 60), 60, 5), 63);
        assert_eq!(choose(1 << 2 | 1 << 5, 60, 5), 2);
    }
}
