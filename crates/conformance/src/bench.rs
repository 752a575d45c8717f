//! Functional rates of whole launches, counted in the instructions that an H200 executes for them, beside the bare loop.

use crate::bare_loop::BareLoop;
use crate::kernels::Kernel;
use driver::launch_file::LaunchFile;
use driver::{CompileOptions, LaunchOptions, Session};
use serde_json::Value;
use simt::Isa;
use std::time::{Duration, Instant};

/// Seconds that this thread was on a core so far; `None` where the host does not say.
pub fn seconds_on_core() -> Option<f64> {
    // The host counts in steps of some milliseconds, and exactly when a thread leaves its core.
    std::thread::sleep(Duration::from_micros(1));
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds as f64 * 1e-9)
}

/// Kernels that have a target: the share of the bare loop's rate that one thread must reach.
pub const TARGETS: [(&str, f64); 5] =
    [("nbody", 0.5), ("matmul_tiled", 0.25), ("saxpy", 0.25), ("mandelbrot", 0.15), ("spmv_hash", 0.1)];

/// What was measured for one kernel.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    /// Warp instructions that the H200 executes.
    pub h200_instructions: f64,
    /// Warp instructions that we executed.
    pub our_instructions: u64,
    /// H200 instructions a second, best repetition, on one thread and on all.
    pub one_thread: f64,
    pub all_threads: f64,
    /// The bare loop's rate, best repetition beside these.
    pub bare: f64,
    pub target: Option<f64>,
    pub buffer_bytes: u64,
    /// Peak memory of the process while it ran, where the system tells.
    pub peak_bytes: Option<u64>,
}

impl Row {
    /// Share of the bare loop.
    pub fn ratio(&self) -> f64 {
        self.one_thread / self.bare
    }

    pub fn memory_limit(&self) -> u64 {
        3 * self.buffer_bytes + 200_000_000
    }

    /// Rate and memory are where they should be.
    pub fn is_met(&self) -> bool {
        self.target.is_none_or(|t| self.ratio() >= t)
            && self.peak_bytes.is_none_or(|p| p <= self.memory_limit())
    }
}

/// Measures one kernel: `repetitions` times the bare loop, one thread, all threads, in turn.
pub fn measure(kernel: &Kernel, results: &Value, repetitions: u32, level: Isa) -> Result<Row, String> {
    let h200_instructions = results[&kernel.name]["metrics"]["smsp__inst_executed.sum"]
        .as_f64()
        .ok_or_else(|| format!("there is no smsp__inst_executed.sum for {}", kernel.name))?;
    reset_peak();
    let file = LaunchFile::load(&kernel.path).map_err(|e| e.to_string())?;
    let session = Session::new(&file, &CompileOptions::default()).map_err(|e| e.to_string())?;
    let mut bare = BareLoop::new(level);
    let (mut best_bare, mut best_one, mut best_all, mut ours) = (0.0f64, 0.0f64, 0.0f64, 0);
    for _ in 0..repetitions.max(1) {
        // About as many operations as the launch has.
        best_bare = best_bare.max(bare.rate(((h200_instructions / 18.0) as u64).clamp(20_000, 1_000_000)));
        for (threads, best) in [(1, &mut best_one), (0, &mut best_all)] {
            session.fill().map_err(|e| e.to_string())?;
            let options = LaunchOptions { threads, vectors: Some(level), ..LaunchOptions::default() };
            let start = Instant::now();
            let mut executed = 0;
            for number in 0..file.launches.len() {
                executed += session.launch(number, &options).map_err(|e| e.to_string())?.warp_instructions;
            }
            *best = best.max(h200_instructions / start.elapsed().as_secs_f64());
            ours = executed;
        }
    }
    std::hint::black_box(bare.checksum());
    Ok(Row {
        name: kernel.name.clone(),
        h200_instructions,
        our_instructions: ours,
        one_thread: best_one,
        all_threads: best_all,
        bare: best_bare,
        target: TARGETS.iter().find(|(name, _)| *name == kernel.name).map(|(_, t)| *t),
        buffer_bytes: file.buffer_bytes(),
        peak_bytes: peak(),
    })
}

/// The table, one line a kernel.
pub fn table(rows: &[Row], level: Isa) -> String {
    let mut out = format!(
        "{:<20} {:>9} {:>9} {:>9} {:>6} {:>6} {:>6} {:>9} {:>9}\n",
        "kernel", "1 thread", "all", "bare loop", "ratio", "target", "code", "buffers", "peak"
    );
    for r in rows {
        let target = r.target.map_or("-".into(), |t| format!("{t:.2}"));
        let peak = r.peak_bytes.map_or("-".into(), |p| format!("{:.0} MB", p as f64 / 1e6));
        out += &format!(
            "{:<20} {:>7.1} M {:>7.1} M {:>7.1} M {:>6.2} {:>6} {:>6.2} {:>6.1} MB {:>9} {}\n",
            r.name,
            r.one_thread / 1e6,
            r.all_threads / 1e6,
            r.bare / 1e6,
            r.ratio(),
            target,
            r.our_instructions as f64 / r.h200_instructions,
            r.buffer_bytes as f64 / 1e6,
            peak,
            if r.is_met() { "" } else { "missed" },
        );
    }
    out + &format!(
        "Millions of warp instructions a second, counted as the H200 executes them; `code` is ours per one of its own. The bare \
         loop and the engine ran at level {level:?}.\n"
    )
}

/// Starts a new measurement of peak memory, where the system can.
pub fn reset_peak() {
    // Without the right to write it, the peak is that of the whole process: an upper bound.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Peak memory of the process since then, where the system tells.
pub fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kb| kb * 1024)
}
