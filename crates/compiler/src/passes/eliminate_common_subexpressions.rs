//! Computes equal pure operations once, where one dominates the other. After contraction: fusing counts products by
//! instruction, so two equal products are two until then.

use super::Context;
use crate::analysis::DomTree;
use ir::{Block, Function, Op, Type, Value};
use smallvec::SmallVec;
use std::collections::HashMap;

type Key = (Op, SmallVec<[Value; 4]>, SmallVec<[Type; 2]>);

pub fn run(f: &mut Function, _: &mut Context) {
    let dom = DomTree::new(f);
    let mut map: Vec<Option<Value>> = vec![None; f.values.len()];
    let mut known: HashMap<Key, SmallVec<[Value; 2]>> = HashMap::new();
    // A walk of the dominator tree; what a subtree added is forgotten when the walk leaves it.
    enum Step {
        Enter(Block),
        Leave(Vec<Key>),
    }
    let mut stack = vec![Step::Enter(f.entry())];
    while let Some(step) = stack.pop() {
        let b = match step {
            Step::Leave(keys) => {
                keys.iter().for_each(|k| {
                    known.remove(k);
                });
                continue;
            }
            Step::Enter(b) => b,
        };
        let mut added = Vec::new();
        let mut insts = std::mem::take(&mut f.block_mut(b).insts);
        insts.retain(|&i| {
            let data = f.inst_mut(i);
            data.args.iter_mut().for_each(|v| *v = find(&map, *v));
            if let Some(g) = &mut data.guard {
                g.value = find(&map, g.value);
            }
            if !data.op.is_pure() || data.guard.is_some() || data.op == Op::Undef || data.results.is_empty() {
                return true;
            }
            let data = f.inst(i);
            let mut args = data.args.clone();
            if is_commutative(&data.op) && args[0] > args[1] {
                args.swap(0, 1);
            }
            let key = (data.op, args, data.results.iter().map(|&r| f.ty(r)).collect());
            match known.get(&key) {
                Some(earlier) => {
                    for (&r, &e) in data.results.iter().zip(earlier) {
                        map[r.index()] = Some(e);
                    }
                    false
                }
                None => {
                    known.insert(key.clone(), data.results.clone());
                    added.push(key);
                    true
                }
            }
        });
        f.block_mut(b).insts = insts;
        stack.push(Step::Leave(added));
        stack.extend(dom.children(b).iter().rev().map(|&c| Step::Enter(c)));
    }
    f.replace_values(&map);
}

fn find(map: &[Option<Value>], mut v: Value) -> Value {
    while let Some(next) = map[v.index()] {
        v = next;
    }
    v
}

/// The first two arguments may change places. Not f64 arithmetic, where the order says which NaN passes.
fn is_commutative(op: &Op) -> bool {
    use ir::Scalar::F64;
    match op {
        Op::Add
        | Op::AddSat
        | Op::Mul
        | Op::MulHi { .. }
        | Op::MulWide { .. }
        | Op::Min { .. }
        | Op::Max { .. } => true,
        Op::And | Op::Or | Op::Xor | Op::AbsDiff { .. } | Op::Add16x2 => true,
        Op::FAdd(m) | Op::FMul(m) | Op::FFma(m) => m.ty != F64,
        Op::FMulScaled { .. } => true,
        Op::ICmp { cmp, .. } => matches!(cmp, ir::IntCmp::Eq | ir::IntCmp::Ne),
        _ => false,
    }
}
