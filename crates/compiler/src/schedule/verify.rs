//! Checks an order without the dependence graph: every instruction finds in each register what the same instruction left there
//! before, the region leaves the same behind, and accesses to memory that may meet keep their order.

use super::effects::{Touches, access_bytes};
use super::graph::{Units, address_units};
use crate::mir::MInst;
use std::collections::BTreeMap;

/// Pairs of accesses that are compared; longer regions are checked in part.
const COMPARED: usize = 400;

/// Panics where `order` changes what the region computes. For debug builds.
pub fn verify(units: &Units, region: &[MInst], order: &[usize]) {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..region.len()), "an order names every instruction once");
    let (source_reads, source_left) = trace(units, region, 0..region.len());
    let (reads, left) = trace(units, region, order.iter().copied());
    for n in 0..region.len() {
        assert_eq!(reads[n], source_reads[n], "{:?} reads something else", region[n]);
    }
    assert_eq!(left, source_left, "something else is left behind");
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &n)| place[n] = at);
    let memory: Vec<usize> = (0..region.len())
        .filter(|&n| Touches::of(&region[n]).is_memory() || Touches::of(&region[n]).lanes)
        .take(COMPARED)
        .collect();
    for (k, &a) in memory.iter().enumerate() {
        for &b in &memory[k + 1..] {
            let exchanged = place[a] > place[b];
            assert!(
                !exchanged || may_exchange(units, region, &source_reads, a, b),
                "{:?} and {:?} were exchanged",
                region[a],
                region[b]
            );
        }
    }
}

/// The instruction that wrote each unit an instruction reads, `None` for what came from above; and the last to write each.
type Trace = (Vec<Vec<Option<usize>>>, BTreeMap<u32, usize>);

fn trace(units: &Units, region: &[MInst], order: impl Iterator<Item = usize>) -> Trace {
    let mut last: BTreeMap<u32, usize> = BTreeMap::new();
    let mut reads = vec![Vec::new(); region.len()];
    for n in order {
        units.for_each_read(&region[n], |u| reads[n].push(last.get(&u).copied()));
        units.for_each_write(&region[n], |u| {
            last.insert(u, n);
        });
    }
    (reads, last)
}

/// Two accesses do not care which comes first.
fn may_exchange(units: &Units, region: &[MInst], reads: &[Vec<Option<usize>>], a: usize, b: usize) -> bool {
    let (x, y) = (Touches::of(&region[a]), Touches::of(&region[b]));
    if x.lanes && y.lanes {
        return false;
    }
    let meet = x.writes.meets(y.writes) || x.writes.meets(y.reads) || x.reads.meets(y.writes);
    if !meet {
        return true;
    }
    // The same address register with what the same instruction left in it.
    let (i, j) = (&region[a], &region[b]);
    let base = |n: usize| {
        let mut writers = BTreeMap::new();
        let mut at = 0;
        units.for_each_read(&region[n], |u| {
            writers.insert(u, reads[n][at]);
            at += 1;
        });
        address_units(units, &region[n]).map(|u| (u, writers[&u])).collect::<Vec<_>>()
    };
    let bytes = |i: &MInst| {
        let offset = i64::from(i.src[1].imm_bits()? as i32);
        Some(offset..offset + i64::from(access_bytes(i)?))
    };
    let (Some(r), Some(s)) = (bytes(i), bytes(j)) else { return false };
    x.is_plain && y.is_plain && base(a) == base(b) && (r.end <= s.start || s.end <= r.start)
}
