//! What branches before a loop say of its bounds.

use super::trips::{Counter, inverted, swapped};
use crate::passes::evaluate::signed;
use ir::{Block, Function, IntCmp, Op, Terminator, Type, Value};
use smallvec::SmallVec;

/// Branches to look back over.
const MAX_STEPS: usize = 8;

/// A comparison that holds wherever the loop is entered.
#[derive(Clone, Copy)]
struct Fact {
    cmp: IntCmp,
    signed: bool,
    left: Value,
    right: Value,
}

/// Which blocks go to a block, kept up to date while loops are unrolled.
pub struct Predecessors {
    lists: Vec<SmallVec<[Block; 2]>>,
    /// Where the blocks went when last looked at.
    successors: Vec<SmallVec<[Block; 2]>>,
}

impl Predecessors {
    pub fn new(f: &Function) -> Predecessors {
        let mut all =
            Predecessors { lists: f.predecessors(), successors: vec![SmallVec::new(); f.blocks.len()] };
        for &b in &f.layout {
            all.successors[b.index()] = f.successors(b).into_iter().collect();
        }
        all
    }

    /// After unrolling: `changed` goes elsewhere, and blocks were added.
    pub fn update(&mut self, f: &Function, changed: Block) {
        let added = self.lists.len()..f.blocks.len();
        self.lists.resize(f.blocks.len(), SmallVec::new());
        self.successors.resize(f.blocks.len(), SmallVec::new());
        for s in std::mem::take(&mut self.successors[changed.index()]) {
            let list = &mut self.lists[s.index()];
            if let Some(n) = list.iter().position(|&p| p == changed) {
                list.remove(n);
            }
        }
        for b in std::iter::once(changed).chain(added.map(Block::new)) {
            let successors: SmallVec<[Block; 2]> = f.successors(b).into_iter().collect();
            successors.iter().for_each(|s| self.lists[s.index()].push(b));
            self.successors[b.index()] = successors;
        }
    }
}

/// A branch that leads to `before` says that the counter starts on the near side of its limit (short of it, or just not
/// at it where the loop goes on until equal).
pub fn enters_short_of_limit(f: &Function, before: Block, c: &Counter, preds: &Predecessors) -> bool {
    let mut at = before;
    for _ in 0..MAX_STEPS {
        let [from] = preds.lists[at.index()][..] else { return false };
        if let Terminator::Branch { cond, then, otherwise, .. } = &f.block(from).term
            && then.block != otherwise.block
            && let Some(test) = f.def_op(*cond)
            && let Op::ICmp { cmp, signed } = test.op
        {
            let cmp = if then.block == at { cmp } else { inverted(cmp) };
            let fact = Fact { cmp, signed, left: test.args[0], right: test.args[1] };
            if implies(f, fact, c) {
                return true;
            }
        }
        at = from;
    }
    false
}

fn implies(f: &Function, fact: Fact, c: &Counter) -> bool {
    let same = |a: Value, b: Value| a == b || f.const_of(a).is_some_and(|k| f.const_of(b) == Some(k));
    let turned = Fact { cmp: swapped(fact.cmp), left: fact.right, right: fact.left, ..fact };
    for fact in [fact, turned] {
        let strict = matches!(fact.cmp, IntCmp::Lt | IntCmp::Gt);
        if same(fact.left, c.start) && same(fact.right, c.limit) {
            let ordered = fact.cmp == c.cmp && fact.signed == c.signed;
            let apart = c.cmp == IntCmp::Ne && (strict || fact.cmp == IntCmp::Ne);
            if ordered || apart {
                return true;
            }
        }
        // One side of the loop's bounds is a constant: the fact may be off by one from it.
        let bounds = [(c.start, c.limit, swapped(c.cmp)), (c.limit, c.start, c.cmp)];
        for (constant, variable, goal) in bounds {
            if let (Some(k), Some(by)) = (f.const_of(constant), f.const_of(fact.right))
                && fact.left == variable
                && implies_bound(fact.cmp, fact.signed, by, goal, c.signed, k, c.width)
            {
                return true;
            }
        }
    }
    false
}

/// `v cmp by` says that `v goal k`.
fn implies_bound(
    cmp: IntCmp,
    by_sign: bool,
    by: u64,
    goal: IntCmp,
    goal_sign: bool,
    k: u64,
    width: Type,
) -> bool {
    let number = |x: u64, sign: bool| if sign { i128::from(signed(x, width)) } else { i128::from(x) };
    let x = number(by, by_sign);
    let (low, high) = if by_sign {
        (-(1i128 << (width.bits() - 1)), (1i128 << (width.bits() - 1)) - 1)
    } else {
        (0, i128::from(width.mask()))
    };
    // The numbers that pass the fact, in the fact's signedness.
    let (from, to) = match cmp {
        IntCmp::Lt => (low, x - 1),
        IntCmp::Le => (low, x),
        IntCmp::Gt => (x + 1, high),
        IntCmp::Ge => (x, high),
        IntCmp::Eq => (x, x),
        IntCmp::Ne if x == low => (low + 1, high),
        IntCmp::Ne if x == high => (low, high - 1),
        IntCmp::Ne => return goal == IntCmp::Ne && k == by,
    };
    // The same bits in the goal's signedness: only where the range does not cross the sign.
    if by_sign != goal_sign && goal != IntCmp::Ne && (from < 0 || to >= 1i128 << (width.bits() - 1)) {
        return false;
    }
    let y = if goal == IntCmp::Ne { number(k, by_sign) } else { number(k, goal_sign) };
    match goal {
        IntCmp::Lt => to < y,
        IntCmp::Le => to <= y,
        IntCmp::Gt => from > y,
        IntCmp::Ge => from >= y,
        IntCmp::Ne => y < from || y > to,
        IntCmp::Eq => from == to && from == y,
    }
}
