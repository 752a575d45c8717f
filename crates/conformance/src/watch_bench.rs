//! What watching costs the host: seconds of a launch with a profile, and with samples, over those of one that nobody
//! watches. All three run in turn in one process, many times, and the median of the ratios counts: a host that does other things
//! too has fast and slow minutes.

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

/// Rounds that are measured for each one that is asked for.
const ROUNDS: u32 = 4;

/// One kernel: seconds where nobody watches, and how many times as long it takes where somebody does.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub name: String,
    pub plain: f64,
    pub profiled: f64,
    pub sampled: f64,
}

impl Row {
    pub fn is_met(&self) -> bool {
        self.profiled <= PROFILED && self.sampled <= SAMPLED
    }

    pub fn line(&self) -> String {
        format!(
            "{:<16}{:>9.1} ms  profiled {:>+6.1} %  sampled every {PERIOD} cycles {:>+6.1} %  {}",
            self.name,
            1e3 * self.plain,
            100.0 * (self.profiled - 1.0),
            100.0 * (self.sampled - 1.0),
            if self.is_met() { "met" } else { "not met" }
        )
    }

    pub fn json(&self) -> Value {
        json!({
            "kernel": self.name, "seconds": self.plain, "profiled": self.profiled,
            "sampled": self.sampled, "met": self.is_met(),
        })
    }
}

/// All kernels together, as one that runs for as long as they do.
pub fn together(rows: &[Row]) -> Row {
    let seconds = |of: &dyn Fn(&Row) -> f64| rows.iter().map(of).sum::<f64>();
    let plain = seconds(&|row| row.plain);
    Row {
        name: "together".into(),
        plain,
        profiled: seconds(&|row| row.plain * row.profiled) / plain,
        sampled: seconds(&|row| row.plain * row.sampled) / plain,
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
    let mut seconds: [Vec<f64>; 3] = Default::default();
    for round in 0..ROUNDS * repetitions.max(1) {
        for n in 0..seconds.len() {
            // Each comes first as often as the others.
            let way = (n + round as usize) % seconds.len();
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
            let taken = start.zip(on_core()).map_or(clock.elapsed().as_secs_f64(), |(a, b)| b - a);
            seconds[way].push(taken);
        }
    }
    let [plain, profiled, sampled] = seconds;
    let over_plain = |of: Vec<f64>| median(of.iter().zip(&plain).map(|(a, b)| a / b).collect());
    let (profiled, sampled) = (over_plain(profiled), over_plain(sampled));
    Ok(Row { name: kernel.name.clone(), plain: median(plain), profiled, sampled })
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied().unwrap_or(f64::NAN)
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
        assert_eq!(median(vec![9.0, 1.0, 3.0]), 3.0);
        let long = Row { name: "l".into(), plain: 3.0, profiled: 1.5, sampled: 1.0 };
        let all = together(&[Row { name: "s".into(), plain: 1.0, profiled: 1.0, sampled: 2.0 }, long]);
        assert_eq!((all.plain, all.profiled, all.sampled), (4.0, 1.375, 1.25));
    }
}
