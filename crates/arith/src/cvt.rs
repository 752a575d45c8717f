//! Conversions between integers and floating-point formats.
//!
//! The common pairs have their own vectorisable functions; [`int_to_float`], [`float_to_int`] and [`float_to_float`]
//! cover every pair through the soft core where no faster way exists.

use crate::fp32::{self, flush, is_tiny, narrow, narrow_twice, saturate};
use crate::soft::{self, Format, Number, Overflow};
use crate::{Round, bf16, f16, fp64, half};

/// Integer type of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntType {
    U8,
    S8,
    U16,
    S16,
    U32,
    S32,
    U64,
    S64,
}

impl IntType {
    #[inline(always)]
    pub const fn bits(self) -> u32 {
        match self {
            IntType::U8 | IntType::S8 => 8,
            IntType::U16 | IntType::S16 => 16,
            IntType::U32 | IntType::S32 => 32,
            IntType::U64 | IntType::S64 => 64,
        }
    }

    #[inline(always)]
    pub const fn is_signed(self) -> bool {
        matches!(self, IntType::S8 | IntType::S16 | IntType::S32 | IntType::S64)
    }

    #[inline(always)]
    const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// The value of the type's low bits.
    #[inline(always)]
    pub const fn value(self, bits: u64) -> i128 {
        let up = 64 - self.bits();
        if self.is_signed() { ((bits << up) as i64 >> up) as i128 } else { (bits & self.mask()) as i128 }
    }

    #[inline(always)]
    pub const fn min(self) -> i128 {
        if self.is_signed() { -(1 << (self.bits() - 1)) } else { 0 }
    }

    #[inline(always)]
    pub const fn max(self) -> i128 {
        if self.is_signed() { (1 << (self.bits() - 1)) - 1 } else { (1 << self.bits()) - 1 }
    }
}

/// Floating-point type of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatType {
    F16,
    Bf16,
    F32,
    F64,
}

impl FloatType {
    pub const fn format(self) -> Format {
        match self {
            FloatType::F16 => soft::F16,
            FloatType::Bf16 => soft::BF16,
            FloatType::F32 => soft::F32,
            FloatType::F64 => soft::F64,
        }
    }

    const fn nan(self) -> u64 {
        match self {
            FloatType::F16 | FloatType::Bf16 => half::NAN as u64,
            FloatType::F32 => fp32::NAN as u64,
            FloatType::F64 => fp64::NAN,
        }
    }
}

/// Integer to integer, by width or saturating. The result has the destination's width, zero above.
#[inline(always)]
pub fn int_to_int(a: u64, to: IntType, from: IntType, sat: bool) -> u64 {
    let value = from.value(a);
    let value = if sat { value.clamp(to.min(), to.max()) } else { value };
    value as u64 & to.mask()
}

#[inline(always)]
pub fn s32_to_f32(a: u32, round: Round) -> u32 {
    match round {
        Round::Rn => (a as i32 as f32).to_bits(),
        _ => narrow(a as i32 as f64, round),
    }
}

#[inline(always)]
pub fn u32_to_f32(a: u32, round: Round) -> u32 {
    match round {
        Round::Rn => (a as f32).to_bits(),
        _ => narrow(a as f64, round),
    }
}

#[inline(always)]
pub fn s32_to_f64(a: u32) -> u64 {
    (a as i32 as f64).to_bits()
}

#[inline(always)]
pub fn u32_to_f64(a: u32) -> u64 {
    (a as f64).to_bits()
}

/// Any integer to any floating-point type.
#[inline(always)]
pub fn int_to_float(a: u64, to: FloatType, from: IntType, round: Round) -> u64 {
    let small = from.bits() <= 32;
    match (to, round) {
        (FloatType::F32, _) if small => narrow(from.value(a) as i64 as f64, round) as u64,
        (FloatType::F64, _) if small => (from.value(a) as i64 as f64).to_bits(),
        (FloatType::F64, Round::Rn) if from.is_signed() => (a as i64 as f64).to_bits(),
        (FloatType::F64, Round::Rn) => (a as f64).to_bits(),
        _ => soft::pack(to.format(), soft::from_int(from.value(a)), round, Overflow::Round, 0),
    }
}

#[inline(always)]
fn integral32(x: f32, round: Round) -> f32 {
    match round {
        Round::Rn => x.round_ties_even(),
        Round::Rz => x.trunc(),
        Round::Rm => x.floor(),
        Round::Rp => x.ceil(),
    }
}

#[inline(always)]
fn integral64(x: f64, round: Round) -> f64 {
    match round {
        Round::Rn => x.round_ties_even(),
        Round::Rz => x.trunc(),
        Round::Rm => x.floor(),
        Round::Rp => x.ceil(),
    }
}

/// The same as `x as i32`, which does not vectorise.
#[inline(always)]
#[allow(unsafe_code)]
fn saturating_s32(x: f32) -> u32 {
    let fits = (-2_147_483_648.0..2_147_483_648.0).contains(&x);
    // SAFETY: the operand is in range, or zero in place of one that is not.
    let r = unsafe { (if fits { x } else { 0.0 }).to_int_unchecked::<i32>() } as u32;
    let r = if x >= 2_147_483_648.0 { i32::MAX as u32 } else { r };
    if x < -2_147_483_648.0 { 1 << 31 } else { r }
}

/// The same as `x as u32`, which does not vectorise.
#[inline(always)]
#[allow(unsafe_code)]
fn saturating_u32(x: f32) -> u32 {
    let fits = (x > -1.0) & (x < 4_294_967_296.0);
    // SAFETY: as above.
    let r = unsafe { (if fits { x } else { 0.0 }).to_int_unchecked::<u32>() };
    if x >= 4_294_967_296.0 { u32::MAX } else { r }
}

/// Saturates; NaN gives 0.
#[inline(always)]
pub fn f32_to_s32(a: u32, round: Round, ftz: bool) -> u32 {
    saturating_s32(integral32(f32::from_bits(flush(a, ftz)), round))
}

/// Saturates; NaN gives 0.
#[inline(always)]
pub fn f32_to_u32(a: u32, round: Round, ftz: bool) -> u32 {
    saturating_u32(integral32(f32::from_bits(flush(a, ftz)), round))
}

/// Saturates; NaN gives 0x80000000.
#[inline(always)]
pub fn f64_to_s32(a: u64, round: Round) -> u32 {
    if fp64::is_nan(a) { 1 << 31 } else { integral64(f64::from_bits(a), round) as i32 as u32 }
}

/// Saturates; NaN gives 0x80000000.
#[inline(always)]
pub fn f64_to_u32(a: u64, round: Round) -> u32 {
    if fp64::is_nan(a) { 1 << 31 } else { integral64(f64::from_bits(a), round) as u32 }
}

/// The value of a 16-bit or f32 number as f64.
#[inline(always)]
fn widened(a: u64, from: FloatType) -> f64 {
    match from {
        FloatType::F16 => f16::to_f32(a as u16) as f64,
        FloatType::Bf16 => bf16::to_f32(a as u16) as f64,
        FloatType::F32 => f32::from_bits(a as u32) as f64,
        FloatType::F64 => f64::from_bits(a),
    }
}

/// Any floating-point type to any integer type, saturating. NaN gives 0, or the top bit alone when either side has 64
/// bits. `ftz` flushes an f32 input.
#[inline(always)]
pub fn float_to_int(a: u64, to: IntType, from: FloatType, round: Round, ftz: bool) -> u64 {
    let a = if from == FloatType::F32 { flush(a as u32, ftz) as u64 } else { a };
    let x = integral64(widened(a, from), round);
    // Through the widest type of the signedness, which saturates too.
    let value = if to.is_signed() {
        (x as i64).clamp(to.min() as i64, to.max() as i64) as u64
    } else {
        (x as u64).min(to.max() as u64)
    };
    let wide = (from == FloatType::F64) | (to.bits() == 64);
    let nan = if wide { 1 << (to.bits() - 1) } else { 0 };
    if x.is_nan() { nan } else { value & to.mask() }
}

#[inline(always)]
pub fn f16_to_f32(a: u16) -> u32 {
    if f16::is_nan(a) { fp32::NAN } else { f16::to_f32(a).to_bits() }
}

/// The bits move up; a NaN keeps its payload.
#[inline(always)]
pub fn bf16_to_f32(a: u16) -> u32 {
    (a as u32) << 16
}

/// With `ftz` a NaN becomes canonical: the flush is an addition on the real machine.
#[inline(always)]
fn flush_by_instruction(a: u32, ftz: bool) -> u32 {
    if ftz & fp32::is_nan(a) { fp32::NAN } else { flush(a, ftz) }
}

/// Modifiers of a conversion to a 16-bit, tf32 or 8-bit format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Clamp {
    /// Negative results become +0.
    pub relu: bool,
    /// Values too large become the largest finite number.
    pub satfinite: bool,
}

#[inline(always)]
fn clamp_half(r: u16, infinity: u16, clamp: Clamp) -> u16 {
    let too_large = clamp.satfinite & (r & !half::SIGN == infinity);
    let r = if too_large { r - 1 } else { r };
    if clamp.relu & (r & half::SIGN != 0) { 0 } else { r }
}

/// `.ftz` has no effect here: the machine does not flush the input, and an f32 denormal is far below f16's range.
#[inline(always)]
pub fn f32_to_f16(a: u32, round: Round, clamp: Clamp) -> u16 {
    clamp_half(f16::from_f32(a, round), f16::INFINITY, clamp)
}

#[inline(always)]
pub fn f32_to_bf16(a: u32, round: Round, clamp: Clamp) -> u16 {
    clamp_half(bf16::from_f32(a, round), bf16::INFINITY, clamp)
}

/// Sign, quiet bit and payload of a NaN carried to another format.
fn carry_nan(a: u64, to: Format, from: Format) -> u64 {
    let sign = if a & from.sign_bit() != 0 { to.sign_bit() } else { 0 };
    let payload = a & ((1 << from.fraction_bits) - 1);
    let payload = if to.fraction_bits >= from.fraction_bits {
        payload << (to.fraction_bits - from.fraction_bits)
    } else {
        payload >> (from.fraction_bits - to.fraction_bits)
    };
    sign | to.infinity() | payload | 1 << (to.fraction_bits - 1)
}

/// f32 to f64 keeps a NaN's payload; with `ftz` a NaN is the canonical f32 one.
#[inline(always)]
pub fn f32_to_f64(a: u32, ftz: bool) -> u64 {
    let a = flush_by_instruction(a, ftz);
    let nan = (a as u64 >> 31) << 63 | 0x7ff8_0000_0000_0000 | (a as u64 & 0x007f_ffff) << 29;
    if fp32::is_nan(a) { nan } else { (f32::from_bits(a) as f64).to_bits() }
}

/// f64 to f32 keeps what fits of a NaN's payload.
#[inline(always)]
pub fn f64_to_f32(a: u64, round: Round, ftz: bool, sat: bool) -> u32 {
    let nan = (a >> 32) as u32 & fp32::SIGN | 0x7fc0_0000 | (a >> 29) as u32 & 0x003f_ffff;
    let (r, scaled) = narrow_twice(f64::from_bits(a), round);
    let r = if ftz & is_tiny(scaled) { r & fp32::SIGN } else { r };
    let r = if fp64::is_nan(a) { nan } else { r };
    if sat { saturate(r) } else { r }
}

/// Any floating-point type to any other, with one rounding. NaN payloads travel to and from f64; otherwise NaN is
/// canonical, but bf16 to f32 keeps its bits. `ftz` flushes f32 inputs and results.
pub fn float_to_float(a: u64, to: FloatType, from: FloatType, round: Round, ftz: bool) -> u64 {
    match (to, from) {
        (FloatType::F32, FloatType::F64) => f64_to_f32(a, round, ftz, false) as u64,
        (FloatType::F64, FloatType::F32) => f32_to_f64(a as u32, ftz),
        (FloatType::F32, FloatType::F16) => f16_to_f32(a as u16) as u64,
        (FloatType::F32, FloatType::Bf16) => flush_by_instruction(bf16_to_f32(a as u16), ftz) as u64,
        (FloatType::F32, FloatType::F32) => flush_by_instruction(a as u32, ftz) as u64,
        (FloatType::F16, FloatType::F32) => f32_to_f16(a as u32, round, Clamp::default()) as u64,
        (FloatType::Bf16, FloatType::F32) => f32_to_bf16(a as u32, round, Clamp::default()) as u64,
        _ => {
            let number = soft::unpack(from.format(), a);
            let payload = to == FloatType::F64 || from == FloatType::F64;
            let nan = if payload { carry_nan(a, to.format(), from.format()) } else { to.nan() };
            soft::pack(to.format(), number, round, Overflow::Round, nan)
        }
    }
}

/// Rounds to an integral f32.
#[inline(always)]
pub fn round_f32(a: u32, round: Round, ftz: bool) -> u32 {
    if fp32::is_nan(a) { fp32::NAN } else { integral32(f32::from_bits(flush(a, ftz)), round).to_bits() }
}

/// Rounds to an integral f64; a NaN is made quiet.
#[inline(always)]
pub fn round_f64(a: u64, round: Round) -> u64 {
    if fp64::is_nan(a) { a | 1 << 51 } else { integral64(f64::from_bits(a), round).to_bits() }
}

/// Rounds to an integral f16.
#[inline(always)]
pub fn round_f16(a: u16, round: Round) -> u16 {
    f16::from_f32(integral32(f16::to_f32(a), round).to_bits(), Round::Rn)
}

/// Rounds to an integral bf16.
#[inline(always)]
pub fn round_bf16(a: u16, round: Round) -> u16 {
    bf16::from_f32(integral32(bf16::to_f32(a), round).to_bits(), Round::Rn)
}

/// `cvt.rna.tf32`: adds half a unit to the bits and cuts, NaNs included. With `satfinite` infinities and NaNs
/// are not rounded, and what is then infinite or NaN loses one unit.
#[inline(always)]
pub fn f32_to_tf32_rna(a: u32, satfinite: bool) -> u32 {
    let special = a & fp32::INFINITY == fp32::INFINITY;
    let r = (if satfinite & special { a } else { a.wrapping_add(0x1000) }) & !0x1fff;
    if satfinite & (r & fp32::INFINITY == fp32::INFINITY) { r - 0x2000 } else { r }
}

/// To tf32, to nearest or toward zero.
pub fn f32_to_tf32(a: u32, round: Round, clamp: Clamp) -> u32 {
    let overflow = if clamp.satfinite { Overflow::Saturate } else { Overflow::Round };
    let number = soft::unpack(soft::F32, a as u64);
    let negative = soft::is_negative(number);
    let r = (soft::pack(soft::TF32, number, round, overflow, 0x3ffff) << 13) as u32;
    if clamp.relu & negative { 0 } else { r }
}

/// An 8-bit floating-point format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fp8 {
    E4m3,
    E5m2,
}

impl Fp8 {
    const fn format(self) -> Format {
        match self {
            Fp8::E4m3 => soft::E4M3,
            Fp8::E5m2 => soft::E5M2,
        }
    }

    fn pack(self, number: Number, relu: bool) -> u8 {
        if relu && soft::is_negative(number) {
            return 0;
        }
        soft::pack(self.format(), number, Round::Rn, Overflow::Saturate, 0x7f) as u8
    }
}

/// To an 8-bit format, to nearest, values too large becoming the largest finite one.
pub fn f32_to_fp8(a: u32, to: Fp8, relu: bool) -> u8 {
    to.pack(soft::unpack(soft::F32, a as u64), relu)
}

pub fn f16_to_fp8(a: u16, to: Fp8, relu: bool) -> u8 {
    to.pack(soft::unpack(soft::F16, a as u64), relu)
}

/// Exact, but for NaN, which becomes canonical.
pub fn fp8_to_f16(a: u8, from: Fp8, relu: bool) -> u16 {
    let number = soft::unpack(from.format(), a as u64);
    if relu && soft::is_negative(number) {
        return 0;
    }
    soft::pack(soft::F16, number, Round::Rn, Overflow::Round, half::NAN as u64) as u16
}

/// `cvt.pack`: two saturated integers of `bits` bits in the low bits, `a` above `b`, then the low bits of `c`.
#[inline(always)]
pub fn pack_sat(a: u32, b: u32, c: u32, bits: u32, signed: bool) -> u32 {
    let bits = bits.clamp(1, 16);
    let (min, max) = if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
    let mask = (1u32 << bits) - 1;
    let field = |x: u32| (x as i32).clamp(min, max) as u32 & mask;
    let rest = ((c as u64) << (2 * bits)) as u32;
    field(b) | field(a) << bits | rest
}
