//! Initial bytes of variables, addresses among them.

use super::Result;
use super::module::{ModuleLower, layout};
use crate::ast::{BinaryOp, Declarator, Expr, ExprKind, Initializer, ScalarType, UnaryOp, Variable};
use crate::constant::{Constant, evaluate, integer_bits};
use crate::diagnostic::Diagnostic;
use ir::{InitPiece, SymbolRef};

struct Writer<'w, 't, 'a> {
    module: &'w ModuleLower<'t, 'a>,
    ty: ScalarType,
    bytes: Vec<u8>,
    pieces: Vec<InitPiece>,
    size: u64,
}

/// The bytes of a variable (cut after the last one given) and the addresses in them.
pub(super) fn bytes<'a>(
    module: &ModuleLower<'_, 'a>,
    variable: &Variable<'a>,
    d: &Declarator<'a>,
    init: &Initializer<'a>,
) -> Result<(Vec<u8>, Vec<InitPiece>)> {
    let (size, _) = layout(variable, d)?;
    let mut extents = Vec::new();
    for dimension in d.dimensions.iter().skip(1).flatten() {
        extents.push(integer_bits(dimension).map_err(|e| Diagnostic::error(e.span, e.message))?);
    }
    if let Some(n) = variable.vector {
        extents.push(u64::from(n));
    }
    let mut w = Writer { module, ty: variable.ty, bytes: Vec::new(), pieces: Vec::new(), size };
    w.write(init, 0, &extents, !d.dimensions.is_empty() || variable.vector.is_some())?;
    Ok((w.bytes, w.pieces))
}

impl<'a> Writer<'_, '_, 'a> {
    /// Writes at byte `at`; `inner` are the extents below this level. Returns the bytes taken.
    fn write(&mut self, init: &Initializer<'a>, at: u64, inner: &[u64], is_array: bool) -> Result<u64> {
        let element = u64::from(self.ty.bytes());
        match init {
            Initializer::Value(expr) => {
                self.value(expr, at)?;
                Ok(element)
            }
            Initializer::List { items, span } => {
                if !is_array {
                    return Err(Diagnostic::error(*span, "a scalar takes one value, without braces"));
                }
                let stride: u64 = element * inner.iter().product::<u64>();
                let mut next = at;
                for item in items {
                    if next + element > self.size {
                        return Err(Diagnostic::error(*span, "more values than the variable has elements"));
                    }
                    match item {
                        Initializer::List { .. } => {
                            let rest = inner.get(1..).unwrap_or(&[]);
                            self.write(item, next, rest, !inner.is_empty())?;
                            next += stride;
                        }
                        _ => next += self.write(item, next, &[], false)?,
                    }
                }
                Ok(next - at)
            }
            Initializer::Field { name, .. } => {
                Err(Diagnostic::error(name.span, "named fields belong to texture and sampler variables"))
            }
        }
    }

    fn put(&mut self, at: u64, data: &[u8]) {
        let end = at as usize + data.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[at as usize..end].copy_from_slice(data);
    }

    fn value(&mut self, expr: &Expr<'a>, at: u64) -> Result {
        let size = self.ty.bytes() as usize;
        if at + size as u64 > self.size {
            return Err(Diagnostic::error(expr.span, "more values than the variable has elements"));
        }
        if let Some(piece) = self.address(expr)? {
            self.put(at, &[0; 16][..size.min(16)]);
            self.pieces.push(InitPiece { offset: at as u32, size: size.min(8) as u8, ..piece });
            return Ok(());
        }
        let value = evaluate(expr).map_err(|e| Diagnostic::error(e.span, e.message))?;
        let bits = match (value, self.ty) {
            (Constant::F32(bits), ScalarType::F64) => f64::from(f32::from_bits(bits)).to_bits(),
            (Constant::F32(bits), _) => u64::from(bits),
            (Constant::F64(v), ScalarType::F32 | ScalarType::B32) => u64::from((v as f32).to_bits()),
            (Constant::F64(v), _) => v.to_bits(),
            (Constant::Signed(v), ScalarType::F32) => u64::from((v as f32).to_bits()),
            (Constant::Signed(v), ScalarType::F64) => (v as f64).to_bits(),
            (Constant::Signed(v), _) => v as u64,
            (Constant::Unsigned(v), _) => v,
        };
        let wide = (u128::from(bits)).to_le_bytes();
        self.put(at, &wide[..size.min(16)]);
        Ok(())
    }

    /// An address with an offset, if the expression is one.
    fn address(&self, expr: &Expr<'a>) -> Result<Option<InitPiece>> {
        Ok(match &expr.kind {
            ExprKind::Symbol(name) => {
                let symbol = if let Some(g) = self.module.global_id(name) {
                    SymbolRef::Global(g)
                } else if let Some(f) = self.module.function_id(name) {
                    SymbolRef::Function(f)
                } else {
                    return Err(Diagnostic::error(expr.span, format!("`{name}` is not declared")));
                };
                Some(InitPiece { offset: 0, size: 8, symbol, addend: 0, generic: false, shift: 0 })
            }
            ExprKind::Generic(inner) => self.address(inner)?.map(|p| InitPiece { generic: true, ..p }),
            ExprKind::Mask { mask, value } => {
                self.address(value)?.map(|p| InitPiece { shift: mask.trailing_zeros().min(63) as u8, ..p })
            }
            ExprKind::Cast { value, .. } | ExprKind::Unary { op: UnaryOp::Plus, value } => {
                self.address(value)?
            }
            ExprKind::Binary { op: op @ (BinaryOp::Add | BinaryOp::Sub), left, right } => {
                let (base, offset) = match (self.address(left)?, self.address(right)?) {
                    (Some(base), None) => (base, right),
                    (None, Some(base)) if *op == BinaryOp::Add => (base, left),
                    (None, None) => return Ok(None),
                    _ => {
                        return Err(Diagnostic::error(
                            expr.span,
                            "only a constant can be added to an address",
                        ));
                    }
                };
                let offset = integer_bits(offset).map_err(|e| Diagnostic::error(e.span, e.message))? as i64;
                let offset = if *op == BinaryOp::Sub { offset.wrapping_neg() } else { offset };
                Some(InitPiece { addend: base.addend.wrapping_add(offset), ..base })
            }
            _ => None,
        })
    }
}
