//! Address translation: a TLB in each GPC, and one behind them that all share.

use crate::units::Cycle;
use serde::{Deserialize, Serialize};

/// The TLB that all GPCs share. During an exchange it is only read; what the GPCs missed is entered after it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Shared {
    pages: Box<[u64]>,
}

/// No page.
const NO_PAGE: u64 = u64::MAX;

impl Shared {
    pub fn new(spec: &super::Spec) -> Shared {
        let entries = spec.l2_tlb_entries.max(1).next_power_of_two() as usize;
        Shared { pages: vec![NO_PAGE; entries].into_boxed_slice() }
    }

    fn knows(&self, page: u64) -> bool {
        self.pages[page as usize & (self.pages.len() - 1)] == page
    }

    pub fn enter(&mut self, page: u64) {
        self.pages[page as usize & (self.pages.len() - 1)] = page;
    }

    pub fn clear(&mut self) {
        self.pages.fill(NO_PAGE);
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Entry {
    page: u64,
    /// When the translation is there.
    ready: Cycle,
}

const EMPTY: Entry = Entry { page: NO_PAGE, ready: Cycle(0) };

/// The TLB of a GPC.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mmu {
    entries: Box<[Entry]>,
    page_shift: u32,
    miss: u64,
    walk: u64,
    /// Pages that the shared TLB did not know in this exchange.
    pub walked: Vec<u64>,
}

impl Mmu {
    pub fn new(spec: &super::Spec) -> Mmu {
        Mmu {
            entries: vec![EMPTY; spec.tlb_entries.max(1).next_power_of_two() as usize].into_boxed_slice(),
            page_shift: spec.page_bytes.max(1).ilog2(),
            miss: u64::from(spec.tlb_miss),
            walk: u64::from(spec.page_walk),
            walked: Vec::new(),
        }
    }

    /// When the page of an address that is asked for at `at` is known, and whether it was.
    #[inline(always)]
    pub fn translate(&mut self, at: Cycle, address: u64, shared: &Shared) -> (Cycle, bool) {
        let page = address >> self.page_shift;
        let mask = self.entries.len() - 1;
        let entry = &mut self.entries[page as usize & mask];
        if entry.page == page {
            return (at.later(entry.ready), true);
        }
        let mut ready = at + self.miss;
        if !shared.knows(page) {
            ready += self.walk;
            self.walked.push(page);
        }
        *entry = Entry { page, ready };
        (ready, false)
    }

    pub fn clear(&mut self) {
        self.entries.fill(EMPTY);
        self.walked.clear();
    }
}
