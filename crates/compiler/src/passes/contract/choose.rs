//! Chooses which product goes into which addition.

use super::operand::{same_factors, view, views};
use super::stretch::stretches;
use crate::analysis::{DomTree, Loops};
use ir::{Block, Float, Function, InstId, Op, Scalar, Value};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// Operand `operand` of the addition is the product `product`, and fuses.
    Fuse { operand: usize, product: InstId },
    /// Both operands are products of the same factors: twice this one.
    Double { product: InstId },
}

/// A product that may fuse.
#[derive(Clone, Copy, Default)]
struct Product {
    is_candidate: bool,
    /// Uses at the start.
    uses: u32,
    /// Some use needs the rounded product.
    needed: bool,
}

/// An addition that may take a product.
struct Addition {
    inst: InstId,
    block: Block,
    mode: Float,
    /// The product behind each operand, where fusing it is possible.
    operands: [Option<InstId>; 2],
    /// No sign anywhere: the plain sum of its operands.
    is_plain_sum: bool,
    done: bool,
}

/// The choice for each addition, by instruction. `unrolled`: headers of loops that are groups of unrolled copies.
pub fn choose(f: &Function, unrolled: &[Block]) -> Vec<Option<Choice>> {
    let mut c = Chooser {
        f,
        products: vec![Product::default(); f.insts.len()],
        adds: Vec::new(),
        choices: vec![None; f.insts.len()],
    };
    c.collect();
    c.fuse_hoisted(unrolled);
    c.fuse_single_uses();
    c.fuse_remaining();
    c.choices
}

struct Chooser<'a> {
    f: &'a Function,
    products: Vec<Product>,
    adds: Vec<Addition>,
    choices: Vec<Option<Choice>>,
}

impl Chooser<'_> {
    fn collect(&mut self) {
        let f = self.f;
        let stretch = stretches(f);
        for &b in &f.layout {
            for &i in &f.block(b).insts {
                if matches!(f.inst(i).op, Op::FMul(m) if m.contract && !m.sat) {
                    self.products[i.index()].is_candidate = true;
                }
            }
        }
        for &b in &f.layout {
            for &i in &f.block(b).insts {
                let inst = f.inst(i);
                match inst.op {
                    Op::FAdd(m) | Op::FSub(m) if m.contract => self.collect_addition(i, b, m, &stretch),
                    // Modifiers are uses of nothing; who reads their result is.
                    Op::FNeg { .. } | Op::FAbs { .. } => {}
                    _ => f.inst_values(i).iter().for_each(|&v| self.need(v)),
                }
            }
            f.block(b).term.values().iter().for_each(|&v| self.need(v));
        }
        self.need_behind_opaque_signs();
    }

    fn collect_addition(&mut self, i: InstId, block: Block, m: Float, stretch: &[u32]) {
        let f = self.f;
        let inst = f.inst(i);
        let seen = views(f, inst, m);
        let mut operands = [None; 2];
        for (k, o) in seen.iter().enumerate() {
            let product = f.def_inst(o.value).filter(|p| self.products[p.index()].is_candidate);
            let Some(p) = product else {
                self.need(inst.args[k]);
                continue;
            };
            let fits = matches!(f.inst(p).op, Op::FMul(q) if q.ty == m.ty && q.ftz == m.ftz);
            let absorbs = fits
                && !o.absolute
                && seen[0].value != seen[1].value
                && stretch[p.index()] == stretch[i.index()];
            let product = &mut self.products[p.index()];
            product.uses += 1;
            if absorbs {
                operands[k] = Some(p);
            } else {
                product.needed = true;
            }
        }
        let is_plain_sum = !seen.iter().any(|o| o.negated || o.absolute);
        self.adds.push(Addition { inst: i, block, mode: m, operands, is_plain_sum, done: false });
    }

    /// A use that reads the rounded product, directly or with its sign changed.
    fn need(&mut self, mut v: Value) {
        while let Some(d) = self.f.def_op(v) {
            match d.op {
                Op::FNeg { .. } | Op::FAbs { .. } => v = d.args[0],
                _ => break,
            }
        }
        if let Some(p) = self.f.def_inst(v) {
            let product = &mut self.products[p.index()];
            product.uses += 1;
            product.needed = true;
        }
    }

    /// A sign change that no operand modifier can do is an operation that reads its argument.
    fn need_behind_opaque_signs(&mut self) {
        let f = self.f;
        for &b in &f.layout {
            for &i in &f.block(b).insts {
                let inst = f.inst(i);
                if let Op::FNeg { ty, ftz } | Op::FAbs { ty, ftz } = inst.op {
                    let mode = Float { ftz, ..Float::rn(ty) };
                    if view(f, inst.results[0], mode, false).value == inst.results[0] {
                        self.need(inst.args[0]);
                    }
                }
            }
        }
    }

    /// An addition in a loop whose operands do not change there moves out of it, to a product that has no other use. Only
    /// out of loops that were not unrolled.
    fn fuse_hoisted(&mut self, unrolled: &[Block]) {
        let f = self.f;
        let loops = Loops::new(f, &DomTree::new(f));
        if loops.loops.is_empty() {
            return;
        }
        let mut is_unrolled = vec![false; f.blocks.len()];
        unrolled.iter().for_each(|b| is_unrolled[b.index()] = true);
        let mut block_of: Vec<Option<Block>> = vec![None; f.values.len()];
        let mut order = vec![0u32; f.insts.len()];
        let mut n = 0;
        for b in f.reverse_postorder() {
            f.block(b).params.iter().for_each(|p| block_of[p.index()] = Some(b));
            for &i in &f.block(b).insts {
                n += 1;
                order[i.index()] = n;
                f.inst(i).results.iter().for_each(|r| block_of[r.index()] = Some(b));
            }
        }
        for a in 0..self.adds.len() {
            let add = &self.adds[a];
            let Some(l) = loops.innermost(add.block) else { continue };
            if is_unrolled[loops.get(l).header.index()] {
                continue;
            }
            let m = add.mode;
            let seen = views(f, f.inst(add.inst), m);
            let varies = |v: Value| {
                f.const_of(v).is_none() && block_of[v.index()].is_some_and(|b| loops.contains(l, b))
            };
            if seen.iter().any(|o| varies(o.value)) || seen[0].value == seen[1].value {
                continue;
            }
            let single = |k: usize| {
                let p = f.def_inst(seen[k].value).filter(|p| self.products[p.index()].is_candidate)?;
                let fits = matches!(f.inst(p).op, Op::FMul(q) if q.ty == m.ty && q.ftz == m.ftz);
                (fits && !seen[k].absolute && self.products[p.index()].uses == 1).then_some((
                    order[p.index()],
                    k,
                    p,
                ))
            };
            if let Some((_, operand, product)) = [0, 1].into_iter().filter_map(single).min() {
                self.choices[self.adds[a].inst.index()] = Some(Choice::Fuse { operand, product });
                self.adds[a].done = true;
            }
        }
    }

    fn fuse_single_uses(&mut self) {
        for a in 0..self.adds.len() {
            let add = &self.adds[a];
            if add.done || matches!(add.mode.ty, Scalar::F16x2 | Scalar::Bf16x2) {
                continue;
            }
            let single = |p: InstId| {
                let product = self.products[p.index()];
                product.uses == 1 && !product.needed
            };
            let Some(k) = (0..2).find(|&k| add.operands[k].is_some_and(single)) else { continue };
            match add.operands {
                [Some(first), Some(second)]
                    if add.is_plain_sum && self.same_product(first, second, add.mode) =>
                {
                    self.choices[add.inst.index()] = Some(Choice::Double { product: second });
                    self.products[second.index()].needed = true;
                    self.adds[a].done = true;
                }
                _ => self.fuse(a, k),
            }
        }
    }

    fn same_product(&self, p: InstId, q: InstId, m: Float) -> bool {
        same_factors(self.f, &self.f.inst(p).args, &self.f.inst(q).args, m)
    }

    fn fuse_remaining(&mut self) {
        for a in 0..self.adds.len() {
            let add = &self.adds[a];
            if add.done {
                continue;
            }
            let uses = |k: usize| {
                let product = self.products[add.operands[k]?.index()];
                (!product.needed).then_some((product.uses, k))
            };
            if let Some((_, k)) = [0, 1].into_iter().filter_map(uses).min() {
                self.fuse(a, k);
            }
        }
    }

    fn fuse(&mut self, a: usize, operand: usize) {
        let add = &mut self.adds[a];
        let Some(product) = add.operands[operand] else { return };
        add.done = true;
        self.choices[add.inst.index()] = Some(Choice::Fuse { operand, product });
        if let Some(other) = add.operands[1 - operand] {
            self.products[other.index()].needed = true;
        }
    }
}
