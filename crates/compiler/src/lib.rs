//! The compiler: from [`ir`] to an [`isa::Image`].
//!
//! | module | holds |
//! | --- | --- |
//! | [`passes`] | the middle end: passes over `ir` and their order |
//! | [`analysis`] | facts about a function that passes and the back end ask for |
//! | [`merge_loads`] | loads of neighbouring words become vector loads |
//! | [`merge_stores`] | stores to neighbouring words become vector stores |
//! | [`prepare`] | the form of `ir` that selection wants |
//! | [`converge`] | where lanes that a branch parted meet again |
//! | [`select`] | instruction selection, to [`mir`] |
//! | [`uniform`] | constants and uniform registers |
//! | [`schedule`] | the order of instructions, operand reuse |
//! | [`allocate`] | register allocation with spilling |
//! | [`mark_phases`] | phases of cache accesses |
//! | [`emit`] | layout and final instructions |
//! | [`places`] | where variables lie |
//! | [`calls`] | what an entry needs on behalf of what it calls |
//! | [`clobbers`] | which registers a function overwrites |
//! | [`image`] | the whole module |
//! | `groups` | many lists in one |

pub mod allocate;
pub mod analysis;
mod balance;
pub mod calls;
pub mod clobbers;
pub mod converge;
pub mod emit;
mod groups;
pub mod image;
pub mod mark_phases;
pub mod merge_loads;
pub mod merge_stores;
pub mod mir;
pub mod passes;
pub mod places;
pub mod prepare;
pub mod schedule;
pub mod select;
pub mod uniform;

use ir::{Function, GlobalId, LocId, Module};
pub use mark_phases::Phases;
use passes::{OptLevel, PassOptions};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// 0 to 3.
    pub opt_level: u8,
    /// Fuse `mul` and `add` without rounding modifiers.
    pub fmad: bool,
    /// Registers a thread may use, where the program does not say less.
    pub max_registers: Option<u32>,
    /// What phases are made of.
    pub phases: Phases,
}

impl Default for Options {
    fn default() -> Self {
        Options { opt_level: 3, fmad: true, max_registers: None, phases: Phases::Textures }
    }
}

/// Why a module cannot be compiled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompileError {
    pub message: String,
    /// The function, or the variable where no function is at fault.
    pub function: String,
    /// Line of the PTX text, 0 where none is known.
    pub line: u32,
}

impl CompileError {
    pub(crate) fn at(m: &Module, f: &Function, loc: LocId, message: String) -> Self {
        CompileError { message, function: f.name.clone(), line: m.location(loc).line }
    }

    pub(crate) fn of_global(m: &Module, g: GlobalId, message: &str) -> Self {
        let global = m.global(g);
        CompileError {
            message: message.into(),
            function: global.name.clone(),
            line: m.location(global.loc).line,
        }
    }
}

impl std::fmt::Display for CompileError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}: {}", self.function, self.message)?;
        if self.line > 0 { write!(f, " (line {})", self.line) } else { Ok(()) }
    }
}

impl std::error::Error for CompileError {}

/// Something the compiler did to a line of the PTX text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    pub function: String,
    pub line: u32,
    /// The pass, in words.
    pub pass: String,
    pub message: String,
}

/// Compiles a module: passes, then code.
pub fn compile(module: Module, options: &Options) -> Result<isa::Image, CompileError> {
    compile_with(module, options, None)
}

/// The same, and what was done to which line.
pub fn compile_explained(module: Module, options: &Options) -> Result<(isa::Image, Vec<Note>), CompileError> {
    let locations = module.locations.clone();
    let mut remarks = Vec::new();
    let image = compile_with(module, options, Some(&mut remarks))?;
    let note = |r: passes::Remark| Note {
        line: locations.get(r.loc.index()).map_or(0, |l| l.line),
        function: r.function,
        pass: passes::explain::title(r.pass),
        message: r.message,
    };
    Ok((image, remarks.into_iter().map(note).collect()))
}

fn compile_with(
    mut module: Module,
    options: &Options,
    mut remarks: Option<&mut Vec<passes::Remark>>,
) -> Result<isa::Image, CompileError> {
    ir::validate(&module).map_err(|e| CompileError { message: e.message, function: e.function, line: 0 })?;
    let opt_level = match options.opt_level {
        0 => OptLevel::O0,
        1 => OptLevel::O1,
        2 => OptLevel::O2,
        _ => OptLevel::O3,
    };
    let pass_options = PassOptions { opt_level, fmad: options.fmad };
    match &mut remarks {
        Some(remarks) => remarks.extend(passes::run_explained(&mut module, &pass_options)),
        None => passes::run(&mut module, &pass_options),
    }
    image::build(module, options, remarks)
}
