//! Debugging directives: `.file`, `.loc`, `.section`.

use super::{Parsed, Parser};
use crate::ast::*;
use crate::token::TokenKind;

impl<'a> Parser<'a> {
    pub(super) fn file(&mut self) -> Parsed<FileDirective<'a>> {
        self.bump();
        let index = self.small_integer("the file's index")?;
        let name = self.string()?;
        let mut timestamp_and_size = None;
        if self.eat(TokenKind::Comma) {
            let timestamp = self.integer_literal("a time stamp")?;
            self.expect(TokenKind::Comma)?;
            timestamp_and_size = Some((timestamp, self.integer_literal("the file's size")?));
        }
        Ok(FileDirective { index, name, timestamp_and_size })
    }

    fn source_place(&mut self) -> Parsed<SourcePlace> {
        Ok(SourcePlace {
            file: self.small_integer("the file's index")?,
            line: self.small_integer("a line")?,
            column: self.small_integer("a column")?,
        })
    }

    pub(super) fn loc(&mut self) -> Parsed<Loc<'a>> {
        let start = self.bump().span;
        let place = self.source_place()?;
        let mut inlined = None;
        if self.eat(TokenKind::Comma) {
            if !self.at_word("function_name") {
                return Err(self.unexpected("`function_name`"));
            }
            self.bump();
            let function = self.section_symbol()?;
            let mut offset = 0;
            if self.eat(TokenKind::Plus) {
                offset = self.integer_literal("an offset")? as i64;
            }
            self.expect(TokenKind::Comma)?;
            if !self.at_word("inlined_at") {
                return Err(self.unexpected("`inlined_at`"));
            }
            self.bump();
            inlined = Some(Inlined { function, offset, at: self.source_place()? });
        }
        Ok(Loc { span: start.to(self.last), place, inlined })
    }

    /// A label of a section, or a section's name with its dot.
    fn section_symbol(&mut self) -> Parsed<Name<'a>> {
        if matches!(self.token.kind, TokenKind::Ident | TokenKind::DotWord) {
            let span = self.bump().span;
            return Ok(Name { text: self.text(span), span });
        }
        Err(self.unexpected("a label"))
    }

    pub(super) fn section(&mut self) -> Parsed<Section<'a>> {
        self.bump();
        if !matches!(self.token.kind, TokenKind::Ident | TokenKind::DotWord) {
            return Err(self.unexpected("a section's name"));
        }
        let name = self.take_name();
        self.expect(TokenKind::LeftBrace)?;
        let mut items = Vec::new();
        while !self.eat(TokenKind::RightBrace) {
            if self.at(TokenKind::Ident) {
                let label = self.take_name();
                self.expect(TokenKind::Colon)?;
                items.push(SectionItem::Label(label));
                continue;
            }
            let ty = match self.dotted().and_then(ScalarType::from_word) {
                Some(ty @ (ScalarType::B8 | ScalarType::B16 | ScalarType::B32 | ScalarType::B64)) => ty,
                _ => return Err(self.unexpected("a label, `.b8`, `.b16`, `.b32`, `.b64` or `}`")),
            };
            let start = self.bump().span;
            let mut values = vec![self.symbolic_expression()?];
            while self.eat(TokenKind::Comma) {
                values.push(self.symbolic_expression()?);
            }
            items.push(SectionItem::Data { ty, values, span: start.to(self.last) });
        }
        Ok(Section { name, items })
    }
}
