//! What entry points take: pointers of clients, and structures of the runtime API.
//!
//! A pointer type here stands for the promise that the API asks of its clients: the pointer is null, or what it points at is
//! there as the call's documentation says, while the call lasts.

use crate::error::{Answer, Code};
use std::ffi::{CStr, c_char, c_void};

/// An opaque object of the driver: a stream, an event, a kernel, a graph.
pub type Handle = *mut c_void;

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

    /// A place of our own.
    pub fn to(place: &mut T) -> Out<T> {
        Out(place)
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

    /// The same place for values of another type.
    pub fn cast<U: Copy>(self) -> Out<U> {
        Out(self.0.cast())
    }

    pub fn null() -> Out<T> {
        Out(std::ptr::null_mut())
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

    /// A value of our own.
    pub fn of(place: &T) -> In<T> {
        In(place)
    }

    pub fn get(self) -> Answer<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the promise of this type.
        Ok(unsafe { self.0.read_unaligned() })
    }

    pub fn null() -> In<T> {
        In(std::ptr::null())
    }
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

    /// A text of our own.
    pub fn of(text: &CStr) -> Text {
        Text(text.as_ptr())
    }

    pub fn get(self) -> Option<&'static CStr> {
        // SAFETY: the promise of this type; names that are registered stay where they are.
        if self.0.is_null() { None } else { Some(unsafe { CStr::from_ptr(self.0) }) }
    }
}

/// A function of the host that streams and objects call.
pub type HostFunction = Option<unsafe extern "C" fn(*mut c_void)>;
/// A function of the host that hears how a stream's work ended.
pub type Callback = Option<unsafe extern "C" fn(Handle, u32, *mut c_void)>;

/// `dim3`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Dim3 {
    pub x: u32,
    pub y: u32,
    pub z: u32,
}

/// `cudaExtent`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Extent {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// `cudaPitchedPtr`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PitchedPtr {
    pub address: u64,
    pub pitch: usize,
    pub width: usize,
    pub height: usize,
}

/// `cudaPos`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Pos {
    pub x: usize,
    pub y: usize,
    pub z: usize,
}

/// `cudaMemcpy3DParms`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Memcpy3dParms {
    pub from_array: Handle,
    pub from_pos: Pos,
    pub from: PitchedPtr,
    pub to_array: Handle,
    pub to_pos: Pos,
    pub to: PitchedPtr,
    pub extent: Extent,
    pub kind: u32,
}

/// `cudaMemcpy3DPeerParms`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Memcpy3dPeerParms {
    pub from_array: Handle,
    pub from_pos: Pos,
    pub from: PitchedPtr,
    pub from_device: i32,
    pub to_array: Handle,
    pub to_pos: Pos,
    pub to: PitchedPtr,
    pub to_device: i32,
    pub extent: Extent,
}

/// `cudaLaunchConfig_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct LaunchConfig {
    pub grid: Dim3,
    pub block: Dim3,
    pub shared_bytes: usize,
    pub stream: Handle,
    pub attributes: Handle,
    pub count: u32,
}

/// `cudaFuncAttributes`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct FuncAttributes {
    pub shared_bytes: usize,
    pub const_bytes: usize,
    pub local_bytes: usize,
    /// Most threads of a block, registers, versions of PTX and binary, caching, most dynamic shared memory, carveout, six
    /// about clusters.
    pub numbers: [i32; 13],
    pub reserved: [i32; 16],
}

/// `cudaPointerAttributes`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct PointerAttributes {
    pub kind: u32,
    pub device: i32,
    pub device_pointer: u64,
    pub host_pointer: u64,
    pub reserved: [u64; 8],
}

/// `cudaMemLocation`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Location {
    pub kind: u32,
    pub id: i32,
}

/// `cudaIpcMemHandle_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct IpcHandle(pub [u8; 64]);

/// `cudaKernelNodeParams`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct KernelNode {
    pub function: usize,
    pub grid: Dim3,
    pub block: Dim3,
    pub shared_bytes: u32,
    pub params: Handle,
    pub extra: Handle,
}

/// `cudaMemsetParams`, which is the driver's too.
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

/// `cudaChannelFormatDesc`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ChannelDesc {
    pub bits: [i32; 4],
    pub kind: i32,
}

/// Structures of the driver API that the runtime fills in.
pub mod driver {
    use super::{Dim3, Handle};

    /// `CUDA_MEMCPY2D`.
    #[derive(Clone, Copy)]
    #[repr(C)]
    pub struct Memcpy2d {
        pub from: Side2d,
        pub to: Side2d,
        pub width: usize,
        pub height: usize,
    }

    #[derive(Clone, Copy, Default)]
    #[repr(C)]
    pub struct Side2d {
        pub x: usize,
        pub y: usize,
        pub kind: u32,
        pub host: u64,
        pub device: u64,
        pub array: usize,
        pub pitch: usize,
    }

    /// `CUDA_MEMCPY3D`.
    #[derive(Clone, Copy)]
    #[repr(C)]
    pub struct Memcpy3d {
        pub from: Side3d,
        pub to: Side3d,
        pub width: usize,
        pub height: usize,
        pub depth: usize,
    }

    #[derive(Clone, Copy, Default)]
    #[repr(C)]
    pub struct Side3d {
        pub x: usize,
        pub y: usize,
        pub z: usize,
        pub lod: usize,
        pub kind: u32,
        pub host: u64,
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
        pub grid: Dim3,
        pub block: Dim3,
        pub shared_bytes: u32,
        pub stream: Handle,
        pub attributes: Handle,
        pub count: u32,
    }

    /// `CUDA_KERNEL_NODE_PARAMS_v2`.
    #[derive(Clone, Copy)]
    #[repr(C)]
    pub struct KernelNode {
        pub function: Handle,
        pub grid: Dim3,
        pub block: Dim3,
        pub shared_bytes: u32,
        pub params: Handle,
        pub extra: Handle,
        pub kernel: Handle,
        pub context: Handle,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::size_of;

    #[test]
    fn structures_are_laid_out_as_in_c() {
        assert_eq!((size_of::<Memcpy3dParms>(), size_of::<Memcpy3dPeerParms>()), (160, 168));
        assert_eq!((size_of::<LaunchConfig>(), size_of::<FuncAttributes>()), (56, 144));
        assert_eq!((size_of::<PointerAttributes>(), size_of::<KernelNode>()), (88, 56));
        assert_eq!((size_of::<MemsetNode>(), size_of::<IpcHandle>()), (40, 64));
        assert_eq!((size_of::<driver::Memcpy2d>(), size_of::<driver::Memcpy3d>()), (128, 200));
        assert_eq!((size_of::<driver::LaunchConfig>(), size_of::<driver::KernelNode>()), (56, 72));
    }
}
