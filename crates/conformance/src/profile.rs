//! Profiles beside a real GPU's samples: by line, by reason and by both, and beside two profiles that know nothing.
//!
//! Distances are total variation: the share of samples that would have to move. A profile that knows nothing gives lines
//! samples in proportion to the instructions executed there, and always says `long_scoreboard`.
//!
//! Samples are compared with samples. The GPU's sampler takes one warp of each scheduler every 1,024 cycles (512 in one
//! kernel): in all 15 kernels there are as many samples as schedulers times active cycles over that, with one warp a
//! scheduler as with sixteen. So a cycle with few warps counts as much as one with many, and warps in the crowd at a launch's
//! start count less than those at its end. Our trace cells sample the same way, only more often.

use crate::truth::Truth;
use isa::Pc;
use isa::image::Image;
use machine::stall::{STALLS, Stall, StallCycles};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use trace::distance::{Weights, total_variation};

/// Warp-cycles, or samples, by source line and reason.
pub type Lines = BTreeMap<String, StallCycles>;

/// Adds the warp-cycles of a launch, by instruction, to its source lines: `file:line` of the innermost function.
pub fn add_lines(lines: &mut Lines, image: &Image, stalls: &[StallCycles]) {
    for (pc, row) in stalls.iter().enumerate().filter(|(_, row)| row.iter().any(|n| *n > 0)) {
        let place = image.place(Pc(pc as u32));
        let name = place.frames.first().map_or_else(String::new, |(file, line, _)| {
            format!("{}:{line}", file.rsplit(['/', '\\']).next().unwrap_or(file))
        });
        let sum = lines.entry(name).or_insert([0; STALLS]);
        sum.iter_mut().zip(row).for_each(|(sum, n)| *sum += n);
    }
}

/// Adds what another launch had.
pub fn add(lines: &mut Lines, more: &Lines) {
    for (line, row) in more {
        let sum = lines.entry(line.clone()).or_insert([0; STALLS]);
        sum.iter_mut().zip(row).for_each(|(sum, n)| *sum += n);
    }
}

/// Distances of a profile to the GPU's.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Distances {
    pub line: f64,
    pub reason: f64,
    pub both: f64,
}

/// One kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub name: String,
    pub ours: Distances,
    pub trivial: Distances,
    /// Our top line, the GPU's, and the GPU's samples on ours over those on its own.
    pub top: (String, String, f64),
    /// Share of the samples by line, ours and the GPU's, the largest first.
    pub lines: Vec<(String, f64, f64)>,
    /// Share by reason.
    pub reasons: Vec<(String, f64, f64)>,
}

/// A top line agrees if the GPU gives it at least this share of its own top line's samples.
const TOP: f64 = 0.9;

/// Sums over a part of the keys.
fn by<K: Ord, N: Ord>(all: &Weights<K>, part: impl Fn(&K) -> N) -> Weights<N> {
    let mut out = Weights::new();
    for (k, n) in all {
        *out.entry(part(k)).or_insert(0.0) += n;
    }
    out
}

fn shares(ours: &Weights<String>, theirs: &Weights<String>) -> Vec<(String, f64, f64)> {
    let all = (ours.values().sum::<f64>().max(1.0), theirs.values().sum::<f64>().max(1.0));
    let of = |w: &Weights<String>, k: &String| w.get(k).copied().unwrap_or(0.0);
    let names: std::collections::BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let mut list: Vec<(String, f64, f64)> =
        names.into_iter().map(|k| (k.clone(), of(ours, k) / all.0, of(theirs, k) / all.1)).collect();
    list.sort_by(|a, b| b.1.max(b.2).total_cmp(&a.1.max(a.2)).then(a.0.cmp(&b.0)));
    list
}

impl Row {
    /// From the warp-cycles by line and the samples; `None` where the GPU's samples by line are not known.
    pub fn new(name: &str, lines: &Lines, samples: &Lines, truth: Truth<'_>) -> Option<Row> {
        let their_samples = truth.lines()?;
        let theirs: Weights<(String, String)> =
            their_samples.iter().map(|((l, r), n)| ((l.to_string(), r.to_string()), *n)).collect();
        let mut ours: Weights<(String, String)> = Weights::new();
        let mut known_nothing: Weights<(String, String)> = Weights::new();
        for (line, row) in samples {
            for stall in Stall::ALL.into_iter().filter(|s| row[*s as usize] > 0) {
                ours.insert((line.clone(), stall.name().to_owned()), row[stall as usize] as f64);
            }
        }
        for (line, row) in lines {
            let executed = row[Stall::Selected as usize] as f64;
            known_nothing.insert((line.clone(), Stall::LongScoreboard.name().to_owned()), executed);
        }
        let line = |w: &Weights<(String, String)>| by(w, |k| k.0.clone());
        let reason = |w: &Weights<(String, String)>| by(w, |k| k.1.clone());
        let distances = |w: &Weights<(String, String)>| Distances {
            line: total_variation(&line(w), &line(&theirs)),
            reason: total_variation(&reason(w), &reason(&theirs)),
            both: total_variation(w, &theirs),
        };
        let top = |w: &Weights<String>| {
            let best = w.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
            best.map(|(k, n)| (k.clone(), *n)).unwrap_or_default()
        };
        let (ours_top, theirs_top) = (top(&line(&ours)), top(&line(&theirs)));
        let there = line(&theirs).get(&ours_top.0).copied().unwrap_or(0.0);
        Some(Row {
            name: name.to_owned(),
            ours: distances(&ours),
            trivial: distances(&known_nothing),
            top: (ours_top.0, theirs_top.0, there / theirs_top.1.max(1.0)),
            lines: shares(&line(&ours), &line(&theirs)),
            reasons: shares(&reason(&ours), &reason(&theirs)),
        })
    }

    pub fn top_agrees(&self) -> bool {
        self.top.2 >= TOP
    }

    pub fn line(&self) -> String {
        let (o, t) = (&self.ours, &self.trivial);
        format!(
            "{:<24}{:>7.3} ({:.3}){:>7.3} ({:.3}){:>7.3} ({:.3})  {}",
            self.name,
            o.line,
            t.line,
            o.reason,
            t.reason,
            o.both,
            t.both,
            match self.top_agrees() {
                true => self.top.0.clone(),
                false => format!("{} where the GPU has {}", self.top.0, self.top.1),
            }
        )
    }

    /// The lines and reasons that are farthest from the GPU's.
    pub fn detail(&self) -> String {
        let mut out = String::new();
        let mut put = |list: &[(String, f64, f64)]| {
            for (name, ours, theirs) in list.iter().filter(|(_, a, b)| (a - b).abs() >= 0.02).take(8) {
                let name = if name.is_empty() { "no line" } else { name };
                let _ = writeln!(
                    out,
                    "    {name:<32} {:>5.1} % {:>5.1} % {:>+6.1}",
                    100.0 * ours,
                    100.0 * theirs,
                    100.0 * (ours - theirs)
                );
            }
        };
        put(&self.lines);
        put(&self.reasons);
        out
    }

    pub fn json(&self) -> Value {
        let distances = |d: &Distances| json!({ "line": d.line, "reason": d.reason, "both": d.both });
        json!({
            "kernel": self.name, "distance": distances(&self.ours), "trivial": distances(&self.trivial),
            "top_line": self.top.0, "h200_top_line": self.top.1, "top_agrees": self.top_agrees(),
        })
    }
}

/// The heading above the rows.
pub fn head() -> String {
    format!("{:<24}{:>15}{:>15}{:>15}  top line", "distance (trivial)", "by line", "by reason", "by both")
}

/// Means over kernels.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Summary {
    pub ours: Distances,
    pub trivial: Distances,
    pub top: usize,
    pub kernels: usize,
}

impl Summary {
    pub fn new(rows: &[Row]) -> Summary {
        let mean = |of: &dyn Fn(&Row) -> f64| rows.iter().map(of).sum::<f64>() / rows.len().max(1) as f64;
        Summary {
            ours: Distances {
                line: mean(&|r| r.ours.line),
                reason: mean(&|r| r.ours.reason),
                both: mean(&|r| r.ours.both),
            },
            trivial: Distances {
                line: mean(&|r| r.trivial.line),
                reason: mean(&|r| r.trivial.reason),
                both: mean(&|r| r.trivial.both),
            },
            top: rows.iter().filter(|r| r.top_agrees()).count(),
            kernels: rows.len(),
        }
    }

    pub fn text(&self) -> String {
        let (o, t) = (&self.ours, &self.trivial);
        format!(
            "profile: line {:.3} (trivial {:.3}), reason {:.3} (trivial {:.3}), both {:.3} (trivial {:.3}), top line {} of {}",
            o.line, t.line, o.reason, t.reason, o.both, t.both, self.top, self.kernels
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_of_shares() {
        let table = json!({ "k": { "lines": {
            "k.cu:1": { "inst": 100, "wait": 30, "selected": 20 },
            "k.cu:2": { "inst": 1, "long_scoreboard": 50 },
        } } });
        let mut lines = Lines::new();
        let mut one = [0; STALLS];
        (one[Stall::Wait as usize], one[Stall::Selected as usize]) = (5000, 2000);
        lines.insert("k.cu:1".into(), one);
        let mut two = [0; STALLS];
        (two[Stall::LongScoreboard as usize], two[Stall::Selected as usize]) = (3000, 0);
        lines.insert("k.cu:2".into(), two);
        let row = Row::new("k", &lines, &lines, Truth::of(&table, "k")).expect("samples");
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        near(row.ours.line, 0.2);
        near(row.ours.reason, 0.2);
        near(row.ours.both, 0.2);
        near(row.trivial.line, 0.5);
        near(row.trivial.reason, 0.5);
        near(row.trivial.both, 1.0);
        assert!(row.top_agrees(), "a tie");
        let summary = Summary::new(&[row]);
        assert!(summary.text().ends_with("top line 1 of 1"), "{}", summary.text());
        assert!(Row::new("other", &lines, &lines, Truth::of(&table, "other")).is_none());
    }
}
