//! Sets of warps as 64-bit words.

/// The bits of a word, lowest first.
#[derive(Clone, Copy, Debug)]
pub struct Bits(pub u64);

impl Iterator for Bits {
    type Item = u32;

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

/// Values by bit, when the bits `old` become 0, 1, ...
pub fn remap<T: Copy>(values: &mut [T; 64], old: &[u8]) {
    let before = *values;
    for (value, &from) in values.iter_mut().zip(old) {
        *value = before[from as usize % 64];
    }
}

/// A set, when the bits `old` become 0, 1, ...
pub fn remap_set(set: &mut u64, old: &[u8]) {
    *set = old.iter().enumerate().fold(0, |m, (new, &from)| m | (*set >> from & 1) << new);
}

/// A bit, when the bits `old` become 0, 1, ...; none where it is not among them.
pub fn remap_bit(bit: u32, old: &[u8]) -> Option<u32> {
    old.iter().position(|&from| u32::from(from) == bit).map(|n| n as u32)
}
