//! Kernels: their attributes, and launches.

use crate::context;
use crate::error::{Answer, Code};
use crate::handle::{Handle, handle};
use crate::operation::{Kernel, Operation};
use crate::program::{self, Function};
use crate::state::{Driver, driver};
use crate::stream::Stream;
use crate::types::{In, LaunchConfig, Out};
use driver::limits::{self, Part};
use driver::{Dim, image};
use std::ffi::c_char;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Threads of a CTA that a kernel can have: registers are given to warps in units of 256, and a warp has all of its
/// registers in one of the SM's parts.
fn most_threads(driver: &Driver, f: &image::Function) -> u32 {
    let sm = &driver.config.sm;
    let per_warp = (f.registers.max(1) * 32).next_multiple_of(sm.register_unit.max(1));
    let parts = sm.sub_cores.max(1);
    let warps = (sm.registers / parts / per_warp) * parts;
    let bound: u64 = f.max_threads.iter().map(|&n| u64::from(n.max(1))).product();
    let bound = if f.max_threads == [0; 3] { limits::MAX_THREADS } else { bound };
    (warps * 32).min(limits::MAX_THREADS as u32).min(bound as u32)
}

fn attribute_of(driver: &Driver, function: &Function, attribute: u32) -> Answer<i32> {
    let f = function.code()?;
    let image = function.program.module()?.image();
    let (major, minor) = super::device::capability(driver);
    Ok(match attribute {
        0 => most_threads(driver, f) as i32,
        1 => f.shared_bytes as i32,
        2 => image.const_bytes as i32,
        3 => f.local_bytes as i32,
        4 => f.registers as i32,
        5 => image.target as i32,
        6 => 10 * major + minor,
        7 => 0,
        8 => function.most_dynamic_shared()?,
        9 => function.carveout.load(Ordering::Relaxed),
        10..=15 => function.cluster[attribute as usize - 10].load(Ordering::Relaxed),
        _ => return Err(Code::INVALID_VALUE),
    })
}

pub fn attribute(out: Out<i32>, attribute: u32, function: Handle) -> Answer {
    let driver = driver()?;
    let function = program::function(driver, function)?;
    out.put(attribute_of(driver, &function, attribute)?)
}

pub fn set_attribute(function: Handle, attribute: u32, value: i32) -> Answer {
    let driver = driver()?;
    let function = program::function(driver, function)?;
    match attribute {
        8 => {
            let most = super::device::shared_optin(driver) - function.code()?.shared_bytes as i32;
            if !(0..=most).contains(&value) {
                return Err(Code::INVALID_VALUE);
            }
            function.dynamic_shared.store(value, Ordering::Relaxed);
        }
        9 if (-1..=100).contains(&value) => function.carveout.store(value, Ordering::Relaxed),
        11..=15 => function.cluster[attribute as usize - 10].store(value, Ordering::Relaxed),
        _ => return Err(Code::INVALID_VALUE),
    }
    Ok(())
}

/// How shared memory and cache are split follows from what is launched; preferences are checked and change nothing.
pub fn set_cache_config(function: Handle, config: u32) -> Answer {
    program::function(driver()?, function)?;
    if config > 3 { Err(Code::INVALID_VALUE) } else { Ok(()) }
}

pub fn set_shared_config(function: Handle, config: u32) -> Answer {
    program::function(driver()?, function)?;
    if config > 2 { Err(Code::INVALID_VALUE) } else { Ok(()) }
}

pub fn module(out: Out<Handle>, function: Handle) -> Answer {
    out.put(handle(program::function(driver()?, function)?.program.id))
}

pub fn name(out: Out<*const c_char>, function: Handle) -> Answer {
    super::library::kernel_name(out, function)
}

pub fn is_loaded(out: Out<u32>, function: Handle) -> Answer {
    program::function(driver()?, function)?;
    out.put(1)
}

pub fn load(function: Handle) -> Answer {
    program::function(driver()?, function).map(|_| ())
}

/// Offset and size of a parameter.
pub fn parameter(function: Handle, n: usize, offset: Out<usize>, size: Out<usize>) -> Answer {
    let function = program::function(driver()?, function)?;
    let param = function.code()?.params.get(n).ok_or(Code::INVALID_VALUE)?;
    offset.put(param.offset as usize)?;
    size.offer(param.size as usize);
    Ok(())
}

/// Marks in the list of extra arguments: end, buffer, its size.
const END: usize = 0;
const BUFFER: usize = 1;
const SIZE: usize = 2;

/// The parameter block of a kernel, from pointers to its arguments or from a packed buffer.
pub fn parameters(f: &image::Function, params: In<usize>, extra: In<usize>) -> Answer<Vec<u8>> {
    let mut block = vec![0; f.param_bytes as usize];
    if !params.is_null() {
        if !extra.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        for (n, param) in f.params.iter().enumerate() {
            let from = params.at(n)?;
            if from == 0 {
                return Err(Code::INVALID_VALUE);
            }
            // SAFETY: the client says that each pointer has its argument.
            let bytes = unsafe { crate::types::bytes_at(from, param.size as usize) };
            block[param.offset as usize..][..bytes.len()].copy_from_slice(&bytes);
        }
        return Ok(block);
    }
    if extra.is_null() {
        return if f.params.is_empty() { Ok(block) } else { Err(Code::INVALID_VALUE) };
    }
    let (mut buffer, mut size, mut at) = (0, 0, 0);
    loop {
        match extra.at(at)? {
            END => break,
            BUFFER => buffer = extra.at(at + 1)?,
            // SAFETY: the client gives the address of the size.
            SIZE => size = unsafe { In::new(extra.at(at + 1)? as *const usize) }.get()?,
            _ => return Err(Code::INVALID_VALUE),
        }
        at += 2;
    }
    if (buffer == 0 && size > 0) || size < unpadded(f) {
        return Err(Code::INVALID_VALUE);
    }
    let len = size.min(block.len());
    if len > 0 {
        // SAFETY: the client says that so many bytes are there.
        block[..len].copy_from_slice(&unsafe { crate::types::bytes_at(buffer, len) });
    }
    Ok(block)
}

/// Where the last parameter ends.
pub fn unpadded(f: &image::Function) -> usize {
    f.params.iter().map(|p| (p.offset + p.size) as usize).max().unwrap_or(0)
}

/// Whether a kernel can be launched so.
pub fn check(driver: &Driver, function: &Function, dim: &Dim) -> Answer {
    if dim.shared_bytes as i64 > i64::from(function.most_dynamic_shared()?) {
        return Err(Code::INVALID_VALUE);
    }
    let code = function.code()?;
    limits::check_shape(code, dim).map_err(|refusal| match refusal.part {
        // The shape is fine, the registers are not enough.
        Part::Block if refusal.message.contains("registers") => Code::LAUNCH_OUT_OF_RESOURCES,
        _ => Code::INVALID_VALUE,
    })?;
    let threads: u32 = dim.block.iter().product();
    let is_bounded = code.max_threads != [0; 3];
    if !is_bounded && threads > most_threads(driver, code) {
        return Err(Code::LAUNCH_OUT_OF_RESOURCES);
    }
    Ok(())
}

fn launch(
    function: Handle,
    dim: Dim,
    stream: Handle,
    params: In<usize>,
    extra: In<usize>,
    is_cooperative: bool,
) -> Answer {
    let driver = driver()?;
    context::current()?;
    let function = program::function(driver, function)?;
    let stream = Stream::find(driver, stream)?;
    if !Arc::ptr_eq(&function.program.context, &stream.context) {
        return Err(Code::INVALID_HANDLE);
    }
    check(driver, &function, &dim)?;
    if is_cooperative {
        super::occupancy::check_cooperative(driver, &function, &dim)?;
    }
    let params = parameters(function.code()?, params, extra)?;
    stream.enqueue(Operation::Kernel(Kernel { function, dim, params, is_cooperative })).map(|_| ())
}

pub fn kernel(
    function: Handle,
    gx: u32,
    gy: u32,
    gz: u32,
    bx: u32,
    by: u32,
    bz: u32,
    shared_bytes: u32,
    stream: Handle,
    params: In<usize>,
    extra: In<usize>,
) -> Answer {
    let dim = Dim { grid: [gx, gy, gz], block: [bx, by, bz], shared_bytes };
    launch(function, dim, stream, params, extra, false)
}

pub fn cooperative(
    function: Handle,
    gx: u32,
    gy: u32,
    gz: u32,
    bx: u32,
    by: u32,
    bz: u32,
    shared_bytes: u32,
    stream: Handle,
    params: In<usize>,
) -> Answer {
    let dim = Dim { grid: [gx, gy, gz], block: [bx, by, bz], shared_bytes };
    // SAFETY: null is a list of no extra arguments.
    launch(function, dim, stream, params, unsafe { In::new(std::ptr::null()) }, true)
}

/// Attributes of launches that change what is done.
const COOPERATIVE: u32 = 2;
const CLUSTER: u32 = 4;

pub fn kernel_ex(config: In<LaunchConfig>, function: Handle, params: In<usize>, extra: In<usize>) -> Answer {
    let config = config.get()?;
    let mut is_cooperative = false;
    for attribute in config.attributes.list(config.count as usize)? {
        match attribute.id {
            COOPERATIVE => is_cooperative = attribute.value[0] != 0,
            // Clusters of one CTA are no clusters; others do not exist here.
            CLUSTER if attribute.value[..3].iter().any(|&n| n > 1) => return Err(Code::NOT_SUPPORTED),
            _ => {}
        }
    }
    let dim = Dim { grid: config.grid, block: config.block, shared_bytes: config.shared_bytes };
    launch(function, dim, config.stream, params, extra, is_cooperative)
}

pub fn host_function(
    stream: Handle,
    function: Option<unsafe extern "C" fn(*mut std::ffi::c_void)>,
    data: usize,
) -> Answer {
    let stream = Stream::find(driver()?, stream)?;
    let function = function.ok_or(Code::INVALID_VALUE)?;
    let host = crate::operation::HostFunction { function, data };
    stream.enqueue(Operation::Host(host)).map(|_| ())
}
