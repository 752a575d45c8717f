//! Samples of trace cells, as `warploom profile` is asked for them: registers, filters, and replays for more.

use crate::End;
use driver::machine::sm::trace_cell::{Drain, Event, Settings};
use driver::timing::{EVENT_BUFFER, Sampled};
use driver::{Capture, LaunchOptions, LaunchStats, Problem, Problems, Sampling, Timing};
use serde::{Deserialize, Serialize};
use trace::record::{Encoding, Form};

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
enum Path {
    /// A path of its own: the program does not notice.
    Own,
    /// Through the load-store units: the program is slowed down, and the profile says by how much.
    LoadStore,
    /// The performance monitor's stream.
    Stream,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
enum Of {
    Cycles,
    Misses,
    Branches,
    Calls,
    Barriers,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
enum Reasons {
    /// All that hold, a bit each.
    Vector,
    /// The first that holds, in 6 bits.
    Index6,
    /// The first that holds, in 4 bits.
    Index4,
}

/// What the trace cells are told.
#[derive(clap::Args, Clone, Serialize, Deserialize)]
#[command(next_help_heading = "Samples of the trace cells")]
pub struct Options {
    /// Let the SMs' trace cells take a sample every N cycles (or events), beside the exact profile.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    sample: Option<u32>,
    /// What is counted from sample to sample.
    #[arg(long, value_enum, default_value = "cycles", requires = "sample")]
    sample_by: Of,
    /// One warp in turn, not all at once.
    #[arg(long, requires = "sample")]
    sample_in_turn: bool,
    /// The way of the records to memory.
    #[arg(long, value_enum, default_value = "own", requires = "sample")]
    sample_path: Path,
    /// How records tell why a warp waits.
    #[arg(long, value_enum, default_value = "vector", requires = "sample")]
    sample_reasons: Reasons,
    /// Only these SMs: numbers and ranges, such as 0-3,7.
    #[arg(long, value_name = "LIST", requires = "sample")]
    sample_sms: Option<String>,
    /// Only CTAs with these numbers: FIRST-LAST.
    #[arg(long, value_name = "RANGE", requires = "sample")]
    sample_ctas: Option<String>,
    /// Only cycles FIRST-LAST since the launch began.
    #[arg(long, value_name = "RANGE", requires = "sample")]
    sample_cycles: Option<String>,
    /// Replay the program until there are this many samples of its launches together.
    #[arg(long, value_name = "COUNT", requires = "sample", default_value_t = 0)]
    samples: u64,
}

/// Replays at most.
const MOST_RUNS: usize = 64;

/// Numbers and ranges of them.
fn ranges(text: &str) -> Option<Vec<(u64, u64)>> {
    let one = |part: &str| {
        let (a, b) = part.split_once('-').unwrap_or((part, part));
        let (a, b) = (a.trim().parse().ok()?, b.trim().parse().ok()?);
        (a <= b).then_some((a, b))
    };
    text.split(',').map(one).collect()
}

/// SMs by their numbers, as an option gives them.
pub fn sms(option: &str, text: &str) -> Result<Vec<u32>, Problems> {
    let wrong =
        || Problem::new(format!("{option} takes numbers and ranges, not `{text}`")).help("such as 0-3,7");
    let list = ranges(text).ok_or_else(wrong)?;
    let most = u64::from(trace::record::MAX_SMS) - 1;
    Ok(list.into_iter().flat_map(|(a, b)| a..=b.min(most)).map(|n| n as u32).collect())
}

fn range(option: &str, text: &Option<String>) -> Result<Option<(u64, u64)>, Problems> {
    let Some(text) = text else { return Ok(None) };
    match ranges(text).as_deref() {
        Some([one]) => Ok(Some(*one)),
        _ => Err(Problem::new(format!("--{option} takes a range, not `{text}`"))
            .help("write FIRST-LAST")
            .into()),
    }
}

impl Options {
    /// What the cells collect; `None` where nothing is asked for.
    pub fn sampling(&self) -> Result<Option<Sampling>, End> {
        let Some(period) = self.sample else { return Ok(None) };
        let mut settings = Settings {
            event: match self.sample_by {
                Of::Cycles => None,
                Of::Misses => Some(Event::CacheMiss),
                Of::Branches => Some(Event::Branch),
                Of::Calls => Some(Event::Call),
                Of::Barriers => Some(Event::Barrier),
            },
            in_turn: self.sample_in_turn,
            drain: match self.sample_path {
                Path::Own => Drain::Own,
                Path::LoadStore => Drain::LoadStore,
                Path::Stream => Drain::Stream,
            },
            period: period.into(),
            form: Form {
                encoding: match self.sample_reasons {
                    Reasons::Vector => Encoding::Vector,
                    Reasons::Index6 => Encoding::Index6,
                    Reasons::Index4 => Encoding::Index4,
                },
                ..Form::default()
            },
            ..Settings::default()
        };
        if let Some(text) = &self.sample_sms {
            settings.only(sms("--sample-sms", text)?);
        }
        if let Some(ctas) = range("sample-ctas", &self.sample_ctas)? {
            settings.ctas = ctas;
        }
        if let Some((first, last)) = range("sample-cycles", &self.sample_cycles)? {
            settings.window = (first, last.saturating_add(1));
        }
        Ok(Some(Sampling { settings, buffer_bytes: EVENT_BUFFER }))
    }

    /// The samples of every launch, with the cycles that taking them cost, replayed as often as asked for.
    pub fn collect(
        &self,
        sampling: &Sampling,
        capture: &Capture<'_>,
        first: &[LaunchStats],
        options: &LaunchOptions<'_>,
    ) -> Result<Vec<(Vec<Sampled>, i64)>, Problems> {
        let cycles = |stats: &LaunchStats| stats.report.as_ref().map_or(0, |r| r.cycles as i64);
        let own = |stats: &LaunchStats| stats.sampled.as_deref().cloned().into_iter().collect::<Vec<_>>();
        let mut found: Vec<(Vec<Sampled>, i64)> = first.iter().map(|stats| (own(stats), 0)).collect();
        let have =
            |found: &[(Vec<Sampled>, i64)]| found.iter().flat_map(|f| &f.0).map(|s| s.records).sum::<u64>();
        let runs = |found: &[(Vec<Sampled>, i64)]| found.first().map_or(0, |f| f.0.len());
        while runs(&found) == 0 || (have(&found) < self.samples && runs(&found) < MOST_RUNS) {
            let before = have(&found);
            let mut again = sampling.clone();
            // Other moments than before: a fraction of the period that never repeats.
            let run = runs(&found) as u64;
            again.settings.phase = ((run * 0x9e37_79b9) >> 8) % sampling.settings.period.max(1);
            let timing = options.timing.map(|t| Timing { sampling: Some(&again), ..t });
            let stats = capture
                .replay(&LaunchOptions { timing, ..*options })
                .map_err(|e| Problem::new(format!("the replay failed: {e}")))?;
            for (all, (once, stats)) in found.iter_mut().zip(first.iter().zip(&stats)) {
                all.0.extend(own(stats));
                all.1 = cycles(stats) - cycles(once);
            }
            if have(&found) == before {
                break;
            }
        }
        Ok(found)
    }
}

/// What a sample is taken of.
pub fn words(sampling: &Sampling) -> String {
    let s = &sampling.settings;
    let what = s.event.map_or("cycles", Event::name);
    format!(
        "every {} {what}{}",
        s.period,
        if s.in_turn { ", one warp of each scheduler in turn" } else { "" }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_numbers() {
        assert_eq!(ranges("0-3,7"), Some(vec![(0, 3), (7, 7)]));
        assert_eq!((ranges("3-1"), ranges("x"), ranges("")), (None, None, None));
    }
}
