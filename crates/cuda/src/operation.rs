//! What a stream can be asked to do, as values: streams run them, graphs keep them.

use crate::context::Context;
use crate::error::{Answer, Code};
use crate::log::{self, Level};
use crate::memory::{Allocation, Copy, Fill};
use crate::program::Function;
use crate::queue::{Ticket, Work};
use crate::state::{Driver, driver};
use crate::stream::{Event, Stream};
use driver::{Dim, FaultKind, LaunchError, LaunchOptions, Timing};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A kernel with its arguments.
#[derive(Clone)]
pub struct Kernel {
    pub function: Arc<Function>,
    pub dim: Dim,
    pub params: Vec<u8>,
    pub is_cooperative: bool,
}

/// A function of the host with its argument.
#[derive(Clone, Copy)]
pub struct HostFunction {
    pub function: unsafe extern "C" fn(*mut std::ffi::c_void),
    pub data: usize,
}

/// A word of memory that is written, or waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Value {
    pub address: u64,
    pub value: u64,
    /// 4 or 8.
    pub bytes: u64,
    /// What is waited for: 0 not below, 1 equal, 2 common bits, 3 not all bits set in either.
    pub condition: u32,
}

#[derive(Clone)]
pub enum Operation {
    Kernel(Kernel),
    Copy(Copy),
    Fill(Fill),
    Host(HostFunction),
    Nothing,
    Record(Arc<Event>),
    Wait(Arc<Event>),
    WriteValue(Value),
    /// Frees memory that clients do not know any more.
    Free(Allocation),
    /// All of a graph, in its order.
    Graph(Arc<Vec<Operation>>),
}

/// Cycles that a functional launch is taken to have lasted: every scheduler issues an instruction a cycle.
fn ideal_cycles(driver: &Driver, warp_instructions: u64) -> u64 {
    let schedulers = u64::from(driver.config.sms()) * u64::from(driver.config.sm.sub_cores.max(1));
    u64::from(driver.config.distribution.launch_overhead) + warp_instructions.div_ceil(schedulers.max(1))
}

/// The code for a fault of a program.
fn fault_code(kind: &FaultKind) -> Code {
    match kind {
        FaultKind::OutOfBounds => Code::ILLEGAL_ADDRESS,
        FaultKind::Misaligned => Code::MISALIGNED_ADDRESS,
        FaultKind::IllegalInstruction | FaultKind::IllegalBarrier => Code::ILLEGAL_INSTRUCTION,
        FaultKind::IllegalJump(_) => Code::INVALID_PC,
        FaultKind::Trap => Code::LAUNCH_FAILED,
        FaultKind::Assert { .. } => Code::ASSERT,
        FaultKind::Deadlock => Code::LAUNCH_TIMEOUT,
        FaultKind::TooDeep(_)
        | FaultKind::TooManyChildren(_)
        | FaultKind::QueueOverflow(..)
        | FaultKind::NoQueue(_) => Code::LAUNCH_FAILED,
    }
}

/// What is told of a launch that failed, and its code.
fn failure(error: &LaunchError) -> (Code, String) {
    let LaunchError::Fault(report) = error else {
        return match error {
            LaunchError::Refused(_) => (Code::LAUNCH_OUT_OF_RESOURCES, error.to_string()),
            _ => (Code::LAUNCH_FAILED, error.to_string()),
        };
    };
    let text = match &report.kind {
        FaultKind::Assert { message, file, line, function } => {
            let ([bx, by, bz], [tx, ty, tz]) = (report.cta, report.thread);
            format!(
                "{file}:{line}: {function}: block: [{bx},{by},{bz}], thread: [{tx},{ty},{tz}] Assertion `{message}` failed."
            )
        }
        _ => report.to_string(),
    };
    (fault_code(&report.kind), text)
}

impl Kernel {
    fn run(&self, driver: &Driver, context: &Context) -> Answer {
        let gpu = &context.gpu;
        let print = |text: &[u8]| gpu.print(text);
        let workspace = if self.is_cooperative { workspace(driver, context)? } else { 0 };
        let detail = driver.profiles.is_some();
        let optimize = driver.optimize;
        let timing = driver.timed.holds(&self.function.name).then(|| Timing {
            detail,
            optimize,
            ..Timing::new(&driver.config)
        });
        let is_timed = timing.is_some();
        let options = LaunchOptions {
            threads: driver.threads,
            print: Some(&print),
            workspace,
            timing,
            ..LaunchOptions::default()
        };
        let module = self.function.program.module()?;
        let ended = module.launch_packed(&gpu.device, &self.function.name, self.dim, &self.params, &options);
        match ended {
            Ok(stats) => {
                crate::profile::write(driver, &self.function, self.dim, &stats);
                let cycles = match &stats.report {
                    Some(report) => report.cycles,
                    None => ideal_cycles(driver, stats.warp_instructions),
                };
                gpu.pass(driver.nanoseconds(cycles));
                log::write(Level::Info, &|| {
                    let kind = if is_timed { "cycles" } else { "ideal cycles" };
                    let (name, warps) = (&self.function.name, stats.warp_instructions);
                    format!("{name}: {} CTAs, {warps} warp instructions, {cycles} {kind}", stats.ctas)
                });
                Ok(())
            }
            Err(error) => {
                let (code, text) = failure(&error);
                gpu.flush();
                log::write(Level::Error, &|| text.clone());
                Err(code)
            }
        }
    }
}

/// Zeroed memory that the grid of a cooperative kernel waits with.
fn workspace(driver: &Driver, context: &Context) -> Answer<u64> {
    const BYTES: u64 = 4096;
    let memory = driver.space();
    let known = context.workspace.load(Ordering::Relaxed);
    if known != 0 {
        memory.fill(known, BYTES, 0).map_err(crate::memory::code)?;
        return Ok(known);
    }
    let kind = crate::memory::Kind::Device;
    let start = driver.allocations.alloc(driver, &context.gpu, context.id, kind, BYTES, 0)?;
    context.workspace.store(start, Ordering::Relaxed);
    Ok(start)
}

impl Value {
    fn read(&self, driver: &Driver) -> Option<u64> {
        let mut bytes = [0; 8];
        driver.space().read(self.address, &mut bytes[..self.bytes as usize]).ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    /// What is waited for holds.
    pub fn holds(&self, driver: &Driver) -> bool {
        let Some(found) = self.read(driver) else { return true };
        let distance = if self.bytes == 4 {
            i64::from((found as u32).wrapping_sub(self.value as u32) as i32)
        } else {
            found.wrapping_sub(self.value) as i64
        };
        match self.condition & 3 {
            0 => distance >= 0,
            1 => found == self.value,
            2 => found & self.value != 0,
            _ => !(found | self.value) & (u64::MAX >> (64 - 8 * self.bytes)) != 0,
        }
    }
}

impl Operation {
    /// Does it, on the thread of the device.
    pub fn run(&self, driver: &'static Driver, context: &Context) -> Answer {
        match self {
            Operation::Kernel(kernel) => kernel.run(driver, context),
            Operation::Copy(copy) => copy.run(driver, &context.gpu),
            Operation::Fill(fill) => fill.run(driver, &context.gpu),
            Operation::Host(host) => {
                host.call();
                Ok(())
            }
            Operation::Nothing | Operation::Wait(_) => Ok(()),
            Operation::Record(event) => {
                let generation = event.state().generation;
                event.happen(generation, context.gpu.now());
                Ok(())
            }
            Operation::WriteValue(v) => {
                let bytes = v.value.to_le_bytes();
                let written = driver.space().write(v.address, &bytes[..v.bytes as usize]);
                written.map_err(|_| Code::ILLEGAL_ADDRESS)
            }
            Operation::Free(a) => {
                driver.exports.withdraw(a)?;
                driver.space().free(a.base).map_err(crate::memory::code)
            }
            Operation::Graph(nodes) => nodes.iter().try_for_each(|node| node.run(driver, context)),
        }
    }
}

impl HostFunction {
    pub fn call(self) {
        // SAFETY: the client says that the function can be called with this argument, from any thread.
        unsafe { (self.function)(self.data as *mut std::ffi::c_void) };
    }
}

impl Stream {
    /// Puts an operation behind what the stream has; or into the graph that it is captured for.
    pub fn enqueue(&self, operation: Operation) -> Answer<Option<Ticket>> {
        if let Some(capture) = self.capture() {
            capture.add(self, operation)?;
            return Ok(None);
        }
        let driver = driver()?;
        let context = self.context.clone();
        let work = match operation {
            Operation::Host(host) => Work::Host(Box::new(move |code| {
                if code == Code::SUCCESS {
                    host.call();
                }
            })),
            operation => Work::Device(Box::new(move || operation.run(driver, &context))),
        };
        Ok(Some(self.submit(work)))
    }
}
