//! Where one physical register is taken: a bit for each point of the function; and where a value lives, in the form in which
//! that is asked about quickly.
//!
//! What lives at once is at most as much as there are registers, so the bits that are asked for and set in all grow with the
//! length of the function, and neighbouring points lie together.

/// The points at which something lives in a register.
#[derive(Clone, Default, Debug)]
pub struct Occupied {
    words: Vec<u64>,
}

/// The bits of a word from `from` on and below `to`, of which at most 64 lie between.
fn mask(from: u32, to: u32) -> u64 {
    let ones = if to - from >= 64 { u64::MAX } else { (1 << (to - from)) - 1 };
    ones << (from % 64)
}

/// Words that a range touches, each with the bits of the range.
fn pieces((from, to): (u32, u32)) -> impl Iterator<Item = (usize, u64)> {
    (from / 64..to.div_ceil(64)).map(move |w| {
        let (first, end) = (from.max(64 * w), to.min(64 * w + 64));
        (w as usize, if first < end { mask(first, end) } else { 0 })
    })
}

/// Ranges from which on a value's points are written as bits, where they lie close: as many questions cost more than the bits.
const MANY: usize = 48;

/// The points at which a value lives.
pub enum Points<'a> {
    Ranges(&'a [(u32, u32)]),
    /// Words of bits, the first of them with this number.
    Bits(usize, Vec<u64>),
}

impl<'a> Points<'a> {
    /// Of ranges in order.
    pub fn new(ranges: &'a [(u32, u32)]) -> Self {
        match (ranges.first(), ranges.last()) {
            (Some(&(from, _)), Some(&(_, to)))
                if ranges.len() >= MANY && ((to - from) / 64) as usize <= 4 * ranges.len() =>
            {
                let first = (from / 64) as usize;
                let mut words = vec![0; (to.div_ceil(64) as usize).saturating_sub(first)];
                for &range in ranges {
                    pieces(range).for_each(|(w, bits)| words[w - first] |= bits);
                }
                Points::Bits(first, words)
            }
            _ => Points::Ranges(ranges),
        }
    }

    /// None of them is taken.
    pub fn are_free(&self, taken: &Occupied) -> bool {
        match self {
            Points::Ranges(ranges) => ranges.iter().all(|&range| taken.is_free(range)),
            Points::Bits(first, words) => {
                let taken = taken.words.get(*first..).unwrap_or_default();
                // In pieces that the compiler turns into vectors.
                let mut pieces = words.chunks(32).zip(taken.chunks(32));
                pieces.all(|(a, b)| a.iter().zip(b).fold(0, |all, (a, b)| all | a & b) == 0)
            }
        }
    }
}

impl Occupied {
    /// Nothing lives in it at any point of the range.
    pub fn is_free(&self, (from, to): (u32, u32)) -> bool {
        let to = to.min(64 * self.words.len() as u32);
        if from >= to {
            return true;
        }
        let (first, last) = (from / 64, (to - 1) / 64);
        if first == last {
            return self.words[first as usize] & mask(from, to) == 0;
        }
        // The ends first: they are most often what a neighbour has.
        let (first, last) = (first as usize, last as usize);
        self.words[first] & mask(from, 64 * first as u32 + 64) == 0
            && self.words[last] & mask(64 * last as u32, to) == 0
            && self.words[first + 1..last].iter().all(|&w| w == 0)
    }

    /// Nothing ever lives in it.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&w| w == 0)
    }

    /// Where what lives last in the range, and until its end at most, ends.
    pub fn last_end(&self, (from, to): (u32, u32)) -> Option<u32> {
        let to = to.min(64 * self.words.len() as u32);
        let mut end = to;
        while end > from {
            let w = (end - 1) / 64;
            let word = self.words[w as usize] & mask(from.max(64 * w), end);
            if word != 0 {
                return Some(64 * w + 64 - word.leading_zeros());
            }
            end = 64 * w;
        }
        None
    }

    pub fn take(&mut self, range: (u32, u32)) {
        let words = range.1.div_ceil(64) as usize;
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
        pieces(range).for_each(|(w, bits)| self.words[w] |= bits);
    }

    pub fn free(&mut self, range: (u32, u32)) {
        pieces(range).for_each(|(w, bits)| {
            if let Some(word) = self.words.get_mut(w) {
                *word &= !bits;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{MANY, Occupied, Points};

    /// Many ranges give the same answers as few.
    #[test]
    fn points_meet_what_is_taken() {
        let mut taken = Occupied::default();
        taken.take((1000, 1003));
        taken.take((7000, 7001));
        for count in [1, MANY - 1, MANY, 3 * MANY] {
            for shift in [0, 5, 64, 500, 990, 999, 1000, 1003, 6990, 7000, 7001, 9000] {
                let ranges: Vec<(u32, u32)> =
                    (0..count as u32).map(|n| (shift + 7 * n, shift + 7 * n + 1 + n % 4)).collect();
                let free = ranges.iter().all(|&r| taken.is_free(r));
                assert_eq!(Points::new(&ranges).are_free(&taken), free, "{count} from {shift}");
            }
        }
    }

    #[test]
    fn ranges_are_half_open_and_may_cross_words() {
        let mut o = Occupied::default();
        assert!(o.is_empty() && o.is_free((0, 1000)));
        o.take((60, 130));
        o.take((200, 256));
        for (range, free) in [
            ((0, 60), true),
            ((59, 61), false),
            ((129, 130), false),
            ((130, 200), true),
            ((130, 201), false),
            ((255, 256), false),
            ((256, 9000), true),
        ] {
            assert_eq!(o.is_free(range), free, "{range:?}");
        }
        assert_eq!(o.last_end((0, 60)), None);
        assert_eq!(o.last_end((0, 61)), Some(61));
        assert_eq!(o.last_end((0, 200)), Some(130));
        assert_eq!(o.last_end((130, 200)), None);
        assert_eq!(o.last_end((0, 9000)), Some(256));
        o.free((60, 130));
        assert!(o.is_free((0, 200)) && !o.is_empty());
        o.free((200, 256));
        assert!(o.is_empty());
    }
}
