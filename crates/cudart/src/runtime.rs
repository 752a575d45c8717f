//! Which device a thread works on, and the context that its calls use.

use crate::driver::{Driver, driver};
use crate::error::{Answer, Code};
use crate::types::{Handle, Out};
use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

thread_local! {
    /// The device that the thread chose.
    static DEVICE: Cell<i32> = const { Cell::new(0) };
}

/// Devices whose primary context the runtime holds: it takes each once, for good.
static HELD: Mutex<Vec<(i32, usize)>> = Mutex::new(Vec::new());

/// The primary context of a device.
pub fn primary(driver: &Driver, device: i32) -> Answer<Handle> {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&(_, context)) = held.iter().find(|(d, _)| *d == device) {
        return Ok(context as Handle);
    }
    let mut context = std::ptr::null_mut();
    driver.cuDevicePrimaryCtxRetain(Out::to(&mut context), device)?;
    held.push((device, context as usize));
    Ok(context)
}

/// The driver, with a context for this thread: the one that it has, or the primary context of its device.
pub fn enter() -> Answer<&'static Driver> {
    let driver = driver()?;
    let mut context: Handle = std::ptr::null_mut();
    driver.cuCtxGetCurrent(Out::to(&mut context))?;
    if context.is_null() {
        driver.cuCtxSetCurrent(primary(driver, DEVICE.get())?)?;
    }
    Ok(driver)
}

/// The device that this thread works on.
pub fn device() -> Answer<i32> {
    let driver = driver()?;
    let (mut context, mut device): (Handle, i32) = (std::ptr::null_mut(), 0);
    driver.cuCtxGetCurrent(Out::to(&mut context))?;
    if context.is_null() {
        return Ok(DEVICE.get());
    }
    driver.cuCtxGetDevice(Out::to(&mut device))?;
    Ok(device)
}

/// Whether there is such a device.
pub fn check_device(driver: &Driver, device: i32) -> Answer {
    let mut count = 0;
    driver.cuDeviceGetCount(Out::to(&mut count))?;
    if (0..count).contains(&device) { Ok(()) } else { Err(Code::INVALID_DEVICE) }
}

/// This thread works on a device from now on.
pub fn set_device(device: i32) -> Answer {
    let driver = driver()?;
    check_device(driver, device)?;
    DEVICE.set(device);
    driver.cuCtxSetCurrent(primary(driver, device)?)
}

/// Ends everything on this thread's device; what comes next starts anew.
pub fn reset() -> Answer {
    let (driver, device) = (driver()?, device()?);
    driver.cuDevicePrimaryCtxReset_v2(device)?;
    HELD.lock().unwrap_or_else(PoisonError::into_inner).retain(|(d, _)| *d != device);
    driver.cuCtxSetCurrent(std::ptr::null_mut())
}

/// The stream that is meant: in forms for per-thread default streams, none is the thread's own.
pub fn stream(stream: Handle) -> Handle {
    const PER_THREAD: usize = 2;
    if stream.is_null() && crate::is_per_thread() { PER_THREAD as Handle } else { stream }
}
