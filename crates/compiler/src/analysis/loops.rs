//! Natural loops: headers, members, latches, exits and preheaders, with their nesting.

use super::DomTree;
use ir::{Block, Function, Terminator};

/// Index into [`Loops::loops`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct LoopId(pub usize);

#[derive(Clone, Debug)]
pub struct Loop {
    pub header: Block,
    /// Members in reverse postorder, the header first.
    pub blocks: Vec<Block>,
    /// Members that jump back to the header, once each.
    pub latches: Vec<Block>,
    /// Edges that leave: from a member to a block outside.
    pub exits: Vec<(Block, Block)>,
    /// The one block outside that goes to the header, and to nothing else.
    pub preheader: Option<Block>,
    pub parent: Option<LoopId>,
    /// 1 for an outermost loop.
    pub depth: u32,
    /// No other loop lies inside.
    pub is_innermost: bool,
}

/// All natural loops of a function, outer loops before the loops inside them. Cycles entered at more than one block have
/// no header that dominates them and are not listed.
pub struct Loops {
    pub loops: Vec<Loop>,
    innermost: Vec<Option<LoopId>>,
}

impl Loops {
    pub fn new(f: &Function, dom: &DomTree) -> Self {
        let order = f.reverse_postorder();
        let mut number = vec![usize::MAX; f.blocks.len()];
        order.iter().enumerate().for_each(|(n, b)| number[b.index()] = n);
        let preds = f.predecessors();
        let mut all = Loops { loops: Vec::new(), innermost: vec![None; f.blocks.len()] };
        for &header in &order {
            let mut latches: Vec<Block> = preds[header.index()]
                .iter()
                .copied()
                .filter(|&p| dom.is_reachable(p) && dom.dominates(header, p))
                .collect();
            latches.sort_by_key(|b| number[b.index()]);
            latches.dedup();
            if !latches.is_empty() {
                all.add(f, dom, &preds, &number, header, latches);
            }
        }
        all
    }

    fn add(
        &mut self,
        f: &Function,
        dom: &DomTree,
        preds: &[smallvec::SmallVec<[Block; 2]>],
        number: &[usize],
        header: Block,
        latches: Vec<Block>,
    ) {
        let mut inside = std::collections::BTreeSet::from([number[header.index()]]);
        let mut blocks = vec![header];
        let mut stack = latches.clone();
        while let Some(b) = stack.pop() {
            if dom.is_reachable(b) && inside.insert(number[b.index()]) {
                blocks.push(b);
                stack.extend(preds[b.index()].iter().copied());
            }
        }
        blocks.sort_by_key(|b| number[b.index()]);
        let is_member = |b: Block| inside.contains(&number[b.index()]);
        let mut exits = Vec::new();
        for &b in &blocks {
            exits.extend(f.successors(b).into_iter().filter(|&s| !is_member(s)).map(|s| (b, s)));
        }
        let outside: Vec<Block> =
            preds[header.index()].iter().copied().filter(|&p| dom.is_reachable(p) && !is_member(p)).collect();
        let preheader = match outside[..] {
            [p] if matches!(f.block(p).term, Terminator::Jump(_)) => Some(p),
            _ => None,
        };
        // Headers come in reverse postorder, so the loop around this one, if any, is known already.
        let parent = self.innermost[header.index()];
        let depth = parent.map_or(1, |p| self.loops[p.0].depth + 1);
        let id = LoopId(self.loops.len());
        for b in &blocks {
            self.innermost[b.index()] = Some(id);
        }
        if let Some(parent) = parent {
            self.loops[parent.0].is_innermost = false;
        }
        let is_innermost = true;
        self.loops.push(Loop { header, blocks, latches, exits, preheader, parent, depth, is_innermost });
    }

    pub fn get(&self, id: LoopId) -> &Loop {
        &self.loops[id.0]
    }

    /// The innermost loop that holds `b`.
    pub fn innermost(&self, b: Block) -> Option<LoopId> {
        self.innermost[b.index()]
    }

    /// `b` belongs to the loop or to one inside it.
    pub fn contains(&self, id: LoopId, b: Block) -> bool {
        let mut at = self.innermost(b);
        while let Some(l) = at {
            if l == id {
                return true;
            }
            at = self.get(l).parent;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir::{FunctionBuilder, FunctionKind, Type};

    #[test]
    fn nested_loops_know_their_parts() {
        let mut b = FunctionBuilder::new(Function::new("f", FunctionKind::Entry));
        let p = b.iconst(Type::P, 1);
        let [outer, inner, tail, end] = [(); 4].map(|()| b.create_block());
        b.jump(outer);
        b.switch_to(outer);
        b.jump(inner);
        b.switch_to(inner);
        b.branch(p, inner, tail, false);
        b.switch_to(tail);
        b.branch(p, outer, end, false);
        b.switch_to(end);
        b.terminate(Terminator::Exit);
        let f = b.finish();
        let loops = Loops::new(&f, &DomTree::new(&f));
        let [a, i] = &loops.loops[..] else { panic!("two loops") };
        assert_eq!((a.header, &a.latches[..], a.preheader), (outer, &[tail][..], Some(f.entry())));
        assert_eq!(a.exits, [(tail, end)]);
        assert_eq!((i.header, i.preheader, i.parent, i.depth), (inner, Some(outer), Some(LoopId(0)), 2));
        assert_eq!(loops.innermost(inner), Some(LoopId(1)));
        assert_eq!(loops.innermost(tail), Some(LoopId(0)));
        assert!(loops.contains(LoopId(0), inner) && !loops.contains(LoopId(1), tail));
    }
}
