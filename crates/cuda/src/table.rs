//! Every entry point: its exported name, the name that look-ups use, the version of CUDA that it came with, the name of its form
//! for per-thread default streams, its parameters, and what does it. Exports and look-ups both come from these rows.

use crate::api::*;
use crate::error::{Answer, Code};
use crate::handle::Handle;
use crate::log::{self, Level};
use crate::types::*;
use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A row, for look-ups.
pub struct Entry {
    pub symbol: &'static str,
    pub base: &'static str,
    pub version: i32,
    pub address: *const (),
    /// The form whose default stream is the thread's own.
    pub per_thread: Option<*const ()>,
}

// SAFETY: the addresses are those of functions.
unsafe impl Sync for Entry {}

/// Runs what an entry point does. Panics end here.
fn call(name: &'static str, body: impl FnOnce() -> Answer) -> u32 {
    if crate::state::is_forked() {
        return Code::NOT_INITIALIZED.0;
    }
    let answer = catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(Code::UNKNOWN));
    let code = answer.err().unwrap_or(Code::SUCCESS);
    log::write(Level::Trace, &|| format!("{name}: {code}"));
    code.0
}

/// Answers for an entry point that does not exist here.
fn unsupported(name: &'static str) -> u32 {
    log::missing(name);
    Code::NOT_SUPPORTED.0
}

/// One exported function.
macro_rules! export {
    ($symbol:ident ($($arg:ident: $ty:ty),*) $module:ident $function:ident) => {
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        pub extern "C" fn $symbol($($arg: $ty),*) -> u32 {
            call(stringify!($symbol), || $module::$function($($arg),*))
        }
    };
    (own $symbol:ident ($($arg:ident: $ty:ty),*) $module:ident $function:ident) => {
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        pub extern "C" fn $symbol($($arg: $ty),*) -> u32 {
            crate::context::per_thread(|| call(stringify!($symbol), || $module::$function($($arg),*)))
        }
    };
}

macro_rules! entries {
    (
        implemented { $($symbol:ident / $base:ident @ $version:literal $params:tt $(+ $own:ident)?
            => $module:ident :: $function:ident;)* }
        also { $($also_base:ident @ $also_version:literal => $also_symbol:ident;)* }
        missing { $($missing:ident / $missing_base:ident;)* }
    ) => {
        $(
            export!($symbol $params $module $function);
            $(export!(own $own $params $module $function);)?
        )*
        $(
            #[allow(non_snake_case)]
            #[unsafe(no_mangle)]
            pub extern "C" fn $missing() -> u32 {
                unsupported(stringify!($missing))
            }
        )*

        /// All rows.
        pub static ENTRIES: &[Entry] = &[
            $(Entry {
                symbol: stringify!($symbol),
                base: stringify!($base),
                version: $version,
                address: $symbol as *const (),
                per_thread: <[*const ()]>::first(&[$($own as *const ())?]).copied(),
            },)*
            $(Entry {
                symbol: stringify!($also_base),
                base: stringify!($also_base),
                version: $also_version,
                address: $also_symbol as *const (),
                per_thread: None,
            },)*
            $(Entry {
                symbol: stringify!($missing),
                base: stringify!($missing_base),
                version: 0,
                address: $missing as *const (),
                per_thread: None,
            },)*
        ];

        /// Names of those that answer `CUDA_ERROR_NOT_SUPPORTED`.
        pub static MISSING: &[&str] = &[$(stringify!($missing)),*];
    };
}

entries! {
implemented {
    // misc
    cuInit / cuInit @ 2000 (flags: u32) => misc::init;
    cuDriverGetVersion / cuDriverGetVersion @ 2020 (out: Out<i32>) => misc::driver_version;
    cuGetErrorName / cuGetErrorName @ 6000 (code: u32, out: Out<*const c_char>) => misc::error_name;
    cuGetErrorString / cuGetErrorString @ 6000 (code: u32, out: Out<*const c_char>) => misc::error_text;
    cuGetProcAddress / cuGetProcAddress @ 11030 (name: Text, out: Out<usize>, version: i32, flags: u64) => misc::proc_address;
    cuGetProcAddress_v2 / cuGetProcAddress @ 12000 (name: Text, out: Out<usize>, version: i32, flags: u64, status: Out<u32>) => misc::proc_address_v2;
    cuGetExportTable / cuGetExportTable @ 3000 (out: Out<usize>, id: usize) => misc::export_table;
    cuProfilerStart / cuProfilerStart @ 4000 () => misc::profiler;
    cuProfilerStop / cuProfilerStop @ 4000 () => misc::profiler;
    cuFlushGPUDirectRDMAWrites / cuFlushGPUDirectRDMAWrites @ 11030 (target: u32, scope: u32) => misc::flush_writes;

    // device
    cuDeviceGet / cuDeviceGet @ 2000 (out: Out<i32>, ordinal: i32) => device::get;
    cuDeviceGetCount / cuDeviceGetCount @ 2000 (out: Out<i32>) => device::count;
    cuDeviceGetName / cuDeviceGetName @ 2000 (out: Out<u8>, len: i32, device: i32) => device::name;
    cuDeviceGetUuid / cuDeviceGetUuid @ 9020 (out: Out<Uuid>, device: i32) => device::uuid;
    cuDeviceGetUuid_v2 / cuDeviceGetUuid @ 11040 (out: Out<Uuid>, device: i32) => device::uuid;
    cuDeviceGetLuid / cuDeviceGetLuid @ 10000 (luid: Out<u8>, mask: Out<u32>, device: i32) => device::luid;
    cuDeviceTotalMem_v2 / cuDeviceTotalMem @ 3020 (out: Out<usize>, device: i32) => device::total_memory;
    cuDeviceComputeCapability / cuDeviceComputeCapability @ 2000 (major: Out<i32>, minor: Out<i32>, device: i32) => device::compute_capability;
    cuDeviceGetAttribute / cuDeviceGetAttribute @ 2000 (out: Out<i32>, attribute: u32, device: i32) => device::attribute;
    cuDeviceGetProperties / cuDeviceGetProperties @ 2000 (out: Out<[i32; 14]>, device: i32) => device::properties;
    cuDeviceGetPCIBusId / cuDeviceGetPCIBusId @ 4010 (out: Out<u8>, len: i32, device: i32) => device::pci_bus_id;
    cuDeviceGetByPCIBusId / cuDeviceGetByPCIBusId @ 4010 (out: Out<i32>, id: Text) => device::by_pci_bus_id;
    cuDeviceCanAccessPeer / cuDeviceCanAccessPeer @ 4000 (out: Out<i32>, device: i32, peer: i32) => device::can_access_peer;
    cuDeviceGetP2PAttribute / cuDeviceGetP2PAttribute @ 8000 (out: Out<i32>, attribute: u32, device: i32, peer: i32) => device::p2p_attribute;
    cuDeviceGetTexture1DLinearMaxWidth / cuDeviceGetTexture1DLinearMaxWidth @ 11010 (out: Out<usize>, format: u32, channels: u32, device: i32) => device::texture_width;
    cuDeviceGetExecAffinitySupport / cuDeviceGetExecAffinitySupport @ 11040 (out: Out<i32>, kind: u32, device: i32) => device::exec_affinity;

    // context
    cuDevicePrimaryCtxRetain / cuDevicePrimaryCtxRetain @ 7000 (out: Out<Handle>, device: i32) => context::primary_retain;
    cuDevicePrimaryCtxRelease / cuDevicePrimaryCtxRelease @ 7000 (device: i32) => context::primary_release;
    cuDevicePrimaryCtxRelease_v2 / cuDevicePrimaryCtxRelease @ 11000 (device: i32) => context::primary_release;
    cuDevicePrimaryCtxReset / cuDevicePrimaryCtxReset @ 7000 (device: i32) => context::primary_reset;
    cuDevicePrimaryCtxReset_v2 / cuDevicePrimaryCtxReset @ 11000 (device: i32) => context::primary_reset;
    cuDevicePrimaryCtxSetFlags / cuDevicePrimaryCtxSetFlags @ 7000 (device: i32, flags: u32) => context::primary_set_flags;
    cuDevicePrimaryCtxSetFlags_v2 / cuDevicePrimaryCtxSetFlags @ 11000 (device: i32, flags: u32) => context::primary_set_flags;
    cuDevicePrimaryCtxGetState / cuDevicePrimaryCtxGetState @ 7000 (device: i32, flags: Out<u32>, active: Out<i32>) => context::primary_state;
    cuCtxCreate_v2 / cuCtxCreate @ 3020 (out: Out<Handle>, flags: u32, device: i32) => context::create;
    cuCtxCreate_v3 / cuCtxCreate @ 11040 (out: Out<Handle>, affinity: usize, count: i32, flags: u32, device: i32) => context::create_v3;
    cuCtxCreate_v4 / cuCtxCreate @ 12050 (out: Out<Handle>, params: usize, flags: u32, device: i32) => context::create_v4;
    cuCtxDestroy / cuCtxDestroy @ 2000 (context: Handle) => context::destroy;
    cuCtxDestroy_v2 / cuCtxDestroy @ 4000 (context: Handle) => context::destroy;
    cuCtxDetach / cuCtxDetach @ 2000 (context: Handle) => context::detach;
    cuCtxAttach / cuCtxAttach @ 2000 (out: Out<Handle>, flags: u32) => context::attach;
    cuCtxPushCurrent / cuCtxPushCurrent @ 2000 (context: Handle) => context::push;
    cuCtxPushCurrent_v2 / cuCtxPushCurrent @ 4000 (context: Handle) => context::push;
    cuCtxPopCurrent / cuCtxPopCurrent @ 2000 (out: Out<Handle>) => context::pop;
    cuCtxPopCurrent_v2 / cuCtxPopCurrent @ 4000 (out: Out<Handle>) => context::pop;
    cuCtxSetCurrent / cuCtxSetCurrent @ 4000 (context: Handle) => context::set_current;
    cuCtxGetCurrent / cuCtxGetCurrent @ 4000 (out: Out<Handle>) => context::get_current;
    cuCtxGetDevice / cuCtxGetDevice @ 2000 (out: Out<i32>) => context::get_device;
    cuCtxGetDevice_v2 / cuCtxGetDevice @ 13000 (out: Out<i32>, context: Handle) => context::get_device_v2;
    cuCtxGetFlags / cuCtxGetFlags @ 7000 (out: Out<u32>) => context::get_flags;
    cuCtxSetFlags / cuCtxSetFlags @ 12010 (flags: u32) => context::set_flags;
    cuCtxGetId / cuCtxGetId @ 12000 (context: Handle, out: Out<u64>) => context::get_id;
    cuCtxSynchronize / cuCtxSynchronize @ 2000 () => context::synchronize;
    cuCtxSynchronize_v2 / cuCtxSynchronize @ 13000 (context: Handle) => context::synchronize_v2;
    cuCtxGetLimit / cuCtxGetLimit @ 3010 (out: Out<usize>, limit: u32) => context::get_limit;
    cuCtxSetLimit / cuCtxSetLimit @ 3010 (limit: u32, value: usize) => context::set_limit;
    cuCtxResetPersistingL2Cache / cuCtxResetPersistingL2Cache @ 11000 () => context::reset_persisting;
    cuCtxGetApiVersion / cuCtxGetApiVersion @ 3020 (context: Handle, out: Out<u32>) => context::api_version;
    cuCtxGetStreamPriorityRange / cuCtxGetStreamPriorityRange @ 5050 (least: Out<i32>, greatest: Out<i32>) => context::priority_range;
    cuCtxGetCacheConfig / cuCtxGetCacheConfig @ 3020 (out: Out<u32>) => context::get_cache_config;
    cuCtxSetCacheConfig / cuCtxSetCacheConfig @ 3020 (config: u32) => context::set_cache_config;
    cuCtxGetSharedMemConfig / cuCtxGetSharedMemConfig @ 4020 (out: Out<u32>) => context::get_shared_config;
    cuCtxSetSharedMemConfig / cuCtxSetSharedMemConfig @ 4020 (config: u32) => context::set_shared_config;
    cuCtxEnablePeerAccess / cuCtxEnablePeerAccess @ 4000 (peer: Handle, flags: u32) => context::enable_peer;
    cuCtxDisablePeerAccess / cuCtxDisablePeerAccess @ 4000 (peer: Handle) => context::disable_peer;

    // memory
    cuMemGetInfo_v2 / cuMemGetInfo @ 3020 (free: Out<usize>, total: Out<usize>) => memory::info;
    cuMemAlloc_v2 / cuMemAlloc @ 3020 (out: Out<u64>, bytes: usize) => memory::alloc;
    cuMemAllocPitch_v2 / cuMemAllocPitch @ 3020 (out: Out<u64>, pitch: Out<usize>, width: usize, height: usize, element: u32) => memory::alloc_pitch;
    cuMemFree_v2 / cuMemFree @ 3020 (address: u64) => memory::free;
    cuMemGetAddressRange_v2 / cuMemGetAddressRange @ 3020 (start: Out<u64>, bytes: Out<usize>, address: u64) => memory::address_range;
    cuMemAllocHost_v2 / cuMemAllocHost @ 3020 (out: Out<Address>, bytes: usize) => memory::alloc_host;
    cuMemFreeHost / cuMemFreeHost @ 2000 (address: Address) => memory::free_host;
    cuMemHostAlloc / cuMemHostAlloc @ 2020 (out: Out<Address>, bytes: usize, flags: u32) => memory::host_alloc;
    cuMemHostGetDevicePointer_v2 / cuMemHostGetDevicePointer @ 3020 (out: Out<u64>, address: Address, flags: u32) => memory::host_device_pointer;
    cuMemHostGetFlags / cuMemHostGetFlags @ 2030 (out: Out<u32>, address: Address) => memory::host_flags;
    cuMemHostRegister_v2 / cuMemHostRegister @ 6050 (address: Address, bytes: usize, flags: u32) => memory::register;
    cuMemHostUnregister / cuMemHostUnregister @ 4000 (address: Address) => memory::unregister;
    cuMemAllocManaged / cuMemAllocManaged @ 6000 (out: Out<u64>, bytes: usize, flags: u32) => memory::alloc_managed;
    cuMemAdvise / cuMemAdvise @ 8000 (address: u64, bytes: usize, advice: u32, device: i32) => memory::advise;
    cuMemAdvise_v2 / cuMemAdvise @ 12020 (address: u64, bytes: usize, advice: u32, place: Location) => memory::advise_v2;
    cuMemPrefetchAsync / cuMemPrefetchAsync @ 8000 (address: u64, bytes: usize, device: i32, stream: Handle) + cuMemPrefetchAsync_ptsz => memory::prefetch;
    cuMemPrefetchAsync_v2 / cuMemPrefetchAsync @ 12020 (address: u64, bytes: usize, place: Location, flags: u32, stream: Handle) + cuMemPrefetchAsync_v2_ptsz => memory::prefetch_v2;
    cuMemRangeGetAttribute / cuMemRangeGetAttribute @ 8000 (out: Out<i32>, bytes: usize, attribute: u32, address: u64, count: usize) => memory::range_attribute;
    cuPointerGetAttribute / cuPointerGetAttribute @ 4000 (out: Out<u8>, attribute: u32, address: u64) => pointer::attribute;
    cuPointerGetAttributes / cuPointerGetAttributes @ 7000 (count: u32, list: In<u32>, out: In<Out<u8>>, address: u64) => pointer::attributes;
    cuPointerSetAttribute / cuPointerSetAttribute @ 6000 (value: In<u32>, attribute: u32, address: u64) => pointer::set_attribute;

    // copies
    cuMemcpy / cuMemcpy @ 4000 (to: u64, from: u64, bytes: usize) + cuMemcpy_ptds => copy::any;
    cuMemcpyAsync / cuMemcpyAsync @ 4000 (to: u64, from: u64, bytes: usize, stream: Handle) + cuMemcpyAsync_ptsz => copy::any_async;
    cuMemcpyHtoD_v2 / cuMemcpyHtoD @ 3020 (to: u64, from: Address, bytes: usize) + cuMemcpyHtoD_v2_ptds => copy::to_device;
    cuMemcpyDtoH_v2 / cuMemcpyDtoH @ 3020 (to: Address, from: u64, bytes: usize) + cuMemcpyDtoH_v2_ptds => copy::to_host;
    cuMemcpyDtoD_v2 / cuMemcpyDtoD @ 3020 (to: u64, from: u64, bytes: usize) + cuMemcpyDtoD_v2_ptds => copy::on_device;
    cuMemcpyHtoDAsync_v2 / cuMemcpyHtoDAsync @ 3020 (to: u64, from: Address, bytes: usize, stream: Handle) + cuMemcpyHtoDAsync_v2_ptsz => copy::to_device_async;
    cuMemcpyDtoHAsync_v2 / cuMemcpyDtoHAsync @ 3020 (to: Address, from: u64, bytes: usize, stream: Handle) + cuMemcpyDtoHAsync_v2_ptsz => copy::to_host_async;
    cuMemcpyDtoDAsync_v2 / cuMemcpyDtoDAsync @ 3020 (to: u64, from: u64, bytes: usize, stream: Handle) + cuMemcpyDtoDAsync_v2_ptsz => copy::on_device_async;
    cuMemcpyPeer / cuMemcpyPeer @ 4000 (to: u64, to_context: Handle, from: u64, from_context: Handle, bytes: usize) + cuMemcpyPeer_ptds => copy::peer;
    cuMemcpyPeerAsync / cuMemcpyPeerAsync @ 4000 (to: u64, to_context: Handle, from: u64, from_context: Handle, bytes: usize, stream: Handle) + cuMemcpyPeerAsync_ptsz => copy::peer_async;
    cuMemcpy2D_v2 / cuMemcpy2D @ 3020 (copy: In<Memcpy2d>) + cuMemcpy2D_v2_ptds => copy::rows;
    cuMemcpy2DUnaligned_v2 / cuMemcpy2DUnaligned @ 3020 (copy: In<Memcpy2d>) + cuMemcpy2DUnaligned_v2_ptds => copy::rows;
    cuMemcpy2DAsync_v2 / cuMemcpy2DAsync @ 3020 (copy: In<Memcpy2d>, stream: Handle) + cuMemcpy2DAsync_v2_ptsz => copy::rows_async;
    cuMemcpy3D_v2 / cuMemcpy3D @ 3020 (copy: In<Memcpy3d>) + cuMemcpy3D_v2_ptds => copy::slices;
    cuMemcpy3DAsync_v2 / cuMemcpy3DAsync @ 3020 (copy: In<Memcpy3d>, stream: Handle) + cuMemcpy3DAsync_v2_ptsz => copy::slices_async;
    cuMemcpy3DPeer / cuMemcpy3DPeer @ 4000 (copy: In<Memcpy3d>) + cuMemcpy3DPeer_ptds => copy::slices;
    cuMemcpy3DPeerAsync / cuMemcpy3DPeerAsync @ 4000 (copy: In<Memcpy3d>, stream: Handle) + cuMemcpy3DPeerAsync_ptsz => copy::slices_async;
    cuMemsetD8_v2 / cuMemsetD8 @ 3020 (to: u64, value: u8, count: usize) + cuMemsetD8_v2_ptds => copy::fill8;
    cuMemsetD16_v2 / cuMemsetD16 @ 3020 (to: u64, value: u16, count: usize) + cuMemsetD16_v2_ptds => copy::fill16;
    cuMemsetD32_v2 / cuMemsetD32 @ 3020 (to: u64, value: u32, count: usize) + cuMemsetD32_v2_ptds => copy::fill32;
    cuMemsetD8Async / cuMemsetD8Async @ 3020 (to: u64, value: u8, count: usize, stream: Handle) + cuMemsetD8Async_ptsz => copy::fill8_async;
    cuMemsetD16Async / cuMemsetD16Async @ 3020 (to: u64, value: u16, count: usize, stream: Handle) + cuMemsetD16Async_ptsz => copy::fill16_async;
    cuMemsetD32Async / cuMemsetD32Async @ 3020 (to: u64, value: u32, count: usize, stream: Handle) + cuMemsetD32Async_ptsz => copy::fill32_async;
    cuMemsetD2D8_v2 / cuMemsetD2D8 @ 3020 (to: u64, pitch: usize, value: u8, width: usize, height: usize) + cuMemsetD2D8_v2_ptds => copy::fill2d8;
    cuMemsetD2D16_v2 / cuMemsetD2D16 @ 3020 (to: u64, pitch: usize, value: u16, width: usize, height: usize) + cuMemsetD2D16_v2_ptds => copy::fill2d16;
    cuMemsetD2D32_v2 / cuMemsetD2D32 @ 3020 (to: u64, pitch: usize, value: u32, width: usize, height: usize) + cuMemsetD2D32_v2_ptds => copy::fill2d32;
    cuMemsetD2D8Async / cuMemsetD2D8Async @ 3020 (to: u64, pitch: usize, value: u8, width: usize, height: usize, stream: Handle) + cuMemsetD2D8Async_ptsz => copy::fill2d8_async;
    cuMemsetD2D16Async / cuMemsetD2D16Async @ 3020 (to: u64, pitch: usize, value: u16, width: usize, height: usize, stream: Handle) + cuMemsetD2D16Async_ptsz => copy::fill2d16_async;
    cuMemsetD2D32Async / cuMemsetD2D32Async @ 3020 (to: u64, pitch: usize, value: u32, width: usize, height: usize, stream: Handle) + cuMemsetD2D32Async_ptsz => copy::fill2d32_async;

    // pools
    cuMemAllocAsync / cuMemAllocAsync @ 11020 (out: Out<u64>, bytes: usize, stream: Handle) + cuMemAllocAsync_ptsz => pool::alloc;
    cuMemAllocFromPoolAsync / cuMemAllocFromPoolAsync @ 11020 (out: Out<u64>, bytes: usize, pool: Handle, stream: Handle) + cuMemAllocFromPoolAsync_ptsz => pool::alloc_from;
    cuMemFreeAsync / cuMemFreeAsync @ 11020 (address: u64, stream: Handle) + cuMemFreeAsync_ptsz => pool::free;
    cuDeviceGetDefaultMemPool / cuDeviceGetDefaultMemPool @ 11020 (out: Out<Handle>, device: i32) => pool::default;
    cuDeviceGetMemPool / cuDeviceGetMemPool @ 11020 (out: Out<Handle>, device: i32) => pool::current;
    cuDeviceSetMemPool / cuDeviceSetMemPool @ 11020 (device: i32, pool: Handle) => pool::set_current;
    cuMemPoolCreate / cuMemPoolCreate @ 11020 (out: Out<Handle>, props: In<PoolProps>) => pool::create;
    cuMemPoolDestroy / cuMemPoolDestroy @ 11020 (pool: Handle) => pool::destroy;
    cuMemPoolTrimTo / cuMemPoolTrimTo @ 11020 (pool: Handle, keep: usize) => pool::trim;
    cuMemPoolGetAttribute / cuMemPoolGetAttribute @ 11020 (pool: Handle, attribute: u32, out: Out<u32>) => pool::get_attribute;
    cuMemPoolSetAttribute / cuMemPoolSetAttribute @ 11020 (pool: Handle, attribute: u32, value: In<u32>) => pool::set_attribute;
    cuMemPoolSetAccess / cuMemPoolSetAccess @ 11020 (pool: Handle, list: In<AccessDesc>, count: usize) => pool::set_access;
    cuMemPoolGetAccess / cuMemPoolGetAccess @ 11020 (out: Out<u32>, pool: Handle, place: In<Location>) => pool::get_access;

    // modules
    cuModuleLoad / cuModuleLoad @ 2000 (out: Out<Handle>, path: Text) => module::load_file;
    cuModuleLoadData / cuModuleLoadData @ 2000 (out: Out<Handle>, image: Address) => module::load_data;
    cuModuleLoadDataEx / cuModuleLoadDataEx @ 2010 (out: Out<Handle>, image: Address, count: u32, names: In<u32>, values: Out<usize>) => module::load_data_ex;
    cuModuleLoadFatBinary / cuModuleLoadFatBinary @ 2000 (out: Out<Handle>, image: Address) => module::load_data;
    cuModuleUnload / cuModuleUnload @ 2000 (module: Handle) => module::unload;
    cuModuleGetLoadingMode / cuModuleGetLoadingMode @ 11070 (out: Out<u32>) => module::loading_mode;
    cuModuleGetFunction / cuModuleGetFunction @ 2000 (out: Out<Handle>, module: Handle, name: Text) => module::function;
    cuModuleGetFunctionCount / cuModuleGetFunctionCount @ 12040 (out: Out<u32>, module: Handle) => module::function_count;
    cuModuleEnumerateFunctions / cuModuleEnumerateFunctions @ 12040 (out: Out<Handle>, count: u32, module: Handle) => module::functions;
    cuModuleGetGlobal_v2 / cuModuleGetGlobal @ 3020 (start: Out<u64>, bytes: Out<usize>, module: Handle, name: Text) => module::global;
    cuLinkCreate_v2 / cuLinkCreate @ 6050 (count: u32, names: In<u32>, values: In<usize>, out: Out<Handle>) => link::create;
    cuLinkAddData_v2 / cuLinkAddData @ 6050 (linker: Handle, kind: u32, data: Address, bytes: usize, name: Text, count: u32, names: In<u32>, values: In<usize>) => link::add_data;
    cuLinkAddFile_v2 / cuLinkAddFile @ 6050 (linker: Handle, kind: u32, path: Text, count: u32, names: In<u32>, values: In<usize>) => link::add_file;
    cuLinkComplete / cuLinkComplete @ 5050 (linker: Handle, out: Out<Address>, bytes: Out<usize>) => link::complete;
    cuLinkDestroy / cuLinkDestroy @ 5050 (linker: Handle) => link::destroy;
    cuLibraryLoadData / cuLibraryLoadData @ 12000 (out: Out<Handle>, code: Address, names: In<u32>, values: Out<usize>, count: u32, library_names: In<u32>, library_values: In<usize>, library_count: u32) => library::load_data;
    cuLibraryLoadFromFile / cuLibraryLoadFromFile @ 12000 (out: Out<Handle>, path: Text, names: In<u32>, values: Out<usize>, count: u32, library_names: In<u32>, library_values: In<usize>, library_count: u32) => library::load_file;
    cuLibraryUnload / cuLibraryUnload @ 12000 (library: Handle) => library::unload;
    cuLibraryGetKernel / cuLibraryGetKernel @ 12000 (out: Out<Handle>, library: Handle, name: Text) => library::kernel;
    cuLibraryGetKernelCount / cuLibraryGetKernelCount @ 12040 (out: Out<u32>, library: Handle) => library::kernel_count;
    cuLibraryEnumerateKernels / cuLibraryEnumerateKernels @ 12040 (out: Out<Handle>, count: u32, library: Handle) => library::kernels;
    cuLibraryGetModule / cuLibraryGetModule @ 12000 (out: Out<Handle>, library: Handle) => library::module;
    cuLibraryGetGlobal / cuLibraryGetGlobal @ 12000 (start: Out<u64>, bytes: Out<usize>, library: Handle, name: Text) => library::global;
    cuLibraryGetManaged / cuLibraryGetManaged @ 12000 (start: Out<u64>, bytes: Out<usize>, library: Handle, name: Text) => library::managed;
    cuKernelGetFunction / cuKernelGetFunction @ 12000 (out: Out<Handle>, kernel: Handle) => library::kernel_function;
    cuKernelGetLibrary / cuKernelGetLibrary @ 12050 (out: Out<Handle>, kernel: Handle) => library::kernel_library;
    cuKernelGetName / cuKernelGetName @ 12030 (out: Out<*const c_char>, kernel: Handle) => library::kernel_name;
    cuKernelGetAttribute / cuKernelGetAttribute @ 12000 (out: Out<i32>, attribute: u32, kernel: Handle, device: i32) => library::kernel_attribute;
    cuKernelSetAttribute / cuKernelSetAttribute @ 12000 (attribute: u32, value: i32, kernel: Handle, device: i32) => library::set_kernel_attribute;
    cuKernelSetCacheConfig / cuKernelSetCacheConfig @ 12000 (kernel: Handle, config: u32, device: i32) => library::set_kernel_cache_config;
    cuKernelGetParamInfo / cuKernelGetParamInfo @ 12040 (kernel: Handle, n: usize, offset: Out<usize>, size: Out<usize>) => launch::parameter;

    // functions
    cuFuncGetAttribute / cuFuncGetAttribute @ 2020 (out: Out<i32>, attribute: u32, function: Handle) => launch::attribute;
    cuFuncSetAttribute / cuFuncSetAttribute @ 9000 (function: Handle, attribute: u32, value: i32) => launch::set_attribute;
    cuFuncSetCacheConfig / cuFuncSetCacheConfig @ 3000 (function: Handle, config: u32) => launch::set_cache_config;
    cuFuncSetSharedMemConfig / cuFuncSetSharedMemConfig @ 4020 (function: Handle, config: u32) => launch::set_shared_config;
    cuFuncGetModule / cuFuncGetModule @ 11000 (out: Out<Handle>, function: Handle) => launch::module;
    cuFuncGetName / cuFuncGetName @ 12030 (out: Out<*const c_char>, function: Handle) => launch::name;
    cuFuncGetParamInfo / cuFuncGetParamInfo @ 12040 (function: Handle, n: usize, offset: Out<usize>, size: Out<usize>) => launch::parameter;
    cuFuncIsLoaded / cuFuncIsLoaded @ 12040 (out: Out<u32>, function: Handle) => launch::is_loaded;
    cuFuncLoad / cuFuncLoad @ 12040 (function: Handle) => launch::load;
    cuLaunchKernel / cuLaunchKernel @ 4000 (function: Handle, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Handle, params: In<usize>, extra: In<usize>) + cuLaunchKernel_ptsz => launch::kernel;
    cuLaunchKernelEx / cuLaunchKernelEx @ 11060 (config: In<LaunchConfig>, function: Handle, params: In<usize>, extra: In<usize>) + cuLaunchKernelEx_ptsz => launch::kernel_ex;
    cuLaunchCooperativeKernel / cuLaunchCooperativeKernel @ 9000 (function: Handle, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Handle, params: In<usize>) + cuLaunchCooperativeKernel_ptsz => launch::cooperative;
    cuLaunchHostFunc / cuLaunchHostFunc @ 10000 (stream: Handle, function: Option<unsafe extern "C" fn(*mut c_void)>, data: usize) + cuLaunchHostFunc_ptsz => launch::host_function;
    cuOccupancyMaxActiveBlocksPerMultiprocessor / cuOccupancyMaxActiveBlocksPerMultiprocessor @ 6050 (out: Out<i32>, function: Handle, threads: i32, dynamic: usize) => occupancy::max_active;
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags / cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags @ 7000 (out: Out<i32>, function: Handle, threads: i32, dynamic: usize, flags: u32) => occupancy::max_active_flags;
    cuOccupancyMaxPotentialBlockSize / cuOccupancyMaxPotentialBlockSize @ 6050 (grid: Out<i32>, block: Out<i32>, function: Handle, bytes_for: Option<unsafe extern "C" fn(i32) -> usize>, dynamic: usize, limit: i32) => occupancy::max_potential;
    cuOccupancyMaxPotentialBlockSizeWithFlags / cuOccupancyMaxPotentialBlockSizeWithFlags @ 7000 (grid: Out<i32>, block: Out<i32>, function: Handle, bytes_for: Option<unsafe extern "C" fn(i32) -> usize>, dynamic: usize, limit: i32, flags: u32) => occupancy::max_potential_flags;
    cuOccupancyAvailableDynamicSMemPerBlock / cuOccupancyAvailableDynamicSMemPerBlock @ 10020 (out: Out<usize>, function: Handle, ctas: i32, threads: i32) => occupancy::available_shared;
    cuOccupancyMaxActiveClusters / cuOccupancyMaxActiveClusters @ 11070 (out: Out<i32>, function: Handle, config: In<LaunchConfig>) => occupancy::max_clusters;
    cuOccupancyMaxPotentialClusterSize / cuOccupancyMaxPotentialClusterSize @ 11070 (out: Out<i32>, function: Handle, config: In<LaunchConfig>) => occupancy::max_cluster_size;

    // streams
    cuStreamCreate / cuStreamCreate @ 2000 (out: Out<Handle>, flags: u32) => stream::create;
    cuStreamCreateWithPriority / cuStreamCreateWithPriority @ 5050 (out: Out<Handle>, flags: u32, priority: i32) => stream::create_with_priority;
    cuStreamDestroy / cuStreamDestroy @ 2000 (stream: Handle) => stream::destroy;
    cuStreamDestroy_v2 / cuStreamDestroy @ 4000 (stream: Handle) => stream::destroy;
    cuStreamSynchronize / cuStreamSynchronize @ 2000 (stream: Handle) + cuStreamSynchronize_ptsz => stream::synchronize;
    cuStreamQuery / cuStreamQuery @ 2000 (stream: Handle) + cuStreamQuery_ptsz => stream::query;
    cuStreamWaitEvent / cuStreamWaitEvent @ 3020 (stream: Handle, event: Handle, flags: u32) + cuStreamWaitEvent_ptsz => stream::wait_event;
    cuStreamAddCallback / cuStreamAddCallback @ 5000 (stream: Handle, callback: Option<unsafe extern "C" fn(Handle, u32, *mut c_void)>, data: usize, flags: u32) + cuStreamAddCallback_ptsz => stream::add_callback;
    cuStreamGetCtx / cuStreamGetCtx @ 9020 (stream: Handle, out: Out<Handle>) + cuStreamGetCtx_ptsz => stream::context_of;
    cuStreamGetCtx_v2 / cuStreamGetCtx @ 12050 (stream: Handle, out: Out<Handle>, green: Out<Handle>) + cuStreamGetCtx_v2_ptsz => stream::context_of_v2;
    cuStreamGetDevice / cuStreamGetDevice @ 12080 (stream: Handle, out: Out<i32>) + cuStreamGetDevice_ptsz => stream::device_of;
    cuStreamGetFlags / cuStreamGetFlags @ 5050 (stream: Handle, out: Out<u32>) + cuStreamGetFlags_ptsz => stream::flags_of;
    cuStreamGetPriority / cuStreamGetPriority @ 5050 (stream: Handle, out: Out<i32>) + cuStreamGetPriority_ptsz => stream::priority_of;
    cuStreamGetId / cuStreamGetId @ 12000 (stream: Handle, out: Out<u64>) + cuStreamGetId_ptsz => stream::id_of;
    cuStreamAttachMemAsync / cuStreamAttachMemAsync @ 6000 (stream: Handle, address: u64, bytes: usize, flags: u32) + cuStreamAttachMemAsync_ptsz => stream::attach_memory;
    cuStreamCopyAttributes / cuStreamCopyAttributes @ 11000 (to: Handle, from: Handle) + cuStreamCopyAttributes_ptsz => stream::copy_attributes;
    cuStreamGetAttribute / cuStreamGetAttribute @ 11000 (stream: Handle, attribute: u32, out: Out<[u32; 16]>) + cuStreamGetAttribute_ptsz => stream::get_attribute;
    cuStreamSetAttribute / cuStreamSetAttribute @ 11000 (stream: Handle, attribute: u32, value: usize) + cuStreamSetAttribute_ptsz => stream::set_attribute;
    cuStreamWaitValue32_v2 / cuStreamWaitValue32 @ 11070 (stream: Handle, address: u64, value: u32, flags: u32) + cuStreamWaitValue32_v2_ptsz => stream::wait_value32;
    cuStreamWaitValue64_v2 / cuStreamWaitValue64 @ 11070 (stream: Handle, address: u64, value: u64, flags: u32) + cuStreamWaitValue64_v2_ptsz => stream::wait_value64;
    cuStreamWriteValue32_v2 / cuStreamWriteValue32 @ 11070 (stream: Handle, address: u64, value: u32, flags: u32) + cuStreamWriteValue32_v2_ptsz => stream::write_value32;
    cuStreamWriteValue64_v2 / cuStreamWriteValue64 @ 11070 (stream: Handle, address: u64, value: u64, flags: u32) + cuStreamWriteValue64_v2_ptsz => stream::write_value64;
    cuStreamBeginCapture_v2 / cuStreamBeginCapture @ 10010 (stream: Handle, mode: u32) + cuStreamBeginCapture_v2_ptsz => graph::begin_capture;
    cuStreamEndCapture / cuStreamEndCapture @ 10000 (stream: Handle, out: Out<Handle>) + cuStreamEndCapture_ptsz => graph::end_capture;
    cuStreamIsCapturing / cuStreamIsCapturing @ 10000 (stream: Handle, out: Out<u32>) + cuStreamIsCapturing_ptsz => graph::is_stream_capturing;
    cuStreamGetCaptureInfo_v2 / cuStreamGetCaptureInfo @ 11030 (stream: Handle, out: Out<u32>, id: Out<u64>, graph: Out<Handle>, nodes: Out<Handle>, count: Out<usize>) + cuStreamGetCaptureInfo_v2_ptsz => graph::capture_info;
    cuStreamGetCaptureInfo_v3 / cuStreamGetCaptureInfo @ 12030 (stream: Handle, out: Out<u32>, id: Out<u64>, graph: Out<Handle>, nodes: Out<Handle>, edges: Out<Handle>, count: Out<usize>) + cuStreamGetCaptureInfo_v3_ptsz => graph::capture_info_v3;
    cuThreadExchangeStreamCaptureMode / cuThreadExchangeStreamCaptureMode @ 10010 (mode: Out<u32>) => graph::exchange_mode;

    // events
    cuEventCreate / cuEventCreate @ 2000 (out: Out<Handle>, flags: u32) => event::create;
    cuEventDestroy / cuEventDestroy @ 2000 (event: Handle) => event::destroy;
    cuEventDestroy_v2 / cuEventDestroy @ 4000 (event: Handle) => event::destroy;
    cuEventRecord / cuEventRecord @ 2000 (event: Handle, stream: Handle) + cuEventRecord_ptsz => event::record;
    cuEventRecordWithFlags / cuEventRecordWithFlags @ 11010 (event: Handle, stream: Handle, flags: u32) + cuEventRecordWithFlags_ptsz => event::record_flags;
    cuEventQuery / cuEventQuery @ 2000 (event: Handle) => event::query;
    cuEventSynchronize / cuEventSynchronize @ 2000 (event: Handle) => event::synchronize;
    cuEventElapsedTime / cuEventElapsedTime @ 2000 (out: Out<f32>, start: Handle, end: Handle) => event::elapsed;
    cuEventElapsedTime_v2 / cuEventElapsedTime @ 12080 (out: Out<f32>, start: Handle, end: Handle) => event::elapsed;

    // graphs
    cuGraphCreate / cuGraphCreate @ 10000 (out: Out<Handle>, flags: u32) => graph::create;
    cuGraphDestroy / cuGraphDestroy @ 10000 (graph: Handle) => graph::destroy;
    cuGraphClone / cuGraphClone @ 10000 (out: Out<Handle>, graph: Handle) => graph::clone;
    cuGraphInstantiate_v2 / cuGraphInstantiate @ 11000 (out: Out<Handle>, graph: Handle, node: Out<Handle>, log: Out<u8>, bytes: usize) => graph::instantiate_v2;
    cuGraphInstantiateWithFlags / cuGraphInstantiateWithFlags @ 11040 (out: Out<Handle>, graph: Handle, flags: u64) => graph::instantiate;
    cuGraphInstantiateWithParams / cuGraphInstantiateWithParams @ 12000 (out: Out<Handle>, graph: Handle, params: Out<[u64; 4]>) + cuGraphInstantiateWithParams_ptsz => graph::instantiate_params;
    cuGraphExecDestroy / cuGraphExecDestroy @ 10000 (exec: Handle) => graph::exec_destroy;
    cuGraphExecGetFlags / cuGraphExecGetFlags @ 12000 (exec: Handle, out: Out<u64>) => graph::exec_flags;
    cuGraphLaunch / cuGraphLaunch @ 10000 (exec: Handle, stream: Handle) + cuGraphLaunch_ptsz => graph::launch;
    cuGraphUpload / cuGraphUpload @ 11010 (exec: Handle, stream: Handle) + cuGraphUpload_ptsz => graph::upload;
    cuGraphExecUpdate_v2 / cuGraphExecUpdate @ 12000 (exec: Handle, graph: Handle, result: Out<u64>) => graph::exec_update;
    cuGraphGetNodes / cuGraphGetNodes @ 10000 (graph: Handle, out: Out<Handle>, count: Out<usize>) => graph::nodes;
    cuGraphGetRootNodes / cuGraphGetRootNodes @ 10000 (graph: Handle, out: Out<Handle>, count: Out<usize>) => graph::root_nodes;
    cuGraphGetEdges / cuGraphGetEdges @ 10000 (graph: Handle, from: Out<Handle>, to: Out<Handle>, count: Out<usize>) => graph::edges;
    cuGraphAddDependencies / cuGraphAddDependencies @ 10000 (graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) => graph::add_dependencies;
    cuGraphRemoveDependencies / cuGraphRemoveDependencies @ 10000 (graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) => graph::remove_dependencies;
    cuGraphAddKernelNode / cuGraphAddKernelNode @ 10000 (out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, node: In<KernelNodeV1>) => graph_nodes::add_kernel;
    cuGraphAddKernelNode_v2 / cuGraphAddKernelNode @ 12000 (out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, node: In<KernelNode>) => graph_nodes::add_kernel_v2;
    cuGraphAddMemcpyNode / cuGraphAddMemcpyNode @ 10000 (out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, copy: In<Memcpy3d>, context: Handle) => graph_nodes::add_copy;
    cuGraphAddMemsetNode / cuGraphAddMemsetNode @ 10000 (out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, node: In<MemsetNode>, context: Handle) => graph_nodes::add_fill;
    cuGraphAddHostNode / cuGraphAddHostNode @ 10000 (out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, node: In<HostNode>) => graph_nodes::add_host;
    cuGraphAddEmptyNode / cuGraphAddEmptyNode @ 10000 (out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize) => graph_nodes::add_empty;
    cuGraphAddChildGraphNode / cuGraphAddChildGraphNode @ 10000 (out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, child: Handle) => graph_nodes::add_child;
    cuGraphAddEventRecordNode / cuGraphAddEventRecordNode @ 11010 (out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, event: Handle) => graph_nodes::add_record;
    cuGraphAddEventWaitNode / cuGraphAddEventWaitNode @ 11010 (out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, event: Handle) => graph_nodes::add_wait;
    cuGraphNodeGetType / cuGraphNodeGetType @ 10000 (node: Handle, out: Out<u32>) => graph_nodes::kind;
    cuGraphNodeGetDependencies / cuGraphNodeGetDependencies @ 10000 (node: Handle, out: Out<Handle>, count: Out<usize>) => graph_nodes::dependencies;
    cuGraphNodeGetDependentNodes / cuGraphNodeGetDependentNodes @ 10000 (node: Handle, out: Out<Handle>, count: Out<usize>) => graph_nodes::dependents;
    cuGraphDestroyNode / cuGraphDestroyNode @ 10000 (node: Handle) => graph_nodes::destroy;
    cuGraphChildGraphNodeGetGraph / cuGraphChildGraphNodeGetGraph @ 10000 (node: Handle, out: Out<Handle>) => graph_nodes::child_graph;
    cuGraphKernelNodeSetParams / cuGraphKernelNodeSetParams @ 10000 (node: Handle, params: In<KernelNodeV1>) => graph_nodes::set_kernel;
    cuGraphKernelNodeSetParams_v2 / cuGraphKernelNodeSetParams @ 12000 (node: Handle, params: In<KernelNode>) => graph_nodes::set_kernel_v2;
    cuGraphMemcpyNodeSetParams / cuGraphMemcpyNodeSetParams @ 10000 (node: Handle, copy: In<Memcpy3d>) => graph_nodes::set_copy;
    cuGraphMemsetNodeSetParams / cuGraphMemsetNodeSetParams @ 10000 (node: Handle, params: In<MemsetNode>) => graph_nodes::set_fill;
    cuGraphHostNodeSetParams / cuGraphHostNodeSetParams @ 10000 (node: Handle, params: In<HostNode>) => graph_nodes::set_host;
    cuGraphExecKernelNodeSetParams / cuGraphExecKernelNodeSetParams @ 10010 (exec: Handle, node: Handle, params: In<KernelNodeV1>) => graph_nodes::exec_set_kernel;
    cuGraphExecKernelNodeSetParams_v2 / cuGraphExecKernelNodeSetParams @ 12000 (exec: Handle, node: Handle, params: In<KernelNode>) => graph_nodes::exec_set_kernel_v2;
    cuGraphExecMemcpyNodeSetParams / cuGraphExecMemcpyNodeSetParams @ 10020 (exec: Handle, node: Handle, copy: In<Memcpy3d>, context: Handle) => graph_nodes::exec_set_copy;
    cuGraphExecMemsetNodeSetParams / cuGraphExecMemsetNodeSetParams @ 10020 (exec: Handle, node: Handle, params: In<MemsetNode>, context: Handle) => graph_nodes::exec_set_fill;
    cuGraphExecHostNodeSetParams / cuGraphExecHostNodeSetParams @ 10020 (exec: Handle, node: Handle, params: In<HostNode>) => graph_nodes::exec_set_host;
    cuGraphExecChildGraphNodeSetParams / cuGraphExecChildGraphNodeSetParams @ 11010 (exec: Handle, node: Handle, child: Handle) => graph_nodes::exec_set_child;
    cuUserObjectCreate / cuUserObjectCreate @ 11030 (out: Out<Handle>, data: usize, destroy: Option<unsafe extern "C" fn(*mut c_void)>, count: u32, flags: u32) => user_object::create;
    cuUserObjectRetain / cuUserObjectRetain @ 11030 (object: Handle, count: u32) => user_object::retain;
    cuUserObjectRelease / cuUserObjectRelease @ 11030 (object: Handle, count: u32) => user_object::release;
    cuGraphRetainUserObject / cuGraphRetainUserObject @ 11030 (graph: Handle, object: Handle, count: u32, flags: u32) => user_object::graph_retain;
    cuGraphReleaseUserObject / cuGraphReleaseUserObject @ 11030 (graph: Handle, object: Handle, count: u32) => user_object::graph_release;
    cuIpcGetMemHandle / cuIpcGetMemHandle @ 4010 (out: Out<IpcHandle>, address: u64) => ipc::get;
    cuIpcOpenMemHandle / cuIpcOpenMemHandle @ 4010 (out: Out<u64>, handle: IpcHandle, flags: u32) => ipc::open;
    cuIpcOpenMemHandle_v2 / cuIpcOpenMemHandle @ 11000 (out: Out<u64>, handle: IpcHandle, flags: u32) => ipc::open;
    cuIpcCloseMemHandle / cuIpcCloseMemHandle @ 4010 (address: u64) => ipc::close;
    cuMemGetAllocationGranularity / cuMemGetAllocationGranularity @ 10020 (out: Out<usize>, prop: In<AllocationProp>, option: u32) => vmm::granularity;
    cuMemAddressReserve / cuMemAddressReserve @ 10020 (out: Out<u64>, bytes: usize, align: usize, address: u64, flags: u64) => vmm::reserve;
    cuMemAddressFree / cuMemAddressFree @ 10020 (address: u64, bytes: usize) => vmm::free_address;
    cuMemCreate / cuMemCreate @ 10020 (out: Out<u64>, bytes: usize, prop: In<AllocationProp>, flags: u64) => vmm::create;
    cuMemRelease / cuMemRelease @ 10020 (memory: u64) => vmm::release;
    cuMemMap / cuMemMap @ 10020 (address: u64, bytes: usize, offset: usize, memory: u64, flags: u64) => vmm::map;
    cuMemUnmap / cuMemUnmap @ 10020 (address: u64, bytes: usize) => vmm::unmap;
    cuMemSetAccess / cuMemSetAccess @ 10020 (address: u64, bytes: usize, list: In<AccessDesc>, count: usize) => vmm::set_access;
    cuMemGetAccess / cuMemGetAccess @ 10020 (out: Out<u64>, place: In<Location>, address: u64) => vmm::get_access;
    cuMemGetAllocationPropertiesFromHandle / cuMemGetAllocationPropertiesFromHandle @ 10020 (out: Out<AllocationProp>, memory: u64) => vmm::properties;
    cuMemRetainAllocationHandle / cuMemRetainAllocationHandle @ 11000 (out: Out<u64>, address: usize) => vmm::retain;
    cuMemExportToShareableHandle / cuMemExportToShareableHandle @ 10020 (out: Out<i32>, memory: u64, kind: u32, flags: u64) => vmm::export;
    cuMemImportFromShareableHandle / cuMemImportFromShareableHandle @ 10020 (out: Out<u64>, descriptor: usize, kind: u32) => vmm::import;
    cuGraphAddDependencies_v2 / cuGraphAddDependencies @ 12030 (graph: Handle, from: In<Handle>, to: In<Handle>, edges: usize, count: usize) => graph::add_dependencies_v2;
    cuGraphRemoveDependencies_v2 / cuGraphRemoveDependencies @ 12030 (graph: Handle, from: In<Handle>, to: In<Handle>, edges: usize, count: usize) => graph::remove_dependencies_v2;
    cuGraphGetEdges_v2 / cuGraphGetEdges @ 12030 (graph: Handle, from: Out<Handle>, to: Out<Handle>, edges: Out<u64>, count: Out<usize>) => graph::edges_v2;
    cuGraphNodeGetDependencies_v2 / cuGraphNodeGetDependencies @ 12030 (node: Handle, out: Out<Handle>, edges: Out<u64>, count: Out<usize>) => graph_nodes::dependencies_v2;
    cuGraphNodeGetDependentNodes_v2 / cuGraphNodeGetDependentNodes @ 12030 (node: Handle, out: Out<Handle>, edges: Out<u64>, count: Out<usize>) => graph_nodes::dependents_v2;
    cuStreamWaitValue32 / cuStreamWaitValue32 @ 8000 (stream: Handle, address: u64, value: u32, flags: u32) + cuStreamWaitValue32_ptsz => stream::wait_value32;
    cuStreamWaitValue64 / cuStreamWaitValue64 @ 9000 (stream: Handle, address: u64, value: u64, flags: u32) + cuStreamWaitValue64_ptsz => stream::wait_value64;
    cuStreamWriteValue32 / cuStreamWriteValue32 @ 8000 (stream: Handle, address: u64, value: u32, flags: u32) + cuStreamWriteValue32_ptsz => stream::write_value32;
    cuStreamWriteValue64 / cuStreamWriteValue64 @ 9000 (stream: Handle, address: u64, value: u64, flags: u32) + cuStreamWriteValue64_ptsz => stream::write_value64;
    cuStreamGetCaptureInfo / cuStreamGetCaptureInfo @ 10010 (stream: Handle, out: Out<u32>, id: Out<u64>) + cuStreamGetCaptureInfo_ptsz => graph::capture_info_v1;
    cuFuncSetBlockShape / cuFuncSetBlockShape @ 2000 (function: Handle, x: i32, y: i32, z: i32) => legacy::set_block;
    cuFuncSetSharedSize / cuFuncSetSharedSize @ 2000 (function: Handle, bytes: u32) => legacy::set_shared;
    cuParamSetSize / cuParamSetSize @ 2000 (function: Handle, bytes: u32) => legacy::set_size;
    cuParamSeti / cuParamSeti @ 2000 (function: Handle, offset: i32, value: u32) => legacy::set_int;
    cuParamSetf / cuParamSetf @ 2000 (function: Handle, offset: i32, value: f32) => legacy::set_float;
    cuParamSetv / cuParamSetv @ 2000 (function: Handle, offset: i32, data: Address, bytes: u32) => legacy::set_bytes;
    cuLaunch / cuLaunch @ 2000 (function: Handle) => legacy::launch;
    cuLaunchGrid / cuLaunchGrid @ 2000 (function: Handle, width: i32, height: i32) => legacy::launch_grid;
    cuLaunchGridAsync / cuLaunchGridAsync @ 2000 (function: Handle, width: i32, height: i32, stream: Handle) => legacy::launch_grid_async;
}
also {
    // One function, found by two names.
    cuGraphInstantiate @ 12000 => cuGraphInstantiateWithFlags;
}
missing {
    cuDevSmResourceSplit / cuDevSmResourceSplit;
    cuDeviceGetHostAtomicCapabilities / cuDeviceGetHostAtomicCapabilities;
    cuDeviceGetP2PAtomicCapabilities / cuDeviceGetP2PAtomicCapabilities;
    cuGraphExecGetId / cuGraphExecGetId;
    cuGraphExecUpdate / cuGraphExecUpdate;
    cuGraphGetId / cuGraphGetId;
    cuGraphKernelNodeGetParams / cuGraphKernelNodeGetParams;
    cuGraphNodeGetContainingGraph / cuGraphNodeGetContainingGraph;
    cuGraphNodeGetLocalId / cuGraphNodeGetLocalId;
    cuGraphNodeGetToolsId / cuGraphNodeGetToolsId;
    cuGreenCtxGetId / cuGreenCtxGetId;
    cuLogsCurrent / cuLogsCurrent;
    cuLogsDumpToFile / cuLogsDumpToFile;
    cuLogsDumpToMemory / cuLogsDumpToMemory;
    cuLogsRegisterCallback / cuLogsRegisterCallback;
    cuLogsUnregisterCallback / cuLogsUnregisterCallback;
    cuMemDiscardAndPrefetchBatchAsync / cuMemDiscardAndPrefetchBatchAsync;
    cuMemDiscardBatchAsync / cuMemDiscardBatchAsync;
    cuMemGetDefaultMemPool / cuMemGetDefaultMemPool;
    cuMemGetMemPool / cuMemGetMemPool;
    cuMemPrefetchBatchAsync / cuMemPrefetchBatchAsync;
    cuMemSetMemPool / cuMemSetMemPool;
    cuMemcpy3DBatchAsync_v2 / cuMemcpy3DBatchAsync;
    cuMemcpyBatchAsync_v2 / cuMemcpyBatchAsync;
    cuMulticastBindAddr_v2 / cuMulticastBindAddr;
    cuMulticastBindMem_v2 / cuMulticastBindMem;
    cuStreamBatchMemOp / cuStreamBatchMemOp;
    cuStreamGetDevResource / cuStreamGetDevResource;
    cuTensorMapEncodeIm2colWide / cuTensorMapEncodeIm2colWide;
    cuArray3DCreate_v2 / cuArray3DCreate;
    cuArray3DGetDescriptor_v2 / cuArray3DGetDescriptor;
    cuArrayCreate_v2 / cuArrayCreate;
    cuArrayDestroy / cuArrayDestroy;
    cuArrayGetDescriptor_v2 / cuArrayGetDescriptor;
    cuArrayGetMemoryRequirements / cuArrayGetMemoryRequirements;
    cuArrayGetPlane / cuArrayGetPlane;
    cuArrayGetSparseProperties / cuArrayGetSparseProperties;
    cuCtxFromGreenCtx / cuCtxFromGreenCtx;
    cuCtxGetDevResource / cuCtxGetDevResource;
    cuCtxGetExecAffinity / cuCtxGetExecAffinity;
    cuCtxRecordEvent / cuCtxRecordEvent;
    cuCtxWaitEvent / cuCtxWaitEvent;
    cuCoredumpGetAttribute / cuCoredumpGetAttribute;
    cuCoredumpGetAttributeGlobal / cuCoredumpGetAttributeGlobal;
    cuCoredumpSetAttribute / cuCoredumpSetAttribute;
    cuCoredumpSetAttributeGlobal / cuCoredumpSetAttributeGlobal;
    cuDestroyExternalMemory / cuDestroyExternalMemory;
    cuDestroyExternalSemaphore / cuDestroyExternalSemaphore;
    cuDevResourceGenerateDesc / cuDevResourceGenerateDesc;
    cuDevSmResourceSplitByCount / cuDevSmResourceSplitByCount;
    cuDeviceGetDevResource / cuDeviceGetDevResource;
    cuDeviceGetGraphMemAttribute / cuDeviceGetGraphMemAttribute;
    cuDeviceGetNvSciSyncAttributes / cuDeviceGetNvSciSyncAttributes;
    cuDeviceGraphMemTrim / cuDeviceGraphMemTrim;
    cuDeviceRegisterAsyncNotification / cuDeviceRegisterAsyncNotification;
    cuDeviceSetGraphMemAttribute / cuDeviceSetGraphMemAttribute;
    cuDeviceUnregisterAsyncNotification / cuDeviceUnregisterAsyncNotification;
    cuExternalMemoryGetMappedBuffer / cuExternalMemoryGetMappedBuffer;
    cuExternalMemoryGetMappedMipmappedArray / cuExternalMemoryGetMappedMipmappedArray;
    cuGraphAddBatchMemOpNode / cuGraphAddBatchMemOpNode;
    cuGraphAddExternalSemaphoresSignalNode / cuGraphAddExternalSemaphoresSignalNode;
    cuGraphAddExternalSemaphoresWaitNode / cuGraphAddExternalSemaphoresWaitNode;
    cuGraphAddMemAllocNode / cuGraphAddMemAllocNode;
    cuGraphAddMemFreeNode / cuGraphAddMemFreeNode;
    cuGraphAddNode / cuGraphAddNode;
    cuGraphAddNode_v2 / cuGraphAddNode;
    cuGraphBatchMemOpNodeGetParams / cuGraphBatchMemOpNodeGetParams;
    cuGraphBatchMemOpNodeSetParams / cuGraphBatchMemOpNodeSetParams;
    cuGraphConditionalHandleCreate / cuGraphConditionalHandleCreate;
    cuGraphDebugDotPrint / cuGraphDebugDotPrint;
    cuGraphEventRecordNodeGetEvent / cuGraphEventRecordNodeGetEvent;
    cuGraphEventRecordNodeSetEvent / cuGraphEventRecordNodeSetEvent;
    cuGraphEventWaitNodeGetEvent / cuGraphEventWaitNodeGetEvent;
    cuGraphEventWaitNodeSetEvent / cuGraphEventWaitNodeSetEvent;
    cuGraphExecBatchMemOpNodeSetParams / cuGraphExecBatchMemOpNodeSetParams;
    cuGraphExecEventRecordNodeSetEvent / cuGraphExecEventRecordNodeSetEvent;
    cuGraphExecEventWaitNodeSetEvent / cuGraphExecEventWaitNodeSetEvent;
    cuGraphExecExternalSemaphoresSignalNodeSetParams / cuGraphExecExternalSemaphoresSignalNodeSetParams;
    cuGraphExecExternalSemaphoresWaitNodeSetParams / cuGraphExecExternalSemaphoresWaitNodeSetParams;
    cuGraphExecNodeSetParams / cuGraphExecNodeSetParams;
    cuGraphExternalSemaphoresSignalNodeGetParams / cuGraphExternalSemaphoresSignalNodeGetParams;
    cuGraphExternalSemaphoresSignalNodeSetParams / cuGraphExternalSemaphoresSignalNodeSetParams;
    cuGraphExternalSemaphoresWaitNodeGetParams / cuGraphExternalSemaphoresWaitNodeGetParams;
    cuGraphExternalSemaphoresWaitNodeSetParams / cuGraphExternalSemaphoresWaitNodeSetParams;
    cuGraphHostNodeGetParams / cuGraphHostNodeGetParams;
    cuGraphKernelNodeCopyAttributes / cuGraphKernelNodeCopyAttributes;
    cuGraphKernelNodeGetAttribute / cuGraphKernelNodeGetAttribute;
    cuGraphKernelNodeGetParams_v2 / cuGraphKernelNodeGetParams;
    cuGraphKernelNodeSetAttribute / cuGraphKernelNodeSetAttribute;
    cuGraphMemAllocNodeGetParams / cuGraphMemAllocNodeGetParams;
    cuGraphMemFreeNodeGetParams / cuGraphMemFreeNodeGetParams;
    cuGraphMemcpyNodeGetParams / cuGraphMemcpyNodeGetParams;
    cuGraphMemsetNodeGetParams / cuGraphMemsetNodeGetParams;
    cuGraphNodeFindInClone / cuGraphNodeFindInClone;
    cuGraphNodeGetEnabled / cuGraphNodeGetEnabled;
    cuGraphNodeSetEnabled / cuGraphNodeSetEnabled;
    cuGraphNodeSetParams / cuGraphNodeSetParams;
    cuGraphicsMapResources / cuGraphicsMapResources;
    cuGraphicsResourceGetMappedMipmappedArray / cuGraphicsResourceGetMappedMipmappedArray;
    cuGraphicsResourceGetMappedPointer_v2 / cuGraphicsResourceGetMappedPointer;
    cuGraphicsResourceSetMapFlags_v2 / cuGraphicsResourceSetMapFlags;
    cuGraphicsSubResourceGetMappedArray / cuGraphicsSubResourceGetMappedArray;
    cuGraphicsUnmapResources / cuGraphicsUnmapResources;
    cuGraphicsUnregisterResource / cuGraphicsUnregisterResource;
    cuGreenCtxCreate / cuGreenCtxCreate;
    cuGreenCtxDestroy / cuGreenCtxDestroy;
    cuGreenCtxGetDevResource / cuGreenCtxGetDevResource;
    cuGreenCtxRecordEvent / cuGreenCtxRecordEvent;
    cuGreenCtxStreamCreate / cuGreenCtxStreamCreate;
    cuGreenCtxWaitEvent / cuGreenCtxWaitEvent;
    cuImportExternalMemory / cuImportExternalMemory;
    cuImportExternalSemaphore / cuImportExternalSemaphore;
    cuIpcGetEventHandle / cuIpcGetEventHandle;
    cuIpcOpenEventHandle / cuIpcOpenEventHandle;
    cuLaunchCooperativeKernelMultiDevice / cuLaunchCooperativeKernelMultiDevice;
    cuLibraryGetUnifiedFunction / cuLibraryGetUnifiedFunction;
    cuMemBatchDecompressAsync / cuMemBatchDecompressAsync;
    cuMemGetHandleForAddressRange / cuMemGetHandleForAddressRange;
    cuMemMapArrayAsync / cuMemMapArrayAsync;
    cuMemPoolExportPointer / cuMemPoolExportPointer;
    cuMemPoolExportToShareableHandle / cuMemPoolExportToShareableHandle;
    cuMemPoolImportFromShareableHandle / cuMemPoolImportFromShareableHandle;
    cuMemPoolImportPointer / cuMemPoolImportPointer;
    cuMemRangeGetAttributes / cuMemRangeGetAttributes;
    cuMemcpy3DBatchAsync / cuMemcpy3DBatchAsync;
    cuMemcpyAtoA_v2 / cuMemcpyAtoA;
    cuMemcpyAtoD_v2 / cuMemcpyAtoD;
    cuMemcpyAtoH_v2 / cuMemcpyAtoH;
    cuMemcpyAtoHAsync_v2 / cuMemcpyAtoHAsync;
    cuMemcpyBatchAsync / cuMemcpyBatchAsync;
    cuMemcpyDtoA_v2 / cuMemcpyDtoA;
    cuMemcpyHtoA_v2 / cuMemcpyHtoA;
    cuMemcpyHtoAAsync_v2 / cuMemcpyHtoAAsync;
    cuMipmappedArrayCreate / cuMipmappedArrayCreate;
    cuMipmappedArrayDestroy / cuMipmappedArrayDestroy;
    cuMipmappedArrayGetLevel / cuMipmappedArrayGetLevel;
    cuMipmappedArrayGetMemoryRequirements / cuMipmappedArrayGetMemoryRequirements;
    cuMipmappedArrayGetSparseProperties / cuMipmappedArrayGetSparseProperties;
    cuModuleGetSurfRef / cuModuleGetSurfRef;
    cuModuleGetTexRef / cuModuleGetTexRef;
    cuMulticastAddDevice / cuMulticastAddDevice;
    cuMulticastBindAddr / cuMulticastBindAddr;
    cuMulticastBindMem / cuMulticastBindMem;
    cuMulticastCreate / cuMulticastCreate;
    cuMulticastGetGranularity / cuMulticastGetGranularity;
    cuMulticastUnbind / cuMulticastUnbind;
    cuParamSetTexRef / cuParamSetTexRef;
    cuProfilerInitialize / cuProfilerInitialize;
    cuSignalExternalSemaphoresAsync / cuSignalExternalSemaphoresAsync;
    cuStreamBatchMemOp_v2 / cuStreamBatchMemOp;
    cuStreamBeginCaptureToGraph / cuStreamBeginCaptureToGraph;
    cuStreamGetGreenCtx / cuStreamGetGreenCtx;
    cuStreamUpdateCaptureDependencies / cuStreamUpdateCaptureDependencies;
    cuStreamUpdateCaptureDependencies_v2 / cuStreamUpdateCaptureDependencies;
    cuSurfObjectCreate / cuSurfObjectCreate;
    cuSurfObjectDestroy / cuSurfObjectDestroy;
    cuSurfObjectGetResourceDesc / cuSurfObjectGetResourceDesc;
    cuSurfRefGetArray / cuSurfRefGetArray;
    cuSurfRefSetArray / cuSurfRefSetArray;
    cuTensorMapEncodeIm2col / cuTensorMapEncodeIm2col;
    cuTensorMapEncodeTiled / cuTensorMapEncodeTiled;
    cuTensorMapReplaceAddress / cuTensorMapReplaceAddress;
    cuTexObjectCreate / cuTexObjectCreate;
    cuTexObjectDestroy / cuTexObjectDestroy;
    cuTexObjectGetResourceDesc / cuTexObjectGetResourceDesc;
    cuTexObjectGetResourceViewDesc / cuTexObjectGetResourceViewDesc;
    cuTexObjectGetTextureDesc / cuTexObjectGetTextureDesc;
    cuTexRefCreate / cuTexRefCreate;
    cuTexRefDestroy / cuTexRefDestroy;
    cuTexRefGetAddressMode / cuTexRefGetAddressMode;
    cuTexRefGetAddress_v2 / cuTexRefGetAddress;
    cuTexRefGetArray / cuTexRefGetArray;
    cuTexRefGetBorderColor / cuTexRefGetBorderColor;
    cuTexRefGetFilterMode / cuTexRefGetFilterMode;
    cuTexRefGetFlags / cuTexRefGetFlags;
    cuTexRefGetFormat / cuTexRefGetFormat;
    cuTexRefGetMaxAnisotropy / cuTexRefGetMaxAnisotropy;
    cuTexRefGetMipmapFilterMode / cuTexRefGetMipmapFilterMode;
    cuTexRefGetMipmapLevelBias / cuTexRefGetMipmapLevelBias;
    cuTexRefGetMipmapLevelClamp / cuTexRefGetMipmapLevelClamp;
    cuTexRefGetMipmappedArray / cuTexRefGetMipmappedArray;
    cuTexRefSetAddressMode / cuTexRefSetAddressMode;
    cuTexRefSetAddress2D_v3 / cuTexRefSetAddress2D;
    cuTexRefSetAddress_v2 / cuTexRefSetAddress;
    cuTexRefSetArray / cuTexRefSetArray;
    cuTexRefSetBorderColor / cuTexRefSetBorderColor;
    cuTexRefSetFilterMode / cuTexRefSetFilterMode;
    cuTexRefSetFlags / cuTexRefSetFlags;
    cuTexRefSetFormat / cuTexRefSetFormat;
    cuTexRefSetMaxAnisotropy / cuTexRefSetMaxAnisotropy;
    cuTexRefSetMipmapFilterMode / cuTexRefSetMipmapFilterMode;
    cuTexRefSetMipmapLevelBias / cuTexRefSetMipmapLevelBias;
    cuTexRefSetMipmapLevelClamp / cuTexRefSetMipmapLevelClamp;
    cuTexRefSetMipmappedArray / cuTexRefSetMipmappedArray;
    cuWaitExternalSemaphoresAsync / cuWaitExternalSemaphoresAsync;
}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_name_and_version_is_one_function() {
        let mut seen = BTreeSet::new();
        for e in ENTRIES.iter().filter(|e| !MISSING.contains(&e.symbol)) {
            assert!(seen.insert((e.base, e.version)), "{} of version {} is there twice", e.base, e.version);
        }
    }
}
