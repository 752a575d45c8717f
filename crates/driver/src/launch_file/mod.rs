//! Launch files: which kernels to run on which data, in TOML. `docs/launch-files.md` describes every key.
//!
//! Reading is strict: an unknown key, a missing one or a value of the wrong kind is a problem with its line, and all
//! problems of a file are reported at once.

mod read;
mod table;

use crate::element::Element;
use crate::files;
use crate::init::Init;
use crate::picture::Picture;
use crate::problem::{Problem, Problems, Source};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A launch file that was read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LaunchFile {
    pub source: Source,
    /// The file's name without extension: what results are looked up by.
    pub name: String,
    pub buffers: Vec<Buffer>,
    pub launches: Vec<Launch>,
}

/// Memory that launches read and write.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Buffer {
    pub name: String,
    pub element: Element,
    pub count: u64,
    pub init: Init,
    pub out: Option<Output>,
    pub span: Range<usize>,
}

/// The buffer is a result.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Output {
    /// Name of a `.npy` file to write, besides what `--out` writes.
    pub npy: Option<String>,
    pub png: Option<(String, Picture)>,
}

/// One kernel launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Launch {
    /// PTX text or an image.
    pub program: PathBuf,
    /// What names the program: its key, or the launch where it was found by the file's name.
    pub program_span: Range<usize>,
    pub entry: String,
    pub entry_span: Range<usize>,
    pub grid: [u32; 3],
    pub grid_span: Range<usize>,
    pub block: [u32; 3],
    pub block_span: Range<usize>,
    pub shared_bytes: u32,
    pub shared_span: Range<usize>,
    pub args: Vec<(Arg, Range<usize>)>,
    /// How it goes with the other launches, where the file says so.
    pub order: Order,
}

/// Where a launch stands among the others of its file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Order {
    /// What others call it.
    pub name: Option<String>,
    /// Launches of a stream follow each other; of different streams they run at once.
    pub stream: Option<String>,
    /// Higher takes the place of lower.
    pub priority: Option<u8>,
    /// Earlier launches that it waits for.
    pub after: Vec<usize>,
    /// Not before this cycle.
    pub at: Option<u64>,
    /// Before others of its priority that wait.
    pub at_head: bool,
}

impl Order {
    /// It says something that matters to when the launch runs.
    fn is_given(&self) -> bool {
        self.stream.is_some()
            || self.priority.is_some()
            || !self.after.is_empty()
            || self.at.is_some()
            || self.at_head
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Arg {
    /// Address of a buffer.
    Buffer(usize),
    /// A value's bytes.
    Value { what: Cow<'static, str>, bytes: Vec<u8> },
}

impl LaunchFile {
    /// Reads a launch file. Of a file of CUDA C++, it is the one of the same name beside it.
    pub fn load(path: &Path) -> Result<LaunchFile, Problems> {
        if crate::nvrtc::is_source(path) {
            let beside = path.with_extension("toml");
            if !beside.is_file() {
                let missing = format!("{} has no launch file {}", path.display(), beside.display());
                return Err(Problem::new(missing)
                    .help("write one that says what to run; a program with a `main` of its own is built by nvcc and run with `warploom exec`")
                    .into());
            }
            return LaunchFile::load(&beside);
        }
        let bytes = files::read(path, files::MAX_TEXT)?;
        LaunchFile::parse(Source::new(path.display().to_string(), bytes), path)
    }

    /// Reads a text; paths in it are relative to the folder of `path`.
    pub fn parse(source: Source, path: &Path) -> Result<LaunchFile, Problems> {
        read::read(source, path)
    }

    /// Launches may run at once: the file has streams, priorities or dependences.
    pub fn has_streams(&self) -> bool {
        self.launches.iter().any(|l| l.order.is_given())
    }

    /// The bytes of all buffers.
    pub fn buffer_bytes(&self) -> u64 {
        self.buffers.iter().map(|b| b.count * b.element.size() as u64).sum()
    }

    pub fn outputs(&self) -> impl Iterator<Item = (usize, &Buffer, &Output)> {
        self.buffers.iter().enumerate().filter_map(|(n, b)| Some((n, b, b.out.as_ref()?)))
    }
}
