//! Runs a function of pure operations and stores, one thread, for comparing a function with itself after passes.

use compiler::passes::evaluate::evaluate;
use ir::{Block, Function, Op, Terminator, Type, Value};
use std::collections::BTreeMap;

/// What a run leaves: the returned values and every store in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    pub returned: Vec<u64>,
    pub stored: Vec<(u64, Vec<u64>)>,
}

impl Outcome {
    /// With the last store to each address only, by address.
    pub fn at_the_end(mut self) -> Outcome {
        let last: BTreeMap<u64, Vec<u64>> = self.stored.drain(..).collect();
        Outcome { stored: last.into_iter().collect(), ..self }
    }
}

/// `None` when it takes more than `fuel` blocks.
pub fn interpret(f: &Function, args: &[u64], fuel: usize) -> Option<Outcome> {
    interpret_in(std::slice::from_ref(f), args, fuel)
}

/// The first of the functions of a module.
pub fn interpret_in(functions: &[Function], args: &[u64], fuel: usize) -> Option<Outcome> {
    interpret_one(functions, 0, args, fuel)
}

fn interpret_one(functions: &[Function], n: usize, args: &[u64], fuel: usize) -> Option<Outcome> {
    let f = &functions[n];
    let mut values = vec![0u64; f.values.len()];
    for (&v, &bits) in f.param_values.iter().zip(args) {
        values[v.index()] = bits & f.ty(v).mask();
    }
    let mut out = Outcome::default();
    let mut at = f.entry();
    for _ in 0..fuel {
        run_block(functions, f, at, &mut values, &mut out, fuel)?;
        let read = |v: &Value| values[v.index()];
        let call = match &f.block(at).term {
            Terminator::Jump(c) => c,
            Terminator::Branch { cond, then, otherwise, .. } => {
                if read(cond) & 1 != 0 {
                    then
                } else {
                    otherwise
                }
            }
            Terminator::Switch { index, targets, .. } => &targets[read(index) as usize],
            Terminator::Return(results) => {
                out.returned = results.iter().map(read).collect();
                return Some(out);
            }
            Terminator::Exit => return Some(out),
            Terminator::Unreachable => panic!("ran into unreachable code in {at}\n{f}"),
        };
        let passed: Vec<u64> = call.args.iter().map(read).collect();
        at = call.block;
        for (&p, bits) in f.block(at).params.iter().zip(passed) {
            values[p.index()] = bits;
        }
    }
    None
}

fn run_block(
    functions: &[Function],
    f: &Function,
    b: Block,
    values: &mut [u64],
    out: &mut Outcome,
    fuel: usize,
) -> Option<()> {
    for &i in &f.block(b).insts {
        let inst = f.inst(i);
        let args: Vec<u64> = inst.args.iter().map(|v| values[v.index()]).collect();
        let widths: Vec<Type> = inst.args.iter().map(|&v| f.ty(v)).collect();
        match inst.op {
            Op::Store(_) => {
                if inst.guard.is_none_or(|g| (values[g.value.index()] & 1 != 0) != g.negated) {
                    out.stored.push((args[0], args[1..].to_vec()));
                }
            }
            Op::Undef => values[inst.results[0].index()] = 0,
            Op::Call(callee) => {
                let inner = interpret_one(functions, callee.index(), &args, fuel)?;
                for (&r, bits) in inst.results.iter().zip(inner.returned) {
                    values[r.index()] = bits;
                }
            }
            op => {
                let results = evaluate(&op, &args, &widths, f.ty(inst.results[0]))
                    .unwrap_or_else(|| panic!("cannot evaluate {op:?} of {args:x?}"));
                for (&r, bits) in inst.results.iter().zip(results) {
                    values[r.index()] = bits;
                }
            }
        }
    }
    Some(())
}
