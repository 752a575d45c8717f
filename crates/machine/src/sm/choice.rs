//! A cycle of a sub-core whose warps are chosen by a policy with state, or held by grants or a window.

use super::core::Sm;
use super::sub_core::Bit;
use super::work::Work;

impl Sm {
    /// Chooses and issues, all other sub-cores having come to this cycle.
    pub(super) fn schedule_by_policy(&mut self, work: &mut Work<'_>, s: usize, now: u64) {
        self.subs[s].look(&mut self.warps, now);
        loop {
            let Some(policies) = &mut self.policies else { return };
            let (sub, warps) = (&self.subs[s], &self.warps);
            let able = policies.able(s, sub, warps, now);
            if able == 0 {
                break;
            }
            let bit = policies.choose(s, sub, warps, able, now);
            let n = usize::from(sub.slot(bit));
            if now >= self.horizon && Sm::leaves(warps[n].class) {
                // It must not happen before the other SMs are here.
                self.is_held = true;
                self.subs[s].next = now;
                return;
            }
            policies.note((s, bit, warps[n].pc), sub, warps, able, now);
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

    /// After what happened outside a sub-core's turn: warps that were held may go.
    pub(super) fn look_again(&mut self, now: u64) {
        if let Some(policies) = &mut self.policies
            && policies.take_changed()
        {
            for (_, sub) in self.subs.iter_mut().enumerate().filter(|(k, _)| policies.is_held(*k)) {
                sub.next = sub.next.min(now);
            }
        }
    }

    /// Whether a warp's next instruction may issue in the cycle of the one before.
    pub(super) fn may_follow(&self, s: usize, n: usize, now: u64) -> bool {
        let warp = &self.warps[n];
        let Bit(bit) = warp.bit;
        self.policies.as_ref().is_none_or(|p| p.may_follow(s, bit.into(), warp.pc, now))
    }
}
