//! Virtual-time servers: contention without events. A block asks when it can be served, and gets the cycle.

use crate::units::Cycle;
use serde::{Deserialize, Serialize};
use simt::prefetch::{prefetch, prefetch_at};

/// Serves in the order of asking, one after the other.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Line {
    free: Cycle,
}

impl Line {
    /// When service of `busy` cycles begins for who comes at `at`.
    #[inline(always)]
    pub fn serve(&mut self, at: Cycle, busy: u64) -> Cycle {
        let start = at.later(self.free);
        self.free = start + busy;
        start
    }

    /// Nothing begins before `until`.
    #[inline(always)]
    pub fn hold(&mut self, until: Cycle) {
        self.free = self.free.later(until);
    }

    /// When the next one could begin.
    #[inline(always)]
    pub fn free(&self) -> Cycle {
        self.free
    }
}

/// Buckets that a calendar keeps.
const KEPT: u64 = 2048;
/// Buckets that become the newest at a time: a line of the host's caches.
const STRETCH: u64 = 32;

/// A link of limited width whose users do not ask in the order of their times: time is cut into buckets, each with
/// room for so many units.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Calendar {
    /// Cycles of a bucket, as a shift.
    shift: u32,
    /// Units that a bucket has room for.
    room: u32,
    /// Cycles that a unit takes, in 2^-32 cycles.
    unit: u64,
    /// Number of the oldest bucket that is kept.
    oldest: u64,
    /// A ring of units taken. A full bucket has the room and, above it, how far ahead beyond the next bucket the next one
    /// with room may be. Small: hundreds of calendars take turns in the host's caches.
    #[serde(with = "simt::arrays::boxed")]
    buckets: Box<[u16; KEPT as usize]>,
}

impl Calendar {
    /// A link that passes `units`, at most 65,535, in every `1 << shift` cycles.
    pub fn new(shift: u32, units: u32) -> Calendar {
        let room = units.clamp(1, u32::from(u16::MAX));
        let unit = (1u64 << (shift + 32)) / u64::from(room);
        Calendar { shift, room, unit, oldest: 0, buckets: Box::new([0; KEPT as usize]) }
    }

    /// A link that passes `rate` units in a cycle. Buckets are long enough for most users to need only one, and for the
    /// rate to be met within a percent.
    pub fn with_rate(rate: f64) -> Calendar {
        let shift = (0..6).find(|&s| rate * f64::from(1u32 << s) >= 256.0).unwrap_or(6);
        Calendar::new(shift, (rate * f64::from(1u32 << shift)).round() as u32)
    }

    #[inline(always)]
    fn bucket(&mut self, n: u64) -> &mut u16 {
        &mut self.buckets[(n % KEPT) as usize]
    }

    /// Whether bucket `n` is one of those that are kept.
    #[inline(always)]
    fn keeps(&self, n: u64) -> bool {
        n.wrapping_sub(self.oldest) < KEPT
    }

    /// Bucket `n`, which is not among the oldest, is asked for: from now on it is kept, and so are some behind it.
    #[cold]
    fn reach(&mut self, n: u64) {
        let (first, last) = ((self.oldest + KEPT) / STRETCH, n / STRETCH);
        for stretch in first.max((last + 1).saturating_sub(KEPT / STRETCH))..=last {
            let start = (stretch * STRETCH % KEPT) as usize;
            self.buckets[start..start + STRETCH as usize].fill(0);
        }
        self.oldest = (last + 1) * STRETCH - KEPT;
    }

    /// The first bucket from number `n` on that has room, and that room.
    #[inline(always)]
    fn with_room(&mut self, mut n: u64) -> (u64, u32) {
        let room = self.room;
        loop {
            if !self.keeps(n) {
                self.reach(n);
            }
            let used = u32::from(*self.bucket(n));
            if used < room {
                return (n, room - used);
            }
            // Who asks again for a full stretch passes over it in longer and longer steps.
            let next = n + 1 + u64::from(used - room);
            if self.keeps(next) {
                let beyond = u32::from(*self.bucket(next));
                if beyond >= room {
                    let skipped = used + (beyond - room) + 1;
                    *self.bucket(n) = skipped.min(u32::from(u16::MAX)) as u16;
                }
            }
            n = next;
        }
    }

    /// Units will be taken at about this time.
    #[inline(always)]
    pub fn expect(&self, at: Cycle) {
        prefetch_at(&self.buckets[((at.0 >> self.shift) % KEPT) as usize]);
    }

    /// Takes `units` at `at` or as soon after as there is room; the cycle at which the last of them passes.
    #[inline]
    pub fn take(&mut self, at: Cycle, units: u32) -> Cycle {
        let (wanted, room, unit) = (at.0 >> self.shift, self.room, self.unit);
        let is_kept = self.keeps(wanted);
        let bucket = self.bucket(wanted);
        // More than there is room for, where the bucket is full.
        let used = u32::from(*bucket) + units;
        // Mostly the first bucket is one of those that are kept, and has room.
        if used > room || !is_kept {
            return self.take_later(at, units);
        }
        *bucket = used as u16;
        let share = (u64::from(used) * unit) >> 32;
        Cycle(((wanted << self.shift) + share).max(at.0 + 1) - 1)
    }

    /// The same where the first bucket has not enough room.
    #[inline(never)]
    fn take_later(&mut self, at: Cycle, units: u32) -> Cycle {
        let wanted = at.0 >> self.shift;
        let mut n = wanted.max(self.oldest);
        let mut left = units;
        loop {
            let (found, free) = self.with_room(n);
            n = found;
            let unit = self.unit;
            let bucket = self.bucket(n);
            if left <= free {
                *bucket += left as u16;
                // Inside a bucket units pass one after the other.
                let share = (u64::from(*bucket) * unit) >> 32;
                let passed = Cycle((n << self.shift) + share.saturating_sub(1));
                return if n == wanted { passed.later(at) } else { passed };
            }
            left -= free;
            *bucket += free as u16;
            n += 1;
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.buckets.fill(0);
        self.oldest = 0;
    }
}

/// A queue of fixed length whose entries leave at known cycles, in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Queue {
    /// When each entry leaves; a ring.
    leaves: Box<[Cycle]>,
    next: usize,
}

impl Queue {
    pub fn new(entries: u32) -> Queue {
        Queue { leaves: vec![Cycle(0); entries.max(1) as usize].into_boxed_slice(), next: 0 }
    }

    /// Something will come soon.
    #[inline(always)]
    pub fn expect(&self) {
        prefetch(&self.leaves, self.next);
    }

    /// When there is room for one more: the cycle at which the entry before the oldest place leaves.
    #[inline(always)]
    pub fn room(&self) -> Cycle {
        self.leaves[self.next]
    }

    /// When the entry that came last leaves.
    #[inline(always)]
    pub fn last(&self) -> Cycle {
        self.leaves[if self.next == 0 { self.leaves.len() - 1 } else { self.next - 1 }]
    }

    /// Puts in an entry that leaves at `at`.
    #[inline(always)]
    pub fn put(&mut self, at: Cycle) {
        self.leaves[self.next] = at;
        self.next = if self.next + 1 == self.leaves.len() { 0 } else { self.next + 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn line_serves_one_after_the_other() {
        let mut line = Line::default();
        assert_eq!(line.serve(Cycle(5), 3), Cycle(5));
        assert_eq!(line.serve(Cycle(6), 1), Cycle(8));
        assert_eq!(line.serve(Cycle(20), 1), Cycle(20));
    }

    #[test]
    fn calendar_gives_early_places_to_who_asks_late() {
        let mut c = Calendar::new(2, 4);
        assert_eq!(c.take(Cycle(100), 1), Cycle(100));
        assert_eq!(c.take(Cycle(8), 1), Cycle(8));
        for _ in 0..3 {
            c.take(Cycle(8), 1);
        }
        assert!(c.take(Cycle(8), 1) >= Cycle(12));
        // What lies too far back is moved up, never lost.
        c.take(Cycle(100_000), 1);
        assert!(c.take(Cycle(0), 1) > Cycle(90_000));
    }

    #[test]
    fn calendar_passes_no_more_than_its_rate() {
        let mut c = Calendar::with_rate(1.5);
        let mut last = Cycle(0);
        for n in 0..3000u64 {
            // Early and late askers mixed; all before 1,000.
            last = last.later(c.take(Cycle(n * 7919 % 1000), 1));
        }
        assert!((1990..2060).contains(&last.0), "{last:?}");
    }

    /// Units taken in each bucket, and the oldest that is kept: what a calendar must be like.
    #[derive(Default)]
    struct Model {
        used: std::collections::BTreeMap<u64, u32>,
        oldest: u64,
    }

    impl Model {
        /// The bucket that the last of the units passes in, and how many it has then. Buckets have 4 cycles and 8 units.
        fn take(&mut self, at: u64, mut units: u32) -> (u64, u32) {
            let mut n = (at / 4).max(self.oldest);
            loop {
                self.oldest = self.oldest.max(((n / STRETCH + 1) * STRETCH).saturating_sub(KEPT));
                let used = self.used.entry(n).or_insert(0);
                let taken = units.min(8 - *used);
                *used += taken;
                units -= taken;
                if units == 0 {
                    return (n, *used);
                }
                n += 1;
            }
        }
    }

    proptest! {
        #[test]
        fn calendar_is_a_list_of_buckets(
            asks in prop::collection::vec((0u64..200, 1u32..25, prop::sample::select(vec![0u64, 1, 40, 3000, 9000])), 1..600),
        ) {
            let mut calendar = Calendar::new(2, 8);
            let mut model = Model::default();
            let mut start = 0;
            for (after, units, step) in asks {
                start += step / 10;
                let at = start.saturating_sub(step) + after;
                let (bucket, used) = model.take(at, units);
                let passed = 4 * bucket + (u64::from(used) / 2).saturating_sub(1);
                let expected = if bucket == at / 4 { passed.max(at) } else { passed };
                prop_assert_eq!(calendar.take(Cycle(at), units), Cycle(expected));
            }
        }
    }

    #[test]
    fn queue_has_room_when_its_oldest_entry_left() {
        let mut q = Queue::new(2);
        assert_eq!(q.room(), Cycle(0));
        q.put(Cycle(10));
        q.put(Cycle(12));
        assert_eq!(q.room(), Cycle(10));
        q.put(Cycle(20));
        assert_eq!(q.room(), Cycle(12));
    }
}
