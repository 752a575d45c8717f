//! What happens at exchange points while a batch runs.

use super::jobs::{Job, Jobs, LaunchTimed, Next};
use super::{Allocate, Batch, SEPARATE, Step, Transfer, What, transfer};
use crate::Config;
use crate::command::{Command, Task};
use crate::compute_scheduler::tmd::Metadata;
use crate::distribution::{Needs, Occupancy, Preemption};
use crate::front::{Event, Front};
use crate::memory;
use crate::optimizing::{Services, most_instructions};
use crate::ports::{CtaEnd, CtaStart, Left, Reason, Suspend};
use crate::ppu::{CODE_BASE, CONSTANT_BASE, INSTRUCTION_BYTES, LOCAL_BASE, Part, Stopped};
use crate::sm::code::Code;
use crate::sm::constants::LAUNCH_SHIFT;
use crate::sm::preemption::{Area, Moved, Order, Saved, layout};
use crate::sm::{Context, Failure};
use crate::units::{Cycle, LINE, SmId};
use isa::image::Image;
use serde::{Deserialize, Serialize};
use simt::cta::ChildOrder;
use simt::queue::Queue;
use simt::{Launch, Memory};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Bytes between local memory of two launches that run at once, as a shift.
const LOCAL_SHIFT: u32 = 40;

/// The bound of a queue task.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct OpenQueue {
    job: usize,
    address: u64,
    /// Entries that the machine knows of, and those that are done and not in order.
    known: u64,
    done: BTreeSet<u64>,
    /// What the machine was told: more may come, or is under way.
    stays: bool,
}

/// A batch at work. What of it a checkpoint needs is in [`super::kept`].
pub(crate) struct Tasks<'l, 'p> {
    pub(super) batch: &'p Batch,
    pub(super) buffer: &'p mut dyn Allocate,
    pub(super) start: Cycle,
    pub jobs: Jobs,
    pub contexts: Arc<Vec<Context<'l>>>,
    /// Of each number of a launch on the machine: the job, and the job that had it last.
    pub(super) job_of: Vec<Option<usize>>,
    pub(super) made_for: Vec<usize>,
    /// Code of each image, by registers.
    codes: Vec<(Arc<Image>, u32, Code)>,
    /// Where each image lies.
    places: Vec<(Arc<Image>, u64)>,
    pub(super) grids: u64,
    /// Instructions of the longest program.
    longest: u32,
    /// Commands that are not submitted yet: when, to which push buffer.
    pub(super) commands: VecDeque<(Cycle, usize, Vec<u32>)>,
    pub(super) channels: Vec<usize>,
    /// CTAs that are not on an SM, and whether work distribution knows.
    pub(super) saved: BTreeMap<(u32, u64), (Saved, bool)>,
    pub(super) areas: BTreeMap<(u32, u64), Area>,
    pub(super) queues: Vec<OpenQueue>,
    /// Entries that the host will append to each queue.
    pub(super) pushes: BTreeMap<u64, u32>,
    pub(super) stops: VecDeque<u64>,
    /// The machine is stopped, or about to be.
    pub(super) is_stopping: bool,
    pub moves: Vec<Moved>,
    pub read: Vec<(usize, Vec<u8>)>,
    pub stopped: Vec<u64>,
    /// The last cycle in which a launch ended.
    pub end: Cycle,
}

/// Shared memory that a launch prefers: for the CTAs that an SM gets; the rest is cache.
pub(crate) fn preferred_split(config: &Config, task: &Task) -> u32 {
    let occupancy = Occupancy::new(&config.sm, task, 0);
    let share = task.ctas.div_ceil(u64::from(config.sms()).max(1));
    let per_sm = share.min(u64::from(occupancy.ctas_per_sm)) as u32;
    Needs::new(&config.sm, task).shared.saturating_mul(per_sm.max(1))
}

/// The record of a launch. A queue task goes on behind the entries that are done.
pub(crate) fn task_of(launch: &Launch, number: u32, priority: u8, first: u64) -> Task {
    let function = launch.kernel().function();
    Task {
        launch: number,
        priority,
        at_head: false,
        is_queue: launch.queue.is_some(),
        ctas: if launch.queue.is_some() { first } else { launch.ctas() },
        threads: launch.threads(),
        registers: function.registers,
        shared_bytes: launch.shared_bytes,
        barriers: function.barriers,
    }
}

impl<'l, 'p> Tasks<'l, 'p> {
    /// Of a batch, with nothing done. Bytes of code may be made beside that of its programs; `place` says where an image's code lies.
    pub(super) fn empty(
        batch: &'p Batch,
        buffer: &'p mut dyn Allocate,
        start: Cycle,
        code_room: u32,
        mut place: impl FnMut(&Image) -> u64,
    ) -> Tasks<'l, 'p> {
        let mut tasks = Tasks {
            batch,
            buffer,
            start,
            jobs: Jobs::default(),
            contexts: Arc::new(Vec::new()),
            job_of: Vec::new(),
            made_for: Vec::new(),
            codes: Vec::new(),
            places: Vec::new(),
            grids: 0,
            longest: 0,
            commands: VecDeque::new(),
            channels: Vec::new(),
            saved: BTreeMap::new(),
            areas: BTreeMap::new(),
            queues: Vec::new(),
            pushes: BTreeMap::new(),
            stops: batch.stops.iter().copied().collect(),
            is_stopping: false,
            moves: Vec::new(),
            read: Vec::new(),
            stopped: Vec::new(),
            end: start,
        };
        for own in &batch.launches {
            let image = own.launch.program().image();
            if !tasks.places.iter().any(|(known, _)| Arc::ptr_eq(known, image)) {
                tasks.places.push((image.clone(), place(image)));
                // Behind the last instruction there is the engine's guard, or room for more code.
                let own = image.code.len();
                let most = if code_room == 0 { own + 1 } else { most_instructions(own, code_room) };
                tasks.longest = tasks.longest.max(most as u32);
            }
        }
        tasks
    }

    /// Prepares a batch.
    pub fn new(
        batch: &'p Batch,
        buffer: &'p mut dyn Allocate,
        start: Cycle,
        grids: u64,
        config: &Config,
        memory: &'l Memory,
        code_room: u32,
        place: impl FnMut(&Image) -> u64,
    ) -> Tasks<'l, 'p> {
        let mut tasks = Tasks::empty(batch, buffer, start, code_room, place);
        tasks.grids = grids;
        let mut contexts = Vec::new();
        for (number, own) in batch.launches.iter().enumerate() {
            let job = tasks.jobs.add(own.launch.clone(), own.priority, None, ChildOrder::FireAndForget);
            tasks.jobs.list[job].number = Some(number as u32);
            tasks.job_of.push(Some(job));
            tasks.made_for.push(job);
            contexts.push(tasks.context(job, number as u32, config, memory));
            if let Some(address) = own.launch.queue {
                let known = Queue::read(memory, address).map_or(0, |q| q.done);
                tasks.queues.push(OpenQueue { job, address, known, done: BTreeSet::new(), stays: true });
            }
        }
        tasks.contexts = Arc::new(contexts);
        for push in &batch.transfers {
            if let Transfer::Push { queue, .. } = push {
                *tasks.pushes.entry(*queue).or_default() += 1;
            }
        }
        tasks
    }

    pub(super) fn context(
        &mut self,
        job: usize,
        number: u32,
        config: &Config,
        memory: &'l Memory,
    ) -> Context<'l> {
        let launch = self.jobs.list[job].launch.clone();
        let group = if self.groups() == 0 { 0 } else { self.root(job).min(SEPARATE) };
        let image = launch.program().image();
        let registers = launch.kernel().function().registers;
        let is_it = |(known, r, _): &&(Arc<Image>, u32, Code)| Arc::ptr_eq(known, image) && *r == registers;
        let code = match self.codes.iter().find(is_it) {
            Some((_, _, code)) => code.clone(),
            None => {
                let code = Code::new(image, registers, &config.sm);
                self.codes.push((image.clone(), registers, code.clone()));
                code
            }
        };
        let base = self.places.iter().find(|(known, _)| Arc::ptr_eq(known, image)).map_or(CODE_BASE, |p| p.1);
        self.grids += 1;
        Context {
            memory,
            image: image.clone(),
            code: code.placed(base, number),
            grid_id: self.grids,
            local_base: LOCAL_BASE + (u64::from(number) << LOCAL_SHIFT),
            local_stride: u64::from(launch.local_bytes()).next_multiple_of(128) * 32,
            group: group as u16,
            rows: group as u32 * self.longest,
            launch,
        }
    }

    /// The programs, and where they lie.
    pub fn images(&self) -> impl Iterator<Item = (&Image, u64)> {
        self.places.iter().map(|(image, place)| (&**image, *place))
    }

    /// The job with this number on the machine.
    pub fn job_of(&self, number: u32) -> usize {
        self.job_of.get(number as usize).copied().flatten().unwrap_or(0)
    }

    /// How a batch ended early, with the host's launch instead of the number on the machine.
    pub fn named(&self, stopped: Stopped) -> Stopped {
        match stopped {
            Stopped::Fault(f) => {
                let launch = self.root(self.job_of(f.launch)) as u32;
                Stopped::Fault(Failure { launch, ..f })
            }
            other => other,
        }
    }

    /// Grids that there have been.
    pub fn grids(&self) -> u64 {
        self.grids
    }

    /// Opens push buffers, and writes metadata and commands.
    pub fn begin(&mut self, front: &mut Front, config: &Config, memory: &Memory) -> Result<(), Stopped> {
        let refused = |e: simt::MemoryError| Stopped::Refused(format!("task metadata: {e}"));
        for (number, own) in self.batch.launches.iter().enumerate() {
            let first = own.launch.queue.and_then(|q| Queue::read(memory, q)).map_or(0, |q| q.done);
            let task = task_of(&own.launch, number as u32, own.priority, first);
            let task = Task { at_head: own.at_head, ..task };
            let metadata = Metadata { task, grid: own.launch.grid, queue: own.launch.queue };
            memory.write(own.tmd, &metadata.bytes()).map_err(refused)?;
        }
        self.channels = self.batch.streams.iter().map(|&priority| front.open_channel(priority)).collect();
        let mut at = self.start;
        for &Step { stream, at: from, what } in &self.batch.steps {
            let mut words = Vec::new();
            at = at.later(self.start + from);
            // Steps of a stream follow each other, but entries for queues come whenever they come.
            let is_push =
                matches!(what, What::Transfer(n) if matches!(self.batch.transfers[n], Transfer::Push { .. }));
            if !is_push && !matches!(what, What::Wait(_)) {
                Command::WaitForTasks.encode(&mut words);
            }
            match what {
                What::Launch(n) => {
                    let own = &self.batch.launches[n];
                    let task = task_of(&own.launch, n as u32, own.priority, 0);
                    Command::SetSharedSplit { bytes: preferred_split(config, &task) }.encode(&mut words);
                    Command::RunTask { address: own.tmd }.encode(&mut words);
                }
                What::Transfer(n) => {
                    let bytes = self.batch.transfers[n].bytes();
                    Command::Transfer { number: n as u32, bytes }.encode(&mut words);
                }
                What::Record(semaphore) => Command::Signal { semaphore }.encode(&mut words),
                What::Wait(semaphore) => Command::Await { semaphore }.encode(&mut words),
            }
            self.commands.push_back((at, self.channels[stream], words));
            if matches!(what, What::Launch(_)) {
                at += u64::from(config.host.submit_interval);
            }
        }
        let preemption = Preemption { time_slice: self.batch.time_slice };
        front.set_preemption(Some(preemption));
        self.submit(front);
        Ok(())
    }

    /// Submits what there is room for; what waits must not hold up other push buffers.
    fn submit(&mut self, front: &mut Front) {
        let mut full = BTreeSet::new();
        let mut n = 0;
        while n < self.commands.len() {
            let (at, channel, words) = &self.commands[n];
            if full.contains(channel) || words.len() > front.room(*channel) {
                full.insert(*channel);
                n += 1;
                continue;
            }
            if front.submit_to(*channel, *at, words).is_err() {
                full.insert(*channel);
            } else {
                self.commands.remove(n);
            }
        }
    }

    /// Nothing is left to be done.
    pub fn is_over(&self, front: &Front) -> bool {
        self.commands.is_empty()
            && self.saved.is_empty()
            && front.is_idle()
            && self.jobs.list.iter().all(|j| j.is_done)
    }

    /// When the next stop is due.
    pub fn next_stop(&self) -> Option<Cycle> {
        self.stops.front().filter(|_| !self.is_stopping).map(|&at| self.start + at)
    }

    fn job(&mut self, number: u32) -> Option<&mut Job> {
        let job = (*self.job_of.get(number as usize)?)?;
        Some(&mut self.jobs.list[job])
    }

    /// CTAs that left, as work distribution hears of it.
    pub fn left(&mut self, ends: &[CtaEnd], front: &mut Front, memory: &Memory) {
        for end in ends {
            let key = (end.launch, end.linear);
            let Some(job) = self.job(end.launch) else { continue };
            match end.left {
                Left::Ended => {
                    job.timed.ctas += 1;
                    job.timed.warp_instructions += end.warp_instructions;
                    job.timed.thread_instructions += end.thread_instructions;
                    let job = self.job_of[end.launch as usize];
                    if let Some(area) = self.areas.remove(&key) {
                        self.free(area);
                    }
                    if let Some(queue) = self.queues.iter_mut().find(|q| Some(q.job) == job) {
                        queue.ended(memory, end.linear);
                    }
                }
                Left::Suspended | Left::Waiting => {
                    job.timed.suspended += 1;
                    if let Some((saved, is_known)) = self.saved.get_mut(&key) {
                        *is_known = true;
                        if end.left == Left::Waiting && saved.children == 0 {
                            front.resume(end.at, end.launch, end.linear);
                        }
                    }
                }
            }
        }
    }

    fn free(&mut self, area: Area) {
        self.buffer.free(area.state);
        if area.local != 0 {
            self.buffer.free(area.local);
        }
    }

    /// A CTA starts; if it was suspended, its state goes with it.
    pub fn starts(&mut self, start: &CtaStart, part: &mut Part<'l>) {
        let since = start.at.since(self.start);
        if let Some(job) = self.job(start.launch) {
            job.timed.begun = job.timed.begun.min(since);
        }
        if start.is_restored
            && let Some((saved, _)) = self.saved.remove(&(start.launch, start.linear))
        {
            part.work.arriving.push(saved);
        }
    }

    /// What SMs left for others at an exchange point.
    pub fn collect(&mut self, part: &mut Part<'l>, front: &mut Front) {
        for saved in part.work.saved.drain(..) {
            self.saved.insert((saved.launch, saved.linear), (saved, false));
        }
        for mut moved in part.sm.moves.drain(..) {
            if moved.is_restored {
                front.runs_again(moved.sm, moved.launch, moved.linear, moved.until);
            }
            for at in [&mut moved.from, &mut moved.drained, &mut moved.until] {
                *at = Cycle(at.since(self.start));
            }
            if let Some(job) = self.job_of.get(moved.launch as usize).copied().flatten() {
                moved.launch = job as u32;
            }
            self.moves.push(moved);
        }
    }

    /// Everything between exchange points: commands, child tasks, ends of launches, CTAs that make room.
    pub fn serve(
        &mut self,
        until: Cycle,
        front: &mut Front,
        parts: &mut [Part<'l>],
        is_active: &mut [bool],
        memory: (&mut memory::System, &'l Memory),
        mut services: Option<&mut Services>,
        config: &Config,
    ) -> Result<(), Stopped> {
        let (system, device) = memory;
        for (at, event) in front.events() {
            match event {
                Event::Task { address, split, channel } => {
                    let metadata =
                        Metadata::read(device, address).map_err(|e| Stopped::Refused(e.to_string()))?;
                    let since = at.since(self.start);
                    let Some(job) = self.job(metadata.task.launch) else { continue };
                    job.timed.known = since;
                    let bank = job.launch.kernel().function().param_bytes;
                    self.preload(system, metadata.task.launch, bank);
                    if let Some(services) = &mut services {
                        self.optimize(metadata.task.launch, until, services, parts, system, config);
                    }
                    front.add_task(at, metadata.task, split, Some(channel));
                }
                Event::Transferred { number } => self.transferred(number, system, device)?,
                Event::Invalidate(caches) => {
                    if caches.l2 {
                        system.flush();
                    }
                    if caches.l1 || caches.instruction || caches.constant {
                        parts.iter_mut().for_each(|p| p.sm.flush());
                    }
                }
                Event::Notify { .. } => {}
            }
        }
        self.spawn(until, front, parts, system, device, services.as_deref_mut(), config)?;
        let mut next = Vec::new();
        for (number, at) in front.finished() {
            if let Some(job) = self.job_of.get(number as usize).copied().flatten() {
                self.jobs.ended(job, &mut next);
            }
            // None of its CTAs comes any more.
            if let (Some(services), Some(job)) =
                (&mut services, self.job_of.get(number as usize).copied().flatten())
            {
                let is_own = job < self.batch.launches.len();
                self.jobs.list[job].timed.versions = services.end(number, is_own, parts);
            }
            let services = services.as_deref_mut();
            self.go_on(&mut next, at, until, front, parts, is_active, system, device, services, config);
        }
        self.feed_queues(until, front, device);
        self.stop(until, front, parts);
        for suspend in front.suspends() {
            self.suspend(suspend, until, parts, is_active)?;
        }
        self.parents(until, parts, is_active)?;
        self.submit(front);
        Ok(())
    }

    pub(super) fn preload(&self, system: &mut memory::System, number: u32, param_bytes: u32) {
        let bank = u64::from(isa::abi::launch::PARAMS) + u64::from(param_bytes);
        system.preload_constants(CONSTANT_BASE + (u64::from(number) << LAUNCH_SHIFT), bank);
        if let Some(context) = self.contexts.get(number as usize) {
            let code = context.image.code.len() as u64 * INSTRUCTION_BYTES;
            system.expect_code(context.code.first_line * LINE, code);
        }
    }

    fn transferred(
        &mut self,
        number: u32,
        system: &mut memory::System,
        device: &Memory,
    ) -> Result<(), Stopped> {
        let Some(what) = self.batch.transfers.get(number as usize) else { return Ok(()) };
        let came = transfer(what, device).map_err(|e| {
            Stopped::Refused(match what {
                Transfer::Push { queue, .. } => match Queue::read(device, *queue) {
                    Some(q) => format!(
                        "the queue at {queue:#x} is full: its {} entries are not done yet",
                        q.capacity
                    ),
                    None => format!("there is no queue at {queue:#x}"),
                },
                _ => format!("a copy in a stream: {e}"),
            })
        })?;
        match what {
            Transfer::Write { address, bytes } => system.host_write(*address, bytes.len() as u64),
            Transfer::Fill { address, count, .. } => system.host_write(*address, *count),
            Transfer::Copy { to, count, .. } => system.host_write(*to, *count),
            Transfer::Push { queue, .. } => {
                if let Some(left) = self.pushes.get_mut(queue) {
                    *left -= 1;
                }
            }
            Transfer::Read { .. } => {}
        }
        if let Some(bytes) = came {
            self.read.push((number as usize, bytes));
        }
        Ok(())
    }

    /// Instructions of the longest program, with room for code that is made while it runs.
    pub fn longest(&self) -> usize {
        self.longest as usize
    }

    /// What follows from the end of a launch.
    fn go_on(
        &mut self,
        next: &mut Vec<Next>,
        at: Cycle,
        until: Cycle,
        front: &mut Front,
        parts: &mut [Part<'l>],
        is_active: &mut [bool],
        system: &mut memory::System,
        device: &'l Memory,
        mut services: Option<&mut Services>,
        config: &Config,
    ) {
        for what in next.drain(..) {
            match what {
                Next::Start(job) => {
                    let services = services.as_deref_mut();
                    self.start_child(job, at, front, parts, system, device, services, config);
                }
                Next::Done(job) => {
                    self.end = self.end.later(at);
                    let own = &mut self.jobs.list[job];
                    own.timed.ended = at.since(self.start);
                    let number = own.number;
                    let parent = own.parent.filter(|_| own.order != ChildOrder::Tail);
                    if let Some(number) = number {
                        front.task_ended(number, at);
                        // The host's launches keep their numbers.
                        if own.parent.is_some() {
                            self.job_of[number as usize] = None;
                        }
                    }
                    if let Some((parent, linear)) = parent
                        && let Some(number) = self.jobs.list[parent].number
                    {
                        self.child_ended(number, linear, at.later(until), front, parts, is_active);
                    }
                }
            }
        }
    }

    /// A CTA's child task has ended: on whichever SM it is, or on none.
    fn child_ended(
        &mut self,
        number: u32,
        linear: u64,
        at: Cycle,
        front: &mut Front,
        parts: &mut [Part<'l>],
        is_active: &mut [bool],
    ) {
        if let Some((saved, is_known)) = self.saved.get_mut(&(number, linear)) {
            if saved.child_ended() && *is_known {
                front.resume(at, number, linear);
            }
            return;
        }
        for (part, active) in parts.iter_mut().zip(is_active) {
            let arriving = part.work.arriving.iter_mut().find(|s| s.launch == number && s.linear == linear);
            if let Some(saved) = arriving {
                saved.child_ended();
                return;
            }
            if part.sm.child_ended(&mut part.work, number, linear, at) {
                *active = true;
                return;
            }
        }
    }

    /// Entries that came for queues become CTAs.
    fn feed_queues(&mut self, until: Cycle, front: &mut Front, device: &Memory) {
        for q in &mut self.queues {
            let own = &self.jobs.list[q.job];
            let Some(number) = own.number.filter(|_| !own.is_done && own.timed.known > 0) else { continue };
            let Some(queue) = Queue::read(device, q.address) else { continue };
            // Kernels that run may append entries still.
            let others = self.jobs.list.iter().enumerate();
            let appends = |(n, j): (usize, &Job)| {
                n != q.job && j.launch.kernel().pushes() && !j.is_done && j.timed.known > 0
            };
            let is_open = self.pushes.get(&q.address).is_some_and(|&n| n > 0) || { others }.any(appends);
            // A queue of which everything is done ends with the last CTA's end, or now.
            let stays = is_open || queue.done < queue.put;
            let news = queue.put > q.known || stays != q.stays;
            if news && front.extend(until, number, queue.put - q.known, stays) {
                (q.known, q.stays) = (queue.put, stays);
            }
        }
    }

    /// A debugger stops the machine, and lets it go on when all CTAs are out.
    fn stop(&mut self, until: Cycle, front: &mut Front, parts: &[Part<'l>]) {
        if let Some(at) = self.next_stop()
            && at < until
        {
            self.is_stopping = true;
            front.stop(until);
        }
        if self.is_stopping && front.is_stopped() && parts.iter().all(|p| p.sm.is_empty()) {
            self.stops.pop_front();
            self.is_stopping = false;
            self.stopped.push(until.since(self.start));
            front.go_on(until);
        }
    }

    /// CTAs that wait for child tasks make room.
    fn parents(
        &mut self,
        until: Cycle,
        parts: &mut [Part<'l>],
        is_active: &mut [bool],
    ) -> Result<(), Stopped> {
        for n in 0..parts.len() {
            for (launch, linear) in std::mem::take(&mut parts[n].sm.waiting_parents) {
                let is_it = |c: &&crate::sm::CtaSlot<'_>| {
                    c.is_used && c.context == launch as usize && c.linear == linear
                };
                let waits =
                    parts[n].work.ctas.iter().find(is_it).is_some_and(|c| c.resident.waits_for_children());
                if waits {
                    let sm = SmId(n as u16);
                    let suspend = Suspend { at: until, sm, launch, linear, reason: Reason::Children };
                    self.suspend(suspend, until, parts, is_active)?;
                }
            }
        }
        Ok(())
    }

    /// Tells an SM to suspend a CTA, with room for its state.
    fn suspend(
        &mut self,
        suspend: Suspend,
        until: Cycle,
        parts: &mut [Part<'l>],
        is_active: &mut [bool],
    ) -> Result<(), Stopped> {
        let key = (suspend.launch, suspend.linear);
        let area = match self.areas.get(&key) {
            Some(&area) => area,
            None => {
                let context = &self.contexts[suspend.launch as usize];
                let (state, local) = layout(&context.launch).bytes();
                let full = || {
                    let need = state + local;
                    Stopped::Refused(format!(
                        "the driver's buffer has no room for the {need} bytes of a CTA that is suspended"
                    ))
                };
                let state = self.buffer.allocate(state).ok_or_else(full)?;
                let local = if local > 0 { self.buffer.allocate(local).ok_or_else(full)? } else { 0 };
                let area = Area { state, local };
                self.areas.insert(key, area);
                area
            }
        };
        let n = usize::from(suspend.sm.0);
        let suspend = Suspend { at: suspend.at.later(until), ..suspend };
        parts[n].sm.suspend(Order { suspend, area, mode: self.batch.mode });
        is_active[n] = true;
        Ok(())
    }

    /// Times of all launches.
    pub fn timed(&self) -> Vec<LaunchTimed> {
        self.jobs.list.iter().map(|j| j.timed.clone()).collect()
    }

    /// Gives back what suspended CTAs had.
    pub fn finish(&mut self) {
        for area in std::mem::take(&mut self.areas).into_values() {
            self.free(area);
        }
    }
}

impl OpenQueue {
    pub(super) fn job(&self) -> usize {
        self.job
    }

    /// An entry is done; places before the first that is not are free.
    fn ended(&mut self, memory: &Memory, linear: u64) {
        self.done.insert(linear);
        let Some(mut queue) = Queue::read(memory, self.address) else { return };
        let mut first = queue.done;
        while self.done.remove(&first) {
            first += 1;
        }
        // The record was there just now.
        let _ = queue.set_done(memory, first);
    }
}
