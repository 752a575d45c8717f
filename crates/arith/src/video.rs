//! The video instructions: scalar ones on selected bytes and half-words with a secondary operation, and SIMD ones on
//! pairs of half-words and quads of bytes.
//!
//! The real machine runs the scalar forms as sequences of ordinary instructions, and those answer differently from the
//! manual in places. What it does is what is here; each difference is named where it is made.
//!
//! The byte and half-word selectors of the SIMD forms are byte permutes of the operand pair: apply
//! [`crate::bits::prmt`] first where they are not the defaults.

use crate::ICmp;

/// The part of a register that a scalar video operand names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Part {
    #[default]
    Word,
    B0,
    B1,
    B2,
    B3,
    H0,
    H1,
}

impl Part {
    const ALL: [Part; 8] =
        [Part::Word, Part::B0, Part::B1, Part::B2, Part::B3, Part::H0, Part::H1, Part::Word];

    const fn shift(self) -> u32 {
        match self {
            Part::Word | Part::B0 | Part::H0 => 0,
            Part::B1 => 8,
            Part::B2 | Part::H1 => 16,
            Part::B3 => 24,
        }
    }

    const fn bits(self) -> u32 {
        match self {
            Part::Word => 32,
            Part::B0 | Part::B1 | Part::B2 | Part::B3 => 8,
            Part::H0 | Part::H1 => 16,
        }
    }

    /// The selected part, sign- or zero-extended.
    fn extract(self, a: u32, signed: bool) -> i64 {
        extend(a >> self.shift(), self.bits(), signed)
    }
}

fn extend(a: u32, bits: u32, signed: bool) -> i64 {
    let up = 64 - bits;
    if signed { ((a as u64) << up) as i64 >> up } else { (((a as u64) << up) >> up) as i64 }
}

fn clamp_to(value: i64, bits: u32, signed: bool) -> i64 {
    let top = 1i64 << bits;
    if signed { value.clamp(-top / 2, top / 2 - 1) } else { value.clamp(0, top - 1) }
}

fn compare(a: i64, b: i64, cmp: ICmp) -> bool {
    match cmp {
        ICmp::Eq => a == b,
        ICmp::Ne => a != b,
        ICmp::Lt => a < b,
        ICmp::Le => a <= b,
        ICmp::Gt => a > b,
        ICmp::Ge => a >= b,
    }
}

/// The primary operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum VideoOp {
    #[default]
    Add,
    Sub,
    AbsDiff,
    Min,
    Max,
    /// SIMD only.
    Average,
    /// Scalar only; `wrap` takes the amount modulo 32 instead of clamping it to 32.
    Shl {
        wrap: bool,
    },
    /// Scalar only.
    Shr {
        wrap: bool,
    },
    /// One or zero. The secondary operation compares as signed when the first operand is: give `d_signed` its sign.
    Set(ICmp),
}

impl VideoOp {
    const ALL: [VideoOp; 16] = [
        VideoOp::Add,
        VideoOp::Sub,
        VideoOp::AbsDiff,
        VideoOp::Min,
        VideoOp::Max,
        VideoOp::Average,
        VideoOp::Shl { wrap: false },
        VideoOp::Shl { wrap: true },
        VideoOp::Shr { wrap: false },
        VideoOp::Shr { wrap: true },
        VideoOp::Set(ICmp::Eq),
        VideoOp::Set(ICmp::Ne),
        VideoOp::Set(ICmp::Lt),
        VideoOp::Set(ICmp::Le),
        VideoOp::Set(ICmp::Gt),
        VideoOp::Set(ICmp::Ge),
    ];

    fn apply(self, a: i64, b: i64) -> i64 {
        let amount = |wrap: bool| if wrap { b & 31 } else { b.clamp(0, 32) };
        match self {
            VideoOp::Add => a + b,
            VideoOp::Sub => a - b,
            VideoOp::AbsDiff => (a - b).abs(),
            VideoOp::Min => a.min(b),
            VideoOp::Max => a.max(b),
            VideoOp::Average => (a + b + i64::from(a + b >= 0)) >> 1,
            VideoOp::Shl { wrap } => a << amount(wrap),
            VideoOp::Shr { wrap } => a >> amount(wrap),
            VideoOp::Set(cmp) => compare(a, b, cmp) as i64,
        }
    }
}

/// What a scalar video instruction does with its result and the third operand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Secondary {
    #[default]
    None,
    Add,
    Min,
    Max,
    /// The result replaces this part of the third operand.
    Merge(Part),
}

impl Secondary {
    const ALL: [Secondary; 16] = [
        Secondary::None,
        Secondary::Add,
        Secondary::Min,
        Secondary::Max,
        Secondary::Merge(Part::B0),
        Secondary::Merge(Part::B1),
        Secondary::Merge(Part::B2),
        Secondary::Merge(Part::B3),
        Secondary::Merge(Part::H0),
        Secondary::Merge(Part::H1),
        Secondary::Merge(Part::Word),
        Secondary::None,
        Secondary::None,
        Secondary::None,
        Secondary::None,
        Secondary::None,
    ];
}

fn index_of<T: PartialEq>(all: &[T], x: T) -> u32 {
    all.iter().position(|y| *y == x).unwrap_or(0) as u32
}

/// A scalar video instruction other than `vmad`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scalar {
    pub op: VideoOp,
    pub d_signed: bool,
    pub a_signed: bool,
    pub b_signed: bool,
    pub sat: bool,
    pub a_part: Part,
    pub b_part: Part,
    pub secondary: Secondary,
}

impl Scalar {
    pub fn to_bits(self) -> u32 {
        index_of(&VideoOp::ALL, self.op)
            | (self.d_signed as u32) << 4
            | (self.a_signed as u32) << 5
            | (self.b_signed as u32) << 6
            | (self.sat as u32) << 7
            | index_of(&Part::ALL, self.a_part) << 8
            | index_of(&Part::ALL, self.b_part) << 11
            | index_of(&Secondary::ALL, self.secondary) << 14
    }

    pub fn from_bits(bits: u32) -> Scalar {
        let bit = |i: u32| bits >> i & 1 != 0;
        Scalar {
            op: VideoOp::ALL[bits as usize & 15],
            d_signed: bit(4),
            a_signed: bit(5),
            b_signed: bit(6),
            sat: bit(7),
            a_part: Part::ALL[(bits >> 8) as usize & 7],
            b_part: Part::ALL[(bits >> 11) as usize & 7],
            secondary: Secondary::ALL[(bits >> 14) as usize & 15],
        }
    }

    pub fn apply(self, a: u32, b: u32, c: u32) -> u32 {
        let t = self.op.apply(self.a_part.extract(a, self.a_signed), self.b_part.extract(b, self.b_signed));
        let part = match self.secondary {
            Secondary::Merge(part) => part,
            _ => Part::Word,
        };
        let t = if self.sat { self.saturate(t, part.bits()) } else { t };
        let word = t as u32;
        match self.secondary {
            Secondary::None => word,
            Secondary::Add => word.wrapping_add(c),
            Secondary::Min => self.select(t, c, false),
            Secondary::Max => self.select(t, c, true),
            // The upper half-word is merged from where it stands: it is not moved up first.
            Secondary::Merge(Part::H1) => (c & 0xffff) | (word & 0xffff_0000),
            Secondary::Merge(part) => {
                let mask = ((1u64 << part.bits()) - 1) as u32;
                (c & !(mask << part.shift())) | (word & mask) << part.shift()
            }
        }
    }

    /// Shifts clamp a 34-bit result. Unsigned words of the other operations clamp at zero only, and parts of words
    /// clamp as unsigned numbers, so that negative ones become the largest.
    fn saturate(self, t: i64, bits: u32) -> i64 {
        let t = t << 30 >> 30;
        let shift = matches!(self.op, VideoOp::Shl { .. } | VideoOp::Shr { .. });
        match (bits, self.d_signed) {
            (32, true) => clamp_to(t, 32, true),
            (32, false) if shift => clamp_to(t, 32, false),
            (32, false) => t.max(0),
            (_, signed) => (t as u32).min((1 << (bits - signed as u32)) - 1) as i64,
        }
    }

    /// The secondary minimum or maximum. Sums and differences are cut to words first. In an unsigned instruction the
    /// machine takes a negative number, or a sum with its top bit set, for greater than anything.
    fn select(self, t: i64, c: u32, max: bool) -> u32 {
        let sum = matches!(self.op, VideoOp::Add | VideoOp::Sub);
        let t = if sum { t as i32 as i64 } else { t };
        let greater = t > extend(c, 32, self.d_signed) || (!self.d_signed && t < 0);
        if max == greater { t as u32 } else { c }
    }
}

/// Right shift of a `vmad` result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scale {
    #[default]
    None,
    Shr7,
    Shr15,
}

/// `vmad`: product of parts plus the third operand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mad {
    pub a_signed: bool,
    pub b_signed: bool,
    pub sat: bool,
    pub a_part: Part,
    pub b_part: Part,
    /// Add one more.
    pub plus_one: bool,
    pub negate_product: bool,
    pub negate_c: bool,
    pub scale: Scale,
}

impl Mad {
    pub fn to_bits(self) -> u32 {
        self.a_signed as u32
            | (self.b_signed as u32) << 1
            | (self.sat as u32) << 2
            | (self.plus_one as u32) << 3
            | (self.negate_product as u32) << 4
            | (self.negate_c as u32) << 5
            | (self.scale as u32) << 6
            | index_of(&Part::ALL, self.a_part) << 8
            | index_of(&Part::ALL, self.b_part) << 11
    }

    pub fn from_bits(bits: u32) -> Mad {
        let bit = |i: u32| bits >> i & 1 != 0;
        Mad {
            a_signed: bit(0),
            b_signed: bit(1),
            sat: bit(2),
            plus_one: bit(3),
            negate_product: bit(4),
            negate_c: bit(5),
            scale: [Scale::None, Scale::Shr7, Scale::Shr15, Scale::None][(bits >> 6) as usize & 3],
            a_part: Part::ALL[(bits >> 8) as usize & 7],
            b_part: Part::ALL[(bits >> 11) as usize & 7],
        }
    }

    /// Whole words and the third operand count as signed, whatever their types say.
    pub fn apply(self, a: u32, b: u32, c: u32) -> u32 {
        let signed = self.a_signed | self.b_signed | self.negate_product | self.negate_c;
        let factor = |part: Part, x, signed| part.extract(x, signed | (part == Part::Word));
        let product =
            factor(self.a_part, a, self.a_signed).wrapping_mul(factor(self.b_part, b, self.b_signed));
        let product = if self.negate_product { product.wrapping_neg() } else { product };
        let c = if self.negate_c { -(c as i32 as i64) } else { c as i32 as i64 };
        let sum = product.wrapping_add(c).wrapping_add(self.plus_one as i64);
        let shift = match self.scale {
            Scale::None => 0,
            Scale::Shr7 => 7,
            Scale::Shr15 => 15,
        };
        let r = if signed { sum >> shift } else { ((sum as u64) >> shift) as i64 };
        let clamped = if signed { clamp_to(r, 32, true) } else { clamp_to(r, 32, false) };
        (if self.sat { clamped } else { r }) as u32
    }
}

/// A SIMD video instruction on operands whose elements have been selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Simd {
    pub op: VideoOp,
    /// Four bytes; two half-words otherwise.
    pub bytes: bool,
    pub d_signed: bool,
    pub a_signed: bool,
    pub b_signed: bool,
    pub sat: bool,
    /// Add the elements to the third operand instead of merging them into it.
    pub accumulate: bool,
    /// The elements that take part, one bit each.
    pub mask: u8,
}

impl Simd {
    pub fn to_bits(self) -> u32 {
        index_of(&VideoOp::ALL, self.op)
            | (self.bytes as u32) << 4
            | (self.d_signed as u32) << 5
            | (self.a_signed as u32) << 6
            | (self.b_signed as u32) << 7
            | (self.sat as u32) << 8
            | (self.accumulate as u32) << 9
            | (self.mask as u32 & 15) << 10
    }

    pub fn from_bits(bits: u32) -> Simd {
        let bit = |i: u32| bits >> i & 1 != 0;
        Simd {
            op: VideoOp::ALL[bits as usize & 15],
            bytes: bit(4),
            d_signed: bit(5),
            a_signed: bit(6),
            b_signed: bit(7),
            sat: bit(8),
            accumulate: bit(9),
            mask: (bits >> 10) as u8 & 15,
        }
    }

    pub fn apply(self, a: u32, b: u32, c: u32) -> u32 {
        let (count, width) = if self.bytes { (4, 8) } else { (2, 16) };
        let element_mask = (1u32 << width) - 1;
        let mut d = c;
        for i in 0..count {
            if self.mask >> i & 1 == 0 {
                continue;
            }
            let shift = i * width;
            let (x, y) = (extend(a >> shift, width, self.a_signed), extend(b >> shift, width, self.b_signed));
            let t = self.op.apply(x, y);
            let t = if self.sat { clamp_to(t, width, self.d_signed) } else { t };
            d = if self.accumulate {
                d.wrapping_add(t as u32)
            } else {
                (d & !(element_mask << shift)) | (t as u32 & element_mask) << shift
            };
        }
        d
    }
}

/// Bits 30 and 31 of a video instruction's descriptor: the family whose `to_bits` the others are.
pub mod family {
    pub const SCALAR: u32 = 0;
    pub const MAD: u32 = 1 << 30;
    pub const SIMD: u32 = 2 << 30;
}

/// Any video instruction, by its descriptor: one of [`family`] and the `to_bits` of [`Scalar`], [`Mad`] or [`Simd`].
pub fn apply(descriptor: u32, a: u32, b: u32, c: u32) -> u32 {
    match descriptor & (3 << 30) {
        family::SCALAR => Scalar::from_bits(descriptor).apply(a, b, c),
        family::MAD => Mad::from_bits(descriptor).apply(a, b, c),
        _ => Simd::from_bits(descriptor).apply(a, b, c),
    }
}
