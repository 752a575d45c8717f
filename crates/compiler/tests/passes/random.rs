//! Seeded numbers for property tests.

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// f32 bits: small integers, denormals, big and ordinary numbers, infinities; no NaN.
    pub fn float(&mut self) -> u64 {
        let bits = match self.below(6) {
            0 => (self.below(9) as f32 - 4.0).to_bits(),
            1 => self.next() as u32 & 0x807f_ffff,
            2 => f32::INFINITY.to_bits() | (self.next() as u32 & 0x8000_0000),
            3 => self.pick(&[0x3f80_0000, 0xbf80_0000, 0x8000_0000, 0, 0x4000_0000, 0x3e80_0000]),
            _ => self.next() as u32,
        };
        u64::from(if f32::from_bits(bits).is_nan() { 0x3f80_0000 } else { bits })
    }
}
