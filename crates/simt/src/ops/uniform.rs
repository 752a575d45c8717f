//! The uniform datapath: one value a warp, kept as a row of equal lanes so that everything can read it.

use super::bodies;
use super::memory::const_fault;
use crate::lanes::Lanes;
use crate::level::{Levels, levels};
use crate::uop::{Flow, ROW, Uop};
use arith::bits;
use isa::field::{self, Field};
use isa::{Inst, Op};

/// Writes a uniform register when any lane runs.
///
/// # Safety
/// As [`crate::uop::Handler`].
#[inline(always)]
unsafe fn put(l: &mut Lanes, u: &Uop, value: u32) -> Flow {
    if l.mask(u) != 0 {
        // SAFETY: the row exists.
        unsafe { *l.row(u.d) = [value; 32] };
    }
    Flow::Next
}

/// # Safety
/// As [`crate::uop::Handler`].
unsafe fn load(l: &mut Lanes, u: &Uop, size: u32) -> Flow {
    if l.mask(u) == 0 {
        return Flow::Next;
    }
    // SAFETY: the rows exist, and the banks are bound.
    unsafe {
        let a = l.lane(u.a, 0).wrapping_add(u.imm as u32);
        match (*l.banks).read(u.aux as u8, a, size) {
            Some(v) => {
                for k in 0..size / 4 {
                    *l.row(u.d + k * ROW) = [(v >> (32 * k)) as u32; 32];
                }
                Flow::Next
            }
            None => const_fault(l, a, size, l.mask(u).trailing_zeros()),
        }
    }
}

bodies! {
    FromLanes |l, u| {
        let m = l.mask(u);
        if m != 0 {
            put(l, u, l.lane(u.a, m.trailing_zeros()));
        }
        Flow::Next
    };
    Mov |l, u| put(l, u, l.lane(u.b, 0));
    Add3 |l, u| put(l, u, l.lane(u.a, 0).wrapping_add(l.lane(u.b, 0)).wrapping_add(l.lane(u.c, 0)));
    Mad |l, u| put(l, u, l.lane(u.a, 0).wrapping_mul(l.lane(u.b, 0)).wrapping_add(l.lane(u.c, 0)));
    Lop3 |l, u| put(l, u, bits::lop3(l.lane(u.a, 0), l.lane(u.b, 0), l.lane(u.c, 0), u.aux as u8));
    Shift |l, u| put(l, u, super::integer::funnel(u.aux, l.lane(u.a, 0), l.lane(u.c, 0), l.lane(u.b, 0)));
    Lea |l, u| put(l, u, (l.lane(u.a, 0) << (u.aux & 31)).wrapping_add(l.lane(u.b, 0)));
    Known |l, u| put(l, u, l.known(u.imm));
    KnownPair |l, u| {
        if l.mask(u) != 0 {
            *l.row(u.d) = [l.known(u.imm); 32];
            *l.row(u.d + ROW) = [l.known(u.imm + 1); 32];
        }
        Flow::Next
    };
    Load32 |l, u| load(l, u, 4);
    Load64 |l, u| load(l, u, 8);
}

/// Loads one constant or two whose places are known.
pub fn known(rows: u32) -> Levels {
    if rows == 1 { levels::<Known>() } else { levels::<KnownPair>() }
}

pub fn decode(i: &Inst, u: &mut Uop) -> Option<Levels> {
    Some(match i.op {
        Op::R2ur => levels::<FromLanes>(),
        Op::Umov => levels::<Mov>(),
        Op::Uiadd3 => levels::<Add3>(),
        Op::Uimad => levels::<Mad>(),
        Op::Ulop3 => {
            u.aux = i.field(Field::Lut);
            levels::<Lop3>()
        }
        Op::Ushf => {
            super::integer::shift_bits(i, u);
            levels::<Shift>()
        }
        Op::Ulea => {
            u.aux = i.field(Field::Shift);
            levels::<Lea>()
        }
        Op::Uldc | Op::Uldc64 => {
            u.aux = i.field(field::Field::Bank);
            if i.op == Op::Uldc { levels::<Load32>() } else { levels::<Load64>() }
        }
        _ => return None,
    })
}
