//! Devices and their attributes, by the configuration.

use crate::error::{Answer, Code};
use crate::state::{Driver, Gpu, driver};
use crate::types::{Out, Text, Uuid};
use driver::limits;

pub fn get(out: Out<i32>, ordinal: i32) -> Answer {
    let gpu = driver()?.gpu(ordinal)?;
    out.put(gpu.ordinal)
}

pub fn count(out: Out<i32>) -> Answer {
    out.put(driver()?.gpus.len() as i32)
}

/// Leaves a text in a buffer, cut to its size, with a zero at its end.
pub fn put_text(to: Out<u8>, len: i32, text: &str) -> Answer {
    let len = usize::try_from(len).ok().filter(|&n| n > 0).ok_or(Code::INVALID_VALUE)?;
    let kept = &text.as_bytes()[..text.len().min(len - 1)];
    kept.iter().chain(&[0]).enumerate().try_for_each(|(n, &byte)| to.put_at(n, byte))
}

pub fn name(out: Out<u8>, len: i32, ordinal: i32) -> Answer {
    let driver = driver()?;
    driver.gpu(ordinal)?;
    let name = &driver.config.name;
    // Clients look for the maker's name.
    let shown = if name == "h200" { "NVIDIA H200".to_owned() } else { format!("Warploom {name}") };
    put_text(out, len, &shown)
}

/// The same for the same device of every process.
fn uuid_of(gpu: &Gpu) -> Uuid {
    let mut bytes = *b"warploom\0\x40\0\x80\0\0\0\0";
    bytes[15] = gpu.ordinal as u8;
    Uuid(bytes)
}

pub fn uuid(out: Out<Uuid>, ordinal: i32) -> Answer {
    out.put(uuid_of(driver()?.gpu(ordinal)?))
}

pub fn luid(_luid: Out<u8>, _mask: Out<u32>, ordinal: i32) -> Answer {
    driver()?.gpu(ordinal)?;
    Err(Code::NOT_SUPPORTED)
}

pub fn total_memory(out: Out<usize>, ordinal: i32) -> Answer {
    let driver = driver()?;
    driver.gpu(ordinal)?;
    out.put(driver.config.memory_bytes as usize)
}

/// Major and minor number of the compute capability: that of the configuration's kind of machine.
pub fn capability(driver: &Driver) -> (i32, i32) {
    // Only Hopper's machine has this much shared memory for a CTA; what has less is an Ampere to its clients.
    if shared_optin(driver) >= limits::MAX_SHARED as i32 { (9, 0) } else { (8, 0) }
}

pub fn compute_capability(major: Out<i32>, minor: Out<i32>, ordinal: i32) -> Answer {
    let driver = driver()?;
    driver.gpu(ordinal)?;
    let (a, b) = capability(driver);
    major.put(a)?;
    minor.put(b)
}

fn shared_per_sm(driver: &Driver) -> i32 {
    driver.config.sm.shared_splits.last().copied().unwrap_or(0) as i32
}

/// Shared memory that a CTA can have.
pub fn shared_optin(driver: &Driver) -> i32 {
    shared_per_sm(driver) - driver.config.sm.shared_reserved as i32
}

pub fn l2_bytes(driver: &Driver) -> u64 {
    let l2 = &driver.config.l2;
    u64::from(l2.slices) * u64::from(l2.sets) * u64::from(l2.ways) * 128
}

/// What an H200's driver of CUDA 13.0 answers, for what does not depend on the configuration: limits of the programming
/// model and of textures, and what the driver can do. Attributes that name something that is not here are zero.
#[rustfmt::skip]
const FIXED: [(u32, i32); 102] = [
    (1, 1024), (2, 1024), (3, 1024), (4, 64), (5, 2147483647), (6, 65535), (7, 65535), (8, 49152), (9, 65536), (10, 32),
    (11, 2147483647), (14, 512), (15, 1), (17, 0), (18, 0), (19, 1), (20, 0), (21, 131072), (22, 131072), (23, 65536),
    (24, 16384), (25, 16384), (26, 16384), (27, 32768), (28, 32768), (29, 2048), (30, 512), (31, 1), (32, 1), (33, 0),
    (34, 6), (35, 0), (40, 3), (41, 1), (42, 32768), (43, 2048), (44, 1), (45, 32768), (46, 32768), (47, 8192),
    (48, 8192), (49, 32768), (50, 0), (51, 32), (52, 32768), (53, 32768), (54, 2046), (55, 32768), (56, 131072), (57, 65536),
    (58, 16384), (59, 16384), (60, 16384), (61, 32768), (62, 2048), (63, 32768), (64, 32768), (65, 2048), (66, 32768), (67, 32768),
    (68, 2046), (69, 268435456), (70, 131072), (71, 65000), (72, 2097120), (73, 32768), (74, 32768), (77, 32768), (78, 1), (79, 1),
    (80, 1), (83, 1), (84, 0), (85, 0), (86, 0), (87, 2), (88, 0), (89, 1), (90, 1), (91, 1),
    (92, 1), (93, 0), (94, 1), (95, 1), (96, 0), (98, 0), (99, 1), (100, 0), (101, 0), (102, 1),
    (103, 1), (104, 0), (105, 0), (107, 0), (110, 0), (113, 1), (114, 1), (115, 1), (116, 0), (117, 1),
    (119, 1), (120, 0),
];

/// Attributes past the last of [`FIXED`] that exist: what this driver does not have.
const LAST: u32 = 147;

fn attribute_of(driver: &Driver, gpu: &Gpu, attribute: u32) -> Answer<i32> {
    let (config, sm) = (&driver.config, &driver.config.sm);
    let (major, minor) = capability(driver);
    Ok(match attribute {
        12 | 82 => sm.registers as i32,
        13 => (config.clock_mhz * 1000) as i32,
        16 => config.sms() as i32,
        33 => gpu.ordinal,
        // Memory clock and bus width that give the bandwidth of all channels.
        36 => {
            let bytes = f64::from(config.dram.channels) * config.dram.bytes_per_cycle;
            let bits_per_clock = 2.0 * f64::from(bus_width(driver)) / 8.0;
            (f64::from(config.clock_mhz) * 1000.0 * bytes / bits_per_clock) as i32
        }
        37 => bus_width(driver),
        38 => l2_bytes(driver).min(i32::MAX as u64) as i32,
        39 => (sm.warps * 32) as i32,
        75 => major,
        76 => minor,
        81 => shared_per_sm(driver),
        97 => shared_optin(driver),
        106 => sm.ctas as i32,
        108 => 0,
        109 => 0,
        111 => sm.shared_reserved as i32,
        _ => match FIXED.iter().find(|(a, _)| *a == attribute) {
            Some((_, value)) => *value,
            None if (1..=LAST).contains(&attribute) => 0,
            None => return Err(Code::INVALID_VALUE),
        },
    })
}

/// Bits of the memory bus: 64 for each channel of an HBM stack's layer.
fn bus_width(driver: &Driver) -> i32 {
    (driver.config.dram.channels * 64) as i32
}

pub fn attribute(out: Out<i32>, attribute: u32, ordinal: i32) -> Answer {
    let driver = driver()?;
    let gpu = driver.gpu(ordinal)?;
    out.put(attribute_of(driver, gpu, attribute)?)
}

/// `CUdevprop`: the oldest way to ask.
pub fn properties(out: Out<[i32; 14]>, ordinal: i32) -> Answer {
    let driver = driver()?;
    let gpu = driver.gpu(ordinal)?;
    let mut all = [0; 14];
    let asked = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];
    for (value, attribute) in all.iter_mut().zip(asked) {
        *value = attribute_of(driver, gpu, attribute)?;
    }
    out.put(all)
}

fn bus_id(gpu: &Gpu) -> String {
    format!("0000:{:02x}:00.0", gpu.ordinal)
}

pub fn pci_bus_id(out: Out<u8>, len: i32, ordinal: i32) -> Answer {
    put_text(out, len, &bus_id(driver()?.gpu(ordinal)?))
}

pub fn by_pci_bus_id(out: Out<i32>, id: Text) -> Answer {
    let id = id.get()?.to_ascii_lowercase();
    let found = driver()?.gpus.iter().find(|g| bus_id(g) == id || bus_id(g)[5..] == id);
    out.put(found.ok_or(Code::INVALID_DEVICE)?.ordinal)
}

pub fn can_access_peer(out: Out<i32>, device: i32, peer: i32) -> Answer {
    let driver = driver()?;
    driver.gpu(device)?;
    driver.gpu(peer)?;
    out.put(i32::from(device != peer))
}

pub fn p2p_attribute(out: Out<i32>, attribute: u32, device: i32, peer: i32) -> Answer {
    let driver = driver()?;
    driver.gpu(device)?;
    driver.gpu(peer)?;
    if device == peer {
        return Err(Code::INVALID_DEVICE);
    }
    match attribute {
        // Rank of the link, whether memory, atomics and arrays can be reached.
        1 => out.put(0),
        2 | 3 => out.put(1),
        4 | 5 => out.put(0),
        _ => Err(Code::INVALID_VALUE),
    }
}

pub fn texture_width(out: Out<usize>, _format: u32, _channels: u32, ordinal: i32) -> Answer {
    driver()?.gpu(ordinal)?;
    out.put(268_435_456)
}

pub fn exec_affinity(out: Out<i32>, _kind: u32, ordinal: i32) -> Answer {
    driver()?.gpu(ordinal)?;
    out.put(0)
}
