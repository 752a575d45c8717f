//! Items in groups, all in one list: a group for each number from zero on.

/// Lists by number.
#[derive(Clone, Debug)]
pub struct Groups<T> {
    /// Where each list ends.
    ends: Vec<u32>,
    items: Vec<T>,
}

impl<T: Copy + Default> Groups<T> {
    /// Puts each item into its list; those of one list stay in their order.
    pub fn new(count: usize, items: impl Iterator<Item = (u32, T)> + Clone) -> Self {
        let mut ends = vec![0u32; count + 1];
        items.clone().for_each(|(n, _)| ends[n as usize + 1] += 1);
        for n in 1..=count {
            ends[n] += ends[n - 1];
        }
        let mut list = vec![T::default(); ends[count] as usize];
        // What is a list's start moves to its end as the list fills.
        for (n, item) in items {
            let at = &mut ends[n as usize];
            list[*at as usize] = item;
            *at += 1;
        }
        ends.pop();
        Groups { ends, items: list }
    }

    pub fn of(&self, n: usize) -> &[T] {
        let start = if n == 0 { 0 } else { self.ends[n - 1] };
        &self.items[start as usize..self.ends[n] as usize]
    }

    /// All items of all lists, one list after the other.
    pub fn items_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}

#[cfg(test)]
mod tests {
    use super::Groups;

    #[test]
    fn items_stay_in_order_within_their_list() {
        let g = Groups::new(4, [(2, 'a'), (0, 'b'), (2, 'c'), (3, 'd')].into_iter());
        assert_eq!((g.of(0), g.of(1), g.of(2), g.of(3)), (&['b'][..], &[][..], &['a', 'c'][..], &['d'][..]));
    }
}
