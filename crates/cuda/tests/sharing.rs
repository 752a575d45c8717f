//! Memory that two addresses or two processes have.

mod common;

use common::*;
use cuda::table::*;
use cuda::types::{AccessDesc, AllocationProp, IpcHandle, Location};
use std::process::Command;

const VARIABLE: &str = "WARPLOOM_TEST_HANDLE";

/// The other process: sees what was written, and changes it.
fn child(handle: &str) {
    let mut bytes = [0; 64];
    for (n, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&handle[2 * n..2 * n + 2], 16).expect("hexadecimal");
    }
    let _s = Session::new();
    let mut a = 0;
    assert_eq!(cuIpcOpenMemHandle_v2(out(&mut a), IpcHandle(bytes), 0), 1);
    assert_eq!(cuIpcOpenMemHandle_v2(out(&mut a), IpcHandle(bytes), 1), 0);
    assert_eq!(read(a, 100), (0..100).collect::<Vec<u32>>());
    assert_eq!(cuMemFree_v2(a), 1, "it is somebody else's");
    let f = function(load(PTX), "add");
    assert_eq!(launch(f, 1, 128, NULL, &[a, 1000, 100]), 0);
    assert_eq!(cuIpcCloseMemHandle(a), 0);
    assert_eq!(cuIpcCloseMemHandle(a), 1);
}

#[test]
fn memory_of_another_process() {
    if let Ok(handle) = std::env::var(VARIABLE) {
        return child(&handle);
    }
    let _s = Session::new();
    // Neighbours in one page.
    let (a, b) = (alloc(400), alloc(400));
    let values: Vec<u32> = (0..100).collect();
    for address in [a, b] {
        assert_eq!(cuMemcpyHtoD_v2(address, values.as_ptr() as usize, 400), 0);
        let mut handle = IpcHandle([0; 64]);
        assert_eq!(cuIpcGetMemHandle(out(&mut handle), address), 0);
        let mut same = 0;
        assert_eq!(cuIpcOpenMemHandle_v2(out(&mut same), handle, 1), 201);
        let text: String = handle.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let child = Command::new(std::env::current_exe().expect("a test"))
            .args(["memory_of_another_process", "--exact"])
            .env(VARIABLE, text)
            .output()
            .expect("started");
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
        assert_eq!(read(address, 100), (1000..1100).collect::<Vec<u32>>());
    }
    let mut handle = IpcHandle([0; 64]);
    assert_eq!(cuIpcGetMemHandle(out(&mut handle), 0x1234), 1);
    assert_eq!((cuMemFree_v2(a), cuMemFree_v2(b)), (0, 0));
    // What comes to the same place is zeros again.
    let c = alloc(400);
    assert_eq!(read(c, 100), [0; 100]);
}

#[test]
fn one_memory_at_two_addresses() {
    const GRANULE: usize = 2 << 20;
    let _s = Session::new();
    let place = Location { kind: 1, id: 0 };
    let prop = AllocationProp { kind: 1, handles: 1, location: place, win32: 0, flags: [0; 8] };
    let (mut unit, mut start, mut memory, mut descriptor, mut again) = (0, 0, 0, 0, 0);
    assert_eq!(cuMemGetAllocationGranularity(out(&mut unit), list(&[prop]), 0), 0);
    assert_eq!(unit, GRANULE);
    assert_eq!(cuMemAddressReserve(out(&mut start), 3 * GRANULE, 0, 0, 0), 0);
    assert_eq!(cuMemAddressReserve(out(&mut memory), 5, 0, 0, 0), 1);
    assert_eq!(cuMemCreate(out(&mut memory), GRANULE, list(&[prop]), 0), 0);
    let second = start + GRANULE as u64;
    assert_eq!(cuMemMap(start, GRANULE, 0, memory, 0), 0);
    assert_eq!(cuMemMap(start, GRANULE, 0, memory, 0), 1, "something is there");
    assert_eq!(cuMemExportToShareableHandle(out(&mut descriptor), memory, 1, 0), 0);
    assert_eq!(cuMemImportFromShareableHandle(out(&mut again), descriptor as usize, 1), 0);
    assert_eq!(cuMemMap(second, GRANULE, 0, again, 0), 0);
    let access = AccessDesc { location: place, flags: 3 };
    assert_eq!(cuMemSetAccess(start, 2 * GRANULE, list(&[access]), 1), 0);
    assert_eq!(cuMemSetAccess(start, 3 * GRANULE, list(&[access]), 1), 1);
    assert_eq!(cuMemsetD32_v2(start, 7, 10), 0);
    assert_eq!(launch(function(load(PTX), "add"), 1, 32, NULL, &[second, 1, 5]), 0);
    assert_eq!(read(start, 10), [8, 8, 8, 8, 8, 7, 7, 7, 7, 7]);
    assert_eq!((cuMemRelease(memory), cuMemRelease(again)), (0, 0));
    assert_eq!(cuMemAddressFree(start, 3 * GRANULE), 1, "it is in use");
    assert_eq!(cuMemFree_v2(start), 1);
    assert_eq!((cuMemUnmap(start, 2 * GRANULE), cuMemUnmap(start, GRANULE)), (0, 1));
    assert_eq!(cuMemRelease(memory), 1, "nobody has it any more");
    assert_eq!(cuMemAddressFree(start, 3 * GRANULE), 0);
}
