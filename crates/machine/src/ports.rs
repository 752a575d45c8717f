//! What travels between blocks: memory requests and answers, CTAs and their ends.

use crate::units::{Cycle, SmId, Token};
use serde::{Deserialize, Serialize};

/// What a request wants of the memory behind the SM.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum RequestKind {
    Load,
    /// Answered when it is visible to all SMs.
    Store,
    /// Read-modify-write with a result.
    Atomic,
    /// Read-modify-write without: answered as a store is.
    Reduction,
    /// A line of code, for an instruction cache.
    Instruction,
    /// A line of a constant bank, for a constant cache.
    Constant,
}

impl RequestKind {
    /// For code or constants, which go another way than data.
    #[inline(always)]
    pub fn is_code(self) -> bool {
        matches!(self, RequestKind::Instruction | RequestKind::Constant)
    }
}

/// A request for sectors of one line. An SM's requests are in the order of their cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Request {
    /// When it leaves the SM.
    pub at: Cycle,
    pub sm: SmId,
    pub token: Token,
    /// Address of the line's first byte.
    pub line: u64,
    /// Which sectors, a bit each.
    pub sectors: u8,
    pub kind: RequestKind,
    /// Stores: every byte of the sectors is written. Others read them first where they must.
    pub whole: bool,
    /// Atomics and reductions: operations that follow each other on one address, at most, and in all.
    pub depth: u8,
    pub operations: u8,
}

/// The answer to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Response {
    /// When it reaches the SM.
    pub at: Cycle,
    pub token: Token,
    pub line: u64,
    pub sectors: u8,
    pub kind: RequestKind,
}

/// A CTA sent to an SM.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CtaStart {
    /// When its first warp may run.
    pub at: Cycle,
    pub sm: SmId,
    /// Which of the launches that run now.
    pub launch: u32,
    /// Its number in the grid.
    pub linear: u64,
    /// Bytes of the SM that are shared memory while it is there.
    pub split: u32,
    /// It was suspended before, and goes on.
    pub is_restored: bool,
}

/// How a CTA left an SM.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Left {
    #[default]
    Ended,
    /// It goes on when there is room.
    Suspended,
    /// It goes on when its child tasks have ended and there is room.
    Waiting,
}

/// A CTA that is to make room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Suspend {
    pub at: Cycle,
    pub sm: SmId,
    pub launch: u32,
    pub linear: u64,
    pub reason: Reason,
}

/// Who wants a CTA's place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A task of higher priority.
    Priority,
    /// Its time slice is over, and others wait.
    TimeSlice,
    /// It waits for child tasks.
    Children,
    /// A debugger.
    Stop,
}

impl Reason {
    pub fn name(self) -> &'static str {
        match self {
            Reason::Priority => "priority",
            Reason::TimeSlice => "time slice",
            Reason::Children => "child tasks",
            Reason::Stop => "debugger",
        }
    }
}

/// A CTA left an SM, and its resources are free.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CtaEnd {
    pub at: Cycle,
    pub sm: SmId,
    pub launch: u32,
    pub linear: u64,
    pub left: Left,
    /// Instructions that it executed, by its warps and by their threads, once it has ended.
    pub warp_instructions: u64,
    pub thread_instructions: u64,
}

/// Bits of a key that name an answer's place.
const PLACE: u32 = 16;

/// Brings answers in the order of their cycles, those of one cycle as they came. `keys` and `copies` are scratch.
pub fn sort(list: &mut [Response], keys: &mut Vec<u64>, copies: &mut Vec<Response>) {
    if list.is_sorted_by_key(|r| r.at) {
        return;
    }
    let cycles = || list.iter().map(|r| r.at);
    let (first, last) = (cycles().min().unwrap_or_default(), cycles().max().unwrap_or_default());
    if list.len() > 1 << PLACE || last.since(first) >> (u64::BITS - PLACE) != 0 {
        return list.sort_by_key(|r| r.at);
    }
    keys.clear();
    keys.extend(list.iter().zip(0..).map(|(r, n)| r.at.since(first) << PLACE | n));
    keys.sort_unstable();
    copies.clear();
    copies.extend_from_slice(list);
    for (to, key) in list.iter_mut().zip(keys) {
        *to = copies[(*key & ((1 << PLACE) - 1)) as usize];
    }
}

/// Brings a list in order whose parts before and from `middle` on are. New answers mostly come after what waits already:
/// only what comes after the first of them moves.
pub fn merge(list: &mut [Response], middle: usize, late: &mut Vec<Response>) {
    let is_in_order = |n: usize| list.get(n).is_none_or(|next| list[n - 1].at <= next.at);
    if middle == 0 || is_in_order(middle) {
        return;
    }
    late.clear();
    late.extend_from_slice(&list[middle..]);
    let (mut old, mut end) = (middle, list.len());
    while let Some(last) = late.last() {
        end -= 1;
        if old > 0 && list[old - 1].at > last.at {
            old -= 1;
            list[end] = list[old];
        } else {
            list[end] = *last;
            late.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(at: u64, token: u32) -> Response {
        Response { at: Cycle(at), token: Token(token), line: 0, sectors: 1, kind: RequestKind::Load }
    }

    #[test]
    fn lists_are_sorted_as_they_came() {
        for last in [12, u64::MAX] {
            let times = [3, 5, 5, 9, 1, 5, 8, last, 1];
            let mut list: Vec<Response> = (0..9).map(|n| answer(times[n], n as u32)).collect();
            let mut expected = list.clone();
            expected.sort_by_key(|r| r.at);
            sort(&mut list, &mut Vec::new(), &mut Vec::new());
            assert_eq!(list, expected);
        }
    }

    #[test]
    fn lists_are_merged_in_order() {
        let times = [3, 5, 5, 9, 1, 5, 8, 12];
        for middle in [0, 4, 8] {
            let mut list: Vec<Response> = (0..8).map(|n| answer(times[n], n as u32)).collect();
            list[..middle].sort_by_key(|r| r.at);
            list[middle..].sort_by_key(|r| r.at);
            let mut expected = list.clone();
            expected.sort_by_key(|r| r.at);
            merge(&mut list, middle, &mut Vec::new());
            assert_eq!(list, expected);
        }
    }
}
