//! What every memory port must keep, whatever is behind it: random traffic of all kinds, and what is checked of it.
//!
//! A block takes part by implementing [`Subject`] and calling [`check`].

use crate::ports::{Request, RequestKind, Response};
use crate::units::{Cycle, SmId, Token};

/// A block behind a memory port.
pub trait Subject {
    /// Ports that it has: request lists are one a port.
    fn ports(&self) -> usize;

    /// Takes requests with cycles below `until`, each port's in order, and adds their answers.
    fn exchange(&mut self, out: &mut [Vec<Request>], into: &mut [Vec<Response>], until: Cycle);

    /// Forgets everything: the next run must equal the first.
    fn flush(&mut self);

    /// Cycles that a request takes at least.
    fn minimum(&self, kind: RequestKind) -> u64;

    /// Bytes of data that one port takes in a cycle, at most.
    fn width(&self) -> f64;

    /// Kinds of requests that it takes.
    fn kinds(&self) -> &'static [RequestKind] {
        &ALL
    }
}

const ALL: [RequestKind; 6] = [
    RequestKind::Load,
    RequestKind::Store,
    RequestKind::Atomic,
    RequestKind::Reduction,
    RequestKind::Instruction,
    RequestKind::Constant,
];

/// A sequence of random numbers that is the same everywhere (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.draw() % n
    }
}

/// Cycles between exchanges.
const QUANTUM: u64 = 32;

/// Traffic of a run: for each exchange, for each port, requests in order.
fn traffic(subject: &impl Subject, seed: u64, exchanges: u64, busy: u64) -> Vec<Vec<Vec<Request>>> {
    let mut random = Random(seed);
    let mut token = 0;
    let kinds = subject.kinds();
    (0..exchanges)
        .map(|n| {
            (0..subject.ports())
                .map(|port| {
                    let mut at = n * QUANTUM;
                    let mut list = Vec::new();
                    loop {
                        at += random.below(2 * busy + 1);
                        if at >= (n + 1) * QUANTUM {
                            return list;
                        }
                        // A few lines that all want, some that few want, and streams.
                        let line = match random.below(4) {
                            0 => random.below(8),
                            1 => 1000 + random.below(4000),
                            2 => 1_000_000 + random.below(1 << 22),
                            _ => 10_000 + n * 64 + random.below(64),
                        };
                        let operations = 1 + random.below(32) as u8;
                        list.push(Request {
                            at: Cycle(at),
                            sm: SmId(port as u16),
                            token: Token(token),
                            line: line * 128,
                            sectors: 1 + random.below(15) as u8,
                            kind: kinds[random.below(kinds.len() as u64) as usize],
                            whole: random.below(2) == 0,
                            depth: 1 + random.below(u64::from(operations)) as u8,
                            operations,
                        });
                        token += 1;
                    }
                })
                .collect()
        })
        .collect()
}

/// Runs traffic; all answers, by port.
fn run(subject: &mut impl Subject, traffic: &[Vec<Vec<Request>>]) -> Vec<Vec<Response>> {
    let mut answers = vec![Vec::new(); subject.ports()];
    for (n, lists) in traffic.iter().enumerate() {
        let mut out = lists.clone();
        let until = Cycle((n as u64 + 1) * QUANTUM);
        let mut into = vec![Vec::new(); subject.ports()];
        subject.exchange(&mut out, &mut into, until);
        for (port, list) in into.into_iter().enumerate() {
            assert!(list.windows(2).all(|w| w[0].at <= w[1].at), "answers of an exchange are in order");
            answers[port].extend(list);
        }
        assert!(out.iter().all(Vec::is_empty), "all requests are taken");
    }
    answers
}

fn answered_once(subject: &impl Subject, traffic: &[Vec<Vec<Request>>], answers: &[Vec<Response>]) {
    for port in 0..subject.ports() {
        let mut requests: Vec<Request> = traffic.iter().flat_map(|lists| lists[port].clone()).collect();
        let mut answers = answers[port].clone();
        requests.sort_by_key(|r| r.token);
        answers.sort_by_key(|r| r.token);
        assert_eq!(requests.len(), answers.len(), "port {port}: as many answers as requests");
        for (request, answer) in requests.iter().zip(&answers) {
            assert_eq!(
                (request.token, request.line, request.sectors, request.kind),
                (answer.token, answer.line, answer.sectors, answer.kind)
            );
            let least = request.at + subject.minimum(request.kind);
            assert!(answer.at >= least, "{request:?} is answered at {:?}, before {least:?}", answer.at);
        }
    }
}

/// In no window of time does a port take more data than its width allows.
fn within_bandwidth(subject: &impl Subject, answers: &[Vec<Response>]) {
    for list in answers {
        let mut list: Vec<(u64, u64)> = list
            .iter()
            .filter(|r| !matches!(r.kind, RequestKind::Store | RequestKind::Reduction))
            .map(|r| (r.at.0, u64::from(r.sectors.count_ones()) * 32))
            .collect();
        list.sort_unstable();
        for window in [64u64, 256, 4096] {
            // A server's buckets blur the ends of a window, and one answer may straddle each.
            let most = (subject.width() * (window + 64) as f64) as u64 + 256;
            let (mut first, mut sum) = (0, 0);
            for n in 0..list.len() {
                sum += list[n].1;
                while list[n].0 - list[first].0 >= window {
                    sum -= list[first].1;
                    first += 1;
                }
                assert!(sum <= most, "{sum} bytes in {window} cycles, {most} fit");
            }
        }
    }
}

/// All checks of a port. `make` builds the block for a number of host threads.
pub fn check<S: Subject>(make: impl Fn(usize) -> S) {
    for (seed, busy) in [(1, 1), (2, 4), (3, 40)] {
        let mut subject = make(1);
        let traffic = traffic(&subject, seed, 40, busy);
        let first = run(&mut subject, &traffic);
        answered_once(&subject, &traffic, &first);
        within_bandwidth(&subject, &first);
        subject.flush();
        assert!(run(&mut subject, &traffic) == first, "a run after a flush equals the first");
        for threads in [2, 4] {
            assert!(run(&mut make(threads), &traffic) == first, "{threads} threads change nothing");
        }
    }
}
