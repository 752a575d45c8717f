//! Local memory of a warp: word-interleaved by lane, so that equal addresses of all lanes are one row.
//!
//! It grows as the program touches it, up to the limit of the launch, and is zero where never written. Where a CTA was
//! suspended it lies in global memory from then on ([`Local::map`]), in the same layout.

use crate::lanes::Row;
use serde::{Deserialize, Serialize};

pub struct Local {
    /// What it has of its own.
    own: Vec<Row>,
    /// Where the rows are, and how many: its own, or in global memory.
    rows: *mut Row,
    len: usize,
    /// The device's address of rows in global memory, 0 where they are its own.
    address: u64,
    /// Bytes a thread may use.
    limit: u32,
}

/// Local memory as a checkpoint has it.
#[derive(Serialize, Deserialize)]
pub(crate) enum Saved {
    Own(Vec<Row>),
    /// It lies in global memory, which is saved by itself.
    At(u64),
}

impl Local {
    pub fn new(limit: u32) -> Local {
        Local { own: Vec::new(), rows: std::ptr::null_mut(), len: 0, address: 0, limit }
    }

    /// Forgets everything that was written.
    pub fn reset(&mut self, limit: u32) {
        self.limit = limit;
        self.own.fill([0; 32]);
        self.bind();
    }

    /// The rows are its own.
    fn bind(&mut self) {
        (self.rows, self.len, self.address) = (self.own.as_mut_ptr(), self.own.len(), 0);
    }

    /// Rows that all bytes of the threads take.
    pub fn all_rows(&self) -> usize {
        self.limit.div_ceil(4) as usize
    }

    pub fn is_mapped(&self) -> bool {
        self.address != 0
    }

    /// Moves everything to [`Local::all_rows`] rows elsewhere, at this address of the device, where it stays.
    ///
    /// # Safety
    /// As [`Local::attach`].
    pub unsafe fn map(&mut self, rows: *mut Row, address: u64) {
        // SAFETY: the caller's promise.
        unsafe {
            self.copy_to(rows);
            self.attach(rows, address);
        }
    }

    /// From now on it is what lies in [`Local::all_rows`] rows at this address of the device.
    ///
    /// # Safety
    /// The rows must be valid until the next [`Local::reset`], and nobody else's.
    pub unsafe fn attach(&mut self, rows: *mut Row, address: u64) {
        (self.rows, self.len, self.address) = (rows, self.all_rows(), address);
    }

    /// Takes a copy of [`Local::all_rows`] rows for its own.
    ///
    /// # Safety
    /// The rows must be valid, and change meanwhile by nobody.
    pub unsafe fn copy_from(&mut self, rows: *const Row) {
        let all = self.all_rows();
        self.own.clear();
        // SAFETY: the caller's promise.
        self.own.extend_from_slice(unsafe { std::slice::from_raw_parts(rows, all) });
        self.bind();
    }

    /// Copies everything to [`Local::all_rows`] rows elsewhere.
    ///
    /// # Safety
    /// The rows must be valid, not its own, and used by nobody meanwhile.
    pub unsafe fn copy_to(&self, rows: *mut Row) {
        let all = self.all_rows();
        // SAFETY: the caller's promise; no more rows than there are on either side are copied.
        unsafe {
            std::ptr::copy_nonoverlapping(self.rows, rows, self.len.min(all));
            if all > self.len {
                std::ptr::write_bytes(rows.add(self.len), 0, all - self.len);
            }
        }
    }

    fn at(&self, n: usize) -> *mut Row {
        assert!(n < self.len, "reached before");
        self.rows.wrapping_add(n)
    }

    /// What was written and zeros around it, or where that is.
    pub(crate) fn save(&self) -> Saved {
        if self.is_mapped() { Saved::At(self.address) } else { Saved::Own(self.own.clone()) }
    }

    /// Makes it hold what another one of this limit held; `rows` finds rows of the device's memory. False where that cannot
    /// be.
    pub(crate) fn restore(
        &mut self,
        limit: u32,
        saved: Saved,
        rows: impl FnOnce(u64, u64) -> Option<*mut Row>,
    ) -> bool {
        self.limit = limit;
        match saved {
            Saved::Own(own) => {
                // Growing doubles, so there can be twice as many as the limit needs.
                let fits = own.len() <= 2 * (limit as usize).div_ceil(4) + 16;
                self.own = own;
                self.bind();
                fits
            }
            Saved::At(address) => {
                let found = rows(address, self.all_rows() as u64 * size_of::<Row>() as u64);
                let Some(rows) = found.filter(|_| address != 0 && self.limit > 0) else { return false };
                // SAFETY: they lie in one allocation, which stays as long as the launch runs.
                unsafe { self.attach(rows, address) };
                true
            }
        }
    }

    /// Whether `size` bytes from `address` on are a thread's own; makes them exist.
    #[inline(always)]
    pub fn reach(&mut self, address: u32, size: u32) -> bool {
        let end = u64::from(address) + u64::from(size);
        if end > u64::from(self.limit) {
            return false;
        }
        if end > 4 * self.len as u64 {
            self.grow(end as usize);
        }
        true
    }

    #[cold]
    fn grow(&mut self, end: usize) {
        let rows = end.div_ceil(4).max(2 * self.own.len()).max(16);
        self.own.resize(rows, [0; 32]);
        self.bind();
    }

    /// The words of all lanes at a multiple of four. Call [`Local::reach`] first.
    #[inline(always)]
    pub fn row(&mut self, address: u32) -> &mut Row {
        // SAFETY: one of the rows, which are ours.
        unsafe { &mut *self.at((address / 4) as usize) }
    }

    /// Aligned bytes of one lane, little-endian; at most 16. Call [`Local::reach`] first.
    pub fn read(&self, lane: u32, address: u32, size: u32) -> u128 {
        // SAFETY: one of the rows, which are ours.
        let at = |n: u32| unsafe { (*self.at(((address + n) / 4) as usize))[lane as usize & 31] };
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
            let word = &mut self.row(address)[lane as usize & 31];
            *word = (*word & !mask) | ((value as u32) << shift & mask);
            return;
        }
        for k in 0..size / 4 {
            self.row(address + 4 * k)[lane as usize & 31] = (value >> (32 * k)) as u32;
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

    #[test]
    fn what_is_mapped_elsewhere_is_read_and_written_there() {
        let mut local = Local::new(64);
        assert!(local.reach(0, 16));
        local.write(1, 8, 4, 77);
        let mut rows = vec![[1; 32]; local.all_rows()];
        // SAFETY: the rows live until the end of the test.
        unsafe { local.map(rows.as_mut_ptr(), 0x1000) };
        assert!(local.is_mapped() && local.reach(60, 4));
        assert_eq!((local.read(1, 8, 4), local.read(1, 60, 4)), (77, 0));
        local.write(2, 60, 4, 5);
        local.reset(64);
        assert!(!local.is_mapped() && local.reach(0, 64));
        assert_eq!(local.read(1, 8, 4), 0);
        assert_eq!((rows[2][1], rows[15][2]), (77, 5));
        // SAFETY: as above.
        unsafe { local.copy_from(rows.as_ptr()) };
        assert_eq!((local.read(1, 8, 4), local.read(2, 60, 4)), (77, 5));
        local.write(1, 8, 4, 6);
        assert_eq!(rows[2][1], 77, "a copy");
    }
}
