//! Capture and replay: the same calls from the same state give the same results, cycles and samples.

use driver::replay::ReplayError;
use driver::{Capture, CompileOptions, Config, Device, Dim, LaunchOptions, Module, Sampling, Source, Timing};

/// Every thread adds to its place, so that a second run without restoration gives other values.
const PROGRAM: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .global .u32 calls;
.visible .entry add(.param .u64 data)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r2, %r2, %r3, %r4;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd2, %rd1, %rd2;
    mov.u64 %rd3, calls;
    ld.global.u32 %r1, [%rd3];
    ld.global.u32 %r5, [%rd2];
    mad.lo.u32 %r5, %r5, 3, %r1;
    st.global.u32 [%rd2], %r5;
    atom.global.add.u32 %r5, [%rd3], 1;
    ret;
}
";

const BYTES: u64 = 4096;

fn module(device: &Device) -> Module {
    let source = Source::new("replay.ptx", PROGRAM.as_bytes());
    let image = driver::compile(&source, &CompileOptions::default()).expect("compiles");
    Module::load(device, image).expect("loads")
}

#[test]
fn a_replay_is_the_same_again() {
    let device = Device::with_memory(1 << 30).expect("memory");
    let module = module(&device);
    let before = device.alloc(BYTES).expect("room");
    device.fill(before, BYTES, 7).expect("filled");
    let config = Config::preset("tiny").expect("a preset");
    let mut sampling = Sampling { buffer_bytes: 1 << 20, ..Sampling::default() };
    sampling.settings.period = 16;
    let timing = Timing { sampling: Some(&sampling), ..Timing::new(&config) };
    let options = LaunchOptions { threads: 1, timing: Some(timing), ..LaunchOptions::default() };
    let dim = Dim { grid: [8, 1, 1], block: [128, 1, 1], shared_bytes: 0 };

    let mut capture = Capture::begin(&device).expect("begun");
    let data = capture.alloc(BYTES).expect("room");
    capture.fill(data, BYTES, 1).expect("filled");
    capture.write(data, &[9; 64]).expect("written");
    let first = capture.launch(&module, "add", dim, &[&data.to_le_bytes()], &options).expect("runs");
    capture.copy(before, data, 1024).expect("copied");
    let second = capture.launch(&module, "add", dim, &[&before.to_le_bytes()], &options).expect("runs");
    let read = |address: u64| {
        let mut bytes = vec![0; BYTES as usize];
        device.read(address, &mut bytes).expect("read");
        bytes
    };
    let results = (read(data), read(before));
    assert!(first.sampled.as_ref().is_some_and(|s| s.records > 10 && s.lost == 0));

    for _ in 0..2 {
        let again = capture.replay(&options).expect("replayed");
        assert_eq!(again, [first.clone(), second.clone()], "cycles, counters, stalls and records");
        assert_eq!((read(data), read(before)), results);
    }
    // Other moments, the same program.
    let mut other = sampling.clone();
    other.settings.phase = 5;
    let timing = Timing { sampling: Some(&other), ..timing };
    let again = capture.replay(&LaunchOptions { timing: Some(timing), ..options }).expect("replayed");
    assert_eq!(again[0].report, first.report);
    assert_ne!(again[0].sampled, first.sampled);
}

/// SMs share the event buffer, one behind the other: what does not fit is lost, and counted.
#[test]
fn a_full_event_buffer_keeps_the_first_records() {
    let config = Config::preset("h200").expect("a preset");
    let sampled = |buffer_bytes: u64| {
        let device = Device::with_memory(1 << 30).expect("memory");
        let module = module(&device);
        let data = device.alloc(BYTES).expect("room");
        let mut sampling = Sampling { buffer_bytes, ..Sampling::default() };
        sampling.settings.period = 16;
        let timing = Timing { sampling: Some(&sampling), ..Timing::new(&config) };
        let options = LaunchOptions { threads: 1, timing: Some(timing), ..LaunchOptions::default() };
        let dim = Dim { grid: [8, 1, 1], block: [128, 1, 1], shared_bytes: 0 };
        let stats = module.launch(&device, "add", dim, &[&data.to_le_bytes()], &options).expect("runs");
        *stats.sampled.expect("sampled")
    };
    let all = sampled(1 << 20);
    assert!(all.lost == 0 && all.records as usize == all.bytes.len() / 8);
    // In the middle of an SM's records, and of a record.
    let some = sampled(all.bytes.len() as u64 * 5 / 9 + 3);
    assert!(some.records > 0 && some.lost > 0 && some.records + some.lost == all.records);
    assert_eq!(some.bytes, all.bytes[..8 * some.records as usize]);
}

#[test]
fn what_cannot_be_replayed_is_told() {
    let device = Device::with_memory(1 << 30).expect("memory");
    let mut capture = Capture::begin(&device).expect("begun");
    let a = capture.alloc(BYTES).expect("room");
    capture.free(a).expect("freed");
    assert!(capture.replay(&LaunchOptions::default()).expect("replayed").is_empty());
    assert!(capture.free(a).is_err(), "a call that fails is not kept");
    assert!(capture.replay(&LaunchOptions::default()).is_ok());
    let moved = ReplayError::Moved { before: 0x100, now: 0x200 };
    assert_eq!(moved.to_string(), "an allocation at 0x100 is at 0x200 in the replay");
}
