//! The operations, what they take and what they give.
//!
//! Widths of arguments follow from the operation and the result type unless a comment says otherwise. `a`, `b`, `c`
//! are the arguments in order.

use crate::entity::{FuncId, GlobalId, SlotId};
use crate::types::Scalar;

/// Rounding of a floating-point result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Round {
    Rn,
    Rz,
    Rm,
    Rp,
}

/// Integer comparison; signedness stands beside it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IntCmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// Floating-point comparison; `...u` is also true when an operand is NaN.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FloatCmp {
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
    Num,
    Nan,
}

/// Modifiers of `add`, `sub`, `mul`, `fma` on floats.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Float {
    /// F16, F16x2, Bf16, Bf16x2, F32 or F64.
    pub ty: Scalar,
    pub round: Round,
    pub ftz: bool,
    pub sat: bool,
    /// Negative results become +0, NaN the canonical NaN (half types, fma only).
    pub relu: bool,
    /// The operation carried no rounding modifier, so it may be fused.
    pub contract: bool,
}

impl Float {
    /// Round to nearest, nothing else.
    pub fn rn(ty: Scalar) -> Self {
        Float { ty, round: Round::Rn, ftz: false, sat: false, relu: false, contract: false }
    }
}

/// The approximate functions as PTX has them, scaling of denormals included.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ApproxFn {
    Rcp,
    Rsqrt,
    Sqrt,
    Sin,
    Cos,
    Lg2,
    Ex2,
    Tanh,
    /// `div.approx`: a / b.
    Div,
    /// `div.full`: a / b.
    DivFull,
}

/// The bare special-function unit: one machine instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MufuFn {
    Rcp,
    Rsq,
    Sqrt,
    Sin,
    Cos,
    Lg2,
    Ex2,
    Tanh,
    /// High word of an f64 reciprocal, from the high word.
    Rcp64h,
    Rsq64h,
    Ex2F16,
    TanhF16,
    Ex2Bf16,
    TanhBf16,
}

/// Output scale of a product: the exact product times 2^k, rounded once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Scale(pub i8);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TestProperty {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

/// Rounding of a conversion.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CvtRound {
    /// The conversion is exact or integer to integer.
    None,
    Rn,
    Rz,
    Rm,
    Rp,
    /// Ties away from zero (tf32).
    Rna,
    /// To an integral value.
    Rni,
    Rzi,
    Rmi,
    Rpi,
}

/// A conversion between two scalars.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cvt {
    pub to: Scalar,
    pub from: Scalar,
    pub round: CvtRound,
    pub ftz: bool,
    pub sat: bool,
    pub relu: bool,
    pub satfinite: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PrmtMode {
    Index,
    F4e,
    B4e,
    Rc8,
    Ecl,
    Ecr,
    Rc16,
}

/// A state space as an address sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Space {
    Generic,
    Global,
    Shared,
    Local,
    Const,
    /// Parameters of the entry function (constant bank); of other functions the front end makes values.
    Param,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum CacheOp {
    /// `.ca`, `.wb`: the default.
    #[default]
    Default,
    Cg,
    Cs,
    Lu,
    Cv,
    Wt,
    /// `ld.global.nc`
    Nc,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Scope {
    Cta,
    Cluster,
    Gpu,
    Sys,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Order {
    Weak,
    Volatile,
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    Sc,
}

/// What a load or store moves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Access {
    pub space: Space,
    /// Element type: its bits are the element's size in memory, its signedness says how a load widens it.
    pub elem: Scalar,
    /// Elements: 1, 2 or 4 (8 for 256-bit accesses of 32-bit elements).
    pub count: u8,
    pub cache: CacheOp,
    pub order: Order,
    pub scope: Scope,
    /// Added to the address argument.
    pub offset: i64,
}

impl Access {
    /// A plain access of one element.
    pub fn plain(space: Space, elem: Scalar) -> Self {
        Access {
            space,
            elem,
            count: 1,
            cache: CacheOp::Default,
            order: Order::Weak,
            scope: Scope::Cta,
            offset: 0,
        }
    }

    /// Bytes moved by one thread.
    pub fn bytes(&self) -> u32 {
        self.elem.bits() / 8 * u32::from(self.count)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AtomOp {
    Add,
    Inc,
    Dec,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exch,
    Cas,
}

/// A read-modify-write; `elem` U128 is written as `wide` (two 64-bit values an argument; exch and cas only).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Atom {
    pub op: AtomOp,
    pub space: Space,
    pub elem: Scalar,
    /// 128-bit: every data argument and the result come as (low, high) pairs of B64.
    pub wide: bool,
    pub order: Order,
    pub scope: Scope,
    pub offset: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ShflMode {
    Up,
    Down,
    Bfly,
    Idx,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VoteMode {
    All,
    Any,
    Uni,
    Ballot,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReduxOp {
    Add,
    MinS,
    MinU,
    MaxS,
    MaxU,
    And,
    Or,
    Xor,
}

/// What a CTA barrier does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BarMode {
    Sync,
    Arrive,
    RedPopc,
    RedAnd,
    RedOr,
}

/// Prefetches and hints: no effect on values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Hint {
    PrefetchL1,
    PrefetchL2,
    /// `prefetchu.L1`
    PrefetchUniform,
    ApplyPriority,
    Discard,
}

/// Functions that the system provides to device code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Syscall {
    /// (format: B64, arguments: B64) -> B32
    Vprintf,
    /// (bytes: B64) -> B64
    Malloc,
    /// (pointer: B64)
    Free,
    /// (message: B64, file: B64, line: B32, function: B64, char size: B64)
    AssertFail,
    /// (kernel: B64, grid x and y: B64, grid z and block x: B64, block y, block z and shared bytes: B64) -> B64.
    /// Room for the parameters of a child task. Block y and z share a word, 16 bits each.
    ParameterBuffer,
    /// (parameters: B64, stream: B64) -> B32. Starts the child task.
    LaunchDevice,
    /// () waits for all child tasks that the CTA has started.
    WaitChildren,
    /// (queue: B64, entry: B64) -> B32. Appends an entry to the queue of a queue task.
    QueuePush,
}

/// Special registers. `x`, `y`, `z` are 0, 1, 2.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SReg {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    LaneId,
    WarpId,
    NWarpId,
    SmId,
    NSmId,
    /// 64 bits
    GridId,
    ClusterId(u8),
    NClusterId(u8),
    ClusterCtaid(u8),
    ClusterNctaid(u8),
    ClusterCtaRank,
    ClusterNctaRank,
    IsExplicitCluster,
    LaneMaskEq,
    LaneMaskLe,
    LaneMaskLt,
    LaneMaskGe,
    LaneMaskGt,
    Clock,
    ClockHi,
    /// 64 bits
    Clock64,
    Pm(u8),
    /// 64 bits
    Pm64(u8),
    EnvReg(u8),
    /// 64 bits
    GlobalTimer,
    GlobalTimerLo,
    GlobalTimerHi,
    TotalSmemSize,
    DynamicSmemSize,
    AggrSmemSize,
    ReservedSmemOffset,
}

impl SReg {
    /// Reading it twice may give two values.
    pub fn is_volatile(self) -> bool {
        use SReg::*;
        matches!(
            self,
            Clock | ClockHi | Clock64 | Pm(_) | Pm64(_) | GlobalTimer | GlobalTimerLo | GlobalTimerHi
        )
    }

    pub fn is_wide(self) -> bool {
        matches!(self, SReg::GridId | SReg::Clock64 | SReg::Pm64(_) | SReg::GlobalTimer)
    }
}

/// What an address names. The result is an address *in its space* (B64 for global, B32 or B64 as the result type says for the
/// others); [`Op::ToGeneric`] makes it generic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AddrOf {
    Global(GlobalId),
    /// A variable in the frame of this function.
    Slot(SlotId),
    /// Byte offset into the entry's parameters.
    Param(u32),
    Function(FuncId),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    // --- sources -------------------------------------------------------------------------------------------------
    /// The bits, zero above the width.
    Const(u64),
    /// Any bits; the machine gives zero.
    Undef,
    SReg(SReg),
    Addr(AddrOf, i64),

    // --- integers (result width B16, B32 or B64 unless said) -----------------------------------------------------
    Add,
    Sub,
    /// s32 with saturation.
    AddSat,
    SubSat,
    /// (a, b, carry-in: P) -> (sum, carry-out: P)
    AddCarry,
    /// (a, b, borrow-in: P) -> (difference, borrow-out: P): a - b - borrow
    SubBorrow,
    Mul,
    MulHi {
        signed: bool,
    },
    /// B16 x B16 -> B32, B32 x B32 -> B64
    MulWide {
        signed: bool,
    },
    Div {
        signed: bool,
    },
    Rem {
        signed: bool,
    },
    Min {
        signed: bool,
    },
    Max {
        signed: bool,
    },
    Abs,
    Neg,
    /// |a - b| of the true difference, cut to the width.
    AbsDiff {
        signed: bool,
    },
    /// B32 or B64 -> B32
    Popc,
    Clz,
    Brev,
    /// B32 or B64 -> B32
    Bfind {
        signed: bool,
        shift_amount: bool,
    },
    /// (a, position: B32, length: B32)
    Bfe {
        signed: bool,
    },
    /// (a inserted into b, b, position: B32, length: B32)
    Bfi,
    /// (mask, base, offset)
    Fns,
    /// (a, b: B32)
    Szext {
        signed: bool,
        wrap: bool,
    },
    Bmsk {
        wrap: bool,
    },
    Dp4a {
        a_signed: bool,
        b_signed: bool,
    },
    Dp2a {
        a_signed: bool,
        b_signed: bool,
        hi: bool,
    },
    /// Packed 16-bit lanes in a B32.
    Add16x2,
    Min16x2 {
        signed: bool,
    },
    Max16x2 {
        signed: bool,
    },
    /// (a, b, c) -> B32, described by `arith`'s video descriptor bits.
    Video(u32),

    // --- bits (P, B16, B32, B64) ---------------------------------------------------------------------------------
    And,
    Or,
    Xor,
    Not,
    /// B32 only.
    Lop3(u8),
    /// Shift count B32; counts at or above the width give zero (or the sign for ShrS).
    Shl,
    ShrU,
    ShrS,
    /// shf: (lo, hi, count) -> B32
    Funnel {
        left: bool,
        wrap: bool,
    },
    Prmt(PrmtMode),
    /// Low half of a B32, or low word of a B64.
    TruncLo,
    /// High word of a B64, or high half of a B32.
    TruncHi,
    /// (lo, hi): B16 x B16 -> B32, B32 x B32 -> B64
    Concat,
    ZeroExt,
    SignExt,

    // --- comparison ----------------------------------------------------------------------------------------------
    /// -> P
    ICmp {
        cmp: IntCmp,
        signed: bool,
    },
    /// -> P; F16, Bf16, F32 or F64
    FCmp {
        cmp: FloatCmp,
        ty: Scalar,
        ftz: bool,
    },
    /// Packed halves -> (P of the low half, P of the high half)
    FCmp2 {
        cmp: FloatCmp,
        ty: Scalar,
        ftz: bool,
    },
    /// (condition: P, if true, if false)
    Select,

    // --- floating point ------------------------------------------------------------------------------------------
    FAdd(Float),
    FSub(Float),
    FMul(Float),
    /// Product with output scale (f32, round to nearest).
    FMulScaled {
        ftz: bool,
        scale: Scale,
    },
    FFma(Float),
    /// a / b, IEEE (F32, F64).
    FDiv {
        ty: Scalar,
        round: Round,
        ftz: bool,
    },
    FRcp {
        ty: Scalar,
        round: Round,
        ftz: bool,
    },
    FSqrt {
        ty: Scalar,
        round: Round,
        ftz: bool,
    },
    /// (a, b: f32) -> P: a / b may not be computed without care for its exponents, see `arith::fp32::div_check`.
    FDivCheck,
    /// f32 approximate functions, f16/bf16 `ex2` and `tanh` (packed too), `rcp`/`rsqrt.approx{.ftz}.f64`.
    Approx {
        f: ApproxFn,
        ty: Scalar,
        ftz: bool,
    },
    Mufu(MufuFn),
    /// PTX `neg`, `abs`: NaN becomes canonical for f32 and half types.
    FNeg {
        ty: Scalar,
        ftz: bool,
    },
    FAbs {
        ty: Scalar,
        ftz: bool,
    },
    FMin {
        ty: Scalar,
        ftz: bool,
        nan: bool,
        xorsign_abs: bool,
    },
    FMax {
        ty: Scalar,
        ftz: bool,
        nan: bool,
        xorsign_abs: bool,
    },
    /// Sign of a, magnitude of b.
    Copysign {
        ty: Scalar,
    },
    /// -> P
    Testp {
        property: TestProperty,
        ty: Scalar,
    },

    // --- conversion ----------------------------------------------------------------------------------------------
    Cvt(Cvt),
    /// (a to the upper half, b to the lower): two f32 to F16x2, Bf16x2, E4m3x2 or E5m2x2.
    CvtPack(Cvt),
    /// cvt.pack.sat: (a, b, [c]) two s32 saturated to `to` and packed; with 8-bit results c supplies the upper half.
    CvtPackInt {
        to: Scalar,
        with_c: bool,
    },

    // --- memory --------------------------------------------------------------------------------------------------
    /// (address) -> `count` values of the element's width
    Load(Access),
    /// (address, values...)
    Store(Access),
    /// (address, data [, data]) -> old; for Cas the data are (compare, new)
    Atom(Atom),
    /// (address, data)
    Red(Atom),
    Fence {
        order: Order,
        scope: Scope,
    },
    /// (address)
    Hint(Hint, Space),
    /// Generic address from an address of the space (B64 -> B64).
    ToGeneric(Space),
    /// Address of the space from a generic one (B64 -> B64).
    FromGeneric(Space),
    /// (generic address: B64) -> P
    IsSpace(Space),
    /// (bytes: B64 or B32, -) -> address in local space; frees on stackrestore or return.
    Alloca {
        align: u32,
    },
    StackSave,
    /// (saved)
    StackRestore,

    // --- warp and CTA --------------------------------------------------------------------------------------------
    /// (a, b, c, member mask) -> (B32, P)
    Shfl(ShflMode),
    /// (predicate: P, member mask) -> P, or B32 for Ballot
    Vote(VoteMode),
    /// (a: B32 or B64, member mask) -> B32
    MatchAny,
    /// (a, member mask) -> (B32, P)
    MatchAll,
    /// (a, member mask) -> B32
    Redux(ReduxOp),
    /// (member mask) -> (leader: B32, P)
    Elect,
    /// (member mask)
    WarpSync,
    /// -> B32
    ActiveMask,
    /// (barrier: B32, [thread count: B32], [predicate: P for Red*]) -> RedPopc: B32, RedAnd/RedOr: P.
    /// `aligned`: all threads of the warp run it together.
    Bar {
        mode: BarMode,
        has_count: bool,
        aligned: bool,
    },

    // --- control and system --------------------------------------------------------------------------------------
    /// (arguments) -> results, as the callee's signature says
    Call(FuncId),
    /// (address: B64, arguments) -> results; possible callees are unknown. `results` and widths stand in the values.
    CallIndirect,
    Syscall(Syscall),
    /// (nanoseconds: B32)
    Nanosleep,
    Trap,
    Brkpt,
    PmEvent(u32),
}

impl Op {
    /// No effect beyond the results, which depend on the arguments alone: may be removed, repeated and moved.
    pub fn is_pure(&self) -> bool {
        use Op::*;
        match self {
            SReg(r) => !r.is_volatile(),
            Load(a) => matches!(a.space, Space::Param) && a.order == Order::Weak,
            Store(_)
            | Atom(_)
            | Red(_)
            | Fence { .. }
            | Hint(..)
            | Alloca { .. }
            | StackSave
            | StackRestore => false,
            Shfl(_)
            | Vote(_)
            | MatchAny
            | MatchAll
            | Redux(_)
            | Elect
            | WarpSync
            | ActiveMask
            | Bar { .. } => false,
            Call(_) | CallIndirect | Syscall(_) | Nanosleep | Trap | Brkpt | PmEvent(_) => false,
            _ => true,
        }
    }

    /// May be removed when no result is used.
    pub fn is_removable(&self) -> bool {
        match self {
            Op::Load(a) => !matches!(a.order, Order::Volatile | Order::Acquire | Order::Sc | Order::AcqRel),
            Op::SReg(_) | Op::ActiveMask | Op::StackSave => true,
            _ => self.is_pure(),
        }
    }

    /// Number of pass-through arguments when guarded: one a result.
    pub fn reads_memory(&self) -> bool {
        matches!(self, Op::Load(_) | Op::Atom(_))
    }

    pub fn writes_memory(&self) -> bool {
        matches!(
            self,
            Op::Store(_)
                | Op::Atom(_)
                | Op::Red(_)
                | Op::Call(_)
                | Op::CallIndirect
                | Op::Syscall(_)
                | Op::Hint(Hint::Discard, _)
        )
    }
}
