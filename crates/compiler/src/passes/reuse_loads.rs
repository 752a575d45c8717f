//! Loads of what was loaded or stored before give what was there; stores that another one covers before anybody reads are gone.
//!
//! As far as NVIDIA's assembler goes: any store to a kind of memory, at whatever address, ends what is known of it, but for the
//! place that it wrote. What is loaded as read-only (`ld.global.nc`) no store changes. Atomics, barriers, fences and calls end
//! all that is known. What a block knows at its end its successors know that are entered from nowhere else. Plain accesses
//! only: what a program says is volatile or ordered stays as it is.

use super::Context;
use crate::analysis::DomTree;
use ir::{Access, Block, CacheOp, Function, InstId, Op, Order, Scalar, Space, Value};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};

pub fn run(f: &mut Function, context: &mut Context) {
    let dom = DomTree::new(f);
    let preds = f.predecessors();
    let mut known = Known::default();
    let mut map: Vec<Option<Value>> = vec![None; f.values.len()];
    let mut ends: Vec<Versions> = vec![Versions::default(); f.blocks.len()];
    enum Step {
        Enter(Block),
        Leave(Vec<Place>),
    }
    let mut stack = vec![Step::Enter(f.entry())];
    while let Some(step) = stack.pop() {
        let b = match step {
            Step::Leave(places) => {
                places.iter().for_each(|p| {
                    known.values.remove(p);
                });
                continue;
            }
            Step::Enter(b) => b,
        };
        known.now = match preds[b.index()][..] {
            [only] if dom.idom(b) == Some(only) => ends[only.index()],
            _ => known.fresh(),
        };
        let added = visit(f, b, &mut known, &mut map, context);
        ends[b.index()] = known.now;
        stack.push(Step::Leave(added));
        stack.extend(dom.children(b).iter().rev().map(|&c| Step::Enter(c)));
    }
    map.resize(f.values.len(), None);
    f.replace_values(&map);
}

/// How often each kind of memory changed: generic, global, shared, local, read-only.
type Versions = [u32; 5];

/// The kind that stores do not change.
const READ_ONLY: usize = 4;

/// An address in a kind of memory as it stood, and what is read there.
type Place = (Space, Value, i64, Scalar, u8, u32);

#[derive(Default)]
struct Known {
    values: HashMap<Place, SmallVec<[Value; 2]>>,
    now: Versions,
    last: u32,
}

impl Known {
    fn next(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    /// All memory may have changed.
    fn fresh(&mut self) -> Versions {
        [self.next(); 5]
    }

    /// Something was written to a kind of memory: generic addresses lie in all of them.
    fn written(&mut self, space: Space) {
        let version = self.next();
        match index(space) {
            Some(0) | None => self.now[..READ_ONLY].fill(version),
            Some(n) => (self.now[0], self.now[n]) = (version, version),
        }
    }

    fn place(&self, f: &Function, a: &Access, address: Value) -> Option<Place> {
        let plain = a.order == Order::Weak && f.ty(address).bits() >= 32;
        let kind = if a.cache == CacheOp::Nc { Some(READ_ONLY) } else { index(a.space) };
        let version = self.now[kind.filter(|_| plain)?];
        Some((a.space, address, a.offset, a.elem, a.count, version))
    }
}

fn index(space: Space) -> Option<usize> {
    match space {
        Space::Generic => Some(0),
        Space::Global => Some(1),
        Space::Shared => Some(2),
        Space::Local => Some(3),
        Space::Const | Space::Param => None,
    }
}

/// Goes through a block; the places that became known.
fn visit(
    f: &mut Function,
    b: Block,
    known: &mut Known,
    map: &mut [Option<Value>],
    context: &mut Context,
) -> Vec<Place> {
    let mut added = Vec::new();
    let mut gone: HashSet<InstId> = HashSet::new();
    // Stores that nobody has read behind yet, by kind, address, offset and size.
    let mut unread: HashMap<(Space, Value, i64, u32), InstId> = HashMap::new();
    for k in 0..f.block(b).insts.len() {
        let i = f.block(b).insts[k];
        let data = f.inst_mut(i);
        data.args.iter_mut().for_each(|v| *v = find(map, *v));
        let inst = f.inst(i);
        match inst.op {
            Op::Load(a) if matches!(a.space, Space::Const | Space::Param) => {}
            Op::Load(a) => {
                let place = known.place(f, &a, inst.args[0]).filter(|_| inst.guard.is_none());
                let earlier = place.and_then(|p| known.values.get(&p)).filter(|earlier| {
                    earlier.len() == inst.results.len()
                        && earlier.iter().zip(&inst.results).all(|(&e, &r)| f.ty(e) == f.ty(r))
                });
                if let Some(earlier) = earlier {
                    inst.results.iter().zip(earlier).for_each(|(r, &e)| map[r.index()] = Some(e));
                    gone.insert(i);
                    context.remark(f, inst.loc, || "what is there is known".into());
                    continue;
                }
                unread.retain(|u, _| u.0 != a.space && u.0 != Space::Generic && a.space != Space::Generic);
                if a.order != Order::Weak {
                    known.now = known.fresh();
                } else if let Some(place) = place {
                    known.values.insert(place, inst.results.clone());
                    added.push(place);
                }
            }
            Op::Store(a) => {
                known.written(a.space);
                let (address, is_plain) = (inst.args[0], inst.guard.is_none() && a.order == Order::Weak);
                if !is_plain {
                    unread.clear();
                    continue;
                }
                if let Some(covered) = unread.insert((a.space, address, a.offset, a.bytes()), i) {
                    gone.insert(covered);
                    let loc = f.inst(covered).loc;
                    context.remark(f, loc, || "another store covers it".into());
                }
                let inst = f.inst(i);
                // Only whole words come back as they were.
                if let Some(place) = known.place(f, &a, address).filter(|_| a.elem.bits() >= 32) {
                    known.values.insert(place, inst.args[1..].into());
                    added.push(place);
                }
            }
            Op::Hint(..) => {}
            op if op.is_pure() => {}
            _ => {
                known.now = known.fresh();
                unread.clear();
            }
        }
    }
    if !gone.is_empty() {
        f.block_mut(b).insts.retain(|i| !gone.contains(i));
    }
    added
}

fn find(map: &[Option<Value>], mut v: Value) -> Value {
    while let Some(next) = map[v.index()] {
        v = next;
    }
    v
}
