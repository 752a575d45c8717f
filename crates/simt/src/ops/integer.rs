//! Integer arithmetic, logic, shifts and bit fields.

use super::{bodies, pick};
use crate::lanes::{DROPPED, Pair, combine, compare, map_wide, map1, map2, map3, map4, store32, store64};
use crate::level::{Levels, levels};
use crate::uop::{Flow, Uop};
use arith::bits::{self, Amount};
use arith::int::{self, w32};
use arith::{ICmp, video};
use isa::field::{self, Field};
use isa::{Inst, Op};

const fn icmp(bits: u32) -> ICmp {
    match bits {
        0 => ICmp::Eq,
        1 => ICmp::Ne,
        2 => ICmp::Lt,
        3 => ICmp::Le,
        4 => ICmp::Gt,
        _ => ICmp::Ge,
    }
}

/// Bit 3 says signed, the others which comparison.
#[inline(always)]
fn compares(m: u32, a: u32, b: u32) -> bool {
    if m & 8 != 0 { w32::cmp_s(a, b, icmp(m & 7)) } else { w32::cmp_u(a, b, icmp(m & 7)) }
}

const X: u32 = 8;
const EX: u32 = 4;

/// All ones where operand `k` is complemented.
#[inline(always)]
fn complement(aux: u32, k: u32) -> u32 {
    0u32.wrapping_sub(aux >> k & 1)
}

#[inline(always)]
fn amount(aux: u32) -> Amount {
    if aux & 2 != 0 { Amount::Wrap } else { Amount::Clamp }
}

/// A funnel shift of any kind: bit 0 right, 1 signed, 2 of 64 bits, 3 high word, 4 wrap.
#[inline(always)]
pub fn funnel(m: u32, low: u32, high: u32, count: u32) -> u32 {
    let pair = u64::from(high) << 32 | u64::from(low);
    let width = if m & 4 != 0 { 64 } else { 32 };
    let n = if m & 16 != 0 { count & (width - 1) } else { count.min(width) };
    let shifted = match m & 3 {
        0 | 2 => bits::shl64(pair, n),
        1 => bits::shr64_u(pair, n),
        _ => bits::shr64_s(pair, n),
    };
    (if m & 8 != 0 { shifted >> 32 } else { shifted }) as u32
}

bodies! {
    Iadd3 |l, u| map3(l, u, |a, b, c| a.wrapping_add(b).wrapping_add(c));
    /// Some operands negated, no carries.
    Iadd3Neg |l, u| {
        let (na, nb, nc) = (complement(u.aux, 0), complement(u.aux, 1), complement(u.aux, 2));
        let ones = (u.aux & 7).count_ones();
        map3(l, u, |a, b, c| (a ^ na).wrapping_add(b ^ nb).wrapping_add(c ^ nc).wrapping_add(ones))
    };
    /// With a carry in, a carry out or both.
    Iadd3Carry |l, u| {
        let (na, nb, nc) = (complement(u.aux, 0), complement(u.aux, 1), complement(u.aux, 2));
        let (ones, carry_in) = if u.aux & X != 0 { (0, l.pred(u.ps[0])) } else { ((u.aux & 7).count_ones(), 0) };
        let (a, b, c) = (&*l.row(u.a), &*l.row(u.b), &*l.row(u.c));
        let sum = |i: usize| {
            u64::from(a[i] ^ na)
                + u64::from(b[i] ^ nb)
                + u64::from(c[i] ^ nc)
                + u64::from(ones + (carry_in >> i & 1))
        };
        let carry = L::mask_of(|i| sum(i) >> 32 != 0);
        store32(l, u, |i| sum(i) as u32);
        l.set_pred(u.pd[0], l.mask(u), carry);
        Flow::Next
    };
    AddSat |l, u| map2(l, u, int::add_sat_s32);
    SubSat |l, u| map2(l, u, int::sub_sat_s32);
    Imad |l, u| map3(l, u, w32::mad_lo);
    ImadHiU |l, u| map3(l, u, w32::mad_hi_u);
    ImadHiS |l, u| map3(l, u, w32::mad_hi_s);
    ImadWideU |l, u| {
        map_wide(l, u, w32::mad_wide_u)
    };
    ImadWideS |l, u| {
        map_wide(l, u, w32::mad_wide_s)
    };
    Lea |l, u| {
        let shift = u.aux & 31;
        map2(l, u, |a, b| (a << shift).wrapping_add(b))
    };
    /// The high word, a carry in, or a carry out. Bit 5: high, bit 6: X.
    LeaAny |l, u| {
        let shift = u.aux & 31;
        let high = u.aux & 32 != 0;
        let carry_in = if u.aux & 64 != 0 { l.pred(u.ps[0]) } else { 0 };
        let (a, b, c) = (&*l.row(u.a), &*l.row(u.b), &*l.row(u.c));
        let sum = |i: usize| {
            let pair = (u64::from(c[i]) << 32 | u64::from(a[i])) << shift;
            let part = if high { pair >> 32 } else { pair & 0xffff_ffff };
            part + u64::from(b[i]) + u64::from(carry_in >> i & 1)
        };
        let carry = L::mask_of(|i| sum(i) >> 32 != 0);
        store32(l, u, |i| sum(i) as u32);
        l.set_pred(u.pd[0], l.mask(u), carry);
        Flow::Next
    };
    Iabs |l, u| map1(l, u, w32::abs);
    AbsDiffU |l, u| map3(l, u, w32::sad_u);
    AbsDiffS |l, u| map3(l, u, w32::sad_s);
    /// Bits: signed, max.
    Imnmx<const M: u32> |l, u| map2(l, u, |a, b| match M {
        0 => w32::min_u(a, b),
        1 => w32::min_s(a, b),
        2 => w32::max_u(a, b),
        _ => w32::max_s(a, b),
    });
    Isetp<const M: u32> |l, u| compare::<L>(l, u, |a, b| compares(M, a, b));
    /// The high words of a 64-bit comparison.
    IsetpEx<const M: u32> |l, u| {
        let (a, b) = (&*l.row(u.a), &*l.row(u.b));
        let answer = L::mask_of(|i| compares(M, a[i], b[i]));
        let equal = L::mask_of(|i| a[i] == b[i]);
        let low = l.pred(u.ps[1]);
        combine(l, u, (answer & !equal) | (low & equal));
        Flow::Next
    };
    Lop3<const T: u32> |l, u| map3(l, u, |a, b, c| bits::lop3(a, b, c, T as u8));
    Lop3Any |l, u| {
        let table = u.aux as u8;
        map3(l, u, |a, b, c| bits::lop3(a, b, c, table))
    };
    Plop3 |l, u| {
        let answer = bits::lop3(l.pred(u.ps[0]), l.pred(u.ps[1]), l.pred(u.ps[2]), u.aux as u8);
        l.set_pred(u.pd[0], l.mask(u), answer);
        Flow::Next
    };
    ShiftLeft |l, u| map2(l, u, bits::shl);
    /// The high word of `C:A` shifted right is C shifted right.
    ShiftRightU |l, u| map3(l, u, |_, n, c| bits::shr_u(c, n));
    ShiftRightS |l, u| map3(l, u, |_, n, c| bits::shr_s(c, n));
    FunnelLeftHigh |l, u| map3(l, u, |a, n, c| funnel(8, a, c, n));
    FunnelRightLow |l, u| map3(l, u, |a, n, c| funnel(1, a, c, n));
    FunnelLeft64High |l, u| map3(l, u, |a, n, c| funnel(4 | 8, a, c, n));
    FunnelRight64Low |l, u| map3(l, u, |a, n, c| funnel(4 | 1, a, c, n));
    Funnel |l, u| {
        let m = u.aux;
        map3(l, u, |a, n, c| funnel(m, a, c, n))
    };
    Popc |l, u| map1(l, u, bits::popc);
    Flo |l, u| {
        let (signed, shift) = (u.aux & 1 != 0, u.aux & 2 != 0);
        map1(l, u, |a| bits::bfind(a, signed, shift))
    };
    Brev |l, u| map1(l, u, bits::brev);
    Bmsk |l, u| {
        let mode = amount(u.aux);
        map2(l, u, |a, b| bits::bmsk(a, b, mode))
    };
    Sgxt |l, u| {
        let (mode, signed) = (amount(u.aux), u.aux & 1 != 0);
        map2(l, u, |a, b| bits::szext(a, b, mode, signed))
    };
    Bfe |l, u| {
        let signed = u.aux & 1 != 0;
        map3(l, u, |a, b, c| bits::bfe(a, b, c, signed))
    };
    Bfi |l, u| map4(l, u, bits::bfi);
    Bfe64 |l, u| {
        let signed = u.aux & 1 != 0;
        let (a, b, c) = (Pair::at(l, u.a), &*l.row(u.b), &*l.row(u.c));
        store64(l, u, |i| bits::bfe64(a.get(i), b[i], c[i], signed))
    };
    Bfi64 |l, u| {
        let (a, b, c, e) = (Pair::at(l, u.a), Pair::at(l, u.b), &*l.row(u.c), &*l.row(u.e));
        store64(l, u, |i| bits::bfi64(a.get(i), b.get(i), c[i], e[i]))
    };
    Fns |l, u| map3(l, u, bits::fns);
    /// Bits: A signed, B signed, two products, the upper bytes.
    Idp |l, u| {
        let (sa, sb, two, high) = (u.aux & 1 != 0, u.aux & 2 != 0, u.aux & 4 != 0, u.aux & 8 != 0);
        map3(l, u, |a, b, c| if two { int::dp2a(a, b, c, high, sa, sb) } else { int::dp4a(a, b, c, sa, sb) })
    };
    Viadd2 |l, u| map2(l, u, int::add_16x2);
    /// Bits: signed, max.
    Vimnmx2<const M: u32> |l, u| map2(l, u, |a, b| match M {
        0 => int::min_u16x2(a, b),
        1 => int::min_s16x2(a, b),
        2 => int::max_u16x2(a, b),
        _ => int::max_s16x2(a, b),
    });
    Video |l, u| {
        let (what, a, c, e) = (u.aux, &*l.row(u.a), &*l.row(u.c), &*l.row(u.e));
        store32(l, u, |i| video::apply(what, a[i], c[i], e[i]))
    };
}

/// Sets `aux` as [`funnel`] reads it.
pub fn shift_bits(i: &Inst, u: &mut Uop) {
    let ty = i.get::<field::ShiftType>();
    let signed = matches!(ty, field::ShiftType::S32 | field::ShiftType::S64);
    let wide = matches!(ty, field::ShiftType::U64 | field::ShiftType::S64);
    let right = i.get::<field::Dir>() == field::Dir::R;
    let high = i.get::<field::Part>() == field::Part::Hi;
    let wrap = i.flag(Field::Wrap);
    u.aux =
        right as u32 | (signed as u32) << 1 | (wide as u32) << 2 | (high as u32) << 3 | (wrap as u32) << 4;
}

fn decode_shift(i: &Inst, u: &mut Uop) -> Levels {
    shift_bits(i, u);
    let bit = |n: u32| u.aux >> n & 1 != 0;
    match (bit(0), bit(3), bit(1), bit(2), bit(4)) {
        (false, false, _, _, false) => levels::<ShiftLeft>(),
        (true, true, false, _, false) => levels::<ShiftRightU>(),
        (true, true, true, _, false) => levels::<ShiftRightS>(),
        (false, true, _, false, false) => levels::<FunnelLeftHigh>(),
        (true, false, _, false, false) => levels::<FunnelRightLow>(),
        (false, true, _, true, false) => levels::<FunnelLeft64High>(),
        (true, false, false, true, false) => levels::<FunnelRight64Low>(),
        _ => levels::<Funnel>(),
    }
}

/// Picks the body. Negated operands are IADD3's business here; elsewhere they are applied before.
pub fn decode(i: &Inst, u: &mut Uop) -> Option<Levels> {
    let signed = i.field(Field::Sign);
    let max = i.field(Field::MinMax);
    let by_sign = |s: Levels, n: Levels| if signed != 0 { s } else { n };
    Some(match i.op {
        Op::Iadd3 => {
            let neg = (0..3).fold(0, |x, k| x | (i.src[k].neg as u32) << k);
            u.aux = neg | if i.flag(Field::X) { X } else { 0 };
            if u.pd[0] != DROPPED || u.aux & X != 0 {
                levels::<Iadd3Carry>()
            } else if neg != 0 {
                levels::<Iadd3Neg>()
            } else {
                levels::<Iadd3>()
            }
        }
        Op::Iadds if i.flag(Field::SubFlag) => levels::<SubSat>(),
        Op::Iadds => levels::<AddSat>(),
        Op::Imad => levels::<Imad>(),
        Op::ImadHi => by_sign(levels::<ImadHiS>(), levels::<ImadHiU>()),
        Op::ImadWide => by_sign(levels::<ImadWideS>(), levels::<ImadWideU>()),
        Op::Lea => {
            u.aux = i.field(Field::Shift) | i.field(Field::Hi) << 5 | i.field(Field::X) << 6;
            if u.aux >> 5 == 0 && u.pd[0] == DROPPED { levels::<Lea>() } else { levels::<LeaAny>() }
        }
        Op::Iabs => levels::<Iabs>(),
        Op::Iabsdiff => by_sign(levels::<AbsDiffS>(), levels::<AbsDiffU>()),
        Op::Imnmx => pick!(signed | max << 1, Imnmx, [0 1 2 3]),
        Op::Isetp => {
            let m = i.field(Field::Cmp) | signed << 3;
            u.aux = i.field(Field::Bool);
            if i.flag(Field::Ex) {
                u.aux |= EX;
                pick!(m, IsetpEx, [0 1 2 3 4 5 8 9 10 11 12 13])
            } else {
                pick!(m, Isetp, [0 1 2 3 4 5 8 9 10 11 12 13])
            }
        }
        Op::Lop3 => {
            u.aux = i.field(Field::Lut);
            match u.aux {
                0xc0 | 0xfc | 0x3c | 0x96 | 0xf8 | 0xea | 0x80 | 0xfe | 0x30 | 0x33 | 0x0f | 0x55 | 0xe8
                | 0xca | 0xa8 | 0x3f => {
                    pick!(u.aux, Lop3, [0xc0 0xfc 0x3c 0x96 0xf8 0xea 0x80 0xfe 0x30 0x33 0x0f 0x55 0xe8 0xca 0xa8 0x3f])
                }
                _ => levels::<Lop3Any>(),
            }
        }
        Op::Plop3 => {
            u.aux = i.field(Field::Lut);
            levels::<Plop3>()
        }
        Op::Shf => decode_shift(i, u),
        Op::Popc => levels::<Popc>(),
        Op::Flo => {
            u.aux = signed | i.field(Field::Sh) << 1;
            levels::<Flo>()
        }
        Op::Brev => levels::<Brev>(),
        Op::Bmsk => {
            u.aux = i.field(Field::Wrap) << 1;
            levels::<Bmsk>()
        }
        Op::Sgxt => {
            u.aux = signed | i.field(Field::Wrap) << 1;
            levels::<Sgxt>()
        }
        Op::Bfe => {
            u.aux = signed;
            levels::<Bfe>()
        }
        Op::Bfi => levels::<Bfi>(),
        Op::Bfe64 => {
            u.aux = signed;
            levels::<Bfe64>()
        }
        Op::Bfi64 => levels::<Bfi64>(),
        Op::Fns => levels::<Fns>(),
        Op::Idp => {
            let flags = [Field::ASigned, Field::BSigned, Field::Two, Field::TwoHi];
            u.aux = flags.iter().enumerate().fold(0, |x, (n, f)| x | i.field(*f) << n);
            levels::<Idp>()
        }
        Op::Viadd2 => levels::<Viadd2>(),
        Op::Vimnmx2 => pick!(signed | max << 1, Vimnmx2, [0 1 2 3]),
        Op::Video => {
            u.aux = match i.src[1].operand {
                isa::Operand::Imm(bits) => bits,
                _ => return None,
            };
            levels::<Video>()
        }
        _ => return None,
    })
}
