//! GPC: pipeline manager, first level of address translation, cache behind the instruction and constant caches of its
//! SMs, and the point where equal requests of its SMs meet.

mod coalescer;
mod l15;
mod mmu;
mod packets;
mod spec;

pub use mmu::Shared as SharedTlb;
pub use spec::Spec;

use crate::config::Config;
use crate::counters::Counters;
use crate::crossbar::Channels;
use crate::l2::{Ask, Map, Place};
use crate::ports::{Request, RequestKind, Response, merge, sort};
use crate::tpc::Port;
use crate::units::{Cycle, LINE, Token};
use coalescer::Coalescer;
use l15::L15;
use mmu::Mmu;
use packets::Packets;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// No packet.
const NONE: u32 = u32::MAX;
/// All sectors of a line.
const ALL: u8 = 15;

/// A request of this exchange and what it waits for.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Waiting {
    line: u64,
    /// When sectors that were here or under way are in the GPC.
    ready: Cycle,
    token: Token,
    /// Its own packet.
    packet: u32,
    /// A packet of another request that brings some of its sectors.
    follows: u32,
    /// The GPC's SM that asked, or [`NOBODY`].
    sm: u16,
    /// Sectors that the request is for and, in the upper half, those that its own packet is for.
    sectors: u8,
    kind: RequestKind,
}

/// Asks where the GPC fetches ahead for itself.
const NOBODY: u16 = u16::MAX;

impl Waiting {
    #[inline(always)]
    fn new(sm: usize, request: &Request) -> Waiting {
        Waiting {
            line: request.line,
            ready: Cycle(0),
            token: request.token,
            packet: NONE,
            follows: NONE,
            sm: sm as u16,
            sectors: request.sectors,
            kind: request.kind,
        }
    }
}

/// Answers that what they need is asked of the host's caches ahead of.
const LOOK_AHEAD: usize = 8;

/// Cycles between requests of an exchange up to which they are brought in order by counting.
const SPAN: u64 = 4096;

/// The memory side of one GPC: all that its SMs share on the way to the crossbar and back.
#[derive(Debug, Serialize, Deserialize)]
pub struct Gpc {
    /// Which half of the second-level cache is near.
    pub half: u32,
    first_sm: usize,
    sms: usize,
    /// TPC, place in the TPC and coalescer of each SM.
    places: Vec<(u16, u16, u16)>,
    ports: Vec<Port>,
    latency: u64,
    coalescers: Vec<Coalescer>,
    /// Lines that the cache for code and constants fetches at once.
    fill_lines: u64,
    /// Cycles from a request leaving for the slices until its answer leaves there, at least: the way, and both.
    way: u64,
    to_answer: u64,
    /// Sectors counted for each slice that an SM uses in a launch, and for the launch: found, and not.
    barrier_sectors: u64,
    launch_sectors: u64,
    launch_misses: u64,
    /// Slices that each SM has used in this launch, a bit each, and 64-bit words of them an SM.
    used: Vec<u64>,
    used_words: usize,
    /// Answers that each SM's list had before this exchange's.
    before: Vec<u32>,
    late: Vec<Response>,
    #[serde(skip)]
    keys: Vec<u64>,
    l15: L15,
    /// Lines of code of launches: the first of them that is missing brings the others along.
    ahead: Vec<Range<u64>>,
    mmu: Mmu,
    channels: Channels,
    /// Requests of this exchange: the SM and the number of each in the order of cycles, and what they wait for.
    order: Vec<(u16, u32)>,
    counts: Vec<u32>,
    waiting: Vec<Waiting>,
    /// Packets of this exchange that go to memory partitions.
    #[serde(skip)]
    pub packets: Packets,
    pub counters: Counters,
}

impl Gpc {
    /// GPC number `n`, whose SMs begin with `first_sm`.
    pub fn new(config: &Config, n: usize, first_sm: usize) -> Gpc {
        let tpcs = config.tpcs[n];
        let per_tpc = config.sms_per_tpc;
        let sms = (tpcs * per_tpc) as usize;
        let shared_by = config.gpc.coalescer_tpcs.clamp(1, tpcs.max(1));
        Gpc {
            half: config.crossbar.halves.get(n).map_or(0, |h| h % config.l2.halves.max(1)),
            first_sm,
            sms,
            places: (0..sms as u32)
                .map(|sm| ((sm / per_tpc) as u16, (sm % per_tpc) as u16, (sm / per_tpc / shared_by) as u16))
                .collect(),
            ports: (0..tpcs).map(|_| Port::new(&config.tpc, per_tpc)).collect(),
            latency: u64::from(config.gpc.latency),
            coalescers: (0..tpcs.div_ceil(shared_by))
                .map(|_| Coalescer::new(config.gpc.coalescer_entries, config.gpc.coalescer_followers))
                .collect(),
            fill_lines: (u64::from(config.gpc.l15_fill_bytes) / LINE).max(1),
            way: u64::from(config.crossbar.latency),
            to_answer: u64::from(config.crossbar.latency + config.l2.latency),
            barrier_sectors: config.gpc.barrier_sectors.into(),
            launch_sectors: config.gpc.launch_sectors.into(),
            launch_misses: config.gpc.launch_misses.into(),
            used: vec![0; sms * config.l2.slices.div_ceil(64) as usize],
            used_words: config.l2.slices.div_ceil(64) as usize,
            before: vec![0; sms],
            late: Vec::new(),
            keys: Vec::new(),
            l15: L15::new(&config.gpc),
            ahead: Vec::new(),
            mmu: Mmu::new(&config.gpc),
            channels: Channels::new(&config.crossbar),
            order: Vec::new(),
            counts: Vec::new(),
            waiting: Vec::new(),
            packets: Packets::default(),
            counters: Counters::default(),
        }
    }

    /// Its SMs, counted over all GPCs.
    pub fn sms(&self) -> Range<usize> {
        self.first_sm..self.first_sm + self.sms
    }

    /// Takes the requests of its SMs, one list an SM in the order of cycles, and makes packets of what the GPC cannot
    /// answer. The lists stay until [`Gpc::receive`].
    pub fn send(&mut self, outboxes: &[Vec<Request>], shared: &SharedTlb, map: &Map) {
        self.sort(outboxes);
        if self.order.is_empty() {
            return;
        }
        self.packets.begin(map.pairs());
        let order = std::mem::take(&mut self.order);
        for &(sm, n) in &order {
            self.request(sm.into(), &outboxes[sm as usize][n as usize], shared, map);
        }
        self.order = order;
        self.packets.end();
    }

    /// Brings requests in the order of cycles; SMs and their own order decide between equals.
    fn sort(&mut self, outboxes: &[Vec<Request>]) {
        self.order.clear();
        let (mut first, mut last, mut len) = (Cycle::NEVER, Cycle(0), 0);
        for (sm, outbox) in outboxes.iter().enumerate() {
            if let (Some(a), Some(b)) = (outbox.first(), outbox.last()) {
                self.ports[usize::from(self.places[sm].0)].expect_request(a.at);
                first = Cycle(first.0.min(a.at.0));
                last = last.later(b.at);
                len += outbox.len();
            }
        }
        let all = outboxes.iter().enumerate();
        let all =
            all.flat_map(|(sm, o)| o.iter().enumerate().map(move |(n, r)| (r.at, (sm as u16, n as u32))));
        if last.since(first) >= SPAN {
            self.order.extend(all.map(|(_, place)| place));
            self.order.sort_by_key(|&(sm, n)| outboxes[sm as usize][n as usize].at);
            return;
        }
        let cycles = last.since(first) as usize + 1;
        self.counts.clear();
        self.counts.resize(cycles + 1, 0);
        let cycle = |at: Cycle| (at.since(first) as usize).min(cycles - 1);
        for r in outboxes.iter().flatten() {
            self.counts[cycle(r.at) + 1] += 1;
        }
        for n in 0..cycles {
            self.counts[n + 1] += self.counts[n];
        }
        self.order.resize(len, (0, 0));
        for (at, place) in all {
            let next = &mut self.counts[cycle(at)];
            self.order[*next as usize] = place;
            *next += 1;
        }
    }

    #[inline(always)]
    fn request(&mut self, sm: usize, request: &Request, shared: &SharedTlb, map: &Map) {
        let (tpc, _, meeting) = self.places[sm];
        let size = self.channels.request_size(request.kind, request.sectors);
        let at = self.ports[tpc as usize].send(request.at, size);
        let line = request.line / LINE;
        if request.kind.is_code() {
            return self.request_code(sm, request, at, shared, map);
        }
        let to = map.place(line);
        self.count_use(sm, &to, map);
        let mut missing = request.sectors;
        let mut waiting = Waiting::new(sm, request);
        let at = self.translate(at, request.line, shared) + self.latency;
        let is_load = request.kind == RequestKind::Load;
        if is_load {
            let met = self.coalescers[meeting as usize].meet(at + self.way, line, missing);
            if met.sectors != 0 {
                self.counters.coalesced_requests += 1;
                missing &= !met.sectors;
                (waiting.follows, waiting.ready) = (met.packet, met.ready);
            }
        }
        if missing != 0 {
            waiting.packet = self.packet_to(at, request, line, missing, to);
            waiting.sectors |= missing << 4;
            if is_load {
                let answered = at + self.to_answer;
                self.coalescers[meeting as usize].sent(line, missing, waiting.packet, answered);
            }
        }
        self.waiting.push(waiting);
    }

    /// A request for code or constants: the cache here answers, or fetches the line and its neighbours.
    fn request_code(&mut self, sm: usize, request: &Request, at: Cycle, shared: &SharedTlb, map: &Map) {
        let line = request.line / LINE;
        let met = self.l15.look_up(at, line, request.sectors);
        let mut waiting = Waiting { follows: met.packet, ready: met.ready, ..Waiting::new(sm, request) };
        if met.sectors == request.sectors {
            self.waiting.push(waiting);
            return;
        }
        let at = self.translate(at, request.line, shared) + self.latency;
        waiting.packet = self.packet_to(at, request, line, ALL, map.place(line));
        waiting.sectors |= ALL << 4;
        self.l15.sent(line, ALL, waiting.packet);
        self.waiting.push(waiting);
        let first = line & !(self.fill_lines - 1);
        let neighbours = first..first + self.fill_lines;
        let ahead = self.ahead.iter().position(|lines| lines.contains(&line));
        let ahead = ahead.map_or(0..0, |n| self.ahead.swap_remove(n));
        for other in neighbours.chain(ahead) {
            if self.l15.holds(other) {
                continue;
            }
            let packet = self.packet_to(at, request, other, ALL, map.place(other));
            self.l15.sent(other, ALL, packet);
            let ahead = Waiting::new(sm, &Request { line: other * LINE, ..*request });
            self.waiting.push(Waiting { packet, sm: NOBODY, sectors: ALL << 4, ..ahead });
        }
    }

    #[inline(always)]
    fn translate(&mut self, at: Cycle, address: u64, shared: &SharedTlb) -> Cycle {
        let (known, hit) = self.mmu.translate(at, address, shared);
        self.counters.tlb_requests += 1;
        self.counters.tlb_misses += u64::from(!hit);
        known
    }

    /// Sends a packet to the line's memory partition: its number.
    #[inline(always)]
    fn packet_to(
        &mut self,
        at: Cycle,
        request: &Request,
        line: u64,
        sectors: u8,
        (pair, place): (u32, Place),
    ) -> u32 {
        let size = self.channels.request_size(request.kind, sectors);
        let ask = Ask {
            at: self.channels.send(at, size),
            place,
            line: line as u32,
            sectors,
            kind: request.kind,
            whole: request.whole,
            depth: request.depth,
            operations: request.operations,
        };
        self.packets.put(pair, ask)
    }

    /// An SM uses the slice of a line: the barrier at the launch's end goes there too.
    #[inline(always)]
    fn count_use(&mut self, sm: usize, (pair, place): &(u32, Place), map: &Map) {
        let slice = (pair * map.halves() + u32::from(place.home)) as usize;
        let word = &mut self.used[sm * self.used_words + slice / 64];
        let bit = 1 << (slice % 64);
        if *word & bit == 0 {
            *word |= bit;
            self.counters.l2_sectors += self.barrier_sectors;
            self.counters.l2_hits += self.barrier_sectors;
        }
    }

    /// The answer to request `w`, if there is one, will be brought soon.
    #[inline(always)]
    fn expect_answer(&self, w: usize) {
        if let Some(waiting) = self.waiting.get(w)
            && let (Some(left), Some(&(tpc, sm, _))) =
                (self.packets.left(waiting.packet), self.places.get(usize::from(waiting.sm)))
        {
            self.ports[tpc as usize].expect(left + self.channels.latency(), sm.into());
        }
    }

    /// Brings answers to the SMs, one list an SM; none before `until`. The last one's cycle. Requests are done with.
    pub fn receive(
        &mut self,
        outboxes: &mut [Vec<Request>],
        inboxes: &mut [Vec<Response>],
        until: Cycle,
    ) -> Cycle {
        let mut last = Cycle(0);
        if self.waiting.is_empty() {
            return last;
        }
        outboxes.iter_mut().for_each(Vec::clear);
        self.before.iter_mut().zip(&*inboxes).for_each(|(before, inbox)| *before = inbox.len() as u32);
        for w in 0..self.waiting.len() {
            self.expect_answer(w + LOOK_AHEAD);
            let Waiting { line, ready, token, packet, follows, sm, sectors, kind } = self.waiting[w];
            let is_ahead = sm == NOBODY;
            let sm = if is_ahead { 0 } else { sm as usize };
            let (tpc, place, meeting) = self.places[sm];
            let mut at = ready;
            if let Some(left) = self.packets.left(packet) {
                let here = self.channels.receive(left, self.channels.answer_size(kind, sectors >> 4));
                self.packets.arrived(packet, here);
                at = at.later(here);
                match kind {
                    RequestKind::Load => {
                        self.coalescers[meeting as usize].answered(line / LINE, packet, left, here);
                    }
                    RequestKind::Instruction | RequestKind::Constant => {
                        self.l15.answered(line / LINE, packet, here);
                    }
                    _ => {}
                }
            }
            if is_ahead {
                continue;
            }
            // Who follows came later than who sent the packet, which has arrived.
            if let Some(here) = self.packets.left(follows) {
                at = at.later(here);
            }
            let sectors = sectors & ALL;
            let size = self.channels.answer_size(kind, sectors);
            let at = self.ports[tpc as usize].receive(at, place as usize, size);
            // Who asked for code or constants has waited; others hear of it after the exchange at the earliest.
            let waited = kind.is_code();
            let at = if waited { at } else { at.later(until) };
            last = last.later(at);
            inboxes[sm].push(Response { at, token, line, sectors, kind });
        }
        for (&before, inbox) in self.before.iter().zip(inboxes) {
            let before = before as usize;
            if before >= inbox.len() {
                continue;
            }
            sort(&mut inbox[before..], &mut self.keys, &mut self.late);
            merge(inbox, before, &mut self.late);
        }
        self.waiting.clear();
        self.packets.clear();
        last
    }

    /// Enters what its TLB missed in the shared one.
    pub fn enter_walked(&mut self, shared: &mut SharedTlb) {
        for page in self.mmu.walked.drain(..) {
            shared.enter(page);
        }
    }

    /// Lines of code that a launch brings along as soon as one of them is missing.
    pub fn expect_code(&mut self, lines: Range<u64>) {
        if !lines.is_empty() && !self.ahead.contains(&lines) {
            self.ahead.push(lines);
        }
    }

    /// Lines of constants that a launch brings along.
    pub fn preload(&mut self, lines: Range<u64>) {
        lines.for_each(|line| self.l15.preload(line));
    }

    /// Counts from nothing: a launch begins.
    pub fn reset_counters(&mut self) {
        let (l2_hits, misses) = (self.launch_sectors, self.launch_misses);
        self.counters = Counters { l2_sectors: l2_hits + misses, l2_hits, ..Counters::default() };
        self.used.fill(0);
    }

    /// Forgets code and constants.
    pub fn forget_code(&mut self) {
        self.l15.clear();
    }

    /// Forgets what it holds and who uses what when.
    pub fn clear(&mut self) {
        self.ports.iter_mut().for_each(Port::clear);
        self.coalescers.iter_mut().for_each(Coalescer::clear);
        self.l15.clear();
        self.ahead.clear();
        self.mmu.clear();
        self.channels.clear();
    }
}
