//! The linker that stands beside this library: clients that find it loaded use it, and link PTX with it.

use std::ffi::{CStr, CString, c_void};
use std::path::PathBuf;

/// The folder that this library is in.
fn folder() -> Option<PathBuf> {
    // SAFETY: zeros are a valid value of a structure of pointers, which the call fills.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address is that of a function of this library.
    if unsafe { libc::dladdr(folder as *const c_void, &mut info) } == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader keeps the name of what it loaded.
    let own = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(own.to_str().ok()?).parent()?.to_owned())
}

/// Loads the linker, where there is one.
extern "C" fn load_linker() {
    let path = folder().map(|f| f.join("libnvJitLink.so.13")).filter(|p| p.is_file());
    let Some(path) = path.and_then(|p| CString::new(p.to_str()?).ok()) else { return };
    // SAFETY: the path ends with a zero. Where it cannot be loaded, clients look elsewhere.
    unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
}

/// Called when this library is loaded: clients look for a linker before they start the driver.
// SAFETY: the loader calls the functions of this list once, with arguments that this one does not look at.
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
static AT_LOAD: extern "C" fn() = load_linker;
