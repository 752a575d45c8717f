//! Instruction supply alone: a straight line of code with memory of a fixed latency behind it, and jumps.

use super::*;
use crate::Config;

/// What the core does: looks in the sub-core's own cache, then further out.
fn ask(
    fetch: &mut Fetch,
    now: Cycle,
    sub_core: u32,
    pc: u32,
    sequential: bool,
    out: &mut Vec<Request>,
    counters: &mut Counters,
) -> Fetched {
    let line = 0x1000 / LINE + u64::from(pc) / 8;
    match fetch.own(sub_core, line, counters) {
        Some(ready) => Fetched::At(now.later(ready)),
        None => fetch.miss(now, sub_core, line, sequential, out, counters),
    }
}

/// One warp and a memory behind that answers after a time.
struct Bench {
    fetch: Fetch,
    now: u64,
    latency: u64,
    out: Vec<Request>,
    /// Requests sent, in all.
    sent: usize,
    answers: Vec<Response>,
    counters: Counters,
}

impl Bench {
    fn new(latency: u64) -> Bench {
        let spec = Config::preset("h200").expect("a preset").sm.fetch;
        let mut fetch = Fetch::new(&spec, SmId(0), 4);
        fetch.begin_launch();
        Bench {
            fetch,
            now: 0,
            latency,
            out: Vec::new(),
            sent: 0,
            answers: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// Runs until the instruction at `pc` can issue.
    fn enter(&mut self, sub_core: u32, pc: u32, sequential: bool) {
        loop {
            let fetched = ask(
                &mut self.fetch,
                Cycle(self.now),
                sub_core,
                pc,
                sequential,
                &mut self.out,
                &mut self.counters,
            );
            self.sent += self.out.len();
            let latency = self.latency;
            let answer = |r: Request| Response {
                at: r.at + latency,
                token: r.token,
                line: r.line,
                sectors: r.sectors,
                kind: r.kind,
            };
            self.answers.extend(self.out.drain(..).map(answer));
            match fetched {
                Fetched::At(at) => {
                    self.now = at.0;
                    return;
                }
                Fetched::Pending => self.wait(),
            }
        }
    }

    /// Takes answers until one wakes the warp.
    fn wait(&mut self) {
        let mut ready = Vec::new();
        while ready.is_empty() {
            let r = self.answers.remove(0);
            self.now = self.now.max(r.at.0);
            self.fetch.respond(&r, &mut ready);
        }
    }

    /// Cycles an instruction for one pass over straight-line code.
    fn pass(&mut self, instructions: u32) -> f64 {
        let start = self.now;
        for pc in 0..instructions {
            while self.answers.first().is_some_and(|r| r.at.0 <= self.now) {
                let r = self.answers.remove(0);
                self.fetch.respond(&r, &mut Vec::new());
            }
            if pc % 8 == 0 {
                self.enter(0, pc, pc > 0);
            }
            self.now += 1;
        }
        (self.now - start) as f64 / f64::from(instructions)
    }
}

#[test]
fn what_fits_runs_at_full_rate() {
    let mut bench = Bench::new(70);
    bench.pass(1536);
    let warm = bench.pass(1536);
    assert!(warm < 1.03, "{warm}");
    assert_eq!(bench.counters.icache_requests, 2 * 1536 / 8);
}

/// On an H200 code of 48 to 96 KB runs at 2.21 cycles an instruction, of 192 KB and more at 5.65.
#[test]
fn larger_code_runs_at_the_rate_of_the_level_behind() {
    for (latency, expected) in [(70, 2.21), (366, 5.65)] {
        let mut bench = Bench::new(latency);
        bench.pass(6144);
        let rate = bench.pass(6144);
        assert!((rate / expected - 1.0).abs() < 0.06, "latency {latency}: {rate}, expected {expected}");
    }
}

#[test]
fn a_jump_waits_for_its_line_only() {
    let mut bench = Bench::new(300);
    bench.enter(0, 4000, false);
    assert_eq!(bench.now, 300);
    // The line and seven that follow it.
    assert_eq!(bench.sent, 8);
    // Again, from the sub-core's own cache, and from the SM's cache for another sub-core.
    bench.enter(0, 4001, false);
    assert_eq!(bench.now, 300);
    bench.enter(1, 4000, false);
    let latency = Config::preset("h200").expect("a preset").sm.fetch.l1_latency;
    assert_eq!(bench.now, 300 + u64::from(latency));
    assert_eq!(bench.sent, 8);
}

#[test]
fn a_miss_of_one_sub_core_does_not_hold_up_others() {
    let mut bench = Bench::new(300);
    bench.enter(1, 0, false);
    let (now, mut out) = (Cycle(bench.now), Vec::new());
    let miss = ask(&mut bench.fetch, now, 0, 8000, false, &mut out, &mut bench.counters);
    assert_eq!(miss, Fetched::Pending);
    assert_eq!(ask(&mut bench.fetch, now, 1, 0, false, &mut out, &mut bench.counters), Fetched::At(now));
    // Two sub-cores that want the same line share one request.
    let sent = out.len();
    assert_eq!(ask(&mut bench.fetch, now, 1, 8000, false, &mut out, &mut bench.counters), Fetched::Pending);
    assert_eq!(out.len(), sent);
}

#[test]
fn nothing_is_left_after_invalidation() {
    let mut bench = Bench::new(100);
    bench.enter(0, 0, false);
    bench.fetch.invalidate();
    let before = bench.now;
    bench.answers.clear();
    bench.fetch.flights.clear();
    bench.enter(0, 0, false);
    assert_eq!(bench.now, before + 100);
}
