//! The special-function unit against checksums of whole binades measured on an H200.

use arith::{bf16, f16, mufu};

struct Crc(u32);

impl Crc {
    fn update(&mut self, bytes: &[u8], table: &[u32; 256]) {
        for byte in bytes {
            self.0 = table[(self.0 as u8 ^ byte) as usize] ^ (self.0 >> 8);
        }
    }
}

/// CRC-32 (the reflected 0x04C11DB7) of little-endian words.
fn crc<const N: usize>(words: impl Iterator<Item = [u8; N]>) -> u32 {
    let table = std::array::from_fn(|i| {
        (0..8).fold(i as u32, |c, _| if c & 1 == 1 { 0xEDB8_8320 ^ (c >> 1) } else { c >> 1 })
    });
    let mut crc = Crc(!0);
    words.for_each(|word| crc.update(&word, &table));
    !crc.0
}

fn check(name: &str, first: u32, log2_count: u32, f: impl Fn(u32) -> u32, expected: u32) {
    let got = crc((first..first + (1 << log2_count)).map(|a| f(a).to_le_bytes()));
    assert_eq!(got, expected, "{name} from {first:#x}");
}

/// sin and cos take revolutions: the instruction sequence multiplies first.
fn turns(a: u32) -> u32 {
    arith::fp32::mul(a, 0x3e22_f983, arith::Mode::round(arith::Round::Rz))
}

#[test]
fn reciprocals_and_roots() {
    check("rcp", 0x3f80_0000, 23, mufu::rcp, 0xa9f2_ecfc);
    check("rsq", 0x3f80_0000, 24, mufu::rsq, 0x9d05_87e4);
    check("sqrt", 0x3f80_0000, 24, mufu::sqrt, 0x9889_1b5d);
    check("rcp64h", 0x3ff0_0000, 20, mufu::rcp64h, 0x57b8_880f);
    check("rsq64h", 0x3ff0_0000, 21, mufu::rsq64h, 0x511658e8);
}

#[test]
fn exponentials_and_logarithms() {
    check("ex2", 0x3f80_0000, 23, mufu::ex2, 0x6764_86cd);
    check("ex2", 0x3f00_0000, 23, mufu::ex2, 0x2746_c468);
    check("ex2", 0xbf80_0000, 23, mufu::ex2, 0xc994_45cd);
    check("lg2", 0x3f80_0000, 23, mufu::lg2, 0x15f1_d460);
    check("lg2", 0x3f00_0000, 23, mufu::lg2, 0x1852_a07c);
}

#[test]
fn circular_and_hyperbolic() {
    check("sin", 0x3f80_0000, 23, |a| mufu::sin(turns(a)), 0x1300_793b);
    check("sin", 0x3f00_0000, 23, |a| mufu::sin(turns(a)), 0xa400_541d);
    check("cos", 0x3f80_0000, 23, |a| mufu::cos(turns(a)), 0xff05_8f5d);
    check("cos", 0x3f00_0000, 23, |a| mufu::cos(turns(a)), 0x39a7_75db);
    check("tanh", 0x3f00_0000, 23, mufu::tanh, 0x0366_9e9f);
    check("tanh", 0x3f80_0000, 23, mufu::tanh, 0x1ac4_36a3);
}

#[test]
fn sixteen_bit_forms() {
    let all = |f: fn(u16) -> u16| crc((0..=u16::MAX).map(move |a| f(a).to_le_bytes()));
    assert_eq!(all(f16::ex2), 0xd535_0e3b);
    assert_eq!(all(bf16::ex2), 0xeab0_2565);
    assert_eq!(all(f16::tanh), 0x4fdb_ebf7);
    assert_eq!(all(bf16::tanh), 0xa137_3044);
}
