//! Libraries: programs that are loaded once for all contexts, and their kernels.

use super::module::{answer_options, image_at, options, read_file};
use crate::context;
use crate::error::{Answer, Code};
use crate::handle::{Handle, handle};
use crate::program::Library;
use crate::state::driver;
use crate::types::{Address, In, Out, Text};
use std::ffi::c_char;

pub fn load_data(
    out: Out<Handle>,
    code: Address,
    names: In<u32>,
    values: Out<usize>,
    count: u32,
    _library_names: In<u32>,
    _library_values: In<usize>,
    _library_count: u32,
) -> Answer {
    let driver = driver()?;
    if out.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the list is read and written.
    let jit = options(count, names, unsafe { In::new(values.address() as *const usize) })?;
    let mut logs = [0; 2];
    let image = image_at(code, "library", &jit, &mut logs);
    answer_options(count, names, values, &jit, &logs);
    let library = Library::new(image?);
    out.put(driver.libraries.insert(library.id, library))
}

pub fn load_file(
    out: Out<Handle>,
    path: Text,
    names: In<u32>,
    values: Out<usize>,
    count: u32,
    library_names: In<u32>,
    library_values: In<usize>,
    library_count: u32,
) -> Answer {
    driver()?;
    let bytes = read_file(path)?;
    let code = bytes.as_ptr() as usize;
    load_data(out, code, names, values, count, library_names, library_values, library_count)
}

pub fn unload(library: Handle) -> Answer {
    let driver = driver()?;
    let library = driver.libraries.remove(library)?;
    for context in driver.contexts.all().iter().filter(|c| !c.is_dead()) {
        context.gpu.queue.wait(&context.ends());
    }
    library.close(driver);
    Ok(())
}

pub fn kernel(out: Out<Handle>, library: Handle, name: Text) -> Answer {
    let driver = driver()?;
    let library = driver.libraries.get(library)?;
    out.put(handle(library.kernel(driver, &name.get()?)?.id))
}

pub fn kernel_count(out: Out<u32>, library: Handle) -> Answer {
    out.put(driver()?.libraries.get(library)?.image.entries().count() as u32)
}

pub fn kernels(out: Out<Handle>, count: u32, library: Handle) -> Answer {
    let driver = driver()?;
    let library = driver.libraries.get(library)?;
    let names: Vec<String> = library.image.entries().map(|f| f.name.clone()).collect();
    for (n, name) in names.iter().take(count as usize).enumerate() {
        out.put_at(n, handle(library.kernel(driver, name)?.id))?;
    }
    Ok(())
}

pub fn module(out: Out<Handle>, library: Handle) -> Answer {
    let driver = driver()?;
    let library = driver.libraries.get(library)?;
    out.put(handle(library.program(driver, &context::current()?)?.id))
}

pub fn kernel_function(out: Out<Handle>, kernel: Handle) -> Answer {
    let driver = driver()?;
    let kernel = driver.kernels.get(kernel)?;
    out.put(handle(kernel.function(driver, &context::current()?)?.id))
}

pub fn kernel_library(out: Out<Handle>, kernel: Handle) -> Answer {
    out.put(handle(driver()?.kernels.get(kernel)?.library))
}

pub fn kernel_name(out: Out<*const c_char>, kernel: Handle) -> Answer {
    let driver = driver()?;
    if let Some(function) = driver.functions.find(kernel) {
        return out.put(function.c_name.as_ptr());
    }
    out.put(driver.kernels.get(kernel)?.c_name.as_ptr())
}

pub fn global(start: Out<u64>, bytes: Out<usize>, library: Handle, name: Text) -> Answer {
    let driver = driver()?;
    let library = driver.libraries.get(library)?;
    let program = library.program(driver, &context::current()?)?;
    let (address, size) = super::module::variable(&program, &name.get()?)?;
    start.offer(address);
    bytes.offer(size as usize);
    Ok(())
}

/// Managed variables are variables like others here; so they are found the same way.
pub fn managed(start: Out<u64>, bytes: Out<usize>, library: Handle, name: Text) -> Answer {
    global(start, bytes, library, name)
}

pub fn kernel_attribute(out: Out<i32>, attribute: u32, kernel: Handle, _device: i32) -> Answer {
    super::launch::attribute(out, attribute, kernel)
}

pub fn set_kernel_attribute(attribute: u32, value: i32, kernel: Handle, _device: i32) -> Answer {
    super::launch::set_attribute(kernel, attribute, value)
}

pub fn set_kernel_cache_config(kernel: Handle, config: u32, _device: i32) -> Answer {
    super::launch::set_cache_config(kernel, config)
}
