//! Memory behind the SMs, put together: GPCs, crossbar, second-level cache, DRAM.
//!
//! Works at exchange points, in three steps, each over parts that do not know each other: GPCs send, pairs of slices
//! serve, GPCs receive. Between steps requests are in the order (cycle, GPC, SM, sequence), whatever the number of host
//! threads.

#[cfg(test)]
pub mod harness;
mod order;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;

use crate::config::Config;
use crate::counters::Counters;
use crate::gpc::{Gpc, SharedTlb};
use crate::l2::{Ask, Map, Pair};
use crate::ports::{Request, Response};
use crate::units::{Cycle, LINE, SECTOR, SECTORS};
use crate::workers::Workers;
use order::Order;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Requests of an exchange from which on host threads share the work: fewer are done before they have started.
const WORTH_SHARING: usize = 256;

/// Packets for which the host's caches are asked before they are served.
const AHEAD: usize = 16;

/// A pair of slices and its list of packets in an exchange.
#[derive(Debug, Serialize, Deserialize)]
struct Part {
    pair: Pair,
    #[serde(skip)]
    order: Order,
    /// It is in the list of pairs that this exchange's packets go to.
    wanted: bool,
    anything: bool,
}

/// All memory behind the SMs of a machine.
#[derive(Debug, Serialize, Deserialize)]
pub struct System {
    map: Map,
    gpcs: Vec<Gpc>,
    parts: Vec<Part>,
    tlb: SharedTlb,
    /// Bytes of the second-level cache, and of code that a launch brings along.
    l2_bytes: u64,
    launch_code_bytes: u64,
    busy_until: Cycle,
    /// Pairs that packets of this exchange go to.
    wanted: Vec<u32>,
}

impl Part {
    /// Serves what the GPCs sent here.
    fn serve(&mut self, number: usize, gpcs: &[Gpc]) {
        self.order.clear();
        let Some(first) = gpcs.iter().filter_map(|gpc| gpc.packets.first()).min() else { return };
        for (g, gpc) in gpcs.iter().enumerate() {
            let asks = gpc.packets.of(number).iter().enumerate();
            self.order.extend(asks.map(|(n, ask)| (ask.at.since(first), g as u32, n as u32)));
        }
        self.order.sort();
        // What each GPC sent here, and its half.
        let lists: SmallVec<[(u32, &[Ask]); 16]> =
            gpcs.iter().map(|gpc| (gpc.half, gpc.packets.of(number))).collect();
        let find = |(g, n): (u32, u32)| {
            let (half, asks) = lists[g as usize];
            (half, &asks[n as usize])
        };
        let all = self.order.list();
        for key in all.iter().take(AHEAD) {
            let (half, ask) = find(key.place());
            self.pair.expect(half, ask);
        }
        for (k, key) in all.iter().enumerate() {
            if let Some(key) = all.get(k + AHEAD) {
                let (half, ask) = find(key.place());
                self.pair.expect(half, ask);
            }
            let (g, n) = key.place();
            let (half, ask) = find((g, n));
            gpcs[g as usize].packets.answer(number, n, self.pair.serve(half, ask));
        }
        self.anything |= !all.is_empty();
    }
}

impl System {
    pub fn new(config: &Config) -> System {
        let map = Map::new(&config.l2, &config.dram);
        let mut first = 0;
        let gpcs = (0..config.tpcs.len())
            .map(|n| {
                let gpc = Gpc::new(config, n, first);
                first = gpc.sms().end;
                gpc
            })
            .collect();
        let parts = (0..map.pairs())
            .map(|n| Part {
                pair: Pair::new(map, &config.l2, &config.dram, n),
                order: Order::default(),
                wanted: false,
                anything: false,
            })
            .collect();
        let lines = u64::from(config.l2.slices) * u64::from(config.l2.sets) * u64::from(config.l2.ways);
        System {
            map,
            gpcs,
            parts,
            tlb: SharedTlb::new(&config.gpc),
            l2_bytes: lines * LINE,
            launch_code_bytes: config.gpc.launch_code_bytes.into(),
            busy_until: Cycle(0),
            wanted: Vec::new(),
        }
    }

    /// Takes the SMs' requests up to cycle `until`, a list an SM in the order of cycles, and adds their answers to the
    /// SMs' lists, which are left in the order of cycles.
    pub fn exchange(
        &mut self,
        workers: &Workers,
        outboxes: &mut [Vec<Request>],
        inboxes: &mut [Vec<Response>],
        until: Cycle,
    ) {
        let requests: usize = outboxes.iter().map(Vec::len).sum();
        if requests == 0 {
            return;
        }
        let last = if workers.threads() == 1 || requests < WORTH_SHARING {
            self.alone(outboxes, inboxes, until)
        } else {
            self.shared(workers, outboxes, inboxes, until)
        };
        self.busy_until = self.busy_until.later(last);
        for gpc in &mut self.gpcs {
            gpc.enter_walked(&mut self.tlb);
        }
    }

    fn alone(&mut self, outboxes: &mut [Vec<Request>], inboxes: &mut [Vec<Response>], until: Cycle) -> Cycle {
        for gpc in &mut self.gpcs {
            let sms = gpc.sms();
            gpc.send(&outboxes[sms], &self.tlb, &self.map);
        }
        self.wanted.clear();
        for gpc in &self.gpcs {
            for &pair in gpc.packets.pairs() {
                let wanted = &mut self.parts[pair as usize].wanted;
                if !std::mem::replace(wanted, true) {
                    self.wanted.push(pair);
                }
            }
        }
        for (k, &n) in self.wanted.iter().enumerate() {
            // While one serves, the host's caches are asked for the next.
            if let Some(&next) = self.wanted.get(k + 1) {
                self.parts[next as usize].pair.expect_all();
            }
            let part = &mut self.parts[n as usize];
            part.wanted = false;
            part.serve(n as usize, &self.gpcs);
        }
        let receive = |gpc: &mut Gpc| {
            let sms = gpc.sms();
            gpc.receive(&mut outboxes[sms.clone()], &mut inboxes[sms], until)
        };
        self.gpcs.iter_mut().map(receive).max().unwrap_or_default()
    }

    fn shared(
        &mut self,
        workers: &Workers,
        outboxes: &mut [Vec<Request>],
        inboxes: &mut [Vec<Response>],
        until: Cycle,
    ) -> Cycle {
        let (tlb, map) = (&self.tlb, &self.map);
        let all: &[Vec<Request>] = outboxes;
        workers.each(&mut self.gpcs, |_, gpc| gpc.send(&all[gpc.sms()], tlb, map));
        let gpcs = &self.gpcs;
        workers.each(&mut self.parts, |n, part| part.serve(n, gpcs));
        let mut sides = Vec::with_capacity(self.gpcs.len());
        let (mut requests, mut answers) = (outboxes, inboxes);
        for gpc in &mut self.gpcs {
            let (own, others) = requests.split_at_mut(gpc.sms().len());
            let (own_answers, other_answers) = answers.split_at_mut(gpc.sms().len());
            (requests, answers) = (others, other_answers);
            sides.push((gpc, own, own_answers, Cycle(0)));
        }
        workers.each(&mut sides, |_, (gpc, own, answers, last)| *last = gpc.receive(own, answers, until));
        sides.iter().map(|side| side.3).max().unwrap_or_default()
    }

    /// SMs that it serves.
    pub fn sms(&self) -> usize {
        self.gpcs.last().map_or(0, |g| g.sms().end)
    }

    /// When the last answer so far reaches its SM.
    pub fn busy_until(&self) -> Cycle {
        self.busy_until
    }

    /// What was counted since the last reset.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.gpcs.iter().for_each(|g| sum.add(&g.counters));
        self.parts.iter().for_each(|p| sum.add(&p.pair.counters));
        sum
    }

    pub fn reset_counters(&mut self) {
        self.gpcs.iter_mut().for_each(Gpc::reset_counters);
        self.parts.iter_mut().for_each(|p| p.pair.counters = Counters::default());
    }

    /// A GPC's cache forgets code, and constants with it.
    pub fn forget_code(&mut self, gpc: usize) {
        if let Some(gpc) = self.gpcs.get_mut(gpc) {
            gpc.forget_code();
        }
    }

    /// Cold caches: everything is written back and forgotten, translations too. Nothing may be under way.
    pub fn flush(&mut self) {
        self.gpcs.iter_mut().for_each(Gpc::clear);
        for part in &mut self.parts {
            if std::mem::take(&mut part.anything) {
                part.pair.clear();
            }
        }
        self.tlb.clear();
        self.busy_until = Cycle(0);
    }

    /// A launch brings its constants along: they are in the caches behind the SMs' before its first CTA starts.
    pub fn preload_constants(&mut self, address: u64, bytes: u64) {
        let lines = address / LINE..(address + bytes).div_ceil(LINE);
        self.gpcs.iter_mut().for_each(|g| g.preload(lines.clone()));
    }

    /// The beginning of a launch's code comes along with the first line of it that a GPC needs.
    pub fn expect_code(&mut self, address: u64, bytes: u64) {
        let end = address + bytes.min(self.launch_code_bytes);
        let lines = address / LINE..end.div_ceil(LINE);
        self.gpcs.iter_mut().for_each(|g| g.expect_code(lines.clone()));
    }

    /// A copy from the host to device memory passes through the second-level cache and leaves lines there.
    pub fn host_write(&mut self, address: u64, bytes: u64) {
        // What does not fit in the end need not come in.
        let kept = bytes.min(self.l2_bytes);
        let (start, end) = (address + (bytes - kept), address + bytes);
        for line in start / LINE..end.div_ceil(LINE) {
            let sector = |n: u32| line * LINE + u64::from(n) * SECTOR;
            let sectors = (0..SECTORS).filter(|&n| sector(n) + SECTOR > start && sector(n) < end);
            let part = &mut self.parts[self.map.pair(line) as usize];
            part.pair.host_write(line, sectors.fold(0, |all, n| all | 1 << n));
            part.anything = true;
        }
    }
}
