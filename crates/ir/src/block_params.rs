//! Removes block parameters that always have the same value.

use crate::entity::{Block, Value};
use crate::function::Function;
use smallvec::SmallVec;

/// Removes every parameter whose incoming arguments are, apart from itself, one value; uses become that value.
/// Returns how many went.
pub fn remove_trivial(func: &mut Function) -> usize {
    let mut map: Vec<Option<Value>> = vec![None; func.values.len()];
    let find = |map: &[Option<Value>], mut v: Value| {
        while let Some(next) = map[v.index()] {
            v = next;
        }
        v
    };
    // Which jumps come into a block: (predecessor, which of its calls).
    let mut edges: Vec<SmallVec<[(Block, usize); 2]>> = vec![SmallVec::new(); func.blocks.len()];
    for &b in &func.layout {
        for (n, call) in func.block(b).term.calls().iter().enumerate() {
            edges[call.block.index()].push((b, n));
        }
    }
    let mut gone = 0;
    loop {
        let mut changed = false;
        for &b in &func.layout {
            for (n, &param) in func.block(b).params.iter().enumerate() {
                if map[param.index()].is_some() {
                    continue;
                }
                let mut only = None;
                let trivial = edges[b.index()].iter().all(|&(p, call)| {
                    let v = find(&map, func.block(p).term.calls()[call].args[n]);
                    v == param || *only.get_or_insert(v) == v
                });
                if let (true, Some(v)) = (trivial, only) {
                    map[param.index()] = Some(v);
                    changed = true;
                    gone += 1;
                }
            }
        }
        if !changed {
            break;
        }
    }
    if gone == 0 {
        return 0;
    }
    for b in func.layout.clone() {
        let keep: SmallVec<[bool; 8]> =
            func.block(b).params.iter().map(|p| map[p.index()].is_none()).collect();
        if keep.iter().all(|&k| k) {
            continue;
        }
        for &(p, call) in &edges[b.index()] {
            retain_by(&mut func.block_mut(p).term.calls_mut()[call].args, &keep);
        }
        retain_by(&mut func.block_mut(b).params, &keep);
    }
    func.replace_values(&map);
    func.renumber_params();
    gone
}

fn retain_by(list: &mut SmallVec<[Value; 4]>, keep: &[bool]) {
    let mut n = 0;
    list.retain(|_| {
        n += 1;
        keep[n - 1]
    });
}

impl Function {
    /// Makes the definitions of block parameters say their present place.
    pub fn renumber_params(&mut self) {
        for b in self.layout.clone() {
            for n in 0..self.block(b).params.len() {
                let p = self.block(b).params[n];
                self.values[p.index()].1 = crate::function::ValueDef::BlockParam(b, n as u32);
            }
        }
    }
}
