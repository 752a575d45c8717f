//! Stores of neighbouring words to shared or local memory become one vector store, where the address is known to be aligned.
//!
//! The vector store stands where the last of them stood. Nothing between the first and the last may read or write that
//! memory at another base, or let others do so. Global memory is left as it is, as NVIDIA's assembler leaves it however
//! well a pointer is known to be aligned.

use crate::merge_loads::{is_mergeable, split, trailing_zeros};
use crate::places::Places;
use ir::{Access, Function, InstId, Op, Space, Value};
use std::collections::{HashMap, HashSet};

/// Stores to one base with nothing between them: offset, place among them, instruction.
struct Group {
    space: Space,
    base: Value,
    stores: Vec<(i64, usize, InstId)>,
}

pub fn run(f: &mut Function, places: &Places) {
    for b in f.layout.clone() {
        // At most one group of a kind of memory is open: bases may be the same place.
        let mut open: Vec<Group> = Vec::new();
        let mut done: Vec<Group> = Vec::new();
        for &i in &f.block(b).insts {
            let inst = f.inst(i);
            match inst.op {
                Op::Store(a) if inst.guard.is_none() && is_mergeable(&a) => {
                    let (base, offset) = split(f, inst.args[0]);
                    let at = offset + a.offset;
                    let is_new = |g: &Group| g.base != base || g.stores.iter().any(|s| s.0 == at);
                    close(&mut open, &mut done, |g| g.space == a.space && is_new(g));
                    match open.iter_mut().find(|g| g.space == a.space) {
                        Some(g) => g.stores.push((at, g.stores.len(), i)),
                        None => open.push(Group { space: a.space, base, stores: vec![(at, 0, i)] }),
                    }
                }
                Op::Load(a) | Op::Store(a) => {
                    close(&mut open, &mut done, |g| g.space == a.space || a.space == Space::Generic);
                }
                op if op.is_pure() => {}
                _ => done.append(&mut open),
            }
        }
        done.append(&mut open);
        let mut change = Change::default();
        for group in done.into_iter().filter(|g| g.stores.len() > 1) {
            merge(f, places, group, &mut change);
        }
        change.apply(f, b);
    }
}

fn close(open: &mut Vec<Group>, done: &mut Vec<Group>, is_over: impl Fn(&Group) -> bool) {
    done.extend(open.extract_if(.., |g| is_over(g)));
}

/// What becomes of the stores of a block: the last of a vector is the vector.
#[derive(Default)]
struct Change {
    instead: HashMap<InstId, InstId>,
    gone: HashSet<InstId>,
}

impl Change {
    fn apply(self, f: &mut Function, b: ir::Block) {
        if !self.instead.is_empty() {
            f.block_mut(b).insts.retain_mut(|i| {
                if let Some(&vector) = self.instead.get(i) {
                    *i = vector;
                }
                !self.gone.contains(i)
            });
        }
    }
}

/// Finds runs of four or two words in a group.
fn merge(f: &mut Function, places: &Places, group: Group, change: &mut Change) {
    let zeros = trailing_zeros(f, places, group.base, 8);
    let mut stores = group.stores;
    stores.sort_unstable();
    let mut rest = &stores[..];
    while let Some(&(start, ..)) = rest.first() {
        let run = |count: usize| {
            let words = rest.get(..count)?;
            let next = words.iter().enumerate().all(|(k, w)| w.0 == start + 4 * k as i64);
            let bits = (4 * count as u64).trailing_zeros();
            (next && zeros >= bits && start % (4 * count as i64) == 0).then_some(words)
        };
        let Some(words) = run(4).or_else(|| run(2)) else {
            rest = &rest[1..];
            continue;
        };
        rest = &rest[words.len()..];
        let Some(&(offset, _, last)) = words.iter().max_by_key(|w| w.1) else { continue };
        let inst = f.inst(last).clone();
        let Op::Store(a) = inst.op else { continue };
        let access = Access { count: words.len() as u8, offset: a.offset - (offset - start), ..a };
        let mut args = vec![inst.args[0]];
        args.extend(words.iter().map(|w| f.inst(w.2).args[1]));
        let vector = f.make_inst(Op::Store(access), &args, &[], None, inst.loc);
        change.gone.extend(words.iter().map(|w| w.2).filter(|&i| i != last));
        change.instead.insert(last, vector);
    }
}
