//! `libnvJitLink.so.13`: NVIDIA's linker of device code, for clients that link PTX. What it makes is a program image, which clients
//! hand to the driver unseen.
//!
//! It says that it is of version 12.2: clients that know newer ones would hand over their compiler's own intermediate code.

mod linker;

use linker::{Linker, Outcome};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The version that clients are told.
const VERSION: (u32, u32) = (12, 2);

/// Result codes, as in NVIDIA's header.
mod code {
    pub const SUCCESS: u32 = 0;
    pub const INVALID_INPUT: u32 = 3;
    pub const INTERNAL: u32 = 6;
    pub const NULL_INPUT: u32 = 10;
}

/// Linkers that clients have, by their handles: numbers that are never used twice.
static LINKERS: Mutex<BTreeMap<usize, Arc<Mutex<Linker>>>> = Mutex::new(BTreeMap::new());

fn find(handle: usize) -> Option<Arc<Mutex<Linker>>> {
    LINKERS.lock().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned()
}

/// Runs an entry point. Panics end here.
fn call(body: impl FnOnce() -> Result<(), u32>) -> u32 {
    let answer = catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(code::INTERNAL));
    answer.err().unwrap_or(code::SUCCESS)
}

/// Does something with the linker of a handle.
fn with(handle: usize, body: impl FnOnce(&mut Linker) -> Result<(), u32>) -> u32 {
    call(|| {
        let linker = find(handle).ok_or(code::INVALID_INPUT)?;
        let mut linker = linker.lock().unwrap_or_else(PoisonError::into_inner);
        body(&mut linker)
    })
}

fn text(pointer: *const c_char) -> Option<String> {
    // SAFETY: a text that a client gives is null or ends with a zero.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}

fn put<T>(out: *mut T, value: T) -> Result<(), u32> {
    if out.is_null() {
        return Err(code::NULL_INPUT);
    }
    // SAFETY: a place that a client gives can be written.
    unsafe { out.write_unaligned(value) };
    Ok(())
}

/// Leaves bytes where the client has room for them: it asked for their size.
fn put_bytes(out: *mut u8, bytes: &[u8]) -> Result<(), u32> {
    if out.is_null() {
        return Err(code::NULL_INPUT);
    }
    // SAFETY: the client's buffer has the size that it was told.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), out, bytes.len()) };
    Ok(())
}

fn create(out: *mut usize, count: u32, options: *const *const c_char) -> u32 {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    call(|| {
        if options.is_null() && count > 0 {
            return Err(code::NULL_INPUT);
        }
        // SAFETY: the client says how many options there are.
        let list = (0..count as usize).map(|n| text(unsafe { *options.add(n) }));
        let options: Vec<String> = list.collect::<Option<_>>().ok_or(code::NULL_INPUT)?;
        let linker = Linker::new(&options)?;
        let handle = 16 * NEXT.fetch_add(1, Ordering::Relaxed);
        put(out, handle)?;
        let mut all = LINKERS.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(handle, Arc::new(Mutex::new(linker)));
        Ok(())
    })
}

fn destroy(handle: *mut usize) -> u32 {
    call(|| {
        if handle.is_null() {
            return Err(code::NULL_INPUT);
        }
        // SAFETY: the client gives the place of its handle.
        let id = unsafe { handle.read_unaligned() };
        let gone = LINKERS.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        gone.ok_or(code::INVALID_INPUT)?;
        put(handle, 0)
    })
}

fn add_data(handle: usize, kind: u32, data: *const u8, bytes: usize, name: *const c_char) -> u32 {
    with(handle, |linker| {
        if data.is_null() {
            return Err(code::NULL_INPUT);
        }
        // SAFETY: the client says that so many bytes are there.
        let bytes = unsafe { std::slice::from_raw_parts(data, bytes) };
        linker.add(kind, bytes.to_vec(), &text(name).unwrap_or_default())
    })
}

fn add_file(handle: usize, kind: u32, path: *const c_char) -> u32 {
    with(handle, |linker| {
        let path = text(path).ok_or(code::NULL_INPUT)?;
        let bytes = std::fs::read(&path).map_err(|_| code::INVALID_INPUT)?;
        linker.add(kind, bytes, &path)
    })
}

fn complete(handle: usize) -> u32 {
    with(handle, Linker::complete)
}

/// The size of something that a linker has; or the thing itself.
fn size(handle: usize, out: *mut usize, what: impl FnOnce(&Linker) -> Outcome) -> u32 {
    with(handle, |linker| put(out, what(linker)?.len()))
}

fn bytes(handle: usize, out: *mut u8, what: impl FnOnce(&Linker) -> Outcome) -> u32 {
    with(handle, |linker| put_bytes(out, &what(linker)?))
}

/// Exports an entry point by its own name and by the name that headers of version 13 give it.
macro_rules! export {
    ($($name:ident, $other:ident ($($arg:ident: $ty:ty),*) => $body:expr;)*) => {
        $(
            #[allow(non_snake_case)]
            #[unsafe(no_mangle)]
            pub extern "C" fn $name($($arg: $ty),*) -> u32 {
                $body
            }

            #[allow(non_snake_case)]
            #[unsafe(no_mangle)]
            pub extern "C" fn $other($($arg: $ty),*) -> u32 {
                $body
            }
        )*
    };
}

export! {
    nvJitLinkCreate, __nvJitLinkCreate_13_0 (out: *mut usize, count: u32, options: *const *const c_char) => create(out, count, options);
    nvJitLinkDestroy, __nvJitLinkDestroy_13_0 (handle: *mut usize) => destroy(handle);
    nvJitLinkAddData, __nvJitLinkAddData_13_0 (handle: usize, kind: u32, data: *const u8, bytes: usize, name: *const c_char) => add_data(handle, kind, data, bytes, name);
    nvJitLinkAddFile, __nvJitLinkAddFile_13_0 (handle: usize, kind: u32, path: *const c_char) => add_file(handle, kind, path);
    nvJitLinkComplete, __nvJitLinkComplete_13_0 (handle: usize) => complete(handle);
    nvJitLinkGetLinkedCubinSize, __nvJitLinkGetLinkedCubinSize_13_0 (handle: usize, out: *mut usize) => size(handle, out, Linker::image);
    nvJitLinkGetLinkedCubin, __nvJitLinkGetLinkedCubin_13_0 (handle: usize, out: *mut u8) => bytes(handle, out, Linker::image);
    nvJitLinkGetLinkedPtxSize, __nvJitLinkGetLinkedPtxSize_13_0 (handle: usize, out: *mut usize) => size(handle, out, Linker::ptx);
    nvJitLinkGetLinkedPtx, __nvJitLinkGetLinkedPtx_13_0 (handle: usize, out: *mut u8) => bytes(handle, out, Linker::ptx);
    nvJitLinkGetErrorLogSize, __nvJitLinkGetErrorLogSize_13_0 (handle: usize, out: *mut usize) => size(handle, out, Linker::errors);
    nvJitLinkGetErrorLog, __nvJitLinkGetErrorLog_13_0 (handle: usize, out: *mut u8) => bytes(handle, out, Linker::errors);
    nvJitLinkGetInfoLogSize, __nvJitLinkGetInfoLogSize_13_0 (handle: usize, out: *mut usize) => size(handle, out, Linker::info);
    nvJitLinkGetInfoLog, __nvJitLinkGetInfoLog_13_0 (handle: usize, out: *mut u8) => bytes(handle, out, Linker::info);
}

#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub extern "C" fn nvJitLinkVersion(major: *mut u32, minor: *mut u32) -> u32 {
    call(|| {
        put(major, VERSION.0)?;
        put(minor, VERSION.1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::Image;

    const CALLER: &str = "\n.version 8.0\n.target sm_80\n.address_size 64\n.extern .func (.param .b32 r) twice(.param .b32 x);\n\
        .visible .entry go(.param .u64 to)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<2>;\n.param .b32 x;\n.param .b32 r;\n\
        ld.param.u64 %rd1, [to];\nmov.u32 %r1, 21;\nst.param.b32 [x], %r1;\ncall (r), twice, (x);\nld.param.b32 %r2, [r];\n\
        st.global.u32 [%rd1], %r2;\nret;\n}\n";
    const CALLEE: &str = "\n.version 8.0\n.target sm_80\n.address_size 64\n.visible .func (.param .b32 r) twice(.param .b32 x)\n{\n\
        .reg .b32 %r<3>;\nld.param.b32 %r1, [x];\nadd.u32 %r2, %r1, %r1;\nst.param.b32 [r], %r2;\nret;\n}\n";
    const PTX: u32 = 2;

    fn linker() -> usize {
        let (mut handle, option) = (0, c"-arch=sm_90");
        assert_eq!(nvJitLinkCreate(&mut handle, 1, &option.as_ptr()), code::SUCCESS);
        handle
    }

    fn add(handle: usize, text: &str) -> u32 {
        nvJitLinkAddData(handle, PTX, text.as_ptr(), text.len(), c"input".as_ptr())
    }

    #[test]
    fn texts_are_linked_to_an_image() {
        let mut handle = linker();
        assert_eq!((add(handle, CALLER), add(handle, CALLEE)), (code::SUCCESS, code::SUCCESS));
        assert_eq!(nvJitLinkComplete(handle), code::SUCCESS);
        let mut len = 0;
        assert_eq!(nvJitLinkGetLinkedCubinSize(handle, &mut len), code::SUCCESS);
        let mut image = vec![0; len];
        assert_eq!(nvJitLinkGetLinkedCubin(handle, image.as_mut_ptr()), code::SUCCESS);
        assert!(Image::is_image(&image));
        assert_eq!(nvJitLinkDestroy(&mut handle), code::SUCCESS);
        assert_eq!(handle, 0);
    }

    #[test]
    fn what_is_wrong_is_in_the_log() {
        let handle = linker();
        assert_eq!(add(handle, CALLER), code::SUCCESS);
        assert_ne!(nvJitLinkComplete(handle), code::SUCCESS);
        let mut len = 0;
        assert_eq!(nvJitLinkGetErrorLogSize(handle, &mut len), code::SUCCESS);
        let mut log = vec![0; len];
        assert_eq!(nvJitLinkGetErrorLog(handle, log.as_mut_ptr()), code::SUCCESS);
        assert!(String::from_utf8_lossy(&log).contains("twice"));
        assert_ne!(nvJitLinkGetLinkedCubinSize(handle, &mut len), code::SUCCESS);
    }

    #[test]
    fn misuse_is_answered() {
        let mut gone = linker();
        let kept = gone;
        assert_eq!(nvJitLinkDestroy(&mut gone), code::SUCCESS);
        assert_eq!(nvJitLinkComplete(kept), code::INVALID_INPUT);
        assert_eq!(nvJitLinkDestroy(std::ptr::null_mut()), code::NULL_INPUT);
        assert_eq!(nvJitLinkAddData(linker(), PTX, std::ptr::null(), 3, std::ptr::null()), code::NULL_INPUT);
        let (mut handle, option) = (0, c"-surprise");
        assert_ne!(nvJitLinkCreate(&mut handle, 1, &option.as_ptr()), code::SUCCESS);
    }
}
