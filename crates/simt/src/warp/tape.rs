//! A warp's tape, which lies behind its registers, and registers that come from elsewhere.

use super::Warp;
use crate::aligned::Aligned;
use crate::launch::Launch;
use crate::tape::{self, Left, Tape};

impl Warp {
    /// What it did in advance.
    #[inline(always)]
    pub(crate) fn tape(&mut self, launch: &Launch) -> Tape<'_> {
        let at = launch.kernel.layout.tape as usize;
        let bytes = self.file.as_mut_slice().get_mut(at..at + tape::BYTES as usize);
        Tape::new(bytes.unwrap_or_default(), &mut self.left)
    }

    /// The same by the file's place, which is nearer than the file itself.
    ///
    /// # Safety
    /// `file` is that of a warp of the launch with this left on its tape, and nobody else uses it meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn tape_of<'a>(file: *mut u8, launch: &Launch, left: &'a mut Left) -> Tape<'a> {
        // SAFETY: files have room for a tape there, of bytes that are all set.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(file.add(launch.kernel.layout.tape as usize), tape::BYTES as usize)
        };
        Tape::new(bytes, left)
    }

    /// The same for later, in words.
    pub(crate) fn tape_words(&self, launch: &Launch) -> Vec<u64> {
        let bytes = self.file.as_slice().get(launch.kernel.layout.tape as usize..).unwrap_or_default();
        tape::words(bytes, self.left)
    }

    /// Takes over the registers of another file of its kernel.
    pub(crate) fn take_registers(&mut self, launch: &Launch, from: &Aligned) {
        let pool = launch.kernel.layout.pool as usize;
        self.file.as_mut_slice()[..pool].copy_from_slice(&from.as_slice()[..pool]);
    }
}
