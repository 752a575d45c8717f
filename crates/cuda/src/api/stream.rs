//! Streams.

use crate::context;
use crate::error::{Answer, Code};
use crate::handle::Handle;
use crate::operation::{Operation, Value};
use crate::queue::Work;
use crate::state::driver;
use crate::stream::{NON_BLOCKING, Stream};
use crate::types::Out;
use std::ffi::c_void;
use std::sync::Arc;

pub fn create(out: Out<Handle>, flags: u32) -> Answer {
    create_with_priority(out, flags, 0)
}

pub fn create_with_priority(out: Out<Handle>, flags: u32, priority: i32) -> Answer {
    let driver = driver()?;
    let context = context::current()?;
    if out.is_null() || flags & !NON_BLOCKING != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let stream = Stream::create(&context, flags, priority);
    out.put(driver.streams.insert(stream.id, stream))
}

/// A stream of its own, not a default one.
fn own(handle: Handle) -> Answer<Arc<Stream>> {
    driver()?.streams.get(handle)
}

pub fn destroy(handle: Handle) -> Answer {
    let driver = driver()?;
    own(handle)?;
    let stream = driver.streams.remove(handle)?;
    if let Some(capture) = stream.capture() {
        capture.spoil();
    }
    stream.context.close_lane(stream.lane);
    Ok(())
}

/// The stream of a handle, in a context that may have failed.
fn known(handle: Handle) -> Answer<Arc<Stream>> {
    match handle as usize {
        0..=2 => Stream::find(driver()?, handle),
        _ => own(handle),
    }
}

pub fn synchronize(handle: Handle) -> Answer {
    let stream = Stream::find(driver()?, handle)?;
    stream.refuse_capture()?;
    stream.synchronize()
}

pub fn query(handle: Handle) -> Answer {
    let stream = Stream::find(driver()?, handle)?;
    stream.refuse_capture()?;
    let is_done = stream.is_done();
    stream.context.check()?;
    if is_done { Ok(()) } else { Err(Code::NOT_READY) }
}

pub fn wait_event(handle: Handle, event: Handle, flags: u32) -> Answer {
    let driver = driver()?;
    let stream = Stream::find(driver, handle)?;
    let event = driver.events.get(event)?;
    // An event that a graph waits for outside of itself.
    if flags > 1 {
        return Err(Code::INVALID_VALUE);
    }
    let state = event.state().clone();
    if let Some((capture, nodes)) = &state.captured {
        return capture.join(&stream, nodes);
    }
    if let Some(capture) = stream.capture() {
        capture.spoil();
        return Err(Code::STREAM_CAPTURE_ISOLATION);
    }
    let Some((gpu, ticket)) = state.place else { return Ok(()) };
    if Arc::ptr_eq(&gpu, &stream.context.gpu) {
        let mut after = stream.after();
        after.push(ticket);
        let nothing = Work::Device(Box::new(|| Ok(())));
        gpu.queue.submit(stream.lane, after, stream.context.clone(), nothing);
    } else {
        stream.submit(Work::Until(Box::new(move || gpu.queue.is_reached(&ticket))));
    }
    Ok(())
}

/// A function that is told how the stream is.
type Callback = Option<unsafe extern "C" fn(Handle, u32, *mut c_void)>;

pub fn add_callback(handle: Handle, callback: Callback, data: usize, flags: u32) -> Answer {
    let stream = Stream::find(driver()?, handle)?;
    let callback = callback.ok_or(Code::INVALID_VALUE)?;
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    stream.refuse_capture()?;
    let number = handle as usize;
    stream.submit(Work::Host(Box::new(move |code| {
        // SAFETY: the client says that the function can be called with this, from any thread.
        unsafe { callback(number as Handle, code.0, data as *mut c_void) };
    })));
    Ok(())
}

pub fn context_of(handle: Handle, out: Out<Handle>) -> Answer {
    out.put(known(handle)?.context.handle())
}

pub fn context_of_v2(handle: Handle, out: Out<Handle>, green: Out<Handle>) -> Answer {
    green.offer(std::ptr::null_mut());
    context_of(handle, out)
}

pub fn device_of(handle: Handle, out: Out<i32>) -> Answer {
    out.put(known(handle)?.context.gpu.ordinal)
}

pub fn flags_of(handle: Handle, out: Out<u32>) -> Answer {
    out.put(known(handle)?.flags)
}

pub fn priority_of(handle: Handle, out: Out<i32>) -> Answer {
    out.put(known(handle)?.priority)
}

pub fn id_of(handle: Handle, out: Out<u64>) -> Answer {
    out.put(known(handle)?.id)
}

/// Managed memory is reached by everybody at any time.
pub fn attach_memory(handle: Handle, _address: u64, _bytes: usize, _flags: u32) -> Answer {
    Stream::find(driver()?, handle).map(|_| ())
}

pub fn copy_attributes(_to: Handle, _from: Handle) -> Answer {
    driver().map(|_| ())
}

pub fn get_attribute(handle: Handle, attribute: u32, out: Out<[u32; 16]>) -> Answer {
    let stream = Stream::find(driver()?, handle)?;
    let mut value = [0; 16];
    if attribute == 8 {
        value[0] = stream.priority as u32;
    }
    out.put(value)
}

/// Hints about caches and waiting.
pub fn set_attribute(handle: Handle, _attribute: u32, _value: usize) -> Answer {
    Stream::find(driver()?, handle).map(|_| ())
}

fn value(address: u64, value: u64, bytes: u64, condition: u32) -> Answer<Value> {
    let driver = driver()?;
    let memory = driver.space().memory();
    let fits = memory.find(address).is_some_and(|b| b.holds(address, bytes));
    if !fits || !address.is_multiple_of(bytes) {
        return Err(Code::INVALID_VALUE);
    }
    Ok(Value { address, value, bytes, condition })
}

fn wait(handle: Handle, value: Value) -> Answer {
    let driver = driver()?;
    let stream = Stream::find(driver, handle)?;
    stream.refuse_capture()?;
    stream.submit(Work::Until(Box::new(move || value.holds(driver))));
    Ok(())
}

pub fn wait_value32(handle: Handle, address: u64, wanted: u32, flags: u32) -> Answer {
    wait(handle, value(address, wanted.into(), 4, flags)?)
}

pub fn wait_value64(handle: Handle, address: u64, wanted: u64, flags: u32) -> Answer {
    wait(handle, value(address, wanted, 8, flags)?)
}

pub fn write_value32(handle: Handle, address: u64, written: u32, _flags: u32) -> Answer {
    let operation = Operation::WriteValue(value(address, written.into(), 4, 0)?);
    Stream::find(driver()?, handle)?.enqueue(operation).map(|_| ())
}

pub fn write_value64(handle: Handle, address: u64, written: u64, _flags: u32) -> Answer {
    let operation = Operation::WriteValue(value(address, written, 8, 0)?);
    Stream::find(driver()?, handle)?.enqueue(operation).map(|_| ())
}
