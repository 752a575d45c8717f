//! Which values are the same in all lanes of a warp, and which branches all lanes take together.
//!
//! The answer errs towards divergent. A value is *uniform* when every lane that executes its definition together gets
//! the same bits and no lane can hold an older copy: a value that leaves a loop which lanes leave in different
//! iterations is divergent, and so is a parameter of a block where paths of a divergent branch may meet.

use super::PostDominators;
use ir::{AddrOf, BarMode, Block, Function, InstId, Op, Order, SReg, Space, Terminator, Value, VoteMode};

pub struct Divergence {
    values: Vec<bool>,
    branches: Vec<bool>,
}

impl Divergence {
    pub fn new(f: &Function, post: &PostDominators) -> Self {
        let mut order = vec![usize::MAX; f.blocks.len()];
        f.reverse_postorder().iter().enumerate().for_each(|(n, b)| order[b.index()] = n);
        let mut w = Walk {
            f,
            post,
            preds: f.predecessors(),
            order,
            users: users(f),
            found: Divergence { values: vec![false; f.values.len()], branches: vec![false; f.blocks.len()] },
            work: Vec::new(),
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

struct Walk<'a> {
    f: &'a Function,
    post: &'a PostDominators,
    preds: Vec<smallvec::SmallVec<[Block; 2]>>,
    /// Places in reverse postorder.
    order: Vec<usize>,
    users: Vec<Vec<User>>,
    found: Divergence,
    work: Vec<Value>,
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
        // Everything lanes can run before they are together again.
        let join = self.post.ipdom(b);
        self.region.clear();
        let mut blocks: Vec<Block> = Vec::new();
        let mut stack: Vec<Block> = self.f.successors(b).to_vec();
        while let Some(s) = stack.pop() {
            if !self.region.insert(s) {
                continue;
            }
            blocks.push(s);
            if Some(s) != join {
                stack.extend(self.f.successors(s));
            }
        }
        self.mark_joins(b, join, &mut blocks);
        if self.region.has(b) {
            self.mark_leaving(b, join);
        }
    }

    /// Parameters of blocks where lanes that went different ways at `b` meet. Every block takes the name of the way that
    /// leads to it; where two names meet lanes do, and the block's own name goes on from there.
    fn mark_joins(&mut self, b: Block, join: Option<Block>, blocks: &mut [Block]) {
        blocks.sort_by_key(|s| self.order[s.index()]);
        let mut way = std::mem::take(&mut self.way);
        self.f.successors(b).iter().for_each(|s| way[s.index()] = Some(*s));
        let mut changed = true;
        while changed {
            changed = false;
            for &s in blocks.iter().filter(|&&s| s != b && Some(s) != join) {
                let Some(name) = way[s.index()] else { continue };
                for t in self.f.successors(s) {
                    let new = match way[t.index()] {
                        None => name,
                        Some(old) if old == name => continue,
                        Some(_) => t,
                    };
                    changed |= way[t.index()] != Some(new);
                    way[t.index()] = Some(new);
                }
            }
        }
        let first: Vec<Block> = self.f.successors(b).to_vec();
        for &s in blocks.iter() {
            // A way named after its first block says nothing of whether another way leads there too.
            let meets = way[s.index()] == Some(s)
                && (!first.contains(&s) || first.iter().filter(|x| **x == s).count() > 1 || {
                    let from = |p: &Block| *p != b && way[p.index()].is_some_and(|w| w != s);
                    self.preds[s.index()].iter().any(from)
                });
            if meets || Some(s) == join {
                for &p in &self.f.block(s).params {
                    self.mark(p);
                }
            }
        }
        // Names were given to blocks of the region and to what follows them.
        for &s in blocks.iter() {
            way[s.index()] = None;
            self.f.successors(s).iter().for_each(|t| way[t.index()] = None);
        }
        first.iter().for_each(|s| way[s.index()] = None);
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
        Divergence::new(f, &PostDominators::new(f))
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
