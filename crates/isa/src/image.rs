//! A program image: what the compiler makes, the loader places and the machine runs, and its file form.
//!
//! The file: the magic `WLIM`, a version, the length and a checksum of the body, the body (serde, postcard). A reader never
//! trusts it: [`Image::from_bytes`] checks every word and index, so an image that loaded cannot crash an engine.

use crate::inst::{Inst, Operand};
use crate::reg::Pc;
use crate::{abi, table::Op};
use serde::{Deserialize, Serialize};

const MAGIC: &[u8; 4] = b"WLIM";
const VERSION: u32 = 1;

/// A kernel parameter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Param {
    pub name: String,
    /// Offset in the parameter block.
    pub offset: u32,
    pub size: u32,
    pub align: u32,
}

/// A function's code and what it needs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Function {
    pub name: String,
    /// Launched by the host.
    pub is_entry: bool,
    /// Visible to other modules and to the host.
    pub is_visible: bool,
    pub start: u32,
    pub end: u32,
    /// Registers a thread needs; for entries, callees included.
    pub registers: u32,
    /// Static shared bytes; for entries, callees included.
    pub shared_bytes: u32,
    /// Alignment of the dynamic shared memory that follows.
    pub shared_align: u32,
    /// Local bytes of the frame; for entries without recursion or indirect calls, callees included.
    pub local_bytes: u32,
    /// Calls that the frame size cannot account for: the stack may grow to the driver's limit.
    pub unbounded_stack: bool,
    /// CTA barriers used (0 to 16).
    pub barriers: u32,
    pub params: Vec<Param>,
    pub param_bytes: u32,
    /// Launch bounds, zero where not given.
    pub max_threads: [u32; 3],
    pub required_threads: [u32; 3],
    pub min_ctas: u32,
    pub max_registers: u32,
    /// The result depends on the order of CTAs: uses an atomic's result, reduces floats, or waits on memory.
    pub order_dependent: bool,
}

impl Function {
    /// An entry at these places of the code with so many registers, that takes nothing, has no memory of its own and no barriers.
    pub fn entry(name: impl Into<String>, code: std::ops::Range<u32>, registers: u32) -> Function {
        Function {
            name: name.into(),
            is_entry: true,
            is_visible: true,
            start: code.start,
            end: code.end,
            registers,
            shared_bytes: 0,
            shared_align: 1,
            local_bytes: 0,
            unbounded_stack: false,
            barriers: 0,
            params: Vec::new(),
            param_bytes: 0,
            max_threads: [0; 3],
            required_threads: [0; 3],
            min_ctas: 0,
            max_registers: 0,
            order_dependent: false,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Space {
    Global,
    /// In bank [`abi::BANK_CONST`], at `Variable::offset`.
    Const,
}

/// What a word of the image refers to, known at load time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Symbol {
    /// Index into [`Image::variables`].
    Variable(u32),
    /// Index into [`Image::functions`].
    Function(u32),
    /// A place in the code (jump tables).
    Code(u32),
    /// An address in shared memory.
    Shared(u32),
    /// A variable of another module.
    Extern(String),
}

/// Bytes that the loader fills in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Relocation {
    pub offset: u32,
    /// 1, 2, 4 or 8 bytes.
    pub size: u8,
    pub symbol: Symbol,
    pub addend: i64,
    /// As a generic address.
    pub generic: bool,
    /// Bits the address is shifted right by before it is cut to `size`.
    pub shift: u8,
}

/// A module-level variable.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Variable {
    pub name: String,
    pub space: Space,
    pub is_visible: bool,
    /// Defined in another module.
    pub is_extern: bool,
    pub size: u64,
    pub align: u32,
    /// Offset in the constant bank, for [`Space::Const`].
    pub offset: u32,
    /// Initial bytes; zeros follow.
    pub init: Vec<u8>,
    pub relocations: Vec<Relocation>,
}

/// From a place on, code comes from this line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LineRow {
    pub pc: u32,
    /// Line of the PTX text, 0 for none.
    pub ptx_line: u32,
    /// Index into [`Image::sources`] plus one, 0 for none.
    pub source: u32,
}

/// A source line, and where its function was inlined.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct SourceLine {
    /// Index into [`Image::files`].
    pub file: u32,
    pub line: u32,
    pub column: u32,
    /// Index into [`Image::sources`] plus one: the line that called, 0 for none.
    pub inlined_at: u32,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Image {
    /// Name of the text it was compiled from.
    pub name: String,
    pub code: Vec<Inst>,
    pub functions: Vec<Function>,
    pub variables: Vec<Variable>,
    /// Bytes of bank [`abi::BANK_LOADER`] before relocation.
    pub loader_bank: Vec<u8>,
    pub loader_relocations: Vec<Relocation>,
    /// Bytes of bank [`abi::BANK_CONST`] that variables take.
    pub const_bytes: u32,
    pub files: Vec<String>,
    pub sources: Vec<SourceLine>,
    /// Sorted by place.
    pub lines: Vec<LineRow>,
    /// `sm_NN` of the program.
    pub target: u32,
}

/// The serialised form: instructions as words.
#[derive(Serialize, Deserialize)]
struct Body {
    name: String,
    code: Vec<u128>,
    functions: Vec<Function>,
    variables: Vec<Variable>,
    loader_bank: Vec<u8>,
    loader_relocations: Vec<Relocation>,
    const_bytes: u32,
    files: Vec<String>,
    sources: Vec<SourceLine>,
    lines: Vec<LineRow>,
    target: u32,
}

/// Why bytes are no image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageError(pub String);

impl std::fmt::Display for ImageError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ImageError {}

/// A place in the source, for messages and profiles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place<'a> {
    pub function: &'a str,
    pub ptx_line: u32,
    /// Innermost first: file, line, column.
    pub frames: Vec<(&'a str, u32, u32)>,
}

impl Image {
    pub fn find(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|f| f.name == name)
    }

    pub fn entries(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(|f| f.is_entry)
    }

    pub fn function_at(&self, pc: Pc) -> Option<&Function> {
        self.functions.iter().find(|f| f.start <= pc.0 && pc.0 < f.end)
    }

    pub fn line_at(&self, pc: Pc) -> Option<LineRow> {
        let n = self.lines.partition_point(|r| r.pc <= pc.0);
        self.lines[..n].last().copied()
    }

    /// The innermost source line and those it was inlined into.
    pub fn place(&self, pc: Pc) -> Place<'_> {
        let row = self.line_at(pc);
        let mut frames = Vec::new();
        let mut next = row.map_or(0, |r| r.source);
        // A chain longer than the table would be a cycle; validation forbids it.
        while let Some(s) = (next as usize).checked_sub(1).and_then(|n| self.sources.get(n)) {
            frames.push((self.files.get(s.file as usize).map_or("?", String::as_str), s.line, s.column));
            next = s.inlined_at;
        }
        Place {
            function: self.function_at(pc).map_or("?", |f| &f.name),
            ptx_line: row.map_or(0, |r| r.ptx_line),
            frames,
        }
    }

    pub fn to_bytes(&self) -> Result<Vec<u8>, ImageError> {
        let code = self
            .code
            .iter()
            .enumerate()
            .map(|(pc, i)| i.encode().map_err(|e| ImageError(format!("instruction {pc:#x} `{i}`: {e}"))))
            .collect::<Result<Vec<_>, _>>()?;
        let body = Body {
            name: self.name.clone(),
            code,
            functions: self.functions.clone(),
            variables: self.variables.clone(),
            loader_bank: self.loader_bank.clone(),
            loader_relocations: self.loader_relocations.clone(),
            const_bytes: self.const_bytes,
            files: self.files.clone(),
            sources: self.sources.clone(),
            lines: self.lines.clone(),
            target: self.target,
        };
        let body =
            postcard::to_allocvec(&body).map_err(|e| ImageError(format!("cannot write the image: {e}")))?;
        let mut out = Vec::with_capacity(body.len() + Image::HEADER);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&(body.len() as u64).to_le_bytes());
        out.extend_from_slice(&checksum(&body).to_le_bytes());
        out.extend_from_slice(&body);
        Ok(out)
    }

    /// Whether bytes look like an image file.
    pub fn is_image(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    /// What an image file starts with.
    pub const MAGIC: &[u8; 4] = MAGIC;
    /// Bytes that come before the body of an image file.
    pub const HEADER: usize = 20;

    /// Bytes of the whole file whose header this is.
    pub fn length_of(header: &[u8; Image::HEADER]) -> Option<usize> {
        let body = u64::from_le_bytes(header[8..16].try_into().ok()?);
        let whole = usize::try_from(body).ok()?.checked_add(Image::HEADER);
        whole.filter(|_| Image::is_image(header))
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Image, ImageError> {
        let fail = |m: &str| Err(ImageError(m.to_string()));
        if !Image::is_image(bytes) {
            return fail("not a Warploom image: it does not start with WLIM");
        }
        if bytes.len() < Image::HEADER {
            return fail("the image is cut off in its header");
        }
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if word(4) != VERSION {
            return Err(ImageError(format!(
                "image version {} is not {VERSION}: compile the program again",
                word(4)
            )));
        }
        let body = &bytes[Image::HEADER..];
        if u64::from(word(8)) | u64::from(word(12)) << 32 != body.len() as u64 {
            return fail("the image is cut off or has bytes behind its end");
        }
        if checksum(body) != word(16) {
            return fail("the image is damaged: its checksum differs");
        }
        let body: Body =
            postcard::from_bytes(body).map_err(|e| ImageError(format!("the image is damaged: {e}")))?;
        let code = body
            .code
            .iter()
            .enumerate()
            .map(|(pc, &w)| Inst::decode(w).map_err(|e| ImageError(format!("instruction {pc:#x}: {e}"))))
            .collect::<Result<Vec<_>, _>>()?;
        let image = Image {
            name: body.name,
            code,
            functions: body.functions,
            variables: body.variables,
            loader_bank: body.loader_bank,
            loader_relocations: body.loader_relocations,
            const_bytes: body.const_bytes,
            files: body.files,
            sources: body.sources,
            lines: body.lines,
            target: body.target,
        };
        image.validate()?;
        Ok(image)
    }

    /// Checks everything an engine relies on: places, register counts, sizes, indices.
    pub fn validate(&self) -> Result<(), ImageError> {
        let fail = |m: String| Err(ImageError(m));
        let len = self.code.len() as u32;
        for (pc, inst) in self.code.iter().enumerate() {
            if let Err(e) = inst.check() {
                return fail(format!("instruction {pc:#x} `{inst}`: {e}"));
            }
            if inst.target().is_some_and(|t| t >= len) {
                return fail(format!("instruction {pc:#x} `{inst}` jumps past the end of the code"));
            }
            for src in inst.src {
                if let Operand::Const { bank, offset } = src.operand
                    && (offset % 4 != 0
                        || !matches!(bank, abi::BANK_LAUNCH | abi::BANK_CONST | abi::BANK_LOADER))
                {
                    return fail(format!(
                        "instruction {pc:#x} `{inst}` reads a constant that does not exist"
                    ));
                }
            }
        }
        for f in &self.functions {
            if f.start >= f.end || f.end > len {
                return fail(format!("function {} has no code", f.name));
            }
            let last = &self.code[f.end as usize - 1];
            if !matches!(last.op, Op::Exit | Op::Bra | Op::Ret | Op::Brx | Op::Bpt)
                || last.guard != crate::PredUse::TRUE
            {
                return fail(format!("function {} runs past its end", f.name));
            }
            let need = self.code[f.start as usize..f.end as usize]
                .iter()
                .flat_map(|i| i.reads().chain(i.writes()))
                .map(|(r, n)| u32::from(r.0) + n)
                .max()
                .unwrap_or(0);
            if f.registers < need || f.registers > 255 {
                return fail(format!(
                    "function {} uses {need} registers and declares {}",
                    f.name, f.registers
                ));
            }
            if f.param_bytes > abi::launch::PARAMS_MAX
                || f.params.iter().any(|p| u64::from(p.offset) + u64::from(p.size) > u64::from(f.param_bytes))
            {
                return fail(format!("function {} has parameters past its parameter block", f.name));
            }
            if f.shared_bytes > 1 << 24 || f.local_bytes > 1 << 24 || !f.shared_align.max(1).is_power_of_two()
            {
                return fail(format!("function {} needs more memory than a CTA can have", f.name));
            }
        }
        if self.const_bytes > 1 << 16 || self.loader_bank.len() > 1 << 16 {
            return fail("a constant bank is larger than 64 KiB".into());
        }
        for v in &self.variables {
            if v.init.len() as u64 > v.size || v.size > 1 << 40 || !v.align.max(1).is_power_of_two() {
                return fail(format!("variable {} has an impossible size", v.name));
            }
            if v.space == Space::Const
                && !v.is_extern
                && u64::from(v.offset) + v.size > u64::from(self.const_bytes)
            {
                return fail(format!("variable {} lies past the constant bank", v.name));
            }
            self.check_relocations(&v.relocations, v.size, &v.name)?;
        }
        self.check_relocations(&self.loader_relocations, self.loader_bank.len() as u64, "the loader's bank")?;
        if self.lines.windows(2).any(|w| w[0].pc > w[1].pc) {
            return fail("the line table is not sorted".into());
        }
        for (n, s) in self.sources.iter().enumerate() {
            // Callers come before what is inlined into them, so chains end.
            if s.file as usize >= self.files.len() || s.inlined_at as usize > n {
                return fail("the source table refers to what does not exist".into());
            }
        }
        if self.lines.iter().any(|r| r.source as usize > self.sources.len()) {
            return fail("the line table refers to what does not exist".into());
        }
        Ok(())
    }

    fn check_relocations(&self, list: &[Relocation], size: u64, what: &str) -> Result<(), ImageError> {
        for r in list {
            let exists = match &r.symbol {
                Symbol::Variable(n) => (*n as usize) < self.variables.len(),
                Symbol::Function(n) => (*n as usize) < self.functions.len(),
                Symbol::Code(pc) => (*pc as usize) < self.code.len(),
                Symbol::Shared(_) | Symbol::Extern(_) => true,
            };
            if !exists
                || !matches!(r.size, 1 | 2 | 4 | 8)
                || u64::from(r.offset) + u64::from(r.size) > size
                || r.shift > 63
            {
                return Err(ImageError(format!("{what} refers to what does not exist")));
            }
        }
        Ok(())
    }
}

/// FNV-1a: finds damage, is no defence.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |h, &b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193))
}
