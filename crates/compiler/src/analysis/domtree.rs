//! The dominator tree, with constant-time queries.

use ir::{Block, Function};
use std::ops::Range;

/// Which block dominates which. Blocks that the entry does not reach dominate nothing.
pub struct DomTree {
    idom: Vec<Option<Block>>,
    children: Vec<Vec<Block>>,
    preorder: Vec<Block>,
    places: Vec<Place>,
}

/// Where a block stands in the tree.
#[derive(Clone, Copy, Default)]
struct Place {
    /// Where it and what it dominates stand in the preorder; nowhere if unreachable.
    from: u32,
    to: u32,
    depth: u32,
}

impl DomTree {
    pub fn new(f: &Function) -> Self {
        let idom = ir::dominators(f);
        let mut children = vec![Vec::new(); f.blocks.len()];
        for b in f.reverse_postorder() {
            if let Some(up) = idom[b.index()] {
                children[up.index()].push(b);
            }
        }
        let mut places = vec![Place::default(); f.blocks.len()];
        let mut preorder = Vec::with_capacity(f.layout.len());
        let mut stack = vec![(f.entry(), 0)];
        while let Some((b, next)) = stack.pop() {
            if next == 0 {
                let depth = idom[b.index()].map_or(0, |up| places[up.index()].depth + 1);
                places[b.index()] = Place { from: preorder.len() as u32, to: 0, depth };
                preorder.push(b);
            }
            if let Some(&child) = children[b.index()].get(next) {
                stack.push((b, next + 1));
                stack.push((child, 0));
            } else {
                places[b.index()].to = preorder.len() as u32;
            }
        }
        DomTree { idom, children, preorder, places }
    }

    pub fn idom(&self, b: Block) -> Option<Block> {
        self.idom[b.index()]
    }

    pub fn children(&self, b: Block) -> &[Block] {
        &self.children[b.index()]
    }

    /// Reachable blocks, each after its dominators.
    pub fn preorder(&self) -> &[Block] {
        &self.preorder
    }

    /// The places in the preorder of `b`, which comes first, and what it dominates.
    pub fn subtree(&self, b: Block) -> Range<usize> {
        let Place { from, to, .. } = self.places[b.index()];
        from as usize..to as usize
    }

    /// How many other blocks dominate `b`.
    pub fn depth(&self, b: Block) -> u32 {
        self.places[b.index()].depth
    }

    pub fn is_reachable(&self, b: Block) -> bool {
        !self.subtree(b).is_empty()
    }

    /// Every path from the entry to `b` goes through `a` (a block dominates itself).
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        self.is_reachable(b) && self.subtree(a).contains(&self.subtree(b).start)
    }
}
