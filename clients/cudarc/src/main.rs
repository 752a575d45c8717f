//! cudarc as it comes, on whichever `libcuda.so.1` the loader finds: memory, kernels, streams, events and a graph.

use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaContext, DriverError, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;

const PTX: &str = r"
.version 8.0
.target sm_80
.address_size 64
.visible .entry saxpy(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n)
{
    .reg .pred %p<2>; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [x]; ld.param.f32 %f1, [a]; ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    mul.wide.u32 %rd3, %r5, 4;
    add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;
    ld.global.f32 %f2, [%rd5]; ld.global.f32 %f3, [%rd4];
    fma.rn.f32 %f3, %f1, %f2, %f3;
    st.global.f32 [%rd4], %f3;
DONE:
    ret;
}";

fn main() -> Result<(), DriverError> {
    let context = CudaContext::new(0)?;
    println!("{}, compute capability {:?}", context.name()?, context.compute_capability()?);
    let stream = context.new_stream()?;
    let saxpy = context.load_module(Ptx::from_src(PTX))?.load_function("saxpy")?;
    let n = 10_000u32;
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let x_dev = stream.clone_htod(&x)?;
    let mut y_dev = stream.alloc_zeros::<f32>(n as usize)?;
    let (a, config) = (0.5f32, LaunchConfig::for_num_elems(n));
    let start = stream.record_event(Some(cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT))?;
    for _ in 0..3 {
        let mut launch = stream.launch_builder(&saxpy);
        launch.arg(&mut y_dev).arg(&x_dev).arg(&a).arg(&n);
        unsafe { launch.launch(config) }?;
    }
    let end = stream.record_event(Some(cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT))?;
    let wanted = |times: f32| x.iter().map(|v| times * 0.5 * v).collect::<Vec<f32>>();
    assert_eq!(stream.clone_dtoh(&y_dev)?, wanted(3.0));
    assert!(start.elapsed_ms(&end)? > 0.0);

    // Without its own tracking by events, which a capture cannot have.
    unsafe { context.disable_event_tracking() };
    stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
    let mut launch = stream.launch_builder(&saxpy);
    launch.arg(&mut y_dev).arg(&x_dev).arg(&a).arg(&n);
    unsafe { launch.launch(config) }?;
    let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    let graph = stream.end_capture(flags)?.expect("a graph");
    for _ in 0..4 {
        graph.launch()?;
    }
    stream.synchronize()?;
    assert_eq!(stream.clone_dtoh(&y_dev)?, wanted(7.0));
    println!("cudarc: all as it should be");
    Ok(())
}
