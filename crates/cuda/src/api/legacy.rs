//! Launches as they were before CUDA 4: shape and arguments are set on the kernel, one call each.

use super::launch;
use crate::context;
use crate::error::{Answer, Code};
use crate::handle::Handle;
use crate::operation::{Kernel, Operation};
use crate::program::{self, Legacy};
use crate::state::driver;
use crate::stream::Stream;
use crate::types::Address;
use driver::Dim;
use std::sync::PoisonError;

/// Changes what is set on a kernel.
fn change(function: Handle, change: impl FnOnce(&mut Legacy) -> Answer) -> Answer {
    let function = program::function(driver()?, function)?;
    let mut legacy = function.legacy.lock().unwrap_or_else(PoisonError::into_inner);
    change(&mut legacy)
}

pub fn set_block(function: Handle, x: i32, y: i32, z: i32) -> Answer {
    if x <= 0 || y <= 0 || z <= 0 {
        return Err(Code::INVALID_VALUE);
    }
    change(function, |l| {
        l.block = [x as u32, y as u32, z as u32];
        Ok(())
    })
}

pub fn set_shared(function: Handle, bytes: u32) -> Answer {
    change(function, |l| {
        l.shared_bytes = bytes;
        Ok(())
    })
}

pub fn set_size(function: Handle, bytes: u32) -> Answer {
    change(function, |l| {
        l.params.resize(bytes as usize, 0);
        Ok(())
    })
}

fn put(function: Handle, offset: i32, bytes: &[u8]) -> Answer {
    // As many as the parameters of a kernel can be.
    const MOST: usize = 4096;
    let at = usize::try_from(offset).map_err(|_| Code::INVALID_VALUE)?;
    if at + bytes.len() > MOST {
        return Err(Code::INVALID_VALUE);
    }
    change(function, |l| {
        let len = l.params.len().max(at + bytes.len());
        l.params.resize(len, 0);
        l.params[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    })
}

pub fn set_int(function: Handle, offset: i32, value: u32) -> Answer {
    put(function, offset, &value.to_le_bytes())
}

pub fn set_float(function: Handle, offset: i32, value: f32) -> Answer {
    put(function, offset, &value.to_le_bytes())
}

pub fn set_bytes(function: Handle, offset: i32, data: Address, bytes: u32) -> Answer {
    if data == 0 {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the client says that so many bytes are there.
    put(function, offset, &unsafe { crate::types::bytes_at(data, bytes as usize) })
}

pub fn launch(function: Handle) -> Answer {
    launch_grid(function, 1, 1)
}

pub fn launch_grid(function: Handle, width: i32, height: i32) -> Answer {
    launch_grid_async(function, width, height, std::ptr::null_mut())
}

pub fn launch_grid_async(function: Handle, width: i32, height: i32, stream: Handle) -> Answer {
    let driver = driver()?;
    context::current()?;
    let function = program::function(driver, function)?;
    let stream = Stream::find(driver, stream)?;
    if width <= 0 || height <= 0 {
        return Err(Code::INVALID_VALUE);
    }
    let legacy = function.legacy.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let grid = [width as u32, height as u32, 1];
    let dim = Dim { grid, block: legacy.block, shared_bytes: legacy.shared_bytes };
    launch::check(driver, &function, &dim)?;
    let code = function.code()?;
    if legacy.params.len() < launch::unpadded(code) {
        return Err(Code::INVALID_VALUE);
    }
    let mut params = legacy.params;
    params.resize(code.param_bytes as usize, 0);
    stream.enqueue(Operation::Kernel(Kernel { function, dim, params, is_cooperative: false })).map(|_| ())
}
