//! System functions of device code: printf, malloc, free, assertions. Lanes call one after the other, lowest first.

use super::bodies;
use crate::fault::FaultKind;
use crate::lanes::Lanes;
use crate::level::{Levels, levels};
use crate::printf;
use crate::uop::{Flow, Uop};
use isa::abi::{LOCAL_HIGH, SHARED_HIGH};
use isa::field::{Field, FieldValue, SysFn};
use isa::{Inst, Op};

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

unsafe fn call(l: &mut Lanes, u: &Uop) -> Flow {
    let f = SysFn::from_bits(u.aux);
    let mut rest = l.mask(u);
    // The heap is the machine's; the others read memory, so what this SM stored must be there.
    let can_run = match f {
        SysFn::Malloc | SysFn::Free => l.alone,
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
