//! From the syntax tree to ir: registers become SSA values, `.param` traffic becomes arguments, one instruction
//! becomes one or a few operations.
//!
//! | module | holds |
//! | --- | --- |
//! | [`module`] | functions, variables and source files of the module |
//! | [`initializer`] | initial bytes of variables, addresses among them |
//! | [`function`] | one function: scopes, labels, statements |
//! | [`operand`] | reading and writing operands at a width |
//! | [`call`] | calls, their parameters and results |
//! | [`control`] | branches, barriers and ends |
//! | [`memory`] | loads, stores, atomics, address conversion |
//! | the rest | one family of instructions each |

mod atomic;
mod call;
mod compare;
mod control;
mod convert;
mod dispatch;
mod float;
mod function;
mod initializer;
mod integer;
mod logic;
mod memory;
mod module;
mod mov;
mod operand;
mod sreg;
mod video;
mod warp;

use crate::ast;
use crate::diagnostic::Diagnostic;

/// What lowering an instruction gives: nothing, or what is wrong with it.
type Result<T = ()> = std::result::Result<T, Diagnostic>;

/// Lowers a checked module. `name` is the name of the text, for messages.
pub fn lower(
    name: &str,
    source: &[u8],
    module: &ast::Module<'_>,
) -> std::result::Result<ir::Module, Vec<Diagnostic>> {
    module::lower(name, source, module)
}
