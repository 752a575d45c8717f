//! Directives of a module.

use super::{Parsed, Parser, shorten};
use crate::ast::*;
use crate::diagnostic::{Diagnostic, closest};
use crate::span::Span;
use crate::token::TokenKind;

const DIRECTIVES: &[&str] = &[
    "version",
    "target",
    "address_size",
    "file",
    "loc",
    "section",
    "pragma",
    "alias",
    "extern",
    "visible",
    "weak",
    "common",
    "entry",
    "func",
    "global",
    "const",
    "shared",
    "local",
    "tex",
    "param",
    "reg",
];

impl<'a> Parser<'a> {
    pub(super) fn module(&mut self) -> Module<'a> {
        let mut directives = Vec::new();
        while !self.at(TokenKind::End) {
            let start = self.token.span;
            match self.directive() {
                Ok(kind) => directives.push(Directive { span: start.to(self.last), kind }),
                Err(_) => {
                    if self.token.span == start && !self.at(TokenKind::End) {
                        self.bump();
                    }
                    self.recover_in_module();
                }
            }
        }
        Module { directives }
    }

    fn directive(&mut self) -> Parsed<DirectiveKind<'a>> {
        let start = self.token.span;
        let Some(word) = self.dotted() else { return Err(self.unexpected("a directive")) };
        match word {
            "version" => {
                self.bump();
                self.version()
            }
            "target" => {
                self.bump();
                let mut names = vec![self.name("a target, e.g. `sm_90`")?];
                while self.eat(TokenKind::Comma) {
                    names.push(self.name("a target, e.g. `sm_90`")?);
                }
                Ok(DirectiveKind::Target(names))
            }
            "address_size" => {
                self.bump();
                let span = self.token.span;
                let bits = self.small_integer("32 or 64")?;
                if bits != 32 && bits != 64 {
                    self.error(span, format!("the address size is 32 or 64, not {bits}"));
                }
                Ok(DirectiveKind::AddressSize(bits))
            }
            "file" => self.file().map(DirectiveKind::File),
            "loc" => self.loc().map(DirectiveKind::Loc),
            "section" => self.section().map(DirectiveKind::Section),
            "pragma" => self.pragma().map(DirectiveKind::Pragma),
            "alias" => {
                self.bump();
                let alias = self.name("the alias")?;
                self.expect(TokenKind::Comma)?;
                let aliasee = self.name("a function")?;
                self.semicolon()?;
                Ok(DirectiveKind::Alias { alias, aliasee })
            }
            _ => self.linked(start),
        }
    }

    /// Functions and variables, with their linkage.
    fn linked(&mut self, start: Span) -> Parsed<DirectiveKind<'a>> {
        let mut linkage = None;
        while let Some(word) = self.dotted() {
            let found = match word {
                "extern" => Linkage::Extern,
                "visible" => Linkage::Visible,
                "weak" => Linkage::Weak,
                "common" => Linkage::Common,
                _ => break,
            };
            if linkage.is_some_and(|first| first != found) {
                self.error(self.token.span, format!("`.{word}` after another linkage directive"));
            }
            linkage = Some(found);
            self.bump();
        }
        match self.dotted() {
            Some("entry") => self.function(start, linkage, FunctionKind::Entry),
            Some("func") => self.function(start, linkage, FunctionKind::Func),
            Some(word) if StateSpace::from_word(word).is_some() => {
                self.variable(start, linkage).map(DirectiveKind::Variable)
            }
            Some(word) => {
                let message = format!("unknown directive `.{}`", shorten(word));
                let mut diagnostic = Diagnostic::error(self.token.span, message);
                if let Some(close) = closest(word, DIRECTIVES.iter().copied()) {
                    diagnostic = diagnostic.with_help(format!("did you mean `.{close}`?"));
                }
                self.report(diagnostic);
                Err(super::Failed)
            }
            None => Err(self.unexpected("`.entry`, `.func` or a state space")),
        }
    }

    fn version(&mut self) -> Parsed<DirectiveKind<'a>> {
        if self.at(TokenKind::Decimal) {
            let text = self.text(self.token.span);
            if let Some((Ok(major), Ok(minor))) = text.split_once('.').map(|(a, b)| (a.parse(), b.parse())) {
                self.bump();
                return Ok(DirectiveKind::Version { major, minor });
            }
        }
        Err(self.unexpected("a version, e.g. `8.0`"))
    }

    /// `.pragma "string", ... ;`
    pub(super) fn pragma(&mut self) -> Parsed<Vec<StringLiteral<'a>>> {
        self.bump();
        let mut strings = vec![self.string()?];
        while self.eat(TokenKind::Comma) {
            strings.push(self.string()?);
        }
        self.semicolon()?;
        Ok(strings)
    }

    pub(super) fn string(&mut self) -> Parsed<StringLiteral<'a>> {
        if !self.at(TokenKind::String) {
            return Err(self.unexpected("a string"));
        }
        let span = self.bump().span;
        let bytes = &self.source[span.start as usize + 1..span.end as usize - 1];
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(StringLiteral { text, span }),
            Err(error) => {
                let at = span.start + 1 + error.valid_up_to() as u32;
                Err(self.error(Span::new(at, at + 1), "this string is not UTF-8 text"))
            }
        }
    }
}
