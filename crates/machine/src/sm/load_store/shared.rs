//! Shared memory: 32 banks of four bytes. Lanes that want the same word share it; different words of one bank take a
//! pass each. Accesses of 8 bytes go by half warps, those of 16 bytes by quarters.

use super::coalesce::lanes;
use simt::resident::{Access, Where};

/// Shapes of tiles that are remembered.
const SHAPES: usize = 64;

/// Passes of accesses whose lanes are a tile: they depend on the steps between lanes only, since all banks are alike, and
/// a program has few such shapes.
pub struct Shapes {
    known: Box<[([u32; 6], (u32, u32)); SHAPES]>,
}

impl Default for Shapes {
    fn default() -> Shapes {
        // No access has 0 bytes.
        Shapes { known: Box::new([([0; 6], (1, 1)); SHAPES]) }
    }
}

impl Shapes {
    /// Passes through the banks that the lanes of `mask` need, and those that a conflict-free access of this size needs.
    #[inline]
    pub fn passes(&mut self, access: &Access, mask: u32) -> (u32, u32) {
        let (Where::Tile(_, [a, b, c, d, e]), u32::MAX) = (access.place, mask) else {
            return passes(access, mask);
        };
        let shape = [a, b, c, d, e, access.size];
        let mix = shape.iter().fold(0u32, |h, &x| (h ^ x).wrapping_mul(0x9e37_79b1));
        let place = &mut self.known[(mix >> 26) as usize % SHAPES];
        if place.0 != shape {
            *place = (shape, passes(access, mask));
        }
        place.1
    }
}

/// Passes through the banks that the lanes of `mask` need, and those that a conflict-free access of this size needs.
pub fn passes(access: &Access, mask: u32) -> (u32, u32) {
    let parts: u32 = match access.size {
        0..=4 => 1,
        5..=8 => 2,
        _ => 4,
    };
    match access.place {
        // All lanes get the same words: 8 bytes in a pass.
        Where::Same(_) => (parts.div_ceil(2), parts.div_ceil(2)),
        Where::Consecutive(_) if access.size >= 4 => {
            let width = 32 / parts;
            let used = (0..parts).filter(|p| mask >> (p * width) & part_mask(width) != 0).count() as u32;
            (used.max(1), used.max(1))
        }
        Where::Consecutive(base) => {
            // Bytes and half words: at most 64 bytes and what alignment adds, never two words of a bank.
            debug_assert!(base % u64::from(access.size.max(1)) == 0);
            (1, 1)
        }
        Where::Tile(..) | Where::Halves(..) | Where::Lanes => {
            let width = 32 / parts;
            let (mut sum, mut ideal) = (0, 0);
            for part in 0..parts {
                let m = mask & part_mask(width) << (part * width);
                if m != 0 {
                    sum += degree(access, m);
                    ideal += 1;
                }
            }
            (sum.max(1), ideal.max(1))
        }
    }
}

#[inline(always)]
fn part_mask(width: u32) -> u32 {
    u32::MAX >> (32 - width)
}

/// The most different words that lanes of `mask` want of one bank.
fn degree(access: &Access, mask: u32) -> u32 {
    let words = (access.size / 4).max(1);
    // Words wanted of each bank. Lanes mostly ascend: then a word is new or the last one again. The others look
    // through the bank's words so far, which are chained.
    let mut count = [0u8; 32];
    let mut head = [u8::MAX; 32];
    let mut chain = [(0u32, 0u8); 32];
    let (mut used, mut most) = (0, 1);
    let mut above = 0;
    let mut ascends = true;
    for lane in lanes(mask) {
        let first = (access.address(lane) / 4) as u32;
        ascends &= first + words >= above;
        let new = if ascends { first.max(above) } else { first };
        above = above.max(first + words);
        for w in new..first + words {
            let bank = (w % 32) as usize;
            let mut at = if ascends { u8::MAX } else { head[bank] };
            while at != u8::MAX && chain[at as usize].0 != w {
                at = chain[at as usize].1;
            }
            // A part of a warp wants 32 words at most.
            if at == u8::MAX && used < 32 {
                chain[used] = (w, head[bank]);
                head[bank] = used as u8;
                used += 1;
                count[bank] += 1;
                most = most.max(u32::from(count[bank]));
            }
        }
    }
    most
}

/// The most lanes of `mask` on one address: atomics on it follow each other.
pub fn depth(access: &Access, mask: u32) -> u32 {
    match access.place {
        Where::Same(_) => mask.count_ones().max(1),
        Where::Consecutive(_) => 1,
        Where::Tile(..) | Where::Halves(..) | Where::Lanes => {
            let mut seen = [(0u64, 0u32); 32];
            let (mut n, mut most) = (0, 1);
            for lane in lanes(mask) {
                let a = access.address(lane);
                match seen[..n].iter_mut().find(|s| s.0 == a) {
                    Some(s) => {
                        s.1 += 1;
                        most = most.max(s.1);
                    }
                    None => {
                        seen[n] = (a, 1);
                        n += 1;
                    }
                }
            }
            most
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_tile_needs_the_same_passes_wherever_it_is(
            steps in proptest::array::uniform5(prop_oneof![0u32..64, Just(128u32), Just(4096u32), Just(132u32)]),
            base in 0u32..4096,
            size in prop_oneof![Just(4u32), Just(8), Just(16)],
        ) {
            let steps = steps.map(|s| s * size);
            let mut shapes = Shapes::default();
            for base in [0, base * size] {
                let place = Where::Tile(base.into(), steps);
                let tile = Access { size, place, shared: u32::MAX, mask: u32::MAX, ..Access::default() };
                let lanes = std::array::from_fn(|n| tile.address(n as u32));
                let each = Access { place: Where::Lanes, lanes, ..tile.clone() };
                prop_assert_eq!(shapes.passes(&tile, u32::MAX), passes(&each, u32::MAX));
            }
        }
    }
}
