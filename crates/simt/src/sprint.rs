//! Sprints: a warp of straight code is executed from its start on as far as it needs nobody, in registers that all warps of a
//! host thread share.
//!
//! A large machine has tens of megabytes of register files, and a warp that loads, computes and stores a little touches
//! all of its own from far away, several times. What a sprint leaves is a [`Tape`](crate::tape::Tape) of its accesses, a few
//! lines of the host's caches. If it came to the end of the code, nobody reads the warp's registers any more; else they are
//! copied to its own file, and it goes on there.

use crate::aligned::Aligned;
use crate::launch::Launch;
use crate::log::Log;
use crate::resident::Access;
use crate::warp::fill_pool;
use std::sync::Arc;

/// Registers for sprints, and where their stores go meanwhile.
#[derive(Default)]
pub struct Track {
    registers: Option<(Arc<Launch>, Aligned)>,
    stored: Log,
    access: Access,
}

impl Track {
    /// What a warp of a launch needs: registers, beside its constants.
    #[inline(always)]
    pub(crate) fn ready(&mut self, launch: &Arc<Launch>) -> (&mut Aligned, &mut Access, &mut Log) {
        if self.registers.as_ref().is_some_and(|(own, _)| !Arc::ptr_eq(own, launch)) {
            self.registers = None;
        }
        let (_, file) = self.registers.get_or_insert_with(|| {
            let mut file = Aligned::zeroed(launch.kernel.layout.end as usize);
            fill_pool(&mut file, launch);
            (launch.clone(), file)
        });
        (file, &mut self.access, &mut self.stored)
    }
}
