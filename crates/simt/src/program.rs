//! A program in memory: an image whose variables are placed and whose addresses are filled in.

use crate::decode;
use crate::launch::Shape;
use crate::level::Isa;
use crate::memory::{Bounds, Memory, MemoryError};
use crate::near::Near;
use crate::ops::modify::Modified;
use crate::uop::Uop;
use crate::watched::Watched;
use isa::abi::{self, BANK_CONST, BANK_LAUNCH, BANK_LOADER, launch};
use isa::image::{Function, Image, Relocation, Space, Symbol};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Why an image cannot be loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoadError {
    Image(String),
    Memory(MemoryError),
    /// A variable of another module that nobody has.
    Unresolved(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            LoadError::Image(why) => write!(f, "{why}"),
            LoadError::Memory(e) => write!(f, "{e}"),
            LoadError::Unresolved(name) => write!(f, "`{name}` is declared extern and defined nowhere"),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<MemoryError> for LoadError {
    fn from(e: MemoryError) -> Self {
        LoadError::Memory(e)
    }
}

/// An image with its variables in memory; copies of it are the same program.
#[derive(Clone)]
pub struct Program(Arc<Loaded>);

impl std::ops::Deref for Program {
    type Target = Loaded;

    fn deref(&self) -> &Loaded {
        &self.0
    }
}

/// What there is once of a program.
pub struct Loaded {
    image: Arc<Image>,
    /// Address of each variable.
    addresses: Vec<u64>,
    loader_bank: Vec<u8>,
    /// Where the constant bank lies.
    const_base: u64,
    kernels: Mutex<HashMap<(u32, Isa), Arc<Kernel>>>,
}

/// An entry function, decoded for one level.
pub struct Kernel {
    pub(crate) level: Isa,
    /// Instructions of the image.
    pub(crate) own: u32,
    /// The image's code, and one more that catches whoever runs past its end; then what was made while the launch runs.
    pub(crate) uops: Vec<Uop>,
    /// What warps have room for, and bytes of each constant bank that exist for certain.
    pub(crate) room: decode::Room,
    pub(crate) bank_bytes: [u32; 8],
    /// What instructions do that somebody watches, in the order of their places.
    pub(crate) watched: Vec<(u32, Watched)>,
    /// Barriers behind which warps are sent to other code, in the order of their places, and the numbers of what is behind them.
    pub(crate) openings: Vec<(u32, u32)>,
    pub(crate) modified: Vec<Modified>,
    pub(crate) function: Function,
    /// Rows of a warp's file, in bytes from its start.
    pub(crate) layout: decode::Layout,
    /// Rows that must be zeros when a warp starts: what may be read before it is written.
    pub(crate) cleared: Vec<u32>,
    /// What the rows of constants hold.
    pub(crate) pool: Vec<decode::Pooled>,
    /// Rows that the instructions from each place on use.
    pub(crate) near: Near,
    /// The words that loads of constants take.
    pub(crate) loads: Vec<decode::Pooled>,
    /// Memory instructions.
    pub(crate) hints: u32,
    /// Allocates from the heap, so that the order of CTAs shows.
    pub(crate) uses_heap: bool,
    pub(crate) uses_printf: bool,
    /// Starts child tasks, or fills queues.
    pub(crate) launches: bool,
    pub(crate) pushes: bool,
}

impl Kernel {
    /// Instructions of the image.
    pub fn len(&self) -> u32 {
        self.own
    }

    /// Places that a register may name for a jump: of the image. Functions return to code that was put behind it too, where it
    /// calls them.
    pub(crate) fn places(&self, op: isa::Op) -> u32 {
        if op == isa::Op::Ret { self.end() - 1 } else { self.len() }
    }

    /// Where code that is put behind it begins.
    pub fn end(&self) -> u32 {
        self.uops.len() as u32
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Whether code that the entry reaches allocates from the device's heap.
    pub fn uses_heap(&self) -> bool {
        self.uses_heap
    }

    /// Whether it prints.
    pub fn uses_printf(&self) -> bool {
        self.uses_printf
    }

    /// Whether it starts child tasks, or fills queues.
    pub fn launches(&self) -> bool {
        self.launches
    }

    /// Whether it appends to queues.
    pub fn pushes(&self) -> bool {
        self.pushes
    }
}

impl Program {
    /// Places the image's variables and fills in addresses. `resolve` knows the variables of other modules.
    pub fn load(
        image: Arc<Image>,
        memory: &Memory,
        resolve: &dyn Fn(&str) -> Option<u64>,
    ) -> Result<Program, LoadError> {
        image.validate().map_err(|e| LoadError::Image(e.0))?;
        let const_base = if image.const_bytes > 0 { memory.alloc(image.const_bytes.into())? } else { 0 };
        let mut addresses = Vec::with_capacity(image.variables.len());
        for v in &image.variables {
            addresses.push(match v.space {
                _ if v.is_extern => resolve(&v.name).ok_or_else(|| LoadError::Unresolved(v.name.clone()))?,
                Space::Const => const_base + u64::from(v.offset),
                Space::Global => {
                    let start = memory.alloc(v.size.saturating_add(u64::from(v.align.max(1)) - 1))?;
                    start.next_multiple_of(u64::from(v.align.max(1)))
                }
            });
        }
        let mut program = Loaded {
            image: image.clone(),
            addresses,
            loader_bank: image.loader_bank.clone(),
            const_base,
            kernels: Mutex::new(HashMap::new()),
        };
        for (v, &address) in image.variables.iter().zip(&program.addresses) {
            if v.is_extern {
                continue;
            }
            let mut bytes = v.init.clone();
            let end = v.relocations.iter().map(|r| r.offset as usize + r.size as usize).max().unwrap_or(0);
            bytes.resize(bytes.len().max(end), 0);
            program.relocate(&mut bytes, &v.relocations, resolve)?;
            memory.write(address, &bytes)?;
        }
        let mut bank = std::mem::take(&mut program.loader_bank);
        program.relocate(&mut bank, &image.loader_relocations, resolve)?;
        program.loader_bank = bank;
        Ok(Program(Arc::new(program)))
    }
}

impl Loaded {
    fn relocate(
        &self,
        bytes: &mut [u8],
        relocations: &[Relocation],
        resolve: &dyn Fn(&str) -> Option<u64>,
    ) -> Result<(), LoadError> {
        for r in relocations {
            let address = match &r.symbol {
                Symbol::Variable(n) => {
                    let v = &self.image.variables[*n as usize];
                    // The address in its own space of a constant is its offset in the bank.
                    if v.space == Space::Const && !r.generic && !v.is_extern {
                        u64::from(v.offset)
                    } else {
                        self.addresses[*n as usize]
                    }
                }
                Symbol::Function(n) => {
                    u64::from(abi::CODE_HIGH) << 32 | u64::from(self.image.functions[*n as usize].start)
                }
                Symbol::Code(pc) => u64::from(*pc),
                Symbol::Shared(offset) if r.generic => u64::from(abi::SHARED_HIGH) << 32 | u64::from(*offset),
                Symbol::Shared(offset) => u64::from(*offset),
                Symbol::Extern(name) => resolve(name).ok_or_else(|| LoadError::Unresolved(name.clone()))?,
            };
            let value = address.wrapping_add(r.addend as u64) >> r.shift;
            let at = r.offset as usize;
            bytes[at..at + r.size as usize].copy_from_slice(&value.to_le_bytes()[..r.size as usize]);
        }
        Ok(())
    }

    /// Frees what loading allocated.
    pub fn unload(&self, memory: &Memory) -> Result<(), MemoryError> {
        for (v, &address) in self.image.variables.iter().zip(&self.addresses) {
            if !v.is_extern && v.space == Space::Global {
                let start = memory.find(address).map_or(address, |b| b.start);
                memory.free(start)?;
            }
        }
        if self.const_base != 0 {
            memory.free(self.const_base)?;
        }
        Ok(())
    }

    pub fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// Address and size of a variable.
    pub fn variable(&self, name: &str) -> Option<(u64, u64)> {
        let n = self.image.variables.iter().position(|v| v.name == name)?;
        Some((self.addresses[n], self.image.variables[n].size))
    }

    /// The entry function of this name, decoded; done once.
    pub fn kernel(&self, name: &str, level: Isa) -> Option<Arc<Kernel>> {
        self.decoded(self.image.functions.iter().position(|f| f.is_entry && f.name == name)?, level)
    }

    /// The number of the entry function that a program's own function address names.
    pub(crate) fn entry_at(&self, address: u64) -> Option<usize> {
        let is_code = (address >> 32) as u32 == abi::CODE_HIGH;
        self.image.functions.iter().position(|f| is_code && f.is_entry && f.start == address as u32)
    }

    pub(crate) fn decoded(&self, n: usize, level: Isa) -> Option<Arc<Kernel>> {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let level = if level.is_available() { level } else { Isa::Baseline };
        let kernel = kernels
            .entry((n as u32, level))
            .or_insert_with(|| Arc::new(decode::kernel(&self.image, n, level, decode::Room::default())));
        Some(kernel.clone())
    }

    /// The constant banks of a launch.
    pub(crate) fn banks(&self, memory: &Memory, launch_bank: Vec<u8>) -> Result<Banks, MemoryError> {
        let mut constant = vec![0; self.image.const_bytes as usize];
        memory.read(self.const_base, &mut constant)?;
        Ok(Banks {
            launch: launch_bank,
            constant,
            loader: self.loader_bank.clone(),
            const_base: self.const_base,
        })
    }

    pub(crate) fn const_base(&self) -> u64 {
        self.const_base
    }
}

/// Constant banks as a launch sees them.
#[derive(Clone)]
pub struct Banks {
    launch: Vec<u8>,
    constant: Vec<u8>,
    loader: Vec<u8>,
    const_base: u64,
}

impl Banks {
    fn bank(&self, bank: u8) -> &[u8] {
        match bank {
            BANK_LAUNCH => &self.launch,
            BANK_CONST => &self.constant,
            BANK_LOADER => &self.loader,
            _ => &[],
        }
    }

    /// The launch's own.
    pub(crate) fn launch(&self) -> &[u8] {
        &self.launch
    }

    /// The program's constants.
    pub(crate) fn constants(&self) -> &[u8] {
        &self.constant
    }

    /// Gives it others; false where it cannot have so many.
    pub(crate) fn set_constants(&mut self, constants: Vec<u8>) -> bool {
        let fits = constants.len() == self.constant.len();
        self.constant = constants;
        fits
    }

    /// An aligned datum of at most 16 bytes.
    pub fn read(&self, bank: u8, offset: u32, size: u32) -> Option<u128> {
        let at = offset as usize;
        if !offset.is_multiple_of(size) {
            return None;
        }
        let bytes = self.bank(bank).get(at..at + size as usize)?;
        Some(bytes.iter().rev().fold(0, |v, &b| v << 8 | u128::from(b)))
    }

    /// A word; zero past the end, where the program has nothing.
    pub fn word(&self, bank: u8, offset: u32) -> u32 {
        self.read(bank, offset, 4).unwrap_or(0) as u32
    }

    /// Where generic addresses find the constant bank.
    pub fn const_bounds(&self) -> Bounds {
        Bounds { start: self.const_base, end: self.const_base + self.constant.len() as u64 }
    }
}

/// The launch's own bank.
pub(crate) fn launch_bank(shape: &Shape, const_base: u64, params: &[u8]) -> Vec<u8> {
    let mut bank = vec![0; (launch::PARAMS as usize + params.len()).next_multiple_of(16)];
    let mut put = |at: u16, bytes: &[u8]| bank[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
    for k in 0..3 {
        put(launch::NTID + 4 * k as u16, &shape.block[k].to_le_bytes());
        put(launch::NCTAID + 4 * k as u16, &shape.grid[k].to_le_bytes());
    }
    put(launch::STACK, &0u32.to_le_bytes());
    put(launch::CONST_BASE, &const_base.to_le_bytes());
    // Registers 1 and 2: the high half, then the low one, as code from cooperative groups' headers reads them.
    put(launch::ENVREG + 4, &shape.workspace.rotate_left(32).to_le_bytes());
    put(launch::PARAMS, params);
    bank
}
