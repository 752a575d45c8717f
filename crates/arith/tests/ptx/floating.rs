//! Floating-point arithmetic, comparisons and the approximate functions.

use super::{Op, fcmp, icmp};
use arith::half::HalfMode;
use arith::int::w32;
use arith::{FCmp, FloatClass, MinMax, Mode, Round, bf16, f16, fp32, fp64, mufu};

pub fn evaluate(op: &Op, x: [u64; 3]) -> Option<u64> {
    if op.name == "cvt" {
        return None;
    }
    if op.name == "set" {
        return set(op, x);
    }
    if op.name == "testp" {
        let class = match op.parts[0] {
            "finite" => FloatClass::Finite,
            "infinite" => FloatClass::Infinite,
            "number" => FloatClass::Number,
            "notanumber" => FloatClass::NotANumber,
            "normal" => FloatClass::Normal,
            _ => FloatClass::Subnormal,
        };
        return Some(if op.kind() == "f64" {
            fp64::testp(x[0], class)
        } else {
            fp32::testp(x[0] as u32, class)
        } as u64);
    }
    match op.kind() {
        "f32" => f32_operation(op, x),
        "f64" => f64_operation(op, x),
        "f16" | "f16x2" | "bf16" | "bf16x2" => half_operation(op, x.map(|v| v as u32)),
        _ => None,
    }
}

fn min_max(op: &Op) -> MinMax {
    MinMax { ftz: op.has("ftz"), nan: op.has("NaN"), xorsign_abs: op.has("xorsign") }
}

fn set(op: &Op, x: [u64; 3]) -> Option<u64> {
    let [a, b, _] = x.map(|v| v as u32);
    let yes = match op.kind() {
        "s32" => w32::cmp_s(a, b, icmp(op.parts[0])?),
        "u32" => w32::cmp_u(a, b, icmp(op.parts[0])?),
        "f32" => fp32::cmp(a, b, fcmp(op.parts[0])?, false),
        _ => fp64::cmp(x[0], x[1], fcmp(op.parts[0])?),
    };
    Some(match (yes, op.parts[1]) {
        (false, _) => 0,
        (true, "f32") => fp32::ONE as u64,
        (true, _) => u32::MAX as u64,
    })
}

fn f32_operation(op: &Op, x: [u64; 3]) -> Option<u64> {
    let [a, b, c] = x.map(|v| v as u32);
    let ftz = op.has("ftz");
    let mode = Mode { round: op.round(), ftz, sat: op.has("sat") };
    if op.has("approx") || op.has("full") {
        return approximate(op, a, b, ftz).map(u64::from);
    }
    Some(match op.name {
        "add" => fp32::add(a, b, mode),
        "sub" => fp32::sub(a, b, mode),
        "mul" => fp32::mul(a, b, mode),
        "fma" => fp32::fma(a, b, c, mode),
        "div" => fp32::div(a, b, mode),
        "rcp" => fp32::rcp(a, mode),
        "sqrt" => fp32::sqrt(a, mode),
        "min" => fp32::min(a, b, min_max(op)),
        "max" => fp32::max(a, b, min_max(op)),
        "abs" => fp32::abs(a, ftz),
        "neg" => fp32::neg(a, ftz),
        "copysign" => fp32::copysign(a, b),
        "setp" => fp32::cmp(a, b, fcmp(op.parts[0])?, ftz) as u32,
        "slct" => return Some(if fp32::cmp(c, 0, FCmp::Ge, ftz) { x[0] } else { x[1] }),
        _ => return None,
    } as u64)
}

const MIN_NORMAL: u32 = 0x0080_0000;
const TWO_126: u32 = 0x7e80_0000;
const TWO_24: u32 = 0x4b80_0000;
const QUARTER: u32 = 0x3e80_0000;

/// The sequences around the special-function unit that the approximate instructions stand for.
fn approximate(op: &Op, a: u32, b: u32, ftz: bool) -> Option<u32> {
    let mode = if ftz { Mode::RN.ftz() } else { Mode::RN };
    let mul = |x, y| fp32::mul(x, y, mode);
    let magnitude = |x: u32| x & !fp32::SIGN;
    let tiny = |x: u32| !ftz && !fp32::cmp(magnitude(x), MIN_NORMAL, FCmp::Ge, ftz);
    let huge = |x: u32| fp32::cmp(magnitude(x), TWO_126, FCmp::Gt, ftz);
    // A scaled argument and the factor that brings the result back.
    let scaled = |x, back: u32, f: fn(u32) -> u32| if tiny(x) { mul(f(mul(x, TWO_24)), back) } else { f(x) };
    let angle = || fp32::mul(a, 0x3e22_f983, Mode { round: Round::Rz, ..mode });
    Some(match op.name {
        "div" => {
            let (mut a, mut b) = (a, b);
            if op.has("full") && huge(b) {
                (a, b) = (mul(a, QUARTER), mul(b, QUARTER));
            }
            if tiny(b) {
                (a, b) = (mul(a, TWO_24), mul(b, TWO_24));
            }
            mul(a, mufu::rcp(b))
        }
        "rcp" if ftz => mufu::rcp(a),
        "rcp" => {
            let k = if huge(a) {
                QUARTER
            } else if tiny(a) {
                TWO_24
            } else {
                fp32::ONE
            };
            mul(k, mufu::rcp(mul(a, k)))
        }
        "sqrt" => scaled(a, 0x3980_0000, mufu::sqrt),
        "rsqrt" => scaled(a, 0x4580_0000, mufu::rsq),
        "lg2" if tiny(a) => fp32::add(mufu::lg2(mul(a, TWO_24)), 0xc1c0_0000, mode),
        "lg2" => mufu::lg2(a),
        "ex2" if !ftz && fp32::cmp(a, 0xc2fc_0000, FCmp::Lt, false) => {
            let h = mufu::ex2(mul(a, 0x3f00_0000));
            mul(h, h)
        }
        "ex2" => mufu::ex2(a),
        "sin" => mufu::sin(angle()),
        "cos" => mufu::cos(angle()),
        "tanh" => mufu::tanh(a),
        _ => return None,
    })
}

fn f64_operation(op: &Op, [a, b, c]: [u64; 3]) -> Option<u64> {
    let round = op.round();
    Some(match op.name {
        "rcp" if op.has("approx") => (mufu::rcp64h((a >> 32) as u32) as u64) << 32,
        "rsqrt" if op.has("ftz") => (mufu::rsq64h((a >> 32) as u32) as u64) << 32,
        "rsqrt" => rsqrt_f64(a),
        "add" => fp64::add(a, b, round),
        "sub" => fp64::sub(a, b, round),
        "mul" => fp64::mul(a, b, round),
        "fma" => fp64::fma(a, b, c, round),
        "div" => fp64::div(a, b, round),
        "rcp" => fp64::rcp(a, round),
        "sqrt" => fp64::sqrt(a, round),
        "min" => fp64::min(a, b),
        "max" => fp64::max(a, b),
        "abs" => fp64::abs(a),
        "neg" => fp64::neg(a),
        "copysign" => fp64::copysign(a, b),
        "setp" => fp64::cmp(a, b, fcmp(op.parts[0])?) as u64,
        _ => return None,
    })
}

/// The refinement around the high-word estimate that `rsqrt.approx.f64` stands for.
fn rsqrt_f64(a: u64) -> u64 {
    let rn = Round::Rn;
    let refine = |x: u64| {
        let y = (mufu::rsq64h((x >> 32) as u32) as u64) << 32;
        let e = fp64::fma(x, fp64::neg_operand(fp64::mul(y, y, rn)), fp64::ONE, rn);
        let slope = fp64::fma(e, 0.375f64.to_bits(), 0.5f64.to_bits(), rn);
        fp64::fma(slope, fp64::mul(y, e, rn), y, rn)
    };
    let magnitude = a & !fp64::SIGN;
    if fp64::is_nan(a) {
        fp64::add(a, a, rn)
    } else if magnitude == 0 {
        fp64::INFINITY | a
    } else if a & fp64::SIGN != 0 {
        fp64::NAN
    } else if a == fp64::INFINITY {
        0
    } else if magnitude >> 52 == 0 {
        let up = fp64::mul(a, 0x4350_0000_0000_0000, rn);
        fp64::mul(refine(up), 0x41a0_0000_0000_0000, rn)
    } else {
        refine(a)
    }
}

/// An operation of one 16-bit format on a single number or on a pair.
macro_rules! lift {
    ($op:expr, $x:expr, $format:ident) => {{
        let (op, [a, b, c]) = ($op, $x);
        let mode = HalfMode { ftz: op.has("ftz"), sat: op.has("sat"), relu: op.has("relu") };
        match op.name {
            "add" => $format::add_x2(a, b, mode),
            "sub" => $format::sub_x2(a, b, mode),
            "mul" => $format::mul_x2(a, b, mode),
            "fma" => $format::fma_x2(a, b, c, mode),
            "min" => $format::min_x2(a, b, min_max(op)),
            "max" => $format::max_x2(a, b, min_max(op)),
            "abs" => $format::abs_x2(a, mode.ftz),
            "neg" => $format::neg_x2(a, mode.ftz),
            "ex2" => $format::ex2_x2(a),
            "tanh" => $format::tanh_x2(a),
            "setp" => $format::cmp_x2(a, b, fcmp(op.parts[0])?, mode.ftz).0 as u32,
            _ => return None,
        }
    }};
}

fn half_operation(op: &Op, x: [u32; 3]) -> Option<u64> {
    Some(if op.kind().starts_with("bf") { lift!(op, x, bf16) } else { lift!(op, x, f16) } as u64)
}
