//! Branches, calls, convergence barriers, special registers. What makes lanes part is an event for the warp.

use super::bodies;
use crate::fault::FaultKind;
use crate::lanes::{FULL, Lanes, Row};
use crate::level::{Levels, levels};
use crate::special;
use crate::uop::{Flow, ROW, Uop};
use isa::field::{BptMode, Field};
use isa::{Inst, Op, Special};

/// The place that all of these lanes name, if it is one.
///
/// # Safety
/// As [`crate::uop::Handler`].
#[inline(always)]
unsafe fn one_target(l: &Lanes, u: &Uop, m: u32) -> Option<u32> {
    // SAFETY: the row exists.
    let a = unsafe { &*l.row(u.a) };
    let first = a[m.trailing_zeros() as usize & 31];
    let mut differ = 0;
    for i in 0..32 {
        differ |= if m >> i & 1 != 0 { a[i] ^ first } else { 0 };
    }
    (differ == 0).then_some(first)
}

/// Jumps when all lanes go and go to one place.
///
/// # Safety
/// As above.
#[inline(always)]
unsafe fn jump_register(l: &mut Lanes, u: &Uop, call: bool) -> Flow {
    let m = l.mask(u);
    if m == 0 {
        return Flow::Next;
    }
    // SAFETY: the rows exist; the kernel is bound.
    unsafe {
        match one_target(l, u, m) {
            Some(pc) if m == l.active => {
                if pc >= (*l.kernel).places(u.op) {
                    return l.fail(FaultKind::IllegalJump(pc), None);
                }
                if call {
                    l.store(u.d, m, &[u.hint + 1; 32]);
                }
                l.next = pc;
                Flow::Jump
            }
            _ => Flow::Event,
        }
    }
}

/// All bits that the lanes of a mask have.
#[inline(always)]
pub(crate) fn of_lanes(row: &Row, mask: u32) -> u32 {
    let mut all = 0;
    for i in 0..32 {
        // Without a branch: who is in a mask is nothing that a host could guess.
        all |= row[i] & (mask >> i & 1).wrapping_neg();
    }
    all
}

bodies! {
    Bra |l, u| {
        let m = l.mask(u);
        if m == l.active {
            l.next = u.imm as u32;
            Flow::Jump
        } else if m == 0 {
            Flow::Next
        } else {
            Flow::Event
        }
    };
    Call |l, u| {
        let m = l.mask(u);
        if m == l.active {
            l.store(u.d, m, &[u.hint + 1; 32]);
            l.next = u.imm as u32;
            Flow::Jump
        } else if m == 0 {
            Flow::Next
        } else {
            Flow::Event
        }
    };
    JumpRegister |l, u| jump_register(l, u, false);
    CallRegister |l, u| jump_register(l, u, true);
    /// What the warp deals with.
    Event |l, u| if l.mask(u) == 0 { Flow::Next } else { Flow::Event };
    Bssy |l, u| {
        let m = l.mask(u);
        l.store(u.d, m, &[m; 32]);
        Flow::Next
    };
    Bsync |l, u| {
        let m = l.mask(u);
        let all = of_lanes(&*l.row(u.a), m);
        // Everyone is here already.
        if all & l.live & !m == 0 { Flow::Next } else { Flow::Event }
    };
    BarrierMove |l, u| {
        let a = *l.row(u.a);
        l.store(u.d, l.mask(u), &a);
        Flow::Next
    };
    Trap |l, u| if l.mask(u) == 0 { Flow::Next } else { l.fail(FaultKind::Trap, None) };
    Illegal |l, _u| l.fail(FaultKind::IllegalInstruction, None);
    ReadSpecial |l, u| {
        let row = special::row(&*l.cta, l.warp, u.aux);
        l.store(u.d, l.mask(u), &row);
        Flow::Next
    };
    /// The x of threads, where a warp lies in one line of the CTA.
    ReadThreadX |l, u| {
        let [_, y, z] = (*l.cta).block;
        if (y | z) != 1 {
            let row = special::row(&*l.cta, l.warp, u.aux);
            l.store(u.d, l.mask(u), &row);
            return Flow::Next;
        }
        let first = 32 * l.warp;
        let mut r = [0; 32];
        for i in 0..32 {
            r[i] = first + i as u32;
        }
        l.store(u.d, l.mask(u), &r);
        Flow::Next
    };
    ReadSpecialScalar |l, u| {
        let value = special::uniform(&*l.cta, l.warp, u.aux);
        l.store(u.d, l.mask(u), &[value; 32]);
        Flow::Next
    };
    ReadSpecialPair |l, u| {
        let (low, high) = (special::row(&*l.cta, l.warp, u.aux), special::row(&*l.cta, l.warp, u.aux + 1));
        l.store(u.d, l.mask(u), &low);
        l.store(u.d + ROW, l.mask(u), &high);
        Flow::Next
    };
    ReadSpecialUniform |l, u| {
        let m = l.mask(u);
        if m != 0 {
            let row = special::row(&*l.cta, l.warp, u.aux);
            l.store(u.d, FULL, &[row[m.trailing_zeros() as usize & 31]; 32]);
        }
        Flow::Next
    };
}

pub fn decode(i: &Inst, u: &mut Uop) -> Option<Levels> {
    Some(match i.op {
        Op::Bra => levels::<Bra>(),
        Op::Brx | Op::Ret => levels::<JumpRegister>(),
        Op::Call => levels::<Call>(),
        Op::Callx => levels::<CallRegister>(),
        Op::Bssy => levels::<Bssy>(),
        Op::Bsync => levels::<Bsync>(),
        Op::BmovR | Op::BmovB => levels::<BarrierMove>(),
        Op::Bar => {
            u.aux = crate::warp::bar_aux(i);
            levels::<Event>()
        }
        Op::Exit | Op::Nanosleep | Op::Yield => levels::<Event>(),
        Op::Bpt if i.get::<BptMode>() == BptMode::Trap => levels::<Trap>(),
        Op::Bpt => levels::<super::moves::Nop>(),
        Op::S2r | Op::Cs2r | Op::S2ur => {
            u.aux = i.field(Field::Sr);
            match i.op {
                _ if special::is_volatile(u.aux) => levels::<Event>(),
                Op::S2r if u.aux == Special::TidX as u32 => levels::<ReadThreadX>(),
                Op::S2r if special::is_uniform(u.aux) => levels::<ReadSpecialScalar>(),
                Op::S2r => levels::<ReadSpecial>(),
                Op::Cs2r => levels::<ReadSpecialPair>(),
                _ => levels::<ReadSpecialUniform>(),
            }
        }
        _ => return None,
    })
}
