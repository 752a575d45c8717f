//! Loads and stores.
//!
//! Lanes that go to consecutive places are one copy, lanes that all go to one place one access; others that stay in one
//! allocation are checked together; the rest goes lane by lane. Stores take effect in ascending order of lanes. An access is checked against the bounds that this instruction hit last, then against the
//! table of allocations.

use super::pattern::{Half, Pattern, pattern};
use super::{bodies, logged};
use crate::fault::{Access, FaultKind, Space};
use crate::lanes::{FULL, Lanes, Row, zip};
use crate::level::{Levels, levels};
use crate::uop::{Flow, ROW, Uop};
use isa::abi::{LOCAL_HIGH, SHARED_HIGH};
use isa::field::{Field, Width};
use isa::{Inst, Op};

pub const GLOBAL: u32 = 0;
pub const SHARED: u32 = 1;
pub const LOCAL: u32 = 2;
pub const GENERIC: u32 = 3;

/// Widths as the field numbers them.
pub(crate) const B32: u32 = Width::B32 as u32;
pub(crate) const U8: u32 = Width::U8 as u32;
const S8: u32 = Width::S8 as u32;
pub(crate) const U16: u32 = Width::U16 as u32;
const S16: u32 = Width::S16 as u32;
pub(crate) const B64: u32 = Width::B64 as u32;
pub(crate) const B128: u32 = Width::B128 as u32;

pub const fn bytes(width: u32) -> u32 {
    match width {
        U8 | S8 => 1,
        U16 | S16 => 2,
        B64 => 8,
        B128 => 16,
        _ => 4,
    }
}

pub fn space(s: u32) -> Space {
    match s {
        GLOBAL => Space::Global,
        SHARED => Space::Shared,
        LOCAL => Space::Local,
        _ => Space::Generic,
    }
}

/// The immediate and the uniform register, added to every lane's address.
///
/// # Safety
/// As [`crate::uop::Handler`], here and below.
#[inline(always)]
pub(crate) unsafe fn displacement(l: &Lanes, u: &Uop, s: u32) -> u64 {
    // SAFETY: the address rows exist.
    let uniform =
        unsafe { if s == GLOBAL || s == GENERIC { l.lane64(u.u, 0) } else { u64::from(l.lane(u.u, 0)) } };
    (i64::from(u.imm) as u64).wrapping_add(uniform)
}

/// One lane's address. Shared and local addresses are 32 bits.
///
/// # Safety
/// As above.
#[inline(always)]
pub unsafe fn address(l: &Lanes, u: &Uop, s: u32, lane: u32) -> u64 {
    // SAFETY: A and its high word (or zeros) are rows.
    unsafe {
        let base = u64::from(l.lane(u.a, lane)) | u64::from(l.lane(u.b, lane)) << 32;
        let a = base.wrapping_add(displacement(l, u, s));
        if s == GLOBAL || s == GENERIC { a } else { a & 0xffff_ffff }
    }
}

#[cold]
pub fn fault(
    l: &mut Lanes,
    kind: FaultKind,
    s: u32,
    address: u64,
    size: u32,
    lane: u32,
    is_store: bool,
) -> Flow {
    l.fail(kind, Some(Access { space: space(s), address, size, lane, is_store }))
}

/// Whether global bytes are inside one allocation; remembers which.
///
/// # Safety
/// As above.
#[inline(always)]
unsafe fn reach_global(l: &Lanes, u: &Uop, address: u64, len: u64) -> bool {
    // SAFETY: the decoder numbered the memory instructions, and the binding has bounds for each.
    let cached = unsafe { &mut *l.bounds.add(u.hint as usize) };
    if cached.holds(address, len) {
        return true;
    }
    // SAFETY: bound for the launch.
    match unsafe { &*l.memory }.find(address) {
        Some(b) => {
            *cached = b;
            b.holds(address, len)
        }
        None => false,
    }
}

/// Host address of global or shared bytes that are within bounds.
///
/// # Safety
/// As above.
#[inline(always)]
unsafe fn resolve(l: &Lanes, u: &Uop, s: u32, address: u64, len: u64) -> Option<*mut u8> {
    if s == SHARED {
        let ok = address + len <= u64::from(l.shared_bytes);
        return ok.then(|| l.shared.wrapping_add(address as usize));
    }
    // SAFETY: the caller's promise.
    let ok = unsafe { reach_global(l, u, address, len) };
    ok.then(|| l.global.wrapping_add(address as usize))
}

/// Host address of one lane's access, in any space but local: the window decides for generic ones.
///
/// # Safety
/// As above.
#[inline(always)]
pub unsafe fn lane_pointer(
    l: &Lanes,
    u: &Uop,
    s: u32,
    address: u64,
    size: u32,
) -> Result<*mut u8, FaultKind> {
    if address & u64::from(size - 1) != 0 {
        return Err(FaultKind::Misaligned);
    }
    let is_shared = s == SHARED || (s == GENERIC && (address >> 32) as u32 == SHARED_HIGH);
    // SAFETY: the caller's promise.
    let p = unsafe {
        if is_shared {
            resolve(l, u, SHARED, address & 0xffff_ffff, u64::from(size))
        } else {
            resolve(l, u, GLOBAL, address, u64::from(size))
        }
    };
    p.ok_or(FaultKind::OutOfBounds)
}

/// Whether a lane's address is in local memory.
#[inline(always)]
pub fn is_local(s: u32, address: u64) -> bool {
    s == LOCAL || (s == GENERIC && (address >> 32) as u32 == LOCAL_HIGH)
}

/// Loads one lane's registers.
///
/// # Safety
/// `p` has the bytes of the width.
#[inline(always)]
pub(super) unsafe fn load_lane<const W: u32>(l: &mut Lanes, u: &Uop, lane: u32, p: *const u8) {
    for k in 0..bytes(W).div_ceil(4) {
        // SAFETY: the caller's promise; the destination rows exist.
        unsafe { l.set_lane(u.d + k * ROW, lane, read_word::<W>(p, k as usize)) };
    }
}

/// Stores one lane's registers.
///
/// # Safety
/// `p` has the bytes of the width.
#[inline(always)]
pub(super) unsafe fn store_lane<const W: u32>(l: &Lanes, u: &Uop, lane: u32, p: *mut u8) {
    // SAFETY: the caller's promise; accesses are aligned.
    unsafe {
        match bytes(W) {
            1 => p.write(l.lane(u.c, lane) as u8),
            2 => p.cast::<u16>().write(l.lane(u.c, lane) as u16),
            n => {
                for k in 0..n / 4 {
                    p.cast::<u32>().add(k as usize).write(l.lane(u.c + k * ROW, lane));
                }
            }
        }
    }
}

/// All lanes from consecutive places.
///
/// # Safety
/// `p` has the bytes of 32 lanes.
#[inline(always)]
pub(super) unsafe fn load_all<const W: u32>(l: &mut Lanes, u: &Uop, p: *const u8) {
    let words = (bytes(W) / 4) as usize;
    // SAFETY: the caller's promise; the destination rows exist and device memory never overlaps the file.
    unsafe {
        match W {
            B32 => *l.row(u.d) = p.cast::<Row>().read_unaligned(),
            B64 | B128 => {
                for k in 0..words {
                    let d = &mut *l.row(u.d + k as u32 * ROW);
                    for i in 0..32 {
                        d[i] = p.cast::<u32>().add(words * i + k).read();
                    }
                }
            }
            _ => {
                let d = &mut *l.row(u.d);
                for i in 0..32 {
                    d[i] = match W {
                        U8 => u32::from(p.add(i).read()),
                        S8 => p.cast::<i8>().add(i).read() as u32,
                        U16 => u32::from(p.cast::<u16>().add(i).read()),
                        _ => p.cast::<i16>().add(i).read() as u32,
                    };
                }
            }
        }
    }
}

/// All lanes to consecutive places.
///
/// # Safety
/// `p` has the bytes of 32 lanes.
#[inline(always)]
pub(super) unsafe fn store_all<const W: u32>(l: &Lanes, u: &Uop, p: *mut u8) {
    let words = (bytes(W) / 4) as usize;
    // SAFETY: the caller's promise; the source rows exist and device memory never overlaps the file.
    unsafe {
        let c = &*l.row(u.c);
        match bytes(W) {
            1 => {
                for i in 0..32 {
                    p.add(i).write(c[i] as u8);
                }
            }
            2 => {
                for i in 0..32 {
                    p.cast::<u16>().add(i).write(c[i] as u16);
                }
            }
            4 => p.cast::<Row>().write_unaligned(*c),
            _ => {
                for i in 0..32 {
                    for k in 0..words {
                        p.cast::<u32>().add(words * i + k).write((*l.row(u.c + k as u32 * ROW))[i]);
                    }
                }
            }
        }
    }
}

/// Both halves of a full warp; false where a place is misaligned or out of bounds.
///
/// # Safety
/// As above.
#[inline(always)]
unsafe fn load_halves<const S: u32, const W: u32>(l: &mut Lanes, u: &Uop, halves: &[Half; 2]) -> bool {
    let size = u64::from(bytes(W));
    if (halves[0].start | halves[1].start) & (size - 1) != 0 {
        return false;
    }
    let len = |h: &Half| if h.same { size } else { 16 * size };
    // SAFETY: what is resolved is within bounds; a half that is one place has a stride of nothing.
    unsafe {
        if halves.iter().any(|h| logged::may_touch(l, S, h.start, len(h))) {
            return false;
        }
        let (Some(p), Some(q)) = (
            resolve(l, u, S, halves[0].start, len(&halves[0])),
            resolve(l, u, S, halves[1].start, len(&halves[1])),
        ) else {
            return false;
        };
        for (h, p) in [p, q].into_iter().enumerate() {
            if halves[h].same {
                fill_half::<W, true>(l, u, h, p);
            } else {
                fill_half::<W, false>(l, u, h, p);
            }
        }
    }
    true
}

/// Sixteen lanes from one place or from consecutive ones.
///
/// # Safety
/// `p` has the bytes.
#[inline(always)]
pub(super) unsafe fn fill_half<const W: u32, const SAME: bool>(
    l: &mut Lanes,
    u: &Uop,
    half: usize,
    p: *const u8,
) {
    let size = bytes(W) as usize;
    for k in 0..size.div_ceil(4) {
        let mut r = [0; 16];
        for i in 0..16 {
            // SAFETY: the caller's promise.
            r[i] = unsafe { read_word::<W>(p.add(if SAME { 0 } else { size * i }), k) };
        }
        // SAFETY: the destination rows exist.
        unsafe { (&mut *l.row(u.d + k as u32 * ROW))[16 * half..][..16].copy_from_slice(&r) };
    }
}

/// Word `k` of an element, narrow ones widened.
///
/// # Safety
/// `p` has the bytes of the width.
#[inline(always)]
pub(super) unsafe fn read_word<const W: u32>(p: *const u8, k: usize) -> u32 {
    // SAFETY: the caller's promise; accesses are aligned.
    unsafe {
        match W {
            U8 => u32::from(p.read()),
            S8 => p.cast::<i8>().read() as u32,
            U16 => u32::from(p.cast::<u16>().read()),
            S16 => p.cast::<i16>().read() as u32,
            _ => p.cast::<u32>().add(k).read(),
        }
    }
}

/// # Safety
/// As above.
#[inline(always)]
unsafe fn load<const S: u32, const W: u32>(l: &mut Lanes, u: &Uop) -> Flow {
    let m = l.mask(u);
    if m == 0 {
        return Flow::Next;
    }
    let size = bytes(W);
    // SAFETY: what is resolved is within bounds.
    unsafe {
        match pattern::<S, W>(l, u) {
            Pattern::Consecutive(start) if start & u64::from(size - 1) == 0 => {
                let (first, last) = (m.trailing_zeros(), 31 - m.leading_zeros());
                let from = start + u64::from(first * size);
                let len = u64::from((last - first + 1) * size);
                if let Some(p) = resolve(l, u, S, from, len) {
                    if logged::may_touch(l, S, from, len) {
                        return logged::load::<S, W>(l, u, m);
                    }
                    if m == FULL {
                        load_all::<W>(l, u, p);
                    } else {
                        for i in first..=last {
                            if m >> i & 1 != 0 {
                                load_lane::<W>(l, u, i, p.add(((i - first) * size) as usize));
                            }
                        }
                    }
                    return Flow::Next;
                }
            }
            Pattern::Same(start) if start & u64::from(size - 1) == 0 => {
                if let Some(p) = resolve(l, u, S, start, u64::from(size)) {
                    if logged::may_touch(l, S, start, u64::from(size)) {
                        return logged::load::<S, W>(l, u, m);
                    }
                    for k in 0..size.div_ceil(4) {
                        l.store(u.d + k * ROW, m, &[read_word::<W>(p, k as usize); 32]);
                    }
                    return Flow::Next;
                }
            }
            Pattern::Halves(halves) if m == FULL && load_halves::<S, W>(l, u, &halves) => return Flow::Next,
            _ => {}
        }
        let mut from = [0; 32];
        if let Some(p) = span::<S, W>(l, u, m, &mut from) {
            if logged::may_touch_any(l, S, p, &from) {
                return logged::load::<S, W>(l, u, m);
            }
            gather::<W>(l, u, m, p, &from);
            return Flow::Next;
        }
        load_each::<S, W>(l, u, m)
    }
}

/// Lanes anywhere in one allocation: where the lowest is, and how far from it each is.
///
/// # Safety
/// As above.
#[inline(always)]
unsafe fn span<const S: u32, const W: u32>(l: &Lanes, u: &Uop, m: u32, from: &mut Row) -> Option<*mut u8> {
    let size = bytes(W);
    // SAFETY: the address rows exist.
    unsafe {
        let (low, high) = (&*l.row(u.a), &*l.row(u.b));
        let first = m.trailing_zeros() as usize & 31;
        let (low0, high0) = (low[first], high[first]);
        // Lanes that do not run go where the first one goes.
        *from = [low0; 32];
        zip::blend(from, m, low);
        let (mut least, mut most, mut upper, mut all) = (u32::MAX, 0, 0, 0);
        for i in 0..32 {
            least = least.min(from[i]);
            most = most.max(from[i]);
            all |= from[i];
        }
        if S != SHARED {
            let mut h = [high0; 32];
            zip::blend(&mut h, m, high);
            for i in 0..32 {
                upper |= h[i] ^ high0;
            }
        }
        for i in 0..32 {
            from[i] = from[i].wrapping_sub(least);
        }
        let add = displacement(l, u, S);
        let base = u64::from(least) | if S == SHARED { 0 } else { u64::from(high0) << 32 };
        let start = base.wrapping_add(add);
        let start = if S == SHARED { start & 0xffff_ffff } else { start };
        if upper != 0 || (u64::from(all) | add) & u64::from(size - 1) != 0 {
            return None;
        }
        resolve(l, u, S, start, u64::from(most - least) + u64::from(size))
    }
}

/// # Safety
/// `p` and the distances are of [`span`].
#[inline(always)]
pub(super) unsafe fn gather<const W: u32>(l: &mut Lanes, u: &Uop, m: u32, p: *const u8, from: &Row) {
    for k in 0..bytes(W).div_ceil(4) as usize {
        let mut r = [0; 32];
        for i in 0..32 {
            // SAFETY: the caller's promise.
            r[i] = unsafe { read_word::<W>(p.add(from[i] as usize), k) };
        }
        // SAFETY: the row exists.
        unsafe { l.store(u.d + k as u32 * ROW, m, &r) };
    }
}

/// # Safety
/// As above.
#[inline(always)]
unsafe fn load_each<const S: u32, const W: u32>(l: &mut Lanes, u: &Uop, m: u32) -> Flow {
    let size = bytes(W);
    // SAFETY: what is resolved is within bounds. Addresses are read before anything is written, since the
    // destination may be the address.
    unsafe {
        if logged::is_needed(l, S) {
            return logged::load::<S, W>(l, u, m);
        }
        let mut places = [std::ptr::null_mut(); 32];
        let mut locals = 0;
        let mut rest = m;
        while rest != 0 {
            let lane = rest.trailing_zeros();
            rest &= rest - 1;
            let a = address(l, u, S, lane);
            if S == GENERIC && is_local(S, a) {
                locals |= 1 << lane;
                places[lane as usize] = std::ptr::without_provenance_mut(a as u32 as usize);
                continue;
            }
            match lane_pointer(l, u, S, a, size) {
                Ok(p) => places[lane as usize] = p,
                Err(kind) => return fault(l, kind, S, a, size, lane, false),
            }
        }
        let mut rest = m & !locals;
        while rest != 0 {
            let lane = rest.trailing_zeros();
            rest &= rest - 1;
            load_lane::<W>(l, u, lane, places[lane as usize]);
        }
        if locals != 0 {
            let addresses = places.map(|p| p as usize as u32);
            return load_locals::<W>(l, u, locals, &addresses, S);
        }
    }
    Flow::Next
}

/// # Safety
/// As above.
pub(super) unsafe fn load_locals<const W: u32>(
    l: &mut Lanes,
    u: &Uop,
    m: u32,
    addresses: &Row,
    s: u32,
) -> Flow {
    let size = bytes(W);
    for lane in 0..32 {
        if m >> lane & 1 == 0 {
            continue;
        }
        let a = addresses[lane as usize];
        if let Some(kind) = check_local(l, a, size) {
            return fault(l, kind, s, u64::from(a), size, lane, false);
        }
        let v = l.local.read(lane, a, size);
        // SAFETY: the destination rows exist.
        unsafe {
            match W {
                S8 => l.set_lane(u.d, lane, v as i8 as u32),
                S16 => l.set_lane(u.d, lane, v as i16 as u32),
                _ => {
                    for k in 0..size.div_ceil(4) {
                        l.set_lane(u.d + k * ROW, lane, (v >> (32 * k)) as u32);
                    }
                }
            }
        }
    }
    Flow::Next
}

pub fn check_local(l: &mut Lanes, address: u32, size: u32) -> Option<FaultKind> {
    if address & (size - 1) != 0 {
        Some(FaultKind::Misaligned)
    } else if !l.local.reach(address, size) {
        Some(FaultKind::OutOfBounds)
    } else {
        None
    }
}

/// # Safety
/// As above.
#[inline(always)]
unsafe fn store<const S: u32, const W: u32>(l: &mut Lanes, u: &Uop) -> Flow {
    let m = l.mask(u);
    if m == 0 {
        return Flow::Next;
    }
    let size = bytes(W);
    // SAFETY: what is resolved is within bounds.
    unsafe {
        if let Pattern::Consecutive(start) = pattern::<S, W>(l, u)
            && start & u64::from(size - 1) == 0
        {
            let (first, last) = (m.trailing_zeros(), 31 - m.leading_zeros());
            let from = start + u64::from(first * size);
            if let Some(p) = resolve(l, u, S, from, u64::from((last - first + 1) * size)) {
                if m == FULL {
                    store_all::<W>(l, u, logged::sink(l, S != SHARED, p, 32 * size));
                } else if S != SHARED && !l.log.is_null() {
                    logged::store_runs::<W>(l, u, m, p, first);
                } else {
                    for i in first..=last {
                        if m >> i & 1 != 0 {
                            store_lane::<W>(l, u, i, p.add(((i - first) * size) as usize));
                        }
                    }
                }
                return Flow::Next;
            }
        }
        let mut rest = m;
        let mut from = [0; 32];
        if S != GENERIC
            && let Some(p) = span::<S, W>(l, u, m, &mut from)
        {
            while rest != 0 {
                let lane = rest.trailing_zeros();
                rest &= rest - 1;
                let p = p.add(from[lane as usize] as usize);
                store_lane::<W>(l, u, lane, logged::sink(l, S != SHARED, p, size));
            }
            return Flow::Next;
        }
        while rest != 0 {
            let lane = rest.trailing_zeros();
            rest &= rest - 1;
            let a = address(l, u, S, lane);
            if S == GENERIC && is_local(S, a) {
                if let Some(kind) = check_local(l, a as u32, size) {
                    return fault(l, kind, S, a, size, lane, true);
                }
                store_local::<W>(l, u, lane, a as u32);
                continue;
            }
            match lane_pointer(l, u, S, a, size) {
                Ok(p) => {
                    let is_global = S != SHARED && (a >> 32) as u32 != SHARED_HIGH;
                    store_lane::<W>(l, u, lane, logged::sink(l, is_global, p, size));
                }
                Err(kind) => return fault(l, kind, S, a, size, lane, true),
            }
        }
    }
    Flow::Next
}

/// # Safety
/// As above.
unsafe fn store_local<const W: u32>(l: &mut Lanes, u: &Uop, lane: u32, a: u32) {
    let size = bytes(W);
    // SAFETY: the source rows exist.
    let v = unsafe {
        (0..size.div_ceil(4)).fold(0u128, |v, k| v | u128::from(l.lane(u.c + k * ROW, lane)) << (32 * k))
    };
    l.local.write(lane, a, size, v);
}

/// # Safety
/// As above.
#[inline(always)]
unsafe fn local_addresses(l: &Lanes, u: &Uop) -> Row {
    let mut r = [0; 32];
    // SAFETY: the address rows exist.
    unsafe {
        let add = displacement(l, u, LOCAL) as u32;
        let a = &*l.row(u.a);
        for i in 0..32 {
            r[i] = a[i].wrapping_add(add);
        }
    }
    r
}

/// Whether all lanes have one address, which whole rows can serve.
fn is_row(addresses: &Row, width: u32) -> bool {
    let first = addresses[0];
    bytes(width) >= 4
        && first.is_multiple_of(bytes(width))
        && addresses.iter().fold(0, |x, a| x | (a ^ first)) == 0
}

/// Splits a generic access by window: most have all their lanes in one.
///
/// # Safety
/// As above.
#[inline(always)]
pub(crate) unsafe fn window(l: &Lanes, u: &Uop) -> u32 {
    // SAFETY: the row exists.
    let high = unsafe { &*l.row(u.b) };
    let first = high[0];
    let mut differ = 0;
    for i in 0..32 {
        differ |= high[i] ^ first;
    }
    // The immediate could carry an address into another window; then lanes go one by one.
    if differ == 0 && u64::from(first) >= isa::abi::GLOBAL_BASE >> 32 { GLOBAL } else { GENERIC }
}

bodies! {
    Load<const S: u32, const W: u32> |l, u| load::<S, W>(l, u);
    Store<const S: u32, const W: u32> |l, u| store::<S, W>(l, u);
    LoadGeneric<const W: u32> |l, u| {
        if window(l, u) == GLOBAL { load::<GLOBAL, W>(l, u) } else { load_each::<GENERIC, W>(l, u, l.mask(u)) }
    };
    StoreGeneric<const W: u32> |l, u| {
        if window(l, u) == GLOBAL { store::<GLOBAL, W>(l, u) } else { store::<GENERIC, W>(l, u) }
    };
    LoadLocal<const W: u32> |l, u| {
        let m = l.mask(u);
        let addresses = local_addresses(l, u);
        if m != 0 && is_row(&addresses, W) && l.local.reach(addresses[0], bytes(W)) {
            for k in 0..bytes(W) / 4 {
                let row = *l.local.row(addresses[0] + 4 * k);
                l.store(u.d + k * ROW, m, &row);
            }
            return Flow::Next;
        }
        load_locals::<W>(l, u, m, &addresses, LOCAL)
    };
    StoreLocal<const W: u32> |l, u| {
        let m = l.mask(u);
        let addresses = local_addresses(l, u);
        if m == FULL && is_row(&addresses, W) && l.local.reach(addresses[0], bytes(W)) {
            for k in 0..bytes(W) / 4 {
                *l.local.row(addresses[0] + 4 * k) = *l.row(u.c + k * ROW);
            }
            return Flow::Next;
        }
        for lane in 0..32 {
            if m >> lane & 1 != 0 {
                let a = addresses[lane as usize];
                if let Some(kind) = check_local(l, a, bytes(W)) {
                    return fault(l, kind, LOCAL, u64::from(a), bytes(W), lane, true);
                }
                store_local::<W>(l, u, lane, a);
            }
        }
        Flow::Next
    };
    /// A constant bank by register; `aux`: the bank, from bit 8 on the width.
    LoadConst |l, u| {
        let (m, width) = (l.mask(u), u.aux >> 8);
        let size = bytes(width);
        for lane in 0..32 {
            if m >> lane & 1 == 0 {
                continue;
            }
            let a = l.lane(u.a, lane).wrapping_add(u.imm as u32);
            let Some(v) = (*l.banks).read(u.aux as u8, a, size) else {
                return const_fault(l, a, size, lane);
            };
            match width {
                S8 => l.set_lane(u.d, lane, v as i8 as u32),
                S16 => l.set_lane(u.d, lane, v as i16 as u32),
                _ => {
                    for k in 0..size.div_ceil(4) {
                        l.set_lane(u.d + k * ROW, lane, (v >> (32 * k)) as u32);
                    }
                }
            }
        }
        Flow::Next
    };
    Membar |l, _u| {
        if l.concurrent {
            std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        }
        Flow::Next
    };
    /// Is the generic address in the window `aux`?
    InWindow |l, u| {
        let what = u.aux;
        let bank = (*l.banks).const_bounds();
        let a = crate::lanes::Pair::at(l, u.a);
        let answer = L::mask_of(|i| {
            let x = a.get(i);
            let high = (x >> 32) as u32;
            match what {
                0 => x >= isa::abi::GLOBAL_BASE && !bank.holds(x, 1),
                1 => high == SHARED_HIGH,
                2 => high == LOCAL_HIGH,
                _ => bank.holds(x, 1),
            }
        });
        l.set_pred(u.pd[0], l.mask(u), answer);
        Flow::Next
    };
}

#[cold]
pub fn const_fault(l: &mut Lanes, address: u32, size: u32, lane: u32) -> Flow {
    let kind = if address & (size - 1) != 0 { FaultKind::Misaligned } else { FaultKind::OutOfBounds };
    l.fail(kind, Some(Access { space: Space::Const, address: address.into(), size, lane, is_store: false }))
}

/// The levels of the body for a width.
macro_rules! by_width {
    ($w:expr, $name:ident $(, $s:ident)?) => {
        match $w {
            Width::B32 => levels::<$name<$($s,)? B32>>(),
            Width::U8 => levels::<$name<$($s,)? U8>>(),
            Width::S8 => levels::<$name<$($s,)? S8>>(),
            Width::U16 => levels::<$name<$($s,)? U16>>(),
            Width::S16 => levels::<$name<$($s,)? S16>>(),
            Width::B64 => levels::<$name<$($s,)? B64>>(),
            Width::B128 => levels::<$name<$($s,)? B128>>(),
        }
    };
}

pub fn decode(i: &Inst, u: &mut Uop) -> Option<Levels> {
    let w = i.get::<Width>();
    u.aux = bytes(i.field(Field::Width));
    Some(match i.op {
        Op::Ldg => by_width!(w, Load, GLOBAL),
        Op::Stg => by_width!(w, Store, GLOBAL),
        Op::Lds => by_width!(w, Load, SHARED),
        Op::Sts => by_width!(w, Store, SHARED),
        Op::Ldl => by_width!(w, LoadLocal),
        Op::Stl => by_width!(w, StoreLocal),
        Op::Ld => by_width!(w, LoadGeneric),
        Op::St => by_width!(w, StoreGeneric),
        Op::Ldc => {
            u.aux = i.field(Field::Bank) | i.field(Field::Width) << 8;
            levels::<LoadConst>()
        }
        Op::Membar => levels::<Membar>(),
        Op::Qspc => {
            u.aux = i.field(Field::SpaceKind);
            levels::<InWindow>()
        }
        _ => return None,
    })
}
