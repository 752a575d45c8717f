//! Merges the two sides of copies that never live at once.

use super::liveness::{Live, Starts};
use crate::mir::{MFunction, Sub, VReg};
use std::collections::{BTreeMap, HashSet};

/// Which virtual register a register is now part of, and at which word.
struct Merged {
    into: Vec<(VReg, u8)>,
}

impl Merged {
    fn find(&mut self, s: Sub) -> Sub {
        let (mut reg, mut at) = (s.reg, s.at);
        loop {
            let (up, offset) = self.into[reg.index()];
            if up == reg {
                break;
            }
            at += offset;
            reg = up;
        }
        // Later look-ups go straight there.
        self.into[s.reg.index()] = (reg, at - s.at);
        Sub { reg, at }
    }
}

/// Merges what can be; `starts` follows.
pub fn coalesce(f: &mut MFunction, live: &Live, starts: &mut Starts) {
    let mut merged = Merged { into: (0..f.classes.len()).map(|n| (VReg::new(n), 0)).collect() };
    let mut copies: Vec<(u32, Sub, Sub)> = Vec::new();
    for b in &f.blocks {
        for i in &b.insts {
            if let Some((to, from)) = i.as_copy() {
                copies.push((b.depth, to, from));
            } else if let Some((to, from)) = i.as_pred_copy() {
                copies.push((b.depth, Sub { reg: to, at: 0 }, Sub { reg: from, at: 0 }));
            }
        }
    }
    // Copies between places that several copies lead to come first, then those in deep loops: where such places are apart, each
    // of the many values that reach both is copied for one of them; a value that is apart from one is copied alone.
    let mut written = vec![0u32; f.classes.len()];
    copies.iter().for_each(|(_, to, _)| written[to.reg.index()] += 1);
    let is_place = |s: &Sub| written[s.reg.index()] > 1;
    copies.sort_by_key(|(depth, to, from)| (!(is_place(to) && is_place(from)), std::cmp::Reverse(*depth)));
    let mut ranges = Ranges { live, joined: BTreeMap::new(), apart: HashSet::new() };
    for (_, to, from) in copies {
        merge(f, &live.base, &mut ranges, &mut merged, to, from);
    }
    let mut names: Vec<u32> = (0..starts.total() as u32).collect();
    for n in 0..f.classes.len() {
        let into = merged.find(Sub { reg: VReg::new(n), at: 0 });
        let to = live.base[into.reg.index()] + u32::from(into.at);
        live.units(f, VReg::new(n)).zip(to..).for_each(|(u, to)| names[u] = to);
    }
    starts.rename(|u| names[u as usize]);
    for b in &mut f.blocks {
        for i in &mut b.insts {
            i.for_each_sub_mut(|s, _, _| *s = merged.find(*s));
            i.for_each_pred_mut(|p, _| *p = merged.find(Sub { reg: *p, at: 0 }).reg);
        }
        b.insts.retain(|i| {
            i.as_copy().is_none_or(|(to, from)| to != from)
                && i.as_pred_copy().is_none_or(|(to, from)| to != from)
        });
        match &mut b.term {
            crate::mir::MTerm::Branch { cond, .. } => {
                if let Some(p) = &mut cond.reg {
                    *p = merged.find(Sub { reg: *p, at: 0 }).reg;
                }
            }
            crate::mir::MTerm::Table { place, .. } => *place = merged.find(*place),
            crate::mir::MTerm::Return { to, .. } => *to = merged.find(*to),
            _ => {}
        }
    }
}

/// Makes `to` and `from` one register if they never live at once.
fn merge(f: &MFunction, base: &[u32], ranges: &mut Ranges, merged: &mut Merged, to: Sub, from: Sub) {
    let (to, from) = (merged.find(to), merged.find(from));
    if to.reg == from.reg || [to, from].iter().any(|s| s.reg == f.sp || f.fixed[s.reg.index()].is_some()) {
        return;
    }
    let size = |s: Sub| f.class(s.reg).units();
    // The smaller becomes part of the larger; its first word then stands `at` words into it.
    let (large, small) = if size(to) >= size(from) { (to, from) } else { (from, to) };
    let Some(at) = large.at.checked_sub(small.at) else { return };
    let units = size(small);
    if u32::from(at) % units != 0 || u32::from(at) + units > size(large) {
        return;
    }
    let (large, small) = (large.reg, small.reg);
    let first = base[large.index()] as usize + at as usize;
    let second = base[small.index()] as usize;
    if ranges.apart.contains(&(first, second)) {
        return;
    }
    if (0..units as usize).any(|k| ranges.overlap(first + k, second + k)) {
        ranges.apart.insert((first, second));
        return;
    }
    (0..units as usize).for_each(|k| ranges.join(first + k, second + k));
    merged.into[small.index()] = (large, at);
}

/// Lists longer than this become trees while registers are merged: what many copies lead to grows a little with each.
const LONG: usize = 64;

/// Where units live.
struct Ranges<'a> {
    live: &'a Live,
    /// Units that are more, or less, than they were at first.
    joined: BTreeMap<usize, Joined>,
    /// Units that were found to live at once, and will whatever else becomes part of them.
    apart: HashSet<(usize, usize)>,
}

enum Joined {
    List(Vec<(u32, u32)>),
    /// Ends by start.
    Tree(BTreeMap<u32, u32>),
}

/// A look at the ranges of a unit.
#[derive(Clone, Copy)]
enum View<'a> {
    List(&'a [(u32, u32)]),
    Tree(&'a BTreeMap<u32, u32>),
}

impl Ranges<'_> {
    fn view(&self, unit: usize) -> View<'_> {
        match self.joined.get(&unit) {
            None => View::List(self.live.ranges(unit)),
            Some(Joined::List(list)) => View::List(list),
            Some(Joined::Tree(tree)) => View::Tree(tree),
        }
    }

    /// Do two units ever live at once?
    fn overlap(&self, a: usize, b: usize) -> bool {
        match (self.view(a), self.view(b)) {
            (View::List(a), View::List(b)) => overlap(a, b),
            (View::Tree(tree), View::List(list)) | (View::List(list), View::Tree(tree)) => {
                list.iter().any(|&r| meets(tree, r))
            }
            (View::Tree(x), View::Tree(y)) => {
                let (short, long) = if x.len() <= y.len() { (x, y) } else { (y, x) };
                short.iter().any(|(&from, &to)| meets(long, (from, to)))
            }
        }
    }

    /// Gives `a` the ranges of `b` too, of which none overlap; `b` has none afterwards.
    fn join(&mut self, a: usize, b: usize) {
        let (mine, other) = (self.take(a), self.take(b));
        let (long, short) = if mine.len() >= other.len() { (mine, other) } else { (other, mine) };
        let all = if long.len() + short.len() <= LONG {
            Joined::List(union(&long.into_list(), &short.into_list()))
        } else {
            let mut tree = long.into_tree();
            short.into_list().into_iter().for_each(|r| insert(&mut tree, r));
            Joined::Tree(tree)
        };
        self.joined.insert(a, all);
    }

    fn take(&mut self, unit: usize) -> Joined {
        let left = self.joined.insert(unit, Joined::List(Vec::new()));
        left.unwrap_or_else(|| Joined::List(self.live.ranges(unit).to_vec()))
    }
}

impl Joined {
    fn len(&self) -> usize {
        match self {
            Joined::List(list) => list.len(),
            Joined::Tree(tree) => tree.len(),
        }
    }

    fn into_list(self) -> Vec<(u32, u32)> {
        match self {
            Joined::List(list) => list,
            Joined::Tree(tree) => tree.into_iter().collect(),
        }
    }

    fn into_tree(self) -> BTreeMap<u32, u32> {
        match self {
            Joined::List(list) => list.into_iter().collect(),
            Joined::Tree(tree) => tree,
        }
    }
}

fn meets(tree: &BTreeMap<u32, u32>, (from, to): (u32, u32)) -> bool {
    tree.range(..to).next_back().is_some_and(|(_, &end)| end > from)
}

/// Adds a range that overlaps none; those that touch become one.
fn insert(tree: &mut BTreeMap<u32, u32>, (mut from, mut to): (u32, u32)) {
    if let Some(end) = tree.remove(&to) {
        to = end;
    }
    if let Some((&start, &end)) = tree.range(..from).next_back()
        && end == from
    {
        from = start;
    }
    tree.insert(from, to);
}

/// Do two ascending lists have a point in common?
pub fn overlap(a: &[(u32, u32)], b: &[(u32, u32)]) -> bool {
    // The shorter list is walked, the longer one searched.
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    if short.len() * 8 < long.len() {
        return short.iter().any(|&(from, to)| {
            let n = long.partition_point(|r| r.1 <= from);
            long.get(n).is_some_and(|r| r.0 < to)
        });
    }
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        if a[i].1 <= b[j].0 {
            i += 1;
        } else if b[j].1 <= a[i].0 {
            j += 1;
        } else {
            return true;
        }
    }
    false
}

fn union(a: &[(u32, u32)], b: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut all: Vec<(u32, u32)> = [a, b].concat();
    all.sort_unstable();
    let mut out: Vec<(u32, u32)> = Vec::with_capacity(all.len());
    for r in all {
        match out.last_mut() {
            Some(last) if last.1 == r.0 => last.1 = r.1,
            _ => out.push(r),
        }
    }
    out
}
