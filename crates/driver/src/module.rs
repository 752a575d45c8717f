//! A program loaded on a device: its variables have addresses, its kernels can be launched.

use crate::device::Device;
use crate::launch::{Dim, FaultReport, LaunchError, LaunchOptions, LaunchStats, triple};
use crate::limits::{self, Part, Refusal};
use crate::problem::{Problem, Problems};
use isa::Image;
use isa::image::Function;
use simt::MemoryError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A loaded program.
pub struct Module {
    program: simt::Program,
}

impl Module {
    /// Places a program on a device.
    pub fn load(device: &Device, image: impl Into<Arc<Image>>) -> Result<Module, Problems> {
        let image = image.into();
        let name = image.name.clone();
        match simt::Program::load(image, device.memory(), &|_| None) {
            Ok(program) => Ok(Module { program }),
            Err(e) => Err(Problem::new(format!("cannot load {name}: {e}")).into()),
        }
    }

    /// Frees what the program's variables take.
    pub fn unload(self, device: &Device) -> Result<(), MemoryError> {
        self.program.unload(device.memory())
    }

    /// What the engine runs.
    pub fn program(&self) -> &simt::Program {
        &self.program
    }

    pub fn image(&self) -> &Image {
        self.program.image()
    }

    /// A kernel by name.
    pub fn entry(&self, name: &str) -> Option<&Function> {
        self.image().find(name).filter(|f| f.is_entry)
    }

    /// Device address and size of a variable.
    pub fn variable(&self, name: &str) -> Option<(u64, u64)> {
        self.program.variable(name)
    }

    /// Runs a kernel to its end. Arguments are the bytes of each parameter in order.
    pub fn launch(
        &self,
        device: &Device,
        entry: &str,
        dim: Dim,
        args: &[&[u8]],
        options: &LaunchOptions<'_>,
    ) -> Result<LaunchStats, LaunchError> {
        let function = self.function(entry)?;
        limits::check_shape(function, &dim).map_err(LaunchError::Refused)?;
        let params = limits::parameters(function, args).map_err(LaunchError::Refused)?;
        self.run(device, entry, dim, &params, options)
    }

    /// As [`Module::launch`], with the arguments as the kernel's parameter block has them.
    pub fn launch_packed(
        &self,
        device: &Device,
        entry: &str,
        dim: Dim,
        params: &[u8],
        options: &LaunchOptions<'_>,
    ) -> Result<LaunchStats, LaunchError> {
        let function = self.entry(entry).ok_or_else(|| LaunchError::Refused(self.no_such_entry(entry)))?;
        limits::check_shape(function, &dim).map_err(LaunchError::Refused)?;
        self.run(device, entry, dim, params, options)
    }

    /// Runs a kernel whose shape is checked.
    fn run(
        &self,
        device: &Device,
        entry: &str,
        dim: Dim,
        params: &[u8],
        options: &LaunchOptions<'_>,
    ) -> Result<LaunchStats, LaunchError> {
        let shape = simt::Shape {
            dynamic_shared: dim.shared_bytes,
            workspace: options.workspace,
            ..simt::Shape::new(dim.grid, dim.block)
        };
        if let Some(timing) = &options.timing {
            return self.launch_timed(device, entry, &shape, params, options, timing);
        }
        self.run_functional(device, entry, &shape, params, None, options)
    }

    /// A kernel by name, or why there is none.
    pub(crate) fn function(&self, entry: &str) -> Result<&Function, LaunchError> {
        self.entry(entry).ok_or_else(|| LaunchError::Refused(self.no_such_entry(entry)))
    }

    /// Runs a checked launch for its results; one that a queue bounds if there is one.
    pub(crate) fn run_functional(
        &self,
        device: &Device,
        entry: &str,
        shape: &simt::Shape,
        params: &[u8],
        queue: Option<u64>,
        options: &LaunchOptions<'_>,
    ) -> Result<LaunchStats, LaunchError> {
        let counter = AtomicU64::new(0);
        let done = options.done.unwrap_or(&counter);
        let run = simt::Options {
            max_instructions: options.max_instructions.unwrap_or(u64::MAX),
            cancel: options.cancel,
            output: options.print,
            progress: Some(done),
            level: options.vectors.unwrap_or_else(simt::Isa::best),
            // Asking the host takes longer than a small launch.
            threads: match options.threads {
                0 => std::thread::available_parallelism().map_or(1, usize::from),
                threads => threads,
            },
            count: false,
        };
        let kernel = || entry.to_owned();
        let ctas = shape.grid.iter().map(|&n| u64::from(n)).product();
        let outcome = self
            .program
            .kernel(entry, run.level)
            .ok_or_else(|| simt::LaunchError::NoEntry(entry.to_owned()))
            .and_then(|kernel| simt::Launch::new(&self.program, kernel, shape, params, device.memory()))
            .and_then(|mut launch| {
                launch.queue = queue;
                simt::run_launch(&launch, device.memory(), &run)
            });
        match outcome {
            Ok(stats) => Ok(LaunchStats {
                warp_instructions: stats.warp_instructions,
                thread_instructions: stats.thread_instructions,
                ctas: stats.ctas,
                report: None,
                detail: None,
                sampled: None,
                progress: None,
                optimized: None,
            }),
            Err(simt::LaunchError::Fault(fault)) => {
                Err(LaunchError::Fault(Box::new(FaultReport::new(entry, self.image(), &fault))))
            }
            Err(simt::LaunchError::TooLong(limit, at)) => {
                Err(LaunchError::TooManyInstructions { kernel: kernel(), limit, place: self.place(at) })
            }
            Err(simt::LaunchError::Cancelled(at)) => Err(LaunchError::Cancelled {
                kernel: kernel(),
                ctas_done: done.load(Ordering::Relaxed),
                ctas,
                place: self.place(at),
            }),
            Err(other) => Err(LaunchError::Engine(format!("kernel {entry}: {other}"))),
        }
    }

    /// Where a launch was: line, thread and CTA.
    pub(crate) fn place(&self, at: Option<simt::Whereabouts>) -> Option<String> {
        let at = at?;
        let place = self.image().place(at.pc);
        let line = match (place.frames.first(), place.ptx_line) {
            (Some((file, line, _)), _) => format!("{file}:{line}"),
            (None, 0) => format!("{:#x}", at.pc.0),
            (None, line) => format!("PTX line {line}"),
        };
        Some(format!("{line}, thread {} of CTA {}", triple(at.thread), triple(at.cta)))
    }

    fn no_such_entry(&self, name: &str) -> Refusal {
        let names: Vec<&str> = self.image().entries().map(|f| f.name.as_str()).collect();
        let help = match ptx::diagnostic::closest(name, names.iter().copied()) {
            Some(near) => format!("did you mean {near}?"),
            None if names.is_empty() => "the program has no kernels (.entry)".into(),
            None if names.len() <= 10 => format!("it has {}", names.join(", ")),
            None => format!("it has {} kernels, {} the first", names.len(), names[0]),
        };
        Refusal { part: Part::Entry, message: format!("the program has no kernel {name}"), help }
    }
}
