//! Whom launches and child tasks are counted with.

use super::SEPARATE;
use super::serve::Tasks;

impl<'l> Tasks<'l, '_> {
    /// Launches that are counted by themselves.
    pub fn separate(&self) -> usize {
        self.batch.launches.len().min(SEPARATE)
    }

    /// Lists that counts are kept in: one for each of those, and one for the rest; none where there is only one launch.
    pub fn groups(&self) -> usize {
        let all = self.batch.launches.len().min(SEPARATE + 1);
        if all > 1 { all } else { 0 }
    }

    /// The host's launch that a job is part of.
    pub(super) fn root(&self, mut job: usize) -> usize {
        while let Some((parent, _)) = self.jobs.list[job].parent {
            job = parent;
        }
        job
    }

    /// CTAs, warp and thread instructions of one of the host's launches with its child tasks.
    pub fn totals(&self, launch: usize) -> [u64; 3] {
        let mut sum = [0; 3];
        for (n, job) in self.jobs.list.iter().enumerate() {
            if self.root(n) == launch {
                let t = &job.timed;
                let own = [t.ctas, t.warp_instructions, t.thread_instructions];
                sum.iter_mut().zip(own).for_each(|(sum, n)| *sum += n);
            }
        }
        sum
    }
}
