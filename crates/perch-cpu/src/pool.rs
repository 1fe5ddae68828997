//! A pool of threads that share the work of one operation at a time.
//!
//! A decode step is hundreds of operations of a few microseconds each, so a worker that ran out of work looks for
//! more for a moment before it sleeps, and the caller works too and never waits for a worker that has not begun.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// How often a worker looks for new work before it sleeps: some 20 microseconds.
const LOOKS: u32 = 4000;

/// The job is closed: no worker may begin on it.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// Threads that live as long as the pool.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Held while an operation runs: the pool has room for one.
    running: Mutex<()>,
}

struct Shared {
    /// Number of jobs so far; a change wakes workers that look for it.
    epoch: AtomicUsize,
    /// How many workers are in the job, and [`CLOSED`].
    inside: AtomicUsize,
    job: Mutex<Job>,
    wake: Condvar,
    sleeping: AtomicUsize,
    next: AtomicUsize,
    panicked: AtomicBool,
    quit: AtomicBool,
}

/// The function of the current job and how many items it has.
#[derive(Clone, Copy)]
struct Job {
    run: Option<&'static (dyn Fn(usize) + Sync)>,
    items: usize,
}

impl Pool {
    /// A pool in which `threads` threads work, the caller included.
    pub(crate) fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared {
            epoch: AtomicUsize::new(0),
            inside: AtomicUsize::new(CLOSED),
            job: Mutex::new(Job { run: None, items: 0 }),
            wake: Condvar::new(),
            sleeping: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            quit: AtomicBool::new(false),
        });
        let workers = (1..threads)
            .filter_map(|index| {
                let shared = shared.clone();
                // Without a thread there is less speed, but no wrong answer.
                std::thread::Builder::new()
                    .name(format!("perch-cpu-{index}"))
                    .spawn(move || shared.work())
                    .ok()
            })
            .collect();
        Self { shared, workers, running: Mutex::new(()) }
    }

    /// Number of threads that work, the caller included.
    pub(crate) fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `run` for each of `0..items`, in any order, on all threads, and returns when all are done.
    pub(crate) fn run(&self, items: usize, run: &(dyn Fn(usize) + Sync)) {
        if items <= 1 || self.workers.is_empty() {
            (0..items).for_each(run);
            return;
        }
        let _running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = &*self.shared;
        // SAFETY: Only the lifetime changes. Workers call the function between a successful `enter` and `leave`;
        // `enter` fails once the job is closed, and this function closes it and waits until all have left before
        // it returns, also when `run` panics. So the reference is never used after its real lifetime.
        #[expect(unsafe_code, reason = "scoped threads would have to be started for each operation")]
        let lasting =
            unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(run) };
        {
            let mut job = shared.job.lock().unwrap_or_else(PoisonError::into_inner);
            *job = Job { run: Some(lasting), items };
            shared.next.store(0, Ordering::Relaxed);
            shared.panicked.store(false, Ordering::Relaxed);
            shared.inside.store(0, Ordering::SeqCst);
            shared.epoch.fetch_add(1, Ordering::SeqCst);
            if shared.sleeping.load(Ordering::SeqCst) > 0 {
                shared.wake.notify_all();
            }
        }
        let mine = catch_unwind(AssertUnwindSafe(|| shared.take_items(lasting, items)));
        shared.inside.fetch_or(CLOSED, Ordering::SeqCst);
        let mut looks = 0u32;
        while shared.inside.load(Ordering::SeqCst) != CLOSED {
            looks += 1;
            if looks > LOOKS { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
        if let Err(panic) = mine {
            resume_unwind(panic);
        }
        assert!(!shared.panicked.load(Ordering::SeqCst), "a worker of the CPU backend panicked");
    }

    /// Splits `0..len` into consecutive ranges of at least `least` and calls `run` for each.
    pub(crate) fn ranges(&self, len: usize, least: usize, run: &(dyn Fn(std::ops::Range<usize>) + Sync)) {
        // Several ranges a thread even out what a busy machine takes from one of them.
        let ranges = (self.threads() * 4).min(len.div_ceil(least.max(1))).max(1);
        self.run(ranges, &|index| run(len * index / ranges..len * (index + 1) / ranges));
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.quit.store(true, Ordering::SeqCst);
        {
            let _job = self.shared.job.lock().unwrap_or_else(PoisonError::into_inner);
            self.shared.epoch.fetch_add(1, Ordering::SeqCst);
            self.shared.wake.notify_all();
        }
        for worker in self.workers.drain(..) {
            // A worker's panic was reported by the operation that it happened in.
            drop(worker.join());
        }
    }
}

impl Shared {
    /// A worker's life.
    fn work(&self) {
        let mut seen = 0;
        loop {
            seen = self.next_epoch(seen);
            if self.quit.load(Ordering::SeqCst) {
                return;
            }
            if !self.enter() {
                continue;
            }
            let job = *self.job.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(run) = job.run
                && catch_unwind(AssertUnwindSafe(|| self.take_items(run, job.items))).is_err()
            {
                self.panicked.store(true, Ordering::SeqCst);
            }
            self.inside.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Waits until there is a job after the one called `seen`.
    fn next_epoch(&self, seen: usize) -> usize {
        for _ in 0..LOOKS {
            let epoch = self.epoch.load(Ordering::SeqCst);
            if epoch != seen {
                return epoch;
            }
            std::hint::spin_loop();
        }
        let mut job = self.job.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleeping.fetch_add(1, Ordering::SeqCst);
        loop {
            let epoch = self.epoch.load(Ordering::SeqCst);
            if epoch != seen {
                self.sleeping.fetch_sub(1, Ordering::SeqCst);
                return epoch;
            }
            job = self.wake.wait(job).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Joins the current job, unless it is closed.
    fn enter(&self) -> bool {
        let join = |inside: usize| (inside & CLOSED == 0).then_some(inside + 1);
        self.inside.fetch_update(Ordering::SeqCst, Ordering::SeqCst, join).is_ok()
    }

    fn take_items(&self, run: &(dyn Fn(usize) + Sync), items: usize) {
        loop {
            let item = self.next.fetch_add(1, Ordering::Relaxed);
            if item >= items {
                return;
            }
            run(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once_whatever_the_number_of_threads() {
        for threads in [1, 2, 3, 8] {
            let pool = Pool::new(threads);
            for items in [0, 1, 2, 7, 1000] {
                let done: Vec<AtomicUsize> = (0..items).map(|_| AtomicUsize::new(0)).collect();
                for _ in 0..50 {
                    pool.run(items, &|item| {
                        done[item].fetch_add(1, Ordering::Relaxed);
                    });
                }
                assert!(done.iter().all(|count| count.load(Ordering::Relaxed) == 50));
            }
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_goes_on() {
        let pool = Pool::new(4);
        let failed = catch_unwind(AssertUnwindSafe(|| pool.run(100, &|item| assert!(item != 57))));
        assert!(failed.is_err());
        let sum = AtomicUsize::new(0);
        pool.run(10, &|item| {
            sum.fetch_add(item, Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), 45);
    }
}
