//! What a warp that will run needs of the host's caches.

use super::Warp;
use crate::prefetch::{HOST_LINE, prefetch_at};

impl Warp {
    /// It will run soon: asks the host's caches for what steps look at.
    #[inline(always)]
    pub(crate) fn expect(&self) {
        let start = std::ptr::from_ref(self).cast::<u8>();
        // Counts, lanes, predicates; behind the predicates that nobody reads what is bound.
        for line in [0, 1, 2, 4] {
            prefetch_at(start.wrapping_add(line * HOST_LINE));
        }
    }

    /// The same for what it did in advance, which begins so far behind its rows.
    #[inline(always)]
    pub(crate) fn expect_tape(&self, tape: u32) {
        for at in self.left.bytes().step_by(HOST_LINE) {
            prefetch_at(self.lanes.file.wrapping_add(tape as usize + at));
        }
    }

    /// The same for where its lanes wait.
    #[inline(always)]
    pub(crate) fn expect_splits(&self) {
        prefetch_at(self.splits.as_ptr());
    }

    /// The same for lines of its file.
    #[inline(always)]
    pub(crate) fn expect_lines(&self, lines: &[u32]) {
        lines.iter().for_each(|&line| prefetch_at(self.lanes.file.wrapping_add(line as usize)));
    }
}
