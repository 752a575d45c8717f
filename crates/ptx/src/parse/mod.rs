//! The parser: tokens to [`Module`], with recovery.
//!
//! After an error it resumes at the next `;`, at the end of the block, or at a directive that begins a line, so
//! one slip costs one message. When the error cap is reached the rest of the source is not even read.

mod debug;
mod declaration;
mod expression;
mod function;
mod module;
mod operand;

use crate::ast::{Module, Name};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lexer::Lexer;
use crate::span::Span;
use crate::token::{Token, TokenKind};

/// How deep braces and expressions may nest; the recursion of the parser is bounded by it.
pub const MAX_NESTING: u32 = 200;

/// The error is already in the diagnostics.
#[derive(Debug)]
pub(crate) struct Failed;

pub(crate) type Parsed<T> = Result<T, Failed>;

pub(crate) struct SyntaxTree<'a> {
    pub module: Module<'a>,
    pub diagnostics: Diagnostics,
    /// An error may have cost a declaration, so names missing later say nothing.
    pub declarations_lost: bool,
}

pub(crate) fn parse_module(source: &[u8]) -> SyntaxTree<'_> {
    let mut parser = Parser::new(source);
    let module = parser.module();
    SyntaxTree { module, diagnostics: parser.diagnostics, declarations_lost: parser.declarations_lost }
}

pub(crate) struct Parser<'a> {
    source: &'a [u8],
    lexer: Lexer<'a>,
    token: Token,
    next: Token,
    /// Span of the token consumed last.
    last: Span,
    diagnostics: Diagnostics,
    declarations_lost: bool,
    nesting: u32,
    /// Operators so far in the expression at hand.
    operators: u32,
    /// Braces of operands open in the statement at hand, which recovery must not take for a block's end.
    open_braces: u32,
}

impl<'a> Parser<'a> {
    fn new(source: &'a [u8]) -> Parser<'a> {
        let mut diagnostics = Diagnostics::default();
        let mut text = source;
        if u32::try_from(source.len()).is_err() {
            diagnostics.error(Span::default(), "the file is larger than 4 GiB");
            text = &[];
        } else if let Some(at) = source[..source.len().min(4096)].iter().position(|&b| b == 0) {
            let at = at as u32;
            diagnostics.error(Span::new(at, at + 1), "this is not PTX text: it contains a zero byte");
            text = &[];
        }
        let mut lexer = Lexer::new(text);
        let token = lexer.next_token();
        let next = lexer.next_token();
        Parser {
            source: text,
            lexer,
            token,
            next,
            last: Span::default(),
            declarations_lost: diagnostics.has_errors(),
            diagnostics,
            nesting: 0,
            operators: 0,
            open_braces: 0,
        }
    }

    /// The text of a token. All tokens but strings are ASCII.
    fn text(&self, span: Span) -> &'a str {
        let bytes = self.source.get(span.start as usize..span.end as usize).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    fn at(&self, kind: TokenKind) -> bool {
        self.token.kind == kind
    }

    fn at_word(&self, word: &str) -> bool {
        self.at(TokenKind::Ident) && self.text(self.token.span) == word
    }

    /// The text of a dotted word, without its dot.
    fn dotted(&self) -> Option<&'a str> {
        if self.at(TokenKind::DotWord) { self.text(self.token.span).get(1..) } else { None }
    }

    fn bump(&mut self) -> Token {
        let token = self.token;
        self.last = token.span;
        self.token = self.next;
        if self.next.kind != TokenKind::End {
            self.next = self.lexer.next_token();
        }
        token
    }

    fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.at(kind);
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, kind: TokenKind) -> Parsed<Token> {
        if self.at(kind) { Ok(self.bump()) } else { Err(self.unexpected(kind.describe())) }
    }

    fn name(&mut self, what: &str) -> Parsed<Name<'a>> {
        if !self.at(TokenKind::Ident) {
            return Err(self.unexpected(what));
        }
        Ok(self.take_name())
    }

    /// The current token as a name, whatever it is; a dotted word loses its dot.
    fn take_name(&mut self) -> Name<'a> {
        let dotted = self.dotted();
        let token = self.bump();
        Name { text: dotted.unwrap_or_else(|| self.text(token.span)), span: token.span }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
        if self.diagnostics.is_full() {
            // Nothing more will be heard: pretend that the source ends here.
            let end = Token { kind: TokenKind::End, first_on_line: true, span: self.token.span };
            self.token = end;
            self.next = end;
            self.declarations_lost = true;
        }
    }

    fn error(&mut self, span: Span, message: impl Into<String>) -> Failed {
        self.report(Diagnostic::error(span, message));
        Failed
    }

    /// Reports that something else was expected where the current token stands.
    fn unexpected(&mut self, wanted: &str) -> Failed {
        let Token { kind, span, .. } = self.token;
        let message = match kind {
            TokenKind::Unknown => {
                let byte = self.source.get(span.start as usize).copied().unwrap_or(0);
                if byte.is_ascii_graphic() {
                    format!("expected {wanted}, found the character `{}`", char::from(byte))
                } else {
                    format!(
                        "expected {wanted}, found the byte {byte:#04x}, which is not part of any PTX token"
                    )
                }
            }
            TokenKind::UnterminatedString => "this string has no closing quote".to_string(),
            TokenKind::UnterminatedComment => "this comment has no end".to_string(),
            TokenKind::BadNumber => format!("`{}` is not a number", shorten(self.text(span))),
            TokenKind::End => format!("expected {wanted}, found the end of the file"),
            _ => format!("expected {wanted}, found `{}`", shorten(self.text(span))),
        };
        self.error(span, message)
    }

    /// The `;` at the end of a statement. When the next token begins a line, only the `;` was forgotten and
    /// nothing needs to be skipped.
    fn semicolon(&mut self) -> Parsed<()> {
        if self.eat(TokenKind::Semicolon) {
            return Ok(());
        }
        let forgotten =
            self.token.first_on_line || matches!(self.token.kind, TokenKind::RightBrace | TokenKind::End);
        if forgotten && !matches!(self.token.kind, TokenKind::UnterminatedComment) {
            self.error(self.last, "expected `;` after this");
            return Ok(());
        }
        Err(self.unexpected("`;`"))
    }

    /// Runs `parse` one level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting >= MAX_NESTING {
            return Err(self.error(self.token.span, format!("nested deeper than {MAX_NESTING} levels")));
        }
        self.nesting += 1;
        let result = parse(self);
        self.nesting -= 1;
        result
    }

    /// Skips to where the next statement of a block may begin.
    fn recover_in_block(&mut self) {
        let mut depth = std::mem::take(&mut self.open_braces);
        loop {
            match self.token.kind {
                TokenKind::End => return,
                TokenKind::Semicolon => {
                    self.bump();
                    return;
                }
                TokenKind::LeftBrace => depth += 1,
                TokenKind::RightBrace if depth == 0 => return,
                TokenKind::RightBrace => depth -= 1,
                TokenKind::DotWord if self.token.first_on_line => return,
                _ => {}
            }
            self.bump();
        }
    }

    /// Skips to where the next directive of the module may begin.
    fn recover_in_module(&mut self) {
        self.declarations_lost = true;
        let mut depth = 0u32;
        loop {
            match self.token.kind {
                TokenKind::End => return,
                TokenKind::LeftBrace => depth += 1,
                TokenKind::RightBrace => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        self.bump();
                        return;
                    }
                }
                TokenKind::Semicolon if depth == 0 => {
                    self.bump();
                    return;
                }
                TokenKind::DotWord
                    if self.token.first_on_line && (depth == 0 || self.at_function_start()) =>
                {
                    return;
                }
                _ => {}
            }
            self.bump();
        }
    }

    /// At a word that cannot stand inside a function's body.
    fn at_function_start(&self) -> bool {
        self.token.first_on_line
            && matches!(
                self.dotted(),
                Some(
                    "entry"
                        | "func"
                        | "visible"
                        | "extern"
                        | "weak"
                        | "version"
                        | "target"
                        | "address_size"
                        | "alias"
                )
            )
    }
}

/// Cuts what a message quotes from the source to a readable length.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_string(),
    }
}
