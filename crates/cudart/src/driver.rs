//! The driver's entry points that the runtime uses, found in `libcuda.so.1` when the first call comes.

use crate::error::{Answer, Code};
use crate::types::driver::{KernelNode, LaunchConfig, Memcpy2d, Memcpy3d};
use crate::types::{Callback, Handle, HostFunction, In, IpcHandle, Location, MemsetNode, Out, Text};
use std::ffi::{CStr, c_char, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

macro_rules! entry_points {
    ($($name:ident ($($arg:ident: $ty:ty),*);)*) => {
        /// The functions, by their names.
        #[allow(non_snake_case)]
        pub struct Driver {
            $($name: unsafe extern "C" fn($($ty),*) -> u32,)*
        }

        // Handles look like pointers, but the driver looks them up and follows none.
        #[allow(non_snake_case, clippy::not_unsafe_ptr_arg_deref)]
        impl Driver {
            fn load(library: *mut c_void) -> Option<Driver> {
                Some(Driver {
                    $($name: {
                        let address = symbol(library, concat!(stringify!($name), "\0"))?;
                        // SAFETY: a function of this name in a CUDA driver has this type.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($ty),*) -> u32>(address) }
                    },)*
                })
            }

            $(pub fn $name(&self, $($arg: $ty),*) -> Answer {
                // SAFETY: the driver checks what it is given; pointers are those of the client, with its promise, or ours.
                match unsafe { (self.$name)($($arg),*) } {
                    0 => Ok(()),
                    code => Err(Code(code)),
                }
            })*
        }
    };
}

entry_points! {
    cuInit(flags: u32);
    cuDriverGetVersion(out: Out<i32>);
    cuGetProcAddress_v2(name: Text, out: Out<usize>, version: i32, flags: u64, status: Out<u32>);
    cuProfilerStart();
    cuProfilerStop();
    cuDeviceGetCount(out: Out<i32>);
    cuDeviceGetName(out: Out<u8>, len: i32, device: i32);
    cuDeviceGetUuid_v2(out: Out<[u8; 16]>, device: i32);
    cuDeviceTotalMem_v2(out: Out<usize>, device: i32);
    cuDeviceGetAttribute(out: Out<i32>, attribute: u32, device: i32);
    cuDeviceGetPCIBusId(out: Out<u8>, len: i32, device: i32);
    cuDeviceGetByPCIBusId(out: Out<i32>, id: Text);
    cuDeviceCanAccessPeer(out: Out<i32>, device: i32, peer: i32);
    cuDeviceGetP2PAttribute(out: Out<i32>, attribute: u32, device: i32, peer: i32);
    cuDeviceGetDefaultMemPool(out: Out<Handle>, device: i32);
    cuDeviceGetMemPool(out: Out<Handle>, device: i32);
    cuDeviceSetMemPool(device: i32, pool: Handle);
    cuDevicePrimaryCtxRetain(out: Out<Handle>, device: i32);
    cuDevicePrimaryCtxReset_v2(device: i32);
    cuDevicePrimaryCtxSetFlags_v2(device: i32, flags: u32);
    cuDevicePrimaryCtxGetState(device: i32, flags: Out<u32>, active: Out<i32>);
    cuCtxSetCurrent(context: Handle);
    cuCtxGetCurrent(out: Out<Handle>);
    cuCtxGetDevice(out: Out<i32>);
    cuCtxGetFlags(out: Out<u32>);
    cuCtxSynchronize();
    cuCtxGetLimit(out: Out<usize>, limit: u32);
    cuCtxSetLimit(limit: u32, value: usize);
    cuCtxResetPersistingL2Cache();
    cuCtxGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>);
    cuCtxGetCacheConfig(out: Out<u32>);
    cuCtxSetCacheConfig(config: u32);
    cuCtxGetSharedMemConfig(out: Out<u32>);
    cuCtxSetSharedMemConfig(config: u32);
    cuCtxEnablePeerAccess(peer: Handle, flags: u32);
    cuCtxDisablePeerAccess(peer: Handle);
    cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>);
    cuMemAlloc_v2(out: Out<u64>, bytes: usize);
    cuMemAllocPitch_v2(out: Out<u64>, pitch: Out<usize>, width: usize, height: usize, element: u32);
    cuMemFree_v2(address: u64);
    cuMemAllocManaged(out: Out<u64>, bytes: usize, flags: u32);
    cuMemHostAlloc(out: Out<u64>, bytes: usize, flags: u32);
    cuMemFreeHost(address: u64);
    cuMemHostRegister_v2(address: u64, bytes: usize, flags: u32);
    cuMemHostUnregister(address: u64);
    cuMemHostGetDevicePointer_v2(out: Out<u64>, address: u64, flags: u32);
    cuMemHostGetFlags(out: Out<u32>, address: u64);
    cuMemAdvise_v2(address: u64, bytes: usize, advice: u32, place: Location);
    cuMemPrefetchAsync_v2(address: u64, bytes: usize, place: Location, flags: u32, stream: Handle);
    cuMemRangeGetAttribute(out: Out<i32>, bytes: usize, attribute: u32, address: u64, count: usize);
    cuPointerGetAttribute(out: Out<u64>, attribute: u32, address: u64);
    cuMemcpy(to: u64, from: u64, bytes: usize);
    cuMemcpyAsync(to: u64, from: u64, bytes: usize, stream: Handle);
    cuMemcpyHtoD_v2(to: u64, from: u64, bytes: usize);
    cuMemcpyDtoH_v2(to: u64, from: u64, bytes: usize);
    cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize);
    cuMemcpyHtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: Handle);
    cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: usize, stream: Handle);
    cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: Handle);
    cuMemcpy2DUnaligned_v2(copy: In<Memcpy2d>);
    cuMemcpy2DAsync_v2(copy: In<Memcpy2d>, stream: Handle);
    cuMemcpy3D_v2(copy: In<Memcpy3d>);
    cuMemcpy3DAsync_v2(copy: In<Memcpy3d>, stream: Handle);
    cuMemsetD8_v2(to: u64, value: u8, count: usize);
    cuMemsetD8Async(to: u64, value: u8, count: usize, stream: Handle);
    cuMemsetD2D8_v2(to: u64, pitch: usize, value: u8, width: usize, height: usize);
    cuMemsetD2D8Async(to: u64, pitch: usize, value: u8, width: usize, height: usize, stream: Handle);
    cuMemAllocAsync(out: Out<u64>, bytes: usize, stream: Handle);
    cuMemAllocFromPoolAsync(out: Out<u64>, bytes: usize, pool: Handle, stream: Handle);
    cuMemFreeAsync(address: u64, stream: Handle);
    cuMemPoolCreate(out: Out<Handle>, props: Handle);
    cuMemPoolDestroy(pool: Handle);
    cuMemPoolTrimTo(pool: Handle, keep: usize);
    cuMemPoolGetAttribute(pool: Handle, attribute: u32, out: Handle);
    cuMemPoolSetAttribute(pool: Handle, attribute: u32, value: Handle);
    cuMemPoolSetAccess(pool: Handle, list: Handle, count: usize);
    cuMemPoolGetAccess(out: Out<u32>, pool: Handle, place: Handle);
    cuIpcGetMemHandle(out: Out<IpcHandle>, address: u64);
    cuIpcOpenMemHandle_v2(out: Out<u64>, handle: IpcHandle, flags: u32);
    cuIpcCloseMemHandle(address: u64);
    cuLibraryLoadData(out: Out<Handle>, code: usize, names: Handle, values: Handle, count: u32, library_names: Handle, library_values: Handle, library_count: u32);
    cuLibraryLoadFromFile(out: Out<Handle>, path: Text, names: Handle, values: Handle, count: u32, library_names: Handle, library_values: Handle, library_count: u32);
    cuLibraryUnload(library: Handle);
    cuLibraryGetKernel(out: Out<Handle>, library: Handle, name: Text);
    cuLibraryGetKernelCount(out: Out<u32>, library: Handle);
    cuLibraryEnumerateKernels(out: Out<Handle>, count: u32, library: Handle);
    cuLibraryGetGlobal(start: Out<u64>, bytes: Out<usize>, library: Handle, name: Text);
    cuLibraryGetManaged(start: Out<u64>, bytes: Out<usize>, library: Handle, name: Text);
    cuKernelGetFunction(out: Out<Handle>, kernel: Handle);
    cuKernelGetName(out: Out<usize>, kernel: Handle);
    cuKernelSetAttribute(attribute: u32, value: i32, kernel: Handle, device: i32);
    cuFuncGetAttribute(out: Out<i32>, attribute: u32, function: Handle);
    cuFuncSetAttribute(function: Handle, attribute: u32, value: i32);
    cuFuncSetCacheConfig(function: Handle, config: u32);
    cuFuncGetParamInfo(function: Handle, n: usize, offset: Out<usize>, size: Out<usize>);
    cuLaunchKernel(function: Handle, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Handle, params: Handle, extra: Handle);
    cuLaunchKernelEx(config: In<LaunchConfig>, function: Handle, params: Handle, extra: Handle);
    cuLaunchCooperativeKernel(function: Handle, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Handle, params: Handle);
    cuLaunchHostFunc(stream: Handle, function: HostFunction, data: Handle);
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out: Out<i32>, function: Handle, threads: i32, dynamic: usize, flags: u32);
    cuOccupancyAvailableDynamicSMemPerBlock(out: Out<usize>, function: Handle, ctas: i32, threads: i32);
    cuOccupancyMaxActiveClusters(out: Out<i32>, function: Handle, config: In<LaunchConfig>);
    cuOccupancyMaxPotentialClusterSize(out: Out<i32>, function: Handle, config: In<LaunchConfig>);
    cuStreamCreateWithPriority(out: Out<Handle>, flags: u32, priority: i32);
    cuStreamDestroy_v2(stream: Handle);
    cuStreamSynchronize(stream: Handle);
    cuStreamQuery(stream: Handle);
    cuStreamWaitEvent(stream: Handle, event: Handle, flags: u32);
    cuStreamAddCallback(stream: Handle, callback: Callback, data: Handle, flags: u32);
    cuStreamGetDevice(stream: Handle, out: Out<i32>);
    cuStreamGetFlags(stream: Handle, out: Out<u32>);
    cuStreamGetPriority(stream: Handle, out: Out<i32>);
    cuStreamGetId(stream: Handle, out: Out<u64>);
    cuStreamAttachMemAsync(stream: Handle, address: u64, bytes: usize, flags: u32);
    cuStreamCopyAttributes(to: Handle, from: Handle);
    cuStreamGetAttribute(stream: Handle, attribute: u32, out: Handle);
    cuStreamSetAttribute(stream: Handle, attribute: u32, value: Handle);
    cuStreamBeginCapture_v2(stream: Handle, mode: u32);
    cuStreamEndCapture(stream: Handle, out: Out<Handle>);
    cuStreamIsCapturing(stream: Handle, out: Out<u32>);
    cuStreamGetCaptureInfo_v2(stream: Handle, out: Out<u32>, id: Out<u64>, graph: Out<Handle>, nodes: Out<Handle>, count: Out<usize>);
    cuStreamGetCaptureInfo_v3(stream: Handle, out: Out<u32>, id: Out<u64>, graph: Out<Handle>, nodes: Out<Handle>, edges: Out<Handle>, count: Out<usize>);
    cuThreadExchangeStreamCaptureMode(mode: Out<u32>);
    cuEventCreate(out: Out<Handle>, flags: u32);
    cuEventDestroy_v2(event: Handle);
    cuEventRecordWithFlags(event: Handle, stream: Handle, flags: u32);
    cuEventQuery(event: Handle);
    cuEventSynchronize(event: Handle);
    cuEventElapsedTime(out: Out<f32>, start: Handle, end: Handle);
    cuGraphCreate(out: Out<Handle>, flags: u32);
    cuGraphDestroy(graph: Handle);
    cuGraphClone(out: Out<Handle>, graph: Handle);
    cuGraphInstantiateWithFlags(out: Out<Handle>, graph: Handle, flags: u64);
    cuGraphExecDestroy(exec: Handle);
    cuGraphExecGetFlags(exec: Handle, out: Out<u64>);
    cuGraphExecUpdate_v2(exec: Handle, graph: Handle, result: Out<u64>);
    cuGraphLaunch(exec: Handle, stream: Handle);
    cuGraphUpload(exec: Handle, stream: Handle);
    cuGraphGetNodes(graph: Handle, out: Out<Handle>, count: Out<usize>);
    cuGraphGetRootNodes(graph: Handle, out: Out<Handle>, count: Out<usize>);
    cuGraphGetEdges(graph: Handle, from: Out<Handle>, to: Out<Handle>, count: Out<usize>);
    cuGraphGetEdges_v2(graph: Handle, from: Out<Handle>, to: Out<Handle>, edges: Handle, count: Out<usize>);
    cuGraphAddDependencies_v2(graph: Handle, from: Handle, to: Handle, edges: Handle, count: usize);
    cuGraphRemoveDependencies_v2(graph: Handle, from: Handle, to: Handle, edges: Handle, count: usize);
    cuGraphAddKernelNode_v2(out: Out<Handle>, graph: Handle, after: Handle, count: usize, node: In<KernelNode>);
    cuGraphAddMemcpyNode(out: Out<Handle>, graph: Handle, after: Handle, count: usize, copy: In<Memcpy3d>, context: Handle);
    cuGraphAddMemsetNode(out: Out<Handle>, graph: Handle, after: Handle, count: usize, node: In<MemsetNode>, context: Handle);
    cuGraphAddHostNode(out: Out<Handle>, graph: Handle, after: Handle, count: usize, node: Handle);
    cuGraphAddEmptyNode(out: Out<Handle>, graph: Handle, after: Handle, count: usize);
    cuGraphAddChildGraphNode(out: Out<Handle>, graph: Handle, after: Handle, count: usize, child: Handle);
    cuGraphAddEventRecordNode(out: Out<Handle>, graph: Handle, after: Handle, count: usize, event: Handle);
    cuGraphAddEventWaitNode(out: Out<Handle>, graph: Handle, after: Handle, count: usize, event: Handle);
    cuGraphNodeGetType(node: Handle, out: Out<u32>);
    cuGraphDestroyNode(node: Handle);
    cuGraphKernelNodeSetParams_v2(node: Handle, params: In<KernelNode>);
    cuGraphExecKernelNodeSetParams_v2(exec: Handle, node: Handle, params: In<KernelNode>);
    cuUserObjectCreate(out: Out<Handle>, data: Handle, destroy: HostFunction, count: u32, flags: u32);
    cuUserObjectRetain(object: Handle, count: u32);
    cuUserObjectRelease(object: Handle, count: u32);
}

/// A function of a library, by a name with a zero at its end.
fn symbol(library: *mut c_void, name: &str) -> Option<*mut c_void> {
    let name = CStr::from_bytes_with_nul(name.as_bytes()).ok()?;
    // SAFETY: the library is open; the name ends with a zero.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

fn open(path: &CStr) -> Option<*mut c_void> {
    // SAFETY: the path ends with a zero; a driver's constructors may run.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    (!library.is_null()).then_some(library)
}

/// The driver beside this library.
fn beside() -> Option<std::ffi::CString> {
    // SAFETY: zeros are a valid value of a structure of pointers, which the call fills.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address is that of a function of this library.
    let found = unsafe { libc::dladdr(beside as *const c_void, &mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader keeps the name of what it loaded.
    let own = unsafe { CStr::from_ptr(info.dli_fname.cast::<c_char>()) };
    let folder = PathBuf::from(own.to_str().ok()?).parent()?.join("libcuda.so.1");
    std::ffi::CString::new(folder.to_str()?).ok()
}

fn start() -> Result<Driver, Code> {
    // By name first: the program may have loaded it already.
    let library = open(c"libcuda.so.1").or_else(|| open(&beside()?)).ok_or(Code::INSUFFICIENT_DRIVER)?;
    let driver = Driver::load(library).ok_or(Code::INSUFFICIENT_DRIVER)?;
    driver.cuInit(0)?;
    Ok(driver)
}

/// The driver, started.
pub fn driver() -> Answer<&'static Driver> {
    static DRIVER: OnceLock<Result<Driver, Code>> = OnceLock::new();
    DRIVER.get_or_init(start).as_ref().map_err(|&code| code)
}
