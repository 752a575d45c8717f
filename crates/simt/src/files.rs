//! Register files that stay when a launch has ended, for the next one of its kernel.
//!
//! A large machine has thousands of warp slots and tens of megabytes of files: making them anew for every launch costs as
//! much as a tenth of a short one.

use crate::aligned::Aligned;
use crate::launch::Launch;
use crate::program::Kernel;
use crate::warp::fill_pool;
use std::sync::Arc;

/// Files of warps of one kernel. What their registers hold is left from earlier warps, as in a slot whose warp has ended:
/// whatever a warp may read before it writes it is cleared when it starts.
#[derive(Default)]
pub struct Files {
    kernel: Option<Arc<Kernel>>,
    /// What the rows of constants hold, but those of the first `stale` files.
    pool: Vec<u32>,
    free: Vec<Aligned>,
    stale: usize,
}

impl Files {
    /// From now on for this launch. Those of other kernels go.
    pub fn begin(&mut self, launch: &Launch) {
        if !self.is_for(launch) {
            self.free.clear();
            self.kernel = Some(launch.kernel.clone());
        }
        if self.pool != launch.pool {
            self.pool.clone_from(&launch.pool);
            self.stale = self.free.len();
        }
    }

    fn is_for(&self, launch: &Launch) -> bool {
        self.kernel.as_ref().is_some_and(|k| Arc::ptr_eq(k, &launch.kernel))
    }

    /// A file for a warp of a launch: one that is left, if it is the launch that these are for.
    pub(crate) fn take(&mut self, launch: &Launch) -> Aligned {
        let left = if self.is_for(launch) { self.free.pop() } else { None };
        let is_filled = left.is_some() && self.free.len() >= self.stale;
        self.stale = self.stale.min(self.free.len());
        let mut file = left.unwrap_or_else(|| Aligned::zeroed(launch.kernel.layout.end as usize));
        if !is_filled {
            fill_pool(&mut file, launch);
        }
        file
    }

    /// Takes back the file of a warp of a launch.
    pub(crate) fn put(&mut self, launch: &Launch, file: Aligned) {
        if self.is_for(launch) && file.as_slice().len() >= launch.kernel.layout.end as usize {
            self.free.push(file);
        }
    }
}
