//! The value of a constant expression, by PTX's rules: 64-bit integers that are signed or unsigned, and doubles.

use crate::ast::{BinaryOp, Expr, ExprKind, UnaryOp};
use crate::span::Span;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constant {
    Signed(i64),
    Unsigned(u64),
    /// Exact bits of a single, which take part in no arithmetic.
    F32(u32),
    F64(f64),
}

impl Constant {
    /// The 64 bits of an integer.
    pub fn as_bits(self) -> Option<u64> {
        match self {
            Constant::Signed(value) => Some(value as u64),
            Constant::Unsigned(value) => Some(value),
            Constant::F32(_) | Constant::F64(_) => None,
        }
    }

    fn is_unsigned(self) -> bool {
        matches!(self, Constant::Unsigned(_))
    }
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstantError {
    pub span: Span,
    pub message: &'static str,
}

fn integer(bits: u64, unsigned: bool) -> Constant {
    if unsigned { Constant::Unsigned(bits) } else { Constant::Signed(bits as i64) }
}

fn truth(value: bool) -> Constant {
    Constant::Signed(i64::from(value))
}

/// Evaluates an expression without symbols.
pub fn evaluate(expr: &Expr<'_>) -> Result<Constant, ConstantError> {
    let error = |message| Err(ConstantError { span: expr.span, message });
    match &expr.kind {
        ExprKind::Integer { value, unsigned } => Ok(integer(*value, *unsigned)),
        ExprKind::F32(bits) => Ok(Constant::F32(*bits)),
        ExprKind::F64(bits) => Ok(Constant::F64(f64::from_bits(*bits))),
        ExprKind::WarpSize => Ok(Constant::Signed(32)),
        ExprKind::Symbol(_) | ExprKind::Generic(_) => error("an address is not a constant here"),
        ExprKind::Mask { mask, value } => {
            let bits = integer_bits(value)?;
            Ok(Constant::Unsigned((bits & mask) >> mask.trailing_zeros().min(63)))
        }
        ExprKind::Cast { unsigned, value } => Ok(integer(integer_bits(value)?, *unsigned)),
        ExprKind::Unary { op, value } => {
            let inner = evaluate(value)?;
            match (op, inner) {
                (UnaryOp::Plus, value) => Ok(value),
                (UnaryOp::Minus, Constant::F64(value)) => Ok(Constant::F64(-value)),
                (UnaryOp::Minus, Constant::F32(bits)) => Ok(Constant::F32(bits ^ 0x8000_0000)),
                (_, value) => {
                    let Some(bits) = value.as_bits() else { return error("this operator needs an integer") };
                    Ok(match op {
                        UnaryOp::Not => truth(bits == 0),
                        UnaryOp::Complement => Constant::Unsigned(!bits),
                        _ => integer(bits.wrapping_neg(), value.is_unsigned()),
                    })
                }
            }
        }
        ExprKind::Binary { op, left, right } => binary(*op, left, right, expr.span),
        ExprKind::Conditional(parts) => {
            let [condition, then, otherwise] = &**parts;
            let chosen = integer_bits(condition)? != 0;
            let (then, otherwise) = (evaluate(then)?, evaluate(otherwise)?);
            let value = if chosen { then } else { otherwise };
            match (then.as_bits(), otherwise.as_bits(), value.as_bits()) {
                (Some(_), Some(_), Some(bits)) => {
                    Ok(integer(bits, then.is_unsigned() || otherwise.is_unsigned()))
                }
                (None, None, _) => Ok(value),
                _ => error("one branch is an integer and the other is not"),
            }
        }
    }
}

/// Evaluates an expression that must be an integer, to its 64 bits.
pub fn integer_bits(expr: &Expr<'_>) -> Result<u64, ConstantError> {
    evaluate(expr)?.as_bits().ok_or(ConstantError { span: expr.span, message: "an integer is needed here" })
}

fn binary(op: BinaryOp, left: &Expr<'_>, right: &Expr<'_>, span: Span) -> Result<Constant, ConstantError> {
    use BinaryOp::*;
    let (a, b) = (evaluate(left)?, evaluate(right)?);
    if let (Constant::F64(x), Constant::F64(y)) = (a, b) {
        return Ok(match op {
            Mul => Constant::F64(x * y),
            Div => Constant::F64(x / y),
            Add => Constant::F64(x + y),
            Sub => Constant::F64(x - y),
            Less => truth(x < y),
            Greater => truth(x > y),
            LessEqual => truth(x <= y),
            GreaterEqual => truth(x >= y),
            Equal => truth(x == y),
            NotEqual => truth(x != y),
            _ => return Err(ConstantError { span, message: "this operator needs integers" }),
        });
    }
    let (Some(x), Some(y)) = (a.as_bits(), b.as_bits()) else {
        return Err(ConstantError { span, message: "the operands are of different kinds" });
    };
    let unsigned = a.is_unsigned() || b.is_unsigned();
    let less = |x: u64, y: u64| if unsigned { x < y } else { (x as i64) < (y as i64) };
    Ok(match op {
        Mul => integer(x.wrapping_mul(y), unsigned),
        Add => integer(x.wrapping_add(y), unsigned),
        Sub => integer(x.wrapping_sub(y), unsigned),
        Div | Rem if y == 0 => return Err(ConstantError { span, message: "division by zero" }),
        Div if unsigned => integer(x / y, true),
        Div => Constant::Signed((x as i64).wrapping_div(y as i64)),
        Rem => Constant::Signed((x % y) as i64),
        ShiftLeft => integer(if y < 64 { x << y } else { 0 }, a.is_unsigned()),
        ShiftRight if a.is_unsigned() => Constant::Unsigned(if y < 64 { x >> y } else { 0 }),
        ShiftRight => Constant::Signed((x as i64) >> y.min(63)),
        Less => truth(less(x, y)),
        Greater => truth(less(y, x)),
        LessEqual => truth(!less(y, x)),
        GreaterEqual => truth(!less(x, y)),
        Equal => truth(x == y),
        NotEqual => truth(x != y),
        And => integer(x & y, unsigned),
        Xor => integer(x ^ y, unsigned),
        Or => integer(x | y, unsigned),
        LogicalAnd => truth(x != 0 && y != 0),
        LogicalOr => truth(x != 0 || y != 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::DirectiveKind;

    fn value(text: &str) -> Result<Constant, &'static str> {
        let source = format!(".global .u64 x = {text};");
        let parse = crate::parse(source.as_bytes());
        assert!(!parse.has_errors(), "{text}");
        let DirectiveKind::Variable(variable) = &parse.module.directives[0].kind else { panic!("{text}") };
        match &variable.declarators[0].initializer {
            Some(crate::ast::Initializer::Value(value)) => evaluate(value).map_err(|e| e.message),
            _ => panic!("{text}"),
        }
    }

    #[test]
    fn integers_are_signed_until_one_is_not() {
        assert_eq!(value("-7 / 2"), Ok(Constant::Signed(-3)));
        assert_eq!(value("-1 / 2U"), Ok(Constant::Unsigned(u64::MAX / 2)));
        assert_eq!(value("-1 < 0"), Ok(Constant::Signed(1)));
        assert_eq!(value("-1 < 0U"), Ok(Constant::Signed(0)));
        assert_eq!(value("0xffffffffffffffff"), Ok(Constant::Unsigned(u64::MAX)));
        assert_eq!(value("~0"), Ok(Constant::Unsigned(u64::MAX)));
        assert_eq!(value("-8 >> 1"), Ok(Constant::Signed(-4)));
        assert_eq!(value("(.u64)-8 >> 1"), Ok(Constant::Unsigned(0x7fff_ffff_ffff_fffc)));
        assert_eq!(value("1 << 64"), Ok(Constant::Signed(0)));
        assert_eq!(value("17 % 5"), Ok(Constant::Signed(2)));
    }

    #[test]
    fn operators_bind_as_in_c() {
        assert_eq!(value("1 + 2 * 3 - 4"), Ok(Constant::Signed(3)));
        assert_eq!(value("1 | 2 ^ 3 & 1"), Ok(Constant::Signed(3)));
        assert_eq!(value("1 << 2 + 1 == 8 && !0"), Ok(Constant::Signed(1)));
        assert_eq!(value("0 ? 1 : 0 ? 2 : 3"), Ok(Constant::Signed(3)));
        assert_eq!(value("0xff00(0x1234)"), Ok(Constant::Unsigned(0x12)));
    }

    #[test]
    fn floats_keep_to_themselves() {
        assert_eq!(value("1.5 * 2.0 - .5"), Ok(Constant::F64(2.5)));
        assert_eq!(value("-0f3F800000"), Ok(Constant::F32(0xbf80_0000)));
        assert!(value("1.5 + 1").is_err());
        assert_eq!(value("1 / 0"), Err("division by zero"));
    }
}
