//! Crossbar: virtual channels between GPCs and memory partitions.
//!
//! Requests and answers have channels of their own, so that neither waits for the other: no cycle of waiting can form.

mod spec;

pub use spec::Spec;

use crate::ports::RequestKind;
use crate::server::Calendar;
use crate::units::{Cycle, SECTOR, count};
use serde::{Deserialize, Serialize};

/// The channels of one GPC.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Channels {
    latency: u64,
    request_bytes: u32,
    answer_bytes: u32,
    requests: Calendar,
    answers: Calendar,
}

impl Channels {
    pub fn new(spec: &Spec) -> Channels {
        Channels {
            latency: u64::from(spec.latency),
            request_bytes: spec.request_bytes,
            answer_bytes: spec.answer_bytes,
            requests: Calendar::with_rate(spec.request_bytes_per_cycle),
            answers: Calendar::with_rate(spec.answer_bytes_per_cycle),
        }
    }

    /// Bytes of a request: what stores and atomics write travels with it.
    #[inline(always)]
    pub fn request_size(&self, kind: RequestKind, sectors: u8) -> u32 {
        match kind {
            RequestKind::Store | RequestKind::Atomic | RequestKind::Reduction => {
                self.request_bytes + count(sectors) * SECTOR as u32
            }
            _ => self.request_bytes,
        }
    }

    /// Bytes of an answer: what was read travels with it.
    #[inline(always)]
    pub fn answer_size(&self, kind: RequestKind, sectors: u8) -> u32 {
        match kind {
            RequestKind::Store | RequestKind::Reduction => self.answer_bytes,
            _ => self.answer_bytes + count(sectors) * SECTOR as u32,
        }
    }

    /// When what leaves the GPC at `at` is in the memory partition.
    #[inline]
    pub fn send(&mut self, at: Cycle, bytes: u32) -> Cycle {
        self.requests.take(at, bytes) + self.latency
    }

    /// When what leaves the memory partition at `at` is in the GPC.
    #[inline]
    pub fn receive(&mut self, at: Cycle, bytes: u32) -> Cycle {
        self.answers.take(at + self.latency, bytes)
    }

    /// Cycles that this takes at least.
    #[inline(always)]
    pub fn latency(&self) -> u64 {
        self.latency
    }

    pub fn clear(&mut self) {
        self.requests.clear();
        self.answers.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_do_not_wait_for_requests() {
        let spec = Spec {
            halves: vec![0],
            latency: 60,
            request_bytes: 8,
            answer_bytes: 8,
            request_bytes_per_cycle: 8.0,
            answer_bytes_per_cycle: 64.0,
        };
        let mut channels = Channels::new(&spec);
        let store = channels.request_size(RequestKind::Store, 0b1111);
        assert_eq!(store, 136);
        for _ in 0..100 {
            channels.send(Cycle(0), store);
        }
        assert!(channels.send(Cycle(0), store) > Cycle(1700));
        assert_eq!(channels.receive(Cycle(0), 40), Cycle(60));
    }
}
