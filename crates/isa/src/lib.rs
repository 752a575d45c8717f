//! The machine's instruction set: one table from which everything about an instruction comes.
//!
//! | module | holds |
//! | --- | --- |
//! | [`table`] | the instruction table: mnemonic, operands, modifier fields, unit, latency class, effects |
//! | [`field`] | the modifier fields that instructions share, with their spelling |
//! | [`reg`] | registers, predicates, uniform and barrier registers, special registers |
//! | [`inst`] | a decoded instruction and what it reads and writes |
//! | [`encode`] | the 128-bit word |
//! | [`text`] | assembler and disassembler |
//! | [`image`] | the program image: code, constants, variables, line table, entry metadata, and its file form |
//! | [`abi`] | the memory map, the constant bank of a launch, the calling convention |
//! | [`reference`] | the reference page `docs/isa.md` |
//!
//! Dependences are tracked by the machine's scoreboard, so words carry no control codes. Registers are 32 bits;
//! a 64-bit value takes an aligned pair named by its even register, a 128-bit one a quad.

pub mod abi;
pub mod encode;
pub mod field;
pub mod image;
pub mod inst;
pub mod reference;
pub mod reg;
pub mod table;
pub mod text;

pub use image::Image;
pub use inst::{Head, Inst, Operand, Src};
pub use reg::{BReg, Pc, Pred, PredUse, Reg, Special, UReg};
pub use table::{Effects, Latency, Op, Role, Unit};
