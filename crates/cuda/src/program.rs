//! Loaded programs: modules, libraries, what a linker gathers, and the kernels in them.

use crate::context::Context;
use crate::error::{Answer, Code};
use crate::handle::{self, Handle};
use crate::log::{self, Level};
use crate::state::Driver;
use driver::{CompileOptions, Image, Module, Problems, Source};
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A compiled program, and its PTX where profiles are wanted and it was one text.
#[derive(Clone)]
pub struct Built {
    pub image: Arc<Image>,
    pub text: Option<Arc<str>>,
}

/// A program in a context.
pub struct Program {
    pub id: u64,
    pub context: Arc<Context>,
    pub text: Option<Arc<str>>,
    module: Option<Module>,
    /// Numbers of the kernels that were asked for: these hold the program, so it must not hold them.
    functions: Mutex<HashMap<String, u64>>,
}

impl Program {
    pub fn load(context: &Arc<Context>, built: Built) -> Answer<Arc<Program>> {
        let module = Module::load(&context.gpu.device, built.image).map_err(|problems| {
            log::write(Level::Error, &|| problems.to_string());
            if problems.to_string().contains("memory") { Code::OUT_OF_MEMORY } else { Code::INVALID_IMAGE }
        })?;
        Ok(Arc::new(Program {
            id: handle::fresh(),
            context: context.clone(),
            text: built.text,
            module: Some(module),
            functions: Mutex::default(),
        }))
    }

    pub fn module(&self) -> Answer<&Module> {
        self.module.as_ref().ok_or(Code::INVALID_HANDLE)
    }

    /// The kernel of this name; the same one every time.
    pub fn function(self: &Arc<Program>, driver: &Driver, name: &str) -> Answer<Arc<Function>> {
        let module = self.module()?;
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        let known = functions.get(name).map(|&id| handle::handle(id));
        if let Some(function) = known.and_then(|h| driver.functions.find(h)) {
            return Ok(function);
        }
        module.entry(name).ok_or(Code::NOT_FOUND)?;
        let function = Arc::new(Function {
            id: handle::fresh(),
            program: self.clone(),
            name: name.to_owned(),
            c_name: CString::new(name).map_err(|_| Code::NOT_FOUND)?,
            dynamic_shared: AtomicI32::new(-1),
            carveout: AtomicI32::new(-1),
            cluster: [const { AtomicI32::new(0) }; 6],
            legacy: Mutex::default(),
        });
        driver.functions.insert(function.id, function.clone());
        functions.insert(name.to_owned(), function.id);
        Ok(function)
    }

    /// Forgets its kernels, whose handles are invalid from now on.
    pub fn close(&self, driver: &Driver) {
        let functions = std::mem::take(&mut *self.functions.lock().unwrap_or_else(PoisonError::into_inner));
        for id in functions.into_values() {
            // Gone already where the context was destroyed.
            let _ = driver.functions.remove(handle::handle(id));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // Variables that cannot be freed were not there.
            let _ = module.unload(&self.context.gpu.device);
        }
    }
}

/// A kernel of a program.
pub struct Function {
    pub id: u64,
    pub program: Arc<Program>,
    pub name: String,
    pub c_name: CString,
    /// Dynamic shared memory that it may have; negative: what any kernel may.
    pub dynamic_shared: AtomicI32,
    pub carveout: AtomicI32,
    /// Attributes 10 to 15, about clusters.
    pub cluster: [AtomicI32; 6],
    pub legacy: Mutex<Legacy>,
}

/// What old clients set on a kernel before they launch it.
#[derive(Clone, Default)]
pub struct Legacy {
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub params: Vec<u8>,
}

/// Shared memory of a CTA unless a kernel asks for more.
pub const SHARED_DEFAULT: i32 = 48 << 10;

impl Function {
    pub fn code(&self) -> Answer<&driver::image::Function> {
        self.program.module()?.entry(&self.name).ok_or(Code::INVALID_HANDLE)
    }

    /// Bytes of dynamic shared memory that a launch may ask for.
    pub fn most_dynamic_shared(&self) -> Answer<i32> {
        match self.dynamic_shared.load(Ordering::Relaxed) {
            -1 => Ok((SHARED_DEFAULT - self.code()?.shared_bytes as i32).max(0)),
            bytes => Ok(bytes),
        }
    }
}

/// A program that every context can use.
pub struct Library {
    pub id: u64,
    pub image: Arc<Image>,
    text: Option<Arc<str>>,
    programs: Mutex<HashMap<u64, Arc<Program>>>,
    kernels: Mutex<HashMap<String, Arc<Kernel>>>,
}

impl Library {
    pub fn new(built: Built) -> Arc<Library> {
        Arc::new(Library {
            id: handle::fresh(),
            image: built.image,
            text: built.text,
            programs: Mutex::default(),
            kernels: Mutex::default(),
        })
    }

    fn programs(&self) -> MutexGuard<'_, HashMap<u64, Arc<Program>>> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program in a context, loaded when it is asked for first.
    pub fn program(&self, driver: &Driver, context: &Arc<Context>) -> Answer<Arc<Program>> {
        if let Some(program) = self.programs().get(&context.id) {
            return Ok(program.clone());
        }
        let program = Program::load(context, Built { image: self.image.clone(), text: self.text.clone() })?;
        driver.modules.insert(program.id, program.clone());
        self.programs().insert(context.id, program.clone());
        Ok(program)
    }

    pub fn kernel(self: &Arc<Library>, driver: &Driver, name: &str) -> Answer<Arc<Kernel>> {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = kernels.get(name) {
            return Ok(kernel.clone());
        }
        self.image.find(name).filter(|f| f.is_entry).ok_or(Code::NOT_FOUND)?;
        let kernel = Arc::new(Kernel {
            id: handle::fresh(),
            library: self.id,
            name: name.to_owned(),
            c_name: CString::new(name).map_err(|_| Code::NOT_FOUND)?,
        });
        driver.kernels.insert(kernel.id, kernel.clone());
        kernels.insert(name.to_owned(), kernel.clone());
        Ok(kernel)
    }

    /// A context ends.
    pub fn leave(&self, context: &Context) {
        self.programs().remove(&context.id);
    }

    /// The library goes: its kernels and programs are invalid from now on.
    pub fn close(&self, driver: &Driver) {
        let kernels = std::mem::take(&mut *self.kernels.lock().unwrap_or_else(PoisonError::into_inner));
        for kernel in kernels.into_values() {
            let _ = driver.kernels.remove(handle::handle(kernel.id));
        }
        for program in std::mem::take(&mut *self.programs()).into_values() {
            let _ = driver.modules.remove(handle::handle(program.id));
            program.close(driver);
        }
    }
}

/// A kernel of a library, in whichever context.
pub struct Kernel {
    pub id: u64,
    pub library: u64,
    pub name: String,
    pub c_name: CString,
}

impl Kernel {
    /// The kernel in a context.
    pub fn function(&self, driver: &Driver, context: &Arc<Context>) -> Answer<Arc<Function>> {
        let library = driver.libraries.get(handle::handle(self.library))?;
        library.program(driver, context)?.function(driver, &self.name)
    }
}

/// The function that a handle means: of a module, or the kernel of a library in the current context.
pub fn function(driver: &Driver, handle: Handle) -> Answer<Arc<Function>> {
    if let Some(function) = driver.functions.find(handle) {
        return Ok(function);
    }
    let kernel = driver.kernels.get(handle)?;
    kernel.function(driver, &crate::context::current()?)
}

/// What a linker gathers.
#[derive(Default)]
pub struct Linker {
    pub state: Mutex<LinkerState>,
}

#[derive(Default)]
pub struct LinkerState {
    pub sources: Vec<Source>,
    pub options: Jit,
    /// Options that the client gave, and their places in its list of values.
    pub answers: Vec<(u32, usize)>,
    /// That list.
    pub values: usize,
    /// The finished image; clients hold its address until the linker is destroyed.
    pub image: Option<Box<[u8]>>,
}

/// What a client asks of compiling, and where it wants to read how it went.
#[derive(Clone, Copy, Default)]
pub struct Jit {
    pub max_registers: Option<u32>,
    pub opt_level: Option<u32>,
    pub info: Buffer,
    pub error: Buffer,
}

/// A text buffer of the client.
#[derive(Clone, Copy, Default)]
pub struct Buffer {
    pub address: usize,
    pub bytes: usize,
}

impl Jit {
    fn options(&self) -> CompileOptions {
        CompileOptions {
            opt_level: self.opt_level.map_or(3, |n| n.min(3) as u8),
            max_registers: self.max_registers.filter(|&n| n > 0),
            ..CompileOptions::default()
        }
    }
}

/// PTX text of this version and before is understood.
const PTX_VERSION: (u32, u32) = (9, 9);

/// The version that PTX text says it has.
fn ptx_version(text: &[u8]) -> Option<(u32, u32)> {
    let text = String::from_utf8_lossy(&text[..text.len().min(1 << 16)]).into_owned();
    let line = text.lines().find_map(|l| l.trim().strip_prefix(".version").map(str::to_owned))?;
    let (major, minor) = line.trim().split_once('.')?;
    let digits = |s: &str| s.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
    Some((digits(major)?, digits(minor)?))
}

/// Whether a program is of a kind that is understood.
fn check_kind(source: &Source) -> Result<(), (Code, String)> {
    if Image::is_image(&source.bytes) {
        return Ok(());
    }
    match ptx_version(&source.bytes) {
        None => Err((Code::INVALID_IMAGE, format!("{} is no PTX", source.name))),
        Some(version) if version > PTX_VERSION => {
            let (major, minor) = version;
            let why = format!("{}: PTX version {major}.{minor} is not known", source.name);
            Err((Code::UNSUPPORTED_PTX_VERSION, why))
        }
        _ => Ok(()),
    }
}

/// Whether a program alone is right, whatever it needs of others.
pub fn check(source: &Source) -> Result<(), (Code, String)> {
    check_kind(source)?;
    driver::compile::lower(source).map_err(|problems| (Code::INVALID_PTX, problems.to_string()))?;
    Ok(())
}

/// Compiles and links programs to one image.
pub fn build(sources: &[Source], jit: &Jit) -> Result<Image, (Code, String)> {
    if sources.is_empty() {
        return Err((Code::NO_BINARY_FOR_GPU, "there is no program".to_owned()));
    }
    sources.iter().try_for_each(check_kind)?;
    let refused = |problems: Problems| (Code::INVALID_PTX, problems.to_string());
    driver::compile::link(sources, &jit.options()).map_err(refused)
}
