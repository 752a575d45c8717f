//! What entry points take: pointers of clients, and structures of the runtime API.

use crate::error::Code;
use std::ffi::c_void;

pub use cudaabi::{IpcHandle, Location, MemsetNode};

impl cudaabi::Null for Code {
    const NULL: Code = Code::INVALID_VALUE;
}

/// An opaque object of the driver: a stream, an event, a kernel, a graph.
pub type Handle = *mut c_void;
/// Where a call leaves a result.
pub type Out<T> = cudaabi::Out<T, Code>;
/// Where a call finds its input.
pub type In<T> = cudaabi::In<T, Code>;
/// A text that ends with a zero.
pub type Text = cudaabi::Text<Code>;
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

    pub use cudaabi::{Memcpy2d, Memcpy3d, Side2d, Side3d};

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
        assert_eq!((size_of::<driver::LaunchConfig>(), size_of::<driver::KernelNode>()), (56, 72));
    }
}
