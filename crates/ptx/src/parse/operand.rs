//! Operands of instructions.

use super::{Parsed, Parser};
use crate::ast::*;
use crate::token::TokenKind;

impl<'a> Parser<'a> {
    /// `arguments` says that a `(` opens a list of arguments, not an expression.
    pub(super) fn operand(&mut self, arguments: bool) -> Parsed<Operand<'a>> {
        if arguments && self.at(TokenKind::LeftParen) {
            let start = self.bump().span;
            let list = self.operand_list(TokenKind::RightParen)?;
            return Ok(Operand { span: start.to(self.last), kind: OperandKind::Arguments(list) });
        }
        let first = self.single_operand()?;
        if !self.eat(TokenKind::Or) {
            return Ok(first);
        }
        let second = self.single_operand()?;
        let span = first.span.to(second.span);
        Ok(Operand { span, kind: OperandKind::Pair(Box::new(first), Box::new(second)) })
    }

    /// Operands up to the closing token, which is consumed.
    fn operand_list(&mut self, close: TokenKind) -> Parsed<Vec<Operand<'a>>> {
        let mut list = Vec::new();
        if self.eat(close) {
            return Ok(list);
        }
        loop {
            list.push(self.nested(|p| p.single_operand())?);
            if self.eat(close) {
                return Ok(list);
            }
            if !self.eat(TokenKind::Comma) {
                return Err(self.unexpected(if close == TokenKind::RightBrace {
                    "`,` or `}`"
                } else if close == TokenKind::RightParen {
                    "`,` or `)`"
                } else {
                    "`,` or `]`"
                }));
            }
        }
    }

    fn single_operand(&mut self) -> Parsed<Operand<'a>> {
        let start = self.token.span;
        let kind = match self.token.kind {
            TokenKind::Ident if self.at_word("WARP_SZ") => OperandKind::Constant(self.expression()?),
            TokenKind::Ident => return self.named_operand(),
            TokenKind::LeftBrace => {
                self.bump();
                self.open_braces += 1;
                let list = self.operand_list(TokenKind::RightBrace)?;
                self.open_braces = self.open_braces.saturating_sub(1);
                OperandKind::Vector(list)
            }
            TokenKind::LeftBracket => OperandKind::Address(Box::new(self.address()?)),
            TokenKind::Bang if self.next.kind == TokenKind::Ident => {
                self.bump();
                OperandKind::Not(Box::new(self.named_operand()?))
            }
            TokenKind::Minus if self.next.kind == TokenKind::Ident => {
                self.bump();
                if self.at_word("WARP_SZ") {
                    let value = Box::new(self.expression()?);
                    let span = start.to(self.last);
                    let kind = ExprKind::Unary { op: UnaryOp::Minus, value };
                    OperandKind::Constant(Expr { span, kind })
                } else {
                    OperandKind::Minus(Box::new(self.named_operand()?))
                }
            }
            TokenKind::Integer
            | TokenKind::Decimal
            | TokenKind::F32Bits
            | TokenKind::F64Bits
            | TokenKind::Minus
            | TokenKind::Plus
            | TokenKind::Bang
            | TokenKind::Tilde
            | TokenKind::LeftParen => OperandKind::Constant(self.expression()?),
            _ => return Err(self.unexpected("an operand")),
        };
        Ok(Operand { span: start.to(self.last), kind })
    }

    /// An operand that begins with a name.
    fn named_operand(&mut self) -> Parsed<Operand<'a>> {
        let base = self.name("a register")?;
        let kind = match self.token.kind {
            _ if base.text == "_" => OperandKind::Sink,
            TokenKind::DotWord => OperandKind::Member { base, member: self.take_name() },
            TokenKind::LeftBracket => {
                self.bump();
                let index = self.nested(|p| p.single_operand())?;
                self.expect(TokenKind::RightBracket)?;
                OperandKind::Element { base, index: Box::new(index) }
            }
            TokenKind::Plus | TokenKind::Minus => match self.offset()? {
                Some(offset) => OperandKind::Offset { base, offset },
                None => OperandKind::Name(base.text),
            },
            _ => OperandKind::Name(base.text),
        };
        Ok(Operand { span: base.span.to(self.last), kind })
    }

    fn address(&mut self) -> Parsed<Address<'a>> {
        self.bump();
        let (base, offset) = if self.at(TokenKind::Ident) && !self.at_word("WARP_SZ") {
            let name = self.take_name();
            let base = if self.at(TokenKind::DotWord) {
                AddressBase::Member { base: name, member: self.take_name() }
            } else {
                AddressBase::Name(name)
            };
            (base, self.offset()?)
        } else if self.at(TokenKind::RightBracket) {
            return Err(self.unexpected("an address"));
        } else {
            (AddressBase::Absolute(self.expression()?), None)
        };
        let coordinates = if self.eat(TokenKind::Comma) {
            self.operand_list(TokenKind::RightBracket)?
        } else if self.eat(TokenKind::RightBracket) {
            Vec::new()
        } else {
            return Err(self.unexpected("`]`"));
        };
        let mut unified = false;
        if self.dotted() == Some("unified") {
            self.bump();
            unified = true;
        }
        Ok(Address { base, offset, coordinates, unified })
    }
}
