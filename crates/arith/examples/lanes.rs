//! Nanoseconds that a warp of 32 lanes takes for each hot function, compiled for AVX2 and for AVX-512.
//!
//! `cargo run --release -p arith --example lanes`

#![allow(clippy::print_stdout)]

#[cfg(target_arch = "x86_64")]
mod levels {
    use arith::cvt::{self, Clamp};
    use arith::half::HalfMode;
    use arith::{FCmp, MinMax, Mode, Round, bf16, bits, f16, fp32, fp64, int, mufu};
    use std::hint::black_box;
    use std::time::Instant;

    type Lanes = [u32; 32];

    /// Operands, the same at every level: floats of moderate size.
    struct Operands {
        a: Lanes,
        b: Lanes,
        c: Lanes,
        d: Lanes,
    }

    fn operands() -> Operands {
        let fill = |seed: u32| {
            std::array::from_fn(|i| {
                let x = (i as u32 + seed).wrapping_mul(0x9e37_79b9);
                (x & 0x807f_ffff) | (120 + (x >> 8) % 12) << 23
            })
        };
        Operands { a: fill(1), b: fill(77), c: fill(1234), d: [0; 32] }
    }

    fn report(level: &str, name: &str, mut warp: impl FnMut(&mut Operands)) {
        const REPEATS: u32 = 20_000;
        let mut x = operands();
        let mut best = f64::INFINITY;
        for _ in 0..12 {
            let start = Instant::now();
            for _ in 0..REPEATS {
                warp(black_box(&mut x));
            }
            best = best.min(start.elapsed().as_secs_f64() / f64::from(REPEATS));
        }
        println!("{level:8} {name:18} {:7.1} ns", best * 1e9);
    }

    macro_rules! functions {
        ($($name:ident($x:ident) $body:expr;)*) => {
            mod avx2 {
                use super::*;
                $(#[target_feature(enable = "avx2,fma,bmi2,lzcnt,popcnt,f16c")]
                pub fn $name($x: &mut Operands) { $body })*
            }
            mod avx512 {
                use super::*;
                $(#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,bmi2,lzcnt,popcnt,f16c")]
                pub fn $name($x: &mut Operands) { $body })*
            }
            pub fn run() {
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the features were detected.
                    $(report("avx2", stringify!($name), |x| unsafe { avx2::$name(x) });)*
                }
                if is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("avx512vl") {
                    // SAFETY: as above.
                    $(report("avx512", stringify!($name), |x| unsafe { avx512::$name(x) });)*
                }
            }
        };
    }

    #[inline(always)]
    fn each(x: &mut Operands, f: impl Fn(u32, u32, u32) -> u32) {
        for i in 0..32 {
            x.d[i] = f(x.a[i], x.b[i], x.c[i]);
        }
    }

    /// 64-bit lanes from pairs of 32-bit ones.
    #[inline(always)]
    fn each64(x: &mut Operands, f: impl Fn(u64, u64, u64) -> u64) {
        for i in 0..32 {
            let wide = |lanes: &Lanes| (lanes[i] as u64) << 32 | lanes[31 - i] as u64;
            let r = f(wide(&x.a), wide(&x.b), wide(&x.c));
            x.d[i] = (r >> 32) as u32 ^ r as u32;
        }
    }

    const RZ: Mode = Mode::round(Round::Rz);
    const HALF: HalfMode = HalfMode { ftz: false, sat: false, relu: false };
    const PLAIN: MinMax = MinMax { ftz: false, nan: false, xorsign_abs: false };
    const CLAMP: Clamp = Clamp { relu: false, satfinite: false };

    functions! {
        mufu_rcp(x) mufu::rcp_lanes(&mut x.d, &x.a);
        mufu_rsq(x) mufu::rsq_lanes(&mut x.d, &x.a);
        mufu_sqrt(x) mufu::sqrt_lanes(&mut x.d, &x.a);
        mufu_ex2(x) mufu::ex2_lanes(&mut x.d, &x.a);
        mufu_lg2(x) mufu::lg2_lanes(&mut x.d, &x.a);
        mufu_sin(x) mufu::sin_lanes(&mut x.d, &x.a);
        mufu_cos(x) mufu::cos_lanes(&mut x.d, &x.a);
        mufu_tanh(x) mufu::tanh_lanes(&mut x.d, &x.a);
        mufu_rcp64h(x) mufu::rcp64h_lanes(&mut x.d, &x.a);
        fadd(x) each(x, |a, b, _| fp32::add(a, b, Mode::RN));
        fadd_ftz_sat(x) each(x, |a, b, _| fp32::add(a, b, Mode::RN.ftz().sat()));
        fadd_rz(x) each(x, |a, b, _| fp32::add(a, b, RZ));
        fmul(x) each(x, |a, b, _| fp32::mul(a, b, Mode::RN));
        fmul_rz(x) each(x, |a, b, _| fp32::mul(a, b, RZ));
        fmul_d2(x) each(x, |a, b, _| fp32::mul_scaled(a, b, -1, Mode::RN));
        ffma(x) each(x, |a, b, c| fp32::fma(a, b, c, Mode::RN));
        ffma_ftz(x) each(x, |a, b, c| fp32::fma(a, b, c, Mode::RN.ftz()));
        ffma_rz(x) each(x, |a, b, c| fp32::fma(a, b, c, RZ));
        fdiv(x) each(x, |a, b, _| fp32::div(a, b, Mode::RN));
        fsqrt(x) each(x, |a, _, _| fp32::sqrt(a, Mode::RN));
        fmin(x) each(x, |a, b, _| fp32::min(a, b, PLAIN));
        fsetp(x) each(x, |a, b, _| fp32::cmp(a, b, FCmp::Lt, false) as u32);
        dadd(x) each64(x, |a, b, _| fp64::add(a, b, Round::Rn));
        dfma(x) each64(x, |a, b, c| fp64::fma(a, b, c, Round::Rn));
        dfma_rz(x) each64(x, |a, b, c| fp64::fma(a, b, c, Round::Rz));
        hadd2(x) each(x, |a, b, _| f16::add_x2(a, b, HALF));
        hmul2(x) each(x, |a, b, _| f16::mul_x2(a, b, HALF));
        hfma2(x) each(x, |a, b, c| f16::fma_x2(a, b, c, HALF));
        hadd2_bf16(x) each(x, |a, b, _| bf16::add_x2(a, b, HALF));
        hfma2_bf16(x) each(x, |a, b, c| bf16::fma_x2(a, b, c, HALF));
        i2f(x) each(x, |a, _, _| cvt::s32_to_f32(a, Round::Rn));
        u2f(x) each(x, |a, _, _| cvt::u32_to_f32(a, Round::Rn));
        f2i(x) each(x, |a, _, _| cvt::f32_to_s32(a, Round::Rz, false));
        f2u(x) each(x, |a, _, _| cvt::f32_to_u32(a, Round::Rz, false));
        f2i_rn(x) each(x, |a, _, _| cvt::f32_to_s32(a, Round::Rn, false));
        f2f_f16(x) each(x, |a, _, _| cvt::f32_to_f16(a, Round::Rn, CLAMP) as u32);
        f16_to_f32(x) each(x, |a, _, _| cvt::f16_to_f32(a as u16));
        f64_to_f32(x) each64(x, |a, _, _| cvt::f64_to_f32(a, Round::Rn, false, false) as u64);
        imad_hi(x) each(x, int::w32::mad_hi_u);
        prmt(x) each(x, |a, b, c| bits::prmt(a, b, c, bits::Prmt::Index));
        lop3(x) each(x, |a, b, c| bits::lop3(a, b, c, 0xca));
        shf_l(x) each(x, |a, b, c| bits::shf_l(a, b, c, bits::Amount::Wrap));
        bfe(x) each(x, |a, b, c| bits::bfe(a, b, c, true));
        bfi(x) each(x, |a, b, c| bits::bfi(a, b, c, c >> 8));
        popc(x) each(x, |a, _, _| bits::popc(a));
        flo(x) each(x, |a, _, _| bits::bfind(a, false, false));
        dp4a(x) each(x, |a, b, c| int::dp4a(a, b, c, true, true));
        idiv(x) each(x, |a, b, _| int::w32::div_s(a, b));
    }
}

#[cfg(target_arch = "x86_64")]
fn main() {
    levels::run();
}

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    println!("the levels that this program compares are those of x86-64");
}
