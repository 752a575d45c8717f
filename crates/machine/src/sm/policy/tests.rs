//! Nobody starves: bounds on how long a warp that can issue all the time waits. Those of credits are beside them.

use super::{lrr, oldest};
use proptest::prelude::*;

const WARPS: u32 = 16;

/// The most issues of others between two of a warp that can issue in every cycle.
fn longest_wait(history: &[u64], waiting: u32, mut choose: impl FnMut(u64, u64) -> u32) -> u32 {
    let (mut waits, mut most) = (0, 0);
    for (now, able) in history.iter().enumerate() {
        let able = able & ((1 << WARPS) - 1) | 1 << waiting;
        let bit = choose(able, now as u64);
        assert!(able >> bit & 1 != 0, "it can issue");
        waits = if bit == waiting { 0 } else { waits + 1 };
        most = most.max(waits);
    }
    most
}

proptest! {
    #[test]
    fn round_robin_comes_around(history in prop::collection::vec(any::<u64>(), 1..500), waiting in 0..WARPS) {
        let mut last = 64;
        let most = longest_wait(&history, waiting, |able, _| {
            last = lrr::choose(able, last);
            last
        });
        prop_assert!(most < WARPS, "{most}");
    }

    #[test]
    fn who_comes_later_does_not_go_before(
        history in prop::collection::vec(any::<u64>(), 1..500), waiting in 0..WARPS,
    ) {
        // Since when each has been able to issue.
        let mut since = [None; WARPS as usize];
        let most = longest_wait(&history, waiting, |able, now| {
            for (b, since) in since.iter_mut().enumerate() {
                *since = if able >> b & 1 == 0 { None } else { since.or(Some(now)) };
            }
            let bit = oldest::choose(able, WARPS - 1, |b| since[b as usize].unwrap_or(u64::MAX));
            since[bit as usize] = None;
            bit
        });
        prop_assert!(most < WARPS, "{most}");
    }
}
