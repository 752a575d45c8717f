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
