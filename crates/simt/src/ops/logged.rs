//! Loads and stores of a warp whose SM keeps a log (see [`crate::log`]).

use super::memory::store_lane;
use super::memory::{GENERIC, SHARED, address, bytes, fault, is_local, lane_pointer, load_lane, load_locals};
use crate::lanes::{Lanes, Row};
use crate::uop::{Flow, Uop};
use isa::abi::SHARED_HIGH;

/// Whether something in the log may touch bytes of space `s`.
///
/// # Safety
/// As [`crate::uop::Handler`], here and below.
#[inline(always)]
pub unsafe fn may_touch(l: &Lanes, s: u32, address: u64, len: u64) -> bool {
    // SAFETY: a log that is bound lives.
    s != SHARED && !l.log.is_null() && unsafe { (*l.log).may_touch(address, len) }
}

/// The same for lanes at distances from `p`, at most `len` bytes.
///
/// # Safety
/// As above; `p` is the host address of a place in space `s`.
#[inline(always)]
pub unsafe fn may_touch_any(l: &Lanes, s: u32, p: *mut u8, from: &Row) -> bool {
    if s == SHARED || l.log.is_null() {
        return false;
    }
    // SAFETY: a log that is bound lives.
    let log = unsafe { &*l.log };
    !log.is_empty() && log.may_touch_any(device(l, p), from)
}

/// Whether lanes anywhere have to look at the log.
///
/// # Safety
/// As above.
#[inline(always)]
pub unsafe fn is_needed(l: &Lanes, s: u32) -> bool {
    // SAFETY: a log that is bound lives.
    s != SHARED && !l.log.is_null() && !unsafe { (*l.log).is_empty() }
}

/// The device address of a place in global memory.
#[inline(always)]
fn device(l: &Lanes, p: *mut u8) -> u64 {
    (p as usize).wrapping_sub(l.global as usize) as u64
}

/// Where a store to `len` bytes at `p` goes: there, or into the log when the place is in global memory.
///
/// # Safety
/// As above.
#[inline(always)]
pub unsafe fn sink(l: &Lanes, is_global: bool, p: *mut u8, len: u32) -> *mut u8 {
    if !is_global || l.log.is_null() {
        return p;
    }
    // SAFETY: a log that is bound lives.
    unsafe { (*l.log).store(device(l, p), len) }
}

/// Stores of lanes to consecutive places, `p` that of lane `first`: an entry for each run of lanes that execute.
///
/// # Safety
/// As above; `p` has the bytes.
#[cold]
pub unsafe fn store_runs<const W: u32>(l: &Lanes, u: &Uop, m: u32, p: *mut u8, first: u32) {
    let size = bytes(W);
    let mut rest = m;
    while rest != 0 {
        let start = rest.trailing_zeros();
        let lanes = (rest >> start).trailing_ones();
        rest &= !((u32::MAX >> (32 - lanes)) << start);
        // SAFETY: the caller's promise; the log gives room for as many bytes.
        unsafe {
            let to = sink(l, true, p.add(((start - first) * size) as usize), lanes * size);
            for i in 0..lanes {
                store_lane::<W>(l, u, start + i, to.add((i * size) as usize));
            }
        }
    }
}

/// The bytes of a lane, aligned as any access needs it.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Bytes([u8; 16]);

/// A load lane by lane from memory and what the log puts over it.
///
/// # Safety
/// As above.
#[cold]
pub unsafe fn load<const S: u32, const W: u32>(l: &mut Lanes, u: &Uop, m: u32) -> Flow {
    let size = bytes(W);
    let mut values = [Bytes([0; 16]); 32];
    let mut addresses = [0; 32];
    let mut locals = 0;
    // SAFETY: what is resolved is within bounds; a log that is bound lives. Nothing is written before all is read.
    unsafe {
        for lane in (0..32).filter(|i| m >> i & 1 != 0) {
            let a = address(l, u, S, lane);
            if S == GENERIC && is_local(S, a) {
                locals |= 1 << lane;
                addresses[lane as usize] = a as u32;
                continue;
            }
            let p = match lane_pointer(l, u, S, a, size) {
                Ok(p) => p,
                Err(kind) => return fault(l, kind, S, a, size, lane, false),
            };
            let value = &mut values[lane as usize].0[..size as usize];
            std::ptr::copy_nonoverlapping(p, value.as_mut_ptr(), value.len());
            let is_shared = S == GENERIC && (a >> 32) as u32 == SHARED_HIGH;
            let log = &*l.log;
            if !is_shared && log.may_touch(a, size.into()) && !log.overlay(a, value) {
                return Flow::Later;
            }
        }
        for lane in (0..32).filter(|i| (m & !locals) >> i & 1 != 0) {
            load_lane::<W>(l, u, lane, values[lane as usize].0.as_ptr());
        }
        if locals != 0 {
            return load_locals::<W>(l, u, locals, &addresses, S);
        }
    }
    Flow::Next
}
