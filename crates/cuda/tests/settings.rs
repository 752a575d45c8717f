//! Settings of the environment: several devices, another configuration, timed launches. One test, since they hold for a process.

mod common;

use common::*;
use cuda::table::*;

#[test]
fn settings_are_read_once() {
    let profiles = std::env::temp_dir().join(format!("warploom-profiles-{}", std::process::id()));
    // SAFETY: the only test of this process, before any other thread exists.
    unsafe {
        std::env::set_var("WARPLOOM_PROFILE", &profiles);
        std::env::set_var("WARPLOOM_CONFIG", "tiny");
        std::env::set_var("WARPLOOM_DEVICES", "2");
        std::env::set_var("WARPLOOM_TIMED", "twice");
    }
    assert_eq!(cuInit(0), 0);
    let (mut count, mut sms, mut can) = (0, 0, 0);
    assert_eq!((cuDeviceGetCount(out(&mut count)), count), (0, 2));
    assert_eq!((cuDeviceGetAttribute(out(&mut sms), 16, 1), sms), (0, 1));
    assert_eq!((cuDeviceCanAccessPeer(out(&mut can), 0, 1), can), (0, 1));
    let mut name = [0u8; 64];
    assert_eq!(cuDeviceGetName(out(&mut name[0]), 64, 0), 0);
    assert!(name.starts_with(b"Warploom tiny\0"));

    let (mut first, mut second, mut ordinal) = (NULL, NULL, 9);
    assert_eq!(
        (cuDevicePrimaryCtxRetain(out(&mut first), 0), cuDevicePrimaryCtxRetain(out(&mut second), 1)),
        (0, 0)
    );
    assert_eq!(cuCtxSetCurrent(second), 0);
    let b = alloc(4);
    let done = event();
    assert_eq!(cuMemsetD32_v2(b, 20, 1), 0);
    assert_eq!(cuEventRecord(done, NULL), 0);
    assert_eq!(cuCtxSetCurrent(first), 0);
    assert_eq!((cuCtxEnablePeerAccess(second, 0), cuCtxEnablePeerAccess(second, 0)), (0, 704));
    let module = load(PTX);
    let (add, twice) = (function(module, "add"), function(module, "twice"));
    // The first device waits for the second and works on its memory.
    let s = stream(1);
    assert_eq!(cuStreamWaitEvent(s, done, 0), 0);
    assert_eq!(launch(add, 1, 1, s, &[b, 1, 1]), 0);
    assert_eq!(cuStreamSynchronize(s), 0);
    assert_eq!(read(b, 1), [21]);
    assert_eq!(cuPointerGetAttribute(out(&mut ordinal).cast(), 9, b), 0);
    assert_eq!(ordinal, 1);
    let a = alloc(4);
    assert_eq!(cuMemcpyPeer(a, first, b, second, 4), 0);

    // A timed launch takes the machine's cycles: more of them while its caches are cold.
    let (start, end) = (event(), event());
    let mut times = Vec::new();
    for _ in 0..3 {
        assert_eq!(cuEventRecord(start, NULL), 0);
        assert_eq!(launch(twice, 1, 1, NULL, &[a]), 0);
        assert_eq!((cuEventRecord(end, NULL), cuEventSynchronize(end)), (0, 0));
        let mut ms = 0.0;
        assert_eq!(cuEventElapsedTime(out(&mut ms), start, end), 0);
        times.push(ms);
    }
    assert_eq!(read(a, 1), [21 * 8]);
    assert!(times[1] > 0.0 && times[0] > times[1] && times[0] > times[2], "{times:?}");
    // Each left its profile; those that were not timed left none.
    let mut files: Vec<String> = std::fs::read_dir(&profiles)
        .expect("the folder was made")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    files.sort();
    assert_eq!(files.len(), 6);
    assert_eq!(&files[..2], ["0001-twice.html", "0001-twice.trace"]);
    let page = std::fs::read_to_string(profiles.join(&files[0])).expect("a page");
    assert!(page.contains("shl.b32"), "the page has the PTX");
    std::fs::remove_dir_all(&profiles).expect("removed");

    assert_eq!(cuCtxDisablePeerAccess(second), 0);
    assert_eq!(cuCtxDisablePeerAccess(second), 705);
    assert_eq!((cuDevicePrimaryCtxRelease_v2(0), cuDevicePrimaryCtxRelease_v2(0)), (0, 201));
    let mut address = 0;
    assert_eq!(cuMemAlloc_v2(out(&mut address), 4), 709);
    assert_eq!(cuDevicePrimaryCtxReset_v2(1), 0);
}
