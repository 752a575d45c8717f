//! Oldest first: the warp that has been able to issue for the longest time. Nobody who comes later goes before it, so a
//! warp waits for as many issues as there are others, at most.

use super::bits::{Bits, remap};

/// When each warp asked, as numbers in the order of asking.
#[derive(Clone, Debug)]
pub struct Oldest {
    asked: [u64; 64],
    next: u64,
}

impl Oldest {
    pub fn new() -> Oldest {
        Oldest { asked: [0; 64], next: 0 }
    }

    /// The warp has all that its instruction needs, except perhaps a free pipe.
    pub fn ask(&mut self, bit: u32) {
        self.asked[bit as usize % 64] = self.next;
        self.next += 1;
    }

    pub fn choose(&self, set: u64) -> u32 {
        Bits(set).min_by_key(|&b| self.asked[b as usize]).unwrap_or(0)
    }

    pub fn remap(&mut self, old: &[u8]) {
        remap(&mut self.asked, old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asked_first_goes_first() {
        let mut o = Oldest::new();
        [4, 9, 1].into_iter().for_each(|b| o.ask(b));
        assert_eq!(o.choose(1 << 1 | 1 << 4 | 1 << 9), 4);
        // Having issued, it asks again and goes to the end.
        o.ask(4);
        assert_eq!(o.choose(1 << 1 | 1 << 4 | 1 << 9), 9);
        o.remap(&[1, 4, 9]);
        assert_eq!(o.choose(0b111), 2);
    }
}
