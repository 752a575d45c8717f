//! A timed machine that runs the rows of a group, one after the other.

use super::chase::walk;
use super::parse::{Arg, Group, Launch, Row, Step, Value, What, expand};
use super::{Outcome, parse};
use crate::timed::Machine;
use driver::{CompileOptions, Device, Dim, Module, Source};
use machine::Config;
use machine::units::LINE;

/// Bytes of the buffer for results that nobody reads: a word for each of 1,024 threads, and doubles.
const SINK_BYTES: u64 = 1 << 16;
/// The cold walk: a word of every 8 KB of 2 GB, more steps than are timed, and what is set afterwards.
const COLD_BYTES: u64 = 2 << 30;
const COLD_STRIDE: u64 = 8192;
const COLD_STEPS: u64 = 8192;
const COLD_SET: u64 = 256 << 20;
/// Steps that a chase takes at most: as many to warm up as are timed.
const CHASE_STEPS: u64 = 2 * 8192;
const SEED: u64 = 1;

/// Runs the rows of a group whose name contains `filter`.
pub fn run(group: &Group, config: &Config, filter: Option<&str>) -> Result<Vec<Outcome>, String> {
    let wanted = |row: &Row| filter.is_none_or(|part| row.name.contains(part));
    if !group.steps.iter().any(|s| matches!(s, Step::Row(row) if wanted(row))) {
        return Ok(Vec::new());
    }
    let mut bench = Bench::new(group, config)?;
    let mut outcomes = Vec::new();
    let mut buffer = None;
    for step in &group.steps {
        match step {
            Step::Chase(_) | Step::Cold => buffer = Some(step),
            Step::Row(row) if wanted(row) => {
                // A buffer is made when a row wants it.
                if let Some(step) = buffer.take() {
                    bench.make(step)?;
                }
                let ours = bench.value(row).map_err(|why| format!("{}: {why}", row.name))?;
                outcomes.push(Outcome { group: group.name.clone(), row: row.clone(), ours });
            }
            Step::Row(_) => {}
        }
    }
    Ok(outcomes)
}

struct Bench {
    machine: Machine,
    device: Device,
    module: Module,
    clock: u64,
    sink: u64,
    zero: u64,
    /// Start of the walk, where there is one.
    buffer: Option<u64>,
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Bench {
    fn new(group: &Group, config: &Config) -> Result<Bench, String> {
        let name = group.program.display().to_string();
        let program =
            std::fs::read_to_string(&group.program).map_err(|e| format!("cannot read {name}: {e}"))?;
        let program = expand(&program).map_err(|why| format!("{name}: {why}"))?;
        let source = Source::new(name, program.into_bytes());
        let image = driver::compile(&source, &CompileOptions::default()).map_err(text)?;
        let device = Device::new().map_err(text)?;
        let module = Module::load(&device, image).map_err(text)?;
        let (clock, sink, zero) = (device.alloc(64), device.alloc(SINK_BYTES), device.alloc(64));
        Ok(Bench {
            clock: clock.map_err(text)?,
            sink: sink.map_err(text)?,
            zero: zero.map_err(text)?,
            // One thread: most rows run on one SM.
            machine: Machine::new(config, 1),
            device,
            module,
            buffer: None,
        })
    }

    /// Makes the walk that a step asks for.
    fn make(&mut self, step: &Step) -> Result<(), String> {
        if let Some(old) = self.buffer.take() {
            self.device.free(old).map_err(text)?;
        }
        let (bytes, stride, steps) = match step {
            Step::Chase(bytes) => (*bytes, LINE, CHASE_STEPS),
            Step::Cold => (COLD_BYTES, COLD_STRIDE, COLD_STEPS),
            Step::Row(_) => return Ok(()),
        };
        let start = self.device.alloc(bytes).map_err(text)?;
        self.buffer = Some(start);
        if bytes < stride {
            return Err(format!("a chase through {bytes} bytes has no line"));
        }
        for pair in walk(bytes / stride, steps, SEED).windows(2) {
            let next = start + pair[1] * stride;
            // Only the words that are read take memory of the host: the rest of the copy is told, not made.
            self.device.memory().write(start + pair[0] * stride, &next.to_le_bytes()).map_err(text)?;
        }
        match step {
            Step::Chase(_) => self.machine.copied(start, bytes),
            _ => self.machine.copied(start + bytes, COLD_SET),
        }
        Ok(())
    }

    fn value(&mut self, row: &Row) -> Result<f64, String> {
        let launch = match &row.what {
            What::Property(name) => return property(self.machine.config(), name),
            What::Launch(launch) => launch,
        };
        let cycles = self.launch(launch)?;
        let mut bytes = [0; 8];
        self.device.read(self.clock, &mut bytes).map_err(text)?;
        let clock = u64::from_le_bytes(bytes) as f64;
        Ok(match row.value {
            Value::ClockOver(n) => clock / n,
            Value::OverClock(n) => n / clock,
            Value::TimeOver(n) => cycles as f64 / f64::from(self.machine.config().clock_mhz) / n,
            Value::Itself => clock,
        })
    }

    /// Runs a row's launches; their cycles.
    fn launch(&mut self, launch: &Launch) -> Result<u64, String> {
        let args: Vec<Vec<u8>> = launch
            .args
            .iter()
            .map(|arg| {
                Ok(match arg {
                    Arg::Clock => self.clock.to_le_bytes().to_vec(),
                    Arg::Sink => self.sink.to_le_bytes().to_vec(),
                    Arg::Zero => self.zero.to_le_bytes().to_vec(),
                    Arg::Buffer => {
                        let start = self.buffer.ok_or("there is no `chase` or `cold` line before it")?;
                        start.to_le_bytes().to_vec()
                    }
                    Arg::Number(n) => n.to_le_bytes().to_vec(),
                })
            })
            .collect::<Result<_, String>>()?;
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        let dim = Dim { grid: [launch.ctas, 1, 1], block: [launch.threads, 1, 1], shared_bytes: 0 };
        let mut cycles = 0;
        for _ in 0..launch.times {
            let run = self.machine.launch(&self.device, &self.module, &launch.entry, dim, &args)?;
            cycles += run.cycles;
        }
        Ok(cycles)
    }
}

/// Properties that a GPU tells of itself.
fn property(config: &Config, name: &str) -> Result<f64, String> {
    let (sm, l2) = (&config.sm, &config.l2);
    Ok(match name {
        "sms" => f64::from(config.sms()),
        "l2_bytes" => f64::from(l2.slices) * f64::from(l2.sets) * f64::from(l2.ways) * LINE as f64,
        "shared_bytes" => f64::from(sm.shared_splits.last().copied().unwrap_or(0)),
        "registers" => f64::from(sm.registers),
        "threads" => f64::from(sm.warps) * 32.0,
        _ => return Err(format!("there is no property {name}")),
    })
}

/// Runs every group.
pub fn run_all(
    groups: &[parse::Group],
    config: &Config,
    filter: Option<&str>,
) -> Result<Vec<Outcome>, String> {
    let mut all = Vec::new();
    for group in groups {
        all.extend(run(group, config, filter)?);
    }
    Ok(all)
}
