//! Why a warp does not issue: the 22 reasons, in the order in which they are charged.

/// A state of a warp in a cycle. The first that holds, in this order, is charged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Stall {
    /// Issues: no stall.
    Selected,
    /// A result of fixed latency is not there yet.
    Wait,
    /// Waits for a load or atomic from global, local or texture memory.
    LongScoreboard,
    /// Waits for shared memory, special functions or another variable unit inside the SM.
    ShortScoreboard,
    /// Waits for other warps at a CTA barrier.
    Barrier,
    /// A branch has not found its target yet.
    BranchResolving,
    /// The pipe is busy.
    MathPipeThrottle,
    /// The queue for global and local accesses is full.
    LgThrottle,
    /// The queue for shared memory and special functions is full.
    MioThrottle,
    /// The texture queue is full.
    TexThrottle,
    /// The dispatcher holds it: operands conflict.
    DispatchStall,
    /// The instruction has not been fetched.
    NoInstruction,
    /// A constant operand misses its cache.
    ImcMiss,
    /// Waits for a memory barrier.
    Membar,
    /// Sleeps by its own wish.
    Sleeping,
    /// Has ended and waits for its stores.
    Drain,
    Misc,
    /// Waits for warp-group matrix operations.
    Gmma,
    /// A texture operation waits for its grant.
    Grant,
    /// Held by the instruction window.
    Window,
    /// A pixel waits for an earlier one at its place.
    Hazard,
    /// Could issue, another warp was chosen.
    NotSelected,
}

/// Number of reasons.
pub const STALLS: usize = 22;

impl Stall {
    pub const ALL: [Stall; STALLS] = [
        Stall::Selected,
        Stall::Wait,
        Stall::LongScoreboard,
        Stall::ShortScoreboard,
        Stall::Barrier,
        Stall::BranchResolving,
        Stall::MathPipeThrottle,
        Stall::LgThrottle,
        Stall::MioThrottle,
        Stall::TexThrottle,
        Stall::DispatchStall,
        Stall::NoInstruction,
        Stall::ImcMiss,
        Stall::Membar,
        Stall::Sleeping,
        Stall::Drain,
        Stall::Misc,
        Stall::Gmma,
        Stall::Grant,
        Stall::Window,
        Stall::Hazard,
        Stall::NotSelected,
    ];

    /// The name that profilers use.
    pub fn name(self) -> &'static str {
        match self {
            Stall::Selected => "selected",
            Stall::Wait => "wait",
            Stall::LongScoreboard => "long_scoreboard",
            Stall::ShortScoreboard => "short_scoreboard",
            Stall::Barrier => "barrier",
            Stall::BranchResolving => "branch_resolving",
            Stall::MathPipeThrottle => "math_pipe_throttle",
            Stall::LgThrottle => "lg_throttle",
            Stall::MioThrottle => "mio_throttle",
            Stall::TexThrottle => "tex_throttle",
            Stall::DispatchStall => "dispatch_stall",
            Stall::NoInstruction => "no_instruction",
            Stall::ImcMiss => "imc_miss",
            Stall::Membar => "membar",
            Stall::Sleeping => "sleeping",
            Stall::Drain => "drain",
            Stall::Misc => "misc",
            Stall::Gmma => "gmma",
            Stall::Grant => "grant",
            Stall::Window => "window",
            Stall::Hazard => "hazard",
            Stall::NotSelected => "not_selected",
        }
    }
}

/// Warp-cycles by reason.
pub type StallCycles = [u64; STALLS];

/// Room of an instruction in a [`StallTable`]: two cache lines, the reasons that are charged most in the first.
const ROOM: usize = 32;

/// Warp-cycles by reason for every instruction of a program. Small, because an SM that takes its turn on the host comes
/// back to a cold cache: counts are 32 bits and overflow into a list that is hardly ever used.
#[derive(Clone, Debug, Default)]
pub struct StallTable {
    counts: Vec<[u32; ROOM]>,
    /// Instruction, reason and warp-cycles that did not fit.
    more: Vec<(u32, u8, u64)>,
}

/// The counts of one instruction.
pub struct Row<'a> {
    instruction: usize,
    counts: &'a mut [u32; ROOM],
    more: &'a mut Vec<(u32, u8, u64)>,
}

impl Row<'_> {
    #[inline(always)]
    pub fn charge(&mut self, reason: Stall, cycles: u64) {
        // `NotSelected` comes first, the others follow in their order.
        let n = if reason == Stall::NotSelected { 0 } else { reason as usize + 1 };
        let sum = u64::from(self.counts[n % ROOM]) + cycles;
        self.counts[n % ROOM] = sum as u32;
        if sum > u64::from(u32::MAX) {
            self.carry(reason, sum);
        }
    }

    #[cold]
    fn carry(&mut self, reason: Stall, sum: u64) {
        self.more.push((self.instruction as u32, reason as u8, sum & !u64::from(u32::MAX)));
    }

    /// Charges cycles for want of a pipe, those in which the dispatcher was held, those in which others were chosen.
    #[inline(always)]
    pub fn charge_waiting(&mut self, [throttle, held, others]: [u64; 3], reason: Stall) {
        if throttle > 0 {
            self.charge(reason, throttle);
        }
        if held > 0 {
            self.charge(Stall::DispatchStall, held);
        }
        self.charge(Stall::NotSelected, others);
    }
}

impl StallTable {
    /// A table for so many instructions, all counts zero.
    pub fn reset(&mut self, instructions: usize) {
        // A new one: pages that are never touched cost nothing.
        self.counts = vec![[0; ROOM]; instructions];
        self.more.clear();
    }

    #[inline(always)]
    pub fn row(&mut self, instruction: usize) -> Row<'_> {
        Row { instruction, counts: &mut self.counts[instruction], more: &mut self.more }
    }

    #[inline(always)]
    pub fn charge(&mut self, instruction: usize, reason: Stall, cycles: u64) {
        self.row(instruction).charge(reason, cycles);
    }

    /// Adds everything to a list, a row an instruction; the sum.
    pub fn add_to(&self, rows: &mut [StallCycles]) -> u64 {
        let mut total = 0;
        for (row, counts) in rows.iter_mut().zip(&self.counts) {
            for (reason, sum) in row.iter_mut().enumerate() {
                let n = if reason == Stall::NotSelected as usize { 0 } else { reason + 1 };
                *sum += u64::from(counts[n]);
                total += u64::from(counts[n]);
            }
        }
        for &(n, reason, cycles) in &self.more {
            if let Some(row) = rows.get_mut(n as usize) {
                row[reason as usize] += cycles;
                total += cycles;
            }
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_where_counts_overflow() {
        let mut table = StallTable::default();
        table.reset(2);
        for _ in 0..3 {
            table.charge(1, Stall::NotSelected, 3 << 30);
            table.charge(1, Stall::Wait, 1);
        }
        let mut rows = vec![[0; STALLS]; 2];
        assert_eq!(table.add_to(&mut rows), 3 * (3 << 30) + 3);
        assert_eq!(rows[1][Stall::NotSelected as usize], 3 * (3 << 30));
        assert_eq!(rows[1][Stall::Wait as usize], 3);
        assert_eq!(rows[0], [0; STALLS]);
    }

    #[test]
    fn reasons_are_numbered_in_their_order() {
        assert!(Stall::ALL.iter().enumerate().all(|(n, &s)| s as usize == n));
    }
}
