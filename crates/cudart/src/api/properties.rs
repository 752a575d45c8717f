//! `cudaDeviceProp`, in the layouts of CUDA 12 and 13.

use crate::driver::{Driver, driver};
use crate::error::Answer;
use crate::runtime::check_device;
use crate::types::Out;

/// A field: an integer or a size that an attribute of the device is the value of, or one that is found otherwise.
#[derive(Clone, Copy)]
enum Field {
    Int(u32),
    Size(u32),
    Name,
    Uuid,
    /// Of another operating system: eight bytes and a mask.
    Luid,
    Memory,
    /// Reserved words.
    Zeros(usize),
}
use Field::{Int, Luid, Memory, Name, Size, Uuid, Zeros};

/// From the name to the largest grid.
#[rustfmt::skip]
const FIRST: [Field; 15] = [
    Name, Uuid, Luid, Memory, Size(8), Int(12), Int(10), Size(11), Int(1), Int(2), Int(3), Int(4), Int(5), Int(6),
    Int(7),
];
#[rustfmt::skip]
const TEXTURES: [Field; 36] = [
    // Textures of two and three dimensions, gathered, cubes, layers.
    Int(22), Int(23), Int(73), Int(74), Int(70), Int(71), Int(72), Int(45), Int(46), Int(24), Int(25), Int(26), Int(47),
    Int(48), Int(49), Int(52), Int(42), Int(43), Int(27), Int(28), Int(29), Int(53), Int(54),
    // Surfaces.
    Int(55), Int(56), Int(57), Int(58), Int(59), Int(60), Int(61), Int(62), Int(63), Int(64), Int(65), Int(66), Int(67),
];
#[rustfmt::skip]
const PLACE: [Field; 10] = [
    Int(68), Size(30), Int(31), Int(32), Int(33), Int(34), Int(50), Int(35), Int(40), Int(41),
];
#[rustfmt::skip]
const CACHES: [Field; 12] = [
    Int(37), Int(38), Int(108), Int(39), Int(78), Int(79), Int(80), Size(81), Int(82), Int(83), Int(84), Int(85),
];
#[rustfmt::skip]
const LAST: [Field; 18] = [
    Size(97), Int(100), Int(101), Int(106), Int(109), Size(111), Int(99), Int(112), Int(113), Int(114), Int(115),
    Int(116), Int(117), Int(118), Int(119), Int(121), Int(125), Int(120),
];

/// The fields of CUDA 13's structure.
fn fields_13() -> Vec<Field> {
    let mut all = FIRST.to_vec();
    all.extend([Size(9), Int(75), Int(76), Size(14), Size(51), Int(16), Int(18), Int(19), Int(21), Int(77)]);
    all.extend(TEXTURES);
    all.extend(PLACE);
    all.extend(CACHES);
    all.extend([Int(86), Int(88), Int(89), Int(90), Int(91), Int(95)]);
    all.extend(LAST);
    all.extend([Zeros(1), Int(130), Int(131), Int(133), Int(134), Int(139), Int(140), Int(143), Zeros(56)]);
    all
}

/// The fields of CUDA 12's.
fn fields_12() -> Vec<Field> {
    let mut all = FIRST.to_vec();
    all.extend([
        Int(13),
        Size(9),
        Int(75),
        Int(76),
        Size(14),
        Size(51),
        Int(15),
        Int(16),
        Int(17),
        Int(18),
        Int(19),
    ]);
    all.extend([Int(20), Int(21), Int(77), Int(69)]);
    all.extend(TEXTURES);
    all.extend(PLACE);
    all.push(Int(36));
    all.extend(CACHES);
    all.extend([Int(86), Int(87), Int(88), Int(89), Int(90), Int(91), Int(95), Int(96)]);
    all.extend(LAST);
    all.extend([Zeros(1), Zeros(63)]);
    all
}

/// The bytes of a structure with these fields, laid out as in C.
fn lay_out(driver: &Driver, fields: &[Field], device: i32) -> Answer<Vec<u8>> {
    let mut bytes: Vec<u8> = Vec::new();
    let attribute = |number: u32| {
        let mut value = 0;
        driver.cuDeviceGetAttribute(Out::to(&mut value), number, device).map(|()| value)
    };
    for field in fields {
        match *field {
            Int(number) => bytes.extend(attribute(number)?.to_le_bytes()),
            Size(number) => {
                bytes.resize(bytes.len().next_multiple_of(8), 0);
                bytes.extend((attribute(number)? as u64).to_le_bytes());
            }
            Name => {
                let mut name = [0u8; 256];
                driver.cuDeviceGetName(Out::to(&mut name).cast(), name.len() as i32, device)?;
                bytes.extend(name);
            }
            Uuid => {
                let mut uuid = [0; 16];
                driver.cuDeviceGetUuid_v2(Out::to(&mut uuid), device)?;
                bytes.extend(uuid);
            }
            Luid => bytes.extend([0; 12]),
            Memory => {
                let mut total = 0;
                driver.cuDeviceTotalMem_v2(Out::to(&mut total), device)?;
                bytes.resize(bytes.len().next_multiple_of(8), 0);
                bytes.extend((total as u64).to_le_bytes());
            }
            Zeros(words) => bytes.resize(bytes.len() + 4 * words, 0),
        }
    }
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    Ok(bytes)
}

fn put(out: Out<u8>, fields: &[Field], device: i32, most: usize) -> Answer {
    let driver = driver()?;
    check_device(driver, device)?;
    let bytes = lay_out(driver, fields, device)?;
    bytes.iter().take(most).enumerate().try_for_each(|(n, &byte)| out.put_at(n, byte))
}

pub fn version_13(out: Out<u8>, device: i32) -> Answer {
    put(out, &fields_13(), device, usize::MAX)
}

pub fn version_12(out: Out<u8>, device: i32) -> Answer {
    put(out, &fields_12(), device, usize::MAX)
}

/// The structure of CUDA 11, which is the beginning of 12's.
pub fn version_11(out: Out<u8>, device: i32) -> Answer {
    const BYTES: usize = 728;
    put(out, &fields_12(), device, BYTES)
}
