//! Numbers that users look at: what they are called, what they count, how they are written.

use serde::{Deserialize, Serialize};

/// What a number counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Count,
    Cycles,
    Seconds,
    Percent,
    Bytes,
    BytesPerSecond,
    /// A plain number with a fraction.
    Number,
}

/// A number that users look at.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Metric {
    /// Its name in JSON.
    pub name: String,
    /// What it is called in tables.
    pub label: String,
    pub unit: Unit,
    pub value: f64,
}

/// Metrics that belong together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Section {
    pub title: String,
    pub metrics: Vec<Metric>,
}

impl Section {
    pub fn new(title: &str) -> Section {
        Section { title: title.to_owned(), metrics: Vec::new() }
    }

    /// With one more metric.
    pub fn row(mut self, name: &str, label: &str, unit: Unit, value: f64) -> Section {
        self.metrics.push(Metric { name: name.to_owned(), label: label.to_owned(), unit, value });
        self
    }
}

impl Metric {
    /// The number as people write it, and its unit.
    pub fn shown(&self) -> (String, &'static str) {
        let v = self.value;
        match self.unit {
            Unit::Count => (thousands(v as u64), ""),
            Unit::Cycles => (thousands(v as u64), "cycles"),
            Unit::Seconds => seconds(v),
            Unit::Percent => (format!("{v:.1}"), "%"),
            Unit::Bytes => scaled(v, 1e3, ["B", "kB", "MB", "GB"]),
            Unit::BytesPerSecond => scaled(v, 1e3, ["B/s", "kB/s", "MB/s", "GB/s"]),
            Unit::Number => (format!("{v:.2}"), ""),
        }
    }
}

/// A time and its unit.
pub fn seconds(v: f64) -> (String, &'static str) {
    scaled(v * 1e9, 1e3, ["ns", "us", "ms", "s"])
}

/// A number in the largest unit that leaves something before the point.
fn scaled(mut v: f64, step: f64, units: [&'static str; 4]) -> (String, &'static str) {
    for unit in &units[..3] {
        if v < step {
            let digits = if v.fract() == 0.0 { 0 } else { 2 };
            return (format!("{v:.digits$}"), unit);
        }
        v /= step;
    }
    (format!("{v:.2}"), units[3])
}

/// `1234567` as `1,234,567`.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        let show = |unit, value| {
            let (number, unit) = Metric { name: String::new(), label: String::new(), unit, value }.shown();
            format!("{number} {unit}")
        };
        assert_eq!(show(Unit::Cycles, 1_234_567.0), "1,234,567 cycles");
        assert_eq!(show(Unit::Seconds, 4.1e-6), "4.10 us");
        assert_eq!(show(Unit::Percent, 12.34), "12.3 %");
        assert_eq!(show(Unit::Bytes, 16384.0), "16.38 kB");
        assert_eq!(show(Unit::Bytes, 128.0), "128 B");
        assert_eq!(show(Unit::BytesPerSecond, 4.5e12), "4500.00 GB/s");
        assert_eq!(thousands(12), "12");
    }
}
