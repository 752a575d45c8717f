//! What SMs count by instruction, and what they need for a moment. The SMs that a host thread runs take turns with one set of
//! tables, which stays in its caches; sums are all that anybody wants of them.

use super::core::Sm;
use super::load_store::Scratch;
use super::watch::Seen;
use crate::stall::StallTable;
use simt::sprint::Track;

/// Tables that an SM counts in while it runs.
#[derive(Default)]
pub struct Tables {
    stalls: StallTable,
    /// Where a profile is recorded.
    seen: Option<Seen>,
    /// Registers for sprints.
    track: Track,
    /// Lines of accesses.
    lines: Scratch,
}

impl Sm {
    /// Empty tables for what this SM runs, and others that run the same.
    pub fn tables(&self) -> Tables {
        let mut tables = Tables::default();
        tables.stalls.reset(self.stalls.len());
        let is_seen = self.watcher.as_ref().is_some_and(|w| w.recorder.is_some());
        tables.seen = is_seen.then(|| Seen::with_room(self.stalls.len()));
        tables
    }

    /// Its own tables for others, and back.
    #[inline]
    pub fn swap(&mut self, tables: &mut Tables) {
        std::mem::swap(&mut self.stalls, &mut tables.stalls);
        std::mem::swap(&mut self.track, &mut tables.track);
        self.load_store.swap(&mut tables.lines);
        if let Some(seen) = &mut tables.seen
            && let Some(own) = self.watcher.as_mut().and_then(|w| w.recorder.as_mut())
        {
            std::mem::swap(&mut own.seen, seen);
        }
    }

    /// Takes in what others counted; their tables are empty then.
    pub fn take_in(&mut self, tables: &mut Tables) {
        self.stalls.take_in(&mut tables.stalls);
        if let Some(seen) = &mut tables.seen
            && let Some(own) = self.watcher.as_mut().and_then(|w| w.recorder.as_mut())
        {
            own.seen.take_in(seen);
        }
    }
}
