//! Rules between the numbers of a configuration, beyond the limits of single keys.

use super::Config;

/// Collects the rules that a configuration breaks.
#[derive(Debug, Default)]
pub struct Checks {
    /// Path of the key, what is wrong, what to do.
    pub(super) broken: Vec<(&'static str, String, String)>,
}

impl Checks {
    /// A rule that the value of a key must keep; `message` goes on after the key's name.
    pub fn that(
        &mut self,
        path: &'static str,
        holds: bool,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        if !holds {
            self.broken.push((path, format!("`{path}` {}", message.into()), help.into()));
        }
    }

    pub fn power_of_two(&mut self, path: &'static str, value: u64) {
        self.that(path, value.is_power_of_two(), format!("is {value}"), "it must be a power of two");
    }

    pub fn multiple(&mut self, path: &'static str, value: u64, of: u64) {
        self.that(
            path,
            value.is_multiple_of(of),
            format!("is {value}"),
            format!("it must be a multiple of {of}"),
        );
    }

    pub fn not_empty<T>(&mut self, path: &'static str, values: &[T]) {
        self.that(path, !values.is_empty(), "is empty", "it needs at least one entry");
    }

    pub fn ascending(&mut self, path: &'static str, values: &[u32]) {
        let holds = values.windows(2).all(|w| w[0] < w[1]);
        self.that(path, holds, "is not in ascending order", "write the smallest first, each one once");
    }

    /// A number of units in a cycle, or of cycles for one, that servers can work with.
    pub fn rate(&mut self, path: &'static str, value: f64) {
        let holds = (1.0 / 64.0..=1_000_000.0).contains(&value);
        self.that(path, holds, format!("is {value}"), "it must be between 1/64 and a million");
    }

    /// A cache's bytes must make a power of two of sets.
    pub fn sets(&mut self, path: &'static str, bytes: u64, line: u64, ways: u64) {
        let set = (line * ways).max(1);
        self.that(
            path,
            bytes.is_multiple_of(set) && (bytes / set).is_power_of_two(),
            format!("is {bytes}"),
            format!("it must be {set} (a set of {ways} lines) times a power of two"),
        );
    }

    /// All rules. A block's own stand beside its specification.
    pub(super) fn all(&mut self, config: &Config) {
        self.not_empty("tpcs", &config.tpcs);
        self.that("tpcs", config.tpcs.len() <= 64, format!("has {} GPCs", config.tpcs.len()), "at most 64");
        self.that(
            "tpcs",
            config.sms() <= 4096,
            format!("and `sms_per_tpc` give {} SMs", config.sms()),
            "at most 4096",
        );
        // An answer must not come before the exchange point at which it is computed.
        let path =
            2 * (config.tpc.latency + config.crossbar.latency) + config.gpc.latency + config.l2.latency;
        self.that(
            "quantum",
            config.quantum <= path,
            format!("is {}", config.quantum),
            format!("it must be at most {path}, the shortest way from an SM to memory and back"),
        );
        crate::front::check(config, self);
        config.gpc.check(self);
        config.tpc.check(self);
        config.crossbar.check(self, config.tpcs.len(), config.l2.halves);
        config.l2.check(self);
        config.dram.check(self, config.l2.slices);
        config.sm.check(self);
    }
}
