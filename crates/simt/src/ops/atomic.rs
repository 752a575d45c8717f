//! Atomics and reductions: lanes act in ascending order, each on what the lane before left.
//!
//! Where several host threads run one launch, global memory is changed by host atomics; shared and local memory have
//! one host thread each. 128-bit operations exclude each other by a lock.

use super::bodies;
use super::memory::{self, GENERIC, GLOBAL, SHARED};
use crate::lanes::Lanes;
use crate::level::{Levels, levels};
use crate::log::{Atomic as Logged, Operand};
use crate::uop::{Flow, ROW, Uop};
use arith::half::HalfMode;
use arith::{MinMax, Mode, Round, bf16, f16, fp32, fp64};
use isa::field::{AtomOp, AtomType, Field, FieldValue};
use isa::{Inst, Op};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

pub(crate) fn size(ty: AtomType) -> u32 {
    match ty {
        AtomType::U64 | AtomType::S64 | AtomType::F64 => 8,
        AtomType::B128 => 16,
        AtomType::F16 | AtomType::Bf16 | AtomType::U16 => 2,
        _ => 4,
    }
}

/// What an operation leaves in memory. `flush`: f32 denormals become zero, as global atomics have it.
fn result(op: AtomOp, ty: AtomType, old: u128, x: u128, new: u128, flush: bool) -> u128 {
    match op {
        AtomOp::Exch => return x,
        AtomOp::Cas => return if old == x { new } else { old },
        _ => {}
    }
    let (o32, x32) = (old as u32, x as u32);
    let (o64, x64) = (old as u64, x as u64);
    let pick = |less: bool| if (op == AtomOp::Min) == less { old } else { x };
    match ty {
        AtomType::F32 => {
            let mode = if flush { Mode::RN.ftz() } else { Mode::RN };
            let options = MinMax::default();
            u128::from(match op {
                AtomOp::Min => fp32::min(o32, x32, options),
                AtomOp::Max => fp32::max(o32, x32, options),
                _ => fp32::add(o32, x32, mode),
            })
        }
        AtomType::F64 => u128::from(match op {
            AtomOp::Min => fp64::min(o64, x64),
            AtomOp::Max => fp64::max(o64, x64),
            _ => fp64::add(o64, x64, Round::Rn),
        }),
        AtomType::F16 | AtomType::F16x2 => u128::from(match op {
            AtomOp::Min => f16::min_x2(o32, x32, MinMax::default()),
            AtomOp::Max => f16::max_x2(o32, x32, MinMax::default()),
            _ => f16::add_x2(o32, x32, HalfMode::default()),
        }),
        AtomType::Bf16 | AtomType::Bf16x2 => u128::from(match op {
            AtomOp::Min => bf16::min_x2(o32, x32, MinMax::default()),
            AtomOp::Max => bf16::max_x2(o32, x32, MinMax::default()),
            _ => bf16::add_x2(o32, x32, HalfMode::default()),
        }),
        _ => match op {
            AtomOp::Add => old.wrapping_add(x),
            AtomOp::Inc | AtomOp::Dec | AtomOp::PopcInc => word(op, o32, x32).into(),
            AtomOp::Min | AtomOp::Max => pick(match ty {
                AtomType::S32 => (o32 as i32) < x32 as i32,
                AtomType::S64 => (o64 as i64) < x64 as i64,
                _ => old < x,
            }),
            AtomOp::And => old & x,
            AtomOp::Or => old | x,
            _ => old ^ x,
        },
    }
}

static WIDE: Mutex<()> = Mutex::new(());

/// Changes memory that only this host thread touches.
///
/// # Safety
/// `p` is aligned and has `size` bytes.
unsafe fn alone(p: *mut u8, size: u32, f: impl Fn(u128) -> u128) -> u128 {
    // SAFETY: the caller's promise.
    unsafe {
        match size {
            2 => {
                let old = p.cast::<u16>().read();
                p.cast::<u16>().write(f(old.into()) as u16);
                old.into()
            }
            4 => {
                let old = p.cast::<u32>().read();
                p.cast::<u32>().write(f(old.into()) as u32);
                old.into()
            }
            8 => {
                let old = p.cast::<u64>().read();
                p.cast::<u64>().write(f(old.into()) as u64);
                old.into()
            }
            _ => {
                let old = p.cast::<u128>().read_unaligned();
                p.cast::<u128>().write_unaligned(f(old));
                old
            }
        }
    }
}

/// Changes memory that other host threads may change too.
///
/// # Safety
/// As [`alone`].
unsafe fn among_others(p: *mut u8, size: u32, f: impl Fn(u128) -> u128) -> u128 {
    macro_rules! update {
        ($atomic:ident, $ty:ty) => {{
            // SAFETY: aligned, and others use atomics of this size or race by the program's own doing.
            let a = unsafe { $atomic::from_ptr(p.cast()) };
            let mut old = a.load(Ordering::Relaxed);
            loop {
                let new = f(old.into()) as $ty;
                match a.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Relaxed) {
                    Ok(_) => return old.into(),
                    Err(now) => old = now,
                }
            }
        }};
    }
    match size {
        2 => update!(AtomicU16, u16),
        4 => update!(AtomicU32, u32),
        8 => update!(AtomicU64, u64),
        _ => {
            let _guard = WIDE.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: the caller's promise, and the lock.
            unsafe { alone(p, size, f) }
        }
    }
}

/// What an operation on unsigned words leaves in memory; CAS apart.
#[inline(always)]
fn word(op: AtomOp, old: u32, x: u32) -> u32 {
    match op {
        AtomOp::Add => old.wrapping_add(x),
        AtomOp::Inc => {
            if old >= x {
                0
            } else {
                old + 1
            }
        }
        AtomOp::Dec => {
            if old == 0 || old > x {
                x
            } else {
                old - 1
            }
        }
        AtomOp::Min => old.min(x),
        AtomOp::Max => old.max(x),
        AtomOp::And => old & x,
        AtomOp::Or => old | x,
        AtomOp::Xor => old ^ x,
        AtomOp::Exch | AtomOp::Cas => x,
        // The lanes of an address are counted; one after the other, each counts one.
        AtomOp::PopcInc => old.wrapping_add(1),
    }
}

/// What an atomic does when its time comes: changes global memory, and gives what was there.
///
/// # Safety
/// `p` is aligned and has the bytes of the type; no other host thread touches them.
pub(crate) unsafe fn update(p: *mut u8, op: AtomOp, ty: AtomType, x: u128, new: u128) -> u128 {
    // SAFETY: the caller's promise.
    unsafe {
        if ty == AtomType::U32 && op != AtomOp::Cas {
            let p = p.cast::<u32>();
            let old = p.read();
            p.write(word(op, old, x as u32));
            return old.into();
        }
        alone(p, size(ty), |old| result(op, ty, old, x, new, true))
    }
}

/// The log's entry of an atomic, without its lanes.
fn logged(l: &Lanes, u: &Uop, op: AtomOp, ty: AtomType) -> Logged {
    let row = (u.aux & 4 != 0).then_some(u.d);
    // SAFETY: the CTA is bound.
    Logged::new(op, ty, row, l.warp, unsafe { (*l.cta).index })
}

/// Operations on unsigned words, the most used ones.
///
/// # Safety
/// As [`crate::uop::Handler`].
#[inline(always)]
unsafe fn atomic_word(l: &mut Lanes, u: &Uop, op: AtomOp) -> Flow {
    let (space, returns) = (u.aux & 3, u.aux & 4 != 0);
    if space == GLOBAL && !l.log.is_null() {
        // SAFETY: the caller's promise.
        return unsafe { atomic(l, u) };
    }
    let mut rest = l.mask(u);
    while rest != 0 {
        let lane = rest.trailing_zeros();
        rest &= rest - 1;
        // SAFETY: rows exist; what is resolved is within bounds and aligned.
        unsafe {
            let x = l.lane(u.c, lane);
            let a = memory::address(l, u, space, lane);
            let p = match memory::lane_pointer(l, u, space, a, 4) {
                Ok(p) => p.cast::<u32>(),
                Err(kind) => return memory::fault(l, kind, space, a, 4, lane, true),
            };
            let old = if l.concurrent && space == GLOBAL {
                let cell = AtomicU32::from_ptr(p);
                if op == AtomOp::Add {
                    cell.fetch_add(x, Ordering::AcqRel)
                } else {
                    let f = |old| Some(word(op, old, x));
                    cell.fetch_update(Ordering::AcqRel, Ordering::Relaxed, f).unwrap_or_else(|old| old)
                }
            } else {
                let old = p.read();
                p.write(word(op, old, x));
                old
            };
            if returns {
                l.set_lane(u.d, lane, old);
            }
        }
    }
    Flow::Next
}

/// # Safety
/// As [`crate::uop::Handler`].
unsafe fn atomic(l: &mut Lanes, u: &Uop) -> Flow {
    let (space, returns) = (u.aux & 3, u.aux & 4 != 0);
    let (op, ty) = (AtomOp::from_bits(u.aux >> 4 & 15), AtomType::from_bits(u.aux >> 8 & 15));
    let size = size(ty);
    let words = size.div_ceil(4);
    let cut = if size < 16 { (1u128 << (8 * size)) - 1 } else { u128::MAX };
    let mut rest = l.mask(u);
    let mut is_logged = false;
    while rest != 0 {
        let lane = rest.trailing_zeros();
        rest &= rest - 1;
        // SAFETY: rows exist; what is resolved is within bounds and aligned; a log that is bound lives.
        unsafe {
            let gather = |at: u32| {
                (0..words).fold(0u128, |v, k| v | u128::from(l.lane(at + k * ROW, lane)) << (32 * k)) & cut
            };
            let (x, new) = (gather(u.c), if op == AtomOp::Cas { gather(u.e) } else { 0 });
            let a = memory::address(l, u, space, lane);
            let old = if memory::is_local(space, a) {
                if let Some(kind) = memory::check_local(l, a as u32, size) {
                    return memory::fault(l, kind, space, a, size, lane, true);
                }
                let old = l.local.read(lane, a as u32, size);
                l.local.write(lane, a as u32, size, result(op, ty, old, x, new, false) & cut);
                old
            } else {
                let p = match memory::lane_pointer(l, u, space, a, size) {
                    Ok(p) => p,
                    Err(kind) => return memory::fault(l, kind, space, a, size, lane, true),
                };
                let is_shared = space == SHARED || (a >> 32) as u32 == isa::abi::SHARED_HIGH;
                if !is_shared && !l.log.is_null() {
                    if !is_logged {
                        (*l.log).begin(logged(l, u, op, ty));
                        is_logged = true;
                    }
                    (*l.log).lane(Operand { address: a, lane, x, new });
                    continue;
                }
                let f = |old: u128| result(op, ty, old, x, new, !is_shared) & cut;
                if l.concurrent && !is_shared { among_others(p, size, f) } else { alone(p, size, f) }
            };
            if returns {
                for k in 0..words {
                    l.set_lane(u.d + k * ROW, lane, (old >> (32 * k)) as u32);
                }
            }
        }
    }
    Flow::Next
}

bodies! {
    Atomic |l, u| atomic(l, u);
    AddWord |l, u| atomic_word(l, u, AtomOp::Add);
    CountWord |l, u| atomic_word(l, u, AtomOp::PopcInc);
    AnyWord |l, u| atomic_word(l, u, AtomOp::from_bits(u.aux >> 4 & 15));
}

/// `aux`: space, result wanted, operation, type.
pub fn decode(i: &Inst, u: &mut Uop) -> Option<Levels> {
    let (space, returns) = match i.op {
        Op::Atomg => (GLOBAL, 4),
        Op::Atoms => (SHARED, 4),
        Op::Atom => (GENERIC, 4),
        Op::Redg => (GLOBAL, 0),
        Op::Red => (GENERIC, 0),
        _ => return None,
    };
    u.aux = space | returns | i.field(Field::AtomOp) << 4 | i.field(Field::AtomType) << 8;
    // Generic addresses may be local, which words of their own do not know.
    let is_word = i.get::<AtomType>() == AtomType::U32 && space != GENERIC;
    Some(match i.get::<AtomOp>() {
        AtomOp::Add if is_word => levels::<AddWord>(),
        AtomOp::PopcInc if is_word => levels::<CountWord>(),
        AtomOp::Cas => levels::<Atomic>(),
        _ if is_word => levels::<AnyWord>(),
        _ => levels::<Atomic>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_counters() {
        let inc = |old, limit| result(AtomOp::Inc, AtomType::U32, old, limit, 0, true);
        let dec = |old, limit| result(AtomOp::Dec, AtomType::U32, old, limit, 0, true);
        assert_eq!([inc(0, 2), inc(1, 2), inc(2, 2), inc(9, 2)], [1, 2, 0, 0]);
        assert_eq!([dec(0, 2), dec(1, 2), dec(2, 2), dec(9, 2)], [2, 0, 1, 2]);
    }

    #[test]
    fn global_float_sums_flush_denormals_and_shared_ones_do_not() {
        let add = |flush| result(AtomOp::Add, AtomType::F32, 1, 1, 0, flush);
        assert_eq!((add(true), add(false)), (0, 2));
    }

    #[test]
    fn minima_follow_the_sign() {
        let min = |ty, a: u32, b: u32| result(AtomOp::Min, ty, a.into(), b.into(), 0, true);
        assert_eq!(min(AtomType::S32, u32::MAX, 1), u32::MAX.into());
        assert_eq!(min(AtomType::U32, u32::MAX, 1), 1);
    }
}
