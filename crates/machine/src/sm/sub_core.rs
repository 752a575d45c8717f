//! A scheduler with its pipes: which warps could issue, which pipe is free, who goes next.
//!
//! Warps of a sub-core are bits of 64-bit sets. A warp takes the next free bit when it starts, so bits are in the order
//! of age, from the newest down and around. A warp is in one of three places: in the *wheel* until a cycle that is
//! known, in the set of its class of instructions when nothing but a pipe is in its way, or nowhere while it waits for
//! something whose time is not known.

use super::code::{BANKS, CLASSES, Class};
use super::policy::{gto, lrr, youngest};
use super::spec::{Pipe, Policy, Spec};
use crate::server::Queue;
use crate::units::Cycle;

/// Slots of the wheel: a warp that waits longer goes around.
const SLOTS: u64 = 64;

/// Warps by the cycle at which they want to be looked at.
#[derive(Clone, Debug)]
struct Wheel {
    slots: [u64; SLOTS as usize],
    /// Slots that are not empty.
    occupied: u64,
    /// The first cycle that has not been collected.
    from: u64,
}

impl Wheel {
    fn new() -> Wheel {
        Wheel { slots: [0; SLOTS as usize], occupied: 0, from: 0 }
    }

    /// Puts in a warp at a cycle that is not before `now`.
    #[inline(always)]
    fn put(&mut self, bit: u32, at: u64, now: u64) {
        if self.occupied == 0 {
            self.from = self.from.max(now);
        }
        let at = at.clamp(self.from, self.from + SLOTS - 1) % SLOTS;
        self.slots[at as usize] |= 1 << bit;
        self.occupied |= 1 << at;
    }

    /// The next cycle with a warp in it.
    #[inline(always)]
    fn next(&self) -> u64 {
        if self.occupied == 0 {
            return u64::MAX;
        }
        self.from + u64::from(self.occupied.rotate_right((self.from % SLOTS) as u32).trailing_zeros())
    }

    /// Takes out the warps of all cycles up to `now`.
    #[inline(always)]
    fn collect(&mut self, now: u64) -> u64 {
        let mut found = 0;
        loop {
            let next = self.next();
            if next > now {
                break;
            }
            let at = next % SLOTS;
            found |= std::mem::take(&mut self.slots[at as usize]);
            self.occupied &= !(1 << at);
        }
        self.from = self.from.max(now + 1);
        found
    }
}

/// Pipes that a sub-core can have, less one, and pipes that a class can choose from.
const PIPES: usize = 32;
const PIPES_OF_CLASS: usize = 4;
/// No pipe: it is never free.
const NO_PIPE: u8 = PIPES as u8 - 1;

/// No warp: one above the last bit.
const NOBODY: u32 = 64;

/// A pipe's state.
#[derive(Clone, Debug)]
struct PipeState {
    /// Cycles that a warp takes to enter.
    interval: u64,
    /// Warps that wait in front of it, where it has room for them.
    queue: Option<Queue>,
    /// Classes that it runs, a bit each.
    classes: u32,
}

/// The place of a warp in a sub-core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bit(pub u8);

/// A scheduler and its pipes.
pub struct SubCore {
    wheel: Wheel,
    /// Warps that nothing but their class's pipes holds, by class.
    want: [u64; CLASSES],
    /// Classes in `want` that have warps.
    wanted: u32,
    pipes: Vec<PipeState>,
    /// When the next warp can enter each pipe; never for places without one.
    pipe_free: [u64; PIPES],
    /// Pipes of a class; [`NO_PIPE`] where there are fewer.
    pipes_of: [[u8; PIPES_OF_CLASS]; CLASSES],
    /// Classes that the program has instructions of, a bit each.
    classes: u32,
    /// When a pipe of the class is free.
    class_free: [u64; CLASSES],
    /// Cycles so far, and ahead, in which no pipe of the class was free.
    class_busy: [u64; CLASSES],
    /// Where a class waits for something whose time is not known: since when.
    class_closed: [u64; CLASSES],
    /// The same for cycles in which the dispatcher was held and a pipe was free.
    class_held: [u64; CLASSES],
    /// The dispatcher is held until then.
    dispatch_free: u64,
    /// When each bank has read all that was asked of it, in reads: a cycle is as many as a bank has ports.
    bank_free: [u64; BANKS],
    bank_shift: u32,
    /// Cycles of reads that can wait before the dispatcher is held.
    operand_buffer: u64,
    /// Bits in use, and the newest of them.
    used: u64,
    newest: u32,
    /// The warp that issued last.
    last: u32,
    policy: Policy,
    /// The next cycle at which something could happen.
    pub next: u64,
}

impl SubCore {
    pub fn new(spec: &Spec) -> SubCore {
        let pipes: Vec<PipeState> = spec.pipes.iter().map(pipe).collect();
        let mut pipes_of = [[NO_PIPE; PIPES_OF_CLASS]; CLASSES];
        for c in Class::ALL {
            let own = (0..pipes.len().min(PIPES - 1)).filter(|&n| pipes[n].classes >> c as u32 & 1 != 0);
            for (place, n) in pipes_of[c as usize].iter_mut().zip(own) {
                *place = n as u8;
            }
        }
        let mut pipe_free = [u64::MAX; PIPES];
        pipe_free[..pipes.len().min(PIPES - 1)].fill(0);
        SubCore {
            wheel: Wheel::new(),
            want: [0; CLASSES],
            wanted: 0,
            pipes,
            pipe_free,
            pipes_of,
            classes: u32::MAX,
            class_free: [0; CLASSES],
            class_busy: [0; CLASSES],
            class_closed: [u64::MAX; CLASSES],
            class_held: [0; CLASSES],
            dispatch_free: 0,
            bank_free: [0; BANKS],
            bank_shift: spec.bank_ports.max(1).ilog2(),
            operand_buffer: spec.operand_buffer.into(),
            used: 0,
            newest: 63,
            last: NOBODY,
            policy: spec.policy,
            next: u64::MAX,
        }
    }

    /// A program with instructions of these classes runs; others are not kept track of.
    pub fn begin_launch(&mut self, classes: u32) {
        self.classes = classes;
        for c in 0..CLASSES {
            let free = self.pipes_of[c].map(|n| self.pipe_free[n as usize % PIPES]);
            let free = free.into_iter().min().filter(|_| self.pipes_of[c][0] != NO_PIPE).unwrap_or(0);
            (self.class_free[c], self.class_busy[c], self.class_held[c]) = (free, 0, 0);
        }
    }

    // --- warps come and go --------------------------------------------------------------------------------------

    /// A bit for a warp that starts; `None` when the bits in the order of age are used up and [`SubCore::pack`] is due.
    pub fn add(&mut self) -> Option<Bit> {
        let bit = (self.newest + 1) % 64;
        if self.used >> bit & 1 != 0 {
            return None;
        }
        self.used |= 1 << bit;
        self.newest = bit;
        Some(Bit(bit as u8))
    }

    pub fn remove(&mut self, bit: Bit) {
        self.used &= !(1 << bit.0);
        self.let_go(bit);
    }

    /// The warp waits for others: greed for it ends.
    pub fn let_go(&mut self, bit: Bit) {
        if self.last == u32::from(bit.0) && self.policy != Policy::Lrr {
            self.last = NOBODY;
        }
    }

    /// Moves all warps to the lowest bits in the order of age; the old bit of each new one.
    pub fn pack(&mut self) -> Vec<Bit> {
        let order: Vec<u32> =
            (1..=64).map(|n| (self.newest + n) % 64).filter(|b| self.used >> b & 1 != 0).collect();
        let map =
            |set: u64| order.iter().enumerate().fold(0u64, |m, (new, &old)| m | (set >> old & 1) << new);
        for slot in &mut self.wheel.slots {
            *slot = map(*slot);
        }
        for set in &mut self.want {
            *set = map(*set);
        }
        self.last = order.iter().position(|&b| b == self.last).map_or(NOBODY, |n| n as u32);
        self.used = map(self.used);
        self.newest = (order.len() as u32 + 63) % 64;
        order.into_iter().map(|b| Bit(b as u8)).collect()
    }

    // --- waiting ------------------------------------------------------------------------------------------------

    /// The warp wants to be looked at in a cycle.
    #[inline(always)]
    pub fn wait(&mut self, bit: Bit, at: u64, now: u64) {
        self.wheel.put(bit.0.into(), at, now);
        self.next = self.next.min(at.max(self.wheel.from));
    }

    /// The warp need not be looked at in that cycle any more.
    pub fn unwait(&mut self, bit: Bit, at: u64) {
        let slot = at % SLOTS;
        let set = &mut self.wheel.slots[slot as usize];
        *set &= !(1 << bit.0);
        if *set == 0 {
            self.wheel.occupied &= !(1 << slot);
        }
    }

    /// Warps whose cycle has come.
    #[inline(always)]
    pub fn collect(&mut self, now: u64) -> u64 {
        if self.wheel.next() > now { 0 } else { self.wheel.collect(now) }
    }

    /// The warp waits for nothing but a pipe.
    #[inline(always)]
    pub fn ask(&mut self, bit: Bit, class: Class) {
        self.want[class as usize] |= 1 << bit.0;
        self.wanted |= 1 << class as u32;
    }

    /// Cycles up to `now` in which the class had no free pipe, and in which the dispatcher was held all the same.
    #[inline(always)]
    pub fn busy(&self, class: Class, now: u64) -> (u64, u64) {
        let c = class as usize;
        if self.class_free[c] == u64::MAX {
            let so_far = now.saturating_sub(self.class_closed[c]);
            return (self.class_busy[c] + so_far, self.class_held[c]);
        }
        let ahead = self.class_free[c].saturating_sub(now);
        let held_ahead = self.dispatch_free.saturating_sub(now.max(self.class_free[c]));
        (self.class_busy[c].saturating_sub(ahead), self.class_held[c].saturating_sub(held_ahead))
    }

    // --- choosing -----------------------------------------------------------------------------------------------

    /// Warps that could issue now.
    #[inline(always)]
    pub fn eligible(&self, now: u64) -> u64 {
        if self.dispatch_free > now {
            return 0;
        }
        let (mut found, mut rest) = (0, self.wanted);
        while rest != 0 {
            let c = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            if self.class_free[c] <= now {
                found |= self.want[c];
            }
        }
        found
    }

    /// The warp that the policy prefers of a set that is not empty.
    #[inline(always)]
    pub fn choose(&self, set: u64) -> Bit {
        Bit(match self.policy {
            Policy::Lrr => lrr::choose(set, self.last),
            Policy::Youngest => youngest::choose(set, self.last, self.newest),
            _ => gto::choose(set, self.last, self.newest),
        } as u8)
    }

    // --- issuing ------------------------------------------------------------------------------------------------

    /// Whether an instruction of the class could enter a pipe now.
    #[inline(always)]
    pub fn is_free(&self, class: Class, now: u64) -> bool {
        self.class_free[class as usize] <= now
    }

    /// The chosen warp no longer asks.
    #[inline(always)]
    pub fn take(&mut self, bit: Bit, class: Class) {
        let c = class as usize;
        self.want[c] &= !(1 << bit.0);
        if self.want[c] == 0 {
            self.wanted &= !(1 << c);
        }
        self.last = bit.0.into();
    }

    /// An instruction enters a free pipe of its class: the cycle at which the pipe begins with it.
    #[inline(always)]
    pub fn enter(&mut self, class: Class, now: u64) -> u64 {
        let pipes = self.pipes_of[class as usize];
        if pipes[0] == NO_PIPE {
            return now;
        }
        let mut best = pipes[0];
        for &n in &pipes[1..] {
            if self.pipe_free[n as usize % PIPES] < self.pipe_free[best as usize % PIPES] {
                best = n;
            }
        }
        let pipe = &mut self.pipes[best as usize];
        let (start, free) = match &mut pipe.queue {
            None => (now, now + pipe.interval),
            Some(queue) => {
                // The queue has room sooner than the pipe is through with what is in it.
                let start = now.max(queue.last().0);
                queue.put(Cycle(start + pipe.interval));
                (start, queue.room().0)
            }
        };
        self.pipe_free[best as usize % PIPES] = free;
        let mut rest = pipe.classes & self.classes;
        while rest != 0 {
            let c = rest.trailing_zeros() as usize % CLASSES;
            rest &= rest - 1;
            if self.class_free[c] != u64::MAX {
                let [p, q, r, t] = self.pipes_of[c].map(|n| self.pipe_free[n as usize % PIPES]);
                self.hold_class(c, now, p.min(q).min(r.min(t)));
            }
        }
        start
    }

    /// The class cannot issue before `free`, because a queue behind it is full.
    #[inline(always)]
    pub fn hold(&mut self, class: Class, now: u64, free: u64) {
        if free == u64::MAX {
            return self.close(class, now);
        }
        self.hold_class(class as usize, now, free.max(self.class_free[class as usize]));
    }

    #[inline(always)]
    fn hold_class(&mut self, c: usize, now: u64, free: u64) {
        let (old, new) = (self.class_free[c].max(now + 1), free.max(now + 1));
        // A class only gets busier.
        if new > old {
            self.class_busy[c] += new - old;
        }
        self.class_free[c] = self.class_free[c].max(free);
    }

    /// The class cannot issue until [`SubCore::open`].
    fn close(&mut self, class: Class, now: u64) {
        let c = class as usize;
        if self.class_free[c] != u64::MAX {
            self.class_closed[c] = self.class_free[c].max(now + 1);
            self.class_free[c] = u64::MAX;
        }
    }

    pub fn is_closed(&self, class: Class) -> bool {
        self.class_free[class as usize] == u64::MAX
    }

    /// A closed class can issue again from `free` on.
    pub fn open(&mut self, class: Class, now: u64, free: u64) {
        let c = class as usize;
        let free = free.max(now);
        self.class_busy[c] += free.saturating_sub(self.class_closed[c]);
        self.class_free[c] = free.max(self.class_closed[c]);
        if self.wanted >> c & 1 != 0 {
            self.next = self.next.min(self.class_free[c]);
        }
    }

    /// Reads an instruction's registers. Reads wait in front of their bank; the dispatcher is held when too many do.
    #[inline(always)]
    pub fn read_banks(&mut self, now: u64, reads: &[u8; BANKS]) {
        let mut latest = 0;
        let from = now << self.bank_shift;
        for (free, &n) in self.bank_free.iter_mut().zip(reads) {
            *free = (*free).max(from) + u64::from(n);
            latest = latest.max(*free);
        }
        let until = (latest >> self.bank_shift).saturating_sub(self.operand_buffer);
        if until > now + 1 {
            self.hold_dispatch(now, until);
        }
    }

    /// The dispatcher is held until a cycle.
    #[cold]
    fn hold_dispatch(&mut self, now: u64, until: u64) {
        for c in 0..CLASSES {
            self.class_held[c] += until.saturating_sub(self.class_free[c].max(now + 1));
        }
        self.dispatch_free = until;
    }

    /// Warps that wait for nothing but a pipe, as far as the sub-core knows.
    pub fn asking(&self) -> u64 {
        self.want.iter().fold(0, |all, &set| all | set)
    }

    /// Warps that are here, and the bit of the one that came last.
    pub fn used(&self) -> u64 {
        self.used
    }

    pub fn newest(&self) -> u32 {
        self.newest
    }

    /// Sets the next cycle at which a warp of the set could issue, or one wants to be looked at.
    pub fn plan_next_of(&mut self, set: u64, now: u64) {
        let mut next = self.wheel.next();
        for c in (0..CLASSES).filter(|&c| self.want[c] & set != 0) {
            next = next.min(self.class_free[c].max(self.dispatch_free).max(now + 1));
        }
        self.next = next;
    }

    /// Sets the next cycle at which a warp could issue or wants to be looked at.
    #[inline(always)]
    pub fn plan_next(&mut self, now: u64) {
        let mut next = self.wheel.next();
        let mut rest = self.wanted;
        while rest != 0 {
            let c = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            next = next.min(self.class_free[c].max(self.dispatch_free).max(now + 1));
        }
        self.next = next;
    }
}

fn pipe(p: &Pipe) -> PipeState {
    let classes =
        Class::ALL.iter().filter(|c| p.runs.iter().any(|r| r == c.name())).fold(0, |m, &c| m | 1 << c as u32);
    PipeState {
        interval: u64::from(32u32.div_ceil(p.lanes.max(1))),
        queue: (p.queue > 0).then(|| Queue::new(p.queue)),
        classes,
    }
}
