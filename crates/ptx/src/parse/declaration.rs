//! Declarations of variables, registers and parameters, with initialisers.

use super::{Parsed, Parser, shorten};
use crate::ast::*;
use crate::diagnostic::{Diagnostic, closest};
use crate::span::Span;
use crate::token::TokenKind;

impl<'a> Parser<'a> {
    /// A declaration with its `;`, from the state space on.
    pub(super) fn variable(&mut self, start: Span, linkage: Option<Linkage>) -> Parsed<Variable<'a>> {
        let mut variable = self.declared_type(start, linkage)?;
        loop {
            let declarator = self.declarator()?;
            variable.declarators.push(declarator);
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.semicolon()?;
        variable.span = start.to(self.last);
        Ok(variable)
    }

    /// `( .param .u32 x, ... )`
    pub(super) fn parameters(&mut self) -> Parsed<Vec<Variable<'a>>> {
        self.expect(TokenKind::LeftParen)?;
        let mut list = Vec::new();
        if self.eat(TokenKind::RightParen) {
            return Ok(list);
        }
        loop {
            let start = self.token.span;
            if !matches!(self.dotted(), Some("param" | "reg")) {
                return Err(self.unexpected("`.param` or `.reg`"));
            }
            let mut variable = self.declared_type(start, None)?;
            let declarator = self.declarator()?;
            variable.declarators.push(declarator);
            variable.span = start.to(self.last);
            list.push(variable);
            if self.eat(TokenKind::RightParen) {
                return Ok(list);
            }
            if !self.eat(TokenKind::Comma) {
                return Err(self.unexpected("`,` or `)`"));
            }
        }
    }

    /// State space, alignment, attributes, vector length, type.
    fn declared_type(&mut self, start: Span, linkage: Option<Linkage>) -> Parsed<Variable<'a>> {
        let Some(mut space) = self.dotted().and_then(StateSpace::from_word) else {
            return Err(self.unexpected("a state space"));
        };
        self.bump();
        if matches!(space, StateSpace::Const(_)) && self.eat(TokenKind::LeftBracket) {
            let span = self.token.span;
            let bank = self.small_integer("a bank")?;
            self.expect(TokenKind::RightBracket)?;
            match u8::try_from(bank) {
                Ok(bank) if bank <= 10 => space = StateSpace::Const(Some(bank)),
                _ => return Err(self.error(span, "constant banks are 0 to 10")),
            }
        }
        let mut align = None;
        let mut attributes = Vec::new();
        let mut vector = None;
        let mut ty = None;
        let mut ptr = None;
        while let Some(word) = self.dotted() {
            match word {
                "align" => align = Some(self.alignment()?),
                "attribute" => attributes = self.attributes()?,
                "v2" | "v4" | "v8" => {
                    vector = word[1..].parse().ok();
                    self.bump();
                }
                "ptr" => {
                    self.bump();
                    let target = self.dotted().and_then(StateSpace::from_word);
                    if target.is_some() {
                        self.bump();
                    }
                    let aligned = if self.dotted() == Some("align") { Some(self.alignment()?) } else { None };
                    ptr = Some(PointerAttribute { space: target, align: aligned });
                }
                _ => match ScalarType::from_word(word).filter(|t| t.is_declarable()) {
                    Some(found) => {
                        if ty.is_some() {
                            return Err(self.error(self.token.span, format!("`.{word}` is a second type")));
                        }
                        ty = Some(found);
                        self.bump();
                    }
                    None => return Err(self.unknown_type(word)),
                },
            }
        }
        let Some(ty) = ty else { return Err(self.unexpected("a type")) };
        Ok(Variable {
            span: start,
            linkage,
            space,
            align,
            attributes,
            vector,
            ty,
            ptr,
            declarators: Vec::new(),
        })
    }

    fn unknown_type(&mut self, word: &str) -> super::Failed {
        let message = format!("`.{}` is not a type that can be declared", shorten(word));
        let mut diagnostic = Diagnostic::error(self.token.span, message);
        let types = ScalarType::ALL.iter().filter(|t| t.is_declarable()).map(|t| t.word());
        if let Some(close) = closest(word, types) {
            diagnostic = diagnostic.with_help(format!("did you mean `.{close}`?"));
        }
        self.report(diagnostic);
        super::Failed
    }

    fn alignment(&mut self) -> Parsed<u32> {
        self.bump();
        let span = self.token.span;
        let align = self.small_integer("an alignment")?;
        if !align.is_power_of_two() {
            self.error(span, format!("the alignment {align} is not a power of two"));
        }
        Ok(align)
    }

    /// `.attribute(.managed, .unified(1, 2))`
    pub(super) fn attributes(&mut self) -> Parsed<Vec<Attribute<'a>>> {
        self.bump();
        self.expect(TokenKind::LeftParen)?;
        let mut list = Vec::new();
        loop {
            if !self.at(TokenKind::DotWord) {
                return Err(self.unexpected("an attribute"));
            }
            let name = self.take_name();
            let mut arguments = Vec::new();
            if self.eat(TokenKind::LeftParen) {
                arguments.push(self.expression()?);
                while self.eat(TokenKind::Comma) {
                    arguments.push(self.expression()?);
                }
                self.expect(TokenKind::RightParen)?;
            }
            list.push(Attribute { name, arguments });
            if !self.eat(TokenKind::Comma) {
                self.expect(TokenKind::RightParen)?;
                return Ok(list);
            }
        }
    }

    fn declarator(&mut self) -> Parsed<Declarator<'a>> {
        let name = self.name("a name")?;
        let mut range = None;
        if self.eat(TokenKind::Less) {
            range = Some(self.small_integer("how many to declare")?);
            self.expect(TokenKind::Greater)?;
        }
        let mut dimensions = Vec::new();
        while self.eat(TokenKind::LeftBracket) {
            if self.eat(TokenKind::RightBracket) {
                dimensions.push(None);
                continue;
            }
            dimensions.push(Some(self.expression()?));
            self.expect(TokenKind::RightBracket)?;
        }
        let mut initializer = None;
        if self.eat(TokenKind::Equal) {
            initializer = Some(self.initializer()?);
        }
        Ok(Declarator { span: name.span.to(self.last), name, range, dimensions, initializer })
    }

    fn initializer(&mut self) -> Parsed<Initializer<'a>> {
        if self.at(TokenKind::LeftBrace) {
            return self.nested(|p| p.initializer_list());
        }
        if self.at(TokenKind::Ident) && self.next.kind == TokenKind::Equal {
            let name = self.take_name();
            self.bump();
            return Ok(Initializer::Field { name, value: self.symbolic_expression()? });
        }
        self.symbolic_expression().map(Initializer::Value)
    }

    fn initializer_list(&mut self) -> Parsed<Initializer<'a>> {
        let start = self.bump().span;
        self.open_braces += 1;
        let mut items = Vec::new();
        while !self.at(TokenKind::RightBrace) {
            items.push(self.initializer()?);
            if !self.eat(TokenKind::Comma) && !self.at(TokenKind::RightBrace) {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
        self.bump();
        self.open_braces = self.open_braces.saturating_sub(1);
        Ok(Initializer::List { items, span: start.to(self.last) })
    }
}
