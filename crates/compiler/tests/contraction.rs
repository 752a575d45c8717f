//! Probes of what NVIDIA's assembler fuses: each file is a small kernel with the assembler's decision in its comments, as
//! expressions of what it stores (`out[k] =`) and as its floating-point instructions (`sass:`). After the passes, ours
//! must store the same expressions and have the same instructions.

#[path = "contraction/expression.rs"]
mod expression;
#[path = "contraction/oracle.rs"]
mod oracle;
#[path = "passes/random.rs"]
mod random;

use compiler::passes::{OptLevel, PassOptions, run};
use expression::{Expression, fused, negated, parse, product, sum};
use ir::{Function, MufuFn, Op, Scalar, Space, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn probes() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contraction");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of probes")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "ptx"))
        .collect();
    files.sort();
    files
}

fn compile(path: &Path, source: &str, options: PassOptions) -> Function {
    let name = path.display().to_string();
    let mut module = ptx::to_ir(&name, source.as_bytes()).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    run(&mut module, &options);
    module.functions.into_iter().find(|f| f.name == "probe").expect("the kernel")
}

#[test]
fn every_probe_fuses_what_the_assembler_fuses() {
    let mut wrong = Vec::new();
    let files = probes();
    assert_eq!(files.len(), 97);
    for path in &files {
        let source = std::fs::read_to_string(path).expect("readable");
        let f = compile(path, &source, PassOptions::default());
        let mut errors = Vec::new();
        for (k, expected) in expected_outputs(&source) {
            let ours = stored(&f, k).map(|v| express(&f, v));
            if ours.as_ref() != Some(&expected) {
                let ours = ours.map_or("nothing".into(), |e| e.to_string());
                errors.push(format!("out[{k}] is {ours}, expected {expected}"));
            }
        }
        let (ours, expected) = (instructions(&f), expected_instructions(&source));
        if ours != expected {
            errors.push(format!("instructions {ours:?}\n  expected {expected:?}"));
        }
        if !errors.is_empty() {
            wrong.push(format!("{}\n  {}\n{f}", path.display(), errors.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "{} of {} probes differ\n{}", wrong.len(), files.len(), wrong.join("\n"));
}

#[test]
fn random_programs_fuse_by_the_rule() {
    use oracle::Inst;
    for seed in 0..4000 {
        let mut r = random::Random::new(seed);
        let mut program: Vec<Inst> = Vec::new();
        let mut values: Vec<usize> = (0..oracle::INPUTS).collect();
        let mut results: Vec<usize> = Vec::new();
        for n in 0..r.below(22) + 3 {
            // Late results more often than inputs, so that values have few uses and long chains.
            let mut operand =
                || if !results.is_empty() && r.below(3) > 0 { r.pick(&results) } else { r.pick(&values) };
            let (x, y, z) = (operand(), operand(), operand());
            let inst = match r.below(16) {
                0..=5 => Inst::Mul(x, y),
                6..=9 => Inst::Add(x, y),
                10..=11 => Inst::Sub(x, y),
                12 => Inst::Neg(x),
                13 => Inst::Abs(x),
                14 => Inst::Fma(x, y, z),
                _ => Inst::MulRn(x, y),
            };
            program.push(inst);
            values.push(oracle::INPUTS + n);
            results.push(oracle::INPUTS + n);
            if results.len() > 6 {
                results.remove(0);
            }
        }
        for _ in 0..r.below(3) + 1 {
            program.push(Inst::Store(r.pick(&results)));
        }
        let text = oracle::text(&program);
        let f = compile(Path::new("random"), &text, PassOptions::default());
        for (k, expected) in oracle::outputs(&program).into_iter().enumerate() {
            let ours = stored(&f, k as u64).map(|v| express(&f, v));
            assert_eq!(ours, Some(expected), "seed {seed}, out[{k}]\n{text}\n{f}");
        }
    }
}

#[test]
fn nothing_fuses_when_told_not_to() {
    for options in [
        PassOptions { fmad: false, ..PassOptions::default() },
        PassOptions { opt_level: OptLevel::O0, ..PassOptions::default() },
    ] {
        for path in probes() {
            let source = std::fs::read_to_string(&path).expect("readable");
            let written = source
                .lines()
                .filter(|l| l.trim_start().trim_start_matches("LP: ").starts_with("fma."))
                .count();
            let f = compile(&path, &source, options);
            let found = all_ops(&f).filter(|op| matches!(op, Op::FFma(_))).count();
            assert_eq!(found == 0, written == 0, "{}", path.display());
        }
    }
}

fn expected_outputs(source: &str) -> Vec<(u64, Expression)> {
    source
        .lines()
        .filter_map(|l| l.strip_prefix("// out["))
        .map(|l| {
            let (k, e) = l.split_once("] = ").expect("out[k] = expression");
            (k.parse().expect("a number"), parse(e))
        })
        .collect()
}

type Counts = BTreeMap<String, usize>;

fn count(names: impl Iterator<Item = String>) -> Counts {
    let mut counts = Counts::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    counts
}

/// The assembler's instructions, less guards and selects: whether a select is an instruction of its own is not decided by
/// these passes. Half-precision products are written as fused operations with -0.
fn expected_instructions(source: &str) -> Counts {
    let lines = source.lines().filter_map(|l| l.strip_prefix("// sass: "));
    count(lines.filter_map(|l| {
        let text = if l.starts_with('@') { l.split_once(' ').map_or(l, |x| x.1) } else { l };
        let (mnemonic, operands) = text.split_once(' ').expect("operands");
        let name = mnemonic.replace(".MMA", "").replace(".BF16_V2", ".BF16");
        match name.strip_prefix("HFMA2") {
            _ if name == "FSEL" => None,
            Some(format) if operands.ends_with("-RZ") => Some(format!("HMUL2{format}")),
            Some(format) if operands.contains(", -RZ") => Some(format!("HNEG2{format}")),
            _ => Some(name),
        }
    }))
}

fn all_ops(f: &Function) -> impl Iterator<Item = Op> + '_ {
    f.layout.iter().flat_map(|&b| f.block(b).insts.iter().map(|&i| f.inst(i).op))
}

fn instructions(f: &Function) -> Counts {
    count(all_ops(f).filter_map(|op| mnemonic(&op)))
}

/// The machine's name of a floating-point operation.
fn mnemonic(op: &Op) -> Option<String> {
    let (kind, m) = match op {
        Op::FAdd(m) | Op::FSub(m) => ("ADD", m),
        Op::FMul(m) => ("MUL", m),
        Op::FFma(m) => ("FMA", m),
        Op::FMulScaled { ftz: false, scale } if scale.0 > 0 => {
            return Some(format!("FMUL.M{}", 1 << scale.0));
        }
        Op::FMulScaled { ftz: false, scale } => return Some(format!("FMUL.D{}", 1 << -scale.0)),
        Op::Mufu(f) => {
            let name = match f {
                MufuFn::Rcp => "RCP",
                MufuFn::Ex2 => "EX2",
                other => panic!("no probe has {other:?}"),
            };
            return Some(format!("MUFU.{name}"));
        }
        // The one type whose sign is no operand modifier.
        Op::FNeg { ty: Scalar::Bf16x2, .. } => return Some("HNEG2.BF16".into()),
        _ => return None,
    };
    let base = match m.ty {
        Scalar::F32 => format!("F{kind}"),
        Scalar::F64 => format!("D{kind}"),
        Scalar::F16 | Scalar::F16x2 => format!("H{kind}2"),
        _ => format!("H{kind}2.BF16"),
    };
    Some(format!("{base}{}{}", if m.ftz { ".FTZ" } else { "" }, if m.sat { ".SAT" } else { "" }))
}

/// Which parameter an address starts from, and how far it is from there.
fn address(f: &Function, v: Value) -> Option<(i64, i64)> {
    let inst = f.def_op(v)?;
    match inst.op {
        Op::Load(a) if a.space == Space::Param => {
            let base = match f.def_op(inst.args[0])?.op {
                Op::Addr(ir::AddrOf::Param(at), extra) => i64::from(at) + extra,
                Op::Const(at) => at as i64,
                _ => return None,
            };
            Some((base + a.offset, 0))
        }
        Op::FromGeneric(_) | Op::ToGeneric(_) => address(f, inst.args[0]),
        Op::Add => {
            let (base, offset) = address(f, inst.args[0])?;
            Some((base, offset + f.const_of(inst.args[1])? as i64))
        }
        _ => None,
    }
}

/// What is stored at element `k` of the output.
fn stored(f: &Function, k: u64) -> Option<Value> {
    for &b in &f.layout {
        for &i in &f.block(b).insts {
            let inst = f.inst(i);
            if let Op::Store(a) = inst.op {
                let (base, offset) = address(f, inst.args[0])?;
                if base == 8 && offset + a.offset == k as i64 * i64::from(a.elem.bits() / 8) {
                    return Some(inst.args[1]);
                }
            }
        }
    }
    None
}

fn express(f: &Function, v: Value) -> Expression {
    let Some(inst) = f.def_op(v) else { return Expression::Name(format!("{v}")) };
    let arg = |n: usize| express(f, inst.args[n]);
    match inst.op {
        Op::Const(bits) => Expression::Name(match f.ty(v) {
            ir::Type::B64 => f64::from_bits(bits).to_string(),
            _ => f32::from_bits(bits as u32).to_string(),
        }),
        Op::Load(a) => match address(f, inst.args[0]) {
            Some((0, offset)) => {
                let element = (offset + a.offset) / i64::from(a.elem.bits() / 8);
                Expression::Name("abcdeghi".chars().nth(element as usize).map_or("?".into(), String::from))
            }
            _ => Expression::Name(format!("{v}")),
        },
        Op::FAdd(_) => sum(arg(0), arg(1)),
        Op::FSub(_) => sum(arg(0), negated(arg(1))),
        Op::FMul(_) | Op::FMulScaled { .. } => product(arg(0), arg(1)),
        Op::FFma(_) => fused(arg(0), arg(1), arg(2)),
        Op::FNeg { .. } => negated(arg(0)),
        Op::FAbs { .. } => Expression::Magnitude(Box::new(arg(0))),
        _ => Expression::Name(format!("{v}")),
    }
}
