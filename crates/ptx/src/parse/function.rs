//! Functions, blocks and statements.

use super::{Failed, Parsed, Parser, shorten};
use crate::ast::*;
use crate::diagnostic::{Diagnostic, closest};
use crate::span::Span;
use crate::token::TokenKind;

const FUNCTION_DIRECTIVES: &[&str] = &[
    "maxnreg",
    "maxntid",
    "reqntid",
    "minnctapersm",
    "maxnctapersm",
    "reqnctapercluster",
    "explicitcluster",
    "maxclusterrank",
    "blocksareclusters",
    "noreturn",
    "abi_preserve",
    "abi_preserve_control",
    "pragma",
];

impl<'a> Parser<'a> {
    pub(super) fn function(
        &mut self,
        start: Span,
        linkage: Option<Linkage>,
        kind: FunctionKind,
    ) -> Parsed<DirectiveKind<'a>> {
        self.bump();
        let attributes = if self.dotted() == Some("attribute") { self.attributes()? } else { Vec::new() };
        let returns = if kind == FunctionKind::Func && self.at(TokenKind::LeftParen) {
            self.parameters()?
        } else {
            Vec::new()
        };
        let name = self.name("the function's name")?;
        let params = if self.at(TokenKind::LeftParen) { self.parameters()? } else { Vec::new() };
        let directives = self.function_directives()?;
        let span = start.to(self.last);
        let body = if self.at(TokenKind::LeftBrace) {
            self.open_braces = 0;
            Some(self.block()?)
        } else if self.eat(TokenKind::Semicolon) {
            None
        } else {
            return Err(self.unexpected("the function's body or `;`"));
        };
        let function = Function { span, linkage, kind, attributes, name, returns, params, directives, body };
        Ok(DirectiveKind::Function(Box::new(function)))
    }

    fn function_directives(&mut self) -> Parsed<Vec<FunctionDirective<'a>>> {
        use FunctionDirectiveKind as Kind;
        let mut list = Vec::new();
        while let Some(word) = self.dotted() {
            let start = self.token.span;
            if word == "pragma" {
                let strings = self.pragma()?;
                list.push(FunctionDirective { span: start.to(self.last), kind: Kind::Pragma(strings) });
                continue;
            }
            if !FUNCTION_DIRECTIVES.contains(&word) {
                let message = format!("`.{}` does not belong to a function's header", shorten(word));
                let mut diagnostic = Diagnostic::error(start, message);
                if let Some(close) = closest(word, FUNCTION_DIRECTIVES.iter().copied()) {
                    diagnostic = diagnostic.with_help(format!("did you mean `.{close}`?"));
                }
                self.report(diagnostic);
                return Err(Failed);
            }
            self.bump();
            let kind = match word {
                "maxntid" => Kind::MaxNTid(self.extents()?),
                "reqntid" => Kind::ReqNTid(self.extents()?),
                "reqnctapercluster" => Kind::ReqNCtaPerCluster(self.extents()?),
                "explicitcluster" => Kind::ExplicitCluster,
                "blocksareclusters" => Kind::BlocksAreClusters,
                "noreturn" => Kind::NoReturn,
                "maxnreg" => Kind::MaxNReg(self.small_integer("a number of registers")?),
                "minnctapersm" => Kind::MinNCtaPerSm(self.small_integer("a number of CTAs")?),
                "maxnctapersm" => Kind::MaxNCtaPerSm(self.small_integer("a number of CTAs")?),
                "maxclusterrank" => Kind::MaxClusterRank(self.small_integer("a number of CTAs")?),
                "abi_preserve" => Kind::AbiPreserve(self.small_integer("a number of registers")?),
                _ => Kind::AbiPreserveControl(self.small_integer("a number of registers")?),
            };
            list.push(FunctionDirective { span: start.to(self.last), kind });
        }
        Ok(list)
    }

    /// One to three extents of a CTA or a cluster.
    fn extents(&mut self) -> Parsed<Vec<u32>> {
        let mut list = vec![self.small_integer("an extent")?];
        while list.len() < 3 && self.eat(TokenKind::Comma) {
            list.push(self.small_integer("an extent")?);
        }
        Ok(list)
    }

    fn block(&mut self) -> Parsed<Block<'a>> {
        self.nested(|p| {
            let open = p.bump().span;
            let mut statements = Vec::new();
            loop {
                match p.token.kind {
                    TokenKind::RightBrace => break,
                    TokenKind::End => {
                        // After an open comment the end is no news.
                        if !p.source[p.last.start as usize..].starts_with(b"/*") {
                            let message = "expected `}` after this, found the end of the file";
                            p.report(
                                Diagnostic::error(p.last, message).with_note(open, "the block begins here"),
                            );
                        }
                        return Ok(Block { span: open.to(p.last), statements });
                    }
                    TokenKind::DotWord if p.at_function_start() => {
                        let found = p.text(p.token.span);
                        let diagnostic =
                            Diagnostic::error(p.token.span, format!("expected `}}` before `{found}`"))
                                .with_note(open, "the block begins here");
                        p.report(diagnostic);
                        return Ok(Block { span: open.to(p.last), statements });
                    }
                    TokenKind::Semicolon => {
                        p.bump();
                    }
                    _ => p.statement_or_recover(&mut statements),
                }
            }
            p.bump();
            Ok(Block { span: open.to(p.last), statements })
        })
    }

    fn statement_or_recover(&mut self, statements: &mut Vec<Statement<'a>>) {
        let start = self.token.span;
        let declares = self.at(TokenKind::DotWord);
        self.open_braces = 0;
        match self.statement() {
            Ok(statement) => statements.push(statement),
            Err(Failed) => {
                self.declarations_lost |= declares;
                if self.token.span == start && !self.at(TokenKind::RightBrace) && !self.at(TokenKind::End) {
                    self.bump();
                }
                self.recover_in_block();
            }
        }
    }

    fn statement(&mut self) -> Parsed<Statement<'a>> {
        let start = self.token.span;
        match self.token.kind {
            TokenKind::LeftBrace => self.block().map(Statement::Block),
            TokenKind::Ident if self.next.kind == TokenKind::Colon => {
                let label = self.take_name();
                self.bump();
                match self.dotted() {
                    Some("branchtargets") => self.branch_targets(label),
                    Some("calltargets") => self.call_targets(label),
                    Some("callprototype") => self.call_prototype(label),
                    _ => Ok(Statement::Label(label)),
                }
            }
            TokenKind::Ident | TokenKind::At => self.instruction().map(Statement::Instruction),
            TokenKind::DotWord => match self.dotted() {
                Some("loc") => self.loc().map(Statement::Loc),
                Some("pragma") => {
                    let strings = self.pragma()?;
                    Ok(Statement::Pragma { strings, span: start.to(self.last) })
                }
                Some("branchtargets" | "calltargets" | "callprototype") => {
                    Err(self.error(start, "this directive needs a label before it"))
                }
                Some(word) if StateSpace::from_word(word).is_some() => {
                    self.variable(start, None).map(Statement::Variable)
                }
                _ => {
                    let message = format!("unknown directive `{}`", shorten(self.text(start)));
                    let spaces = ["reg", "param", "local", "shared", "const", "global", "loc", "pragma"];
                    let mut diagnostic = Diagnostic::error(start, message);
                    if let Some(close) = self.dotted().and_then(|word| closest(word, spaces)) {
                        diagnostic = diagnostic.with_help(format!("did you mean `.{close}`?"));
                    }
                    self.report(diagnostic);
                    Err(Failed)
                }
            },
            _ => Err(self.unexpected("an instruction, a declaration or `}`")),
        }
    }

    fn branch_targets(&mut self, label: Name<'a>) -> Parsed<Statement<'a>> {
        self.bump();
        let mut targets = Vec::new();
        loop {
            let name = self.name("a label")?;
            let mut count = None;
            if self.eat(TokenKind::Less) {
                count = Some(self.small_integer("how many labels")?);
                self.expect(TokenKind::Greater)?;
            }
            targets.push(TargetRange { name, count });
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.semicolon()?;
        Ok(Statement::BranchTargets { label, targets, span: label.span.to(self.last) })
    }

    fn call_targets(&mut self, label: Name<'a>) -> Parsed<Statement<'a>> {
        self.bump();
        let mut targets = vec![self.name("a function")?];
        while self.eat(TokenKind::Comma) {
            targets.push(self.name("a function")?);
        }
        self.semicolon()?;
        Ok(Statement::CallTargets { label, targets, span: label.span.to(self.last) })
    }

    fn call_prototype(&mut self, label: Name<'a>) -> Parsed<Statement<'a>> {
        self.bump();
        let returns = if self.at(TokenKind::LeftParen) { self.parameters()? } else { Vec::new() };
        self.name("`_`")?;
        let params = if self.at(TokenKind::LeftParen) { self.parameters()? } else { Vec::new() };
        let directives = self.function_directives()?;
        self.semicolon()?;
        let span = label.span.to(self.last);
        Ok(Statement::CallPrototype(CallPrototype { span, label, returns, params, directives }))
    }

    fn instruction(&mut self) -> Parsed<Instruction<'a>> {
        let start = self.token.span;
        let mut guard = None;
        if self.eat(TokenKind::At) {
            let negated = self.eat(TokenKind::Bang);
            let predicate = self.name("a predicate register")?;
            guard = Some(Guard { span: start.to(predicate.span), negated, predicate });
        }
        let mnemonic = self.name("an instruction")?;
        let mut modifiers = Vec::with_capacity(4);
        while self.at(TokenKind::DotWord) {
            modifiers.push(self.take_name());
        }
        let mut operands = Vec::with_capacity(4);
        if !self.at(TokenKind::Semicolon) {
            let is_call = mnemonic.text == "call";
            loop {
                operands.push(self.operand(is_call)?);
                if !self.eat(TokenKind::Comma) {
                    break;
                }
            }
        }
        self.semicolon()?;
        Ok(Instruction { span: start.to(self.last), guard, mnemonic, modifiers, operands })
    }
}
