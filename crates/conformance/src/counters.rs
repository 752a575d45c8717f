//! Our counters against Nsight Compute's, one kernel and one counter at a time.
//!
//! A counter agrees when it is within [`TOLERANCE`] of the GPU's. Where the GPU counted next to nothing, a relative
//! difference says nothing: there it agrees when both are below [`SMALL`] of what the counter is a part of (hits of all
//! sectors, conflicts of all requests, bytes from DRAM of all that the second level handed out).

use crate::timed::Run;
use crate::timing::percent;
use crate::truth::Truth;
use serde_json::{Value, json};
use std::fmt::Write;

/// Share of the GPU's value that ours may be off by.
pub const TOLERANCE: f64 = 0.1;
/// Share of the whole below which both are next to nothing.
pub const SMALL: f64 = 0.01;

/// One counter that both machines have.
#[derive(Clone, Copy)]
pub struct Counter {
    pub name: &'static str,
    /// Nsight Compute's name.
    pub metric: &'static str,
    pub ours: fn(&Run) -> f64,
    /// What it is a part of, if anything: Nsight Compute's name, and the weight of one.
    pub whole: Option<(&'static str, f64)>,
}

const REQUESTS: &str = "l1tex__t_requests.sum";
const L1_SECTORS: &str = "l1tex__t_sectors.sum";
const L2_SECTORS: &str = "lts__t_sectors.sum";

/// What is compared.
pub const COUNTERS: [Counter; 8] = [
    Counter { name: "L1 requests", metric: REQUESTS, ours: |r| r.counters.l1_requests as f64, whole: None },
    Counter { name: "L1 sectors", metric: L1_SECTORS, ours: |r| r.counters.l1_sectors as f64, whole: None },
    Counter {
        name: "L1 hits",
        metric: "l1tex__t_sectors_lookup_hit.sum",
        ours: |r| r.counters.l1_hits as f64,
        whole: Some((L1_SECTORS, 1.0)),
    },
    Counter { name: "L2 sectors", metric: L2_SECTORS, ours: |r| r.counters.l2_sectors as f64, whole: None },
    Counter {
        name: "L2 hits",
        metric: "lts__t_sectors_lookup_hit.sum",
        ours: |r| r.counters.l2_hits as f64,
        whole: Some((L2_SECTORS, 1.0)),
    },
    Counter {
        name: "DRAM bytes read",
        metric: "dram__bytes_read.sum",
        ours: |r| r.counters.dram_read_bytes as f64,
        whole: Some((L2_SECTORS, machine::units::SECTOR as f64)),
    },
    Counter {
        name: "bank conflicts",
        metric: "l1tex__data_bank_conflicts_pipe_lsu.sum",
        ours: |r| r.counters.bank_conflicts as f64,
        whole: Some((REQUESTS, 1.0)),
    },
    Counter {
        name: "occupancy %",
        metric: "sm__warps_active.avg.pct_of_peak_sustained_active",
        ours: Run::occupancy_percent,
        whole: None,
    },
];

/// One counter of one kernel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cell {
    pub ours: f64,
    pub theirs: f64,
    pub agrees: bool,
}

impl Counter {
    /// Compares one kernel; `None` where the GPU's value is not known.
    pub fn compare(&self, run: &Run, truth: Truth<'_>) -> Option<Cell> {
        let (ours, theirs) = ((self.ours)(run), truth.metric(self.metric)?);
        let whole = self.whole.and_then(|(metric, weight)| Some(truth.metric(metric)? * weight));
        Some(Cell { ours, theirs, agrees: agrees(ours, theirs, whole) })
    }
}

fn agrees(ours: f64, theirs: f64, whole: Option<f64>) -> bool {
    (ours - theirs).abs() <= TOLERANCE * theirs || whole.is_some_and(|w| ours.max(theirs) <= SMALL * w)
}

/// One kernel, a cell for each of [`COUNTERS`].
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub name: String,
    pub cells: [Option<Cell>; COUNTERS.len()],
}

impl Row {
    pub fn new(name: &str, run: &Run, truth: Truth<'_>) -> Row {
        Row { name: name.to_owned(), cells: COUNTERS.map(|c| c.compare(run, truth)) }
    }

    pub fn json(&self) -> Value {
        let cells: serde_json::Map<String, Value> = COUNTERS
            .iter()
            .zip(&self.cells)
            .filter_map(|(c, cell)| {
                let cell = (*cell)?;
                let value = json!({ "ours": cell.ours, "h200": cell.theirs, "agrees": cell.agrees });
                Some((c.metric.to_owned(), value))
            })
            .collect();
        json!({ "kernel": self.name, "counters": cells })
    }
}

/// For each counter how many kernels agree, and of how many.
pub fn agreement(rows: &[Row]) -> [(usize, usize); COUNTERS.len()] {
    std::array::from_fn(|n| {
        let cells = rows.iter().filter_map(|r| r.cells[n]);
        cells.fold((0, 0), |(yes, all), cell| (yes + usize::from(cell.agrees), all + 1))
    })
}

/// A value as people read it: whole where it is large.
pub fn show(value: f64) -> String {
    if value >= 1000.0 || value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// A counter's lines, then `counter: n of N within 10 %` for each.
pub fn table(rows: &[Row]) -> String {
    let mut out = String::new();
    for (n, counter) in COUNTERS.iter().enumerate() {
        let _ = writeln!(out, "{} ({})", counter.name, counter.metric);
        for row in rows {
            let Some(cell) = row.cells[n] else { continue };
            let _ = writeln!(
                out,
                "    {:<20} {:>11} {:>11} {:>+9.1} % {}",
                row.name,
                show(cell.ours),
                show(cell.theirs),
                percent(cell.ours, cell.theirs),
                if cell.agrees { "" } else { "off" }
            );
        }
    }
    for (counter, (yes, all)) in COUNTERS.iter().zip(agreement(rows)) {
        let _ = writeln!(out, "{}: {yes} of {all} within {:.0} %", counter.name, TOLERANCE * 100.0);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_per_cent_or_next_to_nothing() {
        assert!(agrees(110.0, 100.0, None) && !agrees(111.0, 100.0, None));
        assert!(agrees(0.0, 0.0, None) && !agrees(1.0, 0.0, None));
        // Both below a hundredth of the whole.
        assert!(agrees(9.0, 0.0, Some(1000.0)) && agrees(0.0, 9.0, Some(1000.0)));
        assert!(!agrees(11.0, 0.0, Some(1000.0)) && !agrees(0.0, 11.0, Some(1000.0)));
    }

    #[test]
    fn the_table_counts_kernels() {
        let cell = |agrees| Some(Cell { ours: 1.0, theirs: 1.0, agrees });
        let mut cells = [None; COUNTERS.len()];
        cells[0] = cell(true);
        let a = Row { name: "a".into(), cells };
        cells[0] = cell(false);
        let b = Row { name: "b".into(), cells };
        assert_eq!(agreement(&[a.clone(), b.clone()])[0], (1, 2));
        assert!(table(&[a, b]).contains("L1 requests: 1 of 2 within 10 %"));
    }
}
