//! Calls the entry points as a client does, each test in a context of its own.

// Every file of tests has this module as its own, and uses a part of it.
#![allow(dead_code)]

use cuda::handle::Handle;
use cuda::table::*;
use cuda::types::{In, Out, Text};
use std::ffi::CString;
use std::ptr::null_mut;

pub const NULL: Handle = null_mut();

pub fn out<T: Copy>(value: &mut T) -> Out<T> {
    // SAFETY: the call ends before the value does.
    unsafe { Out::new(value) }
}

pub fn list<T: Copy>(values: &[T]) -> In<T> {
    // SAFETY: as above.
    unsafe { In::new(if values.is_empty() { std::ptr::null() } else { values.as_ptr() }) }
}

pub fn nowhere<T: Copy>() -> Out<T> {
    // SAFETY: null.
    unsafe { Out::new(null_mut()) }
}

pub fn nothing<T: Copy>() -> In<T> {
    // SAFETY: null.
    unsafe { In::new(std::ptr::null()) }
}

/// A text for one call.
pub fn with_text<T>(text: &str, call: impl FnOnce(Text) -> T) -> T {
    let text = CString::new(text).expect("no zeros");
    // SAFETY: the text lives until the call ends.
    call(unsafe { Text::new(text.as_ptr()) })
}

/// A context of this thread.
pub struct Session {
    pub context: Handle,
}

impl Session {
    pub fn new() -> Session {
        assert_eq!(cuInit(0), 0);
        let mut context = NULL;
        assert_eq!(cuCtxCreate_v2(out(&mut context), 0, 0), 0);
        Session { context }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        assert_eq!(cuCtxDestroy_v2(self.context), 0);
    }
}

pub fn load(ptx: &str) -> Handle {
    let text = CString::new(ptx).expect("no zeros");
    let mut module = NULL;
    assert_eq!(cuModuleLoadData(out(&mut module), text.as_ptr() as usize), 0);
    module
}

pub fn function(module: Handle, name: &str) -> Handle {
    let mut function = NULL;
    assert_eq!(with_text(name, |n| cuModuleGetFunction(out(&mut function), module, n)), 0, "{name}");
    function
}

pub fn alloc(bytes: usize) -> u64 {
    let mut address = 0;
    assert_eq!(cuMemAlloc_v2(out(&mut address), bytes), 0);
    address
}

pub fn stream(flags: u32) -> Handle {
    let mut stream = NULL;
    assert_eq!(cuStreamCreate(out(&mut stream), flags), 0);
    stream
}

pub fn event() -> Handle {
    let mut event = NULL;
    assert_eq!(cuEventCreate(out(&mut event), 0), 0);
    event
}

/// Launches with arguments of eight bytes each.
pub fn launch(f: Handle, grid: u32, block: u32, stream: Handle, args: &[u64]) -> u32 {
    let pointers: Vec<usize> = args.iter().map(|a| std::ptr::from_ref(a) as usize).collect();
    cuLaunchKernel(f, grid, 1, 1, block, 1, 1, 0, stream, list(&pointers), nothing())
}

pub fn read(address: u64, words: usize) -> Vec<u32> {
    let mut values = vec![0u32; words];
    assert_eq!(cuMemcpyDtoH_v2(values.as_mut_ptr() as usize, address, 4 * words), 0);
    values
}

/// Adds its second argument to each word of the first, `n` words; and kernels that go wrong.
pub const PTX: &str = r"
.version 8.0
.target sm_80
.address_size 64
.global .align 4 .b8 gv[12];
.const .align 4 .u32 cv = 7;
.extern .shared .align 4 .b8 dynamic[];
.visible .entry add(.param .u64 a, .param .u64 x, .param .u64 n)
{
    .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [x]; ld.param.u32 %r2, [n];
    mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;
    mad.lo.u32 %r6, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r6, %r2;
    @%p1 bra DONE;
    mul.wide.u32 %rd2, %r6, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.u32 %r7, [%rd3];
    add.u32 %r7, %r7, %r1;
    st.global.u32 [%rd3], %r7;
DONE:
    ret;
}
.visible .entry twice(.param .u64 a)
{
    .reg .b32 %r<4>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [a];
    ld.global.u32 %r1, [%rd1];
    shl.b32 %r1, %r1, 1;
    st.global.u32 [%rd1], %r1;
    ret;
}
.visible .entry empty() { ret; }
.visible .entry bounded() .maxntid 64, 1, 1 { ret; }
.visible .entry required() .reqntid 32, 1, 1 { ret; }
.visible .entry large()
{
    .shared .align 4 .b8 s[40000]; .reg .b32 %r<2>;
    mov.u32 %r1, s; st.shared.u32 [%r1], %r1; ret;
}
.visible .entry fails() { trap; }
.visible .entry wait(.param .u64 flag)
{
    .reg .pred %p<2>; .reg .b32 %r<2>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [flag];
AGAIN:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra AGAIN;
    ret;
}
";
