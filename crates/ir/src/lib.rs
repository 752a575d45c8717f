//! The front-end-neutral program: typed SSA over a control-flow graph, with source locations.
//!
//! # Semantics
//! - A **value** is a bundle of bits of a fixed width ([`Type`]); operations say how they read the bits (signed, f32, ...),
//!   so a bit cast is no operation. A [`Type::P`] is one bit. The upper half of the 32-bit register that will hold a
//!   [`Type::B16`] is unspecified.
//! - A function is a list of **blocks**; a block has parameters (the SSA form of phi), instructions and one terminator.
//!   The first block is the entry and has no parameters of its own: function parameters are [`Function::params`].
//! - Every thread evaluates the program on its own. Branches may **diverge** within a warp; where lanes come together
//!   again is the back end's choice, except that operations with a member mask wait for all its lanes.
//! - Pure operations have no guard: the front end turns `@p op` into the operation and a [`Op::Select`]. An operation
//!   with an effect may carry a **guard**: when it does not hold, nothing happens and the results are the operation's
//!   trailing *pass-through* arguments (one a result).
//! - **Memory** operations happen in program order for one thread. Orders and scopes are annotations that the machine
//!   honours; [`Op::is_pure`] says what may be moved, duplicated or removed freely.
//! - **Contraction**: a float `add`, `sub` or `mul` with `contract` set may be fused as the compiler's rule says.

pub mod block_params;
pub mod build;
pub mod compact;
pub mod dominators;
pub mod entity;
pub mod function;
pub mod link;
pub mod module;
pub mod op;
pub mod print;
pub mod types;
pub mod validate;

pub use block_params::remove_trivial;
pub use build::FunctionBuilder;
pub use dominators::{Edges, block_edges, dominators, immediate_dominators};
pub use entity::{Block, FuncId, GlobalId, InstId, LocId, SlotId, Value, Var};
pub use function::{
    BlockCall, BlockData, Function, FunctionKind, Guard, InstData, Launch, StackSlot, Terminator, ValueDef,
};
pub use link::{LinkError, link};
pub use module::{
    FileId, Global, GlobalSpace, InitPiece, Linkage, Location, Module, Param, SourceLine, SymbolRef,
};
pub use op::*;
pub use types::{Scalar, Type};
pub use validate::{Invalid, validate};
