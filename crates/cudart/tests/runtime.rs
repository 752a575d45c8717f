//! The runtime as compilers' code and programs call it, over the driver's shared library.

use cudart::api::{copy, device, event, launch, memory, properties, register, stream};
use cudart::error::{Answer, Code};
use cudart::types::{Dim3, FuncAttributes, Handle, Out, PointerAttributes, Text};
use std::ffi::CString;
use std::sync::OnceLock;

const PTX: &str = r"
.version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 counter = 5;
.visible .entry add(.param .u64 to, .param .u32 by)
{
    .reg .b32 %r<8>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [to]; ld.param.u32 %r1, [by];
    mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;
    mad.lo.u32 %r6, %r3, %r4, %r5;
    mul.wide.u32 %rd2, %r6, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.u32 %r7, [%rd3];
    add.u32 %r7, %r7, %r1;
    st.global.u32 [%rd3], %r7;
    mov.u64 %rd4, counter;
    atom.global.add.u32 %r2, [%rd4], 1;
    ret;
}
";

/// A fat binary as compilers make it: a container with one text, and the structure that points at it.
#[repr(C, align(8))]
struct Fat {
    container: Vec<u8>,
    wrapper: [usize; 3],
}

fn fat() -> &'static Fat {
    static FAT: OnceLock<Fat> = OnceLock::new();
    FAT.get_or_init(|| {
        let mut body = PTX.as_bytes().to_vec();
        body.push(0);
        body.resize(body.len().next_multiple_of(8), 0);
        let mut entry = [0u8; 64];
        entry[0] = 1;
        entry[4] = 64;
        entry[8..16].copy_from_slice(&(body.len() as u64).to_le_bytes());
        entry[28] = 80;
        let mut container = 0xba55_ed50_u32.to_le_bytes().to_vec();
        container.extend([1, 0, 16, 0]);
        container.extend(((entry.len() + body.len()) as u64).to_le_bytes());
        container.extend(entry);
        container.extend(body);
        let wrapper = [0x1_4662_43b1, container.as_ptr() as usize, 0];
        Fat { container, wrapper }
    })
}

/// Addresses that stand for a kernel's stub and a variable of the host.
static STUB: u8 = 0;
static VARIABLE: u8 = 0;

fn stub() -> usize {
    &raw const STUB as usize
}

fn variable() -> usize {
    &raw const VARIABLE as usize
}

/// Loads the driver, which has to be found by its name later, and registers the program.
fn start() {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| {
        let mut folder = std::env::current_exe().expect("this test");
        folder.pop();
        let path = CString::new(folder.join("libcuda.so").to_str().expect("a plain path")).expect("no zeros");
        // SAFETY: the path ends with a zero; the library is ours.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        assert!(!library.is_null(), "{path:?} is there, as `cuda` is a dependency of the tests");
        assert_eq!(fat().container[..4], 0xba55_ed50_u32.to_le_bytes());
        let handle = register::fat_binary(fat().wrapper.as_ptr() as usize);
        register::function(handle, stub(), Text::of(c"add"));
        register::variable(handle, variable(), Text::of(c"counter"), 4);
    });
}

fn alloc(bytes: usize) -> u64 {
    let mut address = 0;
    assert_eq!(memory::malloc(Out::to(&mut address), bytes), Ok(()));
    address
}

const ONE: Dim3 = Dim3 { x: 1, y: 1, z: 1 };
const NULL: Handle = std::ptr::null_mut();
const TO_DEVICE: u32 = 1;
const TO_HOST: u32 = 2;

fn add(to: u64, by: u32, threads: u32, on: Handle) -> Answer {
    let mut list = [&raw const to as usize, &raw const by as usize];
    launch::kernel(stub(), ONE, Dim3 { x: threads, ..ONE }, list.as_mut_ptr().cast(), 0, on)
}

fn read(from: u64, words: usize) -> Vec<u32> {
    let mut values = vec![0u32; words];
    assert_eq!(copy::any(values.as_mut_ptr() as u64, from, 4 * words, TO_HOST), Ok(()));
    values
}

#[test]
fn registered_kernels_and_variables_are_found() {
    start();
    let data = alloc(128);
    assert_eq!(copy::fill(data, 0, 128), Ok(()));
    let mut before = 0u32;
    let at = &raw mut before as u64;
    assert_eq!(copy::from_symbol(at, variable(), 4, 0, TO_HOST), Ok(()));
    assert_eq!(add(data, 3, 32, NULL), Ok(()));
    assert_eq!(read(data, 32), [3; 32]);
    let counted = 100u32;
    assert_eq!(copy::to_symbol(variable(), &raw const counted as u64, 4, 0, TO_DEVICE), Ok(()));
    let mut size = 0;
    assert_eq!(memory::symbol_size(Out::to(&mut size), variable()), Ok(()));
    assert_eq!(size, 4);
    assert_eq!(copy::to_symbol(variable(), at, 4, 1, TO_DEVICE), Err(Code::INVALID_VALUE));
    let mut attributes = FuncAttributes::default();
    assert_eq!(launch::attributes(Out::to(&mut attributes), stub()), Ok(()));
    assert!(attributes.numbers[1] > 0, "registers");
    assert_eq!(memory::free(data), Ok(()));
}

#[test]
fn streams_and_events_order_work() {
    start();
    let (mut one, mut two, mut done) = (NULL, NULL, NULL);
    assert_eq!(stream::create(Out::to(&mut one)), Ok(()));
    assert_eq!(stream::create_with_flags(Out::to(&mut two), 1), Ok(()));
    assert_eq!(event::create(Out::to(&mut done)), Ok(()));
    let data = alloc(4);
    assert_eq!(copy::fill_async(data, 0, 4, one), Ok(()));
    assert_eq!(add(data, 20, 1, one), Ok(()));
    assert_eq!(event::record(done, one), Ok(()));
    assert_eq!(stream::wait_event(two, done, 0), Ok(()));
    assert_eq!(add(data, 22, 1, two), Ok(()));
    assert_eq!(stream::synchronize(two), Ok(()));
    assert_eq!(read(data, 1), [42]);
    assert_eq!(stream::destroy(one), Ok(()));
    assert_eq!(stream::destroy(two), Ok(()));
    assert_eq!(event::destroy(done), Ok(()));
    assert_eq!(event::destroy(done), Err(Code::INVALID_HANDLE));
}

#[test]
fn a_thread_can_have_a_default_stream_of_its_own() {
    start();
    let data = alloc(4);
    let all = cudart::call_per_thread(|| {
        copy::fill(data, 0, 4)?;
        add(data, 7, 1, NULL)?;
        let mut value = 0u32;
        copy::any(&raw mut value as u64, data, 4, TO_HOST)?;
        assert_eq!(value, 7);
        stream::synchronize(NULL)
    });
    assert_eq!((all, cudart::is_per_thread()), (0, false));
}

#[test]
fn misuse_is_answered_as_by_cuda() {
    start();
    let mut address = 0;
    assert_eq!(memory::malloc(Out::null(), 4), Err(Code::INVALID_VALUE));
    assert_eq!(memory::malloc(Out::to(&mut address), 1 << 50), Err(Code(2)));
    assert_eq!(memory::free(12), Err(Code::INVALID_VALUE));
    assert_eq!(device::set(99), Err(Code::INVALID_DEVICE));
    assert_eq!(copy::any(1, 2, 3, 77), Err(Code::INVALID_COPY_DIRECTION));
    assert_eq!(copy::to_symbol(3, 0, 4, 0, TO_DEVICE), Err(Code::INVALID_SYMBOL));
    assert_eq!(copy::to_symbol(variable(), 0, 4, 0, TO_HOST), Err(Code::INVALID_COPY_DIRECTION));
    assert_eq!(launch::kernel(3, ONE, ONE, NULL, 0, NULL), Err(Code::INVALID_HANDLE));
    assert_eq!(add(0, 0, 2000, NULL), Err(Code::INVALID_VALUE));
    assert_eq!(register::pop(Out::null(), Out::null(), Out::null(), Out::null()), Err(Code(52)));
    let kind = |address: u64| {
        let mut found = PointerAttributes::default();
        memory::pointer_attributes(Out::to(&mut found), address).map(|()| found.kind)
    };
    let data = alloc(16);
    assert_eq!((kind(data + 3), kind(&raw const address as u64)), (Ok(2), Ok(0)));
    // The last error is the thread's own.
    assert_eq!(cudart::call(|| memory::free(12)), 1);
    assert_eq!((cudart::error::last(), cudart::error::take_last(), cudart::error::last()), (1, 1, 0));
}

#[test]
fn properties_have_the_size_of_their_version() {
    start();
    let sized = |write: fn(Out<u8>, i32) -> Answer| {
        // Twice, over different bytes: what changes was not written.
        let [a, b] = [0u8, 0xff].map(|byte| {
            let mut bytes = [byte; 2048];
            assert_eq!(write(Out::to(&mut bytes).cast(), 0), Ok(()));
            bytes
        });
        assert_eq!(&a[..11], b"NVIDIA H200");
        a.iter().zip(&b).take_while(|(a, b)| a == b).count()
    };
    assert_eq!(sized(properties::version_13), 1008);
    assert_eq!(sized(properties::version_12), 1032);
}
