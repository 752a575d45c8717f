//! How lanes of loads from and stores to shared memory lay the last time. It only saves finding it out again: nothing that
//! is computed or counted depends on what is known here.

use super::code::NO_LAYOUT;
use simt::resident::Layout;

/// Layouts that are kept. Programs have many accesses, and few ways in which lanes lie.
const MOST: usize = 16;

/// What is known of the accesses of a program.
pub(super) struct Layouts {
    /// Which of the layouts each access had; a place behind all of them where nothing is known.
    of: [u8; 256],
    known: Vec<Layout>,
    /// The one that makes room next.
    oldest: usize,
}

impl Default for Layouts {
    fn default() -> Layouts {
        Layouts { of: [NO_LAYOUT; 256], known: Vec::new(), oldest: 0 }
    }
}

impl Layouts {
    /// How the lanes of an access lay.
    #[inline(always)]
    pub fn get(&self, access: u8) -> Option<&Layout> {
        self.known.get(usize::from(self.of[usize::from(access)]))
    }

    /// The lanes of an access lie so.
    pub fn put(&mut self, access: u8, layout: Layout) {
        if access == NO_LAYOUT {
            return;
        }
        let n = match self.known.iter().position(|known| *known == layout) {
            Some(n) => n,
            None if self.known.len() < MOST => {
                self.known.push(layout);
                self.known.len() - 1
            }
            None => {
                self.oldest = (self.oldest + 1) % MOST;
                self.known[self.oldest] = layout;
                self.oldest
            }
        };
        self.of[usize::from(access)] = n as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Layouts that differ.
    fn layout(n: u32) -> Layout {
        let mut layout = Layout::default();
        layout.passes = (n, n);
        layout
    }

    #[test]
    fn equal_layouts_are_kept_once_and_old_ones_make_room() {
        let mut layouts = Layouts::default();
        assert_eq!(layouts.get(NO_LAYOUT), None);
        assert_eq!(layouts.get(3), None);
        layouts.put(3, layout(1));
        layouts.put(5, layout(1));
        assert_eq!((layouts.get(3), layouts.get(5)), (Some(&layout(1)), Some(&layout(1))));
        assert_eq!(layouts.known.len(), 1);
        for n in 0..100 {
            layouts.put((n % 64) as u8, layout(n));
            assert_eq!(layouts.get((n % 64) as u8), Some(&layout(n)));
        }
        assert_eq!(layouts.known.len(), MOST);
        layouts.put(NO_LAYOUT, layout(7));
        assert_eq!(layouts.get(NO_LAYOUT), None);
    }
}
