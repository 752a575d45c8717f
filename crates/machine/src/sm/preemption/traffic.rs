//! What moves when a CTA leaves or comes back, access by access.

use super::Area;
use serde::{Deserialize, Serialize};

/// Lines of an access: sixteen bytes a lane.
pub const LINES: u64 = 4;
/// Bytes of a line.
pub const LINE: u64 = crate::units::LINE;

/// A stretch of memory, in whole lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Side {
    pub address: u64,
    /// Where the hardware has local memory.
    pub is_local: bool,
}

/// An access, or a load and the store of what it brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Piece {
    pub load: Option<Side>,
    pub store: Option<Side>,
    pub lines: u8,
}

/// All that moves for one CTA.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Traffic {
    pub pieces: Vec<Piece>,
    /// Bytes of registers, shared memory, barriers and divergence; and of local memory.
    pub state_bytes: u64,
    pub local_bytes: u64,
}

impl Traffic {
    fn add(&mut self, bytes: u64, load: Option<Side>, store: Option<Side>) {
        let lines = bytes.div_ceil(LINE);
        let mut at = 0;
        while at < lines {
            let n = (lines - at).min(LINES);
            let part = |side: Option<Side>| {
                side.map(|s| Side { address: s.address + at * LINE, is_local: s.is_local })
            };
            self.pieces.push(Piece { load: part(load), store: part(store), lines: n as u8 });
            at += n;
        }
    }

    /// State from the SM to memory, or back.
    pub fn state(&mut self, bytes: u64, address: u64, is_back: bool) {
        let side = Some(Side { address, is_local: false });
        if is_back {
            self.add(bytes, side, None)
        } else {
            self.add(bytes, None, side)
        }
        self.state_bytes += bytes;
    }

    /// Local memory from one place to another.
    pub fn local(&mut self, bytes: u64, from: Side, to: Side) {
        self.add(bytes, Some(from), Some(to));
        self.local_bytes += bytes;
    }
}

/// Where the parts of a CTA's state lie in its area.
pub struct Layout {
    /// Between the states of two warps: as much as any can have.
    pub warp_bytes: u64,
    pub shared_bytes: u64,
    pub warps: u64,
    pub local_bytes: u64,
}

impl Layout {
    /// Of a CTA with so many warps, each with room for so many bytes of state and of local memory, and so many bytes that
    /// they share.
    pub fn new(warps: u64, warp_bytes: u64, shared_bytes: u64, local_bytes: u64) -> Layout {
        let lines = |bytes: u64| bytes.next_multiple_of(LINE);
        Layout {
            warp_bytes: lines(warp_bytes),
            shared_bytes: lines(shared_bytes),
            warps,
            local_bytes: lines(local_bytes),
        }
    }

    /// Bytes of the state, and of local memory.
    pub fn bytes(&self) -> (u64, u64) {
        (self.warps * self.warp_bytes + self.shared_bytes, self.warps * self.local_bytes)
    }

    pub fn warp(&self, area: &Area, index: u64) -> u64 {
        area.state + self.shared_bytes + index * self.warp_bytes
    }

    pub fn local(&self, area: &Area, index: u64) -> u64 {
        area.local + index * self.local_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_moves_once_in_whole_lines() {
        let mut traffic = Traffic::default();
        traffic.state(1000, 4096, false);
        let lines: Vec<u8> = traffic.pieces.iter().map(|p| p.lines).collect();
        assert_eq!(lines, [4, 4]);
        assert_eq!(traffic.pieces[1].store, Some(Side { address: 4096 + 512, is_local: false }));
        let (from, to) = (Side { address: 1 << 40, is_local: true }, Side { address: 0, is_local: false });
        traffic.local(640, from, to);
        assert_eq!(traffic.pieces.len(), 4);
        assert_eq!(traffic.pieces[3].load, Some(Side { address: (1 << 40) + 512, is_local: true }));
        assert_eq!((traffic.state_bytes, traffic.local_bytes), (1000, 640));
    }
}
