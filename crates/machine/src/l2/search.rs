//! Searches of a set's ways: without branches that depend on what is there, which a host's guess is mostly wrong about.

/// Where a number is first among those that lie two in a word, the first one in its lower half. There are 32 words at most.
#[inline(always)]
pub fn position(words: &[u64], wanted: u32) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if words.len() <= 32 {
        // SAFETY: every x86-64 host has these instructions.
        let find = |words: &[u64]| unsafe { x86::find(words, wanted) };
        let found = by_length::<10, _>(words, find);
        return (found != 0).then(|| found.trailing_zeros() as usize);
    }
    words.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]).position(|number| number == wanted)
}

/// Where the least of the numbers that lie four in a word, the first one in its lowest bits, is first; 0 where there is none.
/// There are 16 words at most.
#[inline(always)]
pub fn least(words: &[u64]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if words.len() <= 16 {
        // SAFETY: as above.
        let find = |words: &[u64]| unsafe { x86::least(words) };
        return by_length::<5, _>(words, find).trailing_zeros() as usize % 64;
    }
    let all = words.iter().flat_map(|word| [0, 16, 32, 48].map(|shift| (*word >> shift) as u16));
    all.enumerate().min_by_key(|&(n, number)| (number, n)).map_or(0, |(n, _)| n)
}

/// Searches a list; the loop of the usual length, that of 20 ways, is unrolled.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn by_length<const USUAL: usize, T>(list: &[u64], search: impl Fn(&[u64]) -> T) -> T {
    if let Some(list) = list.first_chunk::<USUAL>().filter(|_| list.len() == USUAL) {
        search(list)
    } else {
        search(list)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// Words of a vector.
    const WIDE: usize = 2;

    #[inline]
    #[target_feature(enable = "sse2")]
    fn vector(words: &[u64; WIDE]) -> __m128i {
        _mm_set_epi64x(words[1] as i64, words[0] as i64)
    }

    /// Where a number of 32 bits is among those of up to 32 words, a bit each.
    #[inline]
    #[target_feature(enable = "sse2")]
    pub fn find(words: &[u64], wanted: u32) -> u64 {
        let pattern = _mm_set1_epi32(wanted as i32);
        let (chunks, rest) = words.as_chunks::<WIDE>();
        let mut all = 0;
        for (n, words) in chunks.iter().enumerate() {
            let equal = _mm_cmpeq_epi32(vector(words), pattern);
            all |= (_mm_movemask_ps(_mm_castsi128_ps(equal)) as u64) << (2 * WIDE * n);
        }
        if let &[last] = rest {
            let found = u64::from(last as u32 == wanted) | u64::from((last >> 32) as u32 == wanted) << 1;
            all |= found << (2 * WIDE * chunks.len());
        }
        all
    }

    /// A bit for each of the numbers of 16 bits that is the one in a pattern.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn equal(words: &[u64; WIDE], pattern: __m128i) -> u64 {
        let equal = _mm_cmpeq_epi16(vector(words), pattern);
        _mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128())) as u64
    }

    /// Where the least number of 16 bits is among those of up to 16 words, a bit each.
    #[inline]
    #[target_feature(enable = "sse2")]
    pub fn least(words: &[u64]) -> u64 {
        // Comparisons are of signed numbers, whose order is that of the others with the highest bit turned.
        let turned = _mm_set1_epi16(i16::MIN);
        let (chunks, rest) = words.as_chunks::<WIDE>();
        let last = [rest.first().copied().unwrap_or(u64::MAX), u64::MAX];
        let mut least = _mm_xor_si128(vector(&last), turned);
        for words in chunks {
            least = _mm_min_epi16(_mm_xor_si128(vector(words), turned), least);
        }
        let least = _mm_min_epi16(_mm_shuffle_epi32::<0b0100_1110>(least), least);
        let least = _mm_min_epi16(_mm_shuffle_epi32::<0b1011_0001>(least), least);
        let least = _mm_min_epi16(_mm_shufflelo_epi16::<0b1011_0001>(least), least);
        let pattern = _mm_set1_epi16((_mm_cvtsi128_si32(least) as u16 ^ 1 << 15) as i16);
        let mut all = 0;
        for (n, words) in chunks.iter().enumerate() {
            all |= equal(words, pattern) << (4 * WIDE * n);
        }
        if rest.is_empty() { all } else { all | equal(&last, pattern) << (4 * WIDE * chunks.len()) }
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
            let words: Vec<u64> = list.as_chunks().0.iter().map(|[a, b]| u64::from(*a) | u64::from(*b) << 32).collect();
            let pairs = &list[..2 * words.len()];
            prop_assert_eq!(position(&words, wanted), pairs.iter().position(|&number| number == wanted));
        }

        #[test]
        fn the_least_is_the_first_of_the_least(
            list in prop::collection::vec(prop::sample::select(vec![1u16, 2, 3, 7, 0x7fff, 0x8000, 0x8003, u16::MAX]), 0..80),
        ) {
            let word = |four: &[u16; 4]| four.iter().rev().fold(0, |word, &n| word << 16 | u64::from(n));
            let words: Vec<u64> = list.as_chunks().0.iter().map(word).collect();
            let fours = &list[..4 * words.len()];
            let first = fours.iter().min().and_then(|least| fours.iter().position(|n| n == least));
            prop_assert_eq!(least(&words), first.unwrap_or(0));
        }
    }
}
