//! A whole processor: SMs that run on their own between exchange points, and all that is between them.

mod batch;
mod checkpoint;

pub use checkpoint::{Checkpoints, Moment, layout};

use crate::Config;
use crate::command::Command;
use crate::counters::Counters;
use crate::distribution::Occupancy;
use crate::front::Front;
use crate::memory;
use crate::observe::{self, Traffic};
use crate::optimizing::{self, Kept as KeptVersions, Optimized, Services, most_instructions};
use crate::ports::{CtaEnd, CtaStart, Request, Response};
use crate::progress::Progress;
use crate::sm::code::Code;
use crate::sm::policy::{Choice, Program};
use crate::sm::trace_cell::{RegisterError, Registers};
use crate::sm::watch::Watcher;
use crate::sm::{Begin, Context, Failure, LAST_CYCLE, Sm, Tables, Work};
use crate::stall::{STALLS, StallCycles};
use crate::tasks::{Tasks, preferred_split, task_of};
use crate::units::{Cycle, SmId};
use crate::workers::Workers;
use checkpoint::{Begun, Kept, Reached};
use isa::image::Image;
use simt::files::Files;
use simt::{Launch, Memory, Whereabouts};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use trace::profile::Detail;

/// Where code, constants and local memory lie as caches see them: above all addresses that programs have.
pub(crate) const CODE_BASE: u64 = 1 << 52;
/// Bytes between the code of two programs.
const CODE_STRIDE: u64 = 1 << 32;
pub(crate) const CONSTANT_BASE: u64 = 1 << 53;
pub(crate) const LOCAL_BASE: u64 = 1 << 54;

/// Bytes of an instruction in memory.
pub(crate) const INSTRUCTION_BYTES: u64 = 16;

/// Cycles that an SM runs on by itself when nothing concerns others: longer turns keep the host's caches warm.
const AHEAD: u64 = 1 << 14;

/// How a launch is run.
#[derive(Clone, Copy, Default)]
pub struct RunOptions<'a> {
    /// Host threads; at least one.
    pub threads: usize,
    /// Warp instructions after which the launch is ended.
    pub max_instructions: Option<u64>,
    /// Set from elsewhere to end the launch.
    pub cancel: Option<&'a AtomicBool>,
    /// Counts simulated cycles and CTAs that are done, for whoever watches.
    pub cycles_done: Option<&'a AtomicU64>,
    pub ctas_done: Option<&'a AtomicU64>,
    /// Cycles between samples of how evenly the warps of CTAs progress.
    pub progress: Option<u64>,
    /// Records every choice of the schedulers; slow, and long.
    pub record_choices: bool,
    /// Takes what the kernel prints, in the order of CTAs.
    pub print: Option<&'a (dyn Fn(&[u8]) + Sync)>,
    /// Keeps what a profile shows; cycles and results stay the same.
    pub detail: bool,
    /// SMs for which that has the states of single warps; the first where `None`.
    pub closely: Option<&'a [u32]>,
    /// Hands over the state every so often; cycles and results stay the same.
    pub checkpoints: Option<Checkpoints<'a>>,
    /// Goes on with a launch from the state that [`Moment::bytes`] gave. The configuration, the launch, the memory and the
    /// other options are those of then.
    pub resume: Option<&'a [u8]>,
    /// Optimizes the code while it runs; results stay the same.
    pub optimize: Option<optimizing::Options>,
}

impl RunOptions<'_> {
    /// How it is to be optimized, if that can be done.
    fn can_optimize(&self) -> Result<Option<optimizing::Options>, Stopped> {
        match self.optimize {
            Some(_) if cfg!(without_optimizer) => {
                Err(Stopped::Refused("this program was built without the optimizer".into()))
            }
            optimize => Ok(optimize),
        }
    }
}

/// What a launch did.
#[derive(Clone, Debug)]
pub struct Timed {
    /// From the launch's command to its completion.
    pub cycles: u64,
    pub counters: Counters,
    /// Warp-cycles by reason, for every instruction.
    pub stalls: Vec<StallCycles>,
    pub occupancy: Occupancy,
    /// Where it was asked for.
    pub detail: Option<Box<Detail>>,
    /// What trace cells wrote to the event buffer.
    pub sampled: Vec<u8>,
    /// How evenly warps progressed, where it was asked for.
    pub progress: Option<Progress>,
    /// Choices of the schedulers of each SM, where they were asked for.
    pub choices: Vec<Vec<Choice>>,
    /// What was optimized, where that was asked for.
    pub optimized: Option<Box<Optimized>>,
}

/// Why a launch ended early.
#[derive(Clone, Debug)]
pub enum Stopped {
    Fault(Failure),
    /// [`RunOptions::max_instructions`] were executed; where a warp was then.
    TooLong(Option<Whereabouts>),
    /// [`RunOptions::cancel`] was set; where a warp was then.
    Cancelled(Option<Whereabouts>),
    /// The machine cannot take it, in words.
    Refused(String),
    /// The machine's clock is at its end, [`LAST_CYCLE`].
    TooLate,
    /// Nothing can happen any more; what the warps wait for, in words.
    Stuck(String),
    /// The state could not be kept, or one that was kept is not that of this launch; why.
    Checkpoint(String),
}

/// An SM at work.
pub(crate) struct Part<'l> {
    pub sm: Sm,
    pub work: Work<'l>,
    /// Requests of its turn, and answers for the next one: moved by whoever runs the SM.
    requests: Vec<Request>,
    answers: Vec<Response>,
}

impl Part<'_> {
    /// The SM does nothing, and nothing of it is under way.
    fn is_quiet(&self) -> bool {
        self.sm.is_idle() && self.answers.is_empty() && self.sm.next_request().is_none()
    }
}

/// A processor, from the push buffer to DRAM. Its caches stay as launches leave them.
pub struct Ppu {
    config: Arc<Config>,
    sms: Vec<Sm>,
    memory: memory::System,
    front: Front,
    now: Cycle,
    /// When the host can submit the next launch.
    next_submit: Cycle,
    launches: u64,
    /// What tells the programs apart that ran here; each has its own place in memory.
    programs: Vec<u64>,
    trace_registers: Registers,
    /// Register files that the last launch left, for each SM.
    files: Vec<Files>,
    /// Versions of code that launches left for the next ones of their kernels.
    versions: Vec<KeptVersions>,
    /// The cycle of the last checkpoint.
    checkpointed: Cycle,
}

impl Ppu {
    pub fn new(config: Config) -> Ppu {
        let sms = (0..config.sms() as u16).map(|n| Sm::new(SmId(n), &config)).collect();
        Ppu {
            sms,
            memory: memory::System::new(&config),
            front: Front::new(&config),
            now: Cycle(0),
            next_submit: Cycle(0),
            launches: 0,
            programs: Vec::new(),
            trace_registers: Registers::default(),
            files: Vec::new(),
            versions: Vec::new(),
            checkpointed: Cycle(0),
            config: Arc::new(config),
        }
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The host writes a register of the trace cells.
    pub fn write_trace_register(&mut self, offset: u32, value: u32) -> Result<(), RegisterError> {
        self.trace_registers.write(offset, value)
    }

    /// The registers of the trace cells, to be read.
    pub fn trace_registers(&self) -> &Registers {
        &self.trace_registers
    }

    /// Cold caches.
    pub fn flush(&mut self) {
        self.memory.flush();
        for sm in &mut self.sms {
            sm.flush();
        }
    }

    /// The cycle at which the last launch had ended.
    pub fn now(&self) -> Cycle {
        self.now
    }

    /// The host wrote to device memory.
    pub fn host_write(&mut self, address: u64, bytes: u64) {
        self.memory.host_write(address, bytes);
    }

    /// Where a program's code lies, as caches see it.
    fn place(&mut self, image: &Image) -> u64 {
        use std::hash::{Hash, Hasher};
        // A hasher without keys: the same program gets the same place in every run.
        let mut hasher = std::hash::DefaultHasher::new();
        image.code.hash(&mut hasher);
        let hash = hasher.finish();
        let n = self.programs.iter().position(|&p| p == hash).unwrap_or_else(|| {
            self.programs.push(hash);
            self.programs.len() - 1
        });
        CODE_BASE + n as u64 * CODE_STRIDE
    }

    /// Runs a launch to its end.
    pub fn launch(
        &mut self,
        launch: &Arc<Launch>,
        memory: &Memory,
        options: &RunOptions<'_>,
    ) -> Result<Timed, Stopped> {
        let function = launch.kernel().function();
        let image = launch.program().image();
        let mut resumed = options.resume.map(|bytes| self.resume(bytes)).transpose()?;
        if resumed.as_ref().is_some_and(|begun| begun.tasks.is_some()) {
            return Err(checkpoint::damaged("launches that run at once"));
        }
        if resumed.is_none() {
            self.launches += 1;
        }
        let known = self.programs.len();
        let code_base = self.place(image);
        if resumed.is_some() && self.programs.len() != known {
            return Err(checkpoint::damaged("another program"));
        }
        let code = Code::new(image, function.registers, &self.config.sm);
        let mut contexts = vec![Context {
            launch: launch.clone(),
            memory,
            image: image.clone(),
            code: code.placed(code_base, 0),
            grid_id: self.launches,
            local_base: LOCAL_BASE,
            local_stride: u64::from(launch.local_bytes()).next_multiple_of(128) * 32,
            group: 0,
            rows: 0,
        }];
        let start = self.now.later(self.next_submit);
        let mut services = self.services(options, resumed.as_mut(), &mut contexts)?;
        if let Some(services) = services.as_mut().filter(|_| resumed.is_none())
            && let Some(context) = services.begin(&contexts[0], (0, 0), start, false, &self.config)
        {
            contexts[0] = context;
        }
        let contexts = Arc::new(contexts);
        let task = task_of(launch, 0, 0, 0);
        let occupancy = Occupancy::new(&self.config.sm, &task, 0);
        let split = preferred_split(&self.config, &task);
        let shared_split = Occupancy::new(&self.config.sm, &task, split).shared_split;
        let settings = self.trace_registers.settings();
        let program = Arc::new(Program::new(image, self.config.sm.scheduler.grants.accesses));
        let mut begin = Begin::new([&contexts[0].code].into_iter(), CONSTANT_BASE, shared_split);
        if services.is_some() {
            // What versions will have is not known yet.
            begin.classes = u32::MAX;
            begin.instructions = most_instructions(image.code.len(), self.config.optimizer.code_bytes);
        }
        let mut submitted = Ok(());
        let (mut parts, begun) = match resumed {
            Some(mut resumed) => {
                self.sms.iter_mut().for_each(|sm| sm.set_program(&program));
                (resumed.parts(self.sms.drain(..), &contexts, services.as_ref())?, resumed)
            }
            None => {
                self.next_submit = start + u64::from(self.config.host.submit_interval);
                self.memory.reset_counters();
                // The driver has just written both: the code is in the second-level cache, and the launch carries its
                // constant bank. (Kernels show no DRAM reads for them, and first constants cost no more than the GPC's
                // cache.)
                let code = contexts[0].image.code.len() as u64 * INSTRUCTION_BYTES;
                self.memory.host_write(code_base, code);
                self.memory.expect_code(code_base, code);
                let bank = u64::from(isa::abi::launch::PARAMS) + u64::from(function.param_bytes);
                self.memory.preload_constants(CONSTANT_BASE, bank);
                let mut parts: Vec<Part<'_>> = Vec::with_capacity(self.sms.len());
                // Files that differ from new ones in what nobody reads would show in what is saved.
                let is_saved = options.checkpoints.is_some() || services.is_some();
                let mut left = std::mem::take(&mut self.files).into_iter().filter(|_| !is_saved);
                let is_long = observe::are_long(&contexts, self.sms.len());
                for mut sm in self.sms.drain(..) {
                    sm.record_choices(options.record_choices);
                    sm.watch_progress(options.progress, start);
                    sm.set_program(&program);
                    sm.begin_launch(&begin);
                    let watcher =
                        observe::watcher(&sm, &contexts[0], start, is_long, settings.as_ref(), options);
                    sm.watch(watcher);
                    parts.push(Part {
                        sm,
                        work: Work::with_files(contexts.clone(), left.next().unwrap_or_default()),
                        requests: Vec::new(),
                        answers: Vec::new(),
                    });
                }
                let mut words = Vec::new();
                Command::SetSharedSplit { bytes: split }.encode(&mut words);
                Command::Launch(task).encode(&mut words);
                submitted = self.front.submit(start, &words);
                let traffic = options.detail.then(|| Traffic::new(start));
                let begun = Begun::new(start, self.config.quantum, parts.len(), traffic);
                (parts, begun)
            }
        };
        if let Some(services) = services.as_ref().filter(|_| options.resume.is_none()) {
            services.join(0, &mut parts);
        }
        let start = begun.reached.start;
        let kept = self.kept();
        let reached = begun.reached;
        let (system, front) = (&mut self.memory, &mut self.front);
        let checkpointed = &mut self.checkpointed;
        let mut run =
            Run::new(&self.config, system, front, memory, options, parts, begun, kept, checkpointed, None);
        run.services = services;
        let outcome = match submitted {
            Ok(()) => Workers::with(options.threads.max(1), |workers| run.finish(workers, reached)),
            Err(full) => Err(Stopped::Refused(full.to_string())),
        };
        let mut timed = Timed {
            cycles: 0,
            counters: run.memory.counters(),
            stalls: Vec::new(),
            occupancy,
            progress: None,
            choices: Vec::new(),
            detail: None,
            sampled: Vec::new(),
            optimized: None,
        };
        timed.stalls.resize(begin.instructions, [0; STALLS]);
        if let Some(print) = options.print {
            run.printed.values().for_each(|text| print(text));
        }
        let traffic = run.traffic.take();
        let mut services = run.services.take();
        if let Some(services) = &mut services {
            services.end(0, true, &mut run.parts);
        }
        // With all code that was made.
        let contexts = run.parts.first().map_or(contexts, |p| p.work.contexts.clone());
        let mut watchers = Vec::new();
        let keeps_files = services.is_none() && options.checkpoints.is_none() && options.resume.is_none();
        for mut part in run.parts {
            if options.record_choices {
                timed.choices.push(part.sm.take_choices());
            }
            if let Some(own) = part.sm.progress.take() {
                timed.progress.get_or_insert_default().merge(&own);
            }
            part.sm.add_to(&mut timed.counters, &mut timed.stalls);
            watchers.push(part.sm.take_watcher());
            self.sms.push(part.sm);
            if keeps_files {
                self.files.push(part.work.into_files());
            }
        }
        let end = outcome?;
        timed.cycles = end - start;
        self.now = end;
        let mut watchers: Vec<Box<Watcher>> = watchers.into_iter().flatten().collect();
        if let Some(settings) = settings {
            let (bytes, lost) = observe::store(&mut watchers, &settings, memory).map_err(Stopped::Refused)?;
            self.trace_registers.report((bytes.len() / settings.form.bytes()) as u64, lost);
            timed.sampled = bytes;
        }
        if let Some(traffic) = traffic {
            let mut detail = observe::detail(watchers, &contexts[0], begin.instructions, &timed.stalls);
            if let Some(services) = &services {
                observe::fold(&mut detail, image.code.len() + 1, |pc| services.origin(&contexts[0], pc));
            }
            detail.code_base = code_base;
            traffic.finish(timed.cycles, timed.counters, &mut detail.timeline);
            timed.detail = Some(Box::new(detail));
        }
        if let Some(mut services) = services {
            // Cycles of versions are those of the instructions that they come from.
            observe::fold_stalls(&mut timed.stalls, image.code.len() + 1, |pc| {
                services.origin(&contexts[0], pc)
            });
            timed.optimized = services.report(0);
            self.versions = services.into_kept();
        }
        Ok(timed)
    }

    /// Who makes versions of launches that begin with these contexts, or go on; their contexts with all versions.
    fn services(
        &mut self,
        options: &RunOptions<'_>,
        resumed: Option<&mut Begun>,
        contexts: &mut [Context<'_>],
    ) -> Result<Option<Services>, Stopped> {
        let Some(optimize) = options.can_optimize()? else { return Ok(None) };
        let Some(begun) = resumed else {
            return Ok(Some(Services::new(optimize, std::mem::take(&mut self.versions))));
        };
        let services =
            begun.services.take().and_then(|s| Services::restore(optimize, s, contexts, &self.config));
        Ok(Some(services.ok_or_else(|| checkpoint::damaged("other versions of code"))?))
    }
}

/// A launch under way.
struct Run<'l, 'p> {
    config: &'p Config,
    memory: &'p mut memory::System,
    front: &'p mut Front,
    device: &'l Memory,
    options: &'p RunOptions<'p>,
    parts: Vec<Part<'l>>,
    /// What SMs count in while they run, for each host thread.
    tables: Vec<Tables>,
    /// SMs that have something to do or to send.
    is_active: Vec<bool>,
    outboxes: Vec<Vec<Request>>,
    inboxes: Vec<Vec<Response>>,
    /// CTAs that ended, those among them that end after the exchange point too.
    ends: Vec<CtaEnd>,
    starts: Vec<CtaStart>,
    /// What CTAs printed, by launches and their numbers: the order in which it is handed over.
    printed: BTreeMap<(usize, u64), Vec<u8>>,
    /// What memory did so far, for whoever wants a timeline of it.
    traffic: Option<Traffic>,
    /// Where more than one launch runs.
    tasks: Option<Tasks<'l, 'p>>,
    /// Who optimizes code while it runs.
    services: Option<Services>,
    /// For checkpoints: what the processor keeps from launch to launch, and the cycle of the last one.
    kept: Kept,
    checkpointed: &'p mut Cycle,
}

impl<'l, 'p> Run<'l, 'p> {
    /// From where a launch, a batch or a checkpoint has begun.
    fn new(
        config: &'p Config,
        memory: &'p mut memory::System,
        front: &'p mut Front,
        device: &'l Memory,
        options: &'p RunOptions<'p>,
        parts: Vec<Part<'l>>,
        begun: Begun,
        kept: Kept,
        checkpointed: &'p mut Cycle,
        tasks: Option<Tasks<'l, 'p>>,
    ) -> Run<'l, 'p> {
        let Begun { is_active, outboxes, inboxes, ends, printed, traffic, .. } = begun;
        Run {
            config,
            memory,
            front,
            device,
            options,
            parts,
            tables: Vec::new(),
            is_active,
            outboxes,
            inboxes,
            ends,
            starts: Vec::new(),
            printed,
            traffic,
            tasks,
            services: None,
            kept,
            checkpointed,
        }
    }

    /// Runs to the end; the cycle at which the launch has ended.
    fn finish(&mut self, workers: &Workers, reached: Reached) -> Result<Cycle, Stopped> {
        let tables = || self.parts.first().map_or_else(Tables::default, |part| part.sm.tables());
        self.tables = (0..workers.threads()).map(|_| tables()).collect();
        let end = self.run(workers, reached);
        self.gather_tables();
        end
    }

    /// What was counted in the tables of host threads is the first SM's: only sums are wanted of all.
    fn gather_tables(&mut self) {
        if let Some(first) = self.parts.first_mut() {
            self.tables.iter_mut().for_each(|tables| first.sm.take_in(tables));
        }
    }

    /// Runs from exchange point to exchange point.
    fn run(&mut self, workers: &Workers, mut reached: Reached) -> Result<Cycle, Stopped> {
        let quantum = u64::from(self.config.quantum.max(1));
        if self.options.resume.is_some() {
            self.count_again(&reached);
            self.watch(reached.until - reached.start)?;
            reached.until = self.next_point(quantum, reached.until)?;
        }
        loop {
            let until = reached.until;
            if until.0 > LAST_CYCLE {
                return Err(Stopped::TooLate);
            }
            self.run_sms(workers, until);
            self.exchange(workers, until)?;
            // The launch can have ended while answers to its stores are still on their way.
            let finished = reached.finished;
            reached.finished = match &mut self.tasks {
                None => self.front.finished().last().map(|&(_, at)| at).or(finished),
                Some(tasks) => {
                    let memory = (&mut *self.memory, self.device);
                    let (parts, active) = (&mut self.parts[..], &mut self.is_active[..]);
                    let services = self.services.as_mut();
                    tasks.serve(until, self.front, parts, active, memory, services, self.config)?;
                    tasks.is_over(self.front).then_some(tasks.end)
                }
            };
            if let Some(at) = reached.finished
                && self.is_quiet()
            {
                // What was sent to memory without waiting for it is part of the launch.
                return Ok(at.later(self.memory.busy_until()));
            }
            self.watch(until - reached.start)?;
            self.checkpoint(reached)?;
            reached.until = self.next_point(quantum, until)?;
        }
    }

    /// The next exchange point; cycles in which nobody acts are skipped. It is the same one again while SMs that had to
    /// wait for their GPC have not come to it.
    fn next_point(&self, quantum: u64, until: Cycle) -> Result<Cycle, Stopped> {
        let next = self.next_event().ok_or_else(|| Stopped::Stuck(self.waiting()))?;
        Ok(Cycle((next.0 / quantum + 1) * quantum).later(until))
    }

    fn run_sms(&mut self, workers: &Workers, until: Cycle) {
        let is_active = &self.is_active;
        let mut due: Vec<&mut Part<'_>> = self
            .parts
            .iter_mut()
            .zip(is_active)
            .filter(|(part, active)| **active && part.sm.next_event().is_some_and(|at| at < until))
            .map(|(part, _)| part)
            .collect();
        // With no CTA on its way to an SM, SMs may run on by themselves.
        let may_run_on = self.tasks.is_none() && self.services.is_none() && self.front.next_event().is_none();
        let ahead = if may_run_on { until + AHEAD } else { until };
        // While one runs, the host's caches are asked for the next.
        let places: Vec<_> = due.iter().map(|part| part.sm.whereabouts()).collect();
        workers.each_with(&mut self.tables, &mut due, |tables, n, part| {
            if let Some(next) = places.get(n + 1) {
                next.expect();
            }
            places[n].expect_now();
            part.sm.deliver(&mut part.answers);
            part.sm.swap(tables);
            part.sm.run(&mut part.work, until, ahead);
            part.sm.swap(tables);
            part.sm.send(until, &mut part.requests);
        });
    }

    /// Everything changes hands in the order (cycle, SM, sequence).
    fn exchange(&mut self, workers: &Workers, until: Cycle) -> Result<(), Stopped> {
        let mut failure: Option<&Failure> = None;
        for part in &self.parts {
            if let Some(f) = &part.sm.failure
                && failure.is_none_or(|g| f.at < g.at)
            {
                failure = Some(f);
            }
        }
        if let Some(f) = failure {
            let mut f = f.clone();
            f.fault.pc.0 = self.origin(f.launch as usize, f.fault.pc.0);
            return Err(Stopped::Fault(f));
        }
        // Requests that leave their SM before the exchange point.
        let mut any = false;
        for (part, outbox) in self.parts.iter_mut().zip(&mut self.outboxes) {
            // Those that had no turn may have some from before.
            if part.requests.is_empty() {
                part.sm.send(until, &mut part.requests);
            }
            std::mem::swap(&mut part.requests, outbox);
            any |= !outbox.is_empty();
        }
        if any {
            self.memory.exchange(workers, &mut self.outboxes, &mut self.inboxes, until);
            for (n, (part, inbox)) in self.parts.iter_mut().zip(&mut self.inboxes).enumerate() {
                if let Some(first) = inbox.first() {
                    part.sm.announce(first.at);
                    part.sm.deliver(&mut part.answers);
                    std::mem::swap(&mut part.answers, inbox);
                    self.is_active[n] = true;
                }
            }
        }
        let mut logs: Vec<&mut simt::log::Log> = self
            .parts
            .iter_mut()
            .zip(&self.is_active)
            .filter(|(_, active)| **active)
            .map(|(part, _)| &mut part.sm.log)
            .collect();
        simt::log::apply(self.device, &mut logs);
        for (part, _) in self.parts.iter_mut().zip(&self.is_active).filter(|(_, active)| **active) {
            part.sm.act_alone(&mut part.work, until);
            part.sm.after_exchange(&mut part.work, until);
            self.ends.append(&mut part.sm.ends);
            for (launch, linear, text) in part.sm.output.drain(..) {
                let job = self.tasks.as_ref().map_or(0, |t| t.job_of(launch));
                self.printed.entry((job, linear)).or_default().extend(text);
            }
            if let Some(tasks) = &mut self.tasks {
                tasks.collect(part, self.front);
            }
        }
        if let Some(services) = &mut self.services
            && let Some(contexts) = services.serve(&mut self.parts, until, self.config, self.memory)
            && let Some(tasks) = &mut self.tasks
        {
            tasks.contexts = contexts;
        }
        if let Some(traffic) = self.traffic.as_mut().filter(|t| t.is_due(until)) {
            let mut counters = self.memory.counters();
            counters.l1_sectors = self.parts.iter().map(|p| p.sm.counters.l1_sectors).sum();
            traffic.note(until, counters);
        }
        self.distribute(until)
    }

    /// CTAs that ended make room for others.
    fn distribute(&mut self, until: Cycle) -> Result<(), Stopped> {
        self.ends.sort_by_key(|e| (e.at, e.sm));
        let now = self.ends.partition_point(|e| e.at < until);
        self.starts.clear();
        self.front
            .advance(until, &self.ends[..now], &mut self.starts)
            .map_err(|e| Stopped::Refused(e.to_string()))?;
        if let Some(done) = self.options.ctas_done {
            done.fetch_add(now as u64, Ordering::Relaxed);
        }
        if let Some(tasks) = &mut self.tasks {
            tasks.left(&self.ends[..now], self.front, self.device);
        }
        self.ends.drain(..now);
        for start in &mut self.starts {
            let n = start.sm.0 as usize;
            if let Some(tasks) = &mut self.tasks {
                start.at = start.at.later(until);
                tasks.starts(start, &mut self.parts[n]);
            }
            self.parts[n].sm.start(*start);
            self.is_active[n] = true;
        }
        Ok(())
    }

    /// The next cycle at which anything happens.
    fn next_event(&self) -> Option<Cycle> {
        let sms = self.parts.iter().zip(&self.is_active).filter(|(_, a)| **a);
        let sms =
            sms.filter_map(|(part, _)| part.sm.next_event().into_iter().chain(part.sm.next_request()).min());
        let ends = self.ends.iter().map(|e| e.at);
        let stop = self.tasks.as_ref().and_then(Tasks::next_stop);
        sms.chain(ends).chain(self.front.next_event()).chain(stop).min()
    }

    /// What the warps of the first SM that has some wait for.
    fn waiting(&self) -> String {
        let part = self.parts.iter().find(|p| !p.sm.is_idle());
        part.map_or_else(|| "no SM has a warp".to_owned(), |p| p.sm.waiting())
    }

    /// The place in the program that an instruction comes from.
    fn origin(&self, context: usize, pc: u32) -> u32 {
        let context = self.parts.first().and_then(|p| p.work.contexts.get(context));
        self.services.as_ref().zip(context).map_or(pc, |(services, context)| services.origin(context, pc))
    }

    /// Where the first of the CTAs that run is.
    fn whereabouts(&self) -> Option<Whereabouts> {
        let ctas = self.parts.iter().flat_map(|p| &p.work.ctas).filter(|cta| cta.is_used);
        let cta = ctas.min_by_key(|cta| cta.linear)?;
        let at = cta.resident.whereabouts()?;
        Some(Whereabouts { pc: isa::Pc(self.origin(cta.context, at.pc.0)), ..at })
    }

    /// No SM does anything, and nothing is under way.
    fn is_quiet(&self) -> bool {
        self.ends.is_empty() && self.parts.iter().zip(&self.is_active).all(|(part, a)| !a || part.is_quiet())
    }

    /// Tells whoever watches how far it is, and stops when asked to.
    fn watch(&mut self, cycles: u64) -> Result<(), Stopped> {
        if let Some(done) = self.options.cycles_done {
            done.store(cycles, Ordering::Relaxed);
        }
        if self.options.cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
            return Err(Stopped::Cancelled(self.whereabouts()));
        }
        if let Some(limit) = self.options.max_instructions {
            let executed: u64 = self.parts.iter().map(|p| p.sm.issued()).sum();
            if executed > limit {
                return Err(Stopped::TooLong(self.whereabouts()));
            }
        }
        Ok(())
    }
}
