//! CTAs of an SM: how they start, meet at barriers, and end.

use super::core::{Failure, Sm};
use super::policy::ThreadType;
use super::sub_core::Bit;
use super::warp::State;
use super::work::{Context, CtaSlot, Work};
use crate::ports::{CtaEnd, CtaStart, Left};
use crate::stall::Stall;
use crate::units::Cycle;
use simt::prefetch::{prefetch, prefetch_all};
use simt::special::Place;

impl Sm {
    /// Slots for warps that nobody has.
    pub(super) fn empty_warps(&self) -> impl Iterator<Item = u16> + '_ {
        (0..self.warps.len() as u16).filter(|&n| self.warps[usize::from(n)].state == State::Empty)
    }

    /// Where a CTA with these slots is, for programs that ask.
    pub(super) fn place(&self, slots: &[u16], context: &Context<'_>) -> Place {
        Place {
            sm: self.id.0.into(),
            sms: self.sms,
            warp_slots: self.spec.warps,
            first_slot: slots.first().copied().unwrap_or(0).into(),
            grid_id: context.grid_id,
        }
    }

    /// Puts a CTA in: its warps take slots and start one after the other.
    pub(super) fn start_cta(&mut self, work: &mut Work<'_>, start: &CtaStart, now: u64) {
        if self.resident_warps == 0 {
            self.load_store.set_split(start.split);
        }
        // What the launches before left in the first-level cache is not theirs.
        let grid_id = work.contexts[start.launch as usize].grid_id;
        if grid_id > self.launched {
            self.launched = grid_id;
            self.load_store.invalidate();
        }
        if start.is_restored {
            return self.begin_restore(work, start, now);
        }
        let contexts = work.contexts.clone();
        let context = start.launch as usize;
        let c = &contexts[context];
        let slot = work.free_slot(context);
        let warps = c.launch.warps();
        let mut slots = std::mem::take(&mut work.ctas[slot].warps);
        slots.clear();
        slots.extend(self.empty_warps().take(warps as usize));
        debug_assert_eq!(slots.len(), warps as usize, "work distribution knows what fits");
        let place = self.place(&slots, c);
        let cta = &mut work.ctas[slot];
        cta.resident.start(start.linear, place);
        cta.linear = start.linear;
        (cta.alive, cta.staying) = (slots.len() as u32, slots.len() as u32);
        (cta.blocked, cta.end, cta.is_used, cta.times) = (0, 0, true, 0);
        cta.phases = cta.resident.cta().ended_phases;
        if self.is_optimizing() {
            self.begin_units(work, slot, now);
        }
        if self.resident_warps == 0 {
            self.active_since = now.max(self.active_until);
        }
        self.resident_warps += slots.len() as u32;
        self.hold(c.group, slots.len() as u32, now);
        let number = self.policies.as_mut().map(|p| p.begin_cta());
        for (index, &n) in slots.iter().enumerate() {
            let n = n as usize;
            let at = now + index as u64 * u64::from(self.spec.warp_start_interval);
            let s = n % self.subs.len();
            let bit = self.bit_for(s, n as u16);
            let warp = &mut self.warps[n];
            warp.start(slot as u16, index as u16, context as u16, c, at);
            (warp.sub_core, warp.bit) = (s as u8, bit);
            // Every warp slot of the machine has its own.
            warp.local_base = c.local_base + c.local_stride * (self.first_slot + n as u64);
            if let (Some(policies), Some(number)) = (&mut self.policies, number) {
                policies.add(s, bit.0.into(), number, ThreadType::Compute);
            }
            warp.pc = work.ctas[slot].resident.pc(index).unwrap_or(0);
            if let Some(watcher) = &mut self.watcher {
                watcher.start((n as u16, warp), start.linear, c.grid_id, at);
            }
            self.plan(work, n, now);
        }
        work.ctas[slot].warps = slots;
        self.sprint(work, slot);
    }

    /// Warps of straight code that have just started execute it at once, one behind the other: what the host needs for that is
    /// near then.
    fn sprint(&mut self, work: &mut Work<'_>, slot: usize) {
        if !self.is_plain() {
            return;
        }
        let cta = &mut work.ctas[slot];
        let code = &work.contexts[cta.context].code;
        for (index, &n) in cta.warps.iter().enumerate() {
            let warp = &mut self.warps[usize::from(n)];
            let Some(end) = code.sprint_from(warp.pc) else { return };
            let threads = cta.resident.active(index);
            let expect = |address| self.load_store.expect_line(address);
            let ran = cta.resident.sprint(index, end, &mut self.track, &mut self.log, expect);
            warp.ahead = ran as u8;
            let recorder = self.watcher.as_mut().and_then(|w| w.recorder.as_mut());
            if ran > 0
                && let Some(recorder) = recorder
            {
                recorder.seen.execute(warp.row(), ran, threads.count_ones());
            }
        }
    }

    /// A bit of a sub-core for its newest warp.
    pub(super) fn bit_for(&mut self, s: usize, slot: u16) -> Bit {
        let sub = &mut self.subs[s];
        if let Some(bit) = sub.add(slot) {
            return bit;
        }
        let mut old = Vec::new();
        sub.pack(|slot, bit| old.push(std::mem::replace(&mut self.warps[usize::from(slot)].bit, bit).0));
        if let Some(policies) = &mut self.policies {
            policies.remap(s, &old);
        }
        sub.add(slot).unwrap_or(Bit(63))
    }

    // --- barriers -----------------------------------------------------------------------------------------------

    /// A warp issued a barrier instruction.
    pub(super) fn arrive(&mut self, work: &mut Work<'_>, n: usize, now: u64) {
        let interval = u64::from(self.spec.barrier_interval);
        let start = self.barrier.serve(Cycle(now), interval).0;
        let release = start + interval + u64::from(self.spec.latency.barrier);
        if let Some(recorder) = self.watcher.as_mut().and_then(|w| w.recorder.as_mut()) {
            recorder.arrive(n as u16);
        }
        if self.is_optimizing() {
            self.arrive_optimizing(work, n, release, now);
        }
        let warp = &mut self.warps[n];
        let cta = &mut work.ctas[warp.cta as usize];
        match cta.resident.pc(warp.index as usize) {
            Some(pc) => {
                // Whoever only arrives does not wait for the others.
                let ended = cta.phases != cta.resident.cta().ended_phases;
                // A GPU's samples show the wait at the instruction behind the barrier: that is the next one to issue.
                let from = if ended { release } else { now + 1 };
                self.warps[n].pc = pc;
                self.charge_until(n, Stall::Barrier, from);
                self.warps[n].issued = from - 1;
                self.plan(work, n, now);
            }
            None => self.block(work, n, now),
        }
        self.release(work, n, release, now);
    }

    /// All lanes of a warp wait for others of the CTA.
    pub(super) fn block(&mut self, work: &mut Work<'_>, n: usize, now: u64) {
        let warp = &mut self.warps[n];
        warp.state = State::Blocked;
        self.subs[warp.sub_core as usize].let_go(warp.bit);
        if let Some(policies) = &mut self.policies {
            policies.rest(warp.sub_core.into(), warp.bit.0.into());
        }
        let slot = warp.cta as usize;
        let cta = &mut work.ctas[slot];
        cta.blocked += 1;
        if cta.blocked < cta.alive || cta.phases != cta.resident.cta().ended_phases {
            return;
        }
        // Nothing in the CTA can run: it waits for its child tasks, or lanes that wait for others of their own warp are let go.
        if cta.resident.waits_for_children() {
            self.waiting_parents.push((cta.context as u32, cta.linear));
        } else if cta.resident.unblock() {
            self.wake_blocked(work, slot, now + 1, now);
        } else if let Some(fault) = cta.resident.deadlock() {
            let (launch, linear) = (cta.context as u32, cta.linear);
            self.failure = Some(Failure { at: Cycle(now), launch, linear, fault: Box::new(fault) });
        }
    }

    /// When a barrier's phase has ended: its warps go on at `at`.
    pub(super) fn release(&mut self, work: &mut Work<'_>, n: usize, at: u64, now: u64) {
        let slot = self.warps[n].cta as usize;
        let cta = &mut work.ctas[slot];
        let phases = cta.resident.cta().ended_phases;
        if cta.phases != phases {
            cta.phases = phases;
            self.wake_blocked(work, slot, at, now);
        }
    }

    /// A child task of a CTA has ended. Whether the CTA is here.
    pub fn child_ended(&mut self, work: &mut Work<'_>, launch: u32, linear: u64, at: Cycle) -> bool {
        let is_it = |c: &CtaSlot<'_>| c.is_used && c.context == launch as usize && c.linear == linear;
        let Some(slot) = work.ctas.iter().position(is_it) else { return false };
        if work.ctas[slot].resident.child_ended() {
            self.wake_blocked(work, slot, at.0, at.0);
            self.look_again(at.0);
            self.wake_at(at.0);
        }
        true
    }

    /// Asks the host's caches for the warps of a CTA that has come to a barrier: they last ran one after the other.
    fn expect_warps(&self, work: &Work<'_>, slot: usize) {
        let cta = &work.ctas[slot];
        let all = || cta.warps.iter().filter_map(|&n| self.warps.get(usize::from(n)));
        for (warp, index) in all().zip(0..) {
            prefetch_all(warp);
            cta.resident.expect(index);
        }
        for (warp, index) in all().zip(0..) {
            prefetch(&warp.places, 0);
            cta.resident.expect_splits(index);
        }
    }

    pub(super) fn wake_blocked(&mut self, work: &mut Work<'_>, slot: usize, at: u64, now: u64) {
        self.touched = true;
        self.expect_warps(work, slot);
        for k in 0..work.ctas[slot].warps.len() {
            let n = work.ctas[slot].warps[k] as usize;
            let warp = &mut self.warps[n];
            if warp.state != State::Blocked || usize::from(warp.cta) != slot {
                continue;
            }
            let cta = &mut work.ctas[slot];
            if let Some(pc) = cta.resident.pc(warp.index as usize) {
                cta.blocked -= 1;
                if let Some(policies) = &mut self.policies {
                    policies.wake(warp.sub_core.into(), warp.bit.0.into());
                }
                self.warps[n].pc = pc;
                self.charge_until(n, Stall::Barrier, at);
                self.warps[n].issued = at - 1;
                self.plan(work, n, now);
            }
        }
    }

    // --- ends ---------------------------------------------------------------------------------------------------

    /// All lanes of a warp have ended.
    pub(super) fn end_warp(&mut self, work: &mut Work<'_>, n: usize, now: u64) {
        let warp = &mut self.warps[n];
        let (s, bit) = (warp.sub_core as usize, warp.bit);
        self.subs[s].remove(bit);
        if let Some(policies) = &mut self.policies {
            policies.remove(s, bit.0.into(), now);
        }
        warp.state = State::Draining;
        work.ctas[warp.cta as usize].alive -= 1;
        if warp.loads == 0 {
            self.leave(work, n, now);
        }
        // Warps that waited for its threads only go on.
        let at = now + u64::from(self.spec.latency.barrier);
        if self.is_optimizing() {
            self.arrive_optimizing(work, n, at, now);
        }
        self.release(work, n, at, now);
    }

    /// A warp that has ended leaves its slot once nothing of it is under way.
    pub(super) fn leave(&mut self, work: &mut Work<'_>, n: usize, now: u64) {
        let warp = &mut self.warps[n];
        let gone = (now + u64::from(self.spec.latency.exit)).max(warp.stores_left).max(warp.since);
        self.charge_until(n, Stall::Drain, gone);
        if let Some(watcher) = &mut self.watcher {
            watcher.leave(n as u16);
        }
        let warp = &mut self.warps[n];
        warp.state = State::Empty;
        self.table.free(n);
        self.resident_warps -= 1;
        self.active_until = self.active_until.max(gone);
        let (group, slot) = (warp.group, usize::from(warp.cta));
        self.let_go(group, 1, gone);
        if self.resident_warps == 0 {
            self.counters.sm_active_cycles += self.active_until - self.active_since;
        }
        let cta = &mut work.ctas[slot];
        cta.end = cta.end.max(gone);
        cta.staying -= 1;
        if cta.staying == 0 {
            self.counters.warp_instructions += cta.resident.executed();
            self.counters.thread_instructions += cta.resident.thread_executed();
            self.counters.ctas += 1;
            let text = cta.resident.take_output();
            if !text.is_empty() {
                self.output.push((cta.context as u32, cta.linear, text));
            }
            cta.is_used = false;
            self.ends.push(CtaEnd {
                at: Cycle(cta.end),
                sm: self.id,
                launch: cta.context as u32,
                linear: cta.linear,
                left: Left::Ended,
                warp_instructions: cta.resident.executed(),
                thread_instructions: cta.resident.thread_executed(),
            });
            if self.is_optimizing() {
                self.end_units(work, slot, now);
            }
        } else if !self.moving.is_empty() {
            self.check_drained(work, slot, now);
        }
    }
}
