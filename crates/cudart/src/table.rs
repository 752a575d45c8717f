//! Every entry point of the runtime: its name, its parameters, and what does it; as macros, of which the shared libraries are made:
//! each has what both versions have, and what is its own.
//!
//! A row is `name (parameters) => module::function;`, with `+ name` for the form whose default stream is the thread's own.

/// Exports rows. The crate that uses it has the names of [`crate::types`] in scope.
#[macro_export]
macro_rules! export {
    (implemented { $($symbol:ident $params:tt $(+ $own:ident)? => $module:ident :: $function:ident;)* }
        missing { $($missing:ident;)* }) => {
        $(
            $crate::export_one!(call $symbol $params $module $function);
            $($crate::export_one!(call_per_thread $own $params $module $function);)?
        )*
        $(
            #[allow(non_snake_case)]
            #[unsafe(no_mangle)]
            pub extern "C" fn $missing() -> u32 {
                $crate::unsupported(stringify!($missing))
            }
        )*
    };
}

/// Exports one function.
#[macro_export]
macro_rules! export_one {
    ($how:ident $symbol:ident ($($arg:ident: $ty:ty),*) $module:ident $function:ident) => {
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        pub extern "C" fn $symbol($($arg: $ty),*) -> u32 {
            $crate::$how(|| $crate::api::$module::$function($($arg),*))
        }
    };
}

/// Exports what answers with something else than a code, or keeps out of the last error.
#[macro_export]
macro_rules! export_others {
    () => {
        mod others {
            use cudart::api::register;
            use cudart::error;
            use cudart::types::*;
            use std::ffi::{c_char, c_void};

            #[unsafe(no_mangle)]
            pub extern "C" fn __cudaRegisterFatBinary(binary: usize) -> Handle {
                register::fat_binary(binary)
            }

            #[unsafe(no_mangle)]
            pub extern "C" fn __cudaRegisterFatBinaryEnd(_handle: Handle) {}

            #[unsafe(no_mangle)]
            pub extern "C" fn __cudaUnregisterFatBinary(handle: Handle) {
                register::remove(handle);
            }

            #[unsafe(no_mangle)]
            pub extern "C" fn __cudaRegisterFunction(
                handle: Handle,
                host: usize,
                _device_function: usize,
                name: Text,
                _thread_limit: i32,
                _thread: usize,
                _block: usize,
                _block_dim: usize,
                _grid_dim: usize,
                _warp_size: usize,
            ) {
                register::function(handle, host, name);
            }

            #[unsafe(no_mangle)]
            pub extern "C" fn __cudaRegisterVar(
                handle: Handle,
                host: usize,
                _device_address: usize,
                name: Text,
                _is_extern: i32,
                size: usize,
                _is_constant: i32,
                _is_global: i32,
            ) {
                register::variable(handle, host, name, size);
            }

            #[unsafe(no_mangle)]
            pub extern "C" fn __cudaRegisterManagedVar(
                handle: Handle,
                pointer: usize,
                device_address: usize,
                name: Text,
                _is_extern: i32,
                size: usize,
                _is_constant: i32,
                _is_global: i32,
            ) {
                register::managed(handle, pointer, device_address, name, size);
            }

            #[unsafe(no_mangle)]
            pub extern "C" fn __cudaInitModule(handle: Handle) -> u8 {
                register::init_module(handle)
            }

            #[unsafe(no_mangle)]
            pub extern "C" fn __cudaPushCallConfiguration(
                grid: Dim3,
                block: Dim3,
                shared_bytes: usize,
                stream: Handle,
            ) -> u32 {
                register::push(grid, block, shared_bytes, stream)
            }

            #[unsafe(no_mangle)]
            pub extern "C" fn cudaGetLastError() -> u32 {
                error::take_last()
            }

            #[unsafe(no_mangle)]
            pub extern "C" fn cudaPeekAtLastError() -> u32 {
                error::last()
            }

            #[unsafe(no_mangle)]
            pub extern "C" fn cudaGetErrorName(code: u32) -> *const c_char {
                error::name(code).as_ptr()
            }

            #[unsafe(no_mangle)]
            pub extern "C" fn cudaGetErrorString(code: u32) -> *const c_char {
                error::text(code).as_ptr()
            }

            /// Bits of each channel, and their kind.
            #[unsafe(no_mangle)]
            pub extern "C" fn cudaCreateChannelDesc(
                x: i32,
                y: i32,
                z: i32,
                w: i32,
                kind: i32,
            ) -> ChannelDesc {
                ChannelDesc { bits: [x, y, z, w], kind }
            }

            // What compilers make of features that are not here: variables of the host, and tables of functions.
            #[unsafe(no_mangle)]
            pub extern "C" fn __cudaRegisterHostVar(
                _handle: Handle,
                _name: Text,
                _host: *mut c_void,
                _size: usize,
            ) {
            }

            #[unsafe(no_mangle)]
            pub extern "C" fn __cudaRegisterUnifiedTable(_handle: Handle, _table: *mut c_void) {}
        }
    };
}

/// Exports what both versions have.
#[macro_export]
macro_rules! export_both {
    () => {
$crate::export! {
implemented {
    // registration, by code that compilers make
    __cudaPopCallConfiguration (grid: Out<Dim3>, block: Out<Dim3>, shared_bytes: Out<usize>, stream: Out<Handle>) => register::pop;
    __cudaGetKernel (out: Out<Handle>, host: usize) => register::get_kernel;
    __cudaLaunchKernel (kernel: Handle, grid: Dim3, block: Dim3, args: Handle, shared_bytes: usize, stream: Handle) + __cudaLaunchKernel_ptsz => launch::found;

    // misc
    cudaDriverGetVersion (out: Out<i32>) => misc::driver_version;
    cudaGetDriverEntryPoint (name: Text, out: Out<usize>, flags: u64, status: Out<u32>) + cudaGetDriverEntryPoint_ptsz => misc::entry_point;
    cudaGetDriverEntryPointByVersion (name: Text, out: Out<usize>, version: u32, flags: u64, status: Out<u32>) + cudaGetDriverEntryPointByVersion_ptsz => misc::entry_point_by_version;
    cudaProfilerStart () => misc::profiler_start;
    cudaProfilerStop () => misc::profiler_stop;
    cudaUserObjectCreate (out: Out<Handle>, data: Handle, destroy: HostFunction, count: u32, flags: u32) => misc::user_object;
    cudaUserObjectRetain (object: Handle, count: u32) => misc::user_object_retain;
    cudaUserObjectRelease (object: Handle, count: u32) => misc::user_object_release;

    // devices
    cudaGetDeviceCount (out: Out<i32>) => device::count;
    cudaGetDevice (out: Out<i32>) => device::get;
    cudaSetDevice (device: i32) => device::set;
    cudaInitDevice (device: i32, device_flags: u32, flags: u32) => device::init;
    cudaChooseDevice (out: Out<i32>, properties: usize) => device::choose;
    cudaSetValidDevices (list: In<i32>, len: i32) => device::set_valid;
    cudaSetDeviceFlags (flags: u32) => device::set_flags;
    cudaGetDeviceFlags (out: Out<u32>) => device::get_flags;
    cudaDeviceReset () => device::reset;
    cudaDeviceSynchronize () => device::synchronize;
    cudaDeviceGetAttribute (out: Out<i32>, attribute: u32, device: i32) => device::attribute;
    cudaDeviceGetPCIBusId (out: Out<u8>, len: i32, device: i32) => device::pci_bus_id;
    cudaDeviceGetByPCIBusId (out: Out<i32>, id: Text) => device::by_pci_bus_id;
    cudaDeviceGetLimit (out: Out<usize>, limit: u32) => device::get_limit;
    cudaDeviceSetLimit (limit: u32, value: usize) => device::set_limit;
    cudaCtxResetPersistingL2Cache () => device::reset_persisting;
    cudaDeviceGetStreamPriorityRange (least: Out<i32>, greatest: Out<i32>) => device::priority_range;
    cudaDeviceGetCacheConfig (out: Out<u32>) => device::get_cache_config;
    cudaDeviceSetCacheConfig (config: u32) => device::set_cache_config;
    cudaDeviceGetSharedMemConfig (out: Out<u32>) => device::get_shared_config;
    cudaDeviceSetSharedMemConfig (config: u32) => device::set_shared_config;
    cudaDeviceCanAccessPeer (out: Out<i32>, device: i32, peer: i32) => device::can_access_peer;
    cudaDeviceGetP2PAttribute (out: Out<i32>, attribute: u32, device: i32, peer: i32) => device::p2p_attribute;
    cudaDeviceEnablePeerAccess (peer: i32, flags: u32) => device::enable_peer;
    cudaDeviceDisablePeerAccess (peer: i32) => device::disable_peer;
    cudaDeviceGetDefaultMemPool (out: Out<Handle>, device: i32) => device::default_pool;
    cudaDeviceGetMemPool (out: Out<Handle>, device: i32) => device::pool;
    cudaDeviceSetMemPool (device: i32, pool: Handle) => device::set_pool;

    // memory
    cudaMalloc (out: Out<u64>, bytes: usize) => memory::malloc;
    cudaFree (address: u64) => memory::free;
    cudaMallocManaged (out: Out<u64>, bytes: usize, flags: u32) => memory::malloc_managed;
    cudaMallocPitch (out: Out<u64>, pitch: Out<usize>, width: usize, height: usize) => memory::malloc_pitch;
    cudaMalloc3D (out: Out<PitchedPtr>, extent: Extent) => memory::malloc_3d;
    cudaMallocHost (out: Out<u64>, bytes: usize) => memory::host_malloc;
    cudaHostAlloc (out: Out<u64>, bytes: usize, flags: u32) => memory::host_alloc;
    cudaFreeHost (address: u64) => memory::host_free;
    cudaHostRegister (address: u64, bytes: usize, flags: u32) => memory::host_register;
    cudaHostUnregister (address: u64) => memory::host_unregister;
    cudaHostGetDevicePointer (out: Out<u64>, address: u64, flags: u32) => memory::host_pointer;
    cudaHostGetFlags (out: Out<u32>, address: u64) => memory::host_flags;
    cudaMemGetInfo (free: Out<usize>, total: Out<usize>) => memory::info;
    cudaGetSymbolAddress (out: Out<u64>, symbol: usize) => memory::symbol_address;
    cudaGetSymbolSize (out: Out<usize>, symbol: usize) => memory::symbol_size;
    cudaMemRangeGetAttribute (out: Out<i32>, bytes: usize, attribute: u32, address: u64, count: usize) => memory::range_attribute;
    cudaPointerGetAttributes (out: Out<PointerAttributes>, address: u64) => memory::pointer_attributes;
    cudaMallocAsync (out: Out<u64>, bytes: usize, stream: Handle) + cudaMallocAsync_ptsz => memory::malloc_async;
    cudaMallocFromPoolAsync (out: Out<u64>, bytes: usize, pool: Handle, stream: Handle) + cudaMallocFromPoolAsync_ptsz => memory::malloc_from_pool;
    cudaFreeAsync (address: u64, stream: Handle) + cudaFreeAsync_ptsz => memory::free_async;
    cudaMemPoolCreate (out: Out<Handle>, props: Handle) => memory::pool_create;
    cudaMemPoolDestroy (pool: Handle) => memory::pool_destroy;
    cudaMemPoolTrimTo (pool: Handle, keep: usize) => memory::pool_trim;
    cudaMemPoolGetAttribute (pool: Handle, attribute: u32, out: Handle) => memory::pool_attribute;
    cudaMemPoolSetAttribute (pool: Handle, attribute: u32, value: Handle) => memory::set_pool_attribute;
    cudaMemPoolSetAccess (pool: Handle, list: Handle, count: usize) => memory::set_pool_access;
    cudaMemPoolGetAccess (out: Out<u32>, pool: Handle, place: Handle) => memory::pool_access;
    cudaIpcGetMemHandle (out: Out<IpcHandle>, address: u64) => memory::ipc_get;
    cudaIpcOpenMemHandle (out: Out<u64>, handle: IpcHandle, flags: u32) => memory::ipc_open;
    cudaIpcCloseMemHandle (address: u64) => memory::ipc_close;

    // copies and fills
    cudaMemcpy (to: u64, from: u64, bytes: usize, kind: u32) + cudaMemcpy_ptds => copy::any;
    cudaMemcpyAsync (to: u64, from: u64, bytes: usize, kind: u32, stream: Handle) + cudaMemcpyAsync_ptsz => copy::any_async;
    cudaMemcpyPeer (to: u64, to_device: i32, from: u64, from_device: i32, bytes: usize) => copy::peer;
    cudaMemcpyPeerAsync (to: u64, to_device: i32, from: u64, from_device: i32, bytes: usize, stream: Handle) => copy::peer_async;
    cudaMemcpyToSymbol (symbol: usize, from: u64, bytes: usize, offset: usize, kind: u32) + cudaMemcpyToSymbol_ptds => copy::to_symbol;
    cudaMemcpyFromSymbol (to: u64, symbol: usize, bytes: usize, offset: usize, kind: u32) + cudaMemcpyFromSymbol_ptds => copy::from_symbol;
    cudaMemcpyToSymbolAsync (symbol: usize, from: u64, bytes: usize, offset: usize, kind: u32, stream: Handle) + cudaMemcpyToSymbolAsync_ptsz => copy::to_symbol_async;
    cudaMemcpyFromSymbolAsync (to: u64, symbol: usize, bytes: usize, offset: usize, kind: u32, stream: Handle) + cudaMemcpyFromSymbolAsync_ptsz => copy::from_symbol_async;
    cudaMemcpy2D (to: u64, to_pitch: usize, from: u64, from_pitch: usize, width: usize, height: usize, kind: u32) + cudaMemcpy2D_ptds => copy::rows;
    cudaMemcpy2DAsync (to: u64, to_pitch: usize, from: u64, from_pitch: usize, width: usize, height: usize, kind: u32, stream: Handle) + cudaMemcpy2DAsync_ptsz => copy::rows_async;
    cudaMemcpy3D (params: In<Memcpy3dParms>) + cudaMemcpy3D_ptds => copy::slices;
    cudaMemcpy3DAsync (params: In<Memcpy3dParms>, stream: Handle) + cudaMemcpy3DAsync_ptsz => copy::slices_async;
    cudaMemcpy3DPeer (params: In<Memcpy3dPeerParms>) + cudaMemcpy3DPeer_ptds => copy::slices_peer;
    cudaMemcpy3DPeerAsync (params: In<Memcpy3dPeerParms>, stream: Handle) + cudaMemcpy3DPeerAsync_ptsz => copy::slices_peer_async;
    cudaMemset (to: u64, value: i32, bytes: usize) + cudaMemset_ptds => copy::fill;
    cudaMemsetAsync (to: u64, value: i32, bytes: usize, stream: Handle) + cudaMemsetAsync_ptsz => copy::fill_async;
    cudaMemset2D (to: u64, pitch: usize, value: i32, width: usize, height: usize) + cudaMemset2D_ptds => copy::fill_rows;
    cudaMemset2DAsync (to: u64, pitch: usize, value: i32, width: usize, height: usize, stream: Handle) + cudaMemset2DAsync_ptsz => copy::fill_rows_async;
    cudaMemset3D (to: PitchedPtr, value: i32, extent: Extent) + cudaMemset3D_ptds => copy::fill_slices;
    cudaMemset3DAsync (to: PitchedPtr, value: i32, extent: Extent, stream: Handle) + cudaMemset3DAsync_ptsz => copy::fill_slices_async;

    // kernels
    cudaLaunchKernel (host: usize, grid: Dim3, block: Dim3, args: Handle, shared_bytes: usize, stream: Handle) + cudaLaunchKernel_ptsz => launch::kernel;
    cudaLaunchKernelExC (config: In<LaunchConfig>, host: usize, args: Handle) + cudaLaunchKernelExC_ptsz => launch::kernel_ex;
    cudaLaunchCooperativeKernel (host: usize, grid: Dim3, block: Dim3, args: Handle, shared_bytes: usize, stream: Handle) + cudaLaunchCooperativeKernel_ptsz => launch::cooperative;
    cudaLaunchHostFunc (stream: Handle, function: HostFunction, data: Handle) + cudaLaunchHostFunc_ptsz => launch::host_function;
    cudaFuncGetAttributes (out: Out<FuncAttributes>, host: usize) => launch::attributes;
    cudaFuncSetAttribute (host: usize, attribute: u32, value: i32) => launch::set_attribute;
    cudaFuncSetCacheConfig (host: usize, config: u32) => launch::set_cache_config;
    cudaFuncSetSharedMemConfig (host: usize, config: u32) => launch::set_shared_config;
    cudaFuncGetName (out: Out<usize>, host: usize) => launch::name;
    cudaFuncGetParamInfo (host: usize, n: usize, offset: Out<usize>, size: Out<usize>) => launch::parameter;
    cudaGetFuncBySymbol (out: Out<Handle>, host: usize) => launch::by_symbol;
    cudaGetKernel (out: Out<Handle>, host: usize) => register::get_kernel;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor (out: Out<i32>, host: usize, threads: i32, dynamic: usize) => launch::max_active;
    cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags (out: Out<i32>, host: usize, threads: i32, dynamic: usize, flags: u32) => launch::max_active_flags;
    cudaOccupancyAvailableDynamicSMemPerBlock (out: Out<usize>, host: usize, ctas: i32, threads: i32) => launch::available_shared;
    cudaOccupancyMaxActiveClusters (out: Out<i32>, host: usize, config: In<LaunchConfig>) => launch::max_clusters;
    cudaOccupancyMaxPotentialClusterSize (out: Out<i32>, host: usize, config: In<LaunchConfig>) => launch::max_cluster_size;

    // libraries
    cudaLibraryLoadData (out: Out<Handle>, code: usize, names: Handle, values: Handle, count: u32, library_names: Handle, library_values: Handle, library_count: u32) => library::load_data;
    cudaLibraryLoadFromFile (out: Out<Handle>, path: Text, names: Handle, values: Handle, count: u32, library_names: Handle, library_values: Handle, library_count: u32) => library::load_file;
    cudaLibraryUnload (library: Handle) => library::unload;
    cudaLibraryGetKernel (out: Out<Handle>, library: Handle, name: Text) => library::kernel;
    cudaLibraryGetKernelCount (out: Out<u32>, library: Handle) => library::kernel_count;
    cudaLibraryEnumerateKernels (out: Out<Handle>, count: u32, library: Handle) => library::kernels;
    cudaLibraryGetGlobal (start: Out<u64>, bytes: Out<usize>, library: Handle, name: Text) => library::global;
    cudaLibraryGetManaged (start: Out<u64>, bytes: Out<usize>, library: Handle, name: Text) => library::managed;
    cudaKernelSetAttributeForDevice (kernel: Handle, attribute: u32, value: i32, device: i32) => library::set_kernel_attribute;

    // streams
    cudaStreamCreate (out: Out<Handle>) => stream::create;
    cudaStreamCreateWithFlags (out: Out<Handle>, flags: u32) => stream::create_with_flags;
    cudaStreamCreateWithPriority (out: Out<Handle>, flags: u32, priority: i32) => stream::create_with_priority;
    cudaStreamDestroy (stream: Handle) => stream::destroy;
    cudaStreamSynchronize (stream: Handle) + cudaStreamSynchronize_ptsz => stream::synchronize;
    cudaStreamQuery (stream: Handle) + cudaStreamQuery_ptsz => stream::query;
    cudaStreamWaitEvent (stream: Handle, event: Handle, flags: u32) + cudaStreamWaitEvent_ptsz => stream::wait_event;
    cudaStreamAddCallback (stream: Handle, callback: Callback, data: Handle, flags: u32) + cudaStreamAddCallback_ptsz => stream::add_callback;
    cudaStreamGetDevice (stream: Handle, out: Out<i32>) + cudaStreamGetDevice_ptsz => stream::device_of;
    cudaStreamGetFlags (stream: Handle, out: Out<u32>) + cudaStreamGetFlags_ptsz => stream::flags_of;
    cudaStreamGetPriority (stream: Handle, out: Out<i32>) + cudaStreamGetPriority_ptsz => stream::priority_of;
    cudaStreamGetId (stream: Handle, out: Out<u64>) + cudaStreamGetId_ptsz => stream::id_of;
    cudaStreamAttachMemAsync (stream: Handle, address: u64, bytes: usize, flags: u32) + cudaStreamAttachMemAsync_ptsz => stream::attach_memory;
    cudaStreamCopyAttributes (to: Handle, from: Handle) + cudaStreamCopyAttributes_ptsz => stream::copy_attributes;
    cudaStreamGetAttribute (stream: Handle, attribute: u32, out: Handle) + cudaStreamGetAttribute_ptsz => stream::get_attribute;
    cudaStreamSetAttribute (stream: Handle, attribute: u32, value: Handle) + cudaStreamSetAttribute_ptsz => stream::set_attribute;
    cudaStreamBeginCapture (stream: Handle, mode: u32) + cudaStreamBeginCapture_ptsz => stream::begin_capture;
    cudaStreamEndCapture (stream: Handle, out: Out<Handle>) + cudaStreamEndCapture_ptsz => stream::end_capture;
    cudaStreamIsCapturing (stream: Handle, out: Out<u32>) + cudaStreamIsCapturing_ptsz => stream::is_capturing;
    cudaThreadExchangeStreamCaptureMode (mode: Out<u32>) => stream::exchange_mode;

    // events
    cudaEventCreate (out: Out<Handle>) => event::create;
    cudaEventCreateWithFlags (out: Out<Handle>, flags: u32) => event::create_with_flags;
    cudaEventDestroy (event: Handle) => event::destroy;
    cudaEventRecord (event: Handle, stream: Handle) + cudaEventRecord_ptsz => event::record;
    cudaEventRecordWithFlags (event: Handle, stream: Handle, flags: u32) + cudaEventRecordWithFlags_ptsz => event::record_with_flags;
    cudaEventQuery (event: Handle) => event::query;
    cudaEventSynchronize (event: Handle) => event::synchronize;
    cudaEventElapsedTime (out: Out<f32>, start: Handle, end: Handle) => event::elapsed;

    // graphs
    cudaGraphCreate (out: Out<Handle>, flags: u32) => graph::create;
    cudaGraphDestroy (graph: Handle) => graph::destroy;
    cudaGraphClone (out: Out<Handle>, graph: Handle) => graph::clone;
    cudaGraphInstantiate (out: Out<Handle>, graph: Handle, flags: u64) => graph::instantiate;
    cudaGraphInstantiateWithFlags (out: Out<Handle>, graph: Handle, flags: u64) => graph::instantiate;
    cudaGraphExecDestroy (exec: Handle) => graph::exec_destroy;
    cudaGraphExecGetFlags (exec: Handle, out: Out<u64>) => graph::exec_flags;
    cudaGraphExecUpdate (exec: Handle, graph: Handle, result: Out<u64>) => graph::exec_update;
    cudaGraphLaunch (exec: Handle, stream: Handle) + cudaGraphLaunch_ptsz => graph::launch;
    cudaGraphUpload (exec: Handle, stream: Handle) + cudaGraphUpload_ptsz => graph::upload;
    cudaGraphGetNodes (graph: Handle, out: Out<Handle>, count: Out<usize>) => graph::nodes;
    cudaGraphGetRootNodes (graph: Handle, out: Out<Handle>, count: Out<usize>) => graph::root_nodes;
    cudaGraphAddKernelNode (out: Out<Handle>, graph: Handle, after: Handle, count: usize, node: In<KernelNode>) => graph::add_kernel;
    cudaGraphKernelNodeSetParams (node: Handle, params: In<KernelNode>) => graph::set_kernel;
    cudaGraphExecKernelNodeSetParams (exec: Handle, node: Handle, params: In<KernelNode>) => graph::exec_set_kernel;
    cudaGraphAddMemcpyNode (out: Out<Handle>, graph: Handle, after: Handle, count: usize, copy: In<Memcpy3dParms>) => graph::add_copy;
    cudaGraphAddMemcpyNode1D (out: Out<Handle>, graph: Handle, after: Handle, count: usize, to: u64, from: u64, bytes: usize, kind: u32) => graph::add_copy_1d;
    cudaGraphAddMemsetNode (out: Out<Handle>, graph: Handle, after: Handle, count: usize, node: In<MemsetNode>) => graph::add_fill;
    cudaGraphAddHostNode (out: Out<Handle>, graph: Handle, after: Handle, count: usize, node: Handle) => graph::add_host;
    cudaGraphAddEmptyNode (out: Out<Handle>, graph: Handle, after: Handle, count: usize) => graph::add_empty;
    cudaGraphAddChildGraphNode (out: Out<Handle>, graph: Handle, after: Handle, count: usize, child: Handle) => graph::add_child;
    cudaGraphAddEventRecordNode (out: Out<Handle>, graph: Handle, after: Handle, count: usize, event: Handle) => graph::add_record;
    cudaGraphAddEventWaitNode (out: Out<Handle>, graph: Handle, after: Handle, count: usize, event: Handle) => graph::add_wait;
    cudaGraphNodeGetType (node: Handle, out: Out<u32>) => graph::kind;
    cudaGraphDestroyNode (node: Handle) => graph::destroy_node;
}
missing {
    cudaArrayGetInfo;
    cudaArrayGetMemoryRequirements;
    cudaArrayGetPlane;
    cudaArrayGetSparseProperties;
    cudaCreateSurfaceObject;
    cudaCreateTextureObject;
    cudaDestroyExternalMemory;
    cudaDestroyExternalSemaphore;
    cudaDestroySurfaceObject;
    cudaDestroyTextureObject;
    cudaDeviceFlushGPUDirectRDMAWrites;
    cudaDeviceGetGraphMemAttribute;
    cudaDeviceGetNvSciSyncAttributes;
    cudaDeviceGetTexture1DLinearMaxWidth;
    cudaDeviceGraphMemTrim;
    cudaDeviceRegisterAsyncNotification;
    cudaDeviceSetGraphMemAttribute;
    cudaDeviceUnregisterAsyncNotification;
    cudaEGLStreamConsumerAcquireFrame;
    cudaEGLStreamConsumerConnect;
    cudaEGLStreamConsumerConnectWithFlags;
    cudaEGLStreamConsumerDisconnect;
    cudaEGLStreamConsumerReleaseFrame;
    cudaEGLStreamProducerConnect;
    cudaEGLStreamProducerDisconnect;
    cudaEGLStreamProducerPresentFrame;
    cudaEGLStreamProducerReturnFrame;
    cudaEventCreateFromEGLSync;
    cudaExternalMemoryGetMappedBuffer;
    cudaExternalMemoryGetMappedMipmappedArray;
    cudaFreeArray;
    cudaFreeMipmappedArray;
    cudaGLGetDevices;
    cudaGLMapBufferObject;
    cudaGLMapBufferObjectAsync;
    cudaGLRegisterBufferObject;
    cudaGLSetBufferObjectMapFlags;
    cudaGLSetGLDevice;
    cudaGLUnmapBufferObject;
    cudaGLUnmapBufferObjectAsync;
    cudaGLUnregisterBufferObject;
    cudaGetChannelDesc;
    cudaGetExportTable;
    cudaGetMipmappedArrayLevel;
    cudaGetSurfaceObjectResourceDesc;
    cudaGetTextureObjectResourceDesc;
    cudaGetTextureObjectResourceViewDesc;
    cudaGetTextureObjectTextureDesc;
    cudaGraphAddExternalSemaphoresSignalNode;
    cudaGraphAddExternalSemaphoresWaitNode;
    cudaGraphAddMemAllocNode;
    cudaGraphAddMemFreeNode;
    cudaGraphAddMemcpyNodeFromSymbol;
    cudaGraphAddMemcpyNodeToSymbol;
    cudaGraphAddNode;
    cudaGraphChildGraphNodeGetGraph;
    cudaGraphConditionalHandleCreate;
    cudaGraphDebugDotPrint;
    cudaGraphEventRecordNodeGetEvent;
    cudaGraphEventRecordNodeSetEvent;
    cudaGraphEventWaitNodeGetEvent;
    cudaGraphEventWaitNodeSetEvent;
    cudaGraphExecChildGraphNodeSetParams;
    cudaGraphExecEventRecordNodeSetEvent;
    cudaGraphExecEventWaitNodeSetEvent;
    cudaGraphExecExternalSemaphoresSignalNodeSetParams;
    cudaGraphExecExternalSemaphoresWaitNodeSetParams;
    cudaGraphExecHostNodeSetParams;
    cudaGraphExecMemcpyNodeSetParams;
    cudaGraphExecMemcpyNodeSetParams1D;
    cudaGraphExecMemcpyNodeSetParamsFromSymbol;
    cudaGraphExecMemcpyNodeSetParamsToSymbol;
    cudaGraphExecMemsetNodeSetParams;
    cudaGraphExecNodeSetParams;
    cudaGraphExternalSemaphoresSignalNodeGetParams;
    cudaGraphExternalSemaphoresSignalNodeSetParams;
    cudaGraphExternalSemaphoresWaitNodeGetParams;
    cudaGraphExternalSemaphoresWaitNodeSetParams;
    cudaGraphHostNodeGetParams;
    cudaGraphHostNodeSetParams;
    cudaGraphInstantiateWithParams;
    cudaGraphInstantiateWithParams_ptsz;
    cudaGraphKernelNodeCopyAttributes;
    cudaGraphKernelNodeGetAttribute;
    cudaGraphKernelNodeGetParams;
    cudaGraphKernelNodeSetAttribute;
    cudaGraphMemAllocNodeGetParams;
    cudaGraphMemFreeNodeGetParams;
    cudaGraphMemcpyNodeGetParams;
    cudaGraphMemcpyNodeSetParams;
    cudaGraphMemcpyNodeSetParams1D;
    cudaGraphMemcpyNodeSetParamsFromSymbol;
    cudaGraphMemcpyNodeSetParamsToSymbol;
    cudaGraphMemsetNodeGetParams;
    cudaGraphMemsetNodeSetParams;
    cudaGraphNodeFindInClone;
    cudaGraphNodeGetDependencies;
    cudaGraphNodeGetDependentNodes;
    cudaGraphNodeGetEnabled;
    cudaGraphNodeSetEnabled;
    cudaGraphNodeSetParams;
    cudaGraphReleaseUserObject;
    cudaGraphRetainUserObject;
    cudaGraphicsEGLRegisterImage;
    cudaGraphicsGLRegisterBuffer;
    cudaGraphicsGLRegisterImage;
    cudaGraphicsMapResources;
    cudaGraphicsResourceGetMappedEglFrame;
    cudaGraphicsResourceGetMappedMipmappedArray;
    cudaGraphicsResourceGetMappedPointer;
    cudaGraphicsResourceSetMapFlags;
    cudaGraphicsSubResourceGetMappedArray;
    cudaGraphicsUnmapResources;
    cudaGraphicsUnregisterResource;
    cudaGraphicsVDPAURegisterOutputSurface;
    cudaGraphicsVDPAURegisterVideoSurface;
    cudaImportExternalMemory;
    cudaImportExternalSemaphore;
    cudaIpcGetEventHandle;
    cudaIpcOpenEventHandle;
    cudaLibraryGetUnifiedFunction;
    cudaMalloc3DArray;
    cudaMallocArray;
    cudaMallocMipmappedArray;
    cudaMemPoolExportPointer;
    cudaMemPoolExportToShareableHandle;
    cudaMemPoolImportFromShareableHandle;
    cudaMemPoolImportPointer;
    cudaMemRangeGetAttributes;
    cudaMemcpy2DArrayToArray;
    cudaMemcpy2DArrayToArray_ptds;
    cudaMemcpy2DFromArray;
    cudaMemcpy2DFromArrayAsync;
    cudaMemcpy2DFromArrayAsync_ptsz;
    cudaMemcpy2DFromArray_ptds;
    cudaMemcpy2DToArray;
    cudaMemcpy2DToArrayAsync;
    cudaMemcpy2DToArrayAsync_ptsz;
    cudaMemcpy2DToArray_ptds;
    cudaMemcpy3DBatchAsync;
    cudaMemcpy3DBatchAsync_ptsz;
    cudaMemcpyArrayToArray;
    cudaMemcpyArrayToArray_ptds;
    cudaMemcpyBatchAsync;
    cudaMemcpyBatchAsync_ptsz;
    cudaMemcpyFromArray;
    cudaMemcpyFromArrayAsync;
    cudaMemcpyFromArrayAsync_ptsz;
    cudaMemcpyFromArray_ptds;
    cudaMemcpyToArray;
    cudaMemcpyToArrayAsync;
    cudaMemcpyToArrayAsync_ptsz;
    cudaMemcpyToArray_ptds;
    cudaMipmappedArrayGetMemoryRequirements;
    cudaMipmappedArrayGetSparseProperties;
    cudaSignalExternalSemaphoresAsync;
    cudaSignalExternalSemaphoresAsync_ptsz;
    cudaStreamBeginCaptureToGraph;
    cudaStreamBeginCaptureToGraph_ptsz;
    cudaStreamUpdateCaptureDependencies;
    cudaStreamUpdateCaptureDependencies_ptsz;
    cudaVDPAUGetDevice;
    cudaVDPAUSetVDPAUDevice;
    cudaWaitExternalSemaphoresAsync;
    cudaWaitExternalSemaphoresAsync_ptsz;
}
}
    };
}

/// Exports what only version 13 has.
#[macro_export]
macro_rules! export_13 {
    () => {
$crate::export! {
implemented {
    cudaRuntimeGetVersion (out: Out<i32>) => misc::version_13;
    cudaGetDeviceProperties (out: Out<u8>, device: i32) => properties::version_13;
    cudaMemAdvise (address: u64, bytes: usize, advice: u32, place: Location) => memory::advise;
    cudaMemPrefetchAsync (address: u64, bytes: usize, place: Location, flags: u32, stream: Handle) + cudaMemPrefetchAsync_ptsz => memory::prefetch;
    cudaStreamGetCaptureInfo (stream: Handle, out: Out<u32>, id: Out<u64>, graph: Out<Handle>, nodes: Out<Handle>, edges: Out<Handle>, count: Out<usize>) + cudaStreamGetCaptureInfo_ptsz => stream::capture_info_edges;
    cudaGraphGetEdges (graph: Handle, from: Out<Handle>, to: Out<Handle>, data: Handle, count: Out<usize>) => graph::edges_data;
    cudaGraphAddDependencies (graph: Handle, from: Handle, to: Handle, data: Handle, count: usize) => graph::add_dependencies_data;
    cudaGraphRemoveDependencies (graph: Handle, from: Handle, to: Handle, data: Handle, count: usize) => graph::remove_dependencies_data;
}
missing {
    cudaDeviceGetHostAtomicCapabilities;
    cudaDeviceGetP2PAtomicCapabilities;
    cudaLogsCurrent;
    cudaLogsDumpToFile;
    cudaLogsDumpToMemory;
    cudaLogsRegisterCallback;
    cudaLogsUnregisterCallback;
    cudaMemDiscardAndPrefetchBatchAsync;
    cudaMemDiscardAndPrefetchBatchAsync_ptsz;
    cudaMemDiscardBatchAsync;
    cudaMemDiscardBatchAsync_ptsz;
    cudaMemGetDefaultMemPool;
    cudaMemGetMemPool;
    cudaMemPrefetchBatchAsync;
    cudaMemPrefetchBatchAsync_ptsz;
    cudaMemSetMemPool;
}
}
    };
}

/// Exports what only version 12 has.
#[macro_export]
macro_rules! export_12 {
    () => {
$crate::export! {
implemented {
    cudaRuntimeGetVersion (out: Out<i32>) => misc::version_12;
    cudaGetDeviceProperties (out: Out<u8>, device: i32) => properties::version_11;
    cudaGetDeviceProperties_v2 (out: Out<u8>, device: i32) => properties::version_12;
    cudaMemAdvise (address: u64, bytes: usize, advice: u32, device: i32) => memory::advise_device;
    cudaMemAdvise_v2 (address: u64, bytes: usize, advice: u32, place: Location) => memory::advise;
    cudaMemPrefetchAsync (address: u64, bytes: usize, device: i32, stream: Handle) + cudaMemPrefetchAsync_ptsz => memory::prefetch_device;
    cudaMemPrefetchAsync_v2 (address: u64, bytes: usize, place: Location, flags: u32, stream: Handle) + cudaMemPrefetchAsync_v2_ptsz => memory::prefetch;
    cudaStreamGetCaptureInfo (stream: Handle, out: Out<u32>, id: Out<u64>) + cudaStreamGetCaptureInfo_ptsz => stream::capture_info_short;
    cudaStreamGetCaptureInfo_v2 (stream: Handle, out: Out<u32>, id: Out<u64>, graph: Out<Handle>, nodes: Out<Handle>, count: Out<usize>) + cudaStreamGetCaptureInfo_v2_ptsz => stream::capture_info;
    cudaStreamGetCaptureInfo_v3 (stream: Handle, out: Out<u32>, id: Out<u64>, graph: Out<Handle>, nodes: Out<Handle>, edges: Out<Handle>, count: Out<usize>) + cudaStreamGetCaptureInfo_v3_ptsz => stream::capture_info_edges;
    cudaGraphGetEdges (graph: Handle, from: Out<Handle>, to: Out<Handle>, count: Out<usize>) => graph::edges;
    cudaGraphGetEdges_v2 (graph: Handle, from: Out<Handle>, to: Out<Handle>, data: Handle, count: Out<usize>) => graph::edges_data;
    cudaGraphAddDependencies (graph: Handle, from: Handle, to: Handle, count: usize) => graph::add_dependencies;
    cudaGraphAddDependencies_v2 (graph: Handle, from: Handle, to: Handle, data: Handle, count: usize) => graph::add_dependencies_data;
    cudaGraphRemoveDependencies (graph: Handle, from: Handle, to: Handle, count: usize) => graph::remove_dependencies;
    cudaGraphRemoveDependencies_v2 (graph: Handle, from: Handle, to: Handle, data: Handle, count: usize) => graph::remove_dependencies_data;
    cudaEventElapsedTime_v2 (out: Out<f32>, start: Handle, end: Handle) => event::elapsed;
    cudaThreadSynchronize () => device::synchronize;
    cudaThreadExit () => device::reset;
}
missing {
    cudaGraphAddNode_v2;
    cudaGraphNodeGetDependencies_v2;
    cudaGraphNodeGetDependentNodes_v2;
    cudaLaunchCooperativeKernelMultiDevice;
    cudaSetDoubleForDevice;
    cudaSetDoubleForHost;
    cudaSignalExternalSemaphoresAsync_v2;
    cudaSignalExternalSemaphoresAsync_v2_ptsz;
    cudaStreamUpdateCaptureDependencies_v2;
    cudaStreamUpdateCaptureDependencies_v2_ptsz;
    cudaThreadGetCacheConfig;
    cudaThreadGetLimit;
    cudaThreadSetCacheConfig;
    cudaThreadSetLimit;
    cudaWaitExternalSemaphoresAsync_v2;
    cudaWaitExternalSemaphoresAsync_v2_ptsz;
}
}
    };
}
