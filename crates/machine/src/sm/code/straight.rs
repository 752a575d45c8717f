//! Straight code, whose warps sprint.

use super::super::waits;
use super::{Timing, cache};
use isa::Op;
use isa::field::Cache;
use isa::image::{Function, Image};

/// Where a kernel's code ends, if it is straight and needs nobody: what its warps do can be executed as soon as they start.
/// Loads are too: a launch whose results depend on the order of its CTAs is not asked.
pub(super) fn sprint(f: &Function, image: &Image, timings: &[Timing]) -> Option<u32> {
    let mut loads = 0;
    for n in f.start..f.end.min(f.start + u32::from(u8::MAX)) {
        let (i, t) = (&image.code[n as usize], &timings[n as usize]);
        match i.op {
            Op::Exit if waits::is_always(i) => return (loads > 0).then_some(n),
            Op::Ldg | Op::Stg if cache(i) != Cache::Cv => loads += u32::from(i.op == Op::Ldg),
            Op::Exit | Op::Bsync => {}
            Op::Bra if !waits::is_always(i) => {}
            _ if waits::is_quiet(t) && !t.is_late => {}
            _ => return None,
        }
    }
    None
}
