//! Contexts: what belongs together on a device, which thread works in which, and what went wrong.

use crate::error::{Answer, Code};
use crate::handle::{self, Handle};
use crate::queue::{LaneId, Ticket};
use crate::state::{Driver, Gpu, driver};
use crate::stream::Stream;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// Limits that `cuCtxSetLimit` knows, with the values an H200 starts with.
pub const LIMITS: [(u32, u64); 8] = [
    // Stack of a thread, printf buffer, heap of device code.
    (0, 1024),
    (1, 8_650_752),
    (2, 8_388_608),
    // Pending launches of the device, granularity of fetches from L2, persisting bytes of L2.
    (4, 2048),
    (5, 64),
    (6, 0),
    // Shared memory of a CTA, error containment.
    (7, 232_448),
    (8, 0),
];

/// A context.
pub struct Context {
    pub id: u64,
    pub gpu: Arc<Gpu>,
    pub is_primary: bool,
    flags: AtomicU32,
    error: AtomicU32,
    is_dead: AtomicBool,
    pub limits: Mutex<[(u32, u64); 8]>,
    pub cache_config: AtomicU32,
    /// The lane of the legacy default stream.
    pub null_lane: LaneId,
    lanes: Mutex<Lanes>,
    /// Streams that take the place of the default stream, by thread.
    per_thread: Mutex<HashMap<ThreadId, u64>>,
    /// Where cooperative kernels find what their grid waits with; 0 before the first one.
    pub workspace: AtomicU64,
    /// Contexts whose memory it asked to reach.
    peers: Mutex<BTreeSet<u64>>,
}

#[derive(Default)]
struct Lanes {
    /// Lanes that wait for the default stream, and it for them.
    blocking: Vec<LaneId>,
    free: Vec<LaneId>,
}

/// The primary context of a device.
#[derive(Default)]
pub struct Primary {
    pub context: Option<Arc<Context>>,
    pub users: u32,
    pub flags: u32,
}

thread_local! {
    static STACK: RefCell<Vec<Arc<Context>>> = const { RefCell::new(Vec::new()) };
    static PER_THREAD: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs an entry point with the thread's own stream in place of the default stream.
pub fn per_thread<T>(body: impl FnOnce() -> T) -> T {
    let before = PER_THREAD.replace(true);
    let answer = body();
    PER_THREAD.set(before);
    answer
}

pub fn is_per_thread() -> bool {
    PER_THREAD.get()
}

impl Context {
    pub fn new(gpu: &Arc<Gpu>, flags: u32, is_primary: bool) -> Arc<Context> {
        Arc::new(Context {
            id: handle::fresh(),
            gpu: gpu.clone(),
            is_primary,
            flags: AtomicU32::new(flags),
            error: AtomicU32::new(0),
            is_dead: AtomicBool::new(false),
            limits: Mutex::new(LIMITS),
            cache_config: AtomicU32::new(0),
            null_lane: gpu.queue.open(0),
            lanes: Mutex::default(),
            per_thread: Mutex::default(),
            workspace: AtomicU64::new(0),
            peers: Mutex::default(),
        })
    }

    pub fn handle(&self) -> Handle {
        handle::handle(self.id)
    }

    pub fn flags(&self) -> u32 {
        self.flags.load(Ordering::Relaxed)
    }

    pub fn set_flags(&self, flags: u32) {
        self.flags.store(flags, Ordering::Relaxed);
    }

    /// The context cannot be used any more, for this reason. The first one stays.
    pub fn fail(&self, code: Code) {
        let _ = self.error.compare_exchange(0, code.0, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub fn failure(&self) -> Option<Code> {
        match self.error.load(Ordering::Relaxed) {
            0 => None,
            code => Some(Code(code)),
        }
    }

    pub fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    /// Whether work can be given to it.
    pub fn check(&self) -> Answer {
        match self.failure() {
            _ if self.is_dead() => Err(Code::CONTEXT_IS_DESTROYED),
            Some(code) => Err(code),
            None => Ok(()),
        }
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn open_lane(&self, priority: i32, is_blocking: bool) -> LaneId {
        let id = self.gpu.queue.open(priority);
        let mut lanes = self.lanes();
        if is_blocking {
            lanes.blocking.push(id)
        } else {
            lanes.free.push(id)
        }
        id
    }

    pub fn close_lane(&self, id: LaneId) {
        let mut lanes = self.lanes();
        lanes.blocking.retain(|&l| l != id);
        lanes.free.retain(|&l| l != id);
        self.gpu.queue.close(id);
    }

    /// What work of the default stream waits for.
    pub fn blocking_ends(&self) -> Vec<Ticket> {
        let lanes = self.lanes();
        self.gpu.queue.ends(lanes.blocking.iter().copied())
    }

    /// Where all its work ends.
    pub fn ends(&self) -> Vec<Ticket> {
        let lanes = self.lanes();
        let all = lanes.blocking.iter().chain(&lanes.free).copied().chain([self.null_lane]);
        self.gpu.queue.ends(all)
    }

    /// Waits for everything, and tells how it ended.
    pub fn synchronize(&self) -> Answer {
        self.gpu.queue.wait(&self.ends());
        self.gpu.flush();
        self.check()
    }

    /// Notes whether a peer's memory is to be reached; false where it was so before.
    pub fn set_peer(&self, peer: u64, on: bool) -> bool {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if on { peers.insert(peer) } else { peers.remove(&peer) }
    }

    /// The stream of this thread.
    pub fn thread_stream(self: &Arc<Context>, driver: &Driver) -> Answer<Arc<Stream>> {
        let mut streams = self.per_thread.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = std::thread::current().id();
        if let Some(stream) = streams.get(&thread).and_then(|&id| driver.streams.find(handle::handle(id))) {
            return Ok(stream);
        }
        let stream = Stream::create(self, 0, 0);
        streams.insert(thread, stream.id);
        driver.streams.insert(stream.id, stream.clone());
        Ok(stream)
    }

    /// Ends the context: its work, its objects, its memory.
    pub fn destroy(self: &Arc<Context>, driver: &Driver) {
        self.gpu.queue.wait(&self.ends());
        self.gpu.flush();
        if self.is_dead.swap(true, Ordering::Relaxed) {
            return;
        }
        let mine = |c: &Arc<Context>| Arc::ptr_eq(c, self);
        driver.functions.take(|f| mine(&f.program.context));
        driver.modules.take(|m| mine(&m.context));
        driver.events.take(|e| mine(&e.context));
        for stream in driver.streams.take(|s| mine(&s.context)) {
            self.close_lane(stream.lane);
        }
        self.gpu.queue.close(self.null_lane);
        for library in driver.libraries.all() {
            library.leave(self);
        }
        driver.allocations.free_all(driver, self.id);
    }
}

/// The context that this thread works in.
pub fn top() -> Option<Arc<Context>> {
    STACK.with_borrow(|stack| stack.last().cloned())
}

/// The context that this thread works in, if it can be used.
pub fn current() -> Answer<Arc<Context>> {
    driver()?;
    let context = top().ok_or(Code::INVALID_CONTEXT)?;
    context.check()?;
    Ok(context)
}

/// As [`current`], whatever went wrong in it.
pub fn current_or_failed() -> Answer<Arc<Context>> {
    driver()?;
    let context = top().ok_or(Code::INVALID_CONTEXT)?;
    if context.is_dead() { Err(Code::CONTEXT_IS_DESTROYED) } else { Ok(context) }
}

pub fn push(context: Arc<Context>) {
    STACK.with_borrow_mut(|stack| stack.push(context));
}

pub fn pop() -> Option<Arc<Context>> {
    STACK.with_borrow_mut(Vec::pop)
}

/// Puts a context in place of the current one; none: takes the current one away.
pub fn set(context: Option<Arc<Context>>) {
    STACK.with_borrow_mut(|stack| {
        stack.pop();
        stack.extend(context);
    });
}
