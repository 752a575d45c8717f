//! What the driver knows of an address.

use crate::context;
use crate::error::{Answer, Code};
use crate::memory::{Allocation, Kind};
use crate::state::{Driver, driver};
use crate::types::{In, Out};

/// The memory that an address is in; that of a module's variable too.
pub fn find(driver: &Driver, address: u64) -> Option<Allocation> {
    if let Some(a) = driver.allocations.find(address) {
        return Some(a);
    }
    let b = driver.space().memory().find(address)?;
    Some(Allocation {
        start: b.start,
        bytes: b.end - b.start,
        base: b.start,
        kind: Kind::Device,
        device: 0,
        context: context::top().map_or(0, |c| c.id),
        id: b.start,
        flags: 0,
        is_synchronous: false,
    })
}

/// Numbers of attributes.
mod number {
    pub const CONTEXT: u32 = 1;
    pub const MEMORY_TYPE: u32 = 2;
    pub const DEVICE_POINTER: u32 = 3;
    pub const HOST_POINTER: u32 = 4;
    pub const P2P_TOKENS: u32 = 5;
    pub const SYNC_MEMOPS: u32 = 6;
    pub const BUFFER_ID: u32 = 7;
    pub const IS_MANAGED: u32 = 8;
    pub const DEVICE_ORDINAL: u32 = 9;
    pub const IS_LEGACY_IPC: u32 = 10;
    pub const RANGE_START: u32 = 11;
    pub const RANGE_SIZE: u32 = 12;
    pub const MAPPED: u32 = 13;
    pub const HANDLE_TYPES: u32 = 14;
    pub const GPU_DIRECT: u32 = 15;
    pub const ACCESS_FLAGS: u32 = 16;
    pub const POOL: u32 = 17;
    pub const MAPPING_SIZE: u32 = 18;
    pub const MAPPING_START: u32 = 19;
    pub const BLOCK_ID: u32 = 20;
    pub const HW_DECOMPRESS: u32 = 21;
}

/// The bytes of an attribute, and the code that goes with them.
fn value(driver: &Driver, a: &Allocation, attribute: u32, address: u64) -> (Vec<u8>, Answer) {
    use number::*;
    let word = |v: u32| (v.to_le_bytes().to_vec(), Ok(()));
    let long = |v: u64| (v.to_le_bytes().to_vec(), Ok(()));
    let none = || (0u64.to_le_bytes().to_vec(), Err(Code::INVALID_VALUE));
    let is_host = a.kind.is_host();
    match attribute {
        CONTEXT => long(a.context),
        MEMORY_TYPE => word(if is_host { 1 } else { 2 }),
        DEVICE_POINTER => long(address),
        HOST_POINTER if is_host || a.kind == Kind::Managed => long(address),
        P2P_TOKENS if !is_host => long(0),
        HOST_POINTER | P2P_TOKENS => none(),
        SYNC_MEMOPS => word(u32::from(a.is_synchronous || !is_host)),
        BUFFER_ID | BLOCK_ID => long(a.id),
        IS_MANAGED => word(u32::from(a.kind == Kind::Managed)),
        DEVICE_ORDINAL => word(a.device as u32),
        IS_LEGACY_IPC => word(u32::from(a.kind == Kind::Device)),
        RANGE_START => long(a.start),
        RANGE_SIZE => long(a.bytes),
        MAPPED => word(1),
        HANDLE_TYPES => long(0),
        GPU_DIRECT => word(u32::from(a.kind == Kind::Device)),
        ACCESS_FLAGS => word(3),
        POOL => long(driver.pools.of(a)),
        MAPPING_SIZE => long(a.bytes),
        MAPPING_START => long(a.base),
        HW_DECOMPRESS => word(0),
        _ => (Vec::new(), Err(Code::INVALID_VALUE)),
    }
}

fn put(out: Out<u8>, bytes: &[u8]) -> Answer {
    bytes.iter().enumerate().try_for_each(|(n, &byte)| out.put_at(n, byte))
}

pub fn attribute(out: Out<u8>, attribute: u32, address: u64) -> Answer {
    let driver = driver()?;
    let a = find(driver, address).ok_or(Code::INVALID_VALUE)?;
    let (bytes, answer) = value(driver, &a, attribute, address);
    put(out, &bytes)?;
    answer
}

/// Several at once; those that an address does not have are zero.
pub fn attributes(count: u32, list: In<u32>, out: In<Out<u8>>, address: u64) -> Answer {
    let driver = driver()?;
    let found = find(driver, address);
    for n in 0..count as usize {
        let (wanted, to) = (list.at(n)?, out.at(n)?);
        let sample = Allocation {
            start: 0,
            bytes: 0,
            base: 0,
            kind: Kind::Device,
            device: -2,
            context: 0,
            id: 0,
            flags: 0,
            is_synchronous: false,
        };
        let a = found.as_ref().unwrap_or(&sample);
        let (mut bytes, _) = value(driver, a, wanted, address);
        if bytes.is_empty() {
            return Err(Code::INVALID_VALUE);
        }
        if found.is_none() && wanted != number::DEVICE_ORDINAL {
            bytes.fill(0);
        }
        put(to, &bytes)?;
    }
    Ok(())
}

pub fn set_attribute(value: In<u32>, attribute: u32, address: u64) -> Answer {
    let driver = driver()?;
    let a = driver.allocations.find(address).ok_or(Code::INVALID_VALUE)?;
    if attribute != number::SYNC_MEMOPS {
        return Err(Code::INVALID_VALUE);
    }
    driver.allocations.set_synchronous(a.start, value.get()? != 0);
    Ok(())
}
