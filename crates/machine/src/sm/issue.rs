//! Issuing an instruction: it executes, its results get their cycles, and the warp's next instruction is planned.

use super::code::{Class, Kind, Timing};
use super::constants::numbered;
use super::core::{Failure, Sm};
use super::counted::counters_of;
use super::fetch::Fetched;
use super::load_store::{self, Issued, LoadStore, Operation, Outcome, Path};
use super::sub_core::SubCore;
use super::warp::{NO_LINE, Ready, State, WarpSlot};
use super::watch::{Accessed, Counts, Watch};
use super::work::{Context, CtaSlot, Work};
use crate::counters::Counters;
use crate::ports::Request;
use crate::stall::Stall;
use crate::units::Cycle;
use isa::{Inst, Operand};
use simt::resident::{Access, Stepped};
use simt::special::Time;

impl Sm {
    /// Issues the next instruction of a warp that can.
    pub(super) fn issue(&mut self, work: &mut Work<'_>, s: usize, n: usize, now: u64) {
        let warp = &mut self.warps[n];
        let (pc, index) = (warp.pc, warp.index as usize);
        let cta = &mut work.ctas[warp.cta as usize];
        let context = &work.contexts[cta.context];
        let timing = *context.code.timing_of(pc);
        let sub = &mut self.subs[s];
        if let Some(cell) = self.watcher.as_mut().and_then(|w| w.cell.as_mut()) {
            cell.catch_up(n as u16, warp);
        }
        if now > warp.since {
            let mut row = self.stalls.row(warp.row() as usize);
            let mut why = sub.why(warp, timing.class, now);
            let mut by_policy = [0; 2];
            if let Some(policies) = &mut self.policies {
                let (grant, window) = policies.held(s, warp.bit.0.into(), &mut why[2]);
                row.charge(Stall::Grant, grant);
                row.charge(Stall::Window, window);
                by_policy = [grant, window];
            }
            row.charge_waiting(why, timing.class.throttle());
            if let Some(watcher) = &mut self.watcher {
                watcher.waited(n as u16, warp, s as u32, timing.class, (why, by_policy), now);
            }
        }
        // A load from shared memory may have been executed, and counted, and what reads only what never changes.
        let has_executed = warp.ahead > 0;
        let threads = match self.watcher {
            Some(_) if !has_executed => cta.resident.active(index),
            _ => 0,
        };
        sub.take(warp.bit, timing.class);
        warp.issued = now;
        let passes = (has_executed && timing.loads_shared).then(|| warp.loaded.take(timing.words));
        if has_executed {
            warp.ahead -= 1;
            if timing.is_memory() && passes.is_none() {
                cta.resident.touched(index, now, &mut self.access, &mut self.log, |_| ());
            }
        } else if timing.kind == Kind::Shuffle {
            // Registers of other lanes: the data path of memory without an address.
            let mask = cta.resident.mask(index);
            (self.access.mask, self.access.size) = (mask, 4);
            (self.access.global, self.access.shared, self.access.local) = (0, 0, 0);
        } else if timing.is_memory() {
            cta.resident.access(index, &mut self.access);
        }
        let offsets = match timing.kind {
            Kind::Constant => {
                let launch = u32::from(warp.context);
                Offsets::of(cta, index, &context.image.code[pc as usize], launch)
            }
            _ => Offsets::None,
        };
        self.log.token = warp.cta.into();
        let nanoseconds = if timing.reads_timer { now * 1000 / self.clock_mhz } else { 0 };
        let time = Time { clock: now, nanoseconds };
        let stepped = match has_executed {
            true => Ok(Stepped::Next),
            false => cta.resident.step(index, time, now, &mut self.log),
        };
        let stepped = match stepped {
            Ok(stepped) => stepped,
            Err(fault) => {
                let (launch, linear) = (cta.context as u32, cta.linear);
                self.failure = Some(Failure { at: Cycle(now), launch, linear, fault });
                return;
            }
        };
        warp.since = now + 1;
        if stepped == Stepped::Later {
            warp.since = now;
            warp.state = State::Retry;
            self.retry.push(n as u16);
            return;
        }
        self.stalls.charge(warp.row() as usize, Stall::Selected, 1);
        self.issued_by_class[timing.class as usize] += 1;
        let start = sub.enter(timing.class, now);
        if let Some(policies) = &mut self.policies {
            policies.issued(sub, warp.bit, pc, (timing.class, start), now);
        }
        if let Some(watcher) = &mut self.watcher {
            watcher.issue(n as u16, (warp.row(), threads), s as u32, &timing, now);
        }
        if timing.bank_reads != 0 {
            sub.read_banks(now, timing.bank_reads);
        }
        let writes = context.code.writes(&timing);
        let mut from = now + 1;
        let mut reason = Stall::BranchResolving;
        match timing.kind {
            Kind::Fixed => {
                warp.write_after(writes, &timing, start);
                if stepped == Stepped::Next {
                    warp.pc = pc + 1;
                    return self.plan(work, n, now);
                }
            }
            Kind::Special => {
                let waits = self.load_store.read_special(Cycle(now));
                warp.write(writes, Ready::at(start + waits + u64::from(timing.latency), timing.maker));
            }
            Kind::Branch => {
                let l = &self.spec.latency;
                let lasts = if stepped == Stepped::Next { l.branch_not_taken } else { l.branch };
                from = now + u64::from(lasts.max(1));
                warp.issued = from - 1;
            }
            Kind::Exit => {
                from = now + u64::from(self.spec.latency.branch_not_taken.max(1));
                warp.issued = from - 1;
            }
            Kind::Load | Kind::Store | Kind::Atomic | Kind::Reduction | Kind::Shuffle | Kind::Prefetch => {
                self.access_memory(work, s, n, &timing, passes, now);
                if stepped == Stepped::Next {
                    self.warps[n].pc = pc + 1;
                    return self.plan(work, n, now);
                }
            }
            Kind::Constant => {
                let owner = warp.owner(n, writes, timing.producer);
                let offsets = offsets.list();
                self.load_store.load_constant(Cycle(now), offsets.len() as u32);
                let fetched = self.constants.load(
                    Cycle(now),
                    timing.bank,
                    offsets,
                    owner.pack(),
                    &mut self.out,
                    counters_of(&mut self.counters, &mut self.launches, warp),
                );
                let ready = match fetched {
                    Fetched::At(at) => Ready::at(at.0, timing.maker),
                    Fetched::Pending => {
                        warp.loads += 1;
                        Ready::pending(timing.maker)
                    }
                };
                warp.write(writes, ready);
            }
            Kind::Barrier => {
                warp.write(writes, Ready::at(now + u64::from(timing.latency), timing.maker));
                return self.arrive(work, n, now);
            }
            Kind::Membar => {
                if warp.stores > 0 {
                    warp.pc = pc + 1;
                    warp.state = State::Pending(Stall::Membar);
                    return;
                }
                (from, reason) = (now + u64::from(self.spec.latency.membar.max(1)), Stall::Membar);
            }
            Kind::Invalidate => self.load_store.invalidate(),
            Kind::Sleep => {
                let nanoseconds = u64::from(sleep_time(cta, index, &context.image.code[pc as usize]));
                (from, reason) = (now + 1 + nanoseconds * self.clock_mhz / 1000, Stall::Sleeping);
                if let Some(policies) = &mut self.policies {
                    policies.rest(s, warp.bit.0.into());
                }
            }
            Kind::System => (from, reason) = (now + u64::from(self.spec.latency.system), Stall::Misc),
        }
        if has_executed {
            // Those behind it may have, too.
            self.warps[n].pc = pc + 1;
            return self.plan(work, n, now);
        }
        self.go_on(work, n, from, reason, now);
    }

    /// Plans the warp's next instruction, wherever that is, for `from` at the earliest.
    pub(super) fn go_on(&mut self, work: &mut Work<'_>, n: usize, from: u64, reason: Stall, now: u64) {
        let warp = &mut self.warps[n];
        let cta = &mut work.ctas[warp.cta as usize];
        match cta.resident.pc(warp.index as usize) {
            Some(pc) => {
                if pc != warp.pc + 1 {
                    warp.line = NO_LINE;
                }
                warp.pc = pc;
                self.charge_until(n, reason, from);
                self.plan(work, n, now);
            }
            None if cta.resident.is_done(warp.index as usize) => self.end_warp(work, n, now),
            None => self.block(work, n, now),
        }
    }

    /// Sends a memory operation that has executed to the load-store unit; one to shared memory with its passes, where they are
    /// known.
    #[inline]
    fn access_memory(
        &mut self,
        work: &mut Work<'_>,
        s: usize,
        n: usize,
        timing: &Timing,
        passes: Option<(u32, u32)>,
        now: u64,
    ) {
        let warp = &mut self.warps[n];
        let context = &work.contexts[usize::from(warp.context)];
        let counters = counters_of(&mut self.counters, &mut self.launches, warp);
        let conflicts = counters.bank_conflicts;
        let before = Counts::of(counters);
        let mut way = Way { load_store: &mut self.load_store, access: &self.access, out: &mut self.out };
        match passes {
            Some(passes) => {
                let timing = (timing, timing.kind == Kind::Load);
                way.send_shared(&mut self.subs[s], warp, context, timing, passes, counters, now);
            }
            None => way.send(&mut self.subs[s], warp, n, context, timing, counters, now),
        }
        if let Some(watcher) = &mut self.watcher {
            let bytes = if passes.is_some() { 0 } else { Accessed::bytes_of(&self.access) };
            let told = Accessed { slot: n as u16, pc: warp.row(), bytes, is_store: !returns(timing), now };
            watcher.accessed(&told, before, counters);
        }
        if let Some(policies) = &mut self.policies
            && counters.bank_conflicts > conflicts
        {
            // Every pass after the first is a replay.
            let passes = counters.bank_conflicts - conflicts;
            policies.replay(s, warp.bit.0.into(), now + 1 + passes);
        }
    }
}

/// Whether a memory operation has a result.
#[inline(always)]
pub(super) fn returns(timing: &Timing) -> bool {
    matches!(timing.kind, Kind::Load | Kind::Atomic | Kind::Shuffle)
}

/// The way of memory operations out of a sub-core.
pub(super) struct Way<'a> {
    pub load_store: &'a mut LoadStore,
    pub access: &'a Access,
    pub out: &'a mut Vec<Request>,
}

impl Way<'_> {
    /// Sends an operation of the warp in slot `n`: its results and operands get their cycles.
    #[inline(always)]
    pub fn send(
        &mut self,
        sub: &mut SubCore,
        warp: &mut WarpSlot,
        n: usize,
        context: &Context<'_>,
        timing: &Timing,
        counters: &mut Counters,
        now: u64,
    ) {
        let writes = context.code.writes(timing);
        let returns = returns(timing);
        let results = if returns { &writes[..timing.registers as usize] } else { &[] };
        let operation = Operation {
            kind: match timing.kind {
                Kind::Load => load_store::Kind::Load,
                Kind::Store => load_store::Kind::Store,
                Kind::Atomic => load_store::Kind::Atomic,
                Kind::Reduction => load_store::Kind::Reduction,
                Kind::Shuffle => load_store::Kind::Shuffle,
                _ => load_store::Kind::Prefetch,
            },
            access: self.access,
            cache: timing.cache,
            sub_core: sub.number,
            warp: n as u32,
            owner: warp.owner(n, results, timing.producer).pack(),
            registers: timing.words.into(),
            rounds: timing.rounds.into(),
            local_base: warp.local_base,
            is_remapped: warp.is_remapped,
        };
        let path = operation.path();
        let Issued { operands_read, left, result } =
            self.load_store.issue(Cycle(now), &operation, self.out, counters);
        // What the operation reads must not change before it is read.
        warp.read(context.code.holds(timing), Ready::at(operands_read.0, timing.maker));
        if returns {
            let ready = match result {
                Outcome::At(at) => Ready::at(at.0, timing.maker),
                Outcome::Pending => {
                    warp.loads += 1;
                    Ready::pending(timing.maker)
                }
            };
            warp.write(writes, ready);
            if timing.kind == Kind::Shuffle
                && let Outcome::At(at) = result
            {
                let (_, guards) = writes.split_at(timing.checked as usize);
                let more = u64::from(timing.guard_latency - timing.predicate_latency);
                warp.write(guards, Ready::at(at.0 + more, timing.maker));
            }
        } else {
            warp.stores += u32::from(result == Outcome::Pending);
            warp.stores_left = warp.stores_left.max(operands_read.0).max(left.0);
        }
        let class = if path == Path::Global { Class::Global } else { Class::Shared };
        sub.hold(class, now, self.load_store.room(sub.number, path).0);
    }

    /// Sends a load from or store to shared memory whose passes through the banks are known.
    #[inline(always)]
    pub fn send_shared(
        &mut self,
        sub: &mut SubCore,
        warp: &mut WarpSlot,
        context: &Context<'_>,
        (timing, is_load): (&Timing, bool),
        passes: (u32, u32),
        counters: &mut Counters,
        now: u64,
    ) {
        let (writes, holds) = (context.code.writes(timing), context.code.holds(timing));
        let kind = if is_load { load_store::Kind::Load } else { load_store::Kind::Store };
        let from = (sub.number, u32::from(timing.words));
        let (issued, ready) = self.load_store.issue_shared(Cycle(now), kind, from, passes, counters);
        warp.read(holds, Ready::at(issued.operands_read.0, timing.maker));
        if is_load {
            warp.write(writes, Ready::at(ready.0, timing.maker));
        } else {
            warp.stores_left = warp.stores_left.max(issued.operands_read.0).max(issued.left.0);
        }
        sub.hold(timing.class, now, self.load_store.room(sub.number, Path::Shared).0);
    }
}

/// Places of a constant bank that the lanes of a load read, each once.
pub(super) enum Offsets {
    /// It is no such load.
    None,
    One(u32),
    Many {
        list: [u32; 32],
        len: usize,
    },
}

impl Offsets {
    pub fn of(cta: &CtaSlot<'_>, index: usize, inst: &Inst, launch: u32) -> Offsets {
        let offset = inst.offset() as u32;
        let r = match inst.src[0].operand {
            Operand::Reg(r) if !r.is_zero() => r,
            _ => return Offsets::One(numbered(offset, launch)),
        };
        let (mut list, mut len) = ([0; 32], 0);
        let mut rest = cta.resident.mask(index);
        while rest != 0 {
            let lane = rest.trailing_zeros();
            rest &= rest - 1;
            let place = cta.resident.warp(index).register(r.0, lane).wrapping_add(offset);
            let place = numbered(place, launch);
            if !list[..len].contains(&place) {
                list[len] = place;
                len += 1;
            }
        }
        Offsets::Many { list, len }
    }

    pub fn list(&self) -> &[u32] {
        match self {
            Offsets::None => &[],
            Offsets::One(place) => std::slice::from_ref(place),
            Offsets::Many { list, len } => &list[..*len],
        }
    }
}

/// Nanoseconds that a warp wants to sleep: what its first lane says.
fn sleep_time(cta: &CtaSlot<'_>, index: usize, inst: &Inst) -> u32 {
    match inst.src[1].operand {
        Operand::Imm(n) => n,
        Operand::Reg(r) if !r.is_zero() => {
            let lane = cta.resident.live(index).trailing_zeros() & 31;
            cta.resident.warp(index).register(r.0, lane)
        }
        _ => 0,
    }
}
