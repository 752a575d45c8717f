//! A linker: programs are gathered, then compiled to one.

use driver::{CompileOptions, Source};

/// Result codes that linking can have.
mod code {
    pub const UNRECOGNIZED_OPTION: u32 = 1;
    pub const PTX_COMPILE: u32 = 4;
    pub const FINALIZE: u32 = 9;
    pub const INCORRECT_INPUT_TYPE: u32 = 12;
    pub const LTO_NOT_ENABLED: u32 = 18;
}

/// Kinds of input.
mod kind {
    pub const CUBIN: u32 = 1;
    pub const PTX: u32 = 2;
    pub const LTO: u32 = 3;
    pub const LIBRARY: u32 = 6;
    pub const ANY: u32 = 10;
}

/// Something that a linker has to tell.
pub type Outcome = Result<Vec<u8>, u32>;

pub struct Linker {
    sources: Vec<Source>,
    options: CompileOptions,
    image: Option<Vec<u8>>,
    errors: String,
}

/// Options that change nothing here; those that end with `=` have a value.
const KNOWN: [&str; 18] = [
    "-arch=",
    "-lineinfo",
    "-lto",
    "-ptx",
    "-g",
    "-ftz=",
    "-prec-div=",
    "-prec-sqrt=",
    "-kernels-used=",
    "-variables-used=",
    "-optimize-unused-variables",
    "-Xptxas=",
    "-Xptxas",
    "-split-compile=",
    "-no-cache",
    "-time",
    "-verbose",
    "-v",
];

impl Linker {
    pub fn new(options: &[String]) -> Result<Linker, u32> {
        let mut compile = CompileOptions::default();
        for option in options {
            let value = option.split_once('=').map(|(_, value)| value);
            match value {
                Some(value) if option.starts_with("-maxrregcount=") => {
                    let registers = value.parse().map_err(|_| code::UNRECOGNIZED_OPTION)?;
                    compile.max_registers = Some(registers).filter(|&n| n > 0);
                }
                Some(value) if option.starts_with("-fma=") => compile.fmad = value != "0" && value != "false",
                None if ["-O0", "-O1", "-O2", "-O3"].contains(&option.as_str()) => {
                    compile.opt_level = option.as_bytes()[2] - b'0';
                }
                _ if KNOWN.iter().any(|k| option == k || (k.ends_with('=') && option.starts_with(k))) => {}
                _ => return Err(code::UNRECOGNIZED_OPTION),
            }
        }
        Ok(Linker { sources: Vec::new(), options: compile, image: None, errors: String::new() })
    }

    pub fn add(&mut self, kind: u32, mut bytes: Vec<u8>, name: &str) -> Result<(), u32> {
        match kind {
            kind::PTX => bytes.truncate(bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len())),
            kind::CUBIN | kind::ANY => {}
            // Device libraries hold machine code; what they define is built in.
            kind::LIBRARY => return Ok(()),
            kind::LTO => {
                self.errors.push_str("intermediate code of NVIDIA's compiler is not understood: PTX is\n");
                return Err(code::LTO_NOT_ENABLED);
            }
            _ => return Err(code::INCORRECT_INPUT_TYPE),
        }
        let name = if name.is_empty() { format!("input {}", self.sources.len()) } else { name.to_owned() };
        self.sources.push(Source::new(name, bytes));
        Ok(())
    }

    pub fn complete(&mut self) -> Result<(), u32> {
        let image = driver::compile::link(&self.sources, &self.options).map_err(|problems| {
            self.errors.push_str(&format!("{problems}\n"));
            code::PTX_COMPILE
        })?;
        self.image = Some(image.to_bytes().map_err(|_| code::FINALIZE)?);
        Ok(())
    }

    pub fn image(&self) -> Outcome {
        self.image.clone().ok_or(code::FINALIZE)
    }

    /// Linked PTX is only there where all of it was one text.
    pub fn ptx(&self) -> Outcome {
        match self.sources.as_slice() {
            [one] if !driver::Image::is_image(&one.bytes) => {
                let mut text = one.bytes.to_vec();
                text.push(0);
                Ok(text)
            }
            _ => Err(code::FINALIZE),
        }
    }

    pub fn errors(&self) -> Outcome {
        let mut text = self.errors.clone().into_bytes();
        text.push(0);
        Ok(text)
    }

    pub fn info(&self) -> Outcome {
        Ok(vec![0])
    }
}
