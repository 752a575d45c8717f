//! Requests for versions of a launch: at exchange points they become code that all SMs can run, and tables of larger sets of threads are
//! merged.

use super::instrument::{copy, instrument, thin};
use super::report::{Event, Happened, Optimized, Tally};
use super::room::Arena;
use super::spec::{self, Profiling, Spec, Translation};
use super::table::{Entry, Level, Table};
use super::watching::Known;
use super::{Answer, Options, Request, Who};
use crate::Config;
use crate::distribution::{Needs, Occupancy};
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
use serde::{Deserialize, Serialize};
use simt::Launch;
use simt::launch::Growth;
use std::sync::Arc;

/// Uniform and convergence registers that code may use.
const UNIFORMS: u32 = 63;
const BARRIERS: u32 = 16;
/// Requests that are remembered, to give the same answer to one like it.
const REMEMBERED: usize = 4096;

/// A request that was answered.
#[derive(Clone, Serialize, Deserialize)]
struct Served {
    block: u32,
    base: Option<Entry>,
    profile: Profile,
    entry: Option<Entry>,
    ready: u64,
    work: u64,
}

/// A version, the profile behind it, when it was asked for, and the place of its code.
type Made = (Version, Profile, u64, u32);

/// What the machine keeps of a kernel's versions for its next launch: the end of a kernel is a barrier of the whole machine.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// Where the code lies, and where the kernel begins.
    pub key: (u64, u32),
    pub(super) made: Vec<Made>,
    table: Table,
}

/// A service as a checkpoint has it; the rest follows from the launch.
#[derive(Serialize, Deserialize)]
pub(crate) struct Saved {
    start: u64,
    with_others: bool,
    /// Places of code that gathers profiles.
    copies: Vec<u32>,
    made: Vec<Made>,
    served: Vec<Served>,
    translated: Vec<bool>,
    host: [u64; 2],
    requests: u64,
    groups: Vec<Table>,
    events: Vec<Event>,
    withdrawn: Vec<u32>,
    tally: Tally,
}

/// What a launch is prepared with.
pub(super) struct Begin<'b> {
    pub config: &'b Config,
    pub options: Options,
    pub launch: &'b Launch,
    pub start: Cycle,
    /// Where the code lies, and the number that the launch has on the machine.
    pub base: u64,
    pub number: u32,
    /// Others may be on the same SMs.
    pub with_others: bool,
}

/// Makes versions for a launch.
pub(crate) struct Service {
    options: Options,
    /// Where the code lies, and the launch's number on the machine.
    pub(super) base: u64,
    pub(super) number: u32,
    with_others: bool,
    spec: Arc<Spec>,
    limits: Limits,
    blocks: Blocks,
    /// The program with all versions behind it, as SMs see it.
    image: Image,
    launch: Arc<Launch>,
    known: Arc<Known>,
    copies: Vec<u32>,
    made: Vec<Made>,
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

/// Registers that a thread can have without fewer CTAs being on an SM: no more than fit, and no more than the launch has for each. Where
/// others may be there, those that it has been given.
fn registers(config: &Config, launch: &Launch, with_others: bool) -> u32 {
    let task = task_of(launch, 0, 0, 0);
    if with_others {
        let given = |registers: u32| {
            Needs::new(&config.sm, &crate::command::Task { registers, ..task }).registers_per_warp
        };
        let is_same = |r: &u32| given(*r) == given(task.registers);
        return (task.registers..=254).take_while(is_same).last().unwrap_or(task.registers);
    }
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
    pub fn new(begin: &Begin<'_>, arena: &mut Arena, kept: Option<&Kept>) -> Option<Service> {
        Service::at(begin, arena, kept, &[])
    }

    /// The same with code that gathers profiles at these places.
    fn at(begin: &Begin<'_>, arena: &mut Arena, kept: Option<&Kept>, copies: &[u32]) -> Option<Service> {
        let &Begin { config, options, launch, start, base, number, with_others } = begin;
        let image = launch.program().image();
        let function = launch.kernel().function();
        let entry = image.functions.iter().position(|f| f.is_entry && f.start == function.start)?;
        let blocks = optimizer::translate(image, entry as u32)?;
        let registers = registers(config, launch, with_others);
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
            base,
            number,
            with_others,
            limits: limits(config, registers),
            image: Image { code: image.code.clone(), functions: image.functions.clone(), ..Image::default() },
            launch: Arc::new(launch),
            known: Arc::new(known),
            copies: Vec::new(),
            made: Vec::new(),
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
                let at = copies.get(service.copies.len()).copied();
                if let Some(first) = service.append(&version, &mut known, arena, at) {
                    service.copies.push(first);
                    known.originals[b] = first + version.entry;
                    for (n, site) in &version.sites {
                        let launch = &service.launch;
                        known.watch(b as u32, first + n, site, |bank, at| launch.constant(bank, at));
                    }
                }
            }
        }
        if let Some(kept) = kept.filter(|_| options.level == Level::Ppu) {
            service.adopt(&kept.made, &mut known, arena);
            service.above.fill(Arc::new(kept.table.clone()));
            if let Some(all) = service.groups.last_mut() {
                all.2 = kept.table.clone();
            }
        }
        service.finish_growth(known);
        Some(service)
    }

    /// Takes over what an earlier launch left, or a checkpoint has; whether all of it could be.
    fn adopt(&mut self, made: &[Made], known: &mut Known, arena: &mut Arena) -> bool {
        for (version, profile, at, first) in made {
            // Where it was, unless something else is there now.
            let place = Some(*first).filter(|&first| first >= self.launch.kernel().end());
            let Some(first) = self.append(version, known, arena, place) else { return false };
            let launch = self.launch.clone();
            known.add(version, first, |bank, at| launch.constant(bank, at));
            self.made.push((version.clone(), profile.clone(), (*at).max(self.start), first));
        }
        true
    }

    /// The launch is over: what the next one takes over.
    pub fn keep<'t>(&self, tables: impl Iterator<Item = &'t Table>) -> Option<Kept> {
        let mut table = self.groups.last()?.2.clone();
        tables.for_each(|t| {
            table.merge(t);
        });
        (self.options.level == Level::Ppu).then(|| Kept { key: self.key(), made: self.made.clone(), table })
    }

    /// What tells the kernel from others.
    pub fn key(&self) -> (u64, u32) {
        (self.base, self.launch.kernel().function().start)
    }

    /// For a checkpoint.
    pub fn save(&self) -> Saved {
        Saved {
            start: self.start,
            with_others: self.with_others,
            copies: self.copies.clone(),
            made: self.made.clone(),
            served: self.served.clone(),
            translated: self.translated.clone(),
            host: [self.host_free, self.host_cycles],
            requests: self.requests,
            groups: self.groups.iter().map(|g| g.2.clone()).collect(),
            events: self.events.clone(),
            withdrawn: self.withdrawn.clone(),
            tally: self.tally.clone(),
        }
    }

    /// What was saved, of the same launch; none where it cannot be.
    pub fn restore(
        config: &Config,
        options: Options,
        launch: &Launch,
        (base, number): (u64, u32),
        arena: &mut Arena,
        saved: Saved,
    ) -> Option<Service> {
        let (start, with_others) = (Cycle(saved.start), saved.with_others);
        let begin = Begin { config, options, launch, start, base, number, with_others };
        let mut service = Service::at(&begin, arena, None, &saved.copies)?;
        let blocks = service.blocks.blocks.len();
        let is_sound = saved.copies == service.copies
            && saved.translated.len() == blocks
            && saved.groups.len() == service.groups.len()
            && saved.groups.iter().all(|t| t.is_of(blocks, saved.made.len()))
            && saved.made.iter().all(|m| (m.0.block as usize) < blocks && m.0.code.len() == m.0.origin.len())
            && saved.served.iter().all(|s| (s.block as usize) < blocks)
            && saved.served.iter().flat_map(|s| s.entry).all(|e| (e.version as usize) < saved.made.len());
        let mut known = (*service.known).clone();
        if !is_sound || !service.adopt(&saved.made, &mut known, arena) || service.made != saved.made {
            return None;
        }
        service.finish_growth(known);
        for (own, table) in service.groups.iter_mut().zip(saved.groups) {
            own.2 = table;
        }
        service.look_above();
        (service.served, service.translated) = (saved.served, saved.translated);
        [service.host_free, service.host_cycles] = saved.host;
        (service.requests, service.events, service.withdrawn) =
            (saved.requests, saved.events, saved.withdrawn);
        service.tally = saved.tally;
        Some(service)
    }

    /// Cycles that work takes, as the ones who translate see it.
    fn host_or_warp(&self, work: u64) -> u64 {
        match self.options.who {
            Who::Host => u64::from(self.spec.host_latency) + work * u64::from(self.spec.host_unit),
            _ => work * u64::from(self.spec.warp_unit) * u64::from(self.spec.warp_interval),
        }
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

    /// A context of the launch with all versions.
    pub fn context<'l>(&self, old: &Context<'l>, config: &Config) -> Context<'l> {
        let code = self.code(config).placed(self.base, self.number);
        Context { launch: self.launch.clone(), image: Arc::new(self.image.clone()), code, ..old.clone() }
    }

    /// What an SM needs to take part.
    pub fn replacing(&self, sm: usize) -> Box<Replacing> {
        Box::new(Replacing::new(&self.known, &self.above[sm], self.number as usize))
    }

    /// Versions that there are.
    pub fn versions(&self) -> u32 {
        self.made.len() as u32
    }

    /// Puts a version's code behind all that is there, or to this place; where it begins.
    fn append(
        &mut self,
        version: &Version,
        known: &mut Known,
        arena: &mut Arena,
        at: Option<u32>,
    ) -> Option<u32> {
        // What returns to an address of its own is only known of functions that are called by name.
        if version.code.iter().any(|i| i.op == Op::Callx) {
            return None;
        }
        let end = self.launch.kernel().end();
        // Whole lines of code of its own.
        let first = at.unwrap_or_else(|| end.max(arena.end()).next_multiple_of(LINE_INSTRUCTIONS));
        let code = version.place(first);
        if first < end || !arena.take(first, &version.origin) {
            return None;
        }
        let mut all = vec![Inst::new(Op::Tex); (first - end) as usize];
        all.extend_from_slice(&code);
        let growth = Growth { code: &all, watch: &[], openings: &[] };
        self.launch = Arc::new(self.launch.grown(&growth).ok()?);
        // Behind the code before stands what catches whoever runs past its end.
        self.image.code.resize(first as usize, Inst::new(Op::Exit));
        self.image.code.extend_from_slice(&code);
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

    /// Answers the requests of all SMs, and merges tables.
    pub fn serve(
        &mut self,
        parts: &mut [Part<'_>],
        until: Cycle,
        config: &Config,
        arena: &mut Arena,
    ) -> Done {
        let mut requests: Vec<Request> = Vec::new();
        let own = self.number as usize;
        for part in parts.iter_mut() {
            if let Some(r) = part.sm.replacing_of(own) {
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
            let answer = self.answer(request, &mut known, arena);
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
            let answers: Vec<Answer> = answers.iter().filter(|(sm, _)| *sm == n).map(|(_, a)| *a).collect();
            if !answers.is_empty() {
                part.sm.receive_versions(own, &answers, until);
            }
        }
        let invalidated = std::mem::take(&mut self.invalidated);
        Done { grown: has_grown.then(|| end..self.launch.kernel().end()), invalidated }
    }

    /// Tells all SMs what is there now.
    fn spread(&mut self, parts: &mut [Part<'_>], has_grown: bool, config: &Config) {
        let own = self.number as usize;
        let mut contexts = None;
        for (n, part) in parts.iter_mut().enumerate() {
            if has_grown {
                let contexts = contexts.get_or_insert_with(|| {
                    let mut list = part.work.contexts.to_vec();
                    list[own] = self.context(&list[own], config);
                    Arc::new(list)
                });
                part.work.contexts = contexts.clone();
                grow(&mut part.work, own, &self.launch);
            }
            part.sm.know(own, &self.known, &self.above[n], &mut part.work);
        }
    }

    fn answer(&mut self, request: &Request, known: &mut Option<Known>, arena: &mut Arena) -> Answer {
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
            let (entry, work) = self.make(request, known, arena);
            (entry, 0, work)
        });
        let translates = match self.spec.translation {
            _ if self.spec.source == spec::Source::Bytecode => !is_known,
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
    fn make(
        &mut self,
        request: &Request,
        known: &mut Option<Known>,
        arena: &mut Arena,
    ) -> (Option<Entry>, u64) {
        let block = request.block;
        let nothing = self.blocks.blocks[block as usize].places.len() as u64;
        let base = request.base.and_then(|e| self.made.get(e.version as usize)).map(|m| &m.0);
        let source = match self.spec.source {
            spec::Source::Mix => base.map_or(Source::Original, Source::Last),
            spec::Source::Bytecode | spec::Source::Block => Source::Original,
        };
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
        let Some(mut version) = version.or_else(copied).or_else(thinned) else { return (None, nothing) };
        // As it is encoded, and comes back from a checkpoint.
        version.code.iter_mut().for_each(|i| *i = i.canonical());
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
        let Some(first) = self.append(&version, &mut own, arena, None) else { return (None, work) };
        let launch = self.launch.clone();
        own.add(&version, first, |bank, at| launch.constant(bank, at));
        *known = Some(own);
        let number = self.made.len() as u32;
        let at = request.at.0;
        let what = Happened::Made { block, version: number };
        self.events.push(Event { at, sm: None, threads: None, what });
        self.made.push((version, request.profile.clone(), at, first));
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
        let number = self.number as usize;
        let windows: Vec<Option<Vec<(u64, u64)>>> = parts
            .iter_mut()
            .map(|p| {
                // Who has no threads waits for nobody.
                let own = p.sm.replacing_of(number).map(|r| std::mem::take(&mut r.windows));
                p.sm.has_ctas_of(&p.work, number).then(|| own.unwrap_or_default())
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
            for part in &mut parts[sms.clone()] {
                if let Some(r) = part.sm.replacing_of(number) {
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
                part.sm.take_table(number, &best, &mut part.work);
            }
        }
        if changed {
            self.look_above();
        }
        changed
    }

    /// What the sets that each SM is part of have.
    fn look_above(&mut self) {
        for (sm, above) in self.above.iter_mut().enumerate() {
            let mut table = Table::new(self.blocks.blocks.len());
            let own = self.groups.iter().filter(|g| g.1.contains(&sm));
            own.for_each(|g| {
                table.merge(&g.2);
            });
            *above = Arc::new(table);
        }
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

/// All CTAs of a launch on an SM can run the new code.
fn grow(work: &mut Work<'_>, context: usize, launch: &Arc<Launch>) {
    let own = work.ctas.iter_mut().filter(|c| c.context == context);
    own.for_each(|cta| cta.resident.grow(launch));
}

/// What serving requests led to: places of new code, and GPCs whose caches are invalidated.
pub(super) struct Done {
    pub grown: Option<std::ops::Range<u32>>,
    pub invalidated: Vec<usize>,
}
