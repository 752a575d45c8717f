//! What a pure operation gives for known arguments. Operations it does not know stay for the machine.

use arith::half::HalfMode;
use arith::{FCmp, MinMax, Mode, Round, bf16, bits, cvt, f16, fp32, fp64};
use ir::{Cvt, CvtRound, Float, FloatCmp, IntCmp, MufuFn, Op, PrmtMode, Scalar, Type};
use smallvec::{SmallVec, smallvec};

/// The results of `op`, zero above their widths. `widths` are those of the arguments, `result` that of the first result.
pub fn evaluate(op: &Op, args: &[u64], widths: &[Type], result: Type) -> Option<SmallVec<[u64; 2]>> {
    if let Op::AddCarry | Op::SubBorrow = op {
        let &[a, b, carry] = args else { return None };
        let (a, b, c) = (u128::from(a), u128::from(b), u128::from(carry & 1));
        let wide = if *op == Op::AddCarry { a + b + c } else { a.wrapping_sub(b).wrapping_sub(c) };
        return Some(smallvec![wide as u64 & result.mask(), (wide >> result.bits()) as u64 & 1]);
    }
    let width = widths.first().copied().unwrap_or(result);
    let bits = match *args {
        [] => source(op)?,
        [a] => unary(op, a, width, result)?,
        [a, b] => binary(op, a, b, width, result)?,
        [a, b, c] => ternary(op, a, b, c, width)?,
        [a, b, position, length] => match (op, width) {
            (Op::Bfi, Type::B32) => u64::from(bits::bfi(a as u32, b as u32, position as u32, length as u32)),
            (Op::Bfi, Type::B64) => bits::bfi64(a, b, position as u32, length as u32),
            _ => return None,
        },
        _ => return None,
    };
    Some(smallvec![bits & result.mask()])
}

fn source(op: &Op) -> Option<u64> {
    match *op {
        Op::Const(bits) => Some(bits),
        _ => None,
    }
}

/// The value as a signed number.
pub fn signed(bits: u64, width: Type) -> i64 {
    let unused = 64 - width.bits();
    (bits << unused) as i64 >> unused
}

fn unary(op: &Op, a: u64, width: Type, result: Type) -> Option<u64> {
    let is_wide = width == Type::B64;
    Some(match *op {
        Op::Abs => signed(a, width).wrapping_abs() as u64,
        Op::Neg => a.wrapping_neg(),
        Op::Not => !a,
        Op::Popc => u64::from(a.count_ones()),
        Op::Clz => u64::from(a.leading_zeros() - (64 - width.bits())),
        Op::Brev => a.reverse_bits() >> (64 - width.bits()),
        Op::Bfind { signed, shift_amount } if is_wide => u64::from(bits::bfind64(a, signed, shift_amount)),
        Op::Bfind { signed, shift_amount } if width == Type::B32 => {
            u64::from(bits::bfind(a as u32, signed, shift_amount))
        }
        Op::TruncLo => a,
        Op::TruncHi => a >> result.bits(),
        Op::ZeroExt => a,
        Op::SignExt => signed(a, width) as u64,
        Op::FNeg { ty: Scalar::F32, ftz } => u64::from(fp32::neg(a as u32, ftz)),
        Op::FAbs { ty: Scalar::F32, ftz } => u64::from(fp32::abs(a as u32, ftz)),
        Op::FNeg { ty: Scalar::F64, .. } => fp64::neg(a),
        Op::FAbs { ty: Scalar::F64, .. } => fp64::abs(a),
        Op::Cvt(c) => convert(c, a)?,
        Op::Mufu(m) => u64::from(special(m, a as u32)?),
        _ => return None,
    })
}

fn special(f: MufuFn, a: u32) -> Option<u32> {
    use arith::mufu;
    Some(match f {
        MufuFn::Rcp => mufu::rcp(a),
        MufuFn::Rsq => mufu::rsq(a),
        MufuFn::Sqrt => mufu::sqrt(a),
        MufuFn::Sin => mufu::sin(a),
        MufuFn::Cos => mufu::cos(a),
        MufuFn::Lg2 => mufu::lg2(a),
        MufuFn::Ex2 => mufu::ex2(a),
        MufuFn::Tanh => mufu::tanh(a),
        MufuFn::Rcp64h => mufu::rcp64h(a),
        MufuFn::Rsq64h => mufu::rsq64h(a),
        _ => return None,
    })
}

/// Conversions between integers, between integers and f32 or f64, and from f32 to f64.
fn convert(c: Cvt, a: u64) -> Option<u64> {
    if c.relu || c.satfinite {
        return None;
    }
    let from_bits = a & (u64::MAX >> (64 - c.from.bits()));
    let unused = 64 - c.from.bits();
    let number = if c.from.is_signed() {
        i128::from((from_bits << unused) as i64 >> unused)
    } else {
        i128::from(from_bits)
    };
    match (c.from.is_int(), c.to) {
        (true, to) if to.is_int() => {
            let (low, high) = if to.is_signed() {
                (-(1i128 << (to.bits() - 1)), (1i128 << (to.bits() - 1)) - 1)
            } else {
                (0, (1i128 << to.bits()) - 1)
            };
            let kept = if c.sat { number.clamp(low, high) } else { number };
            // The register is wider than an 8-bit integer and holds it extended.
            let unused = 128 - to.bits();
            let extended =
                if to.is_signed() { kept << unused >> unused } else { (kept << unused) as u128 as i128 };
            let extended = if to.is_signed() { extended } else { ((extended as u128) >> unused) as i128 };
            Some(extended as u64 & to.ty().mask())
        }
        (true, to) if !c.sat => {
            Some(cvt::int_to_float(from_bits, float_type(to)?, int_type(c.from)?, round_of(c.round)?))
        }
        (false, to) if to.is_int() && !c.sat => {
            Some(cvt::float_to_int(a, int_type(to)?, float_type(c.from)?, round_of(c.round)?, c.ftz))
        }
        (false, Scalar::F64) if c.from == Scalar::F32 && c.round == CvtRound::None && !c.sat && !c.ftz => {
            let x = f32::from_bits(a as u32);
            (!x.is_nan()).then(|| f64::from(x).to_bits())
        }
        _ => None,
    }
}

fn float_type(s: Scalar) -> Option<cvt::FloatType> {
    match s {
        Scalar::F32 => Some(cvt::FloatType::F32),
        Scalar::F64 => Some(cvt::FloatType::F64),
        _ => None,
    }
}

/// Integers that fill their registers.
fn int_type(s: Scalar) -> Option<cvt::IntType> {
    match s {
        Scalar::U32 => Some(cvt::IntType::U32),
        Scalar::S32 => Some(cvt::IntType::S32),
        Scalar::U64 => Some(cvt::IntType::U64),
        Scalar::S64 => Some(cvt::IntType::S64),
        _ => None,
    }
}

fn round_of(r: CvtRound) -> Option<Round> {
    match r {
        CvtRound::None | CvtRound::Rn | CvtRound::Rni => Some(Round::Rn),
        CvtRound::Rz | CvtRound::Rzi => Some(Round::Rz),
        CvtRound::Rm | CvtRound::Rmi => Some(Round::Rm),
        CvtRound::Rp | CvtRound::Rpi => Some(Round::Rp),
        CvtRound::Rna => None,
    }
}

fn binary(op: &Op, a: u64, b: u64, width: Type, result: Type) -> Option<u64> {
    let n = width.bits();
    let (sa, sb) = (i128::from(signed(a, width)), i128::from(signed(b, width)));
    let (ua, ub) = (u128::from(a), u128::from(b));
    let count = (b as u32).min(n);
    let shift = |value: u64| if count >= 64 { 0 } else { value << count };
    Some(match *op {
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        Op::AddSat if width == Type::B32 => (sa + sb).clamp(i32::MIN.into(), i32::MAX.into()) as u64,
        Op::SubSat if width == Type::B32 => (sa - sb).clamp(i32::MIN.into(), i32::MAX.into()) as u64,
        Op::Mul => a.wrapping_mul(b),
        Op::MulHi { signed: true } => ((sa * sb) >> n) as u64,
        Op::MulHi { signed: false } => ((ua * ub) >> n) as u64,
        Op::MulWide { signed: true } => (sa * sb) as u64,
        Op::MulWide { signed: false } => a.wrapping_mul(b),
        Op::Div { .. } | Op::Rem { .. } if b == 0 => return None,
        Op::Div { signed: true } => (sa / sb) as u64,
        Op::Div { signed: false } => a / b,
        Op::Rem { signed: true } => (sa % sb) as u64,
        Op::Rem { signed: false } => a % b,
        Op::Min { signed: true } => sa.min(sb) as u64,
        Op::Min { signed: false } => a.min(b),
        Op::Max { signed: true } => sa.max(sb) as u64,
        Op::Max { signed: false } => a.max(b),
        Op::AbsDiff { signed: true } => (sa - sb).unsigned_abs() as u64,
        Op::AbsDiff { signed: false } => a.abs_diff(b),
        Op::And => a & b,
        Op::Or => a | b,
        Op::Xor => a ^ b,
        Op::Shl => shift(a),
        Op::ShrU => {
            if count >= n {
                0
            } else {
                a >> count
            }
        }
        Op::ShrS => (signed(a, width) >> count.min(63)) as u64,
        Op::Concat => a | b << (result.bits() / 2),
        Op::ICmp { cmp, signed: s } => u64::from(compare(cmp, s, a, b, width)),
        Op::FCmp { cmp, ty: Scalar::F32, ftz } => {
            u64::from(fp32::cmp(a as u32, b as u32, float_compare(cmp), ftz))
        }
        Op::FCmp { cmp, ty: Scalar::F64, .. } => u64::from(fp64::cmp(a, b, float_compare(cmp))),
        Op::FDivCheck => u64::from(fp32::div_check(a as u32, b as u32)),
        Op::FAdd(m) => float(m, &[a, b], Arithmetic::Add)?,
        Op::FSub(m) => float(m, &[a, b], Arithmetic::Sub)?,
        Op::FMul(m) => float(m, &[a, b], Arithmetic::Mul)?,
        Op::FMulScaled { ftz, scale } => {
            u64::from(fp32::mul_scaled(a as u32, b as u32, scale.0.into(), Mode { ftz, ..Mode::RN }))
        }
        Op::FMin { ty: Scalar::F32, ftz, nan, xorsign_abs } => {
            u64::from(fp32::min(a as u32, b as u32, MinMax { ftz, nan, xorsign_abs }))
        }
        Op::FMax { ty: Scalar::F32, ftz, nan, xorsign_abs } => {
            u64::from(fp32::max(a as u32, b as u32, MinMax { ftz, nan, xorsign_abs }))
        }
        Op::FMin { ty: Scalar::F64, .. } => fp64::min(a, b),
        Op::FMax { ty: Scalar::F64, .. } => fp64::max(a, b),
        Op::Copysign { ty: Scalar::F32 } => u64::from(fp32::copysign(a as u32, b as u32)),
        Op::Copysign { ty: Scalar::F64 } => fp64::copysign(a, b),
        _ => return None,
    })
}

fn ternary(op: &Op, a: u64, b: u64, c: u64, width: Type) -> Option<u64> {
    Some(match *op {
        Op::Select => {
            if a & 1 != 0 {
                b
            } else {
                c
            }
        }
        Op::FFma(m) => float(m, &[a, b, c], Arithmetic::Fma)?,
        Op::Lop3(table) => u64::from(bits::lop3(a as u32, b as u32, c as u32, table)),
        Op::Bfe { signed } if width == Type::B32 => {
            u64::from(bits::bfe(a as u32, b as u32, c as u32, signed))
        }
        Op::Bfe { signed } if width == Type::B64 => bits::bfe64(a, b as u32, c as u32, signed),
        Op::Prmt(PrmtMode::Index) => u64::from(bits::prmt(a as u32, b as u32, c as u32, bits::Prmt::Index)),
        Op::Funnel { left, wrap } => {
            let count = if wrap { c as u32 & 31 } else { (c as u32).min(32) };
            let both = a & 0xffff_ffff | b << 32;
            if left { (both << count) >> 32 } else { both >> count }
        }
        _ => return None,
    })
}

pub fn compare(cmp: IntCmp, is_signed: bool, a: u64, b: u64, width: Type) -> bool {
    let order = if is_signed { signed(a, width).cmp(&signed(b, width)) } else { a.cmp(&b) };
    match cmp {
        IntCmp::Eq => order.is_eq(),
        IntCmp::Ne => order.is_ne(),
        IntCmp::Lt => order.is_lt(),
        IntCmp::Le => order.is_le(),
        IntCmp::Gt => order.is_gt(),
        IntCmp::Ge => order.is_ge(),
    }
}

fn float_compare(cmp: FloatCmp) -> FCmp {
    match cmp {
        FloatCmp::Eq => FCmp::Eq,
        FloatCmp::Ne => FCmp::Ne,
        FloatCmp::Lt => FCmp::Lt,
        FloatCmp::Le => FCmp::Le,
        FloatCmp::Gt => FCmp::Gt,
        FloatCmp::Ge => FCmp::Ge,
        FloatCmp::Equ => FCmp::Equ,
        FloatCmp::Neu => FCmp::Neu,
        FloatCmp::Ltu => FCmp::Ltu,
        FloatCmp::Leu => FCmp::Leu,
        FloatCmp::Gtu => FCmp::Gtu,
        FloatCmp::Geu => FCmp::Geu,
        FloatCmp::Num => FCmp::Num,
        FloatCmp::Nan => FCmp::Nan,
    }
}

#[derive(Clone, Copy)]
enum Arithmetic {
    Add,
    Sub,
    Mul,
    Fma,
}

fn float(m: Float, args: &[u64], what: Arithmetic) -> Option<u64> {
    let round = match m.round {
        ir::Round::Rn => Round::Rn,
        ir::Round::Rz => Round::Rz,
        ir::Round::Rm => Round::Rm,
        ir::Round::Rp => Round::Rp,
    };
    let c = args.get(2).copied().unwrap_or(0);
    let (a, b) = (*args.first()?, *args.get(1)?);
    let mode = HalfMode { ftz: m.ftz, sat: m.sat, relu: m.relu };
    match m.ty {
        Scalar::F32 if !m.relu => {
            let (a, b, c, mode) = (a as u32, b as u32, c as u32, Mode { round, ftz: m.ftz, sat: m.sat });
            Some(u64::from(match what {
                Arithmetic::Add => fp32::add(a, b, mode),
                Arithmetic::Sub => fp32::sub(a, b, mode),
                Arithmetic::Mul => fp32::mul(a, b, mode),
                Arithmetic::Fma => fp32::fma(a, b, c, mode),
            }))
        }
        Scalar::F64 if !m.sat && !m.relu => Some(match what {
            Arithmetic::Add => fp64::add(a, b, round),
            Arithmetic::Sub => fp64::sub(a, b, round),
            Arithmetic::Mul => fp64::mul(a, b, round),
            Arithmetic::Fma => fp64::fma(a, b, c, round),
        }),
        Scalar::F16 | Scalar::F16x2 if round == Round::Rn => {
            let two = |x, y| match what {
                Arithmetic::Add => f16::add(x, y, mode),
                Arithmetic::Sub => f16::sub(x, y, mode),
                _ => f16::mul(x, y, mode),
            };
            Some(both_halves(a, b, c, what, two, |x, y, z| f16::fma(x, y, z, mode)))
        }
        Scalar::Bf16 | Scalar::Bf16x2 if round == Round::Rn => {
            let two = |x, y| match what {
                Arithmetic::Add => bf16::add(x, y, mode),
                Arithmetic::Sub => bf16::sub(x, y, mode),
                _ => bf16::mul(x, y, mode),
            };
            Some(both_halves(a, b, c, what, two, |x, y, z| bf16::fma(x, y, z, mode)))
        }
        _ => None,
    }
}

/// Both halves of packed operands; of a 16-bit operand the upper half is zero and cut off afterwards.
fn both_halves(
    a: u64,
    b: u64,
    c: u64,
    what: Arithmetic,
    two: impl Fn(u16, u16) -> u16,
    three: impl Fn(u16, u16, u16) -> u16,
) -> u64 {
    let half = |shift: u32| {
        let (a, b, c) = ((a >> shift) as u16, (b >> shift) as u16, (c >> shift) as u16);
        let r = if matches!(what, Arithmetic::Fma) { three(a, b, c) } else { two(a, b) };
        u64::from(r) << shift
    };
    half(0) | half(16)
}
