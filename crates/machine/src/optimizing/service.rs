//! Requests for versions: at exchange points they become code that all SMs can run, and tables of larger sets of threads are merged.

use super::instrument::{copy, instrument, thin};
use super::report::{Event, Happened, Optimized, Tally};
use super::spec::{Profiling, Spec, Translation};
use super::table::{Entry, Level, Table};
use super::watching::Known;
use super::{Answer, Options, Request, Who};
use crate::Config;
use crate::distribution::Occupancy;
use crate::ppu::Part;
use crate::sm::code::{Code, Room};
use crate::sm::core::LINE_INSTRUCTIONS;
use crate::sm::replacing::Replacing;
use crate::sm::{Context, Work};
use crate::tasks::task_of;
use crate::units::Cycle;
use isa::image::Image;
use isa::{Inst, Op};
use optimizer::blocks::{Opening, is_barrier};
use optimizer::{Blocks, Limits, Profile, Source, Version};
use simt::Launch;
use simt::launch::Growth;
use std::sync::Arc;

/// Uniform and convergence registers that code may use.
const UNIFORMS: u32 = 63;
const BARRIERS: u32 = 16;
/// Bytes of an instruction.
const INSTRUCTION_BYTES: u32 = 16;
/// Requests that are remembered, to give the same answer to one like it.
const REMEMBERED: usize = 4096;

/// A request that was answered.
struct Served {
    block: u32,
    base: Option<Entry>,
    profile: Profile,
    entry: Option<Entry>,
    ready: u64,
    work: u64,
}

/// What the machine keeps of a kernel's versions for its next launch: the end of a kernel is a barrier of the whole machine.
pub(crate) struct Kept {
    /// Where the code lies, and where the kernel begins.
    pub key: (u64, u32),
    made: Vec<(Version, Profile)>,
    table: Table,
}

/// Makes versions for a launch.
pub(crate) struct Service {
    options: Options,
    spec: Arc<Spec>,
    limits: Limits,
    blocks: Blocks,
    /// The program with all versions behind it, as SMs see it.
    image: Image,
    own: u32,
    launch: Arc<Launch>,
    known: Arc<Known>,
    /// Versions, the profiles behind them, and when they were asked for.
    made: Vec<(Version, Profile, u64)>,
    /// Where instructions behind the program's own come from.
    origin: Vec<u32>,
    served: Vec<Served>,
    translated: Vec<bool>,
    host_free: u64,
    host_cycles: u64,
    requests: u64,
    start: u64,
    /// Tables of TPCs and GPCs, and SMs of each; the machine's.
    groups: Vec<(Level, std::ops::Range<usize>, Table)>,
    above: Vec<Arc<Table>>,
    events: Vec<Event>,
    withdrawn: Vec<u32>,
    /// GPCs whose caches are to be invalidated.
    invalidated: Vec<usize>,
    tally: Tally,
}

/// Registers that a thread can have without fewer CTAs being on an SM: no more than fit, and no more than the launch has for each.
fn registers(config: &Config, launch: &Launch) -> u32 {
    let task = task_of(launch, 0, 0, 0);
    let fits = |registers: u32| {
        let more = crate::command::Task { registers, ..task };
        Occupancy::new(&config.sm, &more, 0).ctas_per_sm
    };
    let there = launch.ctas().div_ceil(u64::from(config.sms()).max(1));
    let now = u64::from(fits(task.registers)).min(there);
    (task.registers..=254).take_while(|&r| u64::from(fits(r)) >= now).last().unwrap_or(task.registers)
}

fn limits(config: &Config, registers: u32) -> Limits {
    let l = &config.sm.latency;
    let way = 2 * (config.tpc.latency + config.crossbar.latency) + config.gpc.latency + config.l2.latency;
    Limits {
        registers,
        code_bytes: config.optimizer.code_bytes / 4,
        failures_one_in: config.optimizer.failures_one_in.into(),
        shared: config.sm.load_store.shared.load_latency,
        global: config.sm.load_store.l1.load_latency + way,
        guard: l.guard,
        branch: l.branch,
        vote: l.vote,
    }
}

/// SMs of each TPC and GPC, and of the machine.
fn groups(config: &Config, blocks: usize) -> Vec<(Level, std::ops::Range<usize>, Table)> {
    let mut list = Vec::new();
    let mut first = 0;
    for &tpcs in &config.tpcs {
        let sms = config.sms_per_tpc as usize;
        let gpc = first..first + tpcs as usize * sms;
        list.extend(gpc.clone().step_by(sms.max(1)).map(|n| (Level::Tpc, n..n + sms, Table::new(blocks))));
        list.push((Level::Gpc, gpc.clone(), Table::new(blocks)));
        first = gpc.end;
    }
    list.push((Level::Ppu, 0..first, Table::new(blocks)));
    list.sort_by_key(|g| g.0);
    list
}

impl Service {
    /// Prepares a launch; none where its program has no blocks that could be optimized.
    pub fn new(
        config: &Config,
        options: Options,
        launch: &Launch,
        start: Cycle,
        kept: Option<&Kept>,
    ) -> Option<Service> {
        let image = launch.program().image();
        let function = launch.kernel().function();
        let number = image.functions.iter().position(|f| f.is_entry && f.start == function.start)?;
        let blocks = optimizer::translate(image, number as u32)?;
        let registers = registers(config, launch);
        let spec = Arc::new(config.optimizer.clone());
        let room = simt::decode::Room { registers, uniforms: UNIFORMS, barriers: BARRIERS };
        let launch = launch.with_room(room);
        let count = blocks.blocks.len();
        let mut known = Known {
            level: options.level,
            who: options.who,
            spec: spec.clone(),
            originals: blocks.blocks.iter().map(|b| b.entry).collect(),
            from: start.0,
            values: vec![Vec::new(); count],
            told: Vec::new(),
            openings: Vec::new(),
            versions: Vec::new(),
            assumptions: Vec::new(),
        };
        for b in &blocks.blocks {
            if let Opening::Barrier(at) = b.opening {
                known.openings.push((at, b.id));
            }
            for site in optimizer::sites(&blocks, b.id) {
                known.watch(b.id, site.place, &site, |bank, at| launch.constant(bank, at));
            }
        }
        known.openings.sort_unstable();
        let mut service = Service {
            options,
            limits: limits(config, registers),
            own: image.code.len() as u32,
            image: Image { code: image.code.clone(), functions: image.functions.clone(), ..Image::default() },
            launch: Arc::new(launch),
            known: Arc::new(known),
            made: Vec::new(),
            origin: Vec::new(),
            served: Vec::new(),
            translated: vec![false; count],
            host_free: start.0,
            host_cycles: 0,
            requests: 0,
            start: start.0,
            groups: groups(config, count),
            above: (0..config.sms()).map(|_| Arc::new(Table::new(count))).collect(),
            events: Vec::new(),
            withdrawn: Vec::new(),
            invalidated: Vec::new(),
            tally: Tally::default(),
            spec,
            blocks,
        };
        let mut known = (*service.known).clone();
        if service.spec.translation == Translation::Load {
            let all = service.blocks.code.len() as u64 * u64::from(service.spec.translation_work);
            known.from += service.host_or_warp(all);
        }
        if service.spec.profiling == Profiling::Instructions {
            for b in 0..count {
                let Some(version) = copy(&service.blocks, b as u32) else { continue };
                let version = instrument(&version, service.spec.profiling_instructions);
                if let Some(first) = service.append(&version, &mut known) {
                    known.originals[b] = first + version.entry;
                    for (n, site) in &version.sites {
                        let launch = &service.launch;
                        known.watch(b as u32, first + n, site, |bank, at| launch.constant(bank, at));
                    }
                }
            }
        }
        if let Some(kept) = kept.filter(|_| options.level == Level::Ppu) {
            service.adopt(kept, &mut known);
        }
        service.finish_growth(known);
        Some(service)
    }

    /// Takes over what an earlier launch left.
    fn adopt(&mut self, kept: &Kept, known: &mut Known) {
        for (version, profile) in &kept.made {
            let Some(first) = self.append(version, known) else { return };
            let launch = self.launch.clone();
            known.add(version, first, |bank, at| launch.constant(bank, at));
            self.made.push((version.clone(), profile.clone(), self.start));
        }
        self.above.fill(Arc::new(kept.table.clone()));
        if let Some(all) = self.groups.last_mut() {
            all.2 = kept.table.clone();
        }
    }

    /// The launch is over: what the next one takes over.
    pub fn keep<'t>(&self, key: (u64, u32), tables: impl Iterator<Item = &'t Table>) -> Option<Kept> {
        let mut table = self.groups.last()?.2.clone();
        tables.for_each(|t| {
            table.merge(t);
        });
        let made = self.made.iter().map(|(v, p, _)| (v.clone(), p.clone())).collect();
        (self.options.level == Level::Ppu).then_some(Kept { key, made, table })
    }

    /// Cycles that work takes, as the ones who translate see it.
    fn host_or_warp(&self, work: u64) -> u64 {
        match self.options.who {
            Who::Host => u64::from(self.spec.host_latency) + work * u64::from(self.spec.host_unit),
            _ => work * u64::from(self.spec.warp_unit) * u64::from(self.spec.warp_interval),
        }
    }

    /// The launch as SMs run it.
    pub fn launch(&self) -> &Arc<Launch> {
        &self.launch
    }

    pub fn image(&self) -> Arc<Image> {
        Arc::new(self.image.clone())
    }

    /// Instructions that there can be, with all versions.
    pub fn most_instructions(&self) -> usize {
        self.own as usize + (self.spec.code_bytes / INSTRUCTION_BYTES) as usize + 2
    }

    /// The instructions as the schedulers see them.
    pub fn code(&self, config: &Config) -> Code {
        let room = Room { registers: self.launch.room().registers, uniforms: UNIFORMS + 1 };
        let to = |block: u32| self.known.versions.iter().filter(move |v| v.block == block).map(|v| v.entry);
        let edges: Vec<(u32, u32)> = self
            .known
            .openings
            .iter()
            .flat_map(|&(at, block)| {
                let original = self.known.originals[block as usize];
                to(block).chain([original]).map(move |entry| (at, entry))
            })
            .collect();
        Code::with_room(&self.image, room, &edges, &config.sm)
    }

    /// What an SM needs to take part.
    pub fn replacing(&self, sm: usize) -> Box<Replacing> {
        Box::new(Replacing::new(&self.known, &self.above[sm]))
    }

    /// The place of the original that an instruction comes from.
    pub fn origin(&self, place: u32) -> u32 {
        match place.checked_sub(self.own) {
            None => place,
            Some(n) => self.origin.get(n as usize).copied().unwrap_or(place),
        }
    }

    /// Puts a version's code behind all that is there; where it begins.
    fn append(&mut self, version: &Version, known: &mut Known) -> Option<u32> {
        // What returns to an address of its own is only known of functions that are called by name.
        if version.code.iter().any(|i| i.op == Op::Callx) {
            return None;
        }
        let end = self.launch.kernel().end();
        // Whole lines of code of its own.
        let first = end.next_multiple_of(LINE_INSTRUCTIONS);
        let code = version.place(first);
        if first as usize + code.len() > self.most_instructions() {
            return None;
        }
        let mut all = vec![Inst::new(Op::Tex); (first - end) as usize];
        all.extend_from_slice(&code);
        let growth = Growth { code: &all, watch: &[], openings: &[] };
        self.launch = Arc::new(self.launch.grown(&growth).ok()?);
        // Behind the code before stands what catches whoever runs past its end.
        self.image.code.resize(first as usize, Inst::new(Op::Exit));
        self.image.code.extend_from_slice(&code);
        let before = (first - self.own) as usize;
        self.origin.resize(before, self.own.saturating_sub(1));
        self.origin.extend_from_slice(&version.origin);
        for (n, inst) in code.iter().enumerate() {
            if is_barrier(inst)
                && let Some(b) = self.blocks.behind(version.origin[n])
            {
                known.openings.push((first + n as u32, b.id));
            }
        }
        known.openings.sort_unstable();
        Some(first)
    }

    /// Everything that was appended is known from now on.
    fn finish_growth(&mut self, known: Known) {
        let (watch, openings) = (known.watched(), &known.openings);
        let growth = Growth { code: &[], watch: &watch, openings };
        if let Ok(launch) = self.launch.grown(&growth) {
            self.launch = Arc::new(launch);
        }
        self.known = Arc::new(known);
    }

    /// Answers the requests of all SMs, and merges tables. Whether there is more code, from which place on, and GPCs whose caches
    /// are invalidated.
    pub fn serve(
        &mut self,
        parts: &mut [Part<'_>],
        until: Cycle,
        config: &Config,
    ) -> (Option<u32>, Vec<usize>) {
        let mut requests: Vec<Request> = Vec::new();
        for part in parts.iter_mut() {
            if let Some(r) = &mut part.sm.replacing {
                requests.append(&mut r.requests);
                self.withdrawn.append(&mut r.withdrawn);
            }
        }
        requests.sort_by_key(|r| (r.at, r.sm));
        self.requests += requests.len() as u64;
        let end = self.launch.kernel().end();
        let mut known = None;
        let mut answers: Vec<(usize, Answer)> = Vec::new();
        for request in &requests {
            let answer = self.answer(request, &mut known);
            answers.push((usize::from(request.sm), answer));
        }
        let has_grown = known.is_some();
        if let Some(known) = known {
            self.finish_growth(known);
        }
        let merged = self.merge(parts, until, config);
        if has_grown || merged {
            self.spread(parts, has_grown, config);
        }
        for (n, part) in parts.iter_mut().enumerate() {
            let own: Vec<Answer> = answers.iter().filter(|(sm, _)| *sm == n).map(|(_, a)| *a).collect();
            if !own.is_empty() {
                part.sm.receive_versions(&own, until);
            }
        }
        (has_grown.then_some(end), std::mem::take(&mut self.invalidated))
    }

    /// Tells all SMs what is there now.
    fn spread(&mut self, parts: &mut [Part<'_>], has_grown: bool, config: &Config) {
        let image = self.image();
        let code = has_grown.then(|| self.code(config));
        for (n, part) in parts.iter_mut().enumerate() {
            if let (Some(code), Some(old)) = (&code, part.work.contexts.first()) {
                let mut context: Context<'_> = old.clone();
                context.code = code.clone().at_line(old.code.first_line);
                (context.launch, context.image) = (self.launch.clone(), image.clone());
                part.work.contexts = Arc::new(vec![context]);
                grow(&mut part.work, &self.launch);
            }
            part.sm.know(&self.known, &self.above[n], &mut part.work);
        }
    }

    fn answer(&mut self, request: &Request, known: &mut Option<Known>) -> Answer {
        let &Request { slot, unit, block, base, .. } = request;
        let threshold = u64::from(self.spec.threshold);
        let all = known.as_ref().unwrap_or(&self.known);
        // What others asked for will do if it assumes nothing else than what this profile shows.
        let like = |s: &&Served| {
            let is_it = s.block == block && s.base == base;
            is_it
                && match s.entry {
                    Some(e) => !request.bad.contains(&e.version) && all.suits(e.version, &request.profile),
                    None => request.profile.is_near(&s.profile, threshold),
                }
        };
        let found = self.served.iter().find(like).map(|s| (s.entry, s.ready, s.work));
        let is_known = found.is_some();
        let (entry, ready, mut work) = found.unwrap_or_else(|| {
            let (entry, work) = self.make(request, known);
            (entry, 0, work)
        });
        let translates = match self.spec.translation {
            Translation::Load => false,
            Translation::Demand => !std::mem::replace(&mut self.translated[block as usize], true),
            Translation::Instance => request.is_first,
        };
        if translates {
            let places = self.blocks.blocks[block as usize].places.len() as u64;
            work += places * u64::from(self.spec.translation_work);
        }
        let mut answer = Answer { slot, unit, block, entry, ready, slots: 0 };
        match self.options.who {
            Who::Host => {
                // The way there and back is paid by everybody, the work once.
                let (there, back) = (self.spec.host_latency / 2, self.spec.host_latency.div_ceil(2));
                let begun = (request.at.0 + u64::from(there)).max(if is_known { 0 } else { self.host_free });
                let cycles = if is_known { 0 } else { work * u64::from(self.spec.host_unit) };
                self.host_cycles += cycles;
                if !is_known {
                    self.host_free = begun + cycles;
                }
                answer.ready = (begun + cycles + u64::from(back)).max(ready);
            }
            _ => {
                answer.ready = u64::MAX;
                answer.slots = work.max(1) * u64::from(self.spec.warp_unit);
            }
        }
        if !is_known && self.served.len() < REMEMBERED {
            let ready = if self.options.who == Who::Host { answer.ready } else { 0 };
            self.served.push(Served { block, base, profile: request.profile.clone(), entry, ready, work });
        }
        answer
    }

    /// Makes a version; what that took.
    fn make(&mut self, request: &Request, known: &mut Option<Known>) -> (Option<Entry>, u64) {
        let block = request.block;
        let nothing = self.blocks.blocks[block as usize].places.len() as u64;
        let base = request.base.and_then(|e| self.made.get(e.version as usize)).map(|m| &m.0);
        let source = base.map_or(Source::Original, Source::Last);
        let level = request.base.map_or(1, |e| e.level + 1);
        let inserts = self.spec.profiling == Profiling::Instructions;
        // Nothing is told of code without instructions that tell: it stays.
        if inserts && base.is_some_and(|b| b.sites.is_empty()) {
            return (None, 0);
        }
        let version = optimizer::optimize(&self.blocks, block, &request.profile, source, &self.limits);
        let copied = || copy(&self.blocks, block).filter(|_| self.options.copies && request.base.is_none());
        // Where there is nothing to do better, profiles are not needed any more.
        let thinned = || match base {
            _ if !inserts => None,
            Some(b) => Some(thin(b)),
            None => copy(&self.blocks, block).map(|b| thin(&b)),
        };
        let Some(version) = version.or_else(copied).or_else(thinned) else { return (None, nothing) };
        if version.registers > self.limits.registers {
            return (None, version.work);
        }
        let work = version.work;
        // The same code again is no better.
        if base.is_some_and(|b| b.code == version.code && b.links == version.links) {
            return (None, work);
        }
        let version = Version { level, ..version };
        let version = match self.spec.profiling {
            Profiling::Counters => version,
            Profiling::Instructions if version.sites.is_empty() => version,
            Profiling::Instructions => instrument(&version, self.spec.profiling_instructions),
        };
        let own = known.get_or_insert_with(|| (*self.known).clone());
        let mut own = own.clone();
        let Some(first) = self.append(&version, &mut own) else { return (None, work) };
        let launch = self.launch.clone();
        own.add(&version, first, |bank, at| launch.constant(bank, at));
        *known = Some(own);
        let number = self.made.len() as u32;
        let at = request.at.0;
        let what = Happened::Made { block, version: number };
        self.events.push(Event { at, sm: None, threads: None, what });
        self.made.push((version, request.profile.clone(), at));
        (Some(Entry { version: number, level }), work)
    }

    /// Tables of sets of SMs whose threads all waited at one time. Whether anything changed.
    fn merge(&mut self, parts: &mut [Part<'_>], until: Cycle, config: &Config) -> bool {
        if self.options.level <= Level::Sm {
            return false;
        }
        let mut changed = false;
        for version in std::mem::take(&mut self.withdrawn) {
            self.groups.iter_mut().for_each(|g| g.2.withdraw(version));
            changed = true;
        }
        let windows: Vec<Option<Vec<(u64, u64)>>> = parts
            .iter_mut()
            .map(|p| {
                // Who has no threads waits for nobody.
                let own = p.sm.replacing.as_mut().map(|r| std::mem::take(&mut r.windows)).unwrap_or_default();
                if p.sm.is_empty() { None } else { Some(own) }
            })
            .collect();
        if windows.iter().flatten().all(Vec::is_empty) && !changed {
            return false;
        }
        for n in 0..self.groups.len() {
            let (level, sms, _) = self.groups[n].clone();
            if level > self.options.level || !met(&windows[sms.clone()]) {
                continue;
            }
            let mut best = self.groups[n].2.clone();
            for part in &parts[sms.clone()] {
                if let Some(r) = &part.sm.replacing {
                    self.tally.discarded += u64::from(best.merge(&r.table));
                }
            }
            if best == self.groups[n].2 {
                continue;
            }
            self.groups[n].2 = best.clone();
            changed = true;
            if level >= Level::Gpc {
                let mut first = 0;
                for (gpc, &tpcs) in config.tpcs.iter().enumerate() {
                    let own = first..first + (tpcs * config.sms_per_tpc) as usize;
                    first = own.end;
                    if sms.contains(&own.start) {
                        self.invalidated.push(gpc);
                    }
                }
            }
            self.events.push(Event { at: until.0, sm: None, threads: None, what: Happened::Merged(level) });
            for part in &mut parts[sms] {
                part.sm.take_table(&best, &mut part.work);
            }
        }
        if changed {
            for (sm, above) in self.above.iter_mut().enumerate() {
                let mut table = Table::new(self.blocks.blocks.len());
                let own = self.groups.iter().filter(|g| g.1.contains(&sm));
                own.for_each(|g| {
                    table.merge(&g.2);
                });
                *above = Arc::new(table);
            }
        }
        changed
    }

    /// What was done.
    pub fn report(mut self, tallies: impl Iterator<Item = (Tally, Vec<Event>)>) -> Box<Optimized> {
        for (tally, events) in tallies {
            self.tally.merge(&tally);
            self.events.extend(events);
        }
        let report = Optimized::new(
            self.options,
            &self.blocks,
            &self.made,
            &self.known.versions,
            &self.tally,
            self.events,
            self.start,
        );
        Box::new(Optimized { requests: self.requests, host_cycles: self.host_cycles, ..report })
    }
}

/// Whether there was a time at which all SMs that have threads waited.
fn met(windows: &[Option<Vec<(u64, u64)>>]) -> bool {
    let mut busy = windows.iter().flatten();
    let Some(first) = busy.next() else { return false };
    let rest: Vec<_> = busy.collect();
    first.iter().any(|w| {
        let meet = |(from, until): (u64, u64), list: &Vec<(u64, u64)>| {
            list.iter().map(|o| (from.max(o.0), until.min(o.1))).find(|m| m.0 < m.1)
        };
        rest.iter().try_fold(*w, |m, list| meet(m, list)).is_some()
    })
}

/// All CTAs of an SM can run the new code.
fn grow(work: &mut Work<'_>, launch: &Arc<Launch>) {
    work.ctas.iter_mut().for_each(|cta| cta.resident.grow(launch));
}
