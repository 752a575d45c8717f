//! Functional launches: the results of a kernel, as fast as the host gives them.
//!
//! Most launches run their CTAs in parallel, each worker one CTA at a time. A kernel whose results depend on the order of
//! CTAs, or that waits for other CTAs, runs on one thread instead: as many CTAs as an H200 has room for are resident
//! and take turns of [`TURN`] instructions a warp, in the order of their numbers.
//!
//! What a program can ask for is the same on every run: CTA n runs on SM n mod 132, a warp's clock counts its own
//! instructions, and output comes in the order of CTAs. Of several faults the one of the lowest CTA is reported.

use crate::cta::{Child, ChildOrder, CtaState};
use crate::fault::{Fault, FaultKind};
use crate::launch::{Launch, SHARED_MAX, Shape};
use crate::level::Isa;
use crate::memory::{Bounds, Memory};
use crate::program::Program;
use crate::queue::Queue;
use crate::special::Place;
use crate::warp::{Env, Stop, Warp};
use isa::Pc;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Instructions of a warp between two looks at the limits, when CTAs run in parallel.
const QUANTUM: u64 = 1 << 16;
/// Instructions of a warp in a turn, when CTAs are interleaved.
pub const TURN: u64 = 2048;
/// Instructions that one thread executes before others help it: about as long as starting them takes.
const ALONE: u64 = 8192;
/// The machine that functional launches pretend to be.
const SMS: u32 = 132;
const WARPS_PER_SM: u32 = 64;
const CTAS_PER_SM: u32 = 32;
const REGISTERS_PER_SM: u32 = 65536;
/// Shared memory of an SM that CTAs can have, a kilobyte each for the system.
const SHARED_PER_SM: u32 = SHARED_MAX + 1024;

/// How to run a launch.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Host threads.
    pub threads: usize,
    pub level: Isa,
    /// Warp instructions after which the launch ends with an error.
    pub max_instructions: u64,
    /// Set by anyone: the launch ends soon.
    pub cancel: Option<&'a AtomicBool>,
    /// Gets what `printf` writes.
    pub output: Option<&'a (dyn Fn(&[u8]) + Sync)>,
    /// Counts CTAs that are done.
    pub progress: Option<&'a AtomicU64>,
    /// Count the executions of every instruction; the launch runs slower.
    pub count: bool,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
            level: Isa::best(),
            max_instructions: u64::MAX,
            cancel: None,
            output: None,
            progress: None,
            count: false,
        }
    }
}

/// What a launch did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    pub ctas: u64,
    pub warp_instructions: u64,
    /// Instructions times the lanes that were there, guards not looked at.
    pub thread_instructions: u64,
    /// Executions of each instruction of the image, if asked for.
    pub counts: Option<Vec<u64>>,
}

impl Stats {
    fn add(&mut self, other: &Stats) {
        self.ctas += other.ctas;
        self.warp_instructions += other.warp_instructions;
        self.thread_instructions += other.thread_instructions;
        if let (Some(mine), Some(theirs)) = (&mut self.counts, &other.counts) {
            for (m, t) in mine.iter_mut().zip(theirs) {
                *m += t;
            }
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LaunchError {
    /// No entry function has this name.
    NoEntry(String),
    /// The shape or the arguments do not fit the kernel or the machine.
    Invalid(String),
    Fault(Box<Fault>),
    /// More warp instructions than this; where a warp was when the launch ended.
    TooLong(u64, Option<Whereabouts>),
    /// Somebody asked for it.
    Cancelled(Option<Whereabouts>),
}

/// A thread and the instruction it would execute next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Whereabouts {
    pub pc: Pc,
    pub cta: [u32; 3],
    pub thread: [u32; 3],
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            LaunchError::NoEntry(name) => write!(f, "no entry function is called `{name}`"),
            LaunchError::Invalid(why) => write!(f, "{why}"),
            LaunchError::Fault(fault) => write!(f, "{fault}"),
            LaunchError::TooLong(n, _) => write!(f, "more than {n} warp instructions"),
            LaunchError::Cancelled(_) => write!(f, "cancelled"),
        }
    }
}

impl std::error::Error for LaunchError {}

/// Runs a kernel to its end.
pub fn run(
    program: &Program,
    entry: &str,
    shape: &Shape,
    params: &[u8],
    memory: &Memory,
    options: &Options,
) -> Result<Stats, LaunchError> {
    let kernel =
        program.kernel(entry, options.level).ok_or_else(|| LaunchError::NoEntry(entry.to_string()))?;
    let launch = Launch::new(program, kernel, shape, params, memory)?;
    run_launch(&launch, memory, options)
}

/// Runs a prepared launch to its end.
pub fn run_launch(launch: &Launch, memory: &Memory, options: &Options) -> Result<Stats, LaunchError> {
    let k = &launch.kernel;
    let ordered = k.function.order_dependent || k.uses_heap || k.launches || launch.queue.is_some();
    let workers = if ordered { 1 } else { options.threads.clamp(1, launch.ctas().min(1024) as usize) };
    let shared = Shared {
        launch,
        memory,
        options,
        next: AtomicU64::new(0),
        executed: AtomicU64::new(0),
        // CTAs from here on need not run.
        stop: AtomicU64::new(u64::MAX),
        state: Mutex::new(State::default()),
        concurrent: workers > 1,
    };
    let mut stats = Stats::default();
    if options.count {
        stats.counts = Some(vec![0; launch.kernel.len() as usize]);
    }
    if ordered {
        stats.add(&shared.interleaved());
    } else {
        // A small launch is over before another thread would have started.
        let (own, begun) = shared.worker(None, if workers > 1 { ALONE } else { u64::MAX });
        stats.add(&own);
        if let Some(begun) = begun {
            let all = std::thread::scope(|s| {
                let help = || shared.worker(None, u64::MAX).0;
                let threads: Vec<_> = (1..workers).map(|_| s.spawn(help)).collect();
                let (own, _) = shared.worker(Some(begun), u64::MAX);
                let others = threads.into_iter().map(|t| t.join().unwrap_or_default());
                others.chain([own]).collect::<Vec<_>>()
            });
            for s in &all {
                stats.add(s);
            }
        }
    }
    let state = shared.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(children) = &state.children {
        stats.add(children);
    }
    match state.error {
        Some((_, error)) => Err(error),
        None if stats.warp_instructions > options.max_instructions => {
            Err(LaunchError::TooLong(options.max_instructions, None))
        }
        None => Ok(stats),
    }
}

/// What workers share.
struct Shared<'a> {
    launch: &'a Launch,
    memory: &'a Memory,
    options: &'a Options<'a>,
    next: AtomicU64,
    executed: AtomicU64,
    stop: AtomicU64,
    state: Mutex<State>,
    concurrent: bool,
}

#[derive(Default)]
struct State {
    /// The error of the lowest CTA.
    error: Option<(u64, LaunchError)>,
    /// Output of CTAs whose turn has not come.
    output: BTreeMap<u64, Vec<u8>>,
    /// The CTA whose output comes next.
    turn: u64,
    /// What child tasks did.
    children: Option<Stats>,
    /// Those that run when the launch has ended.
    tails: VecDeque<Child>,
}

/// Room for a CTA.
struct Slot {
    warps: Vec<Warp>,
    cta: CtaState,
    linear: u64,
}

/// How a pass over a CTA's warps ended.
enum Pass {
    More,
    Done,
    Error(LaunchError),
}

impl<'a> Shared<'a> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self) -> Slot {
        let launch = self.launch;
        Slot {
            warps: (0..launch.warps()).map(|_| Warp::new(launch)).collect(),
            cta: CtaState::new(launch.grid, launch.block, launch.shared_bytes, launch.dynamic_shared),
            linear: 0,
        }
    }

    fn start(&self, slot: &mut Slot, linear: u64) {
        let place = Place { sm: (linear % u64::from(SMS)) as u32, ..Place::default() };
        slot.linear = linear;
        slot.cta.start(self.launch.index(linear), place);
        for (n, warp) in slot.warps.iter_mut().enumerate() {
            warp.start(self.launch, n as u32);
        }
    }

    /// Every warp of a CTA runs for a quantum.
    fn pass(
        &self,
        slot: &mut Slot,
        bounds: &mut [Bounds],
        counts: &mut Option<Vec<u64>>,
        quantum: u64,
    ) -> Pass {
        let mut env = Env {
            launch: self.launch,
            memory: self.memory,
            bounds,
            cta: &mut slot.cta,
            concurrent: self.concurrent,
            time: None,
            counts: counts.as_deref_mut(),
        };
        let (mut ran, mut live) = (0, false);
        for warp in &mut slot.warps {
            if warp.is_done() {
                continue;
            }
            let before = warp.executed;
            match warp.run(&mut env, quantum) {
                Stop::Done => {}
                Stop::Budget | Stop::Blocked => live = true,
                Stop::Fault(fault) => return Pass::Error(LaunchError::Fault(fault)),
            }
            ran += warp.executed - before;
            // Child tasks may run at any time: at once. Those that are waited for have ended when the warp goes on.
            if !env.cta.requests.is_empty()
                && let Some(error) = self.run_children(env.cta)
            {
                return Pass::Error(error);
            }
            if let Some(error) = self.check(slot.linear, warp.executed - before, || warp.whereabouts(env.cta))
            {
                return Pass::Error(error);
            }
        }
        if !live {
            return Pass::Done;
        }
        let waits = |w: &Warp| w.waits_for_children() && env.cta.children == 0;
        if ran == 0 && slot.warps.iter().any(waits) {
            return Pass::More;
        }
        if ran == 0 && !slot.warps.iter_mut().any(|w| w.unblock(&env)) {
            let fault = slot.warps.iter().find_map(|w| w.deadlock(env.cta));
            return match fault {
                Some(fault) => Pass::Error(LaunchError::Fault(Box::new(fault))),
                None => Pass::Done,
            };
        }
        Pass::More
    }

    /// Runs the child tasks that a CTA started; those at the tail are kept.
    fn run_children(&self, cta: &mut CtaState) -> Option<LaunchError> {
        for child in std::mem::take(&mut cta.requests) {
            if child.order == ChildOrder::Tail {
                self.state().tails.push_back(child);
                continue;
            }
            cta.children -= 1;
            if let Some(error) = self.run_child(&child) {
                return Some(error);
            }
        }
        None
    }

    fn run_child(&self, child: &Child) -> Option<LaunchError> {
        let executed = self.executed.load(Ordering::Relaxed);
        let left = self.options.max_instructions.saturating_sub(executed);
        match run_launch(&child.launch, self.memory, &Options { max_instructions: left, ..*self.options }) {
            Ok(stats) => {
                self.executed.fetch_add(stats.warp_instructions, Ordering::Relaxed);
                self.state().children.get_or_insert_default().add(&stats);
                None
            }
            Err(LaunchError::TooLong(_, at)) => Some(LaunchError::TooLong(self.options.max_instructions, at)),
            Err(error) => Some(error),
        }
    }

    /// CTAs that there are for now: those of the grid, or one for every entry of the queue.
    fn available(&self) -> u64 {
        match self.launch.queue {
            Some(queue) => Queue::read(self.memory, queue).map_or(0, |q| q.put),
            None => self.launch.ctas(),
        }
    }

    /// Whether the launch goes on; counts instructions of warps that run long.
    fn check(&self, linear: u64, ran: u64, at: impl FnOnce() -> Option<Whereabouts>) -> Option<LaunchError> {
        let total = self.executed.fetch_add(ran, Ordering::Relaxed) + ran;
        if total > self.options.max_instructions {
            return Some(LaunchError::TooLong(self.options.max_instructions, at()));
        }
        let cancelled = self.options.cancel.is_some_and(|c| c.load(Ordering::Relaxed));
        // A lower CTA has failed: what this one does is of no interest.
        (cancelled || linear > self.stop.load(Ordering::Relaxed)).then(|| LaunchError::Cancelled(at()))
    }

    /// Hands over what a CTA that ended wrote, and counts it.
    fn finish(&self, slot: &mut Slot, stats: &mut Stats, error: Option<LaunchError>) {
        stats.ctas += 1;
        for warp in &slot.warps {
            stats.warp_instructions += warp.executed;
            stats.thread_instructions += warp.thread_executed;
        }
        if let Some(progress) = self.options.progress
            && error.is_none()
        {
            progress.fetch_add(1, Ordering::Relaxed);
        }
        if error.is_none() && !self.launch.kernel.uses_printf {
            return;
        }
        let mut state = self.state();
        let linear = slot.linear;
        if let Some(error) = error {
            let lowest = state.error.as_ref().is_none_or(|(n, _)| linear < *n);
            if lowest {
                state.error = Some((linear, error));
                self.stop.fetch_min(linear, Ordering::Relaxed);
            }
        }
        state.output.insert(linear, std::mem::take(&mut slot.cta.output));
        while let Some(text) = {
            let turn = state.turn;
            state.output.remove(&turn)
        } {
            state.turn += 1;
            if let Some(sink) = self.options.output
                && !text.is_empty()
            {
                sink(&text);
            }
        }
    }

    /// One host thread: CTA after CTA, until there are none or all threads have executed so many instructions. Goes on with the
    /// CTA of a slot, and gives back one whose CTA is not done.
    fn worker(&self, mut begun: Option<Slot>, most: u64) -> (Stats, Option<Slot>) {
        let mut stats = self.stats();
        let mut bounds = Env::bounds(self.launch);
        let ctas = self.launch.ctas();
        let mut slot = match begun.take() {
            Some(slot) => slot,
            None => match self.begin(self.slot(), ctas) {
                Some(slot) => slot,
                None => return (stats, None),
            },
        };
        loop {
            let error = match self.pass(&mut slot, &mut bounds, &mut stats.counts, QUANTUM) {
                Pass::More if self.executed.load(Ordering::Relaxed) >= most => return (stats, Some(slot)),
                Pass::More => continue,
                Pass::Done => None,
                Pass::Error(error) => Some(error),
            };
            self.finish(&mut slot, &mut stats, error);
            slot = match self.begin(slot, ctas) {
                Some(slot) if self.executed.load(Ordering::Relaxed) >= most => return (stats, Some(slot)),
                Some(slot) => slot,
                None => return (stats, None),
            };
        }
    }

    /// Starts the next CTA, if there is one.
    fn begin(&self, mut slot: Slot, ctas: u64) -> Option<Slot> {
        let linear = self.next.fetch_add(1, Ordering::Relaxed);
        if linear >= ctas || linear > self.stop.load(Ordering::Relaxed) {
            return None;
        }
        self.start(&mut slot, linear);
        Some(slot)
    }

    fn stats(&self) -> Stats {
        let counts = self.options.count.then(|| vec![0; self.launch.kernel.len() as usize]);
        Stats { counts, ..Stats::default() }
    }

    /// CTAs that an SM has room for.
    fn residents(&self) -> u64 {
        let warps = self.launch.warps();
        let registers = (self.launch.kernel.function.registers.max(1) * 32).next_multiple_of(256) * warps;
        let per_sm = [
            CTAS_PER_SM,
            WARPS_PER_SM / warps,
            REGISTERS_PER_SM / registers,
            SHARED_PER_SM / (self.launch.shared_bytes + 1024),
        ];
        u64::from(per_sm.into_iter().min().unwrap_or(1).max(1)) * u64::from(SMS)
    }

    /// All CTAs on this thread, those that an H200 holds at a time taking turns.
    fn interleaved(&self) -> Stats {
        let mut stats = self.stats();
        let mut bounds = Env::bounds(self.launch);
        let mut slots: Vec<Slot> = Vec::new();
        let residents = self.residents();
        // A queue goes on behind what an earlier launch has done.
        let first = self.launch.queue.and_then(|q| Queue::read(self.memory, q)).map_or(0, |q| q.done);
        let mut next = first;
        let mut done: BTreeSet<u64> = BTreeSet::new();
        loop {
            let ctas = self.available();
            while (slots.len() as u64) < residents && next < ctas {
                let mut slot = self.slot();
                self.start(&mut slot, next);
                slots.push(slot);
                next += 1;
            }
            if slots.is_empty() {
                break;
            }
            let mut n = 0;
            while n < slots.len() {
                let slot = &mut slots[n];
                let error = match self.pass(slot, &mut bounds, &mut stats.counts, TURN) {
                    Pass::More => {
                        n += 1;
                        continue;
                    }
                    Pass::Done => None,
                    Pass::Error(error) => Some(error),
                };
                let mut error = error;
                if let Some(queue) = self.launch.queue.and_then(|q| Queue::read(self.memory, q))
                    && error.is_none()
                {
                    error = self.entry_done(queue, slot.linear, &mut done);
                }
                let failed = error.is_some();
                self.finish(slot, &mut stats, error);
                if failed {
                    return stats;
                }
                if next < ctas {
                    self.start(slot, next);
                    next += 1;
                    n += 1;
                } else {
                    slots.remove(n);
                }
            }
        }
        while let Some(child) = { self.state().tails.pop_front() } {
            if let Some(error) = self.run_child(&child) {
                self.state().error = Some((0, error));
                break;
            }
        }
        stats
    }

    /// An entry of the queue is done: places before the first that is not are free.
    fn entry_done(&self, mut queue: Queue, linear: u64, done: &mut BTreeSet<u64>) -> Option<LaunchError> {
        done.insert(linear);
        let mut first = queue.done;
        while done.remove(&first) {
            first += 1;
        }
        queue.set_done(self.memory, first).err().map(|e| LaunchError::Invalid(e.to_string()))
    }
}

impl Warp {
    /// When nothing in the CTA can run: lets lanes go that wait for others of their warp. The warp is bound.
    pub(crate) fn unblock(&mut self, env: &Env) -> bool {
        !self.is_done() && self.release(env)
    }

    /// Where the warp is, by one of its threads.
    pub(crate) fn whereabouts(&self, cta: &CtaState) -> Option<Whereabouts> {
        let (pc, mask) = match self.pc() {
            Some(pc) => (pc, self.active()),
            None => self.waiting()?,
        };
        let thread = crate::special::thread(cta.block, 32 * self.lanes.warp + mask.trailing_zeros());
        Some(Whereabouts { pc, cta: cta.index, thread })
    }

    /// The fault of a warp that waits for ever.
    pub(crate) fn deadlock(&self, cta: &CtaState) -> Option<Fault> {
        let (pc, mask) = self.waiting()?;
        Some(Fault {
            kind: FaultKind::Deadlock,
            pc,
            cta: cta.index,
            thread: crate::special::thread(cta.block, 32 * self.lanes.warp + mask.trailing_zeros()),
            access: None,
        })
    }
}
