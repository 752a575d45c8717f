//! What entry points take: pointers of clients that are checked for null when they are used, and structures of the API.
//!
//! A pointer type here stands for the promise that the API asks of its clients: the pointer is null, or what it points at is
//! there as the call's documentation says, while the call lasts. Only clients make them, by calling an entry point.

use crate::error::{Answer, Code};
use crate::handle::Handle;
use std::ffi::{CStr, c_char};

/// Where a call leaves a result.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T: Copy> Out<T> {
    /// # Safety
    /// The pointer is null or can be written while the value is used.
    pub unsafe fn new(pointer: *mut T) -> Out<T> {
        Out(pointer)
    }

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Leaves a result; null is an error.
    pub fn put(self, value: T) -> Answer {
        self.put_at(0, value)
    }

    pub fn put_at(self, n: usize, value: T) -> Answer {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the promise of this type.
        unsafe { self.0.add(n).write_unaligned(value) };
        Ok(())
    }

    /// Leaves a result where one is wanted.
    pub fn offer(self, value: T) {
        // Null: not wanted.
        let _ = self.put(value);
    }

    pub fn get(self) -> Answer<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the promise of this type.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// The same place for values of another type.
    pub fn cast<U: Copy>(self) -> Out<U> {
        Out(self.0.cast())
    }

    /// As a number.
    pub fn address(self) -> usize {
        self.0 as usize
    }
}

/// Where a call finds its input.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct In<T>(*const T);

impl<T: Copy> In<T> {
    /// # Safety
    /// The pointer is null or can be read while the value is used.
    pub unsafe fn new(pointer: *const T) -> In<T> {
        In(pointer)
    }

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub fn get(self) -> Answer<T> {
        self.at(0)
    }

    pub fn at(self, n: usize) -> Answer<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the promise of this type.
        Ok(unsafe { self.0.add(n).read_unaligned() })
    }

    /// So many elements; none from null where none are asked for.
    pub fn list(self, n: usize) -> Answer<Vec<T>> {
        (0..n).map(|k| self.at(k)).collect()
    }

    pub fn address(self) -> usize {
        self.0 as usize
    }
}

/// Bytes at an address that a client gave.
///
/// # Safety
/// The bytes can be read now.
pub unsafe fn bytes_at(address: usize, len: usize) -> Vec<u8> {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(address as *const u8, len) }.to_vec()
}

/// A text that ends with a zero.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Text(*const c_char);

impl Text {
    /// # Safety
    /// The pointer is null or a zero ends what it points at.
    pub unsafe fn new(pointer: *const c_char) -> Text {
        Text(pointer)
    }

    pub fn get(self) -> Answer<String> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes).map_err(|_| Code::INVALID_VALUE)
    }

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub fn address(self) -> usize {
        self.0 as usize
    }

    pub fn bytes(self) -> Answer<Vec<u8>> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the promise of this type.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_bytes().to_vec())
    }
}

/// An address of the host, or one of either side.
pub type Address = usize;

/// `CUuuid`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Uuid(pub [u8; 16]);

/// `CUDA_MEMCPY2D`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Memcpy2d {
    pub from: Side2d,
    pub to: Side2d,
    pub width: usize,
    pub height: usize,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Side2d {
    pub x: usize,
    pub y: usize,
    pub kind: u32,
    pub host: usize,
    pub device: u64,
    pub array: usize,
    pub pitch: usize,
}

/// `CUDA_MEMCPY3D`, and the one between peers.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Memcpy3d {
    pub from: Side3d,
    pub to: Side3d,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Side3d {
    pub x: usize,
    pub y: usize,
    pub z: usize,
    pub lod: usize,
    pub kind: u32,
    pub host: usize,
    pub device: u64,
    pub array: usize,
    pub context: usize,
    pub pitch: usize,
    pub height: usize,
}

/// `CUlaunchConfig`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct LaunchConfig {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub stream: Handle,
    pub attributes: In<LaunchAttribute>,
    pub count: u32,
}

/// `CUlaunchAttribute`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct LaunchAttribute {
    pub id: u32,
    pub pad: u32,
    pub value: [u32; 16],
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`; the first version ends before `kernel`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct KernelNode {
    pub first: KernelNodeV1,
    pub kernel: Handle,
    pub context: Handle,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct KernelNodeV1 {
    pub function: Handle,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub params: In<usize>,
    pub extra: In<usize>,
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct MemsetNode {
    pub to: u64,
    pub pitch: usize,
    pub value: u32,
    pub size: u32,
    pub width: usize,
    pub height: usize,
}

/// `CUDA_HOST_NODE_PARAMS`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct HostNode {
    pub function: Option<unsafe extern "C" fn(*mut std::ffi::c_void)>,
    pub data: usize,
}

/// `CUmemLocation`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Location {
    pub kind: u32,
    pub id: i32,
}

/// `CUmemPoolProps`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PoolProps {
    pub allocation: u32,
    pub handles: u32,
    pub location: Location,
    pub security: usize,
    pub max_size: usize,
    pub usage: u16,
    pub reserved: [u8; 54],
}

/// `CUmemAllocationProp`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct AllocationProp {
    pub kind: u32,
    pub handles: u32,
    pub location: Location,
    pub win32: usize,
    pub flags: [u8; 8],
}

/// `CUmemAccessDesc`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct AccessDesc {
    pub location: Location,
    pub flags: u32,
}

/// `CUipcMemHandle` and `CUipcEventHandle`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct IpcHandle(pub [u8; 64]);

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::size_of;

    #[test]
    fn structures_are_laid_out_as_in_c() {
        assert_eq!((size_of::<Memcpy2d>(), size_of::<Memcpy3d>()), (128, 200));
        assert_eq!((size_of::<LaunchConfig>(), size_of::<LaunchAttribute>()), (56, 72));
        assert_eq!((size_of::<KernelNodeV1>(), size_of::<KernelNode>()), (56, 72));
        assert_eq!((size_of::<MemsetNode>(), size_of::<HostNode>()), (40, 16));
        assert_eq!((size_of::<PoolProps>(), size_of::<AllocationProp>()), (88, 32));
        assert_eq!((size_of::<AccessDesc>(), size_of::<IpcHandle>()), (12, 64));
    }
}
