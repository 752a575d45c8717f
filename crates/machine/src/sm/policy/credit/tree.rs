//! The comparison network: a tree of comparators finds the greatest weight.
//!
//! A comparator keeps the greater of two entrants, on equal weights the one of the higher rank; ranks differ. That is a
//! total order, so the winner is the same for every shape of the tree. The simulator folds from one end.

/// A warp that takes part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Entrant {
    pub weight: i64,
    /// Higher for warps that started earlier.
    pub rank: u32,
    pub bit: u32,
}

/// One comparator.
#[inline(always)]
pub fn compare(a: Entrant, b: Entrant) -> Entrant {
    if (a.weight, a.rank) >= (b.weight, b.rank) { a } else { b }
}

/// The winner.
#[inline(always)]
pub fn winner(entrants: impl Iterator<Item = Entrant>) -> Option<Entrant> {
    entrants.reduce(compare)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A tree whose nodes split where `cuts` says.
    fn tree(entrants: &[Entrant], cuts: &mut impl Iterator<Item = usize>) -> Option<Entrant> {
        match entrants {
            [] => None,
            [one] => Some(*one),
            _ => {
                let cut = 1 + cuts.next().unwrap_or(0) % (entrants.len() - 1);
                let (a, b) = entrants.split_at(cut);
                let (a, b) = (tree(a, cuts), tree(b, cuts));
                a.zip(b).map(|(a, b)| compare(a, b)).or(a).or(b)
            }
        }
    }

    proptest! {
        #[test]
        fn the_winner_does_not_depend_on_the_shape(
            weights in prop::collection::vec(-3i64..3, 1..48),
            shapes in prop::collection::vec(prop::collection::vec(0usize..64, 48), 1..4),
            turn in 0usize..48,
        ) {
            let mut entrants: Vec<Entrant> = weights
                .iter()
                .enumerate()
                .map(|(n, &weight)| Entrant { weight, rank: n as u32 * 7 % 64, bit: n as u32 })
                .collect();
            let first = winner(entrants.iter().copied());
            let most = weights.iter().max().copied();
            prop_assert_eq!(first.map(|e| e.weight), most);
            for shape in shapes {
                // Another order at the leaves, too.
                let n = turn % entrants.len();
                entrants.rotate_left(n);
                prop_assert_eq!(tree(&entrants, &mut shape.into_iter()), first);
            }
        }
    }
}
