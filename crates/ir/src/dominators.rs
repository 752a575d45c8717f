//! Dominators of a graph, by Lengauer and Tarjan, and of a function's blocks.
//!
//! The algorithm with compressed paths takes n log n steps on any graph. The simpler one that goes round until nothing
//! changes takes n² where many blocks of a long chain go to one place.

use crate::entity::Block;
use crate::function::Function;

/// Edges of a graph, by the node they start from.
pub struct Edges {
    /// Where the targets of a node begin; one more than there are nodes.
    first: Vec<u32>,
    targets: Vec<u32>,
}

impl Edges {
    /// The edges (from, to) of a graph with so many nodes. Those of one node keep their order.
    pub fn new(nodes: usize, edges: &[(u32, u32)]) -> Self {
        let mut first = vec![0u32; nodes + 1];
        edges.iter().for_each(|&(from, _)| first[from as usize + 1] += 1);
        for n in 0..nodes {
            first[n + 1] += first[n];
        }
        let mut next = first.clone();
        let mut targets = vec![0; edges.len()];
        for &(from, to) in edges {
            targets[next[from as usize] as usize] = to;
            next[from as usize] += 1;
        }
        Edges { first, targets }
    }

    pub fn nodes(&self) -> usize {
        self.first.len() - 1
    }

    pub fn from(&self, node: usize) -> &[u32] {
        &self.targets[self.first[node] as usize..self.first[node + 1] as usize]
    }

    /// Every edge the other way round.
    pub fn reversed(&self) -> Self {
        let all: Vec<(u32, u32)> =
            (0..self.nodes()).flat_map(|n| self.from(n).iter().map(move |&t| (t, n as u32))).collect();
        Edges::new(self.nodes(), &all)
    }
}

const NONE: u32 = u32::MAX;

/// State of the algorithm; nodes are named by their place in a depth-first walk.
struct Walk {
    /// Places of nodes, nodes of places, and who led to a place.
    place: Vec<u32>,
    node: Vec<u32>,
    parent: Vec<u32>,
    semi: Vec<u32>,
    /// The forest of what is done: the place above, and the one with the least `semi` on the way there.
    above: Vec<u32>,
    best: Vec<u32>,
}

impl Walk {
    fn new(edges: &Edges, root: usize) -> Self {
        let mut walk = Walk {
            place: vec![NONE; edges.nodes()],
            node: Vec::new(),
            parent: Vec::new(),
            semi: Vec::new(),
            above: Vec::new(),
            best: Vec::new(),
        };
        walk.enter(root as u32, NONE);
        let mut stack = vec![(root, 0)];
        while let Some((n, next)) = stack.pop() {
            if let Some(&t) = edges.from(n).get(next) {
                stack.push((n, next + 1));
                if walk.place[t as usize] == NONE {
                    walk.enter(t, walk.place[n]);
                    stack.push((t as usize, 0));
                }
            }
        }
        walk.semi = (0..walk.node.len() as u32).collect();
        walk.best = walk.semi.clone();
        walk.above = vec![NONE; walk.node.len()];
        walk
    }

    fn enter(&mut self, node: u32, parent: u32) {
        self.place[node as usize] = self.node.len() as u32;
        self.node.push(node);
        self.parent.push(parent);
    }

    /// The place with the least `semi` between `v` and the root of its tree; paths walked become short.
    fn eval(&mut self, v: u32, path: &mut Vec<u32>) -> u32 {
        let mut at = v;
        while self.above[at as usize] != NONE && self.above[self.above[at as usize] as usize] != NONE {
            path.push(at);
            at = self.above[at as usize];
        }
        while let Some(x) = path.pop() {
            let up = self.above[x as usize] as usize;
            if self.semi[self.best[up] as usize] < self.semi[self.best[x as usize] as usize] {
                self.best[x as usize] = self.best[up];
            }
            self.above[x as usize] = self.above[up];
        }
        self.best[v as usize]
    }
}

/// The immediate dominator of every node that `root` reaches; `None` for the root and for the others.
pub fn immediate_dominators(edges: &Edges, root: usize) -> Vec<Option<usize>> {
    let back = edges.reversed();
    let mut walk = Walk::new(edges, root);
    let count = walk.node.len();
    let mut idom = vec![0u32; count];
    // Places whose semidominator a place is, as lists through `next`.
    let mut bucket = vec![NONE; count];
    let mut next = vec![NONE; count];
    let mut path = Vec::new();
    for w in (1..count).rev() {
        for &p in back.from(walk.node[w] as usize) {
            let p = walk.place[p as usize];
            if p != NONE {
                let u = walk.eval(p, &mut path);
                walk.semi[w] = walk.semi[w].min(walk.semi[u as usize]);
            }
        }
        let semi = walk.semi[w] as usize;
        next[w] = std::mem::replace(&mut bucket[semi], w as u32);
        let parent = walk.parent[w];
        walk.above[w] = parent;
        let mut v = std::mem::replace(&mut bucket[parent as usize], NONE);
        while v != NONE {
            let u = walk.eval(v, &mut path);
            let smaller = walk.semi[u as usize] < walk.semi[v as usize];
            idom[v as usize] = if smaller { u } else { parent };
            v = next[v as usize];
        }
    }
    let mut found = vec![None; edges.nodes()];
    for w in 1..count {
        if idom[w] != walk.semi[w] {
            idom[w] = idom[idom[w] as usize];
        }
        found[walk.node[w] as usize] = Some(walk.node[idom[w] as usize] as usize);
    }
    found
}

/// The edges between the blocks of a function's layout.
pub fn block_edges(f: &Function) -> Edges {
    let mut edges = Vec::with_capacity(2 * f.layout.len());
    for &b in &f.layout {
        edges.extend(f.successors(b).iter().map(|s| (b.0, s.0)));
    }
    Edges::new(f.blocks.len(), &edges)
}

/// Immediate dominators by block index (`None` for the entry and for dead blocks).
pub fn dominators(f: &Function) -> Vec<Option<Block>> {
    let found = immediate_dominators(&block_edges(f), f.entry().index());
    found.into_iter().map(|b| b.map(Block::new)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `root` reaches without going through `without`.
    fn reached(edges: &Edges, root: usize, without: usize) -> Vec<bool> {
        let mut seen = vec![false; edges.nodes()];
        let mut stack = vec![root];
        while let Some(n) = stack.pop() {
            if n != without && !std::mem::replace(&mut seen[n], true) {
                stack.extend(edges.from(n).iter().map(|&t| t as usize));
            }
        }
        seen
    }

    #[test]
    fn random_graphs_have_the_dominators_of_the_definition() {
        let mut state = 1u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        for _ in 0..300 {
            let nodes = 1 + random(12);
            let edges: Vec<(u32, u32)> =
                (0..random(2 * nodes + 1)).map(|_| (random(nodes) as u32, random(nodes) as u32)).collect();
            let edges = Edges::new(nodes as usize, &edges);
            let idom = immediate_dominators(&edges, 0);
            let all = reached(&edges, 0, usize::MAX);
            for b in 0..edges.nodes() {
                let mut expected: Vec<usize> =
                    (0..edges.nodes()).filter(|&a| a != b && all[b] && !reached(&edges, 0, a)[b]).collect();
                let mut found = Vec::new();
                let mut at = b;
                while let Some(up) = idom[at] {
                    found.push(up);
                    at = up;
                }
                expected.sort_unstable();
                found.sort_unstable();
                assert_eq!(found, expected, "dominators of {b}");
            }
        }
    }
}
