//! Suspending and restoring CTAs: their state leaves the SM through the load-store unit, and comes back by it.

mod moving;
mod spec;
mod table;
mod traffic;

pub use spec::Spec;
pub use table::{PointerTable, Row};
pub use traffic::Layout;

use super::replacing::Unit;
use crate::ports::{Reason, Suspend};
use crate::units::{Cycle, SmId};
pub(super) use moving::Moving;
use serde::{Deserialize, Serialize};
use simt::Launch;
use simt::resident::Resident;

/// What becomes of local memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It is copied to global memory once, and stays there.
    #[default]
    Remap,
    /// It is copied out at every suspension and back at every restoration.
    Copy,
}

impl Mode {
    pub const ALL: [Mode; 2] = [Mode::Remap, Mode::Copy];

    pub fn name(self) -> &'static str {
        match self {
            Mode::Remap => "remap",
            Mode::Copy => "copy",
        }
    }

    pub fn from_name(name: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// Room in the driver's buffer for one CTA, which keeps it until it ends: for what the SM holds, and for local memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Area {
    pub state: u64,
    pub local: u64,
}

/// The layout of a launch's CTAs in the driver's buffer.
pub fn layout(launch: &Launch) -> Layout {
    let shared_bytes = Resident::shared_state_bytes(launch);
    let local_bytes = 32 * u64::from(launch.local_bytes());
    Layout::new(launch.warps().into(), simt::Warp::state_room(launch), shared_bytes, local_bytes)
}

/// A CTA to suspend, and where to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Order {
    pub suspend: Suspend,
    pub area: Area,
    pub mode: Mode,
}

/// A warp of a CTA that is not on an SM.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct SavedWarp {
    /// Its number in the CTA, and where its local memory is.
    pub row: Row,
    /// Bytes of its state.
    pub bytes: u64,
    /// What the simulator executed of it in advance. Hardware has no such thing, so it takes no part in traffic.
    pub tape: Vec<u64>,
}

/// A CTA that is not on an SM. What the SM held of it is in its area; what is here the front of the machine keeps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Saved {
    pub launch: u32,
    pub linear: u64,
    /// Child tasks of it that have not ended.
    pub children: u32,
    pub area: Area,
    pub mode: Mode,
    /// Why it was suspended.
    pub reason: Reason,
    /// Times that it was suspended.
    pub times: u32,
    pub(super) warps: Vec<SavedWarp>,
    /// What is known of the code that its threads run, where that is optimized.
    pub(super) units: Vec<Unit>,
}

impl Saved {
    /// A child task of it has ended; whether it was the last one.
    pub fn child_ended(&mut self) -> bool {
        self.children = self.children.saturating_sub(1);
        self.children == 0
    }
}

/// A CTA that left an SM or came back: what it took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Moved {
    pub sm: SmId,
    pub launch: u32,
    pub linear: u64,
    pub is_restored: bool,
    pub reason: Reason,
    /// It had not been suspended before.
    pub is_first: bool,
    /// When the SM was told, when nothing of the CTA was under way any more, and when all had moved.
    pub from: Cycle,
    pub drained: Cycle,
    pub until: Cycle,
    pub state_bytes: u64,
    pub local_bytes: u64,
}

impl Moved {
    pub fn cycles(&self) -> u64 {
        self.until.since(self.from)
    }
}
