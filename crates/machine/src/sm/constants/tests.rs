//! Constant caches alone, with a memory of a fixed latency behind them.

use super::*;
use crate::Config;
use proptest::prelude::*;

/// Cycles of the level behind: what an H200 shows beyond the first level.
const BEHIND: u64 = 69;

struct Bench {
    constants: Constants,
    now: u64,
    answers: Vec<Response>,
    counters: Counters,
}

fn answers(out: Vec<Request>) -> impl Iterator<Item = Response> {
    out.into_iter().map(|r| Response {
        at: r.at + BEHIND,
        token: r.token,
        line: r.line,
        sectors: r.sectors,
        kind: r.kind,
    })
}

impl Bench {
    fn new(preset: &str) -> Bench {
        let spec = Config::preset(preset).expect("a preset").sm.constants;
        let mut constants = Constants::new(&spec, SmId(3), 4);
        constants.begin_launch(0x20_0000);
        Bench { constants, now: 0, answers: Vec::new(), counters: Counters::default() }
    }

    /// Cycles of one load on its own.
    fn load(&mut self, offsets: &[u32]) -> u64 {
        let start = self.now;
        let mut out = Vec::new();
        let loaded = self.constants.load(Cycle(start), 3, offsets, 7, &mut out, &mut self.counters);
        self.answers.extend(answers(out));
        self.now = match loaded {
            Fetched::At(at) => at.0,
            Fetched::Pending => self.wait(),
        };
        self.now - start
    }

    /// When the one load that waits is done.
    fn wait(&mut self) -> u64 {
        loop {
            let r = self.answers.remove(0);
            let (mut out, mut done) = (Vec::new(), Vec::new());
            self.constants.respond(&r, &mut out, &mut done, &mut self.counters);
            self.answers.extend(answers(out));
            if let [(owner, at)] = done[..] {
                assert_eq!(owner, 7);
                return at.0;
            }
        }
    }

    /// Average cycles of the second of two passes over loads that depend on each other.
    fn chain(&mut self, stride: u32, bytes: u32) -> u64 {
        for offset in (0..bytes).step_by(stride as usize) {
            self.load(&[offset]);
        }
        let start = self.now;
        for offset in (0..bytes).step_by(stride as usize) {
            self.load(&[offset]);
        }
        (self.now - start) / u64::from(bytes / stride)
    }
}

/// Rows measured on an H200: loads over 1.5 KB take 29 cycles, over 3 KB and more 97; with a stride of 256 bytes eight lines
/// fit and twelve do not.
/// What the core does: looks in the sub-core's own cache, then further out.
fn operand(
    bench: &mut Bench,
    now: Cycle,
    sub_core: u32,
    (bank, offset): (u8, u32),
    out: &mut Vec<Request>,
) -> Fetched {
    match bench.constants.own(sub_core, bank, offset, &mut bench.counters) {
        Some(ready) => Fetched::At(now.later(ready)),
        None => bench.constants.miss(now, sub_core, bank, offset, out, &mut bench.counters),
    }
}

#[test]
fn loads_cost_what_the_level_that_has_them_costs() {
    for (stride, bytes, cycles) in
        [(64, 1536, 28), (64, 3072, 97), (64, 32768, 97), (256, 2048, 28), (256, 3072, 97)]
    {
        assert_eq!(Bench::new("h200").chain(stride, bytes), cycles, "stride {stride}, {bytes} bytes");
    }
}

/// Rows measured on an H200: k places cost 10.8 cycles more each; sixteen lines 256 bytes apart miss one after the
/// other, 1,293 cycles in all.
#[test]
fn places_are_read_one_after_the_other() {
    for (places, stride, measured) in
        [(1, 4, 27.78), (2, 4, 38.61), (8, 4, 103.58), (32, 4, 363.45), (8, 256, 103.58), (16, 256, 1292.7)]
    {
        let mut bench = Bench::new("h200");
        let offsets: Vec<u32> = (0..places).map(|n| n * stride).collect();
        bench.load(&offsets);
        let cycles = bench.load(&offsets) as f64;
        assert!((cycles / measured - 1.0).abs() < 0.02, "{places} places, stride {stride}: {cycles}");
    }
}

#[test]
fn the_unit_serves_one_place_after_the_other() {
    let mut bench = Bench::new("h200");
    let offsets: Vec<u32> = (0..16).map(|n| n * 4).collect();
    bench.load(&offsets);
    let now = Cycle(bench.now);
    let mut load = || bench.constants.load(now, 3, &offsets, 0, &mut Vec::new(), &mut bench.counters);
    let (Fetched::At(first), Fetched::At(second)) = (load(), load()) else { panic!("both are there") };
    assert_eq!(second - first, 32);
}

#[test]
fn operands_are_there_or_on_their_way() {
    let mut bench = Bench::new("h200");
    let mut out = Vec::new();
    let ask = |bench: &mut Bench, now, sub_core, out: &mut Vec<Request>| {
        operand(bench, Cycle(now), sub_core, (0, 0x210), out)
    };
    assert_eq!(ask(&mut bench, 10, 0, &mut out), Fetched::Pending);
    assert_eq!(ask(&mut bench, 11, 1, &mut out), Fetched::Pending);
    assert_eq!(ask(&mut bench, 12, 0, &mut out), Fetched::Pending);
    // One request for all of them: the lower half of the line.
    assert_eq!(out.len(), 1);
    assert_eq!((out[0].line, out[0].sectors, out[0].sm), (0x20_0200, 0b0011, SmId(3)));
    let r = answers(out).next().expect("an answer");
    let (mut out, mut done) = (Vec::new(), Vec::new());
    bench.constants.respond(&r, &mut out, &mut done, &mut bench.counters);
    assert!(out.is_empty() && done.is_empty());
    assert_eq!(ask(&mut bench, 80, 0, &mut out), Fetched::At(Cycle(80)));
    assert_eq!(ask(&mut bench, 80, 1, &mut out), Fetched::At(Cycle(80)));
    assert_eq!((bench.counters.constant_requests, bench.counters.constant_misses), (2, 2));
    // Another sub-core has its own cache.
    assert_eq!(ask(&mut bench, 90, 2, &mut out), Fetched::Pending);
    bench.constants.invalidate();
    assert_eq!(ask(&mut bench, 95, 0, &mut out), Fetched::Pending);
}

#[test]
fn a_cache_behind_both_spares_the_way_out() {
    let mut bench = Bench::new("tiny");
    let spec = Config::preset("tiny").expect("a preset").sm.constants;
    bench.load(&[64]);
    let mut out = Vec::new();
    let now = Cycle(bench.now);
    let at = operand(&mut bench, now, 0, (3, 64), &mut out);
    assert_eq!(at, Fetched::At(now + u64::from(spec.shared_latency)));
    assert!(out.is_empty());
}

proptest! {
    /// Whatever comes in which order: every load that waits is done exactly once, and no line is asked for while it
    /// is on its way.
    #[test]
    fn every_load_is_done_once(
        loads in proptest::collection::vec((0u64..200, proptest::collection::hash_set(0u32..8192, 1..8)), 1..40),
        pick in proptest::collection::vec(any::<u16>(), 400),
    ) {
        let mut bench = Bench::new("h200");
        let (mut flights, mut open, mut done) = (Vec::new(), Vec::new(), Vec::new());
        let mut pick = pick.into_iter().cycle();
        let mut now = 0;
        for (owner, (pause, offsets)) in loads.into_iter().enumerate() {
            now += pause;
            let mut offsets: Vec<u32> = offsets.into_iter().collect();
            offsets.sort_unstable();
            let mut out = Vec::new();
            let owner = owner as u64;
            let loaded = bench.constants.load(Cycle(now), 1, &offsets, owner, &mut out, &mut bench.counters);
            if loaded == Fetched::Pending {
                open.push(owner);
            }
            flights.extend(answers(out));
            if pause % 3 == 0 && !flights.is_empty() {
                let r = flights.swap_remove(usize::from(pick.next().unwrap_or(0)) % flights.len());
                now = now.max(r.at.0);
                let mut out = Vec::new();
                bench.constants.respond(&r, &mut out, &mut done, &mut bench.counters);
                flights.extend(answers(out));
            }
        }
        while !flights.is_empty() {
            let mut lines: Vec<(u64, u8)> = flights.iter().map(|r| (r.line, r.sectors)).collect();
            lines.sort_unstable();
            lines.dedup();
            prop_assert_eq!(lines.len(), flights.len());
            let r = flights.swap_remove(usize::from(pick.next().unwrap_or(0)) % flights.len());
            let mut out = Vec::new();
            bench.constants.respond(&r, &mut out, &mut done, &mut bench.counters);
            flights.extend(answers(out));
        }
        let mut owners: Vec<u64> = done.iter().map(|d| d.0).collect();
        owners.sort_unstable();
        prop_assert_eq!(owners, open);
    }
}
