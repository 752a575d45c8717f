//! Random walks through memory, as pointer chases need them.
//!
//! The GPU's numbers come from other permutations of the same lines: any random order gives the same hit rates.

use driver::init::splitmix;
use std::collections::HashMap;

/// The first `steps + 1` places of a random cycle over `places` places, starting at 0. Where the cycle is not longer than that
/// it is whole, and the last place is 0 again.
pub fn walk(places: u64, steps: u64, seed: u64) -> Vec<u64> {
    let count = steps.min(places - 1);
    // A shuffle that keeps only the places that moved: cheap for a short walk through a large buffer.
    let mut moved: HashMap<u64, u64> = HashMap::new();
    let mut order = vec![0];
    for i in 1..=count {
        let j = i + splitmix(seed, i) % (places - i);
        let at = |moved: &HashMap<u64, u64>, n: u64| moved.get(&n).copied().unwrap_or(n);
        order.push(at(&moved, j));
        let displaced = at(&moved, i);
        moved.insert(j, displaced);
    }
    if count < steps {
        order.push(0);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_walk_is_a_cycle_through_all_places() {
        let order = walk(1000, 5000, 1);
        assert_eq!((order.len(), order[0], order[1000]), (1001, 0, 0));
        let mut sorted = order[..1000].to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..1000).collect::<Vec<_>>());
        // Neighbours in the walk are no neighbours in memory.
        assert!(order.windows(2).filter(|w| w[0].abs_diff(w[1]) <= 8).count() < 50);
    }

    #[test]
    fn a_short_walk_meets_no_place_twice() {
        let order = walk(1 << 23, 16384, 1);
        assert_eq!(order.len(), 16385);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 16385);
        assert!(order.iter().all(|p| *p < 1 << 23));
    }
}
