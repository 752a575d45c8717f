//! Loads of neighbouring words from shared or local memory, or from a table of constants, become one vector load, where the
//! address is known to be aligned.
//!
//! The vector load stands where the first of them stood. Nothing between the first and the last may write that memory or
//! let others write it.

use crate::places::{Place, Places};
use ir::{Access, AddrOf, Function, InstId, Op, Order, Space, Type, Value};
use std::collections::HashMap;

/// Loads from one base since the last write: offset and instruction.
type Group = Vec<(i64, InstId)>;

pub fn run(f: &mut Function, places: &Places) {
    for b in f.layout.clone() {
        let mut open: Vec<((Space, Value), Group)> = Vec::new();
        let mut done: Vec<((Space, Value), Group)> = Vec::new();
        for &i in &f.block(b).insts {
            let inst = f.inst(i);
            if let (Op::Load(a), None) = (inst.op, inst.guard)
                && is_word(&a)
                && let (base, offset) = split(f, inst.args[0])
                && (is_plain(a.space) || is_table(f, a.space, base))
            {
                let key = (a.space, base);
                let item = (offset + a.offset, i);
                match open.iter_mut().find(|g| g.0 == key) {
                    Some(g) => g.1.push(item),
                    None => open.push((key, vec![item])),
                }
            } else if let Op::Store(a) = inst.op {
                // Spaces do not overlap, but generic addresses may be in any.
                let hits = |s: Space| a.space == s || a.space == Space::Generic && s != Space::Const;
                let (gone, stay) = open.into_iter().partition(|g| hits(g.0.0));
                done.extend::<Vec<_>>(gone);
                open = stay;
            } else if !inst.op.is_pure() && !matches!(inst.op, Op::Load(_)) {
                done.append(&mut open);
            }
        }
        done.append(&mut open);
        let mut change = Change::default();
        for ((space, base), group) in done {
            // Constants come two at a time at most.
            let most = if space == Space::Const { 2 } else { 4 };
            if group.len() > 1 {
                merge(f, places, base, group, most, &mut change);
            }
        }
        change.apply(f, b);
    }
}

pub(crate) fn is_mergeable(a: &Access) -> bool {
    is_word(a) && is_plain(a.space)
}

fn is_word(a: &Access) -> bool {
    a.count == 1 && a.elem.bits() == 32 && a.order == Order::Weak
}

fn is_plain(space: Space) -> bool {
    matches!(space, Space::Shared | Space::Local)
}

/// Constants whose place is only known when the program runs; all others are operands.
fn is_table(f: &Function, space: Space, base: Value) -> bool {
    let is_known = f.def_op(base).is_some_and(|i| matches!(i.op, Op::Addr(..) | Op::Const(_)));
    space == Space::Const && !is_known
}

/// What becomes of the loads of a block.
#[derive(Default)]
struct Change {
    /// First load of a vector to the vector.
    instead: HashMap<InstId, InstId>,
    gone: HashMap<InstId, Value>,
}

impl Change {
    fn apply(self, f: &mut Function, b: ir::Block) {
        if self.gone.is_empty() {
            return;
        }
        let mut insts = std::mem::take(&mut f.block_mut(b).insts);
        insts.retain_mut(|i| {
            if let Some(&vector) = self.instead.get(i) {
                *i = vector;
                return true;
            }
            !self.gone.contains_key(i)
        });
        f.block_mut(b).insts = insts;
        let mut map = vec![None; f.values.len()];
        for (i, v) in self.gone {
            map[f.inst(i).results[0].index()] = Some(v);
        }
        f.replace_values(&map);
    }
}

/// Finds runs of four or two words in a group, of no more than `most`.
fn merge(f: &mut Function, places: &Places, base: Value, mut group: Group, most: usize, change: &mut Change) {
    let first_at: HashMap<InstId, usize> = group.iter().enumerate().map(|(n, g)| (g.1, n)).collect();
    let zeros = trailing_zeros(f, places, base, 8);
    group.sort();
    group.dedup_by_key(|g| g.0);
    let mut n = 0;
    while n < group.len() {
        let (start, _) = group[n];
        let run = |count: usize| {
            let words = group.get(n..n + count)?;
            let next = words.iter().enumerate().all(|(k, w)| w.0 == start + 4 * k as i64);
            let bits = (4 * count as u64).trailing_zeros();
            (next && zeros >= bits && start % (4 * count as i64) == 0 && count <= most)
                .then(|| words.to_vec())
        };
        let Some(words) = run(4).or_else(|| run(2)) else {
            n += 1;
            continue;
        };
        n += words.len();
        // The vector stands where the earliest of its words stood, whose address it takes.
        let Some(&(offset, first)) = words.iter().min_by_key(|w| first_at[&w.1]) else { continue };
        let inst = f.inst(first).clone();
        let Op::Load(a) = inst.op else { continue };
        let access = Access { count: words.len() as u8, offset: a.offset - (offset - start), ..a };
        let types = vec![Type::B32; words.len()];
        let vector = f.make_inst(Op::Load(access), &inst.args, &types, None, inst.loc);
        change.instead.insert(first, vector);
        for (k, w) in words.iter().enumerate() {
            let v = f.inst(vector).results[k];
            change.gone.insert(w.1, v);
        }
    }
}

/// An address as a base and a constant.
pub(crate) fn split(f: &Function, mut v: Value) -> (Value, i64) {
    let mut offset = 0i64;
    while let Some(inst) = f.def_op(v) {
        let c = match inst.op {
            Op::Add => f.const_of(inst.args[1]),
            _ => None,
        };
        let Some(c) = c else { break };
        let c = if f.ty(v) == Type::B32 { i64::from(c as u32 as i32) } else { c as i64 };
        match offset.checked_add(c) {
            Some(sum) if i32::try_from(sum).is_ok() => offset = sum,
            _ => break,
        }
        v = inst.args[0];
    }
    (v, offset)
}

/// Low bits of a value that are known to be zero.
pub(crate) fn trailing_zeros(f: &Function, places: &Places, v: Value, depth: u32) -> u32 {
    let Some(inst) = f.def_op(v) else { return 0 };
    if depth == 0 {
        return 0;
    }
    let of = |n: usize| trailing_zeros(f, places, inst.args[n], depth - 1);
    let known = |n: usize| f.const_of(inst.args[n]);
    let zeros = match inst.op {
        Op::Const(bits) => bits.trailing_zeros(),
        Op::Add | Op::Sub | Op::Or | Op::Xor => of(0).min(of(1)),
        Op::And => of(0).max(of(1)),
        Op::Mul | Op::MulWide { .. } => of(0).saturating_add(of(1)),
        Op::Shl => known(1).map_or(0, |n| of(0).saturating_add(n.min(64) as u32)),
        Op::ZeroExt | Op::SignExt | Op::ToGeneric(_) | Op::FromGeneric(_) => of(0),
        Op::Addr(AddrOf::Global(g), offset) => match places.globals[g.index()] {
            Place::Shared(at) | Place::Const(at, _) => (i64::from(at) + offset).trailing_zeros(),
            _ => 0,
        },
        _ => 0,
    };
    zeros.min(64)
}
