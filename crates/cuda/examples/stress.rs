//! Sixteen threads and four streams for a while: everything that is asked for happens, and nothing is left behind.
//!
//!     cargo run --release -p cuda --example stress -- 60

#![allow(clippy::print_stdout)]

use cuda::handle::Handle;
use cuda::table::*;
use cuda::types::{In, Out, Text};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const PTX: &std::ffi::CStr = c".version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 a, .param .u64 x)
{
    .reg .b32 %r<6>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [x];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
    mad.lo.u32 %r2, %r2, %r3, %r4;
    mul.wide.u32 %rd2, %r2, 4; add.u64 %rd3, %rd1, %rd2;
    ld.global.u32 %r5, [%rd3]; add.u32 %r5, %r5, %r1; st.global.u32 [%rd3], %r5;
    ret;
}";
const NULL: Handle = std::ptr::null_mut();

fn out<T: Copy>(value: &mut T) -> Out<T> {
    // SAFETY: the call ends before the value does.
    unsafe { Out::new(value) }
}

/// Bytes of the C library's heap that are in use.
fn in_use() -> usize {
    // SAFETY: it only reads numbers of the allocator.
    unsafe { libc::mallinfo2() }.uordblks
}

fn one_round(f: Handle, stream: Handle, n: u64) {
    let (mut a, mut event) = (0u64, NULL);
    assert_eq!(cuMemAlloc_v2(out(&mut a), 4 * 256), 0);
    assert_eq!(cuEventCreate(out(&mut event), 0), 0);
    assert_eq!(cuMemsetD32Async(a, n as u32, 256, stream), 0);
    for step in 1..=4u64 {
        let args = [std::ptr::from_ref(&a) as usize, std::ptr::from_ref(&step) as usize];
        // SAFETY: two arguments; no others.
        let (params, extra) = unsafe { (In::new(args.as_ptr()), In::new(std::ptr::null())) };
        assert_eq!(cuLaunchKernel(f, 4, 1, 1, 64, 1, 1, 0, stream, params, extra), 0);
    }
    assert_eq!((cuEventRecord(event, stream), cuEventSynchronize(event)), (0, 0));
    let mut values = [0u32; 256];
    assert_eq!(cuMemcpyDtoH_v2(values.as_mut_ptr() as usize, a, 1024), 0);
    assert_eq!(values, [n as u32 + 10; 256]);
    assert_eq!((cuEventDestroy_v2(event), cuMemFree_v2(a)), (0, 0));
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(60);
    let (mut context, mut module, mut function) = (NULL, NULL, NULL);
    assert_eq!((cuInit(0), cuCtxCreate_v2(out(&mut context), 0, 0)), (0, 0));
    assert_eq!(cuModuleLoadData(out(&mut module), PTX.as_ptr() as usize), 0);
    // SAFETY: a text that lives for ever.
    let name = unsafe { Text::new(c"add".as_ptr()) };
    assert_eq!(cuModuleGetFunction(out(&mut function), module, name), 0);
    let streams: Vec<usize> = (0..4)
        .map(|_| {
            let mut stream = NULL;
            assert_eq!(cuStreamCreate(out(&mut stream), 1), 0);
            stream as usize
        })
        .collect();
    let (context, function) = (context as usize, function as usize);
    let rounds = AtomicU64::new(0);
    let samples = Mutex::new(Vec::new());
    let start = Instant::now();
    let end = start + Duration::from_secs(seconds);
    std::thread::scope(|scope| {
        for n in 0..16u64 {
            let (stream, rounds, samples) = (streams[n as usize % 4], &rounds, &samples);
            scope.spawn(move || {
                assert_eq!(cuCtxSetCurrent(context as Handle), 0);
                while Instant::now() < end {
                    one_round(function as Handle, stream as Handle, n);
                    let done = rounds.fetch_add(1, Ordering::Relaxed);
                    if done.is_multiple_of(2000)
                        && let Ok(mut samples) = samples.lock()
                    {
                        samples.push(in_use());
                    }
                }
            });
        }
    });
    let samples = samples.into_inner().unwrap_or_default();
    let kb = |n: Option<&usize>| n.map_or(0, |n| n / 1024);
    println!(
        "{} rounds of 4 launches; heap in use {} KB after the first rounds, {} KB after the last",
        rounds.load(Ordering::Relaxed),
        kb(samples.get(1)),
        kb(samples.last())
    );
    assert_eq!(cuCtxDestroy_v2(context as Handle), 0);
}
