//! What calls do when they are right: order of streams, graphs, linking, memory of both sides, many threads.

mod common;

use common::*;
use cuda::handle::Handle;
use cuda::table::*;
use cuda::types::{Memcpy2d, Side2d};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn a_kernel_runs() {
    let _s = Session::new();
    let f = function(load(PTX), "add");
    let a = alloc(4000);
    let values: Vec<u32> = (0..1000).collect();
    assert_eq!(cuMemcpyHtoD_v2(a, values.as_ptr() as usize, 4000), 0);
    assert_eq!(launch(f, 4, 256, NULL, &[a, 5, 1000]), 0);
    assert_eq!(read(a, 1000), (5..1005).collect::<Vec<u32>>());
}

#[test]
fn arguments_can_be_packed() {
    let _s = Session::new();
    let f = function(load(PTX), "add");
    let a = alloc(4);
    let block = [a, 7, 1];
    let size = 24usize;
    let extra = [1, block.as_ptr() as usize, 2, std::ptr::from_ref(&size) as usize, 0];
    assert_eq!(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, nothing(), list(&extra)), 0);
    assert_eq!(read(a, 1), [7]);
    let short = 16usize;
    let extra = [1, block.as_ptr() as usize, 2, std::ptr::from_ref(&short) as usize, 0];
    assert_eq!(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, nothing(), list(&extra)), 1);
}

#[test]
fn old_clients_set_what_they_launch() {
    let _s = Session::new();
    let f = function(load(PTX), "add");
    let a = alloc(4 * 64);
    assert_eq!(cuMemsetD8_v2(a, 0, 4 * 64), 0);
    assert_eq!(cuFuncSetBlockShape(f, 32, 1, 1), 0);
    assert_eq!(cuLaunchGrid(f, 2, 1), 1, "arguments are missing");
    assert_eq!(cuParamSetv(f, 0, std::ptr::from_ref(&a) as usize, 8), 0);
    assert_eq!((cuParamSeti(f, 8, 6), cuParamSeti(f, 16, 64), cuParamSetSize(f, 24)), (0, 0, 0));
    assert_eq!(cuLaunchGrid(f, 2, 1), 0);
    assert_eq!(read(a, 64), [6; 64]);
}

#[test]
fn streams_order_work_and_events_order_streams() {
    let _s = Session::new();
    let module = load(PTX);
    let (add, twice) = (function(module, "add"), function(module, "twice"));
    let (one, two, e) = (stream(1), stream(1), event());
    let a = alloc(4);
    // ((0 + 3) * 2 + 1) * 2, the last part in another stream after an event.
    for (f, args) in [(add, &[a, 3, 1][..]), (twice, &[a][..]), (add, &[a, 1, 1][..])] {
        assert_eq!(launch(f, 1, 1, one, args), 0);
    }
    assert_eq!(cuEventRecord(e, one), 0);
    assert_eq!(cuStreamWaitEvent(two, e, 0), 0);
    assert_eq!(launch(twice, 1, 1, two, &[a]), 0);
    assert_eq!(cuStreamSynchronize(two), 0);
    assert_eq!(read(a, 1), [14]);
    assert_eq!((cuStreamQuery(one), cuEventQuery(e)), (0, 0));
}

#[test]
fn launches_return_at_once_and_the_host_can_be_waited_for() {
    let _s = Session::new();
    let f = function(load(PTX), "wait");
    let (mut flag, s) = (0usize, stream(1));
    assert_eq!(cuMemHostAlloc(out(&mut flag), 4, 2), 0);
    assert_eq!(launch(f, 1, 1, s, &[flag as u64]), 0);
    assert_eq!(cuStreamQuery(s), 600);
    // SAFETY: four bytes of pinned memory.
    unsafe { (flag as *mut u32).write_volatile(1) };
    assert_eq!(cuStreamSynchronize(s), 0);
}

#[test]
fn memory_is_waited_for_and_written_by_streams() {
    let _s = Session::new();
    let (one, two, a) = (stream(1), stream(1), alloc(8));
    assert_eq!(cuMemsetD8_v2(a, 0, 8), 0);
    assert_eq!(cuCtxSynchronize(), 0);
    // Waits for what another stream does later.
    assert_eq!(cuStreamWaitValue32_v2(one, a, 5, 0), 0);
    assert_eq!(cuStreamWriteValue32_v2(one, a + 4, 1, 0), 0);
    assert_eq!(cuStreamQuery(one), 600);
    assert_eq!(cuStreamWriteValue32_v2(two, a, 6, 0), 0);
    assert_eq!(cuCtxSynchronize(), 0);
    assert_eq!(read(a, 2), [6, 1]);
}

extern "C" fn count(data: *mut c_void) {
    // SAFETY: the tests hand over a counter that outlives the stream's work.
    unsafe { &*(data as *const AtomicU32) }.fetch_add(1, Ordering::SeqCst);
}

extern "C" fn count_status(_: Handle, status: u32, data: *mut c_void) {
    if status == 0 {
        count(data);
    }
}

#[test]
fn functions_of_the_host_are_called_in_order() {
    let _s = Session::new();
    let (s, calls) = (stream(1), AtomicU32::new(0));
    let data = std::ptr::from_ref(&calls) as usize;
    assert_eq!(cuLaunchHostFunc(s, Some(count), data), 0);
    assert_eq!(cuStreamAddCallback(s, Some(count_status), data, 0), 0);
    assert_eq!(cuStreamSynchronize(s), 0);
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[test]
fn graphs_do_what_was_captured() {
    let _s = Session::new();
    let module = load(PTX);
    let (add, twice) = (function(module, "add"), function(module, "twice"));
    let (one, two, fork, join) = (stream(1), stream(1), event(), event());
    let (a, b) = (alloc(4), alloc(4));
    let (mut graph, mut exec, mut status, mut nodes) = (NULL, NULL, 0, 0usize);
    assert_eq!(cuMemsetD8_v2(a, 0, 4), 0);
    assert_eq!(cuMemsetD8_v2(b, 0, 4), 0);
    assert_eq!(cuStreamBeginCapture_v2(one, 1), 0);
    assert_eq!((cuStreamIsCapturing(one, out(&mut status)), status), (0, 1));
    assert_eq!(launch(add, 1, 1, one, &[a, 1, 1]), 0);
    assert_eq!((cuEventRecord(fork, one), cuStreamWaitEvent(two, fork, 0)), (0, 0));
    assert_eq!(launch(twice, 1, 1, one, &[a]), 0);
    assert_eq!(launch(add, 1, 1, two, &[b, 10, 1]), 0);
    assert_eq!((cuEventRecord(join, two), cuStreamWaitEvent(one, join, 0)), (0, 0));
    assert_eq!(cuMemcpyDtoDAsync_v2(b, a, 4, one), 0);
    assert_eq!(cuStreamEndCapture(one, out(&mut graph)), 0);
    assert_eq!((cuGraphGetNodes(graph, nowhere(), out(&mut nodes)), nodes), (0, 4));
    assert_eq!(cuCtxSynchronize(), 0);
    assert_eq!(read(a, 1), [0], "nothing ran yet");
    assert_eq!(cuGraphInstantiateWithFlags(out(&mut exec), graph, 0), 0);
    for wanted in [2, 6, 14] {
        assert_eq!((cuGraphLaunch(exec, one), cuStreamSynchronize(one)), (0, 0));
        assert_eq!((read(a, 1), read(b, 1)), (vec![wanted], vec![wanted]));
    }
    assert_eq!((cuGraphExecDestroy(exec), cuGraphDestroy(graph), cuGraphDestroy(graph)), (0, 0, 1));
    // Work that the first stream does not wait for.
    assert_eq!(cuStreamBeginCapture_v2(one, 1), 0);
    assert_eq!((cuEventRecord(fork, one), cuStreamWaitEvent(two, fork, 0)), (0, 0));
    assert_eq!(launch(twice, 1, 1, two, &[a]), 0);
    assert_eq!(cuStreamEndCapture(one, out(&mut graph)), 904);
}

const CALLER: &str = r"
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) scale(.param .b32 x);
.extern .global .align 4 .u32 factor;
.visible .entry k(.param .u64 a)
{
    .reg .b32 %r<4>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [a];
    ld.global.u32 %r1, [factor];
    .param .b32 p; .param .b32 q;
    st.param.b32 [p], %r1;
    call (q), scale, (p);
    ld.param.b32 %r2, [q];
    st.global.u32 [%rd1], %r2;
    ret;
}
";
const CALLEE: &str = r"
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 factor = 21;
.weak .func (.param .b32 r) scale(.param .b32 x)
{
    .reg .b32 %r<3>;
    ld.param.b32 %r1, [x];
    shl.b32 %r2, %r1, 1;
    st.param.b32 [r], %r2;
    ret;
}
";

#[test]
fn programs_are_linked() {
    let _s = Session::new();
    let (mut linker, mut image, mut bytes) = (NULL, 0, 0);
    assert_eq!(cuLinkCreate_v2(0, nothing(), nothing(), out(&mut linker)), 0);
    for text in [CALLER, CALLEE, CALLEE] {
        // A second weak definition gives way; a second visible variable does not.
        let data = text.as_ptr() as usize;
        let code =
            with_text("part", |n| cuLinkAddData_v2(linker, 1, data, text.len(), n, 0, nothing(), nothing()));
        assert_eq!(code, 0);
    }
    assert_eq!(cuLinkComplete(linker, out(&mut image), out(&mut bytes)), 218, "factor is there twice");
    assert_eq!(cuLinkDestroy(linker), 0);
    assert_eq!(cuLinkCreate_v2(0, nothing(), nothing(), out(&mut linker)), 0);
    for text in [CALLER, CALLEE] {
        let data = text.as_ptr() as usize;
        let code =
            with_text("part", |n| cuLinkAddData_v2(linker, 1, data, text.len(), n, 0, nothing(), nothing()));
        assert_eq!(code, 0);
    }
    assert_eq!(cuLinkComplete(linker, out(&mut image), out(&mut bytes)), 0);
    let (mut library, mut kernel) = (NULL, NULL);
    let none = nothing();
    assert_eq!(cuLibraryLoadData(out(&mut library), image, none, nowhere(), 0, nothing(), nothing(), 0), 0);
    assert_eq!(cuLinkDestroy(linker), 0);
    assert_eq!(with_text("k", |n| cuLibraryGetKernel(out(&mut kernel), library, n)), 0);
    let a = alloc(4);
    assert_eq!(launch(kernel, 1, 1, NULL, &[a]), 0);
    assert_eq!(read(a, 1), [42]);
    assert_eq!((cuLibraryUnload(library), cuLibraryUnload(library)), (0, 400));
    assert_eq!(launch(kernel, 1, 1, NULL, &[a]), 400);
}

/// Declares a result that the definition does not give, and none where it does.
const SLOPPY: &str = r"
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b64 r) consume(.param .b64 p, .param .b32 x);
.extern .func produce(.param .b64 p);
.visible .entry k(.param .u64 a)
{
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [a];
    .param .b64 p; .param .b32 x; .param .b64 r;
    st.param.b64 [p], %rd1; st.param.b32 [x], 5;
    call (r), consume, (p, x);
    ld.param.b64 %rd2, [r];
    add.u64 %rd1, %rd1, 4;
    .param .b64 q;
    st.param.b64 [q], %rd1;
    call produce, (q);
    ret;
}
";
const STRICT: &str = r"
.version 8.0
.target sm_80
.address_size 64
.visible .func consume(.param .b64 p, .param .b32 x)
{
    .reg .b32 %r<2>; .reg .b64 %rd<2>;
    ld.param.b64 %rd1, [p]; ld.param.b32 %r1, [x];
    st.global.u32 [%rd1], %r1;
    ret;
}
.visible .func (.param .b32 r) produce(.param .b64 p)
{
    .reg .b64 %rd<2>;
    ld.param.b64 %rd1, [p];
    st.global.u32 [%rd1], 6;
    st.param.b32 [r], 1;
    ret;
}
";

#[test]
fn declarations_may_be_wrong_about_results() {
    let _s = Session::new();
    for order in [[SLOPPY, STRICT], [STRICT, SLOPPY]] {
        let (mut linker, mut image, mut bytes, mut module) = (NULL, 0, 0, NULL);
        assert_eq!(cuLinkCreate_v2(0, nothing(), nothing(), out(&mut linker)), 0);
        for text in order {
            let data = text.as_ptr() as usize;
            let code = with_text("part", |n| {
                cuLinkAddData_v2(linker, 1, data, text.len(), n, 0, nothing(), nothing())
            });
            assert_eq!(code, 0);
        }
        assert_eq!(cuLinkComplete(linker, out(&mut image), out(&mut bytes)), 0);
        assert_eq!(cuModuleLoadData(out(&mut module), image), 0);
        let a = alloc(8);
        assert_eq!(launch(function(module, "k"), 1, 1, NULL, &[a]), 0);
        assert_eq!(read(a, 2), [5, 6]);
        assert_eq!(cuLinkDestroy(linker), 0);
    }
}

const GRID: &str = r"
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope);
.extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);
.visible .entry k(.param .u64 a)
{
    .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [a];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %tid.x;
    mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;
    setp.ne.u32 %p1, %r3, 0;
    @!%p1 st.global.u32 [%rd2], 1;
    .param .b32 scope; .param .b64 handle; .param .b32 flags; .param .b32 answer;
    st.param.b32 [scope], 1;
    call (handle), cudaCGGetIntrinsicHandle, (scope);
    ld.param.b64 %rd3, [handle];
    st.param.b64 [handle], %rd3; st.param.b32 [flags], 0;
    call (answer), cudaCGSynchronize, (handle, flags);
    @%p1 bra DONE;
    mov.u32 %r4, 0; mov.u32 %r5, 0;
SUM:
    mul.wide.u32 %rd4, %r5, 4; add.u64 %rd4, %rd1, %rd4;
    ld.global.u32 %r6, [%rd4]; and.b32 %r6, %r6, 1; add.u32 %r4, %r4, %r6;
    add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r2; @%p1 bra SUM;
    shl.b32 %r4, %r4, 1; or.b32 %r4, %r4, 1; st.global.u32 [%rd2], %r4;
DONE:
    ret;
}
";

#[test]
fn grids_wait_for_all_of_their_ctas() {
    let _s = Session::new();
    let f = function(load(GRID), "k");
    let a = alloc(4 * 64);
    for _ in 0..2 {
        assert_eq!(cuMemsetD8_v2(a, 0, 4 * 64), 0);
        let pointer = [std::ptr::from_ref(&a) as usize];
        assert_eq!(cuLaunchCooperativeKernel(f, 64, 1, 1, 64, 1, 1, 0, NULL, list(&pointer)), 0);
        assert_eq!(read(a, 64), [129; 64]);
    }
}

#[test]
fn rows_are_copied() {
    let _s = Session::new();
    let (mut to, mut pitch) = (0, 0);
    assert_eq!(cuMemAllocPitch_v2(out(&mut to), out(&mut pitch), 12, 3, 4), 0);
    assert_eq!(pitch, 512);
    let host: Vec<u32> = (0..20).collect();
    let mut back = vec![0u32; 9];
    let side = |kind, host, device, pitch, x, y| Side2d { x, y, kind, host, device, array: 0, pitch };
    let up = Memcpy2d {
        from: side(1, host.as_ptr() as usize, 0, 20, 4, 1),
        to: side(2, 0, to, pitch, 0, 0),
        width: 12,
        height: 3,
    };
    let down = Memcpy2d {
        from: side(2, 0, to, pitch, 0, 0),
        to: side(1, back.as_mut_ptr() as usize, 0, 12, 0, 0),
        width: 12,
        height: 3,
    };
    assert_eq!((cuMemcpy2D_v2(list(&[up])), cuMemcpy2D_v2(list(&[down]))), (0, 0));
    assert_eq!(back, [6, 7, 8, 11, 12, 13, 16, 17, 18]);
    let wide = Memcpy2d { width: 600, ..down };
    assert_eq!(cuMemcpy2D_v2(list(&[wide])), 1);
}

#[test]
fn registered_memory_is_used_by_kernels() {
    let _s = Session::new();
    let f = function(load(PTX), "add");
    let mut host = vec![1u32; 100];
    let address = host.as_mut_ptr() as usize;
    assert_eq!(cuMemHostRegister_v2(address, 400, 2), 0);
    assert_eq!(launch(f, 1, 128, NULL, &[address as u64, 4, 100]), 0);
    assert_eq!((cuCtxSynchronize(), cuMemHostUnregister(address)), (0, 0));
    assert_eq!(host, [5; 100]);
}

#[test]
fn the_host_waits_for_what_it_sees() {
    let _s = Session::new();
    let (mut pinned, mut managed) = (0usize, 0u64);
    assert_eq!(cuMemHostAlloc(out(&mut pinned), 1 << 20, 2), 0);
    assert_eq!(cuMemAllocManaged(out(&mut managed), 1 << 20, 1), 0);
    for address in [pinned as u64, managed] {
        assert_eq!(cuMemsetD8_v2(address, 0xab, 1 << 20), 0);
        // SAFETY: memory of both sides, which nothing writes now.
        let bytes = unsafe { std::slice::from_raw_parts(address as usize as *const u8, 1 << 20) };
        assert!(bytes.iter().all(|&b| b == 0xab));
    }
}

/// Many threads in one context: nothing is lost, and what was allocated is freed.
#[test]
fn sixteen_threads_and_four_streams() {
    let s = Session::new();
    let f = function(load(PTX), "add");
    let streams: Vec<usize> = (0..4).map(|_| stream(1) as usize).collect();
    let (context, f) = (s.context as usize, f as usize);
    let (mut before, mut after, mut total) = (0, 0, 0);
    assert_eq!(cuMemGetInfo_v2(out(&mut before), out(&mut total)), 0);
    let threads: Vec<_> = (0..16u64)
        .map(|n| {
            let stream = streams[n as usize % 4];
            std::thread::spawn(move || {
                assert_eq!(cuCtxSetCurrent(context as Handle), 0);
                for round in 0..20 {
                    let a = alloc(4 * 300);
                    assert_eq!(cuMemsetD32Async(a, n as u32, 300, stream as Handle), 0);
                    for step in 1..=5 {
                        assert_eq!(launch(f as Handle, 3, 128, stream as Handle, &[a, step, 300]), 0);
                    }
                    assert_eq!(cuStreamSynchronize(stream as Handle), 0);
                    assert_eq!(read(a, 300), [n as u32 + 15; 300], "thread {n}, round {round}");
                    assert_eq!(cuMemFree_v2(a), 0);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    assert_eq!(cuMemGetInfo_v2(out(&mut after), out(&mut total)), 0);
    // Other tests of the process allocate beside this one; what is theirs is small.
    assert!(after.abs_diff(before) < 64 << 20);
}

#[test]
fn every_thread_may_have_its_own_stream() {
    let _s = Session::new();
    let f = function(load(PTX), "add");
    let a = alloc(4);
    let pointers = [a, 3, 1];
    let list_of: Vec<usize> = pointers.iter().map(|p| std::ptr::from_ref(p) as usize).collect();
    assert_eq!(cuMemsetD8_v2(a, 0, 4), 0);
    let code = cuLaunchKernel_ptsz(f, 1, 1, 1, 1, 1, 1, 0, NULL, list(&list_of), nothing());
    assert_eq!((code, cuStreamSynchronize_ptsz(NULL)), (0, 0));
    assert_eq!(read(a, 1), [3]);
    assert_eq!(cuStreamSynchronize(2 as Handle), 0);
}

#[test]
fn names_are_looked_up_by_version() {
    let find = |name: &str, version, flags| {
        let (mut address, mut status) = (0usize, 9);
        let code =
            with_text(name, |n| cuGetProcAddress_v2(n, out(&mut address), version, flags, out(&mut status)));
        (code, address, status)
    };
    assert_eq!(find("cuCtxCreate", 12000, 0), (0, cuCtxCreate_v3 as *const () as usize, 0));
    assert_eq!(find("cuCtxCreate", 3020, 0), (0, cuCtxCreate_v2 as *const () as usize, 0));
    assert_eq!(find("cuCtxCreate", 2000, 0), (0, 0, 2));
    assert_eq!(find("cuNothing", 13000, 0), (0, 0, 1));
    assert_eq!(find("cuLaunchKernel", 13000, 2).1, cuLaunchKernel_ptsz as *const () as usize);
    assert_eq!(find("cuGraphInstantiate", 13000, 0).1, cuGraphInstantiateWithFlags as *const () as usize);
    assert_eq!((cuArrayCreate_v2(), cuda::table::MISSING.contains(&"cuArrayCreate_v2")), (801, true));
}
