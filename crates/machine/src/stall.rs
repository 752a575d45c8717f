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
