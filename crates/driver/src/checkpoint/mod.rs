//! Checkpoints of a launch file's run: everything that is needed to go on with it, in one file, every so many cycles.
//!
//! A [`Keeper`] writes them; [`Checkpoint::open`] reads one, and [`Session::reopen`] and [`Session::adopt`] make a session of
//! it that is as the old one was. A checkpoint needs no other file: the launch file, the programs as they were compiled and
//! the configuration are in it.

pub mod file;
pub mod storage;

use crate::device::Device;
use crate::launch::LaunchStats;
use crate::launch_file::{Arg, LaunchFile};
use crate::module::Module;
use crate::problem::{Problem, Problems, Source};
use crate::run::Session;
use crate::timing::{Sampled, Sampling, Timing};
use file::{Bytes, FileError};
use isa::Image;
use machine::distribution::Occupancy;
use machine::optimizing::Optimized;
use machine::ppu::Moment;
use machine::progress::Progress;
use machine::report::Shape;
use machine::stall::StallCycles;
use machine::{Config, Counters, Report};
use serde::{Deserialize, Serialize};
use simt::memory::Outline;
use std::borrow::Cow;
use std::io::SeekFrom;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use storage::Storage;
use trace::profile::Detail;

/// Bytes of memory moved at a time.
const CHUNK: usize = 1 << 20;
/// No launch file's buffers are larger than what a device has.
const MAX_BYTES: u64 = crate::device::MEMORY_BYTES;

/// A program, as it was read and as it was compiled.
#[derive(Serialize, Deserialize)]
struct Program {
    path: PathBuf,
    source: Source,
    #[serde(with = "simt::arrays::bytes")]
    image: Vec<u8>,
}

/// What stays the same while a run lasts.
#[derive(Serialize, Deserialize)]
struct Fixed<'a> {
    /// Of whoever began the run: what to do when its launches are done.
    #[serde(with = "simt::arrays::bytes")]
    command: Vec<u8>,
    /// The configuration as text, which is checked when it is read.
    config: String,
    file: Cow<'a, LaunchFile>,
    programs: Vec<Program>,
    every: u64,
    cold: bool,
    detail: bool,
    sampling: Option<Sampling>,
    progress: Option<u64>,
}

/// What changes.
#[derive(Serialize, Deserialize)]
struct Changing {
    /// The machine's.
    cycle: u64,
    finished: Vec<Finished>,
    seconds: f64,
    #[serde(with = "simt::arrays::bytes")]
    printed: Vec<u8>,
    outline: Outline,
}

/// How far a run has come.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Done {
    /// Launches that have ended, with the host's seconds that each took. The next one is under way.
    pub finished: Vec<(LaunchStats, f64)>,
    /// What those that have ended printed, where it is shown at the end.
    pub printed: Vec<u8>,
}

/// A launch that has ended.
#[derive(Serialize, Deserialize)]
struct Finished {
    seconds: f64,
    warp_instructions: u64,
    thread_instructions: u64,
    ctas: u64,
    report: Option<(Shape, u64, Counters, Vec<StallCycles>, Occupancy)>,
    detail: Option<Box<Detail>>,
    sampled: Option<Box<Sampled>>,
    progress: Option<Progress>,
    optimized: Option<Box<Optimized>>,
}

impl Finished {
    fn new((stats, seconds): &(LaunchStats, f64)) -> Finished {
        let s = stats.clone();
        Finished {
            seconds: *seconds,
            warp_instructions: s.warp_instructions,
            thread_instructions: s.thread_instructions,
            ctas: s.ctas,
            report: s.report.map(|r| (r.shape, r.cycles, r.counters, r.stalls, r.occupancy)),
            detail: s.detail,
            sampled: s.sampled,
            progress: s.progress,
            optimized: s.optimized,
        }
    }

    fn restore(self, config: &Config) -> (LaunchStats, f64) {
        let report = |(shape, cycles, counters, stalls, occupancy)| {
            Box::new(Report::new(config, shape, cycles, counters, stalls, occupancy))
        };
        let stats = LaunchStats {
            warp_instructions: self.warp_instructions,
            thread_instructions: self.thread_instructions,
            ctas: self.ctas,
            report: self.report.map(report),
            detail: self.detail,
            sampled: self.sampled,
            progress: self.progress,
            optimized: self.optimized,
        };
        (stats, self.seconds)
    }
}

/// Writes the checkpoints of a run.
pub struct Keeper<'a> {
    storage: &'a dyn Storage,
    path: PathBuf,
    every: u64,
    layout: u64,
    fixed: Vec<u8>,
}

impl<'a> Keeper<'a> {
    /// Checkpoints of a session's launches, every so many cycles of the machine, to a file that must be possible to write.
    /// `command` is handed back by [`Checkpoint::command`].
    pub fn new(
        storage: &'a dyn Storage,
        path: &Path,
        every: u64,
        session: &Session<'_>,
        timing: &Timing<'_>,
        command: &[u8],
    ) -> Result<Keeper<'a>, Problems> {
        let cannot = |e: &dyn std::fmt::Display| {
            Problem::new(format!("cannot write checkpoints to {}: {e}", path.display()))
                .help("choose a place you can write to")
        };
        storage::check(storage, path).map_err(|e| cannot(&e))?;
        let programs = session.programs().map(|(path, source, module)| {
            let image = module.image().to_bytes().map_err(|e| Problems::from(cannot(&e)))?;
            Ok(Program { path: path.clone(), source: source.clone(), image })
        });
        let fixed = Fixed {
            command: command.to_vec(),
            config: timing.config.render(),
            file: Cow::Borrowed(session.file()),
            programs: programs.collect::<Result<_, Problems>>()?,
            every,
            cold: timing.cold,
            detail: timing.detail,
            sampling: timing.sampling.cloned(),
            progress: timing.progress,
        };
        let fixed = postcard::to_allocvec(&fixed).map_err(|e| cannot(&e))?;
        Ok(Keeper { storage, path: path.to_owned(), every, layout: machine::ppu::layout(), fixed })
    }

    pub fn every(&self) -> u64 {
        self.every
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one, in the middle of the launch after those that have finished, which took so many seconds so far.
    pub fn save(
        &self,
        device: &Device,
        done: &Done,
        seconds: f64,
        moment: &Moment<'_>,
    ) -> Result<(), String> {
        let failed = |e: &dyn std::fmt::Display| {
            format!("the checkpoint {} cannot be written: {e}", self.path.display())
        };
        let outline = device.memory().outline_but(moment.zeros());
        let memory_bytes = outline.filled_bytes();
        let filled = outline.filled.clone();
        let changing = Changing {
            cycle: moment.cycle(),
            finished: done.finished.iter().map(Finished::new).collect(),
            seconds,
            printed: done.printed.clone(),
            outline,
        };
        let changing = postcard::to_allocvec(&changing).map_err(|e| failed(&e))?;
        let what = [&self.fixed[..], &changing].concat();
        let machine = moment.bytes()?;
        let memory = |put: &mut dyn FnMut(&[u8]) -> std::io::Result<()>| {
            let mut bytes = vec![0; CHUNK];
            for b in filled {
                let mut at = b.start;
                while at < b.end {
                    let n = (b.end - at).min(CHUNK as u64);
                    let part = &mut bytes[..n as usize];
                    device.memory().read(at, part).map_err(std::io::Error::other)?;
                    put(part)?;
                    at += n;
                }
            }
            Ok(())
        };
        storage::replace(self.storage, &self.path, |to| {
            file::write(to, self.layout, &what, &machine, memory_bytes, memory)
        })
        .map_err(|e| failed(&e))
    }
}

/// A checkpoint that was read.
pub struct Checkpoint {
    name: String,
    fixed: Fixed<'static>,
    config: Config,
    cycle: u64,
    done: Done,
    seconds: f64,
    outline: Outline,
    machine: Vec<u8>,
    memory: (u64, u64),
    bytes: Mutex<Box<dyn Bytes>>,
}

fn contents(what: impl Into<String>) -> FileError {
    FileError::Contents(what.into())
}

impl Checkpoint {
    /// Reads a checkpoint's file.
    pub fn open(path: &Path) -> Result<Checkpoint, Problems> {
        let name = path.display().to_string();
        let refused = |e: FileError| Problem::new(format!("cannot go on from {name}: {e}")).help(e.help());
        let file = std::fs::File::open(path).map_err(|e| refused(e.into()))?;
        if path.is_dir() {
            return Err(refused(FileError::Io("it is a directory".into())).into());
        }
        Ok(Checkpoint::read(name.clone(), Box::new(file)).map_err(refused)?)
    }

    /// Reads a checkpoint. A right checksum says that it is what was written; what the engine relies on for its own safety
    /// (places in the code, rows of registers, addresses of the host) is checked all the same, when it is made use of.
    pub fn read(name: String, mut bytes: Box<dyn Bytes>) -> Result<Checkpoint, FileError> {
        let parts = file::read(&mut *bytes, machine::ppu::layout())?;
        let (mut fixed, rest): (Fixed<'static>, &[u8]) =
            postcard::take_from_bytes(&parts.what).map_err(|e| contents(e.to_string()))?;
        let changing: Changing = postcard::from_bytes(rest).map_err(|e| contents(e.to_string()))?;
        let config = Config::read(&fixed.config).map_err(|e| contents(e.to_string()))?;
        fixed.config = String::new();
        if changing.outline.filled_bytes() != parts.memory.1 {
            return Err(contents("another number of bytes of memory"));
        }
        check(&fixed.file, changing.finished.len()).map_err(contents)?;
        Ok(Checkpoint {
            name,
            cycle: changing.cycle,
            done: Done {
                finished: changing.finished.into_iter().map(|f| f.restore(&config)).collect(),
                printed: changing.printed,
            },
            seconds: changing.seconds,
            fixed,
            config,
            outline: changing.outline,
            machine: parts.machine,
            memory: parts.memory,
            bytes: Mutex::new(bytes),
        })
    }

    /// What [`Keeper::new`] was given.
    pub fn command(&self) -> &[u8] {
        &self.fixed.command
    }

    pub fn file(&self) -> &LaunchFile {
        &self.fixed.file
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Cycles between checkpoints.
    pub fn every(&self) -> u64 {
        self.fixed.every
    }

    /// The machine's cycle, counted over all launches.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// How far the run had come.
    pub fn done(&self) -> &Done {
        &self.done
    }

    /// Seconds of the host that the launch under way had taken.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// How the launches are timed: as they were.
    pub fn timing(&self) -> Timing<'_> {
        Timing {
            cold: self.fixed.cold,
            detail: self.fixed.detail,
            sampling: self.fixed.sampling.as_ref(),
            progress: self.fixed.progress,
            ..Timing::new(&self.config)
        }
    }

    /// The machine's state, for [`Timing::resume`] of the launch under way.
    pub fn machine(&self) -> &[u8] {
        &self.machine
    }
}

/// Whether a launch file that was not read from its text can be one.
fn check(file: &LaunchFile, finished: usize) -> Result<(), String> {
    if finished >= file.launches.len() {
        return Err("no launch is under way".into());
    }
    let mut total = 0u64;
    for b in &file.buffers {
        let bytes = b.count.checked_mul(b.element.size() as u64).filter(|&n| n <= MAX_BYTES);
        total = total.saturating_add(bytes.unwrap_or(u64::MAX));
    }
    if total > MAX_BYTES {
        return Err("buffers that no device has room for".into());
    }
    let exists = |arg: &Arg| !matches!(arg, Arg::Buffer(n) if *n >= file.buffers.len());
    if file.launches.iter().flat_map(|l| &l.args).any(|(arg, _)| !exists(arg)) {
        return Err("an argument without a buffer".into());
    }
    Ok(())
}

impl<'f> Session<'f> {
    /// A session with the programs and buffers of a checkpoint, as it was before anything ran. The buffers are zeros:
    /// [`Session::adopt`] gives them what they held then.
    pub fn reopen(checkpoint: &'f Checkpoint) -> Result<Session<'f>, Problems> {
        let cannot = |why: String| {
            let e = contents(why);
            Problems::from(Problem::new(format!("cannot go on from {}: {e}", checkpoint.name)).help(e.help()))
        };
        let device = Device::new().map_err(|e| cannot(e.to_string()))?;
        let mut programs = Vec::new();
        for p in &checkpoint.fixed.programs {
            let image = Image::from_bytes(&p.image).map_err(|e| cannot(e.to_string()))?;
            programs.push((p.path.clone(), p.source.clone(), Module::load(&device, image)?));
        }
        Session::of_programs(checkpoint.file(), device, programs)
    }

    /// Makes memory what it was when the checkpoint was written.
    pub fn adopt(&self, checkpoint: &Checkpoint) -> Result<(), Problems> {
        let cannot = |e: FileError| {
            let name = &checkpoint.name;
            Problems::from(Problem::new(format!("cannot go on from {name}: {e}")).help(e.help()))
        };
        let memory = self.device().memory();
        let own = memory.allocations();
        let kept = &checkpoint.outline.allocations;
        if own.iter().any(|b| !kept.contains(b)) {
            return Err(cannot(contents("programs and buffers at other addresses")));
        }
        memory.adopt(&checkpoint.outline).map_err(|e| cannot(contents(e.to_string())))?;
        let mut bytes = checkpoint.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.seek(SeekFrom::Start(checkpoint.memory.0)).map_err(|e| cannot(e.into()))?;
        let mut chunk = vec![0; CHUNK];
        for b in &checkpoint.outline.filled {
            let mut at = b.start;
            while at < b.end {
                let n = (b.end - at).min(CHUNK as u64);
                let part = &mut chunk[..n as usize];
                bytes.read_exact(part).map_err(|e| cannot(e.into()))?;
                memory.write(at, part).map_err(|e| cannot(contents(e.to_string())))?;
                at += n;
            }
        }
        // What the host wrote then is in the caches of the machine's state.
        self.device().machine().go_back(&[]);
        Ok(())
    }
}
