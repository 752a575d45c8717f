//! Tests of the unit alone: latencies, rates, counters of access patterns measured on an H200, and that every access is
//! done exactly once whatever memory answers.

use super::coalesce::Lines;
use super::*;
use crate::Config;
use crate::memory::harness::{self, Subject};
use crate::ports::RequestKind;
use proptest::prelude::*;
use simt::resident::Where;
use std::collections::VecDeque;

const FULL: u32 = u32::MAX;

fn unit() -> LoadStore {
    let config = Config::preset("h200").expect("a preset");
    LoadStore::new(SmId(0), &config.sm, 4, 64)
}

fn access(space: Space, size: u32, place: Where, mask: u32) -> Access {
    let mut a = Access { space, mask, size, place, ..Access::default() };
    match space {
        Space::Shared => a.shared = mask,
        Space::Local => a.local = mask,
        _ => a.global = mask,
    }
    a
}

fn scattered(space: Space, size: u32, at: impl Fn(u64) -> u64) -> Access {
    let mut a = access(space, size, Where::Lanes, FULL);
    for lane in 0..32 {
        a.lanes[lane] = at(lane as u64);
    }
    a
}

fn op(kind: Kind, access: &Access, owner: u64) -> Operation<'_> {
    let registers = access.size.div_ceil(4);
    let warp = owner as u32 % 64;
    let cache = Cache::Default;
    let (sub_core, local_base) = (warp % 4, 1 << 40);
    Operation {
        kind,
        access,
        cache,
        sub_core,
        warp,
        owner,
        registers,
        rounds: 1,
        local_base,
        is_remapped: false,
    }
}

/// The unit with a memory that answers after a fixed time, in order.
struct Bench {
    unit: LoadStore,
    latency: u64,
    out: Vec<Request>,
    flying: VecDeque<Request>,
    done: Vec<Done>,
    counters: Counters,
    all: Vec<Request>,
}

impl Bench {
    fn new(latency: u64) -> Bench {
        Bench {
            unit: unit(),
            latency,
            out: Vec::new(),
            flying: VecDeque::new(),
            done: Vec::new(),
            counters: Counters::default(),
            all: Vec::new(),
        }
    }

    /// Answers what is due by `now`.
    fn answer(&mut self, now: Cycle) {
        while let Some(r) = self.flying.front().filter(|r| r.at + self.latency <= now).copied() {
            self.flying.pop_front();
            let response = Response {
                at: r.at + self.latency,
                token: r.token,
                line: r.line,
                sectors: r.sectors,
                kind: r.kind,
            };
            self.unit.respond(&response, &mut self.done, &mut self.counters);
        }
    }

    fn issue(&mut self, now: Cycle, op: &Operation) -> Issued {
        self.answer(now);
        let issued = self.unit.issue(now, op, &mut self.out, &mut self.counters);
        self.all.extend_from_slice(&self.out);
        self.flying.extend(self.out.drain(..));
        issued
    }

    /// Issues as soon as there is room; the cycle of the issue.
    fn queue(&mut self, now: Cycle, op: &Operation) -> Cycle {
        let mut at = now;
        loop {
            self.answer(at);
            match self.unit.room(op.sub_core, op.path()) {
                Cycle::NEVER => at = self.flying.front().map_or(at, |r| r.at + self.latency),
                room => {
                    at = at.later(room);
                    break;
                }
            }
        }
        self.issue(at, op);
        at
    }

    /// When an access that is issued now has its result, waiting for memory if need be.
    fn result(&mut self, now: Cycle, op: &Operation) -> Cycle {
        match self.issue(now, op).result {
            Outcome::At(at) => at,
            Outcome::Pending => {
                self.answer(Cycle(u64::MAX / 2));
                self.done.iter().find(|d| d.owner == op.owner).map_or(Cycle::NEVER, |d| d.at)
            }
        }
    }
}

#[test]
fn a_load_that_hits_takes_32_cycles_and_more_when_it_is_wide() {
    let mut b = Bench::new(200);
    let all = access(Space::Global, 16, Where::Consecutive(0), FULL);
    let mut now = b.result(Cycle(100), &op(Kind::Load, &all, 0));
    for (size, lanes, cycles) in [(4, FULL, 32), (8, 1, 32), (8, FULL, 34), (16, 1, 34), (16, FULL, 40)] {
        now += 100;
        let a = access(Space::Global, size, Where::Consecutive(0), lanes);
        assert_eq!(b.result(now, &op(Kind::Load, &a, 1)) - now, cycles, "{size} bytes, lanes {lanes:x}");
    }
}

#[test]
fn a_miss_goes_out_and_comes_back() {
    let mut b = Bench::new(235);
    let a = access(Space::Global, 4, Where::Consecutive(4096), FULL);
    let at = b.result(Cycle(1000), &op(Kind::Load, &a, 1));
    assert_eq!(at - Cycle(1000), 8 + 12 + 235 + 22);
    assert_eq!(b.all.len(), 1);
    assert_eq!((b.all[0].line, b.all[0].sectors, b.all[0].kind), (4096, 15, RequestKind::Load));
    assert!(b.unit.is_idle());
}

#[test]
fn loads_of_a_sector_on_its_way_hit_and_wait() {
    let mut b = Bench::new(235);
    let a = access(Space::Global, 4, Where::Same(64), FULL);
    for owner in 0..4 {
        assert_eq!(b.issue(Cycle(owner), &op(Kind::Load, &a, owner)).result, Outcome::Pending);
    }
    b.answer(Cycle(1000));
    assert_eq!(b.all.len(), 1);
    assert_eq!(b.done.iter().map(|d| d.owner).collect::<Vec<_>>(), [0, 1, 2, 3]);
    // As ffma_ilp1_w4 of the sweep: of four warps that load one word, three hit.
    assert_eq!((b.counters.l1_sectors, b.counters.l1_hits), (4, 3));
}

#[test]
fn shared_memory_conflicts_cost_passes() {
    for (stride, ways) in [(1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 32), (33, 1)] {
        let a = scattered(Space::Shared, 4, |l| l * stride * 4);
        let mut b = Bench::new(0);
        let at = b.result(Cycle(100), &op(Kind::Load, &a, 0));
        // One warp alone: two cycles a pass more.
        assert_eq!(at - Cycle(100), 23 + 2 * (ways - 1), "stride {stride}");
        assert_eq!(b.counters.bank_conflicts, ways - 1);
        // Many warps: one cycle a pass.
        let mut last = Cycle(1000);
        for n in 0..256u64 {
            last = b.queue(Cycle(1000), &op(Kind::Load, &a, n));
        }
        let each = (last - Cycle(1000)) as f64 / 256.0;
        assert!((each / ways as f64 - 1.0).abs() < 0.2, "stride {stride}: {each} cycles");
    }
}

#[test]
fn shared_words_are_shared_and_wide_accesses_go_in_parts() {
    let passes = |size, at: &dyn Fn(u64) -> u64| shared::passes(&scattered(Space::Shared, size, at), FULL);
    assert_eq!(passes(4, &|l| l / 2 * 4), (1, 1));
    // Words in any order, some wanted twice.
    assert_eq!(passes(4, &|l| (l * 7 % 16) * 4), (1, 1));
    assert_eq!(passes(4, &|l| (31 - l) * 128), (32, 1));
    assert_eq!(passes(4, &|l| (l % 4) * 128 + 4), (4, 1));
    assert_eq!(passes(8, &|l| l * 8), (2, 2));
    assert_eq!(passes(16, &|l| l * 16), (4, 4));
    assert_eq!(passes(16, &|_| 0), (4, 4));
    assert_eq!(passes(1, &|l| l), (1, 1));
}

#[test]
fn what_no_lane_does_takes_the_way_all_the_same() {
    for space in [Space::Shared, Space::Global] {
        let a = access(space, 4, Where::Same(0), 0);
        let mut b = Bench::new(0);
        assert_eq!(b.result(Cycle(100), &op(Kind::Load, &a, 0)) - Cycle(100), 23, "{space:?}");
    }
}

#[test]
fn shared_atomics_on_one_address_follow_each_other() {
    let a = access(Space::Shared, 4, Where::Same(0), 1);
    let mut b = Bench::new(0);
    assert_eq!(b.result(Cycle(100), &op(Kind::Atomic, &a, 0)) - Cycle(100), 26);
    let a = access(Space::Shared, 4, Where::Same(0), FULL);
    assert_eq!(b.result(Cycle(1000), &op(Kind::Atomic, &a, 0)) - Cycle(1000), 26 + 31 * 2);
    // A compare-and-swap goes twice for each lane; increments are counted before they go.
    let swap = Operation { rounds: 2, ..op(Kind::Atomic, &a, 0) };
    assert_eq!(b.result(Cycle(1500), &swap) - Cycle(1500), 26 + 63 * 2);
    let counted = |b: &mut Bench, n| b.queue(Cycle(40_000), &op(Kind::Reduction, &a, n));
    let last = (0..512).map(|n| counted(&mut b, n)).last().unwrap_or(Cycle(0));
    assert!((last - Cycle(40_000)) < 4 * 512 + 64);
    let mut b = Bench::new(0);
    let mut last = Cycle(0);
    for n in 0..512u64 {
        last = b.queue(Cycle(2000), &op(Kind::Atomic, &a, n));
    }
    assert!(((last - Cycle(2000)) as f64 / 512.0 - 32.0).abs() < 2.0);
}

/// A sweep kernel's loads: 264 CTAs of 256 threads, two an SM, `count` loads a thread, then one store.
fn sweep(count: u64, index: impl Fn(u64, &mut u64) -> u64) -> Counters {
    let mut sum = Counters::default();
    let (x, o) = (1u64 << 32, 1u64 << 33);
    for sm in 0..132u64 {
        let mut b = Bench::new(300);
        b.unit.set_split(8 << 10);
        let mut state: Vec<u64> = vec![0; 512];
        let mut now = Cycle(1000);
        for k in 0..=count {
            for warp in 0..16u64 {
                let thread = |l: u64| (sm + warp / 8 * 132) * 256 + warp % 8 * 32 + l;
                let a = if k == count {
                    access(Space::Global, 4, Where::Consecutive(o + thread(0) * 4), FULL)
                } else {
                    let mut a = access(Space::Global, 4, Where::Lanes, FULL);
                    for l in 0..32 {
                        let s = &mut state[(warp * 32 + l) as usize];
                        if k == 0 {
                            *s = thread(l);
                        }
                        a.lanes[l as usize] = x + 4 * index(k, s);
                    }
                    a
                };
                let kind = if k == count { Kind::Store } else { Kind::Load };
                now = b.queue(now, &op(kind, &a, warp)) + 1;
            }
        }
        b.answer(Cycle(u64::MAX / 2));
        assert!(b.unit.is_idle());
        sum.add(&b.counters);
    }
    sum
}

/// Within a share of what the hardware counted.
fn near(ours: u64, theirs: u64, share: f64) -> bool {
    (ours as f64 - theirs as f64).abs() <= theirs as f64 * share
}

#[test]
fn strided_loads_count_as_the_hardware_does() {
    // l1tex__t_sectors and l1tex__data_bank_conflicts_pipe_lsu of stride_*.
    for (stride, sectors, conflicts) in
        [(1, 76_032, 1_269), (8, 549_120, 103_157), (16, 549_120, 204_156), (32, 549_120, 394_923)]
    {
        let c = sweep(8, |k, t| (*t * stride + k * 65536) & 4_194_303);
        assert_eq!(c.l1_requests, 19_008);
        assert_eq!(c.l1_sectors, sectors, "stride {stride}");
        assert!(
            // Here accesses follow each other without a pause: more of them meet what comes and leaves.
            near(c.bank_conflicts, conflicts, 0.1) || stride == 1,
            "stride {stride}: {}",
            c.bank_conflicts
        );
    }
}

#[test]
fn gathers_count_as_the_hardware_does() {
    let gather = |mask: u64| {
        sweep(8, |k, s| {
            let mut h = *s as u32;
            if k == 0 {
                h = h.wrapping_mul(2_654_435_761);
            }
            h ^= h >> 15;
            h = h.wrapping_mul(0x2c1b_3c6d);
            h ^= h >> 12;
            *s = h.into();
            u64::from(h) & mask
        })
    };
    let c = gather(16_383);
    assert_eq!(c.l1_sectors, 545_009);
    assert!(near(c.l1_hits, 302_860, 0.01), "{}", c.l1_hits);
    let c = gather(262_143);
    assert_eq!(c.l1_sectors, 548_866);
    assert!(near(c.l1_hits, 22_980, 0.2), "{}", c.l1_hits);
}

#[derive(Clone, Debug)]
struct Random {
    kind: usize,
    space: usize,
    size: u32,
    place: usize,
    base: u64,
    spread: u64,
    mask: u32,
    cache: bool,
    gap: u64,
    delay: u64,
}

fn random() -> impl Strategy<Value = Random> {
    let shape = (0..6usize, 0..4usize, 0..5u32, 0..3usize, 0..256u64);
    let rest = (1..200u64, any::<u32>(), any::<bool>(), 0..20u64, 1..500u64);
    (shape, rest).prop_map(|((kind, space, size, place, base), (spread, mask, cache, gap, delay))| Random {
        kind,
        space,
        size: 1 << size,
        place,
        base,
        spread,
        mask,
        cache,
        gap,
        delay,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Every owner is done once, at issue or by an answer, whatever order answers come in; requests leave in order.
    #[test]
    fn every_access_is_done_once(list in prop::collection::vec(random(), 1..200), small in any::<bool>()) {
        let kinds = [Kind::Load, Kind::Store, Kind::Atomic, Kind::Reduction, Kind::Prefetch, Kind::Shuffle];
        let spaces = [Space::Global, Space::Shared, Space::Local, Space::Generic];
        let mut unit = unit();
        if small {
            // Some lines only: much is thrown out.
            unit.set_split((256 << 10) - 4096);
        }
        let (mut out, mut done, mut counters) = (Vec::new(), Vec::new(), Counters::default());
        let mut flying: Vec<(Request, Cycle)> = Vec::new();
        let mut state: Vec<u32> = Vec::new();
        let mut now = Cycle(1000);
        let mut sent = Cycle(0);
        for (owner, r) in list.iter().enumerate() {
            now += r.gap;
            // Answers come in the order of their times, as at an exchange point.
            flying.sort_by_key(|f| f.1);
            while let Some(&(q, at)) = flying.first().filter(|f| f.1 <= now) {
                flying.remove(0);
                let answer = Response { at, token: q.token, line: q.line, sectors: q.sectors, kind: q.kind };
                unit.respond(&answer, &mut done, &mut counters);
            }
            let size = u64::from(r.size);
            let place = [Where::Consecutive(r.base * size), Where::Same(r.base * size), Where::Lanes][r.place];
            let mut a = access(spaces[r.space], r.size, place, r.mask);
            if r.space == 3 {
                a.place = Where::Lanes;
                (a.global, a.shared, a.local) = (r.mask & 0x00ff_f00f, r.mask & 0xff00_0f00, r.mask & 0xf0);
            }
            for lane in 0..32u64 {
                a.lanes[lane as usize] = (r.base + lane * lane * r.spread % 4099) * size;
            }
            let kind = if r.space == 2 && r.kind < 5 { kinds[r.kind % 2] } else { kinds[r.kind] };
            let cache = if r.cache { Cache::Default } else { Cache::Cg };
            let o = Operation { cache, ..op(kind, &a, owner as u64) };
            let issued = unit.issue(now, &o, &mut out, &mut counters);
            prop_assert!(issued.operands_read >= now);
            match issued.result {
                Outcome::At(at) => {
                    prop_assert!(at >= now);
                    state.push(1);
                }
                Outcome::Pending => state.push(0),
            }
            for q in out.drain(..) {
                prop_assert!(q.at >= sent && q.sectors != 0 && q.line % 128 == 0);
                sent = q.at;
                flying.push((q, q.at + r.delay));
            }
            if owner % 50 == 49 {
                unit.invalidate();
            }
        }
        for (q, at) in flying {
            let answer = Response { at, token: q.token, line: q.line, sectors: q.sectors, kind: q.kind };
            unit.respond(&answer, &mut done, &mut counters);
        }
        for d in done {
            state[d.owner as usize] += 1;
        }
        prop_assert!(state.iter().all(|&n| n == 1), "{:?}", state);
        prop_assert!(unit.is_idle());
        prop_assert!(counters.l1_hits <= counters.l1_sectors);
    }
}

#[test]
fn a_chase_overflows_the_cache_as_on_the_hardware() {
    // chase_ca_*KB, and what memory behind takes so that a miss costs what it did there.
    for (kb, cycles) in [(64, 32.8), (128, 32.3), (192, 32.3), (224, 66.6), (256, 196.2), (320, 280.1)] {
        let n = kb * 8;
        let mut b = Bench::new(238);
        b.unit.set_split(8 << 10);
        let mut order: Vec<u64> = (0..n).collect();
        let mut r = 12_345u64;
        for i in (1..n).rev() {
            r = r.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            order.swap(i as usize, ((r >> 33) % (i + 1)) as usize);
        }
        let mut now = Cycle(1000);
        let mut from = now;
        for _ in 0..2 {
            from = now;
            for &l in &order {
                let a = access(Space::Global, 8, Where::Same((1 << 32) + l * 128), 1);
                b.done.clear();
                now = b.result(now, &op(Kind::Load, &a, 5));
            }
        }
        let each = (now - from) as f64 / n as f64;
        assert!((each / cycles - 1.0).abs() < 0.05, "{kb} KB: {each} cycles, hardware {cycles}");
    }
}

#[test]
fn tag_banks_cost_what_the_hardware_takes() {
    // Cycles of the tag stage by stride in words, and the pairs of neighbouring lines that need two.
    let tags = |a: &Access| {
        let mut p = Pieces::default();
        p.global(a, FULL);
        let cache = Tags::new(1 << 16, 4);
        p.expect(&cache);
        p.look_up(4, &cache);
        (p.rounds(), p.passes(false), p.passes(true))
    };
    for (stride, cycles) in [(32, 8), (33, 8), (40, 10), (64, 8), (1024, 8)] {
        assert_eq!(tags(&scattered(Space::Global, 4, |l| l * stride * 4)).0, cycles, "stride {stride}");
    }
    let twice = (0..8192u64)
        .filter(|w| tags(&access(Space::Global, 4, Where::Consecutive(w * 128 + 4), FULL)).0 == 2)
        .count();
    assert_eq!(twice, 585);
    // Words of one bank in several lines take a pass each. Lines that miss go through the banks four at most at a time,
    // those that hit all at once. Measured, passes and conflicts: stride 32: 32 and 24, 32 and 31; 33: 8 and 0, 1 and 0.
    for (stride, miss, hit) in [
        (1, (1, 1), (1, 1)),
        (2, (2, 1), (2, 1)),
        (4, (4, 1), (4, 1)),
        (8, (8, 2), (8, 1)),
        (16, (16, 4), (16, 1)),
        (32, (32, 8), (32, 1)),
        (33, (8, 8), (1, 1)),
    ] {
        let (_, missed, found) = tags(&scattered(Space::Global, 4, |l| l * stride * 4));
        assert_eq!([(missed.passes, missed.groups), (found.passes, found.groups)], [miss, hit], "{stride}");
    }
}

#[test]
fn stores_are_known_until_they_are_acknowledged() {
    let mut b = Bench::new(300);
    let a = access(Space::Global, 4, Where::Consecutive(4096), FULL);
    let hits = |b: &mut Bench, now: u64, kind: Kind, owner: u64| {
        let before = b.counters.l1_hits;
        b.issue(Cycle(now), &op(kind, &a, owner));
        b.counters.l1_hits - before
    };
    assert_eq!(hits(&mut b, 100, Kind::Store, 1), 0);
    assert_eq!(hits(&mut b, 120, Kind::Store, 2), 4);
    // Acknowledged: unknown again. Nothing can be read from a line that was only written.
    assert_eq!(hits(&mut b, 2000, Kind::Store, 3), 0);
    assert_eq!(hits(&mut b, 2100, Kind::Load, 4), 0);
    // A line that was loaded is updated and stays.
    assert_eq!(hits(&mut b, 4000, Kind::Store, 5), 4);
    assert_eq!(hits(&mut b, 6000, Kind::Load, 6), 4);
}

#[test]
fn stores_leave_by_sectors_and_parts_of_sectors_take_longer() {
    // Cycles an instruction of one SM: a line, a word in each sector of 8 lines, a word in each of 32 lines.
    for (stride, cycles) in [(1, 4), (8, 40), (32, 64)] {
        let mut b = Bench::new(300);
        for n in 0..64u64 {
            let a = scattered(Space::Global, 4, |l| n * 65536 + l * stride * 4);
            b.queue(Cycle(1000), &op(Kind::Store, &a, n));
        }
        let time = b.all[b.all.len() - 1].at - b.all[0].at;
        assert!((time as f64 / 63.0 / cycles as f64 - 1.0).abs() < 0.05, "stride {stride}: {time}");
    }
    // A run that begins inside a sector: that sector apart from the whole ones.
    let mut b = Bench::new(300);
    let a = access(Space::Global, 4, Where::Consecutive(128), FULL << 1);
    b.issue(Cycle(100), &op(Kind::Store, &a, 0));
    let sent: Vec<_> = b.all.iter().map(|r| (r.sectors, r.whole)).collect();
    assert_eq!(sent, [(0b1110, true), (0b0001, false)]);
}

#[test]
fn stores_that_cannot_leave_stay_in_their_queue_and_hold_what_is_behind() {
    let mut b = Bench::new(300);
    let a = scattered(Space::Global, 4, |l| l * 128);
    let (backlog, trip) = (b.unit.spec.l1.store_backlog, b.unit.spec.l1.store_trip);
    // The first leaves at once; its 64 cycles of data are what may wait.
    let first = b.issue(Cycle(1000), &op(Kind::Store, &a, 0)).left;
    let second = b.issue(Cycle(1000), &op(Kind::Store, &a, 1)).left;
    let third = b.issue(Cycle(1000), &op(Kind::Store, &a, 2)).left;
    assert_eq!((backlog, third - second), (64, 64));
    assert!(second - first < 64, "{}", second - first);
    // A load comes through the same tags.
    let load = access(Space::Global, 4, Where::Consecutive(1 << 20), FULL);
    assert!(b.issue(Cycle(1004), &op(Kind::Load, &load, 3)).left >= third);
    // Memory is slow: a store that left will be acknowledged late, and the next one leaves as much later.
    let mut b = Bench::new(300);
    b.unit.hold_stores(Cycle(1000 + u64::from(trip)));
    assert_eq!(b.issue(Cycle(1000), &op(Kind::Store, &a, 0)).left, first);
    b.unit.hold_stores(Cycle(5000 + u64::from(trip)));
    assert_eq!(b.issue(Cycle(2000), &op(Kind::Store, &a, 1)).left.0, 5000 - u64::from(backlog) - 8);
}

#[test]
fn atomics_say_how_many_operations_meet() {
    let mut b = Bench::new(300);
    let a = access(Space::Global, 4, Where::Same(256), FULL);
    b.issue(Cycle(100), &op(Kind::Atomic, &a, 0));
    assert_eq!((b.all[0].operations, b.all[0].depth, b.all[0].kind), (32, 32, RequestKind::Atomic));
    // As atomic_warp: a lookup for each lane on the address.
    assert_eq!(b.counters.l1_sectors, 32);
    // As atomic_spread, 28 bytes apart: sectors.
    let a = scattered(Space::Global, 4, |l| l * 28);
    b.issue(Cycle(200), &op(Kind::Reduction, &a, 1));
    assert_eq!(b.counters.l1_sectors, 32 + 28);
    assert_eq!(b.all[1..].iter().map(|r| u32::from(r.operations)).sum::<u32>(), 32);
    assert!(b.all[1..].iter().all(|r| r.depth == 1));
}

#[test]
fn local_memory_is_written_through() {
    let mut b = Bench::new(300);
    let a = access(Space::Local, 4, Where::Same(60), FULL);
    assert_eq!(b.issue(Cycle(1000), &op(Kind::Store, &a, 0)).result, Outcome::Pending);
    assert!(matches!(b.all[..], [r] if r.kind == RequestKind::Store && r.whole && r.sectors == 15));
    // It can be read before memory has it, as far as it was written.
    let now = Cycle(1100);
    assert_eq!(b.result(now, &op(Kind::Load, &a, 1)) - now, 32);
    let next = access(Space::Local, 4, Where::Same(64), FULL);
    assert_eq!(b.issue(now + 100, &op(Kind::Load, &next, 2)).result, Outcome::Pending);
    // Nobody meets it in the banks as it leaves.
    assert_eq!((b.all.len(), b.counters.l1_hits, b.counters.bank_conflicts), (2, 4, 0));
}

#[test]
fn loads_past_the_cache_never_hit() {
    let mut b = Bench::new(300);
    let a = access(Space::Global, 4, Where::Consecutive(0), FULL);
    for n in 0..4 {
        let o = Operation { cache: Cache::Cg, ..op(Kind::Load, &a, n) };
        assert_eq!(b.issue(Cycle(100 + n * 1000), &o).result, Outcome::Pending);
    }
    assert_eq!((b.counters.l1_sectors, b.counters.l1_hits, b.all.len()), (16, 0, 4));
}

/// The unit as a memory port: a request is an access of a warp that touches its sectors.
struct Port(Bench);

impl Subject for Port {
    fn ports(&self) -> usize {
        1
    }

    fn exchange(&mut self, out: &mut [Vec<Request>], into: &mut [Vec<Response>], _until: Cycle) {
        let Port(b) = self;
        for r in out[0].drain(..) {
            let sectors: Vec<u64> = (0..4).filter(|s| r.sectors >> s & 1 != 0).collect();
            let a = scattered(Space::Global, 4, |l| {
                // Eight lanes a sector; atomics on as few addresses as the request has.
                let word = if r.kind == RequestKind::Load { l % 8 } else { 0 };
                r.line + sectors[l as usize % sectors.len()] * 32 + word * 4
            });
            let kind = match r.kind {
                RequestKind::Store => Kind::Store,
                RequestKind::Atomic => Kind::Atomic,
                RequestKind::Reduction => Kind::Reduction,
                _ => Kind::Load,
            };
            let o = op(kind, &a, r.token.0.into());
            let now = r.at.later(b.unit.room(o.sub_core, o.path()));
            let at = b.result(now, &o);
            into[0].push(Response { at, token: r.token, line: r.line, sectors: r.sectors, kind: r.kind });
            b.done.clear();
        }
        into[0].sort_by_key(|r| r.at);
    }

    fn flush(&mut self) {
        *self = Port(Bench::new(self.0.latency));
    }

    fn minimum(&self, kind: RequestKind) -> u64 {
        match kind {
            RequestKind::Load => 32,
            // Address unit, way out, memory.
            _ => 8 + 12 + self.0.latency,
        }
    }

    fn width(&self) -> f64 {
        128.0
    }

    fn kinds(&self) -> &'static [RequestKind] {
        &[RequestKind::Load, RequestKind::Store, RequestKind::Atomic, RequestKind::Reduction]
    }
}

#[test]
fn the_unit_keeps_what_every_memory_port_must() {
    harness::check(|_| Port(Bench::new(235)));
}

#[test]
fn all_that_wait_for_a_line_are_told_in_the_order_of_coming() {
    let mut b = Bench::new(5000);
    let line = access(Space::Global, 4, Where::Consecutive(0), FULL);
    let mut now = Cycle(100);
    // More than a request has room for.
    for owner in 0..30 {
        now = b.queue(now, &op(Kind::Load, &line, owner)) + 4;
    }
    assert_eq!((b.all.len(), b.done.len()), (1, 0));
    b.answer(Cycle(u64::MAX / 2));
    assert!(b.done.iter().map(|d| d.owner).eq(0..30));
    assert!(b.unit.is_idle());
}

#[test]
fn lines_that_were_found_before_are_those_of_the_access() {
    let shapes = [
        scattered(Space::Global, 4, |l| l * 132),
        scattered(Space::Global, 4, |l| 4096 - l * 100),
        access(Space::Global, 4, Where::Halves([0, 1 << 20], [false, true]), FULL),
        access(Space::Global, 8, Where::Consecutive(64), FULL),
        access(Space::Global, 4, Where::Same(640), FULL),
    ];
    let run = |is_prepared: bool| {
        let mut b = Bench::new(300);
        let mut now = Cycle(100);
        for (n, a) in (0..40).zip(shapes.iter().cycle()) {
            let kind = if n % 3 == 2 { Kind::Store } else { Kind::Load };
            let operation = op(kind, a, n);
            if is_prepared {
                // One that does not issue then leaves nothing behind.
                b.unit.prepare_access(&shapes[n as usize % 2]);
                b.unit.forget_access();
                b.unit.prepare_access(a);
            }
            now = b.queue(now, &operation) + 3;
        }
        b.answer(Cycle(u64::MAX / 2));
        (b.all, b.done, b.counters.l1_hits, b.counters.bank_conflicts)
    };
    assert_eq!(run(true), run(false));
}
