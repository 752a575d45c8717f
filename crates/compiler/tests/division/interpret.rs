//! Runs a function of a module, one thread, with branches and calls, by the constant evaluator, and counts operations.

use arith::cvt::{FloatType, IntType, float_to_int, int_to_float};
use compiler::passes::evaluate::evaluate;
use ir::{Cvt, CvtRound, FuncId, Function, Module, Op, Scalar, Terminator, Type, Value};

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
        Op::Cvt(c) => vec![convert(c, args[0])],
        op => evaluate(&op, &args, &widths, f.ty(inst.results[0]))
            .unwrap_or_else(|| panic!("cannot evaluate {op:?} of {args:x?}"))
            .to_vec(),
    };
    for (&r, bits) in inst.results.iter().zip(results) {
        values[r.index()] = bits;
    }
}

/// Conversions between unsigned integers and f32, in any rounding.
fn convert(c: Cvt, a: u64) -> u64 {
    let int = |s| match s {
        Scalar::U32 => IntType::U32,
        Scalar::U64 => IntType::U64,
        _ => panic!("no conversion of {s:?}"),
    };
    match (c.to, c.from) {
        (Scalar::F32, from) => {
            let round = match c.round {
                CvtRound::Rn => arith::Round::Rn,
                CvtRound::Rz => arith::Round::Rz,
                CvtRound::Rp => arith::Round::Rp,
                other => panic!("rounding {other:?}"),
            };
            int_to_float(a, FloatType::F32, int(from), round)
        }
        (to, Scalar::F32) => {
            assert_eq!(c.round, CvtRound::Rzi);
            float_to_int(a, int(to), FloatType::F32, arith::Round::Rz, c.ftz)
        }
        other => panic!("no conversion {other:?}"),
    }
}
