//! Runs a function of a module, one thread, with branches and calls, by the constant evaluator, and counts operations.

use compiler::passes::evaluate::evaluate;
use ir::{FuncId, Function, Module, Op, Terminator, Type, Value};

pub struct Run {
    pub returned: Vec<u64>,
    /// Operations that were executed, without constants.
    pub operations: usize,
    pub calls: usize,
}

pub fn interpret(m: &Module, f: FuncId, args: &[u64]) -> Run {
    let f = m.function(f);
    let mut values = vec![0u64; f.values.len()];
    for (&v, &bits) in f.param_values.iter().zip(args) {
        values[v.index()] = bits & f.ty(v).mask();
    }
    let mut run = Run { returned: Vec::new(), operations: 0, calls: 0 };
    let mut at = f.entry();
    loop {
        for &i in &f.block(at).insts {
            step(m, f, i, &mut values, &mut run);
        }
        run.operations += 1;
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
            Terminator::Return(results) => {
                run.returned = results.iter().map(read).collect();
                return run;
            }
            other => panic!("{other:?} in {}", f.name),
        };
        let passed: Vec<u64> = call.args.iter().map(read).collect();
        at = call.block;
        for (&p, bits) in f.block(at).params.iter().zip(passed) {
            values[p.index()] = bits;
        }
    }
}

fn step(m: &Module, f: &Function, i: ir::InstId, values: &mut [u64], run: &mut Run) {
    let inst = f.inst(i);
    let args: Vec<u64> = inst.args.iter().map(|v| values[v.index()]).collect();
    let widths: Vec<Type> = inst.args.iter().map(|&v| f.ty(v)).collect();
    run.operations += usize::from(!matches!(inst.op, Op::Const(_)));
    let results = match inst.op {
        Op::Call(callee) => {
            let inner = interpret(m, callee, &args);
            run.operations += inner.operations;
            run.calls += 1 + inner.calls;
            inner.returned
        }
        op => evaluate(&op, &args, &widths, f.ty(inst.results[0]))
            .unwrap_or_else(|| panic!("cannot evaluate {op:?} of {args:x?}"))
            .to_vec(),
    };
    for (&r, bits) in inst.results.iter().zip(results) {
        values[r.index()] = bits;
    }
}
