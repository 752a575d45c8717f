//! Widths of values and the ways operations read them.

/// The width of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Type {
    /// One bit: a predicate.
    P,
    /// 16 bits; the upper half of its register is unspecified.
    B16,
    B32,
    B64,
}

impl Type {
    /// Bits of a value of this width.
    pub fn bits(self) -> u32 {
        match self {
            Type::P => 1,
            Type::B16 => 16,
            Type::B32 => 32,
            Type::B64 => 64,
        }
    }

    /// The bits a value of this width can have.
    pub fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }
}

/// How an operation reads or makes bits: PTX's fundamental types.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Scalar {
    U8,
    S8,
    U16,
    S16,
    U32,
    S32,
    U64,
    S64,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    Tf32,
    E4m3x2,
    E5m2x2,
    F32,
    F64,
}

impl Scalar {
    /// Bits in memory or in a packed word.
    pub fn bits(self) -> u32 {
        use Scalar::*;
        match self {
            U8 | S8 => 8,
            U16 | S16 | F16 | Bf16 | E4m3x2 | E5m2x2 => 16,
            U32 | S32 | F16x2 | Bf16x2 | Tf32 | F32 => 32,
            U64 | S64 | F64 => 64,
        }
    }

    pub fn is_signed(self) -> bool {
        matches!(self, Scalar::S8 | Scalar::S16 | Scalar::S32 | Scalar::S64)
    }

    pub fn is_int(self) -> bool {
        use Scalar::*;
        matches!(self, U8 | S8 | U16 | S16 | U32 | S32 | U64 | S64)
    }

    pub fn is_float(self) -> bool {
        !self.is_int()
    }

    /// The width of the value that holds one (8-bit ones are held as 16 bits).
    pub fn ty(self) -> Type {
        match self.bits() {
            64 => Type::B64,
            32 => Type::B32,
            _ => Type::B16,
        }
    }

    /// The name as PTX writes it, without the dot.
    pub fn name(self) -> &'static str {
        use Scalar::*;
        match self {
            U8 => "u8",
            S8 => "s8",
            U16 => "u16",
            S16 => "s16",
            U32 => "u32",
            S32 => "s32",
            U64 => "u64",
            S64 => "s64",
            F16 => "f16",
            F16x2 => "f16x2",
            Bf16 => "bf16",
            Bf16x2 => "bf16x2",
            Tf32 => "tf32",
            E4m3x2 => "e4m3x2",
            E5m2x2 => "e5m2x2",
            F32 => "f32",
            F64 => "f64",
        }
    }
}
