//! Timelines and traffic by themselves.

use super::*;
use crate::counters::Counters;
use crate::stall::STALLS;
use proptest::prelude::*;

#[test]
fn steps_grow_and_lose_nothing() {
    let (mut b, mut states) = (Buckets::new(100, false), States::default());
    b.add(&mut states, Stall::Wait, 110, 150);
    b.add(&mut states, Stall::Selected, 150, 151);
    b.add(&mut states, Stall::Wait, 151, 151);
    let (mut long, mut others) = (Buckets::new(100, false), States::default());
    long.add(&mut others, Stall::Barrier, 105, 100_105);
    states.take_in(&mut others);
    let t = put_together(vec![b, long, Buckets::new(100, false)], &states);
    assert_eq!(t.step, 512);
    assert_eq!((t.sms.len(), t.states.len(), t.memory.len()), (3, 196, 196));
    let sum = |reason: Stall| t.states.iter().map(|s| s[reason as usize]).sum::<u64>();
    assert_eq!((sum(Stall::Wait), sum(Stall::Selected), sum(Stall::Barrier)), (40, 1, 100_000));
    assert_eq!(t.sms[1].warp_cycles[..2], [507, 512]);
    assert_eq!(t.sms[0].issued[0], 1);
    assert_eq!(t.states[0][Stall::Wait as usize], 40);
    assert_eq!(put_together(Vec::new(), &states).step, 0);
}

#[test]
fn traffic_is_shared_out_by_time() {
    let counts = |n: u64| Counters { l2_sectors: n, dram_read_bytes: 32 * n, ..Counters::default() };
    let (mut b, mut states) = (Buckets::new(0, false), States::default());
    b.add(&mut states, Stall::Wait, 0, 64);
    let mut t = put_together(vec![b], &states);
    assert_eq!((t.step, t.states.len(), t.states[0][Stall::Wait as usize]), (16, 4, 16));
    traffic(&mut t, &[(16, counts(10)), (48, counts(10)), (64, counts(26))]);
    assert_eq!(t.memory.iter().map(|m| m.l2_sectors).collect::<Vec<_>>(), [10, 0, 0, 16]);
    assert_eq!(t.memory.iter().map(|m| m.dram_read_bytes).sum::<u64>(), 26 * 32);
    assert_eq!(STALLS, t.states[0].len());
}

#[test]
fn causes_keep_reason_and_link() {
    use trace::profile::Link;
    for reason in Stall::ALL {
        for link in [Link::Register, Link::Barrier, Link::Store, Link::Queue, Link::Branch] {
            let mut causes = Causes::new(1);
            causes.add(0, reason, link, 9, 1);
            let found = causes.list()[0];
            assert_eq!((found.reason, found.link, found.cause), (reason, link, 9));
        }
    }
}

#[test]
fn causes_are_counted_wherever_they_are() {
    use trace::profile::Link;
    let mut causes = Causes::new(2);
    // More than there are places in the first line, the last of them the most frequent; and a count that is too large for it.
    for cause in 0..9 {
        (0..=cause).for_each(|_| causes.add(1, Stall::MathPipeThrottle, Link::Queue, cause, 3));
    }
    (0..3).for_each(|_| causes.add(0, Stall::LongScoreboard, Link::Register, 7, 3 << 30));
    let mut all = Causes::new(2);
    all.merge(&causes);
    all.merge(&causes);
    for (times, causes) in [(1, &causes), (2, &all)] {
        let list = causes.list();
        assert_eq!(list.len(), 10);
        assert_eq!((list[0].cause, list[0].cycles, list[0].count), (7, (9 * times) << 30, 3 * times));
        for (n, c) in (1..=9).rev().zip(&list[1..]) {
            assert_eq!((c.pc, u64::from(c.cause), c.cycles, c.count), (1, n - 1, 3 * n * times, n * times));
        }
    }
}

proptest! {
    /// The same as counting cycle by cycle.
    #[test]
    fn states_are_in_the_steps_of_their_cycles(
        has_many in any::<bool>(),
        all in prop::collection::vec((0u64..3_000, 1u64..2_000, prop::sample::select(vec![Stall::Wait, Stall::Barrier])), 1..40),
    ) {
        let (mut b, mut states) = (Buckets::new(0, has_many), States::default());
        for &(from, cycles, reason) in &all {
            b.add(&mut states, reason, from, from + cycles);
        }
        let t = put_together(vec![b], &states);
        for (n, state) in t.states.iter().enumerate() {
            let (start, end) = (n as u64 * t.step, (n as u64 + 1) * t.step);
            let within = |from: u64, until: u64| until.min(end).saturating_sub(from.max(start));
            let of = |reason: Stall| {
                all.iter().filter(|s| s.2 == reason).map(|s| within(s.0, s.0 + s.1)).sum::<u64>()
            };
            let (waits, blocked) = (of(Stall::Wait), of(Stall::Barrier));
            prop_assert_eq!((state[Stall::Wait as usize], state[Stall::Barrier as usize]), (waits, blocked));
            prop_assert_eq!(t.sms[0].warp_cycles[n], waits + blocked);
        }
    }
}
