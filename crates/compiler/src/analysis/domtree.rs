//! The dominator tree, with constant-time queries.

use ir::{Block, Function};

/// Which block dominates which. Blocks that the entry does not reach dominate nothing.
pub struct DomTree {
    idom: Vec<Option<Block>>,
    children: Vec<Vec<Block>>,
    /// When a walk of the tree enters and leaves a block; 0 for unreachable ones.
    enter: Vec<u32>,
    leave: Vec<u32>,
    preorder: Vec<Block>,
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
        let (mut enter, mut leave) = (vec![0; f.blocks.len()], vec![0; f.blocks.len()]);
        let mut preorder = Vec::with_capacity(f.layout.len());
        let mut time = 1;
        let mut stack = vec![(f.entry(), 0)];
        while let Some((b, next)) = stack.pop() {
            if next == 0 {
                enter[b.index()] = time;
                time += 1;
                preorder.push(b);
            }
            if let Some(&child) = children[b.index()].get(next) {
                stack.push((b, next + 1));
                stack.push((child, 0));
            } else {
                leave[b.index()] = time;
                time += 1;
            }
        }
        DomTree { idom, children, enter, leave, preorder }
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

    pub fn is_reachable(&self, b: Block) -> bool {
        self.enter[b.index()] != 0
    }

    /// Every path from the entry to `b` goes through `a` (a block dominates itself).
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        self.is_reachable(a)
            && self.enter[a.index()] <= self.enter[b.index()]
            && self.leave[b.index()] <= self.leave[a.index()]
    }
}
