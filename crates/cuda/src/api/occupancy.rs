//! How many CTAs fit, by the rules of the hardware.

use crate::context;
use crate::error::{Answer, Code};
use crate::handle::Handle;
use crate::program::{self, Function};
use crate::state::{Driver, driver};
use crate::types::{In, LaunchConfig, Out};
use driver::Dim;
use driver::machine::command::Task;
use driver::machine::distribution::Occupancy;
use std::sync::atomic::Ordering;

/// CTAs of so many threads and dynamic bytes that an SM holds.
fn per_sm(driver: &Driver, function: &Function, threads: u32, dynamic: u64) -> Answer<u32> {
    let f = function.code()?;
    let most: u64 = f.max_threads.iter().map(|&n| u64::from(n.max(1))).product();
    let is_bounded = f.max_threads != [0; 3];
    if threads > 1024 || (is_bounded && u64::from(threads) > most) {
        return Ok(0);
    }
    let shared = u64::from(f.shared_bytes) + dynamic;
    if shared > super::device::shared_optin(driver) as u64 {
        return Ok(0);
    }
    let task = Task {
        launch: 0,
        priority: 0,
        ctas: 1,
        threads,
        registers: f.registers,
        shared_bytes: shared as u32,
        barriers: f.barriers,
        ..Task::default()
    };
    let carveout = function.carveout.load(Ordering::Relaxed);
    let preferred = if carveout > 0 { carved(driver, carveout as u32) } else { 0 };
    Ok(Occupancy::new(&driver.config.sm, &task, preferred).ctas_per_sm)
}

/// Bytes that a share of the largest split is, in percent.
fn carved(driver: &Driver, percent: u32) -> u32 {
    let largest = driver.config.sm.shared_splits.last().copied().unwrap_or(0);
    (u64::from(largest) * u64::from(percent.min(100))).div_ceil(100) as u32
}

pub fn max_active(out: Out<i32>, function: Handle, threads: i32, dynamic: usize) -> Answer {
    max_active_flags(out, function, threads, dynamic, 0)
}

pub fn max_active_flags(out: Out<i32>, function: Handle, threads: i32, dynamic: usize, flags: u32) -> Answer {
    let driver = driver()?;
    let function = program::function(driver, function)?;
    if threads <= 0 || flags > 1 {
        return Err(Code::INVALID_VALUE);
    }
    out.put(per_sm(driver, &function, threads as u32, dynamic as u64)? as i32)
}

/// Dynamic shared bytes for a number of threads.
type BytesFor = Option<unsafe extern "C" fn(i32) -> usize>;

pub fn max_potential(
    grid: Out<i32>,
    block: Out<i32>,
    function: Handle,
    bytes_for: BytesFor,
    dynamic: usize,
    limit: i32,
) -> Answer {
    let driver = driver()?;
    let function = program::function(driver, function)?;
    let mut most = super::occupancy::threads_limit(driver, &function)?;
    if limit > 0 {
        most = most.min(limit as u32);
    }
    // The largest CTA of those that fill an SM best; sizes are whole warps, and the limit itself.
    let (mut best, mut best_threads) = (0, 0);
    let mut threads = most;
    while threads > 0 {
        let dynamic = match bytes_for {
            // SAFETY: the client says that its function can be called.
            Some(f) => unsafe { f(threads as i32) },
            None => dynamic,
        };
        let ctas = per_sm(driver, &function, threads, dynamic as u64)?;
        if ctas * threads > best {
            (best, best_threads) = (ctas * threads, threads);
        }
        threads = (threads - 1) / 32 * 32;
    }
    let ctas = best.checked_div(best_threads).unwrap_or(0) * driver.config.sms();
    grid.put(ctas as i32)?;
    block.put(best_threads as i32)
}

/// Threads that a CTA of a kernel can have.
pub fn threads_limit(driver: &Driver, function: &Function) -> Answer<u32> {
    let f = function.code()?;
    let bound: u64 = f.max_threads.iter().map(|&n| u64::from(n.max(1))).product();
    let bound = if f.max_threads == [0; 3] { 1024 } else { bound.min(1024) as u32 };
    let fits = (1..=bound / 32).rev().find(|&w| per_sm(driver, function, 32 * w, 0).is_ok_and(|n| n > 0));
    Ok(fits.map_or(bound.min(32), |w| if 32 * w + 32 > bound { bound } else { 32 * w }))
}

pub fn max_potential_flags(
    grid: Out<i32>,
    block: Out<i32>,
    function: Handle,
    bytes_for: BytesFor,
    dynamic: usize,
    limit: i32,
    flags: u32,
) -> Answer {
    if flags > 1 {
        return Err(Code::INVALID_VALUE);
    }
    max_potential(grid, block, function, bytes_for, dynamic, limit)
}

pub fn available_shared(out: Out<usize>, function: Handle, ctas: i32, threads: i32) -> Answer {
    let driver = driver()?;
    let function = program::function(driver, function)?;
    if ctas <= 0 || threads <= 0 {
        return Err(Code::INVALID_VALUE);
    }
    let sm = &driver.config.sm;
    let largest = sm.shared_splits.last().copied().unwrap_or(0);
    let each = largest / ctas as u32 / sm.shared_unit.max(1) * sm.shared_unit.max(1);
    let own = function.code()?.shared_bytes + sm.shared_reserved;
    let most = super::device::shared_optin(driver) as u32;
    out.put(each.saturating_sub(own).min(most) as usize)
}

/// There are no clusters, so one CTA is one.
pub fn max_clusters(out: Out<i32>, function: Handle, config: In<LaunchConfig>) -> Answer {
    let driver = driver()?;
    context::current()?;
    let function = program::function(driver, function)?;
    let config = config.get()?;
    let threads = config.block.iter().product();
    let ctas = per_sm(driver, &function, threads, config.shared_bytes.into())?;
    out.put((ctas * driver.config.sms()) as i32)
}

pub fn max_cluster_size(out: Out<i32>, function: Handle, _config: In<LaunchConfig>) -> Answer {
    program::function(driver()?, function)?;
    out.put(1)
}

/// All CTAs of a cooperative kernel must be there at once.
pub fn check_cooperative(driver: &Driver, function: &Function, dim: &Dim) -> Answer {
    let threads = dim.block.iter().product();
    let room = per_sm(driver, function, threads, dim.shared_bytes.into())? * driver.config.sms();
    if dim.ctas() > u64::from(room) { Err(Code::COOPERATIVE_LAUNCH_TOO_LARGE) } else { Ok(()) }
}
