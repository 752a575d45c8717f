//! Turns short branches into predicated instructions: both arms run, loads and stores under the branch's condition, and
//! selections pick what the arms would have passed on.
//!
//! The limits are those measured on NVIDIA's assembler: an arm counts its machine instructions and its jump. Atomics, fences
//! and whatever synchronises lanes keep their branch, as does an arm behind which the thread ends. Contraction comes before: a product and a sum of different blocks
//! stay apart though their blocks do not.

use super::remove_dead_code::remove_unreachable;
use super::{Context, simplify_cfg};
use crate::analysis::{Divergence, DomTree, Loops, PostDominators};
use ir::{Block, BlockCall, Function, Guard, InstId, Op, SReg, Space, Terminator, Type, Value};

/// Instructions of an arm whose branch may part lanes.
const MAX_ARM: u32 = 8;
/// Where lanes stay together a branch costs less.
const MAX_UNIFORM_ARM: u32 = 6;
/// With a load from global memory in it, which is best started early.
const MAX_LOADING_ARM: u32 = 20;
/// Each round makes arms of the branches around those that the round before it removed.
const MAX_ROUNDS: u32 = 6;

pub fn run(f: &mut Function, context: &mut Context) {
    for _ in 0..MAX_ROUNDS {
        if !round(f, context) {
            return;
        }
        simplify_cfg::run(f, context);
    }
}

/// A branch whose ways meet again right behind one or two arms.
struct Shape {
    cond: Value,
    /// What runs if the condition holds, and if it does not.
    arms: [Option<Block>; 2],
    /// The way on from either side.
    on: [BlockCall; 2],
}

fn round(f: &mut Function, context: &mut Context) -> bool {
    let dom = DomTree::new(f);
    let divergence = Divergence::new(f, &dom, &PostDominators::new(f));
    let loops = Loops::new(f, &dom);
    let mut entries = vec![0u32; f.blocks.len()];
    for &b in &f.layout {
        f.successors(b).iter().for_each(|s| entries[s.index()] += 1);
    }
    let uses = count_uses(f);
    let mut place = vec![usize::MAX; f.blocks.len()];
    f.layout.iter().enumerate().for_each(|(n, b)| place[b.index()] = n);
    let mut changed = false;
    for b in f.reverse_postorder().into_iter().rev() {
        // From a loop the arm is reached once: it stays behind the loop.
        if loops.innermost(b).is_none()
            && let Some((arm, guard)) = ending_arm(f, b, &entries)
            && cost(f, arm, &uses).is_some_and(|n| n <= MAX_ARM)
        {
            context.remark(f, f.block(b).term_loc, || "predicated what a thread does before it ends".into());
            let mut out = Vec::new();
            take_arm(f, arm, guard, &mut out);
            f.block_mut(b).insts.extend(out);
            changed = true;
        }
        let Some(shape) = shape(f, b, &entries) else { continue };
        let join = shape.on[0].block;
        // Threads that have nothing more to do end: a predicated exit is the better branch.
        if f.block(join).insts.is_empty() && f.block(join).term == Terminator::Exit {
            continue;
        }
        let mut limit = if divergence.branch_diverges(b) { MAX_ARM } else { MAX_UNIFORM_ARM };
        if shape.arms.iter().flatten().any(|&a| loads_from_global(f, a)) {
            limit = MAX_LOADING_ARM;
        }
        let fits = shape.arms.iter().flatten().all(|&a| {
            // Of two arms the one that does not fall through has a jump too.
            let jump = shape.arms.iter().all(Option::is_some) && place[a.index()] + 1 != place[join.index()];
            cost(f, a, &uses).is_some_and(|n| n + u32::from(jump) <= limit)
        });
        if !fits {
            continue;
        }
        context.remark(f, f.block(b).term_loc, || {
            let n: usize = shape.arms.iter().flatten().map(|&a| f.block(a).insts.len()).sum();
            format!("predicated {n} operations instead of branching around them")
        });
        convert(f, b, shape);
        changed = true;
    }
    if changed {
        remove_unreachable(f);
    }
    changed
}

pub(super) fn count_uses(f: &Function) -> Vec<u32> {
    let mut uses = vec![0u32; f.values.len()];
    for &b in &f.layout {
        for &i in &f.block(b).insts {
            f.inst_values(i).iter().for_each(|v| uses[v.index()] += 1);
        }
        f.block(b).term.values().iter().for_each(|v| uses[v.index()] += 1);
    }
    uses
}

fn shape(f: &Function, b: Block, entries: &[u32]) -> Option<Shape> {
    let Terminator::Branch { cond, then, otherwise, .. } = &f.block(b).term else { return None };
    let arm = |c: &BlockCall| match &f.block(c.block).term {
        Terminator::Jump(on)
            if entries[c.block.index()] == 1 && c.block != b && f.block(c.block).params.is_empty() =>
        {
            Some((c.block, on.clone()))
        }
        _ => None,
    };
    let (yes, no) = (arm(then), arm(otherwise));
    let (arms, on) = match (yes, no) {
        (Some((y, from_y)), Some((n, from_n))) if from_y.block == from_n.block => {
            ([Some(y), Some(n)], [from_y, from_n])
        }
        (Some((y, from_y)), _) if from_y.block == otherwise.block => {
            ([Some(y), None], [from_y, otherwise.clone()])
        }
        (_, Some((n, from_n))) if from_n.block == then.block => ([None, Some(n)], [then.clone(), from_n]),
        _ => return None,
    };
    (on[0].block != b && f.const_of(*cond).is_none()).then_some(Shape { cond: *cond, arms, on })
}

/// An arm at whose end the thread ends, where the other side goes on.
fn ending_arm(f: &Function, b: Block, entries: &[u32]) -> Option<(Block, Guard)> {
    let Terminator::Branch { cond, then, otherwise, .. } = &f.block(b).term else { return None };
    let ends = |c: &BlockCall| f.block(c.block).term == Terminator::Exit;
    let (arm, negated) = match (ends(then), ends(otherwise)) {
        (true, false) => (then.block, false),
        (false, true) => (otherwise.block, true),
        _ => return None,
    };
    let fits = entries[arm.index()] == 1 && f.block(arm).params.is_empty() && !f.block(arm).insts.is_empty();
    fits.then_some((arm, Guard { value: *cond, negated }))
}

fn loads_from_global(f: &Function, b: Block) -> bool {
    f.block(b)
        .insts
        .iter()
        .any(|&i| matches!(f.inst(i).op, Op::Load(a) if matches!(a.space, Space::Global | Space::Generic)))
}

/// About how many machine instructions a block becomes, if all of them may be predicated.
fn cost(f: &Function, b: Block, uses: &[u32]) -> Option<u32> {
    let mut total = 0;
    for &i in &f.block(b).insts {
        let inst = f.inst(i);
        total += match inst.op {
            // What is predicated already is not predicated again.
            _ if inst.guard.is_some() => return None,
            Op::Load(a) => u32::from(!matches!(a.space, Space::Param)),
            Op::Store(_) => 1,
            Op::Div { .. } | Op::Rem { .. } | Op::FDiv { .. } | Op::FRcp { .. } | Op::FSqrt { .. } => {
                return None;
            }
            op if op.is_pure() => machine_cost(f, i, uses),
            _ => return None,
        };
    }
    Some(total)
}

/// Machine instructions of a pure operation.
fn machine_cost(f: &Function, i: InstId, uses: &[u32]) -> u32 {
    let inst = f.inst(i);
    let Some(&result) = inst.results.first() else { return 0 };
    let wide = f.ty(result) == Type::B64;
    // Another operation's operand, and that operation has room for it.
    let once = |v: Value| uses.get(v.index()) == Some(&1);
    let made_by = |v: Value, is: fn(&Op) -> bool| once(v) && f.def_op(v).is_some_and(|d| is(&d.op));
    let is_product = |op: &Op| matches!(op, Op::Mul | Op::MulWide { .. } | Op::Shl);
    match inst.op {
        Op::Const(_) | Op::Undef | Op::TruncLo | Op::TruncHi | Op::Concat | Op::ZeroExt => 0,
        Op::SReg(SReg::Ntid(_) | SReg::Nctaid(_) | SReg::EnvReg(_)) => 0,
        Op::FNeg { .. } | Op::FAbs { .. } | Op::Not | Op::Neg => 0,
        Op::ToGeneric(Space::Global) | Op::FromGeneric(Space::Global) | Op::Addr(..) => 0,
        Op::Add | Op::Sub => {
            // The product costs; what is added to it does not, nor does a constant that addresses take.
            let fused = inst.args.iter().any(|&v| made_by(v, is_product) || f.const_of(v).is_some() && wide);
            let third = !wide && inst.args.iter().any(|&v| made_by(v, |op| matches!(op, Op::Add | Op::Sub)));
            if fused || third { 0 } else { 1 + u32::from(wide) }
        }
        Op::And | Op::Or | Op::Xor if !wide => {
            u32::from(!inst.args.iter().any(|&v| made_by(v, |op| matches!(op, Op::And | Op::Or | Op::Xor))))
        }
        Op::Mul if wide => 4,
        Op::MulWide { .. } | Op::SignExt | Op::Cvt(_) => 1,
        Op::ICmp { .. } => 1 + u32::from(f.ty(inst.args[0]) == Type::B64),
        Op::FAdd(_) | Op::FMul(_) | Op::FFma(_) | Op::FSub(_) => 1,
        _ => 1 + u32::from(wide),
    }
}

fn convert(f: &mut Function, b: Block, shape: Shape) {
    let mut out = Vec::new();
    for (arm, negated) in shape.arms.into_iter().zip([false, true]) {
        let Some(arm) = arm else { continue };
        let guard = Guard { value: shape.cond, negated };
        take_arm(f, arm, guard, &mut out);
        f.block_mut(arm).term = Terminator::Unreachable;
    }
    let loc = f.block(b).term_loc;
    let [yes, no] = shape.on;
    let mut args = yes.args.clone();
    for (arg, &other) in args.iter_mut().zip(&no.args) {
        if *arg == other {
            continue;
        }
        let select = f.make_inst(Op::Select, &[shape.cond, *arg, other], &[f.ty(*arg)], None, loc);
        *arg = match pass_on(f, &out, shape.cond, *arg, other) {
            Some(v) => v,
            None => {
                out.push(select);
                f.inst(select).results[0]
            }
        };
    }
    f.block_mut(b).insts.extend(out);
    f.block_mut(b).term = Terminator::Jump(BlockCall { block: yes.block, args });
}

/// Moves an arm's instructions to `out`, under the arm's guard.
fn take_arm(f: &mut Function, arm: Block, guard: Guard, out: &mut Vec<InstId>) {
    for i in std::mem::take(&mut f.block_mut(arm).insts) {
        if !f.inst(i).op.is_pure() {
            put_under(f, i, guard, out);
        }
        out.push(i);
    }
}

/// A load that an arm passes on keeps what the other side passes on where it does not happen: no selection is needed.
fn pass_on(f: &mut Function, out: &[InstId], cond: Value, yes: Value, no: Value) -> Option<Value> {
    let place = |f: &Function, v: Value| {
        let i = f.def_inst(v)?;
        out.iter().position(|&o| o == i)
    };
    for (side, other, negated) in [(yes, no, false), (no, yes, true)] {
        let Some(at) = place(f, side) else { continue };
        let i = out[at];
        let inst = f.inst(i);
        let fits = matches!(inst.op, Op::Load(_))
            && inst.guard == Some(Guard { value: cond, negated })
            && inst.results.len() == 1
            && f.def_op(inst.args[inst.args.len() - 1]).is_some_and(|d| d.op == Op::Undef)
            && place(f, other).is_none_or(|before| before < at);
        if fits {
            if let Some(last) = f.inst_mut(i).args.last_mut() {
                *last = other;
            }
            return Some(side);
        }
    }
    None
}

/// Gives an operation with an effect the arm's guard.
fn put_under(f: &mut Function, i: InstId, guard: Guard, out: &mut Vec<InstId>) {
    let loc = f.inst(i).loc;
    for r in f.inst(i).results.clone() {
        let none = f.make_inst(Op::Undef, &[], &[f.ty(r)], None, loc);
        out.push(none);
        let none = f.inst(none).results[0];
        f.inst_mut(i).args.push(none);
    }
    f.inst_mut(i).guard = Some(guard);
}
