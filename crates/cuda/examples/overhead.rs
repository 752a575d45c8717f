//! What calls cost: launches of an empty kernel in functional mode, and copies beside the host's own.

#![allow(clippy::print_stdout)]

use cuda::handle::Handle;
use cuda::table::*;
use cuda::types::{In, Out, Text};
use std::time::Instant;

const PTX: &std::ffi::CStr =
    c".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry empty() { ret; }";
const COPY: usize = 64 << 20;

fn out<T: Copy>(value: &mut T) -> Out<T> {
    // SAFETY: the call ends before the value does.
    unsafe { Out::new(value) }
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Microseconds of one go, at the median.
fn measure(goes: usize, mut body: impl FnMut()) -> f64 {
    median(
        (0..goes)
            .map(|_| {
                let start = Instant::now();
                body();
                start.elapsed().as_secs_f64() * 1e6
            })
            .collect(),
    )
}

fn main() {
    let (mut context, mut module, mut function): (Handle, Handle, Handle) =
        (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
    assert_eq!((cuInit(0), cuCtxCreate_v2(out(&mut context), 0, 0)), (0, 0));
    assert_eq!(cuModuleLoadData(out(&mut module), PTX.as_ptr() as usize), 0);
    // SAFETY: a text that lives for ever.
    let name = unsafe { Text::new(c"empty".as_ptr()) };
    assert_eq!(cuModuleGetFunction(out(&mut function), module, name), 0);
    let launch = || {
        // SAFETY: no parameters.
        let (params, extra) = unsafe { (In::new(std::ptr::null()), In::new(std::ptr::null())) };
        let stream = std::ptr::null_mut();
        assert_eq!(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, extra), 0);
    };
    launch();
    assert_eq!(cuCtxSynchronize(), 0);
    let call = measure(2000, launch);
    assert_eq!(cuCtxSynchronize(), 0);
    let each = measure(20, || {
        (0..500).for_each(|_| launch());
        assert_eq!(cuCtxSynchronize(), 0);
    }) / 500.0;
    let round_trip = measure(1000, || {
        launch();
        assert_eq!(cuCtxSynchronize(), 0);
    });
    println!("launch of an empty kernel: {call:.1} µs for the call, {each:.1} µs each of many in a row,");
    println!("                           {round_trip:.1} µs with waiting for it");
    let mut device = 0;
    assert_eq!(cuMemAlloc_v2(out(&mut device), COPY), 0);
    let (from, mut to) = (vec![1u8; COPY], vec![0u8; COPY]);
    let rate = |us: f64| COPY as f64 / us / 1e3;
    let up = || assert_eq!(cuMemcpyHtoD_v2(device, from.as_ptr() as usize, COPY), 0);
    up();
    let up = rate(measure(11, up));
    let down = rate(measure(11, || assert_eq!(cuMemcpyDtoH_v2(to.as_ptr() as usize, device, COPY), 0)));
    let host = rate(measure(11, || to.copy_from_slice(&from)));
    println!(
        "copies of 64 MB: {up:.1} GB/s to the device, {down:.1} GB/s back; the host's memcpy {host:.1} GB/s"
    );
}
