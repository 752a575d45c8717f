//! A scheduler with its pipes: which warps could issue, which pipe is free, who goes next.
//!
//! Warps of a sub-core are bits of 64-bit sets. A warp takes the next free bit when it starts, so bits are in the order
//! of age, from the newest down and around. A warp is in one of three places: in the *wheel* until a cycle that is
//! known, in the set of its class of instructions when nothing but a pipe is in its way, or nowhere while it waits for
//! something whose time is not known.

use super::code::{BANKS, CLASSES, Class};
use super::policy::{gto, lrr, youngest};
use super::spec::{Pipe, Policy, Spec};
use super::warp::WarpSlot;
use crate::server::Queue;
use crate::units::Cycle;
use serde::{Deserialize, Serialize};

/// Slots of the wheel: a warp that waits longer goes around.
const SLOTS: u64 = 64;

/// Warps by the cycle at which they want to be looked at.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Wheel {
    #[serde(with = "simt::arrays")]
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

    /// Puts in a warp at a cycle that is not before `now`; the cycle at which it will be found, which is sooner where that
    /// is further away than the wheel reaches.
    #[inline(always)]
    fn put(&mut self, bit: u32, at: u64, now: u64) -> u64 {
        if self.occupied == 0 {
            self.from = self.from.max(now);
        }
        let at = at.max(self.from).min(self.from + SLOTS - 1);
        self.slots[(at % SLOTS) as usize] |= 1 << bit;
        self.occupied |= 1 << (at % SLOTS);
        at
    }

    /// The next cycle with a warp in it.
    #[inline(always)]
    fn next(&self) -> u64 {
        if self.occupied == 0 {
            return u64::MAX;
        }
        self.from + u64::from(self.occupied.rotate_right((self.from % SLOTS) as u32).trailing_zeros())
    }

    /// Whether warps want to be looked at in the cycle after `now`, up to which all have been.
    #[inline(always)]
    fn has_next(&self, now: u64) -> bool {
        self.from == now + 1 && self.occupied >> (self.from % SLOTS) & 1 != 0
    }

    /// Takes out the warps of a cycle; none are left in earlier ones.
    #[inline(always)]
    fn collect(&mut self, now: u64) -> u64 {
        debug_assert!(self.next() >= now);
        let at = now % SLOTS;
        self.occupied &= !(1 << at);
        self.from = now + 1;
        std::mem::take(&mut self.slots[at as usize])
    }
}

/// One in each bank's 16 bits, and the top bit of 16, which counts of reads do not reach.
const BANK: u64 = 0x0001_0001_0001_0001;
const TOP: u64 = 1 << 15;

/// Pipes that a sub-core can have, less one, and pipes that a class can choose from.
const PIPES: usize = 32;
const PIPES_OF_CLASS: usize = 4;
/// No pipe: it is never free.
const NO_PIPE: u8 = PIPES as u8 - 1;

/// Places for classes: a power of two, so that no index needs a check.
const PLACES: usize = CLASSES.next_power_of_two();

/// No warp: one above the last bit.
const NOBODY: u32 = 64;

/// A pipe's state.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PipeState {
    /// Cycles that a warp takes to enter.
    interval: u64,
    /// Warps that wait in front of it, where it has room for them.
    queue: Option<Queue>,
    /// Classes that it runs, a bit each.
    classes: u32,
}

/// What classes of instructions wait for, by class.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Classes {
    /// When one of its pipes is free; [`u64::MAX`] while that is not known.
    free: [u64; PLACES],
    /// Cycles so far, and ahead, in which none was.
    busy: [u64; PLACES],
    /// The same for cycles in which the dispatcher was held and a pipe was free.
    held: [u64; PLACES],
    /// Where it waits for something whose time is not known: since when.
    closed: [u64; PLACES],
    /// The only pipe that it has, if no other class of the program runs there and nobody queues.
    own_pipe: [u8; PLACES],
    /// Cycles that a warp takes to enter that one.
    interval: [u64; PLACES],
}

/// Who issues in a cycle.
pub struct Pick {
    pub bit: Bit,
    pub slot: u16,
    /// Warps that could have.
    pub eligible: u64,
    /// Whether it is among those that ask. One that issues in the cycle in which it comes need not be.
    pub asks: bool,
}

/// The place of a warp in a sub-core.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Bit(pub u8);

/// A scheduler and its pipes.
#[derive(Serialize, Deserialize)]
pub struct SubCore {
    wheel: Wheel,
    /// Warps that nothing but their class's pipes holds, by class.
    want: [u64; PLACES],
    /// Classes in `want` that have warps.
    wanted: u32,
    classes: Classes,
    pipes: Vec<PipeState>,
    /// Of each pipe: cycles that a warp takes to enter, and the classes of the program that it runs.
    pipe_intervals: [u64; PIPES],
    pipe_classes: [u32; PIPES],
    /// Classes with one or two pipes at which nobody queues and that run only such classes, a bit each.
    few: u32,
    /// When the next warp can enter each pipe; never for places without one.
    pipe_free: [u64; PIPES],
    /// Pipes of a class; [`NO_PIPE`] where there are fewer.
    pipes_of: [[u8; PIPES_OF_CLASS]; PLACES],
    /// The dispatcher is held until then.
    dispatch_free: u64,
    /// Reads that wait in front of each bank, as of a cycle; 16 bits a bank.
    bank_reads: u64,
    bank_time: u64,
    /// A cycle is as many reads as a bank has ports.
    bank_shift: u32,
    /// Cycles of reads that can wait before the dispatcher is held; for each bank, the reads from there to the top bit.
    operand_buffer: u64,
    reads_to_spare: u64,
    /// Bits in use, and the newest of them.
    used: u64,
    newest: u32,
    /// The warp slot of each bit.
    #[serde(with = "simt::arrays")]
    slots: [u16; 64],
    /// The warp that issued last.
    last: u32,
    policy: Policy,
    /// Its number in the SM.
    pub number: u32,
    /// A warp slot whose next instruction is to be planned when all sub-cores have come to the cycle `next`.
    pub unplanned: Option<u16>,
    /// The next cycle at which something could happen.
    pub next: u64,
    /// Who was chosen for that cycle when others had to come first, and who could have been.
    #[serde(skip)]
    pub stopped: Option<(Bit, u64)>,
}

impl SubCore {
    pub fn new(spec: &Spec, number: u32) -> SubCore {
        let pipes: Vec<PipeState> = spec.pipes.iter().map(pipe).collect();
        let mut pipes_of = [[NO_PIPE; PIPES_OF_CLASS]; PLACES];
        for c in Class::ALL {
            let own = (0..pipes.len().min(PIPES - 1)).filter(|&n| pipes[n].classes >> c as u32 & 1 != 0);
            for (place, n) in pipes_of[c as usize].iter_mut().zip(own) {
                *place = n as u8;
            }
        }
        let mut pipe_free = [u64::MAX; PIPES];
        pipe_free[..pipes.len().min(PIPES - 1)].fill(0);
        let bank_shift = spec.bank_ports.max(1).ilog2();
        let mut sub = SubCore {
            wheel: Wheel::new(),
            want: [0; PLACES],
            wanted: 0,
            classes: Classes {
                free: [0; PLACES],
                busy: [0; PLACES],
                held: [0; PLACES],
                closed: [u64::MAX; PLACES],
                own_pipe: [NO_PIPE; PLACES],
                interval: [0; PLACES],
            },
            pipe_intervals: std::array::from_fn(|n| pipes.get(n).map_or(0, |p| p.interval)),
            pipe_classes: [0; PIPES],
            few: 0,
            pipes,
            pipe_free,
            pipes_of,
            dispatch_free: 0,
            bank_reads: 0,
            bank_time: 0,
            bank_shift,
            operand_buffer: spec.operand_buffer.into(),
            reads_to_spare: (TOP - ((u64::from(spec.operand_buffer) + 2) << bank_shift).min(TOP - 1)) * BANK,
            used: 0,
            newest: 63,
            slots: [0; 64],
            last: NOBODY,
            policy: spec.policy,
            number,
            unplanned: None,
            next: u64::MAX,
            stopped: None,
        };
        sub.begin_launch(u32::MAX);
        sub
    }

    /// A program with instructions of these classes runs; others are not kept track of.
    pub fn begin_launch(&mut self, classes: u32) {
        for (used, pipe) in self.pipe_classes.iter_mut().zip(&self.pipes) {
            *used = pipe.classes & classes;
        }
        for c in 0..CLASSES {
            let pipes = self.pipes_of[c];
            let free = pipes.map(|n| self.pipe_free[n as usize % PIPES]);
            let free = free.into_iter().min().filter(|_| pipes[0] != NO_PIPE).unwrap_or(0);
            let first = self.pipes.get(pipes[0] as usize);
            let is_own = |p: &&PipeState| {
                p.queue.is_none() && pipes[1] == NO_PIPE && p.classes & classes & !(1 << c) == 0
            };
            let own = first.filter(is_own);
            let of = &mut self.classes;
            (of.free[c], of.busy[c], of.held[c]) = (free, 0, 0);
            of.own_pipe[c] = own.map_or(NO_PIPE, |_| pipes[0]);
            of.interval[c] = own.map_or(0, |p| p.interval);
        }
        self.few = (0..CLASSES).filter(|&c| self.has_few(c)).fold(0, |set, c| set | 1 << c);
    }

    /// Whether a class has one or two pipes at which nobody queues, and so have all classes that run there.
    fn has_few(&self, c: usize) -> bool {
        let of = |c: usize| self.pipes_of[c].into_iter().filter(|&n| n != NO_PIPE).map(usize::from);
        let classes = of(c).fold(0, |set, n| set | self.pipe_classes[n]);
        let mut others = (0..CLASSES).filter(|k| classes >> k & 1 != 0);
        let queues = of(c).any(|n| self.pipes[n].queue.is_some());
        of(c).next().is_some() && of(c).count() <= 2 && !queues && others.all(|k| of(k).count() <= 2)
    }

    // --- warps come and go --------------------------------------------------------------------------------------

    /// A bit for the warp that starts in a slot; `None` when the bits in the order of age are used up and [`SubCore::pack`] is due.
    pub fn add(&mut self, slot: u16) -> Option<Bit> {
        let bit = (self.newest + 1) % 64;
        if self.used >> bit & 1 != 0 {
            return None;
        }
        self.slots[bit as usize] = slot;
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

    /// Warps that wait for nothing but a cycle or a pipe.
    pub fn near(&self) -> u64 {
        let (mut occupied, mut wanted, mut all) = (self.wheel.occupied, self.wanted, 0);
        while occupied != 0 {
            all |= self.wheel.slots[occupied.trailing_zeros() as usize];
            occupied &= occupied - 1;
        }
        while wanted != 0 {
            all |= self.want[wanted.trailing_zeros() as usize % PLACES];
            wanted &= wanted - 1;
        }
        all
    }

    /// The warp slot of a bit.
    #[inline(always)]
    pub fn slot(&self, bit: Bit) -> u16 {
        self.slots[bit.0 as usize % 64]
    }

    /// Moves all warps to the lowest bits in the order of age, and tells the new bit of each slot.
    pub fn pack(&mut self, mut moved: impl FnMut(u16, Bit)) {
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
        let old = self.slots;
        for (new, bit) in order.into_iter().enumerate() {
            self.slots[new] = old[bit as usize];
            moved(self.slots[new], Bit(new as u8));
        }
    }

    // --- waiting ------------------------------------------------------------------------------------------------

    /// The warp wants to be looked at in a cycle. What is next has to be found again.
    #[inline(always)]
    pub fn put(&mut self, bit: Bit, at: u64, now: u64) {
        self.wheel.put(bit.0.into(), at, now);
    }

    /// The warp wants to be looked at in a cycle.
    #[inline(always)]
    pub fn wait(&mut self, bit: Bit, at: u64, now: u64) {
        self.next = self.next.min(self.wheel.put(bit.0.into(), at, now));
    }

    /// The warp neither waits for a cycle nor for a pipe any more.
    pub fn forget(&mut self, bit: Bit) {
        let keep = !(1u64 << bit.0);
        for (n, set) in self.wheel.slots.iter_mut().enumerate() {
            *set &= keep;
            if *set == 0 {
                self.wheel.occupied &= !(1 << n);
            }
        }
        for (c, set) in self.want.iter_mut().enumerate() {
            *set &= keep;
            if *set == 0 && c < CLASSES {
                self.wanted &= !(1 << c);
            }
        }
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

    /// Warps whose cycle has come wait for nothing but a pipe from now on.
    #[inline(always)]
    pub fn look(&mut self, warps: &mut [WarpSlot], now: u64) {
        if self.wheel.from <= now {
            let come = self.wheel.collect(now);
            self.ask_all(come, warps, now);
        }
    }

    #[inline(always)]
    fn ask_all(&mut self, mut come: u64, warps: &mut [WarpSlot], now: u64) {
        while come != 0 {
            let bit = Bit(come.trailing_zeros() as u8);
            come &= come - 1;
            let warp = &mut warps[usize::from(self.slot(bit))];
            if warp.since > now {
                // It was further away than the wheel reaches.
                self.wait(bit, warp.since, now);
                continue;
            }
            self.ask(warp);
        }
    }

    /// Who issues now, if anybody can.
    #[inline(always)]
    pub fn pick(&mut self, warps: &mut [WarpSlot], now: u64) -> Option<Pick> {
        if self.wheel.from <= now {
            let come = self.wheel.collect(now);
            // Mostly one comes at a time, and mostly it is chosen: then it is known at once, and asks for nothing.
            if come != 0 && come & (come - 1) == 0 {
                let bit = Bit(come.trailing_zeros() as u8);
                let slot = self.slot(bit);
                let warp = &mut warps[usize::from(slot)];
                let is_free = self.classes.free[warp.class as usize] <= now;
                if warp.since == now && is_free && self.dispatch_free <= now {
                    if self.wanted == 0 {
                        return Some(Pick { bit, slot, eligible: come, asks: false });
                    }
                    let eligible = self.eligible(now) | come;
                    let chosen = self.choose(eligible);
                    if chosen == bit {
                        return Some(Pick { bit, slot, eligible, asks: false });
                    }
                    self.ask(warp);
                    return Some(Pick { bit: chosen, slot: self.slot(chosen), eligible, asks: true });
                }
            }
            self.ask_all(come, warps, now);
        }
        let eligible = self.eligible(now);
        if eligible == 0 {
            return None;
        }
        let bit = self.choose(eligible);
        Some(Pick { bit, slot: self.slot(bit), eligible, asks: true })
    }

    /// When a warp issues that waits for the cycle `since`, if no other can issue up to then, and that is before `limit`.
    #[inline(always)]
    pub fn alone(&mut self, warp: &mut WarpSlot, since: u64, limit: u64) -> Option<u64> {
        if self.wanted != 0 {
            return None;
        }
        let free = self.classes.free[warp.class as usize].max(self.dispatch_free);
        // Guessed by the host, which goes on before it knows when the pipe is free.
        if free > since {
            return self.alone_later(warp, free, limit);
        }
        if since >= limit || self.wheel.next() <= since {
            return None;
        }
        self.wheel.from = since + 1;
        Some(since)
    }

    /// The same where it has to wait until a pipe is free.
    #[inline(never)]
    fn alone_later(&mut self, warp: &mut WarpSlot, now: u64, limit: u64) -> Option<u64> {
        if now >= limit || self.wheel.next() <= now {
            return None;
        }
        warp.marks = self.marks(warp.class, warp.since);
        self.wheel.from = now + 1;
        Some(now)
    }

    /// A warp waits for nothing but a pipe.
    #[inline(always)]
    pub fn ask(&mut self, warp: &mut WarpSlot) {
        warp.marks = self.marks(warp.class, warp.since);
        self.want[warp.class as usize] |= 1 << warp.bit.0;
        self.wanted |= 1 << warp.class as u32;
    }

    /// Why a warp that issues now, and could have since some time, did not: cycles for want of a pipe, those in which the
    /// dispatcher was held, and those in which others were chosen.
    #[inline(always)]
    pub fn why(&self, warp: &WarpSlot, class: Class, now: u64) -> [u64; 3] {
        let waited = now - warp.since;
        let (busy, held) = self.busy(class, now);
        let throttle = since_mark(busy, warp.marks.0).min(waited);
        let held = since_mark(held, warp.marks.1).min(waited - throttle);
        [throttle, held, waited - throttle - held]
    }

    /// What [`SubCore::busy`] tells, as a warp keeps it.
    #[inline(always)]
    pub fn marks(&self, class: Class, now: u64) -> (u32, u32) {
        let (busy, held) = self.busy(class, now);
        (busy as u32, held as u32)
    }

    /// Cycles up to `now` in which the class had no free pipe, and in which the dispatcher was held all the same.
    #[inline(always)]
    pub fn busy(&self, class: Class, now: u64) -> (u64, u64) {
        let (of, c) = (&self.classes, class as usize);
        let (free, busy, held) = (of.free[c], of.busy[c], of.held[c]);
        if free <= now && self.dispatch_free <= now {
            return (busy, held);
        }
        if free == u64::MAX {
            return (busy + now.saturating_sub(of.closed[c]), held);
        }
        // Counted ahead, when the pipe was taken and the dispatcher held: no more than that.
        let more = match self.dispatch_free > now {
            true => self.dispatch_free.saturating_sub(now.max(free)),
            false => 0,
        };
        (busy.saturating_sub(free.saturating_sub(now)), held.saturating_sub(more))
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
            if self.classes.free[c % PLACES] <= now {
                found |= self.want[c % PLACES];
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
        self.classes.free[class as usize] <= now
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

    /// The same of one that did not ask.
    #[inline(always)]
    pub fn take_unasked(&mut self, bit: Bit) {
        self.last = bit.0.into();
    }

    /// An instruction enters a free pipe of its class: the cycle at which the pipe begins with it.
    #[inline(always)]
    pub fn enter(&mut self, class: Class, now: u64) -> u64 {
        let (of, c) = (&mut self.classes, class as usize);
        let own = of.own_pipe[c];
        if own != NO_PIPE && of.free[c] <= now {
            let free = now + of.interval[c];
            of.busy[c] += of.interval[c] - 1;
            of.free[c] = free;
            self.pipe_free[own as usize % PIPES] = free;
            return now;
        }
        if self.few >> c & 1 == 0 {
            // What goes to the units that sub-cores share has none.
            let has_none = self.pipes_of[c][0] == NO_PIPE;
            return if has_none { now } else { self.enter_any(c, now) };
        }
        let free = |n: usize| self.pipe_free[n];
        let [p, q, ..] = self.pipes_of[c].map(|n| usize::from(n) % PIPES);
        let n = if free(q) < free(p) { q } else { p };
        self.pipe_free[n] = now + self.pipe_intervals[n];
        let mut rest = self.pipe_classes[n];
        while rest != 0 {
            let c = rest.trailing_zeros() as usize % PLACES;
            rest &= rest - 1;
            let [p, q, ..] = self.pipes_of[c].map(|n| usize::from(n) % PIPES);
            self.hold_class(c, now, self.pipe_free[p].min(self.pipe_free[q]));
        }
        now
    }

    /// The same where classes have many pipes, or queue.
    #[inline(never)]
    fn enter_any(&mut self, c: usize, now: u64) -> u64 {
        let pipes = self.pipes_of[c];
        // A place without a pipe is never free.
        let free = |n: u8| self.pipe_free[n as usize % PIPES];
        let sooner = |a: u8, b: u8| if free(b) < free(a) { b } else { a };
        let n = pipes.into_iter().fold(pipes[0], sooner) as usize % PIPES;
        let (start, free) = self.queue_up(n, now);
        self.pipe_free[n] = free;
        let mut rest = self.pipe_classes[n];
        while rest != 0 {
            let c = rest.trailing_zeros() as usize % PLACES;
            rest &= rest - 1;
            let free = self.pipes_of[c].map(|n| self.pipe_free[n as usize % PIPES]);
            self.hold_class(c, now, free.into_iter().min().unwrap_or(now));
        }
        start
    }

    /// A warp waits in front of a pipe, where that has a queue: when the pipe begins with it, and when the next one can come.
    fn queue_up(&mut self, n: usize, now: u64) -> (u64, u64) {
        let pipe = &mut self.pipes[n];
        let Some(queue) = &mut pipe.queue else { return (now, now + pipe.interval) };
        // The queue has room sooner than the pipe is through with what is in it.
        let start = now.max(queue.last().0);
        queue.put(Cycle(start + pipe.interval));
        (start, queue.room().0)
    }

    /// The class cannot issue before `free`, because a queue behind it is full.
    #[inline(always)]
    pub fn hold(&mut self, class: Class, now: u64, free: u64) {
        if free == u64::MAX {
            return self.close(class, now);
        }
        self.hold_class(class as usize, now, free);
    }

    #[inline(always)]
    fn hold_class(&mut self, c: usize, now: u64, free: u64) {
        // A class only gets busier; one that is closed stays so.
        let (old, next) = (self.classes.free[c], now + 1);
        if free > old {
            self.classes.busy[c] += free.max(next) - old.max(next);
            self.classes.free[c] = free;
        }
    }

    /// The class cannot issue until [`SubCore::open`].
    fn close(&mut self, class: Class, now: u64) {
        let (of, c) = (&mut self.classes, class as usize);
        if of.free[c] != u64::MAX {
            of.closed[c] = of.free[c].max(now + 1);
            of.free[c] = u64::MAX;
        }
    }

    pub fn is_closed(&self, class: Class) -> bool {
        self.classes.free[class as usize] == u64::MAX
    }

    /// A closed class can issue again from `free` on.
    pub fn open(&mut self, class: Class, now: u64, free: u64) {
        let (of, c) = (&mut self.classes, class as usize);
        let free = free.max(now);
        of.busy[c] += free.saturating_sub(of.closed[c]);
        of.free[c] = free.max(of.closed[c]);
        if self.wanted >> c & 1 != 0 {
            self.next = self.next.min(of.free[c]);
        }
    }

    /// Reads an instruction's registers. Reads wait in front of their bank; the dispatcher is held when too many do.
    #[inline(always)]
    pub fn read_banks(&mut self, now: u64, reads: u64) {
        let passed = ((now - self.bank_time) << self.bank_shift).min(TOP - 1);
        self.bank_time = now;
        // Four subtractions at once that end at zero: a bank's top bit, set before, is gone where more would be taken.
        let rest = (self.bank_reads | (TOP * BANK)) - passed * BANK;
        let kept = (rest >> TOP.trailing_zeros()) & BANK;
        self.bank_reads = (rest & (kept * (TOP - 1))) + reads;
        if (self.bank_reads + self.reads_to_spare) & (TOP * BANK) != 0 {
            self.hold_dispatch(now);
        }
    }

    /// The dispatcher is held until the bank with the most reads has few enough.
    #[cold]
    fn hold_dispatch(&mut self, now: u64) {
        let most = (0..BANKS).map(|n| self.bank_reads >> (16 * n) & (TOP - 1)).max().unwrap_or(0);
        let until = now + (most >> self.bank_shift) - self.operand_buffer;
        self.count_held(now + 1, until);
        self.dispatch_free = until;
    }

    /// The dispatcher is held between two cycles, which counts for classes that have a free pipe.
    fn count_held(&mut self, from: u64, until: u64) {
        for (held, free) in self.classes.held.iter_mut().zip(&self.classes.free) {
            *held += until.saturating_sub(*free.max(&from));
        }
    }

    /// Somebody else takes the next issue slots.
    pub fn hold_for(&mut self, now: u64, slots: u64) {
        let from = self.dispatch_free.max(now);
        let until = from + slots;
        self.count_held(from, until);
        self.dispatch_free = until;
    }

    /// The same after an instruction of a class issued, where others of the warps that could have issued can in the next
    /// cycle, and so nothing has to be looked for.
    #[inline(always)]
    pub fn plan_after(&mut self, class: Class, eligible: u64, now: u64) {
        let c = class as usize % PLACES;
        if eligible & !self.want[c] & !(1 << (self.last % 64)) != 0 && self.dispatch_free <= now {
            self.next = now + 1;
        } else {
            self.plan_next(now);
        }
    }

    /// Warps that wait for nothing but a pipe, as far as the sub-core knows.
    pub fn asking(&self) -> u64 {
        self.want.iter().fold(0, |all, &set| all | set)
    }

    /// Warps that are here.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// The bit of the warp that came last.
    #[inline(always)]
    pub fn newest(&self) -> u32 {
        self.newest
    }

    /// Sets the next cycle at which a warp of the set could issue, or one wants to be looked at.
    pub fn plan_next_of(&mut self, set: u64, now: u64) {
        let free = |c: usize| self.classes.free[c % PLACES];
        let next = (0..CLASSES).filter(|&c| self.want[c] & set != 0).map(free).min().unwrap_or(u64::MAX);
        self.next = next.max(self.dispatch_free).max(now + 1).min(self.wheel.next());
    }

    /// Sets the next cycle at which a warp could issue or wants to be looked at.
    #[inline(always)]
    pub fn plan_next(&mut self, now: u64) {
        // Guessed by the host, which goes on with the next cycle before it knows who comes then.
        if self.wheel.has_next(now) {
            self.next = now + 1;
            return;
        }
        let mut next = u64::MAX;
        let mut rest = self.wanted;
        while rest != 0 {
            let c = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            next = next.min(self.classes.free[c % PLACES]);
        }
        self.next = next.max(self.dispatch_free).max(now + 1).min(self.wheel.next());
    }
}

/// What a count of cycles has gained since its low half was kept; nothing where it is less than then. No warp waits for a pipe
/// for two billion cycles.
#[inline(always)]
fn since_mark(count: u64, mark: u32) -> u64 {
    (count as u32).wrapping_sub(mark).cast_signed().max(0) as u64
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

#[cfg(test)]
mod tests {
    use super::since_mark;

    #[test]
    fn low_halves_of_counts_tell_what_was_gained() {
        assert_eq!((since_mark(5, 3), since_mark(3, 5), since_mark(7, 7)), (2, 0, 0));
        // Around the end of the low half.
        assert_eq!(since_mark((1 << 32) + 5, u32::MAX - 1), 7);
        assert_eq!(since_mark((1 << 40) + 9, 4), 5);
    }
}
