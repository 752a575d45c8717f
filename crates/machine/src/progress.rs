//! How evenly the warps of a CTA progress: the spread between the most and the fewest instructions that its warps have
//! issued, sampled over time.

use serde::{Deserialize, Serialize};

/// Samples of a launch, of one SM or of all; they add up.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Cycles between two samples.
    pub interval: u64,
    /// For each sample, from the launch's start: spreads of all CTAs that were there, added up, and their number.
    pub samples: Vec<(u64, u64)>,
}

impl Progress {
    pub fn new(interval: u64) -> Progress {
        Progress { interval: interval.max(1), samples: Vec::new() }
    }

    /// A CTA's spread in a cycle since the launch's start.
    pub fn add(&mut self, cycle: u64, spread: u64) {
        let n = (cycle / self.interval) as usize;
        if self.samples.len() <= n {
            self.samples.resize(n + 1, (0, 0));
        }
        self.samples[n].0 += spread;
        self.samples[n].1 += 1;
    }

    pub fn merge(&mut self, other: &Progress) {
        self.interval = other.interval;
        if self.samples.len() < other.samples.len() {
            self.samples.resize(other.samples.len(), (0, 0));
        }
        for (own, more) in self.samples.iter_mut().zip(&other.samples) {
            own.0 += more.0;
            own.1 += more.1;
        }
    }

    /// The spread of an average CTA over all samples.
    pub fn mean(&self) -> f64 {
        let (sum, n) = self.samples.iter().fold((0, 0), |(s, n), x| (s + x.0, n + x.1));
        if n == 0 { 0.0 } else { sum as f64 / n as f64 }
    }

    /// At most so many points over time: cycle, and the spread of an average CTA; parts without CTAs are left out.
    pub fn points(&self, most: usize) -> Vec<(u64, f64)> {
        let step = self.samples.len().div_ceil(most.max(1)).max(1);
        let mut points = Vec::new();
        for (k, part) in self.samples.chunks(step).enumerate() {
            let (sum, n) = part.iter().fold((0, 0), |(s, n), x| (s + x.0, n + x.1));
            if n > 0 {
                points.push(((k * step) as u64 * self.interval, sum as f64 / n as f64));
            }
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_add_up() {
        let mut a = Progress::new(10);
        a.add(5, 4);
        a.add(25, 8);
        a.add(26, 2);
        let mut all = Progress::default();
        all.merge(&a);
        all.merge(&a);
        assert_eq!(all.samples, [(8, 2), (0, 0), (20, 4)]);
        assert_eq!(all.mean(), 28.0 / 6.0);
        assert_eq!(all.points(10), [(0, 4.0), (20, 5.0)]);
        assert_eq!(all.points(1), [(0, 28.0 / 6.0)]);
    }
}
