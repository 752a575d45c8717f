//! Where one physical register is taken: a bit for each point of the function.
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

impl Occupied {
    /// Nothing lives in it at any point of the range.
    pub fn is_free(&self, range: (u32, u32)) -> bool {
        pieces(range).all(|(w, bits)| self.words.get(w).is_none_or(|word| word & bits == 0))
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
    use super::Occupied;

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
