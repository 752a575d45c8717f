//! A warp slot of an SM: where its warp is, what it waits for, and when its registers can be used.

use super::code::{Class, Maker, Producer, Timing};
use super::sub_core::Bit;
use super::work::Context;
use crate::stall::{Stall, StallTable};
use serde::{Deserialize, Serialize};

/// When a register can be used, and whom it is waited for: the cycle above its [`Maker`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Ready(u64);

/// Cycles from here on mean that the time is not known yet.
pub const UNKNOWN: u64 = 1 << (u64::BITS - Maker::BITS - 1);

/// The last cycle that a machine's clock goes to: what begins then ends before [`UNKNOWN`].
pub const LAST_CYCLE: u64 = UNKNOWN / 2;

impl Ready {
    #[inline(always)]
    pub fn at(cycle: u64, maker: Maker) -> Ready {
        Ready(cycle << Maker::BITS | u64::from(maker.0))
    }

    #[inline(always)]
    pub fn pending(maker: Maker) -> Ready {
        Ready::at(UNKNOWN, maker)
    }

    #[inline(always)]
    pub fn cycle(self) -> u64 {
        self.0 >> Maker::BITS
    }

    #[inline(always)]
    pub fn producer(self) -> usize {
        (self.0 & 3) as usize
    }

    #[inline(always)]
    pub fn maker(self) -> Maker {
        Maker(self.0 as u32 & ((1 << Maker::BITS) - 1))
    }
}

/// What a warp is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum State {
    /// No warp is here.
    Empty,
    /// Waits for a cycle that is known, then for a pipe.
    Timed,
    /// Waits for something whose time is not known.
    Pending(Stall),
    /// All lanes wait for other warps of the CTA.
    Blocked,
    /// Asks again after the exchange.
    Retry,
    /// Has ended; loads or stores are still under way.
    Draining,
    /// Its CTA leaves the SM, or comes back.
    Moving,
}

/// A warp slot. What every issue looks at comes first and is one line of the host's cache.
#[derive(Serialize, Deserialize)]
#[repr(C, align(64))]
pub struct WarpSlot {
    /// The first cycle that no reason has been charged for.
    pub since: u64,
    /// The last issue, from which the next one is counted.
    pub issued: u64,
    /// Busy cycles of its class's pipes, and held ones, when it began to ask: the low halves of both.
    pub marks: (u32, u32),
    /// Whoever looks at warps now and then need not look before this cycle. It may look too early, never too late.
    #[serde(skip)]
    pub look_at: u64,
    /// No place of the scoreboard has a later cycle than this; none that is known, while one is [`UNKNOWN`].
    pub open_until: u64,
    /// The next instruction.
    pub pc: u32,
    /// The code line that the warp's instruction buffer holds.
    pub line: u32,
    /// The row of its launch's first instruction in tables that have one for every instruction of every launch.
    pub rows: u32,
    /// The CTA slot, and the warp's number in the CTA.
    pub cta: u16,
    pub index: u16,
    /// Number of the CTA's launch.
    pub context: u16,
    /// What kind of pipe the next instruction asks for.
    pub class: Class,
    pub state: State,
    pub bit: Bit,
    pub sub_core: u8,
    /// Instructions from `pc` on that have been executed already.
    pub ahead: u8,
    /// Number of the slot's warp, so that late answers to an earlier one are known.
    pub generation: u16,
    /// Whom it is counted with: the number of the host's launch that it belongs to.
    pub group: u16,
    /// Its local memory is in global memory since it was suspended.
    pub is_remapped: bool,
    /// Loads and atomics under way, and stores that are not acknowledged.
    pub loads: u32,
    pub stores: u32,
    /// When its last store has left the load-store unit.
    pub stores_left: u64,
    /// Where its local memory begins.
    pub local_base: u64,
    /// The latest cycle of a place that is known.
    known_until: u64,
    /// Loads from shared memory among what has been executed already.
    pub loaded: Loaded,
    /// The scoreboard: when predicates, uniform registers and registers can be used, and when the memory operations that read them
    /// have done so, and they may be written. Which of them has which entry, the code tells.
    pub places: Box<[Ready]>,
}

const _: () = assert!(std::mem::offset_of!(WarpSlot, ahead) < 64 && size_of::<WarpSlot>() == 128);

/// Loads from shared memory that have been executed and did not issue yet, the next one in the lowest bit: whether it goes
/// through the banks once for each of its words, or half as often, as where all lanes load the same. Those with conflicts
/// are not executed ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Loaded(pub u32);

impl Loaded {
    /// As many as can be kept, by whoever saves the warp too.
    pub const MOST: u32 = 24;

    /// The bit of a load with these passes, and those of one without conflicts.
    #[inline(always)]
    pub fn bit(passes: (u32, u32), words: u8) -> Option<u32> {
        let all = u32::from(words);
        let is_known = passes.0 == passes.1 && (passes.0 == all || passes.0 == all.div_ceil(2));
        is_known.then_some(u32::from(passes.0 == all))
    }

    /// Passes of the next one, of so many words a lane.
    #[inline(always)]
    pub fn take(&mut self, words: u8) -> (u32, u32) {
        let all = u32::from(words);
        let passes = if self.0 & 1 == 0 { all.div_ceil(2) } else { all };
        self.0 >>= 1;
        (passes, passes)
    }
}

/// No line is in the buffer.
pub const NO_LINE: u32 = u32::MAX;

impl WarpSlot {
    pub fn new() -> WarpSlot {
        WarpSlot {
            state: State::Empty,
            cta: 0,
            index: 0,
            context: 0,
            sub_core: 0,
            bit: Bit(0),
            generation: 0,
            pc: 0,
            line: NO_LINE,
            ahead: 0,
            rows: 0,
            group: 0,
            issued: 0,
            since: 0,
            marks: (0, 0),
            look_at: 0,
            open_until: 0,
            known_until: 0,
            loads: 0,
            stores: 0,
            stores_left: 0,
            local_base: 0,
            is_remapped: false,
            class: Class::Misc,
            loaded: Loaded::default(),
            places: Box::default(),
        }
    }

    /// Who waits for results that go to these places; this is slot `n`.
    #[inline(always)]
    pub fn owner(&self, n: usize, places: &[u16], producer: Producer) -> Owner {
        Owner {
            warp: n as u16,
            generation: self.generation,
            first: places.first().copied().unwrap_or(0),
            places: places.len() as u8,
            producer,
        }
    }

    /// These places can be used from then on.
    #[inline(always)]
    pub fn write(&mut self, places: &[u16], ready: Ready) {
        self.note(ready.cycle());
        for &p in places {
            self.places[p as usize] = ready;
        }
    }

    /// A place gets a cycle.
    #[inline(always)]
    fn note(&mut self, cycle: u64) {
        self.open_until = self.open_until.max(cycle);
        if cycle < UNKNOWN {
            self.known_until = self.known_until.max(cycle);
        }
    }

    /// What an operation reads must not change before this: of that, places that anybody looks up.
    #[inline(always)]
    pub fn read(&mut self, holds: &[u16], read: Ready) {
        self.note(read.cycle());
        for &p in holds {
            self.places[p as usize] = read;
        }
    }

    /// When all is there that is known to come.
    pub fn known_until(&self) -> u64 {
        self.known_until
    }

    /// What these places wait for comes in a cycle that is known now: one load less is under way.
    #[inline(always)]
    pub fn complete(&mut self, places: std::ops::Range<u16>, cycle: u64, producer: Producer) {
        for place in places {
            let ready = &mut self.places[place as usize];
            *ready = Ready::at(cycle, ready.maker().with(producer));
        }
        self.note(cycle);
        self.loads -= 1;
        if self.loads == 0 {
            self.open_until = self.known_until;
        }
    }

    /// Whether one of the places that the next instruction looks up still has no cycle, for the reason that the warp waits
    /// for.
    #[inline(always)]
    pub fn still_waits(&self, checks: &[u16]) -> bool {
        let producer = match self.state {
            State::Pending(Stall::LongScoreboard) => Producer::Long,
            State::Pending(Stall::ShortScoreboard) => Producer::Short,
            _ => return false,
        };
        let is_open = |ready: Ready| ready.cycle() >= UNKNOWN && ready.producer() == producer as usize;
        checks.iter().fold(false, |any, &p| any | is_open(self.places[usize::from(p)]))
    }

    /// The results of an instruction that a pipe began with at `start` can be used after their latencies.
    #[inline(always)]
    pub fn write_after(&mut self, places: &[u16], timing: &Timing, start: u64) {
        for (k, &p) in places.iter().enumerate() {
            let at = start + u64::from(timing.latency_of(k));
            self.note(at);
            self.places[p as usize] = Ready::at(at, timing.maker);
        }
    }

    /// A branch from one place to another is resolved: the next instruction issues from then on.
    #[inline(always)]
    pub fn resolve(&mut self, to: u32, pc: u32, from: u64, stalls: &mut StallTable) {
        if to != pc + 1 {
            self.line = NO_LINE;
        }
        self.issued = from - 1;
        if from > self.since {
            stalls.charge((self.rows + to) as usize, Stall::BranchResolving, from - self.since);
            self.since = from;
        }
    }

    /// The row of its next instruction.
    #[inline(always)]
    pub fn row(&self) -> u32 {
        self.rows + self.pc
    }

    /// Makes the slot that of a new warp, of the launch of this number.
    pub fn start(&mut self, cta: u16, index: u16, context: u16, launch: &Context<'_>, at: u64) {
        let places = launch.code.warp_places();
        self.state = State::Timed;
        (self.cta, self.index, self.context) = (cta, index, context);
        (self.rows, self.group) = (launch.rows, launch.group);
        self.generation = self.generation.wrapping_add(1);
        self.line = NO_LINE;
        (self.ahead, self.loaded) = (0, Loaded::default());
        (self.issued, self.since) = (at.saturating_sub(1), at);
        (self.loads, self.stores, self.stores_left) = (0, 0, 0);
        self.look_at = 0;
        self.is_remapped = false;
        // What the warp before left is over mostly, and then as good as nothing.
        if self.places.len() != places {
            self.places = vec![Ready::default(); places].into();
            (self.open_until, self.known_until) = (0, 0);
        } else if self.open_until > at {
            self.places.fill(Ready::default());
            (self.open_until, self.known_until) = (0, 0);
        }
    }
}

/// Who waits for an answer of the load-store unit, in one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Owner {
    pub warp: u16,
    pub generation: u16,
    /// Scoreboard places that the result goes to.
    pub first: u16,
    pub places: u8,
    pub producer: Producer,
}

impl Owner {
    /// Nobody waits: the operation is not a warp's.
    pub const NOBODY: Owner =
        Owner { warp: u16::MAX, generation: 0, first: 0, places: 0, producer: Producer::Fixed };

    /// Slot that stands for the state of a CTA that moves.
    const STATE: u16 = u16::MAX - 1;

    /// A piece of the state of a CTA that moves.
    pub fn state(id: u16, piece: u32) -> Owner {
        Owner {
            warp: Owner::STATE,
            generation: id,
            first: piece as u16,
            places: (piece >> 16) as u8,
            producer: Producer::Fixed,
        }
    }

    pub fn is_state(self) -> bool {
        self.warp == Owner::STATE
    }

    /// Whose piece it is, and which.
    pub fn piece(self) -> (u16, u32) {
        (self.generation, u32::from(self.first) | u32::from(self.places) << 16)
    }

    #[inline(always)]
    pub fn pack(self) -> u64 {
        u64::from(self.warp)
            | u64::from(self.generation) << 16
            | u64::from(self.first) << 32
            | u64::from(self.places) << 48
            | (self.producer as u64) << 56
    }

    #[inline(always)]
    pub fn unpack(word: u64) -> Owner {
        Owner {
            warp: word as u16,
            generation: (word >> 16) as u16,
            first: (word >> 32) as u16,
            places: (word >> 48) as u8,
            producer: match word >> 56 & 3 {
                0 => Producer::Fixed,
                1 => Producer::Long,
                2 => Producer::Short,
                _ => Producer::Fma,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_come_in_their_order() {
        let mut loaded = Loaded::default();
        let loads = [((1, 1), 1), ((4, 4), 4), ((2, 2), 4), ((2, 2), 2), ((1, 1), 2)];
        for (n, (passes, words)) in loads.into_iter().enumerate() {
            loaded.0 |= Loaded::bit(passes, words).expect("no conflicts") << n;
        }
        for (passes, words) in loads {
            assert_eq!(loaded.take(words), passes);
        }
        assert_eq!(Loaded::bit((2, 1), 1), None);
        assert_eq!(Loaded::bit((3, 3), 4), None);
    }

    #[test]
    fn a_warp_waits_until_the_last_of_a_kind_is_known() {
        let (long, short) = (Maker(Producer::Long as u32), Maker(Producer::Short as u32));
        let mut warp = WarpSlot::new();
        warp.places = vec![Ready::pending(long), Ready::pending(long), Ready::pending(short)].into();
        warp.state = State::Pending(Stall::LongScoreboard);
        warp.loads = 3;
        warp.complete(0..1, 9, Producer::Long);
        assert!(warp.still_waits(&[0, 1]) && !warp.still_waits(&[0, 2]));
        warp.complete(1..2, 9, Producer::Long);
        assert!(!warp.still_waits(&[0, 1, 2]));
        warp.state = State::Pending(Stall::ShortScoreboard);
        assert!(warp.still_waits(&[0, 1, 2]));
        warp.state = State::Timed;
        assert!(!warp.still_waits(&[2]));
    }

    #[test]
    fn owner_survives_packing() {
        let o = Owner { warp: 63, generation: 65535, first: 300, places: 4, producer: Producer::Short };
        assert_eq!(Owner::unpack(o.pack()), o);
    }
}
