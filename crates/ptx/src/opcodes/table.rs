//! Every PTX instruction up to sm_90: its modifiers, how many operands it takes and of which size they are.
//!
//! A line is one form of an instruction. Each slot takes at most one modifier; a form that names its slots in
//! the manual's order still accepts them in any. The last column gives the operands' types, one letter each:
//!
//! - `t`, `u`: the first, the second type among the modifiers; `w`: the first, twice as wide with `.wide`
//! - `l`, `m`: like `t`, `u`, but the register may be wider (loads, stores, conversions)
//! - `i`: 32 bits of integer; `j`: 64 bits; `p`: a predicate; `.`: anything
//!
//! What the letters do not reach is not checked here.

/// A place for at most one modifier.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub words: &'static [&'static str],
    pub required: bool,
    /// Also takes matrix shapes such as `m16n8k16`.
    pub shape: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The mnemonic and the modifiers right after it that select the form.
    pub name: &'static str,
    pub slots: &'static [Slot],
    /// Fewest and most operands.
    pub operands: (u8, u8),
    pub types: &'static str,
}

const fn opt(words: &'static [&'static str]) -> Slot {
    Slot { words, required: false, shape: false }
}

const fn req(words: &'static [&'static str]) -> Slot {
    Slot { words, required: true, shape: false }
}

const fn form(name: &'static str, slots: &'static [Slot], low: u8, high: u8, types: &'static str) -> Form {
    Form { name, slots, operands: (low, high), types }
}

const SHAPE: Slot = Slot { words: &[], required: true, shape: true };

const INT: Slot = req(&["u16", "u32", "u64", "s16", "s32", "s64"]);
const INT_X2: Slot = req(&["u16", "u32", "u64", "s16", "s32", "s64", "u16x2", "s16x2"]);
const WORDS: Slot = req(&["u32", "u64", "s32", "s64"]);
const SIGNED: Slot = req(&["s16", "s32", "s64"]);
const U32_S32: Slot = req(&["u32", "s32"]);
const U32: Slot = req(&["u32"]);
const S32: Slot = req(&["s32"]);
const U32_S32_F32: Slot = req(&["u32", "s32", "f32"]);
const F32: Slot = req(&["f32"]);
const F64: Slot = req(&["f64"]);
const HALF: Slot = req(&["f16", "f16x2"]);
const BFLOAT: Slot = req(&["bf16", "bf16x2"]);
const SINGLE_OR_DOUBLE: Slot = req(&["f32", "f64"]);
const PTR: Slot = req(&["u32", "u64"]);
const B16: Slot = req(&["b16"]);
const B32: Slot = req(&["b32"]);
const B64: Slot = req(&["b64"]);
const B32_B64: Slot = req(&["b32", "b64"]);
const BITS: Slot = req(&["b16", "b32", "b64"]);
const BITS_PRED: Slot = req(&["pred", "b16", "b32", "b64"]);
const PRED: Slot = req(&["pred"]);
const SCALAR: Slot = req(&["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"]);
const COMPARED: Slot = req(&[
    "b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f16", "f16x2", "bf16", "bf16x2", "f32",
    "f64",
]);
const SET_RESULT: Slot = req(&["u16", "s16", "u32", "s32", "f16", "f16x2", "bf16", "bf16x2", "f32"]);
const MOVED: Slot = req(&[
    "pred", "b16", "b32", "b64", "b128", "u16", "u32", "u64", "s16", "s32", "s64", "f16", "f16x2", "bf16",
    "bf16x2", "f32", "f64",
]);
const LOADED: Slot = req(&[
    "b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64",
]);
const CONVERTED: Slot = req(&[
    "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16", "bf16", "f32", "f64", "f16x2", "bf16x2",
    "tf32", "e4m3x2", "e5m2x2",
]);
const ATOMIC: Slot = req(&[
    "b16", "b32", "b64", "b128", "u32", "u64", "s32", "s64", "f16", "f16x2", "bf16", "bf16x2", "f32", "f64",
]);
const MATRIX: Slot = req(&[
    "f16", "bf16", "tf32", "f32", "f64", "e4m3", "e5m2", "u8", "s8", "u4", "s4", "b1", "s32", "b8", "b16",
]);

const RND: Slot = opt(&["rn", "rz", "rm", "rp"]);
const RND_REQ: Slot = req(&["rn", "rz", "rm", "rp"]);
const RN: Slot = opt(&["rn"]);
const RN_REQ: Slot = req(&["rn"]);
const RND_ANY: Slot = opt(&["rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "rna"]);
const FTZ: Slot = opt(&["ftz"]);
const FTZ_REQ: Slot = req(&["ftz"]);
const SAT: Slot = opt(&["sat"]);
const SAT_REQ: Slot = req(&["sat"]);
const SATFINITE: Slot = opt(&["satfinite"]);
const RELU: Slot = opt(&["relu"]);
const NAN: Slot = opt(&["NaN"]);
const XORSIGN: Slot = opt(&["xorsign"]);
const ABS: Slot = opt(&["abs"]);
const APPROX: Slot = req(&["approx"]);
const CC: Slot = opt(&["cc"]);
const CC_REQ: Slot = req(&["cc"]);
const HALF_PRODUCT: Slot = req(&["hi", "lo"]);
const PRODUCT: Slot = req(&["hi", "lo", "wide"]);
const WRAP: Slot = req(&["clamp", "wrap"]);
const CMP: Slot = req(&[
    "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu",
    "num", "nan",
]);
const CMP_SIX: Slot = req(&["eq", "ne", "lt", "le", "gt", "ge"]);
const BOOL: Slot = opt(&["and", "or", "xor"]);

const SPACE: Slot = opt(&[
    "const",
    "global",
    "local",
    "param",
    "param::entry",
    "param::func",
    "shared",
    "shared::cta",
    "shared::cluster",
]);
const CVTA_SPACE: Slot =
    req(&["const", "global", "local", "param", "param::entry", "shared", "shared::cta", "shared::cluster"]);
const GLOBAL: Slot = opt(&["global"]);
const GLOBAL_REQ: Slot = req(&["global"]);
const ATOM_SPACE: Slot = opt(&["global", "shared", "shared::cta", "shared::cluster"]);
const SHARED: Slot = opt(&["shared", "shared::cta"]);
const SHARED_REQ: Slot = req(&["shared", "shared::cta"]);
const SHARED_ANY: Slot = opt(&["shared", "shared::cta", "shared::cluster"]);
const SHARED_ANY_REQ: Slot = req(&["shared", "shared::cta", "shared::cluster"]);
const CLUSTER_WINDOW: Slot = opt(&["shared::cluster"]);
const MATRIX_SPACE: Slot = opt(&["global", "shared", "shared::cta"]);
const SCOPE: Slot = opt(&["cta", "cluster", "gpu", "sys"]);
const SCOPE_REQ: Slot = req(&["cta", "cluster", "gpu", "sys"]);
const CTA_CLUSTER: Slot = opt(&["cta", "cluster"]);
const MMIO: Slot = opt(&["mmio"]);
const LOAD_CACHE: Slot = opt(&["ca", "cg", "cs", "lu", "cv"]);
const STORE_CACHE: Slot = opt(&["wb", "cg", "cs", "wt"]);
const L1_PRIORITY: Slot =
    opt(&["L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"]);
const L2_PRIORITY: Slot = opt(&["L2::evict_normal", "L2::evict_first", "L2::evict_last"]);
const CACHE_HINT: Slot = opt(&["L2::cache_hint"]);
const PREFETCH: Slot = opt(&["L2::64B", "L2::128B", "L2::256B"]);
const VEC: Slot = opt(&["v2", "v4", "v8"]);
const VEC_2_4: Slot = opt(&["v2", "v4"]);
const COMPLETE_TX: Slot = req(&["mbarrier::complete_tx::bytes"]);
const BULK_GROUP: Slot = req(&["bulk_group"]);
const MULTICAST: Slot = opt(&["multicast::cluster"]);
const SYNC: Slot = req(&["sync"]);
const ALIGNED: Slot = req(&["aligned"]);
const ALIGNED_OPT: Slot = opt(&["aligned"]);
const LAYOUT: Slot = req(&["row", "col"]);
const UNI: Slot = opt(&["uni"]);
const REDUCTION: Slot = req(&["add", "inc", "dec", "min", "max", "and", "or", "xor"]);
const NOFTZ: Slot = opt(&["noftz"]);
const SHUFFLE: Slot = req(&["up", "down", "bfly", "idx"]);
const VOTE: Slot = req(&["all", "any", "uni"]);
const PROXY: Slot = req(&["alias", "async"]);
const PROXY_SPACE: Slot = opt(&["global", "shared::cta", "shared::cluster"]);
const DIM: Slot = req(&["1d", "2d", "3d", "4d", "5d"]);
const TENSOR_LOAD: Slot = opt(&["tile", "im2col", "im2col::w", "im2col::w::128"]);
const TENSOR_STORE: Slot = opt(&["tile", "im2col_no_offs"]);
const TEXTURE_GEOMETRY: Slot = req(&["1d", "2d", "3d", "a1d", "a2d", "cube", "acube", "2dms", "a2dms"]);
const SURFACE_GEOMETRY: Slot = req(&["1d", "2d", "3d", "a1d", "a2d"]);
const TEXEL: Slot = req(&["u32", "s32", "f16", "f32", "f16x2"]);
const COORDINATE: Slot = req(&["s32", "f32"]);
const SURFACE_TYPE: Slot = req(&["b8", "b16", "b32", "b64"]);
const SURFACE_CLAMP: Slot = opt(&["trap", "clamp", "zero"]);
const VIDEO_SECOND: Slot = opt(&["add", "min", "max"]);
const VIDEO_ADD: Slot = opt(&["add"]);
const MATRIX_COUNT: Slot = req(&["x1", "x2", "x4"]);
const BIT_OP: Slot = req(&["xor", "and"]);
const POPC: Slot = req(&["popc"]);
const AND_OR: Slot = req(&["and", "or"]);
const BARRIER_CTA: Slot = opt(&["cta"]);

const LOAD: &[Slot] = &[
    opt(&["weak", "volatile", "relaxed", "acquire"]),
    MMIO,
    SCOPE,
    SPACE,
    LOAD_CACHE,
    opt(&["nc"]),
    L1_PRIORITY,
    L2_PRIORITY,
    CACHE_HINT,
    PREFETCH,
    VEC,
    LOADED,
];
const STORE: &[Slot] = &[
    opt(&["weak", "volatile", "relaxed", "release"]),
    MMIO,
    SCOPE,
    SPACE,
    STORE_CACHE,
    L1_PRIORITY,
    L2_PRIORITY,
    CACHE_HINT,
    VEC,
    LOADED,
];
const ATOM_SEM: Slot = opt(&["relaxed", "acquire", "release", "acq_rel"]);
const RED_SEM: Slot = opt(&["relaxed", "release"]);
const ARRIVE: &[Slot] = &[RED_SEM, CTA_CLUSTER, SHARED_ANY, B64];
const WAIT: &[Slot] = &[opt(&["parity"]), opt(&["acquire", "relaxed"]), CTA_CLUSTER, SHARED, B64];
const VIDEO: &[Slot] = &[U32_S32, U32_S32, U32_S32, SAT, VIDEO_SECOND];
const VIDEO_SHIFT: &[Slot] = &[U32_S32, U32_S32, U32, SAT, WRAP, VIDEO_SECOND];
const VIDEO_SIMD: &[Slot] = &[U32_S32, U32_S32, U32_S32, SAT, VIDEO_ADD];
const MMA: &[Slot] = &[SYNC, ALIGNED, SHAPE, LAYOUT, LAYOUT, SATFINITE, MATRIX, MATRIX, MATRIX, MATRIX];
const WGMMA: &[Slot] = &[SYNC, ALIGNED, SHAPE, SATFINITE, MATRIX, MATRIX, MATRIX];
const WGMMA_BITS: &[Slot] = &[SYNC, ALIGNED, SHAPE, MATRIX, MATRIX, MATRIX, BIT_OP, POPC];
const WMMA_MOVE: &[Slot] = &[SYNC, ALIGNED_OPT, LAYOUT, SHAPE, MATRIX_SPACE, MATRIX];
const TEXTURE: &[Slot] = &[TEXTURE_GEOMETRY, VEC_2_4, TEXEL, COORDINATE];

pub const FORMS: &[Form] = &[
    // Integer arithmetic.
    form("add", &[INT_X2], 3, 3, "ttt"),
    form("add", &[SAT_REQ, S32], 3, 3, "ttt"),
    form("sub", &[INT], 3, 3, "ttt"),
    form("sub", &[SAT_REQ, S32], 3, 3, "ttt"),
    form("mul", &[PRODUCT, INT], 3, 3, "wtt"),
    form("mad", &[PRODUCT, INT], 4, 4, "wttw"),
    form("mad", &[req(&["hi"]), SAT_REQ, S32], 4, 4, "tttt"),
    form("mul24", &[HALF_PRODUCT, U32_S32], 3, 3, "ttt"),
    form("mad24", &[HALF_PRODUCT, U32_S32], 4, 4, "tttt"),
    form("mad24", &[req(&["hi"]), SAT_REQ, S32], 4, 4, "tttt"),
    form("sad", &[INT], 4, 4, "tttt"),
    form("div", &[INT], 3, 3, "ttt"),
    form("rem", &[INT], 3, 3, "ttt"),
    form("abs", &[SIGNED], 2, 2, "tt"),
    form("neg", &[SIGNED], 2, 2, "tt"),
    form("min", &[INT_X2], 3, 3, "ttt"),
    form("min", &[req(&["relu"]), req(&["s32", "s16x2"])], 3, 3, "ttt"),
    form("max", &[INT_X2], 3, 3, "ttt"),
    form("max", &[req(&["relu"]), req(&["s32", "s16x2"])], 3, 3, "ttt"),
    form("popc", &[B32_B64], 2, 2, "it"),
    form("clz", &[B32_B64], 2, 2, "it"),
    form("bfind", &[opt(&["shiftamt"]), WORDS], 2, 2, "it"),
    form("fns", &[B32], 4, 4, "tiii"),
    form("brev", &[B32_B64], 2, 2, "tt"),
    form("bfe", &[WORDS], 4, 4, "ttii"),
    form("bfi", &[B32_B64], 5, 5, "tttii"),
    form("szext", &[WRAP, U32_S32], 3, 3, "tti"),
    form("bmsk", &[WRAP, B32], 3, 3, "tii"),
    form("dp4a", &[U32_S32, U32_S32], 4, 4, "iiii"),
    form("dp2a", &[HALF_PRODUCT, U32_S32, U32_S32], 4, 4, "iiii"),
    // Extended precision.
    form("add", &[CC_REQ, WORDS], 3, 3, "ttt"),
    form("addc", &[CC, WORDS], 3, 3, "ttt"),
    form("sub", &[CC_REQ, WORDS], 3, 3, "ttt"),
    form("subc", &[CC, WORDS], 3, 3, "ttt"),
    form("mad", &[HALF_PRODUCT, CC_REQ, WORDS], 4, 4, "tttt"),
    form("madc", &[HALF_PRODUCT, CC, WORDS], 4, 4, "tttt"),
    // Floating point.
    form(
        "testp",
        &[req(&["finite", "infinite", "number", "notanumber", "normal", "subnormal"]), SINGLE_OR_DOUBLE],
        2,
        2,
        "pt",
    ),
    form("copysign", &[SINGLE_OR_DOUBLE], 3, 3, "ttt"),
    form("add", &[RND, FTZ, SAT, F32], 3, 3, "ttt"),
    form("add", &[RND, F64], 3, 3, "ttt"),
    form("add", &[RN, FTZ, SAT, HALF], 3, 3, "ttt"),
    form("add", &[RN, BFLOAT], 3, 3, "ttt"),
    form("sub", &[RND, FTZ, SAT, F32], 3, 3, "ttt"),
    form("sub", &[RND, F64], 3, 3, "ttt"),
    form("sub", &[RN, FTZ, SAT, HALF], 3, 3, "ttt"),
    form("sub", &[RN, BFLOAT], 3, 3, "ttt"),
    form("mul", &[RND, FTZ, SAT, F32], 3, 3, "ttt"),
    form("mul", &[RND, F64], 3, 3, "ttt"),
    form("mul", &[RN, FTZ, SAT, HALF], 3, 3, "ttt"),
    form("mul", &[RN, BFLOAT], 3, 3, "ttt"),
    form("fma", &[RND_REQ, FTZ, SAT, F32], 4, 4, "tttt"),
    form("fma", &[RND_REQ, F64], 4, 4, "tttt"),
    form("fma", &[RN_REQ, FTZ, opt(&["sat", "relu"]), HALF], 4, 4, "tttt"),
    form("fma", &[RN_REQ, RELU, BFLOAT], 4, 4, "tttt"),
    form("fma", &[RN_REQ, req(&["oob"]), RELU, req(&["f16", "f16x2", "bf16", "bf16x2"])], 4, 4, "tttt"),
    form("mad", &[RND_REQ, FTZ, SAT, F32], 4, 4, "tttt"),
    form("mad", &[RND_REQ, F64], 4, 4, "tttt"),
    form("div", &[req(&["approx", "full", "rn", "rz", "rm", "rp"]), FTZ, F32], 3, 3, "ttt"),
    form("div", &[RND_REQ, F64], 3, 3, "ttt"),
    form("abs", &[FTZ, req(&["f32", "f16", "f16x2"])], 2, 2, "tt"),
    form("abs", &[req(&["f64", "bf16", "bf16x2"])], 2, 2, "tt"),
    form("neg", &[FTZ, req(&["f32", "f16", "f16x2"])], 2, 2, "tt"),
    form("neg", &[req(&["f64", "bf16", "bf16x2"])], 2, 2, "tt"),
    form("min", &[FTZ, NAN, XORSIGN, ABS, req(&["f32", "f16", "f16x2"])], 3, 3, "ttt"),
    form("min", &[NAN, XORSIGN, ABS, BFLOAT], 3, 3, "ttt"),
    form("min", &[F64], 3, 3, "ttt"),
    form("max", &[FTZ, NAN, XORSIGN, ABS, req(&["f32", "f16", "f16x2"])], 3, 3, "ttt"),
    form("max", &[NAN, XORSIGN, ABS, BFLOAT], 3, 3, "ttt"),
    form("max", &[F64], 3, 3, "ttt"),
    form("rcp", &[req(&["approx", "rn", "rz", "rm", "rp"]), FTZ, F32], 2, 2, "tt"),
    form("rcp", &[RND_REQ, F64], 2, 2, "tt"),
    form("rcp", &[APPROX, FTZ_REQ, F64], 2, 2, "tt"),
    form("sqrt", &[req(&["approx", "rn", "rz", "rm", "rp"]), FTZ, F32], 2, 2, "tt"),
    form("sqrt", &[RND_REQ, F64], 2, 2, "tt"),
    form("rsqrt", &[APPROX, FTZ, SINGLE_OR_DOUBLE], 2, 2, "tt"),
    form("sin", &[APPROX, FTZ, F32], 2, 2, "tt"),
    form("cos", &[APPROX, FTZ, F32], 2, 2, "tt"),
    form("lg2", &[APPROX, FTZ, F32], 2, 2, "tt"),
    form("ex2", &[APPROX, FTZ, F32], 2, 2, "tt"),
    form("ex2", &[APPROX, HALF], 2, 2, "tt"),
    form("ex2", &[APPROX, FTZ_REQ, BFLOAT], 2, 2, "tt"),
    form("tanh", &[APPROX, req(&["f32", "f16", "f16x2", "bf16", "bf16x2"])], 2, 2, "tt"),
    // Comparison and selection.
    form("set", &[CMP, BOOL, FTZ, SET_RESULT, COMPARED], 3, 4, "tuup"),
    form("setp", &[CMP, BOOL, FTZ, COMPARED], 3, 4, "pttp"),
    form("selp", &[SCALAR], 4, 4, "tttp"),
    form("slct", &[SCALAR, S32], 4, 4, "tttu"),
    form("slct", &[FTZ, SCALAR, F32], 4, 4, "tttu"),
    // Logic and shift.
    form("and", &[BITS_PRED], 3, 3, "ttt"),
    form("or", &[BITS_PRED], 3, 3, "ttt"),
    form("xor", &[BITS_PRED], 3, 3, "ttt"),
    form("not", &[BITS_PRED], 2, 2, "tt"),
    form("cnot", &[BITS], 2, 2, "tt"),
    form("lop3", &[B32], 5, 5, "tttt"),
    form("lop3", &[AND_OR, B32], 6, 6, "tttt.p"),
    form("shf", &[req(&["l", "r"]), WRAP, B32], 4, 4, "ttti"),
    form("shl", &[BITS], 3, 3, "tti"),
    form("shr", &[req(&["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"])], 3, 3, "tti"),
    // Data movement and conversion.
    form("mov", &[MOVED], 2, 2, "tt"),
    form("shfl", &[SHUFFLE, B32], 4, 4, "ttii"),
    form("shfl.sync", &[SHUFFLE, B32], 5, 5, "ttiii"),
    form("prmt", &[B32, opt(&["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"])], 4, 4, "tttt"),
    form("ld", LOAD, 2, 3, "l.j"),
    form("ldu", &[GLOBAL, VEC_2_4, LOADED], 2, 2, "l"),
    form("st", STORE, 2, 3, ".lj"),
    form(
        "st.async",
        &[
            opt(&["weak"]),
            opt(&["cluster"]),
            CLUSTER_WINDOW,
            opt(&["mbarrier::complete_tx::bytes"]),
            VEC_2_4,
            LOADED,
        ],
        3,
        3,
        ".l",
    ),
    form(
        "multimem.ld_reduce",
        &[
            opt(&["weak", "relaxed", "acquire"]),
            SCOPE,
            GLOBAL,
            req(&["min", "max", "add", "and", "or", "xor"]),
            opt(&["acc::f32"]),
            VEC,
            ATOMIC,
        ],
        2,
        2,
        "t",
    ),
    form("multimem.st", &[opt(&["weak", "relaxed", "release"]), SCOPE, GLOBAL, VEC, ATOMIC], 2, 2, ".t"),
    form(
        "multimem.red",
        &[RED_SEM, SCOPE, GLOBAL, req(&["min", "max", "add", "and", "or", "xor"]), VEC, ATOMIC],
        2,
        2,
        ".t",
    ),
    form("prefetch", &[opt(&["global", "local"]), req(&["L1", "L2"])], 1, 1, ""),
    form("prefetch", &[GLOBAL_REQ, req(&["L2::evict_last", "L2::evict_normal"])], 1, 1, ""),
    form("prefetch", &[opt(&["const", "param"]), req(&["tensormap"])], 1, 1, ""),
    form("prefetchu", &[req(&["L1"])], 1, 1, ""),
    form("applypriority", &[GLOBAL, req(&["L2::evict_normal"])], 2, 2, ""),
    form("discard", &[GLOBAL, req(&["L2"])], 2, 2, ""),
    form(
        "createpolicy.range",
        &[
            GLOBAL,
            req(&["L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged"]),
            opt(&["L2::evict_first", "L2::evict_unchanged"]),
            B64,
        ],
        4,
        4,
        "t.ii",
    ),
    form(
        "createpolicy.fractional",
        &[
            req(&["L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged"]),
            opt(&["L2::evict_first", "L2::evict_unchanged"]),
            B64,
        ],
        1,
        2,
        "t",
    ),
    form("createpolicy.cvt", &[req(&["L2"]), B64], 2, 2, "tt"),
    form("isspacep", &[CVTA_SPACE], 2, 2, "p."),
    form("cvta", &[opt(&["to"]), CVTA_SPACE, PTR], 2, 2, "tt"),
    form("cvt", &[RND_ANY, FTZ, SAT, RELU, SATFINITE, CONVERTED, CONVERTED], 2, 3, "lmm"),
    form("cvt.pack", &[SAT_REQ, req(&["u16", "s16"]), S32], 3, 3, "iii"),
    form("cvt.pack", &[SAT_REQ, req(&["u2", "s2", "u4", "s4", "u8", "s8"]), S32, B32], 4, 4, "iiii"),
    form("mapa", &[CLUSTER_WINDOW, PTR], 3, 3, "tti"),
    form("getctarank", &[CLUSTER_WINDOW, PTR], 2, 2, "it"),
    form("cp.async", &[req(&["ca", "cg"]), SHARED_REQ, GLOBAL_REQ, CACHE_HINT, PREFETCH], 3, 5, ""),
    form("cp.async.commit_group", &[], 0, 0, ""),
    form("cp.async.wait_group", &[], 1, 1, ""),
    form("cp.async.wait_all", &[], 0, 0, ""),
    form("cp.async.mbarrier.arrive", &[opt(&["noinc"]), SHARED, B64], 1, 1, ""),
    form("cp.async.bulk", &[SHARED_ANY_REQ, GLOBAL_REQ, COMPLETE_TX, MULTICAST, CACHE_HINT], 4, 6, ""),
    form("cp.async.bulk", &[req(&["shared::cluster"]), req(&["shared::cta"]), COMPLETE_TX], 4, 4, ""),
    form("cp.async.bulk", &[GLOBAL_REQ, req(&["shared::cta"]), BULK_GROUP, CACHE_HINT], 3, 4, ""),
    form(
        "cp.reduce.async.bulk",
        &[
            req(&["shared::cluster"]),
            req(&["shared::cta"]),
            COMPLETE_TX,
            REDUCTION,
            req(&["b32", "u32", "s32", "b64", "u64", "s64"]),
        ],
        4,
        4,
        "",
    ),
    form(
        "cp.reduce.async.bulk",
        &[
            GLOBAL_REQ,
            req(&["shared::cta"]),
            BULK_GROUP,
            CACHE_HINT,
            REDUCTION,
            NOFTZ,
            req(&["f16", "bf16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64"]),
        ],
        3,
        4,
        "",
    ),
    form("cp.async.bulk.prefetch", &[req(&["L2"]), GLOBAL_REQ, CACHE_HINT], 2, 3, ""),
    form(
        "cp.async.bulk.tensor",
        &[DIM, SHARED_ANY_REQ, GLOBAL_REQ, TENSOR_LOAD, COMPLETE_TX, MULTICAST, CACHE_HINT],
        3,
        6,
        "",
    ),
    form(
        "cp.async.bulk.tensor",
        &[DIM, GLOBAL_REQ, req(&["shared::cta"]), TENSOR_STORE, BULK_GROUP, CACHE_HINT],
        2,
        3,
        "",
    ),
    form(
        "cp.reduce.async.bulk.tensor",
        &[DIM, GLOBAL_REQ, req(&["shared::cta"]), REDUCTION, TENSOR_STORE, BULK_GROUP, CACHE_HINT],
        2,
        3,
        "",
    ),
    form(
        "cp.async.bulk.prefetch.tensor",
        &[DIM, req(&["L2"]), GLOBAL_REQ, TENSOR_LOAD, CACHE_HINT],
        1,
        3,
        "",
    ),
    form("cp.async.bulk.commit_group", &[], 0, 0, ""),
    form("cp.async.bulk.wait_group", &[opt(&["read"])], 1, 1, ""),
    form(
        "tensormap.replace",
        &[
            req(&["tile"]),
            req(&["global_address", "rank", "elemtype", "interleave_layout", "swizzle_mode", "fill_mode"]),
            MATRIX_SPACE,
            req(&["b1024"]),
            B32_B64,
        ],
        2,
        2,
        "",
    ),
    form(
        "tensormap.replace",
        &[
            req(&["tile"]),
            req(&["box_dim", "global_dim", "global_stride", "element_stride"]),
            MATRIX_SPACE,
            req(&["b1024"]),
            B32_B64,
        ],
        3,
        3,
        "",
    ),
    form(
        "tensormap.cp_fenceproxy",
        &[GLOBAL_REQ, SHARED_REQ, req(&["tensormap::generic"]), req(&["release"]), SCOPE_REQ, SYNC, ALIGNED],
        3,
        3,
        "",
    ),
    // Textures and surfaces.
    form("tex", TEXTURE, 2, 4, ""),
    form("tex.base", TEXTURE, 2, 4, ""),
    form("tex.level", TEXTURE, 3, 5, ""),
    form("tex.grad", TEXTURE, 4, 6, ""),
    form(
        "tld4",
        &[req(&["r", "g", "b", "a"]), req(&["2d", "a2d", "cube", "acube"]), req(&["v4"]), U32_S32_F32, F32],
        2,
        4,
        "",
    ),
    form(
        "txq",
        &[
            req(&[
                "width",
                "height",
                "depth",
                "channel_data_type",
                "channel_order",
                "normalized_coords",
                "array_size",
                "num_mipmap_levels",
                "num_samples",
                "force_unnormalized_coords",
                "filter_mode",
                "addr_mode_0",
                "addr_mode_1",
                "addr_mode_2",
            ]),
            B32,
        ],
        2,
        2,
        "t",
    ),
    form("txq.level", &[req(&["width", "height", "depth"]), B32], 3, 3, "t.i"),
    form("istypep", &[req(&["texref", "samplerref", "surfref"])], 2, 2, "p."),
    form("suld.b", &[SURFACE_GEOMETRY, LOAD_CACHE, VEC_2_4, SURFACE_TYPE, SURFACE_CLAMP], 2, 2, "l"),
    form("sust.b", &[SURFACE_GEOMETRY, STORE_CACHE, VEC_2_4, SURFACE_TYPE, SURFACE_CLAMP], 2, 2, ".l"),
    form("sust.p", &[SURFACE_GEOMETRY, VEC_2_4, B32, SURFACE_CLAMP], 2, 2, ".l"),
    form(
        "sured.b",
        &[
            req(&["add", "min", "max", "and", "or"]),
            req(&["1d", "2d", "3d"]),
            req(&["u32", "u64", "s32", "b32", "s64"]),
            SURFACE_CLAMP,
        ],
        2,
        2,
        ".t",
    ),
    form(
        "sured.p",
        &[req(&["add", "min", "max", "and", "or"]), req(&["1d", "2d", "3d"]), B32_B64, SURFACE_CLAMP],
        2,
        2,
        ".t",
    ),
    form(
        "suq",
        &[
            req(&[
                "width",
                "height",
                "depth",
                "channel_data_type",
                "channel_order",
                "array_size",
                "memory_layout",
            ]),
            B32,
        ],
        2,
        2,
        "t",
    ),
    // Control flow.
    form("bra", &[UNI], 1, 1, ""),
    form("brx.idx", &[UNI], 2, 2, "i"),
    form("call", &[UNI], 1, 4, ""),
    form("ret", &[UNI], 0, 0, ""),
    form("exit", &[], 0, 0, ""),
    // Synchronisation and communication.
    form("bar", &[BARRIER_CTA, SYNC], 1, 2, "ii"),
    form("bar", &[BARRIER_CTA, req(&["arrive"])], 2, 2, "ii"),
    form("bar", &[BARRIER_CTA, req(&["red"]), POPC, U32], 3, 4, "t"),
    form("bar", &[BARRIER_CTA, req(&["red"]), AND_OR, PRED], 3, 4, "p"),
    form("bar.warp", &[SYNC], 1, 1, "i"),
    form("barrier", &[BARRIER_CTA, SYNC, ALIGNED_OPT], 1, 2, "ii"),
    form("barrier", &[BARRIER_CTA, req(&["arrive"]), ALIGNED_OPT], 2, 2, "ii"),
    form("barrier", &[BARRIER_CTA, req(&["red"]), POPC, ALIGNED_OPT, U32], 3, 4, "t"),
    form("barrier", &[BARRIER_CTA, req(&["red"]), AND_OR, ALIGNED_OPT, PRED], 3, 4, "p"),
    form("barrier.cluster", &[req(&["arrive"]), RED_SEM, ALIGNED_OPT], 0, 0, ""),
    form("barrier.cluster", &[req(&["wait"]), opt(&["acquire"]), ALIGNED_OPT], 0, 0, ""),
    form("membar", &[req(&["cta", "gl", "sys"])], 0, 0, ""),
    form("membar.proxy", &[PROXY, PROXY_SPACE], 0, 0, ""),
    form("fence", &[opt(&["sc", "acq_rel", "acquire", "release"]), SCOPE_REQ], 0, 0, ""),
    form(
        "fence",
        &[
            req(&["acquire", "release"]),
            req(&["sync_restrict::shared::cluster", "sync_restrict::shared::cta"]),
            req(&["cluster"]),
        ],
        0,
        0,
        "",
    ),
    form("fence.mbarrier_init", &[req(&["release"]), req(&["cluster"])], 0, 0, ""),
    form("fence.proxy", &[PROXY, PROXY_SPACE], 0, 0, ""),
    form("fence.proxy", &[req(&["tensormap::generic"]), req(&["release"]), SCOPE_REQ], 0, 0, ""),
    form("fence.proxy", &[req(&["tensormap::generic"]), req(&["acquire"]), SCOPE_REQ], 2, 2, ""),
    form(
        "fence.proxy",
        &[
            req(&["async::generic"]),
            req(&["acquire", "release"]),
            req(&["sync_restrict::shared::cluster", "sync_restrict::shared::cta"]),
            req(&["cluster"]),
        ],
        0,
        0,
        "",
    ),
    form("atom", &[ATOM_SEM, SCOPE, ATOM_SPACE, req(&["cas"]), ATOMIC], 4, 4, "t.tt"),
    form(
        "atom",
        &[
            ATOM_SEM,
            SCOPE,
            ATOM_SPACE,
            req(&["and", "or", "xor", "exch", "add", "inc", "dec", "min", "max"]),
            NOFTZ,
            CACHE_HINT,
            VEC,
            ATOMIC,
        ],
        3,
        4,
        "t.tj",
    ),
    form("red", &[RED_SEM, SCOPE, ATOM_SPACE, REDUCTION, NOFTZ, CACHE_HINT, VEC, ATOMIC], 2, 3, ".tj"),
    form(
        "red.async",
        &[req(&["relaxed"]), req(&["cluster"]), CLUSTER_WINDOW, COMPLETE_TX, REDUCTION, ATOMIC],
        3,
        3,
        ".t",
    ),
    form("vote", &[VOTE, PRED], 2, 2, "pp"),
    form("vote", &[req(&["ballot"]), B32], 2, 2, "tp"),
    form("vote.sync", &[VOTE, PRED], 3, 3, "ppi"),
    form("vote.sync", &[req(&["ballot"]), B32], 3, 3, "tpi"),
    form("match", &[req(&["any", "all"]), SYNC, B32_B64], 3, 3, "iti"),
    form("activemask", &[B32], 1, 1, "t"),
    form("redux.sync", &[req(&["add", "min", "max"]), U32_S32], 3, 3, "tti"),
    form("redux.sync", &[req(&["and", "or", "xor"]), B32], 3, 3, "tti"),
    form("griddepcontrol", &[req(&["launch_dependents", "wait"])], 0, 0, ""),
    form("elect.sync", &[], 2, 2, "ii"),
    form("mbarrier.init", &[SHARED, B64], 2, 2, ".i"),
    form("mbarrier.inval", &[SHARED, B64], 1, 1, ""),
    form("mbarrier.expect_tx", &[opt(&["relaxed"]), CTA_CLUSTER, SHARED_ANY, B64], 2, 2, ".i"),
    form("mbarrier.complete_tx", &[opt(&["relaxed"]), CTA_CLUSTER, SHARED_ANY, B64], 2, 2, ".i"),
    form("mbarrier.arrive", ARRIVE, 1, 3, ""),
    form("mbarrier.arrive.expect_tx", ARRIVE, 2, 3, ""),
    form("mbarrier.arrive.noComplete", ARRIVE, 3, 3, "j.i"),
    form("mbarrier.arrive_drop", ARRIVE, 1, 3, ""),
    form("mbarrier.arrive_drop.expect_tx", ARRIVE, 2, 3, ""),
    form("mbarrier.arrive_drop.noComplete", ARRIVE, 3, 3, "j.i"),
    form("mbarrier.test_wait", WAIT, 3, 3, "p"),
    form("mbarrier.try_wait", WAIT, 3, 4, "p"),
    form("mbarrier.pending_count", &[B64], 2, 2, "ij"),
    // Matrices of a warp.
    form("wmma.load.a", WMMA_MOVE, 2, 3, "..i"),
    form("wmma.load.b", WMMA_MOVE, 2, 3, "..i"),
    form("wmma.load.c", WMMA_MOVE, 2, 3, "..i"),
    form("wmma.store.d", WMMA_MOVE, 2, 3, "..i"),
    form("wmma.mma", &[SYNC, ALIGNED_OPT, LAYOUT, LAYOUT, SHAPE, RND, MATRIX, MATRIX, SATFINITE], 4, 4, ""),
    form(
        "wmma.mma",
        &[SYNC, ALIGNED_OPT, LAYOUT, LAYOUT, SHAPE, RND, MATRIX, MATRIX, MATRIX, MATRIX, SATFINITE],
        4,
        4,
        "",
    ),
    form(
        "wmma.mma",
        &[BIT_OP, POPC, SYNC, ALIGNED_OPT, LAYOUT, LAYOUT, SHAPE, MATRIX, MATRIX, MATRIX, MATRIX],
        4,
        4,
        "",
    ),
    form("mma", MMA, 4, 4, ""),
    form(
        "mma",
        &[SYNC, ALIGNED, SHAPE, LAYOUT, LAYOUT, MATRIX, MATRIX, MATRIX, MATRIX, BIT_OP, POPC],
        4,
        4,
        "",
    ),
    form("mma.sp", MMA, 6, 6, ""),
    form("mma.sp::ordered_metadata", MMA, 6, 6, ""),
    form("ldmatrix", &[SYNC, ALIGNED, SHAPE, MATRIX_COUNT, opt(&["trans"]), SHARED, B16], 2, 2, ""),
    form("stmatrix", &[SYNC, ALIGNED, SHAPE, MATRIX_COUNT, opt(&["trans"]), SHARED, B16], 2, 2, ""),
    form("movmatrix", &[SYNC, ALIGNED, SHAPE, req(&["trans"]), B16], 2, 2, "ii"),
    // Matrices of a warpgroup.
    form("wgmma.mma_async", WGMMA, 4, 8, ""),
    form("wgmma.mma_async", WGMMA_BITS, 4, 4, ""),
    form("wgmma.mma_async.sp", WGMMA, 6, 10, ""),
    form("wgmma.fence", &[SYNC, ALIGNED], 0, 0, ""),
    form("wgmma.commit_group", &[SYNC, ALIGNED], 0, 0, ""),
    form("wgmma.wait_group", &[SYNC, ALIGNED], 1, 1, ""),
    // Stack.
    form("stacksave", &[PTR], 1, 1, "t"),
    form("stackrestore", &[PTR], 1, 1, "t"),
    form("alloca", &[PTR], 2, 3, "tt"),
    // Video.
    form("vadd", VIDEO, 3, 4, ""),
    form("vsub", VIDEO, 3, 4, ""),
    form("vabsdiff", VIDEO, 3, 4, ""),
    form("vmin", VIDEO, 3, 4, ""),
    form("vmax", VIDEO, 3, 4, ""),
    form("vshl", VIDEO_SHIFT, 3, 4, ""),
    form("vshr", VIDEO_SHIFT, 3, 4, ""),
    form("vmad", &[U32_S32, U32_S32, U32_S32, opt(&["po"]), SAT, opt(&["shr7", "shr15"])], 4, 4, ""),
    form("vset", &[U32_S32, U32_S32, CMP_SIX, VIDEO_SECOND], 3, 4, ""),
    form("vadd2", VIDEO_SIMD, 4, 4, ""),
    form("vsub2", VIDEO_SIMD, 4, 4, ""),
    form("vavrg2", VIDEO_SIMD, 4, 4, ""),
    form("vabsdiff2", VIDEO_SIMD, 4, 4, ""),
    form("vmin2", VIDEO_SIMD, 4, 4, ""),
    form("vmax2", VIDEO_SIMD, 4, 4, ""),
    form("vset2", &[U32_S32, U32_S32, CMP_SIX, VIDEO_ADD], 4, 4, ""),
    form("vadd4", VIDEO_SIMD, 4, 4, ""),
    form("vsub4", VIDEO_SIMD, 4, 4, ""),
    form("vavrg4", VIDEO_SIMD, 4, 4, ""),
    form("vabsdiff4", VIDEO_SIMD, 4, 4, ""),
    form("vmin4", VIDEO_SIMD, 4, 4, ""),
    form("vmax4", VIDEO_SIMD, 4, 4, ""),
    form("vset4", &[U32_S32, U32_S32, CMP_SIX, VIDEO_ADD], 4, 4, ""),
    // The rest.
    form("brkpt", &[], 0, 0, ""),
    form("nanosleep", &[U32], 1, 1, "t"),
    form("pmevent", &[opt(&["mask"])], 1, 1, ""),
    form("trap", &[], 0, 0, ""),
    form("setmaxnreg", &[req(&["inc", "dec"]), SYNC, ALIGNED, U32], 1, 1, ""),
];
