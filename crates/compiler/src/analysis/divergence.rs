//! Which values are the same in all lanes of a warp, and which branches all lanes take together.
//!
//! The answer errs towards divergent. A value is *uniform* when every lane that executes its definition together gets
//! the same bits and no lane can hold an older copy: a value that leaves a loop which lanes leave in different
//! iterations is divergent, and so is a parameter of a block where paths of a divergent branch may meet.

use super::{DomTree, PostDominators, Regions};
use ir::{AddrOf, BarMode, Block, Function, InstId, Op, Order, SReg, Space, Terminator, Value, VoteMode};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeSet;
use std::ops::Range;

/// Blocks that may be looked at for each block of a function, and for a small function, until all that branches could
/// make divergent is taken to be. Programs of people and of compilers stay below two; this bounds the rest.
const LOOKS_A_BLOCK: usize = 64;
const LOOKS: usize = 1 << 16;

pub struct Divergence {
    values: Vec<bool>,
    branches: Vec<bool>,
}

impl Divergence {
    pub fn new(f: &Function, dom: &DomTree, post: &PostDominators) -> Self {
        let mut order = vec![usize::MAX; f.blocks.len()];
        let walk = f.reverse_postorder();
        walk.iter().enumerate().for_each(|(n, b)| order[b.index()] = n);
        let preds = f.predecessors();
        let can_meet = |b: &&Block| preds[b.index()].len() > 1 && !f.block(**b).params.is_empty();
        let mut w = Walk {
            f,
            dom,
            post,
            regions: Regions::new(f, dom),
            cyclic: cyclic(f, &walk, &order),
            joins_by_order: walk.iter().filter(can_meet).map(|b| order[b.index()]).collect(),
            joins_by_place: walk.iter().filter(can_meet).map(|b| dom.subtree(*b).start).collect(),
            skips: vec![None; f.blocks.len()],
            preds: &preds,
            order,
            users: users(f),
            found: Divergence { values: vec![false; f.values.len()], branches: vec![false; f.blocks.len()] },
            work: Vec::new(),
            looks: LOOKS + LOOKS_A_BLOCK * f.blocks.len(),
            region: Marks::new(f.blocks.len()),
            cycle: Marks::new(f.blocks.len()),
            way: vec![None; f.blocks.len()],
        };
        for &v in &f.param_values {
            w.mark(v);
        }
        for &b in &f.layout {
            for &i in &f.block(b).insts {
                w.visit_inst(i);
            }
        }
        while let Some(v) = w.work.pop() {
            for user in w.users[v.index()].clone() {
                match user {
                    User::Inst(i, _) => w.visit_inst(i),
                    User::Param(p) => w.mark(p),
                    User::Branch(b) => w.visit_branch(b),
                }
            }
        }
        w.found
    }

    pub fn is_divergent(&self, v: Value) -> bool {
        self.values[v.index()]
    }

    pub fn is_uniform(&self, v: Value) -> bool {
        !self.is_divergent(v)
    }

    /// Lanes of a warp may leave `b` to different blocks.
    pub fn branch_diverges(&self, b: Block) -> bool {
        self.branches[b.index()]
    }
}

#[derive(Clone, Copy)]
enum User {
    Inst(InstId, Block),
    Param(Value),
    Branch(Block),
}

fn users(f: &Function) -> Vec<Vec<User>> {
    let mut users = vec![Vec::new(); f.values.len()];
    for &b in &f.layout {
        for &i in &f.block(b).insts {
            for v in f.inst_values(i) {
                users[v.index()].push(User::Inst(i, b));
            }
        }
        let term = &f.block(b).term;
        match term {
            Terminator::Branch { cond: v, uniform: false, .. }
            | Terminator::Switch { index: v, uniform: false, .. } => {
                users[v.index()].push(User::Branch(b));
            }
            _ => {}
        }
        for call in term.calls() {
            for (&arg, &param) in call.args.iter().zip(&f.block(call.block).params) {
                users[arg.index()].push(User::Param(param));
            }
        }
    }
    users
}

/// Blocks that may be on a cycle: some edge goes back across them, or from them to themselves. From others control goes to
/// blocks behind them only, in reverse postorder.
fn cyclic(f: &Function, walk: &[Block], order: &[usize]) -> Vec<bool> {
    let mut across = vec![0i32; walk.len() + 1];
    for (n, &b) in walk.iter().enumerate() {
        for s in f.successors(b).iter().map(|s| order[s.index()]).filter(|&s| s <= n) {
            across[s] += 1;
            across[n + 1] -= 1;
        }
    }
    let mut found = vec![false; f.blocks.len()];
    let mut edges = 0;
    for (&b, change) in walk.iter().zip(across) {
        edges += change;
        found[b.index()] = edges > 0;
    }
    found
}

struct Walk<'a> {
    f: &'a Function,
    dom: &'a DomTree,
    post: &'a PostDominators,
    regions: Regions<'a>,
    cyclic: Vec<bool>,
    preds: &'a [SmallVec<[Block; 2]>],
    /// Places in reverse postorder.
    order: Vec<usize>,
    /// Blocks with parameters where ways meet, less those whose parameters are divergent: by place in reverse postorder, and
    /// by place in the preorder of the dominator tree.
    joins_by_order: BTreeSet<usize>,
    joins_by_place: BTreeSet<usize>,
    /// Where control goes on from a block as far as ways to it are concerned, once that was asked.
    skips: Vec<Option<SmallVec<[Block; 2]>>>,
    users: Vec<Vec<User>>,
    found: Divergence,
    work: Vec<Value>,
    /// Blocks that may still be looked at.
    looks: usize,
    // Scratch that is cleared by what was touched, so that a branch costs its region and not the function.
    region: Marks,
    cycle: Marks,
    way: Vec<Option<Block>>,
}

/// A set of blocks that is emptied at once.
struct Marks {
    stamps: Vec<u32>,
    now: u32,
}

impl Marks {
    fn new(blocks: usize) -> Self {
        Marks { stamps: vec![0; blocks], now: 0 }
    }

    fn clear(&mut self) {
        self.now += 1;
    }

    fn has(&self, b: Block) -> bool {
        self.stamps[b.index()] == self.now
    }

    /// False where it was in already.
    fn insert(&mut self, b: Block) -> bool {
        std::mem::replace(&mut self.stamps[b.index()], self.now) != self.now
    }
}

impl Walk<'_> {
    fn mark(&mut self, v: Value) {
        if !std::mem::replace(&mut self.found.values[v.index()], true) {
            self.work.push(v);
        }
    }

    fn visit_inst(&mut self, i: InstId) {
        let f = self.f;
        let inst = f.inst(i);
        let divergent = |v: &Value| self.found.values[v.index()];
        let inputs = inst.args.iter().any(divergent) || inst.guard.is_some_and(|g| divergent(&g.value));
        let results: &[Value] = &inst.results;
        // The members of a warp operation get one answer when they name the same members.
        let by_mask = |mask: usize| inst.args.get(mask).is_none_or(divergent) || inst.guard.is_some();
        let all = match inst.op {
            Op::SReg(r) => is_lane_register(r),
            Op::Load(a) => {
                inputs || a.order != Order::Weak || matches!(a.space, Space::Local | Space::Generic)
            }
            Op::Addr(AddrOf::Slot(_), _) => false,
            Op::Atom(_) | Op::Shfl(_) | Op::MatchAny | Op::Call(_) | Op::CallIndirect | Op::Syscall(_) => {
                true
            }
            Op::Alloca { .. } | Op::StackSave => true,
            Op::Vote(VoteMode::All | VoteMode::Any | VoteMode::Uni | VoteMode::Ballot) => by_mask(1),
            Op::MatchAll | Op::Redux(_) => by_mask(1),
            Op::Elect => {
                if by_mask(0) {
                    true
                } else {
                    if let Some(&elected) = results.get(1) {
                        self.mark(elected);
                    }
                    return;
                }
            }
            Op::ActiveMask => inst.guard.is_some(),
            Op::Bar { mode: BarMode::RedPopc | BarMode::RedAnd | BarMode::RedOr, .. } => inst.guard.is_some(),
            _ => inputs,
        };
        if all {
            for &r in results {
                self.mark(r);
            }
        }
    }

    fn visit_branch(&mut self, b: Block) {
        if std::mem::replace(&mut self.found.branches[b.index()], true) {
            return;
        }
        let join = self.post.ipdom(b);
        if self.looks == 0 || self.has_no_joins(b, join) {
            return;
        }
        let mut blocks = self.walk_region(b, join, true);
        self.mark_joins(b, join, &mut blocks);
        if self.region.has(b) {
            self.walk_region(b, join, false);
            self.mark_leaving(b, join);
        }
        if self.looks == 0 {
            self.give_up();
        }
    }

    /// There is nothing left to find for lanes that part at `b` and meet at `join`, and they do not come back to `b` before.
    fn has_no_joins(&self, b: Block, join: Option<Block>) -> bool {
        let at = |j: Block| self.order[j.index()];
        if self.regions.is_closed(b, join) {
            let none = |r: Range<usize>| self.joins_by_place.range(r).next().is_none();
            return self.regions.parts(b, join).into_iter().all(none)
                && join.is_none_or(|j| !self.joins_by_order.contains(&at(j)));
        }
        let last = join.filter(|j| !self.cyclic[j.index()]).map_or(usize::MAX, at);
        !self.cyclic[b.index()] && self.joins_by_order.range(at(b) + 1..=last).next().is_none()
    }

    /// Collects what lanes that part at `b` can run before they are together again. With `skips`, less the parts that ways
    /// enter and leave at one place: none of them meet there.
    fn walk_region(&mut self, b: Block, join: Option<Block>, skips: bool) -> Vec<Block> {
        self.region.clear();
        let mut blocks: Vec<Block> = Vec::new();
        let mut stack: Vec<Block> = self.f.successors(b).to_vec();
        while let Some(s) = stack.pop() {
            if !self.region.insert(s) {
                continue;
            }
            blocks.push(s);
            if Some(s) != join {
                stack.extend(if skips { self.ways_on(s) } else { self.f.successors(s) });
            }
        }
        self.looks = self.looks.saturating_sub(blocks.len());
        blocks
    }

    /// Where the ways that lead to `s` lead on.
    fn ways_on(&mut self, s: Block) -> SmallVec<[Block; 2]> {
        if let Some(known) = &self.skips[s.index()] {
            return known.clone();
        }
        let mut on = self.f.successors(s);
        if on.len() > 1
            && let Some(end) = self.post.ipdom(s)
            && self.regions.is_closed(s, Some(end))
        {
            on = smallvec![end];
        }
        self.skips[s.index()].insert(on).clone()
    }

    /// Takes everything that any branch could make divergent to be.
    fn give_up(&mut self) {
        let f = self.f;
        for &b in &f.layout {
            f.block(b).params.iter().for_each(|&p| self.mark(p));
            if self.cyclic[b.index()] {
                f.block(b).insts.iter().flat_map(|&i| &f.inst(i).results).for_each(|&r| self.mark(r));
            }
        }
    }

    /// Parameters of blocks where lanes that went different ways at `b` meet. Every block takes the name of the way that
    /// leads to it; where two names meet lanes do, and the block's own name goes on from there.
    fn mark_joins(&mut self, b: Block, join: Option<Block>, blocks: &mut [Block]) {
        blocks.sort_by_key(|s| self.order[s.index()]);
        let mut way = std::mem::take(&mut self.way);
        let mut meets: Vec<Block> = join.into_iter().collect();
        for s in self.f.successors(b) {
            if way[s.index()].replace(s).is_some() {
                meets.push(s);
            }
        }
        let mut changed = true;
        while changed {
            changed = false;
            for &s in blocks.iter().filter(|&&s| s != b && Some(s) != join) {
                let Some(name) = way[s.index()] else { continue };
                for t in self.ways_on(s) {
                    let new = match way[t.index()] {
                        None => name,
                        Some(old) if old == name => continue,
                        Some(_) => {
                            meets.push(t);
                            t
                        }
                    };
                    changed |= way[t.index()] != Some(new);
                    way[t.index()] = Some(new);
                }
            }
            self.looks = self.looks.saturating_sub(blocks.len());
        }
        for s in meets {
            self.joins_by_order.remove(&self.order[s.index()]);
            self.joins_by_place.remove(&self.dom.subtree(s).start);
            for &p in &self.f.block(s).params {
                self.mark(p);
            }
        }
        blocks.iter().for_each(|s| way[s.index()] = None);
        self.way = way;
    }

    /// The branch is in a cycle of its own region: lanes go round different numbers of times, so what is computed in the
    /// cycle differs among them where it is read outside.
    fn mark_leaving(&mut self, b: Block, join: Option<Block>) {
        self.cycle.clear();
        let mut members: Vec<Block> = Vec::new();
        let mut stack = vec![b];
        while let Some(s) = stack.pop() {
            if self.region.has(s) && Some(s) != join && self.cycle.insert(s) {
                members.push(s);
                stack.extend(self.preds[s.index()].iter().copied());
            }
        }
        for s in members {
            let data = self.f.block(s);
            let defined = data.insts.iter().flat_map(|&i| self.f.inst(i).results.iter()).chain(&data.params);
            for &v in defined {
                let leaves = self.users[v.index()].iter().any(|u| match *u {
                    User::Inst(_, at) | User::Branch(at) => !self.cycle.has(at),
                    User::Param(p) => match self.f.def(p) {
                        ir::ValueDef::BlockParam(at, _) => !self.cycle.has(at),
                        _ => true,
                    },
                });
                if leaves {
                    self.mark(v);
                }
            }
        }
    }
}

/// Differs between the lanes of a warp, or between two reads of it.
fn is_lane_register(r: SReg) -> bool {
    use SReg::*;
    r.is_volatile()
        || matches!(r, Tid(_) | LaneId | LaneMaskEq | LaneMaskLe | LaneMaskLt | LaneMaskGe | LaneMaskGt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir::{Access, FunctionBuilder, FunctionKind, IntCmp, Scalar, Type};

    fn analyse(f: &Function) -> Divergence {
        Divergence::new(f, &DomTree::new(f), &PostDominators::new(f))
    }

    #[test]
    fn a_join_of_a_divergent_branch_is_divergent_and_a_uniform_one_is_not() {
        for (register, expected) in [(SReg::Tid(0), true), (SReg::Ctaid(0), false)] {
            let mut b = FunctionBuilder::new(Function::new("f", FunctionKind::Entry));
            let x = b.declare_var(Type::B32);
            let id = b.ins(Op::SReg(register), &[], Type::B32);
            let zero = b.iconst(Type::B32, 0);
            let p = b.ins(Op::ICmp { cmp: IntCmp::Eq, signed: false }, &[id, zero], Type::P);
            let [t, e, join] = [(); 3].map(|()| b.create_block());
            b.branch(p, t, e, false);
            for (block, bits) in [(t, 1), (e, 2)] {
                b.switch_to(block);
                let v = b.iconst(Type::B32, bits);
                b.def_var(x, v);
                b.jump(join);
            }
            b.switch_to(join);
            let v = b.use_var(x);
            let entry = b.func.entry();
            b.terminate(Terminator::Exit);
            let f = b.finish();
            let d = analyse(&f);
            assert_eq!((d.is_divergent(v), d.branch_diverges(entry)), (expected, expected));
        }
    }

    #[test]
    fn lanes_that_exit_early_do_not_make_later_loops_divergent() {
        let mut b = FunctionBuilder::new(Function::new("f", FunctionKind::Entry));
        let i = b.declare_var(Type::B32);
        let lane = b.ins(Op::SReg(SReg::Tid(0)), &[], Type::B32);
        let limit = b.ins(Op::SReg(SReg::Ntid(1)), &[], Type::B32);
        let less = Op::ICmp { cmp: IntCmp::Lt, signed: false };
        let inside = b.ins(less, &[lane, limit], Type::P);
        let [on, head, left, right, tail, end] = [(); 6].map(|()| b.create_block());
        let zero = b.iconst(Type::B32, 0);
        b.def_var(i, zero);
        b.branch(inside, on, end, false);
        b.switch_to(on);
        b.jump(head);
        b.switch_to(head);
        let old = b.use_var(i);
        let x = b.declare_var(Type::B32);
        b.branch(inside, left, right, false);
        for side in [left, right] {
            b.switch_to(side);
            let v = b.iconst(Type::B32, side.0.into());
            b.def_var(x, v);
            b.jump(tail);
        }
        b.switch_to(tail);
        let met = b.use_var(x);
        let one = b.iconst(Type::B32, 1);
        let next = b.ins(Op::Add, &[old, one], Type::B32);
        b.def_var(i, next);
        let again = b.ins(less, &[next, limit], Type::P);
        b.branch(again, head, end, false);
        b.switch_to(end);
        b.terminate(Terminator::Exit);
        let f = b.finish();
        let d = analyse(&f);
        assert!(d.is_uniform(old) && d.is_uniform(next) && !d.branch_diverges(tail), "{f}");
        assert!(d.is_divergent(met), "the arms in the loop meet there");
    }

    #[test]
    fn a_counter_read_after_a_loop_with_a_divergent_exit_is_divergent() {
        let mut b = FunctionBuilder::new(Function::new("f", FunctionKind::Entry));
        let i = b.declare_var(Type::B32);
        let limit = b.ins(Op::SReg(SReg::Tid(0)), &[], Type::B32);
        let zero = b.iconst(Type::B32, 0);
        let one = b.iconst(Type::B32, 1);
        b.def_var(i, zero);
        let [head, end] = [(); 2].map(|()| b.create_block());
        b.jump(head);
        b.switch_to(head);
        let old = b.use_var(i);
        let next = b.ins(Op::Add, &[old, one], Type::B32);
        b.def_var(i, next);
        let invariant = b.ins(Op::Add, &[one, one], Type::B32);
        let p = b.ins(Op::ICmp { cmp: IntCmp::Lt, signed: false }, &[next, limit], Type::P);
        b.branch(p, head, end, false);
        b.switch_to(end);
        let out = b.iconst(Type::B64, 0);
        b.effect(Op::Store(Access::plain(Space::Global, Scalar::U32)), &[out, next], None);
        b.terminate(Terminator::Exit);
        let f = b.finish();
        let d = analyse(&f);
        assert!(d.is_divergent(next));
        assert!(d.is_uniform(invariant) && d.is_uniform(one));
    }
}
