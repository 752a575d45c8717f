//! Host threads that work on the parts of the machine between exchange points.
//!
//! Parts are independent, so which thread takes which part changes nothing but the time it takes.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// A job: what a thread is to do with part number n.
type Job<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Parts that nobody has taken yet of those that one thread begins with: the first and the end, in one word. Each on
/// lines of the host's caches of its own.
#[repr(align(128))]
struct Share(AtomicU64);

impl Share {
    fn set(&self, first: usize, end: usize) {
        self.0.store((first as u64) << 32 | end as u64, Ordering::Relaxed);
    }

    /// Takes a part: the first, or the last for a thread that is through with its own.
    fn take(&self, is_own: bool) -> Option<usize> {
        // What the parts are is published by the round, and that they are done by `done`: this only counts.
        let mut now = self.0.load(Ordering::Relaxed);
        loop {
            let (first, end) = (now >> 32, now & 0xffff_ffff);
            if first >= end {
                return None;
            }
            let (new, part) = if is_own { (now + (1 << 32), first) } else { (now - 1, end - 1) };
            match self.0.compare_exchange_weak(now, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(part as usize),
                Err(other) => now = other,
            }
        }
    }
}

/// What the threads of one run share.
pub struct Workers {
    threads: usize,
    /// Number of the job in progress; odd values are not used.
    round: AtomicUsize,
    job: std::cell::UnsafeCell<Option<Job<'static>>>,
    /// The parts of a round, cut in as many stretches as there are threads: a thread has the same ones in every round, so
    /// its core's caches know them, and neighbours in memory are seldom worked on at the same time.
    shares: Box<[Share]>,
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
            shares: (0..threads.max(1)).map(|_| Share(AtomicU64::new(0))).collect(),
            done: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        };
        std::thread::scope(|scope| {
            for thread in 1..workers.threads {
                let workers = &workers;
                scope.spawn(move || workers.help(thread));
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

    fn help(&self, thread: usize) {
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
                self.take_parts(thread, job);
            }
        }
    }

    fn take_parts(&self, thread: usize, job: Job<'_>) {
        for n in 0..self.threads {
            let share = &self.shares[(thread + n) % self.threads];
            while let Some(part) = share.take(n == 0) {
                job(thread, part);
            }
        }
    }

    /// Does `work` for every part; returns when all are done. `work` of one part must not depend on that of another.
    pub fn each<T: Send>(&self, parts: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
        self.each_with(&mut vec![(); self.threads], parts, |(), n, part| work(n, part));
    }

    /// The same with something of each thread's own, of which there must be enough.
    pub fn each_with<S: Send, T: Send>(
        &self,
        own: &mut [S],
        parts: &mut [T],
        work: impl Fn(&mut S, usize, &mut T) + Sync,
    ) {
        assert!(own.len() >= self.threads, "something for each thread");
        if self.threads == 1 || parts.len() < 2 {
            for (n, part) in parts.iter_mut().enumerate() {
                work(&mut own[0], n, part);
            }
            return;
        }
        struct Start<T>(*mut T);
        // SAFETY: each index is taken by one thread, so no two threads touch one element.
        unsafe impl<T: Send> Sync for Start<T> {}
        impl<T> Start<T> {
            fn at(&self, n: usize) -> *mut T {
                self.0.wrapping_add(n)
            }
        }
        let (start, of_thread) = (Start(parts.as_mut_ptr()), Start(own.as_mut_ptr()));
        let job = |thread: usize, n: usize| {
            // SAFETY: `n` is below the number of parts and taken once, `thread` below the number of threads, each of which
            // has its own.
            let (own, part) = unsafe { (&mut *of_thread.at(thread), &mut *start.at(n)) };
            work(own, n, part);
        };
        let job: Job<'_> = &job;
        // SAFETY: the job is called only until all helpers are done with this round, which is awaited below.
        let job: Job<'static> = unsafe { std::mem::transmute::<Job<'_>, Job<'static>>(job) };
        for (n, share) in self.shares.iter().enumerate() {
            share.set(n * parts.len() / self.threads, (n + 1) * parts.len() / self.threads);
        }
        self.done.store(0, Ordering::Relaxed);
        // SAFETY: no helper works now.
        unsafe { *self.job.get() = Some(job) };
        self.round.fetch_add(1, Ordering::Release);
        self.take_parts(0, job);
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

    #[test]
    fn threads_have_their_own() {
        for threads in [1, 2, 4] {
            let mut own = vec![Vec::new(); threads];
            let mut parts = vec![(); 1000];
            Workers::with(threads, |w| w.each_with(&mut own, &mut parts, |seen, n, ()| seen.push(n)));
            let mut all = own.concat();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..1000), "{threads}");
        }
    }
}
