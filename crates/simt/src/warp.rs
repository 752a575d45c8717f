//! A warp: its registers, its splits, and the loop that runs it.
//!
//! # Divergence
//! A warp is a list of splits, groups of lanes at one place. One runs, the others are ready or wait:
//! - Where lanes part at a branch, those that do not jump run on and the others become ready. Ready splits at one
//!   place are one split. The one that became ready last runs next; after [`SLICE`] instructions the running one
//!   goes behind all others, so that all make progress.
//! - `BSSY` gives every lane the set of lanes that it will meet again; `BSYNC` waits for the live ones among them. The
//!   set is kept a lane, so paths and callees that use one register do not disturb each other.
//! - Lanes that wait for others of their warp are let go when those run on for long ([`SOFT`] or [`HARD`]
//!   instructions), and when nothing else in the CTA can run. They leave the set then. So a lock that one lane holds
//!   and another waits for is no deadlock.
//! - Shuffles, votes and the like wait until all live members are at the same instruction.
//! - CTA barriers count threads, so splits of a warp may come one after the other.

use crate::aligned::Aligned;
use crate::cta::{Arrival, BARRIERS, CtaState, Reduction};
use crate::fault::{Fault, FaultKind};
use crate::files::Files;
use crate::lanes::{FULL, Lanes, Row};
use crate::launch::Launch;
use crate::local;
use crate::memory::{Bounds, Memory};
use crate::ops::{collective, control};
use crate::program::Kernel;
use crate::special::{self, Time};
use crate::tape::Left;
use crate::uop::{Flow, ROW, Uop};
use crate::watched;
use isa::field::{BarMode, Field};
use isa::{Op, Pc, Special};
use serde::{Deserialize, Serialize};

mod expect;
mod state;
mod tape;

pub use state::Issuing;

/// Instructions that a split runs before another ready one gets its turn.
pub const SLICE: u64 = 1024;
/// Instructions of others after which a soft convergence barrier lets go.
pub const SOFT: u64 = 2048;
/// The same for all others.
pub const HARD: u64 = 1 << 20;

/// Why lanes do not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum State {
    Ready,
    /// At a BSYNC, since this many instructions.
    Converging {
        since: u64,
    },
    /// At an instruction that needs all members.
    Gathering,
    /// At a CTA barrier, for the end of a phase.
    Barrier {
        id: u8,
        phase: u64,
    },
    /// For the CTA's child tasks.
    Children,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Split {
    pc: u32,
    mask: u32,
    state: State,
}

impl Split {
    /// Whether lanes of a warp that has executed so many instructions can be there.
    fn is_sound(&self, code: &[Uop], executed: u64) -> bool {
        // Behind the last instruction there is the guard, which nobody waits at.
        let Some(u) = code.get(self.pc as usize) else { return false };
        let is_last = self.pc as usize + 1 == code.len();
        match self.state {
            State::Ready => true,
            State::Converging { since } => !is_last && u.op == Op::Bsync && since <= executed,
            State::Gathering => !is_last && collective::is_collective(u.op),
            State::Barrier { .. } => !is_last && u.op == Op::Bar,
            State::Children => !is_last && u.op == Op::Syscall,
        }
    }
}

/// Why a warp stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The budget is used up.
    Budget,
    /// All lanes that are left wait for other warps.
    Blocked,
    /// All lanes have ended.
    Done,
    Fault(Box<Fault>),
}

/// What a warp needs while it runs.
pub struct Env<'a> {
    pub launch: &'a Launch,
    pub memory: &'a Memory,
    /// A kernel's memory instructions remember here which allocation they hit; see [`Env::bounds`].
    pub bounds: &'a mut [Bounds],
    pub cta: &'a mut CtaState,
    /// Other host threads run CTAs of this launch now.
    pub concurrent: bool,
    /// Time as the program sees it, when the driver keeps it; else instructions of the warp are cycles.
    pub time: Option<Time>,
    /// Executions of each instruction, when they are wanted.
    pub counts: Option<&'a mut [u64]>,
}

impl Env<'_> {
    /// Bounds for a launch's memory instructions, none known yet.
    pub fn bounds(launch: &Launch) -> Vec<Bounds> {
        vec![Bounds::default(); launch.kernel.hints as usize]
    }
}

/// A warp slot: rows, and the state of the warp that is in it. Thousands of them take turns in the host's caches, so what
/// steps look at lies together.
#[repr(C)]
pub struct Warp {
    pub(crate) pc: u32,
    /// What it did in advance and has not issued, of the tape behind its rows.
    pub(crate) left: Left,
    splits: Vec<Split>,
    /// In a timed machine: the instructions after which another split gets its turn.
    pub(crate) rotate_at: u64,
    /// Instructions executed, by the warp and by its threads.
    pub executed: u64,
    pub thread_executed: u64,
    pub(crate) lanes: Lanes,
    file: Aligned,
    /// Where the code behind each barrier begins, by [`Kernel::openings`]; none where nobody changes it.
    pub(crate) entries: Vec<u32>,
}

const _: () = assert!(std::mem::offset_of!(Warp, lanes) == 64);

/// What a warp slot holds besides what follows from its launch.
#[derive(Serialize, Deserialize)]
pub(crate) struct Saved {
    /// The rows before those of constants.
    #[serde(with = "crate::arrays::bytes")]
    rows: Vec<u8>,
    preds: [u32; 32],
    active: u32,
    live: u32,
    warp: u32,
    local: local::Saved,
    pc: u32,
    splits: Vec<Split>,
    rotate_at: u64,
    executed: u64,
    thread_executed: u64,
    tape: Vec<u64>,
}

// SAFETY: the pointers in `Lanes` are bound anew by every `run`, from references that live as long.
unsafe impl Send for Warp {}

impl Warp {
    /// A slot for warps of this launch.
    pub fn new(launch: &Launch) -> Warp {
        Warp::with_file(Files::default().take(launch))
    }

    /// The same with a file that is there already.
    pub(crate) fn with_file(file: Aligned) -> Warp {
        Warp {
            lanes: Lanes::unbound(),
            file,
            pc: 0,
            splits: Vec::new(),
            rotate_at: 0,
            entries: Vec::new(),
            left: Left::NOTHING,
            executed: 0,
            thread_executed: 0,
        }
    }

    /// The slot is not needed any more, but its file is.
    pub(crate) fn into_file(self) -> Aligned {
        self.file
    }

    /// Puts warp number `warp` of a CTA that begins into the slot.
    pub fn start(&mut self, launch: &Launch, warp: u32) {
        let rows = self.file.as_mut_slice();
        for &at in &launch.kernel.cleared {
            rows[at as usize..(at + ROW) as usize].fill(0);
        }
        let threads = launch.threads().saturating_sub(32 * warp);
        let mask = if threads >= 32 { FULL } else { (1 << threads) - 1 };
        self.lanes.preds = Lanes::clear_preds();
        (self.lanes.active, self.lanes.live) = (mask, mask);
        self.lanes.local.reset(launch.local_bytes);
        self.lanes.warp = warp;
        self.lanes.fault = None;
        self.lanes.forced = false;
        self.pc = launch.kernel.function.start;
        self.splits.clear();
        self.left = Left::NOTHING;
        (self.executed, self.thread_executed, self.rotate_at) = (0, 0, SLICE);
    }

    /// Between two instructions: everything that the warp is.
    pub(crate) fn save(&self, launch: &Launch) -> Saved {
        Saved {
            rows: self.file.as_slice()[..launch.kernel.layout.pool as usize].to_vec(),
            preds: self.lanes.preds,
            active: self.lanes.active,
            live: self.lanes.live,
            warp: self.lanes.warp,
            local: self.lanes.local.save(),
            pc: self.pc,
            splits: self.splits.clone(),
            rotate_at: self.rotate_at,
            executed: self.executed,
            thread_executed: self.thread_executed,
            tape: self.tape_words(launch),
        }
    }

    /// Makes the slot that of a warp that was saved from one of the same launch; false where that cannot be. Nothing of
    /// what is saved is trusted that a handler relies on: places in the code, and rows.
    pub(crate) fn restore(&mut self, launch: &Launch, memory: &Memory, saved: Saved) -> bool {
        let code = &launch.kernel.uops;
        let pool = launch.kernel.layout.pool as usize;
        let fits = saved.rows.len() == pool
            && (saved.pc as usize) < code.len()
            && saved.splits.iter().all(|s| s.is_sound(code, saved.executed))
            && saved.warp < launch.warps();
        let rows = |address: u64, bytes| {
            let rows = memory.host_bytes(address, bytes).ok()?;
            address.is_multiple_of(ROW.into()).then_some(rows.cast::<Row>())
        };
        if !fits || !self.lanes.local.restore(launch.local_bytes, saved.local, rows) {
            return false;
        }
        self.file.as_mut_slice()[..pool].copy_from_slice(&saved.rows);
        let l = &mut self.lanes;
        (l.preds, l.active, l.live, l.warp) = (saved.preds, saved.active, saved.live, saved.warp);
        (l.fault, l.forced) = (None, false);
        (self.pc, self.splits, self.rotate_at) = (saved.pc, saved.splits, saved.rotate_at);
        (self.executed, self.thread_executed) = (saved.executed, saved.thread_executed);
        self.tape(launch).set_words(&saved.tape);
        true
    }

    /// Whether lanes have parted, some of them waiting or ready elsewhere.
    #[inline(always)]
    pub(crate) fn is_split(&self) -> bool {
        !self.splits.is_empty()
    }

    pub fn is_done(&self) -> bool {
        self.lanes.live == 0
    }

    /// Whether lanes wait for child tasks.
    pub fn waits_for_children(&self) -> bool {
        self.splits.iter().any(|s| s.state == State::Children)
    }

    /// Whether all lanes that have not ended wait at CTA barriers.
    pub fn is_at_barrier(&self) -> bool {
        self.lanes.active == 0 && self.splits.iter().all(|s| matches!(s.state, State::Barrier { .. }))
    }

    /// The place of the split that runs next, if one can.
    pub fn pc(&self) -> Option<Pc> {
        (self.lanes.active != 0).then_some(Pc(self.pc))
    }

    /// Lanes that wait, and where.
    pub fn waiting(&self) -> Option<(Pc, u32)> {
        self.splits.first().map(|s| (Pc(s.pc), s.mask))
    }

    /// Lanes of the split that runs next.
    pub fn active(&self) -> u32 {
        self.lanes.active
    }

    /// A register of a lane.
    pub fn register(&self, r: u8, lane: u32) -> u32 {
        let at = usize::from(r) * ROW as usize + 4 * (lane as usize & 31);
        self.file.as_slice().get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }

    /// The lanes whose predicate is true.
    pub fn predicate(&self, p: u8) -> u32 {
        self.lanes.pred(p & 7)
    }

    pub(crate) fn bind(&mut self, env: &mut Env) {
        let l = &mut self.lanes;
        l.file = self.file.as_ptr();
        l.global = env.memory.origin();
        l.bounds = env.bounds.as_mut_ptr();
        l.shared = env.cta.shared_pointer();
        l.shared_bytes = env.cta.shared_bytes;
        l.memory = env.memory;
        l.kernel = &*env.launch.kernel;
        l.banks = &env.launch.banks;
        l.cta = env.cta;
        l.launch = env.launch;
        l.concurrent = env.concurrent;
        debug_assert!(env.bounds.len() >= env.launch.kernel.hints as usize);
    }

    /// Runs until the budget of instructions is used up, the warp waits or ends.
    pub fn run(&mut self, env: &mut Env, budget: u64) -> Stop {
        self.bind(env);
        let mut left = budget;
        loop {
            if self.lanes.active == 0 && !self.schedule(env) {
                return if self.is_done() { Stop::Done } else { Stop::Blocked };
            }
            if left == 0 {
                return Stop::Budget;
            }
            let slice = if self.splits.is_empty() { left } else { left.min(SLICE) };
            let (flow, ran) = self.dispatch(env, slice);
            left -= ran;
            self.executed += ran;
            self.thread_executed += ran * u64::from(self.lanes.active.count_ones());
            match flow {
                Flow::Event => {
                    if let Err(fault) = self.event(env) {
                        return Stop::Fault(fault);
                    }
                }
                Flow::Fault => return Stop::Fault(self.fault(env)),
                // Only where there is a log.
                Flow::Later => return Stop::Budget,
                Flow::Next | Flow::Jump => self.rotate(env),
            }
        }
    }

    /// The inner loop: at most `slice` instructions of the running split.
    #[inline]
    fn dispatch(&mut self, env: &mut Env, slice: u64) -> (Flow, u64) {
        let code = env.launch.kernel.uops.as_slice();
        if let Some(counts) = env.counts.as_deref_mut() {
            return self.dispatch_counted(code, counts, slice);
        }
        let start = code.as_ptr();
        let l = &mut self.lanes;
        let mut left = slice;
        let mut flow = Flow::Next;
        // SAFETY: `pc` is a place in the code: the decoder checked targets, handlers check computed ones, and the
        // instruction behind the last one faults. The lanes are bound.
        unsafe {
            let mut u = start.add(self.pc as usize);
            while left != 0 {
                left -= 1;
                flow = ((*u).handler)(l, &*u);
                match flow {
                    Flow::Next => u = u.add(1),
                    Flow::Jump => u = start.add(l.next as usize),
                    Flow::Event | Flow::Fault | Flow::Later => break,
                }
            }
            self.pc = u.offset_from(start) as u32;
        }
        (flow, slice - left)
    }

    /// The same, counting each instruction.
    #[cold]
    fn dispatch_counted(&mut self, code: &[Uop], counts: &mut [u64], slice: u64) -> (Flow, u64) {
        let mut flow = Flow::Next;
        for n in 1..=slice {
            let u = &code[self.pc as usize];
            if let Some(c) = counts.get_mut(self.pc as usize) {
                *c += 1;
            }
            // SAFETY: the lanes are bound.
            flow = unsafe { (u.handler)(&mut self.lanes, u) };
            match flow {
                Flow::Next => self.pc += 1,
                Flow::Jump => self.pc = self.lanes.next,
                Flow::Event | Flow::Fault | Flow::Later => return (flow, n),
            }
        }
        (flow, slice)
    }

    pub(crate) fn fault(&mut self, env: &Env) -> Box<Fault> {
        let (kind, access) = self.lanes.fault.take().unwrap_or((FaultKind::IllegalInstruction, None));
        let u = &env.launch.kernel.uops[self.pc as usize];
        let lane = access.map_or(self.lanes.mask(u).trailing_zeros() & 31, |a| a.lane);
        Box::new(Fault {
            kind,
            pc: Pc(self.pc),
            cta: env.cta.index,
            thread: special::thread(env.cta.block, 32 * self.lanes.warp + lane),
            access,
        })
    }

    // --- splits -------------------------------------------------------------------------------------------------

    fn park(&mut self, pc: u32, mask: u32, state: State) {
        if mask == 0 {
            return;
        }
        if state == State::Ready
            && let Some(s) = self.splits.iter_mut().find(|s| s.state == State::Ready && s.pc == pc)
        {
            s.mask |= mask;
            return;
        }
        self.splits.push(Split { pc, mask, state });
    }

    fn ready(&mut self, pc: u32, mask: u32) {
        self.park(pc, mask, State::Ready);
    }

    /// Takes the next ready split; false when there is none.
    pub(crate) fn schedule(&mut self, env: &mut Env) -> bool {
        self.wake(env.cta);
        loop {
            if let Some(n) = self.splits.iter().rposition(|s| s.state == State::Ready) {
                let s = self.splits.remove(n);
                (self.pc, self.lanes.active) = (s.pc, s.mask);
                return true;
            }
            let waits_outside =
                self.splits.iter().any(|s| matches!(s.state, State::Barrier { .. } | State::Children));
            if waits_outside || !self.release(env) {
                return false;
            }
            if self.lanes.active != 0 {
                return true;
            }
        }
    }

    /// Gives the barrier's answer to splits whose phase has ended.
    pub(crate) fn wake(&mut self, cta: &mut CtaState) {
        let mut n = 0;
        while n < self.splits.len() {
            let s = self.splits[n];
            if s.state == State::Children && cta.children == 0 {
                self.splits.remove(n);
                self.ready(s.pc + 1, s.mask);
            } else if let State::Barrier { id, phase } = s.state
                && let Some(result) = cta.collect(id.into(), phase, s.mask.count_ones())
            {
                self.splits.remove(n);
                self.deliver(s, result);
                let to = if cfg!(without_optimizer) || self.entries.is_empty() {
                    s.pc + 1
                } else {
                    self.behind(s.pc, s.mask)
                };
                self.ready(to, s.mask);
            } else {
                n += 1;
            }
        }
    }

    /// Where lanes go that leave the barrier at a place.
    #[cold]
    fn behind(&mut self, pc: u32, mask: u32) -> u32 {
        // SAFETY: `kernel` is bound.
        let kernel = unsafe { &*self.lanes.kernel };
        let Ok(n) = kernel.openings.binary_search_by_key(&pc, |o| o.0) else { return pc + 1 };
        let block = kernel.openings[n].1;
        self.tell_entry(kernel, block, mask);
        self.entries.get(block as usize).copied().unwrap_or(pc + 1)
    }

    /// Tells the observer that lanes begin with a block.
    pub(crate) fn tell_entry(&mut self, kernel: &Kernel, block: u32, mask: u32) {
        if let Some(mut observer) = self.lanes.observer.take() {
            observer.enter(block, mask, &watched::registers(&self.lanes, kernel));
            self.lanes.observer = Some(observer);
        }
    }

    /// The launch has more code now: rows for its constants, and everything else as it was.
    pub(crate) fn grow(&mut self, launch: &Launch) {
        let layout = &launch.kernel.layout;
        let mut file = Aligned::zeroed(layout.end as usize);
        let pool = layout.pool as usize;
        file.as_mut_slice()[..pool].copy_from_slice(&self.file.as_slice()[..pool]);
        fill_pool(&mut file, launch);
        self.file = file;
        debug_assert!(self.left == Left::NOTHING, "nobody sprints where code grows");
    }

    fn deliver(&mut self, s: Split, result: Reduction) {
        // SAFETY: `kernel` is bound; the split is at a BAR of it.
        let u = unsafe { &(&(*self.lanes.kernel).uops)[s.pc as usize] };
        let answer = match bar_mode(u) {
            BarMode::RedPopc => {
                // SAFETY: the row exists.
                unsafe { self.lanes.store(u.d, s.mask, &[result.count; 32]) };
                return;
            }
            BarMode::RedAnd => result.all,
            BarMode::RedOr => result.any,
            BarMode::Sync | BarMode::Arrive => return,
        };
        self.lanes.set_pred(u.pd[0], s.mask, if answer { FULL } else { 0 });
    }

    /// The running split goes behind the others; those that waited too long are let go.
    pub(crate) fn rotate(&mut self, env: &mut Env) {
        if self.splits.is_empty() {
            return;
        }
        let now = self.executed;
        let late = |s: &Split, u: &Uop| match s.state {
            State::Converging { since } => now - since > if u.soft { SOFT } else { HARD },
            _ => false,
        };
        while let Some(n) = self.splits.iter().position(|s| late(s, &env.launch.kernel.uops[s.pc as usize])) {
            self.let_go(env, n);
        }
        self.wake(env.cta);
        let running = Split { pc: self.pc, mask: self.lanes.active, state: State::Ready };
        match self.splits.iter_mut().find(|s| s.state == State::Ready && s.pc == self.pc) {
            Some(s) => s.mask |= running.mask,
            None => self.splits.insert(0, running),
        }
        self.lanes.active = 0;
    }

    /// Lanes at a BSYNC go on without the others, and are no longer waited for.
    fn let_go(&mut self, env: &Env, n: usize) {
        let s = self.splits.remove(n);
        let u = &env.launch.kernel.uops[s.pc as usize];
        for lane in 0..32 {
            // SAFETY: the row exists.
            unsafe {
                let b = self.lanes.lane(u.a, lane);
                self.lanes.set_lane(u.a, lane, b & !s.mask);
            }
        }
        self.ready(s.pc + 1, s.mask);
        self.settle(env);
    }

    /// When nothing can run: collectives run with the lanes that came, else the longest waiting lanes go on.
    pub(crate) fn release(&mut self, env: &Env) -> bool {
        if let Some(n) = self.splits.iter().position(|s| s.state == State::Gathering) {
            let pc = self.splits[n].pc;
            let here = |s: &Split| s.state == State::Gathering && s.pc == pc;
            let mask = self.splits.iter().filter(|s| here(s)).fold(0, |m, s| m | s.mask);
            self.splits.retain(|s| !here(s));
            (self.pc, self.lanes.active) = (pc, mask);
            self.lanes.forced = true;
            let u = &env.launch.kernel.uops[pc as usize];
            // SAFETY: the lanes are bound; a collective that is forced neither waits nor faults.
            unsafe { (u.handler)(&mut self.lanes, u) };
            self.lanes.forced = false;
            self.pc += 1;
            return true;
        }
        match self.splits.iter().position(|s| matches!(s.state, State::Converging { .. })) {
            Some(n) => {
                self.let_go(env, n);
                true
            }
            None => false,
        }
    }

    /// Lanes that wait for each other and are complete become ready.
    fn settle(&mut self, env: &Env) {
        let code = &env.launch.kernel.uops;
        let mut n = 0;
        while n < self.splits.len() {
            let s = self.splits[n];
            let gathering = s.state == State::Gathering;
            let converging = matches!(s.state, State::Converging { .. });
            if !gathering && !converging {
                n += 1;
                continue;
            }
            let u = &code[s.pc as usize];
            let same = |o: &Split| {
                o.pc == s.pc && std::mem::discriminant(&o.state) == std::mem::discriminant(&s.state)
            };
            // Everyone whom these lanes name, and whom those name in turn.
            let mut set = s.mask;
            let need = loop {
                // SAFETY: the rows exist.
                let need = unsafe {
                    if gathering { collective::members(&self.lanes, u, set) } else { self.partners(u, set) }
                };
                let more =
                    self.splits.iter().filter(|o| same(o) && o.mask & need != 0).fold(set, |m, o| m | o.mask);
                if more == set {
                    break need;
                }
                set = more;
            };
            if need & !set != 0 {
                n += 1;
                continue;
            }
            self.splits.retain(|o| !(same(o) && o.mask & set != 0));
            self.ready(if gathering { s.pc } else { s.pc + 1 }, set);
            n = 0;
        }
    }

    /// Live lanes that these lanes' convergence register names.
    fn partners(&self, u: &Uop, mask: u32) -> u32 {
        // SAFETY: the row exists, and nobody writes it meanwhile.
        control::of_lanes(unsafe { &*self.lanes.row(u.a) }, mask) & self.lanes.live
    }

    // --- events -------------------------------------------------------------------------------------------------

    /// Deals with an instruction that its handler left to the warp.
    pub(crate) fn event(&mut self, env: &mut Env) -> Result<(), Box<Fault>> {
        let launch = env.launch;
        let u = &launch.kernel.uops[self.pc as usize];
        let pc = self.pc;
        let m = self.lanes.mask(u);
        let rest = self.lanes.active & !m;
        match u.op {
            Op::Bra | Op::Call => {
                if u.op == Op::Call {
                    // SAFETY: the row exists.
                    unsafe { self.lanes.store(u.d, m, &[pc + 1; 32]) };
                }
                if self.lanes.is_observed()
                    && let Some(observer) = &mut self.lanes.observer
                {
                    observer.branch(pc, m | rest, m);
                }
                self.ready(u.imm as u32, m);
                (self.pc, self.lanes.active) = (pc + 1, rest);
            }
            Op::Brx | Op::Callx | Op::Ret => return self.scatter(env, u, m, rest),
            Op::Exit => {
                self.lanes.live &= !m;
                self.lanes.active = rest;
                self.pc += 1;
                env.cta.exit(m.count_ones());
                self.settle(env);
            }
            Op::Bsync => {
                let state = State::Converging { since: self.executed };
                self.leave(rest);
                self.park(pc, m, state);
                self.settle(env);
            }
            Op::Bar => {
                self.leave(rest);
                return self.barrier(env, u, pc, m);
            }
            // The only one of its functions that waits.
            Op::Syscall => {
                self.leave(rest);
                self.park(pc, m, State::Children);
            }
            Op::S2r | Op::Cs2r | Op::S2ur => {
                self.read_time(env, u, m);
                self.pc += 1;
            }
            op if collective::is_collective(op) => {
                self.leave(rest);
                self.park(pc, m, State::Gathering);
                self.settle(env);
            }
            // YIELD and NANOSLEEP: others first.
            _ => {
                self.pc += 1;
                self.rotate(env);
            }
        }
        Ok(())
    }

    /// The lanes that do not take part go on behind the instruction; nobody runs now.
    fn leave(&mut self, rest: u32) {
        self.ready(self.pc + 1, rest);
        self.lanes.active = 0;
    }

    /// Lanes jump to places of their own: a split each place, the lowest lane's last and so first to run.
    fn scatter(&mut self, env: &Env, u: &Uop, m: u32, rest: u32) -> Result<(), Box<Fault>> {
        let pc = self.pc;
        self.leave(rest);
        let mut groups: Vec<(u32, u32)> = Vec::new();
        for lane in (0..32).filter(|i| m >> i & 1 != 0) {
            // SAFETY: the row exists.
            let to = unsafe { self.lanes.lane(u.a, lane) };
            match groups.iter_mut().find(|g| g.0 == to) {
                Some(g) => g.1 |= 1 << lane,
                None => groups.push((to, 1 << lane)),
            }
        }
        for &(to, mask) in groups.iter().rev() {
            if to >= env.launch.kernel.places(u.op) {
                (self.pc, self.lanes.active) = (pc, mask);
                self.lanes.fault = Some((FaultKind::IllegalJump(to), None));
                return Err(self.fault(env));
            }
            if u.op == Op::Callx {
                // SAFETY: the row exists.
                unsafe { self.lanes.store(u.d, mask, &[pc + 1; 32]) };
            }
            self.ready(to, mask);
        }
        Ok(())
    }

    fn barrier(&mut self, env: &mut Env, u: &Uop, pc: u32, m: u32) -> Result<(), Box<Fault>> {
        let mode = bar_mode(u);
        let mut rest = m;
        while rest != 0 {
            let lane = rest.trailing_zeros();
            // SAFETY: the rows exist.
            let of = |lane| unsafe { (self.lanes.lane(u.a, lane), self.lanes.lane(u.c, lane)) };
            let (id, count) = of(lane);
            let lanes =
                (0..32).filter(|&i| rest >> i & 1 != 0 && of(i) == (id, count)).fold(0, |m, i| m | 1 << i);
            rest &= !lanes;
            let expected = (u.aux & BAR_COUNT != 0).then_some(count);
            if id as usize >= BARRIERS || expected.is_some_and(|n| n == 0 || n % 32 != 0) {
                (self.pc, self.lanes.active) = (pc, lanes);
                self.lanes.fault = Some((FaultKind::IllegalBarrier, None));
                return Err(self.fault(env));
            }
            let (warp, live, yes) = (self.lanes.warp, self.lanes.live, self.lanes.pred(u.ps[0]));
            let phase = env.cta.arrive(id as usize, Arrival { warp, lanes, live, yes, expected, mode });
            if mode == BarMode::Arrive {
                self.ready(pc + 1, lanes);
            } else {
                self.park(pc, lanes, State::Barrier { id: id as u8, phase });
            }
        }
        Ok(())
    }

    fn read_time(&mut self, env: &Env, u: &Uop, m: u32) {
        let time = env.time.unwrap_or(Time { clock: self.executed, nanoseconds: self.executed });
        let l = &mut self.lanes;
        let low = [special::volatile(time, u.aux); 32];
        // SAFETY: the rows exist; a uniform register is a row of equal lanes.
        unsafe {
            match u.op {
                Op::S2ur => l.store(u.d, FULL, &low),
                Op::Cs2r => {
                    l.store(u.d, m, &low);
                    l.store(u.d + ROW, m, &[special::volatile(time, u.aux + 1); 32]);
                }
                _ => l.store(u.d, m, &low),
            }
        }
        debug_assert!(Special::from_bits(u.aux).is_some());
    }
}

/// Puts constants into their rows.
pub(crate) fn fill_pool(file: &mut Aligned, launch: &Launch) {
    let layout = &launch.kernel.layout;
    let rows = &mut file.as_mut_slice()[layout.pool as usize..layout.tape as usize];
    for (row, value) in rows.chunks_exact_mut(ROW as usize).zip(&launch.pool) {
        for lane in row.chunks_exact_mut(4) {
            lane.copy_from_slice(&value.to_le_bytes());
        }
    }
}

/// `aux` of a BAR: the mode, and whether it has a count.
const BAR_COUNT: u32 = 8;

pub(crate) fn bar_aux(i: &isa::Inst) -> u32 {
    i.field(Field::BarMode) | if i.flag(Field::WithCount) { BAR_COUNT } else { 0 }
}

fn bar_mode(u: &Uop) -> BarMode {
    <BarMode as isa::field::FieldValue>::from_bits(u.aux & 7)
}
