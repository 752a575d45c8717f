//! Reading and writing operands at a width.

use super::Result;
use super::function::{Binding, FnLower};
use super::sreg;
use crate::ast::{Expr, ExprKind, Instruction, Name, Operand, OperandKind, ScalarType};
use crate::constant::{Constant, evaluate};
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::types::TypeClass;
use ir::{AddrOf, Guard, Op, Type, Value, Var};

/// The width of the value that holds a PTX type.
pub(super) fn width(ty: ScalarType) -> Type {
    match ty.bits() {
        64 => Type::B64,
        17..=32 => Type::B32,
        1 if ty == ScalarType::Pred => Type::P,
        _ => Type::B16,
    }
}

/// A result of an operation with effects: where it goes, its width, and whether a wider register gets its sign.
pub(super) struct Dest<'o, 'a> {
    pub operand: &'o Operand<'a>,
    pub ty: Type,
    pub signed: bool,
}

impl<'o, 'a> Dest<'o, 'a> {
    pub fn new(operand: &'o Operand<'a>, ty: Type) -> Self {
        Dest { operand, ty, signed: false }
    }
}

impl<'a> FnLower<'_, '_, 'a> {
    pub(super) fn fail<T>(&self, span: Span, message: impl Into<String>) -> Result<T> {
        Err(Diagnostic::error(span, message))
    }

    pub(super) fn wrong<T>(&self, operand: &Operand<'_>, expected: &str) -> Result<T> {
        self.fail(operand.span, format!("expected {expected} here"))
    }

    /// The n-th operand.
    pub(super) fn operand<'i>(&self, inst: &'i Instruction<'a>, n: usize) -> Result<&'i Operand<'a>> {
        match inst.operands.get(n) {
            Some(operand) => Ok(operand),
            None => {
                self.fail(inst.span, format!("`{}` needs at least {} operands", inst.mnemonic.text, n + 1))
            }
        }
    }

    /// The n-th type among the modifiers: the first is the destination's where there are two.
    pub(super) fn type_at(&self, inst: &Instruction<'a>, n: usize) -> Result<ScalarType> {
        match inst.types().nth(n) {
            Some(ty) => Ok(ty),
            None => self.fail(inst.opcode_span(), format!("`{}` needs a type", inst.mnemonic.text)),
        }
    }

    /// A constant of a width.
    pub(super) fn iconst(&mut self, ty: Type, bits: u64) -> Value {
        self.b.iconst(ty, bits)
    }

    /// Makes a value as wide as `ty`: cut, or extended by zeros or by its sign.
    pub(super) fn resize(&mut self, value: Value, ty: Type, signed: bool) -> Value {
        let mut value = value;
        loop {
            let from = self.b.func.ty(value);
            if from == ty || from == Type::P || ty == Type::P {
                return value;
            }
            value = if from > ty {
                let next = if from == Type::B64 { Type::B32 } else { Type::B16 };
                self.b.ins(Op::TruncLo, &[value], next)
            } else {
                self.b.ins(if signed { Op::SignExt } else { Op::ZeroExt }, &[value], ty)
            };
        }
    }

    /// The value of a constant expression as bits of a PTX type.
    pub(super) fn constant(&self, expr: &Expr<'a>, ty: ScalarType) -> Result<u64> {
        let value = match evaluate(expr) {
            Ok(value) => value,
            Err(e) => return self.fail(e.span, e.message),
        };
        let mask = if ty.bits() >= 64 { u64::MAX } else { (1 << ty.bits()) - 1 };
        Ok(match (value, ty) {
            (Constant::F32(bits), ScalarType::F64) => f64::from(f32::from_bits(bits)).to_bits(),
            (Constant::F32(bits), _) => u64::from(bits),
            (Constant::F64(v), ScalarType::F32 | ScalarType::B32) => u64::from((v as f32).to_bits()),
            (Constant::F64(v), _) => v.to_bits(),
            (Constant::Signed(v), ScalarType::F32) => u64::from((v as f32).to_bits()),
            (Constant::Signed(v), ScalarType::F64) => (v as f64).to_bits(),
            (Constant::Unsigned(v), ScalarType::F32) => u64::from((v as f32).to_bits()),
            (Constant::Unsigned(v), ScalarType::F64) => (v as f64).to_bits(),
            (Constant::Signed(v), ScalarType::Pred) => u64::from(v != 0),
            (Constant::Unsigned(v), ScalarType::Pred) => u64::from(v != 0),
            (Constant::Signed(v), _) => v as u64 & mask,
            (Constant::Unsigned(v), _) => v & mask,
        })
    }

    /// An integer that must be known now (a modifier in operand form).
    pub(super) fn constant_operand(&self, operand: &Operand<'a>) -> Result<u64> {
        match &operand.kind {
            OperandKind::Constant(expr) => self.constant(expr, ScalarType::U64),
            _ => self.wrong(operand, "a constant"),
        }
    }

    /// Reads an operand as a PTX type: the value has that type's width.
    pub(super) fn src(&mut self, operand: &Operand<'a>, ty: ScalarType) -> Result<Value> {
        match &operand.kind {
            OperandKind::Constant(Expr { kind: ExprKind::Symbol(text), span }) => {
                self.named(Name { text, span: *span }, 0, width(ty))
            }
            OperandKind::Constant(expr) => {
                let bits = self.constant(expr, ty)?;
                Ok(self.iconst(width(ty), bits))
            }
            OperandKind::Name(text) => self.named(Name { text, span: operand.span }, 0, width(ty)),
            OperandKind::Offset { base, offset } => {
                let offset = self.constant(offset, ScalarType::S64)? as i64;
                self.named(*base, offset, width(ty))
            }
            OperandKind::Element { base, index } => {
                let OperandKind::Constant(index) = &index.kind else {
                    return self.wrong(index, "a constant");
                };
                let index = self.constant(index, ScalarType::S64)? as i64;
                let bytes = self.module.element_bytes(base.text) as i64;
                self.named(*base, index.wrapping_mul(bytes), width(ty))
            }
            OperandKind::Member { base, member } => {
                let value = self.member(*base, *member)?;
                Ok(self.resize(value, width(ty), false))
            }
            OperandKind::Not(inner) if ty == ScalarType::Pred => {
                let value = self.src(inner, ty)?;
                Ok(self.b.ins(Op::Not, &[value], Type::P))
            }
            OperandKind::Minus(inner) => {
                let value = self.src(inner, ty)?;
                let op = match ty.class() {
                    TypeClass::Float => Op::FNeg { ty: super::float::scalar(ty), ftz: false },
                    _ => Op::Neg,
                };
                Ok(self.b.ins(op, &[value], width(ty)))
            }
            _ => self.wrong(operand, "a register or a constant"),
        }
    }

    /// Reads a predicate, negated or constant ones too.
    pub(super) fn pred(&mut self, operand: &Operand<'a>) -> Result<Value> {
        self.src(operand, ScalarType::Pred)
    }

    /// The register a name stands for; errors for anything else.
    pub(super) fn register(&mut self, name: Name<'a>) -> Result<Var> {
        match self.lookup(name.text) {
            Some(Binding::Reg(var)) => Ok(var),
            Some(_) => self.fail(name.span, format!("`{}` is not a scalar register", name.text)),
            None => self.fail(name.span, format!("`{}` is not declared", name.text)),
        }
    }

    fn named(&mut self, name: Name<'a>, offset: i64, ty: Type) -> Result<Value> {
        if let Some(register) = sreg::scalar(name.text) {
            let value = self.special(register);
            return Ok(self.resize(value, ty, false));
        }
        match self.lookup(name.text) {
            Some(Binding::Reg(var)) if offset == 0 => {
                let value = self.b.use_var(var);
                if (self.b.func.ty(value) == Type::P) != (ty == Type::P) {
                    return self.fail(
                        name.span,
                        format!("`{}` is a predicate, or a predicate is needed here", name.text),
                    );
                }
                Ok(self.resize(value, ty, false))
            }
            Some(Binding::ScalarParam(var, _)) if offset == 0 => {
                let value = self.b.use_var(var);
                Ok(self.resize(value, ty, false))
            }
            Some(Binding::Global(id)) => {
                Ok(self.b.ins(Op::Addr(AddrOf::Global(id), offset), &[], address_width(ty)))
            }
            Some(Binding::Slot(id)) => {
                Ok(self.b.ins(Op::Addr(AddrOf::Slot(id), offset), &[], address_width(ty)))
            }
            Some(Binding::EntryParam(at)) => {
                Ok(self.b.ins(Op::Addr(AddrOf::Param(at), offset), &[], address_width(ty)))
            }
            Some(_) => self.fail(name.span, format!("`{}` cannot be read here", name.text)),
            None => match self.module.function_id(name.text) {
                Some(id) => Ok(self.b.ins(Op::Addr(AddrOf::Function(id), offset), &[], address_width(ty))),
                None => self.fail(name.span, format!("`{}` is not declared", name.text)),
            },
        }
    }

    /// `%tid.x`, `%v.y`.
    pub(super) fn member(&mut self, base: Name<'a>, member: Name<'a>) -> Result<Value> {
        if let Some(register) = sreg::member(base.text, member.text) {
            return Ok(self.special(register));
        }
        // The fourth component of a special register is always zero.
        if sreg::member(base.text, "x").is_some() && member.text == "w" {
            return Ok(self.iconst(Type::B32, 0));
        }
        let var = self.vector_element(base, member)?;
        Ok(self.b.use_var(var))
    }

    fn vector_element(&mut self, base: Name<'a>, member: Name<'a>) -> Result<Var> {
        let index = match member.text {
            "x" | "r" => 0,
            "y" | "g" => 1,
            "z" | "b" => 2,
            "w" | "a" => 3,
            _ => return self.fail(member.span, format!("`.{}` is not an element of a vector", member.text)),
        };
        match self.lookup(base.text) {
            Some(Binding::Vector(vars)) if index < vars.len() => Ok(vars[index]),
            Some(_) => self.fail(base.span, format!("`{}` has no element `.{}`", base.text, member.text)),
            None => self.fail(base.span, format!("`{}` is not declared", base.text)),
        }
    }

    fn special(&mut self, register: ir::SReg) -> Value {
        let ty = if register.is_wide() { Type::B64 } else { Type::B32 };
        let value = self.b.ins(Op::SReg(register), &[], ty);
        if matches!(register, ir::SReg::IsExplicitCluster) {
            let zero = self.iconst(Type::B32, 0);
            return self.b.ins(Op::ICmp { cmp: ir::IntCmp::Ne, signed: false }, &[value, zero], Type::P);
        }
        value
    }

    /// The variable that a destination operand names; `None` for a sink.
    fn dest_var(&mut self, operand: &Operand<'a>) -> Result<Option<Var>> {
        match &operand.kind {
            OperandKind::Sink => Ok(None),
            OperandKind::Name("_") => Ok(None),
            OperandKind::Name(text) => self.register(Name { text, span: operand.span }).map(Some),
            OperandKind::Member { base, member } => self.vector_element(*base, *member).map(Some),
            _ => self.wrong(operand, "a register to write"),
        }
    }

    /// Writes a pure result, under the instruction's guard; a wider register gets zeros above.
    pub(super) fn write(&mut self, operand: &Operand<'a>, value: Value) -> Result {
        self.write_extended(operand, value, false)
    }

    /// Writes a pure result; a wider register gets zeros or the sign above.
    pub(super) fn write_extended(&mut self, operand: &Operand<'a>, value: Value, signed: bool) -> Result {
        let Some(var) = self.dest_var(operand)? else { return Ok(()) };
        if (self.b.func.ty(value) == Type::P) != (self.b.var_type(var) == Type::P) {
            return self.wrong(operand, "a register of the instruction's type");
        }
        let value = self.resize(value, self.b.var_type(var), signed);
        self.write_var(var, value);
        Ok(())
    }

    /// Writes a variable under the instruction's guard.
    pub(super) fn write_var(&mut self, var: Var, value: Value) {
        let value = match self.guard {
            None => value,
            Some(Guard { value: cond, negated }) => {
                let old = self.b.use_var(var);
                let (yes, no) = if negated { (old, value) } else { (value, old) };
                self.b.ins(Op::Select, &[cond, yes, no], self.b.func.ty(value))
            }
        };
        self.b.def_var(var, value);
    }

    /// Appends an operation with effects under the instruction's guard and writes its results.
    pub(super) fn effect(&mut self, op: Op, args: &[Value], dests: &[Dest<'_, 'a>]) -> Result {
        let mut args = args.to_vec();
        let mut vars = Vec::with_capacity(dests.len());
        for d in dests {
            let var = self.dest_var(d.operand)?;
            if self.guard.is_some() {
                // Where the guard does not hold the result is the old value.
                let old = match var {
                    Some(var) => {
                        let old = self.b.use_var(var);
                        self.resize(old, d.ty, false)
                    }
                    None => self.iconst(d.ty, 0),
                };
                args.push(old);
            }
            vars.push(var);
        }
        let types: Vec<Type> = dests.iter().map(|d| d.ty).collect();
        let results = self.b.ins_multi(op, &args, &types, self.guard);
        for ((d, var), value) in dests.iter().zip(vars).zip(results) {
            let Some(var) = var else { continue };
            if self.b.var_type(var) == d.ty {
                self.b.def_var(var, value);
            } else {
                // The register is wider: above the old value's cut part only a selection knows what to keep.
                let wide = self.resize(value, self.b.var_type(var), d.signed);
                self.write_var(var, wide);
            }
        }
        Ok(())
    }

    /// The elements of a vector operand, or the operand alone.
    pub(super) fn elements<'i>(&self, operand: &'i Operand<'a>) -> &'i [Operand<'a>] {
        match &operand.kind {
            OperandKind::Vector(items) => items,
            _ => std::slice::from_ref(operand),
        }
    }

    /// `d|p`: both parts; a lone operand has no second.
    pub(super) fn pair<'i>(&self, operand: &'i Operand<'a>) -> (&'i Operand<'a>, Option<&'i Operand<'a>>) {
        match &operand.kind {
            OperandKind::Pair(first, second) => (first, Some(second)),
            _ => (operand, None),
        }
    }
}

/// Addresses are 32 or 64 bits.
fn address_width(ty: Type) -> Type {
    if ty == Type::B32 { Type::B32 } else { Type::B64 }
}
