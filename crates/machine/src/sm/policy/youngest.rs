//! Greedy, then the youngest.

/// `newest` is the bit of the warp that started last; bits below it, and around the end, are older.
#[inline(always)]
pub fn choose(set: u64, last: u32, newest: u32) -> u32 {
    if last < 64 && set >> last & 1 != 0 {
        return last;
    }
    let turn = 63 - newest;
    (63 - set.rotate_left(turn).leading_zeros() + 64 - turn) % 64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greed_comes_before_youth() {
        // Started in the order 60, 63, 2, 5.
        let set = 1 << 60 | 1 << 63 | 1 << 2 | 1 << 5;
        assert_eq!(choose(set, 63, 5), 63);
        assert_eq!(choose(set, 64, 5), 5);
        assert_eq!(choose(set & !(1 << 5), 5, 5), 2);
        assert_eq!(choose(1 << 60 | 1 << 63, 2, 5), 63);
    }
}
