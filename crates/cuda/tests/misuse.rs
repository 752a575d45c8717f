//! Codes for what clients do wrong: those that an H200's driver of CUDA 13.0 gave for the same calls.

mod common;

use common::*;
use cuda::Code;
use cuda::table::*;

#[test]
fn devices() {
    let _s = Session::new();
    let mut n = 0;
    assert_eq!(cuInit(1), 1);
    assert_eq!(cuDeviceGet(out(&mut n), 5), 101);
    assert_eq!(cuDeviceGet(out(&mut n), -1), 101);
    assert_eq!(cuDeviceGet(nowhere(), 0), 1);
    assert_eq!(cuDeviceGetAttribute(out(&mut n), 75, 9), 101);
    assert_eq!(cuDeviceGetAttribute(out(&mut n), 0, 0), 1);
    assert_eq!(cuDeviceGetAttribute(out(&mut n), 148, 0), 1);
    let mut name = [0xffu8; 8];
    assert_eq!(cuDeviceGetName(out(&mut name[0]), 5, 0), 0);
    assert_eq!(name, *b"NVID\0\xff\xff\xff");
}

#[test]
fn attributes_are_those_of_an_h200() {
    let _s = Session::new();
    // Number and value as measured.
    let rows = [
        (1, 1024),
        (4, 64),
        (5, 2147483647),
        (8, 49152),
        (10, 32),
        (12, 65536),
        (13, 1980000),
        (16, 132),
        (36, 3201000),
        (37, 6016),
        (38, 62914560),
        (39, 2048),
        (41, 1),
        (75, 9),
        (76, 0),
        (81, 233472),
        (82, 65536),
        (87, 2),
        (97, 232448),
        (106, 32),
        (111, 1024),
        (115, 1),
    ];
    for (attribute, wanted) in rows {
        let mut found = 0;
        assert_eq!(cuDeviceGetAttribute(out(&mut found), attribute, 0), 0);
        // The clock and width of the memory bus stand for a bandwidth, which the configuration has.
        let bus = matches!(attribute, 36 | 37);
        assert!(found == wanted || (bus && found > 0), "attribute {attribute} is {found}, not {wanted}");
    }
}

#[test]
fn contexts() {
    assert_eq!(cuInit(0), 0);
    std::thread::spawn(|| {
        let (mut address, mut context, mut device) = (0, NULL, 0);
        assert_eq!(cuMemAlloc_v2(out(&mut address), 4), 201);
        assert_eq!((cuCtxGetCurrent(out(&mut context)), context), (0, NULL));
        assert_eq!(cuCtxGetDevice(out(&mut device)), 201);
        assert_eq!(cuCtxSynchronize(), 201);
        assert_eq!(cuCtxPopCurrent_v2(out(&mut context)), 201);
        assert_eq!(cuCtxDestroy_v2(NULL), 1);
        assert_eq!(cuCtxCreate_v2(out(&mut context), 0, 0), 0);
        assert_eq!(cuCtxDestroy_v2(context), 0);
        assert_eq!(cuCtxDestroy_v2(context), 201);
        // A dead context can be made current; what needs one fails.
        assert_eq!(cuCtxSetCurrent(context), 0);
        assert_eq!(cuMemAlloc_v2(out(&mut address), 4), 709);
        assert_eq!(cuCtxSetCurrent(NULL), 0);
    })
    .join()
    .expect("no panic");
}

#[test]
fn memory() {
    let _s = Session::new();
    let mut a = 0;
    assert_eq!(cuMemAlloc_v2(out(&mut a), 0), 1);
    assert_eq!(cuMemAlloc_v2(nowhere(), 4), 1);
    assert_eq!(cuMemAlloc_v2(out(&mut a), 1 << 45), 2);
    let (a, b) = (alloc(1000), alloc(1000));
    assert_eq!(cuMemFree_v2(0), 0);
    assert_eq!(cuMemFree_v2(b + 4), 1);
    assert_eq!(cuMemFree_v2(b), 0);
    assert_eq!(cuMemFree_v2(b), 1);
    assert_eq!(cuMemFree_v2(0x1234), 1);
    let mut host = vec![0u8; 1 << 22];
    let h = host.as_mut_ptr() as usize;
    assert_eq!(cuMemcpyHtoD_v2(a, h, 1000), 0);
    assert_eq!(cuMemcpyHtoD_v2(a, h, 1 << 22), 1);
    assert_eq!(cuMemcpyHtoD_v2(a, h, 1200), 1);
    assert_eq!(cuMemcpyHtoD_v2(0, h, 4), 1);
    assert_eq!(cuMemcpyHtoD_v2(a, 0, 4), 1);
    assert_eq!(cuMemcpyHtoD_v2(0, 0, 0), 0);
    assert_eq!(cuMemcpyHtoD_v2(0x12345, h, 4), 1);
    assert_eq!(cuMemcpyDtoH_v2(h, 0x12345, 4), 1);
    assert_eq!(cuMemcpyDtoD_v2(0x12345, a, 4), 1);
    assert_eq!(cuMemcpy(h as u64, h as u64 + 64, 16), 0);
    assert_eq!(cuMemsetD32_v2(a + 2, 1, 1), 1);
    assert_eq!(cuMemsetD8_v2(0, 1, 1), 1);
    assert_eq!(cuMemsetD8_v2(0, 1, 0), 0);
    let (mut start, mut bytes) = (0, 0);
    assert_eq!(cuMemGetAddressRange_v2(out(&mut start), out(&mut bytes), a + 5), 0);
    assert_eq!((start, bytes), (a, 1000));
    assert_eq!(cuMemGetAddressRange_v2(out(&mut start), out(&mut bytes), 0x1234), 500);
}

#[test]
fn host_memory() {
    let _s = Session::new();
    let (mut pinned, mut managed, mut address) = (0, 0, 0);
    assert_eq!(cuMemAllocHost_v2(out(&mut pinned), 4096), 0);
    assert_eq!(cuMemAllocManaged(out(&mut managed), 4096, 1), 0);
    assert_eq!(cuMemHostGetDevicePointer_v2(out(&mut address), pinned, 0), 0);
    assert_eq!(address, pinned as u64);
    let mut plain = vec![0u8; 16384];
    let p = plain.as_mut_ptr() as usize;
    assert_eq!(cuMemHostGetDevicePointer_v2(out(&mut address), p, 0), 1);
    assert_eq!(cuMemHostRegister_v2(p, 8192, 2), 0);
    assert_eq!(cuMemHostRegister_v2(p, 8192, 2), 712);
    assert_eq!(cuMemHostRegister_v2(p + 4096, 8192, 2), 712);
    assert_eq!(cuMemFreeHost(p), 1);
    assert_eq!(cuMemHostRegister_v2(managed as usize, 100, 2), 1);
    assert_eq!(cuMemHostRegister_v2(pinned, 100, 2), 1);
    assert_eq!(cuMemHostRegister_v2(p + 8192, 0, 0), 1);
    assert_eq!(cuMemHostUnregister(p), 0);
    assert_eq!(cuMemHostUnregister(p), 713);
    assert_eq!(cuMemHostUnregister(pinned), 1);
    assert_eq!(cuMemFree_v2(pinned as u64), 1);
    assert_eq!(cuMemFreeHost(pinned), 0);
    assert_eq!(cuMemFreeHost(pinned), 1);
    assert_eq!(cuMemFreeHost(0), 0);
    assert_eq!(cuMemFreeHost(managed as usize), 1);
    assert_eq!(cuMemFree_v2(managed), 0);
    assert_eq!(cuMemAllocManaged(out(&mut managed), 4, 0), 1);
    assert_eq!(cuMemAllocManaged(out(&mut managed), 0, 1), 1);
}

fn load_code(text: &str) -> u32 {
    let mut module = NULL;
    with_text(text, |t| cuModuleLoadData(out(&mut module), t.address()))
}

#[test]
fn modules() {
    let _s = Session::new();
    let module = load(PTX);
    let (mut f, mut start, mut bytes) = (NULL, 0, 0);
    assert_eq!(with_text("nope", |n| cuModuleGetFunction(out(&mut f), module, n)), 500);
    assert_eq!(with_text("empty", |n| cuModuleGetFunction(out(&mut f), NULL, n)), 400);
    let mut global = |name: &str| {
        let code = with_text(name, |n| cuModuleGetGlobal_v2(out(&mut start), out(&mut bytes), module, n));
        (code, bytes)
    };
    assert_eq!(global("gv"), (0, 12));
    assert_eq!(global("cv"), (0, 4));
    assert_eq!(global("zz").0, 500);
    assert_eq!(global("add").0, 1);
    assert_eq!(with_text("gv", |n| cuModuleGetGlobal_v2(nowhere(), nowhere(), module, n)), 1);
    assert_eq!(load_code(".version 8.0\n.target sm_80\n.visible .entry k( { ret; }"), 218);
    assert_eq!(load_code("junk"), 200);
    assert_eq!(load_code(""), 200);
    assert_eq!(cuModuleLoadData(out(&mut f), 0), 1);
    assert_eq!(with_text("/nonexistent", |p| cuModuleLoad(out(&mut f), p)), 301);
    let unresolved = ".version 8.0\n.target sm_80\n.address_size 64\n.extern .func foo();\n.visible .entry k(){ call foo; ret; }";
    assert_eq!(load_code(unresolved), 218);
    assert_eq!(load_code(".version 99.0\n.target sm_80\n.address_size 64\n.visible .entry k(){ ret; }"), 222);
    let f = function(module, "empty");
    assert_eq!(cuModuleUnload(module), 0);
    assert_eq!(cuModuleUnload(module), 400);
    assert_eq!(cuModuleUnload(NULL), 400);
    assert_eq!(launch(f, 1, 1, NULL, &[]), 400);
}

#[test]
fn launches() {
    let _s = Session::new();
    let module = load(PTX);
    let f = |name| function(module, name);
    let try_launch = |f, grid: [u32; 3], block: [u32; 3], shared| {
        let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
        cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, NULL, nothing(), nothing())
    };
    let (one, empty) = ([1, 1, 1], f("empty"));
    assert_eq!(try_launch(empty, one, one, 0), 0);
    for (grid, block, shared) in [
        ([0, 1, 1], one, 0),
        (one, [0, 1, 1], 0),
        (one, [1025, 1, 1], 0),
        (one, [1, 1, 65], 0),
        ([1, 65536, 1], one, 0),
        ([0x8000_0000, 1, 1], one, 0),
        (one, one, 49153),
        (one, one, 300_000),
    ] {
        assert_eq!(try_launch(empty, grid, block, shared), 1, "{grid:?} {block:?} {shared}");
    }
    assert_eq!(try_launch(NULL, one, one, 0), 400);
    assert_eq!(try_launch(f("large"), one, one, 10_000), 1);
    assert_eq!(try_launch(f("bounded"), one, [65, 1, 1], 0), 1);
    assert_eq!(try_launch(f("required"), one, [64, 1, 1], 0), 1);
    assert_eq!(try_launch(f("twice"), one, one, 0), 1);
    assert_eq!(cuFuncSetAttribute(empty, 8, 100_000), 0);
    assert_eq!(cuFuncSetAttribute(empty, 8, 300_000), 1);
    assert_eq!(cuFuncSetAttribute(empty, 0, 3), 1);
    assert_eq!(cuFuncSetAttribute(empty, 9, 101), 1);
    assert_eq!(try_launch(empty, one, one, 90_000), 0);
    assert_eq!(cuLaunchCooperativeKernel(empty, 100_000, 1, 1, 64, 1, 1, 0, NULL, nothing()), 720);
    let mut n = 0;
    assert_eq!(cuOccupancyMaxActiveBlocksPerMultiprocessor(out(&mut n), empty, 128, 0), 0);
    assert_eq!(n, 16);
    assert_eq!(cuOccupancyMaxActiveBlocksPerMultiprocessor(out(&mut n), empty, 0, 0), 1);
    assert_eq!(cuOccupancyMaxActiveBlocksPerMultiprocessor(out(&mut n), empty, 2048, 0), 0);
    assert_eq!(n, 0);
    let (mut grid, mut block) = (0, 0);
    assert_eq!(cuOccupancyMaxPotentialBlockSize(out(&mut grid), out(&mut block), empty, None, 0, 0), 0);
    assert_eq!((grid, block), (264, 1024));
    assert_eq!(cuOccupancyMaxPotentialBlockSize(out(&mut grid), out(&mut block), empty, None, 0, 128), 0);
    assert_eq!((grid, block), (2112, 128));
    assert_eq!(cuCtxSynchronize(), 0);
}

#[test]
fn streams_and_events() {
    let _s = Session::new();
    let (s, e, e2) = (stream(0), event(), event());
    let (mut other, mut ms) = (NULL, 0.0);
    assert_eq!(cuStreamCreate(out(&mut other), 5), 1);
    assert_eq!((cuEventQuery(e), cuEventSynchronize(e)), (0, 0));
    assert_eq!(cuEventElapsedTime(out(&mut ms), e, e2), 400);
    assert_eq!(cuEventRecord(e, s), 0);
    assert_eq!(cuEventElapsedTime(out(&mut ms), e, e2), 400);
    assert_eq!((cuEventRecord(e2, NULL), cuEventSynchronize(e2)), (0, 0));
    assert_eq!(cuEventElapsedTime(out(&mut ms), e, e2), 0);
    let mut untimed = NULL;
    assert_eq!(cuEventCreate(out(&mut untimed), 2), 0);
    assert_eq!((cuEventRecord(untimed, NULL), cuCtxSynchronize()), (0, 0));
    assert_eq!(cuEventElapsedTime(out(&mut ms), e, untimed), 400);
    assert_eq!(cuEventCreate(out(&mut other), 0x100), 1);
    let mut priority = 0;
    assert_eq!(cuStreamCreateWithPriority(out(&mut other), 1, -100), 0);
    assert_eq!((cuStreamGetPriority(other, out(&mut priority)), priority), (0, -5));
    assert_eq!(cuStreamDestroy_v2(s), 0);
    assert_eq!(cuStreamDestroy_v2(s), 400);
    assert_eq!(cuStreamSynchronize(s), 400);
    assert_eq!(cuEventDestroy_v2(e), 0);
    assert_eq!(cuEventQuery(e), 709);
    assert_eq!(cuStreamDestroy_v2(NULL), 400);
    assert_eq!(cuEventRecord(NULL, NULL), 400);
}

#[test]
fn captures() {
    let _s = Session::new();
    let s = stream(0);
    let (mut graph, mut status, mut address) = (NULL, 9, 0);
    assert_eq!(cuStreamEndCapture(s, out(&mut graph)), 401);
    assert_eq!(cuStreamBeginCapture_v2(NULL, 1), 900);
    assert_eq!(cuStreamBeginCapture_v2(s, 7), 1);
    assert_eq!(cuStreamBeginCapture_v2(s, 1), 0);
    assert_eq!(cuStreamSynchronize(s), 900);
    assert_eq!(cuStreamQuery(s), 900);
    assert_eq!((cuStreamIsCapturing(s, out(&mut status)), status), (0, 2));
    assert_eq!(cuMemAlloc_v2(out(&mut address), 4), 900);
    assert_eq!(cuStreamEndCapture(s, out(&mut graph)), 901);
    assert_eq!(graph, NULL);
}

#[test]
fn a_fault_stays() {
    let s = Session::new();
    let module = load(PTX);
    let f = function(module, "twice");
    let (mut address, mut device, mut other) = (0, 0, NULL);
    assert_eq!(launch(f, 1, 1, NULL, &[0x10]), 0);
    assert_eq!(cuCtxSynchronize(), 700);
    assert_eq!(cuMemAlloc_v2(out(&mut address), 4), 700);
    assert_eq!(launch(f, 1, 1, NULL, &[0x10]), 700);
    assert_eq!(cuMemFree_v2(0), 700);
    assert_eq!(cuModuleUnload(module), 700);
    assert_eq!(cuStreamCreate(out(&mut other), 0), 700);
    assert_eq!(cuCtxGetDevice(out(&mut device)), 0);
    assert_eq!(cuEventCreate(out(&mut other), 0), 700);
    assert_eq!(cuCtxGetCurrent(out(&mut other)), 0);
    assert_eq!(cuStreamQuery(NULL), 700);
    drop(s);
    // Other contexts are as they were.
    let _s = Session::new();
    assert_eq!(cuMemAlloc_v2(out(&mut address), 4), 0);
}

#[test]
fn faults_have_their_codes() {
    for (name, offset, code) in [
        ("twice", 1, Code::MISALIGNED_ADDRESS),
        ("twice", 1 << 30, Code::ILLEGAL_ADDRESS),
        ("fails", 0, Code::LAUNCH_FAILED),
    ] {
        let _s = Session::new();
        let f = function(load(PTX), name);
        let argument = alloc(64) + offset;
        assert_eq!(launch(f, 1, 1, NULL, &[argument]), 0);
        assert_eq!(cuCtxSynchronize(), code.0, "{name}");
    }
}
