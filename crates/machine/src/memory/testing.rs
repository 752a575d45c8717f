//! Configurations and lone requests for tests of memory blocks.

use super::System;
use crate::config::Config;
use crate::ports::{Request, RequestKind, Response};
use crate::units::{Cycle, SmId, Token};
use crate::workers::Workers;

pub fn preset(name: &str) -> Config {
    Config::preset(name).expect("a preset")
}

pub fn h200() -> Config {
    preset("h200")
}

pub fn request(at: u64, sm: u16, address: u64, sectors: u8, kind: RequestKind) -> Request {
    Request {
        at: Cycle(at),
        sm: SmId(sm),
        token: Token(0),
        line: address & !127,
        sectors,
        kind,
        whole: true,
        depth: 1,
        operations: 1,
    }
}

/// Sends requests to a system at once; answers in the order of requests.
pub fn ask(system: &mut System, sms: usize, requests: &[Request]) -> Vec<Response> {
    let mut outboxes = vec![Vec::new(); sms];
    let mut inboxes = vec![Vec::new(); sms];
    for (n, request) in requests.iter().enumerate() {
        outboxes[request.sm.0 as usize].push(Request { token: Token(n as u32), ..*request });
    }
    let until = requests.iter().map(|r| r.at + 1).max().unwrap_or_default();
    Workers::with(1, |w| system.exchange(w, &mut outboxes, &mut inboxes, until));
    let mut all: Vec<Response> = inboxes.into_iter().flatten().collect();
    all.sort_by_key(|r| r.token);
    all
}

/// Cycles that one request takes.
pub fn latency(system: &mut System, request: Request) -> u64 {
    ask(system, system.sms(), &[request])[0].at - request.at
}

/// Sectors a cycle that reach the SMs when each of them keeps `window` requests under way, one sent a cycle at most.
/// `make` gives the n-th request of an SM.
pub fn rate(
    system: &mut System,
    sms: std::ops::Range<u16>,
    window: usize,
    each: u64,
    make: impl Fn(u16, u64) -> Request,
) -> f64 {
    const QUANTUM: u64 = 64;
    let mut outboxes = vec![Vec::new(); system.sms()];
    let mut inboxes: Vec<Vec<Response>> = vec![Vec::new(); system.sms()];
    let mut sent = vec![0u64; system.sms()];
    let (mut sectors, mut last, mut now) = (0u64, 0, system.busy_until().0 + 1000);
    let start = now;
    loop {
        let mut done = true;
        for sm in sms.clone() {
            let i = sm as usize;
            inboxes[i].retain(|r| {
                if r.at.0 <= now {
                    sectors += u64::from(r.sectors.count_ones());
                    last = last.max(r.at.0);
                }
                r.at.0 > now
            });
            let free = window.saturating_sub(inboxes[i].len()).min(QUANTUM as usize) as u64;
            for n in 0..free.min(each - sent[i]) {
                outboxes[i].push(Request { at: Cycle(now + n), sm: SmId(sm), ..make(sm, sent[i]) });
                sent[i] += 1;
            }
            done &= sent[i] == each && inboxes[i].is_empty() && outboxes[i].is_empty();
        }
        if done {
            return sectors as f64 / (last - start) as f64;
        }
        now += QUANTUM;
        Workers::with(1, |w| system.exchange(w, &mut outboxes, &mut inboxes, Cycle(now)));
    }
}
