//! Checks a module. What passed never panics in a pass.
//!
//! Rules:
//! 1. Every function with a body has a layout whose first block has no parameters; every block in it ends in jumps to
//!    blocks of the layout, with as many arguments as the target has parameters, of the same widths.
//! 2. Every value is defined once, and its definition dominates each use.
//! 3. Conditions and guards are [`Type::P`]; a guarded instruction has a pass-through argument of the same width for each
//!    result; pure operations have no guard.
//! 4. Indices of functions, variables, slots and locations exist.
//! 5. Entry functions end in `Exit`, device functions in `Return` with their result widths (or `Exit`, `Unreachable`).

use crate::dominators::{Edges, dominators};
use crate::entity::{Block, Value};
use crate::function::{Function, FunctionKind, Terminator, ValueDef};
use crate::module::Module;
use crate::op::{AddrOf, Op};
use crate::types::Type;

/// What is wrong, in which function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invalid {
    pub function: String,
    pub message: String,
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "invalid ir in {}: {}", self.function, self.message)
    }
}

impl std::error::Error for Invalid {}

pub fn validate(m: &Module) -> Result<(), Invalid> {
    for f in &m.functions {
        if !f.is_declaration {
            check(m, f).map_err(|message| Invalid { function: f.name.clone(), message })?;
        }
    }
    Ok(())
}

fn check(m: &Module, f: &Function) -> Result<(), String> {
    let entry = *f.layout.first().ok_or("no blocks")?;
    if !f.block(entry).params.is_empty() {
        return Err(format!("entry block {entry} has parameters"));
    }
    let mut in_layout = vec![false; f.blocks.len()];
    for &b in &f.layout {
        if b.index() >= f.blocks.len() || std::mem::replace(&mut in_layout[b.index()], true) {
            return Err(format!("{b} is not a block or twice in the layout"));
        }
    }
    for &b in &f.layout {
        for call in f.block(b).term.calls() {
            if !in_layout.get(call.block.index()).copied().unwrap_or(false) {
                return Err(format!("{b} jumps to {}, which is not in the layout", call.block));
            }
            let params = &f.block(call.block).params;
            if params.len() != call.args.len() {
                return Err(format!(
                    "{b} passes {} arguments to {} which takes {}",
                    call.args.len(),
                    call.block,
                    params.len()
                ));
            }
            for (&a, &p) in call.args.iter().zip(params) {
                if a.index() >= f.values.len() || f.ty(a) != f.ty(p) {
                    return Err(format!("{b} passes {a} for {p}, of another width"));
                }
            }
        }
        check_terminator(f, b)?;
        for &i in &f.block(b).insts {
            check_inst(m, f, i).map_err(|e| format!("{e} in {b}: {:?}", f.insts.get(i.index())))?;
        }
    }
    check_dominance(f)
}

fn check_terminator(f: &Function, b: Block) -> Result<(), String> {
    match &f.block(b).term {
        Terminator::Branch { cond, .. } if f.ty(*cond) != Type::P => {
            Err(format!("{b}: condition {cond} is no predicate"))
        }
        Terminator::Switch { index, .. } if f.ty(*index) != Type::B32 => {
            Err(format!("{b}: index {index} is not 32 bits"))
        }
        Terminator::Return(values) => {
            if f.kind == FunctionKind::Entry {
                return Err(format!("{b}: return from an entry"));
            }
            let same =
                values.len() == f.results.len() && values.iter().zip(&f.results).all(|(&v, &t)| f.ty(v) == t);
            if same { Ok(()) } else { Err(format!("{b}: returns other widths than the function declares")) }
        }
        _ => Ok(()),
    }
}

fn check_inst(m: &Module, f: &Function, i: crate::InstId) -> Result<(), String> {
    let inst = f.insts.get(i.index()).ok_or_else(|| format!("{i} does not exist"))?;
    for v in f.inst_values(i) {
        if v.index() >= f.values.len() {
            return Err(format!("{v} does not exist"));
        }
    }
    for (n, &r) in inst.results.iter().enumerate() {
        if f.values.get(r.index()).map(|v| v.1) != Some(ValueDef::Inst(i, n as u32)) {
            return Err(format!("{r} is not defined by {i}"));
        }
    }
    if let Some(g) = inst.guard {
        if f.ty(g.value) != Type::P {
            return Err(format!("guard {} is no predicate", g.value));
        }
        if inst.op.is_pure() && !matches!(inst.op, Op::Load(_)) {
            return Err("a pure operation has a guard".into());
        }
        let own =
            inst.args.len().checked_sub(inst.results.len()).ok_or("pass-through arguments are missing")?;
        for (&a, &r) in inst.args[own..].iter().zip(&inst.results) {
            if f.ty(a) != f.ty(r) {
                return Err(format!("pass-through {a} has another width than {r}"));
            }
        }
    }
    match inst.op {
        Op::Addr(AddrOf::Global(g), _) if g.index() >= m.globals.len() => Err(format!("{g} does not exist")),
        Op::Addr(AddrOf::Slot(s), _) if s.index() >= f.slots.len() => Err(format!("{s} does not exist")),
        Op::Addr(AddrOf::Function(c), _) | Op::Call(c) if c.index() >= m.functions.len() => {
            Err(format!("{c} does not exist"))
        }
        Op::Call(c) => {
            let callee = m.function(c);
            let widths = |vs: &[Value]| vs.iter().map(|&v| f.ty(v)).collect::<Vec<_>>();
            let expected: Vec<Type> = callee.param_values.iter().map(|&v| callee.ty(v)).collect();
            if widths(inst.own_args()) != expected || widths(&inst.results) != callee.results {
                return Err(format!("call of {} does not fit its signature", callee.name));
            }
            Ok(())
        }
        _ if inst.loc.index() >= m.locations.len().max(1) => Err(format!("{} does not exist", inst.loc)),
        _ => Ok(()),
    }
}

/// When a walk of the dominator tree enters and leaves each block: the times of a block lie between those of what
/// dominates it. 0 where control does not come.
fn tree_times(f: &Function, idom: &[Option<Block>]) -> Vec<(u32, u32)> {
    let up: Vec<(u32, u32)> =
        idom.iter().enumerate().filter_map(|(b, up)| up.map(|up| (up.0, b as u32))).collect();
    let children = Edges::new(idom.len(), &up);
    let mut times = vec![(0, 0); idom.len()];
    let mut now = 0;
    let mut stack = vec![(f.entry().index(), 0)];
    while let Some((b, next)) = stack.pop() {
        now += 1;
        if next == 0 {
            times[b].0 = now;
        }
        match children.from(b).get(next) {
            Some(&child) => stack.extend([(b, next + 1), (child as usize, 0)]),
            None => times[b].1 = now,
        }
    }
    times
}

fn check_dominance(f: &Function) -> Result<(), String> {
    let times = tree_times(f, &dominators(f));
    // A value is available in a block when its defining block is among the block's dominators.
    let mut def_block: Vec<Option<Block>> = vec![None; f.values.len()];
    for &v in &f.param_values {
        def_block[v.index()] = Some(f.entry());
    }
    for &b in &f.layout {
        for &p in &f.block(b).params {
            if def_block[p.index()].replace(b).is_some() {
                return Err(format!("{p} is defined twice"));
            }
        }
        for &i in &f.block(b).insts {
            for &r in &f.inst(i).results {
                if def_block[r.index()].replace(b).is_some() {
                    return Err(format!("{r} is defined twice"));
                }
            }
        }
    }
    let dominates = |a: Block, b: Block| {
        let (a, b) = (times[a.index()], times[b.index()]);
        a.0 != 0 && a.0 <= b.0 && b.1 <= a.1
    };
    let reachable = f.reverse_postorder();
    let mut seen = vec![false; f.values.len()];
    f.param_values.iter().for_each(|v| seen[v.index()] = true);
    for &b in &reachable {
        f.block(b).params.iter().for_each(|p| seen[p.index()] = true);
        let use_ok = |v: Value, seen: &[bool]| match def_block[v.index()] {
            Some(d) if d == b => seen[v.index()],
            Some(d) => dominates(d, b),
            None => false,
        };
        for &i in &f.block(b).insts {
            for v in f.inst_values(i) {
                if !use_ok(v, &seen) {
                    return Err(format!("{v} is used in {b} where it is not defined"));
                }
            }
            f.inst(i).results.iter().for_each(|r| seen[r.index()] = true);
        }
        for v in f.block(b).term.values() {
            if !use_ok(v, &seen) {
                return Err(format!("{v} is used at the end of {b} where it is not defined"));
            }
        }
    }
    Ok(())
}
