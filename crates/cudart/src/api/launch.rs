//! Kernels: launches, attributes, occupancy.

use crate::driver::Driver;
use crate::error::{Answer, Code};
use crate::registry;
use crate::runtime::{enter, stream};
use crate::types::driver::LaunchConfig as DriverConfig;
use crate::types::{Dim3, FuncAttributes, Handle, HostFunction, In, LaunchConfig, Out};

/// The driver's function of a kernel in this thread's context.
pub fn function(driver: &Driver, host: usize) -> Answer<Handle> {
    let mut function: Handle = std::ptr::null_mut();
    driver.cuKernelGetFunction(Out::to(&mut function), registry::kernel(host)?)?;
    Ok(function)
}

/// Bytes that a launch asks for; more than any number of 32 bits is more than there is.
fn bytes(shared_bytes: usize) -> Answer<u32> {
    u32::try_from(shared_bytes).map_err(|_| Code::INVALID_VALUE)
}

fn launch(
    kernel: Handle,
    grid: Dim3,
    block: Dim3,
    args: Handle,
    shared_bytes: usize,
    on: Handle,
    is_cooperative: bool,
) -> Answer {
    if kernel.is_null() {
        return Err(Code::INVALID_HANDLE);
    }
    let (driver, shared, on) = (enter()?, bytes(shared_bytes)?, stream(on));
    let ([gx, gy, gz], [bx, by, bz]) = ([grid.x, grid.y, grid.z], [block.x, block.y, block.z]);
    if is_cooperative {
        driver.cuLaunchCooperativeKernel(kernel, gx, gy, gz, bx, by, bz, shared, on, args)
    } else {
        driver.cuLaunchKernel(kernel, gx, gy, gz, bx, by, bz, shared, on, args, std::ptr::null_mut())
    }
}

pub fn kernel(host: usize, grid: Dim3, block: Dim3, args: Handle, shared: usize, on: Handle) -> Answer {
    launch(registry::kernel(host)?, grid, block, args, shared, on, false)
}

/// A kernel that was looked up before.
pub fn found(kernel: Handle, grid: Dim3, block: Dim3, args: Handle, shared: usize, on: Handle) -> Answer {
    launch(kernel, grid, block, args, shared, on, false)
}

pub fn cooperative(host: usize, grid: Dim3, block: Dim3, args: Handle, shared: usize, on: Handle) -> Answer {
    launch(registry::kernel(host)?, grid, block, args, shared, on, true)
}

/// Attributes of launches have the driver's numbers and shape.
fn config(config: In<LaunchConfig>) -> Answer<DriverConfig> {
    let c = config.get()?;
    Ok(DriverConfig {
        grid: c.grid,
        block: c.block,
        shared_bytes: bytes(c.shared_bytes)?,
        stream: stream(c.stream),
        attributes: c.attributes,
        count: c.count,
    })
}

pub fn kernel_ex(asked: In<LaunchConfig>, host: usize, args: Handle) -> Answer {
    let (driver, kernel, config) = (enter()?, registry::kernel(host)?, config(asked)?);
    driver.cuLaunchKernelEx(In::of(&config), kernel, args, std::ptr::null_mut())
}

pub fn host_function(on: Handle, function: HostFunction, data: Handle) -> Answer {
    enter()?.cuLaunchHostFunc(stream(on), function, data)
}

pub fn attributes(out: Out<FuncAttributes>, host: usize) -> Answer {
    let driver = enter()?;
    let function = function(driver, host)?;
    let get = |attribute: u32| {
        let mut value = 0;
        driver.cuFuncGetAttribute(Out::to(&mut value), attribute, function).map(|()| value)
    };
    let mut all = FuncAttributes {
        shared_bytes: get(1)? as usize,
        const_bytes: get(2)? as usize,
        local_bytes: get(3)? as usize,
        ..FuncAttributes::default()
    };
    // Most threads, registers, PTX, binary, caching, dynamic shared memory, carveout; then clusters.
    let numbers = [0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 14];
    for (to, attribute) in all.numbers.iter_mut().zip(numbers) {
        *to = get(attribute)?;
    }
    out.put(all)
}

/// The attributes that can be set have the driver's numbers.
pub fn set_attribute(host: usize, attribute: u32, value: i32) -> Answer {
    let driver = enter()?;
    driver.cuFuncSetAttribute(function(driver, host)?, attribute, value)
}

pub fn set_cache_config(host: usize, config: u32) -> Answer {
    let driver = enter()?;
    driver.cuFuncSetCacheConfig(function(driver, host)?, config)
}

/// How banks are laid out cannot be chosen since Maxwell: checked, and nothing else.
pub fn set_shared_config(host: usize, config: u32) -> Answer {
    function(enter()?, host)?;
    if config > 2 { Err(Code::INVALID_VALUE) } else { Ok(()) }
}

pub fn name(out: Out<usize>, host: usize) -> Answer {
    enter()?.cuKernelGetName(out, registry::kernel(host)?)
}

pub fn parameter(host: usize, n: usize, offset: Out<usize>, size: Out<usize>) -> Answer {
    let driver = enter()?;
    driver.cuFuncGetParamInfo(function(driver, host)?, n, offset, size)
}

pub fn by_symbol(out: Out<Handle>, host: usize) -> Answer {
    out.put(function(enter()?, host)?)
}

pub fn max_active(out: Out<i32>, host: usize, threads: i32, dynamic: usize) -> Answer {
    max_active_flags(out, host, threads, dynamic, 0)
}

pub fn max_active_flags(out: Out<i32>, host: usize, threads: i32, dynamic: usize, flags: u32) -> Answer {
    let driver = enter()?;
    let function = function(driver, host)?;
    driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, function, threads, dynamic, flags)
}

pub fn available_shared(out: Out<usize>, host: usize, ctas: i32, threads: i32) -> Answer {
    let driver = enter()?;
    driver.cuOccupancyAvailableDynamicSMemPerBlock(out, function(driver, host)?, ctas, threads)
}

pub fn max_clusters(out: Out<i32>, host: usize, asked: In<LaunchConfig>) -> Answer {
    let (driver, config) = (enter()?, config(asked)?);
    driver.cuOccupancyMaxActiveClusters(out, function(driver, host)?, In::of(&config))
}

pub fn max_cluster_size(out: Out<i32>, host: usize, asked: In<LaunchConfig>) -> Answer {
    let (driver, config) = (enter()?, config(asked)?);
    driver.cuOccupancyMaxPotentialClusterSize(out, function(driver, host)?, In::of(&config))
}
