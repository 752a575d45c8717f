//! The push buffer: a ring of words that the host fills and the host interface empties.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The ring is full: the host must wait until commands have been read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full {
    pub words: usize,
    pub room: usize,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} words of commands do not fit the push buffer, which has room for {}",
            self.words, self.room
        )
    }
}

impl std::error::Error for Full {}

/// A ring of command words. Positions count words since the beginning of time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PushBuffer {
    words: Box<[u32]>,
    put: u64,
    get: u64,
}

impl PushBuffer {
    pub fn new(words: u32) -> PushBuffer {
        PushBuffer { words: vec![0; words.max(1) as usize].into_boxed_slice(), put: 0, get: 0 }
    }

    /// Words that can be written now.
    pub fn room(&self) -> usize {
        self.words.len() - (self.put - self.get) as usize
    }

    /// The host writes words; where they end.
    pub fn write(&mut self, words: &[u32]) -> Result<u64, Full> {
        if words.len() > self.room() {
            return Err(Full { words: words.len(), room: self.room() });
        }
        for &word in words {
            let place = self.place(self.put);
            self.words[place] = word;
            self.put += 1;
        }
        Ok(self.put)
    }

    /// The host interface reads up to position `end`, which makes room; the words are appended to `into`.
    pub fn read(&mut self, end: u64, into: &mut Vec<u32>) {
        while self.get < end.min(self.put) {
            into.push(self.words[self.place(self.get)]);
            self.get += 1;
        }
    }

    fn place(&self, position: u64) -> usize {
        (position % self.words.len() as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_wraps_and_refuses_what_does_not_fit() {
        let mut ring = PushBuffer::new(4);
        let end = ring.write(&[1, 2, 3]).expect("room");
        assert_eq!(ring.write(&[4, 5]), Err(Full { words: 2, room: 1 }));
        let mut read = Vec::new();
        ring.read(end, &mut read);
        assert_eq!(ring.write(&[4, 5, 6]), Ok(6));
        ring.read(6, &mut read);
        assert_eq!(read, [1, 2, 3, 4, 5, 6]);
    }
}
