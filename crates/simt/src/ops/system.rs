//! System functions of device code: printf, malloc, free, assertions, child tasks, queues. Lanes call one after the other,
//! lowest first.

use super::bodies;
use crate::cta::{Child, ChildOrder};
use crate::fault::FaultKind;
use crate::lanes::Lanes;
use crate::launch::{DEPTH_MAX, Shape};
use crate::level::{Levels, levels};
use crate::printf;
use crate::queue::{Full, Queue};
use crate::uop::{Flow, Uop};
use isa::abi::{LOCAL_HIGH, SHARED_HIGH};
use isa::field::{Field, FieldValue, SysFn};
use isa::{Inst, Op};
use std::sync::Arc;

/// Longest string that a program can hand to the system.
const STRING_MAX: usize = 1 << 16;

/// Reads bytes of a generic address as one lane sees them.
///
/// # Safety
/// As [`crate::uop::Handler`], here and below.
unsafe fn read(l: &mut Lanes, lane: u32, address: u64, to: &mut [u8]) -> bool {
    let low = address as u32;
    match (address >> 32) as u32 {
        LOCAL_HIGH => {
            if !l.local.reach(low, to.len() as u32) {
                return false;
            }
            for (n, byte) in to.iter_mut().enumerate() {
                *byte = l.local.read(lane, low + n as u32, 1) as u8;
            }
            true
        }
        SHARED_HIGH => {
            // SAFETY: the CTA is bound.
            let shared = unsafe { (*l.cta).shared() };
            match shared.get(low as usize..(low as usize).saturating_add(to.len())) {
                Some(from) => {
                    to.copy_from_slice(from);
                    true
                }
                None => false,
            }
        }
        // SAFETY: the memory is bound.
        _ => unsafe { &*l.memory }.read(address, to).is_ok(),
    }
}

/// A string, for messages: what cannot be read is a question mark.
unsafe fn string(l: &mut Lanes, lane: u32, address: u64) -> Option<Vec<u8>> {
    if (address >> 32) as u32 != LOCAL_HIGH && (address >> 32) as u32 != SHARED_HIGH {
        // SAFETY: the memory is bound.
        return unsafe { &*l.memory }.string(address, STRING_MAX);
    }
    let mut bytes = Vec::new();
    while bytes.len() < STRING_MAX {
        let mut c = [0];
        // SAFETY: the caller's promise.
        if !unsafe { read(l, lane, address + bytes.len() as u64, &mut c) } {
            return None;
        }
        if c[0] == 0 {
            return Some(bytes);
        }
        bytes.push(c[0]);
    }
    None
}

unsafe fn print(l: &mut Lanes, lane: u32, format: u64, arguments: u64) -> u32 {
    // SAFETY: the caller's promise.
    let Some(format) = (unsafe { string(l, lane, format) }) else { return u32::MAX };
    let mut source = Arguments { l, lane, at: arguments };
    let mut out = Vec::new();
    let count = printf::format(&format, &mut source, &mut out);
    // SAFETY: the CTA is bound.
    unsafe { (*l.cta).output.extend_from_slice(&out) };
    count
}

/// The packed arguments of a call.
struct Arguments<'a> {
    l: &'a mut Lanes,
    lane: u32,
    at: u64,
}

impl printf::Source for Arguments<'_> {
    fn next(&mut self, size: u64) -> u64 {
        self.at = self.at.next_multiple_of(size);
        let mut bytes = [0; 8];
        // SAFETY: made by `print` from bound lanes.
        unsafe { read(self.l, self.lane, self.at, &mut bytes[..size as usize]) };
        self.at += size;
        u64::from_le_bytes(bytes)
    }

    fn string(&mut self, address: u64) -> Option<Vec<u8>> {
        // SAFETY: as above.
        unsafe { string(self.l, self.lane, address) }
    }
}

/// Bytes before the parameters of a child task: its kernel, the sizes of its grid and CTAs, its shared memory.
const HEADER: u64 = 48;
/// CUDA's code for a launch that cannot be.
const INVALID_CONFIGURATION: u32 = 9;
/// Handles of streams that stand for an order.
const TAIL: u64 = 3;
const FIRE_AND_FORGET: u64 = 4;

/// Room for the parameters of a child task; null where the kernel or the room does not exist.
unsafe fn parameter_buffer(l: &mut Lanes, kernel: u64, words: [u32; 6]) -> u64 {
    // SAFETY: launch and memory are bound.
    let (launch, memory) = unsafe { (&*l.launch, &*l.memory) };
    let Some(bytes) = launch.param_bytes(kernel) else { return 0 };
    let start = memory.device_malloc(HEADER + u64::from(bytes.max(16)));
    let [gx, gy, gz, bx, byz, shared] = words;
    let sizes = [gx, gy, gz, bx, byz & 0xffff, byz >> 16, shared];
    let header: Vec<u8> =
        kernel.to_le_bytes().into_iter().chain(sizes.into_iter().flat_map(u32::to_le_bytes)).collect();
    if start == 0 || memory.write(start, &header).is_err() {
        return 0;
    }
    start + HEADER
}

/// Starts a child task whose parameters were filled in; CUDA's code for how that went.
unsafe fn launch_device(l: &mut Lanes, buffer: u64, stream: u64) -> Result<u32, FaultKind> {
    // SAFETY: launch, memory and CTA are bound.
    let (launch, memory, cta) = unsafe { (&*l.launch, &*l.memory, &mut *l.cta) };
    let start = buffer.wrapping_sub(HEADER);
    let mut header = [0; HEADER as usize];
    if memory.read(start, &mut header).is_err() {
        return Ok(INVALID_CONFIGURATION);
    }
    let word = |n: usize| u32::from_le_bytes([header[n], header[n + 1], header[n + 2], header[n + 3]]);
    let kernel = u64::from(word(0)) | u64::from(word(4)) << 32;
    let Some(bytes) = launch.param_bytes(kernel) else { return Ok(INVALID_CONFIGURATION) };
    let mut params = vec![0; bytes as usize];
    if memory.read(buffer, &mut params).is_err() {
        return Ok(INVALID_CONFIGURATION);
    }
    memory.device_free(start);
    let shape = Shape {
        dynamic_shared: word(32),
        ..Shape::new([word(8), word(12), word(16)], [word(20), word(24), word(28)])
    };
    let Ok(mut child) = launch.child(kernel, &shape, &params, memory) else {
        return Ok(INVALID_CONFIGURATION);
    };
    let order = match stream {
        TAIL => ChildOrder::Tail,
        FIRE_AND_FORGET => ChildOrder::FireAndForget,
        _ => ChildOrder::InTurn,
    };
    // What follows its parent is as deep as the parent.
    if order == ChildOrder::Tail {
        child.depth = launch.depth;
    } else {
        cta.children += 1;
    }
    if child.depth > DEPTH_MAX {
        return Err(FaultKind::TooDeep(DEPTH_MAX));
    }
    cta.requests.push(Child { launch: Arc::new(child), order });
    Ok(0)
}

/// Appends what a lane has at `entry` to a queue.
unsafe fn queue_push(l: &mut Lanes, lane: u32, address: u64, entry: u64) -> Result<(), FaultKind> {
    // SAFETY: memory is bound.
    let memory = unsafe { &*l.memory };
    let mut queue = Queue::read(memory, address).ok_or(FaultKind::NoQueue(address))?;
    let mut bytes = vec![0; queue.entry_bytes as usize];
    // SAFETY: the caller's promise.
    if !unsafe { read(l, lane, entry, &mut bytes) } {
        return Err(FaultKind::OutOfBounds);
    }
    queue.push(memory, &bytes).map_err(|Full| FaultKind::QueueOverflow(address, queue.capacity))?;
    // SAFETY: the CTA is bound.
    unsafe { (*l.cta).pushed = true };
    Ok(())
}

unsafe fn call(l: &mut Lanes, u: &Uop) -> Flow {
    let f = SysFn::from_bits(u.aux);
    let mut rest = l.mask(u);
    if f == SysFn::WaitChildren && rest != 0 {
        return Flow::Event;
    }
    // The heap is the machine's; the others read memory, so what this SM stored must be there.
    let can_run = match f {
        SysFn::Malloc
        | SysFn::Free
        | SysFn::ParameterBuffer
        | SysFn::LaunchDevice
        | SysFn::WaitChildren
        | SysFn::QueuePush => l.alone,
        // SAFETY: a log that is bound lives.
        _ => l.log.is_null() || unsafe { (*l.log).is_empty() },
    };
    if !can_run && rest != 0 {
        return Flow::Later;
    }
    while rest != 0 {
        let lane = rest.trailing_zeros();
        rest &= rest - 1;
        // SAFETY: the rows exist; memory and CTA are bound.
        unsafe {
            let (a, b) = (l.lane64(u.a, lane), l.lane64(u.b, lane));
            match f {
                SysFn::Vprintf => {
                    let n = print(l, lane, a, b);
                    l.set_lane(u.d, lane, n);
                }
                SysFn::Malloc => {
                    let p = (*l.memory).device_malloc(a);
                    l.set_lane64(u.d, lane, p);
                }
                SysFn::Free => (*l.memory).device_free(a),
                SysFn::ParameterBuffer => {
                    let (c, e) = (l.lane64(u.c, lane), l.lane64(u.e, lane));
                    let words = [b, b >> 32, c, c >> 32, e, e >> 32].map(|w| w as u32);
                    let p = parameter_buffer(l, a, words);
                    l.set_lane64(u.d, lane, p);
                }
                SysFn::LaunchDevice => match launch_device(l, a, b) {
                    Ok(code) => l.set_lane(u.d, lane, code),
                    Err(kind) => return l.fail(kind, None),
                },
                SysFn::QueuePush => match queue_push(l, lane, a, b) {
                    Ok(()) => l.set_lane(u.d, lane, 0),
                    Err(kind) => return l.fail(kind, None),
                },
                SysFn::WaitChildren => {}
                SysFn::AssertFail => {
                    let (line, function) = (l.lane(u.c, lane), l.lane64(u.e, lane));
                    let mut text = |p| {
                        string(l, lane, p)
                            .map_or_else(|| "?".into(), |s| String::from_utf8_lossy(&s).into_owned())
                    };
                    let kind =
                        FaultKind::Assert { message: text(a), file: text(b), line, function: text(function) };
                    return l.fail(kind, None);
                }
            }
        }
    }
    Flow::Next
}

bodies! {
    Syscall |l, u| call(l, u);
}

pub fn decode(i: &Inst, u: &mut Uop) -> Option<Levels> {
    u.aux = i.field(Field::SysFn);
    (i.op == Op::Syscall).then(levels::<Syscall>)
}
