//! Compute work distribution: places CTAs on SMs.

mod occupancy;
mod pools;
mod preempt;
mod spec;

pub use occupancy::{Limiter, Needs, Occupancy};
pub use preempt::Preemption;
pub use spec::Spec;

use crate::Config;
use crate::command::Task;
use crate::compute_scheduler::Scheduled;
use crate::ports::{CtaEnd, CtaStart, Left, Suspend};
use crate::server::Line;
use crate::sm;
use crate::units::{Cycle, SmId};
use pools::{Pools, Slot};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};

/// Parts of a cycle that fractions of it are counted in.
const FRACTION: u64 = 1024;

/// Cycles in parts.
fn parts(cycles: f64) -> u64 {
    (cycles.max(0.0) * FRACTION as f64).round() as u64
}

/// Why a task cannot be run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskError {
    /// One of its CTAs needs more than an SM has.
    TooLarge { limiter: Limiter },
    /// A launch of that number runs.
    Duplicate { launch: u32 },
}

impl std::fmt::Display for TaskError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TaskError::TooLarge { limiter } => {
                write!(f, "one CTA needs more {} than an SM has", limiter.name())
            }
            TaskError::Duplicate { launch } => write!(f, "launch {launch} is running already"),
        }
    }
}

impl std::error::Error for TaskError {}

/// What is free on an SM, as far as work distribution knows.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Sm {
    gpc: u16,
    tpc: u16,
    warps: u32,
    registers: u32,
    shared: u32,
    ctas: u32,
    barriers: u32,
    /// Its split, which can change only while it is empty.
    split: u32,
    /// The CTAs that are there, where somebody may have to make room.
    residents: Vec<preempt::Resident>,
}

impl Sm {
    /// A CTA of a task comes; into an empty SM with its split. `spec` says what an empty one has.
    fn take(&mut self, task: &Running, spec: &sm::Spec) {
        if self.ctas == spec.ctas {
            self.split = task.occupancy.shared_split;
            self.shared = self.split;
        }
        self.warps -= task.needs.warps;
        self.registers -= task.needs.warps * task.needs.registers_per_warp;
        self.shared -= task.needs.shared;
        self.barriers -= task.needs.barriers;
        self.ctas -= 1;
    }

    /// A CTA that needed so much has gone.
    fn give(&mut self, needs: &Needs) {
        self.warps += needs.warps;
        self.registers += needs.warps * needs.registers_per_warp;
        self.shared += needs.shared;
        self.barriers += needs.barriers;
        self.ctas += 1;
    }
}

/// A task that work distribution knows.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Running {
    task: Task,
    needs: Needs,
    occupancy: Occupancy,
    /// When its first CTA can be placed.
    ready: Cycle,
    /// That cycle has come.
    is_ready: bool,
    /// Number among all tasks, which is its age.
    number: u64,
    next: u64,
    ended: u64,
    /// CTAs on each SM.
    resident: Vec<u32>,
    /// CTAs on each GPC.
    on_gpc: Vec<u32>,
    /// CTAs that were suspended and can go on; those that wait for child tasks first.
    suspended: VecDeque<u64>,
    waiting: BTreeSet<u64>,
    /// Those whose child tasks ended before their leaving was known here.
    early: BTreeSet<u64>,
    /// More CTAs may come.
    is_open: bool,
}

impl Running {
    /// No CTA waits for a place.
    fn is_placed(&self) -> bool {
        self.next == self.task.ctas && self.suspended.is_empty()
    }

    fn is_over(&self) -> bool {
        self.ended == self.task.ctas && !self.is_open
    }

    /// CTAs that wait for a place.
    fn unplaced(&self) -> u64 {
        self.task.ctas - self.next + self.suspended.len() as u64
    }

    /// The CTA that gets the next place, and whether it was suspended before. With time slices those that never ran go first, so
    /// that all take turns.
    fn take(&mut self, slices: bool) -> Option<(u64, bool)> {
        if (slices || self.suspended.is_empty()) && self.next < self.task.ctas {
            self.next += 1;
            return Some((self.next - 1, false));
        }
        self.suspended.pop_front().map(|linear| (linear, true))
    }

    /// Whether one more CTA fits an SM.
    fn fits(&self, n: usize, sm: &Sm, spec: &sm::Spec) -> bool {
        self.resident[n] < self.occupancy.ctas_per_sm && self.has_room(sm, spec)
    }

    /// Whether an SM has what a CTA needs.
    fn has_room(&self, sm: &Sm, spec: &sm::Spec) -> bool {
        let is_empty = sm.ctas == spec.ctas;
        let shared = if is_empty {
            self.occupancy.shared_split
        } else if sm.split >= self.occupancy.shared_split {
            sm.shared
        } else {
            0
        };
        sm.ctas > 0
            && sm.warps >= self.needs.warps
            && sm.registers >= self.needs.warps * self.needs.registers_per_warp
            && shared >= self.needs.shared
            && sm.barriers >= self.needs.barriers
    }
}

/// Keeps account of the SMs and gives them the CTAs of the tasks in its pools.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Distribution {
    sm: sm::Spec,
    sms: Vec<Sm>,
    /// SMs of each GPC in the order in which they are given CTAs.
    gpcs: Vec<Vec<u16>>,
    pools: Vec<Pools>,
    tasks: Vec<Option<Running>>,
    tasks_seen: u64,
    /// The GPC that is asked first.
    turn: usize,
    /// Sends CTAs to each TPC.
    senders: Vec<Line>,
    start_latency: u64,
    tpc_interval: u64,
    /// In parts of a cycle.
    tpc_warp_interval: u64,
    end_latency: u64,
    end_interval: u64,
    /// When the next end can be taken; this and the interval in parts of a cycle.
    ends_free: u64,
    /// Cycles that a new task waits.
    setup: u64,
    /// Ends on their way, with the cycles at which they will have been taken.
    ends: VecDeque<(Cycle, CtaEnd)>,
    finished: Vec<(u32, Cycle)>,
    last_end: Cycle,
    preemption: Option<Preemption>,
    suspends: Vec<Suspend>,
    /// Tasks that changed from outside have to be looked at then.
    look_at: Option<Cycle>,
    /// A debugger holds the machine: nothing is placed.
    is_held: bool,
}

impl Distribution {
    /// `setup` is what a launch costs beyond the latencies of the blocks on its way.
    pub fn new(config: &Config, setup: u64) -> Distribution {
        let spec = &config.distribution;
        let mut gpcs = Vec::new();
        let mut sms = Vec::new();
        let mut tpc = 0;
        for (gpc, &tpcs) in config.tpcs.iter().enumerate() {
            let first = sms.len() as u16;
            for _ in 0..tpcs {
                sms.extend((0..config.sms_per_tpc).map(|_| Sm {
                    gpc: gpc as u16,
                    tpc,
                    warps: config.sm.warps,
                    registers: config.sm.registers,
                    shared: 0,
                    ctas: config.sm.ctas,
                    barriers: config.sm.barriers,
                    split: 0,
                    residents: Vec::new(),
                }));
                tpc += 1;
            }
            gpcs.push((first..sms.len() as u16).collect::<Vec<u16>>());
        }
        Distribution {
            sm: config.sm.clone(),
            pools: vec![Pools::new(spec.pending_slots, spec.active_slots); gpcs.len()],
            senders: vec![Line::default(); tpc as usize],
            sms,
            gpcs,
            tasks: Vec::new(),
            tasks_seen: 0,
            turn: 0,
            start_latency: spec.start_latency.into(),
            tpc_interval: spec.tpc_interval.into(),
            end_latency: spec.end_latency.into(),
            tpc_warp_interval: parts(spec.tpc_warp_interval),
            end_interval: parts(spec.end_interval),
            ends_free: 0,
            setup,
            ends: VecDeque::new(),
            finished: Vec::new(),
            last_end: Cycle(0),
            preemption: None,
            suspends: Vec::new(),
            look_at: None,
            is_held: false,
        }
    }

    /// Whether every GPC can take one more task.
    pub fn has_room(&self) -> bool {
        self.pools.iter().all(Pools::has_room)
    }

    /// No task is here.
    pub fn is_empty(&self) -> bool {
        self.tasks.iter().all(Option::is_none)
    }

    /// When the last CTA's end was taken.
    pub fn last_end(&self) -> Cycle {
        self.last_end
    }

    /// Takes a task at `now`.
    pub fn add(&mut self, now: Cycle, scheduled: &Scheduled) -> Result<(), TaskError> {
        let task = scheduled.task;
        let occupancy = Occupancy::new(&self.sm, &task, scheduled.split);
        if occupancy.ctas_per_sm == 0 {
            return Err(TaskError::TooLarge { limiter: occupancy.limiter });
        }
        if self.occupancy(task.launch).is_some() {
            return Err(TaskError::Duplicate { launch: task.launch });
        }
        let running = Running {
            task,
            needs: Needs::new(&self.sm, &task),
            occupancy,
            ready: now + self.setup,
            is_ready: false,
            number: self.tasks_seen,
            // What a queue task has to do comes by and by.
            next: if task.is_queue { task.ctas } else { 0 },
            ended: if task.is_queue { task.ctas } else { 0 },
            resident: vec![0; self.sms.len()],
            on_gpc: vec![0; self.gpcs.len()],
            suspended: VecDeque::new(),
            waiting: BTreeSet::new(),
            early: BTreeSet::new(),
            is_open: task.is_queue,
        };
        self.tasks_seen += 1;
        let slot = match self.tasks.iter().position(Option::is_none) {
            Some(slot) => slot,
            None => {
                self.tasks.push(None);
                self.tasks.len() - 1
            }
        };
        self.tasks[slot] = Some(running);
        let tasks = &self.tasks;
        self.pools.iter_mut().for_each(|pools| pools.add(slot, |slot| rank(tasks, slot)));
        Ok(())
    }

    /// Takes ends of CTAs, in the order of their cycles.
    pub fn take_ends(&mut self, ends: &[CtaEnd]) {
        for end in ends {
            let comes = (end.at + self.end_latency).0 * FRACTION;
            self.ends_free = comes.max(self.ends_free) + self.end_interval;
            self.ends.push_back((Cycle(self.ends_free.div_ceil(FRACTION)), *end));
        }
    }

    /// When something happens next here.
    pub fn next(&self) -> Option<Cycle> {
        let ends = self.ends.front().map(|&(at, _)| at);
        let ready = self.tasks.iter().flatten().filter(|t| !t.is_ready).map(|t| t.ready);
        ready.chain(ends).chain(self.look_at).chain(self.next_slice()).min()
    }

    /// Does what there is to do at `now`, which [`Distribution::next`] told.
    pub fn step(&mut self, now: Cycle, starts: &mut Vec<CtaStart>) {
        while let Some(&(at, end)) = self.ends.front()
            && at <= now
        {
            self.ends.pop_front();
            self.release(at, &end);
        }
        self.tasks.iter_mut().flatten().for_each(|t| t.is_ready |= t.ready <= now);
        self.look_at = self.look_at.filter(|&at| at > now);
        if self.is_held {
            return;
        }
        self.update_pools();
        while self.place_round(now, starts) {
            self.update_pools();
        }
        if self.preemption.is_some() {
            self.make_room(now);
        }
    }

    /// A queue task has so many CTAs more; whether others may follow. A task that is over ends. False: it is not here yet.
    pub fn extend(&mut self, at: Cycle, launch: u32, ctas: u64, is_open: bool) -> bool {
        let Some(slot) = self.slot_of(launch) else { return false };
        if let Some(running) = &mut self.tasks[slot] {
            running.task.ctas += ctas;
            running.is_open = is_open;
        }
        self.rejoin(slot, at);
        self.finish(slot, at);
        true
    }

    /// A CTA that waited for child tasks can go on.
    pub fn resume(&mut self, at: Cycle, launch: u32, linear: u64) {
        let Some(slot) = self.slot_of(launch) else { return };
        let Some(running) = &mut self.tasks[slot] else { return };
        if running.waiting.remove(&linear) {
            running.suspended.push_back(linear);
            self.rejoin(slot, at);
        } else {
            running.early.insert(linear);
        }
    }

    fn slot_of(&self, launch: u32) -> Option<Slot> {
        self.tasks.iter().position(|t| t.as_ref().is_some_and(|t| t.task.launch == launch))
    }

    /// A task has CTAs to place again: it joins the pools that it left.
    fn rejoin(&mut self, slot: Slot, at: Cycle) {
        let tasks = &self.tasks;
        self.pools.iter_mut().for_each(|pools| pools.rejoin(slot, |slot| rank(tasks, slot)));
        self.look_at = Some(self.look_at.map_or(at, |look| look.min(at)));
    }

    /// A task that is over leaves.
    fn finish(&mut self, slot: Slot, at: Cycle) {
        let Some(running) = self.tasks[slot].as_ref().filter(|t| t.is_over()) else { return };
        self.finished.push((running.task.launch, at));
        self.last_end = self.last_end.later(at);
        // The pools still name it; it leaves them before its slot is given to another.
        self.tasks[slot] = None;
        let tasks = &self.tasks;
        for pools in &mut self.pools {
            pools.update(|slot| tasks[slot].is_none(), |_| false, |slot| rank(tasks, slot));
        }
    }

    /// Launches that have ended since the last call, with the cycles at which that was known.
    pub fn finished(&mut self) -> Vec<(u32, Cycle)> {
        std::mem::take(&mut self.finished)
    }

    /// How a launch that is here fills an SM.
    pub fn occupancy(&self, launch: u32) -> Option<Occupancy> {
        self.tasks.iter().flatten().find(|t| t.task.launch == launch).map(|t| t.occupancy)
    }

    fn release(&mut self, at: Cycle, end: &CtaEnd) {
        let n = end.sm.0 as usize;
        let Some(slot) = self.slot_of(end.launch) else { return };
        let (Some(running), Some(sm)) = (self.tasks[slot].as_mut(), self.sms.get_mut(n)) else { return };
        sm.give(&running.needs);
        running.resident[n] -= 1;
        running.on_gpc[sm.gpc as usize] -= 1;
        sm.residents.retain(|r| r.slot != slot || r.linear != end.linear);
        let goes_on = match end.left {
            Left::Ended => {
                running.ended += 1;
                false
            }
            Left::Suspended => true,
            Left::Waiting => running.early.remove(&end.linear),
        };
        if goes_on {
            running.suspended.push_back(end.linear);
            self.rejoin(slot, at);
        } else if end.left == Left::Waiting {
            running.waiting.insert(end.linear);
        }
        self.finish(slot, at);
    }

    fn update_pools(&mut self) {
        let Distribution { tasks, pools, gpcs, sms, sm, .. } = self;
        for (gpc, pools) in pools.iter_mut().enumerate() {
            let known = |slot: Slot| tasks[slot].as_ref();
            let done = |slot| known(slot).is_none_or(|t| t.is_placed() && t.on_gpc[gpc] == 0);
            let idle = |slot| {
                known(slot).is_some_and(|t| {
                    t.on_gpc[gpc] == 0 && !gpcs[gpc].iter().any(|&n| t.fits(n as usize, &sms[n as usize], sm))
                })
            };
            pools.update(done, idle, |slot| rank(tasks, slot));
        }
    }

    /// Gives the GPCs, each in its turn, one CTA for every SM that has room. Whether any was placed.
    fn place_round(&mut self, now: Cycle, starts: &mut Vec<CtaStart>) -> bool {
        let before = starts.len();
        for _ in 0..self.gpcs.len() {
            let gpc = self.turn;
            self.turn = (self.turn + 1) % self.gpcs.len();
            for place in 0..self.pools[gpc].active().len() {
                let slot = self.pools[gpc].active()[place];
                if self.place_on(gpc, slot, now, starts) {
                    break;
                }
            }
        }
        starts.len() > before
    }

    /// Gives every SM of a GPC that has room one CTA of a task. Whether any was placed.
    fn place_on(&mut self, gpc: usize, slot: Slot, now: Cycle, starts: &mut Vec<CtaStart>) -> bool {
        let Some(running) = self.tasks[slot].as_mut().filter(|t| t.is_ready) else { return false };
        // Mostly every SM has as many as it can: no need to look at each.
        if running.on_gpc[gpc] as usize == running.occupancy.ctas_per_sm as usize * self.gpcs[gpc].len() {
            return false;
        }
        let mut placed = false;
        let slices = self.preemption.is_some_and(|p| p.time_slice.is_some());
        let busy = self.tpc_interval + u64::from(running.needs.warps) * self.tpc_warp_interval / FRACTION;
        for &n in &self.gpcs[gpc] {
            let sm = &mut self.sms[n as usize];
            if running.is_placed() {
                break;
            }
            if !running.fits(n as usize, sm, &self.sm) {
                continue;
            }
            let Some((linear, is_restored)) = running.take(slices) else { break };
            sm.take(running, &self.sm);
            running.resident[n as usize] += 1;
            running.on_gpc[gpc] += 1;
            let sent = self.senders[sm.tpc as usize].serve(now, busy);
            starts.push(CtaStart {
                at: sent + self.start_latency,
                sm: SmId(n),
                launch: running.task.launch,
                linear,
                split: sm.split,
                is_restored,
            });
            if self.preemption.is_some() {
                let priority = running.task.priority;
                let at = sent + self.start_latency;
                sm.residents.push(preempt::Resident::new(slot, linear, priority, at, is_restored));
            }
            placed = true;
        }
        placed
    }
}

/// Order of tasks in the pools: priority first, then age.
fn rank(tasks: &[Option<Running>], slot: Slot) -> (u8, u64) {
    tasks[slot].as_ref().map_or((u8::MAX, u64::MAX), |t| (u8::MAX - t.task.priority, t.number))
}
