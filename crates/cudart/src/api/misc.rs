//! Versions, look-ups of the driver's entry points, the profiler's switch, user objects.

use crate::driver::driver;
use crate::error::Answer;
use crate::runtime::enter;
use crate::types::{Handle, HostFunction, Out, Text};

/// Zero where there is no driver.
pub fn driver_version(out: Out<i32>) -> Answer {
    match driver() {
        Ok(driver) => driver.cuDriverGetVersion(out),
        Err(_) => out.put(0),
    }
}

pub fn version_13(out: Out<i32>) -> Answer {
    out.put(13000)
}

pub fn version_12(out: Out<i32>) -> Answer {
    out.put(12090)
}

pub fn entry_point_by_version(
    name: Text,
    out: Out<usize>,
    version: u32,
    flags: u64,
    status: Out<u32>,
) -> Answer {
    /// Asks for the form whose default stream is the thread's own.
    const PER_THREAD: u64 = 2;
    let flags = if flags == 0 && crate::is_per_thread() { PER_THREAD } else { flags };
    driver()?.cuGetProcAddress_v2(name, out, version as i32, flags, status)
}

/// As of the newest version that the driver knows.
pub fn entry_point(name: Text, out: Out<usize>, flags: u64, status: Out<u32>) -> Answer {
    let mut version = 0;
    driver()?.cuDriverGetVersion(Out::to(&mut version))?;
    entry_point_by_version(name, out, version as u32, flags, status)
}

pub fn profiler_start() -> Answer {
    enter()?.cuProfilerStart()
}

pub fn profiler_stop() -> Answer {
    enter()?.cuProfilerStop()
}

pub fn user_object(out: Out<Handle>, data: Handle, destroy: HostFunction, count: u32, flags: u32) -> Answer {
    driver()?.cuUserObjectCreate(out, data, destroy, count, flags)
}

pub fn user_object_retain(object: Handle, count: u32) -> Answer {
    driver()?.cuUserObjectRetain(object, count)
}

pub fn user_object_release(object: Handle, count: u32) -> Answer {
    driver()?.cuUserObjectRelease(object, count)
}
