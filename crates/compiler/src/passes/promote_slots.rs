//! Words of frame variables that are only loaded and stored, at constant places, become values: structures passed by value and
//! small arrays whose loops are gone need no memory.

use super::Context;
use ir::{Access, AddrOf, Block, Function, InstId, LocId, Op, Order, SlotId, Space, Type, Value};
use std::collections::{HashMap, HashSet};

/// Each word may get a parameter on every block for a while.
const MAX_WORDS: usize = 128;
const MAX_PARAMS: usize = 1 << 15;

pub fn run(f: &mut Function, context: &mut Context) {
    let entry_is_reached = f.layout.iter().any(|&b| f.successors(b).contains(&f.entry()));
    if f.slots.is_empty() || entry_is_reached {
        return;
    }
    let places = places(f);
    let words = promotable(f, &places);
    if words.is_empty() || words.len() > MAX_WORDS || words.len() * f.layout.len() > MAX_PARAMS {
        return;
    }
    context.remark(f, f.loc, || format!("{} words of the frame live in registers", words.len()));
    promote(f, &places, &words);
}

/// Values that are a constant place in a frame variable.
type Places = HashMap<Value, (SlotId, i64)>;

fn places(f: &Function) -> Places {
    let mut found = Places::new();
    for b in f.reverse_postorder() {
        for &i in &f.block(b).insts {
            let inst = f.inst(i);
            let place = match inst.op {
                Op::Addr(AddrOf::Slot(s), offset) => Some((s, offset)),
                Op::Add => match (found.get(&inst.args[0]), f.const_of(inst.args[1])) {
                    (Some(&(s, offset)), Some(c)) => {
                        let c = if f.ty(inst.results[0]) == Type::B32 {
                            i64::from(c as u32 as i32)
                        } else {
                            c as i64
                        };
                        offset.checked_add(c).map(|sum| (s, sum))
                    }
                    _ => None,
                },
                Op::ToGeneric(Space::Local) | Op::FromGeneric(Space::Local) => {
                    found.get(&inst.args[0]).copied()
                }
                _ => None,
            };
            if let Some(place) = place {
                found.insert(inst.results[0], place);
            }
        }
    }
    found
}

/// The words that an access moves, if it moves nothing but whole words in their own width.
fn words_of(f: &Function, i: InstId, places: &Places) -> Option<Vec<(SlotId, i64)>> {
    let inst = f.inst(i);
    let (a, data): (Access, &[Value]) = match inst.op {
        Op::Load(a) => (a, &inst.results),
        Op::Store(a) => (a, &inst.own_args()[1..]),
        _ => return None,
    };
    let &(slot, offset) = places.get(&inst.args[0])?;
    let at = offset.checked_add(a.offset)?;
    let fits = inst.guard.is_none()
        && a.order == Order::Weak
        && matches!(a.space, Space::Local | Space::Generic)
        && a.elem.bits() >= 32
        && at >= 0
        && at % 4 == 0
        && at + i64::from(a.bytes()) <= i64::from(f.slots.get(slot.index())?.size)
        && data.len() == usize::from(a.count)
        && data.iter().all(|&v| f.ty(v).bits() == a.elem.bits());
    fits.then(|| (0..i64::from(a.bytes()) / 4).map(|n| (slot, at / 4 + n)).collect())
}

/// Numbers of the words that can be promoted.
fn promotable(f: &Function, places: &Places) -> HashMap<(SlotId, i64), usize> {
    let mut escapes = vec![false; f.slots.len()];
    let mut accesses: Vec<Vec<(SlotId, i64)>> = Vec::new();
    // Words that something else reads or writes.
    let mut spoiled: HashSet<(SlotId, i64)> = HashSet::new();
    for &b in &f.layout {
        for &i in &f.block(b).insts {
            let inst = f.inst(i);
            if let Some(words) = words_of(f, i, places) {
                accesses.push(words);
                // The data may be an address themselves.
                inst.args[1..].iter().filter_map(|v| places.get(v)).for_each(|p| escapes[p.0.index()] = true);
                continue;
            }
            let is_place = inst.results.first().is_some_and(|r| places.contains_key(r));
            for (n, v) in f.inst_values(i).iter().enumerate() {
                let Some(&(slot, offset)) = places.get(v) else { continue };
                match inst.op {
                    Op::Load(a) | Op::Store(a) if n == 0 => {
                        let at = offset.saturating_add(a.offset);
                        let last = at.saturating_add(i64::from(a.bytes()) - 1);
                        spoiled.extend((at.div_euclid(4)..=last.div_euclid(4)).map(|n| (slot, n)));
                    }
                    _ if is_place => {}
                    _ => escapes[slot.index()] = true,
                }
            }
        }
        for v in f.block(b).term.values() {
            if let Some(p) = places.get(&v) {
                escapes[p.0.index()] = true;
            }
        }
    }
    let mut good: HashMap<(SlotId, i64), bool> = HashMap::new();
    for &(slot, n) in accesses.iter().flatten() {
        let hit = spoiled.contains(&(slot, n));
        good.insert((slot, n), !hit && !escapes[slot.index()]);
    }
    // An access moves values or memory, not some of both.
    loop {
        let mut changed = false;
        for words in &accesses {
            if words.iter().any(|w| !good[w]) {
                for w in words {
                    changed |= good.insert(*w, false) == Some(true);
                }
            }
        }
        if !changed {
            break;
        }
    }
    let mut words: Vec<_> = good.into_iter().filter(|g| g.1).map(|g| g.0).collect();
    words.sort();
    words.into_iter().enumerate().map(|(n, w)| (w, n)).collect()
}

fn promote(f: &mut Function, places: &Places, words: &HashMap<(SlotId, i64), usize>) {
    let entry = f.entry();
    let order = f.reverse_postorder();
    let mut params: HashMap<Block, Vec<Value>> = HashMap::new();
    for &b in order.iter().filter(|&&b| b != entry) {
        let new = (0..words.len()).map(|_| f.add_block_param(b, Type::B32)).collect();
        params.insert(b, new);
    }
    let mut map: Vec<Option<Value>> = Vec::new();
    for &b in &order {
        let mut out = Vec::new();
        let mut now = match params.get(&b) {
            Some(own) => own.clone(),
            // What nobody stored may be anything.
            None => {
                let none = ins(f, &mut out, Op::Undef, &[], Type::B32, LocId(0));
                vec![none; words.len()]
            }
        };
        for i in std::mem::take(&mut f.block_mut(b).insts) {
            let moved: Option<Vec<usize>> =
                words_of(f, i, places).and_then(|w| w.iter().map(|w| words.get(w).copied()).collect());
            let Some(moved) = moved else {
                out.push(i);
                continue;
            };
            let inst = f.inst(i).clone();
            let per = moved.len() / inst.results.len().max(inst.args.len() - 1).max(1);
            match inst.op {
                Op::Store(_) => {
                    for (&v, at) in inst.args[1..].iter().zip(moved.chunks(per)) {
                        if let &[low, high] = at {
                            now[low] = ins(f, &mut out, Op::TruncLo, &[v], Type::B32, inst.loc);
                            now[high] = ins(f, &mut out, Op::TruncHi, &[v], Type::B32, inst.loc);
                        } else {
                            now[at[0]] = v;
                        }
                    }
                }
                _ => {
                    for (&r, at) in inst.results.iter().zip(moved.chunks(per)) {
                        let v = match *at {
                            [low, high] => {
                                ins(f, &mut out, Op::Concat, &[now[low], now[high]], Type::B64, inst.loc)
                            }
                            _ => now[at[0]],
                        };
                        map.resize(f.values.len(), None);
                        map[r.index()] = Some(v);
                    }
                }
            }
        }
        f.block_mut(b).insts = out;
        for call in f.block_mut(b).term.calls_mut() {
            call.args.extend(now.iter().copied());
        }
    }
    map.resize(f.values.len(), None);
    f.replace_values(&map);
}

fn ins(f: &mut Function, out: &mut Vec<InstId>, op: Op, args: &[Value], ty: Type, loc: LocId) -> Value {
    let i = f.make_inst(op, args, &[ty], None, loc);
    out.push(i);
    f.inst(i).results[0]
}
