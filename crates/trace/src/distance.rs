//! How far two distributions are apart: the share that one would have to move to become the other.

use std::collections::BTreeMap;

/// A distribution: weights by what they are of. They need not add up to 1.
pub type Weights<K> = BTreeMap<K, f64>;

/// Total variation distance: 0 for equal shares, 1 for nothing in common or where one has no weight.
pub fn total_variation<K: Ord>(a: &Weights<K>, b: &Weights<K>) -> f64 {
    let sum = |w: &Weights<K>| w.values().sum::<f64>();
    let (all_a, all_b) = (sum(a), sum(b));
    if all_a <= 0.0 || all_b <= 0.0 {
        return if all_a == all_b { 0.0 } else { 1.0 };
    }
    let of = |w: &Weights<K>, k: &K| w.get(k).copied().unwrap_or(0.0);
    let in_a: f64 = a.iter().map(|(k, n)| (n / all_a - of(b, k) / all_b).abs()).sum();
    let only_b: f64 = b.iter().filter(|(k, _)| !a.contains_key(k)).map(|(_, n)| n / all_b).sum();
    (in_a + only_b) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_that_move() {
        let w = |list: &[(&'static str, f64)]| list.iter().copied().collect::<Weights<&str>>();
        let a = w(&[("x", 1.0), ("y", 3.0)]);
        assert_eq!(total_variation(&a, &a), 0.0);
        assert_eq!(total_variation(&a, &w(&[("x", 30.0), ("y", 10.0)])), 0.5);
        assert_eq!(total_variation(&a, &w(&[("z", 1.0)])), 1.0);
        assert_eq!(total_variation(&a, &w(&[])), 1.0);
    }
}
