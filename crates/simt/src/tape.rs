//! Accesses to global memory of instructions that were executed before they issue: where they go and, of stores, what they
//! store.
//!
//! A tape of words behind a warp's registers, written when a warp runs ahead and read when its instructions issue, one access after the other: a
//! few lines of the host's caches stand for all that the warp did. Each access begins with a word: its lanes, bytes a lane,
//! how the lanes lie, and entries of the log. Then come the addresses, then each entry: where it begins, its bytes, and
//! what it stores; where there is one for each lane, only what they store.

use crate::fault::Space;
use crate::log::{Log, Mark};
use crate::resident::{Access, Where};
use std::ops::Range;

/// Words of a tape, and its bytes.
const WORDS: usize = 192;
pub(crate) const BYTES: u32 = 8 * WORDS as u32;

/// Words of an access that stores nothing, at most.
const LOAD: usize = 33;

/// How lanes lie, as the first word has it.
const CONSECUTIVE: u64 = 0;
const SAME: u64 = 1;
const HALVES: u64 = 2;
const LANES: u64 = 3;

/// Parts of the first word, above the lanes. The kind is that of each of the halves, or of lanes: whether they are within 2 GB of
/// the first of them.
const SIZE: u32 = 32;
const PLACE: u32 = 40;
const KIND: u32 = 42;
const ENTRIES: u32 = 44;

/// Entries where there is one for each lane, at its address.
const EACH: u64 = 63;

/// The part of a tape that was written and not read yet.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    next: u16,
    end: u16,
}

impl Left {
    pub const NOTHING: Left = Left { next: 0, end: 0 };

    #[inline(always)]
    fn words(self) -> Range<usize> {
        self.next.into()..self.end.into()
    }

    /// Whether there is room for any access that stores nothing.
    #[inline(always)]
    pub fn has_room(self) -> bool {
        usize::from(self.end) + LOAD <= WORDS
    }

    /// Where it lies, in bytes from the tape's begin.
    #[inline(always)]
    pub fn bytes(self) -> Range<usize> {
        8 * usize::from(self.next)..8 * usize::from(self.end)
    }
}

/// What is left on the tape in these bytes.
pub(crate) fn words(bytes: &[u8], left: Left) -> Vec<u64> {
    let left = bytes.as_chunks().0.get(left.words()).unwrap_or_default();
    left.iter().map(|&word| u64::from_le_bytes(word)).collect()
}

/// What a warp did to global memory and has not issued.
pub(crate) struct Tape<'a> {
    words: &'a mut [[u8; 8]],
    left: &'a mut Left,
}

impl<'a> Tape<'a> {
    /// The tape in these bytes.
    #[inline(always)]
    pub fn new(bytes: &'a mut [u8], left: &'a mut Left) -> Tape<'a> {
        Tape { words: bytes.as_chunks_mut().0, left }
    }

    /// Makes this what is left, as far as there is room.
    pub fn set_words(&mut self, words: &[u64]) {
        let both = self.words.iter_mut().zip(words);
        let count = both.map(|(own, word)| *own = word.to_le_bytes()).count();
        *self.left = Left { next: 0, end: count as u16 };
    }

    /// Writes an access to global memory, and what it logged since `before`; false, and nothing is written, where there is no room
    /// for it.
    #[inline(always)]
    pub fn put(&mut self, access: &Access, log: &Log, before: Mark) -> bool {
        let (base, steps, is_near) = near(access);
        let (place, kind) = match access.place {
            Where::Consecutive(_) => (CONSECUTIVE, 0),
            Where::Same(_) => (SAME, 0),
            Where::Halves(_, [a, b]) => (HALVES, u64::from(a) | u64::from(b) << 1),
            Where::Tile(..) | Where::Lanes => (LANES, u64::from(is_near)),
        };
        let count = log.stored_since(before).count() as u64;
        let is_each = is_near && count > 0 && {
            let lanes = (0..32).filter(|n| access.mask >> n & 1 != 0);
            let own = lanes.map(|n| (access.lanes[n], access.size as usize));
            own.eq(log.stored_since(before).map(|(at, bytes)| (at, bytes.len())))
        };
        let entries = if is_each { EACH } else { count };
        let mut writer = Writer { words: self.words, at: self.left.end.into() };
        writer.put(
            u64::from(access.mask)
                | u64::from(access.size) << SIZE
                | place << PLACE
                | kind << KIND
                | entries << ENTRIES,
        );
        match access.place {
            Where::Consecutive(at) | Where::Same(at) => writer.put(at),
            Where::Halves(starts, _) => starts.into_iter().for_each(|at| writer.put(at)),
            Where::Tile(..) | Where::Lanes if kind == 1 => {
                writer.put(base);
                writer.put_all(&steps);
            }
            Where::Tile(..) | Where::Lanes => (0..32).for_each(|lane| writer.put(access.address(lane))),
        }
        if is_each {
            let size = access.size as usize;
            let mut packed = [0; 512];
            for ((_, bytes), to) in log.stored_since(before).zip(packed.chunks_exact_mut(size)) {
                to.copy_from_slice(bytes);
            }
            writer.put_bytes(&packed[..count as usize * size]);
            return writer.close(self.left);
        }
        for (start, bytes) in log.stored_since(before) {
            writer.put(start);
            writer.put(bytes.len() as u64);
            writer.put_bytes(bytes);
        }
        writer.close(self.left)
    }

    /// Reads the next access; what it stores goes to the log. Behind the last one, and where what is there cannot be an
    /// access, one of no lanes. `known` learns of the access before anything is stored.
    #[inline(always)]
    pub fn take(&mut self, access: &mut Access, log: &mut Log, known: impl FnOnce(&Access)) {
        (access.space, access.mask, access.place) = (Space::Global, 0, Where::Lanes);
        (access.shared, access.local) = (0, 0);
        let words = self.words.get(self.left.words()).unwrap_or_default();
        let mut reader = Reader { words };
        if reader.read(access, log, known).is_none() {
            (access.mask, reader.words) = (0, &[]);
        }
        access.global = access.mask;
        self.left.next = self.left.end - reader.words.len() as u16;
        if self.left.next == self.left.end {
            *self.left = Left::NOTHING;
        }
    }
}

/// The address of the first lane that executes, how far the others are from it, two in a word, and whether these are within 2 GB;
/// for lanes that lie anyhow.
#[inline(always)]
fn near(access: &Access) -> (u64, [u64; 16], bool) {
    if access.place != Where::Lanes {
        return (0, [0; 16], false);
    }
    let base = access.lanes[access.mask.trailing_zeros() as usize & 31];
    let (mut steps, mut far) = ([0; 16], 0);
    for (n, pair) in access.lanes.chunks_exact(2).enumerate() {
        let step = |k: usize| pair[k].wrapping_sub(base);
        // All ones for a lane that executes.
        let far_of = |k: usize| {
            (step(k) ^ step(k) as i32 as u64) & u64::from(access.mask >> (2 * n + k) & 1).wrapping_neg()
        };
        far |= far_of(0) | far_of(1);
        steps[n] = step(0) & 0xffff_ffff | step(1) << 32;
    }
    (base, steps, far == 0)
}

/// Writes words as long as there is room, and counts those for which there is none.
struct Writer<'a> {
    words: &'a mut [[u8; 8]],
    at: usize,
}

impl Writer<'_> {
    #[inline(always)]
    fn put(&mut self, word: u64) {
        if let Some(to) = self.words.get_mut(self.at) {
            *to = word.to_le_bytes();
        }
        self.at += 1;
    }

    #[inline(always)]
    fn put_all(&mut self, words: &[u64; 16]) {
        if let Some(to) = self.words.get_mut(self.at..).and_then(|rest| rest.first_chunk_mut::<16>()) {
            *to = words.map(u64::to_le_bytes);
        }
        self.at += words.len();
    }

    /// Whether all had room; if so, it is on the tape.
    #[inline(always)]
    fn close(self, left: &mut Left) -> bool {
        let fits = self.at <= self.words.len();
        if fits {
            left.end = self.at as u16;
        }
        fits
    }

    /// The last word is filled up with what was there.
    #[inline(always)]
    fn put_bytes(&mut self, bytes: &[u8]) {
        let end = self.at + bytes.len().div_ceil(8);
        if let Some(to) = self.words.get_mut(self.at..end) {
            to.as_flattened_mut()[..bytes.len()].copy_from_slice(bytes);
        }
        self.at = end;
    }
}

struct Reader<'a> {
    words: &'a [[u8; 8]],
}

impl Reader<'_> {
    #[inline(always)]
    fn word(&mut self) -> Option<u64> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(u64::from_le_bytes(*first))
    }

    #[inline(always)]
    fn read(&mut self, access: &mut Access, log: &mut Log, known: impl FnOnce(&Access)) -> Option<()> {
        let first = self.word()?;
        (access.mask, access.size) = (first as u32, (first >> SIZE) as u32 & 0xff);
        access.place = match first >> PLACE & 3 {
            CONSECUTIVE => Where::Consecutive(self.word()?),
            SAME => Where::Same(self.word()?),
            HALVES => {
                let sames = [first >> KIND & 1 != 0, first >> (KIND + 1) & 1 != 0];
                Where::Halves([self.word()?, self.word()?], sames)
            }
            _ if first >> KIND & 1 != 0 => {
                let base = self.word()?;
                let (lanes, rest) = self.words.split_at_checked(access.lanes.len() / 2)?;
                for (to, &word) in access.lanes.chunks_exact_mut(2).zip(lanes) {
                    let steps = u64::from_le_bytes(word);
                    to[0] = base.wrapping_add(steps as i32 as u64);
                    to[1] = base.wrapping_add((steps as i64 >> 32) as u64);
                }
                self.words = rest;
                Where::Lanes
            }
            _ => {
                let (lanes, rest) = self.words.split_at_checked(access.lanes.len())?;
                access.lanes.iter_mut().zip(lanes).for_each(|(to, &word)| *to = u64::from_le_bytes(word));
                self.words = rest;
                Where::Lanes
            }
        };
        access.global = access.mask;
        known(access);
        if first >> ENTRIES == EACH {
            let size = access.size.max(1) as usize;
            let bytes = size * access.mask.count_ones() as usize;
            let (words, rest) = self.words.split_at_checked(bytes.div_ceil(8))?;
            self.words = rest;
            let lanes = (0..32).filter(|n| access.mask >> n & 1 != 0);
            for (lane, bytes) in lanes.zip(words.as_flattened().chunks_exact(size)) {
                log.put(access.lanes[lane], bytes);
            }
            return Some(());
        }
        for _ in 0..first >> ENTRIES {
            let (start, bytes) = (self.word()?, self.word()?);
            let (words, rest) = self.words.split_at_checked(usize::try_from(bytes.div_ceil(8)).ok()?)?;
            self.words = rest;
            log.put(start, &words.as_flattened()[..bytes as usize]);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(mask: u32, size: u32, place: Where) -> Access {
        let lanes = std::array::from_fn(|n| 0x1000 + 100 * n as u64);
        Access { mask, global: mask, size, place, lanes, ..Access::default() }
    }

    /// What an access of these lanes stored: bytes of each, with the lane's number in them.
    fn store(log: &mut Log, access: &Access, lanes: &[u32]) {
        for &lane in lanes {
            let to = log.store(access.address(lane), access.size);
            // SAFETY: the log gave room for as many bytes.
            unsafe { to.write_bytes(lane as u8, access.size as usize) };
        }
    }

    #[test]
    fn accesses_come_back_in_their_order() {
        let places = [
            Where::Consecutive(0x400),
            Where::Same(0x7000),
            Where::Halves([0x100, 0x900], [true, false]),
            Where::Lanes,
        ];
        let (mut scratch, mut log) = (Log::new(), Log::new());
        let (mut bytes, mut left) = ([0; BYTES as usize], Left::NOTHING);
        let mut tape = Tape::new(&mut bytes, &mut left);
        for (n, &place) in places.iter().enumerate() {
            let mark = scratch.so_far();
            if n % 2 == 1 {
                for (start, byte) in [(0x5000, 3), (0x6001, 4)] {
                    let to = scratch.store(start, 21);
                    // SAFETY: the log gave room for as many bytes.
                    unsafe { to.write_bytes(byte, 21) };
                }
            }
            assert!(tape.put(&access(0xf0f0 + n as u32, 4 << n, place), &scratch, mark));
        }
        for (n, &place) in places.iter().enumerate() {
            let mut got = access(1, 1, Where::Lanes);
            let mark = log.so_far();
            tape.take(&mut got, &mut log, |_| ());
            assert_eq!((got.mask, got.global, got.size), (0xf0f0 + n as u32, 0xf0f0 + n as u32, 4 << n));
            assert_eq!(got.place, place);
            assert_eq!(got.lanes, access(0, 0, place).lanes);
            let stored: Vec<(u64, Vec<u8>)> =
                log.stored_since(mark).map(|(at, b)| (at, b.to_vec())).collect();
            let expected = [(0x5000, vec![3; 21]), (0x6001, vec![4; 21])];
            assert_eq!(stored, if n % 2 == 1 { expected.to_vec() } else { Vec::new() });
        }
        // Behind the end there is nothing.
        let mut got = access(1, 4, Where::Same(9));
        tape.take(&mut got, &mut log, |_| ());
        assert_eq!((got.mask, got.global), (0, 0));
        assert!(words(&bytes, left).is_empty());
    }

    #[test]
    fn what_is_no_access_is_none() {
        for given in [vec![1 << ENTRIES, 5, 5, 500], vec![LANES << PLACE | 1, 1], vec![HALVES << PLACE | 1]] {
            let (mut bytes, mut left) = ([0; BYTES as usize], Left::NOTHING);
            let mut tape = Tape::new(&mut bytes, &mut left);
            tape.set_words(&given);
            assert_eq!(usize::from(tape.left.end), given.len());
            let mut got = access(7, 4, Where::Lanes);
            tape.take(&mut got, &mut Log::new(), |_| ());
            assert_eq!((got.mask, got.global), (0, 0));
            assert!(words(&bytes, left).is_empty());
        }
    }

    #[test]
    fn stores_of_each_lane_take_little() {
        for (size, far, words_of) in
            [(4, 0, 18 + 12), (8, 0, 18 + 24), (2, 0, 18 + 6), (4, 1 << 40, 33 + 24 * 3)]
        {
            let mut given = access(0x00ff_ffff, size, Where::Lanes);
            given.lanes[5] += far;
            let (mut bytes, mut left) = ([0; BYTES as usize], Left::NOTHING);
            let (mut scratch, mut log) = (Log::new(), Log::new());
            let mut tape = Tape::new(&mut bytes, &mut left);
            store(&mut scratch, &given, &(0..24).collect::<Vec<_>>());
            assert!(tape.put(&given, &scratch, Log::new().so_far()));
            assert_eq!(usize::from(tape.left.end), words_of);
            let mut got = access(0, 1, Where::Same(0));
            tape.take(&mut got, &mut log, |_| ());
            assert_eq!((got.mask, got.size, got.place), (given.mask, size, Where::Lanes));
            assert_eq!(got.lanes[..24], given.lanes[..24]);
            let all = |log: &Log| -> Vec<(u64, Vec<u8>)> {
                log.stored_since(Log::new().so_far()).map(|(at, b)| (at, b.to_vec())).collect()
            };
            assert_eq!(all(&log), all(&scratch));
            assert_eq!(words(&bytes, left), [0; 0]);
        }
    }

    #[test]
    fn what_does_not_fit_is_not_written() {
        let (mut bytes, mut left) = ([0; BYTES as usize], Left::NOTHING);
        let (scattered, log) = (access(u32::MAX, 4, Where::Lanes), Log::new());
        let mut tape = Tape::new(&mut bytes, &mut left);
        let fit = (0..WORDS).filter(|_| tape.put(&scattered, &log, log.so_far())).count();
        assert_eq!((fit, words(&bytes, left).len()), (WORDS / 18, WORDS / 18 * 18));
        assert!(!left.has_room() && Left::NOTHING.has_room());
    }
}
