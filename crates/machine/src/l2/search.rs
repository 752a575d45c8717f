//! Searches of a set's ways: without branches that depend on what is there, which a host's guess is mostly wrong about.

/// Where a number is in a list first. A set has 64 ways at most.
#[inline(always)]
pub fn position(list: &[u32], wanted: u32) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if list.len() <= 64 {
        // SAFETY: every x86-64 host has these instructions.
        let find = |list: &[u32]| unsafe { x86::find(list, wanted) };
        let found = by_length(list, find);
        return (found != 0).then(|| found.trailing_zeros() as usize);
    }
    list.iter().position(|&word| word == wanted)
}

/// Where the least number of a list is first; 0 in an empty one.
#[inline(always)]
pub fn least(list: &[u32]) -> usize {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as above.
    let least = by_length(list, |list| unsafe { x86::minimum(list) });
    #[cfg(not(target_arch = "x86_64"))]
    let least = list.iter().fold(u32::MAX, |least, &word| least.min(word));
    position(list, least).unwrap_or(0)
}

/// Searches a list; the loops of usual lengths are unrolled.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn by_length<T>(list: &[u32], search: impl Fn(&[u32]) -> T) -> T {
    if let Some(list) = list.first_chunk::<20>().filter(|_| list.len() == 20) {
        search(list)
    } else if let Some(list) = list.first_chunk::<16>().filter(|_| list.len() == 16) {
        search(list)
    } else {
        search(list)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// Words of a vector.
    const WIDE: usize = 4;

    #[inline]
    #[target_feature(enable = "sse2")]
    fn vector(words: &[u32; WIDE]) -> __m128i {
        let [a, b, c, d] = words.map(|word| word as i32);
        _mm_set_epi32(d, c, b, a)
    }

    /// Where a number is in a list of up to 64, a bit each.
    #[inline]
    #[target_feature(enable = "sse2")]
    pub fn find(list: &[u32], wanted: u32) -> u64 {
        let pattern = _mm_set1_epi32(wanted as i32);
        let (chunks, rest) = list.as_chunks::<WIDE>();
        let mut found = 0;
        for (n, chunk) in chunks.iter().enumerate() {
            let equal = _mm_cmpeq_epi32(vector(chunk), pattern);
            found |= (_mm_movemask_ps(_mm_castsi128_ps(equal)) as u64) << (WIDE * n);
        }
        for (n, &word) in rest.iter().enumerate() {
            found |= u64::from(word == wanted) << (WIDE * chunks.len() + n);
        }
        found
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn lesser(a: __m128i, b: __m128i) -> __m128i {
        let is_less = _mm_cmplt_epi32(a, b);
        _mm_or_si128(_mm_and_si128(is_less, a), _mm_andnot_si128(is_less, b))
    }

    /// The least number of a list.
    #[inline]
    #[target_feature(enable = "sse2")]
    pub fn minimum(list: &[u32]) -> u32 {
        // Comparisons are of signed words, whose order is that of the others with the highest bit turned.
        let turned = _mm_set1_epi32(i32::MIN);
        let (chunks, rest) = list.as_chunks::<WIDE>();
        let mut least = _mm_set1_epi32(i32::MAX);
        for chunk in chunks {
            least = lesser(_mm_xor_si128(vector(chunk), turned), least);
        }
        let least = lesser(least, _mm_shuffle_epi32::<0b0100_1110>(least));
        let least = lesser(least, _mm_shuffle_epi32::<0b1011_0001>(least));
        let least = _mm_cvtsi128_si32(_mm_xor_si128(least, turned)) as u32;
        rest.iter().fold(least, |least, &word| least.min(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_found_is_what_a_walk_finds(
            list in prop::collection::vec(prop::sample::select(vec![0, 1, 2, 3, 1 << 31, 1 << 31 | 5, u32::MAX]), 0..80),
            wanted in 0u32..4,
        ) {
            prop_assert_eq!(position(&list, wanted), list.iter().position(|&word| word == wanted));
            let first = list.iter().min().and_then(|least| list.iter().position(|word| word == least));
            prop_assert_eq!(least(&list), first.unwrap_or(0));
        }
    }
}
