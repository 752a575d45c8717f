//! Making room: which CTAs are suspended so that others can run.
//!
//! A task that finds no place may take those of tasks of lower priority. With time slices it may also take those of its own
//! priority that have been there for as long as a slice. On every SM the lowest priority goes first and, within one, the CTA
//! that came last; an SM on which CTAs are on their way out is left alone until they are gone.
//!
//! Moving state is no part of a slice: that of a CTA which comes back begins when its warps run again. So each has its share of
//! the machine however long moving takes, and however short slices are.

use super::Distribution;
use super::pools::Slot;
use crate::ports::{Reason, Suspend};
use crate::units::{Cycle, SmId};
use serde::{Deserialize, Serialize};

/// Who may take places from whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Preemption {
    /// Cycles after which a CTA makes room for others of its priority.
    pub time_slice: Option<u64>,
}

/// A CTA on an SM.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Resident {
    pub slot: Slot,
    pub linear: u64,
    pub priority: u8,
    /// When it came, and when its warps went on where it had been suspended.
    since: Cycle,
    /// Its state is on its way back.
    is_coming: bool,
    /// It was told to go.
    is_leaving: bool,
}

impl Resident {
    pub fn new(slot: Slot, linear: u64, priority: u8, since: Cycle, is_coming: bool) -> Resident {
        Resident { slot, linear, priority, since, is_coming, is_leaving: false }
    }

    /// When its time slice is over.
    fn slice_end(&self, slice: u64) -> Option<Cycle> {
        (!self.is_coming).then_some(self.since + slice)
    }
}

impl Distribution {
    /// From now on; nothing runs.
    pub fn set_preemption(&mut self, preemption: Option<Preemption>) {
        self.preemption = preemption;
    }

    /// Tells all CTAs to go, and places none, until [`Distribution::go_on`].
    pub fn stop(&mut self, now: Cycle) {
        self.is_held = true;
        for n in 0..self.sms.len() {
            for k in 0..self.sms[n].residents.len() {
                self.tell(n, k, Reason::Stop, now);
            }
        }
    }

    /// No CTA is on an SM, as far as is known here.
    pub fn is_vacant(&self) -> bool {
        self.sms.iter().all(|sm| sm.residents.is_empty()) && self.ends.is_empty()
    }

    pub fn go_on(&mut self, at: Cycle) {
        self.is_held = false;
        self.look_at = Some(self.look_at.map_or(at, |look| look.min(at)));
    }

    /// Tells a CTA of an SM to go, unless it was told before.
    fn tell(&mut self, n: usize, k: usize, reason: Reason, now: Cycle) {
        let resident = &mut self.sms[n].residents[k];
        let Some(task) = self.tasks[resident.slot].as_ref().filter(|_| !resident.is_leaving) else { return };
        resident.is_leaving = true;
        self.suspends.push(Suspend {
            // Not before it has come.
            at: (now + self.start_latency).later(resident.since + 1),
            sm: SmId(n as u16),
            launch: task.task.launch,
            linear: resident.linear,
            reason,
        });
    }

    /// The warps of a CTA that came back run since `at`.
    pub fn runs_again(&mut self, sm: SmId, launch: u32, linear: u64, at: Cycle) {
        let (Some(slot), known) = (self.slot_of(launch), at + self.end_latency) else { return };
        let Some(sm) = self.sms.get_mut(usize::from(sm.0)) else { return };
        if let Some(r) = sm.residents.iter_mut().find(|r| r.slot == slot && r.linear == linear) {
            (r.since, r.is_coming) = (known, false);
        }
    }

    /// CTAs that are to make room, since the last call.
    pub fn suspends(&mut self) -> Vec<Suspend> {
        std::mem::take(&mut self.suspends)
    }

    /// When the next time slice is over that somebody waits for.
    pub(super) fn next_slice(&self) -> Option<Cycle> {
        let slice = self.preemption?.time_slice.filter(|_| !self.is_held)?;
        let waits = self.tasks.iter().flatten().filter(|t| t.is_ready && !t.is_placed());
        let highest = waits.map(|t| t.task.priority).max()?;
        let sms = self.sms.iter().filter(|sm| sm.residents.iter().all(|r| !r.is_leaving));
        let residents = sms.flat_map(|sm| &sm.residents);
        residents.filter(|r| r.priority <= highest).filter_map(|r| r.slice_end(slice)).min()
    }

    /// Tells CTAs to go whose places others have a better right to.
    pub(super) fn make_room(&mut self, now: Cycle) {
        let mut waits: Vec<Slot> = (0..self.tasks.len())
            .filter(|&slot| self.tasks[slot].as_ref().is_some_and(|t| t.is_ready && !t.is_placed()))
            .collect();
        waits.sort_by_key(|&slot| super::rank(&self.tasks, slot));
        for slot in waits {
            self.make_room_for(slot, now);
        }
    }

    fn make_room_for(&mut self, slot: Slot, now: Cycle) {
        let Some(task) = self.tasks[slot].as_ref() else { return };
        let mut wanted = task.unplaced();
        // What is being emptied will do for some of them.
        let leaving = |sm: &super::Sm| sm.residents.iter().any(|r| r.is_leaving);
        wanted = wanted.saturating_sub(self.sms.iter().filter(|sm| leaving(sm)).count() as u64);
        let each = task.unplaced().div_ceil(self.sms.len() as u64).max(1);
        for n in 0..self.sms.len() {
            if wanted == 0 {
                return;
            }
            if leaving(&self.sms[n]) {
                continue;
            }
            let (victims, room) = self.victims(slot, n, each, now);
            wanted = wanted.saturating_sub(room);
            for (k, reason) in victims {
                self.tell(n, k, reason, now);
            }
        }
    }

    /// CTAs of an SM that must go so that up to `each` CTAs of a task have room, and how many have it then. None go if that
    /// is of no use.
    fn victims(&self, slot: Slot, n: usize, each: u64, now: Cycle) -> (Vec<(usize, Reason)>, u64) {
        let Some(task) = self.tasks[slot].as_ref() else { return (Vec::new(), 0) };
        let slice = self.preemption.and_then(|p| p.time_slice);
        let mut sm = self.sms[n].clone();
        let mut order: Vec<(u8, std::cmp::Reverse<Cycle>, usize, Reason)> = Vec::new();
        for (k, r) in sm.residents.iter().enumerate() {
            let end = slice.and_then(|slice| r.slice_end(slice));
            let over = end.is_some_and(|end| end <= now) && r.priority == task.task.priority;
            if r.priority < task.task.priority {
                order.push((r.priority, std::cmp::Reverse(r.since), k, Reason::Priority));
            } else if over {
                order.push((r.priority, std::cmp::Reverse(r.since), k, Reason::TimeSlice));
            }
        }
        order.sort();
        let mut victims = Vec::new();
        let mut room = 0;
        let mut resident = task.resident[n];
        for (_, _, k, reason) in order {
            let r = sm.residents[k];
            let Some(other) = self.tasks[r.slot].as_ref() else { continue };
            victims.push((k, reason));
            sm.give(&other.needs);
            resident -= u32::from(r.slot == slot);
            let mut trial = sm.clone();
            let mut placed = resident;
            room = 0;
            while room < each && placed < task.occupancy.ctas_per_sm && task.has_room(&trial, &self.sm) {
                trial.take(task, &self.sm);
                placed += 1;
                room += 1;
            }
            if room >= each {
                break;
            }
        }
        if room == 0 { (Vec::new(), 0) } else { (victims, room) }
    }
}
