//! Virtual-time servers: contention without events. A block asks when it can be served, and gets the cycle.

use crate::units::Cycle;
use serde::{Deserialize, Serialize};
use simt::prefetch::prefetch_at;

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

/// Buckets that a calendar looks ahead by.
const BUCKETS: usize = 1024;

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
    /// A ring. Buckets after the newest are empty.
    #[serde(with = "simt::arrays::boxed")]
    buckets: Box<[Bucket; BUCKETS]>,
    /// Number of the newest bucket that was asked for.
    newest: u64,
}

/// A stretch of time. Small: hundreds of calendars take turns in the host's caches.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Bucket {
    /// Units taken.
    used: u16,
    /// When it is full: how far ahead the next with room may be.
    skip: u16,
}

const UNUSED: Bucket = Bucket { used: 0, skip: 1 };

impl Calendar {
    /// A link that passes `units`, at most 65,535, in every `1 << shift` cycles.
    pub fn new(shift: u32, units: u32) -> Calendar {
        let room = units.clamp(1, u32::from(u16::MAX));
        let unit = (1u64 << (shift + 32)) / u64::from(room);
        Calendar { shift, room, unit, buckets: Box::new([UNUSED; BUCKETS]), newest: 0 }
    }

    /// A link that passes `rate` units in a cycle. Buckets are long enough for most users to need only one, and for the
    /// rate to be met within a percent.
    pub fn with_rate(rate: f64) -> Calendar {
        let shift = (0..6).find(|&s| rate * f64::from(1u32 << s) >= 256.0).unwrap_or(6);
        Calendar::new(shift, (rate * f64::from(1u32 << shift)).round() as u32)
    }

    #[inline(always)]
    fn bucket(&mut self, n: u64) -> &mut Bucket {
        &mut self.buckets[n as usize % BUCKETS]
    }

    /// Number of the oldest bucket that is still kept.
    #[inline(always)]
    fn first(&self) -> u64 {
        (self.newest + 1).saturating_sub(BUCKETS as u64)
    }

    /// Bucket `n` is asked for: those that it leaves behind are used again.
    #[inline(always)]
    fn reach(&mut self, n: u64) {
        if n - self.newest.min(n) > BUCKETS as u64 {
            self.newest = n - BUCKETS as u64;
        }
        while self.newest < n {
            self.newest += 1;
            *self.bucket(self.newest) = UNUSED;
        }
    }

    /// The first bucket from number `n` on that has room, and that room.
    #[inline(always)]
    fn with_room(&mut self, mut n: u64) -> (u64, u32) {
        loop {
            self.reach(n);
            let room = self.room;
            let Bucket { used, skip } = *self.bucket(n);
            if u32::from(used) < room {
                return (n, room - u32::from(used));
            }
            // Who asks again for a full stretch passes over it in longer and longer steps.
            let next = n + u64::from(skip);
            if next <= self.newest {
                let beyond = *self.bucket(next);
                if u32::from(beyond.used) >= room {
                    self.bucket(n).skip = skip + beyond.skip;
                }
            }
            n = next;
        }
    }

    /// Units will be taken at about this time.
    #[inline(always)]
    pub fn expect(&self, at: Cycle) {
        prefetch_at(&self.buckets[(at.0 >> self.shift) as usize % BUCKETS]);
    }

    /// Takes `units` at `at` or as soon after as there is room; the cycle at which the last of them passes.
    #[inline]
    pub fn take(&mut self, at: Cycle, units: u32) -> Cycle {
        let wanted = at.0 >> self.shift;
        // Mostly the first bucket is one of those that are kept, and has room.
        if self.newest.wrapping_sub(wanted) >= BUCKETS as u64 {
            if wanted < self.newest {
                return self.take_later(wanted, at, units);
            }
            self.reach(wanted);
        }
        let (room, unit) = (self.room, self.unit);
        let bucket = self.bucket(wanted);
        let used = u32::from(bucket.used) + units;
        if used > room {
            return self.take_later(wanted, at, units);
        }
        bucket.used = used as u16;
        let share = (u64::from(used) * unit) >> 32;
        Cycle((wanted << self.shift) + share.saturating_sub(1)).later(at)
    }

    /// The same where the first bucket has not enough room.
    fn take_later(&mut self, wanted: u64, at: Cycle, units: u32) -> Cycle {
        let mut n = wanted.max(self.first());
        let mut left = units;
        loop {
            let (found, free) = self.with_room(n);
            n = found;
            let bucket = &mut self.buckets[n as usize % BUCKETS];
            if left <= free {
                bucket.used += left as u16;
                // Inside a bucket units pass one after the other.
                let share = (u64::from(bucket.used) * self.unit) >> 32;
                let passed = Cycle((n << self.shift) + share.saturating_sub(1));
                return if n == wanted { passed.later(at) } else { passed };
            }
            left -= free;
            bucket.used += free as u16;
            n += 1;
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.buckets.fill(UNUSED);
        self.newest = 0;
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
