//! Events: made, recorded, waited for, and the time between two.

use crate::error::Answer;
use crate::runtime::{enter, stream};
use crate::types::{Handle, Out};

pub fn create(out: Out<Handle>) -> Answer {
    create_with_flags(out, 0)
}

pub fn create_with_flags(out: Out<Handle>, flags: u32) -> Answer {
    enter()?.cuEventCreate(out, flags)
}

pub fn destroy(event: Handle) -> Answer {
    enter()?.cuEventDestroy_v2(event)
}

pub fn record(event: Handle, on: Handle) -> Answer {
    record_with_flags(event, on, 0)
}

pub fn record_with_flags(event: Handle, on: Handle, flags: u32) -> Answer {
    enter()?.cuEventRecordWithFlags(event, stream(on), flags)
}

pub fn query(event: Handle) -> Answer {
    enter()?.cuEventQuery(event)
}

pub fn synchronize(event: Handle) -> Answer {
    enter()?.cuEventSynchronize(event)
}

pub fn elapsed(out: Out<f32>, start: Handle, end: Handle) -> Answer {
    enter()?.cuEventElapsedTime(out, start, end)
}
