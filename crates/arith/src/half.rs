//! What the two 16-bit formats share: modifiers, packed pairs, and sums rounded to odd.

/// Modifiers of 16-bit floating-point arithmetic. All of it rounds to nearest even.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HalfMode {
    pub ftz: bool,
    pub sat: bool,
    pub relu: bool,
}

/// The NaN that every 16-bit operation returns.
pub const NAN: u16 = 0x7fff;
pub const SIGN: u16 = 0x8000;

#[inline(always)]
pub const fn pack(low: u16, high: u16) -> u32 {
    low as u32 | (high as u32) << 16
}

#[inline(always)]
pub const fn low(a: u32) -> u16 {
    a as u16
}

#[inline(always)]
pub const fn high(a: u32) -> u16 {
    (a >> 16) as u16
}

/// The f32 sum rounded to odd, so that a second rounding to a 16-bit format is as good as one.
#[inline(always)]
pub(crate) fn sum_to_odd(a: f32, b: f32) -> f32 {
    let s = a + b;
    let from_b = s - a;
    let error = (a - (s - from_b)) + (b - from_b);
    let bits = s.to_bits();
    let inexact = (error > 0.0) | (error < 0.0);
    let grow = error.is_sign_negative() == s.is_sign_negative();
    let odd = if grow { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    let fix = inexact & (bits & 1 == 0) & (s.abs() < f32::INFINITY);
    f32::from_bits(if fix { odd } else { bits })
}

/// The f64 rounded to f32 to odd.
#[inline(always)]
pub(crate) fn narrow_to_odd(x: f64) -> f32 {
    let nearest = x as f32;
    let bits = nearest.to_bits();
    let back = nearest as f64;
    // Toward zero first: one step back where rounding went away from zero (from infinity too), then the last bit.
    let cut = if back.abs() > x.abs() { bits.wrapping_sub(1) } else { bits };
    let inexact = (back > x) | (back < x);
    f32::from_bits(if inexact { cut | 1 } else { bits })
}

/// The operations whose bit-level form is the same in both formats, for a given infinity pattern.
macro_rules! shared_operations {
    ($infinity:expr, $one:expr) => {
        pub const INFINITY: u16 = $infinity;
        pub const ONE: u16 = $one;

        #[inline(always)]
        pub const fn is_nan(a: u16) -> bool {
            a & !SIGN > INFINITY
        }

        /// A denormal becomes a zero of its sign when `ftz` is set.
        #[inline(always)]
        pub fn flush(a: u16, ftz: bool) -> u16 {
            if ftz & (a & INFINITY == 0) { a & SIGN } else { a }
        }

        /// Clamps to [0, 1]; NaN and -0 give +0.
        #[inline(always)]
        pub fn saturate(a: u16) -> u16 {
            let positive = if (a & SIGN != 0) | is_nan(a) { 0 } else { a };
            if positive > ONE { ONE } else { positive }
        }

        /// Flush, saturation and relu of a result whose NaN is canonical.
        #[inline(always)]
        fn finish(r: u16, mode: HalfMode) -> u16 {
            let r = flush(r, mode.ftz);
            let r = if mode.sat { saturate(r) } else { r };
            if mode.relu & (r & SIGN != 0) { 0 } else { r }
        }

        #[inline(always)]
        pub fn sub(a: u16, b: u16, mode: HalfMode) -> u16 {
            add(a, b ^ SIGN, mode)
        }

        /// Integers in the order of the numbers, -0 below +0.
        #[inline(always)]
        fn order(a: u16) -> i16 {
            let a = a as i16;
            a ^ (((a >> 15) as u16) >> 1) as i16
        }

        #[inline(always)]
        fn min_or_max(a: u16, b: u16, max: bool, options: MinMax) -> u16 {
            let (a, b) = (flush(a, options.ftz), flush(b, options.ftz));
            let sign = (a ^ b) & SIGN;
            let (x, y) = if options.xorsign_abs { (a & !SIGN, b & !SIGN) } else { (a, b) };
            let first = if max { order(x) >= order(y) } else { order(x) <= order(y) };
            let r = if first { x } else { y };
            let r = if is_nan(x) { y } else { r };
            let r = if is_nan(y) & !is_nan(x) { x } else { r };
            let nan = if options.nan { is_nan(x) | is_nan(y) } else { is_nan(x) & is_nan(y) };
            let r = if options.xorsign_abs { r | sign } else { r };
            if nan { NAN } else { r }
        }

        #[inline(always)]
        pub fn min(a: u16, b: u16, options: MinMax) -> u16 {
            min_or_max(a, b, false, options)
        }

        #[inline(always)]
        pub fn max(a: u16, b: u16, options: MinMax) -> u16 {
            min_or_max(a, b, true, options)
        }

        #[inline(always)]
        pub fn cmp(a: u16, b: u16, cmp: FCmp, ftz: bool) -> bool {
            let (x, y) = (to_f32(flush(a, ftz)), to_f32(flush(b, ftz)));
            cmp.answer(x < y, x == y, is_nan(a) | is_nan(b))
        }

        /// PTX `abs`: a NaN becomes canonical.
        #[inline(always)]
        pub fn abs(a: u16, ftz: bool) -> u16 {
            if is_nan(a) { NAN } else { flush(a, ftz) & !SIGN }
        }

        /// PTX `neg`: a NaN becomes canonical.
        #[inline(always)]
        pub fn neg(a: u16, ftz: bool) -> u16 {
            if is_nan(a) { NAN } else { flush(a, ftz) ^ SIGN }
        }

        // The packed forms call the scalar ones by name: a closure would not be sure to be inlined.
        packed_forms! {
            add_x2: add(a, b), mode: HalfMode;
            sub_x2: sub(a, b), mode: HalfMode;
            mul_x2: mul(a, b), mode: HalfMode;
            fma_x2: fma(a, b, c), mode: HalfMode;
            min_x2: min(a, b), options: MinMax;
            max_x2: max(a, b), options: MinMax;
            abs_x2: abs(a), ftz: bool;
            neg_x2: neg(a), ftz: bool;
            ex2_x2: ex2(a);
            tanh_x2: tanh(a);
        }

        /// The comparison of the low halves and that of the high ones.
        #[inline(always)]
        pub fn cmp_x2(a: u32, b: u32, by: FCmp, ftz: bool) -> (bool, bool) {
            (cmp(low(a), low(b), by, ftz), cmp(high(a), high(b), by, ftz))
        }
    };
}

macro_rules! packed_forms {
    ($($packed:ident: $scalar:ident($($x:ident),*) $(, $option:ident: $kind:ty)?;)*) => {$(
        #[doc = concat!("[`", stringify!($scalar), "`] of both halves.")]
        #[inline(always)]
        pub fn $packed($($x: u32,)* $($option: $kind)?) -> u32 {
            pack($scalar($(low($x),)* $($option)?), $scalar($(high($x),)* $($option)?))
        }
    )*};
}
pub(crate) use {packed_forms, shared_operations};
