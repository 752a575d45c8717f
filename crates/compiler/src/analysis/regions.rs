//! Parts of a function that are entered at one block and left to one other, found without walking them.
//!
//! The part between `start` and `meet` is what `start` dominates and `meet` does not: in the order of a walk of the
//! dominator tree that is an interval, or an interval with another one cut out. The immediate dominator of an edge's
//! target stands above the edge, so an edge leaves what a block dominates if its target stands no deeper than the block:
//! only the highest targets matter. A tree of minima has them in log n steps; walks of all parts of a deep nest take n².

use super::DomTree;
use ir::{Block, Function};
use std::ops::Range;

/// The two highest targets of a set of edges: how deep they stand in the dominator tree, and which they are.
#[derive(Clone, Copy)]
struct Highest([(u32, u32); 2]);

const NONE: Highest = Highest([(u32::MAX, u32::MAX); 2]);

impl Highest {
    fn add(&mut self, edge: (u32, u32)) {
        let Highest([first, second]) = self;
        if edge.1 == first.1 {
            first.0 = first.0.min(edge.0);
        } else if edge < *first {
            *second = std::mem::replace(first, edge);
        } else if edge < *second {
            *second = edge;
        }
    }

    fn and(mut self, other: Highest) -> Highest {
        other.0.into_iter().for_each(|e| self.add(e));
        self
    }
}

pub struct Regions<'a> {
    dom: &'a DomTree,
    /// A heap-shaped tree over the places of blocks in the preorder of the dominator tree; leaves are its second half.
    minima: Vec<Highest>,
}

impl<'a> Regions<'a> {
    pub fn new(f: &Function, dom: &'a DomTree) -> Self {
        let leaves = dom.preorder().len().next_power_of_two();
        let mut minima = vec![NONE; 2 * leaves];
        for (n, &b) in dom.preorder().iter().enumerate() {
            for s in f.successors(b) {
                minima[leaves + n].add((dom.depth(s), s.0));
            }
        }
        for n in (1..leaves).rev() {
            minima[n] = minima[2 * n].and(minima[2 * n + 1]);
        }
        Regions { dom, minima }
    }

    fn highest(&self, range: Range<usize>) -> Highest {
        let leaves = self.minima.len() / 2;
        let (mut from, mut to) = (leaves + range.start, leaves + range.end);
        let mut found = NONE;
        while from < to {
            if from % 2 == 1 {
                found = found.and(self.minima[from]);
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                found = found.and(self.minima[to]);
            }
            (from, to) = (from / 2, to / 2);
        }
        found
    }

    /// The places in preorder of `start` and what lies between it and `meet`.
    pub fn parts(&self, start: Block, meet: Option<Block>) -> [Range<usize>; 2] {
        let whole = self.dom.subtree(start);
        // A meeting block above the start, the head of a loop around it, cuts nothing out.
        match meet.filter(|&m| m != start && self.dom.dominates(start, m)).map(|m| self.dom.subtree(m)) {
            Some(rest) => [whole.start..rest.start, rest.end..whole.end],
            None => [whole.clone(), whole.end..whole.end],
        }
    }

    /// Everything that `start` leads to before `meet` (or at all) is dominated by `start`, and does not lead back to it before
    /// `meet`.
    pub fn is_closed(&self, start: Block, meet: Option<Block>) -> bool {
        let top = self.dom.depth(start);
        self.parts(start, meet).into_iter().all(|range| {
            let Highest(highest) = self.highest(range);
            highest.iter().all(|&(depth, target)| depth > top || meet.is_some_and(|m| m.0 == target))
        })
    }

    /// `b` lies in the closed part between `start` and `meet`, neither of which does.
    pub fn contains(&self, start: Block, meet: Block, b: Block) -> bool {
        let at = self.dom.subtree(b);
        b != start && !at.is_empty() && self.parts(start, Some(meet)).iter().any(|r| r.contains(&at.start))
    }

    /// All blocks of the closed part.
    pub fn inside(&self, start: Block, meet: Block) -> impl Iterator<Item = Block> + '_ {
        let all = self.parts(start, Some(meet)).into_iter().flatten().map(|n| self.dom.preorder()[n]);
        all.filter(move |&b| b != start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir::{FunctionBuilder, FunctionKind, Terminator, Type};

    /// The blocks that `start` leads to before `meet`.
    fn walked(f: &Function, start: Block, meet: Block) -> Vec<Block> {
        let mut found = Vec::new();
        let mut stack = f.successors(start).to_vec();
        while let Some(b) = stack.pop() {
            if b != meet && b != start && !found.contains(&b) {
                found.push(b);
                stack.extend(f.successors(b));
            }
        }
        found.sort_unstable();
        found
    }

    #[test]
    fn answers_are_those_of_a_walk() {
        let mut state = 9u64;
        let mut random = |n: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % n
        };
        let mut closed = 0;
        for _ in 0..400 {
            let mut b = FunctionBuilder::new(Function::new("f", FunctionKind::Entry));
            let p = b.iconst(Type::P, 1);
            let blocks: Vec<Block> = (0..2 + random(9)).map(|_| b.create_block()).collect();
            b.jump(blocks[0]);
            for (n, &block) in blocks.iter().enumerate() {
                b.switch_to(block);
                let near = |k: usize| blocks[(n + k).min(blocks.len() - 1)];
                let (x, y) =
                    (near(1 + random(3)), if random(5) == 0 { blocks[random(n + 1)] } else { near(1) });
                match random(3) {
                    _ if n + 1 == blocks.len() => b.terminate(Terminator::Exit),
                    0 => b.jump(x),
                    _ => b.branch(p, x, y, false),
                }
            }
            let f = b.finish();
            let dom = DomTree::new(&f);
            let regions = Regions::new(&f, &dom);
            for &start in dom.preorder() {
                for &meet in dom.preorder().iter().filter(|&&m| m != start) {
                    let inside = walked(&f, start, meet);
                    let back =
                        std::iter::once(&start).chain(&inside).any(|&b| f.successors(b).contains(&start));
                    let expected = !back && inside.iter().all(|&b| dom.dominates(start, b));
                    assert_eq!(regions.is_closed(start, Some(meet)), expected, "{start} {meet}\n{f}");
                    if expected {
                        closed += 1;
                        let mut found: Vec<Block> = regions.inside(start, meet).collect();
                        found.sort_unstable();
                        assert_eq!(found, inside, "{start} {meet}\n{f}");
                        assert!(
                            f.layout
                                .iter()
                                .all(|&b| { regions.contains(start, meet, b) == inside.contains(&b) })
                        );
                    }
                }
            }
        }
        assert!(closed > 1000);
    }
}
