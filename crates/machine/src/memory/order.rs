//! The order in which a pair of slices serves the packets of an exchange: by cycle, then GPC, then as they were sent.

/// A packet: when it comes, counted from the first one of the exchange, and, in the lower half, its GPC and which of that one's
/// it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Key(u64);

/// Bits that tell which of a GPC's packets.
const INDEX: u32 = 24;

impl Key {
    #[inline(always)]
    fn new(after: u64, gpc: u32, index: u32) -> Key {
        Key(after.min(u32::MAX.into()) << u32::BITS | u64::from(gpc) << INDEX | u64::from(index))
    }

    #[inline(always)]
    fn after(self) -> u32 {
        (self.0 >> u32::BITS) as u32
    }

    /// Its GPC, and which of that one's it is.
    #[inline(always)]
    pub fn place(self) -> (u32, u32) {
        (self.0 as u32 >> INDEX, self.0 as u32 & ((1 << INDEX) - 1))
    }
}

/// As many are sorted by comparing, which takes few steps then.
const FEW: usize = 16;
/// Cycles for each packet up to which they are sorted by counting.
const SPARSE: usize = 8;

/// Packets in their order.
#[derive(Debug, Default)]
pub struct Order {
    keys: Vec<Key>,
    sorted: Vec<Key>,
    counts: Vec<u32>,
}

impl Order {
    pub fn clear(&mut self) {
        self.keys.clear();
    }

    /// Puts in packets: cycles after the first of all, GPC, and which of that one's. They come GPC by GPC.
    #[inline(always)]
    pub fn extend(&mut self, packets: impl Iterator<Item = (u64, u32, u32)>) {
        self.keys.extend(packets.map(|(after, gpc, index)| Key::new(after, gpc, index)));
    }

    pub fn list(&self) -> &[Key] {
        &self.keys
    }

    /// Brings them in order. Between equal cycles they are in it already, so counting cycles is enough.
    pub fn sort(&mut self) {
        let len = self.keys.len();
        if len <= FEW {
            return self.keys.sort_unstable();
        }
        let cycles = self.keys.iter().map(|key| key.after());
        let (first, last) = cycles.fold((u32::MAX, 0), |(a, b), at| (a.min(at), b.max(at)));
        let span = (last - first) as usize + 1;
        if span > SPARSE * len {
            return self.keys.sort_unstable();
        }
        self.counts.clear();
        self.counts.resize(span + 1, 0);
        let counts = self.counts.as_mut_slice();
        for key in &self.keys {
            counts[(key.after() - first) as usize + 1] += 1;
        }
        let mut before = 0;
        for count in counts.iter_mut() {
            before += *count;
            *count = before;
        }
        self.sorted.resize(len, Key::default());
        for &key in &self.keys {
            let next = &mut counts[(key.after() - first) as usize];
            self.sorted[*next as usize] = key;
            *next += 1;
        }
        std::mem::swap(&mut self.keys, &mut self.sorted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packets_are_in_the_order_of_their_keys(
            gpcs in prop::collection::vec(prop::collection::vec(0u64..300, 0..60), 1..9),
            late in 0u64..10_000,
        ) {
            let mut order = Order::default();
            let mut expected = Vec::new();
            for (g, packets) in (0..).zip(&gpcs) {
                let packets = || (0..).zip(packets).map(|(n, &at)| (at + if at == 7 { late } else { 0 }, g, n));
                order.extend(packets());
                expected.extend(packets());
            }
            order.sort();
            expected.sort_unstable();
            let places: Vec<_> = order.list().iter().map(|key| key.place()).collect();
            prop_assert_eq!(places, expected.into_iter().map(|(_, g, n)| (g, n)).collect::<Vec<_>>());
        }
    }
}
