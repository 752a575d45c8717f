//! Host threads that work on the parts of the machine between exchange points.
//!
//! Parts are independent, so which thread takes which part changes nothing but the time it takes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A job: what to do with part number n.
type Job<'a> = &'a (dyn Fn(usize) + Sync);

/// What the threads of one run share.
pub struct Workers {
    threads: usize,
    /// Number of the job in progress; odd values are not used.
    round: AtomicUsize,
    job: std::cell::UnsafeCell<Option<Job<'static>>>,
    parts: AtomicUsize,
    next: AtomicUsize,
    /// Helpers that are done with the round.
    done: AtomicUsize,
    stop: AtomicBool,
}

// SAFETY: `job` is written by the owner only while no helper works on a round, and `round` publishes it.
unsafe impl Sync for Workers {}

/// Turns of a spinning thread before it lets others run.
const SPINS: u32 = 20_000;

fn wait(until: impl Fn() -> bool) {
    let mut turns = 0;
    while !until() {
        turns += 1;
        if turns < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
    }
}

/// Counts a helper as done with its round, even when it panics: the owner must not wait for ever.
struct Done<'a>(&'a AtomicUsize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

impl Workers {
    /// Runs `body` with `threads` threads at hand, the caller's included.
    pub fn with<R>(threads: usize, body: impl FnOnce(&Workers) -> R) -> R {
        let workers = Workers {
            threads: threads.max(1),
            round: AtomicUsize::new(0),
            job: std::cell::UnsafeCell::new(None),
            parts: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        };
        std::thread::scope(|scope| {
            for _ in 1..workers.threads {
                scope.spawn(|| workers.help());
            }
            // Helpers must end when the body panics, too.
            struct Stop<'a>(&'a AtomicBool);
            impl Drop for Stop<'_> {
                fn drop(&mut self) {
                    self.0.store(true, Ordering::Release);
                }
            }
            let _stop = Stop(&workers.stop);
            body(&workers)
        })
    }

    pub fn threads(&self) -> usize {
        self.threads
    }

    fn help(&self) {
        let mut seen = 0;
        loop {
            wait(|| self.round.load(Ordering::Acquire) != seen || self.stop.load(Ordering::Acquire));
            if self.round.load(Ordering::Acquire) == seen {
                return;
            }
            seen += 1;
            // SAFETY: the owner set the job before it published the round, and leaves it until all are done.
            if let Some(job) = unsafe { *self.job.get() } {
                let _done = Done(&self.done);
                self.take_parts(job);
            }
        }
    }

    fn take_parts(&self, job: Job<'_>) {
        let parts = self.parts.load(Ordering::Relaxed);
        loop {
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            if n >= parts {
                return;
            }
            job(n);
        }
    }

    /// Does `work` for every part; returns when all are done. `work` of one part must not depend on that of another.
    pub fn each<T: Send>(&self, parts: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
        if self.threads == 1 || parts.len() < 2 {
            for (n, part) in parts.iter_mut().enumerate() {
                work(n, part);
            }
            return;
        }
        struct Start<T>(*mut T);
        // SAFETY: each index is taken once, so no two threads touch one element.
        unsafe impl<T: Send> Sync for Start<T> {}
        impl<T> Start<T> {
            fn at(&self, n: usize) -> *mut T {
                self.0.wrapping_add(n)
            }
        }
        let start = Start(parts.as_mut_ptr());
        let job = |n: usize| {
            // SAFETY: `n` is below the number of parts and taken once.
            work(n, unsafe { &mut *start.at(n) });
        };
        let job: Job<'_> = &job;
        // SAFETY: the job is called only until all helpers are done with this round, which is awaited below.
        let job: Job<'static> = unsafe { std::mem::transmute::<Job<'_>, Job<'static>>(job) };
        self.parts.store(parts.len(), Ordering::Relaxed);
        self.next.store(0, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
        // SAFETY: no helper works now.
        unsafe { *self.job.get() = Some(job) };
        self.round.fetch_add(1, Ordering::Release);
        self.take_parts(job);
        wait(|| self.done.load(Ordering::Acquire) == self.threads - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_done_once() {
        for threads in [1, 2, 4] {
            let mut parts = vec![0u32; 1000];
            Workers::with(threads, |w| {
                for _ in 0..50 {
                    w.each(&mut parts, |n, p| *p += n as u32 % 7);
                }
            });
            assert!(parts.iter().enumerate().all(|(n, &p)| p == 50 * (n as u32 % 7)), "{threads}");
        }
    }
}
