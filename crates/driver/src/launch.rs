//! What a launch is asked for, what it tells, and how it can end early.

use crate::limits::Refusal;
use crate::timing::{Sampled, Timing};
use isa::Image;
use machine::Report;
use simt::{Access, Fault, FaultKind};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Shape of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dim {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Dynamic shared memory of a CTA.
    pub shared_bytes: u32,
}

impl Dim {
    pub fn ctas(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }
}

/// How to run a launch.
#[derive(Clone, Copy, Default)]
pub struct LaunchOptions<'a> {
    /// Host threads, 0 for all there are.
    pub threads: usize,
    /// Warp instructions after which the launch is ended; no limit where `None`.
    pub max_instructions: Option<u64>,
    /// Set from elsewhere to end the launch.
    pub cancel: Option<&'a AtomicBool>,
    /// Counts the CTAs that are done.
    pub done: Option<&'a AtomicU64>,
    /// Takes what the kernel prints, in the order of CTAs.
    pub print: Option<&'a (dyn Fn(&[u8]) + Sync)>,
    /// Host vectors to use; the widest there are where `None`.
    pub vectors: Option<simt::Isa>,
    /// What cooperative kernels find in environment registers 1 and 2: the address of zeroed memory that its grid waits with.
    pub workspace: u64,
    /// Runs the launch on the timed machine. The results are the same.
    pub timing: Option<Timing<'a>>,
}

/// What a finished launch did.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LaunchStats {
    /// Instructions executed, counted once a warp.
    pub warp_instructions: u64,
    /// Instructions executed, counted once an active thread.
    pub thread_instructions: u64,
    pub ctas: u64,
    /// Where the launch was timed: its cycles, and where they went.
    pub report: Option<Box<Report>>,
    /// Where a profile was asked for: what the report's numbers are made of.
    pub detail: Option<Box<trace::profile::Detail>>,
    /// What trace cells collected, where they were asked to.
    pub sampled: Option<Box<Sampled>>,
    /// How evenly warps progressed, where that was asked for.
    pub progress: Option<machine::progress::Progress>,
    /// What was optimized while it ran, where that was asked for.
    pub optimized: Option<Box<machine::optimizing::Optimized>>,
}

/// Why a launch did not finish.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LaunchError {
    /// It was not started.
    Refused(Refusal),
    /// The program did something that cannot be done.
    Fault(Box<FaultReport>),
    /// [`LaunchOptions::max_instructions`] were executed.
    TooManyInstructions { kernel: String, limit: u64, place: Option<String> },
    /// [`LaunchOptions::cancel`] was set.
    Cancelled { kernel: String, ctas_done: u64, ctas: u64, place: Option<String> },
    /// Its state could not be kept, or what was kept is not its state.
    Checkpoint { kernel: String, why: String },
    /// The engine cannot run it.
    Engine(String),
}

/// A fault with names for everything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultReport {
    pub kernel: String,
    /// The function that the faulting instruction is in.
    pub function: String,
    pub kind: FaultKind,
    /// What went wrong.
    pub message: String,
    /// Line of the PTX text, 0 where not known.
    pub ptx_line: u32,
    /// File, line and column of the source, innermost first: the others are where it was inlined.
    pub frames: Vec<(String, u32, u32)>,
    pub cta: [u32; 3],
    pub thread: [u32; 3],
    pub access: Option<Access>,
    /// Place in the machine code.
    pub pc: u32,
    /// The machine instruction.
    pub instruction: String,
}

impl FaultReport {
    pub fn new(kernel: &str, image: &Image, fault: &Fault) -> FaultReport {
        let place = image.place(fault.pc);
        let message = match (&fault.kind, fault.access) {
            (FaultKind::OutOfBounds, Some(a)) => format!(
                "{} {} bytes at {} address {:#x}, outside any allocation",
                if a.is_store { "store of" } else { "load of" },
                a.size,
                a.space,
                a.address
            ),
            (FaultKind::Misaligned, Some(a)) => format!(
                "{} {} bytes at {} address {:#x}, which is no multiple of {}",
                if a.is_store { "store of" } else { "load of" },
                a.size,
                a.space,
                a.address,
                a.size
            ),
            (kind, _) => kind.to_string(),
        };
        FaultReport {
            kernel: kernel.to_owned(),
            function: place.function.to_owned(),
            kind: fault.kind.clone(),
            message,
            ptx_line: place.ptx_line,
            frames: place
                .frames
                .iter()
                .map(|&(file, line, column)| (file.to_owned(), line, column))
                .collect(),
            cta: fault.cta,
            thread: fault.thread,
            access: fault.access,
            pc: fault.pc.0,
            instruction: image.code.get(fault.pc.0 as usize).map(ToString::to_string).unwrap_or_default(),
        }
    }

    /// `file:line` of the source, or of the PTX where there is no other.
    pub fn line(&self) -> String {
        match self.frames.first() {
            Some((file, line, _)) => format!("{file}:{line}"),
            None if self.ptx_line > 0 => format!("PTX line {}", self.ptx_line),
            None => "a place without line".into(),
        }
    }
}

/// `(x, y, z)`.
pub fn triple([x, y, z]: [u32; 3]) -> String {
    format!("({x}, {y}, {z})")
}

impl fmt::Display for FaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {}: {}, at {}", self.kernel, self.message, self.line())?;
        for (file, line, _) in self.frames.iter().skip(1) {
            write!(f, ", inlined at {file}:{line}")?;
        }
        if !self.frames.is_empty() && self.ptx_line > 0 {
            write!(f, " (PTX line {})", self.ptx_line)?;
        }
        write!(f, ", thread {} of CTA {}", triple(self.thread), triple(self.cta))
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |place: &Option<String>| place.as_ref().map(|p| format!(", at {p}")).unwrap_or_default();
        match self {
            LaunchError::Refused(refusal) => write!(f, "{refusal}"),
            LaunchError::Fault(report) => write!(f, "{report}"),
            LaunchError::TooManyInstructions { kernel, limit, place } => {
                write!(f, "kernel {kernel}: still running after {limit} warp instructions{}", at(place))
            }
            LaunchError::Cancelled { kernel, ctas_done, ctas, place } => {
                write!(f, "kernel {kernel}: stopped, {ctas_done} of {ctas} CTAs were done{}", at(place))
            }
            LaunchError::Checkpoint { kernel, why } => write!(f, "kernel {kernel}: {why}"),
            LaunchError::Engine(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for LaunchError {}
