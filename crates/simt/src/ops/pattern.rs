//! How the addresses of a warp lie: what a load or store can do for all lanes at once.

use super::memory::{SHARED, bytes, displacement};
use crate::lanes::Lanes;
use crate::uop::Uop;

/// How the addresses of all lanes, those that do not run too, lie.
pub(crate) enum Pattern {
    /// Lane `i` at the address plus `i` times the size.
    Consecutive(u64),
    /// All at one address.
    Same(u64),
    /// Each half of the warp in one of these two ways: tiles that are half a warp wide are read like this.
    Halves([Half; 2]),
    Other,
}

pub(crate) struct Half {
    pub start: u64,
    /// All at one address, else consecutive.
    pub same: bool,
}

/// Space and width are constants: passed as values, shared loads on AVX-512 took a third longer even with all inlined.
///
/// # Safety
/// As [`crate::uop::Handler`].
#[inline(always)]
pub(crate) unsafe fn pattern<const S: u32, const W: u32>(l: &Lanes, u: &Uop) -> Pattern {
    let size = bytes(W);
    // SAFETY: the address rows exist.
    unsafe {
        let (low, high) = (&*l.row(u.a), &*l.row(u.b));
        let bases = [low[0], low[16]];
        let (mut step, mut same, mut upper) = ([0; 2], [0; 2], 0);
        for h in 0..2 {
            for i in 0..16 {
                let d = low[16 * h + i].wrapping_sub(bases[h]);
                step[h] |= d ^ (size * i as u32);
                same[h] |= d;
            }
        }
        if S != SHARED {
            for i in 0..32 {
                upper |= high[i] ^ high[0];
            }
        }
        let regular = (step[0] == 0 || same[0] == 0) && (step[1] == 0 || same[1] == 0);
        // Lanes whose low words wrap around are not consecutive.
        let wraps = bases[0].max(bases[1]).checked_add(31 * size).is_none();
        if upper != 0 || wraps || !regular {
            return Pattern::Other;
        }
        let add = displacement(l, u, S);
        let start = |base: u32| {
            let base = u64::from(base) | if S == SHARED { 0 } else { u64::from(high[0]) << 32 };
            let start = base.wrapping_add(add);
            if S == SHARED { start & 0xffff_ffff } else { start }
        };
        let (first, second) = (start(bases[0]), start(bases[1]));
        // Beyond the end of the address space nothing is allocated.
        if first.max(second).checked_add(u64::from(32 * size)).is_none() {
            Pattern::Other
        } else if step == [0; 2] && bases[1] == bases[0] + 16 * size {
            Pattern::Consecutive(first)
        } else if same == [0; 2] && bases[0] == bases[1] {
            Pattern::Same(first)
        } else {
            let half = |start, same| Half { start, same: same == 0 };
            Pattern::Halves([half(first, same[0]), half(second, same[1])])
        }
    }
}
