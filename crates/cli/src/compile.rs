//! `warploom compile`: PTX to an image, or to a stage of the way there.

use crate::explain::Explanation;
use crate::{End, disasm, show};
use driver::compile::{CompileOptions, compile_explained, diagnostics, lower, read_program};
use driver::{Image, Problem, Source, files};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What the compiler may do, for every command that compiles.
#[derive(clap::Args, Clone, Copy, Serialize, Deserialize)]
pub struct Options {
    /// How much to optimise: 3 all that is known, 1 all but unrolling, 0 nothing, with code in the order of the PTX text for
    /// debugging.
    #[arg(long, value_name = "0..3", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=3))]
    opt_level: u8,
    /// Fuse multiplications and additions as NVIDIA's assembler does.
    #[arg(long, value_name = "true|false", default_value_t = true, action = clap::ArgAction::Set)]
    fmad: bool,
    /// The most registers a thread may have.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(16..=255))]
    max_registers: Option<u32>,
    /// What phases are made of, which schedulers with grants go by: texture operations, or global loads too.
    #[arg(long, value_enum, default_value_t = Phases::Textures)]
    phases: Phases,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
enum Phases {
    Textures,
    Loads,
}

impl From<Options> for CompileOptions {
    fn from(o: Options) -> CompileOptions {
        CompileOptions {
            opt_level: o.opt_level,
            fmad: o.fmad,
            max_registers: o.max_registers,
            phases: match o.phases {
                Phases::Textures => driver::compile::Phases::Textures,
                Phases::Loads => driver::compile::Phases::Loads,
            },
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Emit {
    /// Machine code with source lines.
    Asm,
    /// The program before it is optimised.
    Ir,
    /// The syntax tree.
    PtxAst,
}

#[derive(clap::Args)]
pub struct Arguments {
    /// The PTX file.
    #[arg(value_name = "FILE.ptx")]
    file: PathBuf,
    /// Where to write; FILE.wli in the current folder, or standard output with --emit, where it is left out.
    #[arg(short, long, value_name = "IMAGE")]
    output: Option<PathBuf>,
    /// Write a stage as text instead of an image.
    #[arg(long, value_enum)]
    emit: Option<Emit>,
    /// With --emit asm: say what each pass did to which line.
    #[arg(long)]
    explain: bool,
    /// Print what the kernels need, or with --emit asm the code, as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    options: Options,
}

pub fn run(arguments: &Arguments) -> Result<(), End> {
    if arguments.explain && arguments.emit != Some(Emit::Asm) {
        return Err(Problem::new("--explain shows what became of the code, which is not asked for")
            .help("add --emit asm")
            .into());
    }
    if arguments.json && matches!(arguments.emit, Some(Emit::Ir | Emit::PtxAst)) {
        return Err(Problem::new("there is no JSON form of this stage")
            .help("leave out --json, or use --emit asm")
            .into());
    }
    let source = read_program(&arguments.file)?;
    if let Some(stage) = arguments.emit {
        let text = match stage {
            Emit::PtxAst => syntax_tree(&source)?,
            Emit::Ir => ir::print::module(&lower(&source)?),
            Emit::Asm => {
                let (image, explanation) = match arguments.explain {
                    true => {
                        let (image, notes) = compile_explained(&source, &arguments.options.into())?;
                        (image, Some(Explanation::new(notes)))
                    }
                    false => (driver::compile(&source, &arguments.options.into())?, None),
                };
                match arguments.json {
                    true => {
                        let mut rows = disasm::json(&image);
                        if let Some(explanation) = explanation {
                            explanation.add_to(&mut rows);
                        }
                        format!("{rows:#}\n")
                    }
                    false => disasm::listing(&image, explanation.unwrap_or_default()),
                }
            }
        };
        return write_text(arguments.output.as_deref(), &text);
    }
    let image = driver::compile(&source, &arguments.options.into())?;
    let bytes = image.to_bytes().map_err(|e| Problem::new(e.to_string()))?;
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None => PathBuf::from(arguments.file.file_stem().unwrap_or("program".as_ref())).with_extension("wli"),
    };
    files::write(&path, |to| to.write_all(&bytes))?;
    if arguments.json {
        let functions: Vec<_> = image.functions.iter().map(disasm::function_json).collect();
        println!(
            "{:#}",
            json!({ "image": path.display().to_string(), "bytes": bytes.len(), "functions": functions })
        );
        return Ok(());
    }
    for f in image.entries() {
        println!("{}", disasm::needs(f));
    }
    println!("written to {} ({} bytes)", path.display(), show::thousands(bytes.len() as u64));
    Ok(())
}

fn syntax_tree(source: &Source) -> Result<String, End> {
    if Image::is_image(&source.bytes) {
        return Err(Problem::new(format!("{} is an image, not PTX", source.name))
            .help("use `warploom disasm`")
            .into());
    }
    let parsed = ptx::check(&source.bytes);
    if parsed.has_errors() {
        return Err(diagnostics(source, parsed.diagnostics).into());
    }
    Ok(format!("{:#?}\n", parsed.module))
}

/// Writes to a file or to standard output.
pub fn write_text(path: Option<&Path>, text: &str) -> Result<(), End> {
    match path {
        Some(path) => Ok(files::write(path, |to| to.write_all(text.as_bytes()))?),
        None => {
            // A pipe that was closed early, as by `head`, is no error.
            let _ = std::io::stdout().write_all(text.as_bytes());
            Ok(())
        }
    }
}
