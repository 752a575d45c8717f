//! A small evaluator of single PTX instructions over this crate's functions.

mod conversion;
mod floating;
mod integer;
mod video;

use arith::{FCmp, ICmp, Round};

/// The modifiers of an opcode.
pub struct Op<'a> {
    pub name: &'a str,
    pub parts: Vec<&'a str>,
}

impl<'a> Op<'a> {
    fn new(opcode: &'a str) -> Op<'a> {
        let mut parts = opcode.split('.');
        Op { name: parts.next().unwrap_or_default(), parts: parts.collect() }
    }

    pub fn has(&self, part: &str) -> bool {
        self.parts.contains(&part)
    }

    /// The last part: the type of most instructions.
    pub fn kind(&self) -> &'a str {
        self.parts.last().copied().unwrap_or_default()
    }

    pub fn signed(&self) -> bool {
        self.kind().starts_with('s')
    }

    pub fn round(&self) -> Round {
        let is = |a, b| self.has(a) || self.has(b);
        if is("rz", "rzi") {
            Round::Rz
        } else if is("rm", "rmi") {
            Round::Rm
        } else if is("rp", "rpi") {
            Round::Rp
        } else {
            Round::Rn
        }
    }
}

pub fn fcmp(name: &str) -> Option<FCmp> {
    Some(match name {
        "eq" => FCmp::Eq,
        "ne" => FCmp::Ne,
        "lt" => FCmp::Lt,
        "le" => FCmp::Le,
        "gt" => FCmp::Gt,
        "ge" => FCmp::Ge,
        "equ" => FCmp::Equ,
        "neu" => FCmp::Neu,
        "ltu" => FCmp::Ltu,
        "leu" => FCmp::Leu,
        "gtu" => FCmp::Gtu,
        "geu" => FCmp::Geu,
        "num" => FCmp::Num,
        "nan" => FCmp::Nan,
        _ => return None,
    })
}

pub fn icmp(name: &str) -> Option<ICmp> {
    Some(match name {
        "eq" => ICmp::Eq,
        "ne" => ICmp::Ne,
        "lt" | "lo" => ICmp::Lt,
        "le" | "ls" => ICmp::Le,
        "gt" | "hi" => ICmp::Gt,
        "ge" | "hs" => ICmp::Ge,
        _ => return None,
    })
}

/// The result of a form on its operands; `None` for a form this evaluator does not know.
pub fn evaluate(text: &str, x: [u64; 3]) -> Option<u64> {
    if text.starts_with('{') {
        return sequence(text, x);
    }
    let (opcode, operands) = text.split_once(' ')?;
    let op = Op::new(opcode);
    if op.name.starts_with('v') {
        return video::evaluate(&op, operands, x.map(|v| v as u32)).map(u64::from);
    }
    floating::evaluate(&op, x)
        .or_else(|| conversion::evaluate(&op, x))
        .or_else(|| integer::evaluate(&op, operands, x))
}

/// The forms in braces, recognised by the instruction that they are about.
fn sequence(text: &str, [a, b, c]: [u64; 3]) -> Option<u64> {
    use arith::{Mode, bits, fp32, fp64, int};
    let holds = |s: &str| text.contains(s);
    let wide = holds("64 a,") || holds("b64 %0");
    Some(if holds("bfi.b") {
        let masked = c as u32 & 255;
        let (position, length) =
            if holds("shr.u32 d, %3, 3") { (c as u32, c as u32 >> 3) } else { (masked, masked >> 2) };
        if wide {
            bits::bfi64(a, b, position, length)
        } else {
            bits::bfi(a as u32, b as u32, position, length) as u64
        }
    } else if holds("bfe.") {
        let signed = holds("bfe.s");
        let length = c as u32 & 255;
        if holds("64 %0") {
            bits::bfe64(a, b as u32, length, signed)
        } else {
            bits::bfe(a as u32, b as u32, length, signed) as u64
        }
    } else if holds("add.cc") && wide {
        let (sum, carry) = int::w64::add_carry(a, b, false);
        int::w64::add_carry(c, sum, carry).0
    } else if holds("add.cc") {
        let (sum, carry) = int::w32::add_carry(a as u32, b as u32, false);
        int::w32::add_carry(c as u32, sum, carry).0 as u64
    } else if holds("sub.cc") && wide {
        let (sum, carry) = int::w64::sub_carry(a, b, true);
        int::w64::sub_carry(c, sum, carry).0
    } else if holds("sub.cc") {
        let (sum, carry) = int::w32::sub_carry(a as u32, b as u32, true);
        int::w32::sub_carry(c as u32, sum, carry).0 as u64
    } else if holds("mad.lo.cc") {
        let (a, b, c) = (a as u32, b as u32, c as u32);
        let (sum, carry) = int::w32::add_carry(int::w32::mul_lo(a, b), c, false);
        int::w32::add_carry(int::w32::mul_hi_u(a, b), sum, carry).0 as u64
    } else if holds("setp.lt.and.f32") {
        let p = fp32::cmp(a as u32, b as u32, FCmp::Lt, false);
        if p { 3 } else { 5 + 8 }
    } else if holds(".reg .f32 t; mul") {
        // The assembler makes one scaled product of this pair.
        let factor = u32::from_str_radix(text.rsplit_once("0f")?.1.get(..8)?, 16).ok()?;
        let mode = if holds(".ftz") { Mode::RN.ftz() } else { Mode::RN };
        fp32::mul_scaled(a as u32, b as u32, (factor >> 23) as i32 - 127, mode) as u64
    } else if holds("neg.f64 t") {
        fp64::fma(fp64::neg_operand(a), b, c, Round::Rn)
    } else if holds("abs.f64 t") {
        fp64::add(fp64::abs_operand(a), b, Round::Rn)
    } else {
        return None;
    })
}
