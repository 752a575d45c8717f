//! A module: functions, variables, source locations.

use crate::entity::{FuncId, GlobalId, LocId};
use crate::function::Function;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Linkage {
    Internal,
    Visible,
    Weak,
    Common,
    Extern,
}

/// A kernel parameter as the host passes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    pub name: String,
    /// Byte offset in the parameter block.
    pub offset: u32,
    pub size: u32,
    pub align: u32,
    /// Declared as a 64-bit pointer-sized scalar, so a buffer may be passed.
    pub is_pointer_sized: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GlobalSpace {
    Global,
    Const,
    /// Size zero with `Linkage::Extern`: the dynamic part.
    Shared,
}

/// What an initialiser may refer to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SymbolRef {
    Global(GlobalId),
    Function(FuncId),
}

/// A piece of an initialiser that is an address, known when the module is loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InitPiece {
    /// Where in the variable.
    pub offset: u32,
    /// Bytes written: 1, 2, 4 or 8.
    pub size: u8,
    pub symbol: SymbolRef,
    pub addend: i64,
    /// Written as a generic address rather than one of the symbol's space.
    pub generic: bool,
    /// `mask(0xff00...)`: the byte of the address that is taken, by shift; 0 for the whole.
    pub shift: u8,
}

/// A module-level variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Global {
    pub name: String,
    pub space: GlobalSpace,
    pub linkage: Linkage,
    pub size: u64,
    pub align: u32,
    /// Initial bytes; shorter than `size` means zeros follow.
    pub init: Vec<u8>,
    pub pieces: Vec<InitPiece>,
    pub loc: LocId,
}

/// Index into [`Module::files`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FileId(pub u32);

/// A line of the program that the PTX was made from, by `.loc`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SourceLine {
    pub file: FileId,
    pub line: u32,
    pub column: u32,
    /// The location where the function that holds this line was inlined.
    pub inlined_at: Option<LocId>,
}

/// Where an instruction comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Location {
    /// Line in the front end's own text (PTX), from 1; 0 for nothing.
    pub line: u32,
    /// The source line, where the front end's text says one.
    pub source: Option<SourceLine>,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Module {
    /// Name of the text it was made from, for messages.
    pub name: String,
    pub functions: Vec<Function>,
    pub globals: Vec<Global>,
    /// Source files by `.file`, paths as written.
    pub files: Vec<String>,
    /// Locations; number 0 is "nowhere".
    pub locations: Vec<Location>,
    /// `sm_NN` of the target.
    pub target: u32,
    /// Addresses are 32 or 64 bits.
    pub address_bits: u32,
}

impl Module {
    pub fn function(&self, f: FuncId) -> &Function {
        &self.functions[f.index()]
    }

    pub fn global(&self, g: GlobalId) -> &Global {
        &self.globals[g.index()]
    }

    pub fn location(&self, l: LocId) -> Location {
        self.locations.get(l.index()).copied().unwrap_or_default()
    }

    pub fn find_function(&self, name: &str) -> Option<FuncId> {
        self.functions.iter().position(|f| f.name == name).map(FuncId::new)
    }
}
