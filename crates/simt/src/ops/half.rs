//! Packed halves.

use super::bodies;
use crate::lanes::{map2, map3};
use crate::level::{Levels, levels};
use crate::uop::{Flow, Uop};
use arith::half::{self, HalfMode};
use arith::{MinMax, bf16, f16};
use isa::field::{Field, HalfFmt};
use isa::{Inst, Op};

const FTZ: u32 = 1;
const SAT: u32 = 2;
const RELU: u32 = 4;
const NAN_WINS: u32 = 8;
const XOR_SIGN: u32 = 16;
const MAX: u32 = 32;
const BF16: u32 = 64;
const CMP_AT: u32 = 8;

#[inline(always)]
fn mode(x: u32) -> HalfMode {
    HalfMode { ftz: x & FTZ != 0, sat: x & SAT != 0, relu: x & RELU != 0 }
}

#[inline(always)]
fn options(x: u32) -> MinMax {
    MinMax { ftz: x & FTZ != 0, nan: x & NAN_WINS != 0, xorsign_abs: x & XOR_SIGN != 0 }
}

/// The same body for either format.
macro_rules! by_format {
    ($aux:expr, |$m:ident| $body:expr) => {
        if $aux & BF16 != 0 {
            use bf16 as $m;
            $body
        } else {
            use f16 as $m;
            $body
        }
    };
}

bodies! {
    Hadd2 |l, u| {
        let m = mode(u.aux);
        by_format!(u.aux, |fmt| map2(l, u, |a, b| fmt::add_x2(a, b, m)))
    };
    Hmul2 |l, u| {
        let m = mode(u.aux);
        by_format!(u.aux, |fmt| map2(l, u, |a, b| fmt::mul_x2(a, b, m)))
    };
    Hfma2 |l, u| {
        let m = mode(u.aux);
        by_format!(u.aux, |fmt| map3(l, u, |a, b, c| fmt::fma_x2(a, b, c, m)))
    };
    Hmin2 |l, u| {
        let o = options(u.aux);
        by_format!(u.aux, |fmt| map2(l, u, |a, b| fmt::min_x2(a, b, o)))
    };
    Hmax2 |l, u| {
        let o = options(u.aux);
        by_format!(u.aux, |fmt| map2(l, u, |a, b| fmt::max_x2(a, b, o)))
    };
    Hsetp2 |l, u| {
        let cmp = CMPS[(u.aux >> CMP_AT & 15) as usize];
        let ftz = u.aux & FTZ != 0;
        let (a, b) = (&*l.row(u.a), &*l.row(u.b));
        let (low, high) = by_format!(u.aux, |fmt| (
            L::mask_of(|i| fmt::cmp(half::low(a[i]), half::low(b[i]), cmp, ftz)),
            L::mask_of(|i| fmt::cmp(half::high(a[i]), half::high(b[i]), cmp, ftz)),
        ));
        let m = l.mask(u);
        l.set_pred(u.pd[0], m, low);
        l.set_pred(u.pd[1], m, high);
        Flow::Next
    };
}

const CMPS: [arith::FCmp; 16] = {
    use arith::FCmp::*;
    [Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan, Nan, Nan]
};

/// Picks the body; operand modifiers are applied before.
pub fn decode(i: &Inst, u: &mut Uop) -> Option<Levels> {
    let flags = [
        (Field::Ftz, FTZ),
        (Field::Sat, SAT),
        (Field::Relu, RELU),
        (Field::Nan, NAN_WINS),
        (Field::XorSign, XOR_SIGN),
        (Field::MinMax, MAX),
    ];
    u.aux = flags.iter().filter(|(f, _)| i.field(*f) != 0).fold(0, |x, (_, bit)| x | bit);
    if i.get::<HalfFmt>() == HalfFmt::Bf16 {
        u.aux |= BF16;
    }
    Some(match i.op {
        Op::Hadd2 => levels::<Hadd2>(),
        Op::Hmul2 => levels::<Hmul2>(),
        Op::Hfma2 => levels::<Hfma2>(),
        Op::Hmnmx2 if u.aux & MAX != 0 => levels::<Hmax2>(),
        Op::Hmnmx2 => levels::<Hmin2>(),
        Op::Hsetp2 => {
            u.aux |= i.field(Field::FCmp) << CMP_AT;
            levels::<Hsetp2>()
        }
        _ => return None,
    })
}
