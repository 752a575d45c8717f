//! Devices: which there are, which one a thread uses, its limits.

use crate::driver::driver;
use crate::error::{Answer, Code};
use crate::runtime::{self, enter};
use crate::types::{Handle, In, Out, Text};

pub fn count(out: Out<i32>) -> Answer {
    driver()?.cuDeviceGetCount(out)
}

pub fn get(out: Out<i32>) -> Answer {
    out.put(runtime::device()?)
}

pub fn set(device: i32) -> Answer {
    runtime::set_device(device)
}

/// The context is made when it is needed; a thread's device does not change.
pub fn init(device: i32, _device_flags: u32, _flags: u32) -> Answer {
    let driver = driver()?;
    runtime::check_device(driver, device)?;
    runtime::primary(driver, device).map(|_| ())
}

/// The first that there is: all are alike.
pub fn choose(out: Out<i32>, properties: usize) -> Answer {
    driver()?;
    if properties == 0 { Err(Code::INVALID_VALUE) } else { out.put(0) }
}

pub fn set_valid(list: In<i32>, len: i32) -> Answer {
    let driver = driver()?;
    if len <= 0 { Ok(()) } else { runtime::check_device(driver, list.get()?) }
}

pub fn set_flags(flags: u32) -> Answer {
    driver()?.cuDevicePrimaryCtxSetFlags_v2(runtime::device()?, flags)
}

pub fn get_flags(out: Out<u32>) -> Answer {
    enter()?.cuCtxGetFlags(out)
}

pub fn reset() -> Answer {
    runtime::reset()
}

pub fn synchronize() -> Answer {
    enter()?.cuCtxSynchronize()
}

/// Attributes have the driver's numbers.
pub fn attribute(out: Out<i32>, attribute: u32, device: i32) -> Answer {
    driver()?.cuDeviceGetAttribute(out, attribute, device)
}

pub fn pci_bus_id(out: Out<u8>, len: i32, device: i32) -> Answer {
    driver()?.cuDeviceGetPCIBusId(out, len, device)
}

pub fn by_pci_bus_id(out: Out<i32>, id: Text) -> Answer {
    driver()?.cuDeviceGetByPCIBusId(out, id)
}

pub fn get_limit(out: Out<usize>, limit: u32) -> Answer {
    enter()?.cuCtxGetLimit(out, limit)
}

pub fn set_limit(limit: u32, value: usize) -> Answer {
    enter()?.cuCtxSetLimit(limit, value)
}

pub fn reset_persisting() -> Answer {
    enter()?.cuCtxResetPersistingL2Cache()
}

pub fn priority_range(least: Out<i32>, greatest: Out<i32>) -> Answer {
    enter()?.cuCtxGetStreamPriorityRange(least, greatest)
}

pub fn get_cache_config(out: Out<u32>) -> Answer {
    enter()?.cuCtxGetCacheConfig(out)
}

pub fn set_cache_config(config: u32) -> Answer {
    enter()?.cuCtxSetCacheConfig(config)
}

pub fn get_shared_config(out: Out<u32>) -> Answer {
    enter()?.cuCtxGetSharedMemConfig(out)
}

pub fn set_shared_config(config: u32) -> Answer {
    enter()?.cuCtxSetSharedMemConfig(config)
}

pub fn can_access_peer(out: Out<i32>, device: i32, peer: i32) -> Answer {
    driver()?.cuDeviceCanAccessPeer(out, device, peer)
}

pub fn p2p_attribute(out: Out<i32>, attribute: u32, device: i32, peer: i32) -> Answer {
    driver()?.cuDeviceGetP2PAttribute(out, attribute, device, peer)
}

pub fn enable_peer(peer: i32, flags: u32) -> Answer {
    let driver = enter()?;
    runtime::check_device(driver, peer)?;
    if peer == runtime::device()? {
        return Err(Code::INVALID_DEVICE);
    }
    driver.cuCtxEnablePeerAccess(runtime::primary(driver, peer)?, flags)
}

pub fn disable_peer(peer: i32) -> Answer {
    let driver = enter()?;
    runtime::check_device(driver, peer)?;
    driver.cuCtxDisablePeerAccess(runtime::primary(driver, peer)?)
}

pub fn default_pool(out: Out<Handle>, device: i32) -> Answer {
    driver()?.cuDeviceGetDefaultMemPool(out, device)
}

pub fn pool(out: Out<Handle>, device: i32) -> Answer {
    driver()?.cuDeviceGetMemPool(out, device)
}

pub fn set_pool(device: i32, pool: Handle) -> Answer {
    driver()?.cuDeviceSetMemPool(device, pool)
}
