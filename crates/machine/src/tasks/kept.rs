//! A batch at work, as a checkpoint has it.

use super::Batch;
use super::jobs::{Jobs, SavedJob};
use super::serve::{OpenQueue, Tasks};
use super::{Allocate, Transfer};
use crate::Config;
use crate::sm::Context;
use crate::sm::preemption::{Area, Moved, Saved, layout};
use crate::units::Cycle;
use isa::image::Image;
use serde::{Deserialize, Serialize};
use simt::memory::Bounds;
use simt::{Launch, Memory};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// All that [`Tasks`] is and that does not follow from the batch. CTAs that are suspended are in device memory, but for
/// what the front keeps of them.
#[derive(Serialize, Deserialize)]
pub(crate) struct Kept {
    start: Cycle,
    /// Where the host's launches have their metadata.
    records: Vec<u64>,
    jobs: Vec<SavedJob>,
    /// Of each number on the machine the job that has it or had it last, and its grid; whether the job has it still.
    contexts: Vec<(usize, u64, bool)>,
    grids: u64,
    commands: VecDeque<(Cycle, usize, Vec<u32>)>,
    channels: Vec<usize>,
    suspended: Vec<(Saved, bool)>,
    areas: Vec<(u32, u64, Area)>,
    queues: Vec<OpenQueue>,
    pushes: BTreeMap<u64, u32>,
    stops: VecDeque<u64>,
    is_stopping: bool,
    moves: Vec<Moved>,
    read: Vec<(usize, Vec<u8>)>,
    stopped: Vec<u64>,
    end: Cycle,
}

impl<'l, 'p> Tasks<'l, 'p> {
    /// At an exchange point, when everything is served.
    pub fn keep(&self, memory: &Memory) -> Kept {
        let has = |n: usize| self.job_of[n] == Some(self.made_for[n]);
        let contexts = self.contexts.iter().enumerate();
        Kept {
            start: self.start,
            records: self.batch.launches.iter().map(|l| l.tmd).collect(),
            jobs: self.jobs.save(memory, |job| self.made_for.contains(&job)),
            contexts: contexts.map(|(n, c)| (self.made_for[n], c.grid_id, has(n))).collect(),
            grids: self.grids,
            commands: self.commands.clone(),
            channels: self.channels.clone(),
            suspended: self.saved.values().cloned().collect(),
            areas: self.areas.iter().map(|(&(launch, linear), &area)| (launch, linear, area)).collect(),
            queues: self.queues.clone(),
            pushes: self.pushes.clone(),
            stops: self.stops.clone(),
            is_stopping: self.is_stopping,
            moves: self.moves.clone(),
            read: self.read.clone(),
            stopped: self.stopped.clone(),
            end: self.end,
        }
    }

    /// Device memory that no suspended CTA has had yet.
    pub fn untouched(&self) -> Bounds {
        self.buffer.untouched()
    }

    /// Goes on with a batch; `None` where what was kept is not of it. `with_versions` gives contexts the code that was made for them.
    pub fn resume(
        batch: &'p Batch,
        buffer: &'p mut dyn Allocate,
        kept: Kept,
        config: &Config,
        memory: &'l Memory,
        code_room: u32,
        with_versions: impl FnOnce(&mut [Context<'l>]) -> bool,
        place: impl FnMut(&Image) -> u64,
    ) -> Option<Tasks<'l, 'p>> {
        let host: Vec<Arc<Launch>> = batch.launches.iter().map(|l| l.launch.clone()).collect();
        let mut tasks = Tasks::empty(batch, buffer, kept.start, code_room, place);
        tasks.jobs = Jobs::restore(kept.jobs, &host, memory)?;
        let jobs = tasks.jobs.list.len();
        let is_sound = kept.records.iter().eq(batch.launches.iter().map(|l| &l.tmd))
            && kept.contexts.len() >= host.len()
            && kept.contexts.iter().all(|c| c.0 < jobs)
            && kept.contexts.iter().take(host.len()).enumerate().all(|(n, c)| c.0 == n && c.2)
            && kept.queues.iter().all(|q| q.job() < host.len())
            && kept.channels.len() == batch.streams.len()
            && kept.read.iter().all(|r| matches!(batch.transfers.get(r.0), Some(Transfer::Read { .. })));
        if !is_sound {
            return None;
        }
        let mut contexts = Vec::with_capacity(kept.contexts.len());
        for (number, &(job, grid, has)) in kept.contexts.iter().enumerate() {
            // Grids get the next number; here each gets its own again.
            tasks.grids = grid.wrapping_sub(1);
            contexts.push(tasks.context(job, number as u32, config, memory));
            tasks.made_for.push(job);
            tasks.job_of.push(has.then_some(job));
        }
        if !with_versions(&mut contexts) {
            return None;
        }
        tasks.contexts = Arc::new(contexts);
        tasks.grids = kept.grids;
        for (launch, linear, area) in kept.areas {
            let (state, local) = layout(&tasks.contexts.get(launch as usize)?.launch).bytes();
            let is_free = tasks.buffer.claim(area.state, state)
                && (local == 0 || tasks.buffer.claim(area.local, local))
                && (local > 0) == (area.local != 0);
            if !is_free {
                return None;
            }
            tasks.areas.insert((launch, linear), area);
        }
        for (saved, is_known) in kept.suspended {
            if !tasks.areas.get(&(saved.launch, saved.linear)).is_some_and(|&area| area == saved.area) {
                return None;
            }
            tasks.saved.insert((saved.launch, saved.linear), (saved, is_known));
        }
        (tasks.commands, tasks.channels) = (kept.commands, kept.channels);
        (tasks.queues, tasks.pushes) = (kept.queues, kept.pushes);
        (tasks.stops, tasks.is_stopping, tasks.stopped) = (kept.stops, kept.is_stopping, kept.stopped);
        (tasks.moves, tasks.read, tasks.end) = (kept.moves, kept.read, kept.end);
        Some(tasks)
    }
}
