//! Strength-reduces floating-point induction variables, as NVIDIA's assembler does with plain operations.
//!
//! In a loop with `x = x + s` and `y = x*a + e` (a product and an addition that would fuse; s, a, e do not change), y is
//! kept up to date by `y = y + a*s` from `y0 = fma(a, x0, e)`. Where s is a constant the product stays in the loop and
//! fuses there. The sums round differently from the products, so this is part of contraction and goes with it.

use super::Context;
use super::contract::stretch::stretches;
use crate::analysis::{DomTree, LoopId, Loops};
use ir::{Block, Float, Function, InstId, LocId, Op, Scalar, Value, ValueDef};

pub fn run(f: &mut Function, context: &mut Context) {
    if !context.options.fmad {
        return;
    }
    let loops = Loops::new(f, &DomTree::new(f));
    if loops.loops.is_empty() {
        return;
    }
    let mut facts = Facts::new(f);
    for n in 0..loops.loops.len() {
        let all = find(f, &loops, LoopId(n), &facts);
        for found in &all {
            context.remark(f, f.inst(found.sum).loc, || "replaced by a running sum".into());
            reduce(f, found);
        }
        if !all.is_empty() {
            facts = Facts::new(f);
        }
    }
}

/// What there is to know of a function as it stands.
struct Facts {
    /// The block that defines a value.
    home: Vec<Option<Block>>,
    uses: Vec<u32>,
    stretch: Vec<u32>,
    /// Jumps to a block, as (block, which call).
    incoming: Vec<Vec<(Block, usize)>>,
}

impl Facts {
    fn new(f: &Function) -> Self {
        let mut facts = Facts {
            home: vec![None; f.values.len()],
            uses: vec![0; f.values.len()],
            stretch: stretches(f),
            incoming: vec![Vec::new(); f.blocks.len()],
        };
        for &b in &f.layout {
            f.block(b).params.iter().for_each(|p| facts.home[p.index()] = Some(b));
            for &i in &f.block(b).insts {
                f.inst(i).results.iter().for_each(|r| facts.home[r.index()] = Some(b));
                f.inst_values(i).iter().for_each(|v| facts.uses[v.index()] += 1);
            }
            f.block(b).term.values().iter().for_each(|v| facts.uses[v.index()] += 1);
            for (n, call) in f.block(b).term.calls().iter().enumerate() {
                facts.incoming[call.block.index()].push((b, n));
            }
        }
        facts
    }
}

/// The variable `x` of a loop, and a sum `x*a + e`.
struct Found {
    header: Block,
    /// The one edge into the loop and the edges back, as (block, which call).
    entry: (Block, usize),
    latches: Vec<(Block, usize)>,
    /// x before the loop.
    start: Value,
    /// The instruction that steps x, and by what.
    step_inst: InstId,
    step: Value,
    step_is_sub: bool,
    factor: Value,
    addend: Value,
    sum: InstId,
    /// Signs of product and addend in the sum.
    product_negated: bool,
    addend_negated: bool,
    mode: Float,
}

fn plain(op: Op) -> Option<Float> {
    match op {
        Op::FAdd(m) | Op::FSub(m) | Op::FMul(m)
            if m.contract && !m.sat && matches!(m.ty, Scalar::F32 | Scalar::F64) =>
        {
            Some(m)
        }
        _ => None,
    }
}

fn find(f: &Function, loops: &Loops, id: LoopId, facts: &Facts) -> Vec<Found> {
    let l = loops.get(id);
    let mut found = Vec::new();
    let (latches, entries): (Vec<_>, Vec<_>) =
        facts.incoming[l.header.index()].iter().copied().partition(|&(b, _)| loops.contains(id, b));
    let [entry] = entries[..] else { return found };
    let varies = |v: Value| facts.home[v.index()].is_some_and(|b| loops.contains(id, b));
    let fixed = |v: Value| !varies(v) || f.const_of(v).is_some();
    let passed = |edge: (Block, usize), n: usize| f.block(edge.0).term.calls()[edge.1].args[n];
    for (n, &x) in f.block(l.header).params.iter().enumerate() {
        let next = passed(latches[0], n);
        if latches.iter().any(|&e| passed(e, n) != next) {
            continue;
        }
        let Some(step_inst) = f.def_inst(next) else { continue };
        let stepping = f.inst(step_inst);
        let Some(mode) = plain(stepping.op) else { continue };
        let (step, step_is_sub) = match (stepping.op, &stepping.args[..]) {
            (Op::FAdd(_), &[a, s]) if a == x && fixed(s) => (s, false),
            (Op::FAdd(_), &[s, a]) if a == x && fixed(s) => (s, false),
            (Op::FSub(_), &[a, s]) if a == x && fixed(s) => (s, true),
            _ => continue,
        };
        for &b in &l.blocks {
            for &i in &f.block(b).insts {
                let sum = f.inst(i);
                let is_sub = matches!(sum.op, Op::FSub(_));
                if matches!(sum.op, Op::FMul(_)) || plain(sum.op) != Some(mode) {
                    continue;
                }
                for k in 0..2 {
                    let (product, addend) = (sum.args[k], sum.args[1 - k]);
                    let Some(p) = f.def_inst(product) else { continue };
                    let factors = &f.inst(p).args;
                    let factor = match factors[..] {
                        [v, a] if v == x && fixed(a) => a,
                        [a, v] if v == x && fixed(a) => a,
                        _ => continue,
                    };
                    let fuses = matches!(f.inst(p).op, Op::FMul(_))
                        && plain(f.inst(p).op) == Some(mode)
                        && facts.uses[product.index()] == 1
                        && facts.stretch[p.index()] == facts.stretch[i.index()];
                    if fuses && fixed(addend) {
                        found.push(Found {
                            header: l.header,
                            entry,
                            latches: latches.clone(),
                            start: passed(entry, n),
                            step_inst,
                            step,
                            step_is_sub,
                            factor,
                            addend,
                            sum: i,
                            product_negated: is_sub && k == 1,
                            addend_negated: is_sub && k == 0,
                            mode,
                        });
                        break;
                    }
                }
            }
        }
    }
    found
}

fn reduce(f: &mut Function, r: &Found) {
    let ty = r.mode.ty.ty();
    let loc = f.inst(r.sum).loc;
    let before = r.entry.0;
    let factor = outside(f, before, r.factor, loc);
    let addend = outside(f, before, r.addend, loc);
    let neg = Op::FNeg { ty: r.mode.ty, ftz: false };
    let signed_factor = if r.product_negated { append(f, before, neg, &[factor], loc) } else { factor };
    let signed_addend = if r.addend_negated { append(f, before, neg, &[addend], loc) } else { addend };
    let fused = Op::FFma(Float { contract: false, ..r.mode });
    let first = append(f, before, fused, &[signed_factor, r.start, signed_addend], loc);

    let running = f.add_block_param(r.header, ty);
    let is_sub = r.step_is_sub != r.product_negated;
    let product = Op::FMul(r.mode);
    let mut added: Vec<InstId> = Vec::new();
    let increment = if let Some(step) = f.const_of(r.step) {
        let k = f.make_inst(Op::Const(step), &[], &[ty], None, loc);
        let a = match f.const_of(r.factor) {
            Some(bits) => {
                let a = f.make_inst(Op::Const(bits), &[], &[ty], None, loc);
                added.push(a);
                f.inst(a).results[0]
            }
            None => r.factor,
        };
        let args = [a, f.inst(k).results[0]];
        let m = f.make_inst(product, &args, &[ty], None, loc);
        added.extend([k, m]);
        f.inst(m).results[0]
    } else {
        append(f, before, product, &[factor, r.step], loc)
    };
    let op = if is_sub { Op::FSub(r.mode) } else { Op::FAdd(r.mode) };
    let next = f.make_inst(op, &[running, increment], &[ty], None, f.inst(r.step_inst).loc);
    added.push(next);
    let stepped = f.inst(next).results[0];
    if let Some(b) = f.layout.iter().copied().find(|&b| f.block(b).insts.contains(&r.step_inst)) {
        let insts = &mut f.block_mut(b).insts;
        let at = insts.iter().position(|i| *i == r.step_inst).map_or(insts.len(), |n| n + 1);
        insts.splice(at..at, added);
    }
    f.block_mut(r.entry.0).term.calls_mut()[r.entry.1].args.push(first);
    for &(b, n) in &r.latches {
        f.block_mut(b).term.calls_mut()[n].args.push(stepped);
    }

    let old = f.inst(r.sum).results[0];
    let mut map: Vec<Option<Value>> = vec![None; f.values.len()];
    map[old.index()] = Some(running);
    f.replace_values(&map);
    f.values[old.index()].1 = ValueDef::None;
    for b in f.layout.clone() {
        f.block_mut(b).insts.retain(|i| *i != r.sum);
    }
}

/// Appends an operation to `b` and returns its result, of the width of its first argument.
fn append(f: &mut Function, b: Block, op: Op, args: &[Value], loc: LocId) -> Value {
    let ty = f.ty(args[0]);
    let i = f.make_inst(op, args, &[ty], None, loc);
    f.block_mut(b).insts.push(i);
    f.inst(i).results[0]
}

/// `v` where `b` ends: a constant written in the loop is written again.
fn outside(f: &mut Function, b: Block, v: Value, loc: LocId) -> Value {
    match f.const_of(v) {
        Some(bits) => {
            let i = f.make_inst(Op::Const(bits), &[], &[f.ty(v)], None, loc);
            f.block_mut(b).insts.push(i);
            f.inst(i).results[0]
        }
        None => v,
    }
}
