//! Contexts: primary ones, created ones, and the stack of each thread.

use crate::context::{self, Context};
use crate::error::{Answer, Code};
use crate::handle::Handle;
use crate::state::driver;
use crate::stream::HIGHEST;
use crate::types::Out;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// Scheduling in the low bits; mapping of host memory is always on.
const FLAGS: u32 = 0xff;
const MAP_HOST: u32 = 8;

pub fn primary_retain(out: Out<Handle>, device: i32) -> Answer {
    let driver = driver()?;
    let gpu = driver.gpu(device)?;
    if out.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let mut primary = gpu.primary();
    let context = match &primary.context {
        Some(context) => context.clone(),
        None => {
            let context = Context::new(gpu, primary.flags | MAP_HOST, true);
            driver.contexts.insert(context.id, context.clone());
            primary.context = Some(context.clone());
            context
        }
    };
    primary.users += 1;
    out.put(context.handle())
}

pub fn primary_release(device: i32) -> Answer {
    let driver = driver()?;
    let mut primary = driver.gpu(device)?.primary();
    if primary.context.is_none() {
        return Err(Code::INVALID_CONTEXT);
    }
    primary.users = primary.users.saturating_sub(1);
    if primary.users == 0
        && let Some(context) = primary.context.take()
    {
        drop(primary);
        end(&context)?;
    }
    Ok(())
}

pub fn primary_reset(device: i32) -> Answer {
    let mut primary = driver()?.gpu(device)?.primary();
    primary.users = 0;
    if let Some(context) = primary.context.take() {
        drop(primary);
        end(&context)?;
    }
    Ok(())
}

pub fn primary_set_flags(device: i32, flags: u32) -> Answer {
    if flags & !FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let mut primary = driver()?.gpu(device)?.primary();
    primary.flags = flags;
    if let Some(context) = &primary.context {
        context.set_flags(flags | MAP_HOST);
    }
    Ok(())
}

pub fn primary_state(device: i32, flags: Out<u32>, active: Out<i32>) -> Answer {
    let primary = driver()?.gpu(device)?.primary();
    flags.put(primary.flags)?;
    active.put(i32::from(primary.context.is_some()))
}

/// Ends a context; its handle is known to be dead from now on.
fn end(context: &Arc<Context>) -> Answer {
    context.destroy(driver()?);
    Ok(())
}

pub fn create(out: Out<Handle>, flags: u32, device: i32) -> Answer {
    let driver = driver()?;
    let gpu = driver.gpu(device)?;
    if out.is_null() || flags & !FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let context = Context::new(gpu, flags | MAP_HOST, false);
    driver.contexts.insert(context.id, context.clone());
    out.put(context.handle())?;
    context::push(context);
    Ok(())
}

/// With an affinity to part of the machine, which there is none of.
pub fn create_v3(out: Out<Handle>, _affinity: usize, count: i32, flags: u32, device: i32) -> Answer {
    if count != 0 { Err(Code::NOT_SUPPORTED) } else { create(out, flags, device) }
}

pub fn create_v4(out: Out<Handle>, params: usize, flags: u32, device: i32) -> Answer {
    if params != 0 { Err(Code::NOT_SUPPORTED) } else { create(out, flags, device) }
}

/// The context of a handle, dead ones too.
fn find(handle: Handle) -> Answer<Arc<Context>> {
    driver()?.contexts.find(handle).ok_or(Code::INVALID_CONTEXT)
}

pub fn destroy(handle: Handle) -> Answer {
    if handle.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let context = find(handle)?;
    if context.is_primary || context.is_dead() {
        return Err(Code::INVALID_CONTEXT);
    }
    if context::top().is_some_and(|top| Arc::ptr_eq(&top, &context)) {
        context::pop();
    }
    end(&context)
}

pub fn detach(handle: Handle) -> Answer {
    destroy(handle)
}

pub fn attach(out: Out<Handle>, flags: u32) -> Answer {
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    out.put(context::current()?.handle())
}

pub fn push(handle: Handle) -> Answer {
    context::push(find(handle)?);
    Ok(())
}

pub fn pop(out: Out<Handle>) -> Answer {
    driver()?;
    let context = context::pop().ok_or(Code::INVALID_CONTEXT)?;
    out.offer(context.handle());
    Ok(())
}

pub fn set_current(handle: Handle) -> Answer {
    driver()?;
    let context = if handle.is_null() { None } else { Some(find(handle)?) };
    context::set(context);
    Ok(())
}

pub fn get_current(out: Out<Handle>) -> Answer {
    driver()?;
    out.put(context::top().map_or(null_mut(), |c| c.handle()))
}

pub fn get_device(out: Out<i32>) -> Answer {
    driver()?;
    out.put(context::top().ok_or(Code::INVALID_CONTEXT)?.gpu.ordinal)
}

pub fn get_device_v2(out: Out<i32>, handle: Handle) -> Answer {
    if handle.is_null() { get_device(out) } else { out.put(find(handle)?.gpu.ordinal) }
}

pub fn get_flags(out: Out<u32>) -> Answer {
    out.put(context::current()?.flags())
}

pub fn set_flags(flags: u32) -> Answer {
    let context = context::current()?;
    if flags & !FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    context.set_flags(flags | MAP_HOST);
    Ok(())
}

pub fn get_id(handle: Handle, out: Out<u64>) -> Answer {
    out.put(if handle.is_null() { context::current()?.id } else { find(handle)?.id })
}

pub fn synchronize() -> Answer {
    let context = context::current_or_failed()?;
    let driver = driver()?;
    if driver.streams.all().iter().any(|s| Arc::ptr_eq(&s.context, &context) && s.capture().is_some()) {
        return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
    }
    context.synchronize()
}

pub fn synchronize_v2(handle: Handle) -> Answer {
    if handle.is_null() { synchronize() } else { find(handle)?.synchronize() }
}

pub fn get_limit(out: Out<usize>, limit: u32) -> Answer {
    let context = context::current()?;
    let limits = context.limits.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, value) = limits.iter().find(|(n, _)| *n == limit).ok_or(Code::UNSUPPORTED_LIMIT)?;
    out.put(*value as usize)
}

/// The limit of the heap that device code allocates from.
const HEAP: u32 = 2;

pub fn set_limit(limit: u32, value: usize) -> Answer {
    let context = context::current()?;
    let mut limits = context.limits.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, place) = limits.iter_mut().find(|(n, _)| *n == limit).ok_or(Code::UNSUPPORTED_LIMIT)?;
    let memory = context.gpu.device.memory();
    if limit == HEAP && *place != value as u64 && !memory.set_heap_bytes(value as u64) {
        return Err(Code::INVALID_VALUE);
    }
    *place = value as u64;
    Ok(())
}

pub fn reset_persisting() -> Answer {
    context::current().map(|_| ())
}

pub fn api_version(_handle: Handle, out: Out<u32>) -> Answer {
    driver()?;
    out.put(3020)
}

pub fn priority_range(least: Out<i32>, greatest: Out<i32>) -> Answer {
    context::current()?;
    least.offer(0);
    greatest.offer(HIGHEST);
    Ok(())
}

pub fn get_cache_config(out: Out<u32>) -> Answer {
    out.put(context::current()?.cache_config.load(Ordering::Relaxed))
}

pub fn set_cache_config(config: u32) -> Answer {
    if config > 3 {
        return Err(Code::INVALID_VALUE);
    }
    context::current()?.cache_config.store(config, Ordering::Relaxed);
    Ok(())
}

/// Banks of shared memory are four bytes wide.
pub fn get_shared_config(out: Out<u32>) -> Answer {
    context::current()?;
    out.put(1)
}

pub fn set_shared_config(config: u32) -> Answer {
    context::current()?;
    if config > 2 { Err(Code::INVALID_VALUE) } else { Ok(()) }
}

/// Devices of one address space reach each other's memory at any time; that it was asked for is all there is to it.
pub fn enable_peer(peer: Handle, flags: u32) -> Answer {
    let context = context::current()?;
    let peer = find(peer)?;
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    if peer.gpu.ordinal == context.gpu.ordinal {
        return Err(Code::INVALID_DEVICE);
    }
    if context.set_peer(peer.id, true) { Ok(()) } else { Err(Code::PEER_ACCESS_ALREADY_ENABLED) }
}

pub fn disable_peer(peer: Handle) -> Answer {
    let context = context::current()?;
    let peer = find(peer)?;
    if context.set_peer(peer.id, false) { Ok(()) } else { Err(Code::PEER_ACCESS_NOT_ENABLED) }
}
