//! The instruction table. One row is everything there is to know about an instruction.
//!
//! Roles say where an operand sits and how wide it is (see [`Role`]); the text form writes them in the row's order.

use crate::field::Field;

/// An operand's place and width.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// Destination register; `2`: a pair; `W`: by the `Width` field; `T`: by the `AtomType` field; `To`: by the `To` field;
    /// `M`: as many as `TexMask` has bits; `U`: a uniform register.
    D,
    D2,
    DW,
    DT,
    DTo,
    DM,
    U,
    U2,
    /// Predicate destinations.
    Pd0,
    Pd1,
    /// Sources: `A`, `B`, `C` may be a register, and one of them an immediate, a constant or a uniform register.
    /// `E` is a register. `2` and so on as above.
    A,
    B,
    C,
    E,
    A2,
    B2,
    C2,
    E2,
    /// Stored data, in C.
    CW,
    CT,
    ET,
    AFrom,
    /// A memory address: register A (a pair with `.E`), a uniform register and the immediate in B.
    Addr,
    /// A constant address: register A and the immediate in B, in the bank of the `Bank` field.
    CAddr,
    /// Predicate sources.
    Ps0,
    Ps1,
    Ps2,
    /// A place in the code, in B.
    Target,
    /// A number in a field.
    Num(Field),
}

/// The pipe that runs an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unit {
    /// Integer, logic, comparison, min/max, moves.
    Alu,
    /// Single-precision multiply-add.
    Fma,
    /// Integer multiply-add.
    Imad,
    /// Packed half precision.
    Half,
    /// Double precision.
    Fp64,
    /// Special functions, conversions, bit counts.
    Xu,
    /// Uniform datapath.
    Uniform,
    /// Loads, stores, atomics, shuffles.
    Lsu,
    /// Constant loads by register.
    Const,
    Tex,
    /// Branches and convergence.
    Branch,
    /// Barriers, special registers, system calls.
    Misc,
}

/// How the scoreboard learns that a result is there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Latency {
    /// A number of cycles known at issue.
    Fixed,
    /// The unit reports.
    Variable,
}

/// What an instruction does beyond writing registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Effects(pub u16);

impl Effects {
    pub const NONE: Effects = Effects(0);
    pub const READS: Effects = Effects(1);
    pub const WRITES: Effects = Effects(2);
    /// May change the program counter.
    pub const JUMPS: Effects = Effects(4);
    /// The thread may end here.
    pub const ENDS: Effects = Effects(8);
    /// Waits for other lanes of the warp.
    pub const LANES: Effects = Effects(16);
    /// Waits for other warps of the CTA.
    pub const BARRIER: Effects = Effects(32);
    /// Orders memory.
    pub const FENCE: Effects = Effects(64);
    /// Two executions may give two results.
    pub const VOLATILE: Effects = Effects(128);

    pub const fn or(self, other: Effects) -> Effects {
        Effects(self.0 | other.0)
    }

    pub fn has(self, other: Effects) -> bool {
        self.0 & other.0 != 0
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub op: Op,
    pub mnemonic: &'static str,
    pub roles: &'static [Role],
    pub fields: &'static [Field],
    pub unit: Unit,
    pub latency: Latency,
    pub effects: Effects,
    pub doc: &'static str,
}

macro_rules! instructions {
    ($($op:ident $mnemonic:literal [$($role:ident $(($num:ident))?),*] [$($field:ident),*] $unit:ident $latency:ident
       [$($effect:ident),*] $doc:literal;)*) => {
        /// An operation of the machine.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Op { $(#[doc = $doc] $op,)* }

        /// All rows, in the order of [`Op`].
        pub static TABLE: &[Row] = &[$(Row {
            op: Op::$op,
            mnemonic: $mnemonic,
            roles: &[$(Role::$role $((Field::$num))?),*],
            fields: &[$(Field::$field),*],
            unit: Unit::$unit,
            latency: Latency::$latency,
            effects: Effects::NONE $(.or(Effects::$effect))*,
            doc: $doc,
        },)*];
    };
}

impl Op {
    pub fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    pub fn from_bits(bits: u32) -> Option<Op> {
        TABLE.get(bits as usize).map(|r| r.op)
    }
}

instructions! {
    // --- moves and selection --------------------------------------------------------------------------------------
    Nop "NOP" [] [] Misc Fixed [] "nothing";
    Mov "MOV" [D, B] [Mad] Alu Fixed [] "D = B";
    Sel "SEL" [D, A, B, Ps0] [] Alu Fixed [] "D = Ps0 ? A : B";
    Prmt "PRMT" [D, A, B, C] [PrmtMode] Alu Fixed [] "bytes of C:A picked by B";
    S2r "S2R" [D, Num(Sr)] [Sr] Misc Variable [VOLATILE] "D = special register";
    Cs2r "CS2R" [D2, Num(Sr)] [Sr] Misc Fixed [VOLATILE] "pair = special register and the next";

    // --- integers -------------------------------------------------------------------------------------------------
    Iadd3 "IADD3" [D, Pd0, A, B, C, Ps0] [X, Mad] Alu Fixed []
        "D = A + B + C; Pd0 = carry. A negated operand is ~x + 1, with X ~x, and Ps0 is the carry in";
    Iadds "IADDS" [D, A, B] [SubFlag] Alu Fixed [] "signed A + B or A - B, saturated";
    Imad "IMAD" [D, A, B, C] [] Imad Fixed [] "D = low word of A * B, plus C";
    ImadHi "IMAD.HI" [D, A, B, C] [Sign] Imad Fixed [] "D = high word of A * B, plus C";
    ImadWide "IMAD.WIDE" [D2, A, B, C2] [Sign] Imad Fixed [] "pair = A * B + pair C";
    Lea "LEA" [D, Pd0, A, B, C, Ps0, Num(Shift)] [X, Hi, Shift] Alu Fixed []
        "D = (A << Shift) + B, with Hi ((C:A << Shift) >> 32) + B; X adds Ps0; Pd0 = carry";
    Iabs "IABS" [D, A] [] Alu Fixed [] "absolute value";
    Iabsdiff "VABSDIFF" [D, A, B, C] [Sign] Alu Fixed [] "|A - B| + C";
    Imnmx "IMNMX" [D, A, B] [MinMax, Sign] Alu Fixed [] "lower or higher";
    Isetp "ISETP" [Pd0, Pd1, A, B, Ps0, Ps1] [Cmp, Sign, Bool, Ex] Alu Fixed []
        "Pd0 = (A cmp B) bool Ps0, Pd1 = !(A cmp B) bool Ps0; Ex: A, B equal lets Ps1 decide";
    Lop3 "LOP3" [D, A, B, C, Num(Lut)] [Lut] Alu Fixed [] "bitwise function of three inputs";
    Plop3 "PLOP3" [Pd0, Ps0, Ps1, Ps2, Num(Lut)] [Lut] Alu Fixed [] "function of three predicates";
    Shf "SHF" [D, A, B, C] [Dir, ShiftType, Part, Wrap, Mad] Alu Fixed []
        "funnel shift of C:A by B, low or high word; 32-bit types: counts clamp to 32 or wrap; 64-bit types: clamp to 64";
    Popc "POPC" [D, A] [] Xu Variable [] "bits set";
    Flo "FLO" [D, A] [Sign, Sh] Xu Variable [] "position of the highest bit that differs from the sign, -1 for none";
    Brev "BREV" [D, A] [] Xu Variable [] "bits reversed";
    Bmsk "BMSK" [D, A, B] [Wrap] Alu Fixed [] "B ones from bit A on";
    Sgxt "SGXT" [D, A, B] [Sign, Wrap] Alu Fixed [] "low B bits of A, extended";
    Bfe "BFE" [D, A, B, C] [Sign] Alu Fixed [] "C bits of A from bit B on";
    Bfi "BFI" [D, A, B, C, E] [] Alu Fixed [] "B with the low E bits of A at position C";
    Bfe64 "BFE.64" [D2, A2, B, C] [Sign] Alu Fixed [] "C bits of pair A from bit B on";
    Bfi64 "BFI.64" [D2, A2, B2, C, E] [] Alu Fixed [] "pair B with the low E bits of pair A at position C";
    Fns "FNS" [D, A, B, C] [] Xu Variable [] "the C-th set bit of A from bit B on, -1 for none";
    Idp "IDP" [D, A, B, C] [ASigned, BSigned, Two, TwoHi] Imad Fixed [] "dot product of bytes (or halves and bytes), plus C";
    Viadd2 "VIADD.16X2" [D, A, B] [] Alu Fixed [] "packed 16-bit sums";
    Vimnmx2 "VIMNMX.16X2" [D, A, B] [MinMax, Sign] Alu Fixed [] "packed 16-bit minima or maxima";
    Video "VIDEO" [D, A, C, E, B] [] Alu Fixed [] "video instruction on A, C, E, described by the immediate B";

    // --- single precision -----------------------------------------------------------------------------------------
    Fadd "FADD" [D, A, B] [Rnd, Ftz, Sat] Fma Fixed [] "D = A + B";
    Fmul "FMUL" [D, A, B] [Rnd, Ftz, Sat, OutScale] Fma Fixed [] "D = A * B";
    Ffma "FFMA" [D, A, B, C] [Rnd, Ftz, Sat] Fma Fixed [] "D = A * B + C, rounded once";
    Fsetp "FSETP" [Pd0, Pd1, A, B, Ps0] [FCmp, Bool, Ftz] Alu Fixed [] "Pd0 = (A cmp B) bool Ps0, Pd1 = !(A cmp B) bool Ps0";
    Fmnmx "FMNMX" [D, A, B] [MinMax, Ftz, Nan, XorSign] Alu Fixed [] "lower or higher; a NaN loses unless NAN";
    Mufu "MUFU" [D, A] [Mufu] Xu Variable [] "special function";
    Fchk "FCHK" [Pd0, A, B] [] Xu Variable [] "the exponents of A / B want a slow path";
    Ftestp "FTESTP" [Pd0, A] [TestProp] Alu Fixed [] "property of a float";

    // --- double precision -----------------------------------------------------------------------------------------
    Dadd "DADD" [D2, A2, B2] [Rnd] Fp64 Variable [] "pair A + pair B";
    Dmul "DMUL" [D2, A2, B2] [Rnd] Fp64 Variable [] "pair A * pair B";
    Dfma "DFMA" [D2, A2, B2, C2] [Rnd] Fp64 Variable [] "pair A * pair B + pair C, rounded once";
    Dsetp "DSETP" [Pd0, Pd1, A2, B2, Ps0] [FCmp, Bool] Fp64 Variable [] "comparison as FSETP";
    Dmnmx "DMNMX" [D2, A2, B2] [MinMax] Fp64 Variable [] "lower or higher; a NaN loses";
    Dtestp "DTESTP" [Pd0, A2] [TestProp] Fp64 Variable [] "property of a double";

    // --- packed halves --------------------------------------------------------------------------------------------
    Hadd2 "HADD2" [D, A, B] [HalfFmt, Ftz, Sat] Half Fixed [] "packed sums";
    Hmul2 "HMUL2" [D, A, B] [HalfFmt, Ftz, Sat] Half Fixed [] "packed products";
    Hfma2 "HFMA2" [D, A, B, C] [HalfFmt, Ftz, Sat, Relu] Half Fixed [] "packed A * B + C, rounded once";
    Hsetp2 "HSETP2" [Pd0, Pd1, A, B] [HalfFmt, FCmp, Ftz] Half Fixed [] "comparison of the low (Pd0) and the high (Pd1) halves";
    Hmnmx2 "HMNMX2" [D, A, B] [HalfFmt, MinMax, Ftz, Nan, XorSign] Half Fixed [] "packed minima or maxima";

    // --- conversion -----------------------------------------------------------------------------------------------
    I2f "I2F" [DTo, AFrom] [To, From, CvtRnd, Ftz, Sat] Xu Variable [] "integer to float";
    F2i "F2I" [DTo, AFrom] [To, From, CvtRnd, Ftz, Sat] Xu Variable [] "float to integer";
    F2f "F2F" [DTo, AFrom] [To, From, CvtRnd, Ftz, Sat, Relu, SatFinite] Xu Variable [] "float to float, packed ones too";
    I2i "I2I" [DTo, AFrom] [To, From, Sat] Alu Fixed [] "integer to integer";
    F2fp "F2FP" [D, A, B] [To, CvtRnd, Ftz, Relu, SatFinite] Half Fixed [] "two f32 packed: A above B";
    I2ip "I2IP" [D, A, B, C] [To, WithC] Alu Fixed [] "two s32 saturated and packed: A above B; bytes: below the low half of C";

    // --- memory ---------------------------------------------------------------------------------------------------
    Ldg "LDG" [DW, Addr] [Width, Cache, Scope, Order, E64, Ur, TexStep, PhaseStep] Lsu Variable [READS] "load from global memory";
    Stg "STG" [Addr, CW] [Width, Cache, Scope, Order, E64, Ur] Lsu Variable [WRITES] "store to global memory";
    Lds "LDS" [DW, Addr] [Width, Cache, Scope, Order, E64, Ur] Lsu Variable [READS] "load from shared memory";
    Sts "STS" [Addr, CW] [Width, Cache, Scope, Order, E64, Ur] Lsu Variable [WRITES] "store to shared memory";
    Ldl "LDL" [DW, Addr] [Width, Cache, Scope, Order, E64, Ur] Lsu Variable [READS] "load from local memory";
    Stl "STL" [Addr, CW] [Width, Cache, Scope, Order, E64, Ur] Lsu Variable [WRITES] "store to local memory";
    Ld "LD" [DW, Addr] [Width, Cache, Scope, Order, E64, Ur] Lsu Variable [READS] "load from a generic address";
    St "ST" [Addr, CW] [Width, Cache, Scope, Order, E64, Ur] Lsu Variable [WRITES] "store to a generic address";
    Ldc "LDC" [DW, CAddr] [Width, Bank] Const Variable [] "load from a constant bank";
    Atomg "ATOMG" [DT, Addr, CT, ET] [AtomOp, AtomType, Scope, AtomOrder, E64, Ur] Lsu Variable [READS, WRITES]
        "read-modify-write of global memory; CAS compares with C and writes E";
    Atoms "ATOMS" [DT, Addr, CT, ET] [AtomOp, AtomType, Scope, AtomOrder, E64, Ur] Lsu Variable [READS, WRITES]
        "read-modify-write of shared memory";
    Atom "ATOM" [DT, Addr, CT, ET] [AtomOp, AtomType, Scope, AtomOrder, E64, Ur] Lsu Variable [READS, WRITES]
        "read-modify-write of a generic address";
    Redg "REDG" [Addr, CT] [AtomOp, AtomType, Scope, AtomOrder, E64, Ur] Lsu Variable [WRITES] "reduction into global memory";
    Red "RED" [Addr, CT] [AtomOp, AtomType, Scope, AtomOrder, E64, Ur] Lsu Variable [WRITES] "reduction into a generic address";
    Membar "MEMBAR" [] [Order, Scope] Lsu Variable [FENCE] "memory barrier";
    Errbar "ERRBAR" [] [] Lsu Variable [FENCE] "behind a memory barrier: errors of earlier accesses are reported";
    Cgaerrbar "CGAERRBAR" [] [] Lsu Variable [FENCE] "the same for accesses to the cluster";
    CctlIvall "CCTL.IVALL" [] [] Lsu Variable [FENCE] "forget what the first-level cache holds";
    Cctl "CCTL" [Addr] [HintKind, SpaceKind, E64, Ur] Lsu Variable [] "prefetch and cache hints";
    Qspc "QSPC" [Pd0, A2] [SpaceKind] Alu Fixed [] "does the generic address lie in the window";

    // --- lanes of a warp ------------------------------------------------------------------------------------------
    Shfl "SHFL" [D, Pd0, A, B, C, E] [ShflMode, All] Lsu Variable [LANES] "A of another lane; Pd0: it was in range";
    Vote "VOTE" [D, Pd0, Ps0, E] [VoteMode, All] Alu Fixed [LANES] "predicate of all members; ballot in D";
    Match "MATCH" [D, Pd0, A, E] [MatchMode, All] Xu Variable [LANES] "lanes that have this value";
    Match64 "MATCH.64" [D, Pd0, A2, E] [MatchMode, All] Xu Variable [LANES] "lanes that have this 64-bit value";
    Redux "REDUX" [D, A, E] [ReduxOp, All] Xu Variable [LANES] "reduction over the members";
    Elect "ELECT" [D, Pd0, E] [All] Alu Fixed [LANES] "one member is the leader";
    Warpsync "WARPSYNC" [E] [All] Branch Variable [LANES] "wait for the members";
    Actmask "ACTMASK" [D] [] Alu Fixed [VOLATILE] "lanes that run this together";

    // --- control --------------------------------------------------------------------------------------------------
    Bra "BRA" [Target] [Uniform] Branch Variable [JUMPS] "jump";
    Brx "BRX" [A] [Uniform] Branch Variable [JUMPS] "jump to the place in A";
    Call "CALL" [D, Target] [] Branch Variable [JUMPS] "D = the place after this; jump";
    Callx "CALLX" [D, A] [] Branch Variable [JUMPS] "D = the place after this; jump to the place in A";
    Ret "RET" [A] [] Branch Variable [JUMPS] "jump back to the place in A";
    Exit "EXIT" [] [] Branch Variable [ENDS] "the thread ends";
    Bssy "BSSY" [Num(Bar4), Target] [Bar4, Soft] Branch Fixed [] "these lanes will meet again at the target, by BSYNC";
    Bsync "BSYNC" [Num(Bar4)] [Bar4] Branch Variable [LANES] "wait for the lanes of the barrier register";
    BmovR "BMOV.R" [D, Num(Bar4)] [Bar4] Branch Fixed [] "D = barrier register";
    BmovB "BMOV.B" [Num(Bar4), A] [Bar4] Branch Fixed [] "barrier register = A";
    Bar "BAR" [D, Pd0, A, C, Ps0] [BarMode, WithCount, Aligned] Misc Variable [BARRIER]
        "CTA barrier number A, for C threads with CNT; reductions of Ps0 to D or Pd0";
    Nanosleep "NANOSLEEP" [B] [] Misc Variable [] "sleep about B nanoseconds";
    Yield "YIELD" [] [] Branch Fixed [] "let other lanes of the warp run";
    Bpt "BPT" [] [BptMode] Misc Variable [ENDS] "trap or breakpoint";
    Pmtrig "PMTRIG" [B] [] Misc Fixed [] "performance-monitor event";
    Syscall "SYSCALL" [D2, A2, B2, C2, E2] [SysFn] Misc Variable [READS, WRITES] "call a system function";

    // --- uniform datapath: one value a warp -----------------------------------------------------------------------
    R2ur "R2UR" [U, A] [] Uniform Variable [] "uniform = A of the lowest lane that runs";
    S2ur "S2UR" [U, Num(Sr)] [Sr] Uniform Variable [VOLATILE] "uniform = special register of the lowest lane that runs";
    Umov "UMOV" [U, B] [] Uniform Fixed [] "uniform move";
    Uldc "ULDC" [U, CAddr] [Bank] Uniform Fixed [] "uniform load from a constant bank";
    Uldc64 "ULDC.64" [U2, CAddr] [Bank] Uniform Fixed [] "uniform load of a pair from a constant bank";
    Uiadd3 "UIADD3" [U, A, B, C] [] Uniform Fixed [] "uniform A + B + C";
    Uimad "UIMAD" [U, A, B, C] [] Uniform Fixed [] "uniform A * B + C";
    Ulop3 "ULOP3" [U, A, B, C, Num(Lut)] [Lut] Uniform Fixed [] "uniform bitwise function";
    Ushf "USHF" [U, A, B, C] [Dir, ShiftType, Part, Wrap] Uniform Fixed [] "uniform funnel shift";
    Ulea "ULEA" [U, A, B, Num(Shift)] [Shift] Uniform Fixed [] "uniform (A << Shift) + B";

    // --- texture --------------------------------------------------------------------------------------------------
    Tex "TEX" [DM, A, B, C, Num(TexMask)] [TexDim, TexLod, TexMask, TexStep, PhaseStep] Tex Variable [READS]
        "filtered sample: coordinates from register A on, texture and sampler in B, level in C";
    Tld4 "TLD4" [DM, A, B, C, Num(TexMask)] [TexDim, TexMask, TexStep, PhaseStep] Tex Variable [READS] "one component of the four nearest texels";
    Txq "TXQ" [DM, A, B, Num(TexMask)] [TexMask] Tex Variable [READS] "a property of a texture";
}
