//! Events.

use crate::context;
use crate::error::{Answer, Code};
use crate::handle::{self, Handle};
use crate::operation::Operation;
use crate::state::driver;
use crate::stream::{DISABLE_TIMING, Event, INTERPROCESS, Stream};
use crate::types::Out;
use std::sync::Arc;

/// Waiting without spinning is all there is.
const BLOCKING: u32 = 1;

pub fn create(out: Out<Handle>, flags: u32) -> Answer {
    let driver = driver()?;
    let context = context::current()?;
    let untimed = flags & INTERPROCESS == 0 || flags & DISABLE_TIMING != 0;
    if out.is_null() || flags & !(BLOCKING | DISABLE_TIMING | INTERPROCESS) != 0 || !untimed {
        return Err(Code::INVALID_VALUE);
    }
    let event = Event::create(&context, flags);
    out.put(driver.events.insert(event.id, event))
}

/// The event of a handle; one that was freed is gone like a destroyed context's.
fn find(handle: Handle) -> Answer<Arc<Event>> {
    let is_freed = handle::is_ours(handle);
    let gone = if is_freed { Code::CONTEXT_IS_DESTROYED } else { Code::INVALID_HANDLE };
    driver()?.events.find(handle).ok_or(gone)
}

pub fn destroy(handle: Handle) -> Answer {
    driver()?.events.remove(handle).map(|_| ())
}

pub fn record(handle: Handle, stream: Handle) -> Answer {
    record_flags(handle, stream, 0)
}

pub fn record_flags(handle: Handle, stream: Handle, flags: u32) -> Answer {
    let event = find(handle)?;
    let stream = Stream::find(driver()?, stream)?;
    if flags > 1 {
        return Err(Code::INVALID_VALUE);
    }
    if !Arc::ptr_eq(&event.context, &stream.context) {
        return Err(Code::INVALID_HANDLE);
    }
    match stream.capture() {
        // An event outside of the graph that is recorded each time the graph runs.
        Some(capture) if flags == 1 => capture.add(&stream, Operation::Record(event)),
        Some(capture) => capture.mark(&stream, &event),
        None => {
            event.record(&stream);
            Ok(())
        }
    }
}

fn refuse_captured(event: &Event) -> Answer {
    if event.state().captured.is_some() { Err(Code::CAPTURED_EVENT) } else { Ok(()) }
}

pub fn query(handle: Handle) -> Answer {
    let event = find(handle)?;
    refuse_captured(&event)?;
    let is_done = event.is_done();
    event.context.check()?;
    if is_done { Ok(()) } else { Err(Code::NOT_READY) }
}

pub fn synchronize(handle: Handle) -> Answer {
    let event = find(handle)?;
    refuse_captured(&event)?;
    event.synchronize();
    event.context.check()
}

pub fn elapsed(out: Out<f32>, start: Handle, end: Handle) -> Answer {
    let (start, end) = (find(start)?, find(end)?);
    if (start.flags | end.flags) & DISABLE_TIMING != 0 {
        return Err(Code::INVALID_HANDLE);
    }
    start.context.check()?;
    let is_recorded = |e: &Event| e.state().place.is_some();
    if !is_recorded(&start) || !is_recorded(&end) {
        return Err(Code::INVALID_HANDLE);
    }
    if !start.is_done() || !end.is_done() {
        return Err(Code::NOT_READY);
    }
    let (from, to) = (start.state().time, end.state().time);
    let (from, to) = from.zip(to).ok_or(Code::NOT_READY)?;
    out.put((to as f64 - from as f64) as f32 / 1e6)
}
