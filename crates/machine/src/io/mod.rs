//! I/O unit: the link to the host; commands and data cross it.

mod spec;

pub use spec::Spec;

use crate::server::Line;
use crate::units::Cycle;
use serde::{Deserialize, Serialize};

/// The link to the host, both ways.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Io {
    latency: u64,
    bytes_per_cycle: u64,
    inward: Line,
}

impl Io {
    pub fn new(spec: &Spec) -> Io {
        Io {
            latency: spec.latency.into(),
            bytes_per_cycle: spec.bytes_per_cycle.max(1).into(),
            inward: Line::default(),
        }
    }

    /// Sends bytes from the host at `at`; when they are in the PPU.
    pub fn receive(&mut self, at: Cycle, bytes: u64) -> Cycle {
        // The first part travels for the latency; what does not fit beside it holds up those who come later.
        self.inward.serve(at, bytes.div_ceil(self.bytes_per_cycle)) + self.latency
    }

    /// Cycles that bytes take to cross.
    pub fn cycles(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.bytes_per_cycle)
    }

    /// When the host sees a notification that leaves the PPU at `at`.
    pub fn notify(&self, at: Cycle) -> Cycle {
        at + self.latency
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_has_latency_and_width() {
        let mut io = Io::new(&Spec { latency: 100, bytes_per_cycle: 32 });
        assert_eq!(io.receive(Cycle(0), 320), Cycle(100));
        assert_eq!(io.receive(Cycle(2), 4), Cycle(110));
        assert_eq!(io.notify(Cycle(7)), Cycle(107));
    }
}
