//! What the warps of a CTA share: shared memory, barriers, output.

use crate::aligned::Aligned;
use crate::launch::Launch;
use crate::special::Place;
use isa::field::BarMode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Barriers of a CTA.
pub const BARRIERS: usize = 16;

/// What a reduction at a barrier gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Reduction {
    pub count: u32,
    pub all: bool,
    pub any: bool,
}

/// A barrier counts threads; when enough have come, its phase ends.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Barrier {
    phase: u64,
    /// Threads that came in this phase, those that wait among them.
    arrived: u32,
    waiting: u32,
    /// Threads to wait for, when the program says so; else all that live.
    expected: Option<u32>,
    /// Threads whose predicate was true, of those that reduce.
    yes: u32,
    reducing: u32,
    /// Lanes of each warp that came in this phase.
    lanes: Vec<u32>,
    /// Ended phases that waiting threads have not seen yet: phase, result, threads left.
    ended: Vec<(u64, Reduction, u32)>,
}

/// Lanes that come to a barrier.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub warp: u32,
    pub lanes: u32,
    /// Lanes of the warp that have not ended.
    pub live: u32,
    pub yes: u32,
    pub expected: Option<u32>,
    pub mode: BarMode,
}

/// When a child task runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ChildOrder {
    /// After the one that the CTA started before it in this way.
    InTurn,
    /// At any time.
    FireAndForget,
    /// When the whole parent has ended, after those before it.
    Tail,
}

/// A child task that a CTA started.
#[derive(Clone)]
pub struct Child {
    pub launch: Arc<Launch>,
    pub order: ChildOrder,
}

/// State of one CTA.
pub struct CtaState {
    pub index: [u32; 3],
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub place: Place,
    pub shared_bytes: u32,
    pub dynamic_shared: u32,
    /// Threads that have not ended.
    pub live_threads: u32,
    /// Barrier phases that have ended: when this changes, warps that waited may go on.
    pub ended_phases: u64,
    /// What `printf` wrote.
    pub output: Vec<u8>,
    /// Child tasks that it started and that have not ended.
    pub children: u32,
    /// Those among them that nobody has taken yet.
    pub requests: Vec<Child>,
    /// Queues that it appended to since somebody looked.
    pub pushed: bool,
    shared: Aligned,
    barriers: [Barrier; BARRIERS],
    /// Barriers that threads came to, a bit each.
    used: u32,
}

/// What a CTA's state holds besides what follows from its launch.
#[derive(Serialize, Deserialize)]
pub(crate) struct Saved {
    index: [u32; 3],
    place: Place,
    live_threads: u32,
    ended_phases: u64,
    #[serde(with = "crate::arrays::bytes")]
    output: Vec<u8>,
    children: u32,
    #[serde(with = "crate::arrays::bytes")]
    shared: Vec<u8>,
    barriers: [Barrier; BARRIERS],
    used: u32,
}

/// Words of [`CtaState::record`] before those of the barriers, and of a barrier without its lanes.
const HEAD: usize = 6;
const BARRIER: usize = 5;

impl CtaState {
    pub(crate) fn save(&self) -> Saved {
        Saved {
            index: self.index,
            place: self.place,
            live_threads: self.live_threads,
            ended_phases: self.ended_phases,
            output: self.output.clone(),
            children: self.children,
            shared: self.shared().to_vec(),
            barriers: self.barriers.clone(),
            used: self.used,
        }
    }

    /// Makes it what was saved from one of the same launch; false where that cannot be.
    pub(crate) fn restore(&mut self, saved: Saved) -> bool {
        if saved.shared.len() != self.shared_bytes as usize || saved.used >> BARRIERS != 0 {
            return false;
        }
        self.shared.as_mut_slice()[..saved.shared.len()].copy_from_slice(&saved.shared);
        (self.index, self.place) = (saved.index, saved.place);
        (self.live_threads, self.ended_phases) = (saved.live_threads, saved.ended_phases);
        (self.output, self.barriers, self.used) = (saved.output, saved.barriers, saved.used);
        self.children = saved.children;
        true
    }

    /// Bytes of [`CtaState::record`].
    pub(crate) fn record_bytes(launch: &Launch) -> u64 {
        let barriers = launch.kernel.function.barriers.min(BARRIERS as u32);
        4 * (HEAD as u64 + u64::from(barriers) * (BARRIER as u64 + u64::from(launch.warps())))
    }

    /// What the SM holds of the CTA besides shared memory and its warps, as little-endian words: threads that have not ended,
    /// barriers that were used, instructions that warps which have ended executed (themselves and by threads); then of every
    /// barrier the threads that came, those that wait, the count to wait for or 0, those that said yes and those that were
    /// asked, and the lanes of every warp that came. `None` where the program uses barriers that it does not have.
    pub(crate) fn record(&self, launch: &Launch, ended: (u64, u64)) -> Option<Vec<u8>> {
        let barriers = launch.kernel.function.barriers.min(BARRIERS as u32);
        if self.used >> barriers != 0 {
            return None;
        }
        let long = |n: u64| [n as u32, (n >> 32) as u32];
        let mut words = vec![self.live_threads, self.used];
        words.extend(long(ended.0).into_iter().chain(long(ended.1)));
        for b in &self.barriers[..barriers as usize] {
            words.extend([b.arrived, b.waiting, b.expected.unwrap_or(0), b.yes, b.reducing]);
            let lanes = b.lanes.iter().copied().chain(std::iter::repeat(0));
            words.extend(lanes.take(launch.warps() as usize));
        }
        Some(words.into_iter().flat_map(u32::to_le_bytes).collect())
    }

    /// Makes a CTA that has just been started what [`CtaState::record`] saved; what warps that have ended executed.
    pub(crate) fn set_record(&mut self, launch: &Launch, bytes: &[u8]) -> Option<(u64, u64)> {
        let barriers = launch.kernel.function.barriers.min(BARRIERS as u32);
        let words: Vec<u32> =
            bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        let (head, rest) = words.split_at_checked(HEAD)?;
        let long = |n: usize| u64::from(head[n]) | u64::from(head[n + 1]) << 32;
        if head[0] > self.live_threads || head[1] >> barriers != 0 {
            return None;
        }
        (self.live_threads, self.used) = (head[0], head[1]);
        let each = BARRIER + launch.warps() as usize;
        for (b, words) in self.barriers.iter_mut().zip(rest.chunks_exact(each)).take(barriers as usize) {
            *b = Barrier {
                arrived: words[0],
                waiting: words[1],
                expected: Some(words[2]).filter(|&n| n > 0),
                yes: words[3],
                reducing: words[4],
                lanes: words[BARRIER..].to_vec(),
                ..Barrier::default()
            };
        }
        Some((long(2), long(4)))
    }

    pub fn new(grid: [u32; 3], block: [u32; 3], shared_bytes: u32, dynamic_shared: u32) -> CtaState {
        CtaState {
            index: [0; 3],
            grid,
            block,
            place: Place::default(),
            shared_bytes,
            dynamic_shared,
            live_threads: 0,
            ended_phases: 0,
            output: Vec::new(),
            children: 0,
            requests: Vec::new(),
            pushed: false,
            shared: Aligned::zeroed(shared_bytes as usize),
            barriers: Default::default(),
            used: 0,
        }
    }

    /// Makes this the state of another CTA that has not begun.
    pub fn start(&mut self, index: [u32; 3], place: Place) {
        self.index = index;
        self.place = place;
        self.live_threads = self.block.iter().product();
        self.output.clear();
        self.requests.clear();
        (self.children, self.pushed) = (0, false);
        let used = self.shared_bytes as usize;
        self.shared.as_mut_slice()[..used].fill(0);
        while self.used != 0 {
            self.barriers[self.used.trailing_zeros() as usize] = Barrier::default();
            self.used &= self.used - 1;
        }
    }

    pub(crate) fn shared_pointer(&self) -> *mut u8 {
        self.shared.as_ptr()
    }

    /// Shared memory, for whoever looks at a CTA from outside.
    pub fn shared(&self) -> &[u8] {
        &self.shared.as_slice()[..self.shared_bytes as usize]
    }

    pub(crate) fn shared_mut(&mut self) -> &mut [u8] {
        &mut self.shared.as_mut_slice()[..self.shared_bytes as usize]
    }

    /// Lanes come to barrier `id`; the phase that they wait for, if they wait.
    pub fn arrive(&mut self, id: usize, a: Arrival) -> u64 {
        self.used |= 1 << (id % BARRIERS);
        let b = &mut self.barriers[id % BARRIERS];
        let phase = b.phase;
        let n = a.lanes.count_ones();
        b.arrived += n;
        b.expected = a.expected;
        if a.mode != BarMode::Arrive {
            b.waiting += n;
        }
        if !matches!(a.mode, BarMode::Arrive | BarMode::Sync) {
            b.reducing += n;
            b.yes += (a.yes & a.lanes).count_ones();
        }
        if a.expected.is_some() {
            // Counts are in whole warps: with a warp's last lane come the lanes that it lacks.
            let w = a.warp as usize;
            if b.lanes.len() <= w {
                b.lanes.resize(w + 1, 0);
            }
            b.lanes[w] |= a.lanes;
            if b.lanes[w] & a.live == a.live {
                b.arrived += a.live.count_zeros();
            }
        }
        self.settle(id);
        phase
    }

    /// Ends the phase when enough threads have come.
    fn settle(&mut self, id: usize) {
        let live = self.live_threads;
        let b = &mut self.barriers[id % BARRIERS];
        if b.arrived == 0 || b.arrived < b.expected.unwrap_or(live) {
            return;
        }
        if b.waiting > 0 {
            let result = Reduction { count: b.yes, all: b.yes == b.reducing, any: b.yes > 0 };
            b.ended.push((b.phase, result, b.waiting));
        }
        b.phase += 1;
        self.ended_phases += 1;
        (b.arrived, b.waiting, b.yes, b.reducing, b.expected) = (0, 0, 0, 0, None);
        b.lanes.clear();
    }

    /// Threads end; barriers that waited for them only go on.
    pub fn exit(&mut self, threads: u32) {
        self.live_threads = self.live_threads.saturating_sub(threads);
        let mut rest = self.used;
        while rest != 0 {
            self.settle(rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    }

    /// What `lanes` threads that wait for a phase get, once it has ended.
    pub fn collect(&mut self, id: usize, phase: u64, threads: u32) -> Option<Reduction> {
        let ended = &mut self.barriers[id % BARRIERS].ended;
        let n = ended.iter().position(|e| e.0 == phase)?;
        let result = ended[n].1;
        ended[n].2 = ended[n].2.saturating_sub(threads);
        if ended[n].2 == 0 {
            ended.remove(n);
        }
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(warp: u32, lanes: u32, mode: BarMode, expected: Option<u32>) -> Arrival {
        Arrival { warp, lanes, live: u32::MAX, yes: 0xff, expected, mode }
    }

    #[test]
    fn phases_end_when_all_live_threads_came() {
        let mut cta = CtaState::new([1; 3], [64, 1, 1], 0, 0);
        cta.start([0; 3], Place::default());
        let p = cta.arrive(3, arrival(0, u32::MAX, BarMode::RedPopc, None));
        assert_eq!(cta.collect(3, p, 32), None);
        cta.arrive(3, arrival(1, 0xffff, BarMode::RedPopc, None));
        assert_eq!(cta.collect(3, p, 32), None);
        cta.exit(16);
        assert_eq!(cta.collect(3, p, 32), Some(Reduction { count: 16, all: false, any: true }));
        assert!(cta.collect(3, p, 16).is_some() && cta.collect(3, p, 16).is_none());
    }

    #[test]
    fn counted_barriers_need_their_count_only() {
        let mut cta = CtaState::new([1; 3], [128, 1, 1], 0, 0);
        cta.start([0; 3], Place::default());
        cta.arrive(1, arrival(0, u32::MAX, BarMode::Arrive, Some(64)));
        let p = cta.arrive(1, arrival(2, u32::MAX, BarMode::Sync, Some(64)));
        assert!(cta.collect(1, p, 32).is_some());
    }
}
