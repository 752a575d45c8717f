//! Integer, logic and video instructions.

use super::{Op, icmp};
use arith::bits::{self, Amount, Prmt};
use arith::int::{self, w32, w64};

/// The operand as its type sees it, in 64 bits.
fn extend(x: u64, kind: &str) -> u64 {
    match kind {
        "s16" => x as i16 as u64,
        "u16" | "b16" => x as u16 as u64,
        "s32" => x as i32 as u64,
        "u32" | "b32" => x as u32 as u64,
        _ => x,
    }
}

pub fn evaluate(op: &Op, operands: &str, x: [u64; 3]) -> Option<u64> {
    let signed = op.signed();
    let kind = op.kind();
    if let Some(r) = special(op, operands, x) {
        return Some(r);
    }
    let [a64, b64, c64] = x.map(|v| extend(v, kind));
    let [a, b, c] = [a64 as u32, b64 as u32, c64 as u32];
    if kind.ends_with("64") {
        return Some(match (op.name, signed) {
            ("add", _) => w64::add(a64, b64),
            ("sub", _) => w64::sub(a64, b64),
            ("mul", _) if op.has("lo") => w64::mul_lo(a64, b64),
            ("mul", true) => w64::mul_hi_s(a64, b64),
            ("mul", false) => w64::mul_hi_u(a64, b64),
            ("mad", _) if op.has("lo") => w64::mad_lo(a64, b64, c64),
            ("mad", true) => w64::mad_hi_s(a64, b64, c64),
            ("mad", false) => w64::mad_hi_u(a64, b64, c64),
            ("div", true) => w64::div_s(a64, b64),
            ("div", false) => w64::div_u(a64, b64),
            ("rem", true) => w64::rem_s(a64, b64),
            ("rem", false) => w64::rem_u(a64, b64),
            ("min", true) => w64::min_s(a64, b64),
            ("min", false) => w64::min_u(a64, b64),
            ("max", true) => w64::max_s(a64, b64),
            ("max", false) => w64::max_u(a64, b64),
            ("sad", true) => w64::sad_s(a64, b64, c64),
            ("sad", false) => w64::sad_u(a64, b64, c64),
            ("abs", _) => w64::abs(a64),
            ("neg", _) => w64::neg(a64),
            ("and", _) => a64 & b64,
            ("or", _) => a64 | b64,
            ("xor", _) => a64 ^ b64,
            ("not", _) => !a64,
            ("cnot", _) => bits::cnot64(a64),
            ("shl", _) => bits::shl64(a64, x[1] as u32),
            ("shr", true) => bits::shr64_s(a64, x[1] as u32),
            ("shr", false) => bits::shr64_u(a64, x[1] as u32),
            ("setp", true) => w64::cmp_s(a64, b64, icmp(op.parts[0])?) as u64,
            ("setp", false) => w64::cmp_u(a64, b64, icmp(op.parts[0])?) as u64,
            ("popc", _) => bits::popc64(a64) as u64,
            ("clz", _) => bits::clz64(a64) as u64,
            ("brev", _) => bits::brev64(a64),
            ("bfe", _) => bits::bfe64(a64, x[1] as u32, x[2] as u32, signed),
            ("bfind", _) => bits::bfind64(a64, signed, op.has("shiftamt")) as u64,
            _ => return None,
        });
    }
    let narrow = kind.ends_with("16");
    Some(match (op.name, signed) {
        ("add", _) => w32::add(a, b),
        ("sub", _) => w32::sub(a, b),
        ("mul" | "mad", true) if op.has("wide") && !narrow => {
            let c = if op.name == "mad" { x[2] } else { 0 };
            return Some(w32::mad_wide_s(a, b, c));
        }
        ("mul" | "mad", false) if op.has("wide") && !narrow => {
            let c = if op.name == "mad" { x[2] } else { 0 };
            return Some(w32::mad_wide_u(a, b, c));
        }
        ("mul", _) if op.has("lo") | op.has("wide") => w32::mul_lo(a, b),
        ("mad", _) if op.has("wide") => w32::mad_lo(a, b, x[2] as u32),
        ("mad", _) if op.has("lo") => w32::mad_lo(a, b, c),
        ("mul", _) if narrow => w32::mul_lo(a, b) >> 16,
        ("mad", _) if narrow => (w32::mul_lo(a, b) >> 16).wrapping_add(c),
        ("mul", true) => w32::mul_hi_s(a, b),
        ("mul", false) => w32::mul_hi_u(a, b),
        ("mad", true) => w32::mad_hi_s(a, b, c),
        ("mad", false) => w32::mad_hi_u(a, b, c),
        ("div", true) => w32::div_s(a, b),
        ("div", false) => w32::div_u(a, b),
        ("rem", true) => w32::rem_s(a, b),
        ("rem", false) => w32::rem_u(a, b),
        ("min", true) => w32::min_s(a, b),
        ("min", false) => w32::min_u(a, b),
        ("max", true) => w32::max_s(a, b),
        ("max", false) => w32::max_u(a, b),
        ("sad", true) => w32::sad_s(a, b, c),
        ("sad", false) => w32::sad_u(a, b, c),
        ("abs", _) => w32::abs(a),
        ("neg", _) => w32::neg(a),
        ("and", _) => a & b,
        ("or", _) => a | b,
        ("xor", _) => a ^ b,
        ("not", _) => !a,
        ("cnot", _) => bits::cnot(a),
        ("shl", _) => bits::shl(a, x[1] as u32),
        ("shr", true) => bits::shr_s(a, x[1] as u32),
        ("shr", false) => bits::shr_u(a, x[1] as u32),
        ("setp", true) => w32::cmp_s(a, b, icmp(op.parts[0])?) as u32,
        ("setp", false) => w32::cmp_u(a, b, icmp(op.parts[0])?) as u32,
        ("popc", _) => bits::popc(a),
        ("clz", _) => bits::clz(a),
        ("brev", _) => bits::brev(a),
        ("bfe", _) => bits::bfe(a, x[1] as u32, x[2] as u32, signed),
        ("bfind", _) => bits::bfind(a, signed, op.has("shiftamt")),
        _ => return None,
    } as u64)
}

fn special(op: &Op, operands: &str, x: [u64; 3]) -> Option<u64> {
    let [a, b, c] = x.map(|v| v as u32);
    let signed = op.signed();
    let amount = if op.has("clamp") { Amount::Clamp } else { Amount::Wrap };
    let first_signed = op.parts.iter().find(|p| p.ends_with("32")).is_some_and(|p| p.starts_with('s'));
    Some(match (op.name, op.kind()) {
        ("add", "s32") if op.has("sat") => int::add_sat_s32(a, b),
        ("sub", "s32") if op.has("sat") => int::sub_sat_s32(a, b),
        ("mad", "s32") if op.has("sat") => int::mad_hi_sat_s32(a, b, c),
        ("mul24", _) if op.has("lo") => int::mul24_lo(a, b, signed),
        ("mul24", _) => int::mul24_hi(a, b, signed),
        ("mad24", _) if op.has("lo") => int::mul24_lo(a, b, signed).wrapping_add(c),
        ("mad24", _) => int::mul24_hi(a, b, signed).wrapping_add(c),
        ("add", "u16x2" | "s16x2") => int::add_16x2(a, b),
        ("min", "u16x2") => int::min_u16x2(a, b),
        ("max", "u16x2") => int::max_u16x2(a, b),
        ("min", "s16x2") => int::min_s16x2(a, b),
        ("max", "s16x2") => int::max_s16x2(a, b),
        ("fns", _) => bits::fns(a, b, c),
        ("szext", _) => bits::szext(a, b, amount, signed),
        ("bmsk", _) => bits::bmsk(a, b, amount),
        ("dp4a", _) => int::dp4a(a, b, c, first_signed, signed),
        ("dp2a", _) => int::dp2a(a, b, c, op.has("hi"), first_signed, signed),
        ("lop3", _) => {
            let table = operands.trim_end_matches(';').rsplit("0x").next()?;
            bits::lop3(a, b, c, u8::from_str_radix(table, 16).ok()?)
        }
        ("shf", _) if op.has("l") => bits::shf_l(a, b, c, amount),
        ("shf", _) => bits::shf_r(a, b, c, amount),
        ("prmt", mode) => bits::prmt(
            a,
            b,
            c,
            match mode {
                "f4e" => Prmt::ForwardFour,
                "b4e" => Prmt::BackwardFour,
                "rc8" => Prmt::ReplicateByte,
                "ecl" => Prmt::EdgeClampLeft,
                "ecr" => Prmt::EdgeClampRight,
                "rc16" => Prmt::ReplicateHalf,
                _ => Prmt::Index,
            },
        ),
        ("slct", "s32") => {
            if (c as i32) >= 0 {
                a
            } else {
                b
            }
        }
        _ => return None,
    } as u64)
}
