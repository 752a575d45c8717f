//! Answers that have come and wait for their cycle.

use crate::ports::{Response, merge};
use serde::{Deserialize, Serialize};

/// Answers in the order of their cycles and, in one cycle, of coming.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Incoming {
    /// Those from `next` on wait.
    list: Vec<Response>,
    next: usize,
}

impl Incoming {
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.next == self.list.len()
    }

    #[inline(always)]
    pub fn front(&self) -> Option<&Response> {
        self.list.get(self.next)
    }

    #[inline(always)]
    pub fn pop_front(&mut self) {
        self.next += usize::from(!self.is_empty());
    }

    pub fn iter(&self) -> impl Iterator<Item = &Response> + Clone {
        self.list[self.next..].iter()
    }

    /// Takes answers that are in the order of their cycles.
    pub fn put(&mut self, answers: &mut Vec<Response>) {
        // What is over is left behind now and then: each answer moves once for that, on average.
        if 2 * self.next >= self.list.len() {
            self.list.drain(..self.next);
            self.next = 0;
        }
        let waiting = &self.list[self.next..];
        let middle = waiting.len();
        let is_later = waiting.last().zip(answers.first()).is_none_or(|(old, new)| old.at <= new.at);
        self.list.extend_from_slice(answers);
        if !is_later {
            merge(&mut self.list[self.next..], middle, answers);
        }
        answers.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::RequestKind;
    use crate::units::{Cycle, Token};

    #[test]
    fn answers_wait_in_order() {
        let answers = |times: &[(u64, u32)]| -> Vec<Response> {
            let one = |&(at, token): &(u64, u32)| Response {
                at: Cycle(at),
                token: Token(token),
                line: 0,
                sectors: 1,
                kind: RequestKind::Load,
            };
            times.iter().map(one).collect()
        };
        let mut incoming = Incoming::default();
        incoming.put(&mut answers(&[(1, 0), (4, 1), (9, 2)]));
        incoming.pop_front();
        incoming.put(&mut answers(&[(4, 3), (6, 4), (10, 5)]));
        assert_eq!(incoming.iter().map(|r| r.token.0).collect::<Vec<_>>(), [1, 3, 4, 2, 5]);
        for _ in 0..6 {
            incoming.pop_front();
        }
        assert!(incoming.is_empty() && incoming.front().is_none());
        incoming.put(&mut answers(&[(2, 6)]));
        assert_eq!(incoming.front().map(|r| r.token.0), Some(6));
    }
}
