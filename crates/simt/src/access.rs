//! Which bytes an instruction is about to touch.

use crate::fault::Space;
use crate::lanes::{Lanes, Row};
use crate::ops::atomic;
use crate::ops::memory::{self, B32, B64, B128, GENERIC, GLOBAL, LOCAL, SHARED, U8, U16};
use crate::ops::pattern::{Pattern, pattern};
use crate::prefetch::prefetch_at;
use crate::uop::Uop;
use isa::Op;
use isa::abi::{LOCAL_HIGH, SHARED_HIGH};
use isa::field::{AtomType, FieldValue};

/// Where the lanes of an access go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Where {
    /// Lane `i` to this address plus `i` times the size.
    Consecutive(u64),
    /// All lanes to this address.
    Same(u64),
    /// Lane 0 to this address, and lanes 1, 2, 4, 8 and 16 so far from it; where the others go is the sum of these steps,
    /// as where threads are a tile. In shared memory only.
    Tile(u64, [u32; 5]),
    /// Each half of the warp to consecutive addresses, or all its lanes to one: where it begins, and which. In global
    /// memory only.
    Halves([u64; 2], [bool; 2]),
    /// Each as `Access::lanes` says.
    #[default]
    Lanes,
}

/// The access of an instruction that is about to execute. Shared and local addresses are offsets.
#[derive(Clone, Debug)]
pub struct Access {
    /// As the instruction has it.
    pub space: Space,
    /// Lanes that execute it.
    pub mask: u32,
    /// Those of them that go to global, shared and local memory.
    pub global: u32,
    pub shared: u32,
    pub local: u32,
    /// Bytes a lane.
    pub size: u32,
    pub place: Where,
    /// Addresses of the lanes in `mask`, if `place` is [`Where::Lanes`].
    pub lanes: [u64; 32],
}

impl Default for Access {
    fn default() -> Self {
        Access {
            space: Space::Global,
            mask: 0,
            global: 0,
            shared: 0,
            local: 0,
            size: 0,
            place: Where::Lanes,
            lanes: [0; 32],
        }
    }
}

impl Access {
    /// The address of a lane that executes.
    pub fn address(&self, lane: u32) -> u64 {
        match self.place {
            Where::Consecutive(base) => base + u64::from(lane * self.size),
            Where::Same(address) => address,
            Where::Tile(base, steps) => {
                let bits = (0..5).filter(|n| lane >> n & 1 != 0);
                let at = bits.fold(base as u32, |at, n: usize| at.wrapping_add(steps[n]));
                u64::from(at)
            }
            Where::Halves(starts, same) => {
                let half = (lane as usize / 16) & 1;
                starts[half] + if same[half] { 0 } else { u64::from(lane % 16 * self.size) }
            }
            Where::Lanes => self.lanes[lane as usize & 31],
        }
    }
}

/// Space and bytes a lane of an instruction that accesses memory by address.
#[inline(always)]
pub(crate) fn kind(u: &Uop) -> Option<(u32, u32)> {
    let atomic = || atomic::size(AtomType::from_bits(u.aux >> 8 & 15));
    Some(match u.op {
        Op::Ldg | Op::Stg => (GLOBAL, u.aux),
        Op::Lds | Op::Sts => (SHARED, u.aux),
        Op::Ldl | Op::Stl => (LOCAL, u.aux),
        Op::Ld | Op::St => (GENERIC, u.aux),
        Op::Atomg | Op::Redg => (GLOBAL, atomic()),
        Op::Atoms => (SHARED, atomic()),
        Op::Atom | Op::Red => (GENERIC, atomic()),
        _ => return None,
    })
}

/// An instruction executes soon whose registers are there: of what it touches in global memory, the host's caches are asked
/// for two lines of the host, those of the first lane of each half.
///
/// # Safety
/// The lanes are bound, and the instruction is theirs.
#[inline(always)]
pub(crate) unsafe fn expect(l: &Lanes, u: &Uop) {
    if matches!(u.op, Op::Ldg | Op::Stg | Op::Ld | Op::St) {
        for lane in [0, 16] {
            // SAFETY: the caller's promise.
            let at = unsafe { memory::address(l, u, GLOBAL, lane) };
            prefetch_at(l.global.wrapping_add(at as usize));
        }
    }
}

/// [`locate`], compiled for a level.
///
/// # Safety
/// The lanes are bound, the instruction is theirs, and the host has the level.
pub(crate) type Locate = unsafe fn(&Lanes, &Uop, u32, &mut Access);

/// Fills in what `out` has beyond its mask and size, for an instruction on space `s`.
///
/// # Safety
/// As [`Locate`], here and below.
#[inline(always)]
pub(crate) unsafe fn locate(l: &Lanes, u: &Uop, s: u32, out: &mut Access) {
    out.space = memory::space(s);
    (out.global, out.shared, out.local) = (0, 0, 0);
    // SAFETY: the caller's promise.
    unsafe {
        let s = if s == GENERIC { memory::window(l, u) } else { s };
        match s {
            GLOBAL => {
                out.global = out.mask;
                sized::<GLOBAL>(l, u, out);
            }
            GENERIC => windows(l, u, out),
            // Shared and local addresses are 32 bits alike.
            _ => {
                *(if s == SHARED { &mut out.shared } else { &mut out.local }) = out.mask;
                sized::<SHARED>(l, u, out);
            }
        }
    }
}

/// # Safety
/// As above.
#[inline(always)]
unsafe fn sized<const S: u32>(l: &Lanes, u: &Uop, out: &mut Access) {
    // SAFETY: the caller's promise.
    unsafe {
        out.place = match out.size {
            1 => place::<S, U8>(l, u, out),
            2 => place::<S, U16>(l, u, out),
            4 => place::<S, B32>(l, u, out),
            8 => place::<S, B64>(l, u, out),
            _ => place::<S, B128>(l, u, out),
        };
    }
}

/// # Safety
/// As above.
#[inline(always)]
unsafe fn place<const S: u32, const W: u32>(l: &Lanes, u: &Uop, out: &mut Access) -> Where {
    // SAFETY: the caller's promise.
    unsafe {
        if S == SHARED && out.shared != 0 {
            return match in_tile(l, u, memory::bytes(W)) {
                Some(place) => place,
                None => {
                    addresses::<S>(l, u, out);
                    Where::Lanes
                }
            };
        }
        match pattern::<S, W>(l, u) {
            Pattern::Consecutive(base) => Where::Consecutive(base),
            Pattern::Same(address) => Where::Same(address),
            Pattern::Halves([a, b]) if S == GLOBAL => Where::Halves([a.start, b.start], [a.same, b.same]),
            _ => {
                addresses::<S>(l, u, out);
                Where::Lanes
            }
        }
    }
}

/// Where lanes go in shared memory, if they are a tile: consecutive lanes and lanes at one address are tiles too.
///
/// # Safety
/// As above.
#[inline(always)]
unsafe fn in_tile(l: &Lanes, u: &Uop, size: u32) -> Option<Where> {
    // SAFETY: the caller's promise.
    let (low, add) = unsafe { (&*l.row(u.a), memory::displacement(l, u, SHARED)) };
    let steps = steps(low)?;
    let base = u64::from(low[0].wrapping_add(add as u32));
    // Lanes that wrap around are not consecutive.
    if low[0].max(low[16]).checked_add(31 * size).is_none() {
        return Some(Where::Tile(base, steps));
    }
    Some(match steps {
        [0, 0, 0, 0, 0] => Where::Same(base),
        _ if steps == [1, 2, 4, 8, 16].map(|n| n * size) => Where::Consecutive(base),
        _ => Where::Tile(base, steps),
    })
}

/// # Safety
/// As above.
#[inline(always)]
unsafe fn addresses<const S: u32>(l: &Lanes, u: &Uop, out: &mut Access) {
    // SAFETY: the caller's promise.
    let (low, high, add) = unsafe { (&*l.row(u.a), &*l.row(u.b), memory::displacement(l, u, S)) };
    for i in 0..32 {
        out.lanes[i] = if S == SHARED {
            u64::from(low[i].wrapping_add(add as u32))
        } else {
            (u64::from(low[i]) | u64::from(high[i]) << 32).wrapping_add(add)
        };
    }
}

/// How far lanes 1, 2, 4, 8 and 16 are from lane 0, if the others are where the sum of these steps takes them.
#[inline(always)]
fn steps(row: &Row) -> Option<[u32; 5]> {
    let steps = std::array::from_fn(|n| row[1 << n].wrapping_sub(row[0]));
    let mut off = 0;
    for i in 0..32 {
        let mut at = row[0];
        for n in 0..5 {
            // All ones for a lane that has the bit.
            at = at.wrapping_add(steps[n] & (i as u32 >> n & 1).wrapping_neg());
        }
        off |= at ^ row[i];
    }
    (off == 0).then_some(steps)
}

/// A generic access whose lanes may go to different windows.
///
/// # Safety
/// As above.
unsafe fn windows(l: &Lanes, u: &Uop, out: &mut Access) {
    // SAFETY: the caller's promise.
    unsafe { addresses::<GENERIC>(l, u, out) };
    out.place = Where::Lanes;
    for lane in (0..32).filter(|i| out.mask >> i & 1 != 0) {
        let a = &mut out.lanes[lane];
        let set = match (*a >> 32) as u32 {
            SHARED_HIGH => &mut out.shared,
            LOCAL_HIGH => &mut out.local,
            _ => {
                out.global |= 1 << lane;
                continue;
            }
        };
        *set |= 1 << lane;
        *a &= 0xffff_ffff;
    }
}
