//! Bits: logic, shifts, permutes, extension, joining and splitting of words.

use super::{Result, Selector};
use crate::mir::{MInst, MSrc, PSrc, Sub};
use ir::{InstId, Op, PrmtMode, Type, Value};
use isa::field::{Bool, Dir, Field, Part, ShiftType};
use isa::{Op as M, field};

/// Truth tables of the three inputs on their own.
const INPUT: [u8; 3] = [0xf0, 0xcc, 0xaa];

/// A tree of bit operations on at most three values.
struct Tree {
    leaves: smallvec::SmallVec<[Value; 3]>,
    table: u8,
}

impl Selector<'_> {
    pub(super) fn logic(&mut self, i: InstId) -> Result<()> {
        let f = self.f;
        let inst = f.inst(i);
        let args = &inst.args[..];
        let result = inst.results[0];
        let ty = f.ty(result);
        match inst.op {
            Op::And | Op::Or | Op::Xor | Op::Not if ty == Type::P => self.pred_logic(result),
            Op::And | Op::Or | Op::Xor | Op::Not | Op::Lop3(_) => {
                let tree = self.tree(result);
                let d = self.def(result);
                if ty == Type::B64 {
                    let mut words = smallvec::SmallVec::<[[MSrc; 2]; 3]>::new();
                    for &v in &tree.leaves {
                        words.push(self.words(v)?);
                    }
                    for n in 0..2 {
                        let leaves = words.iter().map(|w| w[n]).collect();
                        self.lop3(d.word(n as u8), leaves, tree.table);
                    }
                } else {
                    let mut leaves = smallvec::SmallVec::<[MSrc; 3]>::new();
                    for &v in &tree.leaves {
                        leaves.push(self.src(v)?);
                    }
                    self.lop3(d, leaves, tree.table);
                }
                Ok(())
            }
            Op::Shl => {
                let d = self.def(result);
                if ty == Type::B64 {
                    if let Some(n @ 0..=30) = self.constant(args[1])
                        && let Some((a, b, signed)) = self.shifted_word(args[0], n as u32)?
                    {
                        self.push(MInst::new(M::ImadWide).dst(d).a(a).b(b).with(super::int::sign(signed)));
                        return Ok(());
                    }
                    let (a, count) = (self.words(args[0])?, self.src(args[1])?);
                    return self.shift_words(d, a, count, Op::Shl);
                }
                let (a, count) = (self.src(args[0])?, self.src(args[1])?);
                self.shift_left(d, a, count);
                Ok(())
            }
            Op::ShrU | Op::ShrS => {
                let signed = inst.op == Op::ShrS;
                let d = self.def(result);
                if ty == Type::B64 {
                    let (a, count) = (self.words(args[0])?, self.src(args[1])?);
                    return self.shift_words(d, a, count, inst.op);
                }
                let a =
                    if ty == Type::B16 { self.extended(args[0], 16, signed)? } else { self.src(args[0])? };
                let count = self.src(args[1])?;
                self.shift_right(d, a, count, signed);
                Ok(())
            }
            Op::Funnel { left, wrap } => {
                let (lo, hi, count) = (self.src(args[0])?, self.src(args[1])?, self.src(args[2])?);
                let d = self.def(result);
                let (dir, part) = if left { (Dir::L, Part::Hi) } else { (Dir::R, Part::Lo) };
                let i =
                    MInst::new(M::Shf).dst(d).a(lo).b(count).c(hi).with(dir).with(ShiftType::U32).with(part);
                self.push(i.flag(Field::Wrap, wrap));
                Ok(())
            }
            Op::Prmt(mode) => {
                // Data in A and C, the selector in B.
                let (a, b, c) = (self.src(args[0])?, self.src(args[1])?, self.src(args[2])?);
                let d = self.def(result);
                self.push(MInst::new(M::Prmt).dst(d).a(a).b(c).c(b).with(prmt(mode)));
                Ok(())
            }
            // Asked for by a user that needs its own register, as a loop does.
            Op::TruncLo | Op::TruncHi if ty == Type::B32 => {
                let w = self.words(args[0])?;
                let d = self.def(result);
                self.mov(d, w[usize::from(inst.op == Op::TruncHi)]);
                Ok(())
            }
            Op::TruncLo => {
                let a = self.src(args[0])?;
                let d = self.def(result);
                self.mov(d, a);
                Ok(())
            }
            Op::TruncHi => {
                let a = self.src(args[0])?;
                let d = self.def(result);
                self.push(MInst::new(M::Prmt).dst(d).a(a).b(MSrc::imm(0x7632)));
                Ok(())
            }
            Op::Concat if ty == Type::B64 => {
                let (lo, hi) = (self.src(args[0])?, self.src(args[1])?);
                let d = self.def(result);
                self.mov(d, lo);
                self.mov(d.word(1), hi);
                Ok(())
            }
            Op::Concat => {
                let (lo, hi) = (self.src(args[0])?, self.src(args[1])?);
                let d = self.def(result);
                self.push(MInst::new(M::Prmt).dst(d).a(lo).b(MSrc::imm(0x5410)).c(hi));
                Ok(())
            }
            Op::ZeroExt | Op::SignExt => self.extend(result, inst.op == Op::SignExt, args[0]),
            _ => self.fail(format!("{:?} is not built", inst.op)),
        }
    }

    /// Widens to 32 or 64 bits.
    fn extend(&mut self, result: Value, signed: bool, v: Value) -> Result<()> {
        let bits = self.f.ty(v).bits();
        let d = self.def(result);
        if bits == 1 {
            let p = self.pred(v);
            let ones = if signed { u32::MAX } else { 1 };
            self.push(MInst::new(M::Sel).dst(d).b(MSrc::imm(ones)).ps(0, p.negated()));
            if self.f.ty(result) == Type::B64 {
                self.mov(d.word(1), if signed { MSrc::reg(d) } else { MSrc::ZERO });
            }
            return Ok(());
        }
        let low = self.extended(v, bits, signed)?;
        self.mov(d, low);
        if self.f.ty(result) == Type::B64 {
            if signed {
                self.shift_right(d.word(1), low, MSrc::imm(31), true);
            } else {
                self.mov(d.word(1), MSrc::ZERO);
            }
        }
        Ok(())
    }

    fn shift_words(&mut self, d: Sub, a: [MSrc; 2], count: MSrc, op: Op) -> Result<()> {
        let funnel = |dir: Dir, kind: ShiftType, part: Part| {
            MInst::new(M::Shf).a(a[0]).b(count).c(a[1]).with(dir).with(kind).with(part)
        };
        // Constant counts move whole words where they can.
        if let Some(n) = count.imm_bits() {
            let rest = MSrc::imm(n.saturating_sub(32));
            match (op, n) {
                (_, 0) => {
                    self.mov(d, a[0]);
                    self.mov(d.word(1), a[1]);
                    return Ok(());
                }
                (Op::Shl, 32..) => {
                    self.shift_left(d.word(1), a[0], rest);
                    self.mov(d, MSrc::ZERO);
                    return Ok(());
                }
                (Op::ShrU, 32..) => {
                    self.shift_right(d, a[1], rest, false);
                    self.mov(d.word(1), MSrc::ZERO);
                    return Ok(());
                }
                (Op::ShrS, 32..) => {
                    self.shift_right(d, a[1], rest, true);
                    self.shift_right(d.word(1), a[1], MSrc::imm(31), true);
                    return Ok(());
                }
                _ => {}
            }
        }
        match op {
            Op::Shl => {
                self.push(funnel(Dir::L, ShiftType::U64, Part::Hi).dst(d.word(1)));
                self.shift_left(d, a[0], count);
            }
            Op::ShrU => {
                self.push(funnel(Dir::R, ShiftType::U64, Part::Lo).dst(d));
                self.shift_right(d.word(1), a[1], count, false);
            }
            _ => {
                self.push(funnel(Dir::R, ShiftType::S64, Part::Lo).dst(d));
                self.shift_right(d.word(1), a[1], count, true);
            }
        }
        Ok(())
    }

    /// The bit operations below `root` that nobody else reads, as one function of at most three values.
    fn tree(&self, root: Value) -> Tree {
        let mut tree = self.node(root).unwrap_or(Tree { leaves: smallvec::smallvec![root], table: INPUT[0] });
        let mut k = 0;
        while k < tree.leaves.len() {
            let leaf = tree.leaves[k];
            if self.single(leaf).is_some()
                && let Some(inner) = self.node(leaf)
                && let Some(joined) = substitute(&tree, k, &inner)
            {
                tree = joined;
                k = 0;
            } else {
                k += 1;
            }
        }
        tree
    }

    /// One bit operation.
    fn node(&self, v: Value) -> Option<Tree> {
        let inst = self.f.def_op(v)?;
        let [x, y, _] = INPUT;
        let table = match inst.op {
            Op::And => x & y,
            Op::Or => x | y,
            Op::Xor => x ^ y,
            Op::Not => !x,
            Op::Lop3(table) => table,
            _ => return None,
        };
        let mut tree = Tree { leaves: smallvec::SmallVec::new(), table: 0 };
        let mut slot = [0usize; 3];
        for (n, &a) in inst.args.iter().enumerate() {
            slot[n] = position(&mut tree.leaves, a)?;
        }
        tree.table = remap(table, &slot, inst.args.len());
        Some(tree)
    }

    /// One LOP3; a table that ignores its inputs or passes one on is a move.
    fn lop3(&mut self, d: Sub, mut leaves: smallvec::SmallVec<[MSrc; 3]>, mut table: u8) {
        leaves.resize(3, MSrc::ZERO);
        for (n, leaf) in leaves.iter_mut().enumerate() {
            // Inputs that are all zeros or all ones choose half of the table.
            let (ones, up) = (INPUT[n], 4 >> n);
            let (with, without) = (table & ones, table & !ones);
            match leaf.imm_bits() {
                Some(0) => table = without | without << up,
                Some(u32::MAX) => (table, *leaf) = (with | with >> up, MSrc::ZERO),
                _ => {}
            }
        }
        let source = match table {
            0 => Some(MSrc::ZERO),
            0xff => Some(MSrc::imm(u32::MAX)),
            _ => INPUT.iter().position(|&t| t == table).map(|n| leaves[n]),
        };
        match source {
            Some(source) => self.mov(d, source),
            None => {
                let i = MInst::new(M::Lop3).dst(d).a(leaves[0]).b(leaves[1]).c(leaves[2]);
                self.push(i.num(Field::Lut, u32::from(table)));
            }
        }
    }

    /// Predicate logic: a comparison that nobody else reads combines in its own instruction.
    fn pred_logic(&mut self, result: Value) -> Result<()> {
        let f = self.f;
        let Some(inst) = f.def_op(result) else { return Ok(()) };
        let args = &inst.args[..];
        let how = match inst.op {
            Op::And => Some(Bool::And),
            Op::Or => Some(Bool::Or),
            Op::Xor => Some(Bool::Xor),
            _ => None,
        };
        if let Some(how) = how {
            for (x, y) in [(args[0], args[1]), (args[1], args[0])] {
                let Some(inner) = self.single(x) else { continue };
                match inner.op {
                    Op::ICmp { cmp, signed } if f.ty(inner.args[0]) != Type::P => {
                        let extra = self.pred(y);
                        return self.compare(result, cmp, signed, &inner.args, extra, how);
                    }
                    Op::FCmp { .. } if self.is_plain_float_compare(inner) => {
                        let extra = self.pred(y);
                        return self.float_compare(result, inner, extra, how);
                    }
                    _ => {}
                }
            }
        }
        let tree = self.tree(result);
        let mut sources = [PSrc::TRUE; 3];
        for (n, &v) in tree.leaves.iter().enumerate() {
            sources[n] = self.pred(v);
        }
        let d = self.pred_def(result);
        let i = MInst::new(M::Plop3).pd(0, d).ps(0, sources[0]).ps(1, sources[1]).ps(2, sources[2]);
        self.push(i.num(Field::Lut, u32::from(tree.table)));
        Ok(())
    }

    /// `condition ? a : b` on predicates.
    pub(super) fn select_pred(&mut self, result: Value, cond: Value, yes: Value, no: Value) -> Result<()> {
        let (p, a, b) = (self.pred(cond), self.pred(yes), self.pred(no));
        let d = self.pred_def(result);
        let [x, y, z] = INPUT;
        let table = x & y | !x & z;
        self.push(MInst::new(M::Plop3).pd(0, d).ps(0, p).ps(1, a).ps(2, b).num(Field::Lut, u32::from(table)));
        Ok(())
    }
}

/// Where `v` is among the leaves, appended if there is room.
fn position(leaves: &mut smallvec::SmallVec<[Value; 3]>, v: Value) -> Option<usize> {
    if let Some(n) = leaves.iter().position(|&l| l == v) {
        return Some(n);
    }
    if leaves.len() == 3 {
        return None;
    }
    leaves.push(v);
    Some(leaves.len() - 1)
}

/// The table of a function whose input `n` is what stands in slot `slot[n]`.
fn remap(table: u8, slot: &[usize; 3], inputs: usize) -> u8 {
    let mut out = 0;
    for row in 0..8u8 {
        let bit = |s: usize| row >> (2 - s) & 1;
        // Inputs that the function does not have are as the table was written for: zero.
        let index = (0..inputs).fold(0, |index, n| index | bit(slot[n]) << (2 - n));
        out |= (table >> index & 1) << row;
    }
    out
}

/// `outer` with its leaf `k` computed by `inner`.
fn substitute(outer: &Tree, k: usize, inner: &Tree) -> Option<Tree> {
    let mut leaves: smallvec::SmallVec<[Value; 3]> = smallvec::SmallVec::new();
    let mut outer_slot = [0usize; 3];
    for (n, &v) in outer.leaves.iter().enumerate() {
        if n != k {
            outer_slot[n] = position(&mut leaves, v)?;
        }
    }
    let mut inner_slot = [0usize; 3];
    for (n, &v) in inner.leaves.iter().enumerate() {
        inner_slot[n] = position(&mut leaves, v)?;
    }
    let inner_table = remap(inner.table, &inner_slot, inner.leaves.len());
    let mut table = 0;
    for row in 0..8u8 {
        let index = (0..outer.leaves.len()).fold(0, |index, n| {
            let bit = if n == k { inner_table >> row & 1 } else { row >> (2 - outer_slot[n]) & 1 };
            index | bit << (2 - n)
        });
        table |= (outer.table >> index & 1) << row;
    }
    Some(Tree { leaves, table })
}

fn prmt(mode: PrmtMode) -> field::PrmtMode {
    match mode {
        PrmtMode::Index => field::PrmtMode::Index,
        PrmtMode::F4e => field::PrmtMode::F4e,
        PrmtMode::B4e => field::PrmtMode::B4e,
        PrmtMode::Rc8 => field::PrmtMode::Rc8,
        PrmtMode::Ecl => field::PrmtMode::Ecl,
        PrmtMode::Ecr => field::PrmtMode::Ecr,
        PrmtMode::Rc16 => field::PrmtMode::Rc16,
    }
}
