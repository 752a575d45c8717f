//! What a turn of an SM will need, asked of the host's caches before it begins: the SMs had their turns in between.

use super::core::Sm;
use super::warp::{Owner, Place};
use super::work::Work;
use crate::ports::RequestKind;
use crate::units::Cycle;
use simt::prefetch::{HOST_LINE, prefetch, prefetch_all};

/// Instructions of a warp whose registers are asked for.
const INSTRUCTIONS: usize = 4;

/// Places of a scoreboard that are asked for, beside the one that an answer is for.
const PLACES: usize = 32;

impl Sm {
    /// Answers until `until` are known, and so are the warps that will run. One step goes over all of them before the next
    /// one, which reads what the one before asked for.
    pub(super) fn look_ahead(&mut self, work: &Work<'_>, until: Cycle) {
        let expected = &mut self.expected;
        expected.clear();
        let code = |kind| matches!(kind, RequestKind::Instruction | RequestKind::Constant);
        let answers = self.inbox.iter().take_while(|r| r.at < until).filter(|r| !code(r.kind));
        self.load_store.expect(answers, |owner| {
            let owner = Owner::unpack(owner);
            if expected.last().is_none_or(|last| last.warp != owner.warp) {
                expected.push(owner);
            }
        });
        for owner in &self.expected {
            if let Some(warp) = self.warps.get(owner.warp as usize) {
                prefetch_all(warp);
            }
        }
        for owner in &self.expected {
            if let Some(warp) = self.warps.get(owner.warp as usize) {
                // What other instructions wait for, too.
                for place in (0..warp.places.len().min(PLACES)).step_by(HOST_LINE / size_of::<Place>()) {
                    prefetch(&warp.places, place);
                }
                prefetch(&warp.places, owner.first.into());
                if let Some(cta) = work.ctas.get(warp.cta as usize) {
                    cta.resident.expect(warp.index as usize);
                }
            }
        }
        for owner in &self.expected {
            if let Some(warp) = self.warps.get(owner.warp as usize)
                && let Some(cta) = work.ctas.get(warp.cta as usize)
            {
                cta.resident.expect_rows(warp.index as usize, INSTRUCTIONS);
            }
        }
    }
}
