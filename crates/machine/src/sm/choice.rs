//! A cycle of a sub-core whose warps are chosen by a policy with state, or held by grants or a window.

use super::code::Class;
use super::core::{Sm, Work};
use super::policy::Policies;
use super::sub_core::{Bit, SubCore};

impl Sm {
    /// Chooses and issues; warps whose cycle has come already ask.
    pub(super) fn schedule_by_policy(&mut self, work: &mut Work<'_>, s: usize, now: u64) {
        loop {
            let Some(policies) = &mut self.policies else { return };
            let allowed = policies.allowed(s, now);
            let (sub, warps, slots) = (&self.subs[s], &self.warps, &self.slot_of[s]);
            let slot = |bit: u32| slots[bit as usize % 64];
            policies
                .hold(s, sub.asking(), allowed, now, |bit| sub.busy(warps[slot(bit) as usize].class, now));
            if !policies.has_room(s, now) {
                break;
            }
            let able = sub.eligible(now) & allowed.grant & allowed.window;
            if able == 0 {
                break;
            }
            let newest = sub.newest();
            let bit = policies.choose(s, able, newest, now).unwrap_or_else(|| sub.choose(able).0.into());
            let n = slot(bit) as usize;
            if now >= self.horizon && Sm::leaves(warps[n].class) {
                // It must not happen before the others are here.
                self.is_held = true;
                self.subs[s].next = now;
                return;
            }
            policies.note((s, bit, warps[n].pc), (sub.used(), able), newest, now, slot);
            if policies.begin_issue(s, able, now) {
                self.counters.eligible_cycles += 1;
                self.counters.eligible_warps += u64::from(able.count_ones());
                self.counters.issue_cycles += 1;
            }
            self.issue_warp(work, s, n, now);
        }
        let Some(policies) = &mut self.policies else { return };
        let allowed = policies.allowed(s, now);
        self.subs[s].plan_next_of(allowed.grant & allowed.window, now);
        self.subs[s].next = self.subs[s].next.min(policies.next(s, now).max(now + 1));
        if policies.take_changed() {
            // Pods behind this one have their turn in this cycle.
            for (k, sub) in self.subs.iter_mut().enumerate().filter(|(k, _)| *k != s) {
                if policies.is_held(k) {
                    sub.next = sub.next.min(if k > s { now } else { now + 1 });
                }
            }
        }
    }

    /// After the sub-cores' turns: the next cycle at which one of them has to be looked at.
    pub(super) fn look_again(&mut self, now: u64) -> u64 {
        if let Some(policies) = &mut self.policies
            && policies.take_changed()
        {
            for (s, sub) in self.subs.iter_mut().enumerate() {
                if policies.is_held(s) {
                    sub.next = sub.next.min(now + 1);
                }
            }
        }
        self.subs.iter().map(|sub| sub.next).min().unwrap_or(u64::MAX)
    }

    /// A warp's next instruction was fetched. It waits for its cycle, or for something whose time is not known.
    #[inline(always)]
    pub(super) fn fetched(&mut self, n: usize, is_known: bool, now: u64) {
        if let Some(policies) = &mut self.policies {
            let warp = &self.warps[n];
            let s = warp.sub_core as usize;
            if policies.fetched(s, warp.bit.0.into(), warp.pc, is_known.then_some(warp.since), now) {
                self.subs[s].next = self.subs[s].next.min(now);
            }
        }
    }

    /// Whether a warp's next instruction may issue in the cycle of the one before.
    pub(super) fn may_follow(&self, s: usize, n: usize, now: u64) -> bool {
        let warp = &self.warps[n];
        self.policies.as_ref().is_none_or(|p| p.may_follow(s, warp.bit.0.into(), warp.pc, now))
    }
}

/// Tells the policies, where there are any, of an instruction that issued and starts in its pipe at `start`.
#[inline(always)]
pub(super) fn tell(
    policies: &mut Option<Box<Policies>>,
    sub: &mut SubCore,
    (s, bit, pc): (usize, Bit, u32),
    (class, start): (Class, u64),
    now: u64,
) {
    if let Some(policies) = policies {
        policies.issued(s, bit.0.into(), pc, now);
        if let Some((classes, until)) = policies.enter(s, class, start, now) {
            for c in Class::ALL.into_iter().filter(|&c| classes >> c as u32 & 1 != 0) {
                sub.hold(c, now, until);
            }
        }
    }
}
