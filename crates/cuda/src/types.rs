//! What entry points take: pointers of clients that are checked for null when they are used, and structures of the API.

use crate::error::Code;
use crate::handle::Handle;

pub use cudaabi::{IpcHandle, Location, Memcpy2d, Memcpy3d, MemsetNode, Side2d, Side3d};

impl cudaabi::Null for Code {
    const NULL: Code = Code::INVALID_VALUE;
}

/// Where a call leaves a result.
pub type Out<T> = cudaabi::Out<T, Code>;
/// Where a call finds its input.
pub type In<T> = cudaabi::In<T, Code>;
/// A text that ends with a zero.
pub type Text = cudaabi::Text<Code>;

/// Bytes at an address that a client gave.
///
/// # Safety
/// The bytes can be read now.
pub unsafe fn bytes_at(address: usize, len: usize) -> Vec<u8> {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(address as *const u8, len) }.to_vec()
}

/// An address of the host, or one of either side.
pub type Address = usize;

/// `CUuuid`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Uuid(pub [u8; 16]);

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

/// `CUDA_HOST_NODE_PARAMS`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct HostNode {
    pub function: Option<unsafe extern "C" fn(*mut std::ffi::c_void)>,
    pub data: usize,
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::size_of;

    #[test]
    fn structures_are_laid_out_as_in_c() {
        assert_eq!((size_of::<LaunchConfig>(), size_of::<LaunchAttribute>()), (56, 72));
        assert_eq!((size_of::<KernelNodeV1>(), size_of::<KernelNode>()), (56, 72));
        assert_eq!(size_of::<HostNode>(), 16);
        assert_eq!((size_of::<PoolProps>(), size_of::<AllocationProp>()), (88, 32));
        assert_eq!(size_of::<AccessDesc>(), 12);
    }
}
