//! Issuing, inside a sub-core's stretch, what goes to the units that sub-cores share: as [`Sm::issue`](super::core::Sm)
//! does, for whole warps that nobody watches and no policy holds. All sub-cores have come to the cycle.

use super::code::{Kind, Timing};
use super::core::Failure;
use super::counted::counters_of;
use super::fetch::Fetched;
use super::issue::{Offsets, Way};
use super::load_store::LoadStore;
use super::outgoing::is_code;
use super::plan::Supply;
use super::sub_core::SubCore;
use super::warp::{Ready, State, WarpSlot};
use super::watch::Watch;
use super::work::{CtaSlot, Work};
use crate::ports::Request;
use crate::stall::Stall;
use crate::units::Cycle;
use simt::log::Log;
use simt::resident::{Access, Stepped};
use simt::special::Time;

/// What sub-cores share.
pub(super) struct Shared<'a> {
    pub load_store: &'a mut LoadStore,
    pub access: &'a mut Access,
    pub log: &'a mut Log,
    pub out: &'a mut Vec<Request>,
    pub retry: &'a mut Vec<u16>,
    pub failure: &'a mut Option<Failure>,
    pub issued: &'a mut u64,
    pub clock_mhz: u64,
}

/// How issuing ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// The warp's next instruction is planned, or it asks again after the exchange.
    Planned,
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

impl Shared<'_> {
    /// Issues the next instruction of the warp in slot `n`, which was chosen.
    #[inline]
    pub fn issue<W: Watch>(
        &mut self,
        work: &mut Work<'_>,
        supply: &mut Supply<'_, W>,
        sub: &mut SubCore,
        warp: &mut WarpSlot,
        n: u16,
        now: u64,
    ) -> Ended {
        let (pc, index) = (warp.pc, usize::from(warp.index));
        let context = &work.contexts[usize::from(warp.context)];
        let cta = &mut work.ctas[usize::from(warp.cta)];
        let timing = context.code.timing_of(pc);
        let mut row = supply.stalls.row(warp.row() as usize);
        if now > warp.since {
            row.charge_waiting(sub.why(warp, timing.class, now), timing.class.throttle());
        }
        sub.take(warp.bit, timing.class);
        warp.issued = now;
        let offsets = self.look(cta, index, timing, pc, &context.image);
        self.log.token = warp.cta.into();
        let nanoseconds = if timing.reads_time { now * 1000 / self.clock_mhz } else { 0 };
        let stepped = match cta.resident.step(index, Time { clock: now, nanoseconds }, now, self.log) {
            Ok(Stepped::Later) => {
                warp.since = now;
                warp.state = State::Retry;
                self.retry.push(n);
                return Ended::Planned;
            }
            Ok(stepped) => stepped,
            Err(fault) => {
                let (launch, linear) = (cta.context as u32, cta.linear);
                *self.failure = Some(Failure { at: Cycle(now), launch, linear, fault });
                return Ended::Failed;
            }
        };
        warp.since = now + 1;
        row.charge(Stall::Selected, 1);
        *self.issued += 1;
        let start = sub.enter(timing.class, now);
        if timing.bank_reads != 0 {
            sub.read_banks(now, timing.bank_reads);
        }
        let (writes, _) = context.code.places(timing);
        let asked = self.out.len();
        match timing.kind {
            Kind::Special => {
                let waits = self.load_store.read_special(Cycle(now));
                warp.write(writes, Ready::at(start + waits + u64::from(timing.latency), timing.producer));
            }
            Kind::Constant => {
                let offsets = offsets.as_ref().map_or(&[][..], Offsets::list);
                self.load_store.load_constant(Cycle(now), offsets.len() as u32);
                let owner = warp.owner(n.into(), writes, timing.producer).pack();
                let (at, bank) = (Cycle(now), timing.bank);
                let counters = counters_of(supply.counters, supply.launches, warp);
                let ready = match supply.constants.load(at, bank, offsets, owner, self.out, counters) {
                    Fetched::At(at) => Ready::at(at.0, timing.producer),
                    Fetched::Pending => {
                        warp.loads += 1;
                        Ready::pending(timing.producer)
                    }
                };
                warp.write(writes, ready);
            }
            _ => {
                let (load_store, out) = (&mut *self.load_store, &mut *self.out);
                let mut way = Way { load_store, access: self.access, out };
                let counters = counters_of(supply.counters, supply.launches, warp);
                way.send(sub, warp, n.into(), context, timing, counters, now);
            }
        }
        if stepped != Stepped::Next {
            return Ended::Moved;
        }
        warp.pc = pc + 1;
        supply.plan_all(sub, warp, &context.code, n, self.out, now);
        if self.out[asked..].iter().any(is_code) { Ended::Asked } else { Ended::Planned }
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
    ) -> Option<Offsets> {
        match timing.kind {
            Kind::Special => {}
            Kind::Constant => {
                let launch = cta.context as u32;
                return Some(Offsets::of(cta, index, &image.code[pc as usize], launch));
            }
            Kind::Shuffle => {
                // Registers of other lanes: the data path of memory without an address.
                (self.access.mask, self.access.size) = (cta.resident.mask(index), 4);
                (self.access.global, self.access.shared, self.access.local) = (0, 0, 0);
            }
            _ => {
                cta.resident.access(index, self.access);
                self.load_store.prepare_access(self.access);
            }
        }
        None
    }
}
