//! What one lane computes: integer, floating-point, conversion and special-function arithmetic, bit for bit.
//!
//! Every function is pure and takes and returns bit patterns (`u16`, `u32`, `u64`). Modes are plain values: after
//! inlining into a lane loop they are constants and the selects on them fold away.
//!
//! | module | holds |
//! | --- | --- |
//! | [`fp32`], [`fp64`] | add, mul, fma, div, rcp, sqrt, min, max, compare, sign operations, `testp` |
//! | [`mod@f16`], [`bf16`] | the same for the 16-bit formats, with `.relu`, single and packed; [`half`] is what they share |
//! | [`int`], [`bits`] | integer arithmetic; shifts, fields, counts, permutes and logic |
//! | [`cvt`] | conversions between all of these, fp8 and tf32 |
//! | [`video`] | the scalar and SIMD video instructions |
//! | [`mufu`] | the special-function unit: rcp, rsq, sqrt, lg2, ex2, sin, cos, tanh |
//! | [`soft`] | an exact soft-float core: the definition of rounding that the rare paths use |
//!
//! # Conventions
//! - **NaN.** f32 results that are NaN are [`fp32::NAN`] (0x7fffffff) and 16-bit ones 0x7fff, whatever the inputs
//!   were. f64 keeps payloads: the operand's NaN made quiet, or [`fp64::NAN`] (0xfff8...) when an operation makes one.
//! - **ftz** reads denormal inputs as zeros of their sign and turns denormal results into zeros of theirs. A result is
//!   denormal when it is below the smallest normal number after rounding to full precision, as if the exponent had no
//!   lower limit: 2^-126 less half a unit of the denormals is flushed, although rounding to a denormal would reach 2^-126.
//! - **sat** clamps to [0, 1]; NaN and -0 become +0. **relu** turns negative results into +0 and keeps NaN.
//! - **Rounding.** Each operation rounds once, from the exact value, in one of the four [`Round`] directions.

#![deny(unsafe_code)]

pub mod bf16;
pub mod bits;
pub mod cvt;
pub mod f16;
pub mod fp32;
pub mod fp64;
pub mod half;
pub mod int;
pub mod mufu;
mod mufu_tables;
pub mod soft;
pub mod video;

/// Rounding direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Round {
    /// To nearest, ties to even.
    #[default]
    Rn,
    /// Toward zero.
    Rz,
    /// Toward minus infinity.
    Rm,
    /// Toward plus infinity.
    Rp,
}

/// Comparison of floating-point numbers. The plain six are false when an operand is NaN, the six with `u` true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FCmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    /// Neither operand is NaN.
    Num,
    /// An operand is NaN.
    Nan,
}

impl FCmp {
    /// The answer from how the operands relate.
    #[inline(always)]
    pub(crate) fn answer(self, lt: bool, eq: bool, nan: bool) -> bool {
        match self {
            FCmp::Eq => eq,
            FCmp::Ne => !eq & !nan,
            FCmp::Lt => lt,
            FCmp::Le => lt | eq,
            FCmp::Gt => !(lt | eq | nan),
            FCmp::Ge => !(lt | nan),
            FCmp::Equ => eq | nan,
            FCmp::Neu => !eq,
            FCmp::Ltu => lt | nan,
            FCmp::Leu => lt | eq | nan,
            FCmp::Gtu => !(lt | eq),
            FCmp::Geu => !lt,
            FCmp::Num => !nan,
            FCmp::Nan => nan,
        }
    }
}

/// Comparison of integers; signedness is the caller's choice of function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ICmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// What `testp` asks of a floating-point number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatClass {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

/// Modifiers of an f32 or f64 arithmetic instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mode {
    pub round: Round,
    pub ftz: bool,
    pub sat: bool,
}

impl Mode {
    /// Round to nearest, denormals kept, no saturation.
    pub const RN: Mode = Mode { round: Round::Rn, ftz: false, sat: false };

    /// This rounding, denormals kept, no saturation.
    #[inline(always)]
    pub const fn round(round: Round) -> Mode {
        Mode { round, ..Mode::RN }
    }

    #[inline(always)]
    pub const fn ftz(self) -> Mode {
        Mode { ftz: true, ..self }
    }

    #[inline(always)]
    pub const fn sat(self) -> Mode {
        Mode { sat: true, ..self }
    }
}

/// Modifiers of `min` and `max`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MinMax {
    pub ftz: bool,
    /// A NaN operand makes the result NaN; otherwise the other operand is the result.
    pub nan: bool,
    /// Compare magnitudes; the sign of the result is the exclusive or of the operands' signs.
    pub xorsign_abs: bool,
}
