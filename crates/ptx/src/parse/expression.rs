//! Constant expressions, by precedence climbing.

use super::{Parsed, Parser, shorten};
use crate::ast::*;
use crate::span::Span;
use crate::token::TokenKind;

/// Operators in one expression.
const MAX_OPERATORS: u32 = 1000;

impl<'a> Parser<'a> {
    /// A constant.
    pub(super) fn expression(&mut self) -> Parsed<Expr<'a>> {
        self.operators = 0;
        self.conditional(false)
    }

    /// A constant that may name variables, functions and sections.
    pub(super) fn symbolic_expression(&mut self) -> Parsed<Expr<'a>> {
        self.operators = 0;
        self.conditional(true)
    }

    fn conditional(&mut self, symbols: bool) -> Parsed<Expr<'a>> {
        let condition = self.binary(symbols, 1)?;
        if !self.eat(TokenKind::Question) {
            return Ok(condition);
        }
        self.nested(|p| {
            let then = p.conditional(symbols)?;
            p.expect(TokenKind::Colon)?;
            let otherwise = p.conditional(symbols)?;
            let span = condition.span.to(otherwise.span);
            Ok(Expr { span, kind: ExprKind::Conditional(Box::new([condition, then, otherwise])) })
        })
    }

    fn binary(&mut self, symbols: bool, minimum: u8) -> Parsed<Expr<'a>> {
        let mut left = self.unary(symbols)?;
        while let Some(op) = self.binary_operator() {
            if op.precedence() < minimum {
                break;
            }
            self.count_operator()?;
            self.bump();
            let right = self.nested(|p| p.binary(symbols, op.precedence() + 1))?;
            left = join(op, left, right);
        }
        Ok(left)
    }

    /// A long chain of operators becomes a deep tree, which all who walk it pay for in stack.
    fn count_operator(&mut self) -> Parsed<()> {
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            return Err(self.error(self.token.span, "this expression has too many operators"));
        }
        Ok(())
    }

    fn binary_operator(&self) -> Option<BinaryOp> {
        use BinaryOp::*;
        Some(match self.token.kind {
            TokenKind::Star => Mul,
            TokenKind::Slash => Div,
            TokenKind::Percent => Rem,
            TokenKind::Plus => Add,
            TokenKind::Minus => Sub,
            TokenKind::ShiftLeft => ShiftLeft,
            TokenKind::ShiftRight => ShiftRight,
            TokenKind::Less => Less,
            TokenKind::Greater => Greater,
            TokenKind::LessEqual => LessEqual,
            TokenKind::GreaterEqual => GreaterEqual,
            TokenKind::EqualEqual => Equal,
            TokenKind::BangEqual => NotEqual,
            TokenKind::And => And,
            TokenKind::Caret => Xor,
            TokenKind::Or => Or,
            TokenKind::AndAnd => LogicalAnd,
            TokenKind::OrOr => LogicalOr,
            _ => return None,
        })
    }

    fn unary(&mut self, symbols: bool) -> Parsed<Expr<'a>> {
        let op = match self.token.kind {
            TokenKind::Plus => UnaryOp::Plus,
            TokenKind::Minus => UnaryOp::Minus,
            TokenKind::Bang => UnaryOp::Not,
            TokenKind::Tilde => UnaryOp::Complement,
            _ => return self.primary(symbols),
        };
        self.count_operator()?;
        let start = self.bump().span;
        let value = self.nested(|p| p.unary(symbols))?;
        Ok(Expr { span: start.to(value.span), kind: ExprKind::Unary { op, value: Box::new(value) } })
    }

    fn primary(&mut self, symbols: bool) -> Parsed<Expr<'a>> {
        let span = self.token.span;
        let text = self.text(span);
        let kind = match self.token.kind {
            TokenKind::Integer => {
                let (value, unsigned) = self.take_integer()?;
                if symbols && self.at(TokenKind::LeftParen) {
                    let value_span = self.bump().span;
                    let inner = self.nested(|p| p.conditional(true))?;
                    self.expect(TokenKind::RightParen)?;
                    let kind = ExprKind::Mask { mask: value, value: Box::new(inner) };
                    return Ok(Expr { span: span.to(value_span).to(self.last), kind });
                }
                return Ok(Expr { span, kind: ExprKind::Integer { value, unsigned } });
            }
            TokenKind::Decimal => match text.parse::<f64>() {
                Ok(value) => ExprKind::F64(value.to_bits()),
                Err(_) => return Err(self.unexpected("a number")),
            },
            TokenKind::F32Bits => ExprKind::F32(u32::from_str_radix(&text[2..], 16).unwrap_or(0)),
            TokenKind::F64Bits => ExprKind::F64(u64::from_str_radix(&text[2..], 16).unwrap_or(0)),
            TokenKind::Ident if text == "WARP_SZ" => ExprKind::WarpSize,
            TokenKind::Ident if symbols && text == "generic" && self.next.kind == TokenKind::LeftParen => {
                self.bump();
                self.bump();
                let inner = self.nested(|p| p.conditional(true))?;
                self.expect(TokenKind::RightParen)?;
                return Ok(Expr { span: span.to(self.last), kind: ExprKind::Generic(Box::new(inner)) });
            }
            TokenKind::Ident | TokenKind::DotWord if symbols => ExprKind::Symbol(text),
            TokenKind::LeftParen => return self.parenthesised(symbols),
            _ => return Err(self.unexpected("a constant")),
        };
        self.bump();
        Ok(Expr { span, kind })
    }

    /// `(expression)`, or a cast.
    fn parenthesised(&mut self, symbols: bool) -> Parsed<Expr<'a>> {
        let start = self.bump().span;
        let unsigned = match self.dotted() {
            Some("u64") => Some(true),
            Some("s64") => Some(false),
            _ => None,
        };
        if let Some(unsigned) = unsigned {
            self.bump();
            self.expect(TokenKind::RightParen)?;
            let value = self.nested(|p| p.unary(symbols))?;
            let span = start.to(value.span);
            return Ok(Expr { span, kind: ExprKind::Cast { unsigned, value: Box::new(value) } });
        }
        let inner = self.nested(|p| p.conditional(symbols))?;
        self.expect(TokenKind::RightParen)?;
        Ok(Expr { span: start.to(self.last), kind: inner.kind })
    }

    /// The offset behind a base: `+4`, `-8`, `+-8`, `+4*2-1`. None when there is none.
    pub(super) fn offset(&mut self) -> Parsed<Option<Expr<'a>>> {
        self.operators = 0;
        let mut sum: Option<Expr<'a>> = None;
        loop {
            let op = match self.token.kind {
                TokenKind::Plus => BinaryOp::Add,
                TokenKind::Minus => BinaryOp::Sub,
                _ => return Ok(sum),
            };
            self.count_operator()?;
            let sign = self.bump().span;
            if self.at(TokenKind::Ident) && !self.at_word("WARP_SZ") {
                return Err(self.error(self.token.span, "an offset must be a constant"));
            }
            let term = self.binary(false, BinaryOp::Mul.precedence())?;
            sum = Some(match (sum, op) {
                (Some(left), op) => join(op, left, term),
                (None, BinaryOp::Sub) => {
                    let span = sign.to(term.span);
                    Expr { span, kind: ExprKind::Unary { op: UnaryOp::Minus, value: Box::new(term) } }
                }
                (None, _) => term,
            });
        }
    }

    /// An integer literal that fits 64 bits, and whether it is unsigned.
    fn take_integer(&mut self) -> Parsed<(u64, bool)> {
        let text = self.text(self.token.span);
        let digits = text.trim_end_matches(['U', 'u']);
        let (digits, radix) = match digits.as_bytes() {
            [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
            [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
            [b'0', _, ..] => (&digits[1..], 8),
            _ => (digits, 10),
        };
        match u64::from_str_radix(digits, radix) {
            Ok(value) => {
                self.bump();
                Ok((value, text.ends_with(['U', 'u']) || i64::try_from(value).is_err()))
            }
            Err(_) => {
                let message = format!("the integer `{}` does not fit 64 bits", shorten(text));
                Err(self.error(self.token.span, message))
            }
        }
    }

    pub(super) fn integer_literal(&mut self, what: &str) -> Parsed<u64> {
        if !self.at(TokenKind::Integer) {
            return Err(self.unexpected(what));
        }
        Ok(self.take_integer()?.0)
    }

    pub(super) fn small_integer(&mut self, what: &str) -> Parsed<u32> {
        let span: Span = self.token.span;
        let value = self.integer_literal(what)?;
        u32::try_from(value).map_err(|_| self.error(span, format!("{value} is too large here")))
    }
}

fn join<'a>(op: BinaryOp, left: Expr<'a>, right: Expr<'a>) -> Expr<'a> {
    let span = left.span.to(right.span);
    Expr { span, kind: ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) } }
}
