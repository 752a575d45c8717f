//! Objects of clients that graphs keep alive: counted, and destroyed by a function of the client when nobody holds them.

use super::graph;
use crate::error::{Answer, Code};
use crate::handle::{self, Handle};
use crate::operation::HostFunction;
use crate::state::driver;
use crate::types::Out;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// An object of the client.
pub struct UserObject {
    destroy: HostFunction,
    holders: AtomicI64,
}

/// Graphs take over references of the caller.
const MOVE: u32 = 1;

/// The destructor does not wait for the device.
const NO_DESTRUCTOR_SYNC: u32 = 1;

pub fn create(
    out: Out<Handle>,
    data: usize,
    destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    count: u32,
    flags: u32,
) -> Answer {
    let driver = driver()?;
    let function = destroy.ok_or(Code::INVALID_VALUE)?;
    if out.is_null() || count == 0 || flags != NO_DESTRUCTOR_SYNC {
        return Err(Code::INVALID_VALUE);
    }
    let object =
        UserObject { destroy: HostFunction { function, data }, holders: AtomicI64::new(i64::from(count)) };
    out.put(driver.graphs.objects.insert(handle::fresh(), Arc::new(object)))
}

fn find(object: Handle) -> Answer<Arc<UserObject>> {
    driver()?.graphs.objects.find(object).ok_or(Code::INVALID_VALUE)
}

pub fn retain(object: Handle, count: u32) -> Answer {
    find(object)?.holders.fetch_add(i64::from(count), Ordering::Relaxed);
    Ok(())
}

pub fn release(object: Handle, count: u32) -> Answer {
    let found = find(object)?;
    if found.holders.fetch_sub(i64::from(count), Ordering::Relaxed) <= i64::from(count) {
        driver()?.graphs.objects.remove(object)?;
        found.destroy.call();
    }
    Ok(())
}

pub fn graph_retain(graph: Handle, object: Handle, count: u32, flags: u32) -> Answer {
    let graph = graph::find(graph)?;
    if flags & MOVE == 0 {
        retain(object, count)?;
    } else {
        find(object)?;
    }
    graph.hold(handle::id(object), i64::from(count));
    Ok(())
}

pub fn graph_release(graph: Handle, object: Handle, count: u32) -> Answer {
    graph::find(graph)?.hold(handle::id(object), -i64::from(count));
    release(object, count)
}
