//! Runs generated kernels at every level of optimisation and with few registers, and compares what they leave in memory.
//!
//! Level 0 without contraction is the reference. With contraction (`fmad`) floats may differ from it by design: which
//! products fuse with which sums is decided on blocks after unrolling, so levels 2 and 3, which unroll, agree with each other,
//! level 1 agrees with them in kernels without loops, and level 0 does not fuse. Registers never matter.

use crate::generate::{self, CTAS, Kernel, OWN_BYTES, SUMS, THREADS, WORDS};
use driver::init::{splitmix, unit};
use driver::{CompileOptions, Config, Device, Dim, LaunchOptions, LaunchStats, Module, Source, Timing};
use std::collections::BTreeSet;

/// More than any generated kernel takes: one that takes more has lost its loop's end.
const MAX_INSTRUCTIONS: u64 = 20_000_000;

/// A way to compile that gave something else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    pub options: CompileOptions,
    pub reference: CompileOptions,
    pub how: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{} against {}: {}", show(&self.options), show(&self.reference), self.how)
    }
}

fn show(o: &CompileOptions) -> String {
    let registers = o.max_registers.map(|n| format!(", {n} registers")).unwrap_or_default();
    format!("level {}{}{registers}", o.opt_level, if o.fmad { " with fmad" } else { "" })
}

/// A way to compile.
pub const fn options(opt_level: u8, fmad: bool, max_registers: Option<u32>) -> CompileOptions {
    CompileOptions { opt_level, fmad, max_registers, phases: driver::compile::Phases::Textures }
}

/// Memory after a run: what threads own, then the sums.
pub fn run(text: &str, how: &CompileOptions) -> Result<Vec<u8>, String> {
    run_on(text, how, None)
}

/// The same, on a timed machine where there is one.
pub fn run_on(text: &str, how: &CompileOptions, config: Option<&Config>) -> Result<Vec<u8>, String> {
    Ok(run_timed(text, how, config.map(Timing::new), 1)?.0)
}

/// The same with everything that timing can be asked for, and what the launch did.
pub fn run_timed(
    text: &str,
    how: &CompileOptions,
    timing: Option<Timing<'_>>,
    threads: usize,
) -> Result<(Vec<u8>, LaunchStats), String> {
    let source = Source::new("generated.ptx", text.as_bytes());
    let image = driver::compile(&source, how).map_err(|p| format!("it does not compile: {p}"))?;
    let device = Device::with_memory(16 << 20).map_err(|e| e.to_string())?;
    let mut input = Vec::new();
    (0..u64::from(WORDS)).for_each(|i| input.extend((splitmix(5, i) as u32).to_le_bytes()));
    (0..u64::from(WORDS)).for_each(|i| input.extend((unit(splitmix(6, i)) as f32 * 8.0 - 4.0).to_le_bytes()));
    (0..u64::from(WORDS) / 2).for_each(|i| input.extend((unit(splitmix(7, i)) * 8.0 - 4.0).to_le_bytes()));
    let own = (THREADS * CTAS * OWN_BYTES) as usize;
    let mut memory: Vec<u8> = (0..own + SUMS as usize * 4).map(|i| (i % 251) as u8).collect();
    let inner = || -> Result<(u64, u64), Box<dyn std::error::Error>> {
        let input_at = device.alloc(input.len() as u64)?;
        let at = device.alloc(memory.len() as u64)?;
        device.write(input_at, &input)?;
        device.write(at, &memory)?;
        Ok((input_at, at))
    };
    let (input_at, at) = inner().map_err(|e| e.to_string())?;
    let module = Module::load(&device, image).map_err(|p| p.to_string())?;
    let dim = Dim { grid: [CTAS, 1, 1], block: [THREADS, 1, 1], shared_bytes: 0 };
    let launch = LaunchOptions {
        threads,
        max_instructions: Some(MAX_INSTRUCTIONS),
        timing,
        ..LaunchOptions::default()
    };
    let sums = at + own as u64;
    let args: [&[u8]; 5] = [
        &input_at.to_le_bytes(),
        &at.to_le_bytes(),
        &sums.to_le_bytes(),
        &6u32.to_le_bytes(),
        &13u32.to_le_bytes(),
    ];
    let stats = module.launch(&device, "kernel", dim, &args, &launch);
    let stats = stats.map_err(|e| format!("it ends with: {e}"))?;
    device.read(at, &mut memory).map_err(|e| e.to_string())?;
    Ok((memory, stats))
}

/// Where two memories differ first.
fn first_difference(a: &[u8], b: &[u8]) -> Option<String> {
    let n = a.iter().zip(b).position(|(x, y)| x != y)? / 4 * 4;
    let word = |m: &[u8]| m.get(n..n + 4).map_or(0, |w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
    let own = (THREADS * CTAS * OWN_BYTES) as usize;
    let place = match n.checked_sub(own) {
        Some(at) => format!("sum {}", at / 4),
        None => format!("thread {} byte {}", n / OWN_BYTES as usize, n % OWN_BYTES as usize),
    };
    Some(format!("{place} is {:#x}, not {:#x}", word(a), word(b)))
}

/// Compiles and runs a kernel in every way; the first difference. An `Err` is a kernel that level 0 does not run.
pub fn check(kernel: &Kernel) -> Result<Option<Difference>, String> {
    let mut groups: Vec<(CompileOptions, Vec<CompileOptions>)> = vec![(
        options(0, false, None),
        vec![
            options(1, false, None),
            options(2, false, None),
            options(3, false, None),
            options(3, false, Some(32)),
            options(3, false, Some(24)),
            options(0, false, Some(24)),
        ],
    )];
    if kernel.has_floats {
        let mut others = vec![options(2, true, None), options(3, true, Some(24))];
        if !kernel.has_loops {
            others.push(options(1, true, None));
        }
        groups.push((options(3, true, None), others));
    }
    for (reference, others) in groups {
        let expected = run(&kernel.text, &reference)?;
        for options in others {
            let how = match run(&kernel.text, &options) {
                Ok(memory) => first_difference(&memory, &expected),
                Err(why) => Some(why),
            };
            if let Some(how) = how {
                return Ok(Some(Difference { options, reference, how }));
            }
        }
    }
    Ok(None)
}

/// What is left of a kernel that differs when everything is gone that can go.
pub fn minimise(seed: u64) -> (Kernel, Option<Difference>) {
    let mut skip = BTreeSet::new();
    let mut kernel = generate::kernel(seed);
    let mut found = check(&kernel).ok().flatten();
    let mut step = kernel.statements.len() / 2;
    while step > 0 {
        let mut at = 0;
        while at < kernel.statements.len() {
            let mut fewer = skip.clone();
            fewer.extend(kernel.statements[at..].iter().take(step));
            let candidate = generate::kernel_without(seed, &fewer);
            match check(&candidate) {
                Ok(Some(difference)) => (skip, kernel, found) = (fewer, candidate, Some(difference)),
                _ => at += step,
            }
        }
        step /= 2;
    }
    (kernel, found)
}
