//! Why a warp does not issue: the 22 reasons, in the order in which they are charged.

use serde::{Deserialize, Serialize};

/// A state of a warp in a cycle. The first that holds, in this order, is charged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

    /// The reason of a number.
    pub fn from_index(n: usize) -> Option<Stall> {
        Stall::ALL.get(n).copied()
    }

    /// The reason of a name.
    pub fn from_name(name: &str) -> Option<Stall> {
        Stall::ALL.into_iter().find(|s| s.name() == name)
    }

    /// What it means and what helps, for people who look at a profile.
    pub fn meaning(self) -> &'static str {
        match self {
            Stall::Selected => "The warp issued an instruction: no stall.",
            Stall::Wait => {
                "The result of an earlier arithmetic instruction is still in its pipe. More independent instructions, or \
                 more warps, fill the time."
            }
            Stall::LongScoreboard => {
                "Waits for data from global, local or texture memory. Ask for the data earlier, keep it in shared memory, \
                 or have more warps."
            }
            Stall::ShortScoreboard => {
                "Waits for shared memory, a shuffle or a special function. Ask for the value earlier, or use it more often."
            }
            Stall::Barrier => {
                "Waits at a barrier for the other warps of its CTA. Give the warps even amounts of work."
            }
            Stall::BranchResolving => {
                "Waits until a branch has found its target. Fewer branches in hot loops help."
            }
            Stall::MathPipeThrottle => {
                "The arithmetic pipe that it needs is taken. This is good: the pipe is busy. A mix of kinds of \
                 instructions spreads the load."
            }
            Stall::LgThrottle => {
                "The queue for global and local accesses is full. Fewer and wider accesses help, and coalesced ones."
            }
            Stall::MioThrottle => {
                "The queue for shared memory and special functions is full. Fewer and wider accesses help."
            }
            Stall::TexThrottle => "The queue for texture accesses is full.",
            Stall::DispatchStall => {
                "The dispatcher was held: operands of an instruction wait for their register banks."
            }
            Stall::NoInstruction => {
                "The next instruction has not been fetched: the warp starts, jumped far, or the code is larger than its cache."
            }
            Stall::ImcMiss => {
                "A constant operand, often a kernel parameter, is not in the constant cache yet."
            }
            Stall::Membar => "Waits until its stores are visible to others, as a memory barrier asks.",
            Stall::Sleeping => "Sleeps by its own wish.",
            Stall::Drain => "Has ended, and waits until its last stores have left.",
            Stall::Misc => "Waits for something else, such as the system.",
            Stall::Gmma => "Waits for matrix operations of its warp group.",
            Stall::Grant => "A texture operation waits for its grant.",
            Stall::Window => "Held by the instruction window.",
            Stall::Hazard => "A pixel waits for an earlier one at its place.",
            Stall::NotSelected => {
                "Could have issued, but the scheduler took another warp: there are enough warps."
            }
        }
    }
}

/// Warp-cycles by reason.
pub type StallCycles = [u64; STALLS];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_numbered_in_their_order() {
        assert!(Stall::ALL.iter().enumerate().all(|(n, &s)| s as usize == n));
        assert!(Stall::ALL.into_iter().all(|s| Stall::from_name(s.name()) == Some(s)));
        assert_eq!(Stall::from_index(STALLS), None);
    }
}
