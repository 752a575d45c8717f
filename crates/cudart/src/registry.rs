//! What programs register when they start: fat binaries, and the kernels and variables in them, by addresses of the host.
//!
//! Programs are loaded when the first of their kernels or variables is used.

use crate::driver::driver;
use crate::error::{Answer, Code};
use crate::types::{Handle, Out, Text};
use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

/// A fat binary.
struct Binary {
    /// Where the structure is that describes it.
    address: usize,
    /// The driver's library, once it is loaded; or why it cannot be.
    library: OnceLock<Answer<usize>>,
    managed: Mutex<Vec<(usize, &'static CStr)>>,
}

impl Binary {
    fn library(&self) -> Answer<Handle> {
        let loaded = self.library.get_or_init(|| {
            let mut library: Handle = std::ptr::null_mut();
            let none: Handle = std::ptr::null_mut();
            driver()?.cuLibraryLoadData(Out::to(&mut library), self.address, none, none, 0, none, none, 0)?;
            Ok(library as usize)
        });
        loaded.map(|library| library as Handle)
    }
}

/// A kernel or variable of a fat binary.
#[derive(Clone)]
struct Symbol {
    binary: Arc<Binary>,
    name: &'static CStr,
    /// The driver's kernel, once it was looked up.
    kernel: Arc<OnceLock<Answer<usize>>>,
    size: usize,
}

#[derive(Default)]
struct Registry {
    /// By number; handles that programs get are these numbers, from 1.
    binaries: Vec<Option<Arc<Binary>>>,
    functions: HashMap<usize, Symbol>,
    variables: HashMap<usize, Symbol>,
}

static REGISTRY: RwLock<Option<Registry>> = RwLock::new(None);

fn change<T>(body: impl FnOnce(&mut Registry) -> T) -> T {
    let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    body(registry.get_or_insert_default())
}

fn look<T>(body: impl FnOnce(&Registry) -> Option<T>) -> Option<T> {
    let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
    registry.as_ref().and_then(body)
}

fn managed(binary: &Binary) -> MutexGuard<'_, Vec<(usize, &'static CStr)>> {
    binary.managed.lock().unwrap_or_else(PoisonError::into_inner)
}

fn binary(handle: Handle) -> Option<Arc<Binary>> {
    look(|r| r.binaries.get((handle as usize).checked_sub(1)?)?.clone())
}

/// Takes a fat binary; what it is known by from now on.
pub fn add_binary(address: usize) -> Handle {
    let binary = Binary { address, library: OnceLock::new(), managed: Mutex::default() };
    change(|r| {
        r.binaries.push(Some(Arc::new(binary)));
        r.binaries.len() as Handle
    })
}

/// Forgets a fat binary. The driver keeps what it loaded of it: this comes when the process ends, with work still running.
pub fn remove_binary(handle: Handle) {
    let Some(gone) = binary(handle) else { return };
    change(|r| {
        r.binaries[handle as usize - 1] = None;
        r.functions.retain(|_, s| !Arc::ptr_eq(&s.binary, &gone));
        r.variables.retain(|_, s| !Arc::ptr_eq(&s.binary, &gone));
    });
}

fn symbol(handle: Handle, name: Text, size: usize) -> Option<Symbol> {
    Some(Symbol { binary: binary(handle)?, name: name.registered()?, kernel: Arc::default(), size })
}

pub fn add_function(handle: Handle, host: usize, name: Text) {
    if let Some(symbol) = symbol(handle, name, 0) {
        change(|r| r.functions.insert(host, symbol));
    }
}

pub fn add_variable(handle: Handle, host: usize, name: Text, size: usize) {
    if let Some(symbol) = symbol(handle, name, size) {
        change(|r| r.variables.insert(host, symbol));
    }
}

/// A variable that both sides use: the program reaches it through a pointer at `pointer`.
pub fn add_managed(handle: Handle, pointer: usize, host: usize, name: Text, size: usize) {
    add_variable(handle, pointer, name, size);
    add_variable(handle, host, name, size);
    if let (Some(binary), Some(name)) = (binary(handle), name.registered()) {
        managed(&binary).push((pointer, name));
    }
}

/// Gives the pointers to managed variables of a fat binary their values.
pub fn init_managed(handle: Handle) -> Answer {
    let binary = binary(handle).ok_or(Code::INVALID_VALUE)?;
    let all = std::mem::take(&mut *managed(&binary));
    if all.is_empty() {
        return Ok(());
    }
    let driver = crate::runtime::enter()?;
    for (pointer, name) in all {
        // SAFETY: the program registered where it keeps the variable's address.
        let to = unsafe { Out::<u64>::new(pointer as *mut u64) };
        driver.cuLibraryGetManaged(to, Out::null(), binary.library()?, Text::of(name))?;
        // SAFETY: as above.
        let address = unsafe { *(pointer as *const usize) };
        change(|r| r.variables.get(&pointer).cloned().map(|s| r.variables.insert(address, s)));
    }
    Ok(())
}

/// The driver's kernel behind a function of the host; kernels of the driver are taken as they are.
pub fn kernel(host: usize) -> Answer<Handle> {
    let Some(symbol) = look(|r| r.functions.get(&host).cloned()) else {
        // What is no function may be a kernel; the driver knows its own.
        return Ok(host as Handle);
    };
    let found = symbol.kernel.get_or_init(|| {
        let mut kernel: Handle = std::ptr::null_mut();
        let library = symbol.binary.library()?;
        let found = driver()?.cuLibraryGetKernel(Out::to(&mut kernel), library, Text::of(symbol.name));
        found.map_err(|code| if code == Code::NOT_FOUND { Code::INVALID_DEVICE_FUNCTION } else { code })?;
        Ok(kernel as usize)
    });
    found.map(|kernel| kernel as Handle)
}

/// Address and size of a variable on this thread's device.
pub fn variable(host: usize) -> Answer<(u64, usize)> {
    let symbol = look(|r| r.variables.get(&host).cloned()).ok_or(Code::INVALID_SYMBOL)?;
    let driver = crate::runtime::enter()?;
    let (mut address, mut size) = (0, 0);
    let library = symbol.binary.library()?;
    driver
        .cuLibraryGetGlobal(Out::to(&mut address), Out::to(&mut size), library, Text::of(symbol.name))
        .map_err(|code| if code == Code::NOT_FOUND { Code::INVALID_SYMBOL } else { code })?;
    Ok((address, if symbol.size > 0 { symbol.size } else { size }))
}
