//! TPC: SMs that share a port to the crossbar.

mod spec;

pub use spec::Spec;

use crate::server::Calendar;
use crate::units::Cycle;
use serde::{Deserialize, Serialize};

/// The port of one TPC: requests out, answers in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Port {
    latency: u64,
    requests: Calendar,
    answers: Calendar,
    sms: Vec<Calendar>,
}

impl Port {
    pub fn new(spec: &Spec, sms: u32) -> Port {
        Port {
            latency: u64::from(spec.latency),
            requests: Calendar::with_rate(spec.request_bytes_per_cycle),
            answers: Calendar::with_rate(spec.bytes_per_cycle),
            sms: (0..sms).map(|_| Calendar::with_rate(spec.sm_bytes_per_cycle)).collect(),
        }
    }

    /// When a request of `bytes` that leaves an SM at `at` is in the GPC.
    #[inline]
    pub fn send(&mut self, at: Cycle, bytes: u32) -> Cycle {
        self.requests.take(at, bytes) + self.latency
    }

    /// Requests will leave an SM from about this time on.
    #[inline(always)]
    pub fn expect_request(&self, at: Cycle) {
        self.requests.expect(at);
    }

    /// An answer for SM number `sm` of this TPC will be in the GPC at about this time.
    #[inline(always)]
    pub fn expect(&self, at: Cycle, sm: usize) {
        self.answers.expect(at + self.latency);
        self.sms[sm].expect(at + self.latency);
    }

    /// When an answer of `bytes` that is in the GPC at `at` is in SM number `sm` of this TPC.
    #[inline]
    pub fn receive(&mut self, at: Cycle, sm: usize, bytes: u32) -> Cycle {
        let at = self.answers.take(at + self.latency, bytes);
        self.sms[sm].take(at, bytes)
    }

    pub fn clear(&mut self) {
        self.requests.clear();
        self.answers.clear();
        self.sms.iter_mut().for_each(Calendar::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sms_share_the_port() {
        let spec = Spec {
            latency: 5,
            request_bytes_per_cycle: 32.0,
            bytes_per_cycle: 64.0,
            sm_bytes_per_cycle: 64.0,
        };
        let mut port = Port::new(&spec, 2);
        assert_eq!(port.send(Cycle(100), 32), Cycle(105));
        let mut last = Cycle(0);
        for n in 0..100 {
            last = last.later(port.receive(Cycle(1000), n % 2, 128));
        }
        // 12,800 bytes at 64 a cycle, whoever gets them.
        assert!((1200..1215).contains(&last.0), "{last:?}");
    }
}
