//! Instruction-set levels: every handler is compiled once for each, and the widest that the host has is used.
//!
//! A handler's body is an inlined generic function; the wrappers here give it the level's target features, so that
//! the same source becomes SSE2, AVX2 or AVX-512 code.

use crate::access::{Access, Locate, locate as locate_body};
use crate::lanes::Lanes;
use crate::ops::layout::{Layout, Step, step as step_body};
use crate::uop::{Flow, Handler, Uop};

/// What the body of a handler may ask of its level.
pub trait Level {
    /// A bit for each lane whose answer is yes.
    fn mask_of(f: impl Fn(usize) -> bool) -> u32;
}

/// A handler's body.
pub trait Exec {
    /// # Safety
    /// As [`Handler`].
    unsafe fn run<L: Level>(l: &mut Lanes, u: &Uop) -> Flow;
}

/// The levels there are, narrowest first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Isa {
    Baseline,
    Avx2,
    Avx512,
}

impl Isa {
    pub const ALL: [Isa; 3] = [Isa::Baseline, Isa::Avx2, Isa::Avx512];

    /// Whether this host has the level.
    pub fn is_available(self) -> bool {
        match self {
            Isa::Baseline => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("lzcnt")
                    && is_x86_feature_detected!("popcnt")
                    && is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                Isa::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512cd")
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// The widest that this host has.
    pub fn best() -> Isa {
        Isa::ALL.into_iter().rev().find(|l| l.is_available()).unwrap_or(Isa::Baseline)
    }
}

/// One body compiled for every level.
pub type Levels = [Handler; 3];

#[cfg(target_arch = "x86_64")]
pub const fn levels<E: Exec>() -> Levels {
    [x86::baseline::<E>, x86::avx2::<E>, x86::avx512::<E>]
}

#[cfg(not(target_arch = "x86_64"))]
pub const fn levels<E: Exec>() -> Levels {
    [portable::<E>; 3]
}

/// [`crate::access::locate`] for a level that the host has.
#[cfg(target_arch = "x86_64")]
pub(crate) fn locate(level: Isa) -> Locate {
    [x86::locate_baseline, x86::locate_avx2, x86::locate_avx512][level as usize]
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn locate(_: Isa) -> Locate {
    locate_portable
}

/// [`crate::ops::layout::step`] for a level that the host has.
#[cfg(target_arch = "x86_64")]
pub(crate) fn step(level: Isa) -> Step {
    [x86::step_baseline, x86::step_avx2, x86::step_avx512][level as usize]
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn step(_: Isa) -> Step {
    step_portable
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn step_portable(l: &mut Lanes, u: &Uop, layout: &Layout) -> bool {
    // SAFETY: the caller's promise.
    unsafe { step_body(l, u, layout) }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn locate_portable(l: &Lanes, u: &Uop, s: u32, out: &mut Access) {
    // SAFETY: the caller's promise.
    unsafe { locate_body(l, u, s, out) }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn portable<E: Exec>(l: &mut Lanes, u: &Uop) -> Flow {
    // SAFETY: the caller's promise.
    unsafe { E::run::<Portable>(l, u) }
}

#[cfg(not(target_arch = "x86_64"))]
struct Portable;

#[cfg(not(target_arch = "x86_64"))]
impl Level for Portable {
    #[inline(always)]
    fn mask_of(f: impl Fn(usize) -> bool) -> u32 {
        (0..32).fold(0, |m, i| m | u32::from(f(i)) << i)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Access, Exec, Layout, Level, locate_body, step_body};
    use crate::lanes::Lanes;
    use crate::uop::{Flow, Uop};
    use std::arch::x86_64::*;

    struct Baseline;
    struct Avx2;
    struct Avx512;

    /// All ones in the lanes whose answer is yes.
    #[inline(always)]
    fn answers(f: impl Fn(usize) -> bool) -> [u32; 32] {
        let mut r = [0; 32];
        for i in 0..32 {
            r[i] = if f(i) { u32::MAX } else { 0 };
        }
        r
    }

    impl Level for Baseline {
        #[inline(always)]
        fn mask_of(f: impl Fn(usize) -> bool) -> u32 {
            let r = answers(f);
            let mut m = 0;
            for k in 0..8 {
                // SAFETY: four lanes from 4k on; SSE2 is part of x86-64.
                m |= (unsafe { _mm_movemask_ps(_mm_loadu_ps(r.as_ptr().add(4 * k).cast())) } as u32)
                    << (4 * k);
            }
            m
        }
    }

    impl Level for Avx2 {
        #[inline(always)]
        fn mask_of(f: impl Fn(usize) -> bool) -> u32 {
            let r = answers(f);
            let mut m = 0;
            for k in 0..4 {
                // SAFETY: eight lanes from 8k on; only handlers of this level, which have AVX2, come here.
                m |= (unsafe { _mm256_movemask_ps(_mm256_loadu_ps(r.as_ptr().add(8 * k).cast())) } as u32)
                    << (8 * k);
            }
            m
        }
    }

    impl Level for Avx512 {
        #[inline(always)]
        fn mask_of(f: impl Fn(usize) -> bool) -> u32 {
            let r = answers(f);
            let mut m = 0;
            for k in 0..2 {
                // SAFETY: sixteen lanes from 16k on; only handlers of this level, which have AVX-512, come here.
                m |= u32::from(unsafe {
                    _mm512_movepi32_mask(_mm512_loadu_si512(r.as_ptr().add(16 * k).cast()))
                }) << (16 * k);
            }
            m
        }
    }

    pub unsafe fn baseline<E: Exec>(l: &mut Lanes, u: &Uop) -> Flow {
        // SAFETY: the caller's promise.
        unsafe { E::run::<Baseline>(l, u) }
    }

    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
    pub unsafe fn avx2<E: Exec>(l: &mut Lanes, u: &Uop) -> Flow {
        // SAFETY: the caller's promise.
        unsafe { E::run::<Avx2>(l, u) }
    }

    #[target_feature(
        enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd"
    )]
    pub unsafe fn avx512<E: Exec>(l: &mut Lanes, u: &Uop) -> Flow {
        // SAFETY: the caller's promise.
        unsafe { E::run::<Avx512>(l, u) }
    }

    pub unsafe fn locate_baseline(l: &Lanes, u: &Uop, s: u32, out: &mut Access) {
        // SAFETY: the caller's promise.
        unsafe { locate_body(l, u, s, out) }
    }

    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
    pub unsafe fn locate_avx2(l: &Lanes, u: &Uop, s: u32, out: &mut Access) {
        // SAFETY: the caller's promise.
        unsafe { locate_body(l, u, s, out) }
    }

    #[target_feature(
        enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd"
    )]
    pub unsafe fn locate_avx512(l: &Lanes, u: &Uop, s: u32, out: &mut Access) {
        // SAFETY: the caller's promise.
        unsafe { locate_body(l, u, s, out) }
    }

    pub unsafe fn step_baseline(l: &mut Lanes, u: &Uop, layout: &Layout) -> bool {
        // SAFETY: the caller's promise.
        unsafe { step_body(l, u, layout) }
    }

    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
    pub unsafe fn step_avx2(l: &mut Lanes, u: &Uop, layout: &Layout) -> bool {
        // SAFETY: the caller's promise.
        unsafe { step_body(l, u, layout) }
    }

    #[target_feature(
        enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd"
    )]
    pub unsafe fn step_avx512(l: &mut Lanes, u: &Uop, layout: &Layout) -> bool {
        // SAFETY: the caller's promise.
        unsafe { step_body(l, u, layout) }
    }
}
