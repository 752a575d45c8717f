//! Two profiles beside each other: what changed in the metrics, the reasons and the lines.

use crate::metric::Metric;
use crate::profile::Profile;
use crate::stall::Stall;
use std::collections::BTreeMap;

/// A number before and after.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Pair {
    pub before: f64,
    pub after: f64,
}

impl Pair {
    pub fn change(self) -> f64 {
        self.after - self.before
    }

    /// After over before; `None` where there was nothing before.
    pub fn ratio(self) -> Option<f64> {
        (self.before != 0.0).then(|| self.after / self.before)
    }
}

/// What two profiles of one kernel differ in.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Comparison {
    pub cycles: Pair,
    /// Metrics that both have, in the order of the second.
    pub metrics: Vec<(Metric, Pair)>,
    /// Warp-cycles by reason, the largest change first.
    pub reasons: Vec<(Stall, Pair)>,
    /// Warp-cycles by source line (`file:line`), its text in the second, the largest change first.
    pub lines: Vec<(String, String, Pair)>,
}

/// Warp-cycles by line, and the line's text.
fn lines(p: &Profile) -> BTreeMap<String, (f64, String)> {
    let mut out: BTreeMap<String, (f64, String)> = BTreeMap::new();
    for i in &p.code {
        let row = out.entry(p.place(i)).or_insert_with(|| {
            let text = i.frames.first().and_then(|f| p.files.get(f.file as usize)?.line(f.line));
            let text = text.or_else(|| p.ptx.line(i.ptx_line)).unwrap_or(&i.text);
            (0.0, text.trim().to_owned())
        });
        row.0 += i.cycles() as f64;
    }
    out
}

pub fn compare(before: &Profile, after: &Profile) -> Comparison {
    let cycles = Pair { before: before.cycles as f64, after: after.cycles as f64 };
    let metrics = after.sections.iter().flat_map(|s| &s.metrics);
    let metrics = metrics
        .filter_map(|m| Some((m.clone(), Pair { before: before.metric(&m.name)?, after: m.value })))
        .collect();
    let (a, b) = (before.stalls(), after.stalls());
    let mut reasons: Vec<(Stall, Pair)> = Stall::ALL
        .into_iter()
        .map(|s| (s, Pair { before: a[s as usize] as f64, after: b[s as usize] as f64 }))
        .filter(|(_, p)| p.before + p.after > 0.0)
        .collect();
    reasons.sort_by(|x, y| y.1.change().abs().total_cmp(&x.1.change().abs()));
    let (mut old, new) = (lines(before), lines(after));
    let mut rows: Vec<(String, String, Pair)> = new
        .into_iter()
        .map(|(place, (n, text))| {
            let before = old.remove(&place).map_or(0.0, |(n, _)| n);
            (place, text, Pair { before, after: n })
        })
        .collect();
    rows.extend(old.into_iter().map(|(place, (n, text))| (place, text, Pair { before: n, after: 0.0 })));
    rows.sort_by(|x, y| y.2.change().abs().total_cmp(&x.2.change().abs()).then(x.0.cmp(&y.0)));
    Comparison { cycles, metrics, reasons, lines: rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::sample;

    #[test]
    fn changes_are_found() {
        let before = sample();
        let mut after = sample();
        after.cycles = 2000;
        after.code[2].stalls[Stall::LongScoreboard as usize] = 10_000;
        after.code[3].frames[0].line = 9;
        let c = compare(&before, &after);
        assert_eq!(c.cycles.ratio(), Some(0.5));
        assert_eq!(c.reasons[0], (Stall::LongScoreboard, Pair { before: 30_000.0, after: 10_000.0 }));
        assert_eq!(c.lines[0].0, "inline.h:3");
        assert_eq!(c.lines[0].2.change(), -20_000.0);
        let moved: Vec<&str> = c.lines[1..3].iter().map(|l| l.0.as_str()).collect();
        assert_eq!(moved, ["scale.cu:2", "scale.cu:9"]);
        assert_eq!(c.metrics.len(), 7);
        assert!(compare(&before, &before).lines.iter().all(|l| l.2.change() == 0.0));
    }
}
