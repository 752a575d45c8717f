//! Streams without time: everything in the order of asking, as far as events allow.

use super::{Asked, Step, Streams, Synchronized};
use crate::launch::{LaunchError, LaunchOptions, LaunchStats};
use machine::tasks::{Transfer, transfer};
use std::collections::{BTreeSet, VecDeque};

impl Streams<'_> {
    pub(super) fn run_functional(&self, options: &LaunchOptions<'_>) -> Result<Synchronized, LaunchError> {
        let mut done = Synchronized {
            launches: vec![LaunchStats::default(); self.launches.len()],
            read: vec![Vec::new(); self.reads.len()],
            timeline: None,
        };
        let mut waiting: VecDeque<&(usize, u64, Step)> = self.steps.iter().collect();
        let mut happened = BTreeSet::new();
        // Entries for queues, as they come while queue tasks run.
        let mut pushed = BTreeSet::new();
        while !waiting.is_empty() {
            let mut blocked = BTreeSet::new();
            let mut later = VecDeque::new();
            for step in waiting {
                let (stream, _, what) = step;
                let must_wait = matches!(what, Step::Wait(event) if !happened.contains(event));
                if blocked.contains(stream) || must_wait {
                    blocked.insert(*stream);
                    later.push_back(step);
                    continue;
                }
                match what {
                    Step::Record(event) => {
                        happened.insert(*event);
                    }
                    Step::Wait(_) => {}
                    Step::Transfer(n) => {
                        let what = &self.transfers[*n];
                        if !matches!(what, Transfer::Push { .. }) {
                            self.transfer_now(*n, &mut done)?;
                        }
                    }
                    Step::Launch(n) => {
                        done.launches[*n] = self.launch_now(&self.launches[*n], &mut pushed, options)?;
                    }
                }
            }
            waiting = later;
        }
        Ok(done)
    }

    fn transfer_now(&self, n: usize, done: &mut Synchronized) -> Result<(), LaunchError> {
        let failed = |e: simt::MemoryError| LaunchError::Engine(format!("a copy in a stream: {e}"));
        let what = &self.transfers[n];
        let came = transfer(what, self.device.memory()).map_err(failed)?;
        match *what {
            Transfer::Write { address, ref bytes } => {
                self.device.machine().written(address, bytes.len() as u64)
            }
            Transfer::Fill { address, count, .. } => self.device.machine().written(address, count),
            Transfer::Copy { to, count, .. } => self.device.machine().written(to, count),
            Transfer::Read { .. } | Transfer::Push { .. } => {}
        }
        if let (Some(bytes), Some(k)) = (came, self.reads.iter().position(|&r| r == n)) {
            done.read[k] = bytes;
        }
        Ok(())
    }

    /// Runs a launch; a queue task as often as the host has entries that did not fit before.
    fn launch_now(
        &self,
        asked: &Asked<'_>,
        pushed: &mut BTreeSet<usize>,
        options: &LaunchOptions<'_>,
    ) -> Result<LaunchStats, LaunchError> {
        let Some(queue) = asked.queue else {
            return asked.module.run_functional(
                self.device,
                &asked.entry,
                &asked.shape,
                &asked.params,
                None,
                options,
            );
        };
        let mut all = LaunchStats::default();
        loop {
            for (n, what) in self.transfers.iter().enumerate() {
                if let Transfer::Push { queue: address, .. } = what
                    && *address == queue.address
                    && !pushed.contains(&n)
                {
                    if transfer(what, self.device.memory()).is_err() {
                        break;
                    }
                    pushed.insert(n);
                }
            }
            let at = Some(queue.address);
            let stats = asked.module.run_functional(
                self.device,
                &asked.entry,
                &asked.shape,
                &asked.params,
                at,
                options,
            )?;
            all.warp_instructions += stats.warp_instructions;
            all.thread_instructions += stats.thread_instructions;
            all.ctas += stats.ctas;
            let is_left = |(n, what): (usize, &Transfer)| {
                matches!(what, Transfer::Push { queue: a, .. } if *a == queue.address) && !pushed.contains(&n)
            };
            if !self.transfers.iter().enumerate().any(is_left) {
                return Ok(all);
            }
            if stats.ctas == 0 {
                let capacity = queue.capacity;
                return Err(LaunchError::Engine(format!(
                    "the queue at {:#x} is full: its {capacity} entries are not done yet",
                    queue.address
                )));
            }
        }
    }
}
