//! Issuing, inside the turns of sub-cores, what goes to the units that they share: as [`Sm::issue`](super::core::Sm)
//! does, for warps that no policy holds. All sub-cores have come to the cycle.

use super::code::{CLASSES, Kind, NO_CONSTANT, NO_LAYOUT, Timing};
use super::constants::numbered;
use super::core::Failure;
use super::counted::counters_of;
use super::fetch::Fetched;
use super::issue::{Offsets, Way, returns};
use super::layouts::Layouts;
use super::load_store::LoadStore;
use super::outgoing::{Outgoing, concerns_others, is_code};
use super::plan::{Planned, Supply};
use super::sub_core::SubCore;
use super::warp::{Ready, State, WarpSlot};
use super::watch::{Accessed, Watch};
use super::work::{Context, CtaSlot};
use crate::ports::{CtaEnd, Request};
use crate::stall::Stall;
use crate::units::Cycle;
use simt::log::Log;
use simt::resident::{Access, Layout, Stepped};
use simt::special::Time;

/// What sub-cores share.
pub(super) struct Shared<'a> {
    pub load_store: &'a mut LoadStore,
    pub access: &'a mut Access,
    /// How lanes of instructions lay in shared memory.
    pub layouts: &'a mut Layouts,
    pub log: &'a mut Log,
    pub out: &'a mut Vec<Request>,
    pub retry: &'a mut Vec<u16>,
    pub failure: &'a mut Option<Failure>,
    pub issued: &'a mut [u64; CLASSES],
    pub clock_mhz: u64,
}

/// How issuing ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// The warp's next instruction is planned, or it asks again after the exchange.
    Planned,
    /// The same, and it has to be put where it waits for its cycle.
    Timed,
    /// The same, and code or constants were asked for: how far the SM may run has to be found again.
    Asked,
    /// Executed; where the warp goes on has to be found out.
    Moved,
    Failed,
}

/// Whether an instruction can issue here.
#[inline(always)]
pub(super) fn is_quick(timing: &Timing) -> bool {
    matches!(
        timing.kind,
        Kind::Load
            | Kind::Store
            | Kind::Special
            | Kind::Constant
            | Kind::Shuffle
            | Kind::Atomic
            | Kind::Reduction
            | Kind::Prefetch
    )
}

/// An instruction that issues: whose, and when.
pub(super) struct Issuing<'a, 'l> {
    pub context: &'a Context<'l>,
    pub timing: &'a Timing,
    /// The warp's slot.
    pub n: u16,
    pub now: u64,
}

impl Shared<'_> {
    /// Something has to change hands before the SM can go on.
    #[inline(always)]
    pub fn concerns_others(&self, outgoing: &Outgoing, ends: &[CtaEnd]) -> bool {
        concerns_others(self.out, outgoing, ends, self.retry, self.log)
    }

    /// Issues the next instruction of a warp, which was chosen; it may have executed, with those before it. By itself, so
    /// that the turns of instructions that have executed keep their registers of the host.
    #[inline(never)]
    pub fn issue<W: Watch>(
        &mut self,
        i: &Issuing<'_, '_>,
        cta: &mut CtaSlot<'_>,
        supply: &mut Supply<'_, W>,
        sub: &mut SubCore,
        warp: &mut WarpSlot,
    ) -> Ended {
        let (timing, now) = (i.timing, i.now);
        self.choose(i, supply, sub, warp);
        let index = usize::from(warp.index);
        let threads = if W::THREADS { cta.resident.active(index).count_ones() } else { 0 };
        let asked = self.out.len();
        if warp.ahead > 0 {
            warp.ahead -= 1;
            let start = self.has_issued(i, supply, sub, warp);
            match timing.kind {
                Kind::Special => self.read_special(i, start, warp),
                Kind::Load | Kind::Store => {
                    let known = |access: &Access| self.load_store.prepare_access(access);
                    cta.resident.touched(index, now, self.access, self.log, known);
                    if self.access.global == 0 {
                        self.load_store.forget_access();
                    }
                    self.send(i, supply, sub, warp);
                }
                _ => {
                    let place = numbered(timing.place, warp.context.into());
                    self.load_constant(i, Offsets::One(place), supply, warp);
                }
            }
        } else if let Some(layout) = self.layouts.get(timing.layout)
            && cta.resident.is_whole(index)
            && cta.resident.step_shared(index, layout)
        {
            let passes = layout.passes;
            supply.watch.execute_one(warp.row(), threads);
            self.has_issued(i, supply, sub, warp);
            self.send_shared(i, timing.kind == Kind::Load, passes, supply, sub, warp);
        } else {
            let ended = self.issue_any(i, threads, cta, supply, sub, warp);
            if ended != Ended::Planned {
                return ended;
            }
            if warp.state == State::Retry {
                return Ended::Planned;
            }
        }
        warp.pc += 1;
        let code = &i.context.code;
        let is_timed = match supply.plan(sub.number, i.n, warp, code, now) {
            Planned::At(_) => true,
            Planned::Waiting => false,
            missing => {
                supply.plan_missing(missing, sub, warp, code, i.n, self.out, now);
                false
            }
        };
        if self.out[asked..].iter().any(is_code) {
            if is_timed {
                sub.wait(warp.bit, warp.since, now);
            }
            return Ended::Asked;
        }
        if is_timed { Ended::Timed } else { Ended::Planned }
    }

    /// Issues a load from shared memory that has been executed, of a warp that was chosen. The next instruction is not
    /// planned.
    #[inline(always)]
    pub fn issue_loaded<W: Watch>(
        &mut self,
        i: &Issuing<'_, '_>,
        supply: &mut Supply<'_, W>,
        sub: &mut SubCore,
        warp: &mut WarpSlot,
    ) {
        self.choose(i, supply, sub, warp);
        warp.ahead -= 1;
        let passes = warp.loaded.take(i.timing.words);
        self.has_issued(i, supply, sub, warp);
        self.send_shared(i, true, passes, supply, sub, warp);
        warp.pc += 1;
    }

    /// The warp is chosen: why not sooner.
    #[inline(always)]
    fn choose<W: Watch>(
        &mut self,
        i: &Issuing<'_, '_>,
        supply: &mut Supply<'_, W>,
        sub: &mut SubCore,
        warp: &mut WarpSlot,
    ) {
        let (timing, now) = (i.timing, i.now);
        supply.watch.catch_up(i.n, warp);
        if now > warp.since {
            let why = sub.why(warp, timing.class, now);
            supply.stalls.row(warp.row() as usize).charge_waiting(why, timing.class.throttle());
            supply.watch.waited(i.n, warp, sub.number, timing.class, (why, [0; 2]), now);
        }
        sub.take(warp.bit, timing.class);
        warp.issued = now;
    }

    /// Notes an instruction that has executed.
    #[inline(always)]
    fn has_issued<W: Watch>(
        &mut self,
        i: &Issuing<'_, '_>,
        supply: &mut Supply<'_, W>,
        sub: &mut SubCore,
        warp: &mut WarpSlot,
    ) -> u64 {
        let (timing, now) = (i.timing, i.now);
        warp.since = now + 1;
        let row = warp.row();
        supply.stalls.charge(row as usize, Stall::Selected, 1);
        self.issued[timing.class as usize] += 1;
        supply.watch.issue(i.n, row, sub.number, timing, now);
        if !timing.is_memory() {
            supply.watch.branch(i.n, row);
        }
        sub.enter(timing.class, now)
    }

    /// Sends a load from or store to shared memory, which has executed, through the banks.
    #[inline(always)]
    fn send_shared<W: Watch>(
        &mut self,
        i: &Issuing<'_, '_>,
        is_load: bool,
        passes: (u32, u32),
        supply: &mut Supply<'_, W>,
        sub: &mut SubCore,
        warp: &mut WarpSlot,
    ) {
        let (timing, now) = (i.timing, i.now);
        let counters = counters_of(supply.counters, supply.launches, warp);
        let (requests, conflicts) = (counters.shared_requests, counters.bank_conflicts);
        let (load_store, out) = (&mut *self.load_store, &mut *self.out);
        let mut way = Way { load_store, access: self.access, out };
        way.send_shared(sub, warp, i.context, (timing, is_load), passes, counters, now);
        if !W::IS_NOBODY {
            let told = Accessed { slot: i.n, pc: warp.row(), bytes: 0, is_store: !returns(timing), now };
            let counted = (counters.shared_requests - requests, counters.bank_conflicts - conflicts);
            supply.watch.accessed_shared(&told, counted);
        }
    }

    /// Executes and sends any other instruction. The warp's next one is not planned.
    #[inline]
    fn issue_any<W: Watch>(
        &mut self,
        i: &Issuing<'_, '_>,
        threads: u32,
        cta: &mut CtaSlot<'_>,
        supply: &mut Supply<'_, W>,
        sub: &mut SubCore,
        warp: &mut WarpSlot,
    ) -> Ended {
        let (timing, now, n) = (i.timing, i.now, i.n);
        let index = usize::from(warp.index);
        let offsets = self.look(cta, index, timing, warp.pc, &i.context.image);
        self.log.token = warp.cta.into();
        let nanoseconds = if timing.reads_timer { now * 1000 / self.clock_mhz } else { 0 };
        let stepped = match cta.resident.step(index, Time { clock: now, nanoseconds }, now, self.log) {
            Ok(Stepped::Later) => {
                self.load_store.forget_access();
                warp.since = now;
                warp.state = State::Retry;
                self.retry.push(n);
                return Ended::Planned;
            }
            Ok(stepped) => stepped,
            Err(fault) => {
                self.load_store.forget_access();
                let (launch, linear) = (cta.context as u32, cta.linear);
                *self.failure = Some(Failure { at: Cycle(now), launch, linear, fault });
                return Ended::Failed;
            }
        };
        supply.watch.execute_one(warp.row(), threads);
        let start = self.has_issued(i, supply, sub, warp);
        if timing.bank_reads != 0 {
            sub.read_banks(now, timing.bank_reads);
        }
        match timing.kind {
            Kind::Special => self.read_special(i, start, warp),
            Kind::Constant => self.load_constant(i, offsets, supply, warp),
            _ => self.send(i, supply, sub, warp),
        }
        if stepped == Stepped::Next { Ended::Planned } else { Ended::Moved }
    }

    /// Sends a memory operation that has executed to the load-store unit.
    #[inline(always)]
    fn send<W: Watch>(
        &mut self,
        i: &Issuing<'_, '_>,
        supply: &mut Supply<'_, W>,
        sub: &mut SubCore,
        warp: &mut WarpSlot,
    ) {
        let (timing, now, n) = (i.timing, i.now, i.n);
        let counters = counters_of(supply.counters, supply.launches, warp);
        let before = supply.watch.before(counters);
        let (load_store, out) = (&mut *self.load_store, &mut *self.out);
        let mut way = Way { load_store, access: self.access, out };
        way.send(sub, warp, n.into(), i.context, timing, counters, now);
        let is_store = !returns(timing);
        let bytes = if W::IS_NOBODY { 0 } else { Accessed::bytes_of(self.access) };
        let told = Accessed { slot: n, pc: warp.row(), bytes, is_store, now };
        supply.watch.accessed(&told, before, counters);
    }

    /// A special register, which was read, gets its cycle.
    #[inline(always)]
    fn read_special(&mut self, i: &Issuing<'_, '_>, start: u64, warp: &mut WarpSlot) {
        let (timing, writes) = (i.timing, i.context.code.writes(i.timing));
        let waits = self.load_store.read_special(Cycle(i.now));
        warp.write(writes, Ready::at(start + waits + u64::from(timing.latency), timing.maker));
    }

    /// Constants, which were loaded, get theirs.
    #[inline]
    fn load_constant<W: Watch>(
        &mut self,
        i: &Issuing<'_, '_>,
        offsets: Offsets,
        supply: &mut Supply<'_, W>,
        warp: &mut WarpSlot,
    ) {
        let (timing, at, offsets) = (i.timing, Cycle(i.now), offsets.list());
        let writes = i.context.code.writes(timing);
        self.load_store.load_constant(at, offsets.len() as u32);
        let owner = warp.owner(i.n.into(), writes, timing.producer).pack();
        let counters = counters_of(supply.counters, supply.launches, warp);
        let ready = match supply.constants.load(at, timing.bank, offsets, owner, self.out, counters) {
            Fetched::At(at) => Ready::at(at.0, timing.maker),
            Fetched::Pending => {
                warp.loads += 1;
                Ready::pending(timing.maker)
            }
        };
        warp.write(writes, ready);
    }

    /// What the instruction will touch, before it executes.
    #[inline(always)]
    fn look(
        &mut self,
        cta: &CtaSlot<'_>,
        index: usize,
        timing: &Timing,
        pc: u32,
        image: &isa::image::Image,
    ) -> Offsets {
        match timing.kind {
            Kind::Special => {}
            Kind::Constant => {
                let launch = cta.context as u32;
                return match timing.place {
                    NO_CONSTANT => Offsets::of(cta, index, &image.code[pc as usize], launch),
                    place => Offsets::One(numbered(place, launch)),
                };
            }
            Kind::Shuffle => {
                // Registers of other lanes: the data path of memory without an address.
                (self.access.mask, self.access.size) = (cta.resident.mask(index), 4);
                (self.access.global, self.access.shared, self.access.local) = (0, 0, 0);
            }
            _ => {
                cta.resident.access(index, self.access);
                self.load_store.prepare_access(self.access);
                if timing.layout != NO_LAYOUT {
                    self.learn(cta, index, timing.layout);
                }
            }
        }
        Offsets::None
    }

    /// Takes over how the lanes of an access to shared memory lie, for the next time.
    #[cold]
    fn learn(&mut self, cta: &CtaSlot<'_>, index: usize, layout: u8) {
        let mut lies = Layout::default();
        if cta.resident.learn(index, &mut lies) {
            lies.passes = self.load_store.passes(self.access);
            self.layouts.put(layout, lies);
        }
    }
}
