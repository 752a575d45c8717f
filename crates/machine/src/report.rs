//! What a timed launch is told as: counters, stalls and the metrics that follow from them, each with its formula.
//!
//! Metrics come in the order in which people who know Nsight Compute look: speed of light, launch and occupancy, schedulers, warp
//! states, compute and memory workload. The formulas stand here and nowhere else.

use crate::Config;
use crate::counters::Counters;
use crate::distribution::Occupancy;
use crate::stall::{STALLS, Stall, StallCycles};
use crate::units::SECTOR;
use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};
pub use trace::metric::{Metric, Section, Unit};

/// Size of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Shape {
    pub ctas: u64,
    /// Threads of a CTA.
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Shared bytes of a CTA, static and dynamic.
    pub shared_bytes: u32,
}

/// All about a timed launch.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Name of the configuration.
    pub config: String,
    pub shape: Shape,
    /// From the launch's command to its completion.
    pub cycles: u64,
    pub counters: Counters,
    /// Warp-cycles by reason, for every instruction of the program.
    pub stalls: Vec<StallCycles>,
    pub occupancy: Occupancy,
    pub sections: Vec<Section>,
    /// Other launches ran at the same time: what the machine counts for all of them is not here.
    pub is_part: bool,
}

/// Metrics of what all launches share, which say nothing of one of several.
const OF_ALL: [&str; 4] =
    ["memory_throughput_pct", "eligible_warps_per_scheduler", "no_eligible_pct", "coalesced_requests"];

/// Whether a counter or metric is one of those: what schedulers do for any warp, and all behind the SMs.
fn is_of_all(name: &str) -> bool {
    OF_ALL.contains(&name)
        || ["eligible_", "l2_", "dram_", "tlb_"].iter().any(|start| name.starts_with(start))
}

/// A share, 0 of nothing.
fn per(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn percent(part: f64, whole: f64) -> f64 {
    100.0 * per(part, whole)
}

impl Report {
    pub fn new(
        config: &Config,
        shape: Shape,
        cycles: u64,
        counters: Counters,
        stalls: Vec<StallCycles>,
        occupancy: Occupancy,
    ) -> Report {
        let mut report = Report {
            config: config.name.clone(),
            shape,
            cycles,
            counters,
            stalls,
            occupancy,
            sections: Vec::new(),
            is_part: false,
        };
        report.sections = vec![
            report.speed_of_light(config),
            report.launch(config),
            report.schedulers(config),
            report.warp_states(),
            report.compute(config),
            report.memory(config),
        ];
        report
    }

    /// The same of one of several launches that ran at once: what is counted for all together is left out.
    pub fn of_part(mut self) -> Report {
        self.is_part = true;
        self.sections.iter_mut().for_each(|s| s.metrics.retain(|m| !is_of_all(&m.name)));
        self
    }

    /// Warp-cycles by reason, over all instructions.
    pub fn stall_cycles(&self) -> StallCycles {
        let mut sum = [0; STALLS];
        for at in &self.stalls {
            for (sum, n) in sum.iter_mut().zip(at) {
                *sum += n;
            }
        }
        sum
    }

    /// A metric's value.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let mut all = self.sections.iter().flat_map(|s| &s.metrics);
        all.find(|m| m.name == name).map(|m| m.value)
    }

    fn seconds(&self, config: &Config) -> f64 {
        self.cycles as f64 / (f64::from(config.clock_mhz) * 1e6)
    }

    /// Cycles of all schedulers, from the launch's command to its completion.
    fn scheduler_cycles(&self, config: &Config) -> f64 {
        self.cycles as f64 * f64::from(config.sms() * config.sm.sub_cores)
    }

    /// Busy share of the pipes that run a kind of instruction, in percent of all cycles.
    fn pipe(&self, config: &Config, kinds: &[&str], instructions: u64) -> f64 {
        let lanes: u32 = config
            .sm
            .pipes
            .iter()
            .filter(|p| p.runs.iter().any(|k| kinds.contains(&k.as_str())))
            .map(|p| p.lanes)
            .sum();
        percent(32.0 * instructions as f64, f64::from(lanes) * self.scheduler_cycles(config))
    }

    fn pipes(&self, config: &Config) -> [(&'static str, &'static str, f64); 7] {
        let c = &self.counters;
        [
            ("alu", "ALU pipe", self.pipe(config, &["alu"], c.pipe_alu)),
            ("fma", "FMA pipe", self.pipe(config, &["fma", "imad"], c.pipe_fma)),
            ("half", "Half-precision pipe", self.pipe(config, &["half"], c.pipe_half)),
            ("fp64", "Double-precision pipe", self.pipe(config, &["fp64"], c.pipe_fp64)),
            ("xu", "Special-function pipe", self.pipe(config, &["xu"], c.pipe_xu)),
            ("uniform", "Uniform pipe", self.pipe(config, &["uniform"], c.pipe_uniform)),
            ("tensor", "Tensor pipe", self.pipe(config, &["tensor"], c.pipe_tensor)),
        ]
    }

    /// Scheduler cycles that issued.
    fn issue_percent(&self, config: &Config) -> f64 {
        percent(self.counters.issue_cycles as f64, self.scheduler_cycles(config))
    }

    /// The first level moves four sectors, or serves one pass through the banks, a cycle and SM.
    fn l1_percent(&self, config: &Config) -> f64 {
        let c = &self.counters;
        let passes = c.l1_sectors as f64 / 4.0 + (c.shared_requests + c.bank_conflicts) as f64;
        percent(passes, self.cycles as f64 * f64::from(config.sms()))
    }

    fn l2_percent(&self, config: &Config) -> f64 {
        let bytes = (self.counters.l2_sectors * SECTOR) as f64;
        percent(bytes, self.cycles as f64 * f64::from(config.l2.slices) * config.l2.bytes_per_cycle)
    }

    fn dram_bytes(&self) -> f64 {
        (self.counters.dram_read_bytes + self.counters.dram_write_bytes) as f64
    }

    fn dram_percent(&self, config: &Config) -> f64 {
        let peak = f64::from(config.dram.channels) * config.dram.bytes_per_cycle;
        percent(self.dram_bytes(), self.cycles as f64 * peak)
    }

    fn speed_of_light(&self, config: &Config) -> Section {
        let busiest = self.pipes(config).into_iter().map(|(_, _, share)| share).fold(0.0, f64::max);
        let compute = busiest.max(self.issue_percent(config));
        let memory = [self.l1_percent(config), self.l2_percent(config), self.dram_percent(config)];
        Section::new("Speed of light")
            .row("cycles", "Elapsed cycles", Unit::Cycles, self.cycles as f64)
            .row("seconds", "Duration", Unit::Seconds, self.seconds(config))
            .row("compute_throughput_pct", "Compute throughput", Unit::Percent, compute)
            .row(
                "memory_throughput_pct",
                "Memory throughput",
                Unit::Percent,
                memory.into_iter().fold(0.0, f64::max),
            )
            .row("l1_throughput_pct", "L1 throughput", Unit::Percent, memory[0])
            .row("l2_throughput_pct", "L2 throughput", Unit::Percent, memory[1])
            .row("dram_throughput_pct", "DRAM throughput", Unit::Percent, memory[2])
    }

    fn launch(&self, config: &Config) -> Section {
        let o = &self.occupancy;
        let slots = f64::from(config.sms() * o.ctas_per_sm);
        let c = &self.counters;
        // Warps resident in an average cycle in which the SM held any.
        let resident = per(c.warp_cycles as f64, c.sm_active_cycles as f64);
        Section::new("Launch and occupancy")
            .row("ctas", "CTAs", Unit::Count, self.shape.ctas as f64)
            .row("threads_per_cta", "Threads of a CTA", Unit::Count, self.shape.threads.into())
            .row("registers_per_thread", "Registers of a thread", Unit::Count, self.shape.registers.into())
            .row(
                "shared_bytes_per_cta",
                "Shared memory of a CTA",
                Unit::Bytes,
                self.shape.shared_bytes.into(),
            )
            .row("shared_split_bytes", "Shared memory of an SM", Unit::Bytes, o.shared_split.into())
            .row("ctas_per_sm", "CTAs that fit an SM", Unit::Count, o.ctas_per_sm.into())
            .row("waves", "Waves of CTAs", Unit::Number, per(self.shape.ctas as f64, slots))
            .row("theoretical_occupancy_pct", "Theoretical occupancy", Unit::Percent, o.percent())
            .row(
                "achieved_occupancy_pct",
                "Achieved occupancy",
                Unit::Percent,
                percent(resident, config.sm.warps.into()),
            )
    }

    fn schedulers(&self, config: &Config) -> Section {
        let c = &self.counters;
        let active = c.sm_active_cycles as f64 * f64::from(config.sm.sub_cores);
        Section::new("Scheduler statistics")
            .row("warp_instructions", "Warp instructions", Unit::Count, c.warp_instructions as f64)
            .row(
                "ipc_active",
                "Instructions a cycle, active SMs",
                Unit::Number,
                per(c.warp_instructions as f64, c.sm_active_cycles as f64),
            )
            .row(
                "ipc_elapsed",
                "Instructions a cycle and SM",
                Unit::Number,
                per(c.warp_instructions as f64, self.cycles as f64 * f64::from(config.sms())),
            )
            .row(
                "active_warps_per_scheduler",
                "Active warps of a scheduler",
                Unit::Number,
                per(c.warp_cycles as f64, active),
            )
            .row(
                "eligible_warps_per_scheduler",
                "Eligible warps of a scheduler",
                Unit::Number,
                per(c.eligible_warps as f64, active),
            )
            .row(
                "issue_slots_busy_pct",
                "Issue slots busy",
                Unit::Percent,
                percent(c.issue_cycles as f64, active),
            )
            .row(
                "no_eligible_pct",
                "No eligible warp",
                Unit::Percent,
                percent((active - c.eligible_cycles as f64).max(0.0), active),
            )
    }

    fn warp_states(&self) -> Section {
        let issued = self.counters.warp_instructions as f64;
        let stalls = self.stall_cycles();
        let all: u64 = stalls.iter().sum();
        let threads = per(self.counters.thread_instructions as f64, issued);
        let mut section = Section::new("Warp states")
            .row(
                "warp_cycles_per_instruction",
                "Warp cycles of an instruction",
                Unit::Number,
                per(all as f64, issued),
            )
            .row("active_threads_per_warp", "Active threads of an instruction", Unit::Number, threads);
        // The largest first; those of one size in the order of the list.
        let mut order: Vec<Stall> = Stall::ALL.into_iter().filter(|&s| stalls[s as usize] > 0).collect();
        order.sort_by_key(|&s| std::cmp::Reverse(stalls[s as usize]));
        for stall in order {
            let name = format!("stall_{}", stall.name());
            section =
                section.row(&name, stall.name(), Unit::Number, per(stalls[stall as usize] as f64, issued));
        }
        section
    }

    fn compute(&self, config: &Config) -> Section {
        let mut section = Section::new("Compute workload");
        for (name, label, share) in self.pipes(config) {
            section = section.row(&format!("pipe_{name}_pct"), label, Unit::Percent, share);
        }
        section
    }

    fn memory(&self, config: &Config) -> Section {
        let c = &self.counters;
        let count = |n: u64| n as f64;
        Section::new("Memory workload")
            .row("l1_requests", "L1 requests", Unit::Count, count(c.l1_requests))
            .row("l1_sectors", "L1 sectors", Unit::Count, count(c.l1_sectors))
            .row(
                "l1_sectors_per_request",
                "Sectors of a request",
                Unit::Number,
                per(count(c.l1_sectors), count(c.l1_requests)),
            )
            .row("l1_hit_pct", "L1 hit rate", Unit::Percent, percent(count(c.l1_hits), count(c.l1_sectors)))
            .row("shared_requests", "Shared-memory requests", Unit::Count, count(c.shared_requests))
            .row("bank_conflicts", "Bank conflicts", Unit::Count, count(c.bank_conflicts))
            .row("l2_sectors", "L2 sectors", Unit::Count, count(c.l2_sectors))
            .row("l2_hit_pct", "L2 hit rate", Unit::Percent, percent(count(c.l2_hits), count(c.l2_sectors)))
            .row("l2_far_sectors", "L2 sectors from the far half", Unit::Count, count(c.l2_far_sectors))
            .row("dram_read_bytes", "DRAM read", Unit::Bytes, count(c.dram_read_bytes))
            .row("dram_write_bytes", "DRAM written", Unit::Bytes, count(c.dram_write_bytes))
            .row(
                "dram_bytes_per_second",
                "DRAM bandwidth",
                Unit::BytesPerSecond,
                per(self.dram_bytes(), self.seconds(config)),
            )
            .row(
                "dram_row_hit_pct",
                "DRAM row hits",
                Unit::Percent,
                percent(count(c.dram_row_hits), count(c.dram_accesses)),
            )
            .row(
                "constant_hit_pct",
                "Constant-cache hit rate",
                Unit::Percent,
                percent(
                    count(c.constant_requests.saturating_sub(c.constant_misses)),
                    count(c.constant_requests),
                ),
            )
            .row(
                "icache_hit_pct",
                "Instruction-cache hit rate",
                Unit::Percent,
                percent(count(c.icache_requests.saturating_sub(c.icache_misses)), count(c.icache_requests)),
            )
            .row(
                "tlb_hit_pct",
                "TLB hit rate",
                Unit::Percent,
                percent(count(c.tlb_requests.saturating_sub(c.tlb_misses)), count(c.tlb_requests)),
            )
    }
}

/// Names and values as a table.
struct Table<'a>(&'a dyn Fn() -> Vec<(&'a str, f64)>);

impl Serialize for Table<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = (self.0)();
        let mut map = serializer.serialize_map(Some(rows.len()))?;
        for (name, value) in rows {
            // Whole numbers look like whole numbers.
            if value.fract() == 0.0 && value.abs() < 9e15 {
                map.serialize_entry(name, &(value as i64))?;
            } else {
                map.serialize_entry(name, &value)?;
            }
        }
        map.end()
    }
}

impl Serialize for Report {
    /// Metrics, counters and stalls by name; of the instructions only those that held a warp up.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Report", 6)?;
        out.serialize_field("config", &self.config)?;
        out.serialize_field("cycles", &self.cycles)?;
        out.serialize_field("occupancy", &self.occupancy)?;
        let metrics =
            || self.sections.iter().flat_map(|s| &s.metrics).map(|m| (m.name.as_str(), m.value)).collect();
        out.serialize_field("metrics", &Table(&metrics))?;
        let counters = || {
            let all = self.counters.list().into_iter().filter(|(name, ..)| !self.is_part || !is_of_all(name));
            all.map(|(name, n, _)| (name, n as f64)).collect()
        };
        out.serialize_field("counters", &Table(&counters))?;
        let stalls = self.stall_cycles();
        let stalls = || Stall::ALL.into_iter().map(|s| (s.name(), stalls[s as usize] as f64)).collect();
        out.serialize_field("stalls", &Table(&stalls))?;
        out.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Task;

    fn report() -> Report {
        let config = Config::preset("h200").expect("a preset");
        let task = Task {
            launch: 0,
            priority: 0,
            ctas: 264,
            threads: 256,
            registers: 40,
            shared_bytes: 0,
            barriers: 1,
            ..Task::default()
        };
        let counters = Counters {
            warp_instructions: 132_000,
            thread_instructions: 132_000 * 16,
            sm_active_cycles: 132_000,
            warp_cycles: 132_000 * 16,
            issue_cycles: 132_000,
            eligible_cycles: 264_000,
            eligible_warps: 528_000,
            pipe_alu: 132_000,
            l1_requests: 1000,
            l1_sectors: 4000,
            l1_hits: 1000,
            dram_read_bytes: 1_980_000,
            ..Counters::default()
        };
        let mut stalls = vec![[0; STALLS]; 3];
        stalls[1][Stall::Wait as usize] = 132_000;
        stalls[2][Stall::Wait as usize] = 132_000;
        stalls[2][Stall::Selected as usize] = 132_000;
        let shape = Shape { ctas: 264, threads: 256, registers: 40, shared_bytes: 0 };
        Report::new(&config, shape, 2000, counters, stalls, Occupancy::new(&config.sm, &task, 0))
    }

    #[test]
    fn metrics_follow_from_counters() {
        let report = report();
        let value = |name: &str| report.metric(name).unwrap_or(f64::NAN);
        // One instruction in each active cycle of an SM, of four that its schedulers could issue, half of the time.
        assert_eq!(value("ipc_active"), 1.0);
        assert_eq!(value("ipc_elapsed"), 0.5);
        assert_eq!(value("issue_slots_busy_pct"), 25.0);
        assert_eq!(value("no_eligible_pct"), 50.0);
        // A warp takes sixteen lanes for two cycles.
        assert_eq!(value("pipe_alu_pct"), 25.0);
        assert_eq!(value("compute_throughput_pct"), 25.0);
        assert_eq!(value("achieved_occupancy_pct"), 25.0);
        assert_eq!(value("theoretical_occupancy_pct"), 75.0);
        assert_eq!(value("waves"), 264.0 / (132.0 * 6.0));
        assert_eq!(value("warp_cycles_per_instruction"), 3.0);
        assert_eq!(value("stall_wait"), 2.0);
        assert_eq!(value("active_threads_per_warp"), 16.0);
        assert_eq!(value("l1_hit_pct"), 25.0);
        // 1.98 MB in 2,000 cycles of 1,980 MHz.
        assert!((value("dram_bytes_per_second") / 1.9602e12 - 1.0).abs() < 1e-9);
        assert_eq!(report.metric("no such metric"), None);
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        let config = Config::preset("tiny").expect("a preset");
        let empty = report();
        let shape = Shape { ctas: 0, threads: 0, registers: 0, shared_bytes: 0 };
        let report = Report::new(&config, shape, 0, Counters::default(), Vec::new(), empty.occupancy);
        for metric in report.sections.iter().flat_map(|s| &s.metrics) {
            assert!(metric.value.is_finite(), "{metric:?}");
        }
    }
}
