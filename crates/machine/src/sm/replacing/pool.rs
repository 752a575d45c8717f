//! What an SM knows of blocks that each of its CTAs runs too seldom to ask for a version: what one CTA saw becomes a version
//! that CTAs which come later begin with. No CTA changes to it while it runs; the SM's table is what they begin with.

use super::{Block, Coming, FEWEST_CHECKS, Replacing, Unit, gather};
use crate::optimizing::{Event, Happened, Level, Request};
use crate::sm::Work;
use crate::sm::core::Sm;
use crate::units::Cycle;

/// Requests and jobs for the SM itself have this instead of a CTA slot.
pub(super) const POOL: usize = usize::MAX;

impl Replacing {
    /// Whom a request or a job is for.
    pub(super) fn block_of(&mut self, slot: usize, unit: usize, block: u32) -> Option<&mut Block> {
        let blocks = match slot {
            POOL => &mut self.pool,
            _ => &mut self.units.get_mut(slot)?.get_mut(unit)?.blocks,
        };
        blocks.get_mut(block as usize)
    }

    /// Adds what an ended CTA's threads saw of blocks that they never asked a version of.
    fn pool_unit(&mut self, unit: &Unit) {
        for (own, pooled) in unit.blocks.iter().zip(&mut self.pool) {
            if own.attempts == 0 {
                pooled.profile.add(&own.profile);
            }
            // It has begun to be made for threads that are gone.
            if let Some(coming) = own.coming.filter(|c| c.ready != u64::MAX)
                && pooled.coming.is_none()
                && !pooled.is_asked
            {
                (pooled.coming, pooled.is_asked) = (Some(coming), true);
            }
        }
    }

    /// An execution of a block by threads that may have begun with the SM's version of it.
    pub(super) fn note_execution(&mut self, block: usize, version: Option<u32>, cycles: u64) {
        let own = self.table.get(block).map(|e| e.version);
        if let Some(pooled) = self.pool.get_mut(block) {
            let before = pooled.before.last().copied().flatten().map(|e| e.version);
            match version {
                _ if version == own => pooled.new.add(cycles),
                _ if version == before => pooled.old.add(cycles),
                // That of a larger set.
                _ => {}
            }
        }
    }

    /// Why CTAs that come should not begin with the SM's version of a block, if they should not.
    fn pool_fails(&self, block: usize) -> Option<(u32, Happened)> {
        let version = self.table.get(block)?.version;
        let placed = self.known.versions.get(version as usize)?;
        let one_in = u64::from(self.known.spec.failures_one_in);
        let mut checked = self.tally.checked.range(placed.first..placed.end);
        if checked.any(|(_, c)| c.checks >= FEWEST_CHECKS && c.failed * one_in > c.checks) {
            return Some((version, Happened::Failed));
        }
        self.pool[block].is_slower(&self.known.spec).then_some((version, Happened::Slower))
    }
}

impl Sm {
    /// A CTA has ended: what its threads ran is offered to those that come, and what they saw counts for the SM.
    pub(in crate::sm) fn end_units(&mut self, work: &mut Work<'_>, slot: usize, now: u64) {
        let context = work.ctas[slot].context;
        let Some(mut r) = self.replacing.get_mut(context).and_then(Option::take) else { return };
        let mut units = r.units.get_mut(slot).map(std::mem::take).unwrap_or_default();
        let resident = &mut work.ctas[slot].resident;
        let warps = resident.warps() as u64;
        if !units.is_empty() {
            gather(&mut units, &mut r.tally, &r.known, resident);
        }
        let is_shared = r.known.level >= Level::Sm;
        for unit in &mut units {
            if let Some((b, since)) = unit.entered {
                let version = unit.table.get(b as usize).map(|e| e.version);
                r.tally.add(b, version, now.saturating_sub(since));
                if is_shared && unit.blocks[b as usize].attempts == 0 {
                    r.note_execution(b as usize, version, now.saturating_sub(since));
                }
            }
            if is_shared {
                r.pool_unit(unit);
                let had = r.table.clone();
                r.tally.discarded += u64::from(r.table.merge(&unit.table));
                let changed = (0..r.pool.len()).filter(|&b| had.get(b) != r.table.get(b));
                changed.for_each(|b| r.pool[b].change(had.get(b)));
            }
        }
        if is_shared {
            self.look_at_pool(&mut r, warps, now);
        }
        r.forget(slot);
        self.replacing[context] = Some(r);
        self.start_helper(now);
        self.note_work();
    }

    /// Versions that are no good for CTAs that come are given up, and others are asked for.
    fn look_at_pool(&mut self, r: &mut Replacing, warps: u64, now: u64) {
        for b in 0..r.pool.len() {
            if let Some((version, why)) = r.pool_fails(b) {
                let before = r.pool[b].give_up(version);
                r.table.set(b, before);
                r.withdrawn.push(version);
                let what = Happened::RolledBack { block: b as u32, version, why: Box::new(why) };
                r.events.push(Event::new(now, self.id.0, None, what));
            }
            let is_first = r.pool[b].attempts == 0;
            let Some(profile) = r.pool[b].ask(&r.known, warps, now) else { continue };
            r.requests.push(Request {
                at: Cycle(now),
                sm: self.id.0,
                slot: POOL,
                unit: 0,
                block: b as u32,
                base: r.table.get(b),
                is_first,
                bad: r.pool[b].bad.clone(),
                profile,
            });
        }
    }

    /// Versions that were made for CTAs that come are there: they are what these begin with.
    pub(super) fn publish_pool(&mut self, r: &mut Replacing, work: &Work<'_>, now: u64) {
        let mut blocks = Vec::new();
        for b in 0..r.pool.len() {
            let Some(Coming { entry, .. }) = r.pool[b].coming.filter(|c| c.ready <= now) else { continue };
            let own = &mut r.pool[b];
            (own.coming, own.is_asked) = (None, false);
            let had = r.table.get(b);
            if own.bad.contains(&entry.version) || !r.table.publish(b, entry) {
                r.tally.discarded += 1;
                continue;
            }
            own.change(had);
            blocks.push(b);
            let what = Happened::Replaced { block: b as u32, version: entry.version };
            r.events.push(Event::new(now, self.id.0, None, what));
        }
        if let Some(context) = work.contexts.get(r.context).filter(|_| !blocks.is_empty()) {
            let code = context.code.clone();
            self.invalidate_code(r, &code, &blocks, None);
        }
    }
}
