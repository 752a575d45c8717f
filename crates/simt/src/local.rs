//! Local memory of a warp: word-interleaved by lane, so that equal addresses of all lanes are one row.
//!
//! It grows as the program touches it, up to the limit of the launch, and is zero where never written.

use crate::lanes::Row;

#[derive(Default)]
pub struct Local {
    rows: Vec<Row>,
    /// Bytes a thread may use.
    limit: u32,
}

impl Local {
    pub fn new(limit: u32) -> Local {
        Local { rows: Vec::new(), limit }
    }

    /// Forgets everything that was written.
    pub fn reset(&mut self, limit: u32) {
        self.limit = limit;
        self.rows.fill([0; 32]);
    }

    /// What was written, and zeros around it.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Makes it hold what another one of this limit held; false where that cannot be.
    pub(crate) fn restore(&mut self, limit: u32, rows: Vec<Row>) -> bool {
        // Growing doubles, so there can be twice as many as the limit needs.
        let fits = rows.len() <= 2 * (limit as usize).div_ceil(4) + 16;
        (self.limit, self.rows) = (limit, rows);
        fits
    }

    /// Whether `size` bytes from `address` on are a thread's own; makes them exist.
    #[inline(always)]
    pub fn reach(&mut self, address: u32, size: u32) -> bool {
        let end = u64::from(address) + u64::from(size);
        if end > u64::from(self.limit) {
            return false;
        }
        if end > 4 * self.rows.len() as u64 {
            self.grow(end as usize);
        }
        true
    }

    #[cold]
    fn grow(&mut self, end: usize) {
        let rows = end.div_ceil(4).max(2 * self.rows.len()).max(16);
        self.rows.resize(rows, [0; 32]);
    }

    /// The words of all lanes at a multiple of four. Call [`Local::reach`] first.
    #[inline(always)]
    pub fn row(&mut self, address: u32) -> &mut Row {
        &mut self.rows[(address / 4) as usize]
    }

    /// Aligned bytes of one lane, little-endian; at most 16. Call [`Local::reach`] first.
    pub fn read(&self, lane: u32, address: u32, size: u32) -> u128 {
        let at = |n: u32| self.rows[((address + n) / 4) as usize][lane as usize & 31];
        if size < 4 {
            let word = at(0) >> (8 * (address % 4));
            return u128::from(word & (u32::MAX >> (32 - 8 * size)));
        }
        (0..size / 4).fold(0, |v, k| v | u128::from(at(4 * k)) << (32 * k))
    }

    pub fn write(&mut self, lane: u32, address: u32, size: u32, value: u128) {
        if size < 4 {
            let shift = 8 * (address % 4);
            let mask = (u32::MAX >> (32 - 8 * size)) << shift;
            let word = &mut self.rows[(address / 4) as usize][lane as usize & 31];
            *word = (*word & !mask) | ((value as u32) << shift & mask);
            return;
        }
        for k in 0..size / 4 {
            self.rows[(address / 4 + k) as usize][lane as usize & 31] = (value >> (32 * k)) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Local;

    #[test]
    fn bytes_words_and_quads_share_one_layout() {
        let mut local = Local::new(64);
        assert!(local.reach(0, 64) && !local.reach(60, 8));
        local.write(3, 16, 16, 0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100);
        assert_eq!(local.read(3, 21, 1), 5);
        assert_eq!(local.read(3, 22, 2), 0x0706);
        assert_eq!(local.row(24)[3], 0x0b0a_0908);
        local.write(3, 23, 1, 0xff);
        assert_eq!(local.read(3, 16, 8), 0xff06_0504_0302_0100);
        assert_eq!(local.read(2, 16, 8), 0);
        local.reset(64);
        assert_eq!(local.read(3, 16, 8), 0);
    }
}
