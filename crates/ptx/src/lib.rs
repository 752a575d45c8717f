//! PTX text to a syntax tree with spans, and from there to ir.
//!
//! [`parse`] gives the tree and the syntax errors, [`check`] also the errors of meaning that need no more than
//! the module: unknown instructions and modifiers ([`opcodes`]), names, labels, calls and register sizes
//! ([`resolve`]). [`print::print`] writes a tree back as PTX. No input makes them panic.

pub mod ast;
pub mod constant;
pub mod diagnostic;
pub mod lexer;
pub mod lower;
pub mod opcodes;
mod parse;
pub mod print;
pub mod resolve;
pub mod span;
pub mod special;
pub mod symbols;
pub mod token;
pub mod types;

pub use ast::Module;
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use span::{LineColumn, LineIndex, Span};

/// A tree and what is wrong with it, in source order.
#[derive(Debug)]
pub struct Parse<'a> {
    pub module: Module<'a>,
    pub diagnostics: Vec<Diagnostic>,
}

impl Parse<'_> {
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|d| d.severity == Severity::Error)
    }
}

/// Parses a module. What could not be understood is missing from the tree and named in the diagnostics.
pub fn parse(source: &[u8]) -> Parse<'_> {
    let tree = parse::parse_module(source);
    Parse { module: tree.module, diagnostics: tree.diagnostics.into_vec() }
}

/// Parses a module and checks it. A module without errors here has known instructions with operands of the
/// right number and size, and all its names are declared.
pub fn check(source: &[u8]) -> Parse<'_> {
    let mut tree = parse::parse_module(source);
    let names = if tree.declarations_lost { resolve::Names::Skip } else { resolve::Names::Check };
    resolve::validate(&tree.module, names, &mut tree.diagnostics);
    Parse { module: tree.module, diagnostics: tree.diagnostics.into_vec() }
}

/// Text to ir: parses, checks and lowers. `name` is the name of the text, for messages.
pub fn to_ir(name: &str, source: &[u8]) -> Result<ir::Module, Vec<Diagnostic>> {
    let parse = check(source);
    if parse.has_errors() {
        return Err(parse.diagnostics);
    }
    lower::lower(name, source, &parse.module)
}
