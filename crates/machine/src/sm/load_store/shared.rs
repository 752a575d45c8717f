//! Shared memory: 32 banks of four bytes. Lanes that want the same word share it; different words of one bank take a
//! pass each. Accesses of 8 bytes go by half warps, those of 16 bytes by quarters.

use super::coalesce::lanes;
use simt::resident::{Access, Where};

/// Passes through the banks that the lanes of `mask` need, and those that a conflict-free access of this size needs.
#[inline]
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
        Where::Lanes => {
            let width = 32 / parts;
            let (mut sum, mut ideal) = (0, 0);
            for part in 0..parts {
                let m = mask & part_mask(width) << (part * width);
                if m != 0 {
                    sum += degree(&access.lanes, m, access.size);
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
fn degree(addresses: &[u64; 32], mask: u32, size: u32) -> u32 {
    let words = (size / 4).max(1);
    // Words wanted of each bank. Lanes mostly ascend: then a word is new or the last one again. The others look
    // through the bank's words so far, which are chained.
    let mut count = [0u8; 32];
    let mut head = [u8::MAX; 32];
    let mut chain = [(0u32, 0u8); 32];
    let (mut used, mut most) = (0, 1);
    let mut above = 0;
    let mut ascends = true;
    for lane in lanes(mask) {
        let first = (addresses[lane as usize] / 4) as u32;
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
        Where::Lanes => {
            let mut seen = [(0u64, 0u32); 32];
            let (mut n, mut most) = (0, 1);
            for lane in lanes(mask) {
                let a = access.lanes[lane as usize];
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
