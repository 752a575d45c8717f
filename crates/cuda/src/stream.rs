//! Streams and events.

use crate::api::graph::Capture;
use crate::context::{self, Context};
use crate::error::{Answer, Code};
use crate::handle::{self, Handle};
use crate::queue::{LaneId, Ticket, Work};
use crate::state::{Driver, Gpu};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The legacy default stream, by its explicit handle.
pub const LEGACY: usize = 1;
/// The default stream of each thread.
pub const PER_THREAD: usize = 2;
/// Flag of a stream that does not wait for the default stream.
pub const NON_BLOCKING: u32 = 1;
/// Priorities: the highest, which is the lowest number.
pub const HIGHEST: i32 = -5;

/// A stream.
pub struct Stream {
    pub id: u64,
    pub context: Arc<Context>,
    pub lane: LaneId,
    pub flags: u32,
    pub priority: i32,
    capture: Mutex<Option<Arc<Capture>>>,
}

impl Stream {
    pub fn create(context: &Arc<Context>, flags: u32, priority: i32) -> Arc<Stream> {
        let priority = priority.clamp(HIGHEST, 0);
        let lane = context.open_lane(priority, flags & NON_BLOCKING == 0);
        Arc::new(Stream {
            id: handle::fresh(),
            context: context.clone(),
            lane,
            flags,
            priority,
            capture: Mutex::default(),
        })
    }

    /// The legacy default stream of a context.
    pub fn null(context: &Arc<Context>) -> Arc<Stream> {
        Arc::new(Stream {
            id: LEGACY as u64,
            context: context.clone(),
            lane: context.null_lane,
            flags: 0,
            priority: 0,
            capture: Mutex::default(),
        })
    }

    pub fn is_null(&self) -> bool {
        self.lane == self.context.null_lane
    }

    /// The stream that a handle means.
    pub fn find(driver: &Driver, handle: Handle) -> Answer<Arc<Stream>> {
        match handle as usize {
            0 if context::is_per_thread() => context::current()?.thread_stream(driver),
            0 | LEGACY => Ok(Stream::null(&context::current()?)),
            PER_THREAD => context::current()?.thread_stream(driver),
            _ => {
                let stream = driver.streams.get(handle)?;
                stream.context.check()?;
                Ok(stream)
            }
        }
    }

    /// What new work of the stream waits for, besides its lane.
    pub fn after(&self) -> Vec<Ticket> {
        if self.is_null() {
            self.context.blocking_ends()
        } else if self.flags & NON_BLOCKING == 0 {
            self.context.gpu.queue.ends([self.context.null_lane])
        } else {
            Vec::new()
        }
    }

    pub fn submit(&self, work: Work) -> Ticket {
        self.context.gpu.queue.submit(self.lane, self.after(), self.context.clone(), work)
    }

    /// Waits for all its work, and tells how it ended.
    pub fn synchronize(&self) -> Answer {
        let mut tickets = self.after();
        tickets.push(self.context.gpu.queue.end(self.lane));
        self.context.gpu.queue.wait(&tickets);
        self.context.gpu.flush();
        self.context.check()
    }

    pub fn is_done(&self) -> bool {
        let queue = &self.context.gpu.queue;
        queue.is_reached(&queue.end(self.lane)) && self.after().is_empty()
    }

    pub fn capture_slot(&self) -> MutexGuard<'_, Option<Arc<Capture>>> {
        self.capture.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The capture that the stream's work goes to, if there is one.
    pub fn capture(&self) -> Option<Arc<Capture>> {
        self.capture_slot().clone()
    }

    /// Refuses what cannot be captured; a capture that was under way is spoilt.
    pub fn refuse_capture(&self) -> Answer {
        match self.capture() {
            Some(capture) => {
                capture.spoil();
                Err(Code::STREAM_CAPTURE_UNSUPPORTED)
            }
            None => Ok(()),
        }
    }
}

/// Flags of events.
pub const DISABLE_TIMING: u32 = 2;
pub const INTERPROCESS: u32 = 4;

#[derive(Clone, Default)]
pub struct EventState {
    /// Where it was recorded last.
    pub place: Option<(Arc<Gpu>, Ticket)>,
    /// Counts records.
    pub generation: u64,
    /// Simulated time at which it happened.
    pub time: Option<u64>,
    /// The capture that recorded it, and the nodes it stands for.
    pub captured: Option<(Arc<Capture>, Vec<usize>)>,
}

/// An event.
pub struct Event {
    pub id: u64,
    pub context: Arc<Context>,
    pub flags: u32,
    state: Mutex<EventState>,
}

impl Event {
    pub fn create(context: &Arc<Context>, flags: u32) -> Arc<Event> {
        Arc::new(Event { id: handle::fresh(), context: context.clone(), flags, state: Mutex::default() })
    }

    pub fn state(&self) -> MutexGuard<'_, EventState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records it behind the work of a stream.
    pub fn record(self: &Arc<Event>, stream: &Stream) {
        let mut state = self.state();
        state.generation += 1;
        (state.time, state.captured) = (None, None);
        let (generation, event, gpu) = (state.generation, self.clone(), stream.context.gpu.clone());
        let happen = move || {
            event.happen(generation, gpu.now());
            Ok(())
        };
        let ticket = stream.submit(Work::Device(Box::new(happen)));
        state.place = Some((stream.context.gpu.clone(), ticket));
    }

    /// It happens now, unless it was recorded again since.
    pub fn happen(&self, generation: u64, now: u64) {
        let mut state = self.state();
        if state.generation == generation {
            state.time = Some(now);
        }
    }

    /// Recorded and done, or never recorded.
    pub fn is_done(&self) -> bool {
        let place = self.state().place.clone();
        place.is_none_or(|(gpu, ticket)| gpu.queue.is_reached(&ticket))
    }

    pub fn synchronize(&self) {
        let place = self.state().place.clone();
        if let Some((gpu, ticket)) = place {
            gpu.queue.wait(&[ticket]);
            gpu.flush();
        }
    }
}
