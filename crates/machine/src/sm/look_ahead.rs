//! What a turn of an SM will need, asked of the host's caches before it begins: the SMs had their turns in between.

use super::answers::is_data;
use super::core::Sm;
use super::sub_core::Bit;
use super::trace_cell::TraceCell;
use super::warp::{Owner, WarpSlot};
use super::work::{CtaSlot, Work};
use crate::units::Cycle;
use simt::prefetch::{prefetch, prefetch_all, prefetch_bytes, prefetch_nearest};

/// A warp that has executed so many instructions that did not issue yet executes none in its SM's next turn, mostly.
const FAR_AHEAD: u8 = 8;

/// The CTA of a warp that executes something in its SM's next turn, mostly.
#[inline(always)]
fn executes<'w, 'l>(work: &'w Work<'l>, warp: &WarpSlot) -> Option<&'w CtaSlot<'l>> {
    work.ctas.get(warp.cta as usize).filter(|_| warp.ahead < FAR_AHEAD)
}

/// Where in the host's memory that of an SM lies which its every turn looks at: addresses and bytes. Itself, its sub-cores and
/// samples come first.
pub struct Whereabouts([(usize, usize); 9]);

impl Whereabouts {
    /// The SM has its turn now.
    pub fn expect_now(&self) {
        self.0[..3].iter().for_each(|&(start, bytes)| prefetch_nearest(start, bytes));
    }

    /// The SM will have its turn soon.
    pub fn expect(&self) {
        self.0.into_iter().for_each(|(start, bytes)| prefetch_bytes(start, bytes));
    }
}

/// Nothing lies there.
const NOWHERE: (usize, usize) = (0, 0);

/// Where a list lies.
pub(in crate::sm) fn extent<T>(list: &[T]) -> (usize, usize) {
    (list.as_ptr() as usize, size_of_val(list))
}

impl Sm {
    /// Where it lies, as long as nobody moves it.
    pub fn whereabouts(&self) -> Whereabouts {
        let (own, subs) = (extent(std::slice::from_ref(self)), extent(&self.subs));
        let [sets, ports] = self.load_store.extents();
        let (fetch, constants) = (self.fetch.extent(), self.constants.extent());
        let watched = self.watcher.as_deref();
        let samples = watched.and_then(|w| w.cell.as_ref()).map_or(NOWHERE, TraceCell::extent);
        let recorder = watched.and_then(|w| w.recorder.as_ref());
        let [warps, recorded] = recorder.map_or([NOWHERE; 2], |r| r.extents(self.subs.len()));
        Whereabouts([own, subs, samples, fetch, constants, sets, ports, warps, recorded])
    }

    /// Answers until `until` are known, and so are the warps that will run. One step goes over all of them before the next
    /// one, which reads what the one before asked for.
    pub(super) fn look_ahead(&mut self, work: &Work<'_>, until: Cycle) {
        self.load_store.expect_accesses();
        self.constants.expect();
        if let Some(cell) = self.watcher.as_ref().and_then(|w| w.cell.as_ref()) {
            cell.expect();
        }
        let expected = &mut self.expected;
        expected.clear();
        let answers = self.inbox.iter().take_while(|r| r.at < until).filter(|r| is_data(r));
        let warps = &self.warps;
        self.load_store.expect(answers, |owner, is_result| {
            let owner = Owner::unpack(owner);
            if !is_result {
                // It counts one store less.
                if let Some(warp) = warps.get(usize::from(owner.warp)) {
                    prefetch_all(warp);
                }
            } else if expected.last().is_none_or(|last| last.warp != owner.warp) {
                expected.push(owner);
            }
        });
        // Those that wait for no answer run, too.
        for sub in &self.subs {
            let mut near = sub.near();
            while near != 0 {
                let warp = sub.slot(Bit(near.trailing_zeros() as u8));
                expected.push(Owner { warp, ..Owner::NOBODY });
                near &= near - 1;
            }
        }
        for owner in &self.expected {
            if let Some(warp) = self.warps.get(owner.warp as usize) {
                prefetch_all(warp);
            }
        }
        self.look_at_starts(work, until, |warp, cta, index| {
            prefetch_all(warp);
            cta.resident.expect(index);
        });
        for owner in &self.expected {
            if let Some(warp) = self.warps.get(owner.warp as usize).filter(|w| w.since < until.0) {
                // There are few of them.
                prefetch(&warp.places, 0);
                prefetch(&warp.places, owner.first.into());
                if let Some(cta) = executes(work, warp) {
                    cta.resident.expect(warp.index as usize);
                }
            }
        }
        for owner in &self.expected {
            if let Some(warp) = self.warps.get(owner.warp as usize).filter(|w| w.since < until.0)
                && let Some(cta) = executes(work, warp)
            {
                cta.resident.expect_next(warp.index as usize);
            }
        }
        self.look_at_starts(work, until, |_, cta, index| cta.resident.expect_start(index, &work.first_lines));
    }

    /// Warps of CTAs that will start: they mostly get the slots that those of the CTA before had. With the warp slot, the CTA
    /// slot and the warp's number.
    #[inline(always)]
    fn look_at_starts<'w, 'l>(
        &self,
        work: &'w Work<'l>,
        until: Cycle,
        mut look: impl FnMut(&WarpSlot, &'w CtaSlot<'l>, usize),
    ) {
        let starts = self.starts.iter().take_while(|s| s.at < until).filter(|s| s.launch == 0);
        let free = work.ctas.iter().filter(|cta| !cta.is_used && cta.context == 0);
        // Starts come first: mostly there are none, and then slots, which are far away, are not looked at.
        for (_, cta) in starts.zip(free) {
            for (index, &n) in cta.warps.iter().enumerate() {
                if let Some(warp) = self.warps.get(usize::from(n)) {
                    look(warp, cta, index);
                }
            }
        }
    }
}
