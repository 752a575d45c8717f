//! What a real GPU did with a kernel: the rows of `h200.json` by the names that Nsight Compute gives its counters.

use serde_json::Value;
use std::collections::BTreeMap;

/// One kernel's measurements.
#[derive(Clone, Copy, Debug)]
pub struct Truth<'a> {
    row: &'a Value,
}

impl<'a> Truth<'a> {
    /// The row of a kernel in the table of results.
    pub fn of(results: &'a Value, kernel: &str) -> Truth<'a> {
        Truth { row: &results[kernel] }
    }

    /// Elapsed cycles: the mean of the measured launches.
    pub fn cycles(&self) -> Option<f64> {
        let list: Vec<f64> = self.row["cycles"].as_array()?.iter().filter_map(Value::as_f64).collect();
        let is_usable = !list.is_empty() && list.iter().all(|c| *c > 0.0);
        is_usable.then(|| list.iter().sum::<f64>() / list.len() as f64)
    }

    /// A counter.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.row["metrics"][name].as_f64()
    }

    /// Warp instructions executed.
    pub fn instructions(&self) -> Option<f64> {
        self.metric("smsp__inst_executed.sum")
    }

    /// Samples of warps by what they waited for, without those that the table has none of.
    pub fn stalls(&self) -> Option<Vec<(&'a str, f64)>> {
        let table = self.row["stalls"].as_object()?;
        Some(table.iter().filter_map(|(name, n)| Some((name.as_str(), n.as_f64()?))).collect())
    }

    /// Samples by source line (`file:line`) and what warps waited for there.
    pub fn lines(&self) -> Option<BTreeMap<(&'a str, &'a str), f64>> {
        let table = self.row["lines"].as_object()?;
        let mut samples = BTreeMap::new();
        for (line, row) in table {
            for (reason, n) in row.as_object()?.iter().filter(|(name, _)| *name != "inst") {
                samples.insert((line.as_str(), reason.as_str()), n.as_f64()?);
            }
        }
        Some(samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_are_read_by_name() {
        let table = json!({ "k": { "cycles": [10.0, 20.0], "metrics": { "m": 3.0 }, "stalls": { "wait": 2 },
                "lines": { "k.cu:3": { "inst": 9, "wait": 2 } } } });
        let truth = Truth::of(&table, "k");
        assert_eq!((truth.cycles(), truth.metric("m"), truth.metric("n")), (Some(15.0), Some(3.0), None));
        assert_eq!(truth.stalls(), Some(vec![("wait", 2.0)]));
        assert_eq!(truth.lines(), Some(BTreeMap::from([(("k.cu:3", "wait"), 2.0)])));
        assert_eq!(Truth::of(&table, "other").cycles(), None);
        assert_eq!(Truth::of(&table, "other").lines(), None);
    }
}
