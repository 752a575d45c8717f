//! Which blocks every path to a block passes, for machine code.

use crate::mir::MFunction;
use ir::Edges;

pub struct Dominators {
    /// The closest block that every path to a block passes; none for the entry and for blocks that nothing leads to.
    parents: Vec<Option<usize>>,
    /// How many blocks stand above each.
    depth: Vec<u32>,
    /// The places of a block and of what it dominates in a walk of the tree; from 1 on, 0 for what nothing leads to.
    places: Vec<(u32, u32)>,
}

impl Dominators {
    pub fn new(f: &MFunction) -> Self {
        let n = f.blocks.len();
        let edges: Vec<(u32, u32)> =
            (0..n).flat_map(|b| f.successors(b).into_iter().map(move |s| (b as u32, s as u32))).collect();
        let parents = ir::immediate_dominators(&Edges::new(n, &edges), 0);
        let down: Vec<(u32, u32)> =
            (0..n).filter_map(|b| parents[b].map(|up| (up as u32, b as u32))).collect();
        let children = Edges::new(n, &down);
        let mut depth = vec![0; n];
        let mut places = vec![(0, 0); n];
        let mut last = 0;
        let mut stack = vec![(0, 0)];
        while let Some((b, next)) = stack.pop() {
            if next == 0 {
                last += 1;
                places[b].0 = last;
                depth[b] = parents[b].map_or(0, |up| depth[up] + 1);
            }
            match children.from(b).get(next) {
                Some(&child) => stack.extend([(b, next + 1), (child as usize, 0)]),
                None => places[b].1 = last + 1,
            }
        }
        Dominators { parents, depth, places }
    }

    pub fn parent(&self, b: usize) -> Option<usize> {
        self.parents[b]
    }

    /// The closest block above all of some: it is that of the first and the last of them in the walk.
    pub fn common(&self, blocks: impl Iterator<Item = usize> + Clone) -> Option<usize> {
        let mut a = blocks.clone().min_by_key(|&b| self.places[b])?;
        let mut b = blocks.max_by_key(|&b| self.places[b])?;
        while a != b {
            let up = if self.depth[a] >= self.depth[b] { &mut a } else { &mut b };
            match self.parents[*up] {
                Some(parent) => *up = parent,
                None => return Some(*up),
            }
        }
        Some(a)
    }

    /// Every path to `b` passes `a`.
    pub fn dominates(&self, a: usize, b: usize) -> bool {
        a == b || (self.places[a].0..self.places[a].1).contains(&self.places[b].0)
    }

    /// A block's place in a walk of the tree, in which what a block dominates follows it without anything between.
    pub fn place(&self, b: usize) -> u32 {
        self.places[b].0
    }
}
