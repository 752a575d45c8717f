//! Versions of a launch on an SM, as a checkpoint has them.

use super::{Job, Replacing, Unit};
use crate::optimizing::{Entry, Event, Request, Table, Tally, Watcher, Watching};
use crate::sm::Work;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What a checkpoint has of it.
#[derive(Serialize, Deserialize)]
pub struct Saved {
    units: Vec<Vec<Unit>>,
    waiting: Vec<u64>,
    table: Table,
    jobs: VecDeque<Job>,
    fetches: Vec<(u64, u32)>,
    requests: Vec<Request>,
    windows: Vec<(u64, u64)>,
    withdrawn: Vec<u32>,
    events: Vec<Event>,
    tally: Tally,
    /// CTA slot, warp, what it has told, and where it goes when it leaves barriers.
    warps: Vec<(usize, usize, Watching, Vec<u32>)>,
}

impl Replacing {
    /// For a checkpoint.
    pub fn save(&self, work: &Work<'_>) -> Saved {
        let own = work.ctas.iter().enumerate().filter(|(_, c)| c.is_used && c.context == self.context);
        let warps = own.flat_map(|(slot, cta)| {
            (0..cta.resident.warps()).filter_map(move |w| {
                let (observer, entries) = cta.resident.observed(w);
                let watcher = observer?.as_any_ref().downcast_ref::<Watcher>()?;
                Some((slot, w, watcher.seen.clone(), entries.to_vec()))
            })
        });
        Saved {
            units: self.units.clone(),
            waiting: self.waiting.clone(),
            table: self.table.clone(),
            jobs: self.jobs.clone(),
            fetches: self.fetches.clone(),
            requests: self.requests.clone(),
            windows: self.windows.clone(),
            withdrawn: self.withdrawn.clone(),
            events: self.events.clone(),
            tally: self.tally.clone(),
            warps: warps.collect(),
        }
    }

    /// What was saved; none where it cannot be of these CTAs.
    pub fn restore(self: Box<Self>, saved: Saved, work: &mut Work<'_>) -> Option<Box<Replacing>> {
        let (blocks, versions) = (self.known.blocks(), self.known.versions.len());
        let is_sound = saved.units.len() == saved.waiting.len()
            && saved.units.iter().flatten().all(|u| u.is_of(blocks, versions))
            && saved.table.is_of(blocks, versions)
            && saved.jobs.iter().all(|j| (j.block as usize) < blocks && j.left > 0)
            && saved.requests.iter().all(|r| (r.block as usize) < blocks);
        if !is_sound {
            return None;
        }
        for (slot, w, seen, entries) in saved.warps {
            let cta = work.ctas.get_mut(slot).filter(|c| c.is_used && c.context == self.context)?;
            if w >= cta.resident.warps() || entries.len() != blocks {
                return None;
            }
            cta.resident.observe(w, Some(Box::new(Watcher::again(&self.known, seen)?)));
            cta.resident.set_entries(w, &entries);
        }
        // A CTA has a unit for each of its warps, or one.
        for (slot, units) in saved.units.iter().enumerate().filter(|(_, u)| !u.is_empty()) {
            let cta = work.ctas.get(slot).filter(|c| c.is_used && c.context == self.context)?;
            if units.len() != self.units_of(cta.resident.warps()) {
                return None;
            }
        }
        Some(Box::new(Replacing {
            units: saved.units,
            waiting: saved.waiting,
            table: saved.table,
            jobs: saved.jobs,
            fetches: saved.fetches,
            requests: saved.requests,
            windows: saved.windows,
            withdrawn: saved.withdrawn,
            events: saved.events,
            tally: saved.tally,
            ..*self
        }))
    }
}

impl Unit {
    /// Whether it can be one of a program with so many blocks and versions.
    fn is_of(&self, blocks: usize, versions: usize) -> bool {
        let exists = |e: &Entry| (e.version as usize) < versions;
        self.table.is_of(blocks, versions)
            && self.blocks.len() == blocks
            && self.blocks.iter().flat_map(|b| &b.coming).all(|c| exists(&c.entry))
            && self.blocks.iter().flat_map(|b| &b.before).flatten().all(exists)
            && self.entered.is_none_or(|(b, _)| (b as usize) < blocks)
    }
}
