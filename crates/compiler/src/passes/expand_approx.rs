//! Expands the approximate functions into the machine's special-function unit and the scaling of denormals around it,
//! instruction for instruction as NVIDIA's assembler does. Functions of constants become their correctly rounded values.
//!
//! The last product of `div.approx`, `div.full` and `rcp.approx` may fuse with an addition, so this runs before
//! contraction. `rsqrt.approx.f64` is a branch with a slow path there and ends a block for contraction; it is expanded
//! afterwards, by [`run_last`].

use super::Context;
use super::edit::{Change, Editor, rewrite};
use arith::{Mode, fp32};
use ir::{ApproxFn, Float, FloatCmp, Function, IntCmp, MufuFn, Op, Round, Scalar, Type, Value};

/// Below this (2^-126) the unit reads its argument as zero.
const TINY: f32 = f32::MIN_POSITIVE;
/// Above this (2^126) the unit's reciprocal is zero.
const HUGE: f32 = f32::from_bits(0x7e80_0000);
const TWO_24: f32 = 16_777_216.0;
/// 1 / 2 pi as the assembler writes it: the unit takes angles in turns.
const TURNS: u32 = 0x3e22_f983;

pub fn run(f: &mut Function, _: &mut Context) {
    rewrite(f, |e, _, i| {
        let data = e.func.inst(i);
        let Op::Approx { f: function, ty, ftz } = data.op else { return Change::Keep };
        if is_branch(function, ty, ftz) {
            return Change::Keep;
        }
        let args = data.args.clone();
        Change::Replace(match ty {
            Scalar::F64 => expand_seed(e, function, args[0]),
            Scalar::F32 => expand_f32(&mut Emit { e, ftz }, function, &args),
            _ => expand_half(e, function, ty, args[0]),
        })
    });
}

/// Expands what [`run`] left.
pub fn run_last(f: &mut Function, _: &mut Context) {
    rewrite(f, |e, _, i| {
        let data = e.func.inst(i);
        match data.op {
            Op::Approx { f, ty, ftz } if is_branch(f, ty, ftz) => {
                let x = data.args[0];
                Change::Replace(expand_rsqrt_f64(e, x))
            }
            _ => Change::Keep,
        }
    });
}

/// The assembler's code for it has a slow path out of line.
pub fn is_branch(f: ApproxFn, ty: Scalar, ftz: bool) -> bool {
    ty == Scalar::F64 && f == ApproxFn::Rsqrt && !ftz
}

/// f32 instructions of one ftz-ness.
struct Emit<'a, 'b> {
    e: &'a mut Editor<'b>,
    ftz: bool,
}

impl Emit<'_, '_> {
    fn constant(&mut self, x: f32) -> Value {
        self.bits(x.to_bits())
    }

    fn bits(&mut self, bits: u32) -> Value {
        self.e.iconst(Type::B32, bits.into())
    }

    fn mufu(&mut self, f: MufuFn, x: Value) -> Value {
        self.e.ins(Op::Mufu(f), &[x], Type::B32)
    }

    fn mode(&self) -> Float {
        Float { ftz: self.ftz, ..Float::rn(Scalar::F32) }
    }

    fn mul(&mut self, a: Value, b: Value) -> Value {
        self.e.ins(Op::FMul(self.mode()), &[a, b], Type::B32)
    }

    /// A product that may fuse with an addition.
    fn last_mul(&mut self, a: Value, b: Value) -> Value {
        self.e.ins(Op::FMul(Float { contract: true, ..self.mode() }), &[a, b], Type::B32)
    }

    fn compare(&mut self, cmp: FloatCmp, a: Value, b: f32) -> Value {
        let b = self.constant(b);
        self.e.ins(Op::FCmp { cmp, ty: Scalar::F32, ftz: self.ftz }, &[a, b], Type::P)
    }

    fn abs(&mut self, x: Value) -> Value {
        self.e.ins(Op::FAbs { ty: Scalar::F32, ftz: false }, &[x], Type::B32)
    }

    /// |x| is below 2^-126, or x is NaN.
    fn is_tiny(&mut self, x: Value) -> Value {
        let a = self.abs(x);
        self.compare(FloatCmp::Ltu, a, TINY)
    }

    fn is_huge(&mut self, x: Value) -> Value {
        let a = self.abs(x);
        self.compare(FloatCmp::Gt, a, HUGE)
    }

    fn select(&mut self, p: Value, a: Value, b: Value) -> Value {
        self.e.ins(Op::Select, &[p, a, b], Type::B32)
    }

    /// x * k where p holds, x elsewhere.
    fn scaled_where(&mut self, p: Value, x: Value, k: f32) -> Value {
        let k = self.constant(k);
        let product = self.mul(x, k);
        self.select(p, product, x)
    }
}

fn expand_f32(m: &mut Emit, f: ApproxFn, args: &[Value]) -> Value {
    let x = args[0];
    let known = m.e.func.const_of(x).map(|bits| bits as u32);
    if let (Some(bits), false) = (known, matches!(f, ApproxFn::Div | ApproxFn::DivFull)) {
        let bits = correctly_rounded(f, bits, m.ftz);
        return m.bits(bits);
    }
    match f {
        ApproxFn::Div | ApproxFn::DivFull => match m.e.func.const_of(args[1]) {
            Some(b) => divide_by_constant(m, x, b as u32, f == ApproxFn::DivFull),
            None => divide(m, x, args[1], f == ApproxFn::DivFull),
        },
        ApproxFn::Rcp if m.ftz => m.mufu(MufuFn::Rcp, x),
        ApproxFn::Rcp => {
            let (huge, tiny) = (m.is_huge(x), m.is_tiny(x));
            let (one, up, down) = (m.constant(1.0), m.constant(TWO_24), m.constant(0.25));
            let k = m.select(tiny, up, one);
            let k = m.select(huge, down, k);
            let scaled = m.mul(x, k);
            let r = m.mufu(MufuFn::Rcp, scaled);
            m.last_mul(k, r)
        }
        ApproxFn::Sqrt => with_tiny_scaled(m, MufuFn::Sqrt, x, 1.0 / 4096.0),
        ApproxFn::Rsqrt => with_tiny_scaled(m, MufuFn::Rsq, x, 4096.0),
        ApproxFn::Lg2 if m.ftz => m.mufu(MufuFn::Lg2, x),
        ApproxFn::Lg2 => {
            let tiny = m.is_tiny(x);
            let scaled = m.scaled_where(tiny, x, TWO_24);
            let r = m.mufu(MufuFn::Lg2, scaled);
            let back = m.constant(-24.0);
            let sum = m.e.ins(Op::FAdd(m.mode()), &[r, back], Type::B32);
            m.select(tiny, sum, r)
        }
        ApproxFn::Ex2 if m.ftz => m.mufu(MufuFn::Ex2, x),
        ApproxFn::Ex2 => {
            let low = m.compare(FloatCmp::Ltu, x, -126.0);
            let half = m.scaled_where(low, x, 0.5);
            let r = m.mufu(MufuFn::Ex2, half);
            let square = m.mul(r, r);
            m.select(low, square, r)
        }
        ApproxFn::Sin | ApproxFn::Cos => {
            let k = m.bits(TURNS);
            let mode = Float { round: Round::Rz, ..m.mode() };
            let turns = m.e.ins(Op::FMul(mode), &[x, k], Type::B32);
            m.mufu(if f == ApproxFn::Sin { MufuFn::Sin } else { MufuFn::Cos }, turns)
        }
        ApproxFn::Tanh => m.mufu(MufuFn::Tanh, x),
    }
}

/// sqrt and rsqrt: a tiny argument goes in times 2^24, and the result comes back times `back`.
fn with_tiny_scaled(m: &mut Emit, f: MufuFn, x: Value, back: f32) -> Value {
    if m.ftz {
        return m.mufu(f, x);
    }
    let tiny = m.is_tiny(x);
    let scaled = m.scaled_where(tiny, x, TWO_24);
    let r = m.mufu(f, scaled);
    m.scaled_where(tiny, r, back)
}

fn divide(m: &mut Emit, mut a: Value, mut b: Value, full: bool) -> Value {
    let original = b;
    if full {
        let huge = m.is_huge(original);
        b = m.scaled_where(huge, b, 0.25);
        a = m.scaled_where(huge, a, 0.25);
    }
    if !m.ftz {
        let tiny = m.is_tiny(original);
        b = m.scaled_where(tiny, b, TWO_24);
        a = m.scaled_where(tiny, a, TWO_24);
    }
    let r = m.mufu(MufuFn::Rcp, b);
    m.last_mul(r, a)
}

/// The reciprocal of the divisor is known, and correctly rounded rather than the unit's.
fn divide_by_constant(m: &mut Emit, mut a: Value, b: u32, full: bool) -> Value {
    let magnitude = f32::from_bits(b).abs();
    let scale = if full && magnitude > HUGE {
        Some(0.25)
    } else if !m.ftz && magnitude < TINY {
        Some(TWO_24)
    } else {
        None
    };
    let mode = Mode { ftz: m.ftz, ..Mode::RN };
    let mut divisor = b;
    if let Some(k) = scale {
        let factor = m.constant(k);
        a = m.mul(a, factor);
        divisor = fp32::mul(divisor, k.to_bits(), mode);
    }
    let reciprocal = fp32::div(1f32.to_bits(), divisor, mode);
    let r = m.bits(reciprocal);
    m.last_mul(a, r)
}

/// The function in double precision, rounded once more; flushed where asked.
fn correctly_rounded(f: ApproxFn, bits: u32, ftz: bool) -> u32 {
    let x = f64::from(f32::from_bits(fp32::flush(bits, ftz)));
    let y = match f {
        ApproxFn::Rcp => 1.0 / x,
        ApproxFn::Rsqrt => 1.0 / x.sqrt(),
        ApproxFn::Sqrt => x.sqrt(),
        ApproxFn::Sin => x.sin(),
        ApproxFn::Cos => x.cos(),
        ApproxFn::Lg2 => x.log2(),
        ApproxFn::Ex2 => x.exp2(),
        ApproxFn::Tanh => x.tanh(),
        ApproxFn::Div | ApproxFn::DivFull => f64::NAN,
    } as f32;
    if y.is_nan() { fp32::NAN } else { fp32::flush(y.to_bits(), ftz) }
}

/// `rcp` and `rsqrt.approx.ftz.f64`: the unit's high word, low word zero.
fn expand_seed(e: &mut Editor, f: ApproxFn, x: Value) -> Value {
    let high = e.ins(Op::TruncHi, &[x], Type::B32);
    let unit = if f == ApproxFn::Rsqrt { MufuFn::Rsq64h } else { MufuFn::Rcp64h };
    let seed = e.ins(Op::Mufu(unit), &[high], Type::B32);
    let zero = e.iconst(Type::B32, 0);
    e.ins(Op::Concat, &[zero, seed], Type::B64)
}

/// f16 and bf16 `ex2` and `tanh`: one unit operation a half.
fn expand_half(e: &mut Editor, f: ApproxFn, ty: Scalar, x: Value) -> Value {
    let is_tanh = f == ApproxFn::Tanh;
    let unit = Op::Mufu(match (ty, is_tanh) {
        (Scalar::Bf16 | Scalar::Bf16x2, true) => MufuFn::TanhBf16,
        (Scalar::Bf16 | Scalar::Bf16x2, false) => MufuFn::Ex2Bf16,
        (_, true) => MufuFn::TanhF16,
        (_, false) => MufuFn::Ex2F16,
    });
    if !matches!(ty, Scalar::F16x2 | Scalar::Bf16x2) {
        return e.ins(unit, &[x], Type::B16);
    }
    let [low, high] = [Op::TruncLo, Op::TruncHi].map(|half| {
        let part = e.ins(half, &[x], Type::B16);
        e.ins(unit, &[part], Type::B16)
    });
    e.ins(Op::Concat, &[low, high], Type::B32)
}

/// One step from the unit's seed; a denormal goes in times 2^54 and comes back times 2^27.
fn expand_rsqrt_f64(e: &mut Editor, x: Value) -> Value {
    let mode = Float::rn(Scalar::F64);
    let double = |e: &mut Editor, v: f64| e.iconst(Type::B64, v.to_bits());
    let compare =
        |e: &mut Editor, cmp, a, b| e.ins(Op::FCmp { cmp, ty: Scalar::F64, ftz: false }, &[a, b], Type::P);
    let select = |e: &mut Editor, p, a, b| e.ins(Op::Select, &[p, a, b], Type::B64);

    let high = e.ins(Op::TruncHi, &[x], Type::B32);
    let minus_first_normal = e.iconst(Type::B32, 0xfff0_0000);
    let range = e.iconst(Type::B32, 0x7fe0_0000);
    let above = e.ins(Op::Add, &[high, minus_first_normal], Type::B32);
    let is_special = e.ins(Op::ICmp { cmp: IntCmp::Ge, signed: false }, &[above, range], Type::P);

    let least_normal = double(e, f64::MIN_POSITIVE);
    let is_denormal = compare(e, FloatCmp::Lt, x, least_normal);
    let up = double(e, (1u64 << 54) as f64);
    let down = double(e, (1u64 << 27) as f64);
    let scaled = e.ins(Op::FMul(mode), &[x, up], Type::B64);
    let argument = select(e, is_denormal, scaled, x);

    let y = expand_seed(e, ApproxFn::Rsqrt, argument);
    let square = e.ins(Op::FMul(mode), &[y, y], Type::B64);
    let minus_square = e.ins(Op::FNeg { ty: Scalar::F64, ftz: false }, &[square], Type::B64);
    let (one, c1, c2) = (double(e, 1.0), double(e, 0.375), double(e, 0.5));
    let error = e.ins(Op::FFma(mode), &[argument, minus_square, one], Type::B64);
    let slope = e.ins(Op::FFma(mode), &[error, c1, c2], Type::B64);
    let step = e.ins(Op::FMul(mode), &[y, error], Type::B64);
    let root = e.ins(Op::FFma(mode), &[slope, step, y], Type::B64);

    let from_denormal = e.ins(Op::FMul(mode), &[root, down], Type::B64);
    let zero = double(e, 0.0);
    let is_nan = compare(e, FloatCmp::Nan, x, x);
    let is_zero = compare(e, FloatCmp::Eq, x, zero);
    let is_negative = compare(e, FloatCmp::Lt, x, zero);
    let quiet = e.ins(Op::FAdd(mode), &[x, x], Type::B64);
    let infinity = double(e, f64::INFINITY);
    let infinity = e.ins(Op::Copysign { ty: Scalar::F64 }, &[x, infinity], Type::B64);
    let invalid = e.iconst(Type::B64, 0xfff8_0000_0000_0000);
    let special = select(e, is_denormal, from_denormal, zero);
    let special = select(e, is_negative, invalid, special);
    let special = select(e, is_zero, infinity, special);
    let special = select(e, is_nan, quiet, special);
    select(e, is_special, special, root)
}
