//! Versions of code while a kernel runs: what its sets of threads saw, which versions they run, and how these change at barriers.
//!
//! Nothing happens anywhere but where all threads of a set wait at a barrier, or have not begun. There profiles are looked at, versions
//! are asked for, and versions that have come take the place of others: warps leave the barrier for them.

mod kept;

pub use kept::Saved;

use super::code::Code;
use super::core::Sm;
use super::work::Work;
use crate::optimizing::{
    Answer, Entry, Event, Happened, Invalidation, Known, Level, Mean, Placed, Profiling, Request, Table,
    Tally, Watcher, Who,
};
use crate::units::Cycle;
use optimizer::Profile;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Checks of an assumption before it can be said to fail too often.
const FEWEST_CHECKS: u64 = 8;

/// A version that is on its way.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Coming {
    entry: Entry,
    /// When it is there; never while a warp works on it.
    ready: u64,
}

/// What a set of threads knows of a block.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Block {
    /// Seen since the last version was asked for, and what that was made from.
    profile: Profile,
    last: Option<Profile>,
    attempts: u32,
    is_asked: bool,
    coming: Option<Coming>,
    /// What ran before what runs now.
    before: Vec<Option<Entry>>,
    /// Versions that were given up.
    bad: Vec<u32>,
    /// Cycles of an execution, before the version that runs now and with it.
    old: Mean,
    new: Mean,
}

/// A set of threads that is synchronised together: a CTA, or a warp.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Unit {
    table: Table,
    blocks: Vec<Block>,
    checked: BTreeMap<u32, crate::optimizing::Checked>,
    /// The block that it runs, and since when.
    entered: Option<(u32, u64)>,
}

/// Work of a warp that optimizes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Job {
    slot: usize,
    unit: usize,
    block: u32,
    /// Issue slots that are left, the sub-core that they are taken from, and when the next is; never while nobody works.
    left: u64,
    sub_core: usize,
    next: u64,
}

/// Versions of a launch on an SM.
pub struct Replacing {
    pub known: Arc<Known>,
    /// The launch's number.
    context: usize,
    /// By CTA slot.
    units: Vec<Vec<Unit>>,
    /// Until when all threads of a CTA slot wait at a barrier.
    waiting: Vec<u64>,
    /// The SM's own, and what sets that it is part of have.
    pub table: Table,
    pub above: Arc<Table>,
    jobs: VecDeque<Job>,
    /// Versions whose code is to be fetched, and when.
    fetches: Vec<(u64, u32)>,
    /// For whoever makes versions, since it looked.
    pub requests: Vec<Request>,
    /// When all threads of the SM waited, since somebody looked.
    pub windows: Vec<(u64, u64)>,
    /// Versions that were given up, since somebody looked.
    pub withdrawn: Vec<u32>,
    pub events: Vec<Event>,
    pub tally: Tally,
}

impl Replacing {
    pub fn new(known: &Arc<Known>, above: &Arc<Table>, context: usize) -> Replacing {
        Replacing {
            known: known.clone(),
            context,
            units: Vec::new(),
            waiting: Vec::new(),
            table: Table::new(known.blocks()),
            above: above.clone(),
            jobs: VecDeque::new(),
            fetches: Vec::new(),
            requests: Vec::new(),
            windows: Vec::new(),
            withdrawn: Vec::new(),
            events: Vec::new(),
            tally: Tally::new(known.blocks()),
        }
    }

    /// Units of a CTA of so many warps.
    fn units_of(&self, warps: usize) -> usize {
        if self.known.level == Level::Warp { warps } else { 1 }
    }

    /// Puts the units of a CTA into its slot.
    fn put(&mut self, slot: usize, units: Vec<Unit>) {
        if self.units.len() <= slot {
            self.units.resize(slot + 1, Vec::new());
            self.waiting.resize(slot + 1, 0);
        }
        self.units[slot] = units;
        self.waiting[slot] = 0;
    }

    fn next_work(&self) -> u64 {
        let fetches = self.fetches.iter().map(|f| f.0);
        self.jobs.iter().map(|j| j.next).chain(fetches).min().unwrap_or(u64::MAX)
    }

    /// A CTA is gone: nobody works for it, and what is to be fetched for the last one is not.
    fn forget(&mut self, slot: usize) {
        self.jobs.retain(|j| j.slot != slot);
        if self.units.iter().all(Vec::is_empty) {
            self.fetches.clear();
        }
    }

    /// A version was made for a unit, or there is nothing to gain.
    pub fn answer(&mut self, answer: &Answer) {
        let Some(unit) = self.units.get_mut(answer.slot).and_then(|u| u.get_mut(answer.unit)) else { return };
        let block = &mut unit.blocks[answer.block as usize];
        if !block.is_asked {
            return;
        }
        let Some(entry) = answer.entry else {
            block.is_asked = false;
            return;
        };
        block.coming = Some(Coming { entry, ready: answer.ready });
        if answer.ready != u64::MAX {
            self.fetches.push((answer.ready, entry.version));
        }
        if answer.slots > 0 {
            self.jobs.push_back(Job {
                slot: answer.slot,
                unit: answer.unit,
                block: answer.block,
                left: answer.slots,
                sub_core: 0,
                next: u64::MAX,
            });
        }
    }

    /// The other versions of a block that a unit runs are no longer those of before.
    fn adopt(unit: &mut Unit, block: usize, entry: Option<Entry>) {
        let had = unit.table.get(block);
        let own = &mut unit.blocks[block];
        own.before.push(had);
        // Where nothing was measured in between, what was measured before still counts.
        if own.new.count() > 0 {
            own.old = own.new;
        }
        own.new = Mean::default();
        unit.table.set(block, entry);
    }
}

impl Unit {
    fn new(table: Table) -> Unit {
        let blocks = vec![Block::default(); table.blocks()];
        Unit { table, blocks, checked: BTreeMap::new(), entered: None }
    }

    /// Its CTA leaves the SM before its end: nobody there works for it any more.
    fn leave(&mut self) {
        self.entered = None;
        for block in &mut self.blocks {
            block.coming = block.coming.filter(|c| c.ready != u64::MAX);
            block.is_asked = block.coming.is_some();
        }
    }

    /// Why the version of a block that runs has to go, if it has to.
    fn fails(&self, block: usize, known: &Known) -> Option<Happened> {
        let entry = self.table.get(block)?;
        let version: &Placed = known.versions.get(entry.version as usize)?;
        let one_in = u64::from(known.spec.failures_one_in);
        let failed = self
            .checked
            .range(version.first..version.end)
            .any(|(_, c)| c.checks >= FEWEST_CHECKS && c.failed * one_in > c.checks);
        if failed {
            return Some(Happened::Failed);
        }
        let own = &self.blocks[block];
        let is_tried = own.new.count() >= u64::from(known.spec.trial_executions) && own.old.is_known();
        (is_tried && own.new.is_above(&own.old, known.spec.slower_percent.into())).then_some(Happened::Slower)
    }
}

impl Sm {
    /// What is known of versions of a launch.
    pub fn replacing_of(&mut self, context: usize) -> Option<&mut Replacing> {
        self.replacing.get_mut(context)?.as_deref_mut()
    }

    /// A launch with this number is optimized from now on, or no longer; what was there.
    pub fn set_replacing(&mut self, context: usize, new: Option<Box<Replacing>>) -> Option<Box<Replacing>> {
        if self.replacing.len() <= context {
            self.replacing.resize_with(context + 1, || None);
        }
        let old = std::mem::replace(&mut self.replacing[context], new);
        while self.replacing.last().is_some_and(Option::is_none) {
            self.replacing.pop();
        }
        if old.is_some() {
            self.note_work();
        }
        old
    }

    /// The next cycle at which a warp that optimizes takes an issue slot.
    pub(crate) fn note_work(&mut self) {
        self.work_at = self.replacing.iter().flatten().map(|r| r.next_work()).min().unwrap_or(u64::MAX);
        self.wake_at(self.work_at);
    }

    /// The helper warp takes up the oldest job of the first launch that has some.
    fn start_helper(&mut self, now: u64) {
        let sub_cores = self.subs.len();
        let mut own = self.replacing.iter_mut().flatten().filter(|r| r.known.who == Who::Helper);
        let Some(r) = own.find(|r| !r.jobs.is_empty()) else { return };
        let number = r.tally.jobs as usize;
        if let Some(job) = r.jobs.front_mut().filter(|j| j.next == u64::MAX) {
            (job.sub_core, job.next) = (number % sub_cores.max(1), now + 1);
        }
    }

    /// Versions that were made arrive.
    pub fn receive_versions(&mut self, context: usize, answers: &[Answer], now: Cycle) {
        if let Some(r) = self.replacing_of(context) {
            // It cannot have come before this SM could hear of it.
            answers.iter().for_each(|a| r.answer(&Answer { ready: a.ready.max(now.0), ..*a }));
            self.start_helper(now.0);
            self.note_work();
        }
    }

    /// A CTA begins: its warps run what the sets that it belongs to run.
    pub(super) fn begin_units(&mut self, work: &mut Work<'_>, slot: usize, now: u64) {
        let Some(r) = self.replacing_of(work.ctas[slot].context) else { return };
        let resident = &mut work.ctas[slot].resident;
        let mut table = r.table.clone();
        table.merge(&r.above);
        let unit = Unit { entered: Some((0, now)), ..Unit::new(table) };
        let units = vec![unit; r.units_of(resident.warps())];
        set_warps(&r.known, resident, &units);
        if let Some(&first) = resident.observed(0).1.first() {
            resident.begin_at(0, first);
        }
        r.put(slot, units);
    }

    /// A CTA is suspended: what is known of its threads goes with it.
    pub(super) fn suspend_units(&mut self, work: &mut Work<'_>, slot: usize, now: u64) -> Vec<Unit> {
        let cta = &mut work.ctas[slot];
        let Some(r) = self.replacing_of(cta.context) else { return Vec::new() };
        let mut units = r.units.get_mut(slot).map(std::mem::take).unwrap_or_default();
        if !units.is_empty() {
            gather(&mut units, &mut r.tally, &r.known, &mut cta.resident);
        }
        units.iter_mut().for_each(Unit::leave);
        r.forget(slot);
        self.start_helper(now);
        self.note_work();
        units
    }

    /// A CTA that was suspended comes back, maybe to another SM.
    pub(super) fn resume_units(&mut self, work: &mut Work<'_>, slot: usize, units: Vec<Unit>) {
        let cta = &mut work.ctas[slot];
        let Some(r) = self.replacing_of(cta.context) else { return };
        if units.len() == r.units_of(cta.resident.warps()) {
            set_warps(&r.known, &mut cta.resident, &units);
            r.put(slot, units);
        }
    }

    /// A CTA has ended: what its threads ran is offered to those that come.
    pub(super) fn end_units(&mut self, context: usize, slot: usize, now: u64) {
        let Some(r) = self.replacing_of(context) else { return };
        let units = r.units.get_mut(slot).map(std::mem::take).unwrap_or_default();
        if r.known.level >= Level::Sm {
            for unit in &units {
                r.tally.discarded += u64::from(r.table.merge(&unit.table));
            }
        }
        r.forget(slot);
        self.start_helper(now);
        self.note_work();
    }

    /// Code of versions that have come is fetched; warps that optimize take issue slots.
    pub(super) fn take_slots(&mut self, work: &Work<'_>, now: u64) {
        for (context, r) in self.replacing.iter_mut().enumerate() {
            let Some(r) = r else { continue };
            let interval = u64::from(r.known.spec.warp_interval);
            let mut n = 0;
            while n < r.jobs.len() {
                let job = &mut r.jobs[n];
                if job.next > now {
                    n += 1;
                    continue;
                }
                self.subs[job.sub_core].hold_for(now, 1);
                r.tally.slots += 1;
                job.left -= 1;
                job.next = now + interval;
                if job.left > 0 {
                    n += 1;
                    continue;
                }
                let done = *job;
                r.tally.jobs += 1;
                r.jobs.remove(n);
                if let Some(unit) = r.units.get_mut(done.slot).and_then(|u| u.get_mut(done.unit))
                    && let Some(coming) = &mut unit.blocks[done.block as usize].coming
                {
                    coming.ready = now;
                    r.fetches.push((now, coming.entry.version));
                }
            }
            let (due, later) = r.fetches.drain(..).partition(|f| f.0 <= now);
            r.fetches = later;
            let due: Vec<(u64, u32)> = due;
            let Some(context) = work.contexts.get(context) else { continue };
            for (_, version) in due {
                let Some(v) = r.known.versions.get(version as usize) else { continue };
                let (first, end) = (context.code.line_of(v.first), context.code.line_of(v.end.max(1) - 1));
                let most = u64::from(r.known.spec.fetch_ahead);
                for line in (first..=end).take(most as usize) {
                    self.fetch.expect(Cycle(now), line, &mut self.out);
                }
            }
        }
        self.start_helper(now);
        self.note_work();
    }

    /// A warp came to a barrier, or ended; if that ends a phase, warps leave at `release`.
    pub(super) fn arrive_optimizing(&mut self, work: &mut Work<'_>, n: usize, release: u64, now: u64) {
        let slot = usize::from(self.warps[n].cta);
        let cta = &work.ctas[slot];
        if cta.phases != cta.resident.cta().ended_phases {
            self.meet(work, slot, release, now);
        } else if !cta.resident.is_done(self.warps[n].index.into()) {
            self.wait_for_others(n, now);
        }
    }

    /// A set of SMs that this one is part of has a table.
    pub fn take_table(&mut self, context: usize, table: &Table, work: &mut Work<'_>) {
        let Some(mut r) = self.replacing.get_mut(context).and_then(Option::take) else { return };
        r.tally.discarded += u64::from(r.table.merge(table));
        self.share(&mut r, work);
        self.replacing[context] = Some(r);
    }

    /// A warp waits at a barrier for others of its CTA: it may optimize until they come.
    pub(super) fn wait_for_others(&mut self, n: usize, now: u64) {
        let (slot, sub_core) = (usize::from(self.warps[n].cta), usize::from(self.warps[n].sub_core));
        let own = self.replacing_of(self.warps[n].context.into());
        let Some(r) = own.filter(|r| r.known.who == Who::EarlyWarp) else { return };
        // The shortest first: there is little time.
        let own = r.jobs.iter_mut().filter(|j| j.slot == slot);
        if let Some(job) = own.min_by_key(|j| j.left)
            && job.next == u64::MAX
        {
            (job.sub_core, job.next) = (sub_core, now + 1);
            self.note_work();
        }
    }

    /// The phase of a barrier has ended: if all threads of the CTA are there, versions may change. They leave at `release`.
    pub(super) fn meet(&mut self, work: &mut Work<'_>, slot: usize, release: u64, now: u64) {
        let context = work.ctas[slot].context;
        let Some(mut r) = self.replacing.get_mut(context).and_then(Option::take) else { return };
        let resident = &work.ctas[slot].resident;
        let is_it = |w: usize| resident.is_done(w) || resident.is_at_barrier(w);
        if (0..resident.warps()).all(is_it) && r.units.get(slot).is_some_and(|u| !u.is_empty()) {
            self.meet_all(&mut r, work, slot, release, now);
        }
        self.replacing[context] = Some(r);
        self.note_work();
    }

    fn meet_all(&mut self, r: &mut Replacing, work: &mut Work<'_>, slot: usize, release: u64, now: u64) {
        // Those who waited for others no longer do.
        if r.known.who == Who::EarlyWarp {
            r.jobs.iter_mut().filter(|j| j.slot == slot).for_each(|j| j.next = u64::MAX);
        }
        let known = r.known.clone();
        let level = known.level;
        let cta = &mut work.ctas[slot];
        let places = (0..cta.resident.warps()).filter_map(|w| cta.resident.warp(w).waiting());
        let next = places.filter_map(|(pc, _)| known.behind(pc.0)).next();
        gather(&mut r.units[slot], &mut r.tally, &known, &mut cta.resident);
        let mut changed = Vec::new();
        let mut blocks = Vec::new();
        for u in 0..r.units[slot].len() {
            let before = blocks.len();
            self.look_at(r, (cta.linear, slot, u), &mut blocks, now);
            if blocks.len() > before {
                changed.push(u);
            }
            r.units[slot][u].entered = next.map(|b| (b, release));
        }
        let code = work.contexts[cta.context].code.clone();
        for &u in &changed {
            let table = &r.units[slot][u].table;
            let entries = known.entries(|b| table.get(b).map(|e| e.version));
            for w in (0..cta.resident.warps()).filter(|&w| unit_of(level, w) == u) {
                cta.resident.set_entries(w, &entries);
                if known.level == Level::Warp && !cta.resident.is_done(w) {
                    let sub_core = self.warps[usize::from(cta.warps[w])].sub_core;
                    self.invalidate_code(r, &code, &blocks, Some(sub_core.into()));
                }
            }
        }
        if !changed.is_empty() && known.level != Level::Warp {
            self.invalidate_code(r, &code, &blocks, None);
        }
        r.waiting[slot] = release;
        let own = r.context;
        let used = || work.ctas.iter().enumerate().filter(|(_, c)| c.is_used && c.context == own);
        if known.level >= Level::Sm && used().all(|(n, _)| r.waiting.get(n).is_some_and(|&until| until > now))
        {
            let until = used().map(|(n, _)| r.waiting[n]).min().unwrap_or(release);
            r.windows.push((now, until));
            self.merge(r, work, now);
        }
    }

    /// All threads of the SM wait: the best versions are those of all.
    fn merge(&mut self, r: &mut Replacing, work: &mut Work<'_>, now: u64) {
        let mut best = r.table.clone();
        for unit in r.units.iter().flatten() {
            r.tally.discarded += u64::from(best.merge(&unit.table));
        }
        if best != r.table {
            r.events.push(Event::new(now, self.id.0, None, Happened::Merged(Level::Sm)));
        }
        r.table = best;
        self.share(r, work);
    }

    /// Instruction caches forget what has changed: barriers lead to other versions of these blocks.
    fn invalidate_code(&mut self, r: &mut Replacing, code: &Code, blocks: &[usize], sub_core: Option<usize>) {
        r.tally.invalidated += 1;
        match (r.known.spec.invalidation, sub_core) {
            (Invalidation::All, None) => self.fetch.invalidate(),
            (Invalidation::All, Some(n)) => self.fetch.invalidate_front(n),
            (Invalidation::Lines, _) => {
                let changed = r.known.openings.iter().filter(|o| blocks.contains(&(o.1 as usize)));
                changed.for_each(|&(place, _)| self.fetch.forget(code.line_of(place), sub_core));
            }
        }
    }

    /// Gives all units what is better than their own and assumes nothing that they know to be otherwise.
    pub(super) fn share(&mut self, r: &mut Replacing, work: &mut Work<'_>) {
        let mut blocks = Vec::new();
        let level = r.known.level;
        for slot in 0..r.units.len() {
            for u in 0..r.units[slot].len() {
                let unit = &mut r.units[slot][u];
                let before = blocks.len();
                for b in 0..unit.table.blocks() {
                    let own = &unit.blocks[b];
                    let suits = |e: &Entry| {
                        let is_so = own.last.as_ref().is_none_or(|p| r.known.suits(e.version, p));
                        is_so && !own.bad.contains(&e.version)
                    };
                    let Some(best) = r.table.get(b).filter(suits) else { continue };
                    if unit.table.get(b).is_none_or(|own| own.level < best.level) {
                        Replacing::adopt(unit, b, Some(best));
                        blocks.push(b);
                    }
                }
                if blocks.len() == before {
                    continue;
                }
                let entries = r.known.entries(|b| unit.table.get(b).map(|e| e.version));
                if let Some(cta) = work.ctas.get_mut(slot) {
                    for w in (0..cta.resident.warps()).filter(|&w| unit_of(level, w) == u) {
                        cta.resident.set_entries(w, &entries);
                    }
                }
            }
        }
        if let Some(context) = work.contexts.get(r.context).filter(|_| !blocks.is_empty()) {
            let code = context.code.clone();
            self.invalidate_code(r, &code, &blocks, None);
        }
    }

    /// Looks at what a unit saw of the block that it has run, and for versions that have come: blocks of which it runs another
    /// version now.
    fn look_at(&mut self, r: &mut Replacing, who: (u64, usize, usize), changed: &mut Vec<usize>, now: u64) {
        let (linear, slot, u) = who;
        let known = r.known.clone();
        let unit = &mut r.units[slot][u];
        let warps = if known.level == Level::Warp { 1 } else { self.resident_of(slot) };
        let mut happens = |what| r.events.push(Event::new(now, self.id.0, Some((linear, u as u32)), what));
        if let Some((b, since)) = unit.entered {
            let block = b as usize;
            let cycles = now.saturating_sub(since);
            unit.blocks[block].new.add(cycles);
            r.tally.add(b, unit.table.get(block).map(|e| e.version), cycles);
            if let Some(why) = unit.fails(block, &known) {
                let entry = unit.table.get(block);
                let version = entry.map_or(0, |e| e.version);
                let own = &mut unit.blocks[block];
                let before = own.before.pop().flatten();
                own.bad.push(version);
                own.new = own.old;
                own.old = Mean::default();
                unit.table.set(block, before);
                if r.table.get(block).is_some_and(|e| e.version == version) {
                    r.table.set(block, None);
                }
                r.withdrawn.push(version);
                happens(Happened::RolledBack { block: b, version, why: Box::new(why) });
                changed.push(block);
            }
            let own = &mut unit.blocks[block];
            let enough = own.profile.entries >= u64::from(known.spec.executions) * u64::from(warps.max(1));
            let is_free = !own.is_asked && own.coming.is_none() && own.attempts < known.spec.attempts;
            if enough && is_free && now >= known.from {
                let profile = std::mem::take(&mut own.profile);
                let threshold = u64::from(known.spec.threshold);
                // Code that tells by instructions gets rid of them once there is nothing more to see.
                let thins = known.spec.profiling == Profiling::Instructions;
                if thins || own.last.as_ref().is_none_or(|last| !profile.is_near(last, threshold)) {
                    r.requests.push(Request {
                        at: Cycle(now),
                        sm: self.id.0,
                        slot,
                        unit: u,
                        block: b,
                        base: unit.table.get(block),
                        is_first: own.attempts == 0,
                        bad: own.bad.clone(),
                        profile: profile.clone(),
                    });
                    (own.is_asked, own.attempts) = (true, own.attempts + 1);
                }
                own.last = Some(profile);
            }
        }
        for b in 0..unit.blocks.len() {
            let Some(coming) = unit.blocks[b].coming.filter(|c| c.ready <= now) else { continue };
            let own = &mut unit.blocks[b];
            (own.coming, own.is_asked) = (None, false);
            let entry = coming.entry;
            let is_better = unit.table.get(b).is_none_or(|old| entry.level > old.level);
            if is_better && !own.bad.contains(&entry.version) {
                Replacing::adopt(unit, b, Some(entry));
                happens(Happened::Replaced { block: b as u32, version: entry.version });
                changed.push(b);
            } else {
                r.tally.discarded += 1;
            }
        }
    }

    /// Warps of a CTA slot that have not ended.
    fn resident_of(&self, slot: usize) -> u32 {
        let is_it = |w: &&super::warp::WarpSlot| {
            usize::from(w.cta) == slot
                && !matches!(w.state, super::warp::State::Empty | super::warp::State::Draining)
        };
        self.warps.iter().filter(is_it).count() as u32
    }

    /// There is more code: everybody knows of it. At an exchange point.
    pub fn know(&mut self, context: usize, known: &Arc<Known>, above: &Arc<Table>, work: &mut Work<'_>) {
        let Some(r) = self.replacing_of(context) else { return };
        (r.known, r.above) = (known.clone(), above.clone());
        r.tally.resize(known.versions.len());
        for cta in work.ctas.iter_mut().filter(|c| c.is_used && c.context == context) {
            for w in 0..cta.resident.warps() {
                if let Some(watcher) = watcher(&mut cta.resident, w) {
                    watcher.known = known.clone();
                }
            }
        }
    }
}

/// The unit of a CTA that a warp belongs to.
fn unit_of(level: Level, warp: usize) -> usize {
    if level == Level::Warp { warp } else { 0 }
}

/// Takes what the warps of a CTA have told to its units.
fn gather(units: &mut [Unit], tally: &mut Tally, known: &Known, resident: &mut simt::resident::Resident<'_>) {
    for w in 0..resident.warps() {
        let Some(unit) = units.get_mut(unit_of(known.level, w)) else { continue };
        let Some(watcher) = watcher(resident, w) else { continue };
        watcher.take(|b, profile| unit.blocks[b].profile.add(&profile));
        for (place, seen) in std::mem::take(&mut watcher.seen.checked) {
            for all in [unit.checked.entry(place).or_default(), tally.checked.entry(place).or_default()] {
                (all.checks, all.failed) = (all.checks + seen.checks, all.failed + seen.failed);
            }
        }
    }
}

/// The warps of a CTA tell what they do, and go to the versions of their units.
fn set_warps(known: &Arc<Known>, resident: &mut simt::resident::Resident<'_>, units: &[Unit]) {
    for w in 0..resident.warps() {
        let unit = &units[unit_of(known.level, w)];
        let entries = known.entries(|b| unit.table.get(b).map(|e| e.version));
        resident.observe(w, Some(Box::new(Watcher::new(known))));
        resident.set_entries(w, &entries);
    }
}

/// What a warp tells, if it does.
fn watcher<'a>(resident: &'a mut simt::resident::Resident<'_>, w: usize) -> Option<&'a mut Watcher> {
    resident.observer(w)?.as_any().downcast_mut::<Watcher>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::optimizing::Checked;

    /// A unit that runs version 0 of its only block, which has one check.
    fn unit() -> (Unit, Known) {
        let config = Config::preset("tiny").expect("the preset");
        let known = Known::of_version(
            config.optimizer,
            Placed { block: 0, entry: 100, first: 100, end: 110, level: 1 },
        );
        let mut unit = Unit::new(Table::new(1));
        (0..9).for_each(|_| unit.blocks[0].new.add(100));
        Replacing::adopt(&mut unit, 0, Some(Entry { version: 0, level: 1 }));
        (unit, known)
    }

    #[test]
    fn a_version_whose_assumption_fails_too_often_goes() {
        let (mut unit, known) = unit();
        unit.checked.insert(104, Checked { checks: 640, failed: 10 });
        assert_eq!(unit.fails(0, &known), None, "once in 64 checks is allowed");
        unit.checked.insert(104, Checked { checks: 640, failed: 11 });
        assert_eq!(unit.fails(0, &known), Some(Happened::Failed));
        unit.checked.clear();
        unit.checked.insert(111, Checked { checks: 640, failed: 640 });
        assert_eq!(unit.fails(0, &known), None, "that is another version's");
    }

    #[test]
    fn a_version_that_is_slower_goes() {
        let (mut unit, known) = unit();
        let trial = u64::from(known.spec.trial_executions);
        (0..trial).for_each(|_| unit.blocks[0].new.add(500));
        assert_eq!(unit.fails(0, &known), None, "the first execution does not count");
        unit.blocks[0].new.add(500);
        assert_eq!(unit.fails(0, &known), Some(Happened::Slower));
        unit.blocks[0].new = Mean::default();
        (0..=trial).for_each(|_| unit.blocks[0].new.add(100));
        assert_eq!(unit.fails(0, &known), None);
    }
}
