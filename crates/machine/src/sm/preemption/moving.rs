//! The stages of a CTA that leaves or comes back.

use super::traffic::{LINE, LINES, Piece, Side, Traffic};
use super::{Moved, Order, Row, Saved, SavedWarp, layout};
use crate::ports::{CtaEnd, CtaStart, Left};
use crate::sm::code::Class;
use crate::sm::core::{Failure, Sm};
use crate::sm::load_store::{self, Operation, Outcome, Path};
use crate::sm::policy::ThreadType;
use crate::sm::warp::{Loaded, Owner, State};
use crate::sm::work::{CtaSlot, Work};
use crate::stall::Stall;
use crate::units::Cycle;
use isa::field::Cache;
use serde::{Deserialize, Serialize};
use simt::resident::{Access, Issuing, Where};
use simt::{Fault, FaultKind};
use std::collections::VecDeque;

/// Cycles after which an order is looked at again whose CTA is still coming.
const AGAIN: u64 = 32;

/// A CTA on its way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::sm) struct Moving {
    /// What its accesses are known by.
    id: u16,
    /// The CTA slot.
    slot: u16,
    is_restored: bool,
    order: Order,
    /// Warps that wait at a barrier or for child tasks, by slot.
    blocked: Vec<u16>,
    from: u64,
    /// When nothing of the CTA was under way any more, once that is so.
    drained: Option<u64>,
    traffic: Traffic,
    next: usize,
    /// Pieces whose load is done, and when: what they brought can be stored.
    loaded: VecDeque<(u64, u32)>,
    /// Accesses under way.
    pending: u32,
    /// When the last one was done, and when the next can go.
    last: u64,
    at: u64,
}

impl Moving {
    fn is_done(&self) -> bool {
        self.drained.is_some()
            && self.next == self.traffic.pieces.len()
            && self.loaded.is_empty()
            && self.pending == 0
    }

    /// Whether it can be one of these CTAs that moves.
    pub(in crate::sm) fn is_sound(&self, work: &Work<'_>) -> bool {
        let pieces = self.traffic.pieces.len();
        work.ctas.get(usize::from(self.slot)).is_some_and(|c| c.is_used)
            && self.next <= pieces
            && self.loaded.iter().all(|&(_, piece)| (piece as usize) < pieces)
    }

    /// When there is something to do.
    fn due(&self) -> u64 {
        if self.drained.is_none() {
            return u64::MAX;
        }
        if self.is_done() {
            return self.last;
        }
        let loaded = self.loaded.front().map_or(u64::MAX, |&(at, _)| at);
        if self.next < self.traffic.pieces.len() { self.at } else { loaded.max(self.at) }
    }

    fn owner(&self, piece: u32) -> u64 {
        Owner::state(self.id, piece).pack()
    }
}

impl Sm {
    /// A CTA is to leave.
    pub fn suspend(&mut self, order: Order) {
        let n = self.orders.partition_point(|o| o.suspend.at <= order.suspend.at);
        self.orders.insert(n, order);
        self.plan_state(0);
    }

    /// Sets when the next thing happens here.
    pub(in crate::sm) fn plan_state(&mut self, now: u64) {
        let orders = self.orders.front().map_or(u64::MAX, |o| o.suspend.at.0);
        let moving = self.moving.iter().map(Moving::due).min().unwrap_or(u64::MAX);
        self.state_at = orders.min(moving).max(now);
        if self.state_at != u64::MAX {
            self.wake_at(self.state_at);
        }
    }

    /// Something happens here at `now`.
    pub(in crate::sm) fn move_state(&mut self, work: &mut Work<'_>, now: u64) {
        while let Some(order) = self.orders.front().copied().filter(|o| o.suspend.at.0 <= now) {
            self.orders.pop_front();
            self.begin_suspend(work, order, now);
        }
        for k in 0..self.moving.len() {
            while self.moving[k].due() <= now && !self.moving[k].is_done() {
                if !self.issue_piece(k, now) {
                    break;
                }
            }
        }
        while let Some(k) = self.moving.iter().position(|m| m.is_done() && m.last <= now) {
            let moving = self.moving.remove(k);
            if moving.is_restored {
                self.finish_restore(work, &moving, now);
            } else {
                self.finish_suspend(work, &moving, now);
            }
        }
        self.plan_state(now + 1);
    }

    // --- out ----------------------------------------------------------------------------------------------------

    /// The CTA stops issuing.
    fn begin_suspend(&mut self, work: &mut Work<'_>, order: Order, now: u64) {
        let (launch, linear) = (order.suspend.launch as usize, order.suspend.linear);
        let is_it = |c: &CtaSlot<'_>| c.is_used && c.context == launch && c.linear == linear;
        // One that has ended is gone by itself.
        let Some(slot) = work.ctas.iter().position(is_it) else { return };
        if let Some(moving) = self.moving.iter().find(|m| usize::from(m.slot) == slot) {
            if moving.is_restored {
                let mut later = order;
                later.suspend.at = Cycle(now + AGAIN);
                let n = self.orders.partition_point(|o| o.suspend.at <= later.suspend.at);
                self.orders.insert(n, later);
            }
            return;
        }
        let mut blocked = Vec::new();
        let mut any = false;
        for k in 0..work.ctas[slot].warps.len() {
            let n = usize::from(work.ctas[slot].warps[k]);
            let warp = &self.warps[n];
            if usize::from(warp.cta) != slot || matches!(warp.state, State::Empty | State::Draining) {
                continue;
            }
            any = true;
            let (s, bit) = (usize::from(warp.sub_core), warp.bit);
            if warp.state == State::Blocked {
                blocked.push(n as u16);
            }
            let reason = match warp.state {
                State::Pending(reason) => reason,
                State::Blocked => Stall::Barrier,
                _ => Stall::NotSelected,
            };
            self.charge_until(n, reason, now);
            let sub = &mut self.subs[s];
            sub.unplanned = sub.unplanned.filter(|&u| usize::from(u) != n);
            sub.forget(bit);
            sub.remove(bit);
            if let Some(policies) = &mut self.policies {
                policies.remove(s, bit.0.into(), now);
            }
            self.warps[n].state = State::Moving;
        }
        if !any {
            return;
        }
        self.touched = true;
        work.ctas[slot].times += 1;
        self.movings = self.movings.wrapping_add(1);
        self.moving.push(Moving {
            id: self.movings,
            slot: slot as u16,
            is_restored: false,
            order,
            blocked,
            from: now,
            drained: None,
            traffic: Traffic::default(),
            next: 0,
            loaded: VecDeque::new(),
            pending: 0,
            last: now,
            at: now,
        });
        self.check_drained(work, slot, now);
    }

    /// Whether nothing of a CTA that leaves is under way any more: then its state moves.
    pub(in crate::sm) fn check_drained(&mut self, work: &mut Work<'_>, slot: usize, now: u64) {
        let is_it = |m: &Moving| usize::from(m.slot) == slot && !m.is_restored && m.drained.is_none();
        let Some(k) = self.moving.iter().position(is_it) else { return };
        let mut drained = now;
        for &n in &work.ctas[slot].warps {
            let warp = &self.warps[usize::from(n)];
            if usize::from(warp.cta) != slot || warp.state == State::Empty {
                continue;
            }
            if warp.state == State::Draining || warp.loads > 0 || warp.stores > 0 {
                return;
            }
            drained = drained.max(warp.known_until()).max(warp.stores_left);
        }
        // Whoever waits for nothing any more does not go on waiting elsewhere.
        work.ctas[slot].resident.settle_barriers();
        let (traffic, allocations) = self.outward(work, slot, &self.moving[k].order);
        let moving = &mut self.moving[k];
        moving.drained = Some(drained);
        moving.traffic = traffic;
        // Room for local memory is found warp by warp.
        moving.at = drained + allocations * u64::from(self.spec.preemption.allocate_cycles);
        moving.last = moving.at;
        self.plan_state(now);
    }

    /// What moves when a CTA leaves, and for how many warps room has to be found first.
    fn outward(&self, work: &Work<'_>, slot: usize, order: &Order) -> (Traffic, u64) {
        let cta = &work.ctas[slot];
        let context = &work.contexts[cta.context];
        let layout = layout(&context.launch);
        let (area, mut traffic, mut allocations) = (&order.area, Traffic::default(), 0);
        traffic.state(layout.shared_bytes, area.state, false);
        for &n in &cta.warps {
            let warp = &self.warps[usize::from(n)];
            if usize::from(warp.cta) != slot || warp.state != State::Moving {
                continue;
            }
            let index = u64::from(warp.index);
            let bytes = cta.resident.warp_state_bytes(warp.index.into());
            traffic.state(bytes, layout.warp(area, index), false);
            let is_remapped = self.table.row(usize::from(n)).is_remapped;
            if context.local_stride > 0 && !(is_remapped && order.mode == super::Mode::Remap) {
                let from = Side { address: warp.local_base, is_local: true };
                let to = Side { address: layout.local(area, index), is_local: false };
                traffic.local(layout.local_bytes, from, to);
                allocations += u64::from(cta.times == 1);
            }
        }
        (traffic, allocations)
    }

    /// All of a CTA's state is in memory: its slots are free.
    fn finish_suspend(&mut self, work: &mut Work<'_>, moving: &Moving, now: u64) {
        let slot = usize::from(moving.slot);
        let context = &work.contexts.clone()[work.ctas[slot].context];
        let layout = layout(&context.launch);
        let (area, mode) = (moving.order.area, moving.order.mode);
        let mut warps = Vec::new();
        for k in 0..work.ctas[slot].warps.len() {
            let n = usize::from(work.ctas[slot].warps[k]);
            if usize::from(self.warps[n].cta) != slot || self.warps[n].state != State::Moving {
                continue;
            }
            let index = usize::from(self.warps[n].index);
            let cta = &mut work.ctas[slot];
            let warp = &self.warps[n];
            let is_blocked = moving.blocked.contains(&(n as u16));
            let issuing = Issuing { pc: warp.pc, ahead: warp.ahead, loaded: warp.loaded.0, is_blocked };
            let mut written = cta.resident.save_warp(index, layout.warp(&area, index as u64), issuing);
            let bytes = cta.resident.warp_state_bytes(index);
            let local = layout.local(&area, index as u64);
            if context.local_stride == 0 {
                // It has none.
            } else if mode == super::Mode::Copy {
                written = written.and(cta.resident.save_local(index, local));
            } else if !self.table.row(n).is_remapped {
                written = written.and(cta.resident.map_local(index, local));
                self.table.remap(n, local);
                self.load_store.discard(self.warps[n].local_base, layout.local_bytes);
            }
            if written.is_err() {
                self.fail(work, slot, now);
                return;
            }
            self.charge_until(n, Stall::Drain, now);
            let warp = &mut self.warps[n];
            let row = Row { index: index as u16, ..self.table.row(n) };
            warps.push(SavedWarp { row, bytes, tape: work.ctas[slot].resident.take_tape(index) });
            warp.state = State::Empty;
            self.table.free(n);
            if let Some(watcher) = &mut self.watcher {
                watcher.leave(n as u16);
            }
            self.resident_warps -= 1;
        }
        self.active_until = self.active_until.max(now);
        self.let_go(context.group, warps.len() as u32, now);
        if self.resident_warps == 0 {
            self.counters.sm_active_cycles += self.active_until - self.active_since;
        }
        let cta = &mut work.ctas[slot];
        if cta.resident.save_shared(area.state).is_err() {
            self.fail(work, slot, now);
            return;
        }
        let left = if cta.resident.waits_for_children() { Left::Waiting } else { Left::Suspended };
        let text = cta.resident.take_output();
        if !text.is_empty() {
            self.output.push((cta.context as u32, cta.linear, text));
        }
        cta.is_used = false;
        let (launch, linear) = (cta.context as u32, cta.linear);
        let end = CtaEnd { at: Cycle(now), sm: self.id, launch, linear, left, ..CtaEnd::default() };
        self.ends.push(end);
        self.note_move(moving, launch, linear, cta.times, now);
        let (children, times) = (cta.resident.cta().children, cta.times);
        let reason = moving.order.suspend.reason;
        let units = if self.replacing.is_empty() { Vec::new() } else { self.suspend_units(work, slot, now) };
        work.saved.push(Saved { launch, linear, children, area, mode, reason, times, warps, units });
    }

    fn note_move(&mut self, moving: &Moving, launch: u32, linear: u64, times: u32, now: u64) {
        self.moves.push(Moved {
            sm: self.id,
            launch,
            linear,
            is_restored: moving.is_restored,
            reason: moving.order.suspend.reason,
            is_first: times == 1,
            from: Cycle(moving.from),
            drained: Cycle(moving.drained.unwrap_or(moving.from)),
            until: Cycle(now),
            state_bytes: moving.traffic.state_bytes,
            local_bytes: moving.traffic.local_bytes,
        });
    }

    /// The driver's buffer is not what it said: that is no fault of the program, but the end of the launch.
    fn fail(&mut self, work: &Work<'_>, slot: usize, now: u64) {
        let cta = &work.ctas[slot];
        let fault = Fault {
            kind: FaultKind::OutOfBounds,
            pc: isa::Pc(0),
            cta: cta.resident.cta().index,
            thread: [0; 3],
            access: None,
        };
        let launch = cta.context as u32;
        self.failure = Some(Failure { at: Cycle(now), launch, linear: cta.linear, fault: Box::new(fault) });
    }

    // --- back ---------------------------------------------------------------------------------------------------

    /// A suspended CTA comes: its warps have slots, and its state is on its way.
    pub(in crate::sm) fn begin_restore(&mut self, work: &mut Work<'_>, start: &CtaStart, now: u64) {
        let is_it = |s: &Saved| s.launch == start.launch && s.linear == start.linear;
        let Some(k) = work.arriving.iter().position(is_it) else { return };
        let saved = work.arriving.remove(k);
        let context = saved.launch as usize;
        let c = &work.contexts.clone()[context];
        let slot = work.free_slot(context);
        let slots: Vec<u16> = self.empty_warps().take(saved.warps.len()).collect();
        debug_assert_eq!(slots.len(), saved.warps.len(), "work distribution knows what fits");
        let place = self.place(&slots, c);
        let layout = layout(&c.launch);
        let cta = &mut work.ctas[slot];
        let states = saved
            .warps
            .iter()
            .map(|w| (usize::from(w.row.index), layout.warp(&saved.area, w.row.index.into()), w.bytes));
        let mut read = cta.resident.resume(saved.linear, place, saved.children, saved.area.state, states);
        for w in saved.warps.iter().filter(|_| c.local_stride > 0) {
            let index = usize::from(w.row.index);
            if read.is_none() {
                break;
            }
            let local = match saved.mode {
                super::Mode::Remap => cta.resident.attach_local(index, w.row.pointer),
                super::Mode::Copy => {
                    cta.resident.restore_local(index, layout.local(&saved.area, w.row.index.into()))
                }
            };
            read = read.filter(|_| local.is_ok());
        }
        (cta.linear, cta.is_used, cta.end) = (saved.linear, true, 0);
        if !saved.units.is_empty() {
            self.resume_units(work, slot, saved.units);
        }
        let cta = &mut work.ctas[slot];
        (cta.alive, cta.staying) = (slots.len() as u32, slots.len() as u32);
        (cta.phases, cta.times) = (cta.resident.cta().ended_phases, saved.times);
        let Some(issuing) = read else {
            self.fail(work, slot, now);
            return;
        };
        cta.blocked = issuing.iter().filter(|w| w.is_blocked).count() as u32;
        if self.resident_warps == 0 {
            self.active_since = now.max(self.active_until);
        }
        self.resident_warps += slots.len() as u32;
        self.hold(c.group, slots.len() as u32, now);
        let mut traffic = Traffic::default();
        let mut blocked = Vec::new();
        traffic.state(layout.shared_bytes, saved.area.state, true);
        for ((w, &n), issuing) in saved.warps.iter().zip(&slots).zip(issuing) {
            let index = w.row.index;
            work.ctas[slot].resident.set_tape(index.into(), &w.tape);
            let slot_base = c.local_base + c.local_stride * (self.first_slot + u64::from(n));
            let warp = &mut self.warps[usize::from(n)];
            warp.start(slot as u16, index, context as u16, c, now);
            warp.state = State::Moving;
            (warp.pc, warp.ahead, warp.loaded) = (issuing.pc, issuing.ahead, Loaded(issuing.loaded));
            warp.local_base = if w.row.is_remapped { w.row.pointer } else { slot_base };
            warp.is_remapped = w.row.is_remapped;
            self.table.put(n.into(), w.row);
            traffic.state(w.bytes, layout.warp(&saved.area, index.into()), true);
            if saved.mode == super::Mode::Copy && c.local_stride > 0 {
                let from = Side { address: layout.local(&saved.area, index.into()), is_local: false };
                traffic.local(layout.local_bytes, from, Side { address: slot_base, is_local: true });
            }
            if issuing.is_blocked {
                blocked.push(n);
            }
            if let Some(watcher) = &mut self.watcher {
                watcher.start((n, warp), saved.linear, c.grid_id, now);
            }
        }
        work.ctas[slot].warps = slots;
        self.movings = self.movings.wrapping_add(1);
        let suspend = crate::ports::Suspend {
            at: start.at,
            sm: self.id,
            launch: start.launch,
            linear: start.linear,
            reason: saved.reason,
        };
        self.moving.push(Moving {
            id: self.movings,
            slot: slot as u16,
            is_restored: true,
            order: Order { suspend, area: saved.area, mode: saved.mode },
            blocked,
            from: now,
            drained: Some(now),
            traffic,
            next: 0,
            loaded: VecDeque::new(),
            pending: 0,
            last: now,
            at: now,
        });
        self.plan_state(now);
    }

    /// All of a CTA's state is here: its warps go on.
    fn finish_restore(&mut self, work: &mut Work<'_>, moving: &Moving, now: u64) {
        let slot = usize::from(moving.slot);
        let cta = &work.ctas[slot];
        let (linear, times) = (cta.linear, cta.times);
        self.note_move(moving, cta.context as u32, linear, times, now);
        let number = self.policies.as_mut().map(|p| p.begin_cta());
        for k in 0..work.ctas[slot].warps.len() {
            let n = usize::from(work.ctas[slot].warps[k]);
            let s = n % self.subs.len();
            let bit = self.bit_for(s, n as u16);
            self.charge_until(n, Stall::Drain, now);
            let warp = &mut self.warps[n];
            (warp.sub_core, warp.bit) = (s as u8, bit);
            warp.issued = now.saturating_sub(1);
            if let (Some(policies), Some(number)) = (&mut self.policies, number) {
                policies.add(s, bit.0.into(), number, ThreadType::Compute);
            }
            if moving.blocked.contains(&(n as u16)) {
                self.warps[n].state = State::Blocked;
                if let Some(policies) = &mut self.policies {
                    policies.rest(s, bit.0.into());
                }
            } else {
                self.plan(work, n, now);
            }
        }
        self.touched = true;
        // What it waited for may have come meanwhile.
        self.wake_blocked(work, slot, now + 1, now);
    }

    // --- accesses -----------------------------------------------------------------------------------------------

    /// Sends the next access of a CTA that moves; false if there is no room now.
    fn issue_piece(&mut self, k: usize, now: u64) -> bool {
        let moving = &self.moving[k];
        // What was loaded goes on before more is loaded.
        let loaded = moving.loaded.front().copied().filter(|&(at, _)| at <= now).map(|(_, piece)| piece);
        let number = match loaded {
            Some(piece) => piece as usize,
            None if moving.next < moving.traffic.pieces.len() => moving.next,
            None => return false,
        };
        let s = (number % self.subs.len()) as u32;
        let room = self.load_store.room(s, Path::Global).0;
        if room > now {
            // Never: an answer will open it.
            self.moving[k].at = room;
            return false;
        }
        let Piece { load, store, lines } = moving.traffic.pieces[number];
        let side = if loaded.is_some() { store } else { load.or(store) };
        let Some(side) = side else { return false };
        let is_store = loaded.is_some() || load.is_none();
        let owner = moving.owner(number as u32);
        let outcome = self.access_state(side, lines.into(), is_store, s, owner, now);
        let interval = u64::from(self.spec.preemption.access_interval);
        let moving = &mut self.moving[k];
        if loaded.is_some() {
            moving.loaded.pop_front();
        } else {
            moving.next += 1;
        }
        moving.at = now + interval;
        match outcome {
            Outcome::Pending => moving.pending += 1,
            Outcome::At(at) if !is_store && store.is_some() => moving.loaded.push_back((at.0, number as u32)),
            Outcome::At(at) => moving.last = moving.last.max(at.0),
        }
        moving.last = moving.last.max(now + 1);
        true
    }

    fn access_state(
        &mut self,
        side: Side,
        lines: u64,
        is_store: bool,
        s: u32,
        owner: u64,
        now: u64,
    ) -> Outcome {
        let mut access = Access { size: 16, ..Access::default() };
        if side.is_local {
            access.size = 4 * lines as u32;
            (access.mask, access.local, access.place) = (u32::MAX, u32::MAX, Where::Same(0));
        } else {
            let lanes = lines.min(LINES) * LINE / 16;
            let mask = (u64::MAX >> (64 - lanes)) as u32;
            (access.mask, access.global, access.place) = (mask, mask, Where::Consecutive(side.address));
        }
        let operation = Operation {
            kind: if is_store { load_store::Kind::Store } else { load_store::Kind::Load },
            access: &access,
            cache: Cache::Default,
            sub_core: s,
            warp: 0,
            owner,
            registers: lines as u32,
            rounds: 1,
            local_base: side.address,
            is_remapped: false,
        };
        let issued = self.load_store.issue(Cycle(now), &operation, &mut self.out, &mut self.counters);
        let room = self.load_store.room(s, Path::Global).0;
        self.subs[s as usize].hold(Class::Global, now, room);
        issued.result
    }

    /// An access of a CTA that moves is done.
    pub(in crate::sm) fn state_moved(&mut self, owner: Owner, is_load: bool, at: u64, now: u64) {
        let (id, piece) = owner.piece();
        let Some(moving) = self.moving.iter_mut().find(|m| m.id == id) else { return };
        moving.pending = moving.pending.saturating_sub(1);
        let is_copied = moving.traffic.pieces.get(piece as usize).is_some_and(|p| p.store.is_some());
        if is_load && is_copied {
            moving.loaded.push_back((at, piece));
        } else {
            moving.last = moving.last.max(at);
        }
        self.plan_state(now);
    }

    /// Answers came: CTAs that had no room try again.
    pub(in crate::sm) fn state_answered(&mut self, now: u64) {
        for moving in &mut self.moving {
            if moving.at == u64::MAX {
                moving.at = now;
            }
        }
        self.plan_state(now);
    }
}
