//! Running a launch file: programs compiled, buffers made, launches one after the other, results read.

use crate::compile::{CompileOptions, compile, read_program};
use crate::device::Device;
use crate::digest::{Digest, Digester};
use crate::element::Element;
use crate::launch::{Dim, LaunchError, LaunchOptions, LaunchStats};
use crate::launch_file::{Arg, Launch, LaunchFile};
use crate::limits::{Part, Refusal};
use crate::module::Module;
use crate::nvrtc;
use crate::problem::{Problem, Problems, Source};
use crate::replay::Capture;
use crate::streams::{Insertion, Preempting, Stream, Streams, Synchronized};
use simt::MemoryError;
use std::path::PathBuf;

/// Bytes moved at a time between host and device, so that buffers exist once.
const CHUNK: usize = 1 << 20;

/// A launch file ready to run.
pub struct Session<'f> {
    file: &'f LaunchFile,
    device: Device,
    programs: Vec<(PathBuf, Source, Module)>,
    /// Of each launch, index into `programs`.
    program_of: Vec<usize>,
    /// Device address of each buffer.
    addresses: Vec<u64>,
}

/// Why a run ended early.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunError {
    /// The launch file or its program is wrong.
    Input(Problems),
    /// A launch did not finish; the PTX text it ran.
    Launch { error: LaunchError, program: Source },
}

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RunError::Input(problems) => problems.fmt(f),
            RunError::Launch { error, .. } => error.fmt(f),
        }
    }
}

impl std::error::Error for RunError {}

impl<'f> Session<'f> {
    /// Compiles the programs, places them and makes the buffers.
    pub fn new(file: &'f LaunchFile, options: &CompileOptions) -> Result<Session<'f>, Problems> {
        let memory = |e: MemoryError| Problems::from(Problem::new(e.to_string()));
        let device = Device::new().map_err(memory)?;
        let mut programs: Vec<(PathBuf, Source, Module)> = Vec::new();
        for launch in &file.launches {
            if programs.iter().any(|(path, _, _)| *path == launch.program) {
                continue;
            }
            let source = read_program(&launch.program).map_err(|mut problems| {
                // What does not compile was found.
                let was_found = nvrtc::is_source(&launch.program) && launch.program.is_file();
                for p in problems.0.iter_mut().filter(|p| p.place.is_none() && !was_found) {
                    p.place = Some((file.source.clone(), launch.program_span.clone()));
                    p.help = Some("paths are relative to the launch file".into());
                }
                problems
            })?;
            let module = Module::load(&device, compile(&source, options)?)?;
            programs.push((launch.program.clone(), source, module));
        }
        let session = Session::of_programs(file, device, programs)?;
        session.fill().map_err(memory)?;
        Ok(session)
    }

    /// Makes the buffers, all zeros.
    pub(crate) fn of_programs(
        file: &'f LaunchFile,
        device: Device,
        programs: Vec<(PathBuf, Source, Module)>,
    ) -> Result<Session<'f>, Problems> {
        let place = |launch: &Launch| {
            let found = programs.iter().position(|(path, _, _)| *path == launch.program);
            found.ok_or_else(|| {
                Problems::from(Problem::new(format!("there is no program {}", launch.program.display())))
            })
        };
        let program_of = file.launches.iter().map(place).collect::<Result<_, _>>()?;
        let mut addresses = Vec::new();
        for buffer in &file.buffers {
            let address = device.alloc(buffer.count * buffer.element.size() as u64).map_err(|e| {
                Problems::from(
                    Problem::new(format!("buffer {}: {e}", buffer.name))
                        .at(&file.source, buffer.span.clone())
                        .help("use smaller buffers"),
                )
            })?;
            addresses.push(address);
        }
        Ok(Session { file, device, programs, program_of, addresses })
    }

    /// Gives every buffer its contents from before the first launch.
    pub fn fill(&self) -> Result<(), MemoryError> {
        let mut chunk = Vec::new();
        for (buffer, &address) in self.file.buffers.iter().zip(&self.addresses) {
            let size = buffer.element.size();
            let step = CHUNK / size;
            let mut first = 0;
            while first < buffer.count {
                let n = (buffer.count - first).min(step as u64);
                chunk.resize(n as usize * size, 0);
                buffer.init.make(buffer.element, first, &mut chunk);
                self.device.write(address + first * size as u64, &chunk)?;
                first += n;
            }
        }
        Ok(())
    }

    pub(crate) fn file(&self) -> &'f LaunchFile {
        self.file
    }

    pub(crate) fn programs(&self) -> impl Iterator<Item = &(PathBuf, Source, Module)> {
        self.programs.iter()
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Device address of a buffer of the file.
    pub fn address(&self, buffer: usize) -> u64 {
        self.addresses[buffer]
    }

    pub fn module(&self, launch: usize) -> Option<&Module> {
        self.program_of.get(launch).and_then(|&n| self.programs.get(n)).map(|(_, _, module)| module)
    }

    /// The program that a launch runs: its path, and its bytes as they were read.
    pub fn program(&self, launch: usize) -> Option<(&std::path::Path, &Source)> {
        let (path, source, _) = self.programs.get(*self.program_of.get(launch)?)?;
        Some((path, source))
    }

    /// The profile of a launch of the file that was timed with [`crate::Timing::detail`].
    pub fn profile(
        &self,
        number: usize,
        config: &machine::Config,
        stats: &LaunchStats,
        folders: &[PathBuf],
    ) -> Option<trace::Profile> {
        let launch = self.file.launches.get(number)?;
        let (path, source) = self.program(number)?;
        let mut folders = folders.to_vec();
        folders.extend(path.parent().map(PathBuf::from));
        let ptx = (!isa::Image::is_image(&source.bytes))
            .then(|| (source.name.clone(), String::from_utf8_lossy(&source.bytes).into_owned()));
        let dim = Dim { grid: launch.grid, block: launch.block, shared_bytes: launch.shared_bytes };
        let empty = trace::profile::Detail::default();
        let profile = crate::profile::profile(
            self.module(number)?,
            &launch.entry,
            dim,
            config,
            stats.report.as_ref()?,
            stats.detail.as_deref().unwrap_or(&empty),
            &crate::profile::Sources { ptx, folders },
        );
        let versions = stats.optimized.as_deref().map(crate::profile::versions).unwrap_or_default();
        Some(trace::Profile { versions, ..profile })
    }

    /// Runs one launch of the file.
    pub fn launch(&self, number: usize, options: &LaunchOptions<'_>) -> Result<LaunchStats, RunError> {
        self.launch_by(number, |module, entry, dim, args| {
            module.launch(&self.device, entry, dim, args, options)
        })
    }

    /// Runs all launches of the file as its streams say.
    pub fn run_streams(
        &self,
        options: &LaunchOptions<'_>,
        preempting: &Preempting,
    ) -> Result<Synchronized, RunError> {
        let mut streams = Streams::new(&self.device);
        let mut by_name: Vec<(Option<&str>, Stream)> = Vec::new();
        let events: Vec<_> = self.file.launches.iter().map(|_| streams.event()).collect();
        for (number, launch) in self.file.launches.iter().enumerate() {
            let order = &launch.order;
            let name = order.stream.as_deref();
            let stream = match by_name.iter().find(|(n, _)| *n == name) {
                Some(&(_, stream)) => stream,
                None => {
                    let stream = streams.stream(order.priority.unwrap_or(0));
                    by_name.push((name, stream));
                    stream
                }
            };
            order.after.iter().for_each(|&n| streams.wait(stream, events[n]));
            let insertion =
                Insertion { priority: order.priority, at_head: order.at_head, at: order.at.unwrap_or(0) };
            self.launch_by(number, |module, entry, dim, args| {
                streams.insert(stream, module, entry, dim, args, insertion)
            })?;
            streams.record(stream, events[number]);
        }
        streams.synchronize(options, preempting).map_err(|error| {
            let kernel = match &error {
                LaunchError::Fault(report) => Some(&report.kernel),
                LaunchError::TooManyInstructions { kernel, .. } | LaunchError::Cancelled { kernel, .. } => {
                    Some(kernel)
                }
                _ => None,
            };
            let number = self.file.launches.iter().position(|l| Some(&l.entry) == kernel).unwrap_or(0);
            let (_, program, _) = &self.programs[self.program_of[number]];
            RunError::Launch { error, program: program.clone() }
        })
    }

    /// Runs one launch of the file as part of a capture of its device.
    pub fn launch_captured<'s>(
        &'s self,
        capture: &mut Capture<'s>,
        number: usize,
        options: &LaunchOptions<'_>,
    ) -> Result<LaunchStats, RunError> {
        self.launch_by(number, |module, entry, dim, args| capture.launch(module, entry, dim, args, options))
    }

    /// A launch of the file that ended before the capture went on: part of it all the same.
    pub fn note_captured<'s>(&'s self, capture: &mut Capture<'s>, number: usize) -> Result<(), RunError> {
        let note = |module, entry: &str, dim, args: &[&[u8]]| {
            capture.note_launch(module, entry, dim, args);
            Ok(LaunchStats::default())
        };
        self.launch_by(number, note).map(|_| ())
    }

    fn launch_by<'s, T>(
        &'s self,
        number: usize,
        run: impl FnOnce(&'s Module, &str, Dim, &[&[u8]]) -> Result<T, LaunchError>,
    ) -> Result<T, RunError> {
        let launch = &self.file.launches[number];
        let (_, program, module) = &self.programs[self.program_of[number]];
        let pointers: Vec<[u8; 8]> = self.addresses.iter().map(|a| a.to_le_bytes()).collect();
        let args: Vec<&[u8]> = launch
            .args
            .iter()
            .map(|(arg, _)| match arg {
                Arg::Buffer(n) => &pointers[*n][..],
                Arg::Value { bytes, .. } => bytes,
            })
            .collect();
        let dim = Dim { grid: launch.grid, block: launch.block, shared_bytes: launch.shared_bytes };
        run(module, &launch.entry, dim, &args).map_err(|error| match error {
            LaunchError::Refused(refusal) => RunError::Input(self.refused(launch, refusal).into()),
            error => RunError::Launch { error, program: program.clone() },
        })
    }

    /// A refusal as a problem of the launch file.
    fn refused(&self, launch: &Launch, refusal: Refusal) -> Problem {
        let span = match refusal.part {
            Part::Entry => &launch.entry_span,
            Part::Grid => &launch.grid_span,
            Part::Block => &launch.block_span,
            Part::Shared => &launch.shared_span,
            Part::Arguments => launch.args.last().map_or(&launch.entry_span, |(_, span)| span),
            Part::Argument(n) => launch.args.get(n).map_or(&launch.entry_span, |(_, span)| span),
        };
        Problem::new(refusal.message).at(&self.file.source, span.clone()).help(refusal.help)
    }

    /// Hands a buffer's bytes over, part by part; parts are whole elements.
    pub fn read_parts(&self, buffer: usize, mut take: impl FnMut(&[u8])) -> Result<(), MemoryError> {
        let spec = &self.file.buffers[buffer];
        let total = spec.count * spec.element.size() as u64;
        let mut chunk = vec![0; CHUNK.min(total as usize)];
        let mut done = 0;
        while done < total {
            let n = (total - done).min(CHUNK as u64) as usize;
            self.device.read(self.addresses[buffer] + done, &mut chunk[..n])?;
            take(&chunk[..n]);
            done += n as u64;
        }
        Ok(())
    }

    pub fn digest(&self, buffer: usize) -> Result<Digest, MemoryError> {
        let mut digester = Digester::new(self.file.buffers[buffer].element);
        self.read_parts(buffer, |part| digester.update(part))?;
        Ok(digester.finish())
    }

    /// A buffer's element type and bytes.
    pub fn contents(&self, buffer: usize) -> Result<(Element, Vec<u8>), MemoryError> {
        let spec = &self.file.buffers[buffer];
        let mut bytes = vec![0; spec.count as usize * spec.element.size()];
        self.device.read(self.addresses[buffer], &mut bytes)?;
        Ok((spec.element, bytes))
    }
}
