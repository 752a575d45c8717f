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

/// What is over the time of a launch that nobody watches.
fn percent(of: f64) -> String {
    format!("{:+.1} %", 100.0 * (of - 1.0))
}

impl Row {
    pub fn is_met(&self) -> bool {
        self.profiled <= PROFILED && self.sampled <= SAMPLED
    }

    pub fn line(&self) -> String {
        format!(
            "{:<16}{:>9.1} ms  profiled {:>8}  sampled every {PERIOD} cycles {:>8}  {}",
            self.name,
            1e3 * self.plain,
            percent(self.profiled),
            percent(self.sampled),
            if self.is_met() { "met" } else { "not met" }
        )
    }

    fn json(&self) -> Value {
        json!({
            "kernel": self.name, "seconds": self.plain, "profiled": self.profiled,
            "sampled": self.sampled, "met": self.is_met(),
        })
    }
}

/// All that was measured.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    pub rows: Vec<Row>,
    /// Kernels that do not run, and why.
    pub not_run: Vec<(String, String)>,
}

impl Report {
    /// Measures a kernel: what there is to say of it.
    pub fn add(&mut self, kernel: &Kernel, config: &Config, repetitions: u32) -> String {
        match measure(kernel, config, repetitions) {
            Ok(row) => {
                let line = row.line();
                self.rows.push(row);
                line
            }
            Err(why) => {
                let why = why.lines().next().unwrap_or_default().to_owned();
                let line = format!("{:<16}  not run: {why}", kernel.name);
                self.not_run.push((kernel.name.clone(), why));
                line
            }
        }
    }

    /// All kernels together, as one that runs for as long as they do.
    pub fn together(&self) -> Row {
        let seconds = |of: &dyn Fn(&Row) -> f64| self.rows.iter().map(of).sum::<f64>();
        let plain = seconds(&|row| row.plain);
        Row {
            name: "together".into(),
            plain,
            profiled: seconds(&|row| row.plain * row.profiled) / plain,
            sampled: seconds(&|row| row.plain * row.sampled) / plain,
        }
    }

    /// Whether each kernel is within the limits.
    pub fn is_met(&self) -> bool {
        self.rows.iter().all(Row::is_met)
    }

    /// All of it in a table of Markdown.
    pub fn table(&self) -> String {
        let mut out = format!(
            "| kernel | nobody watches, ms | exact profile | samples every {PERIOD} cycles | met |\n\
             | --- | --- | --- | --- | --- |\n| target | | {} | {} | |\n",
            percent(PROFILED),
            percent(SAMPLED)
        );
        let line = |r: &Row| {
            let (profiled, sampled) = (percent(r.profiled), percent(r.sampled));
            let met = if r.is_met() { "yes" } else { "no" };
            format!("| {} | {:.0} | {profiled} | {sampled} | {met} |\n", r.name, 1e3 * r.plain)
        };
        out.extend(self.rows.iter().map(line));
        out.extend(self.not_run.iter().map(|(name, _)| format!("| {name} | not run | | | |\n")));
        out + &line(&self.together())
    }

    pub fn json(&self) -> Value {
        let not_run = self.not_run.iter().map(|(name, why)| json!({ "kernel": name, "not_run": why }));
        json!({
            "kernels": self.rows.iter().map(Row::json).chain(not_run).collect::<Vec<_>>(),
            "together": self.together().json(),
            "targets": { "profiled": PROFILED, "sampled": SAMPLED },
            "met": self.is_met(),
        })
    }
}

fn measure(kernel: &Kernel, config: &Config, repetitions: u32) -> Result<Row, String> {
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

    fn row(name: &str, plain: f64, profiled: f64, sampled: f64) -> Row {
        Row { name: name.into(), plain, profiled, sampled }
    }

    #[test]
    fn every_kernel_is_asked_for_and_time_weighs_all_together() {
        let rows = vec![row("short", 1.0, 1.3, 1.2), row("long", 3.0, 1.08, 1.05)];
        let mut report = Report { rows, not_run: vec![("k".into(), "no such thing".into())] };
        assert!(report.rows[0].line().ends_with("  not met") && report.rows[1].line().ends_with("  met"));
        assert!(!report.is_met() && report.together().is_met());
        let table = report.table();
        for line in
            ["| short | 1000 | +30.0 % | +20.0 % | no |", "| together | 4000 | +13.5 % | +8.8 % | yes |"]
        {
            assert!(table.contains(line), "{table}");
        }
        let json = report.json();
        assert_eq!((&json["kernels"][0]["met"], &json["together"]["met"]), (&json!(false), &json!(true)));
        assert_eq!(json["kernels"][2]["not_run"], "no such thing");
        report.rows.remove(0);
        assert!(report.is_met());
        report.rows[0].sampled = 1.11;
        assert!(!report.is_met());
        assert_eq!(median(vec![9.0, 1.0, 3.0]), 3.0);
    }
}
