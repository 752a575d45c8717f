//! Which blocks every path to a block passes, for machine code.

use crate::mir::MFunction;

pub struct Dominators {
    /// The closest block that every path to a block passes; none for the entry and for blocks that nothing leads to.
    parents: Vec<Option<usize>>,
    /// How many blocks stand above each.
    depth: Vec<u32>,
}

impl Dominators {
    pub fn new(f: &MFunction) -> Self {
        let n = f.blocks.len();
        let order = reverse_postorder(f);
        let mut place = vec![usize::MAX; n];
        order.iter().enumerate().for_each(|(k, &b)| place[b] = k);
        let mut preds = vec![Vec::new(); n];
        for &b in &order {
            for s in f.successors(b) {
                preds[s].push(b);
            }
        }
        let mut parents: Vec<Option<usize>> = vec![None; n];
        let mut changed = true;
        while changed {
            changed = false;
            for &b in order.iter().skip(1) {
                let mut known = preds[b].iter().copied().filter(|&p| p == order[0] || parents[p].is_some());
                let Some(first) = known.next() else { continue };
                let up = known.fold(first, |mut x, mut y| {
                    while x != y {
                        // Parents stand earlier in the order, so the later of the two goes up.
                        if place[x] > place[y] {
                            x = parents[x].unwrap_or(order[0]);
                        } else {
                            y = parents[y].unwrap_or(order[0]);
                        }
                    }
                    x
                });
                changed |= parents[b] != Some(up);
                parents[b] = Some(up);
            }
        }
        let mut depth = vec![0; n];
        for &b in order.iter().skip(1) {
            depth[b] = parents[b].map_or(0, |p| depth[p] + 1);
        }
        Dominators { parents, depth }
    }

    pub fn parent(&self, b: usize) -> Option<usize> {
        self.parents[b]
    }

    /// The closest block above both.
    pub fn common(&self, mut a: usize, mut b: usize) -> usize {
        while a != b {
            let up = if self.depth[a] >= self.depth[b] { &mut a } else { &mut b };
            match self.parents[*up] {
                Some(parent) => *up = parent,
                None => return *up,
            }
        }
        a
    }

    /// Every path to `b` passes `a`.
    pub fn dominates(&self, a: usize, mut b: usize) -> bool {
        while self.depth[b] > self.depth[a] {
            match self.parents[b] {
                Some(parent) => b = parent,
                None => return false,
            }
        }
        a == b
    }
}

fn reverse_postorder(f: &MFunction) -> Vec<usize> {
    let mut seen = vec![false; f.blocks.len()];
    let mut order = Vec::with_capacity(f.blocks.len());
    let mut stack = vec![(0, f.successors(0), 0)];
    seen[0] = true;
    while let Some((b, next, n)) = stack.last_mut() {
        match next.get(*n) {
            Some(&s) => {
                *n += 1;
                if !std::mem::replace(&mut seen[s], true) {
                    let successors = f.successors(s);
                    stack.push((s, successors, 0));
                }
            }
            None => {
                order.push(*b);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}
