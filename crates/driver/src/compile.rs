//! From a program's bytes, PTX text or an image, to an image.

use crate::files;
use crate::nvrtc;
use crate::problem::{Problem, Problems, Severity, Source};
pub use compiler::{Note, Phases};
use isa::Image;
use std::path::Path;

/// What the compiler may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompileOptions {
    /// 0 to 3.
    pub opt_level: u8,
    /// Fuse multiplications and additions as NVIDIA's assembler does.
    pub fmad: bool,
    /// The most registers a thread gets; the program's own limits hold too.
    pub max_registers: Option<u32>,
    /// What the phases are made of that schedulers with grants go by.
    pub phases: Phases,
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions { opt_level: 3, fmad: true, max_registers: None, phases: Phases::Textures }
    }
}

/// Reads a program's file; CUDA C++ becomes PTX.
pub fn read_program(path: &Path) -> Result<Source, Problems> {
    let bytes = files::read(path, files::MAX_PROGRAM)?;
    let name = path.display().to_string();
    if nvrtc::is_source(path) {
        return Ok(Source::new(format!("PTX of {name}"), nvrtc::compile(path, &bytes)?));
    }
    Ok(Source::new(name, bytes))
}

/// Lowers PTX text to `ir`.
pub fn lower(source: &Source) -> Result<ir::Module, Problems> {
    let mut module = ptx::to_ir(&source.name, &source.bytes).map_err(|list| diagnostics(source, list))?;
    if module.name.is_empty() {
        module.name = source.name.clone();
    }
    Ok(module)
}

/// The image of a program: compiled, or read where the bytes are an image already.
pub fn compile(source: &Source, options: &CompileOptions) -> Result<Image, Problems> {
    if Image::is_image(&source.bytes) {
        return Image::from_bytes(&source.bytes).map_err(|e| {
            Problem::new(format!("{}: {e}", source.name)).help("compile the program again").into()
        });
    }
    compiler::compile(lower(source)?, &compiler_options(options)).map_err(|e| refused(source, &e))
}

/// Functions of CUDA's device library that are machine code there: grids that wait for all of their CTAs.
const DEVICE_LIBRARY: &[u8] = include_bytes!("device_library.ptx");
/// What it defines.
const LIBRARY_FUNCTIONS: [&str; 2] = ["cudaCGGetIntrinsicHandle", "cudaCGSynchronize"];

/// The image of several programs whose names refer to each other; an image that was compiled before stands alone.
pub fn link(sources: &[Source], options: &CompileOptions) -> Result<Image, Problems> {
    if let [one] = sources
        && Image::is_image(&one.bytes)
    {
        return compile(one, options);
    }
    if let Some(image) = sources.iter().find(|s| Image::is_image(&s.bytes)) {
        let message = format!("{} is compiled already and cannot be linked with others", image.name);
        return Err(Problem::new(message).help("link the PTX that it was made from").into());
    }
    let mut modules = Vec::new();
    for source in sources {
        modules.push(lower(source)?);
    }
    let is_open = |f: &ir::Function| f.is_declaration && LIBRARY_FUNCTIONS.contains(&f.name.as_str());
    if modules.iter().any(|m| m.functions.iter().any(is_open)) {
        modules.push(lower(&Source::new("device library", DEVICE_LIBRARY))?);
    }
    let whole = match modules.len() {
        1 => modules.remove(0),
        _ => ir::link(modules).map_err(|e| Problem::new(e.to_string()))?,
    };
    let first = sources.first().cloned().unwrap_or_else(|| Source::new("nothing", []));
    compiler::compile(whole, &compiler_options(options)).map_err(|e| refused(&first, &e))
}

/// The image of PTX text, and what the compiler did to which line.
pub fn compile_explained(source: &Source, options: &CompileOptions) -> Result<(Image, Vec<Note>), Problems> {
    if Image::is_image(&source.bytes) {
        return Err(Problem::new(format!("{} is an image: it was compiled before", source.name))
            .help("only PTX text can be explained")
            .into());
    }
    compiler::compile_explained(lower(source)?, &compiler_options(options)).map_err(|e| refused(source, &e))
}

fn compiler_options(options: &CompileOptions) -> compiler::Options {
    compiler::Options {
        opt_level: options.opt_level,
        fmad: options.fmad,
        max_registers: options.max_registers,
        phases: options.phases,
    }
}

fn refused(source: &Source, e: &compiler::CompileError) -> Problems {
    let problem = Problem::new(format!("{}: {}", e.function, e.message));
    match source.line_span(e.line as usize) {
        Some(span) => problem.at(source, span).into(),
        None => Problem::new(format!("{}: {}: {}", source.name, e.function, e.message)).into(),
    }
}

/// What the front end found, as problems of a text.
pub fn diagnostics(source: &Source, list: Vec<ptx::Diagnostic>) -> Problems {
    let range = |span: ptx::Span| span.start as usize..span.end as usize;
    let problems = list.into_iter().map(|d| Problem {
        severity: match d.severity {
            ptx::Severity::Error => Severity::Error,
            ptx::Severity::Warning => Severity::Warning,
        },
        message: d.message,
        place: Some((source.clone(), range(d.span))),
        notes: d.notes.into_iter().map(|(span, note)| (range(span), note)).collect(),
        help: d.help,
    });
    Problems(problems.collect())
}
