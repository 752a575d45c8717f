//! Words that begin with a line of the host's caches, wherever they lie.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use simt::prefetch::HOST_LINE;

/// Words of a line of the host's caches.
pub const HOST_WORDS: usize = HOST_LINE / size_of::<u64>();

/// A list of fixed length. Where it lies is the host's matter: it is neither compared nor saved.
#[derive(Debug)]
pub struct Words {
    all: Vec<u64>,
    /// Words before the first.
    skipped: usize,
}

impl Words {
    /// So many zeros.
    pub fn zeros(len: usize) -> Words {
        let mut all = vec![0; len + HOST_WORDS];
        let skipped = all.as_ptr().align_offset(HOST_LINE);
        // Where the host does not tell, they lie as they come.
        let skipped = if skipped < HOST_WORDS { skipped } else { 0 };
        all.truncate(skipped + len);
        Words { all, skipped }
    }

    fn of(words: &[u64]) -> Words {
        let mut copy = Words::zeros(words.len());
        copy.list_mut().copy_from_slice(words);
        copy
    }

    #[inline(always)]
    pub fn list(&self) -> &[u64] {
        &self.all[self.skipped..]
    }

    #[inline(always)]
    pub fn list_mut(&mut self) -> &mut [u64] {
        &mut self.all[self.skipped..]
    }
}

impl Clone for Words {
    fn clone(&self) -> Words {
        Words::of(self.list())
    }
}

impl Serialize for Words {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.list().serialize(serializer)
    }
}

impl<'d> Deserialize<'d> for Words {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Words, D::Error> {
        Ok(Words::of(&Vec::deserialize(deserializer)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_begin_with_a_line_wherever_they_lie() {
        for len in [1, 8, 37, 4096] {
            let mut words = Words::zeros(len);
            words.list_mut().iter_mut().zip(1..).for_each(|(word, n)| *word = n);
            let saved = postcard::to_allocvec(&words).expect("it can be saved");
            let back: Words = postcard::from_bytes(&saved).expect("it can be read");
            for copy in [words.clone(), back] {
                assert_eq!(copy.list(), (1..=len as u64).collect::<Vec<_>>());
                assert_eq!(copy.list().as_ptr() as usize % HOST_LINE, 0);
            }
        }
    }
}
