//! Room for versions behind the code of a program: launches that run at once share it, so that no two have code at one place.

use super::INSTRUCTION_BYTES;
use serde::{Deserialize, Serialize};

/// Room behind the code of a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Arena {
    /// Where the program lies.
    pub base: u64,
    /// Instructions of the program, and those that there can be with all versions.
    own: u32,
    most: u32,
    /// Where instructions behind the program's own come from.
    origin: Vec<u32>,
}

/// Instructions that a program can have with all versions that may be made.
pub(crate) fn most_instructions(own: usize, code_bytes: u32) -> usize {
    own + (code_bytes / INSTRUCTION_BYTES) as usize + 2
}

impl Arena {
    pub fn new(base: u64, own: usize, code_bytes: u32) -> Arena {
        let most = u32::try_from(most_instructions(own, code_bytes)).unwrap_or(u32::MAX);
        Arena { base, own: own as u32, most, origin: Vec::new() }
    }

    /// The place behind all code.
    pub fn end(&self) -> u32 {
        self.own + self.origin.len() as u32
    }

    /// Takes room for code that comes from these places; false where there is none.
    pub fn take(&mut self, first: u32, origin: &[u32]) -> bool {
        let Some(from) = first.checked_sub(self.own).map(|n| n as usize) else { return false };
        let until = from + origin.len();
        if u64::from(first) + origin.len() as u64 > u64::from(self.most) {
            return false;
        }
        if until > self.origin.len() {
            self.origin.resize(until, self.own.saturating_sub(1));
        }
        self.origin[from..until].copy_from_slice(origin);
        true
    }

    /// The place of the original that an instruction comes from.
    pub fn origin(&self, place: u32) -> u32 {
        match place.checked_sub(self.own) {
            None => place,
            Some(n) => self.origin.get(n as usize).copied().unwrap_or(place),
        }
    }

    /// Whether it can be that of a program of so many instructions.
    pub fn is_sound(&self, own: usize, code_bytes: u32) -> bool {
        let new = Arena::new(self.base, own, code_bytes);
        (self.own, self.most) == (new.own, new.most)
            && self.end() <= self.most
            && self.origin.iter().all(|&n| n < self.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_once_and_knows_where_code_comes_from() {
        let mut arena = Arena::new(0, 10, 16 * 20);
        assert_eq!(arena.end(), 10);
        assert!(arena.take(16, &[3, 4, 4]), "behind a gap");
        assert_eq!((arena.end(), arena.origin(3), arena.origin(16), arena.origin(18)), (19, 3, 3, 4));
        assert_eq!(arena.origin(12), 9, "nothing is there");
        assert!(!arena.take(30, &[0; 9]), "that is too much");
        assert!(arena.take(16, &[3, 4, 4]), "the same again");
        assert!(arena.is_sound(10, 16 * 20) && !arena.is_sound(11, 16 * 20));
    }
}
