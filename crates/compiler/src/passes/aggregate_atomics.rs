//! Lanes that all reduce into one place first reduce among themselves, and one of them goes to memory.
//!
//! The place must be the same for every thread of the warp, so that it is the same for whichever lanes come here together.
//! A sum of equal numbers is the number times the lanes; other data go through a warp reduction. Where the old value is
//! wanted, each lane's is what the leader found and what the lanes below it add, as if they had come one after the other. For
//! other sums with a wanted result lanes add up step by step, if all of a warp come; if not, each goes to memory.
//! Guarded atomics get a branch of their own, so that it is known who comes.

use super::Context;
use super::edit::{Change, Editor, rewrite};
use super::predicate_branches::count_uses;
use crate::prepare;
use ir::{
    Atom, AtomOp, Block, BlockCall, Function, Guard, InstData, InstId, IntCmp, LocId, Op, ReduxOp, SReg,
};
use ir::{Scalar, ShflMode, Space, Terminator, Type, Value};

pub fn run(f: &mut Function, context: &mut Context) {
    prepare::branch_around_guarded(f, |op| matches!(op, Op::Atom(_) | Op::Red(_)));
    let uses = count_uses(f);
    let mut done: Vec<(LocId, &str)> = Vec::new();
    let mut lanes: Option<(Block, Lanes)> = None;
    rewrite(f, |e, b, i| {
        let op = e.func.inst(i).op;
        let Some((atom, plan)) = plan(e.func, i, &uses) else {
            if may_meet(op) {
                lanes = None;
            }
            return Change::Keep;
        };
        let here = match lanes {
            Some((home, here)) if home == b => here,
            _ => Lanes::find(e),
        };
        lanes = Some((b, here));
        done.push((e.loc, "one lane does it for those that come together"));
        aggregate(e, i, atom, plan, here)
    });
    scan(f, &uses, &mut done);
    for (loc, message) in done {
        context.remark(f, loc, || message.into());
    }
}

/// Who waits for others may go on with more lanes than came.
fn may_meet(op: Op) -> bool {
    !op.is_pure() && !matches!(op, Op::Load(_) | Op::Store(_) | Op::Red(_) | Op::Atom(_) | Op::Fence { .. })
}

/// Sums of different numbers with wanted results.
fn scan(f: &mut Function, uses: &[u32], done: &mut Vec<(LocId, &str)>) {
    let mut k = 0;
    while k < f.layout.len() {
        let b = f.layout[k];
        k += 1;
        let is_wanted = |r: &Value| uses.get(r.index()).is_some_and(|&n| n > 0);
        let is_scanned = |&i: &InstId| may_scan(f, i) && f.inst(i).results.iter().any(is_wanted);
        let found = f.block(b).insts.iter().position(is_scanned);
        let Some(at) = found else { continue };
        let (i, body, join) = prepare::split_around(f, k, at);
        let InstData { loc, op, args, results, .. } = f.inst(i).clone();
        done.push((loc, "where all lanes come, one adds what they add up to"));
        let (address, data, ty) = (args[0], args[1], Type::B32);

        // Who comes is known before what they add: the compare need not wait for it.
        let came = f.block(b).insts.iter().rposition(|&i| may_meet(f.inst(i).op)).map_or(0, |n| n + 1);
        let mut e = Editor::new(f, loc);
        let mask = e.ins(Op::ActiveMask, &[], ty);
        let first = e.finish();
        f.block_mut(b).insts.splice(came..came, first);

        let mut e = Editor::new(f, loc);
        let all = e.iconst(ty, u64::MAX);
        let is_full = e.ins(Op::ICmp { cmp: IntCmp::Eq, signed: false }, &[mask, all], Type::P);
        let none = e.ins(Op::Undef, &[], ty);
        let apart = Guard { value: is_full, negated: true };
        let alone = e.guarded(op, &[address, data, none], ty, apart);
        let before = e.finish();

        let mut e = Editor::new(f, loc);
        let all = e.iconst(ty, u64::MAX);
        let zero = e.iconst(ty, 0);
        let up = |e: &mut Editor, sum: Value, lanes: u64| {
            let lanes = e.iconst(ty, lanes);
            e.shuffle(Op::Shfl(ShflMode::Up), &[sum, lanes, zero, all])
        };
        let mut sum = data;
        for step in 0..5 {
            let (other, is_there) = up(&mut e, sum, 1 << step);
            sum = add_if(&mut e, is_there, sum, other);
        }
        let lane = e.ins(Op::SReg(SReg::LaneId), &[], ty);
        let last = e.iconst(ty, 31);
        let is_last = e.ins(Op::ICmp { cmp: IntCmp::Eq, signed: false }, &[lane, last], Type::P);
        let none = e.ins(Op::Undef, &[], ty);
        let old = e.guarded(op, &[address, sum, none], ty, Guard { value: is_last, negated: false });
        let (below, is_there) = up(&mut e, sum, 1);
        let (old, _) = e.shuffle(Op::Shfl(ShflMode::Idx), &[old, last, last, all]);
        let mine = add_if(&mut e, is_there, old, below);
        let scanned = e.finish();

        f.block_mut(b).insts.extend(before);
        let otherwise = BlockCall { block: join, args: [alone].into_iter().collect() };
        let then = BlockCall::new(body);
        f.block_mut(b).term = Terminator::Branch { cond: is_full, then, otherwise, uniform: true };
        f.block_mut(b).term_loc = loc;
        f.block_mut(body).insts = scanned;
        f.block_mut(body).term =
            Terminator::Jump(BlockCall { block: join, args: [mine].into_iter().collect() });
        f.block_mut(body).term_loc = loc;
        f.values[results[0].index()].1 = ir::ValueDef::BlockParam(join, 0);
        f.block_mut(join).params.push(results[0]);
    }
}

/// `a`, and `b` more where the condition holds.
fn add_if(e: &mut Editor, condition: Value, a: Value, b: Value) -> Value {
    let sum = e.ins(Op::Add, &[a, b], Type::B32);
    e.ins(Op::Select, &[condition, sum, a], Type::B32)
}

/// A sum that lanes make in steps if its result is wanted.
pub fn may_scan(f: &Function, i: InstId) -> bool {
    let inst = f.inst(i);
    let Op::Atom(a) = inst.op else { return false };
    let [address, data] = inst.args[..] else { return false };
    a.op == AtomOp::Add
        && matches!(a.elem, Scalar::U32 | Scalar::S32)
        && !a.wide
        && inst.guard.is_none()
        && matches!(a.space, Space::Global | Space::Shared)
        && is_same(f, address, 12)
        && !is_same(f, data, 12)
}

/// How the data of the lanes become one.
#[derive(Clone, Copy)]
enum Plan {
    /// A number that all add.
    Same {
        wanted: bool,
    },
    Reduce(ReduxOp),
}

fn plan(f: &Function, i: InstId, uses: &[u32]) -> Option<(Atom, Plan)> {
    let inst = f.inst(i);
    let (Op::Atom(a) | Op::Red(a)) = inst.op else { return None };
    let [address, data] = inst.args[..] else { return None };
    let wanted = inst.results.iter().any(|r| uses[r.index()] > 0);
    let is_word = matches!(a.elem, Scalar::U32 | Scalar::S32);
    let is_pair = matches!(a.elem, Scalar::U64 | Scalar::S64);
    let known_space = matches!(a.space, Space::Global | Space::Shared | Space::Generic);
    if a.wide || inst.guard.is_some() || !known_space || !is_same(f, address, 12) {
        return None;
    }
    let same = is_same(f, data, 12);
    let plan = match a.op {
        // The machine counts lanes itself.
        AtomOp::Add if a.space == Space::Shared && !wanted && is_word && f.const_of(data) == Some(1) => {
            return None;
        }
        AtomOp::Add if same && (is_word || is_pair && !wanted) => Plan::Same { wanted },
        _ if wanted || !is_word => return None,
        AtomOp::Add => Plan::Reduce(ReduxOp::Add),
        AtomOp::Min if a.elem == Scalar::S32 => Plan::Reduce(ReduxOp::MinS),
        AtomOp::Max if a.elem == Scalar::S32 => Plan::Reduce(ReduxOp::MaxS),
        AtomOp::Min => Plan::Reduce(ReduxOp::MinU),
        AtomOp::Max => Plan::Reduce(ReduxOp::MaxU),
        AtomOp::And => Plan::Reduce(ReduxOp::And),
        AtomOp::Or => Plan::Reduce(ReduxOp::Or),
        AtomOp::Xor => Plan::Reduce(ReduxOp::Xor),
        _ => return None,
    };
    Some((a, plan))
}

/// The value is the same for all threads of a CTA, whenever they come to need it, or for all of a warp: what all its lanes
/// vote for or reduce to. None of them can do so again before the last one has come.
fn is_same(f: &Function, v: Value, depth: u32) -> bool {
    let Some(inst) = f.def_op(v) else { return false };
    match inst.op {
        Op::Vote(_) | Op::Redux(_) => {
            let mask = inst.args.last().and_then(|&mask| f.const_of(mask));
            inst.guard.is_none() && mask.is_some_and(|mask| mask as u32 == u32::MAX)
        }
        Op::SReg(r) => matches!(r, SReg::Ctaid(_) | SReg::Ntid(_) | SReg::Nctaid(_)),
        Op::Addr(ir::AddrOf::Slot(_), _) | Op::Undef => false,
        op => depth > 0 && op.is_pure() && inst.args.iter().all(|&a| is_same(f, a, depth - 1)),
    }
}

/// Who came.
#[derive(Clone, Copy)]
struct Lanes {
    mask: Value,
    /// The number of the last lane.
    last: Value,
    is_last: Value,
    count: Value,
}

impl Lanes {
    fn find(e: &mut Editor) -> Lanes {
        let mask = e.ins(Op::ActiveMask, &[], Type::B32);
        let last = e.ins(Op::Bfind { signed: false, shift_amount: false }, &[mask], Type::B32);
        let lane = e.ins(Op::SReg(SReg::LaneId), &[], Type::B32);
        let is_last = e.ins(Op::ICmp { cmp: IntCmp::Eq, signed: false }, &[lane, last], Type::P);
        let count = e.ins(Op::Popc, &[mask], Type::B32);
        Lanes { mask, last, is_last, count }
    }
}

fn aggregate(e: &mut Editor, i: InstId, atom: Atom, plan: Plan, lanes: Lanes) -> Change {
    let (address, data) = (e.func.inst(i).args[0], e.func.inst(i).args[1]);
    let guard = Guard { value: lanes.is_last, negated: false };
    let ty = e.func.ty(data);
    match plan {
        Plan::Same { wanted } => {
            let total = times(e, lanes.count, data, ty);
            if !wanted {
                become_red(e, i, atom, address, total, guard);
                return Change::Keep;
            }
            let none = e.ins(Op::Undef, &[], ty);
            let old = e.guarded(Op::Atom(atom), &[address, total, none], ty, guard);
            let (clamp, below) =
                (e.iconst(Type::B32, 0x1f), e.ins(Op::SReg(SReg::LaneMaskLt), &[], Type::B32));
            let below = e.ins(Op::And, &[lanes.mask, below], Type::B32);
            let rank = e.ins(Op::Popc, &[below], Type::B32);
            let (found, _) = e.shuffle(Op::Shfl(ShflMode::Idx), &[old, lanes.last, clamp, lanes.mask]);
            let before = times(e, rank, data, ty);
            Change::Replace(e.ins(Op::Add, &[found, before], ty))
        }
        Plan::Reduce(op) => {
            let total = e.ins(Op::Redux(op), &[data, lanes.mask], ty);
            become_red(e, i, atom, address, total, guard);
            Change::Keep
        }
    }
}

fn become_red(e: &mut Editor, i: InstId, atom: Atom, address: Value, total: Value, guard: Guard) {
    let inst = e.func.inst_mut(i);
    (inst.op, inst.guard) = (Op::Red(atom), Some(guard));
    inst.args = [address, total].into_iter().collect();
    for r in std::mem::take(&mut inst.results) {
        e.func.values[r.index()].1 = ir::ValueDef::None;
    }
}

/// `n` times `data`.
fn times(e: &mut Editor, n: Value, data: Value, ty: Type) -> Value {
    let n = if ty == Type::B64 { e.ins(Op::ZeroExt, &[n], ty) } else { n };
    if e.func.const_of(data) == Some(1) { n } else { e.ins(Op::Mul, &[n, data], ty) }
}
