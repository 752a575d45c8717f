//! Replaces division, reciprocal and square root by what the machine has: approximations of the special-function unit,
//! Newton steps and corrections, with the same results bit for bit.
//!
//! The shapes are those of NVIDIA's assembler, so that as many instructions are executed: 32-bit integers, f32 and nearest f64
//! operations are sequences in line; where the float sequences are not exact a check (for f32 quotients the machine's own, FCHK)
//! branches to the call of a routine. 16- and 64-bit integers and the other roundings are always calls. A routine is
//! one internal function a module, made when it is first asked for.
//!
//! A division ends a block for contraction, so this runs after it.

mod code;
mod float;
mod format;
mod integer;
mod routines;

use code::Code;
use format::Format;
use integer::Kind;
use ir::{
    FuncId, Function, FunctionKind, InstId, LocId, Module, Op, Round, Terminator, Type, Value, ValueDef,
};

/// Functions that sequences call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Routine {
    /// Two 16-bit integers extended to 32.
    Integer16(Kind),
    Integer64(Kind),
    /// a / b; reciprocals pass one for a.
    Divide {
        format: Format,
        round: Round,
        ftz: bool,
    },
    Root {
        format: Format,
        round: Round,
        ftz: bool,
    },
}

impl Routine {
    /// A name that no program can have: it has dots.
    fn name(self) -> String {
        let integer = |k: Kind, bits: u32| {
            format!("{}.{}{bits}", if k.remainder { "rem" } else { "div" }, if k.signed { "s" } else { "u" })
        };
        let float = |what: &str, f: Format, round: Round, ftz: bool| {
            let round = match round {
                Round::Rn => "rn",
                Round::Rz => "rz",
                Round::Rm => "rm",
                Round::Rp => "rp",
            };
            format!("{what}.{round}{}.{}", if ftz { ".ftz" } else { "" }, f.name())
        };
        match self {
            Routine::Integer16(k) => integer(k, 16),
            Routine::Integer64(k) => integer(k, 64),
            Routine::Divide { format, round, ftz } => float("div", format, round, ftz),
            Routine::Root { format, round, ftz } => float("sqrt", format, round, ftz),
        }
    }

    /// Width of arguments and result, and how many arguments.
    fn signature(self) -> (Type, usize) {
        match self {
            Routine::Integer16(_) => (Type::B32, 2),
            Routine::Integer64(_) => (Type::B64, 2),
            Routine::Divide { format, .. } => (format.ty(), 2),
            Routine::Root { format, .. } => (format.ty(), 1),
        }
    }

    fn build(self) -> Function {
        let (ty, arguments) = self.signature();
        let mut func = Function::new(self.name(), FunctionKind::Device);
        func.results = vec![ty];
        let args: Vec<Value> =
            (0..arguments as u32).map(|n| func.new_value(ty, ValueDef::FuncParam(n))).collect();
        func.param_values = args.clone();
        let at = func.new_block();
        let mut c = Code { func: &mut func, at, loc: LocId(0), layout: vec![at] };
        let value = match (self, args.as_slice()) {
            (Routine::Integer16(k), &[a, b]) => Some(integer::divide_16(&mut c, k, a, b)),
            (Routine::Integer64(k), &[a, b]) => Some(integer::divide_64(&mut c, k, a, b)),
            (Routine::Divide { format, round, ftz }, &[a, b]) => {
                routines::divide(&mut c, format, round, ftz, a, b);
                None
            }
            (Routine::Root { format, round, ftz }, &[x]) => {
                routines::root(&mut c, format, round, ftz, x);
                None
            }
            _ => None,
        };
        if let Some(value) = value {
            c.terminate(Terminator::Return([value].into_iter().collect()));
        }
        let layout = c.layout;
        func.layout = layout;
        func
    }
}

/// The routines asked for, in the order of asking: their functions follow the module's own.
struct Routines {
    first: usize,
    wanted: Vec<Routine>,
}

impl Routines {
    fn id(&mut self, r: Routine) -> FuncId {
        let n = self.wanted.iter().position(|&w| w == r).unwrap_or_else(|| {
            self.wanted.push(r);
            self.wanted.len() - 1
        });
        FuncId::new(self.first + n)
    }
}

/// Expands every function of a valid module and adds the routines that they call.
pub fn run(module: &mut Module) {
    let mut routines = Routines { first: module.functions.len(), wanted: Vec::new() };
    for f in module.functions.iter_mut().filter(|f| !f.is_declaration) {
        expand_function(f, &mut routines);
    }
    module.functions.extend(routines.wanted.iter().map(|r| r.build()));
}

fn is_division(op: Op) -> bool {
    matches!(op, Op::Div { .. } | Op::Rem { .. } | Op::FDiv { .. } | Op::FRcp { .. } | Op::FSqrt { .. })
}

fn expand_function(f: &mut Function, routines: &mut Routines) {
    let has_any =
        |f: &Function| f.layout.iter().any(|&b| f.block(b).insts.iter().any(|&i| is_division(f.inst(i).op)));
    if !has_any(f) {
        return;
    }
    let mut replaced: Vec<Option<Value>> = vec![None; f.values.len()];
    let old_layout = std::mem::take(&mut f.layout);
    let at = old_layout[0];
    let mut c = Code { func: f, at, loc: LocId(0), layout: Vec::with_capacity(old_layout.len()) };
    for b in old_layout {
        c.enter(b);
        let block = c.func.block_mut(b);
        let insts = std::mem::take(&mut block.insts);
        let term = std::mem::replace(&mut block.term, Terminator::Unreachable);
        let term_loc = block.term_loc;
        for i in insts {
            c.loc = c.func.inst(i).loc;
            match expand(&mut c, routines, i) {
                Some(value) => replaced[c.func.inst(i).results[0].index()] = Some(value),
                None => {
                    let at = c.at;
                    c.func.block_mut(at).insts.push(i);
                }
            }
        }
        c.loc = term_loc;
        c.terminate(term);
    }
    let layout = c.layout;
    f.layout = layout;
    f.replace_values(&replaced);
}

/// The value that takes the place of the instruction's result, if it is a division.
fn expand(c: &mut Code, routines: &mut Routines, i: InstId) -> Option<Value> {
    let inst = c.func.inst(i);
    let (op, args) = (inst.op, inst.args.clone());
    let kind = match op {
        Op::Div { signed } => Kind { signed, remainder: false },
        Op::Rem { signed } => Kind { signed, remainder: true },
        Op::FDiv { .. } | Op::FRcp { .. } | Op::FSqrt { .. } => return expand_float(c, routines, op, &args),
        _ => return None,
    };
    let &[a, b] = args.as_slice() else { return None };
    Some(match c.func.ty(a) {
        Type::B64 => call(c, routines, Routine::Integer64(kind), &[a, b]),
        Type::B16 => {
            let (a, b) = (integer::extended(c, kind, a), integer::extended(c, kind, b));
            let word = call(c, routines, Routine::Integer16(kind), &[a, b]);
            c.ins(Op::TruncLo, &[word], Type::B16)
        }
        _ => integer::divide_32(c, kind, a, b),
    })
}

fn expand_float(c: &mut Code, routines: &mut Routines, op: Op, args: &[Value]) -> Option<Value> {
    let (fast, routine) = float::expand(c, op, args)?;
    let Some(fast) = fast else { return Some(call_for(c, routines, op, routine, args)) };
    let (ty, _) = routine.signature();
    let slow = c.create_block(&[]);
    let join = c.create_block(&[ty]);
    c.branch(fast.is_slow, (slow, &[]), (join, &[fast.result]));
    c.enter(slow);
    let value = call_for(c, routines, op, routine, args);
    c.jump(join, &[value]);
    c.enter(join).first().copied()
}

/// Calls a routine for a floating-point operation: a reciprocal is a quotient of one.
fn call_for(c: &mut Code, routines: &mut Routines, op: Op, routine: Routine, args: &[Value]) -> Value {
    match (op, routine) {
        (Op::FRcp { .. }, Routine::Divide { format, .. }) => {
            let one = format.constant(c, format.power_of_two(0));
            call(c, routines, routine, &[one, args[0]])
        }
        _ => call(c, routines, routine, args),
    }
}

fn call(c: &mut Code, routines: &mut Routines, routine: Routine, args: &[Value]) -> Value {
    let id = routines.id(routine);
    c.ins(Op::Call(id), args, routine.signature().0)
}
