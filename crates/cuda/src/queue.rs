//! Work in the order of streams, and the threads that do it.
//!
//! A lane is the queue of one stream. Work is done in the order of its lane and after the tickets that it waits for; of what
//! can be done next, the lane of highest priority goes first, then what was submitted first. One thread does the work of
//! a device; another runs the functions of the host that streams call, so that a function which waits holds nothing up.

use crate::context::Context;
use crate::error::{Answer, Code};
use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The number of a lane.
pub type LaneId = u64;

/// A place in a lane: it is reached when so many pieces of work of the lane are done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    pub lane: LaneId,
    pub n: u64,
}

/// A piece of work.
pub enum Work {
    /// For the device.
    Device(Box<dyn FnOnce() -> Answer + Send>),
    /// A function of the host; gets the code of a context that has failed.
    Host(Box<dyn FnOnce(Code) + Send>),
    /// Nothing to do, once this holds.
    Until(Box<dyn FnMut() -> bool + Send>),
}

struct Item {
    order: u64,
    after: Vec<Ticket>,
    context: Arc<Context>,
    work: Work,
}

struct Lane {
    items: VecDeque<Item>,
    submitted: u64,
    done: u64,
    is_running: bool,
    /// Lower numbers go first.
    priority: i32,
    /// Its stream is gone; the lane goes when its work is done.
    is_closed: bool,
}

#[derive(Default)]
struct State {
    lanes: BTreeMap<LaneId, Lane>,
    order: u64,
    next_lane: LaneId,
    is_started: bool,
    is_worker_idle: bool,
    /// Threads that wait for work to be done.
    waiting: usize,
    host: Option<Sender<(LaneId, Item)>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    submitted: Condvar,
    done: Condvar,
}

/// The lanes of a device.
#[derive(Default)]
pub struct Queue {
    shared: Arc<Shared>,
}

/// How often work that waits for memory to change looks at it.
const POLL: Duration = Duration::from_micros(50);

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.state();
        loop {
            match state.pick() {
                Picked::Item(lane, item) => {
                    drop(state);
                    perform(item);
                    state = self.state();
                    self.finish(&mut state, lane);
                }
                Picked::Finished(lane) => self.finish(&mut state, lane),
                Picked::Passed => {}
                found => {
                    state.is_worker_idle = true;
                    state = if matches!(found, Picked::Polling) {
                        let waited = self.submitted.wait_timeout(state, POLL);
                        waited.unwrap_or_else(PoisonError::into_inner).0
                    } else {
                        self.submitted.wait(state).unwrap_or_else(PoisonError::into_inner)
                    };
                    state.is_worker_idle = false;
                }
            }
        }
    }

    fn host_functions(&self, items: &Receiver<(LaneId, Item)>) {
        while let Ok((lane, item)) = items.recv() {
            perform(item);
            let mut state = self.state();
            self.finish(&mut state, lane);
            if state.is_worker_idle {
                self.submitted.notify_one();
            }
        }
    }

    fn finish(&self, state: &mut State, id: LaneId) {
        if let Some(lane) = state.lanes.get_mut(&id) {
            lane.is_running = false;
            lane.done += 1;
            if lane.is_closed && lane.items.is_empty() {
                state.lanes.remove(&id);
            }
        }
        if state.waiting > 0 {
            self.done.notify_all();
        }
    }
}

/// Does a piece of work, unless its context has failed.
fn perform(item: Item) {
    let failed = item.context.failure();
    match item.work {
        Work::Device(work) if failed.is_none() => {
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            if let Err(code) = ended.unwrap_or(Err(Code::UNKNOWN)) {
                item.context.fail(code);
            }
        }
        Work::Host(work) => {
            let code = failed.unwrap_or(Code::SUCCESS);
            // A panic of a host function has been told by its hook; the stream goes on.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(code)));
        }
        _ => {}
    }
}

enum Picked {
    Item(LaneId, Item),
    /// Nothing was to be done.
    Finished(LaneId),
    /// Given to the other thread.
    Passed,
    /// Some work waits for memory to change.
    Polling,
    Nothing,
}

impl State {
    fn is_reached(&self, t: &Ticket) -> bool {
        self.lanes.get(&t.lane).is_none_or(|lane| lane.done >= t.n)
    }

    fn pick(&mut self) -> Picked {
        let mut best: Option<(i32, u64, LaneId)> = None;
        let mut polled: Vec<LaneId> = Vec::new();
        for (&id, lane) in &self.lanes {
            let Some(item) = lane.items.front().filter(|_| !lane.is_running) else { continue };
            if !item.after.iter().all(|t| self.is_reached(t)) {
                continue;
            }
            if matches!(item.work, Work::Until(_)) && item.context.failure().is_none() {
                polled.push(id);
            } else if best.is_none_or(|b| (lane.priority, item.order) < (b.0, b.1)) {
                best = Some((lane.priority, item.order, id));
            }
        }
        for &id in &polled {
            let lane = self.lanes.get_mut(&id);
            if let Some(lane) = lane
                && let Some(Item { work: Work::Until(holds), .. }) = lane.items.front_mut()
                && holds()
            {
                lane.items.pop_front();
                return Picked::Finished(id);
            }
        }
        let Some((_, _, id)) = best else {
            return if polled.is_empty() { Picked::Nothing } else { Picked::Polling };
        };
        let Some(lane) = self.lanes.get_mut(&id) else { return Picked::Nothing };
        let Some(item) = lane.items.pop_front() else { return Picked::Nothing };
        lane.is_running = true;
        match (&item.work, &self.host) {
            (Work::Host(_), Some(host)) => match host.send((id, item)) {
                Ok(()) => Picked::Passed,
                Err(back) => Picked::Item(back.0.0, back.0.1),
            },
            _ => Picked::Item(id, item),
        }
    }
}

impl Queue {
    /// A new lane.
    pub fn open(&self, priority: i32) -> LaneId {
        let mut state = self.shared.state();
        state.next_lane += 1;
        let id = state.next_lane;
        state.lanes.insert(
            id,
            Lane {
                items: VecDeque::new(),
                submitted: 0,
                done: 0,
                is_running: false,
                priority,
                is_closed: false,
            },
        );
        id
    }

    /// No more work comes to a lane.
    pub fn close(&self, id: LaneId) {
        let mut state = self.shared.state();
        if let Some(lane) = state.lanes.get_mut(&id) {
            lane.is_closed = true;
            if lane.items.is_empty() && !lane.is_running {
                state.lanes.remove(&id);
            }
        }
    }

    /// Adds work to a lane; it is done after what the lane has and after the tickets.
    pub fn submit(&self, id: LaneId, mut after: Vec<Ticket>, context: Arc<Context>, work: Work) -> Ticket {
        let mut state = self.shared.state();
        if !state.is_started {
            state.is_started = true;
            self.start(&mut state);
        }
        after.retain(|t| t.lane != id && !state.is_reached(t));
        state.order += 1;
        let order = state.order;
        let is_idle = state.is_worker_idle;
        let Some(lane) = state.lanes.get_mut(&id) else { return Ticket { lane: id, n: 0 } };
        lane.submitted += 1;
        let ticket = Ticket { lane: id, n: lane.submitted };
        lane.items.push_back(Item { order, after, context, work });
        drop(state);
        if is_idle {
            self.shared.submitted.notify_one();
        }
        ticket
    }

    fn start(&self, state: &mut State) {
        let (sender, receiver) = channel();
        let (worker, host) = (self.shared.clone(), self.shared.clone());
        // Compiled kernels and their lanes need no deep stacks; the usual size does.
        let name = |n: &str| std::thread::Builder::new().name(format!("warploom-{n}"));
        let started = name("device").spawn(move || worker.work()).is_ok()
            && name("host").spawn(move || host.host_functions(&receiver)).is_ok();
        if started {
            state.host = Some(sender);
        }
    }

    /// Where a lane ends now.
    pub fn end(&self, id: LaneId) -> Ticket {
        let state = self.shared.state();
        Ticket { lane: id, n: state.lanes.get(&id).map_or(0, |lane| lane.submitted) }
    }

    /// Where those of these lanes end that still have work.
    pub fn ends(&self, ids: impl IntoIterator<Item = LaneId>) -> Vec<Ticket> {
        let state = self.shared.state();
        let end = |id| state.lanes.get(&id).map(|l| (Ticket { lane: id, n: l.submitted }, l.done));
        ids.into_iter().filter_map(end).filter(|(t, done)| t.n > *done).map(|(t, _)| t).collect()
    }

    pub fn is_reached(&self, ticket: &Ticket) -> bool {
        self.shared.state().is_reached(ticket)
    }

    /// Waits until all tickets are reached.
    pub fn wait(&self, tickets: &[Ticket]) {
        let mut state = self.shared.state();
        while !tickets.iter().all(|t| state.is_reached(t)) {
            state.waiting += 1;
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }

    /// Lets the device look again whether something can go on.
    pub fn nudge(&self) {
        self.shared.submitted.notify_one();
    }
}
