//! Moves instructions within a block so that a value carried round a loop and its successor never live at once: the copy
//! between them then costs nothing.
//!
//! Where the next value is made before the last read of the old one, the instruction that makes it goes behind that read,
//! or the reads go in front of it, if nothing between depends on them.

use crate::mir::{MFunction, MInst, Sub};
use isa::Effects;

pub fn untangle(f: &mut MFunction) {
    if f.keeps_order {
        return;
    }
    let from = only_predecessors(f);
    // Copies at the ends of blocks, with the block whose code leads there.
    let mut copies: Vec<(usize, Sub, Sub)> = Vec::new();
    for b in 0..f.blocks.len() {
        if f.blocks[b].depth == 0 {
            continue;
        }
        let from = if f.blocks[b].insts.iter().all(|i| i.as_copy().is_some()) { from[b] } else { Some(b) };
        let Some(from) = from else { continue };
        copies
            .extend(f.blocks[b].insts.iter().filter_map(MInst::as_copy).map(|(to, value)| (from, to, value)));
    }
    for (b, old, new) in copies {
        separate(&mut f.blocks[b].insts, old, new);
    }
}

/// The block that alone goes to each block, if it is one.
fn only_predecessors(f: &MFunction) -> Vec<Option<usize>> {
    let mut from = vec![None; f.blocks.len()];
    let mut several = vec![false; f.blocks.len()];
    for b in 0..f.blocks.len() {
        for s in f.successors(b) {
            several[s] |= from[s].is_some_and(|p| p != b);
            from[s] = Some(b);
        }
    }
    from.iter().zip(several).map(|(p, several)| p.filter(|_| !several)).collect()
}

/// Brings the reads of `old` in front of the write of `new`.
fn separate(insts: &mut [MInst], old: Sub, new: Sub) {
    let writes_new = |i: &MInst| i.written().is_some_and(|(s, w)| covers(s, w, new));
    let mut made = insts.iter().enumerate().filter(|(_, i)| writes_new(i));
    let (Some((at, _)), None) = (made.next(), made.next()) else { return };
    let is_copy_out = |i: &MInst| i.as_copy().is_some_and(|(to, _)| to == old);
    let reads_old = |i: &MInst| {
        let mut reads = false;
        i.for_each_read(|s, w| reads |= covers(s, w, old));
        reads
    };
    let end = insts.iter().position(is_copy_out).unwrap_or(insts.len());
    let Some(last) = (at + 1..end).rev().find(|&n| reads_old(&insts[n])) else { return };
    // Down: what makes the new value moves behind the last read.
    if insts[at + 1..=last].iter().all(|i| can_exchange(&insts[at], i)) {
        insts[at..=last].rotate_left(1);
        return;
    }
    // Up: each read moves in front of what makes the new value.
    let mut front = at;
    for n in at + 1..=last {
        if reads_old(&insts[n]) {
            if !insts[front..n].iter().all(|i| can_exchange(i, &insts[n])) {
                return;
            }
            insts[front..=n].rotate_right(1);
            front += 1;
        }
    }
}

fn covers(s: Sub, width: u32, word: Sub) -> bool {
    s.reg == word.reg && s.at <= word.at && u32::from(word.at) < u32::from(s.at) + width
}

/// Two instructions may change places: neither touches what the other writes, and at most one touches memory or lanes.
fn can_exchange(a: &MInst, b: &MInst) -> bool {
    !has_effect(a) && !has_effect(b) && !disturbs(a, b) && !disturbs(b, a)
}

fn has_effect(i: &MInst) -> bool {
    i.call.is_some() || i.frame.is_some() || i.op().row().effects != Effects::NONE
}

/// `a` writes something that `b` reads or writes.
fn disturbs(a: &MInst, b: &MInst) -> bool {
    let mut hit = false;
    if let Some((d, w)) = a.written() {
        let touches = |s: Sub, width: u32| {
            s.reg == d.reg
                && u32::from(s.at) < u32::from(d.at) + w
                && u32::from(d.at) < u32::from(s.at) + width
        };
        b.for_each_read(|s, width| hit |= touches(s, width));
        hit |= b.written().is_some_and(|(s, width)| touches(s, width));
    }
    for p in a.pd.iter().flatten() {
        b.for_each_pred_read(|q| hit |= q == *p);
        hit |= b.pd.iter().flatten().any(|q| q == p);
    }
    hit
}
