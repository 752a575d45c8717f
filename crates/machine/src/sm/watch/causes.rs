//! What instructions wait for: what is seen when it happens, and what the code alone tells.

use crate::sm::code::{Code, Kind, Timing};
use crate::stall::Stall;
use isa::image::Image;
use serde::{Deserialize, Serialize};
use trace::profile::{Cause, Link};

/// What made an instruction wait, and why, in one word: there is one comparison to find it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Key(u64);

/// All links, in their order.
const LINKS: [Link; 5] = [Link::Register, Link::Barrier, Link::Store, Link::Queue, Link::Branch];

impl Key {
    /// No cause.
    const NONE: Key = Key(u64::MAX);

    #[inline(always)]
    fn new(reason: Stall, link: Link, cause: u32) -> Key {
        Key((link as u64) << 40 | (reason as u64) << 32 | u64::from(cause))
    }

    /// What it was made of; the instruction that waited is another.
    fn parts(self) -> (Stall, Link, u32) {
        let reason = Stall::from_index((self.0 >> 32 & 0xff) as usize).unwrap_or(Stall::Misc);
        let link = LINKS.get((self.0 >> 40) as usize).copied().unwrap_or(Link::Register);
        (reason, link, self.0 as u32)
    }
}

/// A cause of an instruction's waits, with its counts.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Entry<N> {
    key: Key,
    cycles: N,
    count: N,
}

impl Entry<u32> {
    /// No cause yet.
    const NONE: Entry<u32> = Entry { key: Key::NONE, cycles: 0, count: 0 };

    fn wide(&self) -> Entry<u64> {
        Entry { key: self.key, cycles: self.cycles.into(), count: self.count.into() }
    }
}

impl Entry<u64> {
    /// With counts of half the size, where they fit.
    fn narrow(&self) -> Option<Entry<u32>> {
        let (cycles, count) = (u32::try_from(self.cycles).ok()?, u32::try_from(self.count).ok()?);
        Some(Entry { key: self.key, cycles, count })
    }
}

/// Causes of one instruction's waits that are in one line of the host's cache: there are hardly ever more.
const FIRST: usize = 4;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[repr(align(64))]
struct Row([Entry<u32>; FIRST]);

const _: () = assert!(size_of::<Row>() == 64);

/// Causes by the instruction that waited.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Causes {
    rows: Vec<Row>,
    /// Those that do not fit, and counts that did not: a cause may be in both. Empty as long as all fit.
    more: Vec<Vec<Entry<u64>>>,
}

impl Causes {
    pub fn new(instructions: usize) -> Causes {
        let mut causes = Causes::default();
        causes.grow(instructions);
        causes
    }

    /// With room for so many instructions at least.
    pub fn grow(&mut self, instructions: usize) {
        self.rows.resize(self.rows.len().max(instructions), Row([Entry::NONE; FIRST]));
    }

    /// All of an instruction, each once.
    fn of(&self, pc: usize) -> Vec<Entry<u64>> {
        let mut all = self.more.get(pc).cloned().unwrap_or_default();
        for e in self.rows[pc].0.iter().filter(|e| e.key != Key::NONE) {
            put(&mut all, e.wide());
        }
        all
    }

    #[inline(always)]
    pub fn add(&mut self, pc: u32, reason: Stall, link: Link, cause: u32, cycles: u64) {
        let Some(Row(first)) = self.rows.get_mut(pc as usize) else { return };
        let key = Key::new(reason, link, cause);
        for e in first.iter_mut() {
            if e.key == key
                && let Ok(cycles) = u32::try_from(u64::from(e.cycles) + cycles)
                && e.count < u32::MAX
            {
                (e.cycles, e.count) = (cycles, e.count + 1);
                return;
            }
        }
        self.add_other(pc as usize, key, cycles);
    }

    /// The same for a cause that is not among the first, or whose counts would not fit there; a frequent one comes to the
    /// front.
    #[cold]
    #[inline(never)]
    fn add_other(&mut self, pc: usize, key: Key, cycles: u64) {
        let new = Entry { key, cycles, count: 1 };
        let rows = self.rows.len();
        let first = &mut self.rows[pc].0;
        let is_first = first.iter().any(|e| e.key == new.key);
        if let Some(free) = first.iter_mut().find(|e| e.key == Key::NONE).filter(|_| !is_first)
            && let Some(new) = new.narrow()
        {
            *free = new;
            return;
        }
        if self.more.len() <= pc {
            self.more.resize(rows, Vec::new());
        }
        let more = &mut self.more[pc];
        let n = put(more, new);
        let last = &mut first[FIRST - 1];
        if !is_first
            && more[n].count > last.count.into()
            && let Some(narrow) = more[n].narrow()
        {
            let old = std::mem::replace(last, narrow);
            more.swap_remove(n);
            put(more, old.wide());
        }
    }

    /// Adds those of another SM.
    pub fn merge(&mut self, other: &Causes) {
        self.grow(other.rows.len());
        self.more.resize(self.rows.len(), Vec::new());
        for (pc, more) in self.more.iter_mut().enumerate().take(other.rows.len()) {
            other.of(pc).into_iter().for_each(|e| {
                put(more, e);
            });
        }
    }

    /// All of them, by instruction, the longest first.
    pub fn list(&self) -> Vec<Cause> {
        let mut out = Vec::new();
        for pc in 0..self.rows.len() {
            let cause = |e: &Entry<u64>| {
                let (reason, link, cause) = e.key.parts();
                Cause { pc: pc as u32, reason, link, cause, cycles: e.cycles, count: e.count }
            };
            let mut list: Vec<Cause> = self.of(pc).iter().map(cause).collect();
            list.sort_by_key(|c| (std::cmp::Reverse(c.cycles), c.reason, c.link, c.cause));
            out.extend(list);
        }
        out
    }
}

/// Adds the counts of a cause to a list, in which it is once: where.
fn put(list: &mut Vec<Entry<u64>>, new: Entry<u64>) -> usize {
    match list.iter().position(|e| e.key == new.key) {
        Some(n) => {
            list[n].cycles += new.cycles;
            list[n].count += new.count;
            n
        }
        None => {
            list.push(new);
            list.len() - 1
        }
    }
}

/// Instructions that are looked at for the one that makes a result.
const BACK: usize = 48;

/// For every instruction the one whose result of fixed latency it waits for longest, as far as the code tells.
pub fn producers(code: &Code, image: &Image) -> Vec<Option<u32>> {
    // Where loops come back from.
    let mut back = vec![None; code.len()];
    for (pc, inst) in image.code.iter().enumerate() {
        if let Some(target) = inst.target().filter(|&t| t as usize <= pc) {
            back[target as usize] = Some(pc);
        }
    }
    (0..image.code.len()).map(|pc| producer(code, &back, pc)).collect()
}

fn producer(code: &Code, back: &[Option<usize>], pc: usize) -> Option<u32> {
    let (_, reads) = code.places(code.timing_of(pc as u32));
    let mut open: Vec<u16> = reads.to_vec();
    let mut best: Option<(i64, u32)> = None;
    let (mut at, mut distance, mut looped) = (pc, 0i64, false);
    for _ in 0..BACK {
        // At the head of a loop the last turn came before, as a rule.
        at = match back[at].filter(|_| !looped) {
            Some(end) => {
                looped = true;
                end
            }
            None if at == 0 => break,
            None => at - 1,
        };
        distance += 1;
        let t: &Timing = code.timing_of(at as u32);
        if at == pc || open.is_empty() || matches!(t.kind, Kind::Exit) {
            break;
        }
        let (writes, _) = code.places(t);
        for (k, place) in writes.iter().enumerate() {
            if let Some(n) = open.iter().position(|p| p == place) {
                open.swap_remove(n);
                let left = i64::from(t.latency_of(k)) - distance;
                if t.is_static && best.is_none_or(|(most, _)| left > most) {
                    best = Some((left, at as u32));
                }
            }
        }
    }
    best.filter(|(left, _)| *left > -2).map(|(_, pc)| pc)
}
