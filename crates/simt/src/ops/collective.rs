//! Instructions that look at several lanes: shuffles, votes, matches, reductions.
//!
//! They run once all live members are here; before, the warp parks the lanes that came (see [`crate::warp`]).

use super::bodies;
use crate::lanes::{DROPPED, FULL, Lanes, Row};
use crate::level::{Levels, levels};
use crate::uop::{Flow, ROW, Uop};
use isa::field::{Field, FieldValue, ReduxOp, ShflMode, VoteMode};
use isa::{Inst, Op};

/// Every lane is a member; else E has the member mask.
const ALL: u32 = 1 << 8;

/// The members that a lane names.
///
/// # Safety
/// As [`crate::uop::Handler`], here and below.
#[inline(always)]
unsafe fn members_of(l: &Lanes, u: &Uop, lane: u32) -> u32 {
    // SAFETY: the row exists.
    if u.aux & ALL != 0 { FULL } else { unsafe { l.lane(u.e, lane) } }
}

/// The live members that the lanes of `mask` name together.
///
/// # Safety
/// As above.
pub unsafe fn members(l: &Lanes, u: &Uop, mask: u32) -> u32 {
    if u.aux & ALL != 0 {
        return l.live;
    }
    // SAFETY: the row exists.
    let e = unsafe { &*l.row(u.e) };
    let mut all = 0;
    for i in 0..32 {
        all |= if mask >> i & 1 != 0 { e[i] } else { 0 };
    }
    all & l.live
}

#[inline(always)]
unsafe fn is_complete(l: &Lanes, u: &Uop, m: u32) -> bool {
    // SAFETY: the caller's promise.
    l.forced || unsafe { members(l, u, m) } & !m == 0
}

/// The lane that a shuffle reads, and whether it is in range.
#[inline(always)]
fn source_lane(mode: u32, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (b, clamp, segment) = (b & 31, c & 31, c >> 8 & 31);
    let max = (lane & segment) | (clamp & !segment);
    let (j, ok) = match mode {
        UP => (lane.wrapping_sub(b), lane as i32 - b as i32 >= max as i32),
        DOWN => (lane + b, lane + b <= max),
        BFLY => (lane ^ b, lane ^ b <= max),
        _ => {
            let j = (lane & segment) | (b & !segment);
            (j, j <= max)
        }
    };
    (if ok { j & 31 } else { lane }, ok)
}

const UP: u32 = ShflMode::Up as u32;
const DOWN: u32 = ShflMode::Down as u32;
const BFLY: u32 = ShflMode::Bfly as u32;
const IDX: u32 = ShflMode::Idx as u32;

/// The lanes that all lanes read.
#[inline(always)]
fn source_lanes(mode: u32, from: &mut Row, b: &Row, c: &Row) {
    for i in 0..32 {
        from[i] = source_lane(mode, i as u32, b[i], c[i]).0;
    }
}

/// Lanes of `mask` whose row has the same value as `lane`.
fn equal_lanes(a: impl Fn(u32) -> u64, mask: u32, lane: u32) -> u32 {
    let value = a(lane);
    (0..32).filter(|&i| mask >> i & 1 != 0 && a(i) == value).fold(0, |m, i| m | 1 << i)
}

unsafe fn match_lanes(l: &mut Lanes, u: &Uop, m: u32, a: impl Fn(u32) -> u64) -> Flow {
    let all_equal = u.aux & 1 != 0;
    let (mut r, mut yes): (Row, u32) = ([0; 32], 0);
    for lane in (0..32).filter(|&i| m >> i & 1 != 0) {
        // SAFETY: the row exists.
        let members = unsafe { members_of(l, u, lane) } & m;
        let equal = equal_lanes(&a, members, lane);
        r[lane as usize] = if all_equal && equal != members { 0 } else { equal };
        yes |= u32::from(equal == members) << lane;
    }
    // SAFETY: the row exists.
    unsafe { l.store(u.d, m, &r) };
    l.set_pred(u.pd[0], m, yes);
    Flow::Next
}

fn reduce(op: ReduxOp, a: &Row, members: u32) -> u32 {
    let values = (0..32).filter(|i| members >> i & 1 != 0).map(|i| a[i as usize]);
    let pick = |f: fn(u32, u32) -> u32| values.clone().reduce(f).unwrap_or(0);
    match op {
        ReduxOp::Add => pick(u32::wrapping_add),
        ReduxOp::MinS => pick(|x, y| (x as i32).min(y as i32) as u32),
        ReduxOp::MinU => pick(u32::min),
        ReduxOp::MaxS => pick(|x, y| (x as i32).max(y as i32) as u32),
        ReduxOp::MaxU => pick(u32::max),
        ReduxOp::And => pick(|x, y| x & y),
        ReduxOp::Or => pick(|x, y| x | y),
        ReduxOp::Xor => pick(|x, y| x ^ y),
    }
}

/// Calls `f` for each group of lanes that name the same members, with those of them that are here.
unsafe fn by_members(l: &mut Lanes, u: &Uop, m: u32, mut f: impl FnMut(&mut Lanes, u32, u32)) {
    let mut rest = m;
    while rest != 0 {
        // SAFETY: the row exists.
        let members = unsafe { members_of(l, u, rest.trailing_zeros()) };
        // SAFETY: as above.
        let group = (0..32)
            .filter(|&i| rest >> i & 1 != 0 && unsafe { members_of(l, u, i) } == members)
            .fold(0, |g, i| g | 1 << i);
        rest &= !group;
        f(l, group, members & m);
    }
}

/// Leaves when nothing is to be done, or when members are missing.
macro_rules! gather {
    ($l:ident, $u:ident) => {{
        let m = $l.mask($u);
        if m == 0 {
            return Flow::Next;
        }
        if !is_complete($l, $u, m) {
            return Flow::Event;
        }
        m
    }};
}

bodies! {
    Shfl<const MODE: u32> |l, u| {
        let m = gather!(l, u);
        let (a, b, c) = (&*l.row(u.a), &*l.row(u.b), &*l.row(u.c));
        let mut from = [0; 32];
        source_lanes(MODE, &mut from, b, c);
        let yes = if u.pd[0] == DROPPED { 0 } else { L::mask_of(|i| source_lane(MODE, i as u32, b[i], c[i]).1) };
        let mut r = [0; 32];
        if m == FULL {
            for i in 0..32 {
                r[i] = a[from[i] as usize & 31];
            }
        } else {
            for i in 0..32 {
                // PTX leaves open what a lane that does not take part gives; the H200 gives zero.
                let j = from[i] & 31;
                r[i] = if m >> j & 1 != 0 { a[j as usize] } else { 0 };
            }
        }
        l.store(u.d, m, &r);
        l.set_pred(u.pd[0], m, yes);
        Flow::Next
    };
    Vote |l, u| {
        let m = gather!(l, u);
        let p = l.pred(u.ps[0]);
        let mode = VoteMode::from_bits(u.aux & 3);
        by_members(l, u, m, |l, group, members| {
            let yes = p & members;
            let answer = match mode {
                VoteMode::All => yes == members,
                VoteMode::Any | VoteMode::Ballot => yes != 0,
                VoteMode::Uni => yes == 0 || yes == members,
            };
            l.store(u.d, group, &[yes; 32]);
            l.set_pred(u.pd[0], group, if answer { FULL } else { 0 });
        });
        Flow::Next
    };
    Match |l, u| {
        let m = gather!(l, u);
        let a = *l.row(u.a);
        match_lanes(l, u, m, |i| a[i as usize].into())
    };
    Match64 |l, u| {
        let m = gather!(l, u);
        let (low, high) = (*l.row(u.a), *l.row(u.a + ROW));
        match_lanes(l, u, m, |i| u64::from(high[i as usize]) << 32 | u64::from(low[i as usize]))
    };
    Redux |l, u| {
        let m = gather!(l, u);
        let a = *l.row(u.a);
        let op = ReduxOp::from_bits(u.aux & 7);
        by_members(l, u, m, |l, group, members| l.store(u.d, group, &[reduce(op, &a, members); 32]));
        Flow::Next
    };
    /// The lowest member leads.
    Elect |l, u| {
        let m = gather!(l, u);
        by_members(l, u, m, |l, group, members| {
            let leader = members.trailing_zeros() & 31;
            l.store(u.d, group, &[leader; 32]);
            l.set_pred(u.pd[0], group, 1 << leader);
        });
        Flow::Next
    };
    Warpsync |l, u| {
        let _ = gather!(l, u);
        Flow::Next
    };
}

/// Whether this operation waits for members.
pub fn is_collective(op: Op) -> bool {
    matches!(op, Op::Shfl | Op::Vote | Op::Match | Op::Match64 | Op::Redux | Op::Elect | Op::Warpsync)
}

pub fn decode(i: &Inst, u: &mut Uop) -> Option<Levels> {
    let (levels, mode) = match i.op {
        Op::Shfl => {
            let mode = i.field(Field::ShflMode);
            let levels = match mode {
                UP => levels::<Shfl<UP>>(),
                DOWN => levels::<Shfl<DOWN>>(),
                BFLY => levels::<Shfl<BFLY>>(),
                _ => levels::<Shfl<IDX>>(),
            };
            (levels, mode)
        }
        Op::Vote => (levels::<Vote>(), i.field(Field::VoteMode)),
        Op::Match => (levels::<Match>(), i.field(Field::MatchMode)),
        Op::Match64 => (levels::<Match64>(), i.field(Field::MatchMode)),
        Op::Redux => (levels::<Redux>(), i.field(Field::ReduxOp)),
        Op::Elect => (levels::<Elect>(), 0),
        Op::Warpsync => (levels::<Warpsync>(), 0),
        _ => return None,
    };
    u.aux = mode | if i.flag(Field::All) { ALL } else { 0 };
    Some(levels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffles_clamp_at_segments() {
        // Segments of eight lanes: segment mask 0x18 in bits 8 to 12.
        let c = 0x1800;
        assert_eq!(source_lane(UP, 9, 1, c), (8, true));
        assert_eq!(source_lane(UP, 8, 1, c), (8, false));
        assert_eq!(source_lane(DOWN, 14, 1, c | 31), (15, true));
        assert_eq!(source_lane(DOWN, 15, 1, c | 31), (15, false));
        assert_eq!(source_lane(IDX, 13, 2, c | 31), (10, true));
        assert_eq!(source_lane(BFLY, 5, 1, 31), (4, true));
        assert_eq!(source_lane(UP, 0, 1, 0), (0, false));
    }
}
