//! What watching costs the host: seconds of a launch with a profile, and with samples, over those of one that nobody
//! watches. All three run in turn in one process, and the best of each counts.

use crate::compile_bench::seconds_on_core as on_core;
use crate::kernels::Kernel;
use driver::launch_file::LaunchFile;
use driver::{CompileOptions, LaunchOptions, Sampling, Session, Timing};
use machine::Config;
use serde_json::{Value, json};
use std::time::Instant;

/// Kernels that are measured.
pub const KERNELS: [&str; 3] = ["nbody", "matmul_tiled", "spmv_hash"];
/// How much longer a launch may take that is profiled, and one that is sampled.
pub const PROFILED: f64 = 1.15;
pub const SAMPLED: f64 = 1.10;
/// Cycles from sample to sample.
pub const PERIOD: u64 = 32;

/// One kernel: seconds by how it is watched.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub name: String,
    pub plain: f64,
    pub profiled: f64,
    pub sampled: f64,
}

impl Row {
    pub fn is_met(&self) -> bool {
        self.profiled <= PROFILED * self.plain && self.sampled <= SAMPLED * self.plain
    }

    pub fn line(&self) -> String {
        format!(
            "{:<16}{:>9.1} ms  profiled {:>+6.1} %  sampled every {PERIOD} cycles {:>+6.1} %  {}",
            self.name,
            1e3 * self.plain,
            100.0 * (self.profiled / self.plain - 1.0),
            100.0 * (self.sampled / self.plain - 1.0),
            if self.is_met() { "met" } else { "not met" }
        )
    }

    pub fn json(&self) -> Value {
        json!({
            "kernel": self.name, "seconds": self.plain, "profiled": self.profiled / self.plain,
            "sampled": self.sampled / self.plain, "met": self.is_met(),
        })
    }
}

/// What is said of a kernel that does not run, in words and as JSON.
pub fn not_run(name: &str, why: &str) -> (String, Value) {
    let first = why.lines().next().unwrap_or_default();
    (format!("{name:<16}  not run: {first}"), json!({ "kernel": name, "not_run": first }))
}

pub fn measure(kernel: &Kernel, config: &Config, repetitions: u32) -> Result<Row, String> {
    let file = LaunchFile::load(&kernel.path).map_err(|e| e.to_string())?;
    let session = Session::new(&file, &CompileOptions::default()).map_err(|e| e.to_string())?;
    let mut sampling = Sampling::default();
    sampling.settings.period = PERIOD;
    let mut best = [f64::INFINITY; 3];
    for _ in 0..repetitions.max(1) {
        for (way, best) in best.iter_mut().enumerate() {
            session.fill().map_err(|e| e.to_string())?;
            let timing = Timing {
                cold: true,
                detail: way == 1,
                sampling: (way == 2).then_some(&sampling),
                ..Timing::new(config)
            };
            let options = LaunchOptions { threads: 1, timing: Some(timing), ..LaunchOptions::default() };
            let (start, clock) = (on_core(), Instant::now());
            for number in 0..file.launches.len() {
                session.launch(number, &options).map_err(|e| e.to_string())?;
            }
            // What else the host does is not the launch's fault.
            let seconds = start.zip(on_core()).map_or(clock.elapsed().as_secs_f64(), |(a, b)| b - a);
            *best = best.min(seconds);
        }
    }
    Ok(Row { name: kernel.name.clone(), plain: best[0], profiled: best[1], sampled: best[2] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_ratios() {
        let row = Row { name: "k".into(), plain: 1.0, profiled: 1.14, sampled: 1.09 };
        assert!(row.is_met() && row.line().ends_with("  met"), "{}", row.line());
        assert_eq!(not_run("k", "no such thing\nat all").0, "k                 not run: no such thing");
        assert!(!Row { profiled: 1.2, ..row.clone() }.is_met() && !Row { sampled: 1.11, ..row }.is_met());
    }
}
