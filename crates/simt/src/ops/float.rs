//! Single precision, double precision and the special functions.

use super::{bodies, pick};
use crate::lanes::{Pair, Row, combine, compare, map2, map3, map64_2, map64_3, store32};
use crate::level::{Levels, levels};
use crate::uop::{Flow, Uop};
use arith::{FCmp, FloatClass, MinMax, Mode, Round, bf16, f16, fp32, fp64, mufu};
use isa::field::{self, Field};
use isa::{Inst, Op};

/// Bits of `aux` for float bodies. Below them are the rounding, or what a comparison combines with.
const FTZ: u32 = 1 << 2;
const SAT: u32 = 1 << 3;
/// Negated and absolute of A; those of B and C follow two and four above.
const NEG: u32 = 1 << 4;
const ABS: u32 = 1 << 5;
const NAN_WINS: u32 = 1 << 10;
const XOR_SIGN: u32 = 1 << 11;
const MAX: u32 = 1 << 12;
/// A power of two, plus three.
const SCALE_AT: u32 = 13;

/// The f32 operand number `k` with its modifiers.
#[inline(always)]
fn operand(aux: u32, k: u32, x: u32) -> u32 {
    let aux = aux >> (2 * k);
    let x = if aux & ABS != 0 { x & !fp32::SIGN } else { x };
    if aux & NEG != 0 { x ^ fp32::SIGN } else { x }
}

#[inline(always)]
pub fn round_of(bits: u32) -> Round {
    match bits & 3 {
        0 => Round::Rn,
        1 => Round::Rz,
        2 => Round::Rm,
        _ => Round::Rp,
    }
}

#[inline(always)]
fn mode(aux: u32, round: Round) -> Mode {
    Mode { round, ftz: aux & FTZ != 0, sat: aux & SAT != 0 }
}

/// The mode of a specialised body: bit 0 is ftz, bit 1 saturation.
const fn fast_mode(bits: u32) -> Mode {
    Mode { round: Round::Rn, ftz: bits & 1 != 0, sat: bits & 2 != 0 }
}

/// The sign that a bit of a specialised body puts on an operand.
const fn sign(bits: u32, bit: u32) -> u32 {
    if bits & bit != 0 { fp32::SIGN } else { 0 }
}

/// Runs an expression with the rounding as a constant in each case.
macro_rules! by_round {
    ($aux:expr, |$round:ident| $body:expr) => {
        match round_of($aux) {
            Round::Rn => {
                const $round: Round = Round::Rn;
                $body
            }
            Round::Rz => {
                const $round: Round = Round::Rz;
                $body
            }
            Round::Rm => {
                const $round: Round = Round::Rm;
                $body
            }
            Round::Rp => {
                const $round: Round = Round::Rp;
                $body
            }
        }
    };
}

const fn fcmp(bits: u32) -> FCmp {
    match bits {
        0 => FCmp::Eq,
        1 => FCmp::Ne,
        2 => FCmp::Lt,
        3 => FCmp::Le,
        4 => FCmp::Gt,
        5 => FCmp::Ge,
        6 => FCmp::Equ,
        7 => FCmp::Neu,
        8 => FCmp::Ltu,
        9 => FCmp::Leu,
        10 => FCmp::Gtu,
        11 => FCmp::Geu,
        12 => FCmp::Num,
        _ => FCmp::Nan,
    }
}

pub fn fcmp_of(i: &Inst) -> FCmp {
    fcmp(i.field(Field::FCmp))
}

const fn class(bits: u32) -> FloatClass {
    match bits {
        0 => FloatClass::Finite,
        1 => FloatClass::Infinite,
        2 => FloatClass::Number,
        3 => FloatClass::NotANumber,
        4 => FloatClass::Normal,
        _ => FloatClass::Subnormal,
    }
}

#[inline(always)]
fn min_max(aux: u32, a: u32, b: u32) -> u32 {
    let options = MinMax { ftz: aux & FTZ != 0, nan: aux & NAN_WINS != 0, xorsign_abs: aux & XOR_SIGN != 0 };
    if aux & MAX != 0 { fp32::max(a, b, options) } else { fp32::min(a, b, options) }
}

bodies! {
    /// Bits: ftz, sat, -A, -B.
    Fadd<const M: u32> |l, u| map2(l, u, |a, b| fp32::add(a ^ sign(M, 4), b ^ sign(M, 8), fast_mode(M)));
    FaddAny |l, u| {
        let x = u.aux;
        by_round!(x, |R| map2(l, u, |a, b| fp32::add(operand(x, 0, a), operand(x, 1, b), mode(x, R))))
    };
    /// Bits: ftz, sat, negated.
    Fmul<const M: u32> |l, u| map2(l, u, |a, b| fp32::mul(a ^ sign(M, 4), b, fast_mode(M)));
    FmulAny |l, u| {
        let x = u.aux;
        by_round!(x, |R| map2(l, u, |a, b| fp32::mul(operand(x, 0, a), operand(x, 1, b), mode(x, R))))
    };
    FmulScaled |l, u| {
        let x = u.aux;
        let power = (x >> SCALE_AT & 7) as i32 - 3;
        map2(l, u, |a, b| fp32::mul_scaled(operand(x, 0, a), operand(x, 1, b), power, mode(x, round_of(x))))
    };
    /// Bits: ftz, sat, -(A * B), -C.
    Ffma<const M: u32> |l, u| {
        map3(l, u, |a, b, c| fp32::fma(a ^ sign(M, 4), b, c ^ sign(M, 8), fast_mode(M)))
    };
    FfmaAny |l, u| {
        let x = u.aux;
        by_round!(x, |R| map3(l, u, |a, b, c| {
            fp32::fma(operand(x, 0, a), operand(x, 1, b), operand(x, 2, c), mode(x, R))
        }))
    };
    Fsetp<const CMP: u32> |l, u| {
        if u.aux & FTZ != 0 {
            compare::<L>(l, u, |a, b| fp32::cmp(a, b, fcmp(CMP), true))
        } else {
            compare::<L>(l, u, |a, b| fp32::cmp(a, b, fcmp(CMP), false))
        }
    };
    FsetpAny<const CMP: u32> |l, u| {
        let x = u.aux;
        compare::<L>(l, u, |a, b| fp32::cmp(operand(x, 0, a), operand(x, 1, b), fcmp(CMP), x & FTZ != 0))
    };
    /// Bits: max, ftz.
    Fmnmx<const M: u32> |l, u| {
        let options = MinMax { ftz: M & 2 != 0, nan: false, xorsign_abs: false };
        map2(l, u, |a, b| if M & 1 != 0 { fp32::max(a, b, options) } else { fp32::min(a, b, options) })
    };
    FmnmxAny |l, u| {
        let x = u.aux;
        map2(l, u, |a, b| min_max(x, operand(x, 0, a), operand(x, 1, b)))
    };
    Mufu<const F: u32> |l, u| {
        let mut r = [0; 32];
        special_lanes(F, &mut r, &*l.row(u.a));
        l.store(u.d, l.mask(u), &r);
        Flow::Next
    };
    MufuAny<const F: u32> |l, u| {
        let (x, a) = (u.aux, &*l.row(u.a));
        let (mut r, mut changed): (Row, Row) = ([0; 32], [0; 32]);
        for i in 0..32 {
            changed[i] = operand(x, 0, a[i]);
        }
        special_lanes(F, &mut r, &changed);
        l.store(u.d, l.mask(u), &r);
        Flow::Next
    };
    Fchk |l, u| {
        let x = u.aux;
        let (a, b) = (&*l.row(u.a), &*l.row(u.b));
        let answer = L::mask_of(|i| fp32::div_check(operand(x, 0, a[i]), operand(x, 1, b[i])));
        l.set_pred(u.pd[0], l.mask(u), answer);
        Flow::Next
    };
    Ftestp |l, u| {
        let what = class(u.aux >> 16);
        let a = &*l.row(u.a);
        let answer = L::mask_of(|i| fp32::testp(operand(u.aux, 0, a[i]), what));
        l.set_pred(u.pd[0], l.mask(u), answer);
        Flow::Next
    };

    Dadd |l, u| by_round!(u.aux, |R| map64_2(l, u, |a, b| fp64::add(a, b, R)));
    Dmul |l, u| by_round!(u.aux, |R| map64_2(l, u, |a, b| fp64::mul(a, b, R)));
    Dfma |l, u| {
        by_round!(u.aux, |R| map64_3(l, u, |a, b, c| fp64::fma(a, b, c, R)))
    };
    Dsetp<const CMP: u32> |l, u| {
        let (a, b) = (Pair::at(l, u.a), Pair::at(l, u.b));
        let answer = L::mask_of(|i| fp64::cmp(a.get(i), b.get(i), fcmp(CMP)));
        combine(l, u, answer);
        Flow::Next
    };
    Dmin |l, u| map64_2(l, u, fp64::min);
    Dmax |l, u| map64_2(l, u, fp64::max);
    Dtestp |l, u| {
        let what = class(u.aux >> 16);
        let a = Pair::at(l, u.a);
        let answer = L::mask_of(|i| fp64::testp(a.get(i), what));
        l.set_pred(u.pd[0], l.mask(u), answer);
        Flow::Next
    };
    /// `MUFU` on one half: the upper half of the register is kept as the operation leaves it.
    MufuHalf |l, u| {
        let x = u.aux;
        let a = &*l.row(u.a);
        store32(l, u, |i| half_function(x >> 16, a[i]))
    };
}

/// The f32 functions, numbered as the field has them.
#[inline(always)]
fn special_lanes(f: u32, d: &mut Row, a: &Row) {
    match f {
        0 => mufu::rcp_lanes(d, a),
        1 => mufu::rsq_lanes(d, a),
        2 => mufu::sqrt_lanes(d, a),
        3 => mufu::sin_lanes(d, a),
        4 => mufu::cos_lanes(d, a),
        5 => mufu::lg2_lanes(d, a),
        6 => mufu::ex2_lanes(d, a),
        7 => mufu::tanh_lanes(d, a),
        8 => mufu::rcp64h_lanes(d, a),
        _ => mufu::rsq64h_lanes(d, a),
    }
}

/// The 16-bit functions work on both halves; a scalar's upper half is of no consequence.
#[inline(always)]
fn half_function(f: u32, a: u32) -> u32 {
    match f {
        10 => f16::ex2_x2(a),
        11 => f16::tanh_x2(a),
        12 => bf16::ex2_x2(a),
        _ => bf16::tanh_x2(a),
    }
}

fn modifiers(i: &Inst) -> u32 {
    let mut x = i.field(Field::Rnd);
    for (k, s) in i.src.iter().enumerate() {
        let at = 2 * k as u32;
        x |= (if s.neg { NEG } else { 0 } | if s.abs { ABS } else { 0 }) << at;
    }
    for (f, bit) in [(Field::Ftz, FTZ), (Field::Sat, SAT), (Field::Nan, NAN_WINS), (Field::XorSign, XOR_SIGN)]
    {
        if i.flag(f) {
            x |= bit;
        }
    }
    if i.field(Field::MinMax) != 0 {
        x |= MAX;
    }
    x
}

/// Picks the body; f64 operand modifiers are applied before (see [`super::modify`]), f32 ones by the body.
pub fn decode(i: &Inst, u: &mut Uop) -> Option<Levels> {
    let x = modifiers(i);
    u.aux = x;
    let nearest = x & 3 == 0;
    let fast = (x & FTZ != 0) as u32 | ((x & SAT != 0) as u32) << 1;
    let neg = |k: usize| i.src[k].neg as u32;
    let any_abs = i.src.iter().any(|s| s.abs);
    let any_mod = i.src.iter().any(|s| s.abs || s.neg);
    Some(match i.op {
        Op::Fadd if nearest && !any_abs => {
            pick!(fast | neg(0) << 2 | neg(1) << 3, Fadd, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15])
        }
        Op::Fadd => levels::<FaddAny>(),
        Op::Fmul if i.get::<field::OutScale>() != field::OutScale::None => {
            let power: u32 = match i.get::<field::OutScale>() {
                field::OutScale::D8 => 0,
                field::OutScale::D4 => 1,
                field::OutScale::D2 => 2,
                field::OutScale::None => 3,
                field::OutScale::M2 => 4,
                field::OutScale::M4 => 5,
                field::OutScale::M8 => 6,
            };
            u.aux |= power << SCALE_AT;
            levels::<FmulScaled>()
        }
        Op::Fmul if nearest && !any_abs => pick!(fast | (neg(0) ^ neg(1)) << 2, Fmul, [0 1 2 3 4 5 6 7]),
        Op::Fmul => levels::<FmulAny>(),
        Op::Ffma if nearest && !any_abs => {
            pick!(fast | (neg(0) ^ neg(1)) << 2 | neg(2) << 3, Ffma, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15])
        }
        Op::Ffma => levels::<FfmaAny>(),
        Op::Fsetp => {
            u.aux = x & !3 | i.field(Field::Bool);
            if any_mod {
                pick!(i.field(Field::FCmp), FsetpAny, [0 1 2 3 4 5 6 7 8 9 10 11 12 13])
            } else {
                pick!(i.field(Field::FCmp), Fsetp, [0 1 2 3 4 5 6 7 8 9 10 11 12 13])
            }
        }
        Op::Fmnmx if !any_mod && x & (NAN_WINS | XOR_SIGN) == 0 => {
            pick!((x & MAX != 0) as u32 | ((x & FTZ != 0) as u32) << 1, Fmnmx, [0 1 2 3])
        }
        Op::Fmnmx => levels::<FmnmxAny>(),
        Op::Mufu => match i.field(Field::Mufu) {
            f @ 10.. => {
                u.aux |= f << 16;
                levels::<MufuHalf>()
            }
            f if any_mod => pick!(f, MufuAny, [0 1 2 3 4 5 6 7 8 9]),
            f => pick!(f, Mufu, [0 1 2 3 4 5 6 7 8 9]),
        },
        Op::Fchk => levels::<Fchk>(),
        Op::Ftestp => {
            u.aux |= i.field(Field::TestProp) << 16;
            levels::<Ftestp>()
        }
        Op::Dadd => levels::<Dadd>(),
        Op::Dmul => levels::<Dmul>(),
        Op::Dfma => levels::<Dfma>(),
        Op::Dsetp => {
            u.aux = i.field(Field::Bool);
            pick!(i.field(Field::FCmp), Dsetp, [0 1 2 3 4 5 6 7 8 9 10 11 12 13])
        }
        Op::Dmnmx if x & MAX != 0 => levels::<Dmax>(),
        Op::Dmnmx => levels::<Dmin>(),
        Op::Dtestp => {
            u.aux |= i.field(Field::TestProp) << 16;
            levels::<Dtestp>()
        }
        _ => return None,
    })
}
