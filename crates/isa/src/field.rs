//! Modifier fields: what stands behind the dot of a mnemonic, each with its width in the word and its spelling.
//!
//! An instruction's table row lists its fields; they lie in the word's modifier bits in that order. A field is either a
//! choice of names ("" for the default, which is not written) or a number written as an operand.

/// A field's place in the catalogue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FieldInfo {
    pub name: &'static str,
    pub bits: u32,
    /// Spelling by value; empty for numbers.
    pub names: &'static [&'static str],
    pub doc: &'static str,
}

/// A typed field: how `Inst::get` and `Inst::with` know the place and the type.
pub trait FieldValue: Copy {
    const FIELD: Field;
    fn from_bits(bits: u32) -> Self;
    fn to_bits(self) -> u32;
}

macro_rules! fields {
    (
        choices { $($cname:ident $cbits:literal $cdoc:literal { $($variant:ident $text:literal),* $(,)? })* }
        flags { $($fname:ident $ftext:literal $fdoc:literal;)* }
        numbers { $($nname:ident $nbits:literal $ndoc:literal;)* }
    ) => {
        /// Every modifier field.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Field { $($cname,)* $($fname,)* $($nname,)* }

        impl Field {
            pub const ALL: &[Field] = &[$(Field::$cname,)* $(Field::$fname,)* $(Field::$nname,)*];

            pub const fn info(self) -> FieldInfo {
                match self {
                    $(Field::$cname => FieldInfo { name: stringify!($cname), bits: $cbits, names: &[$($text),*], doc: $cdoc },)*
                    $(Field::$fname => FieldInfo { name: stringify!($fname), bits: 1, names: &["", $ftext], doc: $fdoc },)*
                    $(Field::$nname => FieldInfo { name: stringify!($nname), bits: $nbits, names: &[], doc: $ndoc },)*
                }
            }
        }

        $(
            #[doc = $cdoc]
            #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
            #[repr(u8)]
            pub enum $cname { $($variant),* }

            impl FieldValue for $cname {
                const FIELD: Field = Field::$cname;
                fn from_bits(bits: u32) -> Self {
                    const ALL: &[$cname] = &[$($cname::$variant),*];
                    // Values past the last name cannot be decoded (`encode` rejects them).
                    ALL[(bits as usize).min(ALL.len() - 1)]
                }
                fn to_bits(self) -> u32 {
                    self as u32
                }
            }
        )*
    };
}

fields! {
    choices {
        Rnd 2 "rounding" { Rn "", Rz "RZ", Rm "RM", Rp "RP" }
        Cmp 3 "integer comparison" { Eq "EQ", Ne "NE", Lt "LT", Le "LE", Gt "GT", Ge "GE" }
        FCmp 4 "float comparison; U: true with a NaN" {
            Eq "EQ", Ne "NE", Lt "LT", Le "LE", Gt "GT", Ge "GE", Equ "EQU", Neu "NEU", Ltu "LTU", Leu "LEU", Gtu "GTU",
            Geu "GEU", Num "NUM", Nan "NAN"
        }
        Bool 2 "how the comparison and the predicate source combine" { And "AND", Or "OR", Xor "XOR" }
        Sign 1 "how integers are read" { U32 "U32", S32 "S32" }
        Part 1 "which half of a product or shift" { Lo "", Hi "HI" }
        Dir 1 "shift direction" { L "L", R "R" }
        ShiftType 2 "what is shifted: 64 means the pair (C:A), counts to 63" { U32 "U32", S32 "S32", U64 "U64", S64 "S64" }
        PrmtMode 3 "byte selection" { Index "", F4e "F4E", B4e "B4E", Rc8 "RC8", Ecl "ECL", Ecr "ECR", Rc16 "RC16" }
        MinMax 1 "lower or higher" { Min "MIN", Max "MAX" }
        Mufu 4 "special function" {
            Rcp "RCP", Rsq "RSQ", Sqrt "SQRT", Sin "SIN", Cos "COS", Lg2 "LG2", Ex2 "EX2", Tanh "TANH", Rcp64h "RCP64H",
            Rsq64h "RSQ64H", Ex2F16 "EX2.F16", TanhF16 "TANH.F16", Ex2Bf16 "EX2.BF16", TanhBf16 "TANH.BF16"
        }
        OutScale 3 "the product times a power of two, rounded once" {
            None "", M2 "M2", M4 "M4", M8 "M8", D2 "D2", D4 "D4", D8 "D8"
        }
        HalfFmt 1 "packed halves" { F16 "", Bf16 "BF16_V2" }
        TestProp 3 "property of a float" {
            Finite "FINITE", Infinite "INFINITE", Number "NUMBER", NotANumber "NOTANUMBER", Normal "NORMAL",
            Subnormal "SUBNORMAL"
        }
        To 5 "destination type" {
            U8 "U8", S8 "S8", U16 "U16", S16 "S16", U32 "U32", S32 "S32", U64 "U64", S64 "S64", F16 "F16", F16x2 "F16X2",
            Bf16 "BF16", Bf16x2 "BF16X2", Tf32 "TF32", E4m3x2 "E4M3X2", E5m2x2 "E5M2X2", F32 "F32", F64 "F64"
        }
        From 5 "source type" {
            U8 "U8", S8 "S8", U16 "U16", S16 "S16", U32 "U32", S32 "S32", U64 "U64", S64 "S64", F16 "F16", F16x2 "F16X2",
            Bf16 "BF16", Bf16x2 "BF16X2", Tf32 "TF32", E4m3x2 "E4M3X2", E5m2x2 "E5M2X2", F32 "F32", F64 "F64"
        }
        CvtRnd 4 "rounding of a conversion; ...I: to an integral value" {
            None "", Rn "RN", Rz "RZ", Rm "RM", Rp "RP", Rna "RNA", Rni "RNI", Rzi "RZI", Rmi "RMI", Rpi "RPI"
        }
        Width 3 "what is moved; narrow loads widen by their sign" {
            B32 "", U8 "U8", S8 "S8", U16 "U16", S16 "S16", B64 "64", B128 "128"
        }
        Cache 3 "cache operator" { Default "", Cg "CG", Cs "CS", Lu "LU", Cv "CV", Wt "WT", Nc "CONSTANT" }
        Scope 2 "who must see it in order" { Cta "", Cluster "CLUSTER", Gpu "GPU", Sys "SYS" }
        Order 3 "memory order" {
            Weak "", Volatile "VOLATILE", Relaxed "STRONG", Acquire "ACQUIRE", Release "RELEASE", AcqRel "ACQ_REL", Sc "SC"
        }
        AtomOrder 2 "memory order of a read-modify-write" { Relaxed "", Acquire "ACQUIRE", Release "RELEASE", AcqRel "ACQ_REL" }
        AtomOp 4 "read-modify-write" {
            Add "ADD", Inc "INC", Dec "DEC", Min "MIN", Max "MAX", And "AND", Or "OR", Xor "XOR", Exch "EXCH", Cas "CAS", PopcInc "POPC.INC"
        }
        AtomType 4 "type of the datum" {
            U32 "", S32 "S32", U64 "64", S64 "S64", F32 "F32", F64 "F64", F16 "F16", Bf16 "BF16", F16x2 "F16X2",
            Bf16x2 "BF16X2", B128 "128", U16 "U16"
        }
        ShflMode 2 "which lane is read" { Up "UP", Down "DOWN", Bfly "BFLY", Idx "IDX" }
        VoteMode 2 "question put to the lanes" { All "ALL", Any "ANY", Uni "EQ", Ballot "BALLOT" }
        MatchMode 1 "lanes with this value, or all equal" { Any "ANY", All "ALL" }
        ReduxOp 3 "reduction over lanes" {
            Add "SUM", MinS "MIN.S32", MinU "MIN", MaxS "MAX.S32", MaxU "MAX", And "AND", Or "OR", Xor "XOR"
        }
        BarMode 3 "what a CTA barrier does" { Sync "SYNC", Arrive "ARV", RedPopc "RED.POPC", RedAnd "RED.AND", RedOr "RED.OR" }
        SpaceKind 2 "a window of the generic address space" { Global "G", Shared "S", Local "L", Const "C" }
        HintKind 3 "cache control" {
            PrefetchL1 "PF1", PrefetchL2 "PF2", PrefetchUniform "PFU", ApplyPriority "PRIO", Discard "DISCARD"
        }
        SysFn 4 "system function" {
            Vprintf "VPRINTF", Malloc "MALLOC", Free "FREE", AssertFail "ASSERTFAIL", ParameterBuffer "PARAMBUF",
            LaunchDevice "LAUNCH", WaitChildren "WAITCHILDREN", QueuePush "QUEUEPUSH"
        }
        BptMode 1 "why the thread stops" { Trap "TRAP", Brk "INT" }
        TexDim 3 "shape of the texture" {
            D1 "1D", D2 "2D", D3 "3D", Cube "CUBE", Array1d "ARRAY_1D", Array2d "ARRAY_2D", ArrayCube "ARRAY_CUBE"
        }
        TexLod 2 "where the level of detail comes from" { Auto "", Zero "LZ", Level "LL", Grad "GRAD" }
    }
    flags {
        Ftz "FTZ" "denormal inputs and results become zero";
        Sat "SAT" "clamp to [0, 1], or to the destination's range";
        Relu "RELU" "negative results become zero";
        SatFinite "SATF" "results beyond the largest finite value become it";
        X "X" "add the carry; a negated operand is complemented";
        Ex "EX" "high word of a 64-bit comparison; the second predicate source has the low word's answer";
        Hi "HI" "the high word of the shifted pair";
        Wrap "W" "the count wraps instead of clamping";
        Sh "SH" "the shift that brings the bit to the top";
        Nan "NAN" "a NaN operand wins";
        XorSign "XORSIGN" "magnitudes compared, signs multiplied";
        ASigned "AS" "A is signed";
        BSigned "BS" "B is signed";
        TwoHi "2H" "dp2a: the upper two bytes of B";
        Two "2A" "dp2a: two 16-bit elements of A";
        SubFlag "SUB" "subtract";
        E64 "E" "the address is 64 bits";
        All "COLL" "every lane of the warp is a member; else E has the member mask";
        W64 "64" "a 64-bit value";
        Uniform "U" "the program promises that a warp does not diverge here";
        Soft "SOFT" "lanes that wait here go on alone when the others loop for long";
        WithCount "CNT" "C has the number of threads";
        Aligned "ALIGNED" "all threads of the warp are here together";
        WithC "WC" "C supplies the upper half";
        TexStep "TSTEP" "step the warp's TEX counter after issue";
        Mad "IMAD" "in the pipe for multiplications and additions";
        PhaseStep "PSTEP" "step the warp's PHASE counter and clear TEX after issue";
    }
    numbers {
        Lut 8 "truth table of three inputs";
        Shift 5 "shift count";
        Sr 6 "special register";
        Bar4 4 "convergence-barrier register";
        Bank 3 "constant bank";
        Ur 7 "uniform register added to the address; 0 for none, else its number plus one";
        TexMask 4 "components written";
    }
}
