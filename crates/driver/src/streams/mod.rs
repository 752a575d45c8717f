//! Streams: work that the host hands over in order, several such orders side by side.
//!
//! What is asked of a stream is kept until [`Streams::synchronize`]; then everything runs, each stream a push buffer of the
//! machine with its own priority. Within a stream one thing follows the other; between streams there are events. Launches of
//! streams that do not wait for each other run at once where the machine has room, and one of higher priority takes the place of lower ones.
//!
//! ```no_run
//! # use driver::*;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let device = Device::new()?;
//! # let module = Module::load(&device, compile(&Source::new("k.ptx", vec![]), &CompileOptions::default())?)?;
//! # let dim = Dim { grid: [1, 1, 1], block: [32, 1, 1], shared_bytes: 0 };
//! let mut streams = Streams::new(&device);
//! let (low, high) = (streams.stream(0), streams.stream(1));
//! let done = streams.event();
//! streams.launch(low, &module, "long", dim, &[])?;
//! streams.launch(high, &module, "urgent", dim, &[])?;
//! streams.record(high, done);
//! streams.wait(low, done);
//! streams.launch(low, &module, "after_both", dim, &[])?;
//! streams.synchronize(&LaunchOptions::default(), &Preempting::default())?;
//! # Ok(()) }
//! ```

mod buffer;
mod functional;
mod timed;

pub use buffer::StateBuffer;

use crate::device::Device;
use crate::launch::{Dim, LaunchError, LaunchStats};
use crate::limits;
use crate::module::Module;
use machine::counters::Counters;
pub use machine::sm::preemption::{Mode, Moved};
pub use machine::tasks::LaunchTimed;
use machine::tasks::Transfer;
use simt::MemoryError;
use std::collections::BTreeSet;

/// A stream of a [`Streams`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stream(usize);

/// Something that happens when all that was asked of a stream before has ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Event(u32);

/// A circular queue in device memory, whose entries become CTAs of a queue task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queue {
    /// Where its record is: what kernels append to it by.
    pub address: u64,
    pub entry_bytes: u32,
    pub capacity: u64,
}

/// How CTAs make room for others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preempting {
    /// What becomes of local memory.
    pub mode: Mode,
    /// Cycles after which a CTA makes room for others of its priority.
    pub time_slice: Option<u64>,
    /// Cycles, ascending, at which a debugger stops the machine: all CTAs are suspended, then they go on.
    pub stops: Vec<u64>,
    /// Bytes of global memory for suspended CTAs.
    pub buffer_bytes: u64,
}

impl Default for Preempting {
    fn default() -> Preempting {
        Preempting { mode: Mode::Remap, time_slice: None, stops: Vec::new(), buffer_bytes: 1 << 30 }
    }
}

/// How a launch is put into a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Insertion {
    /// Instead of the stream's.
    pub priority: Option<u8>,
    /// Before the tasks of its priority that wait for the machine, not behind them.
    pub at_head: bool,
    /// The host does not submit it before this cycle.
    pub at: u64,
}

/// Number of a launch, or of a copy to the host, among those of a [`Streams`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Ticket(pub usize);

/// What became of everything.
#[derive(Clone, Debug, Default)]
pub struct Synchronized {
    /// Of every launch.
    pub launches: Vec<LaunchStats>,
    /// What copies to the host brought.
    pub read: Vec<Vec<u8>>,
    /// Where it was timed.
    pub timeline: Option<Timeline>,
}

/// When what happened, in cycles since the start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timeline {
    pub cycles: u64,
    pub counters: Counters,
    /// The host's launches in their order, then child tasks in the order of their start.
    pub launches: Vec<LaunchTimed>,
    /// CTAs that left an SM and came back.
    pub moves: Vec<Moved>,
    /// When all CTAs were out, at each stop.
    pub stopped: Vec<u64>,
}

/// What is asked of a stream.
#[derive(Clone, Debug)]
enum Step {
    Launch(usize),
    Transfer(usize),
    Record(Event),
    Wait(Event),
}

/// A launch that waits.
struct Asked<'m> {
    module: &'m Module,
    entry: String,
    shape: simt::Shape,
    params: Vec<u8>,
    priority: u8,
    insertion: Insertion,
    queue: Option<Queue>,
}

/// Streams of a device, and what is asked of them.
pub struct Streams<'m> {
    device: &'m Device,
    priorities: Vec<u8>,
    events: u32,
    launches: Vec<Asked<'m>>,
    transfers: Vec<Transfer>,
    /// Transfers to the host, in order.
    reads: Vec<usize>,
    /// In the order of asking: stream, earliest cycle.
    steps: Vec<(usize, u64, Step)>,
}

impl<'m> Streams<'m> {
    pub fn new(device: &'m Device) -> Streams<'m> {
        Streams {
            device,
            priorities: Vec::new(),
            events: 0,
            launches: Vec::new(),
            transfers: Vec::new(),
            reads: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// A new stream. What has a higher priority goes first, and takes the place of lower.
    pub fn stream(&mut self, priority: u8) -> Stream {
        self.priorities.push(priority);
        Stream(self.priorities.len() - 1)
    }

    pub fn event(&mut self) -> Event {
        self.events += 1;
        Event(self.events - 1)
    }

    /// The event happens when all that was asked of the stream so far has ended.
    pub fn record(&mut self, stream: Stream, event: Event) {
        self.steps.push((stream.0, 0, Step::Record(event)));
    }

    /// What is asked of the stream from now on waits for the event.
    pub fn wait(&mut self, stream: Stream, event: Event) {
        self.steps.push((stream.0, 0, Step::Wait(event)));
    }

    /// Launches a kernel. Arguments are the bytes of each parameter in order.
    pub fn launch(
        &mut self,
        stream: Stream,
        module: &'m Module,
        entry: &str,
        dim: Dim,
        args: &[&[u8]],
    ) -> Result<Ticket, LaunchError> {
        self.insert(stream, module, entry, dim, args, Insertion::default())
    }

    /// The same, with more to say about when.
    pub fn insert(
        &mut self,
        stream: Stream,
        module: &'m Module,
        entry: &str,
        dim: Dim,
        args: &[&[u8]],
        insertion: Insertion,
    ) -> Result<Ticket, LaunchError> {
        self.ask(stream, module, entry, dim, args, insertion, None)
    }

    fn ask(
        &mut self,
        stream: Stream,
        module: &'m Module,
        entry: &str,
        dim: Dim,
        args: &[&[u8]],
        insertion: Insertion,
        queue: Option<Queue>,
    ) -> Result<Ticket, LaunchError> {
        let function = module.function(entry)?;
        limits::check_shape(function, &dim).map_err(LaunchError::Refused)?;
        let params = limits::parameters(function, args).map_err(LaunchError::Refused)?;
        let shape = simt::Shape { dynamic_shared: dim.shared_bytes, ..simt::Shape::new(dim.grid, dim.block) };
        Ok(self.put(
            stream,
            Asked { module, entry: entry.to_owned(), shape, params, priority: 0, insertion, queue },
        ))
    }

    fn put(&mut self, stream: Stream, mut asked: Asked<'m>) -> Ticket {
        asked.priority = asked.insertion.priority.unwrap_or(self.priorities[stream.0]);
        self.steps.push((stream.0, asked.insertion.at, Step::Launch(self.launches.len())));
        self.launches.push(asked);
        Ticket(self.launches.len() - 1)
    }

    /// Launches a kernel whose shape and parameters were checked.
    pub(crate) fn launch_checked(
        &mut self,
        stream: Stream,
        module: &'m Module,
        entry: &str,
        shape: &simt::Shape,
        params: &[u8],
    ) -> Ticket {
        let (insertion, queue) = (Insertion::default(), None);
        let (entry, shape, params) = (entry.to_owned(), shape.clone(), params.to_vec());
        self.put(stream, Asked { module, entry, shape, params, priority: 0, insertion, queue })
    }

    // --- copies -------------------------------------------------------------------------------------------------

    fn transfer(&mut self, stream: Stream, at: u64, what: Transfer) {
        self.transfers.push(what);
        self.steps.push((stream.0, at, Step::Transfer(self.transfers.len() - 1)));
    }

    /// Copies to the device.
    pub fn write(&mut self, stream: Stream, address: u64, bytes: &[u8]) {
        self.transfer(stream, 0, Transfer::Write { address, bytes: bytes.to_vec() });
    }

    /// Sets bytes.
    pub fn fill(&mut self, stream: Stream, address: u64, count: u64, byte: u8) {
        self.transfer(stream, 0, Transfer::Fill { address, count, byte });
    }

    /// Copies within the device.
    pub fn copy(&mut self, stream: Stream, to: u64, from: u64, count: u64) {
        self.transfer(stream, 0, Transfer::Copy { to, from, count });
    }

    /// Copies to the host; the ticket names the bytes in [`Synchronized::read`].
    pub fn read(&mut self, stream: Stream, address: u64, count: u64) -> Ticket {
        self.reads.push(self.transfers.len());
        self.transfer(stream, 0, Transfer::Read { address, count });
        Ticket(self.reads.len() - 1)
    }

    // --- queues -------------------------------------------------------------------------------------------------

    /// Makes a queue of so many entries.
    pub fn queue(&mut self, entry_bytes: u32, capacity: u64) -> Result<Queue, MemoryError> {
        let bytes = simt::queue::Queue::bytes(entry_bytes, capacity.max(1));
        let address = self.device.alloc(bytes)?;
        simt::queue::Queue::create(self.device.memory(), address, entry_bytes, capacity.max(1))?;
        Ok(Queue { address, entry_bytes, capacity: capacity.max(1) })
    }

    /// Launches a kernel with a CTA for every entry of a queue, those that come while it runs among them: CTA number n
    /// works on entry n. It ends when all entries are done and nobody who runs can append any more.
    pub fn launch_queue(
        &mut self,
        stream: Stream,
        module: &'m Module,
        entry: &str,
        block: [u32; 3],
        shared_bytes: u32,
        args: &[&[u8]],
        queue: Queue,
    ) -> Result<Ticket, LaunchError> {
        let dim = Dim { grid: [limits::MAX_GRID[0], 1, 1], block, shared_bytes };
        self.ask(stream, module, entry, dim, args, Insertion::default(), Some(queue))
    }

    /// The host appends an entry, not before a cycle. Entries go by a push buffer of their own, so they come while kernels run.
    pub fn push(&mut self, queue: Queue, entry: &[u8], at: u64) {
        let stream = Stream(self.priorities.len());
        self.priorities.push(u8::MAX);
        self.transfer(stream, at, Transfer::Push { queue: queue.address, entry: entry.to_vec() });
    }

    // --- running ------------------------------------------------------------------------------------------------

    /// Runs everything that was asked for, to its end.
    pub fn synchronize(
        &mut self,
        options: &crate::LaunchOptions<'_>,
        preempting: &Preempting,
    ) -> Result<Synchronized, LaunchError> {
        self.check_waits()?;
        let done = match &options.timing {
            Some(timing) => self.run_timed(options, timing, preempting),
            None => self.run_functional(options),
        };
        self.launches.clear();
        self.transfers.clear();
        self.reads.clear();
        self.steps.clear();
        done
    }

    /// Streams that wait for each other, or for an event that nobody records, would wait for ever.
    fn check_waits(&self) -> Result<(), LaunchError> {
        let mut next = vec![0; self.priorities.len()];
        let of = |stream: usize| self.steps.iter().filter(move |s| s.0 == stream);
        let mut happened = BTreeSet::new();
        loop {
            let mut went = false;
            for (stream, next) in next.iter_mut().enumerate() {
                for (_, _, step) in of(stream).skip(*next) {
                    match step {
                        Step::Wait(event) if !happened.contains(event) => break,
                        Step::Record(event) => {
                            happened.insert(*event);
                        }
                        _ => {}
                    }
                    *next += 1;
                    went = true;
                }
            }
            if !went {
                break;
            }
        }
        let stuck = next.iter().enumerate().find(|(stream, n)| **n < of(*stream).count());
        match stuck {
            None => Ok(()),
            Some((stream, _)) => Err(LaunchError::Engine(format!(
                "stream {stream} waits for an event that never happens: record it before, in a stream that does not \
                 wait for this one"
            ))),
        }
    }
}
