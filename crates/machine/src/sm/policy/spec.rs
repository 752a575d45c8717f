//! Specification of the schedulers' policies.

use crate::config::Checks;
use crate::spec;
use serde::{Deserialize, Serialize};

/// How credits move when a warp issues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Every victim gains one, the issuer pays for all.
    All,
    /// The next victim takes one from the fund, the issuer pays one into it.
    Next,
    /// The next victim takes half the number of victims, the issuer pays one.
    Half,
    /// Victims gain a step, the issuer's credit is halved; no fund.
    Halving,
}

/// How a weight is put together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Fields side by side, the most important highest.
    Packed,
    /// Bonuses added to the credit.
    Additive,
}

/// Which operations wait for the grant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accesses {
    None,
    /// Texture operations.
    Texture,
    /// Texture operations, and global loads of programs that were compiled with phases for them.
    Loads,
}

/// How TILE, PHASE and TEX make one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// Side by side.
    Fields,
    /// Hashed to as many bits as they have together.
    Hash,
}

/// What makes an instruction of the window old.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Age {
    /// The lowest program counter is the oldest.
    Pc,
    /// The longest in the window is the oldest.
    Residence,
}

spec! {
    /// Credits, and the weights that they are part of.
    pub struct Credit {
        /// How credits move: all, next, half or halving.
        variant: Variant,
        /// In variant all: credits move only while the fund is positive.
        guard: bool,
        /// In variant halving: what a victim gains; 0: as much as there are victims.
        step: u32 where 0..=1 << 16,
        /// Bits of a credit, the sign among them; a credit that would leave the range stays at its end.
        bits: u32 where 2..=32,
        /// How a weight is put together: packed or additive.
        weight: Form,
        /// Packed: warps that replay have the first bit.
        replay_bit: bool,
        /// Packed: warps whose TILE.PHASE.TEX is the granted one have the first bit.
        grant_bit: bool,
        /// Packed: warps whose next instruction does not go to an oversubscribed pipe have the second bit.
        pipe_bit: bool,
        /// Packed: bits of the age of a warp's tile or CTA; an older one stays at the highest value.
        age_bits: u32 where 0..=16,
        /// Packed: the age, in tiles or CTAs started since, is divided by two to this power.
        age_shift: u32 where 0..=16,
        /// Additive: for warps of tiles whose TILE and PHASE are the granted ones.
        texture_bonus: u32 where 0..=1 << 20,
        /// Additive: for each tile or CTA started since that of the warp.
        age_scale: u32 where 0..=1 << 20,
        /// Additive: by type of thread: primitive, vertex, pixel, compute.
        type_bonus: Vec<u32> where 0..=1 << 20,
        /// Additive: for an instruction that only one of the multiply-add and special-function pipes can run, when more wait for the other.
        balance_bonus: u32 where 0..=1 << 20,
        /// Additive: CTAs of compute kernels count as tiles.
        compute_tiles: bool,
        /// Instructions that only one type of pipe can run and that wait to start there, for each pipe of the type, from which on it is oversubscribed.
        oversubscribed: u32 where 1..=1 << 16,
        /// ... from which on nothing more is issued to it.
        closed: u32 where 1..=1 << 16,
        /// Issues of its scheduler since its own last one after which a warp goes before all that are not waiting for as long; 0: never.
        patience: u32 where 0..=1 << 30,
    }
}

spec! {
    /// Grants: which warps may access caches.
    pub struct Grants {
        /// Which operations wait for the grant: none, texture or loads (both).
        accesses: Accesses,
        /// Bits of TILE: the CTA's number, in the order in which CTAs started on the SM.
        tile_bits: u32 where 1..=12,
        /// Bits of PHASE.
        phase_bits: u32 where 1..=12,
        /// Bits of TEX.
        tex_bits: u32 where 1..=8,
        /// How the three make a value: fields or hash.
        value: Value,
        /// Cycles without an access under a grant after which it may be taken over while warps still hold it.
        timeout: u32 where 1..=1 << 30,
    }
}

spec! {
    /// Instruction window.
    pub struct Window {
        /// Instructions of a scheduler that it holds.
        entries: u32 where 1..=64,
        /// Cycles after which an instruction must leave it for one that waits outside.
        timeout: u32 where 1..=1 << 30,
        /// Which instruction is the oldest: that with the lowest pc, or that with the longest residence.
        age: Age,
        /// Deeper calls are older.
        depth: bool,
        /// Deeper regions of divergent control flow are older.
        nesting: bool,
        /// Only warps with equal program counters (and depth and nesting, where they are part of the age) are in it together.
        synchronise: bool,
        /// Instructions of different warps that may leave it in one cycle.
        issue: u32 where 1..=8,
        /// Priorities of types of threads, the highest goes first: primitive, vertex, pixel, compute.
        priority: Vec<u32> where 0..=255,
    }
}

spec! {
    /// What policies beyond a plain order of warps need.
    pub struct Scheduler {
        /// Policy two-level: warps of a scheduler that go before the others.
        active_warps: u32 where 1..=64,
        /// Policy two-level: a warp that waits for so many cycles, or for something whose time is not known, gives its place to another.
        long_wait: u32 where 1..=1 << 16,
        parts {
            /// Policy credit.
            credit: Credit,
            /// Grants, under any policy.
            grants: Grants,
            /// Policy window.
            window: Window,
        }
    }
}

/// Types of threads that a table has a value for.
const TYPES: usize = super::ThreadType::COUNT;

impl Scheduler {
    pub fn check(&self, checks: &mut Checks) {
        let mut table = |path, n: usize| {
            checks.that(path, n == TYPES, format!("has {n} values"), format!("it needs {TYPES}"));
        };
        table("sm.scheduler.credit.type_bonus", self.credit.type_bonus.len());
        table("sm.scheduler.window.priority", self.window.priority.len());
        let (first, second) = (self.credit.oversubscribed, self.credit.closed);
        checks.that(
            "sm.scheduler.credit.closed",
            second >= first,
            format!("is {second}"),
            format!("it must be at least `sm.scheduler.credit.oversubscribed`, {first}"),
        );
    }
}
