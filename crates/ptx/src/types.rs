//! State spaces and scalar types, of declarations and of instructions.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SharedWindow {
    Cta,
    Cluster,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateSpace {
    Reg,
    Sreg,
    /// With the bank of `.const[n]`.
    Const(Option<u8>),
    Global,
    Local,
    Param,
    /// `.shared` alone means the own CTA's window.
    Shared(Option<SharedWindow>),
    Tex,
}

impl StateSpace {
    pub fn from_word(word: &str) -> Option<StateSpace> {
        Some(match word {
            "reg" => StateSpace::Reg,
            "sreg" => StateSpace::Sreg,
            "const" => StateSpace::Const(None),
            "global" => StateSpace::Global,
            "local" => StateSpace::Local,
            "param" => StateSpace::Param,
            "shared" => StateSpace::Shared(None),
            "shared::cta" => StateSpace::Shared(Some(SharedWindow::Cta)),
            "shared::cluster" => StateSpace::Shared(Some(SharedWindow::Cluster)),
            "tex" => StateSpace::Tex,
            _ => return None,
        })
    }

    /// The word without bank and dot.
    pub fn word(self) -> &'static str {
        match self {
            StateSpace::Reg => "reg",
            StateSpace::Sreg => "sreg",
            StateSpace::Const(_) => "const",
            StateSpace::Global => "global",
            StateSpace::Local => "local",
            StateSpace::Param => "param",
            StateSpace::Shared(None) => "shared",
            StateSpace::Shared(Some(SharedWindow::Cta)) => "shared::cta",
            StateSpace::Shared(Some(SharedWindow::Cluster)) => "shared::cluster",
            StateSpace::Tex => "tex",
        }
    }
}

/// What kind of value a type holds, for the rules on which register fits which instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TypeClass {
    /// Fits everything of the same size.
    Bits,
    Signed,
    Unsigned,
    Float,
    Pred,
    /// Textures, samplers, surfaces.
    Opaque,
}

macro_rules! scalar_types {
    ($($variant:ident $word:literal $bits:literal $class:ident,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ScalarType { $($variant,)* }

        impl ScalarType {
            pub const ALL: &[ScalarType] = &[$(ScalarType::$variant,)*];

            pub fn from_word(word: &str) -> Option<ScalarType> {
                match word { $($word => Some(ScalarType::$variant),)* _ => None }
            }

            /// The type as written, without its dot.
            pub fn word(self) -> &'static str {
                match self { $(ScalarType::$variant => $word,)* }
            }

            /// Size in bits; 1 for predicates, 0 where a size makes no sense.
            pub fn bits(self) -> u32 {
                match self { $(ScalarType::$variant => $bits,)* }
            }

            pub fn class(self) -> TypeClass {
                match self { $(ScalarType::$variant => TypeClass::$class,)* }
            }
        }
    };
}

scalar_types! {
    Pred "pred" 1 Pred,
    B1 "b1" 1 Bits,
    B8 "b8" 8 Bits,
    B16 "b16" 16 Bits,
    B32 "b32" 32 Bits,
    B64 "b64" 64 Bits,
    B128 "b128" 128 Bits,
    U2 "u2" 2 Unsigned,
    U4 "u4" 4 Unsigned,
    U8 "u8" 8 Unsigned,
    U16 "u16" 16 Unsigned,
    U32 "u32" 32 Unsigned,
    U64 "u64" 64 Unsigned,
    S2 "s2" 2 Signed,
    S4 "s4" 4 Signed,
    S8 "s8" 8 Signed,
    S16 "s16" 16 Signed,
    S32 "s32" 32 Signed,
    S64 "s64" 64 Signed,
    U16x2 "u16x2" 32 Unsigned,
    S16x2 "s16x2" 32 Signed,
    F16 "f16" 16 Float,
    F16x2 "f16x2" 32 Float,
    Bf16 "bf16" 16 Float,
    Bf16x2 "bf16x2" 32 Float,
    Tf32 "tf32" 32 Float,
    F32 "f32" 32 Float,
    F64 "f64" 64 Float,
    E4m3 "e4m3" 8 Float,
    E5m2 "e5m2" 8 Float,
    E4m3x2 "e4m3x2" 16 Float,
    E5m2x2 "e5m2x2" 16 Float,
    Texref "texref" 0 Opaque,
    Samplerref "samplerref" 0 Opaque,
    Surfref "surfref" 0 Opaque,
}

impl ScalarType {
    /// May a variable or register have this type?
    pub fn is_declarable(self) -> bool {
        use ScalarType::*;
        !matches!(self, B1 | U2 | U4 | S2 | S4 | U16x2 | S16x2 | Tf32 | E4m3 | E5m2 | E4m3x2 | E5m2x2)
    }

    /// Size in bytes in memory.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }
}
