//! A CTA in an SM of a timed machine: its warps, executed one instruction at a time.
//!
//! Everything that warps need is bound to them once, so a step is little more than the instruction itself. Stores to
//! global memory and atomics go to the SM's [`Log`] and take effect when SMs exchange; shared and local memory are the
//! CTA's own.

use crate::access;
pub use crate::access::{Access, Where};
use crate::cta::{self, Child, CtaState};
use crate::fault::Fault;
use crate::files::Files;
use crate::lanes::{FULL, Row};
use crate::launch::Launch;
use crate::log::{Answer, Log};
use crate::memory::{Bounds, Memory, MemoryError};
use crate::ops::atomic;
pub use crate::ops::layout::Layout;
use crate::ops::layout::Step;
use crate::runner::Whereabouts;
use crate::special::{Place, Time};
use crate::uop::{Flow, ROW, Uop};
pub use crate::warp::Issuing;
use crate::warp::{self, Env, SLICE, Warp};
use crate::watched::Observer;
use isa::Op;
use serde::{Deserialize, Serialize};
use std::ptr::NonNull;
use std::sync::Arc;

mod sprint;

/// What became of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stepped {
    /// Executed; the same lanes go on with the next instruction.
    Next,
    /// Executed; other lanes or another place come next, or nothing: ask [`Resident::pc`].
    Moved,
    /// Nothing was executed; ask again after the exchange.
    Later,
}

/// A place for CTAs of a launch, and the CTA that is in it.
pub struct Resident<'l> {
    launch: Arc<Launch>,
    memory: &'l Memory,
    // The launch's.
    code: NonNull<[Uop]>,
    warps: Box<[Warp]>,
    // Owned. The lanes of the warps have these pointers too, so they are kept as such.
    cta: NonNull<CtaState>,
    bounds: NonNull<[Bounds]>,
    linear: u64,
    locate: access::Locate,
    step_shared: Step,
}

/// A CTA as it is saved; everything else follows from its launch.
#[derive(Serialize, Deserialize)]
pub struct Saved {
    linear: u64,
    cta: cta::Saved,
    warps: Vec<warp::Saved>,
}

// SAFETY: it owns what its pointers point to, and launch and memory are shared between threads.
unsafe impl Send for Resident<'_> {}

impl Drop for Resident<'_> {
    fn drop(&mut self) {
        // SAFETY: made from boxes by `new`, and freed nowhere else.
        unsafe {
            drop(Box::from_raw(self.cta.as_ptr()));
            drop(Box::from_raw(self.bounds.as_ptr()));
        }
    }
}

/// What slow paths of a warp need, made from a resident's fields.
macro_rules! env {
    ($r:expr, $time:expr) => {
        Env {
            launch: &$r.launch,
            memory: $r.memory,
            // SAFETY: owned by the resident, which is borrowed, and no other reference to them exists.
            bounds: unsafe { $r.bounds.as_mut() },
            // SAFETY: as above.
            cta: unsafe { $r.cta.as_mut() },
            concurrent: false,
            time: $time,
            counts: None,
        }
    };
}

impl<'l> Resident<'l> {
    /// Room for a CTA; empty until [`Resident::start`].
    pub fn new(launch: &Arc<Launch>, memory: &'l Memory) -> Resident<'l> {
        Resident::with_files(launch, memory, &mut Files::default())
    }

    /// The same with register files that are left.
    pub fn with_files(launch: &Arc<Launch>, memory: &'l Memory, files: &mut Files) -> Resident<'l> {
        let cta = CtaState::new(launch.grid, launch.block, launch.shared_bytes, launch.dynamic_shared);
        let mut r = Resident {
            memory,
            code: NonNull::from(&launch.kernel.uops[..]),
            warps: (0..launch.warps()).map(|_| Warp::with_file(files.take(launch))).collect(),
            cta: NonNull::from(Box::leak(Box::new(cta))),
            bounds: NonNull::from(Box::leak(Env::bounds(launch).into_boxed_slice())),
            linear: 0,
            locate: crate::level::locate(launch.kernel.level),
            step_shared: crate::level::step(launch.kernel.level),
            launch: launch.clone(),
        };
        let (cta, bounds) = (r.cta.as_ptr(), r.bounds.cast().as_ptr());
        for warp in &mut r.warps {
            let mut env = env!(r, None);
            warp.bind(&mut env);
            (warp.lanes.cta, warp.lanes.bounds) = (cta, bounds);
            warp.lanes.alone = false;
        }
        r
    }

    /// Gives its register files back; nothing else of it is needed.
    pub fn give_back(mut self, files: &mut Files) {
        for warp in std::mem::take(&mut self.warps) {
            files.put(&self.launch, warp.into_file());
        }
    }

    /// Puts the CTA with this number of the launch in, none of its instructions executed.
    pub fn start(&mut self, linear: u64, place: Place) {
        self.linear = linear;
        // SAFETY: owned, and no other reference exists.
        unsafe { self.cta.as_mut() }.start(self.launch.index(linear), place);
        for (n, warp) in self.warps.iter_mut().enumerate() {
            warp.start(&self.launch, n as u32);
        }
    }

    /// The CTA that is in it, between two instructions. What was logged and not applied is in the SM's [`Log`].
    pub fn save(&self) -> Saved {
        let warps = self.warps.iter().map(|w| w.save(&self.launch)).collect();
        Saved { linear: self.linear, cta: self.cta().save(), warps }
    }

    /// Room for a CTA, with one in it that was saved from a launch of the same kernel and shape; `None` where what was
    /// saved cannot be one.
    pub fn restore(launch: &Arc<Launch>, memory: &'l Memory, saved: Saved) -> Option<Resident<'l>> {
        let mut r = Resident::new(launch, memory);
        if saved.linear >= launch.ctas() || saved.warps.len() != r.warps.len() {
            return None;
        }
        r.linear = saved.linear;
        // SAFETY: owned, and no other reference exists.
        let is_sound = unsafe { r.cta.as_mut() }.restore(saved.cta)
            && r.warps.iter_mut().zip(saved.warps).all(|(w, saved)| w.restore(launch, memory, saved));
        is_sound.then_some(r)
    }

    /// The CTA's number in its launch.
    pub fn linear(&self) -> u64 {
        self.linear
    }

    pub fn cta(&self) -> &CtaState {
        // SAFETY: owned; nothing changes it while the resident is borrowed.
        unsafe { self.cta.as_ref() }
    }

    /// Where its first warp that has not ended is.
    pub fn whereabouts(&self) -> Option<Whereabouts> {
        self.warps.iter().find_map(|warp| warp.whereabouts(self.cta()))
    }

    /// Warps of the CTA.
    pub fn warps(&self) -> usize {
        self.warps.len()
    }

    /// A warp, to look at its registers.
    pub fn warp(&self, w: usize) -> &Warp {
        &self.warps[w]
    }

    /// The place of the warp's next instruction; none if all its lanes wait for other warps, or have ended. A warp that
    /// waits can have one after another warp of the CTA came to a barrier or ended.
    #[inline]
    pub fn pc(&mut self, w: usize) -> Option<u32> {
        let warp = &self.warps[w];
        if warp.lanes.active != 0 { Some(warp.pc) } else { self.next_split(w) }
    }

    fn next_split(&mut self, w: usize) -> Option<u32> {
        let warp = &mut self.warps[w];
        if warp.is_done() {
            return None;
        }
        let mut env = env!(self, None);
        warp.schedule(&mut env).then_some(warp.pc)
    }

    /// Whether all lanes of the warp have ended.
    #[inline]
    pub fn is_done(&self, w: usize) -> bool {
        self.warps[w].is_done()
    }

    /// Whether all warps have ended.
    pub fn finished(&self) -> bool {
        self.warps.iter().all(Warp::is_done)
    }

    /// Lanes of the split that runs next.
    #[inline]
    pub fn active(&self, w: usize) -> u32 {
        self.warps[w].lanes.active
    }

    /// Whether all lanes that have not ended are at one place, and can run.
    #[inline]
    pub fn is_whole(&self, w: usize) -> bool {
        let warp = &self.warps[w];
        warp.lanes.active != 0 && !warp.is_split()
    }

    /// Lanes that have not ended.
    #[inline]
    pub fn live(&self, w: usize) -> u32 {
        self.warps[w].lanes.live
    }

    /// Lanes that will execute the next instruction.
    #[inline]
    pub fn mask(&self, w: usize) -> u32 {
        let warp = &self.warps[w];
        warp.lanes.mask(self.uop(warp))
    }

    /// The launch's code, which nobody changes and which lives as long as the launch.
    #[inline(always)]
    fn code(&self) -> &'l [Uop] {
        // SAFETY: the resident keeps the launch, and hands the slice to nobody who could outlive it.
        unsafe { self.code.as_ref() }
    }

    #[inline(always)]
    fn uop(&self, warp: &Warp) -> &'l Uop {
        debug_assert!((warp.pc as usize) < self.code().len());
        // SAFETY: a warp's place is always one in the code, as in the loop of `Warp::run`.
        unsafe { self.code().get_unchecked(warp.pc as usize) }
    }

    /// A warp will run soon: asks the host's caches for it.
    #[inline]
    pub fn expect(&self, w: usize) {
        if let Some(warp) = self.warps.get(w) {
            warp.expect();
        }
    }

    /// The same, with the warp at hand: for where its lanes wait.
    #[inline]
    pub fn expect_splits(&self, w: usize) {
        if let Some(warp) = self.warps.get(w) {
            warp.expect_splits();
        }
    }

    /// The same for what its next instructions use of its file.
    #[inline]
    pub fn expect_next(&self, w: usize) {
        if let Some(warp) = self.warps.get(w) {
            warp.expect_lines(self.launch.kernel.near.at(warp.pc as usize));
            warp.expect_tape(self.launch.kernel.layout.tape);
        }
    }

    /// The same for a warp that will start here, with what [`Launch::first_lines`] names.
    #[inline]
    pub fn expect_start(&self, w: usize, lines: &[u32]) {
        if let Some(warp) = self.warps.get(w) {
            warp.expect_lines(lines);
        }
    }

    /// Instructions that the CTA's warps executed.
    pub fn executed(&self) -> u64 {
        self.warps.iter().map(|w| w.executed).sum()
    }

    /// The same times the lanes that were there, guards not looked at.
    pub fn thread_executed(&self) -> u64 {
        self.warps.iter().map(|w| w.thread_executed).sum()
    }

    /// Executes the warp's next instruction, in a cycle that is not before that of any earlier step with this log.
    /// Nothing is executed unless [`Resident::pc`] gives a place; ask it after [`Stepped::Moved`].
    ///
    /// Results of global atomics are not in registers before [`Resident::deliver`] put them there.
    #[inline]
    pub fn step(&mut self, w: usize, time: Time, cycle: u64, log: &mut Log) -> Result<Stepped, Box<Fault>> {
        let code = self.code();
        let warp = &mut self.warps[w];
        let pc = warp.pc;
        let active = warp.lanes.active;
        if active == 0 {
            return Ok(Stepped::Later);
        }
        log.now(cycle);
        warp.lanes.log = log;
        debug_assert!((pc as usize) < code.len());
        // SAFETY: a warp's place is always one in the code. The lanes are bound; the log lives while this runs.
        let flow = unsafe {
            let u = code.get_unchecked(pc as usize);
            (u.handler)(&mut warp.lanes, u)
        };
        if flow == Flow::Later {
            return Ok(Stepped::Later);
        }
        warp.executed += 1;
        warp.thread_executed += if active == FULL { 32 } else { u64::from(active.count_ones()) };
        if flow == Flow::Next && !warp.is_split() {
            warp.pc = pc + 1;
            return Ok(Stepped::Next);
        }
        self.settle(w, flow, time)
    }

    /// The same for a load from or store to shared memory by all lanes of a warp that is whole, if they lie as in the
    /// layout; else nothing is executed.
    #[inline]
    pub fn step_shared(&mut self, w: usize, layout: &Layout) -> bool {
        let code = self.code();
        let warp = &mut self.warps[w];
        // Who watches instructions is told by their handlers.
        if warp.lanes.is_observed() {
            return false;
        }
        debug_assert!((warp.pc as usize) < code.len() && !warp.is_split());
        // SAFETY: a warp's place is always one in the code. The lanes are bound, and the host has the kernel's level.
        let stepped =
            unsafe { (self.step_shared)(&mut warp.lanes, code.get_unchecked(warp.pc as usize), layout) };
        if stepped {
            warp.executed += 1;
            warp.thread_executed += 32;
            warp.pc += 1;
        }
        stepped
    }

    /// Takes over how the lanes of the warp's next instruction lie, if it is one that [`Resident::step_shared`] can execute.
    pub fn learn(&self, w: usize, layout: &mut Layout) -> bool {
        let warp = &self.warps[w];
        // SAFETY: the lanes are bound, and the instruction is theirs.
        unsafe { layout.learn(&warp.lanes, self.uop(warp)) }
    }

    /// The same as [`Resident::step`] while no other SM acts: what the whole machine shares can be changed too.
    pub fn step_alone(
        &mut self,
        w: usize,
        time: Time,
        cycle: u64,
        log: &mut Log,
    ) -> Result<Stepped, Box<Fault>> {
        self.warps[w].lanes.alone = true;
        let stepped = self.step(w, time, cycle, log);
        self.warps[w].lanes.alone = false;
        stepped
    }

    /// Executes up to `most` instructions that neither look at a clock nor concern anybody but their warp; how many.
    /// It stops in front of one that does not simply go on with the next.
    #[inline]
    pub fn run(&mut self, w: usize, most: u32) -> u32 {
        let code = self.code();
        let warp = &mut self.warps[w];
        let active = warp.lanes.active;
        if active == 0 {
            return 0;
        }
        let mut ran = 0;
        debug_assert!((warp.pc + most) as usize <= code.len());
        // SAFETY: a warp's place is always one in the code, and an instruction that goes on with the next has one
        // behind it: the last one faults. The lanes are bound.
        unsafe {
            let mut u = code.as_ptr().add(warp.pc as usize);
            while ran < most && ((*u).handler)(&mut warp.lanes, &*u) == Flow::Next {
                u = u.add(1);
                ran += 1;
            }
            access::expect(&warp.lanes, &*u);
        }
        warp.pc += ran;
        warp.executed += u64::from(ran);
        warp.thread_executed += u64::from(ran) * u64::from(active.count_ones());
        ran
    }

    /// Executes a branch, or a meeting of lanes, if all lanes of the split that runs go on together at once: where. Else
    /// nothing is executed, and [`Resident::step`] knows what to do.
    #[inline]
    pub fn branch(&mut self, w: usize) -> Option<u32> {
        let code = self.code();
        let warp = &mut self.warps[w];
        let active = warp.lanes.active;
        // Another split may be due.
        if active == 0 || (warp.is_split() && warp.executed + 1 >= warp.rotate_at) {
            return None;
        }
        debug_assert!((warp.pc as usize) < code.len());
        // SAFETY: a warp's place is always one in the code. The lanes are bound.
        let flow = unsafe {
            let u = code.get_unchecked(warp.pc as usize);
            (u.handler)(&mut warp.lanes, u)
        };
        warp.pc = match flow {
            Flow::Next => warp.pc + 1,
            Flow::Jump => warp.lanes.next,
            Flow::Event | Flow::Fault | Flow::Later => return None,
        };
        if !warp.is_split() {
            warp.rotate_at = warp.executed + 1 + SLICE;
        }
        warp.executed += 1;
        warp.thread_executed += u64::from(active.count_ones());
        Some(warp.pc)
    }

    /// Ends a warp whose next instruction is an exit, if all lanes that it has left take it together. Else nothing is
    /// executed, and [`Resident::step`] knows what to do.
    #[inline]
    pub fn exit(&mut self, w: usize) -> bool {
        let u = self.uop(&self.warps[w]);
        let warp = &mut self.warps[w];
        let active = warp.lanes.active;
        debug_assert!(u.op == Op::Exit);
        if active == 0 || warp.is_split() || warp.lanes.mask(u) != active {
            return false;
        }
        let threads = active.count_ones();
        warp.executed += 1;
        warp.thread_executed += u64::from(threads);
        warp.rotate_at = warp.executed + SLICE;
        warp.pc += 1;
        (warp.lanes.live, warp.lanes.active) = (0, 0);
        // SAFETY: owned, and no other reference exists.
        unsafe { self.cta.as_mut() }.exit(threads);
        true
    }

    /// After an instruction that jumped, or that needs more than its handler does.
    fn settle(&mut self, w: usize, flow: Flow, time: Time) -> Result<Stepped, Box<Fault>> {
        let warp = &mut self.warps[w];
        let mut env = env!(self, Some(time));
        let before = (warp.pc + 1, warp.lanes.active);
        let was_split = warp.is_split();
        match flow {
            Flow::Next => warp.pc += 1,
            Flow::Jump => warp.pc = warp.lanes.next,
            Flow::Event => warp.event(&mut env)?,
            Flow::Fault => return Err(warp.fault(&env)),
            Flow::Later => return Ok(Stepped::Later),
        }
        if !was_split {
            warp.rotate_at = warp.executed + SLICE;
        } else if warp.is_split() && warp.lanes.active != 0 && warp.executed >= warp.rotate_at {
            // Not at multiples: a loop could always be where nobody runs then.
            warp.rotate_at = warp.executed + SLICE;
            warp.rotate(&mut env);
        }
        Ok(if before == (warp.pc, warp.lanes.active) { Stepped::Next } else { Stepped::Moved })
    }

    /// Puts the results of a logged atomic of this CTA into registers. False if the CTA is here no longer.
    pub fn deliver(&mut self, answer: &Answer) -> bool {
        let a = answer.atomic;
        if a.cta != self.cta().index {
            return false;
        }
        let Some(warp) = self.warps.get_mut(a.warp as usize) else { return false };
        // A log that was read from a file can name any row.
        if a.row.saturating_add(atomic::size(a.ty).div_ceil(4) * ROW) > self.launch.kernel.layout.pool {
            return false;
        }
        for o in answer.lanes {
            for k in 0..atomic::size(a.ty).div_ceil(4) {
                // SAFETY: the rows are those of an instruction of this launch, to whose file the lanes are bound.
                unsafe { warp.lanes.set_lane(a.row + k * ROW, o.lane, (o.x >> (32 * k)) as u32) };
            }
        }
        true
    }

    /// When no warp of the CTA can run: lets lanes go that wait for others of their warp. False: that does not help.
    pub fn unblock(&mut self) -> bool {
        let env = env!(self, None);
        self.warps.iter_mut().any(|w| w.unblock(&env))
    }

    /// The fault of a CTA whose warps wait for ever.
    pub fn deadlock(&self) -> Option<Fault> {
        self.warps.iter().find_map(|w| w.deadlock(self.cta()))
    }

    /// Whether warps wait for child tasks.
    pub fn waits_for_children(&self) -> bool {
        self.cta().children > 0 && self.warps.iter().any(Warp::waits_for_children)
    }

    /// A child task has ended; whether it was the last one.
    pub fn child_ended(&mut self) -> bool {
        // SAFETY: owned, and no other reference exists.
        let cta = unsafe { self.cta.as_mut() };
        cta.children = cta.children.saturating_sub(1);
        cta.children == 0
    }

    /// Child tasks that were started since the last call.
    pub fn take_requests(&mut self) -> Vec<Child> {
        // SAFETY: as above.
        std::mem::take(&mut unsafe { self.cta.as_mut() }.requests)
    }

    /// Whether queues were appended to since the last call.
    pub fn take_pushed(&mut self) -> bool {
        // SAFETY: as above.
        std::mem::take(&mut unsafe { self.cta.as_mut() }.pushed)
    }

    // --- other code while it runs -------------------------------------------------------------------------------

    /// The launch has more code now; warps stay where they are.
    pub fn grow(&mut self, launch: &Arc<Launch>) {
        // SAFETY: made from a box, owned, and nobody else has a reference; its warps get the new place below.
        let mut bounds = Vec::from(unsafe { Box::from_raw(self.bounds.as_ptr()) });
        bounds.resize(launch.kernel.hints as usize, Bounds::default());
        self.bounds = NonNull::from(Box::leak(bounds.into_boxed_slice()));
        self.launch = launch.clone();
        self.code = NonNull::from(&self.launch.kernel.uops[..]);
        let (cta, bounds) = (self.cta.as_ptr(), self.bounds.cast().as_ptr());
        for warp in &mut self.warps {
            warp.grow(launch);
            let mut env = env!(self, None);
            warp.bind(&mut env);
            (warp.lanes.cta, warp.lanes.bounds) = (cta, bounds);
        }
    }

    /// Where a warp goes from now on when it leaves barriers, a place for each number of [`crate::launch::Growth::openings`]; empty:
    /// to the instruction behind them.
    pub fn set_entries(&mut self, w: usize, entries: &[u32]) {
        let kernel = &self.launch.kernel;
        let is_inside = entries.iter().all(|&pc| (pc as usize) < kernel.uops.len());
        let own = &mut self.warps[w].entries;
        own.clear();
        if is_inside {
            own.extend_from_slice(entries);
        }
    }

    /// The CTA has just started: its warps begin at this place instead, the block with this number.
    pub fn begin_at(&mut self, block: u32, pc: u32) {
        if (pc as usize) < self.launch.kernel.uops.len() {
            for warp in &mut self.warps {
                warp.pc = pc;
                warp.tell_entry(&self.launch.kernel, block, warp.lanes.active);
            }
        }
    }

    /// Who is told what happens at watched instructions of a warp.
    pub fn observe(&mut self, w: usize, observer: Option<Box<dyn Observer>>) {
        self.warps[w].lanes.observer = observer;
    }

    pub fn observer(&mut self, w: usize) -> Option<&mut (dyn Observer + 'static)> {
        self.warps[w].lanes.observer.as_deref_mut()
    }

    /// The same, to look at, and where the warp goes when it leaves barriers.
    pub fn observed(&self, w: usize) -> (Option<&(dyn Observer + 'static)>, &[u32]) {
        (self.warps[w].lanes.observer.as_deref(), &self.warps[w].entries)
    }

    /// Whether all lanes of a warp that have not ended wait at CTA barriers, or have just left one.
    pub fn is_at_barrier(&self, w: usize) -> bool {
        self.warps[w].is_at_barrier()
    }

    // --- suspended and restored ---------------------------------------------------------------------------------

    /// Lanes that waited for phases of barriers that have ended get what those gave; so it is before a CTA is saved.
    pub fn settle_barriers(&mut self) {
        // SAFETY: owned, and no other reference exists.
        let cta = unsafe { self.cta.as_mut() };
        self.warps.iter_mut().for_each(|w| w.wake(cta));
    }

    /// Bytes of what an SM holds of a warp: the register file, and where its lanes are and what they wait for.
    pub fn warp_state_bytes(&self, w: usize) -> u64 {
        self.warps[w].state_bytes(&self.launch)
    }

    /// Writes what an SM holds of a warp that is suspended to memory.
    pub fn save_warp(&self, w: usize, address: u64, issuing: Issuing) -> Result<(), MemoryError> {
        self.memory.write(address, &self.warps[w].state(&self.launch, issuing))
    }

    /// Bytes of [`Resident::save_shared`].
    pub fn shared_state_bytes(launch: &Launch) -> u64 {
        u64::from(launch.shared_bytes).next_multiple_of(ROW.into()) + CtaState::record_bytes(launch)
    }

    /// The same for what warps share: shared memory and barriers, with what warps that have ended counted.
    pub fn save_shared(&self, address: u64) -> Result<(), MemoryError> {
        let done = self.warps.iter().filter(|w| w.is_done());
        let ended = done.fold((0, 0), |(a, b), w| (a + w.executed, b + w.thread_executed));
        let record = self.cta().record(&self.launch, ended);
        let record = record.ok_or(MemoryError::OutOfBounds(address, CtaState::record_bytes(&self.launch)))?;
        self.memory.write(address, self.cta().shared())?;
        let behind = u64::from(self.launch.shared_bytes).next_multiple_of(ROW.into());
        self.memory.write(address + behind, &record)
    }

    /// Puts a CTA in that was suspended, and takes from memory what its warps share and what they are: number, address and
    /// bytes of each that had not ended. `None` where what is there cannot be one.
    pub fn resume(
        &mut self,
        linear: u64,
        place: Place,
        children: u32,
        shared: u64,
        warps: impl Iterator<Item = (usize, u64, u64)>,
    ) -> Option<Vec<Issuing>> {
        self.start(linear, place);
        let launch = self.launch.clone();
        let memory = self.memory;
        // SAFETY: owned, and no other reference exists.
        let cta = unsafe { self.cta.as_mut() };
        cta.children = children;
        let behind = u64::from(launch.shared_bytes).next_multiple_of(ROW.into());
        let mut record = vec![0; CtaState::record_bytes(&launch) as usize];
        memory
            .read(shared, cta.shared_mut())
            .and_then(|()| memory.read(shared + behind, &mut record))
            .ok()?;
        let ended = cta.set_record(&launch, &record)?;
        self.warps.iter_mut().for_each(|w| w.end(0, 0));
        let mut issuing = Vec::new();
        for (w, address, bytes) in warps {
            let mut state = vec![0; bytes.min(Warp::state_room(&launch)) as usize];
            memory.read(address, &mut state).ok()?;
            issuing.push(self.warps.get_mut(w)?.set_state(&launch, &state)?);
        }
        // What those that have ended executed is counted with the first of them.
        if let Some(first) = self.warps.iter_mut().find(|w| w.is_done()) {
            first.end(ended.0, ended.1);
        }
        Some(issuing)
    }

    /// Rows of local memory of a warp in global memory; none where it has no local memory.
    fn local_rows(&mut self, w: usize, address: u64) -> Result<Option<*mut Row>, MemoryError> {
        let bytes = self.warps[w].lanes.local.all_rows() as u64 * u64::from(ROW);
        if !address.is_multiple_of(ROW.into()) {
            return Err(MemoryError::OutOfBounds(address, bytes));
        }
        let rows = self.memory.host_bytes(address, bytes)?;
        Ok((bytes > 0).then_some(rows.cast()))
    }

    /// Moves a warp's local memory to global memory, where it stays until the CTA ends. Nobody else uses the place.
    pub fn map_local(&mut self, w: usize, address: u64) -> Result<(), MemoryError> {
        if let Some(rows) = self.local_rows(w, address)? {
            // SAFETY: the bytes lie in one allocation, which the driver frees after the launch; rows are plain words.
            unsafe { self.warps[w].lanes.local.map(rows, address) };
        }
        Ok(())
    }

    /// A warp's local memory is what lies there in global memory, where [`Resident::map_local`] put it.
    pub fn attach_local(&mut self, w: usize, address: u64) -> Result<(), MemoryError> {
        if let Some(rows) = self.local_rows(w, address)? {
            // SAFETY: as above.
            unsafe { self.warps[w].lanes.local.attach(rows, address) };
        }
        Ok(())
    }

    /// Copies a warp's local memory to global memory.
    pub fn save_local(&mut self, w: usize, address: u64) -> Result<(), MemoryError> {
        if let Some(rows) = self.local_rows(w, address)? {
            // SAFETY: as above; its own rows are elsewhere, since nobody mapped it.
            unsafe { self.warps[w].lanes.local.copy_to(rows) };
        }
        Ok(())
    }

    /// Takes a copy of what [`Resident::save_local`] wrote.
    pub fn restore_local(&mut self, w: usize, address: u64) -> Result<(), MemoryError> {
        if let Some(rows) = self.local_rows(w, address)? {
            // SAFETY: as above; nobody else uses the place.
            unsafe { self.warps[w].lanes.local.copy_from(rows) };
        }
        Ok(())
    }

    /// What `printf` wrote since the last call.
    pub fn take_output(&mut self) -> Vec<u8> {
        // SAFETY: owned, and no other reference exists.
        std::mem::take(&mut unsafe { self.cta.as_mut() }.output)
    }

    /// What the next instruction of a warp will touch; false if it is none that accesses memory by address.
    #[inline]
    pub fn access(&self, w: usize, out: &mut Access) -> bool {
        let warp = &self.warps[w];
        let u = self.uop(warp);
        let Some((s, size)) = access::kind(u) else { return false };
        (out.size, out.mask) = (size, warp.lanes.mask(u));
        // SAFETY: the lanes are bound, the instruction is theirs, and the host has the kernel's level.
        unsafe { (self.locate)(&warp.lanes, u, s, out) };
        true
    }
}
