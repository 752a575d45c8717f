//! Post-dominators: the block where all paths from a block come together again.

use ir::{Block, Function};

/// Immediate post-dominators. A virtual exit follows every block that leaves the function; regions that never leave it
/// (endless loops) are tied to the virtual exit at one block.
pub struct PostDominators {
    ipdom: Vec<Option<Block>>,
}

impl PostDominators {
    /// By Cooper, Harvey and Kennedy on the reversed graph.
    pub fn new(f: &Function) -> Self {
        let exit = f.blocks.len();
        let forward = f.reverse_postorder();
        let mut reachable = vec![false; f.blocks.len()];
        forward.iter().for_each(|b| reachable[b.index()] = true);
        let preds = f.predecessors();

        let mut seen = vec![false; f.blocks.len()];
        let mut leaves = vec![false; f.blocks.len()];
        let mut postorder: Vec<usize> = Vec::with_capacity(forward.len() + 1);
        let walk = |root: Block, postorder: &mut Vec<usize>, seen: &mut Vec<bool>| {
            seen[root.index()] = true;
            let mut stack = vec![(root, 0)];
            while let Some((b, next)) = stack.pop() {
                if let Some(&p) = preds[b.index()].get(next) {
                    stack.push((b, next + 1));
                    if reachable[p.index()] && !seen[p.index()] {
                        seen[p.index()] = true;
                        stack.push((p, 0));
                    }
                } else {
                    postorder.push(b.index());
                }
            }
        };
        for &b in &forward {
            if f.successors(b).is_empty() {
                leaves[b.index()] = true;
                walk(b, &mut postorder, &mut seen);
            }
        }
        for &b in forward.iter().rev() {
            if !seen[b.index()] {
                leaves[b.index()] = true;
                walk(b, &mut postorder, &mut seen);
            }
        }
        postorder.push(exit);

        let mut number = vec![usize::MAX; exit + 1];
        postorder.iter().enumerate().for_each(|(n, &b)| number[b] = n);
        let mut up: Vec<Option<usize>> = vec![None; exit + 1];
        up[exit] = Some(exit);
        let mut changed = true;
        while changed {
            changed = false;
            for &b in postorder.iter().rev().skip(1) {
                let mut new = leaves[b].then_some(exit);
                for s in f.successors(Block::new(b)) {
                    if up[s.index()].is_none() {
                        continue;
                    }
                    new = Some(match new {
                        None => s.index(),
                        Some(x) => meet(x, s.index(), &up, &number, exit),
                    });
                }
                if new.is_some() && up[b] != new {
                    up[b] = new;
                    changed = true;
                }
            }
        }
        let ipdom = up[..exit].iter().map(|u| u.filter(|&u| u != exit).map(Block::new)).collect();
        PostDominators { ipdom }
    }

    /// The first block that every path from `b` to the end of the function goes through, other than `b`. `None`: the
    /// paths come together only at the end, or `b` is unreachable.
    pub fn ipdom(&self, b: Block) -> Option<Block> {
        self.ipdom[b.index()]
    }
}

fn meet(mut x: usize, mut y: usize, up: &[Option<usize>], number: &[usize], exit: usize) -> usize {
    while x != y {
        while number[x] < number[y] {
            x = up[x].unwrap_or(exit);
        }
        while number[y] < number[x] {
            y = up[y].unwrap_or(exit);
        }
    }
    x
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
