//! Streams: made, waited for, asked; captured into graphs.

use crate::error::Answer;
use crate::runtime::{enter, stream};
use crate::types::{Callback, Handle, Out};

pub fn create(out: Out<Handle>) -> Answer {
    create_with_priority(out, 0, 0)
}

pub fn create_with_flags(out: Out<Handle>, flags: u32) -> Answer {
    create_with_priority(out, flags, 0)
}

pub fn create_with_priority(out: Out<Handle>, flags: u32, priority: i32) -> Answer {
    enter()?.cuStreamCreateWithPriority(out, flags, priority)
}

pub fn destroy(on: Handle) -> Answer {
    enter()?.cuStreamDestroy_v2(on)
}

pub fn synchronize(on: Handle) -> Answer {
    enter()?.cuStreamSynchronize(stream(on))
}

pub fn query(on: Handle) -> Answer {
    enter()?.cuStreamQuery(stream(on))
}

pub fn wait_event(on: Handle, event: Handle, flags: u32) -> Answer {
    enter()?.cuStreamWaitEvent(stream(on), event, flags)
}

pub fn add_callback(on: Handle, callback: Callback, data: Handle, flags: u32) -> Answer {
    enter()?.cuStreamAddCallback(stream(on), callback, data, flags)
}

pub fn device_of(on: Handle, out: Out<i32>) -> Answer {
    enter()?.cuStreamGetDevice(stream(on), out)
}

pub fn flags_of(on: Handle, out: Out<u32>) -> Answer {
    enter()?.cuStreamGetFlags(stream(on), out)
}

pub fn priority_of(on: Handle, out: Out<i32>) -> Answer {
    enter()?.cuStreamGetPriority(stream(on), out)
}

pub fn id_of(on: Handle, out: Out<u64>) -> Answer {
    enter()?.cuStreamGetId(stream(on), out)
}

pub fn attach_memory(on: Handle, address: u64, bytes: usize, flags: u32) -> Answer {
    enter()?.cuStreamAttachMemAsync(stream(on), address, bytes, flags)
}

pub fn copy_attributes(to: Handle, from: Handle) -> Answer {
    enter()?.cuStreamCopyAttributes(stream(to), stream(from))
}

pub fn get_attribute(on: Handle, attribute: u32, out: Handle) -> Answer {
    enter()?.cuStreamGetAttribute(stream(on), attribute, out)
}

pub fn set_attribute(on: Handle, attribute: u32, value: Handle) -> Answer {
    enter()?.cuStreamSetAttribute(stream(on), attribute, value)
}

pub fn begin_capture(on: Handle, mode: u32) -> Answer {
    enter()?.cuStreamBeginCapture_v2(stream(on), mode)
}

pub fn end_capture(on: Handle, out: Out<Handle>) -> Answer {
    enter()?.cuStreamEndCapture(stream(on), out)
}

pub fn is_capturing(on: Handle, out: Out<u32>) -> Answer {
    enter()?.cuStreamIsCapturing(stream(on), out)
}

pub fn capture_info(
    on: Handle,
    out: Out<u32>,
    id: Out<u64>,
    graph: Out<Handle>,
    nodes: Out<Handle>,
    count: Out<usize>,
) -> Answer {
    enter()?.cuStreamGetCaptureInfo_v2(stream(on), out, id, graph, nodes, count)
}

pub fn capture_info_edges(
    on: Handle,
    out: Out<u32>,
    id: Out<u64>,
    graph: Out<Handle>,
    nodes: Out<Handle>,
    edges: Out<Handle>,
    count: Out<usize>,
) -> Answer {
    enter()?.cuStreamGetCaptureInfo_v3(stream(on), out, id, graph, nodes, edges, count)
}

/// The first form, without a graph.
pub fn capture_info_short(on: Handle, out: Out<u32>, id: Out<u64>) -> Answer {
    capture_info(on, out, id, Out::null(), Out::null(), Out::null())
}

pub fn exchange_mode(mode: Out<u32>) -> Answer {
    enter()?.cuThreadExchangeStreamCaptureMode(mode)
}
