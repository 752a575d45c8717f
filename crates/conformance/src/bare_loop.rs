//! The yardstick: eighteen f32 operations on registers of 32 lanes, called through a table of functions, and nothing else.
//!
//! It is compiled for the same vector levels as the engine and the widest is chosen at run time, so its rate is what
//! this shape of interpreter can reach at most on the machine at hand.

use simt::Isa;
use std::time::{Duration, Instant};

/// A register of a warp.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Lanes([f32; 32]);

const REGISTERS: usize = 32;
/// Operations of the loop's body.
pub const BODY: usize = 18;

/// One operation: `d = a * b + c` and its kin.
#[derive(Clone, Copy)]
struct Op {
    run: Handler,
    d: u8,
    a: u8,
    b: u8,
    c: u8,
}

type Handler = unsafe fn(&mut [Lanes; REGISTERS], &Op);

#[derive(Clone, Copy)]
struct Handlers {
    add: Handler,
    mul: Handler,
    fma: Handler,
}

/// The three handlers, compiled with the features given.
macro_rules! level {
    ($name:ident $(, $feature:literal)?) => {
        mod $name {
            use super::*;

            $(#[target_feature(enable = $feature)])?
            unsafe fn add(regs: &mut [Lanes; REGISTERS], op: &Op) {
                lanes(regs, op, |a, b, _| a + b);
            }

            $(#[target_feature(enable = $feature)])?
            unsafe fn mul(regs: &mut [Lanes; REGISTERS], op: &Op) {
                lanes(regs, op, |a, b, _| a * b);
            }

            $(#[target_feature(enable = $feature)])?
            unsafe fn fma(regs: &mut [Lanes; REGISTERS], op: &Op) {
                lanes(regs, op, f32::mul_add);
            }

            pub const HANDLERS: Handlers = Handlers { add, mul, fma };
        }
    };
}

level!(baseline);
#[cfg(target_arch = "x86_64")]
level!(avx2, "avx2,fma,bmi2,f16c");
#[cfg(target_arch = "x86_64")]
level!(avx512, "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2,f16c");

#[inline(always)]
fn lanes(regs: &mut [Lanes; REGISTERS], op: &Op, f: impl Fn(f32, f32, f32) -> f32) {
    let row = |n: u8| usize::from(n) % REGISTERS;
    let (a, b, c) = (regs[row(op.a)], regs[row(op.b)], regs[row(op.c)]);
    let d = &mut regs[row(op.d)];
    for i in 0..32 {
        d.0[i] = f(a.0[i], b.0[i], c.0[i]);
    }
}

/// The handlers of the engine's level.
fn handlers(level: Isa) -> Handlers {
    match level {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => avx512::HANDLERS,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => avx2::HANDLERS,
        _ => baseline::HANDLERS,
    }
}

/// The loop, ready to run.
pub struct BareLoop {
    pub level: Isa,
    program: Vec<Op>,
    registers: Box<[Lanes; REGISTERS]>,
}

impl BareLoop {
    /// The loop at a level that this host has, or at the widest below it.
    pub fn new(level: Isa) -> BareLoop {
        let level = if level.is_available() { level } else { Isa::best().min(level) };
        let h = handlers(level);
        let op = |run, d, a, b, c| Op { run, d, a, b, c };
        // The shape of an n-body step: differences, a squared length, a scale, three accumulations. Registers 0 to 7 are
        // never written and all values stay of moderate size.
        let program = vec![
            op(h.add, 8, 0, 1, 0),
            op(h.add, 9, 2, 3, 0),
            op(h.add, 10, 4, 5, 0),
            op(h.fma, 11, 8, 8, 6),
            op(h.fma, 11, 9, 9, 11),
            op(h.fma, 11, 10, 10, 11),
            op(h.mul, 12, 11, 7, 0),
            op(h.mul, 13, 12, 12, 0),
            op(h.mul, 13, 13, 12, 0),
            op(h.mul, 14, 13, 0, 0),
            op(h.fma, 15, 14, 8, 1),
            op(h.fma, 16, 14, 9, 2),
            op(h.fma, 17, 14, 10, 3),
            op(h.add, 18, 15, 4, 0),
            op(h.add, 19, 16, 5, 0),
            op(h.mul, 20, 17, 7, 0),
            op(h.fma, 21, 18, 19, 20),
            op(h.add, 22, 21, 6, 0),
        ];
        debug_assert_eq!(program.len(), BODY);
        let registers =
            std::array::from_fn(|r| Lanes(std::array::from_fn(|i| 0.25 + 0.01 * (r * 32 + i) as f32 % 1.0)));
        BareLoop { level, program, registers: Box::new(registers) }
    }
}

impl BareLoop {
    /// Runs the body `rounds` times; operations a second.
    pub fn rate(&mut self, rounds: u64) -> f64 {
        let start = Instant::now();
        for _ in 0..rounds {
            for op in std::hint::black_box(&self.program) {
                // SAFETY: the handlers are of a level that this host has.
                unsafe { (op.run)(&mut self.registers, op) };
            }
        }
        let seconds = start.elapsed().max(Duration::from_nanos(1)).as_secs_f64();
        rounds as f64 * BODY as f64 / seconds
    }

    /// A sum over the last result, so that the work cannot be left out.
    pub fn checksum(&self) -> f32 {
        self.registers[22].0.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_computes_the_same() {
        let run = |level| {
            let mut bare = BareLoop::new(level);
            bare.rate(3);
            bare.checksum()
        };
        let narrow = run(Isa::Baseline);
        for level in Isa::ALL {
            assert_eq!(run(level), narrow, "{level:?}");
        }
        assert!(narrow.is_finite() && narrow != 0.0);
    }
}
