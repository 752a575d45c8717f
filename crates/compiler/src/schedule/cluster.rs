//! Brings the independent cache accesses of a region together, so that they are one phase.

use super::graph::Graph;

/// The order with the accesses of each phase side by side, where the first of them stands. An access that needs the result
/// of another is of a later phase.
pub fn cluster(graph: &Graph, order: &[usize], is_access: impl Fn(usize) -> bool) -> Vec<usize> {
    // Of each instruction: accesses one behind the other that it needs.
    let mut behind = vec![0u32; graph.len()];
    for &n in order {
        let needs = |from: usize| behind[from] + u32::from(is_access(from));
        behind[n] = graph.before(n).iter().map(|e| needs(e.from as usize)).max().unwrap_or(0);
    }
    let mut placed = vec![false; graph.len()];
    let mut result = Vec::with_capacity(order.len());
    for (k, &n) in order.iter().enumerate() {
        if placed[n] {
            continue;
        }
        if is_access(n) {
            let phase: Vec<usize> =
                order[k..].iter().copied().filter(|&m| is_access(m) && behind[m] == behind[n]).collect();
            for &m in &phase {
                place_needed(graph, m, &mut placed, &mut result);
            }
            for m in phase {
                placed[m] = true;
                result.push(m);
            }
        } else {
            placed[n] = true;
            result.push(n);
        }
    }
    result
}

/// Places all that an instruction needs and that is not placed yet, in the order of the text.
fn place_needed(graph: &Graph, n: usize, placed: &mut [bool], result: &mut Vec<usize>) {
    let mut needed = vec![n];
    let mut all = Vec::new();
    while let Some(m) = needed.pop() {
        for e in graph.before(m) {
            let from = e.from as usize;
            if !std::mem::replace(&mut placed[from], true) {
                all.push(from);
                needed.push(from);
            }
        }
    }
    // What must come first stands first in the text.
    all.sort_unstable();
    result.extend(all);
}
