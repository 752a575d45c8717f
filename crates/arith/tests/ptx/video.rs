//! Video instructions, with their selectors and modifiers.

use super::{Op, icmp};
use arith::video::{Mad, Part, Scalar, Scale, Secondary, Simd, VideoOp};

/// The part that an operand such as `-%1.h0` names.
fn part(operand: &str) -> Part {
    match operand.split_once('.').map_or("", |(_, part)| part) {
        "b0" => Part::B0,
        "b1" => Part::B1,
        "b2" => Part::B2,
        "b3" => Part::B3,
        "h0" => Part::H0,
        "h1" => Part::H1,
        _ => Part::Word,
    }
}

pub fn evaluate(op: &Op, operands: &str, [a, b, c]: [u32; 3]) -> Option<u32> {
    let operands: Vec<&str> = operands.trim_end_matches(';').split(", ").collect();
    let types: Vec<bool> =
        op.parts.iter().filter(|p| p.ends_with("32")).map(|p| p.starts_with('s')).collect();
    let name = op.name.trim_end_matches(['2', '4']);
    let wrap = op.has("wrap");
    let compare = || op.parts.iter().find_map(|p| icmp(p));
    // A comparison has no destination type.
    let (d_signed, a_signed, b_signed) = match types[..] {
        [d, a, b] => (d, a, b),
        [a, b] => (a, a, b),
        _ => return None,
    };
    let sat = op.has("sat");
    let (a_part, b_part) = (part(operands[1]), part(operands[2]));
    if name == "vmad" {
        let v = Mad {
            a_signed,
            b_signed,
            sat,
            a_part,
            b_part,
            plus_one: op.has("po"),
            negate_product: operands[1].starts_with('-') != operands[2].starts_with('-'),
            negate_c: operands[3].starts_with('-'),
            scale: match (op.has("shr7"), op.has("shr15")) {
                (true, _) => Scale::Shr7,
                (_, true) => Scale::Shr15,
                _ => Scale::None,
            },
        };
        assert_eq!(v, Mad::from_bits(v.to_bits()));
        return Some(v.apply(a, b, c));
    }
    let kind = match name {
        "vadd" => VideoOp::Add,
        "vsub" => VideoOp::Sub,
        "vabsdiff" => VideoOp::AbsDiff,
        "vmin" => VideoOp::Min,
        "vmax" => VideoOp::Max,
        "vavrg" => VideoOp::Average,
        "vshl" => VideoOp::Shl { wrap },
        "vshr" => VideoOp::Shr { wrap },
        "vset" => VideoOp::Set(compare()?),
        _ => return None,
    };
    if name == op.name {
        let secondary = match (op.has("add"), op.has("min"), op.has("max"), part(operands[0])) {
            (true, ..) => Secondary::Add,
            (_, true, ..) => Secondary::Min,
            (_, _, true, _) => Secondary::Max,
            (.., Part::Word) => Secondary::None,
            (.., part) => Secondary::Merge(part),
        };
        let v = Scalar { op: kind, d_signed, a_signed, b_signed, sat, a_part, b_part, secondary };
        assert_eq!(v, Scalar::from_bits(v.to_bits()));
        return Some(v.apply(a, b, c));
    }
    let mask = match operands[0].split_once('.') {
        None => 15,
        Some((_, positions)) => positions[1..].bytes().fold(0, |mask, digit| mask | 1 << (digit - b'0')),
    };
    let bytes = op.name.ends_with('4');
    let v = Simd { op: kind, bytes, d_signed, a_signed, b_signed, sat, accumulate: op.has("add"), mask };
    assert_eq!(v, Simd::from_bits(v.to_bits()));
    Some(v.apply(a, b, c))
}
