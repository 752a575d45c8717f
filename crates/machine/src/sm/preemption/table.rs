//! The pointer table: where the local memory of each warp is, if it is not where the hardware put it.

use serde::{Deserialize, Serialize};

/// A row: a thread group's index, whether its local memory was remapped, and where to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    /// The warp's slot while it is on an SM, its number in the CTA while it is not.
    pub index: u16,
    pub is_remapped: bool,
    /// Where its local memory begins, in the driver's buffer in global memory.
    pub pointer: u64,
}

/// The rows of an SM, one for each warp slot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PointerTable {
    rows: Vec<Row>,
}

impl PointerTable {
    pub fn new(slots: u32) -> PointerTable {
        PointerTable { rows: (0..slots as u16).map(|index| Row { index, ..Row::default() }).collect() }
    }

    pub fn row(&self, slot: usize) -> Row {
        self.rows[slot]
    }

    /// The local memory of a slot's warp is elsewhere from now on.
    pub fn remap(&mut self, slot: usize, pointer: u64) {
        self.rows[slot] = Row { is_remapped: true, pointer, ..self.rows[slot] };
    }

    /// Takes the row of a warp that comes from elsewhere.
    pub fn put(&mut self, slot: usize, row: Row) {
        self.rows[slot] = Row { index: slot as u16, ..row };
    }

    /// The slot is another warp's, whose local memory is where the hardware puts it.
    pub fn free(&mut self, slot: usize) {
        self.rows[slot] = Row { index: slot as u16, ..Row::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_travel_and_are_freed() {
        let mut table = PointerTable::new(4);
        assert!(!table.row(2).is_remapped);
        table.remap(2, 0x60);
        let row = table.row(2);
        assert_eq!(row, Row { index: 2, is_remapped: true, pointer: 0x60 });
        table.free(2);
        let mut other = PointerTable::new(4);
        other.put(0, row);
        assert_eq!(other.row(0), Row { index: 0, is_remapped: true, pointer: 0x60 });
        assert!(!table.row(2).is_remapped);
    }
}
