//! Stands in for NVIDIA's assembler, for compilers that call it: what they take for machine code is the PTX itself, or, where they ask
//! for more than the driver could know, a program image.

use driver::{CompileOptions, Problem, Problems, files};
use std::path::{Path, PathBuf};

/// What of NVIDIA's options is understood; the others change nothing here.
#[derive(Default)]
pub struct Options {
    pub input: Option<PathBuf>,
    pub output: Option<PathBuf>,
    pub compile: CompileOptions,
}

/// Whether the command was called by the assembler's name.
pub fn is_asked(name: Option<&str>) -> bool {
    name.and_then(|n| Path::new(n).file_name()).is_some_and(|n| n == "ptxas")
}

pub fn read(arguments: &[String]) -> Result<Options, Problems> {
    let mut options = Options::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let (name, attached) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with('-') => (name, Some(value.to_owned())),
            _ => (argument.as_str(), None),
        };
        let number = |text: &str| {
            text.parse::<u32>()
                .map_err(|_| Problems::from(Problem::new(format!("{argument}: {text} is no number"))))
        };
        match name {
            "-o" | "--output-file" | "--maxrregcount" | "-maxrregcount" | "--fmad" | "-fmad"
            | "--opt-level" | "-O" | "-arch" | "--gpu-name" => {
                let value = attached.or_else(|| rest.next().cloned()).unwrap_or_default();
                match name {
                    "-o" | "--output-file" => options.output = Some(value.into()),
                    "--maxrregcount" | "-maxrregcount" => {
                        options.compile.max_registers = Some(number(&value)?).filter(|&n| n > 0);
                    }
                    "--fmad" | "-fmad" => options.compile.fmad = value != "false",
                    "--opt-level" | "-O" => options.compile.opt_level = number(&value)?.min(3) as u8,
                    _ => {}
                }
            }
            "-O0" | "-O1" | "-O2" | "-O3" => options.compile.opt_level = name.as_bytes()[2] - b'0',
            _ if name.starts_with('-') => {}
            _ => options.input = Some(argument.into()),
        }
    }
    Ok(options)
}

pub fn run(arguments: &[String]) -> Result<(), Problems> {
    if arguments.iter().any(|a| a == "--version" || a == "-V") {
        // Compilers look for the release, and keep what they made by the whole text.
        println!("ptxas: PTX passed on by Warploom {}", env!("CARGO_PKG_VERSION"));
        println!("Cuda compilation tools, release 13.0, V13.0.88");
        return Ok(());
    }
    let options = read(arguments)?;
    let input = options.input.ok_or_else(|| Problem::new("ptxas: no input file"))?;
    let output = options.output.unwrap_or_else(|| PathBuf::from("elf.o"));
    let source = driver::compile::read_program(&input)?;
    let is_plain = options.compile == CompileOptions::default();
    let bytes = if is_plain {
        driver::compile::lower(&source)?;
        source.bytes.to_vec()
    } else {
        let image = driver::compile::link(&[source], &options.compile)?;
        image.to_bytes().map_err(|e| Problem::new(e.to_string()))?
    };
    files::write(&output, |to| to.write_all(&bytes))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Options {
        read(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).expect("options")
    }

    #[test]
    fn options_as_compilers_write_them_are_understood() {
        let o = options("-lineinfo -v --gpu-name=sm_80 a.ptx -o b.cubin --fmad=false");
        assert_eq!((o.input, o.output), (Some("a.ptx".into()), Some("b.cubin".into())));
        assert!(!o.compile.fmad);
        let o = options("--maxrregcount 64 -arch sm_90 -O1 c.ptx");
        assert_eq!((o.compile.max_registers, o.compile.opt_level), (Some(64), 1));
        assert_eq!(o.input, Some("c.ptx".into()));
        assert!(is_asked(Some("/a/ptxas")) && !is_asked(Some("warploom")));
    }
}
