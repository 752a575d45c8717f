//! Requests that have a cycle to leave the SM at which is not yet exchanged: those of scattered accesses queue up.

use crate::ports::{CtaEnd, Request};
use crate::units::Cycle;
use serde::{Deserialize, Serialize};
use simt::log::Log;
use std::collections::VecDeque;

/// Requests that leave later, in the order of their cycles and, in one cycle, of coming.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Outgoing {
    queue: VecDeque<Request>,
    /// Those among them for code and constants.
    code: u32,
}

/// Whether a request is for code or constants.
#[inline(always)]
pub fn is_code(r: &Request) -> bool {
    r.kind.is_code()
}

/// Something has to change hands before an SM can go on: requests, ends of CTAs, warps that ask again, what was stored.
#[inline(always)]
pub fn concerns_others(
    out: &[Request],
    outgoing: &Outgoing,
    ends: &[CtaEnd],
    retry: &[u16],
    log: &Log,
) -> bool {
    !(out.is_empty() && outgoing.is_empty() && ends.is_empty() && retry.is_empty() && log.is_empty())
}

impl Outgoing {
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// When the next one leaves.
    pub fn next(&self) -> Option<Cycle> {
        self.queue.front().map(|r| r.at)
    }

    /// Requests for code and constants among them.
    pub fn code(&self) -> impl Iterator<Item = &Request> {
        let some = if self.code == 0 { 0 } else { self.queue.len() };
        self.queue.iter().take(some).filter(|r| is_code(r))
    }

    /// Takes new requests, and moves those that leave before `until` to `outbox`, which is empty; whether there are some.
    pub fn send(&mut self, new: &mut Vec<Request>, until: Cycle, outbox: &mut Vec<Request>) -> bool {
        // Mostly all leave at once, in order.
        let is_plain = self.queue.is_empty() && new.last().is_none_or(|r| r.at < until);
        if is_plain && new.is_sorted_by_key(|r| r.at) {
            std::mem::swap(new, outbox);
            return !outbox.is_empty();
        }
        while let Some(r) = self.queue.front().filter(|r| r.at < until) {
            self.code -= u32::from(is_code(r));
            outbox.push(*r);
            self.queue.pop_front();
        }
        outbox.reserve(new.len());
        // Those that leave at once do not go through the queue.
        for r in new.drain(..) {
            if r.at < until {
                if outbox.last().is_none_or(|last| last.at <= r.at) {
                    outbox.push(r);
                } else {
                    let place = outbox.partition_point(|other| other.at <= r.at);
                    outbox.insert(place, r);
                }
                continue;
            }
            self.code += u32::from(is_code(&r));
            if self.queue.back().is_none_or(|last| last.at <= r.at) {
                self.queue.push_back(r);
            } else {
                let place = self.queue.partition_point(|other| other.at <= r.at);
                self.queue.insert(place, r);
            }
        }
        !outbox.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::RequestKind;
    use crate::units::{SmId, Token};

    #[test]
    fn requests_leave_in_the_order_of_cycles_and_of_coming() {
        let request = |token: u32, at: u64, kind: RequestKind| Request {
            at: Cycle(at),
            sm: SmId(0),
            token: Token(token),
            line: 0,
            sectors: 1,
            kind,
            whole: false,
            depth: 0,
            operations: 0,
        };
        let mut outgoing = Outgoing::default();
        let (load, code) = (RequestKind::Load, RequestKind::Instruction);
        let mut new =
            vec![request(0, 5, load), request(1, 9, load), request(2, 5, code), request(3, 7, load)];
        let mut outbox = Vec::new();
        assert!(!outgoing.send(&mut new, Cycle(5), &mut outbox) && new.is_empty());
        assert_eq!((outgoing.next(), outgoing.code().count()), (Some(Cycle(5)), 1));
        new.push(request(4, 5, load));
        assert!(outgoing.send(&mut new, Cycle(8), &mut outbox));
        assert_eq!(outbox.iter().map(|r| r.token.0).collect::<Vec<_>>(), [0, 2, 4, 3]);
        assert_eq!((outgoing.next(), outgoing.code().count()), (Some(Cycle(9)), 0));
        // Whether they leave at once or not, in order or not.
        let mut send = |mut new: Vec<Request>, until: u64| {
            let mut outbox = Vec::new();
            let any = outgoing.send(&mut new, Cycle(until), &mut outbox);
            assert!(new.is_empty() && any != outbox.is_empty());
            outbox.iter().map(|r| r.token.0).collect::<Vec<_>>()
        };
        assert_eq!(send(vec![], 10), [1]);
        assert!(send(vec![], 11).is_empty());
        assert_eq!(send(vec![request(5, 12, load), request(6, 13, code)], 14), [5, 6]);
        assert_eq!(send(vec![request(7, 15, load), request(8, 14, load)], 16), [8, 7]);
        assert_eq!(send(vec![request(9, 16, load), request(10, 18, load)], 18), [9]);
        assert_eq!(send(vec![request(11, 18, load)], 19), [10, 11]);
    }
}
