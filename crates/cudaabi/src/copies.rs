//! Structures of the driver API that the runtime fills in too.

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

#[derive(Clone, Copy, Default)]
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

/// `CUDA_MEMSET_NODE_PARAMS` and `cudaMemsetParams`.
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

/// `CUmemLocation` and `cudaMemLocation`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Location {
    pub kind: u32,
    pub id: i32,
}

/// `CUipcMemHandle`, `CUipcEventHandle` and the runtime's names for them.
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
        assert_eq!((size_of::<MemsetNode>(), size_of::<IpcHandle>(), size_of::<Location>()), (40, 64, 8));
    }
}
