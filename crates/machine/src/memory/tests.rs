//! The port harness for every memory block, and what the whole does with single requests.

use super::System;
use super::harness::{self, Subject};
use super::testing::{ask, h200, latency, preset, rate, request};
use crate::config::Config;
use crate::counters::Counters;
use crate::crossbar::Channels;
use crate::dram::Channel;
use crate::gpc::{Gpc, SharedTlb};
use crate::l2::{Ask, Map, Pair};
use crate::ports::{Request, RequestKind, Response};
use crate::units::{Cycle, LINE};
use crate::workers::Workers;

fn response(request: &Request, at: Cycle) -> Response {
    Response { at, token: request.token, line: request.line, sectors: request.sectors, kind: request.kind }
}

/// Requests of all ports in the order of cycles.
fn merged(out: &mut [Vec<Request>]) -> Vec<Request> {
    let mut all: Vec<Request> = out.iter_mut().flat_map(std::mem::take).collect();
    all.sort_by_key(|r| (r.at, r.sm));
    all
}

fn ordered(into: &mut [Vec<Response>]) {
    into.iter_mut().for_each(|list| list.sort_by_key(|r| r.at));
}

struct Whole {
    config: Config,
    system: System,
    threads: usize,
}

impl Subject for Whole {
    fn ports(&self) -> usize {
        self.config.sms() as usize
    }

    fn exchange(&mut self, out: &mut [Vec<Request>], into: &mut [Vec<Response>], until: Cycle) {
        Workers::with(self.threads, |w| self.system.exchange(w, out, into, until));
    }

    fn flush(&mut self) {
        self.system.flush();
    }

    fn minimum(&self, kind: RequestKind) -> u64 {
        let c = &self.config;
        let way = match kind {
            RequestKind::Instruction | RequestKind::Constant => c.gpc.l15_latency,
            // It may meet one that is nearly there.
            RequestKind::Load => c.gpc.latency,
            _ => c.gpc.latency + 2 * c.crossbar.latency + c.l2.latency,
        };
        u64::from(2 * c.tpc.latency + way)
    }

    fn width(&self) -> f64 {
        self.config.tpc.sm_bytes_per_cycle
    }
}

#[test]
fn whole_system() {
    for name in Config::presets() {
        harness::check(|threads| {
            let config = preset(name);
            Whole { system: System::new(&config), config, threads }
        });
    }
}

/// A GPC before memory that answers at once.
struct LoneGpc {
    config: Config,
    gpc: Gpc,
    tlb: SharedTlb,
    map: Map,
}

impl Subject for LoneGpc {
    fn ports(&self) -> usize {
        self.gpc.sms().len()
    }

    fn exchange(&mut self, out: &mut [Vec<Request>], into: &mut [Vec<Response>], until: Cycle) {
        self.gpc.send(out, &self.tlb, &self.map);
        for pair in 0..self.map.pairs() as usize {
            for (n, ask) in (0..).zip(self.gpc.packets.of(pair)) {
                self.gpc.packets.answer(pair, n, ask.at);
            }
        }
        self.gpc.receive(out, into, until);
        self.gpc.enter_walked(&mut self.tlb);
    }

    fn flush(&mut self) {
        self.gpc.clear();
        self.tlb.clear();
    }

    fn minimum(&self, _: RequestKind) -> u64 {
        u64::from(2 * self.config.tpc.latency + self.config.gpc.l15_latency.min(self.config.gpc.latency))
    }

    fn width(&self) -> f64 {
        self.config.tpc.sm_bytes_per_cycle
    }
}

#[test]
fn gpc() {
    harness::check(|_| {
        let config = h200();
        let map = Map::new(&config.l2, &config.dram);
        LoneGpc { gpc: Gpc::new(&config, 0, 0), tlb: SharedTlb::new(&config.gpc), map, config }
    });
}

/// A pair of slices with a port in each half.
struct LonePair {
    config: Config,
    map: Map,
    pair: Pair,
}

impl Subject for LonePair {
    fn ports(&self) -> usize {
        2
    }

    fn exchange(&mut self, out: &mut [Vec<Request>], into: &mut [Vec<Response>], _: Cycle) {
        for request in merged(out) {
            let ask = Ask {
                at: request.at,
                place: self.map.place(request.line / LINE).1,
                line: (request.line / LINE) as u32,
                sectors: request.sectors,
                kind: request.kind,
                whole: request.whole,
                depth: request.depth,
                operations: request.operations,
            };
            let at = self.pair.serve(u32::from(request.sm.0), &ask);
            into[request.sm.0 as usize].push(response(&request, at));
        }
        ordered(into);
    }

    fn flush(&mut self) {
        self.pair.clear();
    }

    fn minimum(&self, _: RequestKind) -> u64 {
        u64::from(self.config.l2.latency)
    }

    /// What is near and what comes over the link.
    fn width(&self) -> f64 {
        self.config.l2.bytes_per_cycle + self.config.l2.far_bytes_per_cycle
    }
}

#[test]
fn l2() {
    harness::check(|_| {
        let config = h200();
        let map = Map::new(&config.l2, &config.dram);
        LonePair { pair: Pair::new(map, &config.l2, &config.dram, 0), map, config }
    });
}

struct LoneChannel {
    config: Config,
    channel: Channel,
}

impl Subject for LoneChannel {
    fn ports(&self) -> usize {
        1
    }

    fn exchange(&mut self, out: &mut [Vec<Request>], into: &mut [Vec<Response>], _: Cycle) {
        for request in merged(out) {
            let accesses = request.sectors.count_ones().div_ceil(2);
            let at = self.channel.access(request.at, request.line, accesses, &mut Counters::default());
            into[0].push(response(&request, at));
        }
        ordered(into);
    }

    fn flush(&mut self) {
        self.channel.clear();
    }

    fn minimum(&self, _: RequestKind) -> u64 {
        u64::from(self.config.dram.latency + self.config.dram.column)
    }

    fn width(&self) -> f64 {
        self.config.dram.bytes_per_cycle
    }

    fn kinds(&self) -> &'static [RequestKind] {
        &[RequestKind::Load]
    }
}

#[test]
fn dram() {
    harness::check(|_| {
        let config = h200();
        LoneChannel { channel: Channel::new(&config.dram, 0), config }
    });
}

/// A GPC's channels with an echo at their end.
struct LoneChannels {
    config: Config,
    channels: Channels,
}

impl Subject for LoneChannels {
    fn ports(&self) -> usize {
        1
    }

    fn exchange(&mut self, out: &mut [Vec<Request>], into: &mut [Vec<Response>], _: Cycle) {
        for request in merged(out) {
            let size = self.channels.request_size(request.kind, request.sectors);
            let there = self.channels.send(request.at, size);
            let size = self.channels.answer_size(request.kind, request.sectors);
            let at = self.channels.receive(there, size);
            into[0].push(response(&request, at));
        }
        ordered(into);
    }

    fn flush(&mut self) {
        self.channels.clear();
    }

    fn minimum(&self, _: RequestKind) -> u64 {
        u64::from(2 * self.config.crossbar.latency)
    }

    fn width(&self) -> f64 {
        self.config.crossbar.answer_bytes_per_cycle
    }
}

#[test]
fn crossbar() {
    harness::check(|_| {
        let mut config = h200();
        config.crossbar.answer_bytes_per_cycle = 32.0;
        LoneChannels { channels: Channels::new(&config.crossbar), config }
    });
}

/// Lines of the h200 whose home is the half of SM 0, or the other.
fn line_at_home(far: bool) -> u64 {
    let config = h200();
    let map = Map::new(&config.l2, &config.dram);
    (0x10_0000_0000u64 / LINE..)
        .find(|&line| (map.place(line).1.home == 1) == far)
        .map(|line| line * LINE)
        .expect("both halves are homes")
}

#[test]
fn latencies_of_an_h200() {
    use RequestKind::{Atomic, Load};
    let near = line_at_home(false);
    let far = line_at_home(true);
    let mut system = System::new(&h200());
    // Pages are known from here on; other sectors of the line are not read yet, and their row is open.
    latency(&mut system, request(0, 0, near, 1, Load));
    let open = latency(&mut system, request(10_000, 0, near, 4, Load));
    assert!((465..=480).contains(&open), "{open}");
    latency(&mut system, request(20_000, 0, near, 1, Load));
    system.host_write(far, 128);
    let mut at = 100_000;
    let mut time = |address, kind| {
        at += 10_000;
        latency(&mut system, request(at, 0, address, 1, kind))
    };
    assert!((233..=240).contains(&time(near, Load)), "{}", time(near, Load));
    let first = time(far, Load);
    assert!((408..=418).contains(&first), "{first}");
    // The copy that is near now.
    let second = time(far, Load);
    assert!((233..=240).contains(&second), "{second}");
    let atomic = time(near, Atomic);
    // The measured 288 of a dependent chain has the operation that feeds it in it.
    assert!((230..=245).contains(&atomic), "{atomic}");
}

#[test]
fn loads_from_dram_take_what_was_measured() {
    let mut system = System::new(&h200());
    let map = Map::new(&h200().l2, &h200().dram);
    let mut random = harness::Random(5);
    let mut sums = [(0u64, 0u64); 2];
    for n in 0..4000u64 {
        let address = 0x10_0000_0000 + random.below(1 << 23) * LINE;
        let cycles = latency(&mut system, request(n * 2000, 0, address, 1, RequestKind::Load));
        // Pages are known after a while.
        if n > 2500 {
            let sum = &mut sums[map.place(address / LINE).1.home as usize];
            *sum = (sum.0 + cycles, sum.1 + 1);
        }
    }
    let mean = sums.map(|(sum, n)| sum / n);
    assert!((515..=560).contains(&mean[0]) && (690..=740).contains(&mean[1]), "{mean:?}");
}

#[test]
fn what_is_counted() {
    let mut config = h200();
    config.gpc.barrier_sectors = 0;
    (config.gpc.launch_sectors, config.gpc.launch_misses) = (0, 0);
    let mut system = System::new(&config);
    let base = 0x10_0000_0000;
    let lines = 8192u64;
    let load = |n: u64, sm: u16, kind| request(n / 8, sm, base + n * LINE, 15, kind);
    let reads: Vec<Request> = (0..lines).map(|n| load(n, (n % 132) as u16, RequestKind::Load)).collect();
    ask(&mut system, 132, &reads);
    let c = system.counters();
    // Half of the lines are looked up in both halves, and miss in both.
    assert_eq!(c.l2_load_sectors, 4 * lines);
    let lookups = c.l2_sectors as f64 / (4 * lines) as f64;
    assert!((1.45..1.55).contains(&lookups), "{lookups}");
    assert_eq!(c.l2_hits, 0);
    assert_eq!(c.dram_read_bytes, lines * LINE);
    system.reset_counters();
    let writes: Vec<Request> = (0..lines).map(|n| load(n, (n % 132) as u16, RequestKind::Store)).collect();
    ask(&mut system, 132, &writes);
    let c = system.counters();
    assert_eq!((c.l2_hits, c.dram_read_bytes, c.dram_write_bytes), (c.l2_sectors, 0, 0));
    // One sector of DRAM's 64 bytes brings its neighbour.
    system.flush();
    system.reset_counters();
    ask(&mut system, 132, &[request(0, 0, base, 0b0001, RequestKind::Load)]);
    ask(&mut system, 132, &[request(5000, 0, base, 0b0010, RequestKind::Load)]);
    let c = system.counters();
    assert_eq!((c.dram_read_bytes, c.tlb_misses, c.tlb_requests), (64, 1, 2));
}

#[test]
fn the_last_barrier_goes_to_every_slice_that_an_sm_used() {
    let mut system = System::new(&h200());
    let mut count = |lines: u64, sms: u64| {
        system.reset_counters();
        let before = system.counters().l2_sectors;
        let stores: Vec<Request> = (0..lines)
            .flat_map(|n| (0..sms).map(move |sm| (n, sm)))
            .map(|(n, sm)| request(n, sm as u16, NEAR_BASE + n * LINE, 15, RequestKind::Store))
            .collect();
        ask(&mut system, 132, &stores);
        let c = system.counters();
        c.l2_sectors - c.l2_store_sectors - c.l2_far_sectors - before
    };
    // As measured: 1, 2, 8 for 128 bytes, 1 KB, 4 KB an SM, all slices for 64 KB, and the same number for their pairs.
    assert_eq!(count(1, 1), 2);
    assert_eq!(count(8, 1), 2 * 2);
    assert_eq!(count(32, 1), 2 * 8);
    assert_eq!(count(32, 3), 2 * 8 * 3);
    assert_eq!(count(4000, 1), 2 * 96);
}

/// A base of addresses in these tests.
const NEAR_BASE: u64 = 0x10_0000_0000;

/// Rates of the whole machine in sectors a cycle, as measured on the real one, in percent of which ours may differ.
#[test]
fn rates_of_an_h200() {
    use RequestKind::{Load, Reduction, Store};
    let line = |n: u64| NEAR_BASE + n * LINE;
    // 2 MB that all SMs read from places of their own: copies are near after a while.
    let hit = |sm: u16, n: u64| line((u64::from(sm) * 997 + n) % 16384);
    let own = |sm: u16, n: u64| line(u64::from(sm) * 100_003 + n);
    let mut system = System::new(&h200());
    let mut check = |name: &str, sms: u16, each: u64, measured: f64, make: &dyn Fn(u16, u64) -> Request| {
        rate(&mut system, 0..sms, 512, each / 4, make);
        let ours = rate(&mut system, 0..sms, 512, each, make);
        let off = (ours / measured - 1.0) * 100.0;
        (off.abs() > 15.0).then(|| format!("{name}: {ours:.1}, measured {measured:.1}"))
    };
    let off: Vec<String> = [
        check("L2 hits, all SMs", 132, 2000, 4400.0 / 32.0, &|sm, n| request(0, sm, hit(sm, n), 15, Load)),
        check("L2 hits, one SM", 1, 8000, 122.0 / 32.0, &|sm, n| request(0, sm, hit(sm, n), 15, Load)),
        check("scattered sectors, all SMs", 132, 2000, 90.0, &|sm, n| {
            request(0, sm, hit(sm, n * 379), 1 << (n % 4), Load)
        }),
        check("stores, all SMs", 132, 2000, 78.0, &|sm, n| request(0, sm, own(sm, n % 256), 15, Store)),
        check("stores of a sector, all SMs", 132, 2000, 39.0, &|sm, n| {
            request(0, sm, own(sm, n % 256), 1, Store)
        }),
        check("reductions on one address", 132, 100, 0.69, &|sm, _| request(0, sm, line(0), 1, Reduction)),
        check("reductions of whole lines", 132, 1000, 40.0, &|sm, n| {
            request(0, sm, own(sm, n % 256), 15, Reduction)
        }),
    ]
    .into_iter()
    .flatten()
    .collect();
    assert!(off.is_empty(), "{off:#?}");
    let mut system = System::new(&h200());
    let read = rate(&mut system, 0..132, 512, 4000, |sm, n| {
        // Grids walk through memory together: SM after SM, CTA after CTA.
        request(0, sm, line((n / 8 * 132 + u64::from(sm)) * 8 + n % 8), 15, Load)
    });
    assert!(
        (read * 32.0 / 2273.0 - 1.0).abs() < 0.1,
        "DRAM: {:.0} bytes a cycle, measured 2273",
        read * 32.0
    );
}

#[test]
fn sms_of_a_gpc_share_what_is_under_way() {
    let mut system = System::new(&h200());
    let base = 0x10_0000_0000;
    let of = |sm: u16| request(u64::from(sm), sm, base, 15, RequestKind::Load);
    let answers = ask(&mut system, 132, &[of(0), of(1), of(2), of(20)]);
    let c = system.counters();
    assert_eq!((c.coalesced_requests, c.dram_read_bytes), (2, LINE));
    assert!(answers[1].at.since(answers[0].at) < 20);
}

#[test]
fn copies_from_the_host_stay_up_to_their_share() {
    let mut system = System::new(&h200());
    let base = 0x10_0000_0000u64;
    // What the real one keeps of a copy of so many megabytes, in percent.
    for (megabytes, kept) in [(24, 93), (32, 77), (48, 51), (64, 37), (128, 19)] {
        system.flush();
        system.host_write(base, megabytes << 20);
        system.reset_counters();
        let mut random = harness::Random(megabytes);
        let reads: Vec<Request> = (0..8192)
            .map(|n| {
                let line = random.below((megabytes << 20) / LINE);
                request(n * 10, 0, base + line * LINE, 1, RequestKind::Load)
            })
            .collect();
        ask(&mut system, 132, &reads);
        let missed = system.counters().dram_read_bytes / 64;
        let found = 100 - missed * 100 / 8192;
        assert!(found.abs_diff(kept) <= 5, "{megabytes} MB: {found} % found, {kept} % measured");
    }
}

#[test]
fn dirty_lines_are_written_back_when_they_give_way() {
    let config = preset("tiny");
    let mut system = System::new(&config);
    let lines = u64::from(config.l2.slices * config.l2.sets * config.l2.ways);
    let base = 0x10_0000_0000;
    let writes: Vec<Request> =
        (0..2 * lines).map(|n| request(n * 8, 0, base + n * LINE, 15, RequestKind::Store)).collect();
    ask(&mut system, 1, &writes);
    let c = system.counters();
    assert_eq!(c.dram_read_bytes, 0);
    assert!(c.dram_write_bytes >= lines * LINE * 9 / 10, "{}", c.dram_write_bytes);
    // Parts of sectors are read before they are written back.
    system.flush();
    system.reset_counters();
    let parts: Vec<Request> = writes.iter().map(|w| Request { whole: false, ..*w }).collect();
    ask(&mut system, 1, &parts);
    let c = system.counters();
    assert_eq!(c.dram_read_bytes, c.dram_write_bytes);
}

#[test]
fn code_of_a_launch_comes_with_its_first_line() {
    let mut system = System::new(&h200());
    system.host_write(0, 1 << 17);
    system.expect_code(0, 1 << 17);
    // Another launch comes before its code is needed.
    system.expect_code(1 << 18, 1 << 10);
    let mut of =
        |at: u64, line: u64| latency(&mut system, request(at, 0, line * LINE, 15, RequestKind::Instruction));
    let first = of(1_000, 3);
    let (along, behind) = (of(5_000, 511), of(9_000, 512));
    assert!(along < first && along < behind, "{first} {along} {behind}");
    assert_eq!(of(13_000, 512), along);
}
