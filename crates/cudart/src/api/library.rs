//! Libraries: programs that clients load while they run.

use crate::driver::driver;
use crate::error::Answer;
use crate::runtime::enter;
use crate::types::{Handle, Out, Text};

pub fn load_data(
    out: Out<Handle>,
    code: usize,
    names: Handle,
    values: Handle,
    count: u32,
    library_names: Handle,
    library_values: Handle,
    library_count: u32,
) -> Answer {
    let driver = driver()?;
    driver.cuLibraryLoadData(out, code, names, values, count, library_names, library_values, library_count)
}

pub fn load_file(
    out: Out<Handle>,
    path: Text,
    names: Handle,
    values: Handle,
    count: u32,
    library_names: Handle,
    library_values: Handle,
    library_count: u32,
) -> Answer {
    let driver = driver()?;
    driver.cuLibraryLoadFromFile(
        out,
        path,
        names,
        values,
        count,
        library_names,
        library_values,
        library_count,
    )
}

pub fn unload(library: Handle) -> Answer {
    driver()?.cuLibraryUnload(library)
}

pub fn kernel(out: Out<Handle>, library: Handle, name: Text) -> Answer {
    driver()?.cuLibraryGetKernel(out, library, name)
}

pub fn kernel_count(out: Out<u32>, library: Handle) -> Answer {
    driver()?.cuLibraryGetKernelCount(out, library)
}

pub fn kernels(out: Out<Handle>, count: u32, library: Handle) -> Answer {
    driver()?.cuLibraryEnumerateKernels(out, count, library)
}

pub fn global(start: Out<u64>, bytes: Out<usize>, library: Handle, name: Text) -> Answer {
    enter()?.cuLibraryGetGlobal(start, bytes, library, name)
}

pub fn managed(start: Out<u64>, bytes: Out<usize>, library: Handle, name: Text) -> Answer {
    enter()?.cuLibraryGetManaged(start, bytes, library, name)
}

pub fn set_kernel_attribute(kernel: Handle, attribute: u32, value: i32, device: i32) -> Answer {
    enter()?.cuKernelSetAttribute(attribute, value, kernel, device)
}
