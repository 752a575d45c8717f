//! A warp's weight: the greatest issues.

use super::super::ThreadType;
use super::super::spec::{Credit, Form};
use serde::{Deserialize, Serialize};

/// What a weight is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    pub credit: i32,
    pub replays: bool,
    /// TILE.PHASE.TEX is the granted value; only TILE and PHASE are.
    pub granted: bool,
    pub tile_granted: bool,
    /// The next instruction goes to an oversubscribed pipe.
    pub oversubscribed: bool,
    /// Tiles or CTAs started since the warp's own.
    pub age: u64,
    pub thread: ThreadType,
    pub need: Need,
    /// The warp has let others pass for long enough.
    pub overdue: bool,
}

/// What an instruction needs of the two kinds of pipes that are kept in balance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Need {
    /// Only a multiply-add pipe can run it.
    Mad,
    /// Only a special-function pipe can.
    Sfu,
    /// Either can, or neither.
    Any,
}

/// Above all that a weight can be otherwise.
pub const OVERDUE: i64 = 1 << 60;

/// The weight by the form that the specification says. `balance`: multiply-add less special-function instructions that
/// wait.
#[inline]
pub fn weight(spec: &Credit, f: &Facts, balance: i64) -> i64 {
    let w = match spec.weight {
        Form::Packed => packed(spec, f),
        Form::Additive => additive(spec, f, balance),
    };
    if f.overdue { w + OVERDUE } else { w }
}

/// From the highest bit: replayed or granted, pipe not oversubscribed, age, credit (from the lowest that there is).
fn packed(spec: &Credit, f: &Facts) -> i64 {
    let first = spec.replay_bit && f.replays || spec.grant_bit && f.granted;
    let second = spec.pipe_bit && !f.oversubscribed;
    let oldest = (1i64 << spec.age_bits) - 1;
    let age = i64::try_from(f.age >> spec.age_shift).unwrap_or(oldest).min(oldest);
    let credit = i64::from(f.credit) + (1i64 << (spec.bits - 1));
    ((i64::from(first) << 1 | i64::from(second)) << spec.age_bits | age) << spec.bits | credit
}

fn additive(spec: &Credit, f: &Facts, balance: i64) -> i64 {
    let mut w = i64::from(f.credit);
    if f.thread == ThreadType::Pixel || spec.compute_tiles && f.thread == ThreadType::Compute {
        if f.tile_granted {
            w += i64::from(spec.texture_bonus);
        }
        // No machine starts so many that this matters; the sum must stay below what is overdue.
        w += i64::from(spec.age_scale) * f.age.min(1 << 32) as i64;
    }
    w += spec.type_bonus.get(f.thread as usize).map_or(0, |&b| i64::from(b));
    let behind = match f.need {
        Need::Mad => balance < 0,
        Need::Sfu => balance > 0,
        Need::Any => false,
    };
    w + if behind { i64::from(spec.balance_bonus) } else { 0 }
}
