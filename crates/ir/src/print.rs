//! The text form of a module, for `--emit ir`, tests and people.

use crate::function::{BlockCall, Function, FunctionKind, Terminator, ValueDef};
use crate::module::Module;
use crate::op::Op;
use std::fmt::{self, Display, Formatter, Write};

/// A module as text.
pub fn module(m: &Module) -> String {
    let mut out = String::new();
    for (n, g) in m.globals.iter().enumerate() {
        let _ = writeln!(
            out,
            "global g{n} {:?} {} size {} align {} init {} bytes",
            g.space,
            g.name,
            g.size,
            g.align,
            g.init.len()
        );
    }
    for f in &m.functions {
        let _ = writeln!(out, "{f}");
    }
    out
}

fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|v| v.to_string()).collect::<Vec<_>>().join(", ")
}

impl Display for BlockCall {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "{}", self.block)?;
        if !self.args.is_empty() {
            write!(f, "({})", list(&self.args))?;
        }
        Ok(())
    }
}

impl Display for Terminator {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Terminator::Jump(c) => write!(f, "jump {c}"),
            Terminator::Branch { cond, then, otherwise, uniform } => {
                write!(f, "branch{} {cond}, {then}, {otherwise}", if *uniform { ".uni" } else { "" })
            }
            Terminator::Switch { index, targets, .. } => write!(f, "switch {index}, [{}]", list(targets)),
            Terminator::Return(values) => write!(f, "return {}", list(values)),
            Terminator::Exit => write!(f, "exit"),
            Terminator::Unreachable => write!(f, "unreachable"),
        }
    }
}

impl Function {
    fn write_value(&self, f: &mut Formatter, v: crate::Value) -> fmt::Result {
        write!(f, "{v}:{}", format!("{:?}", self.ty(v)).to_lowercase())
    }
}

impl Display for Function {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let kind = match self.kind {
            FunctionKind::Entry => "entry",
            FunctionKind::Device => "func",
        };
        write!(f, "{kind} {}(", self.name)?;
        for (n, p) in self.params.iter().enumerate() {
            write!(f, "{}{} @{} size {}", if n > 0 { ", " } else { "" }, p.name, p.offset, p.size)?;
        }
        for (n, &v) in self.param_values.iter().enumerate() {
            if n > 0 {
                write!(f, ", ")?;
            }
            self.write_value(f, v)?;
        }
        writeln!(f, "){}", if self.is_declaration { " declared" } else { " {" })?;
        if self.is_declaration {
            return Ok(());
        }
        for (n, s) in self.slots.iter().enumerate() {
            writeln!(f, "  slot{n} {} size {} align {}", s.name, s.size, s.align)?;
        }
        for &b in &self.layout {
            let data = self.block(b);
            write!(f, "{b}")?;
            if !data.params.is_empty() {
                write!(f, "(")?;
                for (n, &p) in data.params.iter().enumerate() {
                    if n > 0 {
                        write!(f, ", ")?;
                    }
                    self.write_value(f, p)?;
                }
                write!(f, ")")?;
            }
            writeln!(f, ":{}", if data.no_unroll { " ; nounroll" } else { "" })?;
            for &i in &data.insts {
                let inst = self.inst(i);
                write!(f, "    ")?;
                if let Some(g) = inst.guard {
                    write!(f, "@{}{} ", if g.negated { "!" } else { "" }, g.value)?;
                }
                for (n, &r) in inst.results.iter().enumerate() {
                    if n > 0 {
                        write!(f, ", ")?;
                    }
                    self.write_value(f, r)?;
                }
                if !inst.results.is_empty() {
                    write!(f, " = ")?;
                }
                match inst.op {
                    Op::Const(bits) => write!(f, "const {bits:#x}")?,
                    op => write!(f, "{op:?}")?,
                }
                writeln!(f, "{}{}", if inst.args.is_empty() { "" } else { " " }, list(&inst.args))?;
            }
            writeln!(f, "    {}", data.term)?;
        }
        debug_assert!(
            self.values
                .iter()
                .all(|v| !matches!(v.1, ValueDef::FuncParam(n) if n as usize >= self.param_values.len()))
        );
        writeln!(f, "}}")
    }
}
