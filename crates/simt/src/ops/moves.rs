//! Moves, selection, permutes.

use super::{bodies, pick};
use crate::lanes::{FULL, map3, store32, zip};
use crate::level::{Levels, levels};
use crate::uop::{Flow, ROW, Uop};
use arith::bits::{self, Prmt as Mode};
use isa::field::Field;
use isa::{Inst, Op};

const fn prmt_mode(bits: u32) -> Mode {
    match bits {
        0 => Mode::Index,
        1 => Mode::ForwardFour,
        2 => Mode::BackwardFour,
        3 => Mode::ReplicateByte,
        4 => Mode::EdgeClampLeft,
        5 => Mode::EdgeClampRight,
        _ => Mode::ReplicateHalf,
    }
}

bodies! {
    Nop |_l, _u| Flow::Next;
    Mov |l, u| {
        let b = *l.row(u.b);
        l.store(u.d, l.mask(u), &b);
        Flow::Next
    };
    Known |l, u| {
        l.store(u.d, l.mask(u), &[l.known(u.imm); 32]);
        Flow::Next
    };
    KnownPair |l, u| {
        let m = l.mask(u);
        l.store(u.d, m, &[l.known(u.imm); 32]);
        l.store(u.d + ROW, m, &[l.known(u.imm + 1); 32]);
        Flow::Next
    };
    Sel |l, u| {
        let p = l.pred(u.ps[0]);
        if p == FULL {
            let a = *l.row(u.a);
            l.store(u.d, l.mask(u), &a);
            return Flow::Next;
        }
        let mut r = *l.row(u.b);
        zip::blend(&mut r, p, &*l.row(u.a));
        l.store(u.d, l.mask(u), &r);
        Flow::Next
    };
    Prmt<const M: u32> |l, u| map3(l, u, |a, b, c| bits::prmt(a, c, b, prmt_mode(M)));
    ActMask |l, u| {
        let m = l.mask(u);
        store32(l, u, |_| m)
    };
}

/// Loads one constant or two whose places are known.
pub fn known(rows: u32) -> Levels {
    if rows == 1 { levels::<Known>() } else { levels::<KnownPair>() }
}

pub fn decode(i: &Inst, _u: &mut Uop) -> Option<Levels> {
    Some(match i.op {
        Op::Nop | Op::Pmtrig | Op::Cctl | Op::Errbar | Op::Cgaerrbar | Op::CctlIvall => levels::<Nop>(),
        Op::Mov => levels::<Mov>(),
        Op::Sel => levels::<Sel>(),
        Op::Prmt => pick!(i.field(Field::PrmtMode), Prmt, [0 1 2 3 4 5 6]),
        Op::Actmask => levels::<ActMask>(),
        _ => return None,
    })
}
