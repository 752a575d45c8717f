//! Post-dominators: the block where all paths from a block come together again.

use ir::{Block, Edges, Function};

/// Immediate post-dominators. A virtual exit follows every block that leaves the function; regions that never leave it
/// (endless loops) are tied to the virtual exit at one block.
pub struct PostDominators {
    ipdom: Vec<Option<Block>>,
    /// When a walk of the tree enters and leaves a block; 0 for unreachable ones.
    times: Vec<(u32, u32)>,
}

impl PostDominators {
    /// Dominators of the reversed graph.
    pub fn new(f: &Function) -> Self {
        let exit = f.blocks.len();
        let forward = f.reverse_postorder();
        let edges = ir::block_edges(f);
        let mut back: Vec<(u32, u32)> = Vec::with_capacity(2 * forward.len());
        for &b in &forward {
            back.extend(edges.from(b.index()).iter().map(|&s| (s, b.0)));
        }
        let preds = Edges::new(exit, &back);
        let mut seen = vec![false; exit];
        for &b in forward.iter().filter(|b| edges.from(b.index()).is_empty()) {
            back.push((exit as u32, b.0));
            mark_leading_to(b, &preds, &mut seen);
        }
        for &b in forward.iter().rev() {
            if !seen[b.index()] {
                back.push((exit as u32, b.0));
                mark_leading_to(b, &preds, &mut seen);
            }
        }
        let up = ir::immediate_dominators(&Edges::new(exit + 1, &back), exit);
        let ipdom = up[..exit].iter().map(|u| u.filter(|&u| u != exit).map(Block::new)).collect();
        PostDominators { ipdom, times: tree_times(&up, exit) }
    }

    /// The first block that every path from `b` to the end of the function goes through, other than `b`. `None`: the
    /// paths come together only at the end, or `b` is unreachable.
    pub fn ipdom(&self, b: Block) -> Option<Block> {
        self.ipdom[b.index()]
    }

    /// Every path from `b` to the end of the function goes through `a`, another block.
    pub fn post_dominates(&self, a: Block, b: Block) -> bool {
        let (a, b) = (self.times[a.index()], self.times[b.index()]);
        a.0 != 0 && a.0 < b.0 && b.1 <= a.1
    }
}

/// When a walk of a tree, given by who stands above whom, enters and leaves its nodes.
fn tree_times(up: &[Option<usize>], root: usize) -> Vec<(u32, u32)> {
    let down: Vec<(u32, u32)> =
        up.iter().enumerate().filter_map(|(n, up)| up.map(|up| (up as u32, n as u32))).collect();
    let children = Edges::new(up.len(), &down);
    let mut times = vec![(0, 0); up.len()];
    let mut now = 0;
    let mut stack = vec![(root, 0)];
    while let Some((n, next)) = stack.pop() {
        now += 1;
        if next == 0 {
            times[n].0 = now;
        }
        match children.from(n).get(next) {
            Some(&child) => stack.extend([(n, next + 1), (child as usize, 0)]),
            None => times[n].1 = now,
        }
    }
    times
}

/// Marks the blocks with a path to `end`.
fn mark_leading_to(end: Block, preds: &Edges, seen: &mut [bool]) {
    seen[end.index()] = true;
    let mut stack = vec![end.0];
    while let Some(b) = stack.pop() {
        for &p in preds.from(b as usize) {
            if !std::mem::replace(&mut seen[p as usize], true) {
                stack.push(p);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir::{FunctionBuilder, FunctionKind, Terminator, Type};

    #[test]
    fn the_arms_of_an_if_meet_at_the_join_and_an_endless_loop_meets_nowhere() {
        let mut b = FunctionBuilder::new(Function::new("f", FunctionKind::Entry));
        let p = b.iconst(Type::P, 1);
        let [t, e, join, spin, end] = [(); 5].map(|()| b.create_block());
        b.branch(p, t, e, false);
        b.switch_to(t);
        b.jump(join);
        b.switch_to(e);
        b.jump(join);
        b.switch_to(join);
        b.branch(p, spin, end, false);
        b.switch_to(spin);
        b.jump(spin);
        b.switch_to(end);
        b.terminate(Terminator::Exit);
        let f = b.finish();
        let post = PostDominators::new(&f);
        assert_eq!(post.ipdom(f.entry()), Some(join));
        assert_eq!(post.ipdom(t), Some(join));
        assert_eq!(post.ipdom(join), None, "one arm never comes back");
        assert_eq!(post.ipdom(spin), None);
    }
}
